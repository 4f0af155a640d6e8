// C = activation(alpha * op(A) * op(B) + beta * C + bias + residual) with few rows or columns, in 16 bits or of 8-bit
// floats, with a scale for each matrix: bound by reading the long operand once. A block computes a tile: 32 to 128 rows
// of the long operand by all of the short one's.
//
//                  k
//         +---+---+---+---+---          Each of a block's four warps works by itself: it takes every fourth step of k
//  tile's | 0 | 1 | 2 | 3 | ...         (of 128 bytes), and keeps a ring of steps of both operands on their way
//  rows   +---+---+---+---+---          from memory (cp.async), so that nothing waits for another warp until the end.
//                                       Large tiles have teams of two warps instead, with half of the rows each.
//         +---+---+---+---+---
//  short  | 0 | 1 | 2 | 3 | ...           load       2   3   4   ...
//         +---+---+---+---+---            multiply   0   1   2   ...
//
// The long operand is the 16 rows of mma.sync (m16n8k16), the short one its 8 columns. At the end the teams' sums are
// added up in shared memory. Tiles begin at different steps and go round, because all of them read the short operand:
// its parts would be asked for by all multiprocessors at once. The order of a sum depends on its tile alone.
//
// In shared memory an operand whose rows run along k has a line of 128 bytes for each row; another has a line for each
// step of k, of up to 64 rows. Pieces of 16 bytes are permuted so that ldmatrix, which also transposes, reads without
// bank conflicts.
//
// 8-bit floats become f16 (bf16 beside bf16) in registers, which is exact, so sums are as accurate as those of 16 bits;
// those of the instructions for 8-bit floats have 13 bits. A register of ldmatrix has four of them: of a row along k,
// thread t of four has numbers 4 t to 4 t + 3 of 16 steps of k, and multiplies the first two as if they were numbers
// 2 t and 2 t + 1 of mma.sync's 16, and the others as 2 t + 8 and 2 t + 9. A sum may be in any order if both operands
// have the same. For rows across k, a register has two rows of two steps of k. Their lines are stored in the order in
// which ldmatrix gives thread t the same steps of k.
#include "kernels/gemm/native/gemm_narrow.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/legal_values.hpp"
#include "kernels/native/ptx.hpp"
#include "planning/element_type.hpp"
#include "planning/status.hpp"
#include "tuff/tuff.h"

namespace tuff::gemm {
namespace {

using ptx::F32;
using ptx::if_true;
using ptx::kActivations;
using ptx::kFlag;
using ptx::kRowBytes;
using ptx::kWarp;
using ptx::multiply_add;
using ptx::multiply_wide;
using ptx::Pred;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

constexpr uint32_t kPiece = 16;
constexpr uint32_t kBlockRows = 16;  // of mma.sync
constexpr uint32_t kTogether = 512;  // rows whose tiles begin at the same step if a step of k has them side by side
constexpr uint32_t kMaxStages = 8;
constexpr uint32_t kReserved = 1024;  // of each block's shared memory, by the driver

class Kernel {
 public:
  explicit Kernel(const Narrow& options) : o_(options), w_("sm_90a", "gemm_narrow") {}

  std::string write() {
    long_.base = w_.pointer("long");
    short_.base = w_.pointer("short");
    c_ = w_.pointer("c");
    if (o_.has_operands()) {
      bias_ = w_.pointer("bias");
      residual_ = w_.pointer("residual");
    }
    if (o_.scaled) scales_ = ptx::scale_pointers(w_);
    w_.block("push", sizeof(Narrow::Push));
    thread_ = w_.special("%tid.x");
    lane_ = thread_ & (kWarp - 1);
    const U32 warp = thread_ >> 5;
    team_ = warp / o_.team();
    in_team_ = warp & (o_.team() - 1);
    memory_ = ptx::aligned_memory(w_);
    locate();
    for (uint32_t i = 0; i < blocks() * o_.columns / 8 * 4; ++i) sums_.push_back(w_.variable(number(w_, 0)));
    each_step();
    keep_sums();
    finish();
    return w_.text(Narrow::kThreads);
  }

