// Copies between contexts: two on one device, a device and the host, and a context with itself.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <tuple>

#include "support/tensor.hpp"

namespace tuff_test::peer_test {
namespace {

constexpr const char* kFunction = "tuff_copy_peer";

std::vector<uint8_t> some_bytes(uint64_t count, uint32_t seed) {
  std::vector<uint8_t> bytes(count);
  for (uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>((i * 2654435761u + seed) >> 13);
  return bytes;
}

OwnBuffer filled(tuff_context context, const std::vector<uint8_t>& bytes) {
  OwnBuffer buffer(context, bytes.size());
  EXPECT_OK(tuff_copy_htod(context, buffer, 0, bytes.data(), bytes.size()));
  return buffer;
}

std::vector<uint8_t> contents(tuff_context context, tuff_buffer buffer) {
  uint64_t size = 0;
  EXPECT_OK(tuff_buffer_size(buffer, &size));
  std::vector<uint8_t> bytes(size);
  EXPECT_OK(tuff_copy_dtoh(context, bytes.data(), buffer, 0, size));
  return bytes;
}

bool supports(tuff_context context, const char* feature) {
  int32_t yes = 0;
  EXPECT_OK(tuff_supports(context, feature, &yes));
  return yes == 1;
}

// Collects the log's messages about copies during its lifetime.
class Ways {
 public:
  Ways() { EXPECT_OK(tuff_set_log(add, this, TUFF_LOG_DEBUG)); }
  ~Ways() { EXPECT_OK(tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF)); }
  Ways(const Ways&) = delete;
  Ways& operator=(const Ways&) = delete;
  std::string last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  static void add(void* user, int32_t, const char* message) {
    auto* ways = static_cast<Ways*>(user);
    const std::lock_guard lock(ways->mutex_);
    if (std::strncmp(message, "peer copy: ", 11) == 0) ways->last_ = message;
  }
  std::mutex mutex_;
  std::string last_;
};

// The parameters are the two contexts' backends, or "first" and "second" of the Vulkan devices.
class DevicesPeer : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  bool on_vulkan() const { return std::get<0>(GetParam()) != "host" && std::get<1>(GetParam()) != "host"; }
  bool on_one_device() {
    const tuff_device_properties to = properties_of(to_), from = properties_of(from_);
    return on_vulkan() && std::memcmp(to.uuid, from.uuid, sizeof to.uuid) == 0 &&
           std::memcmp(to.driver_uuid, from.driver_uuid, sizeof to.driver_uuid) == 0;
  }

  void SetUp() override {
    if (!of_two_devices() || two_devices()) return open();
    GTEST_SKIP() << "not run here: one device; DevicesTwo.OfCpuDevicesForTheOtherTests starts it where there are two";
  }

  // An OwnContext that is created once the devices are known to exist.
  struct LateContext {
    std::unique_ptr<OwnContext> own;
    operator tuff_context() const { return own ? tuff_context{*own} : 0; }  // NOLINT(google-explicit-constructor)
    void destroy() const { own->destroy(); }
  };
  LateContext to_, from_;

