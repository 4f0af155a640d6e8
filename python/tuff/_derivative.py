"""Derivatives of formulas (docs/expressions.md), as formulas."""

from __future__ import annotations

import functools
import re
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from ._slopes import ALPHAS, SLOPES

#: A formula's parts are tuples: ("number", text), ("name", text), ("sign", operator, value), ("pair", operator, a, b),
#: ("choice", condition, a, b) and ("call", name, arguments).
Node = tuple

_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|//|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&|!~?:()=;,^]))"
)
#: Binary operators, those that bind least first. ** and ^ bind more tightly than signs.
_LEVELS = (("||",), ("&&",), ("|",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "//", "%"))
_END = ""


class _Reader:
    """Reads a formula that the library has accepted."""

    def __init__(self, text: str) -> None:
        self.tokens: List[str] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"character {at + 1} of {text!r}: {text[at]!r} is in no formula")
            self.tokens.append(found[1] or found[2] or found[3])
            at = found.end()
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else _END

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def statements(self) -> List[Tuple[Optional[str], Node]]:
        """The names that are assigned, None for the result, and their values."""
        found: List[Tuple[Optional[str], Node]] = []
        while self.peek() != _END:
            name = None
            if self.peek(1) == "=":
                name = self.next()
                self.next()
            found.append((name, self.value()))
            if not self.take(";"):
                break
        return found

    def value(self) -> Node:
        condition = self.binary(0)
        if not self.take("?"):
            return condition
        a = self.value()
        self.next()  # the colon
        return ("choice", condition, a, self.value())

    def binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _LEVELS[level]:
            left = ("pair", self.next(), left, self.binary(level + 1))
        return left

    def unary(self) -> Node:
        if self.peek() in ("+", "-", "!", "~"):
            return ("sign", self.next(), self.unary())
        base = self.primary()
        return ("pair", "**", base, self.unary()) if self.take("**") or self.take("^") else base

    def primary(self) -> Node:
        token = self.next()
        if token == "(":
            inner = self.value()
            self.next()
            return inner
        if not (token[0].isalpha() or token[0] == "_"):
            return ("number", token)
        if not self.take("("):
            return ("name", token)
        arguments = []
        while not self.take(")"):
            arguments.append(self.value())
            self.take(",")
        return ("call", token, tuple(arguments))


def text_of(node: Node) -> str:
    kind = node[0]
    if kind in ("number", "name"):
        return node[1]
    if kind == "sign":
        return f"({node[1]}{text_of(node[2])})"
    if kind == "pair":
        return f"({text_of(node[2])} {node[1]} {text_of(node[3])})"
    if kind == "choice":
        return f"({text_of(node[1])} ? {text_of(node[2])} : {text_of(node[3])})"
    return f"{node[1]}({', '.join(map(text_of, node[2]))})"


def names_in(node: Node) -> frozenset:
    kind = node[0]
    if kind == "name":
        return frozenset((node[1],))
    if kind == "number":
        return frozenset()
    parts = node[2] if kind == "call" else [part for part in node[1:] if isinstance(part, tuple)]
    return frozenset().union(*map(names_in, parts))


# Sums and products of derivatives, of which None is zero.

_ONE: Node = ("number", "1")
Slope = Optional[Node]


def _number(text: str) -> Node:
    return ("number", text)


def _pair(operator: str, a: Node, b: Node) -> Node:
    return ("pair", operator, a, b)


def _call(name: str, *arguments: Node) -> Node:
    return ("call", name, arguments)


def _negative(a: Slope) -> Slope:
    return None if a is None else ("sign", "-", a)


def _sum(a: Slope, b: Slope) -> Slope:
    if a is None or b is None:
        return b if a is None else a
    return _pair("+", a, b)


def _product(a: Slope, b: Node) -> Slope:
    if a is None:
        return None
    return b if a == _ONE else a if b == _ONE else _pair("*", a, b)


def _choice(condition: Node, a: Slope, b: Slope) -> Slope:
    """The untaken side is not computed into the result: what it is does not matter."""
    if a is None and b is None:
        return None
    zero = _number("0")
    return ("choice", condition, zero if a is None else a, zero if b is None else b)


