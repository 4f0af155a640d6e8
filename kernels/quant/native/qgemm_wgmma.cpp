// C = activation(alpha * A * W^T + bias + residual) with quantised weights W and many rows of A, by the wgmma
// instructions of Hopper GPUs. Weights are read as they are stored, and dequantised in registers.
//
//               rows of A (256)          A block computes 128 rows of W by 64 to 256 rows of A at a time, and takes
//               tile
//            +---------------+           after tile. It has three warp groups:
//       64   |   A^T: 64 k   |
//      +---+ +---------------+             group 0   loads: cp.async into a ring of stages, each 64 of k;
//  128 | W | |    group 1    |             group 1   dequantises and multiplies the upper 64 rows of W;
//      |   | +---------------+             group 2   the lower 64.
//      +---+ |    group 2    |
//            +---------------+           full[s] tells the multiplying groups that stage s has arrived, empty[s] tells
//                                        the loading group that both have multiplied it.
//
// W is the operand that wgmma takes from registers: those of the next step are made while the tensor cores compute this
// one. A is the other, in shared memory with rows of 128 bytes whose pieces are permuted by the row's number.
//
// In tiles of 64 rows both groups have all of them, and every second step of k; in the end their sums are added up in
// shared memory.
//
// Thread t of four needs numbers 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of each 16 along k, of two rows. Two of them are
// made 16-bit numbers as in qgemm_mma.cpp: an integer's bits become the last ones of 1024's fraction (128's in bf16),
// from which 1024 and the zero point are taken off again, and their scale multiplies them. Where the scale is not of
// A's type, or the format has more than that, they are computed in f32 in the same way, with 2^23, and rounded once.
//
// The rows of W that a warp has are permuted, so that the four threads which have a row of C after the transposition at
// the end have 16 neighbours in it: see row_of().
#include "kernels/quant/native/qgemm_wgmma.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/gemm/native/tiles.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/legal_values.hpp"
#include "kernels/native/ptx.hpp"
#include "kernels/quant/native/unpack.hpp"
#include "planning/element_type.hpp"
#include "planning/status.hpp"

namespace tuff::quant {
namespace {

using gemm::Tile;
using gemm::Tiles;
using ptx::F32;
using ptx::if_true;
using ptx::kActivations;
using ptx::kFlag;
using ptx::kFloats;
using ptx::kGroup;
using ptx::kHalves;
using ptx::kRowBytes;
using ptx::multiply_add;
using ptx::multiply_wide;
using ptx::Pred;
using ptx::Ring;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

constexpr uint32_t kStep = Wgmma::kStep, kPiece = 16;
constexpr uint32_t kSlabs = kStep / 16;  // of a step: what an instruction multiplies
constexpr uint32_t kBarriersBytes = 256, kMaxStages = kBarriersBytes / 2 / ptx::kBarrierBytes;
constexpr uint32_t kRowsOfBlock = 256, kBlockBytes = 144;  // q4_K: numbers of a block, and its bytes
// Registers of a thread that loads, and of one that multiplies, to which the hardware moves them. A block starts with
// 168 for each thread, or 80 if two blocks share a multiprocessor, and cannot have more of them afterwards: it would
// wait for ever.
struct Registers {
  uint32_t loader, multiplier;
};
constexpr Registers kRegisters[] = {{64, 216}, {48, 96}};
static_assert(kRegisters[0].loader + 2 * kRegisters[0].multiplier <= 3 * 168);
static_assert(kRegisters[1].loader + 2 * kRegisters[1].multiplier <= 3 * 80);
constexpr uint32_t kMultipliers = 2 * kGroup;

// The row of a warp's 16 at a place in the operand. A thread has places lane / 4 and that + 8; after the transposition
// it has two neighbours of each eight.
U32 row_of(const U32& place) { return (place & ~15u) | ((place & 6) << 1) | (((place >> 3) & 1) << 1) | (place & 1); }

class Kernel {
 public:
  explicit Kernel(const Wgmma& options) : o_(options), w_("sm_90a", "qgemm_wgmma"), unpack_(w_, options) {}

