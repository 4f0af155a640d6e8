// All variants of the cooperative-matrix kernels as the modules that a device receives: SPV_KHR_cooperative_matrix,
// whichever extension this shaderc compiled them to. They are checked word by word here, and by spirv-val if it is
// recent enough to know the extension.
#include "runtime/vulkan/matrix_spirv.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "planning/status.hpp"
#include "runtime/vulkan/shader_compiler.hpp"
#include "shaders.hpp"
#include "shaders/attention_matrix.hpp"
#include "shaders/gemm_matrix.hpp"
#include "tuff/tuff.h"

namespace tuff {
namespace {

struct Form {
  Matrices kind = Matrices::f16;
  bool ta = false, tb = false, edge = false, wide = false, addresses = true;
  int load_bytes = 16, c_type = TUFF_F32;
  bool vector = true, padded = false, rounds_f16 = false;
  int windows = 0, window_valid = 0;
};

std::vector<uint32_t> compile(const Form& form) {
  const bool int8 = form.kind == Matrices::int8;
  KernelRequest request = shaders::GemmMatrix::request({.a_bytes = form.load_bytes,
                                                        .b_bytes = form.load_bytes,
                                                        .beta = 0,
                                                        .bk = int8 ? 64 : 32,
                                                        .bm = 128,
                                                        .bn = 64,
                                                        .c_vector = form.vector,
                                                        .edge = form.edge,
                                                        .epilogue = {.activation = form.c_type == TUFF_I32 ? 0 : 3,
                                                                     .bias_axis = form.vector ? 0 : 2,
                                                                     .c_type = form.c_type,
                                                                     .exact_arithmetic = 0,
                                                                     .residual = !form.vector},
                                                        .mk = int8 ? 32 : 16,
                                                        .mm = 16,
                                                        .mn = 16,
                                                        .padded_a = form.padded,
                                                        .padded_b = form.padded,
                                                        .trans_a = form.ta,
                                                        .trans_b = form.tb,
                                                        .width = 32,
                                                        .window_valid = form.window_valid,
                                                        .windows = form.windows,
                                                        .wm = 64,
                                                        .wn = 32});
  request.matrices(form.kind).wide(form.wide);
  return compile_glsl("gemm_matrix", kernel_text(request, {0, form.addresses}, {.rounds_f16 = form.rounds_f16}));
}

std::vector<Form> forms() {
  std::vector<Form> all = {
      {},
      {.ta = true, .edge = true},
      {.tb = true, .edge = true, .padded = true},
      {.tb = true, .edge = true, .load_bytes = 4, .c_type = TUFF_F16},
      {.ta = true, .tb = true, .edge = true, .load_bytes = 2, .vector = false},
      {.wide = true, .c_type = TUFF_BF16},
      {.edge = true, .addresses = false, .c_type = TUFF_F16, .vector = false},
      {.c_type = TUFF_F16, .rounds_f16 = true},
      {.edge = true, .c_type = TUFF_F16, .windows = 1},
      {.tb = true, .edge = true, .c_type = TUFF_F16, .vector = false, .windows = 2},
      {.tb = true, .edge = true, .c_type = TUFF_F16, .windows = 2, .window_valid = 28},
      {.kind = Matrices::bf16},
      {.kind = Matrices::bf16, .tb = true, .edge = true, .load_bytes = 2, .c_type = TUFF_BF16, .vector = false},
      {.kind = Matrices::int8, .c_type = TUFF_I32},
      {.kind = Matrices::int8, .ta = true, .edge = true, .load_bytes = 1, .c_type = TUFF_I32, .vector = false},
      {.kind = Matrices::int8, .tb = true, .edge = true, .load_bytes = 4, .c_type = TUFF_F32},
  };
  return all;
}

struct AttentionForm {
  Matrices kind = Matrices::f16;
  bool quads = true, prefetch = true, causal = false, extended = false, wide = false, addresses = true;
  int head_dim = 128, head_dim_v = 128, row_blocks = 2;
  bool rounds_f16 = false, parts = false;
};

std::vector<uint32_t> compile(const AttentionForm& form) {
  const int type = form.kind == Matrices::bf16 ? TUFF_BF16 : TUFF_F16;
  KernelRequest request = shaders::AttentionMatrix::request({.call = {.bias = form.extended ? type : 0,
                                                                      .cap = form.extended,
                                                                      .causal = form.causal,
                                                                      .exact_arithmetic = 0,
                                                                      .extended = form.extended,
                                                                      .key_format = 0,
                                                                      .key_scales = 0,
                                                                      .mask = form.extended,
                                                                      .type = type,
                                                                      .value_format = 0,
                                                                      .value_scales = 0},
                                                             .head_dim_is = form.head_dim,
                                                             .head_dim_v_is = form.head_dim_v,
                                                             .keys = form.parts ? 16 : 32,
                                                             .parts = form.parts,
                                                             .prefetch = form.prefetch,
                                                             .quads = form.quads,
                                                             .ranges = 0,
                                                             .row_blocks = form.row_blocks,
                                                             .subgroups = form.parts ? 1 : 4,
                                                             .width = 32});
  request.matrices(form.kind).wide(form.wide);
  return compile_glsl("attention_matrix", kernel_text(request, {0, form.addresses}, {.rounds_f16 = form.rounds_f16}));
}

std::vector<AttentionForm> attention_forms() {
  return {
      {},
      {.causal = true, .addresses = false},
      {.prefetch = false, .extended = true, .wide = true},
      {.kind = Matrices::bf16, .causal = true, .head_dim = 80, .head_dim_v = 96, .row_blocks = 1},
      {.kind = Matrices::bf16, .quads = false, .extended = true, .head_dim = 64, .head_dim_v = 64},
      {.quads = false, .causal = true, .row_blocks = 1, .rounds_f16 = true},
      {.row_blocks = 1, .parts = true},
      {.extended = true, .wide = true, .row_blocks = 1, .parts = true},
      {.kind = Matrices::bf16, .quads = false, .extended = true, .row_blocks = 1, .parts = true},
  };
}

struct Module {
  Matrices kind;
  std::vector<uint32_t> words;
};
std::vector<Module> modules() {
  std::vector<Module> all;
  for (const Form& form : forms()) all.push_back({form.kind, rewrite_matrices(compile(form), form.kind)});
  for (const AttentionForm& form : attention_forms()) {
    all.push_back({form.kind, rewrite_matrices(compile(form), form.kind)});
  }
  return all;
}

template <typename Visit>
void each_instruction(const std::vector<uint32_t>& module, const Visit& visit) {
  for (size_t at = 5; at < module.size(); at += module[at] >> 16) {
    ASSERT_NE(module[at] >> 16, 0u);
    ASSERT_LE(at + (module[at] >> 16), module.size());
    visit(module[at] & 0xffffu, &module[at + 1], (module[at] >> 16) - 1);
  }
}

// In modules for bf16 the f16 type is rewritten to bf16, so conversions to f16 must use integers instead.
TEST(MatrixSpirv, ModulesForBf16ConvertNothingToF16) {
  Form form{.kind = Matrices::bf16, .c_type = TUFF_F16, .vector = false};
  const std::vector<uint32_t> by_integers = compile(form);
  form.rounds_f16 = true;
  EXPECT_EQ(compile(form), by_integers);
  form.kind = Matrices::f16;  // in this one the device converts
  EXPECT_NE(compile(form), by_integers);
}

TEST(MatrixSpirv, EveryFormBecomesKhr) {
  for (const auto& [kind, module] : modules()) {
    std::map<uint32_t, uint32_t> numbers;              // constants
    std::map<uint32_t, std::set<uint32_t>> type_uses;  // matrix type → use
    std::set<uint32_t> capabilities;
    std::map<uint32_t, int> count;
    uint32_t encodings = 0;
    each_instruction(module, [&](uint32_t op, const uint32_t* words, uint32_t size) {
      ++count[op];
      if (op == 17) capabilities.insert(words[0]);
      if (op == 43 && size == 3) numbers[words[1]] = words[2];
      if (op == 22 && size == 3) encodings += words[1] == 16 && words[2] == 0;
      if (op == 4456) {
        ASSERT_EQ(size, 6u);
        ASSERT_EQ(numbers.count(words[5]), 1u) << "a use that is no constant before it";
        type_uses[words[0]].insert(numbers[words[5]]);
      }
      if (op == 4457) {
        EXPECT_LE(numbers.at(words[3]), 1u) << "a load's layout";
      }
      if (op == 4458) {
        EXPECT_EQ(numbers.at(words[2]), 0u) << "a store's layout";
      }
      if (op == 4459) {
        EXPECT_EQ(size, kind == Matrices::int8 ? 6u : 5u);
      }
    });
    for (uint32_t op : {5358u, 5359u, 5360u, 5361u, 5362u}) EXPECT_EQ(count[op], 0) << "an NV instruction is left";
    EXPECT_EQ(type_uses.size(), 3u);
    std::set<uint32_t> uses;
    for (const auto& [type, of_type] : type_uses) uses.insert(of_type.begin(), of_type.end());
    EXPECT_EQ(uses, (std::set<uint32_t>{0, 1, 2}));
    EXPECT_GT(count[4457], 0);
    EXPECT_GT(count[4458], 0);
    EXPECT_GT(count[4459], 0);
    EXPECT_EQ(capabilities.count(6022), 1u);
    EXPECT_EQ(capabilities.count(5357), 0u);
    EXPECT_EQ(encodings, kind == Matrices::bf16 ? 1u : 0u);
    EXPECT_EQ(capabilities.count(5118), kind == Matrices::bf16 ? 1u : 0u);
    // No identifier reaches the bound in the header.
    each_instruction(module, [&](uint32_t op, const uint32_t* words, uint32_t) {
      if (op == 43) {
        EXPECT_LT(words[1], module[3]);
      }
    });
  }
}

// The year and number at the start of `spirv-val --version`: 2023.1 → 202301; 0 without spirv-val.
int validator_version() {
  std::FILE* pipe = popen("spirv-val --version 2>/dev/null", "r");  // NOLINT(cert-env33-c)
  if (pipe == nullptr) return 0;
  int year = 0, number = 0;
  const int found = std::fscanf(pipe, "SPIRV-Tools v%d.%d", &year, &number);
  pclose(pipe);
  return found == 2 ? year * 100 + number : 0;
}

TEST(MatrixSpirv, SpirvValAccepts) {
  const int version = validator_version();
  if (version < 202304) GTEST_SKIP() << "no spirv-val of 2023.4 or later: it does not know the extension";
  const std::filesystem::path folder = testing::TempDir();
  for (const auto& [kind, module] : modules()) {
    if (kind == Matrices::bf16 && version < 202503) continue;  // does not know bfloat16
    const std::filesystem::path path = folder / "tuff_matrix_test.spv";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(module.data()), static_cast<std::streamsize>(module.size() * 4));
    const std::string command = "spirv-val --target-env vulkan1.3 '" + path.string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(cert-env33-c)
    std::filesystem::remove(path);
  }
}

tuff_status status_of(const std::vector<uint32_t>& module) {
  try {
    rewrite_matrices(module, Matrices::f16);
  } catch (const Error& error) {
    return error.code();
  }
  return TUFF_OK;
}

TEST(MatrixSpirv, DamagedModulesAreRefused) {
  std::vector<uint32_t> module = compile(Form{});
  EXPECT_EQ(status_of(module), TUFF_OK);
  EXPECT_EQ(status_of({}), TUFF_ERROR_INTERNAL);
  EXPECT_EQ(status_of({module.begin(), module.begin() + 4}), TUFF_ERROR_INTERNAL);
  EXPECT_EQ(status_of({module.begin(), module.begin() + 6}), TUFF_ERROR_INTERNAL)
      << "the first instruction is cut short";
  module[5] &= 0xffffu;  // an instruction of zero words
  EXPECT_EQ(status_of(module), TUFF_ERROR_INTERNAL);
}

}  // namespace
}  // namespace tuff
