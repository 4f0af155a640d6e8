// Plug-ins: which are refused and why, and what a context of one does. The plug-ins are programs/plugin.c, each with
// another fault.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/harness.hpp"

namespace tuff_test::plugins_test {
namespace {

std::string plugin(const std::string& fault) { return std::string(TUFF_TEST_PLUGINS) + "/" + fault + ".so"; }

tuff_status open(const char* backend, const char* device, tuff_context& context) {
  tuff_context_desc desc{};
  desc.struct_size = sizeof desc;
  desc.backend = backend;
  desc.device = device;
  return tuff_context_create(&desc, &context);
}

// The names of all plug-ins.
std::vector<std::string> names() {
  uint32_t count = 0;
  EXPECT_OK(tuff_backend_count(&count));
  std::vector<std::string> result;
  for (uint32_t i = 0; i < count; ++i) {
    tuff_device_properties device{};
    device.struct_size = sizeof device;
    EXPECT_OK(tuff_backend_info(i, &device));
    result.emplace_back(device.backend);
    EXPECT_EQ(device.type, TUFF_DEVICE_HOST);
  }
  return result;
}

TEST(Plugins, FaultyOnesAreRefusedWithAReason) {
  struct Row {
    const char* fault;
    tuff_status status;
    const char* reason;
  };
  const Row rows[] = {
      {"NO_ENTRY", TUFF_ERROR_INVALID_ARGUMENT, "does not export tuff_backend_entry"},
      {"NULL_ENTRY", TUFF_ERROR_INVALID_ARGUMENT, "returned null"},
      {"OLD_ABI", TUFF_ERROR_UNSUPPORTED, "built for version 0"},
      {"SHORT", TUFF_ERROR_INVALID_ARGUMENT, "struct_size is 8"},
      {"NO_NAME", TUFF_ERROR_INVALID_ARGUMENT, "its name is null"},
      {"BAD_NAME", TUFF_ERROR_INVALID_ARGUMENT, "its name is \"Test plug-in!\""},
      {"OWN_NAME", TUFF_ERROR_INVALID_ARGUMENT, "\"vulkan\", which is Tuff's own"},
      {"NO_DESCRIBE", TUFF_ERROR_INVALID_ARGUMENT, "`describe` is null"},
      {"NO_FUNCTION", TUFF_ERROR_INVALID_ARGUMENT, "`function` is null"},
      {"ONE_OF_MEMORY", TUFF_ERROR_INVALID_ARGUMENT, "both or neither"},
      {"UNUSABLE", TUFF_ERROR_UNSUPPORTED, "it wants a blue processor"},
      {"NO_DEVICE_NAME", TUFF_ERROR_INVALID_ARGUMENT, "has no name"},
  };
  const std::vector<std::string> before = names();
  for (const Row& row : rows) {
    EXPECT_FAILS(tuff_backend_register(plugin(row.fault).c_str()), row.status, "tuff_backend_register", "path");
    EXPECT_NE(last_error().find(row.reason), std::string::npos) << row.fault << ": " << last_error();
  }
  EXPECT_EQ(names(), before);
}

TEST(Plugins, WhatIsNoLibraryIsRefused) {
  const std::string text = testing::TempDir() + "/libtuff-text.so";
  std::ofstream(text) << "no library\n";
  for (const std::string& path : {text, std::string("/nowhere/at/all.so"), std::string(), testing::TempDir()}) {
    EXPECT_FAILS(tuff_backend_register(path.c_str()), TUFF_ERROR_IO, "tuff_backend_register", "path");
  }
  std::filesystem::remove(text);
}

TEST(Plugins, AreListedAndChosenByNameOrDevice) {
  ASSERT_OK(tuff_backend_register(plugin("NONE").c_str()));
  ASSERT_OK(tuff_backend_register(plugin("NONE").c_str())) << "a second time does nothing";
  const std::vector<std::string> all = names();
  EXPECT_EQ(std::count(all.begin(), all.end(), "test"), 1);
  for (const auto& [backend, device] :
       {std::pair{"test", (const char*)nullptr}, {(const char*)nullptr, "OF THE TESTS"}}) {
    tuff_context context = 0;
    ASSERT_OK(open(backend, device, context));
    const tuff_device_properties properties = properties_of(context);
    EXPECT_STREQ(properties.name, "Plug-in of the tests");
    EXPECT_STREQ(properties.backend, "test");
    EXPECT_EQ(properties.compute_units, 3u);
    EXPECT_OK(tuff_context_destroy(context));
  }
  tuff_context context = 0;
  EXPECT_FAILS(open("teapot", nullptr, context), TUFF_ERROR_INVALID_ARGUMENT, "tuff_context_create", "backend");
  EXPECT_NE(last_error().find("\"test\""), std::string::npos) << last_error();
}

// Numbers and the beginnings of UUIDs are those of Vulkan devices, even if they are part of a plug-in's device's name.
TEST(Plugins, AreNotChosenByNumbers) {
  ASSERT_OK(tuff_backend_register(plugin("NO_MEMORY").c_str()));
  for (const char* device : {"2", "0000", "00000000", " ", "\t "}) {
    tuff_context context = 0;
    const tuff_status status = open(nullptr, device, context);
    if (status != TUFF_OK) {
      EXPECT_EQ(status, TUFF_ERROR_NO_DEVICE) << '"' << device << "\": " << last_error();
      continue;
    }
    EXPECT_STREQ(properties_of(context).backend, "vulkan") << '"' << device << '"';
    EXPECT_OK(tuff_context_destroy(context));
  }
  tuff_context context = 0;
  ASSERT_OK(open(nullptr, "processor 0000 @", context));
  EXPECT_STREQ(properties_of(context).backend, "test-memory");
  EXPECT_OK(tuff_context_destroy(context));
}

// What a program says whose library lies in this folder, and which wants an unknown backend.
std::string message_with_library_in(const std::filesystem::path& folder) {
  const std::string command =
      "timeout 120 '" + (folder / "child").string() + "' '" + (folder / "libtuff.so").string() + "' work teapot 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "it did not start";
  std::string text;
  char part[512];
  while (const size_t bytes = std::fread(part, 1, sizeof part, pipe)) text.append(part, bytes);
  EXPECT_NE(pclose(pipe), 0) << text;
  return text;
}

TEST(Plugins, OfAFolderThatOthersMayWriteToAreNotLoaded) {
  namespace fs = std::filesystem;
  const fs::path programs = fs::read_symlink("/proc/self/exe").parent_path();
  std::string pattern = testing::TempDir() + "/tuff-plugins-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path home = pattern, folder = home / "tuff-backends";
  fs::copy_file(programs / "libtuff.so", home / "libtuff.so");
  fs::copy_file(programs / "tuff_test_child", home / "child");
  fs::create_directory(folder);
  fs::copy_file(plugin("NONE"), folder / "libtuff-test.so");

  fs::permissions(folder, fs::perms::all);
  const std::string refused = message_with_library_in(home);
  EXPECT_NE(refused.find("there is none; refused: "), std::string::npos) << refused;
  EXPECT_NE(refused.find("tuff-backends: others may write to this folder"), std::string::npos) << refused;

  fs::permissions(folder, fs::perms::owner_all);
  const std::string loaded = message_with_library_in(home);
  EXPECT_NE(loaded.find("there are \"test\")"), std::string::npos) << loaded;

  fs::rename(folder, home / "elsewhere");
  fs::create_directory_symlink(home / "elsewhere", folder);
  const std::string link = message_with_library_in(home);
  EXPECT_NE(link.find("there is none; refused: "), std::string::npos) << link;
  fs::remove_all(home);
}

TEST(Plugins, TwoOfOneNameAreRefused) {
  ASSERT_OK(tuff_backend_register(plugin("NONE").c_str()));
  const std::string copy = testing::TempDir() + "/copy.so";
  std::filesystem::copy_file(plugin("NONE"), copy, std::filesystem::copy_options::overwrite_existing);
  EXPECT_FAILS(tuff_backend_register(copy.c_str()), TUFF_ERROR_INVALID_ARGUMENT, "tuff_backend_register", "named");
  std::filesystem::remove(copy);
}

class PluginContext {
 public:
  explicit PluginContext(const char* fault, const char* name) {
    EXPECT_OK(tuff_backend_register(plugin(fault).c_str()));
    EXPECT_OK(open(name, nullptr, context_));
  }
  ~PluginContext() { EXPECT_OK(tuff_context_destroy(context_)); }
  operator tuff_context() const { return context_; }  // NOLINT(google-explicit-constructor)

