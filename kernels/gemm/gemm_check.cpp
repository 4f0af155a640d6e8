// Checks the arguments of a GEMM.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/common/check.hpp"
#include "kernels/gemm/gemm.hpp"
#include "planning/kept_vector.hpp"

namespace tuff {
namespace {

bool is_float(int32_t type) { return (kFloatTypes | kFloat8Types).has(type); }

void check_types(const GemmArgs& args) {
  check_known_type(args.a_type, "a_type");
  check_known_type(args.b_type, "b_type");
  check_known_type(args.c_type, "c_type");
  check_known_type(args.accumulate, "accumulate");
  const bool floats = is_float(args.a_type) && is_float(args.b_type) && is_float(args.c_type);
  const bool integers =
      args.a_type == TUFF_I8 && args.b_type == TUFF_I8 && (args.c_type == TUFF_I32 || is_float(args.c_type));
  const bool doubles = args.a_type == TUFF_F64 && args.b_type == TUFF_F64 && args.c_type == TUFF_F64;
  if (!floats && !integers && !doubles) {
    fail(TUFF_ERROR_UNSUPPORTED,
         "dtype or a_type, b_type, c_type request {} x {} to {}, which is not supported: needs f32, f16, bf16 and f8, "
         "i8 x i8 to i32 or one of these, or f64 x f64 to f64",
         dtype_name(args.a_type), dtype_name(args.b_type), dtype_name(args.c_type));
  }
  const bool f16_inputs = args.a_type == TUFF_F16 && args.b_type == TUFF_F16;
  const bool short_sums = args.accumulate == TUFF_F16 && (f16_inputs || args.has_float8_inputs());
  if (args.accumulate != args.sum_type() && !short_sums) {
    fail(TUFF_ERROR_UNSUPPORTED, "accumulate is {}, {} x {} is accumulated in {}", dtype_name(args.accumulate),
         dtype_name(args.a_type), dtype_name(args.b_type), dtype_name(args.sum_type()));
  }
  require(args.precision >= TUFF_PRECISION_DEFAULT && args.precision <= TUFF_PRECISION_ALLOW_TF32 &&
              args.precision != TUFF_PRECISION_ALLOW_WINOGRAD,
          "precision is {}, must be TUFF_PRECISION_DEFAULT, _ALLOW_F16, _ALLOW_BF16 or _ALLOW_TF32", args.precision);
  require(args.precision == TUFF_PRECISION_DEFAULT || (args.a_type == TUFF_F32 && args.b_type == TUFF_F32),
          "precision applies to f32 inputs, a is {} and b {}", dtype_name(args.a_type), dtype_name(args.b_type));
}

// Calls body(buffer, name) for each scale that is given.
template <typename Body>
void each_scale(const GemmEpilogue& epilogue, const Body& body) {
  constexpr const char* kNames[] = {"scale_a", "scale_b", "scale_c"};
  const auto scales = epilogue.scales();
  for (size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] != nullptr) body(scales[i], kNames[i]);
  }
}

bool whole_i32(double value) { return value >= -0x1p31 && value < 0x1p31 && std::trunc(value) == value; }

void check_scaling(const GemmArgs& args) {
  const int32_t activation = args.epilogue.activation;
  check_activation(activation);
  each_scale(args.epilogue, [&](const Buffer*, const char* name) {
    require(args.c_type != TUFF_I32 && args.c_type != TUFF_F64, "{} is given, and c is {}, which takes no scales", name,
            dtype_name(args.c_type));
  });
  if (args.c_type != TUFF_I32) return;
  require(whole_i32(args.alpha), "alpha is {}, an i32 c takes 32-bit integers", args.alpha);
  require(whole_i32(args.beta), "beta is {}, an i32 c takes 32-bit integers", args.beta);
  require(activation <= TUFF_ACTIVATION_RELU, "activation is {}, an i32 c takes none or TUFF_ACTIVATION_RELU",
          activation);
}

// Elements from a matrix's first to its last, both included; padding after the last row does not count.
uint64_t footprint(uint64_t rows, uint64_t cols, uint64_t ld, const char* name) {
  return rows == 0 || cols == 0 ? 0 : checked_add(checked_mul(rows - 1, ld, name), cols, name);
}

