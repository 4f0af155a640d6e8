// Planner of products of two sparse matrices: expansion, sorting and compression (Bell, Dalton and Olson, "Exposing
// fine-grained parallelism in algebraic multigrid methods", 2012). The entries of both matrices are sorted by column.
// Then
//
//   lengths   the terms of each entry of B, which are the entries of A in the column that its row says
//   total     their sum, in 64 bits, in steps; gate: if there are too many, each entry has none
//   scan      running sums, which give each term a place
//   terms     the terms by column of the result: their rows, columns and products
//
// and the terms, sorted by row, become a matrix as the entries of a conversion do (sparse_result_vulkan.cpp).
#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/memory/memory.hpp"
#include "kernels/scan/scan.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/sparse/sparse_plan.hpp"
#include "shaders/sparse_gate.hpp"
#include "shaders/sparse_lengths.hpp"
#include "shaders/sparse_terms.hpp"
#include "shaders/sparse_total.hpp"

namespace tuff {
namespace {

using namespace sparse;

constexpr const char* kLabel = "spgemm";
constexpr uint64_t kSpan = 256;  // numbers that a lane of sparse_total.comp adds

// A matrix whose entries are sorted by column, in scratch memory: numbers of 32 bits. `sorted` has the columns in
// order, and of B the rows in this order after them.
struct ByColumn {
  uint64_t nnz, list, sorted_bytes, offset_bytes;
  uint64_t rows_at, columns_at, sorted_at, order_at, offsets_at;
  Buffer rows, columns, sorted, order, offsets;
};

ByColumn place(uint64_t nnz, uint64_t columns, bool offsets, ScratchLayout& layout) {
  ByColumn m{};
  m.nnz = nnz, m.list = nnz * 4;
  m.sorted_bytes = offsets ? m.list : 2 * m.list, m.offset_bytes = offsets ? (columns + 1) * 4 : 0;
  m.rows_at = layout.add(m.list), m.columns_at = layout.add(m.list), m.sorted_at = layout.add(m.sorted_bytes);
  m.order_at = layout.add(m.list), m.offsets_at = layout.add(m.offset_bytes);
  return m;
}

void take(ByColumn& m, const Buffer& memory) {
  m.rows = part_of(memory, m.rows_at, m.list), m.columns = part_of(memory, m.columns_at, m.list);
  m.sorted = part_of(memory, m.sorted_at, m.sorted_bytes), m.order = part_of(memory, m.order_at, m.list);
  m.offsets = part_of(memory, m.offsets_at, m.offset_bytes);
}

void record_by_column(Recorder& recorder, const Entries& entries, const ByColumn& m) {
  const Buffer sorted = part_of(m.sorted, 0, m.list);
  record_keys(recorder, entries, {&m.rows, &m.columns});
  record_order(recorder, m.columns, m.nnz, entries.column_count, sorted, m.order);
  if (m.offset_bytes != 0) {
    record_offsets(recorder, {kLabel, &sorted, nullptr, &m.offsets, 4, m.nnz, entries.column_count, 0, false});
  } else {
    record_pick(recorder, kLabel, m.rows, m.order, m.nnz, part_of(m.sorted, m.list, m.list));
  }
}

void record_lengths(Recorder& recorder, const SpgemmArgs& args, const ByColumn& a, const ByColumn& b,
                    const Buffer& lengths) {
  const Items items = items_of(recorder, b.nnz);
  KernelRequest kernel = shaders::SparseLengths::request({.run = items.fixed});
  kernel.streaming().constant(0, items.workgroup);
  Dispatch dispatch(kLabel);
  dispatch.operand(&b.sorted, 0, b.sorted_bytes, Access::read)
      .operand(&a.offsets, 0, a.offset_bytes, Access::read)
      .operand(&lengths, 0, b.list, Access::write)
      .push(shaders::SparseLengths::Push{.n = static_cast<uint32_t>(b.nnz),
                                         .run = static_cast<uint32_t>(items.run),
                                         .columns = static_cast<uint32_t>(args.columns),
                                         .rows = static_cast<uint32_t>(args.inner)})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(b.nnz * 20), static_cast<double>(b.nnz));
  recorder.dispatch(kernel, dispatch);
}

// Y, of `sums` numbers, from X, of n numbers of 32 bits or (not `first`) 64.
void record_sums(Recorder& recorder, bool first, const Buffer& x, uint64_t n, const Buffer& y, uint64_t sums) {
  const uint32_t workgroup = device_of(recorder).workgroup;
  KernelRequest kernel = shaders::SparseTotal::request({.first = first});
  kernel.streaming().constant(0, workgroup);
  Dispatch dispatch(kLabel);
  dispatch.operand(&x, 0, n * (first ? 4 : 8), Access::read)
      .operand(&y, 0, sums * 8, Access::write)
      .push(shaders::SparseTotal::Push{
          .n = static_cast<uint32_t>(n), .sums = static_cast<uint32_t>(sums), .span = static_cast<uint32_t>(kSpan)})
      .groups_linear(ceil_div(sums, workgroup), recorder.traits())
      .work(static_cast<double>(n * 8), static_cast<double>(n));
  recorder.dispatch(kernel, dispatch);
}

// The sum of the lengths in 64 bits, by lists that become shorter.
void record_total(Recorder& recorder, const Buffer& lengths, uint64_t n, const Buffer& memory, const Buffer& total) {
  const uint64_t most = ceil_div(n, kSpan) * 8;
  const Buffer lists[2] = {part_of(memory, 0, most), part_of(memory, round_up(most, 256), ceil_div(most, kSpan) + 8)};
  const Buffer* from = &lengths;
  bool first = true;
  for (size_t turn = 0;; turn ^= 1) {
    const uint64_t sums = ceil_div(n, kSpan);
    const Buffer& to = sums == 1 ? total : lists[turn];
    record_sums(recorder, first, *from, n, to, sums);
    if (sums == 1) return;
    from = &to, n = sums, first = false;
  }
}

void record_gate(Recorder& recorder, const SpgemmArgs& args, const Buffer& total, const Buffer& lengths) {
  const Items items = items_of(recorder, args.b_nnz);
  KernelRequest kernel = shaders::SparseGate::request({.run = items.fixed});
  kernel.streaming().constant(0, items.workgroup);
  Dispatch dispatch(kLabel);
  dispatch.operand(&total, 0, 8, Access::read)
      .operand(&lengths, 0, args.b_nnz * 4, Access::write)
      .push(shaders::SparseGate::Push{.n = static_cast<uint32_t>(args.b_nnz),
                                      .run = static_cast<uint32_t>(items.run),
                                      .most = static_cast<uint32_t>(args.max_terms)})
      .groups_linear(items.groups, recorder.traits())
      .work(8, 0);
  recorder.dispatch(kernel, dispatch);
}

struct Terms {
  Buffer rows, columns, products;
};

void record_terms(Recorder& recorder, const SpgemmArgs& args, const ByColumn& a, const ByColumn& b, const Buffer& ends,
                  const Terms& terms) {
  const uint64_t n = args.max_terms, size = dtype_size(args.dtype), value = std::max<uint64_t>(size, 4);
  const Items items = items_of(recorder, n);
  KernelRequest kernel = shaders::SparseTerms::request({.run = items.fixed, .type = args.dtype});
  kernel.streaming().constant(0, items.workgroup);
  Dispatch dispatch(kLabel);
  dispatch.operand(&ends, 0, b.list, Access::read)
      .operand(&b.sorted, 0, b.sorted_bytes, Access::read)
      .operand(&b.order, 0, b.list, Access::read)
      .operand(&a.offsets, 0, a.offset_bytes, Access::read)
      .operand(&a.order, 0, a.list, Access::read)
      .operand(&a.rows, 0, a.list, Access::read)
      .operand(args.a_values, 0, args.a_nnz * size, Access::read)
      .operand(args.b_values, 0, args.b_nnz * size, Access::read)
      .operand(&terms.rows, 0, n * 4, Access::write)
      .operand(&terms.columns, 0, n * 4, Access::write)
      .operand(&terms.products, 0, n * value, Access::write)
      .push(shaders::SparseTerms::Push{.n = static_cast<uint32_t>(n),
                                       .run = static_cast<uint32_t>(items.run),
                                       .entries = static_cast<uint32_t>(args.b_nnz),
                                       .inner = static_cast<uint32_t>(args.inner),
                                       .rows = static_cast<uint32_t>(args.rows),
                                       .columns = static_cast<uint32_t>(args.columns)})
      .groups_linear(items.groups, recorder.traits())
      .work(static_cast<double>(n * (40 + value)), static_cast<double>(n * 32));
  recorder.dispatch(kernel, dispatch);
}

// C from `entries` terms. Sums of 16-bit floats are f32 in scratch memory first.
Result result_of(const SpgemmArgs& args, uint64_t entries) {
  Result r{};
  r.label = kLabel;
  r.dtype = dtype_size(args.dtype) == 2 ? int32_t{TUFF_F32} : args.dtype;
  r.index_bytes = dtype_size(args.index_type);
  r.majors = args.rows, r.minors = args.columns;
  r.entries = entries, r.capacity = args.capacity;
  r.offsets = *args.c_offsets;
  if (args.capacity != 0) r.minor = *args.c_indices, r.values = *args.c_values;
  r.count = args.count;
  return r;
}

// C without entries.
void record_empty(Recorder& recorder, const SpgemmArgs& args) {
  Result result = result_of(args, 0);
  result.dtype = args.dtype;
  ScratchLayout layout;
  const ResultCut cut = cut_result(recorder, result, layout);
  const Buffer memory = recorder.scratch(std::max<uint64_t>(layout.bytes(), 256), Scratch::outermost);
  record_result(recorder, result, cut, memory, {nullptr, nullptr, nullptr});
}

void record(Recorder& recorder, const SpgemmArgs& args) {
  const uint64_t terms = args.max_terms, list = terms * 4;
  const bool narrow = dtype_size(args.dtype) == 2;
  const uint64_t product_bytes = terms * std::max<uint64_t>(dtype_size(args.dtype), 4),
                 sum_bytes = narrow && terms != 0 ? args.capacity * 4 : 0;
  Result result = result_of(args, terms);
  ScratchLayout layout;
  ByColumn a = place(args.a_nnz, args.inner, true, layout), b = place(args.b_nnz, args.columns, false, layout);
  const uint64_t lengths_at = layout.add(b.list), total_at = layout.add(8);
  const uint64_t sums = round_up(ceil_div(b.nnz, kSpan) * 8, 256) + ceil_div(b.nnz, kSpan * kSpan) * 8 + 256;
  const uint64_t sums_at = layout.add(sums);
  const uint64_t rows_at = layout.add(list), columns_at = layout.add(list), keys_at = layout.add(list),
                 order_at = layout.add(list), products_at = layout.add(product_bytes),
                 narrow_at = layout.add(sum_bytes);
  const ResultCut cut = terms == 0 ? ResultCut{} : cut_result(recorder, result, layout);
  const Buffer memory = recorder.scratch(layout.bytes(), Scratch::outermost);
  take(a, memory), take(b, memory);
  const Buffer lengths = part_of(memory, lengths_at, b.list),
               total = args.terms != nullptr ? *args.terms : part_of(memory, total_at, 8);

  const uint64_t index = dtype_size(args.index_type);
  record_by_column(recorder, {kLabel, index, true, args.a_offsets, args.a_indices, args.rows, args.inner, a.nnz}, a);
  record_by_column(recorder, {kLabel, index, true, args.b_offsets, args.b_indices, args.inner, args.columns, b.nnz}, b);
  record_lengths(recorder, args, a, b, lengths);
  record_total(recorder, lengths, b.nnz, part_of(memory, sums_at, sums), total);
  if (terms == 0) {
    record_empty(recorder, args);
    return;
  }
  record_gate(recorder, args, total, lengths);
  const uint64_t entries = b.nnz;
  record_scan(recorder, {ScanOp::sum, TUFF_I32, &lengths, &lengths, &entries, 1, 0, false, false});
  const Terms made{part_of(memory, rows_at, list), part_of(memory, columns_at, list),
                   part_of(memory, products_at, product_bytes)};
  record_terms(recorder, args, a, b, lengths, made);
  const Buffer keys = part_of(memory, keys_at, list), order = part_of(memory, order_at, list);
  record_order(recorder, made.rows, terms, args.rows, keys, order);
  result.source = &made.products;
  if (sum_bytes != 0) result.values = part_of(memory, narrow_at, sum_bytes);
  record_result(recorder, result, cut, memory, {&keys, &order, &made.columns});
  if (sum_bytes != 0) {
    record_cast(recorder, {TUFF_F32, args.dtype, &result.values, args.c_values, args.capacity});
  }
}

}  // namespace

void record_spgemm(Recorder& recorder, const SpgemmArgs& args) {
  require_type(recorder.traits(), args.dtype);
  require_numbers(args.rows, "rows"), require_numbers(args.inner, "inner"), require_numbers(args.columns, "columns");
  require_numbers(args.a_nnz, "a_nnz"), require_numbers(args.b_nnz, "b_nnz");
  require_numbers(args.max_terms, "max_terms");
  if (args.capacity >= kMax) {
    fail(TUFF_ERROR_UNSUPPORTED, "capacity is {}: at most 2^31 - 2 on a device", args.capacity);
  }
  if (args.multiplies() && (args.max_terms != 0 || args.terms != nullptr)) {
    record(recorder, args);
    return;
  }
  record_empty(recorder, args);
  if (args.terms != nullptr) record_fill(recorder, *args.terms, 0, sizeof(int64_t), {});
}

}  // namespace tuff
