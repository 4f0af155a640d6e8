#!/usr/bin/env python3
"""Turns GLSL into C++: shaders.py ROOT OUT a.comp b.comp …

OUT/shaders_<number>.cpp have the shaders' texts, with every #include "path/from/the/root.glsl" replaced by that file.
OUT/shaders.hpp declares all of them. A shader that declares its defines also gets OUT/shaders/<name>.hpp, with one
structure for the defines and another for the push-constant block; so does a .glsl file with a push block that several
shaders share. Files whose contents would not change are not written.

A shader, or a file that it includes, declares each define that a planner sets in one line:

    //# TUFF_UNROLL = 1 : 1|2|4|8 : blocks in flight
        name         |    |         meaning
                     |    legal values: numbers and ranges (0|1, 1..64, 4..), `dtype`, `any`, `types`: those
                     of the table of operations that the shader includes
                     default; without one the planner must set the define

It becomes a field: shaders::ReduceRows::request({.unroll = …}), for reduce_rows.comp. The field's name is the define's
in lower case, without TUFF_. A planner that names an unknown define, or omits one without a default, does not compile;
an illegal value is an error when the kernel is first built. A name that the shader itself #defines is not set by its
planner, even if an included file declares it.

Defines that several shaders share can form one structure, by a line in the .glsl file that declares or includes them:

    //# group epilogue : ACTIVATION RESIDUAL : how a product ends

In gemm_epilogue.glsl this creates shaders::GemmEpilogue{.activation = …, .residual = …}, in shaders/gemm_epilogue.hpp,
and in the Defines of each shader that includes it a single field, .epilogue.

A constant that planners need too is marked in the line above it:

    //# constant SHARED_BYTES : the shared memory of a workgroup
    const int SHARED_BYTES = 4 * (BK * (BM + 4 + BN));

It becomes a function of the defines that it depends on, possibly by way of other constants:
shaders::GemmTile::shared_bytes({.bk = …, .bm = …, .bn = …}).

A line "//# struct AttentionShape" names a GLSL struct that a kernel reads from memory. C++ gets it too, beside the
push block's structure: as a template of Index if it uses TUFF_INDEX.

shaders::ReduceRows::Push is the part of the push block after TUFF_BASES(n). If it contains #if, it is a template with
a bool for each condition (named after it), in order of appearance. TUFF_INDEX makes it a template of Index, NUMBER or
SCALAR one of Number.
"""
import itertools
import pathlib
import re
import sys

import tables

DEFINE = re.compile(r"^\s*//#\s*(?P<name>\w+)(?:\s*=\s*(?P<default>-?\d+))?\s*:\s*(?P<legal>[^:]+?)\s*:\s*(?P<text>.+?)\s*$")
CONSTANT = re.compile(r"^\s*//#\s*constant\s+(?P<name>\w+)\s*:\s*(?P<text>.+?)\s*$", re.M)
STRUCT = re.compile(r"^\s*//# struct (\w+)\s*$", re.M)
GROUP = re.compile(r"^\s*//#\s*group\s+(?P<name>\w+)\s*:\s*(?P<members>[\w ]+?)\s*:\s*(?P<text>.+?)\s*$")
# GLSL type: C++ type, size in bytes, alignment in a push block
TYPES = {
    "uint": ("uint32_t", 4, 4),
    "int": ("int32_t", 4, 4),
    "float": ("float", 4, 4),
    "uvec2": ("std::array<uint32_t, 2>", 8, 8),
    "uvec4": ("std::array<uint32_t, 4>", 16, 16),
    "vec4": ("std::array<float, 4>", 16, 16),
    "mat4": ("std::array<float, 16>", 64, 16),
    "uint64_t": ("uint64_t", 8, 8),
    "TUFF_INDEX": ("Index", None, None),
    "NUMBER": ("Number", None, None),
    "SCALAR": ("Number", None, None),
}
FILES = 4  # that have the shaders' texts; cmake/embed_shaders.cmake lists them
# Names that the prelude, the compiler or kernel_text() define.
BUILT_IN = {"TUFF_ADDRESSES", "TUFF_WIDE", "TUFF_FAR", "TUFF_GROUP_ROWS", "TUFF_ROUNDS_F16", "TUFF_PRESERVES_F32", "TUFF_KHR_MATRICES", "TUFF_MATRICES_INT8",
            "TUFF_TEXELS", "TUFF_MATRICES", "TUFF_EACH", "TUFF_TABLE", "TUFF_RUN", "defined"}


