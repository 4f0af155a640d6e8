// All steps of a recurrent layer in one launch. A block computes 16 units of 8, 16 or 32 sequences, and keeps their
// rows of R, of all gates, in shared memory and registers for all steps.
//
//             16 units     h of the step before      In a step, each of a block's eight warps
//            +--------+    +---+---+-- --+---+         1. waits for the blocks that compute its part of h,
//   gate 0   |        |    |   |   |     |   |         2. multiplies this part by its columns of R (mma.sync),
//   gate 1   |  rows  |    | 0 | 1 | ... | 7 |         3. adds up the sums of all warps in shared memory, computes its
//   ...      |  of R  |    |   |   |     |   | units      cells and stores their h for the others.
//            +--------+    +---+---+-- --+---+
//                            warps
//
// Nothing tells that an h is there but itself: its word has a value before that no h has, and a warp loads its words
// until all of them have another. There are four buffers of h. A block that has seen all h of step i knows that nobody
// reads those of step i - 1 any more. So it takes its own back, for step i + 3, and has a fence, in step i + 1, before
// it stores h of step i + 2; others have one between that h and their first look at step i + 3.
//
// c, and h as f32, stay in the registers of the threads that compute them. What is multiplied of 16-bit layers is h =
// high + low, two numbers of R's type in one word, by two products: f16 has an error of 2^-23 |h| then (2^-25 for |h|
// below 1/4), bf16 of 2^-17 |h|. An f32 is the sum of three bf16, and so is each number of R: six products leave out no
// more than 2^-22 |R| |h|. A word has one unit and sequence, and a thread's fragment is four words in a row: numbers 4
// q to 4 q + 3 of a step of k take the places 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of mma.sync's 16, in both operands.
//
// Nothing promises that all blocks of a launch run at the same time. So they agree at the start: each adds 1 to a
// counter, and the last one changes the decision from "undecided" to "runs"; one that has waited for too long changes
// it to "refused". Whichever comes first holds for all. If they run, each of them is on a multiprocessor until it ends,
// so that waiting ends. Otherwise nothing has been written, and the next launch of the stream computes the steps by
// blocks that wait for none (Persistent::alone): sequences do not depend on each other.
#include "kernels/rnn/native/rnn_persistent.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/legal_values.hpp"
#include "kernels/native/ptx.hpp"
#include "planning/element_type.hpp"
#include "planning/status.hpp"

namespace tuff::rnn {
namespace {

using ptx::B16;
using ptx::F32;
using ptx::if_true;
using ptx::kFlag;
using ptx::kFloats;
using ptx::kWarp;
using ptx::Label;
using ptx::multiply_add;
using ptx::multiply_wide;
using ptx::Pred;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

constexpr uint32_t kFloatBytes = 4;
// How often a thread looks, at about a microsecond each: until the blocks give up waiting for others to start, and
// until a block that has started counts as lost, which ends the device.
constexpr uint32_t kStartLooks = 1u << 14, kLostLooks = 1u << 24;
constexpr uint32_t kFragmentBytes = Persistent::kFragmentBytes;
// Registers of weights, sums and states on their way, beside about a hundred others; the least of the last, and the
// most of the first, which remain while cells are computed.
constexpr uint32_t kMaxRegisters = 144, kLeastAhead = 32, kMaxWeights = 48;

class Kernel {
 public:
  explicit Kernel(const Persistent& options) : o_(options), w_("sm_90a", "rnn_persistent") {}

  std::string write() {
    uint32_t operand = 0;
    for (U64* const pointer : {&x_, &r_, &state_, &bias_, &peepholes_, &lengths_, &y_, &words_}) {
      *pointer = w_.pointer("operand" + std::to_string(operand++));
    }
    w_.block("push", sizeof(Persistent::Push));
    end_ = w_.label();
    locate();
    if (o_.alone) {
      leave_if_computed();
      compute_alone();
    } else {
      agree();
      compute_together();
    }
    w_.place(end_);
    return w_.text(Persistent::kThreads);
  }

 private:
  using Push = Persistent::Push;
  // A unit of a sequence, of which a thread has the same ones in all steps.
  struct Cell {
    Pred exists;
    U32 column;              // its sequence in the block
    U64 x, y, stored, c;     // addresses of the first step's product of the input and output, and of its state
    U64 shared_with_others;  // of its word in the first buffer
    F32 h_value, c_value;
    std::vector<F32> biases;
    std::array<F32, 3> peepholes;
    U32 length;
  };

