#!/usr/bin/env python3
"""Tuff's f32 3 x 3 convolutions beside PyTorch's (cuDNN, with its own search of algorithms) in one process, TF32 off.

    python3 bench/h200_conv.py build/release/libtuff.so

Reports the direct convolution, and the one with Winograd's minimal filtering allowed: TFLOP/s counted as direct
convolution, the ratio to PyTorch's, and the largest error against f64, relative to the largest output.
TUFF_CONV_VARIANT=winograd_2 or winograd_4 forces one variant. Needs a GPU, PyTorch and NumPy.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from h200 import beside_torch, seconds

# N, C, H = W, K: a large layer, ResNet-50's at batch 32 and 1, VGG's first, a diffusion model's.
LAYERS = [
    (32, 256, 56, 256),
    (32, 64, 56, 64),
    (32, 128, 28, 128),
    (32, 256, 14, 256),
    (32, 512, 7, 512),
    (1, 64, 56, 64),
    (1, 128, 28, 128),
    (1, 256, 14, 256),
    (1, 512, 7, 512),
    (8, 64, 224, 64),
    (1, 320, 64, 320),
]


BUDGET = 0.3  # seconds for one side of a row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libtuff.so")
    parser.add_argument("--device", help="as in tuff.Context")
    options = parser.parse_args()
    torch, tuff, context = beside_torch(options.library, options.device)
    print(f"{'N x C x H, K':<20}{'direct':>8}{'Winograd':>10}{'PyTorch':>9}  TFLOP/s"
          f"{'direct':>10}{'Winograd':>10}  x PyTorch   errors: direct, Winograd, PyTorch")
    random = np.random.default_rng(0)
    for n, c, size, k in LAYERS:
        images = random.standard_normal((n, c, size, size), dtype=np.float32)
        filters = random.standard_normal((k, c, 3, 3), dtype=np.float32)
        work = 2e-12 * 9 * n * c * k * size * size
        x, w = context.array(images), context.array(filters)
        rates, errors = [], []
        a, b = torch.from_numpy(images).cuda(), torch.from_numpy(filters).cuda()
        with torch.no_grad():
            exact = torch.nn.functional.conv2d(a[:1].double(), b.double(), padding=1).cpu().numpy()
        scale = np.abs(exact).max()
        for winograd in (False, True):
            y = tuff.conv2d(x, w, padding=1, winograd=winograd)
            errors.append(np.abs(y.numpy()[:1] - exact).max() / scale)
            rates.append(work / seconds(lambda: tuff.conv2d(x, w, padding=1, winograd=winograd, out=y),
                                        context.synchronize, BUDGET))
        with torch.no_grad():
            peer = lambda: torch.nn.functional.conv2d(a, b, padding=1)
            rates.append(work / seconds(peer, torch.cuda.synchronize, BUDGET))
            errors.append(np.abs(peer()[:1].cpu().numpy() - exact).max() / scale)
        print(f"{f'{n} x {c} x {size}, {k}':<20}{rates[0]:>8.1f}{rates[1]:>10.1f}{rates[2]:>9.1f}         "
              f"{rates[0] / rates[2]:>10.2f}{rates[1] / rates[2]:>10.2f}  "
              f"           {', '.join(f'{error:.1e}' for error in errors)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