class Problem(Exception):
    pass


def expand(root, path, seen=()):
    """The file's text with its includes expanded; a table of operations is replaced by tables.glsl()'s output."""
    if path in seen:
        raise Problem(f"{path} includes itself")
    text = tables.glsl(root, path) if path.endswith(".def") else (root / path).read_text()
    return re.sub(r'#include "([^"]+)"[^\n]*', lambda found: expand(root, found.group(1), (*seen, path)), text)


class Define:
    def __init__(self, found, types):
        self.name, self.default, self.text = found["name"], found["default"], found["text"]
        self.field = re.sub(r"^TUFF_", "", self.name).lower()
        if self.field in {"long", "short", "double", "float", "int", "default", "union", "switch"}:
            self.field += "_"
        self.ranges = []
        legal = types if found["legal"] == "types" else found["legal"]
        if legal is None:
            raise Problem(f"{self.name}: no table of operations says which types there are")
        for part in legal.split("|"):
            part = part.strip()
            if part == "any":
                self.ranges.append((-(2**62), 2**62))
            elif part == "dtype":
                self.ranges.append((1, 31))
            elif re.fullmatch(r"-?\d+", part):
                self.ranges.append((int(part), int(part)))
            elif bounds := re.fullmatch(r"(-?\d+)\.\.(-?\d*)", part):
                self.ranges.append((int(bounds[1]), int(bounds[2]) if bounds[2] else 2**62))
            else:
                raise Problem(f"{self.name}: '{part}' is not a legal value, see the top of cmake/shaders.py")

    def same(self, other):
        return (self.default, self.ranges) == (other.default, other.ranges)


def read_defines(text):
    found = {}
    types = re.search(r"^//= types (\S+)$", text, re.M)
    for line in text.splitlines():
        if "//#" not in line or STRUCT.match(line) or GROUP.match(line) or CONSTANT.match(line):
            continue
        match = DEFINE.match(line)
        if not match:
            raise Problem(f"cannot read '{line.strip()}'")
        define = Define(match, types and types[1])
        if define.name in found and not define.same(found[define.name]):
            raise Problem(f"{define.name} is declared twice, and not alike")
        found.setdefault(define.name, define)
    for name in own_names(text):
        found.pop(name, None)
    # Alphabetical, so that designated initialisers do not depend on the order of includes.
    return dict(sorted(found.items(), key=lambda item: item[1].field))


def strip_comments(text):
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))


def own_names(text):
    """The names that the text itself #defines."""
    return set(re.findall(r"#\s*define\s+(\w+)", strip_comments(text)))


def undeclared(text, defines):
    """A name that an #if uses and that neither a //# line nor the shader itself defines, or None."""
    plain = strip_comments(text)
    own = own_names(text)
    for line in re.findall(r"#\s*(?:el)?if\s+([^\n]*)", plain):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            if name not in defines and name not in own and name not in BUILT_IN:
                return name
    return None


def check_conditions(text, defines):
    if name := undeclared(text, defines):
        raise Problem(f"#if asks for {name}, which no //# line declares")


class Group:
    """Defines that a .glsl file declares or includes, as a separate structure."""

    def __init__(self, found, path, defines):
        self.field, self.text, self.path, self.struct = found["name"], found["text"], path, camel(path.stem)
        names = found["members"].split()
        for name in names:
            if name not in defines:
                raise Problem(f"{path} has {name} in a group, which it does not declare")
        self.defines = [define for define in defines.values() if define.name in names]

    def emit(self):
        yield f"// {self.text}"
        yield f"struct {self.struct} {{"
        yield from (f"  {declaration(define)}" for define in self.defines)
        yield "};"


