#include "planners/reach.hpp"

#include <algorithm>
#include <string_view>

#include "planners/reached.hpp"

namespace tuff_test {

std::string wrong_reach(const tuff::KernelRequest& kernel, const tuff::Dispatch& dispatch,
                        std::span<const std::byte> parameters, const tuff::DeviceTraits& device) {
  const std::string_view name = kernel.source().name;
  for (const auto& kernels :
       {reach::attention_kernels(), reach::gemm_kernels(), reach::item_kernels(), reach::linalg_kernels(),
        reach::native_kernels(), reach::row_kernels(), reach::sparse_kernels(), reach::streaming_kernels()}) {
    const auto row = std::find_if(kernels.begin(), kernels.end(), [&](const auto& one) { return one.name == name; });
    if (row == kernels.end()) continue;
    reach::Reached reached(kernel, dispatch, parameters, device);
    row->check(reached);
    return reached.wrong;
  }
  return {};
}

}  // namespace tuff_test
