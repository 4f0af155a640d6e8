// Custom kernels in PTX: on devices that run them, what they compute; everywhere, what is refused.
#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include "support/ptx.hpp"
#include "support/stream.hpp"

namespace tuff_test::kernel_ptx_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kUnsupported = TUFF_ERROR_UNSUPPORTED,
                      kCompile = TUFF_ERROR_COMPILE_FAILED;
constexpr const char* kCreate = "tuff_kernel_create";
constexpr const char* kLaunch = "tuff_kernel_launch";

class KernelPtx : public OnVulkan {
 protected:
  bool has_ptx() {
    int32_t yes = 0;
    EXPECT_OK(tuff_supports(context(), "ptx", &yes));
    return yes != 0;
  }
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

class KernelPtxRuns : public KernelPtx {
 protected:
  void SetUp() override {
    KernelPtx::SetUp();
    if (IsSkipped()) return;
    if (!has_ptx()) GTEST_SKIP() << "this device runs no PTX; KernelPtx has the refusals";
  }
};

struct SaxpyPush {
  float a;
  uint32_t n;
};

TEST_F(KernelPtx, RefusalsNameTheArgument) {
  using Desc = tuff_kernel_desc;
  const auto with = [&](auto change) {
    Desc desc = ptx(kSaxpyPtx, 64);
    change(desc);
    return create(desc);
  };
  EXPECT_FAILS(with([](Desc& d) { d.flags = TUFF_KERNEL_UNTRUSTED; }), kUnsupported, kCreate, "TUFF_KERNEL_UNTRUSTED");
  EXPECT_FAILS(with([](Desc& d) { d.flags = TUFF_KERNEL_ROBUST; }), kUnsupported, kCreate, "TUFF_KERNEL_ROBUST");
  const tuff_kernel_define define{"A", "1"};
  EXPECT_FAILS(with([&](Desc& d) { d.defines = &define, d.define_count = 1; }), kArgument, kCreate, "define_count");
  const tuff_kernel_constant constant{5, 0, 1};
  EXPECT_FAILS(with([&](Desc& d) { d.constants = &constant, d.constant_count = 1; }), kArgument, kCreate,
               "constant_count");
  EXPECT_FAILS(with([](Desc& d) { d.workgroup_size[1] = 0; }), kArgument, kCreate, "workgroup_size");
  EXPECT_FAILS(with([](Desc& d) { d.entry = "axpy"; }), kArgument, kCreate, "\"saxpy\"");
  EXPECT_FAILS(with([](Desc& d) { d.source = ".entry k(.param .u32) { ret; }"; }), kCompile, kCreate, "test.ptx:1");
  EXPECT_FAILS(with([](Desc& d) { d.source = "ret;\0 ret;", d.source_bytes = 10; }), kCompile, kCreate, "NUL");
  EXPECT_FAILS(create(ptx("")), kCompile, kCreate, "no entry point");
}

TEST_F(KernelPtx, OtherLanguagesStateTheirWorkgroupsThemselves) {
  tuff_kernel_desc desc = glsl(kSaxpy);
  desc.workgroup_size[2] = 64;
  EXPECT_FAILS(create(desc), kArgument, kCreate, "workgroup_size is {0, 0, 64}, GLSL");
  desc = glsl(kSaxpy);
  desc.shared_bytes = 16;
  EXPECT_FAILS(create(desc), kArgument, kCreate, "shared_bytes is 16");
}

TEST_F(KernelPtx, DevicesWithoutItAreNamed) {
  if (has_ptx()) {
    EXPECT_OK(create(ptx(kSaxpyPtx, 64)));
    return;
  }
  EXPECT_FAILS(create(ptx(kSaxpyPtx, 64)), kUnsupported, kCreate, "PTX");
  tuff_device_properties device{};
  device.struct_size = sizeof device;
  ASSERT_OK(tuff_context_info(context(), &device));
  EXPECT_NE(last_error().find(device.name), std::string::npos) << last_error();
}

TEST_F(KernelPtxRuns, SaxpyInOrderWithOtherWork) {
  const OwnKernel saxpy(context(), ptx(kSaxpyPtx, 64));
  for (const uint32_t n : {1u, 63u, 64u, 1000u, 100'000u}) {
    std::vector<float> x(n), y(n);
    for (uint32_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 97) - 48, y[i] = static_cast<float>(i % 31);
    const OwnBuffer in = upload(x), out = upload(y), sum(context(), n * sizeof(float));
    const SaxpyPush push{2, n};
    for (int times = 0; times < 3; ++times) {
      ASSERT_OK(launch(saxpy, {in, out}, (n + 63) / 64, &push, sizeof push));
      ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_RELU, out, out, n));
    }
    ASSERT_OK(tuff_binary(context(), TUFF_F32, TUFF_BINARY_ADD, out, in, sum, n));
    ASSERT_OK(launch(saxpy, {sum, sum}, (n + 63) / 64, &push, sizeof push));  // the same buffer twice
    for (int times = 0; times < 3; ++times) {
      for (uint32_t i = 0; i < n; ++i) y[i] = std::fmax(2 * x[i] + y[i], 0.0f);
    }
    for (uint32_t i = 0; i < n; ++i) y[i] = 3 * (y[i] + x[i]);
    EXPECT_EQ(download<float>(sum, n), y) << n;
  }
}