class Constant:
    """A constant of a shader as a C++ function of the defines that it depends on."""

    def __init__(self, found, text, defines):
        self.name, self.text = found["name"].lower(), found["text"]
        self.values = {}
        for line in re.findall(r"^\s*const u?int ([^;]*);", strip_comments(text), re.M):
            for name, value in re.findall(r"(\w+) = ([^,]*)(?:, |$)", line):
                self.values.setdefault(name, []).append(value)
        for name, value in re.findall(r"^\s*#define (\w+) (\(.*\))$", strip_comments(text), re.M):
            self.values.setdefault(name, []).append(value)
        if found["name"] not in self.values:
            raise Problem(f"there is no constant {found['name']}")
        self.defines = {}
        self.expression = self.expand(found["name"], defines, ())

    def expand(self, name, defines, seen):
        if name in defines:
            self.defines[name] = defines[name]
            return f"defines.{defines[name].field}" + (".value" if defines[name].default is None else "")
        if name in seen or len(self.values.get(name, ())) != 1:
            raise Problem(f"{name}, of a constant for C++, must be a define or have exactly one value")
        value = self.values[name][0]
        if not re.fullmatch(r"[\w\s()+*/%<>?:=!-]*", value):
            raise Problem(f"{name}, of a constant for C++, is no expression of integers: {value}")
        return "(" + re.sub(r"[A-Za-z_]\w*", lambda x: self.expand(x[0], defines, (*seen, name)), value) + ")"

    def emit(self):
        struct = camel(self.name)
        yield f"  struct {struct} {{"
        yield from (f"    {declaration(define)}" for define in sorted(self.defines.values(), key=lambda x: x.field))
        yield "  };"
        yield f"  // {self.text}"
        parameter = f"const {struct}& defines" if self.defines else f"const {struct}&"
        yield f"  static int64_t {self.name}({parameter}) {{ return {self.expression}; }}"


def files_of(root, name):
    """The file and everything that it includes, each once."""
    found = [name]
    for path in found:
        inner = [pathlib.Path(x) for x in re.findall(r'#include "([^"]+)"', (root / path).read_text())]
        found += [x for x in dict.fromkeys(inner) if x not in found]
    return found


def read_groups(root, name, defines):
    """The groups of a shader with these defines."""
    groups = []
    for path in files_of(root, name):
        lines = (root / path).read_text().splitlines()
        for found in filter(None, map(GROUP.match, lines)):
            if path == name or path in (group.path for group in groups):
                raise Problem(f"{path}: one group for each .glsl file, and none in a shader")
            group = Group(found, path, read_defines(expand(root, path.as_posix())))
            for define in group.defines:
                if define.name not in defines or define.name in (d.name for g in groups for d in g.defines):
                    raise Problem(f"{define.name} is not the planner's, or in two groups")
            groups.append(group)
    if clash := {group.field for group in groups} & {define.field for define in defines.values()}:
        raise Problem(f"{clash} names a define and a group")
    return groups


def declaration(define):
    kind, value = ("RequiredDefine", "") if define.default is None else ("int64_t", f" = {define.default}")
    return f"{kind} {define.field}{value};  // {define.text}"


def condition_name(expression):
    return "_".join(re.findall(r"\w+", re.sub(r"TUFF_", "", expression))).lower()


def expand_macros(body, macros):
    for name, value in macros.items():
        body = re.sub(rf"\b{name}\b", lambda _: value, body)
    return body


