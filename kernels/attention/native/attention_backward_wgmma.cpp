// The gradients of attention with the wgmma instructions of Hopper GPUs: 16-bit tensors, sums in f32. Weights are
// computed anew from the rows' log-sum-exps.
//
//                 64 others            Two kernels in one. With keys_side a block owns 128 keys, and passes over the
//               +-----------+          query rows of all heads that share them: own 1 and 2 are keys and values, others
//               1 | others 1  |          and 2 are rows of q and of d_o; it adds up dk (first) and dv (second).
//               Otherwise it
//      own 1    +-----------+          owns 128 query rows, of q and d_o, and passes over keys and values; it adds up
//      dq
//      +----+   +-----------+          (first).
//      |    |   |  scores   |            scores = own 1 . others 1     weights = 2^(scale * scores + x of the row)
//  128 +----+   +-----------+            slopes = own 2 . others 2     slopes  = weights * (slopes - D of the row)
//      |    |   |           |            second += weights others 2    first += slopes others 1
//      +----+   +-----------+
//                                      Three warp groups: one loads (cp.async), two compute 64 own rows each. Scores,
// weights, slopes and sums stay in registers, as in the forward pass (attention_wgmma.cpp). A group starts the products
// of a step and those of the next one together, and while these run the other group computes weights:
//
//   products    | S1 P1 |        | second 0          | first 0, S1, P1 |
//   registers           | weights          | slopes  |                 | weights ...
//
// x and D are made by attention_backward_sums.comp: of 64 others at a time in shared memory, or of the own rows in
// registers. Weights of f16 are multiplied by 2^15, which x contains, and differences of slopes and D by a power of two
// that makes them at most 1; results are divided by these.
//
// A masked pair's weight and slope are 0, but 0 * NaN is NaN. So in a step that hides a pair, the loading group
// replaces elements of the others that are NaN or infinite by 0, and x of their rows becomes NaN: then what these rows
// or keys contribute to any pair that sees them is NaN.
#include "kernels/attention/native/attention_backward_wgmma.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numbers>
#include <string>
#include <vector>

#include "kernels/attention/attention_backward_plan.hpp"
#include "kernels/attention/native/online_softmax.hpp"
#include "kernels/attention/native/wgmma_rows.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/legal_values.hpp"
#include "kernels/native/ptx.hpp"
#include "planning/status.hpp"
#include "tuff/tuff.h"

namespace tuff::attention_backward {
namespace {

using ptx::F32;
using ptx::if_true;
using ptx::kFlag;
using ptx::kGroup;
using ptx::kHalves;
using ptx::kRowBytes;
using ptx::kWarp;
using ptx::max_signed;
using ptx::min_signed;
using ptx::multiply_add;
using ptx::number;
using ptx::Pred;
using ptx::Ring;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;
using Numbers = Shape<uint64_t>;

constexpr uint32_t kOwn = Wgmma::kOwn, kOther = Wgmma::kOther, kGroupRows = 64;
constexpr uint32_t kLoaders = kGroup, kComputing = 2 * kGroup;
constexpr uint32_t kMaxStages = 4;
constexpr uint32_t kRowNumbers = 2 * 4 * kOther;  // x and D of a step's rows
constexpr uint32_t kControlBytes = kMaxStages * (kRowNumbers + 2 * ptx::kBarrierBytes) + 2 * ptx::kBarrierBytes;
constexpr uint32_t kLoaderRegisters = 24, kComputingRegisters = 240;
constexpr uint32_t kLoadersMeet = 1;  // a barrier

class Kernel {
 public:
  explicit Kernel(const Wgmma& options) : o_(options), w_("sm_90a", "attention_backward_wgmma") {}

  std::string write() {
    for (Tensor* x : {&q_, &k_, &v_, &d_o_}) x->base = w_.pointer(x->name);
    numbers_ = w_.pointer("numbers");
    shape_ = w_.pointer("shape");
    if (o_.bias != 0) bias_.base = w_.pointer(bias_.name);
    if (o_.mask) mask_.base = w_.pointer(mask_.name);
    if (o_.first) first_.base = w_.pointer("first");
    if (o_.second) second_.base = w_.pointer("second");
    if (o_.slopes != 0) slopes_at_ = w_.pointer("slopes");
    w_.block("push", sizeof(Wgmma::Push));
    thread_ = w_.special("%tid.x");
    memory_ = ptx::aligned_memory(w_);
    stages_ = memory_ + o_.own_bytes();
    row_numbers_ = stages_ + o_.stages() * o_.stage_bytes();
    full_ = row_numbers_ + kMaxStages * kRowNumbers;
    empty_ = full_ + kMaxStages * ptx::kBarrierBytes;
    own_empty_ = empty_ + kMaxStages * ptx::kBarrierBytes;
    w_.when(thread_ == 0, [&] {
      ptx::make_stage_barriers(full_, empty_, o_.stages(), kLoaders / kWarp, kComputing / kWarp);
      ptx::make_barrier(own_empty_, kComputing / kWarp);
    });
    w_.emit("bar.sync 0;");
    lane_ = thread_ & (kWarp - 1);
    elected_ = lane_ == 0u;
    ptx::divide_work(
        thread_, kLoaderRegisters, kComputingRegisters, [&] { load(); }, [&] { compute(); });
    return w_.text(Wgmma::kThreads);
  }

 private:
  struct Tensor {
    const char* name;
    size_t batch_at, head_at, row_at;  // of the strides in the shape
    U64 base;
  };
  const Tensor& own1() const { return o_.keys_side ? k_ : q_; }
  const Tensor& own2() const { return o_.keys_side ? v_ : d_o_; }
  const Tensor& other1() const { return o_.keys_side ? q_ : k_; }
  const Tensor& other2() const { return o_.keys_side ? d_o_ : v_; }

  // The shape is read where it is needed, which keeps registers free.
  U32 number_of_shape(size_t at) {
    const U32 made = w_.make<Type::u32>();
    w_.emit("ld.global.u32 {}, [{}+{}];", made.text, shape_.text, at);
    return made;
  }
  U64 elements(size_t at) {
    const U64 made = w_.make<Type::u64>();
    w_.emit("ld.global.u64 {}, [{}+{}];", made.text, shape_.text, at);
    return made;
  }
  U64 stride(size_t at) {  // in bytes, of elements of 16 bits
    const U64 bytes = w_.make<Type::u64>();
    w_.emit("shl.b64 {}, {}, 1;", bytes.text, elements(at).text);
    return bytes;
  }
  U32 row_stride(const Tensor& x) {
    const U32 made = w_.make<Type::u32>();
    w_.emit("cvt.u32.u64 {}, {};", made.text, stride(x.row_at).text);
    return made;
  }
  U64 base_of(const Tensor& x, const U32& batch, const U32& head) {
    return x.base + widen(batch) * stride(x.batch_at) + widen(head) * stride(x.head_at);
  }

