// Planner of scatter. Indices become places, as numbers of 32 bits (places.comp), for up to kMaxPlaces places and a
// batch of indices at once. Then
//
//   set       The last index of each place wins: any of them claims the place, atomics settle which is the last, and
//             the rows of those that won are copied (scatter_settle.comp, scatter_write.comp).
//   integers  Sums, maxima and minima of 32-bit integers are the same in every order: atomics
//             (scatter_atomic_vulkan.cpp).
//   others    Indices are sorted by place, stably, by a radix sort (scatter_sort.comp and scans), and runs of equal
//             places are folded (scatter_fold.comp).
//
// All depend on sizes and device alone, not on the order in which lanes run.
#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/indexing/scatter.hpp"
#include "kernels/indexing/scatter_plan.hpp"
#include "kernels/scan/scan.hpp"
#include "kernels/shape/strided_copy.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/scatter_fold.hpp"
#include "shaders/scatter_settle.hpp"
#include "shaders/scatter_sort.hpp"
#include "shaders/scatter_write.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxPlaces = 1u << 28;                      // of one pass: 1 GiB of winners
constexpr uint64_t kMaxSet = 1u << 28, kMaxSorted = 1u << 26;  // indices of one pass
constexpr uint64_t kChunk = 64;                                // entries that a lane folds
constexpr uint64_t kMaxLast = 128;           // entries that are folded by a single lane of each column
constexpr uint64_t kMaxPartials = 1u << 28;  // bytes of one list

void record_settle(const ScatterTask& task, const ScatterBatch& batch, const Buffer& keys, const Buffer& winners) {
  const uint64_t run = task.device.cpu ? task.device.items_each(batch.n, 128) : 4;
  KernelRequest kernel = shaders::ScatterSettle::request({.run = task.device.fixed_run(run)});
  kernel.streaming().constant(0, task.device.workgroup);
  Dispatch dispatch("scatter");
  dispatch.operand(&keys, 0, batch.n * 4, Access::read)
      .operand(&winners, 0, batch.places * 4, Access::read_write)
      .push(shaders::ScatterSettle::Push{
          .n = static_cast<uint32_t>(batch.n), .run = static_cast<uint32_t>(run), .none = batch.none()})
      .groups_linear(ceil_div(batch.n, task.device.workgroup * run), task.recorder.traits())
      .work(static_cast<double>(8 * batch.n), 0);
  task.recorder.dispatch(kernel, dispatch);
}

void record_write(const ScatterTask& task, const ScatterBatch& batch, const Buffer& keys, const Buffer& winners,
                  uint64_t unit, const ScatterRows& part) {
  const DeviceTraits& traits = task.recorder.traits();
  const uint64_t n = part.units();
  const uint64_t run = task.device.cpu ? task.device.items_each(n, 128) : unit < 16 ? 4 : 1;
  KernelRequest kernel = shaders::ScatterWrite::request({.long_ = traits.cpu && traits.addresses && unit >= 8,
                                                         .run = task.device.fixed_run(run),
                                                         .single = part.single(),
                                                         .unit = unit});
  kernel.streaming().wide(part.wide()).constant(0, task.device.workgroup);
  Dispatch dispatch("scatter");
  dispatch.operand(task.args.updates, part.from * unit, part.from_span * unit, Access::read)
      .operand(&keys, part.row * 4, part.rows * 4, Access::read)
      .operand(&winners, 0, batch.places * 4, Access::read)
      .operand(task.args.output, part.to * unit, part.to_span * unit, Access::write)
      .push(part.push(batch.none(), run))
      .groups_linear(ceil_div(n, task.device.workgroup * run), traits)
      .work(static_cast<double>(2 * n * unit), 0);
  log(TUFF_LOG_DISPATCH, "scatter n={}: units of {} bytes, rows of {}, {} lanes, {} each", n, unit, part.inner,
      task.device.workgroup, run);
  task.recorder.dispatch(kernel, dispatch);
}

uint64_t unit_of(const ScatterTask& task) {
  const DeviceTraits& traits = task.recorder.traits();
  const uint64_t element = dtype_size(task.args.dtype), row = task.view.inner * element;
  const uint64_t all = row | task.args.updates->offset | task.args.output->offset;
  const uint64_t unit = std::min<uint64_t>(all & (~all + 1), 16);
  return unit == 2 && !traits.storage16 ? element : unit;
}

