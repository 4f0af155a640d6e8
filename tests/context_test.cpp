#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>

#include "support/tensor.hpp"

namespace tuff_test::context_test {
namespace {

constexpr tuff_status kStatuses[] = {
    TUFF_OK,
    TUFF_ERROR_INVALID_ARGUMENT,
    TUFF_ERROR_INVALID_HANDLE,
    TUFF_ERROR_NOT_INITIALIZED,
    TUFF_ERROR_UNSUPPORTED,
    TUFF_ERROR_OUT_OF_DEVICE_MEMORY,
    TUFF_ERROR_OUT_OF_HOST_MEMORY,
    TUFF_ERROR_DEVICE_LOST,
    TUFF_ERROR_NO_DEVICE,
    TUFF_ERROR_COMPILE_FAILED,
    TUFF_ERROR_TIMEOUT,
    TUFF_ERROR_LIMIT_EXCEEDED,
    TUFF_ERROR_IO,
    TUFF_ERROR_INTERNAL,
};

TEST(Context, VersionsAgreeWithTheHeader) {
  EXPECT_EQ(tuff_version(), static_cast<uint32_t>(TUFF_VERSION));
  EXPECT_EQ(tuff_abi_version(), static_cast<uint32_t>(TUFF_ABI_VERSION));
  const std::string version = std::to_string(TUFF_VERSION_MAJOR) + "." + std::to_string(TUFF_VERSION_MINOR) + "." +
                              std::to_string(TUFF_VERSION_PATCH);
  EXPECT_NE(std::string(tuff_build_info()).find(version), std::string::npos) << tuff_build_info();
}

TEST(Context, StatusesHaveNamesAndHints) {
  EXPECT_STREQ(tuff_status_name(TUFF_OK), "TUFF_OK");
  EXPECT_STREQ(tuff_status_name(TUFF_ERROR_INVALID_ARGUMENT), "TUFF_ERROR_INVALID_ARGUMENT");
  EXPECT_STREQ(tuff_status_name(TUFF_ERROR_INTERNAL), "TUFF_ERROR_INTERNAL");
  std::set<std::string> names, hints;
  for (tuff_status status : kStatuses) {
    names.insert(tuff_status_name(status));
    hints.insert(tuff_status_hint(status));
    EXPECT_GT(std::strlen(tuff_status_hint(status)), 10u) << status;
  }
  EXPECT_EQ(names.size(), std::size(kStatuses));
  EXPECT_EQ(hints.size(), std::size(kStatuses));
  for (tuff_status unknown : {1, -14, 12345, INT32_MIN, INT32_MAX}) {
    EXPECT_STREQ(tuff_status_name(unknown), "TUFF_ERROR_UNKNOWN");
    EXPECT_NE(tuff_status_hint(unknown), nullptr);
  }
}

TEST(Context, LastErrorIsCutToTheBuffer) {
  uint64_t ignored;
  ASSERT_EQ(tuff_buffer_size(0, &ignored), TUFF_ERROR_INVALID_HANDLE);
  const std::string whole = last_error();
  ASSERT_GT(whole.size(), 10u);
  for (uint64_t capacity : {uint64_t{1}, uint64_t{5}, whole.size(), whole.size() + 1, whole.size() + 100}) {
    std::string text(capacity + 4, '#');
    uint64_t length = 0;
    ASSERT_EQ(tuff_last_error(text.data(), capacity, &length), TUFF_OK);
    EXPECT_EQ(length, whole.size());
    const uint64_t kept = std::min<uint64_t>(capacity - 1, whole.size());
    EXPECT_EQ(text.substr(0, kept), whole.substr(0, kept));
    EXPECT_EQ(text[kept], '\0');
    EXPECT_EQ(text.substr(capacity), "####") << "written beyond the capacity";
  }
  EXPECT_EQ(tuff_last_error(nullptr, 0, nullptr), TUFF_OK);
  // Successful calls do not change it.
  uint32_t count;
  ASSERT_OK(tuff_device_count(&count));
  EXPECT_EQ(last_error(), whole);
}

TEST(Context, DevicesAreListedBestFirst) {
  uint32_t count = 0;
  ASSERT_OK(tuff_device_count(&count));
  const auto rank = [](int32_t type) {
    return type == TUFF_DEVICE_DISCRETE     ? 0
           : type == TUFF_DEVICE_INTEGRATED ? 1
           : type == TUFF_DEVICE_VIRTUAL    ? 2
           : type == TUFF_DEVICE_CPU        ? 3
                                            : 4;
  };
  int before = 0;
  for (uint32_t i = 0; i < count; ++i) {
    tuff_device_properties info{};
    info.struct_size = sizeof info;
    ASSERT_OK(tuff_device_info(i, &info));
    EXPECT_EQ(info.struct_size, sizeof info);
    EXPECT_STREQ(info.backend, "vulkan");
    EXPECT_GT(std::strlen(info.name), 0u);
    EXPECT_GT(info.memory_bytes, 0u);
    EXPECT_LE(info.memory_free_bytes, info.memory_bytes);
    EXPECT_GT(info.max_allocation_bytes, 0u);
    EXPECT_GE(info.max_storage_range_bytes, uint64_t{1} << 27);
    EXPECT_GT(info.max_workgroup_invocations, 0u);
    for (uint32_t groups : info.max_workgroup_count) EXPECT_GE(groups, 65'535u);
    EXPECT_GE(info.max_push_constant_bytes, 128u);
    EXPECT_GE(info.subgroup_size, 1u);
    EXPECT_GE(rank(info.type), before);
    before = rank(info.type);
  }
}

class ContextOnBackend : public OnBackend {};

TEST_P(ContextOnBackend, DescribesItself) {
  const tuff_device_properties info = properties_of(context());
  EXPECT_EQ(std::string(info.backend), GetParam());
  EXPECT_GT(std::strlen(info.name), 0u);
  EXPECT_GT(std::strlen(info.driver), 0u);
  EXPECT_GT(info.memory_bytes, 0u);
  EXPECT_EQ(info.type == TUFF_DEVICE_HOST, !vulkan());
  EXPECT_EQ(info.api_version != 0, vulkan());
  EXPECT_TRUE(info.binding == 0 || info.binding == 1);
}

TEST_P(ContextOnBackend, SupportsWhatItDoes) {
  for (const char* feature : {"f32", "gemm", "batched_gemm", "conv2d", "attention", "reduce", "unary", "binary",
                              "softmax", "gemm.f32", "attention.f32"}) {
    int32_t yes = -1;
    EXPECT_OK(tuff_supports(context(), feature, &yes));
    EXPECT_EQ(yes, 1) << feature;
  }
  for (const char* feature : {"", "quantum", "gemm.", "gemm.f128", "f32 ", "GEMM.x", "gemm.u8", "gemm.i32", "i32",
                              "attention.f64", "softmax.f64", "reduce.f8_e4m3", "unary.i8"}) {
    int32_t yes = -1;
    EXPECT_OK(tuff_supports(context(), feature, &yes));
    EXPECT_EQ(yes, 0) << feature;
  }
  // Features that depend on the device: the names agree with each other, and with a call.
  const std::pair<const char*, int32_t> types[] = {
      {"f16", TUFF_F16}, {"bf16", TUFF_BF16}, {"f64", TUFF_F64}, {"i8", TUFF_I8}};
  for (const auto& [name, dtype] : types) {
    const bool works = tuff_gemm(context(), dtype, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0) == TUFF_OK;
    for (const std::string prefix : {"", "gemm.", "batched_gemm."}) {
      int32_t yes = -1;
      EXPECT_OK(tuff_supports(context(), (prefix + name).c_str(), &yes));
      EXPECT_EQ(yes, works) << prefix << name;
    }
    EXPECT_TRUE(works || vulkan()) << name;
    if (dtype != TUFF_F16 && dtype != TUFF_BF16) continue;
    EXPECT_EQ(tuff_unary(context(), dtype, TUFF_UNARY_NEG, 0, 0, 0) == TUFF_OK, works) << name;
    uint32_t operations = 0;
    for (; const char* operation = tuff_operation_name(operations); ++operations) {
      int32_t yes = -1;
      EXPECT_OK(tuff_supports(context(), (std::string(operation) + "." + name).c_str(), &yes));
      const std::string_view without[] = {
          "cholesky", "lu", "triangular_solve", "lu_solve", "lu_determinant", "qr", "eigh", "eig", "svd", "variates"};
      const bool only_f32 = std::find(std::begin(without), std::end(without), operation) != std::end(without);
      EXPECT_EQ(yes, works && !only_f32) << operation << "." << name;
    }
    EXPECT_GE(operations, 26u);
    EXPECT_EQ(tuff_operation_name(operations + 1), nullptr);
    EXPECT_EQ(tuff_operation_name(UINT32_MAX), nullptr);
  }
}

TEST_P(ContextOnBackend, SynchronizeWithNothingToDo) {
  for (int i = 0; i < 3; ++i) EXPECT_OK(tuff_synchronize(context()));
}

TEST_P(ContextOnBackend, ManyAtOnce) {
  std::vector<std::unique_ptr<OwnContext>> contexts;
  for (int i = 0; i < 4; ++i) contexts.push_back(std::make_unique<OwnContext>(GetParam()));
  for (auto& own : contexts) {
    const OwnBuffer buffer(*own, 64);
    EXPECT_OK(tuff_unary(*own, TUFF_F32, TUFF_UNARY_EXP, buffer, buffer, 16));
    float first = 0;
    EXPECT_OK(tuff_copy_dtoh(*own, &first, buffer, 0, 4));
    EXPECT_EQ(first, 1.0f);
  }
}

// A buffer with pending work, a view and a mapped buffer: destroying the context releases all of them.
TEST_P(ContextOnBackend, DestroyFreesWhatIsLeft) {
  OwnContext own(GetParam());
  tuff_buffer buffer = 0, view = 0, mapped = 0;
  ASSERT_OK(tuff_alloc(own, 4096, &buffer));
  ASSERT_OK(tuff_view(buffer, 4, 64, &view));
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.flags = TUFF_ALLOC_HOST_VISIBLE;
  desc.bytes = 64;
  ASSERT_OK(tuff_alloc_ex(own, &desc, &mapped));
  void* pointer = nullptr;
  ASSERT_OK(tuff_map(mapped, &pointer));
  ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_EXP, buffer, buffer, 1024));
  const tuff_context stale = own;
  own.destroy();
  uint64_t bytes = 0;
  for (tuff_buffer handle : {buffer, view, mapped}) {
    EXPECT_FAILS(tuff_buffer_size(handle, &bytes), TUFF_ERROR_INVALID_HANDLE, "tuff_buffer_size", "buffer");
    EXPECT_FAILS(tuff_free(handle), TUFF_ERROR_INVALID_HANDLE, "tuff_free", "buffer");
  }
  EXPECT_FAILS(tuff_context_destroy(stale), TUFF_ERROR_INVALID_HANDLE, "tuff_context_destroy", "context");
}

TEST_P(ContextOnBackend, StatisticsGrow) {
  const OwnContext own(GetParam());
  const OwnBuffer buffer(own, 400);
  const tuff_stats before = stats_of(own);
  ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_EXP, buffer, buffer, 100));
  ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 100));
  ASSERT_OK(tuff_synchronize(own));
  const tuff_stats after = stats_of(own);
  EXPECT_EQ(after.struct_size, sizeof after);
  if (!vulkan()) return;
  EXPECT_GE(after.dispatches, before.dispatches + 2);
  EXPECT_GT(after.submissions, before.submissions);
  EXPECT_GT(after.barriers, before.barriers) << "the second operation reads what the first wrote";
  EXPECT_GE(after.pipelines_created, before.pipelines_created + 2);
  EXPECT_GT(after.vulkan_objects_created, 0u);
  EXPECT_GE(after.shaders_compiled + after.shader_cache_hits, before.shaders_compiled + before.shader_cache_hits + 2);
}
TUFF_ON_BACKENDS(ContextOnBackend);

