// Text in the fixed arrays of structures.
#pragma once

#include <cstddef>
#include <string_view>

namespace tuff {

// Truncates text that does not fit; always NUL-terminated.
template <size_t size>
void copy_text(char (&out)[size], std::string_view text) {
  out[text.copy(out, size - 1)] = '\0';
}

}  // namespace tuff