  // --- which rows see which keys: mirrors attention_pairs.glsl ------------------------------------------------------

  // A tile of own rows, and the others that it sees. Heads that share keys see the same ones.
  struct Tile {
    U32 own, batch, head, kv_head;  // with keys_side, the first of the heads that share the keys
    U32 own_rows, own_here;         // own rows that there are, and those within the length
    U32 others_here, below, above;  // own row r sees others from r + below on, those before r + above
    U32 begin, end;                 // others that some own row sees
    U32 all_from, all_to;           // those that all own rows see
  };
  U32 first_other(const Tile& tile, const U32& row) { return max_signed(row + tile.below, w_.constant(0)); }
  U32 others_end(const Tile& tile, const U32& row) {
    const U32 end = min_signed(max_signed(row + tile.above, w_.constant(0)), tile.others_here);
    return select(row < tile.own_here, end, w_.constant(0));
  }
  // The others that all of `rows` own rows from `row` on see.
  void find_common(Tile& tile, const U32& row, uint32_t rows) {
    const U32 last = min(row + (rows - 1), tile.own_rows - 1);
    tile.all_from = first_other(tile, last);
    tile.all_to = select(last < tile.own_here, others_end(tile, row), w_.constant(0));
  }

  Tile locate(const U32& number) {
    Tile tile;
    const U32 own_tiles = w_.parameter("push", offsetof(Wgmma::Push, own_tiles)), tile_unit = number / own_tiles;
    const U32 place = number - tile_unit * own_tiles;
    U32 unit = tile_unit;
    if (o_.slopes != 0) unit = unit + w_.parameter("push", offsetof(Wgmma::Push, first_unit));
    // With a causal mask the last rows see the most keys, and the first keys are seen by the most rows: these start
    // first.
    tile.own = (o_.keys_side ? place : own_tiles - 1 - place) * kOwn;
    const U32 heads = number_of_shape(offsetof(Numbers, heads)), sharing = number_of_shape(offsetof(Numbers, sharing));
    if (o_.keys_side) {
      const U32 kv_heads = heads / sharing;
      tile.batch = unit / kv_heads;
      tile.kv_head = unit - tile.batch * kv_heads;
      tile.head = tile.kv_head * sharing;
    } else {
      tile.batch = unit / heads;
      tile.head = unit - tile.batch * heads;
      tile.kv_head = tile.head / sharing;
    }
    const U32 seq_q = number_of_shape(offsetof(Numbers, seq_q)), seq_kv = number_of_shape(offsetof(Numbers, seq_kv));
    const U32 wanted_q = w_.make<Type::u32>(), wanted_kv = w_.make<Type::u32>();
    const U64 lengths = numbers_ + w_.parameter64("push", offsetof(Wgmma::Push, lengths));
    w_.emit("ld.global.v2.u32 {{{}, {}}}, [{}];", wanted_q.text, wanted_kv.text,
            multiply_add(tile.batch, 8, lengths).text);
    const U32 rows_here = min_signed(max_signed(wanted_q, w_.constant(0)), seq_q);
    const U32 keys_here = min_signed(max_signed(wanted_kv, w_.constant(0)), seq_kv);
    const U32 bottom_right = number_of_shape(offsetof(Numbers, present)) & 8;
    const U32 diagonal = select(bottom_right != 0u, keys_here - rows_here, w_.constant(0));
    const U32 left = number_of_shape(offsetof(Numbers, left)), right = number_of_shape(offsetof(Numbers, right));
    // Row i sees keys from i + diagonal - left + 1 to i + diagonal + right - 1.
    if (o_.keys_side) {
      tile.below = w_.constant(1) - diagonal - right, tile.above = left - diagonal;
      tile.own_rows = seq_kv, tile.own_here = keys_here, tile.others_here = rows_here;
    } else {
      tile.below = diagonal - left + 1, tile.above = diagonal + right;
      tile.own_rows = seq_q, tile.own_here = rows_here, tile.others_here = keys_here;
    }
    const U32 last = min(tile.own + (kOwn - 1), ptx::max(tile.own_here, w_.constant(1)) - 1);
    tile.begin = first_other(tile, tile.own);
    // Bias and mask are copied in pieces of up to 16 keys.
    if (o_.has_options() && !o_.keys_side) tile.begin = tile.begin & 0xfffffff0u;
    tile.end = select(tile.own < tile.own_here, others_end(tile, last), w_.constant(0));
    find_common(tile, tile.own, kOwn);
    return tile;
  }

  // For a tile that has steps.
  U32 steps_of(const Tile& tile) {
    const U32 steps = (tile.end - tile.begin + (kOther - 1)) / kOther;
    return o_.keys_side ? steps * number_of_shape(offsetof(Numbers, sharing)) : steps;
  }
  // To the next step; with keys_side, perhaps of the next head.
  template <typename NextHead>
  void advance_other(const U32& other, const Tile& tile, const NextHead& next_head) {
    w_.assign(other, other + kOther);
    if (!o_.keys_side) return;
    w_.when(other >= tile.end, [&] {
      w_.assign(other, tile.begin);
      next_head();
    });
  }
  Pred hides(const Tile& tile, const U32& other) { return other < tile.all_from || tile.all_to < other + kOther; }

  // Calls body(tile, its number) for each of the block's tiles. Every other round goes backwards, so that blocks with
  // long tiles get short ones next.
  template <typename Body>
  void each_tile(const Body& body) {
    const U32 blocks = w_.special("%nctaid.x"), block = w_.special("%ctaid.x");
    const U32 tiles = w_.parameter("push", offsetof(Wgmma::Push, tiles));
    const U32 first = w_.variable(w_.constant(0)), odd = w_.variable(w_.constant(0));
    w_.repeat([&] { return first < tiles; },
              [&] {
                const U32 number = first + select(odd != 0u, blocks - 1 - block, block);
                w_.when(number < tiles, [&] { body(locate(number), number); });
                w_.assign(first, first + blocks);
                w_.assign(odd, odd ^ 1);
              });
  }

  // --- the group that loads ----------------------------------------------------------------------------------------

  static uint32_t padded(uint32_t dim) { return (dim + 15) / 16 * 16; }

