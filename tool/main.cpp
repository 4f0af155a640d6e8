// The tuff command: describes this machine's devices, checks that Tuff computes correctly on them, measures and tunes
// its speed, and manages its disk cache.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>

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

int run(int argc, char** argv) {
  CLI::App app{"Tuff runs linear algebra, convolution, attention and element-wise operations on any Vulkan device.",
               "tuff"};
  app.set_version_flag("-V,--version", version_text(), "the library's version and how it was built");
  app.set_help_flag("-h,--help", "this text");
  app.require_subcommand(0, 1);
  app.formatter(tool::help_formatter());
  app.footer([] { return tool::help_footer(""); });
  // Each command has its own examples; other settings are inherited from the application.
  const auto add_command = [](CLI::App& parent, const char* name, const char* what) {
    CLI::App* command = parent.add_subcommand(name, what);
    command->footer([name] { return tool::help_footer(name); });
    return command;
  };

  tool::InfoOptions info;
  CLI::App* info_command = add_command(app, "info", "shows the devices: memory, limits, features");
  add_device_option(info_command, info.device, "all");
  add_json_option(info_command, info.json);

  tool::SelftestOptions selftest;
  CLI::App* selftest_command =
      add_command(app, "selftest", "compares each operation on each device with the host backend");
  add_device_option(selftest_command, selftest.device, "all");
  selftest_command
      ->add_option("-f,--filter", selftest.filter,
                   "only operations whose name contains this; tuff info lists the names")
      ->type_name("TEXT");
  add_native_option(selftest_command, selftest.native);
  selftest_command->add_option("--seed", selftest.seed, "seed of the random inputs")->capture_default_str();
  selftest_command->add_flag("-v,--verbose", selftest.verbose, "one line per shape");
  add_json_option(selftest_command, selftest.json);

  tool::BenchOptions bench;
  CLI::App* bench_command = add_command(app, "bench", "measures the main operations and their share of the limit");
  add_device_option(bench_command, bench.device, "the best");
  bench_command->add_option("-b,--backend", bench.backend, "vulkan, host or auto; otherwise vulkan")
      ->check(one_of({"vulkan", "host", "auto"}))
      ->type_name("NAME");
  bench_command
      ->add_option("-f,--filter", bench.filter,
                   "only rows whose operation, named as here or in tuff info, or whose shape contains this")
      ->type_name("TEXT");
  add_native_option(bench_command, bench.native);
  bench_command->add_option("--seconds", bench.seconds, "measuring time of each row")
      ->check(number(0.01, 60))
      ->type_name("S")
      ->capture_default_str();
  bench_command
      ->add_option("--trace", bench.trace, "profiles each row as well: writes a trace for Perfetto and a table")
      ->type_name("FILE");
  add_json_option(bench_command, bench.json);

  tool::TuneOptions tune;
  CLI::App* tune_command =
      add_command(app, "tune", "measures which kernels are the fastest here, for every process to use");
  add_device_option(tune_command, tune.device, "the best");
  tune_command->add_option("--budget", tune.budget, "measuring time")
      ->check(number(0.1, 86400))
      ->type_name("S")
      ->capture_default_str();
  tune_command
      ->add_option("-t,--type", tune.types, "some of f32, f16, bf16, f64, i8; otherwise those that suit the device")
      ->type_name("LIST");
  tune_command->add_option("--shapes", tune.shapes, "a file with lines of \"ta tb m n k [batch]\", N or T first")
      ->type_name("FILE");
  tune_command
      ->add_option("-o,--output", tune.output, "the table; otherwise that of TUFF_TUNING, or one in the cache folder")
      ->type_name("FILE");
  tune_command->add_flag("--again", tune.again, "also repeats earlier measurements");
  tune_command->add_flag("--dry-run", tune.dry_run, "writes nothing");
  tune_command->add_flag("--list", tune.list, "only lists what would be measured");
  add_json_option(tune_command, tune.json);

  tool::CacheOptions cache;
  CLI::App* cache_command =
      add_command(app, "cache", "lists or clears the disk cache, or compiles kernels ahead of time");
  cache_command->require_subcommand(0, 1);
  add_json_option(cache_command, cache.json);
  CLI::App* cache_list = add_command(*cache_command, "list", "lists the entries by kind and driver (the default)");
  add_json_option(cache_list, cache.json);
  CLI::App* cache_clear = add_command(*cache_command, "clear", "removes everything that can be rebuilt");
  cache_clear
      ->add_option("--kind", cache.kind,
                   "only one of the kinds that tuff cache lists; requests: the lists of kernels to prewarm")
      ->check(one_of({"spirv", "kernel", "pipelines", "binding", "matrix_quads", "driver", "requests"}))
      ->type_name("KIND");
  cache_clear->add_option("--older-than", cache.older_than, "only entries not used for this many days")
      ->check(number(0, INFINITY))
      ->type_name("DAYS");
  cache_clear->add_flag("--stale", cache.stale,
                        "only damaged entries, and those of other versions or of drivers not on this machine");
  cache_clear->add_flag("--tuning", cache.tuning, "also the measurements of tuff tune");
  add_json_option(cache_clear, cache.json);
  CLI::App* cache_prewarm =
      add_command(*cache_command, "prewarm", "compiles the kernels that applications have used here");
  add_device_option(cache_prewarm, cache.device, "the best");
  add_json_option(cache_prewarm, cache.json);
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
    throw UsageError("no command given; needs info, selftest, bench, tune or cache");
  }
  tool::check_environment();
  tool::set_native(selftest_command->parsed() ? selftest.native : bench.native);
  if (info_command->parsed()) return tool::run_info(info);
  if (selftest_command->parsed()) return tool::run_selftest(selftest);
  if (tune_command->parsed()) return tool::run_tune(tune);
  if (cache_clear->parsed()) cache.action = tool::CacheOptions::Action::clear;
  if (cache_prewarm->parsed()) cache.action = tool::CacheOptions::Action::prewarm;
  if (cache_command->parsed()) return tool::run_cache(cache);
  return tool::run_bench(bench);
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
