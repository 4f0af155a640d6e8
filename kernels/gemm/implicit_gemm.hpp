// What convolutions take of matrix products, beside record_gemm(): a product with an operand that is stored nowhere,
// and the second pass by itself.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.hpp"
#include "planning/device_traits.hpp"

namespace tuff::gemm {

// One operand's rows as windows of images, one for each matrix of the batch, whose pixels hold their channels side by
// side. Along k come the channels of a window's first tap, then of the next in its row, then those of the next row. The
// kernel makes one product of the batch, all images' windows one after the other. See gemm_matrix.comp.
struct Windows {
  bool of_a = false;             // A's rows, and A is not transposed; else B's, and it is
  uint64_t elements = 0;         // the operand's footprint
  uint32_t width = 0, step = 0;  // windows in a row, elements from one to the next, both below 2^16; lda (ldb): rows
  uint32_t channels = 0;         // below 2^16
  uint32_t valid = 0;            // of them, as far as the windows reach; 0: all
  uint32_t taps = 0, dilation = 0, tap_row = 0;  // taps in a row, pixels from one to the next, both below 2^8
};

// A product on matrix units with such an operand, or false where nothing here computes it. Alpha is 1, beta 0.
bool runs_windows(const DeviceTraits& traits, const GemmArgs& args, const Windows& windows);
void record_windows(Recorder& recorder, const GemmArgs& args, const Windows& windows);

// C = activation(alpha * (the slices' sums) + beta * C + bias + residual); with no slices there is no product.
void record_finish(Recorder& recorder, const GemmArgs& args, const Buffer* partials, uint64_t slices);

}  // namespace tuff::gemm
