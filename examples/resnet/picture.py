"""Plots where a network's time goes, layer by layer."""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "demo"))
import style  # noqa: E402  the demo's look
from style import plt  # noqa: E402

COLOURS = {"1 × 1": "#7fb0d6", "3 × 3": "#20639b", "7 × 7": "#0d2f52"}
COLOURS.update(pooling=style.SECOND, classifier=style.RIGHT)


def draw(path, rows, title):
    """Plots each layer's time above and its rate below. rows: Timed, in the network's order."""
    figure = plt.figure(figsize=(13.2, 6.6), dpi=100)
    style.heading(figure, "ResNet-50, layer by layer", title, left=0.45, top=0.3)
    places = range(len(rows))
    colours = [COLOURS[row.layer.group] for row in rows]
    total = sum(row.seconds for row in rows)

    above = figure.add_axes([0.06, 0.48, 0.925, 0.34])
    above.bar(places, [row.seconds * 1e3 for row in rows], color=colours, width=0.8)
    above.set_ylabel("ms")
    below = figure.add_axes([0.06, 0.1, 0.925, 0.34], sharex=above)
    rates = [row.flops / row.seconds / 1e9 for row in rows]
    unit, factor = ("TFLOP/s", 1e-3) if max(rates) >= 10_000 else ("GFLOP/s", 1)
    below.bar(places, [rate * factor for rate in rates], color=colours, width=0.8)
    below.set_ylabel(unit)
    above.set_xlim(-0.7, len(rows) - 0.3)
    above.tick_params(labelbottom=False, length=0, axis="x")

    # Ticks name the blocks; lines separate the stages.
    stages = [row.layer.name.split(".")[0] if "." in row.layer.name else "" for row in rows]
    labels, at = [], []
    for index, row in enumerate(rows):
        block = row.layer.name.split(" ")[0]
        if index == 0 or block != rows[index - 1].layer.name.split(" ")[0]:
            labels.append(block)
            at.append(index)
        if index and stages[index] != stages[index - 1]:
            for axes in (above, below):
                axes.axvline(index - 0.5, color="#c5ced6", linewidth=1)
    below.set_xticks(at, labels, fontsize=8.5, rotation=45, ha="right", rotation_mode="anchor")
    below.tick_params(length=0, axis="x")
    for axes in (above, below):
        axes.grid(axis="y", color="#e6ebef")
        axes.set_axisbelow(True)
    for stage in "1234":
        own = [index for index, name in enumerate(stages) if name == stage]
        share = sum(rows[index].seconds for index in own) / total
        above.text(
            (own[0] + own[-1]) / 2, 1.03, f"stage {stage}: {share:.0%} of the time", ha="center", fontsize=9.5,
            color=style.QUIET, transform=above.get_xaxis_transform(),
        )
    for index, (group, colour) in enumerate(COLOURS.items()):
        took = sum(row.seconds for row in rows if row.layer.group == group)
        right = 0.985 - 0.105 * (len(COLOURS) - 1 - index)
        text = f"■ {group}  {took / total:.0%}"
        figure.text(right, 0.925, text, color=colour, fontsize=10.5, ha="right", fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
