#!/usr/bin/env python3
"""Cumulative sums beside PyTorch and CuPy on one GPU, in one process.

    python3 bench/h200_scan.py build/release/libtuff.so

GB/s of the minimum traffic: the input read once, the output written once. The last column is a copy of the same bytes by
Tuff. Results are compared with PyTorch's. Needs PyTorch with a GPU; CuPy is optional.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np

SHAPES = [((1 << 24,), 0), ((1 << 27,), 0), ((4096, 4096), 1), ((4096, 4096), 0), ((65536, 256), 1), ((256, 65536), 0),
          ((64, 1024, 1024), 1)]  # fmt: skip


def seconds(call: Callable[[], Any], wait: Callable[[], Any], calls: int = 30) -> float:
    """The time of one call: the best of five rounds of many calls between two waits."""
    for _ in range(3):
        call()
    wait()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library", help="libtuff.so")
    os.environ["TUFF_LIBRARY"] = parser.parse_args().library
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
    import torch
    import tuff

    try:
        import cupy
    except ImportError:
        cupy = None
    context = tuff.Context()
    print(f"{'shape':18} axis dtype    tuff  torch   cupy   copy   tuff/torch   (GB/s)")
    for shape, axis in SHAPES:
        for dtype in ("float32", "float16"):
            # Whole numbers whose sums float32 holds exactly; in float16 both round every result once.
            values = np.random.default_rng(1).integers(-1, 2, shape).astype(dtype)
            x, y, copy = context.array(values, dtype), context.empty(shape, dtype), context.empty(shape, dtype)
            mine = seconds(lambda: tuff.cumsum(x, axis, out=y), context.synchronize)
            copied = seconds(lambda: copy.buffer.copy_from(x.buffer), context.synchronize)
            tensor = torch.from_numpy(values).cuda()
            result = torch.empty_like(tensor)
            theirs = seconds(lambda: torch.cumsum(tensor, axis, out=result), torch.cuda.synchronize)
            if dtype == "float32" and not np.array_equal(y.numpy(), result.cpu().numpy()):
                raise SystemExit(f"{shape} along axis {axis}: results differ from PyTorch's")
            third = float("nan")
            if cupy is not None:
                array = cupy.asarray(values)
                out = cupy.empty_like(array)
                third = seconds(lambda: cupy.cumsum(array, axis, out=out), cupy.cuda.Device().synchronize)
            rates = [2e-9 * values.nbytes / each for each in (mine, theirs, third, copied)]
            columns = " ".join(f"{rate:6.0f}" for rate in rates)
            print(f"{'x'.join(map(str, shape)):18} {axis:4} {dtype} {columns}   {theirs / mine:6.2f}")


if __name__ == "__main__":
    main()
