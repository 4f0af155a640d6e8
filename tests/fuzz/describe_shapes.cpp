// Operations that move elements, and the rotary embedding.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "fuzz/draft.hpp"
#include "fuzz/epilogue.hpp"
#include "fuzz/numbers.hpp"
#include "support/bounds.hpp"

namespace tuff_fuzz {
namespace {

int32_t draw_real(Draw& draw) { return static_cast<int32_t>(draw.between(TUFF_F32, TUFF_F8_E5M2)); }
int32_t draw_any(Draw& draw) { return static_cast<int32_t>(draw.between(TUFF_F32, TUFF_C128)); }

void moved_output(Draft& d, int32_t dtype, uint64_t elements, const char* name = "output") {
  d.output(name, dtype, elements).moved = true;
}

void draw_permute(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_any(draw);
  const std::vector<uint64_t> shape = draw_shape(d, 1500, 20);
  std::vector<uint64_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[d.loose().below(i)]);
  d.set("dtype", dtype), d.set("rank", shape.size());
  d.list("shape", shape), d.list("order", order);
  d.input("input", dtype, product(shape), Fill::anything);
  moved_output(d, dtype, product(shape));
}

void draw_cast(Draft& d) {
  Draw& draw = d.shape;
  const int32_t from = draw_any(draw), to = draw_any(draw);
  const uint64_t n = d.volume(draw_size(draw, draw.one_in(3) ? 1500 : 70), 2);
  d.set("input_type", from), d.set("output_type", to), d.set("n", n);
  d.input("input", from, n, d.free.one_in(2) ? Fill::anything : Fill::integers, 100);
  Operand& output = d.output("output", to, n);
  output.moved = from == to;
  if (size_of(from) == size_of(to) && d.free.one_in(4)) output.same = 0;
}

void draw_slice(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_any(draw);
  const std::vector<uint64_t> shape = draw_shape(d, 1500, 20);
  std::vector<uint64_t> start, out, step;
  Draw& loose = d.loose();
  for (const uint64_t size : shape) {
    const int64_t by = loose.of<int64_t>({1, 1, 1, 2, -1, -2, 3});
    const uint64_t from = size == 0 ? 0 : loose.below(size);
    const uint64_t left = size == 0 ? 0 : (by > 0 ? size - 1 - from : from) / static_cast<uint64_t>(std::abs(by)) + 1;
    start.push_back(from), step.push_back(static_cast<uint64_t>(by));
    out.push_back(left == 0 || loose.one_in(20) ? 0 : loose.one_in(2) ? left : loose.between(1, left));
  }
  d.set("dtype", dtype), d.set("rank", shape.size());
  d.list("shape", shape), d.list("start", start), d.list("out_shape", out);
  if (draw.one_in(4)) {
    // Without step sizes: all are 1.
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != 0) out[i] = std::min(out[i], shape[i] - start[i]);
    }
    d.list("out_shape", out);
  } else {
    d.list("step", step);
  }
  const uint64_t results = product(out);
  d.input("input", dtype, results == 0 ? 0 : product(shape), Fill::anything);
  moved_output(d, dtype, results);
}

void draw_concat(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_any(draw);
  std::vector<uint64_t> shape = draw_shape(d, 800, 20), sizes(draw.between(1, draw.one_in(6) ? 20 : 4));
  const uint64_t axis = draw.below(shape.size());
  shape[axis] = 0;
  uint64_t others = 1;
  for (size_t i = 0; i < shape.size(); ++i) others *= i == axis ? 1 : shape[i];
  for (uint64_t& size : sizes) {
    size = d.extent(others > 400 ? draw.below(2) : draw.below(5), 0, 5);
    shape[axis] += size;
  }
  d.set("dtype", dtype), d.set("rank", shape.size()), d.set("axis", axis), d.set("count", sizes.size());
  d.list("shape", shape), d.list("sizes", sizes);
  d.list("inputs", std::vector<uint64_t>(sizes.size(), 0));
  for (size_t i = 0; i < sizes.size(); ++i) {
    d.input("inputs", dtype, sizes[i] * others, Fill::anything, 4, static_cast<uint32_t>(i));
  }
  moved_output(d, dtype, product(shape));
}

