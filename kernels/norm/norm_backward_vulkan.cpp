// Planner of the gradients of normalisations and of batch norm for training. What is normalised together is a set: a
// row, a group of channels, or a channel.
//
//   1  moments of parts of sets    norm_split_rows, its first pass; norm_columns where a channel is a column
//   2  statistics of the sets      norm_merge
//   3  sums of h and h n           norm_line_sums along rows, or along the channels of images; norm_columns
//   4  means of these for sets, and their sums for weights    norm_finish
//   5  the results                 norm_apply
//
// Where channels are single elements, sums for weights are over columns, and those for sets along rows. Otherwise both
// come from the sums of each channel of each image. TUFF_NORM_VARIANT=gpu or cpu in the environment forces the shapes
// of that class, for tests.
#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/row_plan.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/norm/norm_backward.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/norm_apply.hpp"
#include "shaders/norm_backward_rows.hpp"
#include "shaders/norm_columns.hpp"
#include "shaders/norm_finish.hpp"
#include "shaders/norm_line_sums.hpp"
#include "shaders/norm_merge.hpp"
#include "shaders/norm_split_rows.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMost = 0x7fffffffu;

// How parts of sets are laid out: part k of a set is at k / run * stride + set * run + k % run. Of each `cuts` parts
// all have `size` elements but the last.
struct Parts {
  uint64_t of_set = 0, run = 1, stride = 0, cuts = 1, size = 0, last = 0, all = 0;
};

Parts parts_of(uint64_t images, uint64_t of_image, uint64_t sets, uint64_t cuts, uint64_t size, uint64_t last) {
  return {images * of_image, of_image, sets * of_image, cuts, size, last, images * sets * of_image};
}

struct Task {
  Recorder& recorder;
  const char* name;
  int32_t dtype, weight_type;
  bool centred, by_channel;                 // by_channel: batch norm
  uint64_t batch, channels, inner, groups;  // groups: 1 but for group norm
  double epsilon;
  const Buffer *input, *slope, *weight;
  StreamDevice device;
  bool prepares = false;  // makes what the dispatches need only

  Task(Recorder& to, const char* label, int32_t type, int32_t of_weights)
      : recorder(to),
        name(label),
        dtype(type),
        weight_type(of_weights),
        device(stream_device(to.traits(), forced_variant<"TUFF_NORM_VARIANT">(), dtype_size(computed_type(type)))) {}

  void send(const KernelRequest& kernel, const Dispatch& dispatch) const {
    prepares ? recorder.prepare(kernel, dispatch) : recorder.dispatch(kernel, dispatch);
  }
  // Records by visit(). Where `several` dispatches change operands, what all of them need is there before the first: a
  // call that fails has no effect, and running statistics do not follow twice because a call is repeated.
  template <typename Visit>
  void record(bool several, const Visit& visit) {
    if (several && recorder.prepares()) {
      prepares = true;
      visit();
      prepares = false;
    }
    visit();
  }

  uint64_t element() const { return dtype_size(dtype); }
  uint64_t block() const { return 4 * block_parts(dtype); }
  uint64_t weight_bytes() const { return channels * dtype_size(weight_type); }
  uint64_t together() const { return by_channel ? batch * inner : channels / groups * inner; }
  uint64_t sets() const { return by_channel ? channels : batch * groups; }
  bool columns() const { return inner == 1; }  // channels are columns
  // Lines of elements that share the statistics, and a weight for each element or one for all of them.
  bool planes() const { return inner != 1; }
  uint64_t extent() const { return planes() ? inner : together(); }

  void require_sizes() const {
    require_storage(recorder.traits(), dtype);
    require_storage(recorder.traits(), weight_type);
    if (std::max({channels, inner, together(), sets(),
                  planes() && inner != 0 ? checked_mul(batch, channels, "batch") : 0}) > kMost) {
      fail(TUFF_ERROR_UNSUPPORTED,
           "batch={} channels={} inner={}: at most 2^31 - 1 elements are normalised together, in as many sets", batch,
           channels, inner);
    }
  }
};

struct Scratched {
  Buffer moments, statistics, sums, column_sums, means;
};

// A part of a line that one dispatch takes: whole lines, or some segments of one.
struct Piece {
  uint64_t line, lines, begin, extent, segments, part;
};

template <typename Visit>
void for_each_piece(const Task& task, uint64_t lines, uint64_t extent, const RowSegments& cut, const Visit& visit) {
  const uint64_t most = task.device.piece;
  if (extent <= most) {
    uint64_t step = most / extent;
    if (step >= 8) step -= step % 8;  // keeps pieces as aligned as the whole
    for (uint64_t line = 0; line < lines; line += step) {
      visit(Piece{line, std::min(step, lines - line), 0, extent, cut.count, line * cut.count});
    }
    return;
  }
  const uint64_t step = most / cut.size;
  for (uint64_t line = 0; line < lines; ++line) {
    for (uint64_t s = 0; s < cut.count; s += step) {
      const uint64_t count = std::min(step, cut.count - s), begin = s * cut.size;
      visit(Piece{line, 1, begin, std::min(count * cut.size, extent - begin), count, line * cut.count + s});
    }
  }
}

