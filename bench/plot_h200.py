#!/usr/bin/python3
"""Plots the rows of bench/h200_gemm.py: each GEMM's rate as a share of PyTorch's in the same run.

    python3 bench/h200_gemm.py build/release/libtuff.so --json gemm.json
    /usr/bin/python3 bench/plot_h200.py gemm.json --out docs/images/gemm_h200.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import plot  # for the shared style


def readable(rate: float, unit: str) -> str:
    return f"{rate / 1e12:.3g} T{unit}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="written by h200_gemm.py --json")
    parser.add_argument("--out", type=Path, default=Path("gemm_h200.png"))
    options = parser.parse_args()
    data = json.loads(options.results.read_text())
    rows = [row for row in data["rows"] if row["ratio"]][::-1]
    figure, axes = plot.plt.subplots(figsize=(9, 1.6 + 0.34 * len(rows)), dpi=150)
    plot.style(axes)
    memory = {"B/s": plot.OPENBLAS, "FLOP/s": plot.TUFF[0]}
    longest = 1.15  # longer bars are cut; the label has their ratio
    axes.barh(range(len(rows)), [min(row["ratio"], longest) for row in rows],
              color=[memory[row["unit"]] for row in rows], height=0.66, zorder=3)
    axes.set_yticks(range(len(rows)), [row["work"] for row in rows], fontsize=9)
    for i, row in enumerate(rows):
        peer = row["tuff_rate"] / row["ratio"]
        axes.text(1.2, i, f"{row['ratio']:.2f}" if row["ratio"] < 10 else f"{row['ratio']:.0f}", va="center", color=plot.INK, fontsize=9, fontweight="bold")
        axes.text(1.32, i, f"{readable(row['tuff_rate'], row['unit'])} of {readable(peer, row['unit'])}", va="center",
                  color=plot.INK, fontsize=8.5)
    axes.axvline(1, color=plot.INK, lw=1, zorder=4)
    axes.set_xlim(0, 1.85)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.grid(axis="x", color=plot.GRID)
    axes.set_title("Matrix multiplication compared with PyTorch (cuBLAS)", loc="left", color=plot.INK, fontsize=14,
                   fontweight="bold", pad=26)
    line = 1 + 0.1 / (0.34 * len(rows))
    axes.text(0, line, f"{data['device']}, PyTorch {data['torch'].split('+')[0]}; 1 is PyTorch's rate",
              transform=axes.transAxes, color=plot.PALE, fontsize=9.5)
    axes.text(0.7, line, "bound by arithmetic", transform=axes.transAxes, color=plot.TUFF[0], fontsize=9.5,
              fontweight="bold", ha="center")
    axes.text(0.92, line, "by memory", transform=axes.transAxes, color=plot.OPENBLAS, fontsize=9.5, fontweight="bold",
              ha="center")
    figure.tight_layout()
    figure.savefig(options.out)
    print(f"Drawn: {options.out}")


if __name__ == "__main__":
    main()
