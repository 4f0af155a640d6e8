// Attention whose keys and values are quantised: against the reference for the dequantised numbers, which this file
// decodes itself, within the bound of f32 operands.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "support/attention_problem.hpp"
#include "support/stored.hpp"

namespace tuff_test::attention_quantised_test {
namespace {

constexpr int32_t kTopLeft = TUFF_CAUSAL_TOP_LEFT, kBottomRight = TUFF_CAUSAL_BOTTOM_RIGHT;
constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kUnsupported = TUFF_ERROR_UNSUPPORTED;

enum class Stored { plain, e4m3, e5m2, q4_0, q8_0 };
enum class Scales { none, one, heads, keys };

bool in_blocks(Stored stored) { return stored == Stored::q4_0 || stored == Stored::q8_0; }
uint64_t block_bytes(Stored stored) { return stored == Stored::q4_0 ? 18 : 34; }

float half_number(uint32_t bits) {  // of finite numbers
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const float fraction = static_cast<float>(bits & 1023) / 1024;
  const float magnitude = exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (bits >> 15) != 0 ? -magnitude : magnitude;
}
float float8_number(Stored stored, uint32_t byte) {  // of finite numbers
  const int fraction_bits = stored == Stored::e4m3 ? 3 : 2, bias = stored == Stored::e4m3 ? 7 : 15;
  const int exponent = static_cast<int>((byte & 127) >> fraction_bits);
  const float fraction = std::ldexp(static_cast<float>(byte & ((1u << fraction_bits) - 1)), -fraction_bits);
  const float magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return (byte & 128) != 0 ? -magnitude : magnitude;
}

// A tensor [batch][heads][rows][dim] as it is stored, with gaps if `roomy`, and its numbers without these.
struct QuantisedRows {
  Stored stored;
  uint64_t batch, heads, rows, dim;
  bool roomy, rows_first;
  std::array<uint64_t, 3> strides;
  Bytes bytes;
  std::vector<float> numbers;

  uint64_t bytes_of(uint64_t count) const { return in_blocks(stored) ? count / 32 * block_bytes(stored) : count; }
  uint64_t at(uint64_t b, uint64_t h, uint64_t i) const { return b * strides[0] + h * strides[1] + i * strides[2]; }

  // Bytes are random, but for scales of blocks, which are below 2^-6, and floats, which are below 2.
  void fill(uint64_t seed) {
    const uint64_t gap = roomy ? 32 : 0;
    if (rows_first) {
      strides = {rows * heads * (dim + gap), dim + gap, heads * (dim + gap)};
    } else {
      strides = {heads * (rows + gap / 16) * (dim + gap), (rows + gap / 16) * (dim + gap), dim + gap};
    }
    const uint64_t count = at(batch - 1, heads - 1, rows - 1) + dim;
    Random random(seed);
    bytes.resize(bytes_of(count));
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.next() >> 7);
    if (in_blocks(stored)) {
      for (uint64_t i = 0; i < bytes.size(); i += block_bytes(stored)) {
        const auto exponent = static_cast<unsigned char>(0x18 + random.next() % 8 / 4 * 4);
        bytes[i + 1] = static_cast<unsigned char>((bytes[i + 1] & 0x83) | exponent);
      }
    } else {
      for (unsigned char& byte : bytes) byte &= 0xbf;
    }
    numbers.clear();
    for (uint64_t row = 0; row < batch * heads * rows; ++row) {
      const uint64_t first = at(row / rows / heads, row / rows % heads, row % rows);
      for (uint64_t e = 0; e < dim; ++e) numbers.push_back(number(first + e));
    }
  }

  float number(uint64_t i) const {
    if (!in_blocks(stored)) return float8_number(stored, bytes[i]);
    const unsigned char* block = &bytes[i / 32 * block_bytes(stored)];
    const float scale = half_number(block[0] | static_cast<uint32_t>(block[1]) << 8);
    if (stored == Stored::q8_0) return scale * static_cast<float>(static_cast<signed char>(block[2 + i % 32]));
    return scale * static_cast<float>((block[2 + i % 16] >> (i % 32 / 16 * 4) & 15) - 8);
  }
};

struct QuantisedCase {
  AttentionShape shape;
  Stored k, v;
  Scales scales = Scales::none;

