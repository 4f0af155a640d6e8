"""Fixtures: a context on each backend, and derived error bounds."""

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent

try:
    import tuff
except ImportError:  # not installed: the package of this checkout
    sys.path.insert(0, str(CHECKOUT / "python"))
    import tuff

from tuff._structure import Structure


def _refuse_wrapping(self, name, value):
    """Fields of structures: ctypes reduces an integer modulo 2**64 in silence. The package must not rely on that."""
    previous = ctypes.Structure.__setattr__
    previous(self, name, value)
    if isinstance(value, int):
        assert (getattr(self, name) or 0) == value, f"{type(self).__name__}.{name} = {value} is {getattr(self, name)} to C"


Structure.__setattr__ = _refuse_wrapping

UNIT = 2.0**-24  # the unit roundoff of float32


def gamma(n):
    """The relative bound of n roundings in a row."""
    return n * UNIT / (1 - n * UNIT)


@pytest.fixture(params=["host", "vulkan"])
def backend(request):
    if request.param == "vulkan" and tuff.device_count() == 0:
        pytest.skip("no Vulkan device")
    return request.param


@pytest.fixture
def ctx(backend):
    with tuff.Context(backend=backend) as context:
        yield context


@pytest.fixture
def vulkan():
    if tuff.device_count() == 0:
        pytest.skip("no Vulkan device")
    with tuff.Context(backend="vulkan") as context:
        yield context


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def checkout():
    return CHECKOUT
