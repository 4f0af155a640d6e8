// Plans the gradient of attention by the bias from slopes in f32, which other kernels have computed.
#include <algorithm>

#include "kernels/attention/attention_backward_plan.hpp"
#include "kernels/common/check.hpp"
#include "kernels/common/workgroup.hpp"
#include "kernels/reduce/reduce.hpp"
#include "planning/status.hpp"
#include "shaders/attention_backward_bias.hpp"

namespace tuff::attention_backward {
namespace {

constexpr uint64_t kMaxItems = uint64_t{1} << 30;  // so that they count in 32 bits

enum Mode : int64_t { zero, write, add, round };  // of attention_backward_bias.comp

}  // namespace

// What a kernel is told.
struct BiasGradient::Kernel {
  Mode mode;
  int32_t type;
  const Buffer* slopes;
  uint64_t slopes_count;
  const Buffer* to;
  AttentionStrides strides;
  uint64_t to_count;
  uint64_t slots, first, units, heads, sharing, sharer, shared_axes;
  Block rows, keys;
};

// Where the gradient is added up.
struct BiasGradient::Place {
  Buffer buffer;
  int32_t type;
  AttentionStrides strides;
  uint64_t elements;
};

uint32_t streaming_threads(const DeviceTraits& traits) {
  return traits.cpu ? std::max(traits.subgroup_size, 1u) : std::min(256u, max_along_x(traits));
}

BiasGradient::BiasGradient(const Call& call)
    : capped(call.args.dbias != nullptr && call.forward.softcap != 0),
      call_(call),
      type_(call.forward.bias_type),
      shared_axes_((call.forward.bias_strides.batch == 0 ? 1 : 0) + (call.forward.bias_strides.head == 0 ? 2 : 0)),
      shared_rows_(call.forward.bias_strides.row == 0),
      in_place_(writes() || type_ == TUFF_F32) {
  if (!wanted()) return;
  batch_ = call.args.bias_batch(), heads_ = call.args.bias_heads(), rows_ = call.args.bias_rows();
}

uint64_t BiasGradient::sum_bytes() const {
  return wanted() && !in_place_ ? batch_ * heads_ * rows_ * call_.forward.seq_kv * 4 : 0;
}

void BiasGradient::place(ScratchLayout& layout, uint64_t heads, uint64_t keys) {
  if (!wanted()) return;
  if (!in_place_) at_ = layout.add(sum_bytes());
  if (shared_rows_) rows_at_ = layout.add(heads * keys * 4);
}

void BiasGradient::record(const Kernel& told) const {
  const uint64_t run = call_.traits().cpu ? 16 : 1;
  const uint32_t threads = streaming_threads(call_.traits());
  KernelRequest kernel =
      shaders::AttentionBackwardBias::request({.mode = told.mode, .run = static_cast<int64_t>(run), .type = told.type});
  const bool wide = call_.wide || needs_wide(told.to_count), reads = told.mode != zero, adds = told.mode == add;
  kernel.streaming().constant(0, threads).wide(wide);
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
  dispatch.groups_linear(ceil_div(items, threads), call_.traits())
      .work(static_cast<double>(told.slots * told.rows.count * told.keys.count * 4 + told.slopes_count * 4),
            static_cast<double>(told.slopes_count));
  call_.recorder.dispatch(kernel, dispatch);
}

BiasGradient::Place BiasGradient::place_of(const Buffer& scratch, bool in_place) const {
  const AttentionBackwardArgs& args = call_.args;
  if (in_place) return {*args.dbias, type_, args.dbias_strides, args.dbias_elements()};
  const uint64_t keys = call_.forward.seq_kv, head = rows_ * keys, elements = batch_ * heads_ * head;
  const auto unless = [](bool shared, uint64_t stride) { return shared ? 0 : stride; };
  return {part_of(scratch, at_, elements * 4), TUFF_F32,
          AttentionStrides{unless((shared_axes_ & 1) != 0, heads_ * head), unless((shared_axes_ & 2) != 0, head),
                           unless(shared_rows_, keys)},
          elements};
}

// All elements of the gradient, some heads at a time: zeros, or what sums in scratch memory round to.
void BiasGradient::record_all(const Buffer& scratch, bool zeros, bool in_place) const {
  const Place place = place_of(scratch, in_place);
  const AttentionBackwardArgs& args = call_.args;
  const uint64_t keys = call_.forward.seq_kv, all = batch_ * heads_, of_head = rows_ * keys;
  if (of_head > kMaxItems) {
    fail(TUFF_ERROR_UNSUPPORTED, "dbias has {} x {} elements for a head: at most 2^30 on a device", rows_, keys);
  }
  const uint64_t each = std::min(all, kMaxItems / of_head);
  for (uint64_t first = 0; first < all; first += each) {
    record({.mode = zeros ? zero : round,
            .type = zeros ? place.type : type_,
            .slopes = &place.buffer,
            .slopes_count = zeros ? 0 : place.elements,
            .to = zeros ? &place.buffer : args.dbias,
            .strides = zeros ? place.strides : args.dbias_strides,
            .to_count = zeros ? place.elements : args.dbias_elements(),
            .slots = std::min(each, all - first),
            .first = first,
            .units = 0,
            .heads = heads_,
            .sharing = 1,
            .sharer = 0,
            .shared_axes = 0,
            .rows = {0, rows_},
            .keys = {0, keys}});
  }
}

void BiasGradient::record_begin(const Buffer& scratch) const {
  if (wanted()) record_all(scratch, true, in_place_);
}

void BiasGradient::record_end(const Buffer& scratch) const {
  if (wanted() && !in_place_) record_all(scratch, false, false);
}

void BiasGradient::record_no_pairs() const {
  if (!wanted() || call_.args.dbias_elements() == 0) return;
  if (dtype_size(type_) == 2 && !call_.traits().storage16) {
    fail(TUFF_ERROR_UNSUPPORTED, "bias_type is {}, and the device has no 16-bit storage", dtype_name(type_));
  }
  record_all({}, true, true);
}

void BiasGradient::record_add(const Buffer& scratch, const Slopes& of) const {
  Buffer slopes = *of.values;
  Block rows = of.rows;
  if (shared_rows_) {
    const Buffer sums = part_of(scratch, rows_at_, of.units * of.keys.count * 4);
    const uint64_t shape[] = {of.units, of.rows.count, of.keys.count};
    record_reduce(call_.recorder, {.dtype = TUFF_F32,
                                   .op = TUFF_REDUCE_SUM,
                                   .input = &slopes,
                                   .output = &sums,
                                   .shape = shape,
                                   .rank = 3,
                                   .axis = 1});
    slopes = sums;
    rows = {0, 1};
  }
  uint64_t slots = 1;
  if (shared_axes_ == 0) slots = of.units;
  if (shared_axes_ == 1) slots = std::min(of.units, of.heads);
  if (shared_axes_ == 2) slots = (of.first + of.units - 1) / of.heads - of.first / of.heads + 1;
  const Place place = place_of(scratch, in_place_);
  record({.mode = writes() ? write : add,
          .type = place.type,
          .slopes = &slopes,
          .slopes_count = of.units * rows.count * of.keys.count,
          .to = &place.buffer,
          .strides = place.strides,
          .to_count = place.elements,
          .slots = slots,
          .first = of.first,
          .units = of.units,
          .heads = of.heads,
          .sharing = of.sharing,
          .sharer = of.sharer,
          .shared_axes = shared_axes_,
          .rows = rows,
          .keys = of.keys});
}

}  // namespace tuff::attention_backward
