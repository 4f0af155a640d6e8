// Traces: rows, arrows and clocks, and that the trace checker finds errors.
#include <pthread.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/profile.hpp"
#include "support/stream.hpp"
#include "support/threads.hpp"

namespace tuff_test::profile_trace_test {
namespace {

using Names = std::vector<std::string>;

class ProfileTrace : public OnProfiles {
 protected:
  // The trace of what body() does.
  Json traced(const std::function<void()>& body) {
    EXPECT_OK(tuff_synchronize(context()));
    EXPECT_OK(tuff_profile_begin(context()));
    body();
    EXPECT_OK(tuff_profile_end(context()));
    return trace_of(context());
  }
};

TEST_P(ProfileTrace, GivesThreadsTracksOfTheirOwn) {
  const Json trace = traced([&] {
    on_threads(2, [&](int) {
      const OwnBuffer x(context(), 4096);
      for (int i = 0; i < 50; ++i) {
        EXPECT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, x, x, 1000));
        if (i % 10 == 0) {
          EXPECT_OK(tuff_synchronize(context()));
        }
      }
    });
  });
  std::map<int, int> calls;
  for (const Json& call : events(trace, "call")) calls[call.at("tid")] += call.at("name") == "unary";
  EXPECT_EQ(calls.size(), 2u);
  for (const auto& [thread, count] : calls) EXPECT_EQ(count, 50) << thread;
  EXPECT_EQ(events(trace, "kernel").size(), vulkan() ? 100u : 0u);
  EXPECT_EQ(row_names(trace, Rows::host).size(), 2u);
}

// Threads that were given a name appear under it.
TEST_P(ProfileTrace, NamesThreads) {
  const Json trace = traced([&] {
    EXPECT_OK(relu());
    for (const char* name : {"loader", ""}) {
      std::thread([&] {
        if (*name != '\0') {
          EXPECT_EQ(pthread_setname_np(pthread_self(), name), 0);
        }
        EXPECT_OK(relu());
      }).join();
    }
  });
  const Names rows = row_names(trace, Rows::host);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].find(':'), std::string::npos) << rows[0];
  EXPECT_EQ(rows[1].substr(rows[1].find(':')), ": loader");
  EXPECT_EQ(rows[2].find(':'), std::string::npos) << rows[2];
}

// Streams and threads that did nothing during the profile have no rows, not even if they appeared in an earlier one.
TEST_P(ProfileTrace, HasNoRowsOfThoseThatDidNothing) {
  const Json before = traced([&] {
    on_threads(3, [&](int) { EXPECT_OK(relu_on(make_stream(context()))); });
    EXPECT_OK(relu());
  });
  EXPECT_EQ(row_names(before, Rows::host).size(), 4u);
  const OwnStream idle = make_stream(context());
  const Json after = traced([&] { EXPECT_OK(relu()); });
  EXPECT_EQ(row_names(after, Rows::host).size(), 1u);
  EXPECT_EQ(row_names(after, Rows::device), vulkan() ? Names{"default stream"} : Names{});
}

TEST_P(ProfileTrace, OrdersStreamsByTheirFirstCommands) {
  if (!vulkan()) GTEST_SKIP() << "the host backend has no rows of streams";
  const OwnStream z = make_stream(context(), "z"), a = make_stream(context(), "a"), m = make_stream(context(), "m");
  const Json trace = traced([&] {
    for (const tuff_stream stream : {tuff_stream{m}, tuff_stream{z}, tuff_stream{context()}, tuff_stream{a}}) {
      EXPECT_OK(relu_on(stream));
      EXPECT_OK(tuff_synchronize(stream));
    }
    EXPECT_OK(relu_on(m));
  });
  EXPECT_EQ(row_names(trace, Rows::device), (Names{"m", "z", "default stream", "a"}));
}

// Streams of one name have separate rows, whatever the name contains.
TEST_P(ProfileTrace, KeepsStreamsOfOneNameApart) {
  if (!vulkan()) GTEST_SKIP() << "the host backend has no rows of streams";
  const char* name = "a \"name\",\n\\ \xff and {braces}";
  const OwnStream first = make_stream(context(), name), second = make_stream(context(), name);
  const Json trace = traced([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_OK(relu_on(first));
      EXPECT_OK(relu_on(second));
    }
  });
  const Names rows = row_names(trace, Rows::device);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_EQ(rows[0], "a \"name\",\n\\ \xEF\xBF\xBD and {braces}");  // invalid UTF-8 is replaced
  std::map<uint64_t, int> kernels;
  for (const Json& kernel : events(trace, "kernel")) ++kernels[kernel.at("tid")];
  for (const auto& [row, count] : kernels) EXPECT_EQ(count, 20) << row;
}