# The rules. Each gets the arguments and their slopes.


def _of_quotient(a: Node, b: Node, da: Slope, db: Slope) -> Slope:
    top = _sum(da, _negative(_product(db, _pair("/", a, b))))
    return None if top is None else _pair("/", top, b)


def _of_power(a: Node, b: Node, da: Slope, db: Slope) -> Slope:
    of_base = None
    if da is not None and b != _number("0"):
        less = _number(repr(float(b[1]) - 1)) if b[0] == "number" else _pair("-", b, _ONE)
        inner = a if b == _number("2") else _pair("**", a, less)
        of_base = _product(da, _pair("*", b, inner))
    if db is None:
        return of_base
    power = _pair("**", a, b)
    # 0 ** b does not change with b > 0; log(0) would make it NaN.
    logarithm: Slope = ("choice", _pair("==", a, _number("0")), _number("0"), _pair("*", power, _call("log", a)))
    return _sum(of_base, _product(db, logarithm))


def _of_fma(a: Node, b: Node, c: Node, da: Slope, db: Slope, dc: Slope) -> Slope:
    return _sum(_sum(_product(da, b), _product(db, a)), dc)


def _of_lerp(a: Node, b: Node, t: Node, da: Slope, db: Slope, dt: Slope) -> Slope:
    return _sum(_sum(_product(da, _pair("-", _ONE, t)), _product(db, t)), _product(dt, _pair("-", b, a)))


def _of_clamp(x: Node, low: Node, high: Node, dx: Slope, dlow: Slope, dhigh: Slope) -> Slope:
    """For min(max(x, low), high), which is high where that is below low."""
    return _choice(_pair(">", _call("max", x, low), high), dhigh, _choice(_pair("<", x, low), dlow, dx))


def _of_atan2(y: Node, x: Node, dy: Slope, dx: Slope) -> Slope:
    top = _sum(_product(dy, x), _negative(_product(dx, y)))
    return None if top is None else _pair("/", top, _pair("+", _call("square", x), _call("square", y)))


def _of_hypot(a: Node, b: Node, da: Slope, db: Slope) -> Slope:
    length = _call("hypot", a, b)
    return _choice(_pair("==", length, _number("0")), None,
                   _sum(_product(da, _pair("/", a, length)), _product(db, _pair("/", b, length))))  # fmt: skip


def _of_logaddexp(a: Node, b: Node, da: Slope, db: Slope) -> Slope:
    above = _pair("-", a, b)
    return _sum(_product(da, _call("sigmoid", above)), _product(db, _call("sigmoid", ("sign", "-", above))))


def _of_copysign(a: Node, b: Node, da: Slope, _: Slope) -> Slope:
    return _choice(_pair("==", _call("signbit", a), _call("signbit", b)), da, _negative(da))


def _of_remainder(quotient: Callable[[Node, Node], Node]) -> Callable[..., Slope]:
    return lambda a, b, da, db: _sum(da, _negative(_product(db, quotient(a, b))))


_truncated = _of_remainder(lambda a, b: _call("trunc", _pair("/", a, b)))
_floored = _of_remainder(lambda a, b: _call("floor", _pair("/", a, b)))
_RULES: Dict[str, Callable[..., Slope]] = {
    "+": lambda a, b, da, db: _sum(da, db),
    "-": lambda a, b, da, db: _sum(da, _negative(db)),
    "*": lambda a, b, da, db: _sum(_product(da, b), _product(db, a)),
    "/": _of_quotient,
    "%": _floored,
    "**": _of_power,
    "max": lambda a, b, da, db: _choice(_pair(">=", a, b), da, db),
    "min": lambda a, b, da, db: _choice(_pair("<=", a, b), da, db),
    "clamp": _of_clamp,
    "fma": _of_fma,
    "lerp": _of_lerp,
    "atan2": _of_atan2,
    "hypot": _of_hypot,
    "logaddexp": _of_logaddexp,
    "copysign": _of_copysign,
    "mod": _floored,
    "fmod": _truncated,
    "remainder": _truncated,
    "where": lambda c, a, b, dc, da, db: _choice(c, da, db),
    "neg": lambda a, da: _negative(da),
    "nextafter": lambda a, b, da, db: da,
    **{name: lambda a, da: da for name in ("f16", "bf16", "f32", "f64")},
}
_RULES.update(add=_RULES["+"], sub=_RULES["-"], mul=_RULES["*"], div=_RULES["/"], pow=_RULES["**"])