  // Starts loading `rows` rows of a tensor from `first` on to `place`, in blocks of 64 elements. Rows from `end` on,
  // and elements up to a multiple of 16, become zeros.
  void load_rows(const U64& base, const U32& bytes_of_row, const U32& first, const U32& end, uint32_t rows,
                 uint32_t dim, const U32& place) {
    const U32 row = thread_ >> 3, piece = thread_ & 7;
    const U32 to = ptx::piece_at(place, row, piece);
    const U32 own = w_.variable(first + row);
    const U64 step = ptx::multiply_wide(bytes_of_row, w_.constant(attention::kPassRows));
    const U64 at = w_.variable(multiply_add(own, bytes_of_row, multiply_add(piece, 16, base)));
    attention::start_loading({to, piece, own, end, at, step, attention::kPassRows, rows, dim, padded(dim)});
  }

  void load() {
    const Ring ring = ptx::make_ring(w_, 1);
    const U32 last = w_.variable(w_.constant(0)), issued = w_.variable(w_.constant(0));
    const U32 last_hides = w_.variable(w_.constant(0)), own_parity = w_.variable(w_.constant(1));
    each_tile([&](const Tile& tile, const U32&) {
      w_.when(tile.begin < tile.end, [&] {
        const U32 others_head = o_.keys_side ? tile.head : tile.kv_head;
        const U64 from1 = w_.variable(base_of(other1(), tile.batch, others_head));
        const U64 from2 = w_.variable(base_of(other2(), tile.batch, others_head));
        const U32 seq_q = number_of_shape(offsetof(Numbers, seq_q));
        U64 row_numbers;
        if (o_.keys_side) row_numbers = w_.variable(row_numbers_of(tile, seq_q));
        const U32 other = w_.variable(tile.begin), left = w_.variable(steps_of(tile));
        const U32 own_loaded = w_.variable(w_.constant(0));
        U64 from_bias, from_mask;
        if (o_.bias != 0) from_bias = w_.variable(pairs_of(bias_, tile));
        if (o_.mask) from_mask = w_.variable(pairs_of(mask_, tile));
        w_.repeat([&] { return left != 0u; },
                  [&] {
                    const U32 stage = stages_ + ring.stage * w_.constant(o_.stage_bytes());
                    ptx::wait_at(empty_, ring);
                    load_rows(from1, row_stride(other1()), other, tile.others_here, kOther, o_.head_dim, stage);
                    load_rows(from2, row_stride(other2()), other, tile.others_here, kOther, o_.head_dim_v,
                              stage + o_.first_bytes());
                    if (o_.keys_side) load_row_numbers(row_numbers, ring.stage, other, tile.others_here);
                    if (o_.bias != 0) load_pairs(bias_, from_bias, tile, other, stage + o_.others_bytes());
                    if (o_.mask) load_pairs(mask_, from_mask, tile, other, stage + mask_place());
                    // The own rows arrive together with the first others.
                    w_.when(own_loaded == 0u, [&] {
                      w_.assign(own_loaded, w_.constant(1));
                      ptx::wait_at(own_empty_, own_parity);
                      w_.assign(own_parity, own_parity ^ 1);
                      const U32 head = o_.keys_side ? tile.kv_head : tile.head;
                      load_rows(base_of(own1(), tile.batch, head), row_stride(own1()), tile.own, tile.own_here, kOwn,
                                o_.head_dim, memory_);
                      load_rows(base_of(own2(), tile.batch, head), row_stride(own2()), tile.own, tile.own_here, kOwn,
                                o_.head_dim_v, memory_ + own2_place());
                    });
                    w_.emit("cp.async.commit_group;");
                    w_.emit("cp.async.wait_group 1;");
                    w_.when(issued != 0u, [&] { arrived(last, last_hides); });
                    w_.assign(issued, w_.constant(1));
                    w_.assign(last, ring.stage);
                    // A bias or mask may hide any pair.
                    w_.assign(last_hides, o_.has_options()
                                              ? w_.constant(1)
                                              : select(hides(tile, other), w_.constant(1), w_.constant(0)));
                    ptx::advance(ring, o_.stages());
                    w_.assign(left, left - 1);
                    advance_other(other, tile, [&] {
                      w_.assign(from1, from1 + stride(other1().head_at));
                      w_.assign(from2, from2 + stride(other2().head_at));
                      if (o_.keys_side) w_.assign(row_numbers, row_numbers + ptx::multiply_wide(seq_q, w_.constant(8)));
                      if (o_.bias != 0) w_.assign(from_bias, from_bias + stride(bias_.head_at));
                      if (o_.mask) w_.assign(from_mask, from_mask + elements(mask_.head_at));
                    });
                  });
        // The computing groups leave the own rows only after the last step, so nothing may be held back.
        w_.emit("cp.async.wait_all;");
        arrived(last, last_hides);
        w_.assign(issued, w_.constant(0));
      });
    });
  }

  // --- bias and mask ------------------------------------------------------------------------------------------------

  struct Pairs {
    const char* name;
    size_t batch_at, head_at, row_at;
    uint32_t size;  // bytes of an element
    U64 base;
  };
  uint32_t mask_place() const { return o_.others_bytes() + o_.bias_bytes(); }
  U64 pair_stride(const Pairs& x, size_t at) { return x.size == 1 ? elements(at) : stride(at); }
  // Those of the tile's (first) head, with keys_side from the first own key on.
  U64 pairs_of(const Pairs& x, const Tile& tile) {
    const U64 head =
        x.base + widen(tile.batch) * pair_stride(x, x.batch_at) + widen(tile.head) * pair_stride(x, x.head_at);
    return o_.keys_side ? multiply_add(tile.own, x.size, head) : head;
  }

