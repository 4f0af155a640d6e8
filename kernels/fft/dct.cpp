// Cosine and sine transforms: argument checks and what profiles show.
#include "kernels/fft/dct.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"

namespace tuff {
namespace {

CallText describe(const DctArgs& args) {
  static constexpr const char* kNumbers[] = {"I", "II", "III", "IV"};
  const dct::Shape shape = dct::shape_of(args);
  return {fmt::format("{} {}-{}{} {} axes {}", dtype_name(args.dtype), dct::is_sine(args.kind) ? "DST" : "DCT",
                      kNumbers[dct::number_of(args.kind) - 1], args.orthogonal != 0 ? " orthogonal" : "",
                      describe_sizes(args.shape, args.rank), fft::describe_axes(shape.axes, args.rank)),
          args.dtype};
}

}  // namespace

dct::Shape dct::shape_of(const DctArgs& args) {
  Shape shape{};
  shape.axes = fft::axes_of(args.axes, args.rank);
  require(args.kind >= TUFF_DCT_1 && args.kind <= TUFF_DST_4, "kind is {}, needs a TUFF_DCT_* or TUFF_DST_*",
          args.kind);
  require_flag(args.orthogonal, "orthogonal");
  const uint64_t least = args.kind == TUFF_DCT_1 ? 2 : 1;
  double all = 1;  // N of all axes together
  for (uint32_t i = 0; i < args.rank; ++i) {
    if ((shape.axes >> i & 1) == 0) continue;
    require(args.shape[i] >= least, "shape[{}] is {}, and a transformed axis needs at least {}", i, args.shape[i],
            least);
    all *= 2 * static_cast<double>(args.shape[i]) + (args.kind == TUFF_DCT_1 ? -2 : args.kind == TUFF_DST_1 ? 2 : 0);
  }
  shape.scale = fft::scale_of(args.norm, all);
  const auto fill = [&](fft::Operand& operand, const uint64_t* strides, const char* name) {
    std::copy_n(args.shape, args.rank, operand.sizes.begin());
    operand.elements = 1;
    fft::set_strides(operand, strides, args.rank, name);
  };
  fill(shape.input, args.input_strides, "input_strides");
  fill(shape.output, args.output_strides, "output_strides");
  if (shape.output.span != 0) fft::require_distinct(shape.output, args.rank);
  return shape;
}

void check_dct(const DctArgs& args) {
  check_type(args.dtype, fft::kTypes, "dct");
  const dct::Shape shape = dct::shape_of(args);
  uint64_t together = 1;
  for (uint32_t i = 0; i < args.rank; ++i) {
    if ((shape.axes >> i & 1) == 0) continue;
    const uint64_t n = args.shape[i];
    if (dct::number_of(args.kind) == 1 && n >= dct::kMaxMirrored) {
      fail(TUFF_ERROR_UNSUPPORTED, "shape[{}] is {}, and kind 1 transforms fewer than 2^27 numbers along an axis", i,
           n);
    }
    together = n > dct::kMaxNumbers ? n : together * n;
    if (together > dct::kMaxNumbers) {
      fail(TUFF_ERROR_UNSUPPORTED, "the transformed axes have {} numbers together or more, at most 2^28 are possible",
           together);
    }
  }
  fft::check_operands({args.input, args.output, shape.input, shape.output, args.rank, args.dtype}, true);
}

namespace operations {
const OperationOf<DctArgs> dct =
    define_operation<DctArgs, check_dct, host_dct, record_dct, describe>("dct", fft::kTypes);
}  // namespace operations

}  // namespace tuff
