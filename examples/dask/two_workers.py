"""One array over several processes, each with a device of its own: Dask's arrays, whose chunks are Tuff's.

    python3 examples/dask/two_workers.py [--out FILE.png] [--rows N] [--workers N] [--devices 0,1]

Needs NumPy and `pip install "dask[array,distributed]"`. The rows of a table of measurements are divided into chunks. Each
worker uploads its chunks to its device, where all that follows is computed: a formula of every element (map_blocks),
means and variances, a product of matrices, a singular value decomposition (Dask's, by QR of each chunk), places of the
largest elements. Only the small results, and what one worker needs of another's, pass through memory of the host. Each
is compared with NumPy. The picture is the density of all rows on the two directions in which they vary most.
"""

import argparse
import os
import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np

COLUMNS = 24
SIDE = 360  # pixels of the picture


def measurements(rows, seed=1):
    """Rows near a ring in two directions of the space, and noise in the others."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, rows)
    radius = 3 + 0.25 * rng.standard_normal(rows) + 0.6 * np.cos(5 * angle)
    plane = np.stack([radius * np.cos(angle), 0.8 * radius * np.sin(angle)], axis=1)
    directions = np.linalg.qr(rng.standard_normal((COLUMNS, 2)))[0]
    return (plane @ directions.T + 0.1 * rng.standard_normal((rows, COLUMNS)) + 1).astype(np.float32)


def open_device(number):
    """In a worker: opens its default context. An error here is better than one in the middle of the work."""
    if number is not None:
        os.environ["TUFF_DEVICE"] = str(number)
    import tuff.dask  # noqa: F401
    from tuff._default import default_context

    return os.getpid(), str(default_context())


def where_it_was(block):
    """The process that computes a chunk, as a row."""
    return np.full((1, 1), os.getpid())


def density(points, extent):
    """How many rows of a chunk are in each pixel."""
    import tuff

    places = tuff.expr("clamp(i32(floor((p + e) * s)), 0, n)", dtype=np.int32, p=points, e=extent, s=SIDE / (2 * extent), n=SIDE - 1)
    return tuff.bincount(places[:, 1] * SIDE + places[:, 0], minlength=SIDE * SIDE).reshape(1, SIDE, SIDE)


def write_png(path, counts):
    shade = np.log1p(counts) / np.log1p(counts.max())
    colours = np.stack([255 * shade**0.5, 255 * shade**1.2, 90 + 120 * shade**3], axis=-1) * (counts > 0)[..., None]
    rows = np.ascontiguousarray(colours.astype(np.uint8))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    lines = b"".join(b"\0" + line.tobytes() for line in rows)
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="density.png")
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--devices", help="the device of each worker, by number, such as 0,1; by default each takes the best")
    options = parser.parse_args()
    try:
        import dask.array as da
        from distributed import Client, LocalCluster
    except ImportError:
        sys.exit('this example needs: pip install "dask[array,distributed]"')
    import tuff.dask

    devices = options.devices.split(",") if options.devices else [None] * options.workers
    if len(devices) != options.workers:
        sys.exit(f"--devices names {len(devices)}, and there are {options.workers} workers")
    x = measurements(options.rows)
    extent = 5.0
    cluster = LocalCluster(n_workers=options.workers, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, Client(cluster) as client:
        for worker, device in zip(client.scheduler_info(n_workers=-1)["workers"], devices):
            pid, context = client.run(open_device, device, workers=[worker])[worker]
            print(f"process {pid}: {context}")
        host = da.from_array(x, chunks=(-(-options.rows // (4 * options.workers)), COLUMNS))
        table = tuff.dask.to_device(host).persist()
        started = time.perf_counter()
        mean, deviation = table.mean(axis=0), table.std(axis=0)
        centred = (table - mean).persist()
        _, singular, directions = da.linalg.svd(centred)
        points = centred @ directions[:2].T
        picture = points.map_blocks(density, extent, new_axis=2, chunks=((1,) * table.numblocks[0], (SIDE,), (SIDE,)),
                                    dtype=np.int64, meta=np.zeros((0, 0, 0), np.int64)).sum(axis=0)  # fmt: skip
        results = {
            "mean": mean,
            "std": deviation,
            "squares by map_blocks": table.map_blocks(squares).sum(axis=0),
            "product of matrices": centred.T @ centred,
            "singular values": singular,
            "place of the largest": table.argmax(axis=0),
            "picture": picture,
        }
        processes = table.map_blocks(where_it_was, dtype=np.int64, meta=np.zeros((0, 0), np.int64), chunks=((1,) * table.numblocks[0], (1,)))
        computed = dict(zip(results, da.compute(*results.values())))
        pids = {int(pid) for pid in processes.compute().ravel()}
        print(f"{options.rows} rows in {table.numblocks[0]} chunks by {len(pids)} processes: {time.perf_counter() - started:.2f} s")

    centre = x.astype(np.float64) - x.mean(0, dtype=np.float64)
    wanted = {
        "mean": x.mean(0, dtype=np.float64),
        "std": x.std(0, dtype=np.float64),
        "squares by map_blocks": (x.astype(np.float64) ** 2).sum(0),
        "product of matrices": centre.T @ centre,
        "singular values": np.linalg.svd(centre, compute_uv=False),
        "place of the largest": x.argmax(0),
    }
    failed = False
    for name, value in wanted.items():
        found = np.asarray(computed[name], np.float64)
        error = float(np.abs(found - value).max() / np.abs(value).max())
        failed |= not error < 1e-4  # f32, sums of many rows
        print(f"{name:22} {type(computed[name]).__module__.split('.')[0]:6} differs from NumPy by {error:.1e} of the largest")
    counts = np.asarray(computed["picture"])
    failed |= int(counts.sum()) != options.rows
    failed |= len(pids) < min(options.workers, 2)
    write_png(options.out, counts)
    print(f"wrote {options.out}")
    return 1 if failed else 0


def squares(block):
    import tuff

    return tuff.expr("x * x", x=block)


if __name__ == "__main__":
    sys.exit(main())
