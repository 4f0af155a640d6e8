"""Random numbers and dropout against Philox4x32-10 in NumPy's 64-bit integers, and distributions of its words in float64."""

from __future__ import annotations

import numpy as np

from case import TYPES, Case, Draw, Handle, operand, oracle
from elements import U32, Near

BITS, INTEGERS, BERNOULLI, UNIFORM, NORMAL, EXPONENTIAL = range(1, 7)
NAMES = {BITS: "bits", INTEGERS: "integers", BERNOULLI: "bernoulli", UNIFORM: "uniform", NORMAL: "normal",
         EXPONENTIAL: "exponential"}  # fmt: skip
RANGES = {"i32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1), "i8": (-128, 127), "u8": (0, 255)}
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def philox(block: np.ndarray, sequence: int, seed: int) -> np.ndarray:
    """Four words for each block number: Salmon et al. 2011, algorithm of section 3.3."""
    c = [block & LOW, block >> HALF, np.full_like(block, sequence % 2**32), np.full_like(block, sequence >> 32)]
    k = [seed % 2**32, seed >> 32]
    for i in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        k0, k1 = (np.uint64((k[j] + i * step) % 2**32) for j, step in ((0, 0x9E3779B9), (1, 0xBB67AE85)))
        c = [b >> HALF ^ c[1] ^ k0, b & LOW, a >> HALF ^ c[3] ^ k1, a & LOW]
    return np.stack(c, axis=-1)


def _has(kind: str, form: str) -> bool:
    return form == "bernoulli" or (kind in RANGES) == (form in ("bits", "integers"))


@oracle("random", ["tuff_random"], ("f32", "f16", "bf16", *RANGES), tuple(NAMES.values()), has=_has)
def random(draw: Draw, kind: str, form: str) -> Case:
    t, distribution = TYPES[kind], {name: number for number, name in NAMES.items()}[form]
    n = draw.size(2000, 0.02)
    seed, sequence = (draw.pick([0, 1, draw.between(0, 2**64 - 1)]) for _ in range(2))
    offset = draw.pick([0, draw.between(0, 9), draw.between(0, 2**64 - 1 - n)])
    low, high = draw.pick([(0.0, 0.0), (-1.0, 1.0), (2.5, 100.0), (3.0, 3.0)])
    mean, deviation = draw.pick([(0.0, 0.0), (1.5, 1e-3), (-200.0, 30.0)])
    scale, probability = draw.pick([0.0, 0.1, 30.0]), draw.pick([0.0, 0.5, 1.0, draw.between(0, 1000) / 1000])
    least = most = 0
    if kind in RANGES:
        bounds = RANGES[kind]
        least, most = draw.pick([bounds, sorted(draw.between(*bounds) for _ in range(2)), (5, 9)])
    operands = {"output": operand(draw, t, [n], output=True)}
    arguments = dict(dtype=t.code, distribution=distribution, output=Handle("output"), n=n, seed=seed,
                     sequence=sequence, offset=offset, low=low, high=high, mean=mean, deviation=deviation, scale=scale,
                     probability=probability, least=least, most=most)  # fmt: skip

    def reference() -> dict:
        index = np.uint64(offset) + np.arange(n, dtype=np.uint64)
        words = philox(index >> np.uint64(2), sequence, seed)
        place = (index % np.uint64(4)).astype(np.int64)[:, None]

        def at(column: np.ndarray) -> np.ndarray:
            return np.take_along_axis(words, column, axis=1)[:, 0].astype(np.int64)

        word = at(place)
        if distribution == INTEGERS:
            more = philox(index >> np.uint64(2) | np.uint64(2**63), sequence, seed)
            lower = np.take_along_axis(more, place, axis=1)[:, 0]
            both = [int(upper) << 32 | int(w) for upper, w in zip(word, lower)]
            return {"output": Near(np.array([least + (w * (most - least + 1) >> 64) for w in both], np.int64))}
        if distribution == BITS:
            return {"output": Near(word.astype(t.storage).astype(np.int64))}
        if distribution == BERNOULLI:
            return {"output": Near((word < round(probability * 2**32)).astype(np.int64))}
        if distribution == UNIFORM:
            # f32 holds the fraction exactly; then a product, a sum, and the rounding of high - low.
            u = np.floor(np.ldexp(word, t.digits - 32)) * 2.0**-t.digits
            base, span = np.float32(low), (1.0 if low == high == 0 else high - low)
            value = base + span * u
            exact = low == high == 0
            return {"output": Near(value, 0.0 if exact else 2 * U32 * span * u + U32 * np.abs(value) + U32 * abs(low))}
        if distribution == EXPONENTIAL:
            # tests/random_test.cpp derives the errors of both.
            e = -np.log((2.0 * word + 1) / 2.0**33)
            factor = scale or 1.0
            return {"output": Near(factor * e, factor * (2.0**-23 + 7 * U32 * e))}
        pair = place // 2 * 2
        radius = np.sqrt(-2 * np.log((2.0 * at(pair) + 1) / 2.0**33))
        angle = 2 * np.pi * (at(pair + 1) + 0.5) / 2.0**32
        z = radius * np.where(place[:, 0] % 2 == 0, np.cos(angle), np.sin(angle))
        error = (2.0**-22 + 8 * U32 * radius**2) / (2 * radius) + radius * (np.pi * 2.0**-26 + 10 * U32)
        factor = deviation or 1.0
        value = mean + factor * z
        return {"output": Near(value, factor * (error + 2 * U32 * np.abs(z)) + U32 * np.abs(value))}

    return Case("tuff_random", arguments, operands, {"numpy": reference})


@oracle("dropout", ["tuff_dropout"], ("f32", "f16", "bf16"))
def dropout(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    n = draw.size(2000, 0.02)
    seed, sequence = (draw.pick([0, 1, draw.between(0, 2**64 - 1)]) for _ in range(2))
    offset = draw.pick([0, draw.between(0, 9), draw.between(0, 2**64 - 1 - n)])
    probability = draw.pick([0.0, 0.5, 1.0, draw.between(0, 1000) / 1000])
    in_place, masked = draw.flip(0.25), draw.maybe(0.5)
    operands = {"input": operand(draw, t, draw.values([n], draw.pick(["whole", "normal"])), output=in_place)}
    x = operands["input"].values
    if not in_place:
        operands["output"] = operand(draw, t, [n], output=True)
    if masked:
        operands["mask"] = operand(draw, TYPES["u8"], [n], output=True)
    target = "input" if in_place else "output"
    arguments = dict(dtype=t.code, input=Handle("input"), output=Handle(target), n=n, seed=seed, sequence=sequence,
                     offset=offset, probability=probability)  # fmt: skip
    if masked:
        arguments["mask"] = Handle("mask")

    def reference() -> dict:
        index = np.uint64(offset) + np.arange(n, dtype=np.uint64)
        place = (index % np.uint64(4)).astype(np.int64)[:, None]
        words = np.take_along_axis(philox(index >> np.uint64(2), sequence, seed), place, axis=1)[:, 0].astype(np.int64)
        kept = words >= round(probability * 2**32)
        # 1 / (1 - p) and the product, each rounded to f32.
        factor = np.float32(1 / (1 - probability) if probability < 1 else 0)
        y = np.where(kept, np.asarray(x, np.float32) * factor, np.float32(0)).astype(np.float64)
        found = {target: Near(y, 0.0)}
        if masked:
            found["mask"] = Near(kept.astype(np.int64))
        return found

    return Case("tuff_dropout", arguments, operands, {"numpy": reference})
