// Tuning tables through the ABI: what they change, what they never change, and which tables are refused.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/allocation_count.hpp"
#include "support/gemm_problem.hpp"
#include "support/tensor.hpp"

namespace tuff_test::tuning_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr GemmShape kShape = {.m = 128, .n = 128, .k = 128};

// Collects Tuff's log messages during its lifetime.
class Lines {
 public:
  Lines() { EXPECT_OK(tuff_set_log(collect, this, TUFF_LOG_DISPATCH)); }
  ~Lines() { EXPECT_OK(tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF)); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  size_t with(const std::string& part) const {
    return static_cast<size_t>(std::count_if(
        lines_.begin(), lines_.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; }));
  }
  std::string all() const {
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }

 private:
  static void collect(void* user, int32_t, const char* message) {
    static_cast<Lines*>(user)->lines_.emplace_back(message);
  }
  std::vector<std::string> lines_;
};

class Tuning : public OnBackend {
 protected:
  void SetUp() override {
    if (!vulkan()) GTEST_SKIP() << "the reference backend has no variants";
    for (OwnBuffer& buffer : buffers_) buffer = OwnBuffer(context(), 128 * 128 * 4);
    desc_.struct_size = sizeof desc_;
    desc_.dtype = TUFF_F32;
    desc_.m = desc_.n = desc_.k = 128;
    desc_.alpha = 1;
    desc_.batch_count = 1;
    desc_.a = buffers_[0], desc_.b = buffers_[1], desc_.c = buffers_[2];
    entry_ = ask(context());
  }
  Json ask(tuff_context asked) {
    uint64_t length = 0;
    EXPECT_OK(tuff_batched_gemm_variants(asked, &desc_, nullptr, 0, &length));
    std::string text(length + 1, '#');
    EXPECT_OK(tuff_batched_gemm_variants(asked, &desc_, text.data(), text.size(), nullptr));
    EXPECT_EQ(text.back(), '\0');
    text.pop_back();
    return Json::parse(text);
  }
  // A table for this device with one choice, for the GEMM shape.
  std::string table(const std::string& variant) {
    const tuff_device_properties properties = properties_of(context());
    std::string uuid;
    for (const uint8_t byte : properties.uuid) {
      uuid += "0123456789abcdef"[byte / 16];
      uuid += "0123456789abcdef"[byte % 16];
    }
    Json choice = entry_;
    choice.erase("variants");
    choice["variant"] = variant;
    const std::string version = std::to_string(TUFF_VERSION_MAJOR) + "." + std::to_string(TUFF_VERSION_MINOR) + "." +
                                std::to_string(TUFF_VERSION_PATCH);
    const Json device = {{"uuid", uuid},
                         {"name", properties.name},
                         {"driver", properties.driver},
                         {"driver_version", properties.driver_version},
                         {"library", version},
                         {"choices", Json::array({choice})}};
    return Json{{"tuff_tuning", 1}, {"devices", Json::array({device})}}.dump();
  }
  // A variant other than the built-in choice.
  std::string other() {
    EXPECT_GE(entry_["variants"].size(), 2u) << "this device has one variant alone: " << entry_;
    return entry_["variants"].at(1);
  }

  OwnBuffer buffers_[3];
  tuff_batched_gemm_desc desc_{};
  Json entry_;
};

TEST_P(Tuning, ChangesTheChoiceAndNotTheResult) {
  const OwnContext own(GetParam());
  const std::string built_in = entry_["variants"][0], tuned = other();
  {
    const Lines lines;
    run_gemm(own, kShape, Tier::exact);
    EXPECT_EQ(lines.with(built_in + " (model"), 1u) << lines.all();
  }
  ASSERT_OK(tuff_context_set_tuning(own, table(tuned).c_str()));
  {
    const Lines lines;
    run_gemm(own, kShape, Tier::exact);
    run_gemm(own, kShape, Tier::bound);
    EXPECT_EQ(lines.with(tuned + " (tuned)"), 2u) << lines.all();
    // About the same size, which counts as tuned; much larger; transposed.
    run_gemm(own, {.m = 120, .n = 130, .k = 131}, Tier::exact);
    EXPECT_EQ(lines.with(tuned + " (tuned)"), 3u) << lines.all();
    run_gemm(own, {.m = 200, .n = 200, .k = 200}, Tier::exact);
    run_gemm(own, {.ta = TUFF_TRANS, .m = 128, .n = 128, .k = 128}, Tier::exact);
    EXPECT_EQ(lines.with("(tuned)"), 3u) << lines.all();
  }
  ASSERT_OK(tuff_context_set_tuning(own, nullptr));
  const Lines lines;
  run_gemm(own, kShape, Tier::exact);
  EXPECT_EQ(lines.with("(tuned)"), 0u) << lines.all();
}