  U32 parameter(size_t offset) { return w_.parameter("push", offset); }
  U64 parameter64(size_t offset) { return w_.parameter64("push", offset); }
  F32 constant(float value) { return number(w_, value); }
  // The parameter of this block's direction.
  U32 of_direction(size_t offset) {
    return select(second_direction_, parameter(offset + sizeof(uint32_t)), parameter(offset));
  }
  U64 of_direction64(size_t offset) {
    return w_.result<Type::u64>("selp.b64", parameter64(offset + sizeof(uint64_t)), parameter64(offset),
                                second_direction_);
  }
  uint32_t cells() const { return (o_.eights + 1) / 2; }  // of a thread
  uint32_t size() const { return static_cast<uint32_t>(dtype_size(o_.type)); }

  // --- where the block is -------------------------------------------------------------------------------------------

  void locate() {
    thread_ = w_.special("%tid.x");
    lane_ = thread_ & (kWarp - 1);
    warp_ = thread_ >> 5;
    in_four_ = lane_ & 3;
    row_ = lane_ >> 2;
    hidden_ = parameter(offsetof(Push, hidden));
    slices_ = parameter(offsetof(Push, slices));
    const U32 block = w_.special("%ctaid.x"), groups = parameter(offsetof(Push, groups));
    const U32 set = o_.alone ? block : block / slices_;
    slice_ = w_.variable(o_.alone ? w_.constant(0) : block - set * slices_);
    direction_ = set / groups;
    first_sequence_ = parameter(offsetof(Push, first)) + (set - direction_ * groups) * o_.sequences();
    second_direction_ = direction_ != 0;
    // States are [buffer][direction and group][16 units][sequence][unit].
    const U64 set_bytes = multiply_wide(slices_, w_.constant(o_.piece_bytes()));
    const U32 directions = w_.special("%nctaid.x") / (o_.alone ? groups : groups * slices_);
    buffer_ = w_.variable(slices_ * groups * directions * o_.piece_bytes());
    states_ = w_.variable(words_ + set_bytes * widen(set) + Persistent::kStatesAt);
    first_step_k_ = warp_ * o_.steps_k;
    to_read_ = w_.variable(states_ + widen(first_step_k_ * o_.piece_bytes() + ((row_ << 4) + (in_four_ << 2)) * 4));
    memory_ = ptx::aligned_memory(w_);
    sums_memory_ = memory_ + o_.weight_bytes();
  }
  uint32_t warp_sums() const { return o_.sequences() * o_.sums_row() * kFloatBytes; }

  // --- the start ----------------------------------------------------------------------------------------------------

  void agree() {
    const U32 shared = sums_memory_;
    w_.when(thread_ == 0, [&] {
      const U32 before = w_.make<Type::u32>(), seen = w_.make<Type::u32>();
      w_.emit("atom.acq_rel.gpu.global.add.u32 {}, [{}+{}], 1;", before.text, words_.text, Persistent::kArrivedAt);
      w_.when(before == parameter(offsetof(Push, blocks)) - w_.constant(2), [&] { decide(Persistent::kRuns); });
      const U32 looks = w_.variable(w_.constant(0));
      const Label again = w_.label(), decided = w_.label();
      w_.place(again);
      w_.emit("ld.acquire.gpu.global.u32 {}, [{}+{}];", seen.text, words_.text, Persistent::kDecisionAt);
      w_.jump_if(seen != Persistent::kUnwritten, decided);
      w_.assign(looks, looks + 1);
      w_.when(looks == kStartLooks, [&] { decide(Persistent::kRefused); });
      w_.jump(again);
      w_.place(decided);
      w_.emit("st.shared.u32 [{}], {};", shared.text, seen.text);
    });
    w_.emit("bar.sync 0;");
    const U32 decision = w_.make<Type::u32>();
    w_.emit("ld.shared.u32 {}, [{}];", decision.text, shared.text);
    w_.emit("bar.sync 0;");
    w_.jump_if(decision != Persistent::kRuns, end_);
  }
  void decide(uint32_t decision) {
    const U32 before = w_.make<Type::u32>();
    w_.emit("atom.acq_rel.gpu.global.cas.b32 {}, [{}+{}], {}, {};", before.text, words_.text, Persistent::kDecisionAt,
            Persistent::kUnwritten, decision);
  }
  void leave_if_computed() {
    const U32 decision = w_.make<Type::u32>();
    w_.emit("ld.relaxed.gpu.global.u32 {}, [{}+{}];", decision.text, words_.text, Persistent::kDecisionAt);
    w_.jump_if(decision == Persistent::kRuns, end_);
  }

  // --- products -----------------------------------------------------------------------------------------------------

