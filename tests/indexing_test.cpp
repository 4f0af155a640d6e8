// Scatter, gather by coordinates and by negative indices, against loops that apply one update after another. Values are
// small integers, so that every order of combining them gives the same result, except where a bound says otherwise.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/stored.hpp"

namespace tuff_test::indexing_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr int32_t kSet = TUFF_SCATTER_SET, kAdd = TUFF_SCATTER_ADD, kMul = TUFF_SCATTER_MUL, kMax = TUFF_SCATTER_MAX,
                  kMin = TUFF_SCATTER_MIN;

uint64_t product(const std::vector<uint64_t>& sizes) {
  uint64_t result = 1;
  for (const uint64_t size : sizes) result *= size;
  return result;
}

std::string joined(const std::vector<uint64_t>& values) {
  std::string text;
  for (const uint64_t value : values) text += "_" + std::to_string(value);
  return text;
}

bool is_float(int32_t dtype) {
  return dtype == TUFF_F32 || dtype == TUFF_F16 || dtype == TUFF_BF16 || dtype == TUFF_F64 || is_float8(dtype);
}

// Elements as small integers.
int64_t value_at(int32_t dtype, const Bytes& bytes, uint64_t i) {
  if (is_float(dtype)) return static_cast<int64_t>(element(dtype, bytes, i));
  const uint64_t size = size_of(dtype);
  int64_t value = 0;
  std::memcpy(&value, bytes.data() + i * size, std::min<uint64_t>(size, 8));
  const bool has_sign = dtype == TUFF_I8 || dtype == TUFF_I16 || dtype == TUFF_I32;
  const uint64_t drop = has_sign ? 64 - 8 * size : 0;
  return has_sign ? static_cast<int64_t>(static_cast<uint64_t>(value) << drop) >> drop : value;
}
void set_value(int32_t dtype, Bytes& bytes, uint64_t i, int64_t value) {
  if (is_float(dtype)) return set_element(dtype, bytes, i, static_cast<double>(value));
  if (dtype == TUFF_BOOL) value = value != 0 ? 1 : 0;
  // For a complex element both parts.
  const uint64_t size = size_of(dtype), part = std::min<uint64_t>(size, 8);
  for (uint64_t at = 0; at < size; at += part) std::memcpy(bytes.data() + i * size + at, &value, part);
}

enum class Form { rows, elements, coordinates };

struct IndexCase {
  std::vector<uint64_t> shape;
  uint32_t axis;
  std::vector<uint64_t> indices;  // their count; element-wise their shape; coordinates: count and numbers
  Form form = Form::rows;
  int32_t op = kSet;
  int32_t dtype = TUFF_F32, index_type = TUFF_U32;
  bool negative = false, copies = false;
  uint64_t named = 0;  // indices are below; 0: all are drawn
  uint64_t shift = 0;

  std::string name() const {
    constexpr const char* kForms[] = {"rows", "elements", "coordinates"};
    constexpr const char* kOps[] = {"", "set", "add", "mul", "max", "min"};
    return std::string(kForms[static_cast<int>(form)]) + "_" + kOps[op] + "_" + name_of(dtype) + joined(shape) +
           "_axis" + std::to_string(axis) + "_" + name_of(index_type) + joined(indices) +
           (negative ? "_negative" : "") + (copies ? "_copies" : "") +
           (named != 0 ? "_of" + std::to_string(named) : "") + (shift != 0 ? "_shift" : "");
  }
  double work() const { return static_cast<double>(product(shape)); }

