#!/usr/bin/env python3
"""ResNet-50 and MiniLM beside ONNX Runtime's CPU provider, in one process.

    python3 bench/onnx_beside.py [--backend cpu] [--threads 2] [--calls 7] [--only resnet] [--eager] [--profile]

Needs the packages onnx and onnxruntime. The networks are those of examples/resnet and examples/semantic_search, with
weights from a seed; ONNX Runtime gets the same graphs and weights. Tuff launches a captured graph, as ONNX Runtime runs
one that it has prepared; with --eager, Python makes each call anew, which takes a few milliseconds. Both are called in turn, with the result waited for,
and the least time of a call counts. Prints the CPU time of a call, of all threads of the process together, which hardly
depends on what else the machine does, and the wall time, which does; then ONNX Runtime's times divided by Tuff's: below
1, Tuff is slower. The outputs are compared first.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--backend", default="cpu")
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--calls", type=int, default=7)
parser.add_argument("--only", default="", metavar="NAME", help="networks whose name contains this")
parser.add_argument("--eager", action="store_true", help="no graph: each call from Python")
parser.add_argument("--profile", action="store_true", help="where Tuff's time goes")
given = parser.parse_args()
# Threads that wait for work do not turn in circles, here and in ONNX Runtime: their CPU time would count.
os.environ.update(OMP_NUM_THREADS=str(given.threads), OMP_WAIT_POLICY="passive")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
try:
    import tuff
except ImportError:  # not installed: the package of this checkout
    sys.path.insert(0, str(ROOT / "python"))
    import tuff
sys.path += [str(ROOT / "examples" / name) for name in ("resnet", "semantic_search")]
import resnet  # noqa: E402
from encoder import Encoder  # noqa: E402


class Graph:
    """A graph in the making: nodes, and the weights that they name."""

    def __init__(self):
        self.nodes, self.tensors = [], []

    def weight(self, name, value):
        self.tensors.append(onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def session(self, inputs, output):
        """inputs: arrays by name."""
        given_inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in inputs.items()
        ]
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "network", given_inputs, [result], self.tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        model.ir_version = 9
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = given.threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def prepared(ctx, network):
    """A call of a network on the device, with the result fetched."""
    network().numpy()  # everything that the first call prepares
    if given.eager:
        return lambda: network().numpy()
    with ctx.capture() as graph:
        result = network()

    def call():
        graph.launch()
        return result.numpy()

    return call


def resnet_graph(layers, weights):
    graph = Graph()
    for layer in layers:
        operands = [layer.source]
        if layer.name in weights:
            operands += [graph.weight(f"{layer.name} {i}", part) for i, part in enumerate(weights[layer.name])]
        if layer.kind == "conv2d":
            sums = layer.name + " sums" if layer.residual or layer.relu else layer.name
            sizes = {"strides": [layer.stride] * 2, "pads": [layer.padding] * 4, "kernel_shape": [layer.kernel] * 2}
            graph.add("Conv", operands, sums, **sizes)
            if layer.residual:
                sums = graph.add("Add", [sums, layer.residual], layer.name + " both")
            if layer.relu:
                graph.add("Relu", [sums], layer.name)
        elif layer.kind == "max_pool":
            sizes = {"strides": [layer.stride] * 2, "pads": [layer.padding] * 4, "kernel_shape": [layer.kernel] * 2}
            graph.add("MaxPool", operands, layer.name, **sizes)
        elif layer.kind == "avg_pool":
            graph.add("Flatten", [graph.add("GlobalAveragePool", operands, "means")], layer.name)
        elif layer.kind == "linear":
            graph.add("Gemm", operands, layer.name, transB=1)
        else:
            graph.add("Softmax", operands, layer.name, axis=1)
    return graph


def resnet50(ctx, batch):
    layers = resnet.resnet50()
    weights = resnet.seeded_weights(layers)
    image = np.random.default_rng(6).standard_normal((batch, 3, 224, 224), np.float32)
    network, x = resnet.Network(ctx, layers, weights, np.float32), ctx.array(image)
    session = resnet_graph(layers, weights).session({"image": image}, layers[-1].name)
    return prepared(ctx, lambda: network(x)), lambda: session.run(None, {"image": image})[0]


class MiniLm:
    """A model of all-MiniLM-L6-v2's sizes with weights from a seed."""

    def __init__(self):
        size, inner, layers, words, positions = 384, 1536, 6, 30522, 512
        self.config = {"hidden_size": size, "num_attention_heads": 12, "num_hidden_layers": layers, "layer_norm_eps": 1e-12}
        rng = np.random.default_rng(7)
        self.tensors = {}

        def matrix(name, rows, columns, bias=True):
            scale = 1.5 / np.sqrt(columns) if bias else 1
            self.tensors[f"{name}.weight"] = rng.standard_normal((rows, columns), np.float32) * np.float32(scale)
            if bias:
                self.tensors[f"{name}.bias"] = rng.standard_normal(rows, np.float32) * np.float32(0.2)

        def norm(name):
            for part, first in (("weight", 1), ("bias", 0)):
                self.tensors[f"{name}.{part}"] = first + np.float32(0.2) * rng.standard_normal(size, np.float32)

        for name, entries in (("word", words), ("position", positions), ("token_type", 2)):
            matrix(f"embeddings.{name}_embeddings", entries, size, bias=False)
        norm("embeddings.LayerNorm")
        for layer in (f"encoder.layer.{index}" for index in range(layers)):
            for part in ("self.query", "self.key", "self.value", "output.dense"):
                matrix(f"{layer}.attention.{part}", size, size)
            norm(f"{layer}.attention.output.LayerNorm")
            matrix(f"{layer}.intermediate.dense", inner, size)
            matrix(f"{layer}.output.dense", size, inner)
            norm(f"{layer}.output.LayerNorm")

    def __getitem__(self, name):
        return self.tensors[name]