// A stream's commands are still in the profile after the stream is destroyed, even if another has taken its place.
TEST_P(ProfileTrace, KeepsStreamsThatAreGone) {
  if (!vulkan()) GTEST_SKIP() << "the host backend has no rows of streams";
  const Names names = {"first", "second", "third"};
  const Json trace = traced([&] {
    for (const std::string& name : names) {
      const OwnStream stream = make_stream(context(), name.c_str());
      EXPECT_OK(relu_on(stream));
      EXPECT_OK(tuff_synchronize(stream));
    }
  });
  EXPECT_EQ(events(trace, "kernel").size(), 3u);
  EXPECT_EQ(row_names(trace, Rows::device), names);
}

// Streams, graphs, copies and threads at the same time.
TEST_P(ProfileTrace, IsLegalWhateverHappens) {
  std::vector<OwnStream> ups, works;  // all alive at once: a stream that reuses a slot and a name would share the row
  for (int i = 0; i < 3; ++i) {
    ups.push_back(make_stream(context(), "up"));
    works.push_back(make_stream(context(), "work"));
  }
  const Json trace = traced([&] {
    on_threads(3, [&](int thread) {
      const tuff_stream up = ups[thread], work = works[thread];
      const Pinned source(context(), 1000), target(context(), 1000);
      const OwnBuffer x(context(), 4000), y(context(), 4000);
      const auto steps = [&](tuff_stream stream) {
        add(stream, x, x, y, 1000);
        multiply(stream, y, x, y, 1000);
      };
      const OwnGraph graph = capture(work, [&] { steps(work); });
      for (int i = 0; i < 5; ++i) {
        EXPECT_OK(tuff_copy_htod_async(up, x, 0, source.data(), source.bytes()));
        order(context(), up, work);
        steps(work);
        EXPECT_OK(tuff_graph_launch(work, graph));
        EXPECT_OK(tuff_copy_dtoh_async(work, target.data(), y, 0, target.bytes()));
        order(context(), work, up);
      }
      EXPECT_OK(tuff_synchronize(work));
    });
  });
  EXPECT_EQ(row_names(trace, Rows::host).size(), 3u);
  if (!vulkan()) return;
  const Names rows = row_names(trace, Rows::device);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), "up"), 3);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), "work"), 3);
  std::map<std::string, int> kernels;
  for (const Json& kernel : events(trace, "kernel")) ++kernels[kernel.at("args").at("operation")];
  EXPECT_EQ(kernels["binary"], 30);
  EXPECT_EQ(kernels["graph_launch"], 30);
}

// Arrows lead from each call to each of its commands, whichever way these reached the device.
TEST_P(ProfileTrace, PointsFromCallsToTheirCommands) {
  if (!vulkan()) GTEST_SKIP() << "the host backend has no commands";
  const OwnStream stream = make_stream(context());
  const OwnGraph graph = capture(stream, [&] {
    for (int i = 0; i < 3; ++i) EXPECT_OK(relu_on(stream));
  });
  const Json trace = traced([&] {
    EXPECT_OK(gemm(128));
    EXPECT_OK(tuff_graph_launch(stream, graph));
  });
  if (trace.at("otherData").at("clocks") != "calibrated by the driver") {
    GTEST_SKIP() << "the device's clock may be behind: then arrows that would go back in time are left out";
  }
  size_t commands = 0, arrows = 0;
  for (const char* kind : {"kernel", "copy", "fill"}) commands += events(trace, kind).size();
  for (const Json& event : trace.at("traceEvents")) arrows += event.at("ph") == "s";
  EXPECT_GE(commands, 4u);
  EXPECT_EQ(arrows, commands);
  EXPECT_EQ(trace.at("metadata"), trace.at("otherData")) << "of which Perfetto reads the one";
}

