#include "support/drivers.hpp"

#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "support/harness.hpp"

namespace tuff_test {
namespace {

namespace fs = std::filesystem;

// The manifest of Mesa's CPU driver, whose name begins with "lvp". There may be another one for 32-bit programs, in
// any order.
fs::path cpu_driver() {
  std::vector<fs::path> files;
  for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
    const char* value = std::getenv(variable);
    std::istringstream list(value == nullptr ? "" : value);
    for (std::string file; std::getline(list, file, ':');) files.emplace_back(file);
  }
  for (const char* folder : {"/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"}) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) files.push_back(entry.path());
  }
  utsname system{};
  uname(&system);
  fs::path found;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    std::error_code none;
    if (name.rfind("lvp_icd", 0) != 0 || !fs::is_regular_file(file, none)) continue;
    if (found.empty() || name.find(system.machine) != std::string::npos) found = file;
  }
  return found;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const ProcessResult& result) {
  return out << "status " << result.status << ":\n" << result.output;
}

ProcessResult run_process(const std::vector<std::string>& environment, const std::string& program,
                          const std::string& arguments) {
  std::string command = "env -u TUFF_VISIBLE_DEVICES -u TUFF_DEVICE";
  for (const std::string& variable : environment) command += " '" + variable + "'";
  command += " '" + program + "' " + arguments + " 2>&1";
  ProcessResult result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char part[512];
  while (const size_t count = std::fread(part, 1, sizeof part, pipe)) result.output.append(part, count);
  const int state = pclose(pipe);
  result.status = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  return result;
}

TwoCpuDevices::TwoCpuDevices() {
  const fs::path driver = cpu_driver();
  if (driver.empty()) return;
  static int number = 0;
  folder_ = fs::temp_directory_path() / ("tuff_devices_" + std::to_string(getpid()) + "_" + std::to_string(number++));
  fs::create_directories(folder_);
  std::string list;
  for (const char* name : {"first.json", "second.json"}) {
    fs::copy_file(driver, folder_ / name, fs::copy_options::overwrite_existing);
    list += (list.empty() ? "" : ":") + (folder_ / name).string();
  }
  // Loaders before 1.3.207 read the second variable. VK_ADD_DRIVER_FILES is cleared so that the machine's other
  // drivers stay out.
  environment_ = {"VK_DRIVER_FILES=" + list, "VK_ICD_FILENAMES=" + list,
                  "VK_ADD_DRIVER_FILES=", std::string(kTwoDevices) + "=1", "TUFF_TEST_BACKENDS=vulkan"};
}

TwoCpuDevices::~TwoCpuDevices() {
  std::error_code none;
  if (!folder_.empty()) fs::remove_all(folder_, none);
}

}  // namespace tuff_test
