// One launch of a kernel: its operands with their byte ranges, its parameters, its workgroups.
#pragma once

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

// One launch. Operand i is slot i of the shader (TUFF_READ(i, …)). Push parameters follow the
// TUFF_BASES of the shader's push block, which take 8 bytes for each operand.
class Dispatch {
 public:
  static constexpr uint32_t kMaxOperands = 11, kMaxPushBytes = 128;
  static constexpr uint32_t kMaxSlots =
      kMaxOperands + 1;  // with the table of operands that are a buffer for each matrix
  struct Operand {
    const Buffer* buffer;  // null: the shader never touches it
    uint64_t offset;       // bytes, relative to the buffer
    uint64_t bytes;        // the range that may be touched, for hazards and descriptors
    Access access;
    const Buffer* const* each = nullptr;  // not null: a buffer for each matrix of a batch, instead
  };

  explicit Dispatch(const char* label) : label_(label) {}

  Dispatch& operand(const Buffer* buffer, uint64_t offset, uint64_t bytes, Access access) {
    require_room(operand_count_, kMaxOperands, "operands");
    operands_[operand_count_++] = {buffer, offset, bytes, access};
    return *this;
  }
  // A buffer for each of so many matrices (the same number for all such operands, kMaxEach at most), whose first
  // `bytes` may be touched. The kernel needs define_each(), and reaches them as prelude.glsl describes.
  static constexpr uint32_t kMaxEach = 8192, kMaxEachOperands = 4;
  Dispatch& operand_each(const Buffer* const* buffers, uint64_t count, uint64_t bytes, Access access) {
    require_room(operand_count_, kMaxOperands, "operands");
    require_room(each_operands_++, kMaxEachOperands, "operands of a buffer for each matrix");
    if (count > kMaxEach) fail(TUFF_ERROR_INTERNAL, "{} has {} matrices, {} is the most", label_, count, kMaxEach);
    each_ |= 1u << operand_count_;
    each_count_ = static_cast<uint32_t>(count);
    operands_[operand_count_++] = {nullptr, 0, bytes, access, buffers};
    return *this;
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
  // Any number of groups in one dimension, spread over x and y. The shader takes its number from
  // tuff_group() and must return at once if it is not below the total, which may be exceeded.
  Dispatch& groups_linear(uint64_t total, const DeviceTraits& traits);
  // What the device has to do, for deciding when to submit: bytes moved, arithmetic operations.
  Dispatch& work(double bytes, double operations) {
    bytes_ = bytes;
    operations_ = operations;
    return *this;
  }

  // The row of the planner's table that this is, for profiles.
  Dispatch& variant(const char* name) {
    variant_ = name;
    return *this;
  }

  const char* label() const { return label_; }
  const char* variant() const { return variant_; }
  const Operand* operands() const { return operands_.data(); }
  uint32_t operand_count() const { return operand_count_; }
  uint32_t each() const { return each_; }              // a bit for each operand that is a buffer for each matrix
  uint32_t each_count() const { return each_count_; }  // how many matrices
  uint32_t each_operands() const { return each_operands_; }
  const std::byte* push_data() const { return push_.data(); }
  uint32_t push_bytes() const { return push_bytes_; }
  const std::array<uint32_t, 3>& group_counts() const { return groups_; }
  bool group_rows() const { return group_rows_; }
  double bytes() const { return bytes_; }
  double operations() const { return operations_; }

 private:
  const char* label_;
  const char* variant_ = "";
  // As far as the counts go.
  std::array<Operand, kMaxOperands> operands_;
  std::array<std::byte, kMaxPushBytes> push_;
  std::array<uint32_t, 3> groups_{1, 1, 1};
  uint32_t operand_count_ = 0, push_bytes_ = 0, each_ = 0, each_count_ = 0, each_operands_ = 0;
  bool group_rows_ = false;
  double bytes_ = 0, operations_ = 0;
};

// What a kernel is compiled by whose operands may be a buffer for each matrix; once they are all there.
inline void define_each(KernelRequest& request, const Dispatch& dispatch) {
  if (dispatch.each() == 0) return;
  request.define("TUFF_EACH", dispatch.each()).define("TUFF_TABLE", dispatch.operand_count());
}

}  // namespace tuff
