#!/usr/bin/env python3
"""A training step of ResNet-50 beside PyTorch in one process: forward and backward of all layers with batch
normalisation by the batch's own statistics, relu, pooling and cross-entropy, without the optimiser.

    python3 bench/h200_resnet_training.py build/release/libtuff.so --batch 64

Both have f16 images, filters and results with channels last; PyTorch's normalisation has f32 weights, which is its
faster form. Tuff's step is captured in a graph and launched; PyTorch's is timed call by call. Both libraries have the same weights. The loss and the gradients of the first and
the last filters of both are compared with PyTorch's in f32 (relative, Frobenius norm). Needs a GPU, PyTorch and NumPy.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from h200 import beside_torch, seconds

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "resnet"))

BUDGET = 2.0  # seconds for each side


def tuff_loss(tuff: Any, layers: list, parameters: list, image: Any, labels: Any) -> Any:
    results, each = {"image": image}, iter(parameters)
    for layer in layers:
        x = results[layer.source]
        if layer.kind == "conv2d":
            w, gamma, beta = next(each)
            y = tuff.conv2d(x, w, stride=layer.stride, padding=layer.padding, layout="nhwc")
            y = tuff.batch_norm_training(y.reshape(-1, y.shape[-1]), gamma, beta).reshape(y.shape)
            if layer.residual:
                y = y + results[layer.residual]
            results[layer.name] = y.relu() if layer.relu else y
        elif layer.kind == "max_pool":
            results[layer.name] = tuff.max_pool(x, layer.kernel, stride=layer.stride, padding=layer.padding, layout="nhwc")
        elif layer.kind == "avg_pool":
            results[layer.name] = tuff.adaptive_avg_pool(x, 1, layout="nhwc").reshape(len(x), -1)
        elif layer.kind == "linear":
            w, _, beta = next(each)
            return tuff.grad.cross_entropy(tuff.matmul(x, w.T) + beta, labels)
    raise AssertionError("no classifier")


def torch_loss(torch: Any, layers: list, parameters: list, image: Any, labels: Any) -> Any:
    f = torch.nn.functional
    results, each = {"image": image}, iter(parameters)
    for layer in layers:
        x = results[layer.source]
        if layer.kind == "conv2d":
            w, gamma, beta = next(each)
            y = f.batch_norm(f.conv2d(x, w, stride=layer.stride, padding=layer.padding), None, None, gamma, beta, True)
            if layer.residual:
                y = y + results[layer.residual]
            results[layer.name] = f.relu(y) if layer.relu else y
        elif layer.kind == "max_pool":
            results[layer.name] = f.max_pool2d(x, layer.kernel, layer.stride, layer.padding)
        elif layer.kind == "avg_pool":
            results[layer.name] = x.mean((2, 3))
        elif layer.kind == "linear":
            w, _, beta = next(each)
            return f.cross_entropy(x @ w.t() + beta, labels)
    raise AssertionError("no classifier")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="path of libtuff.so")
    parser.add_argument("--device", help="as in tuff.Context")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", type=int, default=224, help="height and width of the images (default: 224)")
    parser.add_argument("--profile", action="store_true", help="also where Tuff's time goes")
    options = parser.parse_args()
    torch, tuff, context = beside_torch(options.library, options.device)
    from resnet import CLASSES, resnet50, seeded_weights

    layers = resnet50()
    weights = seeded_weights(layers)
    rng = np.random.default_rng(1)
    own, theirs = [], []
    for layer in layers:
        if layer.name not in weights:
            continue
        filters = weights[layer.name][0].astype(np.float16)
        gamma = np.full(layer.outputs, 0.25 if layer.residual else 1.0, np.float32)
        beta = np.zeros(layer.outputs, np.float32)
        stored = np.ascontiguousarray(filters.transpose(0, 2, 3, 1)) if filters.ndim == 4 else filters
        own.append([context.array(stored, np.float16), *(context.array(v, np.float16) for v in (gamma, beta))])
        tensor = torch.from_numpy(filters).cuda()
        if filters.ndim == 4:
            tensor = tensor.to(memory_format=torch.channels_last)
        norm = torch.float32 if filters.ndim == 4 else torch.float16
        theirs.append([tensor, *(torch.from_numpy(v).to(norm).cuda() for v in (gamma, beta))])
    for group in theirs:
        for tensor in group:
            tensor.requires_grad_(True)
    image = rng.standard_normal((options.batch, 3, options.size, options.size), np.float32).astype(np.float16)
    classes = rng.integers(0, CLASSES, options.batch)
    x, labels = context.array(np.ascontiguousarray(image.transpose(0, 2, 3, 1)), np.float16), context.array(classes, np.int64)
    tx = torch.from_numpy(image).cuda().to(memory_format=torch.channels_last)
    targets = torch.from_numpy(classes).cuda()
    leaves = [tensor for group, layer in zip(theirs, (l for l in layers if l.name in weights)) for tensor in (group if layer.kind == "conv2d" else (group[0], group[2]))]

    def peer() -> Any:
        loss = torch_loss(torch, layers, theirs, tx, targets)
        return loss, torch.autograd.grad(loss, leaves)

    step = tuff.grad.value_and_grad(lambda parameters: tuff_loss(tuff, layers, parameters, x, labels))
    loss, gradients = step(own)
    with context.capture() as graph:
        loss, gradients = step(own)
    graph.launch()
    expected, slopes = peer()
    exact = [[tensor.detach().float().requires_grad_(True) for tensor in group] for group in theirs]
    exact_loss = torch_loss(torch, layers, exact, tx.float(), targets)
    print(f"loss {float(loss.numpy().reshape(-1)[0]):.4f}, PyTorch {expected.item():.4f}, in f32 {exact_loss.item():.4f}")
    references = torch.autograd.grad(exact_loss, [exact[0][0], exact[-1][0]])
    for name, mine, other, reference in (("first filters", gradients[0][0], slopes[0], references[0]), ("classifier", gradients[-1][0], slopes[-2], references[1])):
        mine = mine.numpy().astype(np.float64)
        mine = mine.transpose(0, 3, 1, 2) if mine.ndim == 4 else mine
        right = reference.double().cpu().numpy()
        errors = [np.linalg.norm(one - right) / np.linalg.norm(right) for one in (mine, other.detach().double().cpu().numpy())]
        print(f"gradient of the {name}: error {errors[0]:.1e}, PyTorch {errors[1]:.1e}")
    del exact, exact_loss, references
    each = seconds(graph.launch, context.synchronize, BUDGET)
    other = seconds(peer, torch.cuda.synchronize, BUDGET)
    print(f"f16, batch {options.batch}: {each * 1e3:.2f} ms, {options.batch / each:.0f} images/s; PyTorch {other * 1e3:.2f} ms, "
          f"{options.batch / other:.0f} images/s; ratio {other / each:.2f}")
    if options.profile:
        with context.profile() as profile:
            graph.launch()
            context.synchronize()
        print(profile.table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
