// Rows: their sorts, softmax, joined inputs and random elements, and the steps of recurrent layers' gradients.
#include <algorithm>
#include <array>

#include "planners/reached.hpp"
#include "shaders/concat.hpp"
#include "shaders/dropout.hpp"
#include "shaders/norm_split_rows.hpp"
#include "shaders/radix_count.hpp"
#include "shaders/radix_move.hpp"
#include "shaders/random.hpp"
#include "shaders/rnn_backward.hpp"
#include "shaders/softmax_columns.hpp"
#include "shaders/softmax_split_rows.hpp"
#include "shaders/sort_rows.hpp"

namespace tuff_test::reach {
namespace {

// --- random elements, in blocks of four of their sequence ---

template <typename Shader>
void draws(Reached& x, std::initializer_list<uint32_t> numbers) {
  const auto push = x.push<typename Shader::Push>();
  x.holds(push.skipped < 4, "less than a block is skipped");
  x.loop(ceil_div(uint64_t{push.skipped} + push.n, 4), push.run);
  const uint64_t size = size_of(x.define("TUFF_TYPE"));
  const bool whole = x.define("TUFF_WHOLE") != 0;
  x.holds(!whole || push.skipped == 0, "blocks that are moved together begin with the operands");
  for (const uint32_t i : numbers) {
    x.operand(i, push.n * size);
    x.holds(!whole || x.place(i) % (4 * size) == 0, "blocks that are moved together are aligned");
  }
}
void drops(Reached& x) {
  const auto push = x.push<tuff::shaders::Dropout::Push>();
  draws<tuff::shaders::Dropout>(x, {0, 1});
  if (x.define("TUFF_MASK") == 0) return;
  x.operand(2, push.n);
  x.holds(x.define("TUFF_WHOLE") == 0 || x.place(2) % 4 == 0, "blocks of the mask are aligned");
}
void draws_numbers(Reached& x) { draws<tuff::shaders::Random>(x, {0}); }

// --- concat ---

void joins(Reached& x) {
  const auto push = x.push<tuff::shaders::Concat::Push>();
  const auto unit = static_cast<uint64_t>(x.define("TUFF_UNIT"));
  uint64_t run = 1;
  for (uint32_t i = 0; i < x.kernel.constant_count(); ++i) {
    if (x.kernel.constants()[i].id == 1) run = x.kernel.constants()[i].value;
  }
  uint64_t before = 0, rows = 0, row_end = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const uint64_t groups = push.ends[k] - before;
    before = push.ends[k];
    if (push.n[k] == 0) {
      x.holds(groups == 0, "an input that is not there has no workgroups");
      continue;
    }
    x.holds(push.widths[k] != 0 && push.n[k] % push.widths[k] == 0, "inputs have whole rows");
    if (!x.wrong.empty()) return;
    x.holds(rows == 0 || rows == push.n[k] / push.widths[k], "inputs have the same rows");
    rows = push.n[k] / push.widths[k];
    x.holds(groups * x.invocations() * run >= push.n[k], "each unit of an input has an invocation");
    x.holds((groups - 1) * x.invocations() * run < push.n[k], "no workgroup of an input is idle");
    x.holds(push.first[k] == row_end, "inputs follow one another");
    row_end += push.widths[k];
    x.holds(x.divides(push.n[k] - 1, push.widths[k], push.multipliers[k], push.shifts >> (8 * k) & 31),
            "units are divided by the width");
    x.operand(k, push.n[k] * unit);
    x.holds(x.place(k) % unit == 0, "inputs begin at units");
  }
  x.holds(before == push.ends[3] && x.groups() >= push.ends[3], "there are all workgroups");
  x.holds(rows != 0 && row_end <= push.pitch, "rows of the inputs fit those of the output");
  x.operand(4, span({{rows, push.pitch * unit}}, row_end * unit));
  x.holds(x.place(4) % unit == 0, "the output begins at a unit");
}

// --- sorts ---

// Elements up to the end of the slab of the last of `rows` rows, as first_of() of sort.glsl numbers them.
uint64_t slabs_end(uint64_t first_row, uint64_t rows, uint64_t extent, uint64_t inner) {
  return ((first_row + rows - 1) / inner + 1) * extent * inner;
}

void sorts_rows(Reached& x) {
  const auto push = x.push<tuff::shaders::SortRows::Push>();
  const auto unit = static_cast<uint64_t>(x.define("TUFF_UNIT")), lanes = static_cast<uint64_t>(x.define("TUFF_LANES"));
  const auto length = static_cast<uint64_t>(x.define("TUFF_LENGTH")),
             tile = static_cast<uint64_t>(x.define("TUFF_TILE"));
  const bool streams = x.define("TUFF_ITEMS") != 0, last = x.define("TUFF_LAST") != 0;
  x.holds(push.segments != 0 && push.inner != 0 && push.pieces % push.segments == 0, "rows have whole segments");
  x.holds(lanes != 0 || tile >= length, "a tile has a segment");
  if (!x.wrong.empty()) return;
  const uint64_t rows = push.pieces / push.segments;
  x.holds(push.segments == ceil_div(uint64_t{push.items}, streams ? push.segment : length), "segments have all items");
  x.holds(push.keep <= (streams ? push.segment : length), "what is kept fits a segment");
  x.holds(!last || push.segments == 1, "the last stage has one segment of each row");
  x.covers(push.pieces, lanes != 0 ? lanes : streams ? 1 : tile / length);
  x.operand(0, slabs_end(push.first_row, rows, push.extent, push.inner) * unit);
  if (x.define("TUFF_CANDIDATES") != 0) {
    x.operand(1, rows * push.items * 4);
  } else {
    x.holds(push.items == push.extent, "the first stage has all elements");
  }
  const uint64_t kept = slabs_end(push.first_row, rows, push.keep, push.inner);
  if (!last) return x.operand(3, uint64_t{push.pieces} * push.keep * 4);
  if (x.define("TUFF_VALUES") != 0) x.operand(2, kept * unit);
  if (x.define("TUFF_INDEX_BYTES") != 0) x.operand(3, kept * static_cast<uint64_t>(x.define("TUFF_INDEX_BYTES")));
}

// What both kernels of a radix sort have. Returns the rows.
template <typename Push>
uint64_t sorts_digits(Reached& x, const Push& push) {
  const auto lanes = static_cast<uint64_t>(x.define("TUFF_LANES"));
  x.holds(push.chunks != 0 && push.inner != 0 && push.pieces % push.chunks == 0, "rows have whole chunks");
  x.holds(push.chunk != 0 && push.chunks == ceil_div(uint64_t{push.extent}, uint64_t{push.chunk}),
          "chunks have all elements");
  if (!x.wrong.empty()) return 1;
  const uint64_t rows = push.pieces / push.chunks, unit = static_cast<uint64_t>(x.define("TUFF_UNIT"));
  x.covers(push.pieces, std::max<uint64_t>(lanes, 1));
  x.operand(0, slabs_end(push.first_row, rows, push.extent, push.inner) * unit);
  x.holds(push.shift < 8 * unit && push.shift % 8 == 0, "a digit is of the elements");
  const bool adjacent = push.inner == 1 && push.chunk % 4 == 0 && x.place(0) % 4 == 0 && unit == 1 && lanes != 0;
  const bool whole = push.extent % 4 == 0 || (rows == 1 && push.first_row == 0);
  x.holds(x.define("TUFF_WORDS") == 0 || (adjacent && whole), "words of elements begin at multiples of four bytes");
  return rows;
}
uint64_t counters_of(Reached& x, uint64_t rows, uint64_t chunks) {
  return rows * chunks * (uint64_t{1} << x.define("TUFF_BITS")) * 4;
}
void counts_digits(Reached& x) {
  const auto push = x.push<tuff::shaders::RadixCount::Push>();
  const uint64_t rows = sorts_digits(x, push);
  x.operand(1, counters_of(x, rows, push.chunks));
}
void moves_digits(Reached& x) {
  const auto push = x.push<tuff::shaders::RadixMove::Push>();
  const uint64_t rows = sorts_digits(x, push), unit = static_cast<uint64_t>(x.define("TUFF_UNIT"));
  x.holds(push.to_inner != 0 && push.to_extent <= push.extent, "as many elements are kept as there are");
  x.holds(x.define("TUFF_VALUES") != 0 || x.define("TUFF_CARRY") != 0, "elements or indices are stored");
  x.holds(x.define("TUFF_LANES") != 0 || x.define("TUFF_THREADS") == static_cast<int64_t>(x.invocations()),
          "TUFF_THREADS is the workgroup's size");
  if (!x.wrong.empty()) return;
  const uint64_t kept = slabs_end(push.to_first_row, rows, push.to_extent, push.to_inner);
  if (x.define("TUFF_CARRY") == 2) x.operand(1, rows * push.extent * 4);
  x.operand(2, counters_of(x, rows, push.chunks));
  if (x.define("TUFF_VALUES") != 0) x.operand(3, kept * unit);
  if (x.define("TUFF_CARRY") != 0) x.operand(4, kept * static_cast<uint64_t>(x.define("TUFF_INDEX_BYTES")));
}

// --- softmax ---

// Rows of the mask are numbered modulo their period.
template <typename Push>
void masks(Reached& x, const Push& push, uint64_t rows_of_mask) {
  if (x.define("TUFF_MASK") == 0) return;
  x.holds(push.mask_first < uint64_t{push.mask_rows} * push.mask_repeat, "the first row of the mask is there");
  x.operand(3, rows_of_mask * (x.define("TUFF_MASK") == 2 ? 1 : size_of(x.define("TUFF_TYPE"))));
}
void weighs_segments(Reached& x) {
  const auto push = x.push<tuff::shaders::SoftmaxSplitRows::Push>();
  const int64_t mode = x.define("TUFF_MODE");
  const uint64_t rows = push.rows, elements = rows * push.extent, size = size_of(x.define("TUFF_TYPE"));
  x.holds(push.segment != 0 && push.segments == ceil_div(push.extent, push.segment), "segments have all elements");
  x.holds(push.segments <= push.total_segments, "segments are some of the row's");
  x.holds(rows == 1 || push.segments == push.total_segments, "several rows are whole");
  x.holds(mode != 0 || push.total_segments == 1, "rows of one pass have one segment");
  x.covers(rows * push.segments, 1);
  x.operand(0, elements * size);
  if (mode != 1) x.operand(1, elements * size);
  const uint64_t partial = 2 * x.sum_bytes();
  if (mode == 1) x.operand(2, span({{rows, push.total_segments * partial}}, push.segments * partial));
  if (mode == 2) x.operand(2, rows * push.total_segments * partial);
  x.holds(push.mask_extent == 0 || uint64_t{push.mask_begin} + push.extent <= push.mask_extent,
          "the mask has the row's elements");
  masks(x, push, uint64_t{push.mask_rows} * push.mask_extent);
}
void weighs_columns(Reached& x) {
  const auto push = x.push<tuff::shaders::SoftmaxColumns::Push>();
  const int64_t mode = x.define("TUFF_MODE");
  const uint64_t slices = uint64_t{push.segments} * push.columns, width = static_cast<uint64_t>(x.define("TUFF_WIDTH"));
  x.loop(push.lanes, push.run);
  x.holds(slices != 0 && push.lanes % slices == 0, "lanes have whole slabs");
  x.holds(push.segments <= push.extent && (push.segments == 1) == (mode == 0), "segments have rows");
  const bool held = x.define("TUFF_HELD") != 0;
  x.holds(!held || (mode == 0 && x.define("TUFF_UNROLL") >= push.extent), "an axis that is held fits");
  if (!x.wrong.empty()) return;
  const uint64_t slab = uint64_t{push.extent} * push.columns * width;
  const uint64_t bytes = push.lanes / slices * slab * size_of(x.define("TUFF_TYPE"));
  x.operand(0, bytes);
  if (mode != 1) x.operand(1, bytes);
  const uint64_t parts = std::max<uint64_t>(width / 4, 1);
  if (mode != 0) x.operand(2, push.lanes * parts * 8 * x.sum_bytes());
  masks(x, push, push.mask_rows * slab);
}

// --- norms of long rows ---

void norms_segments(Reached& x) {
  const auto push = x.push<tuff::shaders::NormSplitRows::Push>();
  const uint64_t rows = push.rows, whole = uint64_t{push.total_segments - 1} * push.segment;
  x.holds(push.segment != 0 && push.segments == ceil_div(push.extent, push.segment), "segments have all elements");
  x.holds(push.segments <= push.total_segments, "segments are some of the row's");
  if (x.define("TUFF_MODE") == 2) {  // which merges them
    x.holds(push.last != 0 && push.last <= push.segment, "the last segment is no longer than the others");
    x.holds(push.segments != push.total_segments || whole + push.last == push.extent, "segments are the row");
  }
  x.covers(rows * push.segments, 1);
  x.operand(0, rows * push.extent * size_of(x.define("TUFF_TYPE")));
}

// --- gradients of recurrent layers ---

void steps_back(Reached& x) {
  const auto push = x.push<tuff::shaders::RnnBackward::Push>();
  const int64_t stage = x.define("TUFF_STAGE"), cell = x.define("TUFF_CELL");
  const bool after = x.define("TUFF_AFTER") != 0, projected = x.define("TUFF_PROJECTED") != 0;
  x.holds(push.batch != 0 && push.rows % push.batch == 0 && push.rows / push.batch <= 2,
          "directions have all sequences");
  x.holds(projected || push.width == push.hidden, "the state is as wide as the layer without a projection");
  x.holds(push.skipped <= push.batch, "sequences are skipped that are there");
  if (!x.wrong.empty()) return;
  const uint64_t d = push.rows / push.batch, rows = push.rows, steps = push.steps, hidden = push.hidden,
                 width = push.width,
                 gates = cell == 0   ? 4
                         : cell == 1 ? 3
                                     : 1;
  for (uint64_t i = 0; i < d; ++i) x.holds(push.t[i] < steps, "a step is one of all");
  x.holds(push.backwards < 1u << d, "directions go back that are there");
  x.covers(rows * (stage == 3 || stage == 4 ? width : hidden), x.invocations());
  const bool extra = cell == 1 || projected;
  struct Region {
    uint64_t first, count;
  };
  const std::array regions = {
      Region{push.sums, rows * steps * gates * hidden},
      Region{push.extra, extra ? rows * steps * hidden : 0},
      Region{push.h, rows * (steps + 1) * width},
      Region{push.c, cell == 0 ? rows * (steps + 1) * hidden : 0},
      Region{push.dy, rows * steps * width},
      Region{push.dh, rows * width},
      Region{push.dc, cell == 0 ? rows * hidden : 0},
      Region{push.product, rows * gates * hidden},
      Region{push.dp, x.define("TUFF_SLOPES") != 0 ? rows * 3 * hidden : 0},
      Region{push.bias, x.define("TUFF_BIAS") != 0 ? d * (gates + (after ? 1 : 0)) * hidden : 0},
      Region{push.peepholes, x.define("TUFF_PEEPHOLES") != 0 ? d * 3 * hidden : 0},
  };
  const uint64_t numbers = x.dispatch.operands()[0].bytes / 4;
  for (const Region& one : regions) {
    if (one.count == 0) continue;
    x.holds(one.first + one.count <= numbers, "each of the regions is bound");
    for (const Region& other : regions) {
      const bool apart = one.first + one.count <= other.first || other.first + other.count <= one.first;
      x.holds(&one == &other || other.count == 0 || apart, "regions are apart");
    }
  }
  if (x.define("TUFF_LENGTHS") != 0) x.operand(1, uint64_t{push.batch} * 4);
}

constexpr Kernel kRowKernels[] = {
    {"concat", joins},
    {"dropout", drops},
    {"norm_split_rows", norms_segments},
    {"radix_count", counts_digits},
    {"radix_move", moves_digits},
    {"random", draws_numbers},
    {"rnn_backward", steps_back},
    {"softmax_columns", weighs_columns},
    {"softmax_split_rows", weighs_segments},
    {"sort_rows", sorts_rows},
};

}  // namespace

std::span<const Kernel> row_kernels() { return kRowKernels; }

}  // namespace tuff_test::reach
