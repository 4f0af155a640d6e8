#include "runtime/vulkan/reconvergence_spirv.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "planning/status.hpp"
#include "runtime/vulkan/shader_compiler.hpp"

namespace tuff {
namespace {

std::vector<uint32_t> compiled(const char* statement) {
  return compile_glsl("sample", std::string(R"(#version 460
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Values { uint v[]; };
void main() {
  uint x = v[gl_LocalInvocationIndex];
  )") + statement + R"(
  v[gl_LocalInvocationIndex] = x;
}
)");
}

// What a module says of one kind of instruction: each one's words behind the first.
std::vector<std::vector<uint32_t>> all(const std::vector<uint32_t>& module, uint32_t op) {
  std::vector<std::vector<uint32_t>> found;
  for (size_t at = 5; at < module.size(); at += module[at] >> 16) {
    if ((module[at] & 0xffff) != op) continue;
    found.emplace_back(module.begin() + static_cast<ptrdiff_t>(at) + 1,
                       module.begin() + static_cast<ptrdiff_t>(at + (module[at] >> 16)));
  }
  return found;
}

bool has_extension(const std::vector<uint32_t>& module, const char* name) {
  for (const auto& words : all(module, 10)) {
    if (std::strncmp(reinterpret_cast<const char*>(words.data()), name, words.size() * 4) == 0) return true;
  }
  return false;
}

// Groups of instructions have an order: capabilities, extensions, …, entry points, execution modes.
bool in_order(const std::vector<uint32_t>& module) {
  const uint32_t order[] = {17, 10, 11, 14, 15, 16};
  size_t place = 0;
  for (size_t at = 5; at < module.size(); at += module[at] >> 16) {
    const auto* const found = std::find(std::begin(order), std::end(order), module[at] & 0xffff);
    if (found == std::end(order)) continue;
    const auto now = static_cast<size_t>(found - std::begin(order));
    if (now < place) return false;
    place = now;
  }
  return place == 5;
}

TEST(ReconvergenceSpirv, ModulesWithSubgroupOperationsDeclareIt) {
  for (const char* statement : {"x = subgroupAdd(x);", "x = subgroupShuffleXor(x, 1u);"}) {
    const std::vector<uint32_t> module = compiled(statement);
    const uint32_t entry = all(module, 15).at(0).at(1);
    for (const bool maximal : {false, true}) {
      const std::vector<uint32_t> changed =
          with_reconvergence(module, maximal ? Reconvergence::maximal : Reconvergence::subgroup_uniform);
      EXPECT_TRUE(in_order(changed));
      EXPECT_EQ(has_extension(changed, "SPV_KHR_maximal_reconvergence"), maximal);
      EXPECT_EQ(has_extension(changed, "SPV_KHR_subgroup_uniform_control_flow"), !maximal);
      const auto before = all(module, 16), modes = all(changed, 16);
      ASSERT_EQ(modes.size(), before.size() + 1);
      EXPECT_EQ(modes[0], (std::vector<uint32_t>{entry, maximal ? 6023u : 4421u}));
      EXPECT_EQ(std::vector(modes.begin() + 1, modes.end()), before);
    }
  }
}

TEST(ReconvergenceSpirv, OtherModulesStayAsTheyAre) {
  const std::vector<uint32_t> plain = compiled("x += 1u;"), with = compiled("x = subgroupAdd(x);");
  EXPECT_EQ(with_reconvergence(plain, Reconvergence::maximal), plain);
  EXPECT_EQ(with_reconvergence(plain, Reconvergence::subgroup_uniform), plain);
  EXPECT_EQ(with_reconvergence(with, Reconvergence::core), with);
}

// spirv-val knows the older of the two modes.
TEST(ReconvergenceSpirv, TheValidatorAcceptsIt) {
  if (std::system("command -v spirv-val >/dev/null 2>&1") != 0) GTEST_SKIP() << "spirv-val is not installed";
  const std::vector<uint32_t> module =
      with_reconvergence(compiled("x = subgroupAdd(x);"), Reconvergence::subgroup_uniform);
  std::FILE* const pipe = popen("spirv-val --target-env vulkan1.2 -", "w");
  ASSERT_NE(pipe, nullptr);
  EXPECT_EQ(std::fwrite(module.data(), 4, module.size(), pipe), module.size());
  EXPECT_EQ(pclose(pipe), 0);
}

TEST(ReconvergenceSpirv, ModulesThatAreCutShortAreRefused) {
  std::vector<uint32_t> module = compiled("x = subgroupAdd(x);");
  module.push_back(5u << 16 | 129);  // an addition that lacks four words
  EXPECT_THROW(with_reconvergence(module, Reconvergence::maximal), Error);
  module.back() = 0;  // an instruction of zero words
  EXPECT_THROW(with_reconvergence(module, Reconvergence::maximal), Error);
}

}  // namespace
}  // namespace tuff
