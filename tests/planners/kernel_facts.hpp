// What the GLSL of a kernel says of its workgroups and operands, once compiled: no planner is asked.
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
  bool by_slots = false;  // the next says anything: operands are bound by descriptors
  uint32_t writes = 0;    // a bit for each slot that the kernel stores to
};

class KernelFacts {
 public:
  explicit KernelFacts(uint64_t most) : most_(most) {}
  // Compiles it if it is new; null where as many as wanted have been compiled. Throws where it does not compile.
  const KernelFact* of(const tuff::KernelRequest& kernel, const tuff::KernelForm& form);
  uint64_t compiled() const { return facts_.size(); }
  uint64_t asked() const { return asked_; }
  uint64_t unknown() const { return unknown_; }  // of those asked for

 private:
  uint64_t most_, asked_ = 0, unknown_ = 0;
  std::unordered_map<uint64_t, KernelFact> facts_;
};

}  // namespace tuff_test
