// What checks of optimisers' steps, gradient norms and dropout accept at most, and one beyond; and each pair of
// operands that overlap.
#include <gtest/gtest.h>

#include <array>
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "internal/answer.hpp"
#include "internal/fake_recorder.hpp"
#include "kernels/optimizer/optimizer.hpp"
#include "kernels/random/dropout.hpp"
#include "planning/status.hpp"

namespace tuff {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
constexpr double kBeyondF32 = 4e38;

class TrainingChecks : public testing::Test {
 protected:
  TrainingChecks() {
    for (Buffer& buffer : buffers_) buffer.allocation = std::make_shared<Nowhere>(), buffer.bytes = 1 << 20;
  }
  // A step over two tensors. Tensors of each list are the first buffers, one after another.
  struct Step {
    std::vector<uint64_t> sizes = {8, 5};
    std::array<std::vector<const Buffer*>, 5> lists;  // parameters, gradients, masters, first and second moments
    OptimizerArgs args{};
  };
  Step step_of(int32_t algorithm) {
    Step step;
    for (size_t i = 0; i < step.lists.size(); ++i) step.lists[i] = {&buffers_[2 * i], &buffers_[2 * i + 1]};
    step.args.dtype = step.args.gradient_type = TUFF_F32;
    step.args.algorithm = algorithm;
    step.args.rate = 0.1, step.args.gradient_scale = 1;
    if (step.args.adaptive()) step.args.beta1 = 0.9, step.args.beta2 = 0.99, step.args.epsilon = 1e-8;
    if (!step.args.adaptive()) step.lists[3].clear(), step.lists[4].clear();
    step.args.step = 1;
    return step;
  }
  static std::string checked(Step& step) {
    OptimizerArgs& args = step.args;
    args.sizes = step.sizes;
    args.parameters = step.lists[0], args.gradients = step.lists[1], args.masters = step.lists[2];
    args.first_moments = step.lists[3], args.second_moments = step.lists[4];
    return answer([&] { check_optimizer(args); });
  }
  std::string stepped(int32_t algorithm, const std::function<void(Step&)>& change) {
    Step step = step_of(algorithm);
    change(step);
    return checked(step);
  }
  std::array<Buffer, 16> buffers_;
};

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the line of the call is what matters
#define EXPECT_ANSWER(call, word)                                  \
  {                                                                \
    const std::string answered = (call);                           \
    EXPECT_NE(answered.find(word), std::string::npos) << answered; \
  }

constexpr int32_t kSgd = TUFF_OPTIMIZER_SGD, kAdam = TUFF_OPTIMIZER_ADAM;

TEST_F(TrainingChecks, Algorithms) {
  for (const int32_t algorithm : {TUFF_OPTIMIZER_SGD, TUFF_OPTIMIZER_ADAM, TUFF_OPTIMIZER_ADAMW, TUFF_OPTIMIZER_LAMB}) {
    EXPECT_ANSWER(stepped(algorithm, [](Step&) {}), "accepted");
  }
  EXPECT_ANSWER(stepped(kSgd, [](Step& s) { s.args.algorithm = TUFF_OPTIMIZER_SGD - 1; }), "algorithm is");
  EXPECT_ANSWER(stepped(kAdam, [](Step& s) { s.args.algorithm = TUFF_OPTIMIZER_LAMB + 1; }), "algorithm is");
  EXPECT_ANSWER(stepped(kSgd, [](Step& s) { s.args.dtype = TUFF_F64; }), "optimizer_step");
  EXPECT_ANSWER(stepped(kSgd, [](Step& s) { s.args.dtype = TUFF_BF16; }), "accepted");  // gradients in f32
  EXPECT_ANSWER(stepped(kSgd, [](Step& s) { s.args.dtype = s.args.gradient_type = TUFF_BF16; }), "accepted");
  EXPECT_ANSWER(stepped(kSgd, [](Step& s) { s.args.gradient_type = TUFF_F16; }), "gradient_type is f16");
  EXPECT_ANSWER(stepped(kSgd, [](Step& s) { s.args.gradient_type = 99; }), "gradient_type");
}

TEST_F(TrainingChecks, Numbers) {
  const auto refused = [&](int32_t algorithm, double OptimizerArgs::*number, const char* name, double value) {
    EXPECT_ANSWER(stepped(algorithm, [&](Step& s) { s.args.*number = value; }), std::string(name) + " is");
  };
  const auto accepted = [&](int32_t algorithm, double OptimizerArgs::*number, double value) {
    EXPECT_ANSWER(stepped(algorithm, [&](Step& s) { s.args.*number = value; }), "accepted");
  };
  for (const double value : {-1e-9, kInfinity, kNaN, kBeyondF32}) {
    refused(kSgd, &OptimizerArgs::rate, "rate", value);
    refused(kSgd, &OptimizerArgs::weight_decay, "weight_decay", value);
    refused(kSgd, &OptimizerArgs::momentum, "momentum", value);
    refused(kAdam, &OptimizerArgs::epsilon, "epsilon", value);
  }
  for (const double value : {-kInfinity, kInfinity, kNaN, kBeyondF32}) {
    refused(kSgd, &OptimizerArgs::gradient_scale, "gradient_scale", value);
  }
  accepted(kSgd, &OptimizerArgs::gradient_scale, -1);
  for (const double value : {-1e-9, 1.0, kNaN}) {
    refused(kAdam, &OptimizerArgs::beta1, "beta1", value);
    refused(kAdam, &OptimizerArgs::beta2, "beta2", value);
  }
  for (double OptimizerArgs::*number : {&OptimizerArgs::rate, &OptimizerArgs::weight_decay, &OptimizerArgs::momentum}) {
    accepted(kSgd, number, 0);
  }
  for (double OptimizerArgs::*number : {&OptimizerArgs::beta1, &OptimizerArgs::beta2, &OptimizerArgs::epsilon}) {
    accepted(kAdam, number, 0);
  }
  refused(kAdam, &OptimizerArgs::momentum, "momentum", 0.5);
}

TEST_F(TrainingChecks, MomentumAndSteps) {
  const auto with_moments = [&](Step& s) { s.lists[3] = {&buffers_[6], &buffers_[7]}; };
  const auto nesterov = [&](int32_t value, double momentum) {
    return stepped(kSgd, [&](Step& s) {
      s.args.nesterov = value, s.args.momentum = momentum;
      if (momentum != 0) with_moments(s);
    });
  };
  EXPECT_ANSWER(nesterov(1, 0.5), "accepted");
  EXPECT_ANSWER(nesterov(0, 0.5), "accepted");
  EXPECT_ANSWER(nesterov(1, 0), "nesterov is 1");
  EXPECT_ANSWER(nesterov(2, 0.5), "nesterov");
  EXPECT_ANSWER(stepped(kAdam, [](Step& s) { s.args.nesterov = 1; }), "nesterov is 1");
  // SGD needs no count of steps.
  EXPECT_ANSWER(stepped(kSgd, [](Step& s) { s.args.step = 0; }), "accepted");
  EXPECT_ANSWER(stepped(kAdam, [](Step& s) { s.args.step = 0; }), "step is 0");
  EXPECT_ANSWER(stepped(kAdam, [&](Step& s) { s.args.step = 0, s.args.steps = &buffers_[10]; }), "accepted");
  EXPECT_ANSWER(stepped(kAdam, [&](Step& s) { s.args.steps = &buffers_[10]; }), "step is 1");
}

TEST_F(TrainingChecks, Lists) {
  const char* const names[] = {"parameters", "gradients", "masters", "first_moments", "second_moments"};
  for (size_t i = 0; i < 5; ++i) {
    const std::string without = stepped(kAdam, [&](Step& s) { s.lists[i].clear(); });
    EXPECT_ANSWER(without, i == 2 ? std::string("accepted") : std::string(names[i]) + " is null");
    const auto one = [&](uint64_t bytes) {
      const uint64_t all = buffers_[2 * i + 1].bytes;
      buffers_[2 * i + 1].bytes = bytes;
      std::string text = stepped(kAdam, [](Step&) {});
      buffers_[2 * i + 1].bytes = all;
      return text;
    };
    EXPECT_ANSWER(one(20), "accepted");
    EXPECT_ANSWER(one(19), std::string(names[i]) + "[1]");
    EXPECT_ANSWER(one(19), "sizes[1]=5");
  }
  for (const size_t i : {3, 4}) {
    const auto given = [&](Step& s) { s.lists[i] = {&buffers_[12], &buffers_[13]}; };
    EXPECT_ANSWER(stepped(kSgd, given), std::string(names[i]) + " is given");
  }
  EXPECT_ANSWER(stepped(kAdam,
                        [](Step& s) {
                          s.sizes.clear();
                          for (auto& list : s.lists) list.clear();
                        }),
                "accepted");
  EXPECT_ANSWER(stepped(kSgd, [](Step& s) { s.sizes = {uint64_t{1} << 63, uint64_t{1} << 63}; }), "sizes");
  EXPECT_ANSWER(stepped(kSgd, [](Step& s) { s.sizes = {uint64_t{1} << 61, uint64_t{1} << 61}; }), "sizes");
  EXPECT_ANSWER(stepped(kSgd, [](Step& s) { s.sizes = {0, 0}, s.lists[0] = {nullptr, nullptr}; }), "accepted");
}

// All operands lie in one allocation, 64 bytes apart; each is moved to each other.
TEST_F(TrainingChecks, OperandsThatOverlap) {
  const auto memory = std::make_shared<Nowhere>();
  for (size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].allocation = memory, buffers_[i].offset = 64 * i, buffers_[i].bytes = 64;
  }
  Step step = step_of(kAdam);
  step.args.step = 0, step.args.steps = &buffers_[10], step.args.rate_factor = &buffers_[11];
  step.args.gradient_factor = &buffers_[12], step.args.skip = &buffers_[13];
  EXPECT_EQ(checked(step), "accepted");
  const auto bytes = [](size_t i) { return uint64_t{i >= 10 ? 4u : i % 2 == 0 ? 32u : 20u}; };
  const auto written = [](size_t i) { return i != 2 && i != 3 && i < 11; };
  for (size_t i = 0; i < 14; ++i) {
    for (size_t j = 0; j < 14; ++j) {
      if (i == j) continue;
      const uint64_t kept = buffers_[i].offset;
      const auto at = [&](uint64_t offset, bool overlaps) {
        buffers_[i].offset = offset;
        const std::string expected = overlaps && (written(i) || written(j)) ? "overlaps" : "accepted";
        const std::string answered = checked(step);
        EXPECT_NE(answered.find(expected), std::string::npos) << i << " at " << offset << ", " << j << ": " << answered;
      };
      at(buffers_[j].offset, true);
      at(buffers_[j].offset + bytes(j) - 4, true);
      at(buffers_[j].offset + bytes(j), false);
      buffers_[i].offset = kept;
    }
  }
  // One that is written lies in one that is read and reaches beyond others, and the reverse.
  step.sizes = {100, 5};
  for (size_t i = 0; i < 14; ++i) buffers_[i].offset = 4096 + 1024 * i, buffers_[i].bytes = 1024;
  buffers_[2].offset = 0, buffers_[3].offset = 8, buffers_[1].offset = 200;  // gradients, and parameters[1]
  EXPECT_ANSWER(checked(step), "parameters[1] overlaps gradients[0], and is written");
  buffers_[1].offset = 400;
  EXPECT_EQ(checked(step), "accepted");
  buffers_[2].offset = 20480, buffers_[0].offset = 0, buffers_[1].offset = 400, buffers_[3].offset = 396;
  EXPECT_ANSWER(checked(step), "overlaps");
  buffers_[3].offset = 420;
  EXPECT_EQ(checked(step), "accepted");
  buffers_[3].offset = 200;
  EXPECT_ANSWER(checked(step), "parameters[0] overlaps gradients[1], and is written");
}

