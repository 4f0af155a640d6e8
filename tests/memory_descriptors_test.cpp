// File descriptors other than memory given to tuff_buffer_import_fd(): those that a driver would wait on forever, read
// from, or map beyond their end.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "support/harness.hpp"

namespace tuff_test::memory_descriptors_test {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) { EXPECT_GE(value, 0) << std::strerror(errno); }
  ~Descriptor() { close(value_); }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

class MemoryDescriptors : public testing::Test {
 protected:
  void SetUp() override {
    bool there = false;
    for (const std::string& backend : backends()) there = there || backend == "vulkan";
    if (!there) GTEST_SKIP() << "of the Vulkan backend";
    int32_t yes = 0;
    ASSERT_OK(tuff_supports(context(), "memory_fd", &yes));
    if (yes == 0) GTEST_SKIP() << "not run: the driver has no VK_KHR_external_memory_fd for buffers";
    tuff_alloc_desc desc{};
    desc.struct_size = sizeof desc;
    desc.bytes = 100'000, desc.flags = TUFF_ALLOC_EXPORTABLE;
    tuff_buffer buffer = 0;
    ASSERT_OK(tuff_alloc_ex(context(), &desc, &buffer));
    memory_ = OwnBuffer(buffer);
    info_.struct_size = sizeof info_;
    ASSERT_OK(tuff_buffer_export_fd(buffer, &info_));
  }
  void TearDown() override {
    if (info_.fd > 0) close(info_.fd);
    info_.fd = -1;
  }
  static tuff_context context() { return shared_context("vulkan"); }
  static bool on_cpu() { return properties_of(context()).type == TUFF_DEVICE_CPU; }

  struct Answer {
    tuff_status status = TUFF_OK;
    std::string message;
  };
  // A call that hangs would hold the context's lock for good, so the process has to end.
  static Answer import(const tuff_memory_fd& info) {
    auto answer = std::async(std::launch::async, [info] {
      tuff_buffer made = 77;
      Answer result;
      result.status = tuff_buffer_import_fd(context(), &info, &made);
      result.message = last_error();
      if (result.status == TUFF_OK) {
        tuff_free(made);
      } else {
        EXPECT_EQ(made, 77u);
      }
      return result;
    });
    if (answer.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
      std::fprintf(stderr, "tuff_buffer_import_fd does not return\n");
      std::abort();
    }
    return answer.get();
  }
  void expect_refused(int descriptor, const char* what) {
    SCOPED_TRACE(what);
    tuff_memory_fd info = info_;
    info.fd = descriptor;
    const Answer answer = import(info);
    EXPECT_EQ(answer.status, TUFF_ERROR_INVALID_ARGUMENT) << answer.message;
    EXPECT_EQ(answer.message.rfind("tuff_buffer_import_fd: ", 0), 0u) << answer.message;
    EXPECT_NE(answer.message.find("info->fd is " + std::to_string(descriptor)), std::string::npos) << answer.message;
    if (descriptor >= 0 && descriptor < 100'000) {
      EXPECT_GE(fcntl(descriptor, F_GETFD), 0) << "it stays the caller's";
    }
  }
  void expect_usable() {
    const Answer answer = import(info_);
    EXPECT_EQ(answer.status, TUFF_OK) << answer.message;
    const OwnBuffer x(context(), 64);
    EXPECT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, x, x, 16));
    EXPECT_OK(tuff_synchronize(context()));
    EXPECT_EQ(memory_of(context()).bytes_imported, 0u);
  }
  // A memory file of `bytes` bytes that starts with the first `copied` bytes of the driver's.
  Descriptor copy_of_header(uint64_t bytes, uint64_t copied, unsigned flags = MFD_ALLOW_SEALING) {
    Descriptor file(memfd_create("test", MFD_CLOEXEC | flags));
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    std::vector<char> head(copied);
    EXPECT_EQ(pread(info_.fd, head.data(), head.size(), 0), static_cast<ssize_t>(copied));
    EXPECT_EQ(pwrite(file.get(), head.data(), head.size(), 0), static_cast<ssize_t>(copied));
    return file;
  }

  OwnBuffer memory_;
  tuff_memory_fd info_{};
};

TEST_F(MemoryDescriptors, WhatIsNoMemoryIsRefusedAtOnce) {
  sigset_t none;
  sigemptyset(&none);
  int pipe_ends[2], sockets[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  std::FILE* temporary = std::tmpfile();
  ASSERT_NE(temporary, nullptr);
  std::fputs("text", temporary);
  std::fflush(temporary);
  std::vector<std::pair<const char*, Descriptor>> kinds;
  kinds.emplace_back("eventfd", Descriptor(eventfd(0, EFD_CLOEXEC)));
  kinds.emplace_back("timerfd", Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)));
  kinds.emplace_back("inotify", Descriptor(inotify_init1(IN_CLOEXEC)));
  kinds.emplace_back("signalfd", Descriptor(signalfd(-1, &none, SFD_CLOEXEC)));
  kinds.emplace_back("epoll", Descriptor(epoll_create1(EPOLL_CLOEXEC)));
  kinds.emplace_back("a pipe to read from", Descriptor(pipe_ends[0]));
  kinds.emplace_back("a pipe to write to", Descriptor(pipe_ends[1]));
  kinds.emplace_back("a socket", Descriptor(sockets[0]));
  kinds.emplace_back("a socket", Descriptor(sockets[1]));
  kinds.emplace_back("an internet socket", Descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
  if (const int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC); terminal >= 0) {
    kinds.emplace_back("ptmx", Descriptor(terminal));
  }
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/full"}) {
    kinds.emplace_back(path, Descriptor(open(path, O_RDWR | O_CLOEXEC)));
  }
  kinds.emplace_back("a directory", Descriptor(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  kinds.emplace_back("a file", Descriptor(dup(fileno(temporary))));
  kinds.emplace_back("a program", Descriptor(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)));
  kinds.emplace_back("a path of a file", Descriptor(open("/proc/self/exe", O_PATH | O_CLOEXEC)));
  kinds.emplace_back("a path of a directory", Descriptor(open("/", O_PATH | O_CLOEXEC)));
  kinds.emplace_back("a path of a device", Descriptor(open("/dev/null", O_PATH | O_CLOEXEC)));
  kinds.emplace_back("a file of /proc", Descriptor(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)));
  for (const auto& [what, descriptor] : kinds) expect_refused(descriptor.get(), what);
  std::fclose(temporary);
  expect_refused(-1, "-1");
  expect_refused(INT32_MIN, "the smallest number");
  expect_refused(900'000, "a number that is not open");
  expect_usable();
}