uint64_t batch_footprint(uint64_t matrix, uint64_t stride, uint64_t batch_count, const char* name) {
  return matrix == 0 ? 0 : checked_add(checked_mul(batch_count - 1, stride, name), matrix, name);
}

// An operand: one buffer, or one for each matrix of a batch.
struct Matrices {
  const char* name;
  const Buffer* one;
  const Buffer* const* array;  // null: all are in `one`
  int32_t type;
  uint64_t elements;  // of `one`, or of each
  // For messages.
  const char *rows_name, *cols_name;
  uint64_t rows, cols, ld, stride;

  uint64_t bytes() const { return elements * dtype_size(type); }
  std::string label(uint64_t i) const { return array != nullptr ? fmt::format("{}_array[{}]", name, i) : name; }
};

void check_matrices(const Matrices& x, const GemmArgs& args) {
  const auto detail = [&] {
    const std::string letter = x.name == std::string("residual") ? "_residual" : x.name;
    std::string text = fmt::format("{}={} {}={} ld{}={}", x.rows_name, x.rows, x.cols_name, x.cols, letter, x.ld);
    if (args.batch_count > 1 && x.array == nullptr) {
      text += fmt::format(" stride={} batch_count={}", x.stride, args.batch_count);
    }
    return text;
  };
  if (x.array == nullptr) return check_operand(x.one, x.name, x.elements, x.type, detail);
  for (uint64_t i = 0; i < args.batch_count; ++i) {
    if (!operand_fits(x.array[i], x.elements, x.type))
      check_operand(x.array[i], x.label(i), x.elements, x.type, detail);
  }
}

// The bytes of an allocation that matrix `index` of C occupies.
struct Range {
  const Allocation* allocation;
  uint64_t begin, end, index;
  auto place() const { return std::tuple(allocation, begin); }
};

Range range_of(const Buffer* buffer, uint64_t bytes, uint64_t index) {
  return {buffer->allocation.get(), buffer->offset, buffer->offset + bytes, index};
}

// For a batch of buffers: checks that no matrix of C overlaps another, or an input.
class Outputs {
 public:
  Outputs(const Matrices& c, uint64_t batch_count) : c_(c) {
    std::vector<Range>& ranges = *ranges_;
    ranges.reserve(batch_count);
    for (uint64_t i = 0; i < batch_count; ++i) ranges.push_back(range_of(c.array[i], c.bytes(), i));
    std::sort(ranges.begin(), ranges.end(), [](const Range& x, const Range& y) { return x.place() < y.place(); });
    for (size_t i = 1; i < ranges.size(); ++i) {
      const Range &x = ranges[i - 1], &y = ranges[i];
      if (x.allocation == y.allocation && y.begin < x.end) {
        fail(TUFF_ERROR_INVALID_ARGUMENT, "{} overlaps {}: the matrices of c must not overlap",
             c.label(std::max(x.index, y.index)), c.label(std::min(x.index, y.index)));
      }
    }
  }

  // `may_be` is the matrix of C that the input may coincide with; name() is the input's name in messages.
  template <typename Name>
  void check_apart(const Buffer* input, uint64_t bytes, const Name& name, const Buffer* may_be = nullptr) const {
    if (input == nullptr || bytes == 0) return;
    const Range wanted = range_of(input, bytes, 0);
    auto at = std::upper_bound(ranges_->begin(), ranges_->end(), wanted,
                               [](const Range& x, const Range& y) { return x.place() < y.place(); });
    // The ranges have one size and are disjoint: the first that can overlap is the last one that begins at or before
    // it.
    if (at != ranges_->begin()) --at;
    for (; at != ranges_->end() && at->place() < std::tuple(wanted.allocation, wanted.end); ++at) {
      if (at->allocation != wanted.allocation || at->end <= wanted.begin) continue;
      const Buffer* c = c_.array[at->index];
      check_overlap(c, c_.label(at->index), c_.bytes(), input, name(), bytes, c == may_be || is_same(c, may_be));
    }
  }

 private:
  static bool is_same(const Buffer* x, const Buffer* y) {
    return y != nullptr && x->allocation == y->allocation && x->offset == y->offset;
  }
  const Matrices& c_;
  KeptVector<Range> ranges_;
};

