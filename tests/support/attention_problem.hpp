// Attention with its tensors, solved in f64 with a bound for each element of the output.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/stored.hpp"
#include "support/tensor.hpp"

namespace tuff_test {

// How rows are stored: [batch][heads][seq], [batch][seq][heads], or with unused space between rows and after each head
// and batch element, as in a partly filled KV cache.
enum class Layout { heads_first, rows_first, roomy };
// The dimension along which bias and mask are shared.
enum class Same { nothing, batches, heads, queries, all };

struct AttentionShape {
  uint64_t batch = 1, heads = 1, seq_q = 1, seq_kv = 1, head_dim = 1;
  int32_t causal = TUFF_CAUSAL_NONE;
  double scale = 0;    // 0: 1 / sqrt(head_dim), rounded to f32
  float spread = 1;    // q and k are in [-spread, spread)
  uint64_t shift = 0;  // bytes
  int32_t dtype = TUFF_F32;
  uint64_t kv_heads = 0, head_dim_v = 0;  // 0: heads, head_dim
  Layout layout = Layout::heads_first;
  double softcap = 0;
  int32_t bias_type = 0;  // 0: none
  bool mask = false;
  Same same = Same::nothing;  // for bias and mask
  uint64_t left = 0, right = 0;
  bool lengths = false, lse = false;
  bool rounds_stored = false;  // keys and values are rounded to dtype when they are dequantised

  float scale_used() const;
  uint64_t heads_of_kv() const { return kv_heads != 0 ? kv_heads : heads; }
  uint64_t dim_v() const { return head_dim_v != 0 ? head_dim_v : head_dim; }
  uint64_t queries() const { return batch * heads * seq_q * head_dim; }
  uint64_t keys() const { return batch * heads_of_kv() * seq_kv * head_dim; }
  uint64_t values() const { return batch * heads_of_kv() * seq_kv * dim_v(); }
  uint64_t results() const { return batch * heads * seq_q * dim_v(); }
  // True if the flat function can express it.
  bool plain() const;
  std::string name() const;
  double work() const;
};

// Where a layout has its rows: elements from one batch element, head and row to the next.
struct RowPlaces {
  std::array<uint64_t, 3> of;
  uint64_t count;
  uint64_t at(uint64_t b, uint64_t h, uint64_t i) const { return b * of[0] + h * of[1] + i * of[2]; }
};
RowPlaces row_places(Layout layout, uint64_t batch, uint64_t heads, uint64_t rows, uint64_t dim);
// Copies rows to their places in a layout, with guards between them.
std::vector<float> placed_rows(const RowPlaces& places, uint64_t batch, uint64_t heads, uint64_t rows, uint64_t dim,
                               const std::vector<float>& values);
// The inverse, which requires that the guards are there.
std::vector<float> gathered_rows(const RowPlaces& places, uint64_t batch, uint64_t heads, uint64_t rows, uint64_t dim,
                                 const std::vector<float>& raw);

// Optional inputs of a descriptor, as numbers on the host.
struct AttentionExtras {
  std::vector<float> bias = {};  // its shape follows from AttentionShape::same
  std::vector<unsigned char> mask = {};
  std::vector<int32_t> q_lengths = {}, kv_lengths = {};
};
AttentionExtras attention_extras(const AttentionShape& shape);
// The element of bias and mask for a batch element, head, query and key.
uint64_t attention_extra_at(const AttentionShape& shape, uint64_t b, uint64_t h, uint64_t i, uint64_t j);
// True if a query sees a key, following the header's wording.
bool attention_sees(const AttentionShape& shape, const AttentionExtras& extras, uint64_t b, uint64_t h, uint64_t i,
                    uint64_t j);

// The same on a device.
class StoredExtras {
 public:
  StoredExtras(tuff_context context, const AttentionShape& shape, const AttentionExtras& extras);
  template <typename Desc>
  void tell(Desc& desc) const {
    if (bias_type_ != 0) desc.bias = bias_, desc.bias_type = bias_type_;
    if (has_mask_) desc.mask = mask_;
    std::copy_n(strides_.begin(), 3, desc.bias_strides);
    std::copy_n(strides_.begin(), 3, desc.mask_strides);
    if (has_q_lengths_) desc.q_lengths = q_lengths_;
    if (has_kv_lengths_) desc.kv_lengths = kv_lengths_;
  }

 private:
  std::array<uint64_t, 3> strides_;
  int32_t bias_type_;
  bool has_mask_, has_q_lengths_, has_kv_lengths_;
  StoredTensor bias_;
  TypedTensor mask_, q_lengths_, kv_lengths_;
};

// The output of softmax(scale q k^T + mask) v and the error bound of an f32 result; if lse is given, its expected
// values too. Tensors are [batch][heads][seq][dim] here, whatever the layout.
Expected solve_attention(const AttentionShape& shape, const std::vector<float>& q, const std::vector<float>& k,
                         const std::vector<float>& v, const AttentionExtras& extras = {}, Expected* lse = nullptr);

tuff_status call_attention(tuff_stream stream, const AttentionShape& shape, tuff_buffer q, tuff_buffer k, tuff_buffer v,
                           tuff_buffer o);

void run_attention(tuff_context context, const AttentionShape& shape);
// The same with inputs from the caller.
void run_attention(tuff_context context, const AttentionShape& shape, const std::vector<float>& q,
                   const std::vector<float>& k, const std::vector<float>& v, const AttentionExtras& extras);

}  // namespace tuff_test
