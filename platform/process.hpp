// Helper programs that run beside the library: where they are, and how to run one with a time limit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tuff::platform {

// The folder of the file that this code was loaded from (libtuff.so's), as it was at load time, independent of the
// current working directory. Empty if the system does not say.
std::filesystem::path library_folder();

// Why code in this folder, which is beside the library, is not to be run: it is a link, it belongs to another than
// root, this user and the library's owner, or all users may write to it. Empty if nothing is wrong, or if there is no
// such folder.
std::string distrust_of_folder(const std::filesystem::path& folder);

struct ProcessEnd {
  enum class Kind { exited, signalled, timed_out, too_much_output, not_started, unknown };
  Kind kind;
  int code;            // exit status, signal number or errno
  std::string output;  // its answer
};

// Runs a program until it ends. Its standard input is a socket: it reads `input` from there and writes its answer back
// to the same socket; anything it prints is discarded. It inherits no files and no signal mask, and its environment is
// what is given here, as "NAME=value". It is killed after `milliseconds`, or if it writes more than `max_output_bytes`.
ProcessEnd run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                       std::string_view input, uint64_t milliseconds, uint64_t max_output_bytes,
                       const std::vector<std::string>& environment = {});

// In the helper program: limits this process's resources from here on. Opens no files.
void limit_this_process(uint64_t cpu_seconds, uint64_t memory_bytes);
// The same for a process that is already working: the limits are relative to what it has used so far. SIGALRM ends it
// after `milliseconds`.
void limit_this_process_from_now(uint64_t milliseconds, uint64_t memory_bytes);

// In the helper program: reads all of the input (false if it is longer than max_bytes or cannot be read), and writes
// the answer.
bool read_input(std::string& bytes, uint64_t max_bytes);
bool write_answer(std::string_view bytes);

}  // namespace tuff::platform
