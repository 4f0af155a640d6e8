#include <fmt/format.h>

#include <memory>
#include <stdexcept>

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
    const uint64_t bytes = 2 * element_bytes(dtype) * (q_count + kv_count);
    const std::string shared = desc.kv_heads == desc.heads ? "" : fmt::format(" on {}", desc.kv_heads);
    // With few queries, reading keys and values is the limit; with many, arithmetic is.
    const Work work = desc.seq_q <= 8 ? Work{0, static_cast<double>(bytes)} : Work{flops, 0};
    add(fmt::format("tuff/attention/{}x{}{}x{}x{}/keys {}/{}{}", desc.batch, desc.heads, shared, desc.seq_q,
                    desc.head_dim, desc.seq_kv, row.at(6), dtype_suffix(dtype)),
        work, bytes, [=](const tuff::Context& context) {
          auto q = random_buffer(context, q_count, dtype);
          auto k = random_buffer(context, kv_count, dtype);
          auto v = random_buffer(context, kv_count, dtype);
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