 private:
  struct Operand {
    U64 base;        // of the matrix
    U64 ld;          // in bytes
    U32 first, end;  // rows: of the tile, of the matrix
    bool along_k;
    uint32_t element;  // bytes
    uint32_t step;     // of k
    uint32_t tile;     // rows of a tile
    uint32_t place;    // in a stage, in bytes
    bool in_eights;    // read by threads, 8 bytes at a time
    uint32_t piece_elements() const { return kPiece / element; }
    // A line has up to 128 bytes, so there may be several panels of lines: of steps of k, or of rows across k.
    uint32_t panel() const { return std::min(along_k ? step : tile, kRowBytes / element); }
    uint32_t panels() const { return (along_k ? step : tile) / panel(); }
    uint32_t panel_lines() const { return along_k ? tile : step; }
    uint32_t line_bytes() const { return panel() * element; }
    uint32_t pieces() const { return line_bytes() / kPiece; }
    uint32_t lines() const { return panels() * panel_lines(); }
    // A piece's number is changed by this function of its line's number, of which three bits count.
    template <typename Number>
    Number permutation(const Number& line) const {
      if (in_eights) return (line & 3u) << 1;
      switch (pieces()) {
        case 8: return line & 7u;
        case 4: return (line >> 1) & 3u;
        case 2: return (line >> 2) & 1u;
        default: return line & 0u;
      }
    }
    // Where a line is stored. Across k, 16 steps k of 8-bit floats are in the order of k / 2 % 2, k / 4, k % 2.
    template <typename Number>
    Number stored(const Number& line) const {
      if (along_k || element != 1) return line;
      return (line & ~15u) | (line & 2u) << 2 | (line & 12u) >> 1 | (line & 1u);
    }
  };

  U32 parameter(size_t offset) { return w_.parameter("push", offset); }
  U64 parameter64(size_t offset) { return w_.parameter64("push", offset); }
  U64 number64(uint64_t x) { return {&w_, std::to_string(x), true, x}; }
  // Threads of a team.
  uint32_t team_threads() const { return o_.team() * kWarp; }
  uint32_t warp_rows() const { return o_.rows / o_.team(); }
  uint32_t blocks() const { return warp_rows() / kBlockRows; }

  // The block's tile, and its part of k.
  void locate() {
    const U32 block = w_.special("%ctaid.x"), parts = parameter(offsetof(Narrow::Push, parts));
    const U32 tile = block / parts;
    part_ = block - tile * parts;
    const U32 tiles = parameter(offsetof(Narrow::Push, tiles));
    matrix_ = tile / tiles;
    const U32 k = parameter(offsetof(Narrow::Push, k)), k_slice = parameter(offsetof(Narrow::Push, k_slice));
    begin_ = w_.variable(part_ * k_slice);
    end_ = w_.variable(ptx::min(begin_ + k_slice, k));
    const U64 matrix = widen(matrix_);
    long_.base = w_.variable(long_.base + matrix * parameter64(offsetof(Narrow::Push, stride_long)));
    short_.base = w_.variable(short_.base + matrix * parameter64(offsetof(Narrow::Push, stride_short)));
    long_.ld = parameter64(offsetof(Narrow::Push, ld_long));
    short_.ld = parameter64(offsetof(Narrow::Push, ld_short));
    tile_ = tile - matrix_ * tiles;
    long_.first = w_.variable(tile_ * o_.rows);
    short_.first = w_.constant(0);
    long_.end = w_.variable(ptx::min(long_.first + o_.rows, parameter(offsetof(Narrow::Push, rows))));
    short_.end = parameter(offsetof(Narrow::Push, columns));
    long_.along_k = o_.long_along_k;
    short_.along_k = o_.short_along_k;
    long_.element = o_.long_bytes();
    short_.element = o_.short_bytes();
    long_.step = short_.step = o_.step();
    long_.tile = o_.rows;
    short_.tile = o_.columns;
    long_.place = 0;
    short_.place = o_.rows * kRowBytes;
    long_.in_eights = false;
    short_.in_eights = long_.element != short_.element;
  }

  // --- loading ------------------------------------------------------------------------------------------------------

