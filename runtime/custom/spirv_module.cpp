#include "runtime/custom/spirv_module.hpp"

#include <spirv_cross/spirv.hpp>

#include <algorithm>

#include "planning/status.hpp"

namespace tuff {
namespace {

uint64_t saturated_add(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }
uint64_t saturated_mul(uint64_t a, uint64_t b) { return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b; }
uint64_t aligned(uint64_t size, uint64_t alignment) {
  const uint64_t more = saturated_add(size, alignment - 1);
  return more == UINT64_MAX ? more : more / alignment * alignment;
}

bool is_type(uint32_t op) { return op >= spv::OpTypeVoid && op <= spv::OpTypePointer; }
bool is_constant(uint32_t op) { return op >= spv::OpConstantTrue && op <= spv::OpSpecConstantOp; }

}  // namespace

SpirvModule::SpirvModule(const std::vector<uint32_t>& words, uint32_t entry) : words_(words), entry_(entry) {
  uint32_t function = 0;
  for_each_instruction(words, [&](SpirvInstruction instruction) { read_instruction(instruction, function); });
  read_body(entry);
}

void SpirvModule::read_instruction(SpirvInstruction instruction, uint32_t& function) {
  const uint32_t op = opcode(instruction);
  if (op == spv::OpFunction) {
    function = instruction[2];
  } else if (op == spv::OpFunctionEnd) {
    function = 0;
  } else if (op == spv::OpExecutionMode && instruction[1] == entry_ && instruction[2] == spv::ExecutionModeLocalSize) {
    std::copy_n(instruction.begin() + 3, 3, local_size_.begin());
  } else if (op == spv::OpDecorate && instruction[2] == spv::DecorationBuiltIn &&
             instruction[3] == spv::BuiltInWorkgroupSize) {
    workgroup_size_constant_ = instruction[1];
  } else if (is_type(op)) {
    types_[instruction[1]] = instruction;
    layouts_[instruction[1]] = layout_of(instruction);
  } else if (is_constant(op)) {
    constants_[instruction[2]] = instruction;
    values_[instruction[2]] = value_of(instruction);
  } else if (op == spv::OpVariable) {
    variables_.push_back({instruction[2], instruction[1], instruction[3], function});
    roots_[instruction[2]] = instruction[2];
  }
  if (function != 0) bodies_[function].push_back(instruction);
}

// Iterative: validation rejects recursion, but not call chains as long as the module.
void SpirvModule::read_body(uint32_t first) {
  std::vector<uint32_t> waiting{first};
  while (!waiting.empty()) {
    const uint32_t function = waiting.back();
    waiting.pop_back();
    if (!reached_.insert(function).second) continue;
    for (const SpirvInstruction instruction : bodies_[function]) {
      if (opcode(instruction) == spv::OpFunctionCall) waiting.push_back(instruction[3]);
      read_access(instruction);
    }
  }
}

uint32_t SpirvModule::root(uint32_t pointer) const {
  const auto found = roots_.find(pointer);
  return found != roots_.end() ? found->second : 0;
}

void SpirvModule::mark(uint32_t pointer, bool read, bool write) {
  const uint32_t variable = root(pointer);
  if (variable == 0) return;
  touched_.insert(variable);
  if (read) read_.insert(variable);
  if (write) written_.insert(variable);
}

void SpirvModule::read_access(SpirvInstruction instruction) {
  const uint32_t op = opcode(instruction);
  if (instruction.size() > 2) {
    const auto type = types_.find(instruction[1]);
    if (type != types_.end() &&
        (opcode(type->second) == spv::OpTypeArray || opcode(type->second) == spv::OpTypeStruct)) {
      value_types_.insert(instruction[1]);
    }
  }
  switch (op) {
    case spv::OpAccessChain:
    case spv::OpInBoundsAccessChain:
    case spv::OpPtrAccessChain:
    case spv::OpInBoundsPtrAccessChain:
    case spv::OpCopyObject:
      if (const uint32_t variable = root(instruction[3]); variable != 0) roots_[instruction[2]] = variable;
      mark(instruction[3], false, false);
      return;
    case spv::OpArrayLength: mark(instruction[3], false, false); return;
    case spv::OpLoad:
    case spv::OpAtomicLoad: mark(instruction[3], true, false); return;
    case spv::OpStore:
    case spv::OpAtomicStore:
    case spv::OpAtomicFlagClear: mark(instruction[1], false, true); return;
    case spv::OpCopyMemory:
    case spv::OpCopyMemorySized:
      mark(instruction[1], false, true);
      mark(instruction[2], true, false);
      return;
    case spv::OpFunctionCall:
    case spv::OpExtInst:
    case spv::OpPhi:
    case spv::OpSelect:
    case spv::OpReturnValue:
      // The pointer is not tracked further, so assume both reads and writes.
      for (size_t i = op == spv::OpExtInst ? 5 : 1; i < instruction.size(); ++i) mark(instruction[i], true, true);
      return;
    default: break;
  }
  const bool atomic = (op >= spv::OpAtomicExchange && op <= spv::OpAtomicXor) || op == spv::OpAtomicFlagTestAndSet ||
                      op == spv::OpAtomicFAddEXT || op == spv::OpAtomicFMinEXT || op == spv::OpAtomicFMaxEXT;
  if (atomic) mark(instruction[3], true, true);
}

std::optional<uint64_t> SpirvModule::value_of(SpirvInstruction instruction) const {
  switch (opcode(instruction)) {
    case spv::OpConstant:
    case spv::OpSpecConstant:
      return instruction.size() > 4 ? instruction[3] | uint64_t{instruction[4]} << 32 : instruction[3];
    case spv::OpConstantTrue:
    case spv::OpSpecConstantTrue: return 1;
    case spv::OpConstantNull:
    case spv::OpConstantFalse:
    case spv::OpSpecConstantFalse: return 0;
    case spv::OpSpecConstantOp: break;
    default: return std::nullopt;
  }
  const auto known = [&](uint32_t id) {
    const auto found = values_.find(id);
    return found != values_.end() ? found->second : std::nullopt;
  };
  // Operations on 32-bit integers and booleans only: others would have to wrap at their own width.
  const auto is_word = [](SpirvInstruction type) {
    if (type.empty()) return false;
    const uint32_t op = opcode(type);
    return op == spv::OpTypeBool || ((op == spv::OpTypeInt || op == spv::OpTypeFloat) && type[2] == 32);
  };
  if (!is_word(type(instruction[1]))) return std::nullopt;
  if (instruction[3] == spv::OpCompositeExtract && instruction.size() == 6) {
    const auto composite = constants_.find(instruction[4]);
    if (composite == constants_.end() || instruction[5] + 3 >= composite->second.size()) return std::nullopt;
    return known(composite->second[3 + instruction[5]]);
  }
  std::array<uint32_t, 3> operands{};
  const size_t count = instruction.size() - 4;
  if (count > operands.size()) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    const auto constant = constants_.find(instruction[4 + i]);
    const std::optional<uint64_t> value = known(instruction[4 + i]);
    if (!value || constant == constants_.end() || !is_word(type(constant->second[1]))) return std::nullopt;
    operands[i] = static_cast<uint32_t>(*value);
  }
  const auto [a, b, c] = operands;
  const auto x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
  switch (instruction[3]) {
    case spv::OpIAdd: return a + b;
    case spv::OpISub: return a - b;
    case spv::OpIMul: return a * b;
    case spv::OpUDiv: return b == 0 ? std::nullopt : std::optional<uint64_t>(a / b);
    case spv::OpUMod: return b == 0 ? std::nullopt : std::optional<uint64_t>(a % b);
    // Sizes are positive, where signed and unsigned operations agree.
    case spv::OpSDiv: return x < 0 || y <= 0 ? std::nullopt : std::optional<uint64_t>(a / b);
    case spv::OpSRem:
    case spv::OpSMod: return x < 0 || y <= 0 ? std::nullopt : std::optional<uint64_t>(a % b);
    case spv::OpBitcast: return a;
    case spv::OpLogicalAnd: return a != 0 && b != 0;
    case spv::OpLogicalOr: return a != 0 || b != 0;
    case spv::OpLogicalNot: return a == 0;
    case spv::OpSNegate: return 0u - a;
    case spv::OpNot: return ~a;
    case spv::OpBitwiseAnd: return a & b;
    case spv::OpBitwiseOr: return a | b;
    case spv::OpBitwiseXor: return a ^ b;
    case spv::OpShiftLeftLogical: return b > 31 ? 0u : a << b;
    case spv::OpShiftRightLogical: return b > 31 ? 0u : a >> b;
    case spv::OpSelect: return a != 0 ? b : c;
    case spv::OpIEqual: return a == b;
    case spv::OpINotEqual: return a != b;
    case spv::OpUGreaterThan: return a > b;
    case spv::OpULessThan: return a < b;
    case spv::OpUGreaterThanEqual: return a >= b;
    case spv::OpULessThanEqual: return a <= b;
    case spv::OpSGreaterThan: return x > y;
    case spv::OpSLessThan: return x < y;
    case spv::OpSGreaterThanEqual: return x >= y;
    case spv::OpSLessThanEqual: return x <= y;
    default: return std::nullopt;
  }
}

