// C = alpha * A * B + beta * C for A in CSR, or sums of the entries of rows, for CPU devices. A workgroup is one subgroup
// and has a share of the merge path (path.glsl), the rows of which are its lanes' in turn:
//
//   first pass     lane l has the rows l, l + lanes, ... of the share, and adds their entries one after another; rows of
//                  more than LONG entries, for which the others would wait, are left out
//   second pass    the rows that were left out, each by all lanes
//
// Rows that begin and end inside the share are complete, and written. The first row, if it began before, and the last
// one leave partial sums as in sparse_merge.comp, of which this kernel has the operands.
//
// Mesa's driver executes both sides of each branch with a mask, and a loop's body once more than needed where the
// condition comes first. Hence loops with the condition last, and selections in place of branches.
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_BETA : 0|1 : 0: beta is 0, and C is not read
//# TUFF_EMPTY : 0|1 : 1: there are no entries
//# TUFF_PERMUTED : 0|1 : 1: entry e is number P[e] of indices and values
//# TUFF_SUMS : 0|1 : 1: B is a vector of ones, and there are no indices
//# TUFF_WIDTH : 1..8 : columns of a share
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(9)
  uint lanes;          // parts * blocks: workgroups that have work
  uint blocks;         // of TUFF_WIDTH columns, in this dispatch
  uint first;          // the first of them
  uint matrix_blocks;  // of one matrix of the batch
  uint n;              // columns of one matrix
  uint chunk;          // steps of a share
  uint alpha[2], beta[2];  // the bits of a value
} push;

// Numbers of 64 bits, as low and high word.
TUFF_READ(8, T, uint, 4)

#include "kernels/sparse/numbers.glsl"

TUFF_READ_TEXELS(0, O, NAME, TUFF_INDEX_BYTES)
TUFF_READ_TEXELS(1, I, NAME, TUFF_INDEX_BYTES)
TUFF_READ_TEXELS(2, A, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ_TEXELS(3, P, uint, 4)
TUFF_READ_TEXELS(4, B, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ_WRITE(5, C, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(6, K, uint, 4)
TUFF_WRITE(7, V, TUFF_VALUE, TUFF_VALUE_BYTES)

#define READS_C TUFF_BETA
#include "kernels/sparse/sums.glsl"

#if TUFF_TEXELS
#define PLACE_AT(i) TUFF_TEXEL(P, i).x
#else
#define PLACE_AT(i) TUFF_AT(P, i)
#endif

uint path_rows, path_nnz;
#include "kernels/sparse/path.glsl"

const uint LONG = 32;

// For this workgroup.
uint extent, values_at, b_row, c_row;
uint b_at[TUFF_WIDTH], c_at[TUFF_WIDTH];
uint width;  // columns that there are

struct Sums {
  TUFF_VALUE of[TUFF_WIDTH];
};
Sums zero() {
  Sums sums;
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) sums.of[w] = TUFF_ZERO;
  return sums;
}

// Adds entry `entry` if it is before `end`.
void add(uint entry, uint end, inout Sums sums) {
#if !TUFF_EMPTY
  bool is = entry < end;
  entry = is ? entry : 0u;
#if TUFF_PERMUTED
  entry = PLACE_AT(entry);
#endif
  const TUFF_VALUE a = VALUE_AT(A, values_at + entry);
#if TUFF_SUMS
  sums.of[0] += is ? a : TUFF_ZERO;
#else
  // A product that is left out is not multiplied by 0, which an infinity would make a NaN.
  uint column;
  const bool has_column = names(NAME_AT(I, entry), extent, column);
  is = is && has_column;
  column = is ? column * b_row : 0u;
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
    const TUFF_VALUE product = a * VALUE_AT(B, b_at[w] + column);
    sums.of[w] += is ? product : TUFF_ZERO;
  }
#endif
#endif
}

// What the share's first and last row leave.
uint head = NONE, tail = NONE;
Sums head_sums, tail_sums;

// The sums of a row's entries in this share, if `is`.
void end_row(uint row, bool is, bool some, bool begins_before, bool ends_after, Sums sums) {
  if (is && !begins_before && !ends_after) {
    [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
      if (w < width) write_result(c_at[w] + row * c_row, sums.of[w]);
    }
  }
  const bool is_head = is && begins_before && !ends_after, is_tail = is && ends_after && some;
  head = is_head ? row : head;
  tail = is_tail ? row : tail;
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
    head_sums.of[w] = is_head ? sums.of[w] : head_sums.of[w];
    tail_sums.of[w] = is_tail ? sums.of[w] : tail_sums.of[w];
  }
}

