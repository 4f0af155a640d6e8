// Uploads and downloads of all sizes, through mapped memory and through staging, beside other work and other threads.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "support/tensor.hpp"

namespace tuff_test::transfer_test {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kMiB = 1ull << 20;

// Pseudo-random bytes, so that no two ranges are alike.
Bytes scrambled(uint64_t bytes, uint64_t seed) {
  Bytes values(bytes + 8);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (uint64_t i = 0; i < bytes; i += 8) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;  // Marsaglia's xorshift64
    std::memcpy(values.data() + i, &state, 8);
  }
  values.resize(bytes);
  return values;
}

// Each backend, and Vulkan with TUFF_TRANSFER=staged, which behaves as if no memory could be mapped.
std::vector<std::string> ways() {
  std::vector<std::string> all = backends();
  if (std::find(all.begin(), all.end(), "vulkan") != all.end()) all.push_back("staged");
  return all;
}

class Transfer : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (staged()) setenv("TUFF_TRANSFER", "staged", 1);
    own_.emplace(staged() ? "vulkan" : GetParam());
    if (staged()) unsetenv("TUFF_TRANSFER");
  }
  static bool staged() { return GetParam() == "staged"; }
  tuff_context context() const { return *own_; }
  uint64_t bytes_staged() const { return stats_of(context()).bytes_staged; }
  void upload(tuff_buffer buffer, uint64_t offset, const Bytes& values) const {
    ASSERT_OK(tuff_copy_htod(context(), buffer, offset, values.data(), values.size()));
  }
  // Also checks guards on either side.
  Bytes download(tuff_buffer buffer, uint64_t offset, uint64_t bytes) const {
    constexpr uint64_t kGuardBytes = 80;
    Bytes values(bytes + 2 * kGuardBytes, 0xee);
    EXPECT_OK(tuff_copy_dtoh(context(), values.data() + kGuardBytes, buffer, offset, bytes));
    const Bytes guard(kGuardBytes, 0xee);
    EXPECT_TRUE(std::equal(guard.begin(), guard.end(), values.begin()));
    EXPECT_TRUE(std::equal(guard.rbegin(), guard.rend(), values.rbegin()));
    return {values.begin() + kGuardBytes, values.end() - kGuardBytes};
  }

  std::optional<OwnContext> own_;
};

// Sizes around the smallest transfer that is split over threads and staged in chunks, around the point where chunks
// begin to grow, around the largest ring of chunks, and several rounds of that ring.
TEST_P(Transfer, SizesAroundChunks) {
  std::vector<uint64_t> sizes = {kMiB - 1, kMiB, kMiB + 1, 2 * kMiB + 3, 4 * kMiB - 1, 4 * kMiB, 4 * kMiB + 1};
  if (!reduced()) {
    for (uint64_t size : {8 * kMiB - 1, 8 * kMiB + 1, 32 * kMiB - 1, 32 * kMiB, 32 * kMiB + 1, 72 * kMiB + 5}) {
      sizes.push_back(size);
    }
  }
  const uint64_t largest = sizes.back() + 600;
  const OwnBuffer buffer(context(), largest);
  Bytes expected = scrambled(largest, 1);
  upload(buffer, 0, expected);
  uint64_t moved = largest;
  for (uint64_t bytes : sizes) {
    for (uint64_t offset : {0, 1, 257}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes at " << offset);
      const Bytes values = scrambled(bytes, bytes + offset);
      upload(buffer, offset, values);
      std::copy(values.begin(), values.end(), expected.begin() + static_cast<ptrdiff_t>(offset));
      ASSERT_TRUE(download(buffer, offset, bytes) == values);
      moved += 2 * bytes;
    }
  }
  ASSERT_TRUE(download(buffer, 0, largest) == expected) << "the bytes around them changed";
  if (staged()) {
    EXPECT_EQ(bytes_staged(), moved + largest);
  }
}

// Transfers between operations on the same memory see everything before them and nothing after them.
TEST_P(Transfer, InOrderWithWork) {
  const uint64_t count = (reduced() ? 3 : 11) * kMiB / 4 + 1;
  const std::vector<float> ones(count, 1.0f), twos(count, 2.0f);
  const OwnBuffer x(context(), count * 4), sum(context(), count * 4);
  const auto put = [&](const std::vector<float>& values) {
    ASSERT_OK(tuff_copy_htod(context(), x, 0, values.data(), count * 4));
  };
  const auto add = [&] { ASSERT_OK(tuff_binary(context(), TUFF_F32, TUFF_BINARY_ADD, sum, x, sum, count)); };
  std::vector<float> copied(count), read(count);
  for (int round = 0; round < 3; ++round) {
    put(ones);
    add();
    put(twos);
    add();
    ASSERT_OK(tuff_copy_dtoh(context(), copied.data(), x, 0, count * 4));
    ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, x, x, count));
  }
  ASSERT_OK(tuff_copy_dtoh(context(), read.data(), sum, 0, count * 4));
  EXPECT_TRUE(copied == twos);
  EXPECT_TRUE(read == std::vector<float>(count, 9.0f));
}

