// C = activation(alpha * op(A) * op(B) + beta * C + bias + residual) with the wgmma instructions of Hopper GPUs: 16-bit
// inputs, sums in f32. Or with f32 inputs, of which the instructions ignore all but 10 bits of the fraction (TF32). Or
// with 8-bit floats, and a scale for each matrix. Or C = A * B with inputs of 8-bit integers and sums in i32. The rows
// of both f32 and 8-bit inputs run along k.
//
//              columns (256)            A block computes 128 rows of C at a time, and takes tile after tile, so that
//            +---------------+          loading the next one overlaps with storing this one. It has three warp groups:
//       64   |       B       |
//      +---+ +---------------+            group 0   loads: cp.async into a ring of stages, each 128 bytes of k;
//      |   | |    group 1    |            group 1   multiplies the upper 64 rows, with the sums in registers;
//  128 | A | +---------------+            group 2   multiplies the lower 64 rows.
//      |   | |    group 2    |
//      +---+ +---------------+          full[s] tells the multiplying groups that stage s has arrived, empty[s] tells
//                                       the loading group that both have multiplied it:
//
//   load      0   1   2   3   .   .   4   5   .   ...          (waits for empty[s])
//   multiply          0---1---2---3---4---5---...              (waits for full[s]; the next step is issued before the
//                                                               last one has finished)
//
// A stage is kept as wgmma reads it without bank conflicts: rows of 128 bytes whose eight pieces of 16 bytes are
// permuted by the row's number ("128-byte swizzle"). An operand whose rows run along k is kept row by row; one whose
// rows run along m or n is kept as blocks of 64 elements by 64 steps of k, which the instruction transposes. Neither is
// copied before.
//
// The tensor cores' sums of 8-bit floats have 13 bits of fraction. So only those of a step are added up by them, 128
// columns at a time, and the groups add them to sums in f32: while one group does, the other's products are computed.
//
// For convolutions, an operand's rows are windows of images (implicit_gemm.hpp): what a thread loads in a step belongs
// to one tap, whose place in the window moves on with k. If A's windows may begin outside the image, each row has a bit
// for every tap that is inside; the others are loaded as zeros. If B's rows are windows, columns of C are in several
// images. For gradients by inputs, the filter may be as it is stored: its rows are k. For gradients by filters, rows of
// k are windows: a thread finds the window of each row that it loads, and what it loads of it belongs to the same taps
// in all of them.
#include "kernels/gemm/native/gemm_wgmma.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/gemm/native/tiles.hpp"
#include "kernels/gemm/native/wgmma_frame.hpp"
#include "kernels/gemm/native/wgmma_store.hpp"
#include "kernels/gemm/native/wgmma_windows.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/legal_values.hpp"
#include "kernels/native/ptx.hpp"
#include "planning/element_type.hpp"
#include "planning/status.hpp"
#include "tuff/tuff.h"

namespace tuff::gemm {
namespace {

using ptx::arrive_at;
using ptx::F32;
using ptx::if_true;
using ptx::kActivations;
using ptx::kFlag;
using ptx::kRowBytes;
using ptx::multiply_add;
using ptx::multiply_wide;
using ptx::Pred;
using ptx::quotient;
using ptx::Ring;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

constexpr uint32_t kStep = Wgmma::kStep, kPiece = 16;
constexpr uint32_t kBlockBytes = kWgmmaBlockBytes, kLoaders = Wgmma::kLoaders;
constexpr uint32_t kPasses = kLoaders / 8;  // rows that the loaders load at once
constexpr uint32_t kBarriersBytes = 256;
// Steps that the loading group has in flight while it starts another one. The multiplying groups still use one stage
// when they start on the next, so at most the number of stages less two.
constexpr uint32_t kLag = 2;
constexpr uint32_t kPartColumns = 128;  // of 8-bit floats: those whose sums of a step are added up at once
// Registers of a thread: the hardware moves them from the loading to the multiplying groups.
constexpr uint32_t kLoaderRegisters = 56, kMultiplierRegisters = 224;

class Kernel {
 public:
  explicit Kernel(const Wgmma& options) : o_(options), w_("sm_90a", "gemm_wgmma") {}