void check_all_apart(const GemmArgs& args, const Matrices& a, const Matrices& b, const Matrices& c,
                     const Matrices& residual, uint64_t bias_bytes) {
  const GemmEpilogue& epilogue = args.epilogue;
  if (args.c_array == nullptr) {
    check_overlap(args.c, "c", c.bytes(), args.a, "a", a.bytes(), false);
    check_overlap(args.c, "c", c.bytes(), args.b, "b", b.bytes(), false);
    check_overlap(args.c, "c", c.bytes(), epilogue.bias, "bias", bias_bytes, false);
    each_scale(epilogue, [&](const Buffer* scale, const char* name) {
      check_overlap(args.c, "c", c.bytes(), scale, name, GemmEpilogue::kScaleBytes, false);
    });
    const bool laid_out_alike = (args.m == 1 || args.ldc == epilogue.ld_residual) &&
                                (args.batch_count == 1 || args.stride_c == epilogue.stride_residual);
    check_overlap(args.c, "c", c.bytes(), epilogue.residual, "residual", residual.bytes(), laid_out_alike);
    return;
  }
  const Outputs outputs(c, args.batch_count);
  for (uint64_t i = 0; i < args.batch_count; ++i) {
    outputs.check_apart(args.a_array[i], a.bytes(), [&] { return a.label(i); });
    outputs.check_apart(args.b_array[i], b.bytes(), [&] { return b.label(i); });
  }
  outputs.check_apart(epilogue.bias, bias_bytes, [] { return "bias"; });
  each_scale(epilogue, [&](const Buffer* scale, const char* name) {
    outputs.check_apart(scale, GemmEpilogue::kScaleBytes, [&] { return name; });
  });
  if (epilogue.residual == nullptr) return;
  const uint64_t size = dtype_size(args.c_type);
  const bool laid_out_alike = args.m == 1 || args.ldc == epilogue.ld_residual;
  const bool repeated = epilogue.stride_residual == 0 && args.batch_count > 1;
  const uint64_t bytes = footprint(args.m, args.n, epilogue.ld_residual, "residual") * size;  // of one matrix
  for (uint64_t i = 0; i < (repeated ? 1 : args.batch_count); ++i) {
    Buffer matrix = *epilogue.residual;
    matrix.offset += i * epilogue.stride_residual * size;
    outputs.check_apart(
        &matrix, bytes, [&] { return fmt::format("residual (matrix {})", i); },
        laid_out_alike && !repeated ? args.c_array[i] : nullptr);
  }
}

// Returns the elements of the bias.
uint64_t check_bias(const GemmArgs& args) {
  const GemmEpilogue& epilogue = args.epilogue;
  if (epilogue.bias_axis == TUFF_BIAS_NONE) return 0;
  const bool rows = epilogue.bias_axis == TUFF_BIAS_ROWS;
  const uint64_t length = rows ? args.m : args.n;
  const uint64_t bias = batch_footprint(length, epilogue.stride_bias, args.batch_count, "bias");
  check_operand(epilogue.bias, "bias", bias, args.c_type, [&] {
    return fmt::format("{}={} stride_bias={} batch_count={}", rows ? "m" : "n", length, epilogue.stride_bias,
                       args.batch_count);
  });
  return bias;
}

// The elements that `count` matrices take.
uint64_t elements(uint64_t rows, uint64_t cols, uint64_t ld, uint64_t stride, uint64_t count, const char* name) {
  return batch_footprint(footprint(rows, cols, ld, name), stride, count, name);
}

// For one operand that is a product's factor: its dimensions as stored, and their names.
struct Stored {
  uint64_t rows, cols;
  const char *rows_name, *cols_name;
};
Stored stored_a(const GemmArgs& args) {
  if (args.ta != TUFF_NO_TRANS) return {args.k, args.m, "k", "m"};
  return {args.m, args.k, "m", "k"};
}
Stored stored_b(const GemmArgs& args) {
  if (args.tb != TUFF_NO_TRANS) return {args.n, args.k, "n", "k"};
  return {args.k, args.n, "k", "n"};
}

