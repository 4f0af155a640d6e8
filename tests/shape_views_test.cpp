// Operations that move elements, on views: all offsets, first elements and lengths at which kernels choose units of
// several elements, which must be aligned to their size. Each call has its own place in one buffer, which is read once
// and compared byte for byte, so that writes beside a view are found too.
#include <algorithm>
#include <array>
#include <cstring>

#include "support/stored.hpp"

namespace tuff_test::shape_views_test {
namespace {

constexpr uint64_t kAround = 64;  // guard bytes before and after each place

class Places {
 public:
  Places(tuff_context context, uint64_t bytes, unsigned char guard)
      : context_(context), buffer_(context, bytes), wanted_(bytes, guard) {
    EXPECT_OK(tuff_copy_htod(context, buffer_, 0, wanted_.data(), bytes));
  }
  // A view `shift` bytes after a multiple of 64, which is expected to hold these bytes.
  OwnBuffer expect(uint64_t shift, const Bytes& bytes) {
    const uint64_t begin = next_ + kAround + shift, end = begin + bytes.size();
    next_ = (end + 63) / 64 * 64;
    EXPECT_LE(next_ + kAround, wanted_.size()) << "too little room for all places";
    if (next_ + kAround > wanted_.size()) return {};
    std::copy(bytes.begin(), bytes.end(), wanted_.begin() + static_cast<ptrdiff_t>(begin));
    tuff_buffer view = 0;
    EXPECT_OK(tuff_view(buffer_, begin, bytes.size(), &view));
    names_.emplace_back(begin, testing::PrintToString(begin));
    return OwnBuffer(view);
  }
  // Describes the last place.
  void name(const std::string& text) { names_.back().second = text; }
  void check() const {
    Bytes got(wanted_.size());
    ASSERT_OK(tuff_copy_dtoh(context_, got.data(), buffer_, 0, got.size()));
    uint64_t wrong = 0;
    for (size_t i = 0; i < names_.size(); ++i) {
      const uint64_t begin = i == 0 ? 0 : names_[i].first - kAround;
      const uint64_t end = i + 1 == names_.size() ? got.size() : names_[i + 1].first - kAround;
      if (std::memcmp(got.data() + begin, wanted_.data() + begin, end - begin) == 0) continue;
      if (++wrong <= 5) ADD_FAILURE() << names_[i].second << ": wrong bytes, or some beside the view";
    }
    EXPECT_EQ(wrong, 0u) << "of " << names_.size();
  }

