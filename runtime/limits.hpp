// Limits that all backends enforce.
#pragma once

#include <cstdint>

namespace tuff {

inline constexpr uint32_t kMaxStreams = 1024;  // alive streams per context, including the default one

}  // namespace tuff
