"""Formulas over arrays and numbers, each one kernel."""

from __future__ import annotations

import ctypes
import functools
import re
import threading
import weakref
from typing import TYPE_CHECKING, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import raw
from ._checked import is_complex_number, text
from ._core import Formula
from ._error import check
from ._handle import own
from ._layout import beside, require_writable
from ._operands import require_array, require_rank, whole_axis
from ._storage import DTYPES, Storage, Strided, as_dtype
from ._tracing import RULES, any_traced, without_transposed
from ._types import is_complex

if TYPE_CHECKING:
    from ._array import Array
    from ._context import Context

__all__ = ["expr"]

_SCALARS = {bool: raw.BOOL, int: raw.I64, float: raw.F32}
_NUMPY_SCALARS = {"b1": raw.BOOL, "i1": raw.I8, "i2": raw.I16, "i4": raw.I32, "i8": raw.I64, "u1": raw.U8, "u2": raw.U16,
                  "u4": raw.U32, "u8": raw.U64, "f2": raw.F16, "f4": raw.F32, "f8": raw.F64}  # fmt: skip


class _Compiled:
    """A tuff_expr. It keeps no context alive, so that a context's formulas end with it."""

    def __init__(self, context: Context, formula: str, inputs: Tuple[Tuple[str, int, bool], ...], output: int) -> None:
        names = (raw.ExprVariable * len(inputs))(
            *((text(name, "a name"), dtype, raw.EXPR_SCALAR * scalar) for name, dtype, scalar in inputs)
        )
        result = (raw.ExprVariable * 1)((b"result", output, 0))
        desc = raw.ExprDesc(
            formula=text(formula, "formula"), inputs=names, input_count=len(inputs), outputs=result, output_count=1
        )
        handle = ctypes.c_uint64()
        check(raw.tuff_expr_create(context.handle, desc, handle))
        self.handle = handle.value
        self._finalizer = own(self, context._session, raw.tuff_expr_destroy, handle.value)


_compiled: "weakref.WeakKeyDictionary[Context, Dict[tuple, _Compiled]]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_thread = threading.local()
#: What expr() ran before, by formula, dtype and names.
_formulas: Dict[object, Formula] = {}
#: Formulas kept for a context, before all of them are dropped.
_MOST = 1024


def _scalar(value: object, name: str) -> Tuple[int, float, int]:
    """A number's element type, and its value as a float and as an integer."""
    if isinstance(value, np.generic):
        dtype = _NUMPY_SCALARS.get(f"{value.dtype.kind}{value.dtype.itemsize}")
    else:
        dtype = _SCALARS.get(type(value))
    if dtype is None:
        raise TypeError(f"{name} is {type(value).__name__}, neither a tuff.Array nor a number")
    if dtype in (raw.F16, raw.F32, raw.F64):
        return dtype, float(value), 0
    number = int(value)
    if dtype == raw.I64 and type(value) is int:
        if -(2**31) <= number < 2**31:
            dtype = raw.I32
        elif not -(2**63) <= number < 2**63:
            raise OverflowError(f"{name} is {number}, beyond 64 bits")
    return dtype, 0.0, number - 2**64 if number >= 2**63 else number


def _without_complex(formula: str, inputs: Dict[str, object]) -> Tuple[str, Dict[str, object]]:
    """Passes complex numbers as their parts: the library's scalars are real."""
    found: Dict[str, object] = {}
    for name, value in inputs.items():
        if not is_complex_number(value):
            found[name] = value
            continue
        re, im = _new_names(name, formula, inputs)
        formula = f"{name} = complex({re}, {im}); {formula}"
        kind = np.float64 if isinstance(value, np.complex128) else float
        found[re], found[im] = kind(value.real), kind(value.imag)
    return formula, found


def _new_names(name: str, formula: str, inputs: Dict[str, object]) -> Tuple[str, str]:
    """Names for the parts of a number that neither the formula nor another input has."""
    re, im = f"{name}_re", f"{name}_im"
    while any(part in formula or part in inputs for part in (re, im)):
        re, im = f"{re}0", f"{im}0"
    return re, im


