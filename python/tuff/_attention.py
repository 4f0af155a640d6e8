"""Attention, with masks, biases, windows, sequence lengths and key/value caches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple, Type, TypeVar, Union

import numpy as np

from . import raw
from ._checked import choice, is_whole, real, whole
from ._error import check
from ._operands import dtype_of, require_array, result_of, same_context, same_kind
from ._quantisation import Quantized
from ._storage import Storage
from ._tracing import differentiable

if TYPE_CHECKING:
    from ._array import Array

    Description = TypeVar("Description", raw.AttentionDesc, raw.AttentionBackwardDesc)

__all__ = ["attention"]

_CAUSAL = {
    "none": raw.CAUSAL_NONE,
    "top_left": raw.CAUSAL_TOP_LEFT,
    "bottom_right": raw.CAUSAL_BOTTOM_RIGHT,
    False: raw.CAUSAL_NONE,
    True: raw.CAUSAL_TOP_LEFT,
}
_LAYOUTS = ("bhsd", "bshd")


@differentiable
def attention(
    q: Array,
    k: Union[Array, Quantized],
    v: Union[Array, Quantized],
    *,
    scale: Optional[float] = None,
    causal: Union[bool, str] = False,
    layout: str = "bhsd",
    keys: Optional[int] = None,
    mask: Optional[Array] = None,
    bias: Optional[Array] = None,
    window: Union[None, int, Tuple[Optional[int], Optional[int]]] = None,
    softcap: Optional[float] = None,
    q_lengths: Optional[Array] = None,
    kv_lengths: Optional[Array] = None,
    return_lse: bool = False,
    k_scales: Optional[Array] = None,
    v_scales: Optional[Array] = None,
    out: Optional[Array] = None,
) -> Union[Array, Tuple[Array, Array]]:
    """softmax(scale * q @ k.mT + mask) @ v in one pass, in float32 or float16 with float32 sums.

    k and v may be quantised: each a Quantized of format "q8_0" or "q4_0", or an array of float8_e4m3fn or float8_e5m2.

    The shapes are q (batch, heads, seq_q, head_dim), k (batch, kv_heads, seq_kv, head_dim) and v (batch, kv_heads,
    seq_kv, head_dim_v). The result has q's shape with v's last axis. heads is a multiple of kv_heads; adjacent heads of
    q share a head of k and v. Leading axes may be omitted. With layout "bshd" all four have the sequence before the
    heads.

    scale      defaults to 1 / sqrt(head_dim)
    causal     False or "none"; True or "top_left" (query i sees key j if j <= i); "bottom_right" (if
               j <= i + seq_kv - seq_q)
    keys       the number of valid rows of k and v, for a cache with room for more
    window     (left, right): the number of keys that a row sees on either side of its position, each including the key
               at the position. A number n means (n, None); None is unlimited
    softcap    replaces a score s by softcap * tanh(s / softcap)
    bias       is added to the scores; float32 or q's dtype
    mask       hides keys where it is 0; uint8 or bool. bias and mask have shape (batch, heads, seq_q, seq_kv), where an axis
               may be 1 or, if leading, omitted to share one value; the last axis is always whole
    q_lengths, kv_lengths
               the lengths of each batch element's sequences: (batch,), int32
    k_scales, v_scales
               factors of keys and values of float8_e4m3fn or float8_e5m2: float32, (batch, kv_heads, seq_kv), where an axis
               may be 1 or, if leading, omitted to share one value
    return_lse
               returns (result, lse), where lse is log(sum(exp(score))): (batch, heads, seq_q), float32
    """
    desc, (batch, heads, seq_q, head_dim_v) = _described(
        raw.AttentionDesc, q, k, v, scale=scale, causal=causal, layout=layout, keys=keys, mask=mask, bias=bias, window=window,
        softcap=softcap, q_lengths=q_lengths, kv_lengths=kv_lengths,
    )  # fmt: skip
    result = result_of(out, q, q.shape[:-1] + (head_dim_v,))
    desc.o = result.buffer.handle
    desc.o_strides[:] = _strides(layout, heads, seq_q, head_dim_v)
    _set_stored(desc, q, k, v, k_scales, v_scales, layout)
    lse = None
    if return_lse:
        lse = q.context.empty((batch, heads, seq_q)[4 - q.ndim :], np.float32)
        desc.lse = lse.buffer.handle
    check(raw.tuff_attention_ex(q.context.stream_handle, desc))
    return result if lse is None else (result, lse)


def attention_gradients(
    q: Array, k: Array, v: Array, o: Array, lse: Array, gradient: Array, wanted: Sequence[str], *, layout: str = "bhsd",
    keys: Optional[int] = None, **options: Any
) -> Dict[str, Array]:  # fmt: skip
    """Those of attention(q, k, v), whose results o and lse are, by those of q, k, v and bias that are wanted. The options are those
    of attention() from scale to kv_lengths."""
    desc, (_, heads, seq_q, head_dim_v) = _described(raw.AttentionBackwardDesc, q, k, v, layout=layout, keys=keys, **options)
    for value, name in ((o, "o"), (lse, "lse"), (gradient, "d_o")):
        setattr(desc, name, value.buffer.handle)
    for strides in (desc.o_strides, desc.d_o_strides):
        strides[:] = _strides(layout, heads, seq_q, head_dim_v)
    found = {}
    for name, of in (("q", q), ("k", k), ("v", v)):
        if name in wanted:
            # Rows of a cache beyond its keys have no gradient, and are not written.
            made = q.context.zeros if keys is not None and name != "q" else q.context.empty
            found[name] = made(of.shape, of.dtype)
            setattr(desc, f"d{name}", found[name].buffer.handle)
        getattr(desc, f"d{name}_strides")[:] = getattr(desc, f"{name}_strides")[:]
    if "bias" in wanted:
        bias = options["bias"]
        found["bias"] = q.context.empty(bias.shape, bias.dtype)
        desc.dbias = found["bias"].buffer.handle
    check(raw.tuff_attention_backward(q.context.stream_handle, desc))
    return found


def _described(
    kind: Type[Description],
    q: Array,
    k: Union[Array, Quantized],
    v: Union[Array, Quantized],
    *,
    layout: str,
    keys: Optional[int],
    scale: Optional[float] = None,
    causal: Union[bool, str] = False,
    mask: Optional[Array] = None,
    bias: Optional[Array] = None,
    window: object = None,
    softcap: Optional[float] = None,
    q_lengths: Optional[Array] = None,
    kv_lengths: Optional[Array] = None,
) -> Tuple[Description, Tuple[int, int, int, int]]:
    """What both directions have in common: what is read but o and lse; and (batch, heads, seq_q, head_dim_v)."""
    require_array(q, "q")
    for value, name in ((k, "k"), (v, "v")):
        if kind is raw.AttentionDesc and is_stored(value):
            same_context(q.context, value.context)
        else:
            require_array(value, name)
            same_kind(q, value)
    if layout not in _LAYOUTS:
        raise ValueError(f"layout is {layout!r}, not one of {list(_LAYOUTS)}")
    which = choice(causal, "causal", _CAUSAL)
    if not 2 <= q.ndim <= 4 or k.ndim != q.ndim or v.ndim != q.ndim:
        raise ValueError(f"attention of shapes q {q.shape}, k {k.shape}, v {v.shape}")
    batch, heads, seq_q, head_dim = sizes_of(q, layout)
    k_batch, kv_heads, room, k_dim = sizes_of(k, layout)
    v_batch, v_heads, v_room, head_dim_v = sizes_of(v, layout)
    agree = (k_batch, k_dim) == (batch, head_dim) and (v_batch, v_heads, v_room) == (batch, kv_heads, room)
    shapes = f"attention of shapes q {q.shape}, k {k.shape}, v {v.shape}"
    if not agree:
        raise ValueError(f"{shapes}: batches, k's head_dim, and the heads and keys of k and v must agree")
    if heads != kv_heads and (kv_heads == 0 or heads % kv_heads != 0):
        raise ValueError(f"{shapes}: {heads} heads of q are not a multiple of {kv_heads} of k")
    seq_kv = room if keys is None else whole(keys, "keys")
    if seq_kv > room:
        raise ValueError(f"keys is {keys}, and there is room for {room}")
    scale = 1.0 / math.sqrt(max(1, head_dim)) if scale is None else real(scale, "scale")

    desc = kind(
        dtype=dtype_of(q),
        q=q.buffer.handle,
        k=_data_of(k).buffer.handle,
        v=_data_of(v).buffer.handle,
        batch=batch,
        heads=heads,
        kv_heads=kv_heads,
        seq_q=seq_q,
        seq_kv=seq_kv,
        head_dim=head_dim,
        head_dim_v=head_dim_v,
        scale=scale if scale != 0 else math.nan,  # 0 asks for the default
        causal=which,
    )
    desc.q_strides[:] = _strides(layout, heads, seq_q, head_dim)
    desc.k_strides[:] = _strides(layout, kv_heads, room, head_dim)
    desc.v_strides[:] = _strides(layout, kv_heads, room, head_dim_v)
    if softcap is not None:
        desc.softcap = real(softcap, "softcap") or math.nan
    _set_window(desc, window)
    scores = (batch, heads, seq_q, seq_kv)
    if bias is not None:
        require_array(bias, "bias")
        if bias.dtype not in (np.float32, q.dtype):
            raise TypeError(f"bias is of {bias.dtype}, needs {q.dtype} or float32")
        desc.bias, desc.bias_type = bias.buffer.handle, dtype_of(bias)
        desc.bias_strides[:] = _broadcast_strides(bias, scores, "bias")
    if mask is not None:
        require_array(mask, "mask")
        if mask.dtype not in (np.uint8, np.bool_):
            raise TypeError(f"mask is of {mask.dtype}, needs uint8 or bool")
        desc.mask = mask.buffer.handle
        desc.mask_strides[:] = _broadcast_strides(mask, scores, "mask")
    for lengths, name in ((q_lengths, "q_lengths"), (kv_lengths, "kv_lengths")):
        if lengths is None:
            continue
        require_array(lengths, name)
        if lengths.shape != (batch,) or lengths.dtype != np.int32:
            raise ValueError(f"{name} is {lengths.shape} of {lengths.dtype}, needs ({batch},) of int32")
        setattr(desc, name, lengths.buffer.handle)
    for other in (bias, mask, q_lengths, kv_lengths):
        if other is not None:
            same_context(q.context, other.context)
    return desc, (batch, heads, seq_q, head_dim_v)


def sizes_of(x: Union[Array, Quantized], layout: str) -> Tuple[int, int, int, int]:
    """Returns (batch, heads, seq, dim); omitted axes are 1."""
    if x.ndim == 2:
        return (1, 1) + x.shape
    batch, first, second, dim = (1,) * (4 - x.ndim) + x.shape
    return (batch, first, second, dim) if layout == "bhsd" else (batch, second, first, dim)


def _strides(layout: str, heads: int, rows: int, dim: int) -> Tuple[int, int, int]:
    """Elements from one batch element, head and row to the next."""
    return (heads * rows * dim, rows * dim, dim) if layout == "bhsd" else (heads * rows * dim, dim, heads * dim)


def _broadcast_strides(x: Array, scores: Sequence[int], name: str) -> Tuple[int, int, int]:
    """Strides of the batch elements, heads and queries; 0 along broadcast axes."""
    shape = (1,) * (4 - x.ndim) + x.shape
    fits = len(shape) == 4 and shape[3] == scores[3]
    if not fits or any(size not in (1, wanted) for size, wanted in zip(shape[:3], scores)):
        raise ValueError(f"{name} has shape {x.shape}, needs to broadcast to {tuple(scores)}, the last axis whole")
    strides = (shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3])
    return tuple(0 if size == 1 else stride for size, stride in zip(shape[:3], strides))


def is_stored(x: object) -> bool:
    """Whether these are keys or values of a type of their own."""
    return isinstance(x, Quantized) or (isinstance(x, Storage) and dtype_of(x) in (raw.F8_E4M3, raw.F8_E5M2))


def _data_of(x: Union[Array, Quantized]) -> Array:
    return x.data if isinstance(x, Quantized) else x


def _set_stored(
    desc: raw.AttentionDesc, q: Array, k: Union[Array, Quantized], v: Union[Array, Quantized],
    k_scales: Optional[Array], v_scales: Optional[Array], layout: str
) -> None:  # fmt: skip
    """How keys and values are stored, and their scales."""
    for x, scales, name in ((k, k_scales, "k"), (v, v_scales, "v")):
        if isinstance(x, Quantized):
            if x.format not in ("q8_0", "q4_0"):
                raise ValueError(f"{name} is of format {x.format}, needs q8_0 or q4_0")
            setattr(desc, f"{name}_format", raw.QUANT_Q8_0 if x.format == "q8_0" else raw.QUANT_Q4_0)
        elif is_stored(x):
            setattr(desc, f"{name}_type", dtype_of(x))
        if scales is None:
            continue
        if isinstance(x, Quantized) or not is_stored(x):
            raise ValueError(f"{name}_scales are given, and {name} is not of 8-bit floats")
        require_array(scales, f"{name}_scales")
        same_context(q.context, scales.context)
        batch, heads, keys, _ = sizes_of(x, layout)
        shape = (1,) * (3 - scales.ndim) + scales.shape
        fits = len(shape) == 3 and all(size in (1, wanted) for size, wanted in zip(shape, (batch, heads, keys)))
        if scales.dtype != np.float32 or not fits:
            raise ValueError(
                f"{name}_scales are {scales.shape} of {scales.dtype}, need float32 that broadcasts to {(batch, heads, keys)}"
            )
        setattr(desc, f"{name}_scales", scales.buffer.handle)
        steps = (shape[1] * shape[2], shape[2], 1)
        getattr(desc, f"{name}_scale_strides")[:] = [0 if size == 1 else step for size, step in zip(shape, steps)]


def _set_window(desc: Union[raw.AttentionDesc, raw.AttentionBackwardDesc], window: object) -> None:
    pair = tuple(window) if isinstance(window, (tuple, list)) else (window, None)
    if len(pair) != 2:
        raise ValueError(f"window is {window!r}, needs a number or two")
    left, right = pair
    for size in (left, right):
        if size is not None and (not is_whole(size) or not 1 <= size < 2**64):
            raise ValueError(f"window is {window!r}, needs whole numbers from 1 on, or None")
    desc.window_left, desc.window_right = left or 0, right or 0
