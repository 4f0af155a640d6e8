// Rotary position embedding, compared with long double.
#include <cmath>

#include "support/bounds.hpp"
#include "support/stored.hpp"

namespace tuff_test::rope_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

enum class Positions { counted, shared, own };

struct RopeCase {
  uint64_t batch = 1, heads = 1, seq = 1, head_dim = 64;
  uint64_t rotary = 0;  // 0: head_dim
  bool interleaved = false;
  Positions positions = Positions::counted;
  int64_t offset = 0;
  double base = 10000;
  int32_t dtype = TUFF_F32;
  bool heads_last = false, in_place = false;
  uint64_t gap = 0, shift = 0;  // elements after each row of the output; elements before the first

  std::string name() const {
    std::string text = name_of(dtype);
    for (const uint64_t size : {batch, heads, seq, head_dim}) text += "_" + std::to_string(size);
    if (rotary != 0) text += "_rotary" + std::to_string(rotary);
    text += std::string(interleaved ? "_interleaved" : "") + (heads_last ? "_headslast" : "") +
            (in_place ? "_inplace" : "");
    text += positions == Positions::own ? "_own" : positions == Positions::shared ? "_shared" : "";
    if (offset != 0) text += "_from" + std::string(offset < 0 ? "m" : "") + std::to_string(std::llabs(offset));
    if (base != 10000) text += "_base" + std::to_string(static_cast<uint64_t>(base));
    return text + (gap != 0 ? "_gap" + std::to_string(gap) : "") + (shift != 0 ? "_shift" + std::to_string(shift) : "");
  }
  double work() const { return static_cast<double>(batch * heads * seq * head_dim); }
};

