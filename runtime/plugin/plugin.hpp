// Plug-ins: shared libraries that compute operations on memory of the process (tuff/backend.h). The host backend runs
// their devices (runtime/host/): it does all that is not the computation of a call.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planning/operation.hpp"
#include "runtime/compute_backend.hpp"
#include "tuff/backend.h"

namespace tuff {

// A plug-in that was accepted. It exists until the process ends.
class Plugin {
 public:
  explicit Plugin(const tuff_backend& functions, const tuff_device_properties& device)
      : functions_(functions), device_(device) {}

  std::string_view name() const { return functions_.name; }
  const tuff_backend& functions() const { return functions_; }
  const tuff_device_properties& device() const { return device_; }

 private:
  tuff_backend functions_;
  tuff_device_properties device_;
};

// A plug-in's device, opened for a context.
class PluginDevice {
 public:
  explicit PluginDevice(const Plugin& plugin);
  ~PluginDevice();
  PluginDevice(const PluginDevice&) = delete;
  PluginDevice& operator=(const PluginDevice&) = delete;

  // Whether the plug-in has computed the call, whose arguments are checked.
  bool compute(const Operation& operation);
  // Whether it would. False, too, if an operand has no address in this process, or if the plug-in cannot be asked.
  bool accepts(const Operation& operation) const;

  bool allocates() const { return plugin_.functions().allocate != nullptr; }
  std::byte* allocate(uint64_t bytes, bool zeroed);  // null: no memory
  void release(std::byte* memory, uint64_t bytes) noexcept;

 private:
  const Plugin& plugin_;
  void* device_ = nullptr;
  std::unordered_map<const OperationInfo*, tuff_backend_function> functions_;
};

// Loads a plug-in. Throws, with the reason, if it is refused. One that is loaded already stays as it is.
void register_plugin(const std::string& path);
// The plug-ins, in the order of registration. The first call looks for those in the folder tuff-backends beside the
// library, in the order of their names.
std::vector<const Plugin*> plugins();
// The files of that folder that were refused, with the reasons; or the folder itself.
std::vector<std::string> plugin_refusals();

std::unique_ptr<ComputeBackend> make_plugin_backend(const Plugin& plugin);
// What its contexts report, without a context.
void plugin_properties(const Plugin& plugin, tuff_device_properties& properties);

}  // namespace tuff
