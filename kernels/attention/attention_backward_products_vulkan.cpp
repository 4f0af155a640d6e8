// The gradients of attention by products of matrices: GEMM kernels multiply several times as fast as tiles in shared
// memory, on CPU devices and from some length on.
//
// The call is cut into parts of some heads of k and v, with the heads of q that share them, and each part's rows and
// keys into blocks. The operands of a part are copied to dense f32 rows. Then for each block of rows and of keys two
// products make its scores and what the slopes are made of, a kernel turns these into weights and slopes of pairs, and
// further products add them to dv, dk and dq. So only one block of pairs is in memory at a time. Blocks that nothing
// sees are left out.
//
// The gradient by the bias is the slopes themselves, or what they add up to along axes that share an element: rows by a
// reduction of each block, batch elements and heads block after block.
#include <algorithm>
#include <vector>

#include "kernels/attention/attention_backward_plan.hpp"
#include "kernels/common/check.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "kernels/common/workgroup.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/reduce/reduce.hpp"
#include "planning/kept_vector.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"
#include "shaders/attention_backward_bias.hpp"
#include "shaders/attention_backward_dense.hpp"
#include "shaders/attention_backward_pairs.hpp"
#include "shaders/attention_backward_store.hpp"

namespace tuff::attention_backward {
namespace {

// Rows and keys of a block, and scratch memory of a part: those of a CPU stay in its cache.
constexpr uint64_t kBlockCpu = 256, kBlockGpu = 1024;
constexpr uint64_t kPartBytesCpu = uint64_t{64} << 20, kPartBytesGpu = uint64_t{768} << 20;
// For a part with a single head of k and v. Longer sequences are left to the tiles.
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

// A gradient that products add up: in place if it is dense f32, otherwise in scratch memory first.
struct Sum {
  const Buffer* output;  // null: not wanted
  const AttentionStrides* strides;
  uint64_t elements;           // of the output
  uint64_t heads, rows, size;  // of a batch element, of a head, of a row
  bool in_place;
  uint64_t at = 0;  // in scratch memory, in bytes
};

// The gradient by the bias: in place if each pair has an element of its own or elements are f32, otherwise in dense f32
// first.
struct BiasSum {
  const Buffer* output = nullptr;  // null: not wanted
  int32_t type = TUFF_F32;
  uint32_t shared_axes = 0;  // as attention_backward_bias.comp has them
  bool shared_rows = false, in_place = true;
  bool capped = false;                          // slopes without the cap's are kept beside those with it
  uint64_t batch = 0, heads = 0, rows = 0;      // of the gradient
  uint64_t at = 0, rows_at = 0, biased_at = 0;  // in scratch memory: sums; of a block's rows; slopes without the cap's
  bool writes() const { return shared_axes == 0 && !shared_rows; }
};
// So that items count in 32 bits, and loops over the heads of a part are within those of a CPU driver.
constexpr uint64_t kMaxItems = uint64_t{1} << 30, kMaxHeadsOfBias = 1 << 15;

// Rows of a matrix in f32, and how far the next matrix of the batch is.
struct Matrix {
  Buffer buffer;
  uint64_t ld, stride;
  bool transposed = false;
};

// Rows of one head of q in each group of heads that share keys, or keys.
struct Block {
  uint64_t first, count;
};

struct Plan {
  explicit Plan(const Call& on);

  const Call& call;
  const AttentionArgs& forward;
  uint64_t sharing, d, dv;
  uint64_t block;  // rows and keys
  uint32_t threads;
  bool slopes;  // dq, dk or dbias is wanted
  Sum dq, dk, dv_sum;
  BiasSum bias;
  Buffer scratch;
  uint64_t heads = 0, bytes = 0;  // of a part
  // In scratch memory, in bytes: q and d_o, k and v; numbers of rows, marks of keys; pairs.
  uint64_t rows_at = 0, keys_at = 0, numbers_at = 0, marks_at = 0, scores_at = 0, slopes_at = 0;

