// Programs of our own that run beside the library: where they are, and running one with a limit on its time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tuff::platform {

// The folder of the file that this code was loaded from: libtuff.so's, as it was then, whatever the working directory
// is now. Empty if the system does not say.
std::filesystem::path library_folder();

struct ProcessEnd {
  enum class Kind { exited, signalled, timed_out, too_much_output, not_started, unknown };
  Kind kind;
  int code;            // exit status, number of the signal, or errno
  std::string output;  // what it answered
};

// Runs a program until it ends. Its standard input is a socket: it reads `input` from there, and writes its answer to
// the same place; what it prints is lost. It inherits no file and no signal mask, and of the environment what is given
// here, as "NAME=value"; after so many milliseconds, or more output than that, it is killed.
ProcessEnd run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                       std::string_view input, uint64_t milliseconds, uint64_t max_output_bytes,
                       const std::vector<std::string>& environment = {});

// In the program that was started: bounds what this process may use, from here on. It opens no files.
void limit_this_process(uint64_t cpu_seconds, uint64_t memory_bytes);
// The same for one that has begun to work: so much more than it has used. SIGALRM ends it after the milliseconds.
void limit_this_process_from_now(uint64_t milliseconds, uint64_t memory_bytes);

// And there: all of the input, false if it is more than that or cannot be read; and the answer.
bool read_input(std::string& bytes, uint64_t max_bytes);
bool write_answer(std::string_view bytes);

}  // namespace tuff::platform
