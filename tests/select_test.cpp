// Selection, compared bit for bit with a loop over decoded elements.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/stored.hpp"
#include "support/stream.hpp"

namespace tuff_test::select_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr uint64_t kAll = ~uint64_t{0};

enum class Fill { few, none, every, rare };

struct SelectCase {
  uint64_t n;
  int32_t op = TUFF_SELECT_NONZERO;
  int32_t mask_type = TUFF_BOOL, dtype = TUFF_F32, index_type = TUFF_I32;  // TUFF_SELECT_UNIQUE: no mask
  Fill fill = Fill::few;
  uint64_t shift = 0, capacity = kAll;
  bool output = true, indices = true, count = true, equal_nan = false;

  bool unique() const { return op == TUFF_SELECT_UNIQUE; }
  int32_t judged() const { return unique() ? dtype : mask_type; }
  std::string name() const {
    constexpr const char* kFills[] = {"few", "none", "every", "rare"};
    return std::string(unique() ? "unique" : "nonzero_") + (unique() ? "" : name_of(mask_type)) + "_" + name_of(dtype) +
           "_" + std::to_string(n) + "_" + kFills[static_cast<int>(fill)] +
           (shift != 0 ? "_shift" + std::to_string(shift) : "") +
           (capacity != kAll ? "_capacity" + std::to_string(capacity) : "") + (output ? "_output" : "") +
           (indices ? std::string("_") + name_of(index_type) : "") + (count ? "_count" : "") +
           (equal_nan ? "_equal_nan" : "");
  }
  double work() const { return static_cast<double>(n); }
};

