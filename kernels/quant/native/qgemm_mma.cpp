// C = activation(alpha * A * W^T + bias + residual) for a few rows of A and weights W of 4 or 8 bits: bound by reading
// W once. A block computes 16 or 32 rows of W by all rows of A.
//
//                 k
//        +---+---+---+-- --+---+---+--       Each of a block's eight warps takes every eighth step of k, and keeps the
//  rows  | 0 | 1 | 2 | ... | 7 | 0 | ...     weights of its next ones on their way in registers. In a step, thread t of
//  of W  +---+---+---+-- --+---+---+--       four has 16 bytes of a row: 32 integers of 4 bits or 16 of 8, which have
//                                            one scale. In the end the warps' sums are added up in shared memory.
//
// The rows of W are the 16 rows of mma.sync (m16n8k16), those of A its 8 columns. Thread t multiplies four of its
// integers at a time, as if they were numbers 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of mma.sync's 16 along k: a sum may be
// in any order if both operands have the same.
//
// An integer becomes a number of 16 bits without a conversion: its bits become the last of a power of two whose unit is
// 1 there, 1024 of f16 or 128 of bf16, from which the power is taken off again. For 4 bits, bits 4 to 7 of f16 have the
// unit 16, and a fused multiplication and addition takes off both. A register's two halves are numbers i and i + 4 of a
// word of 4 bits, so elements of A are paired likewise.
//
// Scales of blocks multiply the weights, which rounds them to A's type; others multiply sums.
#include "kernels/quant/native/qgemm_mma.hpp"

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

namespace tuff::quant {
namespace {

using ptx::F32;
using ptx::if_true;
using ptx::kActivations;
using ptx::kFlag;
using ptx::kFloats;
using ptx::kHalves;
using ptx::kWarp;
using ptx::multiply_add;
using ptx::multiply_wide;
using ptx::Pred;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

constexpr uint32_t kHalfBytes = 2;
constexpr uint32_t kStages = 2;  // steps whose weights are in registers or on their way

class Kernel {
 public:
  explicit Kernel(const Mma& options) : o_(options), w_("sm_90a", "qgemm_mma") {}

  std::string write() {
    weights_ = w_.pointer("weights");
    scales_ = w_.pointer("scales");
    a_ = w_.pointer("a");
    c_ = w_.pointer("c");
    bias_ = w_.pointer("bias");
    residual_ = w_.pointer("residual");
    if (o_.zeros) zeros_ = w_.pointer("zeros");
    w_.block("push", sizeof(Mma::Push));
    locate();
    for (uint32_t i = 0; i < o_.tiles * eights() * 4; ++i) sums_.push_back(w_.variable(number(w_, 0)));
    each_step();
    keep_sums();
    finish();
    return w_.text(Mma::kThreads, o_.blocks());
  }

 private:
  // The weights of a thread in a step: of each of its rows 16 bytes, their scale twice, and the byte with their zero
  // point.
  struct Stage {
    std::vector<std::array<U32, 4>> words;
    std::vector<U32> scale, zero;
  };

  U32 parameter(size_t offset) { return w_.parameter("push", offset); }
  const F32* sums(uint32_t tile, uint32_t eight) const { return &sums_[(tile * eights() + eight) * 4]; }
  uint32_t eights() const { return o_.columns / 8; }
  uint32_t thread_rows() const { return 2 * o_.tiles; }
  bool block_scales() const { return o_.scales == 2; }
  uint32_t size(int32_t dtype) const { return static_cast<uint32_t>(dtype_size(dtype)); }

