#!/usr/bin/env python3
"""Functions of elements, random numbers and formulas on a GPU, beside PyTorch in the same process.

    python3 bench/h200_elementwise.py build/release/libtuff.so

Each row is the median of five times of ten calls over 2^27 elements, with the bytes that have to move. PyTorch's formulas
are compiled by torch.compile where that works.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Callable

import numpy as np

N = 1 << 27
FUNCTIONS = (
    "relu exp gelu gelu_tanh silu sigmoid sin erf log1p tan sinh asin lgamma rsqrt floor"
).split()  # fmt: skip


def seconds(call: Callable[[], object], wait: Callable[[], object], calls: int = 10) -> float:
    call()
    wait()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        times.append((time.perf_counter() - begin) / calls)
    return statistics.median(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path, help="libtuff.so")
    os.environ["TUFF_LIBRARY"] = str(parser.parse_args().library.resolve())
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
    import torch
    import tuff

    context = tuff.Context()
    print(f"{context.device.name}, PyTorch {torch.__version__}")

    def row(name: str, size: int, call: Callable[[], object], peer: Callable[[], object]) -> None:
        own, theirs = seconds(call, context.synchronize), seconds(peer, torch.cuda.synchronize)
        print(f"{name:32} {size / own / 1e9:7.0f} GB/s  PyTorch {size / theirs / 1e9:7.0f}  ratio {theirs / own:.2f}", flush=True)

    functional = torch.nn.functional
    peers = {
        "relu": torch.relu, "gelu": functional.gelu, "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "silu": functional.silu,
    }  # fmt: skip
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        x, z = (context.array(rng.standard_normal(N).astype(dtype)) for _ in range(2))
        y = context.empty(N, dtype)
        u, v = (torch.from_numpy(array.numpy()).cuda() for array in (x, z))
        for function in FUNCTIONS:
            peer = peers.get(function) or getattr(torch, function)
            row(f"{name} {function}", 2 * x.nbytes, lambda f=getattr(tuff, function): f(x, out=y), lambda: peer(u))
        formula = torch.compile(lambda a, b: functional.gelu(a * b + 0.5, approximate="tanh"))
        row(f"{name} gelu_tanh(a * b + 0.5)", 3 * x.nbytes, lambda: tuff.expr("gelu_tanh(a * b + 0.5)", a=x, b=z, out=y), lambda: formula(u, v))
        mask = context.empty(N, np.bool_)
        row(f"{name} a < b", 2 * x.nbytes + N, lambda: tuff.less(x, z, out=mask), lambda: u < v)
        rows, columns = 8192, N // 8192
        table, line = x.reshape(rows, columns), context.full((columns,), 1, dtype)
        tall, flat = u.view(rows, columns), torch.ones(columns, device="cuda", dtype=u.dtype)
        result = y.reshape(rows, columns)
        row(f"{name} a * row", 2 * x.nbytes, lambda: tuff.expr("a * b", a=table, b=line, out=result), lambda: tall * flat)
        if dtype == np.float32:
            generator = tuff.Generator(context, 1)
            for method, peer in (("random", u.uniform_), ("normal", u.normal_), ("exponential", u.exponential_)):
                row(f"{name} {method}", x.nbytes, lambda m=getattr(generator, method): m(out=y), peer)
    i, j = context.array(np.arange(N, dtype=np.int32)), context.empty(N, np.int32)
    k = torch.arange(N, device="cuda", dtype=torch.int32)
    row("int32 // 7", 2 * i.nbytes, lambda: tuff.floor_divide(i, np.int32(7), out=j), lambda: k // 7)
    row("int32 cumsum", 2 * i.nbytes, lambda: tuff.cumsum(i, out=j), lambda: torch.cumsum(k, 0, dtype=torch.int32))
    small, out, peer = context.zeros(64), context.zeros(64), torch.zeros(64, device="cuda")
    for name, call in (
        ("relu", lambda: tuff.relu(small, out=out)),
        ("a formula", lambda: tuff.expr("a + 1", a=small, out=out)),
        ("a < b", lambda: small < out),
    ):
        print(f"{name} of 64 numbers: {1e6 * seconds(call, context.synchronize, 2000):.2f} us a call")
    print(f"PyTorch's relu: {1e6 * seconds(lambda: torch.relu(peer), torch.cuda.synchronize, 2000):.2f} us a call")
    return 0


if __name__ == "__main__":
    sys.exit(main())
