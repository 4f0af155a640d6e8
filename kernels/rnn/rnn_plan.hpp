// What the planners of recurrent layers share: where their data lie in scratch memory, and the parts that all of them
// have.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "kernels/common/stream_device.hpp"
#include "kernels/rnn/native/rnn_persistent.hpp"
#include "kernels/rnn/rnn.hpp"
#include "planning/arithmetic.hpp"
#include "planning/recorder.hpp"

namespace tuff::rnn {

// Limits of sizes and of a step's numbers in scratch memory, so that they are numbered in 32 bits. A batch with more is
// computed in parts.
constexpr uint64_t kMaxSize = uint64_t{1} << 26, kMaxNumbers = uint64_t{1} << 27;
// Scratch memory for products of the input, which are computed for as many steps at once as fit: but at least for one.
constexpr uint64_t kInputBytes = uint64_t{256} << 20;

constexpr uint64_t kAligned = 64;  // numbers: regions of scratch memory start at multiples of 256 bytes

// f32 numbers in scratch memory.
struct Region {
  uint64_t first = 0, count = 0;
  uint64_t end() const { return first + count; }
};

// Scratch memory while it is shared out.
struct Space {
  uint64_t used = 0;
  Region take(uint64_t count) {
    const Region region{used, count};
    used += round_up(count, kAligned);
    return region;
  }
};

// UNSUPPORTED if a size of the layer is too large, or if the device cannot bind an operand.
void require_sizes(const RnnArgs& args);
void require_range(const DeviceTraits& traits, uint64_t elements, uint64_t bytes, const char* name);

// Products of the input for `count` steps from each direction's first one on.
struct InputSteps {
  uint64_t done, count;  // steps that precede it in the order of each direction
  bool by_sequence;      // rows are ordered by sequence, then step; otherwise by step, then sequence
  uint64_t columns;      // of a row
};

// How a kernel in PTX computes all steps (native/rnn_persistent_vulkan.cpp).
struct Together {
  Persistent kernel;
  uint64_t slices = 0;  // of 16 units
  uint64_t groups = 0;  // of kernel.sequences() each, in a launch
};

// A call, or some of its sequences, while it is recorded.
struct Layer {
  // args: of sequences first ... first + args.batch - 1 of `all`.
  Layer(Recorder& recorder, const RnnArgs& args, uint64_t first, uint64_t all);

  Recorder& recorder;
  const RnnArgs& args;
  uint64_t first, all;
  StreamDevice device;
  uint64_t steps_at_once = 1;
  bool by_rows = false;              // record_rows() computes the steps
  bool wants_rows = false;           // wherever it can
  bool by_panels = false;            // r is packed once, for the products of all steps
  std::optional<Together> together;  // record_together() computes the steps
  // In scratch memory. `sums` and `second`: the products of a step. `weights` and `projection`: r and projection in
  // f32, if they are of another type.
  // `packed`: r as GEMM packs it for CPU devices. `shared`: the words that blocks of record_together() share.
  Region packed, inputs, sums, second, state, bias, weights, projection, shared;
  Buffer scratch;

  bool has_bias() const { return args.bias_w != nullptr || args.bias_r != nullptr; }
  bool two_parts() const { return args.resets_first() || args.proj_size != 0; }
  // Rows of r whose products come first: without a GRU's new gate if it waits for the reset gate.
  uint64_t first_rows() const { return args.resets_first() ? 2 * args.hidden_size : args.gate_rows(); }
  uint64_t rows() const { return args.directions() * args.batch; }
  uint64_t bias_rows() const { return args.gates() + (args.linear_before_reset ? 1 : 0); }
  // The part of the state behind h: c, or the halves of a step in two parts.
  uint64_t at_c() const { return state.first + args.h_elements(); }
  // The step that direction d computes as its i-th.
  uint64_t step_of(uint64_t d, uint64_t i) const { return args.reversed(d) ? args.steps - 1 - i : i; }

  Buffer region(const Region& of) const;
  // Fails if the device cannot compute the call; otherwise takes scratch memory.
  void prepare();
  // Shares out scratch memory.
  void divide_scratch();
  void record_bias() const;
  void record_packed_weights() const;
  void record_initial_state() const;
  void record_final_state() const;
  InputSteps record_inputs(uint64_t done) const;
};

// For CPU devices, all units of a sequence from step to step in one dispatch (rnn_rows_vulkan.cpp). layer.weights has r
// as packed_numbers() numbers.
bool takes_rows(const Layer& layer);
uint64_t packed_numbers(const Layer& layer);
void record_pack(const Layer& layer);
void record_rows(const Layer& layer, const InputSteps& inputs);

// For NVIDIA's Hopper GPUs, all steps in a launch: a plan, if the layer has one; the numbers of 32 bits that its blocks
// share; and whether the driver accepts its kernels, which is asked before anything is recorded.
std::optional<Together> plan_together(const Layer& layer);
uint64_t shared_words(const Layer& layer);
bool accepts_together(const Layer& layer);
void record_together(const Layer& layer, const InputSteps& inputs);

// Where a direction finds the product of its i-th step, in elements from the region's first on.
uint64_t input_at(const Layer& layer, const InputSteps& inputs, uint64_t direction, uint64_t i);

}  // namespace tuff::rnn
