// Profiles: what they contain, and that profiling changes nothing else.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "support/kernel.hpp"
#include "support/profile.hpp"
#include "support/tensor.hpp"

namespace tuff_test::profile_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr int32_t F = TUFF_F32;

std::string table_of(tuff_context context) {
  uint64_t length = 0;
  EXPECT_OK(tuff_profile_table(context, nullptr, 0, &length));
  std::string text(length + 4096, 'x');
  EXPECT_OK(tuff_profile_table(context, text.data(), text.size(), &length));
  EXPECT_LT(length, text.size());
  text.resize(std::min<uint64_t>(length, text.size()));
  return text;
}

template <typename T>
T sized() {
  T structure{};
  structure.struct_size = sizeof structure;
  return structure;
}

class Profile : public OnProfiles {};

TEST_P(Profile, BeginsAndEndsOnce) {
  OwnContext own(GetParam());
  const TraceFile file;
  EXPECT_FAILS(tuff_profile_end(own), kArgument, "tuff_profile_end", "context");
  EXPECT_FAILS(tuff_profile_write(own, file.path().c_str()), kArgument, "tuff_profile_write", "context");
  EXPECT_FALSE(std::filesystem::exists(file.path()));
  uint64_t length = 77;
  EXPECT_FAILS(tuff_profile_table(own, nullptr, 0, &length), kArgument, "tuff_profile_table", "context");
  EXPECT_EQ(length, 77u);
  ASSERT_OK(tuff_profile_begin(own));
  EXPECT_FAILS(tuff_profile_begin(own), kArgument, "tuff_profile_begin", "context");
  EXPECT_OK(tuff_profile_end(own));
  EXPECT_FAILS(tuff_profile_end(own), kArgument, "tuff_profile_end", "context");
  EXPECT_OK(tuff_profile_begin(own));
  EXPECT_OK(tuff_profile_end(own));
  EXPECT_OK(tuff_profile_write(own, file.path().c_str()));
  EXPECT_TRUE(events(file.read(), "kernel").empty());
}

// Calls that are not timed pass through the same wrapper.
TEST_P(Profile, EveryCallOfTheContextWorksMeanwhile) {
  const OwnContext own(GetParam());
  ASSERT_OK(tuff_profile_begin(own));
  auto info = sized<tuff_device_properties>();
  EXPECT_OK(tuff_context_info(own, &info));
  EXPECT_NE(info.name[0], '\0');
  const auto supports = [&](const char* feature) {
    int32_t yes = 0;
    EXPECT_OK(tuff_supports(own, feature, &yes));
    return yes == 1;
  };
  auto limits = sized<tuff_limits>();
  EXPECT_OK(tuff_context_set_limits(own, &limits));
  EXPECT_FAILS(tuff_context_set_tuning(own, "no table"), GetParam() != "vulkan" ? TUFF_ERROR_UNSUPPORTED : kArgument,
               "tuff_context_set_tuning", "");
  auto memory = sized<tuff_memory_stats>();
  EXPECT_OK(tuff_context_memory(own, &memory));
  EXPECT_OK(tuff_context_trim(own));
  EXPECT_OK(tuff_context_reset_peak(own));
  const Tensor x(own, 64), y(own, 64);
  auto gemm = sized<tuff_batched_gemm_desc>();
  gemm.dtype = F, gemm.m = gemm.n = gemm.k = 4, gemm.alpha = 1, gemm.batch_count = 1;
  gemm.a = gemm.b = x, gemm.c = y;
  char text[2000] = "";
  EXPECT_EQ(tuff_batched_gemm_variants(own, &gemm, text, sizeof text, nullptr) == TUFF_OK, GetParam() == "vulkan");
  supports("unified_memory");  // either answer is right
  if (supports("import_host")) {
    constexpr uint64_t kPage = 4096;
    void* const page = std::aligned_alloc(kPage, kPage);
    tuff_buffer imported = 0;
    EXPECT_OK(tuff_buffer_import_host(own, page, kPage, &imported));
    EXPECT_OK(tuff_free(imported));
    EXPECT_OK(tuff_synchronize(own));
    std::free(page);
  }
  if (supports("memory_fd")) {
    auto desc = sized<tuff_alloc_desc>();
    desc.bytes = 4096, desc.flags = TUFF_ALLOC_EXPORTABLE;
    tuff_buffer exported = 0, imported = 0;
    EXPECT_OK(tuff_alloc_ex(own, &desc, &exported));
    auto shared = sized<tuff_memory_fd>();
    EXPECT_OK(tuff_buffer_export_fd(exported, &shared));
    EXPECT_OK(tuff_buffer_import_fd(own, &shared, &imported));
    EXPECT_EQ(close(shared.fd), 0);
    EXPECT_OK(tuff_free(imported));
    EXPECT_OK(tuff_free(exported));
  }
  EXPECT_OK(tuff_profile_end(own));
}

