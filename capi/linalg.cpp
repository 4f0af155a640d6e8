// Entry points of the header's "Linear algebra" group.
#include "kernels/linalg/linalg.hpp"

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

// A leading dimension of 0 stands for dense rows.
uint64_t leading(uint64_t given, uint64_t columns) { return given != 0 ? given : columns; }

// The pivots of a factorisation that is read: those of a matrix that all share are shared too.
uint64_t pivots_read(uint64_t stride_pivots, uint64_t stride_a, uint64_t n) {
  return stride_pivots != 0 ? stride_pivots : stride_a != 0 ? n : 0;
}

}  // namespace

extern "C" {

tuff_status tuff_cholesky(tuff_stream stream, const tuff_cholesky_desc* desc) {
  return guarded("tuff_cholesky", [&] {
    const tuff_cholesky_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    const auto target = acquire_stream(stream);
    const Operand a(target, wanted.a, "a"), info(target, wanted.info, "info");
    target->run(tuff::operations::cholesky({wanted.dtype,
                                            wanted.triangle,
                                            wanted.n,
                                            {a, leading(wanted.lda, wanted.n), wanted.stride_a},
                                            info,
                                            wanted.batch_count}));
  });
}

tuff_status tuff_lu(tuff_stream stream, const tuff_lu_desc* desc) {
  return guarded("tuff_lu", [&] {
    const tuff_lu_desc wanted = read_structure(desc, "desc");
    const auto target = acquire_stream(stream);
    const Operand a(target, wanted.a, "a"), pivots(target, wanted.pivots, "pivots"), info(target, wanted.info, "info");
    const uint64_t steps = std::min(wanted.m, wanted.n);
    target->run(tuff::operations::lu({wanted.dtype,
                                      wanted.m,
                                      wanted.n,
                                      {a, leading(wanted.lda, wanted.n), wanted.stride_a},
                                      pivots,
                                      wanted.stride_pivots != 0 ? wanted.stride_pivots : steps,
                                      info,
                                      wanted.batch_count}));
  });
}

tuff_status tuff_triangular_solve(tuff_stream stream, const tuff_triangular_solve_desc* desc) {
  return guarded("tuff_triangular_solve", [&] {
    const tuff_triangular_solve_desc wanted = read_structure(desc, "desc");
    tuff::require_flag(wanted.unit_diagonal, "desc->unit_diagonal");
    const auto target = acquire_stream(stream);
    const Operand a(target, wanted.a, "a"), b(target, wanted.b, "b");
    const uint64_t extent = wanted.side == TUFF_SIDE_RIGHT ? wanted.n : wanted.m;
    target->run(tuff::operations::triangular_solve({wanted.dtype,
                                                    wanted.side,
                                                    wanted.triangle,
                                                    wanted.transpose,
                                                    wanted.unit_diagonal != 0,
                                                    wanted.m,
                                                    wanted.n,
                                                    {a, leading(wanted.lda, extent), wanted.stride_a},
                                                    {b, leading(wanted.ldb, wanted.n), wanted.stride_b},
                                                    wanted.batch_count}));
  });
}

tuff_status tuff_lu_solve(tuff_stream stream, const tuff_lu_solve_desc* desc) {
  return guarded("tuff_lu_solve", [&] {
    const tuff_lu_solve_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    const auto target = acquire_stream(stream);
    const Operand a(target, wanted.a, "a"), pivots(target, wanted.pivots, "pivots"), b(target, wanted.b, "b");
    target->run(tuff::operations::lu_solve({wanted.dtype,
                                            wanted.transpose,
                                            wanted.n,
                                            wanted.nrhs,
                                            {a, leading(wanted.lda, wanted.n), wanted.stride_a},
                                            {b, leading(wanted.ldb, wanted.nrhs), wanted.stride_b},
                                            pivots,
                                            pivots_read(wanted.stride_pivots, wanted.stride_a, wanted.n),
                                            wanted.batch_count}));
  });
}

tuff_status tuff_lu_determinant(tuff_stream stream, const tuff_lu_determinant_desc* desc) {
  return guarded("tuff_lu_determinant", [&] {
    const tuff_lu_determinant_desc wanted = read_structure(desc, "desc");
    const auto target = acquire_stream(stream);
    const Operand a(target, wanted.a, "a"), pivots(target, wanted.pivots, "pivots"),
        determinant(target, wanted.determinant, "determinant"), sign(target, wanted.sign, "sign"),
        log_magnitude(target, wanted.log_magnitude, "log_magnitude");
    target->run(tuff::operations::lu_determinant({wanted.dtype,
                                                  wanted.n,
                                                  {a, leading(wanted.lda, wanted.n), wanted.stride_a},
                                                  pivots,
                                                  pivots_read(wanted.stride_pivots, wanted.stride_a, wanted.n),
                                                  determinant,
                                                  sign,
                                                  log_magnitude,
                                                  wanted.batch_count}));
  });
}

tuff_status tuff_qr(tuff_stream stream, const tuff_qr_desc* desc) {
  return guarded("tuff_qr", [&] {
    const tuff_qr_desc wanted = read_structure(desc, "desc");
    const auto target = acquire_stream(stream);
    const Operand a(target, wanted.a, "a"), q(target, wanted.q, "q");
    const uint64_t columns = wanted.columns_q != 0 ? wanted.columns_q : std::min(wanted.m, wanted.n);
    target->run(tuff::operations::qr({wanted.dtype,
                                      wanted.m,
                                      wanted.n,
                                      {a, leading(wanted.lda, wanted.n), wanted.stride_a},
                                      {q, leading(wanted.ldq, columns), wanted.stride_q},
                                      columns,
                                      wanted.batch_count}));
  });
}

tuff_status tuff_eigh(tuff_stream stream, const tuff_eigh_desc* desc) {
  return guarded("tuff_eigh", [&] {
    const tuff_eigh_desc wanted = read_structure(desc, "desc");
    tuff::require_reserved(wanted.reserved);
    const auto target = acquire_stream(stream);
    const Operand a(target, wanted.a, "a"), values(target, wanted.values, "values"),
        vectors(target, wanted.vectors, "vectors"), info(target, wanted.info, "info");
    target->run(tuff::operations::eigh({wanted.dtype,
                                        wanted.triangle,
                                        wanted.n,
                                        {a, leading(wanted.lda, wanted.n), wanted.stride_a},
                                        values,
                                        wanted.stride_values != 0 ? wanted.stride_values : wanted.n,
                                        {vectors, leading(wanted.ld_vectors, wanted.n), wanted.stride_vectors},
                                        info,
                                        wanted.batch_count}));
  });
}

tuff_status tuff_eig(tuff_stream stream, const tuff_eig_desc* desc) {
  return guarded("tuff_eig", [&] {
    const tuff_eig_desc wanted = read_structure(desc, "desc");
    const auto target = acquire_stream(stream);
    const Operand a(target, wanted.a, "a"), values(target, wanted.values, "values"),
        vectors(target, wanted.vectors, "vectors"), info(target, wanted.info, "info");
    target->run(tuff::operations::eig({wanted.dtype,
                                       wanted.n,
                                       {a, leading(wanted.lda, wanted.n), wanted.stride_a},
                                       values,
                                       wanted.stride_values != 0 ? wanted.stride_values : wanted.n,
                                       {vectors, leading(wanted.ld_vectors, wanted.n), wanted.stride_vectors},
                                       info,
                                       wanted.batch_count}));
  });
}

tuff_status tuff_svd(tuff_stream stream, const tuff_svd_desc* desc) {
  return guarded("tuff_svd", [&] {
    const tuff_svd_desc wanted = read_structure(desc, "desc");
    const auto target = acquire_stream(stream);
    const Operand a(target, wanted.a, "a"), values(target, wanted.values, "values"), u(target, wanted.u, "u"),
        vt(target, wanted.vt, "vt"), info(target, wanted.info, "info");
    const uint64_t k = std::min(wanted.m, wanted.n);
    target->run(tuff::operations::svd({wanted.dtype,
                                       wanted.m,
                                       wanted.n,
                                       {a, leading(wanted.lda, wanted.n), wanted.stride_a},
                                       values,
                                       wanted.stride_values != 0 ? wanted.stride_values : k,
                                       {u, leading(wanted.ldu, k), wanted.stride_u},
                                       {vt, leading(wanted.ldvt, wanted.n), wanted.stride_vt},
                                       info,
                                       wanted.batch_count}));
  });
}

}  // extern "C"
