// Trials whose answers are kept on disk, and processes that start together and all need them. Each process is this
// program, with one test and a cache folder of its own.
#include "runtime/vulkan/probes.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "planning/status.hpp"
#include "runtime/vulkan/vulkan_backend.hpp"

namespace tuff::probes_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr int kProcesses = 8;
constexpr const char* kFolder = "TUFF_TEST_PROBES";  // where the processes meet, which is where the cache is
constexpr const char* kWay = "TUFF_TEST_PROBES_WAY";
enum Exit : int { kYes = 10, kNo = 11, kFailed = 12, kKilled = -SIGKILL };

fs::path folder() { return std::getenv(kFolder); }
std::string way() { return std::getenv(kWay); }

// One byte for each that came here.
void count(const char* what) {
  const int file = ::open((folder() / what).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, "x", 1) != 1) std::exit(1);
  ::close(file);
}
uint64_t counted(const fs::path& folder, const char* what) {
  std::error_code none;
  const uint64_t size = fs::file_size(folder / what, none);
  return none ? 0 : size;
}
// A machine that is busy is given some minutes.
bool wait_until(const std::function<bool()>& done) {
  for (int i = 0; i < 48'000 && !done(); ++i) std::this_thread::sleep_for(5ms);
  return done();
}

// --- a process -------------------------------------------------------------------------------------------------------

bool try_it(ProbeRun& run) {
  count("tries");
  std::this_thread::sleep_for(300ms);  // the others read the disk in the meantime
  if (way() == "killed") ::raise(SIGKILL);
  if (way() == "lost") fail(TUFF_ERROR_DEVICE_LOST, "the device was lost");
  if (way() == "refused") fail(TUFF_ERROR_UNSUPPORTED, "the driver does not accept the text");
  if (way() == "no memory") fail(TUFF_ERROR_OUT_OF_DEVICE_MEMORY, "no memory");
  if (way() == "no host memory") throw std::bad_alloc();
  const Buffer there = run.readable(64);
  run.recorder();
  run.finish();
  return there.host<std::byte>() != nullptr && way() != "does not hold";
}

const Probe kRisky = {"tried", 7,   "it holds", "it does not hold", [](const DeviceTraits&) { return true; },
                      try_it,  true};
const Probe kHarmless = {"found", 7, "it holds", "it does not hold", [](const DeviceTraits&) { return true; }, try_it};

// What each of the processes runs: not a test by itself.
TEST(ProbesProcess, Runs) {
  if (std::getenv(kFolder) == nullptr) return;
  int end = kFailed;
  {
    VulkanBackend backend;
    backend.init({});
    count("ready");
    if (!wait_until([] { return fs::exists(folder() / "go"); })) std::exit(1);
    const Probe& probe = way() == "harmless" ? kHarmless : kRisky;
    try {
      end = way() != "opens" && backend.streams().main().holds(probe) ? kYes : kNo;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "failed: %s\n", error.what());
    }
  }
  std::exit(end);
}

// --- the parent ------------------------------------------------------------------------------------------------------

class Probes : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tuff-probes-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    if (warm().empty()) make_warm();
    for (const auto& entry : fs::directory_iterator(warm())) {
      if (entry.is_directory()) fs::copy(entry.path(), folder_ / entry.path().filename(), fs::copy_options::recursive);
    }
  }
  static void TearDownTestSuite() {
    fs::remove_all(warm());
    warm().clear();
  }
  // A cache folder with all that opening a device measures and compiles.
  static fs::path& warm() {
    static fs::path folder;
    return folder;
  }
  void make_warm() {
    std::string pattern = (fs::temp_directory_path() / "tuff-probes-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    warm() = pattern;
    std::swap(folder_, warm());
    EXPECT_EQ(run(1, "opens"), std::vector<int>{kNo}) << logs();
    std::swap(folder_, warm());
  }
  void TearDown() override {
    for (const pid_t child : running_) ::kill(child, SIGKILL), ::waitpid(child, nullptr, 0);
    fs::remove_all(folder_);
  }

  // Starts the processes and lets them go at the same time.
  void start(int processes, const std::string& way, bool cached = true) {
    fs::remove(folder_ / "go");
    fs::remove(folder_ / "ready");
    std::vector<std::string> variables = {std::string(kFolder) + "=" + folder_.string(), std::string(kWay) + "=" + way,
                                          "TUFF_LOG=info"};
    variables.push_back(cached ? "XDG_CACHE_HOME=" + folder_.string() : "XDG_CACHE_HOME=");
    for (char** inherited = environ; *inherited != nullptr; ++inherited) {
      const std::string text = *inherited;
      const bool own = text.starts_with("XDG_CACHE_HOME=") || text.starts_with("TUFF_LOG=") ||
                       text.starts_with("TUFF_TEST_SAMPLE=") || text.starts_with("GTEST_") ||
                       (!cached && text.starts_with("HOME="));
      if (!own) variables.push_back(text);
    }
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    char name[] = "tuff_internal_tests", filter[] = "--gtest_filter=ProbesProcess.Runs";
    char* words[] = {name, filter, nullptr};
    for (int i = 0; i < processes; ++i) {
      const std::string log = (folder_ / ("log" + std::to_string(logs_++))).string();
      posix_spawn_file_actions_t actions;
      posix_spawn_file_actions_init(&actions);
      posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      posix_spawn_file_actions_adddup2(&actions, 1, 2);
      pid_t child = 0;
      ASSERT_EQ(posix_spawn(&child, "/proc/self/exe", &actions, nullptr, words, environment.data()), 0);
      posix_spawn_file_actions_destroy(&actions);
      running_.push_back(child);
    }
  }
  void go(int processes) {
    ASSERT_TRUE(wait_until([&] { return counted(folder_, "ready") == static_cast<uint64_t>(processes); })) << logs();
    std::ofstream(folder_ / "go") << "go";
  }
  // How the processes ended, in order: exit statuses, and signals as negative numbers.
  std::vector<int> ends() {
    std::vector<int> all;
    for (const pid_t child : running_) {
      int status = 0;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      all.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    }
    running_.clear();
    std::sort(all.begin(), all.end());
    return all;
  }
  std::vector<int> run(int processes, const std::string& way, bool cached = true) {
    start(processes, way, cached);
    if (!HasFatalFailure()) go(processes);
    return ends();
  }
  std::string logs() const {
    std::ostringstream all;
    for (int i = 0; i < logs_; ++i) {
      all << "log " << i << ":\n" << std::ifstream(folder_ / ("log" + std::to_string(i))).rdbuf() << '\n';
    }
    return all.str();
  }
  uint64_t tries() const { return counted(folder_, "tries"); }

  fs::path folder_;
  std::vector<pid_t> running_;
  int logs_ = 0;
};

