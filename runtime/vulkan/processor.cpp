#include "runtime/vulkan/processor.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "planning/log.hpp"
#include "planning/status.hpp"
#include "platform/platform.hpp"
#include "runtime/plugin/plugin.hpp"

namespace tuff {
namespace {

// Whoever forces a kernel wants to see it.
bool forces_kernels() {
  constexpr std::array<std::string_view, 1> kPrefixes = {"TUFF_"};
  const std::vector<std::string> ours = platform::environment_of(kPrefixes);
  return std::any_of(ours.begin(), ours.end(),
                     [](const std::string& text) { return text.find("_VARIANT=") != std::string::npos; });
}

std::unique_ptr<PluginDevice> open_plugin() {
  const std::vector<const Plugin*> all = plugins();
  const auto plugin = std::find_if(all.begin(), all.end(), [](const Plugin* one) { return one->name() == "cpu"; });
  if (plugin == all.end()) {
    const bool asked = platform::environment("TUFF_CPU_PLUGIN") == "on";
    log(asked ? TUFF_LOG_WARNING : TUFF_LOG_INFO, "there is no plug-in \"cpu\": the driver computes everything");
    return nullptr;
  }
  try {
    auto device = std::make_unique<PluginDevice>(**plugin);
    log(TUFF_LOG_INFO, "the plug-in \"cpu\" computes the calls that it knows: {}", (*plugin)->device().name);
    return device;
  } catch (const Error& error) {
    log(TUFF_LOG_WARNING, "{}; the driver computes everything", error.what());
    return nullptr;
  }
}

}  // namespace

Processor::Processor(bool device_is_one)
    : wanted_(device_is_one && platform::environment("TUFF_CPU_PLUGIN") != "off" && !forces_kernels()) {}

Processor::~Processor() = default;

bool Processor::available() {
  if (!wanted_) return false;
  if (!tried_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    if (!tried_.load(std::memory_order_relaxed)) {
      device_ = open_plugin();
      tried_.store(true, std::memory_order_release);
    }
  }
  return device_ != nullptr;
}

bool Processor::takes(const Operation& operation) const { return device_->accepts(operation); }

// What the plug-in began and could not finish, the reference computes, which needs no memory for it.
void Processor::compute(const Operation& operation) const {
  log(TUFF_LOG_DISPATCH, "{}: by the plug-in \"cpu\"", operation.info().name);
  if (!device_->compute(operation)) operation.compute();
}

}  // namespace tuff
