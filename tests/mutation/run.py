#!/usr/bin/env python3
"""Changes checks and planners in many small ways, and counts which changes a test notices. See README.md here.

  tests/mutation/run.py --sample 600 --seed 1      a random sample of the mutants
  tests/mutation/run.py --all
  tests/mutation/run.py --mutant 1234              one, with the judges' answers
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import pickle
import random
import re
import secrets
import sys
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from build import build  # noqa: E402
from judges import CHEAPEST, Judge, all_judges, killed_by, record  # noqa: E402
from rewrite import Mutant, NoClang  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
CHEAP = 2  # seconds of a judge to which choices are shown
KINDS = ("choice", "hardware", "equivalent")


def group_of(mutant: Mutant) -> str:
    if mutant.file.endswith("_vulkan.cpp"):
        return "planners"
    if mutant.file.startswith("kernels/common"):
        return "kernels/common"
    return "checks" if mutant.file.startswith("kernels/") else mutant.file.split("/")[0]


class Known:
    """known.toml: mutants that no test of results can notice, with the reason."""

    def __init__(self, path: Path) -> None:
        self.rows, self.sources = [], {}
        for kind, rows in tomllib.loads(path.read_text()).items():
            if kind not in KINDS:
                sys.exit(f"{path}: {kind} is none of {', '.join(KINDS)}")
            self.rows += [(kind, row) for row in rows]

    def of(self, mutant: Mutant) -> tuple[str, str] | None:
        for kind, row in self.rows:
            functions = row.get("functions", ["*"])
            if not fnmatch.fnmatch(mutant.file, row["file"]):
                continue
            if not any(fnmatch.fnmatchcase(mutant.function, name) for name in functions):
                continue
            if "texts" in row and not any(text in mutant.text for text in row["texts"]):
                continue
            if "lines" in row and not any(text in self.line_of(mutant) for text in row["lines"]):
                continue
            if "operators" not in row or mutant.operator in row["operators"]:
                return kind, row["reason"]
        return None

    def line_of(self, mutant: Mutant) -> str:
        if mutant.file not in self.sources:
            self.sources[mutant.file] = (ROOT / mutant.file).read_text().splitlines()
        return self.sources[mutant.file][mutant.line - 1]

    def stale(self, mutants: list[Mutant]) -> list[str]:
        """Rows that match nothing any more."""
        used = {id(row) for mutant in mutants for row in [self.row_of(mutant)] if row is not None}
        return [f"{row['file']} {row.get('functions', '')}" for _, row in self.rows if id(row) not in used]

    def row_of(self, mutant: Mutant):
        for kind, row in self.rows:
            alone = Known.__new__(Known)
            alone.rows, alone.sources = [(kind, row)], self.sources
            if alone.of(mutant):
                return row
        return None


def prepared(made, cache: Path, jobs: int, names: str) -> list[Judge]:
    """The judges whose names match, with what they reach, recorded anew after each build."""
    places = max(mutant.number for mutant in made.mutants)
    built = (made.library / "libtuff.so.1").stat().st_mtime_ns
    folder = made.out / "judges"
    folder.mkdir(exist_ok=True)
    judges = [judge for judge in all_judges(ROOT, made.binary, made) if re.search(names, judge.name)]
    if not judges:
        sys.exit(f"no judge's name matches {names}")
    failing = []

    def one(judge: Judge, suite: str) -> None:
        stamp = built, Path(judge.command[0]).stat().st_mtime_ns, judge.command, judge.environment
        stored = folder / re.sub(r"\W+", "_", f"{judge.name} {suite}")
        if stored.exists():
            kept, judge.reached[suite], judge.seconds[suite] = pickle.loads(stored.read_bytes())
            if kept == stamp:
                return
        print(f"  recording {judge.name} {suite}", end="\x1b[K\r", flush=True)
        text = record(judge, suite, made, places, cache)
        if text:
            failing.append(text)
            judge.reached.pop(suite, None)
        else:
            stored.write_bytes(pickle.dumps((stamp, judge.reached[suite], judge.seconds[suite])))

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda pair: one(*pair), [(judge, suite) for judge in judges for suite in judge.suites or [""]]))
    print("\x1b[K", end="")
    for text in failing:
        print(f"does not judge, because it fails without a mutant: {text}")
    return [judge for judge in judges if judge.reached]


def judge_one(made, judges: list[Judge], cache: Path, mutant: Mutant, kind: str) -> tuple[str, str]:
    """(the judge that notices it, how), or an empty text and whether any reached it."""
    reaching = [judge for judge in judges if judge.suites_at(mutant)]
    if kind == "choice":  # only the cheap ones: that others pass is what is expected
        reaching = [judge for judge in reaching if not judge.device and judge.cost(mutant) < CHEAP]
    reaching.sort(key=lambda judge: (judge.forced, judge.device, judge.cost(mutant)))
    plain = [judge for judge in reaching if not judge.forced]
    for judge in plain + [judge for judge in reaching if judge.forced][:CHEAPEST]:
        how = killed_by(judge, made, mutant, cache)
        if how:
            return judge.name, how
    return "", "survives" if reaching else "not reached"


def report(results: list[dict]) -> None:
    groups = sorted({row["group"] for row in results})
    print(f"\n{'':16}{'mutants':>8}{'killed':>8}{'score':>8}   {'choices':>8}{'killed':>8}")

    def line(name: str, rows: list[dict]) -> None:
        judged = [row for row in rows if row["kind"] != "choice"]
        choices = [row for row in rows if row["kind"] == "choice"]
        killed = sum(bool(row["judge"]) for row in judged)
        score = f"{killed / len(judged):.3f}" if judged else "-"
        of_choices = sum(bool(row["judge"]) for row in choices)
        print(f"{name:16}{len(judged):8}{killed:8}{score:>8}   {len(choices):8}{of_choices:8}")

    for name in groups:
        line(name, [row for row in results if row["group"] == name])
    line("all", results)
    rest = [row for row in results if row["kind"] in ("", None)]
    killed = sum(bool(row["judge"]) for row in rest)
    print(f"without those that known.toml explains: {killed} of {len(rest)}, {killed / max(len(rest), 1):.3f}")
    print("killed by:", ", ".join(f"{n} {name}" for name, n in Counter(r["judge"] for r in results if r["judge"]).items()))
    survivors = [row for row in results if not row["judge"] and row["kind"] != "choice"]
    print(f"\n{len(survivors)} survivors:")
    for row in survivors:
        why = f"{row['kind']}: {row['reason']}" if row["kind"] else row["how"]
        print(f"  {row['number']} {row['file']}:{row['line']} {row['function']}: {row['operator']}: {row['text'][:110]}  [{why}]")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=600, help="how many mutants (600)")
    parser.add_argument("--seed", type=int, help="of the sample; without it a fresh one")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--mutant", type=int, action="append", help="this one; may be repeated")
    parser.add_argument("--files", default="*", help="only mutants of files that match, such as kernels/gemm/*")
    parser.add_argument("--judges", default="", help="only judges whose names match this: some minutes, and a lower score")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0, help="ends then; 0: no limit")
    parser.add_argument("--keep", choices=("killed", "all"), help="reuses results of the last run with the same library")
    parser.add_argument("--list", action="store_true", help="lists all mutants and what known.toml says of them")
    parser.add_argument("--binary", type=Path, default=ROOT / "build/separate", help="a finished build with TUFF_JOIN=OFF (build/separate)")
    options = parser.parse_args()

    out = ROOT / "build/mutants"
    out.mkdir(parents=True, exist_ok=True)
    try:
        made = build(ROOT, options.binary.resolve(), out)
    except NoClang as error:
        print(f"error: {error}")
        return 2
    known = Known(Path(__file__).with_name("known.toml"))
    wanted = [mutant for mutant in made.mutants if fnmatch.fnmatch(mutant.file, options.files)]
    print(f"\x1b[K{len(made.mutants)} mutants", dict(Counter(group_of(m) for m in made.mutants)))
    for text in known.stale(made.mutants):
        print(f"known.toml: no mutant is in {text}")
    if options.list:
        for mutant in wanted:
            row = known.of(mutant)
            print(mutant.number, row[0] if row else "-", mutant)
        return 0

    cache = out / "cache"
    cache.mkdir(exist_ok=True)
    judges = prepared(made, cache, options.jobs, options.judges)
    if options.mutant:
        wanted = [mutant for mutant in made.mutants if mutant.number in options.mutant]
    elif not options.all and options.sample < len(wanted):
        seed = secrets.randbits(32) if options.seed is None else options.seed
        print(f"--sample {options.sample} --seed {seed}")
        wanted = random.Random(seed).sample(wanted, options.sample)

    begin, results = time.monotonic(), []
    built = (made.library / "libtuff.so.1").stat().st_mtime_ns

    def show(row: dict) -> None:
        if not row["judge"] and not row["kind"]:
            place = f"{row['number']} {row['file']}:{row['line']} {row['function']}"
            print(f"  survivor {place}: {row['operator']}: {row['text'][:110]}  [{row['how']}]\x1b[K")
        killed = sum(bool(result["judge"]) for result in results)
        print(f"  {len(results)} of {len(wanted)}, {killed} killed", end="\x1b[K\r", flush=True)

    def one(mutant: Mutant) -> None:
        if options.seconds and time.monotonic() - begin > options.seconds:
            return
        kind, reason = known.of(mutant) or ("", "")
        kept = earlier.get(mutant.number)
        if kept and (kept["judge"] or options.keep == "all" or kind == "choice"):
            judge, how = kept["judge"], kept["how"]
        else:
            judge, how = judge_one(made, judges, cache, mutant, kind)
        results.append({**mutant.as_dict(), "group": group_of(mutant), "judge": judge, "how": how, "kind": kind,
                        "reason": reason, "built": built})  # fmt: skip
        show(results[-1])
        with log.open("a") as file:
            file.write(json.dumps(results[-1]) + "\n")

    log, earlier = out / "results.jsonl", {}
    if options.keep and log.exists():
        earlier = {row["number"]: row for row in map(json.loads, log.read_text().splitlines()) if row["built"] == built}
    # What is kept stays in the file, so that a run that is ended loses nothing.
    log.write_text("".join(json.dumps(row) + "\n" for row in earlier.values()))
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, wanted))
    results.sort(key=lambda row: row["number"])
    print(f"\x1b[K{len(results)} of {len(wanted)} mutants in {time.monotonic() - begin:.0f} s")
    report(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
