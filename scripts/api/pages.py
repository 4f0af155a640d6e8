"""Generates from the header: docs/operations.md and tuff.hpp's calls by descriptor; from the Python package: the functions
in docs/python.md; from tests/oracle/: the table in its README; from the planners: the variables that force their
variants, in runtime/variables.cpp and docs/building.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
SINCE = r";?,? ?[Ss]ince \d+\.\d+\.\d+\.?"


class Problem(Exception):
    pass


def between(name: str, start: str, end: str, text: str) -> str:
    """The file with the text between these two lines replaced."""
    found = (TOP / name).read_text(encoding="utf-8")
    new, count = re.subn(
        rf"(^[ ]*{re.escape(start)}\n).*?(^[ ]*{re.escape(end)}$)",
        lambda match: match[1] + text + match[2], found, flags=re.S | re.M,
    )  # fmt: skip
    if count != 1:
        raise Problem(f"{name} has {count} places from '{start}' to '{end}', and needs one")
    return new


def first_sentence(text: str) -> str:
    """The first sentence, without a formula or a list on lines of its own."""
    text = " ".join(re.split(r"\n {2,}|\n\n", text)[0].split())
    sentence = re.match(r".*?(?<!\.)\.(?= |$)", text)
    return re.sub(SINCE, "", sentence[0] if sentence else text).strip().rstrip(":.")


def markdown(text: str) -> str:
    return re.sub(r"([|*_<])", r"\\\1", text)


# --- Python -----------------------------------------------------------------------------------------------------


def python_functions() -> list[tuple[str, str, str]]:
    """The name, the arguments and the first sentence of each function that a module of the package exports."""
    functions = []
    for path in sorted((TOP / "python" / "tuff").glob("_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        exported = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        ]
        if not exported or path.name in ("_functions.py", "__init__.py"):
            continue
        found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        for name in (name for name in exported[0] if name in found):
            for argument in ast.walk(found[name].args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
            says = ast.get_docstring(found[name])
            if says is None:
                raise Problem(f"{path.name}: {name} has no docstring")
            functions.append((name, ast.unparse(found[name].args), first_sentence(says)))
    return functions


def python_table() -> str:
    lines = ["| function of `tuff` | |", "|---|---|"]
    lines += [f"| `{name}({arguments})` | {markdown(says)} |" for name, arguments, says in python_functions()]
    return "\n" + "\n".join(lines) + "\n\n"


# --- the operations ---------------------------------------------------------------------------------------------

PAGE = """# Operations

This page lists every operation with its functions. [tuff.h](../include/tuff/tuff.h) specifies them: types, shapes, errors, NaN.
The types that an operation supports on a device are what `tuff_supports` says; [accuracy.md](accuracy.md) has the bounds.
`scripts/api/generate.py` writes this page from the header.

| operation | computes | C | since |
|---|---|---|---|
"""


def operations() -> list[str]:
    registry = (TOP / "kernels" / "registry.cpp").read_text(encoding="utf-8")
    return re.findall(r"operations::([a-z0-9_]+)\.", registry)


def page(api: dict) -> str:
    functions = {function["name"]: function for function in api["functions"]}
    lines = []
    for name in operations():
        own = [functions[full] for full in (f"tuff_{name}", f"tuff_{name}_ex", f"tuff_{name}_run") if full in functions]
        if not own:
            raise Problem(f"tuff.h has no function of the operation {name}")
        says = own[0].get("doc") or own[0]["section"]
        links = ", ".join(f"`{function['name']}`" for function in own)
        lines.append(f"| `{name}` | {markdown(first_sentence(says))} | {links} | {own[0]['since']} |\n")
    return PAGE + "".join(lines)


def wrapper(api: dict) -> str:
    """tuff.hpp's calls of the functions that take a stream and a descriptor."""
    text = ""
    for function in api["functions"]:
        types = [parameter["type"] for parameter in function["parameters"]]
        if len(types) != 2 or types[0] != "tuff_stream" or not types[1].endswith("_desc"):
            continue
        name = function["name"].removeprefix("tuff_").removesuffix("_ex")
        head, body = f"  Outcome {name}({types[1]} desc) const {{", f"return with_size({function['name']}, desc);"
        line = f"{head} {body} }}\n"
        text += line if len(line) <= 121 else f"{head}\n    {body}\n  }}\n"
    return text


# --- the second oracle ------------------------------------------------------------------------------------------


def oracles() -> str:
    """A row for each module that has oracles, with the first sentence of its docstring."""
    lines = ["| file | compares |", "|---|---|"]
    for path in sorted((TOP / "tests" / "oracle").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"^ *@?oracle\(", text, flags=re.M):
            continue
        says = first_sentence(ast.get_docstring(ast.parse(text)) or "")
        if " against " not in says:
            raise Problem(f'tests/oracle/{path.name} begins without "<operations> against <libraries>."')
        lines.append(f"| `{path.name}` | {markdown(says)} |")
    return "\n" + "\n".join(lines) + "\n\n"


# --- variables of families --------------------------------------------------------------------------------------


def kinds() -> list[str]:
    """The variables that force the kernels for GPUs or for CPUs: those of which planners make a StreamDevice."""
    names = set()
    for path in (TOP / "kernels").rglob("*.cpp"):
        text = path.read_text(encoding="utf-8")
        names.update(re.findall(r'stream_device\([^;]*?forced_variant<"(TUFF_[A-Z]+_VARIANT)">', text))
    return sorted(names)


def variables() -> str:
    return "".join(f'    {{"{name}", kKind, is_kind, nullptr}},\n' for name in kinds())


def variables_row() -> str:
    names = ", ".join(f"`{name}`" for name in kinds())
    path = "docs/building.md"
    text, count = re.subn(
        r"^\| [^|]* \| (for tests: `gpu` or `cpu`, the kind of kernel shapes to use) \|$",
        lambda match: f"| {names} | {match[1]} |",
        (TOP / path).read_text(encoding="utf-8"), flags=re.M,
    )  # fmt: skip
    if count != 1:
        raise Problem(f"{path} has {count} rows for the kind of kernel shapes, and needs one")
    return text


def write(api: dict) -> dict:
    return {
        "runtime/variables.cpp": between(
            "runtime/variables.cpp", "// Generated by scripts/api/generate.py from the planners.",
            "// End of what is generated.", variables(),
        ),
        "docs/building.md": variables_row(),
        "docs/operations.md": page(api),
        "docs/python.md": between("docs/python.md", "<!-- functions -->", "<!-- end of functions -->", python_table()),
        "tests/oracle/README.md": between("tests/oracle/README.md", "<!-- oracles -->", "<!-- end of oracles -->", oracles()),
        "include/tuff/tuff.hpp": between(
            "include/tuff/tuff.hpp", "// Generated by scripts/api/generate.py: calls by descriptor.",
            "// End of what is generated.", wrapper(api),
        ),
    }  # fmt: skip
