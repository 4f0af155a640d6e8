#include "runtime/vulkan/rates.hpp"

#include <algorithm>

#include "planning/backend_kernels.hpp"

namespace tuff {
namespace {

constexpr int kRepeats = 4;
constexpr uint64_t kMinBytes = 1 << 20;
constexpr uint32_t kOne = 0x3f800000;  // 1.0f, a value that is slow on no device

Buffer ones(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, uint64_t bytes) {
  Buffer buffer;
  buffer.allocation = std::make_shared<VulkanAllocation>(pool, bytes, MemoryKind::device);
  buffer.bytes = bytes;
  recorder.fill_words(buffer, 0, bytes, kOne);
  return buffer;
}

// The shortest of several runs, in seconds.
template <typename Record>
double seconds_of(StreamRecorder& recorder, const Record& record) {
  Profile profile;
  struct End {
    StreamRecorder& recorder;
    ~End() { recorder.profile_end(); }
  } const end{recorder};
  recorder.profile_begin(profile);
  double best = 0;
  size_t before = 0;
  for (int i = 0; i < kRepeats; ++i) {
    record();
    recorder.wait(recorder.submit(false));
    recorder.profile_collect();
    const std::vector<DeviceSpan> spans = profile.device_spans();
    double sum = 0;
    for (size_t j = before; j < spans.size(); ++j) sum += profile.seconds(spans[j]);
    before = spans.size();
    if (i > 0 && sum > 0 && (best == 0 || sum < best)) best = sum;  // the first run is a warm-up
  }
  return best;
}

// The faster of the copy command (or the kernel that replaces it) and an element-wise kernel: which one it is depends
// on the device.
double copy_rate(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, uint64_t bytes) {
  const Buffer from = ones(recorder, pool, bytes), to = ones(recorder, pool, bytes);
  const double copied = seconds_of(recorder, [&] {
    if (!backend_kernels.copy(recorder, to, 0, from, 0, bytes)) recorder.copy("copy", to, 0, from, 0, bytes);
  });
  const double mapped =
      seconds_of(recorder, [&] { backend_kernels.stream(recorder, from, to, bytes / sizeof(float)); });
  const double best = copied == 0 || (mapped != 0 && mapped < copied) ? mapped : copied;
  return best == 0 ? 0 : 2.0 * static_cast<double>(bytes) / best;
}

double gemm_rate(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, uint64_t n) {
  const uint64_t bytes = n * n * sizeof(float);
  const Buffer a = ones(recorder, pool, bytes), b = ones(recorder, pool, bytes), c = ones(recorder, pool, bytes);
  const double best = seconds_of(recorder, [&] { backend_kernels.multiply(recorder, a, b, c, n); });
  const double size = static_cast<double>(n);
  return best == 0 ? 0 : 2 * size * size * size / best;
}

// Halves the size while there is not enough memory; 0 if even the minimum does not fit.
template <typename Measure>
double with_memory(uint64_t size, uint64_t least, const Measure& measure) {
  for (; size >= least; size /= 2) {
    try {
      return measure(size);
    } catch (const Error& error) {
      if (error.code() != TUFF_ERROR_OUT_OF_DEVICE_MEMORY && error.code() != TUFF_ERROR_LIMIT_EXCEEDED) throw;
    }
  }
  return 0;
}

}  // namespace

DeviceRates measure_rates(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool) {
  const bool cpu = recorder.traits().cpu;
  DeviceRates rates;
  rates.bytes_per_second = with_memory(cpu ? 64ull << 20 : 256ull << 20, kMinBytes,
                                       [&](uint64_t bytes) { return copy_rate(recorder, pool, bytes); });
  rates.f32_flops_per_second =
      with_memory(cpu ? 512 : 2048, 64, [&](uint64_t n) { return gemm_rate(recorder, pool, n); });
  return rates;
}

}  // namespace tuff