  std::string write() {
    weights_ = w_.pointer("weights");
    scales_ = w_.pointer("scales");
    zeros_ = w_.pointer("zeros");
    a_ = w_.pointer("a");
    c_ = w_.pointer("c");
    bias_ = w_.pointer("bias");
    residual_ = w_.pointer("residual");
    w_.block("push", sizeof(Wgmma::Push));
    read_parameters();
    const U32 thread = w_.special("%tid.x");
    memory_ = ptx::aligned_memory(w_);
    full_ = memory_ + o_.stages() * o_.stage_bytes();
    empty_ = full_ + o_.stages() * ptx::kBarrierBytes;
    const uint32_t readers = (o_.divides_k() ? kGroup : kMultipliers) / ptx::kWarp;
    w_.when(thread == 0, [&] { ptx::make_stage_barriers(full_, empty_, o_.stages(), kGroup / ptx::kWarp, readers); });
    w_.emit("bar.sync 0;");
    const Registers& registers = kRegisters[o_.blocks() - 1];
    ptx::divide_work(
        thread, registers.loader, registers.multiplier, [&] { load(thread); }, [&] { multiply(thread - kGroup); });
    return w_.text(Wgmma::kThreads, o_.blocks());
  }

 private:
  U32 parameter(size_t offset) { return w_.parameter("push", offset); }
  uint32_t size(int32_t dtype) const { return static_cast<uint32_t>(dtype_size(dtype)); }

  void read_parameters() {
    n_ = parameter(offsetof(Wgmma::Push, n));
    m_ = parameter(offsetof(Wgmma::Push, m));
    k_ = parameter(offsetof(Wgmma::Push, k));
    tiles_ = gemm::tiles_of_weights<Wgmma::Push>(w_, k_, o_.rows, o_.columns);
    row_scales_ = parameter(offsetof(Wgmma::Push, row_scales));
    block_shift_ = parameter(offsetof(Wgmma::Push, block_shift));
    lda_ = parameter(offsetof(Wgmma::Push, lda));
  }

  U32 block_of(const U32& k) { return w_.result<Type::u32>("shr.u32", k, block_shift_); }

  // --- the group that loads -----------------------------------------------------------------------------------------

  // Copies to a stage that a thread starts in each step, at offsets from a pointer that advances with k.
  struct Copies {
    U64 pointer;
    uint32_t bytes;  // of each
    struct Copy {
      U32 offset, to;
      uint32_t more;  // added to `to`
      Pred exists;    // if it has a writer
    };
    std::vector<Copy> all;
  };

  void copy(const U32& to, uint32_t more, const U64& from, uint32_t bytes, const Pred& exists) {
    const ptx::Guard guard = exists.writer != nullptr ? if_true(exists) : ptx::Guard{};
    w_.emit(guard, "cp.async.{}.shared.global.L2::128B [{}+{}], [{}], {};", bytes == 16 ? "cg" : "ca", to.text, more,
            from.text, bytes);
  }
  void start(const Copies& copies, const U32& stage) {
    for (const Copies::Copy& one : copies.all) {
      copy(one.to + stage, one.more, copies.pointer + widen(one.offset), copies.bytes, one.exists);
    }
  }

  // Of A a thread has piece thread % 8 of rows thread / 8, + 16, + 32, ...
  Copies copies_of_a(const Tile& tile, const U32& thread) {
    const U32 row = thread >> 3, piece = thread & 7, last = m_ - 1;
    const U32 to = ptx::piece_at(memory_, row, piece);
    Copies copies{w_.variable(a_), kPiece, {}};
    for (uint32_t i = 0; i < o_.columns / 16; ++i) {
      const U32 at = min(tile.column + row + i * 16, last);
      copies.all.push_back({w_.variable(at * lda_ + piece), to, i * 16 * kRowBytes, {}});
    }
    return copies;
  }
  void start_a(const Copies& copies, const U32& stage) {
    for (const Copies::Copy& one : copies.all) {
      copy(one.to + stage, one.more, multiply_add(one.offset, kPiece, copies.pointer), kPiece, {});
    }
  }

