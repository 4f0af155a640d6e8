// Views at any multiple of their element size work in every operation: the same call, with each operand at each offset
// from 0 to 20 bytes, gives the results of the host backend on aligned buffers, and writes nothing outside its output.
//
// Two tables of calls are used: that of the whole ABI (support/call_table.cpp), and one here of calls in f32 and f16
// whose sizes let kernels read or write several elements at once. Operations that have no row here are tested with such
// calls from their descriptions (fuzz/describe_*.cpp).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <string_view>

#include "fuzz/example.hpp"
#include "fuzz/numbers.hpp"
#include "support/call_table.hpp"
#include "support/sample.hpp"
#include "support/stored.hpp"

namespace tuff_test::semantics_views_test {
namespace {

constexpr uint64_t kOperands = kCallBuffers, kAround = 64;
constexpr unsigned char kGuard = 0x6b;

struct ViewCall {
  std::string name;
  int32_t dtype;  // of everything that is compared
  uint64_t operands;
  std::function<tuff_status(tuff_stream, const tuff_buffer*)> call;
  std::vector<uint64_t> indices = {};           // operands that hold u32 indices below 3
  const tuff_fuzz::Example* example = nullptr;  // where it is from, if it is not written here
  // The bytes of an operand's elements, of which its offsets are multiples.
  uint64_t unit(uint64_t operand) const {
    if (example != nullptr) return tuff_fuzz::size_of(example->buffers()[operand].dtype);
    const bool index = std::find(indices.begin(), indices.end(), operand) != indices.end();
    return index ? 4 : size_of(dtype);
  }
};

// Numbers for which all sums of products are exact in f32 and f16. They are valid variances and differ from their
// neighbours.
Bytes operand_bytes(const ViewCall& call, uint64_t operand, uint64_t bytes) {
  Bytes result(bytes);
  const bool indices = std::find(call.indices.begin(), call.indices.end(), operand) != call.indices.end();
  const int32_t dtype = indices ? static_cast<int32_t>(TUFF_U32) : call.dtype;
  Random random(operand + 1);
  for (uint64_t i = 0; i < bytes / size_of(dtype); ++i) {
    set_element(dtype, result, i, static_cast<double>(indices ? random.next() % 3 : 1 + random.next() % 4));
  }
  return result;
}

std::vector<Bytes> operands_of(const ViewCall& call, uint64_t bytes) {
  Random random(1);
  if (call.example != nullptr) {
    return call.example->contents(bytes, [&] { return static_cast<double>(1 + random.next() % 4); });
  }
  std::vector<Bytes> all;
  for (uint64_t i = 0; i < call.operands; ++i) all.push_back(operand_bytes(call, i, bytes));
  return all;
}

// The operands, each a view of `bytes` between guards.
class Operands {
 public:
  Operands(tuff_context context, const ViewCall& call, uint64_t bytes)
      : context_(context), bytes_(bytes), given_(operands_of(call, bytes)) {
    for (uint64_t i = 0; i < call.operands; ++i) whole_.emplace_back(context, bytes + 3 * kAround);
  }
  // Refills all operands at these offsets, makes the call, and reads everything back.
  std::vector<Bytes> run(const ViewCall& call, const std::array<uint64_t, kOperands>& offsets) {
    std::vector<Bytes> all(call.operands);
    std::array<tuff_buffer, kOperands> views{};
    std::vector<OwnBuffer> owned;
    for (uint64_t i = 0; i < call.operands; ++i) {
      all[i] = framed(given_[i], offsets[i]);
      EXPECT_OK(tuff_copy_htod(context_, whole_[i], 0, all[i].data(), all[i].size()));
      EXPECT_OK(tuff_view(whole_[i], kAround + offsets[i], bytes_, &views[i]));
      owned.emplace_back(views[i]);
    }
    EXPECT_OK(call.call(context_, views.data()));
    for (uint64_t i = 0; i < call.operands; ++i) {
      EXPECT_OK(tuff_copy_dtoh(context_, all[i].data(), whole_[i], 0, all[i].size()));
    }
    return all;
  }
  Bytes framed(const Bytes& middle, uint64_t offset) const {
    Bytes all(bytes_ + 3 * kAround, kGuard);
    std::copy(middle.begin(), middle.end(), all.begin() + static_cast<ptrdiff_t>(kAround + offset));
    return all;
  }
  Bytes middle(const Bytes& all, uint64_t offset) const {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(kAround + offset);
    return {begin, begin + static_cast<ptrdiff_t>(bytes_)};
  }
  const Bytes& given(uint64_t i) const { return given_[i]; }