TEST_F(MemoryDescriptors, AMemoryFileThatIsNotTheDriversIsRefused) {
  const Descriptor empty(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  expect_refused(empty.get(), "an empty one");
  const Descriptor small(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(small.get(), 4096), 0);
  expect_refused(small.get(), "one of 4096 bytes");
  const Descriptor last(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(last.get(), static_cast<off_t>(info_.memory_bytes - 1)), 0);
  expect_refused(last.get(), "one that lacks a byte");
  if (on_cpu()) {
    const Descriptor zeros(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(zeros.get(), static_cast<off_t>(2 * info_.memory_bytes)), 0);
    expect_refused(zeros.get(), "one of zeros");
  }
  expect_usable();
}

// A header states how much is to be mapped. If the file is shorter, the first access beyond its end raises SIGBUS.
TEST_F(MemoryDescriptors, AShortMemoryFileWithACopiedHeaderIsRefused) {
  if (!on_cpu()) GTEST_SKIP() << "not run: a GPU's memory is not a memory file";
  struct {
    uint64_t bytes, offset;
  } header;
  ASSERT_EQ(pread(info_.fd, &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  const uint64_t head = header.offset;
  for (const uint64_t bytes : {head, uint64_t{4096}, info_.memory_bytes - 1, info_.memory_bytes, header.bytes - 1}) {
    const Descriptor file = copy_of_header(std::max(bytes, head), head);
    expect_refused(file.get(), ("of " + std::to_string(bytes) + " bytes").c_str());
  }
  // A header that states more, or refers elsewhere.
  const struct {
    const char* what;
    uint64_t bytes, offset, again;
  } lies[] = {
      {"more bytes than there are", header.bytes + (1 << 20), header.offset, header.offset},
      {"fewer bytes than requested", header.bytes / 2, header.offset, header.offset},
      {"the largest number of bytes", ~uint64_t{0}, header.offset, header.offset},
      {"an offset behind the end", header.bytes, header.bytes + 4096, header.offset},
      {"an offset before the beginning", header.bytes, ~uint64_t{0} - 4095, header.offset},
      {"an offset of nothing", header.bytes, 0, header.offset},
      {"two offsets", header.bytes, header.offset, header.offset + 64},
  };
  for (const auto& lie : lies) {
    const Descriptor file = copy_of_header(header.bytes, head);
    ASSERT_EQ(pwrite(file.get(), &lie.bytes, 8, 0), 8);
    ASSERT_EQ(pwrite(file.get(), &lie.offset, 8, 8), 8);
    ASSERT_EQ(pwrite(file.get(), &lie.again, 8, static_cast<off_t>(head - 8)), 8);
    expect_refused(file.get(), lie.what);
  }
  const Descriptor whole = copy_of_header(header.bytes, head);
  tuff_memory_fd info = info_;
  info.fd = whole.get();
  const Answer answer = import(info);
  EXPECT_EQ(answer.status, TUFF_OK) << "as long as it says, it is as good as the driver's own: " << answer.message;
  expect_usable();
}

// Otherwise the holder of the file could remove its pages while the buffer uses them.
TEST_F(MemoryDescriptors, AMemoryFileCannotBeMadeShorterAfterItsImport) {
  if (!on_cpu()) GTEST_SKIP() << "not run: a GPU's memory is not a memory file";
  EXPECT_NE(ftruncate(info_.fd, 4096), 0) << "of an export neither";
  struct {
    uint64_t bytes, offset;
  } header;
  ASSERT_EQ(pread(info_.fd, &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  const Descriptor file = copy_of_header(header.bytes, header.offset);
  tuff_memory_fd info = info_;
  info.fd = file.get();
  tuff_buffer buffer = 0;
  ASSERT_OK(tuff_buffer_import_fd(context(), &info, &buffer));
  const OwnBuffer imported(buffer);
  EXPECT_NE(ftruncate(file.get(), 4096), 0);
  EXPECT_NE(ftruncate(file.get(), 0), 0);
  EXPECT_OK(tuff_fill(context(), imported, 0, info.bytes, "\x11", 1));
  EXPECT_OK(tuff_synchronize(context()));
  // A file whose creator did not allow sealing.
  const Descriptor open_ended = copy_of_header(header.bytes, header.offset, 0);
  expect_refused(open_ended.get(), "one without seals");
}

}  // namespace
}  // namespace tuff_test::memory_descriptors_test
