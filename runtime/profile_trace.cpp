// Chrome's trace format, which Perfetto and chrome://tracing open: an object with a list of events. Times are in
// microseconds.
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "runtime/profile_view.hpp"

namespace tuff {
namespace {

// In the trace, processes group the tracks: the host's above the device's.
constexpr int kHost = 1, kDevice = 2;
// Perfetto puts a thread with its process's number above the others, as the main thread. Stream numbers avoid that.
constexpr size_t kFirstStream = 101;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const char* kind_name(DeviceSpan::Kind kind) {
  switch (kind) {
    case DeviceSpan::Kind::copy: return "copy";
    case DeviceSpan::Kind::fill: return "fill";
    case DeviceSpan::Kind::kernel: break;
  }
  return "kernel";
}

// Names a process ("process") or a thread ("thread"), and sorts it by its number instead of its name.
void name_track(std::string& out, const char* what, int process, size_t thread, const std::string& name) {
  const auto metadata = [&](const char* key, const std::string& value) {
    fmt::format_to(std::back_inserter(out),
                   R"({{"ph":"M","name":"{}_{}","pid":{},"tid":{},"args":{{"{}":{}}}}},)"
                   "\n",
                   what, key, process, thread, key, value);
  };
  metadata("name", quoted(name));
  metadata("sort_index", std::to_string(thread != 0 ? thread : static_cast<size_t>(process)));
}

}  // namespace

Profile::View Profile::view(const tuff_stats& stats) const {
  View view;
  {
    const std::lock_guard lock(mutex_);
    const bool running = recording();
    view.began = began_;
    view.ended = running ? host_now() : ended_;
    view.before = before_;
    view.after = running ? stats : after_;
    view.texts = texts_;
    view.threads = threads_;
    view.host = host_;
    view.device = device_;
    view.dropped = dropped_;
    view.has_device = has_device_;
    view.device_name = device_name_;
    view.rates = rates_;
    view.clock = clock_;
  }
  std::sort(view.host.begin(), view.host.end(), [](const HostSpan& a, const HostSpan& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.end != b.end ? a.end > b.end : a.step < b.step;
  });
  std::sort(view.device.begin(), view.device.end(), [](const DeviceSpan& a, const DeviceSpan& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  view.calls.reserve(view.host.size());
  for (const HostSpan& span : view.host) {
    if (!span.step) view.calls.emplace(span.call, &span);
  }
  return view;
}

std::string Profile::trace(const tuff_stats& stats) const {
  const View view = this->view(stats);
  std::vector<std::string> texts;
  for (const std::string& text : view.texts) texts.push_back(quoted(text));
  const auto host_time = [&](uint64_t ticks) {
    return static_cast<HostTime>(std::llround(view.clock.host_time(ticks)));
  };
  // No event may have a negative time, even if the clocks are slightly off.
  HostTime zero = view.began;
  if (!view.device.empty()) zero = std::min(zero, host_time(view.device.front().begin));
  // Converted from whole nanoseconds, so that rounding does not make adjacent spans overlap.
  const auto microseconds = [](HostTime nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; };

  std::string out = "{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[\n";
  auto end = std::back_inserter(out);
  name_track(out, "process", kHost, 0, "Host: calls");
  std::set<uint32_t> threads;
  for (const HostSpan& span : view.host) threads.insert(span.thread);
  for (const uint32_t thread : threads) {
    const std::string& name = view.threads[thread].name;
    name_track(out, "thread", kHost, thread + 1,
               fmt::format("thread {}{}{}", thread + 1, name.empty() ? "" : ": ", name));
  }
  // A track for each stream and one for its copies, in the order of their first commands. The key includes the index
  // and the name, because names are not unique and indices are reused.
  std::map<std::pair<uint32_t, uint32_t>, size_t> tracks;
  if (view.has_device) {
    name_track(out, "process", kDevice, 0, "Device: " + view.device_name);
    for (const DeviceSpan& span : view.device) {
      const auto [track, first] = tracks.try_emplace({span.track, span.stream}, kFirstStream + tracks.size());
      if (first) name_track(out, "thread", kDevice, track->second, view.texts[span.stream]);
    }
  }

  for (const HostSpan& span : view.host) {
    fmt::format_to(end,
                   R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"call":{})",
                   span.step ? "step" : "call", texts[span.name], kHost, span.thread + 1,
                   microseconds(span.begin - zero), microseconds(span.end - span.begin), span.call);
    if (span.shape != 0) fmt::format_to(end, R"(,"shape":{})", texts[span.shape]);
    if (span.failed) fmt::format_to(end, R"(,"failed":true)");
    fmt::format_to(end, "}}}},\n");
  }
  uint64_t flow = 0;
  for (const DeviceSpan& span : view.device) {
    const HostTime begin = host_time(span.begin) - zero;
    const HostTime end_time = host_time(span.end) - zero;
    const size_t track = tracks.at({span.track, span.stream});
    const double seconds = view.seconds(span);
    fmt::format_to(
        end,
        R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"call":{},"submission":{})",
        kind_name(span.kind), texts[span.label], kDevice, track, microseconds(begin), microseconds(end_time - begin),
        span.call, span.submission);
    const auto text = [&](const char* key, uint32_t number) {
      if (number != 0) fmt::format_to(end, R"(,"{}":{})", key, texts[number]);
    };
    text("operation", span.operation);
    if (const std::string& shape = view.shape_of(span); !shape.empty()) {
      fmt::format_to(end, R"(,"shape":{})", quoted(shape));
    }
    text("kernel", span.kernel);
    text("variant", span.variant);
    text("plan", span.plan);
    if (span.kind == DeviceSpan::Kind::kernel) {
      fmt::format_to(end, R"(,"groups":"{}x{}x{}")", span.groups[0], span.groups[1], span.groups[2]);
    }
    fmt::format_to(end, R"(,"bytes":{:.0f},"operations":{:.0f})", span.bytes, span.operations);
    if (seconds > 0) {
      const double bandwidth = span.bytes / seconds, rate = span.operations / seconds;
      fmt::format_to(end, R"(,"GB/s":{:.6g},"GFLOP/s":{:.6g})", bandwidth * 1e-9, rate * 1e-9);
      if (view.rates.bytes_per_second > 0) {
        fmt::format_to(end, R"(,"share of copy bandwidth":{:.4g})", bandwidth / view.rates.bytes_per_second);
      }
      if (view.rates.f32_flops_per_second > 0 && view.in_f32(span)) {
        fmt::format_to(end, R"(,"share of f32 gemm":{:.4g})", rate / view.rates.f32_flops_per_second);
      }
    }
    fmt::format_to(end, "}}}},\n");
    // An arrow from the beginning of the call to the command, unless it would go back in time. (From a later point
    // within the call, Perfetto would start it at a step that has ended.) Calls that began before the profile or are
    // still running have no span.
    const auto call = view.calls.find(span.call);
    if (call == view.calls.end() || begin < call->second->begin - zero) continue;
    ++flow;
    fmt::format_to(end,
                   R"({{"ph":"s","cat":"recorded","name":"recorded","id":{},"pid":{},"tid":{},"ts":{:.3f}}},)"
                   "\n",
                   flow, kHost, span.thread + 1, microseconds(call->second->begin - zero));
    fmt::format_to(end,
                   R"({{"ph":"f","bp":"e","cat":"recorded","name":"recorded","id":{},"pid":{},"tid":{},"ts":{:.3f}}},)"
                   "\n",
                   flow, kDevice, track, microseconds(begin));
  }
  out.resize(out.size() - 2);  // the last event's comma; there is at least one event
  out += "\n],\n\"otherData\":";
  const size_t about = out.size();
  fmt::format_to(end, R"({{"library":"tuff {}.{}.{}","device":{},"seconds":{:.6f})", TUFF_VERSION_MAJOR,
                 TUFF_VERSION_MINOR, TUFF_VERSION_PATCH, quoted(view.device_name), view.seconds());
  fmt::format_to(end, R"(,"dropped spans":{})", view.dropped);
  if (view.has_device) {
    fmt::format_to(end, R"(,"clocks":"{}","clock uncertainty in us":{:.3f})",
                   view.clock.calibrated ? "calibrated by the driver" : "estimated from a submission",
                   static_cast<double>(view.clock.uncertainty) * 1e-3);
    fmt::format_to(end, R"(,"copy bytes per second":{:.0f},"f32 gemm flops per second":{:.0f})",
                   view.rates.bytes_per_second, view.rates.f32_flops_per_second);
  }
  for (const View::Counter& counter : view.counters()) fmt::format_to(end, R"(,"{}":{})", counter.name, counter.value);
  out += '}';
  // Repeated under the name that Perfetto reads.
  const std::string metadata = out.substr(about);
  out += ",\n\"metadata\":" + metadata + "\n}\n";
  return out;
}

}  // namespace tuff
