// The gradients of attention by the tensor cores of NVIDIA's Hopper GPUs (wgmma), written in PTX: what a planner
// chooses, and the parameters.
#pragma once

#include <cstdint>

#include "planning/kernel_request.hpp"

namespace tuff::attention_backward {

// What the text of the kernel depends on.
struct Wgmma {
  int32_t type = 0;  // of all tensors: TUFF_F16 or TUFF_BF16
  uint32_t head_dim = 0, head_dim_v = 0;
  bool keys_side = false;  // a block owns keys, not query rows
  bool first = false;      // dk, or dq, is wanted
  bool second = false;     // dv is wanted, with keys_side

  static constexpr uint32_t kOwn = 128;      // own rows of a tile
  static constexpr uint32_t kOther = 64;     // rows of the other side of a step
  static constexpr uint32_t kThreads = 384;  // a warp group that loads, and two that compute
  static constexpr uint32_t kPiece = 8;      // elements of 16 bytes, by which tensors are read
  static constexpr uint32_t kMaxHeadDim = 128;

  // Whether registers suffice for dk and dv together: ptxas finds none for some pairs of sizes.
  bool fits() const {
    return !first || !second || head_dim == head_dim_v || head_dim + head_dim_v < 2 * kMaxHeadDim - 2 * kPiece;
  }
  // Weights of f16 are multiplied by 2^15, so that those above 2^-29 keep all their bits; slopes by the largest power
  // of two for which the bounds that attention_backward_sums.comp finds let none be above 2^15.
  bool bounded() const;
  float headroom() const;  // the exponent of weights

  uint32_t own_bytes() const { return kOwn * (blocks(head_dim) + blocks(head_dim_v)) * 128; }
  uint32_t first_bytes() const { return kOther * blocks(head_dim) * 128; }
  uint32_t stage_bytes() const { return kOther * (blocks(head_dim) + blocks(head_dim_v)) * 128; }
  uint32_t stages() const;  // steps kept in shared memory
  uint32_t shared_bytes() const;

  KernelRequest request() const;
  static Wgmma read(const KernelRequest& request);

  // The parameters, after the addresses of q, k, v, d_o, the rows' numbers, an AttentionBackwardShape<uint64_t>, and of
  // dk or dq and dv as far as they are wanted. The rows' numbers are those of attention_backward_sums.comp with POWERS.
  struct Push {
    uint64_t lengths, bounds;   // where lengths and bounds are behind the rows' numbers, in bytes
    uint32_t own_tiles, tiles;  // of a head, and of all
    float scale_log2;           // scores * scale_log2 are exponents of two
    float first_factor;         // of dk and dq
    float second_factor;        // of dv
    uint32_t unused;
  };

 private:
  // Blocks of 64 elements, 128 bytes.
  static uint32_t blocks(uint32_t dim) { return (dim + 63) / 64; }
};

extern const KernelSource wgmma_source;

}  // namespace tuff::attention_backward