class Push:
    """The part of a shader's push block after TUFF_BASES."""

    def __init__(self, text):
        plain = strip_comments(text.replace("\\\n", " "))
        block = re.search(r"layout\(push_constant, std430\) uniform Push \{(.*?)\n?\}\s*push;", plain, re.S)
        if not block:
            raise Problem("there is no push block named Push")
        macros = dict(re.findall(r"#define (\w+)[ \t]+([^\n]*;[^\n]*)", plain))
        body = expand_macros(block[1], macros)
        structs = dict(re.findall(r"struct (\w+) \{(.*?)\};", plain, re.S))
        self.structs = {name: members for name, members in structs.items() if re.search(rf"\b{name}\b", body)}
        self.in_memory = {}
        for name in STRUCT.findall(text):
            if name not in structs:
                raise Problem(f"there is no struct {name}")
            self.in_memory[name] = expand_macros(structs[name], macros)
        self.lines = self.parse(body)
        self.conditions = []
        for _, guard in self.lines:
            for expression, _ in guard:
                if expression not in self.conditions:
                    self.conditions.append(expression)
        # Conditions that only select the number of bases are not parameters of the structure.
        self.conditions = [c for c in self.conditions
                           if any(c in (e for e, _ in guard) and not line.startswith("TUFF_BASES")
                                  for line, guard in self.lines)]
        self.index = any(re.match(r"TUFF_INDEX\b", line) for line, _ in self.lines)
        self.number = any(re.match(r"(NUMBER|SCALAR)\b", line) for line, _ in self.lines)

    @staticmethod
    def parse(body):
        """Declarations, each with its enclosing conditions: [(expression, wanted)…]."""
        guards, found = [], []
        for piece in re.split(r"(?:(?<=\n)|^)(\s*#[^\n]*)", body):
            directive = re.match(r"\s*#\s*(if|else|endif)\s*(.*)", piece)
            if directive:
                kind, expression = directive[1], directive[2].strip()
                if kind == "if":
                    wanted = not re.match(r"!\s*\w+$", expression)
                    guards.append((expression.lstrip("! ") if not wanted else expression, wanted))
                elif kind == "else":
                    guards[-1] = (guards[-1][0], not guards[-1][1])
                else:
                    guards.pop()
                continue
            if re.match(r"\s*#", piece):
                raise Problem(f"the push block has '{piece.strip()}'")
            piece = re.sub(r"(TUFF_BASES\([^;\n]*\))", r"\1;", piece)
            found += [(" ".join(part.split()), tuple(guards)) for part in piece.split(";") if part.strip()]
        return found

    def members(self, lines, bases):
        """C++ declarations. bases: how many addresses precede them, or None if that varies."""
        declarations, offset, padding = [], 0 if bases is None else 8 * bases, 0
        for line in lines:
            kind, names = line.split(" ", 1)
            for name in names.split(","):
                name = name.strip()
                if kind in TYPES:
                    cpp, size, alignment = TYPES[kind]
                elif kind in self.structs:
                    cpp, size, alignment = kind, None, None
                else:
                    raise Problem(f"the push block has the type {kind}, which cmake/shaders.py does not know")
                array = re.fullmatch(r"(\w+)\[(\d+)\]", name)
                if alignment == 16:
                    if bases is None or offset is None:
                        raise Problem(f"{name} lies on 16 bytes, and where it begins is open")
                    if offset % 16:
                        declarations.append(f"uint32_t padding{padding}[{(16 - offset % 16) // 4}] = {{}};")
                        padding, offset = padding + 1, offset + 16 - offset % 16
                if array:
                    declarations.append(f"{cpp} {array[1]}[{array[2]}] = {{}};")
                else:
                    declarations.append(f"{cpp} {name} = {{}};")
                count = int(array[2]) if array else 1
                offset = None if size is None or offset is None else offset + size * count
        return declarations

    def emit(self):
        for name, members in self.structs.items():
            lines = [" ".join(part.split()) for part in members.split(";") if part.strip()]
            yield f"struct {name} {{"
            yield from (f"  {line}" for line in self.members(lines, None))
            yield "};"
        for name, members in self.in_memory.items():
            lines = [" ".join(part.split()) for part in members.split(";") if part.strip()]
            if any(line.startswith("TUFF_INDEX ") for line in lines):
                yield "template <typename Index>"
            yield f"struct {name} {{"
            yield from (f"  {line}" for line in self.members(lines, 0))
            yield "};"
        parameters = [f"typename {name}" for name, has in (("Index", self.index), ("Number", self.number)) if has]
        types = [name for name, has in (("Index", self.index), ("Number", self.number)) if has]
        flags = [condition_name(c) for c in self.conditions]
        if flags:
            yield f"template <{', '.join(parameters + [f'bool {flag}' for flag in flags])}>"
            yield "struct Push;"
        for values in itertools.product((False, True), repeat=len(self.conditions)):
            truth = dict(zip(self.conditions, values))
            lines = [line for line, guard in self.lines
                     if all(truth.get(expression, wanted) == wanted for expression, wanted in guard)]
            counts = {re.match(r"TUFF_BASES\((.*)\)", line)[1] for line in lines if line.startswith("TUFF_BASES")}
            bases = int(counts.pop()) if len(counts) == 1 and all(c.isdigit() for c in counts) else None
            lines = [line for line in lines if not line.startswith("TUFF_BASES")]
            if flags or parameters:
                yield f"template <{', '.join(parameters)}>"
            arguments = ", ".join(types + ["true" if value else "false" for value in values])
            yield f"struct Push{f'<{arguments}>' if flags else ''} {{"
            yield from (f"  {line}" for line in self.members(lines, bases))
            yield "};"


