"""Registered operations, usage and sensors from Python."""

import threading

import numpy as np
import pytest

import tuff

SAXPY = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Parameters { uint n; float a; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < n) y[i] = SCALE * a * x[i] + y[i];
}
"""
ARGUMENTS = ["n: u32 0..1000000", "a: f32", "x: read f32[n]", "y: read_write f32[n]"]


@pytest.fixture
def host():
    with tuff.Context(backend="host") as context:
        yield context


def saxpy_host(n, a, x, y):
    y[:n] += 2 * np.float32(a) * x[:n]


def add(ctx, name="test.saxpy", **options):
    options = {"kernel": SAXPY, "defines": {"SCALE": 2}, "invocations": "n", "flops": "3 * n", "host": saxpy_host, **options}
    return ctx.operation(name, ARGUMENTS, **options)


def test_computes(ctx):
    saxpy = add(ctx)
    x, y = ctx.array(np.arange(100, dtype=np.float32)), ctx.ones(100)
    saxpy(100, 0.5, x, y)
    np.testing.assert_array_equal(y.numpy(), np.arange(100) + 1)
    saxpy(np.int64(10), np.float32(1), x.buffer, y)
    np.testing.assert_array_equal(y.numpy(), np.arange(100) + 1 + 2 * np.arange(100) * (np.arange(100) < 10))
    assert repr(saxpy) == "<tuff.Operation test.saxpy(n, a, x, y)>"
    with ctx.stream() as stream:
        saxpy(100, 0, x, y, stream=stream)
    saxpy.free()


def test_is_listed(ctx):
    line = "test.saxpy(n: u32 0..1000000, a: f32, x: read f32[n], y: read_write f32[n])"
    saxpy = add(ctx)
    assert ctx.operations() == [line]
    assert ctx.supports("test.saxpy")
    with pytest.raises(tuff.TuffError, match="has already"):
        add(ctx)
    saxpy.free()
    assert ctx.operations() == [] and not ctx.supports("test.saxpy")
    # Arguments are declared as they are listed.
    again = ctx.operation("test.saxpy", line[len("test.saxpy(") : -1].split(", "), kernel=SAXPY, defines={"SCALE": 2}, invocations="n", host=saxpy_host)
    assert ctx.operations() == [line]
    del again
    assert ctx.operations() == []


@pytest.mark.parametrize(
    "wrong, error, says",
    [
        ((101, 1.0, "x", "y"), tuff.TuffError, "x holds 400 bytes"),
        ((1000001, 1.0, "x", "y"), tuff.TuffError, "n is 1000001"),
        ((-1, 1.0, "x", "y"), tuff.TuffError, "n is -1"),
        ((2**64, 1.0, "x", "y"), ValueError, "n is"),
        ((1.5, 1.0, "x", "y"), TypeError, "n is 1.5"),
        ((1, "a", "x", "y"), TypeError, "a is"),
        ((1, 1.0, None, "y"), tuff.TuffError, "x is TUFF_NULL_HANDLE"),
        ((1, 1.0, 3, "y"), TypeError, "x is 3"),
        ((1, 1.0, "y", "y"), tuff.TuffError, "y is written and overlaps x"),
        ((1, 1.0, "integers", "y"), TypeError, "x is an array of int32, needs f32"),
        ((1, 1.0, "x"), TypeError, "takes 4 arguments"),
    ],
)
def test_misuse(ctx, wrong, error, says):
    saxpy = add(ctx)
    named = {"x": ctx.zeros(100), "y": ctx.zeros(100), "integers": ctx.zeros(100, dtype=np.int32)}
    with pytest.raises(error, match=says):
        saxpy(*(named.get(one, one) if isinstance(one, str) else one for one in wrong))
    saxpy.free()


@pytest.mark.parametrize("argument", ["n", "n: u33", "n u32", "x: reads f32[n]", "n: u32 1-5", ""])
def test_faulty_arguments(ctx, argument):
    with pytest.raises(ValueError):
        ctx.operation("test.faulty", [argument], host=lambda *_: None)
    with pytest.raises(TypeError):
        ctx.operation("test.faulty", [None], host=lambda *_: None)


def test_what_is_wrong_with_arguments(ctx):
    for declared, error, says in (
        (["n: u32 a..b"], ValueError, r"the range of n is a\.\.b, needs two numbers"),
        (["n: u32 1..b"], ValueError, r"the range of n is 1\.\.b, needs two numbers"),
        ("n: u32", TypeError, "arguments is 'n: u32', needs a list of texts"),
        (3, TypeError, "arguments is 3, needs texts"),
    ):
        with pytest.raises(error, match=says):
            ctx.operation("test.faulty", declared, host=lambda *_: None)
    assert ctx.operations() == []


def test_faulty_stream(ctx):
    saxpy = add(ctx)
    x, y = ctx.zeros(1), ctx.ones(1)
    for stream in (3, ctx, "copies"):
        with pytest.raises(TypeError, match=f"{type(stream).__name__} is not a tuff.Stream"):
            saxpy(1, 1.0, x, y, stream=stream)
    assert y.numpy().tolist() == [1]


def test_operations_without_a_host_function_keep_none(vulkan):
    kept = len(vulkan._callbacks)
    operation = add(vulkan, host=None)
    assert len(vulkan._callbacks) == kept
    x, y = vulkan.ones(4), vulkan.ones(4)
    operation(4, 1.0, x, y)
    assert y.numpy().tolist() == [3, 3, 3, 3]
    add(vulkan, "test.with_host")
    assert len(vulkan._callbacks) == kept + 1


def test_faulty_options(ctx):
    with pytest.raises(TypeError, match="there is no kernel"):
        ctx.operation("test.faulty", ARGUMENTS, robust=True)
    with pytest.raises(TypeError, match="host is 3"):
        ctx.operation("test.faulty", ARGUMENTS, host=3)
    with pytest.raises(tuff.TuffError, match="at most three"):
        add(ctx, "test.faulty", invocations=["1"] * 4)


def test_a_host_function_may_raise(host):
    class Own(Exception):
        pass

    def fails(n, a, x, y):
        raise Own("why")

    saxpy = add(host, host=fails)
    with pytest.raises(Own, match="why"):
        saxpy(1, 1.0, host.zeros(1), host.zeros(1))
    with pytest.raises(tuff.TuffError, match="n is -1"):  # the exception is not raised again
        saxpy(-1, 1.0, host.zeros(1), host.zeros(1))


def test_host_functions_see_types(host):
    seen = []
    operation = host.operation(
        "test.types",
        ["i: i64", "u: u64", "d: f64", "b: read bool[3]", "c: read c64[2]", "h: write f16"],
        host=lambda *arguments: seen.extend([*arguments[:3], *(np.array(one) for one in arguments[3:])]),
    )
    operation(-5, 2**64 - 1, 0.1, host.array([True, False, True]), host.array(np.complex64([1, 2j])), host.zeros(2, dtype=np.float16))
    assert seen[:3] == [-5, 2**64 - 1, 0.1]
    np.testing.assert_array_equal(seen[3], [True, False, True])
    np.testing.assert_array_equal(seen[4], np.complex64([1, 2j]))
    assert seen[5].dtype == np.float16 and seen[5].shape == (2,)


def test_threads(ctx):
    saxpy = add(ctx)
    sums = [ctx.zeros(64) for _ in range(4)]
    x = ctx.ones(64)
    threads = [threading.Thread(target=lambda y=y: [saxpy(64, 0.5, x, y) for _ in range(20)]) for y in sums]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for y in sums:
        np.testing.assert_array_equal(y.numpy(), np.full(64, 20))


def test_usage(ctx):
    before = ctx.usage()
    ctx.ones(100).numpy()
    after = ctx.usage()
    assert after["calls"] > before["calls"] and after["bytes_downloaded"] == before["bytes_downloaded"] + 400
    assert after["bytes_in_use"] == ctx.memory()["bytes_in_use"]


def test_sensors():
    for index in range(tuff.device_count()):
        found = tuff.sensors(index)
        assert found["heap_bytes"] > 0
        assert all(value is None or value >= 0 for name, value in found.items() if name in ("power_watts", "busy"))
    with pytest.raises(tuff.TuffError, match="index"):
        tuff.sensors(tuff.device_count())


def test_compact(vulkan):
    with tuff.Context() as ctx:
        arrays = [ctx.array(np.full(10000, i, dtype=np.float32)) for i in range(1200)]
        arrays = arrays[::5]
        ctx.synchronize()
        part = ctx.compact(max_bytes=100000)
        assert 0 < part["bytes_moved"] <= 100000 and part["done"] == 0
        whole = ctx.compact()
        assert whole["done"] == 1 and whole["bytes_moved"] > 0
        assert whole["fragmentation_before"] == part["fragmentation_after"]
        for i, array in enumerate(arrays):
            assert (array.numpy() == 5 * i).all()
        assert ctx.compact(max_seconds=1)["bytes_moved"] == 0
        for wrong, error in [({"max_bytes": -1}, ValueError), ({"max_bytes": 1.5}, TypeError), ({"max_seconds": -1}, ValueError), ({"max_seconds": float("nan")}, ValueError)]:
            with pytest.raises(error):
                ctx.compact(**wrong)