  void locate() {
    thread_ = w_.special("%tid.x");
    const U32 lane = thread_ & (kWarp - 1), warp = thread_ >> 5;
    in_four_ = lane & 3;
    row_ = lane >> 2;
    warp_ = warp;
    first_ = w_.variable(w_.special("%ctaid.x") * o_.rows());
    n_ = parameter(offsetof(Mma::Push, n));
    m_ = parameter(offsetof(Mma::Push, m));
    k_ = parameter(offsetof(Mma::Push, k));
    // For the thread's first step.
    at_k_ = w_.variable(warp * o_.step() + in_four_ * o_.piece());
    const U32 last = n_ - w_.constant(1);
    for (uint32_t i = 0; i < thread_rows(); ++i) {
      const U32 row = ptx::min(first_ + row_ + i * 8, last);  // rows beyond the last are not stored
      rows_.push_back(w_.variable(weights_ + multiply_wide(row, k_ / (8 / o_.bits))));
      if (block_scales()) {
        const U32 row_scales = parameter(offsetof(Mma::Push, row_scales));
        scale_rows_.push_back(w_.variable(scales_ + multiply_wide(row, row_scales * size(o_.type))));
        if (o_.zeros) zero_rows_.push_back(w_.variable(multiply_wide(row, row_scales)));
      } else if (o_.zeros) {
        const U32 number = o_.scales == 0 ? w_.constant(0) : row;
        const U32 byte = w_.make<Type::u32>();
        load_zero(byte, widen(number), {});
        zero_rows_.push_back(widen(number));
        own_zeros_.push_back(w_.variable(taken_off(byte, widen(number))));
      }
    }
    const U32 lda = parameter(offsetof(Mma::Push, lda)), last_of_a = m_ - w_.constant(1);
    for (uint32_t i = 0; i < eights(); ++i) {
      const U32 row = ptx::min(row_ + i * 8, last_of_a);
      a_rows_.push_back(w_.variable(a_ + multiply_wide(row, lda * size(o_.type))));
    }
  }

  Stage make_stage() {
    Stage stage;
    for (uint32_t i = 0; i < thread_rows(); ++i) {
      std::array<U32, 4> words;
      for (U32& word : words) word = w_.make<Type::u32>();
      stage.words.push_back(words);
      stage.scale.push_back(w_.make<Type::u32>());
      if (o_.zeros && block_scales()) stage.zero.push_back(w_.make<Type::u32>());
    }
    return stage;
  }

  // Loads the byte with zero point `number`.
  void load_zero(const U32& byte, const U64& number, const ptx::Guard& guard) {
    U64 at = number;
    if (o_.bits == 4) {
      at = w_.make<Type::u64>();
      w_.emit("shr.u64 {}, {}, 1;", at.text, number.text);
    }
    w_.emit(guard, "ld.global.nc.u8 {}, [{}];", byte.text, (zeros_ + at).text);
  }
  // What is taken off an integer's stored bits, twice. Signed numbers have their highest bit inverted.
  U32 taken_off(const U32& byte, const U64& number) {
    U32 zero = byte;
    if (o_.bits == 4) {
      const U32 place = w_.result<Type::u32>("cvt.u32.u64", number);
      zero = w_.result<Type::u32>("shr.u32", byte, (place & 1) << 2) & 15u;
    }
    if (o_.negative) zero = zero ^ (o_.bits == 4 ? 8u : 128u);
    return zero | (zero << 16);
  }
  U64 number_of_zero(uint32_t row, const U32& k) {
    const U32 block = w_.result<Type::u32>("shr.u32", k, parameter(offsetof(Mma::Push, block_shift)));
    return zero_rows_[row] + widen(block);
  }

  // Starts loading the weights at k, if there is that much of it.
  void load(const Stage& stage, const U32& k) {
    const Pred exists = k < k_;
    const U64 offset = widen(k / (8 / o_.bits));
    for (uint32_t i = 0; i < thread_rows(); ++i) {
      const std::array<U32, 4>& x = stage.words[i];
      w_.emit(if_true(exists), "ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {{{}, {}, {}, {}}}, [{}];", x[0].text,
              x[1].text, x[2].text, x[3].text, (rows_[i] + offset).text);
    }
    if (!block_scales()) return;
    const U32 block = w_.make<Type::u32>();
    w_.emit("shr.u32 {}, {}, {};", block.text, k.text, parameter(offsetof(Mma::Push, block_shift)).text);
    for (uint32_t i = 0; i < thread_rows(); ++i) {
      const ptx::B16 scale = w_.make<Type::b16>();
      w_.emit("mov.b16 {}, 0;", scale.text);
      w_.emit(if_true(exists), "ld.global.nc.b16 {}, [{}];", scale.text,
              multiply_add(block, kHalfBytes, scale_rows_[i]).text);
      w_.emit("mov.b32 {}, {{{}, {}}};", stage.scale[i].text, scale.text, scale.text);
      if (o_.zeros) load_zero(stage.zero[i], number_of_zero(i, k), if_true(exists));
    }
  }