// ---- lines -----------------------------------------------------------------------------------------

// Lines whose moments are found: sets that lie in one piece, or the channels of images.
struct Lines {
  uint64_t count, extent;
  RowSegments cut;
};

Lines moment_lines(const Task& task) {
  const bool whole = !task.by_channel;
  const uint64_t count = whole ? task.sets() : task.batch * task.channels,
                 extent = whole ? task.together() : task.inner;
  return {count, extent, cut_rows(task.device, count, extent)};
}

Lines sum_lines(const Task& task) {
  const uint64_t extent = task.extent(), count = task.planes() ? task.batch * task.channels : task.sets();
  return {count, extent, cut_rows(task.device, count, extent)};
}

void record_line_moments(const Task& task, const Lines& lines, const Buffer& moments) {
  const uint64_t block = task.block(), element = task.element();
  const bool peel = lines.extent % block != 0;
  // A subgroup suffices for short lines.
  const uint32_t lanes = lines.extent <= 2048 ? task.device.subgroup : task.device.workgroup;
  KernelRequest kernel =
      shaders::NormSplitRows::request({.bias = false,
                                       .centred = task.centred,
                                       .channel = 1,
                                       .exact_arithmetic = task.recorder.traits().cpu,
                                       .lanes = lanes,
                                       .mode = 1,
                                       .parts = block_parts(task.dtype),
                                       .peel = peel,
                                       .residual = false,
                                       .shared = lanes > task.device.subgroup,
                                       .sum = false,
                                       .type = task.dtype,
                                       .unroll = block == 4 ? 4 : 2,
                                       .vector = vector_mode(task.recorder.traits(), !peel && aligned16(task.input)),
                                       .weight = false,
                                       .weight_type = task.weight_type});
  kernel.streaming().constant(0, lanes);
  for_each_piece(task, lines.count, lines.extent, lines.cut, [&](const Piece& piece) {
    const shaders::NormSplitRows::Push push{.rows = narrow(piece.lines),
                                            .extent = narrow(piece.extent),
                                            .segments = narrow(piece.segments),
                                            .segment = narrow(lines.cut.size),
                                            .total_segments = narrow(piece.segments),
                                            .last = 0,
                                            .total = 0,
                                            .begin = 0,
                                            .first_row = 0,
                                            .epsilon = static_cast<float>(task.epsilon),
                                            .inner = 1,
                                            .channels = narrow(lines.extent),
                                            .groups = 1};
    const uint64_t first = (piece.line * lines.extent + piece.begin) * element,
                   bytes = piece.lines * piece.extent * element;
    Dispatch dispatch(task.name);
    dispatch.operand(task.input, first, bytes, Access::read)
        .operand(nullptr, 0, 0, Access::read)
        .operand(nullptr, 0, 0, Access::read)
        .operand(nullptr, 0, 0, Access::read)
        .operand(nullptr, 0, 0, Access::write)
        .operand(&moments, piece.part * 16, piece.lines * piece.segments * 16, Access::write)
        .push(push)
        .groups_linear(piece.lines * piece.segments, task.recorder.traits())
        .work(static_cast<double>(bytes), 5.0 * static_cast<double>(piece.lines * piece.extent));
    log(TUFF_LOG_DISPATCH, "{} {} lines={} extent={}: moments, {} segments of {}, {} lanes", task.name,
        dtype_name(task.dtype), piece.lines, piece.extent, piece.segments, lines.cut.size, lanes);
    task.send(kernel, dispatch);
  });
}

// Lanes of a line: few for short lines, which lie side by side.
uint32_t lanes_of(const Task& task, uint64_t count, uint64_t extent) {
  const StreamDevice& device = task.device;
  if (device.cpu) return extent <= 32 && count >= 16 * device.cores * device.subgroup ? 1 : device.subgroup;
  const uint64_t blocks = ceil_div(extent, task.block());
  uint32_t lanes = 1;
  while (lanes < device.subgroup && blocks > 2 * lanes) lanes *= 2;
  return blocks > 8 * uint64_t{lanes} ? device.workgroup : lanes;
}

