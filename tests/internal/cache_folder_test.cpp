// The size limit of the cache folder: what is removed first, what is never touched, and concurrent use.
#include "runtime/cache_folder.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "runtime/vulkan/disk_cache.hpp"
#include "tuff/tuff.h"

namespace tuff {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

class CacheFolder : public testing::Test {
 protected:
  static constexpr size_t kPayload = 1000, kFile = kPayload + sizeof(CacheHeader);

  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tuff-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    mine_.fill(1);
    other_.fill(2);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::vector<std::byte> payload(uint64_t key) {
    return std::vector<std::byte>(kPayload, static_cast<std::byte>(key * 37));
  }
  static uint64_t short_driver(const std::array<uint8_t, 16>& driver) {
    uint64_t number;
    std::memcpy(&number, driver.data(), sizeof number);
    return number;
  }
  fs::path file(const std::array<uint8_t, 16>& driver, uint64_t key) const {
    return folder_ / cache_name({"spirv", short_driver(driver), 0, key});
  }
  // Stores an entry that was last used `age` hours ago.
  void put(const std::array<uint8_t, 16>& driver, uint64_t key, int age) const {
    DiskCache(driver, folder_).store("spirv", {0, key}, payload(key));
    set_age(file(driver, key), age);
  }
  static void set_age(const fs::path& path, int age) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - hours(age));
  }
  static void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  bool holds(const std::array<uint8_t, 16>& driver, uint64_t key) const { return fs::exists(file(driver, key)); }

  fs::path folder_;
  std::array<uint8_t, 16> mine_{}, other_{};
};

TEST_F(CacheFolder, NamesAreReadAsTheyAreWritten) {
  const CacheName name{"matrix_quads", 0x0123456789abcdef, 7, 0xfedcba9876543210};
  const auto parsed = parse_cache_name(cache_name(name));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->kind, name.kind);
  EXPECT_EQ(parsed->driver, name.driver);
  EXPECT_EQ(parsed->key_high, name.key_high);
  EXPECT_EQ(parsed->key_low, name.key_low);
  const std::string good = cache_name({"spirv", 1, 2, 3});
  for (const std::string& bad :
       {std::string(), std::string("tuning.json"), good + "x", good.substr(1, std::string::npos).substr(5),
        "x" + good.substr(0, good.size() - 5) + "G.bin", "../" + good, good + ".abcdef", "spirv" + good.substr(6)}) {
    EXPECT_FALSE(parse_cache_name(bad)) << bad;
  }
}

TEST_F(CacheFolder, BoundsAreNumbersOfBytes) {
  EXPECT_EQ(parse_cache_bytes("0"), 0u);
  EXPECT_EQ(parse_cache_bytes("12345"), 12345u);
  EXPECT_EQ(parse_cache_bytes("3K"), 3072u);
  EXPECT_EQ(parse_cache_bytes("64M"), 64u << 20);
  EXPECT_EQ(parse_cache_bytes("2G"), 2ull << 30);
  for (const char* bad : {"", "M", "-1", "1.5M", "64MB", "64 M", "99999999999999999999", "17179869184G", "off"}) {
    EXPECT_FALSE(parse_cache_bytes(bad)) << bad;
  }
}

TEST_F(CacheFolder, WhatWasNotUsedForLongestGoesFirst) {
  for (uint64_t key = 0; key < 8; ++key) put(mine_, key, 100 - static_cast<int>(key));
  set_age(file(mine_, 1), 0);
  EXPECT_EQ(trim_cache(folder_, 8 * kFile, short_driver(mine_)), 8 * kFile) << "within the bound nothing is removed";
  // Trims to an eighth below the size of 7 entries, so 6 stay.
  EXPECT_EQ(trim_cache(folder_, 7 * kFile, short_driver(mine_)), 6 * kFile);
  for (uint64_t key = 0; key < 8; ++key) EXPECT_EQ(holds(mine_, key), key != 0 && key != 2) << key;
}

TEST_F(CacheFolder, OtherVersionsGoBeforeOtherDriversAndTheseBeforeOnesOwn) {
  put(mine_, 0, 900);
  put(other_, 1, 2);
  put(other_, 2, 1);
  put(mine_, 3, 0);
  put(mine_, 4, 0);
  {  // written by another version of the library
    std::fstream header(file(mine_, 3), std::ios::binary | std::ios::in | std::ios::out);
    header.seekp(offsetof(CacheHeader, library_version));
    header.put('\x7f');
  }
  fs::resize_file(file(mine_, 4), kFile - 1);  // damaged
  put({}, 5, 800);                             // shared by all drivers
  trim_cache(folder_, 5 * kFile, short_driver(mine_));
  for (uint64_t key : {3, 4}) EXPECT_FALSE(holds(mine_, key)) << key;
  EXPECT_TRUE(holds(other_, 1) && holds(other_, 2) && holds(mine_, 0) && holds({}, 5));
  trim_cache(folder_, 4 * kFile - 1, short_driver(mine_));
  EXPECT_FALSE(holds(other_, 1));
  EXPECT_TRUE(holds(other_, 2) && holds(mine_, 0) && holds({}, 5));
  trim_cache(folder_, 2 * kFile, short_driver(mine_));
  EXPECT_FALSE(holds(other_, 2));
  EXPECT_FALSE(holds(mine_, 0)) << "the oldest of what is left";
  EXPECT_TRUE(holds({}, 5));
}

