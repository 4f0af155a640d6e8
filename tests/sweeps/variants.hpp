// The families of operations whose variants can be forced, and how a message of level TUFF_LOG_DISPATCH tells which
// variant was chosen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuff_sweep {

// Rows without a variable: whatever the planner chooses; and two kinds of convolution that it computes by kernels of
// their own.
inline constexpr const char *kUnforced = "planner", *kDepthwise = "depthwise", *kTransposed = "transpose";

struct Family {
  std::string name, variable;
  std::vector<std::string> variants;
  std::vector<const char*> functions;
};
const std::vector<Family>& families();

struct Forced {
  const Family* family;
  std::string variant;

  bool by_variable() const { return variant != kUnforced && variant != kDepthwise && variant != kTransposed; }
  std::string name() const { return family->name + "/" + variant; }
};
// In the tables' order; `family` and `variant` select, if they are not empty. Every family has kUnforced if it is asked
// for.
std::vector<Forced> all_variants(std::string_view family, std::string_view variant);

// Whether the message says that the variant was chosen. For the kinds "cpu" and "gpu", the size of a workgroup says so:
// one subgroup, or more. Where the extents decide about that size, the message names the kind.
bool tells(std::string_view message, const Forced& forced, unsigned subgroup);
// Whether the message says which kind of kernels was chosen, "cpu" or "gpu". For each function some must, because the
// sweep would leave its requests early, as if the variant never computed them.
bool tells_kind(std::string_view message);

}  // namespace tuff_sweep
