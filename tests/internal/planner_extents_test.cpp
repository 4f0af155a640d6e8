// Both sides of the limits of linear algebra, Fourier transforms, random numbers and scatter, and how planners cut
// what is larger than a dispatch. Sizes are beyond any test's memory, so everything is only planned.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "internal/fake_recorder.hpp"
#include "kernels/fft/dct.hpp"
#include "kernels/fft/fft.hpp"
#include "kernels/indexing/scatter.hpp"
#include "kernels/indexing/select.hpp"
#include "kernels/linalg/linalg.hpp"
#include "kernels/random/random.hpp"
#include "kernels/softmax/softmax.hpp"
#include "kernels/sort/sort.hpp"
#include "planning/status.hpp"
#include "shaders/linalg_swap.hpp"
#include "shaders/softmax_columns.hpp"

namespace tuff {
namespace {

constexpr uint64_t kTriangle = uint64_t{1} << 20, kExtent = uint64_t{1} << 30;  // tuff.h: the first one is allowed

class PlannerExtents : public testing::Test {
 protected:
  PlannerExtents() {
    for (Buffer& buffer : buffers_) buffer.allocation = std::make_shared<Nowhere>(), buffer.bytes = uint64_t{1} << 62;
    traits_.max_range = ~uint64_t{0} >> 1;
  }
  // The message of the error that `call` ends with, after its status; "" if there is none. A planner that refuses a
  // call has recorded nothing.
  template <typename Call>
  std::string refused(const Call& call) {
    FakeRecorder recorder(traits_);
    try {
      call(recorder);
    } catch (const Error& error) {
      EXPECT_TRUE(recorder.kernels.empty()) << error.what();
      const char* const status = error.code() == TUFF_ERROR_UNSUPPORTED        ? "unsupported: "
                                 : error.code() == TUFF_ERROR_INVALID_ARGUMENT ? "argument: "
                                                                               : "another status: ";
      return status + std::string(error.what());
    }
    return "";
  }
  std::string cholesky(uint64_t n, uint64_t count, int32_t dtype = TUFF_F32) {
    return refused([&](Recorder& recorder) {
      record_cholesky(recorder, {dtype, TUFF_TRIANGLE_LOWER, n, {&buffers_[0], n, n * n}, nullptr, count});
    });
  }
  LuArgs lu_args(uint64_t m, uint64_t n, uint64_t count, int32_t dtype = TUFF_F32) {
    return {dtype, m, n, {&buffers_[0], n, m * n}, &buffers_[1], std::min(m, n), nullptr, count};
  }
  std::string lu(uint64_t m, uint64_t n, uint64_t count, int32_t dtype = TUFF_F32) {
    return refused([&](Recorder& recorder) { record_lu(recorder, lu_args(m, n, count, dtype)); });
  }
  std::string solve(int32_t side, uint64_t m, uint64_t n, uint64_t count, int32_t dtype = TUFF_F32) {
    const uint64_t extent = side == TUFF_SIDE_RIGHT ? n : m;
    return refused([&](Recorder& recorder) {
      record_triangular_solve(recorder, {dtype,
                                         side,
                                         TUFF_TRIANGLE_LOWER,
                                         TUFF_NO_TRANS,
                                         false,
                                         m,
                                         n,
                                         {&buffers_[0], extent, extent * extent},
                                         {&buffers_[1], n, m * n},
                                         count});
    });
  }
  LuSolveArgs lu_solve_args(uint64_t n, uint64_t nrhs, uint64_t count, int32_t dtype = TUFF_F32) {
    const MatrixArgs a{&buffers_[0], n, n * n}, b{&buffers_[1], nrhs, n * nrhs};
    return {dtype, TUFF_NO_TRANS, n, nrhs, a, b, &buffers_[2], n, count};
  }
  std::string lu_solve(uint64_t n, uint64_t nrhs, uint64_t count, int32_t dtype = TUFF_F32) {
    return refused([&](Recorder& recorder) { record_lu_solve(recorder, lu_solve_args(n, nrhs, count, dtype)); });
  }
  std::string determinant(uint64_t n, uint64_t count, int32_t dtype = TUFF_F32) {
    return refused([&](Recorder& recorder) {
      const MatrixArgs a{&buffers_[0], n, n * n};
      record_lu_determinant(recorder, {dtype, n, a, &buffers_[1], n, &buffers_[2], &buffers_[3], &buffers_[4], count});
    });
  }

