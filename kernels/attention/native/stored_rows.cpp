#include "kernels/attention/native/stored_rows.hpp"

#include "kernels/attention/attention.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/quant/quant.hpp"
#include "planning/arithmetic.hpp"

namespace tuff::attention {

using ptx::F32;
using ptx::Pred;
using ptx::Type;
using ptx::U32;
using ptx::U64;

namespace {

constexpr uint32_t kThousand = 0x6400;    // 1024 in f16: its last bits are the units
constexpr uint32_t kLargeScale = 0x6000;  // 512 in f16: -128 times less than that is in the range of f16
constexpr uint32_t kNibbles = 0x0f0f0f0f;

uint32_t block_bytes(int32_t format) { return StoredRows::bytes(format, StoredRows::kNumbers); }

}  // namespace

uint32_t StoredRows::bytes(int32_t format, uint32_t numbers) {
  if (!in_blocks(format)) return numbers;
  return narrow(quant::stored_bytes(quant::format_of(format), numbers));
}

uint32_t StoredRows::multiple(int32_t format) { return in_blocks(format) ? 2 * kNumbers : kNumbers; }

StoredRows::StoredRows(ptx::Writer& w, int32_t format, int32_t type)
    : w_(w), format_(format), type_(type), blocks_(in_blocks(format)) {
  if (!blocks_) return;
  const uint32_t base = kThousand + (format == TUFF_QUANT_Q8_0 ? 128 : 8);  // signs are stored that way, or flipped
  base_ = w_.variable(w_.constant(base << 16 | base));
  largest_scale_ = w_.variable(w_.constant(0));
}

// A word of the block's numbers. Those of even blocks are at even halves of words only: a scale is before them.
U32 StoredRows::word(const U32& at, uint32_t block) {
  const uint32_t offset = block * block_bytes(format_) + (blocks_ ? 2 : 0);
  const auto load = [&](uint32_t from) {
    const U32 made = w_.make<Type::u32>();
    w_.emit("ld.shared.u32 {}, [{}+{}];", made.text, at.text, from);
    return made;
  };
  if (offset % 4 == 0) return load(offset);
  return ptx::permuted(load(offset - 2), load(offset + 2), "0x5432");
}

U32 StoredRows::scale(const U32& row, uint32_t block) {
  const U32 bits = w_.make<Type::u32>();
  w_.emit("ld.shared.u16 {}, [{}+{}];", bits.text, row.text, block * block_bytes(format_));
  if (type_ == TUFF_F16) w_.assign(largest_scale_, max(largest_scale_, bits & 0x7fff));
  return bits;
}

// Of integers, with the first bytes that the selector names.
U32 StoredRows::pair(const U32& bytes, const char* selector) {
  const U32 thousand = w_.constant(0x01010101 * (kThousand >> 8));
  return ptx::on_halves("sub.rn", TUFF_F16, ptx::permuted(bytes, thousand, selector), base_);
}

std::array<U32, 2> StoredRows::pairs(const U32& bytes) {
  if (!blocks_) return ptx::pairs_of_bytes(format_, bytes, type_);
  return {pair(bytes, "0x5140"), pair(bytes, "0x7362")};
}

// Rounded once: integers of 8 bits times a scale of f16 are exact in f32.
U32 StoredRows::scaled(const U32& pair, const U32& scales) {
  if (type_ == TUFF_F16) return ptx::on_halves("mul.rn", TUFF_F16, pair, scales);
  const auto numbers = ptx::halves_of(pair), factors = ptx::halves_of(scales);
  const auto product = [&](uint32_t i) {
    return ptx::float_of(TUFF_F16, numbers[i]) * ptx::float_of(TUFF_F16, factors[i]);
  };
  return ptx::packed_pair(type_, product(0), product(1));
}

// Of q8_0 and 8-bit floats, a thread has numbers 8 * quad to 8 * quad + 7; of q4_0, 4 * quad to 4 * quad + 3, and the
// same plus 16, which are in the same bytes.
uint32_t StoredRows::place_of_pair(uint32_t i) const {
  if (format_ == TUFF_QUANT_Q4_0) return i / 2 * 16 + i % 2 * 2;
  return i * 2;
}

std::array<StoredRows::Operand, 2> StoredRows::keys(const U32& row, const U32& quad, uint32_t block) {
  const U32 at = row + quad * w_.constant(format_ == TUFF_QUANT_Q4_0 ? 4 : 8);
  std::array<U32, 2> low, high;
  if (format_ == TUFF_QUANT_Q4_0) {
    const U32 bytes = word(at, block);
    low = pairs(bytes & kNibbles), high = pairs((bytes >> 4) & kNibbles);
  } else {
    const U32 flipped = w_.constant(blocks_ ? 0x80808080 : 0);
    low = pairs(word(at, block) ^ flipped), high = pairs(word(at + 4, block) ^ flipped);
  }
  if (blocks_) {
    const U32 one = scale(row, block), both = ptx::permuted(one, one, "0x1010");
    for (U32* const x : {&low[0], &low[1], &high[0], &high[1]}) *x = scaled(*x, both);
  }
  return {{{low[0], low[1]}, {high[0], high[1]}}};
}

// Column c of output i is number 4 * c + i; of q4_0, number 2 * c + i % 2, and plus 16 if i is 2 or 3.
uint32_t StoredRows::first_output(uint32_t of_four) const {
  return format_ == TUFF_QUANT_Q4_0 ? of_four / 2 * 16 + of_four % 2 : of_four;
}

std::array<StoredRows::Operand, 4> StoredRows::values(const std::array<U32, 4>& rows, const U32& group,
                                                      uint32_t block) {
  // For each two keys, the same number of both in each pair.
  std::array<std::array<U32, 4>, 2> all;
  for (uint32_t two = 0; two < 2; ++two) {
    const U32 &first = rows[2 * two], &second = rows[2 * two + 1];
    if (format_ == TUFF_QUANT_Q4_0) {
      const auto bytes = [&](const U32& row) {  // two, with four numbers
        const U32 made = w_.make<Type::u32>();
        w_.emit("ld.shared.u16 {}, [{}+{}];", made.text, (row + (group << 1)).text, block * block_bytes(format_) + 2);
        return made;
      };
      const U32 four = ptx::permuted(bytes(first), bytes(second), "0x5410");
      const U32 low = four & kNibbles, high = (four >> 4) & kNibbles;
      all[two] = {pair(low, "0x6240"), pair(low, "0x7351"), pair(high, "0x6240"), pair(high, "0x7351")};
    } else {
      const U32 flipped = w_.constant(blocks_ ? 0x80808080 : 0);
      const U32 x = word(first + (group << 2), block) ^ flipped, y = word(second + (group << 2), block) ^ flipped;
      const std::array<U32, 2> even = pairs(ptx::permuted(x, y, "0x5140")), odd = pairs(ptx::permuted(x, y, "0x7362"));
      all[two] = {even[0], even[1], odd[0], odd[1]};
    }
    if (!blocks_) continue;
    const U32 scales = ptx::permuted(scale(first, block), scale(second, block), "0x5410");
    for (U32& x : all[two]) x = scaled(x, scales);
  }
  std::array<Operand, 4> operands;
  for (uint32_t i = 0; i < 4; ++i) operands[i] = {all[0][i], all[1][i]};
  return operands;
}

Pred StoredRows::overflowed() const {
  if (!blocks_ || type_ != TUFF_F16) return ptx::truth(w_, false);
  return largest_scale_ >= w_.constant(kLargeScale);
}

F32 stored_element(int32_t format, const U64& row, const U32& lane, uint32_t n, const Pred* exists) {
  ptx::Writer& w = *row.writer;
  const bool blocks = in_blocks(format), nibbles = format == TUFF_QUANT_Q4_0;
  const ptx::Guard guard = exists != nullptr ? if_true(*exists) : ptx::Guard{};
  const U32 bits = w.variable(w.constant(0));
  const U64 at = row + widen(nibbles ? lane & 15 : lane);
  const uint32_t block = n * block_bytes(format);
  w.emit(guard, "ld.global.{} {}, [{}+{}];", format == TUFF_QUANT_Q8_0 ? "s8" : "u8", bits.text, at.text,
         block + (blocks ? 2 : 0));
  if (!blocks) return ptx::float_of(TUFF_F16, ptx::halves_of(ptx::pairs_of_bytes(format, bits, TUFF_F16)[0])[0]);
  const ptx::B16 scale = w.make<Type::b16>();
  w.emit("ld.global.b16 {}, [{}+{}];", scale.text, row.text, block);
  U32 integer = bits;
  if (nibbles) integer = select(lane < 16u, bits & 15, bits >> 4) - 8u;
  const F32 number = w.make<Type::f32>();
  w.emit("cvt.rn.f32.s32 {}, {};", number.text, integer.text);
  return number * ptx::float_of(TUFF_F16, scale);
}

}  // namespace tuff::attention
