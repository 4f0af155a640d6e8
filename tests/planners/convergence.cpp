#include "planners/convergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#define SPV_ENABLE_UTILITY_CODE
#include <spirv_cross/spirv.hpp>

#include "runtime/custom/spirv_module.hpp"

namespace tuff_test {
namespace {

using Ids = std::vector<uint32_t>;
using tuff::SpirvInstruction;

// The scope whose invocations shall agree. A barrier of the workgroup needs all of its subgroups.
enum class Scope { subgroup, workgroup };

bool is_subgroup_operation(uint32_t op) {
  return (op >= spv::OpGroupNonUniformElect && op <= spv::OpGroupNonUniformQuadSwap) ||
         op == spv::OpGroupNonUniformRotateKHR || op == spv::OpGroupNonUniformPartitionNV;
}

bool is_matrix_operation(uint32_t op) {
  constexpr uint32_t kLoadKhr = 4457, kMulAddKhr = 4459;
  return (op >= kLoadKhr && op <= kMulAddKhr) || op == spv::OpCooperativeMatrixLoadNV ||
         op == spv::OpCooperativeMatrixStoreNV || op == spv::OpCooperativeMatrixMulAddNV;
}

// What other lanes have to take part in: not the functions of a vote's bits, which any lane may compute by itself.
bool is_common(uint32_t op) {
  const bool by_itself = op >= spv::OpGroupNonUniformInverseBallot && op <= spv::OpGroupNonUniformBallotFindMSB;
  return (is_subgroup_operation(op) && !by_itself) || is_matrix_operation(op) || op == spv::OpControlBarrier;
}

bool is_atomic(uint32_t op) {
  return (op >= spv::OpAtomicLoad && op <= spv::OpAtomicXor && op != spv::OpAtomicStore) || op == spv::OpAtomicFAddEXT;
}

// The operands of an instruction that are IDs of values, as places of words. Others are literals, or IDs of what is the
// same for all invocations.
std::pair<size_t, size_t> value_operands(SpirvInstruction in, size_t first) {
  switch (tuff::opcode(in)) {
    case spv::OpLoad:
    case spv::OpCompositeExtract:
    case spv::OpArrayLength: return {first, first + 1};
    case spv::OpVectorShuffle:
    case spv::OpCompositeInsert:
    case spv::OpImageFetch: return {first, first + 2};
    case spv::OpExtInst: return {first + 2, in.size()};
    default: return {first, in.size()};
  }
}

struct Block {
  uint32_t label = 0;
  std::vector<SpirvInstruction> code;  // without the label
  std::vector<size_t> next, previous;
};

// Which block each block is left through in any case: the nearest that all ways from it to an end of the function
// share. The index behind the last block stands for the end.
std::vector<size_t> exits_of(const std::vector<Block>& blocks) {
  const size_t end = blocks.size();
  std::vector<size_t> order, place(end + 1, SIZE_MAX);  // blocks from the end on, each after all that it can lead to
  std::vector<std::pair<size_t, size_t>> open{{end, 0}};
  std::vector<bool> seen(end + 1);
  std::vector<size_t> last;  // blocks that end the function
  for (size_t b = 0; b < end; ++b) {
    if (blocks[b].next.empty()) last.push_back(b);
  }
  const auto before = [&](size_t b) -> const std::vector<size_t>& { return b == end ? last : blocks[b].previous; };
  seen[end] = true;
  while (!open.empty()) {
    auto& [b, i] = open.back();
    if (i < before(b).size()) {
      const size_t p = before(b)[i++];
      if (!seen[p]) seen[p] = true, open.emplace_back(p, 0);
    } else {
      place[b] = order.size();
      order.push_back(b);
      open.pop_back();
    }
  }
  std::vector<size_t> exit(end + 1, SIZE_MAX);
  exit[end] = end;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t o = order.size(); o-- > 0;) {
      const size_t b = order[o];
      if (b == end) continue;
      size_t common = blocks[b].next.empty() ? end : SIZE_MAX;
      for (size_t n : blocks[b].next) {
        if (exit[n] == SIZE_MAX) continue;
        if (common == SIZE_MAX) {
          common = n;
          continue;
        }
        for (size_t other = n; common != other;) {
          while (place[common] < place[other]) common = exit[common];
          while (place[other] < place[common]) other = exit[other];
        }
      }
      if (common != exit[b]) exit[b] = common, changed = true;
    }
  }
  return exit;
}

