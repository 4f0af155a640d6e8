// The devices selected by TUFF_VISIBLE_DEVICES and TUFF_DEVICE, as seen by another process (programs/devices.cpp) that
// is started in such an environment; and two devices at once: this machine's GPUs if it has two, otherwise Mesa's CPU
// driver twice.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "support/drivers.hpp"
#include "support/harness.hpp"

namespace tuff_test::devices_test {
namespace {

namespace fs = std::filesystem;

// What `devices list` prints for one device.
struct Listed {
  std::string uuid, type, name;
};

std::vector<Listed> listed(const ProcessResult& result) {
  std::vector<Listed> devices;
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, index;
    Listed device;
    if (!(words >> word >> index >> device.uuid >> device.type) || word != "device") continue;
    std::getline(words >> std::ws, device.name);
    devices.push_back(device);
  }
  return devices;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The devices that other processes see in this environment.
class DevicesElsewhere : public testing::Test {
 protected:
  ProcessResult run(std::vector<std::string> more, const std::string& arguments) {
    more.insert(more.begin(), environment_.begin(), environment_.end());
    return run_process(more, TUFF_TEST_DEVICES, arguments);
  }
  ProcessResult with(const std::string& visible, const std::string& arguments) {
    return run({"TUFF_VISIBLE_DEVICES=" + visible}, arguments);
  }
  void look() {
    const ProcessResult result = run({}, "list");
    ASSERT_EQ(result.status, 0) << result;
    all_ = listed(result);
    ASSERT_FALSE(all_.empty()) << result;
  }
  // The number of devices with this in their name.
  size_t named(const std::string& part) const {
    return static_cast<size_t>(std::count_if(all_.begin(), all_.end(), [&](const Listed& device) {
      return lower(device.name).find(lower(part)) != std::string::npos;
    }));
  }
  // The shortest prefix of the first UUID, from four digits on, that no other has; all of it if another is the same.
  std::string beginning_of_uuid() const {
    const std::string& first = all_[0].uuid;
    for (size_t length = 4; length < first.size(); ++length) {
      const std::string part = first.substr(0, length);
      const bool others = std::any_of(all_.begin() + 1, all_.end(),
                                      [&](const Listed& device) { return device.uuid.rfind(part, 0) == 0; });
      // Digits alone are a device's number.
      const bool number = part.find_first_not_of("0123456789") == std::string::npos;
      if (!others && !number && part.back() != '-') return part;
    }
    return first;
  }
  bool same_uuids() const {
    return std::any_of(all_.begin() + 1, all_.end(), [&](const Listed& device) { return device.uuid == all_[0].uuid; });
  }

