#include "support/harness.hpp"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tuff_test {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

std::map<std::string, tuff_context>& shared_contexts() {
  static std::map<std::string, tuff_context> contexts;
  return contexts;
}

tuff_context create(const std::string& backend) {
  tuff_context_desc desc{};
  desc.struct_size = sizeof desc;
  const std::string device = OwnContext::device_of(backend);
  desc.backend = device.empty() ? backend.c_str() : "vulkan";
  if (!device.empty()) desc.device = device.c_str();
  tuff_context context = 0;
  const tuff_status status = tuff_context_create(&desc, &context);
  if (status != TUFF_OK) {
    throw std::runtime_error("no context for backend " + backend + ": " + tuff_status_name(status) + ": " +
                             last_error());
  }
  return context;
}

void destroy(tuff_context context) {
  const tuff_stats stats = stats_of(context);
  EXPECT_EQ(stats.validation_messages, 0u) << "the validation layer has complained; see the log above";
  EXPECT_OK(tuff_context_destroy(context));
}

bool contains_word(std::string_view text, std::string_view word) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

}  // namespace

const std::vector<std::string>& backends() {
  static const std::vector<std::string> names = [] {
    const char* wanted = std::getenv("TUFF_TEST_BACKENDS");
    std::istringstream list(wanted != nullptr && *wanted != '\0' ? wanted : "vulkan,host");
    std::vector<std::string> result;
    for (std::string name; std::getline(list, name, ',');) result.push_back(name);
    return result;
  }();
  return names;
}

bool reduced() { return is_set("TUFF_TEST_REDUCED"); }
bool validating() { return is_set("TUFF_VALIDATION"); }

std::vector<Row> on_backends(const std::vector<Row>& rows) {
  std::vector<Row> placed;
  for (const std::string& backend : backends()) {
    const double most = reduced() ? kReducedWork : backend == "host" ? kHostWork : INFINITY;
    for (const Row& row : rows) {
      if (row.work <= most) placed.push_back({backend, row.name, row.work, row.of});
    }
  }
  return placed;
}

void PrintTo(const Row& row, std::ostream* out) { *out << "(\"" << row.backend << "\", " << row.name << ")"; }
std::string row_name(const testing::TestParamInfo<Row>& info) { return info.param.backend + "_" + info.param.name; }
std::string backend_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

tuff_context shared_context(const std::string& backend) {
  auto& contexts = shared_contexts();
  const auto found = contexts.find(backend);
  if (found != contexts.end()) return found->second;
  return contexts[backend] = create(backend);
}

uint32_t gpu_count() {
  uint32_t count = 0, gpus = 0;
  EXPECT_OK(tuff_device_count(&count));
  for (uint32_t i = 0; i < count; ++i) {
    tuff_device_properties device{};
    device.struct_size = sizeof device;
    EXPECT_OK(tuff_device_info(i, &device));
    if (device.type != TUFF_DEVICE_CPU) ++gpus;
  }
  return gpus;
}

bool two_devices() { return is_set(kTwoDevices) || gpu_count() >= 2; }

void destroy_shared_contexts() {
  for (const auto& [backend, context] : shared_contexts()) {
    SCOPED_TRACE(backend);
    destroy(context);
  }
  shared_contexts().clear();
}

bool has_one_result(std::string_view function) {
  function = function.substr(0, function.find(' '));
  return function != "tuff_qr" && function != "tuff_eigh" && function != "tuff_eig" && function != "tuff_svd";
}

std::string last_error() {
  uint64_t length = 0;
  if (tuff_last_error(nullptr, 0, &length) != TUFF_OK) return "(tuff_last_error failed)";
  std::string message(length + 1, '\0');
  if (tuff_last_error(message.data(), message.size(), nullptr) != TUFF_OK) return "(tuff_last_error failed)";
  message.resize(length);
  return message;
}

tuff_stats stats_of(tuff_context context) {
  tuff_stats stats{};
  stats.struct_size = sizeof stats;
  EXPECT_OK(tuff_context_stats(context, &stats));
  return stats;
}

tuff_memory_stats memory_of(tuff_context context) {
  tuff_memory_stats stats{};
  stats.struct_size = sizeof stats;
  EXPECT_OK(tuff_context_memory(context, &stats));
  return stats;
}

tuff_usage usage_of(tuff_context context) {
  tuff_usage usage{};
  usage.struct_size = sizeof usage;
  EXPECT_OK(tuff_context_usage(context, &usage));
  return usage;
}

tuff_device_properties properties_of(tuff_context context) {
  tuff_device_properties properties{};
  properties.struct_size = sizeof properties;
  EXPECT_OK(tuff_context_info(context, &properties));
  return properties;
}

void set_limit(tuff_context context, uint64_t bytes) {
  tuff_limits limits{};
  limits.struct_size = sizeof limits;
  limits.memory_bytes = bytes;
  ASSERT_OK(tuff_context_set_limits(context, &limits));
}

OwnContext::OwnContext(const std::string& backend) : handle_(create(backend)) {}

std::string OwnContext::device_of(const std::string& backend) {
  return backend == "first" ? "0" : backend == "second" ? "1" : "";
}

OwnContext::~OwnContext() {
  if (handle_ != 0) tuff_test::destroy(handle_);
}

tuff_context OwnContext::release() { return std::exchange(handle_, 0); }

void OwnContext::destroy() { tuff_test::destroy(std::exchange(handle_, 0)); }

OwnBuffer::OwnBuffer(tuff_context context, uint64_t bytes) { EXPECT_OK(tuff_alloc(context, bytes, &handle_)); }

OwnBuffer::~OwnBuffer() { free(); }

OwnBuffer& OwnBuffer::operator=(OwnBuffer&& other) noexcept {
  if (this != &other) {
    free();
    handle_ = other.release();
  }
  return *this;
}

tuff_buffer OwnBuffer::release() { return std::exchange(handle_, 0); }

void OwnBuffer::free() {
  if (handle_ == 0) return;
  EXPECT_OK(tuff_free(release()));
}

testing::AssertionResult is_ok(const char* expression, tuff_status status) {
  if (status == TUFF_OK) return testing::AssertionSuccess();
  if (status == TUFF_ERROR_TIMEOUT) {
    // With a hanging device every later test would wait a minute as well, so end the process here, as a failure.
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    std::fprintf(stderr, "[  FAILED  ] %s.%s: %s\n", test == nullptr ? "" : test->test_suite_name(),
                 test == nullptr ? "" : test->name(), last_error().c_str());
    std::_Exit(1);
  }
  return testing::AssertionFailure() << expression << " gave " << tuff_status_name(status) << ": " << last_error();
}

testing::AssertionResult fails(tuff_status status, tuff_status expected, const char* function, const char* word) {
  const std::string message = status == TUFF_OK ? "" : last_error();
  if (status != expected) {
    return testing::AssertionFailure() << "gave " << tuff_status_name(status) << " (" << message << "), expected "
                                       << tuff_status_name(expected) << "; ";
  }
  const std::string prefix = std::string(function) + ": ";
  if (message.compare(0, prefix.size(), prefix) != 0) {
    return testing::AssertionFailure() << "message does not begin with \"" << prefix << "\": " << message << "; ";
  }
  if (!contains_word(std::string_view(message).substr(prefix.size()), word)) {
    return testing::AssertionFailure() << "message does not name " << word << ": " << message << "; ";
  }
  return testing::AssertionSuccess();
}

}  // namespace tuff_test
