"""Sparse matrices against scipy.sparse; triangular systems against NumPy, row by row"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from case import TYPES, Case, Draw, Handle, operand, oracle
from elements import U32, U64, Near, gamma

TYPES_TAKEN = ("f32", "f16", "bf16", "f64")
FORMS = ("coo", "csr", "csc", "dense", "bsr")
BLOCKS = ((1, 1), (2, 3), (5, 1), (1, 4), (4, 4), (3, 16))
INDICES = ("i32", "i64")


def _unit(kind: str) -> float:
    return 2 * U64 if kind == "f64" else U32


def _lengths(draw: Draw, lines: int, extent: int) -> np.ndarray:
    """Entries of each line: few, power laws, a single long line, or none."""
    form = draw.pick(("even", "power", "single", "none"))
    if not extent or form == "none":
        return np.zeros(lines, np.int64)
    if form == "even":
        return draw.data.integers(0, 9, lines)
    if form == "power":
        return np.minimum(draw.data.pareto(1.0, lines) * 2, 2000).astype(np.int64)
    lengths = np.zeros(lines, np.int64)
    if lines:
        lengths[draw.between(0, lines - 1)] = draw.between(1, 3000)
    return lengths


def _entries(draw: Draw, lines: int, extent: int):
    """Offsets of lines, and an index for each entry; a few are out of range."""
    lengths = _lengths(draw, lines, extent)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    indices = draw.data.integers(0, max(extent, 1), int(offsets[-1])).astype(np.int64)
    if draw.flip(0.2):
        indices = draw.sprinkled(indices, (-1, extent, 2**31 - 1, -(2**31)))
    return offsets, indices


def _dense(rows: int, columns: int, row, column, values) -> tuple[np.ndarray, np.ndarray]:
    """The matrix by scipy.sparse, and how many entries each element has."""
    good = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    place = (row[good], column[good])
    if not rows or not columns:
        return np.zeros((rows, columns)), np.zeros((rows, columns))
    return (scipy.sparse.coo_array((values[good], place), (rows, columns)).toarray(),
            scipy.sparse.coo_array((np.ones(good.sum()), place), (rows, columns)).toarray())  # fmt: skip


def _elements(row, column, blocks, order: int):
    """The rows and columns of the elements of blocks, in the order in which they are stored."""
    r, c = blocks
    k = np.arange(r * c)
    i, j = (k % r, k // r) if order else (k // c, k % c)
    return (row[:, None] * r + i).ravel(), (column[:, None] * c + j).ravel()


def _as_blocks(matrix, count, blocks, order: int):
    """Where blocks have entries, in order, and their values as they are stored."""
    (rows, columns), (r, c) = matrix.shape, blocks
    parts = matrix.reshape(rows // r, r, columns // c, c).transpose(0, 2, 1, 3)
    present = np.nonzero((count != 0).reshape(rows // r, r, columns // c, c).any(axis=(1, 3)))
    values = parts[present]
    return present, (values.transpose(0, 2, 1) if order else values).reshape(-1)


@oracle("spmm", ["tuff_spmm"], TYPES_TAKEN, ("left", "right"))
def spmm(draw: Draw, kind: str, form: str) -> Case:
    t, right, index = TYPES[kind], form == "right", draw.option(INDICES)
    transpose = draw.option([0, 1, 2])
    lines, across = draw.size(90, 0.02), draw.size(90, 0.02)
    blocks = draw.pick(BLOCKS) if draw.flip(0.4) else (1, 1)
    order = draw.option([0, 1])
    rows, columns = lines * blocks[0], across * blocks[1]
    n, batch = draw.pick((1, 1, draw.size(20, 0.02))), draw.size(3, 0.02)
    alpha, beta = draw.option([1.0, -0.5, 2.0]), draw.option([0.0, 1.0, -1.5])
    offsets, indices = _entries(draw, lines, across)
    nnz = len(indices)
    elements = nnz * blocks[0] * blocks[1]
    by_values = draw.flip(0.5) and batch > 1
    stride_values = elements + draw.gap() if by_values else 0
    values = draw.data.uniform(-1, 1, (batch, elements))
    if not by_values:
        values = np.broadcast_to(values[:1], values.shape)
    of_rows, of_columns = (columns, rows) if transpose else (rows, columns)  # of op(A)
    shape_b = (batch, n, of_rows) if right else (batch, of_columns, n)
    shape_c = (batch, n, of_columns) if right else (batch, of_rows, n)

    def dense(shape, repeats=False):
        ld = shape[2] + draw.gap()
        one = (shape[1] - 1) * ld + shape[2] if shape[1] and shape[2] else 0
        return (0 if repeats else one + draw.gap(), ld, 1)

    strides_b, strides_c = dense(shape_b, draw.flip(0.3)), dense(shape_c)
    b = draw.data.uniform(-1, 1, shape_b)
    if strides_b[0] == 0:
        b = np.broadcast_to(b[:1], b.shape)
    c = draw.data.uniform(-1, 1, shape_c)
    operands = {"offsets": operand(draw, TYPES[index], offsets), "indices": operand(draw, TYPES[index], indices),
                "values": operand(draw, t, values, (stride_values, 1)), "b": operand(draw, t, b, strides_b),
                "c": operand(draw, t, c if beta else shape_c, strides_c, output=True)}  # fmt: skip
    fields = {"dtype": t.code, "index_type": TYPES[index].code, "transpose": transpose, "side": int(right), "rows": rows,
              "columns": columns, "nnz": nnz, "n": n, "alpha": alpha, "beta": beta, "stride_values": stride_values,
              "ldb": 0 if strides_b[1] == shape_b[2] else strides_b[1], "ldc": 0 if strides_c[1] == shape_c[2] else strides_c[1],
              "stride_b": strides_b[0], "stride_c": strides_c[0], "batch_count": batch,
              "block_rows": blocks[0], "block_columns": blocks[1], "block_order": order,
              **{name: Handle(name) for name in operands}}  # fmt: skip
    stored = {name: o.values for name, o in operands.items()}
    row, column = _elements(np.repeat(np.arange(lines), np.diff(offsets)), indices, blocks, order)

    def reference() -> dict:
        value, size, terms = np.zeros(shape_c), np.zeros(shape_c), np.zeros(shape_c)
        for i in range(batch):
            a, _ = _dense(rows, columns, row, column, stored["values"][i])
            magnitude, count = _dense(rows, columns, row, column, np.abs(stored["values"][i]))
            if transpose:
                a, magnitude, count = a.T, magnitude.T, count.T
            x = stored["b"][i]
            value[i] = alpha * (x @ a if right else a @ x)
            size[i] = abs(alpha) * (np.abs(x) @ magnitude if right else magnitude @ np.abs(x))
            terms[i] = np.ones_like(x) @ count if right else count @ np.ones_like(x)
            if beta:
                value[i] += beta * stored["c"][i]
                size[i] += np.abs(beta * stored["c"][i])
        # A sum of products in any order, alpha, beta * C and their sum: gamma of the terms and 4, of what is added.
        most = gamma(int(terms.max(initial=0)) + 4, _unit(kind)) * size
        return {"c": Near(value, most)}

    return Case("tuff_spmm", fields, operands, {"scipy": reference})


@oracle("sparse_convert", ["tuff_sparse_convert"], TYPES_TAKEN, FORMS)
def sparse_convert(draw: Draw, kind: str, form: str) -> Case:
    t, index, to = TYPES[kind], draw.option(INDICES), draw.option(FORMS)
    from_blocks, to_blocks = (draw.pick(BLOCKS) if of == "bsr" else (1, 1) for of in (form, to))
    from_order, to_order = draw.option([0, 1]), draw.option([0, 1])
    rows, columns = (draw.size(max(70 // lcm, 2), 0.03) * lcm for lcm in np.lcm(from_blocks, to_blocks).tolist())
    lines, extent = (columns, rows) if form == "csc" else (rows // from_blocks[0], columns // from_blocks[1])
    offsets, minor = _entries(draw, lines, extent)
    major = np.repeat(np.arange(lines), np.diff(offsets))
    if form == "coo" and len(minor):
        order = draw.data.permutation(len(minor))
        major, minor = major[order], minor[order]
    row, column = given_row, given_column = (minor, major) if form == "csc" else (major, minor)
    if form == "bsr":
        row, column = _elements(row, column, from_blocks, from_order)
    # Integers, whose sums are exact in every type.
    values = draw.data.integers(-1 if kind == "bf16" else -3, 2, len(row)).astype(np.float64)
    good = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    matrix, count = _dense(rows, columns, row, column, values)
    if form == "dense":
        matrix = np.clip(matrix, -100, 100)
        count = matrix != 0
    elif np.abs(matrix).max(initial=0) > 250:  # bf16 does not hold every such sum
        values, matrix = np.zeros_like(values), np.zeros_like(matrix)
    from_ld, to_ld = columns + draw.gap(), columns + draw.gap()
    present = np.nonzero(count)
    if to == "csc":
        order = np.lexsort(present)
        present = (present[0][order], present[1][order])
    listed_values = matrix[present]
    if to == "bsr":
        present, listed_values = _as_blocks(matrix, count, to_blocks, to_order)
    found = len(present[0])
    capacity = draw.pick((found, found + draw.size(9), max(found - 2, 0)))
    kept = min(found, capacity)

    def listed(numbers, filled):
        result = np.full(capacity, filled, np.float64 if filled == 0 else np.int64)
        result[:kept] = numbers[:kept]
        return result

    def offsets_of(lines_of, count_of):
        return np.concatenate([[0], np.cumsum(np.bincount(lines_of, minlength=count_of)[:count_of])]).astype(np.int64)

    i = TYPES[index]
    operands, fields = {}, {}
    if form == "dense":
        operands["from_values"] = operand(draw, t, matrix, (from_ld, 1))
    else:
        operands["from_rows"] = operand(draw, i, offsets if form in ("csr", "bsr") else given_row)
        operands["from_columns"] = operand(draw, i, offsets if form == "csc" else given_column)
        operands["from_values"] = operand(draw, t, values)
    expected = {}
    if to == "dense":
        operands["to_values"] = operand(draw, t, (rows, columns), (to_ld, 1), output=True)
        expected["to_values"] = Near(matrix)
    else:
        expected["to_rows"] = Near(offsets_of(present[0], rows // to_blocks[0]) if to in ("csr", "bsr") else listed(present[0], -1))
        expected["to_columns"] = Near(offsets_of(present[1], columns) if to == "csc" else listed(present[1], -1))
        block = to_blocks[0] * to_blocks[1]
        filled = np.zeros(capacity * block)
        filled[: kept * block] = listed_values[: kept * block]
        expected["to_values"] = Near(filled)
        for name, of in (("to_rows", i), ("to_columns", i), ("to_values", t)):
            operands[name] = operand(draw, of, np.shape(expected[name].value), output=True)
    if draw.maybe(0.6):
        operands["count"] = operand(draw, TYPES["i64"], (1,), output=True)
        expected["count"] = Near(np.array([found]))
    fields = {"dtype": t.code, "index_type": i.code, "from_format": FORMS.index(form), "to_format": FORMS.index(to),
              "rows": rows, "columns": columns, "nnz": len(values) // (from_blocks[0] * from_blocks[1]), "capacity": capacity,
              "from_block_rows": from_blocks[0], "from_block_columns": from_blocks[1], "from_block_order": from_order,
              "to_block_rows": to_blocks[0], "to_block_columns": to_blocks[1], "to_block_order": to_order,
              "from_ld": 0 if from_ld == columns else from_ld, "to_ld": 0 if to_ld == columns else to_ld,
              **{name: Handle(name) for name in operands}}  # fmt: skip
    return Case("tuff_sparse_convert", fields, operands, {"scipy": lambda: expected})


@oracle("sddmm", ["tuff_sddmm"], TYPES_TAKEN, ("coo", "csr"))
def sddmm(draw: Draw, kind: str, form: str) -> Case:
    t, index = TYPES[kind], draw.option(INDICES)
    transpose = draw.option([0, 1, 2])
    rows, columns, k = draw.size(70, 0.02), draw.size(70, 0.02), draw.size(60, 0.02)
    batch = draw.size(3, 0.02)
    alpha, beta = draw.option([1.0, -0.5, 2.0]), draw.option([0.0, 1.0, -1.5])
    offsets, column = _entries(draw, rows, columns)
    row, nnz = np.repeat(np.arange(rows), np.diff(offsets)), len(column)
    if form == "coo" and nnz:
        order = draw.data.permutation(nnz)
        row, column = row[order], column[order]
        if draw.flip(0.2):
            row = draw.sprinkled(row, (-1, rows, 2**31 - 1, -(2**31)))
    shape_a, shape_b = (batch, rows, k), (batch, columns, k) if transpose else (batch, k, columns)

    def dense(shape):
        ld = shape[2] + draw.gap()
        one = (shape[1] - 1) * ld + shape[2] if shape[1] and shape[2] else 0
        repeats = draw.flip(0.3)
        x = draw.data.uniform(-1, 1, shape)
        return np.broadcast_to(x[:1], x.shape) if repeats else x, (0 if repeats else one + draw.gap(), ld, 1)

    (a, strides_a), (b, strides_b) = dense(shape_a), dense(shape_b)
    values, scales = draw.data.uniform(-1, 1, (2, batch, nnz))
    stride_values, stride_scales = nnz + draw.gap(), nnz + draw.gap() if draw.flip(0.5) else 0
    if stride_scales == 0:
        scales = np.broadcast_to(scales[:1], scales.shape)
    operands = {"place_rows": operand(draw, TYPES[index], offsets if form == "csr" else row),
                "place_columns": operand(draw, TYPES[index], column),
                "a": operand(draw, t, a, strides_a), "b": operand(draw, t, b, strides_b),
                "values": operand(draw, t, values if beta else (batch, nnz), (stride_values, 1), output=True)}  # fmt: skip
    scaled = draw.flip(0.5)
    if scaled:
        operands["scales"] = operand(draw, t, scales, (stride_scales, 1))
    fields = {"dtype": t.code, "index_type": TYPES[index].code, "place_format": FORMS.index(form), "transpose": transpose,
              "rows": rows, "columns": columns, "nnz": nnz, "k": k, "alpha": alpha, "beta": beta,
              "lda": 0 if strides_a[1] == shape_a[2] else strides_a[1], "ldb": 0 if strides_b[1] == shape_b[2] else strides_b[1],
              "stride_a": strides_a[0], "stride_b": strides_b[0], "stride_scales": stride_scales,
              "stride_values": stride_values, "batch_count": batch, **{name: Handle(name) for name in operands}}  # fmt: skip
    stored = {name: o.values for name, o in operands.items()}
    good = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)

    def reference() -> dict:
        value, size = np.zeros((batch, nnz)), np.zeros((batch, nnz))
        place = row[good], column[good]
        for i in range(batch):
            x, y = stored["a"][i], stored["b"][i].T if transpose else stored["b"][i]
            scale = alpha * stored["scales"][i][good] if scaled else np.full(good.sum(), alpha)
            value[i, good] = scale * np.asarray((x @ y)[place])
            size[i, good] = np.abs(scale) * np.asarray((np.abs(x) @ np.abs(y))[place])
            if beta:
                value[i] += beta * stored["values"][i]
                size[i] += np.abs(beta * stored["values"][i])
        # A sum of k products in any order, the scale, alpha, beta * C and their sum.
        return {"values": Near(value, gamma(k + 5, _unit(kind)) * size)}

    return Case("tuff_sddmm", fields, operands, {"numpy": reference})


@oracle("spgemm", ["tuff_spgemm"], TYPES_TAKEN)
def spgemm(draw: Draw, kind: str, form: str) -> Case:
    t, i = TYPES[kind], TYPES[draw.option(INDICES)]
    rows, inner, columns = draw.size(70, 0.03), draw.size(70, 0.03), draw.size(70, 0.03)
    a_offsets, a_indices = _entries(draw, rows, inner)
    b_offsets, b_indices = _entries(draw, inner, columns)
    a_values, b_values = (draw.data.uniform(-1, 1, len(x)) for x in (a_indices, b_indices))
    operands = {"a_offsets": operand(draw, i, a_offsets), "a_indices": operand(draw, i, a_indices), "a_values": operand(draw, t, a_values),
                "b_offsets": operand(draw, i, b_offsets), "b_indices": operand(draw, i, b_indices), "b_values": operand(draw, t, b_values)}  # fmt: skip
    a_row, b_row = np.repeat(np.arange(rows), np.diff(a_offsets)), np.repeat(np.arange(inner), np.diff(b_offsets))
    stored = operands["a_values"].values, operands["b_values"].values
    (a, of_a), (b, of_b) = _dense(rows, inner, a_row, a_indices, stored[0]), _dense(inner, columns, b_row, b_indices, stored[1])
    magnitude = _dense(rows, inner, a_row, a_indices, np.abs(stored[0]))[0] @ _dense(inner, columns, b_row, b_indices, np.abs(stored[1]))[0]
    count = of_a @ of_b  # terms of each element
    value, terms = a @ b, int(count.sum())
    max_terms = draw.pick((terms, terms + draw.size(50), max(terms - 1, 0)))
    if max_terms < terms:  # nothing is multiplied
        count = np.zeros_like(count)
    present = np.nonzero(count)
    found = len(present[0])
    capacity = draw.pick((found, found + draw.size(9), max(found - 2, 0)))
    kept = min(found, capacity)
    offsets = np.concatenate([[0], np.cumsum((count != 0).sum(axis=1))]).astype(np.int64)
    indices = np.full(capacity, -1, np.int64)
    values, bound = np.zeros(capacity), np.zeros(capacity)
    indices[:kept], values[:kept] = present[1][:kept], value[present][:kept]
    # A sum of products in any order.
    bound[:kept] = gamma(int(count.max(initial=0)) + 1, _unit(kind)) * magnitude[present][:kept]
    expected = {"c_offsets": Near(offsets), "c_indices": Near(indices), "c_values": Near(values, bound)}
    if draw.maybe(0.6):
        expected["count"] = Near(np.array([found]))
    if draw.maybe(0.6):
        expected["terms"] = Near(np.array([terms]))
    kinds = {"c_offsets": i, "c_indices": i, "c_values": t, "count": TYPES["i64"], "terms": TYPES["i64"]}
    for name, near in expected.items():
        operands[name] = operand(draw, kinds[name], np.shape(near.value), output=True)
    fields = {"dtype": t.code, "index_type": i.code, "rows": rows, "inner": inner, "columns": columns, "a_nnz": len(a_indices),
              "b_nnz": len(b_indices), "max_terms": max_terms, "capacity": capacity, **{name: Handle(name) for name in operands}}  # fmt: skip
    return Case("tuff_spgemm", fields, operands, {"scipy": lambda: expected})


def _levels(matrix: np.ndarray, forward: bool) -> np.ndarray:
    """Offsets of levels, and the rows by level, of a triangle's pattern without its diagonal."""
    rows = len(matrix)
    level = np.zeros(rows, np.int64)
    for i in range(rows) if forward else range(rows - 1, -1, -1):
        level[i] = (level[matrix[i]] + 1).max(initial=0)
    order = np.argsort(level, kind="stable")
    return np.concatenate([np.searchsorted(level[order], np.arange(rows + 1)), order])


