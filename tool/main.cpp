// tuff: what the devices of this machine are, whether Tuff computes right on them, how fast, how to make it faster, and
// what is kept for that.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "tool/commands.hpp"
#include "tuff/tuff.hpp"

namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

constexpr const char* kExamples = R"(Examples:
  tuff info                          every device, its limits and features
  tuff info --json                   the same for programs
  tuff selftest                      each operation on each device against the host backend
  tuff selftest --filter gemm -v     one operation, every shape
  tuff bench                         rates of the main operations on the best device
  tuff bench --device llvmpipe       on the device with "llvmpipe" in its name
  tuff bench --trace trace.json      what the device did, for ui.perfetto.dev
  tuff tune                          finds the fastest kernels for this device, for a minute
  tuff tune --budget 600 --type f16  more of them: what is done already is not measured again
  tuff cache                         what is kept on disk
  tuff cache prewarm                 compiles ahead what applications have used here

Environment:
  TUFF_DEVICE           index, UUID or part of the name of the device to use
  TUFF_VISIBLE_DEVICES  which devices there are, and in which order: a list of such
  TUFF_LOG              error, warning, info, debug or dispatch: says on stderr what happens
  TUFF_TUNING           path of the table that tune writes and every process uses, or off
  TUFF_CACHE_BYTES      how much is kept on disk at most: a number, or one with K, M or G
)";

std::string version_text() {
  const uint32_t version = tuff::version();
  return fmt::format("tuff {}.{}.{} (ABI {})\n{}", version >> 16, (version >> 8) & 0xff, version & 0xff,
                     tuff::abi_version(), tuff::build_info());
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
  app.set_version_flag("--version", version_text(), "the library's version and how it was built");
  app.require_subcommand(0, 1);
  app.footer(kExamples);

  tool::InfoOptions info;
  CLI::App* info_command = app.add_subcommand("info", "what the devices are: memory, limits, features");
  add_device_option(info_command, info.device, "all");
  info_command->add_flag("--json", info.json, "JSON on stdout");

  tool::SelftestOptions selftest;
  CLI::App* selftest_command = app.add_subcommand("selftest", "each operation on each device against the host backend");
  add_device_option(selftest_command, selftest.device, "all");
  selftest_command->add_option("-f,--filter", selftest.filter, "only operations with this in their name")
      ->type_name("TEXT");
  selftest_command->add_option("--seed", selftest.seed, "of the random inputs")->capture_default_str();
  selftest_command->add_flag("-v,--verbose", selftest.verbose, "one line for each shape");
  selftest_command->add_flag("--json", selftest.json, "JSON on stdout");

  tool::BenchOptions bench;
  CLI::App* bench_command = app.add_subcommand("bench", "rates of the main operations and their share of the limit");
  add_device_option(bench_command, bench.device, "the best");
  bench_command->add_option("-b,--backend", bench.backend, "vulkan (the default), host or auto")->type_name("NAME");
  bench_command->add_option("-f,--filter", bench.filter, "only rows with this in the operation's name or its shape")
      ->type_name("TEXT");
  bench_command->add_option("--seconds", bench.seconds, "how long to measure each row")
      ->check(CLI::Range(0.01, 60.0).description(""))
      ->type_name("S")
      ->capture_default_str();
  bench_command->add_option("--trace", bench.trace, "profile each row once more: a trace for Perfetto, and a table")
      ->type_name("FILE");
  bench_command->add_flag("--json", bench.json, "JSON on stdout");

  tool::TuneOptions tune;
  CLI::App* tune_command = app.add_subcommand("tune", "measures which kernels are the fastest here, for all to use");
  add_device_option(tune_command, tune.device, "the best");
  tune_command->add_option("--budget", tune.budget, "how long to measure")
      ->check(CLI::Range(0.1, 86400.0).description(""))
      ->type_name("S")
      ->capture_default_str();
  tune_command->add_option("-t,--type", tune.types, "of f32, f16, bf16, f64, i8; otherwise what the device is good at")
      ->type_name("LIST");
  tune_command->add_option("--shapes", tune.shapes, "a file with lines of \"ta tb m n k [batch]\", N or T first")
      ->type_name("FILE");
  tune_command->add_option("-o,--output", tune.output, "the table; otherwise TUFF_TUNING, else in the cache folder")
      ->type_name("FILE");
  tune_command->add_flag("--again", tune.again, "what was measured before too");
  tune_command->add_flag("--dry-run", tune.dry_run, "write nothing");
  tune_command->add_flag("--list", tune.list, "what would be measured, and nothing else");

  tool::CacheOptions cache;
  CLI::App* cache_command = app.add_subcommand("cache", "what is kept on disk: lists it, clears it, compiles ahead");
  cache_command->require_subcommand(0, 1);
  cache_command->add_flag("--json", cache.json, "JSON on stdout");
  CLI::App* cache_list = cache_command->add_subcommand("list", "what there is, by kind and driver (the default)");
  cache_list->add_flag("--json", cache.json, "JSON on stdout");
  CLI::App* cache_clear = cache_command->add_subcommand("clear", "removes what can be made anew");
  cache_clear->add_option("--kind", cache.kind, "this kind alone; requests: the lists of kernels to prewarm")
      ->check(CLI::IsMember({"spirv", "kernel", "pipelines", "binding", "matrix_quads", "driver", "requests"})
                  .description(""))
      ->type_name("KIND");
  cache_clear->add_option("--older-than", cache.older_than, "only what was not used in so many days")
      ->check(CLI::NonNegativeNumber.description(""))
      ->type_name("DAYS");
  cache_clear->add_flag("--stale", cache.stale, "only what is damaged, of other versions, of drivers not here");
  cache_clear->add_flag("--tuning", cache.tuning, "what tuff tune has measured too");
  CLI::App* cache_prewarm = cache_command->add_subcommand("prewarm", "compiles what applications have used here");
  add_device_option(cache_prewarm, cache.device, "the best");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kExitUsage;
  }
  if (app.get_subcommands().empty()) {
    fmt::print(stderr, "{}\nerror: which of info, selftest, bench, tune and cache?\n", app.help());
    return kExitUsage;
  }
  if (info_command->parsed()) return tool::run_info(info);
  if (selftest_command->parsed()) return tool::run_selftest(selftest);
  if (tune_command->parsed()) return tool::run_tune(tune);
  if (cache_clear->parsed()) cache.action = tool::CacheOptions::Action::clear;
  if (cache_prewarm->parsed()) cache.action = tool::CacheOptions::Action::prewarm;
  if (cache_command->parsed()) return tool::run_cache(cache);
  return tool::run_bench(bench);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // each line as it comes, into a pipe too
  try {
    return run(argc, argv);
  } catch (const tuff::Exception& error) {
    fmt::print(stderr, "error: {}\nhint: {}\n", error.what(), error.hint());
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
  }
  return kExitFailure;
}
