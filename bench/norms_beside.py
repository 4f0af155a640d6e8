"""Gradients of normalisations on a Tuff device, beside the same gradients composed of other operations, and beside PyTorch on
the CPU where it is installed.

    bench/norms_beside.py [--rounds 5] [--threads 2] [--only layer]

A row is all gradients, by input, weight and bias, given that by the output. The composed ones are what tuff.grad did before there
were kernels: sums and formulas of elements. Each round computes every way once; the table shows the fastest call of each, in ms,
and its ratio to Tuff's. Gradients are compared first.
"""

from __future__ import annotations

import numpy as np
from rounds import command_line, pytorch, show

import tuff
import tuff.grad
from tuff._norms import norm_gradients

# Name, kind, shape, groups.
ROWS = [
    ("layer 4096 x 768", "layer", (4096, 768), 0),
    ("layer 1024 x 4096", "layer", (1024, 4096), 0),
    ("layer 50000 x 64", "layer", (50_000, 64), 0),
    ("rms 1024 x 4096", "rms", (1024, 4096), 0),
    ("group 8 x 256 x 28 x 28, 32 groups", "group", (8, 256, 28, 28), 32),
    ("batch 16 x 64 x 56 x 56", "batch", (16, 64, 56, 56), 0),
    ("batch 50000 x 64", "batch", (50_000, 64), 0),
]
EPSILON = 1e-5


def composed(kind: str, x, g, w, groups: int) -> list:
    """For rows by their last axis: the gradients of x, w and b."""
    if kind in ("layer", "rms"):
        centred, n = kind == "layer", float(x.shape[-1])
        of = {"x": x, "e": EPSILON}
        of.update({"m": x.mean(-1, True), "s": x.var(-1, 0.0, True)} if centred else {"s": x.sum_squares(-1, True), "n": n})
        normal = "u = (x - m) * rsqrt(s + e); " if centred else "u = x * rsqrt(s / n + e); "
        root = "rsqrt(s + e)" if centred else "rsqrt(s / n + e)"
        along = tuff.expr(f"{normal}g * w * u", g=g, w=w, **of).mean(-1, True)
        level = {"c": tuff.expr("g * w", g=g, w=w).mean(-1, True)} if centred else {}
        dx = tuff.expr(f"{normal}{root} * (g * w - {'c - ' if centred else ''}u * a)", g=g, w=w, a=along, **level, **of)
        dw = tuff.expr(f"{normal}g * u", g=g, **of).sum(0)
        return [dx, dw, *([g.sum(0)] if centred else [])]
    shape = (x.shape[1], *(1,) * (x.ndim - 2))

    def norm(x, w, b):
        moved = x.swapaxes(0, 1) if kind == "batch" else x
        rows = moved.reshape(x.shape[1] if kind == "batch" else x.shape[0] * groups, -1)
        n = tuff.expr("(x - m) * rsqrt(v + e)", x=rows, m=rows.mean(-1, True), v=rows.var(-1, 0.0, True), e=EPSILON).reshape(moved.shape)
        return (n.swapaxes(0, 1) if kind == "batch" else n) * w.reshape(shape) + b.reshape(shape)

    return list(tuff.grad.vjp(norm, x, w, x.context.zeros(x.shape[1]))[1](g))


def of_torch(torch, kind: str, x, g, w, groups: int):
    """A function of no arguments for PyTorch's gradients; its forward pass is not timed."""
    leaves = [torch.from_numpy(one).requires_grad_(True) for one in (x, w, np.zeros_like(w))]
    f = torch.nn.functional
    y = {
        "layer": lambda x, w, b: f.layer_norm(x, w.shape, w, b, EPSILON),
        "rms": lambda x, w, b: f.rms_norm(x, w.shape, w, EPSILON),
        "group": lambda x, w, b: f.group_norm(x, groups, w, b, EPSILON),
        "batch": lambda x, w, b: f.batch_norm(x, None, None, w, b, True, 0.1, EPSILON),
    }[kind](*leaves)
    slope = torch.from_numpy(g)
    return lambda: torch.autograd.grad(y, leaves[:2] if kind == "rms" else leaves, slope, retain_graph=True)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    torch = pytorch(arguments.threads)
    ctx = tuff.Context()
    rng = np.random.default_rng(1)
    for name, kind, shape, groups in ROWS:
        if arguments.only not in name:
            continue
        channels = shape[-1] if kind in ("layer", "rms") else shape[1]
        x, g, w = (rng.standard_normal(size).astype(np.float32) for size in (shape, shape, (channels,)))
        a, b, c = map(ctx.array, (x, g, w))
        wanted = ("x", "weight") if kind == "rms" else ("x", "weight", "bias")
        ways = {
            "tuff": lambda: list(norm_gradients(kind, a, b, wanted, weight=c, weight_dtype=c.dtype, epsilon=EPSILON, groups=groups).values()),
            "composed": lambda: composed(kind, a, b, c, groups),
        }
        if torch is not None:
            ways["torch"] = of_torch(torch, kind, x, g, w, groups)
        found = {key: [np.asarray(one.numpy() if hasattr(one, "numpy") else one) for one in way()] for key, way in ways.items()}
        for key, others in found.items():
            for one, other in zip(found["tuff"], others):
                assert np.allclose(one, other, rtol=1e-3, atol=1e-4 * np.abs(other).max()), (name, key)
        show(name, ways, arguments.rounds, ctx.synchronize)


if __name__ == "__main__":
    main()
