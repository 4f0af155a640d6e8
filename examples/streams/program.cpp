// What docs/streams.md talks about: chunks go up, are worked on and come down; one after another, overlapped on three
// streams, and as graphs that one call launches. The results are the same, bit for bit.
#include <chrono>
#include <cstdio>
#include <vector>

#include "tuff/tuff.hpp"

namespace {

using tuff::DType, tuff::Transpose, tuff::Unary;
constexpr uint64_t kRows = 128, kWidth = 256, kChunks = 12;
constexpr std::size_t kChunk = kRows * kWidth;

// What one chunk needs. There are two, so that one is filled and read while the other is worked on.
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
    in = staging_in.map<float>(), out = staging_out.map<float>();  // and they stay mapped
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

// The same on a context's default stream and on any other.
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
      slot.downloaded.wait();  // the host: the chunk before the last one is there
      consume(slot.out, results);
    }
    if (chunk >= kChunks) continue;
    slot.uploaded.wait();  // the host: what was written there before has gone up
    produce(chunk, slot.in);

    up.wait(slot.computed);  // the device: nobody reads x any more
    up.copy_htod_async(slot.x, slot.in);
    up.record(slot.uploaded);

    work.wait(slot.uploaded);
    work.wait(slot.downloaded);  // nobody reads y any more
    compute(work, slot, weights);
    work.record(slot.computed);

    down.wait(slot.computed);
    down.copy_dtoh_async(slot.out, slot.y);
    down.record(slot.downloaded);
  }
  return results;
}

// A graph for each slot, and a stream for each: the two run beside each other, and no events are needed within them.
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
  run();  // the first time compiles kernels
  const auto begin = std::chrono::steady_clock::now();
  std::vector<float> results = run();
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
  std::printf("%-20s %7.2f ms for %d chunks\n", what, passed.count(), static_cast<int>(kChunks));
  return results;
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
  if (context.info().type == TUFF_DEVICE_HOST) {
    std::printf("the host backend has no graphs\n");
  } else {
    good &= timed("graphs", [&] { return as_graphs(context, slots, weights); }) == expected;
  }
  good &= expected.size() == kChunks * kChunk;
  std::printf(good ? "all results are the same\n" : "FAILED: results differ\n");
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
