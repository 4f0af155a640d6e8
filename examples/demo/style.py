"""The style of the pictures."""

import matplotlib

matplotlib.use("Agg")  # draws to files and needs no display

import matplotlib.pyplot as plt  # noqa: E402

INK = "#22303c"
QUIET = "#6b7a86"
RIGHT = "#2a7f62"
WRONG = "#c8402f"
LINE = "#20639b"
SECOND = "#e08e29"

plt.rcParams.update(
    {
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "text.color": INK,
        "axes.edgecolor": "#c5ced6",
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": QUIET,
        "ytick.color": QUIET,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
    }
)


def heading(figure, title, subtitle, left, top, gap=0.28):
    """Draws a title and a line below it. left and top are in inches from the figure's upper left corner."""
    width, height = figure.get_size_inches()
    figure.text(left / width, 1 - top / height, title, fontsize=18, fontweight="bold", va="top")
    figure.text(left / width, 1 - (top + 0.1 + gap) / height, subtitle, fontsize=11, color=QUIET, va="top")
