#!/usr/bin/env python3
"""Tuff beside PyTorch on one GPU, in one process: checks each result, then times both.

    python3 bench/h200.py build/release/libtuff.so

Needs PyTorch with a GPU, NumPy, and libtuff.so with its Vulkan driver; nothing else of this project. Both sides are
timed by the wall clock over many calls between two waits. PyTorch runs in plain f32 (TF32 off). Small calls go through
a loop compiled with cc, if there is one, so that Python's own cost is not counted; without cc the output says so.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from ctypes import byref, c_char, c_char_p, c_double, c_int32, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Callable, Iterable, Sequence

import numpy as np

F32, NO_TRANS, CAUSAL_NONE = 1, 0, 0
RELU, EXP, SUM = 1, 4, 1


class ContextDesc(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("validation", c_int32), ("device", c_char_p), ("backend", c_char_p),
                ("memory_limit_bytes", c_uint64)]


class DeviceProperties(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("type", c_int32), ("name", c_char * 256), ("vendor", c_char * 64),
                ("driver", c_char * 256), ("backend", c_char * 16), ("uuid", c_uint8 * 16), ("vendor_id", c_uint32),
                ("device_id", c_uint32), ("api_version", c_uint32), ("driver_version", c_uint32),
                ("memory_bytes", c_uint64), ("memory_free_bytes", c_uint64), ("max_allocation_bytes", c_uint64),
                ("max_storage_range_bytes", c_uint64), ("max_workgroup_invocations", c_uint32),
                ("max_workgroup_count", c_uint32 * 3), ("max_shared_memory_bytes", c_uint32),
                ("max_push_constant_bytes", c_uint32), ("subgroup_size", c_uint32), ("supports_f16", c_int32),
                ("supports_bf16", c_int32), ("supports_f64", c_int32), ("supports_int8", c_int32),
                ("supports_matrix_cores", c_int32), ("supports_addresses", c_int32), ("unified_memory", c_int32),
                ("binding", c_int32), ("bandwidth_bytes_per_second", c_double), ("f32_flops_per_second", c_double)]


SIGNATURES: dict[str, Sequence[Any]] = {
    "tuff_context_create": [c_void_p, c_void_p],
    "tuff_context_destroy": [c_uint64],
    "tuff_context_info": [c_uint64, c_void_p],
    "tuff_synchronize": [c_uint64],
    "tuff_alloc": [c_uint64, c_uint64, c_void_p],
    "tuff_free": [c_uint64],
    "tuff_copy_htod": [c_uint64, c_uint64, c_uint64, c_void_p, c_uint64],
    "tuff_copy_dtoh": [c_uint64, c_void_p, c_uint64, c_uint64, c_uint64],
    "tuff_copy_dtod": [c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64],
    "tuff_gemm": [c_uint64, c_int32, c_int32, c_int32, c_uint64, c_uint64, c_uint64, c_double, c_uint64, c_uint64,
                  c_uint64, c_uint64, c_double, c_uint64, c_uint64],
    "tuff_conv2d": [c_uint64, c_int32, c_uint64, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p, c_void_p, c_void_p],
    "tuff_attention": [c_uint64, c_int32, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64,
                       c_uint64, c_uint64, c_double, c_int32],
    "tuff_reduce": [c_uint64, c_int32, c_int32, c_uint64, c_uint64, c_void_p, c_uint32, c_uint32],
    "tuff_unary": [c_uint64, c_int32, c_int32, c_uint64, c_uint64, c_uint64],
    "tuff_softmax": [c_uint64, c_int32, c_uint64, c_uint64, c_void_p, c_uint32, c_uint32],
    "tuff_last_error": [c_void_p, c_uint64, c_void_p],
}

# Loops over small calls. loop: `count` calls of f(stream, F32, RELU, x[i % buffers], x[i % buffers], n). loop_waiting:
# calls that are each waited for.
LOOP = """
#include <stdint.h>
typedef int32_t (*unary)(uint64_t, int32_t, int32_t, uint64_t, uint64_t, uint64_t);
int32_t loop(unary f, uint64_t stream, const uint64_t* x, uint64_t buffers, uint64_t n, uint64_t count) {
  int32_t status = 0;
  for (uint64_t i = 0; i < count && status == 0; ++i) status = f(stream, 1, 1, x[i % buffers], x[i % buffers], n);
  return status;
}
int32_t loop_waiting(unary f, int32_t (*wait)(uint64_t), uint64_t stream, uint64_t x, uint64_t n, uint64_t count) {
  int32_t status = 0;
  for (uint64_t i = 0; i < count && status == 0; ++i) {
    status = f(stream, 1, 1, x, x, n);
    if (status == 0) status = wait(stream);
  }
  return status;
}
"""


class Tuff:
    """The few functions of the C ABI that the benchmarks use."""

    def __init__(self, path: str, device: str | None) -> None:
        self.library = ctypes.CDLL(path)
        for name, arguments in SIGNATURES.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = arguments, c_int32
        desc = ContextDesc(struct_size=ctypes.sizeof(ContextDesc), device=device.encode() if device else None)
        self.context = c_uint64()
        self.call("context_create", byref(desc), byref(self.context))
        self.loops = self._compile_loops()

    def call(self, name: str, *arguments: Any) -> None:
        if getattr(self.library, "tuff_" + name)(*arguments) != 0:
            message = ctypes.create_string_buffer(4096)
            self.library.tuff_last_error(message, len(message), None)
            raise RuntimeError(message.value.decode())

    def info(self) -> DeviceProperties:
        properties = DeviceProperties(struct_size=ctypes.sizeof(DeviceProperties))
        self.call("context_info", self.context, byref(properties))
        return properties

    def synchronize(self) -> None:
        self.call("synchronize", self.context)

    def alloc(self, count: int) -> c_uint64:
        buffer = c_uint64()
        self.call("alloc", self.context, 4 * count, byref(buffer))
        return buffer

    def upload(self, values: np.ndarray, buffer: c_uint64 | None = None) -> c_uint64:
        buffer = buffer or self.alloc(values.size)
        self.call("copy_htod", self.context, buffer, 0, values.ctypes.data, values.nbytes)
        return buffer

    def download(self, buffer: c_uint64, shape: Sequence[int]) -> np.ndarray:
        values = np.empty(shape, np.float32)
        self.call("copy_dtoh", self.context, values.ctypes.data, buffer, 0, values.nbytes)
        return values

    def free(self, *buffers: c_uint64) -> None:
        for buffer in buffers:
            self.call("free", buffer)

    def relu_many(self, buffers: Sequence[c_uint64], n: int, count: int) -> None:
        if self.loops is None:
            unary, context = self.library.tuff_unary, self.context
            for i in range(count):
                x = buffers[i % len(buffers)]
                unary(context, F32, RELU, x, x, n)
            return
        handles = (c_uint64 * len(buffers))(*[b.value for b in buffers])
        unary = ctypes.cast(self.library.tuff_unary, c_void_p)
        if self.loops.loop(unary, self.context, handles, len(buffers), n, count):
            raise RuntimeError("tuff_unary failed in the loop of small calls")

    def relu_waiting(self, x: c_uint64, n: int, count: int) -> None:
        unary, wait = self.library.tuff_unary, self.library.tuff_synchronize
        if self.loops is None:
            for _ in range(count):
                unary(self.context, F32, RELU, x, x, n)
                wait(self.context)
        elif self.loops.loop_waiting(ctypes.cast(unary, c_void_p), ctypes.cast(wait, c_void_p), self.context, x, n, count):
            raise RuntimeError("tuff_unary or tuff_synchronize failed in the loop of small calls")

    @staticmethod
    def _compile_loops() -> Any:
        folder = Path(tempfile.mkdtemp(prefix="tuff-bench-"))
        (folder / "loop.c").write_text(LOOP)
        try:
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", folder / "loop.so", folder / "loop.c"], check=True,
                           capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        loops = ctypes.CDLL(str(folder / "loop.so"))
        loops.loop.argtypes = [c_void_p, c_uint64, c_void_p, c_uint64, c_uint64, c_uint64]
        loops.loop_waiting.argtypes = [c_void_p, c_void_p, c_uint64, c_uint64, c_uint64, c_uint64]
        return loops


def u64s(values: Iterable[int]) -> Any:
    values = list(values)
    return (c_uint64 * len(values))(*values)


def seconds(call: Callable[[], Any], wait: Callable[[], Any], budget: float) -> float:
    """Seconds of one call: the best of three runs of many calls between two waits."""
    call()
    wait()

    def run(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        return (time.perf_counter() - begin) / count

    once = run(2)
    count = max(2, min(10000, int(budget / 3 / once)))
    return min(run(count) for _ in range(3))


def beside_torch(library: str, device: str | None) -> tuple[Any, Any, Any]:
    """PyTorch with TF32 off, Tuff's package with this library, and a context on this device."""
    try:
        import torch
    except ImportError as error:
        sys.exit(f"error: {error}; this benchmark compares Tuff with PyTorch")
    if not torch.cuda.is_available():
        sys.exit("error: PyTorch finds no GPU here")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    os.environ["TUFF_LIBRARY"] = library
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
    import tuff

    context = tuff.Context(device)
    print(f"{context}, PyTorch {torch.__version__}")
    return torch, tuff, context


