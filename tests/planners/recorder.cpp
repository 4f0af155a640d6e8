#include "planners/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "planners/reach.hpp"
#include "planners/requirements.hpp"
#include "planning/status.hpp"

namespace tuff_test {
namespace {

template <typename... Values>
[[noreturn]] void violated(fmt::format_string<Values...> text, Values&&... values) {
  throw Violation(fmt::format(text, std::forward<Values>(values)...));
}

Memory& memory_of(const tuff::Buffer& buffer) { return dynamic_cast<Memory&>(*buffer.allocation); }

tuff::Buffer scratch_buffer(const char* name) {
  const auto memory = std::make_shared<Memory>();
  memory->name = name;
  memory->scratch = memory->output = true;
  tuff::Buffer buffer;
  buffer.allocation = memory;
  return buffer;
}

const char* name_of(tuff::Access access) {
  switch (access) {
    case tuff::Access::read: return "reads";
    case tuff::Access::write: return "writes";
    case tuff::Access::read_write: break;
  }
  return "reads and writes";
}

std::string text_of(const tuff::KernelRequest& kernel, const tuff::Dispatch& dispatch, bool addresses) {
  const auto& groups = dispatch.group_counts();
  std::string text = fmt::format("  {} {}: {} x {} x {} groups, {}{}{}", kernel.source().name, dispatch.variant(),
                                 groups[0], groups[1], groups[2], addresses ? "addresses" : "descriptors",
                                 kernel.is_wide() ? ", wide" : "", dispatch.group_rows() ? ", rows of groups" : "");
  for (uint32_t i = 0; i < kernel.define_count(); ++i) {
    text += fmt::format(" {}={}", kernel.defines()[i].name, kernel.defines()[i].value);
  }
  for (uint32_t i = 0; i < kernel.constant_count(); ++i) {
    text += fmt::format(" constant{}={}", kernel.constants()[i].id, kernel.constants()[i].value);
  }
  for (uint32_t i = 0; i < dispatch.operand_count(); ++i) {
    const tuff::Dispatch::Operand& operand = dispatch.operands()[i];
    const tuff::Buffer* buffer = operand.each != nullptr ? operand.each[0] : operand.buffer;
    if (buffer == nullptr) {
      text += fmt::format("\n    {}: nothing", i);
    } else {
      text += fmt::format("\n    {}: {}{} {} + {}, {} bytes", i, name_of(operand.access),
                          operand.each != nullptr ? " each of" : "", memory_of(*buffer).name,
                          buffer->offset + operand.offset - memory_of(*buffer).begin, operand.bytes);
    }
  }
  text += "\n    push";
  for (uint32_t at = 0; at + 4 <= dispatch.push_bytes(); at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, dispatch.push_data() + at, 4);
    text += fmt::format(" {}", word);
  }
  return text;
}

int64_t define_of(const tuff::KernelRequest& kernel, std::string_view name) {
  for (uint32_t i = 0; i < kernel.define_count(); ++i) {
    if (kernel.defines()[i].name == name) return kernel.defines()[i].value;
  }
  return 0;
}

uint32_t constant_of(const tuff::KernelRequest& kernel, uint32_t id) {
  for (uint32_t i = 0; i < kernel.constant_count(); ++i) {
    if (kernel.constants()[i].id == id) return kernel.constants()[i].value;
  }
  return 0;
}

// Kernels that read some operands, first to last, several elements at a time if a define is set. `bytes` is the least
// that this takes with any type.
struct BlockKernel {
  std::string_view name, define;
  uint32_t first, last;
  uint64_t bytes;
  uint64_t elements = 0;  // of an operand of the call: so many, up to 16 bytes
};
constexpr BlockKernel kBlockKernels[] = {
    {"unary", "TUFF_VECTOR", 0, 1, 16},
    {"binary", "TUFF_VECTOR", 0, 2, 16},
    {"norm_rows", "TUFF_VECTOR", 0, 1, 16},
    {"norm_split_rows", "TUFF_VECTOR", 0, 1, 16},
    {"softmax_rows", "TUFF_VECTOR", 0, 0, 16},
    {"softmax_split_rows", "TUFF_VECTOR", 0, 0, 16},
    {"softmax_columns", "TUFF_VECTOR", 0, 0, 8},
    {"reduce_rows", "TUFF_VECTOR", 0, 0, 16},
    {"reduce_columns", "TUFF_VECTOR", 0, 0, 16},
    {"reduce_arg", "TUFF_VECTOR", 0, 0, 16},
    {"scan_rows", "TUFF_VECTOR", 0, 0, 16},
    {"scan_columns", "TUFF_VECTOR", 0, 0, 16},
    {"batch_norm", "TUFF_VECTOR", 0, 0, 16},
    {"norm_line_sums", "TUFF_VECTOR", 0, 1, 16},
    {"norm_columns", "TUFF_VECTOR", 0, 1, 16},
    {"norm_apply", "TUFF_VECTOR", 0, 1, 16},
    {"norm_backward_rows", "TUFF_VECTOR", 0, 1, 16},
    {"gemm_tile", "VECTOR_A", 0, 0, 8},
    {"gemm_tile", "VECTOR_B", 1, 1, 8},
    {"gemm_tile", "VECTOR_C", 2, 2, 8},
    {"gemm_subgroup", "VECTOR_B", 1, 1, 8},
    {"attention_tile", "VEC", 0, 3, 8},
    {"attention_subgroup", "VEC", 0, 3, 8},
    {"attention_backward_tile", "VEC", 0, 3, 8},
    {"attention_backward_tile", "VEC", 8, 9, 8},
    {"attention_backward_sums", "VEC", 0, 1, 8},
    {"attention_wgmma", "TYPE", 0, 3, 16},
    {"attention_planes", "HEAD_DIM", 0, 3, 16},
    {"attention_backward_wgmma", "TYPE", 0, 3, 16},
    {"attention_backward_wgmma", "TYPE", 6, 6, 16},
    {"conv_tile", "VEC_CHANNELS", 0, 0, 8},
    {"attention_split", "UNROLL", 0, 3, 16},
    {"conv_tile", "VEC_FILTER", 1, 1, 8},
    {"conv_subgroup", "VEC_CHANNELS", 0, 0, 8},
    {"conv_subgroup", "VEC_FILTER", 1, 1, 8},
    {"gemm_wgmma", "TYPE", 0, 1, 16},
    {"gemm_wgmma", "VECTOR", 2, 2, 8},
    {"gemm_split", "QUADS_A", 0, 0, 16},
    {"gemm_split", "QUADS_B", 1, 1, 16},
    {"gemm_split", "VECTOR", 2, 2, 8},
    {"gemm_narrow", "TYPE", 0, 1, 16},
    {"qgemm_mma", "TYPE", 0, 0, 16},
    {"qgemm_mma", "TYPE", 2, 2, 16},
    {"rnn_persistent", "TYPE", 1, 1, 8},
    {"qgemm_signed", "TUFF_VECTOR", 0, 0, 4},
    {"qgemm_sums", "TUFF_VECTOR", 0, 0, 4},
    {"qgemm_blocks", "PER_STEP", 0, 0, 16},
    {"qgemm_blocks", "PER_STEP", 2, 2, 16},
    {"qgemm_wgmma", "TYPE", 0, 0, 4},
    {"qgemm_wgmma", "TYPE", 3, 3, 16},
    {"qgemm_wgmma", "VECTOR", 4, 4, 8},
    {"gemm_dmma", "PAIRS", 0, 1, 16},
    {"sparse_block_rows", "TUFF_VECTOR_A", 2, 2, 8},
    {"sparse_block_rows", "TUFF_VECTOR_B", 4, 4, 8},
    {"gemm_dmma", "VECTOR", 2, 2, 16},
    {"binary_broadcast", "TUFF_VECTOR", 2, 2, 16},
    {"conv_depthwise", "VEC", 0, 0, 8},
    {"conv_patches", "VEC_CHANNELS", 0, 0, 8},
    {"copy", "VECTORS", 0, 1, 16},
    {"cross_entropy", "TUFF_VECTOR", 0, 0, 16},
    {"cross_entropy", "TUFF_VECTOR", 5, 5, 16},
    {"dequantize", "TUFF_VECTOR", 0, 0, 4},
    {"dequantize", "TUFF_VECTOR", 3, 3, 16},
    {"dequantize_blocks", "TUFF_VECTOR", 1, 1, 16},
    {"fft_pass", "TUFF_INPUT_PAIRS", 0, 0, 4},
    {"fft_pass", "TUFF_OUTPUT_PAIRS", 1, 1, 4},
    {"gemm_cols", "VECTOR_L", 0, 0, 4, 4},
    {"gemm_pack", "PAIRED", 0, 0, 8},
    {"gemm_panels", "PAIRED_C", 2, 2, 8},
    {"gemm_rows", "VECTOR_L", 0, 0, 4, 4},
    {"gemm_rows", "VECTOR_S", 1, 1, 4, 4},
    {"gemm_tiny", "VECTOR_A", 0, 0, 4, 4},
    {"gemm_tiny", "VECTOR_B", 1, 1, 4, 4},
    {"permute_lanes", "TUFF_VEC4S", 0, 1, 4},
    {"permute_tile", "TUFF_PAIRS", 0, 1, 4},
    {"pool_windows", "TUFF_VECTOR", 0, 1, 8},
    {"qgemm_rows", "VECTOR_A", 3, 3, 8},
    {"qgemm_tile", "VECTOR_A", 3, 3, 8},
    {"quantize", "TUFF_VECTOR", 0, 0, 16},
    {"quantize", "TUFF_VECTOR", 3, 3, 4},
    {"resize", "TUFF_VECTOR", 1, 1, 8},
    {"rope", "TUFF_VECTOR", 0, 1, 8},
    {"softmax_backward", "TUFF_VECTOR", 0, 2, 16},
    {"select_count", "TUFF_BLOCKS", 0, 0, 16},
    {"select_write", "TUFF_BLOCKS", 0, 0, 16},
};

// Operands of kernels with units that have indices or counters instead. The bytes of one are the least of them.
struct IndexOperand {
  std::string_view name;
  uint32_t operand;
};
constexpr IndexOperand kIndexOperands[] = {{"gather", 1},     {"radix_count", 1},   {"radix_move", 1},
                                           {"radix_move", 2}, {"radix_move", 4},    {"sort_rows", 1},
                                           {"sort_rows", 3},  {"scatter_write", 1}, {"scatter_write", 2},
                                           {"pad", 2},        {"strided_pairs", 2}};

// The bytes of a unit of this operand; 0 if the kernel has no units.
uint64_t unit_of(const tuff::KernelRequest& kernel, uint32_t operand) {
  const bool moves = operand == 1 || operand == 3;
  if (kernel.source().name == std::string_view("select_write") && !moves) return 0;  // the mask, places, sums
  const int64_t unit = define_of(kernel, "TUFF_UNIT");
  const bool index = std::any_of(std::begin(kIndexOperands), std::end(kIndexOperands), [&](const IndexOperand& row) {
    return row.name == kernel.source().name && row.operand == operand;
  });
  return unit != 0 && index ? 4 : static_cast<uint64_t>(unit);
}

// Whether a kernel of GEMM reads integers of 8 bits. In scratch memory (of qgemm) they may begin at any byte.
bool reads_integers(const tuff::KernelRequest& kernel) {
  constexpr const char* kTypes[] = {"A_TYPE", "B_TYPE", "IN_TYPE", "L_TYPE", "S_TYPE", "TYPE"};
  constexpr const char* kBytes[] = {"A_BYTES", "B_BYTES"};
  const auto is = [&](int64_t value) {
    return [&, value](const char* name) { return define_of(kernel, name) == value; };
  };
  return std::any_of(std::begin(kTypes), std::end(kTypes), is(TUFF_I8)) ||
         std::any_of(std::begin(kBytes), std::end(kBytes), is(1));
}

// The bytes at whose multiples this operand has to start. A CPU device reads at any place, so only this check notices
// a planner that is wrong about it.
uint64_t alignment_of(const tuff::KernelRequest& kernel, uint32_t operand, uint64_t element) {
  const std::string_view name = kernel.source().name;
  if (name == "cast" && define_of(kernel, "TUFF_VECTOR") != 0) {  // four elements
    const auto bytes = define_of(kernel, operand == 0 ? "TUFF_SOURCE_BYTES" : "TUFF_TARGET_BYTES");
    return static_cast<uint64_t>(std::min<int64_t>(4 * bytes, 16));
  }
  // Quantised keys and values: words of blocks, and four or eight 8-bit floats.
  if (name.starts_with("attention") && (operand == 1 || operand == 2)) {
    const int64_t stored = define_of(kernel, operand == 1 ? "KEY_FORMAT" : "VALUE_FORMAT");
    if (stored >= TUFF_QUANT_Q4_0) return 2;
    if (stored != 0) return name == "attention_split" ? 8 : define_of(kernel, "VEC") != 0 ? 4 : 1;
  }
  const uint64_t unit = unit_of(kernel, operand);
  uint64_t result = unit != 0 ? unit : element;
  for (const BlockKernel& row : kBlockKernels) {
    if (row.name == name && operand >= row.first && operand <= row.last && define_of(kernel, row.define) != 0) {
      result = std::max({result, row.bytes, std::min<uint64_t>(row.elements * element, 16)});
    }
  }
  return result;
}

}  // namespace