void check_leading_dimensions(const GemmArgs& args) {
  const Stored a = stored_a(args), b = stored_b(args);
  const GemmEpilogue& epilogue = args.epilogue;
  require(args.lda >= a.cols, "lda is {}, must be at least {}={}", args.lda, a.cols_name, a.cols);
  require(args.ldb >= b.cols, "ldb is {}, must be at least {}={}", args.ldb, b.cols_name, b.cols);
  require(args.ldc >= args.n, "ldc is {}, must be at least n={}", args.ldc, args.n);
  require(epilogue.residual == nullptr || epilogue.ld_residual >= args.n, "ld_residual is {}, must be at least n={}",
          epilogue.ld_residual, args.n);
}

Matrices matrices_of_a(const GemmArgs& args, uint64_t batch) {
  const Stored a = stored_a(args);
  const uint64_t count = elements(a.rows, a.cols, args.lda, args.stride_a, batch, "a");
  return {"a",         args.a, args.a_array, args.a_type, count,        a.rows_name,
          a.cols_name, a.rows, a.cols,       args.lda,    args.stride_a};
}
Matrices matrices_of_b(const GemmArgs& args, uint64_t batch) {
  const Stored b = stored_b(args);
  const uint64_t count = elements(b.rows, b.cols, args.ldb, args.stride_b, batch, "b");
  return {"b",         args.b, args.b_array, args.b_type, count,        b.rows_name,
          b.cols_name, b.rows, b.cols,       args.ldb,    args.stride_b};
}

}  // namespace

void check_activation(int32_t activation) {
  require(activation >= TUFF_ACTIVATION_NONE && activation <= TUFF_ACTIVATION_RELU6,
          "activation is {}, not a TUFF_ACTIVATION_*", activation);
}

void check_gemm(const GemmArgs& args) {
  check_types(args);
  check_transpose(args.ta, "ta");
  check_transpose(args.tb, "tb");
  check_scaling(args);
  const GemmEpilogue& epilogue = args.epilogue;
  require(epilogue.bias_axis >= TUFF_BIAS_NONE && epilogue.bias_axis <= TUFF_BIAS_COLUMNS,
          "bias_axis is {}, must be TUFF_BIAS_NONE, _ROWS or _COLUMNS", epilogue.bias_axis);
  require(epilogue.bias_axis != TUFF_BIAS_NONE || epilogue.bias == nullptr,
          "bias is given, and bias_axis is TUFF_BIAS_NONE");
  check_leading_dimensions(args);
  if (args.m == 0 || args.n == 0 || args.batch_count == 0) return;

  const bool arrays = args.c_array != nullptr;
  const uint64_t batch = arrays ? 1 : args.batch_count;
  const uint64_t c_matrix = footprint(args.m, args.n, args.ldc, "c");
  require(batch == 1 || args.stride_c >= c_matrix,
          "stride_c is {}, must be at least {} (m={} n={} ldc={}): the matrices of c must not overlap", args.stride_c,
          c_matrix, args.m, args.n, args.ldc);
  const Matrices a = matrices_of_a(args, batch), b = matrices_of_b(args, batch);
  const Matrices c{
      "c",          args.c, args.c_array, args.c_type, elements(args.m, args.n, args.ldc, args.stride_c, batch, "c"),
      "m",          "n",    args.m,       args.n,      args.ldc,
      args.stride_c};
  check_matrices(a, args);
  check_matrices(b, args);
  check_matrices(c, args);
  const uint64_t bias = check_bias(args);
  Matrices residual{"residual",           epilogue.residual,       nullptr, args.c_type, 0, "m", "n", args.m, args.n,
                    epilogue.ld_residual, epilogue.stride_residual};
  if (epilogue.residual != nullptr) {
    residual.elements =
        elements(args.m, args.n, epilogue.ld_residual, epilogue.stride_residual, args.batch_count, "residual");
    check_matrices(residual, args);
  }
  each_scale(epilogue, [](const Buffer* scale, const char* name) {
    check_operand(scale, name, 1, TUFF_F32, [] { return std::string("one f32"); });
  });
  // The operands hold this many bytes, so no multiplication of sizes overflows.
  check_all_apart(args, a, b, c, residual, bias * dtype_size(args.c_type));
}

}  // namespace tuff
