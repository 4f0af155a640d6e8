// tuff_host_cost: the host time of a call until it is recorded, without the driver's part. The device's Vulkan
// commands are replaced by ones that do nothing, so neither the device nor the driver's recording contributes. What
// remains is handle lookup, checks, planning, pipeline lookup and hazard tracking. Reports the best of many rounds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <vector>

#include "capi/objects.hpp"
#include "runtime/vulkan/vulkan_backend.hpp"
#include "tuff/tuff.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kCalls = 1000, kValues = 1024;
constexpr int kRounds = 200;

VKAPI_ATTR void VKAPI_CALL push_nothing(VkCommandBuffer, VkPipelineLayout, VkShaderStageFlags, uint32_t, uint32_t,
                                        const void*) {}
VKAPI_ATTR void VKAPI_CALL dispatch_nothing(VkCommandBuffer, uint32_t, uint32_t, uint32_t) {}
VKAPI_ATTR void VKAPI_CALL bind_nothing(VkCommandBuffer, VkPipelineBindPoint, VkPipeline) {}
VKAPI_ATTR void VKAPI_CALL describe_nothing(VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout, uint32_t, uint32_t,
                                            const VkWriteDescriptorSet*) {}
VKAPI_ATTR void VKAPI_CALL wait_for_nothing(VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags,
                                            VkDependencyFlags, uint32_t, const VkMemoryBarrier*, uint32_t,
                                            const VkBufferMemoryBarrier*, uint32_t, const VkImageMemoryBarrier*) {}

// Replaces the driver commands of a context with no-ops while it lives.
class WithoutDriver {
 public:
  explicit WithoutDriver(tuff_context handle)
      : context_(tuff::capi::acquire_context(handle)),
        vk_(dynamic_cast<tuff::VulkanBackend&>(context_->backend()).device().vk),
        whole_(vk_) {
    vk_.vkCmdPushConstants = push_nothing;
    vk_.vkCmdDispatch = dispatch_nothing;
    vk_.vkCmdBindPipeline = bind_nothing;
    vk_.vkCmdPushDescriptorSetKHR = describe_nothing;
    vk_.vkCmdPipelineBarrier = wait_for_nothing;
  }
  ~WithoutDriver() { vk_ = whole_; }
  WithoutDriver(const WithoutDriver&) = delete;
  WithoutDriver& operator=(const WithoutDriver&) = delete;

 private:
  tuff::Ref<tuff::capi::Context> context_;
  VolkDeviceTable& vk_;
  VolkDeviceTable whole_;
};

void check(tuff_status status) {
  char message[1024] = "";
  if (status == TUFF_OK) return;
  tuff_last_error(message, sizeof message, nullptr);
  throw std::runtime_error(message);
}

void measure(tuff_context context, const char* name, const std::function<tuff_status(uint64_t)>& call) {
  for (uint64_t i = 0; i < kCalls; ++i) check(call(i));  // compiles
  check(tuff_synchronize(context));
  const WithoutDriver without(context);
  auto best = Clock::duration::max();
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    for (uint64_t i = 0; i < kCalls; ++i) call(i);
    best = std::min(best, Clock::now() - begin);
    check(tuff_synchronize(context));
  }
  fmt::print("{:<44}{:>6.0f} ns\n", name, std::chrono::duration<double, std::nano>(best).count() / kCalls);
}

void measure_all(tuff_context context) {
  std::vector<tuff_buffer> x(kCalls);
  for (tuff_buffer& buffer : x) check(tuff_alloc(context, kValues * sizeof(float), &buffer));
  const auto at = [&](uint64_t i) { return x[i % kCalls]; };
  const auto relu = [&](tuff_buffer y) { return tuff_unary(context, TUFF_F32, TUFF_UNARY_RELU, y, y, kValues); };
  const uint64_t shape[] = {32, 32};
  measure(context, "relu, of the previous result", [&](uint64_t) { return relu(x[0]); });
  measure(context, "relu, each on its own buffer", [&](uint64_t i) { return relu(at(i)); });
  measure(context, "relu, each on its own buffer, in no order", [&](uint64_t i) { return relu(at(i * 617)); });
  measure(context, "add", [&](uint64_t i) {
    return tuff_binary(context, TUFF_F32, TUFF_BINARY_ADD, at(3 * i), at(3 * i + 1), at(3 * i + 2), kValues);
  });
  measure(context, "gemm 32 x 32 x 32", [&](uint64_t i) {
    return tuff_gemm(context, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, 32, 32, 32, 1, at(3 * i), 32, at(3 * i + 1), 32,
                     0, at(3 * i + 2), 32);
  });
  measure(context, "softmax 32 x 32",
          [&](uint64_t i) { return tuff_softmax(context, TUFF_F32, at(2 * i), at(2 * i + 1), shape, 2, 1); });
  measure(context, "sum 32 x 32", [&](uint64_t i) {
    return tuff_reduce(context, TUFF_F32, TUFF_REDUCE_SUM, at(2 * i), at(2 * i + 1), shape, 2, 1);
  });
}

}  // namespace

int main() {
  try {
    tuff_context context = 0;
    check(tuff_context_create(nullptr, &context));
    tuff_device_properties properties{};
    properties.struct_size = sizeof properties;
    check(tuff_context_info(context, &properties));
    fmt::print("{}: the host time of a call, without the driver's\n", properties.name);
    measure_all(context);
    check(tuff_context_destroy(context));
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  return 0;
}