  // Starts loading the pairs of a step. What does not exist becomes zero, and is not seen anyway.
  void load_pairs(const Pairs& x, const U64& from, const Tile& tile, const U32& other, const U32& place) {
    const uint32_t row_bytes = x.size == 1 ? o_.mask_row() : o_.bias_row(), pieces = o_.keys() * x.size / o_.piece,
                   at_once = kLoaders / pieces;
    const U32 row = thread_ / w_.constant(pieces), piece = thread_ & (pieces - 1);
    const U32 first_key = o_.keys_side ? tile.own : other;
    const U32 keys_end = o_.keys_side ? tile.own_here : tile.others_here,
              rows_end = o_.keys_side ? tile.others_here : tile.own_here;
    const U32 left = (keys_end - first_key) * x.size - piece * o_.piece;
    const U32 bytes = min_signed(max_signed(left, w_.constant(0)), w_.constant(o_.piece));
    const U32 stride_of_row = w_.make<Type::u32>(), own = w_.variable((o_.keys_side ? other : tile.own) + row);
    w_.emit("cvt.u32.u64 {}, {};", stride_of_row.text, pair_stride(x, x.row_at).text);
    U64 begin = multiply_add(piece, o_.piece, from);
    if (!o_.keys_side) begin = multiply_add(other, x.size, begin);
    const U64 at = w_.variable(multiply_add(own, stride_of_row, begin));
    const U64 step = ptx::multiply_wide(stride_of_row, w_.constant(at_once));
    const U32 to = place + row * row_bytes + piece * o_.piece;
    for (uint32_t pass = 0; pass < o_.query_rows() / at_once; ++pass) {
      const U32 size = select(own + pass * at_once < rows_end, bytes, w_.constant(0));
      w_.emit("cp.async.{}.shared.global [{}+{}], [{}], {}, {};", o_.piece == 16 ? "cg" : "ca", to.text,
              pass * at_once * row_bytes, at.text, o_.piece, size.text);
      w_.assign(at, at + step);
    }
  }

  // The thread's first pair of a step.
  U32 first_pair(const Pairs& x, const U32& place) {
    const U32 own = warp_row() + (lane_ >> 2), other = quad_ << 1;
    const U32& row = o_.keys_side ? other : own;
    const U32& key = o_.keys_side ? own : other;
    return place + row * (x.size == 1 ? o_.mask_row() : o_.bias_row()) + key * x.size;
  }
  // Where its others are: of the second row or key, 8 further, and of another step's eight.
  uint32_t pair_offset(const Pairs& x, uint32_t eight, uint32_t half, uint32_t i) const {
    const uint32_t row = x.size == 1 ? o_.mask_row() : o_.bias_row();
    return o_.keys_side ? (eight * 8 + i) * row + half * 8 * x.size : half * 8 * row + (eight * 8 + i) * x.size;
  }
  // The two pairs of others eight * 8 + i. Of a mask, words that are zero where a pair is hidden.
  std::array<F32, 2> biases_of(const U32& at, uint32_t eight, uint32_t half) {
    if (o_.keys_side) {
      std::array<F32, 2> two;
      for (uint32_t i = 0; i < 2; ++i) {
        const ptx::B16 bits = w_.make<Type::b16>();
        w_.emit("ld.shared.b16 {}, [{}+{}];", bits.text, at.text, pair_offset(bias_, eight, half, i));
        two[i] = ptx::float_of(o_.bias, bits);
      }
      return two;
    }
    const U32 word = w_.make<Type::u32>();
    w_.emit("ld.shared.b32 {}, [{}+{}];", word.text, at.text, pair_offset(bias_, eight, half, 0));
    const std::array<ptx::B16, 2> bits = ptx::halves_of(word);
    return {ptx::float_of(o_.bias, bits[0]), ptx::float_of(o_.bias, bits[1])};
  }
  std::array<U32, 2> masks_of(const U32& at, uint32_t eight, uint32_t half) {
    std::array<U32, 2> two{w_.make<Type::u32>(), w_.make<Type::u32>()};
    if (o_.keys_side) {
      for (uint32_t i = 0; i < 2; ++i) {
        w_.emit("ld.shared.u8 {}, [{}+{}];", two[i].text, at.text, pair_offset(mask_, eight, half, i));
      }
      return two;
    }
    w_.emit("ld.shared.u16 {}, [{}+{}];", two[0].text, at.text, pair_offset(mask_, eight, half, 0));
    return {two[0] & 0xff, two[0] & 0xff00};
  }

  static constexpr uint32_t own_block_bytes() { return kOwn * kRowBytes; }
  uint32_t own2_place() const { return (o_.head_dim + 63) / 64 * own_block_bytes(); }

  // For the tile's (first) head.
  U64 row_numbers_of(const Tile& tile, const U32& seq_q) {
    const U32 heads = number_of_shape(offsetof(Numbers, heads));
    return multiply_wide(tile.batch * heads + tile.head, seq_q) * U64{&w_, "8", true, 8} + numbers_;
  }
  U32 row_numbers_at(const U32& stage) { return row_numbers_ + stage * w_.constant(kRowNumbers); }

  void load_row_numbers(const U64& from, const U32& stage, const U32& first, const U32& end) {
    w_.when(thread_ < kOther, [&] {
      const U32 row = first + thread_, to = row_numbers_at(stage) + (thread_ << 2);
      const U64 at = multiply_add(row, 8, from);
      const U32 bytes = select(row < end, w_.constant(4), w_.constant(0));
      for (uint32_t i = 0; i < 2; ++i) {
        w_.emit("cp.async.ca.shared.global [{}+{}], [{}+{}], 4, {};", to.text, i * 4 * kOther, at.text, i * 4,
                bytes.text);
      }
    });
  }

  void arrived(const U32& stage, const U32& hiding) {
    w_.when(hiding != 0u, [&] {
      if (!o_.keys_side) {
        w_.emit(if_true(thread_ < kOther), "st.shared.f32 [{}], {};", (row_numbers_at(stage) + (thread_ << 2)).text,
                number(w_, 0).text);
      }
      // The row numbers, of which other threads have loaded some, come before those that become NaN.
      w_.emit("bar.sync {}, {};", kLoadersMeet, kLoaders);
      const U32 place = stages_ + stage * w_.constant(o_.stage_bytes());
      replace_not_finite(stage, place, o_.head_dim);
      if (o_.keys_side) replace_not_finite(stage, place + o_.first_bytes(), o_.head_dim_v);
    });
    ptx::arrive_with_writes(full_, stage, elected_);
  }

  // In the pieces of others that this thread has loaded.
  void replace_not_finite(const U32& stage, const U32& place, uint32_t dim) {
    const U32 row = thread_ >> 3, piece = thread_ & 7, at = ptx::piece_at(place, row, piece);
    const uint32_t stored = dim / Wgmma::kPiece;
    for (uint32_t pass = 0; pass < kOther / attention::kPassRows; ++pass) {
      for (uint32_t block = 0; block * 8 < stored; ++block) {
        const auto look = [&] {
          const uint32_t offset = (block * kOther + pass * attention::kPassRows) * kRowBytes;
          std::array<U32, 4> word;
          for (U32& one : word) one = w_.make<Type::u32>();
          w_.emit("ld.shared.v4.b32 {{{}, {}, {}, {}}}, [{}+{}];", word[0].text, word[1].text, word[2].text,
                  word[3].text, at.text, offset);
          const auto bits = [&](uint32_t i) { return ptx::not_finite(o_.type, word[i]); };
          const U32 found = bits(0) | bits(1) | bits(2) | bits(3);
          w_.when(found != 0u, [&] {
            for (U32& one : word) {
              const U32 bad = (ptx::not_finite(o_.type, one) >> 15) * w_.constant(0xffff);
              one = one & (bad ^ 0xffffffffu);
            }
            w_.emit("st.shared.v4.b32 [{}+{}], {{{}, {}, {}, {}}};", at.text, offset, word[0].text, word[1].text,
                    word[2].text, word[3].text);
            w_.emit("st.shared.u32 [{}+{}], 0x7fffffff;", (row_numbers_at(stage) + (row << 2)).text,
                    pass * attention::kPassRows * 4);
          });
        };
        if (block * 8 + 8 > stored) {
          w_.when(piece < stored - block * 8, look);
        } else {
          look();
        }
      }
    }
  }

