"""Rewrites C++ sources so that one build holds many mutants, of which a variable selects one at run time.

`a < b` becomes `tuff_mutants::less(17, a, b)`, which compares with <= if mutant 17 is active (mutants.hpp). Text is
inserted but never repeated and no line is added, so places may be nested and compilers report the original lines.

Only expressions that are evaluated at run time inside functions are rewritten: not constants, templates' arguments,
array sizes, case labels and declarations, nor what macros expand to. Arguments of messages are left out as well: a
wrong number in a message is no wrong result.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

RELATIONS = {"<": ("less", "<="), "<=": ("less_equal", "<"), ">": ("greater", ">="), ">=": ("greater_equal", ">")}
EQUALITIES = {"==": ("equal", "!="), "!=": ("not_equal", "==")}
ARITHMETIC = {"+": ("plus", "-"), "-": ("minus", "+"), "*": ("times", "/"), "/": ("divided", "*")}
FUNCTIONS = {**RELATIONS, **EQUALITIES, **ARITHMETIC}
# Calls that only check; their removal is a mutant. `fail` always throws.
CHECKS = re.compile(r"^(require(_[a-z_0-9]+)?|check_[a-z_0-9]+|fail)$")
# All arguments of these are text, except for the first ones. `work` is figures for profiles.
MESSAGES = {"require": 1, "fail": 0, "log": 0, "format": 0, "log_enabled": 0, "work": 0}
# Functions and variables (lambdas) that only compose messages.
TEXTS = re.compile(r"^(detail|label|describe|reason|names_of|what|text|.*_text|.*_name)$")


class NoClang(Exception):
    pass


@dataclass
class Mutant:
    file: str
    line: int
    function: str
    operator: str  # "< to <=", "removed", "negated", "+1", …
    text: str  # the original expression
    number: int = 0

    def key(self) -> tuple[str, str, str, str]:
        return self.file, self.function, self.operator, self.text

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}: {self.operator}: {self.text}"

    def as_dict(self) -> dict:
        return asdict(self)


@dataclass
class Edit:
    """Inserts text before and behind bytes [begin, end), and replaces the operator's bytes."""

    begin: int
    end: int
    prefix: str
    suffix: str
    operator: tuple[int, int, str] | None
    mutant: Mutant = field(repr=False)


def cindex():
    try:
        import clang.cindex
    except ImportError:
        raise NoClang("the package python3-clang is missing") from None
    library = sorted(Path("/usr/lib").glob("*-linux-gnu/libclang-[0-9]*.so*"))
    if library and not clang.cindex.Config.loaded:
        clang.cindex.Config.set_library_file(str(library[0]))
    return clang.cindex


