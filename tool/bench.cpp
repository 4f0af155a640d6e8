// tuff bench: throughput of the main operations, and its share of what the device reached in the same run: the copy
// bandwidth for memory-bound operations, the best GEMM rate for compute-bound ones.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>

#include "tool/bench_rows.hpp"
#include "tool/commands.hpp"
#include "tool/format.hpp"
#include "tool/steady.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace tool {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// Above this rate a device gets the shapes of a large GPU; on slower devices they would take minutes.
constexpr double kLargeDeviceFlops = 1e12;
// Products that take longer, as on the host backend, tell nothing that shorter ones do not.
constexpr double kLongSeconds = 0.5;
constexpr uint64_t kSmallValues = 1u << 24;
constexpr uint64_t kLargeValues = 1u << 28;

struct Result {
  Row row;
  double seconds = 0;  // of one repetition, each
  double slowest = 0;  // the slowest of the samples that should agree
  bool stable = true;
  std::string failure;

  double rate() const { return row.work / seconds; }
};

double elapsed(const tuff::Context& context, const std::function<void()>& call, uint64_t repetitions) {
  context.synchronize();
  const auto begin = Clock::now();
  for (uint64_t i = 0; i < repetitions; ++i) call();
  context.synchronize();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Result measure_row(const tuff::Context& context, const Row& row, double seconds, double warm_seconds) {
  Result result{row, std::numeric_limits<double>::quiet_NaN(), 0, true, ""};
  const auto now = [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); };
  try {
    const auto call = row.prepare(context);
    const Steady steady = measure_steadily([&](uint64_t repetitions) { return elapsed(context, call, repetitions); },
                                           now, seconds, warm_seconds);
    result.seconds = steady.best;
    result.slowest = steady.slowest;
    result.stable = steady.stable;
  } catch (const tuff::Exception& error) {
    result.failure = error.what();
  }
  return result;
}

std::string format_rate(const Row& row, double rate) {
  switch (row.unit) {
    case Unit::flops: return format_flops(rate);
    case Unit::bytes: return format_bandwidth(rate);
    case Unit::calls: return fmt::format("{} each", format_seconds(1 / rate));
  }
  return "";
}

// The measured limits of the device; 0 if the measurement did not settle.
struct Limits {
  double copy = 0, flops = 0;
};

// The share of the limit; negative if there is no limit or no valid result.
double share(const Result& result, const Limits& limits) {
  if (!result.failure.empty() || !result.stable || result.row.limit == Limit::none) return -1;
  const double limit = result.row.limit == Limit::gemm ? limits.flops : limits.copy;
  return limit > 0 ? result.rate() / limit : -1;
}

std::string bar(double share) {
  constexpr int kWidth = 20;
  return std::string(static_cast<size_t>(std::clamp(share * kWidth + 0.5, 0.0, static_cast<double>(kWidth))), '#');
}

void print_results(const std::vector<Result>& results, const Limits& limits) {
  Table table({{"operation"},
               {"shape"},
               {"time", Align::right},
               {"rate", Align::right},
               {"of limit", Align::right},
               {"", Align::left, true}});
  Limit group = results.empty() ? Limit::none : results.front().row.limit;
  for (const auto& result : results) {
    if (result.row.limit != group) table.rule();
    group = result.row.limit;
    if (!result.failure.empty()) {
      table.row({result.row.operation, result.row.shape, "-", "failed"});
      continue;
    }
    const double part = share(result, limits);
    const std::string time = format_seconds(result.row.unit == Unit::calls ? 1 / result.rate() : result.seconds);
    if (!result.stable) {
      table.row({result.row.operation, result.row.shape, time, "unstable"});
      continue;
    }
    table.row({result.row.operation, result.row.shape, time, format_rate(result.row, result.rate()),
               part < 0 ? "" : format_share(part), part < 0 ? "" : bar(part)});
  }
  table.print();
  for (const auto& result : results) {
    const std::string name = result.row.operation + " " + result.row.shape;
    if (!result.failure.empty()) fmt::print("\n{}", folded_text(name + ": " + result.failure, 2, 4));
    if (!result.failure.empty() || result.stable) continue;
    fmt::print("\n{}", folded_text(fmt::format("{}: unstable, from {} to {}. The device's clock changes, or another "
                                               "process uses it.",
                                               name, format_rate(result.row, result.row.work / result.slowest),
                                               format_rate(result.row, result.rate())),
                                   2, 4));
  }
}

