// Convolutions, pooling and resizing.
#include <algorithm>
#include <bit>
#include <cmath>

#include "fuzz/draft.hpp"
#include "fuzz/epilogue.hpp"
#include "fuzz/numbers.hpp"
#include "support/bounds.hpp"

namespace tuff_fuzz {
namespace {

using tuff_test::gamma;

struct Window {
  std::vector<uint64_t> in, taps, out, stride, dilation, padding, padding_end;
};

// Draws windows over `axes` axes that fit the padded input.
Window draw_window(Draft& d, size_t axes, bool dilated, bool asymmetric, uint64_t most) {
  Window w;
  const bool same = d.shape.one_in(3), three = d.shape.one_in(3);
  Draw& draw = d.loose();
  // Half of the windows whose sizes a test sets are of those for which there are kernels of their own.
  const bool common = d.extents != nullptr && d.free.one_in(2);
  for (size_t i = 0; i < axes; ++i) {
    uint64_t taps = three ? 3 : d.extent(draw.between(1, 4), 1, 4);
    if (common && !three && !d.sweeps()) taps = d.free.of<uint64_t>({1, 1, 3, 3, 5, 7});
    const uint64_t stride = same ? 1 : draw.between(1, 3);
    const uint64_t dilation = dilated && !common && draw.one_in(2) ? draw.between(1, 3) : 1;
    const uint64_t span = dilation * (taps - 1) + 1;
    const uint64_t padding = draw.one_in(2) ? span / 2 : draw.below(3);
    const uint64_t end = asymmetric ? draw.below(3) : padding;
    const uint64_t least = span > padding + end ? span - padding - end : 1;
    const uint64_t in = std::max(least, d.extent(draw.between(1, most), 1));
    w.in.push_back(in), w.taps.push_back(taps), w.stride.push_back(stride), w.dilation.push_back(dilation);
    w.padding.push_back(padding), w.padding_end.push_back(end);
    w.out.push_back((in + padding + end - span) / stride + 1);
  }
  return w;
}

std::vector<uint64_t> shape_of(uint64_t first, uint64_t second, const std::vector<uint64_t>& rest) {
  std::vector<uint64_t> shape = {first, second};
  shape.insert(shape.end(), rest.begin(), rest.end());
  return shape;
}

// The inputs and error bounds of sums of integers, plus bias and residual, and the activation's error.
void finish_sums(Draft& d, Epilogue epilogue, uint64_t terms, bool winograd) {
  for (Operand& operand : d.operands) {
    if (!operand.written) continue;
    operand.allowed = epilogue.allowed(operand.dtype);
    if (winograd) {
      // The transforms of 6 x 6 tiles magnify inputs by at most 10 on each of two axes, filters not at all, and
      // outputs by 18 on each: 32,400 in all. That applies to an error of gamma of the roundings in the sum and the
      // transforms. An activation's slope is at most 1.13.
      const int32_t dtype = operand.dtype;
      const double size = 32400 * 1.2 * gamma(static_cast<double>(terms) + 40) * static_cast<double>(terms);
      operand.allowed = [&d, dtype, size](uint64_t, double y) {
        return size * d.of("input").seen.most * d.of("filter").seen.most + rounded(dtype, 16, y) +
               spacing(dtype, std::fabs(y) + 64);
      };
    }
  }
  d.suits = [&d, terms] {
    double added = 0;
    for (const Operand& operand : d.operands) {
      if (!operand.read || operand.elements == 0) continue;
      if (!operand.seen.integral) return false;
      const std::string_view name = operand.name;
      if (name == "bias" || name == "residual") added += operand.seen.most;
    }
    return d.of("input").seen.most * d.of("filter").seen.most * static_cast<double>(terms) + added < 0x1p22;
  };
}

Epilogue draw_epilogue(Draft& d, int32_t dtype, uint64_t filters, uint64_t results, bool used) {
  Epilogue epilogue;
  if (!d.has("activation")) return epilogue;
  if (d.shape.one_in(2)) d.set("activation", epilogue.activation = static_cast<int32_t>(d.shape.below(6)));
  if (d.shape.one_in(2)) d.input("bias", dtype, used ? filters : 0);
  if (d.has("residual") && used && d.shape.one_in(3)) {
    d.input("residual", dtype, results);
    if (d.free.one_in(2)) d.operands[static_cast<size_t>(d.index_of("output"))].same = d.index_of("residual");
  }
  return epilogue;
}

void draw_conv(Draft& d, size_t axes) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw);
  const bool desc = d.has("groups");
  const bool asymmetric = desc && draw.one_in(4);
  const Window w = draw_window(d, axes, desc, asymmetric, axes == 1 ? 40 : axes == 2 ? 9 : 5);
  const uint64_t groups = !desc || draw.one_in(2) ? 1 : d.extent(draw.between(1, 4), 1, 4);
  const uint64_t each = draw.one_in(3) ? 1 : d.extent(draw.between(1, 4), 1), channels = groups * each;
  const uint64_t filters = groups * d.extent(draw.between(1, 4), 1), batch = d.extent(draw_size(draw, 3), 0, 3);
  d.set("dtype", dtype);
  const std::vector<uint64_t> in = shape_of(batch, channels, w.in), filter = shape_of(filters, each, w.taps),
                              out = shape_of(batch, filters, w.out);
  d.list("in_shape", in), d.list("filter_shape", filter), d.list("out_shape", out);
  if (axes == 1 && !desc) {
    d.set("stride", w.stride[0]), d.set("padding", w.padding[0]);
  } else {
    d.list("stride", w.stride), d.list("padding", w.padding);
  }
  bool winograd = false;
  if (desc) {
    d.list("dilation", w.dilation);
    d.set("groups", groups);
    d.set("layout", static_cast<int32_t>(draw.below(2)));
    d.set("asymmetric", int32_t{asymmetric});
    if (asymmetric) d.list("padding_end", w.padding_end);
    winograd = d.has("precision") && draw.one_in(3);
    if (winograd) d.set("precision", TUFF_PRECISION_ALLOW_WINOGRAD);
  }
  const bool used = batch != 0;
  d.input("input", dtype, product(in), d.free.one_in(2) ? Fill::positive : Fill::integers);
  d.input("filter", dtype, used ? product(filter) : 0);
  d.output("output", dtype, product(out));
  const Epilogue epilogue = draw_epilogue(d, dtype, filters, product(out), used);
  finish_sums(d, epilogue, each * product(w.taps), winograd);
}

