"""Copies of arrays: by the copy module, by pickle, and to what is no context."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tuff


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_copies_share_no_memory(ctx, make):
    """copy.copy(a) shared the buffer."""
    x = ctx.array(np.arange(6).reshape(2, 3), np.int32)
    other, view = make(x), make(x[1])
    x.assign(0)
    assert type(other) is tuff.Array and other.context is ctx and other.dtype == np.int32
    assert other.numpy().tolist() == [[0, 1, 2], [3, 4, 5]] and view.numpy().tolist() == [3, 4, 5]
    turned = make(other.T)
    other.assign(7)
    assert type(turned) is tuff.Transposed and turned.numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_deepcopy_of_a_structure_keeps_what_is_one_array_one(ctx):
    x = ctx.ones(3)
    first, second = copy.deepcopy([x, x])
    assert first is second and first is not x and first.numpy().tolist() == [1, 1, 1]


def test_arrays_are_pickled(ctx, vulkan):
    """They arrive in the default context."""
    half = ctx.array(np.arange(4).reshape(2, 2), np.float16)
    for array in (half, half[1], half.T, ctx.zeros((0, 3), np.uint8), ctx.full((), 2**31 - 1, np.int32)):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            restored = pickle.loads(pickle.dumps(array, protocol))
            assert type(restored) is type(array) and restored.dtype == array.dtype and restored.shape == array.shape
            assert np.array_equal(restored.numpy(), array.numpy())
            base = restored.base if isinstance(restored, tuff.Transposed) else restored
            assert base.context is tuff.default_context()


def test_arrays_are_pickled_to_another_process(ctx, vulkan):
    code = "import pickle, sys, tuff; print((pickle.load(sys.stdin.buffer) * 2).numpy().tolist())"
    env = dict(os.environ, PYTHONPATH=str(Path(tuff.__file__).parent.parent), TUFF_LIBRARY=tuff.lib._name)
    sent = pickle.dumps(ctx.array([1.5, 2.5]))
    done = subprocess.run([sys.executable, "-c", code], input=sent, env=env, capture_output=True, timeout=120)
    assert (done.stdout.decode(), done.stderr.decode()) == ("[3.0, 5.0]\n", "")


def test_the_default_context_is_one(vulkan):
    context = tuff.default_context()
    assert tuff.default_context() is context and context.device.backend == "vulkan"
    context.close()
    assert tuff.default_context() is not context and not tuff.default_context().closed


def test_the_host_is_no_context(ctx):
    with pytest.raises(TypeError, match=r"context is 'cpu', not a tuff\.Context; \.numpy\(\) copies to the host"):
        ctx.ones(2).to("cpu")


def test_indices_of_the_host(ctx):
    x, host = ctx.array(np.arange(12).reshape(3, 4)), np.arange(12.0).reshape(3, 4)
    for indices in ([0, 1], (2, -3), [[0], [-1]], 1, -1, [], np.array([2, 0], np.int8), np.array([1], np.uint64)):
        found = tuff.take(x, indices)
        assert np.array_equal(found.numpy(), np.take(host, np.asarray(indices, np.int64), 0)) and found.context is ctx
        assert tuff.embedding(x, indices).shape == found.shape
    assert np.array_equal(tuff.take(x, [3, -1, 0], axis=-1).numpy(), host[:, [3, 3, 0]])
    assert np.array_equal(tuff.gather(x, [[1, 0], [-1, 2], [3, 3]], 1).numpy(), [[1, 0], [7, 6], [11, 11]])
    long = ctx.array(np.arange(300))
    assert tuff.take(long, np.array([-128, 127], np.int8)).numpy().tolist() == [172, 127]
    for wrong in ([3], [-4], 3, [0, 2**40], np.array([2**63], np.uint64)):
        with pytest.raises(IndexError, match="is out of axis 0 of size 3"):
            tuff.take(x, wrong)
    for wrong in ([0.5], [True], None, "cpu", np.zeros(1, "datetime64[s]")):
        with pytest.raises(TypeError, match="need integers"):
            tuff.take(x, wrong)
