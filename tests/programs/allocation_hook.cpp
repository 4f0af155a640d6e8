#include "programs/allocation_hook.hpp"

#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

namespace {

struct Text {
  uintptr_t begin = 0, end = 0;
  bool has(uintptr_t address) const { return address >= begin && address < end; }
};
Text library, cxx, program;
std::atomic<bool> watching{false};

std::atomic<uint64_t> seen{0}, wanted{0};
std::atomic<bool> failing_on{false}, failed{false};
std::atomic<int64_t> live{0};

// Paths by the number of their allocation. Never grows: recording must not allocate.
constexpr size_t kMaxPaths = 1 << 18;
std::atomic<uint64_t> paths[kMaxPaths];
std::atomic<unsigned> path_frames{0};

struct Search {
  uintptr_t function;
  Text found;
};

int find_text(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    const Text text{info->dlpi_addr + segment.p_vaddr, info->dlpi_addr + segment.p_vaddr + segment.p_memsz};
    if (text.has(search.function)) search.found = text;
  }
  return 0;
}

Text text_of(const void* function) {
  Search search{reinterpret_cast<uintptr_t>(function), {}};
  dl_iterate_phdr(find_text, &search);
  return search.found;
}

// The first frame outside this program and the C++ library decides.
_Unwind_Reason_Code look_at_frame(_Unwind_Context* context, void* data) {
  const auto address = static_cast<uintptr_t>(_Unwind_GetIP(context)) - 1;
  if (program.has(address) || cxx.has(address)) return _URC_NO_REASON;
  *static_cast<bool*>(data) = library.has(address);
  return _URC_END_OF_STACK;
}

bool by_library(const void* caller) {
  if (!watching.load(std::memory_order_relaxed)) return false;
  const auto address = reinterpret_cast<uintptr_t>(caller) - 1;
  if (library.has(address)) return true;
  if (!cxx.has(address)) return false;
  bool result = false;
  _Unwind_Backtrace(look_at_frame, &result);
  return result;
}

struct Path {
  unsigned frames;
  uint64_t hash;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* data) {
  auto& path = *static_cast<Path*>(data);
  const auto address = static_cast<uintptr_t>(_Unwind_GetIP(context));
  if (!library.has(address - 1)) return _URC_NO_REASON;
  path.hash = (path.hash ^ (address - library.begin)) * 0x9E3779B97F4A7C15u;
  path.hash ^= path.hash >> 29;
  return --path.frames == 0 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void record_path(uint64_t number) {
  Path path{path_frames.load(std::memory_order_relaxed), 0};
  if (path.frames == 0 || number > kMaxPaths) return;
  _Unwind_Backtrace(add_frame, &path);
  paths[number - 1].store(path.hash);
}

// Precedes each allocation.
struct Header {
  void* block;
  bool of_library;
};
constexpr size_t kHeader = 16;
static_assert(sizeof(Header) <= kHeader);

void* allocate(size_t size, size_t alignment, const void* caller) {
  const bool ours = by_library(caller);
  if (ours) {
    const uint64_t number = seen.fetch_add(1) + 1, limit = wanted.load();
    if (limit != 0 && (number == limit || (number > limit && failing_on.load()))) {
      failed.store(true);
      return nullptr;
    }
    record_path(number);
  }
  const size_t room = std::max(alignment, kHeader);
  void* block = size > SIZE_MAX - 2 * room ? nullptr : std::malloc(size + 2 * room);
  if (block == nullptr) return nullptr;
  const uintptr_t at = (reinterpret_cast<uintptr_t>(block) + kHeader + room - 1) / room * room;
  auto* memory = reinterpret_cast<char*>(at);
  const Header header{block, ours};
  std::memcpy(memory - kHeader, &header, sizeof header);
  if (ours) live.fetch_add(1);
  return memory;
}

void release(void* memory) {
  if (memory == nullptr) return;
  Header header;
  std::memcpy(&header, static_cast<char*>(memory) - kHeader, sizeof header);
  if (header.of_library) live.fetch_sub(1);
  std::free(header.block);
}

void* allocate_or_throw(size_t size, size_t alignment, const void* caller) {
  if (void* memory = allocate(size, alignment, caller)) return memory;
  throw std::bad_alloc();
}

}  // namespace

namespace tuff_test {

void watch_library(const void* function) {
  library = text_of(function);
  program = text_of(reinterpret_cast<const void*>(&watch_library));
  cxx = text_of(reinterpret_cast<const void*>(&std::set_new_handler));
  watching.store(true);
}

void fail_allocation(uint64_t n, bool on) {
  failed.store(false);
  failing_on.store(on);
  seen.store(0);
  wanted.store(n);
}

bool stop_failing() {
  wanted.store(0);
  return failed.load();
}

void record_paths(unsigned frames) { path_frames.store(frames); }

std::vector<uint64_t> recorded_paths() {
  return {std::begin(paths), std::begin(paths) + std::min<size_t>(seen.load(), kMaxPaths)};
}

uint64_t allocations_seen() { return seen.load(); }
int64_t live_allocations() { return live.load(); }

}  // namespace tuff_test

#define VISIBLE __attribute__((visibility("default")))
#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

VISIBLE void* operator new(size_t size) { return allocate_or_throw(size, 1, CALLER); }
VISIBLE void* operator new[](size_t size) { return allocate_or_throw(size, 1, CALLER); }
VISIBLE void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1, CALLER); }
VISIBLE void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1, CALLER); }
VISIBLE void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment), CALLER);
}
VISIBLE void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment), CALLER);
}
VISIBLE void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(alignment), CALLER);
}
VISIBLE void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(alignment), CALLER);
}
VISIBLE void operator delete(void* memory) noexcept { release(memory); }
VISIBLE void operator delete[](void* memory) noexcept { release(memory); }
VISIBLE void operator delete(void* memory, size_t) noexcept { release(memory); }
VISIBLE void operator delete[](void* memory, size_t) noexcept { release(memory); }
VISIBLE void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
VISIBLE void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
VISIBLE void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
VISIBLE void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
VISIBLE void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }
VISIBLE void operator delete[](void* memory, size_t, std::align_val_t) noexcept { release(memory); }
