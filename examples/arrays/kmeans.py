"""k-means on points in the plane: each point joins the nearest centre, then each centre moves to the mean of its points.

The same two functions run on NumPy's arrays and on Tuff's: only the comparison with each index differs, which is one
formula on the device and needs no memory for the mask in between.
"""

import time

import numpy as np
import tuff

CLUSTERS, ROUNDS = 12, 15


def points(count, rng):
    """Clouds around centres of their own, of unlike widths and sizes."""
    centres = rng.uniform(-4, 4, (CLUSTERS, 2))
    weights = rng.dirichlet(np.full(CLUSTERS, 4.0))
    of = rng.choice(CLUSTERS, count, p=weights)
    widths = rng.uniform(0.25, 0.7, CLUSTERS)
    return (centres[of] + rng.standard_normal((count, 2)) * widths[of, None]).astype(np.float32)


def spread_out(sample, rng):
    """The first centres, by k-means++: each next one is far from those before, with some luck."""
    chosen = [sample[rng.integers(len(sample))]]
    while len(chosen) < CLUSTERS:
        nearest = np.min([((sample - one) ** 2).sum(1) for one in chosen], axis=0)
        chosen.append(sample[rng.choice(len(sample), p=nearest / nearest.sum())])
    return np.array(chosen, np.float32)


def with_tuff(ctx, values, centres, rounds):
    x, c = ctx.array(values), ctx.array(centres)
    index = ctx.array(np.arange(CLUSTERS, dtype=np.uint32))
    for _ in range(rounds):
        # |x - c|^2 without |x|^2, which is the same for every centre.
        distances = tuff.expr("n - 2 * p", n=(c * c).sum(axis=1), p=x @ c.T)
        nearest = distances.argmin(axis=1)
        member = tuff.expr("label == k", label=nearest.reshape(-1, 1), k=index, dtype=np.float32)
        c = (member.T @ x) / tuff.maximum(member.sum(axis=0), 1.0).reshape(-1, 1)
    return c.numpy(), nearest.numpy()


def with_numpy(x, c, rounds):
    index = np.arange(CLUSTERS)
    for _ in range(rounds):
        distances = (c * c).sum(axis=1) - 2 * (x @ c.T)
        nearest = distances.argmin(axis=1)
        member = (nearest[:, None] == index).astype(np.float32)
        c = (member.T @ x) / np.maximum(member.sum(axis=0), 1)[:, None]
    return c, nearest


def picture(path, x, centres, nearest):
    from style import INK, plt

    figure, axes = plt.subplots(figsize=(6.4, 6.4))
    shown = slice(0, 60_000)
    axes.scatter(*x[shown].T, c=nearest[shown], s=1.2, cmap="tab20", alpha=0.5, linewidths=0, rasterized=True)
    axes.scatter(*centres.T, c="white", edgecolors=INK, s=70, linewidths=1.6)
    axes.set_aspect("equal")
    axes.set_title(f"{len(x):,} points, {CLUSTERS} clusters; 60,000 points are drawn" if len(x) > 60_000 else "")
    figure.savefig(path, dpi=100, bbox_inches="tight")
    plt.close(figure)


def run(ctx, path, quick):
    rng = np.random.default_rng(3)
    x = points(5_000 if quick else 1_000_000, rng)
    first = spread_out(x[:2000], rng)
    with_tuff(ctx, x, first, 1)  # compiles
    begin = time.monotonic()
    centres, nearest = with_tuff(ctx, x, first, ROUNDS)
    ours = time.monotonic() - begin
    begin = time.monotonic()
    expected, labels = with_numpy(x, first, ROUNDS)
    theirs = time.monotonic() - begin
    # A point halfway between two centres may join either: sums differ in their last bits.
    off, same = np.abs(centres - expected).max(), (nearest == labels).mean()
    if off > 1e-2 or same < 0.999:
        raise SystemExit(f"error: centres differ by {off}, {same:.2%} of the labels agree")
    picture(path, x, centres, nearest)
    return ours, theirs
