"""DLPack: arrays of other libraries, with and without copies."""

import ctypes
import gc
import mmap
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import tuff
from tuff import _dlpack as dlpack
from tuff._core import COMPILED, export_tensor

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
          "complex64", "complex128"]  # fmt: skip


class Foreign:
    """An array of a library that tuff does not know, which has a tensor: that of an array, or any capsule."""

    def __init__(self, array=None, device=(1, 0), capsule=None, **options):
        self.array, self.device, self.capsule, self.options = array, device, capsule, options
        self.asked = None

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **asked):
        self.asked = asked
        return self.array.__dlpack__(**{**asked, **self.options}) if self.capsule is None else self.capsule


def elements(capsule):
    """What a library that takes the capsule sees; it lets go of it with the last view."""
    return dlpack._Taken(capsule).view()


def for_host(ctx, values):
    values = np.asarray(values)
    array = tuff.Array(ctx.alloc(max(values.nbytes, 1), host_visible=True), values.shape, values.dtype)
    return array.assign(values) if values.size else array


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_every_type_there_and_back(ctx, rng, dtype, version):
    values = (rng.standard_normal((3, 5)) * 50).astype(np.complex128 if dtype.startswith("c") else np.float64).astype(dtype)
    for shaped in (values, values[:0], values[1, 2]):
        x = ctx.array(shaped, dtype)
        back = tuff.from_dlpack(Foreign(x, max_version=version), device=ctx)
        assert back is not x and back.dtype == x.dtype and back.shape == x.shape
        assert back.numpy().tobytes() == np.asarray(shaped).tobytes()


def test_types_of_ml_dtypes(ctx):
    pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        x = ctx.array(np.arange(7, dtype=np.float32)).astype(name)
        back = tuff.from_dlpack(Foreign(x), device=ctx)
        assert back.dtype == x.dtype and back.numpy().tobytes() == x.numpy().tobytes()
    with pytest.raises(BufferError, match="1.1"):
        x.__dlpack__(max_version=(1, 0))


def test_numpy_both_ways(ctx):
    x = ctx.array(np.arange(12, dtype=np.float32).reshape(3, 4))
    y = np.from_dlpack(x * 2)
    assert y.dtype == np.float32 and (y == np.arange(0, 24, 2).reshape(3, 4)).all()
    assert (np.from_dlpack(x.T) == x.numpy().T).all()
    back = tuff.from_dlpack(np.arange(24).reshape(4, 6)[::-2, 1:5:2], device=ctx)
    assert back.dtype == np.int64 and (back.numpy() == np.arange(24).reshape(4, 6)[::-2, 1:5:2]).all()
    assert back.context is ctx and back.device is ctx


def test_memory_of_the_host_is_shared(ctx):
    x = for_host(ctx, np.arange(20, dtype=np.float32).reshape(4, 5))
    assert x.__dlpack_device__() == (1, 0)
    view = elements(x.__dlpack__(max_version=(1, 0)))
    view[1, 2] = 100
    also = elements(x[1:, ::2].__dlpack__())
    assert also.strides == (20, 8) and also[0, 1] == 100 and also.ctypes.data == view.ctypes.data + 20
    with pytest.raises(tuff.TuffError, match="mapped"):
        x + 1
    del view
    with pytest.raises(tuff.TuffError, match="mapped"):
        x + 1
    del also
    assert (x + 1).numpy()[1, 2] == 101


def test_views_have_their_strides_and_offsets(ctx):
    values = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    x = for_host(ctx, values)
    for key in (np.s_[::-1], np.s_[1:, ::-2, 3], np.s_[..., None, 2:4], np.s_[2, 3, 4], np.s_[:, 4:]):
        seen = elements(x[key].__dlpack__(max_version=(1, 0)))
        assert (seen == values[key]).all() and seen.shape == values[key].shape
        del seen
    z = for_host(ctx, (values + 1j).astype(np.complex64))
    assert (elements(z.imag.__dlpack__()) == 1).all()
    parts = elements(z.real.__dlpack__())
    assert parts.strides == (160, 40, 8) and (parts == values).all()


def test_pending_work_is_complete(ctx):
    x = for_host(ctx, np.zeros(1 << 18, np.float32))
    for _ in range(20):
        tuff.add(x, 1.0, out=x)
    assert (elements(x.__dlpack__()) == 20).all()


