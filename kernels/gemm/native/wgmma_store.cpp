#include "kernels/gemm/native/wgmma_store.hpp"

#include <array>
#include <cstddef>

#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "planning/element_type.hpp"

namespace tuff::gemm {

using ptx::F32;
using ptx::if_true;
using ptx::multiply_add;
using ptx::multiply_wide;
using ptx::Pred;
using ptx::quotient;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

namespace {

class Store {
 public:
  Store(Writer& w, const Wgmma& options, const WgmmaFrame& frame) : w_(w), o_(options), f_(frame) {}

  // For each eight columns, a thread has two of its row and two of the row eight further down.
  void run(const Tile& tile, const U32& thread, const U32& lane) {
    const F32 alpha = o_.scaled ? f_.scales.factor : w_.parameter_float("push", offsetof(Wgmma::Push, alpha));
    const F32 beta = w_.parameter_float("push", offsetof(Wgmma::Push, beta));
    const U32 ldc = w_.parameter("push", offsetof(Wgmma::Push, ldc));
    const U64 stride = w_.parameter64("push", offsetof(Wgmma::Push, stride_c));
    const U64 slice = w_.parameter64("push", offsetof(Wgmma::Push, slice_c));
    const U64 matrix = f_.c + widen(tile.matrix) * stride + widen(tile.slice) * slice;
    const uint32_t size = stores_float8() ? 1 : o_.c_type == TUFF_F32 || (o_.type == TUFF_I8) ? 4 : 2;
    if (o_.windows == 2) {
      const U32 bytes = f_.per_image.number * w_.constant(size);
      jump_ = w_.result<Type::u64>("sub.u64", stride, widen(bytes));
    }
    const U32 quad = lane & 3;
    const U32 warp = thread >> 5;
    const U32 row = tile.row + ((o_.halves_columns() ? warp & 3 : warp) << 4) + (lane >> 2);
    for (uint32_t half = 0; half < 2; ++half) {
      const U32 at = row + half * 8;
      const U64 begin = matrix + multiply_wide(at, ldc) * size;
      if (o_.edge) row_exists_ = at < f_.m;
      if (o_.type == TUFF_I8) {
        store_integers(begin, tile.column, quad, half);
        continue;
      }
      if (stores_float8()) {
        store_bytes(begin, tile.column, quad, half, alpha, beta);
        continue;
      }
      prepare_epilogue(tile, at, quad, size);
      if (o_.vector && size == 2) {
        store_in_eights(begin, tile.column, quad, half, alpha, beta);
      } else {
        store_in_pairs(begin, tile.column, quad, half, size, alpha, beta);
      }
    }
  }

  // Where this row's bias and residual are. The bias of a row is one number.
  void prepare_epilogue(const Tile& tile, const U32& row, const U32& quad, uint32_t size) {
    const U32 first = tile.column + (quad << 1);
    if (o_.bias_axis != TUFF_BIAS_NONE) {
      U64 vector = f_.bias;
      if (o_.groups) {
        vector = f_.bias + multiply_wide(tile.matrix, f_.n * size);
      } else if (!o_.padded) {  // there, stride_bias is something else
        const U64 stride = w_.parameter64("push", offsetof(Wgmma::Push, stride_bias));
        vector = f_.bias + widen(tile.matrix) * stride;
      }
      const bool rows = o_.bias_axis == TUFF_BIAS_ROWS;
      bias_at_ = multiply_add(rows ? row : first, size, vector);
      if (rows) row_bias_ = element(bias_at_, 0, o_.edge ? &row_exists_ : nullptr);
    }
    if (o_.residual) {
      const U64 stride = w_.parameter64("push", offsetof(Wgmma::Push, stride_residual));
      const U32 ld = w_.parameter("push", offsetof(Wgmma::Push, ld_residual));
      const U64 begin = f_.residual + widen(tile.matrix) * stride + multiply_wide(row, ld) * size;
      residual_at_ = o_.windows == 2 ? begin : multiply_add(first, size, begin);
    }
  }

