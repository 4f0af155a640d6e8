"""Linear algebra against scipy.linalg, and NumPy's qr, eigvalsh, svd and long doubles"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize

from case import TYPES, Case, Draw, Handle, Operand, operand, oracle
from elements import COMPLEX, U32, U64, Near, decode, gamma

TYPES_TAKEN = ("f32", "f64")


def _unit(kind: str) -> float:
    # Twice for f64: the reference has the same errors.
    return U32 if kind == "f32" else 2 * U64


def _growth(n: int, kind: str) -> float:
    """Relative to the sum of magnitudes: n products and sums, a quotient or root of 4 ULP, and second-order terms, which
    are below the first for these matrices, whose inverses are small."""
    return 2 * gamma(n + 8, _unit(kind))


class Layout:
    """Leading dimension and stride of matrices, as the descriptor's fields and as strides of an operand."""

    def __init__(self, draw: Draw, name: str, rows: int, cols: int, batch: int, repeats: bool = False) -> None:
        ld = cols + draw.gap()
        one = (rows - 1) * ld + cols if rows and cols else 0
        stride = one + draw.gap()
        if repeats and draw.flip(0.3):
            stride = 0
        self.name, self.strides = name, (stride, ld, 1)
        self.fields = {f"ld{name}": 0 if ld == cols and draw.flip(0.5) else ld, f"stride_{name}": stride,
                       name: Handle(name)}  # fmt: skip

    def place(self, draw: Draw, t, values: np.ndarray, output: bool = False) -> Operand:
        if self.strides[0] == 0:
            values = np.broadcast_to(values[:1], values.shape)
        return operand(draw, t, values, self.strides, output=output)


def _inverse(triangle: np.ndarray, lower: bool) -> np.ndarray:
    return np.abs(scipy.linalg.solve_triangular(triangle, np.eye(len(triangle)), lower=lower)) if len(triangle) else triangle


def _well(draw: Draw, n: int, batch: int, lower: bool) -> np.ndarray:
    """Triangles whose inverses are small: diagonals of magnitude 1 to 2, and rows of the rest that sum to 1 at most."""
    x = draw.data.uniform(-1, 1, (batch, n, n)) / max(n, 1)
    x = np.tril(x, -1) if lower else np.triu(x, 1)
    diagonal = draw.data.choice([-1.0, 1.0], (batch, n)) * draw.data.uniform(1, 2, (batch, n))
    return x + diagonal[:, :, None] * np.eye(n)


def _other(n: int, upper: bool) -> np.ndarray:
    """The places of the triangle that is not read, without the diagonal."""
    return np.tril(np.ones((n, n), bool), -1) if upper else np.triu(np.ones((n, n), bool), 1)


def _extents(draw: Draw, form: str, most: int) -> tuple[int, int, int, int]:
    """The smaller extent, rows, columns and batch of square, tall or wide matrices."""
    n, batch = draw.size(most, 0.02), draw.size(4, 0.03)
    more = draw.size(60) if form != "square" else 0
    return n, n + (more if form == "tall" else 0), n + (more if form == "wide" else 0), batch


def _info(draw: Draw, operands: dict, fields: dict, batch: int) -> bool:
    wanted = draw.maybe(0.6)
    if wanted:
        operands["info"] = operand(draw, TYPES["i32"], [batch], output=True)
        fields["info"] = Handle("info")
    return wanted


