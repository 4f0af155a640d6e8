#include <cmath>
#include <numeric>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/resize/resize.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxSize = (uint64_t{1} << 29) - 1;  // of one axis, so that twice as much fits in 30 bits
constexpr double kMaxReach = 1 << 30;                   // bound on the last output's position in the input

struct Fraction {
  uint64_t top, bottom;
};

// The fraction that a decimal number such as 1.5 or 0.3 stands for: the first convergent of its continued fraction that
// equals it up to rounding, or the last with terms below 2^29.
Fraction fraction_of(double value) {
  uint64_t top = 1, bottom = 0, earlier_top = 0, earlier_bottom = 1;
  for (double rest = value;;) {
    const double whole = std::floor(rest);
    if (whole > static_cast<double>(kMaxSize)) break;
    const auto times = static_cast<uint64_t>(whole);
    const uint64_t next_top = times * top + earlier_top, next_bottom = times * bottom + earlier_bottom;
    if (next_top > kMaxSize || next_bottom > kMaxSize) break;
    earlier_top = top, earlier_bottom = bottom, top = next_top, bottom = next_bottom;
    const double got = static_cast<double>(top) / static_cast<double>(bottom);
    if (std::fabs(got - value) <= value * 0x1p-50 || rest == whole) break;
    rest = 1 / (rest - whole);
  }
  return {top, bottom};
}

ResizeAxis axis_of(const ResizeArgs& args, uint32_t i, bool centres) {
  const uint64_t in = args.in_shape[i], out = args.out_shape[i];
  Fraction step{in, out};  // input elements per output element
  if (args.align_corners != 0) {
    step = out > 1 ? Fraction{in - 1, out - 1} : Fraction{0, 1};
  } else if (args.scale[i] != 0) {
    const Fraction scale = fraction_of(args.scale[i]);
    step = {scale.bottom, scale.top};
  }
  const uint64_t common = std::gcd(step.top, step.bottom);
  const uint64_t top = step.top / common, bottom = step.bottom / common;
  return {in, out, top, centres ? 2 * bottom : bottom, in == out && (in == 1 || top == bottom)};
}

}  // namespace

ResizeShape resize_shape(const ResizeArgs& args) {
  const bool last = args.layout == TUFF_LAYOUT_NHWC;
  ResizeShape shape{};
  shape.planes = last ? args.batch : args.batch * args.channels;
  shape.inner = last ? args.channels : 1;
  shape.linear = args.mode == TUFF_RESIZE_LINEAR;
  shape.centres = args.mode != TUFF_RESIZE_NEAREST && args.align_corners == 0;
  shape.halves = shape.linear && shape.centres;
  uint32_t begin = 0, end = args.spatial;
  const auto axis = [&](uint32_t i) { return axis_of(args, i, shape.centres); };
  while (begin < end && axis(begin).identity) shape.planes *= args.in_shape[begin++];
  while (end > begin && axis(end - 1).identity) shape.inner *= args.in_shape[--end];
  shape.rank = end - begin;
  shape.axes.fill({1, 1, 0, 1, true});
  for (uint32_t i = begin; i < end; ++i) shape.axes[3 - (end - i)] = axis(i);
  return shape;
}

void check_resize(const ResizeArgs& args) {
  check_float_type(args.dtype);
  require(args.mode >= TUFF_RESIZE_NEAREST && args.mode <= TUFF_RESIZE_LINEAR, "mode is {}, not a TUFF_RESIZE_*",
          args.mode);
  require(args.layout == TUFF_LAYOUT_NCHW || args.layout == TUFF_LAYOUT_NHWC, "layout is {}, not a TUFF_LAYOUT_*",
          args.layout);
  require_flag(args.align_corners, "align_corners");
  require(args.align_corners == 0 || args.mode == TUFF_RESIZE_LINEAR,
          "align_corners is set, and mode is {}, not TUFF_RESIZE_LINEAR", args.mode);
  require(args.spatial >= 1 && args.spatial <= 3, "spatial is {}, needs 1 to 3", args.spatial);
  for (uint32_t i = 0; i < args.spatial; ++i) {
    const uint64_t in = args.in_shape[i], out = args.out_shape[i];
    require(in > 0 && in <= kMaxSize, "in_shape[{}] is {}, needs 1 to {}", i, in, kMaxSize);
    require(out > 0 && out <= kMaxSize, "out_shape[{}] is {}, needs 1 to {}", i, out, kMaxSize);
    const double scale = args.scale[i];
    require(scale == 0 || (scale > 0 && std::isfinite(scale)), "scale[{}] is {}, needs a positive number, or 0", i,
            scale);
    require(scale == 0 || args.align_corners == 0, "scale[{}] is {}, and align_corners is set", i, scale);
    const double reach = scale == 0 ? 0 : (static_cast<double>(out) + 1) / scale;
    require(reach < kMaxReach && scale <= static_cast<double>(kMaxSize),
            "scale[{0}]={1} out_shape[{0}]={2}: too small or too large", i, scale, out);
  }
  check_planes(args.input, args.output, args.batch, args.channels, {args.in_shape.data(), args.spatial},
               {args.out_shape.data(), args.spatial}, args.dtype);
}

}  // namespace tuff
