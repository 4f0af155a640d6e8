#include "sweeps/variants.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>

#include "fuzz/draft.hpp"

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

// "cpu" or "gpu", as the message names it; empty if it does not.
std::string_view kind_in(std::string_view message) {
  if (message.find("kernels for CPUs") != std::string_view::npos) return "cpu";
  return message.find("kernels for GPUs") != std::string_view::npos ? "gpu" : "";
}

bool has_word(std::string_view text, std::string_view word) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

// The families with variants of their own, or with another's variable. All others have kernels for CPUs and for GPUs.
std::vector<Family> special_families() {
  return {
      {"gemm",
       "TUFF_GEMM_VARIANT",
       named(TUFF_SWEEP_GEMM, {"panels", "skinny", "tiny_lanes", "tiny_columns", "wide"}),
       {}},
      {"conv", "TUFF_CONV_VARIANT", named(TUFF_SWEEP_CONV, {"patches", "matrices", kDepthwise, kTransposed}), {}},
      {"attention", "TUFF_ATTENTION_VARIANT", named(TUFF_SWEEP_ATTENTION, {"native_128"}), {}},
      {"attention_backward", "TUFF_ATTENTION_BACKWARD_VARIANT", named(TUFF_SWEEP_ATTENTION_BACKWARD, {"products"}), {}},
      {"scan", "TUFF_REDUCE_VARIANT", {"cpu", "gpu"}, {}},
  };
}

std::string variable_of(std::string family) {
  for (char& letter : family) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return "TUFF_" + family + "_VARIANT";
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> result = special_families();
    for (const tuff_fuzz::Description& each : tuff_fuzz::descriptions()) {
      auto family =
          std::find_if(result.begin(), result.end(), [&](const Family& one) { return one.name == each.family; });
      if (family == result.end()) {
        family = result.insert(family, {each.family, variable_of(each.family), {"cpu", "gpu"}, {}});
      }
      family->functions.push_back(each.function);
    }
    return result;
  }();
  return all;
}

std::vector<Forced> all_variants(std::string_view family, std::string_view variant) {
  std::vector<Forced> result;
  for (const Family& each : families()) {
    if (!family.empty() && family != each.name) continue;
    for (const std::string& name : each.variants) {
      if (variant.empty() || variant == name) result.push_back({&each, name});
    }
    const bool listed = std::ranges::find(each.variants, kUnforced) != each.variants.end();
    if (variant == kUnforced && !listed) result.push_back({&each, kUnforced});
  }
  return result;
}

bool tells(std::string_view message, const Forced& forced, unsigned subgroup) {
  if (forced.variant == kUnforced) return true;
  if (forced.variant == "matrices") return message.find("conv by cooperative matrices") != std::string_view::npos;
  if (!forced.by_variable()) return message.starts_with("conv " + forced.variant);
  if (!is_kind(forced.variant)) return has_word(message, forced.variant);
  if (const std::string_view kind = kind_in(message); !kind.empty()) return forced.variant == kind;
  const unsigned workgroup = workgroup_in(message);
  return workgroup != 0 && (workgroup > subgroup) == (forced.variant == "gpu");
}

bool tells_kind(std::string_view message) { return workgroup_in(message) != 0 || !kind_in(message).empty(); }

}  // namespace tuff_sweep
