// Kernels whose invocations, or lanes together, have one item each.
#include "planners/reached.hpp"
#include "shaders/conv_depthwise.hpp"
#include "shaders/conv_interleave.hpp"
#include "shaders/conv_rows.hpp"
#include "shaders/conv_transpose_filter.hpp"
#include "shaders/conv_winograd_filter.hpp"
#include "shaders/conv_winograd_input.hpp"
#include "shaders/conv_winograd_output.hpp"
#include "shaders/norm_backward_rows.hpp"
#include "shaders/norm_line_sums.hpp"
#include "shaders/norm_merge.hpp"
#include "shaders/norm_rows.hpp"
#include "shaders/reduce_arg.hpp"
#include "shaders/rnn_bias.hpp"
#include "shaders/rnn_gates.hpp"
#include "shaders/rnn_pack.hpp"
#include "shaders/rnn_sequences.hpp"
#include "shaders/rope.hpp"
#include "shaders/scan_columns.hpp"
#include "shaders/scan_rows.hpp"
#include "shaders/softmax_rows.hpp"
#include "shaders/sparse_blocks.hpp"
#include "shaders/sparse_fold.hpp"
#include "shaders/sparse_merge.hpp"
#include "shaders/sparse_runs.hpp"
#include "shaders/sparse_total.hpp"

