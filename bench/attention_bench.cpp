#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <stdexcept>

#include "bench/harness.hpp"

namespace bench {
namespace {

tuff::Causal causal_mode(const std::string& word) {
  if (word == "full") return tuff::Causal::none;
  if (word == "causal") return tuff::Causal::top_left;
  throw std::runtime_error("attention.txt: \"" + word + "\" is neither full nor causal");
}

}  // namespace

void add_attention() {
  for (const auto& row : read_table("attention")) {
    const uint64_t batch = to_number(row.at(0)), heads = to_number(row.at(1)), seq_q = to_number(row.at(2));
    const uint64_t seq_kv = to_number(row.at(3)), head_dim = to_number(row.at(4));
    const tuff::Causal causal = causal_mode(row.at(5));
    // Under a causal mask half of the scores are not needed, and not counted.
    const double share = causal == tuff::Causal::none ? 1 : 0.5;
    const auto flops =
        4.0 * share * static_cast<double>(batch * heads * seq_q) * static_cast<double>(seq_kv * head_dim);
    const uint64_t q_count = batch * heads * seq_q * head_dim, kv_count = batch * heads * seq_kv * head_dim;
    add(fmt::format("tuff/attention/{}x{}x{}x{}/keys {}/{}", batch, heads, seq_q, head_dim, seq_kv, row.at(5)),
        {flops, 0}, 8 * (q_count + kv_count), [=](const tuff::Context& context) {
          auto q = random_buffer(context, q_count);
          auto k = random_buffer(context, kv_count);
          auto v = random_buffer(context, kv_count);
          auto o = empty_buffer(context, q_count);
          return [=, &context] {
            context.attention(DType::f32, *q, *k, *v, *o, batch, heads, seq_q, seq_kv, head_dim,
                              1 / std::sqrt(static_cast<double>(head_dim)), causal);
          };
        });
  }
}

}  // namespace bench
