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
#include <vector>

namespace tuff::platform {

std::optional<std::string> environment(const char* name);             // nullopt if unset or empty
std::optional<std::string> environment_even_empty(const char* name);  // nullopt if unset

// A variable that is read once and kept: environment_once<"TUFF_GEMM_VARIANT">().
template <size_t n>
struct VariableName {
  constexpr VariableName(const char (&name)[n]) { std::copy_n(name, n, text); }
  char text[n] = {};
};
template <VariableName name>
const std::optional<std::string>& environment_once() {
  static const std::optional<std::string> value = environment(name.text);
  return value;
}

// The folder for Tuff's files, made with mode 0700 if missing: $XDG_CACHE_HOME/tuff, else
// $HOME/.cache/tuff. nullopt if there is none, it is not ours, or others may write to it.
std::optional<std::filesystem::path> cache_directory();

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

// A second file descriptor of what this one refers to, closed on exec; -1 if it refers to nothing.
int duplicate_descriptor(int descriptor) noexcept;
// Whether it is a pipe's or a socket's, which whoever reads from it may wait on for ever.
bool is_stream(int descriptor) noexcept;
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

// Counts the forks between the process that loaded the library and this one: an object made under
// another number belongs to another process.
uint32_t fork_generation() noexcept;

}  // namespace tuff::platform
