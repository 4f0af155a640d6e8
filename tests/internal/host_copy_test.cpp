// Copies by several threads.
#include "runtime/host_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace {

using tuff::HostCopy;
using Bytes = std::vector<uint8_t>;

Bytes counting(uint64_t bytes, uint64_t seed) {
  Bytes values(bytes);
  for (uint64_t i = 0; i < bytes; ++i) values[i] = static_cast<uint8_t>(seed + i * 7 + i / 251 + i / 65'521);
  return values;
}

// Sizes around the minimum that is split among threads and the minimum for non-temporal stores, at unaligned
// addresses.
TEST(HostCopy, EverySizeAndAddress) {
  constexpr uint64_t kAround = 200;
  const uint64_t streamed = 4ull << 20;
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{4097}, HostCopy::kMinShared - 1, HostCopy::kMinShared,
                         HostCopy::kMinShared + 1, streamed - 1, streamed, streamed + 16'385, 2 * streamed + 63}) {
    for (uint64_t shift : {0, 1, 17, 63}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, " << shift);
      const Bytes source = counting(bytes + shift, bytes);
      Bytes target(bytes + 2 * kAround, 0xee), expected = target;
      std::copy(source.begin() + static_cast<ptrdiff_t>(shift), source.end(),
                expected.begin() + static_cast<ptrdiff_t>(kAround - shift));
      tuff::host_copy(target.data() + kAround - shift, source.data() + shift, bytes);
      ASSERT_TRUE(target == expected);
    }
  }
}

// Several copies are begun before the first is finished, and finished in any order.
TEST(HostCopy, SeveralAtOnce) {
  constexpr uint64_t kBytes = (1ull << 20) + 777;
  const Bytes source = counting(4 * kBytes, 1);
  for (const std::array<size_t, 4>& order : {std::array<size_t, 4>{0, 1, 2, 3}, {3, 1, 0, 2}, {2, 3, 1, 0}}) {
    Bytes target(4 * kBytes);
    std::array<HostCopy, 4> copies;
    for (size_t i = 0; i < copies.size(); ++i) {
      copies[i].start(target.data() + i * kBytes, source.data() + i * kBytes, kBytes);
    }
    for (size_t i : order) {
      copies[i].finish();
      const auto begin = static_cast<ptrdiff_t>(i * kBytes), end = static_cast<ptrdiff_t>((i + 1) * kBytes);
      ASSERT_TRUE(std::equal(source.begin() + begin, source.begin() + end, target.begin() + begin)) << i;
    }
  }
}

// A copy that is abandoned ends before its memory may be freed.
TEST(HostCopy, EndsWithItsScope) {
  const Bytes source = counting(3ull << 20, 2);
  for (int round = 0; round < 20; ++round) {
    Bytes target(source.size());
    {
      HostCopy copy;
      copy.start(target.data(), source.data(), source.size());
    }
    ASSERT_TRUE(target == source);
  }
}

TEST(HostCopy, FromManyThreads) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t mine = 0; mine < 6; ++mine) {
    threads.emplace_back([&, mine] {
      const Bytes source = counting((1ull << 20) + mine * 100'003, mine);
      for (int round = 0; round < 30; ++round) {
        Bytes target(source.size());
        tuff::host_copy(target.data(), source.data(), source.size());
        wrong += target != source;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