  F32 element(const U64& at, uint32_t offset, const Pred* exists) const {
    return ptx::load_element(o_.c_type, at, offset, exists);
  }

  const F32& sum(uint32_t eight, uint32_t half, uint32_t i) const { return f_.sums[eight * 4 + half * 2 + i]; }

  // Two elements of C before rounding. `at` is the address of the first; the second is only read if both exist.
  std::array<F32, 2> results(uint32_t eight, uint32_t half, const U64& at, uint32_t offset, const F32& alpha,
                             const F32& beta, const Pred* first, const Pred* second) {
    std::array<F32, 2> value{sum(eight, half, 0) * alpha, sum(eight, half, 1) * alpha};
    const uint32_t size = o_.c_type == TUFF_F32 ? 4 : 2;
    for (uint32_t i = 0; i < 2; ++i) {
      const Pred* exists = i == 0 ? first : second;
      const uint32_t column = (eight * 8 + i) * size;
      if (o_.beta) value[i] = multiply_add(beta, element(at, offset + i * size, exists), value[i]);
      if (o_.bias_axis == TUFF_BIAS_ROWS) value[i] = value[i] + row_bias_;
      if (o_.bias_axis == TUFF_BIAS_COLUMNS) value[i] = value[i] + element(bias_at_, column, exists);
      if (o_.residual && o_.windows == 2) {
        const U64 from = i == 0 || o_.vector ? walk_.offset : second_of_pair(walk_, size);
        value[i] = value[i] + element(residual_at_ + from, o_.vector ? i * size : 0, exists);
      } else if (o_.residual) {
        value[i] = value[i] + element(residual_at_, column, exists);
      }
      value[i] = ptx::activated(value[i], o_.activation);
      if (o_.scaled) value[i] = value[i] * f_.scales.after;
    }
    return value;
  }

  U32 packed(const std::array<F32, 2>& value) const { return ptx::packed_pair(o_.c_type, value[0], value[1]); }

  // If columns are windows of images: where a column is in its image, and the bytes from a row's begin to it.
  struct Walk {
    U32 pixel;
    U64 offset;
  };
  Walk start_walk(const U32& column, uint32_t size) {
    const U32 image = quotient(column, f_.per_image), pixel = column - image * f_.per_image.number;
    const U64 stride = w_.parameter64("push", offsetof(Wgmma::Push, stride_c));
    return {w_.variable(pixel), w_.variable(multiply_add(pixel, size, widen(image) * stride))};
  }
  // `count` columns further, at most kMinPerImage. One step after the other, because addresses of all columns at once
  // would not fit into the registers.
  void walk_on(const Walk& walk, uint32_t count, uint32_t size) {
    const U32 next = walk.pixel + count;
    const Pred over = next >= f_.per_image.number;
    w_.assign(walk.pixel, select(over, next - f_.per_image.number, next));
    w_.assign(walk.offset, walk.offset + uint64_t{count} * size);
    w_.emit(if_true(over), "add.u64 {}, {}, {};", walk.offset.text, walk.offset.text, jump_.text);
  }
  // The offset of the second column of a pair.
  U64 second_of_pair(const Walk& walk, uint32_t size) {
    const U64 at = w_.variable(walk.offset + uint64_t{size});
    const Pred over = walk.pixel + 1 == f_.per_image.number;
    w_.emit(if_true(over), "add.u64 {}, {}, {};", at.text, at.text, jump_.text);
    return at;
  }

