"""What gradients_beside.py and norms_beside.py have in common: ways to compute the same, on a Tuff device by one call ("tuff"), on
it by other operations ("composed"), and by PyTorch on the CPU where it is installed ("torch"). Each round takes every way once."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

WIDTH = 42  # of a row's name


def command_line(doc: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of PyTorch")
    return parser


def pytorch(threads: int):
    """The module, or None. Prints the heading of the table."""
    try:
        import torch
    except ImportError:
        torch = None
    else:
        torch.set_num_threads(threads)
    print(f"load {os.getloadavg()[0]:.1f}, PyTorch {torch.__version__ if torch else 'not installed'}; ms, and times as long as Tuff")
    print(f"{'':{WIDTH}}{'Tuff':>9}{'composed':>18}{'PyTorch':>18}")
    return torch


def show(name: str, ways: dict, rounds: int, wait) -> None:
    """Prints the fastest call of each way."""
    best = dict.fromkeys(ways, float("inf"))
    for way in ways.values():  # kernels are compiled
        way()
    wait()
    for _ in range(rounds):
        for key, way in ways.items():
            begin = time.perf_counter()
            way()
            wait()
            best[key] = min(best[key], time.perf_counter() - begin)
    others = "".join(f"{best[key] * 1e3:10.2f} {best[key] / best['tuff']:6.2f}x" if key in best else f"{'-':>18}" for key in ("composed", "torch"))
    print(f"{name:{WIDTH}}{best['tuff'] * 1e3:9.2f}{others}", flush=True)
