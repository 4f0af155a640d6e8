"""Contexts, buffers, and how long things live."""

import gc
import pathlib
import pickle
import threading

import numpy as np
import pytest

import tuff
from tuff import raw


def test_device_is_described(ctx, backend):
    device = ctx.device
    assert device.backend == backend and device.name
    assert device.type in ("cpu", "discrete", "integrated", "virtual", "host")
    assert ctx.supports("f32") and ctx.supports("gemm") and not ctx.supports("teleportation")
    if backend == "host":
        assert device.type == "host"
    else:
        assert tuff.devices()[0].properties.struct_size > 0
        assert device.memory_bytes > 0 and device.subgroup_size > 0


def test_device_is_chosen_by_index_and_by_name():
    if tuff.device_count() == 0:
        pytest.skip("no Vulkan device")
    name = tuff.devices()[0].name
    with tuff.Context(0) as by_index, tuff.Context(name[: max(4, len(name) // 2)].upper()) as by_name:
        assert by_index.device.name == name
        assert by_name.device.name == name
    with pytest.raises(tuff.TuffError) as caught:
        tuff.Context("no such device")
    assert caught.value.status == raw.ERROR_NO_DEVICE


def test_device_is_chosen_by_uuid():
    if tuff.device_count() == 0:
        pytest.skip("no Vulkan device")
    device = tuff.devices()[0]
    if sum(other.uuid == device.uuid for other in tuff.devices()) > 1:
        pytest.skip("two devices of one UUID")
    with tuff.Context(device.uuid) as ctx:
        assert ctx.device.uuid == device.uuid


def test_device_lists_what_it_has(ctx, backend):
    device = ctx.device
    assert len(device.queue_families) == device.properties.queue_family_count
    assert len(device.matrix_shapes) == device.properties.matrix_shape_count
    if backend == "vulkan":
        assert any(family["flags"] & raw.QUEUE_COMPUTE for family in device.queue_families)
    assert isinstance(tuff.device_refusals(), list)


def test_unknown_backend_is_refused():
    with pytest.raises(tuff.TuffError) as caught:
        tuff.Context(backend="abacus")
    assert caught.value.status == raw.ERROR_INVALID_ARGUMENT
    assert "abacus" in caught.value.message


@pytest.mark.parametrize("path", ["/nonexistent", b"/nonexistent", pathlib.Path("/nonexistent")])
def test_a_plug_in_that_is_not_there(path):
    with pytest.raises(tuff.TuffError, match='path is "/nonexistent"'):
        tuff.backend_register(path)


def test_paths_of_plug_ins_are_checked():
    for path in (None, 5):
        with pytest.raises(TypeError, match="PathLike"):
            tuff.backend_register(path)
    for path in ("a\0b", b"a\0b"):
        with pytest.raises(ValueError, match="NUL"):
            tuff.backend_register(path)


def test_errors_carry_status_name_message_and_hint(ctx):
    with pytest.raises(tuff.TuffError) as caught:
        ctx.alloc(8).view(4, 8)
    error = caught.value
    assert (error.status, error.name) == (raw.ERROR_INVALID_ARGUMENT, "TUFF_ERROR_INVALID_ARGUMENT")
    assert error.message.startswith("tuff_view: ") and error.hint
    assert str(error) == f"{error.name}: {error.message}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_limits_are_kept(ctx):
    ctx.set_limits(memory_bytes=1 << 20)
    with pytest.raises(tuff.TuffError) as caught:
        ctx.zeros(1 << 20)
    assert caught.value.status == raw.ERROR_LIMIT_EXCEEDED
    ctx.set_limits()
    assert ctx.zeros(1 << 20).sum().item() == 0


def test_arrays_free_their_memory(ctx):
    before = ctx.stats()["live_buffers"]
    a = ctx.ones((8, 8))
    views = list(a)
    assert ctx.stats()["live_buffers"] == before + 9
    del views
    gc.collect()
    assert ctx.stats()["live_buffers"] == before + 1
    b = (a + a).exp()
    del a, b
    gc.collect()
    assert ctx.stats()["live_buffers"] == before


def test_a_view_outlives_its_array(ctx):
    a = ctx.array(np.arange(6).reshape(3, 2))
    last = a[2]
    del a
    gc.collect()
    assert last.numpy().tolist() == [4, 5]


def test_closing_before_the_arrays(backend):
    context = tuff.Context(backend=backend)
    a = context.ones(4)
    context.close()
    context.close()
    assert context.closed and repr(context) == "<tuff.Context closed>"
    for use in (a.numpy, a.relu, lambda: a + a, lambda: a[0], lambda: context.zeros(1), context.synchronize):
        with pytest.raises(tuff.TuffError) as caught:
            use()
        assert caught.value.status == raw.ERROR_INVALID_HANDLE
    del a
    gc.collect()


def test_an_array_keeps_its_context(backend):
    a = tuff.Context(backend=backend).ones(4)
    gc.collect()
    assert a.sum().item() == 4


def test_a_context_goes_with_its_last_array(backend):
    contexts = tuff.Context(backend=backend)
    session = contexts._session
    a = contexts.ones((2, 2))
    b = a + a[0]  # broadcasting keeps a vector of ones in the context
    del contexts, a
    gc.collect()
    assert session.is_open
    del b
    gc.collect()
    assert not session.is_open


def test_a_freed_buffer_is_refused(ctx):
    a = ctx.ones(4)
    a.buffer.free()
    a.buffer.free()
    with pytest.raises(tuff.TuffError) as caught:
        a.numpy()
    assert caught.value.status == raw.ERROR_INVALID_HANDLE


def test_contexts_do_not_mix(backend):
    with tuff.Context(backend=backend) as one, tuff.Context(backend=backend) as other:
        with pytest.raises(ValueError, match="different contexts"):
            one.ones(4) + other.ones(4)
        with pytest.raises(tuff.TuffError) as caught:
            tuff.check(raw.tuff_copy_dtod(one.handle, one.alloc(4).handle, 0, other.alloc(4).handle, 0, 4))
        assert caught.value.status == raw.ERROR_INVALID_HANDLE


@pytest.mark.parametrize("size", [3, 1_000_003])
def test_copies_between_contexts(backend, size):
    with tuff.Context(backend=backend) as one, tuff.Context(backend="host") as other:
        values = np.arange(size, dtype=np.float32)
        there = one.array(values).to(other)
        assert there.context is other and (-there).to(one).numpy().tolist() == (-values).tolist()
        target = other.alloc(8)
        target.copy_from(one.array([1, 2, 3]).buffer, offset=4, source_offset=8, nbytes=4)
        assert target.download(np.empty(2, np.float32)).tolist() == [0, 3]
        with pytest.raises(tuff.TuffError) as caught:
            target.copy_from(one.alloc(16))
        assert caught.value.status == raw.ERROR_INVALID_ARGUMENT and "tuff_copy_peer" in caught.value.message


def test_buffer_copies_fills_and_offsets(ctx):
    buffer = ctx.alloc(16)
    assert buffer.download(np.empty(16, np.uint8)).tolist() == [0] * 16
    buffer.fill(b"\x01\x02", 2, 4)
    buffer.upload(np.array([9, 8], np.uint8), 13)
    assert buffer.download(np.empty(16, np.uint8)).tolist() == [0, 0, 1, 2, 1, 2] + [0] * 7 + [9, 8, 0]
    other = ctx.alloc(8)
    other.copy_from(buffer, offset=1, source_offset=3, nbytes=5)
    assert other.download(np.empty(8, np.uint8)).tolist() == [0, 2, 1, 2, 0, 0, 0, 0]
    assert other.download(np.empty(2, np.uint8), 2).tolist() == [1, 2]
    with pytest.raises(ValueError):
        other.download(np.empty((4, 4), np.uint8)[:, :1])
    with pytest.raises(tuff.TuffError):
        other.download(np.empty(9, np.uint8))
    with pytest.raises(ValueError):
        ctx.alloc(-1)


def test_host_visible_buffers_map(ctx):
    buffer = ctx.alloc(8, host_visible=True, name="mapped")
    with buffer.map() as block:
        block[:] = np.arange(8)
        with pytest.raises(tuff.TuffError):
            buffer.fill(b"\0")
    assert buffer.download(np.empty(8, np.uint8)).tolist() == list(range(8))
    with buffer.map() as block:
        assert block.tolist() == list(range(8))
    with pytest.raises(tuff.TuffError), ctx.alloc(8).map():
        pass


def test_threads_share_a_context(ctx):
    a = ctx.array(np.arange(64, dtype=np.float32).reshape(8, 8))
    wanted = (a.numpy() @ a.numpy()).sum()
    results = []

    def work():
        for _ in range(20):
            results.append((a @ a).sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [wanted] * 80
