#include "tool/usage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/variables.hpp"
#include "tool/text.hpp"
#include "tuff/tuff.hpp"

namespace tool {
namespace {

// Edit distance: insertions, deletions, replacements, and swaps of adjacent characters.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

// Variables of programs that come with Tuff: its tests, benchmarks, scripts and examples.
bool is_of_others(const std::string& name) {
  constexpr const char* kPrefixes[] = {"TUFF_TEST_", "TUFF_BENCH_", "TUFF_STARTUP_", "TUFF_SKIP_SETUP"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](const char* prefix) { return name.rfind(prefix, 0) == 0; });
}

// Whether a list of devices is valid depends on the devices present, so the library checks it.
void check_visible_devices() {
  try {
    tuff::device_count();
  } catch (const tuff::Exception& error) {
    if (error.status() == TUFF_ERROR_INVALID_ARGUMENT) throw UsageError(error.what(), "correct it, or unset it");
  }  // the command reports other errors, if it needs devices
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  size_t least = std::max<size_t>(word.size() / 3, 1) + 1;
  for (const std::string& name : names) {
    // A prefix counts as near.
    const bool begins = word.size() >= 2 && name.rfind(word, 0) == 0;
    const size_t apart = begins ? 1 : distance(word, name);
    if (apart < least) least = apart, best = name;
  }
  return best;
}

bool matches(const std::string& filter, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.find(filter) != std::string::npos; });
}

void fail_filter(const std::string& command, const std::string& filter, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::string near = nearest(filter, names);
  throw UsageError(fmt::format("--filter: {} has nothing with \"{}\" in its name{}", command, filter,
                               near.empty() ? "" : fmt::format("; did you mean {}?", near)),
                   fmt::format("available: {}", fmt::join(names, "; ")));
}

void check_environment() {
  std::vector<std::string> names;
  for (const tuff::Variable& variable : tuff::variables()) names.emplace_back(variable.name);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry), name = text.substr(0, text.find('='));
    if (name.rfind("TUFF_", 0) != 0 || is_of_others(name)) continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = nearest(name, names);
    fmt::print(stderr, "warning: {} in the environment is not a variable of Tuff{}\n", name,
               near.empty() ? "; tuff --help lists them" : fmt::format("; did you mean {}?", near));
  }
  const std::vector<tuff::VariableProblem> problems = tuff::variable_problems();
  if (problems.empty()) {
    if (std::getenv("TUFF_VISIBLE_DEVICES") != nullptr) check_visible_devices();
    return;
  }
  std::string text;
  for (const tuff::VariableProblem& problem : problems) text += (text.empty() ? "" : "; ") + problem.text();
  throw UsageError("in the environment, " + text, "correct it, or unset it");
}

std::string environment_help() {
  std::vector<std::pair<std::string, std::string>> rows;
  std::vector<std::string> rest;
  for (const tuff::Variable& variable : tuff::variables()) {
    if (variable.summary == nullptr) {
      rest.emplace_back(variable.name);
    } else {
      rows.emplace_back(variable.name, fmt::format("{}: {}", variable.summary, variable.wants));
    }
  }
  return "Environment:\n" + two_columns(rows) +
         folded_text(fmt::format("For tests and measurements: {}", fmt::join(rest, ", ")), 2, 2);
}

}  // namespace tool
