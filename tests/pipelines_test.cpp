// The bound on the pipelines that a context keeps: the least recently used ones are evicted, with no visible effect.
#include "support/stream.hpp"

namespace tuff_test::pipelines_test {
namespace {

constexpr uint64_t kCount = 300;

// Each step uses a different kernel, not just a different size.
struct Step {
  int32_t dtype, op;
};
std::vector<Step> steps() {
  std::vector<Step> all;
  for (const int32_t dtype : {TUFF_F32, TUFF_F16}) {
    for (int32_t op = TUFF_UNARY_RELU; op <= TUFF_UNARY_COS; ++op) all.push_back({dtype, op});
  }
  return all;
}

class MemoryPipelines : public testing::Test {
 protected:
  void SetUp() override {
    bool there = false;
    for (const std::string& backend : backends()) there = there || backend == "vulkan";
    if (!there) GTEST_SKIP() << "of the Vulkan backend";
    context_ = std::make_unique<OwnContext>("vulkan");
    x_ = OwnBuffer(context(), kCount * 4);
    y_ = OwnBuffer(context(), kCount * 4);
    ASSERT_OK(tuff_copy_htod(context(), x_, 0, ones_.data(), kCount * 4));
  }
  tuff_context context() const { return *context_; }
  tuff_status limit(uint64_t pipelines) {
    tuff_limits limits{};
    limits.struct_size = sizeof limits;
    limits.pipelines = pipelines;
    return tuff_context_set_limits(context(), &limits);
  }
  void run(const Step& step) { ASSERT_OK(tuff_unary(context(), step.dtype, step.op, x_, y_, kCount)); }
  void expect_negated(tuff_buffer buffer) {
    std::vector<float> values(kCount);
    ASSERT_OK(tuff_copy_dtoh(context(), values.data(), buffer, 0, kCount * 4));
    EXPECT_EQ(values, std::vector<float>(kCount, -1));
  }

  const std::vector<float> ones_ = std::vector<float>(kCount, 1);
  std::unique_ptr<OwnContext> context_;
  OwnBuffer x_, y_;
};

TEST_F(MemoryPipelines, ThereIsAnEndToThem) {
  ASSERT_OK(limit(8));
  for (const Step& step : steps()) {
    run(step);
    ASSERT_LE(stats_of(context()).pipelines_live, 8u);
  }
  const tuff_stats stats = stats_of(context());
  EXPECT_GE(stats.pipelines_evicted, steps().size() - 8);
  EXPECT_GE(stats.pipelines_created, steps().size());
  run({TUFF_F32, TUFF_UNARY_NEG});  // evicted long ago
  expect_negated(y_);
}

TEST_F(MemoryPipelines, WhatIsUsedStays) {
  run({TUFF_F32, TUFF_UNARY_NEG});
  ASSERT_OK(limit(8));
  for (const Step& step : steps()) {
    run(step);
    const uint64_t before = stats_of(context()).pipelines_created;
    run({TUFF_F32, TUFF_UNARY_NEG});
    ASSERT_EQ(stats_of(context()).pipelines_created, before) << "it was used before each other one";
  }
  expect_negated(y_);
}

// Pipelines of work that is recorded but not submitted, or still running, stay valid.
TEST_F(MemoryPipelines, WhatIsUnderWayIsFinished) {
  ASSERT_OK(limit(1));
  std::vector<OwnBuffer> results;
  for (int round = 0; round < 3; ++round) {
    for (const Step& step : steps()) {
      run(step);
      results.push_back(OwnBuffer(context(), kCount * 4));
      ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, x_, results.back(), kCount));
    }
  }
  for (const OwnBuffer& result : results) expect_negated(result);
}

// A graph's command buffer refers to its pipelines for as long as it may be launched.
TEST_F(MemoryPipelines, ThoseOfGraphsStay) {
  const OwnStream stream = make_stream(context());
  tuff_graph made = 0;
  ASSERT_OK(tuff_graph_begin(stream));
  ASSERT_OK(tuff_unary(stream, TUFF_F32, TUFF_UNARY_NEG, x_, y_, kCount));
  ASSERT_OK(tuff_graph_end(stream, &made));
  OwnGraph graph(made);
  ASSERT_OK(limit(1));
  const std::vector<float> zeros(kCount, 0);
  for (const Step& step : steps()) {
    if (step.op != TUFF_UNARY_NEG) run(step);
    ASSERT_OK(tuff_copy_htod(context(), y_, 0, zeros.data(), kCount * 4));
    ASSERT_OK(tuff_synchronize(context()));
    const uint64_t before = stats_of(context()).pipelines_created;
    ASSERT_OK(tuff_graph_launch(stream, graph));
    ASSERT_OK(tuff_synchronize(stream));
    EXPECT_EQ(stats_of(context()).pipelines_created, before);
    expect_negated(y_);
  }
  EXPECT_LE(stats_of(context()).pipelines_live, 2u);
  graph.destroy();
  run({TUFF_F32, TUFF_UNARY_EXP});
  run({TUFF_F32, TUFF_UNARY_ABS});
  EXPECT_LE(stats_of(context()).pipelines_live, 1u);
}

// A lower limit takes effect at once; 0 means the default; callers compiled before the field existed may pass the
// smaller structure.
TEST_F(MemoryPipelines, LimitsAreTakenAtOnce) {
  for (const Step& step : steps()) run(step);
  EXPECT_GE(stats_of(context()).pipelines_live, steps().size());
  ASSERT_OK(limit(0));
  EXPECT_GE(stats_of(context()).pipelines_live, steps().size());
  tuff_limits old{};
  old.struct_size = offsetof(tuff_limits, pipelines);
  old.pipelines = 1;
  ASSERT_OK(tuff_context_set_limits(context(), &old));
  EXPECT_GE(stats_of(context()).pipelines_live, steps().size()) << "bytes after the structure were read";
  ASSERT_OK(limit(5));
  EXPECT_LE(stats_of(context()).pipelines_live, 5u);
  ASSERT_OK(limit(UINT64_MAX));
  for (const Step& step : steps()) run(step);
  EXPECT_GE(stats_of(context()).pipelines_live, steps().size());
}

}  // namespace
}  // namespace tuff_test::pipelines_test
