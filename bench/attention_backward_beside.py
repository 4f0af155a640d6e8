#!/usr/bin/env python3
"""Gradients of attention: tuff_attention_backward beside products with all scores in memory, and beside PyTorch, in one process.

    python3 bench/attention_backward_beside.py [--shape 4,8,512,64] [--causal] [--calls 5] [--threads 2]

All are called in turn, with the results waited for, and the least time of a call counts. Prints the CPU time of all threads of
the process together, which hardly depends on what else the machine does, and the wall time, which does; each also as a
share of tuff_attention_backward's. PyTorch is left out if it is not installed. The gradients are compared first.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from pathlib import Path

import numpy as np

try:
    import tuff
except ImportError:  # not installed: the package of this checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
    import tuff
from tuff import _attention

try:
    import torch
except ImportError:
    torch = None


def timed(call) -> np.ndarray:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return np.array([time.process_time() - cpu, time.perf_counter() - wall])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--shape", default="4,8,512,64", help="batch, heads, rows and keys, head_dim")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    shape = tuple(int(one) for one in options.shape.split(","))
    batch, heads, rows, size = shape
    random = np.random.default_rng(1)
    values = [random.uniform(-1, 1, shape).astype(np.float32) for _ in range(4)]
    context = tuff.Context()
    q, k, v, d_o = (context.array(one) for one in values)
    scale = 1 / math.sqrt(size)
    o, lse = tuff.attention(q, k, v, causal=options.causal, return_lse=True)
    order = [context.array(one, np.int64) for one in (np.arange(rows).reshape(-1, 1), np.arange(rows))]

    def backward() -> list:
        found = _attention.attention_gradients(q, k, v, o, lse, d_o, "qkv", scale=scale, causal=options.causal)
        context.synchronize()
        return [found[name] for name in "qkv"]

    def products() -> list:
        """As tuff.grad did it before there was tuff_attention_backward."""
        scores = tuff.matmul(q, k.mT, alpha=scale)
        shown = dict(i=order[0], j=order[1]) if options.causal else {}
        weights = tuff.expr("j <= i ? exp(s - l) : 0" if shown else "exp(s - l)", dtype=np.float32, s=scores, l=lse[..., None], **shown)
        inner = (d_o * o).sum(-1, True)
        slopes = tuff.expr("p * (d - i)", p=weights, d=tuff.matmul(d_o, v.mT), i=inner)
        found = [tuff.matmul(slopes, k, alpha=scale), tuff.matmul(slopes.mT, q, alpha=scale), tuff.matmul(weights.mT, d_o)]
        context.synchronize()
        return found

    ways = {"tuff_attention_backward": backward, "products of all scores": products}
    if torch is not None:
        torch.set_num_threads(options.threads)
        leaves = [torch.tensor(one, requires_grad=True) for one in values[:3]]
        result = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=options.causal)
        gradient = torch.tensor(values[3])
        ways["PyTorch " + torch.__version__] = lambda: torch.autograd.grad(result, leaves, gradient, retain_graph=True)
    right = [one.numpy() for one in products()]
    for name, way in ways.items():
        for one, other in zip(way(), right):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-3, atol=1e-4, err_msg=name)
    least = {name: np.full(2, np.inf) for name in ways}
    for _ in range(options.calls):
        for name, way in ways.items():
            least[name] = np.minimum(least[name], timed(way))
    own = least["tuff_attention_backward"]
    operations = 10 * batch * heads * rows * rows * size / (2 if options.causal else 1)
    print(f"{context.device.name}; load {os.getloadavg()[0]:.1f}; {batch} x {heads} x {rows} x {size}{', causal' if options.causal else ''}")
    for name, (cpu, wall) in least.items():
        print(f"{name:26} CPU {1e3 * cpu:8.1f} ms, {cpu / own[0]:5.2f} x   wall {1e3 * wall:8.1f} ms, {wall / own[1]:5.2f} x   "
              f"{operations / wall / 1e9:6.1f} GFLOP/s")  # fmt: skip


if __name__ == "__main__":
    main()
