// What libtuff.so and tuff-compile agree on, beside custom_kernel.hpp's to_bytes: an answer is a tuff_status of four
// bytes, then the compiled kernel, or the message that says why there is none.
#pragma once

#include <cstdint>

namespace tuff {

constexpr int kHelperOutOfMemory = 12;              // its exit status
constexpr uint64_t kMaxRequestBytes = 80ull << 20;  // sources are bounded long before

}  // namespace tuff
