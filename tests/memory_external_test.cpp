// Memory shared with others: host memory, pinned and imported, and memory passed by file descriptor, to another context
// and to another process (programs/importer.c).
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "support/tensor.hpp"

extern char** environ;

namespace tuff_test::memory_external_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr uint64_t kPage = 4096;  // the alignment that every driver seen requires

bool supports(tuff_context context, const char* feature) {
  int32_t yes = 0;
  EXPECT_OK(tuff_supports(context, feature, &yes));
  return yes == 1;
}

OwnBuffer allocate(tuff_context context, uint64_t bytes, uint32_t flags) {
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.bytes = bytes, desc.flags = flags;
  tuff_buffer buffer = 0;
  EXPECT_OK(tuff_alloc_ex(context, &desc, &buffer));
  return OwnBuffer(buffer);
}

// Pages of host memory.
class Pages {
 public:
  explicit Pages(uint64_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory_, MAP_FAILED);
  }
  ~Pages() { munmap(memory_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void* get() const { return memory_; }
  float* floats() const { return static_cast<float*>(memory_); }

 private:
  void* memory_;
  uint64_t bytes_;
};

class MemoryHost : public OnBackend {};

TEST_P(MemoryHost, PinnedMemory) {
  const uint64_t n = 5'000'000;  // more than is staged at once
  const OwnBuffer pinned = allocate(context(), n * 4, TUFF_ALLOC_HOST_PINNED), device(context(), n * 4);
  void* pointer = nullptr;
  ASSERT_OK(tuff_map(pinned, &pointer));
  auto* values = static_cast<float*>(pointer);
  EXPECT_EQ(values[n - 1], 0.0f);
  std::iota(values, values + n, 0.0f);
  ASSERT_OK(tuff_unmap(pinned));
  ASSERT_OK(tuff_copy_dtod(context(), device, 0, pinned, 0, n * 4));
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, device, device, n));
  ASSERT_OK(tuff_copy_dtod(context(), pinned, 0, device, 0, n * 4));
  ASSERT_OK(tuff_map(pinned, &pointer));
  values = static_cast<float*>(pointer);
  for (uint64_t i = 0; i < n; i += 997) ASSERT_EQ(values[i], -static_cast<float>(i));
  ASSERT_OK(tuff_unmap(pinned));
  // It works like any other buffer too.
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_ABS, pinned, pinned, 1000));
  std::vector<float> back(1000);
  ASSERT_OK(tuff_copy_dtoh(context(), back.data(), pinned, 0, 4000));
  EXPECT_EQ(back[999], 999.0f);
}

