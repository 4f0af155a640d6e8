"""Rotary position embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import numpy as np

from . import raw
from ._checked import I64, real, whole
from ._error import check
from ._operands import dtype_of, require_array, result_of, same_context
from ._tracing import differentiable

if TYPE_CHECKING:
    from ._array import Array

__all__ = ["rope"]


@differentiable
def rope(
    x: Array,
    positions: Optional[Array] = None,
    *,
    offset: int = 0,
    base: float = 10000.0,
    rotary_dim: Optional[int] = None,
    interleaved: bool = False,
    heads_last: bool = False,
    out: Optional[Array] = None,
) -> Array:
    """Rotary position embedding of x (batch, heads, seq, head_dim), or (batch, seq, heads, head_dim) with heads_last.

    positions is int32 of shape (seq,) or (batch, seq); None means 0, 1, 2 … offset is added to it. Pairs are elements i
    and i + rotary_dim / 2, or 2 i and 2 i + 1 if interleaved. Elements after the first rotary_dim are copied. out may
    be x.
    """
    require_array(x, "x")
    if x.ndim != 4:
        raise ValueError(f"rope needs (batch, heads, seq, head_dim), not {x.shape}")
    batch, heads, seq, head_dim = (x.shape[0], x.shape[2], x.shape[1], x.shape[3]) if heads_last else x.shape
    result = result_of(out, x, x.shape)
    desc = raw.RopeDesc(dtype=dtype_of(x), batch=batch, heads=heads, seq=seq, head_dim=head_dim)
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    if heads_last:
        desc.input_strides[:] = desc.output_strides[:] = (seq * heads * head_dim, head_dim, heads * head_dim)
    if rotary_dim is not None:
        desc.rotary_dim = whole(rotary_dim, "rotary_dim", 1)
    desc.offset, desc.base = whole(offset, "offset", -I64, I64), real(base, "base")
    desc.interleaved = int(bool(interleaved))
    if positions is not None:
        require_array(positions, "positions")
        if positions.dtype != np.int32 or positions.shape not in ((seq,), (batch, seq)):
            raise ValueError(f"positions are {positions.shape} {positions.dtype}, need ({seq},) or ({batch}, {seq}) int32")
        same_context(x.context, positions.context)
        desc.positions, desc.positions_stride = positions.buffer.handle, seq if positions.ndim == 2 else 0
    check(raw.tuff_rope_ex(x.context.stream_handle, desc))
    return result
