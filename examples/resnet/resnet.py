#!/usr/bin/env python3
"""ResNet-50 with Tuff: measures the speed and checks the result of each layer.

The architecture is the usual one (He et al. 2015; strides on the 3 x 3 layers, batch normalisation folded into filters
and biases). The weights are random numbers from a seed: the classification is meaningless, but the computation is the
same.

    python3 examples/resnet/resnet.py                            # batch 1 and 32, where the time goes
    python3 examples/resnet/resnet.py --batch 1 --picture profile.png
    python3 examples/resnet/resnet.py --check                    # compares every layer with the host backend

--check uses images of 64 x 64 unless --image is given, because the host backend is a slow reference.
"""

import argparse
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
try:
    import tuff
except ModuleNotFoundError:  # not installed: the package of this checkout
    sys.path.insert(0, str(ROOT / "python"))
    import tuff

STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))  # blocks, and channels within one
CLASSES = 1000
SEED = 50
TYPES = {"f32": np.float32, "f16": np.float16}
UNIT = {"f32": 2.0**-24, "f16": 2.0**-11}  # unit roundoff of the result


@dataclass
class Layer:
    """One library call. name also identifies its result."""

    name: str
    kind: str  # conv2d, max_pool, avg_pool, linear, softmax
    source: str
    inputs: int = 0  # channels
    outputs: int = 0
    kernel: int = 1
    stride: int = 1
    padding: int = 0
    residual: str = ""
    relu: bool = False

    @property
    def terms(self):
        """Number of products in each sum."""
        return self.inputs * self.kernel**2

    @property
    def group(self):
        """The layer's group in the profile."""
        if self.kind == "conv2d":
            return f"{self.kernel} × {self.kernel}"
        return "pooling" if "pool" in self.kind else "classifier"


def resnet50():
    """Returns the layers in call order."""
    layers = [
        Layer("stem", "conv2d", "image", 3, 64, 7, 2, 3, relu=True),
        Layer("pool", "max_pool", "stem", 64, 64, 3, 2, 1),
    ]
    channels = 64
    for stage, (blocks, width) in enumerate(STAGES, 1):
        for block in range(1, blocks + 1):
            name, source = f"{stage}.{block}", layers[-1].name
            stride = 2 if stage > 1 and block == 1 else 1
            shortcut = source
            if block == 1:
                shortcut = f"{name} project"
                layers.append(Layer(shortcut, "conv2d", source, channels, 4 * width, 1, stride))
            layers += [
                Layer(f"{name} reduce", "conv2d", source, channels, width, relu=True),
                Layer(f"{name} filter", "conv2d", f"{name} reduce", width, width, 3, stride, 1, relu=True),
                Layer(f"{name} expand", "conv2d", f"{name} filter", width, 4 * width, residual=shortcut, relu=True),
            ]
            channels = 4 * width
    layers.append(Layer("mean", "avg_pool", layers[-1].name, channels, channels))
    layers.append(Layer("scores", "linear", "mean", channels, CLASSES))
    layers.append(Layer("softmax", "softmax", "scores", CLASSES, CLASSES))
    return layers


def extents(layers, image):
    """Returns the height (and width) of each layer's result."""
    found = {"image": image}
    for layer in layers:
        size = found[layer.source]
        flat = layer.kind in ("avg_pool", "linear", "softmax")
        found[layer.name] = 1 if flat else (size + 2 * layer.padding - layer.kernel) // layer.stride + 1
    return found


def listed(layers):
    """Returns the layers in the format of networks/resnet50.txt, with the number of occurrences of each."""
    sizes, lines = extents(layers, 224), Counter()
    for layer in layers:
        size = sizes[layer.source]
        if layer.kind == "conv2d":
            numbers = (layer.inputs, size, size, layer.outputs, layer.kernel, layer.kernel, layer.stride, layer.padding)
            words = ["bias", *["residual"] * bool(layer.residual), *["relu"] * layer.relu]
        elif layer.kind == "linear":
            numbers, words = (1, layer.outputs, layer.inputs), ["bias"]
        elif layer.kind == "softmax":
            numbers, words = (1, layer.inputs), []
        else:
            window = layer.kernel if layer.kind == "max_pool" else size
            stride = layer.stride if layer.kind == "max_pool" else 1
            numbers, words = (layer.inputs, size, size, window, stride, layer.padding), []
        lines[" ".join([layer.kind, *map(str, numbers), *words])] += 1
    return lines


