#include "planners/requirements.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

#include "planning/element_type.hpp"
#include "shaders/gemm_pack.hpp"
#include "shaders/gemm_panels.hpp"

namespace tuff_test {
namespace {

class Defines {
 public:
  explicit Defines(const tuff::KernelRequest& kernel) : kernel_(kernel) {}
  std::optional<int64_t> find(std::string_view name) const {
    for (uint32_t i = 0; i < kernel_.define_count(); ++i) {
      if (kernel_.defines()[i].name == name) return kernel_.defines()[i].value;
    }
    return std::nullopt;
  }
  int64_t operator()(std::string_view name) const { return find(name).value_or(0); }
  uint32_t constant(uint32_t id) const {
    for (uint32_t i = 0; i < kernel_.constant_count(); ++i) {
      if (kernel_.constants()[i].id == id) return kernel_.constants()[i].value;
    }
    return 0;
  }

 private:
  const tuff::KernelRequest& kernel_;
};

using Holds = bool (*)(const Defines& d);
struct Requirement {
  std::string_view kernel;
  const char* text;
  Holds holds;
};

template <typename Push>
Push pushed(const tuff::Dispatch& dispatch) {
  Push push;
  if (dispatch.push_bytes() == sizeof push) std::memcpy(&push, dispatch.push_data(), sizeof push);
  return push;
}

bool divides(int64_t unit, int64_t size) { return unit != 0 && size % unit == 0; }
bool implies(bool condition, bool result) { return !condition || result; }

bool unroll_divides(const Defines& d) { return implies(d("TUFF_RUN") != 0, divides(d("TUFF_UNROLL"), d("TUFF_RUN"))); }

constexpr Requirement kRequirements[] = {
    {"gemm_tiny", "LOCAL_SIZE is a multiple of ROW_PARTS * COL_PARTS",
     [](const Defines& d) { return divides(d("ROW_PARTS") * d("COL_PARTS"), d("LOCAL_SIZE")); }},
    {"gemm_tiny", "DEPTH is 4 if a vector runs along k",
     [](const Defines& d) {
       const bool along = (d("VECTOR_A") != 0 && d("TRANS_A") == 0) || (d("VECTOR_B") != 0 && d("TRANS_B") != 0);
       return implies(along, d("DEPTH") == 4);
     }},
    {"gemm_tiny", "VECTOR_A with TRANS_A needs EXACT and ROWS % 4 = 0",
     [](const Defines& d) {
       return implies(d("VECTOR_A") != 0 && d("TRANS_A") != 0, d("EXACT") != 0 && d("ROWS") % 4 == 0);
     }},
    {"gemm_tiny", "VECTOR_B without TRANS_B needs EXACT and COLS % 4 = 0",
     [](const Defines& d) {
       return implies(d("VECTOR_B") != 0 && d("TRANS_B") == 0, d("EXACT") != 0 && d("COLS") % 4 == 0);
     }},
    {"gemm_tiny", "VECTOR_C needs EXACT",
     [](const Defines& d) { return implies(d("VECTOR_C") != 0, d("EXACT") != 0); }},
    {"gemm_tile", "BM / TM is a multiple of 8",
     [](const Defines& d) { return divides(d("TM"), d("BM")) && d("BM") / d("TM") % 8 == 0; }},
    {"gemm_tile", "BN / TN is a multiple of 4",
     [](const Defines& d) { return divides(d("TN"), d("BN")) && d("BN") / d("TN") % 4 == 0; }},
    {"gemm_subgroup", "C_TOGETHER is 1 with TRANS_C",
     [](const Defines& d) { return implies(d("TRANS_C") != 0, d("C_TOGETHER") == 1); }},
    {"gemm_rows", "GROUP_ROWS is a multiple of ROWS",
     [](const Defines& d) { return divides(d("ROWS"), d("GROUP_ROWS")); }},
    {"gemm_rows", "INTERLEAVED excludes vectors",
     [](const Defines& d) { return implies(d("INTERLEAVED") != 0, d("VECTOR_L") == 0 && d("VECTOR_S") == 0); }},
    {"gemm_rows", "VECTOR_L needs ALONG_K",
     [](const Defines& d) { return implies(d("VECTOR_L") != 0, d("ALONG_K") != 0); }},
    {"gemm_pack", "ROWS is even", [](const Defines& d) { return d("ROWS") % 2 == 0; }},
    {"gemm_panels", "DEPTH is a multiple of 16", [](const Defines& d) { return d("DEPTH") % 16 == 0; }},
    {"gemm_matrix", "padded operands are loaded by 16 bytes",
     [](const Defines& d) {
       return implies(d("PADDED_A") != 0, d("A_BYTES") == 16) && implies(d("PADDED_B") != 0, d("B_BYTES") == 16);
     }},
    {"attention_tile", "ROWS is a multiple of TR", [](const Defines& d) { return divides(d("TR"), d("ROWS")); }},
    {"attention_tile", "KEYS is a multiple of 4 * LANES and of DEPTH",
     [](const Defines& d) { return divides(4 * d("LANES"), d("KEYS")) && divides(d("DEPTH"), d("KEYS")); }},
    {"attention_tile", "COLUMNS is a multiple of 4 * LANES",
     [](const Defines& d) { return divides(4 * d("LANES"), d("COLUMNS")); }},
    {"attention_backward_tile", "OWN is a multiple of TR", [](const Defines& d) { return divides(d("TR"), d("OWN")); }},
    {"attention_backward_tile", "OTHER is a multiple of 4 * LANES and of DEPTH",
     [](const Defines& d) { return divides(4 * d("LANES"), d("OTHER")) && divides(d("DEPTH"), d("OTHER")); }},
    {"attention_backward_tile", "COLUMNS is a multiple of 4 * LANES",
     [](const Defines& d) { return divides(4 * d("LANES"), d("COLUMNS")); }},
    {"attention_backward_tile", "dv needs KEYS_SIDE, and something is wanted",
     [](const Defines& d) { return implies(d("SECOND") != 0, d("KEYS_SIDE") != 0) && d("FIRST") + d("SECOND") != 0; }},
    {"attention_backward_sums", "bounds are found with powers",
     [](const Defines& d) { return implies(d("BOUNDS") != 0, d("POWERS") != 0); }},
    {"permute_lanes", "no vec4s of 8-byte units",
     [](const Defines& d) { return implies(d("TUFF_VEC4S") != 0, d("TUFF_UNIT") != 8); }},
    {"reduce_rows", "TUFF_RUN is 1 with TUFF_SHARED",
     [](const Defines& d) { return implies(d("TUFF_SHARED") != 0, d("TUFF_RUN") == 1); }},
    {"attention_split", "what is not stored in eights of bytes beside what is has 16 bits",
     [](const Defines& d) {
       return implies((d("KEY_FORMAT") != 0) != (d("VALUE_FORMAT") != 0),
                      tuff::dtype_size(static_cast<int32_t>(d("TYPE"))) == 2);
     }},
    {"sort_rows", "TUFF_ITEMS excludes TUFF_LANES and TUFF_CANDIDATES",
     [](const Defines& d) { return implies(d("TUFF_ITEMS") != 0, d("TUFF_LANES") == 0 && d("TUFF_CANDIDATES") == 0); }},
    {"strided_copy", "TUFF_UNROLL divides TUFF_RUN", unroll_divides},
    {"cast", "TUFF_UNROLL divides TUFF_RUN", unroll_divides},
    {"unary", "TUFF_UNROLL divides TUFF_RUN", unroll_divides},
    {"binary", "TUFF_UNROLL divides TUFF_RUN", unroll_divides},
};

// Operands that a kernel has if a define is set, and not otherwise.
struct OptionalOperand {
  std::string_view kernel, define;
  uint32_t operand;
};
constexpr OptionalOperand kOptionalOperands[] = {
    {"attention_backward_pairs", "BIAS", 5},
    {"attention_backward_pairs", "BIASED", 9},
    {"attention_backward_pairs", "MASK", 6},
    {"attention_backward_pairs", "SLOPES", 1},
    {"attention_backward_tile", "BIAS", 6},
    {"attention_backward_tile", "FIRST", 8},
    {"attention_backward_tile", "MASK", 7},
    {"attention_backward_tile", "SECOND", 9},
    {"batch_norm", "TUFF_BIAS", 4},
    {"batch_norm", "TUFF_WEIGHT", 3},
    {"conv_depthwise", "BIAS", 3},
    {"conv_depthwise", "RESIDUAL", 4},
    {"conv_subgroup", "BIAS", 3},
    {"conv_subgroup", "RESIDUAL", 4},
    {"conv_tile", "BIAS", 3},
    {"conv_tile", "RESIDUAL", 4},
    {"conv_winograd_output", "BIAS", 3},
    {"conv_winograd_output", "RESIDUAL", 4},
    {"cross_entropy", "TUFF_FACTOR", 2},
    {"cross_entropy", "TUFF_GRADIENT", 5},
    {"cross_entropy", "TUFF_LOSS", 4},
    {"cross_entropy", "TUFF_ROWS_GIVEN", 3},
    {"dequantize", "TUFF_ZEROS", 2},
    {"dropout", "TUFF_MASK", 2},
    {"gemm_cols", "BIAS_AXIS", 3},
    {"gemm_cols", "RESIDUAL", 4},
    {"gemm_finish", "BIAS_AXIS", 2},
    {"gemm_finish", "RESIDUAL", 3},
    {"gemm_matrix", "BIAS_AXIS", 3},
    {"gemm_matrix", "RESIDUAL", 4},
    {"gemm_rows", "BIAS_AXIS", 3},
    {"gemm_rows", "RESIDUAL", 4},
    {"gemm_tiny", "BIAS_AXIS", 3},
    {"gemm_tiny", "RESIDUAL", 4},
    {"gradient_norm_end", "TUFF_FACTOR", 3},
    {"gradient_norm_end", "TUFF_FACTOR_IN", 1},
    {"gradient_norm_end", "TUFF_FOUND", 4},
    {"gradient_norm_end", "TUFF_NORM", 2},
    {"linalg_cholesky", "TUFF_INFO", 1},
    {"linalg_determinant", "TUFF_DETERMINANT", 2},
    {"linalg_determinant", "TUFF_LOG", 4},
    {"linalg_determinant", "TUFF_SIGN", 3},
    {"linalg_francis", "TUFF_VECTORS", 1},
    {"linalg_hessenberg", "TUFF_VECTORS", 1},
    {"linalg_large_cholesky", "TUFF_INFO", 1},
    {"linalg_lu", "TUFF_INFO", 2},
    {"linalg_panel", "TUFF_INFO", 2},
    {"linalg_qr", "TUFF_VECTORS", 1},
    {"linalg_schur_values", "TUFF_INFO", 4},
    {"norm_apply", "TUFF_BIAS", 3},
    {"norm_apply", "TUFF_WEIGHT", 2},
    {"norm_backward_rows", "TUFF_INPUT", 3},
    {"norm_backward_rows", "TUFF_SUMS", 4},
    {"norm_backward_rows", "TUFF_WEIGHT", 2},
    {"norm_finish", "TUFF_MEANS", 2},
    {"norm_finish", "TUFF_OF_BIAS", 4},
    {"norm_finish", "TUFF_OF_WEIGHT", 3},
    {"norm_finish", "TUFF_WEIGHT", 1},
    {"norm_line_sums", "TUFF_WEIGHT", 2},
    {"norm_merge", "TUFF_FOLLOW", 4},
    {"norm_merge", "TUFF_FOLLOW", 5},
    {"norm_rows", "TUFF_BIAS", 3},
    {"norm_rows", "TUFF_RESIDUAL", 1},
    {"norm_rows", "TUFF_SUM", 5},
    {"norm_rows", "TUFF_WEIGHT", 2},
    {"norm_split_rows", "TUFF_BIAS", 3},
    {"norm_split_rows", "TUFF_RESIDUAL", 1},
    {"norm_split_rows", "TUFF_WEIGHT", 2},
    {"optimizer_state", "TUFF_GRADIENT_FACTOR", 2},
    {"optimizer_state", "TUFF_RATE_FACTOR", 1},
    {"optimizer_state", "TUFF_SKIP", 3},
    {"optimizer_state", "TUFF_STEPS", 0},
    {"optimizer_step", "TUFF_MASTER", 4},
    {"places", "TUFF_CLAIM", 3},
    {"pool", "TUFF_INDICES", 2},
    {"pool_backward", "TUFF_MAXIMUM", 2},
    {"qgemm_rows", "BIAS_AXIS", 5},
    {"qgemm_rows", "RESIDUAL", 6},
    {"qgemm_rows", "TUFF_ZEROS", 2},
    {"qgemm_scale", "A_ZEROS", 4},
    {"qgemm_scale", "BIAS_AXIS", 9},
    {"qgemm_scale", "RESIDUAL", 10},
    {"qgemm_scale", "W_ZEROS", 2},
    {"qgemm_tile", "BIAS_AXIS", 5},
    {"qgemm_tile", "RESIDUAL", 6},
    {"quantize", "TUFF_ZEROS", 2},
    {"radix_move", "TUFF_CARRY", 4},
    {"radix_move", "TUFF_VALUES", 3},
    {"rnn_backward", "TUFF_LENGTHS", 1},
    {"rnn_bias", "TUFF_R", 1},
    {"rnn_bias", "TUFF_W", 0},
    {"rnn_gates", "TUFF_BIAS", 3},
    {"rnn_gates", "TUFF_LENGTHS", 5},
    {"rnn_gates", "TUFF_OUTPUT", 6},
    {"rnn_gates", "TUFF_PEEPHOLES", 4},
    {"rnn_sequences", "TUFF_LENGTHS", 1},
    {"rope", "TUFF_POSITIONS", 2},
    {"scatter_fold", "TUFF_LEAF", 1},
    {"softmax_columns", "TUFF_MASK", 3},
    {"softmax_rows", "TUFF_MASK", 2},
    {"softmax_split_rows", "TUFF_MASK", 3},
    {"sort_rows", "TUFF_CANDIDATES", 1},
    {"sort_rows", "TUFF_VALUES", 2},
    {"sparse_assemble", "TUFF_SOME", 0},
    {"sparse_assemble", "TUFF_SOME", 1},
    {"sparse_assemble", "TUFF_SOME", 2},
    {"sparse_assemble", "TUFF_SOME", 3},
    {"sparse_assemble", "TUFF_SOME", 4},
    {"sparse_block_rows", "TUFF_PERMUTED", 3},
    {"sparse_blocks", "TUFF_PERMUTED", 3},
    {"sparse_dense", "TUFF_SOME", 0},
    {"sparse_dense", "TUFF_SOME", 1},
    {"sparse_dense", "TUFF_SOME", 2},
    {"sparse_flags", "TUFF_DENSE", 3},
    {"sparse_levels", "TUFF_PERMUTED", 1},
    {"sparse_merge", "TUFF_PERMUTED", 3},
    {"sparse_rows", "TUFF_PERMUTED", 3},
    {"sparse_sampled", "TUFF_SCALED", 4},
    {"sparse_sampled", "TUFF_SOME", 1},
    {"sparse_sampled", "TUFF_SOME", 2},
    {"sparse_sampled", "TUFF_SOME", 3},
    {"sparse_take", "TUFF_COUNT", 9},
    {"sparse_take", "TUFF_MAJOR", 5},
    {"sparse_take", "TUFF_ROOM", 6},
    {"sparse_take", "TUFF_SOME", 4},
    {"sparse_tiles", "TUFF_PERMUTED", 3},
    {"sparse_triangular", "TUFF_PERMUTED", 3},
};

// common/lanes.glsl: a power of two up to the subgroup's size, or the whole workgroup.
bool lanes_hold(const Defines& d, uint32_t subgroup) {
  if (!d.find("TUFF_LANES").has_value() || !d.find("TUFF_SHARED").has_value()) return true;
  const auto lanes = static_cast<uint64_t>(d("TUFF_LANES"));
  if (d("TUFF_SHARED") != 0) return lanes == d.constant(0);
  return std::has_single_bit(lanes) && lanes <= subgroup && divides(d("TUFF_LANES"), d.constant(0));
}

}  // namespace

std::string broken_requirement(const tuff::KernelRequest& kernel, const tuff::Dispatch& dispatch, uint32_t subgroup) {
  const Defines defines(kernel);
  const std::string_view name = kernel.source().name;
  for (const Requirement& row : kRequirements) {
    if (row.kernel == name && !row.holds(defines)) return row.text;
  }
  for (const OptionalOperand& row : kOptionalOperands) {
    if (row.kernel != name) continue;
    const tuff::Dispatch::Operand* const operand =
        row.operand < dispatch.operand_count() ? dispatch.operands() + row.operand : nullptr;
    const bool is = operand != nullptr && (operand->buffer != nullptr || operand->each != nullptr);
    if (is != (defines(row.define) != 0)) {
      return fmt::format("operand {} is there if {} is set, and only then", row.operand, row.define);
    }
  }
  if (!lanes_hold(defines, subgroup)) return "TUFF_LANES is a power of two up to the subgroup's size, or the workgroup";
  if (name == "gemm_panels" && defines("PAIRED_C") != 0) {
    const auto push = pushed<tuff::shaders::GemmPanels::Push>(dispatch);
    if (push.n % 2 != 0 || push.ldc % 2 != 0) return "n and ldc are even with PAIRED_C";
  }
  if (name == "gemm_pack" && defines("PAIRED") != 0) {
    const auto push = pushed<tuff::shaders::GemmPack::Push>(dispatch);
    if (push.row_step != 1 || push.k_step % 2 != 0 || push.rows % 2 != 0) {
      return "row_step is 1, k_step and rows are even with PAIRED";
    }
  }
  return {};
}

}  // namespace tuff_test