TEST_P(MemoryHost, PinnedMemoryCountsForTheLimit) {
  const OwnContext own(GetParam());
  set_limit(own, 1'000'000);
  const OwnBuffer held = allocate(own, 600'000, TUFF_ALLOC_HOST_PINNED);
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.bytes = 600'000, desc.flags = TUFF_ALLOC_HOST_PINNED;
  tuff_buffer none = 0;
  EXPECT_FAILS(tuff_alloc_ex(own, &desc, &none), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc_ex", "600000");
}

TEST_P(MemoryHost, ImportedMemoryIsTheCallersOwn) {
  if (!supports(context(), "import_host")) {
    tuff_buffer none = 0;
    Pages pages(kPage);
    EXPECT_FAILS(tuff_buffer_import_host(context(), pages.get(), kPage, &none), TUFF_ERROR_UNSUPPORTED,
                 "tuff_buffer_import_host", "VK_EXT_external_memory_host");
    GTEST_SKIP() << "not run: the device has no VK_EXT_external_memory_host";
  }
  const OwnContext own(GetParam());
  const uint64_t n = 64 * kPage / 4;
  const Pages pages(n * 4);
  std::iota(pages.floats(), pages.floats() + n, -1000.0f);
  const tuff_memory_stats before = memory_of(own);
  tuff_buffer handle = 0;
  ASSERT_OK(tuff_buffer_import_host(own, pages.get(), n * 4, &handle));
  OwnBuffer imported(handle);
  const OwnBuffer result(own, n * 4);
  const tuff_memory_stats during = memory_of(own);
  EXPECT_EQ(during.bytes_imported, n * 4);
  EXPECT_EQ(during.live_allocations, before.live_allocations + 1);
  ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_RELU, imported, result, n));
  ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_NEG, imported, imported, n));  // in the caller's memory
  void* pointer = nullptr;
  ASSERT_OK(tuff_map(imported, &pointer));
  EXPECT_EQ(pointer, pages.get());
  for (uint64_t i = 0; i < n; i += 13) ASSERT_EQ(pages.floats()[i], 1000.0f - static_cast<float>(i));
  pages.floats()[5] = 77;
  ASSERT_OK(tuff_unmap(imported));
  std::vector<float> back(n);
  ASSERT_OK(tuff_copy_dtoh(own, back.data(), imported, 0, n * 4));
  EXPECT_EQ(back[5], 77.0f);
  ASSERT_OK(tuff_copy_dtoh(own, back.data(), result, 0, n * 4));
  EXPECT_EQ(back[0], 0.0f);
  EXPECT_EQ(back[2000], 1000.0f);
  // Freed while the device uses it: released once that work has been waited for.
  tuff_buffer view = 0;
  ASSERT_OK(tuff_view(imported, 4096, 4096, &view));
  ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_ABS, view, view, 1024));
  imported.free();
  EXPECT_EQ(memory_of(own).bytes_imported, n * 4) << "its view lives";
  ASSERT_OK(tuff_free(view));
  ASSERT_OK(tuff_synchronize(own));
  const tuff_memory_stats after = memory_of(own);
  EXPECT_EQ(after.bytes_imported, 0u);
  EXPECT_EQ(after.live_allocations, before.live_allocations + 1);
}

TEST_P(MemoryHost, ImportsSayWhatTheyNeed) {
  if (!supports(context(), "import_host")) {
    GTEST_SKIP() << "not run: the device has no VK_EXT_external_memory_host";
  }
  const char* function = "tuff_buffer_import_host";
  const Pages pages(4 * kPage);
  auto* at = static_cast<char*>(pages.get());
  tuff_buffer none = 77;
  EXPECT_FAILS(tuff_buffer_import_host(context(), nullptr, kPage, &none), kArgument, function, "memory");
  EXPECT_FAILS(tuff_buffer_import_host(context(), at, kPage, nullptr), kArgument, function, "buffer");
  EXPECT_FAILS(tuff_buffer_import_host(context(), at + 64, kPage, &none), kArgument, function, "4096");
  EXPECT_FAILS(tuff_buffer_import_host(context(), at, kPage + 64, &none), kArgument, function, "4096");
  EXPECT_FAILS(tuff_buffer_import_host(context(), at, 0, &none), kArgument, function, "4096");
  if (GetParam() == "vulkan") {
    EXPECT_FAILS(tuff_buffer_import_host(context(), at, uint64_t{1} << 62, &none), TUFF_ERROR_LIMIT_EXCEEDED, function,
                 "bytes");
  }
  EXPECT_FAILS(tuff_buffer_import_host(0, at, kPage, &none), TUFF_ERROR_INVALID_HANDLE, function, "context");
  EXPECT_EQ(none, 77u);
  EXPECT_EQ(memory_of(context()).bytes_imported, 0u);
}
TUFF_ON_BACKENDS(MemoryHost);

// --- by file descriptor ------------------------------------------------------------------------------------

tuff_memory_fd exported(tuff_buffer buffer) {
  tuff_memory_fd info{};
  info.struct_size = sizeof info;
  info.fd = -1;
  EXPECT_OK(tuff_buffer_export_fd(buffer, &info));
  return info;
}

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