void record_line_sums(const Task& task, const Lines& lines, const Buffer& statistics, const Buffer& sums) {
  const uint64_t block = task.block(), element = task.element();
  const bool peel = lines.extent % block != 0, weighted = task.weight != nullptr && !task.planes();
  const uint32_t lanes = lanes_of(task, lines.count, lines.cut.size);
  const bool aligned = aligned16(task.input) && aligned16(task.slope) && (!weighted || aligned16(task.weight));
  KernelRequest kernel =
      shaders::NormLineSums::request({.lanes = lanes,
                                      .parts = block_parts(task.dtype),
                                      .peel = peel,
                                      .shared = lanes > task.device.subgroup,
                                      .type = task.dtype,
                                      .unroll = block == 4 ? 4 : 2,
                                      .vector = vector_mode(task.recorder.traits(), !peel && aligned),
                                      .weight = weighted,
                                      .weight_type = task.weight_type});
  kernel.streaming().constant(0, task.device.workgroup);
  const uint64_t each = task.planes() && !task.by_channel ? task.channels / task.groups : 1;
  for_each_piece(task, lines.count, lines.extent, lines.cut, [&](const Piece& piece) {
    const shaders::NormLineSums::Push push{.lines = narrow(piece.lines),
                                           .extent = narrow(piece.extent),
                                           .segments = narrow(piece.segments),
                                           .segment = narrow(lines.cut.size),
                                           .first = narrow(piece.line),
                                           .each = narrow(each),
                                           .sets = narrow(task.sets()),
                                           .groups = narrow(task.groups),
                                           .weights = narrow(lines.extent),
                                           .begin = narrow(piece.begin)};
    const uint64_t first = (piece.line * lines.extent + piece.begin) * element,
                   bytes = piece.lines * piece.extent * element;
    Dispatch dispatch(task.name);
    dispatch.operand(task.input, first, bytes, Access::read)
        .operand(task.slope, first, bytes, Access::read)
        .operand(weighted ? task.weight : nullptr, 0, task.weight_bytes(), Access::read)
        .operand(&statistics, 0, task.sets() * 16, Access::read)
        .operand(&sums, piece.part * 8, piece.lines * piece.segments * 8, Access::write)
        .push(push)
        .groups_linear(ceil_div(piece.lines * piece.segments * lanes, task.device.workgroup), task.recorder.traits())
        .work(2.0 * static_cast<double>(bytes), 8.0 * static_cast<double>(piece.lines * piece.extent));
    log(TUFF_LOG_DISPATCH, "{} {} lines={} extent={}: sums, {} segments of {}, {} lanes of {}", task.name,
        dtype_name(task.dtype), piece.lines, piece.extent, piece.segments, lines.cut.size, lanes,
        task.device.workgroup);
    task.send(kernel, dispatch);
  });
}

// ---- columns ---------------------------------------------------------------------------------------

// A matrix [batch][channels] in chunks of rows.
struct Chunks {
  uint32_t columns, slices;  // lanes of a workgroup
  uint64_t width, tiles, rows, count;
};

Chunks chunks_of(const Task& task, bool moments) {
  const StreamDevice& device = task.device;
  Chunks chunks{};
  // A block of columns shares the statistics of its row.
  const bool whole =
      task.channels % task.block() == 0 && (task.by_channel || task.channels / task.groups % task.block() == 0);
  chunks.width = whole ? task.block() : 1;
  chunks.columns = device.cpu ? device.subgroup : std::min(32u, device.workgroup);
  chunks.columns = std::min(chunks.columns, 64u);
  chunks.slices = device.cpu ? 1 : std::min(std::bit_floor(device.workgroup / chunks.columns), 8u);
  chunks.tiles = ceil_div(task.channels / chunks.width, chunks.columns);
  const uint64_t wanted = (device.cpu ? 4 : 6) * device.cores;
  const uint64_t longest = (moments ? 256 : 2048) * uint64_t{chunks.slices}, shortest = 16 * uint64_t{chunks.slices};
  const uint64_t rows = ceil_div(task.batch, std::max<uint64_t>(wanted / chunks.tiles, 1));
  chunks.rows = std::min(std::clamp(rows, shortest, longest), task.batch);
  chunks.count = ceil_div(task.batch, chunks.rows);
  return chunks;
}