def test_what_is_read_only_says_so(ctx):
    x = for_host(ctx, np.arange(5, dtype=np.float32))
    wide = tuff.broadcast_to(x, (3, 5))
    taken = dlpack._Taken(wide.__dlpack__(max_version=(1, 0)))
    assert taken.read_only and taken.view().strides == (0, 4)
    del taken
    assert not dlpack._Taken(x.__dlpack__(max_version=(1, 0))).read_only
    copied = elements(wide.__dlpack__())  # without a version: a copy
    assert copied.strides == (20, 4)
    with pytest.raises(BufferError, match="reading only"):
        wide.__dlpack__(copy=False)
    assert (x + 1).numpy()[0] == 1  # nothing is mapped


def test_copies_where_they_are_asked_for(ctx):
    x, y = ctx.array(np.arange(6, dtype=np.float32)), for_host(ctx, np.arange(6, dtype=np.float32))
    for array in (x, y):
        for options in ({"copy": True}, {"copy": True, "dl_device": (1, 0)}):
            view = elements(array.__dlpack__(**options, max_version=(1, 0)))
            view[:] = 9
            assert (array + 1).numpy().tolist() == [1, 2, 3, 4, 5, 6]
    # Both devices here are CPUs, whose arrays are in memory of the host; that is shared only on demand.
    view = elements(x.__dlpack__())
    view[:] = 9
    assert x.numpy().tolist() == [0, 1, 2, 3, 4, 5]
    view = elements((x * 1).__dlpack__(copy=False))
    assert view.tolist() == [0, 1, 2, 3, 4, 5]


def test_memory_of_a_device_is_copied_only_on_demand(ctx, monkeypatch):
    x, shared = ctx.array(np.arange(3, dtype=np.float32)), for_host(ctx, np.zeros(3, np.float32))
    monkeypatch.setattr(ctx, "_is_host", False)
    kind, number = x.__dlpack_device__()
    assert kind == 7 and number < max(tuff.device_count(), 1)
    assert shared.__dlpack_device__() == (1, 0)
    for options in ({}, {"dl_device": (7, number)}, {"copy": False}):
        with pytest.raises(BufferError, match="has no address"):
            x.__dlpack__(**options)
    for options in ({"copy": True}, {"dl_device": (1, 0)}):
        assert elements(x.__dlpack__(**options)).tolist() == [0, 1, 2]
    # Without permission to map it, there is no address either.
    plain = tuff.Array(ctx.alloc(12), (3,), np.float32)
    with pytest.raises(BufferError, match="HOST_VISIBLE"):
        plain.__dlpack__(dl_device=(1, 0), copy=False)


def test_what_cannot_be_exported_says_so(ctx):
    x = ctx.array([1.0, 2.0])
    for error, text, options in [
        (BufferError, r"dl_device is \(2, 0\)", {"dl_device": (2, 0)}),
        (BufferError, r"dl_device is \(1, 3\)", {"dl_device": (1, 3)}),
        (ValueError, "stream is 1", {"stream": 1}),
    ]:
        with pytest.raises(error, match=text):
            x.__dlpack__(**options)
    assert (x + 1).numpy().tolist() == [2, 3]
    with pytest.raises(TypeError):
        x.__dlpack__(None)


def test_the_memory_stays_until_the_last_user_lets_go(backend):
    ctx = tuff.Context(backend=backend)
    x = for_host(ctx, np.arange(1000, dtype=np.float32))
    view = elements(x.__dlpack__())
    x.buffer.free()
    del x
    gc.collect()
    others = [for_host(ctx, np.full(1000, -1, np.float32)) for _ in range(8)]
    assert (view == np.arange(1000)).all()
    del others
    ctx.close()
    assert (view == np.arange(1000)).all()
    view[:] = 7
    part = view[3:5]
    del view
    gc.collect()
    assert part.tolist() == [7, 7]


def test_a_capsule_that_nobody_takes(ctx):
    x = ctx.array(np.arange(4, dtype=np.float32))
    for version in (None, (1, 0)):
        capsule = x.__dlpack__(copy=False, max_version=version)
        with pytest.raises(tuff.TuffError, match="mapped"):
            x + 1
        del capsule
        x.__dlpack__(copy=False)  # without the compiled part, the next call finds it
        tuff._core.collect_capsules()
        assert (x + 1).numpy()[0] == 1
    assert not dlpack._mappings


def test_errors_of_the_other_library_are_not_lost(ctx):
    class Unknown:  # of a type that NumPy does not have
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            return export_tensor(released.append.__self__.clear, 0, (0,), (1,), 2, 24, -1, 0)

    released = [1]
    with pytest.raises((RuntimeError, BufferError), match="(?i)unsupported"):
        np.from_dlpack(Unknown())
    gc.collect()
    tuff._core.collect_capsules()
    assert released == []