  // --- the groups that compute -------------------------------------------------------------------------------------

  // For a thread's own rows, 8 apart: the end of the others that they see, relative to the thread's first; and without
  // keys_side x and D.
  struct OwnRow {
    U32 end;
    F32 x, d;
  };

  // The warp's first own row in a tile.
  U32 warp_row() { return group_ * kGroupRows + (((thread_ >> 5) & 3) << 4); }

  // Slopes take the registers of weights, once these are added up: the sums leave no others.
  bool shares_pairs() const { return o_.first && o_.second && o_.head_dim + o_.head_dim_v > 192; }

  void compute() {
    const U32 thread = thread_ - kLoaders;
    group_ = thread >> 7;
    quad_ = lane_ & 3;
    never_ = ptx::truth(w_, false), always_ = ptx::truth(w_, true);
    high_ = w_.variable(w_.constant(ptx::kMatrixHigh));
    scale_ = w_.parameter_float("push", offsetof(Wgmma::Push, scale));
    if (o_.bounded()) {
      const U32 bound = exponent();
      slope_factor_ = power_of_2(w_.constant(127) - bound);
      if (o_.slopes != 0) slope_unit_ = power_of_2(bound + (127 - 15));
    }
    const auto floats = [&](uint32_t count, bool wanted) {
      std::vector<F32> made;
      for (uint32_t i = 0; wanted && i < count; ++i) made.push_back(w_.make<Type::f32>());
      return made;
    };
    scores_ = floats(kOther / 2, true), slopes_ = floats(kOther / 2, o_.first);
    first_sums_ = floats(o_.head_dim / 2, o_.first), second_sums_ = floats(o_.head_dim_v / 2, o_.second);
    for (uint32_t i = 0; i < kOther / 4; ++i) {
      if (o_.second) weights_.push_back(w_.make<Type::u32>());
      if (o_.first && !shares_pairs()) slope_pairs_.push_back(w_.make<Type::u32>());
    }
    if (shares_pairs()) slope_pairs_ = weights_;
    first_seen_ = w_.make<Type::u32>();
    for (OwnRow& row : rows_) {
      row.end = w_.make<Type::u32>();
      if (!o_.keys_side) row.x = w_.make<Type::f32>(), row.d = w_.make<Type::f32>();
    }

    const Ring ring = ptx::make_ring(w_, 0);
    const auto own_row_of = [&](const Tile& tile) { return tile.own + warp_row(); };
    each_tile([&](Tile tile, const U32& tile_number) {
      if (o_.keys_side) find_common(tile, tile.own + group_ * kGroupRows, kGroupRows);
      start_rows(tile, own_row_of(tile));
      for (const std::vector<F32>* sums : {&first_sums_, &second_sums_}) {
        for (const F32& sum : *sums) w_.assign(sum, number(w_, 0));
      }
      w_.when(tile.begin < tile.end, [&] {
        const U32 other = w_.variable(tile.begin), left = w_.variable(steps_of(tile) - 1);
        start_pairs(ring);
        w_.emit("wgmma.wait_group.sync.aligned {};", o_.first ? 1 : 0);
        w_.repeat([&] { return left != 0u; },
                  [&] {
                    add_up(tile, other, ring.stage);
                    const U32 before = w_.variable(ring.stage);
                    ptx::advance(ring, o_.stages());
                    start_pairs(ring);
                    w_.emit("wgmma.wait_group.sync.aligned {};", o_.first ? 1 : 0);
                    ptx::arrive_at(empty_ + (before << 3), if_true(elected_));
                    w_.assign(left, left - 1);
                    advance_other(other, tile, [] {});
                  });
        add_up(tile, other, ring.stage, true);
        w_.emit("wgmma.wait_group.sync.aligned 0;");
        ptx::arrive_at(empty_ + (ring.stage << 3), if_true(elected_));
        ptx::advance(ring, o_.stages());
      });
      // Where the tile is, is found again: registers did not keep it.
      const Tile place = locate(tile_number);
      const U32 head = o_.keys_side ? place.kv_head : place.head, own_row = own_row_of(place);
      if (o_.first) store(place, own_row, head, first_, first_sums_, offsetof(Wgmma::Push, first_factor));
      if (o_.second) store(place, own_row, head, second_, second_sums_, offsetof(Wgmma::Push, second_factor));
    });
  }

  // e, where differences of slopes and D are below 2^e: with the squares m and n of the lengths, 4 m n < 2^(2 e).
  U32 exponent() {
    const F32 first = w_.make<Type::f32>(), second = w_.make<Type::f32>();
    w_.emit("ld.global.v2.f32 {{{}, {}}}, [{}];", first.text, second.text,
            (numbers_ + w_.parameter64("push", offsetof(Wgmma::Push, bounds))).text);
    const U32 bits = w_.make<Type::u32>(), half = w_.make<Type::u32>();
    w_.emit("mov.b32 {}, {};", bits.text, (first * number(w_, 4) * second).text);
    // One more than needed, because the squares are rounded.
    w_.emit("shr.s32 {}, {}, 1;", half.text, ((bits >> 23) - (127 - 3)).text);
    return half;
  }
  F32 power_of_2(const U32& biased) {
    const F32 made = w_.make<Type::f32>();
    w_.emit("mov.b32 {}, {};", made.text, (biased << 23).text);
    return made;
  }

