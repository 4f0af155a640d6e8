// Invalid calls of linear algebra: their status, a message that names the argument, and no effect.
#include <functional>

#include "support/harness.hpp"

namespace tuff_test::linalg_misuse_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kHandle = TUFF_ERROR_INVALID_HANDLE,
                      kUnsupported = TUFF_ERROR_UNSUPPORTED;

class LinearAlgebraMisuse : public OnBackend {
 protected:
  void SetUp() override {
    for (OwnBuffer& buffer : buffers_) buffer = OwnBuffer(context(), 4 * 8 * 8 * 2);
    ASSERT_OK(tuff_synchronize(context()));
    before_ = stats_of(context());
  }
  void TearDown() override { EXPECT_EQ(stats_of(context()).dispatches, before_.dispatches); }
  OwnBuffer view(int buffer, uint64_t offset, uint64_t bytes) {
    tuff_buffer result = 0;
    EXPECT_OK(tuff_view(buffers_[buffer], offset, bytes, &result));
    return OwnBuffer(result);
  }
  template <typename Desc>
  struct Edit {
    const char* word;
    tuff_status status;
    std::function<void(Desc&)> edit;
  };
  template <typename Desc, typename Function>
  void expect(const char* name, Function function, const Desc& good, const std::vector<Edit<Desc>>& rows) {
    for (const Edit<Desc>& row : rows) {
      Desc desc = good;
      row.edit(desc);
      EXPECT_FAILS(function(context(), &desc), row.status, name, row.word);
    }
    EXPECT_FAILS(function(context(), nullptr), kArgument, name, "desc");
  }
  OwnBuffer buffers_[4];
  tuff_stats before_{};
};

TEST_P(LinearAlgebraMisuse, Cholesky) {
  tuff_cholesky_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.n = 8, good.a = buffers_[0], good.info = buffers_[1], good.batch_count = 1;
  const OwnBuffer small = view(2, 0, 252), odd = view(2, 2, 300), inside = view(0, 128, 16);
  using D = tuff_cholesky_desc;
  expect<D>("tuff_cholesky", tuff_cholesky, good,
            {{"dtype", kArgument, [](D& d) { d.dtype = 99; }},
             {"dtype", kUnsupported, [](D& d) { d.dtype = TUFF_F16; }},
             {"dtype", kUnsupported, [](D& d) { d.dtype = TUFF_I32; }},
             {"triangle", kArgument, [](D& d) { d.triangle = 2; }},
             {"triangle", kArgument, [](D& d) { d.triangle = -1; }},
             {"reserved", kArgument, [](D& d) { d.reserved = 1; }},
             {"lda", kArgument, [](D& d) { d.lda = 7; }},
             {"stride_a", kArgument, [](D& d) { d.batch_count = 2, d.stride_a = 63; }},
             {"stride_a", kArgument, [](D& d) { d.batch_count = 2, d.stride_a = 0; }},
             {"a", kArgument, [](D& d) { d.batch_count = 3, d.stride_a = 64; }},
             {"a", kArgument, [](D& d) { d.n = uint64_t{1} << 33; }},
             {"a", kArgument, [](D& d) { d.batch_count = uint64_t{1} << 63, d.stride_a = 64; }},
             {"a", kArgument, [&](D& d) { d.a = small; }},
             {"a", kArgument, [&](D& d) { d.a = odd; }},
             {"a", kHandle, [](D& d) { d.a = 0; }},
             {"a", kHandle, [](D& d) { d.a = 12345; }},
             {"info", kArgument, [&](D& d) { d.info = inside; }},
             {"info", kArgument, [&](D& d) { d.info = odd; }},
             {"info", kArgument, [&](D& d) { d.info = d.a; }},
             {"info", kHandle, [](D& d) { d.info = 12345; }},
             {"struct_size", kArgument, [](D& d) { d.struct_size = 8; }}});
}