 private:
  bool of_two_devices() const { return std::get<0>(GetParam()) == "first" || std::get<0>(GetParam()) == "second"; }
  void open() {
    to_.own = std::make_unique<OwnContext>(std::get<0>(GetParam()));
    from_.own = std::make_unique<OwnContext>(std::get<1>(GetParam()));
  }
};

std::vector<std::tuple<std::string, std::string>> pairs() {
  std::vector<std::tuple<std::string, std::string>> rows;
  for (const std::string& to : backends()) {
    for (const std::string& from : backends()) rows.emplace_back(to, from);
  }
  if (std::find(backends().begin(), backends().end(), "vulkan") != backends().end()) {
    rows.emplace_back("first", "second");
    rows.emplace_back("second", "first");
  }
  return rows;
}

TEST_P(DevicesPeer, AnySizeAndOffset) {
  const struct {
    uint64_t bytes, dst_offset, src_offset;
  } rows[] = {{1, 0, 0},          {3, 1, 2},         {4096, 0, 0},           {262'144, 0, 0},
              {262'145, 5, 3},    {1 << 20, 64, 32}, {(9 << 20) + 7, 13, 1}, {(40 << 20) + 3, 2, 7},
              {(65 << 20), 1, 0}, {300'000, 0, 4096}};
  for (const auto& [bytes, dst_offset, src_offset] : rows) {
    SCOPED_TRACE(bytes);
    const std::vector<uint8_t> values = some_bytes(bytes + src_offset + 11, static_cast<uint32_t>(bytes));
    std::vector<uint8_t> expected(bytes + dst_offset + 17, 0xee);
    const OwnBuffer source = filled(from_, values), target = filled(to_, expected);
    ASSERT_OK(tuff_copy_peer(to_, target, dst_offset, from_, source, src_offset, bytes));
    std::copy_n(values.begin() + static_cast<ptrdiff_t>(src_offset), bytes,
                expected.begin() + static_cast<ptrdiff_t>(dst_offset));
    ASSERT_TRUE(contents(to_, target) == expected);
    ASSERT_TRUE(contents(from_, source) == values);
  }
}

// The signals that a thread of this process blocks, and the highest bit; 0 if it has ended. For a thread that is just
// ending, Linux shows no signals, in a process of no threads.
uint64_t signals_blocked_by(const std::string& task) {
  std::ifstream file("/proc/self/task/" + task + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("Threads:", 0) == 0 && std::stoi(line.substr(8)) == 0) return 0;
    if (line.rfind("SigBlk:", 0) == 0) return std::stoull(line.substr(7), nullptr, 16) | 1ull << 63;
  }
  return 0;
}

std::set<std::string> tasks() {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    names.insert(entry.path().filename());
  }
  return names;
}

// A part is delivered by another thread while the next one is fetched.
TEST_P(DevicesPeer, ThreadsTakeNoSignalsOfTheApplication) {
  const uint64_t bytes = 100 << 20;
  const OwnBuffer source(from_, bytes), target(to_, bytes);
  ASSERT_OK(tuff_copy_peer(to_, target, 0, from_, source, 0, bytes));  // drivers have started their own threads by then
  std::atomic<bool> watching{false}, done{false};
  std::atomic<int> seen{0}, unblocked{0};
  std::thread watcher([&] {
    const std::set<std::string> before = tasks();
    watching = true;
    while (!done) {
      for (const std::string& task : tasks()) {
        if (before.count(task) != 0) continue;
        const uint64_t blocked = signals_blocked_by(task);
        if (blocked == 0) continue;
        ++seen;
        if ((blocked >> (SIGUSR1 - 1) & 1) == 0) ++unblocked;
      }
    }
  });
  while (!watching) std::this_thread::yield();
  for (int i = 0; i < 50 && seen == 0; ++i) {
    EXPECT_OK(tuff_copy_peer(to_, target, 0, from_, source, 0, bytes));
  }
  done = true;
  watcher.join();
  EXPECT_GT(seen, 0);
  EXPECT_EQ(unblocked, 0);
}

// The copy is ordered after the earlier work of src_stream and before the later work of both streams.
TEST_P(DevicesPeer, TakesItsPlaceInBothStreams) {
  for (const uint64_t n : {1000, 500'000}) {
    const OwnBuffer source(from_, n * 4), target(to_, n * 4);
    const float two = 2, seven = 7;
    for (int round = 0; round < 3; ++round) {
      ASSERT_OK(tuff_fill(from_, source, 0, n * 4, &two, 4));
      ASSERT_OK(tuff_unary(from_, TUFF_F32, TUFF_UNARY_NEG, source, source, n));
      ASSERT_OK(tuff_fill(to_, target, 0, n * 4, &seven, 4));
      ASSERT_OK(tuff_copy_peer(to_, target, 0, from_, source, 0, n * 4));
      ASSERT_OK(tuff_fill(from_, source, 0, n * 4, &seven, 4));
      ASSERT_OK(tuff_binary(to_, TUFF_F32, TUFF_BINARY_ADD, target, target, target, n));
      std::vector<float> back(n);
      ASSERT_OK(tuff_copy_dtoh(to_, back.data(), target, 0, n * 4));
      ASSERT_EQ(std::count(back.begin(), back.end(), -4.0f), static_cast<ptrdiff_t>(n));
    }
  }
}

TEST_P(DevicesPeer, ThreadsInOppositeDirections) {
  constexpr uint64_t kBytes = 700'001;
  constexpr int kRounds = 12;
  std::vector<std::thread> threads;
  const auto send = [](tuff_context to, tuff_context from, uint32_t seed) {
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<uint8_t> values = some_bytes(kBytes, seed + static_cast<uint32_t>(round));
      const OwnBuffer source = filled(from, values), target(to, kBytes);
      EXPECT_OK(tuff_copy_peer(to, target, 0, from, source, 0, kBytes));
      EXPECT_TRUE(contents(to, target) == values) << seed << ", " << round;
    }
  };
  const tuff_context one = to_, other = from_;
  threads.emplace_back(send, one, other, 100);
  threads.emplace_back(send, other, one, 200);
  threads.emplace_back(send, one, other, 300);
  threads.emplace_back(send, other, one, 400);
  for (std::thread& thread : threads) thread.join();
}

TEST_P(DevicesPeer, MisuseIsRefused) {
  const std::vector<uint8_t> poison(64, 0x5a);
  const OwnBuffer target = filled(to_, poison), source = filled(from_, std::vector<uint8_t>(64, 1));
  const uint64_t huge = ~uint64_t{0};
  const auto refused = [&](tuff_stream ds, tuff_buffer d, uint64_t d_offset, tuff_stream ss, tuff_buffer s,
                           uint64_t s_offset, uint64_t bytes, tuff_status status, const char* word) {
    EXPECT_FAILS(tuff_copy_peer(ds, d, d_offset, ss, s, s_offset, bytes), status, kFunction, word);
  };
  const tuff_status argument = TUFF_ERROR_INVALID_ARGUMENT, handle = TUFF_ERROR_INVALID_HANDLE;
  refused(to_, target, 1, from_, source, 0, 64, argument, "dst");
  refused(to_, target, 0, from_, source, 1, 64, argument, "src");
  refused(to_, target, huge, from_, source, 0, 2, argument, "dst");
  refused(to_, target, 0, from_, source, 3, huge, argument, "dst");
  refused(0, target, 0, from_, source, 0, 8, handle, "dst_stream");
  refused(to_, target, 0, target, source, 0, 8, handle, "src_stream");
  refused(to_, 0, 0, from_, source, 0, 8, handle, "dst");
  refused(to_, target, 0, from_, from_, 0, 8, handle, "src");
  refused(to_, source, 0, from_, source, 0, 8, handle, "dst");  // a buffer of the other context
  refused(to_, target, 0, from_, target, 0, 8, handle, "src");
  EXPECT_OK(tuff_copy_peer(to_, target, 64, from_, source, 64, 0)) << "nothing";
  EXPECT_TRUE(contents(to_, target) == poison);
}

TEST_P(DevicesPeer, CapturingStreamsAreRefused) {
  const OwnBuffer target(to_, 64), source(from_, 64);
  const std::pair<tuff_context, const char*> rows[] = {{to_, "dst_stream"}, {from_, "src_stream"}};
  for (const auto& [stream, name] : rows) {
    ASSERT_OK(tuff_graph_begin(stream));
    EXPECT_FAILS(tuff_copy_peer(to_, target, 0, from_, source, 0, 64), TUFF_ERROR_UNSUPPORTED, kFunction, name);
    tuff_graph graph = 0;
    ASSERT_OK(tuff_graph_end(stream, &graph));
    EXPECT_OK(tuff_graph_destroy(graph));
  }
  EXPECT_OK(tuff_copy_peer(to_, target, 0, from_, source, 0, 64));
}

TEST_P(DevicesPeer, MappedBuffersAreRefused) {
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.bytes = 64, desc.flags = TUFF_ALLOC_HOST_VISIBLE;
  tuff_buffer handles[2] = {};
  ASSERT_OK(tuff_alloc_ex(to_, &desc, &handles[0]));
  ASSERT_OK(tuff_alloc_ex(from_, &desc, &handles[1]));
  const OwnBuffer target(handles[0]), source(handles[1]);
  const char* words[2] = {"dst", "src"};
  for (int i = 0; i < 2; ++i) {
    void* pointer = nullptr;
    ASSERT_OK(tuff_map(handles[i], &pointer));
    EXPECT_FAILS(tuff_copy_peer(to_, target, 0, from_, source, 0, 8), TUFF_ERROR_INVALID_ARGUMENT, kFunction, words[i]);
    ASSERT_OK(tuff_unmap(handles[i]));
  }
  EXPECT_OK(tuff_copy_peer(to_, target, 0, from_, source, 0, 8));
}

// The copy uses the best available way. What it keeps for the next one is released by a trim, and with either context.
TEST_P(DevicesPeer, KeepsWhatItNeedsForTheNext) {
  constexpr uint64_t kBytes = 3 << 20;
  Ways ways;
  const bool by_device = on_one_device() && supports(to_, "memory_fd") && supports(from_, "memory_fd");
  const bool by_host = supports(to_, "import_host") && supports(from_, "import_host");
  const char* forced = std::getenv("TUFF_PEER_VARIANT");
  const std::string way = forced != nullptr ? forced : by_device ? "device" : by_host ? "host" : "download";
  if ((way == "device" && !by_device) || (way == "host" && !by_host)) GTEST_SKIP() << "not run: no such way here";
  OwnBuffer target(to_, kBytes), source(from_, kBytes);
  ASSERT_OK(tuff_copy_peer(to_, target, 0, from_, source, 0, kBytes));
  EXPECT_NE(ways.last().find(way == "device" ? "device memory"
                             : way == "host" ? "host memory"
                                             : "downloaded"),
            std::string::npos)
      << ways.last();
  const uint64_t kept = memory_of(to_).bytes_imported;
  EXPECT_EQ(kept == 0, way == "download");
  ASSERT_OK(tuff_copy_peer(to_, target, 0, from_, source, 0, kBytes));
  EXPECT_EQ(memory_of(to_).bytes_imported, kept) << "the same for the next";
  EXPECT_EQ(memory_of(from_).bytes_imported == 0, way != "host");
  ASSERT_OK(tuff_context_trim(from_));
  EXPECT_EQ(memory_of(to_).bytes_imported, 0u);
  EXPECT_EQ(memory_of(from_).bytes_imported, 0u);
  ASSERT_OK(tuff_copy_peer(to_, target, 0, from_, source, 0, kBytes));
  EXPECT_EQ(memory_of(to_).bytes_imported, kept);
  source.free();
  from_.destroy();
  EXPECT_EQ(memory_of(to_).bytes_imported, 0u);
}

// A context that is destroyed during a copy: the copy succeeds or is refused, and nothing is leaked.
TEST_P(DevicesPeer, ContextsEndMeanwhile) {
  constexpr uint64_t kBytes = 600'000;
  for (int round = 0; round < 4; ++round) {
    OwnContext own(std::get<1>(GetParam()));
    const tuff_context from = own;
    OwnBuffer source(from, kBytes);
    const OwnBuffer target(to_, kBytes);
    const tuff_buffer handle = source.release();
    std::atomic<int> copies{0};
    std::thread copier([&] {
      tuff_status status = TUFF_OK;
      while (status == TUFF_OK) {
        status = tuff_copy_peer(to_, target, 0, from, handle, 0, kBytes);
        ++copies;
      }
      EXPECT_EQ(status, TUFF_ERROR_INVALID_HANDLE) << last_error();
    });
    while (copies < 2 + round) std::this_thread::yield();
    own.destroy();
    copier.join();
    EXPECT_EQ(memory_of(to_).bytes_imported, 0u) << round;
  }
}

// A context whose limit leaves no room for device memory shared by both.
TEST_P(DevicesPeer, AnotherWayWhereTheFirstHasNoRoom) {
  constexpr uint64_t kBytes = 2 << 20;
  const std::vector<uint8_t> values = some_bytes(kBytes, 9);
  const OwnBuffer source = filled(from_, values), target(to_, kBytes);
  set_limit(from_, 4 << 20);
  Ways ways;
  ASSERT_OK(tuff_copy_peer(to_, target, 0, from_, source, 0, kBytes));
  EXPECT_EQ(ways.last().find("device memory"), std::string::npos) << ways.last();
  EXPECT_TRUE(contents(to_, target) == values);
}

INSTANTIATE_TEST_SUITE_P(On, DevicesPeer, testing::ValuesIn(pairs()),
                         [](const auto& row) { return std::get<1>(row.param) + "_to_" + std::get<0>(row.param); });

class DevicesSame : public OnBackend {};

// Within one context this is the same as tuff_copy_dtod.
TEST_P(DevicesSame, CopiesWithinOneContext) {
  std::vector<uint8_t> values = some_bytes(1000, 3);
  const OwnBuffer buffer = filled(context(), values), other(context(), 1000);
  ASSERT_OK(tuff_copy_peer(context(), buffer, 600, context(), buffer, 1, 399));
  std::copy_n(values.begin() + 1, 399, values.begin() + 600);
  EXPECT_TRUE(contents(context(), buffer) == values);
  ASSERT_OK(tuff_copy_peer(context(), other, 0, context(), buffer, 0, 1000));
  EXPECT_TRUE(contents(context(), other) == values);
  for (const uint64_t offset : {1, 10, 19}) {
    EXPECT_FAILS(tuff_copy_peer(context(), buffer, 10, context(), buffer, offset, 10), TUFF_ERROR_INVALID_ARGUMENT,
                 kFunction, "src");
  }
}
// From one stream of a context to another: the copy follows what is on either.
TEST_P(DevicesSame, CopiesBetweenStreamsOfOneContext) {
  tuff_stream streams[2] = {};
  for (tuff_stream& stream : streams) ASSERT_OK(tuff_stream_create(context(), nullptr, &stream));
  std::vector<uint8_t> values = some_bytes(1000, 3);
  const OwnBuffer source(context(), 1000), target(context(), 1000);
  ASSERT_OK(tuff_copy_htod(streams[1], source, 0, values.data(), 1000));
  ASSERT_OK(tuff_copy_peer(streams[0], target, 0, streams[1], source, 0, 1000));
  std::vector<uint8_t> result(1000);
  ASSERT_OK(tuff_copy_dtoh(streams[0], result.data(), target, 0, 1000));
  EXPECT_TRUE(result == values);
  for (const tuff_stream stream : streams) EXPECT_OK(tuff_stream_destroy(stream));
}
TUFF_ON_BACKENDS(DevicesSame);

}  // namespace
}  // namespace tuff_test::peer_test
