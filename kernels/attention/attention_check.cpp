// Checks the arguments of attention.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "kernels/attention/attention_check.hpp"
#include "kernels/common/check.hpp"
#include "kernels/quant/quant.hpp"

namespace tuff {
namespace attention {
namespace {

constexpr uint64_t kMaxHeadDim = 1024;  // so that one step of keys stays below kMaxLoopIterationsCpu

}  // namespace

void complete(AttentionStrides& strides, const Extents& extents, std::string_view name) {
  if (strides.row == 0) strides.row = extents.length;
  if (strides.head == 0) strides.head = checked_mul(extents.rows, strides.row, name);
  if (strides.batch == 0) strides.batch = checked_mul(extents.heads, strides.head, name);
}

uint64_t footprint(const AttentionStrides& strides, const Extents& extents, std::string_view name) {
  uint64_t end = extents.length;
  end = checked_add(end, checked_mul(extents.batch - 1, strides.batch, name), name);
  end = checked_add(end, checked_mul(extents.heads - 1, strides.head, name), name);
  return checked_add(end, checked_mul(extents.rows - 1, strides.row, name), name);
}

// In ascending order, each stride is at least the range that the smaller ones cover.
void check_apart(const AttentionStrides& strides, const Extents& extents, std::string_view name) {
  struct Step {
    uint64_t stride, count;
  };
  std::array<Step, 3> steps{
      {{strides.batch, extents.batch}, {strides.head, extents.heads}, {strides.row, extents.rows}}};
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.stride < b.stride; });
  uint64_t reach = extents.length;
  for (const Step& step : steps) {
    if (step.count == 1) continue;
    require(step.stride >= reach, "{}_strides are {}, {} and {}: rows of {} overlap", name, strides.batch, strides.head,
            strides.row, name);
    reach += (step.count - 1) * step.stride;
  }
}

void check_options(const AttentionArgs& args) {
  require(
      args.causal == TUFF_CAUSAL_NONE || args.causal == TUFF_CAUSAL_TOP_LEFT || args.causal == TUFF_CAUSAL_BOTTOM_RIGHT,
      "causal is {}, must be TUFF_CAUSAL_NONE, TUFF_CAUSAL_TOP_LEFT or TUFF_CAUSAL_BOTTOM_RIGHT", args.causal);
  // Checked first, because the default scale is computed from it.
  require(args.head_dim > 0, "head_dim is 0, needs at least 1");
  // The kernels scale in f32, where 1e300 is infinite and 1e-300 zero.
  const float scale = static_cast<float>(args.scale), softcap = static_cast<float>(args.softcap);
  require(std::isfinite(scale) && scale > 0, "scale is {}, must be finite and positive in f32", args.scale);
  require(args.softcap == 0 || (std::isnormal(softcap) && softcap > 0),
          "softcap is {}, must be finite and positive in f32, or 0", args.softcap);
  require(args.seq_q > 0, "seq_q is 0, needs at least 1");
  require(args.seq_kv > 0, "seq_kv is 0, needs at least 1");
  for (const auto& [dim, name] : {std::pair{args.head_dim, "head_dim"}, {args.head_dim_v, "head_dim_v"}}) {
    if (dim > kMaxHeadDim)
      fail(TUFF_ERROR_UNSUPPORTED, "{} is {}, this version supports at most {}", name, dim, kMaxHeadDim);
  }
  require(args.bias_type == args.dtype || args.bias_type == TUFF_F32, "bias_type is {}, needs dtype or TUFF_F32",
          args.bias_type);
  require(args.bias != nullptr || args.bias_type == args.dtype, "bias is TUFF_NULL_HANDLE, and bias_type is set");
}

void check_lengths(const AttentionArgs& args) {
  for (const auto& [lengths, name] : {std::pair{args.q_lengths, "q_lengths"}, {args.kv_lengths, "kv_lengths"}}) {
    if (lengths == nullptr) continue;
    check_operand(lengths, name, args.batch, TUFF_I32, [&] { return fmt::format("batch={}", args.batch); });
  }
}

