// Second pass of split-KV attention: merges the partial results of attention_split.comp, attention_matrix.comp or
// attention_decode.cpp, which are each part's outputs as sums, references and sums of weights. A workgroup computes one
// row: each of its subgroups adds up adjacent parts in order, and then the subgroups' sums are added up in order.
//
//# HEAD_DIM_V_IS : 4..256 : head_dim of v, a multiple of 16 bytes
//# ROWS : 1|2|4|8|16|32|64 : query rows of a tile of the first pass
//# WIDTH : 1|2|4|8|16|32|64|128 : subgroup size
//# SUBGROUPS : 1|4 : subgroups of a workgroup
#include "kernels/attention/attention_common.glsl"

layout(local_size_x = SUBGROUPS * WIDTH) in;
#define BLOCKS ((HEAD_DIM_V_IS + WIDTH * 4 - 1) / (WIDTH * 4))
#define AHEAD (BLOCKS > 1 ? 4 : 8)  // parts loaded at once

#if SUBGROUPS > 1
shared vec4 shares[SUBGROUPS - 1][BLOCKS * WIDTH];
shared float shares_of_total[SUBGROUPS - 1];
#endif

void main() {
  const uint group = tuff_group();
  if (group >= push.groups) return;
  const uint lane = gl_SubgroupInvocationID, parts = push.key_end;
  const uint share = (parts + SUBGROUPS - 1) / SUBGROUPS, first_part = gl_SubgroupID * share,
             end_part = min(first_part + share, parts);
  const uint heads = SHAPE.heads & 0xffffu, sharing = SHAPE.heads >> 16, all_rows = SHAPE.seq_q * sharing;
  const uint tiles = (all_rows + ROWS - 1) / ROWS;
  const uint kv_head = group / all_rows, row = group % all_rows;
  find_head(kv_head * sharing + row % sharing);
  const float scale_log2 = SHAPE.scale_log2;
  const TUFF_INDEX stride = ROWS * HEAD_DIM_V_IS + STATISTICS(ROWS);
  const TUFF_INDEX base = TUFF_INDEX(kv_head * tiles + row / ROWS) * parts * stride;
  const TUFF_INDEX outputs = base + row % ROWS * HEAD_DIM_V_IS, statistics = base + ROWS * HEAD_DIM_V_IS + row % ROWS;

  float largest = -LARGEST;
  [[dont_unroll]] for (uint part = lane; part < parts; part += WIDTH) {
    largest = max(largest, TUFF_AT(Parts, statistics + part * stride));
  }
  largest = subgroupMax(largest);

  vec4 sums[BLOCKS];
  [[unroll]] for (uint b = 0; b < BLOCKS; ++b) sums[b] = vec4(0);
  float total = 0.0;
  [[dont_unroll]] for (uint part0 = first_part; part0 < end_part; part0 += WIDTH) {
    // A lane stands for a part; lanes past the last part repeat it with a factor of 0.
    const uint own = min(part0 + lane, parts - 1);
    float factor = exp2((TUFF_AT(Parts, statistics + own * stride) - largest) * scale_log2);
    if (part0 + lane >= end_part) factor = 0.0;
    total = fma(TUFF_AT(Parts, statistics + own * stride + ROWS), factor, total);
    const uint count = min(WIDTH, end_part - part0);
    [[dont_unroll]] for (uint p0 = 0; p0 < count; p0 += AHEAD) {
      vec4 x[AHEAD][BLOCKS];
      [[unroll]] for (uint p = 0; p < AHEAD; ++p) [[unroll]] for (uint b = 0; b < BLOCKS; ++b) {
        const uint part = min(part0 + p0 + p, parts - 1), column = min((b * WIDTH + lane) * 4, HEAD_DIM_V_IS - 4);
        x[p][b] = TUFF_AT(Parts4, (outputs + part * stride + column) / 4);
      }
      [[unroll]] for (uint p = 0; p < AHEAD; ++p) {
        // Past the last part the factor is 0, and the repeated values are finite, or the result is NaN anyway.
        const float f = subgroupShuffle(factor, min(p0 + p, WIDTH - 1));
        [[unroll]] for (uint b = 0; b < BLOCKS; ++b) {
          if (p0 + p < count) sums[b] = fma(vec4(f), x[p][b], sums[b]);
        }
      }
    }
  }
  total = subgroupAdd(total);
#if SUBGROUPS > 1
  if (gl_SubgroupID != 0) {
    [[unroll]] for (uint b = 0; b < BLOCKS; ++b) shares[gl_SubgroupID - 1][b * WIDTH + lane] = sums[b];
    if (lane == 0) shares_of_total[gl_SubgroupID - 1] = total;
  }
  barrier();
  if (gl_SubgroupID != 0) return;
  [[unroll]] for (uint s = 0; s < SUBGROUPS - 1; ++s) {
    total += shares_of_total[s];
    [[unroll]] for (uint b = 0; b < BLOCKS; ++b) sums[b] += shares[s][b * WIDTH + lane];
  }
#endif
#if EXTENDED
  if (lane == 0) store_log_sum_exp(row / sharing, largest, total, scale_log2);
#endif
  const TUFF_INDEX at = result_base + TUFF_INDEX(row / sharing) * SHAPE.o_row;
  [[unroll]] for (uint b = 0; b < BLOCKS; ++b) {
    const uint column = (b * WIDTH + lane) * 4;
    if (column < HEAD_DIM_V_IS) {
      vec4 result;
      [[unroll]] for (uint e = 0; e < 4; ++e) result[e] = normalised(sums[b][e], total);
      TUFF_AT(Result4, (at + column) / 4) = TO_FOUR(result);
    }
  }
}
