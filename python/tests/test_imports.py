"""The package's modules import each other in one direction: there are no circles, and none reaches up."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import tuff

PACKAGE = Path(tuff.__file__).parent

#: From the bottom: what is listed here imports nothing of its own or a higher layer. Families of operations are not
#: listed; they stand between _operands and _context, in any order that has no circle.
LAYERS = [
    ("_structure", "_checked"),
    ("_abi",),
    ("_library",),
    ("raw",),
    ("_plain",),
    ("_core",),
    ("_error",),
    ("_handle", "_images"),
    ("_buffer",),
    ("_storage", "_pinned"),
    ("_operands", "_types"),
    ("_shape", "_expression"),
    ("_elementwise", "_planes"),
    ("_norms", "_operations", "_reductions"),
    ("_functions",),
    ("_protocol",),
    ("_array",),
    ("_stream", "_kernel", "_profile"),
    ("_context",),
    ("_default",),
    ("_namespace",),
    ("_composed", "_standard"),
    ("__init__",),
]


def for_types_only(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports_at_run_time(tree):
    """The modules of this package that a module imports anywhere, also inside functions, except for type checkers."""
    found = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found.update([node.module] if node.module else [alias.name for alias in node.names])
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tuff":
            found.update(node.module.split(".")[1:2] or ["__init__"])
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found.update((name[1:] or ["__init__"])[0] for name in names if name[0] == "tuff")
        elif for_types_only(node):
            found |= imports_at_run_time(ast.Module(node.orelse, []))
        else:
            found |= imports_at_run_time(node)
    return found


def circle(graph):
    """A circle of modules as a list, or None."""
    done = set()

    def walk(name, path):
        if name in path:
            return path[path.index(name) :] + [name]
        if name in done or name not in graph:
            return None
        done.add(name)
        return next(filter(None, (walk(other, path + [name]) for other in sorted(graph[name]))), None)

    return next(filter(None, (walk(name, []) for name in sorted(graph))), None)


def backward(graph):
    """The imports that lead from a module to one of the same or of a higher layer."""
    rank = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    return [
        (name, other)
        for name in sorted(graph)
        for other in sorted(graph[name])
        if name in rank and other in rank and rank[other] >= rank[name]
    ]


def read(text):
    return imports_at_run_time(ast.parse(text))


def test_imports_are_found():
    assert read("from ._a import x\nfrom . import _b, _c") == {"_a", "_b", "_c"}
    assert read("def f():\n    from ._a import x\n    if x:\n        from . import _b") == {"_a", "_b"}
    assert read("import tuff\nimport tuff._a\nfrom tuff._b import x\nimport tuffet") == {"__init__", "_a", "_b"}
    assert read("if TYPE_CHECKING:\n    from ._a import x\nelse:\n    from ._b import x") == {"_b"}


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None
    assert backward({"_array": {"_context"}, "_context": {"_array"}}) == [("_array", "_context")]
    assert backward({"_handle": {"_error"}, "_error": {"_buffer"}, "_pool": {"_array"}}) == [("_error", "_buffer")]


def test_modules_import_in_one_direction():
    graph = {path.stem: imports_at_run_time(ast.parse(path.read_text(encoding="utf-8"))) for path in PACKAGE.glob("*.py")}
    assert {"_array", "_operations", "_shape", "_storage"} <= set(graph)
    assert circle(graph) is None
    assert backward(graph) == []


def test_grad_is_listed_before_it_is_loaded():
    code = "import sys, tuff; assert 'tuff.grad' not in sys.modules and 'grad' in dir(tuff) and dir(tuff).count('grad') == 1; tuff.grad.grad"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)})
