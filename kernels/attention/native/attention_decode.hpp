// Attention of few query rows by the tensor cores of NVIDIA's Hopper GPUs (mma.sync), written in PTX: what a
// planner chooses, and the parameters.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/attention/attention.hpp"
#include "kernels/attention/native/stored_rows.hpp"
#include "planning/kernel_request.hpp"

namespace tuff::attention {

// What the text of the kernel depends on.
struct Decode {
  int32_t type = 0;  // of all tensors: TUFF_F16 or TUFF_BF16
  uint32_t head_dim = 0, head_dim_v = 0;
  uint32_t rows = 8;     // of a tile, 8, 16, 32 or 64: query rows of the heads that share keys
  uint32_t lengths = 0;  // as Wgmma::lengths
  bool parts = true;     // the results are parts for attention_merge.comp
  bool hiding = false;   // rows see different keys, or with options not all from the first on
  // What is applied to scores: score_options.hpp. The bias has the type `bias`, 0 without one.
  int32_t bias = 0;
  bool mask = false, cap = false;
  bool pieces = false;  // bias and mask are read several elements at a time
  // How keys and values are stored, if not as `type`: stored_rows.hpp.
  int32_t k_stored = 0, v_stored = 0;
  // They are loaded in pieces of so many bytes: 16, or 4 or 8 of blocks; 0: rows follow each other, and are loaded
  // together in pieces of 16.
  uint32_t k_piece = 16, v_piece = 16;

  static constexpr uint32_t kWarps = 4, kThreads = kWarps * 32;
  static constexpr uint32_t kKeys = 16;      // of a step
  static constexpr uint32_t kWarpRows = 16;  // of a warp
  static constexpr uint32_t kMaxHeadDim = 256;
  static constexpr uint32_t kMaxRows = kWarpRows * kWarps;

  bool options() const { return bias != 0 || mask || cap; }
  // Warps that compute a step together, each with rows of its own. A block's teams take steps in turn.
  uint32_t team() const { return rows <= kWarpRows ? 1 : rows / kWarpRows; }
  uint32_t teams() const { return kWarps / team(); }

  // Rows of keys or values.
  struct Rows {
    uint32_t numbers;
    int32_t stored;
    uint32_t piece;
    uint32_t bytes() const { return stored == 0 ? numbers * 2 : StoredRows::bytes(stored, numbers); }  // in memory
    // In a stage, where they are 16 bytes longer, so that eight rows are read without bank conflicts. Blocks stay as
    // they follow each other in memory.
    uint32_t stage_bytes() const { return bytes() + (in_blocks(stored) ? 0 : 16); }
  };
  Rows keys() const { return {head_dim, k_stored, k_piece}; }
  Rows values() const { return {head_dim_v, v_stored, v_piece}; }
  uint32_t stage_bytes() const { return kKeys * (keys().stage_bytes() + values().stage_bytes()); }  // of a team
  uint32_t team_bytes() const { return stages() * stage_bytes(); }
  bool quantised() const { return k_stored != 0 || v_stored != 0; }
  // For a row's outputs, when teams add them up: 8 numbers longer, so that eight rows are written without bank
  // conflicts.
  uint32_t output_bytes() const { return (head_dim_v + 8) * 4; }
  bool packed() const { return k_piece == 0 || v_piece == 0; }
  bool legal() const;                  // whether the kernel has these options together
  bool loads(const Rows& loaded) const;  // whether there are such, and threads for their pieces
  uint32_t stages() const;
  uint32_t blocks_per_core() const;  // that fit into a multiprocessor's shared memory
  uint32_t shared_bytes() const;

  KernelRequest request() const;
  static Decode read(const KernelRequest& request);

  // The parameters, after the addresses of q, k, v, o or the parts, and of q_lengths, kv_lengths, bias, mask and
  // ScoreNumbers as far as there are such. Strides are in bytes.
  struct Push {
    uint64_t q_batch, q_head, k_batch, k_head, v_batch, v_head, o_batch, o_head;
    uint32_t q_row, k_row, v_row, o_row;
    uint32_t seq_q, seq_kv;
    uint32_t kv_heads, sharing;  // how many heads of q share a kv head
    uint32_t row_tiles;          // of the rows of all heads that share a kv head
    uint32_t parts, part_keys;
    float scale_log2;      // scores * scale_log2 are exponents of two
    int32_t diagonal;      // row i's position is key i + diagonal
    uint32_t left, right;  // keys that a row sees on either side; the one at its position counts in both
    uint32_t unused;
  };
};

extern const KernelSource decode_source;

}  // namespace tuff::attention