class Analysis {
 public:
  Analysis(const std::vector<uint32_t>& words, Scope scope) : scope_(scope) {
    read(words);
    exit_ = exits_of(blocks_);
    find_loops();
    while (pass()) {
    }
  }

  // The branch at which the invocations part that do not all reach the block; nullopt if all of them do.
  std::optional<size_t> parted_at(size_t block) const {
    const auto found = parted_.find(block);
    return found == parted_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::vector<Block>& blocks() const { return blocks_; }
  bool several_functions() const { return functions_ > 1; }
  std::string text_of(size_t branch) const {
    const SpirvInstruction last = blocks_[branch].code.back();
    const auto on = last.size() > 1 ? defined_.find(last[1]) : defined_.end();
    return fmt::format("block {} on {} (opcode {})", blocks_[branch].label, last.size() > 1 ? last[1] : 0,
                       on == defined_.end() ? 0 : tuff::opcode(on->second));
  }

 private:
  void read(const std::vector<uint32_t>& words);
  void read_function(SpirvInstruction in);
  void find_loops();
  bool is_tree(size_t header, const std::set<size_t>& body) const;
  bool doubles(uint32_t mask, size_t header) const;
  bool is_whole_row(uint32_t bound) const;
  std::optional<uint32_t> constant(uint32_t id) const;
  bool pass();
  bool differs(SpirvInstruction in, size_t block);
  bool differs_by_operation(SpirvInstruction in) const;
  bool any_differs(SpirvInstruction in, size_t begin, size_t end) const;
  bool differs_at_input(SpirvInstruction load) const;
  void store(SpirvInstruction in, size_t block);
  bool part(size_t branch);
  uint32_t root_of(uint32_t pointer) const;
  bool mark(uint32_t id) { return differing_.insert(id).second; }
  bool has(uint32_t id) const { return differing_.contains(id); }

  Scope scope_;
  std::vector<Block> blocks_;
  std::vector<size_t> exit_;
  std::map<uint32_t, SpirvInstruction> defined_;
  std::map<uint32_t, size_t> block_of_;     // by label
  std::map<uint32_t, uint32_t> built_ins_;  // by variable
  std::map<uint32_t, uint32_t> storage_;    // by variable
  std::map<uint32_t, uint32_t> bases_;      // pointers into others
  std::array<uint32_t, 3> workgroup_{1, 1, 1};
  uint32_t functions_ = 0;
  std::vector<std::pair<std::set<size_t>, Ids>> loops_;  // blocks, and values that are used behind the loop
  std::set<size_t> trees_;                               // headers of loops; see is_tree()
  std::set<uint32_t> differing_;                         // values, and variables of an invocation
  std::set<size_t> joins_;                               // blocks in which invocations that have parted meet
  std::map<size_t, size_t> parted_;                      // block → branch
  std::set<size_t> branches_;                            // at which invocations part
};

void Analysis::read(const std::vector<uint32_t>& words) {
  uint32_t entry = 0;
  tuff::for_each_instruction(words, [&](SpirvInstruction in) {
    const uint32_t op = tuff::opcode(in);
    if (op == spv::OpEntryPoint) entry = in[2];
    if (op == spv::OpDecorate && in[2] == spv::DecorationBuiltIn) built_ins_[in[1]] = in[3];
    bool has_result = false, has_type = false;
    spv::HasResultAndType(static_cast<spv::Op>(op), &has_result, &has_type);
    if (has_result && has_type) defined_[in[2]] = in;
    if (op == spv::OpVariable) storage_[in[2]] = in[3];
    if (op == spv::OpFunction) ++functions_;
    if (functions_ == 1) read_function(in);
  });
  workgroup_ = tuff::SpirvModule(words, entry).workgroup_size();
  for (size_t b = 0; b < blocks_.size(); ++b) block_of_[blocks_[b].label] = b;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const SpirvInstruction last = blocks_[b].code.back();
    Ids labels;
    if (tuff::opcode(last) == spv::OpBranch) labels = {last[1]};
    if (tuff::opcode(last) == spv::OpBranchConditional) labels = {last[2], last[3]};
    if (tuff::opcode(last) == spv::OpSwitch) {
      labels = {last[2]};
      for (size_t i = 4; i < last.size(); i += 2) labels.push_back(last[i]);
    }
    for (uint32_t label : labels) {
      const size_t to = block_of_.at(label);
      if (std::find(blocks_[b].next.begin(), blocks_[b].next.end(), to) != blocks_[b].next.end()) continue;
      blocks_[b].next.push_back(to);
      blocks_[to].previous.push_back(b);
    }
  }
}

