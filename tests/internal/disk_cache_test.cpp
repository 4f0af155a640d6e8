#include "runtime/vulkan/disk_cache.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/allocation_count.hpp"

namespace tuff {
namespace {

namespace fs = std::filesystem;

class DiskCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tuff-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    for (uint8_t i = 0; i < 16; ++i) driver_[i] = i;
    for (int i = 0; i < 1000; ++i) payload_.push_back(static_cast<std::byte>(i * 7));
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path only_file() const {
    const auto first = fs::directory_iterator(folder_);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1) << "one entry, one file";
    return first->path();
  }

  fs::path folder_;
  std::array<uint8_t, 16> driver_{};
  std::vector<std::byte> payload_;
};

TEST_F(DiskCacheTest, GivesBackWhatWasStored) {
  const DiskCache cache(driver_, folder_);
  const CacheKey key{1, 2};
  EXPECT_FALSE(cache.load("spirv", key));
  cache.store("spirv", key, payload_);
  ASSERT_TRUE(cache.load("spirv", key));
  EXPECT_EQ(*cache.load("spirv", key), payload_);
  const std::vector<std::byte> other(3, std::byte{9});
  cache.store("spirv", key, other);
  EXPECT_EQ(*cache.load("spirv", key), other);
  cache.store("spirv", {5, 5}, {});
  ASSERT_TRUE(cache.load("spirv", {5, 5}));
  EXPECT_TRUE(cache.load("spirv", {5, 5})->empty());
}

TEST_F(DiskCacheTest, KeysKindsAndDriversAreApart) {
  const DiskCache cache(driver_, folder_);
  cache.store("spirv", {1, 2}, payload_);
  EXPECT_FALSE(cache.load("spirv", {1, 3}));
  EXPECT_FALSE(cache.load("spirv", {2, 2}));
  EXPECT_FALSE(cache.load("pipelines", {1, 2}));
  for (size_t i = 0; i < driver_.size(); ++i) {
    auto other = driver_;
    other[i] ^= 1;
    EXPECT_FALSE(DiskCache(other, folder_).load("spirv", {1, 2})) << "driver byte " << i;
  }
  EXPECT_TRUE(DiskCache(driver_, folder_).load("spirv", {1, 2}));
}

TEST_F(DiskCacheTest, EveryFlippedBitIsNoticed) {
  const DiskCache cache(driver_, folder_);
  payload_.resize(40);
  cache.store("spirv", {1, 2}, payload_, DiskCache::Seal::sealed);
  const fs::path file = only_file();
  std::ifstream in(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto write = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write(damaged);
    EXPECT_FALSE(cache.load_sealed("spirv", {1, 2})) << "bit " << bit;
  }
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    write(whole.substr(0, bytes));
    EXPECT_FALSE(cache.load_sealed("spirv", {1, 2})) << bytes << " bytes";
  }
  write(whole + "x");
  EXPECT_FALSE(cache.load_sealed("spirv", {1, 2}));
  write(whole);
  EXPECT_TRUE(cache.load_sealed("spirv", {1, 2}));
}

TEST_F(DiskCacheTest, WhatTheDriverIsGivenIsSealed) {
  const DiskCache cache(driver_, folder_);
  const CacheKey key{1, 2};
  cache.store("spirv", key, payload_);
  EXPECT_TRUE(cache.load("spirv", key));
  EXPECT_FALSE(cache.load_sealed("spirv", key)) << "no driver has taken it yet";
  cache.seal("spirv", key, std::vector<std::byte>(3, std::byte{1}));
  EXPECT_FALSE(cache.load_sealed("spirv", key)) << "the seal was of other bytes";
  cache.seal("spirv", key, payload_);
  EXPECT_EQ(cache.load_sealed("spirv", key), payload_);
  cache.store("spirv", key, payload_);
  EXPECT_FALSE(cache.load_sealed("spirv", key));
  cache.store("spirv", key, payload_, DiskCache::Seal::sealed);
  EXPECT_EQ(cache.load_sealed("spirv", key), payload_);
  cache.remove("spirv", key);
  EXPECT_FALSE(cache.load("spirv", key));
  cache.seal("spirv", key, payload_);  // there is no entry; not an error
  EXPECT_FALSE(cache.load("spirv", key));
}

// A caller stores what it has made of a pipeline that it holds, and removes an entry on the way out of a failure.
TEST_F(DiskCacheTest, ALackOfMemoryIsNoError) {
  if (!tuff_test::counts_allocations()) GTEST_SKIP() << "the sanitizer has operator new";
  const CacheKey key{1, 2};
  const std::string kind = "spirv";
  bool failed = true;
  uint64_t n = 0;
  while (failed) {
    ASSERT_LT(++n, 1000u);
    const DiskCache cache(driver_, folder_);
    {
      const tuff_test::FailingAllocations failing(n);
      cache.store(kind, key, payload_);
      failed = failing.failed();
    }
    const auto stored = cache.load(kind, key);
    EXPECT_TRUE(stored || failed);
    if (stored) {
      EXPECT_EQ(*stored, payload_) << n;
    }
    cache.remove(kind, key);
  }
  EXPECT_GT(n, 3u);
  const DiskCache cache(driver_, folder_);
  for (n = 1, failed = true; failed; ++n) {
    ASSERT_LT(n, 1000u);
    cache.store(kind, key, payload_);
    const tuff_test::FailingAllocations failing(n);
    cache.remove(kind, key);
    failed = failing.failed();
  }
  EXPECT_GT(n, 2u);
  EXPECT_FALSE(cache.load(kind, key));
}

TEST_F(DiskCacheTest, TracesOfTrialsGoWithTheirEntries) {
  const DiskCache cache(driver_, folder_);
  const CacheKey key{1, 2};
  const fs::path trial = cache.trial_path("pipelines", key);
  cache.store("pipelines", key, payload_);
  std::ofstream(trial) << "1";
  fs::last_write_time(trial, fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_TRUE(list_cache(folder_).abandoned.empty());
  cache.remove("pipelines", key);
  EXPECT_EQ(list_cache(folder_).abandoned, std::vector<fs::path>{trial});
}

TEST_F(DiskCacheTest, WhatIsNoFileIsAbsent) {
  const DiskCache cache(driver_, folder_);
  cache.store("spirv", {1, 2}, payload_);
  const fs::path file = only_file();
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_FALSE(cache.load("spirv", {1, 2}));
  cache.store("spirv", {1, 2}, payload_);  // cannot replace it; not an error
  const DiskCache nowhere(driver_, std::optional<fs::path>(folder_ / "missing"));
  nowhere.store("spirv", {1, 2}, payload_);
  EXPECT_FALSE(nowhere.load("spirv", {1, 2}));
}

}  // namespace
}  // namespace tuff
