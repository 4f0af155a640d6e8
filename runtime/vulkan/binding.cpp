#include "runtime/vulkan/binding.hpp"

#include <algorithm>
#include <chrono>

#include "kernels/gemm/gemm.hpp"
#include "runtime/log.hpp"
#include "runtime/platform/platform.hpp"
#include "shaders.hpp"

namespace tuff {
namespace {

constexpr uint64_t kBytes = 4u << 20;
constexpr int kRepetitions = 15;

// What is measured under either way of binding, and where its answer is kept. A key changes with what is measured, so
// that an older answer is not taken for a newer one.
struct Probe {
  const char* name;
  CacheKey key;
  double margin;  // how much longer addresses may take
  void (*record)(StreamRecorder& recorder, const Buffer& in, const Buffer& out);
};

void record_stream(StreamRecorder& recorder, const Buffer& in, const Buffer& out) {
  const DeviceTraits& traits = recorder.traits();
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
  recorder.dispatch(KernelRequest(shaders::binding_probe).streaming().constant(0, local_size), dispatch);
}

// A product that is not packed, of a size whose kernel compiles fast.
void record_tiles(StreamRecorder& recorder, const Buffer& in, const Buffer& out) {
  constexpr uint64_t kSize = 64;
  GemmArgs args{};
  args.a_type = args.b_type = args.c_type = TUFF_F32;
  args.accumulate = TUFF_F32;
  args.m = args.n = args.k = args.lda = args.ldb = args.ldc = kSize;
  args.alpha = 1;
  args.a = args.b = &in;
  args.c = &out;
  record_gemm_tiles(recorder, args);
}

// A descriptor costs the host more for each operation: addresses win unless clearly slower.
constexpr Probe kStreams = {"streams", {0, 2}, 1.1, record_stream};
constexpr Probe kTiles = {"tiles", {1, 0}, 1.1, record_tiles};

double seconds(StreamRecorder& recorder, const Probe& probe, const Buffer& in, const Buffer& out, bool addresses) {
  recorder.set_binding(addresses, addresses, addresses);
  const auto start = std::chrono::steady_clock::now();
  probe.record(recorder, in, out);
  recorder.wait(recorder.submit(false));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool measure(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, const Probe& probe) {
  Buffer buffers[2];
  for (Buffer& buffer : buffers) {
    buffer.allocation = std::make_shared<VulkanAllocation>(pool, pool->allocate(kBytes, MemoryKind::device));
    buffer.bytes = kBytes;
    recorder.fill_words(buffer, 0, kBytes, 0);
  }
  double descriptors = 1e9, addresses = 1e9;
  // In turns, so that what else the machine does meets both. The first runs compile and touch the pages.
  for (int i = 0; i <= kRepetitions; ++i) {
    const double first = seconds(recorder, probe, buffers[0], buffers[1], false);
    const double second = seconds(recorder, probe, buffers[0], buffers[1], true);
    if (i == 0) continue;
    descriptors = std::min(descriptors, first);
    addresses = std::min(addresses, second);
  }
  log(TUFF_LOG_INFO, "binding: {} take {:.3f} ms by descriptors, {:.3f} ms by addresses", probe.name, 1e3 * descriptors,
      1e3 * addresses);
  return addresses < descriptors * probe.margin;
}

// Whether kernels like the probe are bound by address. The device can do both.
bool by_addresses(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, KernelCache& kernels,
                  const Probe& probe) {
  if (const auto stored = kernels.disk().load("binding", probe.key); stored && stored->size() == 1) {
    return stored->front() == std::byte{1};
  }
  const bool addresses = measure(recorder, pool, probe);
  const std::byte answer{static_cast<unsigned char>(addresses ? 1 : 0)};
  kernels.disk().store("binding", probe.key, {&answer, 1});
  return addresses;
}

}  // namespace

void choose_binding(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, const Device& device,
                    KernelCache& kernels) {
  const auto all = [&](bool addresses) { recorder.set_binding(addresses, addresses, addresses); };
  if (!device.traits.addresses) return all(false);
  if (!device.physical.push_descriptors) return all(true);
  if (const auto wanted = platform::environment("TUFF_BINDING")) {
    if (*wanted == "descriptors") return all(false);
    if (*wanted == "addresses") return all(true);
    log(TUFF_LOG_WARNING, "TUFF_BINDING={} is neither descriptors nor addresses; ignored", *wanted);
  }
  // On GPUs tiles take as long either way: only processors are worth the time to measure.
  const bool streams = by_addresses(recorder, pool, kernels, kStreams);
  const bool tiles = !device.traits.cpu || by_addresses(recorder, pool, kernels, kTiles);
  recorder.set_binding(streams, tiles, true);
}

}  // namespace tuff
