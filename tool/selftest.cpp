// tuff selftest: compares each operation on each device with the host backend.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "tool/commands.hpp"
#include "tool/format.hpp"
#include "tool/selftest_cases.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace tool {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Verdict {
  std::string operation;
  std::string shape;
  uint64_t shapes = 1;
  uint64_t values = 0;
  double error = 0;     // the largest, relative to the largest value of the result
  double of_bound = 0;  // the largest error divided by its own bound
  double seconds = 0;
  bool lacking = false;  // the device does not support the operation
  std::string failure;   // empty: passed
};

Tensor run_call(const tuff::Context& context, const Call& call, const std::vector<Tensor>& inputs,
                const Tensor& output) {
  std::vector<tuff::Buffer> buffers;
  for (const auto& input : inputs) buffers.push_back(context.upload(input));
  const tuff::Buffer result = context.upload(output);
  call(context, buffers, result);
  return result.download_vector<float>(output.size());
}

void judge(const Tensor& got, const Tensor& reference, const Bound& bound, Verdict& verdict) {
  double largest = std::numeric_limits<double>::min();
  for (const float value : reference) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &reference[i], sizeof(float)) == 0) continue;
    const double error = std::fabs(static_cast<double>(got[i]) - static_cast<double>(reference[i]));
    // The negated comparison makes NaN fail.
    if (!(error <= bound[i]) && verdict.failure.empty()) {
      verdict.failure = fmt::format("{} {}: value {} is {:.9g}, expected {:.9g} within {:.2g}", verdict.operation,
                                    verdict.shape, i, got[i], reference[i], bound[i]);
    }
    verdict.error = std::isnan(error) ? error : std::max(verdict.error, error / largest);
    if (error > 0) verdict.of_bound = std::max(verdict.of_bound, error / bound[i]);
  }
}

Verdict run_case(const Case& entry, uint64_t seed, const tuff::Context& device, const tuff::Context& host) {
  Verdict verdict;
  verdict.operation = entry.operation;
  verdict.shape = entry.shape;
  verdict.lacking = !entry.needs.empty() && !device.supports(entry.needs.c_str());
  if (verdict.lacking) return verdict;
  const Problem problem = entry.make(seed);
  verdict.values = problem.output.size();
  const auto begin = Clock::now();
  try {
    const Tensor got = run_call(device, problem.call, problem.inputs, problem.output);
    verdict.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const HostRun on_host = [&](const Call& call, const std::vector<Tensor>& inputs, const Tensor& output) {
      return run_call(host, call, inputs, output);
    };
    const Tensor reference = on_host(problem.call, problem.inputs, problem.output);
    judge(got, reference, problem.bound(problem, reference, on_host), verdict);
  } catch (const tuff::Exception& error) {
    verdict.failure = fmt::format("{} {}: {}", entry.operation, entry.shape, error.what());
  }
  return verdict;
}

// Reduces to one row for each operation: the worst of its shapes.
std::vector<Verdict> by_operation(const std::vector<Verdict>& verdicts) {
  std::vector<Verdict> rows;
  for (const auto& verdict : verdicts) {
    if (rows.empty() || rows.back().operation != verdict.operation) {
      rows.push_back(verdict);
      continue;
    }
    Verdict& row = rows.back();
    ++row.shapes;
    row.lacking = row.lacking && verdict.lacking;
    row.values += verdict.values;
    row.seconds += verdict.seconds;
    row.error = std::isnan(verdict.error) ? verdict.error : std::max(row.error, verdict.error);
    row.of_bound = std::max(row.of_bound, verdict.of_bound);
    if (row.failure.empty()) row.failure = verdict.failure;
  }
  return rows;
}

std::string bound_share(const Verdict& verdict) {
  if (verdict.lacking) return "";
  if (std::isnan(verdict.error) || std::isinf(verdict.of_bound)) return "beyond";
  return verdict.error == 0 ? "exact" : fmt::format("{:.1f} %", 100 * verdict.of_bound);
}

