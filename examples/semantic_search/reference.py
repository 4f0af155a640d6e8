"""The network of encoder.py in NumPy and float64, one text at a time."""

import math

import numpy as np

_erf = np.frompyfunc(math.erf, 1, 1)


def _linear(model, name, x):
    return x @ model[f"{name}.weight"].astype(np.float64).T + model[f"{name}.bias"]


def _layer_norm(model, name, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + model.config["layer_norm_eps"])
    return normal * model[f"{name}.weight"] + model[f"{name}.bias"]


def _attention(model, name, x):
    heads = model.config["num_attention_heads"]
    q, k, v = (_linear(model, f"{name}.{part}", x).reshape(len(x), heads, -1) for part in ("query", "key", "value"))
    scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("hij,jhd->ihd", weights, v).reshape(len(x), -1)


def vector(model, ids):
    """Returns the vector of one text."""
    words, positions, types = (
        model[f"embeddings.{part}_embeddings.weight"].astype(np.float64) for part in ("word", "position", "token_type")
    )
    x = _layer_norm(model, "embeddings.LayerNorm", words[ids] + positions[: len(ids)] + types[0])
    for index in range(model.config["num_hidden_layers"]):
        layer = f"encoder.layer.{index}"
        y = _linear(model, f"{layer}.attention.output.dense", _attention(model, f"{layer}.attention.self", x))
        x = _layer_norm(model, f"{layer}.attention.output.LayerNorm", x + y)
        y = _linear(model, f"{layer}.intermediate.dense", x)
        y = y * (1 + _erf(y / math.sqrt(2)).astype(np.float64)) / 2
        x = _layer_norm(model, f"{layer}.output.LayerNorm", x + _linear(model, f"{layer}.output.dense", y))
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)