  // This thread's part of 16 rows and columns of R: rows of a gate, in the slice's units.
  void find_rows() {
    const U32 unit = (slice_ << 4) + row_;
    row_exists_ = {unit < hidden_, unit + 8 < hidden_};
    rows_.clear();
    const U32 column = (first_step_k_ << 4) + (in_four_ << 2);
    for (uint32_t gate = 0; gate < o_.gates(); ++gate) {
      for (uint32_t half = 0; half < 2; ++half) {
        const U32 row = (direction_ * o_.gates() + gate) * hidden_ + unit + half * 8;
        rows_.push_back(w_.variable(r_ + multiply_wide(row, hidden_ * size()) + widen(column * size())));
      }
    }
  }
  // The numbers of a fragment, or those of each of its parts.
  using Fragment = std::vector<std::array<U32, 4>>;
  Fragment loaded_fragment(uint32_t gate, uint32_t step) {
    const Pred column = (first_step_k_ << 4) + (in_four_ << 2) + step * 16 < hidden_;
    if (o_.type == TUFF_F32) return loaded_parts(gate, step, column);
    std::array<U32, 4> words;
    for (U32& word : words) word = w_.variable(w_.constant(0));
    for (uint32_t half = 0; half < 2; ++half) {
      w_.emit(if_true(column && row_exists_[half]), "ld.global.nc.v2.u32 {{{}, {}}}, [{}+{}];", words[half].text,
              words[half + 2].text, rows_[2 * gate + half].text, step * 16 * size());
    }
    return {words};
  }
  Fragment loaded_parts(uint32_t gate, uint32_t step, const Pred& column) {
    Fragment parts(o_.parts());
    for (uint32_t half = 0; half < 2; ++half) {
      std::array<U32, 4> words;
      for (U32& word : words) word = w_.variable(w_.constant(0));
      w_.emit(if_true(column && row_exists_[half]), "ld.global.nc.v4.u32 {{{}, {}, {}, {}}}, [{}+{}];", words[0].text,
              words[1].text, words[2].text, words[3].text, rows_[2 * gate + half].text, step * 16 * size());
      for (uint32_t pair = 0; pair < 2; ++pair) {
        const std::array<U32, 3> of_pair = parts_of(words[2 * pair], words[2 * pair + 1]);
        for (uint32_t part = 0; part < o_.parts(); ++part) parts[part][half + 2 * pair] = of_pair[part];
      }
    }
    return parts;
  }
  // Two f32 as the sums of three pairs of bf16 each: the upper half of the number, so that it stays finite, and twice
  // what is left, rounded. Nothing is left of infinities and NaN.
  std::array<U32, 3> parts_of(const U32& a, const U32& b) {
    const auto rest_of = [&](const U32& x) {
      const F32 rest = F32{&w_, x.text} - F32{&w_, (x & 0xffff0000u).text};
      return select(rest == rest, rest, constant(0));
    };
    const F32 low = rest_of(a), high = rest_of(b);
    const U32 middle = ptx::packed_pair(TUFF_BF16, low, high);
    const F32 last_low = low - F32{&w_, (middle << 16).text}, last_high = high - F32{&w_, (middle & 0xffff0000u).text};
    return {ptx::permuted(a, b, "0x7632"), middle, ptx::packed_pair(TUFF_BF16, last_low, last_high)};
  }
  U32 fragments_memory() { return memory_ + (warp_ * ((o_.steps_k - o_.held) * o_.step_bytes()) + (lane_ << 4)); }
  uint32_t fragment_at(uint32_t gate, uint32_t step) const {
    return (step - o_.held) * o_.step_bytes() + gate * o_.parts() * kFragmentBytes;
  }
  // Each thread keeps what it will multiply itself.
  void keep_weights() {
    find_rows();
    fragments_ = w_.variable(fragments_memory());
    for (uint32_t step = 0; step < o_.steps_k; ++step) {
      for (uint32_t gate = 0; gate < o_.gates(); ++gate) {
        const Fragment parts = loaded_fragment(gate, step);
        if (step < o_.held) {
          held_.push_back(parts);
          continue;
        }
        for (uint32_t part = 0; part < o_.parts(); ++part) {
          const std::array<U32, 4>& words = parts[part];
          w_.emit("st.shared.v4.u32 [{}+{}], {{{}, {}, {}, {}}};", fragments_.text,
                  fragment_at(gate, step) + part * kFragmentBytes, words[0].text, words[1].text, words[2].text,
                  words[3].text);
        }
      }
    }
  }
  Fragment fragment(uint32_t gate, uint32_t step) {
    if (o_.alone) return loaded_fragment(gate, step);
    if (step < o_.held) return held_[step * o_.gates() + gate];
    Fragment parts(o_.parts());
    for (uint32_t part = 0; part < o_.parts(); ++part) {
      for (U32& word : parts[part]) word = w_.make<Type::u32>();
      w_.emit("ld.shared.v4.u32 {{{}, {}, {}, {}}}, [{}+{}];", parts[part][0].text, parts[part][1].text,
              parts[part][2].text, parts[part][3].text, fragments_.text,
              fragment_at(gate, step) + part * kFragmentBytes);
    }
    return parts;
  }