void record_columns(const Task& task, const Chunks& chunks, bool moments, const Buffer* statistics,
                    const Buffer& results) {
  const uint64_t row = task.channels * task.element(), part = moments ? 16 : 8;
  const bool aligned = aligned16(task.input) && (moments || aligned16(task.slope));
  KernelRequest kernel =
      shaders::NormColumns::request({.by_column = task.by_channel,
                                     .columns = chunks.columns,
                                     .exact_arithmetic = task.recorder.traits().cpu,
                                     .moments = moments,
                                     .parts = block_parts(task.dtype),
                                     .peel = chunks.width == 1,
                                     .slices = chunks.slices,
                                     .type = task.dtype,
                                     .vector = vector_mode(task.recorder.traits(), chunks.width != 1 && aligned)});
  const uint32_t workgroup = chunks.columns * chunks.slices;
  kernel.streaming().constant(0, workgroup);
  // As many chunks as a descriptor reaches; a larger one alone, by addresses.
  const uint64_t step = std::max<uint64_t>(task.device.piece / std::max<uint64_t>(task.channels * chunks.rows, 1), 1);
  for (uint64_t chunk = 0; chunk < chunks.count; chunk += step) {
    const uint64_t count = std::min(step, chunks.count - chunk), first = chunk * chunks.rows;
    const uint64_t rows = std::min(count * chunks.rows, task.batch - first);
    kernel.wide(needs_wide(rows * task.channels));
    const shaders::NormColumns::Push push{.rows = narrow(rows),
                                          .columns = narrow(task.channels),
                                          .chunk = narrow(chunks.rows),
                                          .tiles = narrow(chunks.tiles),
                                          .chunks = narrow(count),
                                          .first = narrow(first),
                                          .extent = narrow(task.channels / task.groups),
                                          .groups = narrow(task.groups)};
    Dispatch dispatch(task.name);
    dispatch.operand(task.input, first * row, rows * row, Access::read)
        .operand(moments ? nullptr : task.slope, first * row, rows * row, Access::read)
        .operand(moments ? nullptr : statistics, 0, task.sets() * 16, Access::read)
        .operand(&results, chunk * task.channels * part, count * task.channels * part, Access::write)
        .push(push)
        .groups_linear(count * chunks.tiles, task.recorder.traits())
        .work(2.0 * static_cast<double>(rows * row), 8.0 * static_cast<double>(rows * task.channels));
    log(TUFF_LOG_DISPATCH, "{} {} rows={} columns={}: {}, {} chunks of {}, {} lanes", task.name, dtype_name(task.dtype),
        rows, task.channels, moments ? "moments" : "column sums", count, chunks.rows, workgroup);
    task.send(kernel, dispatch);
  }
}

// ---- sets ------------------------------------------------------------------------------------------

// What a pass over statistics reads or writes beside them.
struct Statistics {
  int32_t type;                   // of mean and variance
  const Buffer *mean, *variance;  // null: none
  bool given;                     // they are read instead of written
  const Buffer *running_mean, *running_variance;
  double momentum;
};

void record_merge(const Task& task, const Parts& parts, const Buffer* moments, const Buffer& statistics,
                  const Statistics& beside) {
  const StreamDevice& device = task.device;
  uint32_t lanes = 1;
  while (lanes < device.subgroup && parts.of_set > 2 * uint64_t{lanes}) lanes *= 2;
  const bool store_mean = !beside.given && beside.mean != nullptr;
  const bool store_variance = !beside.given && beside.variance != nullptr;
  KernelRequest kernel = shaders::NormMerge::request(
      {.centred = task.centred,
       .exact_arithmetic = task.recorder.traits().cpu,
       .follow = (beside.running_mean != nullptr ? 1 : 0) + (beside.running_variance != nullptr ? 2 : 0),
       .given = beside.given,
       .lanes = lanes,
       .running_type = task.weight_type,
       .shared = false,
       .statistics_type = beside.type,
       .store = (store_mean ? 1 : 0) + (store_variance ? 2 : 0),
       .type = task.dtype});
  kernel.constant(0, device.workgroup);
  const shaders::NormMerge::Push push{.sets = narrow(task.sets()),
                                      .parts = narrow(parts.of_set),
                                      .run = narrow(parts.run),
                                      .stride = narrow(parts.stride),
                                      .cuts = narrow(parts.cuts),
                                      .size = narrow(parts.size),
                                      .last = narrow(parts.last),
                                      .total = static_cast<float>(task.together()),
                                      .epsilon = static_cast<float>(task.epsilon),
                                      .momentum = static_cast<float>(beside.momentum)};
  const uint64_t given_bytes = task.sets() * dtype_size(beside.type);
  const Access access = beside.given ? Access::read : Access::write;
  Dispatch dispatch(task.name);
  dispatch.operand(moments, 0, parts.all * 16, Access::read)
      .operand(&statistics, 0, task.sets() * 16, Access::write)
      .operand(beside.mean, 0, given_bytes, access)
      .operand(beside.variance, 0, given_bytes, access)
      .operand(beside.running_mean, 0, task.weight_bytes(), Access::read_write)
      .operand(beside.running_variance, 0, task.weight_bytes(), Access::read_write)
      .push(push)
      .groups_linear(ceil_div(task.sets() * lanes, device.workgroup), task.recorder.traits())
      .work(16.0 * static_cast<double>(parts.all + task.sets()), 40.0 * static_cast<double>(parts.all + task.sets()));
  log(TUFF_LOG_DISPATCH, "{} {} sets={}: statistics of {} parts each, {} lanes of {}", task.name,
      dtype_name(task.dtype), task.sets(), parts.of_set, lanes, device.workgroup);
  task.send(kernel, dispatch);
}

