// tuff bench: rates of the main operations, and their share of what the device was seen to reach in the same
// run: its copy bandwidth for operations that move memory, its best gemm for those that compute.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>

#include "tool/bench_rows.hpp"
#include "tool/commands.hpp"
#include "tool/format.hpp"
#include "tool/table.hpp"

namespace tool {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// A device that multiplies this fast gets the shapes of a large GPU; on others they would take minutes.
constexpr double kLargeDeviceFlops = 1e12;
constexpr uint64_t kSmallValues = 1u << 24;
constexpr uint64_t kLargeValues = 1u << 28;

struct Result {
  Row row;
  double seconds = 0;  // of one repetition
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

// The best of three runs that share the time given.
double measure(const tuff::Context& context, const std::function<void()>& call, double seconds) {
  constexpr int kRuns = 3;
  elapsed(context, call, 1);  // compiles, and touches memory for the first time
  uint64_t repetitions = 1;
  double best = elapsed(context, call, 1);
  while (best * static_cast<double>(repetitions) * 8 < seconds / kRuns) {
    repetitions *= 4;
    best = elapsed(context, call, repetitions) / static_cast<double>(repetitions);
  }
  repetitions = std::max<uint64_t>(1, static_cast<uint64_t>(seconds / kRuns / best));
  for (int run = 0; run < kRuns && best < seconds; ++run) {
    best = std::min(best, elapsed(context, call, repetitions) / static_cast<double>(repetitions));
  }
  return best;
}

Result measure_row(const tuff::Context& context, const Row& row, double seconds) {
  Result result{row, std::numeric_limits<double>::quiet_NaN(), ""};
  try {
    result.seconds = measure(context, row.prepare(context), seconds);
  } catch (const tuff::Exception& error) {
    result.failure = error.what();
  }
  return result;
}

std::string format_rate(const Result& result) {
  switch (result.row.unit) {
    case Unit::flops: return format_flops(result.rate());
    case Unit::bytes: return format_bandwidth(result.rate());
    case Unit::calls: return fmt::format("{} each", format_seconds(1 / result.rate()));
  }
  return "";
}

// The share of the limit, or a negative number for a row without one.
double share(const Result& result, double copy, double flops) {
  if (!result.failure.empty() || result.row.limit == Limit::none) return -1;
  return result.rate() / (result.row.limit == Limit::gemm ? flops : copy);
}

std::string bar(double share) {
  constexpr int kWidth = 20;
  return std::string(static_cast<size_t>(std::clamp(share * kWidth + 0.5, 0.0, static_cast<double>(kWidth))), '#');
}

void print_results(const std::vector<Result>& results, double copy, double flops) {
  Table table(
      {{"operation"}, {"shape"}, {"time", Align::right}, {"rate", Align::right}, {"of limit", Align::right}, {""}});
  Limit group = results.empty() ? Limit::none : results.front().row.limit;
  for (const auto& result : results) {
    if (result.row.limit != group) table.rule();
    group = result.row.limit;
    if (!result.failure.empty()) {
      table.row({result.row.operation, result.row.shape, "-", "failed"});
      continue;
    }
    const double part = share(result, copy, flops);
    table.row({result.row.operation, result.row.shape,
               format_seconds(result.row.unit == Unit::calls ? 1 / result.rate() : result.seconds), format_rate(result),
               part < 0 ? "" : format_share(part), part < 0 ? "" : bar(part)});
  }
  table.print();
  for (const auto& result : results) {
    if (!result.failure.empty()) fmt::print("\n  {} {}: {}\n", result.row.operation, result.row.shape, result.failure);
  }
}

Json results_json(const tuff::DeviceProperties& device, const std::vector<Result>& results, double copy, double flops) {
  static constexpr const char* kUnits[] = {"flops_per_second", "bytes_per_second", "calls_per_second"};
  Json json;
  json["device"] = device.name;
  json["driver"] = device.driver;
  json["backend"] = device.backend;
  json["copy_bytes_per_second"] = copy;
  json["gemm_flops_per_second"] = flops;
  json["results"] = Json::array();
  for (const auto& result : results) {
    Json row;
    row["operation"] = result.row.operation;
    row["shape"] = result.row.shape;
    if (result.failure.empty()) {
      row["seconds"] = result.seconds;
      row[kUnits[static_cast<int>(result.row.unit)]] = result.rate();
      if (const double part = share(result, copy, flops); part >= 0) row["share_of_limit"] = part;
    } else {
      row["error"] = result.failure;
    }
    json["results"].push_back(std::move(row));
  }
  return json;
}

// Each row a few times more, under the profiler: apart from the measurements, which its timestamps would slow down.
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

bool matches(const Row& row, const std::string& filter) {
  return (row.operation + " " + row.shape).find(filter) != std::string::npos;
}

}  // namespace

int run_bench(const BenchOptions& options) {
  const tuff::Context context = open_context(options.device, options.backend);
  const tuff::DeviceProperties device = context.info();
  std::vector<Result> results;

  // The limits first: they also say which shapes suit the device.
  const auto limit = [&](const Row& row) {
    const Result result{row, measure(context, row.prepare(context), options.seconds), ""};
    if (matches(row, options.filter)) results.push_back(result);
    return result.rate();
  };
  double flops = 0;
  for (const uint64_t size : {256, 512, 1024}) flops = std::max(flops, limit(gemm_row(size, size, size)));
  const bool large = flops > kLargeDeviceFlops;
  if (large) {
    for (const uint64_t size : {2048, 4096, 8192}) flops = std::max(flops, limit(gemm_row(size, size, size)));
  }
  uint64_t values = large ? kLargeValues : kSmallValues;
  while (values > 4096 && values * sizeof(float) * 4 > device.memory_bytes / 2) values /= 2;

  auto rows = bench_rows(large, values);
  const auto memory_rows =
      std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row.limit == Limit::copy; });
  rows.insert(memory_rows, copy_row(values));
  std::erase_if(rows, [&](const Row& row) { return row.operation != "copy" && !matches(row, options.filter); });

  double copy = 0;
  Progress progress(options.json ? 0 : rows.size());
  for (const auto& row : rows) {
    if (!options.json) progress.step(row.operation + " " + row.shape);
    if (row.operation == "copy") {
      copy = limit(row);
    } else {
      results.push_back(measure_row(context, row, options.seconds));
    }
  }
  progress.clear();

  const std::string table = options.trace.empty() ? "" : write_trace(context, results, options.trace);
  if (options.json) {
    fmt::print("{}\n", results_json(device, results, copy, flops).dump(2));
  } else {
    fmt::print("{} ({})\n\n", device.name, shorten(device.driver, 60));
    print_results(results, copy, flops);
    fmt::print("\nLimits, as seen in this run: {} of f32 by the best gemm, {} by copying (read and write counted).\n",
               format_flops(flops), format_bandwidth(copy));
    if (!table.empty()) fmt::print("\n{}", table);
  }
  const bool failed = std::any_of(results.begin(), results.end(), [](const Result& r) { return !r.failure.empty(); });
  return failed ? 1 : 0;
}

}  // namespace tool
