#include "planners/requirements.hpp"

#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

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
    {"strided_copy", "TUFF_UNROLL divides TUFF_RUN", unroll_divides},
    {"cast", "TUFF_UNROLL divides TUFF_RUN", unroll_divides},
    {"unary", "TUFF_UNROLL divides TUFF_RUN", unroll_divides},
    {"binary", "TUFF_UNROLL divides TUFF_RUN", unroll_divides},
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
