#include "kernels/fft/fft.hpp"

#include <fmt/format.h>

#include <string>

#include "kernels/common/describe.hpp"

namespace tuff {
namespace {

CallText describe(const FftArgs& args) {
  const fft::Shape shape = fft::shape_of(args);
  const char* const kind = args.kind == TUFF_FFT_REAL ? " real" : args.kind == TUFF_FFT_TO_REAL ? " to real" : "";
  return {fmt::format("{}{}{} {} axes {}", dtype_name(args.dtype), kind, args.inverse != 0 ? " inverse" : "",
                      describe_sizes(args.shape, args.rank), fft::describe_axes(shape.axes, args.rank)),
          args.dtype};
}

}  // namespace

std::string fft::describe_axes(uint32_t axes, uint32_t rank) {
  std::string text;
  for (uint32_t i = 0; i < rank; ++i) {
    if ((axes >> i & 1) != 0) text += fmt::format("{}{}", text.empty() ? "" : ",", i);
  }
  return text;
}

namespace operations {
const OperationOf<FftArgs> fft =
    define_operation<FftArgs, check_fft, host_fft, record_fft, describe>("fft", fft::kTypes);
}  // namespace operations

}  // namespace tuff
