#include "support/profile.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <utility>

namespace tuff_test {
namespace {

using Row = std::pair<uint64_t, uint64_t>;  // pid, tid

// In nanoseconds; the format has microseconds.
struct Span {
  int64_t begin, end;
  const Json* event;
};

const char* heading(Rows rows) { return rows == Rows::host ? "Host: " : "Device: "; }

class Checker {
 public:
  explicit Checker(const std::string& text) {
    try {
      trace_ = parse(text);
      require(trace_.at("displayTimeUnit") == "ns", "displays something else than ns", trace_.at("displayTimeUnit"));
      require(trace_.at("otherData").is_object(), "otherData is no object", trace_.at("otherData"));
      for (const Json& event : trace_.at("traceEvents")) check(event);
      for (const auto& [row, spans] : spans_) check_row(row, spans);
      for (const auto& [row, names] : rows_) {
        require(spans_.count(row) != 0, "a row without spans", names);
      }
      for (const auto& [id, arrow] : arrows_) check_arrow(arrow);
    } catch (const Json::exception& error) {
      problems.emplace_back(error.what());
    }
  }

  std::vector<std::string> problems;

 private:
  void require(bool fine, const std::string& what, const Json& where) {
    if (!fine) problems.push_back(what + ": " + where.dump());
  }

  Json parse(const std::string& text) {
    std::vector<std::set<std::string>> open;
    return Json::parse(text, [&](int, Json::parse_event_t event, const Json& parsed) {
      if (event == Json::parse_event_t::object_start) open.emplace_back();
      if (event == Json::parse_event_t::object_end) open.pop_back();
      if (event == Json::parse_event_t::key) {
        require(open.back().insert(parsed.get<std::string>()).second, "a member twice", parsed);
      }
      return true;
    });
  }

  uint64_t number(const Json& event, const char* member) {
    require(event.at(member).is_number_unsigned(), std::string(member) + " is not a number of a row or an arrow",
            event);
    return event.at(member).get<uint64_t>();
  }

  int64_t time(const Json& event, const char* member) {
    const double nanoseconds = event.at(member).get<double>() * 1e3;
    require(nanoseconds >= 0, std::string(member) + " is before zero", event);
    require(std::abs(nanoseconds - std::round(nanoseconds)) < 1e-2, std::string(member) + " is not a whole nanosecond",
            event);
    return std::llround(nanoseconds);
  }