  std::string write() {
    f_.declare(w_, o_);
    read_parameters();
    const U32 thread = w_.special("%tid.x");
    f_.make_barriers(w_, o_, thread);
    ptx::divide_work(
        thread, kLoaderRegisters, kMultiplierRegisters, [&] { load(thread); }, [&] { multiply(thread - kLoaders); });
    return w_.text(o_.threads());
  }

 private:
  struct Operand : TiledOperand {
    bool windows = false;  // its rows are windows of images
  };

  bool integers() const { return o_.type == TUFF_I8; }
  // The first element of a piece of 16 bytes.
  U32 element_of(const U32& piece) const {
    return piece << (o_.element_bytes() == 1 ? 4 : o_.element_bytes() == 4 ? 2 : 3);
  }

  void read_parameters() {
    f_.read_parameters(w_, o_);
    a_ = {f_.a};
    b_ = {f_.b};
    a_.windows = o_.windows == 1;
    b_.windows = o_.windows >= 2;
    if (o_.windows == 0) return;
    v_.read(w_, o_);
    f_.per_image = v_.per_image;
  }

  // --- the group that loads ---------------------------------------------------------------------------------------

  // What a thread loads of an operand in each step: `count` pieces at offsets (in pieces) from a pointer that advances
  // with k, to addresses in the stage.
  struct Loads {
    U64 pointer, step;
    struct Load {
      U32 offset;
      uint32_t to;
      uint32_t k_row;  // across k: the row, from the thread's first
      U32 bytes = {};  // across k, at an edge
      U32 taps = {};   // of padded windows: a bit for each that is inside the image
    };
    std::vector<Load> loads;
    U64 base;                 // with windows: of the operand
    WgmmaWindows::Walk walk;  // … and where in the window the thread's piece is
    // With windows across k, `loads` has one for each block of columns: the place of the thread's piece in a window,
    // and a bit for its tap.
    U32 image_pieces;
  };

  // A thread loads piece thread % 8 of rows thread / 8, + 16, + 32, ... Along k these are rows of m or n. Those beyond
  // the last are loaded as the last one, which is in memory, and never stored. Across k they are rows of k, whose eight
  // pieces are 64 elements of m or n; beyond the last are zeros.
  Loads prepare(const Operand& x, const U32& first, const Tile& tile, const U32& row, const U32& piece) {
    if (x.windows) {
      return x.along_k ? prepare_windows(x, first, tile, row, piece) : prepare_taps(x, first, piece);
    }
    Loads all;
    const U64 matrix = x.base + widen(tile.matrix) * x.stride;
    if (x.along_k) {
      all.pointer = w_.variable(multiply_add(tile.k, o_.element_bytes(), matrix));
      all.step = w_.variable(U64{&w_, std::to_string(kRowBytes), true, kRowBytes});
      const U32 last = x.extent - 1;
      for (uint32_t i = 0; i < x.tile / kPasses; ++i) {
        U32 at = first + row + i * kPasses;
        if (o_.edge) at = min(at, last);
        all.loads.push_back({at * x.ld + piece, i * kPasses * kRowBytes, 0, {}});
      }
    } else {
      const U32 pieces_of_k = tile.k * x.ld;
      if (o_.has_filter()) {
        all.base = x.base;
      } else {
        all.pointer = w_.variable(multiply_add(pieces_of_k, kPiece, matrix));
        all.step = multiply_wide(x.ld, w_.constant(kStep * kPiece));
      }
      for (uint32_t block = 0; block < x.tile / kStep; ++block) {
        const U32 element = first + block * kStep + (piece << 3);
        const U32 bytes = o_.edge ? rest(element, x.extent) : U32{};
        for (uint32_t i = 0; i < kStep / kPasses; ++i) {
          const U32 offset = (row + i * kPasses) * x.ld + (element >> 3);
          all.loads.push_back({offset, block * kBlockBytes + i * kPasses * kRowBytes, i * kPasses, bytes});
        }
      }
    }
    return all;
  }

