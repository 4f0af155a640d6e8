// Options of test programs: --name value. Unknown options, missing values and malformed numbers end the program with
// its usage text and status 2; --help prints the text.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>

namespace tuff_test {

// A bool is an option without a value.
struct Option {
  std::string_view name;
  std::variant<uint64_t*, double*, std::string*, bool*> target;
};

// Parses words[first …].
inline void parse_options(int count, char** words, int first, const char* usage,
                          std::initializer_list<Option> options) {
  const auto refuse = [&](const std::string& message) {
    std::fprintf(stderr, "error: %s\n%s", message.c_str(), usage);
    std::exit(2);
  };
  for (int i = 1; i < count; ++i) {
    if (std::string_view(words[i]) == "--help") std::fputs(usage, stdout), std::exit(0);
  }
  if (count < first) refuse("an argument is missing");
  for (int i = first; i < count; ++i) {
    const std::string_view name = words[i];
    const Option* found = nullptr;
    for (const Option& option : options) {
      if (option.name == name) found = &option;
    }
    if (found == nullptr) refuse(std::string(name) + " is unknown");
    if (bool* const* flag = std::get_if<bool*>(&found->target)) {
      **flag = true;
      continue;
    }
    if (++i == count) refuse(std::string(name) + " needs a value");
    const std::string_view value = words[i];
    if (std::string* const* text = std::get_if<std::string*>(&found->target)) {
      **text = value;
      continue;
    }
    const auto parse = [&](auto& number) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc() || end != value.data() + value.size()) {
        refuse(std::string(name) + ": \"" + std::string(value) + "\" is not a number");
      }
    };
    if (uint64_t* const* whole = std::get_if<uint64_t*>(&found->target)) parse(**whole);
    if (double* const* real = std::get_if<double*>(&found->target)) parse(**real);
  }
}

// "--part 3/8": every eighth item, from the third on, for a campaign that several processes share.
struct Part {
  uint64_t number = 1, count = 1;
  bool has(uint64_t item) const { return item % count == number - 1; }
};
inline Part read_part(const std::string& text) {
  Part part;
  if (text.empty()) return part;
  unsigned long long number = 0, count = 0;
  int end = 0;
  const bool read = std::sscanf(text.c_str(), "%llu/%llu%n", &number, &count, &end) == 2;
  if (!read || static_cast<size_t>(end) != text.size() || number == 0 || number > count) {
    std::fprintf(stderr, "error: --part is %s, needs a part such as 3/8\n", text.c_str());
    std::exit(2);
  }
  part.number = number;
  part.count = count;
  return part;
}

}  // namespace tuff_test