  // What a thread loads of an operand's step: a piece of every `at_once`-th line.
  struct Loads {
    U64 at, between, step, round;  // round: all steps
    U32 to, line, element;         // element: the first one's number along the line
    U32 bytes;                     // across k: those of a piece that exist
    Pred exists;                   // if a team has more threads than a step has pieces
    uint32_t at_once;
  };

  Loads prepare(const Operand& x) {
    Loads all;
    const uint32_t pieces = x.pieces(), threads = team_threads();
    const U32 thread = thread_ & (threads - 1), piece = thread & (pieces - 1);
    all.line = thread / pieces;
    all.at_once = threads / pieces;
    if (all.at_once > x.lines()) all.exists = all.line < x.lines();
    all.element = piece * x.piece_elements();
    const U32 stored = x.stored(all.line);
    all.to = w_.variable(ring_ + x.place + stored * x.line_bytes() + ((piece ^ x.permutation(stored)) << 4));
    const U32 row = x.along_k ? x.first + all.line : x.first + all.element;
    const U32 k = x.along_k ? next_ + all.element : next_ + all.line;
    all.at = w_.variable(multiply_add(x.along_k ? k : row, x.element, x.base) + widen(x.along_k ? row : k) * x.ld);
    all.between = w_.variable(x.ld * all.at_once);
    all.step = x.along_k ? number64(between() * x.element) : w_.variable(x.ld * between());
    all.round =
        w_.variable(x.along_k ? multiply_wide(steps_, w_.constant(between() * x.element)) : all.step * widen(steps_));
    if (!x.along_k) {
      all.bytes = w_.variable(rest(x, row, x.end));
    } else {
      all.line = w_.variable(row);
    }
    return all;
  }

  // The bytes of a piece from `element` on that are before `end`.
  U32 rest(const Operand& x, const U32& element, const U32& end) {
    const U32 left = select(element < end, end - element, w_.constant(0));
    return min(left, w_.constant(x.piece_elements())) * x.element;
  }

  // Starts loading the operand's step from k on. What does not exist is zero.
  void load(const Operand& x, const Loads& all, const U32& stage, const U32& k) {
    const U32 first = x.along_k ? k + all.element : x.first + all.element, end = x.along_k ? end_ : x.end;
    const U32 line_end = x.along_k ? x.end : end_, first_line = x.along_k ? all.line : k + all.line;
    const U32 begin = all.to + stage;
    U64 from = all.at;
    U32 wanted = x.along_k ? rest(x, first, end) : all.bytes;
    for (uint32_t line = 0; line < x.lines(); line += all.at_once) {
      const uint32_t panel = line / x.panel_lines(), in_panel = line % x.panel_lines(), stored = x.stored(line);
      if (line != 0) from = in_panel == 0 ? all.at : from + all.between;
      if (panel != 0 && in_panel == 0) wanted = rest(x, first + panel * x.panel(), end);
      const U32 bytes = select(first_line + in_panel < line_end, wanted, w_.constant(0));
      // The thread's lines differ in bits that are part of the permutation.
      const uint32_t other = x.permutation(stored) << 4;
      const U32 to = other != 0 ? begin ^ other : begin;
      const ptx::Guard guard = all.exists.writer != nullptr ? if_true(all.exists) : ptx::Guard{};
      w_.emit(guard, "cp.async.cg.shared.global.L2::128B [{}+{}], [{}+{}], 16, {};", to.text, stored * x.line_bytes(),
              from.text, panel * kRowBytes, bytes.text);
    }
    w_.assign(all.at, all.at + all.step);
  }

  // Waits until all threads of the team are here.
  void join_team() {
    if (o_.team() == 1) {
      w_.emit("bar.warp.sync 0xffffffff;");
    } else {
      w_.emit("bar.sync {}, {};", (team_ + 1).text, team_threads());
    }
  }

  // k from a team's step to its next.
  uint32_t between() const { return o_.teams() * o_.step(); }