  void each_step() {
    const uint32_t round = Mma::kWarps * o_.step();
    std::vector<Stage> stages;
    for (uint32_t i = 0; i < kStages; ++i) {
      stages.push_back(make_stage());
      for (const auto& words : stages.back().words) {
        for (const U32& word : words) w_.assign(word, w_.constant(0));
      }
      for (const U32& zero : stages.back().zero) w_.assign(zero, w_.constant(0));
      load(stages.back(), at_k_ + i * round);
    }
    const U32 begin = w_.variable(warp_ * o_.step());  // of the warp's step: the same for all its threads
    const ptx::Label end = w_.label(), again = w_.label();
    w_.place(again);
    for (uint32_t i = 0; i < kStages; ++i) {
      w_.jump_unless(begin < k_, end);
      multiply(stages[i]);
      load(stages[i], at_k_ + kStages * round);
      w_.assign(at_k_, at_k_ + round);
      w_.assign(begin, begin + round);
    }
    w_.jump(again);
    w_.place(end);
  }

  // --- multiplying --------------------------------------------------------------------------------------------------

  U32 pair(const char* operation, const U32& x, const U32& y) { return ptx::on_halves(operation, o_.type, x, y); }
  // Each half of a constant pair.
  U32 twice(uint32_t bits) { return w_.constant(bits << 16 | bits); }
  U32 register_of(const U32& constant) { return w_.variable(constant); }

  // The integers of a word, in the order of fragments: of 4 bits, pairs (0, 4), (1, 5), (2, 6), (3, 7).
  std::vector<U32> integers_of(const U32& x, const U32& zero) {
    std::vector<U32> pairs;
    // Without zero points `bits`, with them that of 0 and the zero point.
    const auto less_zero = [&](uint32_t bits, uint32_t of_zero, const U32& zeros) {
      return o_.zeros ? zeros + of_zero * 0x10001 : register_of(twice(bits));
    };
    if (o_.bits == 8) {
      const U32 y = o_.negative ? x ^ 0x80808080u : x, power = register_of(twice(0x6400)),
                taken = less_zero(o_.negative ? 0x6480 : 0x6400, 0x6400, zero);
      for (const char* const order : {"0x5150", "0x5352"}) {
        pairs.push_back(pair("sub.rn", ptx::permuted(y, power, order), taken));
      }
      return pairs;
    }
    // For signed numbers the highest bit changes as well.
    constexpr uint32_t kMask = 0x000f000f, kNextMask = 0x00f000f0;
    const uint32_t least = o_.negative ? 8 : 0;
    if (o_.type == TUFF_BF16) {
      const U32 taken = less_zero(0x4300 | least, 0x4300, zero);
      for (uint32_t shift = 0; shift < 16; shift += 4) {
        pairs.push_back(
            pair("sub.rn", ptx::inserted(shift == 0 ? x : x >> shift, kMask, (0x4300u | least) * 0x10001u), taken));
      }
      return pairs;
    }
    // 1024 (and 8); 1 / 16; -(64 (and 8)).
    const U32 taken = less_zero(0x6400 | least, 0x6400, zero), factor = register_of(twice(0x2c00)),
              less = less_zero(o_.negative ? 0xd480 : 0xd400, 0xd400, o_.zeros ? zero << 4 : zero);
    for (uint32_t shift = 0; shift < 16; shift += 8) {
      const U32 y = shift == 0 ? x : x >> shift;
      pairs.push_back(pair("sub.rn", ptx::inserted(y, kMask, (0x6400u | least) * 0x10001u), taken));
      const U32 made = w_.make<Type::u32>();
      w_.emit("fma.rn.f16x2 {}, {}, {}, {};", made.text,
              ptx::inserted(y, kNextMask, (0x6400u | least << 4) * 0x10001u).text, factor.text, less.text);
      pairs.push_back(made);
    }
    return pairs;
  }

  // Eight elements of a row of A at a multiple of eight from the thread's k on, in the order of the fragments.
  std::array<U32, 4> eight_of_a(const U64& at, uint32_t element) {
    std::array<U32, 4> x;
    for (U32& one : x) one = w_.make<Type::u32>();
    const auto load = [&](const ptx::Guard& guard) {
      w_.emit(guard, "ld.global.nc.v4.u32 {{{}, {}, {}, {}}}, [{}+{}];", x[0].text, x[1].text, x[2].text, x[3].text,
              at.text, element * kHalfBytes);
    };
    if (o_.whole) {
      load({});
    } else {
      for (const U32& one : x) w_.emit("mov.u32 {}, 0;", one.text);
      load(if_true(exists_));
    }
    if (o_.bits == 8) return x;
    std::array<U32, 4> sorted;
    for (uint32_t i = 0; i < 4; ++i) {
      sorted[i] = ptx::permuted(x[i / 2], x[i / 2 + 2], i % 2 == 0 ? "0x5410" : "0x7632");
    }
    return sorted;
  }