// Gradients: of whole numbers, whose sums are exact.
void draw_conv_backward(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw);
  const size_t axes = draw.between(1, 3);
  const bool data = std::string_view(d.call.function().name) == "tuff_conv_backward_data", asymmetric = draw.one_in(4);
  const Window w = draw_window(d, axes, true, asymmetric, axes == 1 ? 40 : axes == 2 ? 9 : 5);
  const uint64_t groups = draw.one_in(2) ? 1 : d.extent(draw.between(1, 4), 1, 4);
  const uint64_t each = draw.one_in(3) ? 1 : d.extent(draw.between(1, 4), 1), channels = groups * each;
  const uint64_t filters = groups * d.extent(draw.between(1, 4), 1), batch = d.extent(draw_size(draw, 3), 0, 3);
  const std::vector<uint64_t> in = shape_of(batch, channels, w.in), filter = shape_of(filters, each, w.taps),
                              out = shape_of(batch, filters, w.out);
  d.set("dtype", dtype), d.set("spatial", axes), d.set("groups", groups);
  d.set("layout", static_cast<int32_t>(draw.below(2)));
  d.list("in_shape", in), d.list("filter_shape", filter), d.list("out_shape", out);
  d.list("stride", w.stride), d.list("padding", w.padding), d.list("dilation", w.dilation);
  d.set("asymmetric", int32_t{asymmetric});
  if (asymmetric) d.list("padding_end", w.padding_end);
  const bool positive = d.free.one_in(2);
  d.input("doutput", dtype, product(out), positive ? Fill::positive : Fill::integers);
  uint64_t terms = filters / groups * product(w.taps);
  bool both = true;
  if (data) {
    d.input("filter", dtype, batch != 0 ? product(filter) : 0);
    d.output("dinput", dtype, product(in));
  } else {
    const uint64_t wanted = draw.below(3);
    both = wanted != 0, terms = batch * product(w.out);
    if (both) {
      d.input("input", dtype, product(in));
      d.output("dfilter", dtype, product(filter));
    }
    if (wanted != 1) d.output("dbias", dtype, filters);
  }
  d.suits = [&d, terms, both, data] {
    for (const Operand& operand : d.operands) {
      if (operand.read && operand.elements != 0 && !operand.seen.integral) return false;
    }
    const double other = both ? std::max(1.0, d.of(data ? "filter" : "input").seen.most) : 1;
    return d.of("doutput").seen.most * other * static_cast<double>(terms) < 0x1p22;
  };
}

