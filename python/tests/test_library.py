"""Where the library is searched for, and what importing and exiting do; each in a separate process."""

import importlib.util
import os
import shutil
import subprocess
import sys

import pytest

from tuff import raw

PACKAGE = os.path.dirname(os.path.dirname(raw.__file__))


# What hides every Vulkan driver from the loader.
NO_DRIVERS = {"VK_DRIVER_FILES": "/nonexistent.json", "VK_ICD_FILENAMES": "/nonexistent.json"}


def python(code, path=PACKAGE, library=raw.lib._name, **environment):
    """Runs code with the package of a folder and a library (None: the package finds one); returns status, output
    and errors."""
    env = dict(os.environ, PYTHONPATH=str(path), TUFF_LIBRARY=library or "", **environment)
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=path, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_import_needs_no_device():
    code = "import tuff; print(tuff.device_count())"
    status, out, err = python(code, **NO_DRIVERS)
    assert (status, out, err) == (0, "0\n", "")


def test_without_a_device_the_error_says_so():
    code = (
        "import tuff\n"
        "try: tuff.Context()\n"
        "except tuff.TuffError as error: print(error.name, error.status, 'mesa-vulkan-drivers' in str(error))\n"
    )
    status, out, _ = python(code, **NO_DRIVERS)
    assert (status, out) == (0, f"TUFF_ERROR_NO_DEVICE {raw.ERROR_NO_DEVICE} True\n")


def test_auto_falls_back_to_the_host_and_says_it():
    code = "import tuff; print(tuff.Context(backend='auto').device.backend)"
    status, out, _ = python(code, **NO_DRIVERS)
    assert (status, out) == (0, "host\n")


@pytest.mark.parametrize("library", ["/nonexistent/libtuff.so", "libm.so.6"])
def test_a_wrong_library_is_an_import_error_that_names_it(library):
    status, _, err = python("import tuff", library=library)
    assert status == 1 and "ImportError" in err and library in err


def copy_package(folder):
    """The package with no library beside it, away from the checkout."""
    shutil.copytree(os.path.join(PACKAGE, "tuff"), folder / "tuff", ignore=shutil.ignore_patterns("libtuff*"))


def test_no_library_says_where_it_looked(tmp_path):
    copy_package(tmp_path)
    code = "import ctypes.util; ctypes.util.find_library = lambda name: None\nimport tuff"
    status, _, err = python(code, path=tmp_path, library=None)
    if status == 0:
        pytest.skip("this system has a libtuff of its own")
    for words in ("pip install ./python", "scripts/wheel.sh", "set TUFF_LIBRARY", "mesa-vulkan-drivers", str(tmp_path)):
        assert words in err


def test_the_library_beside_the_package_is_found(tmp_path):
    copy_package(tmp_path)
    beside = tmp_path / "tuff" / "libtuff.so.1"
    beside.symlink_to(os.path.abspath(raw.lib._name))
    _, out, err = python("import tuff; print(tuff.lib._name)", path=tmp_path, library=None)
    assert out.strip() == str(beside), err


def test_the_package_installs(tmp_path):
    if any(importlib.util.find_spec(module) is None for module in ("pip", "setuptools", "wheel")):
        pytest.skip("pip, setuptools or wheel is not installed")
    sources = tmp_path / "sources"
    if not os.path.isfile(os.path.join(PACKAGE, "pyproject.toml")):
        pytest.skip("the package is tested away from its checkout")
    shutil.copytree(PACKAGE, sources, ignore=shutil.ignore_patterns("tests", "build", "*.egg-info", "__pycache__"))
    offline = ["--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", "-q", *offline, "--target", str(tmp_path / "site"), str(sources)]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "tuff" / "py.typed").is_file()
    _, out, err = python("import tuff; print(tuff.__file__)", path=tmp_path / "site")
    assert out.startswith(str(tmp_path / "site")), err


def test_an_abi_version_that_differs_is_an_import_error():
    code = (
        "from tuff import _library as library\n"
        "library.ABI_VERSION = 99\n"
        "try: library.load()\n"
        "except ImportError as error: print(error)\n"
    )
    status, out, _ = python(code)
    assert status == 0 and "has ABI version 1, this package needs 99" in out


@pytest.mark.parametrize(
    "ending",
    [
        "",  # everything still alive at exit
        "ctx.close()",  # context before its arrays
        "del ctx",  # arrays keep the context
        "views.append(views); del views",  # left to the garbage collector
        "tuff = None; np = None",  # modules go first
        "import sys; sys.exit(0)",
        "import threading; threading.Thread(target=lambda: (x @ x).numpy()).start()",
    ],
)
def test_exit_with_live_arrays_is_quiet(backend, ending):
    code = (
        "import numpy as np, tuff\n"
        f"ctx = tuff.Context(backend={backend!r})\n"
        "x = ctx.array(np.ones((64, 64)))\n"
        "views = [x[i] for i in range(8)]\n"
        "y = (x @ x + 1).relu().sum(axis=0)\n" + ending
    )
    assert python(code) == (0, "", "")


def test_a_forked_child_exits_quietly(backend):
    code = (
        "import os, numpy as np, tuff\n"
        f"ctx = tuff.Context(backend={backend!r})\n"
        "x = ctx.array(np.ones(8))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try: x.numpy()\n"
        "    except tuff.TuffError as error: print(error.name, flush=True)\n"
        "    del x, ctx\n"
        "    raise SystemExit(0)\n"
        "_, status = os.waitpid(child, 0)\n"
        "print(os.waitstatus_to_exitcode(status), x.sum().item())\n"
    )
    assert python(code) == (0, "TUFF_ERROR_NOT_INITIALIZED\n0 8.0\n", "")


def test_log_reaches_the_callback(backend):
    code = (
        "import tuff\n"
        "seen = []\n"
        "tuff.set_log(lambda level, message: seen.append((level, message)), tuff.raw.LOG_DISPATCH)\n"
        f"ctx = tuff.Context(backend={backend!r})\n"
        "ctx.ones((4, 4)).sum().item()\n"
        "tuff.set_log(None)\n"
        "count = len(seen)\n"
        "ctx.ones((4, 4)).sum().item()\n"
        "assert len(seen) == count\n"
        "assert all(1 <= level <= 5 and message for level, message in seen)\n"
        "print(count > 0)\n"
    )
    status, out, err = python(code)
    assert (status, err) == (0, "")
    if backend == "vulkan":
        assert out == "True\n"
