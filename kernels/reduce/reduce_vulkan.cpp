// Planner of reductions. The axis is viewed as (outer, length, inner) and reduced in stages. Each stage is a dispatch
// that leaves `segments` partial results in place of the axis; the last leaves one:
//
//   inner = 1   reduce_rows: 1 … a subgroup of lanes for a short row, a workgroup for a long one; where rows are few
//               and long, each is cut into segments
//   inner > 1   reduce_columns: lanes along inner; where there are few, rows are distributed over segments
//
// Segments depend only on the sizes and the device, so results are the same in every run. Values are computed in one
// type (reduce::value_type), which partial results have too: f32 or f64 for floats, integers of 32 or 64 bits. The
// first stage applies what the operation does to each element, and the last what it does to the result (reduce.def).
//
// The largest element of logsumexp is a center: it takes two reductions. The center of each result stays in scratch
// memory, and the second one reads the input again.
//
// var and std read the input once. A partial result is a mean, squares of distances and a count (states.glsl), in three
// planes; all of one result have its first element as their base.
//
// Serial additions of one lane in one stage (the c of the error bound), with UNROLL independent chains that are merged
// every 32 steps, are at most 32 + count / (32 UNROLL) + 2 UNROLL for a lane with `count` blocks:
//   rows, GPU      count <= 4096 (2^22 elements, 256 lanes, UNROLL 8)        c <= 64
//                  count <= 32768 (a subgroup of 32 where rows are many)     c <= 176
//   rows, CPU      count <= 4096 (2^17 elements, 8 lanes, UNROLL 4)          c <= 72; var and std (UNROLL 1) c <= 162
//   columns        count <= 4096 (one chain for each column with TUFF_SPAN)   c <= 162
// The trees of the stages add log2 of the lanes. argmax and argmin: reduce_arg_vulkan.cpp.
#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_ops.hpp"
#include "kernels/reduce/reduce_shape.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/reduce_columns.hpp"
#include "shaders/reduce_rows.hpp"

namespace tuff {
namespace {

// One stage reduces [outer][length][inner] at an offset of one buffer to [outer][segments][inner] in another.
struct Stage {
  uint64_t outer, length, inner;
  uint64_t segments;
  uint64_t segment;  // rows only: elements of a segment, a multiple of 8
};

struct Place {
  const Buffer* buffer;
  int32_t dtype;
  uint64_t element;    // index of the first element
  uint64_t plane = 0;  // of partial results of several values: from a value to the next one

