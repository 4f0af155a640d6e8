// Rewrites a module so that it stays within its own variables, before the driver gets an untrusted or robust kernel.
// Drivers only keep buffer accesses within a descriptor's range: an index beyond an array in workgroup memory reads and
// writes whatever follows it in the process.
//
// - An index into an array (in workgroup, private or function memory, or in push constants), a vector or a matrix is
//   clamped to the last valid index. It is treated as unsigned, so a negative index also becomes the last one.
// - Uninitialised values become zero: variables of an invocation, and undefined values, because a compiler may use a
//   different value at each use of one, before and after a comparison for example. With `zero_shared` also shared
//   variables, which would otherwise expose old memory of the process.
// - Pointer casts are rejected, because the result would have other bounds than the object.
//
// Arrays in storage buffers are left to the driver: there the descriptor's range applies, not the declared size.
#define SPV_ENABLE_UTILITY_CODE
#include <spirv_cross/spirv.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "planning/status.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/custom/spirv_module.hpp"

namespace tuff {
namespace {

constexpr uint32_t kUMin = 38;  // GLSL.std.450
constexpr std::string_view kInstructionSet = "GLSL.std.450";

using Words = std::vector<uint32_t>;

void emit(Words& out, uint32_t op, std::initializer_list<uint32_t> operands) {
  out.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | op);
  out.insert(out.end(), operands);
}
void emit(Words& out, SpirvInstruction instruction) { out.insert(out.end(), instruction.begin(), instruction.end()); }

class Bounds {
 public:
  Bounds(const Words& words, const SpirvModule& module, bool zero_shared)
      : words_(words), module_(module), zero_shared_(zero_shared), next_id_(words[3]) {}

