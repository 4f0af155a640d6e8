"""Places of elements, searching in sorted elements, and sets, beside NumPy's."""

import numpy as np
import pytest
import tuff

TYPES = [np.float32, np.float16, np.float64, np.int32, np.uint32, np.int8, np.uint8, np.int64, np.uint64, np.int16, np.uint16]


def _few(dtype, shape, seed=1):
    """Elements that repeat, zeros among them; of floats NaN, infinities and zeros of both signs too."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.choice(np.array([0.0, -0.0, 1.5, -2, 3, np.inf, -np.inf, np.nan], dtype), shape)
    info = np.iinfo(dtype)
    return rng.choice(np.array([0, 1, 2, 3, info.max, info.min, info.max - 1], dtype), shape)


@pytest.mark.parametrize("fill", ["some", "none", "all"])
def test_places_of_elements_that_are_not_zero(ctx, fill):
    for shape in ((1,), (33,), (5000,), (7, 9), (2, 1, 3, 1), (0,), (3, 0)):
        x = _few(np.float32, shape) if fill == "some" else np.full(shape, fill == "all", np.float32)
        for host in (x, x.astype(np.bool_), _few(np.int64, shape) * (fill == "some")):
            array = ctx.array(host, dtype=host.dtype)
            for got, want in zip(tuff.nonzero(array), np.nonzero(host)):
                assert got.dtype == np.int64
                np.testing.assert_array_equal(got.numpy(), want)
            np.testing.assert_array_equal(tuff.argwhere(array).numpy(), np.argwhere(host))
            np.testing.assert_array_equal(tuff.flatnonzero(array).numpy(), np.flatnonzero(host))
        assert len(array.nonzero()) == len(np.nonzero(array)) == len(np.where(array)) == len(shape)


def test_compress_and_extract(ctx):
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    array = ctx.array(x)
    for axis, condition in ((0, [1, 0, 1]), (1, [0, 1]), (2, [True, False, False, True, True]), (None, [0, 3, 0, 1])):
        mask = ctx.array(np.array(condition))
        np.testing.assert_array_equal(tuff.compress(mask, array, axis).numpy(), np.compress(condition, x, axis))
    mask = x % 7 == 1
    np.testing.assert_array_equal(tuff.extract(ctx.array(mask), array).numpy(), np.extract(mask, x))
    np.testing.assert_array_equal(np.extract(ctx.array(mask), array).numpy(), np.extract(mask, x))
    with pytest.raises(IndexError, match="beyond"):
        tuff.compress(ctx.array(np.array([0, 0, 0, 1])), array, 0)
    with pytest.raises(ValueError, match="condition"):
        tuff.extract(ctx.array(np.array([True])), array)


@pytest.mark.parametrize("dtype", TYPES)
def test_searchsorted(ctx, dtype):
    for size in (0, 1, 2, 3, 8, 1000):
        a, v = np.sort(_few(dtype, size)), _few(dtype, (13, 7), 2)
        array, wanted = ctx.array(a, dtype=a.dtype), ctx.array(v, dtype=v.dtype)
        for side in ("left", "right"):
            got = tuff.searchsorted(array, wanted, side)
            assert got.dtype == np.int64
            np.testing.assert_array_equal(got.numpy(), np.searchsorted(a, v, side))
    distinct = np.sort(np.random.default_rng(3).permutation(100)[:50]).astype(dtype)
    got = tuff.searchsorted(ctx.array(distinct, dtype=dtype), ctx.array(np.arange(100), dtype=dtype))
    np.testing.assert_array_equal(got.numpy(), np.searchsorted(distinct, np.arange(100).astype(dtype)))


def test_searchsorted_with_a_sorter_and_other_types(ctx):
    x = np.random.default_rng(4).standard_normal(500).astype(np.float32)
    v = np.arange(-3, 4, dtype=np.int32)
    array = ctx.array(x)
    got = tuff.searchsorted(array, ctx.array(v, dtype=v.dtype), sorter=tuff.argsort(array))
    np.testing.assert_array_equal(got.numpy(), np.searchsorted(np.sort(x), v))
    np.testing.assert_array_equal(tuff.sort(array).searchsorted(array, "right").numpy(), np.searchsorted(np.sort(x), x, "right"))
    for wrong in (dict(side="middle"), dict(a=array.reshape(5, 100))):
        with pytest.raises(ValueError):
            tuff.searchsorted(**{"a": array, "v": array, **wrong})


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int64, np.uint64, np.int8, np.bool_])
def test_bincount(ctx, dtype):
    x = np.random.default_rng(5).integers(0, 2 if dtype == np.bool_ else 100, 5000).astype(dtype)
    array = ctx.array(x, dtype=x.dtype)
    got = tuff.bincount(array)
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got.numpy(), np.bincount(x.astype(np.int64)))
    np.testing.assert_array_equal(np.bincount(array, minlength=300).numpy(), np.bincount(x.astype(np.int64), minlength=300))
    assert tuff.bincount(array[:0], 3).numpy().tolist() == [0, 0, 0]


def test_bincount_of_few_and_of_many_numbers(ctx):
    rng = np.random.default_rng(5)
    for most, n in ((0, 1), (0, 70_000), (9, 70_000), (2047, 50_000), (2048, 50_000), (1_000_000, 300)):
        for dtype in (np.int32, np.uint64):
            x = np.append(rng.integers(0, most + 1, n), most).astype(dtype)
            got = tuff.bincount(ctx.array(x, dtype=dtype))
            np.testing.assert_array_equal(got.numpy(), np.bincount(x.astype(np.int64)))
    apart = ctx.array(np.arange(300, dtype=np.int64) % 7)[::-2]
    np.testing.assert_array_equal(tuff.bincount(apart).numpy(), np.bincount(apart.numpy()))
    weights = np.arange(150, dtype=np.float64)
    got = tuff.bincount(apart, ctx.array(weights, dtype=np.float64))
    np.testing.assert_array_equal(got.numpy(), np.bincount(apart.numpy(), weights))


def test_what_bincount_does_not_count(ctx):
    with pytest.raises(ValueError, match="negative"):
        tuff.bincount(ctx.array(np.array([1, -1]), dtype=np.int32))
    with pytest.raises(TypeError, match="integers"):
        tuff.bincount(ctx.zeros(3))
    with pytest.raises(ValueError, match="4294967296 elements"):  # a view of one element
        tuff.bincount(tuff.broadcast_to(ctx.array(np.ones(1, np.uint8), dtype=np.uint8), (2**32,)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, np.int64])
def test_histogram(ctx, dtype):
    x = (np.random.default_rng(6).standard_normal((50, 40)) * 30 + 90).astype(dtype)
    array = ctx.array(x, dtype=x.dtype)
    for arguments in ((), (7,), (1,), (5, (50, 120)), ([0, 50, 90.5, 91, 200],), ([100, 100, 101],), (4, (-1e9, 1e9)), (3, (500, 600))):
        counts, edges = tuff.histogram(array, *arguments)
        assert counts.dtype == np.int64
        want, _ = np.histogram(x.astype(np.float64), edges.astype(np.float64))  # with the same edges
        np.testing.assert_array_equal(counts.numpy(), want)
        np.testing.assert_allclose(edges, np.histogram(x.astype(np.float64), *arguments)[1], rtol=1e-6)
    counts, edges = np.histogram(ctx.array(np.full(9, 5, np.int32)), 2)
    assert counts.numpy().tolist() == [0, 9] and edges.tolist() == [4.5, 5, 5.5]


def test_what_has_no_histogram(ctx):
    with pytest.raises(ValueError, match="finite"):
        tuff.histogram(ctx.array(np.array([1, np.nan], np.float32)))
    with pytest.raises(ValueError, match="ascending"):
        tuff.histogram(ctx.zeros(3), [1, 0])
    with pytest.raises(ValueError, match="ascending"):
        tuff.histogram(ctx.zeros(3), 4, (2, 1))
    with pytest.raises(ValueError, match="bins"):
        tuff.histogram(ctx.zeros(3), 0)
    assert tuff.histogram(ctx.zeros(0), 2)[0].numpy().tolist() == [0, 0]


def test_unique_of_complex_numbers(ctx):
    rng = np.random.default_rng(3)
    for shape in ((1,), (3000,), (30, 40), (0,)):
        x = (rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)).astype(np.complex64)
        got = tuff.unique(ctx.array(x), True, True, True)
        for one, wanted in zip(got, np.unique(x, True, True, True)):
            np.testing.assert_array_equal(one.numpy().ravel(), wanted.ravel())
        assert got[2].shape == shape and got[0].dtype == np.complex64
    # Zeros of both signs are equal, also where a part beside them differs.
    x = np.array([complex(0.0, 3), complex(-0.0, 5), complex(-0.0, 3), complex(1, -0.0), complex(1, 0.0)], np.complex64)
    values, counts = tuff.unique_counts(ctx.array(x))
    assert values.numpy().tolist() == [3j, 5j, 1] and counts.numpy().tolist() == [2, 1, 2]
    x = np.array([complex(np.nan, 0), 2j, complex(0, np.nan), complex(np.nan, np.nan), 2j], np.complex64)
    assert tuff.unique(ctx.array(x)).shape == (2,) and tuff.unique(ctx.array(x), equal_nan=False).shape == (4,)
    assert tuff.unique_all(ctx.array(x)).counts.numpy().tolist() == [2, 1, 1, 1]


@pytest.mark.parametrize("dtype", TYPES + [np.bool_])
def test_unique(ctx, dtype):
    for shape in ((1,), (3000,), (30, 40), (0,)):
        x = _few(dtype, shape) if dtype != np.bool_ else np.random.default_rng(1).integers(0, 2, shape).astype(np.bool_)
        array = ctx.array(x, dtype=x.dtype)
        got = tuff.unique(array, True, True, True)
        values, indices, inverse, counts = np.unique(x, True, True, True)
        np.testing.assert_array_equal(got[0].numpy(), values)
        np.testing.assert_array_equal(got[1].numpy(), indices)
        np.testing.assert_array_equal(got[2].numpy(), inverse.reshape(shape))
        np.testing.assert_array_equal(got[3].numpy(), counts)
        assert [one.dtype for one in got] == [dtype, np.int64, np.int64, np.int64]
        np.testing.assert_array_equal(np.unique(array).numpy(), values)


def test_sets_of_the_array_api(ctx):
    x = np.array([[3, np.nan, 1], [np.nan, 3, 0], [-0.0, 1, 1]], np.float32)
    array = ctx.array(x)
    everything = tuff.unique_all(array)
    values = np.unique(x, equal_nan=False)
    np.testing.assert_array_equal(everything.values.numpy(), values)
    np.testing.assert_array_equal(x.ravel()[everything.indices.numpy()], values)
    np.testing.assert_array_equal(values[everything.inverse_indices.numpy()], x)
    assert everything.counts.numpy().tolist() == [2, 3, 2, 1, 1]
    np.testing.assert_array_equal(tuff.unique_values(array).numpy(), values)
    np.testing.assert_array_equal(tuff.unique_counts(array).counts.numpy(), everything.counts.numpy())
    np.testing.assert_array_equal(tuff.unique_inverse(array).inverse_indices.numpy(), everything.inverse_indices.numpy())
    assert len(tuff.unique_counts(ctx.zeros(0)).counts) == 0


def test_bincount_with_weights(ctx, rng):
    x, w = rng.integers(0, 9, 2000), rng.integers(-8, 9, 2000).astype(np.float32)
    array, weights = ctx.array(x), ctx.array(w)
    got = tuff.bincount(array, weights, minlength=12)
    assert got.dtype == np.float32 and (got.numpy() == np.bincount(x, w, 12)).all()
    assert (np.bincount(array, weights=weights).numpy() == np.bincount(x, w)).all()
    assert (tuff.bincount(ctx.array(x, np.uint8), ctx.array(w, np.int16)).numpy() == np.bincount(x, w)).all()
    assert tuff.bincount(ctx.zeros(0, np.int32), ctx.zeros(0), 3).numpy().tolist() == [0, 0, 0]
    assert tuff.bincount(array, 20).shape == (20,)
    for error, text, value in [(ValueError, "weights have shape", ctx.ones(3)), (TypeError, "real numbers", weights.astype(np.complex64)),
                               (TypeError, "NumPy array", w)]:  # fmt: skip
        with pytest.raises(error, match=text):
            tuff.bincount(array, value)


def test_where_of_a_condition_alone(ctx, rng):
    x = rng.integers(0, 3, (5, 7))
    for got, wanted in zip(tuff.where(ctx.array(x)), np.where(x)):
        assert got.dtype == np.int64 and (got.numpy() == wanted).all()
    assert tuff.where(ctx.array(x) > 5)[0].shape == (0,)
    with pytest.raises(TypeError):
        tuff.where(ctx.array(x), ctx.array(x))


def test_only_arrays_on_the_device_are_searched(ctx):
    for call in (tuff.nonzero, tuff.flatnonzero, tuff.argwhere, tuff.bincount, tuff.histogram, tuff.unique, tuff.unique_all):
        with pytest.raises(TypeError, match="NumPy"):
            call(np.zeros(3))
    with pytest.raises(ValueError, match="0-d"):
        tuff.nonzero(ctx.array(np.float32(1)))


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.uint64])
def test_searches_in_few_elements(ctx, kind):
    """The first steps of a search are one formula, of as many elements as there are."""
    rng = np.random.default_rng(14)
    for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 100):
        a, v = np.sort(rng.integers(0, 30, n)).astype(kind), rng.integers(0, 32, 50).astype(kind)
        if kind == np.float32 and n > 3:
            a[-2:] = v[:5] = np.nan
        for side in ("left", "right"):
            found = tuff.searchsorted(ctx.array(a, kind), ctx.array(v, kind), side).numpy()
            assert found.tolist() == np.searchsorted(a, v, side).tolist(), (n, side)


def test_searches_share_formulas(ctx):
    """Formulas are compiled for the kind of the elements and for eighths of powers of two, not for each number of elements."""
    from tuff._expression import _compiled

    def search(n):
        tuff.searchsorted(ctx.zeros(n), ctx.ones(5))
        return len(_compiled[ctx])

    assert search(1000) == search(1023) == search(900) == search(2047) == search(1800) == search(120000)


def _checked_unique(ctx, x):
    array = ctx.array(x, dtype=x.dtype)
    for got, want in zip(tuff.unique(array, True, True, True), np.unique(x, True, True, True)):
        np.testing.assert_array_equal(got.numpy(), want.reshape(got.shape))
    for got, want in zip(tuff.unique(array, return_counts=True), np.unique(x, return_counts=True)):
        np.testing.assert_array_equal(got.numpy(), want)
    values = tuff.unique(array)
    assert values.dtype == x.dtype
    np.testing.assert_array_equal(values.numpy(), np.unique(x))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_unique_of_integers_by_a_table(ctx, dtype):
    # At both ends of the type, with negative numbers, and on both sides of where tables begin to be used.
    rng = np.random.default_rng(3)
    info = np.iinfo(np.uint8 if dtype == np.bool_ else dtype)
    for n in (4095, 4096, 70_000):
        for numbers in (1, 2, 100, n):
            numbers = min(numbers, info.max - info.min + 1)
            drawn = rng.integers(0, numbers, n).astype(np.uint64)
            for least in (info.min, info.max - numbers + 1, -(numbers // 2) if info.min < 0 else 0):
                x = (drawn + np.array(least % 2**64, np.uint64)).astype(np.bool_ if dtype == np.bool_ else dtype)
                _checked_unique(ctx, x)


def test_unique_of_integers_beyond_a_table(ctx):
    n = 5000
    for dtype in (np.int32, np.int64):
        info = np.iinfo(dtype)
        _checked_unique(ctx, np.resize(np.array([info.min, info.max, 0, -1, 1], dtype), n))
    _checked_unique(ctx, np.resize(np.array([0, 2**64 - 1, 2**63], np.uint64), n))
    just = np.arange(n, dtype=np.int32)
    just[-1] = n  # one more number than elements
    _checked_unique(ctx, just)
    _checked_unique(ctx, np.arange(8000, dtype=np.int64).reshape(2, 50, 80) % 4099 - 7)


@pytest.mark.parametrize("dtype", TYPES + [np.bool_, np.complex64])
@pytest.mark.parametrize("at_once", [True, False])
def test_elements_by_masks_of_any_type(ctx, dtype, at_once, monkeypatch):
    """All in one call, and counted first, as where there would be little memory."""
    if not at_once:
        monkeypatch.setattr(tuff._searching, "_AT_ONCE", 0)
    rng = np.random.default_rng(4)
    for size in (1, 100, 5000):
        for share in (0.0, 0.1, 0.9, 1.0):
            mask = rng.random(size) < share
            x = rng.integers(0, 2, size).astype(dtype) if dtype in (np.bool_, np.complex64) else _few(dtype, size)
            array, on_device = ctx.array(x, dtype=x.dtype), ctx.array(mask)
            for got in (array[on_device], tuff.compress(on_device, array), tuff.extract(on_device, array)):
                assert got.dtype == x.dtype
                np.testing.assert_array_equal(got.numpy(), x[mask])
            np.testing.assert_array_equal(tuff.flatnonzero(array).numpy(), np.flatnonzero(x))
            np.testing.assert_array_equal(array[1:][on_device[1:]].numpy(), x[1:][mask[1:]])  # at any offset


def test_few_selected_elements_do_not_keep_the_memory_of_all(ctx):
    n = 1 << 20
    mask = np.zeros(n, np.bool_)
    mask[::1000] = True
    x, on_device = ctx.zeros(n), ctx.array(mask)
    kept = [x[on_device]]
    assert kept[0].size == 1049
    before = ctx.stats()["bytes_in_use"]
    kept += [x[on_device] for _ in range(8)]
    assert ctx.stats()["bytes_in_use"] - before < 8 * n


def test_selected_elements_have_gradients(ctx):
    grad = pytest.importorskip("tuff.grad")
    x, mask = ctx.array([1.0, 2.0, 3.0, 4.0]), ctx.array(np.array([True, False, True, False]))
    for pick in (lambda x: x[mask], lambda x: tuff.extract(mask, x), lambda x: tuff.compress(mask, x)):
        _, slope = grad.value_and_grad(lambda x: (pick(x) ** 2).sum())(x)
        assert slope.numpy().tolist() == [2, 0, 6, 0]
