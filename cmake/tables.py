"""Reads the tables of operations and of element types, kernels/<family>/<name>.def.

A table is a C++ X-macro file: others include it with its macros defined. Each row is NAME(column, column, …); the
columns are named by the line of the table's head that has the macro's form. This module generates what is not C++ from
them: GLSL (cmake/shaders.py); tuff.hpp, Python and the pages (scripts/api/generate.py).
"""
import pathlib
import re

OPERATIONS = {
    "unary": "kernels/elementwise/unary.def",
    "binary": "kernels/elementwise/binary.def",
    "reduce": "kernels/reduce/reduce.def",
}
# Tables of operations list element types too; these list nothing else.
TYPES = {
    "norm": "kernels/norm/norm.def",
    "scan": "kernels/scan/scan.def",
    "softmax": "kernels/softmax/softmax.def",
}
PATHS = OPERATIONS | TYPES
FUNCTIONS = {"unary": ["TUFF_VALUE4 x", "float alpha"], "binary": ["TUFF_VALUE4 a", "TUFF_VALUE4 b"]}


FILES = "kernels/expression/functions.def"
SHORT = "kernels/elementwise/short"


class Problem(Exception):
    pass


def columns_of(text):
    """A macro's arguments, split at commas outside brackets."""
    columns, depth, begin = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            columns.append(text[begin:place])
            begin = place + 1
    return [" ".join(column.split()) for column in (*columns, text[begin:])]


def rows(text, macro):
    """The rows of a table as dictionaries, by column name."""
    form = re.search(rf"^//   {macro}\(([^)]*)\)", text, re.M)
    if not form:
        raise Problem(f"the head has no form of {macro}(…)")
    names = columns_of(" ".join(form[1].replace("//", " ").split()))
    found = []
    plain = re.sub(r"//[^\n]*", "", text)
    for start in re.finditer(rf"^{macro}\(", plain, re.M):
        depth, end = 1, start.end()
        while depth:
            if end == len(plain):
                raise Problem(f"a row of {macro} has no end")
            depth += (plain[end] == "(") - (plain[end] == ")")
            end += 1
        values = columns_of(plain[start.end() : end - 1])
        if len(values) != len(names):
            raise Problem(f"{macro}({values[0]}, … has {len(values)} columns and not {len(names)}")
        found.append(dict(zip(names, values)))
    if not found:
        raise Problem(f"there is no row of {macro}")
    return found


def read(root, name):
    path = pathlib.Path(root) / PATHS[name]
    try:
        return rows(path.read_text(encoding="utf-8"), name.upper())
    except Problem as problem:
        raise Problem(f"{PATHS[name]}: {problem}") from None


def constants(root):
    """The values of tuff.h's constants, and the comments after those that have one."""
    text = (pathlib.Path(root) / "include/tuff/tuff.h").read_text(encoding="utf-8")
    found = re.findall(r"^  TUFF_(\w+) = (-?\d+),?[ \t]*(?:/\* (.*?) \*/)?$", text, re.M)
    return {name: (int(number), text) for name, number, text in found}


# --- GLSL -----------------------------------------------------------------------------------------------------------

def selection(cases):
    """#if TUFF_OP == … for each of (number, lines)."""
    lines = []
    for place, (number, body) in enumerate(cases):
        lines += [f"#{'if' if place == 0 else 'elif'} TUFF_OP == {number}", *body]
    return [*lines, "#endif"]


def declared(numbers, text):
    return f"//# TUFF_OP : {'|'.join(map(str, sorted(numbers)))} : {text}"


def type_names(root, name):
    """The element types of a table, in its order: F32, F16, …"""
    try:
        text = (pathlib.Path(root) / PATHS[name]).read_text(encoding="utf-8")
        return [row["NAME"] for row in rows(text, f"{name.upper()}_TYPE")]
    except Problem as problem:
        raise Problem(f"{PATHS[name]}: {problem}") from None


def types(root, name):
    """The element types of a table, as legal values of defines."""
    numbers = constants(root)
    return f"//= types {'|'.join(map(str, sorted(numbers[each][0] for each in type_names(root, name))))}"


