// C = activation(alpha * op(A) * op(B) + beta * C + bias + residual) of f32, by the tensor cores' products of bf16.
// Each number is split into three of 8 bits, which are exactly it:
//
//   x = h + m / 2^8 + l / 2^16      h = bf16(x),  m = bf16((x - h) 2^8),  l = ((x - h) 2^8 - m) 2^8
//
// m and l are scaled so that they are as large as x: small numbers would otherwise lose bits below bf16's smallest. The
// product of two numbers has nine parts; three are below 2^-24, 2^-24 and 2^-32 of it and left out. The others are
//
//   2^-16 (l h + h l + m m)  +  2^-8 (m h + h m)  +  h h
//
// so products have an error of at most 2^-23, usually a sixteenth of that: less than a chain of multiply-adds in f32
// loses by rounding its sums. The tensor cores do not round sums, they cut bits off. So each line above is added up by
// them over only 64 of k, starting with 0, and those sums are then added in f32.
//
// A tile has 128 rows and columns. A stage holds 64 of k of A and B as three planes each, in the layout of
// gemm_wgmma.cpp: 96 KiB, of which two fit.
//
//   groups 0, 1   load f32 into registers, split, write to the stage      stage 0 | stage 1 | stage 0 | ...
//   groups 2, 3   multiply the upper and lower 64 rows                            | stage 0 | stage 1 | ...
//
// Any leading dimension, transpose and alignment is read in place; four numbers at a time where memory allows it.
//
// Infinities, NaN, numbers that bf16 rounds to infinity and sums beyond f32 make all sums of their rows or columns
// infinite or NaN, with parts that f32 would not have (infinity - infinity). Warps with such a sum compute their sums
// again, one multiply-add of f32 after the other.
#include "kernels/gemm/native/gemm_split.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/gemm/native/wgmma_frame.hpp"
#include "kernels/gemm/native/wgmma_store.hpp"
#include "kernels/gemm/native/wgmma_windows.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/legal_values.hpp"
#include "kernels/native/planes.hpp"
#include "kernels/native/ptx.hpp"
#include "planning/status.hpp"

namespace tuff::gemm {
namespace {

using ptx::arrive_at;
using ptx::F32;
using ptx::if_true;
using ptx::kActivations;
using ptx::kFlag;
using ptx::kPlanes;
using ptx::kQuad;
using ptx::kRowBytes;
using ptx::multiply_add;
using ptx::multiply_wide;
using ptx::Pred;
using ptx::Ring;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

constexpr uint32_t kStep = Wgmma::kStep;
constexpr uint32_t kRows = Wgmma::kSplitters * kQuad / kStep;  // of 64 numbers, that all threads load at once
// Quads of a thread in a block of 64 rows: of each kRows-th row. It splits a block, then loads another one.
constexpr uint32_t kUnitLoads = 64 / kRows;
// Registers of a thread, for both groups that load and both that multiply, without and with windows: as ptxas needs
// them.
constexpr uint32_t kSplitterRegisters[] = {88, 80}, kMultiplierRegisters[] = {168, 176};

class Kernel {
 public:
  explicit Kernel(const Split& options) : o_(options), w_("sm_90a", "gemm_split") {}

  std::string write() {
    f_.declare(w_, o_);
    f_.read_parameters(w_, o_);
    if (o_.windows != 0) {
      v_.read(w_, o_);
      f_.per_image = v_.per_image;
    }
    const U32 thread = w_.special("%tid.x");
    f_.make_barriers(w_, o_, thread);
    const size_t windows = o_.windows != 0 ? 1 : 0;
    ptx::divide_work(
        thread, kSplitterRegisters[windows], kMultiplierRegisters[windows], [&] { load(thread); },
        [&] { multiply(thread - Wgmma::kSplitters); }, Wgmma::kSplitters);
    return w_.text(o_.threads());
  }

