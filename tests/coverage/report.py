#!/usr/bin/env python3
"""Lines and branches of the library that ran, by folder, from the counts of a build with TUFF_COVERAGE.

  tests/coverage/report.py BUILD [--unreached FILE]

Lines of a header count once, however many sources include it. Branches that only exceptions take are left out. Lines
that no test reaches are listed with the reason from reasons.toml. The exit status is 1 if lines have none, or if a
reason has no lines.
"""

from __future__ import annotations

import argparse
import fnmatch
import gzip
import json
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("capi", "kernels", "planning", "platform", "runtime")


def counts_of(data: Path) -> list[dict]:
    """What gcov says of one object: files with lines."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["gcov", "--json-format", "--branch-probabilities", "--object-file", str(data), str(data)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"gcov: {data}: {done.stderr}")
        return [file for path in Path(folder).glob("*.gz") for file in json.loads(gzip.open(path).read())["files"]]


class File:
    def __init__(self) -> None:
        self.lines: Counter = Counter()
        self.branches: dict[int, list[int]] = {}
        self.functions: dict[int, str] = {}

    def add(self, lines: list[dict], names: dict[str, str]) -> None:
        for line in lines:
            number = line["line_number"]
            self.lines[number] += line["count"]
            function = line.get("function_name", "")
            self.functions[number] = names.get(function, function)
            counts = [branch["count"] for branch in line["branches"] if not branch["throw"]]
            kept = self.branches.get(number, [])
            # Instances of a template, and inline functions in several objects, have the same branches.
            if len(kept) == len(counts):
                self.branches[number] = [a + b for a, b in zip(kept, counts)]
            elif len(counts) > len(kept):
                self.branches[number] = counts


def read(build: Path) -> dict[str, File]:
    data = sorted((build / "CMakeFiles/tuff_core.dir").rglob("*.gcda"))
    if not data:
        sys.exit(f"{build} has no counts: run the tests first")
    files: dict[str, File] = defaultdict(File)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(counts_of, data):
            for file in found:
                path = Path(file["file"])
                path = path if path.is_absolute() else build / path
                if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in FOLDERS:
                    names = {function["name"]: function["demangled_name"] for function in file["functions"]}
                    files[path.relative_to(ROOT).as_posix()].add(file["lines"], names)
    # Files that no test loaded have no counts at all.
    return dict(files)


def part_of(name: str) -> str:
    if name.startswith("kernels/"):
        kind = "checks" if "_check." in name else "planners" if "_vulkan." in name else "other"
        return f"kernels: {kind}"
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] == "runtime" and len(parts) > 2 else parts[0]


def ranges(numbers: list[int], functions: dict[int, str]) -> list[tuple[int, int]]:
    """Consecutive lines of one function."""
    result: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if result and number == result[-1][1] + 1 and functions[number] == functions[number - 1]:
            result[-1] = (result[-1][0], number)
        else:
            result.append((number, number))
    return result


class Reasons:
    def __init__(self, path: Path) -> None:
        self.rows = tomllib.loads(path.read_text())["reason"]
        self.used: set[int] = set()

    def of(self, name: str, function: str, text: str) -> str | None:
        for place, row in enumerate(self.rows):
            if (
                fnmatch.fnmatch(name, row["file"])
                and any(word in function for word in row.get("functions", [""]))
                and any(word in text for word in row.get("texts", [""]))
                and text.strip() in row.get("only", [text.strip()])
            ):
                self.used.add(place)
                return row["why"]
        return None

    def unused(self) -> list[str]:
        return [
            f"{row['file']}: {row['why']}"
            for place, row in enumerate(self.rows)
            if place not in self.used and not row.get("sometimes", False)
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--unreached", type=Path, help="writes the unreached lines to this file")
    options = parser.parse_args()
    files = read(options.build.resolve())
    reasons = Reasons(Path(__file__).with_name("reasons.toml"))
    table: dict[str, Counter] = defaultdict(Counter)
    unreached, without, why_counts = [], [], Counter()
    without_count = 0
    for name, file in sorted(files.items()):
        source = (ROOT / name).read_text().splitlines()
        missed = [number for number, count in file.lines.items() if count == 0]
        row = table[part_of(name)]
        row["lines"] += len(file.lines)
        row["reached"] += len(file.lines) - len(missed)
        branches = [count for counts in file.branches.values() for count in counts]
        row["branches"] += len(branches)
        row["taken"] += sum(count > 0 for count in branches)
        for first, last in ranges(missed, file.functions):
            function = file.functions[first]
            why = reasons.of(name, function, "\n".join(source[first - 1 : last]))
            why_counts[why or ""] += last - first + 1
            line = f"{name}:{first}-{last}: {source[first - 1].strip()[:90]}  ({function[:120]})"
            unreached.append(f"{line}  [{why or 'no reason'}]")
            if why is None:
                without.append(line)
                without_count += last - first + 1
    print(f"{'':22}{'lines':>8}{'reached':>9}{'':>8}{'branches':>10}{'taken':>8}")
    total: Counter = Counter()
    for name, row in sorted(table.items()):
        total.update(row)
    for name, row in [*sorted(table.items()), ("all", total)]:
        print(
            f"{name:22}{row['lines']:8}{row['reached']:9}{row['reached'] / max(row['lines'], 1):8.1%}"
            f"{row['branches']:10}{row['taken'] / max(row['branches'], 1):8.1%}"
        )
    print(f"{total['lines'] - total['reached']} lines are not reached, {without_count} of them without a reason in reasons.toml")
    for why, count in why_counts.most_common():
        print(f"{count:8}  {why or 'no reason'}")
    if options.unreached:
        options.unreached.write_text("\n".join(unreached) + "\n")
    for line in without:
        print(f"no reason: {line}")
    for row in reasons.unused():
        print(f"reasons.toml has a row that no unreached line needs: {row}")
    return 1 if without or reasons.unused() else 0


if __name__ == "__main__":
    sys.exit(main())
