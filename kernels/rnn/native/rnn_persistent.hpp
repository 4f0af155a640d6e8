// All steps of a recurrent layer in one launch on NVIDIA's Hopper GPUs, written in PTX: what the text of the kernel
// depends on, and its parameters.
#pragma once

#include <cstdint>

#include "planning/kernel_request.hpp"
#include "tuff/tuff.h"

namespace tuff::rnn {

struct Persistent {
  int32_t type = 0;   // of R, peepholes and y: f16, bf16 or f32
  int32_t cell = 0;   // TUFF_RNN_CELL_LSTM, _GRU (with linear_before_reset) or _TANH
  bool onnx = false;  // gates are in ONNX's order
  bool bias = false, clip = false, peepholes = false, lengths = false, output = false;
  uint32_t eights = 1;   // of sequences of a block: 1, 2 or 4
  uint32_t steps_k = 1;  // steps of 16 units that a warp multiplies
  uint32_t held = 0;     // how many of them have their weights in registers, the others in shared memory
  bool whole = true;     // all warps have that many
  // Blocks that wait for no other: each computes all units of its sequences, and reads R anew in each step. They return
  // at once if the blocks that wait have computed the steps.
  bool alone = false;

  static constexpr uint32_t kWarps = 8, kThreads = 32 * kWarps, kUnits = 16, kMaxSteps = 17;
  // Before a launch all words that its blocks share have this value, which no state has. The first two say how many
  // blocks have arrived, and what they have agreed on; the states begin at kStatesAt, in bytes.
  static constexpr uint32_t kUnwritten = 0xffffffff, kRuns = 1, kRefused = 2;
  static constexpr uint32_t kArrivedAt = 0, kDecisionAt = 4, kStatesAt = 256;
  static constexpr uint32_t kBuffers = 4;              // of states
  static constexpr uint32_t kFragmentBytes = 32 * 16;  // of 16 rows and 16 columns of R

  uint32_t gates() const { return cell == TUFF_RNN_CELL_LSTM ? 4 : cell == TUFF_RNN_CELL_GRU ? 3 : 1; }
  uint32_t bias_rows() const { return gates() + (cell == TUFF_RNN_CELL_GRU ? 1 : 0); }
  uint32_t sequences() const { return 8 * eights; }                  // of a block
  uint32_t sums_row() const { return gates() * kUnits + 4; }         // of a sequence in shared memory
  uint32_t piece_bytes() const { return sequences() * kUnits * 4; }  // of the states of 16 units
  uint32_t parts() const { return type == TUFF_F32 ? 3 : 1; }        // numbers of 16 bits that a weight is the sum of
  uint32_t kept_registers() const { return (held * parts() + eights) * gates() * 4; }  // of weights and sums
  // For a warp's weights for a step of k, and of those of all warps in shared memory.
  uint32_t step_bytes() const { return gates() * parts() * kFragmentBytes; }
  uint32_t weight_bytes() const { return alone ? 0 : (steps_k - held) * step_bytes() * kWarps; }
  uint32_t ahead() const;  // steps of k whose states are on their way
  uint32_t shared_bytes() const;
  // Whether it has room: so many weights in registers, the others in shared memory.
  bool legal() const;

  KernelRequest request() const;
  static Persistent read(const KernelRequest& request);

  // The parameters, after the addresses of the products of the input, R, state, bias, peepholes, lengths, y and the
  // words that blocks share. Numbers of elements; steps are negative for a direction that goes backwards.
  struct Push {
    uint64_t x_at[2], x_step[2], y_at[2], y_step[2], y_batch;
    uint32_t x_batch, hidden, batch;
    uint32_t first, end;  // sequences of this launch
    uint32_t steps, t[2];
    uint32_t slices, groups;  // of units, and of sequences: a block for each pair and direction
    uint32_t backwards;       // a bit for each direction
    uint32_t blocks;          // that wait for each other at the start
    uint32_t at_c;            // in the state
    float clip;
  };
};

extern const KernelSource persistent_source;

}  // namespace tuff::rnn