 private:
  // Those that are needed, in the same order for all groups.
  template <typename Body>
  void each_tile(const Body& body) {
    f_.tiles.each([&](const Tile& tile) {
      if (o_.c_part == GemmPart::all) return body(tile);
      const bool lower = o_.c_part == GemmPart::lower;
      w_.when(lower ? tile.column < tile.row + o_.rows : tile.row < tile.column + o_.columns, [&] { body(tile); });
    });
  }

  // --- the groups that load ---------------------------------------------------------------------------------------

  // An operand's rows as they are in memory, of m or n along k, of k across, from the thread's quad on.
  struct Source {
    const TiledOperand& x;
    U32 first;  // row or column of the tile
    U64 at;     // of the step: a variable
    U64 step;   // bytes
    U32 row_bytes;
    bool quads;
    // With windows: where the first one of all images begins, the thread's rows of each block, and where its quad is.
    U64 images;
    std::vector<WgmmaWindows::Row> rows;
    WgmmaWindows::Walk walk;
  };
  // What a thread loads: a quad of every kRows-th row.
  struct Place {
    U32 row, quad;
  };

  Source source_of(const TiledOperand& x, const U32& first, const Tile& tile, const U32& quad, bool quads) {
    Source made{x, first, {}, {}, x.ld << 2, quads, {}, {}, {}};
    const U64 matrix = x.base + widen(tile.matrix) * x.stride;
    if (x.along_k) {
      made.at = w_.variable(multiply_add(tile.k + (quad << 2), 4, matrix));
      made.step = U64{&w_, std::to_string(kStep * 4), true, kStep * 4};
    } else {
      made.at = w_.variable(multiply_add(tile.k, made.row_bytes, multiply_add(first + (quad << 2), 4, matrix)));
      made.step = multiply_wide(made.row_bytes, w_.constant(kStep));
    }
    return made;
  }

  Source windows_of(const TiledOperand& x, const U32& first, const Tile& tile, const Place& own) {
    Source made{x, first, {}, {}, {}, true, {}, {}, {}};
    const U32 image = v_.pieces_of_image(x);
    for (uint32_t i = 0; i < x.tile / kRows; ++i) {
      U32 at = first + own.row + i * kRows;
      if (o_.edge) at = min(at, x.extent - 1);
      made.rows.push_back(v_.row_of(x, image, at, true));
    }
    made.images = w_.variable(v_.before_image(x.base));
    made.walk = v_.start_at(tile.k + (own.quad << 2), true);
    return made;
  }

  // The same of rows that are windows: what is outside the image is 0. All blocks of a step are loaded in order, and
  // the last one moves on to the next step.
  void load_windows(const Source& from, uint32_t block, const U32& k, const U32& k_end, const Place& own,
                    const std::vector<F32>& to) {
    const U64 at = multiply_add(v_.place_of(from.walk, 2), 16, from.images);
    for (uint32_t i = 0; i < kUnitLoads; ++i) {
      const WgmmaWindows::Row& row = from.rows[block * kUnitLoads + i];
      Pred exists = (row.taps & from.walk.bit) != 0u;
      if (o_.edge) exists = exists && k + (own.quad << 2) < k_end;
      ptx::load_quad(multiply_add(row.offset, 16, at), 0, &to[i * kQuad], &exists);
    }
    if ((block + 1) * 64 == from.x.tile) v_.move_on(from.walk, true);
  }

