// What convolutions use of GEMM besides record_gemm(): implicit GEMM, one of whose operands is not stored as a matrix,
// and the second pass on its own.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.hpp"
#include "planning/device_traits.hpp"

namespace tuff::gemm {

inline constexpr uint64_t kMaxTaps = 32;  // of padded windows

// One operand's rows are windows of images, one image for each matrix of the batch, whose pixels store their channels
// contiguously. Along k come the channels of a window's first tap, then of the next tap in its row, then those of the
// next row. The kernel computes the batch as one GEMM, with all images' windows one after another. See
// gemm_matrix.comp.
struct Windows {
  bool of_a = false;  // true: A's rows, A not transposed; false: B's, B transposed
  // Rows of k are the windows instead, those of all images one after another: B, which is not transposed, has the
  // channels of their taps as columns, and the batch is 1. stride_b: between images. Only kernels in PTX, and padded.
  bool of_k = false;
  uint32_t per_image = 0;        // with of_k: windows of an image
  uint64_t elements = 0;         // the operand's footprint
  uint32_t width = 0, step = 0;  // windows in a row, elements between them, both below 2^16; lda (ldb): between rows
  uint32_t channels = 0;         // below 2^16
  uint32_t valid = 0;            // channels that belong to the window; 0: all
  uint32_t taps = 0, dilation = 0, tap_row = 0;  // taps in a row, pixels between them (below 2^8); elements per tap row
  uint32_t pixel = 0;                            // elements between neighbouring pixels
  // Windows of A only, by kernels in PTX: each group has so many of a pixel's channels, n filters, and n of C's
  // columns.
  uint32_t groups = 1;
  // With padded windows of A: B is not transposed but a filter as a gradient by inputs finds it, [channels][taps][n]
  // with the taps in reverse order. ldb: between channels; step and row: between taps, and rows of them. Only in PTX.
  struct Filter {
    uint64_t elements = 0;  // its footprint; 0: B is a matrix
    uint64_t step = 0, row = 0;
  } filter;
  // If true, pixels outside the image count as zeros: windows begin up to `before` pixels before it. Only kernels in
  // PTX compute this. dilation is 1, tap_row that of neighbouring rows.
  bool padded = false;
  uint32_t tap_rows = 0;                     // rows of taps
  uint32_t extents[2] = {}, before[2] = {};  // of the image: height and width
  uint32_t strides[2] = {};                  // pixels between windows
};

// GEMM with such an operand. runs_windows() is false if no variant computes it on this device, and record_windows()
// returns false and has recorded nothing if the driver has just refused the only one. Alpha is 1 and beta 0.
bool runs_windows(const DeviceTraits& traits, const GemmArgs& args, const Windows& windows);
bool record_windows(Recorder& recorder, const GemmArgs& args, const Windows& windows);

// C = activation(alpha * (sum of the `slices` partials) + beta * C + bias + residual); with no partials alpha is
// ignored.
void record_finish(Recorder& recorder, const GemmArgs& args, const Buffer* partials, uint64_t slices);

}  // namespace tuff::gemm
