#include "runtime/vulkan/probes.hpp"

#include "planning/log.hpp"

namespace tuff {
namespace {

class StreamProbeRun final : public ProbeRun {
 public:
  StreamProbeRun(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool)
      : recorder_(recorder), pool_(pool) {}

  Recorder& recorder() override { return recorder_; }
  Buffer readable(uint64_t bytes) override {
    Buffer buffer;
    buffer.allocation = std::make_shared<VulkanAllocation>(pool_, bytes, MemoryKind::readback);
    buffer.bytes = bytes;
    return buffer;
  }
  void finish() override { recorder_.wait(recorder_.submit(true)); }

 private:
  StreamRecorder& recorder_;
  const std::shared_ptr<MemoryPool>& pool_;
};

}  // namespace

bool run_probe(const Probe& probe, StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool,
               KernelCache& kernels) {
  if (!probe.possible(recorder.traits())) return false;
  const CacheKey key{1, probe.version};
  if (const auto stored = kernels.disk().load(probe.name, key); stored && stored->size() == 1) {
    return stored->front() == std::byte{1};
  }
  const auto store = [&](bool holds) {
    const std::byte answer{static_cast<unsigned char>(holds ? 1 : 0)};
    kernels.disk().store(probe.name, key, {&answer, 1});
  };
  if (probe.risky) store(false);
  StreamProbeRun run(recorder, pool);
  const bool holds = probe.run(run);
  log(TUFF_LOG_INFO, "{}", holds ? probe.log_true : probe.log_false);
  store(holds);
  return holds;
}

}  // namespace tuff