  // Loads the thread's quads of a block of 64 rows, in the step at k, which `at` points to. What is beyond the matrix
  // is 0; rows of m or n beyond the last are the last one, whose sums are not stored.
  void load_block_of(const Source& from, uint32_t block, const U64& at, const U32& k, const U32& k_end,
                     const Place& own, const std::vector<F32>& to) {
    for (uint32_t i = 0; i < kUnitLoads; ++i) {
      const U32 row = own.row + i * kRows;
      U64 place;
      U32 in_row, end;  // of the quad's first number, and of the row
      Pred exists;      // the row
      if (from.x.along_k) {
        U32 index = from.first + block * 64 + row;
        if (o_.edge) index = min(index, from.x.extent - 1);
        place = multiply_add(index, from.row_bytes, at);
        in_row = k + (own.quad << 2);
        end = k_end;
      } else {
        place = multiply_add(row, from.row_bytes, at) + uint64_t{block * 64 * 4};
        if (o_.edge) exists = k + row < k_end;
        in_row = from.first + block * 64 + (own.quad << 2);
        end = from.x.extent;
      }
      load_quad(from.quads, place, &to[i * kQuad], in_row, end, exists);
    }
  }

  void load_quad(bool at_once, const U64& at, const F32* to, const U32& in_row, const U32& end, const Pred& exists) {
    const auto guard = [&](uint32_t i) {
      if (!o_.edge) return ptx::Guard{};
      const Pred inside = in_row + i < end;
      return if_true(exists.writer != nullptr ? exists && inside : inside);
    };
    if (at_once && !o_.edge) return ptx::load_quad(at, 0, to, nullptr);
    if (at_once) {
      const Pred first = in_row < end, all = exists.writer != nullptr ? exists && first : first;
      return ptx::load_quad(at, 0, to, &all);
    }
    if (o_.edge) set_to_0(to);
    for (uint32_t i = 0; i < kQuad; ++i) w_.emit(guard(i), "ld.global.nc.f32 {}, [{}+{}];", to[i].text, at.text, i * 4);
  }

  void set_to_0(const F32* quad) {
    for (uint32_t i = 0; i < kQuad; ++i) w_.emit("mov.f32 {}, 0f00000000;", quad[i].text);
  }

  // Splits the thread's quads of a block, and writes them to the planes.
  void split_block(const TiledOperand& x, uint32_t block, const U32& stage, const std::vector<F32>& from) {
    const F32 scale = ptx::number(w_, 256);
    for (uint32_t i = 0; i < kUnitLoads; ++i) {
      const uint32_t to = x.place + block * kWgmmaBlockBytes + i * kRows * kRowBytes;
      ptx::store_planes(stage, to, x.tile * kRowBytes, &from[i * kQuad], &scale);
    }
  }

  void load(const U32& thread) {
    const Place own{thread >> 4, thread & 15};
    const U32 place = ptx::piece_at(f_.memory, own.row, own.quad >> 1) + ((own.quad & 1) << 3);
    const Pred elected = (thread & (ptx::kWarp - 1)) == 0u;
    const Ring ring = ptx::make_ring(w_, 1);
    const uint32_t a_blocks = o_.rows / 64, blocks = a_blocks + o_.columns / 64;
    // Blocks that are in flight: those of half a step if windows take registers.
    const uint32_t flying = o_.windows != 0 ? blocks / 2 : blocks;
    std::vector<std::vector<F32>> sets(flying);
    for (std::vector<F32>& set : sets) {
      for (uint32_t i = 0; i < kQuad * kUnitLoads; ++i) set.push_back(w_.make<Type::f32>());
    }
    each_tile([&](const Tile& tile) {
      const Source a = o_.windows == 1 ? windows_of(f_.a, tile.row, tile, own)
                                       : source_of(f_.a, tile.row, tile, own.quad, o_.quads_a);
      const Source b = o_.windows == 2 ? windows_of(f_.b, tile.column, tile, own)
                                       : source_of(f_.b, tile.column, tile, own.quad, o_.quads_b);
      const U32 k = w_.variable(tile.k);
      const auto load_block = [&](uint32_t block, const U32& begin) {
        const Source& from = block < a_blocks ? a : b;
        const uint32_t own_block = block < a_blocks ? block : block - a_blocks;
        const std::vector<F32>& to = sets[block % flying];
        if (!from.rows.empty()) return load_windows(from, own_block, begin, tile.k_end, own, to);
        load_block_of(from, own_block, from.at, begin, tile.k_end, own, to);
        if ((own_block + 1) * 64 == from.x.tile) w_.assign(from.at, from.at + from.step);
      };
      for (uint32_t block = 0; block < flying; ++block) load_block(block, k);
      w_.repeat([&] { return k < tile.k_end; },
                [&] {
                  const U32 stage = place + ring.stage * w_.constant(o_.stage_bytes());
                  const U32 next = k + kStep;
                  wait_at(f_.empty, ring);
                  for (uint32_t block = 0; block < blocks; ++block) {
                    const bool of_a = block < a_blocks;
                    split_block(of_a ? f_.a : f_.b, of_a ? block : block - a_blocks, stage, sets[block % flying]);
                    const uint32_t later = block + flying;
                    if (later < blocks) {
                      load_block(later, k);
                    } else {
                      w_.when(next < tile.k_end, [&] { load_block(later - blocks, next); });
                    }
                  }
                  ptx::arrive_with_writes(f_.full, ring.stage, elected);
                  advance(ring, o_.stages());
                  w_.assign(k, next);
                });
    });
  }

