// Which devices there are, as TUFF_VISIBLE_DEVICES and TUFF_DEVICE have it, seen by another process
// (programs/devices.cpp) that is started in such an environment; and two devices at once, where Mesa's driver for
// processors can be two.
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "support/harness.hpp"

namespace tuff_test {
namespace {

namespace fs = std::filesystem;

struct Result {
  int status = -1;
  std::string output;
  bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
  size_t devices() const {
    size_t count = 0;
    for (size_t at = output.find("device "); at != std::string::npos; at = output.find("\ndevice ", at + 1)) ++count;
    return count;
  }
};

std::ostream& operator<<(std::ostream& out, const Result& result) {
  return out << "status " << result.status << ":\n" << result.output;
}

// The environment as NAME=value.
Result run(const std::vector<std::string>& environment, const std::string& arguments) {
  std::string command = "env";
  for (const std::string& variable : environment) command += " '" + variable + "'";
  command += " '" TUFF_TEST_DEVICES "' " + arguments;
  Result result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char part[512];
  while (const size_t count = std::fread(part, 1, sizeof part, pipe)) result.output.append(part, count);
  const int state = pclose(pipe);
  result.status = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  return result;
}

std::string uuid_of(const tuff_device_properties& device) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02X", i == 4 || i == 6 ? "-" : "", device.uuid[i]);
    text += digits;
  }
  return text;
}

class DevicesVisible : public testing::Test {
 protected:
  void SetUp() override {
    uint32_t count = 0;
    ASSERT_OK(tuff_device_count(&count));
    if (count != 1) GTEST_SKIP() << "not run: written for a machine of one device, this has " << count;
    first_.struct_size = sizeof first_;
    ASSERT_OK(tuff_device_info(0, &first_));
  }
  tuff_device_properties first_{};
};

TEST_F(DevicesVisible, ByIndexUuidAndName) {
  const std::string uuid = uuid_of(first_), name(first_.name);
  const std::string entries[] = {"0", " 0 ", "0,0", uuid, uuid.substr(0, 9), name, "0," + name.substr(2, 5)};
  for (const std::string& entry : entries) {
    const Result result = run({"TUFF_VISIBLE_DEVICES=" + entry}, "list");
    EXPECT_EQ(result.status, 0) << entry << result;
    EXPECT_EQ(result.devices(), 1u) << entry << result;
    EXPECT_TRUE(result.says("device 0 " + name)) << entry << result;
  }
  EXPECT_TRUE(run({}, "open " + uuid).says("opened vulkan " + name));
  EXPECT_TRUE(run({"TUFF_DEVICE=" + uuid.substr(0, 8)}, "open").says("opened vulkan " + name));
}

TEST_F(DevicesVisible, NoneAtAll) {
  const std::vector<std::string> none = {"TUFF_VISIBLE_DEVICES="};
  const Result result = run(none, "list");
  EXPECT_EQ(result.status, 0) << result;
  EXPECT_EQ(result.devices(), 0u) << result;
  EXPECT_TRUE(result.says("refusals\n" + std::string(first_.name) + " (number 0 of all) is hidden")) << result;
  const Result open = run(none, "open");
  EXPECT_TRUE(open.says("error TUFF_ERROR_NO_DEVICE tuff_context_create: ")) << open;
  EXPECT_TRUE(open.says("hidden: TUFF_VISIBLE_DEVICES is \"\"")) << open;
  EXPECT_TRUE(run(none, "auto").says("opened host ")) << "as where there is no device";
}

