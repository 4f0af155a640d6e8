#include "support/typed_gemm.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <sstream>

#include "support/activation.hpp"
#include "support/bounds.hpp"
#include "support/tensor.hpp"

namespace tuff_test {
namespace {

template <typename T>
T at(const Bytes& bytes, uint64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void put(Bytes& bytes, uint64_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

constexpr unsigned char kGuardByte = 0xa5;

// The magnitude that the bits of a 16-bit type encode, ignoring the sign.
double decoded16(int32_t dtype, uint16_t bits) {
  const int digits = dtype == TUFF_F16 ? 10 : 7, bias = dtype == TUFF_F16 ? 15 : 127;
  const int exponent = bits >> digits, fraction = bits & ((1 << digits) - 1);
  if (exponent == 2 * bias + 1) {
    return fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return std::ldexp(fraction, 1 - bias - digits);
  return std::ldexp((1 << digits) + fraction, exponent - bias - digits);
}

// The magnitudes of all bit patterns.
const std::vector<double>& magnitudes(int32_t dtype) {
  const auto all = [](int32_t type) {
    std::vector<double> values(0x8000);
    for (uint16_t i = 0; i < values.size(); ++i) values[i] = decoded16(type, i);
    return values;
  };
  static const std::vector<double> halves = all(TUFF_F16), bfloats = all(TUFF_BF16);
  return dtype == TUFF_F16 ? halves : bfloats;
}

// The magnitude that the bits of an 8-bit float encode, ignoring the sign.
double decoded8(int32_t dtype, int bits) {
  const bool e4m3 = dtype == TUFF_F8_E4M3;
  const int digits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
  const int exponent = bits >> digits, fraction = bits & ((1 << digits) - 1);
  if (e4m3 ? bits == 0x7f : bits > 0x7c) return std::numeric_limits<double>::quiet_NaN();
  if (!e4m3 && bits == 0x7c) return std::numeric_limits<double>::infinity();
  if (exponent == 0) return std::ldexp(fraction, 1 - bias - digits);
  return std::ldexp((1 << digits) + fraction, exponent - bias - digits);
}

int largest8(int32_t dtype) { return dtype == TUFF_F8_E4M3 ? 0x7e : 0x7b; }

// The nearest number, of two the one whose last bit is even; at most the largest.
uint8_t encoded8(int32_t dtype, double value) {
  if (std::isnan(value)) return 0x7f;
  const double magnitude = std::fabs(value);
  int best = 0;
  for (int i = 1; i <= largest8(dtype); ++i) {
    const double distance = std::fabs(decoded8(dtype, i) - magnitude);
    const double least = std::fabs(decoded8(dtype, best) - magnitude);
    if (distance < least || (distance == least && i % 2 == 0)) best = i;
  }
  return static_cast<uint8_t>(best | (std::signbit(value) ? 0x80 : 0));
}

double element8(int32_t dtype, uint8_t bits) {
  return std::copysign(decoded8(dtype, bits & 0x7f), (bits & 0x80) != 0 ? -1.0 : 1.0);
}

// Rounds by bisection: adjacent bit patterns are adjacent numbers, and of two neighbours the even one has an even last
// bit. Infinity takes the place of the next number after the largest.
uint16_t encoded16(int32_t dtype, double value) {
  const std::vector<double>& numbers = magnitudes(dtype);
  const uint16_t infinity = dtype == TUFF_F16 ? 0x7c00 : 0x7f80, sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return infinity + 1;
  uint16_t low = 0, high = infinity;
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (numbers[middle] <= magnitude ? low : high) = middle;
  }
  const double below = numbers[low];
  const double above = high == infinity ? 2 * below - numbers[low - 1] : numbers[high];
  if (magnitude - below == above - magnitude) return sign | (low % 2 == 0 ? low : high);
  return sign | (magnitude - below < above - magnitude ? low : high);
}

// A pattern that no result has: the initial contents of C and of the gaps in all operands.
const unsigned char* poison_of(int32_t dtype) {
  static constexpr uint64_t eight = 0x7ffd1d1d1d1d1d1du;
  static constexpr uint32_t four = kPoison;
  static constexpr uint16_t two = 0x7fd1;
  static constexpr uint8_t one = 0x6b, float8 = 0x7f;
  static constexpr uint64_t sixteen[] = {eight, eight};
  const void* const patterns[] = {&one, &two, &four, &eight, sixteen};
  if (is_float8(dtype)) return &float8;
  const uint64_t size = size_of(dtype);
  return static_cast<const unsigned char*>(patterns[std::countr_zero(size)]);
}

}  // namespace

uint64_t size_of(int32_t dtype) {
  static constexpr uint64_t kSizes[] = {0, 4, 2, 2, 8, 4, 4, 1, 1, 8, 8, 2, 2, 1, 1, 1, 8, 16};
  return kSizes[dtype];
}

const char* name_of(int32_t dtype) {
  static const char* const names[] = {"",    "f32", "f16", "bf16", "f64",  "i32",     "u32",     "i8",  "u8",
                                      "i64", "u64", "i16", "u16",  "bool", "f8_e4m3", "f8_e5m2", "c64", "c128"};
  return names[dtype];
}

double element(int32_t dtype, const Bytes& bytes, uint64_t i) {
  switch (dtype) {
    case TUFF_F64: return at<double>(bytes, i);
    case TUFF_I32: return at<int32_t>(bytes, i);
    case TUFF_U32: return at<uint32_t>(bytes, i);
    case TUFF_I8: return at<int8_t>(bytes, i);
    case TUFF_U8: return at<uint8_t>(bytes, i);
    case TUFF_I64: return static_cast<double>(at<int64_t>(bytes, i));
    case TUFF_F32: return double{at<float>(bytes, i)};
    case TUFF_F8_E4M3:
    case TUFF_F8_E5M2: return element8(dtype, at<uint8_t>(bytes, i));
    default: {
      const auto word = at<uint16_t>(bytes, i);
      return std::copysign(magnitudes(dtype)[word & 0x7fff], (word & 0x8000) != 0 ? -1.0 : 1.0);
    }
  }
}

float rounded(int32_t dtype, double value) {
  if (dtype == TUFF_F32) return static_cast<float>(value);
  if (is_float8(dtype)) return static_cast<float>(element8(dtype, encoded8(dtype, value)));
  const uint16_t word = encoded16(dtype, value);
  return static_cast<float>(std::copysign(magnitudes(dtype)[word & 0x7fff], value));
}

void set_element(int32_t dtype, Bytes& bytes, uint64_t i, double value) {
  switch (dtype) {
    case TUFF_F64: return put(bytes, i, value);
    case TUFF_I32: return put(bytes, i, static_cast<int32_t>(value));
    case TUFF_U32: return put(bytes, i, static_cast<uint32_t>(value));
    case TUFF_I8: return put(bytes, i, static_cast<int8_t>(value));
    case TUFF_U8: return put(bytes, i, static_cast<uint8_t>(value));
    case TUFF_I64: return put(bytes, i, static_cast<int64_t>(value));
    case TUFF_F32: return put(bytes, i, static_cast<float>(value));
    case TUFF_F8_E4M3:
    case TUFF_F8_E5M2: return put(bytes, i, encoded8(dtype, value));
    default: return put(bytes, i, encoded16(dtype, value));
  }
}

std::vector<double> numbers_of(int32_t dtype, const Bytes& bytes) {
  std::vector<double> numbers(bytes.size() / size_of(dtype));
  for (uint64_t i = 0; i < numbers.size(); ++i) numbers[i] = element(dtype, bytes, i);
  return numbers;
}

void set_poison(int32_t dtype, Bytes& bytes, uint64_t i) {
  const uint64_t size = size_of(dtype);
  std::memcpy(bytes.data() + i * size, poison_of(dtype), size);
}

void poison_all(int32_t dtype, Bytes& bytes) {
  for (uint64_t i = 0; i < bytes.size() / size_of(dtype); ++i) set_poison(dtype, bytes, i);
}

bool is_poison(int32_t dtype, const Bytes& bytes, uint64_t i) {
  const uint64_t size = size_of(dtype);
  return std::memcmp(poison_of(dtype), bytes.data() + i * size, size) == 0;
}

double unit_roundoff(int32_t dtype) {
  switch (dtype) {
    case TUFF_F64: return 0x1p-53;
    case TUFF_F32: return 0x1p-24;
    case TUFF_F16: return 0x1p-11;
    case TUFF_BF16: return 0x1p-8;
    case TUFF_F8_E4M3: return 0x1p-4;
    case TUFF_F8_E5M2: return 0x1p-3;
    default: return 0;
  }
}

TypedTensor::TypedTensor(tuff_context context, int32_t dtype, const Bytes& bytes, uint64_t shift)
    : context_(context), bytes_(bytes.size()), before_(512 + shift * size_of(dtype)) {
  constexpr uint64_t kInside = 64, kAround = 512;
  const Bytes front(before_, kGuardByte), behind(kInside + kAround, kGuardByte);
  whole_ = OwnBuffer(context, before_ + bytes_ + behind.size());
  EXPECT_OK(tuff_copy_htod(context, whole_, 0, front.data(), front.size()));
  EXPECT_OK(tuff_copy_htod(context, whole_, before_, bytes.data(), bytes_));
  EXPECT_OK(tuff_copy_htod(context, whole_, before_ + bytes_, behind.data(), behind.size()));
  tuff_buffer view = 0;
  EXPECT_OK(tuff_view(whole_, before_, bytes_ + kInside, &view));
  view_ = OwnBuffer(view);
}

Bytes TypedTensor::read() const {
  uint64_t size = 0;
  EXPECT_OK(tuff_buffer_size(whole_, &size));
  Bytes all(size);
  EXPECT_OK(tuff_copy_dtoh(context_, all.data(), whole_, 0, size));
  const auto begin = all.begin() + static_cast<ptrdiff_t>(before_), end = begin + static_cast<ptrdiff_t>(bytes_);
  const auto guard = [](unsigned char byte) { return byte == kGuardByte; };
  EXPECT_TRUE(std::all_of(all.begin(), begin, guard) && std::all_of(end, all.end(), guard)) << "guards were written";
  all.erase(end, all.end());  // in place: large tensors are slow to copy
  all.erase(all.begin(), begin);
  return all;
}

std::string TypedGemm::name() const {
  std::ostringstream text;
  text << name_of(a_type) << "_" << name_of(b_type) << "_" << name_of(c_type) << "_" << (ta != 0 ? "T" : "N")
       << (tb != 0 ? "T" : "N") << "_" << m << "_" << n << "_" << k;
  if (batch != 1) text << "_batch" << batch;
  if (arrays) text << "_arrays";
  if (pad != 0) text << "_pad" << pad;
  if (shift != 0) text << "_shift" << shift;
  if (alpha != 1) text << "_alpha" << (alpha < 0 ? "m" : "") << static_cast<int>(std::fabs(alpha) * 100);
  if (beta != 0) text << "_beta" << (beta < 0 ? "m" : "") << static_cast<int>(std::fabs(beta) * 100);
  static const char* const activations[] = {"", "_relu", "_gelu", "_gelutanh", "_silu", "_relu6"};
  text << activations[activation] << (bias_axis == 1 ? "_rows" : bias_axis == 2 ? "_columns" : "");
  text << (residual == Residual::own ? "_residual" : residual == Residual::in_place ? "_inplace" : "");
  if (scaled())
    text << "_scales" << (scale_a != 0 ? "a" : "") << (scale_b != 0 ? "b" : "") << (scale_c != 0 ? "c" : "");
  return text.str();
}

namespace {

// A batch of matrices of one type, as stored.
struct Operand {
  Operand(int32_t type, uint64_t rows, uint64_t cols, uint64_t pad, uint64_t batch)
      : dtype(type), layout{rows, cols, cols + pad, rows * (cols + pad) + pad, batch} {
    bytes.resize(layout.elements() * size_of(type));
    poison_all(type, bytes);
  }
  template <typename Value>
  void fill(const Value& value) {
    for (uint64_t i = 0; i < layout.batch; ++i) {
      for (uint64_t row = 0; row < layout.rows; ++row) {
        for (uint64_t col = 0; col < layout.cols; ++col) {
          set_element(dtype, bytes, layout.index(i, row, col), value(row, col));
        }
      }
    }
  }
  double get(uint64_t matrix, uint64_t row, uint64_t col) const {
    return element(dtype, bytes, layout.index(matrix, row, col));
  }
  // Creates the buffers: one for all matrices, or one for each.
  void upload(tuff_context context, bool each, uint64_t shift) {
    if (!each) {
      tensors.push_back(std::make_unique<TypedTensor>(context, dtype, bytes, shift));
    } else {
      const uint64_t size = size_of(dtype), one = ((layout.rows - 1) * layout.ld + layout.cols) * size;
      for (uint64_t i = 0; i < layout.batch; ++i) {
        const auto first = bytes.begin() + static_cast<ptrdiff_t>(i * layout.stride * size);
        tensors.push_back(std::make_unique<TypedTensor>(
            context, dtype, Bytes(first, first + static_cast<ptrdiff_t>(one)), shift * (1 + i % 4)));
      }
    }
    for (const auto& tensor : tensors) handles.push_back(*tensor);
  }
  // Reads back the current contents.
  void download() {
    for (uint64_t i = 0; i < tensors.size(); ++i) {
      const Bytes now = tensors[i]->read();
      std::copy(now.begin(), now.end(), bytes.begin() + static_cast<ptrdiff_t>(i * layout.stride * size_of(dtype)));
    }
  }

  int32_t dtype;
  MatrixLayout layout;
  Bytes bytes;
  std::vector<std::unique_ptr<TypedTensor>> tensors;
  std::vector<tuff_buffer> handles;
};

using Wide = long double;

int32_t sum_type(const TypedGemm& s) {
  return s.a_type == TUFF_F64 ? TUFF_F64 : s.a_type == TUFF_I8 ? TUFF_I32 : TUFF_F32;
}

// The inputs of a tier. Exact: integers, most of them zero if need be, so that no partial sum exceeds what C's type
// and the accumulator hold exactly.
void fill_inputs(const TypedGemm& s, Tier tier, Operand& a, Operand& b, const std::vector<Operand*>& others) {
  Random random(s.m * 31 + s.n * 7 + s.k);
  const double most = s.c_type == TUFF_F16       ? 2048
                      : s.c_type == TUFF_BF16    ? 256
                      : s.c_type == TUFF_F8_E4M3 ? 16
                      : s.c_type == TUFF_F8_E5M2 ? 8
                                                 : 0x1p24;
  const int few = is_float8(s.c_type) ? 1 : 4;  // of the other operands
  const double left = most - 3 * few * std::max(1.0, std::fabs(s.beta));
  const int limit = tier != Tier::exact ? 127 : is_float8(s.c_type) ? 1 : 2;
  const auto period =
      static_cast<uint64_t>(std::ceil(limit * limit * std::fabs(s.alpha) * static_cast<double>(s.k) / left));
  const auto value = [&] {
    return tier == Tier::exact || s.a_type == TUFF_I8 ? random.integer(limit) : random.spread();
  };
  a.fill([&](uint64_t row, uint64_t col) {
    const uint64_t i = s.ta != 0 ? col : row, p = s.ta != 0 ? row : col;
    const double x = value();
    return tier == Tier::exact && period > 1 && (p + 3 * i) % period != 0 ? 0 : x;
  });
  b.fill([&](uint64_t, uint64_t) { return value(); });
  for (Operand* each : others) {
    each->fill([&](uint64_t, uint64_t) { return tier == Tier::exact ? random.integer(few) : random.spread(); });
  }
}

tuff_status call(tuff_context context, const TypedGemm& s, const Operand& a, const Operand& b, const Operand& c,
                 const Operand& bias, const Operand& residual, const std::array<tuff_buffer, 3>& scales) {
  tuff_batched_gemm_desc d{};
  d.struct_size = sizeof d;
  d.a_type = s.a_type, d.b_type = s.b_type, d.c_type = s.c_type;
  d.ta = s.ta, d.tb = s.tb;
  d.m = s.m, d.n = s.n, d.k = s.k;
  d.alpha = s.alpha, d.beta = s.beta;
  d.lda = a.layout.ld, d.ldb = b.layout.ld, d.ldc = c.layout.ld;
  d.batch_count = s.batch;
  d.scale_a = scales[0], d.scale_b = scales[1], d.scale_c = scales[2];
  d.activation = s.activation;
  d.bias_axis = s.bias_axis;
  if (s.bias_axis != 0) d.bias = bias.handles[0], d.stride_bias = bias.layout.stride;
  if (s.residual == Residual::own) {
    d.residual = residual.handles[0], d.ld_residual = residual.layout.ld, d.stride_residual = residual.layout.stride;
  } else if (s.residual == Residual::in_place) {
    d.residual = c.handles[0], d.ld_residual = c.layout.ld, d.stride_residual = c.layout.stride;
  }
  if (s.arrays) {
    d.a_array = a.handles.data(), d.b_array = b.handles.data(), d.c_array = c.handles.data();
  } else {
    d.a = a.handles[0], d.b = b.handles[0], d.c = c.handles[0];
    d.stride_a = a.layout.stride, d.stride_b = b.layout.stride, d.stride_c = c.layout.stride;
  }
  if (s.batch != 1 || s.arrays) return tuff_batched_gemm_ex(context, &d);
  tuff_gemm_desc one{};
  one.struct_size = sizeof one;
  one.a_type = d.a_type, one.b_type = d.b_type, one.c_type = d.c_type;
  one.ta = d.ta, one.tb = d.tb;
  one.m = d.m, one.n = d.n, one.k = d.k;
  one.alpha = d.alpha, one.beta = d.beta;
  one.a = d.a, one.b = d.b, one.c = d.c;
  one.lda = d.lda, one.ldb = d.ldb, one.ldc = d.ldc;
  one.activation = d.activation, one.bias_axis = d.bias_axis;
  one.scale_a = d.scale_a, one.scale_b = d.scale_b, one.scale_c = d.scale_c;
  one.bias = d.bias, one.residual = d.residual, one.ld_residual = d.ld_residual;
  return tuff_gemm_ex(context, &one);
}

// Half of the least positive number, for types whose denormals results may be.
double half_of_least(int32_t dtype) {
  switch (dtype) {
    case TUFF_F16: return 0x1p-25;
    case TUFF_F8_E4M3: return 0x1p-10;
    case TUFF_F8_E5M2: return 0x1p-17;
    default: return 0;
  }
}

// The scales, each in a buffer of its own.
struct Scales {
  Scales(tuff_context context, const TypedGemm& s) {
    const double given[] = {s.scale_a, s.scale_b, s.scale_c};
    for (size_t i = 0; i < handles.size(); ++i) {
      if (given[i] == 0) continue;
      Bytes bytes(sizeof(float));
      set_element(TUFF_F32, bytes, 0, given[i]);
      tensors[i] = std::make_unique<TypedTensor>(context, TUFF_F32, bytes, i);
      handles[i] = *tensors[i];
    }
  }
  static Wide value(double given) { return given == 0 ? 1 : Wide{static_cast<float>(given)}; }

  std::array<std::unique_ptr<TypedTensor>, 3> tensors;
  std::array<tuff_buffer, 3> handles{};
};

// The error of sums that tensor cores keep with 13 bits of fraction. They add 32 products to a sum at a time: each of
// the 33 numbers is truncated to a multiple of 2^-13 of the largest one's leading bit, and so is the result. After 128
// products the sum goes on in f32.
class ShortSums {
 public:
  void add(Wide product) {
    largest_ = std::max(largest_, std::fabs(product));
    sum_ += product;
    if (++count_ % 32 == 0) end_piece();
    if (count_ % 128 == 0) sum_ = 0;
  }
  Wide error() {
    if (count_ % 32 != 0) end_piece();
    return error_;
  }

 private:
  void end_piece() {
    // The sum of the machine differs from this one by less than a hundredth of the largest number.
    error_ += 34 * 0x1p-13L * 1.01L * std::max({largest_, std::fabs(before_), std::fabs(sum_)});
    before_ = count_ % 128 == 0 ? 0 : sum_;
    largest_ = 0;
  }
  uint64_t count_ = 0;
  Wide largest_ = 0, sum_ = 0, before_ = 0, error_ = 0;
};

}  // namespace

void run_typed_gemm(tuff_context context, const TypedGemm& s, Tier tier) {
  Operand a(s.a_type, s.ta != 0 ? s.k : s.m, s.ta != 0 ? s.m : s.k, s.pad, s.batch);
  Operand b(s.b_type, s.tb != 0 ? s.n : s.k, s.tb != 0 ? s.k : s.n, s.pad, s.batch);
  Operand c(s.c_type, s.m, s.n, s.pad, s.batch);
  Operand bias(s.c_type, 1, s.bias_axis == TUFF_BIAS_ROWS ? s.m : s.n, s.pad, s.batch);
  Operand residual(s.c_type, s.m, s.n, s.pad + 1, s.batch);
  std::vector<Operand*> others = {&bias, &residual};
  const bool reads_c = s.beta != 0 || s.residual == Residual::in_place;
  if (reads_c) others.push_back(&c);
  fill_inputs(s, tier, a, b, others);
  a.upload(context, s.arrays, s.shift);
  b.upload(context, s.arrays, s.shift);
  c.upload(context, s.arrays, s.shift);
  bias.upload(context, false, s.shift);
  residual.upload(context, false, s.shift);
  const Bytes c_before = c.bytes;
  const Scales scales(context, s);
  const Wide factor = s.alpha * Scales::value(s.scale_a) * Scales::value(s.scale_b), after = Scales::value(s.scale_c);
  ASSERT_OK(call(context, s, a, b, c, bias, residual, scales.handles));
  c.download();

  const double u = unit_roundoff(sum_type(s)) != 0 ? unit_roundoff(sum_type(s)) : kU;
  const auto roundings = static_cast<double>((s.a_type == TUFF_I8 ? 0 : s.k) + (s.scaled() ? 8 : 5));
  int32_t tensor_cores = 0;
  if (s.has_float8_inputs()) {
    ASSERT_OK(tuff_supports(context, "ptx", &tensor_cores));
  }
  const double gamma_sum = roundings * u / (1 - roundings * u);
  uint64_t wrong = 0, touched = 0;
  std::ostringstream first;
  std::vector<bool> is_element(c.layout.elements(), false);
  for (uint64_t i = 0; i < s.batch; ++i) {
    for (uint64_t row = 0; row < s.m; ++row) {
      for (uint64_t col = 0; col < s.n; ++col) {
        Wide sum = 0, size = 0;
        ShortSums machine;
        for (uint64_t p = 0; p < s.k; ++p) {
          const Wide x = s.ta != 0 ? a.get(i, p, row) : a.get(i, row, p),
                     y = s.tb != 0 ? b.get(i, col, p) : b.get(i, p, col);
          sum += x * y;
          size += std::fabs(x * y);
          if (tensor_cores != 0) machine.add(x * y);
        }
        const uint64_t at = c.layout.index(i, row, col);
        is_element[at] = true;
        const Wide old = reads_c ? element(s.c_type, c_before, at) : 0;
        Wide value = factor * sum, terms = std::fabs(factor) * size;
        const auto add = [&](Wide x) {
          value += x;
          terms += std::fabs(x);
        };
        add(s.beta * old);
        if (s.bias_axis != 0) add(bias.get(i, 0, s.bias_axis == TUFF_BIAS_ROWS ? row : col));
        if (s.residual != Residual::none) add(s.residual == Residual::own ? residual.get(i, row, col) : old);
        Wide want = activated(s.activation, value) * after;
        Wide bound = 0;
        if (tier == Tier::bound) {
          bound = (gamma_sum * terms + std::fabs(factor) * machine.error()) * Wide{kSteepest};
          bound = (bound + activation_error(s.activation, static_cast<double>(value), u)) * std::fabs(after);
          bound += unit_roundoff(s.c_type) * (std::fabs(want) + bound);
          bound += half_of_least(s.c_type);
        }
        if (is_float8(s.c_type)) {  // saturated
          const Wide most = decoded8(s.c_type, largest8(s.c_type));
          want = std::clamp(want, -most, most);
        }
        const double got = element(s.c_type, c.bytes, at);
        if (is_poison(s.c_type, c.bytes, at) || !(std::fabs(got - want) <= bound)) {
          if (wrong++ < 5) {
            first << "\n  [" << i << "][" << row << "][" << col << "] is " << got << ", expected " << want << " +- "
                  << bound;
          }
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0u) << "of " << s.m * s.n * s.batch << " elements:" << first.str();
  for (uint64_t i = 0; i < is_element.size(); ++i) touched += !is_element[i] && !is_poison(s.c_type, c.bytes, i);
  EXPECT_EQ(touched, 0u) << "bytes between rows or matrices were written";
}

}  // namespace tuff_test
