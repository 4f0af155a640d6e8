// Planner of scans. The axis is viewed as (outer, length, inner):
//
//   inner = 1   scan_rows: 1 … a subgroup of lanes for a short row, a workgroup for a long one
//   inner > 1   scan_columns: lanes along inner, each of which walks down the axis
//
// The axis is cut into segments where rows or columns are too few to fill the device, or where an axis is so long that
// there would be too many serial additions. That takes one dispatch for the totals and one for the results. Segments
// depend only on the sizes and the device, so results are the same in every run. Floats are computed in f32, and f64
// in f64; integers wrap.
//
// The serial operations before a result, the c of the error bound c 2^-24 sum |x|, are at most kMaxSteps of a segment,
// those of its lanes (8 elements, 10 shuffles, 32 subgroups), and those over earlier segments, max(kMaxSegments, length
// / kMaxSteps). Rows distribute the latter over lanes; columns combine them in groups of 64. For columns of up to 2^28
// rows that is below tuff.h's 6000.
#include <algorithm>
#include <bit>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/scan/scan.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/scan.hpp"
#include "shaders/scan_columns.hpp"
#include "shaders/scan_rows.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxSteps = 4096, kMaxSegments = 1024;

struct Scan {
  Recorder& recorder;
  const ScanArgs& args;
  StreamDevice device;

  const char* name() const { return name_of(args.op); }
  // Values of a total: what is carried along for a logarithm is a pair.
  uint64_t values() const { return args.op == ScanOp::log_sum_exp ? 2 : 1; }
  uint64_t element_bytes() const { return dtype_size(args.dtype); }
  shaders::Scan form(int stage) const {
    return {.exact_arithmetic = args.op == ScanOp::log_sum_exp && recorder.traits().cpu,
            .exclusive = args.exclusive,
            .op = static_cast<int>(args.op),
            .reverse = args.reverse,
            .stage = stage,
            .type = args.dtype};
  }
};

// How an axis of `length` items is cut. An item is a step of `lanes` lanes, or one element of a column.
struct Cut {
  uint64_t segments, segment;
};

// `pieces` is the number of uncut rows or columns, `wanted` the number that fills the device. A segment is a multiple
// of `unit` and has at least `shortest` items, because its total costs a dispatch and a second read.
Cut cut_axis(uint64_t length, uint64_t pieces, uint64_t wanted, uint64_t unit, uint64_t shortest, uint64_t longest) {
  uint64_t segment = length;
  if (pieces < wanted && length >= 2 * shortest) {
    segment = std::max({length * pieces / wanted, shortest, ceil_div(length, kMaxSegments)});
  }
  segment = std::min(segment, longest);
  segment = ceil_div(segment, unit) * unit;
  return {ceil_div(length, segment), segment};
}

// Records both dispatches of an axis that is cut, or the single one of an axis that is not.
template <typename Shader, typename Request, typename Push>
void dispatch_stages(const Scan& scan, Request request, const Push& push, uint32_t workgroup, uint64_t groups,
                     uint64_t first, uint64_t elements, uint64_t segments, uint64_t totals, const char* what) {
  const DeviceTraits& traits = scan.recorder.traits();
  const uint64_t size = scan.element_bytes(), bytes = elements * size,
                 total_bytes = totals * scan.values() * dtype_size(scan::value_type(scan.args.dtype));
  const bool cut = segments > 1;
  const Buffer* scratch = cut ? &scan.recorder.scratch(total_bytes) : nullptr;
  for (int stage = cut ? 1 : 0; stage <= (cut ? 2 : 0); ++stage) {
    request.form = scan.form(stage);
    KernelRequest kernel = Shader::request(request);
    kernel.streaming().constant(0, workgroup).wide(needs_wide(elements));
    Dispatch dispatch(scan.name());
    const bool writes = stage != 1;
    dispatch.operand(scan.args.input, first * size, bytes, Access::read)
        .operand(writes ? scan.args.output : nullptr, writes ? first * size : 0, writes ? bytes : 0, Access::write)
        .operand(scratch, 0, scratch != nullptr ? total_bytes : 0, stage == 1 ? Access::write : Access::read)
        .push(push)
        .groups_linear(groups, traits)
        .work(static_cast<double>(bytes) * (writes ? 2 : 1), static_cast<double>(elements));
    log(TUFF_LOG_DISPATCH, "{} {}: {} of {} elements, {} segments, stage {}, groups of {}", scan.name(),
        dtype_name(scan.args.dtype), what, elements, segments, stage, workgroup);
    scan.recorder.dispatch(kernel, dispatch);
  }
}

