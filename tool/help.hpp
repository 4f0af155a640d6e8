// How --help looks, and what it says beyond the options.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace tool {

// Two columns that fit the terminal.
std::shared_ptr<CLI::Formatter> help_formatter();

// What stands at the end of a command's help: "" is tuff itself.
std::string help_footer(const std::string& command);

// The arguments as CLI11 takes them: `tuff help bench` is `tuff bench --help`. Throws for a command that is none.
std::vector<std::string> with_help_command(const CLI::App& app, int argc, char** argv);

// What CLI11 says of a command line, as one line with what was probably meant.
[[noreturn]] void fail_parse(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tool
