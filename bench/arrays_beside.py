#!/usr/bin/env python3
"""Functions of NumPy's namespace beside NumPy on one CPU, in one process, each result checked.

    bench/arrays_beside.py [--seconds 1] [--only take] [--elements 1000000]

NumPy runs on one core (OPENBLAS_NUM_THREADS=2 allows another number). Calls of both sides alternate, so that other load
on the machine meets both, after two calls that compile the kernels. A row shows the best call of each, in milliseconds.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

# OpenBLAS's threads wait by spinning, which takes long if another program uses a core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import tuff  # noqa: E402


def check(name: str, got: object, wanted: object, tolerance: float) -> None:
    if isinstance(wanted, (tuple, list)):
        if len(got) != len(wanted):
            raise SystemExit(f"{name}: {len(got)} results, NumPy has {len(wanted)}")
        for one, other in zip(got, wanted):
            check(name, one, other, tolerance)
        return
    got, wanted = np.asarray(got.numpy() if hasattr(got, "numpy") else got), np.asarray(wanted)
    if got.shape != wanted.shape:
        raise SystemExit(f"{name}: shape {got.shape}, NumPy's is {wanted.shape}")
    error = np.abs(got.astype(np.float64) - wanted).max() if got.size else 0
    if not error <= tolerance * max(np.abs(wanted.astype(np.float64)).max(), 1):
        raise SystemExit(f"{name}: results differ by {error:.1e}")


def cases(ctx: tuff.Context, n: int):
    """Name, a call that takes the module and its arrays, those arrays, and how much results may differ."""
    rng = np.random.default_rng(1)
    side = int(n**0.5)
    small = rng.integers(0, 1000, n).astype(np.int32)
    wide = rng.integers(-(2**31), 2**31, n).astype(np.int32)
    tests = rng.integers(0, 2000, 1000).astype(np.int32)
    x, tall = rng.standard_normal(n).astype(np.float32), rng.standard_normal((n // 20, 20)).astype(np.float32)
    image, places = x[: side * side].reshape(side, side), rng.integers(-n, n, n)
    t = np.linspace(-1, 1, n // 10, dtype=np.float32)
    along = np.linspace(0, 1, side, dtype=np.float32)
    right, filters = rng.standard_normal(n // 20).astype(np.float32), rng.standard_normal(100).astype(np.float32)
    yield "bincount", lambda m, a: m.bincount(a), (small,), 0
    yield "isin", lambda m, a, b: m.isin(a, b), (small, tests), 0
    yield "isin, wide range", lambda m, a, b: m.isin(a, b), (wide, wide[:1000].copy()), 0
    yield "unique", lambda m, a: m.unique(a), (small,), 0
    yield "unique, all outputs", lambda m, a: m.unique(a, True, True, True), (small,), 0
    yield "unique, wide range", lambda m, a: m.unique(a), (wide,), 0
    yield "unique, all outputs, wide range", lambda m, a: m.unique(a, True, True, True), (wide,), 0
    yield "union1d", lambda m, a, b: m.union1d(a, b), (small, tests), 0
    yield "intersect1d", lambda m, a, b: m.intersect1d(a, b), (small, tests), 0
    yield "setdiff1d", lambda m, a, b: m.setdiff1d(a, b), (small, tests), 0
    yield "take, int64", lambda m, a, i: m.take(a, i, axis=0), (x, places), 0
    yield "take, int32", lambda m, a, i: m.take(a, i, axis=0), (x, places.astype(np.int32)), 0
    yield "nonzero", lambda m, a: m.nonzero(a), (x > 0,), 0
    yield "nonzero, 2 axes", lambda m, a: m.nonzero(a), (image > 0,), 0
    yield "argwhere", lambda m, a: m.argwhere(a), (image > 0,), 0
    yield "a[mask]", lambda m, a, b: a[b], (x, x > 0), 0
    yield "compress", lambda m, a, b: m.compress(b, a), (x, x > 0), 0
    yield "unique, f32", lambda m, a: m.unique(a), (x,), 0
    yield "pad", lambda m, a: m.pad(a, 10), (image,), 0
    yield "pad, reflect", lambda m, a: m.pad(a, 10, mode="reflect"), (image,), 0
    yield "meshgrid", lambda m, a: m.meshgrid(a, a), (along,), 0
    yield "gradient", lambda m, a: m.gradient(a), (x,), 1e-6
    yield "gradient, 2 axes", lambda m, a: m.gradient(a), (image,), 1e-6
    yield "convolve, 100 taps", lambda m, a, b: m.convolve(a, b), (x, filters), 1e-5
    yield "lstsq", lambda m, a, b: m.linalg.lstsq(a, b, rcond=None)[0], (tall, right), 1e-3
    yield "polyfit, degree 5", lambda m, a, b: m.polyfit(a, b, 5), (t, np.sin(3 * t)), 1e-3
    yield "rot90", lambda m, a: m.rot90(a), (image,), 0
    yield "flip", lambda m, a: m.flip(a), (image,), 0
    yield "roll", lambda m, a: m.roll(a, 100), (x,), 0
    yield "diff", lambda m, a: m.diff(a), (x,), 1e-6


def measure(ctx: tuff.Context, name: str, call, arrays, tolerance: float, seconds: float) -> list[float]:
    mine = [ctx.array(one) for one in arrays]

    def on_device() -> object:
        result = call(tuff, *mine)
        ctx.synchronize()
        return result

    check(name, on_device(), call(np, *arrays), tolerance)
    on_device()
    best = [float("inf")] * 2
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or rounds < 3:
        rounds += 1
        for side, run in enumerate((on_device, lambda: call(np, *arrays))):
            start = time.perf_counter()
            run()
            best[side] = min(best[side], 1e3 * (time.perf_counter() - start))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--elements", type=int, default=10**6)
    options = parser.parse_args()
    with tuff.Context() as ctx:
        print(f"{ctx.device.name}; NumPy {np.__version__}; {options.elements} elements; ms")
        print("| what | Tuff | NumPy | Tuff / NumPy |\n|---|---|---|---|")
        for name, call, arrays, tolerance in cases(ctx, options.elements):
            if options.only in name:
                own, other = measure(ctx, name, call, arrays, tolerance, options.seconds)
                print(f"| {name} | {own:.3g} | {other:.3g} | {own / other:.2g} |", flush=True)


if __name__ == "__main__":
    main()
