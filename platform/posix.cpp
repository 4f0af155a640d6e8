// The POSIX implementation of platform.hpp.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>

#include "platform/platform.hpp"
#include "platform/posix_file.hpp"

namespace tuff::platform {
namespace {

bool read_all(int descriptor, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::read(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

std::atomic<uint32_t> forks{0};

// Registered when the library is loaded, which is never unloaded because of it (-z nodelete).
[[maybe_unused]] const int fork_handler =
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

// The system reports this for the start of the program. Comparing user ids would miss capabilities, and programs that
// have changed their ids since.
bool runs_with_other_rights() noexcept {
#ifdef __linux__
  return ::getauxval(AT_SECURE) != 0;
#else
  return ::issetugid() != 0;
#endif
}

std::optional<std::string> environment(const char* name) {
  auto value = environment_even_empty(name);
  if (value && value->empty()) value.reset();
  return value;
}

const char* environment_text(const char* name) noexcept {
  return runs_with_other_rights() ? nullptr : std::getenv(name);
}

std::optional<std::string> environment_even_empty(const char* name) {
  const char* value = environment_text(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::vector<std::string> environment_of(std::span<const std::string_view> prefixes) {
  std::vector<std::string> found;
  if (runs_with_other_rights() || environ == nullptr) return found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool wanted = std::any_of(prefixes.begin(), prefixes.end(),
                                    [&](std::string_view prefix) { return text.starts_with(prefix); });
    if (wanted) found.emplace_back(text);
  }
  return found;
}

std::optional<std::filesystem::path> cache_directory() {
  if (runs_with_other_rights()) return std::nullopt;  // such a program gets no HOME either

  std::filesystem::path base;
  const auto xdg = environment("XDG_CACHE_HOME");
  const auto home = environment("HOME");
  if (xdg && xdg->front() == '/') {  // the XDG specification says to ignore relative paths
    base = *xdg;
  } else if (home && home->front() == '/') {
    base = std::filesystem::path(*home) / ".cache";
  } else {
    return std::nullopt;
  }

  std::error_code error;
  if (!std::filesystem::is_directory(base, error)) {
    std::filesystem::create_directories(base.parent_path(), error);
    ::mkdir(base.c_str(), 0700);
  }
  const std::filesystem::path directory = base / "tuff";
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return std::nullopt;

  // lstat: if others may write to base, a link could lead to another folder of ours.
  struct stat status {};
  if (::lstat(directory.c_str(), &status) != 0) return std::nullopt;
  const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || others_write) return std::nullopt;
  if (::access(directory.c_str(), R_OK | W_OK | X_OK) != 0) return std::nullopt;
  return directory;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), &::closedir);
  if (listing == nullptr) return names;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

std::optional<std::vector<std::byte>> read_file(const std::filesystem::path& path, uint64_t max_bytes,
                                                std::string* problem) {
  const auto refuse = [&](std::string why) {
    if (problem != nullptr) *problem = std::move(why);
    return std::nullopt;
  };
  const auto system_says = [&](int error) { return refuse(std::generic_category().message(error)); };
  // Without O_NONBLOCK, opening a pipe with that name would wait for a writer.
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return system_says(errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_says(errno);
  if (!S_ISREG(status.st_mode)) return refuse("it is not a regular file");
  if (status.st_size < 0 || static_cast<uint64_t>(status.st_size) > max_bytes) {
    return refuse("it holds " + std::to_string(status.st_size) + " bytes, at most " + std::to_string(max_bytes) +
                  " are read");
  }
  std::vector<std::byte> bytes(static_cast<size_t>(status.st_size));
  if (!read_all(file.get(), bytes)) return refuse("it could not be read to its end");
  return bytes;
}

std::optional<std::string> read_small_file(const std::filesystem::path& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return std::nullopt;
  std::string text(4096, '\0');
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + length, text.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    length += static_cast<size_t>(count);
  }
  text.resize(length);
  return text;
}

bool write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::string temporary = path.string() + ".XXXXXX";
  File file(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!file.is_open()) return false;
  // No fsync: if a crash loses data, the reader's checksum detects it.
  const bool written = write_all(file.get(), bytes);
  const bool closed = file.close();
  if (written && closed && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
  ::unlink(temporary.c_str());
  return false;
}

// flock() belongs to the open file, not to the process, so two threads exclude each other too.
FileLock::FileLock(const std::filesystem::path& path, std::chrono::milliseconds patience)
    : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (descriptor_ < 0) return;
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!(held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0)) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;  // a file system without locks
    if (std::chrono::steady_clock::now() >= until) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  ::flock(descriptor_, LOCK_UN);  // a process forked meanwhile shares the open file
  ::close(descriptor_);
}

// One byte in the file means that its owner has started the trial; the lock on it means that the owner is still
// running. The byte without the lock means that the marker was left behind.
TrialMarker::TrialMarker(std::filesystem::path path) : path_(std::move(path)), state_(take()) {}

TrialMarker::State TrialMarker::take() noexcept {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor_ < 0) return State::impossible;
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK ? State::busy : State::impossible;
  struct stat ours {
  }, there{};
  if (::fstat(descriptor_, &ours) != 0) return State::impossible;
  // The owner may have removed the file since it was opened; then it means nothing.
  if (::lstat(path_.c_str(), &there) != 0 || there.st_ino != ours.st_ino || there.st_dev != ours.st_dev) {
    return State::busy;
  }
  if (ours.st_size != 0) return State::left_behind;
  const std::byte mark{'1'};
  if (write_all(descriptor_, {&mark, 1})) return State::taken;
  ::unlink(path_.c_str());  // the disk is full
  return State::impossible;
}

