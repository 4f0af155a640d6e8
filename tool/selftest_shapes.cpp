// Operations that move elements, and those for which a few cases are enough.
#include "tool/selftest_cases.hpp"

#include <fmt/format.h>

#include <utility>

#include "tool/matrix_rows.hpp"

namespace tool {
namespace {

using tuff::DType;

Case rope_case() {
  const Case entry = exact_case("rope", "2x3x40x64 from position 100000", {15'360}, 15'360,
                                [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
                                  context.rope(DType::f32, in[0], out, 2, 3, 40, 64, 100'000);
                                });
  return within(entry, 600 * (4 * 2 * kRounding + 0x1p-29 + 3 * kRounding));
}

// Numbers of magnitude up to 300 as multiples of 2.5, which 8 bits hold, in blocks of 25 along rows of 100.
struct Quantised {
  Quantised(const tuff::Context& context, const tuff::Buffer& input)
      : scales(context.alloc<float>(120 * 4)), numbers(context.alloc<uint8_t>(12'000)) {
    const float scale = 2.5F;
    tuff_fill(context.handle(), scales.handle(), 0, 120 * 4 * 4, &scale, sizeof scale);
    tuff_quantize_desc desc{};
    desc.format = TUFF_QUANT_I8, desc.dtype = TUFF_F32, desc.granularity = TUFF_QUANT_PER_BLOCK, desc.block_size = 25;
    desc.input = input.handle(), desc.scales = scales.handle(), desc.output = numbers.handle();
    desc.shape[0] = 120, desc.shape[1] = 100, desc.rank = 2, desc.axis = 1;
    context.quantize(desc);
  }
  tuff::Buffer scales, numbers;
};

void add_quant_cases(std::vector<Case>& cases) {
  // All backends compute the same bits.
  cases.push_back(exact_case("quantize", "120x100 to i8, and dequantize", {12'000}, 12'000,
                             [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
                               const Quantised q(context, in[0]);
                               tuff_dequantize_desc desc{};
                               desc.format = TUFF_QUANT_I8, desc.dtype = TUFF_F32;
                               desc.granularity = TUFF_QUANT_PER_BLOCK, desc.block_size = 25;
                               desc.input = q.numbers.handle(), desc.scales = q.scales.handle();
                               desc.output = out.handle();
                               desc.shape[0] = 120, desc.shape[1] = 100, desc.rank = 2, desc.axis = 1;
                               context.dequantize(desc);
                             }));
  // Bytes from 0 to 50 as blocks, so that their f16 scales are finite.
  cases.push_back(exact_case("dequantize", "60x256 of q8_0", {16'320}, 15'360,
                             [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
                               const tuff::Buffer blocks = context.alloc<uint8_t>(16'320),
                                                  scale = context.alloc<float>(1);
                               const float six = 6;
                               tuff_fill(context.handle(), scale.handle(), 0, sizeof six, &six, sizeof six);
                               tuff_quantize_desc bytes{};
                               bytes.format = TUFF_QUANT_U8, bytes.dtype = TUFF_F32, bytes.shape[0] = 16'320;
                               bytes.rank = 1, bytes.input = in[0].handle(), bytes.scales = scale.handle();
                               bytes.output = blocks.handle();
                               context.quantize(bytes);
                               tuff_dequantize_desc desc{};
                               desc.format = TUFF_QUANT_Q8_0, desc.dtype = TUFF_F32;
                               desc.input = blocks.handle(), desc.output = out.handle();
                               desc.shape[0] = 60, desc.shape[1] = 256, desc.rank = 2;
                               context.dequantize(desc);
                             }));
  const auto product = [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
    const Quantised q(context, in[0]);
    tuff_qgemm_desc desc{};
    desc.format = TUFF_QUANT_I8, desc.a_type = TUFF_F32;
    desc.granularity = TUFF_QUANT_PER_BLOCK, desc.block_size = 25;
    desc.m = 3, desc.n = 120, desc.k = 100;
    desc.a = in[0].handle(), desc.weights = q.numbers.handle(), desc.scales = q.scales.handle();
    desc.c = out.handle();
    context.qgemm(desc);
  };
  // 100 products of numbers of magnitude at most 302, and three more roundings than terms.
  cases.push_back(
      within(exact_case("qgemm", "3x120x100 by i8", {12'000}, 360, product), 103.0 * 100 * 302 * 302 * kRounding));
  const auto integers = [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
    const Quantised q(context, in[0]);
    tuff_qgemm_desc desc{};
    desc.format = TUFF_QUANT_I8, desc.a_type = TUFF_I8;
    desc.granularity = TUFF_QUANT_PER_BLOCK, desc.block_size = 25;
    desc.m = 3, desc.n = 120, desc.k = 100;
    desc.a = desc.weights = q.numbers.handle(), desc.scales = q.scales.handle(), desc.a_scales = q.scales.handle();
    desc.c = out.handle();
    context.qgemm(desc);
  };
  // Four blocks, and four more roundings.
  cases.push_back(
      within(exact_case("qgemm", "3x120x100 of i8 by i8", {12'000}, 360, integers), 8.0 * 100 * 302 * 302 * kRounding));
}

void add(std::vector<Case>& cases, const std::string& operation, const std::string& shape, uint64_t inputs,
         uint64_t results, Call call) {
  cases.push_back(exact_case(operation, shape, {inputs}, results, std::move(call)));
}

// The operations of single elements, rows and matrices that a matrix describes.
void add_matrix_cases(std::vector<Case>& cases) {
  for (const MatrixRow& row : matrix_rows()) {
    const MatrixCall made = row.make(row.rows, row.cols);
    Case entry = exact_case(row.operation, fmt::format("{}x{} {}", row.rows, row.cols, row.form), made.inputs,
                            made.results, made.call);
    cases.push_back(row.bound == 0 ? std::move(entry) : within(std::move(entry), row.bound));
  }
}

void add_moving_cases(std::vector<Case>& cases) {
  add(cases, "permute", "4x33x8x20 by 0,2,1,3", 21'120, 21'120,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        context.permute(DType::f32, in[0], out, {4, 33, 8, 20}, {0, 2, 1, 3});
      });
  add(cases, "binary sub", "64x200x9 with 200x1", 115'200, 115'200,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_binary_desc desc{};
        desc.dtype = TUFF_F32, desc.op = TUFF_BINARY_SUB;
        desc.a = in[0].handle(), desc.b = in[0].handle(), desc.output = out.handle();
        desc.rank = 3;
        desc.a_shape[0] = 64, desc.a_shape[1] = 200, desc.a_shape[2] = 9;
        desc.b_shape[0] = 1, desc.b_shape[1] = 200, desc.b_shape[2] = 1;
        context.binary(desc);
      });
  add(cases, "slice", "90x100 from 5,3 take 80x64", 9'000, 5'120,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        context.slice(DType::f32, in[0], out, {90, 100}, {5, 3}, {80, 64});
      });
  add(cases, "gather", "5000 rows of 300x33", 9'900, 165'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        // Integers from -300 to 300, some of which are out of range as indices.
        const tuff::Buffer indices = context.alloc_bytes(4 * 5'000);
        context.cast(DType::f32, DType::i32, in[0], indices, 5'000);
        context.gather(DType::f32, DType::i32, in[0], indices, out, {300, 33}, 0, 5'000);
      });
  for (const uint64_t k : {uint64_t{0}, uint64_t{7}}) {
    add(cases, "sort", k == 0 ? "2x4500 axis 1" : "4500x2 axis 0, 7 largest", 9'000, k == 0 ? 9'000 : 14,
        [k](const tuff::Context& context, const Buffers& in, const auto& out) {
          tuff_sort_desc desc{};
          desc.dtype = TUFF_F32, desc.input = in[0].handle(), desc.values = out.handle(), desc.rank = 2;
          desc.shape[0] = k == 0 ? 2 : 4'500, desc.shape[1] = k == 0 ? 4'500 : 2, desc.axis = k == 0 ? 1 : 0;
          desc.k = k, desc.descending = k != 0 ? 1 : 0;
          context.sort(desc);
        });
  }
  for (const bool set : {true, false}) {
    // Updates are rounded to integers, so that sums are exact in any order. Indices from -300 to 300: some repeat, and
    // some are out of range.
    add(cases, "scatter", set ? "5000 rows of 33 into 300, set" : "5000 rows of 33 into 300, add", 165'000, 9'900,
        [set](const tuff::Context& context, const Buffers& in, const auto& out) {
          const tuff::Buffer indices = context.alloc_bytes(4 * 5'000), whole = context.alloc_bytes(4 * 165'000),
                             updates = context.alloc_bytes(4 * 165'000);
          context.cast(DType::f32, DType::i32, in[0], indices, 5'000);
          context.cast(DType::f32, DType::i32, in[0], whole, 165'000);
          context.cast(DType::i32, DType::f32, whole, updates, 165'000);
          context.fill<float>(out, 0.0f, 9'900);
          tuff_scatter_desc desc{};
          desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.op = set ? TUFF_SCATTER_SET : TUFF_SCATTER_ADD;
          desc.indices = indices.handle(), desc.updates = updates.handle(), desc.output = out.handle();
          desc.rank = 2, desc.shape[0] = 300, desc.shape[1] = 33, desc.count = 5'000;
          context.scatter(desc);
        });
  }
  for (const bool unique : {false, true}) {
    add(cases, "select", unique ? "runs of 9000" : "9000 by a mask", 9'000, 9'000,
        [unique](const tuff::Context& context, const Buffers& in, const auto& out) {
          // Integers from -300 to 300, of which some are 0 and some are equal to their neighbours.
          const tuff::Buffer whole = context.alloc_bytes(4 * 9'000);
          context.cast(DType::f32, DType::i32, in[0], whole, 9'000);
          context.fill<float>(out, 0.0f, 9'000);
          tuff_select_desc desc{};
          desc.dtype = unique ? TUFF_I32 : TUFF_F32, desc.mask_type = TUFF_I32;
          desc.op = unique ? TUFF_SELECT_UNIQUE : TUFF_SELECT_NONZERO;
          desc.input = unique ? whole.handle() : in[0].handle(), desc.mask = unique ? TUFF_NULL_HANDLE : whole.handle();
          (unique ? desc.indices : desc.output) = out.handle();
          desc.n = desc.capacity = 9'000;
          context.select(desc);
        });
  }
  add(cases, "pad", "90x100 by 7 and 9, reflected", 9'000, 12'296,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_pad_desc desc{};
        desc.dtype = TUFF_F32, desc.mode = TUFF_PAD_REFLECT, desc.rank = 2;
        desc.input = in[0].handle(), desc.output = out.handle();
        desc.shape[0] = 90, desc.shape[1] = 100;
        for (int i = 0; i < 2; ++i) desc.before[i] = 7, desc.after[i] = 9;
        context.pad(desc);
      });
  add(cases, "copy_strided", "90x100, backwards and transposed", 9'000, 9'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_copy_strided_desc desc{};
        desc.dtype = TUFF_F32, desc.rank = 2;
        desc.input = in[0].handle(), desc.output = out.handle();
        desc.shape[0] = 90, desc.shape[1] = 100;
        desc.input_strides[0] = -100, desc.input_strides[1] = 1, desc.input_first = 8'900;
        desc.output_strides[0] = 1, desc.output_strides[1] = 90;
        context.copy_strided(desc);
      });
}

void add_window_cases(std::vector<Case>& cases) {
  add(cases, "max_pool", "3x50x60 by 3x3, stride 2, padding 1", 9'000, 2'250,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_pool_desc desc{};
        desc.dtype = TUFF_F32;
        desc.input = in[0].handle(), desc.output = out.handle();
        desc.batch = 1, desc.channels = 3, desc.spatial = 2;
        desc.in_shape[0] = 50, desc.in_shape[1] = 60, desc.out_shape[0] = 25, desc.out_shape[1] = 30;
        for (int i = 0; i < 2; ++i) desc.kernel[i] = 3, desc.stride[i] = 2, desc.padding[i] = 1;
        context.max_pool(desc);
      });
  for (const bool last : {false, true}) {
    add(cases, "resize", last ? "20x30x8 to 40x60, linear, channels last" : "3x40x40 to 80x80, linear", 4'800, 19'200,
        [=](const tuff::Context& context, const Buffers& in, const auto& out) {
          tuff_resize_desc desc{};
          desc.dtype = TUFF_F32;
          desc.input = in[0].handle(), desc.output = out.handle();
          desc.batch = 1, desc.channels = last ? 8 : 3, desc.spatial = 2, desc.mode = TUFF_RESIZE_LINEAR;
          desc.layout = last ? TUFF_LAYOUT_NHWC : TUFF_LAYOUT_NCHW;
          desc.in_shape[0] = last ? 20 : 40, desc.in_shape[1] = last ? 30 : 40;
          desc.out_shape[0] = last ? 40 : 80, desc.out_shape[1] = last ? 60 : 80;
          context.resize(desc);
        });
    // Four elements of magnitude at most 300, with 12 roundings for each of the two axes (tests/resize_test.cpp).
    cases.back() = within(cases.back(), 4 * 300 * 24 * kRounding);
  }
}

void add_scan_cases(std::vector<Case>& cases) {
  add(cases, "cumsum", "120x100 axis 1, reverse", 12'000, 12'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        context.cumsum(DType::f32, in[0], out, {120, 100}, 1, false, true);
      });
  // At most 100 values of magnitude at most 300, and as many roundings.
  cases.back() = within(cases.back(), 100.0 * 300 * 100 * kRounding);
  // A product of two values, rounded once.
  add(cases, "cumprod", "6000x2 axis 1, reverse", 12'000, 12'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        context.cumprod(DType::f32, in[0], out, {6'000, 2}, 1, false, true);
      });
  for (const bool largest : {true, false}) {
    add(cases, largest ? "cummax" : "cummin", "120x100 axis 1, exclusive", 12'000, 12'000,
        [largest](const tuff::Context& context, const Buffers& in, const auto& out) {
          tuff_scan_desc desc{};
          desc.dtype = TUFF_F32, desc.input = in[0].handle(), desc.output = out.handle();
          desc.shape[0] = 120, desc.shape[1] = 100, desc.rank = 2, desc.axis = 1, desc.exclusive = 1;
          largest ? context.cummax(desc) : context.cummin(desc);
        });
  }
  add(cases, "cumlogsumexp", "120x100 axis 1", 12'000, 12'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_scan_desc desc{};
        desc.dtype = TUFF_F32, desc.input = in[0].handle(), desc.output = out.handle();
        desc.shape[0] = 120, desc.shape[1] = 100, desc.rank = 2, desc.axis = 1;
        context.cumlogsumexp(desc);
      });
  // 16 roundings for each of 100 terms, and of the result and the largest element, of magnitude at most 300 + ln 100.
  cases.back() = within(cases.back(), 16 * (100.0 + 2 * 305) * kRounding);
}

void add_expression_cases(std::vector<Case>& cases) {
  // Integers, computed exactly: sums of 100 rows' and columns' numbers, and what is even of them.
  add(cases, "expr", "100x120, integers, broadcast and reversed", 12'000, 12'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        const tuff::Expr expr = context.expression("t = i32(a) * 3 + i32(b); f32(t % 2 == 0 ? t // 4 : -t)",
                                                   {{"a", TUFF_F32, 0}, {"b", TUFF_F32, 0}}, {{"y", TUFF_F32, 0}});
        tuff_expr_operand a{}, b{}, y{};
        a.buffer = in[0].handle(), a.first = 11'999, a.strided = 1, a.strides[0] = -120, a.strides[1] = -1;
        b.buffer = in[0].handle(), b.strided = 1, b.strides[1] = 1;
        y.buffer = out.handle();
        expr.run(context.handle(), {100, 120}, {a, b}, {y});
      });
  add(cases, "expr", "sum of 100x120 products, integers", 12'000, 100,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        const tuff::Expr expr = context.expression("sum(f32(i32(a) % 50) * (i32(b) % 50), axis=1)",
                                                   {{"a", TUFF_F32, 0}, {"b", TUFF_F32, 0}}, {{"y", TUFF_F32, 0}});
        tuff_expr_operand a{}, b{}, y{};
        a.buffer = in[0].handle();
        b.buffer = in[0].handle(), b.strided = 1, b.strides[1] = 1;
        y.buffer = out.handle();
        expr.run(context.handle(), {100, 120}, {a, b}, {y});
      });
}

void add_random_cases(std::vector<Case>& cases) {
  // All backends compute the same bits.
  add(cases, "random", "normal, 10001 values", 1, 10'001,
      [](const tuff::Context& context, const Buffers&, const auto& out) {
        tuff_random_desc desc{};
        desc.dtype = TUFF_F32, desc.distribution = TUFF_RANDOM_NORMAL;
        desc.output = out.handle(), desc.n = 10'001, desc.seed = 5;
        context.random(desc);
      });
  add(cases, "variates", "gamma, 10001 values", 1, 10'001,
      [](const tuff::Context& context, const Buffers&, const auto& out) {
        tuff_variates_desc desc{};
        desc.dtype = TUFF_F32, desc.distribution = TUFF_VARIATES_GAMMA, desc.first_value = 0.75;
        desc.output = out.handle(), desc.n = 10'001, desc.seed = 5;
        context.variates(desc);
      });
  // The product of an element with 4 / 3, correctly rounded.
  add(cases, "dropout", "10001 values", 10'001, 10'001,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_dropout_desc desc{};
        desc.dtype = TUFF_F32, desc.input = in[0].handle(), desc.output = out.handle();
        desc.n = 10'001, desc.seed = 5, desc.probability = 0.25;
        context.dropout(desc);
      });
}

void add_fft_case(std::vector<Case>& cases) {
  add(cases, "fft", "30x100 complex", 6'000, 6'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_fft_desc desc{};
        desc.dtype = TUFF_F32, desc.kind = TUFF_FFT_COMPLEX, desc.rank = 2;
        desc.input = in[0].handle(), desc.output = out.handle();
        desc.shape[0] = 30, desc.shape[1] = 100;
        context.fft(desc);
      });
  // 4 log2(100) roundings of the result's Euclidean norm, of 100 complex numbers whose parts are at most 300.
  cases.back() = within(cases.back(), 4 * 6.7 * 100 * 300 * 1.5 * kRounding);
}

void add_dct_case(std::vector<Case>& cases) {
  add(cases, "dct", "30x100 DCT-II", 3'000, 3'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_dct_desc desc{};
        desc.dtype = TUFF_F32, desc.kind = TUFF_DCT_2, desc.rank = 2;
        desc.input = in[0].handle(), desc.output = out.handle();
        desc.shape[0] = 30, desc.shape[1] = 100;
        context.dct(desc);
      });
  // 4 log2(200) + 8 roundings of the result's Euclidean norm, which is at most 2 sqrt(100) times that of 100 numbers of at
  // most 300.
  cases.back() = within(cases.back(), (4 * 7.7 + 8) * 2 * 100 * 300 * kRounding);
}

}  // namespace

void add_shape_cases(std::vector<Case>& cases) {
  add_matrix_cases(cases);
  add_moving_cases(cases);
  add_window_cases(cases);
  add_scan_cases(cases);
  add_expression_cases(cases);
  cases.push_back(rope_case());
  add_random_cases(cases);
  add_fft_case(cases);
  add_dct_case(cases);
  add_quant_cases(cases);
}

}  // namespace tool