TEST_P(Tuning, AllVariantsComputeTheProduct) {
  const OwnContext own(GetParam());
  for (const std::string variant : entry_["variants"]) {
    ASSERT_OK(tuff_context_set_tuning(own, table(variant).c_str()));
    const Lines lines;
    run_gemm(own, kShape, Tier::exact);
    EXPECT_EQ(lines.with(variant + " (tuned)"), 1u) << lines.all();
  }
}

TEST_P(Tuning, UnfitChoicesAreIgnoredAndSaidOnce) {
  const OwnContext own(GetParam());
  ASSERT_OK(tuff_context_set_tuning(own, table("no_such_variant").c_str()));
  const Lines lines;
  run_gemm(own, kShape, Tier::exact);
  run_gemm(own, kShape, Tier::exact);
  EXPECT_EQ(lines.with("tuning: no_such_variant"), 1u) << lines.all();
  EXPECT_EQ(lines.with("; tuned no_such_variant does not run"), 2u) << lines.all();
}

TEST_P(Tuning, LookUpsAllocateNothing) {
  if (!counts_allocations()) GTEST_SKIP() << "the sanitizer has operator new";
  if (validating()) GTEST_SKIP() << "the validation layer allocates inside every call";
  const OwnContext own(GetParam());
  ASSERT_OK(tuff_context_set_tuning(own, table(other()).c_str()));
  const OwnBuffer a(own, 128 * 128 * 4), b(own, 128 * 128 * 4), c(own, 128 * 128 * 4);
  const auto call = [&] {
    return tuff_gemm(own, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, 128, 128, 128, 1, a, 128, b, 128, 0, c, 128);
  };
  for (int i = 0; i < 60; ++i) ASSERT_OK(call());
  ASSERT_OK(tuff_synchronize(own));
  const uint64_t before = allocation_count();
  uint64_t failures = 0;
  for (int i = 0; i < 50; ++i) failures += call() != TUFF_OK;
  EXPECT_EQ(allocation_count() - before, 0u);
  EXPECT_EQ(failures, 0u);
}

// The same table gives the same bits, in one context and across contexts.
TEST_P(Tuning, ResultsRepeat) {
  std::vector<float> first;
  const std::string json = table(other());
  const GemmProblem problem(kShape, Tier::bound);
  for (int round = 0; round < 2; ++round) {
    const OwnContext own(GetParam());
    ASSERT_OK(tuff_context_set_tuning(own, json.c_str()));
    for (int call = 0; call < 2; ++call) {
      const Tensor a(own, problem.a), b(own, problem.b), c(own, problem.c);
      ASSERT_OK(call_gemm(own, problem, a, b, c));
      const std::vector<float> got = c.read();
      if (first.empty()) first = got;
      expect_same_bits(got, first);
    }
  }
}

TEST_P(Tuning, TablesThatMakeNoSenseChangeNothing) {
  const OwnContext own(GetParam());
  const std::string good = table(other());
  ASSERT_OK(tuff_context_set_tuning(own, good.c_str()));
  const auto replaced = [&](const std::string& part, const std::string& by) {
    std::string text = good;
    const size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return text.replace(at, part.size(), by);
  };
  const std::string bad[] = {"",
                             "no JSON",
                             "{}",
                             good.substr(0, good.size() / 2),
                             replaced("\"tuff_tuning\":1", "\"tuff_tuning\":99"),
                             replaced("\"uuid\":\"", "\"uuid\":\"ff"),
                             replaced("\"sizes\":[128", "\"sizes\":[\"128\"")};
  for (const std::string& text : bad) {
    EXPECT_FAILS(tuff_context_set_tuning(own, text.c_str()), kArgument, "tuff_context_set_tuning", "json");
    EXPECT_EQ(ask(context()), entry_) << "of another context";
    const Lines lines;
    run_gemm(own, kShape, Tier::exact);
    EXPECT_EQ(lines.with("(tuned)"), 1u) << "the table before is still there";
  }
  tuff_context stale = 0;
  {
    OwnContext ended(GetParam());
    stale = ended;
  }
  for (const tuff_context handle : {uint64_t{0}, stale, static_cast<uint64_t>(buffers_[0]), ~uint64_t{0}}) {
    EXPECT_FAILS(tuff_context_set_tuning(handle, good.c_str()), TUFF_ERROR_INVALID_HANDLE, "tuff_context_set_tuning",
                 "context");
  }
}

