#!/usr/bin/python3
"""Plots the results of tuff_bench, beside OpenBLAS from the same run and NumPy on the same machine.

    build/release/tuff_bench --benchmark_out=bench.json --benchmark_out_format=json
    /usr/bin/python3 bench/plot.py bench.json [more.json …] --out docs/images

Writes gemm.png (rate against size) and ratios.png (each operation's share of the limit that the machine reached in
that run), and prints the figures. With several files, such as one for each Mesa version, each becomes a curve,
labelled by its driver or by NAME=FILE.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen before)
import numpy as np  # noqa: E402

INK, PALE, GRID = "#22302f", "#8b9a98", "#dfe6e4"
TUFF = ["#c2512d", "#e39b5b", "#7a2f5d", "#b0894f"]
OPENBLAS, NUMPY = "#2f6f8f", "#7fb2a2"


class Run:
    """One file of results: medians if there were repetitions."""

    def __init__(self, argument: str) -> None:
        label, _, path = argument.rpartition("=")
        data = json.loads(Path(path).read_text())
        self.device: str = data["context"].get("device", "?")
        self.label = label or short_driver(data["context"].get("driver", self.device))
        self.rows: dict[str, dict[str, Any]] = {}
        entries = [b for b in data["benchmarks"] if not b.get("error_occurred")]
        medians = {b["run_name"] for b in entries if b.get("aggregate_name") == "median"}
        for entry in entries:
            name = entry["run_name"]
            if entry.get("aggregate_name") == "median" or (name not in medians and entry["run_type"] == "iteration"):
                self.rows[name.removesuffix("/manual_time")] = entry

    def square_gemm(self, side: str) -> dict[int, float]:
        """GFLOP/s by size, of "tuff" or "openblas"."""
        rates = {}
        for name, row in self.rows.items():
            match = re.fullmatch(rf"{side}/gemm/(\d+)x(\d+)x(\d+)/NN", name)
            if match and len(set(match.groups())) == 1:
                rates[int(match[1])] = row["FLOP/s"] / 1e9
        return dict(sorted(rates.items()))

    def limits(self) -> tuple[float, float]:
        """The run's best GEMM (FLOP/s) and its best copy beyond the caches (B/s)."""
        gemm = [r["FLOP/s"] for n, r in self.rows.items() if n.startswith("tuff/gemm/")]
        copy = [r["B/s"] for n, r in self.rows.items() if n.startswith("tuff/copy/") and beyond_caches(r)]
        return max(gemm, default=0.0), max(copy, default=0.0)


def beyond_caches(row: dict[str, Any]) -> bool:
    """True if one call moves at least 32 MiB."""
    return row["B/s"] * row["real_time"] * 1e-6 >= 0.99 * (1 << 25)


def short_driver(driver: str) -> str:
    mesa = re.search(r"Mesa \d+\.\d+(\.\d+)?", driver)
    return mesa[0] if mesa else driver[:32]


def numpy_gemm(sizes: list[int]) -> dict[int, float]:
    """GFLOP/s of a @ b by size: the median of runs of at least 20 ms, as tuff_bench measures."""
    rates = {}
    for size in sizes:
        a, b = (np.random.default_rng(s).random((size, size), np.float32) for s in (1, 2))

        def run(count: int) -> float:
            begin = time.perf_counter()
            for _ in range(count):
                a @ b
            return (time.perf_counter() - begin) / count

        run(1)
        count = int(0.02 / run(1)) + 1
        rates[size] = 2 * size**3 / float(np.median([run(count) for _ in range(15)])) / 1e9
    return rates


def style(axes: Any) -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(PALE)
    axes.tick_params(colors=INK, length=0)
    axes.set_axisbelow(True)


def end_labels(axes: Any, curves: list[tuple[str, float, float, str]], top: float) -> None:
    """Labels the curves at their ends instead of in a legend, moved apart where they would touch."""
    at = -float("inf")
    for name, x, y, color in sorted(curves, key=lambda curve: curve[2]):
        at = max(y, at + 0.055 * top)
        axes.annotate(name, (x, at), xytext=(10, 0), textcoords="offset points", va="center", color=color,
                      fontweight="bold", fontsize=10.5, annotation_clip=False)


def draw_gemm(runs: list[Run], numpy_rates: dict[int, float], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(9, 5.2), dpi=150)
    style(axes)
    curves = [(f"Tuff, {run.label}", run.square_gemm("tuff"), TUFF[i % len(TUFF)]) for i, run in enumerate(runs)]
    # The peer did the same work in every run, so the best run counts.
    openblas: dict[int, float] = {}
    for run in runs:
        for size, rate in run.square_gemm("openblas").items():
            openblas[size] = max(rate, openblas.get(size, 0))
    curves += [("OpenBLAS", openblas, OPENBLAS), ("NumPy", numpy_rates, NUMPY)]
    ends, top = [], max((max(rates.values()) for _, rates, _ in curves if rates), default=1)
    for name, rates, color in curves:
        if not rates:
            continue
        sizes = list(rates)
        axes.plot(sizes, list(rates.values()), color=color, lw=2.4, marker="o", ms=5.5, mec="white", mew=1.2, zorder=3)
        ends.append((name, sizes[-1], rates[sizes[-1]], color))
    end_labels(axes, ends, top)
    sizes = sorted({size for _, rates, _ in curves for size in rates})
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(s) for s in sizes], fontsize=9)
    axes.minorticks_off()
    axes.set_ylim(0, top * 1.08)
    axes.grid(axis="y", color=GRID)
    axes.set_xlabel("rows, columns and depth of the matrices", color=INK)
    axes.set_title("Matrix multiplication, f32, GFLOP/s", loc="left", color=INK, fontsize=14, fontweight="bold", pad=24)
    axes.text(0, 1.03, f"{runs[0].device}; OpenBLAS and NumPy on the same CPU", transform=axes.transAxes,
              color=PALE, fontsize=9.5)
    figure.subplots_adjust(left=0.07, right=0.78, top=0.86, bottom=0.12)
    figure.savefig(path)
    plt.close(figure)


