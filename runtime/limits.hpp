// Bounds that every backend keeps.
#pragma once

#include <cstdint>

namespace tuff {

inline constexpr uint32_t kMaxStreams = 1024;  // alive, of a context, the default one among them

}  // namespace tuff
