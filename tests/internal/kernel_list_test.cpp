// The list of kernels that were requested: what is written can be read back, and anything else is ignored.
#include "runtime/vulkan/kernel_list.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "shaders.hpp"

namespace tuff {
namespace {

namespace fs = std::filesystem;

class KernelListTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tuff-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  KernelList list(const char* device = "device") const { return KernelList(DiskCache({}, folder_), device); }
  void write(const std::string& text) const {
    DiskCache({}, folder_)
        .store("requests", hash_text("device"), std::as_bytes(std::span<const char>(text.data(), text.size())));
  }
  static std::string today() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::to_string(std::chrono::duration_cast<std::chrono::hours>(now).count() / 24);
  }
  fs::path folder_;
};

KernelRequest request(int64_t value) {
  return KernelRequest(shaders::binding_probe)
      .define("TUFF_WORDS", value)
      .define("TUFF_OTHER", -5)
      .constant(3, 0xffffffff)
      .wide(true)
      .matrices(Matrices::bf16);
}

TEST_F(KernelListTest, GivesBackWhatWasAdded) {
  KernelList first = list();
  first.add(kernel_line(request(1), {2, true}));
  first.add(kernel_line(request(2), {3, false}));
  first.save();
  KernelList second = list();
  second.add(kernel_line(request(2), {3, false}));
  second.add(kernel_line(request(3), {0, true, true}));
  second.save();
  KernelList reader = list();
  const std::vector<ListedKernel> kernels = reader.load();
  ASSERT_EQ(kernels.size(), 3u) << "both processes' kernels, each once";
  for (const ListedKernel& kernel : kernels) {
    EXPECT_EQ(&kernel.kernel.source(), &shaders::binding_probe);
    ASSERT_EQ(kernel.kernel.define_count(), 2u);
    EXPECT_STREQ(kernel.kernel.defines()[0].name, "TUFF_WORDS");
    EXPECT_EQ(kernel.kernel.defines()[1].value, -5);
    ASSERT_EQ(kernel.kernel.constant_count(), 1u);
    EXPECT_EQ(kernel.kernel.constants()[0].id, 3u);
    EXPECT_EQ(kernel.kernel.constants()[0].value, 0xffffffffu);
    EXPECT_TRUE(kernel.kernel.is_wide());
    EXPECT_EQ(kernel.kernel.matrices(), Matrices::bf16);
    EXPECT_EQ(kernel_line(kernel.kernel, kernel.form), kernel.line);
  }
  EXPECT_TRUE(list("another device").load().empty());
}

TEST_F(KernelListTest, FarOperandsSurvive) {
  const KernelRequest narrow = request(1).wide(false);
  const KernelForm far{.operands = 2, .addresses = true, .group_rows = false, .far = true};
  KernelList writer = list();
  writer.add(kernel_line(narrow, far));
  writer.add(kernel_line(narrow, {2, true}));
  writer.save();
  KernelList reader = list();
  const std::vector<ListedKernel> kernels = reader.load();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_NE(kernels[0].form.far, kernels[1].form.far);
  for (const ListedKernel& kernel : kernels) EXPECT_TRUE(kernel.form.addresses);
}

TEST_F(KernelListTest, TexelBuffersSurvive) {
  const KernelForm form{.operands = 3, .texels = 0x208};
  KernelList writer = list();
  writer.add(kernel_line(request(1).wide(false), form));
  writer.save();
  KernelList reader = list();
  const std::vector<ListedKernel> kernels = reader.load();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].form, form);
  EXPECT_EQ(kernels[0].kernel.texels(), form.texels);
}

TEST_F(KernelListTest, OthersKernelsAreNotWritten) {
  static const KernelSource custom = {"binding_probe", "void main() {}"};
  EXPECT_EQ(kernel_line(KernelRequest(custom), {1, true}), "");
}

