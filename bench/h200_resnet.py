#!/usr/bin/env python3
"""ResNet-50's distinct convolutions beside PyTorch's in one process, TF32 off, and the geometric mean of the ratios.

    python3 bench/h200_resnet.py build/release/libtuff.so --type f16 --batch 32

Tuff's images are NCHW, or NHWC with --layout nhwc. For PyTorch, cuDNN searches its algorithms, and the faster of NCHW and channels-last counts.
TFLOP/s are those of the direct convolution; the difference is relative (Frobenius norm). Needs a GPU, PyTorch and
NumPy.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

from h200 import beside_torch, seconds

# C, H = W, K, window, stride
LAYERS = [
    (3, 224, 64, 7, 2),
    (64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1),
    (256, 56, 128, 1, 1), (128, 56, 128, 3, 2), (128, 28, 512, 1, 1), (256, 56, 512, 1, 2), (512, 28, 128, 1, 1),
    (128, 28, 128, 3, 1),
    (512, 28, 256, 1, 1), (256, 28, 256, 3, 2), (256, 14, 1024, 1, 1), (512, 28, 1024, 1, 2), (1024, 14, 256, 1, 1),
    (256, 14, 256, 3, 1),
    (1024, 14, 512, 1, 1), (512, 14, 512, 3, 2), (512, 7, 2048, 1, 1), (1024, 14, 2048, 1, 2), (2048, 7, 512, 1, 1),
    (512, 7, 512, 3, 1),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="path of libtuff.so")
    parser.add_argument("--device", help="as in tuff.Context")
    parser.add_argument("--type", choices=["f32", "f16"], default="f16")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--layout", choices=["nchw", "nhwc"], default="nchw", help="of Tuff's images (default: nchw)")
    parser.add_argument("--seconds", type=float, default=0.15, help="for each side of a layer (default: 0.15)")
    options = parser.parse_args()
    torch, tuff, context = beside_torch(options.library, options.device)
    kind, number = {"f32": (torch.float32, tuff.raw.F32), "f16": (torch.float16, tuff.raw.F16)}[options.type]
    print(f"{options.type}, batch {options.batch}, {options.layout}")
    print(f"{'C x H, K of window, stride':<30}{'us':>8}{'Tuff':>9}{'PyTorch':>9}  {'ratio':>6}  difference")

    last = options.layout == "nhwc"
    jobs = []
    for c, size, k, window, stride in LAYERS:
        out = (size + stride - 1) // stride
        x, w = torch.randn(options.batch, c, size, size).to(kind), torch.randn(k, c, window, window).to(kind)
        buffers = []
        for tensor in (x, w):
            values = (tensor.permute(0, 2, 3, 1).contiguous() if last else tensor).numpy()
            buffers.append(context.alloc(values.nbytes))
            buffers[-1].upload(values)
        result = torch.empty(options.batch, k, out, out, dtype=kind)
        buffers.append(context.alloc(result.numpy().nbytes))
        desc = tuff.raw.Conv2dDesc()
        desc.dtype = number
        desc.layout = tuff.raw.LAYOUT_NHWC if last else tuff.raw.LAYOUT_NCHW
        desc.input, desc.filter, desc.output = (buffer.handle for buffer in buffers)
        desc.in_shape[:] = x.shape
        desc.filter_shape[:] = w.shape
        desc.out_shape[:] = result.shape
        desc.stride[:] = [stride, stride]
        desc.padding[:] = [window // 2, window // 2]
        tuff.check(tuff.raw.tuff_conv2d_ex(context.handle, desc))  # compiles
        jobs.append((c, size, k, window, stride, x, w, result, buffers, desc))
    # A device that has waited for a compiler has lowered its clock, for longer than a layer is measured.
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        for *_, desc in jobs:
            tuff.check(tuff.raw.tuff_conv2d_ex(context.handle, desc))
        context.synchronize()

    logarithms = []
    for c, size, k, window, stride, x, w, result, buffers, desc in jobs:
        each = seconds(lambda: tuff.raw.tuff_conv2d_ex(context.handle, desc), context.synchronize, options.seconds)
        with torch.no_grad():
            other = math.inf
            for memory in (torch.contiguous_format, torch.channels_last):
                a, b = x.cuda().to(memory_format=memory), w.cuda().to(memory_format=memory)
                peer = lambda: torch.nn.functional.conv2d(a, b, stride=stride, padding=window // 2)
                other = min(other, seconds(peer, torch.cuda.synchronize, options.seconds))
            expected = peer().float().cpu()
        buffers[2].download(result.numpy())
        if last:
            n, k_, h, w_ = result.shape
            result = result.reshape(n, h, w_, k_).permute(0, 3, 1, 2)
        difference = ((result.float() - expected).norm() / expected.norm()).item()
        work = 2e-12 * result.numel() * c * window * window
        logarithms.append(math.log(other / each))
        print(f"{f'{c} x {size}, {k} of {window} x {window}, {stride}':<30}{each * 1e6:>8.1f}{work / each:>9.1f}"
              f"{work / other:>9.1f}  {other / each:>6.2f}  {difference:.1e}", flush=True)
    print(f"geometric mean of {len(logarithms)}: {math.exp(sum(logarithms) / len(logarithms)):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