// std430 layout with 32-bit booleans, by which Vulkan counts workgroup memory.
SpirvModule::Layout SpirvModule::layout_of(SpirvInstruction type) const {
  const auto part = [&](size_t word) {
    const auto found = layouts_.find(type[word]);
    return found != layouts_.end() ? found->second : Layout{};
  };
  switch (opcode(type)) {
    case spv::OpTypeBool: return {4, 4};
    case spv::OpTypeInt:
    case spv::OpTypeFloat: return {type[2] / 8, std::max(1u, type[2] / 8)};
    case spv::OpTypePointer: return {8, 8};
    case spv::OpTypeVector: {
      const Layout each = part(2);
      return {each.size * type[3], each.alignment * (type[3] == 3 ? 4 : type[3])};
    }
    case spv::OpTypeMatrix: {
      const Layout column = part(2);
      return {aligned(column.size, column.alignment) * type[3], column.alignment};
    }
    case spv::OpTypeArray: {
      const Layout element = part(2);
      const auto length = values_.find(type[3]);
      if (length == values_.end() || !length->second) {
        fail(TUFF_ERROR_UNSUPPORTED, "the size of an array is not a constant, or is too complex to evaluate");
      }
      return {saturated_mul(aligned(element.size, element.alignment), *length->second), element.alignment};
    }
    case spv::OpTypeStruct: {
      Layout all;
      for (size_t i = 2; i < type.size(); ++i) {
        const Layout member = part(i);
        all.size = saturated_add(aligned(all.size, member.alignment), member.size);
        all.alignment = std::max(all.alignment, member.alignment);
      }
      all.size = aligned(all.size, all.alignment);
      return all;
    }
    default: return {};  // runtime-sized arrays count as empty; other types are not stored
  }
}