  // For rows of a tile's weights, neighbouring threads have neighbouring units of 16 or 4 bytes.
  Copies copies_of_rows(const Tile& tile, const U32& thread, uint32_t row_bytes, uint32_t place) {
    const uint32_t unit = row_bytes % kPiece == 0 ? kPiece : 4, units = row_bytes / unit, all = o_.rows * units;
    Copies copies{w_.variable(weights_ + multiply_wide(tile.row, stored_row_)), unit, {}};
    const U32 to = w_.variable(memory_ + place + unpack_.place_of_unit(thread, unit, units));
    for (uint32_t first = 0; first < all; first += kGroup) {
      const U32 j = thread + first, in_tile = j / w_.constant(units), own = j - in_tile * w_.constant(units);
      const U32 row = min(tile.row + row_of(in_tile), n_ - 1) - tile.row;
      Pred exists;
      if (first + kGroup > all) exists = j < all;
      copies.all.push_back({w_.variable(row * stored_row_ + own * w_.constant(unit)), to, first * unit, exists});
    }
    return copies;
  }

  // The scales of a row in a step; of those of two bytes, the four bytes around it. Likewise zero points.
  struct RowNumbers {
    U64 scales, first;  // address; number of the row's first
    U32 to;
    Pred exists;
  };
  RowNumbers numbers_of_row(const Tile& tile, const U32& thread) {
    RowNumbers numbers;
    if (!o_.block_scales()) return numbers;
    if (o_.rows < kGroup) numbers.exists = thread < o_.rows;
    const U32 row = min(tile.row + row_of(thread), n_ - 1);
    numbers.first = w_.variable(multiply_wide(row, row_scales_));
    numbers.scales = w_.variable(scales_ + numbers.first * size(o_.scale_type));
    numbers.to = thread;
    return numbers;
  }
  U64 word_around(const U64& address) {
    const U64 made = w_.make<Type::u64>();
    w_.emit("and.b64 {}, {}, -4;", made.text, address.text);
    return made;
  }
  // `base` is where the numbers of the tile's rows are: scales, then zero points.
  void start_numbers(const RowNumbers& numbers, const U32& base, const U32& k) {
    const U32 block = block_of(k);
    const uint32_t bytes = o_.scale_bytes();
    const U64 from = word_around(multiply_add(block, size(o_.scale_type), numbers.scales));
    copy(base + numbers.to * w_.constant(bytes), 0, from, bytes, numbers.exists);
    if (!o_.zeros) return;
    U64 at = numbers.first + widen(block);
    if (unpack_.bits() == 4) {
      const U64 halved = w_.make<Type::u64>();
      w_.emit("shr.u64 {}, {}, 1;", halved.text, at.text);
      at = halved;
    }
    copy(base + numbers.to * w_.constant(o_.zero_bytes()), o_.rows * bytes, word_around(zeros_ + at), o_.zero_bytes(),
         numbers.exists);
  }
  // In each step, or at the start of each period to the next slot.
  void start_numbers_of_step(const RowNumbers& numbers, const U32& stage, const U32& k, const U32& slot) {
    if (!o_.block_scales()) return;
    if (o_.period == 0) return start_numbers(numbers, memory_ + stage + unpack_.place_of_numbers(), k);
    w_.when((k & (o_.period * kStep - 1)) == 0u, [&] {
      start_numbers(numbers, memory_ + o_.place_of_slots() + slot * w_.constant(o_.slot_bytes()), k);
      w_.assign(slot, next_slot(slot));
    });
  }
  U32 next_slot(const U32& slot) {
    const U32 next = slot + 1;
    return select(next == o_.slots(), w_.constant(0), next);
  }