  uint32_t rank() const { return static_cast<uint32_t>(shape.size()); }
  uint32_t numbers() const { return form == Form::coordinates ? static_cast<uint32_t>(indices[1]) : 1; }
  uint64_t count() const { return form == Form::elements ? product(indices) : indices[0]; }
  uint64_t inner() const {
    return form == Form::elements ? 1 : product({shape.begin() + axis + numbers(), shape.end()});
  }
  uint64_t outer() const { return form == Form::elements ? 1 : product({shape.begin(), shape.begin() + axis}); }
  uint64_t places() const {
    return form == Form::elements ? product(shape) : product({shape.begin() + axis, shape.begin() + axis + numbers()});
  }
  uint64_t updates() const { return outer() * count() * inner(); }
  void fill(auto& desc) const {
    desc.struct_size = sizeof desc;
    desc.dtype = dtype, desc.index_type = index_type, desc.rank = rank(), desc.axis = axis;
    desc.negative = negative ? 1 : 0;
    std::copy(shape.begin(), shape.end(), desc.shape);
    if (form == Form::elements) {
      desc.elementwise = 1;
      std::copy(indices.begin(), indices.end(), desc.index_shape);
    } else {
      desc.count = indices[0];
      desc.coordinates = form == Form::coordinates ? numbers() : 0;
    }
  }
};

// Indices, of which one in ten is out of range, and where they are.
struct Drawn {
  Bytes bytes;
  std::vector<int64_t> places;  // -1: out of range
};

Drawn draw_indices(const IndexCase& s) {
  const uint64_t size = size_of(s.index_type), count = s.count(), numbers = s.numbers();
  const bool has_sign = s.index_type == TUFF_I32 || s.index_type == TUFF_I64;
  Drawn drawn{Bytes(count * numbers * size), std::vector<int64_t>(count)};
  Random random(count + s.shape.size());
  for (uint64_t i = 0; i < count; ++i) {
    int64_t place = 0;
    bool inside = true;
    for (uint64_t c = 0; c < numbers; ++c) {
      const auto extent = static_cast<int64_t>(s.shape[s.axis + c]);
      const int64_t below = s.named == 0 ? extent : std::min(extent, static_cast<int64_t>(s.named));
      const uint64_t word = random.next();
      int64_t at = extent == 0 ? 0 : static_cast<int64_t>(word / 64 % static_cast<uint64_t>(below));
      bool good = extent != 0;
      int64_t stored = at;
      if (word % 10 == 0) {
        const int64_t bad[] = {extent,
                               extent + 1,
                               0x7fffffff,
                               -extent - 1,
                               -0x7fffffff - 1,
                               int64_t{1} << 32,
                               std::numeric_limits<int64_t>::min(),
                               (int64_t{1} << 32) - extent};
        stored = bad[word / 10 % (!has_sign ? 3 : size == 8 ? 8 : 5)];
        good = stored >= 0 && stored < extent;
        at = stored;
      } else if (has_sign && word % 3 == 0) {
        stored = at - extent;
        good = good && s.negative;
      }
      std::memcpy(drawn.bytes.data() + (i * numbers + c) * size, &stored, size);
      inside = inside && good;
      place = place * extent + at;
    }
    if (s.form == Form::elements) {
      // The other coordinates are the index's own.
      uint64_t rest = i, stride = 1, all = 0;
      for (uint32_t d = s.rank(); d-- > 0; rest /= s.indices[d], stride *= s.shape[d]) {
        all += (d == s.axis ? static_cast<uint64_t>(place) : rest % s.indices[d]) * stride;
      }
      place = static_cast<int64_t>(all);
    }
    drawn.places[i] = inside ? place : -1;
  }
  return drawn;
}

Bytes small_values(int32_t dtype, uint64_t count, uint64_t seed, bool powers) {
  Random random(seed);
  Bytes bytes(count * size_of(dtype));
  const bool has_sign =
      is_float(dtype) || dtype == TUFF_I8 || dtype == TUFF_I16 || dtype == TUFF_I32 || dtype == TUFF_I64;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t word = random.next() >> 8;
    const int64_t value = powers ? (word % 40 == 0 ? 2 : 1) : static_cast<int64_t>(word % 4);
    set_value(dtype, bytes, i, has_sign && word / 64 % 2 == 0 ? -value : value);
  }
  return bytes;
}

