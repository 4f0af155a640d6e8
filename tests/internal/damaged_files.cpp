// Reads randomly damaged files of the cache folder, and uses the cache on disks that are full or read-only, and in two
// processes at once.
//
//   tuff_damaged_files [--count n] [--rounds n] [--seed n]
//
// The readers get --count damaged inputs: entries of the cache, lists of kernels, tuning tables, compiled kernels,
// names. Half of the inputs with a checksum get a repaired one, so that the data after it is read too. A reader must
// return what was stored, or valid data, or nothing; it must never end the process. Then --rounds of stores and loads
// use a full disk, a file that may not grow, and paths that are not folders; and as many are made by two processes in
// one folder.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <sched.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "planning/tuning_table.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/vulkan/disk_cache.hpp"
#include "runtime/vulkan/kernel_list.hpp"
#include "shaders.hpp"
#include "support/options.hpp"

namespace tuff_test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Random = std::mt19937_64;
using Bytes = std::vector<std::byte>;

int problems = 0;
template <typename... Args>
void problem(const char* format, Args... args) {
  if (++problems <= 20) std::printf(format, args...), std::printf("\n"), std::fflush(stdout);
}

// A folder that is removed with its contents.
class Folder {
 public:
  Folder() {
    const char* const memory = "/dev/shm";  // in memory, because a million files are written
    std::string pattern = (access(memory, W_OK) == 0 ? memory : fs::temp_directory_path().string()) + "/tuff-XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path path;
};

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_all(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}
Bytes bytes_of(const std::string& text) {
  Bytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}
fs::path only_file(const fs::path& folder) { return fs::directory_iterator(folder)->path(); }

// --- damage -------------------------------------------------------------------------------------------------

std::string damaged(std::string text, Random& random, const std::vector<std::string>& words) {
  for (uint64_t times = 1 + random() % 4; times > 0; --times) {
    const size_t at = text.empty() ? 0 : random() % text.size();
    const uint64_t number = random();
    switch (number % 12) {
      case 0:
      case 1:
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ 1 << (number >> 8) % 8);
        break;
      case 2:
        if (!text.empty()) text[at] = static_cast<char>(number >> 8);
        break;
      case 3: text.resize(at); break;
      case 4: text.append((number >> 8) % 100, static_cast<char>(number >> 16)); break;
      case 5: text.erase(at, (number >> 8) % 40); break;
      case 6: text.insert(at, text.substr(at, (number >> 8) % 60)); break;
      case 7:
      case 8: text.insert(at, words[(number >> 8) % words.size()]); break;
      case 9: {
        const std::string& word = words[(number >> 8) % words.size()];
        text.replace(at, std::min(word.size(), text.size() - at), word);
        break;
      }
      case 10: {  // overwrites a number of 4 or 8 bytes
        static constexpr uint64_t kNumbers[] = {0,          1,          ~0ull,      ~0ull >> 1, 1ull << 63,
                                                1ull << 32, 0xffffffff, 0x7fffffff, 1ull << 20, 64ull << 20};
        const uint64_t value = kNumbers[(number >> 8) % 10];
        const size_t size = (number >> 16) % 2 != 0 ? 8 : 4;
        if (at + size <= text.size()) std::memcpy(text.data() + at, &value, size);
        break;
      }
      default:  // changes a digit
        for (size_t i = at; i < text.size(); ++i) {
          if (text[i] < '0' || text[i] > '9') continue;
          text[i] = static_cast<char>('0' + (number >> 8) % 10);
          break;
        }
    }
  }
  return text;
}

const std::vector<std::string> kWords = {"\n",
                                         " ",
                                         "=",
                                         ":",
                                         "-",
                                         "0",
                                         "999999999999999999999",
                                         "-9223372036854775808",
                                         "kernels 3\n",
                                         "4294967295",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         "\"",
                                         ",",
                                         "null",
                                         "1e308",
                                         "-1",
                                         "0.5",
                                         "true",
                                         "\\u0000",
                                         "\xff\xfe",
                                         std::string(1, '\0'),
                                         std::string(300, '['),
                                         std::string(300, '{'),
                                         std::string(80, 'A'),
                                         std::string(5000, '7'),
                                         "\"sizes\":",
                                         "512",
                                         "\"variant\"",
                                         "\"choices\"",
                                         "\"devices\"",
                                         "gemm",
                                         "TUFF_WORDS=",
                                         "binding_probe "};

