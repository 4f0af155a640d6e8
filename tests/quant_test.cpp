// Quantisation, compared bit for bit with a model of ONNX's QuantizeLinear and DequantizeLinear in float, and ggml's
// blocks with a second decoder that walks through a block in order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "support/bounds.hpp"
#include "support/quantised.hpp"
#include "support/tensor.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test::quant_test {
namespace {

using namespace quantised;

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kUnsupported = TUFF_ERROR_UNSUPPORTED;

std::vector<QuantCase> cases() {
  std::vector<QuantCase> all;
  const int32_t tensor = TUFF_QUANT_PER_TENSOR, axis = TUFF_QUANT_PER_AXIS, block = TUFF_QUANT_PER_BLOCK;
  uint32_t turn = 0;
  for (const int32_t format : {TUFF_QUANT_I8, TUFF_QUANT_U8, TUFF_QUANT_I4, TUFF_QUANT_U4}) {
    const auto add = [&](QuantCase row) {
      row.format = format;
      row.zeros = ++turn % 2 == 0;
      row.shift = turn % 3;
      all.push_back(std::move(row));
    };
    for (const uint64_t n : {1, 2, 7, 8, 9, 31, 64, 1000, 4099}) add({0, {n}});
    add({0, {33, 65}, axis, 0});
    add({0, {33, 65}, axis, 1});
    add({0, {5, 16}, axis, 0});
    add({0, {3, 4, 40}, axis, 1});
    add({0, {2, 7, 3, 5}, axis, 2});
    add({0, {9, 256}, block, 1, 32});
    add({0, {9, 256}, block, 1, 64});
    add({0, {9, 256}, block, 1, 128});
    add({0, {9, 100}, block, 1, 32});  // a shorter last block
    add({0, {7, 45}, block, 1, 7});
    add({0, {64, 24}, block, 0, 16});
    add({0, {37, 5, 3}, block, 0, 4});
    add({0, {3, 37, 5}, block, 1, 1});
    add({0, {4, 6, 8}, block, 1, 100});  // longer than the axis
    add({0, {3, 8}, block, 1, std::numeric_limits<uint64_t>::max()});
    add({0, {2, 3, 2, 3, 2, 3, 2, 3}, block, 3, 2});
    add({0, {2, 3, 2, 3, 2, 3, 2, 3}, axis, 7});
    // Types of elements, scales and quotients: each pair, in some of the formats.
    const int32_t types[] = {TUFF_F32, TUFF_F16, TUFF_BF16};
    for (uint32_t i = 0; i < 9; ++i) {
      const int32_t quotient = types[(i + i / 3 + static_cast<uint32_t>(format)) % 3];
      const int32_t granularity = i % 2 == 0 ? tensor : axis;
      add({0, {17, 41}, granularity, 1, 0, false, types[i % 3], types[i / 3], quotient});
    }
    add({0, {300, 1024}, block, 1, 32});
    all.back().shift = 0;
  }
  return all;
}

// Moderate numbers, exact ties, and every kind of special number.
std::vector<float> numbers(uint64_t count, uint64_t seed) {
  Random random(seed);
  const float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-45f, -1e-40f, 3e38f, -3e38f, 1e-38f, 5e-8f};
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t kind = random.next() % 16;
    values[i] = kind == 0   ? special[random.next() % std::size(special)]
                : kind < 6  ? (random.integer(300) + 0.5f) * 0.25f
                : kind < 10 ? random.spread()
                            : random.uniform(-40, 40);
  }
  return values;
}

std::vector<float> scale_values(uint64_t count, uint64_t seed) {
  Random random(seed);
  const float special[] = {0.0f, -0.0f, NAN, INFINITY, 1e-45f, 3e-39f, -2e-40f, 3e38f, -1.0f, 6e-8f};
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t kind = random.next() % 12;
    values[i] = kind == 0 && count > 1 ? special[random.next() % std::size(special)]
                : kind < 6             ? std::ldexp(1.0f, static_cast<int>(random.next() % 6) - 4)
                                       : random.uniform(0.05f, 0.5f);
  }
  return values;
}

