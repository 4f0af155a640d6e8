// Checks of the byte ranges of copies and fills.
#pragma once

#include <cstdint>
#include <string_view>

#include "planning/buffer.hpp"

namespace tuff::capi {

// Requires that [offset, offset + bytes) is within the buffer.
void check_range(const Buffer& buffer, std::string_view name, uint64_t offset, uint64_t bytes);
// Also requires that the buffer is not mapped.
void check_accessible(const Buffer& buffer, std::string_view name, uint64_t offset, uint64_t bytes);
// Requires that two ranges in buffers of one context do not overlap.
void check_apart(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset, uint64_t bytes);

}  // namespace tuff::capi
