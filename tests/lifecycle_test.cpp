// Startup and shutdown: processes that leave everything open, load and unload the library, fork, and share the cache on
// disk. Each runs as a separate process (programs/child.c).
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "support/harness.hpp"

namespace tuff_test::lifecycle_test {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int status;
  std::string output;
};

Outcome run_program(const std::string& program, const std::string& mode, const std::string& backend,
                    const std::string& environment) {
  const std::string command =
      environment + " timeout 120 '" + program + "' '" TUFF_TEST_LIBRARY "' " + mode + " " + backend + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Outcome outcome{-1, ""};
  if (pipe == nullptr) return outcome;
  char part[512];
  while (const size_t bytes = std::fread(part, 1, sizeof part, pipe)) outcome.output.append(part, bytes);
  const int state = pclose(pipe);
  outcome.status = WIFEXITED(state) ? WEXITSTATUS(state) : 1000 + state;
  return outcome;
}

Outcome run_child(const std::string& mode, const std::string& backend, const std::string& environment = "") {
  return run_program(TUFF_TEST_CHILD, mode, backend, environment);
}

class Lifecycle : public OnBackend {
 protected:
  // Freed memory is overwritten, so that any later use of it does not find the old contents.
  void expect_late_calls_work(const std::string& mode) {
    const Outcome outcome = run_program(TUFF_TEST_LATE_CALLS, mode, GetParam(), "MALLOC_PERTURB_=181");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, "");
  }
  void expect_silent_success(const std::string& mode) {
    const Outcome outcome = run_child(mode, GetParam());
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, "") << "nothing is printed unless it is requested";
  }
};

TEST_P(Lifecycle, PrintsNothing) { expect_silent_success("quiet"); }
TEST_P(Lifecycle, ExitWithEverythingOpen) { expect_silent_success("exit_open"); }
TEST_P(Lifecycle, ExitFromAnotherThread) { expect_silent_success("exit_thread"); }
TEST_P(Lifecycle, EndWhileThreadsWork) { expect_silent_success("exit_busy"); }
TEST_P(Lifecycle, ExitAfterContextsThatEndedTooEarly) { expect_silent_success("exit_late"); }
TEST_P(Lifecycle, ExitInALogCallback) { expect_silent_success("exit_in_log"); }
TEST_P(Lifecycle, LoadAndUnloadAHundredTimes) { expect_silent_success("reload"); }
TEST_P(Lifecycle, LoadAndUnloadAHundredTimesWithoutAContext) { expect_silent_success("reload_idle"); }
TEST_P(Lifecycle, ContextsEndInAnyOrder) { expect_silent_success("any_order"); }
TEST_P(Lifecycle, ForkedChildIsTurnedAway) { expect_silent_success("fork"); }
TEST_P(Lifecycle, ForkWhileThreadsWork) { expect_silent_success("fork_busy"); }
TEST_P(Lifecycle, ForkWhileThreadsLog) { expect_silent_success("fork_logging"); }
TEST_P(Lifecycle, ForkBeforeTheFirstContext) { expect_silent_success("fork_first"); }
TEST_P(Lifecycle, CallsFromStaticDestructorsAndExitHandlers) {
  if (GetParam() == "vulkan" && std::string(properties_of(context()).vendor) == "NVIDIA") {
    GTEST_SKIP() << "NVIDIA's driver unloads a part of itself in its exit handler (docs/threads.md)";
  }
  expect_late_calls_work("statics");
}
TEST_P(Lifecycle, CallsFromDestructorsOfThreadLocalObjects) { expect_late_calls_work("thread_locals"); }
TEST_P(Lifecycle, CallsFromDestructorsOfKeys) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's own state of the thread is gone before the last keys, and it crashes";
#endif
  expect_late_calls_work("keys");
}
TEST_P(Lifecycle, FailingCallsOfAThousandThreads) { expect_late_calls_work("threads"); }
TUFF_ON_BACKENDS(Lifecycle);

