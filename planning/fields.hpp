// The members of an aggregate, without naming them: what is done with every argument of a call follows from the
// declaration of its structure.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace tuff {
namespace fields {

inline constexpr size_t kMax = 48;

// Initialises any member.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

template <size_t>
using AnythingAt = Anything;
template <typename T, size_t... i>
constexpr bool has_at_least(std::index_sequence<i...>) {
  return requires { T{AnythingAt<i>{}...}; };
}
template <typename T, size_t n = 0>
constexpr size_t count() {
  if constexpr (n > kMax || !has_at_least<T>(std::make_index_sequence<n + 1>())) {
    return n;
  } else {
    return count<T, n + 1>();
  }
}

#define TUFF_FIELDS_1 f1
#define TUFF_FIELDS_2 TUFF_FIELDS_1, f2
#define TUFF_FIELDS_3 TUFF_FIELDS_2, f3
#define TUFF_FIELDS_4 TUFF_FIELDS_3, f4
#define TUFF_FIELDS_5 TUFF_FIELDS_4, f5
#define TUFF_FIELDS_6 TUFF_FIELDS_5, f6
#define TUFF_FIELDS_7 TUFF_FIELDS_6, f7
#define TUFF_FIELDS_8 TUFF_FIELDS_7, f8
#define TUFF_FIELDS_9 TUFF_FIELDS_8, f9
#define TUFF_FIELDS_10 TUFF_FIELDS_9, f10
#define TUFF_FIELDS_11 TUFF_FIELDS_10, f11
#define TUFF_FIELDS_12 TUFF_FIELDS_11, f12
#define TUFF_FIELDS_13 TUFF_FIELDS_12, f13
#define TUFF_FIELDS_14 TUFF_FIELDS_13, f14
#define TUFF_FIELDS_15 TUFF_FIELDS_14, f15
#define TUFF_FIELDS_16 TUFF_FIELDS_15, f16
#define TUFF_FIELDS_17 TUFF_FIELDS_16, f17
#define TUFF_FIELDS_18 TUFF_FIELDS_17, f18
#define TUFF_FIELDS_19 TUFF_FIELDS_18, f19
#define TUFF_FIELDS_20 TUFF_FIELDS_19, f20
#define TUFF_FIELDS_21 TUFF_FIELDS_20, f21
#define TUFF_FIELDS_22 TUFF_FIELDS_21, f22
#define TUFF_FIELDS_23 TUFF_FIELDS_22, f23
#define TUFF_FIELDS_24 TUFF_FIELDS_23, f24
#define TUFF_FIELDS_25 TUFF_FIELDS_24, f25
#define TUFF_FIELDS_26 TUFF_FIELDS_25, f26
#define TUFF_FIELDS_27 TUFF_FIELDS_26, f27
#define TUFF_FIELDS_28 TUFF_FIELDS_27, f28
#define TUFF_FIELDS_29 TUFF_FIELDS_28, f29
#define TUFF_FIELDS_30 TUFF_FIELDS_29, f30
#define TUFF_FIELDS_31 TUFF_FIELDS_30, f31
#define TUFF_FIELDS_32 TUFF_FIELDS_31, f32
#define TUFF_FIELDS_33 TUFF_FIELDS_32, f33
#define TUFF_FIELDS_34 TUFF_FIELDS_33, f34
#define TUFF_FIELDS_35 TUFF_FIELDS_34, f35
#define TUFF_FIELDS_36 TUFF_FIELDS_35, f36
#define TUFF_FIELDS_37 TUFF_FIELDS_36, f37
#define TUFF_FIELDS_38 TUFF_FIELDS_37, f38
#define TUFF_FIELDS_39 TUFF_FIELDS_38, f39
#define TUFF_FIELDS_40 TUFF_FIELDS_39, f40
#define TUFF_FIELDS_41 TUFF_FIELDS_40, f41
#define TUFF_FIELDS_42 TUFF_FIELDS_41, f42
#define TUFF_FIELDS_43 TUFF_FIELDS_42, f43
#define TUFF_FIELDS_44 TUFF_FIELDS_43, f44
#define TUFF_FIELDS_45 TUFF_FIELDS_44, f45
#define TUFF_FIELDS_46 TUFF_FIELDS_45, f46
#define TUFF_FIELDS_47 TUFF_FIELDS_46, f47
#define TUFF_FIELDS_48 TUFF_FIELDS_47, f48

// Calls use(member, member, …) with all members of the object.
template <typename T, typename Use>
constexpr decltype(auto) use(T& object, const Use& use) {
  constexpr size_t n = count<std::remove_cv_t<T>>();
  static_assert(n >= 1 && n <= kMax, "an aggregate of 1 to 48 members");
#define TUFF_FIELDS_CASE(N)           \
  if constexpr (n == N) {             \
    auto& [TUFF_FIELDS_##N] = object; \
    return use(TUFF_FIELDS_##N);      \
  }
  TUFF_FIELDS_CASE(1)
  TUFF_FIELDS_CASE(2)
  TUFF_FIELDS_CASE(3)
  TUFF_FIELDS_CASE(4)
  TUFF_FIELDS_CASE(5)
  TUFF_FIELDS_CASE(6)
  TUFF_FIELDS_CASE(7)
  TUFF_FIELDS_CASE(8)
  TUFF_FIELDS_CASE(9)
  TUFF_FIELDS_CASE(10)
  TUFF_FIELDS_CASE(11)
  TUFF_FIELDS_CASE(12)
  TUFF_FIELDS_CASE(13)
  TUFF_FIELDS_CASE(14)
  TUFF_FIELDS_CASE(15)
  TUFF_FIELDS_CASE(16)
  TUFF_FIELDS_CASE(17)
  TUFF_FIELDS_CASE(18)
  TUFF_FIELDS_CASE(19)
  TUFF_FIELDS_CASE(20)
  TUFF_FIELDS_CASE(21)
  TUFF_FIELDS_CASE(22)
  TUFF_FIELDS_CASE(23)
  TUFF_FIELDS_CASE(24)
  TUFF_FIELDS_CASE(25)
  TUFF_FIELDS_CASE(26)
  TUFF_FIELDS_CASE(27)
  TUFF_FIELDS_CASE(28)
  TUFF_FIELDS_CASE(29)
  TUFF_FIELDS_CASE(30)
  TUFF_FIELDS_CASE(31)
  TUFF_FIELDS_CASE(32)
  TUFF_FIELDS_CASE(33)
  TUFF_FIELDS_CASE(34)
  TUFF_FIELDS_CASE(35)
  TUFF_FIELDS_CASE(36)
  TUFF_FIELDS_CASE(37)
  TUFF_FIELDS_CASE(38)
  TUFF_FIELDS_CASE(39)
  TUFF_FIELDS_CASE(40)
  TUFF_FIELDS_CASE(41)
  TUFF_FIELDS_CASE(42)
  TUFF_FIELDS_CASE(43)
  TUFF_FIELDS_CASE(44)
  TUFF_FIELDS_CASE(45)
  TUFF_FIELDS_CASE(46)
  TUFF_FIELDS_CASE(47)
  TUFF_FIELDS_CASE(48)
#undef TUFF_FIELDS_CASE
}

#undef TUFF_FIELDS_1
#undef TUFF_FIELDS_2
#undef TUFF_FIELDS_3
#undef TUFF_FIELDS_4
#undef TUFF_FIELDS_5
#undef TUFF_FIELDS_6
#undef TUFF_FIELDS_7
#undef TUFF_FIELDS_8
#undef TUFF_FIELDS_9
#undef TUFF_FIELDS_10
#undef TUFF_FIELDS_11
#undef TUFF_FIELDS_12
#undef TUFF_FIELDS_13
#undef TUFF_FIELDS_14
#undef TUFF_FIELDS_15
#undef TUFF_FIELDS_16
#undef TUFF_FIELDS_17
#undef TUFF_FIELDS_18
#undef TUFF_FIELDS_19
#undef TUFF_FIELDS_20
#undef TUFF_FIELDS_21
#undef TUFF_FIELDS_22
#undef TUFF_FIELDS_23
#undef TUFF_FIELDS_24
#undef TUFF_FIELDS_25
#undef TUFF_FIELDS_26
#undef TUFF_FIELDS_27
#undef TUFF_FIELDS_28
#undef TUFF_FIELDS_29
#undef TUFF_FIELDS_30
#undef TUFF_FIELDS_31
#undef TUFF_FIELDS_32
#undef TUFF_FIELDS_33
#undef TUFF_FIELDS_34
#undef TUFF_FIELDS_35
#undef TUFF_FIELDS_36
#undef TUFF_FIELDS_37
#undef TUFF_FIELDS_38
#undef TUFF_FIELDS_39
#undef TUFF_FIELDS_40
#undef TUFF_FIELDS_41
#undef TUFF_FIELDS_42
#undef TUFF_FIELDS_43
#undef TUFF_FIELDS_44
#undef TUFF_FIELDS_45
#undef TUFF_FIELDS_46
#undef TUFF_FIELDS_47
#undef TUFF_FIELDS_48

template <typename... T>
struct List {};

// The types of the members.
struct Types {
  template <typename... T>
  List<T...> operator()(T&...) const;
};
template <typename T>
using types = decltype(use(std::declval<T&>(), Types()));

}  // namespace fields
}  // namespace tuff