  // Four words of states on their way.
  const std::array<U32, 4>& coming(uint32_t step, uint32_t eight) const {
    return coming_[step % o_.ahead() * o_.eights + eight];
  }
  const F32* sums(uint32_t gate, uint32_t eight) const { return &sums_[(gate * o_.eights + eight) * 4]; }
  void load_states(uint32_t step) {
    ptx::Guard guard{};
    if (!o_.whole) {
      const Pred exists = first_step_k_ + step < slices_;
      guard = if_true(exists);
    }
    for (uint32_t eight = 0; eight < o_.eights; ++eight) {
      const std::array<U32, 4>& words = coming(step, eight);
      // What is multiplied by weights of 0 has to be a number.
      if (!o_.whole) {
        for (const U32& word : words) w_.assign(word, w_.constant(0));
      }
      w_.emit(guard, "ld.relaxed.gpu.global.v4.u32 {{{}, {}, {}, {}}}, [{}+{}];", words[0].text, words[1].text,
              words[2].text, words[3].text, to_read_.text, step * o_.piece_bytes() + eight * 8 * 16 * 4);
    }
  }
  // Whether any of the warp's words of a step of k has not been written: a state has no word like that.
  Pred unwritten(uint32_t step) {
    U32 largest;
    for (uint32_t eight = 0; eight < o_.eights; ++eight) {
      const std::array<U32, 4>& words = coming(step, eight);
      const U32 of_words = max(max(words[0], words[1]), max(words[2], words[3]));
      largest = eight == 0 ? of_words : max(largest, of_words);
    }
    const Pred any = w_.make<Type::pred>();
    w_.emit("vote.sync.any.pred {}, {}, 0xffffffff;", any.text, (largest == Persistent::kUnwritten).text);
    return any;
  }
  // Loads a step's words again until all have been written. Those of the next steps, up to `end`, have been loaded too,
  // and then probably too early as well.
  void wait_for_states(uint32_t step, uint32_t end) {
    const Label again = w_.label(), written = w_.label();
    const U32 looks = w_.variable(w_.constant(0));
    w_.jump_unless(unwritten(step), written);
    w_.place(again);
    w_.assign(looks, looks + 1);
    w_.emit(if_true(looks == kLostLooks), "trap;");
    load_states(step);
    w_.jump_if(unwritten(step), again);
    for (uint32_t next = step + 1; next < end; ++next) load_states(next);
    w_.place(written);
  }
  // A step with few states mostly waits for them.
  bool few_states() const { return o_.steps_k <= 2; }
  // Orders this step's states before those that this thread loads and stores in the next one: whoever sees one of the
  // latter knows that words which were taken back before have gone. Where a step mostly waits, it is done meanwhile.
  void order_states() {
    if (!o_.alone) w_.emit("fence.acq_rel.gpu;");
  }
  void make_registers() {
    for (uint32_t i = 0; i < o_.gates() * o_.eights * 4; ++i) sums_.push_back(w_.make<Type::f32>());
    for (uint32_t i = 0; i < o_.ahead() * o_.eights; ++i) {
      std::array<U32, 4> words;
      for (U32& word : words) word = w_.make<Type::u32>();
      coming_.push_back(words);
    }
  }
  // The high and the low parts of states.
  void multiply_halves(const std::vector<Fragment>& weights, uint32_t eight, const std::array<U32, 4>& words) {
    for (const char* const order : {"0x5410", "0x7632"}) {
      const U32 b0 = ptx::permuted(words[0], words[1], order), b1 = ptx::permuted(words[2], words[3], order);
      for (uint32_t gate = 0; gate < o_.gates(); ++gate) {
        ptx::multiply_16x8(o_.type, sums(gate, eight), weights[gate][0], b0, b1);
      }
    }
  }
  // Those of the nine products of three parts whose parts' numbers are at most 2 together, the smallest first.
  void multiply_parts(const std::vector<Fragment>& weights, uint32_t eight, const std::array<U32, 4>& words) {
    const std::array<U32, 3> b0 = parts_of(words[0], words[1]), b1 = parts_of(words[2], words[3]);
    for (uint32_t both = 3; both-- > 0;) {
      for (uint32_t part = 0; part <= both; ++part) {
        for (uint32_t gate = 0; gate < o_.gates(); ++gate) {
          ptx::multiply_16x8(TUFF_BF16, sums(gate, eight), weights[gate][both - part], b0[part], b1[part]);
        }
      }
    }
  }
  void multiply() {
    for (const F32& sum : sums_) w_.assign(sum, constant(0));
    load_states(0);
    // Usually the others are there when the first one is. Loading many of them too early only takes memory's time.
    const bool waits_first = !o_.alone && !few_states();
    if (waits_first) wait_for_states(0, 1);
    for (uint32_t step = 1; step < o_.ahead(); ++step) load_states(step);
    for (uint32_t step = 0; step < o_.steps_k; ++step) {
      std::vector<Fragment> weights;
      for (uint32_t gate = 0; gate < o_.gates(); ++gate) weights.push_back(fragment(gate, step));
      if (!o_.alone && (step != 0 || !waits_first)) wait_for_states(step, std::min(step + o_.ahead(), o_.steps_k));
      for (uint32_t eight = 0; eight < o_.eights; ++eight) {
        const std::array<U32, 4>& words = coming(step, eight);
        o_.type == TUFF_F32 ? multiply_parts(weights, eight, words) : multiply_halves(weights, eight, words);
      }
      if (step + o_.ahead() < o_.steps_k) load_states(step + o_.ahead());
    }
    if (!few_states()) order_states();
    keep_sums();
  }
  // [warp][sequence][gate][unit]. Rows of 4 more than a multiple of 16 numbers have no bank conflicts here, nor where
  // half of a warp reads the units of a sequence, and the other half those of the fourth after it.
  void keep_sums() {
    const U32 to = sums_memory_ + warp_ * warp_sums() + ((in_four_ << 1) * o_.sums_row() + row_) * kFloatBytes;
    for (uint32_t gate = 0; gate < o_.gates(); ++gate) {
      for (uint32_t eight = 0; eight < o_.eights; ++eight) {
        for (uint32_t i = 0; i < 4; ++i) {
          const uint32_t at = (eight * 8 + i % 2) * o_.sums_row() + gate * 16 + i / 2 * 8;
          w_.emit("st.shared.f32 [{}+{}], {};", to.text, at * kFloatBytes, sums(gate, eight)[i].text);
        }
      }
    }
    w_.emit("bar.sync 0;");
  }
  F32 sum_of(const U32& at, uint32_t gate) {
    return ptx::sum_of_parts(at, gate * 16 * kFloatBytes, Persistent::kWarps, warp_sums());
  }

