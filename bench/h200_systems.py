#!/usr/bin/env python3
"""Recurrent networks, sparse matrices, quantised weights and keys, and random numbers of distributions on a GPU, beside
PyTorch (cuDNN, cuSPARSE) in the same process.

    python3 bench/h200_systems.py build/release/libtuff.so [--only rnn]

Each row is the best of three runs of several calls, after a comparison of the results. Ratios are PyTorch's time divided by
Tuff's: above 1, Tuff is faster. PyTorch has neither quantised products of these formats nor attention over quantised keys,
so those rows compare with the rate of memory and with Tuff's own f16.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any, Callable

import numpy as np
from h200 import Beside, run_beside, seconds

BUDGET = 0.1


class Bench(Beside):
    def parts(self) -> list[Callable[[], None]]:
        named = {
            "rnn": self.recurrent,
            "sparse": self.sparse,
            "blocks": self.sparse_blocks,
            "quant": self.quantised,
            "keys": self.quantised_keys,
            "random": self.distributions,
        }
        return [part for name, part in named.items() if self.only in name]

    def row(self, name: str, call: Callable[[], Any], peer: Callable[[], Any], tolerance: float, work: str = "") -> None:
        try:
            mine, other = np.asarray(call().numpy(), np.float64), peer().double().cpu().numpy()
            error = np.max(np.abs(mine - other)) / max(1e-30, float(np.max(np.abs(other))))
            check = "" if error <= tolerance else f"  DIFFERS by {error:.1e}"
            own = seconds(call, self.context.synchronize, BUDGET)
            theirs = seconds(peer, self.torch.cuda.synchronize, BUDGET)
        except Exception as error:  # noqa: BLE001: the other rows are still of interest
            print(f"{name:44} {type(error).__name__}: {str(error)[:200]}", flush=True)
            return
        print(f"{name:44} {own * 1e6:9.1f} us  PyTorch {theirs * 1e6:9.1f} us  ratio {theirs / own:.2f}{work}{check}", flush=True)

    def recurrent(self) -> None:
        torch, tuff = self.torch, self.tuff
        for kind, half in (("lstm", torch.float16), ("lstm", torch.float32), ("gru", torch.float16)):
            for layers, hidden, batch, steps in ((2, 1024, 64, 512), (1, 256, 32, 128), (1, 2048, 8, 64)):
                dtype = np.float16 if half == torch.float16 else np.float32
                net = (torch.nn.LSTM if kind == "lstm" else torch.nn.GRU)(hidden, hidden, layers).cuda().to(half)
                own = tuff.rnn_layers({k: v.detach().cpu() for k, v in net.state_dict().items()}, self.context)
                values = self.rng.uniform(-1, 1, (steps, batch, hidden)).astype(dtype)
                x, z = self.pair(values)
                run = tuff.lstm if kind == "lstm" else tuff.gru
                name = f"rnn {kind} {np.dtype(dtype).name} {layers} x {hidden}, {batch} x {steps} steps"
                with torch.no_grad():
                    self.row(name, lambda: run(x, own)[0], lambda: net(z)[0], 2e-2 if dtype == np.float16 else 1e-3)

    def sparse(self) -> None:
        import scipy.sparse

        torch, tuff = self.torch, self.tuff
        warnings.filterwarnings("ignore", message="Sparse")
        n = 2000
        line = scipy.sparse.diags([-1, 2, -1], [-1, 0, 1], shape=(n, n))
        eye = scipy.sparse.identity(n)
        poisson = (scipy.sparse.kron(eye, line) + scipy.sparse.kron(line, eye)).tocsr().astype(np.float32)
        even = scipy.sparse.random(200_000, 200_000, 3e-4, "csr", np.float32, self.rng)
        lengths = np.minimum(self.rng.zipf(1.6, 500_000), 200_000)
        lengths[1234] = 400_000
        columns = self.rng.integers(0, 500_000, lengths.sum())
        power = scipy.sparse.csr_matrix(
            (self.rng.standard_normal(columns.size).astype(np.float32), columns, np.concatenate([[0], np.cumsum(lengths)])), (500_000, 500_000)
        )
        power.sum_duplicates()
        for name, matrix in (("Poisson 4e6", poisson), ("uniform 2e5, 60 a row", even), ("power law 5e5", power)):
            a = tuff.sparse.from_scipy(matrix, context=self.context)
            b = torch.sparse_csr_tensor(torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data), matrix.shape).cuda()
            for width in (1, 32, 128):
                values = self.rng.standard_normal((matrix.shape[1], width) if width > 1 else matrix.shape[1]).astype(np.float32)
                if values.nbytes > 1 << 31:
                    continue
                x, z = self.pair(values)
                moved = matrix.nnz * 8 + (matrix.shape[0] + values.size * 2) * 4
                self.row(f"sparse {name} ({matrix.nnz / 1e6:.1f}e6) x {width}", lambda: a @ x, lambda: b @ z, 1e-4, f"  ({moved / 1e6:.0f} MB)")

    def sparse_blocks(self) -> None:
        """BSR of 42 million elements, 40 blocks in a row; the same matrix as CSR beside it."""
        import scipy.sparse

        torch, tuff = self.torch, self.tuff
        warnings.filterwarnings("ignore", message="Sparse")
        for side in (4, 8, 16):
            rows, each = 1_048_576 // side // side, 40
            columns = np.arange(each) * (rows // each) + self.rng.integers(0, rows // each, (rows, each))
            data = self.rng.standard_normal((rows * each, side, side)).astype(np.float32)
            matrix = scipy.sparse.bsr_matrix((data, columns.ravel(), np.arange(rows + 1) * each), (rows * side, rows * side))
            a = tuff.sparse.from_scipy(matrix, context=self.context)
            csr = tuff.sparse.from_scipy(matrix.tocsr(), context=self.context)
            parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
            b = torch.sparse_bsr_tensor(*parts, matrix.shape).cuda()
            for width in (1, 32):
                x, z = self.pair(self.rng.standard_normal((matrix.shape[1], width)).astype(np.float32))
                name = f"sparse BSR {side} x {side} ({matrix.nnz / 1e6:.1f}e6) x {width}"
                self.row(name, lambda: a @ x, lambda: b @ z, 1e-4)
                own = seconds(lambda: csr @ x, self.context.synchronize, BUDGET)
                print(f"{'':44} {own * 1e6:9.1f} us as CSR", flush=True)

    def quantised_keys(self) -> None:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        tuff, torch = self.tuff, self.torch
        half = np.dtype(np.float16)
        for batch, heads, kv_heads, rows, keys in ((1, 32, 8, 1, 32768), (64, 32, 8, 1, 1024), (1, 32, 8, 4, 32768), (4, 32, 8, 1024, 1024)):
            shape, count = (batch, kv_heads, keys, 128), batch * kv_heads * keys * 128
            values = [self.rng.standard_normal(shape, np.float32).astype(half) for _ in "kv"]
            q, z = self.pair(self.rng.standard_normal((batch, heads, rows, 128), np.float32).astype(half))
            halves, peers = zip(*(self.pair(one) for one in values))
            formats: dict[str, Any] = {"f16": halves}
            for name, size in (("q8_0", 34), ("q4_0", 18)):
                data = self.rng.integers(0, 256, (count // 32, size), np.uint8)
                data[:, :2] = np.full(1, 0.01, half).view(np.uint8)
                formats[name] = [tuff.Quantized(name, shape, data.reshape(-1), context=self.context) for _ in "kv"]
            for name in ("float8_e4m3fn", "float8_e5m2"):
                formats[name] = [tuff.cast(one, name) for one in halves]
            times = {name: self.in_graph(lambda: tuff.attention(q, k, v), rows) for name, (k, v) in formats.items()}
            with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):  # cuDNN's fails on some machines
                call = lambda: torch.nn.functional.scaled_dot_product_attention(z, *peers, enable_gqa=True)  # noqa: E731
                theirs = seconds(call, torch.cuda.synchronize, BUDGET)
            line = f"keys {batch} x {heads} ({kv_heads}) x {rows} x {keys} x 128  PyTorch f16 {theirs * 1e6:.1f} us;"
            for name, time_of in times.items():
                line += f"  {name} {time_of * 1e6:.1f} ({times['f16'] / time_of:.2f})"
            print(line, flush=True)

    def distributions(self) -> None:
        torch, n = self.torch, 1 << 24
        own = self.tuff.Generator(self.context, 1)
        draws = {
            "gamma(2.5)": (lambda: own.standard_gamma(2.5, n), lambda: torch._standard_gamma(shapes)),
            "gamma(0.3)": (lambda: own.standard_gamma(0.3, n), lambda: torch._standard_gamma(small)),
            "poisson(4)": (lambda: own.poisson(4.0, n), lambda: torch.poisson(rates)),
            "poisson(200)": (lambda: own.poisson(200.0, n), lambda: torch.poisson(large)),
            "binomial(10, 0.3)": (lambda: own.binomial(10, 0.3, n), lambda: torch.binomial(tens, parts)),
            "binomial(1000, 0.3)": (lambda: own.binomial(1000, 0.3, n), lambda: torch.binomial(tens * 100, parts)),
        }
        shapes, small, rates, large, tens, parts = (torch.full((n,), value).cuda() for value in (2.5, 0.3, 4.0, 200.0, 10.0, 0.3))
        for name, (call, peer) in draws.items():
            took = seconds(call, self.context.synchronize, BUDGET)
            other = seconds(peer, torch.cuda.synchronize, BUDGET)
            print(f"random {name:37} {took * 1e6:9.1f} us  PyTorch {other * 1e6:9.1f} us  ratio {other / took:.2f}", flush=True)

    def quantised(self) -> None:
        for n in (16384, 4096):
            self.products(n)

    def blocks(self, name: str, n: int) -> Any:
        """ggml's blocks with scales that are finite numbers."""
        numbers, size, scales = {"q4_0": (32, 18, 1), "q8_0": (32, 34, 1), "q4_K": (256, 144, 2)}[name]
        data = self.rng.integers(0, 256, (n * n // numbers, size), np.uint8)
        data[:, : 2 * scales] = np.full(scales, 0.01, np.float16).view(np.uint8)
        return self.tuff.Quantized(name, (n, n), data.reshape(-1), context=self.context)

    def products(self, n: int) -> None:
        tuff = self.tuff
        w = self.context.array(self.rng.standard_normal((n, n), np.float32), np.float16)
        by_32, zeros = np.full((n, n // 32), 0.4, np.float16), self.rng.integers(5, 10, (n, n // 32))
        weights = {
            "int4": (tuff.quantize(w, by_32, format="int4", axis=1, block_size=32), 4.5),
            "uint4 zeros": (tuff.quantize(w, by_32, zeros, format="uint4", axis=1, block_size=32), 4.625),
            "int8 rows": (tuff.quantize(w, np.full(n, 0.03, np.float16), format="int8", axis=0), 8),
            "q4_0": (self.blocks("q4_0", n), 4.5),
            "q8_0": (self.blocks("q8_0", n), 8.5),
            "q4_K": (self.blocks("q4_K", n), 4.5),
        }
        for rows in (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096):
            x = self.context.array(self.rng.standard_normal((rows, n), np.float32), np.float16)
            y = self.context.empty((rows, n), np.float16)
            end = time.monotonic() + 0.5  # the GPU's clock has dropped while NumPy computed, and while memory was read
            while time.monotonic() < end:
                w @ w
                self.context.synchronize()
            half = self.in_graph(lambda: tuff.matmul(x, w.T, out=y), rows)
            line = f"quant {rows:5} x {n}^2  f16 {half * 1e6:7.1f} us;"
            for name, (matrix, bits) in weights.items():
                own = self.in_graph(lambda: tuff.qmatmul(x, matrix, out=y), rows)
                rate = f"{n * n * bits / 8 / own / 1e12:.2f} TB/s" if rows <= 32 else f"{2 * rows * n * n / own / 1e12:.0f} TFLOP/s"
                line += f"  {name} {own * 1e6:.1f} ({half / own:.2f}, {rate})"
            print(line, flush=True)

    def in_graph(self, call: Callable[[], Any], rows: int) -> float:
        """For twenty calls, or a few long ones, in a graph: what Python takes is left out."""
        call()
        calls = 20 if rows <= 1024 else 3
        with self.context.capture() as graph:
            for _ in range(calls):
                call()
        return seconds(graph.launch, self.context.synchronize, BUDGET / 2) / calls


if __name__ == "__main__":
    sys.exit(run_beside(Bench, __doc__, "rnn, sparse, blocks, quant, keys or random"))