// Sums of parts for `sets` sets: the means of each, or the gradients by weight and bias of each channel.
void record_finish(const Task& task, const Parts& parts, uint64_t sets, const Buffer* sums, const Buffer* means,
                   const Buffer* of_weight, const Buffer* of_bias) {
  const StreamDevice& device = task.device;
  const bool weighted = means != nullptr && task.weight != nullptr && (task.planes() || task.by_channel);
  uint32_t columns = std::min(device.cpu ? device.subgroup : 32u, std::min(device.workgroup, 64u)), slices = 1;
  if (!device.cpu && parts.of_set > 4) {
    const uint32_t lanes = parts.of_set > 64 ? device.largest : device.workgroup;
    slices = std::min(std::bit_floor(lanes / columns), 32u);
  }
  KernelRequest kernel = shaders::NormFinish::request({.centred = task.centred,
                                                       .columns = columns,
                                                       .exact_arithmetic = task.recorder.traits().cpu,
                                                       .means = means != nullptr,
                                                       .of_bias = of_bias != nullptr,
                                                       .of_weight = of_weight != nullptr,
                                                       .slices = slices,
                                                       .weight = weighted,
                                                       .weight_type = task.weight_type});
  kernel.constant(0, columns * slices);
  const shaders::NormFinish::Push push{.sets = narrow(sets),
                                       .parts = narrow(parts.of_set),
                                       .run = narrow(parts.run),
                                       .stride = narrow(parts.stride),
                                       .cuts = narrow(parts.cuts),
                                       .channels = narrow(task.channels),
                                       .total = static_cast<float>(task.together())};
  Dispatch dispatch(task.name);
  dispatch.operand(sums, 0, parts.all * 8, Access::read)
      .operand(weighted ? task.weight : nullptr, 0, task.weight_bytes(), Access::read)
      .operand(means, 0, sets * 8, Access::write)
      .operand(of_weight, 0, task.weight_bytes(), Access::write)
      .operand(of_bias, 0, task.weight_bytes(), Access::write)
      .push(push)
      .groups_linear(ceil_div(sets, columns), task.recorder.traits())
      .work(8.0 * static_cast<double>(parts.all), 4.0 * static_cast<double>(parts.all));
  log(TUFF_LOG_DISPATCH, "{} {} sets={}: {} of {} parts each, {} lanes", task.name, dtype_name(task.dtype), sets,
      means != nullptr ? "means" : "gradients by weights", parts.of_set, columns * slices);
  task.send(kernel, dispatch);
}

// ---- elements --------------------------------------------------------------------------------------

struct Apply {
  bool forward, frozen;
  const Buffer *bias, *means, *output;
};

void record_apply(const Task& task, const Apply& apply, const Buffer& statistics) {
  const DeviceTraits& traits = task.recorder.traits();
  const StreamDevice& device = task.device;
  const uint64_t block = task.block(), element = task.element();
  const uint64_t total = task.batch * task.channels * task.inner;
  const bool consecutive =
      task.inner == 1 && task.channels % block == 0 && (task.by_channel || task.together() % block == 0);
  const int channel = consecutive ? 0 : task.inner % block == 0 ? 1 : 2;
  const bool aligned = channel != 2 && aligned16(task.input) && aligned16(task.slope) && aligned16(task.weight) &&
                       aligned16(apply.bias) && aligned16(apply.output);
  const uint64_t run = device.cpu ? device.items_each(total / block, 128) : 1;
  KernelRequest kernel = shaders::NormApply::request({.bias = apply.bias != nullptr,
                                                      .by_channel = task.by_channel,
                                                      .channel = channel,
                                                      .forward = apply.forward,
                                                      .frozen = apply.frozen,
                                                      .parts = block_parts(task.dtype),
                                                      .run = device.fixed_run(run),
                                                      .type = task.dtype,
                                                      .vector = vector_mode(traits, aligned),
                                                      .weight = task.weight != nullptr,
                                                      .weight_type = task.weight_type});
  kernel.streaming().constant(0, device.workgroup);
  for (uint64_t begin = 0; begin < total; begin += device.piece) {
    const uint64_t count = std::min(device.piece, total - begin), together = task.by_channel ? 1 : task.together();
    const shaders::NormApply::Push push{.n = narrow(count),
                                        .run = narrow(run),
                                        .first = narrow(begin % task.inner),
                                        .channel = narrow(begin / task.inner % task.channels),
                                        .inner = narrow(task.inner),
                                        .channels = narrow(task.channels),
                                        .set = task.by_channel ? 0 : narrow(begin / together),
                                        .within = narrow(begin % together),
                                        .together = narrow(together)};
    const uint64_t items = count / block + count % block, offset = begin * element, bytes = count * element;
    Dispatch dispatch(task.name);
    dispatch.operand(apply.frozen ? nullptr : task.input, apply.frozen ? 0 : offset, bytes, Access::read)
        .operand(task.slope, task.slope != nullptr ? offset : 0, bytes, Access::read)
        .operand(task.weight, 0, task.weight_bytes(), Access::read)
        .operand(apply.bias, 0, task.weight_bytes(), Access::read)
        .operand(&statistics, 0, task.sets() * 16, Access::read)
        .operand(apply.means, 0, task.sets() * 8, Access::read)
        .operand(apply.output, offset, bytes, Access::write)
        .push(push)
        .groups_linear(ceil_div(items, device.workgroup * run), traits)
        .work((task.slope != nullptr && !apply.frozen ? 3.0 : 2.0) * static_cast<double>(bytes),
              12.0 * static_cast<double>(count));
    log(TUFF_LOG_DISPATCH, "{} {} n={} inner={} channels={}: {} lanes, {} blocks each", task.name,
        dtype_name(task.dtype), count, task.inner, task.channels, device.workgroup, run);
    task.send(kernel, dispatch);
  }
}

