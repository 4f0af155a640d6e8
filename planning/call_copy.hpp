// A call that outlives its caller: a copy of an operation's arguments and of all that they point to, for graphs of
// backends that compute from arguments.
//
// How arguments are copied follows from the declaration of their structure. A `const Buffer*` is an operand, a span
// counts what it points to, and members that are structures are copied likewise. A structure with other pointers
// declares how many elements each points to; without that it does not compile as an operation's arguments:
//
//   auto arrays() { return std::tuple(counted(shape, rank), counted(order, rank)); }
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "planning/buffer.hpp"
#include "planning/fields.hpp"

namespace tuff {

class Operation;
struct OperationInfo;

// A pointer of an arguments structure, and the number of elements there.
template <typename T>
struct Counted {
  const T** pointer;
  uint64_t count;
};
template <typename T>
Counted<T> counted(const T*& pointer, uint64_t count) {
  return {&pointer, count};
}

class CallCopy {
 public:
  // The arguments have been checked.
  explicit CallCopy(const Operation& operation);
  CallCopy(const CallCopy&) = delete;
  CallCopy& operator=(const CallCopy&) = delete;

  // Refers to this object.
  Operation operation() const;

  struct Operand {
    Buffer buffer;  // the call uses what this is at the time
    bool fixed;     // in a list that devices read from memory, so that graphs do not replace it
  };
  std::deque<Operand>& operands() { return operands_; }

  // For copying arguments.
  template <typename Args>
  const Args* arguments(const Args& args) {
    static_assert(std::is_trivially_copyable_v<Args>);
    Args* const copy = const_cast<Args*>(array(&args, 1));
    if constexpr (requires { args.fixed_lists(); }) fixed_lists_ = args.fixed_lists();
    pointees(*copy);
    return copy;
  }
  const Buffer* operand(const Buffer* buffer, bool fixed = false);
  template <typename T>
  const T* array(const T* from, uint64_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (from == nullptr) return nullptr;
    T* const to = static_cast<T*>(memory_.allocate(std::max<uint64_t>(count, 1) * sizeof(T), alignof(T)));
    std::uninitialized_copy_n(from, count, to);
    return to;
  }
  void keep(std::shared_ptr<const void> owner) { owners_.push_back(std::move(owner)); }

 private:
  template <typename T>
  struct IsList : std::false_type {};
  template <typename T>
  struct IsList<std::span<const T>> : std::true_type {};
  template <typename T>
  struct IsArray : std::false_type {};
  template <typename T, size_t n>
  struct IsArray<std::array<T, n>> : std::true_type {};

  // What only arrays() can count.
  template <typename T>
  static constexpr bool kUncounted = std::is_pointer_v<T> && !std::is_same_v<T, const Buffer*>;
  template <typename... T>
  static constexpr size_t uncounted(fields::List<T...>) {
    return (size_t{0} + ... + size_t{kUncounted<T>});
  }

  // Replaces the pointers of a copied structure.
  template <typename T>
  void pointees(T& copy) {
    if constexpr (requires { copy.copy_pointees(*this); }) {
      copy.copy_pointees(*this);
    } else {
      fields::use(copy, [this](auto&... members) { (member(members), ...); });
      constexpr size_t kPointers = uncounted(fields::types<T>());
      if constexpr (kPointers != 0) {
        const auto arrays = copy.arrays();
        static_assert(std::tuple_size_v<decltype(arrays)> == kPointers, "arrays() counts each pointer but operands");
        std::apply([this](const auto&... each) { (list(*each.pointer, each.count), ...); }, arrays);
      }
    }
  }
  template <typename T>
  void member(T& member) {
    if constexpr (std::is_same_v<T, const Buffer*>) {
      member = operand(member);
    } else if constexpr (IsList<T>::value) {
      auto* first = member.data();
      list(first, member.size());
      member = T(first, member.size());
    } else if constexpr (IsArray<T>::value) {
      for (auto& element : member) this->member(element);
    } else if constexpr (std::is_class_v<T>) {
      pointees(member);
    }
  }
  template <typename T>
  void list(const T*& first, uint64_t count) {
    static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, const Buffer*>);
    if constexpr (std::is_arithmetic_v<T>) {
      first = array(first, count);
    } else {
      if (first == nullptr) return;
      const auto to = const_cast<const Buffer**>(array(first, count));
      for (uint64_t i = 0; i < count; ++i) to[i] = operand(to[i], fixed_lists_);
      first = to;
    }
  }

  const OperationInfo& info_;
  std::pmr::monotonic_buffer_resource memory_{512};
  std::deque<Operand> operands_;
  std::vector<std::shared_ptr<const void>> owners_;
  bool fixed_lists_ = false;
  const void* args_ = nullptr;
};

}  // namespace tuff