// Makes the length, the checksum and, if wanted, the seal match the contents.
bool repair(std::string& file, bool seal) {
  constexpr uint64_t kSeed = 0x5441'4b45'4e20'6f6b;  // as in disk_cache.cpp
  tuff::CacheHeader header;
  if (file.size() < sizeof header) return false;
  std::memcpy(&header, file.data(), sizeof header);
  header.payload_bytes = file.size() - sizeof header;
  header.checksum = XXH3_64bits(file.data() + sizeof header, file.size() - sizeof header);
  if (seal) header.seal = XXH3_64bits_withSeed(&header, offsetof(tuff::CacheHeader, seal), kSeed);
  std::memcpy(file.data(), &header, sizeof header);
  return true;
}

// --- readers ------------------------------------------------------------------------------------------------

std::array<uint8_t, 16> driver() {
  std::array<uint8_t, 16> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i + 1);
  return bytes;
}

class Entries {
 public:
  Entries() : cache_(driver(), folder_.path) {
    cache_.store("spirv", kKey, payload_, tuff::DiskCache::Seal::sealed);
    file_ = only_file(folder_.path);
    whole_ = read_all(file_);
  }
  void damage(Random& random) {
    std::string text = damaged(whole_, random, kWords);
    const bool repaired = random() % 2 == 0 && repair(text, random() % 2 == 0);
    write_all(file_, text);
    bool sealed = false;
    const auto loaded = cache_.load("spirv", kKey, &sealed);
    const auto taken = cache_.load_sealed("spirv", kKey);
    const std::string payload = text.size() > sizeof(tuff::CacheHeader) ? text.substr(sizeof(tuff::CacheHeader)) : "";
    if (loaded && *loaded != bytes_of(payload)) problem("an entry returns data that it does not contain");
    if (loaded && !repaired && *loaded != payload_) problem("a damaged entry is read");
    if (taken && (!loaded || !sealed || *taken != *loaded)) problem("an entry without a seal is accepted");
    read_ += loaded.has_value();
    // A damaged entry can always be replaced.
    if (random() % 64 != 0) return;
    cache_.store("spirv", kKey, payload_, tuff::DiskCache::Seal::sealed);
    if (cache_.load_sealed("spirv", kKey) != payload_) problem("an entry cannot be replaced");
    if (random() % 8 != 0) return;
    tuff::trim_cache(folder_.path, 1 + random() % 5000, 1);
    tuff::list_cache(folder_.path);
  }
  uint64_t read() const { return read_; }

 private:
  static constexpr tuff::CacheKey kKey{7, 9};
  Folder folder_;
  tuff::DiskCache cache_;
  Bytes payload_ = bytes_of(std::string(200, 'x') + "some words" + std::string(90, '\0'));
  fs::path file_;
  std::string whole_;
  uint64_t read_ = 0;
};

class Lists {
 public:
  Lists() {
    tuff::KernelList list = this->list();
    for (int64_t i = 0; i < 5; ++i) {
      tuff::KernelRequest request(tuff::shaders::binding_probe);
      request.define("TUFF_WORDS", i).define("TUFF_OTHER", -5).constant(3, 0xffffffff).wide(true);
      list.add(tuff::kernel_line(request, {2, i % 2 == 0}));
    }
    list.save();
    file_ = only_file(folder_.path);
    for (const auto& entry : fs::directory_iterator(folder_.path)) {
      if (entry.path().extension() == ".bin") file_ = entry.path();
    }
    whole_ = read_all(file_);
  }
  void damage(Random& random) {
    std::string text =
        whole_.substr(0, sizeof(tuff::CacheHeader)) + damaged(whole_.substr(sizeof(tuff::CacheHeader)), random, kWords);
    if (random() % 8 != 0) repair(text, false);
    write_all(file_, text);
    tuff::KernelList list = this->list();
    const std::vector<tuff::ListedKernel> kernels = list.load();
    if (kernels.size() > tuff::KernelList::kMaxKernels) problem("a list has %zu kernels", kernels.size());
    for (const tuff::ListedKernel& kernel : kernels) {
      ++read_;
      const bool fits = kernel.kernel.define_count() <= tuff::KernelRequest::kMaxDefines &&
                        kernel.kernel.constant_count() <= tuff::KernelRequest::kMaxConstants &&
                        kernel.form.operands <= tuff::Dispatch::kMaxSlots;
      if (!fits || tuff::kernel_line(kernel.kernel, kernel.form).empty()) problem("a list contains an invalid kernel");
    }
    if (random() % 64 != 0) return;
    list.add(tuff::kernel_line(tuff::KernelRequest(tuff::shaders::binding_probe).define("TUFF_WORDS", 77), {1, true}));
    list.save();
    const auto after = this->list().load();
    const bool there = std::any_of(after.begin(), after.end(), [](const tuff::ListedKernel& kernel) {
      return kernel.line.find("TUFF_WORDS=77") != std::string::npos;
    });
    if (!there) problem("to a damaged list nothing can be added");
  }
  uint64_t read() const { return read_; }

