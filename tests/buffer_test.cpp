#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/tensor.hpp"

namespace tuff_test::buffer_test {
namespace {

std::vector<uint8_t> counting(uint64_t bytes, uint8_t first = 1) {
  std::vector<uint8_t> values(bytes);
  for (uint64_t i = 0; i < bytes; ++i) values[i] = static_cast<uint8_t>(first + i * 7 + i / 251);
  return values;
}

std::vector<uint8_t> contents(tuff_context context, tuff_buffer buffer) {
  uint64_t bytes = 0;
  EXPECT_OK(tuff_buffer_size(buffer, &bytes));
  std::vector<uint8_t> values(bytes, 0xee);
  EXPECT_OK(tuff_copy_dtoh(context, values.data(), buffer, 0, bytes));
  return values;
}

OwnBuffer allocate(tuff_context context, uint64_t bytes, uint32_t flags, const char* name = nullptr) {
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.flags = flags, desc.bytes = bytes, desc.name = name;
  tuff_buffer buffer = 0;
  EXPECT_OK(tuff_alloc_ex(context, &desc, &buffer));
  return OwnBuffer(buffer);
}

OwnBuffer view(tuff_buffer buffer, uint64_t offset, uint64_t bytes) {
  tuff_buffer result = 0;
  EXPECT_OK(tuff_view(buffer, offset, bytes, &result));
  return OwnBuffer(result);
}

class Buffer : public OnBackend {};

TEST_P(Buffer, SizesAndRoundTrips) {
  for (uint64_t bytes : {0, 1, 2, 3, 4, 5, 63, 64, 65, 255, 256, 257, 4095, 4096, 4097, 65'537, 1'000'003}) {
    SCOPED_TRACE(bytes);
    const OwnBuffer buffer(context(), bytes);
    uint64_t size = ~uint64_t{0};
    ASSERT_OK(tuff_buffer_size(buffer, &size));
    EXPECT_EQ(size, bytes);
    EXPECT_EQ(contents(context(), buffer), std::vector<uint8_t>(bytes, 0));
    const auto values = counting(bytes);
    ASSERT_OK(tuff_copy_htod(context(), buffer, 0, values.data(), bytes));
    EXPECT_EQ(contents(context(), buffer), values);
  }
}

TEST_P(Buffer, CopiesAtAnyOffset) {
  const OwnBuffer buffer(context(), 300);
  std::vector<uint8_t> expected(300, 0);
  for (uint64_t offset : {0, 1, 2, 3, 5, 17, 255, 299}) {
    for (uint64_t bytes : {0, 1, 3, 4, 8, 45}) {
      if (offset + bytes > 300) continue;
      const auto values = counting(bytes, static_cast<uint8_t>(offset));
      ASSERT_OK(tuff_copy_htod(context(), buffer, offset, values.data(), bytes));
      std::copy(values.begin(), values.end(), expected.begin() + static_cast<ptrdiff_t>(offset));
      std::vector<uint8_t> part(bytes);
      ASSERT_OK(tuff_copy_dtoh(context(), part.data(), buffer, offset, bytes));
      EXPECT_EQ(part, values);
    }
  }
  EXPECT_EQ(contents(context(), buffer), expected);
}

TEST_P(Buffer, CopiesNothing) {
  const OwnBuffer buffer(context(), 8), other(context(), 8);
  EXPECT_OK(tuff_copy_htod(context(), buffer, 8, nullptr, 0));
  EXPECT_OK(tuff_copy_dtoh(context(), nullptr, buffer, 8, 0));
  EXPECT_OK(tuff_copy_dtod(context(), buffer, 8, other, 0, 0));
  EXPECT_OK(tuff_fill(context(), buffer, 8, 0, "abcd", 4));
}

// The source may change as soon as the call returns, however large it is.
TEST_P(Buffer, SourceIsReadDuringTheCall) {
  const uint64_t bytes = reduced() ? 5'000'001 : 90'000'001;
  const OwnBuffer buffer(context(), bytes);
  auto values = counting(bytes);
  const auto expected = values;
  ASSERT_OK(tuff_copy_htod(context(), buffer, 0, values.data(), bytes));
  std::fill(values.begin(), values.end(), 0);
  EXPECT_TRUE(contents(context(), buffer) == expected);
}

TEST_P(Buffer, ManySmallUploadsKeepTheirOrder) {
  const OwnBuffer buffer(context(), 4096);
  std::vector<uint8_t> expected(4096, 0);
  for (uint32_t i = 0; i < 3000; ++i) {
    const uint64_t offset = (i * 37) % 4000;
    const auto values = counting(1 + i % 90, static_cast<uint8_t>(i));
    ASSERT_OK(tuff_copy_htod(context(), buffer, offset, values.data(), values.size()));
    std::copy(values.begin(), values.end(), expected.begin() + static_cast<ptrdiff_t>(offset));
  }
  EXPECT_EQ(contents(context(), buffer), expected);
}

TEST_P(Buffer, CopiesBetweenBuffersAtAnyByte) {
  const OwnBuffer source(context(), 600), target(context(), 600);
  const auto values = counting(600);
  ASSERT_OK(tuff_copy_htod(context(), source, 0, values.data(), 600));
  for (uint64_t from : {0, 1, 2, 3, 4, 7, 16, 33}) {
    for (uint64_t to : {0, 1, 2, 3, 4, 6, 15, 64}) {
      for (uint64_t bytes : {1, 2, 3, 4, 5, 8, 15, 16, 17, 64, 401}) {
        ASSERT_OK(tuff_fill(context(), target, 0, 600, "\xab", 1));
        ASSERT_OK(tuff_copy_dtod(context(), target, to, source, from, bytes));
        std::vector<uint8_t> expected(600, 0xab);
        std::copy_n(values.begin() + static_cast<ptrdiff_t>(from), bytes,
                    expected.begin() + static_cast<ptrdiff_t>(to));
        ASSERT_EQ(contents(context(), target), expected) << from << " to " << to << ", " << bytes << " bytes";
      }
    }
  }
}

TEST_P(Buffer, CopiesWithinOneBuffer) {
  const OwnBuffer buffer(context(), 100);
  auto expected = counting(100);
  ASSERT_OK(tuff_copy_htod(context(), buffer, 0, expected.data(), 100));
  ASSERT_OK(tuff_copy_dtod(context(), buffer, 50, buffer, 3, 47));
  std::copy_n(expected.begin() + 3, 47, expected.begin() + 50);
  EXPECT_EQ(contents(context(), buffer), expected);
}

TEST_P(Buffer, FillsWithPatterns) {
  const auto pattern = counting(16, 0x31);
  for (uint64_t size : {1, 2, 4, 8, 16}) {
    for (uint64_t offset : {uint64_t{0}, size, 3 * size, 16 * size}) {
      for (uint64_t bytes : {uint64_t{0}, size, 5 * size, 64 * size, 1024 * size}) {
        const OwnBuffer buffer(context(), 1041 * size);
        std::vector<uint8_t> expected(1041 * size, 0);
        ASSERT_OK(tuff_fill(context(), buffer, offset, bytes, pattern.data(), size));
        for (uint64_t i = 0; i < bytes; ++i) expected[offset + i] = pattern[i % size];
        ASSERT_EQ(contents(context(), buffer), expected) << size << " at " << offset << ", " << bytes;
      }
    }
  }
}

// The host copies what it has written in blocks of 64 KiB.
TEST_P(Buffer, FillsOfManyBlocksKeepTheirPattern) {
  constexpr uint64_t kBlock = 65'536;
  const auto pattern = counting(16, 0x31);
  for (const uint64_t size : {1, 2, 4, 8, 16}) {
    for (const uint64_t bytes : {kBlock - size, kBlock, kBlock + size, 3 * kBlock + 5 * size}) {
      const OwnBuffer buffer(context(), bytes + 2 * size);
      std::vector<uint8_t> expected(bytes + 2 * size, 0);
      ASSERT_OK(tuff_fill(context(), buffer, size, bytes, pattern.data(), size));
      for (uint64_t i = 0; i < bytes; ++i) expected[size + i] = pattern[i % size];
      ASSERT_TRUE(contents(context(), buffer) == expected) << "a pattern of " << size << ", " << bytes << " bytes";
    }
  }
}

TEST_P(Buffer, FillsThroughViewsAtAnyByte) {
  const auto pattern = counting(16, 0x31);
  for (uint64_t start : {1, 2, 3, 4, 5, 7, 12}) {
    for (uint64_t size : {1, 2, 4, 8, 16}) {
      const OwnBuffer buffer(context(), 200);
      const OwnBuffer part = view(buffer, start, 160);
      std::vector<uint8_t> expected(200, 0);
      ASSERT_OK(tuff_fill(context(), part, size, 96, pattern.data(), size));
      for (uint64_t i = 0; i < 96; ++i) expected[start + size + i] = pattern[i % size];
      ASSERT_EQ(contents(context(), buffer), expected) << size << " in a view at " << start;
    }
  }
}

TEST_P(Buffer, FillsLargeBuffers) {
  const uint64_t bytes = reduced() ? 1'000'004 : 160'000'004;
  const OwnBuffer buffer(context(), bytes);
  const float one = 1;
  ASSERT_OK(tuff_fill(context(), buffer, 0, bytes, &one, 4));
  std::vector<float> values(bytes / 4);
  ASSERT_OK(tuff_copy_dtoh(context(), values.data(), buffer, 0, bytes));
  EXPECT_EQ(std::count(values.begin(), values.end(), 1.0f), static_cast<ptrdiff_t>(values.size()));
}

TEST_P(Buffer, ViewsShareMemory) {
  OwnBuffer buffer(context(), 100);
  const OwnBuffer outer = view(buffer, 10, 80), inner = view(outer, 5, 20), empty = view(buffer, 100, 0);
  uint64_t size = 0;
  ASSERT_OK(tuff_buffer_size(inner, &size));
  EXPECT_EQ(size, 20u);
  ASSERT_OK(tuff_buffer_size(empty, &size));
  EXPECT_EQ(size, 0u);
  const auto values = counting(20);
  ASSERT_OK(tuff_copy_htod(context(), inner, 0, values.data(), 20));
  std::vector<uint8_t> expected(100, 0);
  std::copy(values.begin(), values.end(), expected.begin() + 15);
  EXPECT_EQ(contents(context(), buffer), expected);
  // A view outlives the buffer that it is part of.
  buffer.free();
  EXPECT_EQ(contents(context(), inner), values);
}

TEST_P(Buffer, FreeWhileTheDeviceIsBusy) {
  const uint64_t n = 300'000;
  const OwnBuffer result(context(), n * 4);
  for (int i = 0; i < 20; ++i) {
    const Tensor input(context(), std::vector<float>(n, static_cast<float>(i)));
    OwnBuffer between(context(), n * 4);
    ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, input, between, n));
    ASSERT_OK(tuff_binary(context(), TUFF_F32, TUFF_BINARY_ADD, result, between, result, n));
    between.free();  // queued work still uses it
  }
  std::vector<float> values(n);
  ASSERT_OK(tuff_copy_dtoh(context(), values.data(), result, 0, n * 4));
  EXPECT_EQ(values, std::vector<float>(n, -190.0f));
}

TEST_P(Buffer, ReusedMemoryReadsAsZero) {
  for (uint64_t bytes : {100, 4096, 70'000, 3'000'000}) {
    SCOPED_TRACE(bytes);
    for (int i = 0; i < 5; ++i) {
      OwnBuffer buffer(context(), bytes);
      const auto now = contents(context(), buffer);
      ASSERT_EQ(std::count(now.begin(), now.end(), 0), static_cast<ptrdiff_t>(bytes));
      ASSERT_OK(tuff_fill(context(), buffer, 0, bytes, "\xff", 1));
    }
  }
}

TEST_P(Buffer, UninitializedIsWritable) {
  const OwnBuffer buffer = allocate(context(), 1000, TUFF_ALLOC_UNINITIALIZED, "scratch of a test");
  const auto values = counting(1000);
  ASSERT_OK(tuff_copy_htod(context(), buffer, 0, values.data(), 1000));
  EXPECT_EQ(contents(context(), buffer), values);
}

TEST_P(Buffer, MapsHostVisibleMemory) {
  const OwnBuffer buffer = allocate(context(), 4000, TUFF_ALLOC_HOST_VISIBLE);
  void* pointer = nullptr;
  ASSERT_OK(tuff_map(buffer, &pointer));
  ASSERT_NE(pointer, nullptr);
  auto* values = static_cast<float*>(pointer);
  EXPECT_EQ(std::count(values, values + 1000, 0.0f), 1000);
  std::iota(values, values + 1000, -500.0f);
  ASSERT_OK(tuff_unmap(buffer));
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_RELU, buffer, buffer, 1000));
  ASSERT_OK(tuff_map(buffer, &pointer));  // waits for the work
  values = static_cast<float*>(pointer);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(values[i], std::max(0.0f, static_cast<float>(i - 500))) << i;
  ASSERT_OK(tuff_unmap(buffer));
}