  std::string name() const {
    const char* const stored[] = {"plain", "e4m3", "e5m2", "q4_0", "q8_0"};
    const char* const scaled[] = {"", "_onescale", "_headscales", "_keyscales"};
    return shape.name() + "_" + stored[static_cast<int>(k)] + "_" + stored[static_cast<int>(v)] +
           scaled[static_cast<int>(scales)];
  }
  double work() const { return shape.work(); }
};

std::vector<QuantisedCase> cases() {
  const std::vector<AttentionShape> shapes = {
      // one row, with heads that share keys and without
      {.batch = 2, .heads = 8, .seq_q = 1, .seq_kv = 700, .head_dim = 64, .dtype = TUFF_F16, .kv_heads = 2},
      {.batch = 1, .heads = 4, .seq_q = 1, .seq_kv = 333, .head_dim = 128, .dtype = TUFF_F16},
      {.batch = 1, .heads = 4, .seq_q = 1, .seq_kv = 90, .head_dim = 32, .kv_heads = 1},
      // few rows, many rows, values of another size, other layouts and places
      {.batch = 2,
       .heads = 4,
       .seq_q = 5,
       .seq_kv = 77,
       .head_dim = 96,
       .causal = kBottomRight,
       .shift = 4,
       .dtype = TUFF_BF16,
       .kv_heads = 2,
       .layout = Layout::rows_first},
      {.batch = 2,
       .heads = 2,
       .seq_q = 40,
       .seq_kv = 50,
       .head_dim = 64,
       .causal = kTopLeft,
       .dtype = TUFF_F16,
       .head_dim_v = 32,
       .layout = Layout::roomy},
      {.batch = 1, .heads = 2, .seq_q = 33, .seq_kv = 130, .head_dim = 32, .head_dim_v = 160, .lse = true},
      // as many as are dequantised first on devices with matrix units
      {.batch = 2,
       .heads = 4,
       .seq_q = 70,
       .seq_kv = 90,
       .head_dim = 64,
       .causal = kBottomRight,
       .dtype = TUFF_F16,
       .kv_heads = 2,
       .layout = Layout::roomy,
       .left = 40,
       .lse = true},
      {.batch = 1,
       .heads = 2,
       .seq_q = 48,
       .seq_kv = 65,
       .head_dim = 128,
       .dtype = TUFF_BF16,
       .layout = Layout::rows_first},
      // few rows in PTX: rows behind each other from any key on, and with gaps
      {.batch = 2,
       .heads = 16,
       .seq_q = 1,
       .seq_kv = 500,
       .head_dim = 128,
       .causal = kBottomRight,
       .dtype = TUFF_F16,
       .kv_heads = 2,
       .left = 333},
      {.batch = 1,
       .heads = 4,
       .seq_q = 3,
       .seq_kv = 200,
       .head_dim = 128,
       .dtype = TUFF_BF16,
       .kv_heads = 2,
       .head_dim_v = 64,
       .layout = Layout::roomy},
      // all options
      {.batch = 6,
       .heads = 4,
       .seq_q = 1,
       .seq_kv = 300,
       .head_dim = 64,
       .causal = kBottomRight,
       .dtype = TUFF_F16,
       .kv_heads = 1,
       .softcap = 3,
       .bias_type = TUFF_F32,
       .mask = true,
       .same = Same::heads,
       .left = 100,
       .lengths = true,
       .lse = true},
      {.batch = 6,
       .heads = 4,
       .seq_q = 20,
       .seq_kv = 47,
       .head_dim = 32,
       .causal = kBottomRight,
       .kv_heads = 2,
       .layout = Layout::roomy,
       .bias_type = TUFF_F32,
       .mask = true,
       .left = 30,
       .lengths = true,
       .lse = true},
  };
  std::vector<QuantisedCase> all;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (const Stored stored : {Stored::e4m3, Stored::e5m2, Stored::q4_0, Stored::q8_0}) {
      if (i < 3) all.push_back({shapes[i], stored, stored});
    }
    // With both scales, devices take three of bias, mask, log-sum-exp and lengths.
    all.push_back({shapes[i], Stored::e4m3, shapes[i].mask ? Stored::q8_0 : Stored::e5m2,
                   shapes[i].mask ? Scales::none : Scales::keys});
    all.push_back({shapes[i], Stored::q8_0, Stored::q4_0});
    if (i >= 3) all.push_back({shapes[i], Stored::q4_0, Stored::e5m2});
  }
  for (const Scales scales : {Scales::one, Scales::heads, Scales::keys}) {
    all.push_back({shapes[0], Stored::e4m3, Stored::e4m3, scales});
    all.push_back({shapes[4], Stored::e5m2, Stored::e4m3, scales});
  }
  // only one of the two, beside 16 bits and f32
  for (const size_t i : {size_t{0}, size_t{2}, size_t{4}, size_t{6}, size_t{8}}) {
    all.push_back({shapes[i], Stored::q8_0, Stored::plain});
    all.push_back({shapes[i], Stored::plain, Stored::q4_0});
    all.push_back({shapes[i], Stored::plain, Stored::e4m3, Scales::keys});
  }
  // 8-bit floats of any size at any place
  all.push_back({{.batch = 2,
                  .heads = 2,
                  .seq_q = 3,
                  .seq_kv = 20,
                  .head_dim = 13,
                  .shift = 2,
                  .dtype = TUFF_F16,
                  .head_dim_v = 7},
                 Stored::e4m3,
                 Stored::e5m2,
                 Scales::heads});
  all.push_back({{.batch = 2, .heads = 3, .seq_q = 9, .seq_kv = 20, .head_dim = 24, .head_dim_v = 40},
                 Stored::e5m2,
                 Stored::e4m3});
  // more keys than the loops of a CPU driver allow
  all.push_back({{.heads = 1, .seq_q = 9, .seq_kv = 20'001, .head_dim = 128, .causal = kBottomRight, .left = 3000},
                 Stored::q8_0,
                 Stored::q4_0});
  return all;
}

int32_t type_of(Stored stored) {
  return stored == Stored::e4m3 ? TUFF_F8_E4M3 : stored == Stored::e5m2 ? TUFF_F8_E5M2 : 0;
}
int32_t format_of(Stored stored) {
  return stored == Stored::q4_0 ? TUFF_QUANT_Q4_0 : stored == Stored::q8_0 ? TUFF_QUANT_Q8_0 : 0;
}

// The scales of the keys or values, and what they are multiplied with.
struct KeyScales {
  std::array<uint64_t, 3> strides{};
  std::vector<float> numbers;
  KeyScales(Scales kind, const AttentionShape& s, uint64_t seed) {
    const uint64_t heads = s.heads_of_kv();
    if (kind == Scales::none) return;
    if (kind == Scales::heads) strides = {heads, 1, 0};
    if (kind == Scales::keys) strides = {heads * s.seq_kv, s.seq_kv, 1};
    const uint64_t count = (s.batch - 1) * strides[0] + (heads - 1) * strides[1] + (s.seq_kv - 1) * strides[2] + 1;
    numbers = uniforms(count, 0.5f, 1.5f, seed);
    for (size_t i = 0; i < numbers.size(); i += 5) numbers[i] = -numbers[i];
  }
  void apply(const AttentionShape& s, uint64_t dim, std::vector<float>& to) const {
    for (size_t i = 0; !numbers.empty() && i < to.size(); ++i) {
      const uint64_t row = i / dim, head = row / s.seq_kv;
      to[i] *= numbers[head / s.heads_of_kv() * strides[0] + head % s.heads_of_kv() * strides[1] +
                       row % s.seq_kv * strides[2]];
    }
  }
};

// Keys or values on the device.
struct StoredRows {
  StoredRows(tuff_context context, Stored stored, Scales kind, const AttentionShape& s, uint64_t dim, uint64_t seed)
      : rows{stored,
             s.batch,
             s.heads_of_kv(),
             s.seq_kv,
             dim,
             s.layout == Layout::roomy,
             s.layout == Layout::rows_first,
             {},
             {},
             {}},
        scales(is_float8(type_of(stored)) ? kind : Scales::none, s, seed + 100) {
    if (stored == Stored::plain) {
      const RowPlaces places = row_places(s.layout, s.batch, s.heads_of_kv(), s.seq_kv, dim);
      numbers = rounded(s.dtype, uniforms(s.batch * s.heads_of_kv() * s.seq_kv * dim, -1, 1, seed));
      plain.emplace(context, s.dtype, placed_rows(places, s.batch, s.heads_of_kv(), s.seq_kv, dim, numbers),
                    s.shift / size_of(s.dtype));
      std::copy_n(places.of.begin(), 3, strides.begin());
      return;
    }
    rows.fill(seed);
    numbers = rows.numbers;
    scales.apply(s, dim, numbers);
    strides = rows.strides;
    // Blocks begin at any even byte.
    quantised.emplace(context, in_blocks(stored) ? TUFF_U16 : TUFF_U8, rows.bytes, s.shift / 2);
    scale_tensor.emplace(context, TUFF_F32, floats(scales.numbers), 1);
  }
  static Bytes floats(const std::vector<float>& values) {
    Bytes result(values.size() * 4);
    if (!values.empty()) std::memcpy(result.data(), values.data(), result.size());
    return result;
  }
  tuff_buffer buffer() const { return plain ? static_cast<tuff_buffer>(*plain) : static_cast<tuff_buffer>(*quantised); }
  void expect_unchanged() const {
    if (quantised) {
      EXPECT_EQ(quantised->read(), rows.bytes);
    }
  }