tuff_status create(const char* backend, const char* device, tuff_context* context) {
  tuff_context_desc desc{};
  desc.struct_size = sizeof desc;
  desc.backend = backend;
  desc.device = device;
  return tuff_context_create(&desc, context);
}

bool tests_vulkan() {
  for (const std::string& backend : backends()) {
    if (backend == "vulkan") return true;
  }
  return false;
}

TEST(Context, HostNeedsNoVulkan) {
  tuff_context context = 0;
  ASSERT_OK(create("host", nullptr, &context));
  EXPECT_EQ(properties_of(context).type, TUFF_DEVICE_HOST);
  EXPECT_OK(tuff_context_destroy(context));
}

TEST(Context, NullDescriptorMeansTheBestDevice) {
  if (!tests_vulkan()) GTEST_SKIP() << "vulkan is not among TUFF_TEST_BACKENDS";
  tuff_context context = 0;
  ASSERT_OK(tuff_context_create(nullptr, &context));
  tuff_device_properties best{};
  best.struct_size = sizeof best;
  ASSERT_OK(tuff_device_info(0, &best));
  const tuff_device_properties used = properties_of(context);
  EXPECT_STREQ(used.backend, "vulkan");
  if (std::getenv("TUFF_DEVICE") == nullptr) {
    EXPECT_STREQ(used.name, best.name);
  }
  EXPECT_OK(tuff_context_destroy(context));
}

