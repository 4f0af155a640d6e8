#include "runtime/vulkan/matrix_spirv.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "planning/status.hpp"

namespace tuff {
namespace {

// Opcodes and enumerants from the SPIR-V registry.
enum Op : uint32_t {
  kExtension = 10,
  kCapability = 17,
  kTypeInt = 21,
  kTypeFloat = 22,
  kConstantTrue = 41,
  kConstantFalse = 42,
  kConstant = 43,
  kTypeMatrixNv = 5358,
  kLoadNv = 5359,
  kStoreNv = 5360,
  kMulAddNv = 5361,
  kLengthNv = 5362,
  kTypeMatrixKhr = 4456,
  kLoadKhr = 4457,
  kStoreKhr = 4458,
  kMulAddKhr = 4459,
  kLengthKhr = 4460,
};
constexpr uint32_t kCapabilityMatrixNv = 5357, kCapabilityMatrixKhr = 6022;
constexpr uint32_t kCapabilityBfloat16 = 5116, kCapabilityBfloat16Matrix = 5118;
constexpr uint32_t kBfloat16Encoding = 0;
constexpr uint32_t kAllSigned = 0xf;  // MatrixASignedComponents … MatrixResultSignedComponents
constexpr uint32_t kHeaderWords = 5, kBoundWord = 3;
enum MatrixUse : uint32_t { kUseA = 0, kUseB = 1, kUseSum = 2 };

struct Instruction {
  uint32_t op;
  std::span<const uint32_t> words;  // without word 0
};

std::vector<Instruction> parse(const std::vector<uint32_t>& module) {
  std::vector<Instruction> instructions;
  size_t at = kHeaderWords;
  while (at < module.size()) {
    const uint32_t count = module[at] >> 16;
    if (count == 0 || at + count > module.size()) fail(TUFF_ERROR_INTERNAL, "a SPIR-V module is cut short");
    instructions.push_back({module[at] & 0xffffu, std::span(module).subspan(at + 1, count - 1)});
    at += count;
  }
  return instructions;
}

bool is_text(std::span<const uint32_t> words, std::string_view text) {
  const char* bytes = reinterpret_cast<const char*>(words.data());
  const size_t room = words.size() * 4;
  return text.size() < room && std::memcmp(bytes, text.data(), text.size()) == 0 && bytes[text.size()] == '\0';
}

class Writer {
 public:
  explicit Writer(const std::vector<uint32_t>& module) : words_(module.begin(), module.begin() + kHeaderWords) {}
  void add(uint32_t op, std::span<const uint32_t> operands) {
    words_.push_back((static_cast<uint32_t>(operands.size()) + 1) << 16 | op);
    words_.insert(words_.end(), operands.begin(), operands.end());
  }
  void add(uint32_t op, std::initializer_list<uint32_t> operands) {
    add(op, std::span(operands.begin(), operands.size()));
  }
  void add_extension(std::string_view name) {
    std::vector<uint32_t> words(name.size() / 4 + 1, 0);
    std::memcpy(words.data(), name.data(), name.size());
    add(kExtension, words);
  }
  uint32_t new_id() { return words_[kBoundWord]++; }
  std::vector<uint32_t> take() { return std::move(words_); }