 private:
  tuff_context context_;
  uint64_t bytes_;
  std::vector<Bytes> given_;
  std::vector<OwnBuffer> whole_;
};

class SemanticsViews : public OnBackend {
 protected:
  void sweep(const ViewCall& call, uint64_t bytes) {
    SCOPED_TRACE(call.name);
    const std::array<uint64_t, kOperands> aligned{};
    Operands reference(shared_context("host"), call, bytes), here(context(), call, bytes);
    std::vector<Bytes> wanted;
    for (const Bytes& all : reference.run(call, aligned)) wanted.push_back(reference.middle(all, 0));
    std::vector<std::array<uint64_t, kOperands>> tries = {aligned};
    for (uint64_t offset = size_of(call.dtype); offset <= 20; offset += size_of(call.dtype)) {
      std::array<uint64_t, kOperands> same{};
      for (uint64_t i = 0; i < call.operands; ++i) same[i] = (offset + call.unit(i) - 1) / call.unit(i) * call.unit(i);
      tries.push_back(same);
      for (uint64_t i = 0; i < call.operands; ++i) {
        std::array<uint64_t, kOperands> one{};
        one[i] = same[i];
        tries.push_back(one);
      }
    }
    for (const auto& offsets : tries) {
      const std::vector<Bytes> got = here.run(call, offsets);
      for (uint64_t i = 0; i < call.operands && !HasFailure(); ++i) {
        EXPECT_TRUE(agree(call, got[i], here.framed(wanted[i], offsets[i]), here.framed(here.given(i), offsets[i])))
            << "operand " << i << " at offsets " << testing::PrintToString(offsets);
      }
      if (HasFailure()) return;
    }
  }

