#!/usr/bin/env python3
"""Runs kernels that Triton has compiled on Tuff's buffers, in a process without Triton and without the CUDA toolkit.

    python3 examples/triton/run.py                          # with Triton installed beside Tuff
    python3 examples/triton/run.py --compiler PYTHON        # with an interpreter that has Triton

A second process compiles kernels.py to PTX, which needs no GPU. This one loads the PTX into Tuff, launches it between
Tuff's own operations and compares the results with NumPy's. It needs an NVIDIA GPU of the Hopper generation, whose
Vulkan driver takes PTX; elsewhere it ends with status 77.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
try:
    import tuff
except ModuleNotFoundError:  # not installed: the package of this checkout
    sys.path.insert(0, str(HERE.parent.parent / "python"))
    import tuff

NOT_RUN = 77


def compiled(python, name):
    """Returns the PTX of a kernel, the size of its workgroups and its shared memory."""
    if subprocess.run([python, "-c", "import triton"], capture_output=True).returncode != 0:
        print(f"Triton is not installed for {Path(python).name}: pip install triton")
        sys.exit(NOT_RUN)
    start = time.perf_counter()
    done = subprocess.run([python, HERE / "kernels.py", name], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"Triton did not compile {name}:\n{done.stderr}")
    kernel = json.loads(done.stdout)
    print(
        f"{name}: {len(kernel['ptx']):,} bytes of PTX from another process in {time.perf_counter() - start:.1f} s, "
        f"{kernel['threads']} threads, {kernel['shared']:,} bytes of shared memory"
    )
    return kernel


def load(ctx, kernel):
    return ctx.kernel(
        kernel["ptx"],
        language="ptx",
        name=kernel["name"] + ".ptx",
        workgroup_size=kernel["threads"],
        shared_bytes=kernel["shared"],
    )


def call(kernel, *arrays, groups, push):
    """Launches the kernel. Triton adds pointers that these kernels do not use."""
    kernel(*arrays, *[None] * (kernel.bindings - len(arrays)), groups=groups, push=push)


def check(name, result, expected, bound):
    error = np.max(np.abs(result.astype(np.float64) - expected) / bound)
    print(f"  {name}: largest error {error:.2f} of its bound")
    if not error <= 1:
        sys.exit(f"{name} is wrong")


def run_softmax(ctx, kernel, rng):
    rows, columns = 4096, 1000
    x = rng.standard_normal((rows, columns), np.float32)
    weights = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = 2 * weights / weights.sum(axis=1, keepdims=True)
    source, target = ctx.array(x), ctx.zeros((rows, columns))
    call(kernel, source, target, groups=rows, push=np.uint32(columns))
    target += target  # one of Tuff's operations, ordered after the kernel
    # 2 ULP of an exponential with an argument up to 10, whose rounding counts as often, and a sum by halves.
    check("softmax, doubled", target.numpy(), expected, expected * 2.0**-24 * (4 + 2 * 10 + 2 * np.log2(1024)))


def run_matmul(ctx, kernel, rng):
    m, n, k = 1000, 776, 520
    a, b = (rng.standard_normal(shape, np.float32).astype(np.float16) for shape in ((m, k), (k, n)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    sizes = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    left, right, product = ctx.array(a), ctx.array(b), ctx.zeros((m, n), np.float16)
    call(kernel, left, right, product, groups=(-(-m // 128), -(-n // 128)), push=np.array([m, n, k], np.int32))
    # The result is rounded to f16 once; sums of k products in f32, whose additions tensor cores cut instead of round.
    bound = 2.0**-11 * np.abs(exact) + 2.0**-22 * k * sizes
    check("matmul", product.numpy(), exact, bound)
    check("Tuff's gemm", (left @ right).numpy(), exact, bound)


def seconds(ctx, function):
    """Returns the median time of a call, measured over batches of ten."""
    times = []
    for _ in range(12):
        ctx.synchronize()
        start = time.perf_counter()
        for _ in range(10):
            function()
        ctx.synchronize()
        times.append((time.perf_counter() - start) / 10)
    return float(np.median(times[2:]))


def compare(ctx, kernel):
    size = 4096
    a, b, c = (ctx.full((size, size), value, np.float16) for value in (0.5, 0.25, 0))
    push = np.array([size] * 3, np.int32)
    rates = {
        "Triton's kernel": seconds(ctx, lambda: call(kernel, a, b, c, groups=(size // 128, size // 128), push=push)),
        "Tuff's gemm": seconds(ctx, lambda: tuff.matmul(a, b, out=c)),
    }
    for name, time_of_one in rates.items():
        print(f"  {size} x {size} x {size}, {name}: {2 * size**3 / time_of_one / 1e12:.0f} TFLOP/s")


def loaded(pattern):
    """Returns the libraries of this process that match the pattern."""
    names = {line.split("/")[-1].strip() for line in open("/proc/self/maps") if "/" in line}
    return sorted(name for name in names if re.match(pattern, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default=sys.executable, help="interpreter that has Triton (this one)")
    options = parser.parse_args()
    sources = {name: compiled(options.compiler, name) for name in ("softmax", "matmul")}
    with tuff.Context() as ctx:
        if not ctx.supports("ptx"):
            print(f"{ctx.device.name} runs no PTX: not run")
            return NOT_RUN
        rng = np.random.default_rng(20)
        kernels = {name: load(ctx, source) for name, source in sources.items()}
        run_softmax(ctx, kernels["softmax"], rng)
        run_matmul(ctx, kernels["matmul"], rng)
        compare(ctx, kernels["matmul"])
    toolkit = loaded(r"lib(cudart|cublas|cudnn|nvrtc|nvJitLink|torch|triton)\b")
    print(f"  libraries of CUDA's toolkit, PyTorch or Triton in this process: {', '.join(toolkit) or 'none'}")
    # NVIDIA's Vulkan driver loads these parts of itself as soon as VK_NVX_binary_import is enabled.
    of_driver = loaded(r"lib(cuda|nvidia-ptxjitcompiler)\b")
    print(f"  parts of the driver: {', '.join(of_driver)}")
    return 1 if toolkit else 0


if __name__ == "__main__":
    sys.exit(main())