  DeviceTraits traits_ = a_gpu();
  std::array<Buffer, 6> buffers_;
};

// Empty batches, because planning the largest extents takes minutes.
TEST_F(PlannerExtents, Triangles) {
  EXPECT_EQ(cholesky(kTriangle, 0), "");
  EXPECT_EQ(cholesky(kTriangle + 1, 0), "unsupported: n is 1048577, at most 1048576");
  EXPECT_EQ(lu(kTriangle, kTriangle, 0), "");
  EXPECT_EQ(lu(kTriangle, kExtent - 1, 0), "");
  EXPECT_EQ(lu(kExtent - 1, kTriangle, 0), "");
  EXPECT_EQ(lu(kTriangle + 1, kTriangle + 2, 0), "unsupported: m is 1048577, at most 1048576");
  EXPECT_EQ(lu(kTriangle + 2, kTriangle + 1, 0), "unsupported: n is 1048577, at most 1048576");
  EXPECT_EQ(lu(1, kExtent, 0), "unsupported: n is 1073741824, at most 1073741823");
  EXPECT_EQ(lu(kExtent, 1, 0), "unsupported: m is 1073741824, at most 1073741823");
  EXPECT_EQ(solve(TUFF_SIDE_LEFT, kTriangle, kExtent - 1, 0), "");
  EXPECT_EQ(solve(TUFF_SIDE_LEFT, kTriangle + 1, 1, 0), "unsupported: m is 1048577, at most 1048576");
  EXPECT_EQ(solve(TUFF_SIDE_LEFT, 1, kExtent, 0), "unsupported: n is 1073741824, at most 1073741823");
  EXPECT_EQ(solve(TUFF_SIDE_RIGHT, kExtent - 1, kTriangle, 0), "");
  EXPECT_EQ(solve(TUFF_SIDE_RIGHT, 1, kTriangle + 1, 0), "unsupported: n is 1048577, at most 1048576");
  EXPECT_EQ(solve(TUFF_SIDE_RIGHT, kExtent, 1, 0), "unsupported: m is 1073741824, at most 1073741823");
  EXPECT_EQ(lu_solve(kTriangle, kExtent - 1, 0), "");
  EXPECT_EQ(lu_solve(kTriangle + 1, 1, 0), "unsupported: n is 1048577, at most 1048576");
  EXPECT_EQ(lu_solve(1, kExtent, 0), "unsupported: nrhs is 1073741824, at most 1073741823");
  EXPECT_EQ(determinant(kTriangle, 0), "");
  EXPECT_EQ(determinant(kTriangle + 1, 0), "unsupported: n is 1048577, at most 1048576");
}

// A device without buffer addresses binds max_range bytes, of which 1,024 are left for alignment.
TEST_F(PlannerExtents, MatricesThatADescriptorHolds) {
  traits_.addresses = false, traits_.max_range = (1u << 20) + 1024;
  constexpr uint64_t kFits = 1u << 18, kDoubles = kFits / 2;  // elements
  const std::string refusal =
      "unsupported: the matrices have 262145 elements of f32, and the device binds 1049600 bytes";
  EXPECT_EQ(cholesky(1, kFits), "");
  EXPECT_EQ(cholesky(1, kFits + 1), refusal);
  EXPECT_EQ(cholesky(1, kDoubles, TUFF_F64), "");
  EXPECT_EQ(cholesky(1, kDoubles + 1, TUFF_F64),
            "unsupported: the matrices have 131073 elements of f64, and the device binds 1049600 bytes");
  EXPECT_EQ(lu(1, kFits, 1), "");
  EXPECT_EQ(lu(1, kFits + 1, 1), refusal);
  EXPECT_EQ(determinant(1, kFits), "");
  EXPECT_EQ(determinant(1, kFits + 1), refusal);
  // Either operand may be the larger one.
  EXPECT_EQ(solve(TUFF_SIDE_LEFT, 1, kFits, 1), "");
  EXPECT_EQ(solve(TUFF_SIDE_LEFT, 1, kFits + 1, 1), refusal);
  EXPECT_EQ(solve(TUFF_SIDE_RIGHT, kFits + 1, 1, 1), refusal);
  EXPECT_EQ(lu_solve(1, kFits, 1), "");
  EXPECT_EQ(lu_solve(1, kFits + 1, 1), refusal);
  EXPECT_EQ(lu_solve(512, 1, 1), "");
  EXPECT_EQ(lu_solve(513, 1, 1),
            "unsupported: the matrices have 263169 elements of f32, and the device binds 1049600 bytes");
  EXPECT_EQ(solve(TUFF_SIDE_LEFT, 512, 1, 1), "");
  EXPECT_NE(solve(TUFF_SIDE_LEFT, 513, 1, 1), "");
  // Matrices without elements, however long their rows.
  EXPECT_EQ(lu(0, kFits + 1, 1), "");
  EXPECT_EQ(solve(TUFF_SIDE_LEFT, 513, 0, 1), "");
}

// What lies between the first element of a batch and the last counts, however small the matrices are.
TEST_F(PlannerExtents, BatchesOf2To39Elements) {
  const auto answer = [&](uint64_t span) {
    const MatrixArgs a{&buffers_[0], 1, span - 1};
    return refused([&](Recorder& recorder) {
      record_lu_determinant(recorder, {TUFF_F32, 1, a, &buffers_[1], 1, &buffers_[2], &buffers_[3], &buffers_[4], 2});
    });
  };
  constexpr uint64_t kMax = uint64_t{1} << 39;
  EXPECT_EQ(answer(kMax), "");
  EXPECT_EQ(answer(kMax + 1),
            "unsupported: the matrices and what lies between them have 549755813889 elements, more than 549755813888");
}

TEST_F(PlannerExtents, DoublesNeedADeviceThatComputesThem) {
  for (const bool f64 : {true, false}) {
    traits_.f64 = f64;
    for (const int32_t dtype : {TUFF_F32, TUFF_F64}) {
      const bool fails = !f64 && dtype == TUFF_F64;
      EXPECT_EQ(!cholesky(3, 2, dtype).empty(), fails);
      EXPECT_EQ(!lu(3, 2, 2, dtype).empty(), fails);
      EXPECT_EQ(!solve(TUFF_SIDE_LEFT, 3, 2, 2, dtype).empty(), fails);
      EXPECT_EQ(!lu_solve(3, 2, 2, dtype).empty(), fails);
      EXPECT_EQ(!determinant(3, 2, dtype).empty(), fails);
    }
  }
}

// The matrices of a part, and the part's offset in elements.
struct Part {
  uint64_t groups, offset;
  bool operator==(const Part&) const = default;
};

TEST_F(PlannerExtents, BatchesAreCutWhereADispatchEnds) {
  const auto parts = [&](const char* name, const auto& call) {
    std::vector<Part> result;
    FakeRecorder recorder(traits_);
    recorder.seen = [&](const KernelRequest& kernel, const Dispatch& dispatch) {
      if (kernel.source().name != std::string_view(name)) return;
      const auto& groups = dispatch.group_counts();
      result.push_back({uint64_t{groups[0]} * groups[1], dispatch.operands()[0].offset / sizeof(float)});
    };
    call(recorder);
    return result;
  };
  const auto factored = [&](uint64_t count) {
    return parts("linalg_cholesky", [&](Recorder& recorder) {
      record_cholesky(recorder, {TUFF_F32, TUFF_TRIANGLE_UPPER, 2, {&buffers_[0], 3, 7}, nullptr, count});
    });
  };
  constexpr uint64_t kMax = 1u << 20;
  ASSERT_EQ(factored(kMax).size(), 1u);
  const std::vector<Part> two = factored(kMax + 1);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_GE(two[0].groups, kMax);
  EXPECT_EQ(two[1], (Part{1, 7 * kMax}));
  EXPECT_EQ(factored(3 * kMax).size(), 3u);
  // 2^31 / (2^30 - 1) matrices.
  const auto solved = [&](uint64_t count) {
    return parts("linalg_solve", [&](Recorder& recorder) {
      record_triangular_solve(recorder, {TUFF_F32,
                                         TUFF_SIDE_LEFT,
                                         TUFF_TRIANGLE_LOWER,
                                         TUFF_NO_TRANS,
                                         false,
                                         1,
                                         kExtent - 1,
                                         {&buffers_[0], 1, 5},
                                         {&buffers_[1], kExtent, kExtent},
                                         count});
    });
  };
  EXPECT_EQ(solved(2).size(), 1u);
  const std::vector<Part> three = solved(3);
  ASSERT_EQ(three.size(), 2u);
  EXPECT_EQ(three[1].offset, 10u);
}

// A GPU computes the product that updates a factorisation at once, without the tiles on the other side of the diagonal.
TEST_F(PlannerExtents, ProductsOfAFactorisationAreTriangles) {
  const auto parts_of_c = [&](int32_t triangle) {
    std::vector<int64_t> result;
    FakeRecorder recorder(traits_);
    recorder.seen = [&](const KernelRequest& kernel, const Dispatch&) {
      if (kernel.source().name == std::string_view("gemm_tile")) result.push_back(kernel.value_of("PART"));
    };
    record_cholesky(recorder, {TUFF_F32, triangle, 2048, {&buffers_[0], 2048, 0}, nullptr, 1});
    return result;
  };
  const std::vector<int64_t> lower = parts_of_c(TUFF_TRIANGLE_LOWER), upper = parts_of_c(TUFF_TRIANGLE_UPPER);
  EXPECT_GE(lower.size(), 2048 / 128 - 2u);
  EXPECT_EQ(std::count(lower.begin(), lower.end(), 1), std::count(upper.begin(), upper.end(), 2));
  EXPECT_GE(std::count(lower.begin(), lower.end(), 1), 2048 / 128 - 2);
}

// On CPU devices the exchanges of 32,768 rows take a dispatch each, on GPUs those of 32; those of a transposed system
// are undone from the last.
TEST_F(PlannerExtents, ExchangesOfManyRowsAreCut) {
  const auto exchanges = [&](uint64_t n, int32_t transpose) {
    std::vector<std::array<uint32_t, 2>> result;
    FakeRecorder recorder(traits_);
    recorder.seen = [&](const KernelRequest& kernel, const Dispatch& dispatch) {
      if (kernel.source().name != std::string_view("linalg_swap")) return;
      shaders::LinalgSwap::Push<uint32_t> push;
      ASSERT_FALSE(kernel.is_wide());
      ASSERT_EQ(dispatch.push_bytes(), sizeof push);
      std::memcpy(&push, dispatch.push_data(), sizeof push);
      result.push_back({push.first, push.count});
    };
    LuSolveArgs args = lu_solve_args(n, 1, 1);
    args.transpose = transpose;
    record_lu_solve(recorder, args);
    return result;
  };
  using Exchanges = std::vector<std::array<uint32_t, 2>>;
  EXPECT_EQ(exchanges(32, TUFF_NO_TRANS), (Exchanges{{0, 32}}));
  EXPECT_EQ(exchanges(65, TUFF_NO_TRANS), (Exchanges{{0, 32}, {32, 32}, {64, 1}}));
  EXPECT_EQ(exchanges(34, TUFF_TRANS), (Exchanges{{32, 2}, {0, 32}}));
  traits_.cpu = true;
  EXPECT_EQ(exchanges(32768, TUFF_NO_TRANS), (Exchanges{{0, 32768}}));
  EXPECT_EQ(exchanges(32769, TUFF_NO_TRANS), (Exchanges{{0, 32768}, {32768, 1}}));
  EXPECT_EQ(exchanges(32770, TUFF_TRANS), (Exchanges{{32768, 2}, {0, 32768}}));
}

// Transforms along all axes.
class PlannerExtentsOfFft : public PlannerExtents {
 protected:
  std::string fft(std::vector<uint64_t> shape, bool planned, int32_t dtype = TUFF_F32) {
    const std::vector<uint64_t> dense(shape.size());
    const auto rank = static_cast<uint32_t>(shape.size());
    const FftArgs args{
        dtype,        TUFF_FFT_COMPLEX, 0,    TUFF_FFT_NORM_NONE, &buffers_[0], &buffers_[1], shape.data(),
        dense.data(), dense.data(),     rank, (1u << rank) - 1};
    return refused([&](Recorder& recorder) { planned ? record_fft(recorder, args) : check_fft(args); });
  }
};

TEST_F(PlannerExtentsOfFft, Lengths) {
  constexpr uint64_t kMax = uint64_t{1} << 29;
  EXPECT_EQ(fft({kMax}, false), "");
  EXPECT_EQ(fft({kMax}, true), "");
  EXPECT_EQ(fft({2, kMax + 1}, false),
            "unsupported: shape[1] is 536870913, and at most 2^29 numbers are transformed along an axis");
  // Primes on both sides of 2^28; beyond it, products of small primes are still transformed.
  EXPECT_EQ(fft({268'435'399}, false), "");
  EXPECT_EQ(fft({268'435'399}, true), "");
  EXPECT_EQ(fft({268'435'459}, false),
            "unsupported: shape[0] is 268435459, and beyond 2^28 a size has no prime factor above 31");
  EXPECT_EQ(fft({31 * (uint64_t{1} << 24)}, false), "");
  EXPECT_NE(fft({37 * (uint64_t{1} << 23)}, false), "");
}

// 2^16 numbers take radices of 16, and 2^17 have a last one of 8.
TEST_F(PlannerExtentsOfFft, ColumnsOfAPass) {
  EXPECT_EQ(fft({1u << 16, 1u << 16}, true), "");
  EXPECT_EQ(fft({1u << 16, 1u << 17}, true), "");
  EXPECT_EQ(
      fft({1u << 17, 1u << 17}, true),
      "unsupported: a pass of the transform has 2147483648 columns of 8 numbers, at most 1073741824 are possible");
  EXPECT_NE(fft({1u << 20, 1u << 20}, true), "");
}

TEST_F(PlannerExtentsOfFft, DoublesNeedADeviceThatComputesThem) {
  EXPECT_EQ(fft({8}, true, TUFF_F64), "");
  traits_.f64 = false;
  EXPECT_EQ(fft({8}, true, TUFF_F64), "unsupported: dtype is f64, which the device does not compute");
  EXPECT_EQ(fft({8}, true, TUFF_F32), "");
}

// The largest transforms find room for all columns of their Fourier transforms before anything is recorded.
TEST_F(PlannerExtentsOfFft, CosineTransforms) {
  const auto dct = [&](std::vector<uint64_t> shape, int32_t kind, bool planned) {
    const std::vector<uint64_t> dense(shape.size());
    const auto rank = static_cast<uint32_t>(shape.size());
    const DctArgs args{TUFF_F32,     kind,         0,    TUFF_FFT_NORM_NONE, &buffers_[0], &buffers_[1], shape.data(),
                       dense.data(), dense.data(), rank, (1u << rank) - 1};
    return refused([&](Recorder& recorder) { planned ? record_dct(recorder, args) : check_dct(args); });
  };
  constexpr uint64_t kMax = uint64_t{1} << 28;
  for (int32_t kind = TUFF_DCT_1; kind <= TUFF_DST_4; ++kind) {
    const bool mirrored = kind == TUFF_DCT_1 || kind == TUFF_DST_1;
    for (const std::vector<uint64_t>& shape : {std::vector<uint64_t>{mirrored ? kMax / 2 - 1 : kMax},
                                               {mirrored ? 134'217'689ull : 268'435'399ull},
                                               {1u << 14, 1u << 14},
                                               {2, mirrored ? kMax / 2 - 1 : kMax / 2},
                                               {3, 3, 29'826'161}}) {
      EXPECT_EQ(dct(shape, kind, false), "") << kind << " " << shape.back();
      EXPECT_EQ(dct(shape, kind, true), "") << kind << " " << shape.back();
    }
  }
  EXPECT_EQ(dct({2, kMax / 2 + 1}, TUFF_DCT_2, false),
            "unsupported: the transformed axes have 268435458 numbers together or more, at most 2^28 are possible");
  EXPECT_EQ(dct({kMax / 2}, TUFF_DCT_1, false),
            "unsupported: shape[0] is 134217728, and kind 1 transforms fewer than 2^27 numbers along an axis");
}

class PlannerExtentsOfRandom : public PlannerExtents {
 protected:
  RandomArgs args(int32_t dtype, int32_t distribution) {
    RandomArgs args{};
    args.dtype = dtype, args.distribution = distribution, args.output = &buffers_[0], args.n = 100;
    return args;
  }
  bool is_valid(const RandomArgs& args) {
    return refused([&](Recorder&) { check_random(args); }).empty();
  }
};

TEST_F(PlannerExtentsOfRandom, IntegersOfEachType) {
  struct Row {
    int32_t dtype;
    int64_t least, most;
  };
  for (const Row& row : {Row{TUFF_I8, -128, 127}, Row{TUFF_U8, 0, 255}, Row{TUFF_I32, INT32_MIN, INT32_MAX},
                         Row{TUFF_U32, 0, UINT32_MAX}}) {
    RandomArgs all = args(row.dtype, TUFF_RANDOM_INTEGERS);
    all.least = row.least, all.most = row.most;
    EXPECT_TRUE(is_valid(all)) << row.dtype;
    const uint64_t range = static_cast<uint64_t>(row.most - row.least) + 1;
    EXPECT_EQ(random::numbers_of(all).range, static_cast<uint32_t>(range));
    EXPECT_EQ(random::numbers_of(all).least, static_cast<uint32_t>(row.least));
    RandomArgs one = all;
    one.most = one.least;
    EXPECT_TRUE(is_valid(one)) << row.dtype;
    one.least = one.most = row.most;
    EXPECT_TRUE(is_valid(one)) << row.dtype;
    one.least = row.most, one.most = row.most - 1;
    EXPECT_FALSE(is_valid(one)) << row.dtype;
    RandomArgs beyond = all;
    beyond.least = row.least - 1;
    EXPECT_FALSE(is_valid(beyond)) << row.dtype;
    beyond = all, beyond.most = row.most + 1;
    EXPECT_FALSE(is_valid(beyond)) << row.dtype;
    beyond.least = row.most + 1;
    EXPECT_FALSE(is_valid(beyond)) << row.dtype;
  }
}

TEST_F(PlannerExtentsOfRandom, ParametersOfFloats) {
  constexpr double kNaN = NAN, kLargest = 0x1.fffffep127;
  const auto uniform = [&](double low, double high) {
    RandomArgs a = args(TUFF_F32, TUFF_RANDOM_UNIFORM);
    a.low = low, a.high = high;
    return is_valid(a);
  };
  EXPECT_TRUE(uniform(0, kLargest) && uniform(2, 2) && uniform(-kLargest, 0));
  EXPECT_FALSE(uniform(-kLargest, kLargest)) << "their difference is no f32";
  EXPECT_FALSE(uniform(2, 1) || uniform(0, 1e39) || uniform(-1e39, 0) || uniform(kNaN, 1) || uniform(0, kNaN));
  const auto normal = [&](double mean, double deviation) {
    RandomArgs a = args(TUFF_F16, TUFF_RANDOM_NORMAL);
    a.mean = mean, a.deviation = deviation;
    return is_valid(a);
  };
  EXPECT_TRUE(normal(-3, 0) && normal(kLargest, kLargest));
  EXPECT_FALSE(normal(0, -1e-300) || normal(kNaN, 1) || normal(0, kNaN) || normal(0, 1e39) || normal(-1e39, 1));
  const auto exponential = [&](double scale) {
    RandomArgs a = args(TUFF_BF16, TUFF_RANDOM_EXPONENTIAL);
    a.scale = scale;
    return is_valid(a);
  };
  EXPECT_TRUE(exponential(0) && exponential(kLargest));
  EXPECT_FALSE(exponential(-1e-300) || exponential(kNaN) || exponential(1e39));
}

// Words of 32 bits are compared with round(2^32 p).
TEST_F(PlannerExtentsOfRandom, Probabilities) {
  const auto bernoulli = [&](double probability) {
    RandomArgs a = args(TUFF_U8, TUFF_RANDOM_BERNOULLI);
    a.probability = probability;
    return a;
  };
  for (const double valid : {0.0, 0x1p-1074, 0.5, std::nextafter(1.0, 0.0), 1.0})
    EXPECT_TRUE(is_valid(bernoulli(valid)));
  for (const double invalid : {-0x1p-1074, std::nextafter(1.0, 2.0), std::nan("")}) {
    EXPECT_FALSE(is_valid(bernoulli(invalid))) << invalid;
  }
  const auto numbers = [&](double probability) { return random::numbers_of(bernoulli(probability)); };
  EXPECT_EQ(numbers(0x1p-32).threshold, 1u);
  EXPECT_EQ(numbers(0x1p-34).threshold, 0u);
  EXPECT_EQ(numbers(0x1p-34).range, 0u) << "none";
  EXPECT_EQ(numbers(1 - 0x1p-32).threshold, UINT32_MAX);
  EXPECT_EQ(numbers(1 - 0x1p-32).range, 0u);
  for (const double all : {1 - 0x1p-34, 1.0}) {
    EXPECT_EQ(numbers(all).threshold, 0u);
    EXPECT_EQ(numbers(all).range, 1u) << "all";
  }
}

TEST_F(PlannerExtentsOfRandom, TheEndOfASequence) {
  RandomArgs last = args(TUFF_F32, TUFF_RANDOM_UNIFORM);
  last.offset = UINT64_MAX - last.n;
  EXPECT_TRUE(is_valid(last));
  ++last.offset;
  EXPECT_FALSE(is_valid(last));
  last.n = 0;
  EXPECT_TRUE(is_valid(last));
}

TEST_F(PlannerExtents, RowsOfScatter) {
  const auto scattered = [&](uint64_t places, uint64_t inner, uint64_t count, int32_t op, FakeRecorder& recorder) {
    const uint64_t shape[] = {places, inner};
    ScatterArgs args{};
    args.dtype = TUFF_U8, args.op = op, args.updates = &buffers_[1], args.output = &buffers_[2];
    args.index = {TUFF_U32, &buffers_[3], shape, 2, 0, count, nullptr, 0, false};
    record_scatter(recorder, args);
    return std::count(recorder.kernels.begin(), recorder.kernels.end(), "places");
  };
  const auto status = [&](uint64_t inner) {
    return refused(
        [&](Recorder& recorder) { scattered(1, inner, 1, TUFF_SCATTER_SET, static_cast<FakeRecorder&>(recorder)); });
  };
  EXPECT_EQ(status(kExtent), "");
  EXPECT_EQ(status(kExtent + 1), "unsupported: rows of 1073741825 elements are too long to scatter");
  // Passes of 2^28 places, and of 2^28 indices, or 2^26 that are sorted.
  const auto passes = [&](uint64_t places, uint64_t count, int32_t op) {
    FakeRecorder recorder(traits_);
    return scattered(places, 1, count, op, recorder);
  };
  constexpr uint64_t kMax = uint64_t{1} << 28, kSorted = uint64_t{1} << 26;
  EXPECT_EQ(passes(kMax, 10, TUFF_SCATTER_SET), 1);
  EXPECT_EQ(passes(kMax + 1, 10, TUFF_SCATTER_SET), 2);
  EXPECT_EQ(passes(kMax + 1, 10, TUFF_SCATTER_ADD), 2);
  EXPECT_EQ(passes(10, kMax, TUFF_SCATTER_SET), 1);
  EXPECT_EQ(passes(10, kMax + 1, TUFF_SCATTER_SET), 2);
  EXPECT_EQ(passes(10, kSorted, TUFF_SCATTER_ADD), 1);
  EXPECT_EQ(passes(10, kSorted + 1, TUFF_SCATTER_ADD), 2);
}

// Each place has a winner, which is written before it is settled and read.
TEST_F(PlannerExtents, WinnersOfScatter) {
  const uint64_t shape[] = {1000, 3};
  ScatterArgs args{};
  args.dtype = TUFF_F32, args.op = TUFF_SCATTER_SET, args.updates = &buffers_[1], args.output = &buffers_[2];
  args.index = {TUFF_U32, &buffers_[3], shape, 2, 0, 10, nullptr, 0, false};
  FakeRecorder recorder(traits_);
  recorder.seen = [&](const KernelRequest& kernel, const Dispatch& dispatch) {
    const std::string_view name = kernel.source().name;
    const uint32_t slot = name == "places" ? 3 : name == "scatter_settle" ? 1 : 2;
    EXPECT_EQ(dispatch.operands()[slot].bytes, 1000 * sizeof(uint32_t)) << name;
  };
  record_scatter(recorder, args);
  EXPECT_EQ(recorder.kernels, (std::vector<std::string>{"places", "scatter_settle", "scatter_write"}));
}

// Sums, maxima and minima of 32-bit integers are atomics: 2^28 indices at a time, and a table in shared memory for up to
// 2048 places. On a CPU only for rows of up to 8 elements.
// A dispatch has up to 2^30 - 64 elements; the next one begins with the sum of those before it.
TEST_F(PlannerExtents, PiecesOfSelect) {
  constexpr uint64_t kPiece = (uint64_t{1} << 30) - 64;
  const auto pieces = [&](uint64_t n, int32_t op) {
    SelectArgs args{};
    args.dtype = args.mask_type = TUFF_U8, args.op = op, args.index_type = TUFF_I64;
    args.input = &buffers_[1], args.mask = op == TUFF_SELECT_UNIQUE ? nullptr : &buffers_[2];
    args.output = &buffers_[3], args.n = args.capacity = n;
    FakeRecorder recorder(traits_);
    record_select(recorder, args);
    return std::count(recorder.kernels.begin(), recorder.kernels.end(), "select_write");
  };
  for (const int32_t op : {TUFF_SELECT_NONZERO, TUFF_SELECT_UNIQUE}) {
    EXPECT_EQ(pieces(0, op), 0);
    EXPECT_EQ(pieces(1, op), 1);
    EXPECT_EQ(pieces(kPiece, op), 1);
    EXPECT_EQ(pieces(kPiece + 1, op), 2);
    EXPECT_EQ(pieces(5 * kPiece, op), 5);
  }
}

TEST_F(PlannerExtents, AtomicsOfScatter) {
  const auto scattered = [&](bool cpu, uint64_t places, uint64_t inner, uint64_t count, int32_t op, int32_t dtype) {
    DeviceTraits traits = traits_;
    traits.cpu = cpu;
    const uint64_t shape[] = {places, inner};
    ScatterArgs args{};
    args.dtype = dtype, args.op = op, args.updates = &buffers_[1], args.output = &buffers_[2];
    args.index = {TUFF_U32, &buffers_[3], shape, 2, 0, count, nullptr, 0, false};
    FakeRecorder recorder(traits);
    std::string tables;
    recorder.seen = [&](const KernelRequest& kernel, const Dispatch&) {
      if (std::string_view(kernel.source().name) != "scatter_atomic") return;
      for (uint32_t i = 0; i < kernel.define_count(); ++i) {
        const auto& define = kernel.defines()[i];
        if (std::string_view(define.name) == "TUFF_TABLE") tables += define.value != 0 ? "table " : "memory ";
      }
    };
    record_scatter(recorder, args);
    return tables;
  };
  constexpr uint64_t kMax = uint64_t{1} << 28;
  for (const int32_t dtype : {TUFF_I32, TUFF_U32}) {
    for (const bool cpu : {false, true}) {
      EXPECT_EQ(scattered(cpu, 2048, 1, 1 << 24, TUFF_SCATTER_ADD, dtype), "table ");
      EXPECT_EQ(scattered(cpu, 2049, 1, 1 << 24, TUFF_SCATTER_MAX, dtype), "memory ");
      EXPECT_EQ(scattered(cpu, 2048, 2, 1 << 24, TUFF_SCATTER_MIN, dtype), "memory ");
      EXPECT_EQ(scattered(cpu, 2048, 1, 10, TUFF_SCATTER_ADD, dtype), "memory ") << "a table has more places";
      EXPECT_EQ(scattered(cpu, 10'000, 1, kMax + 1, TUFF_SCATTER_ADD, dtype), "memory memory ");
      EXPECT_EQ(scattered(cpu, 10'000, 8, 100, TUFF_SCATTER_ADD, dtype), "memory ");
      EXPECT_EQ(scattered(cpu, 10'000, 9, 100, TUFF_SCATTER_ADD, dtype), cpu ? "" : "memory ");
      EXPECT_EQ(scattered(cpu, 10'000, 1, 100, TUFF_SCATTER_MUL, dtype), "");
      EXPECT_EQ(scattered(cpu, 10'000, 1, 100, TUFF_SCATTER_SET, dtype), "");
    }
  }
  EXPECT_EQ(scattered(false, 10'000, 1, 100, TUFF_SCATTER_ADD, TUFF_F32), "") << "sums of floats depend on the order";
}

// The first k of long rows are found in stages: each reads all that the one before wrote, and nothing else.
TEST_F(PlannerExtents, StagesOfASort) {
  const uint64_t shape[] = {3, 200'000};
  SortArgs args{};
  args.dtype = TUFF_F32, args.index_type = TUFF_U32, args.input = &buffers_[0], args.indices = &buffers_[1];
  args.shape = shape, args.rank = 2, args.axis = 1, args.k = 5;
  FakeRecorder recorder(traits_);
  uint64_t offset = 0, bytes = 0, stages = 0;
  recorder.seen = [&](const KernelRequest&, const Dispatch& dispatch) {
    const Dispatch::Operand &read = dispatch.operands()[1], &written = dispatch.operands()[3];
    if (stages++ == 0) {
      EXPECT_EQ(read.buffer, nullptr);
    } else {
      EXPECT_EQ(read.offset, offset);
      EXPECT_EQ(read.bytes, bytes);
    }
    offset = written.offset, bytes = written.bytes;
  };
  record_sort(recorder, args);
  EXPECT_GE(stages, 2u);
  EXPECT_EQ(bytes, 3 * 5 * sizeof(uint32_t)) << "the indices";
}

// A piece of a tensor begins at its own row of the mask.
TEST_F(PlannerExtents, PiecesOfMaskedColumns) {
  traits_.addresses = false, traits_.max_range = 1u << 16;
  const uint64_t shape[] = {100, 30, 20};
  SoftmaxArgs args{};
  args.dtype = TUFF_F32, args.input = &buffers_[0], args.output = &buffers_[1], args.scale = 1;
  args.shape = shape, args.rank = 3, args.axis = 1;
  args.mask.buffer = &buffers_[2], args.mask.type = TUFF_F32, args.mask.rows = 7, args.mask.repeat = 2;
  FakeRecorder recorder(traits_);
  uint64_t pieces = 0;
  recorder.seen = [&](const KernelRequest& kernel, const Dispatch& dispatch) {
    if (kernel.source().name != std::string_view("softmax_columns")) return;
    shaders::SoftmaxColumns::Push push;
    ASSERT_EQ(dispatch.push_bytes(), sizeof push);
    std::memcpy(&push, dispatch.push_data(), sizeof push);
    const uint64_t outer = dispatch.operands()[0].offset / sizeof(float) / (30 * 20);
    EXPECT_EQ(push.mask_first, outer % 14);
    pieces += outer != 0;
  };
  record_softmax(recorder, args);
  EXPECT_GE(pieces, 3u);
}

TEST_F(PlannerExtents, WhatScatterNeedsOfADevice) {
  const auto scattered = [&](int32_t dtype, int32_t op) {
    const uint64_t shape[] = {5, 3};
    ScatterArgs args{};
    args.dtype = dtype, args.op = op, args.updates = &buffers_[1], args.output = &buffers_[2];
    args.index = {TUFF_I64, &buffers_[3], shape, 2, 0, 4, nullptr, 0, true};
    return refused([&](Recorder& recorder) { record_scatter(recorder, args); }).empty();
  };
  for (const bool has : {true, false}) {
    traits_.f64 = traits_.int64 = traits_.storage8 = traits_.storage16 = has;
    for (const int32_t dtype : {TUFF_F64, TUFF_I64, TUFF_U64}) {
      EXPECT_TRUE(scattered(dtype, TUFF_SCATTER_SET)) << "elements are only moved";
      EXPECT_EQ(scattered(dtype, TUFF_SCATTER_ADD), has);
    }
    for (const int32_t dtype : {TUFF_F16, TUFF_I8}) {
      for (const int32_t op : {TUFF_SCATTER_SET, TUFF_SCATTER_ADD}) EXPECT_EQ(scattered(dtype, op), has);
    }
    EXPECT_TRUE(scattered(TUFF_I32, TUFF_SCATTER_ADD));
  }
}

}  // namespace
}  // namespace tuff
