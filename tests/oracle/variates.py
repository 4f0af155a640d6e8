"""tuff_variates() against the same methods in float64, with SciPy's logarithms of factorials. Where a decision is so close that
f32 may take the other way, an element may be anything."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from case import TYPES, Case, Draw, Handle, operand, oracle
from elements import Near, Type, decode
from random_numbers import philox

GAMMA, LOG_GAMMA, VONMISES, POISSON, BINOMIAL, HYPERGEOMETRIC, ZIPF = range(1, 8)
NAMES = {GAMMA: "gamma", LOG_GAMMA: "log_gamma", VONMISES: "vonmises", POISSON: "poisson", BINOMIAL: "binomial",
         HYPERGEOMETRIC: "hypergeometric", ZIPF: "zipf"}  # fmt: skip


class Close(Exception):
    """A decision is too close for f32."""


@dataclass
class Drawn(Near):
    """Values with bounds, of which some elements are not known."""

    unknown: np.ndarray | None = None

    def wrong(self, t: Type, raw: np.ndarray) -> tuple[np.ndarray, float]:
        got = decode(t, raw).astype(np.float64)
        with np.errstate(invalid="ignore"):
            right = (np.abs(got - self.value) <= self.bound) | (np.isnan(got) & np.isnan(self.value)) | (got == self.value)
        return ~(right | self.unknown), 0.0


def _below(a: float, b: float, margin: float = 1e-4) -> bool:
    """a < b, in f32 and here. Terms of the two sides are below 100: margin is some hundred units of these."""
    if abs(a - b) < margin:
        raise Close
    return a < b


def _floor(x: float, margin: float) -> int:
    if abs(x - round(x)) < margin:
        raise Close
    return math.floor(x)


class Words:
    def __init__(self, blocks: np.ndarray) -> None:
        self.blocks = blocks

    def pair(self, attempt: int) -> np.ndarray:
        return self.blocks[attempt // 2, 2 * (attempt % 2) : 2 * (attempt % 2) + 2]

    def one(self, i: int) -> int:
        return int(self.blocks[i // 4, i % 4])


def _exponential(w: int) -> float:
    return -math.log((2 * int(w) + 1) / 2.0**33)


def _uniform(w: int) -> float:
    return (int(w) // 256 + 0.5) / 2.0**24


def _gamma_logarithm(words: Words, shape: float) -> float:
    boosted = shape + 1 if shape < 1 else shape
    d = boosted - 1 / 3
    c = 1 / math.sqrt(9 * d)
    for b in range(64):
        radius, angle, accept, less = words.blocks[b]
        x = math.sqrt(2 * _exponential(radius)) * math.cos(2 * math.pi * (int(angle) + 0.5) / 2.0**32)
        if not _below(-1, c * x, 1e-5):
            continue
        v = (1 + c * x) ** 3
        if not _below(_exponential(accept), d * (v - 1 - math.log(v)) - x * x / 2):
            extra = _exponential(words.one(3)) / max(shape, 2.0**-100) if shape < 1 else 0.0
            return math.log(d) + math.log(v) - extra
    raise Close


def _angle(words: Words, kappa: float) -> float:
    s = 0.5 + 0.5 / (1 + kappa)
    for attempt in range(128):
        first, second = words.pair(attempt)
        phi = 2 * math.pi * (int(first) + 0.5) / 2.0**32
        slope = s / (s + 2 * kappa)
        theta = 2 * math.atan(math.sqrt(slope) * math.tan(phi))
        c = s + kappa * 2 * math.sin(theta / 2) ** 2
        if not _below(_exponential(second), c - 1 - math.log(c)):
            return theta
    raise Close


def _waiting(words: Words, limit: float, rate_of) -> int:
    time = 0.0
    for i in range(256):
        if rate_of(i) == 0:
            return i
        time += _exponential(words.one(i)) / rate_of(i)
        if _below(limit, time, 1e-5 * limit):
            return i
    raise Close


def _transformed(words: Words, centre: float, b: float, a: float, squeeze: float, height: float, most: int, log_of) -> int:
    """Hörmann's transformed rejection."""
    for attempt in range(128):
        first, second = words.pair(attempt)
        u, v = _uniform(first) - 0.5, _uniform(second)
        us = 0.5 - abs(u)
        place = (2 * a / us + b) * u + centre
        k = _floor(place, 1e-5 * (abs(place - centre) + 1) + 1e-6 * centre)
        if not 0 <= k <= most:
            continue
        if min(abs(us - 0.07), abs(v - squeeze), abs(us - 0.013)) < 1e-6:
            raise Close
        if us >= 0.07 and v <= squeeze:
            return k
        if most == math.inf and us < 0.013 and v > us:
            continue
        if not _below(_exponential(second), math.log(height / (a / us**2 + b)) - log_of(k)):
            return k
    raise Close


