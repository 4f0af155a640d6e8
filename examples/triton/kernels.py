"""Two kernels in Triton, and their compilation to PTX. Run as a program, it compiles one and writes it as JSON:

    python3 examples/triton/kernels.py softmax

It imports Triton, which need not be installed where the kernels run.
"""

import json
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    """One row of a matrix."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    weights = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + at, weights / tl.sum(weights, axis=0), mask=inside)


@triton.jit
def matmul(a, b, c, m, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """One tile of C = A B, with matrices of 16-bit numbers and sums in f32."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, k, DEPTH):
        left = (rows[:, None] < m) & (start + depth[None, :] < k)
        right = (start + depth[:, None] < k) & (columns[None, :] < n)
        tile_a = tl.load(a + rows[:, None] * k + start + depth[None, :], mask=left, other=0.0)
        tile_b = tl.load(b + (start + depth[:, None]) * n + columns[None, :], mask=right, other=0.0)
        sums = tl.dot(tile_a, tile_b, sums)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(tl.float16), mask=inside)


KERNELS = {
    "softmax": (
        softmax,
        {"x": "*fp32", "y": "*fp32", "columns": "i32", "BLOCK": "constexpr"},
        {"BLOCK": 1024},
        {"num_warps": 4},
    ),
    "matmul": (
        matmul,
        {name: "*fp16" for name in "abc"}
        | {name: "i32" for name in "mnk"}
        | {name: "constexpr" for name in ("ROWS", "COLUMNS", "DEPTH")},
        {"ROWS": 128, "COLUMNS": 128, "DEPTH": 64},
        {"num_warps": 8, "num_stages": 3},
    ),
}
# Pointers only: matrices may have any size.
DIVISIBLE_BY_16 = [["tt.divisibility", 16]]


def compile_ptx(name: str) -> dict:
    """Returns what Tuff needs of the kernel, compiled for a Hopper GPU. Compiling needs no GPU."""
    function, signature, constants, options = KERNELS[name]
    attributes = {(i,): DIVISIBLE_BY_16 for i, kind in enumerate(signature.values()) if kind[0] == "*"}
    source = ASTSource(function, signature, constexprs=constants, attrs=attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    return {
        "name": compiled.metadata.name,
        "ptx": compiled.asm["ptx"],
        "threads": 32 * compiled.metadata.num_warps,
        "shared": compiled.metadata.shared,
    }


if __name__ == "__main__":
    json.dump(compile_ptx(sys.argv[1]), sys.stdout)
