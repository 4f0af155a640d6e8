#include "programs/gemm_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>

#include "support/tensor.hpp"

namespace tuff_test {
namespace {

constexpr int32_t F = TUFF_F32, H = TUFF_F16, B = TUFF_BF16, D = TUFF_F64, I = TUFF_I8, I32 = TUFF_I32,
                  E4 = TUFF_F8_E4M3, E5 = TUFF_F8_E5M2;

// The mixtures that gemm supports, of 8-bit floats some; those with special kernels more than once.
constexpr std::array<std::array<int32_t, 3>, 59> kMixtures = {{
    {F, F, F},   {F, F, H},   {F, F, B},   {F, H, F},   {F, H, H},   {F, H, B},    {F, B, F},    {F, B, H},  {F, B, B},
    {H, F, F},   {H, F, H},   {H, F, B},   {H, H, F},   {H, H, H},   {H, H, B},    {H, B, F},    {H, B, H},  {H, B, B},
    {B, F, F},   {B, F, H},   {B, F, B},   {B, H, F},   {B, H, H},   {B, H, B},    {B, B, F},    {B, B, H},  {B, B, B},
    {I, I, F},   {I, I, H},   {I, I, B},   {I, I, I32}, {D, D, D},   {F, F, F},    {F, F, F},    {F, F, F},  {F, F, F},
    {F, F, F},   {H, H, H},   {H, H, F},   {B, B, B},   {B, B, F},   {I, I, I32},  {D, D, D},    {D, D, D},  {F, F, F},
    {E4, E4, F}, {E4, E4, H}, {E4, E5, B}, {E5, E4, F}, {E5, E5, H}, {E4, E4, E4}, {E4, E4, E5}, {E4, H, H}, {B, E4, B},
    {F, E5, F},  {E4, E4, H}, {H, H, E4},  {I, I, E4},  {E5, E4, F},
}};

class Draw : public Random {
 public:
  using Random::Random;
  uint64_t below(uint64_t end) { return next() % end; }
  uint64_t from(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  bool chance(uint64_t percent) { return below(100) < percent; }
  template <typename T, size_t N>
  T one_of(const T (&list)[N]) {
    return list[below(N)];
  }
};

// The generator increments its seed, so neighbouring seeds would give the same numbers, shifted by one.
uint64_t mixed(uint64_t x, uint64_t y) { return Random(Random(x).next() + y).next(); }

enum class Sizes { small, tiny, few, medium, long_k, wide };

// What the cases of a class share: everything that selects pipelines.
struct Class {
  std::array<int32_t, 3> types;
  int32_t ta, tb, accumulate = 0, precision = 0, activation = 0, bias_axis = 0;
  Residual residual = Residual::none;
  Sizes sizes;
  // Conditions for vectors, by which kernels differ: layouts in multiples of eight elements, sizes modulo eight.
  bool regular_a, regular_b, regular_c;
  uint64_t odd_m, odd_n, odd_k;
  bool beta;
  uint64_t few, tiny_m[2], tiny_n[2];  // each has special kernels
};

Class draw_class(uint64_t seed, uint64_t index) {
  Draw draw(mixed(seed, index));
  Class c{};
  // In rotation, so that no type, transpose or kind of size is left to chance.
  c.types = kMixtures[(index * 19 + seed) % kMixtures.size()];
  const uint64_t turn = index / kMixtures.size() + index + seed;
  c.ta = turn % 2 == 0 ? TUFF_NO_TRANS : draw.chance(20) ? TUFF_CONJ_TRANS : TUFF_TRANS;
  c.tb = turn / 2 % 2 == 0 ? TUFF_NO_TRANS : TUFF_TRANS;
  constexpr std::array<Sizes, 9> kSizes = {Sizes::small,  Sizes::tiny,  Sizes::few,  Sizes::small, Sizes::long_k,
                                           Sizes::medium, Sizes::small, Sizes::tiny, Sizes::wide};
  c.sizes = kSizes[(index + index / kSizes.size() + seed) % kSizes.size()];
  for (uint64_t* odd : {&c.odd_m, &c.odd_n, &c.odd_k}) *odd = draw.chance(40) ? 0 : draw.below(8);
  c.regular_a = draw.chance(50), c.regular_b = draw.chance(50), c.regular_c = draw.chance(50);
  c.beta = draw.chance(50);
  c.few = draw.from(1, draw.chance(70) ? 4 : 16);
  for (uint64_t& x : c.tiny_m) x = draw.from(1, 16);
  for (uint64_t& x : c.tiny_n) x = draw.from(1, 16);
  if (c.types[0] == H && c.types[1] == H && draw.chance(25)) c.accumulate = TUFF_F16;
  if (c.types[0] == F && c.types[1] == F && draw.chance(40)) {
    constexpr int32_t kPrecisions[] = {TUFF_PRECISION_ALLOW_F16, TUFF_PRECISION_ALLOW_BF16, TUFF_PRECISION_ALLOW_TF32};
    c.precision = draw.one_of(kPrecisions);
  }
  if (draw.chance(50)) {
    constexpr Residual kResiduals[] = {Residual::none, Residual::own, Residual::in_place};
    c.activation = draw.chance(50) ? TUFF_ACTIVATION_RELU : TUFF_ACTIVATION_NONE;
    c.bias_axis = static_cast<int32_t>(draw.below(3));
    c.residual = draw.one_of(kResiduals);
  }
  return c;
}

struct Extents {
  uint64_t m, n, k, batch;
};

Extents draw_extents(Draw& draw, const Class& c) {
  const uint64_t some = draw.chance(25) ? draw.from(2, 9) : 1;
  const bool swap = draw.chance(50);
  Extents e{};
  switch (c.sizes) {
    case Sizes::small: e = {draw.from(1, 70), draw.from(1, 70), draw.from(1, 70), some}; break;
    case Sizes::tiny:
      e = {draw.one_of(c.tiny_m), draw.one_of(c.tiny_n), draw.from(1, 20),
           draw.chance(20) ? draw.from(1000, 3000) : draw.from(2, 300)};
      break;
    case Sizes::few: e = {c.few, draw.from(1, 600), draw.from(1, 600), some}; break;
    case Sizes::medium:
      e = {draw.from(40, 300), draw.from(40, 300), draw.from(1, 300), draw.chance(10) ? 2u : 1u};
      break;
    case Sizes::long_k:
      e = {draw.from(1, 20), draw.from(1, 20), draw.chance(3) ? draw.from(60'000, 140'000) : draw.from(400, 6000), 1};
      break;
    case Sizes::wide: e = {draw.from(1, 12), draw.from(500, 12'000), draw.from(1, 30), 1}; break;
  }
  if (swap && c.sizes != Sizes::small && c.sizes != Sizes::tiny) std::swap(e.m, e.n);
  return e;
}

// The first number from x on with this remainder modulo eight.
uint64_t with_remainder(uint64_t x, uint64_t remainder) { return x + (8 + remainder - x % 8) % 8; }

uint64_t rounded_up(uint64_t x, uint64_t unit) { return (x + unit - 1) / unit * unit; }

// What C's type represents exactly, in quarters if it has fractions.
struct Limits {
  explicit Limits(const GemmCase& gemm);
  int64_t scale;    // results are integer multiples of 1 / scale
  int64_t others;   // magnitude of the previous C, bias and residual
  int64_t product;  // sum of |a * b|
};

int64_t quarters(double x) { return std::llround(4 * x); }

Limits::Limits(const GemmCase& gemm) {
  const tuff_batched_gemm_desc& d = gemm.desc;
  const auto digits_of = [](int32_t type) {
    return type == H    ? 1 << 11
           : type == B  ? 1 << 8
           : type == D  ? int64_t{1} << 42
           : type == E4 ? 1 << 4
           : type == E5 ? 1 << 3
                        : 1 << 24;
  };
  const int64_t digits = digits_of(d.c_type);
  const int64_t alpha = std::llabs(quarters(gemm.factor())), beta = std::llabs(quarters(d.beta));
  scale = alpha % 4 == 0 && beta % 4 == 0 ? 1 : 4;
  const int64_t most = digits * 4 / scale;  // in quarters
  others = std::clamp<int64_t>(most / 100, 1, 1000);
  product = std::max<int64_t>(most - (8 + beta) * others, 0) / std::max<int64_t>(alpha, 1);
  product = std::min(product, d.accumulate == H ? int64_t{2048} : digits);  // unscaled sums are integers
  // Tensor cores keep sums of 8-bit floats with 13 bits of fraction.
  if (is_float8(d.a_type) && is_float8(d.b_type)) product = std::min<int64_t>(product, 1 << 13);
}

int64_t max_of(int32_t dtype, int32_t precision) {
  if (precision == TUFF_PRECISION_ALLOW_F16 || precision == TUFF_PRECISION_ALLOW_TF32) dtype = H;  // as many digits
  if (precision == TUFF_PRECISION_ALLOW_BF16) dtype = B;
  return dtype == H    ? 2048
         : dtype == B  ? 256
         : dtype == I  ? 127
         : dtype == D  ? 1 << 15
         : dtype == E4 ? 16
         : dtype == E5 ? 8
                       : 4096;
}

// Stores an integer number of quarters.
void put_quarters(int32_t dtype, Bytes& bytes, uint64_t element_at, int64_t value) {
  if (size_of(dtype) != 2) return set_element(dtype, bytes, element_at, static_cast<double>(value) / 4);
  // The conversion is a bisection, so each number is converted only once.
  static std::map<int32_t, std::vector<std::array<unsigned char, 2>>> tables;
  constexpr int64_t kMax = 1 << 13;
  auto& table = tables[dtype];
  if (table.empty()) {
    Bytes two(2);
    for (int64_t q = -kMax; q <= kMax; ++q) {
      set_element(dtype, two, 0, static_cast<double>(q) / 4);
      table.push_back({two[0], two[1]});
    }
  }
  std::memcpy(bytes.data() + element_at * 2, table.at(static_cast<size_t>(value + kMax)).data(), 2);
}

// Integer elements of an operand, as op(X) has them: matrix by matrix, row by row.
using Numbers = std::vector<int32_t>;

// Accesses an operand of an image by element.
struct Cells {
  Cells(Bytes& image, uint64_t byte, const StoredMatrices& where) : bytes_(image), byte_(byte), where_(where) {}
  void put(uint64_t at, int64_t value, double scale = 1) {
    const uint64_t size = size_of(where_.dtype);
    element_.resize(size);
    if (where_.dtype == I32) {
      const auto word = static_cast<uint32_t>(value);  // modulo 2^32
      std::memcpy(element_.data(), &word, size);
    } else if (scale != 1) {
      set_element(where_.dtype, element_, 0, static_cast<double>(value) / 4 * scale);
    } else {
      put_quarters(where_.dtype, element_, 0, value);
    }
    std::memcpy(bytes_.data() + byte_ + at * size, element_.data(), size);
  }

 private:
  Bytes& bytes_;
  Bytes element_;
  uint64_t byte_;
  const StoredMatrices& where_;
};

// C in quarters, or for an i32 C its value modulo 2^32. Sums are integers: unsigned ones wrap, and those for a
// floating-point C fit.
template <typename Sum>
void multiply(const tuff_batched_gemm_desc& d, const int32_t* a, const int32_t* b, std::vector<Sum>& sums) {
  sums.assign(d.m * d.n, 0);
  for (uint64_t row = 0; row < d.m; ++row) {
    Sum* out = sums.data() + row * d.n;
    for (uint64_t p = 0; p < d.k; ++p) {
      const auto left = static_cast<Sum>(a[row * d.k + p]);
      if (left == 0) continue;
      const int32_t* right = b + p * d.n;
      for (uint64_t col = 0; col < d.n; ++col) out[col] += left * static_cast<Sum>(right[col]);
    }
  }
}

// Fills an image's operands and computes C.
class Filler {
 public:
  Filler(const GemmCase& gemm, GemmImage& image)
      : gemm_(gemm), d_(gemm.desc), image_(image), limits_(gemm), draw_(gemm.value_seed) {}

  void run() {
    const GemmLayout& layout = image_.layout;
    image_.after = image_.before;
    if (d_.batch_count == 0) return;
    const bool has_product = d_.alpha != 0 && d_.k != 0;
    Numbers a, b;
    if (has_product) draw_inputs(a, b);
    const bool reads_c = d_.beta != 0 || gemm_.residual == Residual::in_place;
    const Numbers before = others(layout.c, image_.c, reads_c);
    const Numbers bias = others(layout.bias, image_.bias, true);
    const Numbers residual =
        gemm_.residual == Residual::in_place ? before : others(layout.residual, image_.residual, true);
    image_.after = image_.before;
    Cells c(image_.after, image_.c, layout.c);
    std::vector<uint32_t> words;
    std::vector<uint64_t> longs;
    const bool bias_of_rows = d_.bias_axis == TUFF_BIAS_ROWS;
    const double after = gemm_.scales[2] == 0 ? 1 : gemm_.scales[2];
    const uint64_t a_step = layout.a.count > 1 ? d_.m * d_.k : 0, b_step = layout.b.count > 1 ? d_.k * d_.n : 0;
    for (uint64_t i = 0; i < d_.batch_count; ++i) {
      if (has_product && d_.a_type == D) multiply(d_, a.data() + i * a_step, b.data() + i * b_step, longs);
      if (has_product && d_.a_type != D) multiply(d_, a.data() + i * a_step, b.data() + i * b_step, words);
      for (uint64_t row = 0; row < d_.m; ++row) {
        for (uint64_t col = 0; col < d_.n; ++col) {
          const uint64_t within = row * d_.n + col, dense = i * d_.m * d_.n + within;
          int64_t sum = 0;
          if (has_product) {
            sum = d_.a_type == D ? static_cast<int64_t>(longs[within]) : static_cast<int32_t>(words[within]);
          }
          const uint64_t bias_at = (layout.bias.count > 1 ? i * layout.bias.cols : 0) + (bias_of_rows ? row : col);
          const uint64_t residual_at = gemm_.residual != Residual::own || layout.residual.count > 1 ? dense : within;
          c.put(layout.c.at(i, row, col),
                result(sum, d_.beta != 0 ? before[dense] : 0, bias.empty() ? 0 : bias[bias_at],
                       residual.empty() ? 0 : residual[residual_at]),
                after);
        }
      }
    }
  }

 private:
  int64_t result(int64_t sum, int64_t before, int64_t bias, int64_t residual) const {
    const bool relu = d_.activation == TUFF_ACTIVATION_RELU;
    if (d_.c_type == I32) {
      const auto word = [](int64_t x) { return static_cast<uint32_t>(x); };
      const auto scale = [](double x) { return static_cast<uint32_t>(static_cast<int64_t>(x)); };
      const auto value = static_cast<int32_t>(scale(d_.alpha) * word(sum) + scale(d_.beta) * word(before) + word(bias) +
                                              word(residual));
      return relu ? std::max(value, 0) : value;
    }
    const int64_t value = quarters(gemm_.factor()) * sum + quarters(d_.beta) * before + 4 * bias + 4 * residual;
    return relu ? std::max<int64_t>(value, 0) : value;
  }

  int32_t whole(int64_t most) {
    return static_cast<int32_t>(draw_.from(0, 2 * static_cast<uint64_t>(most))) - static_cast<int32_t>(most);
  }

  // Draws the dense elements of C, bias or residual and stores them in the image. C stays poisoned if it is not read.
  Numbers others(const StoredMatrices& where, uint64_t byte, bool read) {
    Numbers numbers;
    if (!read || where.elements() == 0) return numbers;
    Cells cells(image_.before, byte, where);
    for (uint64_t i = 0; i < where.count; ++i) {
      for (uint64_t row = 0; row < where.rows; ++row) {
        for (uint64_t col = 0; col < where.cols; ++col) {
          numbers.push_back(d_.c_type == I32 ? static_cast<int32_t>(draw_.next()) : whole(limits_.others));
          cells.put(where.at(i, row, col), d_.c_type == I32 ? int64_t{numbers.back()} : 4 * int64_t{numbers.back()});
        }
      }
    }
    return numbers;
  }

  // Dense if the limits allow it; otherwise each row of op(A) has as many non-zero elements as they allow.
  void draw_inputs(Numbers& a, Numbers& b) {
    const GemmLayout& layout = image_.layout;
    int64_t max_a = max_of(d_.a_type, d_.precision), max_b = max_of(d_.b_type, d_.precision);
    uint64_t filled = d_.k;
    if (d_.c_type != I32) {
      const int64_t each = std::max<int64_t>(limits_.product / static_cast<int64_t>(d_.k), 1);
      max_a = std::min(max_a, 1 + static_cast<int64_t>(draw_.below(static_cast<uint64_t>(each))));
      max_b = std::min(max_b, std::max<int64_t>(each / max_a, 1));
      filled = std::min(d_.k, static_cast<uint64_t>(std::max<int64_t>(limits_.product / (max_a * max_b), 1)));
    }
    const uint64_t a_rows = layout.a.count * d_.m;
    a.assign(a_rows * d_.k, 0);
    for (uint64_t row = 0; row < a_rows; ++row) {
      for (uint64_t i = 0; i < filled; ++i) {
        a[row * d_.k + (filled == d_.k ? i : draw_.below(d_.k))] = whole(max_a);
      }
    }
    b.resize(layout.b.count * d_.k * d_.n);
    for (int32_t& x : b) x = whole(max_b);
    store(layout.a, image_.a, a, d_.ta != TUFF_NO_TRANS, d_.m, d_.k);
    store(layout.b, image_.b, b, d_.tb != TUFF_NO_TRANS, d_.k, d_.n);
  }

  void store(const StoredMatrices& where, uint64_t byte, const Numbers& numbers, bool transposed, uint64_t rows,
             uint64_t cols) {
    Cells cells(image_.before, byte, where);
    for (uint64_t i = 0, at = 0; i < where.count; ++i) {
      for (uint64_t row = 0; row < rows; ++row) {
        for (uint64_t col = 0; col < cols; ++col, ++at) {
          cells.put(transposed ? where.at(i, col, row) : where.at(i, row, col), 4 * int64_t{numbers[at]});
        }
      }
    }
  }

  const GemmCase& gemm_;
  const tuff_batched_gemm_desc& d_;
  GemmImage& image_;
  Limits limits_;
  Draw draw_;
};

}  // namespace

uint64_t class_of(uint64_t number) {
  constexpr uint64_t kShort = 5000, kShortClass = 100, kLongClass = 500;
  return number < kShort ? number / kShortClass : kShort / kShortClass + (number - kShort) / kLongClass;
}

GemmCase draw_gemm_case(uint64_t seed, uint64_t number) {
  const Class c = draw_class(seed, class_of(number));
  Draw draw(mixed(~seed, number));
  GemmCase gemm;
  gemm.number = number;
  tuff_batched_gemm_desc& d = gemm.desc;
  d.struct_size = sizeof d;
  d.a_type = c.types[0], d.b_type = c.types[1], d.c_type = c.types[2];
  d.dtype = d.a_type;
  d.ta = c.ta, d.tb = c.tb;
  d.accumulate = c.accumulate, d.precision = c.precision;
  d.activation = c.activation, d.bias_axis = c.bias_axis;
  gemm.residual = c.residual;
  const Extents e = draw_extents(draw, c);
  const bool few = c.sizes == Sizes::few || c.sizes == Sizes::tiny;  // these stay few
  d.m = few && e.m <= 16 ? e.m : with_remainder(e.m, c.odd_m);
  d.n = few && e.n <= 16 ? e.n : with_remainder(e.n, c.odd_n);
  d.k = with_remainder(e.k, c.odd_k), d.batch_count = e.batch;
  if (draw.chance(1)) (draw.chance(50) ? d.k : draw.chance(50) ? d.m : draw.chance(50) ? d.n : d.batch_count) = 0;

  constexpr double kAlphas[] = {1, 1, 1, -1, 2, 3, -3, 0.5, 0.25, -1.5}, kBetas[] = {1, 1, -1, 2, 0.5, -3};
  d.alpha = draw.chance(2) ? 0 : draw.one_of(kAlphas);
  d.beta = c.beta ? draw.one_of(kBetas) : 0;
  if (d.c_type == I32) {
    const auto whole = [&] { return static_cast<double>(static_cast<int32_t>(draw.next())); };
    if (d.alpha != 0) d.alpha = draw.chance(50) ? whole() : std::ceil(4 * d.alpha);
    if (d.beta != 0) d.beta = draw.chance(50) ? whole() : std::ceil(4 * d.beta);
  }

  if (std::any_of(c.types.begin(), c.types.end(), tuff_test::is_float8) || draw.chance(5)) {
    constexpr double kScales[] = {0, 1, 2, 0.5}, kAlone[] = {0, 1, 2};  // alpha's product has quarters
    if (d.c_type != I32 && d.c_type != D && draw.chance(60)) {
      gemm.scales[0] = draw.one_of(kScales);
      gemm.scales[1] = gemm.scales[0] == 0 ? draw.one_of(kAlone) : 1 / gemm.scales[0];
      gemm.scales[2] = draw.one_of(kScales);
    }
  }
  // Their few digits have no room for fractions.
  if (is_float8(d.c_type)) {
    d.alpha = std::ceil(std::fabs(d.alpha)), d.beta = std::ceil(std::fabs(d.beta) / 2);
    gemm.scales[0] = gemm.scales[1] = gemm.scales[0] == 0 ? 0 : 1;
  }
  const bool ta = d.ta != TUFF_NO_TRANS, tb = d.tb != TUFF_NO_TRANS;
  const auto ld = [&](uint64_t cols, bool regular) {
    const uint64_t padded = cols + (draw.chance(50) ? draw.below(10) : 0);
    return regular ? rounded_up(padded, 8) : padded;
  };
  d.lda = ld(ta ? d.m : d.k, c.regular_a), d.ldb = ld(tb ? d.k : d.n, c.regular_b), d.ldc = ld(d.n, c.regular_c);
  d.ld_residual = ld(d.n, c.regular_c);
  // Inputs may repeat one matrix; the matrices of C are separate.
  const auto stride = [&](uint64_t elements, bool regular, bool repeats) {
    return repeats && draw.chance(25) ? 0 : ld(elements, regular);
  };
  d.stride_a = stride((ta ? d.k : d.m) * d.lda, c.regular_a, true);
  d.stride_b = stride((tb ? d.n : d.k) * d.ldb, c.regular_b, true);
  d.stride_c = stride(d.m * d.ldc, c.regular_c, false);
  d.stride_bias = stride(d.bias_axis == TUFF_BIAS_ROWS ? d.m : d.n, c.regular_c, true);
  d.stride_residual = stride(d.m * d.ld_residual, c.regular_c, true);
  gemm.arrays = d.batch_count > 0 && d.batch_count < 40 && c.sizes != Sizes::long_k && draw.chance(5);
  if (gemm.arrays && gemm.residual == Residual::in_place) gemm.residual = Residual::own;
  if (gemm.residual == Residual::in_place) d.ld_residual = d.ldc, d.stride_residual = d.stride_c;
  const auto shift = [&](bool regular) { return regular ? 16 * draw.below(4) : 1 + 2 * draw.below(16); };
  gemm.shift_a = shift(c.regular_a), gemm.shift_b = shift(c.regular_b), gemm.shift_c = shift(c.regular_c);
  const bool plain = d.a_type == d.b_type && d.c_type == (d.a_type == I ? I32 : d.a_type) && d.accumulate == 0 &&
                     d.precision == 0 && d.activation == 0 && d.bias_axis == 0 && gemm.residual == Residual::none &&
                     gemm.scales[0] == 0 && gemm.scales[1] == 0 && gemm.scales[2] == 0;
  gemm.flat = plain && !gemm.arrays && draw.chance(50);
  gemm.value_seed = draw.next();
  return gemm;
}

double GemmCase::factor() const {
  const auto value = [](double scale) { return scale == 0 ? 1 : scale; };
  return desc.alpha * value(scales[0]) * value(scales[1]);
}

std::string GemmCase::types() const {
  return std::string(name_of(desc.a_type)) + " x " + name_of(desc.b_type) + " -> " + name_of(desc.c_type);
}

double GemmCase::work() const {
  return 2 * static_cast<double>(desc.m * desc.batch_count) * static_cast<double>(desc.n) * static_cast<double>(desc.k);
}

std::string GemmCase::describe() const {
  const tuff_batched_gemm_desc& d = desc;
  std::ostringstream text;
  text << types() << ", "
       << (d.ta == 0            ? "N"
           : d.ta == TUFF_TRANS ? "T"
                                : "C")
       << (d.tb == 0 ? "N" : "T") << ", m=" << d.m << " n=" << d.n << " k=" << d.k << " batch_count=" << d.batch_count
       << (arrays ? " (arrays of handles)" : "") << ", alpha=" << d.alpha << " beta=" << d.beta << ", lda=" << d.lda
       << " ldb=" << d.ldb << " ldc=" << d.ldc << ", stride_a=" << d.stride_a << " stride_b=" << d.stride_b
       << " stride_c=" << d.stride_c << ", elements in front " << shift_a << " " << shift_b << " " << shift_c;
  if (d.accumulate != 0) text << ", accumulate " << name_of(d.accumulate);
  if (d.precision != 0) text << ", precision " << d.precision;
  if (d.activation != 0) text << ", activation " << d.activation;
  if (d.bias_axis != 0) text << ", bias_axis=" << d.bias_axis << " stride_bias=" << d.stride_bias;
  if (residual != Residual::none) {
    text << (residual == Residual::own ? ", residual" : ", residual in place") << " ld_residual=" << d.ld_residual
         << " stride_residual=" << d.stride_residual;
  }
  if (scales[0] != 0 || scales[1] != 0 || scales[2] != 0) {
    text << ", scales (0: none) " << scales[0] << " " << scales[1] << " " << scales[2];
  }
  text << (flat ? ", without a descriptor" : "");
  return text.str();
}

GemmLayout::GemmLayout(const GemmCase& gemm) {
  const tuff_batched_gemm_desc& d = gemm.desc;
  const bool ta = d.ta != TUFF_NO_TRANS, tb = d.tb != TUFF_NO_TRANS;
  const auto count = [&](uint64_t stride) { return stride == 0 && !gemm.arrays ? 1 : d.batch_count; };
  // Matrices with a handle each are separated as well.
  const auto apart = [&](uint64_t stride, uint64_t rows, uint64_t ld) { return gemm.arrays ? rows * ld + 8 : stride; };
  a = {d.a_type, ta ? d.k : d.m, ta ? d.m : d.k, d.lda, apart(d.stride_a, ta ? d.k : d.m, d.lda), count(d.stride_a)};
  b = {d.b_type, tb ? d.n : d.k, tb ? d.k : d.n, d.ldb, apart(d.stride_b, tb ? d.n : d.k, d.ldb), count(d.stride_b)};
  c = {d.c_type, d.m, d.n, d.ldc, apart(d.stride_c, d.m, d.ldc), d.batch_count};
  const auto one = [&](uint64_t stride) { return stride == 0 ? 1 : d.batch_count; };
  if (d.bias_axis != 0) {
    bias = {d.c_type, 1, d.bias_axis == TUFF_BIAS_ROWS ? d.m : d.n, 0, d.stride_bias, one(d.stride_bias)};
  }
  if (gemm.residual == Residual::own) {
    residual = {d.c_type, d.m, d.n, d.ld_residual, d.stride_residual, one(d.stride_residual)};
  }
  if (d.batch_count == 0) a.rows = b.rows = c.rows = bias.rows = residual.rows = 0;
}

GemmImage::GemmImage(const GemmCase& gemm) : layout(gemm) {
  // NaN for inputs; for C and everything around it a pattern that no kernel computes.
  constexpr unsigned char kPoisonByte = 0xff, kGuardByte = 0xa5;
  const auto place = [&](const StoredMatrices& where, uint64_t shift, unsigned char fill) {
    const uint64_t size = size_of(where.dtype);
    before.resize(rounded_up(before.size(), 64) + 64 + shift * size, kGuardByte);
    const uint64_t at = before.size();
    before.resize(at + where.elements() * size, fill);
    before.resize(before.size() + kInnerGuard * size, kGuardByte);
    return at;
  };
  a = place(layout.a, gemm.shift_a, kPoisonByte);
  b = place(layout.b, gemm.shift_b, kPoisonByte);
  c = place(layout.c, gemm.shift_c, kGuardByte);
  bias = place(layout.bias, gemm.shift_c, kPoisonByte);
  residual = place(layout.residual, gemm.shift_c, kPoisonByte);
  before.resize(rounded_up(before.size(), 64) + 64, kGuardByte);
  Filler(gemm, *this).run();
}

}  // namespace tuff_test
