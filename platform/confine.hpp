// Restricts a process that was started for untrusted work, for the rest of its life.
#pragma once

#include <string>

namespace tuff::platform {

// What the process still has to do.
enum class Needs {
  compiler,      // memory and its standard input
  cpu_driver,    // threads, machine code, files to read
  device_driver  // the same, and the files under /dev
};

// Each function returns a line for the log: the restrictions now in force, or what the system lacks.
// No more privileges through execve; no files and, where the kernel supports it, no networking (Landlock). Call it
// before any thread is started.
std::string forbid_files(Needs needs);
// No programs, networking, other processes or anything else that is not needed (seccomp). Applies to all current and
// future threads.
std::string forbid_calls(Needs needs);

}  // namespace tuff::platform
