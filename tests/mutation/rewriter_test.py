#!/usr/bin/env python3
"""Tests the rewriter on example.cpp: which places it finds, the text of some, and that the program, which passes as it
is, fails with each mutant. Usage: rewriter_test.py CXX"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from rewrite import NoClang, Rewriter  # noqa: E402

HERE = Path(__file__).resolve().parent
PLACES = """\
check_count: removed: require(count <= limit, "count")
check_count: <= to <: count <= limit
check_count: negated: count == 7 && limit != 7
check_count: && to ||: count == 7 && limit != 7
check_count: == to !=: count == 7
check_count: != to ==: limit != 7
below: || to &&: a < b || a == 100
below: < to <=: a < b
below: == to !=: a == 100
tiles: - to +: whole[0] + (extent % size > 0 ? 1 : 0) - 1
tiles: + to -: whole[0] + (extent % size > 0 ? 1 : 0)
tiles: > to >=: extent % size > 0
tiles: +1: 1
tiles: +1: 1
tiles: +1: 3"""
LINES = [
    "  (::tuff_mutants::active(1) ? static_cast<void>(0) : "
    'static_cast<void>(require(::tuff_mutants::less_equal(2, count , limit), "count")));',
    "constexpr uint64_t kLimit = 2 * 4;  // a constant expression",
    "    case 1 + 1: return ::tuff_mutants::next(10, 3);",
]


def fail(text: str) -> None:
    print(text)
    sys.exit(1)


def main() -> int:
    tested = ("check_count", "below", "tiles")
    rewriter = Rewriter(HERE, ["-std=c++20"], lambda file, function: function in tested)
    try:
        rewriter.parse(HERE / "example.cpp", {"example.cpp"})
    except NoClang as error:
        print(error)
        return 0
    mutants = rewriter.mutants()
    places = sorted(f"{m.function}: {m.operator}: {m.text}" for m in mutants)
    if places != sorted(PLACES.splitlines()):
        fail("other places:\n" + "\n".join(places))
    text = rewriter.rewritten("example.cpp").decode()
    for line in LINES:
        if line not in text.splitlines():
            fail(f"no line is\n{line}\nin\n{text}")
    one = rewriter.rewritten("example.cpp", frozenset(m.number for m in mutants if m.number != 2)).decode()
    if one.count("tuff_mutants") != 1:
        fail(f"more than one mutant in\n{one}")

    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "example.cpp", Path(folder) / "example"
        source.write_text(text)
        root = HERE.parents[1]
        words = [sys.argv[1], "-std=c++20", "-w", f"-I{root}", "-include", str(HERE / "mutants.hpp")]
        subprocess.run([*words, str(source), str(HERE / "mutants.cpp"), "-o", str(program)], check=True)

        def run(**variables: str) -> int:
            return subprocess.run([program], env={**os.environ, **variables}).returncode

        if run() != 0 or run(TUFF_MUTANT="0") != 0:
            fail("the program fails without a mutant")
        reached = Path(folder) / "reached"
        reached.write_bytes(bytes(len(mutants) + 1))
        run(TUFF_MUTANTS_REACHED=str(reached))
        missing = [str(m) for m in mutants if not reached.read_bytes()[m.number]]
        survivors = [str(m) for m in mutants if run(TUFF_MUTANT=str(m.number)) == 0]
    if missing or survivors:
        fail("not reached: {}\nsurvivors: {}".format("\n".join(missing), "\n".join(survivors)))
    print(f"{len(mutants)} mutants, all killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
