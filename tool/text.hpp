// Text that fits the terminal, JSON, and a standard output that cannot fail unseen.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tool {

// Columns of the output: COLUMNS, else those of the terminal, else 80; from 40 to 200.
size_t output_width();
// As a table may have them: no limit where neither COLUMNS nor a terminal gives one, so that programs find whole rows.
size_t table_width();

// Lines of at most so many characters each, broken between words; a word that is longer is broken.
std::vector<std::string> folded(std::string_view text, size_t width);

// The same as one text of output_width(), its first line and the others behind so many spaces.
std::string folded_text(std::string_view text, size_t first_indent, size_t indent);

// Rows of "  left   right", the right folded; a left that is too long has a line of its own.
std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows);

// Valid JSON, whatever bytes a driver's name has.
void print_json(const nlohmann::ordered_json& json);

// Throws if anything of what was printed could not be written: a full disk, a closed pipe whose signal is ignored.
void finish_output();
// What a closed standard stream would do: the next file that anyone opens were taken for it.
void keep_standard_streams();

}  // namespace tool