def _poisson(words: Words, rate: float) -> int:
    if _below(rate, 10.0, 1e-5):
        return _waiting(words, rate, lambda i: 1) if rate else 0
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    return _transformed(words, rate + 0.43, b, a, 0.9277 - 3.6224 / (b - 2), 1.1239 + 1.1328 / (b - 3.4), math.inf,
                        lambda k: k * math.log(rate) - rate - float(gammaln(k + 1)))  # fmt: skip


def _binomial(words: Words, n: int, p: float) -> int:
    if p > 0.5:
        return n - _binomial(words, n, 1 - p)
    if n * p == 0:
        return 0
    if _below(n * p, 10.0, 1e-5):
        return _waiting(words, -math.log1p(-p), lambda i: n - i)
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation

    def log_of(k: int) -> float:
        return k * math.log(p) + (n - k) * math.log1p(-p) - float(gammaln(k + 1) + gammaln(n - k + 1))

    mode = log_of(math.floor((n + 1) * p))
    return _transformed(words, n * p + 0.5, b, -0.0873 + 0.0248 * b + 0.01 * p, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation,
                        n, lambda k: log_of(k) - mode)  # fmt: skip


def _urn(words: Words, good: int, total: int, draws: int) -> int:
    found = 0
    for i in range(draws):
        found += words.one(i) * (total - i) >> 32 < good - found
    return found


def _ratio_of_uniforms(words: Words, rare: int, total: int, draws: int) -> int:
    def log_of(k: int) -> float:
        return -float(gammaln(np.array([k, rare - k, draws - k, total - rare - draws + k]) + 1.0).sum())

    share = rare / total
    mean = draws * share
    variance = mean * (1 - share) * (total - draws) / (total - 1)
    width = 1.7155277699214135 * math.sqrt(variance + 0.5) + 0.8989161620588988
    mode = log_of(_floor((draws + 1) * (rare + 1) / (total + 2), 1e-4))
    for attempt in range(128):
        first, second = words.pair(attempt)
        minus = _exponential(first)
        spread = width * (_uniform(second) - 0.5) * math.exp(minus)
        k = _floor(mean + 0.5 + spread, 1e-5 * (abs(spread) + 1) + 1e-6 * mean)
        if 0 <= k <= min(draws, rare) and not _below(minus, 0.5 * (mode - log_of(k))):
            return k
    raise Close


def _hypergeometric(words: Words, good: int, bad: int, draws: int) -> int:
    total, rare = good + bad, min(good, bad)
    fewer = min(draws, total - draws)
    if fewer < 10:
        k = _urn(words, rare, total, fewer)
    elif rare < 10:
        k = _urn(words, fewer, total, rare)
    else:
        k = _ratio_of_uniforms(words, rare, total, fewer)
    k = fewer - k if good > bad else k
    return good - k if fewer < draws else k


def _zipf(words: Words, a: float) -> int:
    if a >= 61:
        return 1
    b = 2 ** (a - 1)
    for attempt in range(128):
        first, second = words.pair(attempt)
        e = _exponential(first) / (a - 1)
        if _below(21.4875, e, 1e-3):
            k, product, t = 2**31 - 1, a - 1, 1.0
        else:
            x = math.exp(e)
            k = _floor(x, 4e-6 * x)
            t = math.exp((a - 1) * math.log1p(1 / k))
            product = k * math.expm1((a - 1) * math.log1p(1 / k))
        if not _below(t / b, _uniform(second) * product / (b - 1), 1e-5 * t / b):
            return k
    raise Close