void record_set(const ScatterTask& task, const ScatterBatch& batch) {
  ScratchLayout layout;
  const uint64_t keys_at = layout.add(batch.n * 4), winners_at = layout.add(batch.places * 4);
  const Buffer& memory = task.recorder.scratch(layout.bytes(), Scratch::outer);
  const Buffer keys = part_of(memory, keys_at, batch.n * 4);
  const Buffer winners = part_of(memory, winners_at, batch.places * 4);
  record_places(task.recorder, "scatter", task.args.index,
                {batch.first, batch.n, batch.window, batch.none(), &keys, 4, &winners});
  record_settle(task, batch, keys, winners);
  const uint64_t unit = unit_of(task), inner = task.view.inner * dtype_size(task.args.dtype) / unit;
  for_each_part(task, batch, inner,
                [&](const ScatterRows& part) { record_write(task, batch, keys, winners, unit, part); });
}

// Indices in the order of the places that they name.
struct Sorted {
  Buffer keys, positions;
};

// How the sort is cut: digits of `bits` bits, and lanes with `chunk` indices each.
struct SortPlan {
  uint32_t passes, bits;
  uint64_t chunk, lanes;
  uint64_t counts() const { return lanes << bits; }
};

SortPlan plan_sort(const ScatterTask& task, const ScatterBatch& batch) {
  const uint32_t all = static_cast<uint32_t>(std::bit_width(batch.places));  // `none` is sorted too
  const uint32_t most = task.device.cpu ? 8 : 4, passes = (all + most - 1) / most, bits = (all + passes - 1) / passes;
  // On a CPU few lanes, whose counts stay in its caches; on a GPU many, with a few counts for each index.
  const uint64_t lanes = task.device.cpu ? 8 * task.device.cores * task.device.subgroup : 1u << 16;
  const uint64_t chunk = std::max<uint64_t>(ceil_div(batch.n, lanes), 64);
  return {passes, bits, chunk, ceil_div(batch.n, chunk)};
}

Sorted record_sort(const ScatterTask& task, const ScatterBatch& batch, const SortPlan& plan, const Sorted& from,
                   const Sorted& to, const Buffer& counts) {
  Sorted now = from, next = to;
  const uint64_t shape = plan.counts(), bytes = batch.n * 4;
  const uint32_t workgroup = task.device.cpu ? task.device.workgroup : std::min(task.device.workgroup, 64u);
  for (uint32_t pass = 0; pass < plan.passes; ++pass) {
    for (const int stage : {1, 2}) {
      const bool moves = stage == 2, numbered = pass == 0;
      KernelRequest kernel = shaders::ScatterSort::request({.numbered = numbered, .stage = stage});
      kernel.streaming().constant(0, workgroup);
      Dispatch dispatch("scatter");
      const bool positions = moves && !numbered;
      dispatch.operand(&now.keys, 0, bytes, Access::read)
          .operand(positions ? &now.positions : nullptr, 0, positions ? bytes : 0, Access::read)
          .operand(&counts, 0, shape * 4, Access::read_write)
          .operand(moves ? &next.keys : nullptr, 0, moves ? bytes : 0, Access::write)
          .operand(moves ? &next.positions : nullptr, 0, moves ? bytes : 0, Access::write)
          .push(shaders::ScatterSort::Push{.n = static_cast<uint32_t>(batch.n),
                                           .lanes = static_cast<uint32_t>(plan.lanes),
                                           .chunk = static_cast<uint32_t>(plan.chunk),
                                           .shift = pass * plan.bits,
                                           .mask = (1u << plan.bits) - 1})
          .groups_linear(ceil_div(plan.lanes, workgroup), task.recorder.traits())
          .work(static_cast<double>(bytes * (moves ? 4 : 1)), 0);
      task.recorder.dispatch(kernel, dispatch);
      if (!moves) record_scan(task.recorder, {ScanOp::sum, TUFF_I32, &counts, &counts, &shape, 1, 0, true, false});
    }
    std::swap(now, next);
  }
  return now;
}

// A list of entries: keys, and a row of values for each.
struct Partials {
  Buffer keys, values;
};

