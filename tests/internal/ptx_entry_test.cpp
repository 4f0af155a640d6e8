// Reading the interface of kernels in PTX. The text may be anything.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "planning/status.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "support/ptx.hpp"

namespace tuff {
namespace {

CustomSource ptx(std::string text, std::string entry = "", std::array<uint32_t, 3> workgroup_size = {32, 1, 1}) {
  CustomSource source;
  source.language = TUFF_KERNEL_PTX;
  source.text = std::move(text);
  source.name = "k.ptx";
  source.entry = std::move(entry);
  source.workgroup_size = workgroup_size;
  return source;
}

std::string entry_with(const std::string& parameters, const std::string& directives = "",
                       const std::string& body = "ret;") {
  return ".address_size 64\n.entry k(" + parameters + ")\n" + directives + "\n{ " + body + " }\n";
}

std::string error_of(const CustomSource& source, tuff_status status) {
  try {
    reflect_ptx(source);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), status) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << source.text.substr(0, 300);
  return "";
}

#define EXPECT_REFUSED(source, status, word) \
  EXPECT_NE(error_of(source, status).find(word), std::string::npos) << error_of(source, status)

TEST(PtxEntry, MarkedPointersAreBuffersAndNumbersArePushConstants) {
  const KernelInterface read = reflect_ptx(ptx(tuff_test::kSaxpyPtx));
  EXPECT_EQ(read.entry, "saxpy");
  ASSERT_EQ(read.bindings.size(), 2u);
  EXPECT_TRUE(read.bindings[0].used && read.bindings[0].written && read.bindings[1].read);
  EXPECT_EQ(read.push_bytes, 8u);
  ASSERT_EQ(read.parameters.size(), 4u);
  EXPECT_TRUE(read.parameters[0].is_buffer && !read.parameters[1].is_buffer && read.parameters[2].is_buffer);
  EXPECT_EQ(read.parameters[2].at, 1u);
  EXPECT_EQ(read.parameters[3].at, 4u);
  EXPECT_EQ(read.alignment, 4u);
}

TEST(PtxEntry, UnmarkedWordsOf64BitsAreBuffersAndUnnamedOnesAreUnused) {
  const KernelInterface read = reflect_ptx(ptx(tuff_test::kTransposePtx, "transpose", {16, 16, 1}));
  ASSERT_EQ(read.bindings.size(), 3u);
  EXPECT_TRUE(read.bindings[0].used && !read.bindings[1].used && read.bindings[2].used);
  EXPECT_EQ(read.push_bytes, 12u);
  EXPECT_EQ(read.shared_bytes, 0u);
  const KernelInterface marked =
      reflect_ptx(ptx(entry_with(".param .u64 number, .param .b64 .ptr .align 128 p, .param .s64 q"), ""));
  EXPECT_EQ(marked.bindings.size(), 1u);
  EXPECT_EQ(marked.push_bytes, 16u);
  EXPECT_EQ(marked.alignment, 128u);
  const KernelInterface none = reflect_ptx(ptx(entry_with(".param .s64 a, .param .f64 b, .param .b64 c[2]")));
  EXPECT_EQ(none.bindings.size(), 0u);
  EXPECT_EQ(none.push_bytes, 32u);
}

TEST(PtxEntry, PushConstantsAreAlignedLikeMembers) {
  const KernelInterface read = reflect_ptx(
      ptx(entry_with(".param .u8 a, .param .f64 b, .param .b16 c, .param .align 16 .b8 d[20], .param .bf16 e, .param "
                     ".f32 f")));
  const uint32_t at[] = {0, 8, 16, 32, 52, 56};
  for (size_t i = 0; i < std::size(at); ++i) EXPECT_EQ(read.parameters[i].at, at[i]) << i;
  EXPECT_EQ(read.push_bytes, 60u);
}

TEST(PtxEntry, SharedMemoryIsAddedUp) {
  const std::string text =
      ".shared .align 16 .b8 a[100];\n.shared .f32 b, c[3][5];\n.extern .shared .align 1024 .b8 d[];\n"
      ".entry other() { .shared .b8 not_here[5000]; ret; }\n" +
      entry_with("", "", ".shared .v4 .f32 e[2]; st.shared.u32 [a], 1; ret;");
  CustomSource source = ptx(text, "k");
  source.shared_bytes = 4096;
  const KernelInterface read = reflect_ptx(source);
  EXPECT_EQ(read.shared_bytes, 100u + 4 + 60 + 32 + 4096);
  EXPECT_EQ(read.dynamic_shared_bytes, 4096u);
}

TEST(PtxEntry, WorkgroupsAreThoseOfTheEntryPoint) {
  using Size = std::array<uint32_t, 3>;
  const auto size_of = [](const std::string& directives, Size given) {
    return reflect_ptx(ptx(entry_with("", directives), "", given)).workgroup_size;
  };
  EXPECT_EQ(size_of(".reqntid 128", {}), (Size{128, 1, 1}));
  EXPECT_EQ(size_of(".reqntid 8, 4, 2 .maxnreg 32", {8, 4, 2}), (Size{8, 4, 2}));
  EXPECT_EQ(size_of(".maxntid 256 .minnctapersm 2 .reqnctapercluster 1", {64, 4, 1}), (Size{64, 4, 1}));
  EXPECT_REFUSED(ptx(entry_with(""), "", {}), TUFF_ERROR_INVALID_ARGUMENT, "workgroup_size is {0, 0, 0}");
  EXPECT_REFUSED(ptx(entry_with(""), "", {32, 0, 1}), TUFF_ERROR_INVALID_ARGUMENT, "workgroup_size is {32, 0, 1}");
  EXPECT_REFUSED(ptx(entry_with("", ".reqntid 64")), TUFF_ERROR_INVALID_ARGUMENT, "k requires {64, 1, 1}");
  EXPECT_REFUSED(ptx(entry_with("", ".maxntid 31")), TUFF_ERROR_INVALID_ARGUMENT, "at most {31, 1, 1}");
  EXPECT_REFUSED(ptx(entry_with("", ".reqnctapercluster 2, 1, 1")), TUFF_ERROR_UNSUPPORTED, "clusters");
  EXPECT_REFUSED(ptx(entry_with("", ".explicitcluster")), TUFF_ERROR_UNSUPPORTED, "k.ptx:3");
}

TEST(PtxEntry, MessagesNameTheLine) {
  constexpr tuff_status kCompile = TUFF_ERROR_COMPILE_FAILED;
  EXPECT_REFUSED(ptx(""), kCompile, "no entry point");
  EXPECT_REFUSED(ptx("#version 450\nvoid main() {}\n"), kCompile, "no entry point");
  EXPECT_REFUSED(ptx(entry_with(".param .u32")), kCompile, "k.ptx:2: error: a parameter's type or name is expected");
  EXPECT_REFUSED(ptx(entry_with(".param .u32 a .param .u32 b")), kCompile, "not \".param\"");
  EXPECT_REFUSED(ptx(entry_with(".param .u32 .ptr a")), kCompile, "pointer");
  EXPECT_REFUSED(ptx(entry_with(".param a")), kCompile, "type");
  EXPECT_REFUSED(ptx(entry_with(".param .b8 a[x]")), kCompile, "a number is expected, not \"x\"");
  EXPECT_REFUSED(ptx(entry_with(".param .align 3 .b8 a[8]")), kCompile, ".align 3");
  EXPECT_REFUSED(ptx(".entry k(.param .u32 a)\n{\n  { ret; }\n"), kCompile, "\"}\" is expected, not the end");
  EXPECT_REFUSED(ptx(".entry k()\n.maxntid 1\n"), kCompile, "body");
  EXPECT_REFUSED(ptx("\n/* "), kCompile, "k.ptx:2: error: the comment");
  EXPECT_REFUSED(ptx(".address_size 32\n" + entry_with("")), kCompile, "64 bits");
  EXPECT_REFUSED(ptx(std::string(".entry k() { \0 }", 16)), kCompile, "NUL");
  EXPECT_REFUSED(ptx(entry_with(".param .u64 .ptr .shared a")), TUFF_ERROR_UNSUPPORTED, ".shared memory");
  // Allocations begin at multiples of 256 bytes, and a launch checks offsets from there.
  EXPECT_EQ(reflect_ptx(ptx(entry_with(".param .u64 .ptr .global .align 256 a"))).alignment, 256u);
  EXPECT_REFUSED(ptx(entry_with(".param .u64 .ptr .global .align 512 a")), TUFF_ERROR_UNSUPPORTED, ".align 512");
  EXPECT_REFUSED(ptx(entry_with(".param .b8 a[18446744073709551615]")), TUFF_ERROR_LIMIT_EXCEEDED, "256 bytes");
  EXPECT_REFUSED(ptx(entry_with(".param .align 8 .b8 a[257]")), TUFF_ERROR_LIMIT_EXCEEDED, "256 bytes");
  std::string many = ".param .u64 p0";
  for (int i = 1; i < 33; ++i) many += ", .param .u64 p" + std::to_string(i);
  EXPECT_REFUSED(ptx(entry_with(many)), TUFF_ERROR_LIMIT_EXCEEDED, "33 buffers");
  for (int i = 33; i < 300; ++i) many += ", .param .u64 p" + std::to_string(i);
  EXPECT_REFUSED(ptx(entry_with(many)), TUFF_ERROR_LIMIT_EXCEEDED, "parameters");
  EXPECT_REFUSED(ptx(tuff_test::kTransposePtx), TUFF_ERROR_INVALID_ARGUMENT, "\"other\", \"transpose\"");
  EXPECT_REFUSED(ptx(tuff_test::kTransposePtx, "main"), TUFF_ERROR_INVALID_ARGUMENT, "entry is \"main\"");
}

// Damaged text is read or refused, in time and without an access beyond it (AddressSanitizer).
TEST(PtxEntry, DamagedTextDoesNoHarm) {
  std::mt19937 random(std::random_device{}());
  const std::string texts[] = {tuff_test::kSaxpyPtx, tuff_test::kTransposePtx};
  const char* const parts[] = {"{",    "}",      "(",       ")",       ",",        ";",      "[",
                               "]",    "\"",     "/*",      "*/",      "//",       ".entry", ".param",
                               ".ptr", ".align", ".shared", ".extern", ".reqntid", "0",      "99999999999999999999",
                               "\n"};
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = texts[i % 2];
    for (uint32_t changes = random() % 4 + 1; changes != 0 && !text.empty(); --changes) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text.erase(at, random() % 40); break;
        case 1: text.insert(at, parts[random() % std::size(parts)]); break;
        case 2: text[at] = static_cast<char>(random()); break;
        default: text.resize(at + 1);
      }
    }
    try {
      const KernelInterface read = reflect_ptx(ptx(text, i % 2 != 0 ? "transpose" : "", {16, 16, 1}));
      EXPECT_LE(read.bindings.size(), TUFF_KERNEL_MAX_BINDINGS);
      EXPECT_LE(read.push_bytes, kMaxPtxPushBytes);
      ++accepted;
    } catch (const Error& error) {
      const tuff_status status = error.code();
      EXPECT_TRUE(status == TUFF_ERROR_COMPILE_FAILED || status == TUFF_ERROR_INVALID_ARGUMENT ||
                  status == TUFF_ERROR_UNSUPPORTED || status == TUFF_ERROR_LIMIT_EXCEEDED)
          << error.what();
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace tuff