  void start_rows(const Tile& tile, const U32& own_row) {
    U64 numbers;
    if (!o_.keys_side) numbers = row_numbers_of(tile, tile.own_rows);
    for (uint32_t half = 0; half < 2; ++half) {
      OwnRow& row = rows_[half];
      const U32 at = own_row + (lane_ >> 2) + half * 8;
      if (half == 0) w_.assign(first_seen_, at + tile.below - (quad_ << 1));
      w_.assign(row.end, others_end(tile, at) - (quad_ << 1));
      if (o_.keys_side) continue;
      w_.emit("ld.global.v2.f32 {{{}, {}}}, [{}];", row.x.text, row.d.text,
              multiply_add(min(at, tile.own_rows - 1), 8, numbers).text);
      w_.assign(row.d, scaled_d(row.d));
    }
  }

  // Starts the products of a step: scores and slopes.
  void start_pairs(const Ring& ring) {
    ptx::wait_at(full_, ring);
    const U32 own = ((memory_ + group_ * (kGroupRows * kRowBytes)) >> 4) | 1u << 16;
    const U32 others = ((stages_ + ring.stage * w_.constant(o_.stage_bytes())) >> 4) | 1u << 16;
    w_.emit("wgmma.fence.sync.aligned;");
    multiply_pairs(scores_, own, others, o_.head_dim);
    w_.emit("wgmma.commit_group.sync.aligned;");
    if (!o_.first) return;
    multiply_pairs(slopes_, own + own2_place() / 16, others + o_.first_bytes() / 16, o_.head_dim_v);
    w_.emit("wgmma.commit_group.sync.aligned;");
  }

  // sums = own rows . others, 16 elements at a time.
  void multiply_pairs(const std::vector<F32>& sums, const U32& own, const U32& others, uint32_t dim) {
    const char* const type = ptx::name_of_half(o_.type);
    for (uint32_t i = 0; i < padded(dim) / 16; ++i) {
      const uint32_t block = i / 4, in_block = i % 4 * 2;
      const U64 a = ptx::matrix(own + (block * own_block_bytes() / 16 + in_block), high_);
      const U64 b = ptx::matrix(others + (block * kOther * kRowBytes / 16 + in_block), high_);
      w_.emit("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, {}, {}, {}, 1, 1, 0, 0;", kOther, type, type,
              ptx::list(sums), a.text, b.text, (i == 0 ? never_ : always_).text);
    }
  }

  // sums += pairs . others, 16 others at a time.
  void multiply_others(const std::vector<F32>& sums, const std::vector<U32>& pairs, const U32& place, uint32_t dim) {
    const char* const type = ptx::name_of_half(o_.type);
    const U32 others = (place >> 4) | (kOther * kRowBytes / 16) << 16;
    w_.emit("wgmma.fence.sync.aligned;");
    for (uint32_t i = 0; i < kOther / 16; ++i) {
      const U64 b = ptx::matrix(others + i * (16 * kRowBytes / 16), high_);
      w_.emit("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, {{{}, {}, {}, {}}}, {}, {}, 1, 1, 1;", dim,
              type, type, ptx::list(sums), pairs[i * 4].text, pairs[i * 4 + 1].text, pairs[i * 4 + 2].text,
              pairs[i * 4 + 3].text, b.text, always_.text);
    }
    w_.emit("wgmma.commit_group.sync.aligned;");
  }

  // The scores of the step in `stage` are there. Makes weights and slopes, and starts adding them up. The last step of
  // a tile leaves the own rows to the loading group.
  void add_up(const Tile& tile, const U32& other, const U32& stage, bool last = false) {
    const U32 place = stages_ + stage * w_.constant(o_.stage_bytes());
    const U32 numbers = row_numbers_at(stage) + (quad_ << 3);
    const Pred hiding = hides(tile, other);
    twice(hiding, [&](bool hides) {
      o_.has_options() ? weigh_with_options(other, numbers, place, hides) : weigh(other, numbers, hides);
    });
    pack(weights_, scores_);
    if (o_.first) w_.emit("wgmma.wait_group.sync.aligned 0;");
    if (last) ptx::arrive_at(own_empty_, if_true(elected_));
    if (o_.second) multiply_others(second_sums_, weights_, place + o_.first_bytes(), o_.head_dim_v);
    if (!o_.first) return;
    if (o_.has_options()) {
      slope(other, numbers, false);
    } else {
      twice(hiding, [&](bool hides) { slope(other, numbers, hides); });
    }
    if (o_.slopes != 0) store_slopes(tile, other);
    if (shares_pairs()) w_.emit("wgmma.wait_group.sync.aligned 0;");
    pack(slope_pairs_, slopes_);
    multiply_others(first_sums_, slope_pairs_, place, o_.head_dim);
  }

  // Emits body(true) for steps that hide a pair, and body(false) for the others.
  template <typename Body>
  void twice(const Pred& hiding, const Body& body) {
    const ptx::Label hidden = w_.label(), done = w_.label();
    w_.jump_if(hiding, hidden);
    body(false);
    w_.jump(done);
    w_.place(hidden);
    body(true);
    w_.place(done);
  }

  // Calls body(half, number, i, sees) for the thread's pairs: pair `number` with other eight * 8 + i of the step. sees
  // is empty without `hides`.
  template <typename Body>
  void each_pair(uint32_t eight, const U32& other, bool hides, const Body& body) {
    for (uint32_t half = 0; half < 2; ++half) {
      for (uint32_t i = 0; i < 2; ++i) {
        Pred sees;
        if (hides) {
          sees = w_.make<Type::pred>();
          w_.emit("setp.gt.s32 {}, {}, {};", sees.text, (rows_[half].end - other).text, eight * 8 + i);
          // The second row's first other is 8 further.
          w_.emit("setp.le.and.s32 {}, {}, {}, {};", sees.text, (first_seen_ - other).text,
                  static_cast<int32_t>(eight * 8 + i) - static_cast<int32_t>(half * 8), sees.text);
        }
        body(half, eight * 4 + half * 2 + i, i, sees);
      }
    }
  }
  F32 if_seen(const Pred& sees, const F32& x) { return sees.writer == nullptr ? x : select(sees, x, number(w_, 0)); }
  std::array<F32, 2> row_numbers(const U32& numbers, uint32_t at) {
    std::array<F32, 2> two{w_.make<Type::f32>(), w_.make<Type::f32>()};
    w_.emit("ld.shared.v2.f32 {{{}, {}}}, [{}+{}];", two[0].text, two[1].text, numbers.text, at);
    return two;
  }

