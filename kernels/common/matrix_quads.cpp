#include "kernels/common/matrix_quads.hpp"

#include "planning/recorder.hpp"
#include "shaders/matrix_probe.hpp"

namespace tuff {
namespace {

constexpr uint32_t kLanes = 32, kElements = 8;
constexpr uint64_t kBytes = 3 * kLanes * kElements * sizeof(uint32_t);

bool in_quads(ProbeRun& run, int32_t dtype) {
  const Buffer places = run.readable(kBytes);
  KernelRequest kernel = shaders::MatrixProbe::request({.type = dtype});
  kernel.matrices(dtype == TUFF_BF16 ? Matrices::bf16 : Matrices::f16);
  Dispatch dispatch("matrix probe");
  dispatch.operand(&places, 0, kBytes, Access::write);
  run.recorder().dispatch(kernel, dispatch);
  run.finish();
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

bool possible(const DeviceTraits& traits) {
  return traits.subgroup_size == kLanes && traits.multiplies_squares(TUFF_F16);
}

bool all_in_quads(ProbeRun& run) {
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
    if (run.recorder().traits().multiplies_squares(dtype) && !in_quads(run, dtype)) return false;
  }
  return true;
}

}  // namespace

const Probe matrix_quads = {"matrix_quads",
                            2,
                            "cooperative matrices keep their elements in quads of lanes",
                            "cooperative matrices do not keep their elements in quads of lanes",
                            possible,
                            all_in_quads};

}  // namespace tuff