  std::vector<std::string> environment_;
  std::vector<Listed> all_;
};

// The devices of this machine, however many.
class DevicesVisible : public DevicesElsewhere {
 protected:
  void SetUp() override { look(); }
};

TEST_F(DevicesVisible, ByIndexUuidAndName) {
  const std::string name = all_[0].name, part = name.substr(2, 4);
  std::vector<std::pair<std::string, size_t>> entries = {
      {"0", 1}, {" 0 ", 1}, {"0,0", 1}, {name, named(name)}, {"0," + part, named(part)}};
  if (!same_uuids()) entries.insert(entries.end(), {{all_[0].uuid, 1}, {beginning_of_uuid(), 1}});
  for (const auto& [entry, count] : entries) {
    const ProcessResult result = with(entry, "list");
    EXPECT_EQ(result.status, 0) << entry << result;
    const std::vector<Listed> seen = listed(result);
    ASSERT_EQ(seen.size(), count) << entry << result;
    EXPECT_EQ(seen[0].name, name) << entry << result;
    if (!same_uuids() && entry != name) {
      EXPECT_EQ(seen[0].uuid, all_[0].uuid) << entry << result;
    }
  }
  if (same_uuids()) return;
  EXPECT_TRUE(run({}, "open " + all_[0].uuid).says("opened vulkan " + all_[0].uuid + " " + name));
  EXPECT_TRUE(run({"TUFF_DEVICE=" + beginning_of_uuid()}, "open").says("opened vulkan " + all_[0].uuid + " " + name));
}

TEST_F(DevicesVisible, NoneAtAll) {
  const ProcessResult result = with("", "list");
  EXPECT_EQ(result.status, 0) << result;
  EXPECT_EQ(listed(result).size(), 0u) << result;
  for (size_t i = 0; i < all_.size(); ++i) {
    EXPECT_TRUE(result.says(all_[i].name + " (number " + std::to_string(i) + " of all) is hidden")) << result;
  }
  const ProcessResult open = with("", "open");
  EXPECT_TRUE(open.says("error TUFF_ERROR_NO_DEVICE tuff_context_create: ")) << open;
  EXPECT_TRUE(open.says("hidden: TUFF_VISIBLE_DEVICES is \"\"")) << open;
  EXPECT_TRUE(with("", "auto").says("opened host ")) << "as where there is no device";
}

TEST_F(DevicesVisible, WhatMatchesNothingIsAnError) {
  const std::string available = "available: 0 \"" + all_[0].name + "\"", many = std::to_string(all_.size());
  const std::pair<std::string, std::string> rows[] = {
      {"teapot", "no device is named like \"teapot\""},
      {"0," + many, "no device is number \"" + many + "\""},
      {"-1", "no device is named like \"-1\""},
      {"ffffffff-ffff-ffff-ffff-ffffffffffff", "no device is named like \"ffffffff-ffff-ffff-ffff-ffffffffffff\""},
      {"0,,0", "entry 2 is empty"},
      {"0,", "entry 2 is empty"}};
  for (const auto& [list, problem] : rows) {
    for (const char* command : {"list", "open", "auto"}) {
      const ProcessResult result = with(list, command);
      EXPECT_EQ(result.status, 1) << list << result;
      EXPECT_TRUE(result.says("error TUFF_ERROR_INVALID_ARGUMENT tuff_")) << list << result;
      EXPECT_TRUE(result.says("TUFF_VISIBLE_DEVICES: " + problem)) << list << result;
      EXPECT_TRUE(result.says(available)) << list << result;
      if (list != "teapot") break;
    }
  }
}

// Other environment variables, with invalid values.
class DevicesEnvironment : public DevicesElsewhere {};

TEST_F(DevicesEnvironment, WhatAVariableCannotBeIsWarnedOf) {
  const std::pair<const char*, const char*> rows[] = {
      {"TUFF_CACHE_BYTES=abc", "TUFF_CACHE_BYTES is \"abc\", needs a number"},
      {"TUFF_TRANSFER=x", "TUFF_TRANSFER is \"x\", needs staged"},
      {"TUFF_BINDING=x", "TUFF_BINDING is \"x\", needs descriptors or addresses"},
      {"TUFF_PREWARM=yes", "TUFF_PREWARM is \"yes\", needs 0 or 1"},
      {"TUFF_POOL_VARIANT=x", "TUFF_POOL_VARIANT is \"x\", needs gpu or cpu"}};
  for (const auto& [variable, warning] : rows) {
    const ProcessResult told = run({"TUFF_LOG=warning", variable}, "open");
    EXPECT_EQ(told.status, 0) << told;
    EXPECT_TRUE(told.says(std::string("tuff warning: in the environment, ") + warning)) << variable << told;
    const ProcessResult silent = run({"TUFF_LOG=", variable}, "open");
    EXPECT_EQ(silent.status, 0) << silent;
    EXPECT_FALSE(silent.says("warning")) << "nobody asked" << silent;
    EXPECT_FALSE(run({"TUFF_LOG=error", variable}, "open").says("warning"));
  }
}

TEST_F(DevicesEnvironment, ALogOfNoLevelSaysSo) {
  for (const char* level : {"nonsense", "WARNING", "3"}) {
    const ProcessResult result = run({std::string("TUFF_LOG=") + level}, "open");
    EXPECT_EQ(result.status, 0) << result;
    EXPECT_TRUE(result.says("tuff warning: in the environment, TUFF_LOG is \"" + std::string(level) +
                            "\", needs off, error, warning"))
        << result;
  }
  for (const char* level : {"off", "error", "warning", ""}) {
    EXPECT_FALSE(run({std::string("TUFF_LOG=") + level}, "open").says("TUFF_LOG")) << level;
  }
}

// At least two devices; these tests use the first two.
class DevicesTwo : public DevicesElsewhere {
 protected:
  void SetUp() override {
    if (gpu_count() < 2) {
      if (!cpu_devices_.there()) GTEST_SKIP() << "not run: at most one GPU, and Mesa's CPU driver is not installed";
      environment_ = cpu_devices_.environment();
    }
    look();
    ASSERT_GE(all_.size(), 2u);
    if (!gpus()) {
      ASSERT_EQ(all_.size(), 2u) << "other drivers than those that were named";
    }
  }
  bool gpus() const { return environment_.empty(); }