void draw_gather(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_any(draw), index_type = draw.of<int32_t>({TUFF_U32, TUFF_I32, TUFF_I64, TUFF_U64});
  const std::vector<uint64_t> shape = draw_shape(d, 800, 20);
  const uint64_t axis = draw.below(shape.size());
  std::vector<uint64_t> out = shape;
  d.set("dtype", dtype), d.set("index_type", index_type), d.set("rank", shape.size()), d.set("axis", axis);
  d.list("shape", shape);
  const bool each = d.has("elementwise") && draw.one_in(2);
  uint64_t indices, numbers = 1;
  if (d.has("negative")) d.set("negative", static_cast<int32_t>(draw.below(2)));
  if (each) {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = i == axis                            ? d.extent(draw.below(6))
               : out[i] == 0 || d.loose().one_in(2) ? out[i]
                                                    : d.loose().between(1, out[i]);
    }
    d.set("elementwise", 1);
    d.list("index_shape", out);
    indices = product(out);
  } else {
    const uint64_t others = std::max<uint64_t>(product(shape) / std::max<uint64_t>(shape[axis], 1), 1);
    indices = out[axis] = d.extent(others > 300 ? draw.below(4) : draw.below(9));
    d.set("count", indices);
    if (d.has("coordinates") && draw.one_in(2)) {
      numbers = draw.between(1, shape.size() - axis);
      d.set("coordinates", numbers);
      for (uint64_t c = 1; c < numbers; ++c) out[axis + c] = 1;
    }
  }
  const uint64_t results = product(out);
  if (results == 0) indices = 0;
  d.input("input", dtype, results == 0 ? 0 : product(shape), Fill::anything);
  d.input("indices", index_type, indices * numbers, d.free.one_in(5) ? Fill::anything : Fill::indices,
          static_cast<double>(shape[axis]));
  moved_output(d, dtype, results);
}

void draw_scatter(Draft& d) {
  Draw& draw = d.shape;
  const int32_t op =
      draw.one_in(2) ? TUFF_SCATTER_SET : static_cast<int32_t>(draw.between(TUFF_SCATTER_ADD, TUFF_SCATTER_MIN));
  const bool sets = op == TUFF_SCATTER_SET, multiplies = op == TUFF_SCATTER_MUL, adds = op == TUFF_SCATTER_ADD;
  const int32_t dtype = sets ? draw_any(draw) : static_cast<int32_t>(draw.between(TUFF_F32, TUFF_BOOL));
  const int32_t index_type = draw.of<int32_t>({TUFF_U32, TUFF_I32, TUFF_I64, TUFF_U64});
  const std::vector<uint64_t> shape = draw_shape(d, 800, 20);
  const uint64_t axis = draw.below(shape.size());
  d.set("dtype", dtype), d.set("index_type", index_type), d.set("op", op);
  d.set("rank", shape.size()), d.set("axis", axis), d.set("negative", static_cast<int32_t>(draw.below(2)));
  d.list("shape", shape);
  std::vector<uint64_t> of_updates = shape;
  uint64_t indices, numbers = 1;
  if (draw.one_in(2)) {
    for (size_t i = 0; i < shape.size(); ++i) {
      of_updates[i] = i == axis                              ? d.extent(draw.below(6))
                      : shape[i] == 0 || d.loose().one_in(2) ? shape[i]
                                                             : d.loose().between(1, shape[i]);
    }
    d.set("elementwise", 1);
    d.list("index_shape", of_updates);
    indices = product(of_updates);
  } else {
    if (draw.one_in(2)) {
      numbers = draw.between(1, shape.size() - axis);
      d.set("coordinates", numbers);
      for (uint64_t c = 1; c < numbers; ++c) of_updates[axis + c] = 1;
    }
    of_updates[axis] = 1;
    const bool many = product(of_updates) > 300;
    indices = of_updates[axis] =
        d.extent(many ? draw.below(4) : draw.below(multiplies ? 60 : 300), 0, multiplies ? 60 : 0);
    d.set("count", indices);
  }
  const uint64_t elements = product(shape), updates = elements == 0 ? 0 : product(of_updates);
  if (updates == 0) indices = 0;
  const bool floats = spacing(dtype, 1) != 0, computes = floats && (adds || multiplies);
  const Fill fill = !computes ? Fill::anything : multiplies ? Fill::powers : Fill::integers;
  d.input("indices", index_type, indices * numbers, d.free.one_in(5) ? Fill::anything : Fill::indices,
          static_cast<double>(shape[axis]));
  d.input("updates", dtype, updates, fill);
  const bool apart = d.free.one_in(2);
  if (apart) d.input("input", dtype, elements, fill);
  Operand& output = d.output("output", dtype, elements);
  output.moved = sets;
  if (apart) {
    if (d.free.one_in(4)) output.same = 2;
  } else {
    output.read = true, output.fill = fill;
  }
  if (!computes) return;
  // Sums and products are exact in f32: any order gives the same.
  d.suits = [&d, multiplies, indices] {
    for (const Operand& operand : d.operands) {
      if (!operand.read || operand.elements == 0 || operand.dtype != d.of("updates").dtype) continue;
      if (!operand.seen.integral) return false;
      if (multiplies ? operand.seen.most > 2 || indices > 100
                     : operand.seen.most * static_cast<double>(indices + 1) > 0x1p20) {
        return false;
      }
    }
    return true;
  };
}

