#include "tool/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace tool {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    return folded_text(app->get_description(), 0, 0) + "\n";
  }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    Rows rows;
    for (const CLI::Option* option : options) rows.emplace_back(name_of(option, is_positional), describe(option));
    return "\n" + group + ":\n" + two_columns(rows);
  }
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode) const override {
    Rows rows;
    for (const CLI::App* command : app->get_subcommands({})) {
      rows.emplace_back(command->get_name(), command->get_description());
    }
    return rows.empty() ? "" : "\nCommands:\n" + two_columns(rows);
  }
  std::string make_usage(const CLI::App* app, std::string) const override {
    std::string path = app->get_name();
    for (const CLI::App* parent = app->get_parent(); parent != nullptr; parent = parent->get_parent()) {
      path = parent->get_name() + " " + path;
    }
    const bool commands = !app->get_subcommands({}).empty();
    const bool needed = app->get_parent() == nullptr;
    return folded_text(fmt::format("Usage: {}{} [OPTIONS]", path, commands ? (needed ? " COMMAND" : " [COMMAND]") : ""),
                       0, 7);
  }

  std::string make_footer(const CLI::App* app) const override {
    const std::string footer = app->get_footer();
    return footer.substr(0, footer.find_last_not_of('\n') + 1);
  }

 private:
  // "-d, --device NAME"; "    --json"
  std::string name_of(const CLI::Option* option, bool is_positional) const {
    if (is_positional) return option->get_name(true, false);
    const std::vector<std::string>&shorts = option->get_snames(), &longs = option->get_lnames();
    std::string text = shorts.empty() ? "    " : "-" + shorts[0] + (longs.empty() ? "" : ", ");
    if (!longs.empty()) text += "--" + longs[0];
    if (option->get_type_size() != 0 && !option->get_type_name().empty()) text += " " + option->get_type_name();
    return text;
  }
  static std::string describe(const CLI::Option* option) {
    const std::string otherwise = option->get_default_str();
    return option->get_description() + (otherwise.empty() ? "" : "; otherwise " + otherwise);
  }
};

struct Examples {
  const char* command;
  std::vector<std::pair<std::string, std::string>> rows;
};

const std::vector<Examples>& all_examples() {
  static const std::vector<Examples> examples = {
      {"",
       {{"tuff info", "shows the devices, their limits and features"},
        {"tuff selftest", "checks that each device computes correctly"},
        {"tuff bench", "measures the best device"},
        {"tuff help bench", "shows the options of a command"}}},
      {"info",
       {{"tuff info", "all devices, and why others were refused"},
        {"tuff info --device 0", "one device"},
        {"tuff info --json", "the same for programs"}}},
      {"selftest",
       {{"tuff selftest", "all operations on all devices"},
        {"tuff selftest --filter gemm -v", "one operation, one line per shape"},
        {"tuff selftest --seed 7", "other random inputs"}}},
      {"bench",
       {{"tuff bench", "the best device"},
        {"tuff bench --device llvmpipe", "the device with \"llvmpipe\" in its name"},
        {"tuff bench --filter reduce", "the rows of one operation that tuff info lists"},
        {"tuff bench --trace trace.json", "also writes a trace for ui.perfetto.dev"}}},
      {"tune",
       {{"tuff tune", "one minute on the best device"},
        {"tuff tune --budget 600 --type f16", "longer; continues earlier measurements"},
        {"tuff tune --list", "only lists what would be measured"}}},
      {"cache",
       {{"tuff cache", "lists what is stored on disk"},
        {"tuff cache clear --stale", "removes entries that are useless on this machine"},
        {"tuff cache prewarm", "compiles the kernels that applications have used"}}},
      {"top",
       {{"tuff top", "until it is interrupted"},
        {"tuff top --once", "the next second"},
        {"tuff top --json --interval 10", "for programs"}}},
      {"list", {{"tuff cache list --json", "for programs"}}},
      {"clear",
       {{"tuff cache clear", "everything that can be rebuilt"},
        {"tuff cache clear --kind spirv", "one kind"},
        {"tuff cache clear --older-than 30", "entries not used for a month"}}},
      {"prewarm", {{"tuff cache prewarm --device 0", "for one device"}}},
  };
  return examples;
}

constexpr const char* kExitStatuses =
    "Exit status: 0 success; 1 a failure or a wrong result; 2 an invalid command line or environment; 130 "
    "interrupted.";

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : path_of(*app.get_parent()) + " " + app.get_name();
}

[[noreturn]] void fail_command(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> names = command_names(app);
  const std::string near = nearest(word, names);
  throw UsageError(fmt::format("{} has no command \"{}\"{}", path_of(app), word,
                               near.empty() ? "" : fmt::format("; did you mean {}?", near)),
                   names.empty() ? path_of(app) + " --help" : "available: " + fmt::to_string(fmt::join(names, ", ")));
}

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() { return std::make_shared<HelpFormatter>(); }

std::string help_footer(const std::string& command) {
  std::string text;
  for (const Examples& examples : all_examples()) {
    if (command == examples.command) text += "Examples:\n" + two_columns(examples.rows);
  }
  if (command.empty()) text += "\n" + environment_help();
  return text + "\n" + folded_text(kExitStatuses, 0, 2);
}

std::vector<std::string> with_help_command(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const bool help = !words.empty() && words[0] == "help";
  if (help) words.erase(words.begin());
  // Reports unknown commands here: for `tuff inof --help`, CLI11 would print tuff's own help.
  const CLI::App* level = &app;
  for (const std::string& word : words) {
    const bool commands = !command_names(*level).empty();
    if (word.empty() || word[0] == '-' || (!commands && !help)) break;
    const std::vector<std::string> names = command_names(*level);
    if (std::find(names.begin(), names.end(), word) == names.end()) fail_command(*level, word);
    level = level->get_subcommand(word);
  }
  if (help) words.emplace_back("--help");
  std::reverse(words.begin(), words.end());  // CLI11 expects them in reverse order
  return words;
}

void fail_parse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* level = &app;
  while (!level->get_subcommands().empty()) level = level->get_subcommands().back();
  const std::string hint = path_of(*level) + " --help";
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) throw UsageError(error.what(), hint);
  std::string word;
  for (const std::string& extra : app.remaining(true)) {
    if (word.empty() || (word[0] != '-' && extra[0] == '-')) word = extra;
  }
  word = word.substr(0, word.find('='));
  if (!word.empty() && word[0] != '-' && !command_names(*level).empty()) fail_command(*level, word);
  if (word.empty() || word[0] != '-') {
    throw UsageError(fmt::format("{}: unexpected argument \"{}\"", path_of(*level), word), hint);
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : level->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string near = nearest(word, names);
  throw UsageError(fmt::format("{} has no option {}{}", path_of(*level), word,
                               near.empty() ? "" : fmt::format("; did you mean {}?", near)),
                   hint);
}

}  // namespace tool