void draw_transposed(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw);
  const bool desc = d.has("groups");
  const uint64_t groups = !desc || draw.one_in(2) ? 1 : d.extent(draw.between(1, 3), 1, 3);
  const uint64_t channels = groups * d.extent(draw.between(1, 4), 1);
  const uint64_t each = d.extent(draw.between(1, 3), 1), batch = d.extent(draw_size(draw, 3), 0, 3);
  std::vector<uint64_t> in = {batch, channels}, filter = {channels, each}, out = {batch, groups * each};
  std::vector<uint64_t> stride, padding, further, dilation;
  for (int i = 0; i < 2; ++i) {
    Draw& loose = d.loose();
    const uint64_t by = loose.between(1, 3), apart = desc && loose.one_in(2) ? loose.between(1, 3) : 1;
    const uint64_t taps = d.extent(loose.between(1, 4), 1, 4), size = d.extent(loose.between(1, 6), 1);
    const uint64_t more = loose.below(std::max(by, apart));
    const uint64_t whole = (size - 1) * by + apart * (taps - 1) + 1 + more;
    const uint64_t around = std::min<uint64_t>(loose.below(3), (whole - 1) / 2);
    in.push_back(size), filter.push_back(taps), out.push_back(whole - 2 * around);
    stride.push_back(by), padding.push_back(around), further.push_back(more), dilation.push_back(apart);
  }
  d.set("dtype", dtype);
  d.list("in_shape", in), d.list("filter_shape", filter), d.list("out_shape", out);
  d.list("stride", stride), d.list("padding", padding), d.list("output_padding", further);
  d.list("dilation", dilation);
  d.set("groups", groups);
  d.set("layout", static_cast<int32_t>(draw.below(2)));
  d.input("input", dtype, product(in), d.free.one_in(2) ? Fill::positive : Fill::integers);
  d.input("filter", dtype, batch == 0 ? 0 : product(filter));
  d.output("output", dtype, product(out));
  const Epilogue epilogue = draw_epilogue(d, dtype, groups * each, product(out), batch != 0);
  finish_sums(d, epilogue, channels / groups * filter[2] * filter[3], false);
}

// What pooling and its gradient have in common.
struct Pooling {
  int32_t dtype = 0;
  uint64_t inputs = 0, results = 0;
  uint64_t taps = 1, windows = 1;  // at most, of a window, and that an element is in
};

Pooling draw_windows(Draft& d, bool largest) {
  Draw& draw = d.shape;
  Pooling pool;
  const int32_t dtype = pool.dtype = draw_float(draw);
  const size_t axes = draw.between(1, 3);
  const uint64_t batch = d.extent(draw_size(draw, 3), 0, 3), channels = d.extent(draw_size(draw, 5));
  d.set("dtype", dtype), d.set("spatial", axes), d.set("batch", batch), d.set("channels", channels);
  std::vector<uint64_t> in, out, kernel, stride, padding, dilation;
  const bool adaptive = draw.one_in(4), up = !adaptive && draw.one_in(3);
  for (size_t i = 0; i < axes; ++i) {
    Draw& loose = d.loose();
    const uint64_t window = d.extent(loose.between(1, 4), 1, 4), by = loose.between(1, 4);
    const uint64_t apart = largest && loose.one_in(3) ? loose.between(1, 3) : 1;
    const uint64_t span = apart * (window - 1) + 1, around = loose.below(span / 2 + 1);
    const uint64_t least = span > 2 * around ? span - 2 * around : 1;
    const uint64_t size = std::max(least, d.extent(loose.between(1, axes == 1 ? 40 : 8), 1));
    uint64_t places = size + 2 * around - span;
    uint64_t count = places / by + 1;
    if (up && places % by != 0 && count * by < size + around) ++count;
    in.push_back(size), kernel.push_back(window), stride.push_back(by), padding.push_back(around);
    dilation.push_back(apart), out.push_back(adaptive ? d.extent(loose.between(1, 5), 1) : count);
    pool.taps *= adaptive ? size : window;
    pool.windows *= adaptive ? out.back() : std::min(out.back(), span / by + 1);
  }
  d.list("in_shape", in), d.list("out_shape", out);
  if (adaptive) {
    d.set("adaptive", 1);
  } else {
    d.list("kernel", kernel), d.list("stride", stride), d.list("padding", padding);
    if (largest) d.list("dilation", dilation);
    d.set("ceil_mode", int32_t{up});
    if (!largest) d.set("count_include_pad", static_cast<int32_t>(draw.below(2)));
  }
  const uint64_t planes = batch * channels;
  pool.inputs = planes * product(in), pool.results = planes * product(out);
  return pool;
}

void draw_pool(Draft& d) {
  const bool largest = std::string_view(d.call.function().name) == "tuff_max_pool";
  const Pooling pool = draw_windows(d, largest);
  const int32_t dtype = pool.dtype;
  d.input("input", dtype, pool.inputs);
  Operand& output = d.output("output", dtype, pool.results);
  if (!largest) output.allowed = [dtype](uint64_t, double y) { return rounded(dtype, 5, y); };
  if (largest && d.shape.one_in(2)) d.output("indices", TUFF_U32, pool.results);
  d.suits = [&d, pool, largest] {
    const Seen& seen = d.of("input").seen;
    return largest || (seen.integral && seen.most * static_cast<double>(pool.taps) < 0x1p22);
  };
}