// ---- rows in registers -----------------------------------------------------------------------------

struct Teams {
  uint32_t lanes, blocks;  // of a row; blocks of a lane
  uint64_t count, rows;    // of a dispatch
  uint64_t pieces;         // dispatches
};

// Nothing if rows do not fit, or are not whole blocks. Four numbers of each element of a lane are kept: on a CPU not in
// registers, but in memory that is near.
std::optional<Teams> teams_of(const Task& task) {
  const uint64_t elements = task.device.cpu ? 96 : 32;  // of a lane, at most
  const StreamDevice& device = task.device;
  const uint64_t extent = task.channels, block = task.block(), blocks = extent / block, most = elements / block;
  if (task.by_channel || task.groups != 1 || task.inner != 1 || extent % block != 0) return std::nullopt;
  Teams teams{};
  teams.lanes = device.cpu ? device.subgroup : 1;
  while (teams.lanes < device.subgroup && blocks > 2 * uint64_t{teams.lanes}) teams.lanes *= 2;
  if (blocks > most / 2 * teams.lanes) teams.lanes = device.workgroup;
  if (blocks > most * teams.lanes || extent > device.piece) return std::nullopt;
  teams.blocks = static_cast<uint32_t>(ceil_div(blocks, teams.lanes));
  if (teams.blocks > 8) teams.blocks = teams.blocks <= 12 ? 12 : teams.blocks <= 16 ? 16 : 24;  // few different kernels
  teams.rows = std::min(device.piece / extent, task.batch);
  if (teams.rows >= 8 && teams.rows < task.batch) teams.rows -= teams.rows % 8;  // keeps pieces as aligned as the whole
  teams.pieces = ceil_div(task.batch, teams.rows);
  // As many as keep the device busy; more where chains of additions would become long.
  const uint64_t wanted = 4 * device.cores * (device.workgroup / teams.lanes);
  teams.count = std::min(std::max(wanted, ceil_div(teams.rows, 512)), teams.rows);
  if (teams.count * teams.pieces > kMost / extent) return std::nullopt;  // parts
  return teams;
}

