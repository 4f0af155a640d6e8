#!/usr/bin/env python3
"""The CPU plug-in beside NumPy (with its BLAS) and Mesa's CPU driver: rates of one core, by the CPU time of the process.

CPU time hardly depends on what else the machine does, so this also works on a busy one. NumPy and the plug-in run with
one thread; the driver's threads are counted together.

    python3 bench/cpu_peers.py [--without-vulkan]
"""

import argparse
import os
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
# The Vulkan column is the driver's.
os.environ["TUFF_CPU_PLUGIN"] = "off"

import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import tuff  # noqa: E402
from tuff import raw  # noqa: E402

REPEATS = 7


def seconds(run):
    """CPU time of the fastest of some runs."""
    run()
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.process_time()
        run()
        best = min(best, time.process_time() - begin)
    return best


def show(name, unit, work, runs):
    rates = "   ".join(f"{who} {work / seconds(run) / 1e9:7.1f}" for who, run in runs.items())
    print(f"{name:24} {unit:8} {rates}", flush=True)


def gemm(contexts, size):
    a, b = (np.random.default_rng(i).random((size, size), dtype=np.float32) for i in (1, 2))
    out = np.empty_like(a)
    runs = {"numpy": lambda: np.dot(a, b, out=out)}
    for ctx in contexts:
        x, y, z = ctx.array(a), ctx.array(b), ctx.array(out)

        def run(ctx=ctx, x=x, y=y, z=z):
            raw.tuff_gemm(ctx.handle, raw.F32, raw.NO_TRANS, raw.NO_TRANS, size, size, size, 1.0, x.buffer.handle, size,
                          y.buffer.handle, size, 0.0, z.buffer.handle, size)  # fmt: skip
            ctx.synchronize()

        runs[ctx.device.backend] = run
    show(f"gemm f32 {size}^3", "GFLOP/s", 2 * size**3, runs)


def unary(contexts, name, op, n, reference):
    x = np.random.default_rng(3).standard_normal(n, dtype=np.float32)
    out = np.ones_like(x)
    runs = {"numpy": lambda: reference(x, out)} if reference else {}
    for ctx in contexts:
        a, b = ctx.array(x), ctx.array(out)

        def run(ctx=ctx, a=a, b=b):
            raw.tuff_unary(ctx.handle, raw.F32, op, a.buffer.handle, b.buffer.handle, n)
            ctx.synchronize()

        runs[ctx.device.backend] = run
    show(f"{name} f32 {n}", "GB/s", 8 * n, runs)


def total(contexts, n):
    x = np.random.default_rng(4).standard_normal(n, dtype=np.float32)
    runs = {"numpy": x.sum}
    for ctx in contexts:
        runs[ctx.device.backend] = lambda a=ctx.array(x): a.sum().numpy()
    show(f"sum f32 {n}", "GB/s", 4 * n, runs)


def conv(contexts, channels, size):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((1, channels, size, size), dtype=np.float32)
    w = rng.standard_normal((channels, channels, 3, 3), dtype=np.float32)
    runs = {}
    for ctx in contexts:
        a, b = ctx.array(x), ctx.array(w)

        def run(ctx=ctx, a=a, b=b):
            tuff.conv2d(a, b, padding=1)
            ctx.synchronize()

        runs[ctx.device.backend] = run
    show(f"conv 3x3 {channels} of {size}x{size}", "GFLOP/s", 2 * 9 * channels**2 * size**2, runs)


def resnet50(contexts):
    sys.path.insert(0, str(ROOT / "examples" / "resnet"))
    import resnet

    layers = resnet.resnet50()
    weights = resnet.seeded_weights(layers)
    image = np.random.default_rng(6).standard_normal((1, 3, 224, 224), np.float32)
    runs = {}
    for ctx in contexts:
        network, x = resnet.Network(ctx, layers, weights, np.float32), ctx.array(image)
        runs[ctx.device.backend] = lambda network=network, x=x: network(x).numpy()
    sizes = resnet.extents(layers, 224)
    products = sum(
        layer.terms * layer.outputs * sizes[layer.name] ** 2 for layer in layers if layer.kind in ("conv2d", "linear")
    )
    show("ResNet-50, one image", "GFLOP/s", 2 * products, runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-vulkan", action="store_true", help="the plug-in and NumPy alone")
    options = parser.parse_args()
    names = ["cpu"] if options.without_vulkan else ["cpu", "vulkan"]
    contexts = [tuff.Context(backend=name) for name in names]
    for ctx in contexts:
        print(f"{ctx.device.backend}: {ctx.device.name}")
    for size in (256, 1024):
        gemm(contexts, size)
    conv(contexts, 64, 56)
    conv(contexts, 256, 14)
    n = 1 << 26
    unary(contexts, "relu", raw.UNARY_RELU, n, lambda x, out: np.maximum(x, 0, out=out))
    unary(contexts, "exp", raw.UNARY_EXP, n, lambda x, out: np.exp(x, out=out))
    unary(contexts, "gelu", raw.UNARY_GELU, n, None)
    total(contexts, n)
    resnet50(contexts)


if __name__ == "__main__":
    main()
