// C = alpha * A * B + beta * C for A in CSR and few columns of B, or sums of the entries of rows, for GPUs. A workgroup
// has a share of the merge path (path.glsl) and one column of B:
//
//   ends       lanes of a subgroup look for the share's two ends, each in a place of its own at a time
//   products   of the share's entries with B, into shared memory: neighbouring lanes read neighbouring entries
//   rows       as many lanes of a subgroup as suit the rows' mean length add the products of a row; rows that are much
//              longer are left to whole subgroups
//
// Rows that begin and end inside the share are complete, and written. The others leave partial sums, which sparse_runs.comp
// adds:
//
//   list of share p    2 p: the end of a row that began before; 2 p + 1: the beginning, or the middle, of the last row
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_PERMUTED : 0|1 : 1: entry e is number P[e] of indices and values
//# TUFF_SUMS : 0|1 : 1: B is a vector of ones, and there are no indices
//# TUFF_THREADS : 1..1024 : invocations of a workgroup
//# TUFF_ITEMS : 1..8 : steps of an invocation
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(9)
  uint lanes;          // parts * blocks: workgroups that have work
  uint blocks;         // columns in this dispatch
  uint first;          // the first of them
  uint matrix_blocks;  // of one matrix of the batch
  uint n;              // columns of one matrix
  uint chunk;          // steps of a share
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

#include "kernels/sparse/sums.glsl"

TUFF_INDEX path_rows, path_nnz;
#define TUFF_EMPTY 0
#include "kernels/sparse/path.glsl"

const uint STEPS = TUFF_THREADS * TUFF_ITEMS;
// Products that a lane adds of a row; a longer one is listed, if there is room, which offsets that ascend leave.
const uint LONG = 32, MOST_LONG = STEPS / LONG + 1;
//# constant SHARED_BYTES : the shared memory of a workgroup, without alignment
const uint SHARED_BYTES = (STEPS + STEPS / 32) * (TUFF_TYPE == 4 ? 8 : 4) + (MOST_LONG + 1 + 8) * 4;

shared TUFF_VALUE products[STEPS + STEPS / 32];
shared uint long_rows[MOST_LONG];
shared uint long_count;
#if TUFF_WIDE
shared uint64_t ends[4];
#else
shared uint ends[4];
#endif

// A gap after every 32 spreads rows of equal lengths over the banks.
uint place_of(uint i) { return i + i / 32u; }

// path_at(), by all lanes of a subgroup.
void find_end(TUFF_INDEX steps, out TUFF_INDEX row, out TUFF_INDEX entry) {
  TUFF_INDEX low = steps > path_nnz ? steps - path_nnz : TUFF_INDEX(0), high = min(steps, path_rows);
  while (low < high) {
    const TUFF_INDEX apart = (high - low + gl_SubgroupSize - 1) / gl_SubgroupSize;
    const TUFF_INDEX probe = low + gl_SubgroupInvocationID * apart, at = min(probe, high - 1);
    const bool ended = probe < high && offset(at + 1) <= steps - at - 1;
    const uint count = subgroupBallotBitCount(subgroupBallot(ended));
    high = min(high, low + count * apart);
    if (count > 0u) low += (count - 1u) * apart + 1u;
  }
  row = low;
  entry = steps - low;
}

TUFF_VALUE product_of(TUFF_INDEX entry, bool is, TUFF_INDEX values_at, TUFF_INDEX extent, TUFF_INDEX b_row, TUFF_INDEX b_at) {
  entry = min(entry, path_nnz - 1);
#if TUFF_PERMUTED
  entry = TUFF_INDEX(TUFF_AT(P, entry));
#endif
  const TUFF_VALUE a = LOADED(TUFF_AT(A, values_at + entry));
#if TUFF_SUMS
  return is ? a : TUFF_ZERO;
#else
  // A product that is left out is not multiplied by 0, which an infinity would make a NaN.
  TUFF_INDEX column;
  const bool has_column = names(TUFF_AT(I, entry), extent, column);
  is = is && has_column;
  const TUFF_VALUE product = a * LOADED(TUFF_AT(B, b_at + (is ? column * b_row : TUFF_INDEX(0))));
  return is ? product : TUFF_ZERO;
#endif
}

// For this workgroup.
uint part, block;
TUFF_INDEX row, entry, last_row, last_entry;  // of the share's ends
TUFF_INDEX c_at, c_row;
bool continued;  // the first row began before

// The products of row r in this share, as numbers of products.
void find_products(TUFF_INDEX r, out uint begin, out uint end) {
  const TUFF_INDEX from = max(offset(r), entry), to = r == last_row ? last_entry : min(offset(r + 1), last_entry);
  begin = uint(min(from, last_entry) - entry);
  end = max(uint(max(to, entry) - entry), begin);
}