 private:
  tuff_context context_ = 0;
};

// The plug-in computes what it can, Tuff the rest, on the plug-in's memory.
TEST(Plugins, ComputeWhatTheyCan) {
  {
    const PluginContext context("NONE", "test");
    const float x[4] = {-1, 2, -3, 4};
    float y[4] = {};
    const OwnBuffer buffer(context, sizeof x);
    ASSERT_OK(tuff_copy_dtoh(context, y, buffer, 0, sizeof y));
    for (const float value : y) EXPECT_EQ(value, 0) << "new buffers are zero";
    ASSERT_OK(tuff_copy_htod(context, buffer, 0, x, sizeof x));
    ASSERT_OK(tuff_unary(context, TUFF_F32, TUFF_UNARY_RELU, buffer, buffer, 4));
    ASSERT_OK(tuff_copy_dtoh(context, y, buffer, 0, sizeof y));
    EXPECT_EQ(y[0], 42);
    EXPECT_EQ(y[1], 2);
    ASSERT_OK(tuff_unary(context, TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 4));
    ASSERT_OK(tuff_binary(context, TUFF_F32, TUFF_BINARY_ADD, buffer, buffer, buffer, 4));
    ASSERT_OK(tuff_copy_dtoh(context, y, buffer, 0, sizeof y));
    EXPECT_EQ(y[0], -84);
    EXPECT_EQ(y[3], -8);
    // Checks come first, and are Tuff's.
    EXPECT_FAILS(tuff_unary(context, TUFF_F32, TUFF_UNARY_RELU, buffer, buffer, 5), TUFF_ERROR_INVALID_ARGUMENT,
                 "tuff_unary", "input");
  }
  void* library = dlopen(plugin("NONE").c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto* live_bytes = static_cast<const int64_t*>(dlsym(library, "plugin_live_bytes"));
  ASSERT_NE(live_bytes, nullptr) << dlerror();
  EXPECT_EQ(*live_bytes, 0) << "all memory went back to the plug-in";
  dlclose(library);
}

// What a plug-in returns for a call is the caller's error only if it says so.
TEST(Plugins, FailuresOfCallsAreReported) {
  {
    const PluginContext context("NO_MEMORY", "test-memory");
    const OwnBuffer buffer(context, 16);
    EXPECT_FAILS(tuff_unary(context, TUFF_F32, TUFF_UNARY_RELU, buffer, buffer, 4), TUFF_ERROR_OUT_OF_HOST_MEMORY,
                 "tuff_unary", "unary");
  }
  {
    const PluginContext context("WRONG_STATUS", "test-status");
    const OwnBuffer buffer(context, 16);
    EXPECT_FAILS(tuff_unary(context, TUFF_F32, TUFF_UNARY_RELU, buffer, buffer, 4), TUFF_ERROR_INTERNAL, "tuff_unary",
                 "unary");
    EXPECT_OK(tuff_unary(context, TUFF_F32, TUFF_UNARY_RELU, buffer, buffer, 0)) << "nothing to compute: not asked";
  }
  ASSERT_OK(tuff_backend_register(plugin("NO_OPEN_DEVICE").c_str()));
  tuff_context context = 0;
  EXPECT_FAILS(open("test-open", nullptr, context), TUFF_ERROR_UNSUPPORTED, "tuff_context_create", "open");
}

}  // namespace
}  // namespace tuff_test::plugins_test