TEST(Context, DevicesAreChosenByIndexOrName) {
  if (!tests_vulkan()) GTEST_SKIP() << "vulkan is not among TUFF_TEST_BACKENDS";
  tuff_device_properties best{};
  best.struct_size = sizeof best;
  ASSERT_OK(tuff_device_info(0, &best));
  std::string part = std::string(best.name).substr(0, 5);
  for (char& letter : part) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  for (const char* device : {"0", static_cast<const char*>(best.name), part.c_str()}) {
    tuff_context context = 0;
    ASSERT_OK(create("vulkan", device, &context)) << device;
    EXPECT_STREQ(properties_of(context).name, best.name);
    EXPECT_OK(tuff_context_destroy(context));
  }
  for (const char* device : {"999", "no such device"}) {
    tuff_context context = 77;
    EXPECT_FAILS(create("vulkan", device, &context), TUFF_ERROR_NO_DEVICE, "tuff_context_create", device);
    EXPECT_NE(last_error().find(best.name), std::string::npos) << "what was found: " << last_error();
    EXPECT_EQ(context, 77u);
  }
}

TEST(Context, DeviceComesFromTheEnvironment) {
  if (!tests_vulkan()) GTEST_SKIP() << "vulkan is not among TUFF_TEST_BACKENDS";
  const char* before = std::getenv("TUFF_DEVICE");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TUFF_DEVICE", "no such device", 1);
  tuff_context context = 0;
  EXPECT_FAILS(create(nullptr, nullptr, &context), TUFF_ERROR_NO_DEVICE, "tuff_context_create", "no such device");
  EXPECT_OK(create(nullptr, "0", &context)) << "the descriptor takes precedence over the environment";
  EXPECT_OK(tuff_context_destroy(context));
  if (before == nullptr) {
    unsetenv("TUFF_DEVICE");
  } else {
    setenv("TUFF_DEVICE", kept.c_str(), 1);
  }
}

