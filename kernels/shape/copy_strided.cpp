// Copies between operands with strides: argument check, and the strided copy.
#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "kernels/common/sort_few.hpp"
#include "kernels/common/strided_elements.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/shape/strided_copy.hpp"

namespace tuff {
namespace {

uint64_t count_of(const CopyStridedArgs& args) { return checked_product({args.shape, args.rank}, "shape"); }

struct Axis {
  uint64_t size;
  int64_t input, output;
};

// The axes in an order in which one operand is dense, if there is one: elements may be copied in any order.
StridedCopy copy_of(const CopyStridedArgs& args) {
  StridedCopy copy{"copy_strided",   dtype_size(args.dtype), args.input, args.output,
                   args.input_first, args.output_first,      {}};
  std::array<Axis, 8> axes{};
  size_t count = 0;
  for (uint32_t d = 0; d < args.rank; ++d) {
    if (args.shape[d] == 1) continue;
    Axis axis{args.shape[d], args.input_strides[d], args.output_strides[d]};
    // The output goes forwards, from the axis' other end if need be.
    if (axis.output < 0) {
      const auto last = static_cast<int64_t>(axis.size - 1);
      copy.input_first += static_cast<uint64_t>(last * axis.input);
      copy.output_first += static_cast<uint64_t>(last * axis.output);
      axis.input = -axis.input, axis.output = -axis.output;
    }
    axes[count++] = axis;
  }
  const std::span used(axes.data(), count);
  const auto ordered = [&](auto key) {
    sort_few(used, [&](const Axis& a, const Axis& b) { return key(a) > key(b); });
    copy.axes = {};
    for (const Axis& axis : used) copy.axes.append(axis.size, {axis.input, axis.output});
  };
  ordered([](const Axis& axis) { return axis.output; });
  if (copy.axes.dense(1)) return copy;
  ordered([](const Axis& axis) { return std::abs(axis.input); });
  if (copy.axes.dense(0)) return copy;
  ordered([](const Axis& axis) { return axis.output; });
  return copy;
}

}  // namespace

void check_copy_strided(const CopyStridedArgs& args) {
  dtype_size(args.dtype);
  require(args.rank <= 8, "rank is {}, needs 0 to 8", args.rank);
  const uint64_t count = count_of(args);
  require(count <= uint64_t{1} << 60, "shape has {} elements, at most 2^60", count);
  if (count == 0) return;
  const std::span<const uint64_t> shape(args.shape, args.rank);
  const auto elements = [&](const Buffer* buffer, uint64_t first, const int64_t* strides, const char* name) {
    if (buffer == nullptr) fail(TUFF_ERROR_INVALID_HANDLE, "{} is TUFF_NULL_HANDLE, needs {} elements", name, count);
    return strided_elements(*buffer, first, {strides, args.rank}, shape, args.dtype, [name] { return name; });
  };
  const StridedElements input = elements(args.input, args.input_first, args.input_strides, "input"),
                        output = elements(args.output, args.output_first, args.output_strides, "output");
  if (const std::optional<uint32_t> axis = repeated_axis(output, shape)) {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "output_strides[{}] is {}, and the output overlaps itself", *axis,
         args.output_strides[*axis]);
  }
  if (may_overlap(output, input)) {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "output overlaps input (bytes {}..{} and {}..{} of one allocation)", output.begin,
         output.end, input.begin, input.end);
  }
}

void host_copy_strided(const CopyStridedArgs& args) {
  if (count_of(args) != 0) host_strided_copy(copy_of(args));
}

void record_copy_strided(Recorder& recorder, const CopyStridedArgs& args) {
  if (count_of(args) != 0) record_strided_copy(recorder, copy_of(args));
}

}  // namespace tuff
