// Planner of gather. Rows, as in an embedding, are read as units of up to 16 bytes.
#include <algorithm>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/common/strided_axes.hpp"
#include "kernels/shape/shape.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/gather.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxUnits = 1u << 30;  // of one dispatch
constexpr uint64_t kMaxStride = (uint64_t{1} << 31) - 1;

struct Task {
  Recorder& recorder;
  StreamDevice device;
  const GatherArgs& args;
  uint64_t unit;  // bytes
  bool negative;  // the kernel counts negative indices from the end
};

// The ranges of one dispatch: n units of output from `output` on; inputs from `input` on, `span` of them, or none if
// the axis is empty; `indices` indices from `index` on.
struct Place {
  uint64_t n, output, input, span, index, indices;
};

// How many elements of the axis indices can select. An unsigned index of 64 bits selects any.
uint64_t named_of(const GatherArgs& args) {
  const uint64_t extent = args.shape[args.axis];
  if (args.index_type == TUFF_U64) return extent;
  const int bits = args.index_type == TUFF_I64 ? 63 : args.index_type == TUFF_I32 ? 31 : 32;
  return std::min(extent, uint64_t{1} << bits);
}

template <bool rows>
void dispatch(const Task& task, const Place& place, shaders::Gather::Push<rows> push, uint32_t rank, uint64_t repeat,
              bool single = false) {
  const DeviceTraits& traits = task.recorder.traits();
  const uint64_t items = place.n / repeat, named = named_of(task.args), index = dtype_size(task.args.index_type);
  push.named = static_cast<uint32_t>(named & 0xffffffffu);
  push.named_high = static_cast<uint32_t>(named >> 32);
  const uint32_t unroll = task.device.cpu && repeat == 1 ? 4 : 1;
  const uint64_t run = task.device.cpu ? task.device.items_each(items, 128, unroll) : (task.unit * repeat < 16 ? 4 : 1);
  push.run = static_cast<uint32_t>(run);
  KernelRequest kernel = shaders::Gather::request({.index_bytes = index,
                                                   .long_ = traits.cpu && traits.addresses && task.unit >= 8,
                                                   .negative = task.negative,
                                                   .repeat = repeat,
                                                   .rows = rows,
                                                   .run = task.device.fixed_run(run),
                                                   .single = single,
                                                   .unit = task.unit,
                                                   .unroll = unroll});
  kernel.streaming().wide(needs_wide(place.span)).constant(0, task.device.workgroup).constant(1, rank);
  Dispatch dispatch("gather");
  const Buffer* input = place.span == 0 ? nullptr : task.args.input;
  dispatch.operand(input, place.input * task.unit, place.span * task.unit, Access::read)
      .operand(task.args.indices, place.index * index, place.indices * index, Access::read)
      .operand(task.args.output, place.output * task.unit, place.n * task.unit, Access::write)
      .push(push)
      .groups_linear(ceil_div(items, task.device.workgroup * run), traits)
      .work(static_cast<double>(2 * place.n * task.unit + place.indices * index), 0);
  log(TUFF_LOG_DISPATCH, "gather n={}: units of {} bytes, {}, {} lanes, {} times {} each", place.n, task.unit,
      rows ? "rows" : "elements", task.device.workgroup, run, repeat);
  task.recorder.dispatch(kernel, dispatch);
}

void record_rows(Task task) {
  const GatherArgs& args = task.args;
  const uint64_t element = dtype_size(args.dtype);
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  const auto fits = [&](uint64_t bytes) {
    const bool input = view.axis == 0 || args.input->offset % bytes == 0;
    return view.inner * element % bytes == 0 && input && args.output->offset % bytes == 0;
  };
  while (task.unit < 16 && fits(2 * task.unit)) task.unit *= 2;
  if (task.unit == 2 && !task.recorder.traits().storage16) task.unit = element;
  const uint64_t inner = view.inner * element / task.unit;
  if (inner > kMaxUnits) {
    fail(TUFF_ERROR_UNSUPPORTED, "rows of {} units of {} bytes are too long to gather", inner, task.unit);
  }
  // One index lookup serves four units of a row where neighbouring lanes still read 128 consecutive bytes of it.
  const uint64_t repeat = inner % 4 == 0 && inner / 4 * task.unit >= 128 ? 4 : 1;
  // Each dispatch covers several outer indices, or a range of the indices of a single one.
  const uint64_t rows_at_once = std::min(args.count, std::max<uint64_t>(kMaxUnits / inner, 1));
  const bool one = rows_at_once < args.count || view.axis * inner > kMaxStride;
  const uint64_t outers_at_once = one ? 1 : std::max<uint64_t>(kMaxUnits / (args.count * inner), 1);
  for (uint64_t outer = 0; outer < view.outer; outer += outers_at_once) {
    const uint64_t outers = std::min(outers_at_once, view.outer - outer);
    for (uint64_t row = 0; row < args.count; row += rows_at_once) {
      const uint64_t rows = std::min(rows_at_once, args.count - row);
      StridedAxes<1> axes;
      axes.rank = 3;
      axes.sizes = {outers, rows, inner / repeat};
      shaders::Gather::Push<true> push{.n = static_cast<uint32_t>(outers * rows * inner / repeat),
                                       .stride = static_cast<uint32_t>(inner),
                                       .outer_stride = outers == 1 ? 0 : static_cast<uint32_t>(view.axis * inner)};
      AxisDividers<3>(axes).store(push);
      dispatch<true>(task,
                     {outers * rows * inner, (outer * args.count + row) * inner, outer * view.axis * inner,
                      outers * view.axis * inner, row, rows},
                     push, 1, repeat, outers == 1 && inner == 1);
    }
  }
}