@oracle("cholesky", ["tuff_cholesky"], TYPES_TAKEN, ("lower", "upper"))
def cholesky(draw: Draw, kind: str, form: str) -> Case:
    t, upper = TYPES[kind], form == "upper"
    n, batch = draw.size(150, 0.02), draw.size(4, 0.03)
    g = draw.values((batch, n, n))
    values = g @ g.transpose(0, 2, 1) / max(n, 1) + np.eye(n) * draw.pick([0.5, 1.0, 4.0])
    values = (values + values.transpose(0, 2, 1)) / 2
    other = _other(n, upper)
    values[:, other] = np.nan  # not read
    layout = Layout(draw, "a", n, n, batch)
    operands = {"a": layout.place(draw, t, values, output=True)}
    fields = {"dtype": t.code, "triangle": int(upper), "n": n, "batch_count": batch, **layout.fields}
    informed = _info(draw, operands, fields, batch)
    stored = operands["a"].values

    def reference() -> dict:
        value, bound = np.zeros((batch, n, n)), np.zeros((batch, n, n))
        for i in range(batch if n else 0):
            a = np.where(other, stored[i].T, stored[i])
            l = scipy.linalg.cholesky(a, lower=True)
            # Higham, theorem 10.3: L L^T = A + E with |E| <= gamma |L| |L^T|; then dL = L half(L^-1 E L^-T), where
            # half() is the lower triangle with half of the diagonal.
            inverse, error = _inverse(l, True), _growth(n, kind) * np.abs(l) @ np.abs(l.T)
            inner = np.tril(inverse @ error @ inverse.T)
            delta = np.tril(np.abs(l) @ inner) + _unit(kind) * np.abs(l)
            value[i], bound[i] = (l.T, delta.T) if upper else (l, delta)
        return {"a": Near(value, bound)} | ({"info": Near(np.zeros(batch, np.int64))} if informed else {})

    return Case("tuff_cholesky", fields, operands, {"scipy": reference})


