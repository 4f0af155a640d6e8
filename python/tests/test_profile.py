"""Profiles."""

import json

import numpy as np
import pytest

import tuff
from tuff import raw


def test_a_profile_has_what_its_block_did(ctx, backend, tmp_path):
    a = ctx.array(np.ones((16, 16)))
    with ctx.profile() as profile:
        for _ in range(3):
            b = tuff.softmax(a)
    a.relu()  # behind its end
    path = tmp_path / "trace.json"
    profile.write(path)
    spans = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    calls = [event for event in spans if event["cat"] == "call" and event["name"] != "alloc"]
    assert [call["name"] for call in calls] == ["softmax"] * 3
    kernels = [event for event in spans if event["cat"] == "kernel"]
    assert len(kernels) == (3 if backend == "vulkan" else 0)
    for line in profile.table().splitlines():
        if line.startswith("softmax"):
            assert int(line.split()[1]) == 3
            break
    else:
        pytest.fail(profile.table())
    assert np.allclose(b.numpy(), 1 / 16)


def test_it_may_be_read_before_its_end_and_ends_once(ctx):
    with ctx.profile() as profile:
        ctx.array([1.0]).relu()
        assert "unary" in profile.table()
        profile.end()
        profile.end()
    with pytest.raises(tuff.TuffError) as caught:
        tuff.check(raw.tuff_profile_end(ctx.handle))
    assert caught.value.status == raw.ERROR_INVALID_ARGUMENT


def test_a_block_that_fails_ends_it_and_profiles_do_not_nest(ctx):
    with pytest.raises(ZeroDivisionError):
        with ctx.profile():
            raise ZeroDivisionError
    with ctx.profile():
        with pytest.raises(tuff.TuffError):
            with ctx.profile():
                pass


def test_errors(ctx, tmp_path):
    with pytest.raises(tuff.TuffError) as caught:
        ctx.profile().table()  # was never entered
    assert caught.value.status == raw.ERROR_INVALID_ARGUMENT
    with ctx.profile() as profile:
        pass
    with pytest.raises(tuff.TuffError) as caught:
        profile.write(tmp_path / "no such folder" / "trace.json")
    assert caught.value.status == raw.ERROR_IO
    ctx.close()
    profile.end()