// Several threads transfer to their own buffers and to their own part of a shared one, while others compute on it.
TEST_P(Transfer, FromManyThreads) {
  constexpr uint64_t kThreads = 6;
  const uint64_t part = (reduced() ? 1 : 5) * kMiB + 4;
  const OwnBuffer shared(context(), (kThreads + 1) * part);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t mine = 0; mine < kThreads; ++mine) {
    threads.emplace_back([&, mine] {
      const OwnBuffer own(context(), part);
      Bytes back(part);
      for (uint64_t round = 0; round < 3; ++round) {
        const Bytes values = scrambled(part, mine * 10 + round);
        for (const auto& [buffer, offset] : {std::pair<tuff_buffer, uint64_t>(own, 0), {shared, mine * part}}) {
          wrong += tuff_copy_htod(context(), buffer, offset, values.data(), part) != TUFF_OK;
          wrong += tuff_copy_dtoh(context(), back.data(), buffer, offset, part) != TUFF_OK;
          wrong += back != values;
          std::fill(back.begin(), back.end(), 0);
        }
      }
    });
  }
  // The last part belongs to this thread alone.
  tuff_buffer last = 0;
  ASSERT_OK(tuff_view(shared, kThreads * part, part, &last));
  const OwnBuffer view(last);
  const uint64_t count = part / 4;
  int rounds = 0;
  for (; rounds < 100; ++rounds) {
    wrong += tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, last, last, count) != TUFF_OK;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const Bytes all = download(shared, 0, (kThreads + 1) * part);
  for (uint64_t i = 0; i < kThreads; ++i) {
    const Bytes values = scrambled(part, i * 10 + 2);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), all.begin() + static_cast<ptrdiff_t>(i * part))) << i;
  }
  EXPECT_TRUE(std::all_of(all.end() - static_cast<ptrdiff_t>(part), all.end(), [](uint8_t byte) { return byte == 0; }))
      << "zeros, negated an even number of times";
}

// Repeated transfers need no more objects than were ever in flight at once. That number depends on how far the host
// gets ahead of the device, which earlier rounds may not have reached; a leak grows in every attempt.
TEST_P(Transfer, SteadyState) {
  const OwnBuffer buffer(context(), 40 * kMiB);
  const Bytes values = scrambled(40 * kMiB, 3);
  Bytes back(values.size());
  const auto round = [&] {
    for (uint64_t bytes : {3 * kMiB, 700 * kMiB / 1024, 40 * kMiB}) {
      for (int i = 0; i < 2; ++i) ASSERT_OK(tuff_copy_htod(context(), buffer, 0, values.data(), bytes));
      ASSERT_OK(tuff_copy_dtoh(context(), back.data(), buffer, 0, bytes));
    }
    ASSERT_OK(tuff_synchronize(context()));
  };
  const int rounds = reduced() ? 2 : 6;
  uint64_t objects = 0, reserved = 0, misses = 0;
  for (int attempt = 0; attempt < 8; ++attempt) {
    for (int i = 0; i < rounds; ++i) round();
    const tuff_stats after = stats_of(context());
    const uint64_t missed = memory_of(context()).misses;
    const bool same = after.vulkan_objects_created == objects && after.bytes_reserved == reserved && missed == misses;
    objects = after.vulkan_objects_created, reserved = after.bytes_reserved, misses = missed;
    if (same) break;
    EXPECT_LT(attempt, 7) << "it grows without end";
  }
  EXPECT_TRUE(back == values);
}

// Staging memory is kept for the next call until a trim releases it.
TEST_P(Transfer, TrimGivesStagingBack) {
  const OwnBuffer buffer(context(), 5 * kMiB);
  ASSERT_OK(tuff_synchronize(context()));
  ASSERT_OK(tuff_context_trim(context()));
  const uint64_t before = memory_of(context()).bytes_reserved;
  const Bytes values = scrambled(5 * kMiB, 4);
  const uint64_t staged_before = stats_of(context()).bytes_staged;
  upload(buffer, 0, values);
  EXPECT_TRUE(download(buffer, 0, values.size()) == values);
  const bool was_staged = stats_of(context()).bytes_staged > staged_before;
  if (staged()) {
    EXPECT_TRUE(was_staged);
  }
  EXPECT_EQ(memory_of(context()).bytes_reserved > before, was_staged);
  ASSERT_OK(tuff_synchronize(context()));
  ASSERT_OK(tuff_context_trim(context()));
  EXPECT_EQ(memory_of(context()).bytes_reserved, before);
  EXPECT_TRUE(download(buffer, 0, values.size()) == values);
}

// Invalid calls have no effect, whatever their size.
TEST_P(Transfer, Misuse) {
  const uint64_t bytes = 3 * kMiB;
  const OwnBuffer buffer(context(), bytes);
  const Bytes values = scrambled(bytes, 5), other = scrambled(bytes, 6);
  upload(buffer, 0, values);
  const tuff_stats before = stats_of(context());
  EXPECT_FAILS(tuff_copy_htod(context(), buffer, 1, other.data(), bytes), TUFF_ERROR_INVALID_ARGUMENT, "tuff_copy_htod",
               "dst");
  EXPECT_FAILS(tuff_copy_htod(context(), buffer, 0, nullptr, bytes), TUFF_ERROR_INVALID_ARGUMENT, "tuff_copy_htod",
               "src");
  Bytes back = other;
  EXPECT_FAILS(tuff_copy_dtoh(context(), back.data(), buffer, ~uint64_t{0}, bytes), TUFF_ERROR_INVALID_ARGUMENT,
               "tuff_copy_dtoh", "src");
  EXPECT_FAILS(tuff_copy_dtoh(context(), nullptr, buffer, 0, bytes), TUFF_ERROR_INVALID_ARGUMENT, "tuff_copy_dtoh",
               "dst");
  const tuff_stats after = stats_of(context());
  EXPECT_EQ(after.bytes_uploaded, before.bytes_uploaded);
  EXPECT_EQ(after.bytes_downloaded, before.bytes_downloaded);
  EXPECT_TRUE(back == other);
  EXPECT_TRUE(download(buffer, 0, bytes) == values);
}

INSTANTIATE_TEST_SUITE_P(On, Transfer, testing::ValuesIn(ways()),
                         [](const testing::TestParamInfo<std::string>& row) { return row.param; });

}  // namespace
}  // namespace tuff_test::transfer_test
