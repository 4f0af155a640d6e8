// Attention by the tensor cores of NVIDIA's Hopper GPUs (wgmma), written in PTX: what a planner chooses, and the
// parameters.
#pragma once

#include <cstdint>

#include "planning/kernel_request.hpp"
#include "tuff/tuff.h"

namespace tuff::attention {

// What the text of the kernel depends on.
struct Wgmma {
  int32_t type = 0;  // of all tensors: TUFF_F16 or TUFF_BF16
  uint32_t head_dim = 0, head_dim_v = 0;
  uint32_t keys = 128;   // of a step: a multiple of 16, at most max_keys()
  bool hiding = false;   // rows see different keys: there is a causal mask or a window
  uint32_t lengths = 0;  // kRowLengths and others
  bool lse = false;      // the log-sum-exp of each row is stored
  // What is applied to scores: score_options.hpp. The bias has the type `bias`, 0 without one.
  int32_t bias = 0;
  bool mask = false, cap = false;
  bool pieces = false;  // bias and mask are read several elements at a time

  // Lengths of q; of k and v; the causal mask is bottom-right by the lengths.
  static constexpr uint32_t kRowLengths = 1, kKeyLengths = 2, kDiagonalByLengths = 4;
  static constexpr uint32_t kRows = 128;     // query rows of a tile
  static constexpr uint32_t kThreads = 384;  // a warp group that loads, and two that compute
  static constexpr uint32_t kPiece = 8;      // elements of 16 bytes, by which tensors are read
  static constexpr uint32_t kMaxHeadDim = 256;
  static constexpr uint32_t kMaxStages = 4, kControlBytes = 512;  // flags and barriers after the stages

  bool options() const { return bias != 0 || mask || cap; }
  bool scaled() const { return bias != 0 || cap; }  // scores are scaled before the maximum is taken
  // With more, registers or shared memory do not suffice.
  uint32_t max_keys() const;
  static constexpr uint32_t kMinKeys = 32;
  // Bytes of q, and of a step's keys and values, in shared memory.
  uint32_t q_bytes() const { return kRows * blocks(head_dim) * 128; }
  uint32_t k_bytes() const { return keys * blocks(head_dim) * 128; }
  uint32_t v_bytes() const { return keys * blocks(head_dim_v) * 128; }
  uint32_t stages() const;  // steps kept in shared memory
  uint32_t shared_bytes() const;

  KernelRequest request() const;
  static Wgmma read(const KernelRequest& request);
  // All but the type.
  void define_in(KernelRequest& request) const;
  void read_from(const KernelRequest& request);
  void check_keys(const char* kernel, uint32_t most) const;

  // The parameters, after the addresses of q, k, v, o, and of lse, q_lengths, kv_lengths, bias, mask and ScoreNumbers
  // as far as there are such. Strides are in bytes.
  struct Push {
    uint64_t q_batch, q_head, k_batch, k_head, v_batch, v_head, o_batch, o_head;
    uint32_t q_row, k_row, v_row, o_row;
    uint32_t seq_q, seq_kv;
    uint32_t heads, sharing;  // of q; how many of them share a kv head
    uint32_t row_tiles, tiles;
    float scale_log2;      // scores * scale_log2 are exponents of two
    int32_t diagonal;      // row i's position is key i + diagonal
    uint32_t left, right;  // keys that a row sees on either side; the one at its position counts in both
  };

 private:
  // Blocks of 64 elements, 128 bytes.
  static uint32_t blocks(uint32_t dim) { return (dim + 63) / 64; }
};

inline constexpr LegalRange kLengthForms[] = {{0, 3}, {5, 7}};
inline constexpr LegalRange kBiasTypes[] = {{0, 0}, {TUFF_F32, TUFF_F32}, {TUFF_F16, TUFF_BF16}};
extern const KernelSource wgmma_source;

}  // namespace tuff::attention
