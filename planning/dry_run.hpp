// A recorder that records nothing: whether all of a call's dispatches can be bound. Devices without buffer addresses
// need it, where an operand is beyond a descriptor's range: a planner that cuts a call into pieces learns of it at the
// piece that is refused, and by then others are recorded.
#pragma once

#include <array>

#include "planning/recorder.hpp"
#include "planning/status.hpp"

namespace tuff {

[[noreturn]] inline void refuse_range(const DeviceTraits& traits) {
  fail(TUFF_ERROR_LIMIT_EXCEEDED,
       "an operand is beyond the {} bytes of a descriptor, and the device has no buffer addresses", traits.max_range);
}

class DryRun : public Recorder {
 public:
  explicit DryRun(Recorder& recorder) : recorder_(recorder) {}

  const DeviceTraits& traits() const noexcept override { return recorder_.traits(); }
  bool binds_addresses(Reads reads, const Dispatch& dispatch) const noexcept override {
    return recorder_.binds_addresses(reads, dispatch);
  }
  const TuningTable* tuning() const noexcept override { return recorder_.tuning(); }
  void dispatch(const KernelRequest& kernel, const Dispatch& dispatch) override {
    const bool addresses = kernel.is_wide() || binds_addresses(kernel.reads(), dispatch);
    if (addresses && !traits().addresses) refuse_range(traits());
  }
  void copy_rows(const Rows&, const Rows&, uint64_t, uint64_t) override {}
  const Buffer& scratch(uint64_t bytes, Scratch place) override {
    Buffer& buffer = scratch_[static_cast<size_t>(place)];
    buffer.bytes = bytes;
    return buffer;
  }
  const Buffer& parameters(const void*, uint32_t bytes) override {
    parameters_.bytes = bytes;
    return parameters_;
  }
  bool holds(const Probe& probe) override { return recorder_.holds(probe); }

 private:
  Recorder& recorder_;
  std::array<Buffer, 2> scratch_;
  Buffer parameters_;
};

}  // namespace tuff
