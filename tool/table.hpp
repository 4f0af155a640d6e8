// A text table with aligned columns, and a progress bar: plain characters, no colours.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tool {

enum class Align { left, right };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
    bool optional = false;  // dropped if the table would be too wide
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void row(std::vector<std::string> cells);
  void rule();         // a thin line between groups of rows
  void print() const;  // to stdout, folded to table_width()

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule

  std::vector<size_t> widths() const;  // of the columns; 0: dropped
};

// One line on stderr, rewritten in place, with an estimate of the remaining time (at most what is left of
// limit_seconds). Silent if stderr is not a terminal.
class Progress {
 public:
  explicit Progress(uint64_t total, double limit_seconds = 1e9);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const std::string& what);  // the next step is about to begin
  void clear();

 private:
  uint64_t total_;
  double limit_seconds_;
  uint64_t done_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool terminal_;
};

}  // namespace tool
