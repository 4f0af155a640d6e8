#!/usr/bin/env python3
"""Real work with libtuff: learns to read digits, filters a photograph and plots attention over text.

    python3 examples/demo/demo.py [--out DIR] [--quick] [--backend vulkan|host|cpu]

TUFF_DEVICE selects one of several devices. Without a Vulkan device, --backend host computes the same, slowly.
"""

import argparse
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
try:
    import tuff
except ModuleNotFoundError:  # not installed: the package of this checkout
    sys.path.insert(0, str(HERE.parent.parent / "python"))
    import tuff


def main():
    parser = argparse.ArgumentParser(description="Real work through libtuff, with pictures to look at.")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where the pictures go (out)")
    parser.add_argument("--quick", action="store_true", help="a shorter training, for tests")
    parser.add_argument("--backend", choices=["vulkan", "host", "cpu"], default="vulkan",
                        help="vulkan, the CPU plug-in (docs/cpu.md), or the slow reference")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    begin = time.monotonic()
    try:
        ctx = tuff.Context(backend=options.backend)
    except tuff.TuffError as error:
        sys.exit(f"error: {error.message}\nhint: {error.hint}")
    with ctx:
        ctx.set_limits(wait_milliseconds=600_000)  # drivers compile during waits, which is slow on a small machine
        device = ctx.device
        print(f"Tuff {tuff.__version__} on {device.name} ({device.backend}; {device.driver})")
        # Imported here because plotting is slow to load and nothing above needs it.
        import digits
        import photograph
        import text_attention

        print(f"Ready after {time.monotonic() - begin:.1f} s\n")
        parts = [
            ("Learning to read digits", "digits.png", lambda path: digits.run(ctx, path, options.quick)),
            ("Filtering a photograph", "photograph.png", lambda path: photograph.run(ctx, path)),
            ("Attention over the LICENSE", "attention.png", lambda path: text_attention.run(ctx, path, options.quick)),
        ]
        pictures, results = [], []
        for title, name, part in parts:
            print(title)
            started = time.monotonic()
            pictures.append(options.out / name)
            results.append(part(pictures[-1]))
            print(f"  took {time.monotonic() - started:.1f} s\n")
        dispatches = ctx.stats()["dispatches"]

    print(f"All done in {time.monotonic() - begin:.1f} s, with {dispatches:,} dispatches on {device.name}.")
    print("Pictures to look at:")
    for path in pictures:
        print(f"  {path}")
    if results[0] < 0.95:
        sys.exit(f"error: only {results[0]:.1%} of the held-out digits are read right; 95% was expected")


if __name__ == "__main__":
    main()
