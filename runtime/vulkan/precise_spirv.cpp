#include "runtime/vulkan/precise_spirv.hpp"

#include <algorithm>
#include <unordered_set>

#include "planning/status.hpp"

namespace tuff {
namespace {

// Opcodes and enumerants from the SPIR-V registry.
constexpr uint32_t kDecorate = 71, kNoContraction = 42;
constexpr uint32_t kArithmetic[] = {
    127,  // FNegate
    129,  // FAdd
    131,  // FSub
    133,  // FMul
    136,  // FDiv
    142,  // VectorTimesScalar
};
constexpr size_t kModuleHeaderWords = 5;

// Calls use(op, at, count) for each instruction, which is `count` words from module[at] on.
template <typename Use>
void for_each(const std::vector<uint32_t>& module, const Use& use) {
  for (size_t at = kModuleHeaderWords; at < module.size();) {
    const uint32_t count = module[at] >> 16;
    if (count == 0 || at + count > module.size()) fail(TUFF_ERROR_INTERNAL, "a SPIR-V module is cut short");
    use(module[at] & 0xffffu, at, count);
    at += count;
  }
}

}  // namespace

std::vector<uint32_t> keep_precise(std::vector<uint32_t> module) {
  std::unordered_set<uint32_t> precise;
  std::vector<uint32_t> added;
  size_t place = 0;  // after a decoration, where more may be inserted
  for_each(module, [&](uint32_t op, size_t at, uint32_t count) {
    if (op == kDecorate && count == 3 && module[at + 2] == kNoContraction) {
      precise.insert(module[at + 1]);
      place = at + count;
    }
    // Decorations come before all functions.
    if (place == 0 || std::find(std::begin(kArithmetic), std::end(kArithmetic), op) == std::end(kArithmetic)) return;
    const uint32_t result = module[at + 2];
    if (precise.count(result) == 0) added.insert(added.end(), {3u << 16 | kDecorate, result, kNoContraction});
  });
  module.insert(module.begin() + static_cast<ptrdiff_t>(place), added.begin(), added.end());
  return module;
}

}  // namespace tuff
