"""Streams, events, graphs and pinned arrays."""

import asyncio
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import tuff
from tuff import raw


def refused(status, function, *arguments):
    with pytest.raises(tuff.TuffError) as caught:
        function(*arguments)
    assert caught.value.status == status
    return caught.value.message


# Streams and events.


def test_work_goes_from_stream_to_stream(ctx):
    first, second = ctx.stream("first"), ctx.stream("second")
    x = ctx.array(range(1000))
    for step in range(50):
        mine, other = (first, second) if step % 2 == 0 else (second, first)
        with mine:
            x += 1
        other.wait(mine.record(timing=False))
    with first:
        assert x.numpy().tolist() == list(range(50, 1050))


def test_a_block_says_where_operations_go(ctx):
    first, second = ctx.stream(), ctx.stream()
    assert ctx.current_stream == ctx.default_stream and ctx.stream_handle == ctx.handle
    with first:
        with second, second:
            assert ctx.current_stream is second and ctx.stream_handle == second.handle
        assert ctx.current_stream is first
        with ctx.default_stream:
            assert ctx.stream_handle == ctx.handle
        with pytest.raises(ZeroDivisionError), second:
            1 / 0
        assert ctx.current_stream is first
    assert ctx.current_stream == ctx.default_stream != first


def test_a_block_is_of_its_context(ctx, backend):
    with tuff.Context(backend=backend) as other:
        with ctx.stream(), other.stream() as theirs:
            assert ctx.ones(3).numpy().tolist() == [1, 1, 1]
            assert other.stream_handle == theirs.handle != ctx.stream_handle != ctx.handle
            assert (other.ones(3) + 1).numpy().tolist() == [2, 2, 2]