 private:
  tuff::KernelList list() const { return tuff::KernelList(tuff::DiskCache({}, folder_.path), "device"); }
  Folder folder_;
  fs::path file_;
  std::string whole_;
  uint64_t read_ = 0;
};

class Tables {
 public:
  void damage(Random& random) {
    const std::string text = damaged(kTable, random, kWords);
    try {
      const tuff::TuningTable table(text, {"00ff", "a device", "a driver 1.2", 7, "0.2.0"});
      ++read_;
      tuff::TuningKey key("gemm");
      key.word("nn f32 f32 f32").size(512).size(512).size(512).size(1);
      if (const tuff::TunedChoice* choice = table.find(key); choice != nullptr) {
        if (choice->slices > tuff::TuningTable::kMaxSlices) problem("a table has %u slices", choice->slices);
      }
    } catch (const tuff::TuningError& error) {
      if (std::strlen(error.what()) == 0) problem("a table is refused without a word");
    } catch (const std::exception& error) {
      problem("a table is refused by %s", error.what());
    }
  }
  uint64_t read() const { return read_; }

 private:
  const std::string kTable =
      R"({"tuff_tuning": 1, "devices": [{"uuid": "00ff", "name": "a device", "driver": "a driver 1.2", )"
      R"("driver_version": 7, "library": "0.2.0", "choices": [{"operation": "gemm", "form": "nn f32 f32 f32", )"
      R"("sizes": [512, 512, 512, 1], "variant": "tile_64x64", "slices": 2}, {"operation": "gemm", )"
      R"("form": "nt f16 f16 f16", "sizes": [64, 64, 64, 3], "variant": "wide"}]}]})";
  uint64_t read_ = 0;
};

// Compiled kernels as stored in the cache, and the messages to and from the program that compiles untrusted source.
class Wire {
 public:
  Wire() {
    tuff::CustomSource source;
    source.name = "a.comp", source.entry = "main";
    sources_ = tuff::to_bytes(source);
    tuff::CompiledKernel kernel;
    kernel.words = {0x07230203, 0x00010300, 0, 10, 0, 0x00020011, 1};
    kernels_ = tuff::to_bytes(kernel);
    tuff::DriverTrial trial;
    trial.name = "a", trial.entry = "main", trial.words = kernel.words;
    trials_ = tuff::to_bytes(trial);
  }
  void damage(Random& random) {
    const auto back = [&](const std::string& whole, auto value) {
      const std::string text = damaged(whole, random, kWords);
      if (!tuff::from_bytes(text, value)) return;
      ++read_;
      if (tuff::to_bytes(value).size() != text.size()) problem("%zu bytes are read as others", text.size());
    };
    switch (random() % 4) {
      case 0: return back(sources_, tuff::CustomSource());
      case 1: return back(kernels_, tuff::CompiledKernel());
      case 2: return back(trials_, tuff::DriverTrial());
      default: {
        const std::string name = damaged("spirv-0102030405060708-00000000000000070000000000000009.bin", random, kWords);
        if (const auto parsed = tuff::parse_cache_name(name)) {
          ++read_;
          if (tuff::cache_name(*parsed) != name) problem("%s is read as another name", name.c_str());
        }
        tuff::parse_cache_bytes(damaged("256M", random, kWords));
        try {
          tuff::spirv_from_bytes(damaged(kernels_, random, kWords));
        } catch (const tuff::Error&) {
        }
      }
    }
  }
  uint64_t read() const { return read_; }

