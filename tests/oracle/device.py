"""Calls libtuff.so through tuff.raw, with operands between guard bytes."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from tuff import raw  # noqa: E402
from tuff._abi import FUNCTIONS  # noqa: E402

from case import Case, Draw, Formula, Handle  # noqa: E402


# Operands that TUFF_NULL_HANDLE omits; for these it cannot also stand for an operand with no elements.
OPTIONAL = {"bias", "residual", "weight", "mask", "lse", "q_lengths", "kv_lengths", "positions", "sum",
            "scale_a", "scale_b", "scale_c", "info", "determinant", "sign", "log_magnitude"}  # fmt: skip


class Wrong(Exception):
    """A case that failed; the message says how."""


class Refused(Exception):
    """A call that the device may reject, and did."""


def _message() -> str:
    text = ctypes.create_string_buffer(2048)
    raw.tuff_last_error(text, len(text), None)
    return text.value.decode(errors="replace")


def _checked(status: int, what: str) -> None:
    if status != raw.OK:
        raise RuntimeError(f"{what}: {raw.tuff_status_name(status).decode()}: {_message()}")


def descriptor_of(function: str):
    """The structure that a function takes after the stream, or None."""
    kinds = FUNCTIONS[function][1]
    if len(kinds) == 2 and hasattr(kinds[1], "_type_") and issubclass(kinds[1]._type_, ctypes.Structure):
        return kinds[1]._type_
    return None


class Device:
    def __init__(self, backend: str) -> None:
        handle = ctypes.c_uint64()
        _checked(raw.tuff_context_create(raw.ContextDesc(backend=backend.encode()), ctypes.byref(handle)), "context")
        self.backend, self.context = backend, handle.value

    def close(self) -> None:
        _checked(raw.tuff_context_destroy(self.context), "tuff_context_destroy")

    def supports(self, feature: str) -> bool:
        yes = ctypes.c_int32()
        _checked(raw.tuff_supports(self.context, feature.encode(), ctypes.byref(yes)), "tuff_supports")
        return bool(yes.value)

    def kernels(self) -> int:
        """The number of kernels compiled for the device so far."""
        stats = raw.Stats()
        _checked(raw.tuff_context_stats(self.context, ctypes.byref(stats)), "tuff_context_stats")
        return stats.pipelines_created

    def run(self, case: Case, draw: Draw) -> dict[str, np.ndarray]:
        """Returns each output's elements as stored. Raises Wrong if the call fails, or if any byte changes that is not
        an element of an output."""
        memory = _Memory(self.context, case, draw)
        try:
            if case.function == "tuff_expr_run":
                status = self._run_formula(*case.arguments, memory.handles)
            else:
                status = getattr(raw, case.function)(self.context, *_arguments(case, memory.handles))
            if status != raw.OK:
                text = f"{raw.tuff_status_name(status).decode()}: {_message()}"
                if status == raw.ERROR_UNSUPPORTED and any(part in text for part in case.refusals):
                    raise Refused(text)
                raise Wrong(text)
            return memory.outputs()
        finally:
            memory.free()

    def _run_formula(self, formula: Formula, inputs: list[Handle], outputs: list[Handle], handles) -> int:
        def variables(rows):
            return (raw.ExprVariable * len(rows))(*(raw.ExprVariable(name.encode(), t.code, 0) for name, t, _ in rows))

        def operands(rows, names, strided):
            made = (raw.ExprOperand * len(rows))()
            for one, (_, _, layout), name in zip(made, rows, names):
                one.buffer, one.strided = handles[name.name], int(strided)
                if strided:
                    one.strides[: len(layout)] = layout
            return made

        desc = raw.ExprDesc(formula=formula.text.encode(), inputs=variables(formula.inputs),
                            input_count=len(formula.inputs), outputs=variables(formula.outputs),
                            output_count=len(formula.outputs))  # fmt: skip
        expr = ctypes.c_uint64()
        status = raw.tuff_expr_create(self.context, ctypes.byref(desc), ctypes.byref(expr))
        if status != raw.OK:
            return status
        run = raw.ExprRunDesc(rank=len(formula.shape), inputs=operands(formula.inputs, inputs, True),
                              outputs=operands(formula.outputs, outputs, False), input_count=len(inputs),
                              output_count=len(outputs))  # fmt: skip
        run.shape[: len(formula.shape)] = formula.shape
        status = raw.tuff_expr_run(self.context, expr.value, ctypes.byref(run))
        raw.tuff_expr_destroy(expr.value)
        return status


def _arguments(case: Case, handles: dict[str, int]) -> list:
    def resolved(value):
        if isinstance(value, Handle):
            return handles[value.name]
        return [resolved(v) for v in value] if isinstance(value, (list, tuple)) else value

    if isinstance(case.arguments, dict):
        kind = descriptor_of(case.function)
        types = dict(kind._fields_)
        desc = kind()
        for name, value in case.arguments.items():
            value = resolved(value)
            if isinstance(value, list):
                of = types[name]._type_
                array = (of * max(len(value), 1))(*value) if hasattr(types[name], "contents") else types[name](*value)
                setattr(desc, name, array)
            else:
                setattr(desc, name, value)
        return [ctypes.byref(desc)]
    result = []
    for kind, value in zip(FUNCTIONS[case.function][1][1:], case.arguments):
        value = resolved(value)
        result.append((kind._type_ * max(len(value), 1))(*value) if isinstance(value, list) else value)
    return result


class _Memory:
    """A case's operands in buffers: as views of one buffer, as views of separate ones, or as whole buffers. Random
    bytes surround each operand and fill its gaps, and must be unchanged afterwards."""

    def __init__(self, context: int, case: Case, draw: Draw) -> None:
        self.context, self.case, self.made = context, case, []
        self.handles: dict[str, int] = {}
        self.images: list[tuple[int, np.ndarray, list]] = []  # buffer, its bytes, (operand, first byte)
        way = draw.pick(["one", "one", "own", "bare"])
        rows = []
        try:
            for name, operand in case.operands.items():
                if operand.raw.size == 0 and name not in OPTIONAL and draw.flip(0.5):
                    self.handles[name] = raw.NULL_HANDLE
                    continue
                rows.append((name, operand))
                if way != "one":
                    self._place(rows, draw, way == "bare")
                    rows = []
            if rows:
                self._place(rows, draw, False)
        except BaseException:
            self.free()
            raise

    def _place(self, rows, draw: Draw, bare: bool) -> None:
        places, end = [], 0
        for name, operand in rows:
            size = operand.type.size
            first = 0 if bare else -(-end // size) * size + draw.between(0, 37) * size
            end = first + operand.raw.nbytes
            places.append((name, operand, first))
        image = np.frombuffer(draw.data.bytes(end if bare else end + draw.between(1, 67)), np.uint8).copy()
        for _, operand, first in places:
            image[first : first + operand.raw.nbytes] = operand.raw.view(np.uint8)
        buffer = ctypes.c_uint64()
        _checked(raw.tuff_alloc(self.context, image.size, ctypes.byref(buffer)), "tuff_alloc")
        self.made.append(buffer.value)
        _checked(raw.tuff_copy_htod(self.context, buffer.value, 0, image.ctypes.data, image.size), "tuff_copy_htod")
        self.images.append((buffer.value, image, [(name, o, first) for name, o, first in places if o.output]))
        for name, operand, first in places:
            view = buffer
            if not bare:
                view = ctypes.c_uint64()
                _checked(raw.tuff_view(buffer.value, first, operand.raw.nbytes, ctypes.byref(view)), "tuff_view")
                self.made.append(view.value)
            self.handles[name] = view.value

    def outputs(self) -> dict[str, np.ndarray]:
        result = {name: np.asarray(o.raw[o.index]) for name, o in self.case.operands.items() if o.output}
        for buffer, before, outputs in self.images:
            after = np.empty_like(before)
            _checked(raw.tuff_copy_dtoh(self.context, after.ctypes.data, buffer, 0, after.size), "tuff_copy_dtoh")
            for name, operand, first in outputs:
                stored = slice(first, first + operand.raw.nbytes)
                elements = after[stored].view(operand.type.storage)
                result[name] = np.asarray(elements[operand.index])
                before = before.copy()
                before[stored].view(operand.type.storage)[operand.index] = result[name]
            changed = np.flatnonzero(before != after)
            if changed.size:
                raise Wrong(f"{changed.size} bytes changed that belong to no output, the first at {changed[0]} of "
                            f"{after.size}: {self._whose(buffer, int(changed[0]))}")  # fmt: skip
        return result

    def _whose(self, buffer: int, byte: int) -> str:
        for of, _, outputs in self.images:
            for name, operand, first in outputs:
                if of == buffer and first <= byte < first + operand.raw.nbytes:
                    return f"between the elements of {name}"
        return "a guard, or an input"

    def free(self) -> None:
        for handle in reversed(self.made):
            raw.tuff_free(handle)
