// The reference: seven loops, sums in double. A sum over no channels is zero.
#include "kernels/conv/conv.hpp"

namespace tuff {
namespace {

// The taps [begin, end) of one axis that fall inside the input for one output position. The input index
// of tap t is origin + t * dilation, where origin may lie in the padding and is kept shifted by it.
struct Taps {
  uint64_t begin, end;
};

Taps inside(uint64_t shifted_origin, uint64_t padding, uint64_t extent, uint64_t taps, uint64_t dilation) {
  const auto first_at_least = [&](uint64_t position) {  // the first tap at or beyond a shifted position
    return position <= shifted_origin ? 0 : (position - shifted_origin + dilation - 1) / dilation;
  };
  const uint64_t begin = first_at_least(padding), end = first_at_least(padding + extent);
  return {begin < taps ? begin : taps, end < taps ? end : taps};
}

}  // namespace

void host_conv2d(const Conv2dArgs& args) {
  const auto [N, C, H, W] = args.in_shape;
  const auto [K, filter_channels, R, S] = args.filter_shape;
  const uint64_t P = args.out_shape[2], Q = args.out_shape[3];
  if (N == 0 || K == 0) return;
  const bool empty = filter_channels == 0 || H == 0 || W == 0;  // then the operands may be absent
  const float* input = empty ? nullptr : args.input->host<float>();
  const float* filter = empty ? nullptr : args.filter->host<float>();
  float* output = args.output->host<float>();

  for (uint64_t n = 0; n < N; ++n) {
    for (uint64_t k = 0; k < K; ++k) {
      for (uint64_t p = 0; p < P; ++p) {
        const uint64_t row = p * args.stride[0];  // shifted by padding[0]
        const Taps rs = inside(row, args.padding[0], H, R, args.dilation[0]);
        for (uint64_t q = 0; q < Q; ++q) {
          const uint64_t col = q * args.stride[1];  // shifted by padding[1]
          const Taps ss = inside(col, args.padding[1], W, S, args.dilation[1]);
          double sum = 0;
          for (uint64_t c = 0; c < C && !empty; ++c) {
            for (uint64_t r = rs.begin; r < rs.end; ++r) {
              const uint64_t y = row + r * args.dilation[0] - args.padding[0];
              for (uint64_t s = ss.begin; s < ss.end; ++s) {
                const uint64_t x = col + s * args.dilation[1] - args.padding[1];
                sum += static_cast<double>(input[((n * C + c) * H + y) * W + x]) *
                       static_cast<double>(filter[((k * C + c) * R + r) * S + s]);
              }
            }
          }
          output[((n * K + k) * P + p) * Q + q] = static_cast<float>(sum);
        }
      }
    }
  }
}

}  // namespace tuff
