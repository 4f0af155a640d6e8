"""Checks that every operation has an oracle, and that the random cases set every field of every descriptor."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from case import Draw, Handle

# Groups of constants whose every member some case must use, except for the members named here.
GROUPS = {
    ("unary", "op"): ("tuff_unary_op",),
    ("binary", "op"): ("tuff_binary_op",),
    ("reduce", "op"): ("tuff_reduce_op",),
    ("gemm", "ta"): ("tuff_transpose",),
    ("gemm", "tb"): ("tuff_transpose",),
    ("gemm", "activation"): ("tuff_activation",),
    ("batched_gemm", "activation"): ("tuff_activation",),
    ("gemm", "bias_axis"): ("tuff_bias_axis",),
    ("batched_gemm", "bias_axis"): ("tuff_bias_axis",),
    ("gemm", "precision"): ("tuff_precision", "TUFF_PRECISION_ALLOW_WINOGRAD"),
    ("conv1d", "activation"): ("tuff_activation",),
    ("conv2d", "activation"): ("tuff_activation",),
    ("conv3d", "activation"): ("tuff_activation",),
    ("conv_transpose2d", "activation"): ("tuff_activation",),
    ("conv2d", "layout"): ("tuff_layout",),
    ("conv_backward_data", "layout"): ("tuff_layout",),
    ("conv_backward_filter", "layout"): ("tuff_layout",),
    ("resize", "layout"): ("tuff_layout",),
    ("resize", "mode"): ("tuff_resize_mode",),
    ("pad", "mode"): ("tuff_pad_mode",),
    ("scatter", "op"): ("tuff_scatter_op",),
    ("select", "op"): ("tuff_select_op",),
    ("attention", "causal"): ("tuff_causal",),
    ("attention_backward", "causal"): ("tuff_causal",),
    ("random", "distribution"): ("tuff_random_distribution",),
    ("variates", "distribution"): ("tuff_variates_distribution",),
    ("fft", "kind"): ("tuff_fft_kind",),
    ("fft", "norm"): ("tuff_fft_norm",),
    ("dct", "kind"): ("tuff_dct_kind",),
    ("dct", "norm"): ("tuff_fft_norm",),
    ("rnn", "cell"): ("tuff_rnn_cell",),
    ("rnn", "direction"): ("tuff_rnn_direction",),
    ("rnn", "gate_order"): ("tuff_rnn_gates",),
    ("rnn_backward", "cell"): ("tuff_rnn_cell",),
    ("rnn_backward", "direction"): ("tuff_rnn_direction",),
    ("rnn_backward", "gate_order"): ("tuff_rnn_gates",),
    ("optimizer_step", "algorithm"): ("tuff_optimizer",),
    ("quantize", "granularity"): ("tuff_quant_granularity",),
    ("dequantize", "format"): ("tuff_quant_format",),
    ("qgemm", "format"): ("tuff_quant_format",),
    ("qgemm", "activation"): ("tuff_activation",),
    ("cholesky", "triangle"): ("tuff_triangle",),
    ("triangular_solve", "side"): ("tuff_side",),
    ("triangular_solve", "triangle"): ("tuff_triangle",),
    ("triangular_solve", "transpose"): ("tuff_transpose",),
    ("lu_solve", "transpose"): ("tuff_transpose",),
    ("spmm", "side"): ("tuff_side",),
    ("spmm", "transpose"): ("tuff_transpose",),
    ("spmm", "block_order"): ("tuff_block_order",),
    ("sddmm", "place_format"): ("tuff_sparse_format", "TUFF_SPARSE_CSC", "TUFF_SPARSE_DENSE", "TUFF_SPARSE_BSR"),
    ("sddmm", "transpose"): ("tuff_transpose",),
    ("sparse_triangular_solve", "triangle"): ("tuff_triangle",),
    ("sparse_triangular_solve", "transpose"): ("tuff_transpose",),
    ("sparse_convert", "from_format"): ("tuff_sparse_format",),
    ("sparse_convert", "to_format"): ("tuff_sparse_format",),
    ("sparse_convert", "from_block_order"): ("tuff_block_order",),
    ("sparse_convert", "to_block_order"): ("tuff_block_order",),
}
# Sections of tuff.h with the functions that compute, and the functions in them that compute nothing.
SECTIONS = ("Operations", "Normalisations", "Shapes and types", "Pooling", "Resizing", "Positions", "Fourier transforms", "Recurrent networks", "Training", "Linear algebra", "Sparse matrices", "Quantisation", "Expressions")
COMPUTES_NOTHING = ("tuff_batched_gemm_variants", "tuff_expr_create", "tuff_expr_destroy")


def _header() -> dict:
    root = Path(__file__).resolve().parents[2]
    return json.loads((root / "include" / "tuff" / "tuff.json").read_text())


def missing_operations(oracles) -> list[str]:
    """Functions of tuff.json that no oracle calls, and functions in oracles that tuff.json lacks."""
    functions = _header()["functions"]
    sections = {f["section"] for f in functions}
    problems = [f"tuff.json has no section {s!r}: SECTIONS of coverage.py is out of date" for s in SECTIONS
                if s not in sections]  # fmt: skip
    wanted = {f["name"] for f in functions if f["section"] in SECTIONS} - set(COMPUTES_NOTHING)
    # A function that takes a stream and a dtype computes, whatever its section.
    wanted |= {f["name"] for f in functions if {"stream", "dtype"} <= {p["name"] for p in f["parameters"]}}
    named = {name for oracle in oracles.values() for name in oracle.functions}
    problems += [f"{name} has no oracle" for name in sorted(wanted - named)]
    return problems + [f"tuff.json has no {name}" for name in sorted(named - wanted)]


def unused_fields(oracles, seed: str, cases: int = 400) -> list[str]:
    """Descriptor fields that no case sets to anything but zero, and functions that no case calls."""
    from device import descriptor_of

    problems = []
    for oracle in oracles.values():
        used, called, values = defaultdict(set), set(), defaultdict(set)
        combinations = oracle.combinations()
        for kind, form in combinations:
            for index in range(max(8, cases // len(combinations))):
                draw = Draw(f"{seed}/{oracle.name}/{kind}/{form}", index, index)
                case = oracle.draw(draw, kind, form)
                called.add(case.function)
                if isinstance(case.arguments, dict):
                    used[case.function] |= {n for n, v in case.arguments.items() if _set(v)}
                    for name in {name for of, name in GROUPS if of == oracle.name}:
                        values[name].add(case.arguments.get(name, 0))
        for function in oracle.functions:
            if function not in called:
                problems.append(f"{function}: no case calls it")
            elif (kind_ := descriptor_of(function)) is not None:
                fields = {name for name, *_ in kind_._fields_} - {"struct_size", *oracle.constant}
                problems += [f"{function}: no case sets {name}" for name in sorted(fields - used[function])]
        for (of, name), (group, *without) in GROUPS.items():
            if of == oracle.name:
                problems += [f"{of}: no case has {name} = {constant}" for constant, value in _constants(group)
                             if constant not in without and value not in values[name]]  # fmt: skip
    return problems


def _constants(group: str) -> list[tuple[str, int]]:
    values = next(g for g in _header()["groups"] if g["name"] == group)["values"]
    return [(v["name"], v["value"]) for v in values if v["value"] != -1]


def _set(value) -> bool:
    if isinstance(value, Handle):
        return True
    return any(map(_set, value)) if isinstance(value, (list, tuple)) else bool(value)
