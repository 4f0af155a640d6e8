// What the planners of attention share: the shape as kernels are told it, the operands, what decides a kernel's form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string_view>

#include "kernels/attention/attention.hpp"
#include "kernels/common/check.hpp"
#include "planning/recorder.hpp"

namespace tuff::attention {

// Mirrors ATTENTION_SHAPE and AttentionShape in attention_common.glsl.
template <typename Index>
struct Strides {
  Index q[3], k[3], v[3], o[3];
};
struct Sizes {
  uint32_t seq_q, seq_kv, dims, heads;
  float scale_log2;
  int32_t diagonal;
};
template <typename Index>
struct ExtendedShape {
  Index bias[3], mask[3];
  Strides<Index> strides;
  Sizes sizes;
  uint32_t left, right;
  float scale, cap;
  uint32_t present, unused;
};
static_assert(sizeof(ExtendedShape<uint32_t>) == 120 && sizeof(ExtendedShape<uint64_t>) == 192);
struct Progress {
  uint32_t groups, key_begin, key_end;  // of a kernel for parts: how many keys a part has, how many parts there are
};
struct PlainPush {
  Strides<uint32_t> strides;
  Sizes sizes;
  Progress progress;
};

// Sequences are below this, so that places and windows fit signed 32-bit numbers.
constexpr uint64_t kMaxSequence = uint64_t{1} << 30;
constexpr uint64_t kMaxGroups = std::numeric_limits<uint32_t>::max() - 65535;

// How kernels see a call: what form they take, and the numbers they are told.
struct Call {
  Call(const DeviceTraits& traits, const AttentionArgs& wanted, uint64_t scratch_elements);

  AttentionArgs args;  // heads and batch elements merged where there are too many heads
  bool wide = false, extended = false, causal = false, scaled = false;
  uint64_t elements[4] = {};  // of q, k, v, o

  // Defines that attention_common.glsl asks for, but RANGES.
  void define(KernelRequest& kernel, const DeviceTraits& traits) const;
  // q, k, v, o, scratch where the kernel has any, and what an extended call adds.
  void operands(Recorder& recorder, Dispatch& dispatch, const Buffer* scratch, uint64_t scratch_bytes,
                Access access) const;
  void push(Dispatch& dispatch, const Progress& progress) const;
  // All of q, k, v and o can be read and written so many elements at a time.
  bool in_pieces_of(uint64_t piece) const;
  // Keys that some row sees.
  uint64_t keys_seen() const;
  double bytes() const;
  double operations() const;

 private:
  template <typename Index>
  Strides<Index> strides() const;
  template <typename Index>
  ExtendedShape<Index> extended_shape() const;
  Sizes sizes() const;
};

// Records a call that this kind of kernel is best for, or that a variant of its table is forced for, and returns true;
// otherwise false. `forced` may be empty, or a name of another table.
bool record_matrices(Recorder& recorder, const AttentionArgs& args, std::string_view forced);
bool record_split(Recorder& recorder, const AttentionArgs& args, std::string_view forced);
// Whether the device multiplies such elements on matrix units; and whether it does this call's products so.
bool has_matrices(const DeviceTraits& traits, int32_t dtype);
bool multiplies(const DeviceTraits& traits, const Call& call);
bool is_matrix_variant(std::string_view name);
bool is_split_variant(std::string_view name);

}  // namespace tuff::attention