class Beside:
    """Rows of Tuff beside PyTorch: both libraries, and a context."""

    def __init__(self, torch: Any, tuff: Any, context: Any, only: str) -> None:
        self.torch, self.tuff, self.context, self.only = torch, tuff, context, only
        self.rng = np.random.default_rng(1)

    def pair(self, values: np.ndarray) -> tuple[Any, Any]:
        """The same values as an array of each."""
        return self.context.array(values, values.dtype), self.torch.from_numpy(values).cuda()

    def parts(self) -> list[Callable[[], None]]:
        """What prints the rows."""
        raise NotImplementedError


def run_beside(kind: type[Beside], doc: str | None, only: str = "rows whose names contain this") -> int:
    """The command line of a program that consists of such rows."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="path of libtuff.so")
    parser.add_argument("--device", help="as in tuff.Context")
    parser.add_argument("--only", default="", help=only)
    options = parser.parse_args()
    for part in kind(*beside_torch(options.library, options.device), options.only).parts():
        part()
    return 0


class Report:
    """Collects rows and prints each as soon as it is measured."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.failed = False
        print(f"{'work':<40}{'Tuff':>16}{'PyTorch':>16}{'ratio':>8}{'error':>10}  check")
        print("-" * 98)

    def row(self, name: str, work: float, unit: str, tuff: float, torch: float | None, error: float | None = None,
            allowed: float = 0.0) -> None:
        """work is that of one call, unit is FLOP/s, B/s or us; the ratio is above 1 if Tuff is faster."""
        good = error is None or error <= allowed  # false for NaN
        self.failed |= not good
        ratio = torch / tuff if torch else None
        print(f"{name:<40}{rate(work, unit, tuff):>16}{rate(work, unit, torch) if torch else '-':>16}"
              f"{f'{ratio:.2f}' if ratio else '-':>8}{'-' if error is None else f'{error:.1e}':>10}"
              f"  {'-' if error is None else 'ok' if good else f'WRONG (allowed {allowed:.1e})'}", flush=True)
        self.rows.append({"work": name, "unit": unit, "tuff_seconds": tuff, "torch_seconds": torch, "ratio": ratio,
                          "tuff_rate": work / tuff, "error": error, "allowed": allowed, "ok": good})