struct Fold {
  uint64_t n;  // entries
  const Buffer* keys;
  const Buffer* positions;  // null: values are those of a list
  const Buffer* values;
  const Partials* next;  // null: the last one
  uint64_t column, columns;
};

void record_fold(const ScatterTask& task, const ScatterBatch& batch, const Fold& fold, uint64_t value_bytes) {
  const DeviceTraits& traits = task.recorder.traits();
  const bool last = fold.next == nullptr, leaf = fold.positions != nullptr;
  const uint64_t size = dtype_size(task.args.dtype), inner = task.view.inner;
  const uint64_t chunk = last ? fold.n : kChunk, chunks = ceil_div(fold.n, chunk), lanes = chunks * fold.columns;
  const uint64_t from_stride = task.view.count * inner, to_stride = task.view.places * inner;
  const uint64_t from_span = (task.view.outer - 1) * from_stride + batch.n * inner,
                 to_span = (task.view.outer - 1) * to_stride + batch.places * inner;
  const uint64_t listed = fold.n * fold.columns;
  const bool wide = needs_wide(std::max({from_span, to_span, listed, fold.column + fold.columns}));
  KernelRequest kernel =
      shaders::ScatterFold::request({.last = last, .leaf = leaf, .op = task.args.op, .type = task.args.dtype});
  kernel.streaming().wide(wide).constant(0, task.device.workgroup);
  Dispatch dispatch("scatter");
  dispatch.operand(fold.keys, 0, fold.n * 4, Access::read)
      .operand(fold.positions, 0, leaf ? fold.n * 4 : 0, Access::read);
  if (leaf) {
    dispatch.operand(task.args.updates, batch.first * inner * size, from_span * size, Access::read);
  } else {
    dispatch.operand(fold.values, 0, listed * value_bytes, Access::read);
  }
  dispatch.operand(task.args.output, batch.window * inner * size, to_span * size, Access::read_write)
      .operand(last ? nullptr : &fold.next->keys, 0, last ? 0 : 2 * chunks * 4, Access::write)
      .operand(last ? nullptr : &fold.next->values, 0, last ? 0 : 2 * chunks * fold.columns * value_bytes,
               Access::write)
      .push(shaders::ScatterFold::Push{.n = static_cast<uint32_t>(fold.n),
                                       .chunk = static_cast<uint32_t>(chunk),
                                       .lanes = static_cast<uint32_t>(lanes),
                                       .columns = static_cast<uint32_t>(fold.columns),
                                       .none = batch.none(),
                                       .first = low_word(fold.column),
                                       .first_high = high_word(fold.column),
                                       .inner = static_cast<uint32_t>(inner),
                                       .from_stride = low_word(from_stride),
                                       .from_stride_high = high_word(from_stride),
                                       .to_stride = low_word(to_stride),
                                       .to_stride_high = high_word(to_stride)})
      .groups_linear(ceil_div(lanes, task.device.workgroup), traits)
      .work(static_cast<double>(listed * size), static_cast<double>(listed));
  log(TUFF_LOG_DISPATCH, "scatter: {} entries of {} columns, chunks of {}", fold.n, fold.columns, chunk);
  task.recorder.dispatch(kernel, dispatch);
}

