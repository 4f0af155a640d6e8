// Sparse matrices: their lists of entries, and the products that lanes share out by the steps of a path.
#include "planners/reached.hpp"
#include "shaders/sparse_assemble.hpp"
#include "shaders/sparse_blocks.hpp"
#include "shaders/sparse_clamp.hpp"
#include "shaders/sparse_degrees.hpp"
#include "shaders/sparse_dense.hpp"
#include "shaders/sparse_divide.hpp"
#include "shaders/sparse_expand.hpp"
#include "shaders/sparse_flags.hpp"
#include "shaders/sparse_fold.hpp"
#include "shaders/sparse_gate.hpp"
#include "shaders/sparse_lengths.hpp"
#include "shaders/sparse_merge.hpp"
#include "shaders/sparse_pick.hpp"
#include "shaders/sparse_runs.hpp"
#include "shaders/sparse_sampled.hpp"
#include "shaders/sparse_terms.hpp"
#include "shaders/sparse_total.hpp"

namespace tuff_test::reach {
namespace {

uint64_t number_of(Reached& x) { return size_of(x.define("TUFF_TYPE")); }
// A lane has some of n numbers in turn.
template <typename Shader>
auto sparse_walks(Reached& x) {
  const auto push = x.push<typename Shader::Push>();
  x.loop(push.n, push.run);
  return push;
}
// Operands that have a word for each of so many.
void words(Reached& x, std::initializer_list<uint32_t> operands, uint64_t count) {
  for (const uint32_t i : operands) x.operand(i, count * 4);
}

// --- lists ---

void clamps(Reached& x) {
  const auto push = sparse_walks<tuff::shaders::SparseClamp>(x);
  x.operand(0, push.n * static_cast<uint64_t>(x.define("TUFF_INDEX_BYTES")));
  words(x, {1}, push.n);
}
void counts_degrees(Reached& x) {
  const auto push = sparse_walks<tuff::shaders::SparseDegrees>(x);
  words(x, {0, 1}, push.n);
  words(x, {2}, push.rows);
}
void fills_dense(Reached& x) {
  const auto push = sparse_walks<tuff::shaders::SparseDense>(x);
  x.holds(push.columns != 0 && push.n % push.columns == 0, "there are whole rows");
  if (!x.wrong.empty()) return;
  const uint64_t rows = push.n / push.columns;
  if (x.define("TUFF_SOME") != 0) words(x, {0}, rows + 1);
  x.operand(3, span({{rows, joined(push.ld, push.ld_high)}}, push.columns) * number_of(x));
}
void divides_places(Reached& x) {
  const auto push = sparse_walks<tuff::shaders::SparseDivide>(x);
  x.holds(push.block_rows != 0 && push.block_columns != 0, "blocks have elements");
  words(x, {0, 1}, push.n);
}
// Elements of whole blocks, in which one of the strides is 1. Returns the number of blocks.
template <typename Push>
uint64_t blocks_of(Reached& x, const Push& push) {
  const uint64_t elements = uint64_t{push.block_rows} * push.block_columns;
  x.holds(elements != 0 && push.n % elements == 0, "there are whole blocks");
  const bool by_rows = push.column_stride == 1 && push.row_stride == push.block_columns;
  const bool by_columns = push.row_stride == 1 && push.column_stride == push.block_rows;
  x.holds(by_rows || by_columns, "elements of a block follow one another");
  return x.wrong.empty() ? push.n / elements : 0;
}
void expands_blocks(Reached& x) {
  const auto push = sparse_walks<tuff::shaders::SparseExpand>(x);
  words(x, {0, 1}, blocks_of(x, push));
  words(x, {2, 3}, push.n);
}
void assembles_blocks(Reached& x) {
  const auto push = sparse_walks<tuff::shaders::SparseAssemble>(x);
  const uint64_t blocks = blocks_of(x, push);
  x.operand(5, push.n * number_of(x));
  if (x.define("TUFF_SOME") == 0 || !x.wrong.empty()) return;
  const uint64_t entries = x.dispatch.operands()[1].bytes / 4;
  words(x, {0}, blocks + 1);
  words(x, {1, 2, 3}, entries);
  x.operand(4, entries * number_of(x));
}
void flags_beginnings(Reached& x) {
  const auto push = sparse_walks<tuff::shaders::SparseFlags>(x);
  words(x, {4}, push.n);
  if (x.define("TUFF_DENSE") == 0) return;
  x.holds(push.minors != 0 && push.n % push.minors == 0, "there are whole lines");
  if (!x.wrong.empty()) return;
  const uint64_t major = joined(push.major_stride, push.major_stride_high),
                 minor = joined(push.minor_stride, push.minor_stride_high);
  x.operand(3, span({{push.n / push.minors, major}, {push.minors, minor}}, 1) * number_of(x));
}
void gates(Reached& x) {
  const auto push = sparse_walks<tuff::shaders::SparseGate>(x);
  x.operand(0, 8);
  words(x, {1}, push.n);
}
void finds_lengths(Reached& x) {
  const auto push = sparse_walks<tuff::shaders::SparseLengths>(x);
  words(x, {0}, 2 * uint64_t{push.n});
  words(x, {1}, uint64_t{push.rows} + 1);
  words(x, {2}, push.n);
}
void picks(Reached& x) {
  const auto push = sparse_walks<tuff::shaders::SparsePick>(x);
  words(x, {1, 2}, push.n);
}
void lists_terms(Reached& x) {
  const auto push = sparse_walks<tuff::shaders::SparseTerms>(x);
  words(x, {0, 2}, push.entries);
  words(x, {1}, 2 * uint64_t{push.entries});
  words(x, {3}, uint64_t{push.inner} + 1);
  words(x, {8, 9}, push.n);
  x.operand(10, push.n * x.sum_bytes());
}
void totals(Reached& x) {
  const auto push = x.push<tuff::shaders::SparseTotal::Push>();
  x.holds(push.span != 0 && push.sums == ceil_div(uint64_t{push.n}, uint64_t{push.span}), "sums have all numbers");
  x.covers(push.sums, x.invocations());
  x.operand(0, push.n * uint64_t{x.define("TUFF_FIRST") != 0 ? 4u : 8u});
  x.operand(1, uint64_t{push.sums} * 8);
}

// --- products: each part of the path leaves two keys, and sums for each column of the list ---

// Whether the numbers of C that there are count: beta is two words.
template <typename Push>
void updates(Reached& x, uint32_t operand, const Push& push) {
  x.updates(operand, (push.beta[0] | push.beta[1]) != 0);
}
template <typename Shader>
void follows_path(Reached& x, uint64_t columns_of_lane) {
  const auto push = x.push<typename Shader::Push>();
  x.holds(push.blocks != 0 && push.lanes % push.blocks == 0, "parts have all blocks of columns");
  x.holds(push.matrix_blocks != 0, "matrices have columns");
  if (!x.wrong.empty()) return;
  const uint64_t parts = push.lanes / push.blocks;
  x.covers(push.lanes, x.invocations());
  updates(x, 5, push);
  words(x, {6}, 2 * parts);
  x.operand(7, 2 * parts * push.blocks * columns_of_lane * x.sum_bytes());
}
void merges(Reached& x) { follows_path<tuff::shaders::SparseMerge>(x, static_cast<uint64_t>(x.define("TUFF_WIDTH"))); }
void merges_blocks(Reached& x) {
  follows_path<tuff::shaders::SparseBlocks>(x, static_cast<uint64_t>(x.define("TUFF_WIDTH") * x.define("TUFF_TALL")));
}
void sparse_folds(Reached& x) {
  const auto push = x.push<tuff::shaders::SparseFold::Push>();
  x.holds(push.chunk != 0 && push.columns != 0, "chunks have entries, and the list columns");
  if (!x.wrong.empty()) return;
  const uint64_t chunks = ceil_div(uint64_t{push.entries}, uint64_t{push.chunk}), columns = push.columns;
  const bool last = x.define("TUFF_LAST") != 0;
  x.holds(push.lanes == chunks * columns, "a lane has a column of a chunk");
  x.holds(last == (chunks == 1), "one chunk is the last");
  x.covers(push.lanes, x.invocations());
  words(x, {0}, push.entries);
  x.operand(1, push.entries * columns * x.sum_bytes());
  if (last) return;
  words(x, {3}, 2 * chunks);
  x.operand(4, 2 * chunks * columns * x.sum_bytes());
}
void adds_runs(Reached& x) {
  const auto push = x.push<tuff::shaders::SparseRuns::Push>();
  x.holds(push.lanes == uint64_t{push.parts} * push.columns, "a lane has a column of a part");
  x.covers(push.lanes, x.invocations());
  words(x, {1}, 2 * uint64_t{push.parts});
  x.operand(2, 2 * uint64_t{push.parts} * push.columns * x.sum_bytes());
}

void samples(Reached& x) {
  const auto push = x.push<tuff::shaders::SparseSampled::Push>();
  updates(x, 5, push);
  x.holds(push.per_matrix != 0 && push.groups % push.per_matrix == 0, "matrices have all their groups");
  x.covers(push.groups, 1);
}

constexpr Kernel kSparseKernels[] = {
    {"sparse_sampled", samples},

    {"sparse_assemble", assembles_blocks},
    {"sparse_blocks", merges_blocks},
    {"sparse_clamp", clamps},
    {"sparse_degrees", counts_degrees},
    {"sparse_dense", fills_dense},
    {"sparse_divide", divides_places},
    {"sparse_expand", expands_blocks},
    {"sparse_flags", flags_beginnings},
    {"sparse_fold", sparse_folds},
    {"sparse_gate", gates},
    {"sparse_lengths", finds_lengths},
    {"sparse_merge", merges},
    {"sparse_pick", picks},
    {"sparse_runs", adds_runs},
    {"sparse_terms", lists_terms},
    {"sparse_total", totals},
};

}  // namespace

std::span<const Kernel> sparse_kernels() { return kSparseKernels; }

}  // namespace tuff_test::reach
