// Many rows with keys and values that are quantised, on devices with matrix units: both are dequantised to scratch
// memory, in the type of q, and computed as others. What that takes is little beside the products, for which the
// kernels that dequantise on the way have no matrix units.
#include "kernels/attention/attention_plan.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "kernels/quant/quant.hpp"
#include "kernels/shape/shape.hpp"
#include "planning/log.hpp"

namespace tuff::attention {
namespace {

constexpr std::string_view kVariant = "dequantised_first";
constexpr uint64_t kMaxScratch = uint64_t{1} << 30;

// Their places stay as they are: what is between rows is dequantised too.
void record_numbers(Recorder& recorder, int32_t stored, const Buffer& from, int32_t dtype, uint64_t count,
                    const Buffer& to) {
  if (!in_blocks(stored)) {
    record_cast(recorder, {.from = stored, .to = dtype, .input = &from, .output = &to, .n = count});
    return;
  }
  QuantArgs numbers{};
  numbers.format = stored, numbers.dtype = dtype, numbers.granularity = TUFF_QUANT_PER_TENSOR;
  numbers.quantised = &from, numbers.values = &to;
  numbers.shape = &count, numbers.rank = 1;
  record_dequantize(recorder, numbers);
}

}  // namespace

bool is_dequantised_variant(std::string_view name) { return name == kVariant; }

bool record_dequantised(Recorder& recorder, const AttentionArgs& args, std::string_view forced) {
  const DeviceTraits& traits = recorder.traits();
  if (!args.quantised() || (!forced.empty() && !is_dequantised_variant(forced))) return false;
  if (forced.empty() && (traits.cpu || args.seq_q < kManyRows)) return false;
  if (args.k_stored.scales != nullptr || args.v_stored.scales != nullptr) return false;
  const uint64_t size = dtype_size(args.dtype);
  ScratchLayout layout;
  const uint64_t k_bytes = args.k_stored.as == 0 ? 0 : args.k_elements() * size;
  const uint64_t v_bytes = args.v_stored.as == 0 ? 0 : args.v_elements() * size;
  const uint64_t k_at = layout.add(k_bytes), v_at = layout.add(v_bytes);
  if (layout.bytes() > kMaxScratch) return false;
  AttentionArgs plain = args;
  plain.k_stored = {}, plain.v_stored = {};
  Buffer k = *args.k, v = *args.v;
  plain.k = &k, plain.v = &v;
  if (k_bytes != 0) k.offset = 0;  // parts of scratch memory are aligned
  if (v_bytes != 0) v.offset = 0;
  if (forced.empty() && !multiplies(traits, Call(traits, plain, 0))) return false;

  const Buffer memory = recorder.scratch(layout.bytes(), Scratch::outer);
  if (k_bytes != 0) {
    k = part_of(memory, k_at, k_bytes);
    record_numbers(recorder, args.k_stored.as, *args.k, args.dtype, args.k_elements(), k);
  }
  if (v_bytes != 0) {
    v = part_of(memory, v_at, v_bytes);
    record_numbers(recorder, args.v_stored.as, *args.v, args.dtype, args.v_elements(), v);
  }
  log(TUFF_LOG_DISPATCH, "attention {} {} heads={} seq_q={} seq_kv={} head_dim={}", kVariant, dtype_name(args.dtype),
      args.batch * args.heads, args.seq_q, args.seq_kv, args.head_dim);
  record_attention(recorder, plain);
  return true;
}

}  // namespace tuff::attention
