// All that differs by operating system: environment, paths, whole-file reads and atomic writes, memory, fork.
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

// True for a program that was started with more rights than its caller has: by another's uid, or by capabilities of its
// file. It does not trust the environment that it was given.
bool runs_with_other_rights() noexcept;

// Every variable that the library looks at, it looks at by these. Nothing is set for a program with others' rights.
const char* environment_text(const char* name) noexcept;              // null if unset; allocates nothing
std::optional<std::string> environment(const char* name);             // nullopt if unset or empty
std::optional<std::string> environment_even_empty(const char* name);  // nullopt if unset
// As "NAME=value", those whose names begin with one of these.
std::vector<std::string> environment_of(std::span<const std::string_view> prefixes);

// A variable that is read once and kept: environment_once<"TUFF_GEMM_VARIANT">(). For good: calls come at the process's
// end too.
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

// The folder for Tuff's files, made with mode 0700 if missing: $XDG_CACHE_HOME/tuff, else
// $HOME/.cache/tuff. nullopt if there is none, it is not ours, or others may write to it.
std::optional<std::filesystem::path> cache_directory();

// The names in a folder, without "." and ".."; none where it cannot be read. libstdc++'s directory_iterator allocates
// in functions that may not throw, and ends the process where there is no memory.
std::vector<std::string> names_in(const std::filesystem::path& folder);

// nullopt where it cannot be read whole; `problem`, if given, then says why.
std::optional<std::vector<std::byte>> read_file(const std::filesystem::path& path, uint64_t max_bytes,
                                                std::string* problem = nullptr);

// Writes a temporary file beside path and renames it over path. False if that failed; nothing is left behind.
bool write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);

// A lock between processes, by a file that is made if it is missing and stays; it ends with the object, or its process.
// Waits for others no longer than that: held() tells.
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

// A file that is there while this process tries something that it may not survive. It goes with the object; where the
// process has ended before, it stays, and whoever comes next learns of it.
class TrialMarker {
 public:
  enum class State {
    taken,        // nobody else tries it: go on
    left_behind,  // a process has ended in the middle of it
    busy,         // another process is trying it
    impossible    // no file can be written
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

// Puts bytes at a place of an ordinary file that begins as expected. False if it does not, or cannot be written.
bool overwrite(const std::filesystem::path& path, std::span<const std::byte> expected, uint64_t offset,
               std::span<const std::byte> bytes);

// A second file descriptor of what this one refers to, closed on exec; -1 if it refers to nothing.
int duplicate_descriptor(int descriptor) noexcept;
// What a descriptor is of, by what the system says: nothing is read from it, which may wait for ever.
enum class DescriptorKind {
  closed,         // of nothing
  memory_file,    // pages of the system's that a file stands for: memfd_create, shm_open
  device_memory,  // a driver's, as far as can be told
  other,
};
struct DescriptorFacts {
  DescriptorKind kind;
  const char* name;    // for messages: "a directory"
  uint64_t bytes = 0;  // of a memory file; of other memory 0 where it is not told
  bool keeps_length =
      false;  // of a memory file: nobody can make it shorter, which would take pages from whoever uses them
};
DescriptorFacts inspect_descriptor(int descriptor) noexcept;
// Has a memory file keep its length for good. False where its maker did not allow that.
bool keep_length(int descriptor) noexcept;
// Of a memory file, which never waits. False unless there are so many bytes.
bool read_at(int descriptor, uint64_t offset, std::span<std::byte> bytes) noexcept;
// Closes a duplicate, if it still is one: a driver that failed may have closed it, and its number be another's by now.
void close_duplicate(int duplicate, int original) noexcept;
void close_on_exec(int descriptor) noexcept;
void close_descriptor(int descriptor) noexcept;

// What this thread was called; empty if it has its program's name, as threads do that nobody named.
std::string thread_name();

uint64_t physical_memory_bytes() noexcept;  // 0 if the system does not say

// While it lives, threads that this thread starts have every signal blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  alignas(16) std::byte before_[128];  // the system's signal set
};

// A pointer for each thread, which `end` is called with when the thread ends, after its thread_local objects; once more
// if that sets another. At the end of the process it is not called. To be made when the library is loaded.
class ThreadKey {
 public:
  explicit ThreadKey(void (*end)(void*)) noexcept;
  bool made() const noexcept { return made_; }   // the process has so many and no more
  bool set(const void* pointer) const noexcept;  // false where there is no memory

 private:
  unsigned key_ = 0;
  bool made_ = false;
};

// Counts the forks between the process that loaded the library and this one: an object made under
// another number belongs to another process.
uint32_t fork_generation() noexcept;

}  // namespace tuff::platform
