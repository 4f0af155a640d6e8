"""Dask's arrays whose chunks are on a device, beside NumPy."""

import numpy as np
import pytest
import tuff

CALLS = {
    "arithmetic": lambda x, np: np.exp(x) * 2 - x,
    "sum": lambda x, np: x.sum(axis=0),
    "sum of all": lambda x, np: np.sum(x),
    "product": lambda x, np: (1 + x / 100).prod(),
    "largest": lambda x, np: x.max(),
    "product of matrices": lambda x, np: x @ x.T,
    "tensordot": lambda x, np: np.tensordot(x, x, axes=((0,), (0,))),
    "einsum": lambda x, np: np.einsum("ij,kj->ik", x, x),
    "cumulative": lambda x, np: np.cumsum(x, axis=0),
    "parts": lambda x, np: x[3:20, ::2].T,
    "chosen": lambda x, np: np.where(x > 0, x, 0),
    "joined": lambda x, np: np.concatenate([x, x + 1], axis=1),
    "norm": lambda x, np: np.linalg.norm(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_dask(ctx, rng, name):
    array = pytest.importorskip("dask.array")
    values = rng.standard_normal((40, 30)).astype(np.float32)
    chunks = array.from_array(ctx.array(values), chunks=(16, 10), asarray=False)
    got = CALLS[name](chunks, array).compute(scheduler="synchronous")
    assert isinstance(got, tuff.Array) and got.context is ctx
    assert np.allclose(got.numpy(), CALLS[name](values, np), rtol=1e-4, atol=1e-4)
