// Products of matrices by kernels in PTX.
#include <array>

#include "kernels/gemm/native/gemm_narrow.hpp"
#include "kernels/gemm/native/gemm_split.hpp"
#include "kernels/quant/native/qgemm_blocks.hpp"
#include "kernels/quant/native/qgemm_mma.hpp"
#include "planners/reached.hpp"

namespace tuff_test::reach {
namespace {

// A matrix for each of a batch, and for each part of k.
struct Matrices {
  uint64_t rows, row_stride, columns, size;
  uint64_t batch, stride, parts = 1, part_stride = 0;

  uint64_t bytes() const {
    return span({{rows, row_stride * size}, {batch, stride}, {parts, part_stride}}, columns * size);
  }
  uint64_t padded() const { return bytes() + (row_stride - columns) * size; }
};

void multiplies(Reached& x) {
  using tuff::gemm::Wgmma;
  const bool split = x.kernel.source().name == std::string_view("gemm_split");
  const auto of_split = split ? tuff::gemm::Split::read(x.kernel) : tuff::gemm::Split{};
  const Wgmma kernel = split ? static_cast<const Wgmma&>(of_split) : Wgmma::read(x.kernel);
  const auto push = kernel.windows != 0 ? x.push<Wgmma::WindowPush>().plain : x.push<Wgmma::Push>();
  const uint64_t m = push.m, n = push.n, k = push.k, batch = push.matrices;
  x.holds(ceil_div(m, uint64_t{kernel.rows}) == push.tiles_m && ceil_div(n, uint64_t{kernel.columns}) == push.tiles_n,
          "tiles cover C");
  const uint64_t of_product = uint64_t{push.tiles_m} * push.tiles_n * batch;
  x.holds(of_product != 0 && push.tiles % of_product == 0, "each part of k has all tiles");
  if (!x.wrong.empty()) return;
  const uint64_t parts = push.tiles / of_product;
  x.holds(parts * push.k_slice >= k && (parts - 1) * push.k_slice < k, "parts of k are k");
  x.holds(parts == 1 || push.k_slice % kernel.step() == 0, "parts of k are whole steps");
  x.holds(kernel.edge || (m % kernel.rows == 0 && n % kernel.columns == 0 && k % kernel.step() == 0), "no edges");
  x.holds(kernel.beta == (push.beta != 0), "C is read unless beta is 0");
  x.holds(x.groups() <= push.tiles, "workgroups have tiles");
  if (kernel.windows != 0) return;
  const uint64_t size_a = split ? 4 : size_of(kernel.type), size_b = split ? 4 : size_of(kernel.b_type);
  const uint64_t size_c = size_of(kernel.c_type);
  const uint64_t unit_a = split ? 1 : 16 / size_a, unit_b = split ? 1 : 16 / size_b;
  const Matrices a{kernel.trans_a ? k : m, push.lda * unit_a, kernel.trans_a ? m : k, size_a, batch, push.stride_a};
  const Matrices b{kernel.trans_b ? n : k, push.ldb * unit_b, kernel.trans_b ? k : n, size_b, batch, push.stride_b};
  const Matrices c{m, push.ldc, n, size_c, batch, push.stride_c, parts, push.slice_c};
  x.operand(0, a.bytes(), a.padded()), x.operand(1, b.bytes(), b.padded()), x.operand(2, c.bytes());
  const auto pieces = [&](const Matrices& y, std::string_view name) {
    in_pieces(x, {{y.rows, y.row_stride * y.size}, {y.batch, y.stride}}, name);
  };
  if (!split || of_split.quads_a) pieces(a, "A");
  if (!split || of_split.quads_b) pieces(b, "B");
  const uint64_t together = size_c == 4 ? 2 : 8;
  x.holds(!kernel.vector || (n % together == 0 && push.ldc % together == 0 && push.stride_c % (together * size_c) == 0),
          "rows of C are vectors");
}

void multiplies_narrow(Reached& x) {
  const auto kernel = tuff::gemm::Narrow::read(x.kernel);
  const auto push = x.push<tuff::gemm::Narrow::Push>();
  const uint64_t rows = push.rows, columns = push.columns, k = push.k;
  x.holds(ceil_div(rows, uint64_t{kernel.rows}) == push.tiles && columns <= kernel.columns, "tiles cover C");
  const uint64_t of_matrix = uint64_t{push.tiles} * push.parts;
  x.holds(of_matrix != 0 && x.groups() % of_matrix == 0, "each matrix has all tiles and parts");
  if (!x.wrong.empty()) return;
  const uint64_t batch = x.groups() / of_matrix, size_c = size_of(kernel.c_type);
  x.holds(uint64_t{push.parts} * push.k_slice >= k && (push.parts - 1) * uint64_t{push.k_slice} < k,
          "parts of k are k");
  x.holds(push.parts == 1 || push.k_slice % kernel.step() == 0, "parts of k are whole steps");
  x.holds(kernel.beta == (push.beta != 0), "C is read unless beta is 0");
  const auto of = [&](bool along_k, uint64_t count, uint64_t ld, uint64_t size, uint64_t stride) {
    return std::array<Axis, 3>{Axis{along_k ? count : k, ld}, Axis{batch, stride}, Axis{(along_k ? k : count), size}};
  };
  const auto check = [&](uint32_t i, const std::array<Axis, 3>& axes, std::string_view name) {
    const uint64_t row = axes[2].count * axes[2].stride, bytes = span({axes[0], axes[1]}, row);
    x.operand(i, bytes, bytes + axes[0].stride - row);
    in_pieces(x, {axes[0], axes[1]}, name);
  };
  check(0, of(kernel.long_along_k, rows, push.ld_long, kernel.long_bytes(), push.stride_long), "the long operand");
  check(1, of(kernel.short_along_k, columns, push.ld_short, kernel.short_bytes(), push.stride_short),
        "the short operand");
  const Matrices c{kernel.transposed ? columns : rows,
                   push.ldc,
                   kernel.transposed ? rows : columns,
                   size_c,
                   batch,
                   push.stride_c,
                   push.parts,
                   push.slice_c};
  x.operand(2, c.bytes());
}

void sums_blocks(Reached& x) {
  using tuff::quant::Blocks;
  const Blocks kernel = Blocks::read(x.kernel);
  const auto push = x.push<Blocks::Push>();
  const uint64_t n = push.n, m = push.m, k = push.k;
  const uint64_t block = kernel.per_step > 1 ? Blocks::kStep / kernel.per_step : Blocks::kStep * push.steps_of_block;
  x.holds(
      ceil_div(n, uint64_t{Blocks::kRows}) == push.tiles_n && ceil_div(m, uint64_t{Blocks::kColumns}) == push.tiles_m,
      "tiles cover the sums");
  x.holds(push.tiles == uint64_t{push.tiles_n} * push.tiles_m && x.groups() <= push.tiles, "workgroups have tiles");
  x.holds(block != 0 && push.blocks == ceil_div(k, block), "blocks are k");
  x.holds(push.rounds == ceil_div(uint64_t{push.blocks}, uint64_t{Blocks::kTogether}), "rounds have all blocks");
  x.holds(k % 16 == 0, "rows are pieces of 16 bytes");
  x.operand(0, span({{n, push.ldw * uint64_t{16}}}, k));
  x.operand(1, n * push.blocks * size_of(kernel.scale_type));
  x.operand(2, span({{m, push.lda * uint64_t{16}}}, k));
  x.operand(3, m * n * 4);
}

// Products with quantised weights, whose scales of blocks are found by a shift.
template <typename Kernel>
void scales_blocks(Reached& x) {
  const auto kernel = Kernel::read(x.kernel);
  const auto push = x.push<typename Kernel::Push>();
  if (kernel.scales != 2) return;
  x.holds(push.block_shift < 32 && push.row_scales == ceil_div(uint64_t{push.k}, uint64_t{1} << push.block_shift),
          "blocks of a power of two are k");
}

constexpr Kernel kNativeKernels[] = {
    {"gemm_narrow", multiplies_narrow},
    {"gemm_split", multiplies},
    {"gemm_wgmma", multiplies},
    {"qgemm_blocks", sums_blocks},
    {"qgemm_mma", scales_blocks<tuff::quant::Mma>},
};

}  // namespace

std::span<const Kernel> native_kernels() { return kNativeKernels; }

}  // namespace tuff_test::reach
