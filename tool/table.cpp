#include "tool/table.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tool/format.hpp"

namespace tool {
namespace {

constexpr int kIndent = 2;
constexpr int kGap = 3;
constexpr int kBarWidth = 30;

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::rule() { rows_.emplace_back(); }

void Table::print() const {
  std::vector<size_t> widths;
  size_t total = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = columns_[i].title.size();
    for (const auto& cells : rows_) {
      if (!cells.empty()) width = std::max(width, cells[i].size());
    }
    widths.push_back(width);
    total += width + (i ? kGap : 0);
  }
  const auto line = [&](auto&& cell) {
    std::string text(kIndent, ' ');
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i) text.append(kGap, ' ');
      text += columns_[i].align == Align::right ? fmt::format("{:>{}}", cell(i), widths[i])
                                                : fmt::format("{:<{}}", cell(i), widths[i]);
    }
    fmt::print("{}\n", trimmed(text));
  };
  const auto thin_line = [&] { fmt::print("{:{}}{:-<{}}\n", "", kIndent, "", total); };
  line([&](size_t i) -> const std::string& { return columns_[i].title; });
  thin_line();
  for (const auto& cells : rows_) {
    if (cells.empty()) {
      thin_line();
    } else {
      line([&](size_t i) -> const std::string& { return cells[i]; });
    }
  }
}

Progress::Progress(uint64_t total, double limit_seconds)
    : total_(std::max<uint64_t>(total, 1)), limit_seconds_(limit_seconds), terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::step(const std::string& what) {
  if (!terminal_) return;
  const auto filled = static_cast<int>(kBarWidth * done_ / total_);
  std::string left;
  if (done_ != 0) {
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    const double rest = spent / static_cast<double>(done_) * static_cast<double>(total_ - done_);
    const auto seconds = static_cast<uint64_t>(std::max(std::min(rest, limit_seconds_ - spent), 0.0) + 0.5);
    left = fmt::format("{}:{:02d} left", seconds / 60, seconds % 60);
  }
  fmt::print(stderr, "\r  [{:#<{}}{:.<{}}] {:3d} %  {:>10}  {:<40}", "", filled, "", kBarWidth - filled,
             100 * done_ / total_, left, shorten(what, 40));
  std::fflush(stderr);
  ++done_;
}

void Progress::clear() {
  if (terminal_) fmt::print(stderr, "\r{:98}\r", "");
}

}  // namespace tool