 private:
  tuff_context context_;
  OwnBuffer buffer_;
  Bytes wanted_;
  uint64_t next_ = 0;
  std::vector<std::pair<uint64_t, std::string>> names_;
};

class ShapeViews : public OnBackend {
 protected:
  // Fills the source, on the device and here, with bytes that all differ from the guard.
  void fill_source(uint64_t bytes) {
    source_.resize(bytes);
    Random random(bytes);
    for (unsigned char& byte : source_) byte = static_cast<unsigned char>(random.next() % 0x6b);
    input_ = OwnBuffer(context(), bytes);
    ASSERT_OK(tuff_copy_htod(context(), input_, 0, source_.data(), bytes));
  }
  OwnBuffer source_view(uint64_t offset, uint64_t bytes) {
    tuff_buffer view = 0;
    EXPECT_OK(tuff_view(input_, offset, bytes, &view));
    return OwnBuffer(view);
  }
  Bytes source(uint64_t begin, uint64_t bytes) const {
    const auto from = source_.begin() + static_cast<ptrdiff_t>(begin);
    return {from, from + static_cast<ptrdiff_t>(bytes)};
  }
  Bytes source_;
  OwnBuffer input_;
};

constexpr int32_t kSizes[] = {TUFF_U8, TUFF_BF16, TUFF_F32, TUFF_F64};  // a type of each size

// An offset and a first element that are not aligned may be so together. Units are then counted from there, not from
// the start of the view.
TEST_P(ShapeViews, SliceOfAnyOffsetStartAndLength) {
  fill_source(4096);
  for (const int32_t dtype : kSizes) {
    const uint64_t size = size_of(dtype);
    Places places(context(), 4 << 20, 0x6b);
    for (uint64_t offset = 0; offset <= 68; offset += size) {
      for (uint64_t start = 0; start <= 8; ++start) {
        for (uint64_t length = 1; length <= 17; ++length) {
          const uint64_t all = start + length + 3, shift = (offset + start * size + length * size) % 24 / size * size;
          const OwnBuffer from = source_view(offset, all * size);
          const OwnBuffer to = places.expect(shift, source(offset + start * size, length * size));
          places.name(std::string(name_of(dtype)) + " offset " + std::to_string(offset) + " start " +
                      std::to_string(start) + " length " + std::to_string(length) + " to " + std::to_string(shift));
          ASSERT_OK(tuff_slice(context(), dtype, from, to, &all, 1, &start, nullptr, &length));
        }
      }
    }
    places.check();
  }
}

// Rows whose pitch is not a multiple of the first row's alignment, and outputs at every offset.
TEST_P(ShapeViews, SliceOfRows) {
  fill_source(4096);
  for (const int32_t dtype : kSizes) {
    const uint64_t size = size_of(dtype);
    Places places(context(), 8 << 20, 0x6b);
    for (uint64_t offset = 0; offset <= 20; offset += size) {
      for (uint64_t shift = 0; shift <= 20; shift += size) {
        for (const uint64_t pitch : {8, 9, 12, 16}) {
          for (uint64_t start = 0; start <= 4; ++start) {
            for (const uint64_t length : {1, 2, 4}) {
              const uint64_t shape[2] = {4, pitch}, first[2] = {1, start}, part[2] = {3, length};
              Bytes wanted;
              for (uint64_t row = 1; row < 4; ++row) {
                const Bytes cut = source(offset + (row * pitch + start) * size, length * size);
                wanted.insert(wanted.end(), cut.begin(), cut.end());
              }
              const OwnBuffer from = source_view(offset, 4 * pitch * size), to = places.expect(shift, wanted);
              places.name(std::string(name_of(dtype)) + " offset " + std::to_string(offset) + " to " +
                          std::to_string(shift) + " pitch " + std::to_string(pitch) + " start " +
                          std::to_string(start) + " length " + std::to_string(length));
              ASSERT_OK(tuff_slice(context(), dtype, from, to, shape, 2, first, nullptr, part));
            }
          }
        }
      }
    }
    places.check();
  }
}

// The second input starts within the output, and the output's own offset may restore its alignment.
TEST_P(ShapeViews, ConcatIntoAnyOffset) {
  fill_source(4096);
  for (const int32_t dtype : kSizes) {
    const uint64_t size = size_of(dtype);
    Places places(context(), 4 << 20, 0x6b);
    for (uint64_t shift = 0; shift <= 36; shift += size) {
      for (uint64_t first = 1; first <= 8; ++first) {
        for (uint64_t second = 1; second <= 17; second += second < 5 ? 1 : 3) {
          const uint64_t offset = (shift + first * size) % 32 / size * size;
          const uint64_t sizes[2] = {first, second}, sum = first + second;
          const OwnBuffer a = source_view(512, first * size), b = source_view(1024 + offset, second * size);
          Bytes wanted = source(512, first * size);
          const Bytes behind = source(1024 + offset, second * size);
          wanted.insert(wanted.end(), behind.begin(), behind.end());
          const OwnBuffer to = places.expect(shift, wanted);
          places.name(std::string(name_of(dtype)) + " offset " + std::to_string(offset) + " to " +
                      std::to_string(shift) + " sizes " + std::to_string(first) + " " + std::to_string(second));
          const tuff_buffer inputs[2] = {a, b};
          ASSERT_OK(tuff_concat(context(), dtype, inputs, sizes, 2, to, &sum, 1, 0));
        }
      }
    }
    places.check();
  }
}

// A slice combined with a concatenation: part of a view is copied into part of a view, along the second axis.
TEST_P(ShapeViews, ConcatOfRows) {
  fill_source(4096);
  for (const int32_t dtype : kSizes) {
    const uint64_t size = size_of(dtype);
    Places places(context(), 4 << 20, 0x6b);
    for (uint64_t shift = 0; shift <= 20; shift += size) {
      for (uint64_t offset = 0; offset <= 20; offset += size) {
        for (const auto& sizes : {std::array<uint64_t, 3>{1, 2, 1}, {2, 4, 2}, {4, 4, 8}, {1, 8, 7}, {3, 1, 12}}) {
          const uint64_t sum = sizes[0] + sizes[1] + sizes[2], shape[2] = {3, sum};
          OwnBuffer parts[3];
          tuff_buffer inputs[3];
          uint64_t places_of[3];
          for (int i = 0; i < 3; ++i) {
            places_of[i] = static_cast<uint64_t>(i) * 1024 + (i == 1 ? offset : 0);
            parts[i] = source_view(places_of[i], 3 * sizes[i] * size);
            inputs[i] = parts[i];
          }
          Bytes wanted;
          for (uint64_t row = 0; row < 3; ++row) {
            for (int i = 0; i < 3; ++i) {
              const Bytes part = source(places_of[i] + row * sizes[i] * size, sizes[i] * size);
              wanted.insert(wanted.end(), part.begin(), part.end());
            }
          }
          const OwnBuffer to = places.expect(shift, wanted);
          places.name(std::string(name_of(dtype)) + " offset " + std::to_string(offset) + " to " +
                      std::to_string(shift) + " sizes " + std::to_string(sizes[0]) + " " + std::to_string(sizes[1]));
          ASSERT_OK(tuff_concat(context(), dtype, inputs, sizes.data(), 3, to, shape, 2, 1));
        }
      }
    }
    places.check();
  }
}

TEST_P(ShapeViews, PermuteOfAnyOffset) {
  fill_source(8192);
  struct Case {
    std::array<uint64_t, 3> shape;
    std::array<uint32_t, 3> order;
  };
  for (const int32_t dtype : kSizes) {
    const uint64_t size = size_of(dtype);
    Places places(context(), 8 << 20, 0x6b);
    for (const Case& c : {Case{{2, 3, 4}, {0, 1, 2}}, Case{{2, 3, 8}, {1, 0, 2}}, Case{{1, 8, 8}, {0, 2, 1}},
                          Case{{2, 12, 16}, {0, 2, 1}}, Case{{2, 20, 24}, {2, 0, 1}}, Case{{3, 5, 6}, {1, 0, 2}}}) {
      const uint64_t count = c.shape[0] * c.shape[1] * c.shape[2];
      const uint64_t strides[3] = {c.shape[1] * c.shape[2], c.shape[2], 1};
      for (uint64_t offset = 0; offset <= 20; offset += size) {
        for (uint64_t shift = 0; shift <= 20; shift += size) {
          Bytes wanted;
          for (uint64_t i = 0; i < c.shape[c.order[0]]; ++i) {
            for (uint64_t j = 0; j < c.shape[c.order[1]]; ++j) {
              for (uint64_t k = 0; k < c.shape[c.order[2]]; ++k) {
                const uint64_t at = i * strides[c.order[0]] + j * strides[c.order[1]] + k * strides[c.order[2]];
                const Bytes element = source(offset + at * size, size);
                wanted.insert(wanted.end(), element.begin(), element.end());
              }
            }
          }
          const OwnBuffer from = source_view(offset, count * size), to = places.expect(shift, wanted);
          places.name(std::string(name_of(dtype)) + " of " + std::to_string(c.shape[1]) + "x" +
                      std::to_string(c.shape[2]) + " offset " + std::to_string(offset) + " to " +
                      std::to_string(shift));
          ASSERT_OK(tuff_permute(context(), dtype, from, to, c.shape.data(), 3, c.order.data()));
        }
      }
    }
    places.check();
  }
}

TEST_P(ShapeViews, GatherOfAnyOffset) {
  fill_source(4096);
  constexpr uint32_t kIndices[4] = {2, 7, 0, 4};  // the axis has 5: the second is out of range
  const OwnBuffer numbers(context(), 64);
  for (const int32_t dtype : kSizes) {
    const uint64_t size = size_of(dtype);
    Places places(context(), 4 << 20, 0x6b);
    for (const uint64_t place : {0, 4, 12}) {
      ASSERT_OK(tuff_copy_htod(context(), numbers, place, kIndices, sizeof kIndices));
      tuff_buffer view = 0;
      ASSERT_OK(tuff_view(numbers, place, sizeof kIndices, &view));
      const OwnBuffer indices(view);
      for (const uint64_t inner : {1, 2, 3, 4, 8, 16}) {
        for (uint64_t offset = 0; offset <= 20; offset += size) {
          for (uint64_t shift = 0; shift <= 20; shift += size) {
            const uint64_t shape[3] = {2, 5, inner};
            Bytes wanted;
            for (uint64_t outer = 0; outer < 2; ++outer) {
              for (const uint32_t index : kIndices) {
                const uint64_t at = offset + (outer * 5 + index) * inner * size;
                const Bytes row = index < 5 ? source(at, inner * size) : Bytes(inner * size, 0);
                wanted.insert(wanted.end(), row.begin(), row.end());
              }
            }
            const OwnBuffer from = source_view(offset, 10 * inner * size), to = places.expect(shift, wanted);
            places.name(std::string(name_of(dtype)) + " inner " + std::to_string(inner) + " offset " +
                        std::to_string(offset) + " to " + std::to_string(shift));
            ASSERT_OK(tuff_gather(context(), dtype, TUFF_U32, from, indices, to, shape, 3, 1, 4));
          }
        }
      }
    }
    places.check();
  }
}

// Between equal types a cast is a copy. Between others it accesses vec4s where both operands are aligned for it.
TEST_P(ShapeViews, CastOfAnyOffset) {
  fill_source(4096);
  for (const int32_t dtype : {TUFF_U8, TUFF_U32}) {
    const uint64_t size = size_of(dtype);
    const int32_t other = dtype == TUFF_U8 ? TUFF_U32 : TUFF_F64;
    Places places(context(), 4 << 20, 0x6b);
    for (uint64_t offset = 0; offset <= 20; offset += size) {
      for (uint64_t shift = 0; shift <= 20; shift += size) {
        for (uint64_t n = 1; n <= 17; n += 4) {
          const OwnBuffer from = source_view(offset, n * size), same = places.expect(shift, source(offset, n * size));
          places.name(std::string(name_of(dtype)) + " offset " + std::to_string(offset) + " to " +
                      std::to_string(shift));
          ASSERT_OK(tuff_cast(context(), dtype, dtype, from, same, n));
          Bytes wanted(n * size_of(other));
          for (uint64_t i = 0; i < n; ++i) {
            set_element(other, wanted, i, element(dtype, source(offset, n * size), i));
          }
          const OwnBuffer to = places.expect(shift / size * size_of(other), wanted);
          places.name(std::string(name_of(dtype)) + " as another type, offset " + std::to_string(offset) + " to " +
                      std::to_string(shift));
          ASSERT_OK(tuff_cast(context(), dtype, other, from, to, n));
        }
      }
    }
    places.check();
  }
}

TEST_P(ShapeViews, CopyAndFillOfAnyOffset) {
  fill_source(4096);
  Places places(context(), 8 << 20, 0x6b);
  for (uint64_t offset = 0; offset <= 20; ++offset) {
    for (uint64_t shift = 0; shift <= 20; ++shift) {
      for (const uint64_t n : {1, 3, 4, 8, 16, 20, 32, 48}) {
        const OwnBuffer from = source_view(offset, n), to = places.expect(shift, source(offset, n));
        places.name("copy of " + std::to_string(n) + " offset " + std::to_string(offset) + " to " +
                    std::to_string(shift));
        ASSERT_OK(tuff_copy_dtod(context(), to, 0, from, 0, n));
      }
    }
    for (const uint64_t pattern : {1, 2, 4, 8, 16}) {
      for (const uint64_t times : {1, 2, 3, 5}) {
        Bytes wanted;
        const Bytes one = source(offset, pattern);
        for (uint64_t i = 0; i < times; ++i) wanted.insert(wanted.end(), one.begin(), one.end());
        const OwnBuffer to = places.expect(offset, wanted);
        places.name("fill by " + std::to_string(pattern) + " at " + std::to_string(offset));
        ASSERT_OK(tuff_fill(context(), to, 0, wanted.size(), one.data(), pattern));
      }
    }
  }
  places.check();
}
TUFF_ON_BACKENDS(ShapeViews);

}  // namespace
}  // namespace tuff_test::shape_views_test
