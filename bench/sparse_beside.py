"""Sparse matrices beside scipy.sparse on one core in the same process: products with vectors, squares (products of two
sparse matrices), or systems with the lower triangle.

    python3 bench/sparse_beside.py [--what vectors|squares|triangles] [--backend vulkan] [--size 1000]

Prints for each matrix the best time of both, and SciPy's time divided by Tuff's: above 1, Tuff is faster. Both are timed
in turn, with the result waited for. A square includes counting its terms and making room. A system is solved after
what both find out about the matrix once: Tuff the levels, SciPy a factorisation by SuperLU in natural order, which is
faster than its spsolve_triangular().
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np
import scipy
import scipy.sparse
import scipy.sparse.linalg

try:
    import tuff
except ImportError:  # not installed: the package of this checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
    import tuff


def poisson(n: int) -> scipy.sparse.csr_matrix:
    """The five-point Laplacian of a grid of n x n points."""
    line = scipy.sparse.diags([-1, 2, -1], [-1, 0, 1], (n, n))
    return (scipy.sparse.kron(scipy.sparse.eye(n), line) + scipy.sparse.kron(line, scipy.sparse.eye(n))).tocsr()


def of_lengths(lengths: np.ndarray, columns: int, data: np.random.Generator) -> scipy.sparse.csr_matrix:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    indices = data.integers(0, columns, offsets[-1])
    return scipy.sparse.csr_matrix((data.uniform(-1, 1, offsets[-1]), indices, offsets), (len(lengths), columns))


def matrices(size: int, data: np.random.Generator):
    rows = size * size
    yield f"Poisson, {size} x {size} points", poisson(size)
    yield "20 random entries a row", of_lengths(np.full(rows // 8, 20), rows // 8, data)
    yield "power law", of_lengths(np.minimum((data.pareto(1.2, rows // 4) * 3).astype(np.int64), rows // 8), rows // 4, data)
    single = np.zeros(rows // 2, np.int64)
    single[rows // 5] = 2 * rows
    yield "empty rows, one of many entries", of_lengths(single, rows // 2, data)


def best(call, seconds: float = 1.0) -> float:
    call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def vectors(ctx, matrix, dtype, data):
    """Ours, theirs, and whether ours is right; so do the others."""
    x = data.uniform(-1, 1, matrix.shape[1]).astype(dtype)
    a, b = tuff.sparse.from_scipy(matrix, context=ctx, dtype=dtype), ctx.array(x, dtype)
    wanted = matrix.astype(np.float64) @ x.astype(np.float64)
    bound = abs(matrix).astype(np.float64) @ np.abs(x.astype(np.float64)) * np.finfo(dtype).eps * (4 + np.diff(matrix.indptr))
    return lambda: a @ b, lambda: matrix @ x, lambda y: (np.abs(y.numpy() - wanted) <= bound).all()


def squares(ctx, matrix, dtype, data):
    a = tuff.sparse.from_scipy(matrix, context=ctx, dtype=dtype)
    x = data.uniform(-1, 1, matrix.shape[1])

    def right(c):
        wanted = matrix.astype(np.float64) @ (matrix.astype(np.float64) @ x)
        got = scipy.sparse.csr_matrix((c.data.numpy(), c.indices.numpy(), c.indptr.numpy()), c.shape).astype(np.float64) @ x
        bound = abs(matrix).astype(np.float64) @ (abs(matrix).astype(np.float64) @ np.abs(x)) * np.finfo(dtype).eps
        return (np.abs(got - wanted) <= bound * 1000 + 1e-30).all()

    return lambda: a @ a, lambda: matrix @ matrix, right


def triangles(ctx, matrix, dtype, data):
    # Rows that are dominated by their diagonal.
    lower = scipy.sparse.tril(matrix, -1, format="csr")
    lower = (lower + scipy.sparse.diags(np.asarray(abs(lower).sum(axis=1)).ravel() + 1)).tocsr().astype(dtype)
    b = data.uniform(-1, 1, lower.shape[0]).astype(dtype)
    solver = tuff.sparse.TriangularSolver(tuff.sparse.from_scipy(lower, context=ctx, dtype=dtype))
    print(f"  {solver.levels} levels")
    factors, ours = scipy.sparse.linalg.splu(lower.tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0), ctx.array(b, dtype)

    def right(x):
        x = x.numpy().astype(np.float64)
        size = abs(lower).astype(np.float64) @ np.abs(x) + np.abs(b)
        return (np.abs(lower.astype(np.float64) @ x - b) <= size * np.finfo(dtype).eps * (4 + np.diff(lower.indptr))).all()

    return lambda: solver.solve(ours), lambda: factors.solve(b), right


CALLS = {"vectors": vectors, "squares": squares, "triangles": triangles}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--backend", default="vulkan")
    parser.add_argument("--size", type=int, default=1000, help="points along an edge of Poisson's grid; others follow")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--what", choices=CALLS, default="vectors")
    given = parser.parse_args()
    data = np.random.default_rng(1)
    with tuff.Context(backend=given.backend) as ctx:
        print(f"{ctx}, SciPy {scipy.__version__}, {given.dtype}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        print(f"{'matrix':34} {'rows':>9} {'entries':>10} {'Tuff, ms':>9} {'SciPy, ms':>9} {'ratio':>6}")
        for name, matrix in matrices(given.size, data):
            matrix = matrix.astype(given.dtype)
            call, peer, right = CALLS[given.what](ctx, matrix, given.dtype, data)

            def waited(call=call):
                result = call()
                ctx.synchronize()
                return result

            if not right(waited()):
                raise SystemExit(f"{name}: the result is wrong")
            ours, theirs = [], []
            for _ in range(3):
                ours.append(best(waited)), theirs.append(best(peer))
            rows, entries = matrix.shape[0], matrix.nnz
            print(f"{name:34} {rows:9} {entries:10} {min(ours) * 1e3:9.2f} {min(theirs) * 1e3:9.2f} {min(theirs) / min(ours):6.2f}", flush=True)


if __name__ == "__main__":
    main()
