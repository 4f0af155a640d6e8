// Kernels that index beyond their own variables: in robust and in untrusted kernels they access the last element
// instead.
#include <climits>

#include "support/kernel.hpp"
#include "support/spirv_long_index_words.hpp"

namespace tuff_test::kernel_bounds_test {
namespace {

constexpr uint32_t kGuard = 0x5eed;

class KernelBounds : public OnVulkan {
 protected:
  static constexpr uint32_t kFlags[] = {TUFF_KERNEL_ROBUST, TUFF_KERNEL_UNTRUSTED};

  void SetUp() override {
    OnVulkan::SetUp();
    if (IsSkipped()) return;
    int32_t robust = 0;
    ASSERT_OK(tuff_supports(context(), "robust_kernels", &robust));
    if (robust == 0) GTEST_SKIP() << "a robust kernel does not run on this device";
  }
  // Runs one workgroup of one invocation. In the source, `at` is the given number and `result` has 64 elements.
  std::vector<uint32_t> run(const std::string& declarations, const std::string& body, int32_t at, uint32_t flags,
                            int32_t push = 0) {
    const std::string source =
        "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
        "layout(binding = 0) buffer At { int at; int at2; };\n"
        "layout(binding = 1) buffer Out { uint result[64]; };\n" +
        declarations + "\nvoid main() {\n" + body + "\n}\n";
    tuff_kernel_desc desc = glsl(source.c_str(), "bounds.comp");
    desc.flags = flags;
    tuff_kernel kernel = 0;
    const tuff_status status = tuff_kernel_create(context(), &desc, &kernel);
    if (status != TUFF_OK) ADD_FAILURE() << last_error() << "\n" << source;
    if (status != TUFF_OK) return std::vector<uint32_t>(64);
    const OwnBuffer index = upload<int32_t>({at, at}), out = upload(std::vector<uint32_t>(64, kGuard));
    const uint32_t push_bytes = info_of(kernel).push_bytes;
    std::vector<int32_t> pushed(push_bytes / 4);
    for (size_t i = 0; i < pushed.size(); ++i) pushed[i] = push + static_cast<int32_t>(i);
    EXPECT_OK(launch(kernel, {index, out}, 1, pushed.data(), push_bytes));
    EXPECT_OK(tuff_kernel_destroy(kernel));
    return download<uint32_t>(out, 64);
  }
};

constexpr int32_t kBeyond[] = {16, 17, 1000, 1 << 20, 1 << 28, INT_MAX, -1, -16, -100'000, INT_MIN};

constexpr const char* kFilled = "  for (int i = 0; i < 16; ++i) s[i] = 100 + i;\n  barrier();\n";
constexpr const char* kShown = "  barrier();\n  for (int i = 0; i < 16; ++i) result[i] = s[i];\n";

TEST_F(KernelBounds, SharedArrayIsReadBeyondItsEnd) {
  for (const uint32_t flags : kFlags) {
    for (const int32_t at : kBeyond) {
      EXPECT_EQ(run("shared uint s[16];", std::string(kFilled) + "  result[0] = s[at];", at, flags)[0], 115u) << at;
    }
    EXPECT_EQ(run("shared uint s[16];", std::string(kFilled) + "  result[0] = s[at];", 3, flags)[0], 103u);
  }
}

TEST_F(KernelBounds, SharedArrayIsWrittenBeyondItsEnd) {
  for (const int32_t at : kBeyond) {
    const auto result =
        run("shared uint s[16];", std::string(kFilled) + "  s[at] = 7;\n" + kShown, at, TUFF_KERNEL_UNTRUSTED);
    for (uint32_t i = 0; i < 15; ++i) EXPECT_EQ(result[i], 100 + i) << at;
    EXPECT_EQ(result[15], 7u) << at;
  }
}

TEST_F(KernelBounds, SharedArrayIsChangedAtomicallyBeyondItsEnd) {
  for (const int32_t at : kBeyond) {
    const auto result =
        run("shared uint s[16];",
            std::string(kFilled) +
                "  atomicAdd(s[at], 1000);\n  atomicExchange(s[at], s[at] + atomicMax(s[at], 5));\n" + kShown,
            at, TUFF_KERNEL_UNTRUSTED);
    EXPECT_EQ(result[14], 114u) << at;
    EXPECT_EQ(result[15], 2230u) << at;
  }
}

TEST_F(KernelBounds, MembersVectorsMatricesAndNestedArraysInSharedMemory) {
  const char* declarations =
      "struct P { uint a; uint b[4]; uvec4 c; };\nshared P p[3];\nshared uvec3 v[5];\nshared uint n[3][5];\n"
      "shared mat3 m[2];";
  const char* body = R"(
  for (int i = 0; i < 3; ++i) { p[i].a = 10 + i; for (int j = 0; j < 4; ++j) p[i].b[j] = 20 + 4 * i + j;
                                p[i].c = uvec4(40, 41, 42, 43) + 10 * i; }
  for (int i = 0; i < 5; ++i) v[i] = uvec3(70, 71, 72) + 3 * i;
  for (int i = 0; i < 15; ++i) n[i / 5][i % 5] = 100 + i;
  for (int i = 0; i < 2; ++i) m[i] = mat3(1, 2, 3, 4, 5, 6, 7, 8, 9 + i);
  result[0] = p[at].a;
  result[1] = p[at].b[at2];
  result[2] = p[at].c[at2];
  result[3] = v[at][at2];
  result[4] = n[at][at2];
  result[5] = uint(m[at][at2][at]);
  p[at].b[at2] = 1; p[at].c[at2] = 2; v[at][at2] = 3; n[at][at2] = 4; m[at][at2][at] = 5;
  result[6] = p[2].b[3]; result[7] = p[2].c.w; result[8] = v[4].z; result[9] = n[2][4]; result[10] = uint(m[1][2][2]);
  result[11] = p[2].b[2]; result[12] = n[2][3];)";
  for (const int32_t at : kBeyond) {
    SCOPED_TRACE(at);
    const auto result = run(declarations, body, at, TUFF_KERNEL_UNTRUSTED);
    const uint32_t expected[] = {12, 31, 63, 84, 114, 10, 1, 2, 3, 4, 5, 30, 113};
    for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(result[i], expected[i]) << i;
  }
}

TEST_F(KernelBounds, VariablesOfOneInvocationAndPushConstants) {
  const char* declarations =
      "uint mine[16];\nlayout(push_constant) uniform Push { int p[8]; ivec4 q; };\n"
      "const uint constants[4] = uint[4](5, 6, 7, 8);\nuint last(uint a[4]) { return a[at]; }";
  const char* body = R"(
  uint own[16];
  for (int i = 0; i < 16; ++i) { own[i] = 100 + i; mine[i] = 200 + i; }
  result[0] = own[at]; result[1] = mine[at]; result[2] = constants[at]; result[3] = last(constants);
  result[4] = p[at]; result[5] = q[at]; result[6] = (uvec3(1, 2, 3) + uint(at2 - at))[at];
  own[at] = 1; mine[at] = 2;
  uvec4 v = uvec4(1, 2, 3, 4);
  v[at] = 9;
  result[7] = own[15]; result[8] = mine[15]; result[9] = v.w; result[10] = own[14];)";
  for (const uint32_t flags : kFlags) {
    for (const int32_t at : kBeyond) {
      SCOPED_TRACE(at);
      const auto result = run(declarations, body, at, flags, 300);
      const uint32_t expected[] = {115, 215, 8, 8, 307, 311, 3, 1, 2, 9, 114};
      for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(result[i], expected[i]) << i;
    }
  }
}

TEST_F(KernelBounds, IndicesOfEveryWidthAndSign) {
  for (const char* type : {"int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t"}) {
    SCOPED_TRACE(type);
    const std::string body = "  for (int i = 0; i < 300; ++i) s[i] = i;\n  result[0] = s[" + std::string(type) +
                             "(at)];\n  s[" + type + "(at)] = 7;\n  result[1] = s[299];";
    const auto beyond = run("shared uint s[300];", body, -1, TUFF_KERNEL_UNTRUSTED);
    const bool byte = std::string(type) == "uint8_t";  // -1 becomes 255, which is within bounds
    EXPECT_EQ(beyond[0], byte ? 255u : 299u);
    EXPECT_EQ(beyond[1], byte ? 299u : 7u);
    const auto within = run("shared uint s[300];", body, 100, TUFF_KERNEL_UNTRUSTED);
    EXPECT_EQ(within[0], 100u);
    EXPECT_EQ(within[1], 299u);
  }
}

// GLSL has none, SPIR-V has: an index beyond 2^32 is not cut to its low 32 bits.
TEST_F(KernelBounds, IndicesOf64Bits) {
  tuff_kernel_desc desc = spirv(kLongIndexWords, sizeof kLongIndexWords, "main");
  for (const uint32_t flags : kFlags) {
    desc.flags = flags;
    tuff_kernel kernel = 0;
    ASSERT_OK(tuff_kernel_create(context(), &desc, &kernel));
    for (const int32_t at : {2, 3, 4, 1000, INT_MAX, -1, INT_MIN}) {
      SCOPED_TRACE(at);
      const OwnBuffer index = upload<int32_t>({at}), out = upload(std::vector<uint32_t>(3, kGuard));
      ASSERT_OK(launch(kernel, {index, out}, 1, nullptr, 0));
      const std::vector<uint32_t> result = download<uint32_t>(out, 3);
      EXPECT_EQ(result[0], at == 2 ? 102u : 103u);
      EXPECT_EQ(result[1], 103u) << "at + 2^32 + 5";
      EXPECT_EQ(result[2], at == 2 ? 103u : 7u);
    }
    EXPECT_OK(tuff_kernel_destroy(kernel));
  }
}

// The length of an array that 64-bit arithmetic gives is not taken for its low 32 bits: such a kernel is refused, since
// its memory could not be counted.
TEST_F(KernelBounds, ArrayLengthBy64BitArithmeticIsRefused) {
  const std::string source =
      "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
      "layout(constant_id = 0) const int n = 1;\n"
      "const int length = int((int64_t(n) << 33) >> 15) / 16;\n"  // 16384 elements; 0 if cut to 32 bits on the way
      "layout(binding = 0) buffer Out { uint result[64]; };\n"
      "shared uint s[length];\n"
      "void main() { s[result[0]] = 1; barrier(); result[1] = s[result[2]]; }\n";
  tuff_kernel_desc desc = glsl(source.c_str(), "length.comp");
  for (const uint32_t flags : kFlags) {
    desc.flags = flags;
    tuff_kernel kernel = 0;
    EXPECT_EQ(tuff_kernel_create(context(), &desc, &kernel), TUFF_ERROR_UNSUPPORTED) << last_error();
    EXPECT_NE(std::string(last_error()).find("too complex"), std::string::npos) << last_error();
    EXPECT_EQ(kernel, 0u);
  }
}

// A compiler may assume another value for an uninitialised variable at each use: one below the bound when it is
// compared, and one beyond it when it is used.
TEST_F(KernelBounds, WhatIsNotSetIsZero) {
  const auto result = run("shared uint s[16];\nint other;", std::string(kFilled) + R"(
  int unset;
  uint array[4];
  result[0] = s[unset];
  result[1] = s[other];
  result[2] = array[at];)",
                          2, TUFF_KERNEL_UNTRUSTED);
  EXPECT_EQ(result[0], 100u);
  EXPECT_EQ(result[1], 100u);
  EXPECT_EQ(result[2], 0u);
}

