// Damaged modules, truncated answers and misbehaving helper processes: input to custom kernels that must do no harm.
// Covers everything up to the driver.
#include "runtime/custom/custom_kernel.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "planning/status.hpp"
#include "platform/process.hpp"
#include "support/spirv_module_words.hpp"

namespace tuff {
namespace {

CustomSource module_source(const std::vector<uint32_t>& words) {
  CustomSource source;
  source.language = TUFF_KERNEL_SPIRV;
  source.entry = "twice";
  source.text.assign(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint32_t));
  return source;
}

CustomSource glsl_source() {
  CustomSource source;
  source.text = R"(#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const int n = 3;
layout(binding = 0) buffer A { mat3x2 m[4]; float a[]; };
layout(binding = 1) buffer B { uvec3 b[]; };
layout(push_constant) uniform P { vec2 scale; uint count; };
shared float s[n * 2 + 1];
float twice(float x) { return 2 * x; }
void main() {
  float v[8];
  for (uint i = 0; i < count; ++i) v[i % 8] = twice(a[i]) * m[1][2].x;
  s[gl_LocalInvocationIndex % n] = v[3];
  barrier();
  if (s[0] > scale.x) atomicAdd(b[gl_GlobalInvocationID.x].y, 3u);
}
)";
  source.defines = {{"UNUSED", "1"}};
  source.constants = {{0, 8}, {1, 5}};
  return source;
}

TEST(CustomKernel, BytesComeBack) {
  const CustomSource source = glsl_source();
  CustomSource again;
  ASSERT_TRUE(from_bytes(to_bytes(source), again));
  EXPECT_EQ(to_bytes(again), to_bytes(source));
  const CompiledKernel kernel = compile_custom(source);
  CompiledKernel back;
  ASSERT_TRUE(from_bytes(to_bytes(kernel), back));
  EXPECT_EQ(to_bytes(back), to_bytes(kernel));
  EXPECT_EQ(back.interface.shared_bytes, 44u);
  EXPECT_EQ(back.interface.workgroup_size[0], 8u);
  EXPECT_EQ(back.interface.bindings.at(0).min_bytes, 4 * 24 + 4u);
  EXPECT_FALSE(back.interface.bindings.at(0).written);
  EXPECT_TRUE(back.interface.bindings.at(1).written);
  EXPECT_EQ(back.interface.push_bytes, 12u);
}

TEST(CustomKernel, DamagedBytesAreNoticed) {
  const std::string source = to_bytes(glsl_source()), kernel = to_bytes(compile_custom(glsl_source()));
  CustomSource read_source;
  CompiledKernel read_kernel;
  for (size_t length = 0; length < source.size(); ++length) {
    ASSERT_FALSE(from_bytes(source.substr(0, length), read_source)) << length;
  }
  for (size_t length = 0; length < kernel.size(); ++length) {
    ASSERT_FALSE(from_bytes(kernel.substr(0, length), read_kernel)) << length;
  }
  EXPECT_FALSE(from_bytes(kernel + "x", read_kernel));
  EXPECT_FALSE(from_bytes(source, read_kernel));
  std::mt19937 random(5);
  for (int i = 0; i < 5000; ++i) {  // any result is fine, but no crash and no unbounded memory
    std::string bent = i % 2 == 0 ? source : kernel;
    for (int k = 0; k < 3; ++k) bent[random() % bent.size()] = static_cast<char>(random());
    from_bytes(bent, read_source);
    from_bytes(bent, read_kernel);
  }
}

// Each module either yields a kernel or an error.
void compile_bent(const std::vector<uint32_t>& good, const std::string& entry, int rounds, int& compiled,
                  int& refused) {
  std::mt19937 random(11);
  for (int i = 0; i < rounds; ++i) {
    std::vector<uint32_t> words = good;
    const auto any = [&] { return words[random() % words.size()]; };
    for (uint32_t k = 0; k <= random() % 3; ++k) {
      uint32_t& word = words[random() % words.size()];
      switch (random() % 6) {
        case 0: word ^= 1u << random() % 32; break;
        case 1: word = any(); break;
        case 2: word = random() % 64; break;
        case 3: word = (word & 0xffff0000u) | random() % 400; break;  // another opcode of the same length
        case 4: word = 0xffffffffu; break;
        case 5: words.resize(1 + random() % words.size()); break;
      }
    }
    CustomSource source = module_source(words);
    source.entry = entry;
    source.in_bounds = i % 2 == 1;
    source.zero_shared = i % 4 == 3;
    try {
      const CompiledKernel kernel = compile_custom(source);
      ++compiled;
      ASSERT_LE(kernel.interface.bindings.size(), size_t{TUFF_KERNEL_MAX_BINDINGS});
    } catch (const Error& error) {
      ++refused;
      ASSERT_NE(error.code(), TUFF_ERROR_INTERNAL) << error.what();
    }
  }
}

