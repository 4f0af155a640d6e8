// Everything that differs by operating system: environment, paths, whole-file reads and atomic writes, memory, fork.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/never_destroyed.hpp"

namespace tuff::platform {

// True if the program was started with more privileges than its caller has, by another uid or by file capabilities.
// Such a program does not trust its environment.
bool runs_with_other_rights() noexcept;

// The library reads all environment variables through these functions. A program with elevated privileges sees none.
const char* environment_text(const char* name) noexcept;              // null if unset; allocates nothing
std::optional<std::string> environment(const char* name);             // nullopt if unset or empty
std::optional<std::string> environment_even_empty(const char* name);  // nullopt if unset
// The variables whose names begin with one of the prefixes, as "NAME=value".
std::vector<std::string> environment_of(std::span<const std::string_view> prefixes);

// A variable that is read once and cached: environment_once<"TUFF_GEMM_VARIANT">(). It is never destroyed, because
// calls also come at process exit.
template <size_t n>
struct VariableName {
  constexpr VariableName(const char (&name)[n]) { std::copy_n(name, n, text); }
  char text[n] = {};
};
template <VariableName name>
const std::optional<std::string>& environment_once() {
  static const NeverDestroyed<std::optional<std::string>> value(environment(name.text));
  return *value;
}

// The folder for Tuff's files: $XDG_CACHE_HOME/tuff, otherwise $HOME/.cache/tuff, created with mode 0700 if missing.
// nullopt if there is none, it belongs to another user, or others may write to it.
std::optional<std::filesystem::path> cache_directory();

// The names in a folder, without "." and ".."; empty if it cannot be read. libstdc++'s directory_iterator is not used
// because it allocates in noexcept functions, so running out of memory would terminate the process.
std::vector<std::string> names_in(const std::filesystem::path& folder);

// nullopt if it cannot be read completely; `problem`, if given, then says why.
std::optional<std::vector<std::byte>> read_file(const std::filesystem::path& path, uint64_t max_bytes,
                                                std::string* problem = nullptr);

// The text of a file of at most 4096 bytes, whatever size the system gives for it; for files that the system makes up.
std::optional<std::string> read_small_file(const std::filesystem::path& path);

// Writes a temporary file next to path and renames it to path. Returns false on failure; nothing is left behind.
bool write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);

// A shared library that stays loaded until the process ends; its symbols are its own. `problem` says why it was not
// loaded.
struct Library {
  void* handle = nullptr;
};
Library load_library(const std::filesystem::path& file, std::string& problem);
void* function_of(Library library, const char* name) noexcept;  // null if it has none

// A lock between processes, on a file that is created if missing and never removed. It is released with the object or
// at the end of the process. Waits at most `patience` for other holders; held() tells whether the lock was acquired.
class FileLock {
 public:
  FileLock(const std::filesystem::path& path, std::chrono::milliseconds patience);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const noexcept { return held_; }

 private:
  int descriptor_ = -1;
  bool held_ = false;
};

// A file that exists while this process tries something that might crash it. It is removed with the object; if the
// process dies before that, it stays behind and tells the next process.
class TrialMarker {
 public:
  enum class State {
    taken,        // nobody else is trying it: go ahead
    left_behind,  // a process died during the trial
    busy,         // another process is trying it
    impossible    // the file cannot be written
  };
  explicit TrialMarker(std::filesystem::path path);
  ~TrialMarker();
  TrialMarker(const TrialMarker&) = delete;
  TrialMarker& operator=(const TrialMarker&) = delete;
  State state() const noexcept { return state_; }

 private:
  State take() noexcept;
  std::filesystem::path path_;
  int descriptor_ = -1;
  State state_;
};

// Overwrites bytes at an offset of a regular file that begins with `expected`. False if it does not, or cannot be
// written.
bool overwrite(const std::filesystem::path& path, std::span<const std::byte> expected, uint64_t offset,
               std::span<const std::byte> bytes);

// A duplicate of this file descriptor, closed on exec; -1 if the descriptor is not open.
int duplicate_descriptor(int descriptor) noexcept;
// What a descriptor refers to, according to the system. Nothing is read from it, because that might block for ever.
enum class DescriptorKind {
  closed,         // not open
  memory_file,    // memory represented by a file: memfd_create, shm_open
  device_memory,  // a driver's memory, as far as can be told
  other,
};
struct DescriptorFacts {
  DescriptorKind kind;
  const char* name;           // for messages: "a directory"
  uint64_t bytes = 0;         // size of a memory file, or of other memory if known, otherwise 0
  bool keeps_length = false;  // memory files: nobody can shrink it, which would take away pages in use
};
DescriptorFacts inspect_descriptor(int descriptor) noexcept;
// Seals a memory file against shrinking. Returns false if its creator did not allow that.
bool keep_length(int descriptor) noexcept;
// Reads from a memory file, which never blocks. Returns false if it has fewer bytes.
bool read_at(int descriptor, uint64_t offset, std::span<std::byte> bytes) noexcept;
// Closes a duplicate if it still is one. A failed driver may have closed it already, and its number may have been
// reused.
void close_duplicate(int duplicate, int original) noexcept;
void close_on_exec(int descriptor) noexcept;
void close_descriptor(int descriptor) noexcept;

std::string program_name();  // without its folder
// The name given to this thread; empty if it has its program's name, as unnamed threads do.
std::string thread_name();

uint64_t physical_memory_bytes() noexcept;  // 0 if unknown

// While it exists, threads that this thread starts have all signals blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  alignas(16) std::byte before_[128];  // the system's signal set
};

// A per-thread pointer. `end` is called with it when the thread ends, after the thread_local destructors, and once more
// if that sets another pointer. It is not called at process exit. Create keys when the library is loaded.
class ThreadKey {
 public:
  explicit ThreadKey(void (*end)(void*)) noexcept;
  bool made() const noexcept { return made_; }   // false if the process has run out of keys
  bool set(const void* pointer) const noexcept;  // false if there is no memory

 private:
  unsigned key_ = 0;
  bool made_ = false;
};

// The number of forks between the process that loaded the library and this one. An object created under another number
// belongs to another process.
uint32_t fork_generation() noexcept;

// Has `handler` called in each forked child, before fork() returns there: for locks that other threads held, which
// nobody in the child would release. Call it when the library is loaded. False if there is no memory.
bool call_in_forked_children(void (*handler)()) noexcept;

}  // namespace tuff::platform
