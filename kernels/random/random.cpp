#include "kernels/random/random.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/common/check.hpp"
#include "kernels/common/describe.hpp"

namespace tuff {
namespace {

constexpr ElementTypes kIntegers = {TUFF_I32, TUFF_U32, TUFF_I8, TUFF_U8};

struct Distribution {
  int32_t number;
  const char* name;
  ElementTypes types;
};
constexpr Distribution kDistributions[] = {
    {TUFF_RANDOM_BITS, "bits", kIntegers},
    {TUFF_RANDOM_INTEGERS, "integers", kIntegers},
    {TUFF_RANDOM_BERNOULLI, "bernoulli", kIntegers | kFloatTypes},
    {TUFF_RANDOM_UNIFORM, "uniform", kFloatTypes},
    {TUFF_RANDOM_NORMAL, "normal", kFloatTypes},
    {TUFF_RANDOM_EXPONENTIAL, "exponential", kFloatTypes},
};

const Distribution& distribution_of(int32_t number) {
  for (const Distribution& entry : kDistributions) {
    if (entry.number == number) return entry;
  }
  fail(TUFF_ERROR_INVALID_ARGUMENT, "distribution is {}, needs a TUFF_RANDOM_*", number);
}

struct Range {
  int64_t least, most;
};
Range range_of(int32_t dtype) {
  switch (dtype) {
    case TUFF_I8: return {-128, 127};
    case TUFF_U8: return {0, 255};
    case TUFF_U32: return {0, 0xffffffff};
    default: return {INT32_MIN, INT32_MAX};
  }
}

void check_parameters(const RandomArgs& args) {
  const auto finite = [](double value, const char* name) {
    require(std::isfinite(static_cast<float>(value)), "{} is {}, needs a finite number in the range of f32", name,
            value);
  };
  switch (args.distribution) {
    case TUFF_RANDOM_UNIFORM:
      finite(args.low, "low"), finite(args.high, "high");
      require(args.low <= args.high, "low is {} and high is {}, needs low <= high", args.low, args.high);
      finite(args.high - args.low, "high - low");
      break;
    case TUFF_RANDOM_NORMAL:
      finite(args.mean, "mean"), finite(args.deviation, "deviation");
      require(args.deviation >= 0, "deviation is {}, needs at least 0", args.deviation);
      break;
    case TUFF_RANDOM_EXPONENTIAL:
      finite(args.scale, "scale");
      require(args.scale >= 0, "scale is {}, needs at least 0", args.scale);
      break;
    case TUFF_RANDOM_BERNOULLI:
      require(args.probability >= 0 && args.probability <= 1, "probability is {}, needs 0 to 1", args.probability);
      break;
    case TUFF_RANDOM_INTEGERS: {
      const Range range = range_of(args.dtype);
      require(args.least <= args.most, "least is {} and most is {}, needs least <= most", args.least, args.most);
      require(args.least >= range.least && args.least <= range.most, "least is {}, {} holds {} to {}", args.least,
              dtype_name(args.dtype), range.least, range.most);
      require(args.most <= range.most, "most is {}, {} holds {} to {}", args.most, dtype_name(args.dtype), range.least,
              range.most);
      break;
    }
    default: break;
  }
}

CallText describe(const RandomArgs& args) {
  return {fmt::format("{} {} n={}", dtype_name(args.dtype), distribution_of(args.distribution).name, args.n),
          args.dtype};
}

}  // namespace

random::Numbers random::numbers_of(const RandomArgs& args) {
  switch (args.distribution) {
    case TUFF_RANDOM_UNIFORM: {
      const double high = args.low == 0 && args.high == 0 ? 1 : args.high;
      return {static_cast<float>(args.low), static_cast<float>(high - args.low), 0, 0, 0};
    }
    case TUFF_RANDOM_NORMAL:
      return {static_cast<float>(args.mean), static_cast<float>(args.deviation != 0 ? args.deviation : 1), 0, 0, 0};
    case TUFF_RANDOM_EXPONENTIAL: return {0, static_cast<float>(args.scale != 0 ? args.scale : 1), 0, 0, 0};
    case TUFF_RANDOM_BERNOULLI: {
      // 2^32 p, rounded to an integer. 2^32 itself does not fit a word.
      const double threshold = std::round(std::ldexp(args.probability, 32));
      const bool all = threshold == 0x1p32;
      return {0, 0, 0, all ? 1u : 0u, all ? 0 : static_cast<uint32_t>(threshold)};
    }
    case TUFF_RANDOM_INTEGERS:
      return {0, 0, static_cast<uint32_t>(args.least), static_cast<uint32_t>(args.most - args.least + 1), 0};
    default: return {};
  }
}

void check_random(const RandomArgs& args) {
  const Distribution& distribution = distribution_of(args.distribution);
  check_type(args.dtype, distribution.types, distribution.name);
  check_parameters(args);
  check_operand(args.output, "output", args.n, args.dtype, [&] { return fmt::format("n={}", args.n); });
  if (args.n == 0) return;
  require(args.offset <= UINT64_MAX - args.n, "offset is {} and n is {}, their sum exceeds 2^64 - 1", args.offset,
          args.n);
}

namespace operations {
const OperationOf<RandomArgs> random = define_operation<RandomArgs, check_random, host_random, record_random, describe>(
    "random", kIntegers | kFloatTypes, true);
}  // namespace operations

}  // namespace tuff
