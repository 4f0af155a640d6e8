"""docs/numpy.md: every public function of NumPy, and whether it is there for arrays on a device.

What is there is read from the package (python/tuff): the functions that its modules export, and those of NumPy that
run on its arrays (_protocol.py). How they differ is in DIFFERENT, by hand. numpy_names.txt has NumPy's names.
"""

from __future__ import annotations

import ast
from pathlib import Path

from pages import Problem

TOP = Path(__file__).resolve().parent.parent.parent
PACKAGE = TOP / "python" / "tuff"

#: NumPy's functions that have another name in tuff.
ALIASES = {
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    **{"absolute": "abs", "fabs": "abs", "negative": "neg", "true_divide": "divide", "mod": "remainder", "rint": "round"},
    **{"around": "round", "invert": "bitwise_invert", "bitwise_not": "bitwise_invert", "left_shift": "bitwise_left_shift"},
    **{"right_shift": "bitwise_right_shift", "pow": "power", "concatenate": "concat", "transpose": "permute_dims"},
    **{"amax": "max", "amin": "min", "asanyarray": "asarray", "ascontiguousarray": "asarray", "fix": "trunc"},
    **{"conjugate": "conj", "row_stack": "vstack", "trapz": "trapezoid"},
    "identity": "eye",
}

#: NumPy's second names of its functions.
SAME = {"concat": "concatenate", "permute_dims": "transpose", "row_stack": "vstack"}

#: NumPy's functions that are methods of arrays here.
METHODS = {"copy": "copy()", "ravel": "ravel()", "swapaxes": "swapaxes()", "matrix_transpose": "mT", "ndim": "ndim",
           "shape": "shape", "size": "size"}  # fmt: skip

#: What need not run on a device: they are of text, files, types, dates, settings and lists of indices. NumPy's own serve.
HOST = """array2string array_repr array_str base_repr binary_repr broadcast_shapes busday_count busday_offset common_type
datetime_as_string datetime_data einsum_path format_float_positional format_float_scientific frombuffer fromfile fromfunction
fromiter frompyfunc fromregex fromstring genfromtxt get_include get_printoptions getbufsize geterr geterrcall info isdtype
is_busday iscomplexobj isfortran isnat isrealobj isscalar issubdtype iterable load loadtxt min_scalar_type mintypecode
nested_iters printoptions promote_types save savetxt savez savez_compressed set_printoptions setbufsize seterr seterrcall
show_config show_runtime test typename""".split()

#: How a function differs from NumPy's, where it does.
DIFFERENT = {
    "abs": "of unsigned integers and bools too",
    "all": "the result is an array without axes, not a scalar, as of every reduction",
    "allclose": "a bool of Python: it waits",
    "arange": "integers are int64, other numbers float32",
    "array": "float64 and lists of real numbers become float32, unless dtype names another type",
    "asarray": "float64 and lists of floats become float32, lists of integers int64",
    "array_equal": "a bool of Python: it waits",
    "bitwise_left_shift": "0 for a shift by a negative number or by the width and more, as on every device",
    "bitwise_right_shift": "0, or -1 for negative numbers, for such a shift",
    "cumprod": "no dtype argument; exclusive and reverse are new",
    "cumsum": "no dtype argument; exclusive and reverse are new",
    "cumulative_prod": "no out",
    "cumulative_sum": "no out",
    "diagonal": "a view that can be written",
    "resize": "tuff.resize is another function, which resamples images; numpy.resize is NumPy's",
    "divide": "integers give float32",
    "einsum": "integers give int64 or uint64; no order, no casting",
    "empty": "float32 by default",
    "exp": "integers give float32, as of every function of floats",
    "eye": "float32 by default",
    "floor_divide": "0 for integers by zero, without a warning",
    "full": "bool, int64, float32 or complex64 by default, as the value is",
    "linspace": "float32 by default; no axis, no retstep",
    "matmul": "int8 gives int32; no bools, and no integers with floats",
    "mean": "integers give float32; accumulated in float32, float64 in float64",
    "ones": "float32 by default",
    "power": "an integer to a negative power is 0, or 1 or -1 for these bases",
    "prod": "tuff.prod has dtype; no where, no initial",
    "remainder": "0 for integers by zero, without a warning",
    "round": "tuff.round and numpy.rint are to integers; numpy.round has decimals",
    "std": "tuff.std and a.std() have correction instead of ddof; integers give float32",
    "sum": "tuff.sum has dtype; no where, no initial",
    "take": "the axis is 0 by default in tuff.take; indices out of range give zeros, no error",
    "trace": "of the last two axes",
    "var": "tuff.var and a.var() have correction instead of ddof; integers give float32",
    "zeros": "float32 by default",
}