TEST_P(Tuning, VariantsAreCutToTheBuffer) {
  const std::string function = "tuff_batched_gemm_variants";
  uint64_t length = 0;
  ASSERT_OK(tuff_batched_gemm_variants(context(), &desc_, nullptr, 0, &length));
  std::string whole(length + 1, '#');
  ASSERT_OK(tuff_batched_gemm_variants(context(), &desc_, whole.data(), whole.size(), nullptr));
  for (const uint64_t capacity : {uint64_t{1}, uint64_t{10}, length}) {
    std::string part(capacity + 1, '#');
    ASSERT_OK(tuff_batched_gemm_variants(context(), &desc_, part.data(), capacity, nullptr));
    EXPECT_EQ(part, whole.substr(0, capacity - 1) + '\0' + '#');
  }
  uint64_t untouched = 77;
  EXPECT_FAILS(tuff_batched_gemm_variants(context(), &desc_, nullptr, 5, &untouched), kArgument, function.c_str(),
               "json");
  EXPECT_FAILS(tuff_batched_gemm_variants(context(), nullptr, nullptr, 0, &untouched), kArgument, function.c_str(),
               "desc");
  tuff_batched_gemm_desc bad = desc_;
  bad.lda = 5;
  EXPECT_FAILS(tuff_batched_gemm_variants(context(), &bad, nullptr, 0, &untouched), kArgument, function.c_str(), "lda");
  bad = desc_;
  bad.c = 12345;
  EXPECT_FAILS(tuff_batched_gemm_variants(context(), &bad, nullptr, 0, &untouched), TUFF_ERROR_INVALID_HANDLE,
               function.c_str(), "c");
  EXPECT_EQ(untouched, 77u);
  // A query computes nothing.
  const tuff_stats before = stats_of(context());
  ask(context());
  EXPECT_EQ(stats_of(context()).dispatches, before.dispatches);
}

// Sets TUFF_TUNING and restores it at the end.
class Environment {
 public:
  explicit Environment(const std::string& value) {
    if (const char* now = std::getenv("TUFF_TUNING")) before_ = now;
    setenv("TUFF_TUNING", value.c_str(), 1);
  }
  ~Environment() { setenv("TUFF_TUNING", before_.c_str(), 1); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::string before_;
};

TEST_P(Tuning, ContextsBeginWithTheTableOfTheEnvironment) {
  std::string pattern = (fs::temp_directory_path() / "tuff-tuned-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path file = fs::path(pattern) / "table.json";
  std::ofstream(file) << table(other());
  {
    const Environment environment(file.string());
    const Lines lines;
    const OwnContext own(GetParam());
    EXPECT_EQ(lines.with("tuning: 1 choices from " + file.string()), 1u) << lines.all();
    EXPECT_EQ(ask(context()), entry_) << "a context that was there before";
    run_gemm(own, kShape, Tier::exact);
    EXPECT_EQ(lines.with("(tuned)"), 1u) << lines.all();
  }
  std::ofstream(file) << "no table";
  const std::string ignored[] = {file.string(), pattern, pattern + "/missing"};
  for (const std::string& path : ignored) {
    const Environment environment(path);
    const Lines lines;
    const OwnContext own(GetParam());
    EXPECT_EQ(lines.with("tuning: " + path + " is ignored: "), 1u) << lines.all();
    run_gemm(own, kShape, Tier::exact);
    EXPECT_EQ(lines.with("(model"), 1u) << lines.all();
  }
  const Environment environment("off");
  const Lines lines;
  const OwnContext own(GetParam());
  EXPECT_EQ(lines.with("tuning"), 0u) << lines.all();
  fs::remove_all(pattern);
}
TUFF_ON_BACKENDS(Tuning);

class TuningOfHost : public testing::Test {};
TEST_F(TuningOfHost, IsUnsupported) {
  const OwnContext host("host");
  ASSERT_OK(tuff_context_set_tuning(host, nullptr));
  EXPECT_FAILS(tuff_context_set_tuning(host, "{}"), TUFF_ERROR_UNSUPPORTED, "tuff_context_set_tuning", "variants");
  const OwnBuffer buffer(host, 12);
  tuff_batched_gemm_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.m = desc.n = desc.k = 1, desc.batch_count = 1;
  desc.a = desc.b = desc.c = buffer;
  EXPECT_FAILS(tuff_batched_gemm_variants(host, &desc, nullptr, 0, nullptr), TUFF_ERROR_UNSUPPORTED,
               "tuff_batched_gemm_variants", "variants");
}

}  // namespace
}  // namespace tuff_test::tuning_test
