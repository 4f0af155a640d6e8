#include "kernels/random/dropout.hpp"

#include <fmt/format.h>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"

namespace tuff {

random::Numbers random::drops(const DropoutArgs& args) {
  RandomArgs bernoulli{};
  bernoulli.distribution = TUFF_RANDOM_BERNOULLI, bernoulli.probability = args.probability;
  return numbers_of(bernoulli);
}

float random::factor_of(const DropoutArgs& args) {
  return args.probability < 1 ? static_cast<float>(1 / (1 - args.probability)) : 0.0f;
}

void check_dropout(const DropoutArgs& args) {
  check_type(args.dtype, kFloatTypes, "dropout");
  require(args.probability >= 0 && args.probability <= 1, "probability is {}, needs 0 to 1", args.probability);
  const auto detail = [&] { return fmt::format("n={}", args.n); };
  check_operand(args.input, "input", args.n, args.dtype, detail);
  check_operand(args.output, "output", args.n, args.dtype, detail);
  if (args.mask != nullptr) check_operand(args.mask, "mask", args.n, TUFF_U8, detail);
  if (args.n == 0) return;
  require(args.offset <= UINT64_MAX - args.n, "offset is {} and n is {}, their sum exceeds 2^64 - 1", args.offset,
          args.n);
  const uint64_t bytes = args.n * dtype_size(args.dtype);
  check_overlap(args.output, "output", bytes, args.input, "input", bytes, true);
  if (args.mask == nullptr) return;
  check_overlap(args.mask, "mask", args.n, args.input, "input", bytes, false);
  check_overlap(args.mask, "mask", args.n, args.output, "output", bytes, false);
}

void host_dropout(const DropoutArgs& args) {
  if (args.n == 0) return;
  const random::Numbers numbers = random::drops(args);
  const float factor = random::factor_of(args);
  uint8_t* mask = args.mask != nullptr ? args.mask->host<uint8_t>() : nullptr;
  with_float_type(args.dtype, [&]<typename T>(T) {
    const T* input = args.input->host<T>();
    T* output = args.output->host<T>();
    std::array<uint32_t, 4> words{};
    for (uint64_t i = 0; i < args.n; ++i) {
      const uint64_t index = args.offset + i;
      if (i == 0 || index % 4 == 0) words = random::block_of(args.seed, args.sequence, index / 4);
      const bool dropped = numbers.range == 1 || words[index % 4] < numbers.threshold;
      output[i] = T(dropped ? 0.0f : static_cast<float>(input[i]) * factor);
      if (mask != nullptr) mask[i] = dropped ? 0 : 1;
    }
  });
}

namespace {
CallText describe(const DropoutArgs& args) {
  return {fmt::format("{} p={}{} n={}", dtype_name(args.dtype), args.probability,
                      args.mask != nullptr ? " with mask" : "", args.n),
          args.dtype};
}
}  // namespace

namespace operations {
const OperationOf<DropoutArgs> dropout =
    define_operation<DropoutArgs, check_dropout, host_dropout, record_dropout, describe>("dropout", kFloatTypes);
}  // namespace operations

}  // namespace tuff