  // --- cells --------------------------------------------------------------------------------------------------------

  // The i-th cell of a thread in the slice at hand.
  Cell make_cell(uint32_t i) {
    Cell cell;
    const U32 unit = lane_ & 15, j = (slice_ << 4) + unit;
    cell.column = (warp_ & 3) + ((lane_ >> 4) << 2) + ((warp_ >> 2) << 3) + i * 16;
    const U32 sequence = first_sequence_ + cell.column;
    cell.exists = sequence < parameter(offsetof(Push, end)) && j < hidden_;
    if (o_.eights == 1) cell.exists = cell.exists && warp_ < 4;
    cell.x = x_ + (of_direction64(offsetof(Push, x_at)) + widen(sequence * parameter(offsetof(Push, x_batch)) + j)) *
                      kFloatBytes;
    if (o_.output) {
      const U64 of_sequence = widen(sequence) * parameter64(offsetof(Push, y_batch));
      cell.y = y_ + (of_direction64(offsetof(Push, y_at)) + of_sequence + widen(j)) * size();
    }
    find_state(cell);
    cell.shared_with_others = states_ + widen(((slice_ * o_.sequences() + cell.column) * 16 + unit) * 4);
    read_constants(cell, sequence, j);
    return cell;
  }
  void find_state(Cell& cell) {
    const U32 j = (slice_ << 4) + (lane_ & 15), sequence = first_sequence_ + cell.column;
    const U32 place = (direction_ * parameter(offsetof(Push, batch)) + sequence) * hidden_ + j;
    cell.stored = state_ + multiply_wide(place, w_.constant(kFloatBytes));
    if (lstm()) cell.c = cell.stored + multiply_wide(parameter(offsetof(Push, at_c)), w_.constant(kFloatBytes));
  }
  void read_constants(Cell& cell, const U32& sequence, const U32& j) {
    if (o_.bias) {
      for (uint32_t row = 0; row < o_.bias_rows(); ++row) {
        const U32 at = (direction_ * o_.bias_rows() + row) * hidden_ + j;
        cell.biases.push_back(
            ptx::load_element(TUFF_F32, bias_ + multiply_wide(at, w_.constant(kFloatBytes)), 0, &cell.exists));
      }
    }
    if (o_.peepholes) {
      for (uint32_t which = 0; which < 3; ++which) {
        const U32 at = (direction_ * 3 + which) * hidden_ + j;
        cell.peepholes[which] =
            ptx::load_element(o_.type, peepholes_ + multiply_wide(at, w_.constant(size())), 0, &cell.exists);
      }
    }
    if (o_.lengths) {
      cell.length = w_.variable(w_.constant(0));
      w_.emit(if_true(cell.exists), "ld.global.u32 {}, [{}];", cell.length.text,
              multiply_add(sequence, kFloatBytes, lengths_).text);
    }
  }
  bool lstm() const { return o_.cell == TUFF_RNN_CELL_LSTM; }
  bool gru() const { return o_.cell == TUFF_RNN_CELL_GRU; }
  void load_state(Cell& cell) {
    cell.h_value = w_.variable(ptx::load_element(TUFF_F32, cell.stored, 0, &cell.exists));
    if (lstm()) cell.c_value = w_.variable(ptx::load_element(TUFF_F32, cell.c, 0, &cell.exists));
  }
  void store_state(const Cell& cell) {
    ptx::store_element(TUFF_F32, cell.stored, cell.h_value, if_true(cell.exists));
    if (lstm()) ptx::store_element(TUFF_F32, cell.c, cell.c_value, if_true(cell.exists));
  }
  // h as two numbers in a word, in the buffer that this offset leads to.
  void share(const Cell& cell, const U64& buffer) {
    const F32& h = cell.h_value;
    if (o_.type == TUFF_F32) {
      // Every NaN becomes one that is no unwritten word.
      const U32 bits = select(h == h, U32{&w_, h.text}, w_.constant(0x7fffffff));
      return set_word(cell, buffer, select(cell.exists, bits, w_.constant(0)));
    }
    const B16 high = ptx::halves_of(ptx::packed_pair(o_.type, h, h))[0];
    const F32 rest = h - ptx::float_of(o_.type, high);  // NaN if h is infinite
    const U32 word = ptx::packed_pair(o_.type, h, select(rest == rest, rest, constant(0)));
    set_word(cell, buffer, select(cell.exists, word, w_.constant(0)));
  }
  void set_word(const Cell& cell, const U64& buffer, const U32& word) {
    w_.emit("st.relaxed.gpu.global.u32 [{}], {};", (cell.shared_with_others + buffer).text, word.text);
  }

