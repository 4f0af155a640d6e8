"""The libraries that provide references. NumPy and SciPy are required (Debian: python3-numpy, python3-scipy); PyTorch
and ONNX's reference evaluator (PyPI: torch, onnx) are used too if they can be imported."""

from __future__ import annotations

import importlib
import sys

try:
    import numpy  # noqa: F401
    import scipy.signal
    import scipy.special  # noqa: F401
except ImportError as error:
    package = f"python3-{(error.name or 'numpy').split('.')[0]}"
    sys.exit(f"oracle: {error}: the package {package} is missing (scripts/setup.sh installs it)")


def _optional(name: str):
    try:
        return importlib.import_module(name)
    except (ImportError, OSError):
        return None


torch = _optional("torch")
onnx = _optional("onnx") and _optional("onnx.reference") and _optional("onnx")
if torch is not None:
    torch.set_num_threads(1)


def tensor(x):
    return torch.from_numpy(numpy.ascontiguousarray(x))


def only(names: list[str]) -> None:
    """Excludes the optional libraries that are not named."""
    global torch, onnx
    torch = torch if "torch" in names else None
    onnx = onnx if "onnx" in names else None


def run_onnx(operator: str, inputs: list, outputs: int = 1, opset: int = 23, **attributes) -> list:
    """Runs one operator in ONNX's reference evaluator, in float64 if the inputs are."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    names = [f"i{i}" if x is not None else "" for i, x in enumerate(inputs)]
    given = {name: x for name, x in zip(names, inputs) if name}
    results = [f"o{i}" for i in range(outputs)]
    node = helper.make_node(operator, names, results, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()],
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, given)