void scan_rows(const Scan& scan, uint64_t first, uint64_t rows, uint64_t length) {
  const DeviceTraits& traits = scan.recorder.traits();
  const StreamDevice& device = scan.device;
  const uint32_t parts = block_parts(scan.args.dtype);
  const bool blocked = length % (4 * parts) == 0;
  const uint64_t width = blocked ? 4 * parts : 1, items = length / width;
  const bool aligned = aligned16(scan.args.input, first * scan.element_bytes()) &&
                       aligned16(scan.args.output, first * scan.element_bytes());

  const uint64_t filled = std::bit_ceil(items);  // lanes for which a row has work
  uint32_t lanes = static_cast<uint32_t>(std::min<uint64_t>(filled, device.subgroup));
  if (device.cpu) {
    // One lane per row while rows are short and many, which needs no shuffles.
    if (length <= 256 && rows >= 16 * device.cores) lanes = 1;
  } else if (items > 8 * device.subgroup && (rows < 256 * device.cores || items > 64 * device.subgroup)) {
    lanes = device.workgroup;
  }
  const Cut cut = cut_axis(items, rows, (device.cpu ? 4 : 8) * device.cores, lanes,
                           (device.cpu ? 1u << 12 : 1u << 14) / width, kMaxSteps * lanes);

  shaders::ScanRows::Push push{.pieces = static_cast<uint32_t>(rows * cut.segments),
                               .extent = static_cast<uint32_t>(items),
                               .segments = static_cast<uint32_t>(cut.segments),
                               .segment = static_cast<uint32_t>(cut.segment)};
  const uint64_t groups = ceil_div(rows * cut.segments * lanes, device.workgroup);
  dispatch_stages<shaders::ScanRows>(scan,
                                     shaders::ScanRows::Defines{.blocked = blocked,
                                                                .form = scan.form(0),
                                                                .lanes = lanes,
                                                                .parts = parts,
                                                                .shared = lanes > device.subgroup,
                                                                .vector = vector_mode(traits, blocked && aligned)},
                                     push, device.workgroup, groups, first, rows * length, cut.segments,
                                     rows * cut.segments, "rows");
}

void scan_columns(const Scan& scan, uint64_t first, uint64_t outer, uint64_t length, uint64_t inner) {
  const DeviceTraits& traits = scan.recorder.traits();
  const StreamDevice& device = scan.device;
  const uint32_t width = column_width(inner, scan.args.dtype), parts = std::max(width / 4, 1u);
  const bool aligned = aligned16(scan.args.input, first * scan.element_bytes()) &&
                       aligned16(scan.args.output, first * scan.element_bytes());
  const uint64_t columns = inner / width;
  const uint32_t workgroup = device.cpu ? device.subgroup : std::min(device.workgroup, 128u);
  const Cut cut =
      cut_axis(length, outer * columns, device.cores * (device.cpu ? 4 * device.subgroup : 1024), 1, 32, kMaxSteps);
  const uint64_t lanes = outer * cut.segments * columns;
  if (std::max(length, lanes) > 0xffff0000u) {
    fail(TUFF_ERROR_UNSUPPORTED, "axis={} inner={}: {} rows of {} lanes, at most 2^32 - 2^16 of each", length, inner,
         length, lanes);
  }
  if (cut.segments > 1 && scan.values() * lanes > UINT32_MAX) {
    fail(TUFF_ERROR_UNSUPPORTED, "axis={} inner={}: {} lanes of {}, at most 2^31", length, inner, lanes, scan.name());
  }
  shaders::ScanColumns::Push push{.lanes = static_cast<uint32_t>(lanes),
                                  .extent = static_cast<uint32_t>(length),
                                  .columns = static_cast<uint32_t>(columns),
                                  .segments = static_cast<uint32_t>(cut.segments),
                                  .segment = static_cast<uint32_t>(cut.segment)};
  dispatch_stages<shaders::ScanColumns>(
      scan,
      shaders::ScanColumns::Defines{.form = scan.form(0),
                                    .parts = parts,
                                    .unroll = cut.segment >= 4 ? 4 : 1,
                                    .vector = vector_mode(traits, width > 1 && aligned),
                                    .width = width},
      push, workgroup, ceil_div(lanes, workgroup), first, outer * length * inner, cut.segments, lanes * width,
      "columns");
}

}  // namespace

void record_scan(Recorder& recorder, const ScanArgs& args) {
  const AxisView view = check_axis(args.shape, args.rank, args.axis);
  require_type(recorder.traits(), args.dtype);
  if (view.outer == 0 || view.axis == 0 || view.inner == 0) return;
  const Scan scan{recorder, args,
                  stream_device(recorder.traits(), forced_variant<"TUFF_REDUCE_VARIANT">(), dtype_size(args.dtype))};
  // An axis of one element is a copy (or a fill), which works best as one row of columns.
  const uint64_t outer = view.axis == 1 ? 1 : view.outer, inner = view.axis == 1 ? view.outer * view.inner : view.inner;
  const bool rows = inner == 1;
  // The end of the last segment, which has at most 2^22 items, may be that far beyond the row.
  if (rows && view.axis > 0xffc00000u) {
    fail(TUFF_ERROR_UNSUPPORTED, "axis={}: at most 2^32 - 2^22 elements along the last axis", view.axis);
  }
  // Each dispatch spans at most a piece. A single slab that is larger is dispatched alone, with 64-bit indices if
  // necessary.
  const uint64_t slab = view.axis * inner;
  uint64_t step = std::max<uint64_t>(scan.device.piece / slab, 1);
  if (step >= 8) step -= step % 8;  // keeps pieces as aligned as the whole
  for (uint64_t o = 0; o < outer; o += step) {
    const uint64_t count = std::min(step, outer - o);
    rows ? scan_rows(scan, o * slab, count, view.axis) : scan_columns(scan, o * slab, count, view.axis, inner);
  }
}

}  // namespace tuff