// ONNX's QuantizeLinear, in float.
int quantised(const QuantCase& row, float x, float scale, int zero) {
  const int32_t type = row.quotient();
  const float dividend = rounded(type, x), divisor = rounded(type, scale);
  const float quotient = rounded(type, dividend / divisor);
  if (std::isnan(quotient)) return std::clamp(zero, least_of(row.format), most_of(row.format));
  const float whole = std::nearbyint(quotient);
  if (whole > 1000) return most_of(row.format);
  if (whole < -1000) return least_of(row.format);
  return std::clamp(static_cast<int>(whole) + zero, least_of(row.format), most_of(row.format));
}

template <typename Desc>
Desc described(const QuantCase& row) {
  Desc desc{};
  desc.struct_size = sizeof desc;
  desc.format = row.format;
  desc.dtype = row.dtype;
  desc.scale_type = row.scale_type;
  desc.granularity = row.granularity;
  std::copy(row.shape.begin(), row.shape.end(), desc.shape);
  desc.rank = static_cast<uint32_t>(row.shape.size());
  desc.axis = row.axis;
  desc.block_size = row.block;
  return desc;
}

using Quant = Table<QuantCase>;

TEST_P(Quant, QuantisesAsOnnx) {
  const QuantCase& r = row();
  const Bytes x = as_type(r.dtype, numbers(r.count(), 3)), s = as_type(r.scale(), scale_values(r.scales(), 4)),
              z = random_bytes(stored(r.format, r.scales()), 5);
  const TypedTensor input(context(), r.dtype, x, r.shift), scales(context(), r.scale(), s, r.shift),
      zeros(context(), TUFF_U8, z, r.shift),
      output(context(), TUFF_U8, Bytes(stored(r.format, r.count()), 0xa5), r.shift);
  auto desc = described<tuff_quantize_desc>(r);
  desc.quotient_type = r.quotient_type;
  desc.input = input, desc.scales = scales, desc.output = output;
  if (r.zeros) desc.zero_points = zeros;
  ASSERT_OK(tuff_quantize(context(), &desc));
  const Bytes got = output.read();
  for (uint64_t i = 0; i < r.count(); ++i) {
    const uint64_t at = r.scale_of(i);
    const auto value = static_cast<float>(element(r.dtype, x, i)),
               scale = static_cast<float>(element(r.scale(), s, at));
    const int zero = r.zeros ? get(r.format, z, at) : 0;
    ASSERT_EQ(get(r.format, got, i), quantised(r, value, scale, zero))
        << "element " << i << ": " << value << " / " << scale << " + " << zero;
  }
  if (four_bits(r.format) && r.count() % 2 != 0) {
    ASSERT_EQ(got.back() / 16, 0);
  }
  EXPECT_EQ(input.read(), x);
}

TEST_P(Quant, DequantisesAsOnnx) {
  const QuantCase& r = row();
  const Bytes q = random_bytes(stored(r.format, r.count()), 6), s = as_type(r.scale(), scale_values(r.scales(), 7)),
              z = random_bytes(stored(r.format, r.scales()), 8);
  Bytes fresh(r.count() * size_of(r.dtype));
  poison_all(r.dtype, fresh);
  const TypedTensor input(context(), TUFF_U8, q, r.shift), scales(context(), r.scale(), s, r.shift),
      zeros(context(), TUFF_U8, z, r.shift), output(context(), r.dtype, fresh, r.shift);
  auto desc = described<tuff_dequantize_desc>(r);
  desc.input = input, desc.scales = scales, desc.output = output;
  if (r.zeros) desc.zero_points = zeros;
  ASSERT_OK(tuff_dequantize(context(), &desc));
  const Bytes got = output.read();
  for (uint64_t i = 0; i < r.count(); ++i) {
    const uint64_t at = r.scale_of(i);
    const auto scale = static_cast<float>(element(r.scale(), s, at));
    const int difference = get(r.format, q, i) - (r.zeros ? get(r.format, z, at) : 0);
    const float wanted = rounded(r.dtype, static_cast<float>(difference) * scale);
    const auto value = static_cast<float>(element(r.dtype, got, i));
    ASSERT_FALSE(is_poison(r.dtype, got, i)) << i;
    ASSERT_TRUE(std::isnan(wanted) ? std::isnan(value) : bits(wanted) == bits(value))
        << "element " << i << ": " << value << ", not " << difference << " * " << scale << " = " << wanted;
  }
}
TUFF_TABLE(Quant, QuantCase, cases());