TEST_P(Buffer, MappedMemoryIsOutOfReach) {
  const OwnBuffer buffer = allocate(context(), 64, TUFF_ALLOC_HOST_VISIBLE), other(context(), 64);
  const OwnBuffer part = view(buffer, 16, 16);
  void* pointer = nullptr;
  ASSERT_OK(tuff_map(buffer, &pointer));
  char bytes[16] = {};
  const int32_t kInvalid = TUFF_ERROR_INVALID_ARGUMENT;
  EXPECT_FAILS(tuff_copy_htod(context(), buffer, 0, bytes, 16), kInvalid, "tuff_copy_htod", "dst");
  EXPECT_FAILS(tuff_copy_dtoh(context(), bytes, buffer, 0, 16), kInvalid, "tuff_copy_dtoh", "src");
  EXPECT_FAILS(tuff_copy_dtod(context(), other, 0, part, 0, 16), kInvalid, "tuff_copy_dtod", "src");
  EXPECT_FAILS(tuff_copy_dtod(context(), part, 0, other, 0, 16), kInvalid, "tuff_copy_dtod", "dst");
  EXPECT_FAILS(tuff_fill(context(), part, 0, 16, bytes, 1), kInvalid, "tuff_fill", "buffer");
  EXPECT_FAILS(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, part, other, 4), kInvalid, "tuff_unary", "input");
  EXPECT_FAILS(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, other, buffer, 4), kInvalid, "tuff_unary", "output");
  void* again = nullptr;
  EXPECT_FAILS(tuff_map(buffer, &again), kInvalid, "tuff_map", "mapped");
  EXPECT_EQ(again, nullptr);
  ASSERT_OK(tuff_unmap(buffer));
  EXPECT_FAILS(tuff_unmap(buffer), kInvalid, "tuff_unmap", "mapped");
  EXPECT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, part, other, 4));
}