  TwoCpuDevices cpu_devices_;
};

TEST_F(DevicesTwo, AreChosenAmong) {
  const std::string name = all_[0].name;
  EXPECT_EQ(listed(with("1,0", "list")).size(), 2u) << with("1,0", "list");
  EXPECT_EQ(listed(with(name, "list")).size(), named(name)) << with(name, "list");
  EXPECT_EQ(listed(with("1," + name, "list")).size(), std::max<size_t>(named(name), 2)) << with("1," + name, "list");
  const std::vector<Listed> swapped = listed(with("1,0", "list"));
  ASSERT_EQ(swapped.size(), 2u);
  EXPECT_EQ(swapped[0].uuid, all_[1].uuid);
  EXPECT_EQ(swapped[1].uuid, all_[0].uuid);

  const ProcessResult second = with("1", "list");
  ASSERT_EQ(listed(second).size(), 1u) << second;
  EXPECT_EQ(listed(second)[0].uuid, all_[1].uuid) << second;
  EXPECT_TRUE(second.says("(number 0 of all) is hidden: TUFF_VISIBLE_DEVICES is \"1\"")) << second;
  EXPECT_TRUE(with("1", "open 0").says("opened vulkan " + all_[1].uuid)) << "indices count what is left";
  const ProcessResult beyond = with("1", "open 1");
  EXPECT_TRUE(beyond.says("TUFF_ERROR_NO_DEVICE tuff_context_create: no device is number \"1\"")) << beyond;
  EXPECT_TRUE(beyond.says("is hidden")) << beyond;
}

TEST_F(DevicesTwo, AreOpenedByIndexAndUuid) {
  for (size_t i = 0; i < 2; ++i) {
    const std::string opened = "opened vulkan " + all_[i].uuid + " " + all_[i].name, index = std::to_string(i);
    EXPECT_TRUE(run({}, "open " + index).says(opened)) << i;
    EXPECT_TRUE(run({"TUFF_DEVICE=" + index}, "open").says(opened)) << i;
    if (all_[0].uuid == all_[1].uuid) continue;  // Mesa's CPU devices share one
    EXPECT_TRUE(run({}, "open " + all_[i].uuid).says(opened)) << i;
    EXPECT_TRUE(run({"TUFF_VISIBLE_DEVICES=" + all_[i].uuid}, "open").says(opened)) << i;
  }
  if (gpus()) {
    EXPECT_NE(all_[0].uuid, all_[1].uuid);
    EXPECT_NE(all_[0].type, "cpu");
    EXPECT_NE(all_[1].type, "cpu");
  }
}

TEST_F(DevicesTwo, WorkAtOnceAndCopyToEachOther) {
  for (const char* order : {"0,1", "1,0"}) {
    const ProcessResult result = with(order, "both");
    EXPECT_EQ(result.status, 0) << result;
    EXPECT_TRUE(result.says("right\n")) << result;
  }
}

// Runs this program's tests of two devices (peer_test.cpp, sharing_test.cpp) in a process that sees two, if this one
// does not.
TEST_F(DevicesTwo, OfCpuDevicesForTheOtherTests) {
  if (gpus() || testing::Test::HasFailure()) return;  // they run in this process
  ASSERT_EQ(std::getenv(kTwoDevices), nullptr);
  const ProcessResult result =
      run_process(environment_, fs::read_symlink("/proc/self/exe").string(),
                  "--gtest_filter='On/DevicesPeer.*/first_to_second:On/DevicesPeer.*/second_to_first:"
                  "On/ThreadsMany.EachWithItsOwnContext/vulkan'");
  EXPECT_EQ(result.status, 0) << result;
  EXPECT_TRUE(result.says("[  PASSED  ] ")) << result;
  EXPECT_TRUE(result.says("from 2 test suites ran")) << result;
  EXPECT_FALSE(result.says("not run here")) << result;
}

}  // namespace
}  // namespace tuff_test::devices_test
