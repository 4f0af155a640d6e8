// Every environment variable that Tuff reads, and its valid values. Contexts warn about an invalid value and then treat
// the variable as unset; the tuff tool refuses to start.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuff {

struct Variable {
  const char* name;
  const char* wants;
  bool (*accepts)(std::string_view value);  // null: any value; checked where it is used
  const char* summary;                      // null: for tests and measurements only
};

std::span<const Variable> variables();

struct VariableProblem {
  std::string name, value, wants;
  std::string text() const;  // TUFF_LOG is "nonsense", needs error, warning, …
};

// Checks the current environment.
std::vector<VariableProblem> variable_problems();

}  // namespace tuff
