"""Functions beside NumPy's own: tables of calls, and what is compared of their results."""

import numpy as np

import tuff
from tuff import _protocol as protocol

NARROW = {np.dtype(np.float64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.complex64)}
#: Names that NumPy's older versions lack.
OLDER = {"trapezoid": "trapz"}


def is_wide(value):
    if isinstance(value, (list, tuple)):
        return any(map(is_wide, value))
    return value is np.float64 or getattr(value, "dtype", None) in NARROW


def on_device(ctx, value):
    """Arrays of NumPy, also in lists, as arrays on a device; all else as it is."""
    if isinstance(value, np.ndarray):
        return ctx.array(value, value.dtype)
    if isinstance(value, (list, tuple)) and any(isinstance(one, (np.ndarray, list, tuple)) for one in value):
        return type(value)(on_device(ctx, one) for one in value)
    return value


def compare(got, expected, tolerance=0.0, wide=False):
    """Shapes, types and elements. The tolerance is in units of 2**-24 (float64: 2**-53) of the largest element."""
    if isinstance(expected, (list, tuple)):
        assert isinstance(got, (list, tuple)) and len(got) == len(expected)
        for one, other in zip(got, expected):
            compare(one, other, tolerance, wide)
        return
    if isinstance(expected, (bool, int, str)) or expected is None:
        assert got is expected or (type(got) is int and got == expected)
        return
    expected = np.asarray(expected)
    if isinstance(got, np.ndarray):  # edges of bins
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
        return
    assert isinstance(got, tuff.Array), type(got)
    kind = expected.dtype if wide else NARROW.get(expected.dtype, expected.dtype)
    assert got.shape == expected.shape and got.dtype == kind, (got, expected.shape, kind)
    found = got.numpy()
    if tolerance == 0:
        np.testing.assert_array_equal(found, expected.astype(kind))
        return
    finite = np.abs(expected[np.isfinite(expected)])
    unit = 2.0**-53 if kind in NARROW else 2.0**-24
    np.testing.assert_allclose(found, expected, rtol=tolerance * unit, atol=tolerance * unit * (finite.max() if finite.size else 0))


def check(ctx, name, arguments, options=None, tolerance=0.0, module="", in_place=False, by_numpy=True):
    """tuff's function, and NumPy's own called with arrays on the device, give what NumPy's gives for arrays on the host."""
    options = options or {}
    given = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    owner, mine = (np, tuff) if not module else (getattr(np, module), getattr(tuff, module))
    reference = getattr(owner, name, None) or getattr(owner, OLDER.get(name, name))
    with np.errstate(all="ignore"):
        expected = reference(*given, **options)
    wide = is_wide([*arguments, *options.values()])
    ways = [getattr(mine, name)]
    key = f"{module}.{name}" if module else name
    if by_numpy and (key in protocol.FUNCTIONS or isinstance(reference, np.ufunc)):
        ways.append(reference)
    for way in ways:
        passed = [on_device(ctx, one) for one in arguments]
        got = way(*passed, **{key: on_device(ctx, one) for key, one in options.items()})
        if in_place:
            assert got is None
            compare(passed[0], given[0], tolerance, True)
        else:
            compare(got, expected, tolerance, wide)


def rows(cases):
    """Names for a table's rows."""
    return [f"{place}-{case[0]}" for place, case in enumerate(cases)]
