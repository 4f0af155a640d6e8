"""The README's program runs and prints what it says."""

import re
from pathlib import Path

import pytest

import tuff


def test_the_readme_s_program(capsys):
    if tuff.device_count() == 0:
        pytest.skip("no Vulkan device")
    text = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
    exec(re.search(r"```python\n(.*?)```", text, flags=re.S).group(1), {})
    shape, sums = capsys.readouterr().out.strip().split(") ")
    assert shape == "(64, 10"
    assert [float(value) for value in sums.strip("[]").split()] == pytest.approx([1, 1, 1], abs=1e-6)