def file_lists_the_same(layers):
    """Whether the file that tests and benchmarks read describes this network."""
    lines = Counter()
    for line in (ROOT / "networks" / "resnet50.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            lines[" ".join(words[:-1])] += int(words[-1][1:])
    return lines == listed(layers)


def seeded_weights(layers):
    """He initialisation with small biases. Each block's last layer is scaled down to keep sums over blocks small."""
    rng, weights = np.random.default_rng(SEED), {}
    for layer in layers:
        if layer.kind not in ("conv2d", "linear"):
            continue
        shape = (layer.outputs, layer.inputs) + ((layer.kernel,) * 2 if layer.kind == "conv2d" else ())
        gain = 0.4 if layer.residual else 1.0
        weights[layer.name] = (
            (rng.standard_normal(shape, np.float32) * (gain * math.sqrt(2 / layer.terms))),
            rng.standard_normal(layer.outputs).astype(np.float32) * 0.1,
        )
    return weights


class Network:
    """The network with its weights on a device. With the layout "nhwc", a pixel's channels are adjacent."""

    def __init__(self, ctx, layers, weights, dtype, layout="nchw"):
        self.ctx, self.layers, self.layout = ctx, layers, layout
        self.weights = {name: [ctx.array(self.stored(part), dtype) for part in pair] for name, pair in weights.items()}

    def stored(self, x):
        """Images or filters (images, channels, height, width) in the network's layout."""
        return np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if x.ndim == 4 and self.layout == "nhwc" else x

    def call(self, layer, x, residual=None):
        """Applies one layer to x with one library call."""
        if layer.kind == "conv2d":
            filters, bias = self.weights[layer.name]
            return tuff.conv2d(
                x,
                filters,
                stride=layer.stride,
                padding=layer.padding,
                bias=bias,
                residual=residual,
                activation="relu" if layer.relu else None,
                layout=self.layout,
            )
        if layer.kind == "max_pool":
            return tuff.max_pool(x, layer.kernel, stride=layer.stride, padding=layer.padding, layout=self.layout)
        if layer.kind == "avg_pool":
            return tuff.adaptive_avg_pool(x, 1, layout=self.layout).reshape(len(x), -1)
        if layer.kind == "linear":
            matrix, bias = self.weights[layer.name]
            return tuff.matmul(x, matrix.T, bias=bias)
        return x.softmax(axis=1)

    def operands(self, layer, results):
        return results[layer.source], results[layer.residual] if layer.residual else None

    def __call__(self, image):
        """Returns the probabilities (images, classes). Results that no later layer reads are freed, for reuse of their
        memory."""
        last = {source: index for index, layer in enumerate(self.layers) for source in (layer.source, layer.residual)}
        results = {"image": image}
        for index, layer in enumerate(self.layers):
            results[layer.name] = self.call(layer, *self.operands(layer, results))
            for name in {layer.source, layer.residual} - {""}:
                if last[name] == index:
                    del results[name]
        return results[self.layers[-1].name]


def seconds(ctx, call, least=0.1, runs=3):
    """Returns the time of one call: the best mean of several runs of many calls, or of a single run for long calls."""
    begin = time.perf_counter()
    call()
    ctx.synchronize()
    once = time.perf_counter() - begin
    count = max(1, min(200, int(least / runs / once)))
    runs = runs if once < 5 * least else 1
    best = math.inf
    for _ in range(runs):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        ctx.synchronize()
        best = min(best, (time.perf_counter() - begin) / count)
    return best


def check(ctx, layers, weights, image, type_name, layout):
    """Compares every layer on the device with the host backend on the same inputs. Returns whether all are within their
    bounds.

    A sum of k products, the bias and the shortcut in f32 has an error of at most gamma_(k+3) times the sum of their
    magnitudes (Higham), in any order of summation, plus one rounding to the type. The host backend also computes the
    sum of magnitudes. Both results are rounded once.
    """
    dtype, unit = TYPES[type_name], UNIT[type_name]
    if not file_lists_the_same(layers):
        print("networks/resnet50.txt is another network than this one")
        return False
    device = Network(ctx, layers, weights, dtype, layout)
    good, worst, results = True, (0.0, ""), {"image": ctx.array(device.stored(image), dtype)}
    spatial = (1, 2) if layout == "nhwc" else (2, 3)
    begin = time.perf_counter()
    with tuff.Context(backend="host") as host_ctx:
        exact = Network(host_ctx, layers, weights, dtype, layout)
        absolute = {name: [np.abs(part.astype(dtype)) for part in pair] for name, pair in weights.items()}
        sizes = Network(host_ctx, layers, absolute, np.float32, layout)
        for layer in layers:
            operands = device.operands(layer, results)
            results[layer.name] = device.call(layer, *operands)
            got = results[layer.name].numpy().astype(np.float64)
            inputs = [operand.numpy() if operand is not None else None for operand in operands]
            wanted = exact.call(layer, *[x if x is None else host_ctx.array(x, dtype) for x in inputs]).numpy()
            wanted = wanted.astype(np.float64)
            least = 2.0**-126 if type_name == "f32" else 2.0**-24
            bound = 4 * unit * np.abs(wanted) + least  # rounding of the results
            if layer.kind in ("conv2d", "linear"):
                n = (layer.terms + 3) * 2.0**-24
                all_sizes = [x if x is None else host_ctx.array(np.abs(x.astype(np.float32))) for x in inputs]
                bound += n / (1 - n) * sizes.call(layer, *all_sizes).numpy()
            elif layer.kind == "avg_pool":
                n = math.prod(operands[0].shape[axis] for axis in spatial) * 2.0**-24
                bound += n * np.abs(inputs[0].astype(np.float64)).mean(axis=spatial)
            elif layer.kind == "softmax":
                scores = inputs[0].astype(np.float64)
                # exp of the differences errs by up to 3 + 2 |x| ULP in numerator and denominator, plus the sum's error.
                spread = (scores.max(axis=1) - scores.min(axis=1)).max()
                bound += wanted * 2.0**-24 * (4 * (3 + 2 * spread) + CLASSES)
            share = float((np.abs(got - wanted) / bound).max())
            worst = max(worst, (share, layer.name))
            if not share <= 1:  # also catches NaN
                good = False
                print(f"  {layer.name}: off by {share:.2g} times the bound")
    took = time.perf_counter() - begin
    print(f"Check: {len(layers)} layers at {image.shape[2]} x {image.shape[3]}, {type_name}, each from the device's "
          f"own inputs beside the host backend, in {took:.0f} s: the largest error is {worst[0]:.2f} of its bound "
          f"({worst[1]}): {'ok' if good else 'WRONG'}")
    return good


@dataclass
class Timed:
    layer: Layer
    seconds: float
    flops: float  # of convolutions and matrix multiplications only


def profile(ctx, network, image, least):
    """Measures each layer separately, with its operands as the network leaves them in memory."""
    sizes = extents(network.layers, image.shape[2])  # height or width: images are square
    results, rows = {"image": image}, []
    for layer in network.layers:
        operands = network.operands(layer, results)
        results[layer.name] = network.call(layer, *operands)
        products = layer.terms * layer.outputs * sizes[layer.name] ** 2 if layer.kind in ("conv2d", "linear") else 0
        took = seconds(ctx, lambda: network.call(layer, *operands), least)
        rows.append(Timed(layer, took, 2.0 * len(image) * products))
    return rows


def print_profile(rows, whole):
    by_group = {}
    for row in rows:
        group = by_group.setdefault(row.layer.group, [0, 0.0, 0.0])
        group[0] += 1
        group[1] += row.seconds
        group[2] += row.flops
    total = sum(row.seconds for row in rows)
    for name, (count, took, flops) in sorted(by_group.items(), key=lambda item: -item[1][1]):
        rate = f"{flops / took / 1e9:9,.1f} GFLOP/s" if flops else ""
        print(f"  {name:<12}{count:3d} layers {took * 1e3:10.2f} ms {took / total:5.0%} {rate}")
    slowest = sorted(rows, key=lambda row: -row.seconds)[:5]
    print("  slowest: " + ", ".join(f"{row.layer.name} {row.seconds * 1e3:.2f} ms" for row in slowest))
    print(f"  layers by themselves {total * 1e3:.2f} ms, together {whole * 1e3:.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32], metavar="N", help="images at once (1 32)")
    parser.add_argument("--image", type=int, metavar="N", help="height and width, at least 32 (224; 64 with --check)")
    parser.add_argument("--type", choices=TYPES, default="f32", help="of weights and activations (f32)")
    parser.add_argument("--layout", choices=["nchw", "nhwc"], default="nchw", help="of the images (nchw)")
    parser.add_argument("--check", action="store_true", help="each layer beside the host backend; status 1 if off")
    parser.add_argument("--seconds", type=float, default=0.1, metavar="S", help="for each layer's measurement (0.1)")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the last batch's profile")
    parser.add_argument("--backend", choices=["vulkan", "host", "cpu"], default="vulkan",
                        help="vulkan, the CPU plug-in (docs/cpu.md), or the slow reference")
    options = parser.parse_args()
    size = options.image or (64 if options.check else 224)
    if size < 32 or min(options.batch) < 1:
        parser.error("--image needs at least 32, --batch 1")

    layers = resnet50()
    weights = seeded_weights(layers)
    images = np.random.default_rng(SEED + 1)
    with tuff.Context(backend=options.backend) as ctx:
        ctx.set_limits(wait_milliseconds=600_000)  # drivers compile during waits, which is slow on a small machine
        device = ctx.device
        numbers = sum(part.size for pair in weights.values() for part in pair)
        print(f"Tuff {tuff.__version__} on {device.name} ({device.backend}; {device.driver}), {options.type}, "
              f"{options.layout}")
        print(f"ResNet-50: {len(layers)} layers, {numbers / 1e6:.1f} million weights from seed {SEED}, "
              f"images of {size} x {size}")
        if options.check:
            return 0 if check(ctx, layers, weights, images.standard_normal((1, 3, size, size)), options.type,
                              options.layout) else 1
        network = Network(ctx, layers, weights, TYPES[options.type], options.layout)
        for batch in options.batch:
            image = network.stored(images.standard_normal((batch, 3, size, size), np.float32))
            image = ctx.array(image, TYPES[options.type])
            begin = time.perf_counter()
            probabilities = network(image).numpy()
            first = time.perf_counter() - begin
            if not np.allclose(probabilities.sum(axis=1, dtype=np.float64), 1, atol=1e-2):
                sys.exit("error: probabilities do not add up to 1")
            whole = seconds(ctx, lambda: network(image), least=1)
            rows = profile(ctx, network, image, options.seconds)
            flops = sum(row.flops for row in rows)
            print(f"\nBatch {batch}: {whole * 1e3:,.2f} ms, {batch / whole:,.1f} images/s, "
                  f"{flops / whole / 1e9:,.1f} GFLOP/s (the first run, with kernels to prepare, {first:.1f} s)")
            print_profile(rows, whole)
        if options.picture:
            import picture

            title = f"{device.name}, batch {batch}, {options.type}, {size} × {size}: "
            title += f"{whole * 1e3:,.1f} ms, {batch / whole:,.1f} images/s"
            picture.draw(options.picture, rows, title)
            print(f"\nDrawn: {options.picture}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except tuff.TuffError as error:
        sys.exit(f"error: {error.message}\nhint: {error.hint}")
