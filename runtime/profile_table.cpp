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

// What each operation and each kernel took, and the text that shows it.
class Table {
 public:
  explicit Table(const Profile::View& view) : view_(view) {
    for (const HostSpan& span : view.host) {
      if (!span.step) add(span);
    }
    for (const DeviceSpan& span : view.device) add(span);
    for (auto& [name, row] : operations_) row.name = name;
    all_.name = "all";
  }

  std::string text(size_t max_spans) {
    add_head();
    add_operations();
    if (!kernels_.empty()) add_kernels();
    add_counters(max_spans);
    return std::move(out_);
  }

 private:
  static constexpr const char* kRates = "     GB/s of copy   GFLOP/s of gemm";

  template <typename... Arguments>
  void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  void add(const HostSpan& span) {
    const double seconds = static_cast<double>(span.end - span.begin) * 1e-9;
    for (Row* row : {&operations_[view_.texts[span.name]], &all_}) {
      ++row->calls;
      row->host += seconds;
    }
  }

  void add(const DeviceSpan& span) {
    const std::string &label = view_.texts[span.label], &kernel = view_.texts[span.kernel],
                      &variant = view_.texts[span.variant], &shape = view_.shape_of(span);
    Row& row = kernels_[{label, variant.empty() ? kernel : variant, shape}];
    row.name = label;
    row.variant = variant.empty() ? kernel : variant;
    row.shape = shape;
    const double seconds = view_.seconds(span);
    for (Row* sum : {&operations_[view_.texts[span.operation]], &row, &all_}) {
      ++sum->kernels;
      sum->device += seconds;
      sum->bytes += span.bytes;
      sum->operations += span.operations;
      if (!view_.in_f32(span)) continue;
      sum->f32_operations += span.operations;
      sum->f32_device += seconds;
    }
  }

  void add_head() {
    print("{}: {:.1f} ms", view_.device_name, view_.seconds() * 1e3);
    if (view_.has_device) print(", of which the device worked {:.1f} ms", all_.device * 1e3);
    out_ += "\n";
    if (view_.rates.bytes_per_second > 0) {
      print("\"of copy\": share of {:.1f} GB/s, read and written, that copying reaches on this device\n",
            view_.rates.bytes_per_second * 1e-9);
    }
    if (view_.rates.f32_flops_per_second > 0) {
      print("\"of gemm\": share of {:.1f} GFLOP/s that a large f32 gemm reaches here; for f32 only\n",
            view_.rates.f32_flops_per_second * 1e-9);
    }
  }

  // The slowest first.
  template <typename Rows>
  static std::vector<const Row*> sorted(const Rows& rows) {
    std::vector<const Row*> order;
    for (const auto& [key, row] : rows) order.push_back(&row);
    std::stable_sort(order.begin(), order.end(), [](const Row* a, const Row* b) {
      return a->device != b->device ? a->device > b->device : a->host > b->host;
    });
    return order;
  }

  std::string rates(const Row& row) const {
    const double seconds = row.device > 0 ? row.device : 1;
    const double f32 = row.f32_device > 0 ? row.f32_operations / row.f32_device : 0;
    return fmt::format("{:>9} {:>7} {:>9} {:>7}", decimal(row.bytes / seconds * 1e-9, 2),
                       percent(row.bytes / seconds, view_.rates.bytes_per_second),
                       decimal(row.operations / seconds * 1e-9, 1), percent(f32, view_.rates.f32_flops_per_second));
  }

  void add_operations() {
    print("\n{:<18} {:>7} {:>9} {:>8} {:>10} {:>9} {:>7} {}\n", "operation", "calls", "host ms", "commands",
          "device ms", "mean us", "share", kRates);
    std::vector<const Row*> rows = sorted(operations_);
    rows.push_back(&all_);
    for (const Row* row : rows) {
      const double mean = row->kernels == 0 || row->calls == 0 ? 0 : row->device / static_cast<double>(row->calls);
      print("{:<18} {:>7} {:>9.3f} {:>8} {:>10} {:>9} {:>7} {}\n", cut(row->name, 18), row->calls, row->host * 1e3,
            row->kernels == 0 ? "" : std::to_string(row->kernels), decimal(row->device * 1e3, 3),
            decimal(mean * 1e6, 1), percent(row->device, all_.device), rates(*row));
    }
  }

  void add_kernels() {
    print("\n{:<20} {:<22} {:>7} {:>10} {:>9} {:>7} {}  {}\n", "kernel", "variant", "times", "device ms", "mean us",
          "share", kRates, "shape");
    const std::vector<const Row*> order = sorted(kernels_);
    for (size_t i = 0; i < std::min(order.size(), kMaxRows); ++i) {
      const Row& row = *order[i];
      print("{:<20} {:<22} {:>7} {:>10.3f} {:>9} {:>7} {}  {}\n", cut(row.name, 20), cut(row.variant, 22), row.kernels,
            row.device * 1e3, decimal(row.device / static_cast<double>(row.kernels) * 1e6, 1),
            percent(row.device, all_.device), rates(row), row.shape);
    }
    if (order.size() > kMaxRows) print("and {} shorter ones\n", order.size() - kMaxRows);
  }

  void add_counters(size_t max_spans) {
    out_ += "\n";
    const char* between = "";
    for (const Profile::View::Counter& counter : view_.counters()) {
      print("{}{} {}", std::exchange(between, ", "), counter.value, counter.name);
    }
    out_ += "\n";
    if (view_.dropped == 0) return;
    print("{} spans were dropped: a profile holds {} of calls and {} of commands\n", view_.dropped, max_spans,
          max_spans);
  }

  const Profile::View& view_;
  std::string out_;
  std::map<std::string, Row> operations_;
  std::map<std::tuple<std::string, std::string, std::string>, Row> kernels_;
  Row all_;
};

}  // namespace

std::string Profile::table(const tuff_stats& stats) const {
  const View view = this->view(stats);
  return Table(view).text(max_spans_);
}

}  // namespace tuff
