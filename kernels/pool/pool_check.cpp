#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/pool/pool_backward.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxSize = 0x3fffffff;  // of one axis including its padding

// The output size that the windows give along one axis.
uint64_t expected_size(const PoolArgs& args, uint32_t i, uint64_t stride, uint64_t dilation) {
  const uint64_t span = dilation * (args.kernel[i] - 1) + 1, padded = args.in_shape[i] + 2 * args.padding[i];
  require(span <= padded, "the window spans {} of axis {}, which is {} with its padding", span, i, padded);
  uint64_t size = (padded - span + (args.ceil_mode != 0 ? stride - 1 : 0)) / stride + 1;
  // The last window must start within the input or the padding before it.
  if (args.ceil_mode != 0 && (size - 1) * stride >= args.in_shape[i] + args.padding[i]) --size;
  return size;
}

void check_window(const PoolArgs& args, uint32_t i) {
  const uint64_t kernel = args.kernel[i], stride = args.stride[i] != 0 ? args.stride[i] : kernel;
  const uint64_t dilation = args.dilation[i] != 0 ? args.dilation[i] : 1;
  require(kernel > 0, "kernel[{}] is 0", i);
  require(args.maximum || dilation == 1, "dilation[{}] is {}, a mean has none", i, dilation);
  const uint64_t largest = std::max({kernel, stride, dilation, args.padding[i], args.in_shape[i]});
  const uint64_t span = largest <= kMaxSize ? dilation * (kernel - 1) + 1 : largest;
  require(span <= kMaxSize,
          "kernel[{0}]={1} stride[{0}]={2} dilation[{0}]={3} padding[{0}]={4} of in_shape[{0}]={5}: too large", i,
          kernel, stride, dilation, args.padding[i], args.in_shape[i]);
  require(2 * args.padding[i] <= span, "padding[{}] is {}, at most half of what the window spans, {}", i,
          args.padding[i], span);
  const uint64_t expected = expected_size(args, i, stride, dilation);
  require(args.out_shape[i] == expected, "out_shape[{}] is {}, needs {}", i, args.out_shape[i], expected);
}

}  // namespace

PoolShape pool_shape(const PoolArgs& args) {
  PoolShape shape{};
  shape.planes = args.batch * args.channels;
  shape.in = shape.out = shape.kernel = shape.stride = shape.dilation = {1, 1, 1};
  shape.adaptive = args.adaptive != 0;
  bool whole = true;
  const uint32_t missing = 3 - args.spatial;
  for (uint32_t i = 0; i < args.spatial; ++i) {
    const uint32_t d = missing + i;
    shape.in[d] = args.in_shape[i];
    shape.out[d] = args.out_shape[i];
    shape.kernel[d] = std::max<uint64_t>(args.kernel[i], 1);
    shape.stride[d] = args.stride[i] != 0 ? args.stride[i] : shape.kernel[d];
    shape.dilation[d] = std::max<uint64_t>(args.dilation[i], 1);
    shape.padding[d] = args.padding[i];
    whole = whole && shape.kernel[d] == shape.in[d] && shape.padding[d] == 0 && shape.dilation[d] == 1;
  }
  shape.adaptive = shape.adaptive || (whole && shape.outputs() == 1);
  return shape;
}

void check_pool_windows(const PoolArgs& args) {
  check_float_type(args.dtype);
  require(args.spatial >= 1 && args.spatial <= 3, "spatial is {}, needs 1 to 3", args.spatial);
  require_flag(args.ceil_mode, "ceil_mode");
  require_flag(args.count_include_pad, "count_include_pad");
  require_flag(args.adaptive, "adaptive");
  require(args.maximum || args.indices == nullptr, "indices are given, and a mean has none");
  require(!args.maximum || args.count_include_pad == 0, "count_include_pad is set, and a maximum counts nothing");
  for (uint32_t i = 0; i < args.spatial; ++i) {
    require(args.in_shape[i] > 0, "in_shape[{}] is 0", i);
    if (args.adaptive == 0) {
      check_window(args, i);
      continue;
    }
    require(args.out_shape[i] > 0, "out_shape[{}] is 0", i);
    require(args.kernel[i] == 0 && args.stride[i] == 0 && args.padding[i] == 0 && args.dilation[i] == 0 &&
                args.ceil_mode == 0 && args.count_include_pad == 0,
            "adaptive is set, and so is one of kernel, stride, padding, dilation, ceil_mode, count_include_pad");
    // The kernel divides (o + 1) in + out - 1 by out in 31 bits.
    require(args.out_shape[i] <= kMaxSize && args.in_shape[i] <= kMaxSize / (args.out_shape[i] + 1),
            "in_shape[{0}]={1} out_shape[{0}]={2}: too large", i, args.in_shape[i], args.out_shape[i]);
  }
}

void check_pool(const PoolArgs& args) {
  check_pool_windows(args);
  const InputOutput count =
      check_planes(args.input, args.output, args.batch, args.channels, {args.in_shape.data(), args.spatial},
                   {args.out_shape.data(), args.spatial}, args.dtype);
  if (count.output == 0 || args.indices == nullptr) return;
  check_operand(args.indices, "indices", count.output, TUFF_U32,
                [&] { return fmt::format("batch={} channels={}", args.batch, args.channels); });
  const uint64_t element = dtype_size(args.dtype), bytes = count.output * 4;
  check_overlap(args.indices, "indices", bytes, args.input, "input", count.input * element, false);
  check_overlap(args.indices, "indices", bytes, args.output, "output", count.output * element, false);
}

void check_pool_backward(const PoolBackwardArgs& args) {
  const PoolArgs& pool = args.pool;
  check_pool_windows(pool);
  require(pool.maximum || pool.input == nullptr, "input is given, and the gradient of a mean does not depend on it");
  const std::span<const uint64_t> in_shape(pool.in_shape.data(), pool.spatial),
      out_shape(pool.out_shape.data(), pool.spatial);
  const auto elements = [&](std::span<const uint64_t> shape, const char* name) {
    const uint64_t planes = checked_mul(pool.batch, pool.channels, "channels");
    return checked_mul(planes, checked_product(shape, name), name);
  };
  const uint64_t in = elements(in_shape, "in_shape"), out = elements(out_shape, "out_shape");
  if (in == 0) return;
  const auto shape = [&](std::span<const uint64_t> sizes) {
    return fmt::format("batch={} channels={} shape {}", pool.batch, pool.channels, fmt::join(sizes, "x"));
  };
  const auto detail_in = [&] { return shape(in_shape); };
  const auto detail_out = [&] { return shape(out_shape); };
  check_operand(args.doutput, "doutput", out, pool.dtype, detail_out);
  check_operand(args.dinput, "dinput", in, pool.dtype, detail_in);
  const uint64_t size = dtype_size(pool.dtype);
  check_overlap(args.dinput, "dinput", in * size, args.doutput, "doutput", out * size, false);
  if (!pool.maximum) return;
  if (pool.indices != nullptr) {
    check_operand(pool.indices, "indices", out, TUFF_U32, detail_out);
    return check_overlap(args.dinput, "dinput", in * size, pool.indices, "indices", out * 4, false);
  }
  require(pool.input != nullptr, "neither input nor indices are given, and a maximum needs one of them");
  check_operand(pool.input, "input", in, pool.dtype, detail_in);
  check_overlap(args.dinput, "dinput", in * size, pool.input, "input", in * size, false);
}

}  // namespace tuff