  // Rows of k are windows, and columns the channels of their taps: a thread's piece of each block of columns belongs to
  // one tap, whatever the window. Columns beyond the last have taps that no window has.
  Loads prepare_taps(const Operand& x, const U32& first, const U32& piece) {
    Loads all;
    all.base = v_.before_image(x.base);
    all.image_pieces = v_.pieces_of_image(x);
    for (uint32_t block = 0; block < x.tile / kStep; ++block) {
      const U32 element = first + block * kStep + (piece << 3), tap = quotient(element, v_.channels);
      const U32 channel = element - tap * v_.channels.number, tap_row = quotient(tap, v_.taps);
      const U32 place = tap_row * v_.tap_row + (tap - tap_row * v_.taps.number) * v_.tap_step + (channel >> 3);
      all.loads.push_back(
          {w_.variable(place), block * kBlockBytes, 0, {}, w_.variable(v_.shift_left(w_.constant(1), tap))});
    }
    return all;
  }

  void load_taps(const Operand& x, const Loads& all, const U32& stage, const U32& k, const U32& k_end, const U32& row) {
    for (uint32_t i = 0; i < kStep / kPasses; ++i) {
      const U32 at = k + row + i * kPasses;
      const U32 image = quotient(at, v_.per_image), window = at - image * v_.per_image.number;
      const U32 y = quotient(window, v_.width), column = window - y * v_.width.number;
      const U32 begin = image * all.image_pieces + y * x.ld + column * v_.step;
      U32 inside = v_.bits_of_window(y, column);
      if (o_.edge) inside = select(at < k_end, inside, w_.constant(0));
      for (const Loads::Load& load : all.loads) {
        const U64 from = multiply_add(begin + load.offset, kPiece, all.base);
        const U32 bytes = select((inside & load.taps) != 0u, w_.constant(kPiece), w_.constant(0));
        w_.emit("cp.async.cg.shared.global.L2::128B [{}+{}], [{}], 16, {};", stage.text,
                x.place + load.to + i * kPasses * kRowBytes, from.text, bytes.text);
      }
    }
  }

  // Rows are windows of images. What a thread loads in a step belongs to one tap.
  Loads prepare_windows(const Operand& x, const U32& first, const Tile& tile, const U32& row, const U32& piece) {
    Loads all;
    all.base = x.base;
    if (o_.groups) all.base = x.base + multiply_wide(tile.matrix, v_.channels.number * 2);  // a group's channels
    const U32 image_pieces = v_.pieces_of_image(x);
    for (uint32_t i = 0; i < x.tile / kPasses; ++i) {
      U32 at = first + row + i * kPasses;
      if (o_.edge) at = min(at, x.extent - 1);
      const WgmmaWindows::Row window = v_.row_of(x, image_pieces, at, o_.padded);
      all.loads.push_back({window.offset, i * kPasses * kRowBytes, 0, {}, window.taps});
    }
    if (o_.padded) all.base = v_.before_image(all.base);
    all.walk = v_.start_at(tile.k + (piece << 3), o_.padded);
    return all;
  }