// A cache folder that belongs to the test and is removed at its end.
class LifecycleCache : public testing::Test {
 protected:
  void SetUp() override {
    bool vulkan = false;
    for (const std::string& backend : backends()) vulkan = vulkan || backend == "vulkan";
    if (!vulkan) GTEST_SKIP() << "vulkan is not among TUFF_TEST_BACKENDS";
    std::string pattern = (fs::temp_directory_path() / "tuff-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    home_ = pattern;
  }
  void TearDown() override {
    if (!home_.empty()) fs::remove_all(home_);
  }
  struct Work {
    unsigned long long compiled = 0, cached = 0, pipelines = 0;
  };
  // Runs a process that works with this folder as its cache. Mesa's own cache, which also reports bad folders, is
  // disabled.
  Work work(const fs::path& home) {
    const Outcome outcome =
        run_child("work", "vulkan", "MESA_SHADER_CACHE_DISABLE=true XDG_CACHE_HOME='" + home.string() + "'");
    Work result;
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(std::sscanf(outcome.output.c_str(), "compiled %llu cached %llu pipelines %llu\n", &result.compiled,
                          &result.cached, &result.pipelines),
              3)
        << "more was printed than was requested: " << outcome.output;
    EXPECT_GT(result.pipelines, 0u);
    return result;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> result;
    for (const auto& entry : fs::directory_iterator(home_ / "tuff")) result.push_back(entry.path());
    return result;
  }

  fs::path home_;
};

TEST_F(LifecycleCache, SecondProcessCompilesNothing) {
  const Work first = work(home_);
  EXPECT_GT(first.compiled, 0u);
  EXPECT_FALSE(files().empty());
  for (int i = 0; i < 2; ++i) {
    const Work second = work(home_);
    EXPECT_EQ(second.compiled, 0u);
    EXPECT_EQ(second.cached, second.pipelines) << "every kernel's SPIR-V came from disk";
  }
}

// The exit handlers of drivers and compilers must not race with a thread that uses them.
TEST_F(LifecycleCache, ExitWhileKernelsAreCompiledAhead) {
  work(home_);
  for (int round = 0; round < 4; ++round) {
    if (round % 2 == 0) {
      for (const fs::path& file : files()) {
        if (file.filename().string().rfind("spirv-", 0) == 0) fs::remove(file);
      }
    }
    const Outcome outcome = run_child("exit_prewarming", "vulkan",
                                      "MESA_SHADER_CACHE_DISABLE=true XDG_CACHE_HOME='" + home_.string() + "'");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, "");
  }
}

// The thread that compiles ahead ends the process from within a callback.
TEST_F(LifecycleCache, ExitInACallbackOfTheThreadThatCompilesAhead) {
  work(home_);
  const Outcome outcome =
      run_child("exit_in_prewarm", "vulkan", "MESA_SHADER_CACHE_DISABLE=true XDG_CACHE_HOME='" + home_.string() + "'");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "");
}

