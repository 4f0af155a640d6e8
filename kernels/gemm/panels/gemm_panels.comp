// One block of k of a GEMM with packed operands (gemm_pack.comp), for CPU drivers that compile a subgroup into one
// thread's vector instructions.
//
// A subgroup's tile has ROWS rows and WIDTH columns; a lane accumulates the rows of its column. Sums are passed from
// one block of k to the next through memory, two rows of a column as one 64-bit number, because a store costs each lane
// as much as a dozen multiply-adds.
//
// Mesa's gallivm turns a load into one instruction for all lanes only if it can prove that all lanes have the same
// address: it must be computed from constants and push constants, outside of all control flow. Any other load is a
// gather, element by element, and values that live past the end of a loop are blended under the mask of active lanes.
// This kernel therefore has no loop and no branch before its final stores, and its tile's indices go through a table in
// the push constants that maps each digit to itself. Loading WIDTH adjacent values and letting lane i pick the i-th
// becomes one vector load. What remains for WIDTH multiply-adds is one multiplication, with a broadcast memory operand,
// and one addition.
//
// The stores are in a loop of one iteration. On CPUs with scatter instructions everything would be one basic block
// without it, and LLVM would schedule all multiplications before the additions of the second pair of rows: it spills to
// memory and runs at less than half the speed. LLVM also moves additions into a branch, but not into a loop.
//
//# WIDTH : 2..16 : subgroup size
//# SUBGROUPS : 1..16 : subgroups of a workgroup, each with a tile, side by side
//# ROWS : 2..16 : rows of a tile, even
//# DEPTH : 16..256 : steps of k, a multiple of 16
//# LAST : 0|1 : 1: this is the last block of k, which writes C
//# BETA : 0|1 : 0: beta is 0
//# PAIRED_C : 0|1 : 1: two columns of C are written as one 64-bit number: n and ldc even, 8-byte alignment
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  mat4 digits;  // element i's low four bits are i. Not an array, whose index must be the same in the whole workgroup
  uint tiles_n, first;  // first: this is the first block of k, there are no sums yet
  uint zero;            // always 0, unknown to the driver's compiler
  uint m, n, ldc;
  float alpha, beta;
} push;
TUFF_READ(0, A, float, 4)
TUFF_READ(1, B, float, 4)
TUFF_READ_WRITE(2, Sums, uint64_t, 8)
TUFF_READ_WRITE(3, C, float, 4)
TUFF_READ_WRITE(3, C2, uint64_t, 8)

layout(local_size_x = WIDTH * SUBGROUPS) in;

// Iteration counts of the loops over k, which the driver unrolls. It unrolls no loop of more than 32 iterations, hence
// two nested loops. The counts are specialisation constants because the GLSL compiler takes ten seconds to unroll them
// itself.
layout(constant_id = 0) const uint BLOCKS = DEPTH / 16;
layout(constant_id = 1) const uint STEPS = 16;

uint lane = gl_SubgroupInvocationID;

// x < 256, as a value that the driver sees as coming from push constants.
uint uniform_digit(uint x) { return floatBitsToUint(push.digits[(x >> 2) & 3][x & 3]) & 15; }
uint uniform_number(uint x) { return uniform_digit(x) + uniform_digit(x >> 4) * 16; }

// Element `lane` of the WIDTH adjacent values from `at` on.
#define LANES(Type, pick, view)                                                                       \
  Type pick(view##_ref pointer, uint at) {                                                            \
    Type value = pointer.v[at];                                                                       \
    [[unroll]] for (uint i = 1; i < WIDTH; ++i) value = mix(value, pointer.v[at + i], lane == i);     \
    return value;                                                                                     \
  }
LANES(float, b_lanes, B)
LANES(uint64_t, sums_lanes, Sums)

void main() {
  // Read once: the driver would reload push constants after each store.
  const uint m = push.m, n = push.n, ldc = push.ldc;
  const float alpha = push.alpha, beta = push.beta;
  const uint64_t c_base = push.tuff_base[C_slot];
  const bool first = push.first != 0;
  const uint row = uniform_number(gl_WorkGroupID.y);
  const uint col = uniform_number(gl_WorkGroupID.x) * SUBGROUPS + uniform_digit(gl_SubgroupID);
  A_ref a = A_ref(push.tuff_base[A_slot] + uint64_t(row) * (DEPTH * ROWS * 4));
  B_ref b = B_ref(push.tuff_base[B_slot] + uint64_t(col) * (DEPTH * WIDTH * 4));
  Sums_ref sums_pointer = Sums_ref(push.tuff_base[Sums_slot] + uint64_t(row * push.tiles_n + col) * (ROWS * WIDTH * 4));

  const uint zero = push.zero;
  float sums[ROWS];
  [[unroll]] for (uint r = 0; r < ROWS; r += 2) {
    const vec2 pair = uintBitsToFloat(unpack32(sums_lanes(sums_pointer, r / 2 * WIDTH)));
    sums[r] = mix(pair.x, 0.0, first);
    sums[r + 1] = mix(pair.y, 0.0, first);
  }
  [[unroll]] for (uint block = 0; block < BLOCKS; ++block) {
    [[unroll]] for (uint step = 0; step < STEPS; ++step) {
      const uint k = block * STEPS + step;
      const float value = b_lanes(b, k * WIDTH);
      [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] = fma(a.v[k * ROWS + r], value, sums[r]);
    }
  }

  [[dont_unroll]] for (uint round = 0; round <= zero; ++round) {
#if !LAST
    [[unroll]] for (uint r = 0; r < ROWS; r += 2) {
      sums_pointer.v[r / 2 * WIDTH + lane] = pack64(floatBitsToUint(vec2(sums[r], sums[r + 1])));
    }
#else
    // Beyond C's edges a lane stores to where its sums were. A branch would not do: the driver's compiler would move
    // the additions into it, away from the multiplications.
    const uint c_col = col * WIDTH + lane;
    const uint64_t aside = uint64_t(sums_pointer) + lane * 8;
    [[unroll]] for (uint r = 0; r < ROWS; r += 2) {
      vec2 value = alpha * vec2(sums[r], sums[r + 1]);
      const uint c_row = row * ROWS + r;
#if PAIRED_C
      // Even lanes take this row's pair of columns, odd ones the next row's.
      const bool odd = lane % 2 != 0;
      const float other = subgroupShuffle(odd ? value.x : value.y, lane ^ 1);
      value = odd ? vec2(other, value.y) : vec2(value.x, other);
      const uint own_row = c_row + lane % 2, own_col = c_col - lane % 2;
      C2_ref c = C2_ref(mix(aside, c_base + (uint64_t(own_row) * ldc + own_col) * 4,
                            own_row < m && own_col < n));
#if BETA
      value = fma(vec2(beta), uintBitsToFloat(unpack32(c.v[0])), value);
#endif
      c.v[0] = pack64(floatBitsToUint(value));
#else
      [[unroll]] for (uint i = 0; i < 2; ++i) {
        C_ref c = C_ref(mix(aside, c_base + (uint64_t(c_row + i) * ldc + c_col) * 4,
                            c_row + i < m && c_col < n));
#if BETA
        value[i] = fma(beta, c.v[0], value[i]);
#endif
        c.v[0] = value[i];
      }
#endif
    }
#endif
  }
}