void end_row(TUFF_INDEX r, bool some, TUFF_VALUE sum) {
  if (r == last_row) {
    if (block == 0u) TUFF_AT(K, 2u * TUFF_INDEX(part) + 1u) = some ? uint(r) : NONE;
    TUFF_AT(V, (2u * TUFF_INDEX(part) + 1u) * push.blocks + block) = sum;
  } else if (r == row && continued) {
    if (block == 0u) TUFF_AT(K, 2u * TUFF_INDEX(part)) = uint(r);
    TUFF_AT(V, 2u * TUFF_INDEX(part) * push.blocks + block) = sum;
  } else {
    write_result(c_at + r * c_row, sum);
  }
}

void main() {
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID, group = tuff_group();
  if (group >= push.lanes) return;
  part = group / push.blocks, block = group - part * push.blocks;
  path_rows = NUMBER(0), path_nnz = NUMBER(1);
  const TUFF_INDEX extent = NUMBER(2), b_row = NUMBER(3);
  c_row = NUMBER(5);
  const uint all_blocks = push.first + block, matrix = all_blocks / push.matrix_blocks;
  const uint column = all_blocks - matrix * push.matrix_blocks;
  const TUFF_INDEX values_at = matrix * NUMBER(7), b_at = matrix * NUMBER(8) + column * NUMBER(4);
  c_at = matrix * NUMBER(9) + column * NUMBER(6);

  const TUFF_INDEX steps = path_rows + path_nnz;
  for (uint end = gl_SubgroupID; end < 2u; end += gl_NumSubgroups) {
    TUFF_INDEX r, e;
    find_end(min(TUFF_INDEX(part + end) * push.chunk, steps), r, e);
    if (gl_SubgroupInvocationID == 0u) ends[2u * end] = r, ends[2u * end + 1u] = e;
  }
  if (thread == 0u) long_count = 0u;
  barrier();
  // Should offsets decrease: not backwards, and no more than the share.
  row = ends[0], entry = ends[1], last_row = max(ends[2], row);
  last_entry = max(min(ends[3], entry + push.chunk), entry);
  continued = row < path_rows && entry > offset(row);
  const uint count = uint(last_entry - entry);

  TUFF_VALUE product[TUFF_ITEMS];
  [[unroll]] for (uint u = 0; u < TUFF_ITEMS; ++u) {
    const uint i = u * TUFF_THREADS + thread;
    product[u] = product_of(entry + i, i < count, values_at, extent, b_row, b_at);
  }
  [[unroll]] for (uint u = 0; u < TUFF_ITEMS; ++u) products[place_of(u * TUFF_THREADS + thread)] = product[u];
  if (thread == 0u && block == 0u) {
    if (!continued || row >= last_row) TUFF_AT(K, 2u * TUFF_INDEX(part)) = NONE;
    if (last_row >= path_rows) TUFF_AT(K, 2u * TUFF_INDEX(part) + 1u) = NONE;
  }
  barrier();

  const uint rows = row < path_rows ? uint(min(last_row, path_rows - 1) - row) + 1u : 0u;
  uint lanes = 1;  // of a row
  while (lanes * 2u <= gl_SubgroupSize && lanes * 4u * rows <= count) lanes *= 2u;
  for (uint base = 0; base < rows; base += TUFF_THREADS / lanes) {
    const uint i = base + thread / lanes, lane = thread % lanes;
    uint begin = 0, end = 0;
    if (i < rows) find_products(row + i, begin, end);
    const bool some = end > begin;
    bool is = i < rows;
    if (end - begin > LONG * lanes) {
      uint place = MOST_LONG;
      if (lane == 0u) place = atomicAdd(long_count, 1u);
      if (place < MOST_LONG) long_rows[place] = i;
      is = false;
      end = begin;
    }
    TUFF_VALUE sum = TUFF_ZERO;
    for (uint p = begin + lane; p < end; p += lanes) sum += products[place_of(p)];
    for (uint apart = 1; apart < lanes; apart *= 2u) sum += subgroupShuffleXor(sum, apart);
    if (is && lane == 0u) end_row(row + i, some, sum);
  }
  barrier();
  const uint listed = min(long_count, MOST_LONG);
  for (uint k = gl_SubgroupID; k < listed; k += gl_NumSubgroups) {
    uint begin, end;
    find_products(row + long_rows[k], begin, end);
    TUFF_VALUE sum = TUFF_ZERO;
    for (uint p = begin + gl_SubgroupInvocationID; p < end; p += gl_SubgroupSize) sum += products[place_of(p)];
    sum = subgroupAdd(sum);
    if (gl_SubgroupInvocationID == 0u) end_row(row + long_rows[k], true, sum);
  }
}