TEST_P(Profile, RefusesBadArguments) {
  ASSERT_OK(tuff_profile_begin(context()));
  ASSERT_OK(relu());
  ASSERT_OK(tuff_profile_end(context()));
  EXPECT_FAILS(tuff_profile_write(context(), nullptr), kArgument, "tuff_profile_write", "path");
  const std::string folder = std::filesystem::temp_directory_path().string();
  for (const std::string& path : {folder + "/no such folder/trace.json", folder, std::string()}) {
    EXPECT_FAILS(tuff_profile_write(context(), path.c_str()), TUFF_ERROR_IO, "tuff_profile_write", "path") << path;
  }
  uint64_t length = 0;
  EXPECT_FAILS(tuff_profile_table(context(), nullptr, 8, &length), kArgument, "tuff_profile_table", "text");
  for (const uint64_t handle : {uint64_t{0}, uint64_t{x_}, context() + 12'345}) {
    const tuff_status kHandle = TUFF_ERROR_INVALID_HANDLE;
    EXPECT_FAILS(tuff_profile_begin(handle), kHandle, "tuff_profile_begin", "context");
    EXPECT_FAILS(tuff_profile_end(handle), kHandle, "tuff_profile_end", "context");
    EXPECT_FAILS(tuff_profile_write(handle, "x.json"), kHandle, "tuff_profile_write", "context");
    EXPECT_FAILS(tuff_profile_table(handle, nullptr, 0, nullptr), kHandle, "tuff_profile_table", "context");
  }
}

// Like tuff_last_error: returns as much as fits, NUL-terminated, and the full length.
TEST_P(Profile, CutsTheTable) {
  ASSERT_OK(tuff_profile_begin(context()));
  ASSERT_OK(relu());
  ASSERT_OK(tuff_profile_end(context()));
  const std::string whole = table_of(context());
  uint64_t length = 0;
  char text[24];
  std::memset(text, '#', sizeof text);
  EXPECT_OK(tuff_profile_table(context(), text, 16, &length));
  EXPECT_EQ(length, whole.size());
  EXPECT_EQ(std::string(text), whole.substr(0, 15));
  EXPECT_EQ(text[16], '#');
  EXPECT_OK(tuff_profile_table(context(), text, 1, nullptr));
  EXPECT_EQ(text[0], '\0');
}

TEST_P(Profile, HasEveryCallAndEveryKernel) {
  ASSERT_OK(tuff_profile_begin(context()));
  const tuff_stats before = stats_of(context());
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(relu());
    ASSERT_OK(gemm());
  }
  const uint64_t shape[] = {16, 64};
  ASSERT_OK(tuff_softmax(context(), F, x_, y_, shape, 2, 1));
  ASSERT_OK(tuff_reduce(context(), F, TUFF_REDUCE_SUM, x_, y_, shape, 2, 0));
  ASSERT_OK(tuff_synchronize(context()));
  ASSERT_OK(tuff_profile_end(context()));
  const tuff_stats after = stats_of(context());
  ASSERT_OK(relu());  // after the profile
  const Json trace = trace_of(context());

  std::map<std::string, int> calls;
  for (const Json& call : events(trace, "call")) {
    ++calls[call.at("name")];
    EXPECT_FALSE(call.at("args").contains("failed")) << call;
    if (call.at("name") == "gemm") {
      EXPECT_EQ(call.at("args").at("shape"), "nn f32 32x32x32");
    }
    if (call.at("name") == "unary") {
      EXPECT_EQ(call.at("args").at("shape"), "relu f32 n=1000");
    }
  }
  EXPECT_EQ(calls["unary"], 10);
  EXPECT_EQ(calls["gemm"], 10);
  EXPECT_EQ(calls["softmax"], 1);
  EXPECT_EQ(calls["reduce"], 1);
  EXPECT_EQ(calls["synchronize"], 1);
  EXPECT_EQ(trace.at("otherData").at("kernels recorded"), after.dispatches - before.dispatches);
  EXPECT_EQ(trace.at("otherData").at("dropped spans"), 0);

  const std::vector<Json> kernels = events(trace, "kernel");
  if (!vulkan()) {
    EXPECT_TRUE(kernels.empty());
    return;
  }
  EXPECT_EQ(kernels.size(), after.dispatches - before.dispatches);
  EXPECT_EQ(trace.at("otherData").at("submissions"), after.submissions - before.submissions);
  EXPECT_EQ(trace.at("otherData").at("barriers"), after.barriers - before.barriers);
  EXPECT_EQ(trace.at("otherData").at("kernel cache hits"), after.kernel_cache_hits - before.kernel_cache_hits);
  EXPECT_EQ(trace.at("otherData").at("shaders compiled"), after.shaders_compiled - before.shaders_compiled);
  const double slack = trace.at("otherData").at("clock uncertainty in us").get<double>() + 1;
  const double whole = trace.at("otherData").at("seconds").get<double>() * 1e6;
  std::map<std::string, int> operations;
  for (const Json& kernel : kernels) {
    const Json& args = kernel.at("args");
    ++operations[args.at("operation")];
    for (const char* key : {"shape", "kernel", "plan"}) EXPECT_FALSE(args.at(key).get<std::string>().empty()) << kernel;
    EXPECT_GT(args.at("bytes"), 0) << kernel;
    const std::string groups = args.at("groups");
    EXPECT_EQ(std::count(groups.begin(), groups.end(), 'x'), 2) << groups;
    EXPECT_GE(kernel.at("ts").get<double>() + slack, 0) << kernel;
    EXPECT_LE(end_of(kernel), whole + slack) << kernel;
    if (args.at("operation") == "gemm") {
      EXPECT_EQ(args.at("shape"), "nn f32 32x32x32");
    }
    if (kernel.at("dur") > 0) {
      EXPECT_NEAR(args.at("GB/s").get<double>(), args.at("bytes").get<double>() / kernel.at("dur").get<double>() * 1e-3,
                  0.01 * args.at("GB/s").get<double>() + 0.01);
      EXPECT_GT(args.at("share of copy bandwidth"), 0) << kernel;
    }
  }
  EXPECT_EQ(operations["unary"], 10);
  EXPECT_GE(operations["gemm"], 10);
  const bool has_variant = std::any_of(kernels.begin(), kernels.end(), [](const Json& kernel) {
    return kernel.at("args").at("operation") == "gemm" && kernel.at("args").contains("variant");
  });
  EXPECT_TRUE(has_variant);
}

