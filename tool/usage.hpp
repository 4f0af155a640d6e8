// Reports errors in the command line or the environment: the process ends with status 2.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace tool {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kExitInterrupted = 130;  // as in shells

class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& what, std::string hint = "")
      : std::runtime_error(what), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

// The name that was probably meant; empty if none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& names);

// How --filter matches: the text is a substring of any of the names.
bool matches(const std::string& filter, const std::vector<std::string>& names);

// Throws for a filter that matches nothing. The message lists `names`, each once.
[[noreturn]] void fail_filter(const std::string& command, const std::string& filter, std::vector<std::string> names);

// Checks each TUFF_… environment variable: throws for an invalid value, warns about names that Tuff does not know.
void check_environment();

// The table of variables, for --help.
std::string environment_help();

}  // namespace tool