def cpp_number(value):
    return f"{value}LL" if abs(value) >= 2**31 else str(value)


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def shared_header(name, push, group):
    """Header of a .glsl file whose push block or group of defines several shaders share."""
    lines = [f"// Generated from {name} by cmake/shaders.py.",
             "#pragma once", "", "#include <array>", "#include <cstdint>", ""]
    if group:
        lines += ['#include "planning/kernel_request.hpp"', "", "namespace tuff::shaders {", "", *group.emit(), "",
                  "}  // namespace tuff::shaders", ""]
    if push:
        lines += [f"namespace tuff::shaders::{name.stem}_push {{", "", *push.emit(), "",
                  f"}}  // namespace tuff::shaders::{name.stem}_push", ""]
    return "\n".join(lines)


def header(name, defines, groups, constants, push, push_file):
    lines = [f"// Generated from {name} by cmake/shaders.py.",
             "#pragma once", "", "#include <array>", "#include <cstdint>", "",
             '#include "planning/kernel_request.hpp"', '#include "shaders.hpp"']
    shared = {push_file.stem} - {name.stem} | {group.path.stem for group in groups}
    lines += [f'#include "shaders/{stem}.hpp"' for stem in sorted(shared)]
    lines += ["", "namespace tuff::shaders {", ""]
    if push_file == name:
        lines += [f"namespace {name.stem}_push {{", *push.emit(), f"}}  // namespace {name.stem}_push", ""]
    lines += [f"struct {camel(name.stem)} {{"]
    types = [t for t, has in (("Index", push.index), ("Number", push.number)) if has]
    flags = [condition_name(c) for c in push.conditions]
    if types or flags:
        parameters = ", ".join([f"typename {t}" for t in types] + [f"bool {flag}" for flag in flags])
        lines += [f"  template <{parameters}>",
                  f"  using Push = {push_file.stem}_push::Push<{', '.join(types + flags)}>;"]
    else:
        lines += [f"  using Push = {push_file.stem}_push::Push;"]
    lines.append("")
    grouped = {define.name: group.field for group in groups for define in group.defines}
    if defines:
        lines.append("  struct Defines {")
        fields = {define.field: declaration(define) for define in defines.values() if define.name not in grouped}
        fields |= {group.field: f"{group.struct} {group.field};  // {group.text}" for group in groups}
        lines += [f"    {fields[field]}" for field in sorted(fields)]
        lines += ["  };", ""]
    for constant in constants:
        lines += [*constant.emit(), ""]
    lines += [f"  static KernelRequest request({'const Defines& defines' if defines else ''}) {{",
              f"    KernelRequest kernel({name.stem});"]
    for define in defines.values():
        field = f"{grouped[define.name]}.{define.field}" if define.name in grouped else define.field
        value = f"defines.{field}" + (".value" if define.default is None else "")
        lines.append(f'    kernel.define("{define.name}", {value});')
    lines += ["    return kernel;", "  }", "};", "", "}  // namespace tuff::shaders", ""]
    return "\n".join(lines)


