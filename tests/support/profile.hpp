// Profiles as tests make and read them. No trace is read without being held to the rules of its format.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/harness.hpp"

namespace tuff_test {

using Json = nlohmann::json;

// What a viewer of Chrome's trace format would refuse, draw wrongly or leave out; nothing of a trace that is right.
//   events  complete spans, metadata and arrows, each with the members that its kind has and no others, none twice
//   times   whole nanoseconds, not before zero
//   rows    each has spans, a name, a process with a name, and a place among the others; its spans are written in the
//           order of their beginnings
//   spans   on a row of the host one is within another or beside it, on one of the device beside it
//   arrows  from within a call's span to the beginning of a command of that call, not back in time
std::vector<std::string> trace_problems(const std::string& text);

// The trace, which has none of them.
Json read_trace(const std::string& text);

// What the context's profile writes.
Json trace_of(tuff_context context);

// Spans of a category.
std::vector<Json> events(const Json& trace, const std::string& category);
double end_of(const Json& event);

// What its rows are called, from above, of the host's process or the device's.
enum class Rows { host, device };
std::vector<std::string> row_names(const Json& trace, Rows rows);

// A path for a trace, whose file is gone with it.
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

// Tests that profile small operations.
class OnProfiles : public OnBackend {
 protected:
  void SetUp() override {
    tuff_profile_end(context());  // of a test that failed
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