 private:
  std::vector<uint32_t> words_;
};

// What the module declares about its matrices.
struct Facts {
  std::map<uint32_t, uint32_t> use_of_type;  // NV matrix type → Use
  std::set<uint32_t> true_ids, false_ids;
  uint32_t uint_type = 0, f16_type = 0;
};

Facts learn(const std::vector<Instruction>& instructions) {
  Facts facts;
  std::set<uint32_t> matrix_types;
  std::map<uint32_t, uint32_t> type_of;  // of matrix values
  for (const auto& [op, words] : instructions) {
    if (op == kTypeMatrixNv) matrix_types.insert(words[0]);
    if (op == kConstantTrue) facts.true_ids.insert(words[1]);
    if (op == kConstantFalse) facts.false_ids.insert(words[1]);
    if (op == kTypeInt && words[1] == 32 && words[2] == 0) facts.uint_type = words[0];
    if (op == kTypeFloat && words[1] == 16) facts.f16_type = words[0];
    // Instructions with a result begin with the result type and the result id. Types, names and decorations have other
    // layouts.
    const bool has_type = op >= kConstantTrue && words.size() >= 2;
    if (has_type && matrix_types.count(words[0]) != 0) type_of[words[1]] = words[0];
  }
  for (const auto& [op, words] : instructions) {
    if (op != kMulAddNv) continue;
    for (uint32_t use = kUseA; use <= kUseSum; ++use) {
      const auto type = type_of.find(words[2 + use]);
      if (type == type_of.end()) fail(TUFF_ERROR_INTERNAL, "an operand of a matrix multiplication has no matrix type");
      const auto [known, fresh] = facts.use_of_type.emplace(type->second, use);
      if (!fresh && known->second != use) fail(TUFF_ERROR_INTERNAL, "one matrix type serves two uses");
    }
  }
  return facts;
}

}  // namespace

std::vector<uint32_t> rewrite_matrices(const std::vector<uint32_t>& module, Matrices matrices) {
  if (module.size() < kHeaderWords) fail(TUFF_ERROR_INTERNAL, "a SPIR-V module is cut short");
  const std::vector<Instruction> instructions = parse(module);
  const Facts facts = learn(instructions);
  if (facts.uint_type == 0) fail(TUFF_ERROR_INTERNAL, "a module with matrices has no 32-bit unsigned type");
  Writer out(module);
  uint32_t constants[3] = {};  // ids of the constants 0, 1 and 2, for uses and layouts
  const auto layout_of = [&](uint32_t column_major) {
    if (facts.true_ids.count(column_major) != 0) return constants[1];
    if (facts.false_ids.count(column_major) != 0) return constants[0];
    fail(TUFF_ERROR_INTERNAL, "a matrix's layout is not known at compile time");
  };
  bool bfloat16_declared = false;
  for (const auto& [op, words] : instructions) {
    std::vector<uint32_t> operands(words.begin(), words.end());
    switch (op) {
      case kCapability:
        if (matrices == Matrices::bf16 && !bfloat16_declared) {
          out.add(kCapability, {kCapabilityBfloat16});
          out.add(kCapability, {kCapabilityBfloat16Matrix});
          bfloat16_declared = true;
        }
        out.add(op, {words[0] == kCapabilityMatrixNv ? kCapabilityMatrixKhr : words[0]});
        break;
      case kExtension:
        if (is_text(words, "SPV_NV_cooperative_matrix") || is_text(words, "SPV_KHR_cooperative_matrix")) {
          out.add_extension("SPV_KHR_cooperative_matrix");
          if (matrices == Matrices::bf16) out.add_extension("SPV_KHR_bfloat16");
        } else {
          out.add(op, words);
        }
        break;
      case kTypeFloat:
        // Only matrices have 16-bit elements in these kernels: buffers are read as whole words.
        if (matrices == Matrices::bf16 && words[0] == facts.f16_type) operands.push_back(kBfloat16Encoding);
        out.add(op, operands);
        break;
      case kTypeMatrixNv: {
        if (constants[0] == 0) {
          for (uint32_t value = 0; value < 3; ++value) {
            constants[value] = out.new_id();
            out.add(kConstant, {facts.uint_type, constants[value], value});
          }
        }
        const auto use = facts.use_of_type.find(words[0]);
        operands.push_back(constants[use == facts.use_of_type.end() ? kUseSum : use->second]);
        out.add(kTypeMatrixKhr, operands);
        break;
      }
      case kLoadNv:  // type, result, pointer, stride, column-major, memory operands
        operands[3] = layout_of(words[4]);
        operands[4] = words[3];
        out.add(kLoadKhr, operands);
        break;
      case kStoreNv:  // pointer, matrix, stride, column-major, memory operands
        operands[2] = layout_of(words[3]);
        operands[3] = words[2];
        out.add(kStoreKhr, operands);
        break;
      case kMulAddNv:
        if (matrices == Matrices::int8) operands.push_back(kAllSigned);
        out.add(kMulAddKhr, operands);
        break;
      case kLengthNv: out.add(kLengthKhr, operands); break;
      default: out.add(op, words);
    }
  }
  return out.take();
}

}  // namespace tuff
