"""Random numbers: the same on every device, continued from call to call, with clear errors."""

import numpy as np
import pytest
import tuff


def test_the_same_seed_gives_the_same_numbers_on_both_backends():
    draws = []
    for backend in ("host", "vulkan") if tuff.device_count() else ("host",):
        with tuff.Context(backend=backend) as ctx:
            rng = tuff.Generator(ctx, 7)
            draws.append([
                rng.random(1001).numpy(),
                rng.normal(3, 0.5, (7, 11), np.float16).numpy(),
                rng.exponential(2, 99).numpy(),
                rng.integers(-5, 6, 1000).numpy(),
                rng.bernoulli(0.25, 333).numpy(),
                rng.permutation(1000).numpy(),
                rng.permuted(ctx.array(np.arange(60).reshape(3, 20)), 1).numpy(),
                rng.choice(17, (5, 41)).numpy(),
                rng.choice(1000, 700, p=np.arange(1000) / 499500).numpy(),
                rng.choice(1000, 700, replace=False, p=np.arange(1000) / 499500).numpy(),
                rng.multinomial(1000, [0.2, 0.3, 0.1, 0.4], 9).numpy(),
                rng.dropout(ctx.array(np.linspace(-1, 1, 1001)), 0.3).numpy(),
            ])  # fmt: skip
    for other in draws[1:]:
        for a, b in zip(draws[0], other):
            assert a.tobytes() == b.tobytes()


def test_calls_continue_the_sequence(ctx):
    rng = tuff.Generator(ctx, 1)
    first, second = rng.random(8).numpy(), rng.random(8).numpy()
    assert rng.offset == 16 and not (first == second).any()
    assert (tuff.Generator(ctx, 1).random(16).numpy() == np.concatenate([first, second])).all()
    assert (tuff.Generator(ctx, 1, offset=8).random(8).numpy() == second).all()
    assert not (tuff.Generator(ctx, 1, sequence=1).random(8).numpy() == first).any()
    assert not (tuff.Generator(ctx).random(8).numpy() == tuff.Generator(ctx).random(8).numpy()).any()
    assert eval(repr(tuff.Generator(ctx, 5)).replace("(", "(ctx, ", 1)).seed == 5


def test_distributions(ctx):
    rng = tuff.Generator(ctx, 3)
    n = 100_000
    x = rng.uniform(-2, 6, n).numpy()
    assert x.min() >= -2 and x.max() <= 6 and abs(x.mean() - 2) < 5 * 8 / np.sqrt(12 * n)
    x = rng.normal(10, 3, n).numpy()
    assert abs(x.mean() - 10) < 15 / np.sqrt(n) and abs(x.std() - 3) < 15 / np.sqrt(2 * n)
    x = rng.standard_normal(n).numpy()
    assert abs(x.mean()) < 5 / np.sqrt(n)
    x = rng.exponential(4, n).numpy()
    assert x.min() > 0 and abs(x.mean() - 4) < 20 / np.sqrt(n)
    x = rng.integers(3, 9, n).numpy()
    assert x.dtype == np.int32 and set(x.tolist()) == {3, 4, 5, 6, 7, 8}
    assert set(rng.integers(2, size=n, dtype=np.int8).numpy().tolist()) == {0, 1}
    assert set(rng.integers(0, 1, 1000, endpoint=True).numpy().tolist()) == {0, 1}
    x = rng.bernoulli(0.1, n).numpy()
    assert x.dtype == np.uint8 and abs(x.mean() - 0.1) < 5 * 0.3 / np.sqrt(n)
    assert (rng.uniform(0, 0, 5).numpy() == 0).all()


def test_shapes_and_out(ctx):
    rng = tuff.Generator(ctx, 3)
    assert rng.random().shape == () and rng.random((2, 0, 3)).shape == (2, 0, 3) and rng.random(4).shape == (4,)
    out = ctx.zeros((3, 5))
    assert rng.normal(out=out) is out and np.abs(out.numpy()).min() > 0