class MemoryFd : public OnBackend {
 protected:
  // On a device without the feature, checks that the calls are refused by name; the test then ends.
  bool missing() {
    if (supports(context(), "memory_fd")) return false;
    tuff_alloc_desc desc{};
    desc.struct_size = sizeof desc;
    desc.bytes = 4096, desc.flags = TUFF_ALLOC_EXPORTABLE;
    tuff_buffer none = 77;
    const OwnBuffer plain(context(), 4096);
    tuff_memory_fd info{};
    info.struct_size = sizeof info;
    info.fd = -1;
    const char* word = vulkan() ? "VK_KHR_external_memory_fd" : "descriptor";
    EXPECT_FAILS(tuff_alloc_ex(context(), &desc, &none), TUFF_ERROR_UNSUPPORTED, "tuff_alloc_ex", word);
    EXPECT_FAILS(tuff_buffer_import_fd(context(), &info, &none), TUFF_ERROR_UNSUPPORTED, "tuff_buffer_import_fd", word);
    EXPECT_NE(tuff_buffer_export_fd(plain, &info), TUFF_OK);
    EXPECT_EQ(none, 77u);
    return true;
  }
};

#define SKIP_IF_MISSING()                                                               \
  if (missing())                                                                        \
  GTEST_SKIP() << "not run: "                                                           \
               << (vulkan() ? "the driver has no VK_KHR_external_memory_fd for buffers" \
                            : "the host backend has no descriptors")

