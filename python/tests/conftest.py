"""Fixtures: a context on each backend, and derived error bounds."""

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
