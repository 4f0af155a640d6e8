"""The activations of GEMMs and convolutions, and their effect on an error."""

from __future__ import annotations

import numpy as np
import scipy.special

import libraries
from elements import TYPES, ulp

NONE, RELU, GELU, GELU_TANH, SILU, RELU6 = range(6)


def gelu(x):
    """x times the normal distribution function; SciPy's version keeps the digits of its tail."""
    with np.errstate(invalid="ignore"):
        return np.where(x == -np.inf, 0.0, x * scipy.special.ndtr(x))


def gelu_argument(x):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)


def gelu_tanh(x):
    """(1 + tanh(t)) / 2 is the logistic function of 2 t, which keeps the digits of small results."""
    with np.errstate(invalid="ignore"):
        return np.where(x == -np.inf, 0.0, x * scipy.special.expit(gelu_argument(x)))


def silu(x):
    with np.errstate(invalid="ignore"):
        return np.where(x == -np.inf, 0.0, x * scipy.special.expit(x))


def numpy_activation(activation: int, x):
    if activation in (RELU, RELU6):
        return np.clip(x, 0, 6 if activation == RELU6 else np.inf)
    return {NONE: lambda y: y, GELU: gelu, GELU_TANH: gelu_tanh, SILU: silu}[activation](x)


def torch_activation(activation: int, x):
    functional = libraries.torch.nn.functional
    y = {
        NONE: lambda y: y,
        RELU: functional.relu,
        RELU6: functional.relu6,
        GELU: functional.gelu,
        GELU_TANH: lambda y: functional.gelu(y, approximate="tanh"),
        SILU: functional.silu,
    }[activation](libraries.tensor(x)).numpy()
    # For minus infinity PyTorch computes 0 * infinity; docs/accuracy.md gives the limit.
    return np.where(x == -np.inf, 0.0, y) if activation in (GELU, GELU_TANH, SILU) else y


def gelu_tanh_ulps(x):
    """docs/accuracy.md: 8 + 7 |t| (1 - sigma(t)) ULP, with t = sqrt(8 / pi) (x + 0.044715 x^3)."""
    t = np.clip(gelu_argument(x), -200, 200)
    return 8 + 7 * np.abs(t) * scipy.special.expit(-t)


def after_activation(activation: int, z, error, name: str = "f32"):
    """The bound after the activation. An error of the argument is multiplied by the function's slope, at most 1.13;
    the function adds its own ULP (docs/accuracy.md), of f32, or of f64 for f64 GEMMs."""
    if activation in (NONE, RELU, RELU6):
        return error
    value = np.abs(numpy_activation(activation, z)) + 1.13 * error
    ulps = gelu_tanh_ulps(z) if activation == GELU_TANH else 8
    return 1.13 * error + ulps * ulp(TYPES[name], value)