// Commands of graphs have the shapes of the captured calls, though nothing was profiled during the capture.
TEST_P(ProfileTrace, KnowsTheShapesOfGraphs) {
  if (!vulkan()) GTEST_SKIP() << "the host backend has no commands";
  const auto shapes_of = [](const Json& trace) {
    std::vector<std::string> shapes;
    for (const Json& kernel : events(trace, "kernel")) {
      const Json& args = kernel.at("args");
      shapes.push_back(args.value("shape", "none") + (args.contains("share of f32 gemm") ? ", f32" : ""));
    }
    return shapes;
  };
  const auto work = [&] {
    EXPECT_OK(relu());
    EXPECT_OK(gemm(128));
    EXPECT_OK(relu());
  };
  const OwnGraph graph = capture(context(), work);
  const std::vector<std::string> called = shapes_of(traced(work));
  ASSERT_GE(called.size(), 3u);
  EXPECT_NE(called.front().find("relu"), std::string::npos) << called.front();
  EXPECT_EQ(shapes_of(traced([&] { EXPECT_OK(tuff_graph_launch(context(), graph)); })), called);
}

// A command begins after its call recorded it, and ends before a call that waits for it returns.
TEST_P(ProfileTrace, PutsBothTracksOnOneClock) {
  if (!vulkan()) GTEST_SKIP() << "the host backend has one track";
  ASSERT_OK(relu());
  const Json trace = traced([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_OK(relu());
      EXPECT_OK(tuff_synchronize(context()));
    }
  });
  const double slack = trace.at("otherData").at("clock uncertainty in us").get<double>() + 1;
  std::vector<Json> calls = events(trace, "call");
  std::erase_if(calls, [](const Json& call) { return call.at("name") == "alloc"; });
  const std::vector<Json> kernels = events(trace, "kernel");
  ASSERT_EQ(kernels.size(), 20u);
  ASSERT_EQ(calls.size(), 40u);
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_GE(kernels[i].at("ts").get<double>() + slack, calls[2 * i].at("ts").get<double>());
    EXPECT_LE(end_of(kernels[i]), end_of(calls[2 * i + 1]) + slack);
    EXPECT_EQ(kernels[i].at("args").at("call"), calls[2 * i].at("args").at("call"));
  }
}
TUFF_ON_BACKENDS(ProfileTrace);

// Two calls, one of them with a step, and their commands.
constexpr const char* kLegal = R"({"displayTimeUnit": "ns", "traceEvents": [
  {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Host: calls"}},
  {"ph": "M", "name": "process_sort_index", "pid": 1, "tid": 0, "args": {"sort_index": 1}},
  {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "thread 1"}},
  {"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": 1, "args": {"sort_index": 1}},
  {"ph": "M", "name": "process_name", "pid": 2, "tid": 0, "args": {"name": "Device: a device"}},
  {"ph": "M", "name": "process_sort_index", "pid": 2, "tid": 0, "args": {"sort_index": 2}},
  {"ph": "M", "name": "thread_name", "pid": 2, "tid": 9, "args": {"name": "a stream"}},
  {"ph": "M", "name": "thread_sort_index", "pid": 2, "tid": 9, "args": {"sort_index": 9}},
  {"ph": "X", "cat": "call", "name": "relu", "pid": 1, "tid": 1, "ts": 1.000, "dur": 4.000, "args": {"call": 1}},
  {"ph": "X", "cat": "step", "name": "submit", "pid": 1, "tid": 1, "ts": 2.000, "dur": 3.000, "args": {"call": 1}},
  {"ph": "X", "cat": "call", "name": "gelu", "pid": 1, "tid": 1, "ts": 5.000, "dur": 4.000, "args": {"call": 2}},
  {"ph": "X", "cat": "kernel", "name": "relu", "pid": 2, "tid": 9, "ts": 3.000, "dur": 4.001, "args": {"call": 1}},
  {"ph": "X", "cat": "kernel", "name": "gelu", "pid": 2, "tid": 9, "ts": 7.001, "dur": 2.500, "args": {"call": 2}},
  {"ph": "s", "cat": "recorded", "name": "recorded", "id": 1, "pid": 1, "tid": 1, "ts": 1.000},
  {"ph": "f", "bp": "e", "cat": "recorded", "name": "recorded", "id": 1, "pid": 2, "tid": 9, "ts": 3.000}
], "otherData": {}})";
enum Event { kProcess, kProcessPlace, kThread, kThreadPlace, kSecondPlace = 5, kStream = 6 };
enum { kCall = 8, kStep, kSecondCall, kCommand, kSecondCommand, kFrom, kTo };