std::vector<SelectCase> cases() {
  std::vector<SelectCase> all;
  uint32_t turn = 0;
  // Options vary from case to case, out of step with one another.
  const auto add = [&](SelectCase row) {
    row.index_type = turn % 4 == 0 ? TUFF_I32 : turn % 4 == 1 ? TUFF_I64 : turn % 4 == 2 ? TUFF_U32 : TUFF_U64;
    row.output = turn % 5 != 1, row.indices = turn % 7 != 2, row.count = turn % 3 != 2;
    if (!row.output && !row.indices) row.count = true;
    row.equal_nan = row.unique() && turn % 2 != 0;
    if (turn % 11 == 5) row.capacity = row.n / 3;
    if (turn % 13 == 7) row.capacity = row.n + 5;
    if (turn % 17 == 9) row.capacity = 0;
    ++turn;
    all.push_back(row);
  };
  for (const int32_t dtype : kAllTypes) {
    for (const uint64_t n : {0, 1, 2, 15, 16, 17, 100, 257, 4096, 5000, 20'011}) {
      const int32_t other = kAllTypes[turn % std::size(kAllTypes)];
      add({n, TUFF_SELECT_NONZERO, dtype, other, 0, static_cast<Fill>(n % 4), n % 3});
      add({n, TUFF_SELECT_UNIQUE, 0, dtype, 0, n % 5 == 0 ? Fill::rare : Fill::few, n % 3});
    }
  }
  // Several chunks of GPUs and of CPUs; masks that are read in blocks, with a rest, and those that are not.
  for (const Fill fill : {Fill::few, Fill::none, Fill::every, Fill::rare}) {
    for (const uint64_t shift : {0, 1, 16}) {
      add({300'007, TUFF_SELECT_NONZERO, TUFF_BOOL, TUFF_F32, 0, fill, shift});
      add({300'000, TUFF_SELECT_NONZERO, TUFF_U8, TUFF_C128, 0, fill, shift});
      add({100'003, TUFF_SELECT_NONZERO, TUFF_F32, TUFF_U8, 0, fill, shift});
      add({100'003, TUFF_SELECT_UNIQUE, 0, TUFF_I32, 0, fill, shift});
    }
  }
  for (const uint64_t capacity : {1, 1000, 16'384, 50'000}) {
    all.push_back({100'000, TUFF_SELECT_NONZERO, TUFF_BOOL, TUFF_F16, TUFF_I64, Fill::few, 0, capacity});
    all.push_back({100'000, TUFF_SELECT_UNIQUE, 0, TUFF_F64, TUFF_I64, Fill::few, 0, capacity});
  }
  add({5'000'003, TUFF_SELECT_NONZERO, TUFF_BOOL, TUFF_F32, 0, Fill::few});
  add({5'000'003, TUFF_SELECT_UNIQUE, 0, TUFF_F32, 0, Fill::rare});
  return all;
}

// Elements whose parts are few different patterns: zeros of both signs, NaNs of two kinds, numbers.
Bytes drawn(int32_t dtype, uint64_t n, Fill fill) {
  const int32_t type = part_of(dtype);
  const uint64_t size = size_of(type), parts = size_of(dtype) / size;
  Bytes bytes(n * parts * size);
  Random random(n + static_cast<uint64_t>(dtype));
  for (uint64_t i = 0; i < n * parts; ++i) {
    unsigned char* at = bytes.data() + i * size;
    const uint64_t word = random.next() >> 20;
    const bool some = fill == Fill::few || fill == Fill::every || (fill == Fill::rare && word / 16 % 500 == 0);
    const uint64_t pattern = !some ? 0 : fill == Fill::every ? 2 + word % 4 : word % 8;
    switch (pattern) {
      case 1: at[size - 1] = 0x80; break;                                  // -0, or the lowest integer
      case 2: std::fill(at, at + size, 0xff); break;                       // NaN, -1, a strange bool
      case 3: std::fill(at, at + size, 0xff), at[size - 1] = 0x7f; break;  // NaN without a sign
      case 4: at[0] = 1; break;                                            // denormal
      case 5: at[size - 1] = 0x3c; break;
      default: break;  // 0
    }
  }
  return bytes;
}

class Judge {
 public:
  Judge(const SelectCase& row, const Bytes& bytes) : row_(row), bytes_(bytes) {}

  bool selects(uint64_t i) const {
    if (!row_.unique()) return any_part([&](uint64_t p) { return !zero(at(i, p)); });
    if (i == 0) return true;
    const auto nan_in = [&](uint64_t k) { return any_part([&](uint64_t p) { return nan(at(k, p)); }); };
    if (nan_in(i) && nan_in(i - 1)) return !row_.equal_nan;
    if (nan_in(i) || nan_in(i - 1)) return true;
    return any_part([&](uint64_t p) { return !equal(at(i, p), at(i - 1, p)); });
  }

 private:
  int32_t type() const { return part_of(row_.judged()); }
  bool is_float() const {
    return type() == TUFF_F32 || type() == TUFF_F16 || type() == TUFF_BF16 || type() == TUFF_F64 || is_float8(type());
  }
  uint64_t parts() const { return size_of(row_.judged()) / size_of(type()); }
  uint64_t at(uint64_t i, uint64_t part) const { return i * parts() + part; }
  template <typename Holds>
  bool any_part(const Holds& holds) const {
    return holds(0) || (parts() == 2 && holds(1));
  }
  uint64_t bits(uint64_t k) const {
    uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + k * size_of(type()), size_of(type()));
    return word;
  }
  bool nan(uint64_t k) const { return is_float() && std::isnan(element(type(), bytes_, k)); }
  bool zero(uint64_t k) const { return is_float() ? element(type(), bytes_, k) == 0 : bits(k) == 0; }
  bool equal(uint64_t a, uint64_t b) const {
    if (is_float()) return element(type(), bytes_, a) == element(type(), bytes_, b);
    if (type() == TUFF_BOOL) return (bits(a) != 0) == (bits(b) != 0);
    return bits(a) == bits(b);
  }

  const SelectCase& row_;
  const Bytes& bytes_;
};

using ShapeSelect = Table<SelectCase>;

TEST_P(ShapeSelect, Exact) {
  const SelectCase& s = row();
  const uint64_t size = size_of(s.dtype), index_size = size_of(s.index_type), capacity = std::min(s.capacity, s.n + 7);
  const Bytes elements = drawn(s.dtype, s.n, s.unique() ? s.fill : Fill::few),
              masks = s.unique() ? Bytes() : drawn(s.mask_type, s.n, s.fill);
  const TypedTensor input(context(), s.dtype, elements, s.shift),
      mask(context(), s.unique() ? TUFF_U8 : s.mask_type, masks, s.shift),
      output(context(), s.dtype, Bytes(capacity * size, 0x6b), 1),
      indices(context(), s.index_type, Bytes(capacity * index_size, 0x6b), 3),
      count(context(), TUFF_U64, Bytes(8, 0x6b), 1);
  tuff_select_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype, desc.op = s.op, desc.mask_type = s.unique() ? 0 : s.mask_type;
  desc.index_type = s.index_type == TUFF_I32 && s.n % 2 != 0 ? 0 : s.index_type, desc.equal_nan = s.equal_nan ? 1 : 0;
  desc.n = s.n, desc.capacity = capacity;
  if (s.unique() || s.output) desc.input = input;
  if (!s.unique()) desc.mask = mask;
  if (s.output) desc.output = output;
  if (s.indices) desc.indices = indices;
  if (s.count) desc.count = count;
  ASSERT_OK(tuff_select(context(), &desc));

  Bytes wanted(capacity * size, 0x6b), places(capacity * index_size, 0x6b);
  const Judge judge(s, s.unique() ? elements : masks);
  uint64_t found = 0;
  for (uint64_t i = 0; i < s.n; ++i) {
    if (!judge.selects(i)) continue;
    if (found < capacity) {
      std::memcpy(wanted.data() + found * size, elements.data() + i * size, size);
      std::memcpy(places.data() + found * index_size, &i, index_size);  // little-endian
    }
    ++found;
  }
  EXPECT_TRUE(output.read() == (s.output ? wanted : Bytes(wanted.size(), 0x6b)));
  EXPECT_TRUE(indices.read() == (s.indices ? places : Bytes(places.size(), 0x6b)));
  uint64_t number = 0;
  std::memcpy(&number, count.read().data(), 8);
  EXPECT_EQ(number, s.count ? found : 0x6b6b6b6b6b6b6b6b);
  EXPECT_TRUE(input.read() == elements);
  EXPECT_TRUE(mask.read() == masks);
}
TUFF_TABLE(ShapeSelect, SelectCase, cases());

using ShapeSelection = OnBackend;

tuff_select_desc described(tuff_buffer mask, uint64_t n) {
  tuff_select_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.op = TUFF_SELECT_NONZERO, desc.mask = mask;
  desc.n = desc.capacity = n;
  return desc;
}

// A graph's launches select by what the mask holds then; the count is that of the launch.
TEST_P(ShapeSelection, InGraphsByTheMaskOfEachLaunch) {
  constexpr uint64_t kN = 1000;
  const Tensor mask(context(), std::vector<float>(kN, 1)), output(context(), kN);
  const OwnBuffer count(context(), 8);
  tuff_select_desc desc = described(mask, kN);
  desc.input = mask, desc.output = output, desc.count = count;  // the mask's own elements
  const OwnStream stream = make_stream(context());
  const OwnGraph graph = capture(stream, [&] { ASSERT_OK(tuff_select(stream, &desc)); });
  for (const uint64_t wanted : {uint64_t{1000}, uint64_t{0}, uint64_t{334}}) {
    std::vector<float> values(kN);
    for (uint64_t i = 0; i < kN; ++i)
      values[i] = wanted == 1000 || (wanted == 334 && i % 3 == 0) ? 2.0f + static_cast<float>(i) : 0.0f;
    ASSERT_OK(tuff_copy_htod(stream, mask, 0, values.data(), kN * sizeof(float)));
    ASSERT_OK(tuff_graph_launch(stream, graph));
    uint64_t found = 0;
    ASSERT_OK(tuff_copy_dtoh(stream, &found, count, 0, sizeof found));
    EXPECT_EQ(found, wanted);
    const std::vector<float> got = output.read();
    for (uint64_t i = 0; i < found; ++i) ASSERT_EQ(got[i], 2.0f + static_cast<float>(wanted == 1000 ? i : 3 * i));
  }
}

TEST_P(ShapeSelection, BadArguments) {
  const Tensor x(context(), 100), mask(context(), 100), y(context(), 100), places(context(), 100), counts(context(), 4);
  tuff_select_desc good = described(mask, 50);
  good.input = x, good.output = y, good.indices = places, good.count = counts;
  const auto fails = [&](auto change, tuff_status status, const char* text) {
    tuff_select_desc desc = good;
    change(desc);
    EXPECT_FAILS(tuff_select(context(), &desc), status, "tuff_select", text);
  };
  using Desc = tuff_select_desc;
  fails([](Desc& d) { d.dtype = 99; }, kArgument, "dtype");
  fails([](Desc& d) { d.dtype = 0; }, kArgument, "dtype");
  fails([](Desc& d) { d.op = 0; }, kArgument, "op");
  fails([](Desc& d) { d.op = 3; }, kArgument, "op");
  fails([](Desc& d) { d.mask_type = 99; }, kArgument, "mask_type");
  fails([](Desc& d) { d.index_type = 99; }, kArgument, "index_type");
  fails([](Desc& d) { d.index_type = TUFF_F32; }, TUFF_ERROR_UNSUPPORTED, "index_type");
  fails([](Desc& d) { d.equal_nan = 2; }, kArgument, "equal_nan");
  fails([](Desc& d) { d.op = TUFF_SELECT_UNIQUE; }, kArgument, "mask");
  fails([](Desc& d) { d.output = d.indices = d.count = 0; }, kArgument, "output, indices and count");
  fails([](Desc& d) { d.n = 1000; }, kArgument, "input");
  fails([](Desc& d) { d.output = 0, d.n = 1000; }, kArgument, "mask");
  fails([](Desc& d) { d.n = uint64_t{1} << 63; }, kArgument, "n");
  fails([](Desc& d) { d.capacity = uint64_t{1} << 63; }, kArgument, "capacity");
  fails([](Desc& d) { d.n = (uint64_t{1} << 31) + 1; }, kArgument, "index_type");
  fails([](Desc& d) { d.n = (uint64_t{1} << 32) + 1, d.index_type = TUFF_U32; }, kArgument, "index_type");
  fails([](Desc& d) { d.capacity = 1000; }, kArgument, "output");
  fails([](Desc& d) { d.output = 0, d.capacity = 1000; }, kArgument, "indices");
  fails([](Desc& d) { d.input = 0; }, TUFF_ERROR_INVALID_HANDLE, "input");
  fails([](Desc& d) { d.mask = 0; }, TUFF_ERROR_INVALID_HANDLE, "mask");
  fails([](Desc& d) { d.op = TUFF_SELECT_UNIQUE, d.mask = 0, d.input = 0; }, TUFF_ERROR_INVALID_HANDLE, "input");
  // Outputs overlap nothing.
  fails([](Desc& d) { d.output = d.input; }, kArgument, "output");
  fails([](Desc& d) { d.output = d.mask; }, kArgument, "output");
  fails([](Desc& d) { d.indices = d.mask; }, kArgument, "indices");
  fails([](Desc& d) { d.indices = d.output; }, kArgument, "indices");
  fails([](Desc& d) { d.count = d.mask; }, kArgument, "count");
  fails([](Desc& d) { d.count = d.indices; }, kArgument, "count");
  tuff_buffer shifted = 0;
  ASSERT_OK(tuff_view(counts, 4, 8, &shifted));
  const OwnBuffer part(shifted);
  fails([&](Desc& d) { d.count = part; }, kArgument, "count");  // not at a multiple of 8 bytes
  // Nothing was changed, and what is not wanted needs no room.
  tuff_select_desc desc = good;
  desc.output = desc.indices = desc.input = 0, desc.capacity = uint64_t{1} << 40;
  EXPECT_OK(tuff_select(context(), &desc));
}
TUFF_ON_BACKENDS(ShapeSelection);

}  // namespace
}  // namespace tuff_test::select_test
