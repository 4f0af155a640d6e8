#!/usr/bin/env python3
"""Random calls of every operation, compared with independent libraries. See README.md in this folder."""

from __future__ import annotations

import argparse
import random
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
from case import ORACLES, TYPES, Case, Draw, Oracle  # noqa: E402
from coverage import missing_operations, unused_fields  # noqa: E402
from device import Device, Refused, Wrong  # noqa: E402
from elements import Bits, decode, encode, round_to, ulp  # noqa: E402

import attention  # noqa: E402, F401
import convolutions  # noqa: E402, F401
import elementwise  # noqa: E402, F401
import expressions  # noqa: E402, F401
import linalg  # noqa: E402, F401
import norms  # noqa: E402, F401
import products  # noqa: E402, F401
import positions  # noqa: E402, F401
import random_numbers  # noqa: E402, F401
import recurrent  # noqa: E402, F401
import rows  # noqa: E402, F401
import shapes  # noqa: E402, F401
import sorting  # noqa: E402, F401
import sparse  # noqa: E402, F401
import quantisation  # noqa: E402, F401
import training  # noqa: E402, F401
import transforms  # noqa: E402, F401
import variates  # noqa: E402, F401
import windows  # noqa: E402, F401


class Counts:
    def __init__(self) -> None:
        self.cases, self.failed, self.refused, self.used = 0, 0, Counter(), 0.0
        self.by: Counter = Counter()
        self.kernels = 0

    def line(self) -> str:
        libraries_ = ", ".join(f"{name} {count}" for name, count in sorted(self.by.items()))
        text = f"{self.cases:7d} cases, {self.failed} failed, {self.used:5.2f} of the bound used ({libraries_})"
        text += f", {self.kernels} kernels" if self.kernels else ""
        return text + "".join(f"\n    {n} refused: {why}" for why, n in self.refused.items())


