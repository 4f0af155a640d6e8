// Planner of the places that indices name.
#include <algorithm>
#include <array>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/division.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/indexing/places.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/places.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxIndices = 1u << 30;  // of one dispatch

// The table of places.comp: eight words for each axis.
struct Table {
  std::array<uint32_t, 64> words{};
  uint32_t axes = 0, axis = 0;
};

Table table_of(const IndexArgs& args) {
  Table table;
  const bool each = args.index_shape != nullptr;
  const uint32_t begin = each ? 0 : args.axis;
  table.axes = each ? args.rank : args.numbers();
  table.axis = each ? args.rank - 1 - args.axis : 0;
  uint64_t stride = 1;
  for (uint32_t d = begin + table.axes; d-- > begin; stride *= args.shape[d]) {
    uint32_t* words = table.words.data() + 8 * size_t{each ? args.rank - 1 - d : d - begin};
    if (each) {
      const uint64_t size = args.index_shape[d];
      const Divider by = divider(std::max(low_word(size), 1u));  // not used if it has more than 32 bits
      words[0] = low_word(size), words[1] = by.multiplier, words[2] = by.shift, words[3] = high_word(size);
    }
    words[4] = low_word(args.shape[d]), words[5] = high_word(args.shape[d]);
    words[6] = low_word(stride), words[7] = high_word(stride);
  }
  return table;
}

}  // namespace

void record_places(Recorder& recorder, const char* label, const IndexArgs& args, const PlaceKeys& keys) {
  const DeviceTraits& traits = recorder.traits();
  const StreamDevice device = stream_device(traits, forced_variant<"TUFF_SHAPE_VARIANT">(), sizeof(float));
  const IndexView view = view_indices(args);
  const uint64_t index = dtype_size(args.index_type), numbers = args.numbers();
  const bool is_signed = args.index_type == TUFF_I32 || args.index_type == TUFF_I64;
  const bool wide = needs_wide(view.places) || needs_wide(checked_mul(view.count, numbers, "count"));
  const Table table = table_of(args);
  const uint32_t table_bytes = 32 * table.axes;
  for (uint64_t begin = 0; begin < keys.n; begin += kMaxIndices) {
    const uint64_t n = std::min(kMaxIndices, keys.n - begin), first = keys.first + begin;
    const uint64_t run = device.cpu ? device.items_each(n, 128) : 4;
    KernelRequest kernel = shaders::Places::request({.claim = keys.winners != nullptr,
                                                     .form = args.index_shape != nullptr ? 1
                                                             : numbers > 1               ? 2
                                                                                         : 0,
                                                     .index_bytes = index,
                                                     .key_bytes = keys.key_bytes,
                                                     .negative = args.negative && is_signed,
                                                     .run = device.fixed_run(run),
                                                     .sign = is_signed});
    kernel.streaming().wide(wide || keys.key_bytes == 8).constant(0, device.workgroup).constant(1, table.axes);
    shaders::Places::Push push{.n = static_cast<uint32_t>(n),
                               .run = static_cast<uint32_t>(run),
                               .first = low_word(first),
                               .first_high = high_word(first),
                               .window = low_word(keys.window),
                               .window_high = high_word(keys.window),
                               .none = keys.none,
                               .axis = table.axis};
    // Winners are numbers from `first` on: calls with winners have at most kMaxIndices indices.
    Dispatch dispatch(label);
    dispatch.operand(args.indices, first * numbers * index, n * numbers * index, Access::read)
        .operand(&recorder.parameters(table.words.data(), table_bytes), 0, table_bytes, Access::read)
        .operand(keys.keys, begin * keys.key_bytes, n * keys.key_bytes, Access::write)
        .operand(keys.winners, 0, keys.winners != nullptr ? uint64_t{keys.none} * 4 : 0, Access::write)
        .push(push)
        .groups_linear(ceil_div(n, device.workgroup * run), traits)
        .work(static_cast<double>(n * (numbers * index + keys.key_bytes)), 0);
    log(TUFF_LOG_DISPATCH, "{}: places of {} indices, {} lanes, {} each", label, n, device.workgroup, run);
    recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace tuff