#: The same for functions that are made of others.
COMPOSED = {
    "apply_along_axis": "the function is called with arrays on the device, one after another",
    "bartlett": "float32 by default, as of all windows",
    "bincount": "sums of weights are float32, of weights of float64 float64",
    "blackman": "float32 by default",
    "block": "nested lists of arrays; numbers among them are blocks of one element",
    "choose": "indices are not checked: one out of range gives 0",
    "convolve": "integers are convolved in float32",
    "copyto": "src is an array, a number or a list of numbers",
    "correlate": "integers are correlated in float32",
    "cov": "float32, or float64 of float64; weights on the device are not checked for signs",
    "delete": "indices on the device that are out of range are skipped",
    "diag": "of a matrix a new array",
    "diff": "prepend and append are arrays, numbers or lists of numbers",
    "digitize": "whether bins on the device are in order is waited for",
    "float_power": "in float32, but of float64 in float64",
    "frexp": "exponents 0 for infinities and NaN on every device",
    "geomspace": "float32 by default; of numbers, not arrays",
    "gradient": "of several axes a tuple",
    "hamming": "float32 by default",
    "hanning": "float32 by default",
    "histogram": "edges are a NumPy array; weights are summed in their own type",
    "histogram2d": "float32; edges are NumPy arrays",
    "histogram_bin_edges": "a NumPy array; the statistics of rules are computed in the elements' type",
    "histogramdd": "float32; edges are NumPy arrays",
    "in1d": "numbers of the host are lists",
    "insert": "indices on the device are not checked",
    "interp": "float32, or float64 of float64",
    "intersect1d": "assume_unique changes nothing",
    "isin": "numbers of the host are lists; kind changes nothing",
    "kaiser": "float32 by default",
    "ldexp": "integers give float32",
    "lexsort": "no complex numbers. numpy.lexsort takes a tuple of keys: NumPy itself copies those of a list to the host",
    "logspace": "float32 by default; of numbers, not arrays",
    "nan_to_num": "no copy: the result is a new array",
    "nanargmax": "it waits, to know of NaN alone",
    "nanargmin": "it waits, to know of NaN alone",
    "nanmax": "NaN without a warning where all are NaN",
    "nanmedian": "NaN without a warning where all are NaN",
    "nanmin": "NaN without a warning where all are NaN",
    "nanpercentile": "the methods of quantile: linear, lower, higher, midpoint, nearest",
    "nanquantile": "the methods of quantile: linear, lower, higher, midpoint, nearest",
    "nanstd": "tuff.nanstd has correction instead of ddof",
    "nanvar": "tuff.nanvar has correction instead of ddof",
    "piecewise": "functions are called with arrays on the device; it waits for their sizes",
    "place": "it waits for the number of elements",
    "poly": "no matrices, which need eigenvalues of general matrices",
    "polydiv": "it waits for the remainder's size",
    "polyfit": "float32, or float64 of float64; full=True gives a NamedTuple; no RankWarning",
    "polyint": "integers give float32",
    "polymul": "leading coefficients that are 0 remain: their number would have to be waited for",
    "put": "indices on the device that are out of range are skipped",
    "roots": "complex, in no order, by Aberth's and Ehrlich's method; it waits",
    "setxor1d": "assume_unique changes nothing",
    "spacing": "of float16 with the sign of the element, as of other types",
    "trim_zeros": "a view; it waits for its place",
    "unwrap": "sums of whole numbers of periods, which are exact",
    "vander": "integers give float32",
}

#: Why a function is not there.
ABSENT = {
    "asfortranarray": "arrays on a device are in row-major order",
    "asmatrix": "numpy.matrix, which NumPy advises against",
    "bmat": "numpy.matrix; block() joins arrays",
    "require": "flags of memory and column-major order, which arrays on a device do not have",
    "numpy.random.Generator.bit_generator": "the generator is Philox4x32-10, on the device",
}


