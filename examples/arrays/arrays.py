#!/usr/bin/env python3
"""Three things that people do with arrays on a GPU, beside NumPy on the CPU: k-means, the Mandelbrot set, a photograph.

    python3 examples/arrays/arrays.py [--out DIR] [--quick] [--backend vulkan|host]

Each writes a picture, checks its result against NumPy's, and prints both times: without compilation, with every copy to
the device and back.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "demo"))  # the photograph, and the style of pictures
try:
    import tuff
except ModuleNotFoundError:  # not installed: the package of this checkout
    sys.path.insert(0, str(HERE.parent.parent / "python"))
    import tuff


def main():
    parser = argparse.ArgumentParser(description="Arrays on the device, beside NumPy's.")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where the pictures go (out)")
    parser.add_argument("--quick", action="store_true", help="small inputs, for tests")
    parser.add_argument("--backend", choices=["vulkan", "host"], default="vulkan", help="vulkan, or the slow reference")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    import image
    import kmeans
    import mandelbrot

    with tuff.Context(backend=options.backend) as ctx:
        ctx.set_limits(wait_milliseconds=600_000)
        print(f"Tuff {tuff.__version__} on {ctx.device.name}")
        for part in (kmeans, mandelbrot, image):
            path = options.out / f"{part.__name__}.png"
            ours, theirs = part.run(ctx, path, options.quick)
            print(f"{part.__name__:12} {ours * 1e3:9.1f} ms   NumPy {theirs * 1e3:9.1f} ms   {path}", flush=True)


if __name__ == "__main__":
    main()