namespace tuff_test::reach {
namespace {

// An invocation has an item.
template <typename Shader, auto member>
void has_items(Reached& x) {
  const auto push = x.push<typename Shader::Push>();
  x.covers(push.*member, x.invocations());
}
// TUFF_LANES invocations have a row together.
template <typename Shader, auto member>
void has_rows(Reached& x) {
  const auto push = x.push<typename Shader::Push>();
  x.covers(push.*member, x.invocations() / static_cast<uint64_t>(x.define("TUFF_LANES")));
}

void convolves_rows(Reached& x) {
  const auto push = x.push<tuff::shaders::ConvRows::Push>();
  x.holds(push.each != 0 && push.filters != 0, "rows have outputs");
  if (!x.wrong.empty()) return;
  const auto outputs = static_cast<uint64_t>(x.define("WIDTH") * x.define("OUTPUTS"));
  const uint64_t images = push.subgroups / push.each / push.filters, size = size_of(x.define("TYPE"));
  x.covers(push.subgroups, 1);
  x.holds(push.each * outputs >= push.Q, "the subgroups of a row have all of its outputs");
  x.holds(push.S % 8 == static_cast<uint64_t>(x.define("LEFT")), "LEFT is what eights of taps leave");
  x.operand(0, images * push.channels * push.W * size);
  x.operand(1, uint64_t{push.filters} * push.S * size);
  x.operand(2, images * push.filters * push.Q * size);
}
// Winograd's transforms: matrices of [channels][pitch of tiles], or with channels last [tiles][channels].
uint64_t winograd_bytes(Reached& x, uint64_t channels, uint64_t count, uint64_t pitch) {
  const auto span = static_cast<uint64_t>(x.define("TILE") + 2);
  x.holds(count != 0 && pitch >= count && pitch < count + 4, "the pitch is that of the tiles");
  return span * span * channels * (x.define("CHANNELS_LAST") != 0 ? count : pitch) * 4;
}
// Whole images of some number, of which each has tiles_y * tiles_x tiles.
void has_images(Reached& x, uint32_t operand, uint64_t image, uint64_t tiles, uint64_t last) {
  const uint64_t bytes = x.dispatch.operands()[operand].bytes;
  x.holds(image != 0 && bytes % image == 0 && last <= bytes / image * tiles, "tiles are those of the images");
}
void makes_windows(Reached& x) {
  const auto push = x.push<tuff::shaders::ConvWinogradFilter::Push>();
  const auto span = static_cast<uint64_t>(x.define("TILE") + 2);
  x.covers(push.items, x.invocations());
  x.holds(push.channels != 0 && push.items % push.channels == 0, "filters have all channels");
  x.operand(0, uint64_t{push.items} * 9 * size_of(x.define("TYPE")));
  x.operand(1, uint64_t{push.items} * span * span * 4);
}
void makes_tiles(Reached& x) {
  const auto push = x.push<tuff::shaders::ConvWinogradInput::Push>();
  x.covers(push.items, x.invocations());
  x.holds(push.items == uint64_t{push.channels} * push.count, "tiles have all channels");
  const uint64_t image = uint64_t{push.channels} * push.H * push.W * size_of(x.define("TYPE"));
  has_images(x, 0, image, uint64_t{push.tiles_y} * push.tiles_x, uint64_t{push.first} + push.count);
  x.operand(1, winograd_bytes(x, push.channels, push.count, push.pitch));
}
void makes_outputs(Reached& x) {
  const auto push = x.push<tuff::shaders::ConvWinogradOutput::Push>();
  const auto tile = static_cast<uint64_t>(x.define("TILE"));
  x.covers(push.items, x.invocations());
  x.holds(push.items == uint64_t{push.filters} * push.count, "tiles have all filters");
  x.holds(push.tiles_y == ceil_div(uint64_t{push.P}, tile) && push.tiles_x == ceil_div(uint64_t{push.Q}, tile),
          "tiles cover the output");
  x.operand(0, winograd_bytes(x, push.filters, push.count, push.pitch));
  const uint64_t image = uint64_t{push.filters} * push.P * push.Q * size_of(x.define("TYPE"));
  has_images(x, 2, image, uint64_t{push.tiles_y} * push.tiles_x, uint64_t{push.first} + push.count);
  x.operand(3, push.filters * size_of(x.define("TYPE")));
  x.operand(4, x.dispatch.operands()[2].bytes);
}
void transposes_filter(Reached& x) {
  const auto push = x.push<tuff::shaders::ConvTransposeFilter::Push>();
  if (x.define("TILED") == 0) return x.covers(push.items, x.invocations());
  const uint64_t positions = uint64_t{push.T} * push.R * push.S;
  x.covers(positions * ceil_div(push.filters, 64) * ceil_div(push.channels, 64), 1);
}
void adds_biases(Reached& x) {
  with_push<tuff::shaders::rnn_bias_push::Push>(x, [&](const auto& push) {
    const uint64_t of_direction = push.rows + static_cast<uint64_t>(x.define("TUFF_AFTER")) * push.hidden;
    x.covers(push.directions * of_direction, x.invocations());
  });
}
void computes_gates(Reached& x) {
  with_push<tuff::shaders::rnn_gates_push::Push>(x, [&](const auto& push) {
    const bool projected = x.define("TUFF_PROJECTED") != 0 && x.define("TUFF_PART") == 2;
    x.covers(push.rows * ceil_div(projected ? push.width : push.hidden, 4), x.invocations());
  });
}
void moves_sequences(Reached& x) {
  with_push<tuff::shaders::rnn_sequences_push::Push>(x,
                                                     [&](const auto& push) { x.covers(push.items, x.invocations()); });
}

constexpr Kernel kItemKernels[] = {
    {"conv_depthwise", has_items<tuff::shaders::ConvDepthwise, &tuff::shaders::ConvDepthwise::Push::items>},
    {"conv_interleave", has_items<tuff::shaders::ConvInterleave, &tuff::shaders::ConvInterleave::Push::items>},
    {"conv_rows", convolves_rows},
    {"conv_transpose_filter", transposes_filter},
    {"conv_winograd_filter", makes_windows},
    {"conv_winograd_input", makes_tiles},
    {"conv_winograd_output", makes_outputs},
    {"norm_backward_rows", has_rows<tuff::shaders::NormBackwardRows, &tuff::shaders::NormBackwardRows::Push::teams>},
    {"norm_line_sums", has_rows<tuff::shaders::NormLineSums, &tuff::shaders::NormLineSums::Push::lines>},
    {"norm_merge", has_rows<tuff::shaders::NormMerge, &tuff::shaders::NormMerge::Push::sets>},
    {"norm_rows", has_rows<tuff::shaders::NormRows, &tuff::shaders::NormRows::Push::rows>},
    {"reduce_arg", has_rows<tuff::shaders::ReduceArg, &tuff::shaders::ReduceArg::Push::results>},
    {"rnn_bias", adds_biases},
    {"rnn_gates", computes_gates},
    {"rnn_pack", has_items<tuff::shaders::RnnPack, &tuff::shaders::RnnPack::Push::items>},
    {"rnn_sequences", moves_sequences},
    {"rope", has_items<tuff::shaders::Rope, &tuff::shaders::Rope::Push::items>},
    {"scan_columns", has_items<tuff::shaders::ScanColumns, &tuff::shaders::ScanColumns::Push::lanes>},
    {"scan_rows", has_rows<tuff::shaders::ScanRows, &tuff::shaders::ScanRows::Push::pieces>},
    {"softmax_rows", has_rows<tuff::shaders::SoftmaxRows, &tuff::shaders::SoftmaxRows::Push::rows>},
    {"sparse_blocks", has_items<tuff::shaders::SparseBlocks, &tuff::shaders::SparseBlocks::Push::lanes>},
    {"sparse_fold", has_items<tuff::shaders::SparseFold, &tuff::shaders::SparseFold::Push::lanes>},
    {"sparse_merge", has_items<tuff::shaders::SparseMerge, &tuff::shaders::SparseMerge::Push::lanes>},
    {"sparse_runs", has_items<tuff::shaders::SparseRuns, &tuff::shaders::SparseRuns::Push::lanes>},
    {"sparse_total", has_items<tuff::shaders::SparseTotal, &tuff::shaders::SparseTotal::Push::sums>},
};

}  // namespace

std::span<const Kernel> item_kernels() { return kItemKernels; }

}  // namespace tuff_test::reach
