// Streaming kernels, whose invocations have items in turn, and scattering.
#include <algorithm>
#include <array>
#include <string_view>

#include "planners/reached.hpp"
#include "shaders/dequantize_blocks.hpp"
#include "shaders/fft_pass.hpp"
#include "shaders/gather.hpp"
#include "shaders/pad.hpp"
#include "shaders/places.hpp"
#include "shaders/pool.hpp"
#include "shaders/pool_backward.hpp"
#include "shaders/pool_windows.hpp"
#include "shaders/qgemm_scale.hpp"
#include "shaders/qgemm_signed.hpp"
#include "shaders/reduce_columns.hpp"
#include "shaders/reduce_rows.hpp"
#include "shaders/scatter_atomic.hpp"
#include "shaders/scatter_fold.hpp"
#include "shaders/scatter_settle.hpp"
#include "shaders/scatter_sort.hpp"
#include "shaders/scatter_write.hpp"
#include "shaders/select_count.hpp"
#include "shaders/select_write.hpp"
#include "shaders/strided_copy.hpp"
#include "shaders/strided_pairs.hpp"
#include "shaders/variates.hpp"

namespace tuff_test::reach {
namespace {

// --- streaming kernels: every item has an invocation ---

template <typename Shader>
void walks(Reached& x) {
  const auto push = x.push<typename Shader::Push>();
  x.loop(push.n, push.run);
}
void gathers(Reached& x) {
  const auto each = [&](const auto& push) { x.loop(push.n, push.run); };
  x.define("TUFF_ROWS") != 0 ? each(x.push<tuff::shaders::gather_push::Push<true>>())
                             : each(x.push<tuff::shaders::gather_push::Push<false>>());
}
void dequantizes(Reached& x) {
  const auto push = x.push<tuff::shaders::DequantizeBlocks::Push>();
  x.loop(push.items, push.run);
}
// The table of a pass: strides in numbers, then the axes that its lanes are spread over (fft_words.hpp).
class FftTable {
 public:
  FftTable(Reached& x, uint32_t rank) : x_(x), rank_(rank) {
    x.holds(x.parameters.size() == 4 * (kOwn + kAxis * rank), "the table has the axes of lanes");
    if (x.wrong.empty()) std::memcpy(words_.data(), x.parameters.data(), x.parameters.size());
  }
  uint64_t pair(size_t at) const { return joined(words_[at], words_[at + 1]); }
  // What a lane adds for each number of its column: in the input, and in the output.
  uint64_t input_step() const { return pair(0); }
  uint64_t output_step() const { return pair(2); }
  uint64_t output_stride() const { return pair(6); }
  void divides(uint64_t lanes) {
    uint64_t all = 1;
    for (uint32_t i = 0; i < rank_; ++i) {
      const uint32_t* axis = words_.data() + kOwn + kAxis * i;
      x_.holds(x_.divides(lanes - 1, axis[0], axis[1], axis[2]), "lanes are divided by the axes");
      all *= axis[0];
    }
    x_.holds(all == lanes, "axes have all lanes");
  }
  // Numbers up to the last one of all lanes: `behind` the first of a lane, along the first or the second strides.
  uint64_t reach(bool output, uint64_t behind) const {
    uint64_t numbers = 1 + behind;
    for (uint32_t i = 0; i < rank_; ++i) {
      const size_t at = kOwn + kAxis * i;
      numbers += (words_[at] - 1) * pair(at + (output ? 5 : 3));
    }
    return numbers;
  }

