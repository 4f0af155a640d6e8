#include "runtime/json_text.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>

namespace tuff {
namespace {

// A character of UTF-8 or, if it is not one, the bytes that begin one.
struct Part {
  size_t bytes;
  bool whole;
};

Part part_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, true};
  if (first < 0xC2 || first > 0xF4) return {1, false};
  const size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The second byte's bounds refuse what is longer than necessary, surrogates, and what is beyond U+10FFFF.
  const unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < bytes; ++i) {
    if (at + i == text.size() || byte(i) < (i == 1 ? least : 0x80) || byte(i) > (i == 1 ? most : 0xBF))
      return {i, false};
  }
  return {bytes, true};
}

void add_ascii(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(c) >= 0x20) {
    out += c;
  } else {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
  }
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const Part part = part_at(text, at);
    if (!part.whole) {
      out += "\xEF\xBF\xBD";
    } else if (part.bytes == 1) {
      add_ascii(out, text[at]);
    } else {
      out += text.substr(at, part.bytes);
    }
    at += part.bytes;
  }
  return out + '"';
}

}  // namespace tuff