Json results_json(const tuff::DeviceProperties& device, const std::vector<Result>& results, const Limits& limits) {
  static constexpr const char* kUnits[] = {"flops_per_second", "bytes_per_second", "calls_per_second"};
  Json json;
  json["device"] = device.name;
  json["driver"] = device.driver;
  json["backend"] = device.backend;
  json["copy_bytes_per_second"] = limits.copy > 0 ? Json(limits.copy) : Json(nullptr);
  json["gemm_flops_per_second"] = limits.flops > 0 ? Json(limits.flops) : Json(nullptr);
  json["results"] = Json::array();
  for (const auto& result : results) {
    Json row;
    row["operation"] = result.row.operation;
    row["feature"] = result.row.feature;
    row["shape"] = result.row.shape;
    if (result.failure.empty()) {
      row["stable"] = result.stable;
      row["seconds"] = result.seconds;
      row["slowest_seconds"] = result.slowest;
      row[kUnits[static_cast<int>(result.row.unit)]] = result.stable ? Json(result.rate()) : Json(nullptr);
      if (const double part = share(result, limits); part >= 0) row["share_of_limit"] = part;
    } else {
      row["error"] = result.failure;
    }
    json["results"].push_back(std::move(row));
  }
  return json;
}

// Runs each row a few more times under the profiler, separately from the measurements: timestamps would slow those
// down.
std::string write_trace(const tuff::Context& context, const std::vector<Result>& results, const std::string& path) {
  constexpr int kTimes = 3;
  tuff::Profile profile = context.profile();
  for (const auto& result : results) {
    if (!result.failure.empty()) continue;
    const auto call = result.row.prepare(context);
    for (int i = 0; i < kTimes; ++i) call();
    context.synchronize();
  }
  profile.end();
  profile.write(path);
  return profile.table();
}

// A rough estimate of the row's rate.
double first_look(const tuff::Context& context, const Row& row) {
  const auto call = row.prepare(context);
  elapsed(context, call, 1);
  const auto repetitions = static_cast<uint64_t>(std::clamp(0.03 / elapsed(context, call, 1), 1.0, 1e4));
  return row.work * static_cast<double>(repetitions) / elapsed(context, call, repetitions);
}

bool wanted(const Row& row, const std::string& filter) { return matches(filter, names_of(row)); }

// Checks, before any measurement, that the filter matches some row of a small or a large device.
void check_filter(const std::string& filter) {
  std::vector<Row> all{copy_row(1), gemm_row(256, 256, 256)};
  for (const uint64_t size : {512, 1024, 2048, 4096, 8192}) all.push_back(gemm_row(size, size, size));
  for (const bool large : {false, true}) {
    for (Row& row : bench_rows(large, large ? kLargeValues : kSmallValues)) all.push_back(std::move(row));
  }
  std::vector<std::string> names;
  for (const Row& row : all) {
    if (wanted(row, filter)) return;
    names.push_back(row.feature);
    names.push_back(row.operation);
  }
  fail_filter("tuff bench", filter, names);
}

// Calls each row once, so that no compilation makes the device idle between two measurements.
void compile_all(const tuff::Context& context, const std::vector<Row>& rows, bool json) {
  Progress progress(rows.size());
  for (const Row& row : rows) {
    if (!json) progress.step("compiling " + row.operation);
    try {
      elapsed(context, row.prepare(context), 1);
    } catch (const tuff::Exception& error) {
      if (error.status() == TUFF_ERROR_DEVICE_LOST) throw;  // other errors are reported with the measurement
    }
  }
}

}  // namespace

