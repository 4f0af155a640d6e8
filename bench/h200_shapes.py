#!/usr/bin/env python3
"""Operations that move, pool, convert and normalise elements, beside PyTorch on one GPU, in one process.

    python3 bench/h200_shapes.py build/release/libtuff.so [--only permute] [--json rows.json]

Each call counts the bytes it must move: inputs read once, outputs written once. Results are compared with PyTorch's
before the row is printed. Without PyTorch only Tuff is measured. TUFF_LIBRARY may name the library instead. A CPU
device gets a hundredth of the work, unless --shrink says otherwise. See bench/h200.py, whose clock this uses.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Sequence

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
import h200  # noqa: E402

NUMPY = {"f32": np.float32, "f16": np.float16, "u32": np.uint32}
BYTES = {"f32": 4, "f16": 2}
ROUNDED = {"f32": 1e-5, "f16": 2e-3}  # allowed relative error (Frobenius norm) of computed results
PLACED = {"f32": 1e-4, "f16": 2e-3}  # and of interpolated ones: PyTorch rounds positions to f32


class Both:
    """The same random elements in one of Tuff's buffers and, with PyTorch, in a tensor."""

    def __init__(self, tuff: Any, torch: Any, count: int) -> None:
        self.tuff, self.torch, self.context = tuff, torch, tuff.Context(os.environ.get("TUFF_DEVICE"))
        self.raw = tuff.raw
        self.gpu = "cuda" if torch and torch.cuda.is_available() else "cpu"
        values = np.random.default_rng(1).random(count, np.float32) * 2 - 1
        short = values.astype(np.float16)
        self.host = {"f32": values, "f16": np.concatenate([short, short[::-1]])}
        self.buffers = {name: self.upload(values) for name, values in self.host.items()}
        self.tensors = {name: self.tensor(values) for name, values in self.host.items()}
        self.out = self.context.alloc(4 * count + 4096)

    def upload(self, values: np.ndarray) -> Any:
        buffer = self.context.alloc(values.nbytes)
        buffer.upload(values)
        return buffer

    def tensor(self, values: np.ndarray) -> Any:
        return self.torch.from_numpy(values).to(self.gpu) if self.torch else None

    # A buffer and a tensor of this shape over the shared random elements, from `first` on.
    def input(self, dtype: str, shape: Sequence[int], first: int = 0) -> tuple[Any, Any]:
        count, size = math.prod(shape), BYTES[dtype]
        tensor = self.tensors[dtype]
        return (self.buffers[dtype].view(first * size, count * size),
                None if tensor is None else tensor[first : first + count].view(*shape))

    # A buffer and a tensor of the given values.
    def vector(self, dtype: str, values: np.ndarray) -> tuple[Any, Any]:
        values = np.ascontiguousarray(values, NUMPY[dtype])
        return self.upload(values), self.tensor(values.view(np.int32) if dtype == "u32" else values)

    def result(self, dtype: str, shape: Sequence[int]) -> Any:
        return self.tensor(self.out.download(np.empty(shape, np.int32 if dtype == "u32" else NUMPY[dtype])))