TEST_P(Profile, GoesOnThroughManySubmissions) {
  if (!vulkan()) GTEST_SKIP() << "the host backend submits nothing";
  const int calls = reduced() ? 600 : 1500;
  ASSERT_OK(tuff_profile_begin(context()));
  const tuff_stats before = stats_of(context());
  for (int i = 0; i < calls; ++i) ASSERT_OK(relu(64));  // consecutive calls: many per submission
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(relu(64));
    ASSERT_OK(tuff_synchronize(context()));  // one per submission
  }
  ASSERT_OK(tuff_profile_end(context()));
  EXPECT_GT(stats_of(context()).submissions - before.submissions, 100u);
  const Json trace = trace_of(context());
  const std::vector<Json> kernels = events(trace, "kernel");
  EXPECT_EQ(kernels.size(), static_cast<size_t>(calls + 100));
  uint64_t last = 0;
  for (const Json& kernel : kernels) {
    EXPECT_GE(kernel.at("args").at("submission"), last);
    last = kernel.at("args").at("submission");
  }
}

TEST_P(Profile, KnowsCopiesAndFills) {
  std::vector<float> values(1000, 2.0f);
  ASSERT_OK(tuff_profile_begin(context()));
  ASSERT_OK(tuff_copy_htod(context(), x_, 0, values.data(), 4000));
  ASSERT_OK(tuff_copy_dtod(context(), y_, 0, x_, 0, 4000));
  ASSERT_OK(tuff_fill(context(), x_, 0, 4000, values.data(), 4));
  ASSERT_OK(tuff_copy_dtoh(context(), values.data(), y_, 0, 4000));
  ASSERT_OK(tuff_profile_end(context()));
  const Json trace = trace_of(context());
  std::vector<std::string> names;
  for (const Json& call : events(trace, "call")) {
    names.push_back(call.at("name"));
    EXPECT_EQ(call.at("args").at("shape"), "4000 bytes");
  }
  EXPECT_EQ(names, (std::vector<std::string>{"copy_htod", "copy_dtod", "fill", "copy_dtoh"}));
  if (!vulkan()) return;
  const auto commands = [&](const char* operation) {
    size_t count = 0;
    for (const char* kind : {"kernel", "copy", "fill"}) {
      for (const Json& command : events(trace, kind)) count += command.at("args").at("operation") == operation;
    }
    return count;
  };
  EXPECT_EQ(commands("copy_dtod"), 1u);
  EXPECT_EQ(commands("fill"), 1u);
}