TEST(CustomKernel, DamagedModulesAreRefusedOrCompile) {
  int compiled = 0, refused = 0;
  compile_bent({std::begin(tuff_test::kTwoEntries), std::end(tuff_test::kTwoEntries)}, "twice", 6000, compiled,
               refused);
  compile_bent(compile_custom(glsl_source()).words, "main", 6000, compiled, refused);
  EXPECT_GT(refused, 6000);
  EXPECT_GT(compiled, 50);  // otherwise nothing got as far as reflection
}

TEST(CustomKernel, LoopsAreCountedWhereTheyCanBe) {
  const auto count = [](const std::string& body) {
    CustomSource source;
    source.text =
        "#version 450\nlayout(binding = 0) buffer B { uint n; uint b[]; };\n"
        "layout(constant_id = 3) const uint most = 80000;\nvoid main() {\n  uint c = 0;\n" +
        body + "\n  b[0] = c;\n}\n";
    return compile_custom(source).interface.loop_iterations;
  };
  EXPECT_EQ(count("for (int i = 0; i < 70000; ++i) c += b[i];"), 70000u);
  EXPECT_EQ(count("for (uint i = 5; i <= 70000; i += 2) c += b[i];"), 34998u);
  EXPECT_EQ(count("for (int i = -10; i != 90; i += 4) c += b[0];"), 25u);
  EXPECT_EQ(count("for (uint i = 0; i < most; ++i) c += b[i];"), 80000u);
  EXPECT_EQ(count("for (int j = 0; j < 20; ++j) for (int i = 0; i < 300; ++i) c += b[i];"), 300u);
  EXPECT_EQ(count("for (int i = 0; i < 70000; ++i) { if (b[i] == 3) continue; c += b[i]; }"), 70000u);
  EXPECT_EQ(count("for (int i = 0; i < 70000; ++i) { switch (b[i]) { case 1: c += 2; break; default: ++c; } }"),
            70000u);
  // Loops that are left early, or whose bounds are not known at compile time.
  for (const char* body : {"", "for (uint i = 0; i < n; ++i) c += b[i];", "for (uint i = n; i < 70000; ++i) c += b[i];",
                           "for (uint i = 0; i < 70000; i += n) c += b[i];",
                           "for (int i = 0; i < 70000; ++i) { if (b[i] == 3) break; ++c; }",
                           "for (int i = 0; i < 70000; ++i) { if (b[i] == 3) return; ++c; }",
                           "for (int i = 0; i < 70000; ++i) { if (b[i] == 3) i += 5; ++c; }",
                           "int i = 0; while (true) { if (i++ > 9) break; }", "for (int i = 9; i < 3; ++i) ++c;"}) {
    EXPECT_EQ(count(body), 0u) << body;
  }
}

// The sizes of arrays in workgroup memory may be expressions of specialisation constants.
TEST(CustomKernel, ExpressionsOfConstantsAreEvaluated) {
  const auto elements = [](const std::string& expression) {
    CustomSource source;
    source.text =
        "#version 450\nlayout(local_size_x_id = 0) in;\nlayout(binding = 0) buffer Data { float data[]; };\n"
        "layout(constant_id = 1) const int a = 1;\nlayout(constant_id = 2) const int b = 1;\n"
        "layout(constant_id = 3) const uint u = 1;\nlayout(constant_id = 4) const uint v = 1;\n"
        "layout(constant_id = 5) const bool yes = false;\nlayout(constant_id = 6) const int zero = 1;\n"
        "layout(constant_id = 7) const uint none = 1;\nlayout(constant_id = 8) const bool no = false;\nshared float "
        "s[" +
        expression + "];\nvoid main() { s[0] = data[0]; barrier(); data[1] = s[0]; }\n";
    source.constants = {{0, 8}, {1, 12}, {2, 5}, {3, 12}, {4, 5}, {5, 1}, {6, 0}, {7, 0}};
    return compile_custom(source).interface.shared_bytes / 4;
  };
  const std::pair<const char*, uint64_t> rows[] = {
      {"a + b", 17},
      {"a - b", 7},
      {"a * b", 60},
      {"a / b", 2},
      {"a % b", 2},
      {"u / v", 2},
      {"u % v", 2},
      {"int(u) + 1", 13},
      {"-(b - a)", 7},
      {"~(-a)", 11},
      {"a & 6", 4},
      {"a | b", 13},
      {"a ^ b", 9},
      {"b << 2", 20},
      {"u >> 2", 3},
      {"(b << 40) + 1", 1},
      {"(u >> 40) + 1", 1},
      {"a == b ? 3 : 4", 4},
      {"a != b ? 3 : 4", 3},
      {"u > v ? 3 : 4", 3},
      {"u < v ? 3 : 4", 4},
      {"u >= v ? 3 : 4", 3},
      {"u <= v ? 3 : 4", 4},
      {"a > b ? 3 : 4", 3},
      {"a < b ? 3 : 4", 4},
      {"a >= b ? 3 : 4", 3},
      {"a <= b ? 3 : 4", 4},
      {"(a > b && yes) ? 3 : 4", 3},
      {"(a < b || yes) ? 3 : 4", 3},
      {"!yes ? 3 : 4", 4},
      {"no ? 3 : 4", 4},
      {"gl_WorkGroupSize.x * 2", 16},
  };
  for (const auto& [expression, value] : rows) {
    EXPECT_NO_THROW(EXPECT_EQ(elements(expression), value) << expression) << expression;
  }
  for (const char* undefined :
       {"a / zero", "a % zero", "u / none", "u % none", "(b - a) / b + 9", "(b - a) % b + 9", "(a >> 1) + 1"}) {
    try {
      elements(undefined);
      ADD_FAILURE() << undefined;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TUFF_ERROR_UNSUPPORTED) << undefined << ": " << error.what();
    }
  }
}

