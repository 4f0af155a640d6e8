// What the plug-in exports. This file alone is compiled for any processor of the architecture: it refuses those that
// lack instructions which the others use.
#include <dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "tuff/backend.h"

namespace tuff_cpu {
tuff_status open_device(void** device);
void close_device(void* device);
tuff_backend_function function_for(const char* operation);
}  // namespace tuff_cpu

namespace {

#if defined(__x86_64__)
const char* missing_instructions() {
  const bool all = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
                   __builtin_cpu_supports("f16c");
  return all ? nullptr : "the processor lacks AVX2, FMA, BMI2 or F16C";
}

void processor_name(char* text) {  // of 49 bytes
  unsigned int words[12] = {};
  if (__get_cpuid_max(0x80000000U, nullptr) < 0x80000004U) {
    strcpy(text, "x86-64");
    return;
  }
  for (unsigned int i = 0; i < 3; ++i) {
    __get_cpuid(0x80000002U + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
  }
  memcpy(text, words, 48);
  text[48] = '\0';
}
#else
const char* missing_instructions() { return nullptr; }
void processor_name(char* text) { strcpy(text, "processor"); }
#endif

// Text and number of at most three digits.
char* append(char* to, const char* text) {
  const size_t length = strlen(text);
  memcpy(to, text, length + 1);
  return to + length;
}
char* append(char* to, unsigned number) {
  char digits[4] = {};
  int at = 3;
  do {
    digits[--at] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0 && at > 0);
  return append(to, digits + at);
}

tuff_status describe(tuff_device_properties* properties) {
  if (const char* missing = missing_instructions()) {
    append(properties->name, missing);
    return TUFF_ERROR_UNSUPPORTED;
  }
  char model[49];
  processor_name(model);
  const char* first = model;
  while (*first == ' ') ++first;
  append(append(append(properties->name, "CPU: "), first), " (oneDNN)");
  append(properties->vendor, "Tuff");
  const dnnl_version_t* version = dnnl_version();
  char* end = append(properties->driver, "oneDNN ");
  end = append(append(append(append(append(end, static_cast<unsigned>(version->major)), "."),
                             static_cast<unsigned>(version->minor)),
                      "."),
               static_cast<unsigned>(version->patch));
  properties->driver_version = TUFF_VERSION;
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  properties->compute_units = cores > 0 ? static_cast<uint32_t>(cores) : 1;
  return TUFF_OK;
}

tuff_backend_function function(void*, const char* operation) { return tuff_cpu::function_for(operation); }

// Large buffers begin at a multiple of the size of huge pages, and ask for them: a loop over fresh memory spends most
// of its time on page faults otherwise.
constexpr uint64_t kHugePage = 2 << 20, kSmallest = 4 << 20, kAlignment = 256;

void* allocate(void*, uint64_t bytes, int32_t zeroed) {
  if (bytes < kSmallest) {
    void* memory = nullptr;
    if (posix_memalign(&memory, kAlignment, bytes) != 0) return nullptr;
    if (zeroed == 1) memset(memory, 0, bytes);
    return memory;
  }
  // Pages of the system are zero.
  if (bytes > UINT64_MAX - 2 * kHugePage) return nullptr;
  const uint64_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage, with_room = whole + kHugePage;
  void* mapped = mmap(nullptr, with_room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(mapped);
  const uint64_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before != 0) munmap(begin, before);
  if (kHugePage - before != 0) munmap(begin + before + whole, kHugePage - before);
  madvise(begin + before, whole, MADV_HUGEPAGE);
  return begin + before;
}

void release(void*, void* memory, uint64_t bytes) {
  if (bytes < kSmallest) {
    free(memory);
  } else {
    munmap(memory, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  }
}

tuff_status open(void** device) { return tuff_cpu::open_device(device); }
void close(void* device) { tuff_cpu::close_device(device); }

}  // namespace

extern "C" const tuff_backend* tuff_backend_entry(void) {
  static const tuff_backend backend = {
      sizeof(tuff_backend), TUFF_BACKEND_ABI_VERSION, "cpu", describe, open, close, function, allocate, release};
  return &backend;
}