TEST_F(KernelPtxRuns, BlocksOfTwoDimensionsAndSharedMemory) {
  constexpr uint32_t columns = 100, rows = 37;
  std::vector<uint32_t> from(columns * rows), expected(columns * rows);
  std::iota(from.begin(), from.end(), 7);
  for (uint32_t i = 0; i < from.size(); ++i) expected[i % columns * rows + i / columns] = from[i];
  for (const uint32_t shared : {1024u, 48u << 10, 100u << 10, 227u << 10}) {
    tuff_kernel_desc desc = ptx(kTransposePtx, 16, shared);
    desc.workgroup_size[1] = 16;
    desc.entry = "transpose";
    const OwnKernel transpose(context(), desc);
    const tuff_kernel_properties info = info_of(transpose);
    EXPECT_EQ(info.binding_count, 3u);
    EXPECT_EQ(info.used, 5u);
    EXPECT_EQ(info.written, 5u);
    EXPECT_EQ(info.push_bytes, 12u);
    EXPECT_EQ(info.shared_bytes, shared);
    EXPECT_EQ(info.workgroup_size[0] * info.workgroup_size[1], 256u);
    const OwnBuffer in = upload(from), out(context(), from.size() * sizeof(uint32_t));
    const uint32_t push[] = {shared, columns, rows};
    const tuff_buffer buffers[] = {in, TUFF_NULL_HANDLE, out};
    ASSERT_OK(tuff_kernel_launch(context(), transpose, buffers, 3, push, sizeof push, 7, 3, 1));
    EXPECT_EQ(download<uint32_t>(out, from.size()), expected) << shared;
  }
  tuff_kernel_desc desc = ptx(kTransposePtx, 256, (227 << 10) + 1);
  desc.entry = "transpose";
  EXPECT_FAILS(create(desc), TUFF_ERROR_LIMIT_EXCEEDED, kCreate, "shared");
  desc = ptx(kTransposePtx, 257);
  desc.entry = "transpose";
  EXPECT_FAILS(create(desc), kArgument, kCreate, "workgroup_size");
}

TEST_F(KernelPtxRuns, LaunchesAreChecked) {
  const OwnKernel saxpy(context(), ptx(kSaxpyPtx, 64));
  const OwnBuffer x = upload(std::vector<float>(64, 1)), y = upload(std::vector<float>(64, 2));
  const SaxpyPush push{1, 60};
  tuff_buffer odd = TUFF_NULL_HANDLE;
  ASSERT_OK(tuff_view(x, 2, 16, &odd));
  EXPECT_FAILS(launch(saxpy, {x}, 1, &push, sizeof push), kArgument, kLaunch, "count");
  EXPECT_FAILS(launch(saxpy, {x, y}, 1, &push, 4), kArgument, kLaunch, "push_bytes");
  EXPECT_FAILS(launch(saxpy, {x, TUFF_NULL_HANDLE}, 1, &push, sizeof push), kArgument, kLaunch, "buffers[1]");
  EXPECT_FAILS(launch(saxpy, {odd, y}, 1, &push, sizeof push), kArgument, kLaunch, "buffers[0]");
  ASSERT_OK(tuff_free(odd));
  EXPECT_EQ(download<float>(y, 64), std::vector<float>(64, 2)) << "nothing ran";
  ASSERT_OK(launch(saxpy, {x, y}, 0, &push, sizeof push));
  EXPECT_EQ(download<float>(y, 64), std::vector<float>(64, 2)) << "no workgroups";
}

TEST_F(KernelPtxRuns, TheDriverRefusesWrongText) {
  EXPECT_FAILS(create(ptx(".version 7.8\n.target sm_80\n.address_size 64\n.entry k() { frobnicate.u32 %r1; }", 32)),
               kCompile, kCreate, "test.ptx");
  EXPECT_FAILS(create(ptx(".version 99.0\n.target sm_80\n.address_size 64\n.entry k() { ret; }", 32)), kCompile,
               kCreate, "ptxas");
  EXPECT_OK(create(ptx(kSaxpyPtx, 64)));
}

