// Copies between operands with strides, and padding, compared bit for bit with loops over all coordinates.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/stored.hpp"

namespace tuff_test::strided_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

Bytes random_bytes(uint64_t count) {
  Random random(count);
  Bytes bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.next() >> 17);
  return bytes;
}

uint64_t product(const std::vector<uint64_t>& sizes) {
  uint64_t result = 1;
  for (const uint64_t size : sizes) result *= size;
  return result;
}

template <typename T>
std::string joined(const std::vector<T>& values) {
  std::string text;
  for (const T value : values) {
    const bool below = static_cast<int64_t>(value) < 0;
    const auto magnitude = below ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    text += (below ? "_m" : "_") + std::to_string(magnitude);
  }
  return text;
}

// Calls body(index, coordinates) for every index of a shape, in row-major order.
template <typename Body>
void for_each_index(const std::vector<uint64_t>& shape, const Body& body) {
  const uint64_t count = product(shape);
  std::vector<uint64_t> at(shape.size());
  for (uint64_t i = 0; i < count; ++i) {
    body(i, at);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

// --- copy_strided ---------------------------------------------------------------------------------------------

struct CopyCase {
  std::vector<uint64_t> shape;
  std::vector<int64_t> from, to;
  int32_t dtype = TUFF_F32;
  uint64_t shift = 0;

  std::string name() const {
    return std::string(name_of(dtype)) + joined(shape) + "_from" + joined(from) + "_to" + joined(to) +
           (shift != 0 ? "_shift" : "");
  }
  double work() const { return static_cast<double>(product(shape)); }
};

struct Reach {
  uint64_t first = 0, elements = 1;  // the element at index 0, and how many there are from the lowest on
};
Reach reach_of(const std::vector<uint64_t>& shape, const std::vector<int64_t>& strides) {
  Reach reach;
  if (product(shape) == 0) return reach;
  for (size_t d = 0; d < shape.size(); ++d) {
    const uint64_t far = (shape[d] - 1) * static_cast<uint64_t>(std::llabs(strides[d]));
    reach.elements += far;
    if (strides[d] < 0) reach.first += far;
  }
  return reach;
}

std::vector<CopyCase> copies() {
  std::vector<CopyCase> all = {
      {{}, {}, {}},
      {{5}, {1}, {1}},
      {{5}, {-1}, {1}},
      {{5}, {1}, {-1}},
      {{5}, {0}, {-3}},
      {{0, 4}, {4, 1}, {4, 1}},
      {{1, 1}, {kMax, kLeast}, {kLeast, kMax}},  // strides of axes of one element do not matter
      {{7, 9}, {1, 7}, {9, 1}},
      {{7, 9}, {9, 1}, {1, 7}},
      {{7, 9}, {20, 2}, {30, 3}},
      {{7, 9}, {-20, 2}, {-30, -3}},
      {{7, 9}, {0, 0}, {30, 3}},
      {{33, 65}, {1, 40}, {-70, 1}},
      {{130, 70}, {80, 1}, {100, 1}},
      {{130, 70}, {1, 131}, {2, 300}},
      {{64, 64}, {65, 1}, {1, 128}, TUFF_F16},
      {{3, 4, 5, 6}, {1, 3, 12, 60}, {240, 60, 12, 2}},
      {{2, 3, 2, 3, 2, 3, 2, 3}, {1, 2, 6, 12, 36, 72, 216, 432}, {2592, 864, 432, -144, 72, 24, 12, 3}, TUFF_U8},
      {{2, 3, 2, 3, 2, 3, 2, 3}, {0, 1, 0, 3, 0, 9, 0, 27}, {648, 216, 108, 36, 18, 6, 3, 1}},
      {{300'000, 2}, {3, -1}, {5, 2}, TUFF_U8, 1},
      {{2000, 600}, {1, 2000}, {700, 1}},
      {{2000, 600}, {700, 1}, {0 + 1, 2000}},
      {{16, 2048}, {4096, 1}, {8192, 1}},
      {{1000, 1000}, {2000, 2}, {-3000, 3}}};
  for (const int32_t dtype : kAllTypes) {
    const uint64_t i = all.size();
    all.push_back({{17, 32}, {64, 1}, {80, 1}, dtype, i % 4});
    all.push_back({{17, 33}, {-1, 34}, {70, 2}, dtype, i % 3});
    all.push_back({{40, 24}, {1, 40}, {24, 1}, dtype, i % 2});
  }
  return all;
}

using ShapeStrided = Table<CopyCase>;

TEST_P(ShapeStrided, Exact) {
  const CopyCase& s = row();
  const uint64_t size = size_of(s.dtype);
  const Reach in = reach_of(s.shape, s.from), out = reach_of(s.shape, s.to);
  const bool one = product(s.shape) == 1 && !s.shape.empty();
  const Reach used_in = one ? Reach{} : in, used_out = one ? Reach{} : out;
  const Bytes from = random_bytes(used_in.elements * size), before(used_out.elements * size, 0x6b);
  const TypedTensor input(context(), s.dtype, from, s.shift), output(context(), s.dtype, before, 2 * s.shift);
  tuff_copy_strided_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype, desc.rank = static_cast<uint32_t>(s.shape.size());
  desc.input = input, desc.output = output;
  desc.input_first = used_in.first, desc.output_first = used_out.first;
  std::copy(s.shape.begin(), s.shape.end(), desc.shape);
  std::copy(s.from.begin(), s.from.end(), desc.input_strides);
  std::copy(s.to.begin(), s.to.end(), desc.output_strides);
  ASSERT_OK(tuff_copy_strided(context(), &desc));
  Bytes wanted = before;
  for_each_index(s.shape, [&](uint64_t, const std::vector<uint64_t>& at) {
    auto source = static_cast<int64_t>(used_in.first), target = static_cast<int64_t>(used_out.first);
    for (size_t d = 0; d < at.size(); ++d) {
      if (at[d] == 0) continue;
      source += static_cast<int64_t>(at[d]) * s.from[d], target += static_cast<int64_t>(at[d]) * s.to[d];
    }
    std::memcpy(wanted.data() + static_cast<uint64_t>(target) * size,
                from.data() + static_cast<uint64_t>(source) * size, size);
  });
  EXPECT_TRUE(output.read() == wanted);
  EXPECT_TRUE(input.read() == from);
}
TUFF_TABLE(ShapeStrided, CopyCase, copies());

// --- pad ------------------------------------------------------------------------------------------------------

struct PadCase {
  std::vector<uint64_t> shape;
  std::vector<int64_t> before, after;
  int32_t mode = TUFF_PAD_CONSTANT;
  int32_t dtype = TUFF_F32;
  uint64_t shift = 0;

  std::string name() const {
    constexpr const char* kModes[] = {"constant", "edge", "reflect", "symmetric", "wrap"};
    return std::string(kModes[mode]) + "_" + name_of(dtype) + joined(shape) + "_before" + joined(before) + "_after" +
           joined(after) + (shift != 0 ? "_shift" : "");
  }
  double work() const { return static_cast<double>(product(shape)); }
};

// The position that `at` stands for, step by step: reflected at one end and the other, or moved by whole axes.
int64_t stands_for(int32_t mode, int64_t at, int64_t n) {
  while (at < 0 || at >= n) {
    switch (mode) {
      case TUFF_PAD_CONSTANT: return -1;
      case TUFF_PAD_EDGE: at = at < 0 ? 0 : n - 1; break;
      case TUFF_PAD_REFLECT: at = n == 1 ? 0 : at < 0 ? -at : 2 * (n - 1) - at; break;
      case TUFF_PAD_SYMMETRIC: at = at < 0 ? -1 - at : 2 * n - 1 - at; break;
      default: at += at < 0 ? n : -n;
    }
  }
  return at;
}

std::vector<PadCase> pads() {
  std::vector<PadCase> all = {
      {{5}, {0}, {0}},
      {{5}, {-2}, {-3}},
      {{0, 3}, {2, 0}, {1, 4}},
      {{5, 0}, {1, 0}, {1, 0}},
      {{300'000}, {3}, {200'000}, TUFF_PAD_CONSTANT, TUFF_U8, 1},
      {{10'000}, {-10'000}, {20'000}},  // nothing of the input is left
      {{10'000}, {30'000}, {-10'000}},
      {{0, 300}, {200, 1}, {1, 4}},
      {{129, 127}, {0, 0}, {0, 0}},  // elements just below and above those that are filled
      {{127, 129}, {0, 0}, {0, 1}},
      {{16'384}, {3}, {0}, TUFF_PAD_CONSTANT, TUFF_U8},  // bytes that are no whole words
      {{2, 3, 20, 3, 20, 3, 2, 3}, {1, -1, 2, 0, 1, 1, 0, 5}, {0, 1, -1, 0, 2, -2, 0, 1}, TUFF_PAD_CONSTANT, TUFF_F64},
      {{1000, 256}, {1, 0}, {2, 0}},
      {{1000, 255}, {1, 0}, {2, 0}},
      {{500, 700}, {3, 5}, {3, 5}, TUFF_PAD_REFLECT},
      {{2, 3, 64, 65}, {0, 0, 1, 1}, {0, 0, 1, 1}},
      {{2, 3, 64, 65}, {0, 0, 1, 1}, {0, 0, 1, 1}, TUFF_PAD_EDGE, TUFF_F16},
      {{2, 3, 2, 3, 2, 3, 2, 3}, {1, 0, 2, 0, 1, 1, 0, 1}, {0, 1, 0, 0, 2, 0, 0, 1}},
      {{2, 3, 2, 3, 2, 3, 2, 3}, {1, -1, 2, 0, 1, 1, 0, 5}, {0, 1, -1, 0, 2, -2, 0, 1}, TUFF_PAD_WRAP, TUFF_U16}};
  for (int32_t mode = TUFF_PAD_CONSTANT; mode <= TUFF_PAD_WRAP; ++mode) {
    all.push_back({{4}, {3}, {3}, mode});
    all.push_back({{1}, {7}, {2}, mode});
    all.push_back({{2}, {9}, {11}, mode, TUFF_I64});
    all.push_back({{5}, {40}, {43}, mode, TUFF_U8});
    all.push_back({{5}, {-3}, {9}, mode});
    all.push_back({{5, 6}, {9, -4}, {-2, 13}, mode, TUFF_F16, 1});
    all.push_back({{3, 5, 8}, {1, 6, 0}, {2, 1, 0}, mode});
    all.push_back({{3, 5, 8}, {0, 6, 0}, {0, 1, 0}, mode, TUFF_F16});
    all.push_back({{3, 1, 7}, {2, 2, 2}, {2, 2, 2}, mode});
    // Large enough for copies on a CPU: the longest borders that they make, borders longer by one element, elements
    // removed from one axis, and axes with a border at one end, one of a single element among them.
    all.push_back({{131, 149}, {2, 3}, {1, 7}, mode, TUFF_F16, 1});
    all.push_back({{30, 9, 75}, {29, 8, 74}, {29, 0, 74}, mode});
    all.push_back({{30, 9, 75}, {30, 9, 75}, {1, 0, 75}, mode, TUFF_I64});
    all.push_back({{30, 9, 75}, {31, 9, 76}, {1, 0, 75}, mode});
    all.push_back({{20'000}, {10}, {19'999}, mode, TUFF_U8, 1});
    all.push_back({{131, 149}, {0, 3}, {-1, 7}, mode});
    all.push_back({{3, 1, 90, 100}, {2, 0, 5, 0}, {1, 0, 0, 9}, mode});
    all.push_back({{2, 700, 1, 33}, {0, 1, 0, 0}, {1, 0, 0, 0}, mode, TUFF_F64});
  }
  for (const int32_t dtype : kAllTypes) {
    const uint64_t i = all.size();
    all.push_back({{9, 16}, {2, 0}, {1, 0}, TUFF_PAD_CONSTANT, dtype, i % 3});
    all.push_back({{9, 7}, {2, 3}, {1, 1}, TUFF_PAD_CONSTANT, dtype, i % 3});
    all.push_back({{9, 7}, {2, 3}, {1, 10}, TUFF_PAD_SYMMETRIC, dtype, i % 2});
    // Large enough to be filled on a CPU.
    all.push_back({{130, 150}, {2, 3}, {-1, 7}, TUFF_PAD_CONSTANT, dtype});
    all.push_back({{3, 90, 75}, {0, -4, 5}, {1, 2, 0}, TUFF_PAD_CONSTANT, dtype, i % 2});
    all.push_back({{130, 150}, {2, 3}, {1, 7}, TUFF_PAD_REFLECT, dtype, i % 2});
    all.push_back({{130, 150}, {2, 3}, {1, 7}, TUFF_PAD_CONSTANT, dtype, i % 2});
  }
  return all;
}

using ShapePad = Table<PadCase>;

TEST_P(ShapePad, Exact) {
  const PadCase& s = row();
  const uint64_t size = size_of(s.dtype);
  std::vector<uint64_t> result = s.shape;
  for (size_t d = 0; d < result.size(); ++d) result[d] += static_cast<uint64_t>(s.before[d] + s.after[d]);
  const Bytes from = random_bytes(product(s.shape) * size);
  const TypedTensor input(context(), s.dtype, from, s.shift),
      output(context(), s.dtype, Bytes(product(result) * size, 0x6b), 2 * s.shift);
  const bool whole = s.dtype == TUFF_I8 || s.dtype == TUFF_U8 || s.dtype == TUFF_I16 || s.dtype == TUFF_U16 ||
                     s.dtype == TUFF_I32 || s.dtype == TUFF_U32 || s.dtype == TUFF_I64 || s.dtype == TUFF_U64;
  tuff_pad_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype, desc.mode = s.mode, desc.rank = static_cast<uint32_t>(s.shape.size());
  desc.input = input, desc.output = output;
  std::copy(s.shape.begin(), s.shape.end(), desc.shape);
  std::copy(s.before.begin(), s.before.end(), desc.before);
  std::copy(s.after.begin(), s.after.end(), desc.after);
  Bytes constant(size);
  if (whole) {
    desc.integer = -2;
    std::memcpy(constant.data(), &desc.integer, size);
  } else if (s.dtype == TUFF_BOOL) {
    desc.integer = 1, constant[0] = 1;
  } else {
    desc.value = -1.75;                                      // every float type holds it
    set_element(part_of(s.dtype), constant, 0, desc.value);  // an imaginary part stays 0
  }
  ASSERT_OK(tuff_pad(context(), &desc));
  Bytes wanted(product(result) * size);
  for_each_index(result, [&](uint64_t i, const std::vector<uint64_t>& at) {
    uint64_t source = 0;
    bool inside = true;
    for (size_t d = 0; d < at.size(); ++d) {
      const int64_t place =
          stands_for(s.mode, static_cast<int64_t>(at[d]) - s.before[d], static_cast<int64_t>(s.shape[d]));
      inside = inside && place >= 0;
      source = source * s.shape[d] + static_cast<uint64_t>(place);
    }
    std::memcpy(wanted.data() + i * size, inside ? from.data() + source * size : constant.data(), size);
  });
  EXPECT_TRUE(output.read() == wanted);
  EXPECT_TRUE(input.read() == from);
}
TUFF_TABLE(ShapePad, PadCase, pads());

// --- misuse ---------------------------------------------------------------------------------------------------

class ShapeStridedOnce : public OnBackend {};

TEST_P(ShapeStridedOnce, TheConstantIsRounded) {
  struct {
    int32_t dtype;
    double value;
    uint64_t bits;
  } const rows[] = {{TUFF_F32, 0.1, 0x3dcccccd},      {TUFF_F16, 65519.9, 0x7bff}, {TUFF_F16, 65520, 0x7c00},
                    {TUFF_BF16, 1.00390625, 0x3f80},  {TUFF_F8_E4M3, 1e9, 0x7e},   {TUFF_F64, -0.0, uint64_t{1} << 63},
                    {TUFF_F32, HUGE_VAL, 0x7f800000u}};
  for (const auto& row : rows) {
    const OwnBuffer output(context(), 8);
    tuff_pad_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = row.dtype, desc.rank = 1, desc.after[0] = 1, desc.output = output, desc.value = row.value;
    ASSERT_OK(tuff_pad(context(), &desc));
    uint64_t bits = 0;
    ASSERT_OK(tuff_copy_dtoh(context(), &bits, output, 0, size_of(row.dtype)));
    EXPECT_EQ(bits, row.bits) << name_of(row.dtype) << " " << row.value;
  }
}

TEST_P(ShapeStridedOnce, BadPads) {
  const Tensor x(context(), 100), y(context(), 100);
  tuff_pad_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.rank = 2, good.shape[0] = 8, good.shape[1] = 5, good.before[0] = 2, good.after[1] = 3;
  good.input = x, good.output = y;
  using Desc = tuff_pad_desc;
  const auto fails = [&](auto change, tuff_status status, const char* text) {
    Desc desc = good;
    change(desc);
    EXPECT_FAILS(tuff_pad(context(), &desc), status, "tuff_pad", text);
  };
  fails([](Desc& d) { d.dtype = 0; }, kArgument, "dtype");
  fails([](Desc& d) { d.mode = 5; }, kArgument, "mode");
  fails([](Desc& d) { d.mode = -1; }, kArgument, "mode");
  fails([](Desc& d) { d.rank = 0; }, kArgument, "rank");
  fails([](Desc& d) { d.rank = 9; }, kArgument, "rank");
  fails([](Desc& d) { d.before[0] = -9; }, kArgument, "before[0]=-9");
  fails([](Desc& d) { d.before[0] = -4, d.after[0] = -5; }, kArgument, "after[0]=-5");
  fails([](Desc& d) { d.before[0] = kLeast, d.after[0] = kLeast; }, kArgument, "before");
  fails([](Desc& d) { d.before[0] = kMax, d.after[0] = kMax; }, kArgument, "shape");
  fails([](Desc& d) { d.before[1] = kMax; }, kArgument, "shape");
  fails([](Desc& d) { d.before[0] = 100; }, kArgument, "output");
  fails([](Desc& d) { d.shape[0] = 210, d.before[0] = -201; }, kArgument, "input");
  fails([](Desc& d) { d.shape[0] = 0, d.mode = TUFF_PAD_EDGE; }, kArgument, "shape[0]");
  fails([](Desc& d) { d.output = d.input; }, kArgument, "output");
  fails([](Desc& d) { d.output = 0; }, TUFF_ERROR_INVALID_HANDLE, "output");
  fails([](Desc& d) { d.input = 0; }, TUFF_ERROR_INVALID_HANDLE, "input");
}

TEST_P(ShapeStridedOnce, BadCopies) {
  const Tensor x(context(), 100), y(context(), 100);
  tuff_buffer whole = 0;
  ASSERT_OK(tuff_alloc(context(), 400, &whole));
  const OwnBuffer one(whole);
  tuff_copy_strided_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.rank = 2, good.shape[0] = 10, good.shape[1] = 5;
  good.input_strides[0] = good.output_strides[0] = 10, good.input_strides[1] = good.output_strides[1] = 2;
  good.input = x, good.output = y;
  using Desc = tuff_copy_strided_desc;
  const auto fails = [&](auto change, tuff_status status, const char* text) {
    Desc desc = good;
    change(desc);
    EXPECT_FAILS(tuff_copy_strided(context(), &desc), status, "tuff_copy_strided", text);
  };
  ASSERT_OK(tuff_copy_strided(context(), &good));
  fails([](Desc& d) { d.dtype = 18; }, kArgument, "dtype");
  fails([](Desc& d) { d.rank = 9; }, kArgument, "rank");
  fails([](Desc& d) { d.reserved = 1; }, kArgument, "reserved");
  fails([](Desc& d) { d.shape[0] = uint64_t{1} << 40, d.shape[1] = uint64_t{1} << 40; }, kArgument, "shape");
  fails([](Desc& d) { d.shape[0] = uint64_t{1} << 60, d.shape[1] = 2; }, kArgument, "shape");
  fails([](Desc& d) { d.input_strides[0] = 110; }, kArgument, "input");
  fails([](Desc& d) { d.input_strides[0] = -10; }, kArgument, "input");
  fails([](Desc& d) { d.input_first = 200; }, kArgument, "input");
  fails([](Desc& d) { d.input_first = ~uint64_t{0}; }, kArgument, "input");
  fails([](Desc& d) { d.input_strides[0] = kMax, d.input_strides[1] = kMax; }, kArgument, "input");
  fails([](Desc& d) { d.output_strides[0] = kLeast; }, kArgument, "output");
  fails([](Desc& d) { d.output_strides[1] = 0; }, kArgument, "output_strides[1]");
  fails([](Desc& d) { d.output_strides[0] = 4; }, kArgument, "output_strides[0]");
  fails([](Desc& d) { d.output = d.input; }, kArgument, "output");
  fails([](Desc& d) { d.output = 0; }, TUFF_ERROR_INVALID_HANDLE, "output");
  fails([](Desc& d) { d.input = 0; }, TUFF_ERROR_INVALID_HANDLE, "input");
  // Even and odd columns of one buffer are apart.
  fails([&](Desc& d) { d.input = d.output = one, d.output_first = 2; }, kArgument, "output");
  Desc odd = good;
  odd.input = odd.output = one, odd.output_first = 1;
  EXPECT_OK(tuff_copy_strided(context(), &odd));
  odd.shape[1] = 0, odd.input = odd.output = TUFF_NULL_HANDLE;
  EXPECT_OK(tuff_copy_strided(context(), &odd));
}
TUFF_ON_BACKENDS(ShapeStridedOnce);

}  // namespace
}  // namespace tuff_test::strided_test
