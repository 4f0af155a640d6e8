// Cast: argument check and reference implementation, in double precision, which represents every number of every type.
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/shape/shape.hpp"

namespace tuff {
namespace {

template <typename T>
T converted(double value) {
  if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return 0;
    constexpr double kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
    return static_cast<T>(std::fmin(std::fmax(std::trunc(value), kMin), kMax));
  } else {
    return T(value);
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

void host_cast(const CastArgs& args) {
  if (args.n == 0) return;
  if (args.from == args.to) {
    std::memmove(args.output->host<std::byte>(), args.input->host<std::byte>(), args.n * dtype_size(args.to));
    return;
  }
  with_element_type(args.from, [&]<typename From>(From) {
    with_element_type(args.to, [&]<typename To>(To) {
      const From* input = args.input->host<From>();
      To* output = args.output->host<To>();
      for (uint64_t i = 0; i < args.n; ++i) output[i] = converted<To>(static_cast<double>(input[i]));
    });
  });
}

}  // namespace tuff
