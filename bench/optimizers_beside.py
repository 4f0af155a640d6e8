#!/usr/bin/env python3
"""optimizers_beside.py [--device NAME] [--repeats N]: steps of tuff.grad's optimisers beside the same formulas by tuff.expr, one
tensor after another, in one process. Medians of repeats in turn; the ratio is the formulas' time divided by the list's."""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time

import numpy as np

import tuff
from tuff import expr, grad


class Formulas:
    """Adam, or SGD with momentum, by formulas: two or three kernels for each tensor."""

    def __init__(self, parameters, adam: bool) -> None:
        self.parameters, self.adam, self.steps = parameters, adam, 0
        self.moments = [[one.context.zeros(one.shape) for one in parameters] for _ in range(2 if adam else 1)]

    def step(self, gradients) -> None:
        self.steps += 1
        if not self.adam:
            for w, g, v in zip(self.parameters, gradients, *self.moments):
                expr("m * v + g + d * w", out=v, v=v, g=g, w=w, m=0.9, d=0.0)
                expr("w - r * v", out=w, w=w, v=v, r=1e-3)
            return
        scale, root = 1e-3 / (1 - 0.9**self.steps), 1 / math.sqrt(1 - 0.999**self.steps)
        for w, g, m, v in zip(self.parameters, gradients, *self.moments):
            expr("b * m + (1 - b) * g", out=m, m=m, g=g, b=0.9)
            expr("b * v + (1 - b) * g * g", out=v, v=v, g=g, b=0.999)
            expr("w - d * w - s * m / (sqrt(v) * q + e)", out=w, w=w, m=m, v=v, d=0.0, s=scale, q=root, e=1e-8)


# The shapes of a transformer's block, twice; many small tensors; one large one.
LISTS = {
    "26 tensors of a transformer": [(256, 768), (768,), (256, 256), (256,), (256, 1024), (1024,), (1024, 256), (256,), (256,), (256,), (256,), (256,),
                                    (96, 256)] * 2,
    "200 tensors of 64": [(64,)] * 200,
    "one of 4 million": [(4_194_304,)],
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    context = tuff.Context(options.device)
    print(f"{context.device.name}; load {os.getloadavg()[0]:.1f}")
    print("| list | optimiser | formulas, ms | list, ms | ratio |\n|---|---|---|---|---|")
    rng = np.random.default_rng(1)
    for name, shapes in LISTS.items():
        gradients = [context.array(rng.normal(0, 1, shape).astype(np.float32)) for shape in shapes]
        for kind in ("SGD with momentum", "Adam"):
            adam = kind == "Adam"
            both = []
            for listed in (False, True):
                parameters = [context.array(rng.normal(0, 1, shape).astype(np.float32)) for shape in shapes]
                of_lists = grad.Adam(parameters) if adam else grad.SGD(parameters, 1e-3, momentum=0.9)
                both.append(of_lists if listed else Formulas(parameters, adam))
            times = [[], []]
            for repeat in range(options.repeats + 2):
                for which, optimiser in enumerate(both):
                    start = time.perf_counter()
                    optimiser.step(gradients)
                    context.synchronize()
                    if repeat >= 2:  # kernels are compiled first
                        times[which].append(time.perf_counter() - start)
            formulas, lists = (statistics.median(one) * 1e3 for one in times)
            print(f"| {name} | {kind} | {formulas:.2f} | {lists:.2f} | {formulas / lists:.1f} |", flush=True)


if __name__ == "__main__":
    main()