class Reduction(NamedTuple):
    """How a formula ends: sum(value, axis=1)."""

    op: int  #: a raw.REDUCE_*
    value: str  #: the formula of what is reduced
    axes: Optional[Tuple[int, ...]]  #: None: all
    correction: float = 0.0  #: of var and std

    def of(self, rank: int) -> Tuple[int, ...]:
        """The axes of a shape, in order."""
        if self.axes is None:
            return tuple(range(rank))
        axes = sorted(whole_axis(axis, rank) for axis in self.axes)
        if len(set(axes)) != len(axes):
            raise ValueError(f"axis={self.axes} of {rank} dimensions names one twice")
        return tuple(axes)

    def shape_of(self, shape: Tuple[int, ...], keepdims: bool) -> Tuple[int, ...]:
        axes = self.of(len(shape))
        return tuple(1 if axis in axes else n for axis, n in enumerate(shape) if keepdims or axis not in axes)


#: The type of a reduction's result: a function of _reductions, which needs this module.
RESULT_TYPES: List[Callable[[int, np.dtype], np.dtype]] = []
#: The reductions that end formulas, by name (docs/expressions.md).
_REDUCTIONS = {name: getattr(raw, f"REDUCE_{name.upper()}") for name in (
    "sum", "mean", "prod", "max", "min", "any", "all", "count_nonzero", "sum_squares", "l1", "l2",
    "argmax", "argmin", "var", "std", "logsumexp")}  # fmt: skip
_LAST = re.compile(rf"(?P<before>.*;)?\s*(?:result\s*=\s*)?(?P<name>{'|'.join(_REDUCTIONS)})\s*\((?P<inside>[^;]*)\)[\s;]*", re.S)
_NUMBER = r"-?\s*[0-9]+"
_AXIS = re.compile(rf"\s*axis\s*=\s*(?:({_NUMBER})|\(\s*({_NUMBER}(?:\s*,\s*{_NUMBER})*)\s*,?\s*\))\s*")

_CORRECTION = re.compile(r"\s*correction\s*=\s*(-?\s*(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*")


@functools.lru_cache(maxsize=4096)
def reduction_of(formula: str) -> Optional[Reduction]:
    """The reduction that ends a formula. The library judges whether it is right; this is for the result's shape and type."""
    found = _LAST.fullmatch(formula)
    if found is None:
        return None
    arguments, depth, begin = [], 0, 0
    inside = found["inside"]
    for place, sign in enumerate(inside):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return None  # sum(a) + sum(b)
        if depth == 0 and sign == ",":
            arguments.append(inside[begin:place])
            begin = place + 1
    arguments.append(inside[begin:])
    axes, correction = None, 0.0
    for argument in arguments[1:]:
        named = _AXIS.fullmatch(argument)
        corrects = _CORRECTION.fullmatch(argument)
        if named is not None:
            axes = tuple(int("".join(each.split())) for each in (named[1] or named[2]).split(","))
        elif corrects is not None:
            correction = float("".join(corrects[1].split()))
        else:
            return None  # max(a, b)
    return Reduction(_REDUCTIONS[found["name"]], (found["before"] or "") + arguments[0], axes, correction)


def _result_operand(array: Array, shape: Tuple[int, ...], axes: Tuple[int, ...]) -> raw.ExprOperand:
    """The result of a reduction, whose strides along the reduced axes are 0."""
    operand = _operand(array, array.shape)
    if array.ndim != len(shape):
        given = iter(operand.strides)
        operand.strides = (ctypes.c_int64 * 8)(*(0 if axis in axes else next(given) for axis in range(len(shape))))
    return operand


