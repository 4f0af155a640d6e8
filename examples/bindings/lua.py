"""Generates tuff.lua, a LuaJIT binding, from tuff.json:  python3 lua.py ../../include/tuff/tuff.json tuff.lua"""

import json
import sys


def declaration(item):
    """Returns the C declaration of a field or parameter: const uint64_t* shape, char name[256]."""
    pointers = "*" * item.get("pointer", 0)
    array = f"[{item['count']}]" if "count" in item and not pointers else ""
    return f"{'const ' if item.get('const') else ''}{item['type']}{pointers} {item['name']}{array}"


with open(sys.argv[1], encoding="utf-8") as file:
    api = json.load(file)
lines = ["local ffi = require('ffi')", "ffi.cdef [["]
for entry in api["handles"] + api["groups"]:
    lines.append(f"typedef {entry['type']} {entry['name']};")
for entry in api["structures"]:
    fields = " ".join(declaration(field) + ";" for field in entry["fields"])
    lines.append(f"typedef struct {{ {fields} }} {entry['name']};")
for entry in api["callbacks"]:
    lines.append(f"typedef void (*{entry['name']})({', '.join(map(declaration, entry['parameters']))});")
for entry in api["functions"]:
    parameters = ", ".join(map(declaration, entry["parameters"])) or "void"
    lines.append(f"{declaration({**entry['returns'], 'name': entry['name']})}({parameters});")
lines += ["]]", "local tuff = { lib = ffi.load(os.getenv('TUFF_LIBRARY') or 'libtuff.so.1') }"]
for entry in api["constants"] + [value for group in api["groups"] for value in group["values"]]:
    lines.append(f"tuff.{entry['name'].removeprefix('TUFF_')} = {entry['value']}")
for entry in api["structures"]:
    lines.append(f"assert(ffi.sizeof('{entry['name']}') == {entry['size']})")
with open(sys.argv[2], "w", encoding="utf-8") as file:
    file.write("\n".join(lines + ["return tuff", ""]))