  // --- the groups that multiply -----------------------------------------------------------------------------------

  // The planes that are multiplied, and what the sum of their products is multiplied with.
  struct Terms {
    float scale;
    std::vector<std::array<uint32_t, 2>> planes;
  };

  void multiply(const U32& thread) {
    const Terms all[] = {{0x1p-16f, {{2, 0}, {0, 2}, {1, 1}}}, {0x1p-8f, {{1, 0}, {0, 1}}}, {1, {{0, 0}}}};
    const U32 a_first = f_.descriptor(f_.a, (thread >> 7) * kWgmmaBlockBytes);
    const U32 b_first = f_.descriptor(f_.b, w_.constant(0));
    const U32 lane = thread & (ptx::kWarp - 1), high = w_.variable(w_.constant(ptx::kMatrixHigh));
    const Pred elected = lane == 0u, never = ptx::truth(w_, false), always = ptx::truth(w_, true);
    std::vector<F32> part;
    for (uint32_t i = 0; i < o_.group_columns() / 2; ++i) {
      f_.sums.push_back(w_.make<Type::f32>());
      part.push_back(w_.make<Type::f32>());
    }
    if (o_.scaled) {
      f_.scales = ptx::read_scales(f_.scale_pointers, w_.parameter_float("push", offsetof(Wgmma::Push, alpha)));
    }
    const Ring ring = ptx::make_ring(w_, 0);
    each_tile([&](const Tile& tile) {
      for (const F32& sum : f_.sums) w_.emit("mov.f32 {}, 0f00000000;", sum.text);
      const U32 k = w_.variable(tile.k);
      w_.repeat([&] { return k < tile.k_end; },
                [&] {
                  wait_at(f_.full, ring);
                  const U32 stage = ring.stage * w_.constant(o_.stage_bytes() / 16);
                  for (const Terms& terms : all) {
                    w_.emit("wgmma.fence.sync.aligned;");
                    bool first = true;
                    for (const auto& [of_a, of_b] : terms.planes) {
                      for (uint32_t i = 0; i < kStep / 16; ++i) {
                        multiply_halves(w_, o_, f_, place(f_.a, a_first + stage, of_a, i, high),
                                        place(f_.b, b_first + stage, of_b, i, high), first ? never : always, part);
                        first = false;
                      }
                    }
                    w_.emit("wgmma.commit_group.sync.aligned;");
                    w_.emit("wgmma.wait_group.sync.aligned 0;");
                    if (&terms == std::end(all) - 1) arrive_at(f_.empty + (ring.stage << 3), if_true(elected));
                    for (size_t i = 0; i < part.size(); ++i) {
                      w_.assign(f_.sums[i], multiply_add(part[i], ptx::number(w_, terms.scale), f_.sums[i]));
                    }
                  }
                  advance(ring, o_.stages());
                  w_.assign(k, k + kStep);
                });
      w_.when(any_is_not_finite(), [&] { multiply_plainly(tile, thread, lane); });
      store_tile(w_, o_, f_, tile, thread, lane);
    });
  }

