"""The tests that judge mutants, from cheap to dear, and how one is run.

A judge is run once without a mutant, while each place that it reaches is recorded. A mutant is then shown only to the
judges that reach its place, the cheapest first, until one of them fails.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

# Tables are cut to one row in so many, by a fixed seed, so that a judge takes about a second.
# At last the suites of the mutant's family run as CTest runs them.
SAMPLES = {"tests, host": "20:1", "tests, vulkan": "30:1", "tests, vulkan, more rows": "4:1"}
# Suites that start other programs, wait for time to pass, or load large files: none of them is about planners or checks.
LEFT_OUT = re.compile(
    r"Devices|Lifecycle|Prewarm|Timeout|Kernel|Profile|Threads|Networks|SteadyState|Memory(?!Desc)|Tuning|Context|"
    r"Transfer|Determinism|Events|Streams"
)
INTERNAL = """AttentionPlanner Check DispatchLimits KernelRequests GemmPlanner GemmTuned NativePlanner NativeRefusals
OperationTables OperationChecks PlannerExtents PlannerExtentsOfFft PlannerExtentsOfRandom PlannerLimits PlannerRefusals
PlannerSizes PlannerValues Planners RnnPlanner TrainingChecks TuningTable TuningFile""".split()
MAX_CALLS, MAX_CASES = 300000, 20000
# The families whose variants all compile fast, and the folders of a family if it has others than its name's.
SWEPT = "elementwise fft linalg norm pool quant random reduce resize rnn rope scan shape softmax sort sparse".split()
FOLDERS = {"rope": ("position",), "shape": ("shape", "indexing")}
# On devices with lower limits, cases of each family: kernels of the last three take long to compile.
LIMITED = {**dict.fromkeys(SWEPT, 680), "gemm": 340, "conv": 340, "attention": 136}
# The operations that planner cases plan by each variant of a family.
BY_VARIANT = {"gemm": ("gemm", "batched_gemm"), "conv": ("conv1d", "conv2d", "conv3d"), "attention": ("attention",)}
CHEAPEST = 2  # of the judges that force a variant, a mutant is shown to this many
# On the device a mutant of a family of kernels is shown to that family's suites only: others take long, and say little.
FAMILIES = {
    "attention": "Attention", "conv": "Conv", "elementwise": "Unary|Binary", "expression": "Expression", "fft": "Fft",
    "gemm": "Gemm|Conv2d", "indexing": "Shape", "linalg": "Linear|Cholesky|Lu|Triangular|Qr|Eigh|Svd|Spectra",
    "memory": "Buffer", "norm": "Norm", "pool": "Pool", "position": "Rope", "quant": "Quant", "random": "Random|Dropout",
    "reduce": "Reduce", "resize": "Resize", "rnn": "Rnn", "scan": "Scan", "shape": "Shape", "softmax": "Softmax", "sort": "Sort", "sparse": "Sparse",
}  # fmt: skip
# Of CTest's entries that force a variant, those whose kernels compile fast: each planner's other tables have one.
FORCED = re.compile(
    r"variants\.((ELEMENTWISE|EXPRESSION|FFT|LINALG|NORM|POOL|QUANT|RANDOM|REDUCE|RESIZE|RNN|ROPE|SHAPE|SOFTMAX|SORT|SPARSE)\.gpu"
    r"|GEMM\.(tile_64x64|tile_32x32|subgroup_1x1_swapped|skinny|wide|tiny_lanes|tiny_columns)"
    r"|CONV\.(tile_32x32|subgroup_1x4|patches|winograd_2)|ATTENTION\.(tile_16x64x64|subgroup_1x2x1|split_[12]))$"
)


@dataclass
class Judge:
    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    suites: list[str] = field(default_factory=list)  # of GoogleTest; the filter is theirs
    reached: dict[str, bytes] = field(default_factory=dict)  # by suite, or by "" if there are none
    seconds: dict[str, float] = field(default_factory=dict)
    device: bool = False
    forced: bool = False  # a variant is forced
    prepare: list[str] = field(default_factory=list)  # runs before it is recorded
    family: str = ""  # judges mutants of this family's folders only, and of what all families share

    def suites_at(self, mutant) -> list[str]:
        """Those that reach this mutant."""
        folder = mutant.file.split("/")[1]
        if self.family and mutant.file.startswith("kernels/"):
            if folder not in (*FOLDERS.get(self.family, (self.family,)), "common"):
                return []
        suites = [suite for suite, bits in self.reached.items() if bits[mutant.number]]
        family = FAMILIES.get(folder)
        if self.device and self.suites and family:
            suites = [suite for suite in suites if re.search(family, suite)]
        return suites

    def cost(self, mutant) -> float:
        return sum(self.seconds[suite] for suite in self.suites_at(mutant))


def suites_of(program: Path, environment: dict[str, str]) -> list[str]:
    listed = subprocess.run([program, "--gtest_list_tests"], env=environment, capture_output=True, text=True, check=True)
    return [line.strip().rstrip(".") for line in listed.stdout.splitlines() if line and not line.startswith(" ")]


def forced_variants(binary: Path) -> list[tuple[str, str]]:
    """(family, variant) for each that a variable forces, of the families above."""
    listed = subprocess.run([str(binary / "tuff_variant_sweep"), "--list"], capture_output=True, text=True, check=True)
    pairs = [line.split("/") for line in listed.stdout.split()]
    unforced = ("planner", "depthwise", "transpose")
    return [(family, name) for family, name in pairs if family in BY_VARIANT and name not in unforced]


def all_judges(root: Path, binary: Path, build) -> list[Judge]:
    tests, fuzz = binary / "tuff_tests", str(binary / "tuff_fuzz")
    planners, internal = (str(build.programs[n]) for n in ("tuff_planner_cases", "tuff_internal_tests"))
    listed = suites_of(tests, environment_of(build, None))
    result = [
        Judge("planner cases", [planners, "--count", str(MAX_CASES), "--seed", "1"]),
        Judge("fuzzer, host", [fuzz, "--backend", "host", "--calls", str(MAX_CALLS), "--seed", "1", "--seconds", "600"]),
        Judge("internal", [internal, "--gtest_fail_fast"], suites=INTERNAL),
        Judge("internal, device", [internal, "--gtest_fail_fast"], suites=["All/ConvSlices", "AttentionState"], device=True),
        Judge("planner cases, more", [planners, "--count", str(10 * MAX_CASES), "--seed", "2"]),
        Judge("planner cases, large", [planners, "--large", "--count", "60000", "--seed", "4"]),
    ]
    facts = str(build.out / "facts")
    known = [planners, "--facts", facts, "--count", "40000", "--seed", "3", "--compile"]
    result.append(Judge("planner cases, compiled", [*known, "500"], prepare=[*known, "100000"]))
    for family, operations in BY_VARIANT.items():
        cases = f"{planners} --operation {operations[0]} --count 100 --seed 1 | grep -q 'is not a variant of'"
        unknown = {f"TUFF_{family.upper()}_VARIANT": "nonsense"}
        result.append(Judge(f"unknown variant of {family}", ["/bin/sh", "-c", cases], unknown, family=family))
    for family, name in forced_variants(binary):
        forced = {f"TUFF_{family.upper()}_VARIANT": name}
        for operation in BY_VARIANT[family]:
            cases = [planners, "--operation", operation, "--count", "2000", "--seed", "6"]
            result.append(Judge(f"{operation} by {name}", cases, forced, family=family))
        cases = [planners, "--operation", BY_VARIANT[family][0], "--count", "800", "--seed", "7", "--facts", facts]
        prepare = [*cases, "--compile", "100000"]
        result.append(Judge(f"{family} by {name}, compiled", [*cases, "--compile", "300"], forced, prepare=prepare,
                            family=family))  # fmt: skip
    sweep = str(build.programs["tuff_variant_sweep"])
    for family, count in LIMITED.items():
        command = [sweep, "--limits", "--family", family, "--count", str(count), "--pool", "1", "--seed", "1"]
        result.append(Judge(f"limits of {family}", command, device=True, family=family))
    for family in SWEPT:
        command = [sweep, "--family", family, "--count", "340", "--pool", "1", "--seed", "1"]
        result.append(Judge(f"sweep of {family}", command, device=True, family=family))
    for name, sample in SAMPLES.items():
        device = "vulkan" in name
        environment = {"TUFF_TEST_SAMPLE": sample, "TUFF_TEST_BACKENDS": "vulkan" if device else "host"}
        environment["TUFF_TEST_REDUCED"] = "1"
        suites = [suite for suite in listed if not LEFT_OUT.search(suite)]
        if not device:
            suites = [suite for suite in suites if suite.startswith("On/") or suite == "SemanticsSizes"]
        if "more" in name:
            suites = [suite for suite in suites if re.search("|".join(FAMILIES.values()), suite)]
        result.append(Judge(name, [str(tests), "--gtest_fail_fast"], environment, suites, device=device))
    result.append(Judge("fuzzer, corpus", [fuzz, "--corpus", str(root / "tests/fuzz/corpus")], device=True))
    shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=binary, capture_output=True, text=True, check=True)
    for test in json.loads(shown.stdout)["tests"]:
        if not FORCED.match(test["name"]) or "command" not in test:
            continue
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        environment = dict(word.split("=", 1) for word in properties["ENVIRONMENT"])
        kept = {key: value for key, value in environment.items() if key.endswith("_VARIANT")}
        kept.update(TUFF_TEST_BACKENDS="vulkan", TUFF_TEST_REDUCED="1", TUFF_TEST_SAMPLE="30:1")
        command = [*test["command"], "--gtest_fail_fast"]
        result.append(Judge(test["name"], command, kept, device=True, forced=True))
        if ".CONV." in test["name"]:  # its epilogues and layouts need more rows
            more = {**kept, "TUFF_TEST_SAMPLE": "3:1"}
            result.append(Judge(test["name"] + ", more rows", command, more, device=True, family="conv"))
    return result


def environment_of(build, judge: Judge | None) -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TUFF_")}
    environment["LD_LIBRARY_PATH"] = str(build.library)
    environment["GALLIVM_PERF"] = "nopt"  # what the kernel computes, not how well the driver compiles it
    environment.update(judge.environment if judge else {})
    return environment


@dataclass
class Ending:
    status: int  # as of subprocess
    seconds: float
    found: bool  # the fuzzer said so, and was ended before it reduces the program
    text: str


def run(judge: Judge, build, suites: list[str], extra: dict[str, str], cache: Path, seconds: float) -> Ending:
    """Runs a judge, in a process group of its own, with at most so many CPU seconds in each process."""
    environment = {**environment_of(build, judge), **extra, "XDG_CACHE_HOME": str(cache)}
    command = list(judge.command)
    if any(suites):
        command.append("--gtest_filter=" + ":".join(f"{suite}.*" for suite in suites))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
        resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryDirectory(prefix="tuff-mutant-") as folder:
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True, preexec_fn=limit,
        )  # fmt: skip
        begin, lines, found = time.monotonic(), [], False

        def end() -> None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

        timer = threading.Timer(20 * seconds, end)
        timer.start()
        for line in process.stdout:
            lines = [*lines[-15:], line]
            if line.startswith("FOUND"):
                found = True
                end()
        process.wait()
        timer.cancel()
        return Ending(process.returncode, time.monotonic() - begin, found, "".join(lines))


def record(judge: Judge, suite: str, build, places: int, cache: Path) -> str:
    """Finds out which mutants' places the judge reaches. Returns its last lines if it fails without any mutant."""
    with tempfile.NamedTemporaryFile(prefix="tuff-reached-") as file:
        file.truncate(places + 1)
        if judge.prepare:
            run(Judge(judge.name, judge.prepare, judge.environment), build, [], {}, cache, 600)
        ending = run(judge, build, [suite], {"TUFF_MUTANTS_REACHED": file.name}, cache, 600)
        if ending.status != 0:
            return f"{judge.name} {suite}:\n{ending.text}"
        judge.reached[suite], judge.seconds[suite] = Path(file.name).read_bytes(), ending.seconds
    return ""


def link_or_copy(source: str, to: str) -> None:
    """Files of the caches are replaced, never changed, except for the index of Mesa's."""
    if Path(source).name == "index":
        shutil.copy2(source, to)
    else:
        os.link(source, to)


def killed_by(judge: Judge, build, mutant, cache: Path) -> str:
    """How the judge notices this mutant: "fails", "ended by signal 8", or nothing if it passes."""
    seconds = 10 + 5 * judge.cost(mutant)
    with tempfile.TemporaryDirectory(prefix="cache-", dir=cache.parent) as folder:
        own = Path(folder) / "cache"
        if judge.device:  # what a mutant writes to the cache must not reach the next one
            shutil.copytree(cache, own, copy_function=link_or_copy)
        ending = run(judge, build, judge.suites_at(mutant), {"TUFF_MUTANT": str(mutant.number)}, own, seconds)
    if ending.found or ending.status > 0:
        return "fails"
    return f"signal {-ending.status}" if ending.status < 0 else ""
