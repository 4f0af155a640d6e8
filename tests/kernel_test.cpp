// Custom kernels that work: what they compute, reflection, ordering, lifetimes.
#include <numeric>
#include <random>
#include <thread>

#include "support/allocation_count.hpp"
#include "support/kernel.hpp"
#include "support/spirv_module_words.hpp"

namespace tuff_test::kernel_test {
namespace {

class Kernel : public OnVulkan {};

TEST_F(Kernel, Computes) {
  const OwnKernel kernel(context(), glsl(kSaxpy, "saxpy.comp"));
  std::vector<float> x(1000), y(1000);
  std::iota(x.begin(), x.end(), 0.0f);
  std::iota(y.begin(), y.end(), -500.0f);
  const OwnBuffer dx = upload(x), dy = upload(y);
  const Saxpy parameters{3, 999};
  ASSERT_OK(launch(kernel, {dx, dy}, 16, &parameters, sizeof parameters));
  for (size_t i = 0; i < 999; ++i) y[i] += 3 * x[i];
  EXPECT_EQ(download<float>(dy, 1000), y);
  EXPECT_EQ(download<float>(dx, 1000), x);
}

TEST_F(Kernel, TheCompilersWarningsAreLogged) {
  std::string lines;
  const auto add = [](void* user, int32_t, const char* text) { *static_cast<std::string*>(user) += text; };
  ASSERT_OK(tuff_set_log(add, &lines, TUFF_LOG_WARNING));
  // A kernel from the disk cache is not compiled again.
  const std::string source = "#version 450\n#extension GL_no_such_thing : warn\nvoid main() {}\n// " +
                             std::to_string(std::random_device{}()) + std::to_string(std::random_device{}());
  { const OwnKernel kernel(context(), glsl(source.c_str())); }
  ASSERT_OK(tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF));
  EXPECT_NE(lines.find("GL_no_such_thing"), std::string::npos) << lines;
}

TEST_F(Kernel, IsReflected) {
  const OwnKernel kernel(context(), glsl(kSaxpy, "saxpy.comp"));
  const tuff_kernel_properties info = info_of(kernel);
  const tuff_device_properties device = properties_of(context());
  EXPECT_EQ(info.binding_count, 2u);
  EXPECT_EQ(info.used, 3u);
  EXPECT_EQ(info.read, 3u);
  EXPECT_EQ(info.written, 2u);
  EXPECT_EQ(info.push_bytes, sizeof(Saxpy));
  EXPECT_EQ(info.workgroup_size[0], 64u);
  EXPECT_EQ(info.workgroup_size[1], 1u);
  EXPECT_EQ(info.workgroup_size[2], 1u);
  EXPECT_EQ(info.shared_bytes, 0u);
  EXPECT_EQ(info.subgroup_size, device.subgroup_size);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(info.max_groups[i], device.max_workgroup_count[i]);
  EXPECT_EQ(info.max_buffer_bytes, device.max_storage_range_bytes);
  EXPECT_GT(info.buffer_alignment, 0u);
  EXPECT_EQ(info.robust, 0);
  EXPECT_EQ(info.min_bytes[0], 4u);
  EXPECT_EQ(info.min_bytes[1], 4u);
  EXPECT_EQ(info.min_bytes[2], 0u);
  EXPECT_STREQ(info.name, "saxpy.comp");
  EXPECT_STREQ(info.capabilities, "");
}

// A binding is read or written if the code does so, not if the declaration would allow it; sizes include padding.
TEST_F(Kernel, ReflectionLooksIntoTheCode) {
  const OwnKernel kernel(context(), glsl(R"(#version 450
struct Record { vec3 place; float mass; mat2 turn; };
layout(local_size_x = 4, local_size_y = 2, local_size_z = 3) in;
layout(binding = 0) buffer OnlyRead { Record records[3]; float rest[]; } a;
layout(binding = 1) buffer OnlyWritten { uvec4 head; double tail[]; } b;
layout(binding = 2) buffer OnlyAsked { int values[]; } c;
layout(binding = 4) buffer Counted { uint count; } d;
layout(binding = 6) buffer Unused { int nothing[5]; } e;
shared vec3 corners[5];
shared bool flags[3];
shared float unused_shared[100];
void add(inout uint sum) { sum += 1; }
void main() {
  corners[gl_LocalInvocationIndex % 5] = a.records[1].place * a.rest[0];
  flags[0] = corners[1].x > 0;
  b.tail[c.values.length()] = flags[0] ? 1.0lf : 2.0lf;
  atomicAdd(d.count, 1u);
}
)"));
  const tuff_kernel_properties info = info_of(kernel);
  EXPECT_EQ(info.binding_count, 7u);
  EXPECT_EQ(info.used, 0b10111u);
  EXPECT_EQ(info.read, 0b10001u);
  EXPECT_EQ(info.written, 0b10010u);
  EXPECT_EQ(info.min_bytes[0], 3 * 32 + 4u);  // place and mass are 16 bytes, the matrix two columns of 8
  EXPECT_EQ(info.min_bytes[1], 24u);
  EXPECT_EQ(info.min_bytes[2], 4u);
  EXPECT_EQ(info.min_bytes[4], 4u);
  EXPECT_EQ(info.workgroup_size[0] * 100 + info.workgroup_size[1] * 10 + info.workgroup_size[2], 423u);
  EXPECT_EQ(info.shared_bytes, 5 * 16 + 3 * 4u);
  EXPECT_STREQ(info.capabilities, "Float64");
}

TEST_F(Kernel, Defines) {
  constexpr const char* source = R"(#version 450
layout(binding = 0) writeonly buffer Out { TYPE y[]; };
void main() { y[gl_WorkGroupID.x] = TYPE(VALUE + FLAG); }
)";
  tuff_kernel_define defines[] = {{"TYPE", "uint"}, {"VALUE", "(3 * 7)"}, {"FLAG", nullptr}};
  tuff_kernel_desc desc = glsl(source);
  desc.defines = defines;
  desc.define_count = 3;
  const OwnKernel number(context(), desc);
  defines[0].value = "float";
  const OwnKernel real(context(), desc);
  const OwnBuffer out(context(), 8);
  ASSERT_OK(launch(number, {out}, 2));
  EXPECT_EQ(download<uint32_t>(out, 2), (std::vector<uint32_t>{22, 22}));
  ASSERT_OK(launch(real, {out}, 1));
  EXPECT_EQ(download<float>(out, 1)[0], 22.0f);
}

// Constants determine sizes, and reflection and checks use the result.
TEST_F(Kernel, Constants) {
  constexpr const char* source = R"(#version 450
layout(local_size_x_id = 0, local_size_y = 2) in;
layout(constant_id = 1) const uint kTiles = 1;
layout(constant_id = 2) const float kScale = 1;
layout(constant_id = 3) const bool kNegate = false;
layout(constant_id = 4) const double kWide = 0;
layout(binding = 0) writeonly buffer Out { float y[]; };
shared float tile[kTiles * gl_WorkGroupSize.x + 1];
void main() {
  tile[gl_LocalInvocationID.x] = kScale;
  barrier();
  y[gl_GlobalInvocationID.x] = (kNegate ? -1 : 1) * tile[gl_LocalInvocationID.x] + float(kWide) + tile.length();
}
)";
  tuff_kernel_desc desc = glsl(source);
  {
    const OwnKernel kernel(context(), desc);
    EXPECT_EQ(info_of(kernel).workgroup_size[0], 1u);
    EXPECT_EQ(info_of(kernel).shared_bytes, 8u);
  }
  const float scale = 2.5f;
  const double wide = 0.25;
  tuff_kernel_constant constants[5] = {{0, 0, 8}, {1, 0, 5}, {2, 0, 0}, {3, 0, 1}, {4, 0, 0}};
  std::memcpy(&constants[2].bits, &scale, sizeof scale);
  std::memcpy(&constants[4].bits, &wide, sizeof wide);
  desc.constants = constants;
  desc.constant_count = 5;
  const OwnKernel kernel(context(), desc);
  const tuff_kernel_properties info = info_of(kernel);
  EXPECT_EQ(info.workgroup_size[0], 8u);
  EXPECT_EQ(info.workgroup_size[1], 2u);
  EXPECT_EQ(info.shared_bytes, 41 * 4u);
  const OwnBuffer out(context(), 64);
  ASSERT_OK(launch(kernel, {out}, 2));
  EXPECT_EQ(download<float>(out, 16), std::vector<float>(16, -2.5f + 0.25f + 41));
}