// Constant indices that validation does not check, and modules without the types and instructions that the rewrite
// adds.
TEST(CustomKernel, KeptInBoundsIsValid) {
  CustomSource source = glsl_source();
  const size_t plain = compile_custom(source).words.size();
  for (const bool zero_shared : {false, true}) {
    source.in_bounds = true;
    source.zero_shared = zero_shared;
    const CompiledKernel kernel = compile_custom(source);
    EXPECT_GT(kernel.words.size(), plain);
    EXPECT_EQ(kernel.interface.bindings.size(), 2u);
  }
  source = {};
  source.in_bounds = true;
  for (const char* text :
       {"#version 450\nvoid main() {}\n",
        "#version 450\nlayout(binding = 0) buffer B { float b; };\nvoid main() { b = 1; }\n",
        "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
        "layout(binding = 0) buffer B { int8_t b; };\nshared int s[4];\nvoid main() { s[b] = 1; }\n",
        // a component of a value, the length of a buffer
        "#version 450\nlayout(binding = 0) buffer B { vec4 v; int i; float f; };\n"
        "void main() { f = (v + v)[i]; }\n",
        "#version 450\nlayout(binding = 0) buffer B { int b[]; };\nvoid main() { b[0] = b.length(); }\n"}) {
    source.text = text;
    EXPECT_NO_THROW(compile_custom(source)) << text;
  }
}

// Constants of 8 and 16 bits fill their words.
TEST(CustomKernel, NarrowConstants) {
  CustomSource source;
  source.text =
      "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
      "layout(constant_id = 0) const int16_t a = 1s;\nlayout(constant_id = 1) const uint8_t b = uint8_t(1);\n"
      "layout(binding = 0) buffer B { int values[]; };\nvoid main() { values[0] = int(a); values[1] = int(b); }\n";
  source.constants = {{0, 0xfffffffe}, {1, 0x1ff}};
  const CompiledKernel kernel = compile_custom(source);
  EXPECT_EQ(std::count(kernel.words.begin(), kernel.words.end(), 0xfffffffe), 1);
  EXPECT_EQ(std::count(kernel.words.begin(), kernel.words.end(), 0xff), 1);
}

// Programs in place of the helper that end in each way.
TEST(CustomKernel, HelpersThatDoNotAnswer) {
  const std::pair<const char*, tuff_status> rows[] = {
      {"kill -ALRM $$", TUFF_ERROR_LIMIT_EXCEEDED},  {"kill -XCPU $$", TUFF_ERROR_LIMIT_EXCEEDED},
      {"kill -KILL $$", TUFF_ERROR_LIMIT_EXCEEDED},  {"kill -SEGV $$", TUFF_ERROR_COMPILE_FAILED},
      {"exit 3", TUFF_ERROR_COMPILE_FAILED},         {"yes >&0", TUFF_ERROR_LIMIT_EXCEEDED},
      {"exec sleep 100", TUFF_ERROR_LIMIT_EXCEEDED},
  };
  char folder[] = "/tmp/tuff-helper-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/helper";
  ASSERT_EQ(setenv("TUFF_COMPILE", file.c_str(), 1), 0);
  for (const auto& [text, status] : rows) {
    std::FILE* const script = std::fopen(file.c_str(), "we");
    ASSERT_NE(script, nullptr);
    std::fprintf(script, "#!/bin/sh\n%s\n", text);
    ASSERT_EQ(std::fclose(script), 0);
    ASSERT_EQ(::chmod(file.c_str(), 0700), 0);
    try {
      compile_isolated(glsl_source(), {2000, 256 << 20});
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), status) << text << ": " << error.what();
    }
  }
  ASSERT_EQ(unsetenv("TUFF_COMPILE"), 0);
  ASSERT_EQ(::unlink(file.c_str()), 0);
  ASSERT_EQ(::rmdir(folder), 0);
}

