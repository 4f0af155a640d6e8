// The search for subgroup operations and barriers that only some invocations reach: what it must find, and what it must
// not.
#include "planners/convergence.hpp"

#include <gtest/gtest.h>

#include <string>

#include "runtime/vulkan/shader_compiler.hpp"

namespace tuff {
namespace {

using tuff_test::Convergence;

Convergence of(const std::string& body, const std::string& functions = "") {
  const std::string text = R"(#version 460
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(local_size_x = 128) in;
layout(std430, set = 0, binding = 0) buffer Values { uint v[]; };
layout(push_constant) uniform Push { uint n; } push;
shared uint common_values[128];
uint lane = gl_SubgroupInvocationID, id = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
)" + functions + "\nvoid main() {\n  uint x = 1u;\n" +
                           body + "\n  v[id] = x;\n}\n";
  return tuff_test::convergence_of(compile_glsl("sample", text));
}

struct Row {
  const char* name;
  const char* body;
  const char* functions = "";
};

TEST(Convergence, IsMissed) {
  const Row rows[] = {
      {"a return of some lanes", "if (id >= push.n) return; x = subgroupAdd(v[id]);"},
      {"a return by what was read", "if (v[id] == 0u) return; x = subgroupMax(id);"},
      {"a branch of some lanes", "if (v[id] > 3u) x = subgroupAdd(id);"},
      {"both sides of a branch",
       "x = v[id] > 3u ? subgroupAdd(id) : subgroupMax(id); if (lane > 2u) x += subgroupMin(id);"},
      {"a loop that begins with the lane", "for (uint i = id; i < push.n; i += 128u) x += subgroupAdd(v[i]);"},
      {"a loop that ends by what was read", "for (uint i = 0u; i < v[id]; ++i) x += subgroupShuffleXor(x + i, 1u);"},
      {"single lanes continue",
       "for (uint k = 0u; k < push.n; ++k) { if (v[id + k] == 0u) continue; x += subgroupAdd(v[k + id]); }"},
      {"single lanes break",
       "for (uint k = 0u; k < push.n; ++k) { if (v[id + k] == 0u) break; x += subgroupAdd(v[k + id]); }"},
      {"the lanes' own counts",
       "uint count = 0u; for (uint i = id; i < push.n; i += 128u) count += v[count] & 1u;"
       "for (uint k = 0u; k < count; ++k) x += subgroupAdd(v[id + k]);"},
      {"a count by the iterations of a lane",
       "uint k = 0u; while (v[id + k] != 0u) ++k; for (uint i = 0u; i < k; ++i) x += subgroupAdd(v[id + i]);"},
      {"a variable that some lanes set",
       "uint sums[4] = uint[4](0u, 0u, 0u, 0u); if (v[id] == 1u) sums[push.n & 3u] = 7u;"
       "if (sums[v[0] & 3u] != 0u) x = subgroupAdd(id);"},
      {"an exclusive sum as a condition", "if (subgroupExclusiveAdd(id) > 5u) x = subgroupAdd(x + id);"},
      {"an atomic's result as a condition", "if (atomicAdd(v[0], 1u) > 5u) x = subgroupAdd(x + id);"},
      {"a tree of some lanes",
       "x = v[id]; for (uint d = 1u; d < min(8u, gl_SubgroupSize); d *= 2u) x += subgroupShuffleXor(x, d);"
       "for (uint k = 0u; k < x; ++k) x += subgroupAdd(v[id + k]);"},
      {"a tree that ends early",
       "x = v[id]; for (uint d = 1u; d < push.n; d *= 2u) x += subgroupShuffleXor(x, d);"
       "for (uint k = 0u; k < x; ++k) x += subgroupAdd(v[id + k]);"},
      {"a tree that leaves out lanes",
       "x = v[id]; for (uint d = 2u; d < gl_SubgroupSize; d *= 2u) x += subgroupShuffleXor(x, d);"
       "for (uint k = 0u; k < x; ++k) x += subgroupAdd(v[id + k]);"},
      {"a subgroup's tree as a barrier's condition",
       "x = v[id]; for (uint d = 1u; d < gl_SubgroupSize; d *= 2u) x += subgroupShuffleXor(x, d);"
       "if (x > 7u) { common_values[id] = x; barrier(); x = common_values[127u - id]; }"},
      {"a function in a branch", "if (v[id] != 0u) x = total(id);", "uint total(uint i) { return subgroupAdd(v[i]); }"},
      {"a function that some lanes leave", "x = total(id);",
       "uint total(uint i) { if (v[i] == 0u) return 1u; return subgroupAdd(v[i]); }"},
      {"a barrier behind a return",
       "if (id >= push.n) return; common_values[id] = id; barrier(); x = common_values[127u - id];"},
      {"a barrier that some subgroups reach",
       "if (gl_SubgroupID == 0u) { common_values[id] = id; barrier(); } x = common_values[0];"},
      {"a barrier by a subgroup's sum",
       "if (subgroupAdd(v[id]) > 9u) { common_values[id] = id; barrier(); } x = common_values[0];"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Convergence found = of(row.body, row.functions);
    EXPECT_GT(found.operations, 0u) << "the compiler left nothing to find";
    EXPECT_FALSE(found.findings.empty());
  }
}

TEST(Convergence, IsThere) {
  const Row rows[] = {
      {"a loop of lanes before it", "for (uint i = id; i < push.n; i += 128u) x += v[i]; x = subgroupAdd(x);"},
      {"a branch of lanes before it", "if (v[id] == 2u) x = v[2u * id]; x = subgroupAdd(x);"},
      {"a common loop", "for (uint k = 0u; k < push.n; ++k) x += subgroupAdd(v[id + k]);"},
      {"a common count from memory", "for (uint k = 0u; k < v[push.n]; ++k) x += subgroupAdd(v[id + k]);"},
      {"a common return", "if (gl_WorkGroupID.x >= push.n) return; x = subgroupAdd(id);"},
      {"a vote", "while (subgroupBallot(x < v[id]) != uvec4(0)) x += 1u + subgroupAdd(v[id + x]);"},
      {"one lane's number",
       "const uint count = subgroupShuffle(v[id], 3u); for (uint k = 0u; k < count; ++k) x += subgroupAdd(v[id + k]);"},
      {"a subgroup's sum", "if (subgroupAdd(v[id]) > 5u) x = subgroupMax(v[id + 1u]);"},
      {"subgroups in turn",
       "for (uint k = gl_SubgroupID; k < push.n; k += gl_NumSubgroups) x += subgroupAdd(v[128u * k + lane]);"},
      {"the first subgroup alone", "if (gl_SubgroupID == 0u) x = subgroupAdd(id);"},
      {"what is the same in a shared variable",
       "common_values[id] = id; barrier(); for (uint k = 0u; k < common_values[5]; ++k) x += subgroupAdd(v[id + k]);"},
      {"lanes continue behind it",
       "for (uint k = 0u; k < push.n; ++k) { x += subgroupAdd(v[id + k]); if (v[id] == k) continue; v[k] = x; }"},
      {"a dimension of one", "for (uint k = gl_LocalInvocationID.y; k < push.n; ++k) x += subgroupAdd(v[id + k]);"},
      {"a function that some lanes leave before", "x = subgroupAdd(chosen(id));",
       "uint chosen(uint i) { if (v[i] == 0u) return 1u; return v[2u * i]; }"},
      {"an array's common element",
       "uint counts[4] = uint[4](1u, 2u, 3u, push.n); for (uint k = 0u; k < counts[v[0] & 3u]; ++k) x += "
       "subgroupAdd(v[id + k]);"},
      {"a lane's count of a vote's bits",
       "const uvec4 votes = subgroupBallot(v[id] > 2u); if (v[id + 1u] > 2u) x = subgroupBallotBitCount(votes);"},
      {"a tree of shuffles",
       "x = v[id]; for (uint d = 1u; d < gl_SubgroupSize; d *= 2u) x += subgroupShuffleXor(x, d);"
       "for (uint k = 0u; k < x; ++k) x += subgroupAdd(v[id + k]);"},
      {"a tree of a workgroup's lanes as a barrier's condition",
       "x = v[id]; for (uint d = 1u; d < min(128u, gl_SubgroupSize); d *= 2u) x += subgroupShuffleXor(x, d);"
       "if (x > 7u) { common_values[id] = x; barrier(); x = common_values[127u - id]; }"},
      {"a barrier in a common loop",
       "for (uint k = 0u; k < push.n; ++k) { common_values[id] = x; barrier(); x += common_values[127u - id]; "
       "barrier(); }"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Convergence found = of(row.body, row.functions);
    EXPECT_GT(found.operations, 0u) << "the compiler left nothing to find";
    for (const std::string& finding : found.findings) ADD_FAILURE() << finding;
  }
}

TEST(Convergence, OfSubgroupsIsToldFromThatOfTheWorkgroup) {
  EXPECT_EQ(
      of("for (uint k = gl_SubgroupID; k < push.n; k += gl_NumSubgroups) x += subgroupAdd(v[id + k]);").by_subgroup,
      1u);
  EXPECT_EQ(of("if (gl_SubgroupID == 0u) x = subgroupAdd(id);").by_subgroup, 1u);
  EXPECT_EQ(of("for (uint k = 0u; k < push.n; ++k) x += subgroupAdd(v[id + k]);").by_subgroup, 0u);
}

TEST(Convergence, ModulesWithoutOperationsHaveNone) {
  const Convergence found = of("if (v[id] == 0u) return; x = v[2u * id];");
  EXPECT_EQ(found.operations, 0u);
  EXPECT_TRUE(found.findings.empty());
}

}  // namespace
}  // namespace tuff
