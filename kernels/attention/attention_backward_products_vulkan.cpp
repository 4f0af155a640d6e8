// The gradients of attention by products of matrices: GEMM kernels multiply several times as fast as tiles in shared
// memory, on CPU devices and from some length on.
//
// The call is cut into parts of some heads of k and v, with the heads of q that share them, and each part's rows and
// keys into blocks. The operands of a part are copied to dense f32 rows. Then for each block of rows and of keys two
// products make its scores and what the slopes are made of, a kernel turns these into weights and slopes of pairs, and
// further products add them to dv, dk and dq. So only one block of pairs is in memory at a time. Blocks that nothing
// sees are left out.
//
// The gradient by the bias is made of each block's slopes (attention_backward_bias_vulkan.cpp).
#include <algorithm>
#include <vector>

#include "kernels/attention/attention_backward_plan.hpp"
#include "kernels/common/check.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "kernels/gemm/gemm.hpp"
#include "planning/kept_vector.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"
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

// So that loops over the heads of a part are within those of a CPU driver.
constexpr uint64_t kMaxHeadsOfBias = 1 << 15;

// Rows of a matrix in f32, and how far the next matrix of the batch is.
struct Matrix {
  Buffer buffer;
  uint64_t ld, stride;
  bool transposed = false;
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
  BiasGradient bias;
  Buffer scratch;
  uint64_t heads = 0, bytes = 0;  // of a part
  // In scratch memory, in bytes: q and d_o, k and v; numbers of rows, marks of keys; pairs.
  uint64_t rows_at = 0, keys_at = 0, numbers_at = 0, marks_at = 0, scores_at = 0, slopes_at = 0;
  uint64_t biased_at = 0;  // slopes without the cap's, with bias.capped

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
      threads(streaming_threads(on.traits())),
      slopes(on.args.dq != nullptr || on.args.dk != nullptr || on.args.dbias != nullptr),
      bias(on) {
  const AttentionBackwardArgs& args = on.args;
  const auto sum = [&](const Buffer* output, const AttentionStrides& strides, uint64_t elements, uint64_t of_heads,
                       uint64_t rows, uint64_t size) {
    const bool dense = strides.row == size && strides.head == rows * size && strides.batch == of_heads * strides.head;
    return Sum{output, &strides, elements, of_heads, rows, size, forward.dtype == TUFF_F32 && dense};
  };
  dq = sum(args.dq, args.dq_strides, args.dq_elements(), forward.heads, forward.seq_q, d);
  dk = sum(args.dk, args.dk_strides, args.dk_elements(), forward.kv_heads, forward.seq_kv, d);
  dv_sum = sum(args.dv, args.dv_strides, args.dv_elements(), forward.kv_heads, forward.seq_kv, dv);
  const uint64_t units = std::max<uint64_t>(forward.batch * forward.kv_heads, 1);
  place(1);
  const uint64_t most = bias.wanted() ? std::min(units, kMaxHeadsOfBias) : units;
  const uint64_t of_head = bytes - bias.sum_bytes();
  place(std::clamp<uint64_t>((on.traits().cpu ? kPartBytesCpu : kPartBytesGpu) / of_head, 1, most));
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
  bias.place(layout, heads, std::min(block, forward.seq_kv));
  if (bias.capped) biased_at = layout.add(pairs * 4);
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
               biased = plan_.at(plan_.biased_at, 0);
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

void Part::record_bias(uint64_t sharer, const Block& rows, const Block& keys) const {
  const Buffer slopes = plan_.at(plan_.bias.capped ? plan_.biased_at : plan_.slopes_at, 0);
  plan_.bias.record_add(plan_.scratch, {.values = &slopes,
                                        .first = first_,
                                        .units = heads_,
                                        .heads = plan_.forward.kv_heads,
                                        .sharing = plan_.sharing,
                                        .sharer = sharer,
                                        .rows = rows,
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
        if (plan_.bias.wanted()) record_bias(sharer, rows, keys);
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
  plan.bias.record_begin(plan.scratch);
  for (uint64_t first = 0; first < units; first += plan.heads) {
    Part(plan, first, std::min(plan.heads, units - first)).record();
  }
  plan.bias.record_end(plan.scratch);
  return true;
}

}  // namespace tuff::attention_backward