// On a CPU, shared memory is memory of the process, and the kernel must not see its earlier contents.
TEST_F(KernelBounds, SharedMemoryBeginsWithZeros) {
  constexpr const char* fill = R"(#version 450
layout(local_size_x = 64) in;
shared uint s[4096];
layout(binding = 0) buffer Out { uint result[]; };
void main() {
  for (uint i = gl_LocalInvocationIndex; i < 4096; i += 64) s[i] = 0xdeadbeef;
  barrier();
  result[gl_GlobalInvocationID.x] = s[(gl_LocalInvocationIndex * 77) % 4096];
})";
  constexpr const char* look = R"(#version 450
layout(local_size_x = 64) in;
shared uint s[4096];
layout(binding = 0) buffer Out { uint result[]; };
void main() {
  uint seen = 0;
  for (uint i = gl_LocalInvocationIndex; i < 4096; i += 64) seen |= s[i];
  result[gl_GlobalInvocationID.x] = seen;
})";
  const OwnBuffer out(context(), 64 * 64 * 4);
  const OwnKernel writer(context(), glsl(fill));
  tuff_kernel_desc desc = glsl(look);
  desc.flags = TUFF_KERNEL_UNTRUSTED;
  const OwnKernel reader(context(), desc);
  ASSERT_OK(launch(writer, {out}, 64));
  EXPECT_EQ(download<uint32_t>(out, 1)[0], 0xdeadbeefu);
  ASSERT_OK(launch(reader, {out}, 64));
  EXPECT_EQ(download<uint32_t>(out, 4096), std::vector<uint32_t>(4096, 0));
}

