// Work that takes longer than the caller waits: what the calls report, and that memory in use by the device stays
// valid.
#include <algorithm>
#include <chrono>
#include <thread>

#include "support/kernel.hpp"
#include "support/tensor.hpp"

namespace tuff_test::timeout_test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Each invocation computes `steps` steps of a linear congruential generator, seeded with its index.
constexpr const char* kLong = R"(#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Out { uint out_[]; };
layout(push_constant) uniform Parameters { uint steps; };
void main() {
  uint x = gl_GlobalInvocationID.x;
  for (uint i = 0; i < steps; ++i) x = x * 1664525 + 1013904223;
  out_[gl_GlobalInvocationID.x] = x;
}
)";
// Mesa's CPU driver ends every loop of an invocation after 65,535 iterations.
constexpr uint32_t kSteps = 60000;
constexpr uint32_t kGroup = 64, kMaxGroups = 16384;

std::vector<uint32_t> expected(uint32_t count) {
  uint32_t factor = 1, added = 0;  // all steps combine into a single one
  for (uint32_t i = 0; i < kSteps; ++i) {
    factor *= 1664525;
    added = added * 1664525 + 1013904223;
  }
  std::vector<uint32_t> values(count);
  for (uint32_t i = 0; i < count; ++i) values[i] = i * factor + added;
  return values;
}

// An amount of work that keeps the device busy for a while, as measured.
struct Amount {
  uint32_t groups = 16, launches = 1;
  uint32_t count() const { return groups * kGroup; }
  uint64_t bytes() const { return uint64_t{count()} * sizeof(uint32_t); }
  Amount times(uint32_t more) const {
    const uint32_t wider = std::min(more, kMaxGroups / groups);
    return {groups * wider, launches * (more / wider)};
  }
};

class LongWork {
 public:
  explicit LongWork(tuff_context context, Amount amount)
      : context_(context), amount_(amount), kernel_(context, glsl(kLong, "long.comp")), out_(context, amount.bytes()) {}

  void launch() {
    const tuff_buffer buffers[] = {out_};
    for (uint32_t i = 0; i < amount_.launches; ++i) {
      ASSERT_OK(tuff_kernel_launch(context_, kernel_, buffers, 1, &kSteps, sizeof kSteps, amount_.groups, 1, 1));
    }
  }
  tuff_buffer out() const { return out_; }
  void free_out() { out_.free(); }
  void expect_done() {
    std::vector<uint32_t> values(amount_.count());
    ASSERT_OK(tuff_copy_dtoh(context_, values.data(), out_, 0, amount_.bytes()));
    EXPECT_EQ(values, expected(amount_.count()));
  }

 private:
  tuff_context context_;
  Amount amount_;
  OwnKernel kernel_;
  OwnBuffer out_;
};

// The shorter of two runs, because the first may include compilation, and other processes may take the CPU at times.
milliseconds time_of(tuff_context context, Amount amount) {
  LongWork work(context, amount);
  milliseconds shorter = milliseconds::max();
  for (int i = 0; i < 2; ++i) {
    const auto start = Clock::now();
    work.launch();
    EXPECT_OK(tuff_synchronize(context));
    shorter = std::min(shorter, std::chrono::duration_cast<milliseconds>(Clock::now() - start));
  }
  return shorter;
}

// Work that takes at least a third of a second.
Amount long_enough(tuff_context context) {
  static const Amount found = [&] {
    Amount amount;
    for (milliseconds took; (took = time_of(context, amount)) < milliseconds(350);) {
      amount = amount.times(static_cast<uint32_t>(450 / std::max<int64_t>(took.count(), 1) + 1));
    }
    return amount;
  }();
  return found;
}

void set_limits(tuff_context context, uint64_t wait, uint64_t memory = 0) {
  tuff_limits limits{};
  limits.struct_size = sizeof limits;
  limits.wait_milliseconds = wait;
  limits.memory_bytes = memory;
  ASSERT_OK(tuff_context_set_limits(context, &limits));
}

// Whether the call timed out, i.e. the device was busy for longer than the call's limit; checks the error if so.
bool timed_out(tuff_status status, const char* function, const char* limit) {
  if (status == TUFF_OK) return false;
  EXPECT_FAILS(status, TUFF_ERROR_TIMEOUT, function, limit);
  return status == TUFF_ERROR_TIMEOUT;
}

class Timeout : public OnVulkan {
 protected:
  void TearDown() override {
    if (!IsSkipped()) set_limits(context(), 0);
  }
  // Runs body(amount), which returns true if the device was still busy at each check. If a thread was delayed until all
  // work had finished, tries again with more work; a wait that ignores its limit always finds the work finished.
  template <typename Body>
  void at_work(Body body) {
    Amount amount = long_enough(context());
    for (int attempt = 0; attempt < 4; ++attempt, amount = amount.times(4)) {
      set_limits(context(), 0);
      if (body(amount) || HasFailure()) return;
    }
    ADD_FAILURE() << "no call found the device at work";
  }
};