void Analysis::read_function(SpirvInstruction in) {
  const uint32_t op = tuff::opcode(in);
  if (op == spv::OpLabel) {
    blocks_.emplace_back().label = in[1];
  } else if (!blocks_.empty() && op != spv::OpFunctionEnd) {
    blocks_.back().code.push_back(in);
    if (op == spv::OpAccessChain || op == spv::OpInBoundsAccessChain || op == spv::OpPtrAccessChain ||
        op == spv::OpCopyObject) {
      bases_[in[2]] = in[3];
    }
  }
}

uint32_t Analysis::root_of(uint32_t pointer) const {
  for (auto base = bases_.find(pointer); base != bases_.end(); base = bases_.find(pointer)) pointer = base->second;
  return pointer;
}

// A loop: the blocks from which an edge back to its header can be reached without passing the header.
void Analysis::find_loops() {
  for (size_t h = 0; h < blocks_.size(); ++h) {
    const auto& code = blocks_[h].code;
    const bool is_loop = code.size() > 1 && tuff::opcode(code[code.size() - 2]) == spv::OpLoopMerge;
    if (!is_loop) continue;
    // Blocks of a construct are stored behind its header.
    std::set<size_t> body{h};
    std::vector<size_t> open;
    for (size_t p : blocks_[h].previous) {
      if (p >= h) open.push_back(p);
    }
    while (!open.empty()) {
      const size_t b = open.back();
      open.pop_back();
      if (!body.insert(b).second) continue;
      open.insert(open.end(), blocks_[b].previous.begin(), blocks_[b].previous.end());
    }
    std::set<uint32_t> inside;
    for (size_t b : body) {
      for (SpirvInstruction in : blocks_[b].code) {
        if (in.size() > 2 && defined_.contains(in[2]) && defined_.at(in[2]).data() == in.data()) inside.insert(in[2]);
      }
    }
    std::set<uint32_t> behind;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (body.contains(b)) continue;
      for (SpirvInstruction in : blocks_[b].code) {
        for (size_t i = 1; i < in.size(); ++i) {
          if (inside.contains(in[i])) behind.insert(in[i]);
        }
      }
    }
    if (is_tree(h, body)) trees_.insert(h);
    loops_.emplace_back(std::move(body), Ids(behind.begin(), behind.end()));
  }
}

std::optional<uint32_t> Analysis::constant(uint32_t id) const {
  const auto found = defined_.find(id);
  if (found == defined_.end() || tuff::opcode(found->second) != spv::OpConstant) return std::nullopt;
  return found->second[3];
}

