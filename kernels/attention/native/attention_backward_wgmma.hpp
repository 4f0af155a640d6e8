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
  int32_t bias = 0;        // its type, TUFF_F16 or TUFF_BF16; 0: none
  bool mask = false;
  uint32_t piece = 16;  // bytes by which bias and mask are read, 4 or 16
  uint32_t slopes = 0;  // without keys_side: elements that are stored at once of the slopes in f32; 0: not wanted

  static constexpr uint32_t kOwn = 128;      // own rows of a tile
  static constexpr uint32_t kOther = 64;     // rows of the other side of a step
  static constexpr uint32_t kThreads = 384;  // a warp group that loads, and two that compute
  static constexpr uint32_t kPiece = 8;      // elements of 16 bytes, by which tensors are read
  static constexpr uint32_t kMaxHeadDim = 128;
  static constexpr uint32_t kMinStages = 3;

  // Whether registers suffice for dk and dv together: ptxas finds none for some pairs of sizes.
  bool fits() const {
    if (!first || !second) return true;
    if (has_options()) return head_dim + head_dim_v < 2 * kMaxHeadDim - 3 * kPiece;
    return head_dim == head_dim_v || head_dim + head_dim_v < 2 * kMaxHeadDim - 2 * kPiece;
  }
  // Weights of f16 are multiplied by 2^15, so that those above 2^-29 keep all their bits; slopes by the largest power
  // of two for which the bounds that attention_backward_sums.comp finds let none be above 2^15.
  bool bounded() const;
  float headroom() const;  // the exponent of weights

  uint32_t own_bytes() const { return kOwn * (blocks(head_dim) + blocks(head_dim_v)) * 128; }
  uint32_t first_bytes() const { return kOther * blocks(head_dim) * 128; }
  uint32_t others_bytes() const { return kOther * (blocks(head_dim) + blocks(head_dim_v)) * 128; }
  uint32_t stage_bytes() const { return others_bytes() + bias_bytes() + mask_bytes(); }
  // Of a step's pairs, a row of keys for each query row. Rows are 16 bytes apart from a multiple of 64, so that threads
  // whose pairs belong to different rows read different banks.
  bool has_options() const { return bias != 0 || mask; }
  uint32_t query_rows() const { return keys_side ? kOther : kOwn; }
  uint32_t keys() const { return keys_side ? kOwn : kOther; }
  uint32_t bias_row() const { return keys() * 2 + 16; }
  uint32_t mask_row() const { return keys() + 16; }
  uint32_t bias_bytes() const { return bias != 0 ? query_rows() * bias_row() : 0; }
  uint32_t mask_bytes() const { return mask ? query_rows() * mask_row() : 0; }
  uint32_t stages() const;  // steps kept in shared memory
  uint32_t shared_bytes() const;

  KernelRequest request() const;
  static Wgmma read(const KernelRequest& request);

  // The parameters, after the addresses of q, k, v, d_o, the rows' numbers, an AttentionBackwardShape<uint64_t>, and of
  // bias, mask, dk or dq, dv and slopes as far as there are such. The rows' numbers are those of
  // attention_backward_sums.comp with POWERS: with a bias, factor 1 and no headroom.
  struct Push {
    uint64_t lengths, bounds;   // where lengths and bounds are behind the rows' numbers, in bytes
    uint32_t own_tiles, tiles;  // of a head, and of all
    float scale;                // of scores: then they are exponents of two, or with a bias exponents of e
    float first_factor;         // of dk and dq
    float second_factor;        // of dv
    uint32_t first_unit;        // slopes: the first head's number among those of all batch elements
  };

 private:
  // Blocks of 64 elements, 128 bytes.
  static uint32_t blocks(uint32_t dim) { return (dim + 63) / 64; }
};

extern const KernelSource wgmma_source;

}  // namespace tuff::attention_backward
