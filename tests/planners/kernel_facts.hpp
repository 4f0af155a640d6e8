// Facts about a kernel's workgroups and operands, derived from its compiled GLSL and not from the planners.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "planning/dispatch.hpp"
#include "planning/kernel_request.hpp"

namespace tuff_test {

struct KernelFact {
  std::array<uint32_t, 3> workgroup{};
  uint64_t shared_bytes = 0;
  bool by_slots = false;  // operands are bound by descriptors, so that `writes` is valid
  uint32_t writes = 0;    // one bit for each slot that the kernel stores to
  // With KernelFacts(converges): the number of subgroup operations and barriers, of those that only some invocations
  // reach, and of those that depend on subgroups in which lanes meet again; see convergence.hpp.
  uint32_t operations = 0, diverging = 0, by_subgroup = 0;
};

class KernelFacts {
 public:
  // file: holds the facts of kernels that were compiled before, by their GLSL and constants; empty: none.
  // converges: also finds whether invocations reach subgroup operations and barriers together, which takes the kernel's
  // optimised form.
  KernelFacts(uint64_t most, std::string file, bool converges);
  ~KernelFacts();  // adds to the file
  KernelFacts(const KernelFacts&) = delete;
  KernelFacts& operator=(const KernelFacts&) = delete;
  // Compiles the kernel if it is new and not in the file. Returns null once the maximum number of kernels is compiled.
  // Throws if compilation fails.
  const KernelFact* of(const tuff::KernelRequest& kernel, const tuff::KernelForm& form);
  // Of the kernels with operations that invocations have to reach together, by shader: the most that one has of each
  // kind.
  const std::map<std::string, KernelFact>& converging() const { return converging_; }
  uint64_t known() const { return facts_.size(); }
  uint64_t compiled() const { return compiled_; }
  uint64_t asked() const { return asked_; }
  uint64_t unknown() const { return unknown_; }  // requests that returned null

 private:
  bool converges_;
  uint64_t most_, compiled_ = 0, asked_ = 0, unknown_ = 0;
  std::string file_;
  std::map<std::string, KernelFact> converging_;
  std::unordered_map<uint64_t, KernelFact> facts_;   // by the addresses of names and the values of a request
  std::unordered_map<uint64_t, KernelFact> stored_;  // by texts
};

}  // namespace tuff_test
