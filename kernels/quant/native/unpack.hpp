// Dequantises weights in shared memory to the operand that wgmma takes from registers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/native/ptx.hpp"
#include "kernels/quant/native/qgemm_wgmma.hpp"

namespace tuff::quant {

// A stage has, after the rows of A: the tile's rows of weights in a step; q4_K's scales of a block for each row; the
// scales of each row in the step, and then a word of each with its zero points. The latter are in a slot of their own
// if those of several steps are loaded at once. "Places" are relative to the stage.
class Unpack {
 public:
  Unpack(ptx::Writer& writer, const Wgmma& options) : w_(writer), o_(options) {}

  // For 64 numbers of two rows: pair 4 * i + 2 * p + h is numbers 16 * i + 8 * p + 2 * t and the next of row h, for
  // thread t of four.
  using Weights = std::array<ptx::U32, 16>;

  uint32_t bits() const;
  uint32_t place_of_rows() const;
  uint32_t place_of_headers() const;
  uint32_t place_of_numbers() const;
  // Where unit j of the rows is, from their place on. Rows of 32 and 64 bytes have their pieces of 16 permuted, so that
  // eight rows are read without bank conflicts.
  ptx::U32 place_of_unit(const ptx::U32& j, uint32_t unit, uint32_t units) const;

  // The thread reads rows `row` and row + 8 of a stage.
  void locate(const ptx::U32& memory, const ptx::U32& row, const ptx::U32& quad);
  // `first_scales` are the numbers of the rows' first scales, and `zeros` their zero points if each row has one.
  void read(const Weights& weights, const ptx::U32& stage, const ptx::U32& slot, const ptx::U32& k,
            const std::array<ptx::U32, 2>& first_scales, const std::array<ptx::U32, 2>& zeros);
  // Zero point `number` of a buffer, as what is taken off an integer's stored bits.
  ptx::U32 zero_in_memory(const ptx::U64& zeros, const ptx::U32& number);

 private:
  // Where a pair's two integers are in a register: in the lower and upper half's bits 0 to 3 (low), 4 to 7 (high), 0 to
  // 3 and 4 to 7 (nibbles), or 0 to 7 (bytes).
  enum class Kind : uint8_t { low, high, nibbles, bytes };
  struct Code {
    ptx::U32 bits;
    Kind kind = Kind::low;
  };
  // What numbers of a row have in common as far as they have one scale.
  struct Common {
    ptx::U32 taken;         // zero points, and 8 or 128 of signed numbers: taken off the stored bits
    ptx::U32 scale;         // twice, of A's type
    ptx::F32 factor, less;  // in f32; less: q4_K
  };

  ptx::U32 shared16(const ptx::U32& at, uint32_t offset);
  std::vector<ptx::U32> shared_words(const ptx::U32& at, uint32_t offset, uint32_t count);
  ptx::U32 permuted(const ptx::U32& x, const ptx::U32& y, const ptx::U32& selector);
  ptx::U32 permuted(const ptx::U32& x, uint32_t selector);
  ptx::U32 halves(const char* operation, const ptx::U32& x, const ptx::U32& y);
  ptx::U32 twice(const ptx::U32& x) { return permuted(x, 0x4040); }  // a byte in both halves
  ptx::F32 float_of(int32_t type, const ptx::U32& pair);
  ptx::F32 float_of(const ptx::U32& bits);

  std::vector<Code> codes(uint32_t half, const ptx::U32& stage);
  std::vector<Code> codes_of_4_bits(uint32_t half, const ptx::U32& stage);
  std::vector<Code> codes_of_8_bits(uint32_t half, const ptx::U32& stage);
  std::vector<Code> codes_of_blocks(uint32_t half, const ptx::U32& stage);
  std::vector<Common> commons(uint32_t half, const ptx::U32& stage, const ptx::U32& slot, const ptx::U32& k,
                              const ptx::U32& first_scale, const ptx::U32& zero);
  std::vector<ptx::U32> scales_of_step(uint32_t half, const ptx::U32& at, const ptx::U32& first);
  std::vector<Common> commons_of_blocks(uint32_t half, const ptx::U32& stage, const ptx::U32& k);
  std::vector<Common> commons_of_q4_k(uint32_t half, const ptx::U32& stage, const ptx::U32& k);
  ptx::U32 zero_of(const ptx::U32& word, const ptx::U32& number);
  Common with_scale(const ptx::U32& taken, int32_t type, const ptx::U32& pair);

  ptx::U32 pair_in_halves(const Code& code, const Common& common);
  ptx::U32 pair_in_floats(const Code& code, const Common& common);

  ptx::Writer& w_;
  const Wgmma o_;
  ptx::U32 quad_, rows_at_, headers_at_, scales_at_, zeros_at_, selector_;
};

}  // namespace tuff::quant
