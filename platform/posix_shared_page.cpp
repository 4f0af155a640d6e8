// Pages that other processes read, on POSIX.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "platform/platform.hpp"
#include "platform/shared_page.hpp"

namespace tuff::platform {
namespace {

constexpr time_t kYoungSeconds = 10;
constexpr std::string_view kUnique = "XXXXXX";  // what mkostemp() replaces by letters and digits

std::string system_says(const char* what) { return std::string(what) + ": " + std::generic_category().message(errno); }

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool write_zeros(int descriptor, uint64_t bytes) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  while (bytes != 0) {
    const ssize_t count = ::write(descriptor, kZeros.data(), std::min<uint64_t>(bytes, kZeros.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes -= static_cast<uint64_t>(count);
  }
  return true;
}

// Opens what must be a regular file of this user. A pipe of that name would make open() wait without O_NONBLOCK.
int open_own(const std::filesystem::path& path, int flags, struct stat& status, std::string& problem) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) {
    problem = system_says("it cannot be opened");
    return -1;
  }
  const bool known = ::fstat(descriptor, &status) == 0;
  if (known && S_ISREG(status.st_mode) && status.st_uid == ::geteuid()) return descriptor;
  problem = !known                     ? system_says("its properties cannot be read")
            : !S_ISREG(status.st_mode) ? "it is not a regular file"
                                       : "it belongs to another user";
  ::close(descriptor);
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
  const int descriptor = ::mkstemp(path.data());  // mode 0600
  if (descriptor < 0) {
    problem = system_says(("no file can be created in " + folder.string()).c_str());
    return page;
  }
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  // Not flock(): a forked child would hold that lock too, and a program could live on in its children.
  struct flock lock = whole_file(F_WRLCK);
  void* memory = MAP_FAILED;
  if (::fcntl(descriptor, F_SETLK, &lock) != 0) {
    problem = system_says((path + " cannot be locked").c_str());
  } else if (!write_zeros(descriptor, bytes)) {
    problem = system_says((path + " has no room").c_str());
  } else {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) problem = system_says((path + " cannot be mapped").c_str());
  }
  if (memory == MAP_FAILED) {
    ::unlink(path.c_str());
    ::close(descriptor);
    return page;
  }
  page.memory = static_cast<std::byte*>(memory);  // the descriptor stays open: closing it would release the lock
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
  const Descriptor file{open_own(path, O_RDWR, status, copy.problem)};
  if (file.number < 0) return copy;
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(file.number, F_GETLK, &lock) != 0) {
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
  const ssize_t count = ::pread(file.number, copy.bytes.data(), copy.bytes.size(), 0);
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
    const Descriptor file{open_own(path, O_RDWR, status, problem)};
    if (file.number < 0) return false;
    struct flock lock = whole_file(F_WRLCK);
    if (::fcntl(file.number, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK) return false;
    if (::time(nullptr) - status.st_mtime < kYoungSeconds && status.st_size == 0) return false;
    return ::unlink(path.c_str()) == 0;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::string program_name() { return program_invocation_short_name; }
int64_t process_number() noexcept { return ::getpid(); }

int64_t wall_clock() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace tuff::platform
