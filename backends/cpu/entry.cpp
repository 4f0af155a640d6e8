// What the plug-in exports. This file alone is compiled for any processor of the architecture: it refuses those that
// lack instructions which the others use.
#include <dnnl.h>
#include <stdio.h>
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
tuff_status accepts(void* device, tuff_backend_function function, const void* call);
}  // namespace tuff_cpu

namespace {

#if defined(__x86_64__)
const char* missing_instructions() {
  // Not every compiler has names for the bits of these.
  constexpr unsigned int kMovbe = 1U << 22, kF16c = 1U << 29, kLzcnt = 1U << 5;
  unsigned int a = 0, b = 0, of_intel = 0, of_amd = 0, d = 0;
  __get_cpuid(1, &a, &b, &of_intel, &d);
  __get_cpuid(0x80000001U, &a, &b, &of_amd, &d);
  const bool all = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                   __builtin_cpu_supports("bmi2") && (of_intel & kMovbe) != 0 && (of_intel & kF16c) != 0 &&
                   (of_amd & kLzcnt) != 0;
  return all ? nullptr : "the processor lacks AVX2, FMA, BMI, BMI2, F16C, LZCNT or MOVBE";
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

tuff_status describe(tuff_device_properties* properties) {
  if (const char* missing = missing_instructions()) {
    snprintf(properties->name, sizeof properties->name, "%s", missing);
    return TUFF_ERROR_UNSUPPORTED;
  }
  char model[49];
  processor_name(model);
  const char* first = model;
  while (*first == ' ') ++first;
  snprintf(properties->name, sizeof properties->name, "CPU: %s (oneDNN)", first);
  snprintf(properties->vendor, sizeof properties->vendor, "Tuff");
  const dnnl_version_t* version = dnnl_version();
  snprintf(properties->driver, sizeof properties->driver, "oneDNN %d.%d.%d", version->major, version->minor,
           version->patch);
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
  munmap(begin + before + whole, kHugePage - before);
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

}  // namespace

extern "C" const tuff_backend* tuff_backend_entry(void) {
  static const tuff_backend backend = {sizeof(tuff_backend),
                                       TUFF_BACKEND_ABI_VERSION,
                                       "cpu",
                                       describe,
                                       tuff_cpu::open_device,
                                       tuff_cpu::close_device,
                                       function,
                                       allocate,
                                       release,
                                       tuff_cpu::accepts};
  return &backend;
}
