// tuff_startup: how long a new process takes to its first result, compared with the driver alone.
//
// Every figure is the time from just before a process is started until it has its result:
//   driver   dlopen libvulkan, an instance, a device with one queue: the unavoidable part
//   cold     libtuff.so, a context, upload, gemm and download, with an empty disk cache
//   warm     the same in the next process, with the cache that the first one left
// It also reports how long a program waits for its first results from a dozen kernels, half a second after opening its
// context, with and without TUFF_PREWARM: once with only the list of kernels known and nothing compiled (as after a
// driver update), once with everything compiled. The program starts itself as a child for each figure; --library loads
// another libtuff.so.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tuff/tuff.h"

extern char** environ;

namespace {

// The system's monotonic clock, which parent and child share.
double now_seconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

// Reports to the parent that the result is there.
void report_time() {
  fmt::print("{:.9f}\n", now_seconds());
  std::fflush(stdout);
}

void* open_library(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

// --- the driver alone -------------------------------------------------------------------------------

void start_driver(size_t index) {
  void* loader = open_library("libvulkan.so.1");
  const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
  const auto create_instance = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo instance_info{};
  instance_info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  instance_info.pApplicationInfo = &application;
  VkInstance instance = VK_NULL_HANDLE;
  require(create_instance(&instance_info, nullptr, &instance) == VK_SUCCESS, "vkCreateInstance failed");

  const auto enumerate = reinterpret_cast<PFN_vkEnumeratePhysicalDevices>(get(instance, "vkEnumeratePhysicalDevices"));
  uint32_t count = 0;
  enumerate(instance, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  enumerate(instance, &count, devices.data());
  require(index < count, "the driver shows no such device");

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo device_info{};
  device_info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  device_info.queueCreateInfoCount = 1;
  device_info.pQueueCreateInfos = &queue;
  VkDevice device = VK_NULL_HANDLE;
  const auto create_device = reinterpret_cast<PFN_vkCreateDevice>(get(instance, "vkCreateDevice"));
  require(create_device(devices[index], &device_info, nullptr, &device) == VK_SUCCESS, "vkCreateDevice failed");
  report_time();
}

// --- Tuff to its first result -----------------------------------------------------------------------

template <class Function>
Function symbol(void* library, const char* name, Function) {
  const auto function = reinterpret_cast<Function>(dlsym(library, name));
  require(function != nullptr, name);
  return function;
}
#define TUFF_SYMBOL(name) const auto name = symbol(library, "tuff_" #name, &tuff_##name)

void start_tuff(const std::string& path) {
  void* library = open_library(path);
  TUFF_SYMBOL(context_create);
  TUFF_SYMBOL(context_destroy);
  TUFF_SYMBOL(alloc);
  TUFF_SYMBOL(copy_htod);
  TUFF_SYMBOL(gemm);
  TUFF_SYMBOL(copy_dtoh);

  constexpr uint64_t kSize = 64, kCount = kSize * kSize, kBytes = 4 * kCount;
  tuff_context context = 0;
  tuff_buffer a = 0, b = 0, c = 0;
  require(context_create(nullptr, &context) == TUFF_OK, "tuff_context_create failed");
  for (tuff_buffer* buffer : {&a, &b, &c}) require(alloc(context, kBytes, buffer) == TUFF_OK, "tuff_alloc failed");
  const std::vector<float> ones(kCount, 1.0f);
  require(copy_htod(context, a, 0, ones.data(), kBytes) == TUFF_OK, "tuff_copy_htod failed");
  require(copy_htod(context, b, 0, ones.data(), kBytes) == TUFF_OK, "tuff_copy_htod failed");
  require(gemm(context, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, kSize, kSize, kSize, 1, a, kSize, b, kSize, 0, c,
               kSize) == TUFF_OK,
          "tuff_gemm failed");
  std::vector<float> result(kCount);
  require(copy_dtoh(context, result.data(), c, 0, kBytes) == TUFF_OK, "tuff_copy_dtoh failed");
  report_time();
  require(std::all_of(result.begin(), result.end(), [](float x) { return x == kSize; }), "the result is wrong");
  // Drivers write their own caches in a thread of the lowest priority: give it the time that a longer-running program
  // would have given it.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  require(context_destroy(context) == TUFF_OK, "tuff_context_destroy failed");
}

// --- a program of a dozen kernels --------------------------------------------------------------------

// Prints how long it waited.
void start_kernels(const std::string& path) {
  void* library = open_library(path);
  TUFF_SYMBOL(context_create);
  TUFF_SYMBOL(context_destroy);
  TUFF_SYMBOL(alloc);
  TUFF_SYMBOL(gemm);
  TUFF_SYMBOL(unary);
  TUFF_SYMBOL(binary);
  TUFF_SYMBOL(synchronize);

  constexpr uint64_t kSize = 64, kCount = kSize * kSize, kBytes = 4 * kCount;
  tuff_context context = 0;
  tuff_buffer a = 0, b = 0;
  require(context_create(nullptr, &context) == TUFF_OK, "tuff_context_create failed");
  for (tuff_buffer* buffer : {&a, &b}) require(alloc(context, kBytes, buffer) == TUFF_OK, "tuff_alloc failed");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // stands for a program that reads its weights
  const double begin = now_seconds();
  for (const int32_t op : {TUFF_UNARY_RELU, TUFF_UNARY_SIGMOID, TUFF_UNARY_TANH, TUFF_UNARY_EXP, TUFF_UNARY_ABS,
                           TUFF_UNARY_NEG, TUFF_UNARY_GELU, TUFF_UNARY_SILU}) {
    require(unary(context, TUFF_F32, op, a, b, kCount) == TUFF_OK, "tuff_unary failed");
  }
  for (const int32_t op : {TUFF_BINARY_ADD, TUFF_BINARY_SUB, TUFF_BINARY_MUL, TUFF_BINARY_MAX}) {
    require(binary(context, TUFF_F32, op, a, a, b, kCount) == TUFF_OK, "tuff_binary failed");
  }
  require(gemm(context, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, kSize, kSize, kSize, 1, a, kSize, a, kSize, 0, b,
               kSize) == TUFF_OK,
          "tuff_gemm failed");
  require(synchronize(context) == TUFF_OK, "tuff_synchronize failed");
  fmt::print("{:.9f}\n", now_seconds() - begin);
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  require(context_destroy(context) == TUFF_OK, "tuff_context_destroy failed");
}

// Removes Tuff's and the driver's compiled kernels, but not the list of them.
void forget_kernels(const std::filesystem::path& cache) {
  for (const auto& entry : std::filesystem::directory_iterator(cache)) {
    if (entry.path().filename() != "tuff") std::filesystem::remove_all(entry.path());
  }
  for (const auto& entry : std::filesystem::directory_iterator(cache / "tuff")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("spirv-") || name.starts_with("pipelines-")) std::filesystem::remove(entry.path());
  }
}

// --- parent -----------------------------------------------------------------------------------------

// Starts this program as a child and returns the number it prints.
double run_child(const char* self, const char* mode, const std::string& argument) {
  int ends[2];
  require(pipe2(ends, O_CLOEXEC) == 0, "pipe2 failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string words[] = {self, mode, argument};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  require(failed == 0, "posix_spawn failed");
  char text[64] = {};
  const bool answered = read(ends[0], text, sizeof text - 1) > 0;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  require(answered && status == 0, "a child process failed; its message is above");
  return std::atof(text);
}

// The seconds from the child's start to its result.
double timed_child(const char* self, const char* mode, const std::string& argument) {
  const double begin = now_seconds();
  return run_child(self, mode, argument) - begin;
}

int child(const std::string& mode, const std::string& argument) {
  if (mode == "--child-driver") {
    start_driver(static_cast<size_t>(std::atoi(argument.c_str())));
  } else if (mode == "--child-kernels") {
    start_kernels(argument);
  } else {
    start_tuff(argument);
  }
  return 0;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

constexpr const char* kHelp =
    R"(Usage: tuff_startup [--library PATH] [--driver-device N] [--runs N] [--json]
The time that a new process takes to its first result, compared with that of the driver alone.

  --library PATH      the libtuff.so to load (default: the one built beside this program)
  --driver-device N   which of the driver's devices to open for comparison (default: 0); TUFF_DEVICE chooses Tuff's
  --runs N            processes of each kind; the medians are shown (default: 7)
  --json              JSON on stdout
)";

int parent(int argc, char** argv) {
  std::string library = TUFF_STARTUP_LIBRARY, device = "0";
  int runs = 7;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const bool has_value = i + 1 < argc;
    if (option == "--library" && has_value) {
      library = argv[++i];
    } else if (option == "--driver-device" && has_value) {
      device = argv[++i];
    } else if (option == "--runs" && has_value) {
      runs = std::max(1, std::atoi(argv[++i]));
    } else if (option == "--json") {
      json = true;
    } else {
      const bool help = option == "--help" || option == "-h";
      fmt::print(help ? stdout : stderr, "{}{}", help ? "" : "error: unknown option " + option + "\n\n", kHelp);
      return help ? 0 : 2;
    }
  }

  // A private cache, so that cold is really cold and the user's cache is not touched.
  std::string cache = (std::filesystem::temp_directory_path() / "tuff-startup-XXXXXX").string();
  require(mkdtemp(cache.data()) != nullptr, "cannot create a temporary folder");
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  std::vector<double> driver, cold, warm, kernels[2][2];  // [compiled before][prewarmed]
  for (int run = 0; run < runs; ++run) {
    driver.push_back(timed_child(argv[0], "--child-driver", device));
    for (const auto& entry : std::filesystem::directory_iterator(cache)) std::filesystem::remove_all(entry.path());
    cold.push_back(timed_child(argv[0], "--child-tuff", library));
    warm.push_back(timed_child(argv[0], "--child-tuff", library));
    run_child(argv[0], "--child-kernels", library);
    for (const bool compiled : {false, true}) {
      for (const bool prewarmed : {false, true}) {
        if (!compiled) forget_kernels(cache);
        setenv("TUFF_PREWARM", prewarmed ? "1" : "0", 1);
        kernels[compiled][prewarmed].push_back(run_child(argv[0], "--child-kernels", library));
      }
    }
    unsetenv("TUFF_PREWARM");
  }
  std::filesystem::remove_all(cache);

  const double base = median(driver) * 1e3, first = median(cold) * 1e3, second = median(warm) * 1e3;
  const auto waited = [&](bool compiled, bool prewarmed) { return median(kernels[compiled][prewarmed]) * 1e3; };
  if (json) {
    fmt::print(
        "{{\"driver_ms\": {:.2f}, \"cold_ms\": {:.2f}, \"warm_ms\": {:.2f}, \"warm_beyond_driver_ms\": {:.2f}, "
        "\"kernels_new_ms\": {:.2f}, \"kernels_new_prewarmed_ms\": {:.2f}, \"kernels_ms\": {:.2f}, "
        "\"kernels_prewarmed_ms\": {:.2f}}}\n",
        base, first, second, second - base, waited(false, false), waited(false, true), waited(true, false),
        waited(true, true));
    return 0;
  }
  fmt::print("From process start to the first result, median of {}:\n\n", runs);
  fmt::print("  {:<34}{:>9.1f} ms\n", "driver alone: instance and device", base);
  fmt::print("  {:<34}{:>9.1f} ms{:>12.1f} ms beyond the driver\n", "Tuff, empty disk cache", first, first - base);
  fmt::print("  {:<34}{:>9.1f} ms{:>12.1f} ms beyond the driver\n", "Tuff, second process", second, second - base);
  fmt::print("\nThe wait for the first results of 13 kernels, half a second after the context was opened:\n\n");
  fmt::print("  {:<34}{:>9.1f} ms{:>12.1f} ms prewarmed\n", "nothing compiled", waited(false, false),
             waited(false, true));
  fmt::print("  {:<34}{:>9.1f} ms{:>12.1f} ms prewarmed\n", "all compiled before", waited(true, false),
             waited(true, true));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::strncmp(argv[1], "--child-", 8) == 0) return child(argv[1], argv[2]);
    return parent(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