TEST_P(MemoryFd, TwoContextsShareABuffer) {
  SKIP_IF_MISSING();
  const OwnContext first(GetParam()), second(GetParam());
  const uint64_t n = 100'000;
  OwnBuffer mine = allocate(first, n * 4, TUFF_ALLOC_EXPORTABLE);
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  ASSERT_OK(tuff_copy_htod(first, mine, 0, values.data(), n * 4));
  const tuff_memory_fd info = exported(mine);
  ASSERT_GE(info.fd, 0);
  EXPECT_NE(fcntl(info.fd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(info.bytes, n * 4);
  EXPECT_EQ(info.offset, 0u);
  EXPECT_GE(info.memory_bytes, info.bytes);
  EXPECT_EQ(std::memcmp(info.device_uuid, properties_of(first).uuid, 16), 0);
  tuff_buffer handle = 0;
  ASSERT_OK(tuff_buffer_import_fd(second, &info, &handle));
  OwnBuffer theirs(handle);
  EXPECT_TRUE(is_open(info.fd)) << "the descriptor stays the caller's";
  close(info.fd);
  EXPECT_GE(memory_of(second).bytes_imported, info.bytes);
  uint64_t bytes = 0;
  ASSERT_OK(tuff_buffer_size(theirs, &bytes));
  EXPECT_EQ(bytes, n * 4);
  ASSERT_OK(tuff_unary(second, TUFF_F32, TUFF_UNARY_NEG, theirs, theirs, n));
  ASSERT_OK(tuff_synchronize(second));
  std::vector<float> back(n);
  ASSERT_OK(tuff_copy_dtoh(first, back.data(), mine, 0, n * 4));
  for (uint64_t i = 0; i < n; i += 101) ASSERT_EQ(back[i], -values[i]);
  // The memory outlives the buffer that it came from, and is not reused for another.
  mine.free();
  ASSERT_OK(tuff_synchronize(first));
  const OwnBuffer next = allocate(first, n * 4, TUFF_ALLOC_EXPORTABLE);
  ASSERT_OK(tuff_fill(first, next, 0, n * 4, "\0\0\0\0", 4));
  ASSERT_OK(tuff_synchronize(first));
  ASSERT_OK(tuff_copy_dtoh(second, back.data(), theirs, 0, n * 4));
  EXPECT_EQ(back[5], -values[5]);
  theirs.free();
  ASSERT_OK(tuff_synchronize(second));
  EXPECT_EQ(memory_of(second).bytes_imported, 0u);
}

// New memory is cleared before anything that another context writes to it.
TEST_P(MemoryFd, AnExportIsCleared) {
  SKIP_IF_MISSING();
  const OwnContext first(GetParam()), second(GetParam());
  const OwnBuffer mine = allocate(first, 4 << 20, TUFF_ALLOC_EXPORTABLE);
  const tuff_memory_fd info = exported(mine);
  tuff_buffer handle = 0;
  ASSERT_OK(tuff_buffer_import_fd(second, &info, &handle));
  const OwnBuffer theirs(handle);
  close(info.fd);
  ASSERT_OK(tuff_fill(second, theirs, 0, 4 << 20, "\x11", 1));
  ASSERT_OK(tuff_synchronize(second));
  ASSERT_OK(tuff_synchronize(first));
  std::vector<uint8_t> back(4 << 20);
  ASSERT_OK(tuff_copy_dtoh(first, back.data(), mine, 0, back.size()));
  EXPECT_EQ(std::count(back.begin(), back.end(), 0x11), 4 << 20);
}

TEST_P(MemoryFd, AViewBeginsWhereItBegins) {
  SKIP_IF_MISSING();
  const OwnContext own(GetParam());
  const OwnBuffer whole = allocate(own, 8192, TUFF_ALLOC_EXPORTABLE);
  ASSERT_OK(tuff_fill(own, whole, 1000, 500, "\x22", 1));
  tuff_buffer handle = 0;
  ASSERT_OK(tuff_view(whole, 1000, 500, &handle));
  const OwnBuffer view(handle);
  const tuff_memory_fd info = exported(view);
  EXPECT_EQ(info.offset, 1000u);
  EXPECT_EQ(info.bytes, 500u);
  ASSERT_OK(tuff_buffer_import_fd(own, &info, &handle));
  const OwnBuffer again(handle);
  close(info.fd);
  std::vector<uint8_t> back(500);
  ASSERT_OK(tuff_copy_dtoh(own, back.data(), again, 0, 500));
  EXPECT_EQ(back, std::vector<uint8_t>(500, 0x22));
}

TEST_P(MemoryFd, WhatDoesNotFitIsRefused) {
  SKIP_IF_MISSING();
  const OwnContext own(GetParam());
  const OwnBuffer plain(own, 4096), mine = allocate(own, 4096, TUFF_ALLOC_EXPORTABLE), none = allocate(own, 0, 8);
  tuff_memory_fd info{};
  info.struct_size = sizeof info;
  info.fd = -5;
  EXPECT_FAILS(tuff_buffer_export_fd(plain, &info), kArgument, "tuff_buffer_export_fd", "TUFF_ALLOC_EXPORTABLE");
  EXPECT_FAILS(tuff_buffer_export_fd(none, &info), kArgument, "tuff_buffer_export_fd", "0");
  EXPECT_FAILS(tuff_buffer_export_fd(mine, nullptr), kArgument, "tuff_buffer_export_fd", "info");
  EXPECT_FAILS(tuff_buffer_export_fd(own, &info), TUFF_ERROR_INVALID_HANDLE, "tuff_buffer_export_fd", "buffer");
  EXPECT_EQ(info.fd, -5);
  tuff_alloc_desc both{};
  both.struct_size = sizeof both;
  both.bytes = 64, both.flags = TUFF_ALLOC_EXPORTABLE | TUFF_ALLOC_HOST_PINNED;
  tuff_buffer made = 77;
  EXPECT_FAILS(tuff_alloc_ex(own, &both, &made), kArgument, "tuff_alloc_ex", "flags");

  const tuff_memory_fd good = exported(mine);
  const struct {
    const char* word;
    void (*spoil)(tuff_memory_fd&);
  } bad[] = {
      {"device_uuid", [](tuff_memory_fd& i) { i.device_uuid[3] ^= 1; }},
      {"driver_uuid", [](tuff_memory_fd& i) { i.driver_uuid[15] ^= 1; }},
      {"memory_type", [](tuff_memory_fd& i) { i.memory_type = 99; }},
      {"dedicated", [](tuff_memory_fd& i) { i.dedicated = 2; }},
      {"bytes", [](tuff_memory_fd& i) { i.bytes = 0; }},
      {"bytes", [](tuff_memory_fd& i) { i.bytes = i.memory_bytes + 1; }},
      {"bytes", [](tuff_memory_fd& i) { i.offset = i.memory_bytes; }},
      {"bytes", [](tuff_memory_fd& i) { i.offset = ~uint64_t{0}; }},
      {"fd", [](tuff_memory_fd& i) { i.fd = -1; }},
      {"fd", [](tuff_memory_fd& i) { i.fd = 1'000'000; }},
  };
  for (const auto& [word, spoil] : bad) {
    tuff_memory_fd spoiled = good;
    spoil(spoiled);
    EXPECT_FAILS(tuff_buffer_import_fd(own, &spoiled, &made), kArgument, "tuff_buffer_import_fd", word);
  }
  EXPECT_FAILS(tuff_buffer_import_fd(own, nullptr, &made), kArgument, "tuff_buffer_import_fd", "info");
  EXPECT_FAILS(tuff_buffer_import_fd(own, &good, nullptr), kArgument, "tuff_buffer_import_fd", "buffer");
  EXPECT_EQ(made, 77u);
  EXPECT_EQ(memory_of(own).bytes_imported, 0u);
  EXPECT_TRUE(is_open(good.fd));
  ASSERT_OK(tuff_buffer_import_fd(own, &good, &made)) << "the good one still is";
  EXPECT_OK(tuff_free(made));
  close(good.fd);
}

// A driver that reads from a pipe would wait forever.
TEST_P(MemoryFd, APipeIsRefused) {
  SKIP_IF_MISSING();
  const OwnBuffer mine = allocate(context(), 4096, TUFF_ALLOC_EXPORTABLE);
  tuff_memory_fd info = exported(mine);
  close(info.fd);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  info.fd = ends[0];
  tuff_buffer made = 77;
  EXPECT_FAILS(tuff_buffer_import_fd(context(), &info, &made), kArgument, "tuff_buffer_import_fd", "fd");
  EXPECT_TRUE(is_open(ends[0])) << "it stays the caller's";
  close(ends[0]);
  close(ends[1]);
}

// Sends the descriptor in a message over a socket.
bool send_memory(int socket, const tuff_memory_fd& info) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec data{const_cast<tuff_memory_fd*>(&info), sizeof info};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &info.fd, sizeof(int));
  return sendmsg(socket, &message, 0) == static_cast<ssize_t>(sizeof info);
}

