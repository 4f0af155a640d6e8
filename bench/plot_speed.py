#!/usr/bin/python3
"""Draws docs/images/speed_h200.png from docs/speed.csv: Tuff's speed on an H200 relative to PyTorch's, at a glance.

    /usr/bin/python3 bench/plot_speed.py            # checks the figures and draws them
    /usr/bin/python3 bench/plot_speed.py --check    # only checks them; CTest runs this

A row of speed.csv names a table's line in a page of docs/ that has the same two figures and, on the page, the command that
measured them. If a page gets new figures, the check fails until speed.csv has them too and the picture is drawn again: the
picture keeps the text that it was drawn from.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
TABLE, PICTURE = DOCS / "speed.csv", DOCS / "images/speed_h200.png"
TIMES = ("µs", "ms")
RATES = ("GB/s", "TB/s", "TFLOP/s")
COLUMNS = ["group", "work", "unit", "tuff", "peer", "page", "line"]
KEY = "Source"  # of the PNG's text: the digest of speed.csv


@dataclass
class Row:
    group: str
    work: str
    unit: str
    tuff: str
    peer: str
    page: str
    line: str

    def ratio(self) -> float:
        """Above 1 where Tuff is faster."""
        ours = float(self.tuff.replace(",", ""))
        if self.unit == "ratio":
            return ours
        peer = float(self.peer.replace(",", ""))
        return peer / ours if self.unit in TIMES else ours / peer

    def problem(self) -> str:
        if self.unit not in (*TIMES, *RATES, "ratio"):
            return f"the unit {self.unit!r} is none of those known"
        if (self.unit == "ratio") != (self.peer == ""):
            return "a ratio has no figure of the peer, and all else has one"
        page = DOCS / self.page
        if not page.is_file():
            return f"there is no page {self.page}"
        lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith(self.line)]
        if len(lines) != 1:
            return f"{len(lines)} lines of {self.page} begin with {self.line!r}"
        figures = re.findall(r"\d[\d,]*(?:\.\d+)?", lines[0])
        figures = [figure.rstrip(",") for figure in figures]
        for figure in filter(None, (self.tuff, self.peer)):
            if figure not in figures:
                return f"{figure} is not in the line of {self.page} that begins with {self.line!r}"
        return ""


def digest() -> str:
    return hashlib.sha256(TABLE.read_bytes()).hexdigest()


def text_of(picture: Path) -> str:
    """The text under KEY in a PNG file; empty if it has none."""
    data = picture.read_bytes() if picture.is_file() else b""
    at = data.find(b"tEXt" + KEY.encode() + b"\0")
    if at < 4:
        return ""
    size = int.from_bytes(data[at - 4:at], "big")
    return data[at + 4 + len(KEY) + 1:at + 4 + size].decode("latin-1")


def read() -> list[Row]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != COLUMNS:
            sys.exit(f"{TABLE.name} begins with {reader.fieldnames}, not with {COLUMNS}")
        return [Row(**row) for row in reader]


def problems_of(rows: list[Row]) -> list[str]:
    return [f"{row.group}, {row.work}: {problem}" for row in rows if (problem := row.problem())]


def draw(rows: list[Row]) -> None:
    import plot  # needs matplotlib

    colors = dict(zip(dict.fromkeys(row.group for row in rows),
                      [*plot.TUFF[:3], plot.OPENBLAS, plot.TUFF[3], plot.NUMPY, "#5a7d3c", plot.INK]))
    half = min((i for i in range(1, len(rows)) if rows[i].group != rows[i - 1].group),
               key=lambda i: abs(2 * i - len(rows)))
    panels = [rows[:half], rows[half:]]
    tall = max(len(panel) + len({row.group for row in panel}) for panel in panels)
    figure, both = plot.plt.subplots(1, 2, figsize=(13, 1.3 + 0.25 * tall), dpi=130)
    for axes, panel in zip(both, panels):
        plot.style(axes)
        y, group = 0.0, ""
        for row in panel:
            if row.group != group:
                group = row.group
                axes.text(-0.02, y, group, transform=axes.get_yaxis_transform(), ha="right", va="center",
                          color=colors[group], fontsize=10.5, fontweight="bold")
                y += 1
            ratio = row.ratio()
            axes.barh(y, ratio - 1, left=1, height=0.62, color=colors[group], alpha=1 if ratio >= 0.95 else 0.6, zorder=3)
            axes.text(-0.02, y, row.work, transform=axes.get_yaxis_transform(), ha="right", va="center", color=plot.INK,
                      fontsize=9)
            away = 1.04 if ratio >= 1 else 1 / 1.04
            axes.text(ratio * away, y, f"{ratio:.2f}", ha="left" if ratio >= 1 else "right", va="center",
                      color=plot.INK, fontsize=8.5)
            y += 1
        axes.set_xscale("log")
        axes.set_xlim(0.2, 6)
        axes.set_xticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "as fast", "2 ×", "4 ×"], color=plot.INK)
        axes.minorticks_off()
        axes.set_ylim(tall - 0.3, -0.7)
        axes.set_yticks([])
        axes.grid(axis="x", color=plot.GRID)
        axes.axvline(1, color=plot.INK, lw=1, zorder=4)
    figure.suptitle("Speed on an NVIDIA H200, relative to PyTorch 2.11 (cuBLAS, cuDNN, FlashAttention, cuFFT, cuSPARSE, cuSOLVER)",
                    x=0.012, ha="left", color=plot.INK, fontsize=12.5, fontweight="bold")
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={KEY: digest(), "Software": ""})
    print(f"Drawn: {PICTURE}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="draw nothing; also check that the picture is of these figures")
    options = parser.parse_args()
    rows = read()
    problems = problems_of(rows)
    if options.check and text_of(PICTURE) != digest():
        problems.append(f"{PICTURE.name} was not drawn from this {TABLE.name}: run bench/plot_speed.py")
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(1)
    if not options.check:
        draw(rows)


if __name__ == "__main__":
    main()