def encoder_graph(model, seq):
    """Inputs: ids (batch, seq), mask (batch, 1, 1, seq), added to the scores, and mean (batch, 1, seq)."""
    graph, size, heads = Graph(), model.config["hidden_size"], model.config["num_attention_heads"]
    split = graph.weight("split", np.array([0, 0, heads, size // heads]))
    joined = graph.weight("joined", np.array([0, 0, size]))
    scale = graph.weight("scale", np.float32(np.sqrt(size // heads)))

    def linear(name, x, into):
        weight = graph.weight(f"{name}.weight", model[f"{name}.weight"].T)
        bias = graph.weight(f"{name}.bias", model[f"{name}.bias"])
        return graph.add("Add", [graph.add("MatMul", [x, weight], f"{into} product"), bias], into)

    def norm(name, x, into):
        parts = [graph.weight(f"{name}.{part}", model[f"{name}.{part}"]) for part in ("weight", "bias")]
        return graph.add("LayerNormalization", [x, *parts], into, epsilon=model.config["layer_norm_eps"])

    def split_heads(x, into, perm):
        return graph.add("Transpose", [graph.add("Reshape", [x, split], f"{into} split")], into, perm=perm)

    words = graph.weight("words", model["embeddings.word_embeddings.weight"])
    positions = model["embeddings.position_embeddings.weight"][:seq] + model["embeddings.token_type_embeddings.weight"][0]
    x = graph.add("Add", [graph.add("Gather", [words, "ids"], "found"), graph.weight("positions", positions)], "embedded")
    x = norm("embeddings.LayerNorm", x, "embedded norm")
    for layer in (f"encoder.layer.{index}" for index in range(model.config["num_hidden_layers"])):
        q, k, v = (
            split_heads(linear(f"{layer}.attention.self.{part}", x, f"{layer} {part}"), f"{layer} {part} heads", perm)
            for part, perm in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )
        scores = graph.add("Div", [graph.add("MatMul", [q, k], f"{layer} qk"), scale], f"{layer} scores")
        weights = graph.add("Softmax", [graph.add("Add", [scores, "mask"], f"{layer} masked")], f"{layer} weights", axis=-1)
        seen = graph.add("Transpose", [graph.add("MatMul", [weights, v], f"{layer} seen")], f"{layer} rows", perm=[0, 2, 1, 3])
        seen = graph.add("Reshape", [seen, joined], f"{layer} joined")
        y = linear(f"{layer}.attention.output.dense", seen, f"{layer} projected")
        x = norm(f"{layer}.attention.output.LayerNorm", graph.add("Add", [y, x], f"{layer} sum 1"), f"{layer} norm 1")
        y = graph.add("Gelu", [linear(f"{layer}.intermediate.dense", x, f"{layer} wide")], f"{layer} gelu")
        y = linear(f"{layer}.output.dense", y, f"{layer} narrow")
        x = norm(f"{layer}.output.LayerNorm", graph.add("Add", [y, x], f"{layer} sum 2"), f"{layer} norm 2")
    graph.add("LpNormalization", [graph.add("MatMul", ["mean", x], "pooled")], "vectors", axis=-1, p=2)
    return graph


def minilm(ctx, batch, seq):
    model, rng = MiniLm(), np.random.default_rng(8)
    lengths = rng.integers(max(2, seq - 15), seq + 1, batch)  # texts of similar length are encoded together
    lengths[0] = seq
    texts = [rng.integers(1, 30522, length) for length in lengths]
    ids = np.zeros((batch, seq), np.int64)
    for row, text in zip(ids, texts):
        row[: len(text)] = text
    there = np.arange(seq) < lengths[:, None]
    feeds = {
        "ids": ids,
        "mask": np.where(there, 0, -np.inf).astype(np.float32)[:, None, None],
        "mean": (there / lengths[:, None]).astype(np.float32)[:, None],
    }
    encoder, session = Encoder(ctx, model), encoder_graph(model, seq).session(feeds, "vectors")
    inputs = encoder.inputs(texts)
    return prepared(ctx, lambda: encoder.encode(*inputs)), lambda: session.run(None, feeds)[0][:, 0]


NETWORKS = {
    "resnet50 batch 1": lambda ctx: resnet50(ctx, 1),
    "resnet50 batch 8": lambda ctx: resnet50(ctx, 8),
    "minilm 1 x 16": lambda ctx: minilm(ctx, 1, 16),
    "minilm 1 x 128": lambda ctx: minilm(ctx, 1, 128),
    "minilm 32 x 64": lambda ctx: minilm(ctx, 32, 64),
    "minilm 8 x 256": lambda ctx: minilm(ctx, 8, 256),
}


def timed(call) -> tuple:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    with tuff.Context(backend=given.backend) as ctx:
        print(f"{ctx.device.name}, {ctx.device.driver}; ONNX Runtime {onnxruntime.__version__}; {given.threads} threads, "
              f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; ms of a call")  # fmt: skip
        print(f"{'':18} | {'Tuff, CPU':>10} {'wall':>8} | {'ONNX, CPU':>10} {'wall':>8} | {'CPU':>6} {'wall':>6}")
        for name, make in NETWORKS.items():
            if given.only not in name:
                continue
            ours, theirs = make(ctx)
            # Both are sums in f32. Probabilities and the elements of unit vectors are at most 1.
            difference = np.abs(ours() - theirs()).max()
            if not difference < 1e-4:
                raise SystemExit(f"{name}: the outputs differ by {difference}")
            times = np.array([timed(ours) + timed(theirs) for _ in range(given.calls)])
            a, b, c, d = times.min(axis=0) * 1e3
            print(f"{name:18} | {a:10.2f} {b:8.2f} | {c:10.2f} {d:8.2f} | {c / a:6.2f} {d / b:6.2f}", flush=True)
            if given.profile:
                with ctx.profile() as profile:
                    ours()
                print(profile.table())


if __name__ == "__main__":
    main()
