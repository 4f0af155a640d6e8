// The layout of --help, and its text beyond the options.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace tool {

// Two columns, folded to the output's width.
std::shared_ptr<CLI::Formatter> help_formatter();

// The footer of a command's help; "" is tuff itself.
std::string help_footer(const std::string& command);

// Rewrites the arguments for CLI11: `tuff help bench` becomes `tuff bench --help`. Throws for an unknown command.
std::vector<std::string> with_help_command(const CLI::App& app, int argc, char** argv);

// Reports CLI11's parse error in one line, with a suggestion of what was probably meant.
[[noreturn]] void fail_parse(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tool
