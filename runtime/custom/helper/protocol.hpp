// The protocol between libtuff.so and tuff-compile, in addition to to_bytes() of custom_kernel.hpp.
//
//   tuff-compile SECONDS BYTES                    reads a CustomSource and compiles it
//   tuff-compile MILLISECONDS BYTES driver        reads a DriverTrial and has the driver compile it
//
// The answer is two messages, each preceded by its length in four bytes. The first is sent when the helper is about to
// process untrusted data: a line for the log on how it is confined. The second is a four-byte tuff_status, followed by
// the compiled kernel, by nothing, or by an error message. If the second message is missing, the source
// crashed the helper or made it exceed a limit.
#pragma once

#include <cstdint>

namespace tuff {

constexpr int kHelperOutOfMemory = 12;              // exit status
constexpr uint64_t kMaxRequestBytes = 80ull << 20;  // sources have far lower limits

}  // namespace tuff
