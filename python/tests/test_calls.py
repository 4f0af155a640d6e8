"""Calls that are like earlier ones take a shorter way (tuff/_core.py). What they do is the same."""

import gc
import importlib.machinery
import os
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import tuff
from tuff import _core, raw
from tuff._storage import DTYPES

TYPES = [np.float32, np.float16, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_]

#: A number on each side of every limit that a type has, and of those between which float16 rounds.
NUMBERS = [
    *(0, 1, -1, 100, 127, 128, -128, -129, 200, 255, 256, 32767, 32768, -32768, -32769, 65535, 65536, 2**31 - 1, 2**31),
    *(-(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**64, -(2**64)),
    *(0.0, -0.0, 0.1, 2049.0, 2051.0, 65519.99, 65520.0, -1e-8, 2.0**-25, 1.5 * 2.0**-24, 1e39, 1e300),
    *(float("inf"), float("nan"), True, False, np.float32(0.1), np.int8(3), np.uint64(2**63)),
]

FUNCTIONS = [
    *("add", "multiply", "maximum", "divide", "power", "less", "equal", "logical_and", "logical_xor"),
    *("bitwise_and", "bitwise_left_shift", "floor_divide", "remainder", "gcd", "atan2", "copysign"),
]


def test_the_compiled_part_is_used_where_it_is():
    folders = [Path(tuff.__file__).parent, Path(raw.lib._name).parent]
    there = any((folder / "_fast.abi3.so").is_file() for folder in folders)
    wanted = os.environ.get("TUFF_PYTHON") != "ctypes" and ".abi3.so" in importlib.machinery.EXTENSION_SUFFIXES
    assert _core.COMPILED == (there and wanted)


def outcome(call):
    """The bits and the type of a result, or the exception."""
    try:
        result = call()
    except Exception as error:  # noqa: BLE001: whatever it is, it must be the same again
        return type(error), str(error)
    return result.dtype, result.shape, result.numpy().tobytes()


def host():
    return tuff.Context(backend="host")


def test_a_second_call_is_as_the_first():
    """Operands of every type, numbers of every kind, in an order in which what was learnt could be used too widely."""
    values = [0, 1, 2, 3, 100, 101]
    step = 1 if _core.COMPILED else 7  # without the compiled part calls take several times as long
    with host() as first, host() as second:
        for name in FUNCTIONS:
            function = getattr(tuff, name)
            for dtype in TYPES[::step]:
                x, y = first.array(values, dtype), second.array(values, dtype)
                for number in NUMBERS[:: (step + 1) // 2]:
                    for call in (lambda a: function(a, number), lambda a: function(number, a)):
                        with np.errstate(all="ignore"):
                            wanted = outcome(lambda: call(x))
                            again = [outcome(lambda: call(y)) for _ in range(2)]
                        assert again == [wanted, wanted], (name, dtype, number)


def test_pairs_of_types():
    with host() as ctx:
        for name in FUNCTIONS:
            function = getattr(tuff, name)
            for one in TYPES:
                for other in TYPES:
                    a, b = ctx.array([1, 2, 3], one), ctx.array([3, 2, 0], other)
                    assert outcome(lambda: function(a, b)) == outcome(lambda: function(a, b)), (name, one, other)


def test_numbers_are_rounded_to_float16_once():
    values = np.array([1, -2, 0.5, 3], np.float16)
    with host() as ctx:
        x = ctx.array(values)
        for number in (0.1, 2049.0, 2051.0, 65519.99, 2.0**-25, 1.5 * 2.0**-24, 1 + 2.0**-11 + 2.0**-40, -1e-8, 6e-8, 5.9e-5):
            for _ in range(2):
                assert (x + number).numpy().tobytes() == (values + np.float16(number)).tobytes(), number


def test_broadcasting_and_out(ctx):
    a, b = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(4, dtype=np.float32) - 2
    x, y = ctx.array(a), ctx.array(b)
    column = ctx.array(a[:, :1].copy())
    for _ in range(3):
        assert ((x < y).numpy() == (a < b)).all()
        assert ((y < x).numpy() == (b < a)).all()
        assert ((column < y).numpy() == (a[:, :1] < b)).all()
        assert ((x + y).numpy() == a + b).all() and ((column + y).numpy() == a[:, :1] + b).all()
        out = ctx.empty((3, 4), np.bool_)
        assert tuff.less(x, y, out=out) is out and (out.numpy() == (a < b)).all()
        target = ctx.empty((3, 4))
        assert tuff.add(x, y, out=target) is target and (target.numpy() == a + b).all()
        assert tuff.exp(x, out=target) is target
        z = ctx.array(a)
        z += 1.5
        z *= y
        z //= 2.0
        assert (z.numpy() == (a + 1.5) * b // 2).all()
    for empty in (ctx.zeros((0, 4)), ctx.zeros(())):
        for _ in range(2):
            assert (empty < y).shape == np.broadcast_shapes(empty.shape, (4,))
            assert (empty < 1.0).shape == (empty + 1.0).shape == empty.relu().shape == empty.shape
    assert tuff.less(a=x, b=y).dtype == np.bool_


def test_what_is_wrong_is_said_after_a_call_that_was_right(ctx, backend):
    x, y = ctx.ones((2, 3)), ctx.ones((2, 3))
    for _ in range(2):
        x < y, x + y, x + 1.0, x.relu(), tuff.expr("a + b", a=x, b=y), x == y
    for use, error in (
        (lambda: x < ctx.ones((3, 2)), ValueError),
        (lambda: x + ctx.ones((3, 2)), ValueError),
        (lambda: tuff.less(x, y, out=ctx.empty((3, 2), np.bool_)), ValueError),
        (lambda: tuff.add(x, y, out=ctx.empty((3, 2))), ValueError),
        (lambda: tuff.add(x, y, out=ctx.empty((2, 3), np.int32)), TypeError),
        (lambda: tuff.less(x, y, out=np.empty((2, 3), bool)), TypeError),
        (lambda: tuff.relu(x, out=x.T), ValueError),
        (lambda: x < np.ones((2, 3)), TypeError),
        (lambda: tuff.less(x, "1"), TypeError),
        (lambda: tuff.less(1.0, 2.0), TypeError),
        (lambda: tuff.unary(10**6, x), tuff.TuffError),
        (lambda: tuff.unary("relu", x), TypeError),
        (lambda: tuff.binary(10**6, x, y), (ValueError, tuff.TuffError)),
        (lambda: tuff.relu(x[0], out=ctx.empty(3, np.float16)), TypeError),
    ):
        with pytest.raises(error):
            use()
    with tuff.Context(backend=backend) as other:
        z = other.ones((2, 3))
        for use in (lambda: x < z, lambda: x + z, lambda: tuff.relu(x, out=z), lambda: tuff.expr("a + b", a=x, b=z)):
            with pytest.raises(ValueError, match="context"):
                use()
    y.buffer.free()
    y.buffer.free()  # again does nothing
    for use in (lambda: x < y, lambda: x + y, lambda: y.relu(), lambda: y + 1.0, lambda: tuff.relu(x, out=y)):
        with pytest.raises(tuff.TuffError) as caught:
            use()
        assert caught.value.status == raw.ERROR_INVALID_HANDLE
    ctx.close()
    for use in (lambda: x < x, lambda: x + x, lambda: x.relu(), lambda: x + 1.0, lambda: ctx.zeros(3)):
        with pytest.raises(tuff.TuffError):
            use()


def test_memory_that_is_refused_is_an_error(backend):
    with tuff.Context(backend=backend) as ctx:
        x = ctx.zeros(200_000)
        (x + x).relu() < 1.0
        ctx.synchronize()
        ctx.set_limits(memory_bytes=1_000_000)
        for use in (lambda: x + x, lambda: x.relu(), lambda: x + 1.0, lambda: ctx.empty(200_000)):
            with pytest.raises(tuff.TuffError) as caught:
                use()
            assert caught.value.status == raw.ERROR_LIMIT_EXCEEDED
        with pytest.raises(tuff.TuffError):
            ctx.zeros((2**40, 2**20))


def test_reductions_products_and_conversions(ctx):
    a, b = np.arange(12, dtype=np.float32).reshape(3, 4) - 5, np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    x, y = ctx.array(a), ctx.array(b)
    cube = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    z = ctx.array(cube)
    for axis in (None, 0, 1, -1, 2, -3):
        for keepdims in (False, True):
            assert outcome(lambda: z.sum(axis, keepdims)) == (np.dtype(np.int64), *shape_and_bytes(cube.sum(axis, keepdims=keepdims)))
            assert outcome(lambda: z.max(axis, keepdims))[1:] == shape_and_bytes(cube.max(axis, keepdims=keepdims))
            assert (z.argmax(axis, keepdims).numpy() == cube.argmax(axis, keepdims=keepdims)).all()
    assert np.allclose((x @ y).numpy(), a @ b) and np.allclose((y.T @ x.T).numpy(), b.T @ a.T)
    assert np.allclose((x @ x.T).numpy(), a @ a.T) and np.allclose((x.T @ x).numpy(), a.T @ a)
    assert np.allclose((x[0] @ y).numpy(), a[0] @ b) and np.allclose((x @ x[1]).numpy(), a @ a[1])
    assert (x[0] @ x[1]).shape == () and np.allclose((x[0] @ x[1]).numpy(), a[0] @ a[1])
    assert (ctx.zeros((3, 0)) @ ctx.zeros((0, 2))).numpy().tolist() == [[0, 0]] * 3
    half = x.astype(np.float16) @ y.astype("float16")
    assert half.dtype == np.float16 and (x.astype(np.float16) @ y).dtype == np.float32
    assert (x.astype(np.int8).numpy() == a.astype(np.int8)).all() and (x.astype(bool).numpy() == a.astype(bool)).all()
    assert ctx.zeros((0, 3)).sum(0).numpy().tolist() == [0, 0, 0] and ctx.ones(()).sum().item() == 1
    for use, error in (
        (lambda: z.sum(3), ValueError),
        (lambda: z.sum(-4), ValueError),
        (lambda: z.sum(1.0), TypeError),
        (lambda: x @ x, ValueError),
        (lambda: x @ y @ 1.0, TypeError),
        (lambda: z @ z, (ValueError, tuff.TuffError)),
        (lambda: tuff.matmul(x, y, alpha="1"), TypeError),
        (lambda: tuff.matmul(x, y, bias=a), TypeError),
        (lambda: ctx.ones(()) @ y, ValueError),
        (lambda: x.astype("clongdouble"), TypeError),
    ):
        for _ in range(2):
            with pytest.raises(error):
                use()


def shape_and_bytes(array):
    return array.shape, array.tobytes()


def test_results_are_freed(ctx):
    x = ctx.array(np.linspace(-1, 1, 1000, dtype=np.float32))

    def work():
        y = (x + x).relu() * 0.5
        return (y < x) | (x == 0.25)

    work()
    ctx.synchronize()
    before = ctx.memory()
    for _ in range(200):
        work()
    ctx.synchronize()
    after = ctx.memory()
    assert (after["live_allocations"], after["bytes_in_use"]) == (before["live_allocations"], before["bytes_in_use"])


def test_a_circle_is_collected(ctx):
    class Owner:
        pass

    owner = Owner()
    owner.array, owner.context, owner.self = ctx.ones(10) + ctx.ones(10), ctx, owner
    buffer = weakref.ref(owner.array.buffer)
    ctx.synchronize()
    before = ctx.memory()["live_allocations"]
    del owner
    gc.collect()
    ctx.synchronize()
    assert buffer() is None and ctx.memory()["live_allocations"] == before - 1


def test_a_context_ends_with_its_formulas(backend):
    ctx = tuff.Context(backend=backend)
    x = ctx.ones(3)
    for _ in range(2):
        x < 1.0
    ended = weakref.ref(ctx)
    del ctx, x
    gc.collect()
    assert ended() is None


def test_a_stream_is_used(vulkan):
    ctx = vulkan
    x, y = ctx.array([1.0, 2, 3]), ctx.array([3.0, 2, 1])
    for _ in range(2):
        x < y, x + y, y.relu()  # learnt before
    with ctx.capture() as graph:
        smaller, total, positive = x < y, x + y, (x - 2.0).relu()
    x.assign(np.array([5.0, 1, 1], np.float32))
    graph.launch()
    assert smaller.numpy().tolist() == [False, True, False]
    assert total.numpy().tolist() == [8, 3, 2] and positive.numpy().tolist() == [3, 0, 0]
    with ctx.stream("other") as stream:
        z = (x + y) < 4.0
        event = stream.record()
    ctx.current_stream.wait(event)
    assert z.numpy().tolist() == [False, True, True]


def test_threads_compute_at_once(ctx):
    values = np.arange(64, dtype=np.float32)
    wrong = []

    def work(seed):
        a = values + seed
        x = ctx.array(a)
        for step in range(40):
            got = ((x * 2.0 + x).relu() < (seed + step) * 1.0).numpy()
            if (got != (a * 3 < np.float32(seed + step))).any():
                wrong.append((seed, step))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_shapes_and_dtypes_that_are_set(ctx):
    """What an array says of itself after its attributes were set, and what calls make of it."""
    x = ctx.ones((2, 3))
    x + x
    x.shape = (3, 2)
    assert (x + ctx.ones((3, 2))).shape == (3, 2)
    x.dtype = np.dtype(np.int32)
    assert (x + 1).dtype == np.int32
    assert all(DTYPES[np.dtype(kind)] for kind in TYPES)
    with pytest.raises(AttributeError):
        x.color = 1
