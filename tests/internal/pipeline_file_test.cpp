// The driver's pipeline cache on disk, shared by processes. Mesa's CPU driver keeps nothing in its cache, so a fake
// driver is used, whose caches are sets of words.
#include "runtime/vulkan/pipeline_file.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "planning/log.hpp"
#include "platform/platform.hpp"

namespace tuff_test {
namespace {

namespace fs = std::filesystem;
using Words = std::set<std::string>;
using std::chrono::milliseconds;

Words& words_of(VkPipelineCache cache) { return *reinterpret_cast<Words*>(cache); }

Words parse(const void* data, size_t bytes) {
  std::istringstream text(std::string(static_cast<const char*>(data), bytes));
  Words words;
  for (std::string word; text >> word;) words.insert(word);
  return words;
}

VKAPI_ATTR VkResult VKAPI_CALL create_cache(VkDevice, const VkPipelineCacheCreateInfo* info,
                                            const VkAllocationCallbacks*, VkPipelineCache* cache) {
  *cache = reinterpret_cast<VkPipelineCache>(new Words(parse(info->pInitialData, info->initialDataSize)));
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL destroy_cache(VkDevice, VkPipelineCache cache, const VkAllocationCallbacks*) {
  delete &words_of(cache);
}
VKAPI_ATTR VkResult VKAPI_CALL merge_caches(VkDevice, VkPipelineCache dst, uint32_t count, const VkPipelineCache* src) {
  for (uint32_t i = 0; i < count; ++i) words_of(dst).insert(words_of(src[i]).begin(), words_of(src[i]).end());
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL cannot_merge(VkDevice, VkPipelineCache, uint32_t, const VkPipelineCache*) {
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}
VKAPI_ATTR VkResult VKAPI_CALL cache_data(VkDevice, VkPipelineCache cache, size_t* bytes, void* data) {
  std::string text;
  for (const std::string& word : words_of(cache)) text += word + "\n";
  if (data == nullptr) {
    *bytes = text.size();
    return VK_SUCCESS;
  }
  const bool whole = *bytes >= text.size();
  *bytes = text.copy(static_cast<char*>(data), *bytes);
  return whole ? VK_SUCCESS : VK_INCOMPLETE;
}

VolkDeviceTable driver() {
  VolkDeviceTable vk{};
  vk.vkCreatePipelineCache = create_cache;
  vk.vkDestroyPipelineCache = destroy_cache;
  vk.vkMergePipelineCaches = merge_caches;
  vk.vkGetPipelineCacheData = cache_data;
  return vk;
}

// A context's part: a pipeline cache that starts with the contents on disk.
struct Process {
  explicit Process(const fs::path& folder, uint64_t bound = 1 << 20) : disk({1, 2, 3}, folder, bound) {
    const std::vector<std::byte> stored = file.load();
    VkPipelineCacheCreateInfo info{};
    info.initialDataSize = stored.size();
    info.pInitialData = stored.data();
    create_cache(VK_NULL_HANDLE, &info, nullptr, &cache);
  }
  ~Process() { destroy_cache(VK_NULL_HANDLE, cache, nullptr); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Words& words() { return words_of(cache); }
  void save() { file.save(cache); }

  VolkDeviceTable vk = driver();
  tuff::DiskCache disk;
  tuff::PipelineFile file{vk, VK_NULL_HANDLE, disk};
  VkPipelineCache cache = VK_NULL_HANDLE;
};

class PipelineFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tuff-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  Words stored() { return Process(folder_).words(); }

  fs::path folder_;
};

TEST_F(PipelineFile, EachAddsToWhatTheOthersMade) {
  Process first(folder_), second(folder_);  // both began with nothing
  first.words() = {"gemm", "relu"};
  second.words() = {"relu", "softmax"};
  first.save();
  second.save();
  EXPECT_EQ(stored(), (Words{"gemm", "relu", "softmax"}));
  second.words().insert("conv");  // it does not know gemm yet
  second.save();
  EXPECT_EQ(stored(), (Words{"conv", "gemm", "relu", "softmax"}));
  first.words().insert("attention");
  first.save();
  EXPECT_EQ(stored(), (Words{"attention", "conv", "gemm", "relu", "softmax"}));
}

// The prewarming thread must not wait for a caller that is inside a log callback, which may end the process and wait
// for that thread.
TEST_F(PipelineFile, PrewarmingDoesNotWaitForACallerThatLogsWhileItSaves) {
  Process process(folder_, 8);
  process.words() = {"more than eight bytes"};
  struct Seen {
    Process& process;
    int messages = 0, refused = 0;
  } seen{process};
  const auto callback = [](void* user, int32_t, const char*) {
    auto& [asked, messages, refused] = *static_cast<Seen*>(user);
    bool saved = true;
    std::thread([&, &file = asked.file, cache = asked.cache] { saved = file.try_save(cache); }).join();
    ++messages;
    refused += saved ? 0 : 1;
  };
  tuff::set_log(callback, &seen, TUFF_LOG_INFO);
  process.save();
  tuff::set_log(nullptr, nullptr, TUFF_LOG_OFF);
  EXPECT_GT(seen.messages, 0);
  EXPECT_EQ(seen.refused, seen.messages);
  EXPECT_TRUE(process.file.try_save(process.cache)) << "nobody is saving now";
}

TEST_F(PipelineFile, AloneNothingIsMerged) {
  Process only(folder_);
  only.vk.vkMergePipelineCaches = [](VkDevice, VkPipelineCache, uint32_t, const VkPipelineCache*) {
    ADD_FAILURE() << "merged with itself";
    return VK_SUCCESS;
  };
  for (const char* word : {"a", "b", "c"}) {
    only.words().insert(word);
    only.save();
  }
  EXPECT_EQ(stored(), (Words{"a", "b", "c"}));
}

TEST_F(PipelineFile, WhatCannotBeMergedIsReplaced) {
  Process first(folder_), second(folder_);
  first.words() = {"gemm"};
  first.save();
  second.words() = {"softmax"};
  second.vk.vkMergePipelineCaches = cannot_merge;
  second.save();
  EXPECT_EQ(stored(), Words{"softmax"});
}

TEST_F(PipelineFile, TheYoungerWhereBothAreTooMuch) {
  constexpr uint64_t kBound = 1024;
  Process first(folder_, kBound), second(folder_, kBound);
  first.words() = {std::string(600, 'a')};
  second.words() = {std::string(600, 'b')};
  first.save();
  second.save();
  EXPECT_EQ(stored(), Words{std::string(600, 'b')});
}

TEST_F(PipelineFile, ALockThatIsKeptHoldsNobody) {
  Process process(folder_);
  const tuff::platform::FileLock other(process.disk.lock_path("pipelines"), milliseconds(0));
  ASSERT_TRUE(other.held());
  process.words() = {"gemm"};
  const auto start = std::chrono::steady_clock::now();
  process.save();
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, milliseconds(400)) << "it waits for the other";
  EXPECT_LT(took, milliseconds(60'000)) << "which never ends";
  EXPECT_EQ(stored(), Words{"gemm"});
}

TEST_F(PipelineFile, ALockEndsWithItsObject) {
  const fs::path path = folder_ / "lock";
  {
    const tuff::platform::FileLock lock(path, milliseconds(0));
    EXPECT_TRUE(lock.held());
    EXPECT_FALSE(tuff::platform::FileLock(path, milliseconds(5)).held());
  }
  EXPECT_TRUE(tuff::platform::FileLock(path, milliseconds(0)).held());
  EXPECT_FALSE(tuff::platform::FileLock(folder_ / "missing" / "lock", milliseconds(0)).held());
}

// Loads the cache in a child process that then dies, optionally after came_back().
void end_over(const fs::path& folder, bool came_back) {
  const pid_t child = fork();
  if (child == 0) {
    Process process(folder);
    if (came_back) process.file.came_back();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
}

TEST_F(PipelineFile, WhatAProcessHasEndedOverGoes) {
  {
    Process first(folder_);
    first.words() = {"gemm"};
    first.save();
  }
  EXPECT_EQ(stored(), Words{"gemm"}) << "tried by a process that ends in peace: it stays";
  end_over(folder_, false);
  EXPECT_EQ(stored(), Words());
  EXPECT_EQ(stored(), Words());
  Process next(folder_);
  next.words() = {"relu"};
  next.save();
  EXPECT_EQ(stored(), Words{"relu"}) << "newly built pipelines are kept";
}

TEST_F(PipelineFile, WhatCameBackIsNotTriedAgain) {
  const fs::path marker = Process(folder_).disk.trial_path("pipelines", {});
  {
    Process first(folder_);
    first.words() = {"gemm"};
    first.save();
  }
  {
    Process second(folder_);
    EXPECT_TRUE(second.file.on_trial());
    EXPECT_TRUE(fs::exists(marker));
    second.file.came_back();
    EXPECT_FALSE(second.file.on_trial());
    EXPECT_FALSE(fs::exists(marker));
  }
  end_over(folder_, false);
  EXPECT_FALSE(fs::exists(marker)) << "nothing is written for what is known to be good";
  EXPECT_EQ(stored(), Words{"gemm"});
  Process third(folder_);
  EXPECT_FALSE(third.file.on_trial());
  third.words().insert("relu");
  third.save();
  EXPECT_TRUE(Process(folder_).file.on_trial()) << "what was added has not been tried";
}

TEST_F(PipelineFile, TwoTryItAtOnce) {
  {
    Process first(folder_);
    first.words() = {"gemm"};
    first.save();
  }
  Process a(folder_), b(folder_);
  EXPECT_EQ(a.words(), Words{"gemm"});
  EXPECT_EQ(b.words(), Words{"gemm"});
  EXPECT_TRUE(a.file.on_trial());
  EXPECT_FALSE(b.file.on_trial()) << "one of them keeps the marker";
  b.words().insert("relu");
  b.save();
  a.words().insert("conv");
  a.save();
  a.file.came_back();  // its marker belongs to a file that has been replaced by now
  EXPECT_TRUE(Process(folder_).file.on_trial());
  EXPECT_EQ(stored(), (Words{"conv", "gemm", "relu"}));
}

TEST_F(PipelineFile, MergingIsATrialToo) {
  Process first(folder_), second(folder_);
  first.words() = {"gemm"};
  first.save();
  const pid_t child = fork();
  if (child == 0) {
    second.vk.vkMergePipelineCaches = [](VkDevice, VkPipelineCache, uint32_t, const VkPipelineCache*) -> VkResult {
      _exit(0);
    };
    second.save();
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(stored(), Words());
}

// Without a marker the outcome of a trial could not be known, so the file is not used.
TEST_F(PipelineFile, WhatCannotBeMarkedIsNotTried) {
  Process first(folder_);
  first.words() = {"gemm"};
  first.save();
  fs::create_directory(first.disk.trial_path("pipelines", {}));
  EXPECT_EQ(stored(), Words());
  first.words() = {"relu"};
  first.save();
  fs::remove(first.disk.trial_path("pipelines", {}));
  EXPECT_EQ(stored(), Words{"relu"});
}

TEST_F(PipelineFile, WithoutAFolderNothingIsKept) {
  VolkDeviceTable vk = driver();
  const tuff::DiskCache disk({}, std::nullopt);
  tuff::PipelineFile file(vk, VK_NULL_HANDLE, disk);
  EXPECT_TRUE(file.load().empty());
  file.save(VK_NULL_HANDLE);
}

constexpr int kProcesses = 4, kRounds = 8;

// A process that has waited for the lock for half a second writes without it, which may lose another process's
// additions. If a save took this long, the result says nothing about the lock.
constexpr milliseconds kSlowSave(400);

fs::path signal_file(const fs::path& folder, const std::string& who) { return folder / ("ready-" + who); }

bool wait_for_file(const fs::path& path) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!fs::exists(path)) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// One of the processes of the test below, which starts this program again.
TEST(PipelineFileProcess, AddsItsOwn) {
  const char *folder = getenv("TUFF_TEST_PIPELINE_FOLDER"), *name = getenv("TUFF_TEST_PIPELINE_PROCESS");
  if (folder == nullptr || name == nullptr) GTEST_SKIP() << "runs as a part of PipelineFile.ProcessesAtOnce";
  Process process(folder);
  EXPECT_TRUE(process.words().empty()) << "all begin before any writes";
  std::ofstream(signal_file(folder, name)) << "ready";
  ASSERT_TRUE(wait_for_file(signal_file(folder, "all")));
  for (int round = 0; round < kRounds; ++round) {
    process.words().insert(std::string(name) + "." + std::to_string(round));
    const auto start = std::chrono::steady_clock::now();
    process.save();
    if (std::chrono::steady_clock::now() - start >= kSlowSave) std::ofstream(signal_file(folder, "slow")) << name;
  }
}

// Runs four processes that add words concurrently, in a separate folder. Returns false if one of them was slow.
bool processes_at_once(const fs::path& folder) {
  std::vector<FILE*> processes;
  for (int i = 0; i < kProcesses; ++i) {
    const std::string command =
        "TUFF_TEST_PIPELINE_FOLDER='" + folder.string() + "' TUFF_TEST_PIPELINE_PROCESS=" + std::to_string(i) + " '" +
        fs::read_symlink("/proc/self/exe").string() + "' --gtest_filter=PipelineFileProcess.AddsItsOwn 2>&1";
    processes.push_back(popen(command.c_str(), "r"));
    EXPECT_NE(processes.back(), nullptr);
  }
  for (int i = 0; i < kProcesses; ++i) EXPECT_TRUE(wait_for_file(signal_file(folder, std::to_string(i))));
  std::ofstream(signal_file(folder, "all")) << "go";
  for (FILE* process : processes) {
    if (process == nullptr) continue;
    std::string output;
    char part[512];
    while (const size_t bytes = std::fread(part, 1, sizeof part, process)) output.append(part, bytes);
    EXPECT_EQ(pclose(process), 0) << output;
  }
  return !fs::exists(signal_file(folder, "slow"));
}

TEST_F(PipelineFile, ProcessesAtOnce) {
  fs::path folder;
  bool quick = false;
  for (int attempt = 0; attempt < 20 && !quick && !HasFailure(); ++attempt) {
    folder = folder_ / std::to_string(attempt);
    fs::create_directory(folder);
    quick = processes_at_once(folder);
  }
  ASSERT_TRUE(quick) << "a save took " << kSlowSave.count() << " ms, each time";
  // A later process finds the additions of all of them.
  const Words found = Process(folder).words();
  for (int i = 0; i < kProcesses; ++i) {
    for (int round = 0; round < kRounds; ++round) {
      EXPECT_EQ(found.count(std::to_string(i) + "." + std::to_string(round)), 1u) << i << "." << round;
    }
  }
  EXPECT_EQ(found.size(), static_cast<size_t>(kProcesses * kRounds));
}

}  // namespace
}  // namespace tuff_test
