// Draws the arguments of operations that move elements.
#include <algorithm>

#include "kernels/indexing/scatter.hpp"
#include "kernels/indexing/select.hpp"
#include "kernels/shape/shape.hpp"
#include "planners/draw.hpp"

namespace tuff_test {

using tuff::Buffer;
using tuff::dtype_size;

void draw_permute(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  auto& order = call.keep(std::array<uint32_t, 8>{0, 1, 2, 3, 4, 5, 6, 7});
  for (uint32_t i = shape.rank - 1; i > 0; --i) std::swap(order[i], order[n.below(i + 1)]);
  tuff::PermuteArgs& args = call.keep(tuff::PermuteArgs{});
  args.dtype = call.any_type();
  args.shape = shape.sizes.data(), args.order = order.data(), args.rank = shape.rank;
  call.tell("dtype", args.dtype), call.tell("order", order);
  args.input = call.input("input", shape.elements(), dtype_size(args.dtype));
  args.output = call.output("output", shape.elements(), dtype_size(args.dtype));
  set(call, tuff::operations::permute, args);
}

void draw_slice(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  struct Cut {
    std::array<uint64_t, 8> start{}, out{};
    std::array<int64_t, 8> step{};
  };
  Cut& cut = call.keep(Cut{});
  for (uint32_t i = 0; i < shape.rank; ++i) {
    cut.step[i] = n.coin() ? 1 : static_cast<int64_t>(1 + (n.coin(8) ? call.size() : n.below(3))) * (n.coin() ? 1 : -1);
    if (n.coin(64)) cut.step[i] = n.coin() ? INT64_MAX : INT64_MIN;
    if (shape.sizes[i] == 0) continue;
    cut.start[i] = n.coin() ? (cut.step[i] > 0 ? 0 : shape.sizes[i] - 1) : n.below(shape.sizes[i]);
    const uint64_t ahead = cut.step[i] > 0 ? shape.sizes[i] - 1 - cut.start[i] : cut.start[i];
    const uint64_t step = cut.step[i] > 0            ? static_cast<uint64_t>(cut.step[i])
                          : cut.step[i] == INT64_MIN ? uint64_t{1} << 63
                                                     : static_cast<uint64_t>(-cut.step[i]);
    const uint64_t most = ahead / step + 1;
    cut.out[i] = n.coin() ? most : n.coin(8) ? 0 : 1 + n.below(most);
  }
  tuff::SliceArgs& args = call.keep(tuff::SliceArgs{});
  args.dtype = call.any_type();
  args.shape = shape.sizes.data(), args.rank = shape.rank;
  args.start = cut.start.data(), args.out_shape = cut.out.data(), args.step = cut.step.data();
  call.tell("dtype", args.dtype), call.tell("start", cut.start), call.tell("out", cut.out);
  call.tell("step", cut.step);
  const uint64_t outputs = product({cut.out.data(), shape.rank});
  args.input = call.input("input", shape.elements(), dtype_size(args.dtype));
  call.read_partly(args.input);
  if (outputs != 0) {  // the element closest to the beginning, and the one closest to the end
    uint64_t first = 0, last = 0;
    for (uint32_t i = 0; i < shape.rank; ++i) {
      const uint64_t steps = cut.out[i] - 1, start = cut.start[i];
      const int64_t moved = steps == 0 ? 0 : static_cast<int64_t>(steps) * cut.step[i];
      const auto end = static_cast<uint64_t>(static_cast<int64_t>(start) + moved);
      first = plus(times(first, shape.sizes[i]), std::min(start, end));
      last = plus(times(last, shape.sizes[i]), std::max(start, end));
    }
    call.has_to_read(args.input, first, 1), call.has_to_read(args.input, last, 1);
  }
  args.output = call.output("output", outputs, dtype_size(args.dtype));
  set(call, tuff::operations::slice, args);
}

void draw_concat(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::ConcatArgs& args = call.keep(tuff::ConcatArgs{});
  args.dtype = call.any_type();
  auto& sizes = call.keep(std::vector<uint64_t>(n.coin(8) ? n.below(40) : 1 + n.below(6)));
  auto& inputs = call.keep(std::vector<const Buffer*>{});
  uint64_t sum = 0;
  const uint64_t each = n.coin(3) ? call.size() : 0;  // the inputs have equal sizes
  for (uint64_t& size : sizes) sum = plus(sum, size = each != 0 ? each : call.size());
  shape.sizes[shape.axis] = sum;
  uint64_t others = 1;
  for (uint32_t i = 0; i < shape.rank; ++i) others = i == shape.axis ? others : times(others, shape.sizes[i]);
  for (uint32_t i = 0; i < shape.rank; ++i) others = i != shape.axis && shape.sizes[i] == 0 ? 0 : others;
  call.tell("dtype", args.dtype), call.tell("sizes", sizes);
  for (const uint64_t size : sizes) inputs.push_back(call.input("input", times(size, others), dtype_size(args.dtype)));
  args.inputs = inputs, args.sizes = sizes.data();
  args.shape = shape.sizes.data(), args.rank = shape.rank, args.axis = shape.axis;
  args.output = call.output("output", times(sum, others), dtype_size(args.dtype));
  set(call, tuff::operations::concat, args);
}

void draw_gather(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::GatherArgs& args = call.keep(tuff::GatherArgs{});
  args.dtype = call.any_type();
  args.index_type = n.one_of<int32_t>({TUFF_U32, TUFF_I32, TUFF_U64, TUFF_I64});
  args.shape = shape.sizes.data(), args.rank = shape.rank, args.axis = shape.axis;
  uint64_t results = 0, indices = 0;
  args.negative = n.coin();
  if (n.coin()) {
    Shape& of_indices = call.keep(shape);
    for (uint32_t i = 0; i < shape.rank; ++i) {
      if (i == shape.axis) of_indices.sizes[i] = call.size();
      if (i != shape.axis && n.coin(4)) of_indices.sizes[i] = n.below(shape.sizes[i] + 1);
    }
    args.index_shape = of_indices.sizes.data();
    results = indices = of_indices.elements();
    call.tell("index_shape", of_indices.span());
  } else {
    args.count = indices = call.size();
    Shape result = shape;
    result.sizes[shape.axis] = args.count;
    if (n.coin()) {
      args.coordinates = static_cast<uint32_t>(1 + n.below(shape.rank - shape.axis));
      for (uint32_t c = 1; c < args.coordinates; ++c) result.sizes[shape.axis + c] = 1;
      indices = times(indices, args.coordinates);
    }
    results = result.elements();
    call.tell("count", args.count), call.tell("coordinates", args.coordinates);
  }
  call.tell("dtype", args.dtype), call.tell("index_type", args.index_type), call.tell("negative", args.negative);
  args.input =
      shape.elements() == 0 && n.coin() ? nullptr : call.input("input", shape.elements(), dtype_size(args.dtype));
  call.read_partly(args.input);
  args.indices = call.input("indices", indices, dtype_size(args.index_type));
  args.output = call.output("output", results, dtype_size(args.dtype));
  set(call, tuff::operations::gather, args);
}

void draw_scatter(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::ScatterArgs& args = call.keep(tuff::ScatterArgs{});
  args.op = n.coin() ? int32_t{TUFF_SCATTER_SET} : static_cast<int32_t>(1 + n.below(5));
  const bool set_op = args.op == TUFF_SCATTER_SET;
  args.dtype = set_op ? call.any_type() : call.type_of(tuff::scatter::kCombinedTypes);
  tuff::IndexArgs& index = args.index;
  index.index_type = n.one_of<int32_t>({TUFF_U32, TUFF_I32, TUFF_U64, TUFF_I64});
  index.shape = shape.sizes.data(), index.rank = shape.rank, index.axis = shape.axis;
  index.negative = n.coin();
  // Each pass over the indices sees a part of the places: neither are both enormous.
  const auto size = [&] { return std::min(call.size(), uint64_t{1} << 30); };
  Shape& of_updates = call.keep(shape);
  uint64_t indices = 0;
  if (n.coin()) {
    for (uint32_t i = 0; i < shape.rank; ++i) {
      if (i == shape.axis) of_updates.sizes[i] = size();
      if (i != shape.axis && n.coin(4)) of_updates.sizes[i] = n.below(shape.sizes[i] + 1);
    }
    index.index_shape = of_updates.sizes.data();
    indices = of_updates.elements();
    call.tell("index_shape", of_updates.span());
  } else {
    index.count = indices = of_updates.sizes[shape.axis] = size();
    if (n.coin()) {
      index.coordinates = static_cast<uint32_t>(1 + n.below(shape.rank - shape.axis));
      for (uint32_t c = 1; c < index.coordinates; ++c) of_updates.sizes[shape.axis + c] = 1;
      indices = times(indices, index.coordinates);
    }
    call.tell("count", index.count), call.tell("coordinates", index.coordinates);
  }
  call.tell("dtype", args.dtype), call.tell("op", args.op), call.tell("index_type", index.index_type);
  call.tell("negative", index.negative);
  const uint64_t elements = shape.elements(), updates = elements == 0 ? 0 : of_updates.elements();
  if (updates == 0) indices = 0;
  args.updates = call.input("updates", updates, dtype_size(args.dtype));
  index.indices = call.input("indices", indices, dtype_size(index.index_type));
  const bool copies = n.coin();
  if (copies) args.input = call.input("input", elements, dtype_size(args.dtype));
  args.output =
      call.output_or(copies ? args.input : nullptr, "output", elements, dtype_size(args.dtype), copies && updates != 0);
  if (copies && args.input == args.output) call.has_to_be(args.output, 0, 0), call.read_partly(args.input);
  set(call, tuff::operations::scatter, args);
}

void draw_select(Call& call) {
  Numbers& n = call.numbers;
  tuff::SelectArgs& args = call.keep(tuff::SelectArgs{});
  args.op = n.coin() ? TUFF_SELECT_NONZERO : TUFF_SELECT_UNIQUE;
  args.dtype = call.any_type(), args.mask_type = n.coin() ? int32_t{TUFF_BOOL} : call.any_type();
  args.n = call.size(), args.equal_nan = n.coin();
  args.index_type = args.n <= uint64_t{1} << 31 ? n.one_of<int32_t>({TUFF_U32, TUFF_I32, TUFF_U64, TUFF_I64})
                                                : n.one_of<int32_t>({TUFF_U64, TUFF_I64});
  args.capacity = n.coin() ? args.n : n.coin() ? n.below(args.n + 1) : call.size();
  call.tell("dtype", args.dtype), call.tell("op", args.op), call.tell("mask_type", args.mask_type);
  call.tell("index_type", args.index_type), call.tell("n", args.n), call.tell("capacity", args.capacity);
  const uint64_t wanted = 1 + n.below(7), room = args.room();
  const bool values = (wanted & 1) != 0;
  if (!args.unique()) args.mask = call.input("mask", args.n, dtype_size(args.mask_type));
  if (args.unique() || values) args.input = call.input("input", args.n, dtype_size(args.dtype));
  if (!args.unique() && values && room == 0) call.not_used(args.input);  // nothing is stored
  const auto output = [&](const char* name, uint64_t element) {
    const Buffer* result = call.output(name, args.capacity, element, args.capacity <= args.n);
    if (args.capacity > args.n) call.has_to_be(result, 0, args.n);
    return result;
  };
  if (values) args.output = output("output", dtype_size(args.dtype));
  if ((wanted & 2) != 0) args.indices = output("indices", dtype_size(args.index_type));
  if ((wanted & 4) != 0) args.count = call.output("count", 1, 8);
  set(call, tuff::operations::select, args);
}

void draw_pad(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  struct Widths {
    std::array<int64_t, 8> before{}, after{};
  };
  Widths& widths = call.keep(Widths{});
  tuff::PadArgs& args = call.keep(tuff::PadArgs{});
  args.dtype = call.any_type(), args.mode = static_cast<int32_t>(n.below(5));
  Shape out = shape;
  for (uint32_t i = 0; i < shape.rank; ++i) {
    if (args.mode != TUFF_PAD_CONSTANT && shape.sizes[i] == 0) shape.sizes[i] = out.sizes[i] = 1;
    if (n.coin(3)) continue;
    const auto width = [&] {
      return static_cast<int64_t>(n.coin(8) ? call.size() : n.below(4)) - (shape.sizes[i] > 9 ? 2 : 0);
    };
    widths.before[i] = width(), widths.after[i] = width();
    out.sizes[i] += static_cast<uint64_t>(widths.before[i] + widths.after[i]);
  }
  args.shape = shape.sizes.data(), args.rank = shape.rank;
  args.before = widths.before.data(), args.after = widths.after.data();
  call.tell("dtype", args.dtype), call.tell("mode", args.mode);
  call.tell("before", widths.before), call.tell("after", widths.after);
  const uint64_t results = out.elements();
  args.input = call.input("input", results == 0 ? 0 : shape.elements(), dtype_size(args.dtype));
  call.read_partly(args.input);
  const auto crops = [](int64_t width) { return width < 0; };
  if (results != 0 && std::ranges::none_of(widths.before, crops) && std::ranges::none_of(widths.after, crops)) {
    call.has_to_read(args.input, 0, shape.elements());
  }
  args.output = call.output("output", results, dtype_size(args.dtype));
  set(call, tuff::operations::pad, args);
}

void draw_copy_strided(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  struct Strides {
    std::array<int64_t, 8> input{}, output{};
  };
  Strides& strides = call.keep(Strides{});
  tuff::CopyStridedArgs& args = call.keep(tuff::CopyStridedArgs{});
  args.dtype = call.any_type();
  args.shape = shape.sizes.data(), args.rank = shape.rank;
  const uint64_t count = shape.elements();
  struct Reach {
    uint64_t elements, first;
    bool gaps;
  };
  const auto draw = [&](std::array<int64_t, 8>& of, bool repeats) {
    Reach reach{1, 0, false};
    std::array<uint32_t, 8> order{};
    for (uint32_t i = 0; i < shape.rank; ++i) order[i] = i;
    for (uint32_t i = shape.rank; i > 1 && n.coin(); --i) std::swap(order[i - 1], order[n.below(i)]);
    const bool gaps = n.coin();
    for (uint32_t i = shape.rank; i-- > 0 && count != 0;) {
      const uint64_t size = shape.sizes[order[i]];
      if (repeats && n.coin(6)) {
        reach.gaps = true;
        continue;
      }
      const uint64_t more = gaps && n.coin(3) ? n.below(5) : 0, stride = plus(reach.elements, more);
      reach.gaps = reach.gaps || (more != 0 && size > 1);
      const uint64_t far = times(stride, size - 1);
      if (plus(reach.elements, far) >> 60 != 0) {
        of[order[i]] = 0, reach.elements = ~uint64_t{0};
        continue;
      }
      const bool back = n.coin(4);
      of[order[i]] = back ? -static_cast<int64_t>(stride) : static_cast<int64_t>(stride);
      reach.elements += far;
      if (back) reach.first += far;
    }
    return reach;
  };
  const Reach from = draw(strides.input, true), to = draw(strides.output, false);
  args.input_strides = strides.input.data(), args.output_strides = strides.output.data();
  args.input_first = from.first, args.output_first = to.first;
  call.tell("dtype", args.dtype), call.tell("input_strides", strides.input);
  call.tell("output_strides", strides.output);
  args.input = call.input("input", count == 0 ? 0 : from.elements, dtype_size(args.dtype));
  call.read_partly(args.input);
  args.output = call.output("output", count == 0 ? 0 : to.elements, dtype_size(args.dtype), !to.gaps);
  set(call, tuff::operations::copy_strided, args);
}

void draw_cast(Call& call) {
  Numbers& n = call.numbers;
  tuff::CastArgs& args = call.keep(tuff::CastArgs{});
  args.from = call.any_type(), args.to = n.coin(8) ? args.from : call.any_type();
  args.n = n.coin() ? call.size() : times(call.size(), call.size());
  call.tell("from", args.from), call.tell("to", args.to), call.tell("n", args.n);
  args.input = call.input("input", args.n, dtype_size(args.from));
  const bool alike = dtype_size(args.from) == dtype_size(args.to);
  args.output = call.output_or(alike ? args.input : nullptr, "output", args.n, dtype_size(args.to));
  set(call, tuff::operations::cast, args);
}

}  // namespace tuff_test