def draw_case(oracle: Oracle, kind: str, form: str, seed: str, index: int, block: int) -> tuple[Case, Draw]:
    draw = Draw(f"{seed}/{oracle.name}/{kind}/{form}", index // block, index)
    return oracle.draw(draw, kind, form), draw


def judge(case: Case, outputs: dict[str, np.ndarray], counts: Counts) -> None:
    """Raises Wrong for the first output that some library contradicts."""
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
    if of is None or (of.dtype == t.storage and t.name != "f64"):
        x = decode(t, np.asarray([x], dtype=t.storage))[0]
    if np.iscomplexobj(x):
        return f"{complex(x):.9g}"
    return f"{float(x):.9g}" if t.float else str(int(x))


def describe(case: Case) -> str:
    arguments = case.arguments
    if isinstance(arguments, dict):
        arguments = {name: value for name, value in arguments.items() if not isinstance(value, (int, float)) or value}
    sizes = {name: f"{o.type.name}{list(o.index.shape)}" for name, o in case.operands.items()}
    return f"    {case.function} {arguments}\n    operands {sizes} {case.note}"


def run_cases(device: Device, oracle: Oracle, kind: str, form: str, options, counts: Counts, deadline: float) -> None:
    """Runs the requested number of cases of an operation, a type and a form, or as many as time allows, at least
    one."""
    indices = [options.only] if options.only is not None else range(options.first, options.first + options.cases)
    for index in indices:
        case, draw = draw_case(oracle, kind, form, options.seed, index, options.block)
        counts.cases += 1
        try:
            judge(case, device.run(case, draw), counts)
        except Refused as refusal:
            counts.refused[str(refusal)] += 1
        except Exception as problem:  # also the oracle's own errors: not the library's fault, but no success either
            if not isinstance(problem, Wrong):
                problem = "".join(traceback.format_exc().splitlines(keepends=True)[-5:])
            counts.failed += 1
            form_option = f" --form {shlex.quote(form)}" if form else ""
            again = f"tests/oracle/run.py --operation {oracle.name} --type {kind}{form_option} --backend " \
                    f"{device.backend} --seed {shlex.quote(options.seed)} --block {options.block} --only {index}"  # fmt: skip
            if counts.failed <= options.show:
                print(f"WRONG {oracle.name} {kind} {form} {device.backend}: {problem}\n{describe(case)}\n  {again}",
                      flush=True)  # fmt: skip
        if time.monotonic() > deadline:
            break


def run_all(device: Device, chosen: list[Oracle], options) -> tuple[int, int]:
    """Runs the full number of cases for each type and form; returns how many ran and how many failed."""
    total = failed = 0
    for oracle in chosen:
        for kind, form in combinations(device, oracle, options):
            counts, before = Counts(), device.kernels()
            run_cases(device, oracle, kind, form, options, counts, float("inf"))
            counts.kernels = device.kernels() - before
            print(f"{device.backend:6} {oracle.name:16} {kind:5} {form:12} {counts.line()}", flush=True)
            total, failed = total + counts.cases, failed + counts.failed
    return total, failed


def run_sample(device: Device, chosen: list[Oracle], options, seconds: float) -> tuple[int, int]:
    """Gives each operation an equal share of the time, and its types and forms in an order that depends on the
    seed."""
    total = failed = 0
    end = time.monotonic() + seconds
    options.cases, whole = min(options.cases, options.block if device.backend == "vulkan" else 4), options.cases
    order = random.Random(options.seed)
    for turn, oracle in enumerate(chosen):
        deadline = time.monotonic() + max(0.0, end - time.monotonic()) / (len(chosen) - turn)
        counts, seen, before = Counts(), [], device.kernels()
        mixed = combinations(device, oracle, options)
        order.shuffle(mixed)
        for options.first in range(0, whole, options.cases):
            for kind, form in mixed:
                seen.append((kind, form))
                run_cases(device, oracle, kind, form, options, counts, deadline)
                if time.monotonic() > deadline:
                    break
            if time.monotonic() > deadline:
                break
        counts.kernels = device.kernels() - before
        print(f"{device.backend:6} {oracle.name:16} {len(set(seen)):3} of {len(mixed):3} types and forms {counts.line()}",
              flush=True)  # fmt: skip
        total, failed = total + counts.cases, failed + counts.failed
    options.cases, options.first = whole, 0
    return total, failed


def combinations(device: Device, oracle: Oracle, options) -> list[tuple[str, str]]:
    """The types and forms to run: of types that the device supports (a mixture consists of floating-point types)."""
    return [(kind, form) for kind, form in oracle.combinations()
            if (not options.type or kind in options.type) and (not options.form or form in options.form)
            and (kind == "mixed" or device.supports(f"{oracle.name}.{kind}"))]  # fmt: skip


def types_without(device: Device, chosen: list[Oracle]) -> list[str]:
    """Types that the device supports for an operation but that the operation's oracle does not draw."""
    return [f"{device.backend} supports {o.name}.{kind}, which has no oracle" for o in chosen for kind in TYPES
            if kind not in o.types and device.supports(f"{o.name}.{kind}")]  # fmt: skip


def run_mutations(device: Device, chosen: list[Oracle], options) -> tuple[int, int]:
    """Checks that the oracle can fail: one element of each result is changed, to NaN (or 1, or by one bit), and by
    four times its bound. Every library must report it as wrong."""
    total = unseen = 0
    for oracle in chosen:
        for kind, form in combinations(device, oracle, options):
            for index in range(options.first, options.first + options.cases):
                case, draw = draw_case(oracle, kind, form, options.seed, index, options.block)
                outputs = device.run(case, draw)
                for library, reference in case.references.items():
                    for name, expected in reference().items():
                        for changed in _mutants(case, name, expected, outputs[name], draw):
                            total += 1
                            if not expected.wrong(case.operands[name].type, changed)[0].any():
                                unseen += 1
                                print(f"UNSEEN {oracle.name} {kind} {form} case {index}: {name} by {library}")
    return total, unseen


def _mutants(case: Case, name: str, expected, got: np.ndarray, draw: Draw):
    if not got.size:
        return
    t, place = case.operands[name].type, np.unravel_index(draw.between(0, got.size - 1), got.shape)
    if hasattr(expected, "mutants"):
        yield from expected.mutants(got, place)
        return
    value = np.asarray(expected.value)[place]
    if getattr(expected, "unknown", None) is not None and expected.unknown[place]:
        return
    if not t.float or isinstance(expected, Bits):
        if t.float and np.isnan(decode(t, np.asarray([got[place]]))[0]):
            return  # any NaN will do
        changed = got.copy()
        changed.view(f"u{t.size}")[place] ^= np.array(1, f"u{t.size}")
        if not t.float or np.abs(decode(t, np.asarray([changed[place]]))[0]) > 1e-30:
            yield changed
        return
    # Some results may be read in several ways (denormal operands may be flushed): the change must fit none of them.
    readings = [(expected.value, expected.bound), *expected.others]
    allowed = [[float(np.broadcast_to(part, got.shape)[place]) for part in reading] for reading in readings]
    largest = max((abs(number) + width for number, width in allowed if np.isfinite(number)), default=0.0)
    changed = got.copy()
    changed[place] = encode(t, np.array(1 + 2 * largest if any(np.isnan(number) for number, _ in allowed) else np.nan))
    yield changed
    bound = float(np.broadcast_to(expected.bound, got.shape)[place])
    if not np.isfinite(value) or abs(value) <= 1e-30 or expected.others:
        return
    # Away from zero, since a denormal result may be zero; towards it if the type has no number there.
    distance = 4 * (float(bound) + float(ulp(t, np.abs(value) + bound)))
    for off in (abs(float(value)) + distance, abs(float(value)) - distance):
        if 0 < abs(off) <= (t.most or np.finfo(t.storage).max):
            changed = got.copy()
            changed[place] = encode(t, np.asarray(np.copysign(1.0, value) * off))
            yield changed
            return


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100, help="of each operation, type and form (100)")
    parser.add_argument("--operation", action="append", choices=sorted(ORACLES), help="one, or more; all")
    parser.add_argument("--type", action="append", help="of elements; all that the operation has")
    parser.add_argument("--form", action="append", help="a layout, a function, which operands are transposed; all")
    parser.add_argument("--backend", action="append", choices=["host", "vulkan", "cpu"], help="host and vulkan")
    parser.add_argument("--seed", default=None, help="any word; a fresh one, which is printed")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (0)")
    parser.add_argument("--only", type=int, help="this case alone, by its number")
    parser.add_argument("--block", type=int, default=None, help="cases that share options, and so kernels (1; vulkan 25)")
    parser.add_argument("--seconds", type=float, default=None, help="a sample: an equal share for each operation")
    parser.add_argument("--libraries", default="torch,onnx", help="optional ones to compare with if they are there")
    parser.add_argument("--show", type=int, default=3, help="failures to print of each operation and type (3)")
    parser.add_argument("--coverage", action="store_true", help="only draws, and says what no case sets; no device")
    parser.add_argument("--mutations", action="store_true", help="changes results, and says which changes nobody sees")
    options = parser.parse_args()
    for value in options.type or []:
        if not any(value in o.types for o in ORACLES.values()):
            parser.error(f"no operation has a type {value}")
    for value in options.form or []:
        if not any(value in o.forms for o in ORACLES.values()):
            parser.error(f"no operation has a form {value}; " + "; ".join(
                f"{o.name}: {', '.join(o.forms)}" for o in ORACLES.values() if o.forms != ("",)))  # fmt: skip
    return options


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
    print(f"oracle: seed {options.seed}, {', '.join(backends)}; numpy {np.__version__}, "
          f"scipy {libraries.scipy.__version__}"
          f"{', torch ' + libraries.torch.__version__ if libraries.torch else ''}"
          f"{', onnx ' + libraries.onnx.__version__ if libraries.onnx else ''}", flush=True)  # fmt: skip
    total = failed = 0
    end = time.monotonic() + (options.seconds or 0)
    block = options.block
    for place, backend in enumerate(backends):
        options.block = block or (25 if backend == "vulkan" else 1)
        device = Device(backend)
        for problem in types_without(device, chosen):
            print(f"oracle: {problem}")
            total, failed = total + 1, failed + 1
        if options.mutations:
            cases, wrong = run_mutations(device, chosen, options)
        elif options.seconds:
            # With two backends, the first, which compiles nothing, gets a quarter of the time.
            share = (end - time.monotonic()) * (0.25 if place + 1 < len(backends) else 1.0)
            cases, wrong = run_sample(device, chosen, options, share)
        else:
            cases, wrong = run_all(device, chosen, options)
        total, failed = total + cases, failed + wrong
        device.close()
    if total == 0:
        print("oracle: no requested operation has that type and form")
        return 1
    print(f"{total - failed} passed, {failed} failed; seed {options.seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
