// What attention's kernels in PTX apply to scores besides the scale: soft cap, bias and byte mask. Mirrors
// scaled_scores() and masked_score() of attention_common.glsl.
//
// A thread of the matrix units has pairs of scores of two rows. Keys are assigned to the columns of a step in such an
// order that a thread's keys follow one another in memory, so that bias and mask are read 16 bytes at a time:
//
//   column   0  1 | 2  3 | 4  5 | 6  7 | 8  9 | ...        of 128: the thread with columns 8 j + 2 q and 8 j + 2 q + 1
//   key      0  1 |32 33 |64 65 |96 97 | 2  3 | ...        has the keys 32 q to 32 q + 31
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention/native/online_softmax.hpp"
#include "kernels/native/ptx.hpp"

namespace tuff::attention {

// What they depend on besides the kernel's text, in memory. Strides are in bytes.
struct ScoreNumbers {
  uint64_t bias_batch, bias_head, bias_row, mask_batch, mask_head, mask_row;
  float scale, cap;  // with bias or cap
  float inner;       // scale / cap
  uint32_t unused;
};

// Bytes of a bias (of `size` bytes) or mask (1) that a thread reads at once, if its keys are a fourth of `keys`.
uint32_t bytes_of_piece(uint32_t keys, uint32_t size);

// What a thread knows of a row: also the keys that the row sees, less the thread's own first one.
struct ScoreRow : OnlineSoftmax::Row {
  ptx::U32 end, first;  // without `first`, the row sees all keys up to the end
};

// Scores of keys that a row may not see become -infinity. They are those of the step from `key` on and of one or two
// rows: eight * 4 + half * 2 + i. With `options`, the keys are in the order of ScoreOptions.
void hide_scores(const std::vector<ptx::F32>& scores, std::span<const ScoreRow> rows, const ptx::U32& key,
                 bool options);

class ScoreOptions {
 public:
  // The bias has a type; 0: none. Without `pieces`, bias and mask are read element by element.
  struct Form {
    int32_t type = 0, bias = 0;
    bool mask = false, cap = false, pieces = false;
    uint32_t keys = 0;  // of a step
    bool any() const { return bias != 0 || mask || cap; }
  };
  ScoreOptions(ptx::Writer& w, const Form& form) : w_(w), form_(form) {}

  // The kernel's parameters.
  void declare();
  // Reads the numbers that scores are multiplied by.
  void read_numbers();

  // The order of keys. Which key of a step is in this row of keys and values in shared memory, the next eight rows'
  // keys being 2 further; the first key of a thread; which of its keys score (eight, i) belongs to.
  ptx::U32 key_of_row(const ptx::U32& row) const;
  ptx::U32 first_key(const ptx::U32& quad) const { return quad * w_.constant(form_.keys / 4); }
  static uint32_t key_of(uint32_t eight, uint32_t i) { return 2 * eight + i; }

  // The rows of bias and mask that belong to a query row.
  struct Rows {
    ptx::U64 bias, mask;
  };
  Rows find(const ptx::U32& batch, const ptx::U32& head, const ptx::U32& row) const;
  // As variables of a thread, whose two rows begin at its first key.
  void make(std::array<Rows, 2>& rows) const;
  void start(const Rows& rows, const ptx::U32& batch, const ptx::U32& head, const ptx::U32& row,
             const ptx::U32& quad) const;

  // Starts reading what belongs to the step from `key` on. `left`: how many of this thread's keys exist, if positive.
  void load(const std::array<Rows, 2>& rows, const ptx::U32& key, const ptx::U32& left);
  // Applies it to the step's scores, eight * 4 + half * 2 + i. Rows with scores that are beyond what this computes
  // accurately are marked as `again`.
  void apply(const std::vector<ptx::F32>& scores, const std::array<Rows, 2>& rows, const ptx::U32& key,
             const ptx::U32& left, const OnlineSoftmax::Row& first, const OnlineSoftmax::Row& second);
  // One score of a row that is computed key by key.
  ptx::F32 applied(const OnlineSoftmax& softmax, const ptx::F32& score, const Rows& rows, const ptx::U32& key) const;
  // Tells the second-level cache that a row's bias and mask of `keys` keys from `key` on will be read.
  void prefetch(const Rows& rows, const ptx::U32& key, const ptx::U32& end) const;

 private:
  uint32_t size() const { return form_.bias == 1 ? 4 : 2; }
  uint32_t own() const { return form_.keys / 4; }
  void load_pieces(std::vector<ptx::U32>& words, const ptx::U64& from, const ptx::U32& left, uint32_t element) const;
  void apply_cap(const std::vector<ptx::F32>& scores, const ptx::F32& largest) const;
  void apply_bias(const std::vector<ptx::F32>& scores, const std::array<Rows, 2>& rows, const ptx::U32& key,
                  const ptx::U32& left) const;
  void apply_mask(const std::vector<ptx::F32>& scores, const std::array<Rows, 2>& rows, const ptx::U32& key,
                  const ptx::U32& left) const;
  ptx::F32 near_tanh(const ptx::F32& squared, const ptx::F32& x) const;
  ptx::F32 far_tanh(const ptx::F32& magnitude) const;
  ptx::F32 bias_of(uint32_t half, uint32_t key) const;

  ptx::Writer& w_;
  const Form form_;
  ptx::U64 bias_, mask_, numbers_;
  ptx::F32 scale_, cap_, inner_;
  std::array<std::vector<ptx::U32>, 2> bias_words_, mask_words_;
};

}  // namespace tuff::attention