TEST_P(LinearAlgebraMisuse, Lu) {
  tuff_lu_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.m = good.n = 8, good.a = buffers_[0], good.pivots = buffers_[1];
  good.info = buffers_[2], good.batch_count = 1;
  const OwnBuffer small = view(3, 0, 28), inside = view(0, 128, 64);
  using D = tuff_lu_desc;
  expect<D>("tuff_lu", tuff_lu, good,
            {{"dtype", kArgument, [](D& d) { d.dtype = 0; }},
             {"dtype", kUnsupported, [](D& d) { d.dtype = TUFF_BF16; }},
             {"lda", kArgument, [](D& d) { d.lda = 1; }},
             {"stride_a", kArgument, [](D& d) { d.batch_count = 2; }},
             {"stride_pivots", kArgument, [](D& d) { d.batch_count = 2, d.stride_a = 64, d.stride_pivots = 7; }},
             {"a", kArgument, [](D& d) { d.m = 17; }},
             {"a", kArgument, [](D& d) { d.m = ~uint64_t{0}; }},
             {"pivots", kArgument, [&](D& d) { d.pivots = small; }},
             {"pivots", kArgument, [&](D& d) { d.pivots = inside; }},
             {"pivots", kHandle, [](D& d) { d.pivots = 0; }},
             {"info", kArgument, [](D& d) { d.info = d.pivots; }},
             {"info", kArgument, [&](D& d) { d.info = inside; }},
             {"struct_size", kArgument, [](D& d) { d.struct_size = 0; }}});
}

TEST_P(LinearAlgebraMisuse, TriangularSolve) {
  tuff_triangular_solve_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.m = 8, good.n = 4, good.a = buffers_[0], good.b = buffers_[1], good.batch_count = 1;
  using D = tuff_triangular_solve_desc;
  expect<D>("tuff_triangular_solve", tuff_triangular_solve, good,
            {{"dtype", kArgument, [](D& d) { d.dtype = 99; }},
             {"dtype", kUnsupported, [](D& d) { d.dtype = TUFF_U8; }},
             {"side", kArgument, [](D& d) { d.side = 2; }},
             {"triangle", kArgument, [](D& d) { d.triangle = 7; }},
             {"unit_diagonal", kArgument, [](D& d) { d.unit_diagonal = 2; }},
             {"transpose", kArgument, [](D& d) { d.transpose = 3; }},
             {"lda", kArgument, [](D& d) { d.lda = 7; }},
             {"lda", kArgument, [](D& d) { d.side = TUFF_SIDE_RIGHT, d.lda = 3; }},
             {"ldb", kArgument, [](D& d) { d.ldb = 3; }},
             {"stride_b", kArgument, [](D& d) { d.batch_count = 2, d.stride_b = 31; }},
             {"a", kArgument, [](D& d) { d.m = 12, d.n = 1; }},
             {"b", kArgument, [](D& d) { d.n = 17; }},
             {"b", kArgument, [](D& d) { d.b = d.a; }},
             {"b", kHandle, [](D& d) { d.b = 0; }},
             {"a", kHandle, [](D& d) { d.a = 0; }}});
}

TEST_P(LinearAlgebraMisuse, LuSolve) {
  tuff_lu_solve_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.n = 8, good.nrhs = 4, good.a = buffers_[0], good.b = buffers_[1];
  good.pivots = buffers_[2], good.batch_count = 1;
  using D = tuff_lu_solve_desc;
  expect<D>("tuff_lu_solve", tuff_lu_solve, good,
            {{"dtype", kArgument, [](D& d) { d.dtype = 99; }},
             {"dtype", kUnsupported, [](D& d) { d.dtype = TUFF_I8; }},
             {"transpose", kArgument, [](D& d) { d.transpose = -1; }},
             {"reserved", kArgument, [](D& d) { d.reserved = -1; }},
             {"lda", kArgument, [](D& d) { d.lda = 7; }},
             {"ldb", kArgument, [](D& d) { d.ldb = 3; }},
             {"stride_b", kArgument, [](D& d) { d.batch_count = 2; }},
             {"pivots", kArgument, [](D& d) { d.batch_count = 3, d.stride_b = 32, d.stride_pivots = 64; }},
             {"pivots", kHandle, [](D& d) { d.pivots = 0; }},
             {"b", kArgument, [](D& d) { d.b = d.pivots; }},
             {"b", kArgument, [](D& d) { d.b = d.a; }}});
}