  // The products of the input, of all gates of a cell.
  std::vector<F32> inputs_of(const Cell& cell) {
    std::vector<F32> all;
    U64 at = o_.alone ? cell.x + x_offset_ : cell.x;
    const U64 next = multiply_wide(hidden_, w_.constant(kFloatBytes));
    for (uint32_t gate = 0; gate < o_.gates(); ++gate) {
      all.push_back(ptx::load_element(TUFF_F32, at, 0, &cell.exists));
      if (gate + 1 < o_.gates()) at = at + next;
    }
    return all;
  }
  F32 limited(const F32& sum) {
    if (!o_.clip) return sum;
    const F32 clip = w_.parameter_float("push", offsetof(Push, clip)), low = clip * constant(-1);
    const F32 below = select(clip < sum, clip, sum);
    return select(below < low, low, below);
  }
  // h and c after the step.
  void compute(Cell& cell, const std::vector<F32>& inputs) {
    const U32 at = sums_memory_ + (cell.column * o_.sums_row() + (lane_ & 15)) * kFloatBytes;
    const auto of_input = [&](uint32_t gate) { return o_.bias ? inputs[gate] + cell.biases[gate] : inputs[gate]; };
    const auto sum = [&](uint32_t gate) { return of_input(gate) + sum_of(at, gate); };
    F32 h, c;
    if (lstm()) {
      const uint32_t forget = o_.onnx ? 2 : 1, candidate = o_.onnx ? 3 : 2, output = o_.onnx ? 1 : 3;
      const auto peep = [&](const F32& s, uint32_t which, const F32& of) {
        return o_.peepholes ? multiply_add(cell.peepholes[which], of, s) : s;
      };
      const F32 i = ptx::sigmoid(limited(peep(sum(0), 0, cell.c_value)));
      const F32 f = ptx::sigmoid(limited(peep(sum(forget), 2, cell.c_value)));
      const F32 g = ptx::hyperbolic_tangent(limited(sum(candidate)));
      c = multiply_add(f, cell.c_value, i * g);
      h = ptx::sigmoid(limited(peep(sum(output), 1, c))) * ptx::hyperbolic_tangent(c);
    } else if (gru()) {
      const F32 r = ptx::sigmoid(limited(sum(o_.onnx ? 1 : 0))), z = ptx::sigmoid(limited(sum(o_.onnx ? 0 : 1)));
      const F32 inner = o_.bias ? sum_of(at, 2) + cell.biases[3] : sum_of(at, 2);
      const F32 n = ptx::hyperbolic_tangent(limited(multiply_add(r, inner, of_input(2))));
      h = multiply_add(z, cell.h_value, (constant(1) - z) * n);
    } else {
      h = ptx::hyperbolic_tangent(limited(sum(0)));
    }
    runs_ = cell.exists;
    if (o_.lengths) {
      const Pred within = w_.result<Type::pred>("setp.lt.s32", t_, cell.length);
      runs_ = cell.exists && within;
    }
    w_.assign(cell.h_value, select(runs_, h, cell.h_value));
    if (lstm()) w_.assign(cell.c_value, select(runs_, c, cell.c_value));
  }
  void store_output(const Cell& cell, const Pred& runs) {
    if (!o_.output) return;
    const F32 value = select(runs, cell.h_value, constant(0));
    const U64 at = o_.alone ? cell.y + y_offset_ : cell.y;
    ptx::store_element(o_.type, at, value, if_true(cell.exists));
  }

