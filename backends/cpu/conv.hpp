// What the files about convolutions share.
#pragma once

#include "backends/cpu/device.hpp"

namespace tuff_cpu {

// In f32, with the layout of the call. `sums` may be the output.
struct ConvOperands {
  const float *input, *filter;
  float* sums;
};

inline uint64_t elements(const uint64_t (&shape)[5]) { return shape[0] * shape[1] * shape[2] * shape[3] * shape[4]; }

// Whether a convolution is computed as products of matrices, without oneDNN's convolutions.
bool is_product(const tuff_backend_conv& call);
// Computes it, image by image, into the output. It may only fail before it writes.
void multiply_images(const tuff_backend_conv& call, const ConvOperands& operands);

// output = activation(sum + bias + residual) for some neighbouring images. `sums` is that of the first image of all.
void finish_images(const tuff_backend_conv& call, const float* sums, uint64_t first, uint64_t count);

}  // namespace tuff_cpu