// Before, the entry said no while the first of them tried, and the others believed it for as long as they ran.
TEST_F(Probes, EightProcessesAtOnceTryOnceAndAllKnow) {
  EXPECT_EQ(run(kProcesses, "holds"), std::vector<int>(kProcesses, kYes)) << logs();
  EXPECT_EQ(tries(), 1u);
  EXPECT_EQ(run(1, "holds"), std::vector<int>{kYes});
  EXPECT_EQ(tries(), 1u) << "the answer is on disk";
}

TEST_F(Probes, EightProcessesAtOnceLearnThatItDoesNotHold) {
  EXPECT_EQ(run(kProcesses, "does not hold"), std::vector<int>(kProcesses, kNo)) << logs();
  EXPECT_EQ(tries(), 1u);
}

// The system releases the lock of the one that dies, and the entry says that a trial had begun.
TEST_F(Probes, ATrialThatEndsItsProcessEndsNoOther) {
  std::vector<int> expected(kProcesses, kNo);
  expected.front() = kKilled;
  EXPECT_EQ(run(kProcesses, "killed"), expected) << logs();
  EXPECT_EQ(run(2, "holds"), std::vector<int>(2, kNo)) << "nor later ones";
  EXPECT_EQ(tries(), 1u);
}

TEST_F(Probes, ATrialThatLosesTheDeviceIsNotRepeated) {
  EXPECT_EQ(run(1, "lost"), std::vector<int>{kFailed});
  EXPECT_EQ(run(2, "holds"), std::vector<int>(2, kNo)) << logs();
  EXPECT_EQ(tries(), 1u);
}

// A GPU that is older than the kernel. The first process must open its context as later ones do.
TEST_F(Probes, ARefusedKernelIsAnAnswer) {
  EXPECT_EQ(run(2, "refused"), std::vector<int>(2, kNo)) << logs();
  EXPECT_EQ(tries(), 1u);
}

// Other processes may hold the memory for now.
TEST_F(Probes, ALackOfMemoryIsNoAnswer) {
  EXPECT_EQ(run(1, "no memory"), std::vector<int>{kFailed});
  EXPECT_EQ(run(1, "no host memory"), std::vector<int>{kFailed});
  EXPECT_EQ(run(2, "holds"), std::vector<int>(2, kYes)) << logs();
  EXPECT_EQ(tries(), 3u);
}

TEST_F(Probes, WithoutACacheEachProcessTries) {
  EXPECT_EQ(run(2, "holds", false), std::vector<int>(2, kYes)) << logs();
  EXPECT_EQ(tries(), 2u);
}

TEST_F(Probes, HarmlessTrialsAreKept) {
  EXPECT_EQ(run(1, "harmless"), std::vector<int>{kYes});
  EXPECT_EQ(run(1, "harmless"), std::vector<int>{kYes});
  EXPECT_EQ(tries(), 1u);
}

// While they measure how to bind operands, each of them would disturb the others, and the last answer would stay.
TEST_F(Probes, EightProcessesAtOnceMeasureOnce) {
  for (const auto& entry : fs::directory_iterator(folder_)) fs::remove_all(entry.path());
  EXPECT_EQ(run(kProcesses, "holds"), std::vector<int>(kProcesses, kYes));
  const std::string all = logs();
  int measured = 0;
  for (size_t at = 0; (at = all.find("binding: tiles take", at)) != std::string::npos; ++at) ++measured;
  EXPECT_LE(measured, 2) << all;  // once by each of the two forms; none where the driver has only one
}

}  // namespace
}  // namespace tuff::probes_test
