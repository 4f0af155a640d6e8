// Operations that move elements (permute, slice, concat, gather), compared bit for bit.
#include <cmath>
#include <cstring>
#include <limits>

#include "support/stored.hpp"

namespace tuff_test::shape_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

Bytes random_bytes(uint64_t count, uint64_t seed) {
  Random random(seed);
  Bytes bytes((count + 7) / 8 * 8);
  for (uint64_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = random.next();
    std::memcpy(bytes.data() + i, &word, 8);
  }
  bytes.resize(count);
  return bytes;
}

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

// --- permute ---------------------------------------------------------------------------------------------

struct PermuteCase {
  std::vector<uint64_t> shape;
  std::vector<uint32_t> order;
  int32_t dtype = TUFF_F32;
  uint64_t input_shift = 0, output_shift = 0;  // in elements

  std::string name() const {
    std::string text = name_of(dtype) + joined(shape) + "_order";
    for (const uint32_t axis : order) text += std::to_string(axis);
    if (input_shift + output_shift != 0) {
      text += "_shift" + std::to_string(input_shift) + std::to_string(output_shift);
    }
    return text;
  }
  double work() const { return static_cast<double>(product(shape)); }
};

std::vector<PermuteCase> permutes() {
  std::vector<PermuteCase> all = {{{1}, {0}},
                                  {{0, 5}, {1, 0}},
                                  {{5, 3, 0}, {2, 0, 1}},
                                  {{1000}, {0}, TUFF_F16, 1, 0},
                                  {{2, 3, 4, 5, 2, 3, 2, 3}, {7, 6, 5, 4, 3, 2, 1, 0}},
                                  {{2, 3, 4, 5, 2, 3, 2, 3}, {0, 2, 4, 6, 1, 3, 5, 7}, TUFF_I8},
                                  {{3, 2, 2, 5, 2, 2, 2, 40}, {6, 1, 4, 3, 2, 5, 0, 7}, TUFF_F16},
                                  {{20, 3, 2, 2, 5, 1, 3, 40}, {7, 4, 2, 6, 1, 5, 3, 0}, TUFF_F16},
                                  {{1, 1, 1, 1, 1, 1, 1, 1}, {3, 1, 0, 2, 7, 6, 5, 4}},
                                  {{4, 50, 8, 64}, {0, 2, 1, 3}},  // heads
                                  {{4, 50, 8, 64}, {0, 2, 1, 3}, TUFF_F16},
                                  {{4, 50, 8, 13}, {0, 2, 1, 3}, TUFF_BF16},
                                  {{4, 50, 8, 64}, {0, 2, 1, 3}, TUFF_F16, 1, 3},
                                  {{2, 100, 20, 24}, {0, 2, 3, 1}},  // channels last and back
                                  {{2, 20, 24, 100}, {0, 3, 1, 2}},
                                  {{2, 3, 65, 33}, {0, 2, 3, 1}},
                                  {{2, 65, 33, 3}, {0, 3, 1, 2}, TUFF_U8},
                                  {{1000, 1}, {1, 0}},
                                  {{3, 7, 9}, {0, 2, 1}},
                                  {{2, 70, 150}, {0, 2, 1}, TUFF_F16},  // pairs, and partial tiles
                                  {{2, 30, 20, 66}, {0, 3, 2, 1}, TUFF_BF16},
                                  {{2, 1, 70'000, 3}, {3, 1, 0, 2}},
                                  {{70'000, 17, 2}, {1, 0, 2}},
                                  {{300'000, 4}, {1, 0}, TUFF_U8},
                                  {{3000, 1500}, {1, 0}},
                                  {{20'000, 2, 16, 16}, {0, 1, 3, 2}},   // many tiles
                                  {{2, 4100, 1030, 2}, {3, 0, 2, 1}},    // 68 MB
                                  {{41'943'041}, {0}, TUFF_F32, 1, 0},   // 160 MiB
                                  {{2, 20'971'521}, {1, 0}, TUFF_F32}};  // 160 MiB too
  for (const int32_t dtype : kAllTypes) {
    const uint64_t i = all.size();
    all.push_back({{131, 67}, {1, 0}, dtype, i % 3, i % 2});
    all.push_back({{64, 128}, {1, 0}, dtype});
    all.push_back({{3, 33, 5, 130}, {3, 0, 2, 1}, dtype});
    all.push_back({{5, 16, 9}, {1, 0, 2}, dtype, i % 2, 0});
  }
  return all;
}

using ShapePermute = Table<PermuteCase>;

TEST_P(ShapePermute, Exact) {
  const PermuteCase& s = row();
  const uint64_t count = product(s.shape), size = size_of(s.dtype);
  const auto rank = static_cast<uint32_t>(s.shape.size());
  const Bytes from = random_bytes(count * size, count);
  const TypedTensor input(context(), s.dtype, from, s.input_shift),
      output(context(), s.dtype, Bytes(count * size, 0x6b), s.output_shift);
  ASSERT_OK(tuff_permute(context(), s.dtype, input, output, s.shape.data(), rank, s.order.data()));
  std::vector<uint64_t> strides(rank, 1), coordinates(rank, 0);
  for (uint32_t i = rank - 1; i-- > 0;) strides[i] = strides[i + 1] * s.shape[i + 1];
  Bytes wanted(count * size);
  uint64_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::memcpy(wanted.data() + i * size, from.data() + at * size, size);
    for (uint32_t d = rank; d-- > 0;) {
      at += strides[s.order[d]];
      if (++coordinates[d] < s.shape[s.order[d]]) break;
      at -= coordinates[d] * strides[s.order[d]];
      coordinates[d] = 0;
    }
  }
  EXPECT_TRUE(output.read() == wanted);
  EXPECT_TRUE(input.read() == from);
}
TUFF_TABLE(ShapePermute, PermuteCase, permutes());

// --- slice -----------------------------------------------------------------------------------------------

struct SliceCase {
  std::vector<uint64_t> shape, start;
  std::vector<int64_t> step;
  std::vector<uint64_t> out;
  int32_t dtype = TUFF_F32;
  uint64_t input_shift = 0, output_shift = 0;

  std::string name() const {
    std::string text = name_of(dtype) + joined(shape) + "_from" + joined(start) + "_by";
    for (const int64_t by : step)
      text +=
          (by < 0 ? "_m" : "_") + std::to_string(by < 0 ? 0 - static_cast<uint64_t>(by) : static_cast<uint64_t>(by));
    text += "_take" + joined(out);
    return text + (input_shift + output_shift != 0 ? "_shift" + std::to_string(input_shift) : "");
  }
  double work() const { return static_cast<double>(product(out)); }
};

std::vector<SliceCase> slices() {
  std::vector<SliceCase> all = {
      {{10}, {2}, {1}, {5}},
      {{10}, {9}, {-1}, {10}},
      {{10}, {9}, {-3}, {4}},
      {{10}, {4}, {3}, {0}},
      {{10, 7}, {4, 1}, {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}, {1, 1}},
      {{7, 5}, {1, 0}, {2, 1}, {3, 5}},
      {{7, 64}, {6, 0}, {-1, 1}, {7, 64}},
      {{7, 64}, {0, 8}, {1, 1}, {7, 32}},
      {{7, 64}, {0, 9}, {1, 1}, {7, 33}},
      {{7, 64}, {0, 63}, {1, -1}, {7, 64}},
      {{70, 1300}, {3, 1}, {1, 1}, {66, 1299}},  // long rows
      {{70, 1300}, {1, 0}, {3, 1}, {23, 1300}},
      {{2, 3, 4, 5, 2, 3, 2, 3}, {1, 2, 0, 4, 0, 1, 1, 2}, {1, -1, 2, -2, 1, 1, -1, -2}, {1, 3, 2, 3, 2, 2, 2, 2}},
      {{70'000, 4}, {1, 1}, {1, 1}, {69'999, 2}},
      {{3, 1000, 400}, {2, 999, 0}, {-1, -1, 1}, {3, 1000, 400}},
      {{41'000, 1024}, {1, 512}, {1, 1}, {40'999, 512}},  // of an input of 160 MiB
  };
  for (const int32_t dtype : {TUFF_F16, TUFF_F64, TUFF_I8}) {
    all.push_back({{9, 40, 24}, {1, 0, 8}, {1, 1, 1}, {8, 40, 16}, dtype});
    all.push_back({{9, 40, 24}, {1, 39, 3}, {3, -2, 5}, {3, 20, 5}, dtype, 1, 2});
  }
  return all;
}

using ShapeSlice = Table<SliceCase>;

TEST_P(ShapeSlice, Exact) {
  const SliceCase& s = row();
  const uint64_t inputs = product(s.shape), outputs = product(s.out), size = size_of(s.dtype);
  const auto rank = static_cast<uint32_t>(s.shape.size());
  const Bytes from = random_bytes(inputs * size, inputs);
  const TypedTensor input(context(), s.dtype, from, s.input_shift),
      output(context(), s.dtype, Bytes(outputs * size, 0x6b), s.output_shift);
  ASSERT_OK(
      tuff_slice(context(), s.dtype, input, output, s.shape.data(), rank, s.start.data(), s.step.data(), s.out.data()));
  Bytes wanted(outputs * size);
  for (uint64_t i = 0; i < outputs; ++i) {
    uint64_t rest = i, at = 0, stride = 1;
    for (uint32_t d = rank; d-- > 0; rest /= s.out[d], stride *= s.shape[d]) {
      at += (s.start[d] + rest % s.out[d] * static_cast<uint64_t>(s.step[d])) * stride;
    }
    std::memcpy(wanted.data() + i * size, from.data() + at * size, size);
  }
  EXPECT_TRUE(output.read() == wanted);
  EXPECT_TRUE(input.read() == from);
}
TUFF_TABLE(ShapeSlice, SliceCase, slices());

// --- concat ----------------------------------------------------------------------------------------------

struct ConcatCase {
  std::vector<uint64_t> shape;  // of the output except along the axis
  uint32_t axis;
  std::vector<uint64_t> sizes;
  int32_t dtype = TUFF_F32;
  uint64_t shift = 0;

  std::string name() const {
    return name_of(dtype) + joined(shape) + "_axis" + std::to_string(axis) + "_sizes" + joined(sizes) +
           (shift != 0 ? "_shift" : "");
  }
  double work() const { return static_cast<double>(product(shape)); }
};

std::vector<ConcatCase> concats() {
  std::vector<ConcatCase> all = {
      {{1}, 0, {3, 4}},
      {{5, 1}, 1, {1, 2, 0, 3}},
      {{1, 5}, 0, {2, 2, 1}},
      {{3, 1, 8}, 1, {4, 4}},
      {{3, 1, 7}, 1, {4, 5, 6}},
      {{2, 3, 1, 4, 1, 2, 3, 2}, 3, {4}},
      {{2, 3, 1, 4, 1, 2, 3, 2}, 4, {1, 2}},
      {{70'000, 1}, 1, {2, 3}},
      {{0, 1}, 1, {2, 3}},
      {{200, 1, 300}, 1, {30, 17}},
      {{7, 1, 4}, 1, {1, 2, 0, 3, 4, 0, 0, 5, 1, 2, 2}},  // more inputs than one dispatch can have
      {{9, 1}, 1, {300, 900}},                            // long rows
      {{9, 1}, 1, {301, 900}, TUFF_F32, 1},
  };
  for (const int32_t dtype : {TUFF_F16, TUFF_F64, TUFF_U8}) {
    all.push_back({{6, 1, 16}, 1, {8, 4}, dtype});
    all.push_back({{6, 1, 3}, 1, {5, 2, 9}, dtype, 1});
  }
  return all;
}

using ShapeConcat = Table<ConcatCase>;

TEST_P(ShapeConcat, Exact) {
  const ConcatCase& s = row();
  std::vector<uint64_t> shape = s.shape;
  shape[s.axis] = 0;
  for (const uint64_t along : s.sizes) shape[s.axis] += along;
  const uint64_t size = size_of(s.dtype), count = product(shape);
  const uint64_t outer = product({shape.begin(), shape.begin() + s.axis}),
                 inner = product({shape.begin() + s.axis + 1, shape.end()}) * size;
  std::vector<Bytes> parts;
  std::vector<TypedTensor> tensors;
  tensors.reserve(s.sizes.size());
  std::vector<tuff_buffer> inputs;
  for (const uint64_t along : s.sizes) {
    parts.push_back(random_bytes(outer * along * inner, parts.size() + 7));
    inputs.push_back(tensors.emplace_back(context(), s.dtype, parts.back(), s.shift));
  }
  const TypedTensor output(context(), s.dtype, Bytes(count * size, 0x6b), 2 * s.shift);
  ASSERT_OK(tuff_concat(context(), s.dtype, inputs.data(), s.sizes.data(), static_cast<uint32_t>(inputs.size()), output,
                        shape.data(), static_cast<uint32_t>(shape.size()), s.axis));
  Bytes wanted;
  for (uint64_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto row_bytes = static_cast<ptrdiff_t>(s.sizes[i] * inner);
      const auto begin = parts[i].begin() + static_cast<ptrdiff_t>(o) * row_bytes;
      wanted.insert(wanted.end(), begin, begin + row_bytes);
    }
  }
  EXPECT_TRUE(output.read() == wanted);
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(tensors[i].read() == parts[i]);
}
TUFF_TABLE(ShapeConcat, ConcatCase, concats());

// --- gather ----------------------------------------------------------------------------------------------

struct GatherCase {
  std::vector<uint64_t> shape;
  uint32_t axis;
  std::vector<uint64_t> indices;  // their count, or their shape
  bool elementwise = false;
  int32_t dtype = TUFF_F32, index_type = TUFF_U32;
  uint64_t shift = 0;

  std::string name() const {
    return std::string(elementwise ? "elements_" : "rows_") + name_of(dtype) + joined(shape) + "_axis" +
           std::to_string(axis) + "_" + name_of(index_type) + joined(indices) + (shift != 0 ? "_shift" : "");
  }
  double work() const { return static_cast<double>(product(shape)); }
};

std::vector<GatherCase> gathers() {
  std::vector<GatherCase> all = {
      {{10}, 0, {25}},
      {{100, 64}, 0, {33}},
      {{100, 65}, 0, {33}, false, TUFF_F32, TUFF_I32},
      {{100, 64}, 1, {33}},
      {{4, 9, 12}, 1, {5}, false, TUFF_F32, TUFF_I32},
      {{4, 9, 12}, 1, {0}},
      {{0, 9, 12}, 1, {5}},
      {{30'000, 8}, 0, {100'000}},
      {{5}, 0, {300'001}, false, TUFF_U8},
      {{7, 9, 5}, 0, {3, 9, 5}, true},
      {{7, 9, 5}, 1, {7, 20, 5}, true, TUFF_F32, TUFF_I32},
      {{7, 9, 5}, 2, {6, 8, 9}, true},
      {{7, 9, 5}, 2, {6, 0, 9}, true},
      {{3, 2, 3, 2, 3, 2, 3, 2}, 3, {2, 1, 2, 5, 2, 1, 2, 1}, true},
      {{3, 3, 3, 3, 3, 3, 3, 3}, 3, {2, 2, 2, 5, 2, 2, 2, 2}, true},  // more axes than the kernel supports
      {{300, 1000}, 1, {300, 900}, true},
      {{40, 256}, 0, {77}},  // rows of many units
      // Single elements: whole workgroups of four at a time, and some left.
      {{50'000}, 0, {100'000}},
      {{50'000}, 0, {65'537}, false, TUFF_F64, TUFF_I64},
      {{3, 5'000}, 1, {40'003}, false, TUFF_F32, TUFF_I64},
      {{20'000}, 0, {40'003}, false, TUFF_F16, TUFF_I32},
      {{5, 9, 640}, 1, {7}, false, TUFF_F16, TUFF_I32},
  };
  for (const int32_t dtype : {TUFF_F16, TUFF_F64, TUFF_I8}) {
    all.push_back({{50, 32}, 0, {77}, false, dtype});
    all.push_back({{50, 3}, 0, {77}, false, dtype, TUFF_I32, 1});
    all.push_back({{5, 9}, 1, {4, 11}, true, dtype, TUFF_I32, 1});
  }
  for (const int32_t index_type : {TUFF_I64, TUFF_U64}) {
    all.push_back({{100, 65}, 0, {33}, false, TUFF_BOOL, index_type});
    all.push_back({{4, 9, 12}, 1, {5}, false, TUFF_I64, index_type, 1});
    all.push_back({{40, 256}, 0, {77}, false, TUFF_U64, index_type});
    all.push_back({{0, 9, 12}, 1, {5}, false, TUFF_F32, index_type});
    all.push_back({{7, 9, 5}, 1, {7, 20, 5}, true, TUFF_I16, index_type});
    all.push_back({{300, 1000}, 1, {300, 900}, true, TUFF_F8_E4M3, index_type, 1});
  }
  return all;
}

using ShapeGather = Table<GatherCase>;

TEST_P(ShapeGather, Exact) {
  const GatherCase& s = row();
  const uint64_t size = size_of(s.dtype), inputs = product(s.shape), extent = s.shape[s.axis];
  std::vector<uint64_t> result = s.elementwise ? s.indices : s.shape;
  if (!s.elementwise) result[s.axis] = s.indices[0];
  const uint64_t outputs = product(result), count = product(s.indices);
  const auto rank = static_cast<uint32_t>(s.shape.size());
  const Bytes from = random_bytes(inputs * size, 3);
  const uint64_t bytes = size_of(s.index_type);
  Bytes numbers(count * bytes);
  Random random(4);
  for (uint64_t i = 0; i < count; ++i) {
    // Every tenth is out of range: just beyond the axis, far beyond it, or negative. The lower words of some of 64 bits
    // are in range.
    const uint64_t bad[6] = {
        extent, 0xffffffffu, 0x80000000u, uint64_t{1} << 32, 0x8000000000000000u, 0xffffffff00000001u};
    const uint64_t word = random.next();
    const uint64_t index = word % 10 == 0 || extent == 0 ? bad[word / 10 % (bytes == 8 ? 6 : 3)] : word / 16 % extent;
    std::memcpy(numbers.data() + bytes * i, &index, bytes);
  }
  const TypedTensor input(context(), s.dtype, from, s.shift), indices(context(), s.index_type, numbers, s.shift),
      output(context(), s.dtype, Bytes(outputs * size, 0x6b), 2 * s.shift);
  tuff_gather_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype, desc.index_type = s.index_type, desc.elementwise = s.elementwise ? 1 : 0;
  desc.input = input, desc.indices = indices, desc.output = output;
  desc.rank = rank, desc.axis = s.axis;
  std::copy(s.shape.begin(), s.shape.end(), desc.shape);
  if (s.elementwise) {
    std::copy(s.indices.begin(), s.indices.end(), desc.index_shape);
  } else {
    desc.count = count;
  }
  ASSERT_OK(tuff_gather_ex(context(), &desc));
  const uint64_t inner = product({s.shape.begin() + s.axis + 1, s.shape.end()});
  Bytes wanted(outputs * size);
  for (uint64_t i = 0; i < outputs; ++i) {
    uint64_t rest = i, at = 0, stride = 1;
    const uint64_t place = s.elementwise ? i : i / inner % s.indices[0];
    uint64_t index = 0;
    std::memcpy(&index, numbers.data() + bytes * place, bytes);
    for (uint32_t d = rank; d-- > 0; rest /= result[d], stride *= s.shape[d]) {
      at += (d == s.axis ? index : rest % result[d]) * stride;
    }
    if (index < extent) std::memcpy(wanted.data() + i * size, from.data() + at * size, size);
  }
  EXPECT_TRUE(output.read() == wanted);
  EXPECT_TRUE(input.read() == from);
}
TUFF_TABLE(ShapeGather, GatherCase, gathers());

// --- misuse ----------------------------------------------------------------------------------------------

class ShapeOnce : public OnBackend {};

TEST_P(ShapeOnce, NothingToDo) {
  const uint64_t shape[2] = {0, 7};
  const uint32_t order[2] = {1, 0};
  EXPECT_OK(tuff_permute(context(), TUFF_F64, 0, 0, shape, 2, order));
  EXPECT_OK(tuff_cast(context(), TUFF_U8, TUFF_BF16, 0, 0, 0));
}

TEST_P(ShapeOnce, BadArguments) {
  const Tensor x(context(), 100), y(context(), 100);
  const uint64_t shape[2] = {10, 9}, huge[2] = {~uint64_t{0}, 3};
  const uint32_t order[2] = {1, 0}, twice[2] = {1, 1}, beyond[2] = {0, 2};
  const char* permute = "tuff_permute";
  const auto call = [&](int32_t dtype, const uint64_t* sizes, uint32_t rank, const uint32_t* axes) {
    return tuff_permute(context(), dtype, x, y, sizes, rank, axes);
  };
  EXPECT_FAILS(call(0, shape, 2, order), kArgument, permute, "dtype");
  EXPECT_FAILS(call(TUFF_F32, nullptr, 2, order), kArgument, permute, "shape");
  EXPECT_FAILS(call(TUFF_F32, shape, 2, nullptr), kArgument, permute, "order");
  EXPECT_FAILS(call(TUFF_F32, shape, 0, order), kArgument, permute, "rank");
  EXPECT_FAILS(call(TUFF_F32, shape, 9, order), kArgument, permute, "rank");
  EXPECT_FAILS(call(TUFF_F32, shape, 2, twice), kArgument, permute, "order");
  EXPECT_FAILS(call(TUFF_F32, shape, 2, beyond), kArgument, permute, "order[1]");
  EXPECT_FAILS(call(TUFF_F32, huge, 2, order), kArgument, permute, "shape");
  EXPECT_FAILS(call(TUFF_F64, shape, 2, order), kArgument, permute, "input");
  EXPECT_FAILS(tuff_permute(context(), TUFF_F32, x, x, shape, 2, order), kArgument, permute, "output");
  const char* cast = "tuff_cast";
  EXPECT_FAILS(tuff_cast(context(), 18, TUFF_F32, x, y, 10), kArgument, cast, "input_type");
  EXPECT_FAILS(tuff_cast(context(), TUFF_F32, 0, x, y, 10), kArgument, cast, "output_type");
  EXPECT_FAILS(tuff_cast(context(), TUFF_F32, TUFF_BOOL, x, x, 10), kArgument, cast, "output");
  EXPECT_FAILS(tuff_cast(context(), TUFF_F32, TUFF_I64, x, y, 100), kArgument, cast, "output");
  EXPECT_FAILS(tuff_cast(context(), TUFF_F32, TUFF_F64, x, y, 100), kArgument, cast, "output");
  EXPECT_FAILS(tuff_cast(context(), TUFF_F32, TUFF_F16, x, x, 10), kArgument, cast, "output");
  EXPECT_FAILS(tuff_cast(context(), TUFF_F32, TUFF_F16, x, y, ~uint64_t{0}), kArgument, cast, "n");
  const uint64_t start[2] = {9, 0}, outside[2] = {10, 0}, part[2] = {4, 9}, one[2] = {1, 9};
  const int64_t back[2] = {-3, 1}, ahead[2] = {1, 1}, still[2] = {0, 1};
  const char* slice = "tuff_slice";
  const auto take = [&](const uint64_t* from, const int64_t* step, const uint64_t* out) {
    return tuff_slice(context(), TUFF_F32, x, y, shape, 2, from, step, out);
  };
  EXPECT_FAILS(take(outside, nullptr, one), kArgument, slice, "start[0]");
  EXPECT_FAILS(take(start, ahead, part), kArgument, slice, "out_shape[0]");
  EXPECT_FAILS(take(start, still, one), kArgument, slice, "step[0]");
  EXPECT_FAILS(take(nullptr, back, part), kArgument, slice, "start");
  EXPECT_FAILS(take(start, back, nullptr), kArgument, slice, "out_shape");
  EXPECT_FAILS(tuff_slice(context(), TUFF_F32, x, x, shape, 2, start, back, part), kArgument, slice, "output");
  EXPECT_FAILS(tuff_slice(context(), 77, x, y, shape, 2, start, back, part), kArgument, slice, "dtype");
  const char* concat = "tuff_concat";
  const tuff_buffer parts[2] = {x, x};
  const uint64_t sizes[2] = {4, 6}, wrong[2] = {4, 5};
  EXPECT_FAILS(tuff_concat(context(), TUFF_F32, parts, wrong, 2, y, shape, 2, 0), kArgument, concat, "sizes");
  EXPECT_FAILS(tuff_concat(context(), TUFF_F32, nullptr, sizes, 2, y, shape, 2, 0), kArgument, concat, "inputs");
  EXPECT_FAILS(tuff_concat(context(), TUFF_F32, parts, nullptr, 2, y, shape, 2, 0), kArgument, concat, "sizes");
  EXPECT_FAILS(tuff_concat(context(), TUFF_F32, parts, sizes, 2, x, shape, 2, 0), kArgument, concat, "output");
  EXPECT_FAILS(tuff_concat(context(), TUFF_F32, parts, sizes, 2, y, shape, 2, 2), kArgument, concat, "axis");
  EXPECT_FAILS(tuff_concat(context(), TUFF_F64, parts, sizes, 2, y, shape, 2, 0), kArgument, concat, "output");
  const char* gather = "tuff_gather";
  const Tensor z(context(), 100);
  const auto name = [&](int32_t index_type, uint32_t axis, uint64_t count, tuff_buffer into) {
    return tuff_gather(context(), TUFF_F32, index_type, x, y, into, shape, 2, axis, count);
  };
  EXPECT_FAILS(name(TUFF_F32, 0, 5, z), TUFF_ERROR_UNSUPPORTED, gather, "index_type");
  EXPECT_FAILS(name(0, 0, 5, z), kArgument, gather, "index_type");
  EXPECT_FAILS(name(TUFF_U32, 2, 5, z), kArgument, gather, "axis");
  EXPECT_FAILS(name(TUFF_U32, 0, 101, z), kArgument, gather, "indices");
  EXPECT_FAILS(name(TUFF_U32, 0, 13, z), kArgument, gather, "output");
  EXPECT_FAILS(name(TUFF_U32, 0, 5, x), kArgument, gather, "output");
  EXPECT_FAILS(name(TUFF_U32, 0, 5, y), kArgument, gather, "output");
  tuff_gather_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.index_type = TUFF_U32, desc.elementwise = 1;
  desc.input = x, desc.indices = y, desc.output = z;
  desc.rank = 2, desc.shape[0] = 10, desc.shape[1] = 5, desc.index_shape[0] = 3, desc.index_shape[1] = 6;
  EXPECT_FAILS(tuff_gather_ex(context(), &desc), kArgument, "tuff_gather_ex", "index_shape[1]");
  desc.index_shape[1] = 5, desc.count = 1;
  EXPECT_FAILS(tuff_gather_ex(context(), &desc), kArgument, "tuff_gather_ex", "count");
  x.expect_poisoned();
  y.expect_poisoned();
  z.expect_poisoned();
}
TEST_P(ShapeOnce, RanksOfDescriptors) {
  const Tensor x(context(), 100), y(context(), 100);
  const tuff_buffer input = x;
  for (const uint32_t rank : {0u, 9u}) {
    tuff_permute_desc permute{sizeof permute, TUFF_F32, x, y, {2, 2}, {1, 0}, rank, 0};
    EXPECT_FAILS(tuff_permute_ex(context(), &permute), kArgument, "tuff_permute_ex", "rank");
    tuff_slice_desc slice{sizeof slice, TUFF_F32, x, y, {2, 2}, {}, {1, 1}, {1, 1}, rank, 0};
    EXPECT_FAILS(tuff_slice_ex(context(), &slice), kArgument, "tuff_slice_ex", "rank");
    const uint64_t sizes[1] = {2};
    tuff_concat_desc concat{sizeof concat, TUFF_F32, &input, sizes, 1, rank, y, {2, 2}, 0, 0};
    EXPECT_FAILS(tuff_concat_ex(context(), &concat), kArgument, "tuff_concat_ex", "rank");
    tuff_gather_desc gather{};
    gather.struct_size = sizeof gather, gather.dtype = TUFF_F32, gather.index_type = TUFF_U32;
    gather.input = x, gather.output = y, gather.indices = x, gather.count = 1, gather.shape[0] = 2, gather.rank = rank;
    EXPECT_FAILS(tuff_gather_ex(context(), &gather), kArgument, "tuff_gather_ex", "rank");
  }
}

TEST_P(ShapeOnce, GatherOfAnEmptyAxisGivesZeros) {
  const uint32_t names[6] = {0, 1, 0xffffffffu, 0x80000000u, 7, 2};
  const OwnBuffer indices(context(), sizeof names);
  ASSERT_OK(tuff_copy_htod(context(), indices, 0, names, sizeof names));
  for (const int32_t index_type : {TUFF_U32, TUFF_I32}) {
    for (const int32_t dtype : {TUFF_F32, TUFF_U8, TUFF_F64}) {
      for (const uint32_t axis : {0, 1, 2}) {
        for (const bool elementwise : {false, true}) {
          tuff_gather_desc desc{};
          desc.struct_size = sizeof desc;
          desc.dtype = dtype, desc.index_type = index_type, desc.elementwise = elementwise ? 1 : 0;
          desc.rank = 3, desc.axis = axis;
          for (uint32_t i = 0; i < 3; ++i) desc.shape[i] = i == axis ? 0 : i + 2;
          uint64_t results = 6;
          if (elementwise) {
            desc.index_shape[0] = 1, desc.index_shape[1] = 3, desc.index_shape[2] = 2;
          } else {
            desc.count = 5;
            results = 5;
            for (uint32_t i = 0; i < 3; ++i) results *= i == axis ? 1 : i + 2;
          }
          const TypedTensor output(context(), dtype, Bytes(results * size_of(dtype), 0x6b), 1);
          desc.indices = indices, desc.output = output;  // without an input
          ASSERT_OK(tuff_gather_ex(context(), &desc));
          EXPECT_TRUE(output.read() == Bytes(results * size_of(dtype), 0))
              << name_of(dtype) << " axis " << axis << (elementwise ? " elementwise" : "");
          // An input that exists is not read either, however long the other axes are.
          desc.input = indices;
          desc.shape[(axis + 1) % 3] = desc.index_shape[(axis + 1) % 3] + (uint64_t{1} << 40);
          if (elementwise) {
            EXPECT_OK(tuff_gather_ex(context(), &desc));
          }
        }
      }
    }
  }
}

// An axis with more than 2^31 or 2^32 elements. Indices of type u32 reach the elements whose number has 32 bits, those
// of type i32 the ones whose number has 31, and those of 64 bits all.
TEST_P(ShapeOnce, GatherAlongAnAxisOfMoreThanIndicesName) {
  for (const uint64_t extent : {(uint64_t{1} << 31) + 16, (uint64_t{1} << 32) + 16}) {
    tuff_buffer handle = 0;
    const tuff_status allocated = tuff_alloc(context(), extent, &handle);
    // Some drivers cannot allocate as much at once (Mesa's CPU driver stops at 2 GiB), so there only the host backend
    // is tested.
    const bool refused = allocated == TUFF_ERROR_OUT_OF_DEVICE_MEMORY || allocated == TUFF_ERROR_LIMIT_EXCEEDED;
    if (refused && std::string(GetParam()) == "vulkan") return;
    ASSERT_OK(allocated);
    const OwnBuffer input(handle);
    // The last two are indices of 64 bits only.
    constexpr int kCount = 8;
    const uint64_t names[kCount] = {3,           0x7fffffffu, 0x80000000u,    0x80000005u,
                                    0xffffffffu, 0xfffffff0u, 0x1'0000'0003u, ~uint64_t{0} - 1};
    const unsigned char values[kCount] = {11, 12, 13, 14, 15, 16, 17, 18};
    for (int i = 0; i < kCount; ++i) {
      if (names[i] >= extent) continue;
      ASSERT_OK(tuff_copy_htod(context(), input, names[i], &values[i], 1));
    }
    const OwnBuffer output(context(), kCount);
    for (const int32_t index_type : {TUFF_U32, TUFF_I32, TUFF_U64, TUFF_I64}) {
      const uint64_t bytes = size_of(index_type), count = bytes == 8 ? kCount : kCount - 2;
      Bytes stored(count * bytes);
      for (uint64_t i = 0; i < count; ++i) std::memcpy(stored.data() + i * bytes, &names[i], bytes);
      const OwnBuffer indices(context(), stored.size());
      ASSERT_OK(tuff_copy_htod(context(), indices, 0, stored.data(), stored.size()));
      for (const bool elementwise : {false, true}) {
        tuff_gather_desc desc{};
        desc.struct_size = sizeof desc;
        desc.dtype = TUFF_U8, desc.index_type = index_type, desc.elementwise = elementwise ? 1 : 0;
        desc.input = input, desc.indices = indices, desc.output = output;
        desc.rank = 1, desc.shape[0] = extent;
        (elementwise ? desc.index_shape[0] : desc.count) = count;
        ASSERT_OK(tuff_gather_ex(context(), &desc));
        unsigned char got[kCount];
        ASSERT_OK(tuff_copy_dtoh(context(), got, output, 0, sizeof got));
        for (uint64_t i = 0; i < count; ++i) {
          const bool named = names[i] < extent && (index_type != TUFF_I32 || names[i] < 0x80000000u);
          EXPECT_EQ(got[i], named ? values[i] : 0) << names[i] << " of " << extent << ", type " << index_type;
        }
      }
    }
    // In reverse, the first element is further away than 32 bits can count.
    const uint64_t start = extent - 1, taken = (start - 3) / 0x10000000u + 1;
    // Only these are not zero: to fill all would take the memory that the system gives when it is first written to.
    for (const uint64_t name : names) {
      if (name < extent) {
        ASSERT_OK(tuff_fill(context(), input, name, 1, "\0", 1));
      }
    }
    Bytes wanted(taken);
    for (uint64_t i = 0; i < taken; ++i) {
      wanted[i] = static_cast<unsigned char>(i + 1);
      ASSERT_OK(tuff_copy_htod(context(), input, start - i * 0x10000000u, &wanted[i], 1));
    }
    const OwnBuffer back(context(), taken);
    const int64_t step = -0x10000000;
    ASSERT_OK(tuff_slice(context(), TUFF_U8, input, back, &extent, 1, &start, &step, &taken));
    Bytes got(taken);
    ASSERT_OK(tuff_copy_dtoh(context(), got.data(), back, 0, taken));
    EXPECT_TRUE(got == wanted) << extent;
  }
}
TUFF_ON_BACKENDS(ShapeOnce);

}  // namespace
}  // namespace tuff_test::shape_test