TEST(Context, AutoTakesVulkanWhereItIs) {
  tuff_context context = 0;
  ASSERT_OK(create("auto", nullptr, &context));
  uint32_t count = 0;
  ASSERT_OK(tuff_device_count(&count));
  EXPECT_STREQ(properties_of(context).backend, count > 0 ? "vulkan" : "host");
  EXPECT_OK(tuff_context_destroy(context));
}

struct Log {
  std::mutex mutex;
  std::vector<std::pair<int32_t, std::string>> lines;
};

void collect(void* user, int32_t level, const char* message) {
  auto* log = static_cast<Log*>(user);
  const std::lock_guard lock(log->mutex);
  log->lines.emplace_back(level, message);
}

TEST(Context, LogGoesToTheCallback) {
  if (!tests_vulkan()) GTEST_SKIP() << "vulkan is not among TUFF_TEST_BACKENDS";
  Log log;
  ASSERT_OK(tuff_set_log(collect, &log, TUFF_LOG_DISPATCH));
  {
    const OwnContext own("vulkan");
    const OwnBuffer buffer(own, 400);
    ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_EXP, buffer, buffer, 100));
    ASSERT_OK(tuff_synchronize(own));
  }
  ASSERT_OK(tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF));
  uint32_t dispatches = 0;
  for (const auto& [level, line] : log.lines) {
    EXPECT_GE(level, TUFF_LOG_ERROR);
    EXPECT_LE(level, TUFF_LOG_DISPATCH);
    EXPECT_FALSE(line.empty());
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    dispatches += level == TUFF_LOG_DISPATCH && line.find("unary") != std::string::npos;
  }
  EXPECT_EQ(dispatches, 1u) << "one line for each kernel";

  const size_t lines = log.lines.size();
  ASSERT_OK(tuff_set_log(collect, &log, TUFF_LOG_OFF));
  { const OwnContext own("vulkan"); }
  EXPECT_EQ(log.lines.size(), lines) << "off is off";
  ASSERT_OK(tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF));
}

}  // namespace
}  // namespace tuff_test::context_test
