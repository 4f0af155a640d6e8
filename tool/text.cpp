#include "tool/text.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>

namespace tool {
namespace {

constexpr size_t kNarrowestLine = 40, kWidestLine = 200, kElsewhere = 80;
constexpr size_t kLeft = 36;  // the left one of two columns

std::optional<size_t> wanted_width() {
  size_t columns = 0;
  if (const char* text = std::getenv("COLUMNS"); text != nullptr) {
    const char* const end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, columns);
    if (error != std::errc() || rest != end) columns = 0;
  }
  winsize size{};
  if (columns == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns == 0) return std::nullopt;
  return std::clamp(columns, kNarrowestLine, kWidestLine);
}

}  // namespace

size_t output_width() { return wanted_width().value_or(kElsewhere); }

size_t table_width() { return wanted_width().value_or(std::numeric_limits<size_t>::max()); }

std::vector<std::string> folded(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  width = std::max<size_t>(width, 1);
  while (!text.empty()) {
    size_t end = text.size();
    if (end > width) {
      const size_t space = text.rfind(' ', width);
      end = space == std::string_view::npos || space == 0 ? width : space;
    }
    std::string line(text.substr(0, end));
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
    text.remove_prefix(end);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

std::string folded_text(std::string_view text, size_t first_indent, size_t indent) {
  const size_t width = output_width();
  std::string result;
  for (const std::string& line : folded(text, width - std::max(first_indent, indent))) {
    result += std::string(result.empty() ? first_indent : indent, ' ') + line + "\n";
  }
  return result;
}

std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows) {
  const size_t width = output_width();
  size_t left = 0;
  for (const auto& row : rows) {
    if (row.first.size() + 4 <= kLeft) left = std::max(left, row.first.size() + 4);
  }
  left = std::min(left == 0 ? kLeft : left, width / 2);
  std::string text;
  for (const auto& [name, description] : rows) {
    std::string begin = "  " + name;
    if (begin.size() + 2 > left) {
      text += begin + "\n";
      begin.clear();
    }
    for (const std::string& line : folded(description, width - left)) {
      text += fmt::format("{:<{}}{}\n", begin, left, line);
      begin.clear();
    }
  }
  return text;
}

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_json_line(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void finish_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw std::runtime_error(fmt::format("standard output: {}", std::strerror(errno != 0 ? errno : EIO)));
}

void keep_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // Standard output and error are opened read-only, so that writing to them fails, as it should.
    if (::fcntl(descriptor, F_GETFD) < 0) ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace tool