def test_what_cannot_be_drawn_says_so(ctx):
    rng = tuff.Generator(ctx, 3)
    with pytest.raises(tuff.TuffError, match="dtype is f32, and integers takes"):
        rng.integers(5, size=3, dtype=np.float32)
    with pytest.raises(tuff.TuffError, match="most is 128"):
        rng.integers(129, size=3, dtype=np.int8)
    with pytest.raises(ValueError, match="no integer between"):
        rng.integers(5, 5, 3)
    with pytest.raises(ValueError, match="scale is 0"):
        rng.normal(0, 0, 3)
    with pytest.raises(tuff.TuffError, match="probability"):
        rng.bernoulli(1.5, 3)
    with pytest.raises(ValueError, match="size"):
        rng.random(-1)
    with pytest.raises(TypeError, match="seed"):
        tuff.Generator(ctx, 1.5)
    with pytest.raises(ValueError, match="seed"):
        tuff.Generator(ctx, 2**64)
    with pytest.raises(TypeError, match="context"):
        tuff.Generator(5)
    with pytest.raises(ValueError, match="out has shape"):
        rng.random(4, out=ctx.zeros(5))
    assert rng.offset == 0  # nothing was drawn


def _squares(counts, expected):
    """Pearson's statistic: of chi-squared distribution with (number of cells - 1) degrees of freedom."""
    return ((np.asarray(counts) - expected) ** 2 / expected).sum()


def _most(freedom):
    """A bound that a statistic of so many degrees of freedom exceeds with a probability of at most exp(-14) < 1e-6
    (Laurent and Massart 2000, lemma 1)."""
    return freedom + 2 * np.sqrt(14 * freedom) + 28


def test_permutations(ctx):
    rng = tuff.Generator(ctx, 11)
    for n in (0, 1, 2, 5, 1000):
        assert np.sort(rng.permutation(n).numpy()).tolist() == list(range(n))
    assert rng.permutation(3).dtype == np.int64
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    moved = rng.permutation(ctx.array(x), -1).numpy()
    assert sorted(map(tuple, moved.reshape(6, 4).T.tolist())) == sorted(map(tuple, x.reshape(6, 4).T.tolist()))
    again = tuff.Generator(ctx, 11).permutation(1000).numpy()
    assert (again == tuff.Generator(ctx, 11).permutation(1000).numpy()).all()
    assert (again != tuff.Generator(ctx, 12).permutation(1000).numpy()).any()


def test_every_order_is_equally_likely(ctx):
    rows = ctx.array(np.tile(np.arange(4), (48_000, 1)))
    orders = tuff.Generator(ctx, 2).permuted(rows, 1).numpy()
    assert (np.sort(orders, 1) == np.arange(4)).all()
    _, counts = np.unique(orders @ [64, 16, 4, 1], return_counts=True)
    assert len(counts) == 24 and _squares(counts, 2000) < _most(23)
    # The places of one permutation: of each element modulo 5 in each fifth.
    big = tuff.Generator(ctx, 3).permutation(100_000).numpy().reshape(5, -1)
    counts = [[(part % 5 == one).sum() for one in range(5)] for part in big]
    assert _squares(counts, 4000) < _most(16)


def test_without_64_bit_sorts_the_orders_are_the_same(ctx, monkeypatch):
    x = ctx.array(np.arange(60).reshape(4, 15))
    expected = [tuff.Generator(ctx, 5).permutation(999).numpy(), tuff.Generator(ctx, 5).permuted(x, 0).numpy()]
    has = tuff.Context.supports
    monkeypatch.setattr(tuff.Context, "supports", lambda self, name: name != "sort.u64" and has(self, name))
    assert (tuff.Generator(ctx, 5).permutation(999).numpy() == expected[0]).all()
    assert (tuff.Generator(ctx, 5).permuted(x, 0).numpy() == expected[1]).all()


def test_shuffle_in_place(ctx):
    rng = tuff.Generator(ctx, 1)
    x = ctx.array(np.arange(20))
    assert rng.shuffle(x) is None
    assert np.sort(x.numpy()).tolist() == list(range(20)) and x.numpy().tolist() != list(range(20))
    before = x.numpy()
    rng.shuffle(x[::2])
    assert (x.numpy()[1::2] == before[1::2]).all() and sorted(x.numpy()[::2]) == sorted(before[::2])
    y = ctx.array(np.arange(12).reshape(3, 4))
    rng.shuffle(y, 1)
    assert (y.numpy() - y.numpy()[0] == [[0], [4], [8]]).all()
    rng.shuffle(y.T)  # of the columns, again
    assert (y.numpy() - y.numpy()[0] == [[0], [4], [8]]).all()
    whole = rng.permuted(y).numpy()
    assert whole.shape == (3, 4) and np.sort(whole.ravel()).tolist() == list(range(12))