TEST_F(CacheFolder, AHitKeepsAnEntryAndIsCheap) {
  put(mine_, 1, 30);
  put(mine_, 2, 20);
  const DiskCache cache(mine_, folder_);
  const auto before = fs::last_write_time(file(mine_, 2));
  EXPECT_TRUE(cache.load("spirv", {0, 1}));
  EXPECT_TRUE(cache.load("spirv", {0, 2}));
  EXPECT_LT(fs::file_time_type::clock::now() - fs::last_write_time(file(mine_, 1)), hours(1));
  EXPECT_EQ(fs::last_write_time(file(mine_, 2)), before) << "used within a day: not written again";
}

TEST_F(CacheFolder, ClockThatWasSetBack) {
  put(mine_, 1, -5000);  // written before the clock was set back; not used since
  put(mine_, 2, -4000);  // used since
  put(mine_, 3, 10);
  const DiskCache cache(mine_, folder_);
  EXPECT_TRUE(cache.load("spirv", {0, 2}));
  EXPECT_LT(fs::last_write_time(file(mine_, 2)), fs::file_time_type::clock::now() + hours(1));
  EXPECT_EQ(trim_cache(folder_, 3 * kFile - 1, short_driver(mine_)), 2 * kFile);
  EXPECT_FALSE(holds(mine_, 1));
  EXPECT_TRUE(holds(mine_, 2) && holds(mine_, 3));
}

TEST_F(CacheFolder, WhatIsAnothersIsLeftAlone) {
  const std::string name = cache_name({"spirv", 5, 5, 5});
  const fs::path outside = folder_ / "elsewhere";
  fs::create_directory(outside);
  const std::string magic(kCacheMagic, sizeof kCacheMagic);
  write(outside / "target", magic + std::string(kFile, 'x'));
  set_age(outside / "target", 500);
  const auto before = fs::last_write_time(outside / "target");
  fs::create_symlink(outside / "target", folder_ / cache_name({"spirv", 5, 5, 1}));
  fs::create_directory(folder_ / cache_name({"spirv", 5, 5, 2}));
  write(folder_ / cache_name({"spirv", 5, 5, 3}), "somebody's own file of that name");
  write(folder_ / "tuning.json", std::string(kFile, 'x'));
  write(folder_ / "tuning.json.backup", "x");
  write(folder_ / "notes.txt", "x");
  fs::create_directory(folder_ / (name + ".abcdef"));
  for (const char* old : {"tuning.json", "tuning.json.backup", "notes.txt"}) set_age(folder_ / old, 500);
  const auto count = [&] { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); };
  const auto others = count();

  write(folder_ / (name + ".oldone"), "x");
  set_age(folder_ / (name + ".oldone"), 2);
  write(folder_ / (name + ".newone"), "x");
  write(folder_ / cache_name({"spirv", 5, 5, 4}), "");                               // an empty file
  write(folder_ / cache_name({"spirv", 5, 5, 6}), magic + std::string(kFile, 'x'));  // only the magic number is right
  put(mine_, 1, 0);
  EXPECT_EQ(list_cache(folder_).entries.size(), 3u);
  EXPECT_EQ(trim_cache(folder_, 0, short_driver(mine_)), 0u);
  EXPECT_EQ(count(), others + 1) << "the temporary file that may be in use";
  EXPECT_TRUE(fs::exists(folder_ / (name + ".newone")));
  EXPECT_EQ(fs::last_write_time(outside / "target"), before);
}

TEST_F(CacheFolder, ReplacedEntriesAreNotRemoved) {
  put(mine_, 1, 50);
  const CacheListing listing = list_cache(folder_);
  ASSERT_EQ(listing.entries.size(), 1u);
  DiskCache(mine_, folder_).store("spirv", {0, 1}, payload(1));
  EXPECT_FALSE(remove_entry(folder_, listing.entries[0]));
  EXPECT_TRUE(holds(mine_, 1));
  fs::remove(file(mine_, 1));
  EXPECT_TRUE(remove_entry(folder_, listing.entries[0])) << "it is gone";
}

TEST_F(CacheFolder, BoundSmallerThanOneEntry) {
  const DiskCache cache(mine_, folder_, kFile - 1);
  cache.store("spirv", {0, 1}, payload(1));
  EXPECT_FALSE(holds(mine_, 1));
  cache.store("binding", {0, 1}, {payload(1).data(), 1});
  EXPECT_TRUE(cache.load("binding", {0, 1}));
  const DiskCache nothing(mine_, folder_, 0);
  nothing.store("spirv", {0, 2}, {});
  EXPECT_FALSE(holds(mine_, 2));
}

