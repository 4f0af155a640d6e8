// A further element type is one block in kernels/common/types.glsl: with it, every kernel of the families that list
// their types in a table (kernels/*/*.def) compiles for the type. The type here is bf16 under a number that nothing
// else has.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "internal/fake_recorder.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/norm/norm.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/scan/scan.hpp"
#include "kernels/softmax/softmax.hpp"
#include "runtime/vulkan/shader_compiler.hpp"

namespace tuff {
namespace {

// The text with a block for type 31 behind that of bf16, and 31 wherever the request says bf16.
std::string with_new_type(const std::string& text) {
  const size_t begin = text.find("// -- bf16\n"), end = text.find("// -- f64\n");
  if (begin >= end || end == std::string::npos) return {};
  std::string block = text.substr(begin, end - begin);
  // The functions that both types call.
  const size_t shared = block.find("uint tuff_bf16_bits("), own = block.find("uvec2 tuff_pack_3(");
  if (shared >= own || own == std::string::npos) return {};
  block.erase(shared, own - shared);
  block = std::regex_replace(block, std::regex("#define TUFF_BF16 3"), "#define TUFF_NEW 31");
  block = std::regex_replace(block, std::regex("_3\\b"), "_31");
  block = std::regex_replace(block, std::regex("TUFF_VALUE_OF == 3\\b"), "TUFF_VALUE_OF == 31");
  const std::string head =
      std::regex_replace(text.substr(0, end), std::regex("(#define TUFF_\\w*TYPE) 3\n"), "$1 31\n");
  return head + block + text.substr(end);
}

class NewType : public testing::Test {
 protected:
  NewType() {
    buffer_.allocation = std::make_shared<Nowhere>(), buffer_.bytes = uint64_t{1} << 40;
    recorder_.seen = [this](const KernelRequest& kernel, const Dispatch&) {
      const std::string name = kernel.source().name;
      const std::string text = kernel_text(kernel, {}, {});
      // Later stages may combine values in f32; and once is enough.
      if (text.find("TYPE 3\n") == std::string::npos || !texts_.insert(text).second) return;
      const std::string changed = with_new_type(text);
      ASSERT_FALSE(changed.empty()) << name << ": types.glsl has other blocks";
      const std::vector<uint32_t> module = compile_glsl(name, text);
      EXPECT_EQ(compile_glsl(name, changed).size(), module.size()) << name;
      compiled_.insert(name);
    };
  }
  Buffer buffer_;
  FakeRecorder recorder_{a_gpu()};
  std::set<std::string> texts_;
  std::set<std::string> compiled_;  // the kernels' names
};

TEST_F(NewType, IsABlockAndALine) {
  for (const std::vector<uint64_t>& shape :
       std::vector<std::vector<uint64_t>>{{300, 1024, 1}, {2, 200'000, 1}, {7, 100, 3}}) {
    record_scan(recorder_, {ScanOp::sum, TUFF_BF16, &buffer_, &buffer_, shape.data(), 3, 1, false, false});
    record_reduce(recorder_, {TUFF_BF16, TUFF_REDUCE_MAX, &buffer_, &buffer_, shape.data(), 3, 1});
    SoftmaxArgs softmax{TUFF_BF16, &buffer_, &buffer_, shape.data(), 3, 1, 1, 0, {&buffer_, TUFF_BF16, 1, 1}};
    record_softmax(recorder_, softmax);
    NormArgs norm{};
    norm.dtype = norm.weight_type = TUFF_BF16, norm.centred = true;
    norm.input = norm.residual = norm.weight = norm.bias = norm.output = norm.sum = &buffer_;
    norm.rows = shape[0] * shape[2], norm.channels = shape[1], norm.epsilon = 1e-5;
    record_norm(recorder_, norm);
    BatchNormArgs batch{};
    batch.dtype = batch.weight_type = TUFF_BF16;
    batch.input = batch.mean = batch.variance = batch.weight = batch.bias = batch.output = &buffer_;
    batch.batch = shape[0], batch.channels = shape[1], batch.inner = shape[2], batch.epsilon = 1e-5;
    record_batch_norm(recorder_, batch);
  }
  UnaryArgs unary{};
  unary.dtype = TUFF_BF16, unary.op = TUFF_UNARY_TANH, unary.input = unary.output = &buffer_, unary.n = 4096;
  record_unary(recorder_, unary);
  BinaryArgs binary{};
  binary.dtype = TUFF_BF16, binary.op = TUFF_BINARY_DIV, binary.a = binary.b = binary.output = &buffer_;
  binary.n = 4096;
  record_binary(recorder_, binary);
  const uint64_t a_shape[] = {30, 40}, b_shape[] = {1, 40};
  binary.n = 0, binary.rank = 2, binary.a_shape = a_shape, binary.b_shape = b_shape;
  record_binary(recorder_, binary);
  EXPECT_EQ(compiled_,
            (std::set<std::string>{"batch_norm", "binary", "binary_broadcast", "norm_rows", "norm_split_rows",
                                   "reduce_columns", "reduce_rows", "scan_columns", "scan_rows", "softmax_columns",
                                   "softmax_rows", "softmax_split_rows", "unary"}));
}

}  // namespace
}  // namespace tuff