  void load_windows(const Operand& x, const Loads& all, const U32& stage, const U32& k, const U32& k_end,
                    const U32& piece) {
    const U64 pointer = multiply_add(v_.place_of(all.walk, 3), kPiece, all.base);
    std::string size;
    U32 bytes = w_.constant(kPiece);
    if (o_.edge || o_.valid) {
      if (o_.edge) bytes = rest(k + (piece << 3), k_end);
      if (o_.valid) bytes = min(rest(all.walk.channel, v_.valid), bytes);
      size = ", " + bytes.text;
    }
    for (const Loads::Load& load : all.loads) {
      const U64 from = multiply_add(load.offset, kPiece, pointer);
      if (o_.padded) size = ", " + select((load.taps & all.walk.bit) != 0u, bytes, w_.constant(0)).text;
      w_.emit("cp.async.cg.shared.global.L2::128B [{}+{}], [{}], 16{};", stage.text, x.place + load.to, from.text,
              size);
    }
    v_.move_on(all.walk, o_.padded);
  }

  // The bytes of a piece from `element` on that are before `end`.
  U32 rest(const U32& element, const U32& end) {
    const U32 left = select(element < end, end - element, w_.constant(0));
    return min(left, w_.constant(kPiece / o_.element_bytes())) * o_.element_bytes();
  }

  void load_step(const Operand& x, const Loads& all, const U32& stage, const U32& k, const U32& k_end, const U32& row,
                 const U32& piece) {
    if (x.windows) {
      return x.along_k ? load_windows(x, all, stage, k, k_end, piece) : load_taps(x, all, stage, k, k_end, row);
    }
    const U32 bytes = o_.edge && x.along_k ? rest(k + element_of(piece), k_end) : U32{};
    const U64 pointer = o_.has_filter() ? rows_of_tap(x, all, k) : all.pointer;
    for (const Loads::Load& load : all.loads) {
      const U64 from = multiply_add(load.offset, kPiece, pointer);
      std::string size;
      if (o_.edge && x.along_k) size = ", " + bytes.text;
      if (o_.edge && !x.along_k) {
        size = ", " + select(k + row + load.k_row < k_end, load.bytes, w_.constant(0)).text;
      }
      w_.emit("cp.async.cg.shared.global.L2::128B [{}+{}], [{}], 16{};", stage.text, x.place + load.to, from.text,
              size);
    }
    if (!o_.has_filter()) w_.assign(all.pointer, all.pointer + all.step);
  }

  // Where the filter's rows of a step are, which belong to one tap.
  U64 rows_of_tap(const Operand& x, const Loads& all, const U32& k) {
    const U32 tap = quotient(k, v_.channels), tap_row = quotient(tap, v_.taps);
    const U32 last_tap = v_.taps.number - 1, last_row = v_.tap_rows - 1;
    const U32 place = (last_row - tap_row) * v_.filter_row +
                      (last_tap - (tap - tap_row * v_.taps.number)) * v_.filter_step +
                      (k - tap * v_.channels.number) * x.ld;
    return multiply_add(place, kPiece, all.base);
  }

  void load(const U32& thread) {
    const U32 row = thread >> 3, piece = thread & 7;
    const U32 place = ptx::piece_at(f_.memory, row, piece);
    ptx::CopiedStages stages(thread, f_.full, o_.stages(), kLag);
    f_.tiles.each([&](const Tile& tile) {
      const Loads a = prepare(a_, tile.row, tile, row, piece), b = prepare(b_, tile.column, tile, row, piece);
      const U32 k = w_.variable(tile.k);
      w_.repeat([&] { return k < tile.k_end; },
                [&] {
                  wait_at(f_.empty, stages.ring());
                  const U32 stage = place + stages.ring().stage * w_.constant(o_.stage_bytes());
                  load_step(a_, a, stage, k, tile.k_end, row, piece);
                  load_step(b_, b, stage, k, tile.k_end, row, piece);
                  stages.started();
                  w_.assign(k, k + o_.step());
                });
    });
    stages.finish();
  }

  // --- the groups that multiply -----------------------------------------------------------------------------------

