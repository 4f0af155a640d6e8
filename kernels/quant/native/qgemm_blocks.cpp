// S[i][j] = sum over blocks b of k of scales[j][b] * (the sum over the block of A[i][p] * W[j][p]), of integers of 8
// bits, by the wgmma instructions of Hopper GPUs. The sums of a block are exact, in i32; qgemm_scale.comp does the
// rest.
//
//               rows of A (128)          A block computes 128 rows of W by 128 of A at a time, tile after tile. It has
//            +---------------+           three warp groups:
//       64   |  A^T: 128 k   |
//      +---+ +---------------+             group 0   loads: cp.async into a ring of stages, each 128 of k;
//  128 | W | |    group 1    |             group 1   multiplies the upper 64 rows of W;
//      |   | +---------------+             group 2   the lower 64.
//      +---+ |    group 2    |
//            +---------------+
//
// W is the operand along m, so that a thread has two rows of it, and needs two scales for a block. It has two sets of
// sums in i32 and one in f32: while the tensor cores compute a block, the sums of the one before are converted, scaled
// and added.
//
//   sums 0   | W A, block 0 |              | W A, block 2 |
//   sums 1                  | W A, block 1 |              | W A, block 3 |
//   f32                     | + block 0    | + block 1    | + block 2    | + block 3
//
// Four blocks follow one another in the text, so k is taken as if it had a multiple of them; those beyond have zeros as
// numbers and scales.
#include "kernels/quant/native/qgemm_blocks.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/gemm/native/tiles.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/legal_values.hpp"
#include "kernels/native/ptx.hpp"
#include "planning/element_type.hpp"

namespace tuff::quant {
namespace {

using gemm::Tile;
using gemm::Tiles;
using ptx::F32;
using ptx::if_true;
using ptx::kGroup;
using ptx::kRowBytes;
using ptx::multiply_add;
using ptx::multiply_wide;
using ptx::Pred;
using ptx::Ring;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

constexpr uint32_t kStep = Blocks::kStep, kRows = Blocks::kRows, kColumns = Blocks::kColumns, kPiece = 16;
constexpr uint32_t kStages = Blocks::kStages, kStageBytes = Blocks::kStageBytes;
constexpr uint32_t kBarriersBytes = 2 * kStages * ptx::kBarrierBytes;
constexpr uint32_t kLag = 3;       // steps in flight while another one is started
constexpr uint32_t kSlab = 32;     // of k: what an instruction multiplies
constexpr uint32_t kFurther = 16;  // rows that the loading group copies at once
constexpr uint32_t kLoaderRegisters = 64, kMultiplierRegisters = 216;
static_assert(kStep == kRowBytes);
static_assert(kLoaderRegisters + 2 * kMultiplierRegisters <= 3 * 168);

class Kernel {
 public:
  explicit Kernel(const Blocks& options) : o_(options), w_("sm_90a", "qgemm_blocks") {}

  std::string write() {
    weights_ = w_.pointer("weights");
    scales_ = w_.pointer("scales");
    a_ = w_.pointer("a");
    to_ = w_.pointer("sums");
    w_.block("push", sizeof(Blocks::Push));
    read_parameters();
    const U32 thread = w_.special("%tid.x");
    memory_ = ptx::aligned_memory(w_);
    full_ = memory_ + kStages * kStageBytes;
    empty_ = full_ + kStages * ptx::kBarrierBytes;
    w_.when(thread == 0,
            [&] { ptx::make_stage_barriers(full_, empty_, kStages, kGroup / ptx::kWarp, 2 * kGroup / ptx::kWarp); });
    w_.emit("bar.sync 0;");
    ptx::divide_work(
        thread, kLoaderRegisters, kMultiplierRegisters, [&] { load(thread); }, [&] { multiply(thread - kGroup); });
    return w_.text(Blocks::kThreads);
  }

 private:
  U32 parameter(size_t offset) { return w_.parameter("push", offset); }