def short_forms(root):
    """The unary functions that have a short form for results of 16 bits: name → file in SHORT."""
    return {function: path.name for path in sorted((pathlib.Path(root) / SHORT).glob("*.glsl"))
            for function in re.findall(r"^vec4 tuff_short_(\w+)\(vec4 x\)", path.read_text(encoding="utf-8"), re.M)}


def function_glsl(root, name, parameters):
    """For unary and binary: includes the file with the operation's function and defines tuff_apply() with it."""
    table = read(root, name)
    lines = [declared([int(row["number"]) for row in table], f"a TUFF_{name.upper()}_* of tuff.h"), types(root, name),
             "#if TUFF_HAS_NAN", '#include "kernels/elementwise/math.glsl"']
    short = short_forms(root) if name == "unary" else {}
    short_rows = {row["number"]: short[row["name"]] for row in table if row["name"] in short}
    for file in dict.fromkeys(short_rows.values()):
        wanted = " || ".join(f"TUFF_OP == {number}" for number, its_file in short_rows.items() if its_file == file)
        lines += [f"#if TUFF_SHORT && ({wanted})", "#define TUFF_SHORT_FORM", f'#include "{SHORT}/{file}"', "#endif"]
    for file in dict.fromkeys(row["file"] for row in table):
        if file != "math":
            wanted = " || ".join(f"TUFF_OP == {row['number']}" for row in table if row["file"] == file)
            wanted = f"!defined(TUFF_SHORT_FORM) && ({wanted})" if short_rows else wanted
            lines += [f"#if {wanted}", f'#include "kernels/elementwise/{file}.glsl"', "#endif"]

    def arguments(row):
        given = parameters if row.get("alpha", "0") != "0" or name == "binary" else parameters[:1]
        return ", ".join(parameter.split()[1] for parameter in given)

    def call(row):
        plain = f"  return tuff_{row['name']}({arguments(row)});"
        if row["number"] not in short_rows:
            return [plain]
        return ["#ifdef TUFF_SHORT_FORM", f"  return tuff_short_{row['name']}({arguments(row)});", "#else", plain, "#endif"]

    cases = [(row["number"], call(row)) for row in table]
    if any(row.get("integers", "0") != "0" for row in table):
        lines += ["#else", '#include "kernels/elementwise/integers.glsl"']
        # The others have no function of integers, and are never asked for one.
        cases = [case if row["integers"] != "0" else (case[0], ["#if TUFF_HAS_NAN", *case[1], "#endif"])
                 for case, row in zip(cases, table)]
    return [*lines, "#endif", f"TUFF_VALUE4 tuff_apply({', '.join(parameters)}) {{", *selection(cases), "}"]


def reduce_glsl(root):
    """How a reduction combines values, by the row whose name is in `gathers`: TUFF_IDENTITY, TUFF_COMBINE,
    TUFF_SELECTS."""
    table = [row for row in read(root, "reduce") if row["gathers"] == row["NAME"]]
    cases = [(row["number"], [f"#define TUFF_IDENTITY TUFF_{row['identity']}",
                              f"#define TUFF_COMBINE(a, b) TUFF_{row['combine']}(a, b)",
                              f"#define TUFF_SELECTS {row['selects']}"]) for row in table]
    return [declared([int(row["number"]) for row in table], "a TUFF_REDUCE_* of tuff.h that gathers values"),
            types(root, "reduce"), *selection(cases)]


def files_glsl(root):
    """Includes the files with the functions of unary.def and binary.def by the bits of TUFF_FILES: functions.def."""
    files = dict.fromkeys(row["file"] for name in ("unary", "binary") for row in read(root, name) if row["file"] != "math")
    return [line for bit, file in enumerate(files)
            for line in (f"#if TUFF_FILES & {1 << bit}", f'#include "kernels/elementwise/{file}.glsl"', "#endif")]


def glsl(root, path):
    """The replacement for #include "….def" in a shader."""
    if path == FILES:
        return "\n".join(files_glsl(root)) + "\n"
    name = {file: name for name, file in PATHS.items()}[path]
    if name == "reduce":
        lines = reduce_glsl(root)
    elif name in FUNCTIONS:
        lines = function_glsl(root, name, FUNCTIONS[name])
    else:
        lines = [types(root, name)]
    return "\n".join(lines) + "\n"
