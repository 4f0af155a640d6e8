// One launch of a kernel: its operands with their byte ranges, its parameters and its workgroup counts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "planning/buffer.hpp"
#include "planning/device_traits.hpp"
#include "planning/kernel_request.hpp"

namespace tuff {

enum class Access : uint8_t { read = 1, write = 2, read_write = 3 };

// One launch. Operand i is slot i of the shader (TUFF_READ(i, …)). In the shader's push block, the parameters
// follow TUFF_BASES, which takes 8 bytes per operand.
class Dispatch {
 public:
  static constexpr uint32_t kMaxOperands = 11, kMaxPushBytes = 128;
  static constexpr uint32_t kMaxSlots = kMaxOperands + 1;  // plus the table for operands with one buffer per matrix
  static_assert(kMaxSlots <= 16);                          // KernelForm::texels
  struct Operand {
    const Buffer* buffer;  // null: the shader never accesses it
    uint64_t offset;       // bytes, relative to the buffer
    uint64_t bytes;        // the range that may be accessed, for hazards and descriptors; 0 without a buffer
    Access access;
    const Buffer* const* each = nullptr;   // if not null: one buffer per matrix of a batch, in place of `buffer`
    const uint64_t* each_bytes = nullptr;  // if not null: the range of each of them, of which `bytes` is the largest

    // The range that may be accessed of the buffer of matrix i.
    uint64_t bytes_of(uint32_t i) const { return each_bytes != nullptr ? each_bytes[i] : bytes; }
  };

  explicit Dispatch(const char* label) : label_(label) {}

  Dispatch& operand(const Buffer* buffer, uint64_t offset, uint64_t bytes, Access access) {
    require_room(operand_count_, kMaxOperands, "operands");
    operands_[operand_count_++] = {buffer, offset, buffer == nullptr ? 0 : bytes, access};
    far_ = far_ || bytes > kFar;
    return *this;
  }
  // An operand with one buffer per matrix, each accessed in its first `bytes`. `count` is the same for all such
  // operands of a dispatch and at most kMaxEach. The kernel request needs define_each(); prelude.glsl describes the
  // shader side.
  static constexpr uint32_t kMaxEach = 8192, kMaxEachOperands = 5;
  Dispatch& operand_each(const Buffer* const* buffers, uint64_t count, uint64_t bytes, Access access) {
    return operand_each(buffers, count, bytes, nullptr, access);
  }
  // The same with a range for each buffer, none of them empty.
  Dispatch& operand_each(const Buffer* const* buffers, uint64_t count, const uint64_t* bytes, Access access) {
    return operand_each(buffers, count, *std::max_element(bytes, bytes + count), bytes, access);
  }
  template <typename T>
  Dispatch& push(const T& parameters) {
    static_assert(std::is_trivially_copyable_v<T>);
    static_assert(sizeof(T) <= kMaxPushBytes);
    std::memcpy(push_.data(), &parameters, sizeof(T));
    push_bytes_ = sizeof(T);
    return *this;
  }
  Dispatch& groups(uint32_t x, uint32_t y = 1, uint32_t z = 1) {
    groups_ = {x, y, z};
    return *this;
  }
  // Any number of workgroups in one dimension, spread over x and y. The number launched may exceed the total, so the
  // shader takes its index from tuff_group() and must return at once if that is not below the total.
  Dispatch& groups_linear(uint64_t total, const DeviceTraits& traits);
  // The amount of work, for deciding when to submit: bytes moved and arithmetic operations.
  Dispatch& work(double bytes, double operations) {
    bytes_ = bytes;
    operations_ = operations;
    return *this;
  }

  // The name of the planner's variant, for profiles.
  Dispatch& variant(const char* name) {
    variant_ = name;
    return *this;
  }

  const char* label() const { return label_; }
  const char* variant() const { return variant_; }
  const Operand* operands() const { return operands_.data(); }
  uint32_t operand_count() const { return operand_count_; }
  uint32_t slots() const { return operand_count_ + (each_ != 0 ? 1 : 0); }  // with the table
  uint32_t each() const { return each_; }              // one bit per operand that has one buffer per matrix
  uint32_t each_count() const { return each_count_; }  // number of matrices
  uint32_t each_operands() const { return each_operands_; }
  const std::byte* push_data() const { return push_.data(); }
  uint32_t push_bytes() const { return push_bytes_; }
  const std::array<uint32_t, 3>& group_counts() const { return groups_; }
  bool group_rows() const { return group_rows_; }
  // Some operand is larger than 4 GiB.
  bool is_far() const { return far_; }
  double bytes() const { return bytes_; }
  double operations() const { return operations_; }

 private:
  static constexpr uint64_t kFar = uint64_t{1} << 32;

  Dispatch& operand_each(const Buffer* const* buffers, uint64_t count, uint64_t bytes, const uint64_t* each_bytes,
                         Access access) {
    require_room(operand_count_, kMaxOperands, "operands");
    require_room(each_operands_++, kMaxEachOperands, "operands with one buffer per matrix");
    if (count > kMaxEach)
      fail(TUFF_ERROR_INTERNAL, "{} has {} matrices, at most {} are allowed", label_, count, kMaxEach);
    each_ |= 1u << operand_count_;
    each_count_ = static_cast<uint32_t>(count);
    operands_[operand_count_++] = {nullptr, 0, bytes, access, buffers, each_bytes};
    far_ = far_ || bytes > kFar;
    return *this;
  }

  const char* label_;
  const char* variant_ = "";
  // Initialised only up to their counts.
  std::array<Operand, kMaxOperands> operands_;
  std::array<std::byte, kMaxPushBytes> push_;
  std::array<uint32_t, 3> groups_{1, 1, 1};
  uint32_t operand_count_ = 0, push_bytes_ = 0, each_ = 0, each_count_ = 0, each_operands_ = 0;
  bool group_rows_ = false, far_ = false;
  double bytes_ = 0, operations_ = 0;
};

// The form of a kernel for a dispatch that binds its operands in this way.
inline KernelForm form_of(const KernelRequest& kernel, const Dispatch& dispatch, bool addresses, uint64_t texels = 0) {
  const bool far = addresses && dispatch.is_far() && !kernel.is_wide() && !kernel.source().native();
  return {dispatch.slots(), addresses, dispatch.group_rows(), far, texels};
}

// Adds the defines for operands with one buffer per matrix. Call it after all operands have been added.
inline void define_each(KernelRequest& request, const Dispatch& dispatch) {
  if (dispatch.each() == 0) return;
  request.define("TUFF_EACH", dispatch.each()).define("TUFF_TABLE", dispatch.operand_count());
}

}  // namespace tuff
