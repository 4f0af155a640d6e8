// Cast: argument check and reference implementation, in double precision, which represents every number of every type
// except integers of 64 bits.
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/shape/shape.hpp"

namespace tuff {
namespace {

template <typename T>
T converted(double value) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    if (value >= std::ldexp(1.0, Limits::digits)) return Limits::max();
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    return static_cast<T>(value);
  } else {
    return T(value);
  }
}

// An integer of 64 bits as a double. If it does not fit, the last bit of its significand is set ("round to odd"), so
// that rounding the double to fewer digits gives the same as rounding the integer once.
template <typename From>
double rounded_to_odd(From value) {
  const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  int lost = 0;  // bits
  while (magnitude >> lost >> 53 != 0) ++lost;
  const uint64_t rest = magnitude & ((uint64_t{1} << lost) - 1);
  const double result = std::ldexp(static_cast<double>((magnitude >> lost) | (rest != 0 ? 1u : 0u)), lost);
  return value < 0 ? -result : result;
}

template <typename To, typename From>
To converted_from(From value) {
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    if (std::cmp_greater(value, std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else if constexpr (std::is_integral_v<From> && std::is_floating_point_v<To>) {
    return static_cast<To>(value);  // rounds once
  } else if constexpr (std::is_integral_v<From> && sizeof(From) == 8) {
    return converted<To>(rounded_to_odd(value));
  } else {
    return converted<To>(static_cast<double>(value));
  }
}

}  // namespace

void check_cast(const CastArgs& args) {
  check_known_type(args.from, "input_type");
  check_known_type(args.to, "output_type");
  const uint64_t from = dtype_size(args.from), to = dtype_size(args.to);
  if (args.n == 0) return;
  const auto detail = [&] { return fmt::format("n={}", args.n); };
  const uint64_t input_bytes = checked_mul(args.n, from, "n"), output_bytes = checked_mul(args.n, to, "n");
  check_operand(args.input, "input", args.n, args.from, detail);
  check_operand(args.output, "output", args.n, args.to, detail);
  check_overlap(args.output, "output", output_bytes, args.input, "input", input_bytes, true);
}

CastParts cast_parts(const CastArgs& args) {
  const bool from = kComplexTypes.has(args.from), to = kComplexTypes.has(args.to);
  if (from && to) return {part_type(args.from), part_type(args.to), 1, 1, 2 * args.n};
  return {part_type(args.from), part_type(args.to), from ? 2u : 1u, to ? 2u : 1u, args.n};
}

void host_cast(const CastArgs& args) {
  if (args.n == 0) return;
  if (args.from == args.to) {
    std::memmove(args.output->host<std::byte>(), args.input->host<std::byte>(), args.n * dtype_size(args.to));
    return;
  }
  const CastParts parts = cast_parts(args);
  with_any_type(parts.from, [&]<typename From>(From) {
    with_any_type(parts.to, [&]<typename To>(To) {
      const From* input = args.input->host<From>();
      To* output = args.output->host<To>();
      for (uint64_t i = 0; i < parts.n; ++i) {
        To value = converted_from<To>(input[i * parts.from_step]);
        if constexpr (std::is_same_v<To, Bool>) {
          if (parts.from_step == 2) value.bits |= converted_from<To>(input[2 * i + 1]).bits;
        }
        output[i * parts.to_step] = value;
        if (parts.to_step == 2) output[2 * i + 1] = converted<To>(0.0);
      }
    });
  });
}

}  // namespace tuff
