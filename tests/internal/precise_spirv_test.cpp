#include "runtime/vulkan/precise_spirv.hpp"

#include <gtest/gtest.h>

#include <set>

#include "planning/status.hpp"
#include "runtime/vulkan/shader_compiler.hpp"

namespace tuff {
namespace {

// The floating-point additions of a module, and how many of them are decorated NoContraction.
struct Additions {
  int all = 0, precise = 0;
};

Additions additions_in(const std::vector<uint32_t>& module) {
  Additions result;
  std::set<uint32_t> decorated;
  for (size_t at = 5; at < module.size(); at += module[at] >> 16) {
    const uint32_t op = module[at] & 0xffff;
    if (op == 71 && module[at + 2] == 42) decorated.insert(module[at + 1]);
    if (op != 129) continue;
    ++result.all;
    result.precise += decorated.count(module[at + 2]) != 0 ? 1 : 0;
  }
  return result;
}

std::string sums(const char* qualifier) {
  return std::string(R"(#version 460
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 1) in;
layout(std430, set = 0, binding = 0) buffer Values { float v[]; };
void main() {
  [[unroll]] for (int i = 0; i < 4; ++i) {
    )") + qualifier +
         R"( float sum = v[2 * i] + v[2 * i + 1];
    v[i] = sum;
  }
}
)";
}

TEST(PreciseSpirv, EveryTurnOfAnUnrolledLoopIsPrecise) {
  const Additions precise = additions_in(compile_glsl("precise", sums("precise")));
  EXPECT_EQ(precise.all, 4);  // otherwise the loop was not unrolled, and the test shows nothing
  EXPECT_EQ(precise.precise, precise.all);
}

TEST(PreciseSpirv, WhatIsNotPreciseStaysSo) {
  const std::vector<uint32_t> module = compile_glsl("plain", sums(""));
  EXPECT_EQ(additions_in(module).precise, 0);
  EXPECT_EQ(keep_precise(module), module);
}

TEST(PreciseSpirv, ModulesThatAreCutShortAreRefused) {
  std::vector<uint32_t> module = compile_glsl("precise", sums("precise"));
  module.push_back(5u << 16 | 129);  // an addition that lacks four words
  EXPECT_THROW(keep_precise(module), Error);
  module.back() = 0;  // an instruction of zero words
  EXPECT_THROW(keep_precise(module), Error);
  EXPECT_TRUE(keep_precise({}).empty());
}

}  // namespace
}  // namespace tuff