TEST_F(Kernel, Spirv) {
  const OwnKernel twice(context(), spirv(kTwoEntries, sizeof kTwoEntries, "twice"));
  const OwnKernel clear(context(), spirv(kTwoEntries, sizeof kTwoEntries, "clear"));
  tuff_kernel_desc desc = spirv(kTwoEntries, sizeof kTwoEntries, "twice");
  const tuff_kernel_constant factor{3, 0, 10};
  desc.constants = &factor;
  desc.constant_count = 1;
  const OwnKernel times_ten(context(), desc);
  EXPECT_EQ(info_of(twice).read, 1u);
  EXPECT_EQ(info_of(twice).written, 2u);
  EXPECT_EQ(info_of(clear).used, 2u);
  EXPECT_STREQ(info_of(clear).name, "kernel");
  const OwnBuffer in = upload<uint32_t>({1, 2, 3, 4}), out(context(), 16);
  ASSERT_OK(launch(twice, {in, out}, 4));
  EXPECT_EQ(download<uint32_t>(out, 4), (std::vector<uint32_t>{2, 4, 6, 8}));
  ASSERT_OK(launch(times_ten, {in, out}, 3));
  ASSERT_OK(launch(clear, {TUFF_NULL_HANDLE, out}, 1));
  EXPECT_EQ(download<uint32_t>(out, 4), (std::vector<uint32_t>{0, 20, 30, 8}));
  // At an address that is not a multiple of four.
  std::vector<char> shifted(sizeof kTwoEntries + 1);
  std::memcpy(shifted.data() + 1, kTwoEntries, sizeof kTwoEntries);
  const OwnKernel unaligned(context(), spirv(shifted.data() + 1, sizeof kTwoEntries, "twice"));
}