TEST(ProfileTraceRules, FindWhatIsWrong) {
  EXPECT_EQ(trace_problems(kLegal), Names{});
  struct Case {
    const char* found;
    std::function<void(Json& events)> spoil;
  };
  const Case cases[] = {
      {"no kind", [](Json& events) { events[kCall]["ph"] = "B"; }},
      {"members", [](Json& events) { events[kCall].erase("dur"); }},
      {"members", [](Json& events) { events[kCall]["duration"] = 1; }},
      {"empty text", [](Json& events) { events[kCall]["name"] = ""; }},
      {"not a number", [](Json& events) { events[kCall]["tid"] = "1"; }},
      {"not a number", [](Json& events) { events[kFrom]["id"] = -1; }},
      {"before zero", [](Json& events) { events[kCall]["ts"] = -0.001; }},
      {"before zero", [](Json& events) { events[kCommand]["dur"] = -1; }},
      {"whole nanosecond", [](Json& events) { events[kSecondCommand]["dur"] = 2.0004; }},
      {"must be number", [](Json& events) { events[kCall]["ts"] = "1"; }},
      {"args are", [](Json& events) { events[kCall]["args"] = 3; }},
      {"no known name", [](Json& events) { events[kThread]["name"] = "thread_label"; }},
      {"no name, or", [](Json& events) { events[kThread]["args"]["name"] = ""; }},
      {"no name, or", [](Json& events) { events[kThreadPlace]["args"]["sort_index"] = "first"; }},
      {"more than", [](Json& events) { events[kThread]["args"]["more"] = 1; }},
      {"said twice", [](Json& events) { events.push_back(events[kThread]); }},
      {"one place", [](Json& events) { events[kSecondPlace]["args"]["sort_index"] = 1; }},
      {"a row has no name", [](Json& events) { events.erase(kThread); }},
      {"a row has no sort_index", [](Json& events) { events.erase(kThreadPlace); }},
      {"a process has no name", [](Json& events) { events.erase(kProcess); }},
      {"a process has no sort_index", [](Json& events) { events.erase(kProcessPlace); }},
      {"without spans", [](Json& events) { events.erase(events.begin() + kCommand, events.end()); }},
      {"main thread",
       [](Json& events) {
         for (Json& event : events) {
           if (event["tid"] == 9) event["tid"] = 2;
         }
       }},
      {"written before", [](Json& events) { std::swap(events[kStep], events[kSecondCall]); }},
      {"goes on beyond", [](Json& events) { events[kStep]["dur"] = 3.001; }},
      {"overlap", [](Json& events) { events[kCommand]["dur"] = 4.002; }},
      {"one other", [](Json& events) { events.erase(kTo); }},
      {"one other", [](Json& events) { std::swap(events[kFrom], events[kTo]); }},
      {"that begins there", [](Json& events) { events[kTo]["bp"] = "s"; }},
      {"two kinds", [](Json& events) { events[kTo]["cat"] = "submitted"; }},
      {"back in time", [](Json& events) { events[kFrom]["ts"] = 3.5; }},
      {"from no beginning", [](Json& events) { events[kFrom]["ts"] = 1.5; }},
      {"from no beginning", [](Json& events) { events[kFrom]["ts"] = 2.0; }},  // of a step
      {"no beginning", [](Json& events) { events[kTo]["ts"] = 4; }},
      {"no beginning", [](Json& events) { events[kTo]["ts"] = 7.001; }},  // of another call
  };
  for (const Case& wrong : cases) {
    Json trace = Json::parse(kLegal);
    wrong.spoil(trace["traceEvents"]);
    const Names problems = trace_problems(trace.dump());
    ASSERT_FALSE(problems.empty()) << wrong.found;
    EXPECT_NE(problems.front().find(wrong.found), std::string::npos) << problems.front() << ", not " << wrong.found;
  }
  std::string twice = kLegal;
  twice.insert(twice.find("\"ts\""), "\"ts\": 1, ");
  EXPECT_EQ(trace_problems(twice).front(), "a member twice: \"ts\"");
}

}  // namespace
}  // namespace tuff_test::profile_trace_test