TEST_F(Timeout, TheWorkGoesOnAndIsRight) {
  const Tensor other(context(), std::vector<float>(64, 2.0f)), negated(context(), 64);
  at_work([&](Amount amount) {
    LongWork work(context(), amount);
    EXPECT_OK(tuff_synchronize(context()));
    work.launch();
    set_limits(context(), 50);
    const auto start = Clock::now();
    bool late = timed_out(tuff_synchronize(context()), "tuff_synchronize", "50");
    if (late) {
      EXPECT_GE(Clock::now() - start, milliseconds(50));
      // The message names the work and says what happens to it.
      for (const char* words : {"in flight", "kernel (long.comp)", "the work continues"}) {
        EXPECT_NE(last_error().find(words), std::string::npos) << last_error();
      }
      set_limits(context(), 10);
      uint32_t untouched = 77;
      late = timed_out(tuff_copy_dtoh(context(), &untouched, work.out(), 0, 4), "tuff_copy_dtoh", "10");
      if (late) {
        EXPECT_EQ(untouched, 77u);
      }
      // Calls that need no wait work as usual.
      EXPECT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, other, negated, 64));
    }
    set_limits(context(), 0);
    EXPECT_OK(tuff_synchronize(context()));
    work.expect_done();
    return late;
  });
  expect_same_bits(negated.read(), std::vector<float>(64, -2.0f));
}

TEST_F(Timeout, KernelAndBufferMayGoMeanwhile) {
  at_work([&](Amount amount) {
    bool late = true;
    {
      LongWork work(context(), amount);
      work.launch();
      set_limits(context(), 50);
      late = timed_out(tuff_synchronize(context()), "tuff_synchronize", "50");
    }
    set_limits(context(), 10);
    EXPECT_OK(tuff_context_trim(context()));  // releases free memory, but not what the device writes to
    const OwnBuffer another(context(), amount.bytes());
    late = timed_out(tuff_synchronize(context()), "tuff_synchronize", "10") && late;
    set_limits(context(), 0);
    EXPECT_OK(tuff_synchronize(context()));
    // The buffer is cleared after the earlier contents, if it reuses the same memory.
    EXPECT_EQ(download<uint32_t>(another, amount.count()), std::vector<uint32_t>(amount.count()));
    return late;
  });
}

TEST_F(Timeout, MemoryThatTheDeviceHoldsIsNotGivenAway) {
  at_work([&](Amount amount) {
    LongWork work(context(), amount);
    EXPECT_OK(tuff_synchronize(context()));
    work.launch();
    const uint64_t in_use = stats_of(context()).bytes_in_use;
    // No room for a further buffer, only for one in place of the freed one.
    set_limits(context(), 50, in_use);
    work.free_out();
    tuff_buffer made = 77;
    const bool late = timed_out(tuff_alloc(context(), amount.bytes(), &made), "tuff_alloc", "50");
    if (late) {
      EXPECT_EQ(made, 77u);
      set_limits(context(), 0, in_use);
      EXPECT_OK(tuff_alloc(context(), amount.bytes(), &made)) << "it waits for the device";
    }
    EXPECT_OK(tuff_free(made));
    return late;
  });
}

TEST_F(Timeout, AContextMayEndMeanwhile) {
  at_work([&](Amount amount) {
    OwnContext own("vulkan");
    // The context is destroyed before these, so freeing them finds stale handles.
    tuff_kernel kernel = 0;
    tuff_buffer out = 0;
    const tuff_kernel_desc desc = glsl(kLong);
    EXPECT_OK(tuff_kernel_create(own, &desc, &kernel));
    EXPECT_OK(tuff_alloc(own, amount.bytes(), &out));
    const auto launch = [&](uint32_t groups) {
      EXPECT_OK(tuff_kernel_launch(own, kernel, &out, 1, &kSteps, sizeof kSteps, groups, 1, 1));
    };
    launch(1);  // compiles the kernel
    EXPECT_OK(tuff_synchronize(own));
    for (uint32_t i = 0; i < amount.launches; ++i) launch(amount.groups);
    set_limits(own, 50);
    std::vector<std::string> warnings;
    EXPECT_OK(
        tuff_set_log([](void* user, int32_t,
                        const char* message) { static_cast<std::vector<std::string>*>(user)->emplace_back(message); },
                     &warnings, TUFF_LOG_WARNING));
    const auto start = Clock::now();
    own.destroy();
    const auto took = Clock::now() - start;
    EXPECT_OK(tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF));
    EXPECT_EQ(tuff_free(out), TUFF_ERROR_INVALID_HANDLE);
    EXPECT_EQ(tuff_kernel_destroy(kernel), TUFF_ERROR_INVALID_HANDLE);
    // A warning reports that the context was destroyed before its device finished. The call has then waited for as long
    // as its limit and no longer.
    const bool late = !warnings.empty();
    if (late) {
      EXPECT_GE(took, milliseconds(50));
      EXPECT_NE(warnings.back().find("still working"), std::string::npos) << warnings.back();
    }
    // Other contexts work meanwhile, and the old one is released when its device has finished.
    for (int i = 0; i < 3; ++i) {
      const OwnContext beside("vulkan");
      const Tensor x(beside, std::vector<float>(64, 2.0f));
      EXPECT_OK(tuff_unary(beside, TUFF_F32, TUFF_UNARY_NEG, x, x, 64));
      expect_same_bits(x.read(), std::vector<float>(64, -2.0f));
    }
    return late;
  });
}

}  // namespace
}  // namespace tuff_test::timeout_test
