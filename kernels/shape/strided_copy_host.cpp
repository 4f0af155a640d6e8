// Copies one element after another, each from its coordinates.
#include <cstring>

#include "kernels/shape/strided_copy.hpp"

namespace tuff {

void host_strided_copy(const StridedCopy& copy) {
  const auto* input = copy.input->host<std::byte>();
  auto* output = copy.output->host<std::byte>();
  const StridedAxes<2>& axes = copy.axes;
  const uint64_t count = axes.count();
  for (uint64_t i = 0; i < count; ++i) {
    int64_t from = static_cast<int64_t>(copy.input_first), to = static_cast<int64_t>(copy.output_first);
    uint64_t rest = i;
    for (uint32_t d = axes.rank; d-- > 0; rest /= axes.sizes[d]) {
      const auto coordinate = static_cast<int64_t>(rest % axes.sizes[d]);
      from += coordinate * axes.strides[d][0];
      to += coordinate * axes.strides[d][1];
    }
    const auto size = static_cast<int64_t>(copy.element);
    std::memcpy(output + to * size, input + from * size, copy.element);
  }
}

}  // namespace tuff
