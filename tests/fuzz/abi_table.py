#!/usr/bin/env python3
"""abi_table.py tuff.json output.cpp: writes the public ABI as the table that the fuzzer uses (abi.hpp).

Every function, parameter, field and enumerator comes from tuff.json. Additions therefore appear in the table at once,
and the fuzzer's descriptions are checked against it.
"""
import json
import sys

SIZES = {"int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8, "double": 8, "uint8_t": 1, "char": 1, "tuff_status": 4}
SIGNED = {"int32_t", "int64_t", "tuff_status"}


def kind_of(node, handles, structures):
    base, pointer = node["type"], node.get("pointer", 0)
    if node["name"] == "struct_size":
        return "struct_size"
    if base in ("tuff_log_callback", "tuff_memory_callback") or base == "void" or base in structures:
        return "memory"
    if base == "char":
        return "text" if pointer and node.get("const") else "memory"
    if base in handles:
        return "handle"
    if base == "double":
        return "real"
    if node["name"].startswith("reserved"):
        return "reserved"
    if "values" in node and node["values"] != "boolean":
        return "flags" if base == "uint32_t" else "enumerator"
    return "number"


def main(source, target):
    with open(source, encoding="utf-8") as file:
        abi = json.load(file)
    handles = [h["name"] for h in abi["handles"]]
    groups = [g["name"] for g in abi["groups"]]
    structures = {s["name"]: s for s in abi["structures"]}
    order = list(structures)
    out = ['// Made by tests/fuzz/abi_table.py from include/tuff/tuff.json.',
           '#include <bit>', '', '#include "fuzz/abi.hpp"', '', 'namespace tuff_fuzz {', 'namespace {', '']

    def place(node, argument, offset, in_structure):
        kind = kind_of(node, handles, structures)
        base, pointer = node["type"], node.get("pointer", 0)
        group = handles.index(base) if base in handles else groups.index(node["values"]) if node.get("values", "") in groups else -1
        size = 8 if kind in ("handle", "text", "memory") else SIZES[base]
        listed = pointer and kind not in ("text", "memory") and "length" in node
        count = 0 if listed else node.get("count", 1)
        length = f'"{node["length"]}"' if "length" in node else "nullptr"
        flag = lambda value: "true" if value else "false"
        return (f'    {{"{node["name"]}", Kind::{kind}, {size}, {group}, {argument}, {offset}, {count}, {length}, '
                f'{flag(in_structure)}, {flag(pointer)}, {flag(node.get("nullable", not pointer))}, '
                f'{flag(base in SIGNED)}}},')

    for name in order:
        sizes = ", ".join(str(s["size"]) for s in structures[name]["sizes"])
        out.append(f"const uint32_t sizes_of_{name}[] = {{{sizes}}};")
    table = []
    for function in abi["functions"]:
        name, places, arguments, calls = function["name"], [], [], []
        for index, parameter in enumerate(function["parameters"]):
            base, pointer = parameter["type"], parameter.get("pointer", 0)
            structure = order.index(base) if base in structures else -1
            nullable = "true" if parameter.get("nullable", False) else "false"
            outgoing = parameter["direction"] == "out" and base != "void" and base != "char" or pointer == 2
            bytes_ = 8 if pointer == 2 or base in handles else SIZES.get(base, 0)
            direction = "out" if outgoing else "inout" if parameter["direction"] == "inout" and structure >= 0 else "in"
            arguments.append(f'    {{"{parameter["name"]}", {structure}, Way::{direction}, {bytes_}, {nullable}, '
                             f'{"true" if pointer else "false"}}},')
            if structure >= 0 and pointer:
                for field in structures[base]["fields"]:
                    if direction == "inout" and field["name"] != "struct_size" and base != "tuff_memory_fd":
                        continue
                    if field.get("count", 1) > 1 and (field["type"] in structures or field["type"] in ("char", "uint8_t")):
                        continue
                    places.append(place(field, index, field["offset"], True))
            elif not outgoing:
                places.append(place(parameter, index, 0, False))
            slot = f"a[{index}]"
            if pointer or base.endswith("_callback"):
                c_type = parameter["c"].split("[")[0] + ("*" if "[" in parameter["c"] else "")
                calls.append(f"reinterpret_cast<{c_type}>({slot})")
            elif base == "double":
                calls.append(f"std::bit_cast<double>({slot})")
            else:
                calls.append(f"static_cast<{base}>({slot})")
        call = f'::{name}({", ".join(calls)})'
        if function["returns"]["c"] == "tuff_status":
            body = f"return {call};"
        elif function["returns"]["c"] == "const char*":
            body = f"return {call} != nullptr ? TUFF_OK : TUFF_ERROR_INTERNAL;"
        else:
            body = f"return {call} != 0 ? TUFF_OK : TUFF_ERROR_INTERNAL;"
        unused = "" if calls else "[[maybe_unused]] "
        if places:
            out += [f"const Place places_of_{name}[] = {{", *places, "};"]
        if arguments:
            out += [f"const Argument arguments_of_{name}[] = {{", *arguments, "};"]
        table.append(f'      {{"{name}", {f"places_of_{name}" if places else "{}"}, '
                     f'{f"arguments_of_{name}" if arguments else "{}"}, '
                     f'[]({unused}const uint64_t* a) -> tuff_status {{ {body} }}}},')
    out += ["", "}  // namespace", "", "const std::vector<Function>& functions() {",
            "  static const std::vector<Function> table = {", *table, "  };", "  return table;", "}", "",
            "const std::vector<Structure>& structures() {", "  static const std::vector<Structure> table = {"]
    out += [f'      {{"{name}", {structures[name]["size"]}, sizes_of_{name}}},' for name in order]
    out += ["  };", "  return table;", "}", "", "const std::vector<Group>& groups() {",
            "  static const std::vector<Group> table = {"]
    for group in abi["groups"]:
        values = ", ".join(f'{{"{v["name"]}", {v["value"]}}}' for v in group["values"])
        out.append(f'      {{"{group["name"]}", {{{values}}}}},')
    out += ["  };", "  return table;", "}", "", "const std::vector<const char*>& handle_types() {",
            "  static const std::vector<const char*> table = {"]
    out += [f'      "{name}",' for name in handles]
    out += ["  };", "  return table;", "}", "", "}  // namespace tuff_fuzz", ""]
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join(out))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
