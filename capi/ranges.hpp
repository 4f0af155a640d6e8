// Checks of the byte ranges that copies and fills are given.
#pragma once

#include <cstdint>
#include <string_view>

#include "planning/buffer.hpp"

namespace tuff::capi {

// The range [offset, offset + bytes) has to lie in the buffer.
void check_range(const Buffer& buffer, std::string_view name, uint64_t offset, uint64_t bytes);
// And the buffer may not be the host's at the moment.
void check_accessible(const Buffer& buffer, std::string_view name, uint64_t offset, uint64_t bytes);
// Two such ranges, of one context's buffers, may not overlap.
void check_apart(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset, uint64_t bytes);

}  // namespace tuff::capi