void record_combined(const ScatterTask& task, const ScatterBatch& batch) {
  const SortPlan plan = plan_sort(task, batch);
  const uint64_t value_bytes = std::max<uint64_t>(dtype_size(task.args.dtype), 4);
  const uint64_t columns = task.view.outer * task.view.inner, keys = batch.n * 4;
  // The lengths of the first two lists; later ones are shorter.
  const uint64_t first_list = batch.n > kMaxLast ? 2 * ceil_div(batch.n, kChunk) : 0;
  const uint64_t second_list = first_list > kMaxLast ? 2 * ceil_div(first_list, kChunk) : 0;
  const uint64_t entries = std::max<uint64_t>(first_list, 1);
  const uint64_t columns_at_once = std::min({columns, std::max<uint64_t>(kMaxScatterUnits / entries, 1),
                                             std::max<uint64_t>(kMaxPartials / (entries * value_bytes), 1)});
  ScratchLayout layout;
  std::array<uint64_t, 4> at{};
  for (uint64_t& place : at) place = layout.add(keys);
  const uint64_t counts_at = layout.add(plan.counts() * 4);
  const std::array<uint64_t, 2> lengths{first_list, second_list};
  std::array<uint64_t, 2> keys_at{}, values_at{};
  for (size_t i = 0; i < 2; ++i) {
    keys_at[i] = layout.add(lengths[i] * 4);
    values_at[i] = layout.add(lengths[i] * columns_at_once * value_bytes);
  }
  const Buffer& memory = task.recorder.scratch(layout.bytes(), Scratch::outer);
  const Sorted from{part_of(memory, at[0], keys), part_of(memory, at[1], keys)},
      to{part_of(memory, at[2], keys), part_of(memory, at[3], keys)};
  const Buffer counts = part_of(memory, counts_at, plan.counts() * 4);
  std::array<Partials, 2> lists;
  for (size_t i = 0; i < 2; ++i) {
    lists[i] = {part_of(memory, keys_at[i], lengths[i] * 4),
                part_of(memory, values_at[i], lengths[i] * columns_at_once * value_bytes)};
  }
  record_places(task.recorder, "scatter", task.args.index,
                {batch.first, batch.n, batch.window, batch.none(), &from.keys, 4, nullptr});
  const Sorted sorted = record_sort(task, batch, plan, from, to, counts);
  for (uint64_t column = 0; column < columns; column += columns_at_once) {
    Fold fold{batch.n,
              &sorted.keys,
              &sorted.positions,
              nullptr,
              nullptr,
              column,
              std::min(columns_at_once, columns - column)};
    for (size_t level = 0;; ++level) {
      Partials& next = lists[level % 2];
      fold.next = fold.n > kMaxLast ? &next : nullptr;
      record_fold(task, batch, fold, value_bytes);
      if (fold.next == nullptr) break;
      fold = {2 * ceil_div(fold.n, kChunk), &next.keys, nullptr, &next.values, nullptr, column, fold.columns};
    }
  }
}

void require_device(const DeviceTraits& traits, const ScatterArgs& args) {
  require_storage(traits, args.dtype);
  if (args.op == TUFF_SCATTER_SET) return;
  const bool integer64 = args.dtype == TUFF_I64 || args.dtype == TUFF_U64;
  if ((args.dtype == TUFF_F64 && !traits.f64) || (integer64 && !traits.int64)) {
    fail(TUFF_ERROR_UNSUPPORTED, "dtype is {}, and the device has no arithmetic of 64 bits for it",
         dtype_name(args.dtype));
  }
}

}  // namespace

void record_scatter(Recorder& recorder, const ScatterArgs& args) {
  require_device(recorder.traits(), args);
  const IndexView view = view_indices(args.index);
  const uint64_t elements = view.outer * view.places * view.inner, size = dtype_size(args.dtype);
  if (elements == 0) return;
  if (view.inner > kMaxScatterUnits)
    fail(TUFF_ERROR_UNSUPPORTED, "rows of {} elements are too long to scatter", view.inner);
  const bool in_place = args.input == nullptr || (args.input->allocation == args.output->allocation &&
                                                  args.input->offset == args.output->offset);
  if (!in_place) {
    StridedCopy copy{"scatter", size, args.input, args.output, 0, 0, {}};
    copy.axes.append(elements, {1, 1});
    record_strided_copy(recorder, copy);
  }
  const bool set = args.op == TUFF_SCATTER_SET;
  const ScatterTask task{
      recorder, stream_device(recorder.traits(), forced_variant<"TUFF_SHAPE_VARIANT">(), sizeof(float)), args, view};
  const bool atomic = combines_by_atomics(task);
  const uint64_t at_once = set || atomic ? kMaxSet : kMaxSorted;
  for (uint64_t first = 0; first < view.count; first += at_once) {
    const uint64_t n = std::min(at_once, view.count - first);
    for (uint64_t window = 0; window < view.places; window += kMaxPlaces) {
      const ScatterBatch batch{first, n, window, std::min(kMaxPlaces, view.places - window)};
      if (set) {
        record_set(task, batch);
      } else if (atomic) {
        record_atomics(task, batch);
      } else {
        record_combined(task, batch);
      }
    }
  }
}

}  // namespace tuff