TEST_P(Profile, KnowsCustomKernels) {
  if (!vulkan()) GTEST_SKIP() << "the host backend does not run custom kernels";
  const tuff_kernel_desc desc = glsl(kPlusOne, "plus_one.comp");
  const OwnBuffer from(context(), 64), to(context(), 64);
  const tuff_buffer buffers[] = {from, to};
  ASSERT_OK(tuff_profile_begin(context()));
  {
    const OwnKernel kernel(context(), desc);
    for (int i = 0; i < 3; ++i) EXPECT_OK(tuff_kernel_launch(context(), kernel, buffers, 2, nullptr, 0, 16, 1, 1));
  }
  ASSERT_OK(tuff_profile_end(context()));
  const Json trace = trace_of(context());
  uint64_t calls = 0, commands = 0;
  for (const Json& event : events(trace, "call")) calls += event.at("name") == "kernel_launch";
  for (const Json& event : events(trace, "kernel")) commands += event.at("args").at("kernel") == "plus_one.comp";
  EXPECT_EQ(calls, 3u);
  EXPECT_EQ(commands, 3u);
}

// A profile can begin and end while other threads are calling.
TEST_P(Profile, BeginsAndEndsUnderWay) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    const OwnBuffer x(context(), 4096);
    while (!stop) {
      EXPECT_OK(tuff_unary(context(), F, TUFF_UNARY_NEG, x, x, 1000));
      EXPECT_OK(tuff_synchronize(context()));
    }
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_OK(tuff_profile_begin(context()));
    EXPECT_OK(gemm());
    EXPECT_FALSE(events(trace_of(context()), "call").empty());
    EXPECT_OK(tuff_profile_end(context()));
    EXPECT_NE(table_of(context()).find("gemm"), std::string::npos);
  }
  stop = true;
  other.join();
}

TEST_P(Profile, MayBeReadBeforeItsEnd) {
  ASSERT_OK(tuff_profile_begin(context()));
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_OK(relu());
    const Json trace = trace_of(context());
    std::vector<Json> calls = events(trace, "call");
    std::erase_if(calls, [](const Json& call) { return call.at("name") != "unary"; });
    EXPECT_EQ(calls.size(), i);
    EXPECT_EQ(events(trace, "kernel").size(), vulkan() ? i : 0);
  }
  ASSERT_OK(tuff_profile_end(context()));
}

TEST_P(Profile, ForgetsTheOneBefore) {
  ASSERT_OK(tuff_profile_begin(context()));
  ASSERT_OK(gemm());
  ASSERT_OK(tuff_profile_end(context()));
  EXPECT_NE(table_of(context()).find("\ngemm "), std::string::npos);
  ASSERT_OK(tuff_profile_begin(context()));
  ASSERT_OK(relu());
  ASSERT_OK(tuff_profile_end(context()));
  const std::string table = table_of(context());
  EXPECT_EQ(table.find("\ngemm "), std::string::npos) << table;
  EXPECT_NE(table.find("\nunary "), std::string::npos) << table;
}

