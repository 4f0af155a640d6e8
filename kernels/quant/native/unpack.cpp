#include "kernels/quant/native/unpack.hpp"

#include <cstddef>
#include <string>

#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "planning/element_type.hpp"

namespace tuff::quant {

using ptx::F32;
using ptx::Type;
using ptx::U32;
using ptx::U64;

namespace {

constexpr uint32_t kRowsApart = 8;  // a thread's two rows
constexpr uint32_t kSlabs = Wgmma::kStep / 16;

}  // namespace

uint32_t Unpack::bits() const {
  return o_.format == TUFF_QUANT_I8 || o_.format == TUFF_QUANT_U8 || o_.format == TUFF_QUANT_Q8_0 ? 8 : 4;
}

uint32_t Unpack::place_of_rows() const { return o_.columns * ptx::kRowBytes; }
uint32_t Unpack::place_of_headers() const { return place_of_rows() + o_.rows * o_.row_bytes(); }
uint32_t Unpack::place_of_numbers() const { return place_of_headers() + o_.rows * o_.header_bytes(); }

U32 Unpack::place_of_unit(const U32& j, uint32_t unit, uint32_t units) const {
  const U32 at = j * w_.constant(unit);
  if (unit != 16 || units == 1) return at;
  return at ^ (((j >> 3) & (units - 1)) << 4);
}

void Unpack::locate(const U32& memory, const U32& row, const U32& quad) {
  quad_ = quad;
  U32 at = memory + place_of_rows() + row * w_.constant(o_.row_bytes());
  switch (o_.format) {
    case TUFF_QUANT_I8:
    case TUFF_QUANT_U8: at = (at ^ (((row >> 1) & 3) << 4)) + (quad << 1); break;
    case TUFF_QUANT_Q4_0:
    case TUFF_QUANT_Q8_0: break;
    case TUFF_QUANT_Q4_K: at = (at ^ (((row >> 2) & 1) << 4)) + (quad << 1); break;
    default: at = at ^ (((row >> 2) & 1) << 4); break;
  }
  rows_at_ = w_.variable(at);
  selector_ = w_.variable(quad * w_.constant(0x0101) + 0x4040);
  if (o_.header_bytes() != 0)
    headers_at_ = w_.variable(memory + place_of_headers() + row * w_.constant(o_.header_bytes()));
  const U32 numbers = memory + (o_.period != 0 ? o_.place_of_slots() : place_of_numbers());
  if (o_.scale_bytes() != 0) scales_at_ = w_.variable(numbers + row * w_.constant(o_.scale_bytes()));
  if (o_.zero_bytes() != 0) {
    zeros_at_ = w_.variable(numbers + o_.rows * o_.scale_bytes() + row * w_.constant(o_.zero_bytes()));
  }
}

// --- instructions ---------------------------------------------------------------------------------------------------

U32 Unpack::shared16(const U32& at, uint32_t offset) {
  const U32 made = w_.make<Type::u32>();
  w_.emit("ld.shared.u16 {}, [{}+{}];", made.text, at.text, offset);
  return made;
}

std::vector<U32> Unpack::shared_words(const U32& at, uint32_t offset, uint32_t count) {
  std::vector<U32> words;
  for (uint32_t i = 0; i < count; ++i) words.push_back(w_.make<Type::u32>());
  if (count == 1) {
    w_.emit("ld.shared.u32 {}, [{}+{}];", words[0].text, at.text, offset);
  } else {
    w_.emit("ld.shared.v{}.u32 {{{}}}, [{}+{}];", count, ptx::list(words), at.text, offset);
  }
  return words;
}

U32 Unpack::permuted(const U32& x, const U32& y, const U32& selector) {
  return w_.result<Type::u32>("prmt.b32", x, y, selector);
}
U32 Unpack::permuted(const U32& x, uint32_t selector) { return permuted(x, w_.constant(0), w_.constant(selector)); }

U32 Unpack::halves(const char* operation, const U32& x, const U32& y) {
  return ptx::on_halves(operation, o_.type, x, y);
}

F32 Unpack::float_of(const U32& bits) {
  const F32 made = w_.make<Type::f32>();
  w_.emit("mov.b32 {}, {};", made.text, bits.text);
  return made;
}

// The lower half of a pair.
F32 Unpack::float_of(int32_t type, const U32& pair) {
  if (type == TUFF_BF16) return float_of(pair << 16);
  return ptx::float_of(type, ptx::halves_of(pair)[0]);
}

// --- integers as they are stored ------------------------------------------------------------------------------------

std::vector<Unpack::Code> Unpack::codes(uint32_t half, const U32& stage) {
  if (!o_.integers()) return codes_of_blocks(half, stage);
  return bits() == 4 ? codes_of_4_bits(half, stage) : codes_of_8_bits(half, stage);
}

// Two neighbours are in one byte: byte t of each word of eight.
std::vector<Unpack::Code> Unpack::codes_of_4_bits(uint32_t half, const U32& stage) {
  std::vector<Code> all;
  const U32 at = rows_at_ + stage;
  for (const U32& piece : {at, at ^ 16}) {
    for (const U32& word : shared_words(piece, half * kRowsApart * o_.row_bytes(), 4)) {
      all.push_back({permuted(word, w_.constant(0), selector_), Kind::nibbles});
    }
  }
  return all;
}

std::vector<Unpack::Code> Unpack::codes_of_8_bits(uint32_t half, const U32& stage) {
  std::vector<Code> all;
  const U32 at = rows_at_ + stage;
  for (uint32_t i = 0; i < kSlabs; ++i) {
    const U32 piece = i == 0 ? at : at ^ (16 * i);
    for (uint32_t p = 0; p < 2; ++p) {
      all.push_back({permuted(shared16(piece, half * kRowsApart * o_.row_bytes() + 8 * p), 0x4140), Kind::bytes});
    }
  }
  return all;
}

// Two neighbours are in two bytes.
std::vector<Unpack::Code> Unpack::codes_of_blocks(uint32_t half, const U32& stage) {
  std::vector<Code> all;
  const uint32_t row = half * kRowsApart * o_.row_bytes();
  const U32 at = rows_at_ + stage + (o_.format == TUFF_QUANT_Q4_K ? w_.constant(0) : quad_ << 1);
  const auto spread = [&](const U32& from, uint32_t offset) { return permuted(shared16(from, row + offset), 0x4140); };
  if (o_.format == TUFF_QUANT_Q8_0) {
    for (uint32_t i = 0; i < kSlabs; ++i) {
      for (uint32_t p = 0; p < 2; ++p)
        all.push_back({spread(at, 34 * (i / 2) + 2 + 16 * (i % 2) + 8 * p), Kind::bytes});
    }
    return all;
  }
  // Four bits: of q4_0, numbers j and j + 16 of a block are in byte j; of q4_K, numbers j and j + 32 of 64.
  const bool small = o_.format == TUFF_QUANT_Q4_0;
  std::vector<U32> pairs;
  for (uint32_t i = 0; i < 2; ++i) {
    for (uint32_t p = 0; p < 2; ++p) {
      pairs.push_back(small ? spread(at, 18 * i + 2 + 8 * p) : spread(i == 0 ? at : at ^ 16, 8 * p));
    }
  }
  for (uint32_t i = 0; i < kSlabs; ++i) {
    const uint32_t from = small ? i / 2 : i % 2;
    const Kind kind = (small ? i % 2 : i / 2) == 0 ? Kind::low : Kind::high;
    for (uint32_t p = 0; p < 2; ++p) all.push_back({pairs[2 * from + p], kind});
  }
  return all;
}

// --- scales and zero points -----------------------------------------------------------------------------------------

// What is taken off the stored bits, given a zero point's: signed numbers have their highest bit inverted.
U32 Unpack::zero_of(const U32& word, const U32& number) {
  const bool four = bits() == 4;
  const U32 shift = four ? (number & 7) << 2 : (number & 3) << 3;
  const U32 zero = w_.result<Type::u32>("shr.u32", word, shift) & (four ? 15u : 255u);
  return o_.negative() ? zero ^ (four ? 8u : 128u) : zero;
}

U32 Unpack::zero_in_memory(const U64& zeros, const U32& number) {
  const U32 word = w_.make<Type::u32>();
  w_.emit("ld.global.u8 {}, [{}];", word.text, (zeros + widen(bits() == 4 ? number >> 1 : number)).text);
  return zero_of(word, bits() == 4 ? number & 1 : w_.constant(0));
}

Unpack::Common Unpack::with_scale(const U32& taken, int32_t type, const U32& pair) {
  Common common;
  common.taken = taken;
  if (o_.in_floats()) {
    common.factor = float_of(type, pair);
  } else {
    common.scale = pair;
  }
  return common;
}

// Twice each of a step, or as they are if they are f32. `first` is the number of the first of them.
std::vector<U32> Unpack::scales_of_step(uint32_t half, const U32& at, const U32& first) {
  const uint32_t offset = half * kRowsApart * o_.scale_bytes(), size = dtype_size(o_.scale_type);
  U32 from = at;
  if (o_.period != 0) from = at + (first & (16 / size - 1)) * w_.constant(size);
  if (o_.scale_type == TUFF_F32) return shared_words(from, offset, o_.per_step);
  if (o_.per_step == 1 && o_.period != 0) return {permuted(shared16(from, offset), 0x1010)};
  const std::vector<U32> words = shared_words(from, offset, (o_.per_step + 1) / 2);
  if (o_.per_step == 1) {  // the upper or lower half of the word
    return {permuted(words[0], w_.constant(0), select((first & 1) != 0u, w_.constant(0x3232), w_.constant(0x1010)))};
  }
  std::vector<U32> pairs;
  for (uint32_t i = 0; i < o_.per_step; ++i) pairs.push_back(permuted(words[i / 2], i % 2 == 0 ? 0x1010 : 0x3232));
  return pairs;
}

std::vector<Unpack::Common> Unpack::commons(uint32_t half, const U32& stage, const U32& slot, const U32& k,
                                            const U32& first_scale, const U32& zero) {
  if (!o_.integers()) return commons_of_blocks(half, stage, k);
  const U32 standard = w_.constant(!o_.negative() ? 0 : bits() == 4 ? 8 : 128);
  if (!o_.block_scales()) {
    Common common;
    common.taken = o_.zeros ? zero : standard;
    return {common};
  }
  const U32 shift = w_.parameter("push", offsetof(Wgmma::Push, block_shift));
  const U32 first = first_scale + w_.result<Type::u32>("shr.u32", k, shift);
  const U32& place = o_.period != 0 ? slot : stage;
  const std::vector<U32> scales = scales_of_step(half, scales_at_ + place, first);
  U32 zeros;
  if (o_.zeros) {
    U32 at = zeros_at_ + place;
    if (o_.zero_bytes() == 8) at = at + (first & 4);
    zeros = shared_words(at, half * kRowsApart * o_.zero_bytes(), 1)[0];
  }
  std::vector<Common> all;
  for (uint32_t i = 0; i < o_.per_step; ++i) {
    const U32 taken = o_.zeros ? zero_of(zeros, first + i) : standard;
    if (o_.scale_type == TUFF_F32) {
      Common common;
      common.taken = taken;
      common.factor = float_of(scales[i]);
      all.push_back(common);
    } else {
      all.push_back(with_scale(taken, o_.scale_type, scales[i]));
    }
  }
  return all;
}

std::vector<Unpack::Common> Unpack::commons_of_blocks(uint32_t half, const U32& stage, const U32& k) {
  if (o_.format == TUFF_QUANT_Q4_K) return commons_of_q4_k(half, stage, k);
  const uint32_t block = o_.row_bytes() / 2;
  std::vector<Common> all;
  for (uint32_t i = 0; i < 2; ++i) {
    const U32 scale = shared16(rows_at_ + stage, half * kRowsApart * o_.row_bytes() + i * block);
    all.push_back(with_scale(w_.constant(o_.format == TUFF_QUANT_Q4_0 ? 8 : 128), TUFF_F16, permuted(scale, 0x1010)));
  }
  return all;
}

// 6 bits each for the scales and minima of eight groups of 32, of which a step has two: quant_blocks.cpp.
std::vector<Unpack::Common> Unpack::commons_of_q4_k(uint32_t half, const U32& stage, const U32& k) {
  const std::vector<U32> words = shared_words(headers_at_ + stage, half * kRowsApart * o_.header_bytes(), 4);
  const F32 scale = float_of(TUFF_F16, words[0]), least = float_of(TUFF_F16, words[0] >> 16);
  const U32 step = (k >> 6) & 3;
  const ptx::Pred later = step >= w_.constant(2);  // groups 4 to 7
  const U32 scales = select(later, (words[3] & 0x0f0f0f0fu) | ((words[1] >> 2) & 0x30303030u), words[1] & 0x3f3f3f3fu);
  const U32 minima =
      select(later, ((words[3] >> 4) & 0x0f0f0f0fu) | ((words[2] >> 2) & 0x30303030u), words[2] & 0x3f3f3f3fu);
  const U32 shift = (step & 1) << 4, power = w_.variable(w_.constant(0x4b000000));
  const F32 taken = float_of(power);
  std::vector<Common> all;
  for (uint32_t i = 0; i < 2; ++i) {
    const auto number = [&](const U32& packed) {
      const U32 own = w_.result<Type::u32>("shr.u32", packed, shift);
      return float_of(permuted(own, power, w_.constant(i == 0 ? 0x7440 : 0x7441))) - taken;
    };
    Common common;
    common.taken = w_.constant(0);
    common.factor = number(scales) * scale;
    common.less = number(minima) * (least * ptx::number(w_, -1));
    all.push_back(common);
  }
  return all;
}

// --- pairs ----------------------------------------------------------------------------------------------------------

void Unpack::read(const Weights& weights, const U32& stage, const U32& slot, const U32& k,
                  const std::array<U32, 2>& first_scales, const std::array<U32, 2>& zeros) {
  for (uint32_t half = 0; half < 2; ++half) {
    const std::vector<Common> common = commons(half, stage, slot, k, first_scales[half], zeros[half]);
    const std::vector<Code> all = codes(half, stage);
    for (uint32_t i = 0; i < all.size(); ++i) {
      const Common& own = common[i * common.size() / all.size()];
      const U32 pair = o_.in_floats() ? pair_in_floats(all[i], own) : pair_in_halves(all[i], own);
      w_.assign(weights[2 * i + half], pair);
    }
  }
}

// Signed integers have their highest bit inverted on the way; blocks' of 4 bits are stored that way.
U32 Unpack::pair_in_halves(const Code& code, const Common& common) {
  const bool inverted = o_.negative() || o_.format == TUFF_QUANT_Q8_0;
  const U32 taken =
      common.taken.constant ? w_.constant(static_cast<uint32_t>(common.taken.number) * 0x10001) : twice(common.taken);
  const auto added = [&](uint32_t bits, const U32& x) { return w_.variable(x + bits); };
  U32 exact;
  if (o_.type == TUFF_BF16) {
    U32 low = code.bits;
    if (code.kind != Kind::low) {
      const U32 shifted = code.bits >> 4;
      low = code.kind == Kind::high ? shifted : permuted(code.bits, shifted, w_.constant(0x1610));
    }
    exact =
        halves("sub.rn", ptx::inserted(low, 0x000f000f, inverted ? 0x43084308 : 0x43004300), added(0x43004300, taken));
  } else if (code.kind == Kind::bytes) {
    exact = halves("sub.rn", code.bits ^ (inverted ? 0x64806480u : 0x64006400u), added(0x64006400, taken));
  } else if (code.kind == Kind::low) {
    exact = halves("sub.rn", ptx::inserted(code.bits, 0x000f000f, inverted ? 0x64086408 : 0x64006400),
                   added(0x64006400, taken));
  } else {
    // Bits 4 to 7 have the unit 16: times 1 / 16, and less 64 and the rest, whose unit is a sixteenth.
    const bool both = code.kind == Kind::high;
    const uint32_t mask = both ? 0x00f000f0 : 0x00f0000f, sign = both ? 0x00800080 : 0x00800008;
    const U32 factor = w_.variable(w_.constant(both ? 0x2c002c00 : 0x2c003c00));
    const U32 less =
        both ? added(0xd400d400, taken << 4) : added(0xd400e400, (taken & 0xffffu) + ((taken >> 16) << 20));
    exact = w_.make<Type::u32>();
    w_.emit("fma.rn.f16x2 {}, {}, {}, {};", exact.text,
            ptx::inserted(code.bits, mask, inverted ? 0x64006400 | sign : 0x64006400).text, factor.text, less.text);
  }
  return common.scale.writer != nullptr ? halves("mul.rn", exact, common.scale) : exact;
}

U32 Unpack::pair_in_floats(const Code& code, const Common& common) {
  constexpr uint32_t kPower = 0x4b000000;  // 2^23
  const bool inverted = o_.negative() || o_.format == TUFF_QUANT_Q8_0;
  std::array<U32, 2> bits;
  if (code.kind == Kind::bytes) {
    const U32 own = inverted ? code.bits ^ 0x00800080u : code.bits, power = w_.variable(w_.constant(kPower));
    bits = {permuted(own, power, w_.constant(0x7440)), permuted(own, power, w_.constant(0x7442))};
  } else {
    const uint32_t low = code.kind == Kind::high ? 4 : 0, high = code.kind == Kind::low ? 16 : 20;
    bits = {ptx::inserted(code.bits >> low, 15, kPower | (inverted ? 8u : 0u)),
            ptx::inserted(code.bits >> high, 15, kPower | (inverted ? 8u : 0u))};
  }
  const F32 taken = float_of(w_.variable(common.taken + kPower));
  std::array<F32, 2> values;
  for (uint32_t i = 0; i < 2; ++i) {
    values[i] = float_of(bits[i]) - taken;
    if (common.less.writer != nullptr) {
      values[i] = multiply_add(values[i], common.factor, common.less);
    } else if (common.factor.writer != nullptr) {
      values[i] = values[i] * common.factor;
    }
  }
  return ptx::packed_pair(o_.type, values[0], values[1]);
}

}  // namespace tuff::quant
