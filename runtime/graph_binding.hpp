// What tuff_graph_bind() refuses, on every backend.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "planning/buffer.hpp"
#include "planning/status.hpp"

namespace tuff::graph_binding {

inline constexpr const char* kNotUsed = "graph was not captured with memory of captured";
inline constexpr const char* kMapped = "graph uses a buffer that is mapped, needs tuff_unmap first";

// Devices' kernels were chosen for operands' offsets from multiples of this.
inline constexpr uint64_t kAlignment = 16;

// Whether the first bytes of two buffers overlap.
inline bool meet(const Buffer& a, uint64_t a_bytes, const Buffer& b, uint64_t b_bytes) {
  return a.allocation == b.allocation && a_bytes != 0 && b_bytes != 0 && a.offset < b.offset + b_bytes &&
         b.offset < a.offset + a_bytes;
}

// Bytes of an allocation.
struct Range {
  uint64_t begin, end;
};

inline void check_sizes(const Buffer& captured, const Buffer& replacement) {
  require(captured.allocation != nullptr && captured.bytes != 0, "captured holds 0 bytes, it contains no operand");
  require(replacement.bytes >= captured.bytes, "replacement holds {} bytes, captured {}", replacement.bytes,
          captured.bytes);
}

// Kernels were chosen for the alignment of their operands.
inline void check_alignment(uint64_t captured, uint64_t replacement, uint64_t alignment) {
  require(captured % alignment == replacement % alignment,
          "replacement begins {} bytes from a multiple of {}, captured {}", replacement % alignment, alignment,
          captured % alignment);
}

// `captured` overlaps an operand of the call.
inline void check_covers(const Range& captured, std::string_view call, const Range& operand) {
  require(operand.begin >= captured.begin && operand.end <= captured.end,
          "captured is bytes {}..{} of its memory, and {} uses {}..{} of it: it contains only part of an operand",
          captured.begin, captured.end, call, operand.begin, operand.end);
}

[[noreturn]] inline void fail_in_list() {
  fail(TUFF_ERROR_UNSUPPORTED, "captured is an operand of a call with arrays of buffers, which can't be replaced");
}

inline void check_conflict(bool conflict, std::string_view call) {
  require(!conflict, "with replacement an output of {} would overlap another operand", call);
}

// The replacements but that of the same memory, if there is one. `same` and `overlaps` compare what another one replaces
// with what is replaced now.
template <typename Replacement, typename Same, typename Overlaps>
std::vector<Replacement> others(const std::vector<Replacement>& replacements, const Same& same,
                                const Overlaps& overlaps) {
  std::vector<Replacement> kept;
  for (const Replacement& old : replacements) {
    if (same(old.from)) continue;
    require(!overlaps(old.from), "captured overlaps another buffer that was replaced; that has to be undone first");
    kept.push_back(old);
  }
  return kept;
}

}  // namespace tuff::graph_binding
