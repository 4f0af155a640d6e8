#!/usr/bin/env python3
"""layout.c, which is frozen, tuff.json and the tables of the Python package agree on sizes, offsets and values."""

import ctypes
import importlib
import json
import re
import sys
import types
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
API = json.loads((TOP / "include" / "tuff" / "tuff.json").read_text(encoding="utf-8"))
LAYOUT = (TOP / "tests" / "abi" / "layout.c").read_text(encoding="utf-8")

# The package without its __init__, which would load the library.
package = types.ModuleType("tuff")
package.__path__ = [str(TOP / "python" / "tuff")]
sys.modules["tuff"] = package
python = importlib.import_module("tuff._abi")

STRUCTURES = {entry["name"]: entry for entry in API["structures"]}
CONSTANTS = {entry["name"]: entry["value"] for group in API["groups"] for entry in group["values"]}
CONSTANTS.update({entry["name"]: entry["value"] for entry in API["constants"]})


def python_class(name):
    found = [value for value in vars(python).values() if isinstance(value, type) and value.__doc__ == name]
    assert len(found) == 1, name
    return found[0]


class Layout(unittest.TestCase):
    def test_layout_c_and_json(self):
        sizes = re.findall(r"^SIZE\((\w+), (\d+)\);", LAYOUT, flags=re.M)
        fields = re.findall(r"^FIELD\((\w+), (\w+), (\d+)\);", LAYOUT, flags=re.M)
        self.assertEqual(len(re.findall(r"^(?:SIZE|FIELD)\(", LAYOUT, flags=re.M)), len(sizes) + len(fields))
        self.assertLessEqual(set(STRUCTURES), {name for name, _ in sizes}, "structures that layout.c lacks")
        for name, size in sizes:
            if name in STRUCTURES:
                self.assertEqual(STRUCTURES[name]["size"], int(size), name)
        for name, field, offset in fields:
            found = {entry["name"]: entry["offset"] for entry in STRUCTURES[name]["fields"]}
            self.assertEqual(found.get(field), int(offset), f"{name}.{field}")

    def test_python_and_json(self):
        for name, entry in STRUCTURES.items():
            structure = python_class(name)
            self.assertEqual(ctypes.sizeof(structure), entry["size"], name)
            self.assertEqual(ctypes.alignment(structure), entry["alignment"], name)
            self.assertEqual(
                [field for field, _ in structure._fields_], [field["name"] for field in entry["fields"]], name
            )
            for field in entry["fields"]:
                place = getattr(structure, field["name"])
                self.assertEqual(
                    (place.offset, place.size), (field["offset"], field["size"]), f"{name}.{field['name']}"
                )

    def test_values(self):
        rows = re.findall(r"^VALUE\((\w+), (-?\d+)\);", LAYOUT, flags=re.M)
        self.assertEqual(len(re.findall(r"^VALUE\(", LAYOUT, flags=re.M)), len(rows))
        self.assertGreater(len(rows), 100)
        for name, value in rows:
            self.assertEqual(CONSTANTS[name], int(value), name)
        for name, value in CONSTANTS.items():
            self.assertEqual(getattr(python, name.removeprefix("TUFF_")), value, name)

    def test_every_structure_s_sizes_end_with_its_own(self):
        for name, entry in STRUCTURES.items():
            sizes = [row["size"] for row in entry["sizes"]]
            self.assertEqual(sizes, sorted(set(sizes)), name)
            self.assertEqual(sizes[-1], entry["size"], name)
            self.assertEqual(entry["sizes"][0]["since"], entry["since"], name)


if __name__ == "__main__":
    unittest.main()