  void load(const U32& thread) {
    ptx::CopiedStages stages(thread, full_, o_.stages(), o_.lag());
    const U32 slot = w_.variable(w_.constant(0));
    const bool blocks = o_.format == TUFF_QUANT_Q4_K;
    stored_row_ = parameter(offsetof(Wgmma::Push, row_bytes));
    tiles_.each([&](const Tile& tile) {
      const Copies a = copies_of_a(tile, thread);
      const Copies rows = copies_of_rows(tile, thread, o_.row_bytes(), unpack_.place_of_rows());
      if (blocks) w_.assign(rows.pointer, rows.pointer + uint64_t{o_.header_bytes()});
      Copies headers;
      if (blocks) headers = copies_of_rows(tile, thread, o_.header_bytes(), unpack_.place_of_headers());
      const RowNumbers numbers = numbers_of_row(tile, thread);
      const U32 k = w_.variable(w_.constant(0));
      w_.repeat(
          [&] { return k < k_; },
          [&] {
            wait_at(empty_, stages.ring());
            const U32 stage = stages.ring().stage * w_.constant(o_.stage_bytes());
            start_a(a, stage);
            start(rows, stage);
            if (blocks) start(headers, stage);
            start_numbers_of_step(numbers, stage, k, slot);
            stages.started();
            w_.assign(k, k + kStep);
            w_.assign(a.pointer, a.pointer + uint64_t{kRowBytes});
            w_.assign(rows.pointer, rows.pointer + uint64_t{o_.row_bytes()});
            if (blocks) {
              const Pred next = (k & (kRowsOfBlock - 1)) == 0u;
              w_.emit(if_true(next), "add.u64 {}, {}, {};", rows.pointer.text, rows.pointer.text, o_.header_bytes());
              w_.emit(if_true(next), "add.u64 {}, {}, {};", headers.pointer.text, headers.pointer.text, kBlockBytes);
            }
          });
    });
    stages.finish();
  }

  // --- the groups that multiply -------------------------------------------------------------------------------------

  void multiply(const U32& thread) {
    const U32 group = w_.variable(thread >> 7);
    lane_ = w_.variable(thread & 31);
    quad_ = w_.variable(lane_ & 3);
    const U32 warp = (thread >> 5) & 3;
    first_of_warp_ = w_.variable((o_.divides_k() ? w_.constant(0) : group << 6) + (warp << 4));
    place_ = w_.variable(first_of_warp_ + (lane_ >> 2));
    unpack_.locate(memory_, place_, quad_);
    const Pred elected = lane_ == 0u;
    for (uint32_t i = 0; i < o_.columns / 2; ++i) sums_.push_back(w_.make<Type::f32>());
    std::array<Weights, 2> weights;  // of this step and the next
    for (Weights& one : weights) {
      for (U32& pair : one) pair = w_.make<Type::u32>();
    }
    const Pred always = ptx::truth(w_, true);
    const U32 high = w_.variable(w_.constant(ptx::kMatrixHigh));
    const Ring ring = ptx::make_ring(w_, 0);
    if (o_.divides_k()) w_.assign(ring.stage, group);
    slot_ = w_.variable(w_.constant(0)), next_slot_ = w_.variable(w_.constant(0));
    tiles_.each([&](const Tile& tile) {
      start_rows(tile);
      const U32 k = w_.variable(o_.divides_k() ? group * w_.constant(kStep) : w_.constant(0));
      const U32 last = w_.variable(empty_), steps = w_.variable(w_.constant(0));
      const ptx::Label again = w_.label(), end = w_.label();
      w_.place(again);
      for (const Weights& one : weights) {
        w_.jump_unless(k < k_, end);
        wait_at(full_, ring);
        find_slot(k);
        unpack_.read(one, ring.stage * w_.constant(o_.stage_bytes()), slot_ * w_.constant(o_.slot_bytes()), k,
                     first_scales_, zero_of_rows_);
        w_.emit("wgmma.fence.sync.aligned;");
        const Pred more = steps != 0u;
        const U32 b = ((memory_ + ring.stage * w_.constant(o_.stage_bytes())) >> 4) | (1u << 16);
        for (uint32_t i = 0; i < kSlabs; ++i) {
          multiply_slab(&one[4 * i], ptx::matrix(b + i * 2, high), i == 0 ? more : always);
        }
        w_.emit("wgmma.commit_group.sync.aligned;");
        w_.emit("wgmma.wait_group.sync.aligned 1;");
        // All but the last of the steps before have finished.
        arrive_at(last, if_true(more && elected));
        w_.assign(last, empty_ + (ring.stage << 3));
        w_.assign(steps, steps + 1);
        for (uint32_t i = 0; i < (o_.divides_k() ? 2u : 1u); ++i) ptx::advance(ring, o_.stages());
        w_.assign(k, k + (o_.divides_k() ? 2 : 1) * kStep);
      }
      w_.jump(again);
      w_.place(end);
      w_.emit("wgmma.wait_group.sync.aligned 0;");
      arrive_at(last, if_true(elected));
      if (o_.divides_k()) {
        add_up(thread, group);
        w_.when(group == 0u, [&] { store(tile); });
      } else {
        store(tile);
      }
    });
  }