TEST_F(LifecycleCache, FolderIsPrivate) {
  work(home_);
  struct stat info {};
  ASSERT_EQ(stat((home_ / "tuff").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  for (const fs::path& file : files()) {
    EXPECT_EQ(file.extension() == ".tmp", false) << file << " was left behind";
  }
}

TEST_F(LifecycleCache, DamageMeansCompilingAgain) {
  const Work whole = work(home_);
  const auto rewritten = [](const fs::path& file, auto change) {
    std::ifstream in(file, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    in.close();
    change(bytes);
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  using Change = void (*)(std::string&);
  const struct {
    const char* what;
    Change change;
  } damages[] = {
      {"empty", [](std::string& bytes) { bytes.clear(); }},
      {"one byte", [](std::string& bytes) { bytes.resize(1); }},
      {"half", [](std::string& bytes) { bytes.resize(bytes.size() / 2); }},
      {"longer", [](std::string& bytes) { bytes += "tail"; }},
      {"another magic", [](std::string& bytes) { bytes[0] = static_cast<char>(bytes[0] ^ 1); }},
      {"another header", [](std::string& bytes) { bytes[9] = static_cast<char>(bytes[9] ^ 0x40); }},
      {"a flipped bit at the end", [](std::string& bytes) { bytes.back() = static_cast<char>(bytes.back() ^ 0x10); }},
      {"zeros", [](std::string& bytes) { bytes.assign(bytes.size(), '\0'); }},
  };
  // Each round applies all of them, to different files: a round takes two processes.
  constexpr size_t kRounds = 3;
  for (size_t round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    size_t next = round * std::size(damages) / kRounds;
    for (const fs::path& file : files()) {
      SCOPED_TRACE(damages[next % std::size(damages)].what);
      rewritten(file, damages[next++ % std::size(damages)].change);
    }
    EXPECT_EQ(work(home_).compiled, whole.compiled);
    EXPECT_EQ(work(home_).compiled, 0u) << "what was wrong has been replaced";
  }
}

// Not damage but a different module with a matching checksum. Mesa's compiler crashes on some of these.
TEST_F(LifecycleCache, AlteredSpirvWithAChecksumToMatchIsCompiledAgain) {
  // Some kernels are needed once, to probe the driver; what is compiled without them is what is compiled again below.
  work(home_);
  for (const fs::path& file : files()) {
    if (file.filename().string().rfind("spirv-", 0) == 0) fs::remove(file);
  }
  const Work whole = work(home_);
  constexpr size_t kChecksum = 56, kHeader = 72, kModuleHeader = 20;
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    for (const fs::path& file : files()) {
      const std::string name = file.filename().string();
      if (name.rfind("spirv-", 0) != 0 && name.rfind("pipelines-", 0) != 0) continue;
      if (file.extension() == ".lock") continue;
      std::ifstream in(file, std::ios::binary);
      std::string bytes{std::istreambuf_iterator<char>(in), {}};
      in.close();
      ASSERT_GT(bytes.size(), kHeader);
      std::mt19937 random(static_cast<uint32_t>(round) + 1);
      for (size_t i = kHeader + kModuleHeader; i < bytes.size(); ++i) {
        if (round == 0 || random() % (1 << round) == 0) bytes[i] = static_cast<char>(random());
      }
      const uint64_t checksum = XXH3_64bits(bytes.data() + kHeader, bytes.size() - kHeader);
      std::memcpy(bytes.data() + kChecksum, &checksum, sizeof checksum);
      std::ofstream(file, std::ios::binary | std::ios::trunc)
          .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    EXPECT_EQ(work(home_).compiled, whole.compiled);
    EXPECT_EQ(work(home_).compiled, 0u) << "what was altered has been replaced";
  }
}

TEST_F(LifecycleCache, SwappedFilesAreNotedByTheirKey) {
  const auto shaders = [&] {
    std::vector<fs::path> found;
    for (const fs::path& file : files()) {
      if (file.filename().string().find("spirv") != std::string::npos) found.push_back(file);
    }
    return found;
  };
  // Some kernels are needed once, to probe the driver; without them, what remains is what work() needs.
  work(home_);
  for (const fs::path& file : shaders()) fs::remove(file);
  const Work whole = work(home_);
  const std::vector<fs::path> needed = shaders();
  ASSERT_GE(needed.size(), 2u);
  ASSERT_EQ(needed.size(), whole.compiled);
  fs::copy_file(needed[0], needed[1], fs::copy_options::overwrite_existing);
  EXPECT_EQ(work(home_).compiled, 1u) << "of " << whole.compiled;
}

TEST_F(LifecycleCache, NoFolderIsNoProblem) {
  EXPECT_GT(work("/proc/nowhere").compiled, 0u);
  std::ofstream(home_ / "file") << "not a folder";
  EXPECT_GT(work(home_ / "file").compiled, 0u);
}

// Other users could put anything into such a folder.
TEST_F(LifecycleCache, FolderThatOthersMayWriteToIsNotUsed) {
  fs::create_directory(home_ / "tuff");
  ASSERT_EQ(chmod((home_ / "tuff").c_str(), 0777), 0);
  EXPECT_GT(work(home_).compiled, 0u);
  EXPECT_TRUE(files().empty());
}

// A program in the current directory of the process is not the library's helper.
TEST_F(LifecycleCache, TheHelperIsTheOneBesideTheLibraryThatWasLoaded) {
  const fs::path program = home_ / "tuff-compile", trace = home_ / "trace";
  std::ofstream(program) << "#!/bin/sh\ntouch '" << trace.string() << "'\n";
  fs::permissions(program, fs::perms::owner_all);
  const Outcome outcome =
      run_child("untrusted_elsewhere", "vulkan",
                "TUFF_TEST_ELSEWHERE='" + home_.string() + "' XDG_CACHE_HOME='" + home_.string() + "'");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_FALSE(fs::exists(trace)) << "the program of the working directory was started";
}

// File capabilities give a program rights that its caller does not have, although the user ids are the same.
TEST_F(LifecycleCache, AProgramWithCapabilitiesDoesNotTrustItsEnvironment) {
  if (geteuid() != 0 || std::system("setpriv --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "giving capabilities to a file does not run on this device: it takes root, setcap and setpriv";
  }
  const fs::path program = home_ / "child", library = home_ / fs::path(TUFF_TEST_LIBRARY).filename();
  fs::copy_file(TUFF_TEST_CHILD, program);
  fs::copy_file(TUFF_TEST_LIBRARY, library);
  const auto all = fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read |
                   fs::perms::others_exec;
  for (const fs::path& path : {home_, program, library}) fs::permissions(path, all);
  const auto output = [&] {
    const std::string command =
        "cd / && TUFF_LOG=debug XDG_CACHE_HOME=/nowhere setpriv --reuid=65534 --regid=65534 "
        "--clear-groups '" +
        program.string() + "' '" + library.string() + "' work vulkan 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    char part[512];
    while (const size_t bytes = std::fread(part, 1, sizeof part, pipe)) text.append(part, bytes);
    EXPECT_EQ(pclose(pipe), 0) << text;
    return text;
  };
  EXPECT_NE(output().find("opened "), std::string::npos) << "TUFF_LOG=debug, by a program like any other";
  const std::string give = "setcap cap_net_raw+ep '" + program.string() + "' 2>/dev/null";
  if (std::system(give.c_str()) != 0) GTEST_SKIP() << "a file with capabilities does not run on this device";
  EXPECT_EQ(output().find("opened "), std::string::npos) << "TUFF_LOG was read";
}

TEST_F(LifecycleCache, ProcessesAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([this] { work(home_); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(work(home_).compiled, 0u);
}

}  // namespace
}  // namespace tuff_test::lifecycle_test
