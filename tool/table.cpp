#include "tool/table.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tool/format.hpp"
#include "tool/text.hpp"

namespace tool {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kGap = 3;
constexpr size_t kNarrowest = 10;  // the minimum width a column is folded to
constexpr int kBarWidth = 30;

// The total width of these columns, including gaps.
size_t total_of(const std::vector<size_t>& widths) {
  size_t total = 0;
  for (const size_t width : widths) total += width == 0 ? 0 : width + (total == 0 ? 0 : kGap);
  return total;
}

// The width of the terminal that shows the progress bar.
size_t progress_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

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

std::vector<size_t> Table::widths() const {
  std::vector<size_t> widths, least;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = columns_[i].title.size();
    for (const auto& cells : rows_) {
      if (!cells.empty()) width = std::max(width, cells[i].size());
    }
    widths.push_back(width);
    least.push_back(columns_[i].align == Align::right ? width : std::max(columns_[i].title.size(), kNarrowest));
  }
  const size_t most = table_width();
  const auto too_wide = [&] { return kIndent + total_of(widths) > most; };
  for (size_t i = columns_.size(); i-- > 0 && too_wide();) {
    if (columns_[i].optional) widths[i] = 0;
  }
  while (too_wide()) {  // narrows the widest column that can be folded, step by step
    size_t widest = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] > least[i] && (widest == columns_.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  return widths;
}

void Table::print() const {
  const std::vector<size_t> wide = widths();
  const auto print_row = [&](auto&& cell) {
    std::vector<std::vector<std::string>> cells(columns_.size());
    size_t lines = 1;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (wide[i] == 0) continue;
      cells[i] = folded(cell(i), wide[i]);
      lines = std::max(lines, cells[i].size());
    }
    for (size_t at = 0; at < lines; ++at) {
      std::string text(kIndent, ' ');
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (wide[i] == 0) continue;
        if (text.size() > kIndent) text.append(kGap, ' ');
        const std::string part = at < cells[i].size() ? cells[i][at] : "";
        text += columns_[i].align == Align::right ? fmt::format("{:>{}}", part, wide[i])
                                                  : fmt::format("{:<{}}", part, wide[i]);
      }
      fmt::print("{}\n", trimmed(text));
    }
  };
  const auto thin_line = [&] { fmt::print("{:{}}{:-<{}}\n", "", kIndent, "", total_of(wide)); };
  print_row([&](size_t i) -> const std::string& { return columns_[i].title; });
  thin_line();
  for (const auto& cells : rows_) {
    if (cells.empty()) {
      thin_line();
    } else {
      print_row([&](size_t i) -> const std::string& { return cells[i]; });
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
  std::string line = fmt::format("  [{:#<{}}{:.<{}}] {:3d} %  {:>10}  {:<40}", "", filled, "", kBarWidth - filled,
                                 100 * done_ / total_, left, shorten(what, 40));
  line.resize(std::min(line.size(), progress_width()));  // a line that wraps could not be overwritten
  fmt::print(stderr, "\r{}", line);
  std::fflush(stderr);
  ++done_;
}

void Progress::clear() {
  if (terminal_) fmt::print(stderr, "\r{:{}}\r", "", progress_width());
}

}  // namespace tool