// Launches are ordered with fills, copies, operations and each other, by barriers where there is a conflict and nowhere
// else.
TEST_F(Kernel, IsOrderedByWhatItTouches) {
  const OwnKernel plus(context(), glsl(kPlusOneEach));
  constexpr uint32_t n = 4096;
  const OwnBuffer a(context(), n * 4), b(context(), n * 4), c(context(), n * 4), d(context(), n * 4);
  const uint32_t five = 5;
  for (int round = 0; round < 20; ++round) {
    ASSERT_OK(tuff_fill(context(), a, 0, n * 4, &five, 4));
    ASSERT_OK(launch(plus, {a, b}, n / 64));
    ASSERT_OK(launch(plus, {b, a}, n / 64));
    ASSERT_OK(tuff_copy_dtod(context(), c, 0, a, 0, n * 4));
    ASSERT_OK(launch(plus, {c, d}, n / 64));
    ASSERT_OK(tuff_cast(context(), TUFF_U32, TUFF_F32, d, b, n));
    EXPECT_EQ(download<float>(b, n), std::vector<float>(n, 8));
    ASSERT_OK(tuff_fill(context(), b, 0, n * 4, &five, 4));
    ASSERT_OK(launch(plus, {b, c}, n / 64));
    ASSERT_OK(launch(plus, {d, b}, n / 64));  // after the read of b
    EXPECT_EQ(download<uint32_t>(c, n), std::vector<uint32_t>(n, 6));
    EXPECT_EQ(download<uint32_t>(b, n), std::vector<uint32_t>(n, 9));
  }
  ASSERT_OK(tuff_synchronize(context()));
  const auto barriers = [&](const std::vector<std::vector<tuff_buffer>>& launches) {
    const uint64_t before = stats_of(context()).barriers;
    for (const auto& buffers : launches) EXPECT_OK(launch(plus, buffers, 1));
    return stats_of(context()).barriers - before;
  };
  EXPECT_LE(barriers({{a, b}}), 1u);                  // after whatever came before
  EXPECT_EQ(barriers({{a, c}, {a, d}}), 0u);          // three readers, three outputs
  EXPECT_EQ(barriers({{b, a}}), 1u);                  // b was written, a was read
  EXPECT_EQ(barriers({{c, d}, {d, c}, {c, d}}), 2u);  // a chain
}

