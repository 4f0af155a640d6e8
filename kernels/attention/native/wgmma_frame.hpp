// What attention's kernels with wgmma share: the parameters, the tiles of query rows and the keys that their rows see,
// the way from scores to weights, and the end of a tile. A kernel loads tensors into shared memory and multiplies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/native/attention_wgmma.hpp"
#include "kernels/attention/native/online_softmax.hpp"
#include "kernels/attention/native/score_options.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/ptx.hpp"

namespace tuff::attention {

class WgmmaFrame {
 protected:
  using F32 = ptx::F32;
  using Pred = ptx::Pred;
  using U32 = ptx::U32;
  using U64 = ptx::U64;

  static constexpr uint32_t kRows = Wgmma::kRows, kGroupRows = 64;
  static constexpr uint32_t kLoaders = ptx::kGroup, kComputing = 2 * ptx::kGroup;
  static constexpr uint32_t kFlagBytes = 16;  // a flag of each loading warp

  struct Layout {
    uint32_t q_bytes, stage_bytes, stages;
    uint32_t loader_registers, computing_registers;
  };

  WgmmaFrame(const Wgmma& options, const char* name)
      : o_(options),
        w_("sm_90a", name),
        options_(w_, {options.type, options.bias, options.mask, options.cap, options.pieces, options.keys}) {}

  // The whole text.
  template <typename Load, typename Compute>
  std::string write(const Layout& layout, const Load& load, const Compute& compute) {
    declare(layout);
    ptx::divide_work(thread_, layout.loader_registers, layout.computing_registers, load, compute);
    return w_.text(Wgmma::kThreads);
  }

  struct Tensor {
    const char* name;
    size_t batch_at, head_at, row_at;  // of the strides in the push block
    U64 base, batch, head;
    U32 row;  // bytes
  };
  // A tile of query rows, and the keys that it sees.
  struct Tile {
    U32 row, batch, head, kv_head;
    U32 rows_here, keys_here, diagonal;
    U32 begin, end;        // keys that some row sees
    U32 all_from, all_to;  // keys that all rows see
  };

  uint32_t keys() const { return o_.keys; }
  bool partial() const { return o_.hiding || o_.lengths != 0; }  // whether some rows may not see keys that others see
  static uint32_t padded(uint32_t dim) { return (dim + 15) / 16 * 16; }
  U64 base_of(const Tensor& x, const Tile& tile, const U32& head);

  // Calls body(tile) for each of the block's tiles. Every other round goes backwards, so that blocks with long tiles
  // get short ones next.
  template <typename Body>
  void each_tile(const Body& body) {
    const U32 blocks = w_.special("%nctaid.x"), block = w_.special("%ctaid.x");
    const U32 first = w_.variable(w_.constant(0)), odd = w_.variable(w_.constant(0));
    w_.repeat([&] { return first < tiles_; },
              [&] {
                const U32 number = first + select(odd != 0u, blocks - 1 - block, block);
                w_.when(number < tiles_, [&] { body(locate(number)); });
                w_.assign(first, first + blocks);
                w_.assign(odd, odd ^ 1);
              });
  }
  // The keys that all of `rows` rows see.
  void find_common_keys(Tile& tile, const U32& row, uint32_t rows);

  // --- the groups that compute ------------------------------------------------------------------------------------

  // Returns the thread's number among them.
  U32 start_group();
  void make_scores_and_sums();
  void make_rows();
  void start_rows(const Tile& tile, const U32& thread);
  // The groups start their products in turn, the first group first.
  void start_turns();
  void take_turn() { w_.emit("bar.sync {}, {};", own_turn_.text, kComputing); }
  void end_turn() { w_.emit("bar.arrive {}, {};", others_turn_.text, kComputing); }

  const F32& score(uint32_t eight, uint32_t half, uint32_t i) const { return scores_[eight * 4 + half * 2 + i]; }
  // The bias and mask of the step's scores.
  void load_extras(const Tile& tile, const U32& key);
  // Turns scores into weights, which are not rounded yet. Returns whether sums have to be rescaled.
  Pred soften(const Tile& tile, const U32& key);
  void rescale();

  // Stores the results of a tile.
  void store(const Tile& tile);

  const Wgmma o_;
  ptx::Writer w_;
  ScoreOptions options_;
  Tensor q_{
      "q", offsetof(Wgmma::Push, q_batch), offsetof(Wgmma::Push, q_head), offsetof(Wgmma::Push, q_row), {}, {}, {}, {}};
  Tensor k_{
      "k", offsetof(Wgmma::Push, k_batch), offsetof(Wgmma::Push, k_head), offsetof(Wgmma::Push, k_row), {}, {}, {}, {}};
  Tensor v_{
      "v", offsetof(Wgmma::Push, v_batch), offsetof(Wgmma::Push, v_head), offsetof(Wgmma::Push, v_row), {}, {}, {}, {}};
  U32 seq_q_;
  U32 thread_, lane_, group_, quad_;
  Pred elected_, never_, always_;
  U32 memory_, stages_, flags_;                                              // queries, then the stages
  U32 keys_full_, keys_empty_, values_full_, values_empty_, queries_empty_;  // barriers
  std::vector<F32> scores_, sums_;
  U32 incomplete_;  // values of hidden keys were replaced

 private:
  void declare(const Layout& layout);
  void read_parameters();

  // Which keys rows see: mirrors attention_common.glsl. The end of the keys that a row sees, and the first of them.
  U32 keys_end(const Tile& tile, const U32& row);
  U32 first_key(const Tile& tile, const U32& row);
  // A length is at least 0, and at most that of the tensor.
  U32 length(const U64& lengths, const U32& batch, const U32& most);
  Tile locate(const U32& number);

  // How many of this thread's keys from `key` on exist, if positive.
  U32 keys_left(const Tile& tile, const U32& key) { return tile.keys_here - key - own_key_; }
  void weigh(bool near);

  void store_sums(const U64& to, const Pred& exists, uint32_t half, const F32& inverse);
  void check_sums(const ScoreRow& row, uint32_t half);
  void store_lse(const Tile& tile, const U32& row, const Pred& stores, const F32& exponent, const F32& total);
  // The warp computes those of its rows again that need it, key by key. Each lane has every 32nd element.
  void compute_again(const Tile& tile);
  void compute_again(const Tile& tile, const U32& row);

  Tensor out_{
      "o", offsetof(Wgmma::Push, o_batch), offsetof(Wgmma::Push, o_head), offsetof(Wgmma::Push, o_row), {}, {}, {}, {}};
  U64 lse_, row_lengths_, key_lengths_;
  U32 seq_kv_, heads_, sharing_, row_tiles_, tiles_, diagonal_, left_, right_;
  F32 scale_;
  std::optional<OnlineSoftmax> softmax_;
  U32 own_row_;
  U32 own_turn_, others_turn_;  // numbers of barriers
  U32 own_key_;                 // the first of a step's keys that this thread has
  std::array<ScoreOptions::Rows, 2> extras_;
  std::array<ScoreRow, 2> rows_;  // a thread's, 8 apart
};

}  // namespace tuff::attention