  void multiply(const U32& thread) {
    const U32 group = thread >> 7;
    // 64 rows or columns of either operand take as many bytes.
    static_assert(64 * kRowBytes == kBlockBytes);
    const U32 none = w_.constant(0);
    const U32 a_first = f_.descriptor(a_, o_.halves_columns() ? none : group * kBlockBytes);
    const U32 b_first = f_.descriptor(b_, o_.halves_columns() ? group * (o_.group_columns() * kRowBytes) : none);
    const U32 high = w_.variable(w_.constant(ptx::kMatrixHigh));
    const U32 lane = thread & 31;
    const Pred elected = lane == 0;
    for (uint32_t i = 0; i < o_.group_columns() / 2; ++i) {
      if (integers()) {
        f_.integer_sums.push_back(w_.make<Type::u32>());
      } else {
        f_.sums.push_back(w_.make<Type::f32>());
      }
    }
    if (o_.scaled) {
      f_.scales = ptx::read_scales(f_.scale_pointers, w_.parameter_float("push", offsetof(Wgmma::Push, alpha)));
    }
    const Ring ring = ptx::make_ring(w_, 0);
    if (o_.promoted) return multiply_in_parts(ring, a_first, b_first, high, thread, lane, elected);
    f_.tiles.each([&](const Tile& tile) {
      const U32 k = w_.variable(tile.k), last = w_.variable(f_.empty);
      w_.repeat([&] { return k < tile.k_end; },
                [&] {
                  wait_at(f_.full, ring);
                  w_.emit("wgmma.fence.sync.aligned;");
                  const U32 stage = ring.stage * w_.constant(o_.stage_bytes() / 16);
                  const U32 a = a_first + stage, b = b_first + stage;
                  const Pred more = k != tile.k;
                  for (uint32_t i = 0; i < kStep / 16; ++i) {
                    const U64 a_place = ptx::matrix(a + i * (a_.along_k ? 2 : 16 * kRowBytes / 16), high);
                    const U64 b_place = ptx::matrix(b + i * (b_.along_k ? 2 : 16 * kRowBytes / 16), high);
                    multiply_piece(a_place, b_place, i == 0 ? more : always(), f_.sums);
                  }
                  w_.emit("wgmma.commit_group.sync.aligned;");
                  w_.emit("wgmma.wait_group.sync.aligned 1;");
                  // All but the last of the steps before have finished.
                  arrive_at(last, if_true(more && elected));
                  w_.assign(last, f_.empty + (ring.stage << 3));
                  advance(ring, o_.stages());
                  w_.assign(k, k + o_.step());
                });
      w_.emit("wgmma.wait_group.sync.aligned 0;");
      arrive_at(last, if_true(elected));
      store_tile(w_, o_, f_, tile, thread, lane);
    });
  }

  // The sums of a step are added up by the tensor cores, those of steps in f32.
  void multiply_in_parts(const Ring& ring, const U32& a_first, const U32& b_first, const U32& high, const U32& thread,
                         const U32& lane, const Pred& elected) {
    const uint32_t columns = std::min(kPartColumns, o_.group_columns());
    std::vector<F32> part;
    for (uint32_t i = 0; i < columns / 2; ++i) part.push_back(w_.make<Type::f32>());
    const Pred never = ptx::truth(w_, false);
    f_.tiles.each([&](const Tile& tile) {
      for (const F32& sum : f_.sums) w_.emit("mov.f32 {}, 0f00000000;", sum.text);
      const U32 k = w_.variable(tile.k);
      w_.repeat([&] { return k < tile.k_end; },
                [&] {
                  wait_at(f_.full, ring);
                  const U32 stage = ring.stage * w_.constant(o_.stage_bytes() / 16);
                  const U32 a = a_first + stage, b = b_first + stage;
                  for (uint32_t first = 0; first < o_.group_columns(); first += columns) {
                    w_.emit("wgmma.fence.sync.aligned;");
                    for (uint32_t i = 0; i < kStep / 16; ++i) {
                      multiply_piece(ptx::matrix(a + i * 2, high),
                                     ptx::matrix(b + (first * kRowBytes / 16 + i * 2), high), i == 0 ? never : always(),
                                     part);
                    }
                    w_.emit("wgmma.commit_group.sync.aligned;");
                    w_.emit("wgmma.wait_group.sync.aligned 0;");
                    if (first + columns == o_.group_columns())
                      arrive_at(f_.empty + (ring.stage << 3), if_true(elected));
                    for (uint32_t i = 0; i < columns / 2; ++i) {
                      const F32& sum = f_.sums[first / 2 + i];
                      w_.emit("add.f32 {}, {}, {};", sum.text, sum.text, part[i].text);
                    }
                  }
                  advance(ring, o_.stages());
                  w_.assign(k, k + o_.step());
                });
      store_tile(w_, o_, f_, tile, thread, lane);
    });
  }

