#!/usr/bin/env python3
"""What training adds to inference, on a GPU: gradients, losses and optimisers beside PyTorch in one process.

    python3 bench/h200_training.py build/release/libtuff.so [--only attention]

A row of attention, convolution or a normalisation is the forward pass and the gradients by every operand, by tuff.grad and by PyTorch's autograd.
Gradients are compared first. Each row is the best of three runs of several calls; ratios are PyTorch's time divided by Tuff's.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

import numpy as np
from h200 import Beside, run_beside, seconds

BUDGET = 0.15


class Bench(Beside):
    def parts(self) -> list[Callable[[], None]]:
        return [self.attention, self.convolution, self.normalisations, self.losses, self.optimisers]

    def row(self, name: str, call: Callable[[], Any], peer: Callable[[], Any], tolerance: float) -> None:
        if self.only not in name:
            return
        try:
            mine, others = call(), peer()
            worst = 0.0
            for one, other in zip(mine, others):
                other = other.detach().double().cpu().numpy()
                worst = max(worst, float(np.linalg.norm(one.numpy().astype(np.float64) - other) / max(1e-30, np.linalg.norm(other))))
            own = seconds(call, self.context.synchronize, BUDGET)
            theirs = seconds(peer, self.torch.cuda.synchronize, BUDGET)
        except Exception as error:  # noqa: BLE001: the other rows are still of interest
            print(f"{name:44} {type(error).__name__}: {str(error)[:200]}", flush=True)
            return
        check = "" if worst <= tolerance else f"  DIFFERS by {worst:.1e}"
        print(f"{name:44} {own * 1e6:10.1f} us  PyTorch {theirs * 1e6:10.1f} us  ratio {theirs / own:.2f}{check}", flush=True)

    def random_pair(self, shape: tuple, dtype: type, scale: float = 1.0) -> tuple[Any, Any]:
        return self.pair((self.rng.standard_normal(shape) * scale).astype(dtype))

    def both(self, name: str, function: Callable[..., Any], peer: Callable[..., Any], shapes: list, dtype: type, tolerance: float) -> None:
        if self.only not in name:
            return
        operands = [self.random_pair(shape, dtype, scale) for shape, scale in shapes]
        own, theirs = [a for a, _ in operands], [b.requires_grad_(True) for _, b in operands]
        slope, other = self.random_pair(function(*own).shape, dtype)

        def call() -> Any:
            return self.tuff.grad.vjp(function, *own)[1](slope)

        self.row(name, call, lambda: self.torch.autograd.grad(peer(*theirs), theirs, other), tolerance)

    def attention(self) -> None:
        f, tuff = self.torch.nn.functional.scaled_dot_product_attention, self.tuff
        self.torch.backends.cuda.enable_cudnn_sdp(False)  # cuDNN 9 refuses some of these shapes; FlashAttention remains
        half, single = np.float16, np.float32
        for shape, causal, dtype in (((4, 16, 1024, 64), False, half), ((4, 16, 2048, 128), True, half), ((4, 16, 4096, 128), False, half),
                                     ((4, 16, 4096, 128), True, half), ((4, 32, 4096, 64), False, half), ((4, 8, 512, 64), False, single)):  # fmt: skip
            name = f"attention {np.dtype(dtype).name} {'x'.join(map(str, shape))}{' causal' if causal else ''}"
            self.both(name, lambda q, k, v: tuff.attention(q, k, v, causal=causal), lambda q, k, v: f(q, k, v, is_causal=causal), [(shape, 1.0)] * 3, dtype, 5e-3 if dtype == np.float16 else 1e-5)

        for shape, dtype in (((8, 12, 512, 64), half), ((4, 16, 2048, 64), half), ((4, 16, 2048, 128), half), ((4, 8, 512, 64), single)):
            batch, heads, rows, _ = shape
            name = f"attention {np.dtype(dtype).name} {'x'.join(map(str, shape))}"
            tolerance, pairs = 5e-3 if dtype == np.float16 else 1e-5, (1, heads, rows, rows)
            bias, other = self.random_pair(pairs, dtype)
            mask, seen = self.pair(self.rng.random((batch, 1, 1, rows)) < 0.8)
            for option, function, peer, more in (
                ("bias", lambda q, k, v: tuff.attention(q, k, v, bias=bias), lambda q, k, v: f(q, k, v, attn_mask=other), []),
                ("bias and its gradient", lambda q, k, v, b: tuff.attention(q, k, v, bias=b), lambda q, k, v, b: f(q, k, v, attn_mask=b), [(pairs, 1.0)]),
                ("mask of keys", lambda q, k, v: tuff.attention(q, k, v, mask=mask), lambda q, k, v: f(q, k, v, attn_mask=seen), []),
            ):  # fmt: skip
                self.both(f"{name} {option}", function, peer, [(shape, 1.0)] * 3 + more, dtype, tolerance)

    def convolution(self) -> None:
        torch, tuff = self.torch, self.tuff
        for channels, size, filters, k, stride in ((64, 56, 64, 3, 1), (256, 56, 64, 1, 1), (128, 56, 128, 3, 2), (256, 14, 256, 3, 1)):
            for dtype in (np.float16, np.float32):
                name = f"conv2d {np.dtype(dtype).name} 32 x {channels} x {size}^2, {filters} of {k}^2 / {stride}"
                pad = k // 2
                self.both(name, lambda x, w: tuff.conv2d(x, w, stride=stride, padding=pad), lambda x, w: torch.nn.functional.conv2d(x, w, stride=stride, padding=pad),
                          [((32, channels, size, size), 1.0), ((filters, channels, k, k), 0.05)], dtype, 5e-3 if dtype == np.float16 else 1e-4)  # fmt: skip

    def normalisations(self) -> None:
        f, tuff = self.torch.nn.functional, self.tuff
        images, plane = (64, 256, 56, 56), (256,)
        for name, function, peer, shapes in (
            ("layer_norm 8192 x 4096", lambda x, w, b: tuff.layer_norm(x, w, b), lambda x, w, b: f.layer_norm(x, w.shape, w, b), [(8192, 4096), (4096,), (4096,)]),
            ("layer_norm 65536 x 768", lambda x, w, b: tuff.layer_norm(x, w, b), lambda x, w, b: f.layer_norm(x, w.shape, w, b), [(65536, 768), (768,), (768,)]),
            ("rms_norm 8192 x 4096", lambda x, w: tuff.rms_norm(x, w), lambda x, w: f.rms_norm(x, w.shape, w, 1e-5), [(8192, 4096), (4096,)]),
            ("group_norm 64 x 256 x 56^2, 32 groups", lambda x, w, b: tuff.group_norm(x, 32, w, b), lambda x, w, b: f.group_norm(x, 32, w, b), [images, plane, plane]),
            ("batch_norm_training 64 x 256 x 56^2", lambda x, w, b: tuff.batch_norm_training(x, w, b),
             lambda x, w, b: f.batch_norm(x, None, None, w, b, True), [images, plane, plane]),
        ):  # fmt: skip
            for dtype in (np.float16, np.float32):
                self.both(f"{name} {np.dtype(dtype).name}", function, peer, [(shape, 1.0) for shape in shapes], dtype, 1e-2 if dtype == np.float16 else 1e-4)

    def losses(self) -> None:
        torch, tuff = self.torch, self.tuff
        for rows, classes, dtype in ((8192, 32000, np.float16), (4096, 1000, np.float32)):
            name = f"cross_entropy {np.dtype(dtype).name} {rows} x {classes}"
            if self.only not in name:
                continue
            x, z = self.random_pair((rows, classes), dtype)
            labels, targets = self.context.array(values := self.rng.integers(0, classes, rows), np.int64), torch.from_numpy(values).cuda()
            z.requires_grad_(True)
            step = tuff.grad.value_and_grad(lambda logits: tuff.grad.cross_entropy(logits, labels))
            self.row(name, lambda: [step(x)[1]], lambda: torch.autograd.grad(torch.nn.functional.cross_entropy(z, targets), z), 5e-3)

    def optimisers(self) -> None:
        torch, tuff = self.torch, self.tuff
        for name, shapes in (("adam one of 2^26", [(1 << 26,)]), ("adam 200 of 64 to 2^20", [(64 << (i % 15),) for i in range(200)])):
            if self.only not in name:
                continue
            own, theirs = zip(*(self.random_pair(shape, np.float32) for shape in shapes))
            slopes, others = zip(*(self.random_pair(shape, np.float32) for shape in shapes))
            adam, peer = tuff.grad.Adam(list(own), 1e-3), torch.optim.Adam(list(theirs), 1e-3, fused=True)
            for parameter, slope in zip(theirs, others):
                parameter.grad = slope

            def call() -> Any:
                adam.step(list(slopes))
                return own

            def step() -> Any:
                peer.step()
                return theirs

            self.row(name, call, step, 1e-4)


if __name__ == "__main__":
    sys.exit(run_beside(Bench, __doc__))