// The axes are those of the output, with strides of the input (0 along the axis, and all 0 if the axis is empty) and of
// the output itself.
void record_elements(const Task& task, const StridedAxes<2>& axes, uint64_t extent, uint64_t stride, uint64_t input,
                     uint64_t output) {
  constexpr uint32_t kMaxAxes = 7;
  const uint64_t n = axes.count();
  if (n <= kMaxUnits && axes.rank <= kMaxAxes) {
    bool reach = stride <= kMaxStride;
    for (uint32_t i = 0; i < axes.rank; ++i) reach = reach && static_cast<uint64_t>(axes.strides[i][0]) <= kMaxStride;
    if (!reach) fail(TUFF_ERROR_UNSUPPORTED, "elements of one axis are 2^31 elements or more apart");
    shaders::Gather::Push<false> push{.n = static_cast<uint32_t>(n), .stride = static_cast<uint32_t>(stride)};
    AxisDividers<kMaxAxes>(axes).store(push);
    for (uint32_t i = 0; i < axes.rank; ++i) {
      push.strides[i] = static_cast<int32_t>(axes.strides[axes.rank - 1 - i][0]);
    }
    const uint64_t span = extent == 0 ? 0 : axes.span(0).elements + (extent - 1) * stride;
    dispatch<false>(task, {n, output, input, span, output, n}, push, std::max(axes.rank, 1u), 1);
    return;
  }
  const uint64_t inner = n / axes.sizes[0];
  const uint64_t step = axes.rank > kMaxAxes ? 1 : std::max<uint64_t>(kMaxUnits / inner, 1);
  for (uint64_t begin = 0; begin < axes.sizes[0]; begin += step) {
    StridedAxes<2> part;
    part.append(std::min(step, axes.sizes[0] - begin), axes.strides[0]);
    for (uint32_t i = 1; i < axes.rank; ++i) part.append(axes.sizes[i], axes.strides[i]);
    record_elements(task, part, extent, stride, input + begin * static_cast<uint64_t>(axes.strides[0][0]),
                    output + begin * inner);
  }
}

// Computes the places that indices name, which are then indices of rows. What is out of range is beyond all places.
void record_computed(const Task& task, const IndexArgs& index) {
  const IndexView view = view_indices(index);
  if (view.outer == 0 || view.inner == 0 || view.count == 0) return;
  const uint64_t bytes = needs_wide(view.places) ? 8 : 4;
  const Buffer keys = task.recorder.scratch(view.count * bytes, Scratch::outer);
  record_places(task.recorder, "gather", index,
                {0, view.count, 0, static_cast<uint32_t>(bytes == 8 ? 0 : view.places), &keys, bytes, nullptr});
  const uint64_t shape[3] = {view.outer, view.places, view.inner};
  const GatherArgs rows{task.args.dtype,
                        bytes == 8 ? TUFF_U64 : TUFF_U32,
                        task.args.input,
                        &keys,
                        task.args.output,
                        shape,
                        3,
                        1,
                        view.count,
                        nullptr,
                        0,
                        false};
  record_rows({task.recorder, task.device, rows, dtype_size(rows.dtype), false});
}

}  // namespace

void record_gather(Recorder& recorder, const GatherArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.dtype);
  const IndexArgs index = args.index();
  // Counted by the kernel itself if it can address what is gathered from with 32 bits.
  const bool by_kernel = index.numbers() == 1 && !needs_wide(checked_product({args.shape, args.rank}, "shape"));
  const Task task{recorder, stream_device(traits, forced_variant<"TUFF_SHAPE_VARIANT">(), sizeof(float)), args,
                  dtype_size(args.dtype), by_kernel && index.computed()};
  if (index.computed() && !by_kernel) return record_computed(task, index);
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  if (args.index_shape == nullptr) {
    if (view.outer != 0 && view.inner != 0 && args.count != 0) record_rows(task);
    return;
  }
  if (checked_product({args.index_shape, args.rank}, "index_shape") == 0) return;
  StridedAxes<2>::Strides strides[8];
  int64_t input = 1, output = 1;
  for (uint32_t i = args.rank; i-- > 0;) {
    strides[i] = {i == args.axis || view.axis == 0 ? 0 : input, output};
    input *= static_cast<int64_t>(args.shape[i]);
    output *= static_cast<int64_t>(args.index_shape[i]);
  }
  StridedAxes<2> axes;
  for (uint32_t i = 0; i < args.rank; ++i) axes.append(args.index_shape[i], strides[i]);
  record_elements(task, axes, view.axis, view.axis == 0 ? 0 : view.inner, 0, 0);
}

}  // namespace tuff