def _number(form: int, words: Words, p: list) -> float:
    if form in (GAMMA, LOG_GAMMA):
        if not p[0] >= 0:
            return math.nan
        if p[0] == 0:
            return 0.0 if form == GAMMA else -math.inf
        logarithm = _gamma_logarithm(words, p[0])
        return logarithm if form == LOG_GAMMA else math.exp(logarithm)
    if form == VONMISES:
        return _angle(words, p[0]) if p[0] >= 0 else math.nan
    if form == POISSON:
        return _poisson(words, p[0]) if p[0] >= 0 else -1
    if form == BINOMIAL:
        return _binomial(words, *p) if p[0] >= 0 and 0 <= p[1] <= 1 else -1
    if form == ZIPF:
        return _zipf(words, p[0]) if p[0] > 1 else -1
    return _hypergeometric(words, *p) if min(p) >= 0 and p[2] <= p[0] + p[1] else -1


#: Parameters that are drawn, for each distribution.
DRAWN = {
    GAMMA: [[0.0, 0.01, 0.5, 1.0, 2.5, 40.0, 1e4, -1.0]],
    LOG_GAMMA: [[0.0, 1e-3, 0.5, 1.0, 2.5, 40.0, 1e4, -1.0]],
    VONMISES: [[0.0, 0.1, 1.0, 4.0, 100.0, -1.0]],
    POISSON: [[0.0, 0.3, 4.0, 9.75, 10.5, 33.0, 200.0, -1.0]],
    BINOMIAL: [[0, 1, 7, 30, 200], [0.0, 0.25, 0.5, 0.75, 1.0, 1.5]],
    HYPERGEOMETRIC: [[0, 3, 12, 40], [0, 5, 30, 100], [0, 3, 11, 25, 60, -1]],
    ZIPF: [[1.25, 2.0, 3.5, 100.0, 1.0]],
}


@oracle("variates", ["tuff_variates"], ("f32", "i32"), tuple(NAMES.values()), has=lambda kind, form: (kind == "f32") == (form in ("gamma", "log_gamma", "vonmises")))
def variates(draw: Draw, kind: str, form: str) -> Case:
    t, distribution = TYPES[kind], {name: number for number, name in NAMES.items()}[form]
    n = draw.size(300, 0.02)
    seed, sequence = (draw.pick([0, 1, draw.between(0, 2**64 - 1)]) for _ in range(2))
    offset = draw.pick([0, draw.between(0, 9), draw.between(0, 2**56 - n)])
    operands = {"output": operand(draw, t, [n], output=True)}
    arguments = dict(dtype=t.code, distribution=distribution, output=Handle("output"), n=n, seed=seed,
                     sequence=sequence, offset=offset)  # fmt: skip
    given = []
    for field, values in zip(("first", "second", "third"), DRAWN[distribution]):
        integers = isinstance(values[0], int)
        if draw.flip(0.5):
            each = np.array([draw.pick(values) for _ in range(n)], np.int32 if integers else np.float32)
            operands[field] = operand(draw, TYPES["i32" if integers else "f32"], each)
            arguments[field] = Handle(field)
        else:
            value = draw.pick([one for one in values if one >= 0] if integers else values)
            arguments[f"{field}_value"] = value
            each = np.full(n, value, np.int32 if integers else np.float32)
        given.append(each.tolist())

    def reference() -> dict:
        index = np.uint64(offset) + np.arange(n, dtype=np.uint64)
        blocks = np.stack([philox(index | np.uint64(2**62 + b * 2**56), sequence, seed) for b in range(64)], 1)
        value, unknown = np.zeros(n), np.zeros(n, bool)
        for i in range(n):
            try:
                value[i] = _number(distribution, Words(blocks[i]), [each[i] for each in given])
            except Close:
                unknown[i] = True
        # Ten roundings or so, of a logarithm of up to 1e4 times as large; an angle's turn is in steps of 2^-26. The exponential
        # number that a shape below 1 divides is within 2^-23 and four units.
        less = (2.0**-23 + 23 * 2.0**-22) / np.clip(np.where(np.array(given[0]) > 0, given[0], 1), 2.0**-100, 1)
        bound = {GAMMA: np.abs(value) * (1e-5 + less) + 2e-38, LOG_GAMMA: 1e-5 * np.abs(value) + 3e-6 + less,
                 VONMISES: 1e-6 + 2e-6 * np.abs(value)}  # fmt: skip
        with np.errstate(invalid="ignore"):
            return {"output": Drawn(value, np.nan_to_num(bound.get(distribution, 0.0 * value)), unknown=unknown)}

    return Case("tuff_variates", arguments, operands, {"numpy": reference})