def test_choices_with_replacement(ctx):
    rng = tuff.Generator(ctx, 4)
    n = 60_000
    drawn = rng.choice(6, n).numpy()
    assert drawn.dtype == np.int64 and _squares(np.bincount(drawn, minlength=6), n / 6) < _most(5)
    p = np.array([0.5, 0.0, 0.125, 0.3, 0.075, 0.0])
    counts = np.bincount(rng.choice(6, n, p=p).numpy(), minlength=6)
    assert counts[1] == counts[5] == 0 and len(counts) == 6
    assert _squares(counts[p > 0], n * p[p > 0]) < _most(3)
    x = ctx.array(np.arange(12, dtype=np.float16).reshape(3, 4))
    columns = rng.choice(x, (2, 5), axis=1).numpy()
    assert columns.shape == (3, 2, 5) and (columns - columns[0] == np.array([0, 4, 8]).reshape(3, 1, 1)).all()
    assert rng.choice(x).shape == (4,) and rng.choice(9).shape == () and rng.choice(0, 0).shape == (0,)
    assert (rng.choice(1, 5, p=[1.0]).numpy() == 0).all()
    # p on the device, in float32, whose sum is 1 only nearly.
    third = ctx.array(np.full(3, 1 / 3, np.float32))
    assert set(rng.choice(3, 200, p=third).numpy().tolist()) == {0, 1, 2}


def test_each_word_has_its_choice(ctx):
    """The thresholds of p, against exact arithmetic of the words."""
    p = np.array([0.1, 0.2, 0.0, 0.3, 0.4])
    words = tuff.Generator(ctx, 9)._draw(tuff.raw.RANDOM_BITS, 5000, np.uint32, None).numpy().astype(np.float64)
    expected = (words[:, None] >= np.rint(np.cumsum(p)[:-1] * 2**32)).sum(1)
    assert (tuff.Generator(ctx, 9).choice(5, 5000, p=p).numpy() == expected).all()


def test_choices_without_replacement(ctx):
    rng = tuff.Generator(ctx, 6)
    for p in (None, np.arange(1, 51) / 1275):
        drawn = rng.choice(50, 30, replace=False, p=p).numpy()
        assert len(set(drawn.tolist())) == 30 and set(drawn.tolist()) <= set(range(50))
    p = np.array([0.25, 0, 0.5, 0.25])
    assert set(rng.choice(4, 3, False, p).numpy().tolist()) == {0, 2, 3}
    tiny = np.array([1e-300, 1.0, 0.0])
    assert rng.choice(3, 2, False, tiny).numpy().tolist() == [1, 0]


def test_pairs_without_replacement_have_their_probabilities():
    with tuff.Context(backend="host") as ctx:
        rng, p, calls = tuff.Generator(ctx, 8), np.array([0.2, 0.3, 0.5]), 3000
        counts = np.zeros((3, 3))
        for _ in range(calls):
            first, second = rng.choice(3, 2, replace=False, p=p).numpy()
            counts[first, second] += 1
        expected = np.outer(p / (1 - p), p) * calls
        pairs = ~np.eye(3, dtype=bool)
        assert counts.trace() == 0 and _squares(counts[pairs], expected[pairs]) < _most(5)


def test_multinomial(ctx, monkeypatch):
    p = np.array([0.1, 0.0, 0.6, 0.3])
    for draws in (None, 64):  # in several parts, too: of rows of 250
        if draws:
            monkeypatch.setattr(tuff._random, "_DRAWS", draws)
        counts = tuff.Generator(ctx, 5).multinomial(250, p, (20, 2)).numpy()
        assert counts.shape == (20, 2, 4) and counts.dtype == np.int64
        assert (counts.sum(-1) == 250).all() and (counts[..., 1] == 0).all()
        assert _squares(counts.sum((0, 1))[p > 0], 10_000 * p[p > 0]) < _most(2)
        # Rows are independent: their variance is that of a binomial distribution, n q (1 - q), with an error of sqrt(2 / 39).
        assert abs(counts[..., 2].var(ddof=1) / (250 * 0.6 * 0.4) - 1) < 5 * np.sqrt(2 / 39)
    rng = tuff.Generator(ctx, 5)
    assert rng.multinomial(9, [0.25, 0.25, 17]).numpy().sum() == 9  # the last one has the rest
    assert rng.multinomial(0, [0.5, 0.5], 3).numpy().tolist() == [[0, 0]] * 3
    assert rng.multinomial(5, [1.0], 0).shape == (0, 1)