void Ranges::add(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  auto at = ends_.upper_bound(begin);
  if (at != ends_.begin() && std::prev(at)->second >= begin) {
    --at;
    begin = at->first;
    end = std::max(end, at->second);
    at = ends_.erase(at);
  }
  while (at != ends_.end() && at->first <= end) {
    end = std::max(end, at->second);
    at = ends_.erase(at);
  }
  ends_.emplace_hint(at, begin, end);
}

uint64_t Ranges::longest_gap(uint64_t begin, uint64_t end) const {
  uint64_t gap = 0;
  auto at = ends_.upper_bound(begin);
  if (at != ends_.begin()) begin = std::max(begin, std::prev(at)->second);
  for (; at != ends_.end() && at->first < end; ++at) {
    gap = std::max(gap, at->first - std::min(begin, at->first));
    begin = std::max(begin, at->second);
  }
  return std::max(gap, end - std::min(begin, end));
}

bool Ranges::holds(uint64_t begin, uint64_t end) const {
  if (begin >= end) return true;
  const auto at = ends_.upper_bound(begin);
  return at != ends_.begin() && std::prev(at)->second >= end;
}

std::string text_of(const TestDevice& device) {
  const tuff::DeviceTraits& t = device.traits;
  std::string text = fmt::format(
      "device: {} subgroup {}{}{}{} cores {} invocations {} local size {} {} {} groups {} {} {} shared {} push {} "
      "range "
      "{} slack {}{}{}{}{}{}{}{}{}; by addresses: streams {} tiles {} packed {}; probes {}",
      t.cpu ? "CPU" : "GPU", t.subgroup_size, t.subgroup_arithmetic ? " arithmetic" : "",
      t.subgroup_shuffle ? " shuffle" : "", t.subgroup_ballot ? " ballot" : "", t.cores, t.max_invocations,
      t.max_local_size[0], t.max_local_size[1], t.max_local_size[2], t.max_groups[0], t.max_groups[1], t.max_groups[2],
      t.shared_bytes, t.push_bytes, t.max_range, device.slack, t.addresses ? " addresses" : "",
      t.streams_by_words ? " words" : "", t.storage16 ? " storage16" : "", t.storage8 ? " storage8" : "",
      t.f16 ? " f16" : "", t.f64 ? " f64" : "", t.rounds_f16 ? " rounds_f16" : "", t.hopper ? " hopper" : "",
      t.streams_by_addresses, t.tiles_by_addresses, t.packed_by_addresses, device.probes);
  for (uint32_t i = 0; i < t.matrix_shape_count; ++i) {
    const tuff::MatrixShape& s = t.matrix_shapes[i];
    text += fmt::format(" [{}x{}x{} {} {} {}]", s.m, s.n, s.k, s.a, s.b, s.c);
  }
  return text;
}