int64_t combined(int32_t op, int64_t a, int64_t b) {
  switch (op) {
    case kAdd: return a + b;
    case kMul: return a * b;
    case kMax: return std::max(a, b);
    case kMin: return std::min(a, b);
    default: return b;
  }
}

std::vector<IndexCase> scatters() {
  std::vector<IndexCase> all = {
      {{10}, 0, {25}},
      {{10}, 0, {0}},
      {{0, 3}, 0, {4}},
      {{10, 0}, 0, {4}},
      {{100, 64}, 0, {33}, Form::rows, kSet, TUFF_F32, TUFF_I32},
      {{4, 9, 12}, 1, {50}, Form::rows, kSet, TUFF_F32, TUFF_I64, true},
      {{4, 9, 13}, 1, {50}, Form::rows, kSet, TUFF_F32, TUFF_I32, true, true},
      {{4, 9, 13}, 2, {50}, Form::rows, kSet, TUFF_F16, TUFF_U64},
      {{3, 5, 16}, 1, {7}, Form::rows, kSet, TUFF_U8, TUFF_U32, false, true, 0, 3},
      {{300'000}, 0, {400'000}},
      {{300'000}, 0, {100'000}, Form::rows, kSet, TUFF_F32, TUFF_I64, true, false, 7},  // many for a few places
      {{7, 9, 5}, 0, {3, 9, 5}, Form::elements},
      {{7, 9, 5}, 1, {7, 40, 5}, Form::elements, kSet, TUFF_F32, TUFF_I32, true},
      {{7, 9, 5}, 2, {6, 8, 30}, Form::elements, kSet, TUFF_BF16, TUFF_I64, true, true},
      {{7, 9, 5}, 2, {6, 0, 9}, Form::elements},
      {{3, 2, 3, 2, 3, 2, 3, 2}, 3, {2, 1, 2, 50, 2, 1, 2, 1}, Form::elements, kSet, TUFF_I64, TUFF_I32, true},
      {{50, 70}, 0, {900, 2}, Form::coordinates},
      {{5, 6, 7, 8}, 1, {33, 2}, Form::coordinates, kSet, TUFF_F32, TUFF_I64, true},
      {{2, 3, 2, 3, 2, 3, 2, 3}, 0, {3000, 8}, Form::coordinates, kSet, TUFF_U8, TUFF_I32, true, true},
      {{5, 6, 7}, 2, {33, 1}, Form::coordinates, kSet, TUFF_F32, TUFF_I64},
      {{10}, 0, {25}, Form::rows, kAdd},
      {{10}, 0, {0}, Form::rows, kAdd},
      {{1}, 0, {100'000}, Form::rows, kAdd, TUFF_I32, TUFF_I32},  // a single place
      {{1}, 0, {100'000}, Form::rows, kAdd, TUFF_I16, TUFF_I32},
      // By atomics: in a table, at the limit of one, and beyond it, with one place for most; rows on both sides of 8.
      {{1000}, 0, {300'000}, Form::rows, kAdd, TUFF_I32, TUFF_I64, true},
      {{2048}, 0, {300'000}, Form::rows, kMax, TUFF_I32, TUFF_I32, true},
      {{2049}, 0, {300'000}, Form::rows, kMin, TUFF_I32, TUFF_I32, true, true},
      {{300'000}, 0, {300'000}, Form::rows, kAdd, TUFF_U32, TUFF_U32, false, false, 0, 3},
      {{300'000}, 0, {100'000}, Form::rows, kAdd, TUFF_I32, TUFF_U32, false, false, 1},
      {{300'000}, 0, {100'000}, Form::rows, kMin, TUFF_U32, TUFF_U64, false, false, 2},
      {{3, 40, 33}, 1, {500}, Form::rows, kMax, TUFF_U32, TUFF_I32, true},
      {{900, 7}, 0, {5000}, Form::rows, kMin, TUFF_I32, TUFF_I32},
      {{900, 9}, 0, {5000}, Form::rows, kAdd, TUFF_I32, TUFF_I32},
      {{8, 900}, 1, {5000}, Form::rows, kAdd, TUFF_I32, TUFF_I32},
      {{7, 9, 5}, 1, {7, 40, 5}, Form::elements, kAdd, TUFF_I32, TUFF_I32, true},
      {{50, 70}, 0, {9000, 2}, Form::coordinates, kMax, TUFF_I32, TUFF_I64, true},
      {{3, 2}, 0, {70'000}, Form::rows, kAdd, TUFF_I32, TUFF_I64, true},
      {{1000}, 0, {300'000}, Form::rows, kAdd, TUFF_F32, TUFF_I64, true},
      {{300'000}, 0, {300'000}, Form::rows, kAdd},
      {{70'000, 3}, 0, {129}, Form::rows, kAdd, TUFF_F16},
      {{3, 40, 33}, 1, {500}, Form::rows, kAdd, TUFF_F32, TUFF_I32, false, true},
      {{3, 40, 33}, 1, {500}, Form::rows, kMin, TUFF_I8, TUFF_I32, true, false, 0, 1},
      {{16, 1024}, 0, {64}, Form::rows, kAdd, TUFF_BF16, TUFF_U32},
      {{7, 9, 5}, 1, {7, 40, 5}, Form::elements, kAdd, TUFF_F32, TUFF_I32, true},
      {{7, 900, 5}, 1, {7, 4000, 3}, Form::elements, kMax, TUFF_F16, TUFF_I64, true},
      {{50, 70}, 0, {9000, 2}, Form::coordinates, kAdd, TUFF_F64, TUFF_U64},
      {{5, 6, 7, 8}, 1, {333, 2}, Form::coordinates, kMul, TUFF_F32, TUFF_I64, true, true}};
  for (const int32_t dtype : kAllTypes) {
    const uint64_t i = all.size();
    all.push_back({{40, 8}, 0, {90}, Form::rows, kSet, dtype, TUFF_I32, i % 2 == 0, i % 3 == 0, 0, i % 4});
    all.push_back({{13, 5}, 1, {13, 40}, Form::elements, kSet, dtype, TUFF_U32, false, false, 0, i % 3});
    if (is_float8(dtype) || is_complex(dtype)) continue;
    all.push_back({{41, 3}, 0, {300}, Form::rows, kAdd, dtype, TUFF_I32, true, i % 3 == 0, 0, i % 4});
    all.push_back({{500}, 0, {1100}, Form::rows, kMul, dtype, TUFF_I64, true});
    all.push_back({{41}, 0, {300}, Form::rows, kMax, dtype, TUFF_U32});
    all.push_back({{41}, 0, {300}, Form::rows, kMin, dtype, TUFF_U64, false, true});
  }
  return all;
}

using ShapeScatter = Table<IndexCase>;

bool lacks(tuff_context context, int32_t dtype) {
  int32_t yes = 1;
  if (dtype == TUFF_F64) tuff_supports(context, "f64", &yes);
  return yes == 0;
}

TEST_P(ShapeScatter, AsOneUpdateAfterAnother) {
  const IndexCase& s = row();
  if (s.op != kSet && lacks(context(), s.dtype)) GTEST_SKIP() << "no arithmetic of this type";
  const uint64_t size = size_of(s.dtype), elements = product(s.shape);
  const Bytes before = small_values(s.dtype, elements, 5, s.op == kMul),
              updates = small_values(s.dtype, s.updates(), 9, s.op == kMul);
  const Drawn drawn = draw_indices(s);
  const TypedTensor indices(context(), s.index_type, drawn.bytes, s.shift), from(context(), s.dtype, updates, s.shift),
      input(context(), s.dtype, before, s.shift),
      output(context(), s.dtype, s.copies ? Bytes(elements * size, 0x6b) : before, 2 * s.shift);
  tuff_scatter_desc desc{};
  s.fill(desc);
  desc.op = s.op, desc.input = s.copies ? input : TUFF_NULL_HANDLE;
  desc.indices = indices, desc.updates = from, desc.output = output;
  ASSERT_OK(tuff_scatter(context(), &desc));
  Bytes wanted = before;
  if (elements == 0) return;
  for (uint64_t o = 0; o < s.outer(); ++o) {
    for (uint64_t j = 0; j < s.count(); ++j) {
      if (drawn.places[j] < 0) continue;
      for (uint64_t i = 0; i < s.inner(); ++i) {
        const uint64_t to = (o * s.places() + static_cast<uint64_t>(drawn.places[j])) * s.inner() + i;
        const uint64_t at = (o * s.count() + j) * s.inner() + i;
        if (s.op == kSet) {
          std::memcpy(wanted.data() + to * size, updates.data() + at * size, size);
        } else {
          set_value(s.dtype, wanted, to, combined(s.op, value_at(s.dtype, wanted, to), value_at(s.dtype, updates, at)));
        }
      }
    }
  }
  const Bytes got = output.read();
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < elements; ++i) {
    const bool same = s.op == kSet || !is_float(s.dtype)
                          ? std::memcmp(got.data() + i * size, wanted.data() + i * size, size) == 0
                          : element(s.dtype, got, i) == element(s.dtype, wanted, i);  // zeros of either sign
    if (!same && wrong++ < 5) ADD_FAILURE() << "element " << i << ": " << element(s.dtype, got, i);
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(from.read() == updates);
  EXPECT_TRUE(indices.read() == drawn.bytes);
}
TUFF_TABLE(ShapeScatter, IndexCase, scatters());

std::vector<IndexCase> gathers() {
  std::vector<IndexCase> all = {
      {{10}, 0, {25}, Form::rows, kSet, TUFF_F32, TUFF_I32, true},
      {{4, 9, 12}, 1, {50}, Form::rows, kSet, TUFF_F32, TUFF_I64, true},
      {{4, 9, 12}, 1, {50}, Form::rows, kSet, TUFF_F32, TUFF_U32, true},
      {{300}, 0, {70'000}, Form::rows, kSet, TUFF_F32, TUFF_I64, true},
      {{300}, 0, {70'000}, Form::rows, kSet, TUFF_F32, TUFF_I64},
      {{300}, 0, {7000}, Form::rows, kSet, TUFF_U8, TUFF_I32, true, false, 0, 1},
      {{40, 2}, 0, {300}, Form::rows, kSet, TUFF_F32, TUFF_I64, true},  // rows of one unit
      {{5, 40}, 1, {300}, Form::rows, kSet, TUFF_F64, TUFF_I32, true},  // units in several outer rows
      {{20, 1024}, 0, {64}, Form::rows, kSet, TUFF_F32, TUFF_I64, true},
      {{3, 0, 2}, 1, {9}, Form::rows, kSet, TUFF_F32, TUFF_I64, true},
      {{3, 0, 2}, 1, {3, 9, 2}, Form::elements, kSet, TUFF_F32, TUFF_I32, true},
      {{7, 9, 5}, 1, {7, 40, 5}, Form::elements, kSet, TUFF_F32, TUFF_I32, true},
      {{7, 9, 5}, 2, {7, 4, 50}, Form::elements, kSet, TUFF_U8, TUFF_I64, true, false, 0, 3},
      {{3, 2, 3, 2, 3, 2, 3, 2}, 3, {2, 1, 2, 50, 2, 1, 2, 1}, Form::elements, kSet, TUFF_I64, TUFF_I64, true},
      {{50, 70}, 0, {9000, 2}, Form::coordinates},
      {{50, 0}, 0, {90, 2}, Form::coordinates},
      {{5, 6, 7, 8}, 1, {33, 2}, Form::coordinates, kSet, TUFF_F32, TUFF_I64, true},
      {{5, 6, 7, 8}, 0, {33, 4}, Form::coordinates, kSet, TUFF_U8, TUFF_I32},
      {{5, 6, 7, 8}, 3, {33, 1}, Form::coordinates, kSet, TUFF_F16, TUFF_U64},
      {{2, 3, 2, 3, 2, 3, 2, 3}, 0, {3000, 8}, Form::coordinates, kSet, TUFF_BF16, TUFF_I32, true, false, 0, 1}};
  return all;
}

using ShapeGatherForms = Table<IndexCase>;

TEST_P(ShapeGatherForms, Exact) {
  const IndexCase& s = row();
  const uint64_t size = size_of(s.dtype), elements = product(s.shape), results = s.updates();
  Bytes from(elements * size);
  Random random(7);
  for (unsigned char& byte : from) byte = static_cast<unsigned char>(random.next() >> 13);
  const Drawn drawn = draw_indices(s);
  const TypedTensor indices(context(), s.index_type, drawn.bytes, s.shift), input(context(), s.dtype, from, s.shift),
      output(context(), s.dtype, Bytes(results * size, 0x6b), 2 * s.shift);
  tuff_gather_desc desc{};
  s.fill(desc);
  desc.input = input, desc.indices = indices, desc.output = output;
  ASSERT_OK(tuff_gather_ex(context(), &desc));
  Bytes wanted(results * size);
  for (uint64_t i = 0; i < results; ++i) {
    const uint64_t j = i / s.inner() % s.count(), o = i / s.inner() / s.count();
    if (drawn.places[j] < 0) continue;
    const uint64_t at = (o * s.places() + static_cast<uint64_t>(drawn.places[j])) * s.inner() + i % s.inner();
    std::memcpy(wanted.data() + i * size, from.data() + at * size, size);
  }
  EXPECT_TRUE(output.read() == wanted);
}
TUFF_TABLE(ShapeGatherForms, IndexCase, gathers());

class ShapeIndexing : public OnBackend {};

tuff_scatter_desc one_axis(int32_t op, uint64_t places, uint64_t count) {
  tuff_scatter_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.index_type = TUFF_U32, desc.op = op;
  desc.rank = 1, desc.shape[0] = places, desc.count = count;
  return desc;
}

// n updates of one element, with n rounded sums of each: (n + 1) u sum |x|, in any order. The same bits twice.
TEST_P(ShapeIndexing, SumsOfFloatsAreWithinTheirBoundAndTheSameEachTime) {
  constexpr uint64_t kPlaces = 97, kCount = 60'000;
  const std::vector<float> values = uniforms(kCount, -1, 3, 3), before = uniforms(kPlaces, -1, 1, 4);
  std::vector<uint32_t> places(kCount);
  Random random(11);
  for (uint32_t& place : places)
    place = static_cast<uint32_t>((random.next() >> 20) % kPlaces * (random.next() >> 20) % kPlaces);
  std::vector<double> sums(before.begin(), before.end()), magnitudes(kPlaces);
  std::vector<uint64_t> counts(kPlaces);
  for (uint64_t i = 0; i < kPlaces; ++i) magnitudes[i] = std::fabs(double{before[i]});
  for (uint64_t i = 0; i < kCount; ++i) {
    sums[places[i]] += double{values[i]};
    magnitudes[places[i]] += std::fabs(double{values[i]});
    ++counts[places[i]];
  }
  const Tensor updates(context(), values);
  Bytes bytes(kCount * 4);
  std::memcpy(bytes.data(), places.data(), bytes.size());
  const TypedTensor indices(context(), TUFF_U32, bytes);
  std::vector<float> first;
  for (int time = 0; time < 2; ++time) {
    const Tensor output(context(), before);
    tuff_scatter_desc desc = one_axis(kAdd, kPlaces, kCount);
    desc.indices = indices, desc.updates = updates, desc.output = output;
    ASSERT_OK(tuff_scatter(context(), &desc));
    const std::vector<float> got = output.read();
    if (time == 1) {
      EXPECT_EQ(std::memcmp(got.data(), first.data(), 4 * kPlaces), 0);
    }
    first = got;
    for (uint64_t i = 0; i < kPlaces; ++i) {
      EXPECT_LE(std::fabs(double{got[i]} - sums[i]), (static_cast<double>(counts[i]) + 1) * 0x1p-24 * magnitudes[i])
          << i;
    }
  }
}

TEST_P(ShapeIndexing, NanInfinityAndZerosOfEitherSign) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> before = {1, nan, -inf, -0.0f, 0.0f, 5};
  const std::vector<uint32_t> places = {0, 1, 2, 3, 4, 0};
  const std::vector<float> values = {nan, 7, inf, 0.0f, -0.0f, 2};
  Bytes bytes(places.size() * 4);
  std::memcpy(bytes.data(), places.data(), bytes.size());
  const TypedTensor indices(context(), TUFF_U32, bytes);
  const Tensor updates(context(), values);
  const auto scattered = [&](int32_t op) {
    const Tensor output(context(), before);
    tuff_scatter_desc desc = one_axis(op, before.size(), places.size());
    desc.indices = indices, desc.updates = updates, desc.output = output;
    EXPECT_OK(tuff_scatter(context(), &desc));
    return output.read();
  };
  for (const int32_t op : {kAdd, kMul, kMax, kMin}) {
    const std::vector<float> got = scattered(op);
    EXPECT_TRUE(std::isnan(got[0])) << op;
    EXPECT_TRUE(std::isnan(got[1])) << op;
    EXPECT_EQ(got[5], 5) << op;  // no index names it
  }
  EXPECT_TRUE(std::isnan(scattered(kAdd)[2]));
  EXPECT_EQ(scattered(kMul)[2], -inf);
  EXPECT_EQ(scattered(kMax)[2], inf);
  EXPECT_EQ(scattered(kMin)[2], -inf);
  for (const int i : {3, 4}) {
    EXPECT_FALSE(std::signbit(scattered(kMax)[static_cast<size_t>(i)]));
    EXPECT_TRUE(std::signbit(scattered(kMin)[static_cast<size_t>(i)]));
  }
  const std::vector<float> set = scattered(kSet);
  EXPECT_EQ(set[0], 2);  // the last of two
  EXPECT_TRUE(std::signbit(set[4]) && !std::signbit(set[3]));
}

TEST_P(ShapeIndexing, IntegersWrap) {
  for (const int32_t dtype : {TUFF_I8, TUFF_U16, TUFF_I32, TUFF_U64}) {
    const uint64_t size = size_of(dtype);
    const TypedTensor updates(context(), dtype, Bytes(3 * size, 0x7f)), indices(context(), TUFF_U32, Bytes(12, 0)),
        output(context(), dtype, Bytes(size, 0x7f));
    tuff_scatter_desc desc = one_axis(kAdd, 1, 3);
    desc.dtype = dtype, desc.indices = indices, desc.updates = updates, desc.output = output;
    ASSERT_OK(tuff_scatter(context(), &desc));
    uint64_t one = 0, got = 0;
    std::memset(&one, 0x7f, size);
    std::memcpy(&got, output.read().data(), size);
    const uint64_t mask = size == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
    EXPECT_EQ(got, 4 * one & mask) << name_of(dtype);
  }
}

TEST_P(ShapeIndexing, BadArguments) {
  const Tensor x(context(), 100), y(context(), 100), z(context(), 100);
  const char* scatter = "tuff_scatter";
  tuff_scatter_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.index_type = TUFF_I32, good.op = kSet;
  good.rank = 2, good.shape[0] = 10, good.shape[1] = 5, good.count = 4;
  good.indices = x, good.updates = y, good.output = z;
  const auto fails = [&](auto change, tuff_status status, const char* text) {
    tuff_scatter_desc desc = good;
    change(desc);
    EXPECT_FAILS(tuff_scatter(context(), &desc), status, scatter, text);
  };
  using Desc = tuff_scatter_desc;
  fails([](Desc& d) { d.dtype = 99; }, kArgument, "dtype");
  fails([](Desc& d) { d.op = 0; }, kArgument, "op");
  fails([](Desc& d) { d.op = 6; }, kArgument, "op");
  fails([](Desc& d) { d.dtype = TUFF_F8_E4M3, d.op = kAdd; }, TUFF_ERROR_UNSUPPORTED, "dtype");
  fails([](Desc& d) { d.index_type = TUFF_F32; }, TUFF_ERROR_UNSUPPORTED, "index_type");
  fails([](Desc& d) { d.index_type = 0; }, kArgument, "index_type");
  fails([](Desc& d) { d.rank = 0; }, kArgument, "rank");
  fails([](Desc& d) { d.rank = 9; }, kArgument, "rank");
  fails([](Desc& d) { d.axis = 2; }, kArgument, "axis");
  fails([](Desc& d) { d.coordinates = 3; }, kArgument, "coordinates");
  fails([](Desc& d) { d.axis = 1, d.coordinates = 2; }, kArgument, "coordinates");
  fails([](Desc& d) { d.coordinates = 0xffffffff; }, kArgument, "coordinates");
  fails([](Desc& d) { d.elementwise = 2; }, kArgument, "elementwise");
  fails([](Desc& d) { d.elementwise = 1; }, kArgument, "count");
  fails([](Desc& d) { d.elementwise = 1, d.count = 0, d.coordinates = 1; }, kArgument, "coordinates");
  fails([](Desc& d) { d.elementwise = 1, d.count = 0, d.index_shape[0] = 3, d.index_shape[1] = 6; }, kArgument,
        "index_shape[1]");
  fails([](Desc& d) { d.negative = 2; }, kArgument, "negative");
  fails([](Desc& d) { d.reserved = 1; }, kArgument, "reserved");
  fails([](Desc& d) { d.count = 210; }, kArgument, "updates");
  fails([](Desc& d) { d.coordinates = 2, d.count = 510; }, kArgument, "indices");
  fails([](Desc& d) { d.shape[0] = 210; }, kArgument, "output");
  fails([](Desc& d) { d.shape[0] = uint64_t{1} << 63; }, kArgument, "shape");
  fails([](Desc& d) { d.count = uint64_t{1} << 63; }, kArgument, "count");
  fails([&](Desc& d) { d.output = x; }, kArgument, "output");
  fails([&](Desc& d) { d.output = y; }, kArgument, "output");
  fails([](Desc& d) { d.updates = 0; }, TUFF_ERROR_INVALID_HANDLE, "updates");
  fails([](Desc& d) { d.indices = 0; }, TUFF_ERROR_INVALID_HANDLE, "indices");
  fails([](Desc& d) { d.output = 0; }, TUFF_ERROR_INVALID_HANDLE, "output");
  tuff_buffer shifted = 0;
  ASSERT_OK(tuff_view(z, 4, 300, &shifted));
  const OwnBuffer part(shifted);
  fails([&](Desc& d) { d.input = part; }, kArgument, "output");
  tuff_gather_desc gather{};
  gather.struct_size = sizeof gather, gather.dtype = TUFF_F32, gather.index_type = TUFF_I32;
  gather.rank = 2, gather.shape[0] = 10, gather.shape[1] = 5, gather.count = 4, gather.coordinates = 3;
  gather.input = x, gather.indices = y, gather.output = z;
  EXPECT_FAILS(tuff_gather_ex(context(), &gather), kArgument, "tuff_gather_ex", "coordinates");
  gather.coordinates = 2, gather.negative = 3;
  EXPECT_FAILS(tuff_gather_ex(context(), &gather), kArgument, "tuff_gather_ex", "negative");
  gather.negative = 0, gather.count = 510;
  EXPECT_FAILS(tuff_gather_ex(context(), &gather), kArgument, "tuff_gather_ex", "indices");
}
TUFF_ON_BACKENDS(ShapeIndexing);

}  // namespace
}  // namespace tuff_test::indexing_test