// What is left of the outputs keeps its contents: they are read, too.
void draw_select(Draft& d) {
  Draw& draw = d.shape;
  const bool unique = draw.one_in(2);
  const int32_t dtype = draw_any(draw), mask_type = draw.one_in(4) ? 0 : draw.one_in(2) ? TUFF_BOOL : draw_any(draw);
  const int32_t index_type = draw.of<int32_t>({0, TUFF_I32, TUFF_U32, TUFF_I64, TUFF_U64});
  const uint64_t n = d.extent(draw.one_in(4) ? draw.below(9000) : draw_size(draw, 300), 0, 9000);
  const uint64_t capacity = d.loose().one_in(3) ? d.loose().below(n + 9) : n;
  d.set("dtype", dtype), d.set("op", unique ? TUFF_SELECT_UNIQUE : TUFF_SELECT_NONZERO);
  d.set("index_type", index_type), d.set("mask_type", mask_type), d.set("n", n), d.set("capacity", capacity);
  if (unique) d.set("equal_nan", static_cast<int32_t>(draw.below(2)));
  const uint64_t wanted = 1 + draw.below(7);  // a bit for each output
  const bool values = (wanted & 1) != 0, anything = d.free.one_in(3);
  const auto judged = [&](const char* name, int32_t type) {
    d.input(name, type, n, anything ? Fill::anything : Fill::integers, 1);
  };
  if (unique) {
    judged("input", dtype);
  } else {
    judged("mask", mask_type != 0 ? mask_type : dtype);
    if (values && n != 0 && capacity != 0) d.input("input", dtype, n, Fill::anything);  // not read without output
  }
  const auto output = [&](const char* name, int32_t type) {
    Operand& result = d.output(name, type, capacity);
    result.moved = result.read = true;
    result.fill = Fill::anything;
  };
  if (values) output("output", dtype);
  if ((wanted & 2) != 0) output("indices", index_type != 0 ? index_type : TUFF_I32);
  if ((wanted & 4) != 0) moved_output(d, TUFF_U64, 1, "count");
}

