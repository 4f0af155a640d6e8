// Determines the iteration counts of loops, where possible: loops that count from one constant to another and have no
// other exit, in the form that GLSL compilers emit. A loop that may end early must not be mistaken for a long one.
#include <spirv_cross/spirv.hpp>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "runtime/custom/custom_kernel.hpp"
#include "runtime/custom/spirv_module.hpp"

namespace tuff {
namespace {

struct Block {
  std::vector<SpirvInstruction> instructions;
  SpirvInstruction merge;  // OpLoopMerge, if present
};

// The labels that a block's last instruction may branch to.
std::vector<uint32_t> targets(const Block& block) {
  const SpirvInstruction last = block.instructions.back();
  switch (opcode(last)) {
    case spv::OpBranch: return {last[1]};
    case spv::OpBranchConditional: return {last[2], last[3]};
    case spv::OpSwitch: {
      // Literals have the selector's size, so any word may be a label; words that are not labels match no block.
      std::vector<uint32_t> words(last.begin() + 2, last.end());
      return words;
    }
    default: return {};
  }
}

class Function {
 public:
  Function(const SpirvModule& module, const std::unordered_map<uint32_t, SpirvInstruction>& results)
      : module_(module), results_(results) {}

  void add(SpirvInstruction instruction) {
    const uint32_t op = opcode(instruction);
    if (op == spv::OpLabel) {
      current_ = instruction[1];
      blocks_[current_];
      return;
    }
    if (current_ == 0) return;
    Block& block = blocks_[current_];
    block.instructions.push_back(instruction);
    if (op == spv::OpLoopMerge) block.merge = instruction;
    if (op == spv::OpStore) stores_[instruction[1]].push_back({current_, instruction[2]});
    // Ids used by anything but a load or a store of the variable.
    const bool plain = op == spv::OpLoad || op == spv::OpStore || op == spv::OpVariable;
    for (size_t i = op == spv::OpStore ? 2 : 1; !plain && i < instruction.size(); ++i) named_.insert(instruction[i]);
    if (op == spv::OpStore) named_.insert(instruction[2]);
  }

  uint64_t longest() const {
    uint64_t most = 0;
    for (const auto& [label, block] : blocks_) {
      if (!block.merge.empty()) most = std::max(most, iterations(block));
    }
    return most;
  }

 private:
  struct Store {
    uint32_t block, value;
  };

  SpirvInstruction result(uint32_t id, uint32_t op) const {
    const auto found = results_.find(id);
    return found != results_.end() && opcode(found->second) == op ? found->second : SpirvInstruction();
  }
  // If the value is a load of a variable: that variable, otherwise 0.
  uint32_t loaded(uint32_t value) const {
    const SpirvInstruction load = result(value, spv::OpLoad);
    return !load.empty() ? load[3] : 0;
  }

  // Collects the blocks reachable from `body` without passing through `leave`. Returns false if the function ends in
  // one of them, or if one of them other than `test` branches to `leave`.
  bool stays(uint32_t body, uint32_t leave, std::unordered_set<uint32_t>& inside, uint32_t test) const {
    std::vector<uint32_t> waiting{body};
    while (!waiting.empty()) {
      const uint32_t label = waiting.back();
      waiting.pop_back();
      const auto block = blocks_.find(label);
      if (block == blocks_.end() || !inside.insert(label).second) continue;
      if (block->second.instructions.empty()) return false;
      const std::vector<uint32_t> next = targets(block->second);
      if (next.empty()) return false;
      if (label != test && std::find(next.begin(), next.end(), leave) != next.end()) return false;
      for (const uint32_t target : next) {
        if (target != leave) waiting.push_back(target);
      }
    }
    return true;
  }

