"""The memory of a context: statistics, trimming, the callback, imports and exports."""

import mmap
import os

import numpy as np
import pytest

import tuff
from tuff import raw


def test_statistics_and_trim(backend):
    with tuff.Context(backend=backend) as ctx:
        before = ctx.memory()
        x = ctx.zeros(5_000_000)
        during = ctx.memory()
        assert during["bytes_in_use"] >= before["bytes_in_use"] + x.buffer.nbytes
        assert during["live_allocations"] == before["live_allocations"] + 1
        del x
        ctx.synchronize()
        ctx.trim()
        after = ctx.memory()
        assert after["bytes_in_use"] == before["bytes_in_use"]
        assert after["bytes_reserved"] < during["bytes_reserved"]
        assert after["bytes_peak"] >= during["bytes_in_use"]
        ctx.reset_peak()
        assert ctx.memory()["bytes_peak"] == after["bytes_in_use"]


def test_a_callback_makes_room(backend):
    with tuff.Context(backend=backend) as ctx:
        ctx.set_limits(memory_bytes=1_000_000)
        cache = [ctx.alloc(600_000)]
        seen = []

        def free(requested, needed):
            seen.append((requested, needed))
            cache.pop().free()

        ctx.set_memory_callback(free)
        kept = ctx.alloc(600_000)
        assert len(seen) == 1 and seen[0][0] == 600_000 and 0 < seen[0][1] <= 600_000
        ctx.set_memory_callback(None)
        with pytest.raises(tuff.TuffError) as error:
            ctx.alloc(600_000)
        assert error.value.status == raw.ERROR_LIMIT_EXCEEDED
        assert kept.nbytes == 600_000


def test_pinned_memory_maps(ctx):
    buffer = ctx.alloc(64, host_pinned=True)
    with buffer.map() as values:
        values[:] = 7
    assert set(buffer.download(np.empty(64, np.uint8))) == {7}


def test_a_numpy_array_is_imported(ctx):
    if not ctx.supports("import_host"):
        pytest.skip("the device has no VK_EXT_external_memory_host")
    pages = mmap.mmap(-1, 8192)
    array = np.frombuffer(pages, np.float32)
    array[:] = np.arange(array.size)
    buffer = ctx.import_host(array)
    tuff.check(raw.tuff_unary(ctx.handle, raw.F32, raw.UNARY_NEG, buffer.handle, buffer.handle, array.size))
    with buffer.map():
        assert array[100] == -100
    buffer.free()
    ctx.synchronize()
    assert ctx.memory()["bytes_imported"] == 0
    with pytest.raises(tuff.TuffError):
        ctx.import_host(array[1:])


def test_two_contexts_share_a_buffer(ctx, backend):
    if not ctx.supports("memory_fd"):
        with pytest.raises(tuff.TuffError) as error:
            ctx.alloc(64, exportable=True)
        assert error.value.status == raw.ERROR_UNSUPPORTED
        return
    with tuff.Context(backend=backend) as other:
        mine = ctx.alloc(64, exportable=True)
        mine.upload(np.full(64, 5, np.uint8))
        info = mine.export_fd()
        theirs = other.import_fd(info)
        os.close(info.fd)
        assert theirs.nbytes == 64
        assert set(theirs.download(np.empty(64, np.uint8))) == {5}
