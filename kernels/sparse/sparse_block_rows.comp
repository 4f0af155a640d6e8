// C = alpha * A * B + beta * C for A in BSR and few columns of B, for GPUs. A subgroup has a share of the merge path
// (path.glsl) through rows of blocks and blocks, up to TUFF_WIDTH columns of B, and a tile of the blocks' rows. Its lanes
// read blocks together, neighbouring lanes neighbouring elements:
//
//   piece    TUFF_PIECE elements that are neighbours in memory: of one row of a block, or (TUFF_DOWN) of one column. Small
//            blocks have whole rows as pieces, so that a subgroup reads many blocks at once
//   block    its pieces have a lane each, in the order of memory. Of a block of more pieces each lane has several: up to
//            TUFF_TALL that belong to different rows, each with a sum, and any number that add to these
//   slots    blocks that lanes read at once. A row of blocks has all of them, or, if rows are short, as few as leave
//            PER_SLOT blocks for a slot, so that several rows are added at once
//
//   8 x 8, pieces of 4, 32 lanes     lanes 0-15: block e     rows 0 0 1 1 2 2 …     lanes 16-31: block e + 1
//
// Lanes keep a row's sums in registers, and add them up by shuffles when it ends. Loops with shuffles have bounds that
// are the same for a whole subgroup. Rows that begin and end inside the share are complete, and written. The others
// leave partial sums, which sparse_runs.comp adds. Their list is that of sparse_tiles.comp, with
//
//   column (matrix * n + column of B) * rows of a block + row of the block
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_PERMUTED : 0|1 : 1: block e is number P[e] of indices and values
//# TUFF_PIECE : 1..7 : elements of a piece
//# TUFF_VECTOR_A : 0|1 : 1: TUFF_PIECE is 4, and A begins at a multiple of the size of four
//# TUFF_DOWN : 0|1 : 1: the columns of a block are contiguous, otherwise its rows are
//# TUFF_TALL : 1|2|4|8 : pieces of a lane that have sums of their own
//# TUFF_WIDTH : 1|2|4|8 : columns of a lane
//# TUFF_UNROLL : 1|2 : blocks that a lane reads at once
//# TUFF_VECTOR_B : 0..2 : what is contiguous and aligned in B: 1: elements of a piece, in fours; 2: columns, in fours
// With TUFF_VECTOR_B 1, TUFF_PIECE is 4 and TUFF_DOWN 0; with 2, TUFF_WIDTH is at least 4.
#define TUFF_VALUE_OF TUFF_TYPE
#define TUFF_EMPTY 0
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(9)
  uint items;         // shares * across
  uint across;        // subgroups of a share: tiles * column_tiles for each matrix
  uint tiles;         // of rows of a block; a subgroup has every tiles-th of them
  uint column_tiles;  // of TUFF_WIDTH columns
  uint n;             // columns of one matrix
  uint chunk;         // steps of a share
  uint alpha[2], beta[2];  // the bits of a value
} push;

// Numbers of 64 bits, as low and high word.
TUFF_READ(8, T, uint, 4)

#include "kernels/sparse/numbers.glsl"