  // 32 bytes of k.
  void multiply_piece(const U64& a, const U64& b, const Pred& add, const std::vector<F32>& sums) {
    if (integers()) {
      w_.emit("wgmma.mma_async.sync.aligned.m64n{}k32.s32.s8.s8 {{{}}}, {}, {}, {};", o_.group_columns(),
              ptx::list(f_.integer_sums), a.text, b.text, add.text);
      return;
    }
    if (o_.type == TUFF_F32) {
      w_.emit("wgmma.mma_async.sync.aligned.m64n{}k8.f32.tf32.tf32 {{{}}}, {}, {}, {}, 1, 1;", o_.group_columns(),
              ptx::list(f_.sums), a.text, b.text, add.text);
      return;
    }
    if (o_.float8()) {
      const auto name = [](int32_t type) { return type == TUFF_F8_E4M3 ? "e4m3" : "e5m2"; };
      w_.emit("wgmma.mma_async.sync.aligned.m64n{}k32.f32.{}.{} {{{}}}, {}, {}, {}, 1, 1;", sums.size() * 2,
              name(o_.type), name(o_.b_type), ptx::list(sums), a.text, b.text, add.text);
      return;
    }
    multiply_halves(w_, o_, f_, a, b, add, f_.sums);
  }

  const Pred& always() {
    if (always_.writer == nullptr) always_ = ptx::truth(w_, true);
    return always_;
  }

