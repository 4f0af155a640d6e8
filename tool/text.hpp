// Text folded to the terminal's width, JSON, and a standard output whose errors are noticed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tool {

// The output's width: COLUMNS, otherwise the terminal's, otherwise 80; clamped to 40..200.
size_t output_width();
// The width for tables: unlimited if neither COLUMNS nor a terminal gives one, so that programs read whole rows.
size_t table_width();

// Lines of at most `width` characters, broken between words. A word that is longer is split.
std::vector<std::string> folded(std::string_view text, size_t width);

// The same as one text of output_width(), with first_indent spaces before the first line and indent before the others.
std::string folded_text(std::string_view text, size_t first_indent, size_t indent);

// Rows of "  left   right", the right folded. A left part that is too long gets a separate line.
std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows);

// Prints valid JSON, whatever bytes a driver's name contains.
void print_json(const nlohmann::ordered_json& json);

// The same in one line.
void print_json_line(const nlohmann::ordered_json& json);

// Throws if any output could not be written: a full disk, or a closed pipe whose signal is ignored.
void finish_output();
// Fills in closed standard streams: otherwise the next file opened would take their descriptor.
void keep_standard_streams();

}  // namespace tool