def test_what_cannot_be_chosen_says_so(ctx):
    rng = tuff.Generator(ctx, 3)
    x = ctx.zeros((2, 3))
    for error, text, call in [
        (ValueError, "nothing to choose", lambda: rng.choice(0, 1)),
        (ValueError, "size is 4, and a has 3", lambda: rng.choice(x, 4, replace=False, axis=1)),
        (ValueError, "p has 2 numbers, and a has 3", lambda: rng.choice(3, p=[0.5, 0.5])),
        (ValueError, "sum 0.9", lambda: rng.choice(2, p=[0.5, 0.4])),
        (ValueError, "finite", lambda: rng.choice(2, p=[1.5, -0.5])),
        (ValueError, "finite", lambda: rng.choice(2, p=[np.nan, 1])),
        (ValueError, "1 numbers above 0", lambda: rng.choice(2, 2, False, [1.0, 0.0])),
        (TypeError, "real numbers", lambda: rng.choice(2, p=[1j, 1])),
        (ValueError, "one axis", lambda: rng.choice(2, p=[[0.5, 0.5]])),
        (ValueError, "axis 2 is out of 2", lambda: rng.choice(x, axis=2)),
        (TypeError, "a is a NumPy array", lambda: rng.choice(np.zeros(3))),
        (ValueError, "x is -1", lambda: rng.permutation(-1)),
        (TypeError, "x is list", lambda: rng.permutation([1, 2])),
        (ValueError, "axis 0 is out of 0", lambda: rng.shuffle(ctx.zeros(()))),
        (ValueError, "n is -1", lambda: rng.multinomial(-1, [0.5, 0.5])),
        (ValueError, "at most 1", lambda: rng.multinomial(3, [0.7, 0.7, 0.1])),
        (ValueError, "from 0 to 1", lambda: rng.multinomial(3, [-0.1, 1.1])),
        (ValueError, "empty", lambda: rng.multinomial(3, [])),
    ]:
        with pytest.raises(error, match=text):
            call()
    assert rng.offset == 0  # nothing was drawn


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_dropout(ctx, dtype):
    x = np.random.default_rng(2).uniform(-1, 1, (40, 1001)).astype(dtype)
    for p in (0.0, 0.25, 0.5, 0.9, 1.0):
        array = ctx.array(x, dtype)
        y, kept = tuff.Generator(ctx, 3).dropout(array, p, mask=True)
        assert y.dtype == dtype and kept.dtype == np.bool_ and (array.numpy() == x).all()
        mask = kept.numpy()
        factor = np.float32(1 / (1 - p) if p < 1 else 0)
        assert (y.numpy() == np.where(mask, x.astype(np.float32) * factor, 0).astype(dtype)).all()
        # Five standard deviations.
        assert abs((~mask).sum() - p * x.size) <= 5 * np.sqrt(x.size * p * (1 - p))
        assert (mask.ravel() == 1 - tuff.Generator(ctx, 3).bernoulli(p, x.size).numpy()).all()
        # The gradient of the same elements, in place, of a view, too.
        rng = tuff.Generator(ctx, 3)
        g = ctx.full(x.shape, 1, dtype)
        assert rng.dropout(g, p, out=g) is g and (g.numpy() == np.where(mask, factor, 0).astype(dtype)).all()
        assert rng.offset == x.size and rng.dropout(array[:, ::2], p).shape == (40, 501)


def test_dropout_that_is_wrong_says_so(ctx):
    rng = tuff.Generator(ctx, 3)
    x = ctx.zeros((2, 3))
    with pytest.raises(tuff.TuffError, match="probability is 2"):
        rng.dropout(x, 2)
    with pytest.raises(tuff.TuffError, match="dropout takes f32, f16 or bf16"):
        rng.dropout(x.astype(np.int32))
    with pytest.raises(ValueError, match="out has shape"):
        rng.dropout(x, out=ctx.zeros(6))
    with pytest.raises(TypeError, match="p is 'a'"):
        rng.dropout(x, "a")
    with tuff.Context(backend="host") as other:
        with pytest.raises(ValueError, match="another context"):
            rng.dropout(other.zeros(3))
    assert rng.offset == 0
    assert rng.dropout(ctx.zeros((0, 3))).shape == (0, 3)
