// Whether the invocations that a subgroup operation or a barrier needs reach it together, derived from a kernel's
// SPIR-V.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuff_test {

struct Convergence {
  uint32_t operations = 0;  // subgroup operations, and barriers of a subgroup or of the workgroup
  // Subgroup operations that all invocations of a subgroup reach, but not all subgroups of the workgroup. Behind a
  // branch in which lanes part, SPIR-V has the lanes meet again only with SubgroupUniformControlFlowKHR or more.
  uint32_t by_subgroup = 0;
  // An operation that some invocations do not reach, or reach less often than others, and the branch at which they
  // part.
  std::vector<std::string> findings;
};

// Whether a module, optimised or not, has such operations at all.
bool has_common_operations(const std::vector<uint32_t>& words);

// words: an optimised module, whose functions are inlined and whose variables are values where possible; its
// specialisation constants have their numbers. Numbers read from memory at one address are taken to be the same in all
// invocations.
Convergence convergence_of(const std::vector<uint32_t>& words);

}  // namespace tuff_test
