// Keys and values that are quantised, in kernels in PTX: read from rows in shared memory, which are there as they are
// stored, to the operands of mma.sync (m16n8k16) of the type of q, with one rounding. Single elements are read from
// memory in f32.
//
// Formats: TUFF_F8_E4M3 and TUFF_F8_E5M2; blocks of 32 numbers with an f16 scale, TUFF_QUANT_Q8_0 and TUFF_QUANT_Q4_0.
//
// A thread reads whole words, so an operand's numbers are not those that mma.sync expects there, but others of the same
// 32: the thread's numbers of q have to be the same as those of keys, and outputs are in the order of values. Numbers
// of a product over head_dim may come in any order, if it is the same for both.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/native/ptx.hpp"
#include "tuff/tuff.h"

namespace tuff::attention {

class StoredRows {
 public:
  static constexpr uint32_t kNumbers = 32;  // that are read together

  static uint32_t bytes(int32_t format, uint32_t numbers);  // of a row of so many numbers
  // Rows of a multiple of so many numbers begin at multiples of four bytes.
  static uint32_t multiple(int32_t format);

  StoredRows(ptx::Writer& w, int32_t format, int32_t type);

  struct Operand {
    ptx::U32 low, high;  // the registers of B
  };
  // Of the product over 32 numbers of eight keys, 16 at a time. `row` is the address of key lane / 4, `quad` lane % 4.
  std::array<Operand, 2> keys(const ptx::U32& row, const ptx::U32& quad, uint32_t block);
  // The place in q of pair i (of four in 32 numbers) that goes with that: this, and per quad.
  uint32_t place_of_pair(uint32_t i) const;
  uint32_t pairs_per_quad() const { return format_ == TUFF_QUANT_Q4_0 ? 4 : 8; }
  // Of the product over 16 keys with 32 numbers, eight at a time. `rows` are the addresses of the keys that mma.sync
  // expects there: 2 * quad, the next, and both plus 8. `group` is lane / 4.
  std::array<Operand, 4> values(const std::array<ptx::U32, 4>& rows, const ptx::U32& group, uint32_t block);
  // Which of the 32 numbers is column c of output `of_four`: this plus c times the second.
  uint32_t first_output(uint32_t of_four) const;
  uint32_t outputs_apart() const { return format_ == TUFF_QUANT_Q4_0 ? 2 : 4; }

  // Whether a scale was so large that numbers may have left the range of f16, or was NaN.
  ptx::Pred overflowed() const;

 private:
  ptx::U32 word(const ptx::U32& at, uint32_t block);
  ptx::U32 scale(const ptx::U32& row, uint32_t block);
  // Four bytes of integers or floats as two pairs, before they are scaled.
  std::array<ptx::U32, 2> pairs(const ptx::U32& bytes);
  ptx::U32 pair(const ptx::U32& bytes, const char* selector);
  ptx::U32 scaled(const ptx::U32& pair, const ptx::U32& scales);

  ptx::Writer& w_;
  int32_t format_, type_;
  bool blocks_;
  ptx::U32 largest_scale_;
  ptx::U32 base_;  // 1024 in f16 and what is added to the stored integers, twice
};

// Element lane + 32 * n of a row that begins at `row`; 0 if the condition does not hold.
ptx::F32 stored_element(int32_t format, const ptx::U64& row, const ptx::U32& lane, uint32_t n, const ptx::Pred* exists);

}  // namespace tuff::attention