  // Four threads transpose what they have of 32 columns, so that each stores eight in a row.
  void store_in_eights(const U64& begin, const U32& column, const U32& quad, uint32_t half, const F32& alpha,
                       const F32& beta) {
    const U32 first = column + (quad << 1);  // in the layout of the sums
    const U64 read = multiply_add(first, 2, begin);
    const U32 own = column + (quad << 3);
    const U64 to = multiply_add(own, 2, begin);
    const Pred odd = (quad & 1) != 0u, high = (quad & 2) != 0u;
    const bool windows = o_.windows == 2;
    const Walk own_walk = windows ? start_walk(own, 2) : Walk{};
    if (windows && o_.residual) walk_ = start_walk(first, 2);
    for (uint32_t eight = 0; eight < o_.group_columns() / 8; eight += 4) {
      std::array<U32, 4> v;
      for (uint32_t i = 0; i < 4; ++i) {
        Pred exists;
        if (o_.edge && (o_.beta || o_.has_operands())) exists = row_exists_ && first + (eight + i) * 8 < f_.n;
        const Pred* guard = exists.writer != nullptr ? &exists : nullptr;
        v[i] = packed(results(eight + i, half, read, (eight + i) * 16, alpha, beta, guard, guard));
        // One pair's activation after the other: interleaved, they need a register more than there are.
        if (keeps_order()) w_.emit("bar.warp.sync 0xffffffff;");
        if (windows && o_.residual) walk_on(walk_, 8, 2);
      }
      ptx::transpose_in_four(v, odd, high);
      const ptx::Guard guard = o_.edge ? if_true(row_exists_ && own + eight * 8 < f_.n) : ptx::Guard{};
      const U64 at = windows ? begin + own_walk.offset : to;
      w_.emit(guard, "st.global.v4.b32 [{}+{}], {{{}, {}, {}, {}}};", at.text, windows ? 0 : eight * 16, v[0].text,
              v[1].text, v[2].text, v[3].text);
      if (windows) walk_on(own_walk, 32, 2);
    }
  }

  bool keeps_order() const {
    return o_.activation > TUFF_ACTIVATION_RELU && o_.rows == 128 && o_.columns == 256 && (o_.edge || o_.windows == 2);
  }

  bool stores_float8() const { return kFloat8Types.has(o_.c_type); }

  // Four threads exchange pairs of 64 columns, so that each stores two times eight in a row.
  void store_bytes(const U64& begin, const U32& column, const U32& quad, uint32_t half, const F32& alpha,
                   const F32& beta) {
    const U32 own = column + (quad << 3);
    const U64 to = begin + widen(own);
    const Pred odd = (quad & 1) != 0u, high = (quad & 2) != 0u;
    const auto pair = [&](uint32_t eight) {
      const std::array<F32, 2> value = results(eight, half, begin, 0, alpha, beta, nullptr, nullptr);
      return ptx::packed_bytes(o_.c_type, value[0], value[1]);
    };
    for (uint32_t eight = 0; eight < o_.group_columns() / 8; eight += 8) {
      std::array<U32, 4> v;
      for (uint32_t i = 0; i < 4; ++i) v[i] = ptx::joined(pair(eight + i), pair(eight + i + 4));
      ptx::transpose_in_four(v, odd, high);
      for (uint32_t part = 0; part < 2; ++part) {
        const uint32_t first = eight * 8 + part * 32;
        const auto words = [&](uint32_t i) {
          const U32 word = w_.make<Type::u32>();
          w_.emit("prmt.b32 {}, {}, {}, {};", word.text, v[i].text, v[i + 1].text, part == 0 ? 0x5410 : 0x7632);
          return word;
        };
        const U32 low = words(0), top = words(2);
        const ptx::Guard guard = o_.edge ? if_true(row_exists_ && own + first < f_.n) : ptx::Guard{};
        w_.emit(guard, "st.global.v2.b32 [{}+{}], {{{}, {}}};", to.text, first, low.text, top.text);
      }
    }
  }

  void store_integers(const U64& begin, const U32& column, const U32& quad, uint32_t half) {
    const U32 first = column + (quad << 1);
    const U64 to = multiply_add(first, 4, begin);
    for (uint32_t eight = 0; eight < o_.group_columns() / 8; ++eight) {
      const U32 &low = f_.integer_sums[eight * 4 + half * 2], &high = f_.integer_sums[eight * 4 + half * 2 + 1];
      const ptx::Guard one = o_.edge ? if_true(row_exists_ && first + eight * 8 < f_.n) : ptx::Guard{};
      if (o_.vector) {  // n is even
        w_.emit(one, "st.global.v2.b32 [{}+{}], {{{}, {}}};", to.text, eight * 32, low.text, high.text);
        continue;
      }
      w_.emit(one, "st.global.b32 [{}+{}], {};", to.text, eight * 32, low.text);
      const ptx::Guard two = o_.edge ? if_true(row_exists_ && first + (eight * 8 + 1) < f_.n) : ptx::Guard{};
      w_.emit(two, "st.global.b32 [{}+{}], {};", to.text, eight * 32 + 4, high.text);
    }
  }