  Words run() {
    for_each_instruction(words_, [&](SpirvInstruction instruction) { note(instruction); });
    for_each_instruction(words_, [&](SpirvInstruction instruction) { rewrite(instruction); });
    Words all(words_.begin(), words_.begin() + 5);
    all[3] = next_id_;
    for (const Words* part : {&preamble_, &declarations_, &constants_, &module_variables_, &functions_}) {
      all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  }

 private:
  void note(SpirvInstruction instruction) {
    bool has_result = false, has_type = false;
    const uint32_t op = opcode(instruction);
    spv::HasResultAndType(static_cast<spv::Op>(op), &has_result, &has_type);
    if (has_result && has_type && instruction.size() > 2) types_of_[instruction[2]] = instruction[1];
    if (op == spv::OpExtInstImport) {
      const auto* name = reinterpret_cast<const char*>(instruction.data() + 2);
      const size_t length = strnlen(name, (instruction.size() - 2) * sizeof(uint32_t));
      if (std::string_view(name, length) == kInstructionSet) instruction_set_ = instruction[1];
    } else if (op == spv::OpTypeInt && instruction[2] == 32) {
      if (instruction[3] == 0) uint_ = instruction[1];
    }
  }

  // Order of the result: the instruction set's import precedes the memory model. Null constants precede the module's
  // variables, which they initialise, and follow all types and constants of the module.
  void rewrite(SpirvInstruction instruction) {
    const uint32_t op = opcode(instruction);
    if (op == spv::OpMemoryModel) {
      if (instruction_set_ == 0) import_instructions();
      in_preamble_ = false;
    }
    if (op == spv::OpFunction) in_functions_ = true;
    if (in_preamble_) return emit(preamble_, instruction);
    switch (op) {
      case spv::OpVariable: return variable(instruction);
      case spv::OpUndef:
        return emit(in_functions_ ? constants_ : declarations_, spv::OpConstantNull, {instruction[1], instruction[2]});
      case spv::OpExtInst:  // outside of functions: debug information, which refers to variables
        return emit(in_functions_ ? functions_ : module_variables_, instruction);
      case spv::OpAccessChain:
      case spv::OpInBoundsAccessChain: return access(instruction);
      case spv::OpVectorExtractDynamic: return component(instruction, instruction[3], 4);
      case spv::OpVectorInsertDynamic: return component(instruction, instruction[3], 5);
      case spv::OpPtrAccessChain:
      case spv::OpInBoundsPtrAccessChain:
        fail(TUFF_ERROR_UNSUPPORTED, "the kernel has pointer arithmetic ({}), which cannot be kept in bounds",
             op == spv::OpPtrAccessChain ? "OpPtrAccessChain" : "OpInBoundsPtrAccessChain");
      case spv::OpBitcast:
      case spv::OpCopyLogical:
        if (is_pointer(instruction[1]) || is_pointer(type_of(instruction[3]))) {
          fail(TUFF_ERROR_COMPILE_FAILED, "the kernel casts a pointer, whose bounds are then unknown");
        }
        break;
      default: break;
    }
    emit(in_functions_ ? functions_ : declarations_, instruction);
  }

  void import_instructions() {
    instruction_set_ = next_id_++;
    Words name((kInstructionSet.size() + sizeof(uint32_t)) / sizeof(uint32_t));  // including the terminating NUL
    std::memcpy(name.data(), kInstructionSet.data(), kInstructionSet.size());
    preamble_.push_back(static_cast<uint32_t>(name.size() + 2) << 16 | spv::OpExtInstImport);
    preamble_.push_back(instruction_set_);
    preamble_.insert(preamble_.end(), name.begin(), name.end());
  }

  uint32_t type_of(uint32_t value) const {
    const auto found = types_of_.find(value);
    return found != types_of_.end() ? found->second : 0;
  }
  SpirvInstruction type(uint32_t id) const {
    const SpirvInstruction found = module_.type(id);
    if (found.empty()) fail(TUFF_ERROR_COMPILE_FAILED, "the kernel uses a value of the unknown type %{}", id);
    return found;
  }
  bool is_pointer(uint32_t id) const {
    const SpirvInstruction found = module_.type(id);
    return !found.empty() && opcode(found) == spv::OpTypePointer;
  }

  void variable(SpirvInstruction instruction) {
    const uint32_t storage = instruction[3];
    const bool own = storage == spv::StorageClassFunction || storage == spv::StorageClassPrivate;
    const bool zeroed = own || (zero_shared_ && storage == spv::StorageClassWorkgroup);
    Words& out = in_functions_ ? functions_ : module_variables_;
    if (!zeroed || instruction.size() > 4) return emit(out, instruction);
    emit(out, spv::OpVariable, {instruction[1], instruction[2], storage, null(type(instruction[1])[3])});
  }

  uint32_t null(uint32_t type_id) {
    uint32_t& id = nulls_[type_id];
    if (id == 0) {
      id = next_id_++;
      emit(constants_, spv::OpConstantNull, {type_id, id});
    }
    return id;
  }

  // For 32-bit or 64-bit types and values below 2^31.
  uint32_t constant(uint32_t type_id, uint32_t bits, uint64_t value) {
    uint32_t& id = numbers_[{type_id, value}];
    if (id != 0) return id;
    id = next_id_++;
    const auto low = static_cast<uint32_t>(value);
    if (bits == 64) {
      emit(constants_, spv::OpConstant, {type_id, id, low, 0});
    } else {
      emit(constants_, spv::OpConstant, {type_id, id, low});
    }
    return id;
  }

  uint32_t uint_type() {
    if (uint_ == 0) {
      uint_ = next_id_++;
      emit(constants_, spv::OpTypeInt, {uint_, 32, 0});
    }
    return uint_;
  }

  // Returns an id for min(index, count - 1), unsigned.
  uint32_t bounded(uint32_t index, uint64_t count) {
    const uint32_t type_id = type_of(index);
    const SpirvInstruction number = type(type_id);
    if (opcode(number) != spv::OpTypeInt)
      fail(TUFF_ERROR_COMPILE_FAILED, "the kernel has an index that is not an integer");
    if (count == 0 || count > INT32_MAX) {
      fail(TUFF_ERROR_LIMIT_EXCEEDED, "the kernel has an array of {} elements outside of buffers", count);
    }
    const uint32_t bits = number[2];
    if (const std::optional<uint64_t> value = module_.literal(index)) {
      const uint64_t unsigned_value = bits >= 64 ? *value : *value & ((uint64_t{1} << bits) - 1);
      if (unsigned_value < count) return index;
      return constant(uint_type(), 32, count - 1);
    }
    uint32_t wide = index, wide_type = type_id;  // a narrow type may be too small for the last index
    if (bits < 32) {
      wide = next_id_++;
      wide_type = uint_type();
      emit(functions_, number[3] == 1 ? spv::OpSConvert : spv::OpUConvert, {wide_type, wide, index});
    }
    const uint32_t result = next_id_++;
    const uint32_t last = constant(wide_type, std::max(bits, 32u), count - 1);
    emit(functions_, spv::OpExtInst, {wide_type, result, instruction_set_, kUMin, wide, last});
    return result;
  }

  void component(SpirvInstruction instruction, uint32_t vector, size_t place) {
    const SpirvInstruction of = type(type_of(vector));
    Words changed(instruction.begin(), instruction.end());
    changed[place] = bounded(instruction[place], of[3]);
    emit(functions_, SpirvInstruction(changed));
  }

  void access(SpirvInstruction instruction) {
    SpirvInstruction pointer = type(type_of(instruction[3]));
    const bool in_buffer = pointer[2] == spv::StorageClassStorageBuffer || pointer[2] == spv::StorageClassUniform;
    Words changed(instruction.begin(), instruction.end());
    SpirvInstruction of = type(pointer[3]);
    for (size_t i = 4; i < instruction.size(); ++i) {
      switch (opcode(of)) {
        case spv::OpTypeStruct: {
          const uint64_t member = module_.literal(instruction[i]).value_or(UINT64_MAX);
          if (member + 2 >= of.size())
            fail(TUFF_ERROR_COMPILE_FAILED, "the kernel accesses a member that does not exist");
          of = type(of[2 + member]);
          break;
        }
        case spv::OpTypeArray: {
          const std::optional<uint64_t> length = module_.value(of[3]);
          if (!length) fail(TUFF_ERROR_UNSUPPORTED, "the size of an array is too complex to evaluate");
          if (!in_buffer) changed[i] = bounded(instruction[i], *length);
          of = type(of[2]);
          break;
        }
        case spv::OpTypeRuntimeArray: of = type(of[2]); break;
        case spv::OpTypeVector:
        case spv::OpTypeMatrix:
          changed[i] = bounded(instruction[i], of[3]);
          of = type(of[2]);
          break;
        default: fail(TUFF_ERROR_COMPILE_FAILED, "the kernel indexes a value that has no parts");
      }
    }
    emit(functions_, SpirvInstruction(changed));
  }

  const Words& words_;
  const SpirvModule& module_;
  const bool zero_shared_;
  uint32_t next_id_;
  uint32_t instruction_set_ = 0, uint_ = 0;
  bool in_preamble_ = true, in_functions_ = false;
  // In the module's order.
  Words preamble_, declarations_, constants_, module_variables_, functions_;
  std::unordered_map<uint32_t, uint32_t> types_of_;  // of values
  std::unordered_map<uint32_t, uint32_t> nulls_;     // by type
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> numbers_;
};

}  // namespace

Words keep_in_bounds(const Words& words, const SpirvModule& module, bool zero_shared) {
  return Bounds(words, module, zero_shared).run();
}

}  // namespace tuff
