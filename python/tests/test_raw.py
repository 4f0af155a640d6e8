"""tuff.raw against the header that it mirrors."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

import tuff
from tuff import raw


# All of raw's structures, by the names that C has for them: Conv1dDesc is tuff_conv1d_desc.
STRUCTURES = {
    "tuff_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(): structure
    for name, structure in vars(raw).items()
    if isinstance(structure, type) and issubclass(structure, ctypes.Structure) and hasattr(structure, "_fields_")
}

# What a parameter's C type is in ctypes.
TYPES = {
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double,
    "uint8_t": ctypes.c_uint8,
    "tuff_status": ctypes.c_int32,
    "tuff_context": ctypes.c_uint64,
    "tuff_buffer": ctypes.c_uint64,
    "tuff_stream": ctypes.c_uint64,
    "tuff_kernel": ctypes.c_uint64,
    "tuff_event": ctypes.c_uint64,
    "tuff_graph": ctypes.c_uint64,
    "tuff_expr": ctypes.c_uint64,
    "tuff_log_callback": raw.LogCallback,
    "tuff_memory_callback": raw.MemoryCallback,
    "tuff_op": ctypes.c_uint64,
    "tuff_op_host": raw.OpHost,
    "char*": ctypes.c_char_p,
    "void*": ctypes.c_void_p,
    "void**": ctypes.POINTER(ctypes.c_void_p),
}
TYPES.update({name: structure for name, structure in STRUCTURES.items()})


@pytest.fixture(scope="module")
def header():
    from conftest import CHECKOUT

    path = CHECKOUT / "include" / "tuff" / "tuff.h"
    if not path.is_file():
        pytest.skip("the package is tested away from its checkout")
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.S)
    return re.sub(r"^\s*#.*$", "", text, flags=re.M)


def as_ctypes(parameter):
    """The ctypes type of one C parameter, or of a result."""
    parameter = parameter.replace("const", " ")
    is_array = "[" in parameter
    match = re.match(r"\s*(\w+)\s*(\**)", parameter)
    name, stars = match.group(1), match.group(2) + ("*" if is_array else "")
    if name + stars in TYPES:
        return TYPES[name + stars]
    kind = TYPES[name]
    for _ in stars:
        kind = ctypes.POINTER(kind)
    return kind


def test_every_function_is_declared_as_in_the_header(header):
    prototypes = re.findall(r"TUFF_API\s+(.*?)\b(tuff_\w+)\(([^)]*)\);", header, flags=re.S)
    assert {name for _, name, _ in prototypes} == set(raw.FUNCTIONS)
    for result, name, parameters in prototypes:
        arguments = [] if parameters.strip() == "void" else [as_ctypes(p) for p in parameters.split(",")]
        assert raw.FUNCTIONS[name] == (as_ctypes(result), arguments), name
        assert getattr(raw, name).argtypes == [raw._INTEGERS.get(kind, kind) for kind in arguments]


def test_integers_that_c_s_type_cannot_hold_are_refused():
    """ctypes takes 2**64 + 8 for 8."""
    size = ctypes.c_uint64()
    beyond = {ctypes.c_int32: (-(2**31) - 1, 2**31), ctypes.c_uint32: (-1, 2**32), ctypes.c_int64: (-(2**63) - 1, 2**63)}
    beyond[ctypes.c_uint64] = (-1, 2**64, 2**64 + 8)
    count = 0
    for name, (_, kinds) in raw.FUNCTIONS.items():
        for place, kind in enumerate(kinds):
            if kind not in beyond:
                continue
            for value in beyond[kind]:
                arguments = [kind() if issubclass(kind, ctypes._CFuncPtr) else None for kind in kinds]
                arguments = [0 if kind in (*beyond, ctypes.c_double) else one for kind, one in zip(kinds, arguments)]
                arguments[place] = value
                with pytest.raises(ctypes.ArgumentError, match=rf"argument {place + 1}.*{value} is not from "):
                    getattr(raw, name)(*arguments)
                count += 1
    assert count > 300
    for value in (size, True, np.uint64(3).item()):
        assert raw.tuff_buffer_size(value, size) == raw.ERROR_INVALID_HANDLE
    for value in (2**64 - 1, 2**63):
        assert raw.tuff_free(value) == raw.ERROR_INVALID_HANDLE
    for value in ("1", 1.0, [1], np.float64(1)):
        with pytest.raises(ctypes.ArgumentError):
            raw.tuff_free(value)


def test_every_constant_has_the_header_s_value(header):
    count = 0
    for body in re.findall(r"\benum\s*\{(.*?)\}", header, flags=re.S):
        for name, value in re.findall(r"TUFF_(\w+)\s*=\s*(-?\d+)", body):
            assert getattr(raw, name) == int(value), name
            count += 1
    assert count > 50


def test_structures_have_the_compiler_s_layout(header, checkout, tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    names = set(re.findall(r"\btypedef\s+struct\s+(\w+)", header))
    assert names == set(STRUCTURES)
    lines = []
    for name, structure in STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, _ in structure._fields_:
            lines.append(
                f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));'
            )
    source = tmp_path / "layout.c"
    source.write_text("#include <stdio.h>\n#include <tuff/tuff.h>\nint main(void) {\n" + "\n".join(lines) + "\n}\n")
    program = tmp_path / "layout"
    subprocess.run([compiler, f"-I{checkout / 'include'}", source, "-o", program], check=True)
    layout = dict(
        line.split(" ", 1) for line in subprocess.check_output([program], text=True).splitlines()
    )
    for name, structure in STRUCTURES.items():
        assert int(layout[name]) == ctypes.sizeof(structure), name
        for field, kind in structure._fields_:
            offset, size = map(int, layout[f"{name}.{field}"].split())
            assert (offset, size) == (getattr(structure, field).offset, ctypes.sizeof(kind)), f"{name}.{field}"


def test_structures_have_every_field_of_the_header(header):
    for name, structure in STRUCTURES.items():
        body = re.search(r"typedef struct " + name + r"\s*\{(.*?)\}", header, flags=re.S).group(1)
        fields = []
        for declaration in body.split(";")[:-1]:
            names = re.sub(r"^\s*(const\s+)?\w+[\s*]+", "", declaration)
            fields += [re.match(r"[\s*]*(\w+)", one).group(1) for one in names.split(",")]
        assert fields == [field for field, _ in structure._fields_], name


def test_flat_functions_work_as_in_c(backend):
    handle = ctypes.c_uint64()
    assert raw.tuff_context_create(raw.ContextDesc(backend=backend.encode()), handle) == raw.OK
    context = handle.value
    values = np.array([-1.5, 0.0, 2.5], np.float32)
    buffer = ctypes.c_uint64()
    assert raw.tuff_alloc(context, values.nbytes, buffer) == raw.OK
    assert raw.tuff_copy_htod(context, buffer, 0, values.ctypes.data, values.nbytes) == raw.OK
    assert raw.tuff_unary(context, raw.F32, raw.UNARY_RELU, buffer, buffer, values.size) == raw.OK
    result = np.empty_like(values)
    assert raw.tuff_copy_dtoh(context, result.ctypes.data, buffer, 0, values.nbytes) == raw.OK
    assert result.tolist() == [0.0, 0.0, 2.5]

    size = ctypes.c_uint64()
    assert raw.tuff_buffer_size(buffer, size) == raw.OK and size.value == 12
    assert raw.tuff_free(buffer) == raw.OK
    assert raw.tuff_free(buffer) == raw.ERROR_INVALID_HANDLE
    assert "tuff_free" in tuff.last_error()
    assert raw.tuff_context_destroy(context) == raw.OK


def test_ex_functions_take_descriptors(ctx):
    a = ctx.array([[1, 2], [3, 4]])
    c = ctx.zeros((2, 2))
    desc = raw.GemmDesc(
        dtype=raw.F32, m=2, n=2, k=2, alpha=2.0, beta=0.0, a=a.buffer.handle, b=a.buffer.handle, c=c.buffer.handle
    )
    tuff.check(raw.tuff_gemm_ex(ctx.handle, desc))
    assert c.numpy().tolist() == [[14, 20], [30, 44]]

    total = ctx.zeros(2)
    desc = raw.ReduceDesc(
        dtype=raw.F32, op=raw.REDUCE_SUM, rank=2, input=a.buffer.handle, output=total.buffer.handle, axis=0
    )
    desc.shape[:2] = [2, 2]
    tuff.check(raw.tuff_reduce_ex(ctx.handle, desc))
    assert total.numpy().tolist() == [4, 6]


def test_versions_agree():
    assert raw.tuff_abi_version() == 1
    assert tuff.version() == tuple(int(part) for part in tuff.__version__.split("."))
    assert raw.tuff_build_info()