TEST_F(KernelListTest, WhatIsWrongIsLeftOut) {
  const std::string good = kernel_line(request(1), {2, true});
  const std::string day = today() + " ";
  const std::string hash = good.substr(good.find(' ') + 1, 16);
  std::string text = "kernels 3\n" + day + good + "\n";
  for (const std::string& bad :
       {std::string("binding_probe"), "binding_probe " + hash + " 2 1 0 1 0",  // too short
        "no_such_kernel " + hash + " 2 1 0 1 0 0",
        std::string("binding_probe 0123456789abcdef 2 1 0 1 0 0"),                            // another build's
        "binding_probe " + hash + " 99 1 0 1 0 0", "binding_probe " + hash + " 2 2 0 1 0 0",  // out of range
        "binding_probe " + hash + " 2 3 0 0 0 0", "binding_probe " + hash + " 2 1 2 1 0 0",
        "binding_probe " + hash + " 2 1 0 1 7 0", "binding_probe " + hash + " 2 1 0 1 0 0 A",
        "binding_probe " + hash + " 2 1 0 1 0 0 A=", "binding_probe " + hash + " 2 1 0 1 0 0 A=1;",
        "binding_probe " + hash + " 2 1 0 1 0 0 A\t=1", "binding_probe " + hash + " 2 1 0 1 0 0 =1",
        "binding_probe " + hash + " 2 0 0 0 0 3", "binding_probe " + hash + " 2 0 0 0 0 400",  // texels
        "binding_probe " + hash + " 2 1 0 0 0 4",
        "binding_probe " + hash + " 2 1 0 1 0 0 1:", "binding_probe " + hash + " 2 1 0 1 0 0 1:-1"}) {
    text += day + bad + "\n";
  }
  std::string many = "binding_probe " + hash + " 2 1 0 1 0 0";
  for (uint32_t i = 0; i <= KernelRequest::kMaxDefines; ++i) many += " A" + std::to_string(i) + "=1";
  text += day + many + "\nnonsense\n\n" + day;
  write(text);
  KernelList reader = list();
  const std::vector<ListedKernel> kernels = reader.load();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].line, good);
  write("kernels 1\n" + day + good + "\n");
  EXPECT_TRUE(list().load().empty()) << "of another format";
}

TEST_F(KernelListTest, IsBoundedAndForgets) {
  const std::string old = std::to_string(std::stol(today()) - KernelList::kMaxDays - 1) + " ";
  const std::string yesterday = std::to_string(std::stol(today()) - 1) + " ";
  std::string text = "kernels 3\n" + old + kernel_line(request(-1), {2, true}) + "\n";
  for (int i = 0; i < 500; ++i) text += yesterday + kernel_line(request(i), {2, true}) + "\n";
  write(text);
  KernelList writer = list();
  for (int i = 1000; i < 1000 + static_cast<int>(KernelList::kMaxKernels) - 10; ++i) {
    writer.add(kernel_line(request(i), {2, true}));
  }
  writer.save();
  KernelList reader = list();
  const std::vector<ListedKernel> kernels = reader.load();
  ASSERT_EQ(kernels.size(), +KernelList::kMaxKernels);
  const auto value = [&](size_t i) { return kernels[i].kernel.defines()[0].value; };
  for (size_t i = 0; i < kernels.size() - 10; ++i) EXPECT_GE(value(i), 1000) << "the latest first";
  for (size_t i = kernels.size() - 10; i < kernels.size(); ++i) {
    EXPECT_TRUE(value(i) >= 0 && value(i) < 500) << "kernels not requested for months are forgotten";
  }
}

TEST_F(KernelListTest, NothingIsWrittenThatIsKnown) {
  KernelList first = list();
  first.add(kernel_line(request(1), {2, true}));
  first.save();
  const fs::path file = fs::directory_iterator(folder_)->path();
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  const auto before = fs::last_write_time(file);
  KernelList second = list();
  second.add(kernel_line(request(1), {2, true}));
  second.save();
  second.save();
  EXPECT_EQ(fs::last_write_time(file), before);
}

}  // namespace
}  // namespace tuff
