"""tuff.h as data: the types from clang, the meaning and the version from the header's comments.

Nothing is guessed. If neither the C type, the header's comments nor a row of names.py says what a pointer or a number
means, HeaderError names the declaration and what it needs. docs/bindings.md describes the output.
"""

from __future__ import annotations

import re
from pathlib import Path

from names import DIRECTIONS, KEPT, LENGTHS, VALUES

INTEGERS = {
    "int8_t": "signed char", "uint8_t": "unsigned char", "int16_t": "short", "uint16_t": "unsigned short",
    "int32_t": "int", "uint32_t": "unsigned int", "int64_t": "long long", "uint64_t": "unsigned long long",
}  # fmt: skip
FIRST_VERSION = "0.1.0"
INVALID_VERSION = "0.9.0"  # the version that added _INVALID to all groups, which the header says only once
VERSION = r"(\d+\.\d+\.\d+)"


# "   lda, ldb, ldc   elements from one stored row to the next"
PARAMETER_ROW = re.compile(r"^ {3}([a-z_0-9]+(?:, [a-z_0-9]+)*) {2,}(\S.*)$")


class HeaderError(Exception):
    """The header says too little, or declares something that no binding could use."""


class NoClang(Exception):
    """libclang is not installed."""


class Comment:
    def __init__(self, token, header_lines):
        self.first, self.last = token.extent.start.line, token.extent.end.line
        self.column = token.extent.start.column
        self.raw = token.spelling
        lines = token.spelling[2:-2].split("\n")
        lines = [lines[0]] + [
            re.sub(r"^\s*\*(?!\*)", "", line) if line.lstrip().startswith("*") else line for line in lines[1:]
        ]
        self.lines = [line.rstrip() for line in lines]
        self.text = " ".join(" ".join(self.lines).split())
        self.alone = not header_lines[self.first - 1][: self.column - 1].strip()  # nothing precedes it on its line
        self.is_section = "-----" in self.raw


def since_words(*texts):
    """The version of the first text that has a sentence "Since x.y.z", or ends with "; since x.y.z". Other mentions of
    a version, such as "since 0.8.0 a UUID too", are about something else."""
    sentence = (
        rf"(?:^| )Since {VERSION}(?:[.;] |[.;]?$)|\(since {VERSION}\)|(?:^|[;,] )since {VERSION}(?:, zero before)?$"
    )
    for text in texts:
        found = re.search(sentence, text or "")
        if found:
            return next(group for group in found.groups() if group)
    return None


