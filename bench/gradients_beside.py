"""Gradients of convolutions and pooling on a Tuff device, beside the same gradients composed of other operations, and
beside PyTorch on the CPU where it is installed.

    bench/gradients_beside.py [--rounds 5] [--threads 2]

The composed ones are what tuff.grad did before there were kernels: the gradient by the images as a transposed convolution with
padding cut off, that by the filters as a convolution of permuted images with permuted gradients, that of maxima by an index array.
Each round computes every way once; the table shows the fastest call of each, in ms, and its ratio to Tuff's.
"""

from __future__ import annotations

import numpy as np
from rounds import command_line, pytorch, show

import tuff
import tuff.grad

# Name, images, filters, stride, padding, groups: layers of ResNet-50 and MobileNet, a first layer, and a volume.
LAYERS = [
    ("3 x 3, 64 to 64", (8, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1),
    ("3 x 3, 256 to 256", (8, 256, 14, 14), (256, 256, 3, 3), 1, 1, 1),
    ("3 x 3 stride 2, 128", (8, 128, 56, 56), (128, 128, 3, 3), 2, 1, 1),
    ("1 x 1, 64 to 256", (8, 64, 56, 56), (256, 64, 1, 1), 1, 0, 1),
    ("1 x 1 stride 2, 256 to 512", (8, 256, 56, 56), (512, 256, 1, 1), 2, 0, 1),
    ("7 x 7 stride 2, 3 to 64", (4, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1),
    ("depthwise 3 x 3, 96", (8, 96, 56, 56), (96, 1, 3, 3), 1, 1, 96),
    ("depthwise 3 x 3 stride 2, 96", (8, 96, 56, 56), (96, 1, 3, 3), 2, 1, 96),
    ("3 x 3 x 3, 16 to 16", (2, 16, 24, 24, 24), (16, 16, 3, 3, 3), 1, 1, 1),
    ("3 x 3 x 3 stride 2, 16 to 32", (2, 16, 24, 24, 24), (32, 16, 3, 3, 3), 2, 1, 1),
]
POOLS = [("max 3 x 3 stride 2", "max", 3, 2, 1), ("avg 2 x 2", "avg", 2, 2, 0)]


def composed_data(g, w, shape, stride, padding, groups):
    whole = tuff.conv_transpose2d(g, w, stride=stride, groups=groups)
    cut = [(-padding, n + padding - reached) for n, reached in zip(shape[2:], whole.shape[2:])]
    return tuff.pad(whole, [(0, 0), (0, 0), *cut])


def composed_filter(x, g, taps, stride, padding, groups):
    n, channels, *space = x.shape
    each = channels // groups
    moved = x.reshape((n, groups, each, *space)).transpose(2, 1, 0, 3, 4).reshape((each, groups * n, *space))
    sums = tuff.conv2d(moved, g.transpose(1, 0, 2, 3), padding=padding, dilation=stride, groups=groups)
    return sums[:, :, : taps[0], : taps[1]].transpose(1, 0, 2, 3)


def composed_max(g, places, shape):
    rows = np.arange(shape[0] * shape[1]).reshape(-1, 1)
    zeros = g.context.zeros((shape[0] * shape[1], int(np.prod(shape[2:]))))
    return tuff.grad.vjp(lambda x: x[rows, places.reshape(len(rows), -1)], zeros)[1](g.reshape(len(rows), -1))[0]


def composed_avg(g, shape, kernel, stride):
    ones = g.context.ones((shape[1], 1, kernel, kernel))
    return tuff.conv_transpose2d(g * (1 / kernel**2), ones, stride=stride, groups=shape[1])


def main() -> None:
    arguments = command_line(__doc__).parse_args()
    torch = pytorch(arguments.threads)
    ctx = tuff.Context()
    rng = np.random.default_rng(1)
    for name, shape, filters, stride, padding, groups in LAYERS:
        rank = len(shape) - 2
        out = [(n + 2 * padding - r) // stride + 1 for n, r in zip(shape[2:], filters[2:])]
        x, w, g = (rng.standard_normal(size).astype(np.float32) for size in (shape, filters, (shape[0], filters[0], *out)))
        a, b, c = map(ctx.array, (x, w, g))
        form = dict(stride=stride, padding=padding, groups=groups)
        data = {"tuff": lambda: tuff.conv_backward_data(c, b, shape, **form)}
        of_filter = {"tuff": lambda: tuff.conv_backward_filter(a, c, filters[2:], **form)}
        if rank == 2:
            data["composed"] = lambda: composed_data(c, b, shape, stride, padding, groups)
            of_filter["composed"] = lambda: composed_filter(a, c, filters[2:], stride, padding, groups)
            for ways in (data, of_filter):
                found = [way().numpy() for way in ways.values()]
                assert np.allclose(*found, rtol=1e-3, atol=1e-3 * np.abs(found[1]).max()), name
        if torch is not None:
            p, q, r = map(torch.from_numpy, (x, w, g))
            ones = [1] * rank
            grads = lambda mask: torch.ops.aten.convolution_backward(r, p, q, None, [stride] * rank, [padding] * rank, ones, False, [0] * rank, groups, mask)  # noqa: E731
            data["torch"] = lambda: grads([True, False, False])
            of_filter["torch"] = lambda: grads([False, True, False])
        show(f"{name}, by images", data, arguments.rounds, ctx.synchronize)
        show(f"{name}, by filters", of_filter, arguments.rounds, ctx.synchronize)
    shape = (8, 64, 112, 112)
    for name, kind, kernel, stride, padding in POOLS:
        x = rng.standard_normal(shape).astype(np.float32)
        a = ctx.array(x)
        if kind == "max":
            y, places = tuff.max_pool(a, kernel, stride=stride, padding=padding, indices=True)
        else:
            y = tuff.avg_pool(a, kernel, stride=stride, padding=padding)
        g = rng.standard_normal(y.shape).astype(np.float32)
        c = ctx.array(g)
        form = dict(stride=stride, padding=padding)
        if kind == "max":
            ways = {"tuff": lambda: tuff.max_pool_backward(c, places, shape, kernel, **form), "composed": lambda: composed_max(c, places, shape)}
        else:
            ways = {"tuff": lambda: tuff.avg_pool_backward(c, shape, kernel, **form), "composed": lambda: composed_avg(c, shape, kernel, stride)}
        found = [way().numpy().ravel() for way in ways.values()]
        assert np.allclose(*found, rtol=1e-5, atol=1e-5), name
        if torch is not None:
            t, r = torch.from_numpy(x).requires_grad_(), torch.from_numpy(g)
            z = getattr(torch.nn.functional, f"{kind}_pool2d")(t, kernel, stride, padding)
            ways["torch"] = lambda: torch.autograd.grad(z, t, r, retain_graph=True)
        show(name, ways, arguments.rounds, ctx.synchronize)


if __name__ == "__main__":
    main()
