// The tuff command: describes this machine's devices, checks that Tuff computes correctly on them, measures and tunes
// its speed, manages its disk cache, and shows what programs do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "tool/commands.hpp"
#include "tool/help.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tuff/tuff.hpp"

namespace {

using tool::kExitFailure;
using tool::kExitUsage;
using tool::UsageError;

std::string version_text() {
  const uint32_t version = tuff::version();
  return fmt::format("tuff {}.{}.{} (ABI {})\n{}", version >> 16, (version >> 8) & 0xff, version & 0xff,
                     tuff::abi_version(), tuff::build_info());
}

// Accepts numbers from `least` to `most`. NaN is rejected.
CLI::Validator number(double least, double most) {
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    const bool good = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    if (good) return "";
    if (std::isinf(most)) return fmt::format("\"{}\" is not a number of at least {}", text, least);
    return fmt::format("\"{}\" is not a number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

CLI::Validator one_of(std::vector<std::string> words) {
  const auto check = [words = std::move(words)](const std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    const std::string near = tool::nearest(text, words);
    return fmt::format("\"{}\" is not one of {}{}", text, fmt::join(words, ", "),
                       near.empty() ? "" : fmt::format("; did you mean {}?", near));
  };
  return CLI::Validator(check, "");
}

void add_json_option(CLI::App* command, bool& json) { command->add_flag("--json", json, "JSON on stdout"); }

void add_native_option(CLI::App* command, std::string& native) {
  command
      ->add_option("--native", native,
                   "on or off: kernels in PTX where tuff info has them; otherwise as TUFF_NATIVE says")
      ->check(one_of({"on", "off"}))
      ->type_name("SWITCH");
}

void add_device_option(CLI::App* command, std::string& device, const char* otherwise) {
  command
      ->add_option("-d,--device", device,
                   fmt::format("index, UUID or part of the name of a device; otherwise {}", otherwise))
      ->type_name("NAME");
}

// Each command has its own examples; other settings are inherited from the application.
CLI::App* add_command(CLI::App& parent, const char* name, const char* what) {
  CLI::App* command = parent.add_subcommand(name, what);
  command->footer([name] { return tool::help_footer(name); });
  return command;
}

CLI::App* add_info(CLI::App& app, tool::InfoOptions& options) {
  CLI::App* command = add_command(app, "info", "shows the devices: memory, limits, features");
  add_device_option(command, options.device, "all");
  add_json_option(command, options.json);
  return command;
}

CLI::App* add_selftest(CLI::App& app, tool::SelftestOptions& options) {
  CLI::App* command = add_command(app, "selftest", "compares each operation on each device with the host backend");
  add_device_option(command, options.device, "all");
  command
      ->add_option("-f,--filter", options.filter, "only operations whose name contains this; tuff info lists the names")
      ->type_name("TEXT");
  add_native_option(command, options.native);
  command->add_option("--seed", options.seed, "seed of the random inputs")->capture_default_str();
  command->add_flag("-v,--verbose", options.verbose, "one line per shape");
  add_json_option(command, options.json);
  return command;
}

CLI::App* add_bench(CLI::App& app, tool::BenchOptions& options) {
  CLI::App* command = add_command(app, "bench", "measures the main operations and their share of the limit");
  add_device_option(command, options.device, "the best");
  command->add_option("-b,--backend", options.backend, "vulkan, host or auto; otherwise vulkan")
      ->check(one_of({"vulkan", "host", "auto"}))
      ->type_name("NAME");
  command
      ->add_option("-f,--filter", options.filter,
                   "only rows whose operation, named as here or in tuff info, or whose shape contains this")
      ->type_name("TEXT");
  add_native_option(command, options.native);
  command->add_option("--seconds", options.seconds, "measuring time of each row")
      ->check(number(0.01, 60))
      ->type_name("S")
      ->capture_default_str();
  command->add_option("--trace", options.trace, "profiles each row as well: writes a trace for Perfetto and a table")
      ->type_name("FILE");
  add_json_option(command, options.json);
  return command;
}

CLI::App* add_tune(CLI::App& app, tool::TuneOptions& options) {
  CLI::App* command = add_command(app, "tune", "measures which kernels are the fastest here, for every process to use");
  add_device_option(command, options.device, "the best");
  command->add_option("--budget", options.budget, "measuring time")
      ->check(number(0.1, 86400))
      ->type_name("S")
      ->capture_default_str();
  command
      ->add_option("-t,--type", options.types, "some of f32, f16, bf16, f64, i8; otherwise those that suit the device")
      ->type_name("LIST");
  command->add_option("--shapes", options.shapes, "a file with lines of \"ta tb m n k [batch]\", N or T first")
      ->type_name("FILE");
  command
      ->add_option("-o,--output", options.output,
                   "the table; otherwise that of TUFF_TUNING, or one in the cache folder")
      ->type_name("FILE");
  command->add_flag("--again", options.again, "also repeats earlier measurements");
  command->add_flag("--dry-run", options.dry_run, "writes nothing");
  command->add_flag("--list", options.list, "only lists what would be measured");
  add_json_option(command, options.json);
  return command;
}

CLI::App* add_cache(CLI::App& app, tool::CacheOptions& options) {
  CLI::App* command = add_command(app, "cache", "lists or clears the disk cache, or compiles kernels ahead of time");
  command->require_subcommand(0, 1);
  add_json_option(command, options.json);
  CLI::App* list = add_command(*command, "list", "lists the entries by kind and driver (the default)");
  add_json_option(list, options.json);
  CLI::App* clear = add_command(*command, "clear", "removes everything that can be rebuilt");
  clear
      ->add_option("--kind", options.kind,
                   "only one of the kinds that tuff cache lists; requests: the lists of kernels to prewarm")
      ->check(one_of({"spirv", "kernel", "pipelines", "binding", "matrix_quads", "driver", "requests"}))
      ->type_name("KIND");
  clear->add_option("--older-than", options.older_than, "only entries not used for this many days")
      ->check(number(0, INFINITY))
      ->type_name("DAYS");
  clear->add_flag("--stale", options.stale,
                  "only damaged entries, and those of other versions or of drivers not on this machine");
  clear->add_flag("--tuning", options.tuning, "also the measurements of tuff tune");
  clear->callback([&options] { options.action = tool::CacheOptions::Action::clear; });
  add_json_option(clear, options.json);
  CLI::App* prewarm = add_command(*command, "prewarm", "compiles the kernels that applications have used here");
  add_device_option(prewarm, options.device, "the best");
  prewarm->callback([&options] { options.action = tool::CacheOptions::Action::prewarm; });
  add_json_option(prewarm, options.json);
  return command;
}

CLI::App* add_top(CLI::App& app, tool::TopOptions& options) {
  CLI::App* command = add_command(app, "top", "shows what the contexts of all your processes are doing");
  command->add_option("-i,--interval", options.interval, "time between two refreshes")
      ->check(number(0.05, 86400))
      ->type_name("S")
      ->capture_default_str();
  command->add_flag("--once", options.once, "ends after one refresh");
  command->add_flag("--json", options.json, "JSON on stdout, one object in a line for each refresh");
  return command;
}

int run(int argc, char** argv) {
  CLI::App app{"Tuff runs linear algebra, convolution, attention and element-wise operations on any Vulkan device.",
               "tuff"};
  app.set_version_flag("-V,--version", version_text(), "the library's version and how it was built");
  app.set_help_flag("-h,--help", "this text");
  app.require_subcommand(0, 1);
  app.formatter(tool::help_formatter());
  app.footer([] { return tool::help_footer(""); });

  tool::InfoOptions info;
  tool::SelftestOptions selftest;
  tool::BenchOptions bench;
  tool::TuneOptions tune;
  tool::CacheOptions cache;
  tool::TopOptions top;
  CLI::App* info_command = add_info(app, info);
  CLI::App* selftest_command = add_selftest(app, selftest);
  CLI::App* bench_command = add_bench(app, bench);
  CLI::App* tune_command = add_tune(app, tune);
  CLI::App* cache_command = add_cache(app, cache);
  CLI::App* top_command = add_top(app, top);
  app.add_subcommand("help", "shows the help of a command: tuff help bench");

  try {
    app.parse(tool::with_help_command(app, argc, argv));
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    return 0;
  } catch (const CLI::ParseError& error) {
    tool::fail_parse(app, error);
  }
  if (app.get_subcommands().empty()) {
    fmt::print(stderr, "{}\n", app.help());
    throw UsageError("no command given; needs info, selftest, bench, tune, cache or top");
  }
  tool::check_environment();
  tool::set_native(selftest_command->parsed() ? selftest.native : bench.native);
  if (info_command->parsed()) return tool::run_info(info);
  if (selftest_command->parsed()) return tool::run_selftest(selftest);
  if (tune_command->parsed()) return tool::run_tune(tune);
  if (top_command->parsed()) return tool::run_top(top);
  if (cache_command->parsed()) return tool::run_cache(cache);
  if (bench_command->parsed()) return tool::run_bench(bench);
  throw std::logic_error("a command was parsed that nothing runs");
}

// Prints the error and, if given, "hint: …". Further lines of the hint are printed unchanged.
int fail(int status, const std::string& what, const std::string& hint = "") {
  fmt::print(stderr, "error: {}\n", what);
  if (!hint.empty()) fmt::print(stderr, "hint: {}\n", hint);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  tool::keep_standard_streams();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // line-buffered, also into a pipe
  try {
    const int status = run(argc, argv);
    tool::finish_output();
    return status;
  } catch (const UsageError& error) {
    return fail(kExitUsage, error.what(), error.hint());
  } catch (const tuff::Exception& error) {
    return fail(kExitFailure, error.what(), error.hint());
  } catch (const std::exception& error) {
    return fail(kExitFailure, error.what());
  }
}