def rate(work: float, unit: str, each: float) -> str:
    if unit == "us":
        return f"{each * 1e6:.2f} us"
    value, prefix = work / each, ""
    for prefix in ("", "k", "M", "G", "T", "P"):
        if value < 1000:
            break
        value /= 1000
    return f"{value:.4g} {prefix}{unit}"


def frobenius(got: Any, reference: Any) -> float:
    """||got - reference|| / ||reference||, both torch tensors."""
    difference = (got.double() - reference.double()).norm().item()
    return difference / max(reference.double().norm().item(), 1e-300)


class Bench:
    def __init__(self, torch: Any, tuff: Tuff, budget: float, shift: int) -> None:
        self.torch, self.tuff, self.budget, self.shift = torch, tuff, budget, shift
        self.gpu = "cuda" if torch.cuda.is_available() else "cpu"
        self.wait = torch.cuda.synchronize if self.gpu == "cuda" else (lambda: None)
        self.report = Report()
        torch.manual_seed(1)

    # Random values in a tensor on PyTorch's device, and the same in one of Tuff's buffers.
    def random(self, *shape: int, low: float = -1.0, high: float = 1.0) -> tuple[Any, c_uint64]:
        values = self.torch.empty(shape, device=self.gpu).uniform_(low, high)
        return values, self.tuff.upload(values.cpu().numpy())

    def result(self, buffer: c_uint64, shape: Sequence[int]) -> Any:
        return self.torch.from_numpy(self.tuff.download(buffer, shape)).to(self.gpu)

    def time_both(self, ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
        return seconds(ours, self.tuff.synchronize, self.budget), seconds(theirs, self.wait, self.budget)

    def gemm(self, size: int) -> None:
        tuff = self.tuff
        (a, da), (b, db), dc = self.random(size, size), self.random(size, size), tuff.alloc(size * size)
        call = lambda: tuff.call("gemm", tuff.context, F32, NO_TRANS, NO_TRANS, size, size, size, 1.0, da, size, db,
                                 size, 0.0, dc, size)
        ours, theirs = self.time_both(call, lambda: a @ b)
        error = frobenius(self.result(dc, (size, size)), a.double() @ b.double())
        # Rounding errors of k additions with random sign grow as sqrt(k), far below the bound gamma_k.
        self.report.row(f"gemm f32 {size}^3", 2.0 * size**3, "FLOP/s", ours, theirs, error, 2**-24 * math.sqrt(size))
        tuff.free(da, db, dc)

    def unary(self, name: str, op: int, theirs: Callable[[Any], Any], n: int, allowed: float) -> None:
        tuff = self.tuff
        (x, dx), dy = self.random(n), tuff.alloc(n)
        call = lambda: tuff.call("unary", tuff.context, F32, op, dx, dy, n)
        ours, other = self.time_both(call, lambda: theirs(x))
        self.report.row(f"{name} f32 {power(n)}", 8.0 * n, "B/s", ours, other,
                        frobenius(self.result(dy, (n,)), theirs(x)), allowed)
        tuff.free(dx, dy)

    def sum(self, n: int) -> None:
        tuff = self.tuff
        (x, dx), dy = self.random(n, low=0.0), tuff.alloc(1)
        shape = u64s([n])
        call = lambda: tuff.call("reduce", tuff.context, F32, SUM, dx, dy, shape, 1, 0)
        ours, theirs = self.time_both(call, x.sum)
        error = frobenius(self.result(dy, (1,)), x.sum(dtype=self.torch.float64).reshape(1))
        self.report.row(f"sum f32 {power(n)}", 4.0 * n, "B/s", ours, theirs, error, 1e-5)
        tuff.free(dx, dy)

    def softmax(self, rows: int, columns: int) -> None:
        tuff = self.tuff
        (x, dx), dy = self.random(rows, columns, low=-8.0, high=8.0), tuff.alloc(rows * columns)
        shape = u64s([rows, columns])
        call = lambda: tuff.call("softmax", tuff.context, F32, dx, dy, shape, 2, 1)
        ours, theirs = self.time_both(call, lambda: self.torch.softmax(x, 1))
        error = frobenius(self.result(dy, (rows, columns))[:1024], self.torch.softmax(x[:1024].double(), 1))
        self.report.row(f"softmax f32 {rows} x {columns}", 8.0 * rows * columns, "B/s", ours, theirs, error, 1e-5)
        tuff.free(dx, dy)

    def attention(self, batch: int, heads: int, sequence: int, head_dim: int) -> None:
        tuff, shape = self.tuff, (batch, heads, sequence, head_dim)
        (q, dq), (k, dk), (v, dv) = self.random(*shape), self.random(*shape), self.random(*shape)
        do = tuff.alloc(math.prod(shape))
        scale = 1 / math.sqrt(head_dim)
        call = lambda: tuff.call("attention", tuff.context, F32, dq, dk, dv, do, batch, heads, sequence, sequence,
                                 head_dim, scale, CAUSAL_NONE)
        sdpa = self.torch.nn.functional.scaled_dot_product_attention
        ours, theirs = self.time_both(call, lambda: sdpa(q, k, v))
        # Compares the first and the last head with a plain f64 computation.
        got, error = self.result(do, shape), 0.0
        for at in ((0, 0), (batch - 1, heads - 1)):
            weights = self.torch.softmax(scale * (q[at].double() @ k[at].double().T), -1)
            error = max(error, frobenius(got[at], weights @ v[at].double()))
        flops = 4.0 * math.prod(shape) * sequence
        self.report.row(f"attention f32 {' x '.join(map(str, shape))}", flops, "FLOP/s", ours, theirs, error, 1e-5)
        tuff.free(dq, dk, dv, do)

    def conv2d(self, batch: int, channels: int, extent: int) -> None:
        tuff, shape = self.tuff, (batch, channels, extent, extent)
        (x, dx), (w, dw) = self.random(*shape), self.random(channels, channels, 3, 3)
        dy = tuff.alloc(math.prod(shape))
        image, filters, ones = u64s(shape), u64s((channels, channels, 3, 3)), u64s((1, 1))
        call = lambda: tuff.call("conv2d", tuff.context, F32, dx, image, dw, filters, dy, image, ones, ones)
        conv = self.torch.nn.functional.conv2d
        ours, theirs = self.time_both(call, lambda: conv(x, w, padding=1))
        error = frobenius(self.result(dy, shape)[:1], conv(x[:1].double(), w.double(), padding=1))
        flops = 2.0 * math.prod(shape) * channels * 9
        self.report.row(f"conv2d f32 {' x '.join(map(str, shape))} 3x3", flops, "FLOP/s", ours, theirs, error,
                        2**-24 * math.sqrt(9 * channels))
        tuff.free(dx, dw, dy)

    def small_calls(self, n: int, count: int) -> None:
        tuff, torch = self.tuff, self.torch
        note = "" if tuff.loops else ", Python's loop"
        for name, buffers in (("chained", 1), ("independent", 256)):
            xs = [self.random(n) for _ in range(buffers)]
            ours = seconds(lambda: tuff.relu_many([d for _, d in xs], n, count), tuff.synchronize, self.budget) / count

            def theirs() -> None:
                for i in range(count):
                    torch.relu_(xs[i % buffers][0])

            other = seconds(theirs, self.wait, self.budget) / count
            got = torch.stack([self.result(d, (n,)) for _, d in xs])
            error = frobenius(got, torch.stack([torch.relu(x) for x, _ in xs]))
            self.report.row(f"small call, {name} (relu {n}){note}", 1, "us", ours, other, error, 0.0)
            tuff.free(*[d for _, d in xs])
        x, d = self.random(n)
        ours = seconds(lambda: tuff.relu_waiting(d, n, count), tuff.synchronize, self.budget) / count

        def theirs_waiting() -> None:
            for _ in range(count):
                torch.relu_(x)
                self.wait()

        other = seconds(theirs_waiting, self.wait, self.budget) / count
        error = frobenius(self.result(d, (n,)), torch.relu(x))
        self.report.row(f"small call and its wait (relu {n}){note}", 1, "us", ours, other, error, 0.0)
        tuff.free(d)

    def transfers(self, n: int) -> None:
        tuff, torch = self.tuff, self.torch
        host = np.random.default_rng(1).random(n, np.float32)
        back = np.zeros_like(host)
        buffer, there = tuff.alloc(n), torch.empty(n, device=self.gpu)
        host_tensor, back_tensor = torch.from_numpy(host), torch.zeros(n)
        ours, theirs = self.time_both(lambda: tuff.upload(host, buffer), lambda: there.copy_(host_tensor))
        self.report.row(f"upload {4 * n >> 20} MiB", 4.0 * n, "B/s", ours, theirs)
        fetch = lambda: tuff.call("copy_dtoh", tuff.context, back.ctypes.data, buffer, 0, back.nbytes)
        ours, theirs = self.time_both(fetch, lambda: back_tensor.copy_(there))
        self.report.row(f"download {4 * n >> 20} MiB", 4.0 * n, "B/s", ours, theirs, float(np.abs(back - host).max()))
        tuff.free(buffer)

    def run(self, only: str) -> None:
        torch, s = self.torch, self.shift
        jobs: list[tuple[str, Callable[[], None]]] = [
            *[("gemm", lambda size=size: self.gemm(size >> s)) for size in (1024, 2048, 4096, 8192)],
            ("relu", lambda: self.unary("relu", RELU, torch.relu, 1 << 28 >> 2 * s, 0.0)),
            ("exp", lambda: self.unary("exp", EXP, torch.exp, 1 << 28 >> 2 * s, 5e-7)),
            ("sum", lambda: self.sum(1 << 28 >> 2 * s)),
            ("softmax", lambda: self.softmax(65536 >> 2 * s, 4096)),
            ("attention", lambda: self.attention(4, 32 >> s, 4096 >> s, 128)),
            ("conv2d", lambda: self.conv2d(32 >> s, 256 >> s, 56)),
            ("small", lambda: self.small_calls(1024, 2000)),
            ("transfer", lambda: self.transfers((1 << 28) >> 2 * s)),
        ]
        for name, job in jobs:
            if only in name:
                job()
                if self.gpu == "cuda":
                    torch.cuda.empty_cache()


def power(n: int) -> str:
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 else str(n)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="path of libtuff.so")
    parser.add_argument("--device", help="index or part of the name of Tuff's device (default: the best)")
    parser.add_argument("--only", default="", help="rows whose name has this in it: gemm, relu, small, transfer…")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each measurement (default: 0.5)")
    parser.add_argument("--shrink", type=int, default=0, help="halve each extent so many times, for a small device")
    parser.add_argument("--json", help="also write the rows to this file")
    options = parser.parse_args()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    tuff = Tuff(options.library, options.device)
    info = tuff.info()
    peer = torch.cuda.get_device_name() if torch.cuda.is_available() else "its CPU path"
    print(f"Tuff on {info.name.decode()} ({info.driver.decode()}); PyTorch {torch.__version__} on {peer}, f32, no TF32")
    bench = Bench(torch, tuff, options.seconds, options.shrink)
    begin = time.time()
    with torch.no_grad():
        bench.run(options.only)
    print(f"\n{time.time() - begin:.0f} s; ratio: how many times faster Tuff is; error: relative, Frobenius norm")
    if options.json:
        rows = {"device": info.name.decode(), "driver": info.driver.decode(), "torch": torch.__version__,
                "rows": bench.report.rows}
        Path(options.json).write_text(json.dumps(rows, indent=2) + "\n")
    return 1 if bench.report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
