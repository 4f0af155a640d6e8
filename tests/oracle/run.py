#!/usr/bin/env python3
"""Random calls of every operation, judged by libraries that others keep. README.md beside this file says more."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np  # noqa: E402

import libraries  # noqa: E402
from case import ORACLES, Case, Draw, Oracle  # noqa: E402
from coverage import missing_operations, unused_fields  # noqa: E402
from device import Device, Refused, Wrong  # noqa: E402

import attention  # noqa: E402, F401
import convolutions  # noqa: E402, F401
import elementwise  # noqa: E402, F401
import norms  # noqa: E402, F401
import products  # noqa: E402, F401
import positions  # noqa: E402, F401
import rows  # noqa: E402, F401
import shapes  # noqa: E402, F401
import windows  # noqa: E402, F401


class Counts:
    def __init__(self) -> None:
        self.cases, self.failed, self.refused, self.used = 0, 0, Counter(), 0.0
        self.by: Counter = Counter()

    def line(self) -> str:
        libraries_ = ", ".join(f"{name} {count}" for name, count in sorted(self.by.items()))
        text = f"{self.cases:7d} cases, {self.failed} failed, {self.used:5.2f} of the bound used ({libraries_})"
        return text + "".join(f"\n    {n} refused: {why}" for why, n in self.refused.items())


def draw_case(oracle: Oracle, kind: str, form: str, seed: str, index: int, block: int) -> tuple[Case, Draw]:
    draw = Draw(f"{seed}/{oracle.name}/{kind}/{form}", index // block, index)
    return oracle.draw(draw, kind, form), draw


def judge(case: Case, outputs: dict[str, np.ndarray], counts: Counts) -> None:
    """Raises Wrong for the first output that a library says is wrong."""
    for library, reference in case.references.items():
        for name, expected in reference().items():
            t = case.operands[name].type
            value = np.asarray(expected.value)
            if value.shape != outputs[name].shape:
                raise Wrong(f"{library}: {name} has the shape {value.shape}, not {outputs[name].shape}")
            wrong, used = expected.wrong(t, outputs[name])
            counts.used = max(counts.used, used)
            if not wrong.any():
                continue
            lines = [f"{library}: {int(wrong.sum())} of {wrong.size} elements of {name} are wrong"]
            bound = np.broadcast_to(getattr(expected, "bound", 0.0), value.shape)
            for place in list(zip(*np.nonzero(wrong)))[:4]:
                got = outputs[name][place]
                got = _text(t, got)
                lines.append(f"    {list(map(int, place))}: got {got}, expected {_text(t, value[place], value)}"
                             f" +- {float(bound[place]):.3g}")  # fmt: skip
            raise Wrong("\n".join(lines))
        counts.by[library] += 1


def _text(t, x, of=None) -> str:
    from elements import decode

    if of is None or (of.dtype == t.storage and t.name != "f64"):
        x = decode(t, np.asarray([x], dtype=t.storage))[0]
    return f"{float(x):.9g}" if t.float else str(int(x))


def describe(case: Case) -> str:
    arguments = case.arguments
    if isinstance(arguments, dict):
        arguments = {name: value for name, value in arguments.items() if not isinstance(value, (int, float)) or value}
    sizes = {name: f"{o.type.name}{list(o.index.shape)}" for name, o in case.operands.items()}
    return f"    {case.function} {arguments}\n    operands {sizes} {case.note}"


def run_form(device: Device, oracle: Oracle, kind: str, form: str, options, counts: Counts, deadline: float) -> int:
    """So many cases of an operation, a type and a form; returns how many were run before the time was up."""
    indices = [options.only] if options.only is not None else range(options.first, options.first + options.cases)
    done = 0
    for index in indices:
        if time.monotonic() > deadline:
            break
        case, draw = draw_case(oracle, kind, form, options.seed, index, options.block)
        try:
            judge(case, device.run(case, draw), counts)
        except Refused as refusal:
            counts.refused[str(refusal)] += 1
        except Exception as problem:  # the oracle's own defects too: they are none of the library's, but no success
            if not isinstance(problem, Wrong):
                problem = "".join(traceback.format_exc().splitlines(keepends=True)[-5:])
            counts.failed += 1
            form_option = f" --form {form}" if form else ""
            again = f"tests/oracle/run.py --operation {oracle.name} --type {kind}{form_option} --backend " \
                    f"{device.backend} --seed {shlex.quote(options.seed)} --block {options.block} --only {index}"  # fmt: skip
            if counts.failed <= options.show:
                print(f"WRONG {oracle.name} {kind} {form} {device.backend}: {problem}\n{describe(case)}\n  {again}",
                      flush=True)  # fmt: skip
        counts.cases += 1
        done += 1
    return done


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100, help="of each operation, type and form (100)")
    parser.add_argument("--operation", action="append", choices=sorted(ORACLES), help="one, or more; all")
    parser.add_argument("--type", action="append", help="of elements; all that the operation has")
    parser.add_argument("--form", action="append", help="a layout, or which operands are transposed; all")
    parser.add_argument("--backend", action="append", choices=["host", "vulkan"], help="both")
    parser.add_argument("--seed", default=None, help="any word; a fresh one, which is printed")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (0)")
    parser.add_argument("--only", type=int, help="this case alone, by its number")
    parser.add_argument("--block", type=int, default=None, help="cases that share options, and so kernels (1; vulkan 25)")
    parser.add_argument("--seconds", type=float, default=None, help="stop after so long, having run some of everything")
    parser.add_argument("--libraries", default="torch,onnx", help="optional ones to compare with if they are there")
    parser.add_argument("--show", type=int, default=3, help="failures to print of each operation and type (3)")
    parser.add_argument("--coverage", action="store_true", help="only draws, and says what no case sets; no device")
    return parser.parse_args()


def main() -> int:
    options = parse()
    options.seed = options.seed or secrets.token_hex(4)
    libraries.only(options.libraries.split(","))
    problems = missing_operations(ORACLES)
    if options.coverage:
        problems += unused_fields(ORACLES, options.seed)
    for problem in problems:
        print(f"oracle: {problem}")
    if options.coverage or problems:
        print(f"{len(ORACLES)} operations, {len(problems)} problems, seed {options.seed}")
        return 1 if problems else 0
    chosen = [ORACLES[name] for name in options.operation or ORACLES]
    backends = options.backend or ["host", "vulkan"]
    print(f"oracle: seed {options.seed}, {options.cases} cases of each, {', '.join(backends)}; "
          f"numpy {np.__version__}, scipy {libraries.scipy.__version__}"
          f"{', torch ' + libraries.torch.__version__ if libraries.torch else ''}"
          f"{', onnx ' + libraries.onnx.__version__ if libraries.onnx else ''}", flush=True)  # fmt: skip
    failed = total = 0
    blocks = options.block
    for place, backend in enumerate(backends):
        options.block = blocks or (25 if backend == "vulkan" else 1)
        device = Device(backend)
        plan = [
            (o, kind, form)
            for o in chosen
            for kind in o.types
            for form in o.forms
            if (not options.type or kind in options.type) and (not options.form or form in options.form)
        ]
        begin = time.monotonic()
        # The first backends take what they need of an equal share of the time.
        share = options.seconds / len(backends) if options.seconds else float("inf")
        for turn, (o, kind, form) in enumerate(plan):
            counts = Counts()
            left = begin + share - time.monotonic()
            deadline = time.monotonic() + left / (len(plan) - turn) if options.seconds else float("inf")
            run_form(device, o, kind, form, options, counts, deadline)
            print(f"{backend:6} {o.name:16} {kind:5} {form:4} {counts.line()}", flush=True)
            failed, total = failed + counts.failed, total + counts.cases
            if counts.cases == 0:
                print(f"oracle: no case of {o.name} {kind} {form} was run: --seconds is too short")
                failed += 1
        device.close()
    print(f"{total - failed} passed, {failed} failed; seed {options.seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    # The library beside this checkout's build, and kernels compiled once for all runs.
    os.environ.setdefault("TUFF_LIBRARY", "") or os.environ.pop("TUFF_LIBRARY")
    sys.exit(main())
