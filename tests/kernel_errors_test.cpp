// Custom kernels that are refused, with what the message has to name, and malicious source.
#include <chrono>
#include <cstdlib>
#include <span>

#include "support/kernel.hpp"
#include "support/spirv_hostile_words.hpp"
#include "support/spirv_module_words.hpp"

namespace tuff_test::kernel_errors_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kHandle = TUFF_ERROR_INVALID_HANDLE,
                      kUnsupported = TUFF_ERROR_UNSUPPORTED, kLimit = TUFF_ERROR_LIMIT_EXCEEDED,
                      kCompile = TUFF_ERROR_COMPILE_FAILED;
constexpr const char* kCreate = "tuff_kernel_create";
constexpr const char* kLaunch = "tuff_kernel_launch";

class KernelErrors : public OnVulkan {
 protected:
  tuff_status create(const tuff_kernel_desc& desc) {
    tuff_kernel kernel = 77;
    const tuff_status status = tuff_kernel_create(context(), &desc, &kernel);
    if (status == TUFF_OK) {
      EXPECT_OK(tuff_kernel_destroy(kernel));
    } else {
      EXPECT_EQ(kernel, 77u);
    }
    return status;
  }
};

TEST_F(KernelErrors, TheCompilersTextHasFileAndLine) {
  tuff_kernel_desc desc = glsl("#version 450\n\nvoid main() {\n  int x = y;\n}\n", "mine.comp");
  const tuff_kernel_define defines[] = {{"A", "1"}, {"B", "2"}};
  desc.defines = defines;
  desc.define_count = 2;
  for (const uint32_t flags : {0u, uint32_t{TUFF_KERNEL_UNTRUSTED}}) {
    desc.flags = flags;
    EXPECT_EQ(create(desc), kCompile);
    EXPECT_EQ(last_error().rfind("tuff_kernel_create: mine.comp:4: error: 'y' : undeclared identifier", 0), 0u)
        << last_error();
  }
  EXPECT_FAILS(create(glsl("#version 450\nvoid main() {\n#error stop here\n}\n")), kCompile, kCreate, "test.comp:3");
  EXPECT_FAILS(create(glsl("#version 450\n#include \"/etc/hostname\"\nvoid main() {}\n")), kCompile, kCreate,
               "test.comp:2");
  EXPECT_FAILS(
      create(glsl("#version 450\n#extension GL_GOOGLE_include_directive : require\n#include \"/etc/hostname\"\n"
                  "void main() {}\n")),
      kCompile, kCreate, "test.comp:3");
  EXPECT_FAILS(create(glsl("")), kCompile, kCreate, "test.comp:1");
}