class Rewriter:
    """Collects the places of the files in one translation unit that `wanted` accepts. wanted(file, function) -> bool."""

    def __init__(self, root: Path, arguments: list[str], wanted) -> None:
        self.cindex, self.root, self.arguments, self.wanted = cindex(), root, arguments, wanted
        self.kinds = self.cindex.CursorKind
        self.edits: dict[str, list[Edit]] = {}
        self.sources: dict[str, bytes] = {}
        self.seen: set[tuple] = set()

    def parse(self, source: Path, new_files: set[str]) -> None:
        """Adds the places of those of `new_files` (paths relative to the root) that this source includes or is."""
        unit = self.cindex.Index.create().parse(str(source), self.arguments)
        errors = [d for d in unit.diagnostics if d.severity >= self.cindex.Diagnostic.Error]
        if errors:
            raise ValueError(f"{source}: {errors[0]}")
        for cursor in unit.cursor.get_children():
            name = cursor.location.file and cursor.location.file.name
            if not name or not name.startswith(f"{self.root}/"):
                continue
            self.file = name[len(str(self.root)) + 1 :]
            if self.file not in new_files:
                continue
            if self.file not in self.sources:
                self.sources[self.file], self.edits[self.file] = (self.root / self.file).read_bytes(), []
            self.source = self.sources[self.file]
            self.walk(cursor, "", False)

    # --- which expressions ---

    def walk(self, cursor, function: str, running: bool) -> None:
        kinds = self.kinds
        kind = cursor.kind
        if kind in (
            kinds.FUNCTION_DECL,
            kinds.CXX_METHOD,
            kinds.CONSTRUCTOR,
            kinds.DESTRUCTOR,
            kinds.CONVERSION_FUNCTION,
            kinds.FUNCTION_TEMPLATE,
        ):
            name = cursor.spelling.split("<")[0]
            body = [c for c in cursor.get_children() if c.kind == kinds.COMPOUND_STMT]
            if not body or TEXTS.match(name) or not self.wanted(self.file, name):
                return
            before = self.source[self.begin(cursor) : self.begin(body[0])]
            if re.search(rb"\b(constexpr|consteval)\b", before):
                return
            # Without a `fail` at its end, a function that has a result would return none.
            last = list(body[0].get_children())[-1:]
            if last and cursor.result_type.kind != self.cindex.TypeKind.VOID:
                self.seen.add((self.file, self.begin(last[0]), self.end(last[0]), "removed"))
            self.walk(body[0], name, True)
            return
        if not running:
            for child in cursor.get_children():
                self.walk(child, function, False)
            return
        if kind == kinds.STATIC_ASSERT or kind in (kinds.TYPE_ALIAS_DECL, kinds.TYPEDEF_DECL, kinds.STRUCT_DECL):
            return
        if kind == kinds.VAR_DECL:
            if TEXTS.match(cursor.spelling) or self.is_constant(cursor):
                return
            if cursor.type.kind in (self.cindex.TypeKind.CONSTANTARRAY, self.cindex.TypeKind.INCOMPLETEARRAY):
                return
        children = list(cursor.get_children())
        if kind == kinds.CASE_STMT:
            children = children[1:]
        elif kind == kinds.CALL_EXPR:
            callee = cursor.spelling or self.text(cursor).split(b"(")[0].decode()
            if callee in MESSAGES:
                arguments = list(cursor.get_arguments())
                # The callee comes first: the chain of calls before `.work()` is part of it.
                children = (children[:1] if callee == "work" else []) + arguments[: MESSAGES[callee]]
            elif TEXTS.match(callee):
                return
        elif kind == kinds.IF_STMT:
            if re.match(rb"if\s+(consteval|constexpr)", self.source[self.begin(cursor) :][:20]):
                children = children[1:]
            else:
                self.negate(children, function)
        elif kind == kinds.BINARY_OPERATOR and len(children) == 2:
            self.binary(cursor, children, function)
        elif kind == kinds.CONDITIONAL_OPERATOR:
            self.literals(children[1:], function)
        elif kind == kinds.RETURN_STMT:
            self.literals(children, function)
        if kind in (kinds.COMPOUND_STMT, kinds.IF_STMT, kinds.FOR_STMT, kinds.CXX_FOR_RANGE_STMT):
            for child in children:
                self.removable(child, function)
        for child in children:
            self.walk(child, function, True)

    def is_constant(self, cursor) -> bool:
        begin = self.begin(cursor)
        line = self.source.rfind(b"\n", 0, begin) + 1
        return re.search(rb"\b(constexpr|static)\b", self.source[line : self.end(cursor)].split(b"=")[0]) is not None

    def binary(self, cursor, children, function: str) -> None:
        left, right = children
        if not self.here(cursor) or not self.here(left) or not self.here(right):
            return
        between = self.source[self.end(left) : self.begin(right)]
        plain = re.sub(rb"//[^\n]*", lambda m: b" " * len(m.group()), between)
        operator = plain.strip().decode()
        at = self.end(left) + len(plain) - len(plain.lstrip())
        place = (at, at + len(operator))
        if operator in ("&&", "||"):
            other = "||" if operator == "&&" else "&&"
            mutant = self.mutant(cursor, function, f"{operator} to {other}")
            # a || b is !(!a && !b), so the same text is both, and b is evaluated only where it has to be.
            changed, begin = "!= ::tuff_mutants::active(@)", "(static_cast<bool>("
            middle = f") {changed}) {operator} {begin}"
            self.add(cursor, f"(({begin}", f") {changed})) {changed})", (*place, middle), mutant)
        elif operator in FUNCTIONS:
            if operator in ARITHMETIC and not (self.is_number(left) and self.is_number(right)):
                return
            name, other = FUNCTIONS[operator]
            mutant = self.mutant(cursor, function, f"{operator} to {other}")
            self.add(cursor, f"::tuff_mutants::{name}(@, ", ")", (*place, ","), mutant)
            if operator in ARITHMETIC:
                self.literals(children, function)

    def literals(self, cursors, function: str) -> None:
        for cursor in cursors:
            text = self.text(cursor) if self.here(cursor) else b""
            if re.fullmatch(rb"[1-9][0-9]*[uUlL]*", text) and self.is_number(cursor):
                mutant = self.mutant(cursor, function, "+1")
                self.add(cursor, "::tuff_mutants::next(@, ", ")", None, mutant)

    def negate(self, children, function: str) -> None:
        condition = next((c for c in children if c.kind.is_expression()), None)
        if condition is None or not self.here(condition):
            return
        # Negating a comparison for equality is the mutant that `binary` generates.
        inner = condition
        while inner.kind == self.kinds.UNEXPOSED_EXPR and len(list(inner.get_children())) == 1:
            inner = next(inner.get_children())
        operands = list(inner.get_children())
        if inner.kind == self.kinds.BINARY_OPERATOR and len(operands) == 2:
            if self.source[self.end(operands[0]) : self.begin(operands[1])].strip() in (b"==", b"!="):
                return
        mutant = self.mutant(condition, function, "negated")
        self.add(condition, "(static_cast<bool>(", ") != ::tuff_mutants::active(@))", None, mutant)

    def removable(self, statement, function: str) -> None:
        if statement.kind != self.kinds.CALL_EXPR or not CHECKS.match(statement.spelling or ""):
            return
        if self.here(statement):
            mutant = self.mutant(statement, function, "removed")
            prefix = "(::tuff_mutants::active(@) ? static_cast<void>(0) : static_cast<void>("
            self.add(statement, prefix, "))", None, mutant)

    # --- text ---

    def begin(self, cursor) -> int:
        return cursor.extent.start.offset

    def end(self, cursor) -> int:
        return cursor.extent.end.offset

    def text(self, cursor) -> bytes:
        return self.source[self.begin(cursor) : self.end(cursor)]

    def here(self, cursor) -> bool:
        start, end = cursor.extent.start, cursor.extent.end
        here = str(self.root / self.file)
        if start.file is None or start.file.name != here or end.file is None or end.file.name != here:
            return False
        return self.end(cursor) > self.begin(cursor) and balanced(self.text(cursor))

    def is_number(self, cursor) -> bool:
        kind = cursor.type.get_canonical().kind
        kinds = self.cindex.TypeKind
        return kinds.BOOL.value < kind.value <= kinds.LONGDOUBLE.value

    def mutant(self, cursor, function: str, operator: str) -> Mutant:
        text = re.sub(r"\s+", " ", self.text(cursor).decode())
        return Mutant(self.file, cursor.extent.start.line, function, operator, text)

    def add(self, cursor, prefix: str, suffix: str, operator, mutant: Mutant) -> None:
        key = (self.file, self.begin(cursor), self.end(cursor), mutant.operator)
        if key not in self.seen:
            self.seen.add(key)
            edit = Edit(self.begin(cursor), self.end(cursor), prefix, suffix, operator, mutant)
            self.edits[self.file].append(edit)

    def mutants(self) -> list[Mutant]:
        """All mutants, numbered from 1 in the order of files and positions."""
        result = []
        for name in sorted(self.edits):
            for edit in sorted(self.edits[name], key=position):
                result.append(edit.mutant)
                edit.mutant.number = len(result)
        return result

    def rewritten(self, name: str, dropped: frozenset[int] = frozenset()) -> bytes:
        """The file with all mutants except `dropped`."""
        inserts: list[tuple[int, int, int, int, str]] = []  # where, order, tie, replaced bytes, text
        edits = [e for e in self.edits[name] if e.mutant.number not in dropped]
        for order, edit in enumerate(sorted(edits, key=position)):
            number = str(edit.mutant.number)
            inserts.append((edit.begin, 1, order, 0, edit.prefix.replace("@", number)))
            inserts.append((edit.end, 0, -order, 0, edit.suffix.replace("@", number)))
            if edit.operator:
                at, end, text = edit.operator
                inserts.append((at, 2, 0, end - at, text.replace("@", number)))
        source, result, at = self.sources[name], [], 0
        for where, _, _, replaced, text in sorted(inserts):
            result += [source[at:where], text.encode()]
            at = where + replaced
        return b"".join(result) + source[at:]


def position(edit: Edit) -> tuple:
    """Outer places come first, and of one condition its negation before its operator."""
    return edit.begin, -edit.end, edit.operator is not None, edit.mutant.operator


def balanced(text: bytes) -> bool:
    """Whether parentheses, brackets and braces match, which they do not if a macro begins or ends inside."""
    plain = re.sub(rb"\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])*'|//[^\n]*", b"", text)
    return all(plain.count(a) == plain.count(b) for a, b in ((b"(", b")"), (b"[", b"]"), (b"{", b"}")))