int32_t stored_as(int32_t dtype, int32_t format, int32_t type, std::string_view name) {
  if (format != 0) {
    require(type == 0, "{0}_type is {1}, needs 0 beside a {0}_format", name, type);
    const quant::Format& known = quant::format_of(format, fmt::format("{}_format", name));
    if (!in_blocks(format)) {
      fail(TUFF_ERROR_UNSUPPORTED, "{}_format is {}, this version supports q4_0 and q8_0", name, known.name);
    }
    return format;
  }
  if (type == 0 || type == dtype) return 0;
  check_known_type(type, fmt::format("{}_type", name));
  if (type != TUFF_F8_E4M3 && type != TUFF_F8_E5M2) {
    fail(TUFF_ERROR_UNSUPPORTED, "{}_type is {}, this version supports dtype and 8-bit floats", name, dtype_name(type));
  }
  return type;
}

namespace {

// For a tensor that is quantised: whole blocks, and scales where they are allowed.
void check_stored(const AttentionStrides& strides, uint64_t length, int32_t stored, const Buffer* scales,
                  std::string_view name) {
  require(scales == nullptr || (stored != 0 && !in_blocks(stored)),
          "{0}_scales are given, and {0} does not consist of 8-bit floats", name);
  if (!in_blocks(stored)) return;
  require(length % kStoredBlock == 0, "{} is {}, blocks of {} have {} numbers", name == "k" ? "head_dim" : "head_dim_v",
          length, quant::format_of(stored).name, kStoredBlock);
  for (const uint64_t stride : {strides.batch, strides.head, strides.row}) {
    require(stride % kStoredBlock == 0, "{}_strides are {}, {} and {}, need multiples of {}: {} consists of blocks",
            name, strides.batch, strides.head, strides.row, kStoredBlock, name);
  }
}

// The elements of the scales, checked; 0: there are none.
uint64_t check_scales(const Buffer* scales, const AttentionStrides& strides, const AttentionArgs& args,
                      const char* name) {
  if (scales == nullptr) return 0;
  const uint64_t elements = footprint(strides, {args.batch, args.kv_heads, args.seq_kv, 1}, name);
  check_operand(scales, name, elements, TUFF_F32, [&] {
    return fmt::format("batch={} kv_heads={} seq_kv={} strides {}, {}, {}", args.batch, args.kv_heads, args.seq_kv,
                       strides.batch, strides.head, strides.row);
  });
  return elements;
}

}  // namespace
}  // namespace attention

uint64_t AttentionArgs::bytes_of(int32_t stored, uint64_t numbers) const {
  if (attention::in_blocks(stored)) return quant::stored_bytes(quant::format_of(stored), numbers);
  return numbers * dtype_size(stored == 0 ? dtype : stored);
}

void complete_attention(AttentionArgs& args, bool default_scale) {
  if (args.kv_heads == 0) args.kv_heads = args.heads;
  if (args.head_dim_v == 0) args.head_dim_v = args.head_dim;
  if (args.bias_type == 0) args.bias_type = args.dtype;
  // head_dim 0 is left for the check.
  if (default_scale && args.scale == 0 && args.head_dim != 0) {
    args.scale = 1 / std::sqrt(static_cast<double>(args.head_dim));
  }
  const attention::TensorExtents of(args);
  attention::complete(args.q_strides, of.q, "q");
  attention::complete(args.k_strides, of.k, "k");
  attention::complete(args.v_strides, of.v, "v");
  attention::complete(args.o_strides, of.o, "o");
}

