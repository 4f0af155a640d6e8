// Padding by copies, for CPU devices, where computing a place costs more than moving an element. The input is copied
// into the output; then each padded axis, innermost first, has its two borders copied from elements between them that
// the output has by then. An element outside along several axes is therefore copied several times, once for each of
// them.
#include <array>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/memory/memory.hpp"
#include "kernels/shape/pad.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/shape/strided_copy.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"

namespace tuff {
namespace {

// Sizes and strides of both operands, in elements.
struct Shapes {
  std::array<uint64_t, 8> output{};
  std::array<int64_t, 8> input_strides{}, output_strides{};
};

Shapes shapes_of(const PadArgs& args, const std::array<uint64_t, 8>& shape) {
  Shapes result{shape, {}, {}};
  int64_t input = 1, output = 1;
  for (uint32_t d = args.rank; d-- > 0;) {
    result.input_strides[d] = input, result.output_strides[d] = output;
    input *= static_cast<int64_t>(args.shape[d]);
    output *= static_cast<int64_t>(shape[d]);
  }
  return result;
}

// The element of an axis that the first element of a border stands for, and how far on each next one goes.
struct Source {
  int64_t first, step;
};

Source source_of(int32_t mode, int64_t n, int64_t before, bool at_end) {
  switch (mode) {
    case TUFF_PAD_EDGE: return {at_end ? n - 1 : 0, 0};
    case TUFF_PAD_REFLECT: return {at_end ? n - 2 : before, -1};
    case TUFF_PAD_SYMMETRIC: return {at_end ? n - 1 : before - 1, -1};
    default: return {at_end ? 0 : n - before, 1};
  }
}

// Copies one border along axis d. The constant is the first element of `constant`, if there is one. Further out, the
// copy reaches as far as the input; further in, as far as the output, whose borders there exist already.
StridedCopy copy_of_border(const PadArgs& args, const Shapes& shapes, const Buffer* constant, uint32_t d, bool at_end) {
  bool within_input = true;
  for (uint32_t inner = d + 1; inner < args.rank; ++inner) {
    within_input = within_input && args.before[inner] == 0 && args.after[inner] == 0;
  }
  const std::array<int64_t, 8>& strides = within_input ? shapes.input_strides : shapes.output_strides;
  const auto n = static_cast<int64_t>(args.shape[d]);
  const Source source = source_of(args.mode, n, args.before[d], at_end);
  int64_t input = source.first * strides[d], output = at_end ? (args.before[d] + n) * shapes.output_strides[d] : 0;
  StridedCopy copy{"pad", dtype_size(args.dtype), within_input ? args.input : args.output, args.output, 0, 0, {}};
  for (uint32_t e = 0; e < args.rank; ++e) {
    if (!within_input && e <= d) input += args.before[e] * strides[e];
    if (e < d) output += args.before[e] * shapes.output_strides[e];
    const int64_t step = e == d ? source.step : 1;
    const auto border = static_cast<uint64_t>(at_end ? args.after[d] : args.before[d]);
    const uint64_t size = e < d ? args.shape[e] : e == d ? border : shapes.output[e];
    copy.axes.append(size, {constant != nullptr ? 0 : step * strides[e], shapes.output_strides[e]});
  }
  copy.input_first = static_cast<uint64_t>(input), copy.output_first = static_cast<uint64_t>(output);
  if (constant != nullptr) copy.input = constant, copy.input_first = 0;
  return copy;
}

// Calls `use` with each copy, in an order in which each finds what it reads.
template <typename Use>
void for_each_copy(const PadArgs& args, const Shapes& shapes, const Buffer* constant, const Use& use) {
  use(copy_of_padded(args, shapes.output));
  for (uint32_t d = args.rank; d-- > 0;) {
    if (args.before[d] > 0) use(copy_of_border(args, shapes, constant, d, false));
    if (args.after[d] > 0) use(copy_of_border(args, shapes, constant, d, true));
  }
}

// Whether each border stands for elements of the input in one run, and nothing is removed. Constants are copied one by
// one, so that long borders of them are left to a fill.
bool is_made_of_copies(const PadArgs& args, uint64_t elements) {
  const uint64_t inputs = checked_product({args.shape, args.rank}, "shape");
  if (args.mode == TUFF_PAD_CONSTANT && inputs < elements / 8 * 7) return false;
  const bool limited = args.mode != TUFF_PAD_EDGE && args.mode != TUFF_PAD_CONSTANT;
  for (uint32_t d = 0; d < args.rank; ++d) {
    if (args.shape[d] == 0) return false;
    const uint64_t most = args.mode == TUFF_PAD_REFLECT ? args.shape[d] - 1 : args.shape[d];
    for (const int64_t border : {args.before[d], args.after[d]}) {
      if (border < 0) return false;
      if (limited && static_cast<uint64_t>(border) > most) return false;
    }
  }
  return true;
}

}  // namespace

bool record_pad_copies(Recorder& recorder, const PadArgs& args, const std::array<uint64_t, 8>& shape) {
  constexpr uint64_t kLeast = 1u << 14;  // elements for which several dispatches cost less than computed places
  const StreamDevice device = stream_device(recorder.traits(), forced_variant<"TUFF_SHAPE_VARIANT">(), sizeof(float));
  const uint64_t elements = checked_product({shape.data(), args.rank}, "shape");
  if (!device.cpu || elements < kLeast || dtype_size(args.dtype) > 8) return false;
  if (!is_made_of_copies(args, elements)) return false;
  const Shapes shapes = shapes_of(args, shape);
  const std::array<uint32_t, 4> pattern = pad_pattern(args);
  Buffer memory{};
  const Buffer* constant = nullptr;
  if (args.mode == TUFF_PAD_CONSTANT) {
    memory = recorder.scratch(sizeof pattern);
    constant = &memory;
  }
  for_each_copy(args, shapes, constant, [&](const StridedCopy& copy) { check_strided_copy(recorder, copy); });
  log(TUFF_LOG_DISPATCH, "pad n={}: copies of the input and of borders, {} lanes", elements, device.workgroup);
  if (constant != nullptr) record_fill(recorder, memory, 0, sizeof pattern, pattern);
  for_each_copy(args, shapes, constant, [&](const StridedCopy& copy) { record_strided_copy(recorder, copy); });
  return true;
}

}  // namespace tuff
