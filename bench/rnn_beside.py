#!/usr/bin/env python3
"""Layers of recurrent networks beside ONNX Runtime's CPU provider, in one process.

    python3 bench/rnn_beside.py [--backend vulkan] [--cell lstm|gru|rnn] [--steps 50] [--calls 15] [--threads 2]

Needs the packages onnx and onnxruntime. Each row is a layer with as many inputs as units. Both are called in turn, with
the result waited for, and the least time of a call counts. Prints the CPU time of a step, of all threads of the process
together, which hardly depends on what else the machine does, and the wall time, which does; then Tuff's CPU time divided
by ONNX Runtime's: above 1, Tuff is slower. The outputs are compared first.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

try:
    import tuff
except ImportError:  # not installed: the package of this checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
    import tuff

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
LAYERS = [(1, 32), (1, 64), (8, 64), (8, 128), (8, 256), (32, 64), (32, 256), (32, 512)]


def session(cell: str, steps: int, batch: int, hidden: int, weights: dict, threads: int) -> onnxruntime.InferenceSession:
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()]
    extra = {"linear_before_reset": 1} if cell == "gru" else {}
    node = helper.make_node(cell.upper(), ["x", "w", "r", "b"], ["y"], hidden_size=hidden, **extra)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, hidden])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [steps, 1, batch, hidden])
    model = helper.make_model(helper.make_graph([node], "layer", [x], [y], tensors), opset_imports=[helper.make_opsetid("", 14)])
    model.ir_version = 8
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that wait for work do not turn in circles: their CPU time would count.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def timed(call) -> tuple:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--backend", default="vulkan")
    parser.add_argument("--cell", choices=list(GATES), default="lstm")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--calls", type=int, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    data, gates, steps = np.random.default_rng(1), GATES[given.cell], given.steps
    with tuff.Context(backend=given.backend) as ctx:
        print(f"{ctx}, ONNX Runtime {onnxruntime.__version__}, {given.cell}, {steps} steps, "
              f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; µs of a step")  # fmt: skip
        print(f"{'batch':>5} {'units':>5} | {'Tuff, CPU':>10} {'wall':>8} | {'ONNX, CPU':>10} {'wall':>8} | {'ratio':>6}")
        for batch, hidden in LAYERS:
            scale = 1 / np.sqrt(hidden)
            weights = {"w": (1, gates * hidden, hidden), "r": (1, gates * hidden, hidden), "b": (1, 2 * gates * hidden)}
            weights = {name: data.uniform(-scale, scale, shape).astype(np.float32) for name, shape in weights.items()}
            values = data.uniform(-1, 1, (steps, batch, hidden)).astype(np.float32)
            theirs = session(given.cell, steps, batch, hidden, weights, given.threads)
            x, bias = ctx.array(values), weights["b"].reshape(2, 1, -1)
            layer = tuff.RnnLayer(*(ctx.array(np.ascontiguousarray(a)) for a in (weights["w"], weights["r"], bias[0], bias[1])))

            def ours():
                if given.cell == "lstm":
                    y = tuff.lstm(x, layer, order="onnx")[0]
                elif given.cell == "gru":
                    y = tuff.gru(x, layer, order="onnx")[0]
                else:
                    y = tuff.rnn(x, layer)[0]
                ctx.synchronize()
                return y

            feeds = {"x": values}
            difference = np.abs(ours().numpy() - theirs.run(None, feeds)[0][:, 0]).max()
            if not difference < 1e-4:
                raise SystemExit(f"batch {batch}, {hidden} units: the outputs differ by {difference}")
            times = np.array([timed(ours) + timed(lambda: theirs.run(None, feeds)) for _ in range(given.calls)])
            a, b, c, d = times.min(axis=0) / steps * 1e6
            print(f"{batch:5} {hidden:5} | {a:10.1f} {b:8.1f} | {c:10.1f} {d:8.1f} | {a / c:6.2f}", flush=True)


if __name__ == "__main__":
    main()
