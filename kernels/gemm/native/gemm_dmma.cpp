// C = alpha * op(A) * op(B) + beta * C in f64 with the tensor cores of Hopper GPUs (mma.sync, m16n8k8).
//
//              columns (128)            A block of eight warps computes 128 x 128 elements of C at a time, a warp 64 x
//            +---+---+---+---+          32 of them, with the sums in registers. All threads load: cp.async fills a ring
//       128  | B |   |   |   |          of stages, each 16 of k, so that three are on their way while one is
//       multiplied:
//      +---+ +---+---+---+---+
//      |   | | 0 | 2 | 4 | 6 |            load       3   4   5   6   ...
//  128 | A | +---+---+---+---+            multiply   0   1   2   3   ...
//      |   | | 1 | 3 | 5 | 7 |
//      +---+ +---+---+---+---+          A barrier in each step separates what reads a stage from what fills it again.
//
// An operand whose rows run along k is kept row by row, 128 bytes of k each; one whose rows run along m or n is kept as
// 16 rows of k. A thread reads both 16 bytes at a time: a lane's two rows of the instruction are neighbouring rows of A
// (or columns of B), and its two steps of k are neighbours, which is the same product as the order of the manual. So a
// thread ends up with four neighbouring elements of a row of C. Pieces of 16 bytes are permuted so that the lanes that
// read at the same time use all banks.
#include "kernels/gemm/native/gemm_dmma.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/gemm/native/tiles.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/legal_values.hpp"
#include "kernels/native/ptx.hpp"
#include "planning/status.hpp"

namespace tuff::gemm {
namespace {

using ptx::F64;
using ptx::if_true;
using ptx::kFlag;
using ptx::kRowBytes;
using ptx::multiply_add;
using ptx::multiply_wide;
using ptx::Pred;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

constexpr uint32_t kElement = 8, kPiece = 16;          // bytes
constexpr uint32_t kRowsAtOnce = Dmma::kThreads / 8;   // that all threads load, along k
constexpr uint32_t kPiecesOfRow = kRowBytes / kPiece;  // along k
constexpr uint32_t kWarpsDown = 2, kWarpsAcross = 4;
constexpr uint32_t kBlock = 16;  // rows of A, or columns of B, whose elements a thread reads together

class Kernel {
 public:
  explicit Kernel(const Dmma& options) : o_(options), w_("sm_90a", "gemm_dmma") {}

  std::string write() {
    t_.a.base = w_.pointer("a");
    t_.b.base = w_.pointer("b");
    c_ = w_.pointer("c");
    w_.block("push", sizeof(Dmma::Push));
    t_.read<Dmma::Push>(w_, o_, o_.rows * kRowBytes);
    thread_ = w_.special("%tid.x");
    memory_ = ptx::aligned_memory(w_);
    const U32 lane = thread_ & 31, warp = thread_ >> 5;
    group_ = lane >> 2;
    quad_ = lane & 3;
    warp_row_ = (warp & 1) * (o_.rows / kWarpsDown);
    warp_column_ = (warp >> 1) * (o_.columns / kWarpsAcross);
    read_a_ = w_.variable(reading_place(t_.a, warp_row_));
    read_b_ = w_.variable(reading_place(t_.b, warp_column_));
    for (uint32_t i = 0; i < blocks_of_a() * blocks_of_b() * 8; ++i) sums_.push_back(w_.make<Type::f64>());
    t_.tiles.each([&](const Tile& tile) {
      if (o_.c_part == GemmPart::all) return compute(tile);
      const bool lower = o_.c_part == GemmPart::lower;
      w_.when(lower ? tile.column < tile.row + o_.rows : tile.row < tile.column + o_.columns, [&] { compute(tile); });
    });
    return w_.text(Dmma::kThreads);
  }

 private:
  using Operand = TiledOperand;

  uint32_t blocks_of_a() const { return o_.rows / kWarpsDown / kBlock; }
  uint32_t blocks_of_b() const { return o_.columns / kWarpsAcross / kBlock; }
  uint32_t half_bytes() const { return (o_.rows + o_.columns) * kRowBytes; }
  uint32_t stage_bytes() const { return 2 * half_bytes(); }