  // The scales of a new period are in the next slot.
  void find_slot(const U32& k) {
    if (o_.period == 0) return;
    const Pred begins = (k & (o_.period * kStep - 1)) < (o_.divides_k() ? 2 : 1) * kStep;
    w_.assign(slot_, select(begins, next_slot_, slot_));
    w_.assign(next_slot_, select(begins, next_slot(next_slot_), next_slot_));
  }

  void multiply_slab(const U32* weights, const U64& a, const Pred& add) {
    const char* const type = ptx::name_of_half(o_.type);
    w_.emit("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, {{{}, {}, {}, {}}}, {}, {}, 1, 1, 0;", o_.columns,
            type, type, ptx::list(sums_), weights[0].text, weights[1].text, weights[2].text, weights[3].text, a.text,
            add.text);
  }

  // The numbers of the rows' first scales, and zero points that are the same for a whole row.
  void start_rows(const Tile& tile) {
    for (uint32_t half = 0; half < 2; ++half) {
      const U32 row = tile.row + row_of(place_ + half * 8);
      rows_[half] = w_.variable(row);
      if (o_.block_scales()) first_scales_[half] = w_.variable(row * row_scales_);
      if (!o_.zeros || o_.block_scales()) continue;
      const U32 number = o_.scales == 0 ? w_.constant(0) : min(row, n_ - 1);
      zero_of_rows_[half] = w_.variable(unpack_.zero_in_memory(zeros_, number));
    }
  }

  // Group 0 gets the other one's sums, which are in shared memory from one barrier to the next.
  void add_up(const U32& thread, const U32& group) {
    const U32 at = empty_ + o_.stages() * ptx::kBarrierBytes + ((thread & (kGroup - 1)) << 2);
    w_.emit("bar.sync 1, {};", kMultipliers);  // group 0 has read the last tile's
    w_.when(group != 0u, [&] {
      for (uint32_t i = 0; i < sums_.size(); ++i) {
        w_.emit("st.shared.f32 [{}+{}], {};", at.text, i * kGroup * 4, sums_[i].text);
      }
    });
    w_.emit("bar.sync 1, {};", kMultipliers);
    w_.when(group == 0u, [&] {
      for (uint32_t i = 0; i < sums_.size(); ++i) {
        const F32 other = w_.make<Type::f32>();
        w_.emit("ld.shared.f32 {}, [{}+{}];", other.text, at.text, i * kGroup * 4);
        w_.emit("add.f32 {}, {}, {};", sums_[i].text, sums_[i].text, other.text);
      }
    });
  }

  // --- the end ------------------------------------------------------------------------------------------------------

  // What the rows of W, which are columns of C, have in common for all rows of A.
  struct Column {
    F32 factor, bias;
    U64 residual;  // in the thread's first row of C
    Pred exists;
  };

  Column column_of(const Tile& tile, uint32_t half, const F32& alpha) {
    Column column;
    const U32& at = rows_[half];
    if (o_.edge) column.exists = at < n_;
    const Pred* const exists = o_.edge ? &column.exists : nullptr;
    column.factor = alpha;
    if (o_.integers() && !o_.block_scales()) {
      const U64 from = o_.scales == 0 ? scales_ : multiply_add(at, size(o_.scale_type), scales_);
      column.factor = alpha * ptx::load_element(o_.scale_type, from, 0, o_.scales == 0 ? nullptr : exists);
    }
    const uint32_t bytes = size(o_.c_type);
    if (o_.bias) column.bias = ptx::load_element(o_.c_type, multiply_add(at, bytes, bias_), 0, exists);
    if (o_.residual) {
      const U32 row = tile.column + (quad_ << 1);
      column.residual = multiply_add(at, bytes, residual_ + multiply_wide(row, ld_residual_bytes_));
    }
    return column;
  }