TEST_P(Profile, EndsWithItsContext) {
  for (const bool pending : {false, true}) {
    OwnContext own(GetParam());
    OwnBuffer x(own, 4096);
    ASSERT_OK(tuff_profile_begin(own));
    for (int i = 0; i < 300; ++i) ASSERT_OK(tuff_unary(own, F, TUFF_UNARY_NEG, x, x, 1000));
    if (!pending) {
      ASSERT_OK(tuff_synchronize(own));
    }
    own.destroy();
    EXPECT_EQ(tuff_free(x.release()), TUFF_ERROR_INVALID_HANDLE);
  }
  // The log is restored: nothing is computed for a profile that no longer exists.
  EXPECT_OK(relu());
}

TEST_P(Profile, MarksCallsThatFail) {
  ASSERT_OK(tuff_profile_begin(context()));
  EXPECT_EQ(tuff_unary(context(), F, 99, x_, y_, 1000), kArgument);
  EXPECT_EQ(tuff_reduce(context(), F, TUFF_REDUCE_SUM, x_, y_, nullptr, 77, 0), kArgument);
  const uint64_t shape[] = {4};
  EXPECT_EQ(tuff_reduce(context(), F, TUFF_REDUCE_SUM, x_, y_, shape, 77, 0), kArgument);
  ASSERT_OK(tuff_profile_end(context()));
  const Json trace = trace_of(context());
  const std::vector<Json> calls = events(trace, "call");
  ASSERT_EQ(calls.size(), 2u);  // the call with a null shape fails before it is recorded
  for (const Json& call : calls) {
    EXPECT_EQ(call.at("args").at("failed"), true);
    EXPECT_FALSE(call.at("args").contains("shape"));
  }
  EXPECT_TRUE(events(trace, "kernel").empty());
}

TEST_P(Profile, ChangesNoResult) {
  const std::vector<float> values = spreads(64 * 64, 5);
  const auto results = [&] {
    const Tensor x(context(), values), y(context(), values.size()), z(context(), values.size()), s(context(), 64);
    const uint64_t shape[] = {64, 64};
    EXPECT_OK(tuff_gemm(context(), F, 0, 1, 64, 64, 64, 1, x, 64, x, 64, 0, y, 64));
    EXPECT_OK(tuff_softmax(context(), F, y, z, shape, 2, 1));
    EXPECT_OK(tuff_reduce(context(), F, TUFF_REDUCE_MEAN, z, s, shape, 2, 0));
    std::vector<float> all = y.read();
    for (const Tensor* part : {&z, &s}) {
      for (const float value : part->read()) all.push_back(value);
    }
    return all;
  };
  const std::vector<float> plain = results();
  ASSERT_OK(tuff_profile_begin(context()));
  const std::vector<float> profiled = results();
  ASSERT_OK(tuff_profile_end(context()));
  expect_same_bits(profiled, plain);
  expect_same_bits(results(), plain);
}

// Objects are created for a context's first profile, and not again.
TEST_P(Profile, MakesItsObjectsOnce) {
  const auto round = [&] {
    EXPECT_OK(tuff_profile_begin(context()));
    for (int i = 0; i < 300; ++i) EXPECT_OK(relu(64));
    EXPECT_OK(tuff_profile_end(context()));
    for (int i = 0; i < 300; ++i) EXPECT_OK(relu(64));
    EXPECT_OK(tuff_synchronize(context()));
  };
  round();
  const tuff_stats before = stats_of(context());
  round();
  EXPECT_EQ(stats_of(context()).vulkan_objects_created, before.vulkan_objects_created);
}

TEST_P(Profile, TellsWhatTheDeviceReaches) {
  OwnContext own(GetParam());
  EXPECT_EQ(properties_of(own).bandwidth_bytes_per_second, 0);
  ASSERT_OK(tuff_profile_begin(own));
  ASSERT_OK(tuff_profile_end(own));
  const tuff_device_properties properties = properties_of(own);
  EXPECT_EQ(properties.bandwidth_bytes_per_second > 1e8, vulkan());
  EXPECT_EQ(properties.f32_flops_per_second > 1e8, vulkan());
  const std::string table = table_of(own);
  EXPECT_EQ(table.find("that copying reaches") != std::string::npos, vulkan()) << table;
}

