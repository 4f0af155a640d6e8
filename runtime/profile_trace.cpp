// Chrome's trace format, which Perfetto and chrome://tracing open: an object with a list of events. Times are in
// microseconds.
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/json_text.hpp"
#include "runtime/profile_view.hpp"

namespace tuff {
namespace {

// In the trace, processes group the tracks: the host's above the device's.
constexpr int kHost = 1, kDevice = 2;
// Perfetto puts a thread with its process's number above the others, as the main thread. Stream numbers avoid that.
constexpr size_t kFirstStream = 101;

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
  metadata("name", json_text(name));
  metadata("sort_index", std::to_string(thread != 0 ? thread : static_cast<size_t>(process)));
}

// The events of a trace, one in each line, and what it says about the whole.
class Trace {
 public:
  explicit Trace(const Profile::View& view) : view_(view) {
    for (const std::string& text : view.texts) texts_.push_back(json_text(text));
    // No event may have a negative time, even if the clocks are slightly off.
    zero_ = view.began;
    if (!view.device.empty()) zero_ = std::min(zero_, host_time(view.device.front().begin));
  }

  std::string text() {
    out_ = "{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[\n";
    name_threads();
    if (view_.has_device) name_streams();
    for (const HostSpan& span : view_.host) add(span);
    for (const DeviceSpan& span : view_.device) add(span);
    out_.resize(out_.size() - 2);  // the last event's comma; there is at least one event
    const std::string about = this->about();
    // Repeated under the name that Perfetto reads.
    out_ += "\n],\n\"otherData\":" + about + ",\n\"metadata\":" + about + "\n}\n";
    return std::move(out_);
  }

 private:
  HostTime host_time(uint64_t ticks) const { return static_cast<HostTime>(std::llround(view_.clock.host_time(ticks))); }
  // Converted from whole nanoseconds, so that rounding does not make adjacent spans overlap.
  static double microseconds(HostTime nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

  template <typename... Arguments>
  void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  void name_threads() {
    name_track(out_, "process", kHost, 0, "Host: calls");
    std::set<uint32_t> threads;
    for (const HostSpan& span : view_.host) threads.insert(span.thread);
    for (const uint32_t thread : threads) {
      const std::string& name = view_.threads[thread].name;
      name_track(out_, "thread", kHost, thread + 1,
                 fmt::format("thread {}{}{}", thread + 1, name.empty() ? "" : ": ", name));
    }
  }

  void name_streams() {
    name_track(out_, "process", kDevice, 0, "Device: " + view_.device_name);
    for (const DeviceSpan& span : view_.device) {
      const auto [track, first] = tracks_.try_emplace({span.track, span.stream}, kFirstStream + tracks_.size());
      if (first) name_track(out_, "thread", kDevice, track->second, view_.texts[span.stream]);
    }
  }

  void add(const HostSpan& span) {
    print(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"call":{})",
          span.step ? "step" : "call", texts_[span.name], kHost, span.thread + 1, microseconds(span.begin - zero_),
          microseconds(span.end - span.begin), span.call);
    if (span.shape != 0) print(R"(,"shape":{})", texts_[span.shape]);
    if (span.failed) print(R"(,"failed":true)");
    print("}}}},\n");
  }

  void add(const DeviceSpan& span) {
    const HostTime begin = host_time(span.begin) - zero_, end = host_time(span.end) - zero_;
    const size_t track = tracks_.at({span.track, span.stream});
    print(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"call":{},)",
          kind_name(span.kind), texts_[span.label], kDevice, track, microseconds(begin), microseconds(end - begin),
          span.call);
    print(R"("submission":{})", span.submission);
    const auto text = [&](const char* key, uint32_t number) {
      if (number != 0) print(R"(,"{}":{})", key, texts_[number]);
    };
    text("operation", span.operation);
    if (const std::string& shape = view_.shape_of(span); !shape.empty()) print(R"(,"shape":{})", json_text(shape));
    text("kernel", span.kernel);
    text("variant", span.variant);
    text("plan", span.plan);
    if (span.kind == DeviceSpan::Kind::kernel) {
      print(R"(,"groups":"{}x{}x{}")", span.groups[0], span.groups[1], span.groups[2]);
    }
    add_rates(span);
    print("}}}},\n");
    add_arrow(span, begin, track);
  }

  void add_rates(const DeviceSpan& span) {
    print(R"(,"bytes":{:.0f},"operations":{:.0f})", span.bytes, span.operations);
    const double seconds = view_.seconds(span);
    if (seconds <= 0) return;
    const double bandwidth = span.bytes / seconds, rate = span.operations / seconds;
    print(R"(,"GB/s":{:.6g},"GFLOP/s":{:.6g})", bandwidth * 1e-9, rate * 1e-9);
    if (view_.rates.bytes_per_second > 0) {
      print(R"(,"share of copy bandwidth":{:.4g})", bandwidth / view_.rates.bytes_per_second);
    }
    if (view_.rates.f32_flops_per_second > 0 && view_.in_f32(span)) {
      print(R"(,"share of f32 gemm":{:.4g})", rate / view_.rates.f32_flops_per_second);
    }
  }

  // An arrow from the beginning of the call to the command, unless it would go back in time. (From a later point
  // within the call, Perfetto would start it at a step that has ended.) Calls that began before the profile or are
  // still running have no span.
  void add_arrow(const DeviceSpan& span, HostTime begin, size_t track) {
    const auto call = view_.calls.find(span.call);
    if (call == view_.calls.end() || begin < call->second->begin - zero_) return;
    ++arrows_;
    print(R"({{"ph":"s","cat":"recorded","name":"recorded","id":{},"pid":{},"tid":{},"ts":{:.3f}}},)"
          "\n",
          arrows_, kHost, span.thread + 1, microseconds(call->second->begin - zero_));
    print(R"({{"ph":"f","bp":"e","cat":"recorded","name":"recorded","id":{},"pid":{},"tid":{},"ts":{:.3f}}},)"
          "\n",
          arrows_, kDevice, track, microseconds(begin));
  }

  std::string about() const {
    std::string about = fmt::format(R"({{"library":"tuff {}.{}.{}","device":{},"seconds":{:.6f},"dropped spans":{})",
                                    TUFF_VERSION_MAJOR, TUFF_VERSION_MINOR, TUFF_VERSION_PATCH,
                                    json_text(view_.device_name), view_.seconds(), view_.dropped);
    if (view_.has_device) {
      about += fmt::format(R"(,"clocks":"{}","clock uncertainty in us":{:.3f})",
                           view_.clock.calibrated ? "calibrated by the driver" : "estimated from a submission",
                           static_cast<double>(view_.clock.uncertainty) * 1e-3);
      about += fmt::format(R"(,"copy bytes per second":{:.0f},"f32 gemm flops per second":{:.0f})",
                           view_.rates.bytes_per_second, view_.rates.f32_flops_per_second);
    }
    for (const Profile::View::Counter& counter : view_.counters()) {
      about += fmt::format(R"(,"{}":{})", counter.name, counter.value);
    }
    return about + '}';
  }

  const Profile::View& view_;
  std::string out_;
  std::vector<std::string> texts_;
  HostTime zero_;
  // A track for each stream and one for its copies, in the order of their first commands. The key includes the index
  // and the name, because names are not unique and indices are reused.
  std::map<std::pair<uint32_t, uint32_t>, size_t> tracks_;
  uint64_t arrows_ = 0;
};

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
  return Trace(view).text();
}

}  // namespace tuff