TUFF_READ(0, O, NAME, TUFF_INDEX_BYTES)
TUFF_READ(1, I, NAME, TUFF_INDEX_BYTES)
TUFF_READ(2, A, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ(3, P, uint, 4)
TUFF_READ(4, B, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ_WRITE(5, C, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(6, K, uint, 4)
TUFF_WRITE(7, V, TUFF_VALUE, TUFF_VALUE_BYTES)
#if TUFF_TYPE == 2 || TUFF_TYPE == 3
#define FOUR uvec2
#define FOUR_BYTES 8
#else
#define FOUR uvec4
#define FOUR_BYTES 16
#endif
TUFF_READ(2, A4, FOUR, FOUR_BYTES)
TUFF_READ(4, B4, FOUR, FOUR_BYTES)

#include "kernels/sparse/sums.glsl"

TUFF_INDEX path_rows, path_nnz;
#include "kernels/sparse/path.glsl"

// Four elements, as number `i` of fours.
#if TUFF_TYPE == 4
#define FOUR_AT(operand, i) tuff_unpack_4(TUFF_AT(operand, 2 * (i)), TUFF_AT(operand, 2 * (i) + 1))
#else
#define FOUR_AT(operand, i) TUFF_UNPACKED(TUFF_TYPE, TUFF_AT(operand, i))
#endif

// Elements of B that a piece meets, for each column.
const uint RIGHT = TUFF_DOWN != 0 ? 1 : TUFF_PIECE;
// Rows of a piece; sums of a lane: by pieces, rows, columns.
const uint PIECE_ROWS = TUFF_DOWN * (TUFF_PIECE - 1) + 1, SUMS = TUFF_TALL * PIECE_ROWS * TUFF_WIDTH;
// Blocks of a slot below which rows have fewer slots.
const uint PER_SLOT = 8;
// Blocks of a slot above which a row is long, and has all slots for itself.
const uint LONG = 16;

// A block as pieces: those that are summed, and those with sums of their own.
uint summed, held;                // pieces along the two axes
uint summed_lanes, held_lanes;    // lanes along them
uint summed_lane, held_lane;      // of this lane
uint slots, slot;
bool has_slot;                    // whether the lane has one
// What is read of the table once: later reads would follow writes.
TUFF_INDEX extent, b_row, b_block, c_row;
uint block_rows;
// For this share and tile.
TUFF_INDEX row, entry, last_row, last_entry, values_at;
bool continued;                   // the first row began before
uint part, column, width;
TUFF_INDEX list_at;               // the list's column of the share's first column of B
TUFF_INDEX a_at[TUFF_TALL], b_at[TUFF_WIDTH], c_at[TUFF_WIDTH];
TUFF_VALUE sums[SUMS];

void lay_out_lanes() {
  const uint lanes = gl_SubgroupSize, lane = gl_SubgroupInvocationID;
  const uint rows = block_rows, columns = uint(NUMBER(11));
  // `fast`: along memory. As many pieces for each of its lanes.
  const uint fast = (TUFF_DOWN != 0 ? rows : columns) / TUFF_PIECE, slow = TUFF_DOWN != 0 ? columns : rows;
  const uint pieces_each = (fast + lanes - 1u) / lanes, fast_lanes = (fast + pieces_each - 1u) / pieces_each;
  const uint slow_lanes = min(slow, lanes / fast_lanes), of_block = fast_lanes * slow_lanes;
  slots = lanes / of_block, slot = lane / of_block;
  has_slot = slot < slots;
  const uint place = lane - slot * of_block, slow_lane = place / fast_lanes, fast_lane = place - slow_lane * fast_lanes;
#if TUFF_DOWN
  summed = slow, held = fast, summed_lanes = slow_lanes, held_lanes = fast_lanes;
  summed_lane = slow_lane, held_lane = fast_lane;
#else
  summed = fast, held = slow, summed_lanes = fast_lanes, held_lanes = slow_lanes;
  summed_lane = fast_lane, held_lane = slow_lane;
#endif
}

// path_at() of two places, by all lanes of a subgroup.
void find_ends(TUFF_INDEX steps[2], out TUFF_INDEX rows[2], out TUFF_INDEX entries[2]) {
  TUFF_INDEX low[2], high[2];
  [[unroll]] for (uint i = 0; i < 2; ++i) {
    low[i] = steps[i] > path_nnz ? steps[i] - path_nnz : TUFF_INDEX(0), high[i] = min(steps[i], path_rows);
  }
  while (low[0] < high[0] || low[1] < high[1]) {
    [[unroll]] for (uint i = 0; i < 2; ++i) {
      const TUFF_INDEX apart = max((high[i] - low[i] + gl_SubgroupSize - 1) / gl_SubgroupSize, TUFF_INDEX(1));
      const TUFF_INDEX probe = low[i] + gl_SubgroupInvocationID * apart, at = min(probe, path_rows - 1);
      const bool ended = probe < high[i] && offset(at + 1) + at + 1 <= steps[i];
      const uint count = subgroupBallotBitCount(subgroupBallot(ended));
      high[i] = min(high[i], low[i] + count * apart);
      if (count > 0u) low[i] += (count - 1u) * apart + 1u;
    }
  }
  [[unroll]] for (uint i = 0; i < 2; ++i) rows[i] = low[i], entries[i] = steps[i] - low[i];
}

struct Piece {
  TUFF_VALUE of[TUFF_PIECE];
};
struct Right {
  TUFF_VALUE of[RIGHT * TUFF_WIDTH];  // by elements, columns
};

// Piece `at` of the matrix.
Piece piece_of_a(TUFF_INDEX at) {
  Piece piece;
#if TUFF_VECTOR_A
  const TUFF_VALUE4 four = FOUR_AT(A4, values_at / 4 + at);
  [[unroll]] for (uint c = 0; c < TUFF_PIECE; ++c) piece.of[c] = four[c];
#else
  [[unroll]] for (uint c = 0; c < TUFF_PIECE; ++c) piece.of[c] = LOADED(TUFF_AT(A, values_at + at * TUFF_PIECE + c));
#endif
  return piece;
}

// `at` is from where each column begins.
Right right_of(TUFF_INDEX at) {
  Right right;
#if TUFF_VECTOR_B == 1
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
    const TUFF_VALUE4 four = FOUR_AT(B4, (b_at[w] + at) / 4);
    [[unroll]] for (uint c = 0; c < 4; ++c) right.of[c * TUFF_WIDTH + w] = four[c];
  }
#elif TUFF_VECTOR_B == 2
  [[unroll]] for (uint c = 0; c < RIGHT; ++c) {
    [[unroll]] for (uint w = 0; w < TUFF_WIDTH; w += 4) {
      const TUFF_VALUE4 four = FOUR_AT(B4, (b_at[w] + at + c * b_row) / 4);
      [[unroll]] for (uint i = 0; i < 4; ++i) right.of[c * TUFF_WIDTH + w + i] = four[i];
    }
  }
#else
  [[unroll]] for (uint c = 0; c < RIGHT; ++c) {
    [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
      right.of[c * TUFF_WIDTH + w] = LOADED(TUFF_AT(B, b_at[w] + at + c * b_row));
    }
  }
#endif
  return right;
}

void add_product(uint t, Piece left, Right right) {
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
    [[unroll]] for (uint c = 0; c < TUFF_PIECE; ++c) {
      const uint to = TUFF_DOWN != 0 ? t * PIECE_ROWS + c : t, from = TUFF_DOWN != 0 ? 0u : c;
      sums[to * TUFF_WIDTH + w] += left.of[c] * right.of[from * TUFF_WIDTH + w];
    }
  }
}

// Adds blocks `place`, place + stride, … of the `count` that begin at `from` in the share. `most` is the largest count of
// the subgroup's lanes.
void add_blocks(uint from, uint count, uint place, uint stride, uint most) {
  const TUFF_INDEX pieces = summed * held;
  const uint summed_stride = TUFF_DOWN != 0 ? held : 1u;
  for (uint k = place; k < most + place; k += TUFF_UNROLL * stride) {
    TUFF_INDEX a[TUFF_UNROLL], b[TUFF_UNROLL];
    bool is[TUFF_UNROLL];
    [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
      const uint i = k + u * stride;
      TUFF_INDEX e = min(entry + from + min(i, max(count, 1u) - 1u), path_nnz - 1);
#if TUFF_PERMUTED
      e = TUFF_INDEX(TUFF_AT(P, e));
#endif
      TUFF_INDEX at;
      const bool named = names(TUFF_AT(I, e), extent, at);
      is[u] = has_slot && i < count && named;
      a[u] = e * pieces, b[u] = is[u] ? at * b_block : TUFF_INDEX(0);
    }
    for (uint first = 0u; first < summed; first += summed_lanes) {
      const uint s = first + summed_lane, at = min(s, summed - 1u);
      Piece left[TUFF_UNROLL * TUFF_TALL];
      Right right[TUFF_UNROLL];
      [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
        [[unroll]] for (uint t = 0; t < TUFF_TALL; ++t) {
          left[u * TUFF_TALL + t] = piece_of_a(a[u] + a_at[t] + at * summed_stride);
        }
        right[u] = right_of(b[u] + (at * RIGHT) * b_row);
      }
      // A product that is left out is not multiplied by 0, which an infinity would make a NaN.
      [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) {
        if (is[u] && s < summed) {
          [[unroll]] for (uint t = 0; t < TUFF_TALL; ++t) add_product(t, left[u * TUFF_TALL + t], right[u]);
        }
      }
    }
  }
}

// Adds the sums of `count` lanes that are `apart`, of which this is number `at`; number 0 receives them.
void add_lanes(uint at, uint count, uint apart) {
  if (count < 2u) return;
  for (uint step = 1u << findMSB(count - 1u); step > 0u; step /= 2u) {
    const uint from = min(gl_SubgroupInvocationID + step * apart, gl_SubgroupSize - 1u);
    [[unroll]] for (uint i = 0; i < SUMS; ++i) {
      const TUFF_VALUE other = TUFF_SHUFFLE(sums[i], from);
      if (at < step && at + step < count) sums[i] += other;
    }
  }
}

// Those of the lanes that add to the same rows, in `each` slots.
void add_slots(uint place, uint each) {
#if TUFF_DOWN
  add_lanes(place * summed_lanes + summed_lane, each * summed_lanes, held_lanes);
#else
  add_lanes(summed_lane, summed_lanes, 1u);
  add_lanes(place, each, summed_lanes * held_lanes);
#endif
}

// The sums of row r, of the tile that begins at piece `top`. `listed`: they are the list's.
void write_row(TUFF_INDEX r, bool listed, uint top) {
  const TUFF_INDEX columns = TUFF_INDEX(block_rows) * (push.n * (push.across / (push.tiles * push.column_tiles)));
  const TUFF_INDEX list = (2u * TUFF_INDEX(part) + (r == last_row ? 1u : 0u)) * columns + list_at;
  [[unroll]] for (uint t = 0; t < TUFF_TALL; ++t) {
    [[unroll]] for (uint c = 0; c < PIECE_ROWS; ++c) {
      const uint at = (top + held_lane + t * held_lanes) * PIECE_ROWS + c;
      [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
        const TUFF_VALUE sum = sums[(t * PIECE_ROWS + c) * TUFF_WIDTH + w];
        if (at < block_rows && w < width) {
          if (listed) {
            TUFF_AT(V, list + (w * block_rows + at)) = sum;
          } else {
            write_result(c_at[w] + (r * block_rows + at) * c_row, sum);
          }
        }
      }
    }
  }
}

// All rows of the share, for one tile.
void take_rows(uint rows, uint top) {
  const uint lane = gl_SubgroupInvocationID, count = uint(last_entry - entry);
  [[unroll]] for (uint t = 0; t < TUFF_TALL; ++t) {
    a_at[t] = TUFF_INDEX(min(top + held_lane + t * held_lanes, held - 1u) * (TUFF_DOWN != 0 ? 1u : summed));
  }
  uint few = slots;  // for each of the rows that are added at once
  while (few > 1u && PER_SLOT * few * rows > count) few = (few + 1u) / 2u;
  const uint at_once = slots / few, own = slot / few, own_place = slot - own * few;
  for (uint base = 0u; base < rows;) {
    // Where rows begin in the share: a lane for each, of which the last one only ends the row before.
    const TUFF_INDEX begins = offset(min(row + (base + lane), path_rows));
    const uint begin = uint(min(max(begins, entry), last_entry) - entry);
    const uint end = subgroupShuffle(begin, min(lane + 1u, gl_SubgroupSize - 1u)), length = end > begin ? end - begin : 0u;
    const uint here = min(rows - base, gl_SubgroupSize - 1u);
    for (uint i = 0u; i < here;) {
      uint most = subgroupMax(lane >= i && lane < min(i + at_once, here) ? length : 0u);
      const bool single = most > LONG * few;
      const uint each = single ? slots : few, place = single ? slot : own_place, mine = i + (single ? 0u : own);
      const bool has = has_slot && mine < here && (single || own < at_once);
      const uint source = min(mine, gl_SubgroupSize - 1u);
      const uint from = subgroupShuffle(begin, source), all = subgroupShuffle(length, source);
      if (single) most = subgroupShuffle(length, i);
      [[unroll]] for (uint s = 0; s < SUMS; ++s) sums[s] = TUFF_ZERO;
      add_blocks(from, has ? all : 0u, place, each, most);
      add_slots(place, each);
      if (has && place == 0u && summed_lane == 0u) {
        const TUFF_INDEX r = row + (base + mine);
        write_row(r, r == last_row || (r == row && continued), top);
      }
      i += single ? 1u : at_once;
    }
    base += here;
  }
}

void take_item(uint item) {
  part = item / push.across;
  const uint rest = item - part * push.across, of_matrix = push.tiles * push.column_tiles, matrix = rest / of_matrix;
  const uint in_matrix = rest - matrix * of_matrix, column_tile = in_matrix / push.tiles;
  column = column_tile * TUFF_WIDTH, width = push.n - column;
  list_at = (TUFF_INDEX(matrix) * push.n + column) * block_rows;
  values_at = matrix * NUMBER(7);
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
    const uint at = column + min(w, width - 1u);
    b_at[w] = matrix * NUMBER(8) + at * NUMBER(4), c_at[w] = matrix * NUMBER(9) + at * NUMBER(6);
  }
  const TUFF_INDEX steps = path_rows + path_nnz, begin = TUFF_INDEX(part) * push.chunk;
  TUFF_INDEX rows[2], entries[2];
  find_ends(TUFF_INDEX[2](begin, min(begin + push.chunk, steps)), rows, entries);
  // Should offsets decrease: not backwards, and no more than the share.
  row = rows[0], entry = entries[0], last_row = max(rows[1], row);
  last_entry = max(min(entries[1], entry + push.chunk), entry);
  continued = row < path_rows && entry > offset(row);
  if (rest == 0u && gl_SubgroupInvocationID == 0u) {
    bool some = false;
    if (last_row < path_rows) some = last_entry > max(offset(last_row), entry);
    TUFF_AT(K, 2u * TUFF_INDEX(part)) = continued && row < last_row ? uint(row) : NONE;
    TUFF_AT(K, 2u * TUFF_INDEX(part) + 1u) = some ? uint(last_row) : NONE;
  }
  const uint count = row < path_rows ? uint(min(last_row, path_rows - 1) - row) + 1u : 0u;
  const uint tile = TUFF_TALL * held_lanes;
  for (uint top = (in_matrix - column_tile * push.tiles) * tile; top < held; top += push.tiles * tile) {
    take_rows(count, top);
  }
}

void main() {
  path_rows = NUMBER(0), path_nnz = NUMBER(1), extent = NUMBER(2), b_row = NUMBER(3), c_row = NUMBER(5);
  block_rows = uint(NUMBER(10)), b_block = NUMBER(11) * b_row;
  lay_out_lanes();
  // A workgroup has as many items as it has subgroups of the size that the device reports.
  const uint each = gl_WorkGroupSize.x / gl_SubgroupSize, first = tuff_group() * each;
  for (uint item = first + gl_SubgroupID; item < min(first + each, push.items); item += gl_NumSubgroups) take_item(item);
}