void draw_pad(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_any(draw), mode = static_cast<int32_t>(draw.between(TUFF_PAD_CONSTANT, TUFF_PAD_WRAP));
  std::vector<uint64_t> shape = draw_shape(d, 600, 20), out = shape, before, after;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (mode != TUFF_PAD_CONSTANT) shape[i] = std::max<uint64_t>(shape[i], 1);
    const bool some = d.loose().one_in(2);
    const auto more = [&](uint64_t most) {
      return some ? static_cast<int64_t>(d.loose().below(most + 2)) - (shape[i] >= 4 ? 2 : 0) : 0;
    };
    const int64_t first = more(shape.size() < 4 ? 5 : 2), last = more(shape.size() < 4 ? 9 : 2);
    before.push_back(static_cast<uint64_t>(first)), after.push_back(static_cast<uint64_t>(last));
    out[i] = shape[i] + static_cast<uint64_t>(first + last);
  }
  d.set("dtype", dtype), d.set("mode", mode), d.set("rank", shape.size());
  d.list("shape", shape), d.list("before", before), d.list("after", after);
  d.real("value", d.free.of({0.0, -1.5, 1e9}));
  d.set("integer", static_cast<uint64_t>(d.free.of<int64_t>({0, 1, -1, 1000})));
  const uint64_t results = product(out);
  d.input("input", dtype, results == 0 ? 0 : product(shape), Fill::anything);
  moved_output(d, dtype, results);
}

// Elements are moved with their bits, and a stable sort has one result only.
void draw_sort(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_real(draw), index_type = draw.of<int32_t>({0, TUFF_I32, TUFF_U32, TUFF_I64, TUFF_U64});
  std::vector<uint64_t> shape = draw_shape(d, 1500, 20);
  if (draw.one_in(8)) shape = {d.extent(draw.between(1, 3)), d.extent(draw.between(200, 3000))};  // long rows
  const uint64_t axis = draw.below(shape.size()), length = shape[axis];
  const uint64_t k = length == 0 || draw.one_in(2) ? 0 : draw.one_in(2) ? d.loose().between(1, length) : 1;
  d.set("dtype", dtype), d.set("index_type", index_type), d.set("rank", shape.size()), d.set("axis", axis);
  d.list("shape", shape), d.set("k", k), d.set("descending", draw.below(2));
  const uint64_t all = product(shape), results = length == 0 ? 0 : all / length * (k != 0 ? k : length);
  d.input("input", dtype, all, d.free.one_in(2) ? Fill::anything : Fill::integers, 5);
  const uint64_t wanted = draw.below(3);  // both outputs, or one of them
  if (wanted != 1) moved_output(d, dtype, results, "values");
  if (wanted != 2) moved_output(d, index_type != 0 ? index_type : TUFF_I32, results, "indices");
}

void draw_copy_strided(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_any(draw);
  const std::vector<uint64_t> shape = draw.one_in(12) ? std::vector<uint64_t>{} : draw_shape(d, 600, 20);
  const uint64_t count = product(shape);
  // Strides of a random order of axes, with gaps; the elements that they reach; the one at index 0.
  struct Place {
    std::vector<uint64_t> strides;
    std::vector<Axis> axes;
    uint64_t reach = 1, first = 0;
  };
  const auto place = [&](bool repeats) {
    Place result{std::vector<uint64_t>(shape.size()), {}, 1, 0};
    std::vector<size_t> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    Draw& loose = d.loose();
    const bool ordered = loose.one_in(2), gaps = loose.one_in(2), turns = loose.one_in(3);
    for (size_t i = order.size(); i > 1 && !ordered; --i) std::swap(order[i - 1], order[loose.below(i)]);
    for (size_t i = order.size(); i-- > 0;) {
      const size_t axis = order[i];
      const uint64_t n = std::max<uint64_t>(shape[axis], 1), stride = result.reach + (gaps ? loose.below(2) : 0);
      if (repeats && loose.one_in(5)) continue;
      const bool back = turns && loose.one_in(2);
      result.strides[axis] = back ? 0 - stride : stride;
      result.axes.push_back({n, stride});
      result.reach += stride * (n - 1);
      if (back) result.first += stride * (n - 1);
    }
    return result;
  };
  const Place from = place(true), to = place(false);
  d.set("dtype", dtype), d.set("rank", shape.size());
  d.list("shape", shape), d.list("input_strides", from.strides), d.list("output_strides", to.strides);
  d.set("input_first", from.first), d.set("output_first", to.first);
  d.input("input", dtype, count == 0 ? 0 : from.reach, Fill::anything);
  Operand& output = d.output("output", dtype, count == 0 ? 0 : to.reach);
  output.moved = true;
  output.axes = to.axes;
}