TEST_F(Kernel, TakesViewsAndLeavesTheRest) {
  const OwnKernel plus(context(), glsl(kPlusOne));
  const uint32_t step = std::max(info_of(plus).buffer_alignment, 4u);
  const OwnBuffer in(context(), 8 * step), out(context(), 8 * step);
  const uint32_t poison = 0xabababab;
  ASSERT_OK(tuff_fill(context(), out, 0, 8 * step, &poison, 4));
  tuff_buffer from = 0, to = 0;
  ASSERT_OK(tuff_view(in, 2 * step, 4, &from));
  ASSERT_OK(tuff_view(out, 5 * step, 4, &to));
  const OwnBuffer own_from(from), own_to(to);
  ASSERT_OK(launch(plus, {from, to}, 1));
  std::vector<uint32_t> expected(2 * step, poison);
  expected[5 * step / 4] = 1;
  EXPECT_EQ(download<uint32_t>(out, 2 * step), expected);
}

TEST_F(Kernel, BindingsThatAreNotUsedMayBeNothing) {
  const OwnKernel kernel(context(), glsl(R"(#version 450
layout(binding = 2) buffer Out { uint y[]; };
layout(binding = 3) buffer Never { uint z[]; };
void main() { y[0] = 7; }
)"));
  EXPECT_EQ(info_of(kernel).binding_count, 4u);
  const OwnBuffer out(context(), 4);
  ASSERT_OK(launch(kernel, {0, 0, out, 0}, 1));
  EXPECT_EQ(download<uint32_t>(out, 1)[0], 7u);
  ASSERT_OK(launch(kernel, {out, out, out, out}, 1));  // unused buffers cannot overlap
}

TEST_F(Kernel, NoBuffersAndNoGroups) {
  const OwnKernel nothing(context(), glsl("#version 450\nvoid main() {}\n"));
  EXPECT_EQ(info_of(nothing).binding_count, 0u);
  ASSERT_OK(tuff_kernel_launch(context(), nothing, nullptr, 0, nullptr, 0, 3, 2, 1));
  const OwnKernel plus(context(), glsl(kPlusOne));
  const OwnBuffer a(context(), 4), b(context(), 4);
  const tuff_buffer buffers[] = {a, b};
  const uint64_t before = stats_of(context()).dispatches;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    ASSERT_OK(tuff_kernel_launch(context(), plus, buffers, 2, nullptr, 0, axis != 0, axis != 1, axis != 2));
  }
  EXPECT_EQ(stats_of(context()).dispatches, before);
  EXPECT_EQ(download<uint32_t>(b, 1)[0], 0u);
}

TEST_F(Kernel, ManyBindings) {
  const uint32_t most = 16;  // Vulkan guarantees at least 4; all devices known here have 16
  std::string source = "#version 450\n";
  std::string body;
  for (uint32_t i = 0; i < most; ++i) {
    const std::string n = std::to_string(i);
    source += "layout(binding = " + n + ") buffer B" + n + " { uint v" + n + "[]; };\n";
    body += "v" + n + "[0] = " + n + ";\n";
  }
  source += "void main() {\n" + body + "}\n";
  const OwnKernel kernel(context(), glsl(source.c_str()));
  std::vector<OwnBuffer> owners;
  std::vector<tuff_buffer> buffers;
  for (uint32_t i = 0; i < most; ++i) buffers.push_back(owners.emplace_back(context(), 4));
  ASSERT_OK(launch(kernel, buffers, 1));
  for (uint32_t i = 0; i < most; ++i) EXPECT_EQ(download<uint32_t>(buffers[i], 1)[0], i);
}

