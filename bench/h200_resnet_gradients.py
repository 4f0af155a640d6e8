#!/usr/bin/env python3
"""ResNet-50's distinct convolutions forward, and their gradients by the input and by the filter, beside PyTorch's in one
process: f16, channels last on both sides, graphs of 20 calls on both sides, cuDNN searching its algorithms.

    python3 bench/h200_resnet_gradients.py build/release/libtuff.so

Times are of one call in us, the best of three runs. Results are compared first (relative, Frobenius norm). Needs a GPU,
PyTorch and NumPy.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import Any, Callable

from h200 import beside_torch
from h200_resnet import LAYERS

REPEAT, LAUNCHES = 20, 6
KINDS = ("forward", "by input", "by filter")


def best_of(launch: Callable[[], Any], wait: Callable[[], Any]) -> float:
    launch()
    wait()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(LAUNCHES):
            launch()
        wait()
        times.append(time.perf_counter() - begin)
    return min(times) / (LAUNCHES * REPEAT) * 1e6


def tuff_time(context: Any, call: Callable[[], Any]) -> float:
    call()
    context.synchronize()
    with context.capture() as graph:
        for _ in range(REPEAT):
            call()
    found = best_of(graph.launch, context.synchronize)
    graph.free()
    return found


def torch_time(torch: Any, call: Callable[[], Any]) -> float:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(REPEAT):
                call()
    return best_of(graph.replay, torch.cuda.synchronize)


class Layer:
    """One layer's tensors on both sides."""

    def __init__(self, torch: Any, tuff: Any, context: Any, batch: int, layer: tuple) -> None:
        channels, size, filters, window, stride = layer
        self.torch, self.tuff, self.context = torch, tuff, context
        raw, out, self.stride, self.padding = tuff.raw, (size + stride - 1) // stride, stride, window // 2

        def tensor(*shape: int, scale: float = 1.0) -> Any:
            return (torch.randn(*shape, device="cuda") * scale).half().to(memory_format=torch.channels_last)

        self.x, self.dy = tensor(batch, channels, size, size), tensor(batch, filters, out, out)
        self.w = tensor(filters, channels, window, window, scale=0.05)
        self.operations = 2.0 * self.dy.numel() * channels * window * window
        self.buffers = []
        for one in (self.x, self.w, self.dy):
            values = one.permute(0, 2, 3, 1).contiguous().cpu().numpy()
            self.buffers.append(context.alloc(values.nbytes))
            self.buffers[-1].upload(values)
        self.results = [context.alloc(2 * one.numel()) for one in (self.dy, self.x, self.w)]
        x, w, dy = (buffer.handle for buffer in self.buffers)
        self.forward, self.backward = raw.Conv2dDesc(), raw.ConvBackwardDesc()
        self.forward.input, self.forward.filter, self.forward.output = x, w, self.results[0].handle
        self.backward.input, self.backward.filter, self.backward.doutput = x, w, dy
        self.backward.dinput, self.backward.dfilter = self.results[1].handle, self.results[2].handle
        self.backward.spatial, self.backward.groups = 2, 1
        for desc in (self.forward, self.backward):
            desc.dtype, desc.layout = raw.F16, raw.LAYOUT_NHWC
            desc.in_shape[:4], desc.filter_shape[:4], desc.out_shape[:4] = self.x.shape, self.w.shape, self.dy.shape
            desc.stride[:2], desc.padding[:2] = [stride] * 2, [self.padding] * 2

    def own(self, kind: int) -> None:
        raw = self.tuff.raw
        function = (raw.tuff_conv2d_ex, raw.tuff_conv_backward_data, raw.tuff_conv_backward_filter)[kind]
        self.tuff.check(function(self.context.stream_handle, self.forward if kind == 0 else self.backward))

    def theirs(self, kind: int) -> Any:
        if kind == 0:
            return self.torch.nn.functional.conv2d(self.x, self.w, stride=self.stride, padding=self.padding)
        wanted = [kind == 1, kind == 2, False]
        return self.torch.ops.aten.convolution_backward(self.dy, self.x, self.w, None, [self.stride] * 2, [self.padding] * 2,
                                                        [1, 1], False, [0, 0], 1, wanted)[kind - 1]  # fmt: skip

    def difference(self, kind: int) -> float:
        self.own(kind)
        expected = self.theirs(kind).permute(0, 2, 3, 1).float().cpu()
        got = self.torch.empty(expected.shape, dtype=self.torch.float16)
        self.results[kind].download(got.numpy())
        return ((got.float() - expected).norm() / expected.norm()).item()

    def free(self) -> None:
        for buffer in self.buffers + self.results:
            buffer.free()


def warm_up(torch: Any) -> None:
    a, end = torch.randn(8192, 8192, device="cuda").half(), time.perf_counter() + 1
    while time.perf_counter() < end:
        for _ in range(4):
            a @ a
        torch.cuda.synchronize()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="path of libtuff.so")
    parser.add_argument("--device", help="as in tuff.Context")
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    torch, tuff, context = beside_torch(options.library, options.device)
    torch.set_grad_enabled(False)
    warm_up(torch)
    sums, logarithms = [[0.0, 0.0] for _ in KINDS], [[] for _ in KINDS]
    for layer in LAYERS:
        c, size, k, window, stride = layer
        tensors, text = Layer(torch, tuff, context, options.batch, layer), f"{f'{c} x {size}, {k} of {window} x {window}, {stride}':<30}"
        for kind, name in enumerate(KINDS):
            if kind == 1 and c == 3:  # the image has no gradient
                continue
            difference = tensors.difference(kind)
            other, each = torch_time(torch, lambda: tensors.theirs(kind)), tuff_time(context, lambda: tensors.own(kind))
            sums[kind][0] += each
            sums[kind][1] += other
            logarithms[kind].append(math.log(other / each))
            text += f"  {name} {each:6.1f} {other:6.1f} {other / each:5.2f} {difference:.0e}"
        print(text, flush=True)
        tensors.free()
    for kind, name in enumerate(KINDS):
        own, other = sums[kind]
        mean = math.exp(sum(logarithms[kind]) / len(logarithms[kind]))
        print(f"{name}: {own:.0f} us, PyTorch {other:.0f} us, ratio {other / own:.2f}; geometric mean {mean:.2f}, "
              f"lowest {math.exp(min(logarithms[kind])):.2f}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
