// Attention and its gradients.
#include <algorithm>
#include <array>

#include "kernels/attention/native/attention_backward_wgmma.hpp"
#include "kernels/attention/native/attention_planes.hpp"
#include "planners/reached.hpp"
#include "shaders/attention_backward_bias.hpp"
#include "shaders/attention_backward_dense.hpp"
#include "shaders/attention_backward_pairs.hpp"
#include "shaders/attention_backward_store.hpp"
#include "shaders/attention_backward_sums.hpp"

namespace tuff_test::reach {
namespace {

// The shape of the gradients' kernels: the last parameters that were recorded.
template <typename Index>
auto shape_of(Reached& x) {
  tuff::shaders::attention_backward_sums_push::AttentionBackwardShape<Index> shape{};
  x.holds(x.parameters.size() == sizeof shape, "the shape has been recorded");
  if (x.wrong.empty()) std::memcpy(&shape, x.parameters.data(), sizeof shape);
  return shape;
}
template <typename Body>
void with_shape(Reached& x, const Body& body) {
  const auto told = [&](const auto& shape) {
    if (x.wrong.empty()) body(shape);
  };
  x.kernel.is_wide() ? told(shape_of<uint64_t>(x)) : told(shape_of<uint32_t>(x));
}

void attends(Reached& x) {
  using tuff::attention::Planes;
  using tuff::attention::Wgmma;
  const bool floats = x.kernel.source().name == std::string_view("attention_planes");
  const Wgmma kernel = floats ? static_cast<const Wgmma&>(Planes::read(x.kernel)) : Wgmma::read(x.kernel);
  const auto push = x.push<Wgmma::Push>();
  const uint64_t size = floats ? 4 : 2, heads = push.heads, seq_q = push.seq_q, seq_kv = push.seq_kv;
  x.holds(ceil_div(seq_q, uint64_t{Wgmma::kRows}) == push.row_tiles, "tiles cover the rows");
  const uint64_t of_batch = uint64_t{push.row_tiles} * heads;
  x.holds(of_batch != 0 && push.tiles % of_batch == 0, "each batch element has all tiles");
  x.holds(push.sharing != 0 && heads % push.sharing == 0, "heads share kv heads evenly");
  x.holds(x.groups() <= push.tiles, "workgroups have tiles");
  if (!x.wrong.empty() || seq_kv == 0) return;
  const uint64_t batch = push.tiles / of_batch, kv_heads = heads / push.sharing;
  const auto tensor = [&](uint32_t i, std::initializer_list<Axis> axes, uint64_t dim, std::string_view name) {
    x.operand(i, span(axes, dim * size));
    in_pieces(x, axes, name);
  };
  tensor(0, {{batch, push.q_batch}, {heads, push.q_head}, {seq_q, push.q_row}}, kernel.head_dim, "q");
  tensor(1, {{batch, push.k_batch}, {kv_heads, push.k_head}, {seq_kv, push.k_row}}, kernel.head_dim, "k");
  tensor(2, {{batch, push.v_batch}, {kv_heads, push.v_head}, {seq_kv, push.v_row}}, kernel.head_dim_v, "v");
  tensor(3, {{batch, push.o_batch}, {heads, push.o_head}, {seq_q, push.o_row}}, kernel.head_dim_v, "o");
  if (kernel.lse) x.operand(4, batch * heads * seq_q * 4);
}

// The gradients: strides are in the shape, the last parameters that were recorded.
void attends_backward(Reached& x) {
  using tuff::attention_backward::Wgmma;
  const Wgmma kernel = Wgmma::read(x.kernel);
  const auto push = x.push<Wgmma::Push>();
  const auto shape = shape_of<uint64_t>(x);
  if (!x.wrong.empty()) return;
  const uint64_t batch = shape.batch, heads = shape.heads, kv_heads = heads / shape.sharing,
                 rows = batch * heads * shape.seq_q;
  const uint64_t own = kernel.keys_side ? shape.seq_kv : shape.seq_q;
  x.holds(push.own_tiles == ceil_div(own, uint64_t{Wgmma::kOwn}), "tiles cover own rows");
  x.holds(push.own_tiles != 0 && push.tiles % push.own_tiles == 0, "heads have all tiles");
  if (!x.wrong.empty()) return;
  const uint64_t units = push.tiles / push.own_tiles, all = batch * (kernel.keys_side ? kv_heads : heads);
  x.holds(kernel.slopes != 0 ? push.first_unit + units <= all : units == all, "each head has its tiles");
  x.holds(x.groups() <= push.tiles, "workgroups have tiles");
  x.holds(push.lengths == rows * 8 && push.bounds == (rows + batch) * 8,
          "lengths and bounds are behind the rows' numbers");
  const auto tensor = [&](uint32_t i, std::initializer_list<Axis> axes, uint64_t dim, std::string_view name) {
    std::array<Axis, 3> bytes{};
    std::copy(axes.begin(), axes.end(), bytes.begin());
    for (Axis& axis : bytes) axis.stride *= 2;
    x.operand(i, span({bytes[0], bytes[1], bytes[2]}, dim * 2));
    in_pieces(x, {bytes[0], bytes[1], bytes[2]}, name);
  };
  const uint64_t seq_q = shape.seq_q, seq_kv = shape.seq_kv;
  tensor(0, {{batch, shape.q_batch}, {heads, shape.q_head}, {seq_q, shape.q_row}}, kernel.head_dim, "q");
  tensor(1, {{batch, shape.k_batch}, {kv_heads, shape.k_head}, {seq_kv, shape.k_row}}, kernel.head_dim, "k");
  tensor(2, {{batch, shape.v_batch}, {kv_heads, shape.v_head}, {seq_kv, shape.v_row}}, kernel.head_dim_v, "v");
  tensor(3, {{batch, shape.d_o_batch}, {heads, shape.d_o_head}, {seq_q, shape.d_o_row}}, kernel.head_dim_v, "d_o");
  uint32_t next = 6;
  if (kernel.bias != 0) {
    x.operand(next++, 2 * span({{batch, shape.bias_batch}, {heads, shape.bias_head}, {seq_q, shape.bias_row}}, seq_kv));
  }
  if (kernel.mask) {
    x.operand(next++, span({{batch, shape.mask_batch}, {heads, shape.mask_head}, {seq_q, shape.mask_row}}, seq_kv));
  }
  if (kernel.first && kernel.keys_side) {
    tensor(next++, {{batch, shape.dk_batch}, {kv_heads, shape.dk_head}, {seq_kv, shape.dk_row}}, kernel.head_dim, "dk");
  } else if (kernel.first) {
    tensor(next++, {{batch, shape.dq_batch}, {heads, shape.dq_head}, {seq_q, shape.dq_row}}, kernel.head_dim, "dq");
  }
  if (kernel.second) {
    tensor(next++, {{batch, shape.dv_batch}, {kv_heads, shape.dv_head}, {seq_kv, shape.dv_row}}, kernel.head_dim_v, "dv");
  }
  if (kernel.slopes != 0) x.operand(next, units * seq_q * seq_kv * 4);
}

// Rows of the gradients' operands become dense: of q and d_o, or of k and v.
void copies_dense(Reached& x) {
  const auto push = x.push<tuff::shaders::AttentionBackwardDense::Push>();
  const bool keys = x.define("KEYS_SIDE") != 0;
  with_shape(x, [&](const auto& shape) {
    const uint64_t size = size_of(x.define("TYPE")), batch = shape.batch, seq = keys ? shape.seq_kv : shape.seq_q;
    const uint64_t heads = keys ? shape.heads / shape.sharing : shape.heads, d = shape.head_dim, dv = shape.head_dim_v;
    const auto tensor = [&](uint32_t i, uint64_t of_batch, uint64_t of_head, uint64_t of_row, uint64_t dim) {
      x.operand(i, span({{batch, of_batch}, {heads, of_head}, {seq, of_row}}, dim) * size);
    };
    x.holds(push.rows % seq == 0 && push.first_head + push.rows / seq <= batch * heads, "a part has some of the heads");
    x.covers(push.rows, x.invocations());
    keys ? tensor(0, shape.k_batch, shape.k_head, shape.k_row, d)
         : tensor(0, shape.q_batch, shape.q_head, shape.q_row, d);
    keys ? tensor(1, shape.v_batch, shape.v_head, shape.v_row, dv)
         : tensor(1, shape.d_o_batch, shape.d_o_head, shape.d_o_row, dv);
    tensor(2, shape.o_batch, shape.o_head, shape.o_row, dv);
    x.operand(3, batch * heads * seq * 4);
    x.operand(4, push.rows * (d + dv) * 4);
    x.operand(5, push.rows * uint64_t{keys ? 4u : 8u});
  });
}
void weighs_pairs(Reached& x) {
  const auto push = x.push<tuff::shaders::AttentionBackwardPairs::Push>();
  with_shape(x, [&](const auto& shape) {
    const uint64_t fours = uint64_t{push.rows} * ceil_div(push.keys, 4);
    x.holds(fours != 0 && push.items % fours == 0, "each head has all pairs");
    if (!x.wrong.empty()) return;
    const uint64_t heads = push.items / fours, pairs = heads * push.rows * push.keys;
    x.covers(push.items, x.invocations());
    x.holds(push.row0 + push.rows <= shape.seq_q && push.key0 + push.keys <= shape.seq_kv, "rows and keys are there");
    x.holds(push.sharer < shape.sharing && push.first_head + heads <= shape.batch * (shape.heads / shape.sharing),
            "heads are there");
    x.operand(0, pairs * 4);
    x.operand(1, pairs * 4);
    x.operand(2, heads * shape.sharing * shape.seq_q * 8);
    x.operand(3, heads * shape.seq_kv * 4);
    x.operand(9, pairs * 4);
  });
}
void stores_dense(Reached& x) {
  with_push<tuff::shaders::attention_backward_store_push::Push>(x, [&](const auto& push) {
    x.covers(push.rows, x.invocations());
    x.holds(push.rows % push.seq == 0, "a part has whole heads");
    x.operand(0, uint64_t{push.rows} * push.size * 4);
  });
}
void sums_bias(Reached& x) {
  with_push<tuff::shaders::attention_backward_bias_push::Push>(x, [&](const auto& push) {
    const int64_t mode = x.define("MODE");
    const uint64_t pairs = uint64_t{push.rows} * push.keys;
    const uint64_t runs = push.rows * ceil_div(push.keys, static_cast<uint64_t>(x.define("RUN")));
    x.covers(push.items, x.invocations());
    x.holds(runs != 0 && push.items % runs == 0, "each sum has all pairs");
    x.holds(push.sharer < push.sharing, "a sharer is one of those that share");
    if (mode == 1 || mode == 2) x.operand(0, push.units * pairs * 4);
    x.holds((mode == 1) == (push.shared_axes == 0) || mode != 1, "elements that are written are not shared");
  });
}

constexpr Kernel kAttentionKernels[] = {
    {"attention_backward_bias", sums_bias},
    {"attention_backward_dense", copies_dense},
    {"attention_backward_pairs", weighs_pairs},
    {"attention_backward_store", stores_dense},
    {"attention_backward_wgmma", attends_backward},
    {"attention_planes", attends},
    {"attention_wgmma", attends},
};

}  // namespace

std::span<const Kernel> attention_kernels() { return kAttentionKernels; }

}  // namespace tuff_test::reach
