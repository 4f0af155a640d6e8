#include "capi/ranges.hpp"

#include "planning/status.hpp"

namespace tuff::capi {

void check_range(const Buffer& buffer, std::string_view name, uint64_t offset, uint64_t bytes) {
  if (offset <= buffer.bytes && bytes <= buffer.bytes - offset) [[likely]] {
    return;
  }
  if (offset + bytes < offset) {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "{} holds {} bytes, the range is {} bytes from {} on", name, buffer.bytes, bytes,
         offset);
  }
  fail(TUFF_ERROR_INVALID_ARGUMENT, "{} holds {} bytes, the range is {}..{}", name, buffer.bytes, offset,
       offset + bytes);
}

void check_accessible(const Buffer& buffer, std::string_view name, uint64_t offset, uint64_t bytes) {
  check_range(buffer, name, offset, bytes);
  require(buffer.allocation == nullptr || !buffer.allocation->mapped.load(std::memory_order_relaxed),
          "{} is mapped, needs tuff_unmap first", name);
}

void check_apart(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset, uint64_t bytes) {
  const uint64_t dst_begin = dst.offset + dst_offset, src_begin = src.offset + src_offset;
  const bool apart =
      dst.allocation != src.allocation || dst_begin + bytes <= src_begin || src_begin + bytes <= dst_begin;
  require(apart, "dst overlaps src (bytes {}..{} and {}..{} of one allocation)", dst_begin, dst_begin + bytes,
          src_begin, src_begin + bytes);
}

}  // namespace tuff::capi