CheckingRecorder::CheckingRecorder(const TestDevice& device, const tuff::TuningTable* table, KernelFacts* facts)
    : device_(device),
      table_(table),
      facts_(facts),
      scratch_{scratch_buffer("scratch"), scratch_buffer("outer scratch"), scratch_buffer("outermost scratch")},
      parameters_(scratch_buffer("parameters")) {}

bool CheckingRecorder::fits_descriptors(const tuff::Dispatch& dispatch) const noexcept {
  for (uint32_t i = 0; i < dispatch.operand_count(); ++i) {
    if (dispatch.operands()[i].bytes + device_.slack > device_.traits.max_range) return false;
  }
  return true;
}

bool CheckingRecorder::prefers_addresses(tuff::Reads reads) const noexcept {
  switch (reads) {
    case tuff::Reads::streams: return device_.traits.streams_by_addresses;
    case tuff::Reads::packed: return device_.traits.packed_by_addresses;
    case tuff::Reads::tiles: break;
  }
  return device_.traits.tiles_by_addresses;
}

bool CheckingRecorder::binds_addresses(tuff::Reads reads, const tuff::Dispatch& dispatch) const noexcept {
  return prefers_addresses(reads) || !fits_descriptors(dispatch);
}

bool CheckingRecorder::holds(const tuff::Probe& probe) { return probe.possible(device_.traits) && device_.probes; }

