// Registered operations: what is declared of one, and how a call becomes the launch of its kernel. Independent of the
// device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planning/dispatch.hpp"
#include "planning/operation.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/custom/size_formula.hpp"

namespace tuff {

// tuff_op_desc, with its texts copied.
struct ExtensionArgument {
  std::string name;
  int32_t kind = 0, dtype = 0, access = 0;
  std::string elements;  // empty: "1"
  double minimum = 0, maximum = 0;
};
struct ExtensionDeclaration {
  std::string name;
  std::vector<ExtensionArgument> arguments;
  std::optional<std::string> groups, invocations, flops;
  bool has_kernel = false;
};

// An argument of a call.
struct ExtensionValue {
  const Buffer* buffer = nullptr;
  bool has_buffer = false;  // a handle was given, perhaps of a buffer without memory
  int64_t integer = 0;
  double real = 0;
};

class Extension;

// A checked call.
struct ExtensionCall {
  const Extension* operation = nullptr;
  std::span<const ExtensionValue> values;
  std::array<const Buffer*, TUFF_KERNEL_MAX_BINDINGS> buffers;
  uint32_t buffer_count = 0;
  alignas(8) std::array<std::byte, 8 * TUFF_OP_MAX_ARGUMENTS> push;
  std::array<uint32_t, 3> groups;
  double flops = 0;
  bool empty = false;  // nothing is launched

  LaunchArgs launch() const;
};

class Extension {
 public:
  // Throws INVALID_ARGUMENT for a declaration that is not one.
  explicit Extension(ExtensionDeclaration declaration);
  Extension(const Extension&) = delete;
  Extension& operator=(const Extension&) = delete;

  const std::string& name() const { return name_; }
  size_t argument_count() const { return arguments_.size(); }
  bool is_buffer(size_t i) const { return arguments_[i].is_buffer; }
  const std::string& argument_name(size_t i) const { return arguments_[i].name; }
  uint32_t push_bytes() const { return push_bytes_; }
  const std::string& buffer_name(uint32_t binding) const { return arguments_[buffers_[binding]].name; }
  // "acme.saxpy(n: u32, x: read f32[n])"
  std::string signature() const;

  // Throws INVALID_ARGUMENT if the kernel is not the one that is declared.
  void check_kernel(const tuff_kernel_properties& kernel, bool tells_access) const;
  // For host functions: the interface that such a kernel would have.
  KernelInterface interface() const;

  // Checks a call, except for what depends on the device. workgroup_size: of the kernel; null for a host function,
  // which has no workgroups.
  void prepare(std::span<const ExtensionValue> values, const std::array<uint32_t, 3>* workgroup_size,
               ExtensionCall& call) const;
  CallText describe(const ExtensionCall& call) const;

 private:
  struct Argument {
    std::string name;
    bool is_buffer;
    int32_t dtype;
    Access access;
    std::optional<SizeFormula> elements;
    double minimum, maximum;
    bool ranged;
    uint32_t at;  // the binding, or the offset in the push constants
  };
  using Sizes = std::array<SizeValue, TUFF_OP_MAX_ARGUMENTS>;

  void add_sizes(std::string_view formulas, std::span<const std::string> names);
  void add_argument(const ExtensionArgument& argument, size_t i);
  SizeValue check_scalar(const Argument& argument, const ExtensionValue& value, std::byte* push) const;
  SizeValue check_buffer(const Argument& argument, const ExtensionValue& value) const;
  void check_sizes(const ExtensionCall& call, std::span<const SizeValue> sizes) const;
  void check_apart(const ExtensionCall& call) const;
  void set_groups(const std::array<uint32_t, 3>* workgroup_size, std::span<const SizeValue> sizes,
                  ExtensionCall& call) const;

  std::string name_;
  std::vector<Argument> arguments_;
  std::vector<size_t> buffers_;  // by binding, the argument
  uint32_t push_bytes_ = 0;
  bool by_groups_ = false;
  std::array<std::optional<SizeFormula>, 3> sizes_;  // of groups or invocations
  std::optional<SizeFormula> flops_;
};

}  // namespace tuff
