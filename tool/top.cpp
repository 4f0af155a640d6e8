// tuff top: what the contexts of this user's processes do, and how the devices fare.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/usage.hpp"
#include "tool/commands.hpp"
#include "tool/format.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tuff/tuff.hpp"

namespace tool {
namespace top {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct DeviceNow {
  tuff::DeviceProperties properties;
  tuff_device_sensors sensors;
};

struct Snapshot {
  Clock::time_point at;
  tuff::UsageReport usage;
  std::vector<DeviceNow> devices;
};

// A context between two snapshots. Rates are negative where they are not known.
struct Row {
  const tuff::ContextUsage* now;
  double calls = -1, bytes = -1, flops = -1;
};

std::vector<DeviceNow> read_devices() {
  std::vector<DeviceNow> devices;
  for (uint32_t i = 0, count = tuff::device_count(); i < count; ++i) {
    DeviceNow device{};
    device.properties = tuff::device_info(i);
    device.sensors.struct_size = sizeof device.sensors;
    if (tuff_device_read_sensors(i, &device.sensors) == TUFF_OK) devices.push_back(device);
  }
  return devices;
}

Snapshot snapshot() { return {Clock::now(), tuff::read_usage(), read_devices()}; }

double rate(double before, double now, double seconds) { return now >= before ? (now - before) / seconds : -1; }

std::vector<Row> rows_of(const Snapshot& before, const Snapshot& now) {
  std::map<std::tuple<int64_t, uint64_t, int64_t>, const tuff::ContextUsage*> known;
  for (const auto& context : before.usage.contexts) {
    known[{context.process, context.serial, context.opened}] = &context;
  }
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  std::vector<Row> rows;
  for (const auto& context : now.usage.contexts) {
    Row row{&context};
    const auto found = known.find({context.process, context.serial, context.opened});
    if (found != known.end() && seconds > 0) {
      const tuff::ContextUsage& old = *found->second;
      row.calls = rate(static_cast<double>(old.calls), static_cast<double>(context.calls), seconds);
      // The host backend and plug-ins count no work.
      if (context.bytes > 0) row.bytes = rate(old.bytes, context.bytes, seconds);
      if (context.flops > 0) row.flops = rate(old.flops, context.flops, seconds);
    }
    rows.push_back(row);
  }
  return rows;
}

// Names come from other programs: what would move the cursor or colour the terminal is not printed.
// That is U+0000 to U+001F, U+007F, and U+0080 to U+009F, which are two bytes in UTF-8.
std::string printable(const std::string& text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool two = byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) <= 0x9f;
    shown += two || byte(i) < 0x20 || byte(i) == 0x7f ? '?' : text[i];
    i += two ? 1 : 0;
  }
  return shown;
}

std::string or_dash(double value, const std::string& text) { return value < 0 || std::isnan(value) ? "-" : text; }

std::string memory_text(const tuff::ContextUsage& context) {
  if (context.bytes_limit == 0) return format_bytes(context.bytes_in_use);
  return fmt::format("{} of {}", format_bytes(context.bytes_in_use), format_bytes(context.bytes_limit));
}

std::string calls_text(double calls) {
  return or_dash(calls, calls < 10 ? fmt::format("{:.1f}", calls) : format_count(static_cast<uint64_t>(calls)));
}

std::string device_line(const DeviceNow& device) {
  const tuff_device_sensors& sensors = device.sensors;
  std::vector<std::string> facts;
  if (sensors.heap_budget_bytes != 0) {
    facts.push_back(fmt::format(
        "{} of memory, {} left to a process here", format_bytes(sensors.heap_bytes),
        format_bytes(sensors.heap_budget_bytes - std::min(sensors.heap_used_bytes, sensors.heap_budget_bytes))));
  } else {
    facts.push_back(fmt::format("{} of memory", format_bytes(sensors.heap_bytes)));
  }
  if (!std::isnan(sensors.temperature_celsius)) facts.push_back(fmt::format("{:.0f} C", sensors.temperature_celsius));
  if (!std::isnan(sensors.power_watts)) facts.push_back(fmt::format("{:.0f} W", sensors.power_watts));
  if (!std::isnan(sensors.core_hertz)) facts.push_back(fmt::format("cores {:.0f} MHz", sensors.core_hertz / 1e6));
  if (!std::isnan(sensors.memory_hertz)) facts.push_back(fmt::format("memory {:.0f} MHz", sensors.memory_hertz / 1e6));
  if (!std::isnan(sensors.busy)) facts.push_back(fmt::format("{} busy", format_share(sensors.busy)));
  return fmt::format("{}: {}", printable(device.properties.name), fmt::join(facts, ", "));
}

