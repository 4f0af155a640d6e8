#!/usr/bin/env python3
"""Linear algebra, sorting and scattering beside NumPy and SciPy on one CPU, in one process, each result checked.

    bench/numpy_beside.py [--seconds 2] [--only qr]

NumPy runs on one core (OPENBLAS_NUM_THREADS=2 allows another number). Calls of both sides alternate, so that other load
on the machine meets both. A row shows the best call of each, in milliseconds, and in brackets the least processor time of
one, of all threads together, which other load changes less.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

# OpenBLAS's threads wait by spinning, which takes minutes for small matrices if another program uses a core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import scipy.linalg  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import tuff  # noqa: E402


def symmetric(x: np.ndarray) -> np.ndarray:
    return x + x.swapaxes(-1, -2)


def check(got: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    error = np.abs(got - wanted).max() / np.abs(wanted).max()
    if not error <= tolerance:
        raise SystemExit(f"results differ by {error:.1e}")


def cases(ctx: tuff.Context):
    """Name, the call on the device, the same with NumPy or SciPy, and how much results may differ."""
    rng = np.random.default_rng(1)
    la = tuff.linalg

    def uniform(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, shape).astype(np.float32)

    a = uniform(1024, 1024)
    positive = a @ a.T / 1024 + np.eye(1024, dtype=np.float32)
    s, batch, small = symmetric(uniform(256, 256)), uniform(1000, 16, 16), symmetric(uniform(1000, 16, 16))
    numbers, places, values = uniform(1 << 22), rng.integers(0, 1 << 20, 1 << 20), uniform(1 << 20)
    general = a[:256, :256] + 4 * np.eye(256, dtype=np.float32)  # values' order is not that of NumPy: their sums are compared
    A, P, S, B, T, N, G = (ctx.array(x) for x in (a, positive, s, batch, small, numbers, general))
    I, V, Z = ctx.array(places.astype(np.int32)), ctx.array(values), ctx.zeros(1 << 20)
    sums = np.zeros(1 << 20, np.float32)

    def scattered() -> np.ndarray:
        sums[:] = 0
        np.add.at(sums, places, values)
        return sums

    def scatter() -> tuff.Array:
        Z[...] = 0
        return tuff.scatter(Z, I, V)

    yield "cholesky 1024 x 1024", lambda: la.cholesky(P, check=False), lambda: np.linalg.cholesky(positive), 1e-4
    yield "lu 1024 x 1024", lambda: la.lu_factor(A)[0], lambda: scipy.linalg.lu_factor(a)[0], 1e-2
    yield "qr 1024 x 1024, R and Q", lambda: la.qr(A).R, lambda: np.linalg.qr(a)[1], 1e-2
    yield "eigh 256 x 256, vectors", lambda: la.eigh(S, check=False).eigenvalues, lambda: np.linalg.eigh(s)[0], 1e-4
    yield "eig 256 x 256, vectors", lambda: la.eig(G, check=False)[0].sum(), lambda: np.linalg.eig(general)[0].sum(), 1e-3
    yield "svd 256 x 256, vectors", lambda: la.svd(S, check=False).S, lambda: np.linalg.svd(s)[1], 1e-4
    yield "qr 1000 of 16 x 16", lambda: la.qr(B).R, lambda: np.linalg.qr(batch)[1], 1e-3
    yield "eigh 1000 of 16 x 16", lambda: la.eigh(T, check=False).eigenvalues, lambda: np.linalg.eigh(small)[0], 1e-4
    yield "eig 1000 of 16 x 16", lambda: la.eig(B, check=False)[0].sum(), lambda: np.linalg.eig(batch)[0].sum(), 1e-3
    yield "svd 1000 of 16 x 16", lambda: la.svd(B, check=False).S, lambda: np.linalg.svd(batch)[1], 1e-4
    yield "sort 2^22", lambda: tuff.sort(N), lambda: np.sort(numbers), 0
    yield "scatter add 2^20 to 2^20", scatter, scattered, 1e-5


def measure(ctx: tuff.Context, device, host, tolerance: float, seconds: float) -> list[list[tuple[float, float]]]:
    def on_device() -> np.ndarray:
        result = device()
        ctx.synchronize()
        return result

    check(on_device().numpy(), host(), tolerance)  # and compiles the kernels
    times: list[list[tuple[float, float]]] = [[], []]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 3:
        for each, call in zip(times, (on_device, host)):
            start, used = time.perf_counter(), time.process_time()
            call()
            each.append((1e3 * (time.perf_counter() - start), 1e3 * (time.process_time() - used)))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    with tuff.Context() as ctx:
        print(f"{ctx.device.name}; NumPy {np.__version__}; ms (processor time)")
        print("| what | Tuff | NumPy | Tuff / NumPy |\n|---|---|---|---|")
        for name, device, host, tolerance in cases(ctx):
            if options.only in name:
                own, other = measure(ctx, device, host, tolerance, options.seconds)
                best = [[min(one) for one in zip(*each)] for each in (own, other)]
                columns = (f"{wall:.3g} ({used:.3g})" for wall, used in best)
                ratios = (f"{best[0][i] / best[1][i]:.2g}" for i in (0, 1))
                print(f"| {name} | {' | '.join(columns)} | {' ('.join(ratios)}) |", flush=True)


if __name__ == "__main__":
    main()
