#!/usr/bin/env python3
"""Looks for performance cliffs: GEMMs of random sizes, each compared with its neighbours in the same run.

    python3 bench/gemm_sweep.py build/release/libtuff.so --shapes 500 --type f16

m, n and k are log-uniform between 1 and --most; transposes and alignment are random. A GEMM's efficiency is its rate
as a share of what arithmetic, memory and the cost of a call allow (by the best rates of the run). It is compared with
the best of its eight nearest neighbours. The ten worst are printed; the exit status is 1 if one is below a quarter.

On a CPU device, CPU time summed over all cores is measured, so that other programs do not distort it (and idle cores
are not noticed).
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from ctypes import byref, c_int32, c_uint64, c_void_p, sizeof
from typing import Callable

import h200
from h200_gemm import BYTES, DTYPES, GemmDesc

CPU = 4  # TUFF_DEVICE_CPU


def cpu_seconds(call: Callable[[], None], wait: Callable[[], None], budget: float) -> float:
    """The best of at least three rounds."""
    best, rounds, calls, end = math.inf, 0, 1, time.perf_counter() + budget
    while rounds < 3 or time.perf_counter() < end:
        before = time.process_time()
        for _ in range(calls):
            call()
        wait()
        spent = time.process_time() - before
        best, rounds = min(best, spent / calls), rounds + 1
        if spent < 1e-3:
            calls, rounds, best = calls * 4, 0, math.inf
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="path of libtuff.so")
    parser.add_argument("--device", help="index or part of the name of Tuff's device (default: the best)")
    parser.add_argument("--type", default="f32", choices=["f32", "f16", "bf16", "f64", "i8"])
    parser.add_argument("--shapes", type=int, default=500)
    parser.add_argument("--most", type=int, default=4096, help="largest extent (default: 4096)")
    parser.add_argument("--seconds", type=float, default=0.02, help="for each gemm (default: 0.02)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tuff = h200.Tuff(options.library, options.device)
    tuff.library.tuff_batched_gemm_ex.argtypes = [c_uint64, c_void_p]
    tuff.library.tuff_batched_gemm_ex.restype = c_int32
    size = BYTES[options.type]
    c_type = "i32" if options.type == "i8" else options.type
    capacity = options.most * (options.most + 8) * max(size, BYTES[c_type])
    buffers = []
    for _ in range(3):
        buffer = c_uint64()
        tuff.call("alloc", tuff.context, capacity, byref(buffer))
        buffers.append(buffer.value)
    random.seed(options.seed)
    rows = []
    for _ in range(options.shapes):
        m, n, k = (round(math.exp(random.uniform(0, math.log(options.most)))) for _ in range(3))
        ta, tb = random.getrandbits(1), random.getrandbits(1)
        pad = random.choice([0, 0, 0, 1, 8])
        desc = GemmDesc(struct_size=sizeof(GemmDesc), dtype=DTYPES[options.type], ta=ta, tb=tb, m=m, n=n, k=k, alpha=1,
                        a=buffers[0], b=buffers[1], c=buffers[2], lda=(m if ta else k) + pad, ldb=(k if tb else n) + pad,
                        ldc=n + pad, batch_count=1, c_type=DTYPES[c_type])
        rows.append({"at": (math.log2(m), math.log2(n), math.log2(k)), "flops": 2.0 * m * n * k, "desc": desc,
                     "bytes": float(size * (m * k + k * n) + BYTES[c_type] * m * n),
                     "name": f"{'NT'[ta]}{'NT'[tb]} {m}x{n}x{k} pad {pad}"})
        # Compiles everything before anything is timed: a device that waits for the compiler lowers its clock.
        tuff.call("batched_gemm_ex", tuff.context, byref(desc))
    cpu = tuff.info().type == CPU
    tuff.synchronize()
    # For the same reason the largest GEMM runs for a moment before each measurement on a GPU.
    largest = max(rows, key=lambda row: row["flops"])["desc"]
    seconds = cpu_seconds if cpu else h200.seconds
    whole = seconds(lambda: tuff.call("batched_gemm_ex", tuff.context, byref(largest)), tuff.synchronize, 0.3)
    for row in rows:
        for _ in range(0 if cpu else math.ceil(0.02 / whole)):
            tuff.call("batched_gemm_ex", tuff.context, byref(largest))
        row["seconds"] = seconds(lambda: tuff.call("batched_gemm_ex", tuff.context, byref(row["desc"])),
                                 tuff.synchronize, options.seconds)
    flops = max(row["flops"] / row["seconds"] for row in rows)
    bandwidth = max(row["bytes"] / row["seconds"] for row in rows)
    # The cost of a call. On a CPU device, whose threads may or may not be asleep between calls, the median of small
    # GEMMs.
    small = sorted(rows, key=lambda row: row["flops"] + row["bytes"])[:max(1, len(rows) // 20)]
    call = sorted(row["seconds"] for row in (small if cpu else rows))[len(small) // 2 if cpu else 0]
    for row in rows:
        row["efficiency"] = min(max(row["flops"] / flops, row["bytes"] / bandwidth, call) / row["seconds"], 1)
    for row in rows:
        near = sorted(rows, key=lambda other: math.dist(row["at"], other["at"]))[1:9]
        best = max(near, key=lambda other: other["efficiency"])
        row["share"], row["neighbour"] = row["efficiency"] / best["efficiency"], best
    print(f"{options.type}, {len(rows)} shapes: best {flops / 1e12:.3g} TFLOP/s, {bandwidth / 1e9:.4g} GB/s, a call "
          f"{call * 1e6:.1f} us\n\n{'gemm':<34}{'time':>12}{'efficiency':>12}{'share of its best neighbour':>30}")
    worst = sorted(rows, key=lambda row: row["share"])[:10]
    for row in worst:
        print(f"{row['name']:<34}{row['seconds'] * 1e6:>9.1f} us{row['efficiency']:>12.3f}{row['share']:>9.2f} of "
              f"{row['neighbour']['name']} ({row['neighbour']['efficiency']:.3f})")
    return 1 if worst and worst[0]["share"] < 0.25 else 0


if __name__ == "__main__":
    sys.exit(main())
