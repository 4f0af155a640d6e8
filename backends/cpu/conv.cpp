// Convolutions by oneDNN's direct and GEMM-based algorithms, in f32. Winograd's is not used, even where a call allows
// it.
//
// Tensors are used where they are if oneDNN has a kernel for their layout (channels last: always); otherwise they are
// reordered into the layout that it prefers. Elements of 16 bits are converted to f32 first. Bias, residual and
// activation follow in one pass, with the same functions as elsewhere. conv_product.cpp has that pass, and the
// convolutions that are products of matrices.
#include <cstring>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cpu/conv.hpp"

namespace tuff_cpu {

using Descriptor = dnnl::memory::desc;

// Primitives by the call's sizes; the least recently used ones are dropped.
class ConvCache {
 public:
  struct Entry {
    dnnl::memory::desc input, filter, output;              // as the caller has them
    dnnl::memory::desc own_input, own_filter, own_output;  // as the primitive wants them
    dnnl::primitive primitive;
    dnnl::reorder in, weights, out;  // empty where both are the same
    Descriptor scratch;              // the largest of what they need while they run
  };

  template <typename Make>
  const Entry& get(const std::string& key, const Make& make) {
    if (const auto found = entries_.find(key); found != entries_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return found->second->second;
    }
    order_.emplace_front(key, make());
    try {
      entries_.emplace(key, order_.begin());
    } catch (...) {
      order_.pop_front();
      throw;
    }
    if (order_.size() > kMax) {
      entries_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

  // Memory of one layout of the primitive's own, which stays from call to call: fresh pages would take longer than what
  // is written to them.
  class Kept {
   public:
    // Of at least that many bytes; the contents are lost.
    void* get(uint64_t bytes) {
      if (bytes > size_) {
        size_ = 0;
        memory_ = Scratch<char>();
        memory_ = Scratch<char>(bytes);
        size_ = bytes;
      }
      return memory_.get();
    }
    void release_large() {
      constexpr uint64_t kMost = 64 << 20;
      if (size_ <= kMost) return;
      size_ = 0;
      memory_ = Scratch<char>();
    }

   private:
    uint64_t size_ = 0;
    Scratch<char> memory_;
  };

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  Kept input, filter, output, scratch;

 private:
  static constexpr size_t kMax = 256;
  using Order = std::list<std::pair<std::string, Entry>>;
  Order order_;
  std::unordered_map<std::string, Order::iterator> entries_;
};

namespace {

using Call = tuff_backend_conv;
using Dims = dnnl::memory::dims;
constexpr auto kF32 = dnnl::memory::data_type::f32;

// The first spatial axis that matters: oneDNN has faster kernels for fewer of them.
uint32_t first_axis(const Call& call) {
  const bool flat = call.in_shape[2] == 1 && call.filter_shape[2] == 1 && call.out_shape[2] == 1 &&
                    call.padding[0] == 0 && call.padding_end[0] == 0;
  return flat ? 1 : 0;
}

Dims spatial(const uint64_t* values, uint32_t first) {
  Dims dims;
  for (uint32_t i = first; i < 3; ++i) dims.push_back(static_cast<dnnl_dim_t>(values[i]));
  return dims;
}

Dims shape_of(const uint64_t* shape, uint32_t first) {
  Dims dims = spatial(shape + 2, first);
  dims.insert(dims.begin(), {static_cast<dnnl_dim_t>(shape[0]), static_cast<dnnl_dim_t>(shape[1])});
  return dims;
}

// Strides of a dense tensor whose axes are, from the outermost: outer, then channels and pixels or the reverse.
Dims strides_of(const Dims& dims, bool channels_last) {
  const size_t rank = dims.size();
  Dims strides(rank);
  dnnl_dim_t step = 1;
  if (channels_last) {
    strides[1] = step;
    step *= dims[1];
  }
  for (size_t i = rank; i-- > 2;) {
    strides[i] = step;
    step *= dims[i];
  }
  if (!channels_last) {
    strides[1] = step;
    step *= dims[1];
  }
  strides[0] = step;
  return strides;
}

Descriptor dense(const Dims& dims, bool channels_last) { return {dims, kF32, strides_of(dims, channels_last)}; }

// The filter as oneDNN names its axes: groups if there are several, outputs, inputs, taps.
Descriptor filter_of(const Call& call, uint32_t first) {
  Dims dims = shape_of(call.filter_shape, first);
  Dims strides = strides_of(dims, call.layout == TUFF_LAYOUT_NHWC);
  const auto groups = static_cast<dnnl_dim_t>(call.groups);
  if (call.transposed == 1) {  // [C][K / groups]: groups are along C
    const dnnl_dim_t inputs = dims[0] / groups, step = strides[0];
    dims[0] = dims[1];
    dims[1] = inputs;
    strides[0] = strides[1];
    strides[1] = step;
    if (groups > 1) {
      dims.insert(dims.begin(), groups);
      strides.insert(strides.begin(), inputs * step);
    }
    return {dims, kF32, strides};
  }
  if (groups > 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
    strides.insert(strides.begin(), dims[1] * strides[0]);
  }
  return {dims, kF32, strides};
}

// The taps beyond the input at the end of an axis of a transposed convolution.
bool end_padding(const Call& call, uint32_t first, Dims& end) {
  for (uint32_t i = first; i < 3; ++i) {
    const auto of = [&](const uint64_t* values, uint32_t at) { return static_cast<dnnl_dim_t>(values[at]); };
    const dnnl_dim_t reach = of(call.dilation, i) * (of(call.filter_shape, 2 + i) - 1) + 1;
    const dnnl_dim_t pixels = (of(call.in_shape, 2 + i) - 1) * of(call.stride, i) + reach;
    end.push_back(pixels - of(call.padding, i) - of(call.out_shape, 2 + i));
    if (end.back() < 0) return false;
  }
  return true;
}

template <typename Primitive, typename Primary>
void choose(ConvCache::Entry& entry, const dnnl::engine& engine, const Primary& primary, bool may_reorder) {
  const auto any = [](const Descriptor& like) { return Descriptor(like.dims(), kF32, dnnl::memory::format_tag::any); };
  using Primitives = typename Primitive::primitive_desc;
  // The memory that oneDNN itself has for this belongs to the thread that made the primitive, and calls come from any.
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto needs = [&](const Descriptor& scratch) {
    if (scratch.get_size() > entry.scratch.get_size()) entry.scratch = scratch;
  };
  const Primitives chosen(may_reorder ? primary(any(entry.input), any(entry.filter), any(entry.output))
                                      : primary(entry.input, any(entry.filter), entry.output),
                          attributes, engine);
  needs(chosen.scratchpad_desc());
  entry.own_input = chosen.src_desc();
  entry.own_filter = chosen.weights_desc();
  entry.own_output = chosen.dst_desc();
  entry.primitive = Primitive(chosen);
  const auto between = [&](const Descriptor& from, const Descriptor& to) {
    if (from == to) return dnnl::reorder();
    const dnnl::reorder::primitive_desc reorder(engine, from, engine, to, attributes);
    needs(reorder.scratchpad_desc());
    return dnnl::reorder(reorder);
  };
  entry.in = between(entry.input, entry.own_input);
  entry.weights = between(entry.filter, entry.own_filter);
  entry.out = between(entry.own_output, entry.output);
}

ConvCache::Entry make_entry(const Call& call, const dnnl::engine& engine) {
  using Forward = dnnl::convolution_forward;
  using Backward = dnnl::deconvolution_forward;
  constexpr auto kInference = dnnl::prop_kind::forward_inference;
  const uint32_t first = first_axis(call);
  const bool channels_last = call.layout == TUFF_LAYOUT_NHWC;
  ConvCache::Entry entry;
  entry.input = dense(shape_of(call.in_shape, first), channels_last);
  entry.output = dense(shape_of(call.out_shape, first), channels_last);
  entry.filter = filter_of(call, first);
  Dims dilation = spatial(call.dilation, first);
  for (auto& d : dilation) --d;
  const Dims stride = spatial(call.stride, first), begin = spatial(call.padding, first);
  if (call.transposed == 1) {
    Dims end;
    if (!end_padding(call, first, end)) throw dnnl::error(dnnl_unimplemented, "output padding beyond the last tap");
    choose<Backward>(
        entry, engine,
        [&](const Descriptor& in, const Descriptor& filter, const Descriptor& out) {
          return Backward::desc(kInference, dnnl::algorithm::deconvolution_direct, in, filter, out, stride, dilation,
                                begin, end);
        },
        !channels_last);
    return entry;
  }
  const Dims end = spatial(call.padding_end, first);
  choose<Forward>(
      entry, engine,
      [&](const Descriptor& in, const Descriptor& filter, const Descriptor& out) {
        return Forward::desc(kInference, dnnl::algorithm::convolution_direct, in, filter, out, stride, dilation, begin,
                             end);
      },
      !channels_last);
  return entry;
}

std::string key_of(const Call& call) {
  Call sizes = call;
  sizes.input = sizes.filter = sizes.output = sizes.bias = sizes.residual = 0;
  sizes.activation = sizes.dtype = sizes.precision = 0;
  return {reinterpret_cast<const char*>(&sizes), sizeof sizes};
}

// oneDNN counts elements and positions along an axis in 32 bits.
bool has_usual_sizes(const Call& call) {
  constexpr uint64_t kMaxElements = uint64_t{1} << 31, kMaxPixels = 1 << 22, kMaxReach = 1 << 15;
  for (uint32_t i = 0; i < 3; ++i) {
    if (std::max(call.in_shape[2 + i], call.out_shape[2 + i]) > kMaxPixels) return false;
    const uint64_t sizes[] = {call.stride[i], call.dilation[i], call.padding[i], call.padding_end[i],
                              call.filter_shape[2 + i]};
    if (*std::max_element(std::begin(sizes), std::end(sizes)) > kMaxReach) return false;
    if (call.dilation[i] * (call.filter_shape[2 + i] - 1) > kMaxReach) return false;
  }
  return elements(call.in_shape) < kMaxElements && elements(call.out_shape) < kMaxElements &&
         elements(call.filter_shape) < kMaxElements;
}

// False if oneDNN fails after it may have written to the output; what precedes that may throw. Primitives have the
// memory that they ask for (scratchpads), but some are products that allocate more while they run.
bool execute(ConvCache& cache, const Call& call, const float* input, const float* filter, float* output) {
  const ConvCache::Entry& entry = cache.get(key_of(call), [&] { return make_entry(call, cache.engine); });
  const auto memory = [&](const Descriptor& descriptor, const float* data) {
    return dnnl::memory(descriptor, cache.engine, const_cast<float*>(data));
  };
  // The primitive's own memory, where that is another.
  const auto own = [&](const dnnl::reorder& reorder, const Descriptor& descriptor, ConvCache::Kept& kept,
                       const dnnl::memory& user) {
    return reorder ? dnnl::memory(descriptor, cache.engine, kept.get(descriptor.get_size())) : user;
  };
  dnnl::memory in = memory(entry.input, input), weights = memory(entry.filter, filter),
               out = memory(entry.output, output);
  dnnl::memory own_in = own(entry.in, entry.own_input, cache.input, in),
                     own_weights = own(entry.weights, entry.own_filter, cache.filter, weights),
                     own_out = own(entry.out, entry.own_output, cache.output, out);
  const dnnl::memory scratch(entry.scratch, cache.engine, cache.scratch.get(entry.scratch.get_size()));
  const auto reorder = [&](const dnnl::primitive& primitive, const dnnl::memory& from, const dnnl::memory& to) {
    if (primitive) {
      primitive.execute(cache.stream, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, scratch}});
    }
  };
  bool writes = false;
  try {
    reorder(entry.in, in, own_in);
    reorder(entry.weights, weights, own_weights);
    writes = !entry.out;
    entry.primitive.execute(cache.stream, {{DNNL_ARG_SRC, own_in},
                                           {DNNL_ARG_WEIGHTS, own_weights},
                                           {DNNL_ARG_DST, own_out},
                                           {DNNL_ARG_SCRATCHPAD, scratch}});
    writes = true;
    reorder(entry.out, own_out, out);
    cache.stream.wait();
  } catch (...) {
    if (!writes) throw;
    return false;
  }
  return true;
}

}  // namespace

tuff_status convolution(Device& device, const Call& call) {
  const uint64_t inputs = elements(call.in_shape), outputs = elements(call.out_shape);
  if (!is_float(call.dtype) || inputs == 0 || elements(call.filter_shape) == 0) return TUFF_ERROR_UNSUPPORTED;
  if (!is_activation(call.activation)) return TUFF_ERROR_UNSUPPORTED;
  if (call.layout != TUFF_LAYOUT_NCHW && call.layout != TUFF_LAYOUT_NHWC) return TUFF_ERROR_UNSUPPORTED;
  if (!has_usual_sizes(call) && !is_product(call)) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  if (!onednn_available()) return TUFF_ERROR_UNSUPPORTED;
  // A primitive always runs with as many threads as it was made for, since the sizes decide.
  const double products = static_cast<double>(elements(call.filter_shape)) *
                          static_cast<double>(std::max(inputs / call.in_shape[1], outputs / call.out_shape[1]));
  const Threads threads(products < kFewProducts ? 1 : device.threads);
  const Widened input(call.input, call.dtype, inputs), filter(call.filter, call.dtype, elements(call.filter_shape));
  // A residual may be the output itself; otherwise they do not overlap.
  const bool in_place = call.dtype == TUFF_F32 && call.residual != call.output;
  const Scratch<float> copy = in_place ? Scratch<float>() : Scratch<float>(outputs);
  const ConvOperands operands{input.get(), filter.get(), in_place ? at<float>(call.output) : copy.get()};
  if (is_product(call)) {
    multiply_images(call, operands);
    return TUFF_OK;
  }
  if (device.convolutions == nullptr) device.convolutions = std::make_shared<ConvCache>();
  // Tuff computes the output anew. It needs no memory where the output has been written to, that is for f32.
  ConvCache& cache = *device.convolutions;
  const bool done = execute(cache, call, operands.input, operands.filter, operands.sums);
  for (ConvCache::Kept* kept : {&cache.input, &cache.filter, &cache.output, &cache.scratch}) kept->release_large();
  if (!done) return TUFF_ERROR_UNSUPPORTED;
  finish_images(call, operands.sums, 0, call.out_shape[0]);
  return TUFF_OK;
}

}  // namespace tuff_cpu
