#include "kernels/common/workgroup.hpp"
#include "kernels/memory/memory.hpp"

#include <algorithm>

#include "planning/recorder.hpp"
#include "shaders/copy.hpp"
#include "shaders/fill.hpp"

namespace tuff {
namespace {

constexpr uint32_t kRun = 4;              // elements per invocation, as in the shaders
constexpr uint64_t kWindow = 1ull << 30;  // bytes per dispatch, which keeps indices small

uint32_t local_size_for(const DeviceTraits& traits) { return std::min(256u, max_along_x(traits)); }

bool on_words(const Buffer& buffer, uint64_t offset) { return (buffer.offset + offset) % 4 == 0; }

}  // namespace

void record_fill(Recorder& recorder, const Buffer& dst, uint64_t offset, uint64_t bytes,
                 const std::array<uint32_t, 4>& pattern) {
  const DeviceTraits& traits = recorder.traits();
  const uint32_t local_size = local_size_for(traits);
  shaders::Fill::Push push;
  push.pattern = pattern;
  for (uint64_t done = 0; done < bytes; done += kWindow) {
    const uint64_t part = std::min(kWindow, bytes - done);
    push.words = static_cast<uint32_t>(part / 4);
    Dispatch dispatch("fill");
    dispatch.operand(&dst, offset + done, part, Access::write)
        .push(push)
        .groups_linear(ceil_div(part / 4, uint64_t{local_size} * kRun), traits)
        .work(static_cast<double>(part), 0);
    recorder.dispatch(shaders::Fill::request().streaming().constant(0, local_size), dispatch);
  }
}

bool record_copy(Recorder& recorder, const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                 uint64_t bytes) {
  const DeviceTraits& traits = recorder.traits();
  // On a CPU device the copy command is memcpy. On a GPU it runs on a copy engine, at a sixth of the memory bandwidth
  // on an H200 (0.7 of 4.3 TB/s).
  if (traits.cpu || bytes % 4 != 0 || !on_words(dst, dst_offset) || !on_words(src, src_offset)) return false;
  const bool vectors = bytes % 16 == 0 && aligned16(&dst, dst_offset) && aligned16(&src, src_offset);
  const uint32_t element = vectors ? 16 : 4;
  const uint32_t local_size = local_size_for(traits);
  for (uint64_t done = 0; done < bytes; done += kWindow) {
    const uint64_t part = std::min(kWindow, bytes - done);
    const uint32_t elements = static_cast<uint32_t>(part / element);
    Dispatch dispatch("copy");
    dispatch.operand(&src, src_offset + done, part, Access::read)
        .operand(&dst, dst_offset + done, part, Access::write)
        .push(shaders::Copy::Push{.elements = elements})
        .groups_linear(ceil_div(elements, uint64_t{local_size} * kRun), traits)
        .work(2.0 * static_cast<double>(part), 0);
    recorder.dispatch(shaders::Copy::request({.vectors = vectors}).streaming().constant(0, local_size), dispatch);
  }
  return true;
}

}  // namespace tuff