def shares(run: Run) -> list[tuple[str, float, str]]:
    """(name, share of the limit, kind of limit) of each operation's best shape beyond the caches."""
    flops, bandwidth = run.limits()
    best: dict[str, tuple[float, str]] = {}
    for name, row in run.rows.items():
        side, operation = name.split("/")[:2]
        if side != "tuff" or operation in ("gemm", "copy", "upload", "download"):
            continue
        if "FLOP/s" in row and flops:
            entry = (row["FLOP/s"] / flops, "gemm")
        elif "B/s" in row and bandwidth and beyond_caches(row):
            entry = (row["B/s"] / bandwidth, "copy")
        else:
            continue
        best[operation] = max(best.get(operation, entry), entry)
    return sorted(((name, *entry) for name, entry in best.items()), key=lambda row: (row[2], row[1]))


def draw_ratios(run: Run, path: Path) -> None:
    rows = shares(run)
    figure, axes = plt.subplots(figsize=(9, 1.6 + 0.36 * len(rows)), dpi=150)
    style(axes)
    colors = {"gemm": TUFF[0], "copy": OPENBLAS}
    axes.barh([r[0] for r in rows], [100 * r[1] for r in rows], color=[colors[r[2]] for r in rows], height=0.66, zorder=3)
    for i, (_, share, _) in enumerate(rows):
        axes.text(100 * share + 1, i, f"{100 * share:.0f} %", va="center", color=INK, fontsize=9)
    axes.axvline(100, color=INK, lw=1, zorder=4)
    axes.set_xlim(0, max([112, *[100 * r[1] + 12 for r in rows]]))
    axes.grid(axis="x", color=GRID)
    flops, bandwidth = run.limits()
    axes.set_title("Each operation compared with the device's own limit", loc="left", color=INK, fontsize=14,
                   fontweight="bold", pad=24)
    top = 1 + 0.12 / (0.36 * max(len(rows), 1))
    axes.text(0, top, f"{run.device}, {run.label}: ", transform=axes.transAxes, color=PALE, fontsize=9.5)
    axes.text(1, top, f"copy {bandwidth / 1e9:.1f} GB/s", transform=axes.transAxes, color=colors["copy"],
              fontsize=9.5, ha="right", fontweight="bold")
    axes.text(0.8, top, f"best gemm {flops / 1e9:.1f} GFLOP/s", transform=axes.transAxes, color=colors["gemm"],
              fontsize=9.5, ha="right", fontweight="bold")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def print_figures(run: Run, numpy_rates: dict[int, float]) -> None:
    print(f"\n{run.device}, {run.label}\n")
    print(f"  {'gemm f32, GFLOP/s':<24}{'Tuff':>9}{'OpenBLAS':>10}{'NumPy':>9}{'Tuff / OpenBLAS':>17}")
    openblas = run.square_gemm("openblas")
    for size, rate in run.square_gemm("tuff").items():
        peer = openblas.get(size)
        print(f"  {f'{size} x {size} x {size}':<24}{rate:>9.1f}{peer or 0:>10.1f}{numpy_rates.get(size, 0):>9.1f}"
              f"{f'{rate / peer:.2f}' if peer else '-':>17}")
    print(f"\n  {'best of each operation':<24}{'share of':>9}")
    for name, share, kind in reversed(shares(run)):
        print(f"  {name:<24}{kind:>9}{100 * share:>8.0f} %")
    for name, row in run.rows.items():
        if name.startswith(("tuff/call", "tuff/upload", "tuff/download", "memcpy")):
            rate = f"{row['B/s'] / 1e9:.1f} GB/s" if "B/s" in row else ""
            print(f"  {name.removeprefix('tuff/'):<40}{row['real_time']:>12.2f} {row['time_unit']}  {rate}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", metavar="[NAME=]FILE", help="written by tuff_bench --benchmark_out")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the pictures (default: out)")
    options = parser.parse_args()
    runs = [Run(argument) for argument in options.results]
    # NumPy skips sizes that are too large for the peer.
    numpy_rates = numpy_gemm(sorted({size for run in runs for size in run.square_gemm("openblas")}))
    options.out.mkdir(parents=True, exist_ok=True)
    draw_gemm(runs, numpy_rates, options.out / "gemm.png")
    draw_ratios(runs[-1], options.out / "ratios.png")
    for run in runs:
        print_figures(run, numpy_rates)
    print(f"\nDrawn: {options.out / 'gemm.png'}, {options.out / 'ratios.png'}")


if __name__ == "__main__":
    main()
