// Profiles and traces in tests. Every trace that is read is checked against the rules of its format.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/harness.hpp"

namespace tuff_test {

using Json = nlohmann::json;

// Everything that a viewer of Chrome's trace format would reject, draw wrongly or omit; empty for a correct trace.
//   events  complete spans, metadata and arrows, each with exactly the members of its kind, none twice
//   times   whole nanoseconds, not negative
//   rows    each has spans, a name, a process with a name, and a position among the others; its spans are written in
//           order of their starts
//   spans   on a host row nested or disjoint, on a device row disjoint
//   arrows  from within a call's span to the start of a command of that call, not back in time
std::vector<std::string> trace_problems(const std::string& text);

// Reads the trace and requires that it has no such problems.
Json read_trace(const std::string& text);

// The trace that the context's profile writes.
Json trace_of(tuff_context context);

// The spans of a category.
std::vector<Json> events(const Json& trace, const std::string& category);
double end_of(const Json& event);

// The names of the rows of the host's or the device's process, from top to bottom.
enum class Rows { host, device };
std::vector<std::string> row_names(const Json& trace, Rows rows);

// A path for a trace; its file is removed with this object.
class TraceFile {
 public:
  TraceFile();
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  const std::string& path() const { return path_; }
  Json read() const;

 private:
  std::string path_;
};

// Base of tests that profile small operations.
class OnProfiles : public OnBackend {
 protected:
  void SetUp() override {
    tuff_profile_end(context());  // left over from a test that failed
    x_ = OwnBuffer(context(), 1 << 16);
    y_ = OwnBuffer(context(), 1 << 16);
  }
  tuff_status relu(uint64_t n = 1000) { return relu_on(context(), n); }
  tuff_status relu_on(tuff_stream stream, uint64_t n = 1000) {
    return tuff_unary(stream, TUFF_F32, TUFF_UNARY_RELU, x_, y_, n);
  }
  tuff_status gemm(uint64_t n = 32) { return tuff_gemm(context(), TUFF_F32, 0, 0, n, n, n, 1, x_, n, x_, n, 0, y_, n); }
  OwnBuffer x_, y_;
};

}  // namespace tuff_test
