// A table of text with aligned columns, and a progress bar: plain characters, no colours.
#pragma once

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
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void row(std::vector<std::string> cells);
  void rule();         // a thin line between groups of rows
  void print() const;  // to stdout

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

// One line on stderr that is rewritten in place; silent where stderr is no terminal.
class Progress {
 public:
  explicit Progress(uint64_t total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const std::string& what);  // about to begin the next of total
  void clear();

 private:
  uint64_t total_;
  uint64_t done_ = 0;
  bool terminal_;
};

}  // namespace tool