TEST_F(KernelPtxRuns, GraphsKeepTheKernelAndBindOtherBuffers) {
  constexpr uint32_t n = 1000;
  const OwnBuffer x = upload(std::vector<float>(n, 3)), y = upload(std::vector<float>(n, 1)),
                  z = upload(std::vector<float>(n, 100));
  const OwnStream stream = make_stream(context());
  tuff_graph graph = TUFF_NULL_HANDLE;
  {
    const OwnKernel saxpy(context(), ptx(kSaxpyPtx, 128));
    const SaxpyPush push{2, n};
    const tuff_buffer buffers[] = {x, y};
    ASSERT_OK(tuff_graph_begin(stream));
    for (int i = 0; i < 2; ++i) {
      EXPECT_OK(tuff_kernel_launch(stream, saxpy, buffers, 2, &push, sizeof push, 8, 1, 1));
    }
    ASSERT_OK(tuff_graph_end(stream, &graph));
  }
  ASSERT_OK(tuff_graph_launch(stream, graph));
  ASSERT_OK(tuff_graph_launch(stream, graph));
  ASSERT_OK(tuff_synchronize(stream));
  EXPECT_EQ(download<float>(y, n), std::vector<float>(n, 25));
  ASSERT_OK(tuff_graph_bind(graph, y, z));
  ASSERT_OK(tuff_graph_launch(stream, graph));
  ASSERT_OK(tuff_synchronize(stream));
  EXPECT_EQ(download<float>(z, n), std::vector<float>(n, 112));
  EXPECT_EQ(download<float>(y, n), std::vector<float>(n, 25));
  ASSERT_OK(tuff_graph_destroy(graph));
}

// The alignment that the text declares counts for replaced buffers as it does for those of launches.
TEST_F(KernelPtxRuns, GraphsBindAtTheKernelsAlignment) {
  constexpr uint32_t n = 1000;
  std::string text = kSaxpyPtx;
  for (size_t at; (at = text.find(".align 4")) != std::string::npos;) text.replace(at, 8, ".align 128");
  const OwnKernel saxpy(context(), ptx(text.c_str(), 128));
  const OwnBuffer x = upload(std::vector<float>(n, 3)), y = upload(std::vector<float>(n, 1)),
                  large = upload(std::vector<float>(2 * n, 100));
  const auto view = [&](uint64_t offset) {
    tuff_buffer part = 0;
    EXPECT_OK(tuff_view(large, offset, n * 4, &part));
    return OwnBuffer(part);
  };
  const OwnBuffer misaligned = view(64), aligned = view(128);
  const OwnStream stream = make_stream(context());
  const SaxpyPush push{2, n};
  EXPECT_FAILS(launch(saxpy, {x, misaligned}, 8, &push, sizeof push), TUFF_ERROR_INVALID_ARGUMENT, "tuff_kernel_launch",
               "multiples of 128");
  tuff_graph graph = TUFF_NULL_HANDLE;
  const tuff_buffer buffers[] = {x, y};
  ASSERT_OK(tuff_graph_begin(stream));
  EXPECT_OK(tuff_kernel_launch(stream, saxpy, buffers, 2, &push, sizeof push, 8, 1, 1));
  ASSERT_OK(tuff_graph_end(stream, &graph));
  EXPECT_FAILS(tuff_graph_bind(graph, y, misaligned), TUFF_ERROR_INVALID_ARGUMENT, "tuff_graph_bind",
               "multiple of 128");
  ASSERT_OK(tuff_graph_bind(graph, y, aligned));
  ASSERT_OK(tuff_graph_launch(stream, graph));
  ASSERT_OK(tuff_synchronize(stream));
  EXPECT_EQ(download<float>(aligned, n), std::vector<float>(n, 106));
  ASSERT_OK(tuff_graph_destroy(graph));
}

// Each launch reads what the one before it wrote.
TEST_F(KernelPtxRuns, ManyLaunchesAreOrdered) {
  constexpr uint32_t n = 1 << 16;
  const OwnKernel saxpy(context(), ptx(kSaxpyPtx, 256));
  const OwnBuffer a = upload(std::vector<float>(n, 1)), b = upload(std::vector<float>(n, 1));
  const SaxpyPush push{1, n};
  for (int i = 0; i < 10; ++i) {  // Fibonacci's numbers
    ASSERT_OK(launch(saxpy, {a, b}, n / 256, &push, sizeof push));
    ASSERT_OK(launch(saxpy, {b, a}, n / 256, &push, sizeof push));
  }
  EXPECT_EQ(download<float>(a, n), std::vector<float>(n, 17711));
}

// Devices are created and destroyed while other threads load, run and unload PTX; NVIDIA's driver allows no overlap.
TEST_F(KernelPtxRuns, ContextsComeAndGoMeanwhile) {
  constexpr int kContexts = 24;
  constexpr uint32_t n = 1 << 12;
  std::atomic<bool> done{false};
  std::atomic<int> loads{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const OwnBuffer a = upload(std::vector<float>(n, 1)), b = upload(std::vector<float>(n, 1));
      const SaxpyPush push{1, n};
      while (!done) {
        const OwnKernel saxpy(context(), ptx(kSaxpyPtx, 256));
        EXPECT_OK(launch(saxpy, {a, b}, n / 256, &push, sizeof push));
        ++loads;
      }
    });
  }
  for (int i = 0; i < kContexts; ++i) {
    tuff_context other = 0;
    EXPECT_OK(tuff_context_create(nullptr, &other));
    EXPECT_OK(tuff_context_destroy(other));
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(loads, 0);
}

}  // namespace
}  // namespace tuff_test::kernel_ptx_test