// Whether a number is 1 before the loop and twice as much after each iteration.
bool Analysis::doubles(uint32_t mask, size_t header) const {
  const auto phi = defined_.find(mask);
  if (phi == defined_.end() || tuff::opcode(phi->second) != spv::OpPhi || phi->second.size() != 7) return false;
  bool begins = false, twice = false, here = false;
  for (SpirvInstruction in : blocks_[header].code) here = here || in.data() == phi->second.data();
  for (size_t i = 3; i < 7; i += 2) {
    begins = begins || constant(phi->second[i]) == 1u;
    const auto next = defined_.find(phi->second[i]);
    if (next == defined_.end() || next->second.size() != 5 || next->second[3] != mask) continue;
    const uint32_t op = tuff::opcode(next->second), by = constant(next->second[4]).value_or(0);
    twice = twice || (op == spv::OpIMul && by == 2) || (op == spv::OpShiftLeftLogical && by == 1);
  }
  return here && begins && twice;
}

// The subgroup's size, or the smaller one of it and of a number of lanes that is not below the workgroup's: then a
// workgroup of several subgroups passes the result through shared memory.
bool Analysis::is_whole_row(uint32_t bound) const {
  const auto is_size = [&](uint32_t id) {
    const auto in = defined_.find(id);
    if (in == defined_.end() || tuff::opcode(in->second) != spv::OpLoad) return false;
    const auto built_in = built_ins_.find(in->second[3]);
    return built_in != built_ins_.end() && built_in->second == spv::BuiltInSubgroupSize;
  };
  if (is_size(bound)) return scope_ == Scope::subgroup;
  constexpr uint32_t kMinimum = 38;  // of GLSL.std.450: UMin
  const auto in = defined_.find(bound);
  if (in == defined_.end() || tuff::opcode(in->second) != spv::OpExtInst) return false;
  if (in->second.size() != 7 || in->second[4] != kMinimum) return false;
  for (size_t i = 5; i < 7; ++i) {
    const uint32_t lanes = constant(in->second[i]).value_or(0);
    if (lanes >= workgroup_[0] * workgroup_[1] * workgroup_[2] && is_size(in->second[11 - i])) return true;
  }
  return false;
}

// A loop that combines each lane's value with that of the lane at a distance of 1, 2, 4 … up to the subgroup's size. It
// leaves the same in all lanes, as it does not matter which of two values comes first.
bool Analysis::is_tree(size_t header, const std::set<size_t>& body) const {
  bool shuffles = false, bounded = false;
  for (size_t b : body) {
    for (SpirvInstruction in : blocks_[b].code) {
      const uint32_t op = tuff::opcode(in);
      if (op == spv::OpGroupNonUniformShuffleXor) {
        if (!doubles(in[5], header)) return false;
        shuffles = true;
      } else if (is_common(op)) {
        return false;
      }
      bounded = bounded || (op == spv::OpULessThan && doubles(in[3], header) && is_whole_row(in[4]));
    }
  }
  return shuffles && bounded;
}

bool Analysis::any_differs(SpirvInstruction in, size_t begin, size_t end) const {
  for (size_t i = begin; i < std::min(end, in.size()); ++i) {
    if (has(in[i])) return true;
  }
  return false;
}

// Of a load, or the extraction of a component, of what the driver gives an invocation.
bool Analysis::differs_at_input(SpirvInstruction in) const {
  const uint32_t variable = root_of(in[3]);
  const auto built_in = built_ins_.find(variable);
  if (built_in == built_ins_.end()) return false;
  switch (built_in->second) {
    case spv::BuiltInSubgroupSize:
    case spv::BuiltInNumSubgroups:
    case spv::BuiltInNumWorkgroups:
    case spv::BuiltInWorkgroupId:
    case spv::BuiltInWorkgroupSize: return false;
    case spv::BuiltInSubgroupId: return scope_ == Scope::workgroup;
    case spv::BuiltInLocalInvocationId: {
      // Components along which a workgroup has one invocation are 0.
      const auto chain = defined_.find(in[3]);
      if (in[3] == variable || chain->second.size() != 5) break;
      const auto index = defined_.find(chain->second[4]);
      if (index == defined_.end() || tuff::opcode(index->second) != spv::OpConstant) break;
      return index->second[3] > 2 || workgroup_[index->second[3]] > 1;
    }
    default: break;
  }
  return true;
}

