#!/usr/bin/env python3
"""Reductions, sorting, indexing, linear algebra and FFT on a GPU, beside PyTorch in the same process.

    python3 bench/h200_arrays.py build/release/libtuff.so [--only sort]

Each row is the best of three runs of several calls. Rates are of the least bytes that have to move (sorting, linear algebra
and FFT: of keys, matrices and values, read and written once), so both libraries are judged by the same measure. Results are
compared with PyTorch's where they are unique.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

import numpy as np
from h200 import Beside, run_beside, seconds

BUDGET = 0.03  # seconds for one side of a row: calls allocate their results, which keep memory until the device has finished


def quiet(call: Callable[[], object]) -> Callable[[], None]:
    """For results that are not compared: places among equal values."""

    def without_result() -> None:
        call()

    return without_result


class Bench(Beside):
    def parts(self) -> list[Callable[[], None]]:
        return [self.reductions, self.sorting, self.indexing, self.algebra, self.transforms]

    def row(self, name: str, size: float, call: Callable[[], Any], peer: Callable[[], Any], tolerance: float = 0) -> None:
        if self.only not in name:
            return
        try:
            own = seconds(call, self.context.synchronize, BUDGET)
            got = call()
            check = ""
            if got is not None:
                mine, other = np.asarray(got.numpy()), peer().cpu().numpy()
                error = np.max(np.abs(mine.astype(np.complex128) - other)) / max(1e-30, float(np.max(np.abs(other))))
                check = "" if error <= tolerance else f"  DIFFERS by {error:.1e}"
        except Exception as error:  # noqa: BLE001: the other rows are still of interest
            print(f"{name:36} {type(error).__name__}: {error}", flush=True)
            return
        theirs = seconds(peer, self.torch.cuda.synchronize, BUDGET)
        print(f"{name:36} {own * 1e6:9.1f} us {size / own / 1e9:7.0f} GB/s  PyTorch {theirs * 1e6:9.1f} us  ratio {theirs / own:.2f}{check}",
              flush=True)

    def reductions(self) -> None:
        torch, tuff, count = self.torch, self.tuff, 1 << 27
        for dtype in (np.float32, np.float16, np.int32):
            values = (self.rng.standard_normal(count) if dtype != np.int32 else self.rng.integers(-99, 99, count)).astype(dtype)
            a, b = self.pair(values)
            kind = np.dtype(dtype).name
            kept = {"dtype": torch.int32} if dtype == np.int32 else {}
            for shape, axis in (((count,), 0), ((8192, count // 8192), 1), ((8192, count // 8192), 0), ((64, 2048, 1024), 1)):
                x, y, where = a.reshape(shape), b.view(shape), f"{'x'.join(map(str, shape))} axis {axis}"
                for name, call, peer in (
                    ("sum", lambda: tuff.sum(x, axis=axis), lambda: y.sum(axis, **kept)),
                    ("max", lambda: tuff.max(x, axis=axis), lambda: y.amax(axis)),
                    ("argmax", lambda: tuff.argmax(x, axis=axis), lambda: y.argmax(axis)),
                    ("var", lambda: tuff.var(x, axis=axis), lambda: y.var(axis, correction=0)),
                ):
                    if name == "var" and dtype == np.int32:
                        continue
                    tolerance = {"sum": 1e-3, "var": 2e-3}.get(name, 0)
                    self.row(f"reduce {name} {kind} {where}", a.nbytes, call if name != "argmax" else quiet(call), peer, tolerance)

    def sorting(self) -> None:
        torch, tuff = self.torch, self.tuff
        for dtype, count in ((np.float32, 1 << 26), (np.int32, 1 << 26), (np.int64, 1 << 24), (np.float16, 1 << 24), (np.float32, 1 << 20), (np.float32, 1 << 14)):
            values = (self.rng.standard_normal(count) if np.dtype(dtype).kind == "f" else self.rng.integers(-2**31, 2**31, count)).astype(dtype)
            a, b = self.pair(values)
            kind = np.dtype(dtype).name
            self.row(f"sort {kind} {count}", 2 * a.nbytes, lambda: tuff.sort(a), lambda: torch.sort(b)[0])
            self.row(f"argsort {kind} {count}", 2 * a.nbytes, quiet(lambda: tuff.argsort(a)), lambda: torch.argsort(b, stable=True))
        a, b = self.pair(self.rng.standard_normal((65536, 1024)).astype(np.float32))
        self.row("sort rows float32 65536x1024", 2 * a.nbytes, lambda: tuff.sort(a, axis=1), lambda: torch.sort(b, 1)[0])
        self.row("sort topk 50 of 65536x1024", a.nbytes, lambda: tuff.topk(a, 50)[0], lambda: torch.topk(b, 50)[0])
        a, b = self.pair(self.rng.standard_normal(1 << 26).astype(np.float32))
        self.row("sort topk 100 of 2^26", a.nbytes, lambda: tuff.topk(a, 100)[0], lambda: torch.topk(b, 100)[0])
        a, b = self.pair(self.rng.integers(0, 1 << 20, 1 << 24).astype(np.int32))
        self.row("sort unique int32 2^24", a.nbytes, lambda: tuff.unique_values(a), lambda: torch.unique(b))
        self.row("sort unique int32 2^24 counts", a.nbytes, lambda: tuff.unique_counts(a).counts, lambda: torch.unique(b, return_counts=True)[1])

    def indexing(self) -> None:
        torch, tuff = self.torch, self.tuff
        rows, columns, named = 1 << 16, 1024, 1 << 15
        a, b = self.pair(self.rng.standard_normal((rows, columns)).astype(np.float32))
        i, j = self.pair(self.rng.integers(0, rows, named))
        self.row("index take rows", 2 * named * columns * 4, lambda: tuff.take(a, i, axis=0), lambda: b[j])
        mask, other = self.pair(self.rng.random((rows, columns)) < 0.5)
        self.row("index by a mask", 2.5 * a.nbytes, lambda: a[mask], lambda: b[other])
        flat, flattened = mask.ravel(), other.reshape(-1)
        self.row("index nonzero", 5 * flat.nbytes, lambda: tuff.flatnonzero(flat), lambda: torch.nonzero(flattened).view(-1))
        self.row("index copy of a transposed view", 2 * a.nbytes, lambda: a.T.copy(), lambda: b.T.contiguous())
        self.row("index every second column", a.nbytes, lambda: a[:, ::2].copy(), lambda: b[:, ::2].contiguous())
        self.row("index pad", 2 * a.nbytes, lambda: tuff.pad(a, ((1, 1), (1, 1))), lambda: torch.nn.functional.pad(b, (1, 1, 1, 1)))

    def algebra(self) -> None:
        torch, tuff = self.torch, self.tuff
        for kind in (np.float32, np.float64):
            name = np.dtype(kind).name
            for batch, n in ((1, 4096), (64, 512), (4096, 32)):
                m = self.rng.standard_normal((batch, n, n)).astype(kind)
                s = (m @ m.transpose(0, 2, 1) / n + np.eye(n, dtype=kind) * 2).astype(kind)
                a, b = self.pair(s)
                r, q = self.pair(self.rng.standard_normal((batch, n, 16)).astype(kind))
                where, tolerance = f"{name} {batch} x {n}^2", 1e-3 if kind == np.float32 else 1e-9
                self.row(f"linalg cholesky {where}", 2 * a.nbytes, lambda: tuff.linalg.cholesky(a), lambda: torch.linalg.cholesky(b), tolerance)
                self.row(f"linalg solve {where}", 2 * a.nbytes, lambda: tuff.linalg.solve(a, r), lambda: torch.linalg.solve(b, q), tolerance)
                self.row(f"linalg inv {where}", 2 * a.nbytes, lambda: tuff.linalg.inv(a), lambda: torch.linalg.inv(b), tolerance)
                self.row(f"linalg det {where}", 2 * a.nbytes, lambda: tuff.linalg.slogdet(a)[1], lambda: torch.linalg.slogdet(b)[1], tolerance)

    def transforms(self) -> None:
        torch, tuff = self.torch, self.tuff
        for batch, n in ((1 << 16, 256), (1 << 14, 1024), (1 << 12, 4096), (256, 1 << 16), (4, 1 << 22), (1 << 13, 1000), (1 << 12, 2187), (1 << 12, 1009)):
            values = self.rng.standard_normal((batch, n)).astype(np.float32)
            a, b = self.pair(values)
            self.row(f"fft real {batch} x {n}", 2 * a.nbytes, lambda: tuff.fft.rfft(a), lambda: torch.fft.rfft(b), 1e-5)
            w, z = self.pair((values + 1j * self.rng.standard_normal((batch, n))).astype(np.complex64))
            self.row(f"fft complex {batch} x {n}", 2 * w.nbytes, lambda: tuff.fft.fft(w), lambda: torch.fft.fft(z), 1e-5)
        a, b = self.pair(self.rng.standard_normal((16, 1024, 1024)).astype(np.float32))
        self.row("fft real 2-D 16 x 1024^2", 2 * a.nbytes, lambda: tuff.fft.rfft2(a), lambda: torch.fft.rfft2(b), 1e-5)


if __name__ == "__main__":
    sys.exit(run_beside(Bench, __doc__))
