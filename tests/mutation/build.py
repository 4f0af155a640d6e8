"""Builds the library and two test programs with all mutants, from the objects of an existing build."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rewrite import Mutant, Rewriter

HERE = Path(__file__).resolve().parent
PROGRAMS = ("tuff_planner_cases", "tuff_internal_tests", "tuff_variant_sweep")

# Whole files.
WHOLE = (
    "kernels/**/*_check.cpp",
    "kernels/**/*_vulkan.cpp",
    "kernels/**/*_plan.hpp",
    "kernels/common/*.cpp",
    "kernels/common/*.hpp",
    "planning/*.cpp",
    "planning/*.hpp",
    "capi/structures.hpp",
    "capi/ranges.*",
)
# Computes results on the host, and text for logs and profiles.
LEFT_OUT = re.compile(r"kernels/common/(elements|describe)\.hpp|planning/(log|status|operation|probe)\.[ch]pp")
# Functions that check, in files that do other things as well.
CHECKS_OF = ("kernels/*/*.cpp",)
CHECK = re.compile(r"^check_")
# Compiled with the rewritten headers, although they are not rewritten themselves.
USERS = ("capi/*.cpp", "kernels/attention/native/attention_backward_wgmma.cpp")
# What lies beyond the end of an array is noticed, as by the tests under the sanitizers.
CHECKED = ("-D_GLIBCXX_ASSERTIONS", "-fsanitize=bounds", "-fsanitize-undefined-trap-on-error")
# Tests of inline functions: compiled with the rewritten headers too.
HEADER_TESTS = ("conv_slices_test.cpp", "planner_values_test.cpp", "kernel_request_test.cpp", "tuning_table_test.cpp")


@dataclass
class Build:
    mutants: list[Mutant]
    library: Path  # the folder
    programs: dict[str, Path]
    out: Path
    binary: Path


def found(root: Path, patterns) -> list[str]:
    paths = {path.relative_to(root).as_posix() for pattern in patterns for path in root.glob(pattern)}
    return sorted(path for path in paths if path.endswith((".cpp", ".hpp")) and not LEFT_OUT.search(path))


def commands_of(binary: Path, target: str = "tuff_core") -> dict[str, list[str]]:
    """Compiler arguments of each source of a target, without the output and the input."""
    result = {}
    for entry in json.loads((binary / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        if f"{target}.dir" not in entry["command"] or "cmake_pch" in entry["file"]:
            continue
        words = words[: words.index("-o")]
        if "-include" in words:  # the precompiled header
            at = words.index("-include")
            del words[at : at + 2]
        if "/Unity/" in entry["file"]:
            sys.exit(f"{binary} joins sources, which have to be objects of their own: cmake --preset separate builds them so")
        dropped = re.compile(r"-W(?!l,)|-fpch|-O\d|.*ccache$")
        result[entry["file"]] = [word for word in words if not dropped.match(word)]
    return result


def rewrite_all(root: Path, binary: Path, out: Path) -> list[Mutant]:
    commands = commands_of(binary)
    whole = set(found(root, WHOLE))
    files = whole | {f for f in found(root, CHECKS_OF) if re.search(r"^\S.* check_\w+\(", (root / f).read_text(), re.M)}
    stamp = hashlib.sha256()
    for name in sorted(files):
        stamp.update(name.encode() + (root / name).read_bytes())
    rules = repr((WHOLE, LEFT_OUT.pattern, CHECKS_OF, CHECK.pattern, USERS))
    stamp.update((HERE / "rewrite.py").read_bytes() + (HERE / "mutants.hpp").read_bytes() + rules.encode())
    stored = out / "mutants.json"
    if stored.exists():
        kept = json.loads(stored.read_text())
        if kept["stamp"] == stamp.hexdigest():
            return [Mutant(**row) for row in kept["mutants"]]
    rewriter = Rewriter(root, [], lambda file, name: file in whole or CHECK.match(name) is not None)
    headers = {name for name in files if name.endswith(".hpp")}
    sources = [name for name in sorted(files) if name.endswith(".cpp")] + ["capi/shape.cpp"]
    for name in sources:
        print(f"  reading {name}", end="\x1b[K\r", flush=True)
        if str(root / name) not in commands:
            continue
        rewriter.arguments = [a for a in commands[str(root / name)][1:] if a.startswith(("-I", "-D", "-std"))]
        rewriter.parse(root / name, headers | {name} if name in files else headers)
    mutants = rewriter.mutants()
    dropped = compile_all(root, binary, out, rewriter, commands)
    mutants = [mutant for mutant in mutants if mutant.number not in dropped]
    stored.write_text(json.dumps({"stamp": stamp.hexdigest(), "mutants": [m.as_dict() for m in mutants]}))
    return mutants


def write_changed(path: Path, text: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != text:
        path.write_bytes(text)


def compile_all(root: Path, binary: Path, out: Path, rewriter: Rewriter, commands: dict) -> frozenset[int]:
    """Compiles the rewritten sources. Returns the mutants that do not compile, such as those in constant expressions
    that clang does not tell; each is left out and its file compiled again."""
    units = {name: out / "source" / name for name in rewriter.edits if name.endswith(".cpp")}
    units.update({name: root / name for name in found(root, USERS) if name not in units})
    units["tests/mutation/mutants.cpp"] = HERE / "mutants.cpp"
    model = next(iter(commands.values()))
    dropped: set[int] = set()

    def compile_one(name: str) -> tuple[str, str]:
        target = out / "objects" / (name + ".o")
        target.parent.mkdir(parents=True, exist_ok=True)
        words = commands.get(str(root / name), model)
        at = next(i for i, word in enumerate(words) if word.startswith("-I"))
        words = words[:at] + [f"-I{out}/source"] + words[at:]
        words += ["-w", "-O1", "-fmax-errors=50", "-include", str(HERE / "mutants.hpp"), *CHECKED]
        words += ["-o", str(target), "-c", str(units[name])]
        done = subprocess.run(words, cwd=binary, capture_output=True, text=True)
        print(f"  compiled {name}", end="\x1b[K\r", flush=True)
        return name, done.stderr if done.returncode else ""

    pending = sorted(units)
    for _ in range(6):
        for name in rewriter.edits:
            write_changed(out / "source" / name, rewriter.rewritten(name, frozenset(dropped)))
        with ThreadPoolExecutor(2) as pool:
            failed = [(name, text) for name, text in pool.map(compile_one, pending) if text]
        if not failed:
            return frozenset(dropped)
        before = len(dropped)
        for name, text in failed:
            for file, line in re.findall(rf"{re.escape(str(out))}/source/(\S+?):(\d+):\d+: (?:error|note)", text):
                edits = rewriter.edits.get(file, [])
                dropped.update(e.mutant.number for e in edits if e.mutant.line == int(line))
        if len(dropped) == before:
            sys.exit("\n".join(text for _, text in failed))
        pending = sorted(units) if any(e.mutant.number in dropped for h in rewriter.edits if h.endswith(".hpp")
                                       for e in rewriter.edits[h]) else [name for name, _ in failed]
    sys.exit("the rewritten sources do not compile")


def compile_header_tests(root: Path, binary: Path, out: Path) -> list[Path]:
    commands = commands_of(binary, "tuff_internal_tests")
    objects = []
    for name in HEADER_TESTS:
        source, target = root / "tests/internal" / name, out / "tests" / f"{name}.o"
        target.parent.mkdir(exist_ok=True)
        objects.append(target)
        newest = max(path.stat().st_mtime for path in (source, out / "mutants.json"))
        if target.exists() and target.stat().st_mtime > newest:
            continue
        words = commands[str(source)]
        at = next(i for i, word in enumerate(words) if word.startswith("-I"))
        words = [*words[:at], f"-I{out}/source", *words[at:], "-w", "-O1", "-include", str(HERE / "mutants.hpp")]
        subprocess.run([*words, "-o", str(target), "-c", str(source)], cwd=binary, check=True)
    return objects


def link(binary: Path, out: Path, target: str, to: Path, header_tests: list[Path]) -> None:
    commands = subprocess.run(["ninja", "-t", "commands", target], cwd=binary, capture_output=True, text=True, check=True)
    line = next(x for x in reversed(commands.stdout.splitlines()) if f" -o {target} " in x)
    words = shlex.split(re.sub(r"^: && | && :.*$", "", line))
    objects = {f"CMakeFiles/tuff_core.dir/{p.relative_to(out / 'objects')}": str(p) for p in (out / "objects").rglob("*.o")}
    extra = str(out / "objects/tests/mutation/mutants.cpp.o")
    used = set(words) & set(objects)
    folder = "tests/CMakeFiles/tuff_internal_tests.dir"
    for path in header_tests:
        objects.update({word: str(path) for word in words if word.startswith(folder) and Path(word).name == path.name})
    words = [objects.get(word, word) for word in words]
    if not used:  # the rewritten objects take precedence over the archive's
        at = words.index("libtuff_core_archive.a")
        rewritten = [path for path in objects.values() if path != extra and Path(path).parent != out / "tests"]
        words = words[:at] + rewritten + words[at:]
    words[words.index("-o") + 1] = str(to)
    words.insert(words.index("-o"), extra)
    subprocess.run(words, cwd=binary, check=True)


def build(root: Path, binary: Path, out: Path) -> Build:
    mutants = rewrite_all(root, binary, out)
    library, programs = out / "library", {name: out / name for name in PROGRAMS}
    newest = max(path.stat().st_mtime for path in (out / "objects").rglob("*.o"))
    header_tests = compile_header_tests(root, binary, out)
    tests = max(path.stat().st_mtime for path in header_tests)
    library.mkdir(exist_ok=True)
    real = next(binary.glob("libtuff.so.*.*"))
    targets = {real.name: library / "libtuff.so.1", **{name: programs[name] for name in PROGRAMS}}
    for target, path in targets.items():
        newer = max(newest, (binary / target).stat().st_mtime, tests if target == "tuff_internal_tests" else 0)
        if not path.exists() or path.stat().st_mtime < newer:
            print(f"  linking {path.name}", end="\x1b[K\r", flush=True)
            link(binary, out, target, path, header_tests)
    return Build(mutants, library, programs, out, binary)
