// The basis of every test: the backends under test, one context for each that lives as long as the process, status
// assertions, and tables of cases that run on all backends.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuff/tuff.h"

namespace tuff_test {

// "vulkan" and "host", or those in the environment variable TUFF_TEST_BACKENDS (separated by commas).
const std::vector<std::string>& backends();

// TUFF_TEST_REDUCED=1: tables skip cases whose work() is above kReducedWork. For runs under the validation layers and
// sanitizers, which are many times slower.
bool reduced();
inline constexpr double kReducedWork = 3e6;

// Larger cases test limits of descriptors and dispatches, which the host backend does not have. It runs cases up to
// this much work.
inline constexpr double kHostWork = 2e7;

// TUFF_VALIDATION=1: contexts load the validation layer, and any message from it fails the run.
bool validating();

// The context of a backend, created on first use. Throws (and so fails the test) if there is none.
tuff_context shared_context(const std::string& backend);

// The number of GPUs that this process sees, without CPU devices. GPUs come first among the devices.
uint32_t gpu_count();
// Whether the first two devices can be tested together: two GPUs, or the two devices that DevicesTwo's process is
// given.
inline constexpr const char* kTwoDevices = "TUFF_TEST_TWO_DEVICES";
bool two_devices();

// Destroys the shared contexts. Each message of the validation layer fails the run.
void destroy_shared_contexts();

std::string last_error();

// Whether the arguments of this function of the header determine its results. Vectors have either sign, and those of
// equal or vanishing values any base: the tests of linear algebra judge them by residuals. What follows a space in the
// name is ignored.
bool has_one_result(std::string_view function);

tuff_stats stats_of(tuff_context context);
tuff_memory_stats memory_of(tuff_context context);
tuff_usage usage_of(tuff_context context);
tuff_device_properties properties_of(tuff_context context);

// A descriptor of operands in f32, without options.
template <typename Desc>
Desc described() {
  Desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  return desc;
}

// Limits its memory, 0: not. Its other limits become what they are by default.
void set_limit(tuff_context context, uint64_t bytes);

// A private context for one test.
class OwnContext {
 public:
  explicit OwnContext(const std::string& backend);
  // "vulkan", "host", or "first" and "second" for the first two Vulkan devices.
  static std::string device_of(const std::string& backend);
  ~OwnContext();
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
  operator tuff_context() const { return handle_; }  // NOLINT(google-explicit-constructor)
  void destroy();                                    // now instead of at the end of the scope
  tuff_context release();                            // the caller destroys it

 private:
  tuff_context handle_ = 0;
};

// A buffer that is freed at the end of the scope.
class OwnBuffer {
 public:
  OwnBuffer() = default;
  OwnBuffer(tuff_context context, uint64_t bytes);
  explicit OwnBuffer(tuff_buffer handle) : handle_(handle) {}
  ~OwnBuffer();
  OwnBuffer(OwnBuffer&& other) noexcept : handle_(other.release()) {}
  OwnBuffer& operator=(OwnBuffer&& other) noexcept;
  operator tuff_buffer() const { return handle_; }  // NOLINT(google-explicit-constructor)
  tuff_buffer release();
  void free();

 private:
  tuff_buffer handle_ = 0;
};

testing::AssertionResult is_ok(const char* expression, tuff_status status);

// Succeeds if the call failed with this status and its message is "<function>: …" with `word` in it as a separate
// word.
testing::AssertionResult fails(tuff_status status, tuff_status expected, const char* function, const char* word);

#define EXPECT_OK(call) EXPECT_PRED_FORMAT1(tuff_test::is_ok, call)
#define ASSERT_OK(call) ASSERT_PRED_FORMAT1(tuff_test::is_ok, call)
#define EXPECT_FAILS(call, status, function, word) EXPECT_TRUE(tuff_test::fails(call, status, function, word)) << #call

template <typename T>
OwnBuffer uploaded(tuff_context context, const std::vector<T>& values) {
  OwnBuffer buffer(context, values.size() * sizeof(T));
  EXPECT_OK(tuff_copy_htod(context, buffer, 0, values.data(), values.size() * sizeof(T)));
  return buffer;
}
template <typename T>
std::vector<T> downloaded(tuff_context context, tuff_buffer buffer, size_t count) {
  std::vector<T> values(count);
  EXPECT_OK(tuff_copy_dtoh(context, values.data(), buffer, 0, count * sizeof(T)));
  return values;
}

// A test that runs on every backend: class Name : public OnBackend {}; TEST_P(Name, …) {…};
// TUFF_ON_BACKENDS(Name);
class OnBackend : public testing::TestWithParam<std::string> {
 protected:
  tuff_context context() { return shared_context(GetParam()); }
  bool vulkan() const { return GetParam() == "vulkan"; }
};

std::string backend_name(const testing::TestParamInfo<std::string>& info);

#define TUFF_ON_BACKENDS(suite) \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(tuff_test::backends()), tuff_test::backend_name)

// A row of a table on one backend. Rows of all tables have this type, so that GoogleTest's templates are compiled once
// and not for each type of case.
struct Row {
  std::string backend, name;
  double work;
  std::shared_ptr<const void> of;  // the case, which shares the table's memory
};
void PrintTo(const Row& row, std::ostream* out);
std::string row_name(const testing::TestParamInfo<Row>& info);

// Each row on each backend that runs so much work.
std::vector<Row> on_backends(const std::vector<Row>& rows);

class OnRow : public testing::TestWithParam<Row> {
 protected:
  tuff_context context() { return shared_context(GetParam().backend); }
};

// A table of cases that runs on every backend. A Case has name() (letters, digits and _, unique in its table) and
// work() (operations or bytes, roughly).
template <typename Case>
class Table : public OnRow {
 protected:
  const Case& row() const { return *static_cast<const Case*>(GetParam().of.get()); }
};

template <typename Case>
std::vector<Row> selected(std::vector<Case> cases) {
  const auto table = std::make_shared<const std::vector<Case>>(std::move(cases));
  std::vector<Row> rows;
  for (const Case& row : *table) rows.push_back({"", row.name(), row.work(), {table, &row}});
  return on_backends(rows);
}

// Removes cases with large operands: they test addressing and workgroup counts, which the exact tier covers already.
template <typename Case>
std::vector<Case> without_large_operands(std::vector<Case> cases) {
  std::erase_if(cases, [](const Case& row) { return row.largest_operand() > 2'000'000; });
  return cases;
}

#define TUFF_TABLE(suite, Case, cases)                                                                           \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(tuff_test::selected<Case>(cases)), tuff_test::row_name); \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite)

}  // namespace tuff_test