std::vector<RopeCase> cases() {
  return {
      {},
      {.batch = 2, .heads = 3, .seq = 17},
      {.batch = 2, .heads = 3, .seq = 17, .interleaved = true},
      {.batch = 2, .heads = 3, .seq = 17, .rotary = 32, .positions = Positions::own},
      {.batch = 2,
       .heads = 3,
       .seq = 17,
       .rotary = 32,
       .interleaved = true,
       .positions = Positions::shared,
       .in_place = true},
      {.batch = 2, .heads = 3, .seq = 5, .head_dim = 10, .rotary = 6, .positions = Positions::own},
      {.batch = 2, .heads = 3, .seq = 5, .head_dim = 10, .interleaved = true, .shift = 1},
      {.batch = 2, .heads = 3, .seq = 5, .head_dim = 7, .rotary = 2, .in_place = true},
      {.heads = 4, .seq = 300, .head_dim = 128, .offset = 2'000'000'000},
      {.heads = 4, .seq = 300, .head_dim = 128, .offset = -100, .base = 500'000},
      {.batch = 2, .heads = 5, .seq = 33, .heads_last = true, .gap = 4},
      {.batch = 2, .heads = 5, .seq = 33, .heads_last = true, .in_place = true},
      {.batch = 2, .heads = 5, .seq = 33, .interleaved = true, .gap = 3, .shift = 2},
      {.batch = 3, .heads = 1, .seq = 70'000, .head_dim = 4},
      {.batch = 1, .heads = 32, .seq = 512, .head_dim = 128, .positions = Positions::own},
      {.batch = 2, .heads = 4, .seq = 50, .dtype = TUFF_F16},
      {.batch = 2, .heads = 4, .seq = 50, .interleaved = true, .offset = 3, .dtype = TUFF_BF16, .shift = 1},
      {.batch = 1, .heads = 2, .seq = 9, .head_dim = 2048},
  };
}

using Rope = Table<RopeCase>;

TEST_P(Rope, WithinBound) {
  const RopeCase& s = row();
  const uint64_t rotary = s.rotary != 0 ? s.rotary : s.head_dim, half = rotary / 2, rows = s.batch * s.heads * s.seq;
  const uint64_t wide = s.head_dim + s.gap;  // pitch of a row in the output
  const std::vector<float> x = rounded(s.dtype, spreads(rows * s.head_dim, 1));
  const uint64_t stored = s.positions == Positions::own      ? s.batch * s.seq
                          : s.positions == Positions::shared ? s.seq
                                                             : 0;
  std::vector<float> positions(stored);
  Random random(2);
  for (float& position : positions) position = from_bits(static_cast<uint32_t>(random.next() % 200'000));
  const StoredTensor input(context(), s.dtype, x, s.shift),
      apart(context(), s.dtype, s.in_place ? 0 : rows * wide, s.shift);
  const Tensor places(context(), positions);
  const StoredTensor& output = s.in_place ? input : apart;
  tuff_rope_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype;
  desc.input = input, desc.output = output;
  if (stored != 0) desc.positions = places;
  if (s.positions == Positions::own) desc.positions_stride = s.seq;
  desc.batch = s.batch, desc.heads = s.heads, desc.seq = s.seq, desc.head_dim = s.head_dim, desc.rotary_dim = s.rotary;
  desc.offset = s.offset, desc.base = s.base, desc.interleaved = s.interleaved;
  const uint64_t head = s.heads_last ? 1 : s.seq, step = s.heads_last ? s.heads : 1;  // in rows
  const uint64_t in_rows[3] = {s.heads * s.seq, head, step};
  for (int i = 0; i < 3 && (s.heads_last || s.gap != 0); ++i) {
    desc.input_strides[i] = in_rows[i] * s.head_dim;
    desc.output_strides[i] = in_rows[i] * wide;
  }
  ASSERT_OK(tuff_rope_ex(context(), &desc));
  const std::vector<float> all = output.read();
  std::vector<float> got(rows * s.head_dim);
  Expected expected{std::vector<double>(got.size()), std::vector<double>(got.size())};
  for (uint64_t r = 0; r < rows; ++r) {
    const uint64_t b = r / (s.heads * s.seq), within = r % (s.heads * s.seq),
                   at = s.heads_last ? within / s.heads : within % s.seq;
    int64_t position = s.offset;
    position +=
        stored == 0 ? static_cast<int64_t>(at) : bits(positions[(s.positions == Positions::own ? b * s.seq : 0) + at]);
    const float* from = x.data() + r * s.head_dim;
    for (uint64_t d = 0; d < wide; ++d) {
      if (d < s.head_dim) {
        got[r * s.head_dim + d] = all[r * wide + d];
      } else {
        EXPECT_EQ(bits(all[r * wide + d]), kPoison) << "between rows";
      }
    }
    for (uint64_t d = 0; d < s.head_dim; ++d) expected.value[r * s.head_dim + d] = from[d];
    for (uint64_t i = 0; i < half; ++i) {
      const long double angle = static_cast<long double>(position) *
                                std::pow(static_cast<long double>(s.base),
                                         -2.0L * static_cast<long double>(i) / static_cast<long double>(rotary));
      const auto cosine = static_cast<double>(std::cos(angle)), sine = static_cast<double>(std::sin(angle));
      const uint64_t first = s.interleaved ? 2 * i : i, second = s.interleaved ? 2 * i + 1 : i + half;
      const double p = from[first], q = from[second];
      expected.value[r * s.head_dim + first] = p * cosine - q * sine;
      expected.value[r * s.head_dim + second] = p * sine + q * cosine;
      // Errors: sine and cosine to 4 ULP of at most 1 (2 u each), 2^-32 turns of the angle, two products and a sum.
      const double bound = (std::fabs(p) + std::fabs(q)) * (4 * 2 * kU + 0x1p-29 + 3 * kU);
      expected.bound[r * s.head_dim + first] = expected.bound[r * s.head_dim + second] = bound;
    }
  }
  add_storage(expected, s.dtype);
  expect_matches(got, expected);
  if (!s.in_place) input.expect_unchanged(x);
}
TUFF_TABLE(Rope, RopeCase, cases());

class RopeOnce : public OnBackend {};

TEST_P(RopeOnce, FlatFunctionAndNothingToDo) {
  const std::vector<float> x = spreads(2 * 3 * 8, 1);
  const Tensor input(context(), x), output(context(), x.size());
  ASSERT_OK(tuff_rope(context(), TUFF_F32, input, output, 1, 2, 3, 8, 0, 10000));
  const std::vector<float> got = output.read();
  // Position 0 leaves pairs unchanged.
  for (uint64_t h = 0; h < 2; ++h) {
    for (uint64_t d = 0; d < 8; ++d) EXPECT_EQ(got[h * 24 + d], x[h * 24 + d]);
  }
  EXPECT_OK(tuff_rope(context(), TUFF_F32, 0, 0, 0, 2, 3, 8, 0, 10000));
}

TEST_P(RopeOnce, BadArguments) {
  const Tensor x(context(), 100), y(context(), 100);
  tuff_rope_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32;
  good.input = x, good.output = y;
  good.batch = 1, good.heads = 2, good.seq = 3, good.head_dim = 8;
  const auto expect_bad = [&](tuff_status status, const char* word, auto spoil) {
    tuff_rope_desc desc = good;
    spoil(desc);
    EXPECT_FAILS(tuff_rope_ex(context(), &desc), status, "tuff_rope_ex", word);
  };
  expect_bad(kArgument, "dtype", [](auto& d) { d.dtype = 0; });
  expect_bad(TUFF_ERROR_UNSUPPORTED, "dtype", [](auto& d) { d.dtype = TUFF_F64; });
  expect_bad(kArgument, "rotary_dim", [](auto& d) { d.rotary_dim = 3; });
  expect_bad(kArgument, "rotary_dim", [](auto& d) { d.rotary_dim = 10; });
  expect_bad(kArgument, "rotary_dim", [](auto& d) { d.head_dim = 7; });
  for (const double base : {1.0, -5.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    expect_bad(kArgument, "base", [&](auto& d) { d.base = base; });
  }
  expect_bad(kArgument, "interleaved", [](auto& d) { d.interleaved = 2; });
  expect_bad(kArgument, "offset", [](auto& d) { d.offset = int64_t{1} << 40; });
  expect_bad(kArgument, "offset", [](auto& d) { d.offset = 2147483646; });
  expect_bad(kArgument, "input", [](auto& d) { d.seq = 30; });
  expect_bad(kArgument, "heads", [](auto& d) { d.heads = ~uint64_t{0}; });
  expect_bad(kArgument, "output_strides", [](auto& d) { d.output_strides[1] = 4, d.output_strides[2] = 8; });
  expect_bad(kArgument, "output",
             [&](auto& d) { d.output = d.input, d.input_strides[1] = 8, d.input_strides[2] = 16; });
  expect_bad(kArgument, "positions", [&](auto& d) { d.positions = y; });
  expect_bad(TUFF_ERROR_INVALID_HANDLE, "positions", [&](auto& d) { d.positions = 77; });
  x.expect_poisoned();
  y.expect_poisoned();
}
TUFF_ON_BACKENDS(RopeOnce);

}  // namespace
}  // namespace tuff_test::rope_test