TEST_P(LinearAlgebraMisuse, LuDeterminant) {
  tuff_lu_determinant_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.n = 8, good.a = buffers_[0], good.pivots = buffers_[1];
  good.determinant = buffers_[2], good.batch_count = 1;
  using D = tuff_lu_determinant_desc;
  expect<D>("tuff_lu_determinant", tuff_lu_determinant, good,
            {{"dtype", kArgument, [](D& d) { d.dtype = 99; }},
             {"dtype", kUnsupported, [](D& d) { d.dtype = TUFF_F16; }},
             {"lda", kArgument, [](D& d) { d.lda = 2; }},
             {"a", kHandle, [](D& d) { d.a = 0; }},
             {"pivots", kHandle, [](D& d) { d.pivots = 0; }},
             {"determinant", kArgument, [](D& d) { d.determinant = d.a; }},
             {"determinant", kArgument, [](D& d) { d.batch_count = 200; }},
             {"sign", kArgument, [](D& d) { d.sign = d.determinant; }},
             {"log_magnitude", kArgument, [](D& d) { d.log_magnitude = d.pivots; }}});
}

TEST_P(LinearAlgebraMisuse, Qr) {
  tuff_qr_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.m = 8, good.n = 4, good.a = buffers_[0], good.q = buffers_[1], good.batch_count = 1;
  const OwnBuffer small = view(2, 0, 124), odd = view(2, 2, 300), inside = view(0, 124, 128);
  using D = tuff_qr_desc;
  expect<D>("tuff_qr", tuff_qr, good,
            {{"dtype", kArgument, [](D& d) { d.dtype = 99; }},
             {"dtype", kUnsupported, [](D& d) { d.dtype = TUFF_F16; }},
             {"lda", kArgument, [](D& d) { d.lda = 3; }},
             {"ldq", kArgument, [](D& d) { d.ldq = 3; }},
             {"ldq", kArgument, [](D& d) { d.columns_q = 8, d.ldq = 4; }},
             {"columns_q", kArgument, [](D& d) { d.columns_q = 3; }},
             {"columns_q", kArgument, [](D& d) { d.columns_q = 9; }},
             {"stride_a", kArgument, [](D& d) { d.batch_count = 2, d.stride_q = 32; }},
             {"stride_q", kArgument, [](D& d) { d.batch_count = 2, d.stride_a = 32; }},
             {"a", kArgument, [](D& d) { d.n = 1u << 20; }},
             {"a", kArgument, [](D& d) { d.m = ~uint64_t{0}; }},
             {"a", kArgument, [&](D& d) { d.a = small; }},
             {"q", kArgument, [&](D& d) { d.q = small; }},
             {"q", kArgument, [&](D& d) { d.q = odd; }},
             {"q", kArgument, [&](D& d) { d.q = inside; }},
             {"q", kArgument, [](D& d) { d.q = d.a; }},
             {"a", kHandle, [](D& d) { d.a = 0; }},
             {"q", kHandle, [](D& d) { d.q = 12345; }},
             {"struct_size", kArgument, [](D& d) { d.struct_size = 4; }}});
}

TEST_P(LinearAlgebraMisuse, Eigh) {
  tuff_eigh_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.n = 8, good.a = buffers_[0], good.values = buffers_[1], good.vectors = buffers_[2];
  good.info = buffers_[3], good.batch_count = 1;
  const OwnBuffer small = view(3, 0, 28), odd = view(3, 2, 300);
  using D = tuff_eigh_desc;
  expect<D>("tuff_eigh", tuff_eigh, good,
            {{"dtype", kArgument, [](D& d) { d.dtype = 99; }},
             {"dtype", kUnsupported, [](D& d) { d.dtype = TUFF_BF16; }},
             {"triangle", kArgument, [](D& d) { d.triangle = 2; }},
             {"reserved", kArgument, [](D& d) { d.reserved = 1; }},
             {"lda", kArgument, [](D& d) { d.lda = 7; }},
             {"ld_vectors", kArgument, [](D& d) { d.ld_vectors = 7; }},
             {"stride_vectors", kArgument, [](D& d) { d.batch_count = 2; }},
             {"stride_values", kArgument, [](D& d) { d.batch_count = 2, d.stride_values = 7; }},
             {"a", kArgument, [](D& d) { d.n = uint64_t{1} << 40; }},
             {"values", kArgument, [&](D& d) { d.values = small; }},
             {"values", kArgument, [&](D& d) { d.values = odd; }},
             {"values", kArgument, [](D& d) { d.values = d.a; }},
             {"values", kHandle, [](D& d) { d.values = 0; }},
             {"vectors", kArgument, [](D& d) { d.vectors = d.a; }},
             {"vectors", kArgument, [](D& d) { d.vectors = d.values; }},
             {"info", kArgument, [](D& d) { d.info = d.vectors; }},
             {"a", kHandle, [](D& d) { d.a = 0; }},
             {"struct_size", kArgument, [](D& d) { d.struct_size = 4; }}});
}