  // --- loading ------------------------------------------------------------------------------------------------------

  // What a thread loads of an operand in each half of a step: pieces that are `between` bytes apart, from a pointer
  // that advances with k.
  struct Loads {
    U64 pointer, between;
    U32 to;     // in the first stage
    U32 row;    // across k: the first piece's row of the step
    U32 left;   // along k: rows of the operand from the first piece's on, if tiles may extend beyond it
    U32 bytes;  // across k: the bytes of a piece that exist
    uint32_t count, rows_at_once;
  };

  // Along k, a thread loads piece thread % 8 of rows thread / 8, + 32, ...; across k, a piece of some rows of k. What
  // does not exist is zero.
  Loads prepare(const Operand& x, const U32& first, const Tile& tile) {
    Loads all;
    const U64 matrix = x.base + widen(tile.matrix) * x.stride;
    const U32 begin = memory_ + x.place;
    if (x.along_k) {
      const U32 row = thread_ >> 3, piece = thread_ & (kPiecesOfRow - 1), at = first + row;
      all.count = x.tile / kRowsAtOnce;
      all.rows_at_once = kRowsAtOnce;
      all.pointer = multiply_add(piece, kPiece, multiply_add(tile.k, kElement, matrix)) + bytes_of(at, x.ld);
      all.to = w_.variable(begin + (row << 7) + ((piece ^ ((row & 2) << 1)) << 4));
      if (o_.edge) all.left = w_.variable(select(at < x.extent, x.extent - at, w_.constant(0)));
    } else {
      const uint32_t pieces = x.tile / 2;
      const U32 row = thread_ / pieces, column = (thread_ & (pieces - 1)) << 1, element = first + column;
      all.rows_at_once = Dmma::kThreads / pieces;
      all.count = Dmma::kHalf / all.rows_at_once;
      all.pointer = multiply_add(element, kElement, matrix) + bytes_of(tile.k + row, x.ld);
      all.to = w_.variable(begin + row * (x.tile * kElement) + ((column ^ ((row & 6) << 1)) << 3));
      if (o_.edge) all.row = row, all.bytes = w_.variable(rest(element, x.extent));
    }
    all.pointer = w_.variable(all.pointer);
    all.between = w_.variable(bytes_of(w_.constant(all.rows_at_once), x.ld));
    return all;
  }

  // The bytes of this many rows.
  U64 bytes_of(const U32& rows, const U32& ld) { return multiply_wide(rows, ld) * kElement; }

  // The bytes of a piece from `element` on that are before `end`.
  U32 rest(const U32& element, const U32& end) {
    const U32 left = select(element < end, end - element, w_.constant(0));
    return min(left, w_.constant(2)) * kElement;
  }

  void load_step(const Operand& x, const Loads& all, const U32& stage, const U32& k, const U32& k_end) {
    const U32 along = o_.edge && x.along_k ? rest(k + ((thread_ & (kPiecesOfRow - 1)) << 1), k_end) : U32{};
    const U32 k_row = o_.edge && !x.along_k ? k + all.row : U32{}, begin = all.to + stage;
    const uint32_t row_bytes = x.along_k ? kRowBytes : x.tile * kElement;
    U64 from = all.pointer;
    for (uint32_t i = 0; i < all.count; ++i) {
      if (i != 0) from = from + all.between;
      const uint32_t rows = i * all.rows_at_once;
      // The permutation of pieces across k depends on three bits of the row, of which the loads of a thread differ in
      // one.
      const U32 to = !x.along_k && (rows & 4) != 0 ? begin ^ 64u : begin;
      const uint32_t offset = rows * row_bytes;
      U32 bytes;
      if (o_.edge && x.along_k) bytes = select(w_.constant(rows) < all.left, along, w_.constant(0));
      if (o_.edge && !x.along_k) bytes = select(k_row + rows < k_end, all.bytes, w_.constant(0));
      if (o_.pairs) {
        w_.emit("cp.async.cg.shared.global.L2::128B [{}+{}], [{}], 16{};", to.text, offset, from.text,
                o_.edge ? ", " + bytes.text : "");
        continue;
      }
      // Two elements, of which each may exist or not.
      const U32 one = o_.edge ? min(bytes, w_.constant(kElement)) : U32{};
      w_.emit("cp.async.ca.shared.global [{}+{}], [{}], 8{};", to.text, offset, from.text,
              o_.edge ? ", " + one.text : "");
      const U32 two = o_.edge ? bytes - one : U32{};
      w_.emit("cp.async.ca.shared.global [{}+{}], [{}+8], 8{};", to.text, offset + kElement, from.text,
              o_.edge ? ", " + two.text : "");
    }
    // Across k, the loads of a half are as far apart as those of two halves.
    w_.assign(all.pointer, x.along_k ? all.pointer + kRowBytes : from + all.between);
  }

