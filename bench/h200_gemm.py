#!/usr/bin/env python3
"""GEMMs of every type beside PyTorch (cuBLAS) on one GPU, in one process.

    python3 bench/h200_gemm.py build/release/libtuff.so [--only f16] [--json rows.json]

The shapes are those of bench/shapes/gemm_h200.txt. Each result is checked. Skinny GEMMs are reported in bytes per
second, since they are memory-bound. See bench/h200.py, whose parts this uses.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from ctypes import byref, c_double, c_int32, c_uint32, c_uint64
from pathlib import Path
from typing import Any

import h200

# tf32: f32 with the permission to use TF32, for both sides.
# f8, fast8: E4M3 with a scale for each operand; fast8 with sums of 13 bits, as PyTorch's use_fast_accum.
DTYPES = {"f32": 1, "tf32": 1, "f16": 2, "bf16": 3, "f64": 4, "i32": 5, "i8": 7, "f8": 14, "fast8": 14}
BYTES = {"f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "f64": 8, "i32": 4, "i8": 1, "f8": 1, "fast8": 1}


class GemmDesc(ctypes.Structure):
    """tuff_batched_gemm_desc."""

    _fields_ = ([("struct_size", c_uint32)] + [(n, c_int32) for n in ("dtype", "ta", "tb")]
                + [(n, c_uint64) for n in ("m", "n", "k")] + [("alpha", c_double), ("beta", c_double)]
                + [(n, c_uint64) for n in ("a", "b", "c", "lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c",
                                           "batch_count")]
                + [(n, c_int32) for n in ("a_type", "b_type", "c_type", "accumulate", "precision", "activation",
                                          "bias_axis", "reserved")]
                + [(n, c_uint64) for n in ("bias", "residual", "ld_residual", "stride_bias", "stride_residual",
                                           "a_array", "b_array", "c_array", "scale_a", "scale_b", "scale_c")])


def torch_type(torch: Any, name: str) -> Any:
    return {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64,
            "i32": torch.int32, "i8": torch.int8, "f8": torch.float8_e4m3fn, "fast8": torch.float8_e4m3fn}[name]


class Bench:
    def __init__(self, torch: Any, tuff: h200.Tuff, budget: float) -> None:
        self.torch, self.tuff, self.budget, self.report = torch, tuff, budget, h200.Report()
        tuff.library.tuff_batched_gemm_ex.argtypes = [c_uint64, ctypes.c_void_p]
        tuff.library.tuff_batched_gemm_ex.restype = c_int32
        torch.manual_seed(1)

    def upload(self, values: Any) -> c_uint64:
        raw = values.contiguous().view(self.torch.uint8).cpu().numpy()
        buffer = c_uint64()
        self.tuff.call("alloc", self.tuff.context, raw.nbytes, byref(buffer))
        self.tuff.call("copy_htod", self.tuff.context, buffer, 0, raw.ctypes.data, raw.nbytes)
        return buffer

    def row(self, in_type: str, c_type: str, transposes: str, batch: int, m: int, n: int, k: int) -> None:
        torch, tuff = self.torch, self.tuff
        ta, tb = transposes[0] == "T", transposes[1] == "T"
        kind, c_kind = torch_type(torch, in_type), torch_type(torch, c_type)

        def operand(rows: int, cols: int) -> Any:
            shape = (batch, rows, cols)
            if in_type == "i8":
                return torch.randint(-127, 128, shape, device="cuda", dtype=torch.int8)
            return torch.empty(shape, device="cuda").uniform_(-1, 1).to(kind)

        a, b = operand(*((k, m) if ta else (m, k))), operand(*((n, k) if tb else (k, n)))
        op_a, op_b = a.transpose(1, 2) if ta else a, b.transpose(1, 2) if tb else b
        da, db, dc = self.upload(a), self.upload(b), c_uint64()
        tuff.call("alloc", tuff.context, batch * m * n * BYTES[c_type], byref(dc))
        desc = GemmDesc(struct_size=ctypes.sizeof(GemmDesc), dtype=DTYPES[in_type], ta=ta, tb=tb, m=m, n=n, k=k,
                        alpha=1, a=da.value, b=db.value, c=dc.value, stride_a=m * k, stride_b=k * n, stride_c=m * n,
                        batch_count=batch, c_type=DTYPES[c_type], precision=4 if in_type == "tf32" else 0)
        short, scales = in_type in ("f8", "fast8"), [torch.tensor([x], device="cuda") for x in (0.5, 0.25)]
        if short:
            buffers = [self.upload(scale) for scale in scales]
            desc.scale_a, desc.scale_b = buffers[0].value, buffers[1].value
            desc.accumulate = DTYPES["f16"] if in_type == "fast8" else 0
        torch.backends.cuda.matmul.allow_tf32 = in_type == "tf32"
        ours = h200.seconds(lambda: tuff.call("batched_gemm_ex", tuff.context, byref(desc)), tuff.synchronize,
                            self.budget)
        theirs = None
        if in_type == "i8":
            if batch == 1 and m > 16:
                theirs = h200.seconds(lambda: torch._int_mm(op_a[0], op_b[0]), torch.cuda.synchronize, self.budget)
        elif short:
            if transposes == "NT" and batch == 1 and m > 16:
                product = lambda: torch._scaled_mm(op_a[0], op_b[0], scales[0], scales[1], out_dtype=c_kind,
                                                   use_fast_accum=in_type == "fast8")
                theirs = h200.seconds(product, torch.cuda.synchronize, self.budget)
        else:
            product = (lambda: op_a[0] @ op_b[0]) if batch == 1 else (lambda: torch.bmm(op_a, op_b))
            theirs = h200.seconds(product, torch.cuda.synchronize, self.budget)

        # Compares three rows of the last matrix (first, middle and last) with f64.
        got = torch.empty((batch, m, n), dtype=c_kind)
        raw = got.view(torch.uint8).numpy()
        tuff.call("copy_dtoh", tuff.context, raw.ctypes.data, dc, 0, raw.nbytes)
        rows = [0, m // 2, m - 1]
        expected = op_a[-1][rows].double() @ op_b[-1].double() * (0.125 if short else 1)
        error = h200.frobenius(got[-1][rows].to("cuda"), expected)
        unit = {"f32": 2**-24, "f16": 2**-11, "bf16": 2**-8, "f64": 2**-53, "i32": 0}[c_type]
        # Rounding errors of random sign grow as sqrt(k); tensor cores may truncate each sum of sixteen products
        # instead.
        if in_type == "tf32":
            unit = 2**-10  # of the inputs, which are shortened, not rounded
        if short:
            unit = max(unit, 2**-11 if in_type == "f8" else 2**-8)  # sums of 128 products, or of all, have 13 bits
        allowed = unit if c_type in ("f16", "bf16") or in_type == "tf32" or short else unit * (k / 16 if in_type != c_type else k**0.5)
        name = f"{in_type}->{c_type} {transposes} " + (f"{batch} x " if batch > 1 else "") + f"{m}x{n}x{k}"
        bound_by_memory = min(m, n) <= 16
        work = (batch * ((m * k + k * n) * BYTES[in_type] + m * n * BYTES[c_type]) if bound_by_memory
                else 2.0 * batch * m * n * k)
        self.report.row(name, work, "B/s" if bound_by_memory else "FLOP/s", ours, theirs, error, allowed)
        tuff.free(da, db, dc, *(buffers if short else ()))
        torch.cuda.empty_cache()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="path of libtuff.so")
    parser.add_argument("--device", help="index or part of the name of Tuff's device (default: the best)")
    parser.add_argument("--only", default="", help="rows with this in them: f16, 8192, TN…")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each measurement (default: 0.3)")
    parser.add_argument("--json", help="also write the rows to this file")
    options = parser.parse_args()
    import torch

    tuff = h200.Tuff(options.library, options.device)
    info = tuff.info()
    print(f"Tuff on {info.name.decode()} ({info.driver.decode()}); PyTorch {torch.__version__} on "
          f"{torch.cuda.get_device_name()}, TF32 only in its own rows")
    bench, begin = Bench(torch, tuff, options.seconds), time.time()
    for line in (Path(__file__).parent / "shapes" / "gemm_h200.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line and options.only in line:
            in_type, c_type, transposes, *sizes = line.split()
            bench.row(in_type, c_type, transposes, *map(int, sizes))
    print(f"\n{time.time() - begin:.0f} s; ratio: how many times faster Tuff is; error: relative, Frobenius norm")
    if options.json:
        Path(options.json).write_text(json.dumps({"device": info.name.decode(), "driver": info.driver.decode(),
                                                  "torch": torch.__version__, "rows": bench.report.rows},
                                                 indent=2) + "\n")
    return 1 if bench.report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