void CheckingRecorder::count() {
  if (++dispatches_ > kMaxDispatches) throw Enough();
}

// Parts of scratch memory begin at multiples of so many bytes, behind the end of the one before.
constexpr uint64_t kScratchAlignment = 256;

// Kernels that read matrices between which there are others: reach_gemm.cpp checks them.
bool has_gaps(std::string_view kernel) { return kernel.starts_with("gemm_"); }

// Checks a byte range of an operand of a dispatch or copy.
void CheckingRecorder::check_range(const Place& place, const tuff::Buffer& buffer, uint64_t offset, uint64_t bytes,
                                   tuff::Access access) {
  const auto what = [&] { return fmt::format("{}, operand {},", place.kernel, place.operand); };
  const Memory& memory = memory_of(buffer);
  const uint64_t begin = buffer.offset + offset, end = begin + bytes;
  // A range that is read from scratch memory may end after the used part. At least its beginning must have been
  // written.
  const uint64_t some = std::min<uint64_t>(bytes, 16);
  if (begin < buffer.offset || end < begin || begin < memory.begin || end > memory.end) {
    violated("{} {} bytes {} to {} of {}, which has {}", what(), name_of(access), begin - memory.begin,
             end - memory.begin, memory.name, memory.end - memory.begin);
  }
  if (access != tuff::Access::read && !memory.output) violated("{} {} {}", what(), name_of(access), memory.name);
  if (memory.scratch && access == tuff::Access::read && !memory.written.holds(begin, begin + some)) {
    violated("{} reads bytes {} to {} of {}, which are not written", what(), begin, end, memory.name);
  }
  if (memory.scratch && access == tuff::Access::read && !has_gaps(place.kernel)) {
    const uint64_t gap = memory.written.longest_gap(begin, end);
    if (gap >= kScratchAlignment) {
      violated("{} reads bytes {} to {} of {}, {} of which are not written", what(), begin, end, memory.name, gap);
    }
  }
  if (place.narrow != 0 && !memory.scratch && bytes / std::max(memory.element, place.narrow) > uint64_t{1} << 31) {
    violated("{} {} {} bytes of {} with 32-bit indices", what(), name_of(access), bytes, memory.name);
  }
}