 private:
  std::string sources_, kernels_, trials_;
  uint64_t read_ = 0;
};

void damage_files(uint64_t count, Random& random) {
  Entries entries;
  Lists lists;
  Tables tables;
  Wire wire;
  for (uint64_t i = 0; i < count && problems == 0; ++i) {
    switch (random() % 4) {
      case 0: entries.damage(random); break;
      case 1: lists.damage(random); break;
      case 2: tables.damage(random); break;
      default: wire.damage(random); break;
    }
  }
  std::printf(
      "%llu damaged inputs; taken all the same: %llu entries, %llu kernels of lists, %llu tables, %llu others\n",
      static_cast<unsigned long long>(count), static_cast<unsigned long long>(entries.read()),
      static_cast<unsigned long long>(lists.read()), static_cast<unsigned long long>(tables.read()),
      static_cast<unsigned long long>(wire.read()));
  if (count < 10'000) return;
  if (entries.read() == 0 || lists.read() == 0 || tables.read() == 0 || wire.read() == 0) problem("no reader read");
}

// --- disks --------------------------------------------------------------------------------------------------

// A payload that contains its key and a checksum, so that says() can tell whether loaded data is complete.
Bytes payload_for(uint64_t key, Random& random) {
  std::string text(16 + random() % 20'000, static_cast<char>(random()));
  std::memcpy(text.data(), &key, sizeof key);
  const uint64_t sum = XXH3_64bits(text.data() + 16, text.size() - 16);
  std::memcpy(text.data() + 8, &sum, sizeof sum);
  return bytes_of(text);
}
bool says(const Bytes& bytes, uint64_t key) {
  if (bytes.size() < 16) return false;
  uint64_t numbers[2];
  std::memcpy(numbers, bytes.data(), sizeof numbers);
  return numbers[0] == key && numbers[1] == XXH3_64bits(bytes.data() + 16, bytes.size() - 16);
}

// Returns how many entries could be read.
uint64_t use(const std::optional<fs::path>& folder, uint64_t bound, uint64_t rounds, Random& random, bool lists) {
  const tuff::DiskCache cache(driver(), folder, bound);
  uint64_t found = 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    const uint64_t key = random() % 12;
    const tuff::CacheKey name{key, 1};
    switch (random() % 8) {
      case 0:
      case 1: {
        const auto seal = random() % 2 == 0 ? tuff::DiskCache::Seal::sealed : tuff::DiskCache::Seal::none;
        cache.store("kernel", name, payload_for(key, random), seal);
        break;
      }
      case 2:
        if (const auto loaded = cache.load("kernel", name)) cache.seal("kernel", name, *loaded);
        break;
      case 3: cache.remove("kernel", name); break;
      case 4:
        if (!lists || i % 16 != 0) break;
        {
          tuff::KernelList list(cache, "device");
          list.add(tuff::kernel_line(tuff::KernelRequest(tuff::shaders::binding_probe)
                                         .define("TUFF_WORDS", static_cast<int64_t>(random() % 64)),
                                     {1, true}));
          list.save();
          list.load();
        }
        break;
      default: {
        const auto loaded = random() % 2 == 0 ? cache.load("kernel", name) : cache.load_sealed("kernel", name);
        if (loaded && !says(*loaded, key)) problem("entry %llu is torn", static_cast<unsigned long long>(key));
        found += loaded.has_value();
      }
    }
  }
  return found;
}

// Runs the work in a process that exits with the number of its problems.
template <typename Work>
pid_t in_a_process(const Work& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child != 0) return child;
  problems = 0;
  work();
  std::fflush(stdout);
  _exit(std::min(problems, 100));
}
void expect_well(pid_t child, const char* what) {
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) problem("%s: the process ends with %d", what, status);
}