TEST_F(TrainingChecks, GradientNorms) {
  const std::vector<uint64_t> sizes = {8, 5};
  const std::vector<const Buffer*> gradients = {&buffers_[0], &buffers_[1]};
  const auto normed = [&](const std::function<void(GradientNormArgs&)>& change) {
    GradientNormArgs args{};
    args.dtype = TUFF_F32, args.sizes = sizes, args.gradients = gradients, args.gradient_scale = 1;
    args.norm = &buffers_[2];
    change(args);
    return answer([&] { check_gradient_norm(args); });
  };
  EXPECT_ANSWER(normed([](GradientNormArgs&) {}), "accepted");
  EXPECT_ANSWER(normed([](GradientNormArgs& args) { args.dtype = TUFF_I32; }), "gradient_norm");
  EXPECT_ANSWER(normed([](GradientNormArgs& args) { args.gradients = {}; }), "gradients is null");
  EXPECT_ANSWER(normed([](GradientNormArgs& args) { args.accumulate = 1; }), "accepted");
  EXPECT_ANSWER(normed([](GradientNormArgs& args) { args.accumulate = 2; }), "accumulate");
  for (const double value : {kInfinity, kNaN, kBeyondF32}) {
    EXPECT_ANSWER(normed([&](GradientNormArgs& args) { args.gradient_scale = value; }), "gradient_scale is");
    EXPECT_ANSWER(normed([&](GradientNormArgs& args) { args.limit = value; }), "limit is");
  }
  EXPECT_ANSWER(normed([](GradientNormArgs& args) { args.limit = -1; }), "limit is");
  EXPECT_ANSWER(normed([](GradientNormArgs& args) { args.limit = FLT_MIN / 2; }), "limit is");
  EXPECT_ANSWER(normed([](GradientNormArgs& args) { args.limit = FLT_MIN; }), "accepted");
  EXPECT_ANSWER(normed([](GradientNormArgs& args) { args.norm = nullptr; }), "needs one of them");
  for (const Buffer* GradientNormArgs::*result : {&GradientNormArgs::factor, &GradientNormArgs::found}) {
    EXPECT_ANSWER(normed([&](GradientNormArgs& args) { args.norm = nullptr, args.*result = &buffers_[3]; }),
                  "accepted");
    EXPECT_ANSWER(
        normed([&](GradientNormArgs& args) { args.norm = nullptr, args.*result = &buffers_[3], args.accumulate = 1; }),
        "accumulate is 1");
    EXPECT_ANSWER(normed([&](GradientNormArgs& args) { args.*result = &buffers_[2]; }), "overlaps");
    EXPECT_ANSWER(normed([&](GradientNormArgs& args) { args.*result = &buffers_[0]; }), "overlaps");
  }
  EXPECT_ANSWER(normed([&](GradientNormArgs& args) { args.gradient_factor = &buffers_[2]; }), "overlaps");
  EXPECT_ANSWER(normed([&](GradientNormArgs& args) { args.gradient_factor = &buffers_[0]; }), "accepted");
  EXPECT_ANSWER(normed([&](GradientNormArgs& args) { args.norm = &buffers_[1]; }), "overlaps");
}