  void read_parameters() {
    n_ = parameter(offsetof(Blocks::Push, n));
    m_ = parameter(offsetof(Blocks::Push, m));
    k_ = parameter(offsetof(Blocks::Push, k));
    tiles_ = gemm::tiles_of_weights<Blocks::Push>(w_, k_, kRows, kColumns);
    blocks_ = parameter(offsetof(Blocks::Push, blocks));
    steps_of_block_ = parameter(offsetof(Blocks::Push, steps_of_block));
    rounds_ = parameter(offsetof(Blocks::Push, rounds));
  }

  uint32_t steps_of_round() const { return Blocks::kTogether / o_.per_step; }  // times steps_of_block_

  // --- the group that loads -----------------------------------------------------------------------------------------

  // The thread has piece thread % 8 of every 16th row from thread / 8 on. `at` is that of the first, a variable. Rows
  // beyond the last are the last one, whose sums are not stored.
  struct Copies {
    U32 to;
    U64 at;
    std::vector<U32> rows;  // where they are, in pieces from `at` on
  };
  Copies copies_of(const U64& base, const U32& first, const U32& count, const U32& ld, uint32_t rows, const U32& to,
                   const U32& thread) {
    const U32 row = thread >> 3, piece = thread & 7;
    Copies copies{ptx::piece_at(to, row, piece), w_.variable(multiply_add(piece, kPiece, base)), {}};
    for (uint32_t i = 0; i < rows / kFurther; ++i) {
      copies.rows.push_back(w_.variable(min(first + row + i * kFurther, count - 1) * ld));
    }
    return copies;
  }

  // Pieces beyond k are zeros.
  void start(const Copies& copies, const U32& stage, const U32& bytes) {
    for (size_t i = 0; i < copies.rows.size(); ++i) {
      w_.emit("cp.async.cg.shared.global.L2::128B [{}+{}], [{}], {}, {};", (copies.to + stage).text,
              i * kFurther * kRowBytes, multiply_add(copies.rows[i], kPiece, copies.at).text, kPiece, bytes.text);
    }
  }

  void load(const U32& thread) {
    ptx::CopiedStages stages(thread, full_, kStages, kLag);
    const U32 lda = parameter(offsetof(Blocks::Push, lda)), ldw = parameter(offsetof(Blocks::Push, ldw));
    const U32 steps = rounds_ * steps_of_block_ * w_.constant(steps_of_round()),
              own_k = (thread & 7) * w_.constant(kPiece);
    tiles_.each([&](const Tile& tile) {
      const Copies weights = copies_of(weights_, tile.row, n_, ldw, kRows, memory_, thread);
      const Copies a = copies_of(a_, tile.column, m_, lda, kColumns, memory_ + kRows * kStep, thread);
      const U32 step = w_.variable(w_.constant(0)), k = w_.variable(own_k);
      w_.repeat([&] { return step < steps; },
                [&] {
                  wait_at(empty_, stages.ring());
                  const U32 stage = stages.ring().stage * w_.constant(kStageBytes);
                  const U32 bytes = select(k < k_, w_.constant(kPiece), w_.constant(0));
                  for (const Copies* copies : {&weights, &a}) start(*copies, stage, bytes);
                  stages.started();
                  w_.assign(step, step + 1);
                  // Beyond k the addresses stay: nothing is read there.
                  w_.when(k < k_, [&] {
                    w_.assign(k, k + kStep);
                    w_.when(k < k_, [&] {
                      for (const Copies* copies : {&weights, &a}) w_.assign(copies->at, copies->at + uint64_t{kStep});
                    });
                  });
                });
    });
    stages.finish();
  }

  // --- the groups that multiply -------------------------------------------------------------------------------------

