// Text in JSON.
#pragma once

#include <string>
#include <string_view>

namespace tuff {

// The text as a string of JSON, with its quotation marks. Bytes that are not UTF-8 become U+FFFD: one for each part of
// a character, as the Unicode standard recommends.
std::string json_text(std::string_view text);

}  // namespace tuff