// Results of subgroup operations: the same in a subgroup, or not; in a workgroup they are not.
bool Analysis::differs_by_operation(SpirvInstruction in) const {
  if (scope_ == Scope::workgroup) return true;
  switch (tuff::opcode(in)) {
    case spv::OpGroupNonUniformAll:
    case spv::OpGroupNonUniformAny:
    case spv::OpGroupNonUniformAllEqual:
    case spv::OpGroupNonUniformBroadcast:
    case spv::OpGroupNonUniformBroadcastFirst:
    case spv::OpGroupNonUniformBallot: return false;
    case spv::OpGroupNonUniformBallotFindLSB:
    case spv::OpGroupNonUniformBallotFindMSB: return has(in[4]);
    case spv::OpGroupNonUniformBallotBitExtract: return has(in[4]) || has(in[5]);
    case spv::OpGroupNonUniformBallotBitCount: return in[4] != spv::GroupOperationReduce || has(in[5]);
    // From one lane for all, or of a number that all have.
    case spv::OpGroupNonUniformShuffle: return has(in[4]) && has(in[5]);
    case spv::OpGroupNonUniformShuffleXor:
    case spv::OpGroupNonUniformShuffleUp:
    case spv::OpGroupNonUniformShuffleDown: return has(in[4]);
    default: break;
  }
  const uint32_t op = tuff::opcode(in);
  const bool adds = op >= spv::OpGroupNonUniformIAdd && op <= spv::OpGroupNonUniformLogicalXor;
  return !adds || in[4] != spv::GroupOperationReduce;
}

bool Analysis::differs(SpirvInstruction in, size_t block) {
  const uint32_t op = tuff::opcode(in);
  if (is_subgroup_operation(op)) return differs_by_operation(in);
  if (is_atomic(op) || is_matrix_operation(op) || op == spv::OpFunctionCall) return true;
  if (op == spv::OpPhi) {
    if (trees_.contains(block)) return false;
    bool same = true;
    for (size_t i = 3; i < in.size(); i += 2) {
      if (has(in[i])) return true;
      same = same && in[i] == in[3];
    }
    return !same && joins_.contains(block);
  }
  if (op == spv::OpLoad) {
    const uint32_t root = root_of(in[3]);
    const auto storage = storage_.find(root);
    if (storage != storage_.end() && storage->second == spv::StorageClassInput) return differs_at_input(in);
    return has(in[3]) || has(root);
  }
  if (op == spv::OpCompositeExtract && in.size() == 5) {
    const auto whole = defined_.find(in[3]);
    if (whole != defined_.end() && tuff::opcode(whole->second) == spv::OpLoad) {
      const auto built_in = built_ins_.find(whole->second[3]);
      if (built_in != built_ins_.end() && built_in->second == spv::BuiltInLocalInvocationId) {
        return workgroup_[in[4]] > 1;
      }
    }
  }
  const auto [begin, end] = value_operands(in, 3);
  return any_differs(in, begin, end);
}

// A variable of an invocation differs once something that differs is stored there, or not all invocations store.
void Analysis::store(SpirvInstruction in, size_t block) {
  const uint32_t root = root_of(in[1]);
  const auto storage = storage_.find(root);
  if (storage == storage_.end()) return;
  if (storage->second != spv::StorageClassFunction && storage->second != spv::StorageClassPrivate) return;
  if (has(in[1]) || has(in[2]) || parted_.contains(block)) mark(root);
}

