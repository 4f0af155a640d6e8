// What libtuff.so and tuff-compile agree on, beside custom_kernel.hpp's to_bytes.
//
//   tuff-compile SECONDS BYTES                    reads a CustomSource, compiles it
//   tuff-compile MILLISECONDS BYTES driver        reads a DriverTrial, has the driver compile it
//
// It answers in two messages, each with its length of four bytes in front: once it is ready to begin with what is not
// trusted, a line for the log on how it is confined; then a tuff_status of four bytes, and the compiled kernel,
// nothing, or the message that says why there is none. Where the second is missing, the source is why.
#pragma once

#include <cstdint>

namespace tuff {

constexpr int kHelperOutOfMemory = 12;              // its exit status
constexpr uint64_t kMaxRequestBytes = 80ull << 20;  // sources are bounded long before

}  // namespace tuff
