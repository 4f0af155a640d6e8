"""Conjugate gradients: the potential of charged plates and wires in a grounded box.

    python3 examples/sparse/poisson.py [--points N] [--precondition] [--out DIR] [--backend vulkan|host]

Poisson's equation -u'' = f on the unit square, with u = 0 at its edges, on a grid of N x N points inside: a sparse system
with five entries in each row, which is symmetric and positive definite. Products, dot products and updates run on the
device; every 25 steps the host looks at the residual. --precondition solves with the lower and the upper triangle of the
matrix in each step (symmetric Gauss-Seidel), which takes fewer steps, each of which takes longer. The result is checked against the same discrete equation solved
another way: by the sines that diagonalise it, in NumPy and double precision. Writes poisson.png.
"""

from __future__ import annotations

import argparse
import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np

try:
    import tuff
except ImportError:  # not installed: the package of this checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
    import tuff


def laplacian(n: int):
    """The five-point matrix of -u'' times the squared distance of two points, in COO: values, rows, columns."""
    at = np.arange(n * n, dtype=np.int32).reshape(n, n)
    pairs = [(at[1:], at[:-1]), (at[:-1], at[1:]), (at[:, 1:], at[:, :-1]), (at[:, :-1], at[:, 1:])]
    rows = np.concatenate([at.ravel(), *(a.ravel() for a, _ in pairs)])
    columns = np.concatenate([at.ravel(), *(b.ravel() for _, b in pairs)])
    values = np.concatenate([np.full(n * n, 4.0, np.float32), np.full(rows.size - n * n, -1.0, np.float32)])
    return values, rows, columns


def charges(n: int) -> np.ndarray:
    """Two plates of opposite charge, a ring, and three wires."""
    y, x = np.meshgrid(*[(np.arange(n) + 1) / (n + 1)] * 2, indexing="ij")
    f = np.zeros((n, n))
    f[(np.abs(x - 0.25) < 0.01) & (np.abs(y - 0.5) < 0.28)] = 1
    f[(np.abs(x - 0.36) < 0.01) & (np.abs(y - 0.5) < 0.28)] = -1
    f[np.abs(np.hypot(x - 0.72, y - 0.34) - 0.15) < 0.008] = 0.6
    for i, j, charge in ((0.72, 0.34, -6), (0.62, 0.78, 5), (0.84, 0.78, -5)):
        f[np.hypot(x - i, y - j) < 0.012] = charge
    return f / (n + 1) ** 2 * 40


def gauss_seidel(a):
    """The inverse of (D + L) D^-1 (D + U), where A = L + D + U and the diagonal D is 4, as a function."""
    lower, upper = (tuff.sparse.TriangularSolver(a, lower=side) for side in (True, False))
    return lambda r: upper.solve(4 * lower.solve(r))


def solve(a, b, tolerance: float, most: int, precondition=lambda r: r):
    """Conjugate gradients. Numbers that steps depend on stay on the device, as arrays of one element."""
    x = b.context.zeros(b.shape)
    r = b.copy()
    z = precondition(r)
    p = z.copy()
    rz = tuff.vecdot(r, z).reshape(1)
    goal = float(tuff.vecdot(r, r).numpy()) * tolerance**2
    history = []
    for step in range(1, most + 1):
        q = a @ p
        alpha = rz / tuff.vecdot(p, q).reshape(1)
        x = tuff.expr("x + alpha * p", x=x, alpha=alpha, p=p)
        r = tuff.expr("r - alpha * q", r=r, alpha=alpha, q=q)
        z = precondition(r)
        after = tuff.vecdot(r, z).reshape(1)
        p = tuff.expr("z + rz_new / rz_old * p", z=z, rz_new=after, rz_old=rz, p=p)
        rz = after
        if step % 25 == 0:
            history.append((step, float(tuff.vecdot(r, r).numpy())))
            if history[-1][1] <= goal:
                break
    return x, history


def by_sines(f: np.ndarray) -> np.ndarray:
    """The solution of the same discrete equation: sines are its eigenvectors."""
    n = len(f)
    k = np.arange(1, n + 1)
    sines = np.sqrt(2 / (n + 1)) * np.sin(np.pi * np.outer(k, k) / (n + 1))
    eigenvalues = 2 - 2 * np.cos(np.pi * k / (n + 1))
    return sines @ ((sines @ f @ sines) / (eigenvalues[:, None] + eigenvalues)) @ sines


def write_png(path: Path, pixels: np.ndarray) -> None:
    """pixels: (height, width, 3), uint8."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b""))


def picture(u: np.ndarray, f: np.ndarray) -> np.ndarray:
    """The potential from blue over white to red, with lines of equal potential, and charges in black."""
    most = np.abs(u).max()
    level = np.sign(u) * np.sqrt(np.abs(u) / most)
    red, blue, white = np.array([178, 24, 43]), np.array([33, 102, 172]), np.array([247, 247, 247])
    colour = white + np.abs(level)[..., None] * (np.where(level[..., None] > 0, red, blue) - white)
    band = np.floor(level * 12)
    line = np.zeros(u.shape, bool)
    line[:, 1:] |= band[:, 1:] != band[:, :-1]
    line[1:] |= band[1:] != band[:-1]
    colour[line] *= 0.72
    colour[f != 0] = 20
    return np.ascontiguousarray(np.clip(colour, 0, 255)[::-1].astype(np.uint8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--points", type=int, default=511, help="along an edge of the box")
    parser.add_argument("--precondition", action="store_true", help="by symmetric Gauss-Seidel")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--backend", default="auto")
    given = parser.parse_args()
    n = given.points
    if n < 32:
        parser.error(f"--points is {n}: needs at least 32, for the charges to be apart")
    f = charges(n)
    with tuff.Context(backend=given.backend) as ctx:
        values, rows, columns = laplacian(n)
        a = tuff.sparse.coo_array((values, (rows, columns)), (n * n, n * n), context=ctx).tocsr()
        b = ctx.array(f.ravel(), np.float32)
        more = {"precondition": gauss_seidel(a)} if given.precondition else {}
        solve(a, b, 0.5, 25, **more)  # compiles
        begin = time.monotonic()
        x, history = solve(a, b, 1e-5, 10 * n, **more)
        u = x.numpy().reshape(n, n).astype(np.float64)
        seconds = time.monotonic() - begin
        print(f"{ctx}: {n * n} unknowns, {a.nnz} entries, {history[-1][0]} steps in {seconds:.2f} s")
    wanted = by_sines(f)
    error = np.abs(u - wanted).max() / np.abs(wanted).max()
    print(f"residual {np.sqrt(history[-1][1]) / np.linalg.norm(f):.1e} of the right side, largest error {error:.1e} of the largest potential")
    # The smallest eigenvalue is 2 (pi / (n + 1))^2, so that a residual is magnified by the largest over the smallest at
    # most; in practice by far less. A thousandth is not visible.
    if not error < 1e-3:
        raise SystemExit("error: the solution is wrong")
    given.out.mkdir(parents=True, exist_ok=True)
    write_png(given.out / "poisson.png", picture(u, f))
    print(f"wrote {given.out / 'poisson.png'}")


if __name__ == "__main__":
    main()