TrialMarker::~TrialMarker() {
  if (descriptor_ < 0) return;
  if (state_ == State::taken || state_ == State::left_behind) {
    ::unlink(path_.c_str());
    ::flock(descriptor_, LOCK_UN);  // a process forked meanwhile shares the open file
  }
  ::close(descriptor_);
}

bool overwrite(const std::filesystem::path& path, std::span<const std::byte> expected, uint64_t offset,
               std::span<const std::byte> bytes) {
  const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  std::vector<std::byte> begin(expected.size());
  if (!read_all(file.get(), begin) || !std::equal(begin.begin(), begin.end(), expected.begin())) return false;
  const ssize_t written = ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  return written == static_cast<ssize_t>(bytes.size());
}

std::string program_name() {
#ifdef __linux__
  return program_invocation_short_name;
#else
  return ::getprogname();
#endif
}

std::string thread_name() {
  constexpr size_t kMax = 15;  // bytes of a name; Linux truncates there
  char name[64] = {};
  if (::pthread_getname_np(::pthread_self(), name, sizeof name) != 0) return {};
  return program_name().compare(0, kMax, name) == 0 ? "" : name;
}

uint64_t physical_memory_bytes() noexcept {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
}

SignalsBlocked::SignalsBlocked() noexcept {
  static_assert(sizeof(sigset_t) <= sizeof before_);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, reinterpret_cast<sigset_t*>(before_));
}
SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, reinterpret_cast<sigset_t*>(before_), nullptr); }

ThreadKey::ThreadKey(void (*end)(void*)) noexcept {
  static_assert(std::is_same_v<pthread_key_t, unsigned>);
  made_ = ::pthread_key_create(&key_, end) == 0;
}
bool ThreadKey::set(const void* pointer) const noexcept { return ::pthread_setspecific(key_, pointer) == 0; }

uint32_t fork_generation() noexcept { return forks.load(std::memory_order_relaxed); }

Library load_library(const std::filesystem::path& file, std::string& problem) {
  // Everything is bound now, so that a missing symbol is an error here. Refused libraries stay as well: their
  // constructors may have started threads.
  Library library{::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
  if (library.handle == nullptr) {
    const char* reason = ::dlerror();
    problem = reason != nullptr ? reason : "the system does not say why";
  }
  return library;
}

void* function_of(Library library, const char* name) noexcept { return ::dlsym(library.handle, name); }

bool call_in_forked_children(void (*handler)()) noexcept { return ::pthread_atfork(nullptr, nullptr, handler) == 0; }

}  // namespace tuff::platform
