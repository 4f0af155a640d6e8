// The kernels that contexts of a device have used, stored next to the pipelines so that a later process can compile
// them in advance. Each is a line of text: name, defines, constants and binding method.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planning/recorder.hpp"
#include "runtime/vulkan/disk_cache.hpp"

namespace tuff {

struct ListedKernel {
  KernelRequest kernel;
  KernelForm form;
  std::string line;
};

// The kernel's line; empty if its source is not one of Tuff's own, or is generated in part (KernelBody). Kernels with equal lines are the same.
std::string kernel_line(const KernelRequest& kernel, const KernelForm& form);

class KernelList {
 public:
  static constexpr uint32_t kMaxKernels = 1024, kMaxBytes = 1 << 20;
  static constexpr int64_t kMaxDays = 60;  // kernels unused for this long are dropped

  // `device` identifies the device, regardless of its driver.
  KernelList(const DiskCache& beside, std::string_view device);

  // Marks the kernel as used today. It is not listed if there is no memory for it.
  void add(const std::string& line) noexcept;
  // Merges what was added into the list on disk. Does nothing if the list already has it.
  void save();

  // The kernels on disk whose sources this build of the library has, most recent first. Names in the result live as
  // long as this object.
  std::vector<ListedKernel> load();

 private:
  using Days = std::map<std::string, int64_t, std::less<>>;  // line → last use, in days since 1970
  Days read() const;

  DiskCache disk_;
  CacheKey key_;
  std::set<std::string, std::less<>> asked_;
  std::set<std::string, std::less<>> known_;  // on disk with today's date
  std::set<std::string, std::less<>> names_;
};

}  // namespace tuff