// --- ggml's blocks -----------------------------------------------------------------------------------------------

class QuantOnce : public OnBackend {};

TEST_P(QuantOnce, BlocksOfGgmlGiveWhatASecondDecoderGives) {
  for (const Block& block : kBlocks) {
    for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
      for (const uint64_t count : {1, 3, 37}) {
        SCOPED_TRACE(std::string(block.name) + " " + name_of(dtype) + " " + std::to_string(count));
        const Bytes bytes = random_blocks(block, count, count, count == 37);
        const std::vector<float> wanted = decoded(block, bytes);
        Bytes fresh(wanted.size() * size_of(dtype));
        poison_all(dtype, fresh);
        const TypedTensor input(context(), TUFF_U16, bytes, count % 2), output(context(), dtype, fresh, count % 3);
        auto desc = described<tuff_dequantize_desc>({block.format, {count, block.numbers}});
        desc.dtype = dtype, desc.input = input, desc.output = output;
        ASSERT_OK(tuff_dequantize(context(), &desc));
        const Bytes got = output.read();
        for (uint64_t i = 0; i < wanted.size(); ++i) {
          const float value = rounded(dtype, wanted[i]);
          const auto found = static_cast<float>(element(dtype, got, i));
          ASSERT_TRUE(std::isnan(value) ? std::isnan(found) && !is_poison(dtype, got, i) : value == found)
              << i << ": " << found << ", not " << value;
        }
      }
    }
  }
}

// A block written by hand from ggml's description of q4_K: scales 1 to 8, minima 8 to 1, and all quants 1 or 2.
TEST_P(QuantOnce, AHandmadeBlockOfQ4K) {
  Bytes block(144, 0x21);  // low halves 1, upper halves 2
  set_element(TUFF_F16, block, 0, 0.5);
  set_element(TUFF_F16, block, 1, 0.25);
  const unsigned char scales[12] = {1, 2, 3, 4, 8, 7, 6, 5, 5 + 16 * 4, 6 + 16 * 3, 7 + 16 * 2, 8 + 16 * 1};
  std::copy(std::begin(scales), std::end(scales), block.begin() + 4);
  const TypedTensor input(context(), TUFF_U16, block);
  const Tensor output(context(), 256);
  auto desc = described<tuff_dequantize_desc>({TUFF_QUANT_Q4_K, {256}});
  desc.input = input, desc.output = output;
  ASSERT_OK(tuff_dequantize(context(), &desc));
  const std::vector<float> got = output.read();
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32;
    const float wanted =
        0.5f * static_cast<float>((group + 1) * (group % 2 == 0 ? 1 : 2)) - 0.25f * static_cast<float>(8 - group);
    ASSERT_EQ(got[i], wanted) << i;
  }
}

// --- scales that are wrong, and other misuse -----------------------------------------------------------------------