int run_bench(const BenchOptions& options) {
  if (!options.device.empty() && options.backend == "host") {
    throw UsageError("--device: the backend host has no devices");
  }
  check_filter(options.filter);
  const tuff::Context context = open_context(options.device, options.backend);
  const tuff::DeviceProperties device = context.info();

  // A first estimate decides which shapes suit the device.
  const std::vector<uint64_t> sizes = {256, 512, 1024, 2048, 4096, 8192};
  double flops = 0;
  const auto takes_long = [&](const Row& row) {
    return row.unit == Unit::flops && flops > 0 && row.work / flops > kLongSeconds;
  };
  for (size_t i = 0; i < 3; ++i) {
    const Row row = gemm_row(sizes[i], sizes[i], sizes[i]);
    if (!takes_long(row)) flops = std::max(flops, first_look(context, row));
  }
  const bool large = flops > kLargeDeviceFlops;
  uint64_t values = large ? kLargeValues : kSmallValues;
  while (values > 4096 && values * sizeof(float) * 4 > device.memory_bytes / 2) values /= 2;

  // The limits are always measured, whatever the filter. Products that take long are not needed for them.
  std::vector<Row> rows;
  for (size_t i = 0; i < (large ? sizes.size() : 3); ++i) rows.push_back(gemm_row(sizes[i], sizes[i], sizes[i]));
  const size_t products = rows.size();
  for (Row& row : bench_rows(large, values)) rows.push_back(std::move(row));
  rows.insert(std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row.limit == Limit::copy; }),
              copy_row(values));
  const auto is_limit = [&](const Row& row) { return row.operation == "copy" || &row < rows.data() + products; };
  std::vector<Row> chosen;
  size_t shown = 0;
  for (const Row& row : rows) {
    const bool show = wanted(row, options.filter);
    shown += show ? 1 : 0;
    if (show || (is_limit(row) && !takes_long(row))) chosen.push_back(row);
  }
  if (shown == 0) {
    std::vector<std::string> names;
    for (const Row& row : rows) names.push_back(row.operation + " " + row.shape);
    fail_filter("tuff bench on this device", options.filter, names);
  }

  if (device.type != TUFF_DEVICE_HOST) compile_all(context, chosen, options.json);
  std::vector<Result> results;
  Limits limits;
  Progress progress(chosen.size());
  for (const Row& row : chosen) {
    if (!options.json) progress.step(row.operation + " " + row.shape);
    const double warm_seconds = &row == chosen.data() ? kFirstWarmSeconds : kWarmSeconds;
    const Result result = measure_row(context, row, options.seconds, warm_seconds);
    const bool settled = result.failure.empty() && result.stable;
    if (settled && row.operation == "copy") limits.copy = result.rate();
    if (settled && row.operation == "gemm") limits.flops = std::max(limits.flops, result.rate());
    if (wanted(row, options.filter)) results.push_back(result);
  }
  progress.clear();

  const std::string table = options.trace.empty() ? "" : write_trace(context, results, options.trace);
  if (options.json) {
    print_json(results_json(device, results, limits));
  } else {
    fmt::print("{}\n", heading(device));
    print_results(results, limits);
    fmt::print(
        "\n{}",
        folded_text(fmt::format("Limits, as measured in this run: {} of f32 by the best gemm, {} by copying (reads "
                                "and writes counted).",
                                limits.flops > 0 ? format_flops(limits.flops) : "an unstable rate",
                                limits.copy > 0 ? format_bandwidth(limits.copy) : "an unstable rate"),
                    0, 0));
    if (!table.empty()) fmt::print("\n{}", table);
  }
  const bool failed = std::any_of(results.begin(), results.end(), [](const Result& r) { return !r.failure.empty(); });
  return failed ? kExitFailure : 0;
}

}  // namespace tool
