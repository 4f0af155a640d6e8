// What checks of kernels' reach share (reach.hpp).
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "planners/memory.hpp"
#include "planning/arithmetic.hpp"
#include "planning/dispatch.hpp"
#include "planning/element_type.hpp"

namespace tuff_test::reach {

using tuff::ceil_div;

inline uint64_t size_of(int64_t dtype) { return tuff::dtype_size(static_cast<int32_t>(dtype)); }
inline uint64_t joined(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

class Reached {
 public:
  Reached(const tuff::KernelRequest& request, const tuff::Dispatch& dispatched, std::span<const std::byte> told,
          const tuff::DeviceTraits& traits)
      : kernel(request), dispatch(dispatched), parameters(told), device(traits) {}

  const tuff::KernelRequest& kernel;
  const tuff::Dispatch& dispatch;
  const std::span<const std::byte> parameters;
  const tuff::DeviceTraits& device;
  std::string wrong;  // what is wrong first

  template <typename Push>
  Push push() {
    Push result{};
    holds(dispatch.push_bytes() == sizeof result, "the push block has the kernel's size");
    if (wrong.empty()) std::memcpy(&result, dispatch.push_data(), sizeof result);
    return result;
  }
  int64_t define(std::string_view name) const { return kernel.value_of(name); }
  // Of a sum of elements.
  uint64_t sum_bytes() const { return define("TUFF_TYPE") == TUFF_F64 ? 8 : 4; }
  uint64_t invocations() const {
    for (uint32_t i = 0; i < kernel.constant_count(); ++i) {
      if (kernel.constants()[i].id == 0) return kernel.constants()[i].value;
    }
    return 1;
  }
  uint64_t groups() const {
    const auto& counts = dispatch.group_counts();
    return uint64_t{counts[0]} * counts[1] * counts[2];
  }

  // Where an operand begins in its allocation.
  uint64_t place(uint32_t i) const {
    const tuff::Dispatch::Operand& bound = dispatch.operands()[i];
    return bound.buffer == nullptr ? 0 : bound.buffer->offset + bound.offset;
  }
  // Of scratch memory, these bytes of an operand have been written, but for gaps of less than `gap`.
  void written(uint32_t i, uint64_t first, uint64_t bytes, uint64_t gap) {
    const tuff::Dispatch::Operand& bound = dispatch.operands()[i];
    if (bound.buffer == nullptr || !wrong.empty()) return;
    const auto& memory = dynamic_cast<const Memory&>(*bound.buffer->allocation);
    const uint64_t begin = place(i) + first;
    if (!memory.scratch || memory.written.longest_gap(begin, begin + bytes) < gap) return;
    wrong = fmt::format("reads bytes {} to {} of operand {}, some of which are not written", first, first + bytes, i);
  }
  // Whether division.glsl divides numbers up to this one.
  bool divides(uint64_t largest, uint64_t by, uint32_t multiplier, uint32_t shift) const {
    const auto divided = [&](uint64_t n) { return ((n * multiplier >> 32) + n) >> shift; };
    if (by == 0 || largest >> 31 != 0) return false;
    for (const uint64_t n : {uint64_t{0}, by - 1, by, largest / by * by, largest}) {
      if (n <= largest && divided(n) != n / by) return false;
    }
    return true;
  }

  void holds(bool condition, std::string_view text) {
    if (!condition && wrong.empty()) wrong = fmt::format("does not hold: {}", text);
  }
  // The kernel accesses an operand, if there is one, up to this byte. Copies of operands have whole rows: with their
  // last row they have `padded` bytes.
  void operand(uint32_t i, uint64_t bytes) { operand(i, bytes, bytes); }
  void operand(uint32_t i, uint64_t bytes, uint64_t padded) {
    holds(i < dispatch.operand_count(), "the kernel's operands are there");
    if (!wrong.empty()) return;
    const tuff::Dispatch::Operand& bound = dispatch.operands()[i];
    if (bound.buffer == nullptr || bound.bytes == bytes || bound.bytes == padded) return;
    wrong = fmt::format("operand {} has {} bytes, and parameters reach {}", i, bound.bytes, bytes);
  }
  // An operand is read if its old numbers count.
  void updates(uint32_t i, bool counts) {
    const tuff::Dispatch::Operand& bound = dispatch.operands()[i];
    const bool there = bound.buffer != nullptr || bound.each != nullptr;
    holds(!there || (bound.access == tuff::Access::read_write) == counts, "what is updated is read and written");
  }
  // There is a workgroup for each of so many items, if one has `each` of them.
  void covers(uint64_t items, uint64_t each) {
    if (groups() * each >= items || !wrong.empty()) return;
    wrong = fmt::format("{} workgroups of {} items for {}", groups(), each, items);
  }
  // The loop of streaming kernels: an invocation has RUN items.
  void loop(uint64_t items, uint32_t pushed_run) {
    const int64_t fixed = define("TUFF_RUN");
    covers(items, invocations() * (fixed != 0 ? static_cast<uint64_t>(fixed) : pushed_run));
  }
};

// Bytes from the first element to the last of `count` blocks of so many bytes, `stride` bytes apart.
struct Axis {
  uint64_t count, stride;
};
inline uint64_t span(std::initializer_list<Axis> axes, uint64_t block) {
  for (const Axis& axis : axes) block += (axis.count - 1) * axis.stride;
  return block;
}

// Strides that are used are multiples of 16 bytes.
inline void in_pieces(Reached& x, std::initializer_list<Axis> axes, std::string_view name) {
  for (const Axis& axis : axes) {
    if (axis.count > 1 && axis.stride % 16 != 0 && x.wrong.empty()) {
      x.wrong = fmt::format("{} has a stride of {} bytes, and is read 16 bytes at a time", name, axis.stride);
    }
  }
}

// Calls body(push) with the push block of this index type.
template <template <typename> typename Push, typename Body>
void with_push(Reached& x, const Body& body) {
  x.kernel.is_wide() ? body(x.push<Push<uint64_t>>()) : body(x.push<Push<uint32_t>>());
}

// A check of a kernel, and the tables of them, one in each file.
struct Kernel {
  std::string_view name;
  void (*check)(Reached& x);
};
std::span<const Kernel> attention_kernels();
std::span<const Kernel> gemm_kernels();
std::span<const Kernel> item_kernels();
std::span<const Kernel> linalg_kernels();
std::span<const Kernel> native_kernels();
std::span<const Kernel> row_kernels();
std::span<const Kernel> sparse_kernels();
std::span<const Kernel> streaming_kernels();

}  // namespace tuff_test::reach
