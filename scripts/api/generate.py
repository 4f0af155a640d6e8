#!/usr/bin/env python3
"""Writes the generated files that are committed: include/tuff/tuff.json, python/tuff/_abi.py,
capi/structure_sizes.hpp, docs/operations.md, the calls by descriptor of include/tuff/tuff.hpp and what is new in
tests/abi/layout.c from include/tuff/tuff.h; from the tables of operations (kernels/*/*.def) python/tuff/_functions.py and _slopes.py,
the enumerations of include/tuff/tuff.hpp, and the lists of README.md, docs/python.md and docs/accuracy.md; from the
Python package the functions in docs/python.md and docs/numpy.md; from tests/oracle/ the table of its README; from the planners
(kernels/**/*_vulkan.cpp) the variables of runtime/variables.cpp and docs/building.md that force variants.

    scripts/api/generate.py            writes them
    scripts/api/generate.py --check    fails, with the differences, if they are out of date

Reading the header needs libclang and its Python module: python3-clang of Debian and Ubuntu, or libclang of PyPI. The
files are committed so that neither building nor using Tuff needs it. docs/bindings.md describes tuff.json.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from pathlib import Path

import header
import operation_lists
import numpy_page
import pages
import python_tables

TOP = Path(__file__).resolve().parent.parent.parent


def write_json(api: dict) -> str:
    """Writes one line for each parameter, field and constant, so that changes are readable."""

    def text(value, depth: int) -> str:
        plain = not any(
            isinstance(inner, (dict, list)) for inner in (value.values() if isinstance(value, dict) else value)
        )
        if plain:
            return json.dumps(value, ensure_ascii=False)
        indent = "  " * (depth + 1)
        if isinstance(value, list):
            return "[\n" + ",\n".join(indent + one(inner, depth + 1) for inner in value) + "\n" + "  " * depth + "]"
        rows = (f"{indent}{json.dumps(key)}: {one(inner, depth + 1)}" for key, inner in value.items())
        return "{\n" + ",\n".join(rows) + "\n" + "  " * depth + "}"

    def one(value, depth: int) -> str:
        return text(value, depth) if isinstance(value, (dict, list)) else json.dumps(value, ensure_ascii=False)

    return one(api, 0) + "\n"


def structure_sizes(api: dict) -> str:
    """The sizes of each structure with struct_size in the versions that it grew in, for the library's own checks."""
    lines = [
        "// The sizes of the ABI's structures in each version of this library. They tell which version a caller was compiled",
        "// with. Fields are only ever appended, so each version's structure is a prefix of the next version's.",
        "//",
        "// Generated from tuff.h by scripts/api/generate.py: not to be edited.",
        "#pragma once",
        "",
        "#include <array>",
        "#include <cstdint>",
        "",
        '#include "tuff/tuff.h"',
        "",
        "namespace tuff::capi {",
        "",
        "// Reading or writing a structure without an entry here does not compile.",
        "template <typename T>",
        "struct Released;",
        "",
    ]
    for structure in api["structures"]:
        if structure["fields"][0]["name"] != "struct_size":
            continue
        sizes = structure["sizes"]
        lines += [
            "template <>",
            f"struct Released<{structure['name']}> {{",
            f"  static constexpr std::array<uint32_t, {len(sizes)}> sizes = {{{', '.join(str(one['size']) for one in sizes)}}};"
            f"  // {', '.join(one['since'] for one in sizes)}",
            "};",
        ]
    return "\n".join([*lines, "", "}  // namespace tuff::capi", ""])


LAYOUT = "tests/abi/layout.c"


def layout(api: dict) -> str:
    """The frozen layout of the ABI, with what it does not check yet appended. Existing lines never change here: whoever
    breaks the ABI on purpose edits them."""
    text = (TOP / LAYOUT).read_text(encoding="utf-8")
    added = []

    def check(line: str, start: str):
        if start not in text:
            added.append(line)

    for structure in api["structures"]:
        name = structure["name"]
        check(f"SIZE({name}, {structure['size']});", f"SIZE({name},")
        for field in structure["fields"]:
            check(f"FIELD({name}, {field['name']}, {field['offset']});", f"FIELD({name}, {field['name']},")
    for constant in [value for group in api["groups"] for value in group["values"]] + api["constants"]:
        if isinstance(constant["value"], int) and not constant["name"].startswith("TUFF_VERSION_"):
            check(f"VALUE({constant['name']}, {constant['value']});", f"VALUE({constant['name']},")
    return text + "".join(line + "\n" for line in ([""] if added else []) + added)


def settle(outputs: dict, source: str, check: bool) -> int:
    """Writes what has changed; with check, prints the differences and returns 1 instead."""
    status = 0
    for name, wanted in outputs.items():
        path = TOP / name
        found = path.read_text(encoding="utf-8") if path.is_file() else ""
        if found == wanted:
            continue
        if not check:
            path.write_text(wanted, encoding="utf-8")
            print(f"wrote {name}")
            continue
        status = 1
        print(f"{name} is not what {source} give; run scripts/api/generate.py and commit the result:")
        sys.stdout.writelines(
            difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), name, "generated")
        )
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the existing files")
    arguments = parser.parse_args()
    try:
        status = settle(operation_lists.write(), "the tables of operations", arguments.check)
        api = header.read(TOP / "include" / "tuff" / "tuff.h")
    except operation_lists.Problem as error:
        print(error, file=sys.stderr)
        return 1
    except header.NoClang as error:
        if status:
            return status
        print(f"the check of generated files does not run on this device: {error}", file=sys.stderr)
        return 2
    except header.HeaderError as error:
        print(f"tuff.h: {error}", file=sys.stderr)
        return 1
    try:
        lists = {**pages.write(api), "docs/numpy.md": numpy_page.page()}
    except pages.Problem as error:
        print(error, file=sys.stderr)
        return 1
    outputs = {
        "include/tuff/tuff.json": write_json(api),
        "python/tuff/_abi.py": python_tables.write(api),
        "capi/structure_sizes.hpp": structure_sizes(api),
        LAYOUT: layout(api),
        **lists,
    }
    return max(status, settle(outputs, "tuff.h, names.py and the sources", arguments.check))


if __name__ == "__main__":
    sys.exit(main())