  // --- multiplying --------------------------------------------------------------------------------------------------

  // Where a thread reads its first 16 bytes of the operand in the first stage, if its warp begins at this row.
  U32 reading_place(const Operand& x, const U32& first) {
    const U32 begin = memory_ + x.place;
    if (x.along_k) return begin + ((first + (group_ << 1)) << 7) + ((quad_ + ((group_ & 1) << 2)) << 4);
    return begin + (quad_ << 1) * (x.tile * kElement) + ((first + ((group_ << 1) ^ (quad_ << 2))) << 3);
  }

  // A thread's elements of 16 rows, or columns, and 8 of k: [row][k] of two by two.
  using Fragment = std::array<std::array<F64, 2>, 2>;

  std::vector<Fragment> fragments(uint32_t count) {
    std::vector<Fragment> all(count);
    for (Fragment& v : all) {
      for (auto& row : v) {
        for (F64& one : row) one = w_.make<Type::f64>();
      }
    }
    return all;
  }

  // `place`: where the thread reads in this stage. `eight` counts in the stage.
  void load_fragment(const Fragment& v, const Operand& x, const U32& place, uint32_t eight, uint32_t block) {
    const uint32_t half = eight / 2 * half_bytes(), second = eight % 2;
    // Along k, the second half of a row is 64 bytes further, or before: pieces are permuted by whole halves.
    const U32 at = x.along_k && second != 0 ? place ^ 64u : place;
    for (uint32_t i = 0; i < 2; ++i) {
      const F64 &one = x.along_k ? v[i][0] : v[0][i], &two = x.along_k ? v[i][1] : v[1][i];
      const uint32_t offset = x.along_k ? (block * kBlock + i) * kRowBytes
                                        : (second * 8 + i) * x.tile * kElement + block * kBlock * kElement;
      w_.emit("ld.shared.v2.f64 {{{}, {}}}, [{}+{}];", one.text, two.text, at.text, half + offset);
    }
  }

  const F64& sum(uint32_t a, uint32_t b, uint32_t t, uint32_t i) const {
    return sums_[((a * blocks_of_b() + b) * 2 + t) * 4 + i];
  }

  // A block of A's rows by all columns of the warp.
  void multiply(uint32_t i, const Fragment& a, const std::vector<Fragment>& b) {
    for (uint32_t j = 0; j < blocks_of_b(); ++j) {
      for (uint32_t t = 0; t < 2; ++t) {
        std::string c;
        for (uint32_t e = 0; e < 4; ++e) c += (e == 0 ? "" : ", ") + sum(i, j, t, e).text;
        w_.emit("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {{{}}}, {{{}, {}, {}, {}}}, {{{}, {}}}, {{{}}};", c,
                a[0][0].text, a[1][0].text, a[0][1].text, a[1][1].text, b[j][t][0].text, b[j][t][1].text, c);
      }
    }
  }

