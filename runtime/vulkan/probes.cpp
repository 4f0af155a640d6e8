#include "runtime/vulkan/probes.hpp"

#include <chrono>
#include <optional>

#include "planning/log.hpp"
#include "planning/status.hpp"
#include "runtime/vulkan/disk_cache.hpp"

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

// What an entry on disk says.
enum class Answer : unsigned char { no, yes, begun };  // begun: a risky trial that has not come back

class StoredAnswer {
 public:
  StoredAnswer(const Probe& probe, const DiskCache& disk) : probe_(probe), disk_(disk) {}

  std::optional<Answer> load() const {
    const auto stored = disk_.load(probe_.name, key());
    if (!stored || stored->size() != 1 || stored->front() > std::byte{static_cast<unsigned char>(Answer::begun)}) {
      return std::nullopt;
    }
    return static_cast<Answer>(stored->front());
  }
  void store(Answer answer) const {
    const std::byte byte{static_cast<unsigned char>(answer)};
    disk_.store(probe_.name, key(), {&byte, 1});
  }
  void remove() const { disk_.remove(probe_.name, key()); }

 private:
  CacheKey key() const { return {1, probe_.version}; }
  const Probe& probe_;
  const DiskCache& disk_;
};

bool run_now(const Probe& probe, StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool) {
  try {
    StreamProbeRun run(recorder, pool);
    const bool holds = probe.run(run);
    log(TUFF_LOG_INFO, "{}", holds ? probe.log_true : probe.log_false);
    return holds;
  } catch (const Error& error) {
    // The driver refuses the kernel, as those of GPUs before Hopper do. That is an answer, too.
    if (error.code() != TUFF_ERROR_UNSUPPORTED) throw;
    log(TUFF_LOG_INFO, "{}: {}", probe.log_false, error.what());
    return false;
  }
}

// Processes that start together, such as one for each GPU of a machine, all need the answer: one tries, the others wait
// for it. A trial takes less than a second; a process that is stopped within one costs the others this much.
constexpr std::chrono::seconds kPatience{10};

// Until a trial has come back, the entry on disk says that it has begun. Without a lock on it, the trial has ended its
// process.
bool run_risky(const Probe& probe, StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool,
               const StoredAnswer& stored, const DiskCache& disk) {
  const platform::FileLock lock = disk.lock(probe.name, kPatience);
  if (const std::optional<Answer> found = stored.load()) {
    if (*found != Answer::begun) return *found == Answer::yes;
    if (lock.held()) stored.store(Answer::no);
    log(TUFF_LOG_INFO, "{}: {}", probe.log_false,
        lock.held() ? "a process ended while it tried" : "another process is still trying");
    return false;
  }
  stored.store(Answer::begun);
  try {
    const bool holds = run_now(probe, recorder, pool);
    stored.store(holds ? Answer::yes : Answer::no);
    return holds;
  } catch (const Error& error) {
    // What says nothing about the device, such as a lack of memory, is no answer.
    const bool from_device = error.code() == TUFF_ERROR_DEVICE_LOST || error.code() == TUFF_ERROR_TIMEOUT;
    from_device ? stored.store(Answer::no) : stored.remove();
    throw;
  } catch (...) {
    stored.remove();
    throw;
  }
}

}  // namespace

bool run_probe(const Probe& probe, StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool,
               KernelCache& kernels) {
  if (!probe.possible(recorder.traits())) return false;
  const DiskCache& disk = kernels.disk();
  const StoredAnswer stored(probe, disk);
  if (const std::optional<Answer> found = stored.load(); found && *found != Answer::begun) return *found == Answer::yes;
  if (probe.risky) return run_risky(probe, recorder, pool, stored, disk);
  const bool holds = run_now(probe, recorder, pool);
  stored.store(holds ? Answer::yes : Answer::no);
  return holds;
}

}  // namespace tuff