TEST_F(DevicesVisible, WhatMatchesNothingIsAnError) {
  const std::string there_is = "there is 0 \"" + std::string(first_.name) + "\"";
  const std::pair<const char*, const char*> rows[] = {{"teapot", "no device is named like \"teapot\""},
                                                      {"0,9", "no device is number \"9\""},
                                                      {"-1", "no device is named like \"-1\""},
                                                      {"ffffffff-ffff", "no device is named like \"ffffffff-ffff\""},
                                                      {"0,,0", "entry 2 is empty"},
                                                      {"0,", "entry 2 is empty"}};
  for (const auto& [list, problem] : rows) {
    for (const char* command : {"list", "open", "auto"}) {
      const Result result = run({std::string("TUFF_VISIBLE_DEVICES=") + list}, command);
      EXPECT_EQ(result.status, 1) << list << result;
      EXPECT_TRUE(result.says("error TUFF_ERROR_INVALID_ARGUMENT tuff_")) << list << result;
      EXPECT_TRUE(result.says(std::string("TUFF_VISIBLE_DEVICES: ") + problem)) << list << result;
      EXPECT_TRUE(result.says(there_is)) << list << result;
      if (std::string(list) != "teapot") break;
    }
  }
}

// Mesa's driver for processors under two names: two devices.
class DevicesTwo : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path driver = driver_file();
    if (driver.empty()) GTEST_SKIP() << "not run: Mesa's driver for processors is not there";
    folder_ = fs::temp_directory_path() / ("tuff_devices_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    std::string list;
    for (const char* name : {"first.json", "second.json"}) {
      fs::copy_file(driver, folder_ / name, fs::copy_options::overwrite_existing);
      list += (list.empty() ? "" : ":") + (folder_ / name).string();
    }
    // The second is what loaders before 1.3.207 read.
    environment_ = {"VK_DRIVER_FILES=" + list, "VK_ICD_FILENAMES=" + list};
    const Result result = run(environment_, "list");
    ASSERT_EQ(result.status, 0) << result;
    if (result.devices() != 2) GTEST_SKIP() << "not run: this loader makes " << result.devices() << " devices of it";
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  static fs::path driver_file() {
    for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
      const char* value = std::getenv(variable);
      if (value == nullptr || *value == '\0') continue;
      return std::string(value).find(':') == std::string::npos && fs::exists(value) ? fs::path(value) : fs::path();
    }
    // Its file has the machine in its name; beside it may be one for programs of 32 bits, in any order.
    utsname system{};
    uname(&system);
    fs::path found;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator("/usr/share/vulkan/icd.d", none)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("lvp_icd", 0) != 0) continue;
      if (found.empty() || name.find(system.machine) != std::string::npos) found = entry.path();
    }
    return found;
  }

  Result with(const std::string& visible, const std::string& command) {
    std::vector<std::string> environment = environment_;
    environment.push_back("TUFF_VISIBLE_DEVICES=" + visible);
    return run(environment, command);
  }

  std::vector<std::string> environment_;
  fs::path folder_;
};

TEST_F(DevicesTwo, AreChosenAmong) {
  tuff_device_properties first{};
  first.struct_size = sizeof first;
  ASSERT_OK(tuff_device_info(0, &first));
  const std::string name = first.name;
  for (const std::string& both : {std::string("1,0"), name, "0," + name}) {
    EXPECT_EQ(with(both, "list").devices(), 2u) << with(both, "list");
  }
  const Result second = with("1", "list");
  EXPECT_EQ(second.devices(), 1u) << second;
  EXPECT_TRUE(second.says("(number 0 of all) is hidden: TUFF_VISIBLE_DEVICES is \"1\"")) << second;
  EXPECT_TRUE(with("1", "open 0").says("opened vulkan ")) << "indices count what is left";
  const Result beyond = with("1", "open 1");
  EXPECT_TRUE(beyond.says("TUFF_ERROR_NO_DEVICE tuff_context_create: no device is number \"1\"")) << beyond;
  EXPECT_TRUE(beyond.says("is hidden")) << beyond;
}

TEST_F(DevicesTwo, WorkAtOnceAndCopyToEachOther) {
  const Result result = run(environment_, "both");
  EXPECT_EQ(result.status, 0) << result;
  EXPECT_TRUE(result.says("right\n")) << result;
}

}  // namespace
}  // namespace tuff_test
