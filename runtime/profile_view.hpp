// A snapshot of a profile, for its reports.
#pragma once

#include <algorithm>
#include <optional>

#include "runtime/profile.hpp"

namespace tuff {

struct Profile::View {
  HostTime began, ended;
  tuff_stats before, after;
  std::vector<std::string> texts;
  std::vector<Thread> threads;
  std::vector<HostSpan> host;  // sorted by begin, a call before its steps
  std::vector<DeviceSpan> device;
  uint64_t dropped;
  bool has_device;
  std::string device_name;
  DeviceRates rates;
  DeviceClock clock;
  std::unordered_map<uint64_t, const HostSpan*> calls;  // by number

  const std::string& shape_of(const DeviceSpan& span) const {
    if (span.shape != 0) return texts[span.shape];
    const auto call = calls.find(span.call);
    return texts[call == calls.end() ? 0 : call->second->shape];
  }
  // The measured rate is for f32, so percentages are shown only for f32.
  bool in_f32(const DeviceSpan& span) const {
    if (span.dtype != 0) return span.dtype == TUFF_F32;
    const auto call = calls.find(span.call);
    return call != calls.end() && call->second->dtype == TUFF_F32;
  }
  double seconds() const { return static_cast<double>(ended - began) * 1e-9; }
  double seconds(const DeviceSpan& span) const { return clock.nanoseconds(span.begin, span.end) * 1e-9; }

  struct Counter {
    const char* name;
    uint64_t value;
  };
  // The growth of the context's counters during the profile.
  std::array<Counter, 9> counters() const {
    const auto grown = [&](uint64_t tuff_stats::*field) { return after.*field - before.*field; };
    return {{{"kernels recorded", grown(&tuff_stats::dispatches)},
             {"submissions", grown(&tuff_stats::submissions)},
             {"barriers", grown(&tuff_stats::barriers)},
             {"kernel cache hits", grown(&tuff_stats::kernel_cache_hits)},
             {"shaders compiled", grown(&tuff_stats::shaders_compiled)},
             {"shaders read from disk", grown(&tuff_stats::shader_cache_hits)},
             {"bytes uploaded", grown(&tuff_stats::bytes_uploaded)},
             {"bytes downloaded", grown(&tuff_stats::bytes_downloaded)},
             {"bytes staged", grown(&tuff_stats::bytes_staged)}}};
  }
};

}  // namespace tuff