def source(name, text, defines):
    out, table = [], "{}"
    if defines:
        out += ["namespace {"]
        rows = []
        for define in defines.values():
            ranges = ", ".join(f"{{{cpp_number(a)}, {cpp_number(b)}}}" for a, b in define.ranges)
            out.append(f"constexpr LegalRange {name.stem}_{define.field}_legal[] = {{{ranges}}};")
            rows.append(f'{{"{define.name}", {name.stem}_{define.field}_legal}}')
        table = f"{name.stem}_defines"
        out += [f"constexpr DefineInfo {table}[] = {{{', '.join(rows)}}};", "}  // namespace", ""]
    out.append(f'const KernelSource {name.stem} = {{"{name.stem}", R"TUFF_GLSL({text})TUFF_GLSL", {table}}};')
    return "\n".join(out)


def file_with_push(root, name):
    """The file that contains the push block: the shader itself or one that it includes."""
    text = (root / name).read_text()
    if "layout(push_constant" in text:
        return name
    for path in re.findall(r'#include "([^"]+)"', text):
        if found := file_with_push(root, pathlib.Path(path)):
            return found
    return None


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main(root, out, paths):
    declarations, addresses, sources = [], [], []
    for path in paths:
        name = path.relative_to(root)
        try:
            text = expand(root, name.as_posix())
            defines = read_defines(text)
            declares = "//#" in path.read_text() or not undeclared(text, defines)
            if not declares:
                defines = {}  # its includes declare some of its defines, but it declares none
            if declares and name.stem != "prelude":
                check_conditions(text, defines)
                push, push_file = Push(text), file_with_push(root, name)
                groups = read_groups(root, name, defines)
                constants = [Constant(found, text, defines) for found in CONSTANT.finditer(text)]
                write(out / "shaders" / f"{name.stem}.hpp", header(name, defines, groups, constants, push, push_file))
                for file in {push_file, *(group.path for group in groups)} - {name}:
                    group = next((group for group in groups if group.path == file), None)
                    write(out / "shaders" / f"{file.stem}.hpp",
                          shared_header(file, push if file == push_file else None, group))
        except (Problem, tables.Problem) as problem:
            print(f"{name}: error: {problem}", file=sys.stderr)
            return 1
        sources.append(source(name, text, defines))
        addresses.append(f"&{name.stem},")
        if name.stem != "prelude":  # declared in planning/kernel_source.hpp
            declarations.append(f"extern const KernelSource {name.stem};")
    write(out / "shaders.hpp", "\n".join(["// Generated by cmake/shaders.py.", "#pragma once", "",
                                          '#include "planning/kernel_source.hpp"', "", "namespace tuff::shaders {",
                                          *declarations, "}  // namespace tuff::shaders", ""]))
    write(out / "shaders_all.cpp", "\n".join(['#include "shaders.hpp"', "", "namespace tuff::shaders {",
                                              "static const KernelSource* const sources[] = {", *addresses, "};",
                                              "const std::span<const KernelSource* const> all(sources);",
                                              "}  // namespace tuff::shaders", ""]))
    # Few files: nearly all of the time to compile a small one is spent on its headers.
    for i in range(FILES):
        write(out / f"shaders_{i}.cpp", "\n".join(["// Generated by cmake/shaders.py.", '#include "shaders.hpp"', "",
                                                   "namespace tuff::shaders {", *sources[i::FILES],
                                                   "}  // namespace tuff::shaders", ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), [pathlib.Path(p) for p in sys.argv[3:]]))
