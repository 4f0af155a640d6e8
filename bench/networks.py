#!/usr/bin/python3
"""Adds up the layers of networks that tuff_bench measured: how long each network's layers take together.

    build/release/tuff_bench --benchmark_filter='/batch ' --benchmark_out=networks.json --benchmark_out_format=json
    /usr/bin/python3 bench/networks.py networks.json [--layers]

Each layer was measured by itself, many times in a row, so the further costs of running a whole network (waiting, cache
misses) are not included.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

NETWORKS = Path(__file__).resolve().parent.parent / "networks"
ROW = re.compile(r"tuff/(?P<network>\w+)/batch (?P<batch>\d+)/(?P<layer>[^/]+)/x(?P<count>\d+)(?:/(?P<type>b?f16))?/")


def layers_of(network: str) -> int:
    """The number of distinct layers in the network's file."""
    lines = (NETWORKS / f"{network}.txt").read_text().splitlines()
    return sum(bool(line.split("#")[0].strip()) for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="written by tuff_bench --benchmark_out")
    parser.add_argument("--layers", action="store_true", help="also each layer, the longest first")
    options = parser.parse_args()
    try:
        data = json.loads(options.results.read_text())
        rows, device = data["benchmarks"], data["context"].get("device", "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"error: {options.results} is not a complete result of tuff_bench --benchmark_out: {error}")
    # If rows were repeated, their medians count.
    repeated = any(row.get("aggregate_name") == "median" for row in rows)
    networks: dict[tuple[str, int, str], list[tuple[float, int, str]]] = defaultdict(list)
    for row in rows:
        match = ROW.match(row["name"])
        if match and "error_message" not in row and (row.get("aggregate_name") == "median" or not repeated):
            key = (match["network"], int(match["batch"]), match["type"] or "f32")
            scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[row["time_unit"]]
            networks[key].append((row["real_time"] * scale, int(match["count"]), match["layer"]))
    if not networks:
        sys.exit(f"error: {options.results} has no rows of networks")
    print(device)
    print(f"{'network':<16}{'batch':>6}{'type':>6}{'all layers':>14}{'samples/s':>12}  longest")
    for (network, batch, kind), layers in sorted(networks.items()):
        total = sum(each * count for each, count, _ in layers)
        each, count, longest = max(layers, key=lambda layer: layer[0] * layer[1])
        missing = layers_of(network) - len(layers)
        note = f"  ({missing} layers left out: too large for this device, or not requested)" if missing else ""
        rate = "-" if missing else f"{batch / total:.1f}"
        print(f"{network:<16}{batch:>6}{kind:>6}{total * 1e3:>11.2f} ms{rate:>12}  "
              f"{count} × {longest}: {each * count / total:.0%}{note}")
        if options.layers:
            for each, count, layer in sorted(layers, key=lambda layer: -layer[0] * layer[1]):
                print(f"    {each * count * 1e3:>10.3f} ms  {count:>3} × {each * 1e3:.3f} ms  {layer}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