  const Wgmma o_;
  Writer w_;
  WgmmaFrame f_;
  Operand a_, b_;
  Pred always_;
  WgmmaWindows v_;
};

NativeKernel write_wgmma(const KernelRequest& request) {
  const Wgmma options = Wgmma::read(request);
  return {Kernel(options).write(), "gemm_wgmma", options.threads(), options.shared_bytes()};
}

constexpr LegalRange kInputs[] = {{TUFF_F32, TUFF_BF16}, {TUFF_I8, TUFF_I8}, {TUFF_F8_E4M3, TUFF_F8_E5M2}};
constexpr LegalRange kOutputs[] = {{TUFF_F32, TUFF_BF16}, {TUFF_I32, TUFF_I32}, {TUFF_F8_E4M3, TUFF_F8_E5M2}};
constexpr LegalRange kRows[] = {{64, 64}, {128, 128}};
constexpr LegalRange kColumns[] = {{64, 64}, {128, 128}, {256, 256}};
constexpr LegalRange kWindows[] = {{0, 3}};
constexpr LegalRange kAxes[] = {{TUFF_BIAS_NONE, TUFF_BIAS_COLUMNS}};
constexpr DefineInfo kDefines[] = {{"ACTIVATION", kActivations},
                                   {"BIAS_AXIS", kAxes},
                                   {"RESIDUAL", kFlag},
                                   {"BETA", kFlag},
                                   {"COLUMNS", kColumns},
                                   {"C_TYPE", kOutputs},
                                   {"EDGE", kFlag},
                                   {"GROUPS", kFlag},
                                   {"TRANS_A", kFlag},
                                   {"TRANS_B", kFlag},
                                   {"PADDED", kFlag},
                                   {"ROWS", kRows},
                                   {"VALID", kFlag},
                                   {"WINDOWS", kWindows},
                                   {"TYPE", kInputs},
                                   {"VECTOR", kFlag},
                                   {"B_TYPE", kInputs},
                                   {"SCALED", kFlag},
                                   {"PROMOTED", kFlag}};

}  // namespace

uint32_t Wgmma::stage_bytes() const { return planes() * (rows + columns) * kRowBytes; }

uint32_t Wgmma::stages() const { return (ptx::kSharedBytes - ptx::kSharedAlignment - kBarriersBytes) / stage_bytes(); }

uint32_t Wgmma::shared_bytes() const { return stages() * stage_bytes() + ptx::kSharedAlignment + kBarriersBytes; }

bool Wgmma::legal() const {
  const bool integers = type == TUFF_I8, half = element_bytes() == 2, reads = beta || has_operands();
  if (rows == 64 && columns < 128) return false;
  if (windows == 3 && (trans_b || !padded || bias_axis != 0)) return false;
  if (has_filter() && (!padded || groups)) return false;
  if (groups && windows != 1) return false;
  if (integers != (c_type == TUFF_I32)) return false;
  if (integers && (reads || activation != 0 || scaled)) return false;
  if (promoted && !float8()) return false;
  if (kFloat8Types.has(c_type) && (reads || !vector || windows != 0)) return false;
  if (float8() ? !kFloat8Types.has(b_type) : b_type != type) return false;
  if (!half && (trans_a || !trans_b || windows != 0)) return false;
  return ptx::activates(activation, c_type);
}

KernelRequest Wgmma::request() const {
  KernelRequest made(wgmma_source);
  made.define("ACTIVATION", activation).define("BIAS_AXIS", bias_axis).define("RESIDUAL", residual);
  made.define("BETA", beta).define("COLUMNS", columns).define("C_TYPE", c_type).define("EDGE", edge);
  made.define("TRANS_A", trans_a).define("TRANS_B", trans_b).define("TYPE", type).define("VECTOR", vector);
  made.define("ROWS", rows).define("WINDOWS", windows).define("VALID", valid).define("PADDED", padded);
  made.define("B_TYPE", float8() ? b_type : type).define("SCALED", scaled).define("PROMOTED", promoted);
  made.define("GROUPS", groups);
  return made;
}

Wgmma Wgmma::read(const KernelRequest& request) {
  Wgmma options;
  options.type = static_cast<int32_t>(request.value_of("TYPE"));
  options.c_type = static_cast<int32_t>(request.value_of("C_TYPE"));
  options.trans_a = request.value_of("TRANS_A") != 0;
  options.trans_b = request.value_of("TRANS_B") != 0;
  options.columns = static_cast<uint32_t>(request.value_of("COLUMNS"));
  options.rows = static_cast<uint32_t>(request.value_of("ROWS"));
  options.edge = request.value_of("EDGE") != 0;
  options.beta = request.value_of("BETA") != 0;
  options.windows = static_cast<uint32_t>(request.value_of("WINDOWS"));
  options.valid = request.value_of("VALID") != 0;
  options.padded = request.value_of("PADDED") != 0;
  options.vector = request.value_of("VECTOR") != 0;
  options.activation = static_cast<int32_t>(request.value_of("ACTIVATION"));
  options.bias_axis = static_cast<int32_t>(request.value_of("BIAS_AXIS"));
  options.residual = request.value_of("RESIDUAL") != 0;
  options.b_type = static_cast<int32_t>(request.value_of("B_TYPE"));
  options.scaled = request.value_of("SCALED") != 0;
  options.promoted = request.value_of("PROMOTED") != 0;
  options.groups = request.value_of("GROUPS") != 0;
  if (!options.legal()) fail(TUFF_ERROR_INTERNAL, "gemm_wgmma: options that do not go together");
  return options;
}

const KernelSource wgmma_source = {"gemm_wgmma", nullptr, kDefines, write_wgmma};

}  // namespace tuff::gemm