def test_users_on_other_threads(ctx):
    """One thread maps the memory again while another has not unmapped it yet."""
    x = for_host(ctx, np.arange(100, dtype=np.int64))
    sums = []

    def use():
        for _ in range(50):
            sums.append(int(elements(x.__dlpack__()).sum()))

    threads = [threading.Thread(target=use) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(interval)
    assert sums == [4950] * 200 and not dlpack._mappings
    assert int(x.sum()) == 4950


def test_views_that_live_until_the_end_of_the_process(backend):
    program = f"""
import numpy as np, tuff
from tuff import _dlpack as dlpack
ctx = tuff.Context(backend={backend!r})
x = tuff.Array(ctx.alloc(40, host_visible=True), (10,), np.float32)
kept = np.from_dlpack(x)
capsule = x.__dlpack__()
copied = np.from_dlpack(ctx.zeros(3))
mine = dlpack._Taken(x.__dlpack__()).view()
print("end", kept.sum())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end 0.0\n", "")


# Imports.


def managed(capsule):
    """The structure in a capsule, to change it."""
    name, _, structure = next(form for form in dlpack._FORMS if dlpack._valid(capsule, form[0]))
    return ctypes.cast(dlpack._pointer(capsule, name), ctypes.POINTER(structure)).contents


def capsule_of(values, released, minor=-1, flags=0, code=2):
    strides = tuple(one // values.itemsize for one in values.strides)
    return export_tensor(lambda: released.append(values), values.ctypes.data, values.shape, strides, code, 8 * values.itemsize, minor, flags)


def test_a_tensor_is_given_back_once(ctx):
    values, released = np.arange(6, dtype=np.float32).reshape(2, 3), []
    for minor in (-1, 0, 1):
        foreign = Foreign(capsule=capsule_of(values.T, released, minor))
        assert tuff.from_dlpack(foreign, device=ctx).numpy().tolist() == values.T.tolist()
        assert foreign.asked == {"max_version": (1, 1)}
        assert len(released) == 1
        with pytest.raises(BufferError, match="taken before"):
            tuff.from_dlpack(foreign, device=ctx)
        assert released.pop() is not None and not released


def test_tensors_without_strides_and_with_an_offset(ctx):
    values, released = np.arange(12, dtype=np.float32).reshape(3, 4), []
    capsule = capsule_of(values[:2, :3], released)
    tensor = managed(capsule).tensor
    tensor.strides = None
    tensor.byte_offset = 8
    assert tuff.from_dlpack(Foreign(capsule=capsule), device=ctx).numpy().tolist() == [[2, 3, 4], [5, 6, 7]]
    assert len(released) == 1


def test_what_cannot_be_imported_says_so(ctx):
    values = np.arange(6, dtype=np.float32)

    def refused(text, change=lambda one: None, device=(1, 0), minor=0, error=BufferError, **options):
        released = []
        capsule = capsule_of(values, released, minor, **options)
        change(managed(capsule))
        with pytest.raises(error, match=text):
            tuff.from_dlpack(Foreign(capsule=capsule, device=device), device=ctx)
        del capsule
        gc.collect()
        tuff._core.collect_capsules()
        assert len(released) == 1

    refused("lanes", lambda one: setattr(one.tensor.dtype, "lanes", 2))
    refused("code 3, 32 bits", code=3)
    refused("code 2, 12 bits", lambda one: setattr(one.tensor.dtype, "bits", 12))
    refused("code 0, 128 bits", lambda one: setattr(one.tensor.dtype, "bits", 128), code=0)
    refused("device 2", lambda one: setattr(one.tensor.device, "type", 2))
    refused("device 7", lambda one: setattr(one.tensor.device, "type", 7), minor=-1)
    with pytest.raises(BufferError, match="DLPack 2.0"):
        capsule = capsule_of(values, [], 0)
        managed(capsule).major = 2
        tuff.from_dlpack(Foreign(capsule=capsule), device=ctx)
    with pytest.raises(BufferError, match="gave no capsule"):
        tuff.from_dlpack(Foreign(capsule=object()), device=ctx)
    with pytest.raises(TypeError, match="list has no __dlpack__"):
        tuff.from_dlpack([1, 2])
    with pytest.raises(TypeError, match="not a tuff.Context"):
        tuff.from_dlpack(values, device="cpu")


def test_arrays_on_other_devices_are_asked_for_a_copy_on_the_host(ctx):
    x = ctx.array([1.0, 2.0])
    foreign = Foreign(x, device=(2, 0))
    assert tuff.from_dlpack(foreign, device=ctx).numpy().tolist() == [1, 2]
    assert foreign.asked["dl_device"] == (1, 0)

    class Old(Foreign):
        def __dlpack__(self):
            return capsule_of(np.float32([3, 4]), [])

    assert tuff.from_dlpack(Old(), device=ctx).numpy().tolist() == [3, 4]
    with pytest.raises(BufferError, match="device 2, and its library does not copy"):
        tuff.from_dlpack(Old(device=(2, 0)), device=ctx)


class Pages(Foreign):
    """Whole pages of memory, which devices can import."""

    def __init__(self, released, flags=0, skip=0):
        super().__init__()
        memory = np.frombuffer(mmap.mmap(-1, 4 * mmap.PAGESIZE), np.float32)
        memory[:] = 3
        self.values = memory[skip : skip + 2 * mmap.PAGESIZE // 4]
        self.capsule = capsule_of(self.values, released, 0, flags)


def test_memory_of_others_is_shared_where_a_device_can_import_it(ctx):
    if not ctx.supports("import_host"):
        pytest.skip("the device does not import memory")
    released = []
    pages = Pages(released)
    x = tuff.from_dlpack(pages, device=ctx, copy=False)
    assert pages.asked["copy"] is False
    tuff.add(x, 1.0, out=x)
    part = x[5:9]
    del x
    gc.collect()
    assert not released
    assert part.numpy().tolist() == [4] * 4
    tuff.add(part, 1.0, out=part)
    del part
    gc.collect()
    assert len(released) == 1  # after the work
    assert pages.values[4:10].tolist() == [4, 5, 5, 5, 5, 4]


def test_what_cannot_be_shared_says_so(ctx):
    if not ctx.supports("import_host"):
        pytest.skip("the device does not import memory")
    for text, flags, skip in [("reading only", 1, 0), ("without a copy", 0, 1)]:
        released = []
        with pytest.raises(BufferError, match=text):
            tuff.from_dlpack(Pages(released, flags, skip), device=ctx, copy=False)
        gc.collect()
        assert len(released) == 1
        assert tuff.from_dlpack(Pages([], flags, skip), device=ctx).numpy()[0] == 3
    with pytest.raises(BufferError, match="without a copy"):
        tuff.from_dlpack(np.zeros((64, 64), np.float32)[:, ::2], device=ctx, copy=False)
    assert tuff.from_dlpack(np.zeros((0, 3)), device=ctx, copy=False).shape == (0, 3)


def test_own_arrays(ctx):
    x = ctx.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert tuff.from_dlpack(x) is x and tuff.from_dlpack(x, device=ctx, copy=False) is x
    copied = tuff.from_dlpack(x, copy=True)
    assert copied is not x and (copied.numpy() == x.numpy()).all()
    turned = tuff.from_dlpack(x.T, copy=False)
    assert (turned.numpy() == x.numpy().T).all() and turned.T is x
    with tuff.Context(backend="host") as other:
        moved = tuff.from_dlpack(x, device=other)
        assert moved.context is other and (moved.numpy() == x.numpy()).all()
        with pytest.raises(BufferError, match="another context"):
            tuff.from_dlpack(x, device=other, copy=False)


def test_pytorch(ctx):
    torch = pytest.importorskip("torch")
    x = for_host(ctx, np.arange(6, dtype=np.float32).reshape(2, 3))
    tensor = torch.from_dlpack(x)
    tensor += 1
    del tensor
    gc.collect()
    assert x.numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert tuff.from_dlpack(torch.arange(4).bfloat16().float(), device=ctx).numpy().tolist() == [0, 1, 2, 3]


def test_both_ways_of_making_capsules(ctx):
    """The compiled part's and that of Python alone say the same."""
    from tuff import _plain

    assert export_tensor is (_plain.export_tensor if not COMPILED else export_tensor)
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    for minor in (-1, 0):
        released = []
        arguments = (lambda: released.append(1), values.ctypes.data, (3, 2), (1, 3), 0, 16, minor, 1)
        for make in (export_tensor, _plain.export_tensor):
            taken = dlpack._Taken(make(*arguments))
            assert (taken.view() == values.T).all() and taken.read_only == (minor == 0)
            del taken
        assert released == [1, 1]
        _plain.export_tensor(*arguments)
        _plain.collect_capsules()
        assert released == [1, 1, 1]