void full_and_read_only(uint64_t rounds, uint64_t seed) {
  const Folder folder;
  Random random(seed);
  // A separate file system of 40 KiB, if this process may mount one.
  expect_well(in_a_process([&] {
                const bool mounted = unshare(CLONE_NEWNS) == 0 &&
                                     mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                                     mount("tuff", folder.path.c_str(), "tmpfs", 0, "size=40k") == 0;
                if (!mounted) {
                  std::printf("a full disk: not tried, no file system can be mounted here\n");
                  return;
                }
                const uint64_t found = use(folder.path, 64 << 20, rounds, random, true);
                std::printf("a full disk: %llu entries were read\n", static_cast<unsigned long long>(found));
                if (found == 0 && rounds > 1000) problem("nothing could be kept on a small disk");
                const bool fixed = mount("tuff", folder.path.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
                if (!fixed) return problem("the disk cannot be made read-only");
                const uint64_t kept = use(folder.path, 64 << 20, rounds, random, true);
                std::printf("a read-only disk: %llu entries were read\n", static_cast<unsigned long long>(kept));
              }),
              "a full disk");
  expect_well(in_a_process([&] {
                signal(SIGXFSZ, SIG_IGN);
                const rlimit limit{6000, 6000};
                setrlimit(RLIMIT_FSIZE, &limit);
                const uint64_t found = use(folder.path, 64 << 20, rounds, random, true);
                std::printf("files of 6,000 bytes at most: %llu entries were read\n",
                            static_cast<unsigned long long>(found));
                if (found == 0 && rounds > 1000) problem("nothing could be kept in small files");
              }),
              "files that may not grow");
  for (const auto& entry : tuff::list_cache(folder.path).entries) {
    if (!entry.whole) problem("a part of a file has been left");
  }
  for (const auto& entry : fs::directory_iterator(folder.path)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".bin") && !name.ends_with(".lock")) problem("%s was left behind", name.c_str());
  }
  const fs::path file = folder.path / "file";
  write_all(file, "no folder");
  std::error_code ignored;
  fs::create_directory_symlink(folder.path / "nowhere", folder.path / "link", ignored);
  for (const fs::path& path : {file, fs::path("/proc/self"), fs::path("/proc/self/nothing"), folder.path / "link",
                               fs::path("/dev/null"), folder.path / std::string(300, 'n'), fs::path()}) {
    expect_well(in_a_process([&] {
                  fs::current_path(folder.path);  // the folder that the empty path refers to
                  use(path, 64 << 20, rounds / 10, random, true);
                }),
                path.c_str());
  }
  expect_well(in_a_process([&] { use(std::nullopt, 64 << 20, rounds / 10, random, true); }), "no folder");
}

template <typename Work>
void in_two_processes(const char* what, const Work& work) {
  const pid_t first = in_a_process([&] { work(1); }), second = in_a_process([&] { work(2); });
  expect_well(first, what);
  expect_well(second, what);
}

void race(uint64_t rounds, uint64_t seed) {
  const Folder entries, lists;
  in_two_processes("two processes", [&](uint64_t process) {
    Random random(seed + process);
    // A small limit, so that each process removes entries of the other.
    const uint64_t found = use(entries.path, 100'000, rounds, random, true);
    if (found == 0 && rounds > 1000) problem("nothing was found");
  });
  const auto list = [&] { return tuff::KernelList(tuff::DiskCache({}, lists.path), "both"); };
  in_two_processes("two lists", [&](uint64_t process) {
    for (int64_t line = 0; line < 50; ++line) {
      tuff::KernelList mine = list();
      mine.add(tuff::kernel_line(tuff::KernelRequest(tuff::shaders::binding_probe)
                                     .define("TUFF_WORDS", line)
                                     .define("TUFF_OTHER", static_cast<int64_t>(process)),
                                 {1, true}));
      mine.save();
    }
  });
  const size_t kernels = list().load().size();
  if (kernels != 100) problem("two processes have added 100 kernels, the list has %zu", kernels);
}

int run(uint64_t count, uint64_t rounds, uint64_t seed) {
  std::printf("--seed %llu\n", static_cast<unsigned long long>(seed));
  const auto start = Clock::now();
  Random random(seed);
  damage_files(count, random);
  full_and_read_only(rounds, random());
  race(rounds, random());
  std::printf("%llu damaged inputs, %llu rounds on each disk and by each process, %.0f s, %d problems\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(rounds),
              std::chrono::duration<double>(Clock::now() - start).count(), problems);
  return problems == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tuff_test

int main(int count, char** words) {
  uint64_t inputs = 20'000, rounds = 2'000, seed = std::random_device()();
  tuff_test::parse_options(count, words, 1, "usage: tuff_damaged_files [--count n] [--rounds n] [--seed n]\n",
                           {{"--count", &inputs}, {"--rounds", &rounds}, {"--seed", &seed}});
  return tuff_test::run(inputs, rounds, seed);
}