@oracle("sparse_triangular_solve", ["tuff_sparse_triangular_solve"], TYPES_TAKEN, ("lower", "upper"))
def sparse_triangular_solve(draw: Draw, kind: str, form: str) -> Case:
    t, i = TYPES[kind], TYPES[draw.option(INDICES)]
    transpose, unit, ready = draw.option([0, 1, 2]), draw.maybe(0.5), draw.maybe(0.4)
    rows, n = draw.size(60, 0.02), draw.pick((1, 1, draw.size(9, 0.02)))
    alpha = draw.option([1.0, -0.5, 2.0])
    offsets, indices = _entries(draw, rows, rows)
    # An entry on the diagonal after those of each row. Without one, entries of the same place, which the reference sums
    # before it multiplies them by an infinity, would give NaN.
    indices = np.insert(indices, offsets[1:], np.arange(rows))
    offsets = offsets + np.arange(rows + 1)
    row = np.repeat(np.arange(rows), np.diff(offsets))
    lengths = np.diff(offsets) if transpose == 0 else np.bincount(indices[(indices >= 0) & (indices < rows)], minlength=rows)
    # Rows that are dominated by their diagonal: the solution stays small.
    values = draw.data.uniform(-1, 1, len(indices)) / (2 * max(int(lengths.max(initial=1)), 1))
    diagonal = row == indices
    values[diagonal] = draw.data.uniform(1, 2, int(diagonal.sum()))
    shape = (rows, n)
    ldb, ldx = n + draw.gap(), n + draw.gap()
    operands = {"offsets": operand(draw, i, offsets), "indices": operand(draw, i, indices), "values": operand(draw, t, values),
                "b": operand(draw, t, draw.data.uniform(-1, 1, shape), (ldb, 1))}  # fmt: skip
    operands["x"] = operand(draw, t, shape, (ldx, 1), output=True)
    stored = operands["values"].values
    lower = form == "lower"
    part = np.tril if lower else np.triu
    a, count = (part(x) for x in _dense(rows, rows, row, indices, stored))
    magnitude = part(_dense(rows, rows, row, indices, np.abs(stored))[0])
    if transpose:
        a, count, magnitude = a.T, count.T, magnitude.T
    forward = lower == (transpose == 0)
    pattern = count != 0
    np.fill_diagonal(pattern, False)
    levels = _levels(pattern, forward)
    if ready:
        operands["levels"] = operand(draw, TYPES["i32"], levels)
    elif draw.maybe(0.6) and rows:
        operands["levels"] = operand(draw, TYPES["i32"], levels.shape, output=True)
    fields = {"dtype": t.code, "index_type": i.code, "triangle": int(not lower), "transpose": transpose, "unit_diagonal": int(unit),
              "levels_ready": int(ready), "rows": rows, "nnz": len(indices), "n": n, "alpha": alpha,
              "ldb": 0 if ldb == n else ldb, "ldx": 0 if ldx == n else ldx, **{name: Handle(name) for name in operands}}  # fmt: skip
    right = alpha * operands["b"].values

    def reference() -> dict:
        solution, error = np.zeros(shape), np.zeros(shape)
        g = gamma(int(count.sum(axis=1).max(initial=0)) + 5, _unit(kind))
        for r in range(rows) if forward else range(rows - 1, -1, -1):
            others, d = pattern[r], 1.0 if unit else a[r, r]
            solution[r] = (right[r] - a[r, others] @ solution[others]) / d
            # Of the sum, its division, and of the rows that it refers to.
            size = np.abs(right[r]) + magnitude[r, others] @ np.abs(solution[others])
            error[r] = (g * size + magnitude[r, others] @ error[others]) / abs(d) + g * np.abs(solution[r])
        expected = {"x": Near(solution, error)}
        if not ready and "levels" in operands:
            expected["levels"] = Near(levels)
        return expected

    return Case("tuff_sparse_triangular_solve", fields, operands, {"numpy": reference})
