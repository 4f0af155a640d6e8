// tuff_bench: runs the tables in shapes/ with Google Benchmark, on the device named by TUFF_DEVICE or the best one.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#ifdef TUFF_BENCH_OPENBLAS
#include <cblas.h>
#endif

#include "bench/harness.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMinSeconds = 0.02;  // of work between two waits, so that the wait itself is negligible
constexpr double kMaxSeconds = 2;     // calls expected to take longer are skipped
// OpenBLAS's threads keep spinning for some milliseconds after their last call, which would slow down the next row.
constexpr auto kPeersRest = std::chrono::milliseconds(60);

struct Device {
  tuff::Context context;
  tuff::DeviceProperties properties{};
  double flops_per_second = 0;  // rough: only used to skip rows that are too large
  double bytes_per_second = 0;
};
Device device;

double timed(const Repeat& repeat, uint64_t repetitions, const Repeat& finish) {
  const auto begin = Clock::now();
  for (uint64_t i = 0; i < repetitions; ++i) repeat();
  finish();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The number of repetitions that take kMinSeconds; 0: not known yet. Google Benchmark requires the same number of
// iterations each time that it repeats a row.
using Batch = std::shared_ptr<uint64_t>;

void run(benchmark::State& state, Work work, uint64_t calls, const Batch& batch, const Repeat& repeat,
         const Repeat& finish) {
  timed(repeat, 1, finish);  // compiles, and touches memory for the first time
  const double once = timed(repeat, 1, finish);
  if (*batch == 0) *batch = static_cast<uint64_t>(kMinSeconds / once) + 1;
  // Each call is one iteration, so that iteration times add up to the elapsed time and a row takes as long as
  // requested.
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(*batch * calls))) {
    state.SetIterationTime(timed(repeat, *batch, finish));
  }
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  if (work.flops > 0) state.counters["FLOP/s"] = benchmark::Counter(work.flops, rate);
  if (work.bytes > 0) state.counters["B/s"] = benchmark::Counter(work.bytes, rate);
}

void finish_device() { device.context.synchronize(); }

// Estimates the rates from a GEMM and a copy small enough for any device.
void estimate_rates() {
  constexpr uint64_t kSize = 512, kCount = kSize * kSize;
  const tuff::Context& context = device.context;
  const auto a = random_buffer(context, kCount), b = random_buffer(context, kCount), c = empty_buffer(context, kCount);
  const auto gemm = [&] {
    context.gemm(DType::f32, tuff::Transpose::no, tuff::Transpose::no, kSize, kSize, kSize, 1, *a, kSize, *b, kSize, 0,
                 *c, kSize);
  };
  const auto copy = [&] { b->copy_from(*a, kCount * 4); };
  timed(gemm, 1, finish_device);
  timed(copy, 1, finish_device);
  device.flops_per_second = 2.0 * kSize * kCount * 8 / timed(gemm, 8, finish_device);
  device.bytes_per_second = 8.0 * kCount * 64 / timed(copy, 64, finish_device);
}

std::string open_device() {
  tuff::ContextOptions options;
  options.backend = std::getenv("TUFF_BENCH_BACKEND");
  device.context = tuff::Context::create(options);
  device.properties = device.context.info();
  estimate_rates();
  return device.properties.name;
}

}  // namespace

