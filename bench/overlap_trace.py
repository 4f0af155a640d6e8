#!/usr/bin/env python3
"""The share of time in which the device worked for two streams at once: chunks are uploaded, multiplied and downloaded
on three streams under the profiler. Also writes the trace, for Perfetto.

    PYTHONPATH=python python3 bench/overlap_trace.py [trace.json] [--side 2048] [--chunks 16]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import tuff


def work(context: tuff.Context, side: int, chunks: int) -> None:
    slots = 3
    weights = context.array(np.eye(side, dtype=np.float32))
    sources = [context.pinned((side, side)) for _ in range(slots)]
    targets = [context.pinned((side, side)) for _ in range(slots)]
    inputs = [context.zeros((side, side)) for _ in range(slots)]
    for i, source in enumerate(sources):
        source[:] = i + 1
    up, compute, down = context.stream("upload"), context.stream("compute"), context.stream("download")
    computed, downloaded, outputs = [None] * slots, [None] * slots, [None] * slots
    for chunk in range(chunks):
        slot = chunk % slots
        with up:
            if computed[slot] is not None:
                up.wait(computed[slot])
            inputs[slot].copy_from_async(sources[slot])
            uploaded = up.record(timing=False)
        with compute:
            compute.wait(uploaded)
            if downloaded[slot] is not None:
                compute.wait(downloaded[slot])
            outputs[slot] = inputs[slot] @ weights
            computed[slot] = compute.record(timing=False)
        with down:
            down.wait(computed[slot])
            outputs[slot].copy_to_async(targets[slot])
            downloaded[slot] = down.record(timing=False)
    context.synchronize()
    for slot, target in enumerate(targets):
        assert (target == slot + 1).all(), "a chunk has wrong results"


def overlap(trace: dict) -> tuple[dict[str, float], float, float]:
    """Busy milliseconds of each track, of any track, and of two or more at once."""
    events = trace["traceEvents"]
    device = next(e["pid"] for e in events
                  if e["ph"] == "M" and e["name"] == "process_name" and e["args"]["name"].startswith("Device"))
    names = {e["tid"]: e["args"]["name"] for e in events
             if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == device}
    spans = [e for e in events if e["ph"] == "X" and e["pid"] == device]
    tracks = {name: sum(e["dur"] for e in spans if names[e["tid"]] == name) / 1e3 for name in names.values()}
    edges = sorted([(e["ts"], 1) for e in spans] + [(e["ts"] + e["dur"], -1) for e in spans])
    any_, two, busy, before = 0.0, 0.0, 0, 0.0
    for at, change in edges:
        any_ += (at - before) * (busy >= 1)
        two += (at - before) * (busy >= 2)
        busy += change
        before = at
    return tracks, any_ / 1e3, two / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", type=Path, default=Path("overlap.json"))
    parser.add_argument("--side", type=int, default=2048)
    parser.add_argument("--chunks", type=int, default=16)
    options = parser.parse_args()
    with tuff.Context() as context:
        work(context, options.side, options.chunks)  # warms up: compiles kernels and allocates memory
        with context.profile() as profile:
            work(context, options.side, options.chunks)
        profile.write(str(options.trace))
        print(f"{context.device.name}: {options.chunks} chunks of {options.side} x {options.side}")
    tracks, any_, two = overlap(json.loads(options.trace.read_text()))
    for name, milliseconds in sorted(tracks.items()):
        print(f"  {name:<24} {milliseconds:8.2f} ms")
    print(f"  busy {any_:.2f} ms, of which on two or more at once {two:.2f} ms ({two / any_:.0%})")


if __name__ == "__main__":
    main()
