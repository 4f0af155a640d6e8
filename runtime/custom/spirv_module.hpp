// SPIR-V analysis that SPIRV-Cross does not provide: what is stored to, and how much memory variables and values need.
// Numbers and layouts are those of the SPIR-V specification, sections 2.3 and 3.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tuff {

// One instruction: word 0 holds its length and opcode; the meaning of the rest depends on the opcode.
using SpirvInstruction = std::span<const uint32_t>;
inline uint32_t opcode(SpirvInstruction instruction) { return instruction[0] & 0xffff; }

// Calls use(instruction) for each instruction of a module whose lengths have been checked.
template <typename Use>
void for_each_instruction(std::span<const uint32_t> words, const Use& use) {
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) use(words.subspan(at, words[at] >> 16));
}

// What an entry point and the functions that it calls do. The module has passed validation.
class SpirvModule {
 public:
  // The words must outlive this object. entry: the id of the entry point's function.
  SpirvModule(const std::vector<uint32_t>& words, uint32_t entry);

  bool uses(uint32_t variable) const { return touched_.contains(variable); }
  bool reads(uint32_t variable) const { return read_.contains(variable); }
  bool writes(uint32_t variable) const { return written_.contains(variable); }
  // The module with expressions of specialisation constants replaced by numbers. SPIRV-Cross evaluates them too, but
  // aborts the process if an operand is not constant, which validation does not check.
  std::vector<uint32_t> with_values() const;
  // The instruction that declares a type; empty if the id is not a type.
  SpirvInstruction type(uint32_t id) const;
  // The value of a constant, evaluated if it depends on others; nullopt if the id is not a constant or is too complex.
  std::optional<uint64_t> value(uint32_t id) const;
  // The value of a literal constant, which every consumer of the module reads the same way.
  std::optional<uint64_t> literal(uint32_t id) const;
  std::array<uint32_t, 3> workgroup_size() const;
  uint64_t shared_bytes() const;  // of variables in workgroup memory
  // The total of one invocation's variables, or the largest value that it handles as a whole, whichever is larger.
  uint64_t private_bytes() const;

 private:
  struct Layout {
    uint64_t size = 0, alignment = 1;
  };
  struct Variable {
    uint32_t id, pointer_type, storage;
    uint32_t function;  // 0: module scope
  };

  void read_instruction(SpirvInstruction instruction, uint32_t& function);
  void read_body(uint32_t function);
  void read_access(SpirvInstruction instruction);
  uint32_t root(uint32_t pointer) const;
  // `type` or `constant` is an instruction whose operands have been read already: SPIR-V declares them first.
  Layout layout_of(SpirvInstruction type) const;
  std::optional<uint64_t> value_of(SpirvInstruction constant) const;
  Layout pointed(const Variable& variable) const;
  void mark(uint32_t pointer, bool read, bool write);

  std::unordered_map<uint32_t, SpirvInstruction> types_;
  std::unordered_map<uint32_t, Layout> layouts_;                  // by type
  std::unordered_map<uint32_t, std::optional<uint64_t>> values_;  // by constant; nullopt: unknown
  std::unordered_map<uint32_t, SpirvInstruction> constants_;
  std::vector<Variable> variables_;
  std::unordered_map<uint32_t, std::vector<SpirvInstruction>> bodies_;  // by function
  std::unordered_set<uint32_t> reached_;                                // functions
  std::unordered_map<uint32_t, uint32_t> roots_;                        // pointer → variable
  std::unordered_set<uint32_t> read_, written_, touched_;               // variables
  std::unordered_set<uint32_t> value_types_;                            // arrays and structures handled as a whole
  std::array<uint32_t, 3> local_size_{1, 1, 1};
  uint32_t workgroup_size_constant_ = 0;
  const std::vector<uint32_t>& words_;
  uint32_t entry_;
};

}  // namespace tuff
