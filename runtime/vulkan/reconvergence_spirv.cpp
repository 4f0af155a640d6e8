#include "runtime/vulkan/reconvergence_spirv.hpp"

#include <cstring>
#include <string_view>

#include "planning/status.hpp"

namespace tuff {
namespace {

// Where a module's declarations go.
struct DeclarationPlaces {
  size_t behind_capabilities = 0, behind_entry_point = 0;
  uint32_t entry_point = 0;
  bool has_operations = false;
};

// Opcodes and enumerants are those of the SPIR-V registry.
DeclarationPlaces declaration_places(const std::vector<uint32_t>& module) {
  constexpr uint32_t kEntryPoint = 15, kCapability = 17;
  constexpr uint32_t kFirstOperation = 333, kLastOperation = 366;  // GroupNonUniformElect … GroupNonUniformQuadSwap
  constexpr size_t kHeaderWords = 5;
  DeclarationPlaces places;
  for (size_t at = kHeaderWords; at < module.size();) {
    const uint32_t op = module[at] & 0xffffu, count = module[at] >> 16;
    if (count == 0 || at + count > module.size()) fail(TUFF_ERROR_INTERNAL, "a SPIR-V module is cut short");
    if (op == kCapability) places.behind_capabilities = at + count;
    if (op == kEntryPoint) places.behind_entry_point = at + count, places.entry_point = module[at + 2];
    places.has_operations = places.has_operations || (op >= kFirstOperation && op <= kLastOperation);
    at += count;
  }
  return places;
}

}  // namespace

std::vector<uint32_t> with_reconvergence(std::vector<uint32_t> module, Reconvergence reconvergence) {
  if (reconvergence == Reconvergence::core) return module;
  constexpr uint32_t kExtension = 10, kExecutionMode = 16, kSubgroupUniformControlFlow = 4421,
                     kMaximallyReconverges = 6023;
  const DeclarationPlaces places = declaration_places(module);
  if (!places.has_operations) return module;
  const bool maximal = reconvergence == Reconvergence::maximal;
  const std::string_view name = maximal ? "SPV_KHR_maximal_reconvergence" : "SPV_KHR_subgroup_uniform_control_flow";
  std::vector<uint32_t> extension(1 + name.size() / 4 + 1, 0);
  extension[0] = static_cast<uint32_t>(extension.size()) << 16 | kExtension;
  std::memcpy(&extension[1], name.data(), name.size());
  const uint32_t mode[] = {3u << 16 | kExecutionMode, places.entry_point,
                           maximal ? kMaximallyReconverges : kSubgroupUniformControlFlow};
  // From the end to the beginning, so that the places stay valid.
  module.insert(module.begin() + static_cast<ptrdiff_t>(places.behind_entry_point), std::begin(mode), std::end(mode));
  module.insert(module.begin() + static_cast<ptrdiff_t>(places.behind_capabilities), extension.begin(),
                extension.end());
  return module;
}

}  // namespace tuff