void CheckingRecorder::used(const char* kernel, const tuff::Buffer& buffer, uint64_t offset, uint64_t bytes,
                            tuff::Access access) {
  Memory& memory = memory_of(buffer);
  const uint64_t begin = buffer.offset + offset, end = begin + bytes;
  if (access != tuff::Access::write && !memory.scratch) memory.read.add(begin, end);
  if (access == tuff::Access::read) return;
  memory.written.add(begin, end);
  wrote_ = wrote_ || !memory.scratch;
  // The parts of scratch memory that different kernels write are disjoint, or one reuses another. Panels are laid out
  // anew for each piece of a GEMM. Blocks of matrices that linear algebra keeps there are interleaved.
  memory.matrices = memory.matrices || std::string_view(kernel).starts_with("linalg");
  if (!memory.scratch || memory.matrices || bytes == 0 || std::string_view(kernel).starts_with("gemm_pa")) return;
  // For a C that another planner keeps, in its own memory, a GEMM may compute columns by several kernels.
  const bool product =
      std::string_view(kernel).starts_with("gemm_") && std::string_view(memory.name) == "outer scratch";
  for (const Memory::Piece& piece : memory.pieces) {
    if (piece.kernel == kernel || (product && std::string_view(piece.kernel).starts_with("gemm_"))) continue;
    const bool apart = end <= piece.begin || piece.end <= begin;
    const bool inside = (begin >= piece.begin && end <= piece.end) || (piece.begin >= begin && piece.end <= end);
    if (!apart && !inside) {
      violated("bytes {} to {} of {} are written, across bytes {} to {}, which were written before", begin, end,
               memory.name, piece.begin, piece.end);
    }
  }
  memory.pieces.push_back({begin, end, kernel});
}