// The other process finds A and B one after another in the memory, and stores A * B after them.
TEST_P(MemoryFd, TwoProcessesShareABuffer) {
  SKIP_IF_MISSING();
  const OwnContext own(GetParam());
  constexpr uint64_t kSide = 64, kElements = kSide * kSide;
  std::vector<float> values(3 * kElements, -1.0f);
  for (uint64_t i = 0; i < 2 * kElements; ++i) values[i] = static_cast<float>(i * 7 % 11) - 5;
  OwnBuffer shared = allocate(own, values.size() * 4, TUFF_ALLOC_EXPORTABLE);
  ASSERT_OK(tuff_copy_htod(own, shared, 0, values.data(), values.size() * 4));
  const tuff_memory_fd info = exported(shared);

  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], 0);  // becomes its standard input
  const std::string backend = GetParam();
  const char* const arguments[] = {TUFF_TEST_IMPORTER, backend.c_str(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, TUFF_TEST_IMPORTER, &actions, nullptr, const_cast<char**>(arguments), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(sockets[1]);
  EXPECT_TRUE(send_memory(sockets[0], info));
  close(info.fd);
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  close(sockets[0]);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << "the importer ended with state " << state;

  std::vector<float> back(values.size());
  ASSERT_OK(tuff_copy_dtoh(own, back.data(), shared, 0, back.size() * 4));
  for (uint64_t i = 0; i < kSide; ++i) {
    for (uint64_t j = 0; j < kSide; ++j) {
      float sum = 0;  // of small integers: exact
      for (uint64_t k = 0; k < kSide; ++k) sum += values[i * kSide + k] * values[kElements + k * kSide + j];
      ASSERT_EQ(back[2 * kElements + i * kSide + j], sum) << i << ", " << j;
    }
  }
  EXPECT_EQ(std::memcmp(back.data(), values.data(), 2 * kElements * 4), 0) << "A and B are as they were";
}
TUFF_ON_BACKENDS(MemoryFd);

}  // namespace
}  // namespace tuff_test::memory_external_test