TEST_P(LinearAlgebraMisuse, Eig) {
  tuff_eig_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.n = 4, good.a = buffers_[0], good.values = buffers_[1], good.vectors = buffers_[2];
  good.info = buffers_[3], good.batch_count = 1;
  const OwnBuffer small = view(3, 0, 24), odd = view(3, 4, 200), few = view(3, 0, 120);
  using D = tuff_eig_desc;
  expect<D>("tuff_eig", tuff_eig, good,
            {{"dtype", kArgument, [](D& d) { d.dtype = 99; }},
             {"dtype", kUnsupported, [](D& d) { d.dtype = TUFF_BF16; }},
             {"dtype", kUnsupported, [](D& d) { d.dtype = TUFF_C64; }},
             {"lda", kArgument, [](D& d) { d.lda = 3; }},
             {"ld_vectors", kArgument, [](D& d) { d.ld_vectors = 3; }},
             {"stride_vectors", kArgument, [](D& d) { d.batch_count = 2; }},
             {"stride_values", kArgument, [](D& d) { d.batch_count = 2, d.stride_vectors = 16, d.stride_values = 3; }},
             {"a", kArgument, [](D& d) { d.n = uint64_t{1} << 40; }},
             {"values", kArgument, [&](D& d) { d.values = small; }},
             {"values", kArgument, [&](D& d) { d.values = odd; }},
             {"values", kArgument, [](D& d) { d.values = d.a; }},
             {"values", kHandle, [](D& d) { d.values = 0; }},
             {"vectors", kArgument, [&](D& d) { d.vectors = few, d.info = 0; }},
             {"vectors", kArgument, [&](D& d) { d.vectors = odd, d.info = 0; }},
             {"vectors", kArgument, [](D& d) { d.vectors = d.a; }},
             {"vectors", kArgument, [](D& d) { d.vectors = d.values; }},
             {"info", kArgument, [](D& d) { d.info = d.vectors; }},
             {"a", kHandle, [](D& d) { d.a = 0; }},
             {"struct_size", kArgument, [](D& d) { d.struct_size = 4; }}});
}

TEST_P(LinearAlgebraMisuse, Svd) {
  tuff_svd_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.m = 8, good.n = 4, good.a = buffers_[0], good.values = buffers_[1];
  good.u = buffers_[2], good.vt = buffers_[3], good.batch_count = 1;
  const OwnBuffer small = view(3, 0, 60), inside = view(2, 64, 64);
  using D = tuff_svd_desc;
  expect<D>("tuff_svd", tuff_svd, good,
            {{"dtype", kArgument, [](D& d) { d.dtype = 99; }},
             {"dtype", kUnsupported, [](D& d) { d.dtype = TUFF_I32; }},
             {"lda", kArgument, [](D& d) { d.lda = 3; }},
             {"ldu", kArgument, [](D& d) { d.ldu = 3; }},
             {"ldvt", kArgument, [](D& d) { d.ldvt = 3; }},
             {"stride_u", kArgument, [](D& d) { d.batch_count = 2, d.stride_vt = 16; }},
             {"stride_vt", kArgument, [](D& d) { d.batch_count = 2, d.stride_u = 32; }},
             {"stride_values", kArgument,
              [](D& d) { d.batch_count = 2, d.stride_u = 32, d.stride_vt = 16, d.stride_values = 3; }},
             {"a", kArgument, [](D& d) { d.m = 40; }},
             {"vt", kArgument, [&](D& d) { d.vt = small; }},
             {"vt", kArgument, [&](D& d) { d.vt = inside; }},
             {"u", kArgument, [](D& d) { d.u = d.a; }},
             {"u", kArgument, [](D& d) { d.u = d.values; }},
             {"info", kArgument, [](D& d) { d.info = d.vt; }},
             {"values", kHandle, [](D& d) { d.values = 0; }},
             {"a", kHandle, [](D& d) { d.a = 7; }}});
}
TUFF_ON_BACKENDS(LinearAlgebraMisuse);

}  // namespace
}  // namespace tuff_test::linalg_misuse_test
