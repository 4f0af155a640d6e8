"""The Mandelbrot set: how soon z -> z*z + c leaves a disc, for each point c of a rectangle.

The formula has every step written out, so that one kernel computes a pixel from its coordinates: a row and a column,
which broadcast. Nothing in between is stored. NumPy makes a pass over memory for each operation of each step.
"""

import time

import numpy as np
import tuff

STEPS = 80
BAILOUT = 64.0  # |z|^2; large, so that the logarithm at the end is smooth


def formula():
    """n + 1 - log2(log2|z|), where the n-th z is the first beyond the disc; 0 for points that stay inside."""
    lines = ["a0 = f32(x)", "b0 = f32(y)", "n0 = a0 * 0"]
    for step in range(STEPS):
        a, b, n, s = f"a{step}", f"b{step}", f"n{step}", step + 1
        lines.append(f"r{s} = {a} * {a}; i{s} = {b} * {b}; k{s} = r{s} + i{s} < {BAILOUT}")
        lines.append(f"a{s} = k{s} ? r{s} - i{s} + x : {a}; b{s} = k{s} ? 2 * {a} * {b} + y : {b}; n{s} = {n} + f32(k{s})")
    lines.append(f"m = a{STEPS} * a{STEPS} + b{STEPS} * b{STEPS}")
    lines.append(f"m < {BAILOUT} ? 0 : n{STEPS} + 1 - log2(log2(m) / 2)")
    return "; ".join(lines)


def palette(n, phase):
    """The colours of a count: a cosine for each of red, green and blue, shifted against each other. Inside: black."""
    return "n == 0 ? 0 : 127.5 - 127.5 * cos(6.2831853 * (0.35 * log2(n) + phase))"


PHASES = np.array([0.05, 0.16, 0.28], np.float32)


def coordinates(width, height):
    x = np.linspace(-2.15, 0.85, width, dtype=np.float32)
    y = np.linspace(-1.125, 1.125, height, dtype=np.float32)
    return x, y[:, None]


def with_tuff(ctx, x, y):
    counts = tuff.expr(formula(), dtype=np.float32, x=ctx.array(x), y=ctx.array(y))
    colours = tuff.expr(palette("n", "phase"), dtype=np.uint8, n=counts.reshape(*counts.shape, 1), phase=ctx.array(PHASES))
    return counts.numpy(), colours.numpy()


def with_numpy(x, y):
    a, b = np.broadcast_arrays(x, y)
    a, b = a.copy(), b.copy()
    n = np.zeros_like(a)
    for _ in range(STEPS):
        r, i = a * a, b * b
        inside = r + i < BAILOUT
        a, b = np.where(inside, r - i + x, a), np.where(inside, 2 * a * b + y, b)
        n += inside
    m = a * a + b * b
    with np.errstate(all="ignore"):
        n = np.where(m < BAILOUT, 0, n + 1 - np.log2(np.log2(m) / 2))
        shade = 127.5 - 127.5 * np.cos(6.2831853 * (0.35 * np.log2(n[..., None]) + PHASES))
    return n, np.where(n[..., None] == 0, 0, shade).astype(np.uint8)


def run(ctx, path, quick):
    from style import plt

    x, y = coordinates(*((96, 72) if quick else (1200, 900)))
    with_tuff(ctx, *coordinates(16, 12))  # compiles
    begin = time.monotonic()
    counts, colours = with_tuff(ctx, x, y)
    ours = time.monotonic() - begin
    begin = time.monotonic()
    expected, _ = with_numpy(x, y)
    theirs = time.monotonic() - begin
    # Near the boundary one rounding more or less decides: a device may contract r - i + x.
    same = (np.abs(counts - expected) < 0.01).mean()
    if same < 0.97:
        raise SystemExit(f"error: {same:.2%} of the pixels agree with NumPy")
    plt.imsave(path, colours)
    return ours, theirs
