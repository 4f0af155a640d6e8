// What the planners of linear algebra share: views of blocks of the matrices of a batch, and the two steps that every
// blocked algorithm consists of besides its own: products (by GEMM) and triangular systems.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/common/kernels_for.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/common/workgroup.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/linalg/linalg.hpp"
#include "planning/recorder.hpp"

namespace tuff::linalg {

// Triangles have at most this extent, and no other extent is this large: rows and columns are numbered in 32 bits, and
// a thousand times this many elements are beyond any device's memory.
constexpr uint64_t kMaxTriangle = 1u << 20, kMaxExtent = (1u << 30) - 1;
constexpr uint32_t kMaxThreads = 256;  // of a workgroup
constexpr uint64_t kCut = 128;         // see split()
// Extent of the triangles that linalg_cholesky.comp and linalg_solve.comp keep in shared memory on CPU devices, and of
// the smallest ones for which they have kernels on GPUs.
uint64_t block_extent();

// A block of every matrix of a batch. Rows are ld elements apart, or, if it is a transposed view, columns are.
struct View {
  const Buffer* buffer;
  uint64_t first;  // the element (0, 0) of the first matrix
  uint64_t ld, stride;
  bool transposed = false;

  uint64_t row_stride() const { return transposed ? 1 : ld; }
  uint64_t column_stride() const { return transposed ? ld : 1; }
  View at(uint64_t row, uint64_t column) const {
    View block = *this;
    block.first += row * row_stride() + column * column_stride();
    return block;
  }
  View transpose() const {
    View block = *this;
    block.transposed = !transposed;
    return block;
  }
};

// The view of a part of a batch, from its matrix `first` on.
inline View part_of(View view, uint64_t first) {
  view.first += first * view.stride;
  return view;
}

// A call while it is recorded: what all its dispatches have in common.
struct Batch {
  Recorder& recorder;
  const char* name;
  int32_t dtype;
  uint64_t count;
  StreamDevice device;

  uint64_t size() const { return dtype_size(dtype); }
  const char* kernels() const { return kernels_for(device.cpu); }
  // Elements from the first to the last of a block of this extent, over all matrices.
  uint64_t span(const View& view, uint64_t rows, uint64_t columns) const {
    return (count - 1) * view.stride + (rows - 1) * view.row_stride() + (columns - 1) * view.column_stride() + 1;
  }
  void operand(Dispatch& dispatch, const View& view, uint64_t rows, uint64_t columns, Access access) const {
    dispatch.operand(view.buffer, view.first * size(), span(view, rows, columns) * size(), access);
  }
  // Invocations of a workgroup for `items` that share one: a power of two up to `most`.
  uint32_t threads(uint64_t items, uint32_t most) const;
  // The largest power of two that a workgroup can have.
  uint32_t most_threads() const { return std::bit_floor(std::min(kMaxThreads, max_along_x(recorder.traits()))); }
  // TUFF_SHARED (kernels/common/lanes.glsl): whether these are more than a subgroup.
  bool shares(uint32_t lanes) const { return lanes > device.subgroup; }
  // Records a dispatch of `groups` workgroups for each matrix, with the elements that they move and their operations
  // for each matrix.
  void record(const KernelRequest& kernel, Dispatch& dispatch, uint64_t groups, uint64_t elements,
              uint64_t operations) const;
};

// Calls body(batch, first) for parts of a batch that fit a dispatch of `groups` workgroups for each matrix, of at most
// `limit` matrices.
template <typename Body>
void for_each_part(Batch batch, uint64_t groups, uint64_t limit, const Body& body) {
  const uint64_t all = batch.count, most = std::clamp<uint64_t>((uint64_t{1} << 31) / groups, 1, limit);
  for (uint64_t first = 0; first < all; first += most) {
    batch.count = std::min(most, all - first);
    body(batch, first);
  }
}

template <typename Body>
void for_each_part(const Batch& batch, uint64_t groups, const Body& body) {
  for_each_part(batch, groups, 1u << 20, body);
}

// Calls body(Index{}) with the type of element indices.
template <typename Body>
void with_index(bool wide, const Body& body) {
  wide ? body(uint64_t{}) : body(uint32_t{});
}

// UNSUPPORTED if the extent is larger than `most`.
void require_extent(uint64_t extent, uint64_t most, const char* name);
// UNSUPPORTED if the device lacks the type, or cannot bind `elements` of it.
void require_device(const Recorder& recorder, int32_t dtype, uint64_t elements);
Batch batch_of(Recorder& recorder, const char* name, int32_t dtype, uint64_t count);
// The matrices as a view. Distances that are not used may be any number: those become 0.
View view_of(const MatrixArgs& matrix, uint64_t rows, uint64_t count);

// Where recursion cuts a triangle: in halves of whole blocks, or at 128 if it is larger, so that the products have a
// sum of 128 terms for each element that they read and write.
uint64_t split(uint64_t extent, uint64_t block);

// The largest triangle that linalg_cholesky.comp and linalg_solve.comp take: on GPUs as much as fits into registers and
// shared memory.
uint64_t held_extent(const Batch& batch);

// C -= A * B, with A m x k and B k x n, or C = alpha * A * B + beta * C.
struct Product {
  double alpha = -1, beta = 1;
  GemmPart c_part = GemmPart::all;  // which part of C is needed
};
constexpr Product kPlainProduct = {.alpha = 1, .beta = 0};
void record_product(const Batch& batch, const View& c, const View& a, const View& b, uint64_t m, uint64_t n, uint64_t k,
                    const Product& product = {});

// Makes rows x columns matrices identities.
void record_identity(const Batch& batch, const View& a, uint64_t rows, uint64_t columns);

// X = T^-1 * X for a triangle T of extent n and n x columns matrices X. `upper` is T as viewed.
struct Triangle {
  View view;
  uint64_t n;
  bool upper, unit_diagonal;
};
void record_solve(const Batch& batch, const Triangle& t, const View& x, uint64_t columns);

// How many matrices' scratch memory, of `each` elements for one, is used at once: 256 MiB, unless one takes more.
uint64_t matrices_at_once(const Batch& batch, uint64_t each);

// QR factorisations of matrices in any memory, with scratch memory of qr_memory() elements for each of `matrices`, from
// element `first` on, of which those of the batch are used. args.q.buffer says whether Q is wanted.
struct QrMemory {
  const Buffer* buffer;
  uint64_t first, matrices;
};
uint64_t qr_memory(const Batch& batch, const QrArgs& args);
void require_qr(const Batch& batch, const QrArgs& args);
void record_qr(const Batch& batch, const QrArgs& args, const View& a, const View& q, const QrMemory& memory);

// Sets the info of all matrices to 0; null: there is none.
void record_no_failures(Recorder& recorder, const Buffer* info, uint64_t count);

}  // namespace tuff::linalg
