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
DECODES = [
    ("f16", 1, 32, 8, 1, 32768, 128, False),
    ("bf16", 1, 32, 8, 1, 32768, 128, False),
    ("f16", 64, 32, 8, 1, 1024, 128, False),
    ("f16", 1, 32, 8, 4, 32768, 128, False),
    ("f16", 1, 32, 32, 1, 8192, 128, False),
    ("f16", 64, 32, 32, 1, 1024, 128, False),
    ("f16", 1, 32, 8, 1, 1024, 128, False),
    ("f32", 1, 32, 8, 1, 32768, 128, False),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="path of libtuff.so")
    parser.add_argument("--device", help="as in tuff.Context")
    parser.add_argument("--only", choices=["prompts", "decodes"], help="one of the two tables")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each side of a row (default: 0.3)")
    options = parser.parse_args()
    torch, tuff, context = beside_torch(options.library, options.device)
    from torch.nn.attention import SDPBackend, sdpa_kernel

    print(f"{'batch x heads (of keys) x queries x keys x head_dim':<52}{'us':>9}{'Tuff':>8}{'PyTorch':>9}  "
          f"{'ratio':>6}  difference")
    types = {"f32": (torch.float32, tuff.raw.F32), "f16": (torch.float16, tuff.raw.F16),
             "bf16": (torch.bfloat16, tuff.raw.BF16)}

    def row(name: str, batch: int, heads: int, kv_heads: int, queries: int, keys: int, dim: int, causal: bool) -> None:
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

        def ours() -> None:
            tuff.check(tuff.raw.tuff_attention_ex(context.handle, desc))

        def theirs() -> Any:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                                    enable_gqa=heads != kv_heads)

        with torch.no_grad():
            each = seconds(ours, context.synchronize, options.seconds)
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
        work = sum(buffer.nbytes for buffer in buffers[1:]) if queries < 16 else \
            4.0 * batch * heads * queries * keys * dim * (0.5 if causal else 1)
        shape = f"{batch} x {heads}{f' ({kv_heads})' if kv_heads != heads else ''} x {queries} x {keys} x {dim}"
        print(f"{name + ' ' + shape + (' causal' if causal else ''):<52}{each * 1e6:>9.1f}{work / each * 1e-12:>8.2f}"
              f"{work / other * 1e-12:>9.2f}{other / each:>6.2f}  {difference:.1e}{note}", flush=True)

    if options.only != "decodes":
        print("prompts, TFLOP/s")
        for shape in PROMPTS:
            row(*shape)
    if options.only != "prompts":
        print("few queries, TB/s of keys and values")
        for shape in DECODES:
            row(*shape)
    return 0


if __name__ == "__main__":
    sys.exit(main())
