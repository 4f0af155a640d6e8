"""Fixtures: a context on each backend, and derived error bounds."""

import ctypes
import os
import random
import sys
import zlib
from collections import Counter, defaultdict
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


#: Tests with more rows than this are tables, of which TUFF_TEST_SAMPLE keeps a part, as in tests/main.cpp.
MAX_WHOLE_TABLE = 32
#: Of smaller ones with more rows than this, on both backends together, a sixth of those on a device is kept.
MAX_WHOLE_ON_DEVICE = 6


def _sample():
    """What TUFF_TEST_SAMPLE=N[:seed] asks for: (N, seed). Each row of a table is kept with probability 1 / N, but at
    least one on each backend. Without a seed, it is TUFF_TEST_SAMPLE_SEED, which scripts/test.sh sets, or a fresh one."""
    wanted = os.environ.get("TUFF_TEST_SAMPLE", "1")
    share, colon, seed = wanted.partition(":")
    if not share.isdecimal() or int(share) == 0 or bool(colon) != seed.isdecimal():
        raise pytest.UsageError(f"TUFF_TEST_SAMPLE: {wanted} is neither N nor N:seed")
    seed = seed or os.environ.get("TUFF_TEST_SAMPLE_SEED") or str(random.SystemRandom().getrandbits(32))
    if not seed.isdecimal():
        raise pytest.UsageError(f"TUFF_TEST_SAMPLE_SEED: {seed} is no number")
    return int(share), int(seed)


def pytest_collection_modifyitems(config, items):
    share, seed = config.sample
    # Tests that a command names, such as file.py::test[row], are what it wants.
    if share == 1 or any("::" in argument for argument in config.args):
        return
    tables = defaultdict(list)  # by test and backend, the rows' ranks
    sizes, ranks = Counter(), {}

    def table_of(item):
        return item.nodeid.partition("[")[0]

    def backend_of(item):
        params = item.callspec.params if hasattr(item, "callspec") else {}
        return params.get("backend", params.get("shared"))

    # By the row's name, so that the entries of CTest that run the same files keep the same rows and share their kernels.
    def rank_of(item):
        return zlib.crc32(f"{seed} {item.nodeid}".encode())

    for item in items:
        ranks[item] = rank_of(item)
        sizes[table_of(item)] += 1
        tables[table_of(item), backend_of(item)].append(ranks[item])
    least = {table: min(of_rows) for table, of_rows in tables.items()}

    def is_kept(item):
        table, backend, rank = table_of(item), backend_of(item), ranks[item]
        one_in = share if sizes[table] > MAX_WHOLE_TABLE else 1
        # What differs between the rows of a smaller table is seen on the host; on a device most need kernels of their own.
        if MAX_WHOLE_TABLE >= sizes[table] > MAX_WHOLE_ON_DEVICE and backend == "vulkan":
            one_in = min(share, 6)
        return rank * one_in < 2**32 or rank == least[table, backend]

    dropped = [item for item in items if not is_kept(item)]
    config.hook.pytest_deselected(items=dropped)
    out = set(map(id, dropped))
    items[:] = [item for item in items if id(item) not in out]


def pytest_configure(config):
    config.sample = _sample()
    if not BACKENDS:
        raise pytest.UsageError(f"TUFF_TEST_BACKENDS: {os.environ['TUFF_TEST_BACKENDS']} names neither host nor vulkan")


def pytest_terminal_summary(terminalreporter, config):
    share, seed = config.sample
    if share > 1 and terminalreporter.stats.get("deselected"):
        terminalreporter.write_line(
            f"Of tests with more than {MAX_WHOLE_TABLE} rows, one row in {share}: TUFF_TEST_SAMPLE={share}:{seed} repeats this sample."
        )


#: As in the tests in C++: TUFF_TEST_BACKENDS leaves out what it does not name of the tests that run on each backend.
BACKENDS = [one for one in ("host", "vulkan") if one in os.environ.get("TUFF_TEST_BACKENDS", "host,vulkan").split(",")]


@pytest.fixture(params=BACKENDS)
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


@pytest.fixture(params=BACKENDS, scope="module")
def shared(request):
    """A context for all tests of a module."""
    if request.param == "vulkan" and tuff.device_count() == 0:
        pytest.skip("no Vulkan device")
    with tuff.Context(backend=request.param) as context:
        yield context
