// Pages that other processes read, on POSIX.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <new>
#include <span>
#include <system_error>

#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "platform/shared_page.hpp"

namespace tuff::platform {
namespace {

constexpr time_t kYoungSeconds = 10;
constexpr std::string_view kUnique = "XXXXXX";  // what mkostemp() replaces by letters and digits

std::string system_says(const char* what) { return std::string(what) + ": " + std::generic_category().message(errno); }

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool write_zeros(int descriptor, uint64_t bytes) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  while (bytes != 0) {
    const auto some = static_cast<size_t>(std::min<uint64_t>(bytes, kZeros.size()));
    if (!write_all(descriptor, std::span(kZeros).first(some))) return false;
    bytes -= some;
  }
  return true;
}

// Opens what must be a regular file of this user. A pipe of that name would make open() wait without O_NONBLOCK.
int open_own(const std::filesystem::path& path, int flags, struct stat& status, std::string& problem) {
  File file(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open()) {
    problem = system_says("it cannot be opened");
    return -1;
  }
  const bool known = ::fstat(file.get(), &status) == 0;
  if (known && S_ISREG(status.st_mode) && status.st_uid == ::geteuid()) return file.release();
  problem = !known                     ? system_says("its properties cannot be read")
            : !S_ISREG(status.st_mode) ? "it is not a regular file"
                                       : "it belongs to another user";
  return -1;
}

}  // namespace

std::optional<std::filesystem::path> runtime_directory(std::string& problem) {
  if (runs_with_other_rights()) {
    problem = "the program was started with more rights than its caller has";
    return std::nullopt;
  }
  const auto base = environment("XDG_RUNTIME_DIR");
  if (!base || base->front() != '/') {  // the XDG specification says to ignore relative paths
    problem = base ? "XDG_RUNTIME_DIR is not an absolute path" : "XDG_RUNTIME_DIR is not set";
    return std::nullopt;
  }
  std::filesystem::path directory = std::filesystem::path(*base) / "tuff";
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    problem = system_says((directory.string() + " cannot be created").c_str());
    return std::nullopt;
  }
  struct stat status {};
  if (::lstat(directory.c_str(), &status) != 0) {
    problem = system_says(directory.c_str());
    return std::nullopt;
  }
  const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || others_write) {
    problem = directory.string() + " is not a folder of this user's that others cannot write to";
    return std::nullopt;
  }
  return directory;
}

SharedPage make_shared_page(const std::filesystem::path& folder, uint64_t bytes, std::string& problem) {
  SharedPage page;
  std::string path = (folder / std::to_string(process_number()).append(".").append(kUnique)).string();
  File file(::mkostemp(path.data(), O_CLOEXEC));  // mode 0600
  if (!file.is_open()) {
    problem = system_says(("no file can be created in " + folder.string()).c_str());
    return page;
  }
  // Not flock(): a forked child would hold that lock too, and a program could live on in its children.
  struct flock lock = whole_file(F_WRLCK);
  void* memory = MAP_FAILED;
  if (::fcntl(file.get(), F_SETLK, &lock) != 0) {
    problem = system_says((path + " cannot be locked").c_str());
  } else if (!write_zeros(file.get(), bytes)) {
    problem = system_says((path + " has no room").c_str());
  } else {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) problem = system_says((path + " cannot be mapped").c_str());
  }
  if (memory == MAP_FAILED) {
    ::unlink(path.c_str());
    return page;
  }
  file.release();  // stays open: closing it would release the lock
  page.memory = static_cast<std::byte*>(memory);
  page.bytes = bytes;
  page.path = std::move(path);
  return page;
}

bool is_page_name(std::string_view name) noexcept {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto either = [&](char c) { return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const size_t stop = name.find('.');
  if (stop == 0 || stop == std::string_view::npos) return false;
  const std::string_view number = name.substr(0, stop), ending = name.substr(stop + 1);
  return std::all_of(number.begin(), number.end(), digit) && ending.size() == kUnique.size() &&
         std::all_of(ending.begin(), ending.end(), either);
}

void remove_shared_page(const SharedPage& page) noexcept {
  if (page.memory != nullptr) ::unlink(page.path.c_str());
}

void keep_shared_page_private(const SharedPage& page) noexcept {
  if (page.memory == nullptr) return;
  ::mmap(page.memory, page.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

SharedPageCopy read_shared_page(const std::filesystem::path& path, uint64_t max_bytes) {
  SharedPageCopy copy;
  struct stat status {};
  const File file(open_own(path, O_RDWR, status, copy.problem));
  if (!file.is_open()) return copy;
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(file.get(), F_GETLK, &lock) != 0) {
    copy.problem = system_says("its lock cannot be read");
    return copy;
  }
  if (lock.l_type == F_UNLCK) {
    copy.state = SharedPageCopy::State::dead;
    return copy;
  }
  copy.process = lock.l_pid > 0 ? lock.l_pid : 0;
  // Read, not mapped: a file that is cut meanwhile makes this shorter, where touching mapped memory would end the
  // process.
  copy.bytes.resize(std::min<uint64_t>(max_bytes, status.st_size < 0 ? 0 : static_cast<uint64_t>(status.st_size)));
  const ssize_t count = ::pread(file.get(), copy.bytes.data(), copy.bytes.size(), 0);
  if (count < 0) {
    copy.problem = system_says("it cannot be read");
    return copy;
  }
  copy.bytes.resize(static_cast<size_t>(count));
  copy.state = SharedPageCopy::State::live;
  return copy;
}

bool remove_dead_page(const std::filesystem::path& path) noexcept {
  try {
    struct stat status {};
    std::string problem;
    const File file(open_own(path, O_RDWR, status, problem));
    if (!file.is_open()) return false;
    struct flock lock = whole_file(F_WRLCK);
    if (::fcntl(file.get(), F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK) return false;
    if (::time(nullptr) - status.st_mtime < kYoungSeconds && status.st_size == 0) return false;
    return ::unlink(path.c_str()) == 0;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

int64_t process_number() noexcept { return ::getpid(); }

int64_t wall_clock() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace tuff::platform