  // Where 16 of k of a plane are.
  U64 place(const TiledOperand& x, const U32& stage, uint32_t plane, uint32_t i, const U32& high) const {
    const uint32_t step = x.along_k ? 32 : 16 * kRowBytes;
    return ptx::matrix(stage + (plane * x.tile * kRowBytes + i * step) / 16, high);
  }

  // Whether a sum of the warp is infinite or NaN.
  Pred any_is_not_finite() {
    const F32 nothing = w_.variable(ptx::number(w_, 0));
    for (const F32& sum : f_.sums) w_.assign(nothing, multiply_add(sum, ptx::number(w_, 0), nothing));
    const Pred any = w_.make<Type::pred>();
    w_.emit("setp.nan.f32 {}, {}, {};", any.text, nothing.text, nothing.text);
    w_.emit("vote.sync.any.pred {}, {}, 0xffffffff;", any.text, any.text);
    return any;
  }

  // The sums of the numbers as they are in memory, one multiply-add after the other.
  void multiply_plainly(const Tile& tile, const U32& thread, const U32& lane) {
    for (const F32& sum : f_.sums) w_.emit("mov.f32 {}, 0f00000000;", sum.text);
    const U32 row = tile.row + ((thread >> 5) << 4) + (lane >> 2), column = tile.column + ((lane & 3) << 1);
    const U64 a = begin_of(f_.a, tile), b = begin_of(f_.b, tile);
    const U32 k = w_.variable(tile.k);
    w_.repeat([&] { return k < tile.k_end; },
              [&] {
                const auto of_a = [&](const U32& at) { return number_of(f_.a, a, at, k, o_.windows == 1); };
                const std::array<F32, 2> x{of_a(row), of_a(row + 8)};
                for (uint32_t i = 0; i < o_.group_columns() / 4; ++i) {
                  const F32 y = number_of(f_.b, b, column + ((i >> 1) * 8 + (i & 1)), k, o_.windows == 2);
                  for (uint32_t half = 0; half < 2; ++half) {
                    const F32& sum = f_.sums[(i >> 1) * 4 + half * 2 + (i & 1)];
                    w_.assign(sum, multiply_add(x[half], y, sum));
                  }
                }
                w_.assign(a, f_.a.along_k ? a + uint64_t{4} : a + widen(f_.a.ld << 2));
                w_.assign(b, f_.b.along_k ? b + uint64_t{4} : b + widen(f_.b.ld << 2));
                w_.assign(k, k + 1);
              });
  }

  // A variable: where the first of k is, of row or column 0.
  U64 begin_of(const TiledOperand& x, const Tile& tile) {
    const U64 matrix = x.base + widen(tile.matrix) * x.stride;
    return w_.variable(x.along_k ? multiply_add(tile.k, 4, matrix) : multiply_add(tile.k, x.ld << 2, matrix));
  }

  // Of a row or column; the last one instead of those beyond.
  F32 number_of(const TiledOperand& x, const U64& at, const U32& index, const U32& k, bool windows) {
    const U32 own = o_.edge ? min(index, x.extent - 1) : index;
    if (windows) return number_of_window(x, own, k);
    const U64 place = x.along_k ? multiply_add(own, x.ld << 2, at) : multiply_add(own, 4, at);
    const F32 made = w_.make<Type::f32>();
    w_.emit("ld.global.nc.f32 {}, [{}];", made.text, place.text);
    return made;
  }

