"""Generates code and text from the tables of operations (kernels/*/*.def): tuff.hpp's enumerations, Python's
functions, and the lists of the README and the pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "cmake"))
import tables  # noqa: E402

Problem = tables.Problem

PYTHON_HEAD = '''"""Functions of elements and reductions. Generated from the tables of operations (kernels/*/*.def) by
scripts/api/generate.py: not to be edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from . import _operations as operations
from . import _reductions as reductions
from . import raw

if TYPE_CHECKING:
    from ._array import Array, Axis
    from ._operands import Operand

'''

SLOPES_HEAD = '''"""Derivatives of unary functions as formulas of x, y (the result) and alpha, and their alphas. Generated from
kernels/elementwise/unary.def by scripts/api/generate.py: not to be edited."""

'''
#: Functions of C++ that formulas have by other names, and those that they lack: a derivative with one is left out.
CPP_NAMES = {"fabs": "abs", "fmax": "max"}
NO_FORMULAS = ("trigamma",)


class Lists:
    def __init__(self, root: Path):
        self.root = root
        self.tables = {name: tables.read(root, name) for name in tables.OPERATIONS}
        self.constants = tables.constants(root)

    def comment(self, kind: str, row: dict) -> str:
        """tuff.h's comment on the row's enumerator, as a docstring's sentence; "" if it has none."""
        text = self.constants[f"{kind.upper()}_{row['NAME']}"][1]
        return re.sub(r";? since [\d.]+$", "", text)

    # --- tuff.hpp -----------------------------------------------------------------------------------------------

    def enumeration(self, kind: str) -> str:
        rows = [f"  {row['name']} = TUFF_{kind.upper()}_{row['NAME']}" for row in self.tables[kind]]
        body = [f"{text}," for text in rows[:-1]] + rows[-1:]
        return f"enum class {kind.capitalize()} : int32_t {{\n" + "\n".join(body) + "\n};"

    # --- Python -------------------------------------------------------------------------------------------------

    def unary_function(self, row: dict) -> str:
        call = f"operations.unary(raw.UNARY_{row['NAME']}, x, out=out)"
        alpha = ""
        if row["alpha"] != "0":
            alpha = f"alpha: float = {float(row['alpha'])}, "
            call = call.replace("x, out", "x, alpha=alpha, out") + " if alpha else relu(x, out=out)"
        says = self.comment("unary", row) or f"{row['name']} of each element."
        return (
            f"\n\ndef {row['name']}(x: Array, {alpha}*, out: Optional[Array] = None) -> Array:\n"
            f'    """{says}"""\n    return {call}\n'
        )

    def binary_function(self, row: dict) -> str:
        says = self.comment("binary", row)
        says = row["y"] if len(row["y"]) == 5 else f"{row['python']} of each pair" + (f": {says}" if says else "")
        return (
            f"\n\ndef {row['python']}(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:\n"
            f'    """{says}"""\n    return operations.binary(raw.BINARY_{row["NAME"]}, a, b, out=out)\n'
        )

    def method(self, row: dict) -> str:
        alpha = row["alpha"] != "0"
        says = self.comment("unary", row) or f"{row['name']} of each element."
        return (
            f"\n    def {row['name']}(self{', alpha: float = ' + str(float(row['alpha'])) if alpha else ''}) -> Array:\n"
            f'        """{says}"""\n        return {row["name"]}(self{", alpha" if alpha else ""})\n'
        )

    def reduction(self, row: dict) -> str:
        place, corrects = row["result"] == "place", row["result"] in ("variance", "deviation")
        comment = self.comment("reduce", row)
        over = "over axes: all of them (None), one (an int) or several (a tuple)"
        if place:
            which = "largest" if row["identity"] == "LOWEST" else "smallest"
            says = f"The index of the {which} value, as int64: the first of equal values, or the first NaN."
        elif int(row["number"]) < 8:
            says = f"The {row['name']} {over}." + (f" {comment}." if comment else "")
        else:
            says = f"{comment[:1].upper()}{comment[1:].replace('VAR', 'var')}; {over}."
        more = ", correction: float = 0.0" if corrects else ""
        return (
            f"\n    def {row['name']}(self, axis: {'Optional[int]' if place else 'Axis'} = None{more}, "
            f'keepdims: bool = False) -> Array:\n        """{says}"""\n'
            f"        return reductions.{'arg_' if place else ''}reduce(raw.REDUCE_{row['NAME']}, self, axis, keepdims"
            f"{', correction=correction' if corrects else ''})\n"
        )

    def python(self) -> str:
        names = [row["name"] for row in self.tables["unary"]] + [row["python"] for row in self.tables["binary"]]
        return (
            PYTHON_HEAD
            + "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names)) + "]\n"
            + "".join(self.unary_function(row) for row in self.tables["unary"])
            + "".join(self.binary_function(row) for row in self.tables["binary"])
            + '\n\nclass Functions:\n    """The methods of Array that are functions of each element, or reductions."""\n\n'
            + "    __slots__ = ()\n"
            + "".join(self.method(row) for row in self.tables["unary"])
            + "".join(self.reduction(row) for row in self.tables["reduce"])
        )  # fmt: skip

    def slopes(self) -> str:
        def formula(row: dict) -> str:
            text = re.sub(r"\s+", " ", row["dy"].replace("std::", ""))
            return re.sub(r"\b(" + "|".join(CPP_NAMES) + r")\b", lambda match: CPP_NAMES[match[1]], text)

        rows = [row for row in self.tables["unary"] if not any(name in row["dy"] for name in NO_FORMULAS)]
        return (
            SLOPES_HEAD
            + "SLOPES = {\n" + "".join(f'    "{row["name"]}": "{formula(row)}",\n' for row in rows) + "}\n\n"
            + "ALPHAS = {\n" + "".join(f'    "{row["name"]}": "{row["alpha"]}",\n' for row in rows if row["alpha"] != "0") + "}\n"
        )  # fmt: skip

    # --- pages --------------------------------------------------------------------------------------------------

    def names(self, kind: str) -> str:
        return ", ".join(row["name"] for row in self.tables[kind])

    def accuracy(self) -> str:
        lines = ["| function | promised | CPU device | other devices | derivative |", "|---|---|---|---|---|"]
        for row in self.tables["unary"] + self.tables["binary"]:
            promised = "exact" if row["ulps"] == "0" else f"{row['ulps']} ULP"
            seen = ["" if row["ulps"] == "0" else row[column] for column in ("measured", "measured_gpu")]
            derivative = f"`{row['dy'].replace('std::', '')}`" if "dy" in row else ""
            lines.append(f"| {row['name']} | {promised} | {seen[0]} | {seen[1]} | {derivative} |")
        return "\n" + "\n".join(lines) + "\n"

    # ------------------------------------------------------------------------------------------------------------

    def outputs(self) -> dict:
        """The files as they should be."""
        found = {"python/tuff/_functions.py": self.python(), "python/tuff/_slopes.py": self.slopes()}

        def replace(name: str, pattern: str, text: str) -> None:
            old = found.get(name) or (self.root / name).read_text(encoding="utf-8")
            new, count = re.subn(pattern, lambda match: match[1] + text + match[2], old, flags=re.S | re.M)
            if count != 1:
                raise Problem(f"{name} has {count} places for '{pattern}', and needs one")
            found[name] = new

        selects = ", ".join(f"raw.REDUCE_{row['NAME']}" for row in self.tables["reduce"] if row["selects"] == "1")
        replace("python/tuff/_reductions.py", r"(^SELECTS = \()[^)]*(\)$)", selects)
        for kind in self.tables:
            replace("include/tuff/tuff.hpp", rf"()^enum class {kind.capitalize()} : int32_t \{{.*?^\}};()", self.enumeration(kind))
            replace("README.md", rf"(^\| `{kind}` \| )[^|]*( \|)", self.names(kind))
        methods = " ".join(f"{row['name']}()" for row in self.tables["unary"])
        replace("docs/python.md", r"(^\| functions \| `)[^`]*(`)", methods)
        replace("docs/python.md", r"(^\| reductions \| `)[^`]*(`)", " ".join(row["name"] for row in self.tables["reduce"]))
        replace("docs/accuracy.md", r"(^<!-- functions -->\n).*?(\n<!-- end of functions -->$)", self.accuracy())
        return found


def write() -> dict:
    return Lists(TOP).outputs()