void CheckingRecorder::check_kernel(const tuff::KernelRequest& kernel, const tuff::Dispatch& dispatch, bool addresses) {
  const tuff::DeviceTraits& t = device_.traits;
  const char* const name = kernel.source().name;
  tuff::check_defines(kernel);
  if (const std::string broken = broken_requirement(kernel, dispatch, t.subgroup_size); !broken.empty()) {
    violated("{} is requested, which requires: {}", name, broken);
  }
  if (const std::string wrong = wrong_reach(kernel, dispatch, parameters_data_, t); !wrong.empty()) {
    violated("{} {}", name, wrong);
  }
  std::array<uint32_t, 3> workgroup = {0, 1, 1};
  workgroup[0] = constant_of(kernel, 0);
  // permute_tile.comp: the workgroup's rows of a tile, and its turns of four elements for each invocation.
  if (std::string_view(name) == "permute_tile") {
    const uint32_t tile = constant_of(kernel, 1);
    if (workgroup[0] % tile != 0 || tile * tile / 4 % workgroup[0] != 0) {
      violated("{} has workgroups of {} invocations for tiles of {} x {}", name, workgroup[0], tile, tile);
    }
  }
  const KernelFact* fact = nullptr;
  if (kernel.source().native()) {
    if (!t.hopper) violated("{} is in PTX, which the device does not run", name);
    static std::set<uint64_t> written;  // each text once, which takes as long as a hundred plans
    if (written.insert(kernel.define_sum()).second && kernel.source().write(kernel).threads > 1024) {
      violated("{} has more than 1024 threads", name);
    }
  } else if (facts_ != nullptr) {
    fact = facts_->of(kernel, form_of(kernel, dispatch, addresses));
  }
  if (fact != nullptr) {
    workgroup = fact->workgroup;
    if (fact->shared_bytes > t.shared_bytes) {
      violated("{} takes {} bytes of shared memory, the device has {}", name, fact->shared_bytes, t.shared_bytes);
    }
    if (fact->diverging != 0) {
      violated("{} has {} barriers or subgroup operations that only some invocations reach", name, fact->diverging);
    }
    for (uint32_t i = 0; fact->by_slots && i < dispatch.operand_count(); ++i) {
      const tuff::Dispatch::Operand& operand = dispatch.operands()[i];
      if (operand.bytes == 0 || (operand.buffer == nullptr && operand.each == nullptr)) continue;
      // Whether an operand is read may depend on pushed numbers, such as beta. Writes are therefore checked, reads are
      // not.
      const bool writes = (fact->writes >> i & 1) != 0;
      if (writes && operand.access == tuff::Access::read) violated("{} writes operand {}, which is read-only", name, i);
    }
  }
  const uint64_t invocations = uint64_t{workgroup[0]} * workgroup[1] * workgroup[2];
  if (invocations > t.max_invocations || workgroup[0] > t.max_local_size[0] || workgroup[1] > t.max_local_size[1] ||
      workgroup[2] > t.max_local_size[2] || (fact != nullptr && invocations == 0)) {
    violated("{} has workgroups of {} x {} x {}, the device runs {}, {} along x", name, workgroup[0], workgroup[1],
             workgroup[2], t.max_invocations, t.max_local_size[0]);
  }
}