  void each_step() {
    const uint32_t stages = o_.stages(), ahead = stages - 1, stage_bytes = o_.stage_bytes();
    ring_ = w_.variable(memory_ + team_ * w_.constant(stages * stage_bytes));
    // All teams have as many steps; those that do not exist are zero.
    const U32 length = ptx::max(end_, begin_) - begin_;
    steps_ = w_.variable((length + (between() - 1)) / between());
    const U32 turn = o_.long_along_k ? tile_ : tile_ / std::max(kTogether / o_.rows, 1u);
    const U32 first = (turn - turn / ptx::max(steps_, w_.constant(1)) * steps_) * between();
    next_ = w_.variable(begin_ + first + team_ * o_.step());
    const U32 last = w_.variable(begin_ + team_ * o_.step() + steps_ * between());
    const Loads of_long = prepare(long_), of_short = prepare(short_);
    const auto load_step = [&](const U32& stage, const U32& step) {
      w_.when(step < steps_, [&] {
        load(long_, of_long, stage, next_);
        load(short_, of_short, stage, next_);
        w_.assign(next_, next_ + between());
        const Pred round = next_ == last;
        w_.emit(if_true(round), "sub.u64 {}, {}, {};", of_long.at.text, of_long.at.text, of_long.round.text);
        w_.emit(if_true(round), "sub.u64 {}, {}, {};", of_short.at.text, of_short.at.text, of_short.round.text);
        w_.emit(if_true(round), "sub.u32 {}, {}, {};", next_.text, next_.text, (steps_ * between()).text);
      });
      w_.emit("cp.async.commit_group;");
    };
    for (uint32_t i = 0; i < ahead; ++i) load_step(w_.constant(i * stage_bytes), w_.variable(w_.constant(i)));
    prepare_reading();
    const U32 stage = w_.variable(w_.constant(0)), step = w_.variable(w_.constant(0));
    w_.repeat([&] { return step < steps_; },
              [&] {
                w_.emit("cp.async.wait_group {};", ahead - 1);
                join_team();  // the pieces of all threads have arrived, and the step before has been read
                const U32 free = select(stage == 0u, w_.constant(ahead * stage_bytes), stage - stage_bytes);
                load_step(free, step + ahead);
                multiply(stage);
                const U32 following = stage + stage_bytes;
                w_.assign(stage, select(following == stages * stage_bytes, w_.constant(0), following));
                w_.assign(step, step + 1);
              });
    w_.emit("cp.async.wait_all;");
  }

  // --- multiplying --------------------------------------------------------------------------------------------------

  // Where a lane reads in the first stage. ldmatrix: lanes 8 i to 8 i + 7 have the addresses of the lines of matrix i.
  // For the long operand, matrices 0 and 1 have the same k; of the short one, all have the same 8 rows.
  void prepare_reading() {
    const U32 matrix = lane_ >> 3, line = lane_ & 7;
    const U32 low = matrix & 1, high = matrix >> 1, first = in_team_ * warp_rows();
    const auto place = [&](const Operand& x, const U32& at, const U32& piece) {
      return w_.variable(ring_ + x.place + at * x.line_bytes() + ((piece ^ x.permutation(line)) << 4));
    };
    if (long_.along_k) {
      read_long_ = place(long_, first + (low << 3) + line, high);
    } else {
      const U32 panel = first / long_.panel(), piece = (first & (long_.panel() - 1)) / long_.piece_elements();
      read_long_ = bytes() ? place(long_, (matrix << 3) + line, piece)
                           : place(long_, panel * o_.step() + (high << 3) + line, piece + low);
    }
    if (short_.in_eights) {
      const U32 row = lane_ >> 2, thread = lane_ & 3;
      const U32 in_line = (((thread >> 1) ^ short_.permutation(row)) << 4) + ((thread & 1) << 3);
      read_short_ = w_.variable(ring_ + short_.place + row * kRowBytes + in_line);
    } else {
      read_short_ = short_.along_k ? place(short_, line, matrix) : place(short_, (matrix << 3) + line, w_.constant(0));
    }
  }

  // The long operand is of 8-bit floats.
  bool bytes() const { return long_.element == 1; }