TEST_P(Profile, KeepsToTheMemoryLimit) {
  OwnContext own(GetParam());
  set_limit(own, 1 << 20);
  ASSERT_OK(tuff_profile_begin(own));  // with fewer timestamps, or none
  OwnBuffer x(own, 4096);
  EXPECT_OK(tuff_unary(own, F, TUFF_UNARY_NEG, x, x, 1000));
  ASSERT_OK(tuff_profile_end(own));
  EXPECT_EQ(events(trace_of(own), "kernel").size(), vulkan() ? 1u : 0u);
}

TEST_P(Profile, ShowsItsTable) {
  ASSERT_OK(tuff_profile_begin(context()));
  for (int i = 0; i < 7; ++i) ASSERT_OK(gemm());
  ASSERT_OK(tuff_profile_end(context()));
  const std::string table = table_of(context());
  for (const char* word : {"operation", "calls", "share", "GB/s", "gemm", "submissions", "bytes staged"}) {
    EXPECT_NE(table.find(word), std::string::npos) << word << "\n" << table;
  }
  std::istringstream lines(table);
  std::string line, name;
  int calls = 0;
  while (std::getline(lines, line) && name != "gemm") std::istringstream(line) >> name >> calls;
  EXPECT_EQ(name, "gemm") << table;
  EXPECT_EQ(calls, 7) << table;
  EXPECT_EQ(table.find("32x32x32") != std::string::npos, vulkan()) << table;
}

struct Lines {
  std::mutex mutex;
  int count = 0;
};

// Planner messages are generated for the profile, but do not reach a log that did not ask for them.
TEST_P(Profile, LeavesTheLogAlone) {
  if (!vulkan()) GTEST_SKIP() << "the host backend has no planners";
  Lines lines;
  const auto count = [](void* user, int32_t level, const char*) {
    auto& into = *static_cast<Lines*>(user);
    const std::lock_guard lock(into.mutex);
    into.count += level == TUFF_LOG_DISPATCH;
  };
  ASSERT_OK(tuff_set_log(count, &lines, TUFF_LOG_DEBUG));
  ASSERT_OK(tuff_profile_begin(context()));
  ASSERT_OK(gemm());
  EXPECT_EQ(lines.count, 0);
  ASSERT_OK(tuff_set_log(count, &lines, TUFF_LOG_DISPATCH));
  ASSERT_OK(gemm());
  EXPECT_GT(lines.count, 0);
  ASSERT_OK(tuff_profile_end(context()));
  lines.count = 0;
  ASSERT_OK(gemm());
  EXPECT_GT(lines.count, 0);
  ASSERT_OK(tuff_set_log(nullptr, nullptr, 0));
  for (const Json& kernel : events(trace_of(context()), "kernel")) {
    EXPECT_NE(kernel.at("args").at("plan").get<std::string>().find("32x32x32"), std::string::npos) << kernel;
  }
}

TEST_P(Profile, CountsWhatIsStagedAndFound) {
  if (!vulkan()) GTEST_SKIP() << "the host backend stages nothing";
  ASSERT_OK(relu());
  ASSERT_OK(tuff_synchronize(context()));
  const std::vector<float> values(1000, 1.0f);
  const tuff_stats before = stats_of(context());
  ASSERT_OK(relu());
  ASSERT_OK(tuff_copy_htod(context(), y_, 0, values.data(), 4000));  // the device is still using it
  const tuff_stats after = stats_of(context());
  EXPECT_EQ(after.kernel_cache_hits - before.kernel_cache_hits, 1u);
  EXPECT_EQ(after.bytes_staged - before.bytes_staged, 4000u);
  EXPECT_EQ(after.bytes_uploaded - before.bytes_uploaded, 4000u);
}
TUFF_ON_BACKENDS(Profile);

}  // namespace
}  // namespace tuff_test::profile_test
