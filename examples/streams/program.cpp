// The program of docs/streams.md: chunks are uploaded, processed and downloaded, first one after another, then
// overlapped on three streams, then as graphs launched by one call. The results of one device are bit-identical.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tuff/tuff.hpp"

namespace {

using tuff::DType, tuff::Transpose, tuff::Unary;
constexpr uint64_t kRows = 128, kWidth = 256, kChunks = 12;
constexpr std::size_t kChunk = kRows * kWidth;

// Buffers and events of one chunk. There are two slots, so that the host can fill and read one while the device works
// on the other.
struct Slot {
  explicit Slot(const tuff::Context& context)
      : x(context.alloc<float>(kChunk)),
        y(context.alloc<float>(kChunk)),
        uploaded(context.event(false)),
        computed(context.event(false)),
        downloaded(context.event(false)) {
    tuff::AllocOptions options;
    options.host_pinned = true;
    staging_in = context.alloc<float>(kChunk, options), staging_out = context.alloc<float>(kChunk, options);
    in = staging_in.map<float>(), out = staging_out.map<float>();  // they stay mapped
  }

  tuff::Buffer x, y, staging_in, staging_out;
  tuff::Mapping<float> in, out;
  tuff::Event uploaded, computed, downloaded;
};

void produce(uint64_t chunk, const tuff::Mapping<float>& target) {
  for (std::size_t i = 0; i < kChunk; ++i) target[i] = static_cast<float>((i * 7 + chunk * 13) % 31) - 15;
}

void consume(const tuff::Mapping<float>& source, std::vector<float>& results) {
  results.insert(results.end(), source.begin(), source.end());
}

// The work on one chunk, on a context's default stream or any other.
template <typename Stream>
void compute(const Stream& stream, const Slot& slot, const tuff::Buffer& weights) {
  stream.gemm(DType::f32, Transpose::no, Transpose::no, kRows, kWidth, kWidth, 1, slot.x, kWidth, weights, kWidth, 0,
              slot.y, kWidth);
  stream.unary(DType::f32, Unary::gelu, slot.y, slot.y, kChunk);
}

std::vector<float> one_after_another(const tuff::Context& context, const Slot& slot, const tuff::Buffer& weights) {
  std::vector<float> results;
  for (uint64_t chunk = 0; chunk < kChunks; ++chunk) {
    produce(chunk, slot.in);
    context.copy_htod_async(slot.x, slot.in);
    compute(context, slot, weights);
    context.copy_dtoh_async(slot.out, slot.y);
    context.synchronize();
    consume(slot.out, results);
  }
  return results;
}

std::vector<float> on_three_streams(const tuff::Context& context, const Slot (&slots)[2], const tuff::Buffer& weights) {
  const tuff::Stream up = context.stream("up"), work = context.stream("work"), down = context.stream("down");
  std::vector<float> results;
  for (uint64_t chunk = 0; chunk < kChunks + 2; ++chunk) {
    const Slot& slot = slots[chunk % 2];
    if (chunk >= 2) {
      slot.downloaded.wait();  // host: the slot's previous chunk has been downloaded
      consume(slot.out, results);
    }
    if (chunk >= kChunks) continue;
    slot.uploaded.wait();  // host: the staging memory has been uploaded and may be overwritten
    produce(chunk, slot.in);

    up.wait(slot.computed);  // device: x is no longer read
    up.copy_htod_async(slot.x, slot.in);
    up.record(slot.uploaded);

    work.wait(slot.uploaded);
    work.wait(slot.downloaded);  // y is no longer read
    compute(work, slot, weights);
    work.record(slot.computed);

    down.wait(slot.computed);
    down.copy_dtoh_async(slot.out, slot.y);
    down.record(slot.downloaded);
  }
  return results;
}

// One graph and one stream for each slot. The two may run concurrently, and need no events inside.
std::vector<float> as_graphs(const tuff::Context& context, const Slot (&slots)[2], const tuff::Buffer& weights) {
  const tuff::Stream streams[2] = {context.stream("even"), context.stream("odd")};
  tuff::Graph graphs[2];
  for (int i = 0; i < 2; ++i) {
    graphs[i] = streams[i].capture([&] {
      streams[i].copy_htod_async(slots[i].x, slots[i].in);
      compute(streams[i], slots[i], weights);
      streams[i].copy_dtoh_async(slots[i].out, slots[i].y);
    });
  }
  std::vector<float> results;
  for (uint64_t chunk = 0; chunk < kChunks + 2; ++chunk) {
    const Slot& slot = slots[chunk % 2];
    if (chunk >= 2) {
      slot.downloaded.wait();
      consume(slot.out, results);
    }
    if (chunk >= kChunks) continue;
    produce(chunk, slot.in);
    streams[chunk % 2].launch(graphs[chunk % 2]);
    streams[chunk % 2].record(slot.downloaded);
  }
  return results;
}

template <typename Run>
std::vector<float> timed(const char* what, Run run) {
  run();  // the first run compiles the kernels
  const auto begin = std::chrono::steady_clock::now();
  std::vector<float> results = run();
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
  std::printf("%-20s %7.2f ms for %d chunks\n", what, passed.count(), static_cast<int>(kChunks));
  return results;
}

// Graphs run kernels; where the CPU plug-in computes the calls (docs/cpu.md), these are rounded otherwise.
bool agree(const std::vector<float>& results, const std::vector<float>& expected) {
  return std::equal(results.begin(), results.end(), expected.begin(), expected.end(),
                    [](float a, float b) { return std::fabs(a - b) <= 1e-4f + 1e-4f * std::fabs(b); });
}

int run() {
  const tuff::Context context = tuff::Context::create({nullptr, "auto"});
  std::vector<float> values(kWidth * kWidth);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) * 0.01f - 0.08f;
  const tuff::Buffer weights = context.upload(values);
  const Slot slots[2] = {Slot(context), Slot(context)};
  context.synchronize();

  const auto expected = timed("one after another", [&] { return one_after_another(context, slots[0], weights); });
  bool good = timed("three streams", [&] { return on_three_streams(context, slots, weights); }) == expected;
  good &= agree(timed("graphs", [&] { return as_graphs(context, slots, weights); }), expected);
  good &= expected.size() == kChunks * kChunk;
  std::printf(good ? "all results agree\n" : "FAILED: results differ\n");
  return good ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const tuff::Exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
