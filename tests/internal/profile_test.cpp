// Cases that no device here produces by itself: uncalibrated clocks, missing timestamps, full profiles.
#include "runtime/profile.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <string>

#include "capi/objects.hpp"
#include "runtime/json_text.hpp"
#include "runtime/vulkan/vulkan_backend.hpp"
#include "support/profile.hpp"
#include "support/tensor.hpp"

namespace tuff_test {
namespace {

TEST(ProfileClock, FollowsTheHostsClock) {
  tuff::DeviceClock clock;
  clock.period = 2;
  clock.first = clock.last = {1000, 50'000};
  EXPECT_EQ(clock.host_time(1000), 50'000);
  EXPECT_EQ(clock.host_time(1500), 51'000);
  EXPECT_EQ(clock.host_time(500), 49'000);
  EXPECT_EQ(clock.nanoseconds(1000, 1500), 1000);
  // Ten seconds later the device's clock is a millisecond behind.
  clock.last = {5'000'001'000, 50'000 + 10'001'000'000};
  EXPECT_NEAR(clock.host_time(5'000'001'000), 50'000 + 10'001'000'000.0, 1);
  EXPECT_NEAR(clock.host_time(2'500'001'000), 50'000 + 5'000'500'000.0, 1);
}

tuff::DeviceSpan device_span(tuff::Profile& profile, uint64_t begin, uint64_t end) {
  tuff::DeviceSpan span;
  span.operation = span.label = profile.text("test");
  span.stream = profile.text("stream");
  span.begin = begin;
  span.end = end;
  return span;
}

TEST(Profile, CountsWhatItHasNoRoomFor) {
  tuff::Profile profile(10);
  profile.start();
  profile.set_device("device", true, {});
  for (uint64_t i = 0; i < 25; ++i) {
    const tuff::ProfiledCall call(profile, "call");
    profile.add(device_span(profile, i, i + 1));
  }
  profile.add_dropped(3);
  profile.stop({});
  const Json trace = read_trace(profile.trace({}));
  EXPECT_EQ(trace.at("otherData").at("dropped spans"), 33);
  EXPECT_EQ(profile.device_spans().size(), 10u);
  EXPECT_NE(profile.table({}).find("33 spans were dropped"), std::string::npos);
  profile.start();
  profile.stop({});
  EXPECT_EQ(read_trace(profile.trace({})).at("otherData").at("dropped spans"), 0);
}

// As a JSON library's writer quotes them: each part of a character that is not whole is replaced once.
TEST(Profile, QuotesAsJson) {
  const std::string replaced = "\xEF\xBF\xBD";
  const auto within = [](const std::string& text) { return tuff::json_text("<" + text + ">"); };
  const auto expected = [](const std::string& text) { return "\"<" + text + ">\""; };
  EXPECT_EQ(tuff::json_text(""), "\"\"");
  EXPECT_EQ(within("\"\\/\b\f\n\r\t"), expected(R"(\"\\/\b\f\n\r\t)"));
  EXPECT_EQ(within(std::string("\0\x01\x1F \x7F", 5)), expected("\\u0000\\u0001\\u001f \x7F"));
  for (const char* whole : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF", "\xF0\x90\x80\x80",
                            "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(within(whole), expected(whole));
    const std::string cut(whole, std::string(whole).size() - 1);
    EXPECT_EQ(within(cut), expected(replaced));
    EXPECT_EQ(tuff::json_text(cut), '"' + replaced + '"');
    EXPECT_EQ(within(cut + whole), expected(replaced + whole));
  }
  // Longer than necessary, surrogates, beyond U+10FFFF, and bytes that begin nothing.
  for (const char* wrong : {"\xC0\x80", "\xC1\xBF", "\xF5\x80", "\xFF\xFE", "\x80\xBF"})
    EXPECT_EQ(within(wrong), expected(replaced + replaced));
  for (const char* wrong : {"\xE0\x9F\xBF", "\xED\xA0\x80"})
    EXPECT_EQ(within(wrong), expected(replaced + replaced + replaced));
  for (const char* wrong : {"\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80"}) {
    EXPECT_EQ(within(wrong), expected(replaced + replaced + replaced + replaced));
  }
}

// Labels may come from callers one day: quotes, control characters, bytes that are not UTF-8.
TEST(Profile, QuotesTexts) {
  tuff::Profile profile;
  profile.start();
  profile.set_device("a \"device\"\n\xff", true, {});
  {
    tuff::ProfiledCall call(profile, "call\\\t\"");
    call.done([] { return tuff::CallText{"shape\x01\xfe", TUFF_F32}; });
    tuff::DeviceSpan span = device_span(profile, 1, 2);
    span.call = call.span().call;
    profile.add(span);
  }
  profile.stop({});
  const Json trace = read_trace(profile.trace({}));
  bool found = false;
  for (const Json& event : trace.at("traceEvents")) found = found || event.at("name") == "call\\\t\"";
  EXPECT_TRUE(found);
}

// Within the clocks' uncertainty a command may appear to start before its call, and before the profile; the trace
// corrects both.
TEST(Profile, GoesBackInTimeNeither) {
  tuff::Profile profile;
  profile.start();
  profile.set_device("device", true, {});
  const tuff::HostTime began = tuff::host_now();
  for (const uint64_t begin : {1000, 1'000'000'000}) {
    const tuff::ProfiledCall call(profile, "call");
    tuff::DeviceSpan span = device_span(profile, begin, begin + 1000);
    span.call = call.span().call;
    profile.add(span);
  }
  profile.stop({});
  tuff::DeviceClock clock;
  clock.first = clock.last = {0, began - 50'000};
  profile.set_clock(clock);
  const Json trace = read_trace(profile.trace({}));
  const std::vector<Json> spans = events(trace, "kernel");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].at("ts"), 0);
  EXPECT_EQ(spans[1].at("ts"), 999'999);
  EXPECT_GT(events(trace, "call").front().at("ts"), 48);  // calls keep their start
  int arrows = 0;
  for (const Json& event : trace.at("traceEvents")) arrows += event.at("ph") == "s";
  EXPECT_EQ(arrows, 1);  // to the one that started later
}

TEST(Profile, KeepsAPlanWithTheKernelThatItIsOf) {
  tuff::Profile profile;
  profile.start();
  tuff::ProfiledCall call(profile, "call");
  EXPECT_EQ(tuff::ProfiledCall::current(), &call);
  call.note_plan("one");
  call.note_plan("two");
  EXPECT_EQ(call.take_plan(), profile.text("one; two"));
  EXPECT_EQ(call.take_plan(), 0u);
  {
    const tuff::ProfiledCall inner(profile, "inner");
    EXPECT_EQ(tuff::ProfiledCall::current(), &inner);
  }
  EXPECT_EQ(tuff::ProfiledCall::current(), &call);
}

std::atomic<int> reads{0};
VKAPI_ATTR VkResult VKAPI_CALL not_ready(VkDevice, VkQueryPool, uint32_t, uint32_t, size_t, void*, VkDeviceSize,
                                         VkQueryResultFlags) {
  ++reads;
  return VK_NOT_READY;
}
VKAPI_ATTR VkResult VKAPI_CALL lost_on_read(VkDevice, VkQueryPool, uint32_t, uint32_t, size_t, void*, VkDeviceSize,
                                            VkQueryResultFlags) {
  ++reads;
  return VK_ERROR_DEVICE_LOST;
}
VKAPI_ATTR VkResult VKAPI_CALL no_queries(VkDevice, const VkQueryPoolCreateInfo*, const VkAllocationCallbacks*,
                                          VkQueryPool*) {
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}
// A 40-bit counter that wraps 2 ms after the first reading. Between two readings it may advance by half its range,
// which is nine minutes: no machine is that busy.
constexpr uint32_t kFewBits = 40;
constexpr uint64_t kFewMask = (uint64_t{1} << kFewBits) - 1;
PFN_vkGetQueryPoolResults all_bits = nullptr;
uint64_t first_ticks = 0;
VKAPI_ATTR VkResult VKAPI_CALL few_bits(VkDevice device, VkQueryPool pool, uint32_t first, uint32_t count, size_t size,
                                        void* data, VkDeviceSize stride, VkQueryResultFlags flags) {
  const VkResult result = all_bits(device, pool, first, count, size, data, stride, flags);
  auto* ticks = static_cast<uint64_t*>(data);
  if (first_ticks == 0) first_ticks = ticks[0];
  for (uint32_t i = 0; i < count; ++i) ticks[i] = (ticks[i] - first_ticks + kFewMask - 2'000'000) & kFewMask;
  return result;
}

class ProfileDevice : public testing::Test {
 protected:
  void open() {
    x_.free();
    own_ = std::make_unique<OwnContext>("vulkan");
    const auto context = tuff::capi::acquire_context(*own_);
    device_ = &dynamic_cast<tuff::VulkanBackend&>(context->backend()).device();
    whole_ = device_->vk;
    x_ = OwnBuffer(*own_, 4096);
  }
  void SetUp() override { open(); }
  void TearDown() override { device_->vk = whole_; }
  void relu(int times = 10) {
    for (int i = 0; i < times; ++i) EXPECT_OK(tuff_unary(*own_, TUFF_F32, TUFF_UNARY_RELU, x_, x_, 1000));
  }
  Json trace() {
    const auto context = tuff::capi::acquire_context(*own_);
    return read_trace(context->profiled().trace());
  }
  static size_t kernels(const Json& trace) {
    size_t count = 0;
    for (const Json& event : trace.at("traceEvents")) count += event.value("cat", "") == "kernel";
    return count;
  }

  std::unique_ptr<OwnContext> own_;
  tuff::Device* device_ = nullptr;
  VolkDeviceTable whole_{};
  OwnBuffer x_;
};

TEST_F(ProfileDevice, EstimatesAClockThatIsNotCalibrated) {
  device_->vk.vkGetCalibratedTimestampsEXT = nullptr;
  ASSERT_OK(tuff_profile_begin(*own_));
  relu();
  ASSERT_OK(tuff_synchronize(*own_));
  ASSERT_OK(tuff_profile_end(*own_));
  const Json trace = this->trace();
  EXPECT_EQ(trace.at("otherData").at("clocks"), "estimated from a submission");
  const double uncertainty = trace.at("otherData").at("clock uncertainty in us");
  EXPECT_GT(uncertainty, 0);
  EXPECT_EQ(kernels(trace), 10u);
  const double whole = trace.at("otherData").at("seconds").get<double>() * 1e6;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.value("cat", "") != "kernel") continue;
    EXPECT_GE(event.at("ts").get<double>() + uncertainty, 0);
    EXPECT_LE(event.at("ts").get<double>() + event.at("dur").get<double>(), whole + uncertainty + 1);
  }
}

TEST_F(ProfileDevice, RefusesAQueueWithoutTimestamps) {
  auto& physical = const_cast<tuff::PhysicalDevice&>(device_->physical);
  const uint32_t bits = std::exchange(physical.timestamp_bits, 0);
  EXPECT_FAILS(tuff_profile_begin(*own_), TUFF_ERROR_UNSUPPORTED, "tuff_profile_begin", "timestamps");
  EXPECT_FAILS(tuff_profile_end(*own_), TUFF_ERROR_INVALID_ARGUMENT, "tuff_profile_end", "context");
  relu();
  EXPECT_OK(tuff_synchronize(*own_));
  physical.timestamp_bits = bits;
}

TEST_F(ProfileDevice, UnwrapsACounterOfFewBits) {
  auto& physical = const_cast<tuff::PhysicalDevice&>(device_->physical);
  const uint32_t bits = std::exchange(physical.timestamp_bits, kFewBits);
  device_->vk.vkGetCalibratedTimestampsEXT = nullptr;
  all_bits = whole_.vkGetQueryPoolResults;
  device_->vk.vkGetQueryPoolResults = few_bits;
  EXPECT_OK(tuff_profile_begin(*own_));  // measures the device first, which is not tested here
  EXPECT_OK(tuff_profile_end(*own_));
  physical.timestamp_bits = bits;
  first_ticks = 0;
  ASSERT_OK(tuff_profile_begin(*own_));
  relu(1000);
  ASSERT_OK(tuff_profile_end(*own_));
  const Json trace = this->trace();
  EXPECT_EQ(kernels(trace), 1000u);
  // They are within the profile, although the counter wrapped after its start.
  const double whole = trace.at("otherData").at("seconds").get<double>() * 1e6;
  const double uncertainty = trace.at("otherData").at("clock uncertainty in us");
  EXPECT_GT(whole, 2000);
  for (const Json& event : trace.at("traceEvents")) {
    if (event.value("cat", "") != "kernel") continue;
    EXPECT_GE(event.at("ts").get<double>(), -uncertainty);
    EXPECT_LE(event.at("ts").get<double>() + event.at("dur").get<double>(), whole + uncertainty + 1);
  }
}

TEST_F(ProfileDevice, DropsTimesThatDoNotCome) {
  ASSERT_OK(tuff_profile_begin(*own_));
  relu();
  reads = 0;
  device_->vk.vkGetQueryPoolResults = not_ready;
  ASSERT_OK(tuff_profile_end(*own_));
  EXPECT_GT(reads, 0);
  const Json trace = this->trace();
  EXPECT_EQ(kernels(trace), 0u);
  EXPECT_EQ(trace.at("otherData").at("dropped spans"), 10);
}

TEST_F(ProfileDevice, IsThereAfterTheDeviceIsLost) {
  ASSERT_OK(tuff_profile_begin(*own_));
  relu();
  ASSERT_OK(tuff_synchronize(*own_));
  EXPECT_EQ(kernels(trace()), 10u);
  relu();
  device_->vk.vkGetQueryPoolResults = lost_on_read;
  EXPECT_EQ(tuff_profile_write(*own_, "/dev/null"), TUFF_ERROR_DEVICE_LOST);
  EXPECT_EQ(tuff_profile_end(*own_), TUFF_ERROR_DEVICE_LOST);
  EXPECT_FAILS(tuff_profile_end(*own_), TUFF_ERROR_INVALID_ARGUMENT, "tuff_profile_end", "context");
  EXPECT_EQ(kernels(trace()), 10u);
  EXPECT_EQ(tuff_profile_begin(*own_), TUFF_ERROR_DEVICE_LOST);
}

TEST_F(ProfileDevice, MayBeginOnceThereIsMemory) {
  device_->vk.vkCreateQueryPool = no_queries;
  EXPECT_EQ(tuff_profile_begin(*own_), TUFF_ERROR_OUT_OF_DEVICE_MEMORY);
  relu();
  device_->vk = whole_;
  ASSERT_OK(tuff_profile_begin(*own_));
  relu();
  ASSERT_OK(tuff_profile_end(*own_));
  EXPECT_EQ(kernels(trace()), 10u);
}

std::multiset<std::string> labels;
int open_labels = 0;
VKAPI_ATTR void VKAPI_CALL note_label(VkCommandBuffer, const VkDebugUtilsLabelEXT* label) {
  labels.insert(label->pLabelName);
  ++open_labels;
}
VKAPI_ATTR void VKAPI_CALL end_label(VkCommandBuffer) { --open_labels; }

TEST_F(ProfileDevice, LabelsCommandsForTools) {
  if (!device_->instance.debug_utils()) GTEST_SKIP() << "VK_EXT_debug_utils: does not run on this device";
  EXPECT_EQ(device_->labels, device_->physical.debug_markers);  // enabled by default only under a debugging tool
  setenv("TUFF_DEBUG_LABELS", "1", 1);
  open();
  unsetenv("TUFF_DEBUG_LABELS");
  ASSERT_TRUE(device_->labels);
  relu();  // with the real functions
  ASSERT_OK(tuff_synchronize(*own_));
  labels.clear();
  device_->begin_label = note_label;
  device_->end_label = end_label;
  for (const bool profiled : {false, true}) {
    if (profiled) {
      ASSERT_OK(tuff_profile_begin(*own_));
    }
    relu();
    const uint32_t pattern = 7;
    EXPECT_OK(tuff_fill(*own_, x_, 0, 4096, &pattern, 4));
    EXPECT_OK(tuff_synchronize(*own_));
    if (profiled) {
      ASSERT_OK(tuff_profile_end(*own_));
    }
  }
  EXPECT_EQ(labels.count("relu"), 20u);
  EXPECT_GE(labels.count("fill"), 2u);
  EXPECT_EQ(open_labels, 0);
}

}  // namespace
}  // namespace tuff_test