void add(const std::string& name, Work work, uint64_t memory_bytes, std::function<Repeat(const tuff::Context&)> prepare,
         uint64_t calls) {
  if (memory_bytes > device.properties.memory_bytes / 2 || work.flops > kMaxSeconds * device.flops_per_second ||
      work.bytes > kMaxSeconds * device.bytes_per_second) {
    return;
  }
  benchmark::RegisterBenchmark(name.c_str(),
                               [=, batch = std::make_shared<uint64_t>(0)](benchmark::State& state) {
                                 std::this_thread::sleep_for(kPeersRest);
                                 try {
                                   run(state, work, calls, batch, prepare(device.context), finish_device);
                                 } catch (const tuff::Exception& error) {
                                   state.SkipWithError(error.what());
                                 }
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

const tuff::DeviceProperties& device_properties() { return device.properties; }

bool on_cpu() { return device.properties.type == TUFF_DEVICE_CPU || device.properties.type == TUFF_DEVICE_HOST; }

void add_peer(const std::string& name, Work work, std::function<Repeat()> prepare) {
  add_peer(name, work, 1, [prepare = std::move(prepare)] { return Begun{prepare(), [] {}}; });
}

void add_peer(const std::string& name, Work work, uint64_t calls, std::function<Begun()> prepare) {
  if (work.flops > kMaxSeconds * device.flops_per_second || work.bytes > kMaxSeconds * device.bytes_per_second) return;
  benchmark::RegisterBenchmark(name.c_str(),
                               [=, batch = std::make_shared<uint64_t>(0)](benchmark::State& state) {
                                 try {
                                   const Begun peer = prepare();
                                   run(state, work, calls, batch, peer.begin, peer.finish);
                                 } catch (const std::exception& error) {
                                   state.SkipWithError(error.what());
                                 }
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

std::vector<float> random_values(uint64_t count) {
  std::vector<float> values(count);
  uint32_t state = 1;
  for (auto& value : values) {
    state = state * 1664525u + 1013904223u;  // Numerical Recipes, chapter 7
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
  return values;
}

std::vector<uint32_t> scattered_indices(uint64_t count, uint64_t entries) {
  std::vector<uint32_t> indices(count);
  for (uint64_t i = 0; i < count; ++i) indices[i] = static_cast<uint32_t>(i * 2654435761u % entries);
  return indices;
}

std::shared_ptr<tuff::Buffer> empty_buffer(const tuff::Context& context, uint64_t count) {
  return std::make_shared<tuff::Buffer>(context.alloc<float>(count));
}

namespace {

// Converts a number between -1 and 1 to a 16-bit type, truncating the mantissa.
uint16_t to_16_bits(float value, DType dtype) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (dtype == DType::bf16) return static_cast<uint16_t>(bits >> 16);
  const uint32_t magnitude = bits & 0x7fffffffu, half = magnitude < 0x38800000u ? 0 : (magnitude - 0x38000000u) >> 13;
  return static_cast<uint16_t>((bits >> 16 & 0x8000u) | half);
}

}  // namespace

std::shared_ptr<tuff::Buffer> random_buffer(const tuff::Context& context, uint64_t count, DType dtype) {
  // Repeats one mebibyte of random values: generating gigabytes of them would take longer than measuring.
  constexpr uint64_t kBlock = 1u << 18;
  static const std::vector<float> block = random_values(kBlock);
  auto buffer = empty_buffer(context, count);
  std::vector<uint16_t> halves(element_bytes(dtype) == 2 ? kBlock : 0);
  std::transform(block.begin(), block.begin() + static_cast<ptrdiff_t>(halves.size()), halves.begin(),
                 [dtype](float value) { return to_16_bits(value, dtype); });
  for (uint64_t at = 0; at < count; at += kBlock) {
    const uint64_t size = std::min(kBlock, count - at);
    if (halves.empty()) {
      buffer->upload_at(at * sizeof(float), block.data(), size);
    } else {
      buffer->upload_at(at * sizeof(uint16_t), halves.data(), size);
    }
  }
  return buffer;
}

}  // namespace bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  try {
    benchmark::AddCustomContext("device", bench::open_device());
    benchmark::AddCustomContext("driver", bench::device.properties.driver);
    benchmark::AddCustomContext("tuff", tuff::build_info());
#ifdef TUFF_BENCH_OPENBLAS
    benchmark::AddCustomContext("openblas",
                                fmt::format("{}, {} threads", openblas_get_config(), openblas_get_num_threads()));
#endif
    for (const auto& add_family : {bench::add_gemm, bench::add_conv, bench::add_attention, bench::add_elementwise,
                                   bench::add_reduce, bench::add_norm, bench::add_shape, bench::add_memory,
                                   bench::add_networks, bench::add_calls, bench::add_overlap}) {
      add_family();
    }
    benchmark::RunSpecifiedBenchmarks();
  } catch (const tuff::Exception& error) {
    fmt::print(stderr, "error: {}\nhint: {}\n", error.what(), error.hint());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  benchmark::Shutdown();
  bench::device.context.reset();
  return 0;
}