 private:
  // Unwritten bytes must be unchanged. Written elements must match the host's up to rounding errors, relative to the
  // largest element: 40 roundings of f32 from sums of at most 32 terms and exp (4 ULP). Attention adds three roundings
  // of a score of at most 64 (16 products of numbers up to 4, a quarter of them), which exp turns into 3 * 64 * log2(e)
  // relative ones, in a numerator and in a denominator. All are below 1024 together, plus one rounding to the element
  // type on either side. The slope of a unit is what 1 - h^2 leaves, so gradients of recurrent layers are as exact as
  // the numbers that arrive, of about 1. Where a function has several right results, it may write other
  // numbers in the same places. They may happen to be those that were there: at most a sixteenth of them in an operand.
  static testing::AssertionResult agree(const ViewCall& call, const Bytes& got, const Bytes& wanted,
                                        const Bytes& before) {
    const int32_t dtype = call.dtype;
    const bool one_result = has_one_result(call.name);
    const uint64_t size = size_of(dtype);
    const double unit = unit_roundoff(dtype);
    double largest = std::string_view(call.name) == "tuff_rnn_backward" ? 1 : 0;
    for (uint64_t i = 0; i < got.size() / size; ++i) {
      if (std::memcmp(&wanted[i * size], &before[i * size], size) == 0) continue;
      const double value = std::fabs(element(dtype, wanted, i));
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    uint64_t written = 0, kept = 0;  // on the host; of these, left as they were here
    for (uint64_t i = 0; i < got.size() / size; ++i) {
      const bool by_host = std::memcmp(&wanted[i * size], &before[i * size], size) != 0;
      const bool here = std::memcmp(&got[i * size], &before[i * size], size) != 0;
      written += by_host;
      if (std::memcmp(&got[i * size], &wanted[i * size], size) == 0) continue;
      const double is = element(dtype, got, i), want = element(dtype, wanted, i);
      const bool guard = i * size < kAround || i * size >= got.size() - kAround;
      const bool close = std::fabs(is - want) <= 1024 * 0x1p-24 * largest + 2 * unit * std::fabs(want) ||
                         (std::isnan(is) && std::isnan(want));  // the bits of a NaN differ between devices
      if ((by_host || here) && !guard && close) continue;
      if (!one_result && by_host) {
        kept += !here;
        continue;
      }
      return testing::AssertionFailure() << "element " << i << " is " << is << ", and " << want << " on the host";
    }
    if (16 * kept <= written) return testing::AssertionSuccess();
    return testing::AssertionFailure() << kept << " of " << written << " elements were not written";
  }
};

TEST_P(SemanticsViews, EveryOperationOnMisalignedViews) {
  for (const BufferCall& row : buffer_calls()) {
    if (!row.has_stream) continue;
    // A device needs several kernels for each.
    if (vulkan() && !in_sample(std::string("views of ") + row.function, 3)) continue;
    sweep({row.function, TUFF_F32, row.buffers.size(), row.call, {}, row.example}, kCallBytes);
    if (HasFailure()) return;
  }
}

template <typename Desc>
Desc desc_of(int32_t dtype) {
  Desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = dtype;
  return desc;
}

template <size_t n>
void set(uint64_t (&to)[n], std::initializer_list<uint64_t> from) {
  std::copy(from.begin(), from.end(), to);
}

std::vector<ViewCall> wide_calls(int32_t t) {
  std::vector<ViewCall> all;
  const auto add = [&](const char* name, uint64_t operands, auto call, std::vector<uint64_t> indices = {}) {
    all.push_back({std::string(name) + " " + name_of(t), t, operands, call, std::move(indices)});
  };
  add("unary", 2,
      [t](tuff_stream s, const tuff_buffer* x) { return tuff_unary(s, t, TUFF_UNARY_NEG, x[0], x[1], 70); });
  add("binary", 3,
      [t](tuff_stream s, const tuff_buffer* x) { return tuff_binary(s, t, TUFF_BINARY_SUB, x[0], x[1], x[2], 70); });
  for (const int form : {0, 1, 2}) {  // a row, a column, and rows within rows
    add("broadcast", 3, [t, form](tuff_stream s, const tuff_buffer* x) {
      auto desc = desc_of<tuff_binary_desc>(t);
      desc.op = TUFF_BINARY_SUB, desc.a = x[0], desc.b = x[1], desc.output = x[2], desc.rank = 3;
      set(desc.a_shape, {3, 4, 32});
      if (form == 0) set(desc.b_shape, {1, 1, 32});
      if (form == 1) set(desc.b_shape, {3, 4, 1});
      if (form == 2) set(desc.b_shape, {3, 1, 32});
      return tuff_binary_ex(s, &desc);
    });
  }
  for (const uint32_t axis : {0, 1}) {
    for (const int32_t op : {TUFF_REDUCE_SUM, TUFF_REDUCE_MAX}) {
      add("reduce", 2, [t, axis, op](tuff_stream s, const tuff_buffer* x) {
        const uint64_t shape[2] = {16, 16};
        return tuff_reduce(s, t, op, x[0], x[1], shape, 2, axis);
      });
    }
    add("cumsum", 2, [t, axis](tuff_stream s, const tuff_buffer* x) {
      auto desc = desc_of<tuff_scan_desc>(t);
      desc.input = x[0], desc.output = x[1], desc.rank = 2, desc.axis = axis;
      set(desc.shape, {16, 16});
      return tuff_cumsum(s, &desc);
    });
    add("softmax", 3, [t, axis](tuff_stream s, const tuff_buffer* x) {
      auto desc = desc_of<tuff_softmax_desc>(t);
      desc.input = x[0], desc.output = x[1], desc.mask = x[2], desc.mask_type = t;
      set(desc.shape, {16, 16}), desc.rank = 2, desc.axis = axis;
      return tuff_softmax_ex(s, &desc);
    });
    add("permute", 2, [t, axis](tuff_stream s, const tuff_buffer* x) {
      const uint64_t shape[3] = {2, 16, 24};
      const uint32_t order[3] = {axis == 0 ? 0u : 1u, axis == 0 ? 2u : 0u, axis == 0 ? 1u : 2u};
      return tuff_permute(s, t, x[0], x[1], shape, 3, order);
    });
  }
  add("layer_norm", 6, [t](tuff_stream s, const tuff_buffer* x) {
    auto desc = desc_of<tuff_layer_norm_desc>(t);
    desc.input = x[0], desc.residual = x[1], desc.weight = x[2], desc.bias = x[3], desc.output = x[4], desc.sum = x[5];
    desc.rows = 5, desc.cols = 32, desc.epsilon = 1;
    return tuff_layer_norm_ex(s, &desc);
  });
  add("group_norm", 4, [t](tuff_stream s, const tuff_buffer* x) {
    return tuff_group_norm(s, t, x[0], x[1], x[2], x[3], 2, 4, 8, 2, 1.0);
  });
  for (const uint64_t inner : {1, 8}) {
    add("batch_norm", 6, [t, inner](tuff_stream s, const tuff_buffer* x) {
      return tuff_batch_norm(s, t, x[0], x[1], x[2], x[3], x[4], x[5], 2, 16, inner, 1.0);
    });
  }
  for (const bool maximum : {false, true}) {
    add("pool", 2, [t, maximum](tuff_stream s, const tuff_buffer* x) {
      auto desc = desc_of<tuff_pool_desc>(t);
      desc.input = x[0], desc.output = x[1], desc.batch = 1, desc.channels = 2, desc.spatial = 2;
      set(desc.in_shape, {8, 16}), set(desc.out_shape, {4, 8}), set(desc.kernel, {2, 2});
      return maximum ? tuff_max_pool(s, &desc) : tuff_avg_pool(s, &desc);
    });
  }
  for (const int32_t layout : {TUFF_LAYOUT_NCHW, TUFF_LAYOUT_NHWC}) {
    add("resize", 2, [t, layout](tuff_stream s, const tuff_buffer* x) {
      auto desc = desc_of<tuff_resize_desc>(t);
      desc.input = x[0], desc.output = x[1], desc.batch = 1, desc.channels = 8, desc.spatial = 2;
      desc.mode = TUFF_RESIZE_LINEAR, desc.layout = layout;
      set(desc.in_shape, {2, 4}), set(desc.out_shape, {4, 8});
      return tuff_resize(s, &desc);
    });
    for (const uint64_t groups : {1, 2, 8}) {
      add("conv2d", 5, [t, layout, groups](tuff_stream s, const tuff_buffer* x) {
        auto desc = desc_of<tuff_conv2d_desc>(t);
        desc.input = x[0], desc.filter = x[1], desc.bias = x[2], desc.residual = x[3], desc.output = x[4];
        desc.layout = layout, desc.groups = groups;
        set(desc.in_shape, {1, 8, 4, 5}), set(desc.filter_shape, {8, 8 / groups, 2, 2}),
            set(desc.out_shape, {1, 8, 3, 4});
        return tuff_conv2d_ex(s, &desc);
      });
    }
    add("conv2d 1x1", 3, [t, layout](tuff_stream s, const tuff_buffer* x) {
      auto desc = desc_of<tuff_conv2d_desc>(t);
      desc.input = x[0], desc.filter = x[1], desc.output = x[2];
      desc.layout = layout;
      set(desc.in_shape, {1, 8, 6, 8}), set(desc.filter_shape, {8, 8, 1, 1}), set(desc.out_shape, {1, 8, 6, 8});
      return tuff_conv2d_ex(s, &desc);
    });
    add("conv_transpose2d", 3, [t, layout](tuff_stream s, const tuff_buffer* x) {
      auto desc = desc_of<tuff_conv_transpose2d_desc>(t);
      desc.input = x[0], desc.filter = x[1], desc.output = x[2];
      desc.layout = layout;
      set(desc.in_shape, {1, 8, 3, 3}), set(desc.filter_shape, {8, 4, 2, 2}), set(desc.out_shape, {1, 4, 6, 6});
      set(desc.stride, {2, 2});
      return tuff_conv_transpose2d_ex(s, &desc);
    });
  }
  for (const int32_t interleaved : {0, 1}) {
    add("rope", 2, [t, interleaved](tuff_stream s, const tuff_buffer* x) {
      auto desc = desc_of<tuff_rope_desc>(t);
      desc.input = x[0], desc.output = x[1], desc.interleaved = interleaved;
      desc.batch = 1, desc.heads = 2, desc.seq = 4, desc.head_dim = 16;
      return tuff_rope_ex(s, &desc);
    });
  }
  for (const int32_t ta : {TUFF_NO_TRANS, TUFF_TRANS}) {
    for (const int32_t tb : {TUFF_NO_TRANS, TUFF_TRANS}) {
      add("gemm", 3, [t, ta, tb](tuff_stream s, const tuff_buffer* x) {
        return tuff_gemm(s, t, ta, tb, 16, 16, 16, 1, x[0], 16, x[1], 16, 1, x[2], 16);
      });
    }
    add("gemm of a vector", 3, [t, ta](tuff_stream s, const tuff_buffer* x) {
      return tuff_gemm(s, t, ta, TUFF_NO_TRANS, 16, 1, 16, 1, x[0], 16, x[1], 1, 0, x[2], 1);
    });
  }
  add("batched_gemm", 3, [t](tuff_stream s, const tuff_buffer* x) {
    return tuff_batched_gemm(s, t, TUFF_NO_TRANS, TUFF_NO_TRANS, 4, 8, 8, 1, x[0], 8, 32, x[1], 8, 64, 0, x[2], 8, 32,
                             3);
  });
  for (const uint64_t queries : {1, 5}) {
    add("attention", 4, [t, queries](tuff_stream s, const tuff_buffer* x) {
      auto desc = desc_of<tuff_attention_desc>(t);
      desc.q = x[0], desc.k = x[1], desc.v = x[2], desc.o = x[3];
      desc.batch = 1, desc.heads = 4, desc.kv_heads = 1, desc.seq_q = queries, desc.seq_kv = 9, desc.head_dim = 16;
      return tuff_attention_ex(s, &desc);
    });
  }
  add("gather", 3,
      [t](tuff_stream s, const tuff_buffer* x) {
        const uint64_t shape[2] = {3, 32};
        return tuff_gather(s, t, TUFF_U32, x[0], x[1], x[2], shape, 2, 0, 7);
      },
      {1});
  return all;
}

// Calls from descriptions: all operands have multiples of 16 elements, and the last extent of each array of sizes is a
// multiple of 8, as far as the operation's other rules allow.
std::vector<ViewCall> described_calls(int32_t t, const std::vector<ViewCall>& written) {
  std::set<std::string_view> written_here;
  for (const tuff_fuzz::Description& description : tuff_fuzz::descriptions()) {
    const std::string_view function = description.function;
    const bool found = std::any_of(written.begin(), written.end(), [&](const ViewCall& call) {
      const std::string name = "tuff_" + call.name.substr(0, call.name.find(' '));
      return function == name || function == name + "_ex" || function.ends_with(name.substr(4));
    });
    if (found) written_here.insert(function);
  }
  const auto worth = [&](const tuff_fuzz::Draft& draft) {
    if (written_here.contains(draft.call.function().name) || draft.operands.size() > kOperands) {
      return tuff_fuzz::kUnusable;
    }
    double wide = 0;
    bool typed = false;
    for (const tuff_fuzz::Operand& operand : draft.operands) {
      // Integers are indices, offsets, quantised numbers and the like.
      const bool integers = tuff_fuzz::spacing(operand.dtype, 1) == 0;
      typed = typed || operand.dtype == t;
      if ((operand.dtype != t && !integers) || operand.elements == 0) return tuff_fuzz::kUnusable;
      if (operand.elements * size_of(operand.dtype) > kCallBytes) return tuff_fuzz::kUnusable;
      wide += operand.elements % 16 == 0;
    }
    if (!typed) return tuff_fuzz::kUnusable;
    const std::span<const tuff_fuzz::Place> places = draft.call.function().places;
    for (size_t i = 0; i < places.size(); ++i) {
      const tuff_fuzz::Slot& slot = draft.call.slot(i);
      uint64_t last = 0;
      for (size_t j = 0; j < slot.count; ++j) {
        if (draft.call.value(i, j) != 0) last = draft.call.value(i, j);
      }
      if (slot.count > 1 && places[i].kind == tuff_fuzz::Kind::number && last % 8 == 0) ++wide;
    }
    return 10 * wide + plainness(draft);
  };
  static std::vector<tuff_fuzz::Example> examples;  // which the calls refer to
  examples = tuff_fuzz::best_examples(worth);
  std::vector<ViewCall> all;
  for (const tuff_fuzz::Example& example : examples) {
    ViewCall call{std::string(example.function()) + " " + name_of(t), t, example.buffers().size(),
                  [&example](tuff_stream s, const tuff_buffer* x) { return example.call(s, x); }};
    call.example = &example;
    all.push_back(std::move(call));
  }
  return all;
}

TEST_P(SemanticsViews, WideAccessesOfDescribedCalls) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16}) {
    const std::vector<ViewCall> calls = described_calls(dtype, wide_calls(dtype));
    EXPECT_GE(calls.size(), 5u);
    for (const ViewCall& call : calls) {
      // Offsets that cancelled each other out were a defect of these two.
      const bool always = call.name.starts_with("tuff_slice") || call.name.starts_with("tuff_concat");
      if (vulkan() && !always && !in_sample(call.name, 6)) continue;
      sweep(call, kCallBytes);
      if (HasFailure()) return;
    }
  }
}

TEST_P(SemanticsViews, WideAccessesOnMisalignedViews) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16}) {
    size_t number = 0;
    for (const ViewCall& call : wide_calls(dtype)) {
      if (vulkan() && !in_sample(call.name + std::to_string(number++), 6)) continue;
      sweep(call, kCallBytes);
      if (HasFailure()) return;
    }
  }
}
TUFF_ON_BACKENDS(SemanticsViews);

}  // namespace
}  // namespace tuff_test::semantics_views_test