  // Returns 0 if the count cannot be determined.
  uint64_t iterations(const Block& header) const {
    const uint32_t leave = header.merge[1], onward = header.merge[2];
    const Block* test = &header;
    uint32_t test_label = 0;
    if (opcode(header.instructions.back()) == spv::OpBranch) {
      test_label = header.instructions.back()[1];
      const auto found = blocks_.find(test_label);
      if (found == blocks_.end()) return 0;
      test = &found->second;
    }
    if (test->instructions.empty()) return 0;
    const SpirvInstruction branch = test->instructions.back();
    if (opcode(branch) != spv::OpBranchConditional || branch[3] != leave) return 0;
    const auto compare = results_.find(branch[1]);
    if (compare == results_.end() || compare->second.size() != 5) return 0;
    const uint32_t variable = loaded(compare->second[3]);
    if (variable == 0 || named_.contains(variable)) return 0;
    const auto stores = stores_.find(variable);
    if (stores == stores_.end() || stores->second.size() != 2) return 0;
    std::unordered_set<uint32_t> inside;
    if (!stays(branch[2], leave, inside, test_label)) return 0;
    const bool swapped = stores->second[0].block == onward;
    const Store &first = stores->second[swapped ? 1 : 0], &step = stores->second[swapped ? 0 : 1];
    if (step.block != onward || inside.contains(first.block)) return 0;
    const SpirvInstruction sum = result(step.value, spv::OpIAdd);
    if (sum.empty() || loaded(sum[3]) != variable) return 0;
    return count(compare->second, module_.literal(first.value), module_.literal(compare->second[4]),
                 module_.literal(sum[4]));
  }

  static uint64_t count(SpirvInstruction compare, std::optional<uint64_t> first, std::optional<uint64_t> end,
                        std::optional<uint64_t> step) {
    if (!first || !end || !step || *step == 0 || *step > INT32_MAX) return 0;
    const uint32_t op = opcode(compare);
    const bool is_signed = op == spv::OpSLessThan || op == spv::OpSLessThanEqual;
    const bool or_equal = op == spv::OpSLessThanEqual || op == spv::OpULessThanEqual;
    if (!is_signed && op != spv::OpULessThan && op != spv::OpULessThanEqual && op != spv::OpINotEqual) return 0;
    // 32-bit numbers only; wider ones count as unknown.
    if (*first > UINT32_MAX || *end > UINT32_MAX) return 0;
    const auto number = [&](uint64_t bits) {
      const auto low = static_cast<uint32_t>(bits);
      return is_signed ? int64_t{static_cast<int32_t>(low)} : int64_t{low};
    };
    int64_t distance = number(*end) - number(*first) + (or_equal ? 1 : 0);
    if (op == spv::OpINotEqual) distance = static_cast<uint32_t>(*end - *first);
    const auto by = static_cast<int64_t>(*step);
    if (distance <= 0 || (op == spv::OpINotEqual && distance % by != 0)) return 0;
    return static_cast<uint64_t>((distance + by - 1) / by);
  }

  const SpirvModule& module_;
  const std::unordered_map<uint32_t, SpirvInstruction>& results_;
  std::unordered_map<uint32_t, Block> blocks_;
  std::unordered_map<uint32_t, std::vector<Store>> stores_;  // by variable
  std::unordered_set<uint32_t> named_;                       // ids used by anything but a load or a store
  uint32_t current_ = 0;
};

}  // namespace

uint64_t longest_loop(const std::vector<uint32_t>& words, const SpirvModule& module) {
  std::unordered_map<uint32_t, SpirvInstruction> results;
  for_each_instruction(words, [&](SpirvInstruction instruction) {
    const uint32_t op = opcode(instruction);
    const bool compares = op >= spv::OpIEqual && op <= spv::OpSLessThanEqual;
    if (op == spv::OpLoad || op == spv::OpIAdd || compares) results[instruction[2]] = instruction;
  });
  uint64_t most = 0;
  std::optional<Function> function;
  for_each_instruction(words, [&](SpirvInstruction instruction) {
    if (opcode(instruction) == spv::OpFunction) function.emplace(module, results);
    if (opcode(instruction) == spv::OpFunctionEnd && function) most = std::max(most, function->longest());
    if (function) function->add(instruction);
  });
  return most;
}

}  // namespace tuff
