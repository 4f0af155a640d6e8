"""What the array API standard asks of a namespace besides functions of arrays."""

import numpy as np
import pytest

import tuff


def test_types_by_their_names():
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"):
        assert getattr(tuff, name) == np.dtype(name)
    assert tuff.bool == np.dtype(bool)
    assert "bool" not in tuff.__all__ and "float32" in tuff.__all__


def test_limits(ctx):
    assert tuff.finfo(np.float32).eps == 2.0**-23 and tuff.finfo(ctx.ones(1)).bits == 32
    assert tuff.finfo("float16").max == 65504
    assert tuff.finfo(tuff.complex128).eps == 2.0**-52
    assert tuff.iinfo(tuff.int8).min == -128 and tuff.iinfo(ctx.zeros(1, np.uint64)).max == 2**64 - 1
    for use in (lambda: tuff.finfo(np.int32), lambda: tuff.iinfo(np.float32), lambda: tuff.iinfo(bool), lambda: tuff.finfo("clongdouble")):
        with pytest.raises(TypeError):
            use()


@pytest.mark.parametrize(
    "dtype, kinds",
    [
        ("bool", {"bool"}),
        ("int16", {"signed integer", "integral", "numeric"}),
        ("uint64", {"unsigned integer", "integral", "numeric"}),
        ("float16", {"real floating", "numeric"}),
        ("float64", {"real floating", "numeric"}),
        ("complex64", {"complex floating", "numeric"}),
    ],
)
def test_kinds(dtype, kinds):
    every = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")
    assert {kind for kind in every if tuff.isdtype(dtype, kind)} == kinds
    assert tuff.isdtype(dtype, ("bool", *kinds)) and not tuff.isdtype(dtype, ())
    assert tuff.isdtype(dtype, np.dtype(dtype)) and not tuff.isdtype(dtype, np.int64)
    with pytest.raises(ValueError, match="kind is 'whole'"):
        tuff.isdtype(dtype, "whole")
    with pytest.raises(TypeError):
        tuff.isdtype("clongdouble", "numeric")


def test_the_namespace_describes_itself(ctx):
    info = ctx.ones(1).__array_namespace__().__array_namespace_info__()
    assert info.capabilities()["max dimensions"] == 8
    integral = info.dtypes(device=ctx, kind="integral")
    assert set(integral) == {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    assert info.dtypes(device=ctx, kind=("bool", "signed integer"))["bool"] == tuff.bool
    assert ("float64" in info.dtypes(device=ctx)) == ctx.supports("f64")
    complex_types = {"complex64"} | ({"complex128"} if ctx.supports("f64") else set())
    assert set(info.dtypes(device=ctx, kind="complex floating")) == complex_types
    assert info.default_dtypes()["complex floating"] == tuff.complex64
    assert info.default_dtypes()["real floating"] == tuff.float32
    assert tuff.__array_api_version__ == "2024.12"


def test_devices(ctx, backend):
    x = ctx.ones(3)
    assert x.device is ctx and x.to_device(ctx) is x
    assert tuff.conj(x) is x and tuff.real(x) is x
    with tuff.Context(backend=backend) as other:
        y = x.to_device(other)
        assert y.device is other and y.numpy().tolist() == [1, 1, 1]
    for use in (lambda: tuff.real(np.ones(3)), lambda: x.to_device("cpu")):
        with pytest.raises(TypeError):
            use()
