// A file that a process keeps up to date by writing to memory, for other processes of the same user to read: created
// with mode 0600, mapped by its writer, removed when the writer ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuff::platform {

// The folder for files that are of use only while processes run: $XDG_RUNTIME_DIR/tuff, created with mode 0700 if
// missing. nullopt, with the reason in `problem`, if there is none, it belongs to another user, or others may write to
// it.
std::optional<std::filesystem::path> runtime_directory(std::string& problem);

struct SharedPage {
  std::byte* memory = nullptr;  // null: none could be made
  uint64_t bytes = 0;
  std::filesystem::path path;
};

// Makes a file of so many zeros, named by the process's number, a full stop and six letters or digits ("123.k2d9xQ"),
// and maps it. All of its bytes are allocated at once, because a write to memory that the disk has no room for ends the
// process. The process holds a lock on the file until it ends: that tells readers that it lives, and the system
// releases it however the process ends. `problem` says why it was not made.
SharedPage make_shared_page(const std::filesystem::path& folder, uint64_t bytes, std::string& problem);
// Whether a file is named so. Any other file in the folder is somebody else's.
bool is_page_name(std::string_view name) noexcept;
void remove_shared_page(const SharedPage& page) noexcept;  // the file; the memory stays
// In a forked child: its writes no longer reach the file. Calls nothing that a fork handler must not call.
void keep_shared_page_private(const SharedPage& page) noexcept;

// A page as a reader finds it.
struct SharedPageCopy {
  enum class State {
    live,       // its process runs
    dead,       // its process has ended
    unreadable  // it is no page of this user, or vanished meanwhile
  };
  State state = State::unreadable;
  int64_t process = 0;  // 0: dead, or a process that this one has no number for (in another container)
  std::vector<std::byte> bytes;
  std::string problem;  // unreadable: why
};

// Reads at most `max_bytes`. Not for this process's own page: closing it again would release the lock.
SharedPageCopy read_shared_page(const std::filesystem::path& path, uint64_t max_bytes);
// Removes the file of a process that has ended. One that was made within the last seconds stays: its process may not
// have locked it yet.
bool remove_dead_page(const std::filesystem::path& path) noexcept;

int64_t process_number() noexcept;
// Nanoseconds since 1970.
int64_t wall_clock() noexcept;

}  // namespace tuff::platform
