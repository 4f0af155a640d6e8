#!/usr/bin/env python3
"""Attention beside PyTorch's scaled_dot_product_attention in one process: prompts, and few queries over many keys.

    python3 bench/h200_attention.py build/release/libtuff.so

Reports TFLOP/s of the two GEMMs (half of them for causal attention), or TB/s of keys and values if queries are few;
the ratio of the rates; and the relative difference (Frobenius norm) from PyTorch's result on the same inputs, which
includes PyTorch's error as well as Tuff's. Needs a GPU, PyTorch and NumPy.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from h200 import beside_torch, seconds

# type, batch, query heads, kv heads, queries, keys, head_dim, causal
PROMPTS = [
    ("f32", 4, 32, 32, 4096, 4096, 128, False),
    ("f16", 4, 32, 32, 4096, 4096, 128, False),
    ("f16", 4, 32, 32, 4096, 4096, 128, True),
    ("bf16", 4, 32, 32, 4096, 4096, 128, False),
    ("bf16", 4, 32, 32, 4096, 4096, 128, True),
    ("f16", 4, 32, 32, 4096, 4096, 64, False),
    ("f16", 8, 32, 8, 1024, 1024, 128, True),
    ("f16", 32, 12, 12, 197, 197, 64, False),
]
# The same, and what is applied to scores: a bias of the type of q or f32 for each head ("bias", "bias32"), shared by
# batch elements; a byte mask for each batch element ("mask"), where two thirds of the keys are seen, or the lower
# triangle ("triangle"); a soft cap of 30 ("cap"), which PyTorch's function does not have.
OPTIONS = [
    ("f16", 4, 32, 32, 4096, 4096, 128, False, "bias"),
    ("bf16", 4, 32, 32, 4096, 4096, 128, False, "bias"),
    ("f16", 4, 32, 32, 4096, 4096, 128, False, "bias32"),
    ("f16", 4, 32, 32, 4096, 4096, 128, False, "mask"),
    ("f16", 4, 32, 32, 4096, 4096, 128, False, "triangle"),
    ("f16", 4, 32, 32, 4096, 4096, 128, False, "cap"),
    ("f16", 4, 32, 32, 4096, 4096, 128, True, "cap"),
    ("f16", 4, 32, 32, 4096, 4096, 64, False, "bias"),
    ("f16", 32, 12, 12, 197, 197, 64, False, "bias"),
    ("f16", 32, 12, 12, 512, 512, 64, False, "mask"),
]
DECODES = [
    ("f16", 1, 32, 8, 1, 32768, 128, False),
    ("bf16", 1, 32, 8, 1, 32768, 128, False),
    ("f16", 64, 32, 8, 1, 1024, 128, False),
    ("f16", 1, 32, 8, 2, 32768, 128, False),
    ("f16", 1, 32, 8, 4, 32768, 128, False),
    ("f16", 1, 32, 8, 8, 32768, 128, False),
    ("f16", 1, 32, 8, 16, 32768, 128, False),
    ("f16", 1, 32, 8, 47, 32768, 128, False),
    ("f16", 64, 32, 8, 4, 1024, 128, False),
    ("f16", 64, 32, 8, 16, 1024, 128, False),
    ("f16", 64, 32, 32, 4, 1024, 128, False),
    ("f16", 64, 32, 32, 32, 1024, 128, False),
    ("f16", 1, 32, 8, 1, 32768, 128, False, "mask"),
    ("f16", 1, 32, 8, 1, 32768, 128, False, "bias"),
    ("f16", 1, 32, 8, 1, 32768, 128, False, "cap"),
    ("f16", 1, 32, 8, 4, 32768, 128, False, "mask"),
    ("f16", 1, 32, 32, 1, 8192, 128, False),
    ("f16", 64, 32, 32, 1, 1024, 128, False),
    ("f16", 1, 32, 8, 1, 1024, 128, False),
    ("f32", 1, 32, 8, 1, 32768, 128, False),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="path of libtuff.so")
    parser.add_argument("--device", help="as in tuff.Context")
    parser.add_argument("--only", choices=["prompts", "options", "decodes"], help="one of the tables")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each side of a row (default: 0.3)")
    options = parser.parse_args()
    torch, tuff, context = beside_torch(options.library, options.device)
    from torch.nn.attention import SDPBackend, sdpa_kernel

    print(f"{'batch x heads (of keys) x queries x keys x head_dim':<52}{'us':>9}{'Tuff':>8}{'PyTorch':>9}  "
          f"{'ratio':>6}  difference")
    types = {"f32": (torch.float32, tuff.raw.F32), "f16": (torch.float16, tuff.raw.F16),
             "bf16": (torch.bfloat16, tuff.raw.BF16)}

    def option(desc: Any, name: str, kind: str, keep: list[Any]) -> Any:
        """Sets the option in the descriptor; what PyTorch takes as attn_mask."""
        if name == "cap":
            desc.softcap = 30
            return None
        heads, queries, keys = desc.heads, desc.seq_q, desc.seq_kv
        if name.startswith("bias"):
            number = torch.float32 if name == "bias32" else types[kind][0]
            values = torch.randn(heads, queries, keys).to(number)
            raw = values.view(torch.int32 if name == "bias32" else torch.int16).numpy()
            strides, peer = (0, queries * keys, keys), values.to(types[kind][0]).cuda()[None]
        else:
            seen = torch.rand(desc.batch, queries, keys) < 2 / 3 if name == "mask" else \
                torch.ones(desc.batch, queries, keys, dtype=torch.bool).tril()
            raw, strides, peer = seen.to(torch.uint8).numpy(), (queries * keys, 0, keys), seen.cuda()[:, None]
        keep.append(context.alloc(raw.nbytes))
        keep[-1].upload(raw)
        if name.startswith("bias"):
            desc.bias, desc.bias_type = keep[-1].handle, tuff.raw.F32 if name == "bias32" else 0
            desc.bias_strides = type(desc.bias_strides)(*strides)
        else:
            desc.mask, desc.mask_strides = keep[-1].handle, type(desc.mask_strides)(*strides)
        return peer

    def row(name: str, batch: int, heads: int, kv_heads: int, queries: int, keys: int, dim: int, causal: bool,
            extra: str = "") -> None:
        (kind, number), note = types[name], ""
        # Generated on the host, so that both sides have the same bits; a limited number of values, repeated.
        some = torch.randn(1 << 22).to(kind)

        def tensor(heads: int, rows: int, shift: int) -> Any:
            count = batch * heads * rows * dim
            return some.roll(shift).repeat(-(-count // some.numel()))[:count].reshape(batch, heads, rows, dim)

        tensors = [tensor(heads, queries, 0), tensor(kv_heads, keys, 1237), tensor(kv_heads, keys, 99991)]
        buffers = []
        for one in tensors:
            values = one.view(torch.int32 if name == "f32" else torch.int16).numpy()
            buffers.append(context.alloc(values.nbytes))
            buffers[-1].upload(values)
        out = context.alloc(buffers[0].nbytes)
        desc = tuff.raw.AttentionDesc()
        desc.dtype, desc.batch, desc.heads, desc.kv_heads = number, batch, heads, kv_heads
        desc.seq_q, desc.seq_kv, desc.head_dim, desc.scale = queries, keys, dim, dim**-0.5
        desc.causal = int(causal)
        desc.q, desc.k, desc.v, desc.o = (buffer.handle for buffer in (*buffers, out))
        q, k, v = (one.cuda() for one in tensors)
        extras: list[Any] = []
        mask = option(desc, extra, name, extras) if extra else None

        def ours() -> None:
            tuff.check(tuff.raw.tuff_attention_ex(context.handle, desc))

        def theirs() -> Any:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal,
                                                                    enable_gqa=heads != kv_heads)

        with torch.no_grad():
            each = seconds(ours, context.synchronize, options.seconds)
            title = f"{batch} x {heads}{f' ({kv_heads})' if kv_heads != heads else ''} x {queries} x {keys} x {dim}"
            title = f"{name} {title}{' causal' if causal else ''}{' ' + extra if extra else ''}"
            work = sum(buffer.nbytes for buffer in buffers[1:]) if queries < 48 else \
                4.0 * batch * heads * queries * keys * dim * (0.5 if causal else 1)
            if extra == "cap":
                print(f"{title:<52}{each * 1e6:>9.1f}{work / each * 1e-12:>8.2f}", flush=True)
                return
            try:
                theirs()
                peer = theirs
            except RuntimeError:  # cuDNN's attention fails on some machines; PyTorch does not try its own then
                def peer() -> Any:
                    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
                        return theirs()

                note = "  (PyTorch without cuDNN)"
            other = seconds(peer, torch.cuda.synchronize, options.seconds)
            expected = peer().float().cpu()
        values = torch.empty(batch, heads, queries, dim, dtype=kind)
        out.download(values.view(torch.int32 if name == "f32" else torch.int16).numpy())
        difference = ((values.float() - expected).norm() / expected.norm()).item()
        print(f"{title:<52}{each * 1e6:>9.1f}{work / each * 1e-12:>8.2f}"
              f"{work / other * 1e-12:>9.2f}{other / each:>6.2f}  {difference:.1e}{note}", flush=True)

    if options.only in (None, "prompts"):
        print("prompts, TFLOP/s")
        for shape in PROMPTS:
            row(*shape)
    if options.only in (None, "options"):
        print("with bias, mask or soft cap, TFLOP/s")
        for with_option in OPTIONS:
            row(*with_option)
    if options.only in (None, "decodes"):
        print("few queries, TB/s of keys and values")
        for shape in DECODES:
            row(*shape)
    return 0


if __name__ == "__main__":
    sys.exit(main())