void CheckingRecorder::dispatch(const tuff::KernelRequest& kernel, const tuff::Dispatch& dispatch) {
  const tuff::DeviceTraits& t = device_.traits;
  const char* const name = kernel.source().name;
  const bool addresses = kernel.is_wide() || binds_addresses(kernel.reads(), dispatch);
  if (tell) tell(text_of(kernel, dispatch, addresses));
  count();
  const auto& groups = dispatch.group_counts();
  if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0) return;
  for (int i = 0; i < 3; ++i) {
    if (groups[i] > t.max_groups[i]) {
      violated("{} needs {} workgroups in dimension {}, the device runs at most {}", name, groups[i], i,
               t.max_groups[i]);
    }
  }
  const uint32_t slots = dispatch.operand_count() + (dispatch.each() != 0 ? 1 : 0);
  const uint32_t push = slots * 8 + (dispatch.push_bytes() + 3) / 4 * 4;
  if (!kernel.source().native() && push > tuff::Dispatch::kMaxPushBytes) violated("{} pushes {} bytes", name, push);
  if (!std::isfinite(dispatch.bytes()) || dispatch.bytes() < 0 || !std::isfinite(dispatch.operations()) ||
      dispatch.operations() < 0) {
    violated("{} is {} bytes and {} operations of work", name, dispatch.bytes(), dispatch.operations());
  }

  for (uint32_t i = 0; i < dispatch.operand_count(); ++i) {
    const tuff::Dispatch::Operand& operand = dispatch.operands()[i];
    // The number of bytes that a 32-bit index counts in; 0 if indices have 64 bits.
    const uint64_t narrow = kernel.is_wide() ? 0 : std::max<uint64_t>(unit_of(kernel, i), 1);
    // Those in PTX count rows and columns in 32 bits, and pieces of 16 bytes of A and B.
    const uint64_t pieces = i < 2 ? 16 : 0;
    // These compute whole addresses.
    const bool whole = kernel.is_wide() || name == std::string_view("gemm_narrow") ||
                       name == std::string_view("gemm_split") || name == std::string_view("qgemm_mma") ||
                       name == std::string_view("qgemm_wgmma") || name == std::string_view("rnn_persistent");
    const Place what{name, i, whole ? 0 : kernel.source().native() ? pieces : narrow};
    if (operand.each != nullptr) {
      for (uint32_t j = 0; j < dispatch.each_count(); ++j) {
        check_range(what, *operand.each[j], 0, operand.bytes_of(j), operand.access);
      }
    } else if (operand.buffer != nullptr && operand.bytes != 0) {
      if (operand.buffer->allocation == parameters_.allocation && !parameters_valid_) {
        violated("{}, operand {}, uses parameters of an earlier dispatch", name, i);
      }
      check_range(what, *operand.buffer, operand.offset, operand.bytes, operand.access);
      const Memory& memory = memory_of(*operand.buffer);
      // Copies may move such elements in larger units.
      const uint64_t unit = unit_of(kernel, i), stored = unit != 0 ? unit : memory.element;
      if (!memory.scratch && name != std::string_view("copy") &&
          ((stored == 2 && !t.storage16) || (stored == 1 && !t.storage8))) {
        violated("{}, operand {}, has elements of {} bytes, and the device has no such storage", name, i, stored);
      }
      const uint64_t element = !memory.scratch ? memory.element : reads_integers(kernel) ? 1 : 2;
      const uint64_t place = operand.buffer->offset + operand.offset, alignment = alignment_of(kernel, i, element);
      if (place % alignment != 0) {
        violated("{}, operand {}, starts at byte {} of its allocation, and is read {} bytes at a time", name, i, place,
                 alignment);
      }
      // Blocks of head_dim: the last row is a whole number of them too.
      if (std::string_view(name).starts_with("attention") && i < 4 && operand.bytes % alignment != 0) {
        violated("{}, operand {}, has {} bytes, and is read {} bytes at a time", name, i, operand.bytes, alignment);
      }
    }
  }
  if (dispatch.each() != 0 && (!t.addresses || dispatch.each_count() > tuff::Dispatch::kMaxEach)) {
    violated("{} has {} buffers for an operand, which are bound by address, at most {}", name, dispatch.each_count(),
             tuff::Dispatch::kMaxEach);
  }
  // As in DeviceRecorder::dispatch.
  if (addresses && !t.addresses) {
    tuff::fail(TUFF_ERROR_LIMIT_EXCEEDED, "{}: an operand is beyond a descriptor's range, and there are no addresses",
               name);
  }
  check_kernel(kernel, dispatch, addresses);
  for (uint32_t i = 0; i < dispatch.operand_count(); ++i) {
    const tuff::Dispatch::Operand& operand = dispatch.operands()[i];
    if (operand.each != nullptr) {
      for (uint32_t j = 0; j < dispatch.each_count(); ++j)
        used(name, *operand.each[j], 0, operand.bytes_of(j), operand.access);
    } else if (operand.buffer != nullptr) {
      used(name, *operand.buffer, operand.offset, operand.bytes, operand.access);
    }
  }
  parameters_valid_ = false;
}