  F32 result(const Column& column, uint32_t half, uint32_t eight, uint32_t i, const Pred& row_exists) {
    F32 value = sums_[eight * 4 + half * 2 + i] * column.factor;
    if (o_.bias) value = value + column.bias;
    if (o_.residual) {
      Pred both;
      if (o_.edge) both = row_exists && column.exists;
      const U64 from = multiply_add(ld_residual_bytes_, eight * 8 + i, column.residual);
      value = value + ptx::load_element(o_.c_type, from, 0, o_.edge ? &both : nullptr);
    }
    return ptx::activated(value, o_.activation);
  }

  void store(const Tile& tile) {
    const uint32_t bytes = size(o_.c_type);
    const F32 alpha = w_.parameter_float("push", offsetof(Wgmma::Push, alpha));
    ldc_bytes_ = parameter(offsetof(Wgmma::Push, ldc)) * bytes;
    if (o_.residual) ld_residual_bytes_ = parameter(offsetof(Wgmma::Push, ld_residual)) * bytes;
    const std::array<Column, 2> columns{column_of(tile, 0, alpha), column_of(tile, 1, alpha)};
    const U32 row = tile.column + (quad_ << 1);  // of C, of the thread's first sum
    if (o_.c_type == TUFF_F32) return store_floats(columns, row);
    // After the transposition a thread has a row of C, and four neighbours in it.
    const U32 own_row = tile.column + (lane_ >> 2), column = tile.row + first_of_warp_ + (quad_ << 2);
    const U64 to = multiply_add(column, bytes, c_ + multiply_wide(own_row, ldc_bytes_));
    for (uint32_t eight = 0; eight < o_.columns / 8; ++eight) {
      std::array<U32, 2> pairs;
      for (uint32_t half = 0; half < 2; ++half) {
        std::array<F32, 2> values;
        for (uint32_t i = 0; i < 2; ++i) {
          Pred exists;
          if (o_.edge && o_.residual) exists = row + (eight * 8 + i) < m_;
          values[i] = result(columns[half], half, eight, i, exists);
        }
        const U32 pair = ptx::packed_pair(o_.c_type, values[0], values[1]);
        pairs[half] = w_.result<Type::u32>("movmatrix.sync.aligned.m8n8.trans.b16", pair);
      }
      Pred exists;
      if (o_.edge) exists = own_row + eight * 8 < m_ && column < n_;
      store_four(multiply_add(ldc_bytes_, eight * 8, to), pairs, exists, column);
    }
  }

  void store_four(const U64& to, const std::array<U32, 2>& pairs, const Pred& exists, const U32& column) {
    const ptx::Guard guard = o_.edge ? if_true(exists) : ptx::Guard{};
    if (o_.vector) {
      w_.emit(guard, "st.global.v2.b32 [{}], {{{}, {}}};", to.text, pairs[0].text, pairs[1].text);
      return;
    }
    for (uint32_t i = 0; i < 4; ++i) {
      const ptx::B16 one = ptx::halves_of(pairs[i / 2])[i % 2];
      ptx::Guard own = guard;
      if (o_.edge && i != 0) own = if_true(exists && column + i < n_);
      w_.emit(own, "st.global.b16 [{}+{}], {};", to.text, i * 2, one.text);
    }
  }

  void store_floats(const std::array<Column, 2>& columns, const U32& row) {
    const U64 first = c_ + multiply_wide(row, ldc_bytes_);
    const std::array<U64, 2> to{multiply_add(rows_[0], 4, first), multiply_add(rows_[1], 4, first)};
    for (uint32_t i = 0; i < o_.columns / 4; ++i) {
      const uint32_t eight = i / 2, further = eight * 8 + i % 2;
      Pred exists;
      if (o_.edge) exists = row + further < m_;
      for (uint32_t half = 0; half < 2; ++half) {
        const F32 value = result(columns[half], half, eight, i % 2, exists);
        const ptx::Guard guard = o_.edge ? if_true(exists && columns[half].exists) : ptx::Guard{};
        w_.emit(guard, "st.global.f32 [{}], {};", multiply_add(ldc_bytes_, further, to[half]).text, value.text);
      }
    }
  }