#: Functions with steps, whose derivative is 0 where there is one.
_STEPS = {"==", "!=", "<", "<=", ">", ">=", "&&", "||", "&", "|", "<<", ">>", "//", "floor_divide", "xor", "gcd", "lcm",
          "popcount", "isnan", "isinf", "isfinite", "signbit", "bool",
          *(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64))}  # fmt: skip


def _replaced(node: Node, values: Dict[str, Node]) -> Node:
    kind = node[0]
    if kind == "name":
        return values.get(node[1], node)
    if kind == "number":
        return node
    if kind == "call":
        return ("call", node[1], tuple(_replaced(one, values) for one in node[2]))
    return tuple(_replaced(part, values) if isinstance(part, tuple) else part for part in node)


@functools.lru_cache(maxsize=None)
def _slope(name: str) -> Node:
    return _Reader(SLOPES[name]).value()


def _applied(name: str, arguments: Sequence[Node], slopes: Sequence[Slope], whole: Node) -> Slope:
    if name in _STEPS or all(slope is None for slope in slopes):
        return None
    if name in _RULES:
        return _RULES[name](*arguments, *slopes)
    if name in SLOPES:
        alpha = arguments[1] if len(arguments) > 1 else _number(ALPHAS.get(name, "0"))
        if len(slopes) > 1 and slopes[1] is not None:
            raise TypeError(f"the formula has no derivative: {name} by its second argument")
        slope = _slope(name)
        return None if slope == _number("0") else _product(slopes[0], _replaced(slope, {"x": arguments[0], "y": whole, "alpha": alpha}))
    raise TypeError(f"the formula has no derivative: {name} has none in the table")


def _slope_of(node: Node, known: Dict[str, Node]) -> Slope:
    kind = node[0]
    if kind == "number":
        return None
    if kind == "name":
        return known.get(node[1])
    if kind == "sign":
        slope = _slope_of(node[2], known)
        return slope if node[1] == "+" else _negative(slope) if node[1] == "-" else None
    if kind == "choice":
        return _choice(node[1], _slope_of(node[2], known), _slope_of(node[3], known))
    arguments = node[2] if kind == "call" else node[2:]
    return _applied(node[1], arguments, [_slope_of(one, known) for one in arguments], node)


@functools.lru_cache(maxsize=4096)
def derivative(formula: str, name: str, factor: str) -> Optional[Tuple[str, frozenset]]:
    """The formula of `factor` times the derivative by a name, and the names that it needs. None: the derivative is 0.
    At a kink it is that of one side: of max and min the first operand's. A TypeError says what has no derivative."""
    statements = _Reader(formula).statements()
    taken = set().union(*(names_in(value) for _, value in statements), {target for target, _ in statements if target}, {factor})
    known: Dict[str, Node] = {name: _ONE}
    done: List[str] = []
    temporaries = {target for target, _ in statements if target}
    for target, value in statements:
        slope = _slope_of(value, known)
        if target is not None and target != "result":
            done.append(f"{target} = {text_of(value)}")
            if slope is None:
                continue
            own = f"{target}_slope"
            while own in taken:
                own += "_"
            taken.add(own)
            done.append(f"{own} = {text_of(slope)}")
            known[target] = ("name", own)
        elif slope is None:
            return None
        else:
            done.append(text_of(_product(slope, ("name", factor))))
            read = _Reader("; ".join(done)).statements()
            needed = frozenset().union(*(names_in(one) for _, one in read)) - temporaries - {_name for _name, _ in read if _name}
            return "; ".join(done), needed
    return None