  using Fragment = std::array<U32, 4>;
  Fragment load_matrices(const U32& at, uint32_t offset, bool transposed) {
    Fragment x;
    for (U32& one : x) one = w_.make<Type::u32>();
    w_.emit("ldmatrix.sync.aligned.m8n8.x4{}.shared.b16 {{{}, {}, {}, {}}}, [{}+{}];", transposed ? ".trans" : "",
            x[0].text, x[1].text, x[2].text, x[3].text, at.text, offset);
    return x;
  }

  // The 16 rows of a block of the long operand, of 16 steps of k.
  Fragment long_rows(const U32& at, uint32_t block, uint32_t sixteen) {
    if (long_.along_k) return load_matrices(at ^ (sixteen * 32), block * 16 * kRowBytes, false);
    const uint32_t in_line = kRowBytes / 2 / kBlockRows, in_panel = block % in_line, panel = block / in_line;
    return load_matrices(at ^ (in_panel * 32), (panel * o_.step() + sixteen * 16) * long_.line_bytes(), true);
  }
  // Eight rows of the short operand, of 64 bytes of k.
  Fragment short_rows(const U32& at, uint32_t eight, uint32_t half) {
    if (short_.along_k) return load_matrices(at ^ (half * 64), eight * 8 * kRowBytes, false);
    return load_matrices(at ^ (eight * kPiece), half * 32 * short_.line_bytes(), true);
  }

  const F32* sums(uint32_t block, uint32_t eight) const { return &sums_[(block * o_.columns / 8 + eight) * 4]; }

  // Products of 16 rows of the long operand and eight of the short one, of 16 steps of k.
  void multiply(uint32_t block, uint32_t eight, const Fragment& a, const U32& b0, const U32& b1) {
    ptx::multiply_16x8(o_.multiplied_type(), sums(block, eight), a, b0, b1);
  }

  void multiply(const U32& stage) {
    const U32 at_long = read_long_ + stage, at_short = read_short_ + stage;
    for (uint32_t half = 0; half < 2; ++half) {
      std::vector<Fragment> b;
      for (uint32_t eight = 0; eight < o_.columns / 8 && !short_.in_eights; ++eight) {
        b.push_back(short_rows(at_short, eight, half));
      }
      for (uint32_t i = 0; i < 2; ++i) {
        if (bytes()) {
          multiply_bytes(at_long, at_short, half * 2 + i, b);
          continue;
        }
        for (uint32_t block = 0; block < blocks(); ++block) {
          const Fragment a = long_rows(at_long, block, half * 2 + i);
          for (uint32_t eight = 0; eight < o_.columns / 8; ++eight) {
            multiply(block, eight, a, b[eight][2 * i], b[eight][2 * i + 1]);
          }
        }
      }
    }
  }

  // --- 8-bit floats -------------------------------------------------------------------------------------------------

  // Four of a register, as two pairs of 16 bits.
  std::array<U32, 2> widened(int32_t type, const U32& four) {
    return ptx::pairs_of_bytes(type, four, o_.multiplied_type());
  }

  // The 16 rows of a block of the long operand, of twice 16 steps of k.
  std::array<Fragment, 2> long_bytes(const U32& at, uint32_t block, uint32_t quarter) {
    std::array<Fragment, 2> made;
    if (long_.along_k) {
      const Fragment x = load_matrices(at ^ (quarter * 32), block * 16 * kRowBytes, false);
      for (uint32_t i = 0; i < 2; ++i) {
        const auto low = widened(o_.type, x[2 * i]), high = widened(o_.type, x[2 * i + 1]);
        made[i] = {low[0], high[0], low[1], high[1]};
      }
      return made;
    }
    // Bytes 0 and 2 of a register are of one row, bytes 1 and 3 of the next.
    const Fragment x = load_matrices(at ^ (block * kPiece), quarter * 32 * long_.line_bytes(), true);
    const auto rows_of = [&](const U32& four) {
      const U32 sorted = w_.make<Type::u32>();
      w_.emit("prmt.b32 {}, {}, {}, 0x3120;", sorted.text, four.text, four.text);
      return widened(o_.type, sorted);
    };
    for (uint32_t i = 0; i < 2; ++i) {
      const auto first = rows_of(x[2 * i]), second = rows_of(x[2 * i + 1]);
      made[i] = {first[0], first[1], second[0], second[1]};
    }
    return made;
  }