void CheckingRecorder::copy_rows(const Rows& to, const Rows& from, uint64_t bytes, uint64_t count) {
  if (tell) {
    tell(fmt::format("  copy rows: {} of {} bytes, to {} + {} by {}, from {} + {} by {}", count, bytes,
                     memory_of(*to.buffer).name, to.offset, to.pitch, memory_of(*from.buffer).name, from.offset,
                     from.pitch));
  }
  this->count();
  if (count == 0 || bytes == 0) return;
  const auto reach = [&](const Rows& rows) { return (count - 1) * rows.pitch + bytes; };
  check_range({"copy rows", 0, 0}, *from.buffer, from.offset, reach(from), tuff::Access::read);
  check_range({"copy rows", 1, 0}, *to.buffer, to.offset, reach(to), tuff::Access::write);
  // The bytes between rows count as well.
  used("copy rows", *from.buffer, from.offset, reach(from), tuff::Access::read);
  used("copy rows", *to.buffer, to.offset, reach(to), tuff::Access::write);
}

const tuff::Buffer& CheckingRecorder::scratch(uint64_t bytes, tuff::Scratch place) {
  tuff::Buffer& buffer = scratch_[static_cast<size_t>(place)];
  Memory& memory = memory_of(buffer);
  buffer.bytes = memory.end = bytes;
  memory.written.clear();
  memory.pieces.clear();
  largest_scratch_ = std::max(largest_scratch_, bytes);
  return buffer;
}

const tuff::Buffer& CheckingRecorder::parameters(const void* data, uint32_t bytes) {
  if (data == nullptr || bytes == 0 || bytes > kMaxParameterBytes) violated("{} bytes of parameters", bytes);
  Memory& memory = memory_of(parameters_);
  parameters_.bytes = memory.end = bytes;
  memory.written.clear();
  memory.written.add(0, bytes);
  const auto* const first = static_cast<const std::byte*>(data);
  parameters_data_.assign(first, first + bytes);
  parameters_valid_ = true;
  return parameters_;
}

}  // namespace tuff_test
