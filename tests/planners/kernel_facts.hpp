// Facts about a kernel's workgroups and operands, derived from its compiled GLSL and not from the planners.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "planning/dispatch.hpp"
#include "planning/kernel_request.hpp"

namespace tuff_test {

struct KernelFact {
  std::array<uint32_t, 3> workgroup{};
  uint64_t shared_bytes = 0;
  bool by_slots = false;  // operands are bound by descriptors, so that `writes` is valid
  uint32_t writes = 0;    // one bit for each slot that the kernel stores to
};

class KernelFacts {
 public:
  explicit KernelFacts(uint64_t most) : most_(most) {}
  // Compiles the kernel if it is new. Returns null once the maximum number of kernels is compiled. Throws if
  // compilation fails.
  const KernelFact* of(const tuff::KernelRequest& kernel, const tuff::KernelForm& form);
  uint64_t compiled() const { return facts_.size(); }
  uint64_t asked() const { return asked_; }
  uint64_t unknown() const { return unknown_; }  // requests that returned null

 private:
  uint64_t most_, asked_ = 0, unknown_ = 0;
  std::unordered_map<uint64_t, KernelFact> facts_;
};

}  // namespace tuff_test
