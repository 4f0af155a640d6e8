"""What calls from Python cost: microseconds of this thread's processor time for each, without waiting for results.

    PYTHONPATH=python python3 bench/python_calls.py [--backend vulkan] [--size 1024]
    TUFF_PYTHON=ctypes …        without the package's compiled part
"""

import argparse
import time

import numpy as np

import tuff

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--backend", default="vulkan")
parser.add_argument("--size", type=int, default=1024, help="elements of an operand")
parser.add_argument("--calls", type=int, default=1000, help="calls between two waits")
options = parser.parse_args()

ctx = tuff.Context(backend=options.backend)
host = np.linspace(-2, 2, options.size, dtype=np.float32)
x, y, out = ctx.array(host), ctx.array(host[::-1].copy()), ctx.empty(options.size)
whole, half, mask = x.astype(np.int32), x.astype(np.float16), x < y
square = ctx.array(host[:256].reshape(16, 16).copy())


def chain():
    z = x
    for _ in range(10):
        z = (z * 0.5 + y).relu()


CALLS = {
    "empty(n)": lambda: ctx.empty(options.size),
    "relu": lambda: x.relu(),
    "relu, out=": lambda: tuff.relu(x, out=out),
    "a + b": lambda: x + y,
    "a + 1.0": lambda: x + 1.0,
    "a < b": lambda: x < y,
    "a < 0.5": lambda: x < 0.5,
    "i // 3": lambda: whole // 3,
    "f16 * 0.1": lambda: half * 0.1,
    "where(mask, a, b)": lambda: tuff.where(mask, x, y),
    'expr("gelu(a * x + b)")': lambda: tuff.expr("gelu(a * x + b)", a=x, x=y, b=0.5),
    "a.sum()": lambda: x.sum(),
    "m @ m": lambda: square @ square,
    "a.astype(float16)": lambda: x.astype(np.float16),
    "a[2:5]": lambda: x[2:5],
    "a.reshape(16, -1)": lambda: x.reshape(16, -1),
}


def cost(call, calls):
    call()
    best = float("inf")
    for _ in range(9):
        ctx.synchronize()
        begin = time.thread_time()
        for _ in range(calls):
            call()
        best = min(best, (time.thread_time() - begin) / calls)
    return best * 1e6


core = getattr(tuff, "_core", None)
print(f"{ctx.device.name}; {'compiled' if core and core.COMPILED else 'ctypes'}")
for name, call in CALLS.items():
    print(f"{name:26} {cost(call, options.calls):7.2f}")
print(f"{'30 calls in a chain, each':26} {cost(chain, max(1, options.calls // 30)) / 30:7.2f}")