  // --- steps --------------------------------------------------------------------------------------------------------

  void begin_steps() {
    step_ = w_.variable(w_.constant(0));
    t_ = w_.variable(of_direction(offsetof(Push, t)));
    const U32 backwards = w_.make<Type::u32>();
    w_.emit("shr.u32 {}, {}, {};", backwards.text, parameter(offsetof(Push, backwards)).text, direction_.text);
    t_step_ = w_.variable(w_.constant(1) - ((backwards & 1) << 1));
    const U64 zero{&w_, "0", true, 0};
    if (o_.alone) x_offset_ = w_.variable(zero), y_offset_ = w_.variable(zero);
    x_step_ = w_.variable(of_direction64(offsetof(Push, x_step)) * kFloatBytes);
    y_step_ = w_.variable(of_direction64(offsetof(Push, y_step)) * size());
    steps_ = parameter(offsetof(Push, steps));
  }
  void next_step() {
    w_.assign(step_, step_ + 1);
    w_.assign(t_, t_ + t_step_);
    if (!o_.alone) return;
    w_.assign(x_offset_, x_offset_ + x_step_);
    if (o_.output) w_.assign(y_offset_, y_offset_ + y_step_);
  }
  // Where the states of this step lie, of the next one, and of that before it.
  U64 buffer(uint32_t from_here) { return widen(((step_ + from_here) & (Persistent::kBuffers - 1)) * buffer_); }
  // body(i) for each of a thread's cells.
  template <typename Body>
  void each_cell(const Body& body) {
    const auto all = [&] {
      for (uint32_t i = 0; i < cells(); ++i) body(i);
    };
    if (o_.eights == 1) return w_.when(warp_ < 4, all);  // half of the warps have none
    all();
  }

  void compute_together() {
    keep_weights();
    make_registers();
    begin_steps();
    std::vector<Cell> mine;
    for (uint32_t i = 0; i < cells(); ++i) {
      mine.push_back(make_cell(i));
      load_state(mine.back());
    }
    each_cell([&](uint32_t i) { share(mine[i], buffer(0)); });
    const U64 first_read = w_.variable(to_read_);
    w_.repeat([&] { return step_ < steps_; },
              [&] {
                std::vector<std::vector<F32>> inputs;
                for (uint32_t i = 0; i < cells(); ++i) inputs.push_back(inputs_of(mine[i]));
                w_.assign(to_read_, first_read + buffer(0));
                multiply();
                std::vector<Pred> runs(cells());
                each_cell([&](uint32_t i) {
                  // All states of this step have been seen, so nobody reads those of the step before.
                  set_word(mine[i], buffer(Persistent::kBuffers - 1), w_.constant(Persistent::kUnwritten));
                  compute(mine[i], inputs[i]);
                  runs[i] = runs_;
                  share(mine[i], buffer(1));
                });
                if (few_states()) order_states();
                w_.emit("bar.sync 0;");  // the next step's sums may take the place of these
                each_cell([&](uint32_t i) { store_output(mine[i], runs[i]); });
                for (const Cell& cell : mine) {
                  w_.assign(cell.x, cell.x + x_step_);
                  if (o_.output) w_.assign(cell.y, cell.y + y_step_);
                }
                next_step();
              });
    each_cell([&](uint32_t i) {
      find_state(mine[i]);  // anew: registers are short in the loop
      store_state(mine[i]);
    });
  }

  // body() for each slice of units.
  template <typename Body>
  void each_slice(const Body& body) {
    w_.assign(slice_, w_.constant(0));
    w_.repeat([&] { return slice_ < slices_; },
              [&] {
                body();
                w_.assign(slice_, slice_ + 1);
              });
  }
  void compute_alone() {
    make_registers();
    begin_steps();
    each_slice([&] {
      each_cell([&](uint32_t i) {
        Cell cell = make_cell(i);
        load_state(cell);
        share(cell, buffer(0));
      });
    });
    const U64 first_read = w_.variable(to_read_);
    w_.repeat([&] { return step_ < steps_; },
              [&] {
                w_.emit("bar.sync 0;");  // the states of the step before are there
                w_.assign(to_read_, first_read + buffer(0));
                each_slice([&] {
                  find_rows();
                  multiply();
                  each_cell([&](uint32_t i) {
                    Cell cell = make_cell(i);
                    load_state(cell);
                    compute(cell, inputs_of(cell));
                    share(cell, buffer(1));
                    store_output(cell, runs_);
                    store_state(cell);
                  });
                  w_.emit("bar.sync 0;");  // the next slice's sums may take the place of these
                });
                next_step();
              });
  }

