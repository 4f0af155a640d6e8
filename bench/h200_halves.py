#!/usr/bin/env python3
"""Unary functions of f16 and bf16 on a GPU, beside PyTorch in the same process.

    python3 bench/h200_halves.py build/release/libtuff.so [another libtuff.so] [--only gelu tanh …]

GB/s over 2^27 normal numbers, the median of three times of twelve calls, and in parentheses the ratio to PyTorch's rate.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import statistics
import time
from pathlib import Path
from typing import Any, Callable

import torch

N = 1 << 27
TABLE = Path(__file__).resolve().parent.parent / "kernels/elementwise/unary.def"
F = torch.nn.functional
PEERS: dict[str, Callable[[Any], Any]] = {
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "leaky_relu": F.leaky_relu,
    "elu": F.elu, "hardswish": F.hardswish, "softplus": F.softplus, "selu": F.selu, "hardsigmoid": F.hardsigmoid,
    "mish": F.mish, "log_sigmoid": F.logsigmoid,
}  # fmt: skip


def seconds(call: Callable[[], object], wait: Callable[[], object]) -> float:
    call()
    wait()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(12):
            call()
        wait()
        times.append((time.perf_counter() - begin) / 12)
    return statistics.median(times)


class Library:
    """A context, which has an input and an output."""

    def __init__(self, path: Path) -> None:
        self.calls = ctypes.CDLL(str(path.resolve()))
        self.context, self.input, self.output = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64()
        self.check(self.calls.tuff_context_create(None, ctypes.byref(self.context)))
        for buffer in (self.input, self.output):
            self.check(self.calls.tuff_alloc(self.context, ctypes.c_uint64(2 * N), ctypes.byref(buffer)))

    @staticmethod
    def check(status: int) -> None:
        if status != 0:
            raise RuntimeError(f"status {status}")

    def fill(self, numbers: Any) -> None:
        data = ctypes.c_void_p(numbers.ctypes.data)
        self.check(self.calls.tuff_copy_htod(self.context, self.input, ctypes.c_uint64(0), data, ctypes.c_uint64(2 * N)))

    def unary(self, dtype: int, op: int) -> None:
        numbers = (ctypes.c_int32(dtype), ctypes.c_int32(op))
        self.check(self.calls.tuff_unary(self.context, *numbers, self.input, self.output, ctypes.c_uint64(N)))

    def wait(self) -> None:
        self.check(self.calls.tuff_synchronize(self.context))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", type=Path, nargs="+", help="libtuff.so")
    parser.add_argument("--only", nargs="+", default=[], help="names of functions")
    wanted = parser.parse_args()
    torch.set_grad_enabled(False)
    libraries = [Library(path) for path in wanted.libraries]
    rows = re.findall(r"^UNARY\((\d+), \w+, (\w+),", TABLE.read_text(encoding="utf-8"), re.M)
    numbers = torch.randn(N, device="cuda")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for name, dtype, kind in (("f16", 2, torch.float16), ("bf16", 3, torch.bfloat16)):
        x = numbers.to(kind)
        for library in libraries:
            library.fill(x.view(torch.int16).cpu().numpy())
        for op, function in rows:
            if wanted.only and function not in wanted.only:
                continue
            peer = PEERS.get(function) or getattr(torch, function, None) or getattr(torch.special, function, None)
            theirs = seconds(lambda: peer(x), torch.cuda.synchronize) if peer else None
            line = f"{name:5}{function:12}"
            for library in libraries:
                own = seconds(lambda: library.unary(dtype, int(op)), library.wait)
                line += f" {4 * N / own / 1e9:6.0f}" + (f" ({theirs / own:.2f})" if theirs else "       ")
            print(line + (f"   PyTorch {4 * N / theirs / 1e9:6.0f}" if theirs else ""), flush=True)


if __name__ == "__main__":
    main()
