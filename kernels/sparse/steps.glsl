// What kernels share that go through the rows of a triangle level by level, in one workgroup. The rows of a level are
// taken in batches; in a batch each row has as many lanes as there are for it, up to a subgroup's:
//
//   rows left of the level    at least as many as lanes   a half   …   1
//   lanes of a row            1                           2        …   TUFF_SHARE
//
// A lane takes UNROLL entries of its row in an iteration. Iterations are counted: on Mesa's CPU driver an invocation runs
// 65,535 of them at most (kernels/common/loop_limit.hpp), and a GPU should not be busy for seconds. After push.budget
// iterations the workgroup stores where it is, and the next dispatch goes on there.
//
//# TUFF_SHARE : 1.. : the most lanes of a row: those of a subgroup, a power of two; 1 without shuffles
//# constant UNROLL : entries that a lane takes in an iteration
const uint UNROLL = 4;
// The statement for each u below UNROLL. Mesa's compiler keeps a loop of larger bodies, in spite of [[unroll]], and would
// count its iterations too.
#define UNROLLED(statement)         \
  {                                 \
    { const uint u = 0u; statement; } \
    { const uint u = 1u; statement; } \
    { const uint u = 2u; statement; } \
    { const uint u = 3u; statement; } \
  }
//# constant STATE : words of a state, which the kernels describe
const uint STATE = 8;

shared uint most;

// By the places in subgroups, so that the lanes of a row are neighbours in theirs.
uint lane_of_workgroup() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }

uint lanes_of_row(uint left) {
  const uint lanes = gl_WorkGroupSize.x;
  // A driver may run smaller subgroups than it reports.
  return left >= lanes ? 1u : min(min(uint(TUFF_SHARE), gl_SubgroupSize), 1u << findMSB(lanes / left));
}

// The most iterations that a lane of the workgroup has for `count` entries of its row.
uint most_iterations(uint lane, uint count, uint each) {
  if (lane == 0u) most = 0u;
  barrier();
  atomicMax(most, (count + each * UNROLL - 1u) / (each * UNROLL));
  barrier();
  const uint result = most;
  barrier();  // before lane 0 of the next batch
  return result;
}
