#!/usr/bin/env python3
"""Uploads and downloads from ordinary memory beside PyTorch on one GPU, in one process.

    python3 bench/h200_transfer.py build/release/libtuff.so [--only upload] [--json rows.json]

Each size is compared with PyTorch from ordinary (pageable) memory and from pinned memory, whose rate is the link's,
and with one thread's memcpy. One call and its wait are timed, the best of many; the last column is Tuff's share of the
pinned rate. The transferred bytes are checked. See bench/h200.py, whose parts this uses.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np

import h200

SIZES = [1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30]


def best(call: Callable[[], Any], wait: Callable[[], Any], budget: float) -> float:
    """Seconds of one call and its wait: the best of as many as fit the budget, at least five."""
    call()
    wait()
    least, end, count = float("inf"), time.perf_counter() + budget, 0
    while count < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        wait()
        least = min(least, time.perf_counter() - begin)
        count += 1
    return least


class Bench:
    def __init__(self, torch: Any, tuff: h200.Tuff, budget: float) -> None:
        self.torch, self.tuff, self.budget = torch, tuff, budget
        self.rows: list[dict[str, Any]] = []
        self.failed = False
        print(f"{'GB/s':<20}{'Tuff':>10}{'pageable':>10}{'pinned':>10}{'memcpy':>10}{'x pageable':>12}{'x pinned':>10}")
        print("-" * 82)

    def size(self, n: int, only: str) -> None:
        tuff, torch = self.tuff, self.torch
        host = np.random.default_rng(1).integers(0, 256, n, np.uint8)
        back = np.ones_like(host)  # its pages are touched, like host's
        copied = ctypes.c_void_p(back.ctypes.data)
        memcpy = best(lambda: ctypes.memmove(copied, host.ctypes.data, n), lambda: None, self.budget / 2)
        back.fill(1)
        buffer, there = tuff.alloc(n // 4), torch.empty(n, dtype=torch.uint8, device="cuda")
        pageable, pinned = torch.from_numpy(host), torch.from_numpy(host).pin_memory()
        out, pinned_out = torch.ones(n, dtype=torch.uint8), torch.ones(n, dtype=torch.uint8).pin_memory()
        wait = torch.cuda.synchronize
        self.row("upload", n, only, memcpy,
                 lambda: tuff.call("copy_htod", tuff.context, buffer, 0, host.ctypes.data, n),
                 lambda: there.copy_(pageable), lambda: there.copy_(pinned, non_blocking=True), wait)
        # Filled again, so that a download can be checked even if the upload was skipped.
        tuff.call("copy_htod", tuff.context, buffer, 0, host.ctypes.data, n)
        there.copy_(pinned)
        self.row("download", n, only, memcpy,
                 lambda: tuff.call("copy_dtoh", tuff.context, back.ctypes.data, buffer, 0, n),
                 lambda: out.copy_(there), lambda: pinned_out.copy_(there, non_blocking=True), wait,
                 lambda: np.array_equal(back, host))
        tuff.free(buffer)

    def row(self, what: str, n: int, only: str, memcpy: float, ours: Callable[[], Any], pageable: Callable[[], Any],
            pinned: Callable[[], Any], wait: Callable[[], Any], check: Callable[[], bool] = lambda: True) -> None:
        name = f"{what} {f'{n >> 20} MiB' if n >= 1 << 20 else f'{n >> 10} KiB'}"
        if only not in name:
            return
        seconds = {"tuff": best(ours, self.tuff.synchronize, self.budget),
                   "pageable": best(pageable, wait, self.budget), "pinned": best(pinned, wait, self.budget),
                   "memcpy": memcpy}
        good = check()
        self.failed |= not good
        rates = {side: n / each / 1e9 for side, each in seconds.items()}
        print(f"{name:<20}" + "".join(f"{rate:>10.2f}" for rate in rates.values())
              + f"{rates['tuff'] / rates['pageable']:>12.2f}{rates['tuff'] / rates['pinned']:>10.2f}"
              + ("" if good else "  WRONG"), flush=True)
        self.rows.append({"work": what, "bytes": n, "seconds": seconds, "ok": good})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="path of libtuff.so")
    parser.add_argument("--device", help="index or part of the name of Tuff's device (default: the best)")
    parser.add_argument("--only", default="", help="rows with this in them: upload, download, 'd 1024 MiB'…")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each measurement (default: 0.5)")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="bytes of the largest size (default: 1 GiB)")
    parser.add_argument("--json", help="also write the rows to this file")
    options = parser.parse_args()
    import torch

    tuff = h200.Tuff(options.library, options.device)
    info = tuff.info()
    print(f"Tuff on {info.name.decode()} ({info.driver.decode()}); PyTorch {torch.__version__} on "
          f"{torch.cuda.get_device_name()}")
    bench, begin = Bench(torch, tuff, options.seconds), time.time()
    for n in SIZES:
        if n <= options.most:
            bench.size(n, options.only)
    print(f"\n{time.time() - begin:.0f} s; x: how many times as fast Tuff is")
    if options.json:
        Path(options.json).write_text(json.dumps({"device": info.name.decode(), "driver": info.driver.decode(),
                                                  "torch": torch.__version__, "rows": bench.rows}, indent=2) + "\n")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