  // Eight rows of a short operand of 16 bits, of 16 steps of k.
  std::array<U32, 2> short_pairs(const U32& at, uint32_t eight, uint32_t sixteen) {
    std::array<U32, 2> x{w_.make<Type::u32>(), w_.make<Type::u32>()};
    const uint32_t panel = sixteen / 4, lines = panel * short_.panel_lines() + eight * 8;
    w_.emit("ld.shared.v2.b32 {{{}, {}}}, [{}+{}];", x[0].text, x[1].text, (at ^ (sixteen % 4 * 32)).text,
            lines * kRowBytes);
    return x;
  }

  // The quarter of a step: 32 of k. `b` has the half's rows of a short operand of 8 bits.
  void multiply_bytes(const U32& at_long, const U32& at_short, uint32_t quarter, const std::vector<Fragment>& b) {
    std::vector<std::array<U32, 2>> pairs;
    for (uint32_t eight = 0; eight < o_.columns / 8; ++eight) {
      for (uint32_t i = 0; i < 2; ++i) {
        pairs.push_back(short_.in_eights ? short_pairs(at_short, eight, quarter * 2 + i)
                                         : widened(o_.short_type, b[eight][quarter % 2 * 2 + i]));
      }
    }
    for (uint32_t block = 0; block < blocks(); ++block) {
      const std::array<Fragment, 2> a = long_bytes(at_long, block, quarter);
      for (uint32_t i = 0; i < 2; ++i) {
        for (uint32_t eight = 0; eight < o_.columns / 8; ++eight) {
          multiply(block, eight, a[i], pairs[eight * 2 + i][0], pairs[eight * 2 + i][1]);
        }
      }
    }
  }

  // --- the end ------------------------------------------------------------------------------------------------------

  // Numbers of a row of sums in shared memory: odd, so that a column is read without bank conflicts, and with 9 or 25
  // banks from a row to the next, so that at most two lanes write to one bank.
  uint32_t sums_row() const { return o_.columns == 16 ? 25 : o_.columns + 1 + (o_.columns == 8 ? 0 : 8); }
  uint32_t team_bytes() const { return o_.rows * sums_row() * 4; }

  // Each team's sums are in shared memory afterwards: [team][row][column].
  void keep_sums() {
    w_.emit("bar.sync 0;");
    // For 8-bit floats across k, a thread's two rows are neighbours.
    const bool neighbours = bytes() && !long_.along_k;
    const uint32_t second = neighbours ? 1 : 8;
    const U32 row = in_team_ * warp_rows() + ((lane_ >> 2) << (neighbours ? 1 : 0)), column = (lane_ & 3) << 1;
    const U32 to = memory_ + team_ * w_.constant(team_bytes()) + (row * sums_row() + column) * 4;
    for (uint32_t block = 0; block < blocks(); ++block) {
      for (uint32_t eight = 0; eight < o_.columns / 8; ++eight) {
        for (uint32_t i = 0; i < 4; ++i) {
          const uint32_t at = ((block * 16 + i / 2 * second) * sums_row() + eight * 8 + i % 2) * 4;
          w_.emit("st.shared.f32 [{}+{}], {};", to.text, at, sums(block, eight)[i].text);
        }
      }
    }
    w_.emit("bar.sync 0;");
  }