  QuantisedRows rows;
  KeyScales scales;
  std::vector<float> numbers;
  std::array<uint64_t, 3> strides{};
  std::optional<StoredTensor> plain;
  std::optional<TypedTensor> quantised, scale_tensor;
};

void run_quantised(tuff_context context, const QuantisedCase& c) {
  const AttentionShape& s = c.shape;
  const RowPlaces at_q = row_places(s.layout, s.batch, s.heads, s.seq_q, s.head_dim),
                  at_o = row_places(s.layout, s.batch, s.heads, s.seq_q, s.dim_v());
  const std::vector<float> hq = rounded(s.dtype, uniforms(s.queries(), -1, 1, 1));
  const uint64_t shift = s.shift / size_of(s.dtype);
  const StoredTensor q(context, s.dtype, placed_rows(at_q, s.batch, s.heads, s.seq_q, s.head_dim, hq), shift),
      o(context, s.dtype,
        placed_rows(at_o, s.batch, s.heads, s.seq_q, s.dim_v(), std::vector<float>(s.results(), poison())), shift);
  const StoredRows k(context, c.k, c.scales, s, s.head_dim, 2), v(context, c.v, c.scales, s, s.dim_v(), 3);
  const AttentionExtras extras = attention_extras(s);
  // Nothing is rounded to 16 bits but q and o, and a bias of that type; on GPUs weights too, and numbers of blocks
  // once.
  AttentionShape computed = s;
  const char* const forced = std::getenv("TUFF_ATTENTION_VARIANT");
  const bool dequantised_first = forced != nullptr && std::strcmp(forced, "dequantised_first") == 0;
  if (properties_of(context).type == TUFF_DEVICE_CPU && !dequantised_first) computed.dtype = TUFF_F32;
  computed.rounds_stored = computed.dtype != TUFF_F32 && (in_blocks(c.k) || in_blocks(c.v));
  Expected lse, expected = solve_attention(computed, hq, k.numbers, v.numbers, extras, s.lse ? &lse : nullptr);
  add_storage(expected, s.dtype);

  tuff_attention_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype;
  desc.q = q, desc.k = k.buffer(), desc.v = v.buffer(), desc.o = o;
  desc.batch = s.batch, desc.heads = s.heads, desc.seq_q = s.seq_q, desc.seq_kv = s.seq_kv, desc.head_dim = s.head_dim;
  desc.scale = s.scale_used();
  desc.causal = s.causal;
  desc.kv_heads = s.kv_heads, desc.head_dim_v = s.head_dim_v;
  std::copy_n(at_q.of.begin(), 3, desc.q_strides);
  std::copy_n(at_o.of.begin(), 3, desc.o_strides);
  if (s.layout != Layout::heads_first) {
    std::copy_n(k.strides.begin(), 3, desc.k_strides);
    std::copy_n(v.strides.begin(), 3, desc.v_strides);
  }
  desc.softcap = s.softcap;
  desc.window_left = s.left, desc.window_right = s.right;
  desc.k_type = type_of(c.k), desc.v_type = type_of(c.v);
  desc.k_format = format_of(c.k), desc.v_format = format_of(c.v);
  if (!k.scales.numbers.empty()) desc.k_scales = *k.scale_tensor;
  if (!v.scales.numbers.empty()) desc.v_scales = *v.scale_tensor;
  std::copy_n(k.scales.strides.begin(), 3, desc.k_scale_strides);
  std::copy_n(v.scales.strides.begin(), 3, desc.v_scale_strides);
  const StoredExtras stored(context, s, extras);
  stored.tell(desc);
  const Tensor sums(context, s.lse ? s.batch * s.heads * s.seq_q : 0, 4);
  if (s.lse) desc.lse = sums;
  ASSERT_OK(tuff_attention_ex(context, &desc));
  if (s.lse) expect_matches(sums.read(), lse);
  expect_matches(gathered_rows(at_o, s.batch, s.heads, s.seq_q, s.dim_v(), o.read()), expected);
  k.expect_unchanged();
  v.expect_unchanged();
}

using AttentionQuantised = Table<QuantisedCase>;
TEST_P(AttentionQuantised, WithinBound) { run_quantised(context(), row()); }
TUFF_TABLE(AttentionQuantised, QuantisedCase, cases());

class AttentionQuantisedDescriptor : public OnBackend {
 protected:
  // 2 heads with 3 rows and 5 keys, head_dim 32, keys and values in q8_0: 10 blocks each.
  tuff_attention_desc desc() {
    tuff_attention_desc d{};
    d.struct_size = sizeof d;
    d.dtype = TUFF_F32;
    d.batch = 1, d.heads = 2, d.seq_q = 3, d.seq_kv = 5, d.head_dim = 32;
    d.q = in_, d.k = blocks_, d.v = blocks_, d.o = out_;
    d.k_format = d.v_format = TUFF_QUANT_Q8_0;
    return d;
  }
  tuff_attention_desc float8() {
    tuff_attention_desc d = desc();
    d.k_format = d.v_format = 0;
    d.k_type = d.v_type = TUFF_F8_E4M3;
    return d;
  }
  void expect_refused(const tuff_attention_desc& d, tuff_status status, const char* word) {
    EXPECT_FAILS(tuff_attention_ex(context(), &d), status, "tuff_attention_ex", word);
  }
  Tensor in_{context(), std::vector<float>(192, 0.5f)}, out_{context(), 192};
  TypedTensor blocks_{context(), TUFF_U16, Bytes(340, 1)};
};

TEST_P(AttentionQuantisedDescriptor, RefusesWhatIsWrong) {
  const auto wrong = [&](tuff_attention_desc d, auto change, const char* word, tuff_status status = kArgument) {
    change(d);
    expect_refused(d, status, word);
  };
  wrong(
      desc(), [](auto& d) { d.k_format = 77; }, "k_format");
  wrong(
      desc(), [](auto& d) { d.v_format = -1; }, "v_format");
  wrong(
      desc(), [](auto& d) { d.k_format = TUFF_QUANT_Q4_K; }, "k_format", kUnsupported);
  wrong(
      desc(), [](auto& d) { d.v_format = TUFF_QUANT_I8; }, "v_format", kUnsupported);
  wrong(
      desc(), [](auto& d) { d.k_type = TUFF_F8_E4M3; }, "k_type");
  wrong(
      desc(), [](auto& d) { d.v_type = TUFF_F32; }, "v_type");
  wrong(
      desc(), [](auto& d) { d.head_dim = 48; }, "head_dim");
  wrong(
      desc(), [](auto& d) { d.head_dim_v = 16; }, "head_dim_v");
  wrong(
      desc(), [](auto& d) { d.k_strides[2] = 40; }, "k_strides");
  wrong(
      desc(), [](auto& d) { d.v_strides[1] = 33; }, "v_strides");
  wrong(
      desc(), [](auto& d) { d.v_strides[0] = 1; }, "v_strides");
  wrong(
      desc(), [](auto& d) { d.k_strides[2] = 64; }, "k");  // beyond the end
  wrong(
      desc(), [](auto& d) { d.seq_kv = 6; }, "k");  // a block more
  wrong(
      desc(), [](auto& d) { d.k_scales = d.q; }, "k_scales");
  wrong(
      desc(), [](auto& d) { d.k = d.o; }, "k");
  wrong(
      desc(), [](auto& d) { d.lse = d.v; }, "lse");
  wrong(
      float8(), [](auto& d) { d.k_type = 77; }, "k_type");
  wrong(
      float8(), [](auto& d) { d.v_type = TUFF_F16; }, "v_type", kUnsupported);
  wrong(
      float8(), [](auto& d) { d.k_type = TUFF_I8; }, "k_type", kUnsupported);
  wrong(
      float8(), [](auto& d) { d.k_scales = d.q, d.k_scale_strides[2] = 100; }, "k_scales");
  wrong(
      float8(), [](auto& d) { d.v_scales = d.q, d.v_scale_strides[1] = ~uint64_t{0} / 2; }, "v_scales");
  wrong(
      float8(), [](auto& d) { d.v_scales = d.o; }, "v_scales");
  wrong(
      float8(), [](auto& d) { d.k_type = TUFF_F32; }, "k");  // not enough of them
  wrong(
      float8(), [](auto& d) { d.k_type = 0, d.k_scales = d.q; }, "k_scales");
  // Blocks begin at even bytes.
  tuff_buffer odd = TUFF_NULL_HANDLE;
  ASSERT_OK(tuff_view(blocks_, 1, 338, &odd));
  wrong(
      desc(), [&](auto& d) { d.seq_kv = 4, d.k = odd; }, "k");
  ASSERT_OK(tuff_free(odd));
  out_.expect_poisoned();
}

// A caller of the structure's version before: what lies beyond it is not read.
TEST_P(AttentionQuantisedDescriptor, OlderStructureIsRead) {
  tuff_attention_desc d = desc();
  d.k = d.v = in_;
  d.seq_kv = 3;
  d.struct_size = offsetof(tuff_attention_desc, k_format);
  ASSERT_OK(tuff_attention_ex(context(), &d));
  for (const float got : out_.read()) EXPECT_NEAR(got, 0.5f, 0x1p-20f);
}

// A scale of NaN belongs to a key that is hidden.
TEST_P(AttentionQuantisedDescriptor, HiddenScalesDoNotCount) {
  tuff_attention_desc d = float8();
  const Tensor scales(context(), std::vector<float>{1, 1, 1, NAN, NAN});
  const TypedTensor ones(context(), TUFF_U8, Bytes(320, 0x38));
  const TypedTensor lengths(context(), TUFF_I32, Bytes{3, 0, 0, 0});
  d.k = d.v = ones;
  d.k_scales = d.v_scales = scales;
  d.k_scale_strides[2] = d.v_scale_strides[2] = 1;
  d.kv_lengths = lengths;
  for (const uint64_t rows : {uint64_t{1}, uint64_t{3}}) {
    d.seq_q = rows;
    ASSERT_OK(tuff_attention_ex(context(), &d));
    const std::vector<float> got = out_.read();
    for (uint64_t i = 0; i < rows * 64; ++i) ASSERT_NEAR(got[i], 1, 0x1p-20f) << i;
  }
}

// A dispatch has too few operands for all options with both scales; the host has no such limit.
TEST_P(AttentionQuantisedDescriptor, DevicesTakeFiveOptionsWithScales) {
  tuff_attention_desc d = float8();
  const TypedTensor ones(context(), TUFF_U8, Bytes(320, 0x38)), lengths(context(), TUFF_I32, Bytes{3, 0, 0, 0});
  const Tensor scales(context(), std::vector<float>{1}), lse(context(), 6);
  d.k = d.v = ones, d.k_scales = d.v_scales = scales, d.bias = in_, d.bias_type = TUFF_F32;
  d.q_lengths = d.kv_lengths = lengths;
  ASSERT_OK(tuff_attention_ex(context(), &d));
  for (const float got : out_.read()) ASSERT_NEAR(got, 1, 0x1p-20f);
  d.lse = lse;
  if (vulkan()) {
    expect_refused(d, kUnsupported, "v_scales");
    lse.expect_poisoned();
  } else {
    EXPECT_OK(tuff_attention_ex(context(), &d));
  }
}

// Dot products beyond f32 of finite numbers: the key with the larger one has all the weight.
TEST_P(AttentionQuantisedDescriptor, FiniteNumbersGiveFiniteResults) {
  tuff_attention_desc d = float8();
  Bytes keys(320, 0x38), values(320, 0x38);    // 1
  std::fill_n(keys.begin() + 64, 32, 0x40);    // key 2 of head 0: 2
  std::fill_n(values.begin() + 64, 32, 0x48);  // 4
  const TypedTensor k(context(), TUFF_U8, keys), v(context(), TUFF_U8, values);
  const Tensor large(context(), std::vector<float>(192, 1e30f)), scales(context(), std::vector<float>{1e37f});
  d.q = large, d.k = k, d.v = v, d.k_scales = scales;
  d.scale = 1e-36;
  d.seq_q = 3;
  ASSERT_OK(tuff_attention_ex(context(), &d));
  for (const float got : out_.read()) ASSERT_TRUE(std::isfinite(got)) << got;
}

// Keys beyond the range of f16, of a query that makes scores of about 1 from them.
TEST_P(AttentionQuantisedDescriptor, NumbersBeyondTheTypeCount) {
  tuff_attention_desc d = desc();
  d.dtype = TUFF_F16, d.scale = 1;
  const auto blocks = [&](uint32_t scale, signed char first, signed char rest) {
    Bytes all;  // 2 heads of 5 keys
    for (int key = 0; key < 10; ++key) {
      all.push_back(static_cast<unsigned char>(scale)), all.push_back(static_cast<unsigned char>(scale >> 8));
      all.insert(all.end(), 32, static_cast<unsigned char>(key % 5 == 0 ? first : rest));
    }
    return all;
  };
  Bytes queries;
  for (int i = 0; i < 192; ++i) queries.push_back(1), queries.push_back(0);  // 2^-24
  const TypedTensor q(context(), TUFF_F16, queries), k(context(), TUFF_I8, blocks(0x7bff, -8, 0)),
      v(context(), TUFF_I8, blocks(0x7b53, 1, -1)),  // 65504, 60000
      o(context(), TUFF_F16, Bytes(384, 0x7e));
  d.q = q, d.k = k, d.v = v, d.o = o;
  const double weight = std::exp(-8.0 * 32 * 65504 * 0x1p-24), expected = 60000 * (weight - 4) / (weight + 4);
  for (const uint64_t rows : {uint64_t{1}, uint64_t{3}}) {
    d.seq_q = rows;
    ASSERT_OK(tuff_attention_ex(context(), &d));
    const Bytes got = o.read();
    for (uint64_t i = 0; i < 2 * rows * 32; ++i) {
      ASSERT_NEAR(half_number(got[2 * i] | static_cast<uint32_t>(got[2 * i + 1]) << 8), expected, 0x1p-9 * 60000) << i;
    }
  }
}
TUFF_ON_BACKENDS(AttentionQuantisedDescriptor);

}  // namespace
}  // namespace tuff_test::attention_quantised_test