def test_blocks_of_threads_are_their_own(ctx):
    streams = [ctx.stream(f"thread {i}") for i in range(8)]
    everyone = threading.Barrier(len(streams))
    failures = []

    def work(mine):
        try:
            assert ctx.stream_handle == ctx.handle  # not the block that the test is in
            with streams[mine]:
                everyone.wait()
                assert ctx.current_stream is streams[mine]
                x = ctx.full(500, mine)
                for _ in range(10):
                    x = x + 1
                assert set(x.numpy()) == {mine + 10}
        except BaseException as error:
            failures.append(error)

    with ctx.stream():
        threads = [threading.Thread(target=work, args=(mine,)) for mine in range(len(streams))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_blocks_of_tasks_are_their_own(ctx):
    async def task(stream):
        with stream:
            for _ in range(3):
                await asyncio.sleep(0)
                assert ctx.current_stream is stream

    async def all_of_them():
        await asyncio.gather(*(task(ctx.stream()) for _ in range(3)))
        assert ctx.stream_handle == ctx.handle

    asyncio.run(all_of_them())


def test_uploads_and_zeros_need_no_event(ctx):
    streams = [ctx.stream() for _ in range(3)]
    for round in range(12):
        with streams[round % 3]:
            x = ctx.array(np.full(5000, 3.0))
        with streams[(round + 1) % 3]:
            y = x + ctx.zeros(5000)
            z = tuff.broadcast_to(y[:5], (4, 5))  # through the context's own vector of ones
            assert set(y.numpy()) == {3} and z.numpy().tolist() == [[3] * 5] * 4


def test_arrays_go_while_streams_use_them(ctx):
    stream = ctx.stream()
    totals = []
    for round in range(20):
        with stream:
            x = ctx.full(200_000 if ctx.device.backend == "vulkan" else 2000, round)
            totals.append((x + x).mean())
        del x
        other = ctx.full(200_000, -1)  # on another stream, perhaps where x was
        del other
    with stream:
        assert [total.item() for total in totals] == [2 * round for round in range(20)]


def test_a_stream_goes_with_work_in_flight(ctx):
    x = ctx.array(np.zeros(1000))
    stream = ctx.stream()
    with stream:
        for _ in range(30):
            x += 1
    stream.free()
    stream.free()
    refused(raw.ERROR_INVALID_HANDLE, stream.synchronize)
    del stream
    gc.collect()
    ctx.synchronize()
    assert set(x.numpy()) == {30}


def test_events(ctx):
    stream = ctx.stream()
    start = ctx.event()
    assert start.done
    assert stream.record(start) is start
    with stream:
        x = ctx.ones((64, 64))
        for _ in range(10):
            x = x @ x * (1 / 64)
    end = stream.record()
    end.wait()
    assert start.done and end.done
    assert 0 <= start.elapsed(end) < 60_000
    assert start.elapsed(start) == 0
    message = refused(raw.ERROR_INVALID_ARGUMENT, start.elapsed, stream.record(timing=False))
    assert message.startswith("tuff_event_elapsed: ")
    end.free()
    refused(raw.ERROR_INVALID_HANDLE, end.wait)


def test_wrong_objects_are_refused(ctx, backend):
    stream = ctx.stream()
    for call in (stream.wait, stream.record, stream.record().elapsed):
        with pytest.raises(TypeError, match="tuff.Event"):
            call(stream)
    with pytest.raises(TypeError, match="tuff.Stream"):
        ctx.capture(ctx)
    with tuff.Context(backend=backend) as other:
        refused(raw.ERROR_INVALID_HANDLE, stream.wait, other.stream().record())
    refused(raw.ERROR_INVALID_ARGUMENT, lambda: tuff.check(raw.tuff_stream_destroy(ctx.handle)))
    inner, outer = ctx.stream(), ctx.stream()
    outer.__enter__()
    with pytest.raises(RuntimeError, match="order"):
        inner.__exit__()
    outer.__exit__()


# Pinned arrays.


def test_pinned_arrays_are_copied_in_the_background(ctx):
    stream = ctx.stream("copies")
    source, target = ctx.pinned((30, 40)), ctx.pinned((30, 40))
    assert isinstance(source, np.ndarray) and source.dtype == np.float32 and not source.any()
    x = ctx.zeros((30, 40))
    for step in range(5):
        source[:] = np.arange(1200).reshape(30, 40) + step
        with stream:
            x.copy_from_async(source)
            (x * 2).copy_to_async(target)
        stream.record().wait()
        assert (target == 2 * source).all()
    # Parts of them, and other types.
    with stream:
        x[3:5].copy_from_async(source[7:9])
        x[3:5].copy_to_async(target[0:2])
    stream.synchronize()
    assert (target[:2] == source[7:9]).all()
    integers = ctx.pinned(7, np.int8)
    integers[:] = range(7)
    assert ctx.empty(7, np.int8).copy_from_async(integers).numpy().tolist() == list(range(7))
    assert ctx.pinned((0, 3)).shape == (0, 3)


def test_pinned_arrays_stay_while_they_are_used(ctx):
    stream = ctx.stream()
    results = []
    for round in range(10):
        source = ctx.pinned(20_000)
        source[:] = round
        with stream:
            results.append(ctx.empty(20_000).copy_from_async(source))
        del source
        ctx.pinned(20_000)[:] = -1
    with stream:
        assert [set(result.numpy()) for result in results] == [{round} for round in range(10)]


def test_a_pinned_array_outlives_its_context(backend):
    context = tuff.Context(backend=backend)
    x = context.ones(1000)
    pinned = context.pinned(1000)
    part = pinned[10:20]
    x.copy_to_async(pinned)
    session = context._session
    context.close()  # waits for the copy
    assert set(pinned) == {1}
    refused(raw.ERROR_INVALID_HANDLE, x.relu)
    refused(raw.ERROR_INVALID_HANDLE, context.pinned, 5)
    del pinned
    gc.collect()
    part[:] = 7
    assert set(part) == {7} and session._pins == 1
    left = session._left
    assert raw.tuff_synchronize(left) == raw.OK
    del part
    gc.collect()
    assert raw.tuff_synchronize(left) == raw.ERROR_INVALID_HANDLE


def test_other_memory_is_not_copied_in_the_background(ctx):
    x = ctx.ones(8)
    pinned = ctx.pinned((8, 2))
    refused(raw.ERROR_INVALID_ARGUMENT, x.copy_from_async, np.zeros(8, np.float32))
    refused(raw.ERROR_INVALID_ARGUMENT, x.copy_to_async, np.zeros(8, np.float32))
    with pytest.raises(ValueError, match="contiguous"):
        x.copy_from_async(pinned[:, 0])
    with pytest.raises(ValueError, match=r"\(8, 2\)"):
        x.copy_from_async(pinned)
    with pytest.raises(ValueError, match="float64"):
        x.copy_to_async(ctx.pinned(8, np.float64))
    with pytest.raises(TypeError, match="NumPy"):
        x.copy_from_async(x)
    with pytest.raises(TypeError, match="numbers"):
        ctx.pinned(8, object)
    assert set(x.numpy()) == {1}


# Graphs.


def test_a_graph_does_again_what_was_called(ctx, rng):
    x, w = ctx.array(rng.standard_normal((16, 32))), ctx.array(rng.standard_normal((32, 8)))
    bias = ctx.array(rng.standard_normal(8))

    def layer():
        return tuff.softmax((x @ w + tuff.broadcast_to(bias, (16, 8))).relu() * 0.5, -1)

    with ctx.capture() as graph:
        y = layer()
    for _ in range(3):
        x.assign(rng.standard_normal((16, 32)))
        graph.launch()
        assert (y.numpy() == layer().numpy()).all()
    stream = ctx.stream()
    before = y.numpy()
    y.assign(0)
    ctx.synchronize()
    graph.launch(stream)
    with stream:
        assert (y.numpy() == before).all()


def test_nothing_happens_in_the_block(ctx):
    x = ctx.ones(100)
    with ctx.capture() as graph:
        x += 1
        for call in (x.numpy, lambda: ctx.array([1]), ctx.current_stream.synchronize, graph.launch):
            with pytest.raises(tuff.TuffError):
                call()
        assert "captur" in refused(raw.ERROR_UNSUPPORTED, x.numpy)
        with ctx.default_stream:
            assert set(x.numpy()) == {1}
    graph.launch()
    graph.launch()
    assert set(x.numpy()) == {3}


def test_an_exception_ends_the_capture(ctx):
    x, stream = ctx.ones(10), ctx.stream()
    with pytest.raises(ZeroDivisionError), ctx.capture(stream) as graph:
        x += 1
        1 / 0
    refused(raw.ERROR_INVALID_HANDLE, graph.launch)
    ctx.synchronize()
    with stream:
        x += 1
        assert set(x.numpy()) == {2}
    with pytest.raises(RuntimeError, match="already"), graph:
        pass
    assert ctx.current_stream == ctx.default_stream


def test_operands_are_bound(ctx):
    x, y = ctx.ones(10), ctx.zeros(10)
    with ctx.capture() as graph:
        tuff.add(x, 1, out=y)
    others = [ctx.full(10, value) for value in (5, 6)]
    for other in others:
        graph.bind(x, other)
        graph.launch()
        assert set(y.numpy()) == set(other.numpy() + 1)
    graph.bind(x.buffer, x.buffer)
    graph.launch()
    assert set(y.numpy()) == {2}
    with pytest.raises(ValueError, match=r"\(5,\)"):
        graph.bind(x, ctx.ones(5))
    with pytest.raises(TypeError, match="ndarray"):
        graph.bind(x, np.ones(10))
    refused(raw.ERROR_INVALID_ARGUMENT, graph.bind, others[0], others[1])


def test_a_graph_keeps_what_it_uses(ctx):
    y = ctx.zeros(5000)
    with ctx.capture() as graph:
        x = ctx.full(5000, 3) + 4
        tuff.multiply(x, x, out=y)
    del x
    gc.collect()
    kept = [ctx.full(5000, -1) for _ in range(10)]
    graph.launch()
    assert set(y.numpy()) == {49} and set(kept[3].numpy()) == {-1}
    graph.free()
    refused(raw.ERROR_INVALID_HANDLE, graph.launch)


# At the end.


def test_the_interpreter_ends_with_all_of_it_alive(backend):
    program = """
import sys, tuff
ctx = tuff.Context(backend=sys.argv[1])
stream, pinned, x = ctx.stream(), ctx.pinned(1000), ctx.ones(1000)
event = stream.record()
with ctx.capture() as graph:
    x += 1
graph.launch(stream)
stream.__enter__()
x.copy_to_async(pinned)
print("end")
"""
    command = [sys.executable, "-c", program, backend]
    path = ":".join(filter(None, sys.path))
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
