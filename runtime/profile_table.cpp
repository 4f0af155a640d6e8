// The profile as text: a table of operations, then one of kernels by variant and shape, the slowest first.
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "runtime/profile_view.hpp"

namespace tuff {
namespace {

constexpr size_t kMaxRows = 40;  // of the second table

struct Row {
  std::string name, variant, shape;
  uint64_t calls = 0, kernels = 0;
  double host = 0, device = 0;  // seconds
  double bytes = 0, operations = 0;
  double f32_operations = 0, f32_device = 0;
};

// Unknown and zero values are left blank.
std::string decimal(double value, int digits) { return value > 0 ? fmt::format("{:.{}f}", value, digits) : ""; }
std::string percent(double part, double whole) {
  return whole > 0 && part > 0 ? fmt::format("{:.1f}%", 100 * part / whole) : "";
}

std::string cut(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

}  // namespace

std::string Profile::table(const tuff_stats& stats) const {
  const View view = this->view(stats);
  const auto add = [&](Row& row, const DeviceSpan& span) {
    const double seconds = view.seconds(span);
    ++row.kernels;
    row.device += seconds;
    row.bytes += span.bytes;
    row.operations += span.operations;
    if (view.in_f32(span)) {
      row.f32_operations += span.operations;
      row.f32_device += seconds;
    }
  };
  std::map<std::string, Row> operations;
  Row all;
  for (const HostSpan& span : view.host) {
    if (span.step) continue;
    Row& row = operations[view.texts[span.name]];
    ++row.calls, ++all.calls;
    row.host += static_cast<double>(span.end - span.begin) * 1e-9;
    all.host += static_cast<double>(span.end - span.begin) * 1e-9;
  }
  std::map<std::tuple<std::string, std::string, std::string>, Row> kernels;
  for (const DeviceSpan& span : view.device) {
    const std::string &label = view.texts[span.label], &kernel = view.texts[span.kernel],
                      &variant = view.texts[span.variant], &shape = view.shape_of(span);
    add(operations[view.texts[span.operation]], span);
    Row& row = kernels[{label, variant.empty() ? kernel : variant, shape}];
    row.name = label;
    row.variant = variant.empty() ? kernel : variant;
    row.shape = shape;
    add(row, span);
    add(all, span);
  }

  std::string out;
  auto end = std::back_inserter(out);
  fmt::format_to(end, "{}: {:.1f} ms", view.device_name, view.seconds() * 1e3);
  if (view.has_device) fmt::format_to(end, ", of which the device worked {:.1f} ms", all.device * 1e3);
  out += "\n";
  if (view.rates.bytes_per_second > 0) {
    fmt::format_to(end, "\"of copy\": share of {:.1f} GB/s, read and written, that copying reaches on this device\n",
                   view.rates.bytes_per_second * 1e-9);
  }
  if (view.rates.f32_flops_per_second > 0) {
    fmt::format_to(end, "\"of gemm\": share of {:.1f} GFLOP/s that a large f32 gemm reaches here; for f32 only\n",
                   view.rates.f32_flops_per_second * 1e-9);
  }
  const auto sorted = [](const auto& rows) {
    std::vector<const Row*> order;
    for (const auto& [key, row] : rows) order.push_back(&row);
    std::stable_sort(order.begin(), order.end(), [](const Row* a, const Row* b) {
      return a->device != b->device ? a->device > b->device : a->host > b->host;
    });
    return order;
  };
  const auto rates = [&](const Row& row) {
    const double seconds = row.device > 0 ? row.device : 1;
    const double f32 = row.f32_device > 0 ? row.f32_operations / row.f32_device : 0;
    return fmt::format("{:>9} {:>7} {:>9} {:>7}", decimal(row.bytes / seconds * 1e-9, 2),
                       percent(row.bytes / seconds, view.rates.bytes_per_second),
                       decimal(row.operations / seconds * 1e-9, 1), percent(f32, view.rates.f32_flops_per_second));
  };
  constexpr const char* kRates = "     GB/s of copy   GFLOP/s of gemm";

  for (auto& [name, row] : operations) row.name = name;
  fmt::format_to(end, "\n{:<18} {:>7} {:>9} {:>8} {:>10} {:>9} {:>7} {}\n", "operation", "calls", "host ms", "commands",
                 "device ms", "mean us", "share", kRates);
  const auto print = [&](const Row& row) {
    const double mean = row.kernels == 0 || row.calls == 0 ? 0 : row.device / static_cast<double>(row.calls);
    fmt::format_to(end, "{:<18} {:>7} {:>9.3f} {:>8} {:>10} {:>9} {:>7} {}\n", cut(row.name, 18), row.calls,
                   row.host * 1e3, row.kernels == 0 ? "" : std::to_string(row.kernels), decimal(row.device * 1e3, 3),
                   decimal(mean * 1e6, 1), percent(row.device, all.device), rates(row));
  };
  for (const Row* row : sorted(operations)) print(*row);
  all.name = "all";
  print(all);

  if (!kernels.empty()) {
    fmt::format_to(end, "\n{:<20} {:<22} {:>7} {:>10} {:>9} {:>7} {}  {}\n", "kernel", "variant", "times", "device ms",
                   "mean us", "share", kRates, "shape");
    const std::vector<const Row*> order = sorted(kernels);
    for (size_t i = 0; i < std::min(order.size(), kMaxRows); ++i) {
      const Row& row = *order[i];
      fmt::format_to(end, "{:<20} {:<22} {:>7} {:>10.3f} {:>9} {:>7} {}  {}\n", cut(row.name, 20), cut(row.variant, 22),
                     row.kernels, row.device * 1e3, decimal(row.device / static_cast<double>(row.kernels) * 1e6, 1),
                     percent(row.device, all.device), rates(row), row.shape);
    }
    if (order.size() > kMaxRows) fmt::format_to(end, "and {} shorter ones\n", order.size() - kMaxRows);
  }
  out += "\n";
  const char* between = "";
  for (const View::Counter& counter : view.counters()) {
    fmt::format_to(end, "{}{} {}", std::exchange(between, ", "), counter.value, counter.name);
  }
  out += "\n";
  if (view.dropped != 0) {
    fmt::format_to(end, "{} spans were dropped: a profile holds {} of calls and {} of commands\n", view.dropped,
                   max_spans_, max_spans_);
  }
  return out;
}

}  // namespace tuff
