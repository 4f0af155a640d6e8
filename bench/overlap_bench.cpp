// Uploads chunks of pinned memory, multiplies each by a matrix, and downloads the result: with everything on one
// stream, and with one stream for each of the three stages, which overlap if the device can copy and compute at once.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "bench/harness.hpp"

namespace bench {
namespace {

constexpr uint64_t kSlots = 3;  // one for each stage

struct Slot {
  Slot(const tuff::Context& context, uint64_t count)
      : x(context.alloc<float>(count)),
        y(context.alloc<float>(count)),
        staging_in(pinned(context, count)),
        staging_out(pinned(context, count)),
        in(staging_in.map<float>()),
        out(staging_out.map<float>()),
        uploaded(context.event(false)),
        computed(context.event(false)),
        downloaded(context.event(false)) {}

  static tuff::Buffer pinned(const tuff::Context& context, uint64_t count) {
    tuff::AllocOptions options;
    options.host_pinned = true;
    return context.alloc<float>(count, options);
  }

  tuff::Buffer x, y, staging_in, staging_out;
  tuff::Mapping<float> in, out;
  tuff::Event uploaded, computed, downloaded;
};

struct Pipeline {
  Pipeline(const tuff::Context& context, uint64_t side, uint64_t stream_count)
      : size(side), weights(random_buffer(context, side * side)) {
    for (uint64_t i = 0; i < kSlots; ++i) slots.emplace_back(context, side * side);
    for (uint64_t i = 0; i < stream_count; ++i) streams.push_back(context.stream());
  }

  // The host neither writes `in` nor reads `out` in the meantime: only the device's work is measured.
  void run(uint64_t chunks) const {
    const tuff::Stream &up = streams.front(), &work = streams[streams.size() / 2], &down = streams.back();
    for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
      const Slot& slot = slots[chunk % kSlots];
      up.wait(slot.computed);
      up.copy_htod_async(slot.x, slot.in);
      up.record(slot.uploaded);
      work.wait(slot.uploaded);
      work.wait(slot.downloaded);
      work.gemm(DType::f32, tuff::Transpose::no, tuff::Transpose::no, size, size, size, 1, slot.x, size, *weights, size,
                0, slot.y, size);
      work.record(slot.computed);
      down.wait(slot.computed);
      down.copy_dtoh_async(slot.out, slot.y);
      down.record(slot.downloaded);
    }
  }

  uint64_t size;
  std::shared_ptr<tuff::Buffer> weights;
  std::vector<Slot> slots;
  std::vector<tuff::Stream> streams;
};

}  // namespace

void add_overlap() {
  for (const auto& row : read_table("overlap")) {
    const uint64_t size = to_number(row.at(0)), chunks = to_number(row.at(1));
    const auto values = static_cast<double>(size * size), count = static_cast<double>(chunks);
    // FLOPs of the GEMMs, and bytes transferred in both directions.
    const Work work{2 * count * values * static_cast<double>(size), 8 * count * values};
    for (const uint64_t streams : {1, 3}) {
      add(fmt::format("tuff/overlap on {}/{}x{}", streams == 1 ? "one stream" : "three streams", size, chunks), work,
          (4 * kSlots + 1) * 4 * size * size, [=](const tuff::Context& context) {
            const auto pipeline = std::make_shared<Pipeline>(context, size, streams);
            return [=] { pipeline->run(chunks); };
          });
    }
  }
}

}  // namespace bench
