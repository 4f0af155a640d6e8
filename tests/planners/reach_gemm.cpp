// Products of matrices by tiles, and the second pass that adds up parts of k.
#include "planners/reached.hpp"
#include "shaders/gemm_finish.hpp"
#include "shaders/gemm_subgroup.hpp"
#include "shaders/gemm_tile.hpp"

namespace tuff_test::reach {
namespace {

// A stored matrix of a batch, in elements.
struct Stored {
  uint64_t rows, ld, columns, count, stride;
  uint64_t elements() const { return span({{rows, ld}, {count, stride}}, columns); }
  uint64_t padded() const { return elements() + ld - columns; }
  // Whether fours of elements in rows begin at multiples of four.
  bool in_fours() const { return columns % 4 == 0 && (rows == 1 || ld % 4 == 0) && (count == 1 || stride % 4 == 0); }
};

// The first and the last matrices of a batch are there.
void reads(Reached& x, uint32_t i, const Stored& stored, uint64_t size) {
  constexpr uint64_t kMost = 4;
  const uint64_t bytes = ((stored.rows - 1) * stored.ld + stored.columns) * size;
  const uint64_t gap = (stored.ld - stored.columns) * size + 256;
  for (uint64_t j = 0; j < stored.count; ++j) {
    if (j < kMost || j + kMost >= stored.count) x.written(i, j * stored.stride * size, bytes, gap);
    if (j == kMost && stored.count > 2 * kMost) j = stored.count - kMost - 1;
  }
}

// The tile of a workgroup.
struct TileSize {
  uint64_t rows, columns;
};

template <typename Push>
void multiplies(Reached& x, const Push& push, const TileSize& tile) {
  const uint64_t m = push.m, n = push.n, k = push.k, batch = push.batch_count, slices = push.slices;
  const uint64_t size = size_of(x.define("SUM_TYPE"));
  x.holds(m != 0 && n != 0 && batch != 0 && slices != 0, "there is something to compute");
  x.holds(push.tiles_m == ceil_div(m, tile.rows) && push.tiles_n == ceil_div(n, tile.columns), "tiles cover C");
  x.holds(slices * push.k_slice >= k && (slices - 1) * push.k_slice < std::max<uint64_t>(k, 1), "parts of k are k");
  x.covers(push.tiles_m * uint64_t{push.tiles_n} * batch * slices, 1);
  if (!x.wrong.empty() || k == 0) return;
  const bool trans_a = x.define("TRANS_A") != 0, trans_b = x.define("TRANS_B") != 0;
  const Stored a{trans_a ? k : m, push.lda, trans_a ? m : k, batch, push.stride_a};
  const Stored b{trans_b ? n : k, push.ldb, trans_b ? k : n, batch, push.stride_b};
  x.operand(0, a.elements() * size, a.padded() * size);
  x.operand(1, b.elements() * size, b.padded() * size);
  reads(x, 0, a, size);
  reads(x, 1, b, size);
}

void multiplies_tiles(Reached& x) {
  const auto checked = [&](const auto& push) {
    const auto bm = static_cast<uint64_t>(x.define("BM")), bn = static_cast<uint64_t>(x.define("BN"));
    multiplies(x, push, {bm, bn});
    if (!x.wrong.empty()) return;
    const uint64_t m = push.m, n = push.n, k = push.k, batch = push.batch_count, slices = push.slices;
    const bool trans_a = x.define("TRANS_A") != 0, trans_b = x.define("TRANS_B") != 0;
    const Stored a{trans_a ? k : m, push.lda, trans_a ? m : k, batch, push.stride_a};
    const Stored b{trans_b ? n : k, push.ldb, trans_b ? k : n, batch, push.stride_b};
    const Stored c{m, push.ldc, n, batch * slices, push.stride_c};
    x.operand(2, c.elements() * size_of(x.define("SUM_TYPE")));
    x.updates(2, push.beta != 0);
    x.holds(x.define("VECTOR_A") == 0 || a.in_fours(), "A has fours of elements with VECTOR_A");
    x.holds(x.define("VECTOR_B") == 0 || b.in_fours(), "B has fours of elements with VECTOR_B");
    x.holds(x.define("VECTOR_C") == 0 || c.in_fours(), "C has fours of elements with VECTOR_C");
    const auto bk = static_cast<uint64_t>(x.define("BK"));
    const bool whole = m % bm == 0 && n % bn == 0 && k % bk == 0 && (slices == 1 || push.k_slice % bk == 0);
    x.holds(x.define("EDGE") != 0 || whole, "tiles are whole without EDGE");
  };
  const auto with_number = [&](auto number) {
    using Number = decltype(number);
    x.kernel.is_wide() ? checked(x.push<tuff::shaders::GemmTile::Push<uint64_t, Number>>())
                       : checked(x.push<tuff::shaders::GemmTile::Push<uint32_t, Number>>());
  };
  x.define("SUM_TYPE") == TUFF_F64 ? with_number(double{}) : with_number(float{});
}

void multiplies_by_subgroups(Reached& x) {
  const auto checked = [&](const auto& push) {
    const auto width = static_cast<uint64_t>(x.define("WIDTH"));
    multiplies(x, push,
               {width * static_cast<uint64_t>(x.define("ROW_BLOCKS")),
                4 * width * static_cast<uint64_t>(x.define("COL_BLOCKS"))});
    if (!x.wrong.empty()) return;
    const uint64_t m = push.m, n = push.n, k = push.k, count = uint64_t{push.batch_count} * push.slices;
    const bool trans_c = x.define("TRANS_C") != 0;
    const Stored c{trans_c ? n : m, push.ldc, trans_c ? m : n, count, push.stride_c};
    x.operand(2, c.elements() * size_of(x.define("SUM_TYPE")));
    x.updates(2, push.beta != 0);
    x.holds(x.define("TAIL") != 0 || (k % 4 == 0 && (push.slices == 1 || push.k_slice % 4 == 0)),
            "k has fours without TAIL");
    x.holds(x.define("BETA") != 0 || push.beta == 0, "beta is 0 without BETA");
    const auto together = static_cast<uint64_t>(x.define("C_TOGETHER"));
    x.holds(n % together == 0 || trans_c, "rows of C have whole units of C_TOGETHER");
    x.holds(m == 1 || push.ldc % together == 0, "rows of C begin at units of C_TOGETHER");
  };
  const auto with_number = [&](auto number) {
    using Number = decltype(number);
    x.kernel.is_wide() ? checked(x.push<tuff::shaders::GemmSubgroup::Push<uint64_t, Number>>())
                       : checked(x.push<tuff::shaders::GemmSubgroup::Push<uint32_t, Number>>());
  };
  x.define("SUM_TYPE") == TUFF_F64 ? with_number(double{}) : with_number(float{});
}

template <typename Push>
void finishes(Reached& x, const Push& push) {
  const uint64_t elements = push.elements, matrix = push.matrix, slices = push.slices & 0xffff;
  const int64_t axis = x.define("BIAS_AXIS");
  const bool each = x.dispatch.operands()[1].each != nullptr, dense = x.define("DENSE") != 0;
  // Where places in C are those of the sums, rows need not be told apart.
  const bool in_rows = !dense || axis != 0 || x.define("RESIDUAL") != 0 || each;
  const uint64_t n = in_rows ? push.n : matrix;
  x.holds(n != 0 && matrix != 0 && matrix % n == 0 && elements % matrix == 0, "matrices have whole rows");
  if (!x.wrong.empty()) return;
  const uint64_t m = matrix / n, batch = elements / matrix, c_size = size_of(x.define("C_TYPE"));
  x.covers(elements, static_cast<uint64_t>(x.define("LOCAL_SIZE") * x.define("ITEMS")));
  x.operand(0, elements * slices * size_of(x.define("SUM_TYPE")));
  const Stored c{m, push.ldc, n, batch, push.stride_c};
  x.operand(1, dense ? elements * c_size : c.elements() * c_size);
  x.updates(1, push.beta != 0);
  x.holds(!dense || ((!in_rows || m == 1 || push.ldc == n) && (batch == 1 || push.stride_c == matrix)),
          "C is dense with DENSE");
  if (axis != 0) x.operand(2, span({{batch, push.stride_bias}}, axis == TUFF_BIAS_ROWS ? m : n) * c_size);
  if (x.define("RESIDUAL") != 0) {
    const Stored residual{m, push.ld_residual, n, batch, push.stride_residual};
    x.operand(3, residual.elements() * c_size);
  }
  if constexpr (requires { push.matrix_multiplier; }) {
    const bool divides = x.divides(elements - 1, matrix, push.matrix_multiplier, push.matrix_shift) &&
                         x.divides(matrix - 1, n, push.n_multiplier, push.n_shift);
    x.holds(!in_rows || divides, "elements are divided by the sizes of matrices and rows");
  }
}
void finishes_products(Reached& x) {
  const auto with_number = [&](auto number) {
    using Number = decltype(number);
    x.kernel.is_wide() ? finishes(x, x.push<tuff::shaders::GemmFinish::Push<uint64_t, Number, true>>())
                       : finishes(x, x.push<tuff::shaders::GemmFinish::Push<uint32_t, Number, false>>());
  };
  x.define("C_TYPE") == TUFF_F64 ? with_number(double{}) : with_number(float{});
}

constexpr Kernel kGemmKernels[] = {
    {"gemm_finish", finishes_products},
    {"gemm_subgroup", multiplies_by_subgroups},
    {"gemm_tile", multiplies_tiles},
};

}  // namespace

std::span<const Kernel> gemm_kernels() { return kGemmKernels; }

}  // namespace tuff_test::reach
