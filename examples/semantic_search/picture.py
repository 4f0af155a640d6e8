"""Plots the similarity of sentences."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "demo"))
import style  # noqa: E402  the demo's look
from matplotlib.colors import LinearSegmentedColormap  # noqa: E402
from style import plt  # noqa: E402

COLOURS = LinearSegmentedColormap.from_list("alike", ["#ffffff", "#d8e6f1", "#7fb0d6", "#20639b", "#0d2f52"])
GROUP = 3


def draw(path, sentences, scores):
    """Draws one row and one column for each sentence, in groups of GROUP."""
    count = len(sentences)
    figure = plt.figure(figsize=(12.4, 7.4), dpi=100)
    style.heading(
        figure,
        "How alike sentences are",
        "Cosine of all-MiniLM-L6-v2's vectors, computed by Tuff: what is about one thing is near, whatever the words",
        left=0.4,
        top=0.3,
    )
    axes = figure.add_axes([0.425, 0.05, 0.545, 0.77])
    shown = np.clip(scores, 0, 1)
    axes.imshow(shown, cmap=COLOURS, vmin=0, vmax=1, aspect="auto")
    for row in range(count):
        for column in range(count):
            colour = "white" if shown[row, column] > 0.45 else style.INK
            number = f"{scores[row, column]:.2f}".replace("-", "−")
            axes.text(column, row, number, ha="center", va="center", fontsize=9.5, color=colour)
    axes.set_yticks(range(count), sentences, fontsize=10.5)
    axes.set_xticks(range(count), [str(index + 1) for index in range(count)], fontsize=10)
    for index, label in enumerate(axes.get_yticklabels()):
        label.set_color(style.INK)
        axes.text(-0.62, index, f"{index + 1}", ha="right", va="center", fontsize=10, color=style.QUIET)
    axes.tick_params(length=0, pad=22, axis="y")
    axes.tick_params(length=0, pad=4, axis="x", top=True, labeltop=True, bottom=False, labelbottom=False)
    for edge in range(GROUP, count, GROUP):
        axes.axhline(edge - 0.5, color="white", linewidth=4)
        axes.axvline(edge - 0.5, color="white", linewidth=4)
    for spine in axes.spines.values():
        spine.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