  void compute(const Tile& tile) {
    const Loads a = prepare(t_.a, tile.row, tile), b = prepare(t_.b, tile.column, tile);
    const auto load_half = [&](const U32& stage, const U32& k, uint32_t half) {
      w_.when(k < tile.k_end, [&] {
        load_step(t_.a, a, stage + half * half_bytes(), k + half * Dmma::kHalf, tile.k_end);
        load_step(t_.b, b, stage + half * half_bytes(), k + half * Dmma::kHalf, tile.k_end);
      });
      if (half == 1) w_.emit("cp.async.commit_group;");
    };
    constexpr uint32_t kAhead = Dmma::kStages - 1;  // steps that are loaded before they are multiplied
    for (uint32_t i = 0; i < 2 * kAhead; ++i) {
      load_half(w_.constant(i / 2 * stage_bytes()), tile.k + i / 2 * Dmma::kStep, i % 2);
    }
    for (const F64& one : sums_) w_.emit("mov.f64 {}, 0d0000000000000000;", one.text);
    w_.emit("cp.async.wait_group {};", kAhead - 1);
    w_.emit("bar.sync 0;");
    // The next eight of k are read from shared memory while these are multiplied: A's block by block, into the
    // registers that have just been used, B's into the other half of its registers.
    const std::vector<Fragment> in_a = fragments(blocks_of_a());
    const std::array<std::vector<Fragment>, 2> in_b = {fragments(blocks_of_b()), fragments(blocks_of_b())};
    const U32 from = w_.variable(w_.constant(0));  // the stage that is multiplied
    U32 a_place = read_a_ + from, b_place = read_b_ + from;
    for (uint32_t i = 0; i < blocks_of_b(); ++i) load_fragment(in_b[0][i], t_.b, b_place, 0, i);
    for (uint32_t i = 0; i < blocks_of_a(); ++i) load_fragment(in_a[i], t_.a, a_place, 0, i);
    const U32 k = w_.variable(tile.k);
    w_.repeat([&] { return k < tile.k_end; },
              [&] {
                constexpr uint32_t kEights = Dmma::kStep / 8;
                a_place = read_a_ + from, b_place = read_b_ + from;
                // The stage that was multiplied before is filled.
                const U32 free = select(from == 0u, w_.constant(kAhead * stage_bytes()), from - stage_bytes());
                for (uint32_t eight = 0; eight < kEights; ++eight) {
                  const uint32_t next = (eight + 1) % kEights;
                  if (next == 0) {
                    // All warps have read this stage, and the next one has arrived.
                    w_.emit("cp.async.wait_group {};", kAhead - 1);
                    w_.emit("bar.sync 0;");
                    const U32 following = from + stage_bytes();
                    w_.assign(from, select(following == Dmma::kStages * stage_bytes(), w_.constant(0), following));
                    a_place = read_a_ + from, b_place = read_b_ + from;
                  }
                  for (uint32_t i = 0; i < blocks_of_a(); ++i) {
                    multiply(i, in_a[i], in_b[eight % 2]);
                    if (i == 0) {
                      if (eight == 1 || eight == 2) load_half(free, k + kAhead * Dmma::kStep, eight - 1);
                      for (uint32_t j = 0; j < blocks_of_b(); ++j)
                        load_fragment(in_b[next % 2][j], t_.b, b_place, next, j);
                    }
                    load_fragment(in_a[i], t_.a, a_place, next, i);
                  }
                }
                w_.assign(k, k + Dmma::kStep);
              });
    store(tile);
  }

  // --- storing ------------------------------------------------------------------------------------------------------

  void store(const Tile& tile) {
    const F64 alpha = w_.parameter_double("push", offsetof(Dmma::Push, alpha));
    const F64 beta = w_.parameter_double("push", offsetof(Dmma::Push, beta));
    const U32 ldc = w_.parameter("push", offsetof(Dmma::Push, ldc));
    const U64 stride = w_.parameter64("push", offsetof(Dmma::Push, stride_c));
    const U64 slice = w_.parameter64("push", offsetof(Dmma::Push, slice_c));
    const U64 matrix = c_ + widen(tile.matrix) * stride + widen(tile.slice) * slice;
    const U32 first_row = tile.row + warp_row_ + (group_ << 1);
    const U32 column = tile.column + warp_column_ + (quad_ << 2);
    for (uint32_t i = 0; i < blocks_of_a(); ++i) {
      for (uint32_t r = 0; r < 2; ++r) {
        const U32 row = first_row + (i * kBlock + r);
        const U64 begin = multiply_add(column, kElement, matrix + multiply_wide(row, ldc) * kElement);
        Pred row_exists;
        if (o_.edge) row_exists = row < t_.m;
        for (uint32_t j = 0; j < blocks_of_b(); ++j) {
          for (uint32_t half = 0; half < 2; ++half) {
            const uint32_t at = j * kBlock + half * 2;
            store_pair(begin, at, column + at, row_exists, alpha, beta,
                       {sum(i, j, 0, r * 2 + half), sum(i, j, 1, r * 2 + half)});
          }
        }
      }
    }
  }

