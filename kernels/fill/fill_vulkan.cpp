#include "kernels/fill/fill.hpp"

#include <algorithm>

#include "runtime/vulkan/recorder.hpp"
#include "shaders.hpp"

namespace tuff {
namespace {

constexpr uint32_t kRun = 4;                // words for each invocation, as in fill.comp
constexpr uint64_t kWindow = 1ull << 30;    // bytes for one dispatch: word indices stay small

struct FillPush {
  uint32_t pattern[4];
  uint32_t words;
};

}  // namespace

void record_fill(Recorder& recorder, const Buffer& dst, uint64_t offset, uint64_t bytes,
                 const std::array<uint32_t, 4>& pattern) {
  const DeviceTraits& traits = recorder.traits();
  const uint32_t local_size = std::min(256u, traits.max_invocations);
  // std430 puts a uvec4 on 16 bytes; one base takes 8, so the pattern starts 8 bytes after it.
  struct alignas(8) Padded {
    uint64_t gap;
    FillPush push;
  };
  for (uint64_t done = 0; done < bytes; done += kWindow) {
    const uint64_t part = std::min(kWindow, bytes - done);
    Padded padded{};
    std::copy(pattern.begin(), pattern.end(), padded.push.pattern);
    padded.push.words = static_cast<uint32_t>(part / 4);
    Dispatch dispatch("fill");
    dispatch.operand(&dst, offset + done, part, Access::write)
        .push(padded)
        .groups_linear(ceil_div(part / 4, uint64_t{local_size} * kRun), traits)
        .work(static_cast<double>(part), 0);
    recorder.dispatch(KernelRequest(shaders::fill).constant(0, local_size), dispatch);
  }
}

}  // namespace tuff