// The flags do not change accesses within bounds, nor buffers, whose end is that of the descriptor.
TEST_F(KernelBounds, BuffersEndWhereTheyEnd) {
  constexpr const char* source = R"(#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
layout(binding = 1) buffer Seen { uint seen[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  seen[i] = data[i + 16];
  atomicAdd(data[i + 16], 1u);
})";
  for (const uint32_t flags : kFlags) {
    tuff_kernel_desc desc = glsl(source);
    desc.flags = flags;
    const OwnKernel kernel(context(), desc);
    const OwnBuffer all = upload(std::vector<uint32_t>(1024, 9)), seen = upload(std::vector<uint32_t>(64, 5));
    tuff_buffer part = 0;
    ASSERT_OK(tuff_view(all, 0, 128, &part));  // 32 elements
    const OwnBuffer own_part(part);
    ASSERT_OK(launch(kernel, {part, seen}, 1));
    std::vector<uint32_t> expected(64, 0), left(1024, 9);
    std::fill_n(expected.begin(), 16, 9u);
    std::fill_n(left.begin() + 16, 16, 10u);
    EXPECT_EQ(download<uint32_t>(seen, 64), expected);
    EXPECT_EQ(download<uint32_t>(all, 1024), left);
  }
}

}  // namespace
}  // namespace tuff_test::kernel_bounds_test
