"""Writes python/tuff/_abi.py, the tables of tuff.raw, from the interface that header.py reads."""

from __future__ import annotations

C_TYPES = {
    "int8_t": "c_int8", "uint8_t": "c_uint8", "int16_t": "c_int16", "uint16_t": "c_uint16",
    "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64", "uint64_t": "c_uint64",
    "double": "c_double", "char": "c_char",
}  # fmt: skip

HEAD = '''"""The tables of tuff.raw. Generated from include/tuff/tuff.h by scripts/api/generate.py: not to be edited."""

from __future__ import annotations

import ctypes
from ctypes import (
{ctypes})

from ._structure import Structure

'''


def class_name(name: str) -> str:
    """tuff_gemm_desc: GemmDesc."""
    return "".join(part.capitalize() for part in name.removeprefix("tuff_").split("_"))


def constant_name(name: str) -> str:
    return name.removeprefix("TUFF_")


class Writer:
    def __init__(self, api: dict):
        self.api = api
        self.types = dict(C_TYPES)
        self.types.update({entry["name"]: C_TYPES[entry["type"]] for entry in api["handles"] + api["groups"]})
        self.types.update({entry["name"]: class_name(entry["name"]) for entry in api["structures"] + api["callbacks"]})
        self.used = set()
        self.constants = {entry["name"] for entry in api["constants"]}

    def name(self, text: str) -> str:
        if text.startswith("c_") or text in ("POINTER", "CFUNCTYPE"):
            self.used.add(text)
        return text

    def type(self, item: dict, value: bool = False) -> str:
        """The ctypes type of a parameter, a field or a result."""
        pointers = item.get("pointer", 0)
        if item["type"] == "void" and not pointers:
            return "None"
        if pointers and item["type"] in ("char", "void"):
            result, pointers = self.name("c_char_p" if item["type"] == "char" else "c_void_p"), pointers - 1
        else:
            result = self.name(self.types[item["type"]])
        for _ in range(pointers):
            result = f"{self.name('POINTER')}({result})"
        if "count" in item and not item.get("pointer"):
            result += f" * {item['count']}"
        return result

    def constant(self, entry: dict) -> str:
        return f"{constant_name(entry['name'])} = {entry['value']}\n"

    def structure(self, entry: dict) -> str:
        sized = entry["fields"][0]["name"] == "struct_size"
        base = "Structure" if sized else "ctypes.Structure"
        text = f'\n\nclass {class_name(entry["name"])}({base}):\n    """{entry["name"]}"""\n\n    _fields_ = [\n'
        for field in entry["fields"]:
            text += f'        ("{field["name"]}", {self.type(field)}),\n'
        return text + "    ]\n"

    def callback(self, entry: dict) -> str:
        types = [self.type(entry["returns"])] + [self.type(item) for item in entry["parameters"]]
        return f"{class_name(entry['name'])} = {self.name('CFUNCTYPE')}({', '.join(types)})\n"

    def function(self, entry: dict) -> str:
        types = [self.type(item) for item in entry["parameters"]]
        head, result = f'    "{entry["name"]}": ', self.type(entry["returns"])
        line = f"{head}({result}, [{', '.join(types)}]),\n"
        if len(line) <= 121:
            return line
        lines, row = [], ""
        for part in (f"{kind}, " for kind in types):
            if len(row) + len(part) > 100:
                lines.append(row)
                row = ""
            row += part
        lines.append(row)
        return (
            f"{head}(\n        {result},\n        [\n"
            + "".join(f"            {row.rstrip()}\n" for row in lines)
            + "        ],\n    ),\n"
        )

    def write(self) -> str:
        body = "".join(self.constant(entry) for entry in self.api["constants"])
        for group in self.api["groups"]:
            body += f"\n# {group['name']}\n" + "".join(self.constant(entry) for entry in group["values"])
        body += "".join(self.structure(entry) for entry in self.api["structures"]) + "\n\n"
        body += "".join(self.callback(entry) for entry in self.api["callbacks"])
        body += "\n#: name: (result, arguments), for every function of tuff.h.\nFUNCTIONS = {\n"
        section = None
        for entry in self.api["functions"]:
            if entry["section"] != section:
                section = entry["section"]
                body += f"    # {section}\n"
            body += self.function(entry)
        body += "}\n"
        return HEAD.replace("{ctypes}", "".join(f"    {name},\n" for name in sorted(self.used))) + body


def write(api: dict) -> str:
    return Writer(api).write()