void write_partial(uint place, uint block, Sums sums) {
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
    TUFF_AT(V, place * (push.blocks * TUFF_WIDTH) + block * TUFF_WIDTH + w) = sums.of[w];
  }
}

void main() {
  const uint group = tuff_group(), lane = gl_SubgroupInvocationID, lanes = gl_SubgroupSize;
  if (group >= push.lanes) return;
  const uint part = group / push.blocks, block = group - part * push.blocks;
  path_rows = NUMBER(0), path_nnz = NUMBER(1), extent = NUMBER(2);
  b_row = NUMBER(3), c_row = NUMBER(5);
  const uint all_blocks = push.first + block, matrix = all_blocks / push.matrix_blocks;
  const uint column = (all_blocks - matrix * push.matrix_blocks) * TUFF_WIDTH;
  width = push.n - column;
  values_at = matrix * NUMBER(7);
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
    const uint at = column + min(w, width - 1u);  // of the last column if there are no more
    b_at[w] = matrix * NUMBER(8) + at * NUMBER(4);
    c_at[w] = matrix * NUMBER(9) + at * NUMBER(6);
  }
  head_sums = zero(), tail_sums = zero();

  // One lane looks for the share's beginning, the others for its end.
  const uint steps = path_rows + path_nnz;
  uint row, entry;
  path_at(min((part + min(lane, 1u)) * push.chunk, steps), row, entry);
  const uint last_row = subgroupShuffle(row, 1u), last_entry = subgroupShuffle(entry, 1u);
  row = subgroupShuffle(row, 0u), entry = subgroupShuffle(entry, 0u);
  // For row `last_row` the share may have no entry.
  const uint rows_end = min(last_row + 1u, path_rows);
  const bool continued = row < rows_end && entry > offset(min(row, path_rows - 1u));

  // The rows' entries in this share. Those of a lane do not overlap, should offsets decrease.
  bool any_long = false;
  uint base = row, taken = entry;
  if (row < rows_end) {
    do {
      const uint r = min(base + lane, rows_end - 1u);
      const bool is = base + lane < rows_end;
      const uint begin = max(offset(r), taken), end = max(min(offset(r + 1u), last_entry), begin);
      const bool is_long = is && end - begin > LONG;
      any_long = any_long || is_long;
      const uint stop = is && !is_long ? end : begin;
      Sums sums = zero();
      uint e = begin;
      do {
        add(e, stop, sums);
        ++e;
      } while (e < stop);
      end_row(r, is && !is_long, end > begin, continued && r == row, r == last_row, sums);
      taken = is ? end : taken;
      base += lanes;
    } while (base < rows_end);
  }
  base = subgroupBallot(any_long).x != 0u ? row : rows_end;
  taken = entry;
  while (base < rows_end) {
    uint r, begin, end, those;
    bool is_long;
    do {
      r = min(base + lane, rows_end - 1u);
      begin = max(offset(r), taken), end = max(min(offset(r + 1u), last_entry), begin);
      is_long = base + lane < rows_end && end - begin > LONG;
      those = subgroupBallot(is_long).x;
      taken = end;
      base += lanes;
    } while (those == 0u && base < rows_end);
    Sums sums = zero();
    do {
      const uint which = those != 0u ? uint(findLSB(those)) : 0u;
      const uint stop = those != 0u ? subgroupShuffle(end, which) : 0u;
      uint e = subgroupShuffle(begin, which) + lane;
      Sums of_lane = zero();
      do {
        [[unroll]] for (uint i = 0; i < 4; ++i) add(e + i * lanes, stop, of_lane);
        e += 4u * lanes;
      } while (e < stop);
      [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
        const TUFF_VALUE sum = subgroupAdd(of_lane.of[w]);
        sums.of[w] = lane == which ? sum : sums.of[w];
      }
      those &= those - 1u;
    } while (those != 0u);
    end_row(r, is_long, true, continued && r == row, r == last_row, sums);
  }

  const uint any_head = subgroupMin(head), any_tail = subgroupMin(tail);
  if (lane == 0u && block == 0u) {
    TUFF_AT(K, 2u * part) = any_head;
    TUFF_AT(K, 2u * part + 1u) = any_tail;
  }
  if (head != NONE) write_partial(2u * part, block, head_sums);
  if (tail != NONE) write_partial(2u * part + 1u, block, tail_sums);
}