  void multiply(const U32& thread) {
    const U32 group = thread >> 7, lane = thread & 31;
    elected_ = lane == 0u, always_ = ptx::truth(w_, true), never_ = ptx::truth(w_, false);
    own_row_ = ((thread >> 5) << 4) + (lane >> 2), own_column_ = (lane & 3) << 1;
    high_ = w_.variable(w_.constant(ptx::kMatrixHigh));
    weights_first_ = ((memory_ + group * w_.constant(64 * kRowBytes)) >> 4) | 1u << 16;
    a_first_ = ((memory_ + kRows * kStep) >> 4) | 1u << 16;
    for (uint32_t i = 0; i < kColumns / 2; ++i) {
      sums_.push_back(w_.make<Type::f32>());
      for (std::vector<U32>& set : integers_) set.push_back(w_.make<Type::u32>());
    }
    const Ring ring = ptx::make_ring(w_, 0);
    last_ = w_.variable(empty_);
    tiles_.each([&](const Tile& tile) {
      for (const F32& sum : sums_) w_.emit("mov.f32 {}, 0f00000000;", sum.text);
      for (uint32_t half = 0; half < 2; ++half) {
        rows_[half] = w_.variable(tile.row + own_row_ + half * 8);
        scales_of_row_[half] =
            w_.variable(scales_ + multiply_wide(min(rows_[half], n_ - 1), blocks_) * dtype_size(o_.scale_type));
      }
      const U32 round = w_.variable(w_.constant(0));
      w_.repeat([&] { return round < rounds_; },
                [&] {
                  multiply_round(round * w_.constant(Blocks::kTogether), ring);
                  w_.assign(round, round + 1);
                });
      store(tile);
    });
  }

  // Four blocks from `block` on.
  void multiply_round(const U32& block, const Ring& ring) {
    constexpr uint32_t kCount = Blocks::kTogether;
    std::array<std::array<F32, 2>, kCount> scales;
    const auto size = static_cast<uint32_t>(dtype_size(o_.scale_type));
    for (uint32_t b = 0; b < kCount; ++b) {
      const Pred exists = block + b < blocks_;
      for (uint32_t half = 0; half < 2; ++half) {
        const U64 at = multiply_add(block, size, scales_of_row_[half]);
        scales[b][half] = ptx::load_element(o_.scale_type, at, b * size, &exists);
      }
    }
    const uint32_t slabs = kStep / kSlab / o_.per_step;  // of a block in a step
    U32 stage;
    bool began = false;  // whether a stage of this round is to be left
    for (uint32_t b = 0; b < kCount; ++b) {
      const uint32_t in_step = b % o_.per_step;
      if (in_step == 0) {
        ptx::wait_at(full_, ring);
        stage = ring.stage * w_.constant(kStageBytes / 16);
      }
      start_block(integers_[b % 2], stage, in_step * slabs, slabs, never_);
      if (b != 0) w_.emit("wgmma.wait_group.sync.aligned 1;");
      if (in_step == 0) {
        if (began) leave_last();
        enter(ring);
        began = true;
      }
      if (b != 0) add_block(integers_[(b - 1) % 2], scales[b - 1]);
      if (o_.per_step == 1) continue_block(integers_[b % 2], ring);
    }
    w_.emit("wgmma.wait_group.sync.aligned 0;");
    leave_last();
    add_block(integers_[(kCount - 1) % 2], scales[kCount - 1]);
  }

  // Starts the products of a block in a step, `slabs` of 32 of k.
  void start_block(const std::vector<U32>& integers, const U32& stage, uint32_t first, uint32_t slabs,
                   const Pred& add) {
    w_.emit("wgmma.fence.sync.aligned;");
    for (uint32_t i = 0; i < slabs; ++i) {
      const uint32_t further = (first + i) * kSlab / 16;
      w_.emit("wgmma.mma_async.sync.aligned.m64n{}k32.s32.s8.s8 {{{}}}, {}, {}, {};", kColumns, ptx::list(integers),
              ptx::matrix(weights_first_ + stage + further, high_).text,
              ptx::matrix(a_first_ + stage + further, high_).text, (i == 0 ? add : always_).text);
    }
    w_.emit("wgmma.commit_group.sync.aligned;");
  }