 private:
  static constexpr size_t kOwn = 8, kAxis = 7;
  Reached& x_;
  uint32_t rank_;
  std::array<uint32_t, kOwn + kAxis * 10> words_{};
};

void transforms(Reached& x) {
  const auto push = x.push<tuff::shaders::FftPass::Push>();
  const auto together = static_cast<uint64_t>(x.define("TUFF_COLUMNS"));
  x.define("TUFF_LANES") == 0 ? x.loop(push.lanes, push.run) : x.covers(push.lanes, together);
  x.holds(push.rank <= 10 && push.passed != 0 && push.span % push.passed == 0, "a radix is a whole number");
  if (!x.wrong.empty()) return;
  FftTable table(x, push.rank);
  if (!x.wrong.empty()) return;
  table.divides(push.lanes);
  const uint64_t radix = push.span / push.passed;
  const auto load = x.define("TUFF_LOAD"), store = x.define("TUFF_STORE");
  const uint64_t of_input = size_of(x.define("TUFF_INPUT")), of_output = size_of(x.define("TUFF_OUTPUT"));
  // Where the numbers are at their columns' places, and none is left out.
  if (x.define("TUFF_CHIRP") != 0) return;
  if (load <= 1) {
    x.operand(0, table.reach(false, (radix - 1) * table.input_step()) * (load == 0 ? 2 : 1) * of_input);
  }
  if (load == 7) return;
  const uint64_t written = table.reach(true, (radix - 1) * table.output_step());
  if (store == 0) x.operand(1, written * 2 * of_output);
  if (store == 2) x.operand(1, written * of_output);
  if (store == 3) x.operand(1, (written + table.output_stride()) * of_output);  // pairs of real numbers
}
void reduces_rows(Reached& x) {
  const auto push = x.push<tuff::shaders::ReduceRows::Push>();
  const auto run = static_cast<uint64_t>(x.define("TUFF_RUN")), lanes = static_cast<uint64_t>(x.define("TUFF_LANES"));
  x.covers(push.pieces, (run != 0 ? run : push.run) * (x.invocations() / lanes));
}
void reduces_columns(Reached& x) {
  const auto push = x.push<tuff::shaders::ReduceColumns::Push>();
  if (x.define("TUFF_SPAN") == 0) x.loop(push.results, push.run);
}

// --- scattering ---

void finds_places(Reached& x) {
  const auto push = x.push<tuff::shaders::Places::Push>();
  x.loop(push.n, push.run);
  x.operand(2, push.n * static_cast<uint64_t>(x.define("TUFF_KEY_BYTES")));
  if (x.define("TUFF_CLAIM") != 0) x.operand(3, uint64_t{push.none} * 4);
  if (x.define("TUFF_FORM") != 2) x.operand(0, push.n * static_cast<uint64_t>(x.define("TUFF_INDEX_BYTES")));
}
void settles(Reached& x) {
  const auto push = x.push<tuff::shaders::ScatterSettle::Push>();
  x.loop(push.n, push.run);
  x.operand(0, uint64_t{push.n} * 4);
  x.operand(1, uint64_t{push.none} * 4);
}
// Rows of updates go to places of the output.
void moves_rows(Reached& x) {
  const auto push = x.push<tuff::shaders::scatter_rows_push::Push>();
  const bool writes = x.kernel.source().name == std::string_view("scatter_write");
  const uint64_t inner = push.sizes[0], rows = push.sizes[1];
  const uint64_t unit = writes ? static_cast<uint64_t>(x.define("TUFF_UNIT")) : 4;
  x.loop(push.n, push.run);
  x.holds(inner * rows != 0 && push.n % (inner * rows) == 0, "units are whole rows of each outer index");
  if (!x.wrong.empty()) return;
  const uint64_t outers = push.n / (inner * rows);
  x.holds((x.define("TUFF_SINGLE") != 0) == (outers == 1 && inner == 1), "TUFF_SINGLE is for rows of one unit");
  x.operand(0, span({{outers, joined(push.from_stride, push.from_stride_high) * unit}}, rows * inner * unit));
  x.operand(1, rows * 4);
  if (writes) x.operand(2, uint64_t{push.none} * 4);
  x.operand(3, span({{outers, joined(push.to_stride, push.to_stride_high) * unit}}, push.none * inner * unit));
}
void sorts_indices(Reached& x) {
  const auto push = x.push<tuff::shaders::ScatterSort::Push>();
  const bool moves = x.define("TUFF_STAGE") == 2;
  x.covers(push.lanes, x.invocations());
  x.holds(uint64_t{push.lanes} * push.chunk >= push.n, "lanes take all indices");
  x.holds(push.shift < 32 && (push.mask & (push.mask + 1)) == 0, "a digit is some bits of an index");
  x.operand(0, uint64_t{push.n} * 4);
  x.operand(1, uint64_t{push.n} * 4);
  x.operand(2, (uint64_t{push.mask} + 1) * push.lanes * 4);
  x.holds(moves == (x.dispatch.operands()[3].buffer != nullptr), "the second stage moves");
  x.operand(3, uint64_t{push.n} * 4);
  x.operand(4, uint64_t{push.n} * 4);
}
void folds(Reached& x) {
  const auto push = x.push<tuff::shaders::ScatterFold::Push>();
  const bool last = x.define("TUFF_LAST") != 0, leaf = x.define("TUFF_LEAF") != 0;
  const uint64_t value = std::max<uint64_t>(size_of(x.define("TUFF_TYPE")), 4), n = push.n;
  x.holds(push.chunk != 0 && push.columns != 0, "chunks have entries, and rows have columns");
  if (!x.wrong.empty()) return;
  const uint64_t chunks = ceil_div(n, uint64_t{push.chunk});
  x.covers(push.lanes, x.invocations());
  x.holds(push.lanes == chunks * push.columns, "a lane has a column of a chunk");
  x.holds(last == (chunks == 1) && last == (x.dispatch.operands()[4].buffer == nullptr), "one chunk has no next list");
  x.operand(0, n * 4);
  x.operand(1, n * 4);
  if (!leaf) x.operand(2, n * push.columns * value);
  x.operand(4, 2 * chunks * 4);
  x.operand(5, 2 * chunks * push.columns * value);
}

// --- selecting ---

// Chunks cover the elements of a piece; the sums are those of its chunks.
void selects(Reached& x) {
  const auto push = x.push<tuff::shaders::select_push::Push>();
  const bool writes = x.kernel.source().name == std::string_view("select_write");
  const auto width = static_cast<uint64_t>(x.define("TUFF_WIDTH")),
             lanes = static_cast<uint64_t>(x.define("TUFF_LANES"));
  const auto index = writes ? static_cast<uint64_t>(x.define("TUFF_INDEX_BYTES")) : 0;
  const bool values = writes && x.define("TUFF_VALUES") != 0, stores = values || index != 0;
  x.holds(push.chunk % 16 == 0 && push.chunks == ceil_div(push.n, uint64_t{push.chunk}), "chunks cover the elements");
  x.holds(x.define("TUFF_BLOCKS") == 0 || (x.define("TUFF_OP") == 1 && width == 1), "blocks are of bytes of a mask");
  x.holds(push.before == 0 || x.define("TUFF_OP") == 2, "a mask has no element before a piece");
  if (!writes || stores) x.covers(push.chunks, lanes != 0 ? lanes : 1);
  x.operand(0, (uint64_t{push.n} + push.before) * width);
  x.operand(2, uint64_t{push.chunks} * 4);
  if (!writes) return;
  const uint64_t room = joined(push.room, push.room_high);
  x.holds(values == (x.dispatch.operands()[3].buffer != nullptr), "values are stored where they are wanted");
  if (values) x.operand(1, push.n * static_cast<uint64_t>(x.define("TUFF_UNIT")));
  if (values) x.operand(3, room * static_cast<uint64_t>(x.define("TUFF_UNIT")));
  if (index != 0) x.operand(4, room * index);
  x.holds((x.define("TUFF_LATER") != 0) == (x.dispatch.operands()[5].buffer != nullptr), "later pieces read a sum");
  x.holds((x.define("TUFF_TOTAL") != 0) == (x.dispatch.operands()[6].buffer != nullptr), "a sum has a place");
  x.operand(5, 8);
  x.operand(6, 8);
  if (lanes != 0 || !stores) return;
  x.holds(x.define("TUFF_THREADS") == static_cast<int64_t>(x.invocations()), "TUFF_THREADS is the size of workgroups");
  x.holds(x.define("TUFF_BLOCKS") == 0 || x.define("TUFF_ITEMS") == 16, "a block has 16 elements");
}

constexpr Kernel kStreamingKernels[] = {
    {"dequantize_blocks", dequantizes},
    {"fft_pass", transforms},
    {"gather", gathers},
    {"pad", walks<tuff::shaders::Pad>},
    {"places", finds_places},
    {"pool", walks<tuff::shaders::Pool>},
    {"pool_backward", walks<tuff::shaders::PoolBackward>},
    {"pool_windows", walks<tuff::shaders::PoolWindows>},
    {"qgemm_scale", walks<tuff::shaders::QgemmScale>},
    {"qgemm_signed", walks<tuff::shaders::QgemmSigned>},
    {"reduce_columns", reduces_columns},
    {"reduce_rows", reduces_rows},
    {"scatter_atomic", moves_rows},
    {"scatter_fold", folds},
    {"scatter_settle", settles},
    {"scatter_sort", sorts_indices},
    {"scatter_write", moves_rows},
    {"select_count", selects},
    {"select_write", selects},
    {"strided_copy", walks<tuff::shaders::StridedCopy>},
    {"strided_pairs", walks<tuff::shaders::StridedPairs>},
    {"variates", walks<tuff::shaders::Variates>},
};

}  // namespace

std::span<const Kernel> streaming_kernels() { return kStreamingKernels; }

}  // namespace tuff_test::reach
