// Slice and concat: argument checks, and their strided copies.
#include <array>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/shape/strided_copy.hpp"

namespace tuff {
namespace {

uint64_t count_of(const SliceArgs& args) { return checked_product({args.out_shape, args.rank}, "out_shape"); }

StridedCopy copy_of(const SliceArgs& args) {
  std::array<int64_t, 8> input{}, output{};
  int64_t inner = 1, outer = 1;
  StridedCopy copy{"slice", dtype_size(args.dtype), args.input, args.output, 0, 0, {}};
  for (uint32_t i = args.rank; i-- > 0;) {
    input[i] = args.out_shape[i] > 1 ? inner * args.step[i] : 0;  // with one element the step is unused, of any size
    output[i] = outer;
    copy.input_first += args.start[i] * static_cast<uint64_t>(inner);
    inner *= static_cast<int64_t>(args.shape[i]);
    outer *= static_cast<int64_t>(args.out_shape[i]);
  }
  for (uint32_t i = 0; i < args.rank; ++i) copy.axes.append(args.out_shape[i], {input[i], output[i]});
  return copy;
}

// Calls body with the copy of each non-empty input.
template <typename Body>
void for_each_input(const ConcatArgs& args, const Body& body) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  if (view.outer == 0 || view.inner == 0) return;
  uint64_t first = 0;
  for (size_t i = 0; i < args.inputs.size(); first += args.sizes[i++] * view.inner) {
    if (args.sizes[i] == 0) continue;
    const auto part = static_cast<int64_t>(args.sizes[i] * view.inner);
    StridedCopy copy{"concat", dtype_size(args.dtype), args.inputs[i], args.output, 0, first, {}};
    copy.axes.append(view.outer, {part, static_cast<int64_t>(view.axis * view.inner)});
    copy.axes.append(args.sizes[i] * view.inner, {1, 1});
    body(copy);
  }
}

}  // namespace

void check_slice(const SliceArgs& args) {
  dtype_size(args.dtype);
  require(args.rank >= 1 && args.rank <= 8, "rank is {}, needs 1 to 8", args.rank);
  const uint64_t inputs = checked_product({args.shape, args.rank}, "shape"), outputs = count_of(args);
  for (uint32_t i = 0; i < args.rank; ++i) {
    require(args.step[i] != 0, "step[{}] is 0", i);
    if (args.out_shape[i] == 0) continue;
    require(args.start[i] < args.shape[i], "start[{}] is {}, needs to be below shape[{}]={}", i, args.start[i], i,
            args.shape[i]);
    // How many steps fit between the first element and the end of the axis.
    const uint64_t ahead = args.step[i] > 0 ? args.shape[i] - 1 - args.start[i] : args.start[i];
    const uint64_t step =
        args.step[i] > 0 ? static_cast<uint64_t>(args.step[i]) : 0 - static_cast<uint64_t>(args.step[i]);
    require(args.out_shape[i] - 1 <= ahead / step,
            "out_shape[{0}] is {1}: from start[{0}]={2} with step[{0}]={3} shape[{0}]={4} gives at most {5}", i,
            args.out_shape[i], args.start[i], args.step[i], args.shape[i], ahead / step + 1);
  }
  if (outputs == 0) return;
  const auto detail = [&] { return fmt::format("{} elements of {}", outputs, inputs); };
  const uint64_t size = dtype_size(args.dtype);
  check_operand(args.input, "input", inputs, args.dtype, detail);
  check_operand(args.output, "output", outputs, args.dtype, detail);
  check_overlap(args.output, "output", outputs * size, args.input, "input", inputs * size, false);
}

void host_slice(const SliceArgs& args) {
  if (count_of(args) != 0) host_strided_copy(copy_of(args));
}

void record_slice(Recorder& recorder, const SliceArgs& args) {
  if (count_of(args) != 0) record_strided_copy(recorder, copy_of(args));
}

void check_concat(const ConcatArgs& args) {
  const uint64_t size = dtype_size(args.dtype);
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  uint64_t sum = 0;
  for (size_t i = 0; i < args.inputs.size(); ++i) sum = checked_add(sum, args.sizes[i], "sizes");
  require(sum == view.axis, "sizes are {} together, and shape[{}] is {}", sum, args.axis, view.axis);
  const uint64_t count = checked_product({args.shape, args.rank}, "shape"), others = view.outer * view.inner;
  if (count == 0) return;
  const auto detail = [&] { return fmt::format("{} elements along the axis, {} across", view.axis, others); };
  const uint64_t bytes = checked_mul(count, size, "shape");
  check_operand(args.output, "output", count, args.dtype, detail);
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const std::string name = fmt::format("inputs[{}]", i);
    check_operand(args.inputs[i], name, args.sizes[i] * others, args.dtype, detail);
    check_overlap(args.output, "output", bytes, args.inputs[i], name, args.sizes[i] * others * size, false);
  }
}

void host_concat(const ConcatArgs& args) {
  for_each_input(args, [](const StridedCopy& copy) { host_strided_copy(copy); });
}

void record_concat(Recorder& recorder, const ConcatArgs& args) {
  if (record_concat_at_once(recorder, args)) return;
  for_each_input(args, [&](const StridedCopy& copy) { check_strided_copy(recorder, copy); });
  for_each_input(args, [&](const StridedCopy& copy) { record_strided_copy(recorder, copy); });
}

}  // namespace tuff