TEST_F(Kernel, RobustKernelsStayWithinTheirBuffers) {
  tuff_kernel_desc desc = glsl(R"(#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
layout(binding = 1) buffer Seen { uint seen[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  seen[i] = data[i + 1000];
  data[i] = 1;
}
)");
  desc.flags = TUFF_KERNEL_ROBUST;
  tuff_kernel kernel = 0;
  const tuff_status status = tuff_kernel_create(context(), &desc, &kernel);
  if (status == TUFF_ERROR_UNSUPPORTED) {
    EXPECT_FAILS(status, TUFF_ERROR_UNSUPPORTED, "tuff_kernel_create", "VK_EXT_pipeline_robustness");
    GTEST_SKIP() << "a robust kernel does not run on this device";
  }
  ASSERT_OK(status);
  EXPECT_EQ(info_of(kernel).robust, 1);
  const OwnBuffer all = upload(std::vector<uint32_t>(4096, 9)), seen = upload(std::vector<uint32_t>(1024, 5));
  tuff_buffer part = 0;
  ASSERT_OK(tuff_view(all, 1024, 512, &part));
  const OwnBuffer own_part(part);
  EXPECT_OK(launch(kernel, {part, seen}, 16));
  EXPECT_OK(tuff_kernel_destroy(kernel));
  EXPECT_EQ(download<uint32_t>(seen, 1024), std::vector<uint32_t>(1024, 0));
  std::vector<uint32_t> expected(4096, 9);
  std::fill_n(expected.begin() + 256, 128, 1);
  EXPECT_EQ(download<uint32_t>(all, 4096), expected);
}

TEST_F(Kernel, MayBeDestroyedWhileItRuns) {
  constexpr uint32_t n = 64 * 2000;
  const OwnBuffer a(context(), n * 4), b(context(), n * 4);
  for (int round = 0; round < 20; ++round) {
    const OwnKernel there(context(), glsl(kPlusOneEach)), back(context(), glsl(kPlusOneEach));
    for (int i = 0; i < 5; ++i) {
      ASSERT_OK(launch(there, {a, b}, n / 64));
      ASSERT_OK(launch(back, {b, a}, n / 64));
    }
  }
  EXPECT_EQ(download<uint32_t>(a, n), std::vector<uint32_t>(n, 200));
}

TEST_F(Kernel, GoesWithItsContext) {
  tuff_kernel kernel = 0;
  {
    const OwnContext own("vulkan");
    const tuff_kernel_desc desc = glsl(kPlusOneEach);
    ASSERT_OK(tuff_kernel_create(own, &desc, &kernel));
    const OwnBuffer a(own, 400'000), b(own, 400'000);
    const tuff_buffer buffers[] = {a, b};
    ASSERT_OK(tuff_kernel_launch(own, kernel, buffers, 2, nullptr, 0, 1500, 1, 1));
  }
  tuff_kernel_properties info{};
  info.struct_size = sizeof info;
  EXPECT_FAILS(tuff_kernel_info(kernel, &info), TUFF_ERROR_INVALID_HANDLE, "tuff_kernel_info", "stale");
  EXPECT_FAILS(tuff_kernel_destroy(kernel), TUFF_ERROR_INVALID_HANDLE, "tuff_kernel_destroy", "stale");
}

TEST_F(Kernel, ComesFromDiskTheSecondTime) {
  // A source that no other process has ever compiled.
  std::random_device random;
  const std::string source =
      std::string(kSaxpy) + "// " + std::to_string(std::time(nullptr)) + " " + std::to_string(random()) + "\n";
  tuff_kernel_desc desc = glsl(source.c_str());
  const auto counted = [&](uint64_t tuff_stats::*counter) {
    const OwnContext own("vulkan");
    const uint64_t before = stats_of(own).*counter;
    const OwnKernel kernel(own, desc);
    EXPECT_EQ(info_of(kernel).written, 2u);
    return stats_of(own).*counter - before;
  };
  EXPECT_EQ(counted(&tuff_stats::shaders_compiled), 1u);
  EXPECT_EQ(counted(&tuff_stats::shader_cache_hits), 1u);
  EXPECT_EQ(counted(&tuff_stats::shaders_compiled), 0u);
  desc.name = "other.comp";  // messages are part of the cache entry
  EXPECT_EQ(counted(&tuff_stats::shaders_compiled), 1u);
}

TEST_F(Kernel, LaunchesMakeNothing) {
  const OwnKernel kernel(context(), glsl(kSaxpy));
  const OwnBuffer x(context(), 4096), y(context(), 4096);
  const tuff_buffer buffers[] = {x, y};
  const Saxpy parameters{2, 1024};
  const auto some = [&] {
    uint64_t failures = 0;
    for (int i = 0; i < 300; ++i) {
      failures +=
          tuff_kernel_launch(context(), kernel, buffers, 2, &parameters, sizeof parameters, 16, 1, 1) != TUFF_OK;
    }
    return failures;
  };
  EXPECT_EQ(some(), 0u);
  ASSERT_OK(tuff_synchronize(context()));
  const tuff_stats before = stats_of(context());
  const uint64_t allocations_before = allocation_count();
  EXPECT_EQ(some(), 0u);
  const uint64_t allocations = allocation_count() - allocations_before;
  const tuff_stats after = stats_of(context());
  EXPECT_EQ(after.dispatches - before.dispatches, 300u);
  EXPECT_EQ(after.vulkan_objects_created, before.vulkan_objects_created);
  EXPECT_EQ(after.pipelines_created, before.pipelines_created);
  EXPECT_EQ(after.bytes_reserved, before.bytes_reserved);
  if (counts_allocations() && !validating()) {
    EXPECT_EQ(allocations, 0u);
  }
}

TEST_F(Kernel, FromManyThreads) {
  std::vector<std::thread> threads;
  std::vector<uint32_t> results(4);
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const OwnBuffer a(context(), 4), b(context(), 4);
      for (int i = 0; i < 10; ++i) {
        const OwnKernel kernel(context(), glsl(kPlusOne));
        EXPECT_OK(launch(kernel, {a, b}, 1));
        EXPECT_OK(launch(kernel, {b, a}, 1));
      }
      results[t] = download<uint32_t>(a, 1)[0];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results, std::vector<uint32_t>(4, 20));
}