void draw_rope(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw);
  const uint64_t batch = d.extent(draw_size(draw, 3), 0, 3), heads = d.extent(draw_size(draw, 4), 0, 4);
  const uint64_t seq = d.extent(draw_size(draw, 9)), half = draw.one_in(20) ? 0 : draw.between(1, 12);
  const uint64_t head = 2 * d.extent(half);
  d.set("dtype", dtype), d.set("batch", batch), d.set("heads", heads), d.set("seq", seq), d.set("head_dim", head);
  d.set("offset", static_cast<uint64_t>(d.free.of<int64_t>({0, 1, -3, 1000, 100000})));
  const double base = draw.of({10000.0, 500000.0, 2.0});
  d.real("base", base);
  const uint64_t all = batch * heads * seq * head;
  std::vector<Axis> axes;
  bool strided = false;
  if (d.has("rotary_dim")) {
    if (head > 2 && draw.one_in(3)) d.set("rotary_dim", 2 * d.loose().between(1, head / 2 - 1));
    d.set("interleaved", static_cast<int32_t>(draw.below(2)));
    if (draw.one_in(3) && all != 0) {  // [batch][seq][heads][head_dim], with gaps between rows
      const uint64_t row = head + d.loose().below(3);
      const uint64_t strides[3] = {seq * heads * row, row, heads * row};
      d.list("input_strides", strides), d.list("output_strides", strides);
      axes = {{batch, strides[0]}, {heads, strides[1]}, {seq, strides[2]}, {head, 1}};
      strided = true;
    }
  }
  const uint64_t elements = strided ? footprint(axes) : all;
  d.input("input", dtype, elements, Fill::integers, 8);
  Operand& output = d.output("output", dtype, elements);
  output.axes = axes;
  if (d.free.one_in(4)) output.same = 0;
  // tests/rope_test.cpp derives this: sine and cosine to 4 ULP of 1, the angle to 2^-29, three roundings.
  output.allowed = [&d, dtype](uint64_t, double y) {
    return 2 * d.of("input").seen.most * (4 * 2 * tuff_test::kU + 0x1p-29 + 3 * tuff_test::kU) + rounded(dtype, 1, y);
  };
  if (d.has("positions") && draw.one_in(3)) {
    const bool same = draw.one_in(2);
    d.set("positions_stride", same ? 0 : seq);
    d.input("positions", TUFF_I32, all == 0 ? 0 : same ? seq : batch * seq, Fill::integers, 1000);
  }
  d.suits = [&d] {
    for (const Operand& operand : d.operands) {
      if (operand.read && operand.elements != 0 && !operand.seen.integral) return false;
      if (operand.dtype == TUFF_I32 && operand.seen.most > 1e6) return false;
    }
    return d.of("input").seen.most < 1000;
  };
}

constexpr Description kShapes[] = {
    {"tuff_permute", "shape", draw_permute},
    {"tuff_permute_ex", "shape", draw_permute},
    {"tuff_cast", "shape", draw_cast},
    {"tuff_cast_ex", "shape", draw_cast},
    {"tuff_slice", "shape", draw_slice},
    {"tuff_slice_ex", "shape", draw_slice},
    {"tuff_concat", "shape", draw_concat},
    {"tuff_concat_ex", "shape", draw_concat},
    {"tuff_gather", "shape", draw_gather},
    {"tuff_gather_ex", "shape", draw_gather},
    {"tuff_scatter", "shape", draw_scatter},
    {"tuff_select", "shape", draw_select},
    {"tuff_pad", "shape", draw_pad},
    {"tuff_copy_strided", "shape", draw_copy_strided},
    {"tuff_sort", "sort", draw_sort},
    {"tuff_rope", "rope", draw_rope},
    {"tuff_rope_ex", "rope", draw_rope},
};

}  // namespace

std::span<const Description> describe_shapes() { return kShapes; }

}  // namespace tuff_fuzz
