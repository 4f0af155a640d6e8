"""How an interpreter ends with arrays, buffers, kernels and a profile alive: with the status it was given, and in silence."""

import os
import subprocess
import sys
import textwrap

import pytest

import tuff

BEGIN = """
    import atexit, os, sys, threading
    import numpy as np
    import tuff

    ctx = tuff.Context(backend=sys.argv[1])
    x = ctx.array(np.arange(1000, dtype=np.float32))
    y = -x + x * x
    held = ctx.alloc(4096, host_visible=True)
    view = held.view(256, 512)
    if sys.argv[1] == "vulkan":
        kernel = ctx.kernel("#version 450\\nlayout(binding = 0) buffer Out { uint to[]; };\\nvoid main() { to[0] = 1; }")
        kernel(held, groups=1)
    for _ in range(50):
        y = tuff.maximum(y, x)  # work in flight
"""

ENDINGS = {
    "falling_off_the_end": ("", 0),
    "while_profiled": ("profile = ctx.profile(); profile.__enter__(); y = y + x", 0),
    "while_mapped": ("mapped = held.map(); mapped.__enter__()", 0),
    "sys_exit": ("sys.exit(3)", 3),
    "sys_exit_in_a_function_with_locals": ("def f():\n    z = ctx.zeros(100)\n    sys.exit(3)\nf()", 3),
    "os_exit": ("os._exit(4)", 4),
    "in_a_cycle": ("class A: pass\na = A(); a.self = a; a.array = y; a.ctx = ctx; del y, ctx", 0),
    "context_in_a_module": ("sys.modules['held_here'] = ctx; import builtins; builtins.kept = (x, y, ctx)", 0),
    "used_by_atexit": ("atexit.register(lambda: y.numpy())", 0),
    "closed_by_atexit": ("atexit.register(ctx.close)", 0),
    "closed_before_its_arrays": ("ctx.close()", 0),
    "with_a_thread_at_work": (
        "stop = threading.Event()\n"
        "def work():\n"
        "    while not stop.is_set(): (x + y).numpy()\n"
        "thread = threading.Thread(target=work); thread.start()\n"
        "threading.Timer(0.1, stop.set).start()",
        0,
    ),
    "made_in_another_thread": (
        "made = []\n"
        "thread = threading.Thread(target=lambda: made.append(tuff.Context(backend=sys.argv[1]).zeros(10) + 1))\n"
        "thread.start(); thread.join()",
        0,
    ),
    "with_a_daemon_thread_that_waits": (
        "lock = threading.Event()\nthreading.Thread(target=lambda z: lock.wait(), args=(y + x,), daemon=True).start()",
        0,
    ),
    "with_a_log_callback": ("tuff.set_log(lambda level, message: len(message), 5); y = y + x", 0),
    "with_a_log_callback_of_another_thread": (
        "tuff.set_log(lambda level, message: len(message), 5); other = tuff.Context(backend=sys.argv[1], prewarm=True)",
        0,
    ),
    "in_a_generator": (
        "def g():\n"
        "    with tuff.Context(backend=sys.argv[1]) as other:\n"
        "        yield other.zeros(5)\n"
        "held_open = g(); next(held_open)",
        0,
    ),
}


def run(backend, ending):
    code = textwrap.dedent(BEGIN) + ending
    return subprocess.run(
        [sys.executable, "-c", code, backend],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def backend():  # finalizers are the same for both
    return "vulkan" if tuff.device_count() != 0 else "host"


@pytest.mark.parametrize("name", ENDINGS)
def test_an_interpreter_ends_in_silence(backend, name):
    ending, status = ENDINGS[name]
    done = run(backend, ending)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


def test_an_exception_in_flight_is_all_that_is_printed(backend):
    done = run(backend, "def f():\n    z = x + y\n    raise KeyError('the one')\nf()")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.rstrip().endswith("KeyError: 'the one'")
    assert done.stderr.count("Traceback") == 1 and "ignored" not in done.stderr


def test_an_error_of_tuff_in_flight(backend):
    done = run(backend, "tuff.matmul(x, ctx.zeros((3, 3)))")
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1 and "ignored" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_is_told_and_ends(backend):
    done = run(
        backend,
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        y.numpy()\n"
        "    except tuff.TuffError as error:\n"
        "        os._exit(0 if 'fork' in str(error) else 5)\n"
        "    os._exit(6)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "assert (y + x).numpy().shape == (1000,)",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