  // Places everything for parts of so many heads of k and v.
  void place(uint64_t heads_of_part);
  uint64_t dense_rows(uint64_t of_heads) const { return of_heads * sharing * forward.seq_q; }
  uint64_t dense_keys(uint64_t of_heads) const { return of_heads * forward.seq_kv; }
  Buffer at(uint64_t place, uint64_t element) const {
    const uint64_t offset = place + element * 4;
    return part_of(scratch, offset, scratch.bytes - offset);
  }
};

Plan::Plan(const Call& on)
    : call(on),
      forward(on.forward),
      sharing(on.forward.kv_heads == 0 ? 1 : on.sharing()),
      d(on.forward.head_dim),
      dv(on.forward.head_dim_v),
      block(on.traits().cpu ? kBlockCpu : kBlockGpu),
      threads(on.traits().cpu ? std::max(on.traits().subgroup_size, 1u) : std::min(256u, max_along_x(on.traits()))),
      slopes(on.args.dq != nullptr || on.args.dk != nullptr || on.args.dbias != nullptr) {
  const AttentionBackwardArgs& args = on.args;
  const auto sum = [&](const Buffer* output, const AttentionStrides& strides, uint64_t elements, uint64_t of_heads,
                       uint64_t rows, uint64_t size) {
    const bool dense = strides.row == size && strides.head == rows * size && strides.batch == of_heads * strides.head;
    return Sum{output, &strides, elements, of_heads, rows, size, forward.dtype == TUFF_F32 && dense};
  };
  dq = sum(args.dq, args.dq_strides, args.dq_elements(), forward.heads, forward.seq_q, d);
  dk = sum(args.dk, args.dk_strides, args.dk_elements(), forward.kv_heads, forward.seq_kv, d);
  dv_sum = sum(args.dv, args.dv_strides, args.dv_elements(), forward.kv_heads, forward.seq_kv, dv);
  if (args.dbias != nullptr) {
    const AttentionStrides& of_bias = forward.bias_strides;
    bias.output = args.dbias, bias.type = forward.bias_type;
    bias.batch = args.bias_batch(), bias.heads = args.bias_heads(), bias.rows = args.bias_rows();
    bias.shared_axes = (of_bias.batch == 0 ? 1 : 0) + (of_bias.head == 0 ? 2 : 0);
    bias.shared_rows = of_bias.row == 0;
    bias.capped = forward.softcap != 0;
    bias.in_place = bias.writes() || bias.type == TUFF_F32;
  }
  const uint64_t units = std::max<uint64_t>(forward.batch * forward.kv_heads, 1);
  place(1);
  const uint64_t most = bias.output != nullptr ? std::min(units, kMaxHeadsOfBias) : units;
  place(std::clamp<uint64_t>((on.traits().cpu ? kPartBytesCpu : kPartBytesGpu) / bytes, 1, most));
}

void Plan::place(uint64_t heads_of_part) {
  heads = heads_of_part;
  ScratchLayout layout;
  const uint64_t pairs = heads * std::min(block, forward.seq_q) * std::min(block, forward.seq_kv);
  rows_at = layout.add(dense_rows(heads) * (d + dv) * 4);
  keys_at = layout.add(dense_keys(heads) * (d + dv) * 4);
  numbers_at = layout.add(dense_rows(heads) * 8);
  marks_at = layout.add(dense_keys(heads) * 4);
  scores_at = layout.add(pairs * 4);
  if (slopes) slopes_at = layout.add(pairs * 4);
  for (Sum* sum : {&dq, &dk, &dv_sum}) {
    const uint64_t of_heads = sum == &dq ? heads * sharing : heads;
    if (sum->output != nullptr && !sum->in_place) sum->at = layout.add(of_heads * sum->rows * sum->size * 4);
  }
  if (bias.output != nullptr) {
    if (!bias.in_place) bias.at = layout.add(bias.batch * bias.heads * bias.rows * forward.seq_kv * 4);
    if (bias.shared_rows) bias.rows_at = layout.add(heads * std::min(block, forward.seq_kv) * 4);
    if (bias.capped) bias.biased_at = layout.add(pairs * 4);
  }
  bytes = layout.bytes();
}

// A part: heads first … first + heads - 1 of all batch elements' heads of k and v.
class Part {
 public:
  Part(const Plan& plan, uint64_t first, uint64_t heads) : plan_(plan), first_(first), heads_(heads) {}
  void record();