TEST_F(TrainingChecks, Dropout) {
  const auto dropped = [&](const std::function<void(DropoutArgs&)>& change) {
    DropoutArgs args{};
    args.dtype = TUFF_F32, args.n = 10, args.probability = 0.5;
    args.input = &buffers_[0], args.output = &buffers_[1], args.mask = &buffers_[2];
    change(args);
    return answer([&] { check_dropout(args); });
  };
  EXPECT_ANSWER(dropped([](DropoutArgs&) {}), "accepted");
  EXPECT_ANSWER(dropped([](DropoutArgs& args) { args.dtype = TUFF_F64; }), "dropout");
  for (const double value : {0.0, 1.0}) {
    EXPECT_ANSWER(dropped([&](DropoutArgs& args) { args.probability = value; }), "accepted");
  }
  for (const double value : {-1e-9, 1.0000001, kNaN}) {
    EXPECT_ANSWER(dropped([&](DropoutArgs& args) { args.probability = value; }), "probability is");
  }
  EXPECT_ANSWER(dropped([](DropoutArgs& args) { args.offset = UINT64_MAX - 10; }), "accepted");
  EXPECT_ANSWER(dropped([](DropoutArgs& args) { args.offset = UINT64_MAX - 9; }), "offset is");
  EXPECT_ANSWER(dropped([](DropoutArgs& args) { args.n = 0, args.offset = UINT64_MAX; }), "accepted");
  const char* const names[] = {"input", "output", "mask"};
  for (size_t i = 0; i < 3; ++i) {
    buffers_[i].bytes = i == 2 ? 9 : 39;
    EXPECT_ANSWER(dropped([](DropoutArgs&) {}), names[i]);
    ++buffers_[i].bytes;
    EXPECT_ANSWER(dropped([](DropoutArgs&) {}), "accepted");
  }
  // Output may be the input, and nothing else overlaps.
  EXPECT_ANSWER(dropped([&](DropoutArgs& args) { args.output = &buffers_[0]; }), "accepted");
  EXPECT_ANSWER(dropped([&](DropoutArgs& args) { args.mask = nullptr; }), "accepted");
  EXPECT_ANSWER(dropped([&](DropoutArgs& args) { args.mask = &buffers_[0]; }), "overlap");
  EXPECT_ANSWER(dropped([&](DropoutArgs& args) { args.mask = &buffers_[1]; }), "overlap");
  Buffer other = buffers_[0];
  other.offset = 4, other.bytes = 40;
  EXPECT_ANSWER(dropped([&](DropoutArgs& args) { args.output = &other; }), "overlap");
}

}  // namespace
}  // namespace tuff