void print_text(const Snapshot& now, const std::vector<Row>& rows) {
  const tuff::UsageReport& usage = now.usage;
  for (const DeviceNow& device : now.devices) fmt::print("{}\n", folded_text(device_line(device), 0, 2));
  if (!usage.problem.empty()) {
    fmt::print("{}\n", folded_text(fmt::format("No contexts can be seen: {}.", usage.problem), 0, 2));
    return;
  }
  if (rows.empty()) fmt::print("No process of this user has a context that it publishes.\n");
  Table table({{"process", Align::right},
               {"program"},
               {"device", Align::left, true},
               {"memory", Align::right},
               {"peak", Align::right, true},
               {"calls/s", Align::right},
               {"moved", Align::right, true},
               {"computed", Align::right, true},
               {"queue", Align::right}});
  for (const Row& row : rows) {
    const tuff::ContextUsage& context = *row.now;
    table.row({context.process == 0 ? "-" : std::to_string(context.process), printable(shorten(context.program, 16)),
               printable(shorten(context.device, 24)), memory_text(context), format_bytes(context.bytes_peak),
               calls_text(row.calls), or_dash(row.bytes, format_bandwidth(row.bytes)),
               or_dash(row.flops, format_flops(row.flops)), std::to_string(context.in_flight)});
  }
  if (!rows.empty()) table.print();
  if (usage.unpublished != 0) fmt::print("{} more contexts are not shown: a process shows 64.\n", usage.unpublished);
  for (const std::string& problem : usage.unreadable) {
    fmt::print("{}\n", folded_text(printable(fmt::format("ignored: {}/{}", usage.folder, problem)), 0, 2));
  }
}

Json or_null(double value) { return value < 0 || !std::isfinite(value) ? Json(nullptr) : Json(value); }
Json or_null(uint64_t value) { return value == 0 ? Json(nullptr) : Json(value); }
Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json json_of(const DeviceNow& device) {
  const tuff_device_sensors& sensors = device.sensors;
  return {{"name", device.properties.name},
          {"uuid", format_uuid(device.properties.uuid)},
          {"pci_address", or_null(std::string(sensors.pci_address))},
          {"heap_bytes", sensors.heap_bytes},
          {"heap_budget_bytes", or_null(sensors.heap_budget_bytes)},
          {"heap_used_bytes", sensors.heap_budget_bytes == 0 ? Json(nullptr) : Json(sensors.heap_used_bytes)},
          // Below zero is a temperature.
          {"temperature_celsius",
           std::isfinite(sensors.temperature_celsius) ? Json(sensors.temperature_celsius) : Json(nullptr)},
          {"power_watts", or_null(sensors.power_watts)},
          {"core_hertz", or_null(sensors.core_hertz)},
          {"memory_hertz", or_null(sensors.memory_hertz)},
          {"busy", or_null(sensors.busy)}};
}

Json json_of(const Row& row) {
  const tuff::ContextUsage& context = *row.now;
  return {{"process", context.process == 0 ? Json(nullptr) : Json(context.process)},
          {"program", context.program},
          {"context", context.serial},
          {"device", context.device},
          {"backend", context.backend},
          {"uuid", format_uuid(context.uuid.data())},
          {"opened", static_cast<double>(context.opened) * 1e-9},
          {"bytes_in_use", context.bytes_in_use},
          {"bytes_reserved", context.bytes_reserved},
          {"bytes_peak", context.bytes_peak},
          {"bytes_limit", or_null(context.bytes_limit)},
          {"calls", context.calls},
          {"dispatches", context.dispatches},
          {"submissions", context.submissions},
          {"in_flight", context.in_flight},
          {"bytes_uploaded", context.uploaded},
          {"bytes_downloaded", context.downloaded},
          {"bytes_moved", context.bytes},
          {"flops", context.flops},
          {"calls_per_second", or_null(row.calls)},
          {"bytes_per_second", or_null(row.bytes)},
          {"flops_per_second", or_null(row.flops)}};
}

void print_line(const Snapshot& before, const Snapshot& now, const std::vector<Row>& rows) {
  Json devices = Json::array(), contexts = Json::array();
  for (const DeviceNow& device : now.devices) devices.push_back(json_of(device));
  for (const Row& row : rows) contexts.push_back(json_of(row));
  const auto wall = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const Json all = {{"time", wall},
                    {"seconds", std::chrono::duration<double>(now.at - before.at).count()},
                    {"folder", or_null(now.usage.folder)},
                    {"problem", or_null(now.usage.problem)},
                    {"devices", devices},
                    {"contexts", contexts},
                    {"not_shown", now.usage.unpublished},
                    {"ignored", now.usage.unreadable}};
  print_json_line(all);
}

}  // namespace

int run(const TopOptions& options) {
  const bool clear = !options.json && !options.once && isatty(STDOUT_FILENO) != 0;
  Snapshot before = snapshot();
  do {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
    Snapshot now = snapshot();
    const std::vector<Row> rows = rows_of(before, now);
    if (options.json) {
      print_line(before, now, rows);
    } else {
      if (clear) fmt::print("\x1b[H\x1b[J");
      print_text(now, rows);
      if (!clear && !options.once) fmt::print("\n");
    }
    finish_output();  // a closed pipe ends it
    before = std::move(now);
  } while (!options.once);
  return 0;
}

}  // namespace top

int run_top(const TopOptions& options) { return top::run(options); }

}  // namespace tool
