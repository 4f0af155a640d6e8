#include "sweeps/variants.hpp"

#include <cctype>
#include <charconv>
#include <initializer_list>

namespace tuff_sweep {
namespace {

std::vector<std::string> named(std::string_view list, std::initializer_list<const char*> others) {
  std::vector<std::string> names = {kUnforced};
  while (!list.empty()) {
    const size_t comma = list.find(',');
    names.emplace_back(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

bool is_kind(std::string_view variant) { return variant == "cpu" || variant == "gpu"; }

// The number that stands before or after `word`; 0 if there is none.
unsigned number_at(std::string_view text, std::string_view word, bool after) {
  const size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  size_t begin = after ? at + word.size() : at;
  while (!after && begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
  unsigned number = 0;
  std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return number;
}

unsigned workgroup_in(std::string_view message) {
  for (const char* word : {" lanes of ", ", groups of "}) {
    if (const unsigned number = number_at(message, word, true); number != 0) return number;
  }
  return number_at(message, " lanes", false);
}

bool has_word(std::string_view text, std::string_view word) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"gemm",
       "TUFF_GEMM_VARIANT",
       named(TUFF_SWEEP_GEMM, {"panels", "skinny", "tiny_lanes", "tiny_columns", "wide"}),
       {"tuff_gemm", "tuff_gemm_ex", "tuff_batched_gemm", "tuff_batched_gemm_ex"}},
      {"conv",
       "TUFF_CONV_VARIANT",
       named(TUFF_SWEEP_CONV, {"patches", "matrices", kDepthwise, kTransposed}),
       {"tuff_conv1d", "tuff_conv1d_ex", "tuff_conv2d", "tuff_conv2d_ex", "tuff_conv3d", "tuff_conv3d_ex",
        "tuff_conv_transpose2d", "tuff_conv_transpose2d_ex"}},
      {"attention", "TUFF_ATTENTION_VARIANT", named(TUFF_SWEEP_ATTENTION, {}), {"tuff_attention", "tuff_attention_ex"}},
      {"elementwise",
       "TUFF_ELEMENTWISE_VARIANT",
       {"cpu", "gpu"},
       {"tuff_unary", "tuff_unary_ex", "tuff_binary", "tuff_binary_ex"}},
      {"norm",
       "TUFF_NORM_VARIANT",
       {"cpu", "gpu"},
       {"tuff_layer_norm", "tuff_layer_norm_ex", "tuff_rms_norm", "tuff_rms_norm_ex", "tuff_group_norm",
        "tuff_group_norm_ex", "tuff_batch_norm", "tuff_batch_norm_ex"}},
      {"pool", "TUFF_POOL_VARIANT", {"cpu", "gpu"}, {"tuff_max_pool", "tuff_avg_pool"}},
      {"reduce", "TUFF_REDUCE_VARIANT", {"cpu", "gpu"}, {"tuff_reduce", "tuff_reduce_ex"}},
      {"scan", "TUFF_REDUCE_VARIANT", {"cpu", "gpu"}, {"tuff_cumsum", "tuff_cumprod"}},
      {"resize", "TUFF_RESIZE_VARIANT", {"cpu", "gpu"}, {"tuff_resize"}},
      {"rope", "TUFF_ROPE_VARIANT", {"cpu", "gpu"}, {"tuff_rope", "tuff_rope_ex"}},
      {"shape",
       "TUFF_SHAPE_VARIANT",
       {"cpu", "gpu"},
       {"tuff_permute", "tuff_permute_ex", "tuff_cast", "tuff_cast_ex", "tuff_slice", "tuff_slice_ex", "tuff_concat",
        "tuff_concat_ex", "tuff_gather", "tuff_gather_ex"}},
      {"softmax", "TUFF_SOFTMAX_VARIANT", {"cpu", "gpu"}, {"tuff_softmax", "tuff_softmax_ex"}},
  };
  return all;
}

std::vector<Forced> all_variants(std::string_view family, std::string_view variant) {
  std::vector<Forced> result;
  for (const Family& each : families()) {
    if (!family.empty() && family != each.name) continue;
    for (const std::string& name : each.variants) {
      if (variant.empty() || variant == name) result.push_back({&each, name});
    }
  }
  return result;
}

bool tells(std::string_view message, const Forced& forced, unsigned subgroup) {
  if (forced.variant == kUnforced) return true;
  if (forced.variant == "matrices") return message.find("conv on matrix units") != std::string_view::npos;
  if (!forced.by_variable()) return message.starts_with("conv " + forced.variant);
  if (!is_kind(forced.variant)) return has_word(message, forced.variant);
  const unsigned workgroup = workgroup_in(message);
  return workgroup != 0 && (workgroup > subgroup) == (forced.variant == "gpu");
}

}  // namespace tuff_sweep
