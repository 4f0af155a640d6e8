#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "bench/harness.hpp"

namespace bench {
namespace {

// "causal" is for prompts, whose first query sees one key; "decode" is for queries at the end of a KV cache.
int32_t causal_mode(const std::string& word) {
  if (word == "full") return TUFF_CAUSAL_NONE;
  if (word == "causal") return TUFF_CAUSAL_TOP_LEFT;
  if (word == "decode") return TUFF_CAUSAL_BOTTOM_RIGHT;
  throw std::runtime_error("attention.txt: \"" + word + "\" is not full, causal or decode");
}

// How keys and values are stored, if the row says so behind its type.
struct Stored {
  std::string name;  // for the benchmark's name
  int32_t type = 0, format = 0;
  uint64_t bytes(uint64_t numbers, DType dtype) const {
    if (format == TUFF_QUANT_Q4_0) return numbers / 32 * 18;
    if (format == TUFF_QUANT_Q8_0) return numbers / 32 * 34;
    return numbers * (type != 0 ? 1 : element_bytes(dtype));
  }
};
Stored stored_as(const std::vector<std::string>& row) {
  if (row.size() <= 8) return {};
  const std::string& word = row.at(8);
  if (word == "f8_e4m3") return {"/kv " + word, TUFF_F8_E4M3, 0};
  if (word == "f8_e5m2") return {"/kv " + word, TUFF_F8_E5M2, 0};
  if (word == "q4_0") return {"/kv " + word, 0, TUFF_QUANT_Q4_0};
  if (word == "q8_0") return {"/kv " + word, 0, TUFF_QUANT_Q8_0};
  throw std::runtime_error("attention.txt: \"" + word + "\" is not f8_e4m3, f8_e5m2, q4_0 or q8_0");
}
// Random bytes, whose bits say that 8-bit floats are below 2, and scales of blocks below 2^-11.
std::shared_ptr<tuff::Buffer> stored_buffer(const tuff::Context& context, uint64_t count, DType dtype,
                                            const Stored& stored) {
  if (stored.name.empty()) return random_buffer(context, count, dtype);
  const uint64_t bytes = stored.bytes(count, dtype);
  std::vector<uint8_t> values(std::min(bytes, uint64_t{1} << 20));
  uint32_t state = 1;
  for (uint8_t& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<uint8_t>(state >> 24 & (stored.format != 0 ? 0x8f : 0xbf));
  }
  auto buffer = empty_buffer(context, (bytes + 3) / 4);
  for (uint64_t at = 0; at < bytes; at += values.size()) {
    buffer->upload_at(at, values.data(), std::min<uint64_t>(values.size(), bytes - at));
  }
  return buffer;
}

}  // namespace

void add_attention() {
  for (const auto& row : read_table("attention")) {
    tuff_attention_desc desc{};
    desc.batch = to_number(row.at(0)), desc.heads = to_number(row.at(1)), desc.kv_heads = to_number(row.at(2));
    desc.seq_q = to_number(row.at(3)), desc.seq_kv = to_number(row.at(4)), desc.head_dim = to_number(row.at(5));
    desc.causal = causal_mode(row.at(6));
    const DType dtype = to_dtype(row, 7);
    desc.dtype = static_cast<int32_t>(dtype);
    const uint64_t q_count = desc.batch * desc.heads * desc.seq_q * desc.head_dim;
    const uint64_t kv_count = desc.batch * desc.kv_heads * desc.seq_kv * desc.head_dim;
    // Half of the scores are masked by the causal rule and not counted.
    const double share = desc.causal == TUFF_CAUSAL_TOP_LEFT ? 0.5 : 1;
    const double flops = 4.0 * share * static_cast<double>(q_count) * static_cast<double>(desc.seq_kv);
    const Stored stored = stored_as(row);
    desc.k_type = desc.v_type = stored.type;
    desc.k_format = desc.v_format = stored.format;
    const uint64_t bytes = 2 * (element_bytes(dtype) * q_count + stored.bytes(kv_count, dtype));
    const std::string shared = desc.kv_heads == desc.heads ? "" : fmt::format(" on {}", desc.kv_heads);
    // With few queries, reading keys and values is the limit; with many, arithmetic is.
    const Work work = desc.seq_q <= 8 ? Work{0, static_cast<double>(bytes)} : Work{flops, 0};
    add(fmt::format("tuff/attention/{}x{}{}x{}x{}/keys {}/{}{}{}", desc.batch, desc.heads, shared, desc.seq_q,
                    desc.head_dim, desc.seq_kv, row.at(6), dtype_suffix(dtype), stored.name),
        work, bytes, [=](const tuff::Context& context) {
          auto q = random_buffer(context, q_count, dtype);
          auto k = stored_buffer(context, kv_count, dtype, stored);
          auto v = stored_buffer(context, kv_count, dtype, stored);
          auto o = empty_buffer(context, q_count);
          return [=, &context] {
            tuff_attention_desc call = desc;
            call.q = q->handle(), call.k = k->handle(), call.v = v->handle(), call.o = o->handle();
            context.attention(call);
          };
        });
  }
}

}  // namespace bench