@oracle("lu", ["tuff_lu"], TYPES_TAKEN, ("square", "tall", "wide"))
def lu(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    n, rows, cols, batch = _extents(draw, form, 130)
    # A = P L U with elements of L of at most 1/2 below its diagonal of ones, so that rounding changes no pivot.
    lower = np.zeros((batch, rows, n))
    lower[:, :n] = np.tril(draw.data.uniform(-1, 1, (batch, n, n)) / max(n, 2), -1) + np.eye(n)
    lower[:, n:] = draw.data.uniform(-0.5, 0.5, (batch, rows - n, n))
    values = lower @ np.concatenate([_well(draw, n, batch, False), draw.values((batch, n, cols - n))], axis=2)
    for i in range(batch):
        values[i] = values[i][draw.data.permutation(rows)]
    layout = Layout(draw, "a", rows, cols, batch)
    gap = draw.gap(0.3)
    operands = {"a": layout.place(draw, t, values, output=True),
                "pivots": operand(draw, TYPES["i32"], (batch, n), (n + gap, 1), output=True)}  # fmt: skip
    fields = {"dtype": t.code, "m": rows, "n": cols, "batch_count": batch, "pivots": Handle("pivots"),
              "stride_pivots": 0 if not gap and draw.flip(0.5) else n + gap, **layout.fields}  # fmt: skip
    informed = _info(draw, operands, fields, batch)
    stored = operands["a"].values

    def reference() -> dict:
        value, bound = np.zeros((batch, rows, cols)), np.zeros((batch, rows, cols))
        pivots = np.zeros((batch, n), np.int64)
        for i in range(batch if n else 0):
            value[i], pivots[i] = scipy.linalg.lu_factor(stored[i])
            l, u = np.tril(value[i][:, :n], -1) + np.eye(rows, n), np.triu(value[i][:n])
            # Higham, theorem 9.3: L U = A + E with |E| <= gamma |L| |U|; with F = L1^-1 E1 U1^-1 for the square parts,
            # dL1 = L1 * (F below the diagonal) and dU1 = (F on it and above) * U1. The other parts solve L2 U1 = A2 and
            # L1 U2 = A2.
            error = _growth(n, kind) * np.abs(l) @ np.abs(u)
            l1, u1 = np.abs(l[:n]), np.abs(u[:, :n])
            inverse_l, inverse_u = _inverse(l[:n], True), _inverse(u[:, :n], False)
            inner = inverse_l @ error[:n, :n] @ inverse_u
            delta_l, delta_u = l1 @ np.tril(inner, -1), np.triu(inner) @ u1
            bound[i][:n, :n] = np.tril(delta_l, -1) + np.triu(delta_u)
            bound[i][n:, :n] = (error[n:, :n] + np.abs(l[n:]) @ delta_u) @ inverse_u
            bound[i][:n, n:] = inverse_l @ (error[:n, n:] + delta_l @ np.abs(u[:, n:]))
            bound[i] += _unit(kind) * np.abs(value[i])
        return {"a": Near(value, bound), "pivots": Near(pivots)} | (
            {"info": Near(np.zeros(batch, np.int64))} if informed else {}
        )

    return Case("tuff_lu", fields, operands, {"scipy": reference})


def _solved(t: np.ndarray, b: np.ndarray, lower: bool, kind: str, error: np.ndarray, ones: bool = False):
    """X with T X = B, and its bound if B has this error: Higham, theorem 8.5: (T + dT) x = b with |dT| <= gamma |T|."""
    t = np.tril(t) if lower else np.triu(t)
    if ones:
        np.fill_diagonal(t, 1.0)
    x = scipy.linalg.solve_triangular(t, b, lower=lower)
    size = _growth(len(t), kind) * np.abs(t) @ np.abs(x)
    return x, _inverse(t, lower) @ (size + error) + _unit(kind) * np.abs(x)


@oracle("triangular_solve", ["tuff_triangular_solve"], TYPES_TAKEN, ("left", "right"))
def triangular_solve(draw: Draw, kind: str, form: str) -> Case:
    t, right = TYPES[kind], form == "right"
    upper, ones, transpose = draw.maybe(0.5), draw.maybe(0.4), draw.option([0, 1, 2])
    n, others, batch = draw.size(140, 0.02), draw.size(60, 0.02), draw.size(4, 0.03)
    rows, cols = (others, n) if right else (n, others)
    a = _well(draw, n, batch, not upper)
    unread = _other(n, upper)
    if ones:
        unread |= np.eye(n, dtype=bool)
    a[:, unread] = np.nan
    of_a, of_b = Layout(draw, "a", n, n, batch, repeats=True), Layout(draw, "b", rows, cols, batch)
    operands = {"a": of_a.place(draw, t, a), "b": of_b.place(draw, t, draw.values((batch, rows, cols)), output=True)}
    fields = {"dtype": t.code, "side": int(right), "triangle": int(upper), "transpose": transpose,
              "unit_diagonal": int(ones), "m": rows, "n": cols, "batch_count": batch, **of_a.fields, **of_b.fields}  # fmt: skip
    triangles, sides = operands["a"].values, operands["b"].values

    def reference() -> dict:
        value, bound = np.zeros((batch, rows, cols)), np.zeros((batch, rows, cols))
        for i in range(batch if n and others else 0):
            matrix = np.where(unread, 0.0, triangles[i])
            flipped = (transpose != 0) != right
            x, delta = _solved(matrix.T if flipped else matrix, sides[i].T if right else sides[i], upper == flipped, kind,
                               np.zeros((n, others)), ones)  # fmt: skip
            value[i], bound[i] = (x.T, delta.T) if right else (x, delta)
        return {"b": Near(value, bound)}

    return Case("tuff_triangular_solve", fields, operands, {"scipy": reference})


def _factors(draw: Draw, t, n: int, batch: int):
    """The operands of a factorisation with small inverses, and their fields."""
    layout = Layout(draw, "a", n, n, batch, repeats=True)
    values = _well(draw, n, batch, False) + np.tril(draw.data.uniform(-1, 1, (batch, n, n)) / max(n, 2), -1)
    first = np.arange(n)
    pivots = (first + draw.data.integers(0, np.maximum(n - first, 1), (batch, n))).astype(np.int64)
    shared = layout.strides[0] == 0
    stride = 0 if shared else n + draw.gap(0.3)
    if shared:
        pivots = np.broadcast_to(pivots[:1], pivots.shape)
    operands = {"a": layout.place(draw, t, values), "pivots": operand(draw, TYPES["i32"], pivots, (stride, 1))}
    fields = {**layout.fields, "pivots": Handle("pivots"), "n": n, "batch_count": batch, "dtype": t.code,
              "stride_pivots": 0 if stride in (0, n) and draw.flip(0.5) else stride}  # fmt: skip
    return operands, fields


@oracle("lu_solve", ["tuff_lu_solve"], TYPES_TAKEN, ("plain", "transposed"))
def lu_solve(draw: Draw, kind: str, form: str) -> Case:
    t, transpose = TYPES[kind], draw.option([1, 2]) if form == "transposed" else 0
    n, nrhs, batch = draw.size(140, 0.02), draw.size(50, 0.02), draw.size(4, 0.03)
    operands, fields = _factors(draw, t, n, batch)
    layout = Layout(draw, "b", n, nrhs, batch)
    operands["b"] = layout.place(draw, t, draw.values((batch, n, nrhs)), output=True)
    fields |= {"transpose": transpose, "nrhs": nrhs, **layout.fields}
    factors, pivots, sides = (operands[name].values for name in ("a", "pivots", "b"))

    def reference() -> dict:
        value, bound = np.zeros((batch, n, nrhs)), np.zeros((batch, n, nrhs))
        for i in range(batch if n and nrhs else 0):
            f, none = factors[i], np.zeros((n, nrhs))
            order = np.arange(n)
            for k, p in enumerate(pivots[i]):
                order[[k, p]] = order[[p, k]]
            if not transpose:
                y, delta = _solved(f, sides[i][order], True, kind, none, True)
                _, bound[i] = _solved(f, y, False, kind, delta)
            else:
                y, delta = _solved(f.T, sides[i], True, kind, none)
                bound[i][order] = _solved(f.T, y, False, kind, delta, True)[1]
            value[i] = scipy.linalg.lu_solve((f, pivots[i]), sides[i], trans=int(transpose != 0))
        return {"b": Near(value, bound)}

    return Case("tuff_lu_solve", fields, operands, {"scipy": reference})


@oracle("lu_determinant", ["tuff_lu_determinant"], TYPES_TAKEN)
def lu_determinant(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    n, batch = draw.size(140, 0.03), draw.size(9, 0.03)
    operands, fields = _factors(draw, t, n, batch)
    names = [name for name in ("determinant", "sign", "log_magnitude") if draw.maybe(0.7)]
    for name in names:
        operands[name] = operand(draw, t, [batch], output=True)
        fields[name] = Handle(name)
    diagonal = np.diagonal(operands["a"].values, axis1=1, axis2=2).astype(np.longdouble)
    exchanged = (operands["pivots"].values != np.arange(n)).sum(axis=1)

    def reference() -> dict:
        product = np.prod(diagonal, axis=1) * np.where(exchanged % 2, -1, 1)
        logarithm = np.sum(np.log(np.abs(diagonal)), axis=1)
        error = gamma(2 * n + 4, _unit(kind))
        results = {
            "determinant": Near(product, error * np.abs(product)),
            "sign": Near(np.sign(product)),
            # The logarithm of a product with this relative error, of 2^e, and their sum: 4 ULP each.
            "log_magnitude": Near(logarithm, error + 8 * _unit(kind) * (1 + np.abs(logarithm))),
        }
        return {name: results[name] for name in names}

    return Case("tuff_lu_determinant", fields, operands, {"numpy": reference})


def _certain_signs(a: np.ndarray, most: np.ndarray) -> bool:
    """Whether rounding errors of this size cannot change a sign of R's diagonal, which is that of the element that each
    reflection takes away."""
    if 0 in a.shape:
        return True
    (_, tau), r = scipy.linalg.qr(a, mode="raw")
    return bool((np.abs(np.diagonal(r) * (1 - tau)) > most[: len(tau)])[tau != 0].all())


def _qr_error(a: np.ndarray, kind: str) -> tuple[float, np.ndarray]:
    """Bounds for elements of Q, and of each column of R. Higham, theorem 19.4: A + E = Q R exactly, where a column of E is
    at most c m n u as long as that of A, and c = 4 holds for sums of this length. The square part's Q is at most sqrt(2)
    |A^+| |E| from that of A (Sun, 1991); a column of R is Q^T times that of A + E."""
    k = min(a.shape)
    if not k:
        return 0.0, np.zeros(a.shape[1])
    relative = 4 * a.shape[0] * k * _unit(kind)
    of_q = 1.5 / np.linalg.svd(a[:, :k], compute_uv=False)[-1] * relative * np.linalg.norm(a[:, :k])
    return of_q, (of_q + relative) * np.linalg.norm(a, axis=0)


@oracle("qr", ["tuff_qr"], TYPES_TAKEN, ("square", "tall", "wide"))
def qr(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    n, rows, cols, batch = _extents(draw, form, 60)
    values = np.zeros((batch, rows, cols))
    for i in range(batch):
        # Q near the identity, so that the elements that reflections take away are near R's diagonal.
        q = np.linalg.qr(np.eye(rows, n) + draw.values((rows, n)) * (0.3 / max(rows, 1) ** 0.5))[0] if n else np.eye(rows, n)
        values[i] = np.concatenate([q @ _well(draw, n, 1, False)[0], draw.values((rows, cols - n))], axis=1)
        assert _certain_signs(values[i][:, :n], _qr_error(values[i][:, :n], kind)[1])
    of_a = Layout(draw, "a", rows, cols, batch)
    operands = {"a": of_a.place(draw, t, values, output=True)}
    fields = {"dtype": t.code, "m": rows, "n": cols, "batch_count": batch, **of_a.fields}
    wanted = draw.maybe(0.8)
    width = draw.pick([n, rows, n + (rows - n) // 2]) if wanted else n
    if wanted:
        of_q = Layout(draw, "q", rows, width, batch)
        operands["q"] = operand(draw, t, (batch, rows, width), of_q.strides, output=True)
        fields |= {**of_q.fields, "columns_q": 0 if width == n and draw.flip(0.5) else width}
    stored = operands["a"].values

    def reference() -> dict:
        r, bound_r = np.zeros((batch, rows, cols)), np.zeros((batch, rows, cols))
        q, bound_q = np.zeros((batch, rows, width)), np.zeros((batch, rows, width))
        for i in range(batch if rows else 0):
            of_q, of_r = _qr_error(stored[i], kind)
            whole, r[i] = np.linalg.qr(stored[i], mode="complete") if cols else (np.eye(rows), stored[i])
            q[i], bound_q[i] = whole[:, :width], of_q
            bound_r[i] = np.triu(np.broadcast_to(of_r, (rows, cols)))
        return {"a": Near(r, bound_r)} | ({"q": Near(q, bound_q)} if wanted else {})

    return Case("tuff_qr", fields, operands, {"numpy": reference})


def _values(draw: Draw, t, operands: dict, fields: dict, count: int, batch: int) -> None:
    gap = draw.gap(0.3)
    operands["values"] = operand(draw, t, (batch, count), (count + gap, 1), output=True)
    fields |= {"values": Handle("values"), "stride_values": 0 if not gap and draw.flip(0.5) else count + gap}


def _spectrum_error(a: np.ndarray, kind: str) -> float:
    """As tuff.h promises: 30 n eps |A|, twice for f64, whose reference has the same errors."""
    return 30 * max(a.shape) * 2 * _unit(kind) * np.linalg.norm(a, 1 if a.shape[0] >= a.shape[1] else np.inf)


def _distinct(draw: Draw, rows: int, cols: int, signs: bool) -> np.ndarray:
    """A diagonal matrix of different numbers, whose vectors are unit vectors: the signs of others are not specified, and
    their residuals are judged by tests/linalg_spectrum_test.cpp."""
    k = min(rows, cols)
    d = draw.data.permutation(np.arange(1, k + 1)).astype(np.float64)
    result = np.zeros((rows, cols))
    result[np.arange(k), np.arange(k)] = d * (draw.data.choice([-1.0, 1.0], k) if signs else 1.0)
    return result


@oracle("eigh", ["tuff_eigh"], TYPES_TAKEN, ("values", "vectors"))
def eigh(draw: Draw, kind: str, form: str) -> Case:
    t, upper, vectors = TYPES[kind], draw.maybe(0.5), form == "vectors"
    n, batch = draw.size(70, 0.02), draw.size(4, 0.03)
    values = np.array([_distinct(draw, n, n, True) for _ in range(batch)]).reshape(batch, n, n)
    if not vectors:
        values = draw.values((batch, n, n))
    other = _other(n, upper)
    values[:, other] = np.nan  # not read
    of_a = Layout(draw, "a", n, n, batch, repeats=True)
    operands = {"a": of_a.place(draw, t, values)}
    fields = {"dtype": t.code, "triangle": int(upper), "n": n, "batch_count": batch, **of_a.fields}
    _values(draw, t, operands, fields, n, batch)
    if vectors:
        of_v = Layout(draw, "_vectors", n, n, batch)
        operands["vectors"] = operand(draw, t, (batch, n, n), of_v.strides, output=True)
        fields |= {"ld_vectors": of_v.fields["ld_vectors"], "stride_vectors": of_v.strides[0], "vectors": Handle("vectors")}
    informed = _info(draw, operands, fields, batch)
    stored = operands["a"].values

    def reference() -> dict:
        value, bound = np.zeros((batch, n)), np.zeros((batch, n))
        places = np.zeros((batch, n, n))
        for i in range(batch if n else 0):
            a = np.where(other, stored[i].T, stored[i])
            value[i], bound[i] = np.linalg.eigvalsh(a), _spectrum_error(a, kind)
            places[i] = np.eye(n)[:, np.argsort(np.diagonal(a))]
        results = {"values": Near(value, bound)}
        if vectors:
            results["vectors"] = Near(places)
        return results | ({"info": Near(np.zeros(batch, np.int64))} if informed else {})

    return Case("tuff_eigh", fields, operands, {"numpy": reference})


@dataclass
class Spectrum:
    """The values of each matrix in any order, each within its matrix's bound of one of the reference."""

    value: np.ndarray
    bound: np.ndarray

    def wrong(self, t, raw: np.ndarray) -> tuple[np.ndarray, float]:
        got, wrong, used = decode(t, raw), np.zeros(raw.shape, bool), 0.0
        for i in range(len(got)):
            distances = np.abs(got[i][:, None] - self.value[i][None, :])
            distances[np.isnan(distances)] = np.inf
            rows, columns = scipy.optimize.linear_sum_assignment(np.minimum(distances, 1e300))
            far = distances[rows, columns]
            wrong[i, rows] = far > self.bound[i, rows]
            used = max(used, float(np.max(far / self.bound[i, rows], initial=0.0)))
        return wrong, used

    def mutants(self, got: np.ndarray, place: tuple):
        """Results with a value that the matrix does not have."""
        for other in (np.nan, 1 + 2 * np.max(np.abs(self.value)) + 4 * np.max(self.bound)):
            changed = got.copy()
            changed[place] = other
            yield changed


@dataclass
class Eigenvectors:
    """Columns of length 1 that A only stretches, within a bound: the factor is that of least squares."""

    matrices: np.ndarray
    bound: np.ndarray
    unit: float

    @property
    def value(self) -> np.ndarray:
        return np.zeros(self.matrices.shape, np.complex128)

    def wrong(self, t, raw: np.ndarray) -> tuple[np.ndarray, float]:
        v = decode(t, raw)
        product = self.matrices @ v
        lengths = np.linalg.norm(v, axis=1, keepdims=True)
        with np.errstate(all="ignore"):  # vectors of zeros, or of NaN
            factors = np.sum(np.conj(v) * product, axis=1, keepdims=True) / lengths**2
        far = np.linalg.norm(product - v * factors, axis=1, keepdims=True) / self.bound[:, None, None]
        right = (far <= 1) & (np.abs(lengths - 1) <= self.unit)
        return ~np.broadcast_to(right, v.shape), float(np.max(far, initial=0.0))

    def mutants(self, got: np.ndarray, place: tuple):
        """Results with a vector that is not of length 1, or, of several rows, turned."""
        for other in (np.nan, got[place] + 3):
            changed = got.copy()
            changed[place] = other
            yield changed
        matrix, row, column = place
        if got.shape[1] > 1 and abs(got[place]) > 0.1 and np.linalg.norm(got[matrix, :, column]) > 1.1 * abs(got[place]):
            changed = got.copy()
            changed[place] *= -1
            yield changed


def _conditioned(draw: Draw, n: int) -> tuple[np.ndarray, float]:
    """A matrix whose values are different, real ones and conjugate pairs, and the condition number of its vectors."""
    d, j = np.zeros((n, n)), 0
    while j < n:
        if j + 1 < n and draw.flip(0.5):
            d[j : j + 2, j : j + 2] = (j + 1) * np.eye(2) + draw.data.uniform(1, 2) * np.array([[0, 1], [-1, 0]])
            j += 2
        else:
            d[j, j] = (j + 1) * draw.data.choice([-1.0, 1.0])
            j += 1
    q = np.linalg.qr(draw.values((n, n)))[0] if n else np.zeros((0, 0))
    x = q * draw.data.uniform(1, 2, n)  # the condition number is at most 2
    x = x + np.triu(draw.data.uniform(-1, 1, (n, n)) / (4 * max(n, 1)), 1)
    return x @ d @ np.linalg.inv(x) if n else d, float(np.linalg.cond(x)) if n else 1.0


@oracle("eig", ["tuff_eig"], TYPES_TAKEN, ("values", "vectors"))
def eig(draw: Draw, kind: str, form: str) -> Case:
    t, vectors = TYPES[kind], form == "vectors"
    n, batch = draw.size(70, 0.02), draw.size(4, 0.03)
    drawn = [_conditioned(draw, n) for _ in range(batch)]
    of_a = Layout(draw, "a", n, n, batch, repeats=True)
    operands = {"a": of_a.place(draw, t, np.array([a for a, _ in drawn]).reshape(batch, n, n))}
    fields = {"dtype": t.code, "n": n, "batch_count": batch, **of_a.fields}
    _values(draw, COMPLEX[kind], operands, fields, n, batch)
    if vectors:
        of_v = Layout(draw, "_vectors", n, n, batch)
        operands["vectors"] = operand(draw, COMPLEX[kind], (batch, n, n), of_v.strides, output=True)
        fields |= {"ld_vectors": of_v.fields["ld_vectors"], "stride_vectors": of_v.strides[0], "vectors": Handle("vectors")}
    informed = _info(draw, operands, fields, batch)
    stored = operands["a"].values
    worst = max((condition for _, condition in drawn), default=1.0)

    def reference() -> dict:
        # As tuff.h promises: values are exact for matrices A + E, of which they are at most the vectors' condition number
        # times |E| from A's (Bauer and Fike, 1960), in the 2-norm, which is at most sqrt(n) times the 1-norm.
        errors = np.array([_spectrum_error(a, kind) if n else 0.0 for a in stored]).reshape(batch)
        value = np.array([np.linalg.eigvals(a) for a in stored], np.complex128).reshape(batch, n)
        results = {"values": Spectrum(value, np.broadcast_to(worst * n**0.5 * errors[:, None], (batch, n)))}
        if vectors:
            results["vectors"] = Eigenvectors(stored, np.maximum(errors, 1e-300), 4 * (n + 20) * _unit(kind))
        return results | ({"info": Near(np.zeros(batch, np.int64))} if informed else {})

    return Case("tuff_eig", fields, operands, {"numpy": reference})


@oracle("svd", ["tuff_svd"], TYPES_TAKEN, ("values", "vectors"))
def svd(draw: Draw, kind: str, form: str) -> Case:
    t, vectors = TYPES[kind], form == "vectors"
    m, n, batch = draw.size(60, 0.02), draw.size(60, 0.02), draw.size(4, 0.03)
    k = min(m, n)
    values = np.array([_distinct(draw, m, n, False) for _ in range(batch)]).reshape(batch, m, n)
    if not vectors:
        values = draw.values((batch, m, n))
    of_a = Layout(draw, "a", m, n, batch, repeats=True)
    operands = {"a": of_a.place(draw, t, values)}
    fields = {"dtype": t.code, "m": m, "n": n, "batch_count": batch, **of_a.fields}
    _values(draw, t, operands, fields, k, batch)
    names = [name for name in ("u", "vt") if vectors and draw.maybe(0.8)]
    for name in names:
        rows, cols = (m, k) if name == "u" else (k, n)
        layout = Layout(draw, name, rows, cols, batch)
        operands[name] = operand(draw, t, (batch, rows, cols), layout.strides, output=True)
        fields |= layout.fields
    informed = _info(draw, operands, fields, batch)
    stored = operands["a"].values

    def reference() -> dict:
        value, bound = np.zeros((batch, k)), np.zeros((batch, k))
        places = {"u": np.zeros((batch, m, k)), "vt": np.zeros((batch, k, n))}
        for i in range(batch if k else 0):
            value[i], bound[i] = np.linalg.svd(stored[i], compute_uv=False), _spectrum_error(stored[i], kind)
            order = np.argsort(-np.diagonal(stored[i]))
            places["u"][i], places["vt"][i] = np.eye(m)[:, order], np.eye(n)[order]
        # Products of unit vectors and reflections of them: as of Q.
        results = {name: Near(places[name], 30 * max(m, n) * 2 * _unit(kind)) for name in names}
        results["values"] = Near(value, bound)
        return results | ({"info": Near(np.zeros(batch, np.int64))} if informed else {})

    return Case("tuff_svd", fields, operands, {"numpy": reference})
