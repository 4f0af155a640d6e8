// Products of rows by rows by AVX-512. An element of C is a sum over the k neighbouring elements of two rows, so
// nothing is copied before: for few rows of A, sgemm would spend as long on its copy of B as on the products.
//
// Sums are in sixteen lanes, which are added in one order at the end.
//
// This file alone is compiled for AVX-512. It therefore includes no header with inline functions of the project or the
// C++ library, which the linker might choose for the other files.
#include "backends/cpu/rows.hpp"

#if defined(__AVX512F__) && defined(__AVX512VL__)
#include <immintrin.h>
#endif

namespace tuff_cpu {

#if defined(__AVX512F__) && defined(__AVX512VL__)
namespace {

constexpr uint64_t kLanes = 16;
// Of a tile: 16 sums, which fit into registers.
constexpr uint64_t kRows = 4, kColumns = 4;
static_assert(kRows == kTileRows && kColumns == kTileRows);

// Pairs of neighbouring lanes of a and of b, added: in each quarter a0 + a2, b0 + b2, a1 + a3, b1 + b3.
inline __m512 fold_pairs(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}

// Of two results of fold_pairs: in each quarter that quarter's sums of four vectors.
inline __m512 fold_fours(__m512 a, __m512 b) {
  const __m512d x = _mm512_castps_pd(a), y = _mm512_castps_pd(b);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
}

inline __m512 fold_quarters(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}

// The sums of the lanes of four vectors for each of four rows.
inline void sum_lanes(const __m512 (&sums)[kRows][kColumns], __m128 (&rows)[kRows]) {
  __m512 of_row[kRows];
#pragma GCC unroll 4
  for (uint64_t i = 0; i < kRows; ++i) {
    of_row[i] = fold_fours(fold_pairs(sums[i][0], sums[i][1]), fold_pairs(sums[i][2], sums[i][3]));
  }
  // Quarters: halves of rows 0 and 1, then of rows 2 and 3.
  const __m512 first = fold_quarters(of_row[0], of_row[1]), second = fold_quarters(of_row[2], of_row[3]);
  const __m512 all =
      _mm512_add_ps(_mm512_shuffle_f32x4(first, second, 0x88), _mm512_shuffle_f32x4(first, second, 0xdd));
  rows[0] = _mm512_extractf32x4_ps(all, 0);
  rows[1] = _mm512_extractf32x4_ps(all, 1);
  rows[2] = _mm512_extractf32x4_ps(all, 2);
  rows[3] = _mm512_extractf32x4_ps(all, 3);
}

// The part of C at row i and column j: four rows and columns, or as many as there are before `end` and n. Those beyond
// are computed as the last ones, and not stored. kAhead: the operand whose next rows are fetched meanwhile.
//
// Loops over rows and columns of the tile are unrolled at once, so that the compiler sees sixteen variables.
enum class Ahead { none, a, b };
template <Ahead kAhead>
void tile(const Product& p, uint64_t i, uint64_t end, uint64_t j) {
  const float *a[kRows], *b[kColumns];
  __m512 sums[kRows][kColumns];
#pragma GCC unroll 4
  for (uint64_t r = 0; r < kRows; ++r) {
    a[r] = p.a + (i + r < end ? i + r : end - 1) * p.lda;
    b[r] = p.b + (j + r < p.n ? j + r : p.n - 1) * p.ldb;
#pragma GCC unroll 4
    for (auto& sum : sums[r]) sum = _mm512_setzero_ps();
  }
  // The address may lie behind the operand; a prefetch does not fail.
  const auto fetch = [](const float* row, uint64_t distance) __attribute__((always_inline)) {
    const uintptr_t next = reinterpret_cast<uintptr_t>(row) + distance * sizeof(float);
    _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T0);
  };
  const auto step = [&](uint64_t l, __mmask16 lanes) __attribute__((always_inline)) {
    __m512 right[kColumns];
#pragma GCC unroll 4
    for (uint64_t c = 0; c < kColumns; ++c) {
      right[c] = _mm512_maskz_loadu_ps(lanes, b[c] + l);
      if constexpr (kAhead == Ahead::b) fetch(b[c] + l, kColumns * p.ldb);
    }
#pragma GCC unroll 4
    for (uint64_t r = 0; r < kRows; ++r) {
      const __m512 left = _mm512_maskz_loadu_ps(lanes, a[r] + l);
      if constexpr (kAhead == Ahead::a) fetch(a[r] + l, kRows * p.lda);
#pragma GCC unroll 4
      for (uint64_t c = 0; c < kColumns; ++c) sums[r][c] = _mm512_fmadd_ps(left, right[c], sums[r][c]);
    }
  };
  uint64_t l = 0;
  for (; l + kLanes <= p.k; l += kLanes) step(l, 0xffff);
  if (l < p.k) step(l, static_cast<__mmask16>((1U << (p.k - l)) - 1));
  __m128 rows[kRows];
  sum_lanes(sums, rows);
  const uint64_t columns = p.n - j < kColumns ? p.n - j : kColumns;
  const auto stored = static_cast<__mmask8>((1U << columns) - 1);
  for (uint64_t r = 0; r < kRows && i + r < end; ++r) {
    float* c = p.c + (i + r) * p.ldc + j;
    __m128 value = _mm_mul_ps(rows[r], _mm_set1_ps(p.alpha));
    if (p.beta != 0) value = _mm_fmadd_ps(_mm_set1_ps(p.beta), _mm_maskz_loadu_ps(stored, c), value);
    _mm_mask_storeu_ps(c, stored, value);
  }
}

}  // namespace

bool has_row_products() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512cd");
  return has;
}

// The operand of fewer rows is read again and again, in blocks that stay in a core's second cache; the other one is
// read once for each block.
void multiply_rows(const Product& p) {
  constexpr uint64_t kBlock = 131072;  // elements
  const uint64_t rows = p.k < kBlock / kRows ? kBlock / p.k / kRows * kRows : kRows;
  const auto least = [](uint64_t x, uint64_t y) { return x < y ? x : y; };
  if (p.m <= p.n) {
    for (uint64_t first = 0; first < p.m; first += rows) {
      const uint64_t end = least(p.m, first + rows);
      for (uint64_t j = 0; j < p.n; j += kColumns) {
        tile<Ahead::b>(p, first, end, j);
        for (uint64_t i = first + kRows; i < end; i += kRows) tile<Ahead::none>(p, i, end, j);
      }
    }
    return;
  }
  for (uint64_t first = 0; first < p.n; first += rows) {
    const uint64_t end = least(p.n, first + rows);
    for (uint64_t i = 0; i < p.m; i += kRows) {
      tile<Ahead::a>(p, i, p.m, first);
      for (uint64_t j = first + kColumns; j < end; j += kColumns) tile<Ahead::none>(p, i, p.m, j);
    }
  }
}

#else
bool has_row_products() { return false; }
void multiply_rows(const Product&) {}
#endif

}  // namespace tuff_cpu
