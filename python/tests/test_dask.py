"""Dask's arrays whose chunks are on a device, beside NumPy."""

import numpy as np
import pytest
import tuff
import tuff._default

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
    "mean": lambda x, np: x.mean(axis=1),
    "mean of all": lambda x, np: x.mean(),
    "variance": lambda x, np: x.var(axis=0, ddof=1),
    "deviation": lambda x, np: np.std(x),
    "largest's place": lambda x, np: x.argmax(axis=0),
    "smallest's place of all": lambda x, np: np.argmin(x),
    "median": lambda x, np: np.median(x, axis=0),
    "covariance": lambda x, np: np.cov(x.T),
    "mean without NaN": lambda x, np: np.nanmean(np.where(x > 1, np.nan, x), axis=0),
    "histogram": lambda x, np: np.histogram(x, bins=7, range=(-3, 3))[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_dask(ctx, rng, name):
    array = pytest.importorskip("dask.array")
    import tuff.dask

    values = rng.standard_normal((40, 30)).astype(np.float32)
    chunks = array.from_array(ctx.array(values), chunks=(16, 10), asarray=False)
    got = CALLS[name](chunks, array).compute(scheduler="synchronous")
    assert isinstance(got, tuff.Array) and got.context is ctx
    assert np.allclose(got.numpy(), CALLS[name](values, np), rtol=1e-4, atol=1e-4)


def test_percentiles_are_merged_on_the_host(ctx, rng, monkeypatch):
    array = pytest.importorskip("dask.array")
    import tuff.dask

    monkeypatch.setattr(tuff._default, "_default", ctx)
    values = rng.standard_normal(500).astype(np.float32)
    one = array.from_array(ctx.array(values), chunks=500, asarray=False)
    several = array.from_array(ctx.array(values), chunks=100, asarray=False)
    wanted = np.percentile(values, [10, 50])
    assert np.allclose(array.percentile(one, [10, 50]).compute(scheduler="synchronous"), wanted, atol=1e-5)
    # Of several chunks Dask's are estimates, here as of NumPy's chunks.
    host = array.percentile(array.from_array(values, chunks=100), [10, 50]).compute(scheduler="synchronous")
    assert np.allclose(array.percentile(several, [10, 50]).compute(scheduler="synchronous"), host, atol=1e-5)


def test_chunks_are_uploaded_where_they_are_computed(ctx, rng, monkeypatch):
    array = pytest.importorskip("dask.array")
    import tuff.dask

    monkeypatch.setattr(tuff._default, "_default", ctx)
    values = rng.standard_normal((40, 30)).astype(np.float32)
    chunks = tuff.dask.to_device(array.from_array(values, chunks=(20, 30)))
    assert isinstance(chunks._meta, tuff.Array) and chunks.dtype == np.float32
    blocks = chunks.map_blocks(lambda block: tuff.expr("x * x", x=block))
    assert np.allclose(blocks.sum(axis=0).compute(scheduler="synchronous").numpy(), (values**2).sum(0), rtol=1e-5)
    u, s, v = array.linalg.svd(chunks)
    got = s.compute(scheduler="synchronous")
    assert isinstance(got, tuff.Array) and np.allclose(got.numpy(), np.linalg.svd(values)[1], rtol=1e-4)
    back = tuff.dask.to_host(chunks).compute(scheduler="synchronous")
    assert isinstance(back, np.ndarray) and np.array_equal(back, values)


def test_numpys_like_makes_arrays_of_the_device(ctx):
    a = ctx.array(np.float32([3, 1, 2]))
    rows = [
        (np.asarray([1, 2], like=a), [1, 2]),
        (np.array(np.float32([0.5]), like=a), [0.5]),
        (np.zeros(2, like=a), [0, 0]),
        (np.full((2,), 7, dtype=np.int32, like=a), [7, 7]),
        (np.arange(3, like=a), [0, 1, 2]),
        (np.zeros((2,), np.int32, like=a), [0, 0]),
        (np.arange(0, 3, 1, np.int64, like=a), [0, 1, 2]),
        (np.eye(2, 3, 1, np.int32, like=a), [[0, 1, 0], [0, 0, 1]]),
        (np.identity(2, np.int32, like=a), [[1, 0], [0, 1]]),
        (np.full((2,), 7, np.int32, like=a), [7, 7]),
        (np.array([1, 2], np.int32, like=a), [1, 2]),
    ]
    assert {one.dtype for one, _ in rows[5:]} == {np.dtype(np.int32), np.dtype(np.int64)}
    for found, wanted in rows:
        assert isinstance(found, tuff.Array) and found.context is ctx and found.numpy().tolist() == wanted
    assert np.asarray(a, like=a) is a and np.asanyarray(a, like=a) is a and np.ascontiguousarray(a, like=a) is a
    assert np.array(a, copy=False, like=a) is a
    copied = np.array(a, like=a)
    copied[0] = 9
    assert copied.numpy().tolist() == [9, 1, 2] and a.numpy().tolist() == [3, 1, 2]
    strided = a[::2]
    assert np.asarray(strided, like=a) is strided
    adjacent = np.ascontiguousarray(strided, like=a)
    assert type(adjacent) is tuff.Array and adjacent.numpy().tolist() == [3, 2]
    with pytest.raises(TypeError, match="takes values and a dtype"):
        np.array([1, 2], ndmin=2, like=a)
    assert np.array([1, 2], ndmin=0, like=a).shape == (2,)


def test_places_in_shapes(ctx):
    places = np.unravel_index(ctx.array(np.int64([0, 7, 11])), (3, 4))
    assert [one.numpy().tolist() for one in places] == [[0, 1, 2], [0, 3, 3]]
    assert np.ravel_multi_index(places, (3, 4)).numpy().tolist() == [0, 7, 11]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_places_of_narrow_integers(ctx, dtype):
    """A shape has more elements than such a type holds."""
    rows, columns = np.array([100, 0, 127], dtype), np.array([7, 126, 3], dtype)
    place = np.ravel_multi_index((ctx.array(rows, dtype), ctx.array(columns, dtype)), (300, 400))
    wanted = np.ravel_multi_index((rows.astype(np.int64), columns.astype(np.int64)), (300, 400))
    assert place.dtype == np.int64 and place.numpy().tolist() == wanted.tolist()
    assert np.ravel_multi_index((2, ctx.array(columns, dtype)), (300, 400)).numpy().tolist() == [807, 926, 803]
    for shape in ((300, 400), (1, 300), (2, 3, 50), (128,)):
        found = np.unravel_index(ctx.array(rows, dtype), shape)
        for one, each in zip(found, np.unravel_index(rows.astype(np.int64), shape)):
            assert one.dtype == np.int64 and one.numpy().tolist() == each.tolist()


def test_places_are_integers(ctx):
    x = ctx.array(np.float32([1, 2]))
    for use in (lambda: np.unravel_index(x, (3, 4)), lambda: np.ravel_multi_index((x, x), (3, 4))):
        with pytest.raises(TypeError, match="float32, needs integers"):
            use()
