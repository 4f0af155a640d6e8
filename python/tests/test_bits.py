"""Bits of numbers and of bytes, beside NumPy."""

import numpy as np
import pytest
from beside import check, rows

import tuff

TINY = {np.float16: 6e-8, np.float32: 1.4e-45, np.float64: 5e-324}
RNG = np.random.default_rng(6)
M = RNG.integers(-2, 3, (5, 11)).astype(np.int16)
BYTES = RNG.integers(0, 256, (3, 5)).astype(np.uint8)
NONE = np.zeros((0, 3), np.uint8)


def edges(kind):
    info = np.finfo(kind)
    one = [0.0, 1, 1.5, 0.75, 3, 1e-3, 100, info.max, info.tiny, float(info.tiny) / 4, TINY[kind], float(TINY[kind]) * 3, 1.0 - float(info.epsneg)]
    return np.array([*one, *(-number for number in one), np.inf, -np.inf, np.nan], kind)


CASES = [
    *[("frexp", (edges(kind),)) for kind in TINY], ("frexp", (M,)), ("frexp", (NONE.astype(np.float32),)), ("frexp", (np.array(8, np.float32),)),
    *[("ldexp", (np.array([1, -1.5, 0, np.inf, np.nan, 2.0**-20], kind), np.arange(-8, 10, 3, dtype=np.int32))) for kind in TINY],
    ("ldexp", (np.array([1, 3], np.float32), 5)), ("ldexp", (np.array([2.0**-100, 2.0**100, 1], np.float32), np.array([220, -220, 127]))), ("ldexp", (3.0, np.array([-5, 5], np.int8))),
    ("ldexp", (np.array([2.0**-1000, 2.0**1000, 1]), np.array([2000, -2000, -1022]))), ("ldexp", (np.array([1.0, 1, 0]), np.array([2**40, -(2**40), 2**40]))),
    ("ldexp", (np.array([[1.0], [2.0]], np.float32), np.array([1, 2, 3], np.uint8))),
    ("packbits", (M,)), ("packbits", (M, 0)), ("packbits", (M, -1)), ("packbits", (M > 0, 1), {"bitorder": "little"}), ("packbits", (BYTES,)), ("packbits", (NONE,)), ("packbits", (NONE, 1)),
    ("packbits", (np.array([1], np.int64),)), ("packbits", (np.array([2**40, 0], np.int64),)),
    ("unpackbits", (BYTES,)), ("unpackbits", (BYTES, 0)), ("unpackbits", (BYTES, -1, 11)), ("unpackbits", (BYTES, 1, -3)), ("unpackbits", (BYTES, 1, 45)), ("unpackbits", (BYTES, None, 7, "little")),
    ("unpackbits", (BYTES, None, 0)), ("unpackbits", (NONE,)), ("unpackbits", (NONE, 1)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=rows(CASES))
def test_beside_numpy(shared, case):
    check(shared, *case)


@pytest.mark.parametrize("kind", TINY)
def test_spacing(shared, kind):
    host = edges(kind)
    host = host[(np.abs(host) != np.finfo(kind).max) & np.isfinite(host)]
    expected = np.where(host == 0, TINY[kind], np.nextafter(host, np.where(host < 0, -np.inf, np.inf).astype(kind)) - host).astype(kind)
    for way in (tuff.spacing, np.spacing):
        assert way(shared.array(host, kind)).numpy().tolist() == expected.tolist()
    assert np.isnan(tuff.spacing(shared.array([np.inf, -np.inf, np.nan], kind)).numpy()).all()
    assert tuff.spacing(shared.array([1, 2], np.int32)).numpy().tolist() == [2.0**-23, 2.0**-22]


def test_outputs(shared):
    x = shared.array([1.0, 3.0])
    out = shared.empty(2)
    assert np.ldexp(x, 2, out=out) is out and out.numpy().tolist() == [4, 12]
    assert tuff.spacing(x, out=out) is out and out.numpy().tolist() == [2.0**-23, 2.0**-22]


def test_round_trip(shared):
    host = RNG.integers(0, 2, (7, 13)).astype(np.bool_)
    for order in ("big", "little"):
        packed = tuff.packbits(shared.array(host), 1, order)
        assert (tuff.unpackbits(packed, 1, 13, order).numpy() == host).all()
    x = shared.array(edges(np.float32)[:13])
    assert (tuff.ldexp(*tuff.frexp(x)).numpy()[:9] == x.numpy()[:9]).all()


@pytest.mark.parametrize(
    "error, use",
    [
        (TypeError, lambda x, b: tuff.frexp(b.numpy())),
        (TypeError, lambda x, b: tuff.frexp(x.astype(np.complex64))),
        (TypeError, lambda x, b: np.frexp(x, out=(x, b))),
        (TypeError, lambda x, b: tuff.ldexp(x, x)),
        (TypeError, lambda x, b: tuff.ldexp(x, 1.5)),
        (TypeError, lambda x, b: tuff.ldexp(2.0, 3)),
        (TypeError, lambda x, b: tuff.spacing(x.astype(np.complex64))),
        (TypeError, lambda x, b: tuff.packbits(x)),
        (ValueError, lambda x, b: tuff.packbits(b, bitorder="middle")),
        (IndexError, lambda x, b: tuff.packbits(b, 2)),
        (TypeError, lambda x, b: tuff.unpackbits(x)),
        (ValueError, lambda x, b: tuff.unpackbits(b, 1, -41)),
        (TypeError, lambda x, b: tuff.unpackbits(b, 1, 1.5)),
    ],
)
def test_what_is_wrong(shared, error, use):
    with pytest.raises(error):
        use(shared.array([1.0, 2.0]), shared.array(BYTES))
