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
#include "shaders/attention_common.hpp"

namespace tuff::attention {

// What is pushed of a call, and of an extended one, whose shape is in memory: groups, key_begin and key_end alone.
using PlainPush = shaders::attention_common_push::Push<uint32_t, false>;
using Progress = shaders::attention_common_push::Push<uint32_t, true>;
template <typename Index>
using ExtendedShape = shaders::attention_common_push::AttentionShape<Index>;

// Sequences are below this, so that places and windows fit signed 32-bit numbers.
constexpr uint64_t kMaxSequence = uint64_t{1} << 30;
constexpr uint64_t kMaxGroups = std::numeric_limits<uint32_t>::max() - 65535;

// How kernels see a call: what form they take, and the numbers they are told.
struct Call {
  Call(const DeviceTraits& traits, const AttentionArgs& wanted, uint64_t scratch_elements);

  AttentionArgs args;  // heads and batch elements merged where there are too many heads
  bool wide = false, extended = false, causal = false, scaled = false;
  uint64_t elements[4] = {};  // of q, k, v, o

  // What every kernel of the call is compiled by.
  shaders::AttentionCommon defines(const DeviceTraits& traits) const {
    return {.bias = args.bias == nullptr ? 0 : args.bias_type,
            .cap = args.softcap != 0,
            .causal = causal && !extended,
            .exact_arithmetic = traits.cpu,
            .extended = extended,
            .mask = args.mask != nullptr,
            .type = args.dtype};
  }
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
  // Strides and sizes, for PlainPush and ExtendedShape.
  template <typename Shape>
  void put_shape(Shape& shape) const;
  template <typename Index>
  ExtendedShape<Index> extended_shape() const;
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