class Parser:
    def __init__(self, path: Path):
        try:
            from clang import cindex
        except ImportError as error:
            raise NoClang(f"Python has no module clang.cindex ({error})") from None
        self.cindex, self.path = cindex, path
        try:
            self.index = cindex.Index.create()
        except cindex.LibclangError as error:
            raise NoClang(str(error).split("\n")[0]) from None
        self.kinds = cindex.CursorKind
        self.unit = self.parse("")
        self.macros = self.read_macros()
        header_lines = path.read_text(encoding="utf-8").split("\n")
        self.comments = [
            Comment(token, header_lines)
            for token in self.unit.get_tokens(extent=self.header_extent())
            if token.kind == cindex.TokenKind.COMMENT
        ]
        self.used = set()

    def parse(self, more: str):
        """Parses the header with `more` appended. The two standard headers are supplied here, so that any libclang
        works."""
        folder = self.path.parent
        integers = "".join(f"typedef {type} {name};\n" for name, type in INTEGERS.items())
        unit = self.index.parse(
            "api.c",
            args=["-std=c11", "-nostdinc", f"-I{folder}"],
            unsaved_files=[
                ("api.c", f'#include "{self.path}"\n{more}'),
                (f"{folder}/stdint.h", integers),
                (f"{folder}/stddef.h", "typedef unsigned long size_t;\n"),
            ],
            options=self.cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD,
        )
        errors = [str(d) for d in unit.diagnostics if d.severity >= self.cindex.Diagnostic.Error]
        if errors:
            raise HeaderError("the header does not compile:\n  " + "\n  ".join(errors))
        return unit

    def in_header(self, cursor):
        return cursor.location.file is not None and Path(cursor.location.file.name) == self.path

    def header_extent(self):
        file = self.unit.get_file(str(self.path))
        size = len(self.path.read_bytes())
        locate = self.cindex.SourceLocation.from_offset
        return self.cindex.SourceRange.from_locations(locate(self.unit, file, 0), locate(self.unit, file, size))

    # --- comments ---

    def own_comment(self, line):
        """The comment that ends on the line before."""
        return next((c for c in self.comments if c.last == line - 1 and c.alone and not c.is_section), None)

    def trailing_comment(self, line, column):
        return next((c for c in self.comments if c.first == line and c.column > column), None)

    def section(self, line):
        return next((c for c in reversed(self.comments) if c.is_section and c.last < line), None)

    def section_title(self, line):
        section = self.section(line)
        if section is None:
            return None
        words = next(text.strip() for text in section.lines if text.strip(" -"))
        return re.split(r"[.:(]", words)[0].strip()

    def documentation(self, cursor, previous):
        """The text of its own comment. A function or an enumeration without one shares that of the declaration
        directly above it."""
        line = cursor.extent.start.line
        comment = self.own_comment(line)
        shares = cursor.kind in (self.kinds.FUNCTION_DECL, self.kinds.ENUM_DECL)
        if comment is None and shares and previous is not None and previous["_end"] == line - 1:
            return previous["_comment"], previous["since"]
        section = self.section(line)
        text = comment.text if comment else None
        return comment, since_words(text, section.text if section else None) or FIRST_VERSION

    # --- types ---

    def base(self, type):
        return re.sub(r"\b(const|struct)\b\s*", "", type.spelling).strip()

    def describe(self, owner, name, type, parameter):
        """What clang knows: the C type, split into base type, pointers and elements."""
        kind = self.cindex.TypeKind
        result = {"name": name, "type": None, "c": re.sub(r"\s+(?=\*)", "", type.spelling)}
        if type.kind == kind.CONSTANTARRAY:
            result["count"] = type.element_count
            type = type.element_type
            if type.kind == kind.CONSTANTARRAY:
                raise HeaderError(f"{owner}.{name}: arrays of arrays are not for bindings")
        pointers, constant = 0, False
        while type.kind == kind.POINTER:
            pointers += 1
            type = type.get_pointee()
            constant = type.is_const_qualified()
        result["type"] = self.base(type)
        if parameter and "count" in result:  # C passes the address of the first element
            pointers, constant = 1, type.is_const_qualified()
        if pointers:
            result["pointer"] = pointers
            result["const"] = constant
        if type.kind == kind.ELABORATED or type.kind == kind.TYPEDEF:
            canonical = type.get_canonical().kind
        else:
            canonical = type.kind
        allowed = set(INTEGERS) | set(self.names) | {"double", "char", "void"}
        if result["type"] not in allowed or (canonical == kind.RECORD and not pointers and parameter):
            raise HeaderError(f"{owner}.{name}: {type.spelling} is not a type of this interface")
        return result

    def row(self, table, owner, name):
        for key in (f"{owner}.{name}", name):
            if key in table:
                self.used.add(key)
                return table[key] if isinstance(table, dict) else True
        return None

    def values(self, owner, item):
        """The values that an integer takes: those of a group, 0 or 1, or any."""
        if item["type"] in self.groups:
            item["values"] = item["type"]
            return
        row = self.row(VALUES, owner, item["name"])
        if row is None:
            if item["type"] == "int32_t" or item["name"] == "flags":
                raise HeaderError(
                    f"{owner}.{item['name']}: an {item['type']} of which nothing says what it takes. Declare it by its group "
                    f"({', '.join(sorted(self.groups))}), or give its name a row in VALUES of names.py"
                )
            return
        if row in self.groups:
            if self.groups[row]["type"] != item["type"]:
                return  # such as a uint64_t bias beside an int32_t bias_axis
        elif row not in ("boolean", "number"):
            raise HeaderError(f"VALUES of names.py: {row} is not a group of the header")
        if row != "number":
            item["values"] = row

    def length(self, owner, item, names):
        """The number of elements behind a pointer to several."""
        name, type = item["name"], item["type"]
        if "count" in item:
            return
        if type == "char" and item["const"]:
            item["string"] = True
            return
        if type == "char":
            if "capacity" in names:
                item["string"], item["length"] = True, "capacity"
                return
            raise HeaderError(f"{owner}.{name}: text without a capacity")
        for candidate in (f"{name}_bytes", f"{name[:-1]}_count"):
            if candidate in names:
                item["length"] = candidate
        if "length" not in item:
            row = self.row(LENGTHS, owner, name)
            if row in names:
                item["length"] = row
        if "length" not in item and (type == "void" or (item["const"] and type not in self.structures)):
            raise HeaderError(
                f"{owner}.{name}: nothing says how many elements there are. Name it <name>_bytes or <name>_count, or add a "
                f"row to LENGTHS of names.py"
            )

    def nullable(self, item, texts):
        """True if the comment says that it may be NULL; the header forbids NULL for all other pointers."""
        name = re.escape(item["name"])
        return any(re.search(rf"\b{name}\b(?:, which)? may be NULL", text) for text in texts if text)

    def parameter_texts(self, comment):
        """The rows "name   what it is" of a function's comment."""
        rows, names = {}, []
        for line in comment.lines if comment else []:
            begin = PARAMETER_ROW.match(line)
            if begin:
                names = begin.group(1).split(", ")
                rows.update(dict.fromkeys(names, begin.group(2)))
            elif names and re.match(r"^ {6,}\S", line):
                for name in names:
                    rows[name] += " " + line.strip()
            else:
                names = []
        return rows

    def parameters(self, owner, cursor, comment):
        rows = self.parameter_texts(comment)
        arguments = [c for c in cursor.get_children() if c.kind == self.kinds.PARM_DECL]
        names = [c.spelling for c in arguments]
        if "" in names:
            raise HeaderError(f"{owner}: parameter {names.index('') + 1} has no name")
        for name in rows:
            if name not in names and re.fullmatch(r"[a-z]+_[a-z_]+", name):
                raise HeaderError(f"{owner}: the comment describes {name}, which is not a parameter")
        result = []
        for argument in arguments:
            item = self.describe(owner, argument.spelling, argument.type, True)
            if not item.get("pointer") or item["type"] == "int32_t":
                self.values(owner, item)
            text = rows.get(item["name"])
            if item["type"] in self.callbacks:
                item["direction"] = "in"
                item["nullable"] = self.nullable(item, [comment.text if comment else None]) or "NULL:" in (text or "")
            elif item.get("pointer") and item["name"] == "user" and item["type"] == "void":
                item["direction"], item["nullable"], item["opaque"] = "in", True, True
            elif item.get("pointer"):
                named = self.row(DIRECTIONS, owner, item["name"])
                sized = (
                    item["type"] in self.structures
                    and self.structures[item["type"]]["fields"][0]["name"] == "struct_size"
                )
                item["direction"] = named or ("in" if item["const"] else "inout" if sized else "out")
                if item["pointer"] == 1:
                    self.length(owner, item, names)
                elif item["c"] != "void**":
                    raise HeaderError(f"{owner}.{item['name']}: {item['c']} is not a type of this interface")
                item["nullable"] = bool(
                    self.nullable(item, [comment.text if comment else None])
                    or (text and re.search(r"\bmay be NULL\b|\bNULL:", text))
                )
            else:
                item["direction"] = "in"
            if f"{owner}.{item['name']}" in KEPT:
                self.used.add(f"{owner}.{item['name']}")
                item["kept"] = True
            if text:
                item["doc"] = text
            result.append(item)
        return result

    # --- declarations ---

    def read_macros(self):
        names = []
        for cursor in self.unit.cursor.get_children():
            if (
                cursor.kind == self.kinds.MACRO_DEFINITION
                and self.in_header(cursor)
                and cursor.spelling.startswith("TUFF_")
            ):
                body = [token.spelling for token in cursor.get_tokens()][1:]
                if body and "__attribute__" not in body:
                    names.append((cursor.spelling, cursor.location.line))
        unit = self.parse("enum {" + ",".join(f"value_{name} = (long long)({name})" for name, _ in names) + "};")
        found = {}
        for cursor in unit.cursor.walk_preorder():
            if cursor.kind == self.kinds.ENUM_CONSTANT_DECL and cursor.spelling.startswith("value_"):
                found[cursor.spelling[len("value_") :]] = cursor.enum_value
        return [(name, found[name], line) for name, line in names]

    def members(self, cursors, since):
        """(cursor, documentation, since) of enumerators or fields, from the comments before and beside each."""
        standalone = None
        for index, cursor in enumerate(cursors):
            line = cursor.extent.start.line
            before = self.own_comment(line)
            earlier = [c.extent.end.line for c in cursors[:index] if c.extent.start.line < line]
            previous_end = earlier[-1] if earlier else cursor.semantic_parent.extent.start.line
            own = None
            if before is not None and before.first > previous_end:
                own = before
                standalone = since_words(before.text) or standalone
            # Declarators of one declaration share the comment after the last of them.
            end, last = cursor.extent.end, cursor
            for other in cursors[index:]:
                if other.extent.start.line == line:
                    end, last = other.extent.end, other
            trailing = self.trailing_comment(end.line, cursor.extent.end.column)
            texts = [re.sub(rf"^Since {VERSION}[.;](?: all may be zero\.)?\s*", "", own.text)] if own else []
            texts += [trailing.text] if trailing else []
            text = " ".join(filter(None, texts)) or None
            yield cursor, text, since_words(trailing.text if trailing else None) or standalone or since

    def structure(self, cursor, name, comment, since):
        fields = []
        cursors = [
            c for c in cursor.type.get_canonical().get_declaration().get_children() if c.kind == self.kinds.FIELD_DECL
        ]
        names = [c.spelling for c in cursors]
        for field, text, field_since in self.members(cursors, since):
            if field.is_bitfield():
                raise HeaderError(f"{name}.{field.spelling}: bit-fields are not for bindings")
            item = self.describe(name, field.spelling, field.type, False)
            item["offset"] = field.get_field_offsetof() // 8
            item["size"] = field.type.get_size()
            if not item.get("pointer"):
                self.values(name, item)
            else:
                self.length(name, item, names)
                if not re.search(r"\bNULL\b", text or ""):
                    raise HeaderError(
                        f'{name}.{field.spelling}: its comment must say "NULL: …", "may be NULL" or "not NULL"'
                    )
                item["nullable"] = "not NULL" not in text
            item["since"] = field_since
            if text:
                item["doc"] = text
            fields.append(item)
        size, alignment = cursor.type.get_size(), cursor.type.get_align()
        sizes = {}
        for item in fields:
            key = item["since"]
            if sizes and version_key(key) < version_key(list(sizes)[-1]):
                raise HeaderError(f"{name}.{item['name']}: since {key}, but behind a field of {list(sizes)[-1]}")
            end = item["offset"] + item["size"]
            if item["size"] and not (sizes and key not in sizes and end <= list(sizes.values())[-1]):
                sizes[key] = -(-end // alignment) * alignment
        if list(sizes.values())[-1] != size:
            raise HeaderError(f"{name}: fields end at {list(sizes.values())[-1]}, its size is {size}")
        return {
            "size": size,
            "alignment": alignment,
            "sizes": [{"since": version, "size": value} for version, value in sizes.items()],
            "fields": fields,
        }

    def read(self):
        self.names, self.groups, self.handles, self.callbacks, self.structures = {}, {}, {}, {}, {}
        self.constants, self.functions, self.group = [], [], None
        declarations = [
            c for c in self.unit.cursor.get_children() if self.in_header(c) and not c.kind.is_preprocessing()
        ]
        self.find_groups(declarations)
        self.add_macros()
        previous = None
        for cursor in declarations:
            if cursor.kind == self.kinds.STRUCT_DECL:
                continue  # handled with its typedef
            record = self.record(cursor)
            comment, since = self.documentation(record or cursor, previous)
            previous = {"name": cursor.spelling, "_end": cursor.extent.end.line, "_comment": comment, "since": since}
            if cursor.kind == self.kinds.TYPEDEF_DECL:
                self.add_type(cursor, record, previous, comment)
            elif cursor.kind == self.kinds.ENUM_DECL:
                self.add_enumerators(cursor, since)
            elif cursor.kind == self.kinds.FUNCTION_DECL:
                self.add_function(cursor, previous, comment)
            elif cursor.kind != self.kinds.VAR_DECL:
                raise HeaderError(f"line {cursor.location.line}: bindings know no {cursor.kind.name} {cursor.spelling}")
            elif cursor.spelling not in {constant["name"] for constant in self.constants}:
                raise HeaderError(f"{cursor.spelling}: a variable without a macro of the same name")
        stale = (set(VALUES) | set(LENGTHS) | set(DIRECTIONS) | KEPT) - self.used
        if stale:
            raise HeaderError(f"names.py: nothing in the header is called {', '.join(sorted(stale))}")
        return self.result()

    def result(self):
        def clean(entries):
            return [{key: value for key, value in entry.items() if not key.startswith("_")} for entry in entries]

        macros = {constant["name"]: constant["value"] for constant in self.constants}
        return {
            "schema": 1,
            "version": ".".join(str(macros[f"TUFF_VERSION_{part}"]) for part in ("MAJOR", "MINOR", "PATCH")),
            "abi_version": macros["TUFF_ABI_VERSION"],
            "pointer_size": 8,
            "constants": self.constants,
            "handles": clean(self.handles.values()),
            "groups": clean(self.groups.values()),
            "callbacks": clean(self.callbacks.values()),
            "structures": clean(self.structures.values()),
            "functions": clean(self.functions),
        }

    def record(self, cursor):
        """The structure that a typedef names, or None."""
        if cursor.kind != self.kinds.TYPEDEF_DECL:
            return None
        canonical = cursor.underlying_typedef_type.get_canonical()
        return canonical.get_declaration() if canonical.kind == self.cindex.TypeKind.RECORD else None

    def find_groups(self, declarations):
        """Comes before everything else, since parameters refer to groups."""
        for cursor, following in zip(declarations, declarations[1:]):
            follows = following.extent.start.line == cursor.extent.end.line + 1
            if cursor.kind == self.kinds.TYPEDEF_DECL and following.kind == self.kinds.ENUM_DECL and follows:
                self.groups[cursor.spelling] = {}

    def add_macros(self):
        for name, value, line in self.macros:
            comment, section = self.own_comment(line), self.section(line)
            since = since_words(comment.text if comment else None, section.text if section else None) or FIRST_VERSION
            kind = "uint64_t" if name == "TUFF_NULL_HANDLE" else "uint32_t"
            self.constants.append({"name": name, "value": value, "since": since, "type": kind, **doc(comment)})

    def add_type(self, cursor, record, entry, comment):
        name, underlying = entry["name"], cursor.underlying_typedef_type
        self.names[name] = entry
        if name in self.groups:
            entry.update(type=underlying.spelling, flags=name.endswith("_flags"), **doc(comment))
            self.groups[name] = self.group = entry
        elif record is not None:
            entry.update(doc(comment))
            entry.update(self.structure(record, name, comment, entry["since"]))
            self.structures[name] = entry
        elif underlying.kind == self.cindex.TypeKind.POINTER:
            result = underlying.get_pointee().get_result().spelling
            if result != "void":
                raise HeaderError(f"{name}: callbacks return nothing")
            self.callbacks[name] = entry
            entry.update(returns={"type": result}, **doc(comment))
            entry["parameters"] = self.parameters(name, cursor, comment)
        elif underlying.spelling == "uint64_t":
            beside = self.trailing_comment(entry["_end"], cursor.extent.end.column)
            entry.update(type="uint64_t", **doc(beside or comment))
            entry["since"] = since_words(beside.text if beside else None) or entry["since"]
            self.handles[name] = entry
        else:
            raise HeaderError(f"{name}: {underlying.spelling} makes no group, handle, structure or callback")

    def add_enumerators(self, cursor, since):
        rows = [
            {"name": member.spelling, "value": member.enum_value, "since": age, **({"doc": text} if text else {})}
            for member, text, age in self.members(list(cursor.get_children()), since)
        ]
        if self.group is None or self.group["_end"] != cursor.extent.start.line - 1:
            self.constants += [{**row, "type": "uint32_t"} for row in rows]
            return
        signed = any(row["value"] < 0 for row in rows)
        if signed != (self.group["type"] == "int32_t"):
            words = f"is of {self.group['type']}, its enumerators are {'' if signed else 'not '}signed"
            raise HeaderError(f"{self.group['name']}: {words}")
        for row in rows:
            if row["name"].endswith("_INVALID"):
                row["since"] = max(row["since"], INVALID_VERSION, key=version_key)
        self.group["values"] = rows

    def add_function(self, cursor, entry, comment):
        name, result = entry["name"], cursor.result_type
        if cursor.type.kind == self.cindex.TypeKind.FUNCTIONPROTO and cursor.type.is_function_variadic():
            raise HeaderError(f"{name}: a variable number of arguments is not for bindings")
        entry.update(section=self.section_title(cursor.extent.start.line), **doc(comment))
        returned = self.describe(name, "returns", result, False)
        entry["returns"] = {"type": returned["type"], "c": returned["c"]}
        if returned.get("pointer"):
            if (returned["type"], returned["const"], returned["pointer"]) != ("char", True, 1):
                raise HeaderError(f"{name}: returns {result.spelling}, whose owner nothing tells")
            entry["returns"].update(pointer=1, const=True, string=True)
        entry["parameters"] = self.parameters(name, cursor, comment)
        self.functions.append(entry)


def doc(comment):
    """The comment's lines, except for the rows about parameters, which are kept with those."""
    if comment is None:
        return {}
    lines, in_row = [], False
    for line in comment.lines:
        in_row = bool(PARAMETER_ROW.match(line)) or (in_row and bool(re.match(r"^ {6,}\S", line)))
        if not in_row:
            lines.append(line[1:] if line.startswith(" ") else line)
    return {"doc": "\n".join(lines).strip()}


def version_key(version):
    return tuple(int(part) for part in version.split("."))


def read(path: Path) -> dict:
    """The interface that the header at this path declares. Raises HeaderError and NoClang."""
    return Parser(path.resolve()).read()
