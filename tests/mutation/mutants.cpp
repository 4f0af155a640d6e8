// The state behind mutants.hpp.
#include "tests/mutation/mutants.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace tuff_mutants {

int selected = 0;
unsigned char* reached = nullptr;

namespace {

// Before the library's own static variables.
__attribute__((constructor(101))) void read_environment() {
  if (const char* const number = std::getenv("TUFF_MUTANT")) selected = std::atoi(number);
  const char* const path = std::getenv("TUFF_MUTANTS_REACHED");
  if (path == nullptr) return;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) std::abort();
  void* const bytes = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) std::abort();
  reached = static_cast<unsigned char*>(bytes);
  close(file);
}

}  // namespace
}  // namespace tuff_mutants
