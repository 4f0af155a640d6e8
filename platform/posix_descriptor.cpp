// Finds out what a file descriptor refers to. Asks the system and never reads, because that might block for ever.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "platform/platform.hpp"

namespace tuff::platform {
namespace {

// linux/magic.h; older systems lack the second.
constexpr long kAnonymousInodes = 0x09041934, kDmaBuf = 0x444d4142;

// Memory devices, terminals and pseudo-terminals: Linux's Documentation/admin-guide/devices.txt.
bool is_system_device(unsigned number) {
  return number == 1 || number == 4 || number == 5 || (number >= 128 && number <= 143);
}

DescriptorFacts file_facts(int descriptor, uint64_t bytes) {
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals >= 0) return {DescriptorKind::memory_file, "a memory file", bytes, (seals & F_SEAL_SHRINK) != 0};
  if (errno == EBADF) return {DescriptorKind::other, "a path (O_PATH)"};
  return {DescriptorKind::other, "a file"};
}

}  // namespace

DescriptorFacts inspect_descriptor(int descriptor) noexcept {
  struct stat status {};
  struct statfs system {};
  if (::fstat(descriptor, &status) != 0) return {DescriptorKind::closed, "not an open descriptor"};
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (::fstatfs(descriptor, &system) == 0) {
    if (system.f_type == kAnonymousInodes) return {DescriptorKind::other, "an event, timer or signal descriptor"};
    if (system.f_type == kDmaBuf) return {DescriptorKind::device_memory, "a DMA buffer", bytes};
  }
  switch (status.st_mode & S_IFMT) {
    case S_IFREG: return file_facts(descriptor, bytes);
    case S_IFDIR: return {DescriptorKind::other, "a directory"};
    case S_IFLNK: return {DescriptorKind::other, "a link"};
    case S_IFBLK: return {DescriptorKind::other, "a block device"};
    case S_IFIFO: return {DescriptorKind::other, "a pipe"};
    case S_IFSOCK: return {DescriptorKind::other, "a socket"};
    case S_IFCHR:
      if (is_system_device(major(status.st_rdev))) return {DescriptorKind::other, "a terminal or a memory device"};
      break;
    default: break;
  }
  if ((::fcntl(descriptor, F_GETFL) & O_PATH) != 0) return {DescriptorKind::other, "a path (O_PATH)"};
  return {DescriptorKind::device_memory, "a device's descriptor"};
}

bool keep_length(int descriptor) noexcept { return ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK) == 0; }

bool read_at(int descriptor, uint64_t offset, std::span<std::byte> bytes) noexcept {
  const ssize_t count = ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  return count == static_cast<ssize_t>(bytes.size());
}

int duplicate_descriptor(int descriptor) noexcept { return ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }

void close_duplicate(int duplicate, int original) noexcept {
  struct stat ours {
  }, theirs{};
  if (::fstat(duplicate, &ours) != 0 || ::fstat(original, &theirs) != 0) return;
  if (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino) ::close(duplicate);
}

void close_on_exec(int descriptor) noexcept { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); }
void close_descriptor(int descriptor) noexcept { ::close(descriptor); }

}  // namespace tuff::platform
