#include "kernels/random/variates.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"

namespace tuff {
namespace {

struct Parameter {
  const char* name;
  int32_t type;
};
struct Variate {
  int32_t number;
  const char* name;
  ElementTypes types;
  uint32_t count;
  Parameter parameters[3];
};
constexpr Variate kVariates[] = {
    {TUFF_VARIATES_GAMMA, "gamma", {TUFF_F32}, 1, {{"shape", TUFF_F32}}},
    {TUFF_VARIATES_LOG_GAMMA, "log_gamma", {TUFF_F32}, 1, {{"shape", TUFF_F32}}},
    {TUFF_VARIATES_VONMISES, "vonmises", {TUFF_F32}, 1, {{"concentration", TUFF_F32}}},
    {TUFF_VARIATES_POISSON, "poisson", {TUFF_I32}, 1, {{"rate", TUFF_F32}}},
    {TUFF_VARIATES_BINOMIAL, "binomial", {TUFF_I32}, 2, {{"trials", TUFF_I32}, {"probability", TUFF_F32}}},
    {TUFF_VARIATES_HYPERGEOMETRIC,
     "hypergeometric",
     {TUFF_I32},
     3,
     {{"good", TUFF_I32}, {"bad", TUFF_I32}, {"draws", TUFF_I32}}},
    {TUFF_VARIATES_ZIPF, "zipf", {TUFF_I32}, 1, {{"exponent", TUFF_F32}}},
};

constexpr const char* kBufferNames[] = {"first", "second", "third"};
constexpr const char* kValueNames[] = {"first_value", "second_value", "third_value"};

const Variate& variate_of(int32_t number) {
  for (const Variate& entry : kVariates) {
    if (entry.number == number) return entry;
  }
  fail(TUFF_ERROR_INVALID_ARGUMENT, "distribution is {}, needs a TUFF_VARIATES_*", number);
}

void check_value(const Parameter& parameter, const char* field, double value) {
  if (parameter.type == TUFF_I32) {
    require(value >= 0 && value <= INT32_MAX && value == std::floor(value), "{} is {}: {} is an integer from 0 to {}",
            field, value, parameter.name, INT32_MAX);
  } else {
    require(std::isfinite(static_cast<float>(value)), "{} is {}: {} is a finite number in the range of f32", field,
            value, parameter.name);
  }
}

CallText describe(const VariatesArgs& args) {
  return {fmt::format("{} n={}", variate_of(args.distribution).name, args.n), args.dtype};
}

}  // namespace

uint32_t variates::parameters_of(int32_t distribution) { return variate_of(distribution).count; }

std::array<uint32_t, 3> variates::bits_of(const VariatesArgs& args) {
  std::array<uint32_t, 3> bits{};
  const Variate& distribution = variate_of(args.distribution);
  for (size_t p = 0; p < distribution.count; ++p) {
    if (args.parameters[p] != nullptr) continue;
    bits[p] = distribution.parameters[p].type == TUFF_F32 ? std::bit_cast<uint32_t>(static_cast<float>(args.values[p]))
                                                          : static_cast<uint32_t>(args.values[p]);
  }
  return bits;
}

void check_variates(const VariatesArgs& args) {
  const Variate& distribution = variate_of(args.distribution);
  check_type(args.dtype, distribution.types, distribution.name);
  const auto detail = [&] { return fmt::format("n={}", args.n); };
  check_operand(args.output, "output", args.n, args.dtype, detail);
  for (size_t p = 0; p < 3; ++p) {
    const Buffer* given = args.parameters[p];
    if (p >= distribution.count) {
      require(given == nullptr, "{} is not null, and {} has {} parameter{}", kBufferNames[p], distribution.name,
              distribution.count, distribution.count == 1 ? "" : "s");
    } else if (given != nullptr) {
      check_operand(given, kBufferNames[p], args.n, distribution.parameters[p].type, detail);
    } else {
      check_value(distribution.parameters[p], kValueNames[p], args.values[p]);
    }
  }
  if (args.n == 0) return;
  constexpr uint64_t kMax = uint64_t{1} << 56;
  require(args.n <= kMax && args.offset <= kMax - args.n, "offset is {} and n is {}, their sum exceeds 2^56",
          args.offset, args.n);
  for (size_t p = 0; p < distribution.count; ++p) {
    if (args.parameters[p] == nullptr) continue;
    check_overlap(args.output, "output", 4 * args.n, args.parameters[p], kBufferNames[p], 4 * args.n, true);
  }
}

namespace operations {
const OperationOf<VariatesArgs> variates =
    define_operation<VariatesArgs, check_variates, host_variates, record_variates, describe>("variates",
                                                                                             {TUFF_F32, TUFF_I32});
}  // namespace operations

}  // namespace tuff
