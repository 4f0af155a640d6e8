// Whether this program is instrumented. A sanitizer keeps freed memory for a while, so that memory cannot be flat.
#pragma once

namespace tuff_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace tuff_test