 private:
  void record_dense(bool keys) const;
  void record_pairs(uint64_t sharer, const Block& rows, const Block& keys) const;
  void record_store(const Sum& sum, uint64_t first, uint64_t heads) const;
  void record_bias(uint64_t sharer, const Block& rows, const Block& keys) const;
  // c = alpha * a * b, or adds that to c; for each head of k and v.
  void multiply(const Matrix& a, const Matrix& b, const Matrix& c, uint64_t m, uint64_t n, uint64_t k, double alpha,
                bool add) const;
  void clear(const Matrix& c, uint64_t m, uint64_t n) const { multiply(c, c, c, m, n, 0, 0, false); }

  // Rows of q or d_o of the heads with this number among those that share keys, keys or values, or sums.
  Matrix rows_of(bool slope, uint64_t sharer, const Block& rows) const {
    const uint64_t size = slope ? plan_.dv : plan_.d, seq = plan_.forward.seq_q;
    const uint64_t before = slope ? plan_.dense_rows(heads_) * plan_.d : 0;
    return {plan_.at(plan_.rows_at, before + (sharer * seq + rows.first) * size), size, plan_.sharing * seq * size};
  }
  Matrix keys_of(bool value, const Block& keys) const {
    const uint64_t size = value ? plan_.dv : plan_.d, before = value ? plan_.dense_keys(heads_) * plan_.d : 0;
    return {plan_.at(plan_.keys_at, before + keys.first * size), size, plan_.forward.seq_kv * size};
  }
  Matrix pairs_of(bool slope, const Block& rows, const Block& keys) const {
    return {plan_.at(slope ? plan_.slopes_at : plan_.scores_at, 0), keys.count, rows.count * keys.count};
  }
  Matrix sum_of(const Sum& sum, uint64_t first_head, uint64_t sharer, uint64_t sharing, const Block& rows) const {
    const uint64_t element = (sharer * sum.rows + rows.first) * sum.size, head = sum.rows * sum.size;
    return {sum.in_place ? moved(sum.output, first_head * head + element, TUFF_F32) : plan_.at(sum.at, element),
            sum.size, sharing * head};
  }
  bool sees(const Block& rows, const Block& keys) const;

