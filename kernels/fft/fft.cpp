#include "kernels/fft/fft.hpp"

#include <fmt/format.h>

#include <string>

#include "kernels/common/describe.hpp"

namespace tuff {
namespace {

CallText describe(const FftArgs& args) {
  const fft::Shape shape = fft::shape_of(args);
  std::string axes;
  for (uint32_t i = 0; i < args.rank; ++i) {
    if ((shape.axes >> i & 1) != 0) axes += fmt::format("{}{}", axes.empty() ? "" : ",", i);
  }
  const char* const kind = args.kind == TUFF_FFT_REAL ? " real" : args.kind == TUFF_FFT_TO_REAL ? " to real" : "";
  return {fmt::format("{}{}{} {} axes {}", dtype_name(args.dtype), kind, args.inverse != 0 ? " inverse" : "",
                      describe_sizes(args.shape, args.rank), axes),
          args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<FftArgs> fft =
    define_operation<FftArgs, check_fft, host_fft, record_fft, describe>("fft", fft::kTypes);
}  // namespace operations

}  // namespace tuff
