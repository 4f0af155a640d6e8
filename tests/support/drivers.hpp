// Which Vulkan drivers another process has: those of this machine, or Mesa's for processors twice, which is two
// devices.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

namespace tuff_test {

struct ProcessResult {
  int status = -1;  // of its exit; -1: it did not come to that
  std::string output;
  bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
};
std::ostream& operator<<(std::ostream& out, const ProcessResult& result);

// A program in this environment with these variables (NAME=value), and without those that choose devices.
ProcessResult run_process(const std::vector<std::string>& environment, const std::string& program,
                          const std::string& arguments);

// Mesa's driver for processors as two drivers, the only ones: files of a folder that goes with this.
class TwoProcessors {
 public:
  TwoProcessors();
  ~TwoProcessors();
  TwoProcessors(const TwoProcessors&) = delete;
  TwoProcessors& operator=(const TwoProcessors&) = delete;

  bool there() const { return !environment_.empty(); }  // whether the driver is installed
  const std::vector<std::string>& environment() const { return environment_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> environment_;
};

}  // namespace tuff_test