  using Weights = Unpack::Weights;

  const Wgmma o_;
  Writer w_;
  Unpack unpack_;
  U64 weights_, scales_, zeros_, a_, c_, bias_, residual_;
  U32 n_, m_, k_, row_scales_, block_shift_, lda_;
  U32 stored_row_;  // bytes
  Tiles tiles_;
  U32 memory_, full_, empty_;  // the stages, and their barriers
  U32 lane_, quad_, first_of_warp_, place_;
  U32 slot_, next_slot_;
  std::array<U32, 2> rows_, first_scales_, zero_of_rows_;  // of the thread
  std::vector<F32> sums_;
  U32 ldc_bytes_, ld_residual_bytes_;
};

NativeKernel write_wgmma(const KernelRequest& request) {
  const Wgmma options = Wgmma::read(request);
  return {Kernel(options).write(), "qgemm_wgmma", Wgmma::kThreads, options.shared_bytes()};
}

constexpr LegalRange kFormats[] = {{TUFF_QUANT_I8, TUFF_QUANT_U4},
                                   {TUFF_QUANT_Q4_0, TUFF_QUANT_Q4_0},
                                   {TUFF_QUANT_Q8_0, TUFF_QUANT_Q8_0},
                                   {TUFF_QUANT_Q4_K, TUFF_QUANT_Q4_K}};
constexpr LegalRange kScales[] = {{0, 2}};
constexpr LegalRange kPerStep[] = {{1, 2}, {4, 4}};
constexpr LegalRange kPeriods[] = {{0, 0}, {2, 2}, {4, 4}, {8, 8}, {16, 16}, {32, 32}};
constexpr LegalRange kRows[] = {{64, 64}, {128, 128}};
constexpr LegalRange kColumns[] = {{16, 16}, {32, 32}, {64, 64}, {128, 128}, {256, 256}};
constexpr DefineInfo kDefines[] = {{"ACTIVATION", kActivations},
                                   {"BIAS", kFlag},
                                   {"COLUMNS", kColumns},
                                   {"C_TYPE", kFloats},
                                   {"EDGE", kFlag},
                                   {"FORMAT", kFormats},
                                   {"ROWS", kRows},
                                   {"PERIOD", kPeriods},
                                   {"PER_STEP", kPerStep},
                                   {"RESIDUAL", kFlag},
                                   {"SCALES", kScales},
                                   {"SCALE_TYPE", kFloats},
                                   {"TYPE", kHalves},
                                   {"VECTOR", kFlag},
                                   {"ZEROS", kFlag}};

}  // namespace

bool Wgmma::in_floats() const {
  const bool eight = format == TUFF_QUANT_I8 || format == TUFF_QUANT_U8 || format == TUFF_QUANT_Q8_0;
  if (format == TUFF_QUANT_Q4_K || (type == TUFF_BF16 && eight)) return true;
  return (block_scales() || !integers()) && (integers() ? scale_type : int32_t{TUFF_F16}) != type;
}

uint32_t Wgmma::row_bytes() const {
  switch (format) {
    case TUFF_QUANT_I8:
    case TUFF_QUANT_U8: return 64;
    case TUFF_QUANT_Q4_0: return 36;
    case TUFF_QUANT_Q8_0: return 68;
    default: return 32;
  }
}

uint32_t Wgmma::scale_bytes() const {
  if (!block_scales()) return 0;
  return period != 0 ? kPiece : std::max(4u, per_step * static_cast<uint32_t>(dtype_size(scale_type)));
}

uint32_t Wgmma::zero_bytes() const {
  if (!zeros || !block_scales()) return 0;
  const bool bytes = format == TUFF_QUANT_I8 || format == TUFF_QUANT_U8;
  return period != 0 && bytes && scale_type != TUFF_F32 ? 8 : 4;
}

uint32_t Wgmma::stage_bytes() const {
  const uint32_t numbers = period != 0 ? 0 : slot_bytes();
  const uint32_t bytes = columns * kRowBytes + rows * (row_bytes() + header_bytes()) + numbers;
  return (bytes + ptx::kSharedAlignment - 1) / ptx::kSharedAlignment * ptx::kSharedAlignment;
}

uint32_t Wgmma::stages() const {
  const uint32_t exchange = divides_k() ? columns * 2 * kGroup : 0;
  const uint32_t room = ptx::kSharedBytes / blocks() - ptx::kSharedAlignment - kBarriersBytes - exchange;
  uint32_t most = kMaxStages;
  const auto bytes = [&] {
    const uint32_t beside = period != 0 ? ((most + period - 2) / period + 1) * slot_bytes() : 0;
    return most * stage_bytes() + beside;
  };
  while (bytes() > room) --most;
  return divides_k() ? most / 2 * 2 : most;  // even, so that each of two groups always has the same ones
}

uint32_t Wgmma::lag() const { return std::clamp(stages() / 2 - 1, 2u, 6u); }

uint32_t Wgmma::place_of_slots() const {
  return stages() * stage_bytes() + kBarriersBytes + (divides_k() ? columns * 2 * kGroup : 0);
}

uint32_t Wgmma::shared_bytes() const { return place_of_slots() + slots() * slot_bytes() + ptx::kSharedAlignment; }

bool Wgmma::legal() const {
  if (divides_k() && columns > 128) return false;
  if (!integers() && (scales != 0 || zeros || scale_type != TUFF_F16)) return false;
  if (!block_scales() && (per_step != 1 || period != 0)) return false;
  // As many scales as 16 bytes have, and at most one for a period's step.
  const uint32_t scales_of_16 = kPiece / static_cast<uint32_t>(dtype_size(scale_type));
  if (period != 0 && (per_step > 1 ? period * per_step != scales_of_16 : period < scales_of_16)) return false;
  if (vector && c_type == TUFF_F32) return false;
  if (activation == TUFF_ACTIVATION_GELU && !edge) return false;
  return ptx::activates(activation, c_type);
}

KernelRequest Wgmma::request() const {
  KernelRequest made(wgmma_source);
  made.define("ACTIVATION", activation).define("BIAS", bias).define("COLUMNS", columns).define("C_TYPE", c_type);
  made.define("EDGE", edge)
      .define("FORMAT", format)
      .define("ROWS", rows)
      .define("PER_STEP", per_step)
      .define("PERIOD", period);
  made.define("RESIDUAL", residual).define("SCALES", scales).define("SCALE_TYPE", scale_type).define("TYPE", type);
  made.define("VECTOR", vector).define("ZEROS", zeros);
  return made;
}

Wgmma Wgmma::read(const KernelRequest& request) {
  const auto value = [&](const char* name) { return static_cast<uint32_t>(request.value_of(name)); };
  Wgmma options;
  options.activation = static_cast<int32_t>(value("ACTIVATION"));
  options.bias = value("BIAS") != 0;
  options.columns = value("COLUMNS");
  options.c_type = static_cast<int32_t>(value("C_TYPE"));
  options.edge = value("EDGE") != 0;
  options.format = static_cast<int32_t>(value("FORMAT"));
  options.rows = value("ROWS");
  options.per_step = value("PER_STEP");
  options.period = value("PERIOD");
  options.residual = value("RESIDUAL") != 0;
  options.scales = value("SCALES");
  options.scale_type = static_cast<int32_t>(value("SCALE_TYPE"));
  options.type = static_cast<int32_t>(value("TYPE"));
  options.vector = value("VECTOR") != 0;
  options.zeros = value("ZEROS") != 0;
  if (!options.legal()) fail(TUFF_ERROR_INTERNAL, "qgemm_wgmma: options that the types do not have");
  return options;
}

const KernelSource wgmma_source = {"qgemm_wgmma", nullptr, kDefines, write_wgmma};

}  // namespace tuff::quant