def _operand(array: Array, shape: Tuple[int, ...]) -> raw.ExprOperand:
    strides, stride = [0] * len(shape), 1
    if isinstance(array, Strided):
        layout = array.layout
        for axis in range(-1, -array.ndim - 1, -1):
            strides[axis] = 0 if array.shape[axis] == 1 else layout.strides[axis]
        return raw.ExprOperand(buffer=layout.base.handle, first=layout.first, strides=tuple(strides), strided=1)
    for axis in range(-1, -array.ndim - 1, -1):
        strides[axis] = 0 if array.shape[axis] == 1 else stride
        stride *= array.shape[axis]
    return raw.ExprOperand(buffer=array.buffer.handle, strides=tuple(strides), strided=1)


def expr(
    formula: str,
    *,
    dtype: object = None,
    out: Optional[Array] = None,
    keepdims: bool = False,
    **inputs: Union[Array, bool, int, float, np.generic],
) -> Array:
    """Computes a formula over named arrays and numbers in one kernel: tuff.expr("gelu(a * x + b)", a=a, x=x, b=0.5).

    Arrays broadcast as in NumPy. dtype is the result's; by default that of out, or of the first array. If that is real
    and another operand is complex, name dtype, also of formulas with a real result, such as "real(z) * x". The formula is
    compiled at its first use with inputs of these types, and kept with the context. docs/expressions.md has the grammar.

    A formula may end with a reduction: tuff.expr("sum((x - m) ** 2, axis=1)", x=x, m=m). dtype is then that of the
    reduction of elements of the first array's type, and keepdims keeps the reduced axes with size 1.
    """
    if getattr(_thread, "ran", None) is not None:  # repeated() wants to know what is run
        return _run(formula, dtype, out, inputs, keepdims)
    if type(formula) is not str or not (dtype is None or isinstance(dtype, (str, type, np.dtype))):
        return _run(formula, dtype, out, inputs, keepdims)  # what may not be a key
    key = (formula, dtype, *inputs)
    known = _formulas.get(key)
    if known is None or keepdims:
        if keepdims or reduction_of(formula) is not None:
            return _run(formula, dtype, out, inputs, keepdims)
        if len(_formulas) >= _MOST:
            _formulas.clear()
        known = _formulas[key] = Formula()
    operands = tuple(inputs.values())
    result = known.run(out, *operands)
    if result is not None:
        return result
    return _learn(known, lambda *_, out: _run(formula, dtype, out, inputs), out, operands)


def _run(formula: str, dtype: object, out: Optional[Array], inputs: Dict[str, object], keepdims: bool = False) -> Array:
    reduction = reduction_of(formula) if type(formula) is str else None
    if reduction is None and keepdims:
        raise TypeError("keepdims is for formulas that end with a reduction, such as sum(x, axis=1)")
    if any_traced(inputs.values()):
        inputs = {name: without_transposed(value) for name, value in inputs.items()}
        if reduction is not None:
            return RULES["reduced_expr"](formula, reduction, dtype, out, inputs, keepdims)
        return RULES["expr"](formula, dtype, out, inputs)
    with_complex = any(is_complex(v.dtype) if isinstance(v, Storage) else is_complex_number(v) for v in inputs.values())
    formula, inputs = _without_complex(formula, inputs)
    arrays = {name: value for name, value in inputs.items() if isinstance(value, Storage)}
    for name, value in inputs.items():
        if isinstance(value, np.ndarray):
            require_array(value, name)
    if not arrays:
        raise TypeError("no input is a tuff.Array")
    first = next(iter(arrays.values()))
    if with_complex and dtype is None and out is None and not is_complex(first.dtype):
        raise TypeError(f"name dtype: operands are complex, and the first array is {first.dtype}")
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    for name, array in arrays.items():
        require_rank(array, name)
        if array.context is not first.context:
            raise ValueError(f"{name} is of another context")
    result_shape = shape if reduction is None else reduction.shape_of(shape, keepdims)
    if out is not None:
        require_array(out, "out")
        require_writable(out)
        if out.shape != result_shape:
            raise ValueError(f"out has shape {out.shape}, the result {result_shape}")
        if dtype is not None and as_dtype(dtype) != out.dtype:
            raise TypeError(f"dtype is {as_dtype(dtype)}, and out's is {out.dtype}")
        result = out
        for name, array in arrays.items():
            inputs[name] = arrays[name] = beside(array, out)
    else:
        if dtype is None:
            dtype = first.dtype if reduction is None else RESULT_TYPES[0](reduction.op, first.dtype)
        result = first.context.empty(result_shape, dtype)
    variables, operands = [], (raw.ExprOperand * len(inputs))()
    for index, (name, value) in enumerate(inputs.items()):
        if name in arrays:
            variables.append((name, DTYPES[value.dtype], False))
            operands[index] = _operand(value, shape)
        else:
            kind, number, integer = _scalar(value, name)
            variables.append((name, kind, True))
            operands[index] = raw.ExprOperand(value=number, integer=integer)
    key = (formula, tuple(variables), DTYPES[result.dtype])
    with _lock:
        known = _compiled.setdefault(first.context, {})
        compiled = known.get(key)
    if compiled is None:
        compiled = _Compiled(first.context, *key)
        with _lock:
            if len(known) >= _MOST:
                known.clear()
            known[key] = compiled
    desc = raw.ExprRunDesc(
        rank=len(shape), inputs=operands, input_count=len(inputs), outputs=(raw.ExprOperand * 1)(
            _operand(result, shape) if reduction is None else _result_operand(result, shape, reduction.of(len(shape)))),
        output_count=1, shape=shape,
    )  # fmt: skip
    check(raw.tuff_expr_run(first.context.stream_handle, compiled.handle, desc))
    ran = getattr(_thread, "ran", None)
    if ran is not None and reduction is None:
        ran.append(_Ran(compiled, tuple(inputs.values()), tuple(kind for _, kind, _ in variables), result))
    return result


