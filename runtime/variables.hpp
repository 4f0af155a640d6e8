// Every variable of the environment that Tuff reads, and what it can be. Contexts warn of one that is anything else,
// which is then as good as unset; the tuff tool does not begin with one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuff {

struct Variable {
  const char* name;
  const char* wants;
  bool (*accepts)(std::string_view value);  // null: anything, which is looked at where it is used
  const char* summary;                      // null: for tests and measurements
};

std::span<const Variable> variables();

struct VariableProblem {
  std::string name, value, wants;
  std::string text() const;  // TUFF_LOG is "nonsense", needs error, warning, …
};

// Of the environment as it is now.
std::vector<VariableProblem> variable_problems();

}  // namespace tuff