  // The further steps of a block of more than one.
  void continue_block(const std::vector<U32>& integers, const Ring& ring) {
    const U32 step = w_.variable(w_.constant(1));
    w_.repeat([&] { return step < steps_of_block_; },
              [&] {
                ptx::wait_at(full_, ring);
                const U32 stage = ring.stage * w_.constant(kStageBytes / 16);
                start_block(integers, stage, 0, kStep / kSlab, always_);
                w_.emit("wgmma.wait_group.sync.aligned 1;");
                leave_last();
                enter(ring);
                w_.assign(step, step + 1);
              });
  }

  // The stage in use becomes the one that is left when its products are there.
  void enter(const Ring& ring) {
    w_.assign(last_, empty_ + (ring.stage << 3));
    ptx::advance(ring, kStages);
  }
  void leave_last() { ptx::arrive_at(last_, if_true(elected_)); }

  void add_block(const std::vector<U32>& integers, const std::array<F32, 2>& scales) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      const F32 sum = w_.make<Type::f32>();
      w_.emit("cvt.rn.f32.s32 {}, {};", sum.text, integers[i].text);
      w_.assign(sums_[i], multiply_add(sum, scales[i / 2 % 2], sums_[i]));
    }
  }

  // The sums of a row of A follow one another.
  void store(const Tile& tile) {
    const U32 column = tile.column + own_column_;
    const std::array<Pred, 2> exists{rows_[0] < n_, rows_[1] < n_};
    for (uint32_t i = 0; i < kColumns / 4; ++i) {
      const uint32_t further = i / 2 * 8 + i % 2;
      const U32 row = column + further;
      const U64 to = multiply_wide(row, n_) * uint64_t{4} + to_;
      const Pred own = row < m_;
      for (uint32_t half = 0; half < 2; ++half) {
        const F32& sum = sums_[i / 2 * 4 + half * 2 + i % 2];
        w_.emit(if_true(own && exists[half]), "st.global.f32 [{}], {};", multiply_add(rows_[half], 4, to).text,
                sum.text);
      }
    }
  }

  const Blocks o_;
  Writer w_;
  U64 weights_, scales_, a_, to_;
  U32 n_, m_, k_, blocks_, steps_of_block_, rounds_;
  Tiles tiles_;
  U32 memory_, full_, empty_;  // the stages, and their barriers
  U32 last_;                   // the barrier of the stage to leave
  Pred elected_, always_, never_;
  U32 own_row_, own_column_, high_, weights_first_, a_first_;
  std::array<U32, 2> rows_;  // of the thread
  std::array<U64, 2> scales_of_row_;
  std::array<std::vector<U32>, 2> integers_;
  std::vector<F32> sums_;
};

NativeKernel write_blocks(const KernelRequest& request) {
  return {Kernel(Blocks::read(request)).write(), "qgemm_blocks", Blocks::kThreads, Blocks::shared_bytes()};
}

constexpr LegalRange kPerStep[] = {{1, 2}, {4, 4}};
constexpr DefineInfo kDefines[] = {{"PER_STEP", kPerStep}, {"SCALE_TYPE", ptx::kFloats}};

}  // namespace

uint32_t Blocks::shared_bytes() { return kStages * kStageBytes + kBarriersBytes + ptx::kSharedAlignment; }

KernelRequest Blocks::request() const {
  KernelRequest made(blocks_source);
  made.define("PER_STEP", per_step).define("SCALE_TYPE", scale_type);
  return made;
}

Blocks Blocks::read(const KernelRequest& request) {
  Blocks options;
  options.per_step = static_cast<uint32_t>(request.value_of("PER_STEP"));
  options.scale_type = static_cast<int32_t>(request.value_of("SCALE_TYPE"));
  return options;
}

const KernelSource blocks_source = {"qgemm_blocks", nullptr, kDefines, write_blocks};

}  // namespace tuff::quant
