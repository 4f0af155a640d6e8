"""docs/numpy.md says what is true: what it lists is there, and what of NumPy it says runs on a device does."""

import re

import numpy as np
import pytest

import tuff
from tuff import _protocol as protocol


@pytest.fixture(scope="module")
def rows():
    from conftest import CHECKOUT

    page = CHECKOUT / "docs" / "numpy.md"
    if not page.is_file():
        pytest.skip("the package is tested away from its checkout")
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if re.match(r"\| `", line)]
    return [[cell.strip().strip("`") for cell in line.split(" | ")] for line in (line.strip("| ") + " | " * 3 for line in lines)]


def test_functions_are_there(rows):
    assert len(rows) > 150
    for row in rows:
        if row[2].startswith("tuff."):
            found = tuff
            for name in row[2].split(".")[1:]:
                found = getattr(found, name)
            assert callable(found)
        elif row[2].startswith("Generator."):
            assert callable(getattr(tuff.Generator, row[2][10:]))


def test_numpys_functions_run(rows):
    run = [row[0] for row in rows if row[1] == f"numpy.{row[0]}" and hasattr(np, row[0])]
    assert len(run) > 100
    modules = (protocol.elementwise, protocol.functions, protocol.operations)
    for name in run:
        function = getattr(np, name)
        if isinstance(function, np.ufunc):
            known = protocol._UFUNCS.get(function.__name__, function.__name__)
            assert known in protocol.UFUNCS or known == "conjugate" or any(known in module.__all__ for module in modules), name
        else:
            assert function.__name__ in protocol.FUNCTIONS or name == "row_stack", name  # NumPy 2: calls vstack
    of_linalg = [row[0] for row in rows if row[1] == f"numpy.linalg.{row[0]}"]
    assert len(of_linalg) > 10
    assert all(f"linalg.{name}" in protocol.FUNCTIONS for name in of_linalg)
