#!/usr/bin/env python3
"""Recurrent networks, sparse matrices and quantised weights on a GPU, beside PyTorch (cuDNN, cuSPARSE) in the same process.

    python3 bench/h200_systems.py build/release/libtuff.so [--only rnn]

Each row is the best of three runs of several calls, after a comparison of the results. Ratios are PyTorch's time divided by
Tuff's: above 1, Tuff is faster. PyTorch has no quantised products of these formats, so those rows compare with the rate of
memory and with Tuff's own product of 16-bit numbers.
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
        named = {"rnn": self.recurrent, "sparse": self.sparse, "quant": self.quantised}
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

    def quantised(self) -> None:
        tuff = self.tuff
        n = k = 16384
        weights = self.rng.standard_normal((n, k)).astype(np.float16)
        w = self.context.array(weights, np.float16)
        scales = (np.abs(weights).reshape(n, k // 32, 32).max(-1) / 7).astype(np.float16)
        q = tuff.quantize(w, scales, format="int4", axis=1, block_size=32)
        eight = tuff.quantize(w, (np.abs(weights).max(1) / 127).astype(np.float16), format="int8", axis=0)
        end = time.monotonic() + 1.5  # the GPU's clock has dropped while NumPy computed the scales
        while time.monotonic() < end:
            w @ w
            self.context.synchronize()
        for rows in (1, 2, 4, 8, 16, 32, 512, 4096):
            values = self.rng.standard_normal((rows, k)).astype(np.float16)
            x = self.context.array(values, np.float16)
            for name, matrix, bits in (("int4 by 32", q, 4.5), ("int8 by rows", eight, 8)):
                own = seconds(lambda: tuff.qmatmul(x, matrix), self.context.synchronize, BUDGET)
                half = seconds(lambda: x @ w.T, self.context.synchronize, BUDGET)
                print(f"quant {name} {rows:5} x {n}^2 {'':14} {own * 1e6:9.1f} us  {n * k * bits / 8 / own / 1e12:5.2f} TB/s of weights, "
                      f"{2 * rows * n * k / own / 1e12:6.1f} TFLOP/s, {half / own:5.2f} of f16's speed", flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(run_beside(Bench, __doc__, "rnn, sparse or quant"))