TEST_P(QuantOnce, ScalesOfZeroAndNaNAreDefined) {
  const std::vector<float> x = {1, -1, 0, NAN, INFINITY, -INFINITY, 100, -100};
  const struct {
    float scale;
    std::vector<int> wanted;  // with zero point 3
  } rows[] = {{0.0f, {127, -128, 3, 3, 127, -128, 127, -128}},
              {-0.0f, {-128, 127, 3, 3, -128, 127, -128, 127}},
              {NAN, {3, 3, 3, 3, 3, 3, 3, 3}},
              {INFINITY, {3, 3, 3, 3, 3, 3, 3, 3}},
              {-1.0f, {2, 4, 3, 3, -128, 127, -97, 103}}};
  for (const auto& row : rows) {
    const Tensor input(context(), x), scale(context(), std::vector<float>{row.scale});
    const TypedTensor zero(context(), TUFF_U8, {3}), output(context(), TUFF_U8, Bytes(8));
    auto desc = described<tuff_quantize_desc>({TUFF_QUANT_I8, {8}});
    desc.input = input, desc.scales = scale, desc.zero_points = zero, desc.output = output;
    ASSERT_OK(tuff_quantize(context(), &desc));
    const Bytes got = output.read();
    for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(get(TUFF_QUANT_I8, got, i), row.wanted[i]) << x[i] << " / " << row.scale;
  }
}

// Quotients beside a tie, by one unit in the last place of either operand: a division that is off by one unit fails.
TEST_P(QuantOnce, QuotientsBesideTiesAreRoundedOnce) {
  std::vector<float> x, scales;
  Random random(11);
  for (int i = 0; i < 20'000; ++i) {
    const float scale = std::ldexp(random.uniform(1, 2), static_cast<int>(random.next() % 200) - 120);
    const auto tie = static_cast<float>(random.next() % 130) + 0.5f;
    float value = tie * scale;
    for (uint64_t steps = random.next() % 3; steps > 0; --steps) {
      value = std::nextafter(value, random.next() % 2 == 0 ? 0.0f : INFINITY);
    }
    x.push_back(random.next() % 2 == 0 ? value : -value);
    scales.push_back(scale);
  }
  const QuantCase row{TUFF_QUANT_I8, {x.size()}, TUFF_QUANT_PER_AXIS};
  const Tensor input(context(), x), divisors(context(), scales);
  const TypedTensor output(context(), TUFF_U8, Bytes(x.size()));
  auto desc = described<tuff_quantize_desc>(row);
  desc.input = input, desc.scales = divisors, desc.output = output;
  ASSERT_OK(tuff_quantize(context(), &desc));
  const Bytes got = output.read();
  for (uint64_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(get(row.format, got, i), quantised(row, x[i], scales[i], 0)) << x[i] << " / " << scales[i];
  }
}

TEST_P(QuantOnce, AnEmptyTensorTouchesNothing) {
  for (const std::vector<uint64_t>& shape : std::vector<std::vector<uint64_t>>{{0}, {3, 0}, {0, 5}}) {
    for (const int32_t granularity : {TUFF_QUANT_PER_TENSOR, TUFF_QUANT_PER_AXIS, TUFF_QUANT_PER_BLOCK}) {
      const QuantCase row{TUFF_QUANT_U4, shape, granularity, 0, granularity == TUFF_QUANT_PER_BLOCK ? 4u : 0u};
      const auto quantize = described<tuff_quantize_desc>(row);
      const auto dequantize = described<tuff_dequantize_desc>(row);
      EXPECT_OK(tuff_quantize(context(), &quantize));
      EXPECT_OK(tuff_dequantize(context(), &dequantize));
    }
  }
}

