// The Vulkan drivers that a child process sees: those of this machine, or Mesa's CPU driver twice, which gives two
// devices.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

namespace tuff_test {

struct ProcessResult {
  int status = -1;  // exit status; -1: it did not exit normally
  std::string output;
  bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
};
std::ostream& operator<<(std::ostream& out, const ProcessResult& result);

// Runs a program with these variables (NAME=value) added to the environment, and without those that choose devices.
ProcessResult run_process(const std::vector<std::string>& environment, const std::string& program,
                          const std::string& arguments);

// Makes Mesa's CPU driver appear as two drivers, and the only ones, by files in a folder that is removed with this
// object.
class TwoCpuDevices {
 public:
  TwoCpuDevices();
  ~TwoCpuDevices();
  TwoCpuDevices(const TwoCpuDevices&) = delete;
  TwoCpuDevices& operator=(const TwoCpuDevices&) = delete;

  bool there() const { return !environment_.empty(); }  // whether the driver is installed
  const std::vector<std::string>& environment() const { return environment_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> environment_;
};

}  // namespace tuff_test