SpirvInstruction SpirvModule::type(uint32_t id) const {
  const auto found = types_.find(id);
  return found != types_.end() ? found->second : SpirvInstruction();
}

std::optional<uint64_t> SpirvModule::value(uint32_t id) const {
  const auto found = values_.find(id);
  return found != values_.end() ? found->second : std::nullopt;
}

std::optional<uint64_t> SpirvModule::literal(uint32_t id) const {
  const auto found = constants_.find(id);
  if (found == constants_.end()) return std::nullopt;
  const uint32_t op = opcode(found->second);
  if (op != spv::OpConstant && op != spv::OpSpecConstant && op != spv::OpConstantNull) return std::nullopt;
  return value(id);
}

SpirvModule::Layout SpirvModule::pointed(const Variable& variable) const {
  return layouts_.at(types_.at(variable.pointer_type)[3]);
}

std::vector<uint32_t> SpirvModule::with_values() const {
  std::vector<uint32_t> words = words_;
  for (size_t at = 5; at < words.size(); at += words_[at] >> 16) {
    const uint32_t count = words[at] >> 16;
    if ((words[at] & 0xffff) != spv::OpSpecConstantOp) continue;
    const auto type = types_.find(words[at + 1]);
    const auto value = values_.find(words[at + 2]);
    const bool number = type != types_.end() && opcode(type->second) == spv::OpTypeInt && type->second[2] == 32;
    if (!number || value == values_.end() || !value->second) continue;
    words[at] = 4 << 16 | spv::OpConstant;
    words[at + 3] = static_cast<uint32_t>(*value->second);
    std::fill_n(words.begin() + static_cast<ptrdiff_t>(at) + 4, count - 4, 1 << 16 | spv::OpNop);
  }
  return words;
}

std::array<uint32_t, 3> SpirvModule::workgroup_size() const {
  const auto found = constants_.find(workgroup_size_constant_);
  if (found == constants_.end()) return local_size_;
  const SpirvInstruction composite = found->second;
  std::array<uint32_t, 3> size;
  for (uint32_t i = 0; i < 3; ++i) {
    const auto value = composite.size() == 6 ? values_.find(composite[3 + i]) : values_.end();
    if (value == values_.end() || !value->second) {
      fail(TUFF_ERROR_UNSUPPORTED, "the workgroup's size is too complex to evaluate");
    }
    size[i] = static_cast<uint32_t>(*value->second);
  }
  return size;
}

uint64_t SpirvModule::shared_bytes() const {
  Layout all;
  for (const Variable& variable : variables_) {
    if (variable.storage != spv::StorageClassWorkgroup || !touched_.contains(variable.id)) continue;
    const Layout one = pointed(variable);
    all.size = saturated_add(aligned(all.size, one.alignment), one.size);
  }
  return all.size;
}

uint64_t SpirvModule::private_bytes() const {
  uint64_t sum = 0, largest = 0;
  for (const Variable& variable : variables_) {
    const bool mine = variable.storage == spv::StorageClassPrivate
                          ? touched_.contains(variable.id)
                          : variable.storage == spv::StorageClassFunction && reached_.contains(variable.function);
    if (mine) sum = saturated_add(sum, pointed(variable).size);
  }
  for (const uint32_t type : value_types_) largest = std::max(largest, layouts_.at(type).size);
  return std::max(sum, largest);
}

}  // namespace tuff
