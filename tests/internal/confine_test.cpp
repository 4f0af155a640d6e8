// What a process that compiles untrusted source can no longer do. Each question is asked by a child process of its
// own.
#include "platform/confine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <thread>

namespace tuff::platform {
namespace {

// Which mechanisms this system has: without one, nothing that it would block is blocked, and the library says so.
struct Parts {
  bool landlock = false, seccomp = false;
};

// The exit status of a child that confines itself and then asks the question. With `parts`, only finds out which
// mechanisms there are.
int ask(Needs needs, const std::function<int()>& question, Parts* parts = nullptr) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string files = forbid_files(needs), calls = forbid_calls(needs);
    if (parts != nullptr) {
      ::_exit(files.find("no landlock") == std::string::npos ? (calls.rfind("no ", 0) == 0 ? 1 : 3)
                                                             : (calls.rfind("no ", 0) == 0 ? 0 : 2));
    }
    ::_exit(question());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  const int code = WEXITSTATUS(status);
  if (parts != nullptr) *parts = {(code & 1) != 0, (code & 2) != 0};
  return code;
}

class Confine : public testing::TestWithParam<Needs> {
 protected:
  void SetUp() override {
    ask(
        GetParam(), [] { return 0; }, &parts_);
  }
  // The deed returns true if it worked.
  void expect_refused(bool by_landlock, const std::function<bool()>& deed, const char* what) {
    const bool there = parts_.seccomp || (by_landlock && parts_.landlock);
    EXPECT_EQ(ask(GetParam(), [&] { return deed() ? 1 : 0; }), there ? 0 : 1) << what;
  }
  Parts parts_;
};

TEST_P(Confine, NoNetworks) {
  expect_refused(
      false, [] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; }, "TCP");
  expect_refused(
      false, [] { return ::socket(AF_UNIX, SOCK_STREAM, 0) >= 0; }, "Unix sockets");
  expect_refused(
      false,
      [] {
        int ends[2];
        return ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0;
      },
      "pairs");
}

TEST_P(Confine, NoPrograms) {
  // Exits with 1 if the program is started.
  expect_refused(
      true,
      [] {
        char* const words[] = {const_cast<char*>("/bin/sh"), const_cast<char*>("-c"), const_cast<char*>("exit 1"),
                               nullptr};
        ::execv(words[0], words);
        return false;
      },
      "execve");
  expect_refused(
      false,
      [] {
        const pid_t child = ::fork();
        if (child == 0) ::_exit(0);
        return child > 0;
      },
      "fork");
  // A compiler may not even call prctl, which gives -1.
  EXPECT_EQ(ask(GetParam(), [] { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); }),
            GetParam() == Needs::compiler ? 255 : 1);
}

TEST_P(Confine, NothingIsWritten) {
  std::string folder = "/tmp/tuff-confine-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/file", other = folder + "/other";
  ASSERT_EQ(::close(::open(file.c_str(), O_CREAT | O_WRONLY, 0600)), 0);
  expect_refused(
      true, [&] { return ::open(other.c_str(), O_CREAT | O_WRONLY, 0600) >= 0; }, "a new file");
  expect_refused(
      true, [&] { return ::open(file.c_str(), O_RDWR) >= 0; }, "a file");
  expect_refused(
      true, [&] { return ::unlink(file.c_str()) == 0; }, "unlink");
  ::close(::open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  // Landlock does not restrict modes.
  expect_refused(
      false, [&] { return ::chmod(file.c_str(), 0644) == 0; }, "chmod");
  const auto change_mode = [&] {
    constexpr long kFchmodat2 = 452;  // older headers lack it
    return ::syscall(kFchmodat2, AT_FDCWD, file.c_str(), 0644, 0) == 0;
  };
  if (change_mode()) expect_refused(false, change_mode, "fchmodat2");
  expect_refused(
      true, [&] { return ::mkdir(other.c_str(), 0700) == 0; }, "mkdir");
  ::rmdir(other.c_str());
  expect_refused(
      true, [&] { return ::rename(file.c_str(), other.c_str()) == 0; }, "rename");
  ::unlink(file.c_str());
  ::unlink(other.c_str());
  ::rmdir(folder.c_str());
}

TEST_P(Confine, OtherProcessesAreLeftAlone) {
  const pid_t parent = ::getpid();
  expect_refused(
      false, [=] { return ::kill(parent, 0) == 0; }, "kill");
  expect_refused(
      false, [=] { return ::syscall(SYS_tkill, parent, 0) == 0; }, "tkill");
  expect_refused(
      false, [=] { return ::syscall(SYS_tgkill, parent, parent, 0) == 0; }, "tgkill");
  expect_refused(
      false, [=] { return ::syscall(SYS_prlimit64, parent, RLIMIT_CORE, nullptr, nullptr) == 0; }, "prlimit");
  // Input that a terminal is made to have.
  expect_refused(
      false, [] { return ::ioctl(-1, TIOCSTI, "x") == 0 || errno == EBADF; }, "TIOCSTI");
}

TEST_P(Confine, WhatIsNeededWorks) {
  EXPECT_EQ(ask(GetParam(), [] { return static_cast<int>(::syscall(SYS_tgkill, ::getpid(), ::gettid(), 0)); }), 0)
      << "abort() needs it";
  EXPECT_EQ(ask(GetParam(),
                [] {
                  void* const memory = std::malloc(50'000'000);
                  static_cast<volatile char*>(memory)[40'000'000] = 1;
                  std::free(memory);
                  return ::write(-1, "", 1) == -1 ? 0 : 1;
                }),
            0);
  if (GetParam() == Needs::compiler) {
    expect_refused(
        true, [] { return ::open("/etc/hostname", O_RDONLY) >= 0 || ::open("/", O_RDONLY) >= 0; }, "reading");
    return;
  }
  // A driver reads files, starts threads and generates machine code.
  EXPECT_EQ(ask(GetParam(), [] { return ::open("/proc/self/maps", O_RDONLY) >= 0 ? 0 : 1; }), 0);
  EXPECT_EQ(ask(GetParam(), [] { return ::ioctl(-1, TCGETS, nullptr) == -1 && errno == EBADF ? 0 : 1; }), 0);
  EXPECT_EQ(ask(GetParam(),
                [] {
                  rlimit limit{};
                  return ::getrlimit(RLIMIT_CORE, &limit);
                }),
            0);
  EXPECT_EQ(ask(GetParam(),
                [] {
                  int seen = 1;
                  std::thread([&seen] { seen = 0; }).join();
                  return seen;
                }),
            0);
  EXPECT_EQ(ask(GetParam(),
                [] {
                  void* const memory =
                      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  return ::mprotect(memory, 4096, PROT_READ | PROT_EXEC);
                }),
            0);
}

std::string name_of(const testing::TestParamInfo<Needs>& info) {
  constexpr const char* kNames[] = {"compiler", "cpu_driver", "device_driver"};
  return kNames[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(, Confine, testing::Values(Needs::compiler, Needs::cpu_driver, Needs::device_driver), name_of);

// The test system has both mechanisms, as every Linux since 5.13 can.
TEST(ConfineHere, ThePartsAreNamed) {
  Parts parts;
  ask(
      Needs::compiler, [] { return 0; }, &parts);
  RecordProperty("landlock", parts.landlock ? "there" : "missing");
  RecordProperty("seccomp", parts.seccomp ? "there" : "missing");
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_TRUE(parts.seccomp || ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
      << "the kernel has seccomp, and it was not used";
#endif
}

}  // namespace
}  // namespace tuff::platform