  // Two neighbouring elements of C.
  void store_pair(const U64& begin, uint32_t at, const U32& column, const Pred& row_exists, const F64& alpha,
                  const F64& beta, const std::array<F64, 2>& sums) {
    std::array<ptx::Guard, 2> guards;
    if (o_.edge) {
      for (uint32_t e = 0; e < 2; ++e) guards[e] = if_true(row_exists && column + e < t_.n);
    }
    std::array<F64, 2> value;
    for (uint32_t e = 0; e < 2; ++e) {
      value[e] = sums[e] * alpha;
      if (!o_.beta) continue;
      const F64 old = w_.make<Type::f64>();
      if (o_.edge) w_.emit("mov.f64 {}, 0d0000000000000000;", old.text);
      w_.emit(guards[e], "ld.global.f64 {}, [{}+{}];", old.text, begin.text, (at + e) * kElement);
      value[e] = multiply_add(beta, old, value[e]);
    }
    if (o_.vector) {  // n is even
      w_.emit(guards[0], "st.global.v2.f64 [{}+{}], {{{}, {}}};", begin.text, at * kElement, value[0].text,
              value[1].text);
      return;
    }
    for (uint32_t e = 0; e < 2; ++e) {
      w_.emit(guards[e], "st.global.f64 [{}+{}], {};", begin.text, (at + e) * kElement, value[e].text);
    }
  }

  const Dmma o_;
  Writer w_;
  Tiled t_;
  U64 c_;
  U32 thread_, memory_;         // memory_: the first stage
  U32 group_, quad_;            // of the lane: its number / 4, and the rest
  U32 warp_row_, warp_column_;  // the warp's part of a tile
  U32 read_a_, read_b_;         // where the thread reads in the first stage
  std::vector<F64> sums_;
};

NativeKernel write_dmma(const KernelRequest& request) {
  const Dmma options = Dmma::read(request);
  return {Kernel(options).write(), "gemm_dmma", Dmma::kThreads, options.shared_bytes()};
}

constexpr LegalRange kExtent[] = {{64, 64}, {128, 128}};
constexpr LegalRange kParts[] = {{0, 2}};
constexpr DefineInfo kDefines[] = {{"BETA", kFlag},    {"COLUMNS", kExtent}, {"EDGE", kFlag},
                                   {"PAIRS", kFlag},   {"PART", kParts},     {"ROWS", kExtent},
                                   {"TRANS_A", kFlag}, {"TRANS_B", kFlag},   {"VECTOR", kFlag}};

}  // namespace

uint32_t Dmma::shared_bytes() const { return kStages * 2 * (rows + columns) * kRowBytes + ptx::kSharedAlignment; }

KernelRequest Dmma::request() const {
  KernelRequest made(dmma_source);
  made.define("BETA", beta).define("COLUMNS", columns).define("EDGE", edge).define("PAIRS", pairs);
  made.define("PART", static_cast<int64_t>(c_part));
  made.define("ROWS", rows).define("TRANS_A", trans_a).define("TRANS_B", trans_b).define("VECTOR", vector);
  return made;
}

Dmma Dmma::read(const KernelRequest& request) {
  Dmma options;
  options.beta = request.value_of("BETA") != 0;
  options.columns = static_cast<uint32_t>(request.value_of("COLUMNS"));
  options.edge = request.value_of("EDGE") != 0;
  options.pairs = request.value_of("PAIRS") != 0;
  options.c_part = static_cast<GemmPart>(request.value_of("PART"));
  options.rows = static_cast<uint32_t>(request.value_of("ROWS"));
  options.trans_a = request.value_of("TRANS_A") != 0;
  options.trans_b = request.value_of("TRANS_B") != 0;
  options.vector = request.value_of("VECTOR") != 0;
  return options;
}

const KernelSource dmma_source = {"gemm_dmma", nullptr, kDefines, write_dmma};

}  // namespace tuff::gemm