TEST_F(CacheFolder, OversizedEntriesAreNotRead) {
  put(mine_, 1, 0);
  fs::resize_file(file(mine_, 1), kMaxCacheEntryBytes + 1);
  EXPECT_FALSE(DiskCache(mine_, folder_).load("spirv", {0, 1}));
  const CacheListing listing = list_cache(folder_);
  ASSERT_EQ(listing.entries.size(), 1u);
  EXPECT_FALSE(listing.entries[0].whole);
}

TEST_F(CacheFolder, FoldersThatCannotBeListedOrWritten) {
  EXPECT_EQ(trim_cache(folder_ / "missing", 10, 1), 0u);
  EXPECT_TRUE(list_cache(folder_ / "missing").entries.empty());
  write(folder_ / "file", "x");
  EXPECT_TRUE(list_cache(folder_ / "file").entries.empty());
  put(mine_, 1, 100);
  fs::permissions(folder_, fs::perms(0555));
  const pid_t child = fork();  // root may write everywhere, so the child becomes another user
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) ::_exit(10);
    const DiskCache cache(mine_, folder_, kFile / 2);
    cache.store("binding", {0, 1}, {payload(1).data(), 1});
    if (cache.load("binding", {0, 1})) ::_exit(11);  // the file could be written after all
    // The entries' files are accessible to their owner only, so trimming can do nothing here but must not fail.
    trim_cache(folder_, 0, 1);
    ::_exit(fs::exists(file(mine_, 1)) ? 0 : 12);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state));
  EXPECT_EQ(WEXITSTATUS(state), 0);
  fs::permissions(folder_, fs::perms(0700));
}

TEST_F(CacheFolder, StoringKeepsTheBound) {
  const DiskCache cache(mine_, folder_, 20 * kFile);
  for (uint64_t key = 0; key < 200; ++key) {
    cache.store("spirv", {0, key}, payload(key));
    ASSERT_LE(list_cache(folder_).bytes, 20 * kFile);
    ASSERT_TRUE(cache.load("spirv", {0, key})) << "what was just stored";
  }
  EXPECT_GE(list_cache(folder_).bytes, 15 * kFile) << "no more is removed than has to be";
}

// A process that opens many contexts lists the folder once, as one with a single context does, and again once it has
// stored an eighth of the bound. Meanwhile other processes may store.
TEST_F(CacheFolder, AProcessListsItOnce) {
  const auto store = [&](uint64_t key, uint64_t bound) {
    DiskCache(mine_, folder_, bound).store("spirv", {0, key}, payload(key));
  };
  const auto others_store = [&] {
    for (uint64_t key = 100; key < 130; ++key) {
      fs::copy_file(file(mine_, 0), file(mine_, key), fs::copy_options::overwrite_existing);
    }
  };
  store(0, 20 * kFile);
  others_store();
  store(0, 20 * kFile);
  store(1, 20 * kFile);
  EXPECT_EQ(list_cache(folder_).entries.size(), 32u) << "it was listed again";
  store(0, 20 * kFile);
  EXPECT_LE(list_cache(folder_).bytes, 20 * kFile) << "three entries are more than an eighth";
  others_store();
  store(0, 10 * kFile);
  EXPECT_LE(list_cache(folder_).bytes, 10 * kFile) << "of another bound nothing is known";
}

// Stores, reads and evicts. Returns false if a read entry ever differs from what was stored.
bool hammer(const std::array<uint8_t, 16>& driver, const fs::path& folder, uint64_t bound, unsigned seed, int rounds) {
  const DiskCache cache(driver, folder, bound);
  bool right = true;
  for (int i = 0; i < rounds; ++i) {
    seed = seed * 1664525 + 1013904223;
    const uint64_t key = seed >> 26;  // 64 keys
    // Lengths differ, so that a file replaced while it is being read would show.
    std::vector<std::byte> expected(200 + 30 * key, static_cast<std::byte>(key * 37));
    if (const auto read = cache.load("spirv", {0, key})) {
      right = right && *read == expected;
    } else {
      cache.store("spirv", {0, key}, expected);
    }
    if (i % 64 == 63) trim_cache(folder, bound / 2, 99);
  }
  return right;
}

TEST_F(CacheFolder, ManyThreadsAndProcessesAtOnce) {
  constexpr uint64_t kBound = 20'000;
  std::vector<pid_t> children;
  for (unsigned i = 0; i < 4; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(hammer(mine_, folder_, kBound, 1000 + i, 600) ? 0 : 1);
    children.push_back(child);
  }
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { right += hammer(i % 2 == 0 ? mine_ : other_, folder_, kBound, i, 600); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
  for (const pid_t child : children) {
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << state;
  }
  // Each of the eight may have stored up to an eighth of the limit since it last checked.
  EXPECT_LE(list_cache(folder_).bytes, 2 * kBound);
  for (const auto& left : fs::directory_iterator(folder_)) {
    EXPECT_TRUE(parse_cache_name(left.path().filename().string())) << left.path();
  }
}

}  // namespace
}  // namespace tuff