void check_attention(const AttentionArgs& args) {
  check_float_type(args.dtype);
  attention::check_options(args);
  if (args.batch == 0 || args.heads == 0) return;
  require(args.heads % args.kv_heads == 0, "kv_heads is {}, needs a divisor of heads={}", args.kv_heads, args.heads);

  struct Tensor {
    const Buffer* buffer;
    const char* name;
    const char* sequence;
    const AttentionStrides& strides;
    attention::Extents extents;
    int32_t dtype;
    int32_t stored = 0;
    bool blocks() const { return attention::in_blocks(stored); }
    // What its bytes are counted in.
    int32_t unit() const { return blocks() ? int32_t{TUFF_U16} : stored != 0 ? stored : dtype; }
  };
  const attention::TensorExtents of(args);
  const Tensor tensors[] = {
      {args.q, "q", "seq_q", args.q_strides, of.q, args.dtype},
      {args.k, "k", "seq_kv", args.k_strides, of.k, args.dtype, args.k_stored.as},
      {args.v, "v", "seq_kv", args.v_strides, of.v, args.dtype, args.v_stored.as},
      {args.o, "o", "seq_q", args.o_strides, of.o, args.dtype},
      {args.bias, "bias", "seq_q", args.bias_strides, of.scores, args.bias_type},
      {args.mask, "mask", "seq_q", args.mask_strides, of.scores, TUFF_U8},
  };
  attention::check_stored(args.k_strides, args.head_dim, args.k_stored.as, args.k_stored.scales, "k");
  attention::check_stored(args.v_strides, args.head_dim_v, args.v_stored.as, args.v_stored.scales, "v");
  // All operands are measured before any is checked, so that overflows are reported first.
  std::array<uint64_t, std::size(tensors)> elements{};
  for (size_t i = 0; i < elements.size(); ++i) {
    const bool optional = i >= 4;
    if (!optional || tensors[i].buffer != nullptr)
      elements[i] = attention::footprint(tensors[i].strides, tensors[i].extents, tensors[i].name);
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& t = tensors[i];
    if (t.blocks()) elements[i] = args.bytes_of(t.stored, elements[i]) / 2;
    check_operand(t.buffer, t.name, elements[i], t.unit(), [&] {
      return fmt::format("batch={} heads={} {}={} {}={} strides {}, {}, {}", t.extents.batch, t.extents.heads,
                         t.sequence, t.extents.rows,
                         i == 0 || i == 1 ? "head_dim"
                         : i < 4          ? "head_dim_v"
                                          : "seq_kv",
                         t.extents.length, t.strides.batch, t.strides.head, t.strides.row);
    });
  }
  const uint64_t rows[] = {args.batch, args.heads, args.seq_q},
                 lse = args.lse == nullptr ? 0 : checked_product(rows, "lse");
  check_operand(args.lse, "lse", lse, TUFF_F32,
                [&] { return fmt::format("batch={} heads={} seq_q={}", args.batch, args.heads, args.seq_q); });
  attention::check_lengths(args);
  const uint64_t k_scales =
                     attention::check_scales(args.k_stored.scales, args.k_stored.scale_strides, args, "k_scales"),
                 v_scales =
                     attention::check_scales(args.v_stored.scales, args.v_stored.scale_strides, args, "v_scales");
  attention::check_apart(args.o_strides, tensors[3].extents, "o");
  // The operands hold this many bytes, so the multiplications below cannot overflow.
  const uint64_t o_bytes = elements[3] * dtype_size(args.dtype), lse_bytes = lse * 4;
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& t = tensors[i];
    const uint64_t bytes = elements[i] * dtype_size(t.unit());
    if (i != 3) check_overlap(args.o, "o", o_bytes, t.buffer, t.name, bytes, false);
    check_overlap(args.lse, "lse", lse_bytes, t.buffer, t.name, bytes, false);
  }
  struct Numbers {
    const Buffer* buffer;
    const char* name;
    uint64_t count;
  };
  for (const Numbers& numbers : {Numbers{args.q_lengths, "q_lengths", args.batch},
                                 {args.kv_lengths, "kv_lengths", args.batch},
                                 {args.k_stored.scales, "k_scales", k_scales},
                                 {args.v_stored.scales, "v_scales", v_scales}}) {
    check_overlap(args.o, "o", o_bytes, numbers.buffer, numbers.name, numbers.count * 4, false);
    check_overlap(args.lse, "lse", lse_bytes, numbers.buffer, numbers.name, numbers.count * 4, false);
  }
}

}  // namespace tuff