  const Persistent o_;
  Writer w_;
  Label end_{};
  U64 x_, r_, state_, bias_, peepholes_, lengths_, y_, words_;
  U32 thread_, lane_, warp_, in_four_, row_;  // in_four_ along k, row_ of eight
  U32 hidden_, slices_, slice_, direction_, first_sequence_, first_step_k_;
  Pred second_direction_;
  U64 states_, to_read_;
  U32 buffer_;  // bytes of one
  U32 memory_, sums_memory_, fragments_;
  std::vector<U64> rows_;
  std::array<Pred, 2> row_exists_;
  std::vector<Fragment> held_;
  std::vector<std::array<U32, 4>> coming_;
  std::vector<F32> sums_;
  Pred runs_;
  U32 step_, steps_, t_, t_step_;
  U64 x_offset_, y_offset_, x_step_, y_step_;
};

NativeKernel write_persistent(const KernelRequest& request) {
  const Persistent options = Persistent::read(request);
  return {Kernel(options).write(), "rnn_persistent", Persistent::kThreads, options.shared_bytes()};
}

constexpr LegalRange kCells[] = {{TUFF_RNN_CELL_LSTM, TUFF_RNN_CELL_TANH}};
constexpr LegalRange kEights[] = {{1, 2}, {4, 4}};
constexpr LegalRange kSteps[] = {{1, Persistent::kMaxSteps}};
constexpr LegalRange kHeld[] = {{0, Persistent::kMaxSteps}};
constexpr DefineInfo kDefines[] = {{"ALONE", kFlag},    {"BIAS", kFlag},      {"CELL", kCells},    {"CLIP", kFlag},
                                   {"EIGHTS", kEights}, {"HELD", kHeld},      {"LENGTHS", kFlag},  {"ONNX", kFlag},
                                   {"OUTPUT", kFlag},   {"PEEPHOLES", kFlag}, {"STEPS_K", kSteps}, {"TYPE", kFloats},
                                   {"WHOLE", kFlag}};

}  // namespace

uint32_t Persistent::ahead() const {
  const uint32_t others = kept_registers(), most = held == 0 ? 64 : 48;
  const uint32_t left = others < kMaxRegisters ? std::min(kMaxRegisters - others, most) : 0;
  return std::clamp(left / (4 * eights), 1u, steps_k);
}

uint32_t Persistent::shared_bytes() const {
  return weight_bytes() + kWarps * sequences() * sums_row() * kFloatBytes + ptx::kSharedAlignment;
}

bool Persistent::legal() const {
  if (held > steps_k || (alone && held != 0) || (peepholes && cell != TUFF_RNN_CELL_LSTM)) return false;
  if (onnx && cell == TUFF_RNN_CELL_TANH) return false;
  if (held * parts() * gates() * 4 > kMaxWeights) return false;
  return kept_registers() + kLeastAhead <= kMaxRegisters && shared_bytes() <= ptx::kSharedBytes;
}

KernelRequest Persistent::request() const {
  KernelRequest made(persistent_source);
  made.define("ALONE", alone).define("BIAS", bias).define("CELL", cell).define("CLIP", clip).define("EIGHTS", eights);
  made.define("HELD", held).define("LENGTHS", lengths).define("ONNX", onnx).define("OUTPUT", output);
  made.define("PEEPHOLES", peepholes).define("STEPS_K", steps_k).define("TYPE", type).define("WHOLE", whole);
  return made;
}

Persistent Persistent::read(const KernelRequest& request) {
  const auto value = [&](const char* name) { return static_cast<uint32_t>(request.value_of(name)); };
  Persistent options;
  options.alone = value("ALONE") != 0;
  options.bias = value("BIAS") != 0;
  options.cell = static_cast<int32_t>(value("CELL"));
  options.clip = value("CLIP") != 0;
  options.eights = value("EIGHTS");
  options.held = value("HELD");
  options.lengths = value("LENGTHS") != 0;
  options.onnx = value("ONNX") != 0;
  options.output = value("OUTPUT") != 0;
  options.peepholes = value("PEEPHOLES") != 0;
  options.steps_k = value("STEPS_K");
  options.type = static_cast<int32_t>(value("TYPE"));
  options.whole = value("WHOLE") != 0;
  if (!options.legal()) fail(TUFF_ERROR_INTERNAL, "rnn_persistent: options that do not go together");
  return options;
}

const KernelSource persistent_source = {"rnn_persistent", nullptr, kDefines, write_persistent};

}  // namespace tuff::rnn