  // Stores the tile's elements in the order of C's rows.
  void finish() {
    const uint32_t size = size_of_c();
    const U64 bytes = number64(size), matrix = widen(matrix_);
    const U64 out = c_ + matrix * parameter64(offsetof(Narrow::Push, stride_c)) +
                    widen(part_) * parameter64(offsetof(Narrow::Push, slice_c));
    U64 bias, residual;
    if (o_.bias_axis != 0) bias = bias_ + matrix * parameter64(offsetof(Narrow::Push, stride_bias));
    if (o_.residual) residual = residual_ + matrix * parameter64(offsetof(Narrow::Push, stride_residual));
    ptx::Scales scales{w_.parameter_float("push", offsetof(Narrow::Push, alpha)), {}};
    if (o_.scaled) scales = ptx::read_scales(scales_, scales.factor);
    const F32 beta = w_.parameter_float("push", offsetof(Narrow::Push, beta));
    const U32 ldc = parameter(offsetof(Narrow::Push, ldc));
    const U32 ld_residual = o_.residual ? parameter(offsetof(Narrow::Push, ld_residual)) : U32{};
    const uint32_t rows = std::bit_ceil(o_.rows);
    const U32 element = w_.variable(thread_);
    w_.repeat([&] { return element < rows * o_.columns; },
              [&] {
                // Neighbouring threads have neighbouring elements of a row of C.
                const uint32_t across = o_.transposed ? rows : o_.columns;
                const U32 inner = element & (across - 1), outer = element / across;
                const U32 row = o_.transposed ? inner : outer, column = o_.transposed ? outer : inner;
                const U32 at_row = long_.first + row;
                w_.when(at_row < long_.end && column < short_.end, [&] {
                  const F32 sum = sum_of(memory_ + (row * sums_row() + column) * 4);
                  const U32 &c_row = o_.transposed ? column : at_row, &c_column = o_.transposed ? at_row : column;
                  const auto address = [&](const U64& base, const U32& ld) {
                    return multiply_add(c_column, size, base + multiply_wide(c_row, ld) * bytes);
                  };
                  const U64 to = address(out, ldc);
                  F32 value = sum * scales.factor;
                  if (o_.beta) value = multiply_add(beta, load_element(o_.c_type, to, 0, nullptr), value);
                  if (o_.bias_axis != 0) {
                    const U32& place = o_.bias_axis == TUFF_BIAS_ROWS ? c_row : c_column;
                    value = value + load_element(o_.c_type, multiply_add(place, size, bias), 0, nullptr);
                  }
                  if (o_.residual) {
                    value = value + load_element(o_.c_type, address(residual, ld_residual), 0, nullptr);
                  }
                  value = ptx::activated(value, o_.activation);
                  store(to, o_.scaled ? value * scales.after : value);
                });
                w_.assign(element, element + Narrow::kThreads);
              });
  }

  F32 sum_of(const U32& at) {
    std::vector<F32> parts;
    for (uint32_t team = 0; team < o_.teams(); ++team) {
      parts.push_back(w_.make<Type::f32>());
      w_.emit("ld.shared.f32 {}, [{}+{}];", parts.back().text, at.text, team * team_bytes());
    }
    F32 sum = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i];
    return sum;
  }

  uint32_t size_of_c() const { return static_cast<uint32_t>(dtype_size(o_.c_type)); }

  void store(const U64& to, const F32& value) {
    if (size_of_c() != 1) return ptx::store_element(o_.c_type, to, value);
    w_.emit("st.global.b8 [{}], {};", to.text, ptx::packed_bytes(o_.c_type, value, value).text);
  }

  const Narrow o_;
  Writer w_;
  Operand long_, short_;
  U64 c_, bias_, residual_;
  std::array<U64, 3> scales_;
  U32 thread_, lane_, team_, in_team_;
  U32 memory_, ring_;           // ring_: the team's
  U32 matrix_, part_;           // of the block
  U32 begin_, end_;             // its part of k
  U32 tile_;                    // its number in the matrix
  U32 steps_, next_;            // of a team: all, and the k of the next one to load
  U32 read_long_, read_short_;  // where the lane reads in the first stage
  std::vector<F32> sums_;
};

NativeKernel write_narrow(const KernelRequest& request) {
  const Narrow options = Narrow::read(request);
  return {Kernel(options).write(), "gemm_narrow", Narrow::kThreads, options.shared_bytes()};
}

constexpr LegalRange kInputs[] = {{TUFF_F16, TUFF_BF16}, {TUFF_F8_E4M3, TUFF_F8_E5M2}};
constexpr LegalRange kOutputs[] = {{TUFF_F32, TUFF_BF16}, {TUFF_F8_E4M3, TUFF_F8_E5M2}};
constexpr LegalRange kRows[] = {{32, 32}, {48, 48}, {64, 64}, {80, 80}, {96, 96}, {112, 112}, {128, 128}};
constexpr LegalRange kColumns[] = {{8, 8}, {16, 16}, {32, 32}, {64, 64}};
constexpr LegalRange kPerCore[] = {{1, 2}};
constexpr LegalRange kAxes[] = {{TUFF_BIAS_NONE, TUFF_BIAS_COLUMNS}};
constexpr DefineInfo kDefines[] = {{"ACTIVATION", kActivations},
                                   {"BETA", kFlag},
                                   {"BIAS_AXIS", kAxes},
                                   {"BLOCKS", kPerCore},
                                   {"COLUMNS", kColumns},
                                   {"C_TYPE", kOutputs},
                                   {"LONG_ALONG_K", kFlag},
                                   {"RESIDUAL", kFlag},
                                   {"ROWS", kRows},
                                   {"SCALED", kFlag},
                                   {"SHORT_ALONG_K", kFlag},
                                   {"SHORT_TYPE", kInputs},
                                   {"TRANSPOSED", kFlag},
                                   {"TYPE", kInputs}};

}  // namespace