void record_register_rows(const Task& task, const Teams& teams, const Buffer* of_input, const Buffer* sums) {
  const DeviceTraits& traits = task.recorder.traits();
  const uint64_t row_bytes = task.channels * task.element(), sum_bytes = teams.count * task.channels * 8;
  const bool aligned = aligned16(task.input) && aligned16(task.slope) && aligned16(of_input) && aligned16(task.weight);
  KernelRequest kernel = shaders::NormBackwardRows::request({.blocks = teams.blocks,
                                                             .centred = task.centred,
                                                             .exact_arithmetic = traits.cpu,
                                                             .input = of_input != nullptr,
                                                             .lanes = teams.lanes,
                                                             .parts = block_parts(task.dtype),
                                                             .shared = teams.lanes > task.device.subgroup,
                                                             .sums = sums != nullptr,
                                                             .type = task.dtype,
                                                             .vector = vector_mode(traits, aligned),
                                                             .weight = task.weight != nullptr,
                                                             .weight_type = task.weight_type});
  kernel.streaming().constant(0, task.device.workgroup);
  for (uint64_t piece = 0; piece < teams.pieces; ++piece) {
    const uint64_t first = piece * teams.rows, rows = std::min(teams.rows, task.batch - first);
    const uint64_t offset = first * row_bytes, bytes = rows * row_bytes;
    const shaders::NormBackwardRows::Push push{.rows = narrow(rows),
                                               .extent = narrow(task.channels),
                                               .teams = narrow(teams.count),
                                               .each = narrow(ceil_div(rows, teams.count)),
                                               .epsilon = static_cast<float>(task.epsilon)};
    Dispatch dispatch(task.name);
    dispatch.operand(task.input, offset, bytes, Access::read)
        .operand(task.slope, offset, bytes, Access::read)
        .operand(task.weight, 0, task.weight_bytes(), Access::read)
        .operand(of_input, of_input != nullptr ? offset : 0, bytes, Access::write)
        .operand(sums, sums != nullptr ? piece * sum_bytes : 0, sum_bytes, Access::write)
        .push(push)
        .groups_linear(ceil_div(teams.count * teams.lanes, task.device.workgroup), traits)
        .work(3.0 * static_cast<double>(bytes), 20.0 * static_cast<double>(rows * task.channels));
    log(TUFF_LOG_DISPATCH, "{} {} rows={} extent={}: in registers, {} lanes of {}, {} blocks each, {} teams", task.name,
        dtype_name(task.dtype), rows, task.channels, teams.lanes, task.device.workgroup, teams.blocks, teams.count);
    task.send(kernel, dispatch);
  }
}

// ---- calls -----------------------------------------------------------------------------------------

// Where moments are found, and their parts.
struct MomentPlan {
  bool columns;
  Chunks chunks;
  Lines lines;
  Parts parts;
};

MomentPlan plan_moments(const Task& task) {
  MomentPlan plan{};
  plan.columns = task.by_channel && task.columns();
  if (plan.columns) {
    plan.chunks = chunks_of(task, true);
    const Chunks& c = plan.chunks;
    plan.parts = {
        c.count, 1, task.channels, c.count, c.rows, task.batch - (c.count - 1) * c.rows, c.count * task.channels};
  } else {
    plan.lines = moment_lines(task);
    const RowSegments& cut = plan.lines.cut;
    plan.parts = parts_of(task.by_channel ? task.batch : 1, cut.count, task.sets(), cut.count, cut.size,
                          plan.lines.extent - (cut.count - 1) * cut.size);
  }
  if (plan.parts.all > kMost) fail(TUFF_ERROR_UNSUPPORTED, "{} parts are summed, at most 2^31 - 1", plan.parts.all);
  return plan;
}

void record_moments(const Task& task, const MomentPlan& plan, const Buffer& moments) {
  if (plan.columns) return record_columns(task, plan.chunks, true, nullptr, moments);
  record_line_moments(task, plan.lines, moments);
}

}  // namespace