  void multiply(const Stage& stage) {
    if (!o_.whole) exists_ = at_k_ < k_;
    std::vector<U64> at;
    for (const U64& row : a_rows_) at.push_back(multiply_add(at_k_, kHalfBytes, row));
    const uint32_t in_word = 32 / o_.bits, words = 8 / in_word;  // words of eight integers
    std::vector<U32> zeros = own_zeros_;
    for (uint32_t i = 0; i < stage.zero.size(); ++i) {
      zeros.push_back(w_.variable(taken_off(stage.zero[i], number_of_zero(i, at_k_))));
    }
    zeros.resize(thread_rows());
    for (uint32_t element = 0; element < o_.piece(); element += 8) {
      std::vector<std::array<U32, 4>> a;
      for (const U64& row : at) a.push_back(eight_of_a(row, element));
      std::vector<std::vector<U32>> weights(thread_rows());  // of each row four pairs
      for (uint32_t i = 0; i < thread_rows(); ++i) {
        for (uint32_t j = 0; j < words; ++j) {
          for (const U32& one : integers_of(stage.words[i][element / in_word + j], zeros[i])) {
            weights[i].push_back(block_scales() ? pair("mul.rn", one, stage.scale[i]) : one);
          }
        }
      }
      for (uint32_t tile = 0; tile < o_.tiles; ++tile) {
        for (uint32_t eight = 0; eight < eights(); ++eight) {
          for (uint32_t i = 0; i < 4; i += 2) {
            const std::vector<U32>&low = weights[2 * tile], &high = weights[2 * tile + 1];
            ptx::multiply_16x8(o_.type, sums(tile, eight), {low[i], high[i], low[i + 1], high[i + 1]}, a[eight][i],
                               a[eight][i + 1]);
          }
        }
      }
    }
  }

  // --- the end ------------------------------------------------------------------------------------------------------

  uint32_t warp_bytes() const { return o_.rows() * o_.sums_row() * 4; }

  // Each warp's sums are in shared memory afterwards: [warp][row][column].
  void keep_sums() {
    memory_ = ptx::aligned_memory(w_);
    const U32 to = memory_ + warp_ * warp_bytes() + (row_ * o_.sums_row() + (in_four_ << 1)) * 4;
    for (uint32_t tile = 0; tile < o_.tiles; ++tile) {
      for (uint32_t eight = 0; eight < eights(); ++eight) {
        for (uint32_t i = 0; i < 4; ++i) {
          const uint32_t at = ((tile * 16 + i / 2 * 8) * o_.sums_row() + eight * 8 + i % 2) * 4;
          w_.emit("st.shared.f32 [{}+{}], {};", to.text, at, sums(tile, eight)[i].text);
        }
      }
    }
    w_.emit("bar.sync 0;");
  }

  void finish() {
    const uint32_t bytes = size(o_.c_type);
    F32 alpha = w_.parameter_float("push", offsetof(Mma::Push, alpha));
    if (o_.scales == 0) alpha = alpha * ptx::load_element(o_.scale_type, scales_, 0, nullptr);
    const U32 ldc = parameter(offsetof(Mma::Push, ldc));
    const U32 ld_residual = o_.residual ? parameter(offsetof(Mma::Push, ld_residual)) : U32{};
    const U32 element = w_.variable(thread_);
    w_.repeat([&] { return element < o_.rows() * o_.columns; },
              [&] {
                // Neighbouring threads have neighbouring elements of a row of C.
                const U32 row = element & (o_.rows() - 1), column = element / o_.rows(), at_row = first_ + row;
                w_.when(at_row < n_ && column < m_, [&] {
                  const auto address = [&](const U64& base, const U32& ld) {
                    return multiply_add(at_row, bytes, base + multiply_wide(column, ld) * bytes);
                  };
                  F32 factor = alpha;
                  if (o_.scales == 1) {
                    const U64 at = multiply_add(at_row, size(o_.scale_type), scales_);
                    factor = factor * ptx::load_element(o_.scale_type, at, 0, nullptr);
                  }
                  F32 value =
                      ptx::sum_of_parts(memory_ + (row * o_.sums_row() + column) * 4, 0, Mma::kWarps, warp_bytes()) *
                      factor;
                  if (o_.bias) {
                    value = value + ptx::load_element(o_.c_type, multiply_add(at_row, bytes, bias_), 0, nullptr);
                  }
                  if (o_.residual) {
                    value = value + ptx::load_element(o_.c_type, address(residual_, ld_residual), 0, nullptr);
                  }
                  ptx::store_element(o_.c_type, address(c_, ldc), ptx::activated(value, o_.activation));
                });
                w_.assign(element, element + Mma::kThreads);
              });
  }

