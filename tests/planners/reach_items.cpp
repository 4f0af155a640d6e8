// Kernels whose invocations, or lanes together, have one item each.
#include <algorithm>

#include "kernels/common/loop_limit.hpp"
#include "planners/reached.hpp"
#include "shaders/conv_depthwise.hpp"
#include "shaders/conv_interleave.hpp"
#include "shaders/conv_rows.hpp"
#include "shaders/conv_tile.hpp"
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
// Implicit GEMM: a workgroup, or a subgroup, has some filters and columns, and one part of the taps.
template <typename Push>
void convolves(Reached& x, const Push& push) {
  uint64_t depth = 1, outputs = 1, deep_taps = 1;
  if constexpr (requires { push.T; }) {
    if (x.define("DEPTH") != 0) depth = push.D, outputs = push.O, deep_taps = push.T;
  }
  const uint64_t size = size_of(x.define("TYPE")), taps = deep_taps * push.R * push.S;
  const uint64_t image = outputs * push.P * push.Q;
  x.holds(push.groups != 0 && push.slices != 0, "there are groups and parts of the taps");
  x.holds(image != 0 && push.columns % image == 0, "columns are those of whole images");
  if (!x.wrong.empty()) return;
  const uint64_t images = push.columns / image, all_taps = push.channels * taps;
  x.operand(0, images * push.groups * push.channels * depth * push.H * push.W * size);
  x.operand(1, uint64_t{push.groups} * push.filters * all_taps * size);
  // An invocation of a CPU device has four taps at a time: drivers cut longer loops.
  const uint64_t of_part = std::min<uint64_t>(push.slice_taps, all_taps);
  const bool subgroup = x.kernel.source().name == std::string_view("conv_subgroup");
  x.holds(!x.device.cpu || !subgroup || ceil_div(of_part, 4) <= tuff::kMaxLoopIterationsCpu,
          "loops over taps are short");
}
void convolves_tiles(Reached& x) {
  x.define("SPACED") != 0 ? convolves(x, x.push<tuff::shaders::ConvTile::Push<false, true>>())
                          : convolves(x, x.push<tuff::shaders::ConvTile::Push<false, false>>());
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
    x.holds(push.batch != 0 && push.rows % push.batch == 0 && push.rows / push.batch <= 2, "directions have sequences");
    if (!x.wrong.empty() || x.define("TUFF_OUTPUT") == 0) return;
    const uint64_t y = x.dispatch.operands()[6].bytes / size_of(x.define("TUFF_TYPE"));
    for (uint64_t d = 0; d < push.rows / push.batch; ++d) {
      x.holds(push.y_at[d] + span({{push.batch, push.y_batch}}, push.width) <= y, "a step of y is there");
    }
  });
}
void moves_sequences(Reached& x) {
  with_push<tuff::shaders::rnn_sequences_push::Push>(x,
                                                     [&](const auto& push) { x.covers(push.items, x.invocations()); });
}

void turns_pairs(Reached& x) {
  const auto push = x.push<tuff::shaders::Rope::Push>();
  uint64_t heads_each = 1;
  for (uint32_t i = 0; i < x.kernel.constant_count(); ++i) {
    if (x.kernel.constants()[i].id == 1) heads_each = x.kernel.constants()[i].value;
  }
  const uint64_t of_batch = uint64_t{push.head_groups} * push.seq * push.blocks;
  x.covers(push.items, x.invocations());
  x.holds(of_batch != 0 && push.items % of_batch == 0, "each batch element has all blocks");
  x.holds(push.head_groups == ceil_div(uint64_t{push.heads}, heads_each), "groups have all heads");
  if (!x.wrong.empty()) return;
  const uint64_t batch = push.items / of_batch, size = size_of(x.define("TUFF_TYPE"));
  const uint64_t rest = push.head_dim - 2 * uint64_t{push.pairs}, pair_blocks = ceil_div(uint64_t{push.pairs}, 4);
  x.holds(push.pair_blocks == pair_blocks, "blocks have all pairs");
  x.holds(push.blocks == pair_blocks || push.blocks == pair_blocks + ceil_div(rest, 4), "blocks have all elements");
  const auto tensor = [&](uint32_t i, const uint32_t(&strides)[3]) {
    const uint64_t elements =
        span({{batch, strides[0]}, {push.heads, strides[1]}, {push.seq, strides[2]}}, push.head_dim);
    x.operand(i, elements * size);
    const bool fours = strides[0] % 4 == 0 && strides[1] % 4 == 0 && strides[2] % 4 == 0;
    x.holds(x.define("TUFF_SINGLE") != 0 || fours, "rows begin at fours of elements");
  };
  tensor(0, push.input_strides);
  tensor(1, push.output_strides);
  x.holds(x.define("TUFF_SINGLE") != 0 || (push.pairs % 4 == 0 && rest % 4 == 0), "rows have fours of pairs");
  x.holds(x.define("TUFF_SINGLE") == 0 || x.define("TUFF_VECTOR") == 0, "fours are vectors");
  if (x.define("TUFF_POSITIONS") != 0) x.operand(2, span({{batch, push.positions_stride}}, push.seq) * 4);
}

constexpr Kernel kItemKernels[] = {
    {"conv_depthwise", has_items<tuff::shaders::ConvDepthwise, &tuff::shaders::ConvDepthwise::Push::items>},
    {"conv_interleave", has_items<tuff::shaders::ConvInterleave, &tuff::shaders::ConvInterleave::Push::items>},
    {"conv_rows", convolves_rows},
    {"conv_subgroup", convolves_tiles},
    {"conv_tile", convolves_tiles},
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
    {"rope", turns_pairs},
    {"scan_columns", has_items<tuff::shaders::ScanColumns, &tuff::shaders::ScanColumns::Push::lanes>},
    {"scan_rows", has_rows<tuff::shaders::ScanRows, &tuff::shaders::ScanRows::Push::pieces>},
    {"softmax_rows", has_rows<tuff::shaders::SoftmaxRows, &tuff::shaders::SoftmaxRows::Push::rows>},
};

}  // namespace

std::span<const Kernel> item_kernels() { return kItemKernels; }

}  // namespace tuff_test::reach