TEST_F(Kernel, SaysWhatItLaunches) {
  const OwnKernel kernel(context(), glsl(kPlusOne, "plus_one.comp"));
  const OwnBuffer a(context(), 4), b(context(), 4);
  std::vector<std::string> lines;
  const auto collect = [](void* user, int32_t, const char* text) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(text);
  };
  ASSERT_OK(tuff_set_log(collect, &lines, TUFF_LOG_DISPATCH));
  ASSERT_OK(launch(kernel, {a, b}, 1));
  ASSERT_OK(tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0].rfind("kernel: plus_one.comp by descriptors, 1 x 1 x 1 groups", 0), 0u) << lines[0];
}

TEST_F(Kernel, UntrustedIsTheSame) {
  tuff_kernel_desc desc = glsl(kSaxpy, "not_trusted.comp");
  desc.flags = TUFF_KERNEL_UNTRUSTED;
  const OwnKernel kernel(context(), desc);
  EXPECT_EQ(info_of(kernel).written, 2u);
  EXPECT_EQ(info_of(kernel).push_bytes, 8u);
  const OwnBuffer x = upload<float>({1, 2}), y = upload<float>({5, 6});
  const Saxpy parameters{10, 2};
  ASSERT_OK(launch(kernel, {x, y}, 1, &parameters, sizeof parameters));
  EXPECT_EQ(download<float>(y, 2), (std::vector<float>{15, 26}));
  tuff_kernel_desc module = spirv(kTwoEntries, sizeof kTwoEntries, "clear");
  module.flags = TUFF_KERNEL_UNTRUSTED;
  const OwnKernel clear(context(), module);
  EXPECT_EQ(info_of(clear).written, 2u);
}

}  // namespace
}  // namespace tuff_test::kernel_test