class Bench:
    def __init__(self, both: Both, budget: float, shrink: int, cpu_time: bool) -> None:
        self.both, self.budget, self.shrink, self.cpu_time = both, budget, shrink, cpu_time
        self.raw, self.torch, self.context = both.raw, both.torch, both.context
        self.wait = self.torch.cuda.synchronize if both.gpu == "cuda" else (lambda: None)
        self.rows: list[dict[str, Any]] = []
        self.failed = False
        self.unit, unit = (1e9, "GB/s") if shrink else (1e12, "TB/s")
        print(f"{'work':<58}{'MB':>9}{'Tuff':>9}{'PyTorch':>9}  {'ratio':>5}  check ({unit})")
        print("-" * 106)

    def seconds(self, call: Callable[[], Any], wait: Callable[[], Any]) -> float:
        """Seconds of one call; with cpu_time, the CPU time that all threads of this process spend on it."""
        if not self.cpu_time:
            return h200.seconds(call, wait, self.budget)
        call()
        wait()
        spent, count = 0.0, 0
        while spent < self.budget or count < 4:
            begin = time.process_time()
            call()
            wait()
            spent, count = spent + time.process_time() - begin, count + 1
        return spent / count

    # Scaled sizes: many() for a total number of elements or rows, edge() for one of a matrix's two sizes.
    def many(self, n: int) -> int:
        return max(1, n >> self.shrink)

    def edge(self, n: int) -> int:
        return max(1, n >> (self.shrink + 1) // 2)

    def number(self, dtype: str) -> int:
        return {"f32": self.raw.F32, "f16": self.raw.F16}[dtype]

    def run(self, name: str, moved: float, function: Any, desc: Any, theirs: Callable[[], Any], dtype: str,
            allowed: float = 0.0, good: Optional[Callable[[Any, Any], bool]] = None) -> None:
        """function(context, desc) writes both.out; theirs() returns the same as a tensor, of `dtype` on Tuff's
        side."""
        handle, check = self.context.handle, self.both.tuff.check

        def ours() -> None:
            status = function(handle, desc)
            if status != 0:
                check(status)

        each = self.seconds(ours, self.context.synchronize)
        other, verdict = None, "-"
        if self.torch:
            expected = theirs()
            got = self.both.result(dtype, expected.shape)
            if good is not None:
                right = good(got, expected)
            elif allowed == 0:
                right = self.torch.equal(got, expected)
            else:
                right = ((got.float() - expected.float()).norm() <= allowed * expected.float().norm()).item()
            del got, expected
            verdict = "ok" if right else "WRONG"
            self.failed |= not right
            other = self.seconds(theirs, self.wait)
        ratio = None if other is None else other / each
        print(f"{name:<58}{moved / 1e6:>9.1f}{moved / each / self.unit:>9.3f}"
              f"{'-' if other is None else f'{moved / other / self.unit:.3f}':>9}"
              f"  {'-' if ratio is None else f'{ratio:.2f}':>5}  {verdict}", flush=True)
        self.rows.append({"work": name, "bytes": moved, "tuff_seconds": each, "torch_seconds": other, "ratio": ratio,
                          "check": verdict})

    def desc(self, kind: str, **fields: Any) -> Any:
        """A structure of tuff.raw; a tuple fills the first elements of an array field."""
        made = getattr(self.raw, kind)()
        for name, value in fields.items():
            if isinstance(value, (tuple, list)):
                getattr(made, name)[: len(value)] = value
            else:
                setattr(made, name, value)
        made.output = self.both.out.handle
        return made

    def copy(self, n: int) -> None:
        x, tensor = self.both.input("f32", (n,))
        copy = lambda context, _: self.raw.tuff_copy_dtod(context, self.both.out.handle, 0, x.handle, 0, 4 * n)
        self.run(f"copy f32 {n}", 8.0 * n, copy, None, lambda: tensor.clone(), "f32")

    def permute(self, dtype: str, shape: tuple[int, ...], order: tuple[int, ...], note: str = "") -> None:
        x, tensor = self.both.input(dtype, shape)
        desc = self.desc("PermuteDesc", dtype=self.number(dtype), input=x.handle, shape=shape, order=order,
                         rank=len(shape))
        self.run(f"permute {dtype} {text(shape)} by {order}{note}", 2.0 * math.prod(shape) * BYTES[dtype],
                 self.raw.tuff_permute_ex, desc, lambda: tensor.permute(order).contiguous(), dtype)

    def pool(self, kind: str, dtype: str, batch: int, channels: int, edge: int, kernel: int, stride: int,
             padding: int) -> None:
        out, shape = (edge + 2 * padding - kernel) // stride + 1, (batch, channels, edge, edge)
        x, tensor = self.both.input(dtype, shape)
        desc = self.desc("PoolDesc", dtype=self.number(dtype), input=x.handle, batch=batch, channels=channels,
                         spatial=2, in_shape=(edge, edge), out_shape=(out, out), kernel=(kernel, kernel),
                         stride=(stride, stride), padding=(padding, padding))
        nn = self.torch and self.torch.nn.functional
        if kind == "max":
            theirs = lambda: nn.max_pool2d(tensor, kernel, stride, padding)
        elif out == 1:
            theirs = lambda: nn.adaptive_avg_pool2d(tensor, 1)
        else:
            theirs = lambda: nn.avg_pool2d(tensor, kernel, stride, padding, count_include_pad=False)
        moved = float(batch * channels * (edge * edge + out * out) * BYTES[dtype])
        self.run(f"{kind}_pool {dtype} {text(shape)} {kernel}x{kernel} s{stride} p{padding}", moved,
                 getattr(self.raw, f"tuff_{kind}_pool"), desc, theirs, dtype, 0 if kind == "max" else ROUNDED[dtype])

    def resize(self, dtype: str, mode: str, batch: int, channels: int, edge: int, out: int, last: bool = False) -> None:
        if not hasattr(self.raw, "tuff_resize"):
            return
        torch, shape = self.torch, (batch, edge, edge, channels) if last else (batch, channels, edge, edge)
        x, tensor = self.both.input(dtype, shape)
        desc = self.desc("ResizeDesc", dtype=self.number(dtype), input=x.handle, batch=batch, channels=channels,
                         spatial=2, in_shape=(edge, edge), out_shape=(out, out),
                         mode=self.raw.RESIZE_NEAREST if mode == "nearest" else self.raw.RESIZE_LINEAR,
                         layout=self.raw.LAYOUT_NHWC if last else self.raw.LAYOUT_NCHW)
        # PyTorch represents channels-last images as strides of the same shape.
        image = tensor.permute(0, 3, 1, 2) if torch and last else tensor
        theirs = lambda: torch.nn.functional.interpolate(image, (out, out), mode=mode)
        check = None
        if last:
            allowed = 0.0 if mode == "nearest" else PLACED[dtype]
            check = lambda got, expected: close(got.view(batch, out, out, channels).permute(0, 3, 1, 2), expected,
                                                allowed)
        self.run(f"resize {mode} {dtype} {text(shape)} to {out}{' channels last' if last else ''}",
                 float(batch * channels * (edge * edge + out * out) * BYTES[dtype]), self.raw.tuff_resize, desc,
                 theirs, dtype, 0 if mode == "nearest" else PLACED[dtype], check)

    def gather(self, dtype: str, entries: int, size: int, count: int) -> None:
        x, table = self.both.input(dtype, (entries, size))
        names, indices = self.both.vector("u32", np.random.default_rng(2).integers(0, entries, count))
        desc = self.desc("GatherDesc", dtype=self.number(dtype), index_type=self.raw.U32, input=x.handle,
                         indices=names.handle, shape=(entries, size), rank=2, axis=0, count=count)
        self.run(f"gather {dtype} {count} rows of {entries} x {size}", 2.0 * count * size * BYTES[dtype] + 4 * count,
                 self.raw.tuff_gather_ex, desc, lambda: self.torch.nn.functional.embedding(indices, table), dtype)

    def rope(self, dtype: str, batch: int, heads: int, seq: int, dim: int) -> None:
        torch, shape = self.torch, (batch, heads, seq, dim)
        x, tensor = self.both.input(dtype, shape)
        desc = self.desc("RopeDesc", dtype=self.number(dtype), input=x.handle, batch=batch, heads=heads, seq=seq,
                         head_dim=dim, base=10000.0)
        angles = np.arange(seq)[:, None] * 10000.0 ** -(np.arange(0, dim, 2) / dim)[None, :]
        angles = np.concatenate([angles, angles], 1)
        _, cosine = self.both.vector(dtype, np.cos(angles))
        _, sine = self.both.vector(dtype, np.sin(angles))

        def theirs() -> Any:
            turned = torch.cat([-tensor[..., dim // 2 :], tensor[..., : dim // 2]], -1)
            return tensor * cosine + turned * sine

        self.run(f"rope {dtype} {text(shape)} (PyTorch: five calls)", 2.0 * math.prod(shape) * BYTES[dtype],
                 self.raw.tuff_rope_ex, desc, theirs, dtype, ROUNDED[dtype])

    def argmax(self, dtype: str, rows: int, cols: int) -> None:
        x, tensor = self.both.input(dtype, (rows, cols))
        desc = self.desc("ReduceDesc", dtype=self.number(dtype), op=self.raw.REDUCE_ARGMAX, input=x.handle,
                         shape=(rows, cols), rank=2, axis=1)
        # If several elements are equal, PyTorch may return any of their indices.
        at = lambda places: tensor.gather(1, places.long().view(rows, 1))
        self.run(f"argmax {dtype} {rows} x {cols}", float(rows * cols * BYTES[dtype] + 4 * rows),
                 self.raw.tuff_reduce_ex, desc, lambda: self.torch.argmax(tensor, 1), "u32",
                 good=lambda got, expected: self.torch.equal(at(got), at(expected)))

    def cast(self, source: str, target: str, n: int) -> None:
        x, tensor = self.both.input(source, (n,))
        desc = self.desc("CastDesc", input_type=self.number(source), output_type=self.number(target), n=n,
                         input=x.handle)
        to = {"f32": "float32", "f16": "float16"}[target]
        self.run(f"cast {source} to {target} {n}", float(n * (BYTES[source] + BYTES[target])), self.raw.tuff_cast_ex,
                 desc, lambda: tensor.to(getattr(self.torch, to)), target)

    def concat(self, dtype: str, shapes: Sequence[tuple[int, ...]], axis: int) -> None:
        parts, first = [], 0
        for shape in shapes:
            parts.append(self.both.input(dtype, shape, first))
            first += math.prod(shape)
        sizes = [shape[axis] for shape in shapes]
        whole = list(shapes[0])
        whole[axis] = sum(sizes)
        desc = self.desc("ConcatDesc", dtype=self.number(dtype), inputs=h200.u64s(x.handle for x, _ in parts),
                         count=len(parts), rank=len(whole), axis=axis, shape=whole)
        desc.sizes = h200.u64s(sizes)
        tensors = [tensor for _, tensor in parts]
        self.run(f"concat {dtype} {' and '.join(map(text, shapes))} axis {axis}", 2.0 * first * BYTES[dtype],
                 self.raw.tuff_concat_ex, desc, lambda: self.torch.cat(tensors, axis), dtype)

    def slice(self, dtype: str, shape: tuple[int, int], first: int, step: int, count: int) -> None:
        x, tensor = self.both.input(dtype, shape)
        desc = self.desc("SliceDesc", dtype=self.number(dtype), input=x.handle, shape=shape, start=(0, first),
                         step=(1, step), out_shape=(shape[0], count), rank=2)
        end = first + step * (count - 1) + 1
        self.run(f"slice {dtype} {text(shape)} [:, {first}:{end}:{step}]", 2.0 * shape[0] * count * BYTES[dtype],
                 self.raw.tuff_slice_ex, desc, lambda: tensor[:, first:end:step].clone(
                     memory_format=self.torch.contiguous_format), dtype)

    def add(self, dtype: str, shape: tuple[int, ...], other: tuple[int, ...]) -> None:
        count = math.prod(shape)
        (a, x), (b, y) = self.both.input(dtype, shape), self.both.input(dtype, other, 1024)
        desc = self.desc("BinaryDesc", dtype=self.number(dtype), op=self.raw.BINARY_ADD, a=a.handle, b=b.handle,
                         rank=len(shape), a_shape=shape, b_shape=other)
        self.run(f"add {dtype} {text(shape)} and {text(other)}", float((2 * count + math.prod(other)) * BYTES[dtype]),
                 self.raw.tuff_binary_ex, desc, lambda: x + y, dtype, ROUNDED[dtype])

    def softmax(self, kind: str, dtype: str, rows: int, cols: int) -> None:
        x, tensor = self.both.input(dtype, (rows, cols))
        desc = self.desc("SoftmaxDesc", dtype=self.number(dtype), input=x.handle, shape=(rows, cols), rank=2, axis=1,
                         scale=1.0, logarithm=int(kind == "log_softmax"))
        self.run(f"{kind} {dtype} {rows} x {cols}", 2.0 * rows * cols * BYTES[dtype], self.raw.tuff_softmax_ex, desc,
                 lambda: getattr(self.torch, kind)(tensor, 1), dtype, ROUNDED[dtype])

    def norm(self, kind: str, dtype: str, rows: int, cols: int) -> None:
        x, tensor = self.both.input(dtype, (rows, cols))
        values = np.random.default_rng(3).uniform(0.5, 1.5, (2, cols))
        (weight, w), (bias, b) = self.both.vector(dtype, values[0]), self.both.vector(dtype, values[1])
        fields = {"dtype": self.number(dtype), "weight_type": self.number(dtype), "input": x.handle, "rows": rows,
                  "cols": cols, "epsilon": 1e-5, "weight": weight.handle}
        nn = self.torch and self.torch.nn.functional
        if kind == "layer_norm":
            desc = self.desc("LayerNormDesc", bias=bias.handle, **fields)
            theirs = lambda: nn.layer_norm(tensor, (cols,), w, b, 1e-5)
        else:
            desc = self.desc("RmsNormDesc", **fields)
            theirs = lambda: nn.rms_norm(tensor, (cols,), w, 1e-5)
        self.run(f"{kind} {dtype} {rows} x {cols}", 2.0 * rows * cols * BYTES[dtype],
                 getattr(self.raw, f"tuff_{kind}_ex"), desc, theirs, dtype, ROUNDED[dtype])

    def batch_norm(self, dtype: str, batch: int, channels: int, edge: int) -> None:
        shape = (batch, channels, edge, edge)
        x, tensor = self.both.input(dtype, shape)
        values = np.random.default_rng(4).uniform(0.5, 1.5, (4, channels))
        given = [self.both.vector(dtype, row) for row in values]
        mean, variance, weight, bias = (tensor for _, tensor in given)
        desc = self.desc("BatchNormDesc", dtype=self.number(dtype), weight_type=self.number(dtype), input=x.handle,
                         batch=batch, channels=channels, inner=edge * edge, epsilon=1e-5)
        desc.mean, desc.variance, desc.weight, desc.bias = (buffer.handle for buffer, _ in given)
        nn = self.torch and self.torch.nn.functional
        self.run(f"batch_norm {dtype} {text(shape)}", 2.0 * math.prod(shape) * BYTES[dtype],
                 self.raw.tuff_batch_norm_ex, desc,
                 lambda: nn.batch_norm(tensor, mean, variance, weight, bias, False, 0.1, 1e-5), dtype, ROUNDED[dtype])

    def jobs(self) -> Iterator[tuple[str, Callable[[], None]]]:
        many, edge = self.many, self.edge
        yield "copy", lambda: self.copy(many(1 << 26))
        for t in ("f32", "f16"):
            yield "permute", lambda: self.permute(t, (edge(8192), edge(8192)), (1, 0))
            yield "permute", lambda: self.permute(t, (many(32), 256, 56, 56), (0, 2, 3, 1), " (NHWC)")
            yield "permute", lambda: self.permute(t, (many(32), 56, 56, 256), (0, 3, 1, 2), " (NCHW)")
            yield "permute", lambda: self.permute(t, (4, edge(4096), 32, edge(128)), (0, 2, 1, 3), " (heads)")
        yield "permute", lambda: self.permute("f32", (many(4096), 3, 64, 64), (0, 2, 3, 1))
        for t in ("f32", "f16"):
            yield "max_pool", lambda: self.pool("max", t, many(32), 64, 112, 3, 2, 1)
            yield "avg_pool", lambda: self.pool("avg", t, many(32), 64, 112, 3, 2, 1)
            yield "avg_pool", lambda: self.pool("avg", t, many(32), 64, 112, 2, 2, 0)
            yield "avg_pool", lambda: self.pool("avg", t, many(32), 2048, 7, 7, 1, 0)
        for t in ("f32", "f16"):
            for mode in ("nearest", "bilinear"):
                yield "resize", lambda: self.resize(t, mode, many(32), 64, 64, 128)
                yield "resize", lambda: self.resize(t, mode, many(32), 64, 64, 128, True)
        yield "resize", lambda: self.resize("f32", "bilinear", many(32), 64, 128, 96)
        yield "resize", lambda: self.resize("f32", "bilinear", many(64), 3, 512, 224)
        for t in ("f32", "f16"):
            yield "gather", lambda: self.gather(t, many(50000), 1024, many(65536))
        yield "gather", lambda: self.gather("f32", many(1000000), 64, many(1 << 20))
        for t in ("f32", "f16"):
            yield "rope", lambda: self.rope(t, 4, many(32), 4096, 128)
        for t in ("f32", "f16"):
            yield "argmax", lambda: self.argmax(t, many(65536), 1024)
            yield "argmax", lambda: self.argmax(t, many(512), 131072)
        yield "cast", lambda: self.cast("f32", "f16", many(1 << 26))
        yield "cast", lambda: self.cast("f16", "f32", many(1 << 26))
        for t in ("f32", "f16"):
            yield "concat", lambda: self.concat(t, [(many(8192), 4096)] * 2, 0)
            yield "concat", lambda: self.concat(t, [(many(16384), 1024), (many(16384), 2048)], 1)
            yield "concat", lambda: self.concat(t, [(many(32), 256, 56, 56)] * 2, 1)
            yield "slice", lambda: self.slice(t, (many(16384), 4096), 64, 1, 3968)
            yield "slice", lambda: self.slice(t, (many(16384), 4096), 1, 1, 4095)
            yield "slice", lambda: self.slice(t, (many(16384), 4096), 0, 2, 2048)
            yield "add", lambda: self.add(t, (many(65536), 1024), (1, 1024))
            yield "add", lambda: self.add(t, (many(65536), 1024), (many(65536), 1))
            yield "add", lambda: self.add(t, (many(32), 256, 56, 56), (1, 256, 1, 1))
        for t in ("f32", "f16"):
            for cols in (128, 1024, 4096, 32768, 131072):
                rows = max(1, many(1 << 26) // cols)
                for kind in ("softmax", "log_softmax"):
                    yield kind, lambda: self.softmax(kind, t, rows, cols)
                for kind in ("layer_norm", "rms_norm"):
                    yield kind, lambda: self.norm(kind, t, rows, cols)
            yield "batch_norm", lambda: self.batch_norm(t, many(32), 256, 56)


def text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def close(got: Any, expected: Any, allowed: float) -> bool:
    return ((got.float() - expected.float()).norm() <= allowed * expected.float().norm()).item()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?", help="path of libtuff.so (default: what TUFF_LIBRARY names)")
    parser.add_argument("--only", default="", help="rows whose name has this in it: permute, pool, norm…")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each measurement (default: 0.1)")
    parser.add_argument("--shrink", type=int, help="halve the work so many times (default: 0, or 7 on a CPU)")
    parser.add_argument("--cpu-time", action="store_true", help="per second of CPU time, for shared machines")
    parser.add_argument("--json", help="also write the rows to this file")
    options = parser.parse_args()
    if options.library:
        os.environ["TUFF_LIBRARY"] = str(Path(options.library).resolve())
    import tuff

    try:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        torch.set_grad_enabled(False)
    except ImportError:
        torch = None
    begin = time.time()
    with tuff.Context() as probe:
        device = probe.device
    shrink = options.shrink if options.shrink is not None else 7 if device.type in ("cpu", "host") else 0
    both = Both(tuff, torch, max(1 << 26 >> shrink, 1 << 22))
    peer = "none" if torch is None else f"{torch.__version__} on " + (
        torch.cuda.get_device_name() if both.gpu == "cuda" else "its CPU path")
    print(f"Tuff on {device.name} ({device.driver}); PyTorch {peer}" + (f"; shrunk {shrink} times" if shrink else ""))
    bench = Bench(both, options.seconds, shrink, options.cpu_time)
    for name, job in bench.jobs():
        if options.only in name:
            job()
    print(f"\n{time.time() - begin:.0f} s; ratio: how many times faster Tuff is")
    if options.json:
        rows = {"device": device.name, "driver": device.driver, "torch": torch and torch.__version__, "rows": bench.rows}
        Path(options.json).write_text(json.dumps(rows, indent=2) + "\n")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