TEST_P(Buffer, StatisticsCount) {
  const OwnContext own(GetParam());
  const tuff_stats before = stats_of(own);
  EXPECT_EQ(before.live_buffers, 0u);
  {
    const OwnBuffer buffer(own, 5000);
    const OwnBuffer part = view(buffer, 0, 100);
    const auto values = counting(700);
    ASSERT_OK(tuff_copy_htod(own, buffer, 0, values.data(), 700));
    contents(own, part);
    const tuff_stats during = stats_of(own);
    EXPECT_EQ(during.live_buffers, 2u);
    EXPECT_GE(during.bytes_in_use, before.bytes_in_use + 5000);
    EXPECT_GE(during.bytes_reserved, during.bytes_in_use);
    EXPECT_GE(during.bytes_peak, during.bytes_in_use);
    EXPECT_EQ(during.allocations, before.allocations + 1);
    EXPECT_EQ(during.bytes_uploaded, 700u);
    EXPECT_EQ(during.bytes_downloaded, 100u);
  }
  ASSERT_OK(tuff_synchronize(own));
  const tuff_stats after = stats_of(own);
  EXPECT_EQ(after.live_buffers, 0u);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  EXPECT_GE(after.bytes_peak, 5000u);
}

TEST_P(Buffer, LimitsAreKept) {
  const OwnContext own(GetParam());
  set_limit(own, 1'000'000);
  OwnBuffer first(own, 600'000);
  tuff_buffer second = 77;
  EXPECT_FAILS(tuff_alloc(own, 600'000, &second), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "bytes");
  EXPECT_EQ(second, 77u);
  first.free();
  ASSERT_OK(tuff_synchronize(own));
  const OwnBuffer third(own, 600'000);
  set_limit(own, 0);
  const OwnBuffer fourth(own, 600'000);
}

TEST_P(Buffer, DescriptorLimitsMemory) {
  tuff_context_desc desc{};
  desc.struct_size = sizeof desc;
  desc.backend = GetParam().c_str();
  desc.memory_limit_bytes = 100'000;
  tuff_context own = 0;
  ASSERT_OK(tuff_context_create(&desc, &own));
  tuff_buffer buffer = 0;
  EXPECT_FAILS(tuff_alloc(own, 200'000, &buffer), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "bytes");
  EXPECT_OK(tuff_alloc(own, 50'000, &buffer));
  EXPECT_OK(tuff_context_destroy(own));
}

// Beyond what the device reports: refused without asking the driver, which may accept anything.
TEST_P(Buffer, TooLargeIsRefusedAndHarmless) {
  const OwnBuffer survivor(context(), 100);
  ASSERT_OK(tuff_fill(context(), survivor, 0, 100, "\x05", 1));
  const uint64_t largest = properties_of(context()).max_allocation_bytes;
  EXPECT_GT(largest, 0u);
  for (uint64_t bytes : {largest + 1, uint64_t{1} << 46, uint64_t{1} << 62, ~uint64_t{0} - 300, ~uint64_t{0}}) {
    tuff_buffer buffer = 77;
    EXPECT_FAILS(tuff_alloc(context(), bytes, &buffer), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "bytes");
    EXPECT_EQ(buffer, 77u);
  }
  EXPECT_EQ(contents(context(), survivor), std::vector<uint8_t>(100, 5));
}

TEST_P(Buffer, ManyOfThemInAnyOrder) {
  std::vector<OwnBuffer> buffers;
  Random random(5);
  for (uint32_t i = 0; i < 2000; ++i) {
    if (buffers.size() > 200 || (!buffers.empty() && random.next() % 3 == 0)) {
      std::swap(buffers[random.next() % buffers.size()], buffers.back());
      buffers.pop_back();
      continue;
    }
    buffers.emplace_back(context(), (random.next() % 5000) + 4);
    const uint32_t mark = i;
    ASSERT_OK(tuff_copy_htod(context(), buffers.back(), 0, &mark, 4));
    uint32_t back = 0;
    ASSERT_OK(tuff_copy_dtoh(context(), &back, buffers[random.next() % buffers.size()], 0, 4));
    ASSERT_LE(back, i);
  }
}
TUFF_ON_BACKENDS(Buffer);

}  // namespace
}  // namespace tuff_test::buffer_test
