"""The package's modules import each other in layers: no circles."""

import ast
from pathlib import Path

import tuff

PACKAGE = Path(tuff.__file__).parent


def imports_at_run_time(tree):
    """The modules of this package that a module imports, except for type checking alone."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found.update([node.module] if node.module else [alias.name for alias in node.names])
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


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None


def test_modules_import_no_circle():
    graph = {path.stem: imports_at_run_time(ast.parse(path.read_text(encoding="utf-8"))) for path in PACKAGE.glob("*.py")}
    assert {"_array", "_operations", "_shape", "_storage"} <= set(graph)
    assert circle(graph) is None