  void check(const Json& event) {
    static const std::map<std::string, std::set<std::string>> kinds = {
        {"M", {"ph", "name", "pid", "tid", "args"}},
        {"X", {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"}},
        {"s", {"ph", "cat", "name", "id", "pid", "tid", "ts"}},
        {"f", {"ph", "bp", "cat", "name", "id", "pid", "tid", "ts"}}};
    const std::string phase = event.at("ph");
    const auto kind = kinds.find(phase);
    if (kind == kinds.end()) return require(false, "an event of no kind that is used here", event);
    std::set<std::string> members;
    for (const auto& member : event.items()) members.insert(member.key());
    require(members == kind->second, "members that its kind has not, or lacks", event);
    for (const char* text : {"name", "cat"}) {
      require(!event.contains(text) || !event.at(text).get<std::string>().empty(), "an empty text", event);
    }
    const Row row{number(event, "pid"), number(event, "tid")};
    if (phase == "M") return check_metadata(row, event);
    if (phase == "X") {
      const int64_t begin = time(event, "ts");
      require(event.at("args").is_object(), "args are no object", event);
      spans_[row].push_back({begin, begin + time(event, "dur"), &event});
    } else {
      require(phase == "s" || event.at("bp") == "e", "an arrow to the span after the one that begins there", event);
      arrows_[number(event, "id")].emplace_back(row, Span{time(event, "ts"), 0, &event});
    }
  }

  void check_metadata(const Row& row, const Json& event) {
    const std::string name = event.at("name");
    const bool process = name.rfind("process_", 0) == 0, is_name = name == "process_name" || name == "thread_name";
    require(is_name || name == "process_sort_index" || name == "thread_sort_index", "metadata of no known name", event);
    const char* member = is_name ? "name" : "sort_index";
    const Json& value = event.at("args").at(member);
    require(event.at("args").size() == 1, "more than the name or the place", event);
    require(is_name ? value.is_string() && !value.get<std::string>().empty() : value.is_number_integer(),
            "no name, or no place", event);
    auto& known = process ? processes_[row.first] : rows_[row];
    require(known.emplace(name, value).second, "said twice of one row or process", event);
    if (!is_name) {
      auto& places = process ? process_places_ : places_[row.first];
      require(places.insert(value.get<int64_t>()).second, "two at one place", event);
    }
  }

  void check_row(const Row& row, const std::vector<Span>& spans) {
    const Json& first = *spans.front().event;
    for (const char* name : {"name", "sort_index"}) {
      require(rows_[row].count(std::string("thread_") + name) != 0, std::string("a row has no ") + name, first);
      require(processes_[row.first].count(std::string("process_") + name) != 0, std::string("a process has no ") + name,
              first);
    }
    const bool device = processes_[row.first]["process_name"].get<std::string>().rfind(heading(Rows::device), 0) == 0;
    require(!device || row.first != row.second, "a stream that viewers take for its process's main thread", first);
    std::vector<Span> open;
    int64_t last = 0;
    for (const Span& span : spans) {
      require(span.begin >= last, "before the span that is written before it", *span.event);
      last = span.begin;
      while (!open.empty() && open.back().end <= span.begin) open.pop_back();
      if (!open.empty()) {
        require(!device, "commands overlap on one queue", *span.event);
        require(span.end <= open.back().end, "goes on beyond the span that it begins in", *span.event);
      }
      open.push_back(span);
    }
  }

  void check_arrow(const std::vector<std::pair<Row, Span>>& ends) {
    const Json& first = *ends.front().second.event;
    if (ends.size() != 2 || first.at("ph") != "s" || ends[1].second.event->at("ph") != "f") {
      return require(false, "an arrow that does not go from one place to one other", first);
    }
    const Json& last = *ends[1].second.event;
    const int64_t from = ends[0].second.begin, to = ends[1].second.begin;
    require(first.at("cat") == last.at("cat") && first.at("name") == last.at("name"), "an arrow of two kinds", first);
    require(from <= to, "an arrow goes back in time", first);
    std::set<Json> calls;
    for (const Span& span : spans_[ends[0].first]) {
      if (span.begin == from && span.event->at("cat") == "call") calls.insert(span.event->at("args").at("call"));
    }
    require(!calls.empty(), "an arrow from no beginning of a call", first);
    const std::vector<Span>& commands = spans_[ends[1].first];
    require(std::any_of(commands.begin(), commands.end(),
                        [&](const Span& span) {
                          return span.begin == to && calls.count(span.event->at("args").at("call")) != 0;
                        }),
            "an arrow to no beginning of a command of its call", last);
  }

  Json trace_;
  std::map<Row, std::vector<Span>> spans_;
  std::map<Row, std::map<std::string, Json>> rows_;
  std::map<uint64_t, std::map<std::string, Json>> processes_;
  std::map<uint64_t, std::set<int64_t>> places_;
  std::set<int64_t> process_places_;
  std::map<uint64_t, std::vector<std::pair<Row, Span>>> arrows_;
};

}  // namespace

std::vector<std::string> trace_problems(const std::string& text) { return Checker(text).problems; }

Json read_trace(const std::string& text) {
  const std::vector<std::string> problems = trace_problems(text);
  EXPECT_TRUE(problems.empty()) << problems.size() << " problems, of which the first is\n  " << problems.front();
  return Json::parse(text);
}

Json trace_of(tuff_context context) {
  const TraceFile file;
  EXPECT_OK(tuff_profile_write(context, file.path().c_str()));
  return file.read();
}

std::vector<Json> events(const Json& trace, const std::string& category) {
  std::vector<Json> found;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("cat") == category) found.push_back(event);
  }
  return found;
}

double end_of(const Json& event) { return event.at("ts").get<double>() + event.at("dur").get<double>(); }

std::vector<std::string> row_names(const Json& trace, Rows rows) {
  std::map<uint64_t, std::map<uint64_t, std::string>> names;  // by process and row
  std::map<uint64_t, std::map<int64_t, uint64_t>> places;
  uint64_t process = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "M") continue;
    const uint64_t pid = event.at("pid"), tid = event.at("tid");
    const Json& args = event.at("args");
    const std::string what = event.at("name");
    if (what == "process_name" && args.at("name").get<std::string>().rfind(heading(rows), 0) == 0) process = pid;
    if (what == "thread_name") names[pid][tid] = args.at("name");
    if (what == "thread_sort_index") places[pid][args.at("sort_index")] = tid;
  }
  std::vector<std::string> found;
  for (const auto& [place, row] : places[process]) found.push_back(names[process][row]);
  return found;
}

TraceFile::TraceFile() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->test_suite_name()) + "_" + test->name() + std::to_string(std::random_device{}());
  std::replace(name.begin(), name.end(), '/', '_');
  path_ = (std::filesystem::temp_directory_path() / (name + ".json")).string();
}

TraceFile::~TraceFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

Json TraceFile::read() const {
  std::ifstream file(path_);
  return read_trace({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
}

}  // namespace tuff_test