uint32_t Narrow::stages() const {
  const uint32_t memory = blocks == 1 ? ptx::kSharedBytes : (ptx::kSharedBytes - kReserved) / 2;
  return std::min((memory - ptx::kSharedAlignment) / (teams() * stage_bytes()), kMaxStages);
}

bool Narrow::fits() const {
  constexpr uint32_t kMaxSums = 64 * 64;  // of a warp: 128 registers of each thread
  return stages() >= kMinStages && rows / team() * columns <= kMaxSums && (long_along_k || std::has_single_bit(rows));
}

bool Narrow::legal() const {
  const bool bytes_of_c = kFloat8Types.has(c_type);
  return (long_bytes() == 1 ? short_along_k : type == short_type) && !(bytes_of_c && (beta || has_operands())) &&
         ptx::activates(activation, c_type);
}

uint32_t Narrow::shared_bytes() const { return teams() * stages() * stage_bytes() + ptx::kSharedAlignment; }

KernelRequest Narrow::request() const {
  KernelRequest made(narrow_source);
  made.define("ACTIVATION", activation).define("BETA", beta).define("BIAS_AXIS", bias_axis);
  made.define("BLOCKS", blocks).define("COLUMNS", columns).define("C_TYPE", c_type);
  made.define("LONG_ALONG_K", long_along_k).define("RESIDUAL", residual).define("ROWS", rows);
  made.define("SHORT_ALONG_K", short_along_k).define("TRANSPOSED", transposed).define("TYPE", type);
  made.define("SCALED", scaled).define("SHORT_TYPE", short_type);
  return made;
}

Narrow Narrow::read(const KernelRequest& request) {
  Narrow options;
  options.activation = static_cast<int32_t>(request.value_of("ACTIVATION"));
  options.beta = request.value_of("BETA") != 0;
  options.bias_axis = static_cast<int32_t>(request.value_of("BIAS_AXIS"));
  options.blocks = static_cast<uint32_t>(request.value_of("BLOCKS"));
  options.columns = static_cast<uint32_t>(request.value_of("COLUMNS"));
  options.c_type = static_cast<int32_t>(request.value_of("C_TYPE"));
  options.long_along_k = request.value_of("LONG_ALONG_K") != 0;
  options.residual = request.value_of("RESIDUAL") != 0;
  options.rows = static_cast<uint32_t>(request.value_of("ROWS"));
  options.short_along_k = request.value_of("SHORT_ALONG_K") != 0;
  options.transposed = request.value_of("TRANSPOSED") != 0;
  options.type = static_cast<int32_t>(request.value_of("TYPE"));
  options.scaled = request.value_of("SCALED") != 0;
  options.short_type = static_cast<int32_t>(request.value_of("SHORT_TYPE"));
  if (!options.legal()) fail(TUFF_ERROR_INTERNAL, "gemm_narrow: options that the types do not have");
  if (!options.fits()) fail(TUFF_ERROR_INTERNAL, "gemm_narrow: tiles of {} x {}", options.rows, options.columns);
  return options;
}

const KernelSource narrow_source = {"gemm_narrow", nullptr, kDefines, write_narrow};

}  // namespace tuff::gemm
