// GEMMs.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "fuzz/draft.hpp"
#include "fuzz/epilogue.hpp"
#include "fuzz/numbers.hpp"

namespace tuff_fuzz {
namespace {

// One stored matrix: its rows have `row` elements.
struct Stored {
  uint64_t rows, row, leading, stride;
  std::vector<Axis> axes(uint64_t batch) const {
    return {{rows == 0 || row == 0 ? 0 : batch, stride}, {rows, leading}, {row, 1}};
  }
};

Stored stored(Draft& d, bool padded, uint64_t rows, uint64_t row, uint64_t batch, bool repeat) {
  Stored matrix{rows, row, row, 0};
  if (padded) matrix.leading += d.loose().below(4);
  matrix.leading = std::max<uint64_t>(matrix.leading, 1);
  const uint64_t one = rows == 0 || row == 0 ? 0 : (rows - 1) * matrix.leading + row;
  if (!repeat && batch > 1) matrix.stride = one + (padded ? d.loose().below(6) : 0);
  return matrix;
}

struct Types {
  int32_t dtype, a, b, c;  // a, b, c: 0 where the flat call takes dtype for them
  int32_t real_a, real_b, real_c;
};

Types draw_types(Draft& d) {
  Draw& draw = d.shape;
  Types types{};
  const bool mixed = d.has("a_type") && draw.one_in(2);
  types.dtype = draw.of({TUFF_F32, TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64, TUFF_I8});
  types.real_a = types.real_b = types.dtype;
  types.real_c = types.dtype == TUFF_I8 ? int32_t{TUFF_I32} : types.dtype;
  if (!mixed) return types;
  if (types.dtype == TUFF_I8) {
    types.c = types.real_c = draw.of<int32_t>({TUFF_I32, TUFF_F32, TUFF_F16, TUFF_BF16});
  } else if (types.dtype != TUFF_F64) {
    types.a = types.real_a = draw_float(draw), types.b = types.real_b = draw_float(draw);
    types.c = types.real_c = draw_float(draw);
  }
  return types;
}

void draw_product(Draft& d, bool batched) {
  Draw& draw = d.shape;
  const Types types = draw_types(d);
  const bool flat = !d.has("a_type"), whole = types.real_c == TUFF_I32;
  d.set("dtype", types.dtype);
  d.set("a_type", types.a), d.set("b_type", types.b), d.set("c_type", types.c);
  const int32_t ta = static_cast<int32_t>(draw.below(3)), tb = static_cast<int32_t>(draw.below(3));
  d.set("ta", ta), d.set("tb", tb);
  const uint64_t m = d.extent(draw_size(draw, 40)), n = d.extent(draw_size(draw, 40)),
                 k = d.extent(draw_size(draw, draw.one_in(4) ? 130 : 24));
  const uint64_t batch = batched ? d.extent(draw.one_in(12) ? 0 : draw.between(1, 5), 0, 5) : 1;
  d.set("m", m), d.set("n", n), d.set("k", k);
  if (batched) d.set("batch_count", batch);
  const double alpha = draw.of({1.0, 1.0, -1.0, 2.0, 0.0, whole ? 3.0 : 0.5});
  const double beta = draw.of({0.0, 0.0, 1.0, -1.0, whole ? -3.0 : 0.5});
  d.real("alpha", alpha), d.real("beta", beta);
  const bool padded = draw.one_in(2), few = batch > 0 && batch <= 4;
  // With sizes that are set, the options do not depend on them.
  const bool arrays = batched && !flat && (few || d.extents != nullptr) && draw.one_in(4) && few;
  const Stored a = stored(d, padded, ta == 0 ? m : k, ta == 0 ? k : m, batch, arrays || draw.one_in(4));
  const Stored b = stored(d, padded, tb == 0 ? k : n, tb == 0 ? n : k, batch, arrays || draw.one_in(4));
  const Stored c = stored(d, padded, m, n, batch, arrays);
  const bool implied = !flat && !padded && draw.one_in(2);  // leading dimensions of 0
  d.set("lda", implied ? 0 : a.leading), d.set("ldb", implied ? 0 : b.leading), d.set("ldc", implied ? 0 : c.leading);
  if (!arrays) d.set("stride_a", a.stride), d.set("stride_b", b.stride), d.set("stride_c", c.stride);
  const bool multiplies = alpha != 0 && k != 0, empty = m == 0 || n == 0 || batch == 0;
  Fill fill = d.free.one_in(2) ? Fill::positive : Fill::integers;
  const auto operands = [&](const char* name, const char* array, int32_t dtype, const Stored& matrix, bool written) {
    const uint64_t used = empty ? 0 : footprint(matrix.axes(arrays ? 1 : batch));
    const uint32_t times = arrays ? static_cast<uint32_t>(batch) : 1;
    if (arrays) d.list(array, std::vector<uint64_t>(times, 0));
    for (uint32_t i = 0; i < times; ++i) {
      Operand& operand = written ? d.output(arrays ? array : name, dtype, used, i)
                                 : d.input(arrays ? array : name, dtype, used, fill, 4, i);
      if (written) operand.read = beta != 0, operand.axes = matrix.axes(arrays ? 1 : batch);
    }
  };
  operands("a", "a_array", types.real_a, a, false);
  operands("b", "b_array", types.real_b, b, false);
  operands("c", "c_array", types.real_c, c, true);
  Epilogue epilogue;
  double limit = types.dtype == TUFF_F64 ? 0x1p50 : 0x1p22;
  if (!flat) {
    if (types.real_a == TUFF_F16 && types.real_b == TUFF_F16 && draw.one_in(6)) {
      d.set("accumulate", TUFF_F16), limit = 0x1p10;
    }
    if (types.real_a == TUFF_F32 && types.real_b == TUFF_F32 && draw.one_in(4)) {
      d.set("precision",
            draw.of<int32_t>({TUFF_PRECISION_ALLOW_F16, TUFF_PRECISION_ALLOW_BF16, TUFF_PRECISION_ALLOW_TF32}));
    }
    if (draw.one_in(2)) {
      epilogue.activation = static_cast<int32_t>(draw.below(whole ? 2 : 6));
      if (types.dtype == TUFF_F64 && epilogue.activation > 1) epilogue.activation = TUFF_ACTIVATION_RELU;
      d.set("activation", epilogue.activation);
    }
    if (draw.one_in(2)) {
      const int32_t axis = draw.of<int32_t>({TUFF_BIAS_ROWS, TUFF_BIAS_COLUMNS});
      const uint64_t length = axis == TUFF_BIAS_ROWS ? m : n, stride = batched && draw.one_in(2) ? length : 0;
      d.set("bias_axis", axis), d.set("stride_bias", stride);
      d.input("bias", types.real_c, empty ? 0 : (batch - 1) * stride + length);
    }
    if (draw.one_in(3) && !empty) {
      const Stored residual = stored(d, padded, m, n, batch, arrays || draw.one_in(3));
      d.set("ld_residual", residual.leading), d.set("stride_residual", residual.stride);
      d.input("residual", types.real_c, footprint(residual.axes(batch)));
    }
  }
  if (!flat && !whole && types.dtype != TUFF_F64) {
    for (const char* name : {"scale_a", "scale_b", "scale_c"}) {
      if (draw.one_in(6)) d.input(name, TUFF_F32, empty ? 0 : 1, Fill::integers);
    }
  }
  if (epilogue.activation > 1 && epilogue.activation != TUFF_ACTIVATION_RELU6) {
    for (Operand& operand : d.operands) {
      if (!operand.written) continue;
      // A denormal result of the activation may be flushed to zero before it is multiplied by scale_c.
      operand.allowed = [&d, by_activation = epilogue.allowed(operand.dtype)](uint64_t i, double y) {
        double scale = 0;
        for (const Operand& other : d.operands) {
          if (std::string_view(other.name) == "scale_c") scale = other.seen.most;
        }
        return by_activation(i, y) + scale * 0x1p-126;
      };
    }
  }
  const bool exact_always = types.dtype == TUFF_I8 && whole;
  d.suits = [&d, alpha, beta, k, limit, multiplies, exact_always] {
    double a_most = 0, b_most = 0, added = 0, scale = 1;
    for (const Operand& operand : d.operands) {
      if (operand.elements == 0 || !operand.read) continue;
      if (operand.name[0] == 's') {
        if (!operand.seen.integral) return false;
        scale *= std::max(1.0, operand.seen.most);
        continue;
      }
      const bool first = operand.name[0] == 'a', second = operand.name[0] == 'b' && operand.name[1] != 'i';
      if ((first || second) && !multiplies) continue;
      if (!operand.seen.integral && !exact_always) return false;
      if (first)
        a_most = std::max(a_most, operand.seen.most);
      else if (second)
        b_most = std::max(b_most, operand.seen.most);
      else
        added += operand.seen.most * std::max(1.0, std::fabs(beta));
    }
    // The input types that `precision` allows: f16 and bf16 hold integers up to 256 exactly.
    if (a_most > 256 || b_most > 256) return exact_always;
    const double sums = a_most * b_most * static_cast<double>(k) * std::max(1.0, std::fabs(alpha)) + added;
    return exact_always || sums * scale < limit;
  };
}

constexpr Description kProducts[] = {
    {"tuff_gemm", "gemm", [](Draft& d) { draw_product(d, false); }},
    {"tuff_gemm_ex", "gemm", [](Draft& d) { draw_product(d, false); }},
    {"tuff_batched_gemm", "gemm", [](Draft& d) { draw_product(d, true); }},
    {"tuff_batched_gemm_ex", "gemm", [](Draft& d) { draw_product(d, true); }},
};

}  // namespace

std::span<const Description> describe_products() { return kProducts; }

}  // namespace tuff_fuzz