#: The same for numpy.linalg.
LINALG = {
    "cond": "NaN for a matrix of zeros; where it takes singular values, LinAlgError for infinity",
    "eig": "LinAlgError for NaN and infinity; no complex matrices; it waits",
    "eigh": "LinAlgError for NaN and infinity",
    "eigvals": "LinAlgError for NaN and infinity; no complex matrices; it waits",
    "lstsq": "a NamedTuple",
    "matrix_rank": "LinAlgError for infinity; hermitian, of numpy.linalg alone, changes nothing",
    "pinv": "LinAlgError for infinity; hermitian and rcond, of numpy.linalg alone: rcond is rtol, hermitian changes nothing",
    "qr": 'no mode "raw"',
    "svd": "LinAlgError for infinity; hermitian, of numpy.linalg alone, changes nothing",
}


def names() -> dict[str, list[str]]:
    """NumPy's names, by module."""
    found: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / "numpy_names.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            module = line.rstrip(":")
            found[module] = []
        else:
            found[module] += line.split()
    return found


def exported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def methods(module: str, name: str) -> set[str]:
    """The public methods of a class of the package."""
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return {one.name for one in node.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")}
    raise Problem(f"{module} has no class {name}")


def dispatched(table: str = "FUNCTIONS") -> set[str]:
    """NumPy's functions that run on arrays: the keys of _protocol.FUNCTIONS, or UFUNCS, wherever the package adds to it."""
    found: set[str] = set()

    def keys(node: ast.expr) -> None:
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if isinstance(key, ast.Constant):
                    found.add(key.value)
                else:
                    keys(value)
        elif isinstance(node, ast.DictComp) and isinstance(node.key, ast.Name):
            iterated = node.generators[0].iter
            if isinstance(iterated, (ast.Tuple, ast.List)):
                found.update(one.value for one in iterated.elts if isinstance(one, ast.Constant))

    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                if getattr(target, "id", "") == table and path.name == "_protocol.py" and node.value is not None:
                    keys(node.value)
                elif isinstance(target, ast.Subscript) and ast.unparse(target.value).endswith(f".{table}"):
                    if isinstance(target.slice, ast.Constant):
                        found.add(target.slice.value)
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(f".{table}.update"):
                found.update(one.arg for one in node.keywords if one.arg)
                for one in (*node.args, *(extra.value for extra in node.keywords if extra.arg is None)):
                    keys(one)
    return found


#: NumPy's ufuncs: of these, whatever _protocol.ufunc() looks for by their names, in these modules, runs on arrays.
UFUNC_MODULES = ("_elementwise.py", "_functions.py", "_operations.py")
#: Others are the keys of _protocol.UFUNCS.
UFUNCS = set(
    """abs absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh
    bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor cbrt
    ceil conj conjugate copysign cos cosh deg2rad degrees divide divmod equal exp exp2 expm1 fabs float_power floor
    floor_divide fmax fmin fmod frexp gcd greater greater_equal heaviside hypot invert isfinite isinf isnan isnat lcm ldexp
    left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
    matmul matvec maximum minimum mod modf multiply negative nextafter not_equal positive pow power rad2deg radians
    reciprocal remainder right_shift rint sign signbit sin sinh spacing sqrt square subtract tan tanh true_divide trunc
    vecdot vecmat""".split()
)

HEAD = """# NumPy's functions

Every public function of NumPy VERSION, and whether it is there for arrays on a device. `numpy.name` means that NumPy's own
function, called with a `tuff.Array`, runs on the device; NumPy's functions without that mark raise a `TypeError` for such arrays
and never copy them to the host. `scripts/api/generate.py` writes this page from the package.

In general: types are as [python.md](python.md#types) says, not NumPy's (float32 where NumPy gives float64, complex64 where it gives complex128);
reductions give arrays without axes, not scalars; nothing warns of overflow, NaN or division by zero; arguments that have no effect
on a device (`order`, `subok`, `casting`, `where=` of ufuncs) are refused. The table names what else differs.

| | there | of |
|---|---|---|
"""


def table(module: str, tuff: str, listed: list[str], there: set[str], run: set[str]) -> tuple[list[str], list[str]]:
    """The rows of functions that are there, and the names of those that are not."""
    rows, missing = [], []
    for name in listed:
        own = name if name in there else ALIASES.get(name, name)
        method = METHODS.get(name) if module == "numpy" else None
        if own not in there and name not in run and method is None:
            missing.append(name)
            continue
        here = f"`{tuff}.{own}`" if own in there else f"`a.{method}`" if method else ""
        runs = f"`{module}.{name}`" if name in run or SAME.get(name) in run else ""
        known = {**COMPOSED, **DIFFERENT} if module == "numpy" else LINALG if module == "numpy.linalg" else {}
        rows.append(f"| `{name}` | {runs} | {here} | {known.get(name, known.get(own, ''))} |")
    return rows, missing


def wrapped(listed: list[str]) -> str:
    lines, line = [], ""
    for text in [f"`{name}`" for name in listed]:
        if len(line) + len(text) + 1 > 118:
            lines.append(line)
            line = ""
        line += (" " if line else "") + text
    return "\n".join([*lines, line])


def absent(module: str, missing: list[str]) -> str:
    """The functions that are not there, and why."""
    reasons = {name: ABSENT.get(name if module == "numpy" else f"{module}.{name}") for name in missing}
    lacking = [name for name, reason in reasons.items() if reason is None]
    if lacking:
        raise Problem(f"numpy_page.py does not say why {module} lacks {lacking}")
    return "Not there:\n\n| NumPy | why |\n|---|---|\n" + "".join(f"| `{name}` | {reason} |\n" for name, reason in reasons.items())


def page() -> str:
    numpy = names()
    version = (Path(__file__).parent / "numpy_names.txt").read_text(encoding="utf-8").split("NumPy ")[1].split(",")[0]
    found = set.union(*(exported(PACKAGE / one) for one in UFUNC_MODULES))
    ufuncs = {name for name in UFUNCS if name in found or ALIASES.get(name) in found} | dispatched("UFUNCS") | {"conj", "conjugate"}
    everywhere = set.union(*(exported(path) for path in PACKAGE.glob("_*.py")))
    unknown = [name for name in (*DIFFERENT, *COMPOSED, *HOST, *METHODS, *ALIASES) if name not in numpy["numpy"]]
    unknown += [name for name in LINALG if name not in numpy["numpy.linalg"]]
    unknown += [name for name in ABSENT if name.rpartition(".")[2] not in numpy[name.rpartition(".")[0] or "numpy"]]
    if unknown:
        raise Problem(f"numpy_page.py names what NumPy does not have: {unknown}")
    parts = [("numpy", "tuff", everywhere, dispatched() | ufuncs, [name for name in numpy["numpy"] if name not in HOST])]
    for name in ("linalg", "fft"):
        path = PACKAGE / f"{name}.py"
        own = exported(path) if path.is_file() else set()
        # Both modules add what they export to _protocol.FUNCTIONS; frequencies are of no array.
        parts.append((f"numpy.{name}", f"tuff.{name}", own, own - {"fftfreq", "rfftfreq"}, numpy[f"numpy.{name}"]))
    generator = "numpy.random.Generator"
    own = methods("_random.py", "Generator") | methods("_distributions.py", "Distributions")
    parts.append((generator, "Generator", own, set(), numpy[generator]))
    summary, body = "", ""
    for module, tuff, there, run, listed in parts:
        rows, missing = table(module, tuff, listed, there, run)
        summary += f"| {module} | {len(rows)} | {len(listed)} |\n"
        body += f"\n## {module}\n\n"
        if rows:
            body += f"| NumPy | runs on the device | {tuff} | how it differs |\n|---|---|---|---|\n" + "\n".join(rows) + "\n\n"
        body += absent(module, missing) if missing else "All of them are there.\n"
    body += "\n## Not of arrays on a device\n\nText, files, types and settings: NumPy's own serve. Dates, with their business days, are no elements of arrays on a device.\n" + wrapped(sorted(HOST)) + "\n"
    return HEAD.replace("VERSION", version) + summary + body