  const Plan& plan_;
  uint64_t first_, heads_;
};

Matrix transposed(Matrix matrix) {
  matrix.transposed = true;
  return matrix;
}

void Part::multiply(const Matrix& a, const Matrix& b, const Matrix& c, uint64_t m, uint64_t n, uint64_t k, double alpha,
                    bool add) const {
  GemmArgs args{};
  args.a_type = args.b_type = args.c_type = args.accumulate = TUFF_F32;
  args.precision = TUFF_PRECISION_DEFAULT;
  args.ta = a.transposed ? TUFF_TRANS : TUFF_NO_TRANS, args.tb = b.transposed ? TUFF_TRANS : TUFF_NO_TRANS;
  args.m = m, args.n = n, args.k = k;
  args.alpha = alpha, args.beta = add ? 1 : 0;
  args.a = &a.buffer, args.b = &b.buffer, args.c = &c.buffer;
  args.lda = a.ld, args.ldb = b.ld, args.ldc = c.ld;
  args.stride_a = a.stride, args.stride_b = b.stride, args.stride_c = c.stride;
  args.batch_count = heads_;
  record_gemm(plan_.call.recorder, args);
}

// Whether some row of the block may see some of the keys. Lengths, which are on the device, can only hide more, but for
// a causal mask that follows them.
bool Part::sees(const Block& rows, const Block& keys) const {
  const AttentionArgs& forward = plan_.forward;
  const bool moves = forward.causal == TUFF_CAUSAL_BOTTOM_RIGHT;
  if (moves && (forward.q_lengths != nullptr || forward.kv_lengths != nullptr)) return true;
  const auto seen = [&](uint64_t row) { return attention_keys(forward, row, forward.seq_q, forward.seq_kv); };
  return seen(rows.first + rows.count - 1).end > keys.first && seen(rows.first).first < keys.first + keys.count;
}

void Part::record_dense(bool keys) const {
  const AttentionArgs& forward = plan_.forward;
  const AttentionBackwardArgs& args = plan_.call.args;
  const DeviceTraits& traits = plan_.call.traits();
  KernelRequest kernel = shaders::AttentionBackwardDense::request({.call = plan_.call.defines(), .keys_side = keys});
  kernel.streaming().constant(0, plan_.threads).wide(plan_.call.wide);
  const uint64_t size = dtype_size(forward.dtype), width = plan_.d + plan_.dv;
  const uint64_t rows = keys ? plan_.dense_keys(heads_) : plan_.dense_rows(heads_);
  const Buffer dense = plan_.at(keys ? plan_.keys_at : plan_.rows_at, 0),
               numbers = plan_.at(keys ? plan_.marks_at : plan_.numbers_at, 0);
  Dispatch dispatch("attention backward dense");
  dispatch
      .operand(keys ? forward.k : forward.q, 0, (keys ? forward.k_elements() : forward.q_elements()) * size,
               Access::read)
      .operand(keys ? forward.v : args.d_o, 0, (keys ? forward.v_elements() : args.d_o_elements()) * size, Access::read)
      .operand(keys ? nullptr : forward.o, 0, forward.o_elements() * size, Access::read)
      .operand(keys ? nullptr : forward.lse, 0, forward.rows() * 4, Access::read)
      .operand(&dense, 0, rows * width * 4, Access::write)
      .operand(&numbers, 0, rows * (keys ? 4 : 8), Access::write);
  const uint64_t first = keys ? first_ : first_ * plan_.sharing;
  plan_.call.shape(dispatch)
      .push(shaders::AttentionBackwardDense::Push{.rows = static_cast<uint32_t>(rows),
                                                  .first_head = static_cast<uint32_t>(first)})
      .groups_linear(ceil_div(rows, plan_.threads), traits)
      .work(static_cast<double>(rows * width * (size + 4)), static_cast<double>(rows * width));
  plan_.call.recorder.dispatch(kernel, dispatch);
}

void Part::record_pairs(uint64_t sharer, const Block& rows, const Block& keys) const {
  const AttentionArgs& forward = plan_.forward;
  KernelRequest kernel = shaders::AttentionBackwardPairs::request(
      {.biased = plan_.bias.capped, .call = plan_.call.defines(), .slopes = plan_.slopes});
  kernel.streaming().constant(0, plan_.threads).wide(plan_.call.wide);
  const uint64_t pairs = heads_ * rows.count * keys.count, items = heads_ * rows.count * ceil_div(keys.count, 4);
  const Buffer scores = plan_.at(plan_.scores_at, 0), slopes = plan_.at(plan_.slopes_at, 0),
               numbers = plan_.at(plan_.numbers_at, 0), marks = plan_.at(plan_.marks_at, 0),
               biased = plan_.at(plan_.bias.biased_at, 0);
  Dispatch dispatch("attention backward pairs");
  dispatch.operand(&scores, 0, pairs * 4, Access::read_write)
      .operand(plan_.slopes ? &slopes : nullptr, 0, pairs * 4, Access::read_write)
      .operand(&numbers, 0, plan_.dense_rows(heads_) * 8, Access::read)
      .operand(&marks, 0, plan_.dense_keys(heads_) * 4, Access::read);
  plan_.call.shape(dispatch)
      .operand(forward.bias, 0, forward.bias_elements() * dtype_size(forward.bias_type), Access::read)
      .operand(forward.mask, 0, forward.mask_elements(), Access::read)
      .operand(forward.q_lengths, 0, forward.batch * 4, Access::read)
      .operand(forward.kv_lengths, 0, forward.batch * 4, Access::read)
      .operand(plan_.bias.capped ? &biased : nullptr, 0, pairs * 4, Access::write)
      .push(shaders::AttentionBackwardPairs::Push{.items = static_cast<uint32_t>(items),
                                                  .first_head = static_cast<uint32_t>(first_),
                                                  .sharer = static_cast<uint32_t>(sharer),
                                                  .row0 = static_cast<uint32_t>(rows.first),
                                                  .rows = static_cast<uint32_t>(rows.count),
                                                  .key0 = static_cast<uint32_t>(keys.first),
                                                  .keys = static_cast<uint32_t>(keys.count)})
      .groups_linear(ceil_div(items, plan_.threads), plan_.call.traits())
      .work(static_cast<double>(pairs * (plan_.slopes ? 16 : 8)), static_cast<double>(pairs * 16));
  plan_.call.recorder.dispatch(kernel, dispatch);
}

// A sum's heads from `first` on, of all batch elements, to where they belong.
void Part::record_store(const Sum& sum, uint64_t first, uint64_t heads) const {
  if (sum.output == nullptr || sum.in_place) return;
  const int32_t type = plan_.forward.dtype;
  KernelRequest kernel = shaders::AttentionBackwardStore::request({.type = type});
  kernel.streaming().constant(0, plan_.threads).wide(plan_.call.wide);
  const uint64_t rows = heads * sum.rows;
  const Buffer dense = plan_.at(sum.at, 0);
  Dispatch dispatch("attention backward store");
  dispatch.operand(&dense, 0, rows * sum.size * 4, Access::read)
      .operand(sum.output, 0, sum.elements * dtype_size(type), Access::write);
  const auto push = [&]<typename Index>(Index) {
    shaders::AttentionBackwardStore::Push<Index> told;
    told.batch = static_cast<Index>(sum.strides->batch);
    told.head = static_cast<Index>(sum.strides->head);
    told.row = static_cast<Index>(sum.strides->row);
    told.rows = static_cast<uint32_t>(rows);
    told.first_head = static_cast<uint32_t>(first);
    told.heads = static_cast<uint32_t>(sum.heads);
    told.seq = static_cast<uint32_t>(sum.rows);
    told.size = static_cast<uint32_t>(sum.size);
    dispatch.push(told);
  };
  plan_.call.wide ? push(uint64_t{}) : push(uint32_t{});
  dispatch.groups_linear(ceil_div(rows, plan_.threads), plan_.call.traits())
      .work(static_cast<double>(rows * sum.size * (4 + dtype_size(type))), 0);
  plan_.call.recorder.dispatch(kernel, dispatch);
}

// What kernels of attention_backward_bias.comp are told.
struct BiasDispatch {
  int64_t mode;
  int32_t type;
  const Buffer* slopes;
  uint64_t slopes_count;
  const Buffer* to;
  AttentionStrides strides;
  uint64_t to_count;
  uint64_t slots, first, units, heads, sharing, sharer, shared_axes;
  Block rows, keys;
};

void record_bias_kernel(const Plan& plan, const BiasDispatch& told) {
  const uint64_t run = plan.call.traits().cpu ? 16 : 1;
  KernelRequest kernel = shaders::AttentionBackwardBias::request(
      {.mode = told.mode, .run = static_cast<int64_t>(run), .type = told.type});
  const bool wide = plan.call.wide || needs_wide(told.to_count), reads = told.mode != 0, adds = told.mode == 2;
  kernel.streaming().constant(0, plan.threads).wide(wide);
  const uint64_t items = told.slots * told.rows.count * ceil_div(told.keys.count, run);
  Dispatch dispatch("attention backward bias");
  dispatch.operand(reads ? told.slopes : nullptr, 0, told.slopes_count * 4, Access::read)
      .operand(told.to, 0, told.to_count * dtype_size(told.type), adds ? Access::read_write : Access::write);
  const auto push = [&]<typename Index>(Index) {
    shaders::AttentionBackwardBias::Push<Index> numbers;
    numbers.batch = static_cast<Index>(told.strides.batch);
    numbers.head = static_cast<Index>(told.strides.head);
    numbers.row = static_cast<Index>(told.strides.row);
    numbers.items = narrow(items);
    numbers.first = narrow(told.first), numbers.units = narrow(told.units), numbers.heads = narrow(told.heads);
    numbers.sharing = narrow(told.sharing), numbers.sharer = narrow(told.sharer);
    numbers.shared_axes = narrow(told.shared_axes);
    numbers.row0 = narrow(told.rows.first), numbers.rows = narrow(told.rows.count);
    numbers.key0 = narrow(told.keys.first), numbers.keys = narrow(told.keys.count);
    dispatch.push(numbers);
  };
  wide ? push(uint64_t{}) : push(uint32_t{});
  dispatch.groups_linear(ceil_div(items, plan.threads), plan.call.traits())
      .work(static_cast<double>(told.slots * told.rows.count * told.keys.count * 4 + told.slopes_count * 4), static_cast<double>(told.slopes_count));
  plan.call.recorder.dispatch(kernel, dispatch);
}

// Where the gradient is added up.
struct BiasPlace {
  Buffer buffer;
  int32_t type;
  AttentionStrides strides;
  uint64_t elements;
};
BiasPlace place_of_bias(const Plan& plan) {
  const BiasSum& bias = plan.bias;
  const AttentionBackwardArgs& args = plan.call.args;
  if (bias.in_place) return {*bias.output, bias.type, args.dbias_strides, args.dbias_elements()};
  const uint64_t keys = plan.forward.seq_kv, head = bias.rows * keys;
  const auto unless = [](bool shared, uint64_t stride) { return shared ? 0 : stride; };
  return {plan.at(bias.at, 0), TUFF_F32,
          AttentionStrides{unless((bias.shared_axes & 1) != 0, bias.heads * head),
                           unless((bias.shared_axes & 2) != 0, head), unless(bias.shared_rows, keys)},
          bias.batch * bias.heads * head};
}

// All elements of the gradient, some heads at a time: zeros at first, and what sums in scratch memory round to at last.
void record_whole_bias(const Plan& plan, bool first) {
  const BiasSum& bias = plan.bias;
  if (bias.output == nullptr || (!first && bias.in_place)) return;
  const BiasPlace place = place_of_bias(plan);
  const AttentionBackwardArgs& args = plan.call.args;
  const uint64_t all = bias.batch * bias.heads, of_head = bias.rows * plan.forward.seq_kv;
  if (of_head > kMaxItems) {
    fail(TUFF_ERROR_UNSUPPORTED, "dbias has {} x {} elements for a head: at most 2^30 on a device", bias.rows,
         plan.forward.seq_kv);
  }
  const uint64_t each = std::min(all, kMaxItems / of_head);
  for (uint64_t at = 0; at < all; at += each) {
    record_bias_kernel(plan, {.mode = first ? 0 : 3,
                              .type = first ? place.type : bias.type,
                              .slopes = &place.buffer,
                              .slopes_count = first ? 0 : place.elements,
                              .to = first ? &place.buffer : bias.output,
                              .strides = first ? place.strides : args.dbias_strides,
                              .to_count = first ? place.elements : args.dbias_elements(),
                              .slots = std::min(each, all - at),
                              .first = at,
                              .units = 0,
                              .heads = bias.heads,
                              .sharing = 1,
                              .sharer = 0,
                              .shared_axes = 0,
                              .rows = {0, bias.rows},
                              .keys = {0, plan.forward.seq_kv}});
  }
}

// Adds the slopes of a block.
void Part::record_bias(uint64_t sharer, const Block& rows, const Block& keys) const {
  const BiasSum& bias = plan_.bias;
  Buffer slopes = plan_.at(bias.capped ? bias.biased_at : plan_.slopes_at, 0);
  Block of_rows = rows;
  if (bias.shared_rows) {
    const Buffer sums = plan_.at(bias.rows_at, 0);
    const uint64_t shape[] = {heads_, rows.count, keys.count};
    record_reduce(plan_.call.recorder, {.dtype = TUFF_F32,
                                        .op = TUFF_REDUCE_SUM,
                                        .input = &slopes,
                                        .output = &sums,
                                        .shape = shape,
                                        .rank = 3,
                                        .axis = 1});
    slopes = sums;
    of_rows = {0, 1};
  }
  const uint64_t kv_heads = plan_.forward.kv_heads;
  uint64_t slots = 1;
  if (bias.shared_axes == 0) slots = heads_;
  if (bias.shared_axes == 1) slots = std::min(heads_, kv_heads);
  if (bias.shared_axes == 2) slots = (first_ + heads_ - 1) / kv_heads - first_ / kv_heads + 1;
  const BiasPlace place = place_of_bias(plan_);
  record_bias_kernel(plan_, {.mode = bias.writes() ? 1 : 2,
                             .type = place.type,
                             .slopes = &slopes,
                             .slopes_count = heads_ * of_rows.count * keys.count,
                             .to = &place.buffer,
                             .strides = place.strides,
                             .to_count = place.elements,
                             .slots = slots,
                             .first = first_,
                             .units = heads_,
                             .heads = kv_heads,
                             .sharing = plan_.sharing,
                             .sharer = sharer,
                             .shared_axes = bias.shared_axes,
                             .rows = of_rows,
                             .keys = keys});
}

void Part::record() {
  const AttentionArgs& forward = plan_.forward;
  const uint64_t d = plan_.d, dv = plan_.dv, sharing = plan_.sharing;
  record_dense(false);
  record_dense(true);
  const Sum &dq = plan_.dq, &dk = plan_.dk, &of_v = plan_.dv_sum;
  const uint64_t size = plan_.block;
  const auto block_of = [&](uint64_t length, uint64_t i) { return Block{i * size, std::min(size, length - i * size)}; };
  const uint64_t row_blocks = ceil_div(forward.seq_q, size), key_blocks = ceil_div(forward.seq_kv, size);
  KeptVector<uint8_t> kept;
  kept->assign(key_blocks, 0);
  std::vector<uint8_t>& has_keys = *kept;  // whether dk and dv of the block have been begun
  for (uint64_t sharer = 0; sharer < sharing; ++sharer) {
    for (uint64_t i = 0; i < row_blocks; ++i) {
      const Block rows = block_of(forward.seq_q, i);
      const Matrix query = rows_of(false, sharer, rows), slope = rows_of(true, sharer, rows);
      bool has_rows = false;
      for (uint64_t b = 0; b < key_blocks; ++b) {
        const Block keys = block_of(forward.seq_kv, b);
        if (!sees(rows, keys)) continue;
        const Matrix key = keys_of(false, keys), value = keys_of(true, keys), weights = pairs_of(false, rows, keys),
                     slopes = pairs_of(true, rows, keys);
        multiply(query, transposed(key), weights, rows.count, keys.count, d, forward.scale, false);
        if (plan_.slopes) multiply(slope, transposed(value), slopes, rows.count, keys.count, dv, 1, false);
        record_pairs(sharer, rows, keys);
        if (plan_.bias.output != nullptr) record_bias(sharer, rows, keys);
        if (of_v.output != nullptr) {
          multiply(transposed(weights), slope, sum_of(of_v, first_, 0, 1, keys), keys.count, dv, rows.count, 1,
                   has_keys[b] != 0);
        }
        if (dk.output != nullptr) {
          multiply(transposed(slopes), query, sum_of(dk, first_, 0, 1, keys), keys.count, d, rows.count, forward.scale,
                   has_keys[b] != 0);
        }
        if (dq.output != nullptr) {
          multiply(slopes, key, sum_of(dq, first_ * sharing, sharer, sharing, rows), rows.count, d, keys.count,
                   forward.scale, has_rows);
        }
        has_rows = true;
        has_keys[b] = 1;
      }
      if (!has_rows && dq.output != nullptr) clear(sum_of(dq, first_ * sharing, sharer, sharing, rows), rows.count, d);
    }
  }
  for (uint64_t b = 0; b < key_blocks; ++b) {
    if (has_keys[b] != 0) continue;
    const Block keys = block_of(forward.seq_kv, b);
    if (dk.output != nullptr) clear(sum_of(dk, first_, 0, 1, keys), keys.count, d);
    if (of_v.output != nullptr) clear(sum_of(of_v, first_, 0, 1, keys), keys.count, dv);
  }
  record_store(dq, first_ * sharing, heads_ * sharing);
  record_store(dk, first_, heads_);
  record_store(of_v, first_, heads_);
}

}  // namespace

void record_no_pairs(const Call& call) {
  Plan plan(call);
  plan.bias.in_place = true;
  if (call.args.dbias_elements() == 0) return;
  if (dtype_size(plan.bias.type) == 2 && !call.traits().storage16) {
    fail(TUFF_ERROR_UNSUPPORTED, "bias_type is {}, and the device has no 16-bit storage", dtype_name(plan.bias.type));
  }
  record_whole_bias(plan, true);
}

bool record_products(const Call& call) {
  Plan plan(call);
  if (plan.bytes > kMaxBytes && call.args.dbias == nullptr) return false;  // no other kernel has the bias's gradient
  plan.scratch = call.recorder.scratch(plan.bytes, Scratch::outer);
  plan.scratch.bytes = plan.bytes;
  const AttentionArgs& forward = call.forward;
  const uint64_t units = forward.batch * forward.kv_heads;
  log(TUFF_LOG_DISPATCH,
      "attention_backward {} {} heads={} kv_heads={} seq_q={} seq_kv={} head_dim={} parts of {} kv_heads wide={}",
      kProducts, dtype_name(forward.dtype), forward.batch * forward.heads, units, forward.seq_q, forward.seq_kv,
      forward.head_dim, plan.heads, call.wide);
  record_whole_bias(plan, true);
  for (uint64_t first = 0; first < units; first += plan.heads) {
    Part(plan, first, std::min(plan.heads, units - first)).record();
  }
  record_whole_bias(plan, false);
  return true;
}

}  // namespace tuff::attention_backward
