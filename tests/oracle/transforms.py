"""Fourier transforms against numpy.fft in double precision (f64: a sum by the definition in long double), cosine and sine
transforms against scipy.fft (f64: the same in long double, and that sum)."""

from __future__ import annotations

import numpy as np
import scipy.fft

from case import TYPES, Case, Draw, Handle, operand, oracle
from elements import U32, U64, Near

COMPLEX, REAL, TO_REAL = 1, 2, 3
NAMES = {"complex": COMPLEX, "real": REAL, "to real": TO_REAL}


def _direct(n: int) -> bool:
    for p in range(2, 32):
        while n % p == 0:
            n //= p
    return n == 1


def _along(x: np.ndarray, axis: int, sign: int) -> np.ndarray:
    """By the definition, in long double; n at most a few hundred."""
    n = x.shape[axis]
    turn = np.outer(np.arange(n), np.arange(n)) % n * (2 * np.longdouble("3.14159265358979323846264338327950288") / n)
    matrix = np.cos(turn) + sign * 1j * np.sin(turn)
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)


def _mirrored(x: np.ndarray, axis: int, n: int) -> np.ndarray:
    """n numbers along the axis from the first n // 2 + 1."""
    x = np.moveaxis(x, axis, -1).copy()
    x[..., 0] = x[..., 0].real
    if n % 2 == 0:
        x[..., n // 2] = x[..., n // 2].real
    second = np.conj(x[..., np.arange(n - x.shape[-1], 0, -1)])
    return np.moveaxis(np.concatenate([x, second], -1), -1, axis)


def _strides(draw: Draw, sizes: list[int], axes: list[int], repeat: bool) -> list[int]:
    """In numbers: axes in any order, with gaps."""
    order = list(range(len(sizes)))
    draw.fast.shuffle(order)
    result, step = [0] * len(sizes), draw.between(1, 2)
    for axis in order:
        result[axis], step = step, step * max(sizes[axis], 1) + draw.between(0, 2)
    free = [i for i in range(len(sizes)) if i not in axes]
    if repeat and free and draw.flip(0.3):
        result[free[0]] = 0
    return result


def _shape(draw: Draw, kind: str, most: int, least: int) -> tuple[list[int], list[int]]:
    """A shape and its transformed axes, with at least `least` numbers each; one may be long, with `most` numbers in all."""
    rank = draw.option([1, 2, 2, 3, 4, 8])
    axes = [i for i in range(rank) if draw.maybe(0.3)] or [rank - 1]
    shape = draw.sizes(rank, 60 if rank < 4 else 6, 6000 if kind != "f64" else 1500, 0.01)
    if kind != "f64" and draw.flip(0.15):
        shape[axes[0]] = draw.size(most // max(1, int(np.prod(shape)) // max(1, shape[axes[0]])) or 1)
    for axis in axes:
        shape[axis] = max(shape[axis], least)
    return shape, axes


def _operands(draw: Draw, shape: list[int], axes: list[int], in_place: bool) -> dict:
    """The fields of a descriptor that both kinds of transforms have; the last axis alone may be left out."""
    rank = len(shape)
    fields = {"rank": rank, "input": Handle("input"), "output": Handle("input" if in_place else "output"), "shape": shape}
    if axes != [rank - 1] or draw.flip(0.5):
        fields["axes"] = sum(1 << a for a in axes)
    return fields


@oracle("fft", ["tuff_fft"], ("f32", "f16", "bf16", "f64"), tuple(NAMES))
def fft(draw: Draw, kind: str, form: str) -> Case:
    t, mode = TYPES[kind], NAMES[form]
    inverse, norm = int(draw.maybe(0.5)), draw.pick([0, 1, 2])
    shape, axes = _shape(draw, kind, 4200, 1)
    last = axes[-1]
    half = [n // 2 + 1 if i == last else n for i, n in enumerate(shape)]
    from_shape, to_shape = (half if mode == TO_REAL else shape), (half if mode == REAL else shape)
    in_place = mode == COMPLEX and draw.flip(0.2)
    strided = draw.flip(0.4)

    from_strides = _strides(draw, from_shape, axes, not in_place) if strided else None
    to_strides = (from_strides if in_place else _strides(draw, to_shape, axes, False)) if strided else None

    def stored(sizes, steps, real):
        """Shape and strides in elements."""
        if real:
            return sizes, steps
        return [*sizes, 2], None if steps is None else [*(2 * s for s in steps), 1]

    in_shape, in_steps = stored(from_shape, from_strides, mode == REAL)
    out_shape, out_steps = stored(to_shape, to_strides, mode == TO_REAL)
    operands = {"input": operand(draw, t, draw.values(in_shape), in_steps, output=in_place)}
    x = operands["input"].values
    if not in_place:
        operands["output"] = operand(draw, t, out_shape, out_steps, output=True)
    z = x if mode == REAL else x[..., 0] + 1j * x[..., 1]
    length = float(np.prod([shape[a] for a in axes]))
    scale = [1.0, 1 / length, 1 / np.sqrt(length)][norm]
    sign = 1 if inverse else -1

    def reference() -> dict:
        y = np.asarray(z, np.clongdouble if kind == "f64" else np.complex128)
        for axis in axes:
            if mode == TO_REAL and axis == last:
                continue
            y = _transformed(y, axis)
        if mode == TO_REAL:
            y = _transformed(_mirrored(y, last, shape[last]), last)
        size = np.sqrt(np.sum(np.abs(y) ** 2, axis=tuple(axes), keepdims=True)) * scale
        if mode == REAL:
            y = y[tuple(slice(0, n) for n in half)]
        y = y * scale
        digits = max(np.log2(length), 1.0) * (4 if all(_direct(shape[a]) for a in axes) else 12)
        bound = np.broadcast_to(digits * (U64 if kind == "f64" else U32) * size, y.shape)
        value = y.real if mode == TO_REAL else np.stack([y.real, y.imag], -1)
        bound = bound if mode == TO_REAL else np.stack([bound, bound], -1)
        return {"input" if in_place else "output": Near(np.asarray(value, np.float64), np.asarray(bound, np.float64))}

    def _transformed(y: np.ndarray, axis: int) -> np.ndarray:
        if kind == "f64":
            return _along(y, axis, sign)
        return np.fft.ifft(y, axis=axis, norm="forward") if inverse else np.fft.fft(y, axis=axis)

    desc = {"dtype": t.code, "kind": mode, "inverse": inverse, "norm": norm, **_operands(draw, shape, axes, in_place)}
    if strided:
        desc |= {"input_strides": from_strides, "output_strides": to_strides}
    return Case("tuff_fft", desc, operands, {"numpy": reference})


DCTS = {f"{name}-{number}": 4 * sine + number for sine, name in enumerate(("DCT", "DST")) for number in (1, 2, 3, 4)}


def _matrix(code: int, n: int) -> np.ndarray:
    """Row k and column j of an unscaled transform, by its definition in long double."""
    pi = np.longdouble("3.14159265358979323846264338327950288")
    j, k = np.arange(n, dtype=np.int64)[None, :], np.arange(n, dtype=np.int64)[:, None]
    twice = {  # of 2 pi / (4 N): products of integers, reduced exactly
        1: (4 * j * k, 8 * (n - 1)), 2: (2 * (2 * j + 1) * k, 8 * n), 3: (2 * j * (2 * k + 1), 8 * n),
        4: ((2 * j + 1) * (2 * k + 1), 8 * n), 5: (4 * (j + 1) * (k + 1), 8 * (n + 1)), 6: (2 * (2 * j + 1) * (k + 1), 8 * n),
        7: (2 * (j + 1) * (2 * k + 1), 8 * n), 8: ((2 * j + 1) * (2 * k + 1), 8 * n),
    }  # fmt: skip
    turns, whole = twice[code]
    angle = turns % whole * (2 * pi / whole)
    matrix = 2 * (np.cos(angle) if code <= 4 else np.sin(angle))
    if code == 1:
        matrix[:, [0, -1]] /= 2
    if code == 3:
        matrix[:, 0] /= 2
    if code == 7:
        matrix[:, -1] /= 2
    return matrix


def _weighted(code: int, x: np.ndarray, axis: int, before: bool) -> np.ndarray:
    """With the factors at the ends of each line that make a transform orthogonal."""
    x = np.moveaxis(x, axis, -1).copy()
    root = np.sqrt(np.longdouble(2)) if before else 1 / np.sqrt(np.longdouble(2))
    for end in {1: (0, -1), 2: () if before else (0,), 3: (0,) if before else (), 6: () if before else (-1,),
                7: (-1,) if before else ()}.get(code, ()):  # fmt: skip
        x[..., end] = x[..., end] * root
    return np.moveaxis(x, -1, axis)


@oracle("dct", ["tuff_dct"], ("f32", "f16", "bf16", "f64"), tuple(DCTS))
def dct(draw: Draw, kind: str, form: str) -> Case:
    t, code = TYPES[kind], DCTS[form]
    orthogonal, norm = int(draw.maybe(0.5)), draw.pick([0, 1, 2])
    shape, axes = _shape(draw, kind, 2200, 2 if code == 1 else 1)
    in_place, strided = draw.flip(0.2), draw.flip(0.4)
    from_strides = _strides(draw, shape, axes, not in_place) if strided else None
    to_strides = (from_strides if in_place else _strides(draw, shape, axes, False)) if strided else None
    operands = {"input": operand(draw, t, draw.values(shape), from_strides, output=in_place)}
    x = operands["input"].values
    if not in_place:
        operands["output"] = operand(draw, t, shape, to_strides, output=True)
    # N of each axis, and the size of the Fourier transform.
    sizes = {a: 2 * (shape[a] + {1: -1, 5: 1}.get(code, 0)) for a in axes}
    lengths = {a: sizes[a] // 2 if code in (1, 5) else shape[a] for a in axes}
    length = float(np.prod([float(n) for n in sizes.values()]))
    scale = [1.0, 1 / length, 1 / np.sqrt(length)][norm]

    def near(y: np.ndarray) -> dict:
        size = np.sqrt(np.sum(y**2, axis=tuple(axes), keepdims=True))
        digits = sum((4 if _direct(lengths[a]) else 12) * np.log2(sizes[a]) + 8 for a in axes)
        bound = np.broadcast_to(digits * (U64 if kind == "f64" else U32) * size, y.shape)
        return {"input" if in_place else "output": Near(np.asarray(y, np.float64), np.asarray(bound, np.float64))}

    def by_scipy() -> dict:
        # The factors at the ends are not SciPy's, which multiplies the wrong end of a sine transform (1.10).
        y = np.asarray(x, np.longdouble if kind == "f64" else np.float64)
        function = scipy.fft.dct if code <= 4 else scipy.fft.dst
        for axis in axes if y.size else ():
            if orthogonal:
                y = _weighted(code, y, axis, True)
            y = function(y, (code - 1) % 4 + 1, axis=axis)
            if orthogonal:
                y = _weighted(code, y, axis, False)
        return near(y * scale)

    def orthogonal_in_scipy() -> dict:
        function = scipy.fft.dctn if code <= 4 else scipy.fft.dstn
        return near(function(np.asarray(x, np.float64), (code - 1) % 4 + 1, axes=axes, norm="ortho", orthogonalize=True))

    def by_definition() -> dict:
        y = np.asarray(x, np.longdouble)
        for axis in axes:
            y = _weighted(code, y, axis, True) if orthogonal else y
            y = np.moveaxis(np.tensordot(_matrix(code, shape[axis]), y, (1, axis)), 0, axis)
            y = _weighted(code, y, axis, False) if orthogonal else y
        return near(y * scale)

    desc = {"dtype": t.code, "kind": code, "orthogonal": orthogonal, "norm": norm, **_operands(draw, shape, axes, in_place)}
    if strided:
        desc |= {"input_strides": from_strides, "output_strides": to_strides}
    ways = {"scipy": by_scipy}
    if orthogonal and norm == 2 and x.size and kind != "f64" and code not in (6, 7):
        ways["scipy, orthogonal"] = orthogonal_in_scipy
    if all(shape[a] <= 300 for a in axes):
        ways["definition"] = by_definition
    return Case("tuff_dct", desc, operands, ways)
