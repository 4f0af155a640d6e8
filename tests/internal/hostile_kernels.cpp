// Compiles kernels that are written to do harm, as untrusted source. The process that requests them must survive.
//
//   tuff_hostile_kernels [--count n] [--seconds s] [--seed n] [--keep FILE]
//
// The inputs of tuff_kernel_create with TUFF_KERNEL_UNTRUSTED are GLSL with parts repeated, nested, removed and
// exchanged, and SPIR-V with words, instructions and lengths changed. Each call must create a kernel or report an error
// in bounded time, and the context must compute afterwards. No kernel is launched, because infinite loops are the
// device's concern. --keep stores each kernel in the file while it is tried.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "planning/status.hpp"
#include "runtime/vulkan/shader_compiler.hpp"
#include "support/options.hpp"
#include "tuff/tuff.h"

namespace tuff_test {
namespace {

using Clock = std::chrono::steady_clock;
using Random = std::mt19937_64;
using Words = std::vector<uint32_t>;

int problems = 0;
template <typename... Args>
void problem(const char* format, Args... args) {
  if (++problems <= 20) std::printf(format, args...), std::printf("\n"), std::fflush(stdout);
}

const char* const kSources[] = {
    "#version 450\nlayout(local_size_x = 64) in;\nlayout(binding = 0) readonly buffer X { float x[]; };\n"
    "layout(binding = 1) writeonly buffer Y { float y[]; };\nlayout(push_constant) uniform P { float by; };\n"
    "void main() { y[gl_GlobalInvocationID.x] = by * x[gl_GlobalInvocationID.x]; }\n",
    "#version 450\n#define N 64\nlayout(local_size_x = N) in;\nlayout(binding = 0) buffer X { uint x[]; };\n"
    "shared uint part[N];\nlayout(constant_id = 3) const uint rounds = 4;\n"
    "uint mix_bits(uint v) { for (uint i = 0; i < rounds; ++i) v ^= v << (i + 1); return v; }\n"
    "void main() {\n  const uint at = gl_LocalInvocationIndex;\n  part[at] = mix_bits(x[at]);\n  barrier();\n"
    "  for (uint step = N / 2; step > 0; step /= 2) {\n    if (at < step) part[at] += part[at + step];\n    "
    "barrier();\n"
    "  }\n  if (at == 0) x[0] = part[0];\n}\n",
    "#version 450\nlayout(local_size_x = 8, local_size_y = 8) in;\nstruct Item { vec4 a; mat3 m; int n[5]; };\n"
    "layout(std430, binding = 2) buffer B { Item items[]; };\nvec4 turn(vec4 v, mat3 m) { return vec4(m * v.xyz, v.w); "
    "}\n"
    "void main() {\n  Item item = items[gl_LocalInvocationIndex];\n  switch (item.n[2]) {\n    case 0: item.a += 1.0; "
    "break;\n"
    "    case 1: item.a = turn(item.a, item.m); break;\n    default: do { item.a *= 0.5; } while (item.a.x > 1.0);\n  "
    "}\n"
    "  atomicAdd(items[0].n[1], 1);\n  items[gl_LocalInvocationIndex] = item;\n}\n"};

const std::vector<std::string> kParts = {"(",
                                         ")",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ";",
                                         ",",
                                         "+",
                                         "/ 0",
                                         "-2147483648",
                                         "4294967295u",
                                         "1e99999",
                                         "0x7fffffff",
                                         "for (;;) {}",
                                         "while (true) ;",
                                         "float",
                                         "uint",
                                         "mat4",
                                         "dvec4",
                                         "int64_t",
                                         "shared float big[1 << 28];",
                                         "#include \"/etc/passwd\"\n",
                                         "#version 100\n",
                                         "#define A A A\n",
                                         "#define B(x) x x x x\nB(B(B(B(B(B(B(B(B(B(1))))))))))\n",
                                         "#line 2147483647\n",
                                         "#extension GL_KHR_shader_subgroup_arithmetic : enable\n",
                                         "#extension GL_EXT_buffer_reference : enable\n",
                                         "#extension all : require\n",
                                         "subgroupAdd(1)",
                                         "main()",
                                         "return;",
                                         "discard;",
                                         "layout(binding = 4294967295)",
                                         "layout(local_size_x = 2147483647) in;\n",
                                         "layout(set = 99, binding = 99) buffer Z { float z[]; };\n",
                                         "uniform sampler2D s;\n",
                                         "const int a[] = int[](1,2,3);\n",
                                         "gl_WorkGroupSize",
                                         "\\\n",
                                         "/*",
                                         "//",
                                         "\xff\xfe",
                                         "\"",
                                         "struct S { S s; };\n",
                                         "float f(float x) { return f(x); }\n",
                                         "x[",
                                         "y[-1]",
                                         "? :",
                                         "inout",
                                         "precise",
                                         "invariant"};

std::string hostile_source(Random& random) {
  std::string text = kSources[random() % 3];
  for (uint64_t times = 1 + random() % 3; times > 0; --times) {
    const uint64_t number = random();
    const size_t at = text.empty() ? 0 : random() % text.size();
    const std::string& part = kParts[(number >> 8) % kParts.size()];
    switch (number % 12) {
      case 0:
      case 1:
      case 2: text.insert(at, part); break;
      case 3: text.replace(at, std::min(part.size(), text.size() - at), part); break;
      case 4: text.erase(at, (number >> 16) % 50); break;
      case 5: text.insert(at, text.substr(random() % (text.size() + 1), (number >> 16) % 200)); break;
      case 6:
        for (uint64_t i = (number >> 16) % 2000; i > 0; --i) text.insert(at, "(");
        break;
      case 7: {  // doubles a part repeatedly
        std::string more = part;
        while (more.size() < size_t{1} << (number >> 16) % 17) more += more;
        text.insert(at, more);
        break;
      }
      case 8:
        if (!text.empty()) text[at] = static_cast<char>(number >> 16);
        break;
      case 9: {
        const size_t brace = text.find('{', at);
        if (brace != std::string::npos) text.insert(brace + 1, part);
        break;
      }
      case 10: {  // replaces a number
        const size_t digit = text.find_first_of("0123456789", at);
        static const char* const kNumbers[] = {"0", "-1", "2147483647", "4294967296", "1000000", "65537"};
        if (digit != std::string::npos) text.replace(digit, 1, kNumbers[(number >> 16) % 6]);
        break;
      }
      default: text.resize(at);
    }
  }
  return text;
}

// The positions at which instructions begin.
std::vector<size_t> instructions(const Words& words) {
  std::vector<size_t> starts;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    starts.push_back(at);
    if (words[at] >> 16 == 0) break;
  }
  return starts;
}

Words hostile_module(const std::vector<Words>& modules, Random& random) {
  Words words = modules[random() % modules.size()];
  for (uint64_t times = 1 + random() % 3; times > 0; --times) {
    const std::vector<size_t> starts = instructions(words);
    if (words.size() < 8 || starts.empty()) return words;
    const uint64_t number = random();
    const size_t start = starts[random() % starts.size()];
    const size_t length = std::min<size_t>(std::max<uint32_t>(words[start] >> 16, 1), words.size() - start);
    const size_t operand = start + (length > 1 ? 1 + (number >> 8) % (length - 1) : 0);
    const auto here = words.begin() + static_cast<ptrdiff_t>(start), after = here + static_cast<ptrdiff_t>(length);
    switch (number % 12) {
      case 0: words[operand] ^= 1u << (number >> 40) % 32; break;
      case 1:
      case 2: words[operand] = static_cast<uint32_t>(number >> 32) % (words[3] + 2); break;  // replaces an id
      case 3: words[operand] = static_cast<uint32_t>(number >> 32); break;
      case 4: words[start] = (words[start] & 0xffff0000) | static_cast<uint32_t>(number >> 32) % 460; break;
      case 5: words[start] = (words[start] & 0xffff) | static_cast<uint32_t>(number >> 32) % 40 << 16; break;
      case 6: words.erase(here, after); break;
      case 7: {
        const Words copy(here, after);
        const size_t other = starts[random() % starts.size()];
        words.insert(words.begin() + static_cast<ptrdiff_t>(other), copy.begin(), copy.end());
        break;
      }
      case 8: {  // exchanges two operands
        const size_t other = start + (length > 1 ? 1 + (number >> 20) % (length - 1) : 0);
        std::swap(words[operand], words[other]);
        break;
      }
      case 9: words[(number >> 8) % 5] ^= 1u << (number >> 40) % 32; break;  // changes the header
      case 10: words.resize(start + (number >> 8) % 3); break;
      default: {
        static constexpr uint32_t kNumbers[] = {0, 1, 0xffffffff, 0x7fffffff, 0x10000, 4096, 65, 33};
        words[operand] = kNumbers[(number >> 40) % 8];
      }
    }
  }
  return words;
}

void expect_alive(tuff_context context, tuff_buffer buffer) {
  const float value = 2;
  float back = 0;
  const bool well = tuff_fill(context, buffer, 0, 64, &value, sizeof value) == TUFF_OK &&
                    tuff_unary(context, TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 16) == TUFF_OK &&
                    tuff_copy_dtoh(context, &back, buffer, 60, sizeof back) == TUFF_OK;
  if (!well || back != -2) problem("the context does not compute any more");
}

int run(uint64_t count, double seconds, uint64_t seed, const char* keep) {
  std::printf("--seed %llu\n", static_cast<unsigned long long>(seed));
  Random random(seed);
  std::vector<Words> modules;
  for (const char* source : kSources) modules.push_back(tuff::compile_glsl("hostile.comp", source));
  tuff_context context = 0;
  tuff_buffer buffer = 0;
  if (tuff_context_create(nullptr, &context) != TUFF_OK || tuff_alloc(context, 64, &buffer) != TUFF_OK) return 1;
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::map<tuff_status, uint64_t> answers;
  uint64_t done = 0;
  double longest = 0;
  for (; done < count && problems < 20 && (seconds == 0 || elapsed() < seconds); ++done) {
    tuff_kernel_desc desc{};
    desc.struct_size = sizeof desc;
    desc.flags = TUFF_KERNEL_UNTRUSTED;
    desc.name = "hostile.comp";
    desc.compile_milliseconds = 5'000;
    std::string text;
    Words words;
    if (random() % 2 == 0) {
      text = hostile_source(random);
      desc.language = TUFF_KERNEL_GLSL;
      desc.source = text.data();
      desc.source_bytes = text.size();
    } else {
      words = hostile_module(modules, random);
      desc.language = TUFF_KERNEL_SPIRV;
      desc.source = words.data();
      desc.source_bytes = words.size() * sizeof(uint32_t);
    }
    if (desc.source_bytes == 0) continue;
    if (keep != nullptr) {
      std::ofstream(keep, std::ios::binary)
          .write(static_cast<const char*>(desc.source), static_cast<std::streamsize>(desc.source_bytes));
    }
    tuff_kernel kernel = 0;
    const double before = elapsed();
    const tuff_status status = tuff_kernel_create(context, &desc, &kernel);
    const double took = elapsed() - before;
    longest = std::max(longest, took);
    ++answers[status];
    char message[256] = "";
    tuff_last_error(message, sizeof message, nullptr);
    const bool says = std::strncmp(message, "tuff_kernel_create: ", 20) == 0 && message[20] != '\0';
    const bool known = status == TUFF_ERROR_COMPILE_FAILED || status == TUFF_ERROR_LIMIT_EXCEEDED ||
                       status == TUFF_ERROR_UNSUPPORTED || status == TUFF_ERROR_INVALID_ARGUMENT;
    if (status != TUFF_OK && (!known || !says || kernel != 0)) {
      problem("number %llu answers %s: %s", static_cast<unsigned long long>(done), tuff_status_name(status), message);
    }
    // The time of the compiler and of the driver, and that of starting them on a busy machine.
    if (took > 90) problem("number %llu takes %.1f s: %s", static_cast<unsigned long long>(done), took, message);
    if (status == TUFF_OK && tuff_kernel_destroy(kernel) != TUFF_OK) problem("a kernel is not destroyed");
    if (done % 50 == 0) expect_alive(context, buffer);
  }
  expect_alive(context, buffer);
  if (tuff_context_destroy(context) != TUFF_OK) problem("the context is not destroyed");
  for (const auto& [status, times] : answers) {
    std::printf("%8llu %s\n", static_cast<unsigned long long>(times), tuff_status_name(status));
  }
  std::printf("%llu kernels, %.0f s, the longest %.1f s, %d problems\n", static_cast<unsigned long long>(done),
              elapsed(), longest, problems);
  // If everything is refused, the compiler and the driver were hardly tested.
  if (done > 200 && answers[TUFF_OK] == 0) problem("none is a kernel");
  return problems == 0 && done != 0 ? 0 : 1;
}

}  // namespace
}  // namespace tuff_test

int main(int count, char** words) {
  uint64_t kernels = 10'000, seed = std::random_device()();
  double seconds = 0;
  std::string keep;
  tuff_test::parse_options(count, words, 1,
                           "usage: tuff_hostile_kernels [--count n] [--seconds s] [--seed n] [--keep file]\n",
                           {{"--count", &kernels}, {"--seconds", &seconds}, {"--seed", &seed}, {"--keep", &keep}});
  return tuff_test::run(kernels, seconds, seed, keep.empty() ? nullptr : keep.c_str());
}
