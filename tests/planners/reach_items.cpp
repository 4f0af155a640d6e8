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
    {"conv_winograd_filter",
     has_items<tuff::shaders::ConvWinogradFilter, &tuff::shaders::ConvWinogradFilter::Push::items>},
    {"conv_winograd_input",
     has_items<tuff::shaders::ConvWinogradInput, &tuff::shaders::ConvWinogradInput::Push::items>},
    {"conv_winograd_output",
     has_items<tuff::shaders::ConvWinogradOutput, &tuff::shaders::ConvWinogradOutput::Push::items>},
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