void record_norm_backward(Recorder& recorder, const NormBackwardArgs& args) {
  if (args.channels == 0) return;
  Task task(recorder, "norm_backward", args.dtype, args.weight_type);
  task.centred = args.kind != TUFF_NORM_RMS;
  task.by_channel = args.kind == TUFF_NORM_BATCH;
  task.batch = args.batch, task.channels = args.channels, task.inner = args.inner;
  task.groups = args.kind == TUFF_NORM_GROUP ? args.groups : 1;
  task.epsilon = args.epsilon;
  task.input = args.input, task.slope = args.output_gradient, task.weight = args.weight;
  require_storage(recorder.traits(), args.statistics_type);
  task.require_sizes();
  const bool of_weights = args.weight_gradient != nullptr || args.bias_gradient != nullptr;
  if (args.batch == 0 || args.inner == 0) {  // sums of nothing
    if (of_weights) {
      record_finish(task, Parts{}, task.channels, nullptr, nullptr, args.weight_gradient, args.bias_gradient);
    }
    return;
  }
  if (const std::optional<Teams> teams = teams_of(task)) {
    const uint64_t parts = teams->count * teams->pieces;
    const Buffer* const sums = of_weights ? &recorder.scratch(parts * task.channels * 8) : nullptr;
    const Parts of_teams{parts, 1, task.channels, 1, 0, 0, parts * task.channels};
    task.record(of_weights || teams->pieces > 1, [&] {
      record_register_rows(task, *teams, args.input_gradient, sums);
      if (of_weights) {
        record_finish(task, of_teams, task.channels, sums, nullptr, args.weight_gradient, args.bias_gradient);
      }
    });
    return;
  }
  const bool of_sets = args.input_gradient != nullptr && args.frozen == 0, given = args.mean != nullptr;
  const MomentPlan moments = given ? MomentPlan{} : plan_moments(task);

  // Sums along lines: for sets, and where channels have several elements for weights too. Sums of columns: for weights,
  // and where columns are sets for these too.
  const bool by_lines = task.planes() ? of_sets || of_weights : of_sets && !task.by_channel;
  const bool by_columns = task.columns() && (of_weights || (of_sets && task.by_channel));
  Lines lines{};
  Chunks chunks{};
  Parts line_parts, set_parts, column_parts;  // those of planes for weights, of sets, of columns
  if (by_lines) {
    lines = sum_lines(task);
    const uint64_t cuts = lines.cut.count;
    line_parts = parts_of(task.batch, cuts, task.channels, cuts, 0, 0);
    const uint64_t each = task.planes() ? task.channels / task.groups : 1;
    set_parts = task.by_channel ? line_parts : parts_of(1, each * cuts, task.sets(), cuts, 0, 0);
  }
  if (by_columns) {
    chunks = chunks_of(task, false);
    column_parts = {chunks.count, 1, task.channels, 1, 0, 0, chunks.count * task.channels};
    if (task.by_channel) set_parts = column_parts;
  }
  if (std::max({lines.count * lines.cut.count, column_parts.all}) > kMost) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} parts are summed, at most 2^31 - 1",
         std::max({lines.count * lines.cut.count, column_parts.all}));
  }

  ScratchLayout layout;
  const uint64_t at_moments = layout.add(moments.parts.all * 16), at_statistics = layout.add(task.sets() * 16),
                 at_sums = layout.add(lines.count * lines.cut.count * 8), at_columns = layout.add(column_parts.all * 8),
                 at_means = layout.add(of_sets ? task.sets() * 8 : 0);
  const Buffer& scratch = recorder.scratch(layout.bytes());
  const Buffer found = part_of(scratch, at_moments, moments.parts.all * 16),
               statistics = part_of(scratch, at_statistics, task.sets() * 16),
               sums = part_of(scratch, at_sums, lines.count * lines.cut.count * 8),
               column_sums = part_of(scratch, at_columns, column_parts.all * 8),
               means = part_of(scratch, at_means, task.sets() * 8);
  const bool in_pieces = args.batch * args.channels * args.inner > task.device.piece;
  task.record(args.input_gradient != nullptr && (of_weights || in_pieces), [&] {
    if (!given) record_moments(task, moments, found);
    record_merge(task, moments.parts, given ? nullptr : &found, statistics,
                 {args.statistics_type, args.mean, args.variance, given, nullptr, nullptr, 0});
    if (by_lines) record_line_sums(task, lines, statistics, sums);
    if (by_columns) record_columns(task, chunks, false, &statistics, column_sums);
    if (of_sets) {
      record_finish(task, set_parts, task.sets(), by_lines ? &sums : &column_sums, &means, nullptr, nullptr);
    }
    if (of_weights) {
      record_finish(task, by_columns ? column_parts : line_parts, task.channels, by_columns ? &column_sums : &sums,
                    nullptr, args.weight_gradient, args.bias_gradient);
    }
    if (args.input_gradient == nullptr) return;
    record_apply(task, {false, args.frozen != 0, nullptr, of_sets ? &means : nullptr, args.input_gradient}, statistics);
  });
}

void record_batch_norm_training(Recorder& recorder, const BatchNormTrainingArgs& args) {
  if (args.channels == 0) return;
  Task task(recorder, "batch_norm_training", args.dtype, args.weight_type);
  task.centred = task.by_channel = true;
  task.batch = args.batch, task.channels = args.channels, task.inner = args.inner, task.groups = 1;
  task.epsilon = args.epsilon;
  task.input = args.input, task.slope = nullptr, task.weight = args.weight;
  task.require_sizes();
  const MomentPlan moments = plan_moments(task);
  ScratchLayout layout;
  const uint64_t at_moments = layout.add(moments.parts.all * 16), at_statistics = layout.add(task.sets() * 16);
  const Buffer& scratch = recorder.scratch(layout.bytes());
  const Buffer found = part_of(scratch, at_moments, moments.parts.all * 16),
               statistics = part_of(scratch, at_statistics, task.sets() * 16);
  const Apply apply{true, false, args.bias, nullptr, args.output};
  const bool stores = args.mean != nullptr || args.variance != nullptr || args.running_mean != nullptr ||
                      args.running_variance != nullptr;
  const bool in_pieces = args.batch * args.channels * args.inner > task.device.piece;
  task.record(args.output != nullptr && (stores || in_pieces), [&] {
    record_moments(task, moments, found);
    record_merge(task, moments.parts, &found, statistics,
                 {TUFF_F32, args.mean, args.variance, false, args.running_mean, args.running_variance, args.momentum});
    if (args.output != nullptr) record_apply(task, apply, statistics);
  });
}

}  // namespace tuff