void print_table(const std::vector<Verdict>& verdicts, bool each_shape) {
  Table table({{"operation"},
               {each_shape ? "shape" : "shapes", each_shape ? Align::left : Align::right},
               {"values", Align::right},
               {"error", Align::right},
               {"of its bound", Align::right},
               {"time", Align::right},
               {"result"}});
  for (const auto& verdict : each_shape ? verdicts : by_operation(verdicts)) {
    table.row({verdict.operation, each_shape ? verdict.shape : std::to_string(verdict.shapes),
               format_count(verdict.values), format_error(verdict.error), bound_share(verdict),
               format_seconds(verdict.seconds),
               verdict.lacking           ? "not here"
               : verdict.failure.empty() ? "ok"
                                         : "FAILED"});
  }
  table.print();
}

Json verdict_json(const Verdict& verdict) {
  Json json;
  json["operation"] = verdict.operation;
  json["shape"] = verdict.shape;
  json["values"] = verdict.values;
  json["error"] = verdict.error;
  json["error_over_bound"] = verdict.of_bound;
  json["seconds"] = verdict.seconds;
  json["passed"] = verdict.lacking ? Json(nullptr) : Json(verdict.failure.empty());
  if (!verdict.failure.empty()) json["failure"] = verdict.failure;
  return json;
}

// Runs all cases on one device. Returns true if all pass.
bool test_device(const std::string& device, const std::vector<Case>& cases, const SelftestOptions& options,
                 Json& report) {
  const tuff::Context context = open_context(device, "");
  const tuff::Context host = open_context("", "host");
  const tuff::DeviceProperties properties = context.info();
  if (!options.json) fmt::print("\n{}\n", heading(properties));

  std::vector<Verdict> verdicts;
  const auto begin = Clock::now();
  {
    Progress progress(options.json ? 0 : cases.size());
    for (const auto& entry : cases) {
      if (!options.json) progress.step(entry.operation + " " + entry.shape);
      verdicts.push_back(run_case(entry, options.seed + verdicts.size(), context, host));
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const auto failed = std::count_if(verdicts.begin(), verdicts.end(), [](const auto& v) { return !v.failure.empty(); });

  const auto lacking = std::count_if(verdicts.begin(), verdicts.end(), [](const auto& v) { return v.lacking; });

  Json entry;
  entry["device"] = properties.name;
  entry["driver"] = properties.driver;
  entry["failed"] = failed;
  entry["not_here"] = lacking;
  for (const auto& verdict : verdicts) entry["cases"].push_back(verdict_json(verdict));
  report.push_back(std::move(entry));
  if (options.json) return failed == 0;

  print_table(verdicts, options.verbose);
  for (const auto& verdict : verdicts) {
    if (!verdict.failure.empty()) fmt::print("\n{}", folded_text(verdict.failure, 2, 4));
  }
  const auto tried = verdicts.size() - static_cast<size_t>(lacking);
  std::string text = fmt::format("{} of {} shapes passed in {}. Error: the largest, relative to the largest value.",
                                 tried - static_cast<size_t>(failed), tried, format_seconds(seconds));
  if (lacking != 0) text += fmt::format(" {} are of types that the device does not have.", lacking);
  fmt::print("\n{}", folded_text(text, 0, 0));
  return failed == 0;
}

}  // namespace

int run_selftest(const SelftestOptions& options) {
  auto cases = selftest_cases();
  std::vector<std::string> names;
  for (const Case& entry : cases) names.push_back(entry.operation);
  std::erase_if(cases, [&](const Case& entry) { return !matches(options.filter, {entry.operation}); });
  if (cases.empty()) fail_filter("tuff selftest", options.filter, names);

  std::vector<std::string> devices{options.device};
  if (options.device.empty()) {
    devices.clear();
    for (uint32_t i = 0; i < tuff::device_count(); ++i) devices.push_back(std::to_string(i));
    if (devices.empty()) throw tuff::Exception(TUFF_ERROR_NO_DEVICE, "no Vulkan device to test");
    open_context("", "");  // rejects a TUFF_DEVICE that does not exist
  }
  Json report = Json::array();
  bool passed = true;
  for (const auto& device : devices) passed = test_device(device, cases, options, report) && passed;
  if (options.json) print_json(report);
  return passed ? 0 : kExitFailure;
}

}  // namespace tool