  uint64_t values() const { return plane != 0 ? 3 : 1; }
  // Elements from the first to the last of `count` partial results or numbers.
  uint64_t reach(uint64_t count) const { return (values() - 1) * plane + count; }
  uint64_t size() const { return dtype_size(dtype); }
  bool aligned() const { return aligned16(buffer, element * size()); }
  Place behind(uint64_t elements) const { return {buffer, dtype, element + elements, plane}; }
};

// TUFF_PREPARE and TUFF_FINISH of a stage.
struct Ends {
  int prepare, finish;
  bool centered() const { return prepare == 5 || finish == 4; }  // TUFF_CENTERED
};

bool has_moments(const reduce::Op& op) {
  return op.result == reduce::Result::variance || op.result == reduce::Result::deviation;
}

struct Reduction {
  Recorder& recorder;
  const reduce::Op& op;
  StreamDevice device;
  int32_t value;  // the type that values are computed in
  double divisor;
  Place center;  // [outer][inner], if the operation has one
};

Ends ends_of(const reduce::Op& op, bool first, bool last) {
  return {first ? static_cast<int>(op.prepare) : 0, last ? reduce::finish_of(op.result) : 0};
}

// ---- rows ------------------------------------------------------------------------------------------

void cut_rows(const StreamDevice& device, Stage& stage) {
  const uint64_t segment = reduce::row_segment(device, stage.outer, stage.length);
  stage.segments = 1;
  stage.segment = std::max<uint64_t>((stage.length + 7) / 8 * 8, 8);
  if (segment == 0) return;
  stage.segment = segment;
  stage.segments = ceil_div(stage.length, stage.segment);
}

// TUFF_SPLIT, of a stage that reads this type in blocks of `width`, as words if it is `aligned`. Blocks of one element
// are not worth it.
int split_of(const Reduction& reduction, int32_t dtype, Ends ends, uint32_t width, bool aligned) {
  const bool half = dtype == TUFF_F16 || dtype == TUFF_BF16;
  if (!reduction.device.cpu && half && reduction.value == TUFF_F32 && reduction.op.selects && width == 8 && aligned) {
    return 2;
  }
  return !reduction.device.cpu && (reduction.value == TUFF_I64 || reduction.value == TUFF_U64) &&
         dtype_size(dtype) <= 4 && reduction.op.gathers == TUFF_REDUCE_SUM && ends.prepare == 0 && width > 1;
}

// At most so many blocks in flight, because of the registers for each of them and its chain. Those of 64 bits, and
// those that keep NaN, spilled with more: 0.6 of the rate.
uint32_t most_in_flight(const Reduction& reduction, uint32_t parts, int split) {
  if (split == 2) return 4;
  const auto words = static_cast<uint32_t>(dtype_size(reduction.value) / 4);
  // Mean, squares and count of each. On a CPU a second chain spills: 0.2 to 0.6 of the rate.
  if (has_moments(reduction.op) && reduction.device.cpu) return 1;
  if (has_moments(reduction.op)) return std::bit_floor(std::max(4 / (words * parts), 1u));
  const bool keeps_nan = reduction.op.selects && (reduction.value == TUFF_F32 || reduction.value == TUFF_F64);
  return keeps_nan ? std::bit_floor(5 / (words * parts)) : std::bit_floor(32 / ((split == 1 ? 3 : 2 * words) * parts));
}

void add_center(Dispatch& dispatch, Place center, uint64_t count, Ends ends) {
  if (!ends.centered()) return;
  dispatch.operand(center.buffer, center.element * center.size(), count * center.size(), Access::read);
}

// base: of moments, where the first row begins.
void dispatch_rows(const Reduction& reduction, const Stage& stage, uint64_t rows, uint64_t length, uint64_t segments,
                   Place from, Place to, Place center, Place base, Ends ends) {
  const DeviceTraits& traits = reduction.recorder.traits();
  const uint64_t pieces = rows * segments;
  const uint32_t parts = block_parts(from.dtype);
  const int vector = vector_mode(traits, from.aligned());
  const int split = split_of(reduction, from.dtype, ends, 4 * parts, vector != 0);
  const reduce::RowShape shape =
      reduce::row_shape(reduction.device, pieces, std::min(stage.segment, std::max<uint64_t>(length, 1)), parts,
                        most_in_flight(reduction, parts, split));
  const bool single = shape.lanes == shape.workgroup;

  KernelRequest kernel = shaders::ReduceRows::request({.cut = segments > 1,
                                                       .exact_arithmetic = traits.cpu,
                                                       .finish = ends.finish,
                                                       .lanes = shape.lanes,
                                                       .merges = from.plane != 0,
                                                       .op = reduction.op.gathers,
                                                       .parts = parts,
                                                       .peel = length % (4 * parts) != 0,
                                                       .prepare = ends.prepare,
                                                       .run = reduction.device.fixed_run(shape.run),
                                                       .shared = shape.shared,
                                                       .single = single,
                                                       .split = split,
                                                       .state = has_moments(reduction.op),
                                                       .unroll = shape.unroll,
                                                       .v_type = reduction.value,
                                                       .vector = vector,
                                                       .x_type = from.dtype,
                                                       .y_type = to.dtype});
  kernel.streaming().constant(0, shape.workgroup);
  shaders::ReduceRows::Push push{.pieces = static_cast<uint32_t>(pieces),
                                 .extent = static_cast<uint32_t>(length),
                                 .segments = static_cast<uint32_t>(segments),
                                 .segment = static_cast<uint32_t>(std::min<uint64_t>(stage.segment, 1u << 31)),
                                 .run = shape.run,
                                 .from_plane = static_cast<uint32_t>(from.plane),
                                 .to_plane = static_cast<uint32_t>(to.plane)};
  reduce::set_divisor(push, reduction.divisor);
  const uint64_t elements = rows * length;
  const uint64_t input_bytes = elements != 0 ? from.reach(elements) * from.size() : 0;
  const uint64_t output_bytes = to.reach(pieces) * to.size();
  const uint64_t groups = ceil_div(pieces * shape.lanes, uint64_t{shape.workgroup} * shape.run);
  Dispatch dispatch(reduction.op.name);
  dispatch.operand(input_bytes ? from.buffer : nullptr, from.element * from.size(), input_bytes, Access::read)
      .operand(to.buffer, to.element * to.size(), output_bytes, Access::write);
  add_center(dispatch, center, rows, ends);
  if (ends.prepare == static_cast<int>(reduce::Prepare::distance)) {
    // The beginning of each row: of a part of a row the first element alone.
    const uint64_t count = elements == 0 ? 0 : base.element == from.element ? elements : 1;
    dispatch.operand(count != 0 ? base.buffer : nullptr, base.element * base.size(), count * base.size(), Access::read);
  }
  dispatch.push(push)
      .groups_linear(groups, traits)
      .work(static_cast<double>(elements * from.values() * from.size() + pieces * to.values() * to.size()),
            static_cast<double>(elements));
  log(TUFF_LOG_DISPATCH,
      "{} {} rows={} length={} segments={}: {} lanes of {}, {} blocks in flight, {} rows each, vector {}",
      reduction.op.name, dtype_name(from.dtype), rows, length, segments, shape.lanes, shape.workgroup, shape.unroll,
      shape.run, vector);
  reduction.recorder.dispatch(kernel, dispatch);
}

// Splits the stage into dispatches that each span at most a piece: whole rows while they fit, otherwise whole segments
// of one row.
void record_rows(const Reduction& reduction, const Stage& stage, Place from, Place to, Ends ends) {
  const Place center = reduction.center;
  const uint64_t piece = reduction.device.piece;
  if (stage.length <= piece) {
    const uint64_t largest = std::max(stage.length, stage.segments);
    uint64_t step = largest ? piece / largest : piece;
    if (step >= 8) step -= step % 8;  // keeps pieces as aligned as the whole
    for (uint64_t row = 0; row < stage.outer; row += step) {
      dispatch_rows(reduction, stage, std::min(step, stage.outer - row), stage.length, stage.segments,
                    from.behind(row * stage.length), to.behind(row * stage.segments), center.behind(row),
                    from.behind(row * stage.length), ends);
    }
    return;
  }
  const uint64_t step = piece / stage.segment;  // in segments; a segment is far smaller than a piece
  for (uint64_t row = 0; row < stage.outer; ++row) {
    for (uint64_t s = 0; s < stage.segments; s += step) {
      const uint64_t begin = s * stage.segment;
      const uint64_t count = std::min(step, stage.segments - s);
      dispatch_rows(reduction, stage, 1, std::min(count * stage.segment, stage.length - begin), count,
                    from.behind(row * stage.length + begin), to.behind(row * stage.segments + s), center.behind(row),
                    from.behind(row * stage.length), ends);
    }
  }
}

// ---- columns ---------------------------------------------------------------------------------------

void cut_columns(const StreamDevice& device, Stage& stage, int32_t dtype) {
  const uint64_t lanes = stage.outer * (stage.inner / column_width(stage.inner, dtype));
  stage.segments = reduce::column_segments(device, lanes, stage.length);
}

void dispatch_columns(const Reduction& reduction, const Stage& stage, uint64_t outer, Place from, Place to,
                      Place center, Ends ends) {
  const DeviceTraits& traits = reduction.recorder.traits();
  const uint32_t width = column_width(stage.inner, from.dtype), parts = std::max(width / 4, 1u);
  const int vector = vector_mode(traits, width > 1 && from.aligned() && to.aligned());
  const int split = split_of(reduction, from.dtype, ends, width, vector != 0);
  const uint64_t results = outer * stage.segments * (stage.inner / width);
  const uint64_t rows = ceil_div(stage.length, stage.segments);
  const uint32_t workgroup =
      reduction.device.cpu ? reduction.device.subgroup : std::min(reduction.device.workgroup, 128u);
  // A CPU reads longer pieces of each row where rows are long enough.
  const uint64_t columns = stage.inner / width;
  const uint64_t span = !reduction.device.cpu || columns < workgroup ? 0 : std::min<uint64_t>(columns / workgroup, 4);
  const uint64_t tile = workgroup * std::max<uint64_t>(span, 1);  // results of a workgroup
  const uint64_t tiles = span ? results / columns * ceil_div(columns, tile) : ceil_div(results, tile);
  const uint64_t run =
      reduction.device.cpu ? few_values(std::min(tiles / (8 * reduction.device.cores), 256 / rows), 1, 64) : 1;
  const uint64_t elements = outer * stage.length * stage.inner;

  KernelRequest kernel =
      shaders::ReduceColumns::request({.cut = stage.segments > 1,
                                       .exact_arithmetic = traits.cpu,
                                       .finish = ends.finish,
                                       .merges = from.plane != 0,
                                       .op = reduction.op.gathers,
                                       .parts = parts,
                                       .prepare = ends.prepare,
                                       .run = reduction.device.fixed_run(run),
                                       .span = span,
                                       .split = split,
                                       .state = has_moments(reduction.op),
                                       .unroll = rows >= 4 && most_in_flight(reduction, parts, split) > 1 ? 4 : 1,
                                       .v_type = reduction.value,
                                       .vector = vector,
                                       .width = width,
                                       .x_type = from.dtype,
                                       .y_type = to.dtype});
  kernel.streaming().constant(0, workgroup).wide(needs_wide(elements));
  shaders::ReduceColumns::Push push{.results = static_cast<uint32_t>(results),
                                    .extent = static_cast<uint32_t>(stage.length),
                                    .columns = static_cast<uint32_t>(columns),
                                    .segments = static_cast<uint32_t>(stage.segments),
                                    .run = static_cast<uint32_t>(run),
                                    .from_plane = static_cast<uint32_t>(from.plane),
                                    .to_plane = static_cast<uint32_t>(to.plane)};
  reduce::set_divisor(push, reduction.divisor);
  const uint64_t input_bytes = from.reach(elements) * from.size(), output_bytes = to.reach(results * width) * to.size();
  Dispatch dispatch(reduction.op.name);
  dispatch.operand(from.buffer, from.element * from.size(), input_bytes, Access::read)
      .operand(to.buffer, to.element * to.size(), output_bytes, Access::write);
  add_center(dispatch, center, outer * stage.inner, ends);
  dispatch.push(push)
      .groups_linear(ceil_div(tiles, run), traits)
      .work(static_cast<double>(elements * from.values() * from.size() + results * width * to.values() * to.size()),
            static_cast<double>(elements));
  log(TUFF_LOG_DISPATCH,
      "{} {} outer={} length={} inner={} segments={}: columns by {}, {} lanes, span {}, {} results each, vector {}",
      reduction.op.name, dtype_name(from.dtype), outer, stage.length, stage.inner, stage.segments, width, workgroup,
      span, run, vector);
  reduction.recorder.dispatch(kernel, dispatch);
}

// The kernel counts rows and lanes in 32 bits. A single slab has the most; several at once span at most a piece.
void require_numbers(const Stage& stage, int32_t dtype) {
  const uint64_t results = stage.segments * (stage.inner / column_width(stage.inner, dtype));
  if (std::max(stage.length, results) <= 0xffff0000u) return;
  fail(TUFF_ERROR_UNSUPPORTED, "axis={} inner={}: {} rows of {} lanes, at most 2^32 - 2^16 of each", stage.length,
       stage.inner, stage.length, results);
}

// Dispatches as many whole slabs of the outer index as fit in a piece. A larger slab is dispatched alone, with 64-bit
// indices if necessary.
void record_columns(const Reduction& reduction, const Stage& stage, Place from, Place to, Ends ends) {
  const uint64_t slab = stage.length * stage.inner;
  uint64_t step = std::max<uint64_t>(reduction.device.piece / slab, 1);
  if (step >= 8) step -= step % 8;
  for (uint64_t outer = 0; outer < stage.outer; outer += step) {
    dispatch_columns(reduction, stage, std::min(step, stage.outer - outer), from.behind(outer * slab),
                     to.behind(outer * stage.segments * stage.inner), reduction.center.behind(outer * stage.inner),
                     ends);
  }
}

// The stages of a reduction, and the partial results that they leave.
struct Stages {
  static constexpr uint32_t kMax = 8;
  std::array<Stage, kMax> stage{};
  uint32_t count = 0;
  bool columns = false;
  uint64_t partials = 0;  // elements
};

// A place of this many partial results, and the next one's beginning.
uint64_t room_for(uint64_t results) { return (results + 63) / 64 * 64; }

// values: of a partial result.
Stages stages_of(const StreamDevice& device, const AxisView& view, int32_t dtype, int32_t value, uint64_t values) {
  // An empty axis fills the output. An axis of one element is a copy, which works best as columns.
  const bool fill = view.axis == 0;
  const bool copy = view.axis == 1;
  const uint64_t outputs = view.outer * view.inner;
  Stages stages;
  stages.columns = !fill && (view.inner > 1 || copy);
  Stage stage{fill ? outputs : copy ? 1 : view.outer, view.axis, fill ? 1 : copy ? outputs : view.inner, 1, 0};
  for (;;) {
    const int32_t from = stages.count == 0 ? dtype : value;
    stages.columns ? cut_columns(device, stage, from) : cut_rows(device, stage);
    require(stages.count < Stages::kMax, "shape needs more than {} stages", Stages::kMax);
    stages.stage[stages.count++] = stage;
    if (stages.columns) require_numbers(stage, from);
    if (stage.segments == 1) return stages;
    stages.partials += values * room_for(stage.outer * stage.segments * stage.inner);
    stage.length = stage.segments;
  }
}

// Each stage's partial results begin at a multiple of 64 elements behind those of the stage before.
void record_stages(const Reduction& reduction, const Stages& stages, Place from, Place result, Place partials) {
  for (uint32_t i = 0; i < stages.count; ++i) {
    const Stage& stage = stages.stage[i];
    const bool last = i + 1 == stages.count;
    const uint64_t plane = room_for(stage.outer * stage.segments * stage.inner);
    Place to = last ? result : partials;
    if (!last && has_moments(reduction.op)) to.plane = plane;
    const Ends ends = ends_of(reduction.op, i == 0, last);
    stages.columns ? record_columns(reduction, stage, from, to, ends) : record_rows(reduction, stage, from, to, ends);
    from = to;
    partials = partials.behind(to.values() * plane);
  }
}

}  // namespace

void record_reduce(Recorder& recorder, const ReduceArgs& args) {
  const reduce::Op& op = *reduce::find(args.op);
  const AxisView view = reduce::view_of(args);
  const int32_t output = reduce::output_type(op, args.dtype, args.output_type);
  const int32_t value = reduce::value_type(op, args.dtype, output);
  const DeviceTraits& traits = recorder.traits();
  require_type(traits, args.dtype);
  require_type(traits, value);
  require_storage(traits, output);
  if (op.result == reduce::Result::place) return record_reduce_arg(recorder, args);
  if (view.outer == 0 || view.inner == 0) return;
  if (value == TUFF_U32 && op.output == reduce::Output::count && view.axis > 0xffffffffu) {
    fail(TUFF_ERROR_UNSUPPORTED, "axis={}: at most 2^32 - 1 elements are counted", view.axis);
  }
  const uint64_t largest = std::max({dtype_size(args.dtype), dtype_size(value), dtype_size(output)});
  const StreamDevice device =
      stream_device(traits, forced_variant<"TUFF_REDUCE_VARIANT">(), std::max<uint64_t>(largest, sizeof(float)));
  const bool moments = has_moments(op);
  const Stages stages = stages_of(device, view, args.dtype, value, moments ? 3 : 1);

  // Scratch memory: the center of each result, then partial results.
  const bool centered = op.center != 0 && !moments;
  const uint64_t centers = centered ? room_for(view.outer * view.inner) : 0;
  const uint64_t kept = centers + stages.partials;
  const Buffer* scratch = kept != 0 ? &recorder.scratch(kept * dtype_size(value)) : nullptr;
  const Place input{args.input, args.dtype, 0}, center{scratch, value, 0}, partials{scratch, value, centers};
  const auto elements = static_cast<double>(view.axis);
  if (centered) {
    const Reduction first{recorder, *reduce::find(op.center), device, value, elements, {}};
    record_stages(first, stages, input, center, partials);
  }
  const double divisor = std::max(elements - args.correction, 0.0);
  const Reduction reduction{recorder, op, device, value, divisor, center};
  record_stages(reduction, stages, input, {args.output, output, 0}, partials);
}

}  // namespace tuff