// Invocations part at the branch: all blocks up to where they meet are reached by some of them.
bool Analysis::part(size_t branch) {
  if (!branches_.insert(branch).second) return false;
  const size_t meet = exit_[branch];
  std::vector<size_t> open(blocks_[branch].next);
  std::set<size_t> seen;
  while (!open.empty()) {
    const size_t b = open.back();
    open.pop_back();
    joins_.insert(b);
    if (b == meet || !seen.insert(b).second) continue;
    parted_.emplace(b, branch);
    open.insert(open.end(), blocks_[b].next.begin(), blocks_[b].next.end());
  }
  return true;
}

bool Analysis::pass() {
  const size_t before = differing_.size();
  bool changed = false;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    for (SpirvInstruction in : blocks_[b].code) {
      const uint32_t op = tuff::opcode(in);
      if (op == spv::OpStore || op == spv::OpCopyMemory) store(in, b);
      const bool gives = in.size() > 2 && defined_.contains(in[2]) && defined_.at(in[2]).data() == in.data();
      if (gives && op != spv::OpVariable && !has(in[2]) && differs(in, b)) mark(in[2]);
    }
    const SpirvInstruction last = blocks_[b].code.back();
    const bool branches = blocks_[b].next.size() > 1;
    if (branches && has(last[1])) changed = part(b) || changed;
  }
  // Invocations that leave a loop after different numbers of iterations have different numbers from it.
  for (const auto& [body, behind] : loops_) {
    const bool differ = std::any_of(body.begin(), body.end(), [&](size_t b) {
      const auto leaves = [&](size_t n) { return !body.contains(n); };
      return branches_.contains(b) && std::any_of(blocks_[b].next.begin(), blocks_[b].next.end(), leaves);
    });
    if (!differ) continue;
    for (uint32_t id : behind) mark(id);
  }
  return changed || differing_.size() != before;
}

// The scope of a barrier for which invocations wait; nullopt if the instruction is none.
std::optional<Scope> waits_for(SpirvInstruction in, const std::map<uint32_t, uint32_t>& constants) {
  if (tuff::opcode(in) != spv::OpControlBarrier) return std::nullopt;
  const auto scope = constants.find(in[1]);
  return scope != constants.end() && scope->second == spv::ScopeSubgroup ? Scope::subgroup : Scope::workgroup;
}

}  // namespace

bool has_common_operations(const std::vector<uint32_t>& words) {
  bool found = false;
  tuff::for_each_instruction(words, [&](SpirvInstruction in) { found = found || is_common(tuff::opcode(in)); });
  return found;
}

Convergence convergence_of(const std::vector<uint32_t>& words) {
  Convergence result;
  std::map<uint32_t, uint32_t> constants;
  tuff::for_each_instruction(words, [&](SpirvInstruction in) {
    if (tuff::opcode(in) == spv::OpConstant && in.size() == 4) constants[in[2]] = in[3];
    result.operations += is_common(tuff::opcode(in)) ? 1 : 0;
  });
  if (result.operations == 0) return result;
  const Analysis subgroup(words, Scope::subgroup), workgroup(words, Scope::workgroup);
  if (subgroup.several_functions()) {
    result.findings.emplace_back("functions are not inlined");
    return result;
  }
  for (size_t b = 0; b < subgroup.blocks().size(); ++b) {
    for (SpirvInstruction in : subgroup.blocks()[b].code) {
      const uint32_t op = tuff::opcode(in);
      const std::optional<Scope> barrier = waits_for(in, constants);
      if (!is_common(op)) continue;
      const Analysis& all = barrier == Scope::workgroup ? workgroup : subgroup;
      if (const auto branch = all.parted_at(b)) {
        result.findings.push_back(
            fmt::format("not all invocations of a {} reach opcode {} in block {}, they part in {}",
                        barrier == Scope::workgroup ? "workgroup" : "subgroup", op, subgroup.blocks()[b].label,
                        all.text_of(*branch)));
      } else if (barrier != Scope::workgroup && workgroup.parted_at(b)) {
        ++result.by_subgroup;
      }
    }
  }
  return result;
}

}  // namespace tuff_test