  void store_in_pairs(const U64& begin, const U32& column, const U32& quad, uint32_t half, uint32_t size,
                      const F32& alpha, const F32& beta) {
    const U32 first = column + (quad << 1);
    const U64 to = multiply_add(first, size, begin);
    if (o_.windows == 2) walk_ = start_walk(first, size);
    for (uint32_t eight = 0; eight < o_.group_columns() / 8; ++eight) {
      const uint32_t offset = eight * 8 * size;
      Pred exists, both;
      if (o_.edge) {
        exists = row_exists_ && first + eight * 8 < f_.n;
        both = row_exists_ && first + (eight * 8 + 1) < f_.n;
      }
      const Pred *one = o_.edge ? &exists : nullptr, *two = o_.edge ? &both : nullptr;
      const std::array<F32, 2> value = results(eight, half, to, offset, alpha, beta, one, two);
      const auto guard = [](const Pred* condition) {
        return condition != nullptr ? if_true(*condition) : ptx::Guard{};
      };
      if (o_.windows == 2) {
        store_pair_of_windows(begin, size, value, guard(one), guard(two));
        walk_on(walk_, 8, size);
      } else if (o_.c_type == TUFF_F32 && o_.vector) {  // n is even
        w_.emit(guard(one), "st.global.v2.f32 [{}+{}], {{{}, {}}};", to.text, offset, value[0].text, value[1].text);
      } else if (o_.c_type == TUFF_F32) {
        w_.emit(guard(one), "st.global.f32 [{}+{}], {};", to.text, offset, value[0].text);
        w_.emit(guard(two), "st.global.f32 [{}+{}], {};", to.text, offset + 4, value[1].text);
      } else {
        const auto [low, high] = ptx::halves_of(packed(value));
        w_.emit(guard(one), "st.global.b16 [{}+{}], {};", to.text, offset, low.text);
        w_.emit(guard(two), "st.global.b16 [{}+{}], {};", to.text, offset + 2, high.text);
      }
    }
  }

  void store_pair_of_windows(const U64& begin, uint32_t size, const std::array<F32, 2>& value, const ptx::Guard& one,
                             const ptx::Guard& two) {
    const U64 at = begin + walk_.offset;
    if (o_.c_type == TUFF_F32 && o_.vector) {
      w_.emit(one, "st.global.v2.f32 [{}], {{{}, {}}};", at.text, value[0].text, value[1].text);
      return;
    }
    const U64 next = begin + second_of_pair(walk_, size);
    if (o_.c_type == TUFF_F32) {
      w_.emit(one, "st.global.f32 [{}], {};", at.text, value[0].text);
      w_.emit(two, "st.global.f32 [{}], {};", next.text, value[1].text);
      return;
    }
    const auto [low, high] = ptx::halves_of(packed(value));
    w_.emit(one, "st.global.b16 [{}], {};", at.text, low.text);
    w_.emit(two, "st.global.b16 [{}], {};", next.text, high.text);
  }

  Writer& w_;
  const Wgmma& o_;
  const WgmmaFrame& f_;
  Pred row_exists_;
  U64 bias_at_, residual_at_;
  F32 row_bias_;
  // With windows.
  Walk walk_;
  U64 jump_;
};

}  // namespace

void store_tile(Writer& w, const Wgmma& options, const WgmmaFrame& frame, const Tile& tile, const U32& thread,
                const U32& lane) {
  Tile own = tile;
  if (options.halves_columns()) own.column = tile.column + (thread >> 7) * options.group_columns();
  Store(w, options, frame).run(own, thread, lane);
}

}  // namespace tuff::gemm
