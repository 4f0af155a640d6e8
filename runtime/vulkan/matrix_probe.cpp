#include "runtime/vulkan/matrix_probe.hpp"

#include "runtime/log.hpp"
#include "shaders.hpp"

namespace tuff {
namespace {

constexpr uint32_t kLanes = 32, kElements = 8;
constexpr uint64_t kBytes = 3 * kLanes * kElements * sizeof(uint32_t);
// Changes with what is measured, so that an older answer is not taken for a newer one.
constexpr CacheKey kKey{1, 2};

bool in_quads(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, int32_t dtype) {
  Buffer places;
  places.allocation = std::make_shared<VulkanAllocation>(pool, kBytes, MemoryKind::readback);
  places.bytes = kBytes;
  KernelRequest kernel(shaders::matrix_probe);
  kernel.matrices(dtype == TUFF_BF16 ? Matrices::bf16 : Matrices::f16).define("TYPE", dtype);
  Dispatch dispatch("matrix probe");
  dispatch.operand(&places, 0, kBytes, Access::write);
  recorder.dispatch(kernel, dispatch);
  recorder.wait(recorder.submit(true));
  const auto* const place = places.host<uint32_t>();
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t e = 0; e < kElements; ++e) {
      const uint32_t row = lane / 4 + e / 4 * 8, column = lane % 4 * 2 + e % 2 + e / 2 % 2 * 8;
      const uint32_t at = lane * kElements + e, wanted = row * 16 + column;
      if (place[at] != wanted || place[kLanes * kElements + at] != wanted) return false;
    }
  }
  return true;
}

}  // namespace

bool measure_matrix_quads(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, KernelCache& kernels) {
  const DeviceTraits& traits = recorder.traits();
  if (traits.subgroup_size != kLanes || !traits.multiplies_squares(TUFF_F16)) return false;
  if (const auto stored = kernels.disk().load("matrix_quads", kKey); stored && stored->size() == 1) {
    return stored->front() == std::byte{1};
  }
  bool quads = true;
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
    if (traits.multiplies_squares(dtype)) quads = quads && in_quads(recorder, pool, dtype);
  }
  log(TUFF_LOG_INFO, "matrices keep their elements {}",
      quads ? "in quads of lanes" : "elsewhere than in quads of lanes");
  const std::byte answer{static_cast<unsigned char>(quads ? 1 : 0)};
  kernels.disk().store("matrix_quads", kKey, {&answer, 1});
  return quads;
}

}  // namespace tuff