TEST_P(QuantOnce, BadCallsSayWhatIsWrong) {
  const Tensor x(context(), std::vector<float>(256, 1.0f)), scales(context(), std::vector<float>(64, 1.0f));
  const TypedTensor q(context(), TUFF_U8, Bytes(256));
  const auto quantize = [&](auto change) {
    auto desc = described<tuff_quantize_desc>({TUFF_QUANT_I8, {4, 64}, TUFF_QUANT_PER_BLOCK, 1, 32});
    desc.input = x, desc.scales = scales, desc.output = q;
    change(desc);
    return tuff_quantize(context(), &desc);
  };
  const auto fails = [&](auto change, const char* word, tuff_status status = kArgument) {
    EXPECT_FAILS(quantize(change), status, "tuff_quantize", word);
  };
  EXPECT_OK(quantize([](auto&) {}));
  fails([](auto& d) { d.format = 0; }, "format");
  fails([](auto& d) { d.format = 5; }, "format");
  fails([](auto& d) { d.format = TUFF_QUANT_Q4_0; }, "format");
  fails([](auto& d) { d.granularity = 3; }, "granularity");
  fails([](auto& d) { d.block_size = 0; }, "block_size");
  fails([](auto& d) { d.granularity = TUFF_QUANT_PER_AXIS; }, "block_size");
  fails([](auto& d) { d.axis = 2; }, "axis");
  fails([](auto& d) { d.rank = 0; }, "rank");
  fails([](auto& d) { d.rank = 9; }, "rank");
  fails([](auto& d) { d.dtype = TUFF_F64; }, "dtype", kUnsupported);
  fails([](auto& d) { d.dtype = 77; }, "dtype");
  fails([](auto& d) { d.scale_type = TUFF_I8; }, "scale_type", kUnsupported);
  fails([](auto& d) { d.quotient_type = TUFF_F64; }, "quotient_type", kUnsupported);
  fails([](auto& d) { d.shape[0] = uint64_t{1} << 60; }, "shape");
  fails([](auto& d) { d.shape[0] = uint64_t{1} << 40; }, "input");
  fails([](auto& d) { d.shape[0] = 5; }, "input");
  fails([](auto& d) { d.block_size = 2; }, "scales");  // needs 128 of them
  fails([](auto& d) { d.scales = 0; }, "scales", TUFF_ERROR_INVALID_HANDLE);
  fails([&](auto& d) { d.output = d.input; }, "output");
  fails([&](auto& d) { d.output = d.scales; }, "output");
  fails([&](auto& d) { d.zero_points = d.output; }, "zero_points");
  fails([](auto& d) { d.struct_size = 8; }, "struct_size");
  // The axis alone exceeds 32 bits; the check comes before that of the buffer's size.
  {
    auto desc = described<tuff_dequantize_desc>({TUFF_QUANT_I8, {1, uint64_t{1} << 33}, TUFF_QUANT_PER_AXIS, 1});
    desc.input = q, desc.scales = scales, desc.output = x;
    EXPECT_FAILS(tuff_dequantize(context(), &desc), kUnsupported, "tuff_dequantize", "shape");
  }
  const auto blocks = [&](auto change) {
    auto desc = described<tuff_dequantize_desc>({TUFF_QUANT_Q8_0, {2, 64}});
    desc.input = q, desc.output = x;
    change(desc);
    return tuff_dequantize(context(), &desc);
  };
  EXPECT_OK(blocks([](auto&) {}));
  EXPECT_FAILS(blocks([](auto& d) { d.shape[1] = 48; }), kArgument, "tuff_dequantize", "shape");
  EXPECT_FAILS(blocks([&](auto& d) { d.scales = scales; }), kArgument, "tuff_dequantize", "scales");
  EXPECT_FAILS(blocks([&](auto& d) { d.zero_points = scales; }), kArgument, "tuff_dequantize", "zero_points");
  EXPECT_FAILS(blocks([](auto& d) { d.granularity = TUFF_QUANT_PER_AXIS; }), kArgument, "tuff_dequantize",
               "granularity");
  EXPECT_FAILS(blocks([](auto& d) { d.block_size = 32; }), kArgument, "tuff_dequantize", "block_size");
  EXPECT_FAILS(blocks([](auto& d) { d.reserved = 1; }), kArgument, "tuff_dequantize", "reserved");
  EXPECT_FAILS(blocks([](auto& d) { d.shape[0] = 9; }), kArgument, "tuff_dequantize", "input");
  const TypedTensor odd(context(), TUFF_U8, Bytes(255), 1);
  EXPECT_FAILS(blocks([&](auto& d) { d.input = odd; }), kArgument, "tuff_dequantize", "input");
}
TUFF_ON_BACKENDS(QuantOnce);

}  // namespace
}  // namespace tuff_test::quant_test