  void weigh(const U32& other, const U32& numbers, bool hides) {
    const F32 most = number(w_, o_.headroom());
    for (uint32_t eight = 0; eight < kOther / 8; ++eight) {
      // Of the others; without keys_side, NaN for keys that the loading group has changed.
      std::array<F32, 2> x;
      if (o_.keys_side || hides) x = row_numbers(numbers, eight * 32);
      each_pair(eight, other, hides, [&](uint32_t half, uint32_t pair, uint32_t i, const Pred& sees) {
        F32 start = o_.keys_side ? x[i] : rows_[half].x;
        if (!o_.keys_side && hides) start = start + x[i];
        // A weight is at most 1. NaN stays.
        const F32 power = w_.result<Type::f32>("min.NaN.f32", multiply_add(scores_[pair], scale_, start), most);
        w_.assign(scores_[pair], if_seen(sees, ptx::power_of_2(power)));
      });
    }
  }

  // Weights of hidden pairs become -0, which tells slope().
  void weigh_with_options(const U32& other, const U32& numbers, const U32& place, bool hides) {
    const F32 most = number(w_, o_.headroom()), hidden = number(w_, -0.0f), none = number(w_, -attention::kInfinity);
    U32 bias, mask;
    if (o_.bias != 0) bias = first_pair(bias_, place + o_.others_bytes());
    if (o_.mask) mask = first_pair(mask_, place + mask_place());
    for (uint32_t eight = 0; eight < kOther / 8; ++eight) {
      const std::array<F32, 2> x = row_numbers(numbers, eight * 32);
      std::array<std::array<F32, 2>, 2> biases;
      std::array<std::array<U32, 2>, 2> masks;
      for (uint32_t half = 0; half < 2; ++half) {
        if (o_.bias != 0) biases[half] = biases_of(bias, eight, half);
        if (o_.mask) masks[half] = masks_of(mask, eight, half);
      }
      each_pair(eight, other, hides, [&](uint32_t half, uint32_t pair, uint32_t i, const Pred& sees) {
        const F32 start = o_.keys_side ? x[i] : rows_[half].x + x[i];
        F32 exponent;
        if (o_.bias != 0) {
          F32 score = multiply_add(scores_[pair], scale_, biases[half][i]);
          // The lowest finite numbers may be those of all keys of a row.
          if (o_.bias == TUFF_BF16)
            score = w_.result<Type::f32>("max.NaN.f32", score, number(w_, -attention::kLargest));
          exponent = multiply_add(score + start, number(w_, std::numbers::log2e_v<float>), most);
        } else {
          exponent = multiply_add(scores_[pair], scale_, start);
        }
        Pred seen = sees;
        if (o_.bias != 0) seen = also(seen, "neu", "f32", biases[half][i].text, none.text);
        if (o_.mask) seen = also(seen, "ne", "u32", masks[half][i].text, "0");
        const F32 power = w_.result<Type::f32>("min.NaN.f32", exponent, most);
        w_.assign(scores_[pair], select(seen, ptx::power_of_2(power), hidden));
      });
    }
  }
  // Whether both hold; without a first condition, the second.
  Pred also(const Pred& first, const char* compare, const char* type, const std::string& a, const std::string& b) {
    const Pred made = w_.make<Type::pred>();
    if (first.writer == nullptr) {
      w_.emit("setp.{}.{} {}, {}, {};", compare, type, made.text, a, b);
    } else {
      w_.emit("setp.{}.and.{} {}, {}, {}, {};", compare, type, made.text, a, b, first.text);
    }
    return made;
  }

  // What is added to slopes that are multiplied by slope_factor_.
  F32 scaled_d(const F32& d) {
    const F32 minus = number(w_, 0) - d;
    return o_.bounded() ? minus * slope_factor_ : minus;
  }

  void slope(const U32& other, const U32& numbers, bool hides) {
    for (uint32_t eight = 0; eight < kOther / 8; ++eight) {
      std::array<F32, 2> d;
      if (o_.keys_side) {
        d = row_numbers(numbers, 4 * kOther + eight * 32);
        for (F32& one : d) one = scaled_d(one);
      }
      each_pair(eight, other, hides, [&](uint32_t half, uint32_t pair, uint32_t i, const Pred& sees) {
        const F32& minus_d = o_.keys_side ? d[i] : rows_[half].d;
        const F32 difference =
            o_.bounded() ? multiply_add(slopes_[pair], slope_factor_, minus_d) : slopes_[pair] + minus_d;
        if (o_.has_options()) {
          const U32 bits = w_.make<Type::u32>();
          w_.emit("mov.b32 {}, {};", bits.text, scores_[pair].text);
          w_.assign(slopes_[pair], if_seen(also({}, "ge", "s32", bits.text, "0"), scores_[pair] * difference));
          return;
        }
        w_.assign(slopes_[pair], if_seen(sees, scores_[pair] * difference));
      });
    }
  }

  // The slopes of a step, as rows of seq_kv elements.
  void store_slopes(const Tile& tile, const U32& other) {
    const U32 seq_kv = number_of_shape(offsetof(Numbers, seq_kv)), heads = number_of_shape(offsetof(Numbers, heads));
    const U32 unit = tile.batch * heads + tile.head - w_.parameter("push", offsetof(Wgmma::Push, first_unit));
    const U32 own = tile.own + warp_row() + (lane_ >> 2);
    const U32 key = other + (quad_ << 1), left = seq_kv - key;
    for (uint32_t half = 0; half < 2; ++half) {
      const U32 row = own + half * 8;
      const U64 first = widen(unit) * widen(tile.own_rows) + widen(row);
      const U64 at = multiply_add(key, 4, slopes_at_) + first * widen(seq_kv) * uint64_t{4};
      const Pred exists = row < tile.own_rows;
      for (uint32_t eight = 0; eight < kOther / 8; ++eight) {
        std::array<F32, 2> two;
        for (uint32_t i = 0; i < 2; ++i) {
          const F32& one = slopes_[eight * 4 + half * 2 + i];
          two[i] = o_.bounded() ? one * slope_unit_ : one;
        }
        const auto in = [&](uint32_t i) {
          return if_true(also(exists, "gt", "s32", left.text, std::to_string(eight * 8 + i)));
        };
        if (o_.slopes == 2) {
          w_.emit(in(0), "st.global.v2.f32 [{}+{}], {{{}, {}}};", at.text, eight * 32, two[0].text, two[1].text);
        } else {
          for (uint32_t i = 0; i < 2; ++i) {
            w_.emit(in(i), "st.global.f32 [{}+{}], {};", at.text, eight * 32 + i * 4, two[i].text);
          }
        }
      }
    }
  }

  void pack(const std::vector<U32>& pairs, const std::vector<F32>& values) {
    for (uint32_t i = 0; i < pairs.size(); ++i) {
      w_.assign(pairs[i], ptx::packed_pair(o_.type, values[i * 2], values[i * 2 + 1]));
    }
  }

