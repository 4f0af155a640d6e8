// Planner of moments of parts of sets, and of sums of h and h n (norm_backward_vulkan.cpp).
#include <algorithm>
#include <bit>
#include <string>

#include "kernels/common/row_plan.hpp"
#include "kernels/norm/norm_backward_plan.hpp"
#include "planning/log.hpp"
#include "shaders/norm_columns.hpp"
#include "shaders/norm_line_sums.hpp"
#include "shaders/norm_split_rows.hpp"

namespace tuff::norm {
namespace {

// Lanes of a line: few for short lines, which lie side by side.
uint32_t lanes_of(const Task& task, uint64_t count, uint64_t extent) {
  const StreamDevice& device = task.device;
  if (device.cpu) return extent <= 32 && count >= 16 * device.cores * device.subgroup ? 1 : device.subgroup;
  const uint64_t blocks = ceil_div(extent, task.block());
  uint32_t lanes = 1;
  while (lanes < device.subgroup && blocks > 2 * lanes) lanes *= 2;
  return blocks > 8 * uint64_t{lanes} ? device.workgroup : lanes;
}

}  // namespace

// ---- lines -----------------------------------------------------------------------------------------

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
  for_each_piece(task.device.piece, lines.count, lines.extent, lines.cut, [&](const RowPiece& piece) {
    const shaders::NormSplitRows::Push push{.rows = narrow(piece.rows),
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
    const uint64_t first = (piece.row * lines.extent + piece.begin) * element,
                   bytes = piece.rows * piece.extent * element;
    Dispatch dispatch(task.name);
    dispatch.operand(task.input, first, bytes, Access::read)
        .operand(nullptr, 0, 0, Access::read)
        .operand(nullptr, 0, 0, Access::read)
        .operand(nullptr, 0, 0, Access::read)
        .operand(nullptr, 0, 0, Access::write)
        .operand(&moments, piece.part * 16, piece.rows * piece.segments * 16, Access::write)
        .push(push)
        .groups_linear(piece.rows * piece.segments, task.recorder.traits())
        .work(static_cast<double>(bytes), 5.0 * static_cast<double>(piece.rows * piece.extent));
    log(TUFF_LOG_DISPATCH, "{} {} lines={} extent={}: moments, {} segments of {}, {} lanes", task.name,
        dtype_name(task.dtype), piece.rows, piece.extent, piece.segments, lines.cut.size, lanes);
    task.recorder.dispatch(kernel, dispatch);
  });
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
  for_each_piece(task.device.piece, lines.count, lines.extent, lines.cut, [&](const RowPiece& piece) {
    const shaders::NormLineSums::Push push{.lines = narrow(piece.rows),
                                           .extent = narrow(piece.extent),
                                           .segments = narrow(piece.segments),
                                           .segment = narrow(lines.cut.size),
                                           .first = narrow(piece.row),
                                           .each = narrow(each),
                                           .sets = narrow(task.sets()),
                                           .groups = narrow(task.groups),
                                           .weights = narrow(lines.extent),
                                           .begin = narrow(piece.begin)};
    const uint64_t first = (piece.row * lines.extent + piece.begin) * element,
                   bytes = piece.rows * piece.extent * element;
    Dispatch dispatch(task.name);
    dispatch.operand(task.input, first, bytes, Access::read)
        .operand(task.slope, first, bytes, Access::read)
        .operand(weighted ? task.weight : nullptr, 0, task.weight_bytes(), Access::read)
        .operand(&statistics, 0, task.sets() * 16, Access::read)
        .operand(&sums, piece.part * 8, piece.rows * piece.segments * 8, Access::write)
        .push(push)
        .groups_linear(ceil_div(piece.rows * piece.segments * lanes, task.device.workgroup), task.recorder.traits())
        .work(2.0 * static_cast<double>(bytes), 8.0 * static_cast<double>(piece.rows * piece.extent));
    log(TUFF_LOG_DISPATCH, "{} {} lines={} extent={}: sums, {} segments of {}, {} lanes of {}", task.name,
        dtype_name(task.dtype), piece.rows, piece.extent, piece.segments, lines.cut.size, lanes, task.device.workgroup);
    task.recorder.dispatch(kernel, dispatch);
  });
}

// ---- columns ---------------------------------------------------------------------------------------

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
    task.recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace tuff::norm
