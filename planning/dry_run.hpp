// A recorder that records nothing and only checks that every dispatch of a call can be bound. Devices without buffer
// addresses need it, because an operand may exceed a descriptor's range: a planner that splits a call would otherwise
// learn of it at the piece that is refused, after earlier pieces have been recorded.
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
  std::array<Buffer, 3> scratch_;
  Buffer parameters_;
};

}  // namespace tuff