  void store(const Tile& tile, const U32& own_row, const U32& head, const Tensor& to, const std::vector<F32>& sums,
             size_t factor_at) {
    const U64 base = base_of(to, tile.batch, head);
    const U32 bytes_of_row = row_stride(to);
    F32 factor = w_.parameter_float("push", factor_at);
    if (&sums == &first_sums_ && o_.bounded()) factor = factor * power_of_2(exponent() + (127 - 15));
    const Pred odd = (quad_ & 1) != 0u, high = (quad_ & 2) != 0u;
    const uint32_t count = static_cast<uint32_t>(sums.size()) / 4;
    for (uint32_t half = 0; half < 2; ++half) {
      const U32 at = own_row + (lane_ >> 2) + half * 8;
      const Pred exists = at < tile.own_rows;
      const auto result = [&](uint32_t eight, uint32_t i) { return sums[eight * 4 + half * 2 + i] * factor; };
      const U64 begin = multiply_add(at, bytes_of_row, base);
      const U64 pairs = multiply_add(quad_, 4, begin), eights = multiply_add(quad_, 16, begin);
      attention::store_row(o_.type, {pairs, eights, odd, high, exists}, count, result);
    }
  }

#define TUFF_STRIDES(name) \
  offsetof(Numbers, name##_batch), offsetof(Numbers, name##_head), offsetof(Numbers, name##_row)
  const Wgmma o_;
  Writer w_;
  Tensor q_{"q", TUFF_STRIDES(q), {}}, k_{"k", TUFF_STRIDES(k), {}}, v_{"v", TUFF_STRIDES(v), {}},
      d_o_{"d_o", TUFF_STRIDES(d_o), {}}, second_{"dv", TUFF_STRIDES(dv), {}};
  Tensor first_ = o_.keys_side ? Tensor{"dk", TUFF_STRIDES(dk), {}} : Tensor{"dq", TUFF_STRIDES(dq), {}};
  Pairs bias_{"bias", TUFF_STRIDES(bias), 2, {}}, mask_{"mask", TUFF_STRIDES(mask), 1, {}};
#undef TUFF_STRIDES
  U64 numbers_, shape_, slopes_at_;
  F32 scale_, slope_factor_, slope_unit_;  // slopes * slope_unit_ are those of the call
  U32 thread_, lane_, group_, quad_, high_;
  Pred elected_, never_, always_;
  U32 memory_, stages_, row_numbers_;  // own rows, then the stages, then x and D of each stage
  U32 full_, empty_, own_empty_;       // barriers
  std::vector<F32> scores_, slopes_, first_sums_, second_sums_;
  std::vector<U32> weights_, slope_pairs_;  // pairs
  std::array<OwnRow, 2> rows_;
  U32 first_seen_;  // of the others, by the thread's first own row, relative to the thread's first
};

NativeKernel write_wgmma(const KernelRequest& request) {
  const Wgmma options = Wgmma::read(request);
  return {Kernel(options).write(), "attention_backward_wgmma", Wgmma::kThreads, options.shared_bytes()};
}

constexpr auto kDims = ptx::multiples<Wgmma::kPiece, Wgmma::kMaxHeadDim>();
constexpr LegalRange kBiases[] = {{0, 0}, {TUFF_F16, TUFF_BF16}}, kPieces[] = {{4, 4}, {16, 16}}, kSlopes[] = {{0, 2}};
constexpr DefineInfo kDefines[] = {{"BIAS", kBiases},    {"FIRST", kFlag}, {"HEAD_DIM", kDims}, {"HEAD_DIM_V", kDims},
                                   {"KEYS_SIDE", kFlag}, {"MASK", kFlag},  {"PIECE", kPieces},  {"SECOND", kFlag},
                                   {"SLOPES", kSlopes},  {"TYPE", kHalves}};

}  // namespace

float Wgmma::headroom() const { return type == TUFF_F16 ? 15.0f : 0.0f; }
bool Wgmma::bounded() const { return type == TUFF_F16; }

uint32_t Wgmma::stages() const {
  const uint32_t rest = ptx::kSharedBytes - ptx::kSharedAlignment - kControlBytes - own_bytes();
  return std::min(rest / stage_bytes(), kMaxStages);
}

uint32_t Wgmma::shared_bytes() const {
  return own_bytes() + stages() * stage_bytes() + ptx::kSharedAlignment + kControlBytes;
}

KernelRequest Wgmma::request() const {
  KernelRequest made(wgmma_source);
  made.define("BIAS", bias).define("FIRST", first).define("HEAD_DIM", head_dim).define("HEAD_DIM_V", head_dim_v);
  made.define("KEYS_SIDE", keys_side).define("MASK", mask).define("PIECE", piece).define("SECOND", second);
  made.define("SLOPES", slopes).define("TYPE", type);
  return made;
}

Wgmma Wgmma::read(const KernelRequest& request) {
  Wgmma options;
  options.type = static_cast<int32_t>(request.value_of("TYPE"));
  options.head_dim = static_cast<uint32_t>(request.value_of("HEAD_DIM"));
  options.head_dim_v = static_cast<uint32_t>(request.value_of("HEAD_DIM_V"));
  options.keys_side = request.value_of("KEYS_SIDE") != 0;
  options.first = request.value_of("FIRST") != 0;
  options.second = request.value_of("SECOND") != 0;
  options.bias = static_cast<int32_t>(request.value_of("BIAS"));
  options.mask = request.value_of("MASK") != 0;
  options.piece = static_cast<uint32_t>(request.value_of("PIECE"));
  options.slopes = static_cast<uint32_t>(request.value_of("SLOPES"));
  if (options.keys_side ? (!options.first && !options.second) || options.slopes != 0
                        : !options.first || options.second) {
    fail(TUFF_ERROR_INTERNAL, "attention_backward_wgmma: first={} second={} keys_side={} slopes={}", options.first,
         options.second, options.keys_side, options.slopes);
  }
  if (!options.fits()) {
    fail(TUFF_ERROR_INTERNAL, "attention_backward_wgmma: dk and dv together for head_dim {} and {}", options.head_dim,
         options.head_dim_v);
  }
  static_assert(Wgmma::kMinStages <= kMaxStages);
  if (options.stages() < Wgmma::kMinStages) {
    fail(TUFF_ERROR_INTERNAL, "attention_backward_wgmma: {} stages for head_dim {} and {}", options.stages(),
         options.head_dim, options.head_dim_v);
  }
  return options;
}

const KernelSource wgmma_source = {"attention_backward_wgmma", nullptr, kDefines, write_wgmma};

}  // namespace tuff::attention_backward