  const Mma o_;
  Writer w_;
  U64 weights_, scales_, a_, c_, bias_, residual_, zeros_;
  U32 thread_, warp_, in_four_, row_;  // the thread's place: in_four_ along k, row_ of eight
  U32 first_;                          // the block's first row of weights
  U32 n_, m_, k_;
  U32 at_k_;     // of the thread in the step that is multiplied
  Pred exists_;  // at_k_ < k_
  std::vector<U64> rows_, scale_rows_, a_rows_;
  std::vector<U64> zero_rows_;  // numbers of the rows' first zero points
  std::vector<U32> own_zeros_;  // of whole rows
  std::vector<F32> sums_;
  U32 memory_;
};

NativeKernel write_mma(const KernelRequest& request) {
  const Mma options = Mma::read(request);
  return {Kernel(options).write(), "qgemm_mma", Mma::kThreads, options.shared_bytes()};
}

constexpr LegalRange kBits[] = {{4, 4}, {8, 8}};
constexpr LegalRange kScales[] = {{0, 2}};
constexpr LegalRange kColumns[] = {{8, 8}, {16, 16}, {32, 32}};
constexpr LegalRange kTiles[] = {{1, 2}};
constexpr DefineInfo kDefines[] = {{"ACTIVATION", kActivations},
                                   {"BIAS", kFlag},
                                   {"BITS", kBits},
                                   {"COLUMNS", kColumns},
                                   {"C_TYPE", kFloats},
                                   {"NEGATIVE", kFlag},
                                   {"RESIDUAL", kFlag},
                                   {"SCALES", kScales},
                                   {"SCALE_TYPE", kFloats},
                                   {"TILES", kTiles},
                                   {"TYPE", kHalves},
                                   {"WHOLE", kFlag},
                                   {"ZEROS", kFlag}};

}  // namespace

uint32_t Mma::shared_bytes() const { return kWarps * rows() * sums_row() * 4 + ptx::kSharedAlignment; }

bool Mma::legal() const {
  return (bits == 4 || type == TUFF_F16) && (scales != 2 || scale_type == type) && ptx::activates(activation, c_type);
}

KernelRequest Mma::request() const {
  KernelRequest made(mma_source);
  made.define("ACTIVATION", activation).define("BIAS", bias).define("BITS", bits).define("COLUMNS", columns);
  made.define("C_TYPE", c_type).define("NEGATIVE", negative).define("RESIDUAL", residual).define("SCALES", scales);
  made.define("SCALE_TYPE", scale_type).define("TILES", tiles).define("TYPE", type).define("WHOLE", whole);
  made.define("ZEROS", zeros);
  return made;
}

Mma Mma::read(const KernelRequest& request) {
  const auto value = [&](const char* name) { return static_cast<uint32_t>(request.value_of(name)); };
  Mma options;
  options.activation = static_cast<int32_t>(value("ACTIVATION"));
  options.bias = value("BIAS") != 0;
  options.bits = value("BITS");
  options.columns = value("COLUMNS");
  options.c_type = static_cast<int32_t>(value("C_TYPE"));
  options.negative = value("NEGATIVE") != 0;
  options.residual = value("RESIDUAL") != 0;
  options.scales = value("SCALES");
  options.scale_type = static_cast<int32_t>(value("SCALE_TYPE"));
  options.tiles = value("TILES");
  options.type = static_cast<int32_t>(value("TYPE"));
  options.whole = value("WHOLE") != 0;
  options.zeros = value("ZEROS") != 0;
  if (!options.legal()) fail(TUFF_ERROR_INTERNAL, "qgemm_mma: options that the types do not have");
  return options;
}

const KernelSource mma_source = {"qgemm_mma", nullptr, kDefines, write_mma};

}  // namespace tuff::quant