TEST(CustomKernel, UntrustedModulesToo) {
  std::vector<uint32_t> words(std::begin(tuff_test::kTwoEntries), std::end(tuff_test::kTwoEntries));
  const CompileLimits limits{10'000, 256 << 20};
  const CompiledKernel kernel = compile_isolated(module_source(words), limits);
  EXPECT_EQ(to_bytes(kernel), to_bytes(compile_custom(module_source(words))));
  words.resize(words.size() - 1);
  EXPECT_THROW(compile_isolated(module_source(words), limits), Error);
}

using platform::ProcessEnd;
using platform::run_program;
using Kind = ProcessEnd::Kind;

constexpr uint64_t kPatience = 60'000;  // milliseconds, enough for a busy machine

TEST(Process, EndsAreTold) {
  EXPECT_EQ(run_program("/nowhere/at/all", {}, "", kPatience, 10).kind, Kind::not_started);
  const ProcessEnd status = run_program("/bin/sh", {"-c", "exit 7"}, "", kPatience, 10);
  EXPECT_EQ(status.kind, Kind::exited);
  EXPECT_EQ(status.code, 7);
  const ProcessEnd signalled = run_program("/bin/sh", {"-c", "kill -9 $$"}, "", kPatience, 10);
  EXPECT_EQ(signalled.kind, Kind::signalled);
  EXPECT_EQ(signalled.code, 9);
}

// An application that ignores the ends of its children, or has no descriptors left.
TEST(Process, InUnusualApplications) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(run_program("/bin/sh", {"-c", "exit 7"}, "", kPatience, 10).kind, Kind::unknown);
  std::signal(SIGCHLD, before);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit few = limit;
  few.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const ProcessEnd none = run_program("/bin/sh", {"-c", "exit 7"}, "", kPatience, 10);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(none.kind, Kind::not_started);
  EXPECT_EQ(none.code, EMFILE);
}

TEST(Process, InputAndAnswerOfAnySize) {
  std::string large;
  for (int i = 0; large.size() < 3'000'000; ++i) large += std::to_string(i) + ' ';
  const ProcessEnd echoed = run_program("/bin/sh", {"-c", "cat >&0"}, large, kPatience, 4'000'000);
  EXPECT_EQ(echoed.kind, Kind::exited);
  EXPECT_EQ(echoed.output, large);
  EXPECT_EQ(run_program("/bin/sh", {"-c", "cat >&0"}, large, kPatience, 1000).kind, Kind::too_much_output);
  EXPECT_EQ(run_program("/bin/sh", {"-c", "echo printed"}, large, kPatience, 1000).output, "");  // and reads nothing
}

TEST(Process, TimeIsKept) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run_program("/bin/sh", {"-c", "while :; do :; done"}, "", 200, 10).kind, Kind::timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(kPatience));
}

// Confinement allows a program to close its socket, and to sleep.
TEST(Process, TimeIsKeptByAProgramThatClosesItsSocketAndGoesOn) {
  const auto begin = std::chrono::steady_clock::now();
  const ProcessEnd end = run_program("/bin/sh", {"-c", "echo said >&0; exec 0>&-; exec sleep 100"}, "", 200, 10);
  EXPECT_EQ(end.kind, Kind::timed_out);
  EXPECT_EQ(end.output, "said\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(kPatience));
  // One that ends within its time is not killed.
  const ProcessEnd later = run_program("/bin/sh", {"-c", "exec 0>&-; sleep 0.1; exit 7"}, "", kPatience, 10);
  EXPECT_EQ(later.kind, Kind::exited);
  EXPECT_EQ(later.code, 7);
}

TEST(Process, NothingIsInherited) {
  const int left_open = ::open("/dev/null", O_RDONLY);
  const ProcessEnd seen = run_program("/bin/sh", {"-c", "count=$(ls /proc/self/fd | wc -l); echo $count >&0; env >&0"},
                                      "", kPatience, 4000);
  ::close(left_open);
  EXPECT_EQ(seen.output.substr(0, 2), "4\n") << seen.output;  // three, and the one with which ls reads the folder
  EXPECT_EQ(seen.output.find("HOME="), std::string::npos);
}

}  // namespace
}  // namespace tuff