class _Ran(NamedTuple):
    """What a call of expr() did."""

    compiled: _Compiled
    operands: Tuple[object, ...]
    kinds: Tuple[int, ...]
    result: Array


#: How numbers are passed; see Formula.learn().
_AS_INTEGER, _AS_FLOAT, _AS_HALF = 1, 2, 3


def _passed(given: object, used: object, kind: int) -> Optional[int]:
    """How a call's operand reached the formula; None: neither as it is, nor as the nearest float16."""
    if isinstance(given, Storage):
        return 0 if used is given else None
    if isinstance(used, Storage) or type(given) not in (float, int, bool):
        return None
    if kind == raw.F16:
        return _AS_HALF if isinstance(used, np.float16) else None
    if kind in (raw.F32, raw.F64):
        return _AS_FLOAT if float(used) == float(given) or given != given else None
    return _AS_INTEGER if kind != raw.BF16 and int(used) == given else None


def _learn(formula: Formula, function: Callable[..., Array], out: Optional[Array], operands: tuple) -> Array:
    """Calls a function, and lets the formula remember what it did, if that was one formula of these very operands."""
    before = getattr(_thread, "ran", None)
    ran: List[_Ran] = []
    _thread.ran = ran
    try:
        result = function(*operands, out=out)
    finally:
        _thread.ran = before
    if len(ran) == 1 and ran[0].result is result and len(ran[0].operands) == len(operands):
        passed = [_passed(*each) for each in zip(operands, ran[0].operands, ran[0].kinds)]
        if None not in passed:
            formula.learn(out, operands, ran[0].compiled.handle, ran[0].compiled, result.dtype, bytes(passed))
    return result


def repeated(function: Callable[..., Array]) -> Callable[..., Array]:
    """Makes a function of operands and out faster. If a call runs one formula of its operands, in their order, later calls
    with operands of the same types run it at once. Whatever else the function decides by are properties that Formula
    tells apart: a number's type, and which integer types hold it."""
    formula = Formula()
    run = formula.run

    @functools.wraps(function)
    def call(*operands: object, out: Optional[Array] = None, **named: object) -> Array:
        if named:
            return function(*operands, out=out, **named)
        result = run(out, *operands)
        return _learn(formula, function, out, operands) if result is None else result

    return call