// glslang itself would print everything that it has built in.
TEST_F(KernelErrors, VersionsAreCheckedInSilence) {
  testing::internal::CaptureStdout();
  for (const char* start :
       {"no shader at all", "void main() {}", "#version 110", "#version 420", "#version 100", "#version 300 es",
        "#version 330 core", "#version 999", "#version x", "#version", "\n\n#define A 1"}) {
    const std::string source = std::string("// a line\n/* and\nanother */ ") + start + "\nvoid main() {}\n";
    EXPECT_FAILS(create(glsl(source.c_str())), kCompile, kCreate, "version") << start;
  }
  EXPECT_FAILS(create(glsl("\n\n/* 3 */ 4\n")), kCompile, kCreate, "test.comp:3");
  const char* good[] = {"// a line\n/* and\nanother */ #version 430",
                        "\n# version\t440 core",
                        "#version 450 // a comment",
                        "#version 460 /* another */",
                        "#version 310 es",
                        "#version 320 es\r"};
  for (const char* start : good) {
    const std::string source = start + std::string("\nvoid main() {}\n");
    EXPECT_OK(create(glsl(source.c_str()))) << start;
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(KernelErrors, Descriptors) {
  constexpr const char* nothing = "#version 450\nvoid main() {}\n";
  const auto with = [&](auto change) {
    tuff_kernel_desc desc = glsl(nothing);
    change(desc);
    return create(desc);
  };
  using Desc = tuff_kernel_desc;
  EXPECT_FAILS(with([](Desc& d) { d.language = 3; }), kArgument, kCreate, "language");
  EXPECT_FAILS(with([](Desc& d) { d.flags = 4; }), kArgument, kCreate, "flags");
  EXPECT_FAILS(with([](Desc& d) { d.reserved = 1; }), kArgument, kCreate, "reserved");
  EXPECT_FAILS(with([](Desc& d) { d.source = nullptr; }), kArgument, kCreate, "source");
  EXPECT_FAILS(with([](Desc& d) { d.language = TUFF_KERNEL_SPIRV; }), kArgument, kCreate, "source_bytes");
  EXPECT_FAILS(with([](Desc& d) { d.entry = "other"; }), kArgument, kCreate, "entry");
  EXPECT_FAILS(with([](Desc& d) { d.define_count = 1; }), kArgument, kCreate, "defines");
  EXPECT_FAILS(with([](Desc& d) { d.constant_count = 1; }), kArgument, kCreate, "constants");
  EXPECT_FAILS(with([](Desc& d) { d.max_source_bytes = 10; }), kLimit, kCreate, "source");
  EXPECT_FAILS(with([](Desc& d) { d.max_source_bytes = 1ull << 40; }), kArgument, kCreate, "max_source_bytes");
  EXPECT_FAILS(with([](Desc& d) { d.source_bytes = 2 << 20; }), kLimit, kCreate, "source");
  EXPECT_FAILS(with([](Desc& d) { d.compile_milliseconds = 1ull << 40; }), kArgument, kCreate, "compile_milliseconds");
  EXPECT_FAILS(with([](Desc& d) { d.compile_memory_bytes = 1; }), kArgument, kCreate, "compile_memory_bytes");
  const std::string long_name(1000, 'x'), long_source(2 << 20, ' ');
  EXPECT_FAILS(with([&](Desc& d) { d.name = long_name.c_str(); }), kLimit, kCreate, "name");
  EXPECT_FAILS(with([&](Desc& d) { d.source = long_source.c_str(); }), kLimit, kCreate, "source");
  for (const tuff_kernel_define& define : std::initializer_list<tuff_kernel_define>{
           {nullptr, "1"}, {"", "1"}, {"1A", "1"}, {"A B", "1"}, {"A\n#define B", "1"}, {"A", "1\n#define B"}}) {
    EXPECT_FAILS(with([&](Desc& d) { d.defines = &define, d.define_count = 1; }), kArgument, kCreate, "defines");
  }
  const tuff_kernel_define huge{"A", long_source.c_str()};
  EXPECT_FAILS(with([&](Desc& d) { d.defines = &huge, d.define_count = 1; }), kLimit, kCreate, "defines");
  const std::string medium(60, '1');  // each of them alone is not too long
  const tuff_kernel_define several[] = {{"A", medium.c_str()}, {"B", medium.c_str()}};
  EXPECT_FAILS(with([&](Desc& d) { d.defines = several, d.define_count = 2, d.max_source_bytes = 100; }), kLimit,
               kCreate, "defines");
  const tuff_kernel_constant unknown{5, 0, 1}, reserved{5, 1, 1};
  EXPECT_FAILS(with([&](Desc& d) { d.constants = &unknown, d.constant_count = 1; }), kArgument, kCreate, "constants");
  EXPECT_FAILS(with([&](Desc& d) { d.constants = &reserved, d.constant_count = 1; }), kArgument, kCreate, "reserved");
  const tuff_kernel_constant again[] = {{3, 0, 1}, {3, 0, 2}};
  tuff_kernel_desc module = spirv(kTwoEntries, sizeof kTwoEntries, "twice");
  module.constants = again;
  module.constant_count = 2;
  EXPECT_FAILS(create(module), kArgument, kCreate, "constants");
  EXPECT_FAILS(tuff_kernel_create(context(), nullptr, nullptr), kArgument, kCreate, "desc");
  const tuff_kernel_desc good = glsl(nothing);
  EXPECT_FAILS(tuff_kernel_create(context(), &good, nullptr), kArgument, kCreate, "kernel");
}

TEST_F(KernelErrors, Resources) {
  const struct {
    const char* declarations;
    const char* body;
    tuff_status status;
    const char* word;
  } rows[] = {
      {"layout(binding = 0) uniform U { float u; };", "float x = u;", kUnsupported, "uniform"},
      {"layout(binding = 0, r32f) uniform image2D i;", "imageStore(i, ivec2(0), vec4(0));", kUnsupported, "image"},
      {"layout(binding = 0) uniform sampler2D s;", "vec4 x = textureLod(s, vec2(0), 0);", kUnsupported, "sampler"},
      {"layout(binding = 0) uniform texture2D t;", "", kUnsupported, "texture"},
      {"layout(binding = 0) uniform sampler s;", "", kUnsupported, "sampler"},
      {"layout(set = 1, binding = 0) buffer B { float b; };", "b = 1;", kUnsupported, "set"},
      {"layout(binding = 0) buffer B { float b; } a[2];", "a[1].b = 1;", kUnsupported, "array"},
      {"layout(binding = 32) buffer B { float b; };", "b = 1;", kLimit, "32"},
      {"layout(local_size_x = 65536) in;", "", kLimit, "invocations"},
      {"layout(local_size_x = 1024, local_size_y = 64) in;", "", kLimit, "invocations"},
      {"shared float s[1 << 22];", "s[gl_LocalInvocationIndex] = 1;", kLimit, "shared"},
      {"layout(push_constant) uniform P { vec4 p[1000]; };", "vec4 x = p[0];", kLimit, "push"},
      {"layout(binding = 0) buffer B { float b[]; };", "float a[100000]; a[int(b[0])] = 1; b[0] = a[int(b[1])];",
       kLimit, "invocation"},
      {"layout(binding = 0) buffer B { float b[1 << 24]; };", "float a[1 << 24] = b; b[0] = a[3];", kLimit,
       "invocation"},
      {"#extension GL_EXT_buffer_reference : require\n"
       "layout(buffer_reference) buffer R { float r; };\nlayout(push_constant) uniform P { R p; };",
       "p.r = 1;", kUnsupported, "PhysicalStorageBufferAddresses"},
      {"#extension GL_EXT_shader_atomic_float : require\nlayout(binding = 0) buffer B { float b; };",
       "atomicAdd(b, 1.0);", kUnsupported, "AtomicFloat32AddEXT"},
      {"#extension GL_EXT_scalar_block_layout : require\nlayout(scalar, binding = 0) buffer B { float x; vec3 b[]; };",
       "b[0] = vec3(x);", kCompile, "SPIR"},
  };
  for (const auto& [declarations, body, status, word] : rows) {
    SCOPED_TRACE(declarations);
    const std::string source = std::string("#version 450\n") + declarations + "\nvoid main() { " + body + " }\n";
    EXPECT_FAILS(create(glsl(source.c_str())), status, kCreate, word);
  }
}

TEST_F(KernelErrors, Modules) {
  const std::vector<uint32_t> good(std::begin(kTwoEntries), std::end(kTwoEntries));
  const auto with = [&](auto change, const char* entry = "twice") {
    std::vector<uint32_t> words = good;
    change(words);
    return create(spirv(words.data(), words.size() * 4, entry));
  };
  using Words = std::vector<uint32_t>;
  EXPECT_OK(with([](Words&) {}));
  EXPECT_FAILS(with([](Words& w) { w[0] = 0x03022307; }), kArgument, kCreate, "SPIR");
  EXPECT_FAILS(with([](Words& w) { w[1] = 0x00020000; }), kArgument, kCreate, "version");
  EXPECT_FAILS(with([](Words& w) { w[1] = 0; }), kArgument, kCreate, "version");
  EXPECT_FAILS(with([](Words& w) { w.resize(4); }), kArgument, kCreate, "source");
  EXPECT_FAILS(with([](Words& w) { w[5] &= 0xffff; }), kArgument, kCreate, "instruction");
  EXPECT_FAILS(with([](Words& w) { w.back() |= 0xffff0000; }), kArgument, kCreate, "instruction");
  EXPECT_FAILS(with([](Words& w) { w[3] = 3; }), kCompile, kCreate, "valid");  // ids beyond the bound
  EXPECT_FAILS(with([](Words& w) { w.resize(w.size() - 1); }), kCompile, kCreate, "valid");
  EXPECT_FAILS(with([](Words& w) { w.resize(5); }), kArgument, kCreate, "entry");
  EXPECT_FAILS(with([](Words&) {}, "no such entry"), kArgument, kCreate, "entry");
  EXPECT_FAILS(with([](Words& w) { w[6] = 6; }), kCompile, kCreate, "valid");  // capability Kernel, nothing for it
  // Turns the first entry point, after the capability and the memory model, into a fragment shader.
  ASSERT_EQ(good[10] & 0xffff, 15u);
  ASSERT_EQ(good[11], 5u);
  EXPECT_FAILS(with([](Words& w) { w[11] = 4; }), kUnsupported, kCreate, "fragment");
  EXPECT_FAILS(create(spirv(good.data(), good.size() * 4 - 2, "twice")), kArgument, kCreate, "source");
}

TEST_F(KernelErrors, Launches) {
  const OwnKernel kernel(context(), glsl(kSaxpy));
  const OwnBuffer x(context(), 4096), y(context(), 4096), small(context(), 3), empty(context(), 0);
  const Saxpy push{1, 4};
  const uint32_t bytes = sizeof push;
  const uint64_t before = stats_of(context()).dispatches;
  EXPECT_FAILS(launch(kernel, {x}, 1, &push, bytes), kArgument, kLaunch, "count");
  EXPECT_FAILS(launch(kernel, {x, y, y}, 1, &push, bytes), kArgument, kLaunch, "count");
  EXPECT_FAILS(tuff_kernel_launch(context(), kernel, nullptr, 2, &push, bytes, 1, 1, 1), kArgument, kLaunch, "buffers");
  EXPECT_FAILS(tuff_kernel_launch(context(), kernel, nullptr, ~0u, &push, bytes, 1, 1, 1), kArgument, kLaunch, "count");
  EXPECT_FAILS(launch(kernel, {x, y}, 1), kArgument, kLaunch, "push_bytes");
  EXPECT_FAILS(launch(kernel, {x, y}, 1, &push, 4), kArgument, kLaunch, "push_bytes");
  EXPECT_FAILS(launch(kernel, {x, y}, 1, nullptr, bytes), kArgument, kLaunch, "push");
  EXPECT_FAILS(launch(kernel, {x, TUFF_NULL_HANDLE}, 1, &push, bytes), kArgument, kLaunch, "buffers[1]");
  EXPECT_FAILS(launch(kernel, {small, y}, 1, &push, bytes), kArgument, kLaunch, "buffers[0]");
  EXPECT_FAILS(launch(kernel, {x, empty}, 1, &push, bytes), kArgument, kLaunch, "buffers[1] is empty");
  EXPECT_FAILS(launch(kernel, {y, y}, 1, &push, bytes), kArgument, kLaunch, "overlaps");
  EXPECT_FAILS(launch(kernel, {x, 1234}, 1, &push, bytes), kHandle, kLaunch, "buffers[1]");
  EXPECT_FAILS(launch(kernel, {x, kernel}, 1, &push, bytes), kHandle, kLaunch, "buffers[1]");
  EXPECT_FAILS(launch(x, {x, y}, 1, &push, bytes), kHandle, kLaunch, "kernel");
  const uint32_t most = info_of(kernel).max_groups[1];
  if (most != ~0u) {
    const tuff_buffer buffers[] = {x, y};
    EXPECT_FAILS(tuff_kernel_launch(context(), kernel, buffers, 2, &push, bytes, 1, most + 1, 1), kLimit, kLaunch,
                 "gy");
  }
  tuff_buffer part = 0, apart = 0;
  ASSERT_OK(tuff_view(y, 0, 1024, &part));
  ASSERT_OK(tuff_view(y, 1024, 1024, &apart));
  const OwnBuffer own_part(part), own_apart(apart);
  EXPECT_FAILS(launch(kernel, {part, y}, 1, &push, bytes), kArgument, kLaunch, "overlaps");
  EXPECT_FAILS(launch(kernel, {y, part}, 1, &push, bytes), kArgument, kLaunch, "overlaps");
  if (const uint32_t alignment = info_of(kernel).buffer_alignment; alignment > 1) {
    tuff_buffer shifted = 0;
    ASSERT_OK(tuff_view(x, alignment / 2, 1024, &shifted));
    const OwnBuffer own_shifted(shifted);
    EXPECT_FAILS(launch(kernel, {shifted, y}, 1, &push, bytes), kArgument, kLaunch, "multiples");
  }
  const OwnContext other("vulkan");
  const OwnBuffer foreign(other, 4096);
  EXPECT_FAILS(launch(kernel, {x, foreign}, 1, &push, bytes), kHandle, kLaunch, "buffers[1]");
  const tuff_buffer foreigners[] = {foreign, foreign};
  EXPECT_FAILS(tuff_kernel_launch(other, kernel, foreigners, 2, &push, bytes, 1, 1, 1), kHandle, kLaunch, "kernel");
  EXPECT_FAILS(tuff_kernel_launch(x, kernel, foreigners, 2, &push, bytes, 1, 1, 1), kHandle, kLaunch, "stream");
  EXPECT_EQ(stats_of(context()).dispatches, before);
  EXPECT_OK(launch(kernel, {part, apart}, 1, &push, bytes));
}

TEST_F(KernelErrors, MappedBuffers) {
  const OwnKernel kernel(context(), glsl(kPlusOne));
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.bytes = 64;
  desc.flags = TUFF_ALLOC_HOST_VISIBLE;
  tuff_buffer visible = 0;
  ASSERT_OK(tuff_alloc_ex(context(), &desc, &visible));
  const OwnBuffer own(visible), out(context(), 64);
  void* pointer = nullptr;
  ASSERT_OK(tuff_map(visible, &pointer));
  EXPECT_FAILS(launch(kernel, {visible, out}, 1), kArgument, kLaunch, "mapped");
  ASSERT_OK(tuff_unmap(visible));
  EXPECT_OK(launch(kernel, {visible, out}, 1));
}

TEST_F(KernelErrors, BuffersBeyondADescriptor) {
  const uint64_t most = properties_of(context()).max_storage_range_bytes;
  if (most > 1ull << 30) GTEST_SKIP() << "a buffer beyond a descriptor is too large here";
  const OwnKernel kernel(context(), glsl(kPlusOne));
  const OwnBuffer large(context(), most + 256), out(context(), 64);
  EXPECT_FAILS(launch(kernel, {large, out}, 1), kLimit, kLaunch, "buffers[0]");
  tuff_buffer part = 0;
  ASSERT_OK(tuff_view(large, 0, most, &part));
  const OwnBuffer own_part(part);
  EXPECT_OK(launch(kernel, {part, out}, 1));
  ASSERT_OK(tuff_synchronize(context()));
}

TEST_F(KernelErrors, Handles) {
  tuff_kernel_properties info{};
  info.struct_size = sizeof info;
  EXPECT_FAILS(tuff_kernel_info(0, &info), kHandle, "tuff_kernel_info", "kernel");
  EXPECT_FAILS(tuff_kernel_info(context(), &info), kHandle, "tuff_kernel_info", "kernel");
  EXPECT_FAILS(tuff_kernel_destroy(context()), kHandle, "tuff_kernel_destroy", "kernel");
  EXPECT_OK(tuff_kernel_destroy(TUFF_NULL_HANDLE));
  const tuff_kernel_desc desc = glsl(kPlusOne);
  tuff_kernel kernel = 0;
  EXPECT_FAILS(tuff_kernel_create(12, &desc, &kernel), kHandle, kCreate, "context");
  ASSERT_OK(tuff_kernel_create(context(), &desc, &kernel));
  EXPECT_FAILS(tuff_kernel_info(kernel, nullptr), kArgument, "tuff_kernel_info", "info");
  ASSERT_OK(tuff_kernel_destroy(kernel));
  EXPECT_FAILS(tuff_kernel_destroy(kernel), kHandle, "tuff_kernel_destroy", "stale");
  EXPECT_FAILS(launch(kernel, {}, 1), kHandle, kLaunch, "kernel");
}

class KernelHost : public OnBackend {};
TEST_P(KernelHost, SaysThatItHasNone) {
  const tuff_kernel_desc desc = glsl(kPlusOne);
  tuff_kernel kernel = 0;
  const tuff_status status = tuff_kernel_create(context(), &desc, &kernel);
  if (vulkan()) {
    EXPECT_OK(status);
    EXPECT_OK(tuff_kernel_destroy(kernel));
  } else {
    EXPECT_FAILS(status, kUnsupported, kCreate, "host");
  }
  int32_t kernels = 5, robust = 5;
  EXPECT_OK(tuff_supports(context(), "custom_kernels", &kernels));
  EXPECT_OK(tuff_supports(context(), "robust_kernels", &robust));
  EXPECT_EQ(kernels, vulkan() ? 1 : 0);
  EXPECT_TRUE(robust == 0 || (robust == 1 && vulkan()));
}
TUFF_ON_BACKENDS(KernelHost);

// --- malicious source ------------------------------------------------------------------------------------

std::string repeated(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

// Macros that double at each level.
std::string macro_bomb(const std::string& first, int levels) {
  std::string source = "#version 450\nlayout(binding = 0) buffer B { float b; };\n#define M0 " + first + "\n";
  for (int i = 1; i <= levels; ++i) {
    const std::string before = " M" + std::to_string(i - 1);
    source += "#define M" + std::to_string(i) + before + before + "\n";
  }
  return source + "void main() { M" + std::to_string(levels) + " }\n";
}

class KernelUntrusted : public KernelErrors {
 protected:
  static constexpr uint64_t kMilliseconds = 1500;
  // The source is refused in time, and the process continues as before.
  void expect_refused(const std::string& source, std::initializer_list<tuff_status> any_of) {
    tuff_kernel_desc desc = glsl(source.c_str(), "harm.comp");
    desc.flags = TUFF_KERNEL_UNTRUSTED;
    desc.compile_milliseconds = kMilliseconds;
    const auto begin = std::chrono::steady_clock::now();
    const tuff_status status = create(desc);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(std::find(any_of.begin(), any_of.end(), status) != any_of.end()) << status << ": " << last_error();
    // The bombs would run for years; a busy machine may need a while to end a process.
    EXPECT_LT(took, std::chrono::milliseconds(kMilliseconds + 30'000));
    EXPECT_EQ(last_error().rfind("tuff_kernel_create: ", 0), 0u);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    const OwnKernel kernel(context(), glsl(kPlusOne));
    const OwnBuffer a(context(), 4), b(context(), 4);
    ASSERT_OK(launch(kernel, {a, b}, 1));
    EXPECT_EQ(download<uint32_t>(b, 1)[0], 1u);
  }
};

TEST_F(KernelUntrusted, MacroBombs) {
  expect_refused(macro_bomb("b = b * b + 1.0;", 40), {kLimit});
  expect_refused(macro_bomb("", 50), {kLimit});
  expect_refused(macro_bomb("b = sin(b);", 15), {kLimit, kCompile});  // finishes, as a module that is too large
}

TEST_F(KernelUntrusted, DeepNesting) {
  const auto nested = [](const std::string& before, const std::string& middle, const std::string& after) {
    return "#version 450\nlayout(binding = 0) buffer B { float b; };\nvoid main() { b = " + before + middle + after +
           "; }\n";
  };
  expect_refused(nested(repeated("(", 200'000), "b", repeated(")", 200'000)), {kLimit, kCompile});
  expect_refused(nested(repeated("-(", 100'000), "b", repeated(")", 100'000)), {kLimit, kCompile});
  expect_refused(nested("b" + repeated(" + b", 200'000), "", ""), {kLimit, kCompile});
  expect_refused("#version 450\nvoid main() " + repeated("{", 200'000) + repeated("}", 200'000), {kLimit, kCompile});
  expect_refused("#version 450\nvoid main() { int x = 0; " + repeated("if (x == 0) ", 50'000) + "x = 1; }",
                 {kLimit, kCompile});
}

TEST_F(KernelUntrusted, GiantArrays) {
  const std::string head = "#version 450\nlayout(binding = 0) buffer B { float b[]; };\n";
  expect_refused(head + "void main() { float a[1 << 28]; a[int(b[0])] = 1; b[0] = a[int(b[1])]; }", {kLimit});
  expect_refused(head + "shared float a[1 << 28]; void main() { a[0] = 1; b[0] = a[int(b[1])]; }", {kLimit});
  expect_refused(head + "const float a[] = float[](" + repeated("1.0,", 200'000) + "1.0);\n" +
                     "void main() { b[0] = a[int(b[1])]; }",
                 {kLimit, kCompile});
  std::string structs = "struct S0 { float x[1024]; };\n";
  for (int i = 1; i < 60; ++i) {
    const std::string before = "S" + std::to_string(i - 1);
    structs += "struct S" + std::to_string(i) + " { " + before + " a; " + before + " b; };\n";
  }
  expect_refused(head + structs +
                     "void main() { S59 s; b[0] = s.a.b.a.b.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"
                     ".a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.x[0]; }",
                 {kLimit, kCompile});
}

// Needs more memory than the process may have, long before its time is up.
TEST_F(KernelUntrusted, Memory) {
  const std::string source = macro_bomb("b = b * b + 1.0;", 24);
  tuff_kernel_desc desc = glsl(source.c_str());
  desc.flags = TUFF_KERNEL_UNTRUSTED;
  desc.compile_memory_bytes = 80 << 20;
  desc.compile_milliseconds = 60'000;
  EXPECT_FAILS(create(desc), kLimit, kCreate, "memory");
}

TEST_F(KernelUntrusted, WithoutTheHelper) {
  tuff_kernel_desc desc = glsl("#version 450\nvoid main() { /* not in any cache: the helper is missing */ }\n");
  desc.flags = TUFF_KERNEL_UNTRUSTED;
  ASSERT_EQ(setenv("TUFF_COMPILE", "/nowhere/tuff-compile", 1), 0);
  EXPECT_FAILS(create(desc), kUnsupported, kCreate, "/nowhere/tuff-compile");
  ASSERT_EQ(setenv("TUFF_COMPILE", "/bin/true", 1), 0);  // a program that does not answer
  EXPECT_FAILS(create(desc), kCompile, kCreate, "status");
  ASSERT_EQ(unsetenv("TUFF_COMPILE"), 0);
}

TEST_F(KernelUntrusted, Modules) {
  std::vector<uint32_t> words(std::begin(kTwoEntries), std::end(kTwoEntries));
  tuff_kernel_desc desc = spirv(words.data(), words.size() * 4, "twice");
  desc.flags = TUFF_KERNEL_UNTRUSTED;
  EXPECT_OK(create(desc));
  words[0] = 1;
  EXPECT_FAILS(create(desc), kArgument, kCreate, "source");
}

// These modules are valid as far as a validator checks. The driver first compiles them in a separate process, so this
// one survives.
TEST_F(KernelUntrusted, ModulesThatTheDriverDiesOf) {
  const struct {
    const char* name;
    std::span<const uint32_t> words;
  } rows[] = {{"pointer_bitcast", kPointerBitcast},
              {"subgroup_add_of_a_vec3", kSubgroupAddOfAVec3},
              {"local_index_of_three", kLocalIndexOfThree}};
  for (const auto& [name, words] : rows) {
    SCOPED_TRACE(name);
    tuff_kernel_desc desc = spirv(words.data(), words.size_bytes(), "main");
    desc.name = name;
    desc.flags = TUFF_KERNEL_UNTRUSTED;
    const tuff_status status = create(desc);
    const bool cast = words.data() == kPointerBitcast;  // detected without the driver
    if (status == TUFF_OK) {                            // a driver that compiles it; nothing was run
      EXPECT_FALSE(cast);
      continue;
    }
    EXPECT_TRUE(status == kCompile || status == kUnsupported) << last_error();
    EXPECT_NE(last_error().find(cast ? "casts a pointer" : name), std::string::npos) << last_error();
    RecordProperty(name, last_error());
  }
}

// Mesa's CPU driver would run 65,535 iterations and report success.
TEST_F(KernelErrors, LoopsThatTheDriverCutsShort) {
  constexpr const char* source = R"(#version 450
layout(binding = 0) buffer B { uint b; };
void main() {
  uint c = 0;
  for (uint i = 0; i < 70000; ++i) c += b + i % 3;
  b = c;
})";
  tuff_kernel_desc desc = glsl(source);
  tuff_kernel kernel = 0;
  const tuff_status status = tuff_kernel_create(context(), &desc, &kernel);
  if (status != TUFF_OK) {
    EXPECT_FAILS(status, kUnsupported, kCreate, "70000 iterations");
    return;
  }
  const OwnBuffer b = upload<uint32_t>({0});
  ASSERT_OK(launch(kernel, {b}, 1));
  EXPECT_OK(tuff_kernel_destroy(kernel));
  EXPECT_EQ(download<uint32_t>(b, 1)[0], 69999u);
}

// A module that was compiled and tried once is not tried again; one that was refused is.
TEST_F(KernelUntrusted, TheDriverIsTriedOnce) {
  const std::string unique = "#version 450\n// " +
                             std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) +
                             "\nlayout(binding = 0) buffer B { uint b[]; };\nvoid main() { b[0] = 5; }\n";
  tuff_kernel_desc desc = glsl(unique.c_str(), "once.comp");
  desc.flags = TUFF_KERNEL_UNTRUSTED;
  std::vector<std::string> lines;
  const auto collect = [](void* user, int32_t, const char* text) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(text);
  };
  const auto confined = [&] {
    return std::count_if(lines.begin(), lines.end(),
                         [](const std::string& line) { return line.rfind("tuff-compile, for once.comp: ", 0) == 0; });
  };
  ASSERT_OK(tuff_set_log(collect, &lines, TUFF_LOG_DEBUG));
  EXPECT_OK(create(desc));
  EXPECT_EQ(confined(), 2) << "the compiler, then the driver";
  EXPECT_OK(create(desc));
  ASSERT_OK(tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF));
  EXPECT_EQ(confined(), 2) << "from the cache";
  for (const std::string& line : lines) {
    if (line.rfind("tuff-compile, for once.comp: ", 0) != 0) continue;
    // The log says of each whether it is in force or missing here.
    for (const char* what : {"no_new_privs", "landlock", "seccomp"}) {
      EXPECT_NE(line.find(what), std::string::npos) << line;
    }
  }
}

TEST_F(KernelUntrusted, TheHelperIsNamedFromTheRoot) {
  tuff_kernel_desc desc = glsl("#version 450\nvoid main() { /* in no cache: its helper is not taken */ }\n");
  desc.flags = TUFF_KERNEL_UNTRUSTED;
  for (const char* name : {"tuff-compile", "./tuff-compile", "build/release/tuff-compile"}) {
    ASSERT_EQ(setenv("TUFF_COMPILE", name, 1), 0);
    EXPECT_FAILS(create(desc), kUnsupported, kCreate, "TUFF_COMPILE");
  }
  ASSERT_EQ(unsetenv("TUFF_COMPILE"), 0);
}

}  // namespace
}  // namespace tuff_test::kernel_errors_test
