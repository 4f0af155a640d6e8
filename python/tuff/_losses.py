"""Losses by kernels of their own. tuff.grad has them."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import raw
from ._array import Array
from ._error import check
from ._expression import expr
from ._operands import MAX_AXES, dtype_of
from ._storage import DTYPES, Strided
from ._tape import Traced, dense, tape_of, value_in
from ._tracing import any_traced, without_transposed


def _described(logits: Array, labels: Array, smoothing: float, ignored: Optional[int]) -> raw.CrossEntropyDesc:
    desc = raw.CrossEntropyDesc(
        dtype=dtype_of(logits), label_type=dtype_of(labels), shape=logits.shape, rank=logits.ndim, axis=logits.ndim - 1,
        label_smoothing=smoothing, logits=logits.buffer.handle, labels=labels.buffer.handle,
    )  # fmt: skip
    if ignored is not None:
        desc.ignores, desc.ignore_index = 1, ignored
    return desc


def cross_entropy(logits: Array, labels: Array, smoothing: float, ignored: Optional[int]) -> Optional[Array]:
    """The mean over the rows that count, of logits (…, classes). None: for types that have no kernel, and for gradients of
    gradients."""
    logits = without_transposed(logits)
    tape = tape_of(logits) if any_traced((logits,)) else None
    x = logits if tape is None else value_in(tape, logits)
    if any_traced((x, labels)) or DTYPES.get(x.dtype) not in (raw.F32, raw.F16, raw.BF16) or x.ndim > MAX_AXES:
        return None
    x, indices = dense(x), dense(labels)
    if indices.dtype.itemsize < 4:
        indices = indices.astype(np.int32)
    assert not isinstance(x, Strided) and not isinstance(indices, Strided)
    limits = np.iinfo(indices.dtype)
    if ignored is not None and not limits.min <= ignored <= limits.max:
        ignored = None  # no label is that
    rows = x.context.empty(labels.shape, np.float32)
    desc = _described(x, indices, smoothing, ignored)
    desc.loss = rows.buffer.handle
    check(raw.tuff_cross_entropy(x.context.stream_handle, desc))
    count = None if ignored is None else (indices != ignored).astype(np.float32).sum()
    n = float(labels.size) if count is None else count
    value = expr("t / n", dtype=x.dtype, t=rows.sum(), n=n)
    if tape is None:
        return value

    def pull(g: Array) -> Any:
        """The slopes, of f32 as far as the factor goes: divided by the rows that count, and times g."""
        traced = any_traced((g,))
        ones = x.context.ones((), np.float32) if traced else g
        factor = expr("g / n", dtype=np.float32, g=ones, n=n)
        result = x.context.empty(x.shape, x.dtype)
        of = _described(x, indices, smoothing, ignored)
        of.gradient_factor, of.gradient = factor.buffer.handle, result.buffer.handle
        check(raw.tuff_cross_entropy(x.context.stream_handle, of))
        return expr("d * g", dtype=x.dtype, d=result, g=g) if traced else result

    assert isinstance(logits, Traced)
    return tape.add(value, ((logits.place, pull),))
