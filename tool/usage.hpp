// What is wrong with the command line or the environment: the process ends with status 2.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace tool {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kExitInterrupted = 130;  // as shells have it

class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& what, std::string hint = "")
      : std::runtime_error(what), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

// Of the names the one that was probably meant; empty if none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& names);

// What --filter goes by: whether the text is a part of any of them.
bool matches(const std::string& filter, const std::vector<std::string>& names);

// Throws for a filter that leaves nothing, and says what there is: `names`, each once.
[[noreturn]] void fail_filter(const std::string& command, const std::string& filter, std::vector<std::string> names);

// Each variable TUFF_… of the environment: throws for a value that it cannot have, warns of names that Tuff does not
// know.
void check_environment();

// The table of variables, for --help.
std::string environment_help();

}  // namespace tool
