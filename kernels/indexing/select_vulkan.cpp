// Planner of select (select.glsl). On GPUs a workgroup shares a chunk, on CPU devices each invocation has one of its
// own. Chunks depend only on the sizes and the device; results do not depend on them.
#include <algorithm>
#include <array>

#include "kernels/common/check.hpp"
#include "kernels/common/float_bits.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/indexing/select.hpp"
#include "kernels/memory/memory.hpp"
#include "kernels/scan/scan.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/select_count.hpp"
#include "shaders/select_write.hpp"

namespace tuff {
namespace {

constexpr uint64_t kBlock = 16;           // elements of TUFF_BLOCKS
constexpr uint64_t kChunksPerCore = 64;   // that GPUs need for full use: more only add counts
constexpr uint64_t kShortestChunk = 256;  // of an invocation
constexpr uint64_t kLongestChunk = kMaxLoopIterationsCpu / (2 * kBlock) * kBlock;
constexpr int64_t kItems = 16, kFewItems = 8;  // TUFF_ITEMS

struct Select {
  Recorder& recorder;
  const SelectArgs& args;
  StreamDevice device;
  uint64_t width, unit;  // bytes of an element that is judged, and of one that is stored
  Buffer counts, sums;   // of chunks, and of earlier pieces

  bool values() const { return args.output != nullptr && args.room() != 0; }
  uint64_t index_bytes() const { return args.indices != nullptr && args.room() != 0 ? dtype_size(args.index_type) : 0; }
};

// Elements first … first + n - 1.
struct Piece {
  uint64_t number, first, n;
  bool last;
};

struct Chunks {
  uint64_t count, size;
  uint32_t lanes, workgroup, subgroups;
  int64_t items;
};

Chunks cut_piece(const Select& select, uint64_t n) {
  const StreamDevice& device = select.device;
  if (device.cpu) {
    const uint64_t wanted = 4 * device.cores * device.workgroup;
    const uint64_t size = std::clamp(round_up(ceil_div(n, wanted), kBlock), kShortestChunk, kLongestChunk);
    return {ceil_div(n, size), size, device.workgroup, device.workgroup, 1, kItems};
  }
  shaders::SelectWrite::SharedBytes shape{
      .items = kItems, .subgroups = device.workgroup / device.subgroup, .threads = device.workgroup};
  if (shaders::SelectWrite::shared_bytes(shape) > select.recorder.traits().shared_bytes) shape.items = kFewItems;
  const uint64_t tile = static_cast<uint64_t>(shape.items * shape.threads);
  const uint64_t size = tile * ceil_div(ceil_div(n, tile), kChunksPerCore * device.cores);
  return {ceil_div(n, size), size, 0, device.workgroup, device.workgroup / device.subgroup, shape.items};
}

// TUFF_FORM.
int form_of(const SelectArgs& args) {
  if (!args.unique() || kIntegerTypes.has(args.dtype)) return 0;
  return args.dtype == TUFF_BOOL ? 2 : kComplexTypes.has(args.dtype) ? 3 : 1;
}

// The bits of the part that decide whether it is 0, as low and high word: all but the sign of a float. Where elements
// have fewer than 32 bits, the word is that of several.
std::array<uint32_t, 2> magnitude_of(int32_t dtype) {
  switch (part_type(dtype)) {
    case TUFF_F64: return {0xffffffff, 0x7fffffff};
    case TUFF_F32: return {0x7fffffff, 0x7fffffff};
    case TUFF_F16:
    case TUFF_BF16: return {0x7fff7fff, 0};
    case TUFF_F8_E4M3:
    case TUFF_F8_E5M2: return {0x7f7f7f7f, 0};
    default: return {0xffffffff, 0xffffffff};
  }
}

// TUFF_BLOCKS.
bool reads_blocks(const Select& select, const Piece& piece, const Chunks& chunks) {
  return !select.args.unique() && select.width == 1 && chunks.items == kItems &&
         aligned16(select.args.judged(), piece.first);
}

shaders::select_push::Push push_of(const Select& select, const Piece& piece, const Chunks& chunks) {
  const SelectArgs& args = select.args;
  const auto [magnitude, magnitude_high] = magnitude_of(args.judged_type());
  return {.n = static_cast<uint32_t>(piece.n),
          .before = args.unique() && piece.first != 0,
          .chunks = static_cast<uint32_t>(chunks.count),
          .chunk = static_cast<uint32_t>(chunks.size),
          .magnitude = magnitude,
          .magnitude_high = magnitude_high,
          .infinity = largest_magnitude(part_type(args.judged_type())),
          .equal_nan = args.equal_nan,
          .first = low_word(piece.first),
          .first_high = high_word(piece.first),
          .room = low_word(args.room()),
          .room_high = high_word(args.room())};
}

// The elements that decide, with the one before the piece if there is one.
void read_judged(Dispatch& dispatch, const Select& select, const Piece& piece) {
  const uint64_t before = select.args.unique() && piece.first != 0 ? 1 : 0;
  dispatch.operand(select.args.judged(), (piece.first - before) * select.width, (piece.n + before) * select.width,
                   Access::read);
}

uint64_t groups_of(const Chunks& chunks) {
  return chunks.lanes != 0 ? ceil_div(chunks.count, chunks.lanes) : chunks.count;
}

// The running sums of the chunks' counts.
void count_chunks(const Select& select, const Piece& piece, const Chunks& chunks) {
  const SelectArgs& args = select.args;
  const Buffer counts = part_of(select.counts, 0, chunks.count * 4);
  KernelRequest kernel = shaders::SelectCount::request({.blocks = reads_blocks(select, piece, chunks),
                                                        .form = form_of(args),
                                                        .lanes = chunks.lanes,
                                                        .op = args.op,
                                                        .width = select.width});
  kernel.streaming().constant(0, chunks.workgroup).wide(needs_wide(args.n));
  Dispatch dispatch("select");
  read_judged(dispatch, select, piece);
  dispatch.operand(nullptr, 0, 0, Access::read)
      .operand(&counts, 0, counts.bytes, Access::write)
      .operand(nullptr, 0, 0, Access::read)
      .operand(nullptr, 0, 0, Access::read)
      .operand(nullptr, 0, 0, Access::read)
      .operand(nullptr, 0, 0, Access::read)
      .push(push_of(select, piece, chunks))
      .groups_linear(groups_of(chunks), select.recorder.traits())
      .work(static_cast<double>(piece.n * select.width), static_cast<double>(piece.n));
  log(TUFF_LOG_DISPATCH, "select {}: {} of {} elements in {} chunks, groups of {}", dtype_name(args.judged_type()),
      args.unique() ? "runs" : "those not 0", piece.n, chunks.count, chunks.workgroup);
  select.recorder.dispatch(kernel, dispatch);
  const uint64_t shape = chunks.count;
  if (shape > 1) {
    record_scan(select.recorder, {ScanOp::sum, TUFF_I32, &counts, &counts, &shape, 1, 0, false, false});
  }
}

void write_selected(const Select& select, const Piece& piece, const Chunks& chunks) {
  const SelectArgs& args = select.args;
  const bool values = select.values(), writes = values || select.index_bytes() != 0;
  const Buffer* total = piece.last ? args.count : &select.sums;
  const uint64_t total_at = piece.last ? 0 : piece.number * 8;
  if (!writes && total == nullptr) return;
  KernelRequest kernel = shaders::SelectWrite::request({.blocks = reads_blocks(select, piece, chunks),
                                                        .form = form_of(args),
                                                        .index_bytes = select.index_bytes(),
                                                        .items = chunks.items,
                                                        .lanes = chunks.lanes,
                                                        .later = piece.number != 0,
                                                        .narrow = select.device.subgroup <= 32,
                                                        .op = args.op,
                                                        .subgroups = chunks.subgroups,
                                                        .threads = chunks.lanes != 0 ? 0 : chunks.workgroup,
                                                        .total = total != nullptr,
                                                        .unit = select.unit,
                                                        .values = values,
                                                        .width = select.width});
  kernel.streaming().constant(0, chunks.workgroup).wide(needs_wide(args.n));
  const uint64_t room = args.room();
  Dispatch dispatch("select");
  if (writes) {
    read_judged(dispatch, select, piece);
  } else {
    dispatch.operand(nullptr, 0, 0, Access::read);
  }
  dispatch
      .operand(values ? args.input : nullptr, values ? piece.first * select.unit : 0, piece.n * select.unit,
               Access::read)
      .operand(&select.counts, 0, chunks.count * 4, Access::read)
      .operand(values ? args.output : nullptr, 0, room * select.unit, Access::write)
      .operand(select.index_bytes() != 0 ? args.indices : nullptr, 0, room * select.index_bytes(), Access::write)
      .operand(piece.number != 0 ? &select.sums : nullptr, piece.number != 0 ? (piece.number - 1) * 8 : 0, 8,
               Access::read)
      .operand(total, total != nullptr ? total_at : 0, 8, Access::write)
      .push(push_of(select, piece, chunks))
      .groups_linear(writes ? groups_of(chunks) : 1, select.recorder.traits())
      .work(static_cast<double>(piece.n * (select.width + (values ? 2 * select.unit : 0) + select.index_bytes())),
            static_cast<double>(piece.n));
  select.recorder.dispatch(kernel, dispatch);
}

}  // namespace

void record_select(Recorder& recorder, const SelectArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  require_storage(traits, args.judged_type());
  if (args.output != nullptr) require_storage(traits, args.dtype);
  if (args.n == 0) {
    if (args.count != nullptr) record_fill(recorder, *args.count, 0, 8, {});
    return;
  }
  const uint64_t width = dtype_size(args.judged_type()), unit = dtype_size(args.dtype);
  Select select{recorder, args, stream_device(traits, forced_variant<"TUFF_SHAPE_VARIANT">(), std::max(width, unit)),
                width,    unit, {},
                {}};
  // One element less, because that before a piece is read too.
  const uint64_t step = select.device.piece - 64, pieces = ceil_div(args.n, step);
  const uint64_t chunks_of_last = cut_piece(select, args.n - (pieces - 1) * step).count;
  const uint64_t most = std::max(cut_piece(select, std::min(step, args.n)).count, chunks_of_last);
  take_scratch(recorder, {{&select.counts, most * 4}, {&select.sums, pieces * 8}}, Scratch::outer);
  for (uint64_t number = 0; number < pieces; ++number) {
    const uint64_t first = number * step;
    const Piece piece{number, first, std::min(step, args.n - first), number + 1 == pieces};
    const Chunks chunks = cut_piece(select, piece.n);
    count_chunks(select, piece, chunks);
    write_selected(select, piece, chunks);
  }
}

}  // namespace tuff
