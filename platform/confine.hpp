// In a program that was started for work that is not trusted: what it can no longer do, whatever becomes of it.
#pragma once

#include <string>

namespace tuff::platform {

// What it still has to do.
enum class Needs {
  compiler,          // memory, and its standard input
  processor_driver,  // threads, machine code, files to read
  device_driver      // the same, and what lies under /dev
};

// Each returns what holds from there on, or says what this system lacks, as a line for the log.
// No more rights by execve; files and, where the system knows how, networks (Landlock). Before any thread is started.
std::string forbid_files(Needs needs);
// Programs, networks, other processes, and what else is not needed (seccomp): of all threads there are and will be.
std::string forbid_calls(Needs needs);

}  // namespace tuff::platform
