// Which kernels the contexts of a device have asked for, kept beside the pipelines so that a later process can compile
// them before it is asked: names, defines, constants and the way of binding, a line of text for each kernel.
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

// The line; empty where the kernel's source is none of Tuff's own. Two kernels with the same line are the same.
std::string kernel_line(const KernelRequest& kernel, const KernelForm& form);

class KernelList {
 public:
  static constexpr uint32_t kMaxKernels = 1024, kMaxBytes = 1 << 20;
  static constexpr int64_t kMaxDays = 60;  // what was not asked for in that time is forgotten

  // `device`: what the list is for, whatever its driver.
  KernelList(const DiskCache& beside, std::string_view device);

  // Asked for today. Where there is no memory to remember it, it is not on the list.
  void add(const std::string& line) noexcept;
  // Brings what was added to the list on disk as it is by now. Does nothing where that knows it already.
  void save();

  // What the list on disk holds and this build of the library has the sources of, the latest first. The names in it
  // live as long as this object.
  std::vector<ListedKernel> load();

 private:
  using Days = std::map<std::string, int64_t, std::less<>>;  // line → when it was last asked for, in days since 1970
  Days read() const;

  DiskCache disk_;
  CacheKey key_;
  std::set<std::string, std::less<>> asked_;
  std::set<std::string, std::less<>> known_;  // the disk has them, of today
  std::set<std::string, std::less<>> names_;
};

}  // namespace tuff
