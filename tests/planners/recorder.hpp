// A recorder that runs nothing. It checks every request against the requirements of runtime/vulkan/ and of the device.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "planners/kernel_facts.hpp"
#include "planners/memory.hpp"
#include "planning/recorder.hpp"

namespace tuff_test {

// An error of a planner.
struct Violation : std::logic_error {
  using std::logic_error::logic_error;
};
// Thrown when a call has more dispatches than are checked.
struct Enough {};

// A device, and further properties that recording depends on.
struct TestDevice {
  tuff::DeviceTraits traits;
  uint64_t slack = 64;  // minStorageBufferOffsetAlignment
  bool probes = false;  // the result of each probe that is possible on the device
};
std::string text_of(const TestDevice& device);

class CheckingRecorder final : public tuff::Recorder {
 public:
  static constexpr uint64_t kMaxDispatches = 400;
  // facts: null if kernels are not to be compiled.
  CheckingRecorder(const TestDevice& device, const tuff::TuningTable* table, KernelFacts* facts);

  const tuff::DeviceTraits& traits() const noexcept override { return device_.traits; }
  bool binds_addresses(tuff::Reads reads, const tuff::Dispatch& dispatch) const noexcept override;
  const tuff::TuningTable* tuning() const noexcept override { return table_; }
  void dispatch(const tuff::KernelRequest& kernel, const tuff::Dispatch& dispatch) override;
  void copy_rows(const Rows& to, const Rows& from, uint64_t bytes, uint64_t count) override;
  const tuff::Buffer& scratch(uint64_t bytes, tuff::Scratch place) override;
  const tuff::Buffer& parameters(const void* data, uint32_t bytes) override;
  bool holds(const tuff::Probe& probe) override;

  uint64_t dispatches() const { return dispatches_; }
  bool wrote() const { return wrote_; }  // to memory of the caller
  uint64_t largest_scratch() const { return largest_scratch_; }
  std::function<void(const std::string&)> tell;  // if set, called with a description of each dispatch

 private:
  bool fits_descriptors(const tuff::Dispatch& dispatch) const noexcept;
  bool prefers_addresses(tuff::Reads reads) const noexcept;
  void count();
  void check_kernel(const tuff::KernelRequest& kernel, const tuff::Dispatch& dispatch, bool addresses);
  struct Place {
    const char* kernel;
    uint32_t operand;
    uint64_t narrow;  // the unit of a 32-bit index in bytes; 0: indices have 64 bits
  };
  void check_range(const Place& place, const tuff::Buffer& buffer, uint64_t offset, uint64_t bytes,
                   tuff::Access access);
  void used(const char* kernel, const tuff::Buffer& buffer, uint64_t offset, uint64_t bytes, tuff::Access access);

  TestDevice device_;
  const tuff::TuningTable* table_;
  KernelFacts* facts_;
  std::array<tuff::Buffer, 3> scratch_;
  tuff::Buffer parameters_;
  std::vector<std::byte> parameters_data_;
  bool parameters_valid_ = false, wrote_ = false;
  uint64_t dispatches_ = 0, largest_scratch_ = 0;
};

}  // namespace tuff_test
