// GEMM by the tensor cores of NVIDIA's Hopper GPUs (wgmma), written in PTX: what a planner chooses, and the parameters.
#pragma once

#include <cstdint>

#include "planning/element_type.hpp"
#include "planning/kernel_request.hpp"
#include "tuff/tuff.h"

namespace tuff::gemm {

// What the text of the kernel depends on.
struct Wgmma {
  // A and B: TUFF_F16 or TUFF_BF16; or TUFF_F32, multiplied as TF32, with both operands along k and no windows; or
  // 8-bit floats in the same way; or TUFF_I8 in the same way and with the sums stored as they are.
  int32_t type = 0;
  int32_t b_type = 0;  // of B: an 8-bit float if `type` is one, otherwise `type`
  // For what is stored: TUFF_F32, TUFF_F16 or TUFF_BF16, or a float of 8 bits (with `vector`, and nothing else read);
  // TUFF_I32 for TUFF_I8.
  int32_t c_type = 0;
  bool trans_a = false, trans_b = false;
  uint32_t rows = 128, columns = 256;  // of a tile: 128 x 64, 128 or 256, 64 x 128 or 256
  bool edge = false;                   // some tiles extend beyond C, or the last step beyond k
  bool beta = false;                   // C is read
  int32_t bias_axis = 0;               // TUFF_BIAS_*
  bool residual = false;
  int32_t activation = 0;  // TUFF_ACTIVATION_*, as far as ptx::activates() says
  bool scaled = false;     // there are scales
  bool groups = false;     // windows of A: matrices are groups of an image's channels, of filters and of C's columns
  bool promoted = false;   // 8-bit floats: products of a step are added up by the tensor cores, steps in f32
  // f32 inputs, as three numbers of bf16 each: gemm_split.cpp, which shares what is below.
  bool split = false;
  // 1: A's rows are windows of images (implicit_gemm.hpp); 2: B's are; 3: rows of k are, with padding and without bias,
  // and B's columns the channels of their taps, of which there are at most 32.
  uint32_t windows = 0;
  bool valid = false;   // not all of a window's channels belong to it
  bool padded = false;  // windows of A or of k may begin outside the image
  // 16 bytes of C, or eight of 8 bits, are stored at once: n, ldc, stride_c and C's address are multiples of that.
  bool vector = false;

  static constexpr uint32_t kStep = 64;                        // k of a step in 16 bits: 128 bytes
  static constexpr uint32_t kMinPerImage = 32;                 // windows of an image, if they are columns
  static constexpr uint32_t kMultipliers = 256;                // threads: two warp groups
  static constexpr uint32_t kLoaders = 128, kSplitters = 256;  // those that load, and that load split numbers
  bool float8() const { return kFloat8Types.has(type); }
  // In shared memory.
  uint32_t element_bytes() const { return type == TUFF_I8 || float8() ? 1 : type == TUFF_F32 && !split ? 4 : 2; }
  uint32_t planes() const { return split ? 3 : 1; }
  uint32_t step() const { return 2 * kStep / element_bytes(); }
  uint32_t loaders() const { return split ? kSplitters : kLoaders; }
  uint32_t threads() const { return loaders() + kMultipliers; }
  // The multiplying groups have 64 rows each, or all 64 and half of the columns each.
  bool halves_columns() const { return rows == 64; }
  uint32_t group_columns() const { return halves_columns() ? columns / 2 : columns; }
  uint32_t stage_bytes() const;
  uint32_t stages() const;  // steps kept in shared memory
  uint32_t shared_bytes() const;

  KernelRequest request() const;
  static Wgmma read(const KernelRequest& request);

  bool has_operands() const { return bias_axis != 0 || residual; }
  // Windows of A, and B is the filter of the convolution whose gradient this is, as it is stored: its rows are k, and
  // its taps come in reverse order.
  bool has_filter() const { return windows == 1 && !trans_b; }
  bool legal() const;  // whether the kernel has these options together

  // The parameters, after the addresses of A, B and C, of bias and residual if there is either, and of scale_a, scale_b
  // and scale_c if there is any; those that are missing are null. Leading dimensions of A and B are in units of 16
  // bytes, of split numbers in elements.
  struct Push {
    uint32_t m, n, k, k_slice;
    uint32_t tiles_m, tiles_n, tiles;  // tiles: of all matrices and slices
    uint32_t matrices;                 // of the batch
    uint32_t lda, ldb, ldc, ld_residual;
    uint64_t stride_a, stride_b;  // between matrices of the batch, in bytes
    uint64_t stride_c, slice_c;   // between matrices, between the partial results of slices, in bytes
    uint64_t stride_bias, stride_residual;
    float alpha, beta;
  };
  // With windows, which share one bias; with groups, each has its part of it and of a row of C. With padding,
  // stride_bias is an ImagePush. m or n is that of all images; strides of that operand and, without groups, of C are
  // between images. Lengths are in units of 16 bytes, but for `channels`, which has those of a tap below, and those
  // that belong to the window above bit 16.
  struct WindowPush {
    Push plain;
    uint32_t per_image, width_step;  // windows; those in a row below, the distance of two above bit 16
    uint32_t channels, taps;         // taps: in a row below, rows of them above bit 16
    uint32_t tap_step, tap_row;
  };
  // With windows of A, padding and B not transposed, B is the filter as it is stored: [channels][taps][columns], with
  // the taps in reverse order and a multiple of kStep channels. stride_b is then a FilterPush: the distances of taps
  // and of rows of them, in units of 16 bytes.
  struct FilterPush {
    uint32_t tap_step, tap_row;
  };
  struct ImagePush {
    uint16_t height, width;
    uint8_t before[2], strides[2];
  };
};

extern const KernelSource wgmma_source;

}  // namespace tuff::gemm