void draw_pool_backward(Draft& d) {
  const bool largest = d.shape.one_in(2);
  d.set("maximum", int32_t{largest});
  const Pooling pool = draw_windows(d, largest);
  const int32_t dtype = pool.dtype;
  if (largest && d.shape.one_in(2)) {
    d.input("indices", TUFF_U32, pool.results, Fill::integers, 40);
  } else if (largest) {
    d.input("input", dtype, pool.inputs);
  }
  d.input("doutput", dtype, pool.results);
  Operand& dinput = d.output("dinput", dtype, pool.inputs);
  if (!largest) {
    // Each share has a division of 2.5 ULP, and the sums of them as many roundings as terms.
    dinput.allowed = [&d, dtype, pool](uint64_t, double y) {
      const auto windows = static_cast<double>(pool.windows);
      return gamma(windows + 6) * windows * d.of("doutput").seen.most + rounded(dtype, 1, y);
    };
  }
  d.suits = [&d, pool] {
    const Seen& seen = d.of("doutput").seen;
    return seen.integral && seen.most * static_cast<double>(pool.windows) < 0x1p22;
  };
}

void draw_resize(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw), mode = static_cast<int32_t>(draw.below(3));
  const size_t axes = draw.between(1, 3);
  const uint64_t batch = d.extent(draw_size(draw, 3), 0, 3), channels = d.extent(draw_size(draw, 4));
  const bool corners = mode == TUFF_RESIZE_LINEAR && draw.one_in(3), scaled = !corners && draw.one_in(3);
  std::vector<uint64_t> in, out;
  for (size_t i = 0; i < axes; ++i) {
    in.push_back(d.extent(draw.between(1, axes == 1 ? 40 : 7), 1));
    out.push_back(d.extent(draw.between(1, axes == 1 ? 40 : 7), 1));
  }
  d.set("dtype", dtype), d.set("mode", mode), d.set("spatial", axes);
  d.set("batch", batch), d.set("channels", channels);
  d.list("in_shape", in), d.list("out_shape", out);
  d.set("align_corners", int32_t{corners});
  d.set("layout", static_cast<int32_t>(draw.below(2)));
  if (scaled) {
    std::vector<uint64_t> scales;
    for (size_t i = 0; i < axes; ++i) scales.push_back(std::bit_cast<uint64_t>(draw.of({1.5, 0.5, 2.0, 0.3, 1.0})));
    d.list("scale", scales);
  }
  const uint64_t planes = batch * channels;
  d.input("input", dtype, planes * product(in));
  Operand& output = d.output("output", dtype, planes * product(out));
  if (mode == TUFF_RESIZE_LINEAR) {
    // tests/resize_test.cpp: twelve roundings along each axis, of values up to the largest element.
    output.allowed = [&d, dtype, axes](uint64_t, double y) {
      return gamma(12.0 * static_cast<double>(axes)) * d.of("input").seen.most + rounded(dtype, 1, y);
    };
    d.suits = [&d] { return d.of("input").seen.integral && d.of("input").seen.most < 0x1p15; };
  }
}

constexpr Description kImages[] = {
    {"tuff_conv1d", "conv", [](Draft& d) { draw_conv(d, 1); }},
    {"tuff_conv1d_ex", "conv", [](Draft& d) { draw_conv(d, 1); }},
    {"tuff_conv2d", "conv", [](Draft& d) { draw_conv(d, 2); }},
    {"tuff_conv2d_ex", "conv", [](Draft& d) { draw_conv(d, 2); }},
    {"tuff_conv3d", "conv", [](Draft& d) { draw_conv(d, 3); }},
    {"tuff_conv3d_ex", "conv", [](Draft& d) { draw_conv(d, 3); }},
    {"tuff_conv_transpose2d", "conv", draw_transposed},
    {"tuff_conv_transpose2d_ex", "conv", draw_transposed},
    {"tuff_conv_backward_data", "conv", draw_conv_backward},
    {"tuff_conv_backward_filter", "conv", draw_conv_backward},
    {"tuff_max_pool", "pool", draw_pool},
    {"tuff_avg_pool", "pool", draw_pool},
    {"tuff_pool_backward", "pool", draw_pool_backward},
    {"tuff_resize", "resize", draw_resize},
};

}  // namespace

std::span<const Description> describe_images() { return kImages; }

}  // namespace tuff_fuzz
