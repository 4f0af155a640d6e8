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
