#include "runtime/vulkan/binding.hpp"

#include <algorithm>
#include <chrono>

#include "runtime/log.hpp"
#include "runtime/platform/platform.hpp"
#include "shaders.hpp"

namespace tuff {
namespace {

constexpr uint64_t kBytes = 4u << 20;
constexpr int kRepetitions = 15;
// A descriptor costs the host more for each operation: addresses win unless clearly slower.
constexpr double kMargin = 1.1;
// Changes with what is measured, so that an older answer is not taken for a newer one.
constexpr CacheKey kKey{0, 2};

double seconds(StreamRecorder& recorder, const Buffer& in, const Buffer& out, bool addresses) {
  const DeviceTraits& traits = recorder.traits();
  recorder.set_binding(addresses, addresses);
  const uint32_t local_size = traits.cpu ? traits.subgroup_size : std::min(256u, traits.max_invocations);
  struct {
    uint32_t vectors;
    uint32_t mask;
  } const push{kBytes / 16, 1};
  Dispatch dispatch("binding probe");
  dispatch.operand(&in, 0, kBytes, Access::read)
      .operand(&out, 0, kBytes, Access::write)
      .push(push)
      .groups_linear(ceil_div(kBytes / 16, local_size * 4), traits);
  double best = 1e9;
  for (int i = 0; i <= kRepetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    recorder.dispatch(KernelRequest(shaders::binding_probe).streaming().constant(0, local_size), dispatch);
    recorder.wait(recorder.submit(false));
    // The first run compiles and touches the pages.
    if (i > 0) best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

bool measure(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool) {
  Buffer buffers[2];
  for (Buffer& buffer : buffers) {
    buffer.allocation = std::make_shared<VulkanAllocation>(pool, pool->allocate(kBytes, MemoryKind::device));
    buffer.bytes = kBytes;
    recorder.fill_words(buffer, 0, kBytes, 0);
  }
  const double descriptors = seconds(recorder, buffers[0], buffers[1], false);
  const double addresses = seconds(recorder, buffers[0], buffers[1], true);
  log(TUFF_LOG_INFO, "binding: {:.1f} GB/s by descriptors, {:.1f} GB/s by addresses", 2e-9 * kBytes / descriptors,
      2e-9 * kBytes / addresses);
  return addresses < descriptors * kMargin;
}

// Whether kernels that stream are bound by address. The device can do both.
bool stream_by_addresses(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, KernelCache& kernels) {
  if (const auto stored = kernels.disk().load("binding", kKey); stored && stored->size() == 1) {
    return stored->front() == std::byte{1};
  }
  const bool addresses = measure(recorder, pool);
  const std::byte answer{static_cast<unsigned char>(addresses ? 1 : 0)};
  kernels.disk().store("binding", kKey, {&answer, 1});
  return addresses;
}

}  // namespace

void choose_binding(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, const Device& device,
                    KernelCache& kernels) {
  if (!device.traits.addresses) return recorder.set_binding(false, false);
  if (!device.physical.push_descriptors) return recorder.set_binding(true, true);
  if (const auto wanted = platform::environment("TUFF_BINDING")) {
    if (*wanted == "descriptors") return recorder.set_binding(false, false);
    if (*wanted == "addresses") return recorder.set_binding(true, true);
    log(TUFF_LOG_WARNING, "TUFF_BINDING={} is neither descriptors nor addresses; ignored", *wanted);
  }
  recorder.set_binding(stream_by_addresses(recorder, pool, kernels), true);
}

}  // namespace tuff
