// A recorder that runs nothing and stores the planners' requests, and devices to plan for.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "planning/recorder.hpp"

namespace tuff {

struct Nowhere : Allocation {
  std::byte* host() const noexcept override { return nullptr; }
};

// Stores the requested dispatches.
class FakeRecorder final : public Recorder {
 public:
  explicit FakeRecorder(const DeviceTraits& device) : device_(device) {
    for (Buffer& buffer : scratch_) buffer.allocation = std::make_shared<Nowhere>();
    parameters_.allocation = std::make_shared<Nowhere>();
  }
  const DeviceTraits& traits() const noexcept override { return device_; }
  bool binds_addresses(Reads, const Dispatch& dispatch) const noexcept override {
    const auto is_far = [&](const Dispatch::Operand& operand) { return operand.bytes > device_.max_range; };
    return !descriptors || std::any_of(dispatch.operands(), dispatch.operands() + dispatch.operand_count(), is_far);
  }
  const TuningTable* tuning() const noexcept override { return table; }
  void dispatch(const KernelRequest& kernel, const Dispatch& dispatch) override {
    check_defines(kernel);
    if (seen) seen(kernel, dispatch);
    kernels.emplace_back(kernel.source().name);
    groups.push_back(uint64_t{dispatch.group_counts()[0]} * dispatch.group_counts()[1]);
    push_bytes.push_back((dispatch.operand_count() + (dispatch.each() != 0 ? 1 : 0)) * 8 + dispatch.push_bytes());
  }
  void copy_rows(const Rows&, const Rows&, uint64_t, uint64_t) override { kernels.emplace_back("copy_rows"); }
  const Buffer& scratch(uint64_t bytes, Scratch place) override {
    Buffer& buffer = scratch_[static_cast<size_t>(place)];
    buffer.bytes = bytes;
    largest_scratch = std::max(largest_scratch, bytes);
    return buffer;
  }
  const Buffer& parameters(const void* data, uint32_t bytes) override {
    const auto* const first = static_cast<const std::byte*>(data);
    last_parameters.assign(first, first + bytes);
    parameters_.bytes = bytes;
    return parameters_;
  }
  bool holds(const Probe&) override { return quads; }
  const TuningTable* table = nullptr;
  std::vector<std::string> kernels;
  std::vector<uint64_t> groups;
  std::vector<size_t> push_bytes;
  std::vector<std::byte> last_parameters;
  uint64_t largest_scratch = 0;
  bool quads = false;
  bool descriptors = false;                                         // operands are bound by descriptors if they fit
  std::function<void(const KernelRequest&, const Dispatch&)> seen;  // called for every dispatch, if set

 private:
  DeviceTraits device_;
  std::array<Buffer, 3> scratch_;
  Buffer parameters_;
};

inline DeviceTraits a_gpu() {
  DeviceTraits traits;
  traits.subgroup_size = 32;
  traits.subgroup_arithmetic = traits.subgroup_shuffle = true;
  traits.cores = 100;
  traits.max_invocations = 1024;
  traits.max_local_size[0] = 1024;
  traits.shared_bytes = 48 << 10;
  traits.addresses = traits.storage16 = traits.storage8 = traits.f64 = true;
  return traits;
}

}  // namespace tuff