  // 0 outside the image.
  F32 number_of_window(const TiledOperand& x, const U32& index, const U32& k) {
    const WgmmaWindows::Row row = v_.row_of(x, v_.pieces_of_image(x), index, true);
    const WgmmaWindows::Walk walk = v_.start_at(k, true);
    const U64 quad = multiply_add(v_.place_of(walk, 2) + row.offset, 16, v_.before_image(x.base));
    const U64 at = multiply_add(walk.channel & 3, 4, quad);
    const F32 made = w_.variable(ptx::number(w_, 0));
    w_.emit(if_true((row.taps & walk.bit) != 0u), "ld.global.nc.f32 {}, [{}];", made.text, at.text);
    return made;
  }

  const Split o_;
  Writer w_;
  WgmmaFrame f_;
  WgmmaWindows v_;
};

NativeKernel write_split(const KernelRequest& request) {
  const Split options = Split::read(request);
  return {Kernel(options).write(), "gemm_split", options.threads(), options.shared_bytes()};
}

constexpr LegalRange kOutputs[] = {{TUFF_F32, TUFF_BF16}};
constexpr LegalRange kAxes[] = {{TUFF_BIAS_NONE, TUFF_BIAS_COLUMNS}};
constexpr LegalRange kParts[] = {{0, 2}}, kWindows[] = {{0, 2}};
constexpr DefineInfo kDefines[] = {{"ACTIVATION", kActivations},
                                   {"BETA", kFlag},
                                   {"BIAS_AXIS", kAxes},
                                   {"C_TYPE", kOutputs},
                                   {"EDGE", kFlag},
                                   {"PART", kParts},
                                   {"QUADS_A", kFlag},
                                   {"QUADS_B", kFlag},
                                   {"RESIDUAL", kFlag},
                                   {"SCALED", kFlag},
                                   {"TRANS_A", kFlag},
                                   {"TRANS_B", kFlag},
                                   {"VECTOR", kFlag},
                                   {"WINDOWS", kWindows}};

}  // namespace

bool Split::legal() const {
  const bool quads = windows == 1 ? quads_a : quads_b;
  if (windows != 0 && (trans_a || !trans_b || c_part != GemmPart::all || !quads || !padded)) return false;
  return ptx::activates(activation, c_type);
}

KernelRequest Split::request() const {
  KernelRequest made(split_source);
  made.define("ACTIVATION", activation).define("BETA", beta).define("BIAS_AXIS", bias_axis).define("C_TYPE", c_type);
  made.define("EDGE", edge).define("PART", static_cast<int64_t>(c_part)).define("QUADS_A", quads_a);
  made.define("QUADS_B", quads_b).define("RESIDUAL", residual).define("SCALED", scaled).define("TRANS_A", trans_a);
  made.define("TRANS_B", trans_b).define("VECTOR", vector).define("WINDOWS", windows);
  return made;
}

Split Split::read(const KernelRequest& request) {
  const auto flag = [&](const char* name) { return request.value_of(name) != 0; };
  Split options;
  options.activation = static_cast<int32_t>(request.value_of("ACTIVATION"));
  options.beta = flag("BETA");
  options.bias_axis = static_cast<int32_t>(request.value_of("BIAS_AXIS"));
  options.c_type = static_cast<int32_t>(request.value_of("C_TYPE"));
  options.edge = flag("EDGE");
  options.c_part = static_cast<GemmPart>(request.value_of("PART"));
  options.quads_a = flag("QUADS_A"), options.quads_b = flag("QUADS_B");
  options.residual = flag("RESIDUAL"), options.scaled = flag("SCALED");
  options.trans_a = flag("TRANS_A"), options.trans_b = flag("TRANS_B");
  options.vector = flag("VECTOR");
  options.windows = static_cast<uint32_t>(request.value_of("WINDOWS"));
  options.padded = options.windows != 0;
  if (!options.legal()) fail(TUFF_ERROR_INTERNAL, "gemm_split: options that do not go together");
  return options;
}

const KernelSource split_source = {"gemm_split", nullptr, kDefines, write_split};

}  // namespace tuff::gemm
