"""Applies a bank of filters to a photograph with a single conv2d.

The red, green and blue planes are a batch of three images with one channel. The bank has K filters of 13 x 13.
"""

from pathlib import Path

import numpy as np
import skimage.data
import tuff

import style
from style import plt

SIZE = 13  # taps in each direction
# In order of preference; the packages of different distributions contain different ones.
PHOTOGRAPHS = ["chelsea.png", "coffee.png", "astronaut.png", "rocket.jpg", "camera.png"]


def photograph():
    """Returns the name and the (H, W, 3) image, in 0..1, of a photograph of python3-skimage."""
    folder = Path(skimage.data.__file__).parent
    for name in PHOTOGRAPHS:
        if (folder / name).is_file():
            image = plt.imread(folder / name)
            image = image / 255 if image.dtype == np.uint8 else image
            return name, np.dstack([image] * 3) if image.ndim == 2 else image[..., :3]
    raise SystemExit(f"none of {', '.join(PHOTOGRAPHS)} is in {folder}: install python3-skimage")


def centred(taps):
    """Places a small filter in the middle of SIZE x SIZE zeros."""
    taps = np.asarray(taps, np.float32)
    bank = np.zeros((SIZE, SIZE), np.float32)
    top, left = (SIZE - taps.shape[0]) // 2, (SIZE - taps.shape[1]) // 2
    bank[top : top + taps.shape[0], left : left + taps.shape[1]] = taps
    return bank


def gaussian(sigma):
    distance = np.arange(SIZE) - SIZE // 2
    taps = np.exp(-(distance[:, None] ** 2 + distance**2) / (2 * sigma**2))
    return taps / taps.sum()


def bank():
    """Returns (title, filter, display mode): "picture" is shown unchanged, "signed" around grey."""
    identity = centred([[1]])
    laplacian_of_gaussian = np.zeros((SIZE, SIZE))
    distance = np.arange(SIZE) - SIZE // 2
    squared = (distance[:, None] ** 2 + distance**2) / (2 * 1.4**2)
    laplacian_of_gaussian = (1 - squared) * np.exp(-squared)
    laplacian_of_gaussian -= laplacian_of_gaussian.mean()
    laplacian_of_gaussian /= np.abs(laplacian_of_gaussian).sum() / 2
    return [
        ("Box blur", np.full((SIZE, SIZE), 1 / SIZE**2), "picture"),
        ("Gaussian blur", gaussian(2.5), "picture"),
        ("Motion blur", np.eye(SIZE)[::-1] / SIZE, "picture"),
        ("Sharpen", identity + 2.5 * (identity - gaussian(1.5)), "picture"),
        ("Emboss", centred([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]), "picture"),
        ("Sobel, vertical edges", centred([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]), "signed"),
        ("Sobel, horizontal edges", centred([[-1, -2, -1], [0, 0, 0], [1, 2, 1]]), "signed"),
        ("Laplacian of Gaussian", laplacian_of_gaussian, "signed"),
    ]


def run(ctx, path):
    """Filters the photograph and draws the picture at path."""
    name, image = photograph()
    filters = bank()
    height, width, _ = image.shape
    edge = SIZE // 2
    # The border is padded with the outermost pixels, so that blurring does not darken it.
    planes = np.pad(image, [(edge, edge), (edge, edge), (0, 0)], mode="edge").transpose(2, 0, 1)

    x = ctx.array(planes[:, None])  # (3, 1, H + 12, W + 12)
    w = ctx.array(np.stack([taps for _, taps, _ in filters])[:, None])  # (K, 1, 13, 13)
    filtered = tuff.conv2d(x, w)  # (3, K, H, W)

    # Strength of an edge in any direction: the mean over the colours of sqrt(gx^2 + gy^2).
    grey = filtered.mean(axis=0)  # (K, H, W)
    titles = [title for title, _, _ in filters]
    gx, gy = (grey[titles.index(f"Sobel, {which} edges")] for which in ("vertical", "horizontal"))
    strength = (gx * gx + gy * gy).sqrt()

    products = 3 * len(filters) * height * width * SIZE**2
    size = f"{width} x {height} in colour"
    print(f"  {name}, {size}, {len(filters)} filters: {products / 1e9:.1f} billion multiplications")
    draw(path, name, image, filters, filtered.numpy(), grey.numpy(), strength.numpy())


def draw(path, name, image, filters, filtered, grey, strength):
    """Draws a contact sheet: the photograph, every filter with its taps in the corner, and the edge strength."""
    panels = [("The photograph", image, None, {})]
    for index, (title, taps, kind) in enumerate(filters):
        if kind == "picture":
            panels.append((title, np.clip(filtered[:, index].transpose(1, 2, 0), 0, 1), taps, {}))
        else:
            reach = np.percentile(np.abs(grey[index]), 99.5)
            panels.append((title, grey[index], taps, {"cmap": "gray", "vmin": -reach, "vmax": reach}))
    reach = np.percentile(strength, 99.5)
    panels.append(("Edge strength", strength, None, {"cmap": "magma", "vmin": 0, "vmax": reach}))

    columns = 4 if len(panels) % 4 == 0 else 5
    rows = -(-len(panels) // columns)
    height, width, _ = image.shape
    cell, gap, label = 3.9, 0.12, 0.3  # inches: a panel, the gap after it, the title above it
    cell_height = cell * height / width + label + gap
    head = 1.05
    size = (columns * cell + 0.48, rows * cell_height + head + 0.1)
    figure = plt.figure(figsize=size, dpi=100)
    style.heading(
        figure,
        "One photograph, eight filters",
        f"{name} from scikit-image; each filter's 13 x 13 taps are in its corner (blue below zero, red above)",
        left=0.3,
        top=0.28,
    )
    for index, (title, picture, taps, options) in enumerate(panels):
        column, row = index % columns, index // columns
        left, top = 0.3 + column * cell, head + row * cell_height
        axes = figure.add_axes(
            [
                left / size[0],
                1 - (top + cell_height - gap) / size[1],
                (cell - gap) / size[0],
                (cell_height - label - gap) / size[1],
            ]
        )
        axes.imshow(picture, interpolation="antialiased", aspect="auto", **options)
        axes.set_axis_off()
        axes.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=5)
        if taps is not None:
            inset = axes.inset_axes([0.775, 0.03, 0.21, 0.21 * width / height])
            reach = np.sqrt(np.abs(taps).max())  # square roots make small taps visible
            roots = np.sign(taps) * np.sqrt(np.abs(taps))
            inset.imshow(roots, cmap="RdBu_r", vmin=-reach, vmax=reach, interpolation="nearest")
            inset.set_xticks([])
            inset.set_yticks([])
            for spine in inset.spines.values():
                spine.set(visible=True, color="white", linewidth=1.5)
    figure.savefig(path)
    plt.close(figure)
