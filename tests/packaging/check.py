"""Checks the Python package as it is installed.

    check.py --library build/release/libtuff.so.1     packs this library, as scripts/wheel.sh does, and checks the wheel;
                                                      then the ways in which python/setup.py finds a library, or none
    check.py --wheel tuff-….whl --platform NAME       checks a wheel that is there, which must have this tag

A wheel's name, tag, metadata and files are compared with the sources. A new virtual environment installs it, computes
with it and uninstalls it. NumPy is the machine's; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import email
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
INSIDE = {"libtuff.so.1", "tuff-compile"}
FAST = "_fast.abi3.so"  # where Python's headers were there when the library was built

# Runs in the virtual environment. The host backend needs no driver; the device is used if there is one.
PROGRAM = """
import sys, pathlib, numpy as np, tuff
package, library = pathlib.Path(tuff.__file__).parent, pathlib.Path(tuff.lib._name)
assert package.is_relative_to(sys.prefix), package
assert library.parent == package, f"{library} is not in {package}"
assert tuff._core.COMPILED == (package / "_fast.abi3.so").is_file()
a = np.arange(12.0).reshape(3, 4)
def compute(context):
    with context as ctx:
        x = ctx.array(a)
        assert ((x @ x.T).relu() + 1).numpy().tolist() == (a @ a.T + 1).tolist()
        return ctx.device.name
print("host:", compute(tuff.Context(backend="host")))
if tuff.device_count() > 0:
    print("device:", compute(tuff.Context()))
    with tuff.Context() as ctx:  # compiled by tuff-compile, which the library finds beside itself
        source = "#version 450\\nlayout(binding = 0) buffer B { float b[]; };\\nvoid main() { b[0] = 42; }"
        x = ctx.zeros(1)
        ctx.kernel(source, untrusted=True)(x)
        assert x.item() == 42
"""


class Failure(Exception):
    pass


def require(condition: object, message: str) -> None:
    if not condition:
        raise Failure(message)


def run(*command: object, **options: object) -> str:
    # Neither the caller's package nor its library.
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TUFF_LIBRARY", "TUFF_COMPILE")}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, env=kept, **options)
    require(done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def version() -> str:
    header = (ROOT / "include" / "tuff" / "tuff.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"#define TUFF_VERSION_{part} (\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def sources(folder: Path) -> Path:
    ignored = shutil.ignore_patterns("tests", "build", "*.egg-info", "__pycache__", "libtuff*", "tuff-compile", FAST, ".*")
    return Path(shutil.copytree(ROOT / "python", folder, ignore=ignored))


def place(library: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(library, folder / "libtuff.so.1")
    for name in ("tuff-compile", FAST):
        if (library.parent / name).is_file():
            shutil.copy2(library.parent / name, folder / name)


OFFLINE = ["--no-index", "--no-deps", "--disable-pip-version-check"]


class Environment:
    """A virtual environment that sees the machine's NumPy."""

    def __init__(self, folder: Path):
        run(sys.executable, "-m", "venv", "--system-site-packages", folder)
        self.python = folder / "bin" / "python"
        self.site = Path(run(self.python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip())
        self.empty = self.listing()

    def listing(self) -> set:
        return {path.relative_to(self.site).parts[0] for path in self.site.rglob("*")} - {"__pycache__"}

    def pip(self, *arguments: object) -> str:
        return run(self.python, "-m", "pip", *arguments, cwd=self.site)

    def wheel(self, folder: Path) -> Path:
        """Packs a folder of sources."""
        target = folder.parent / f"wheel of {folder.parent.name}"
        self.pip("wheel", "-q", "--no-build-isolation", *OFFLINE, "-w", target, folder)
        found = list(target.glob("*.whl"))
        require(len(found) == 1, f"{found} instead of one wheel")
        return found[0]


def check_wheel(wheel: Path, platform: str, fast: bool) -> None:
    """What is in it, and what it says of itself. platform: any, or the tag of the one that the library is for. fast: with
    the package's compiled part."""
    pure = platform == "any"
    expected = f"tuff-{version()}-py3-none-{platform}.whl"
    require(wheel.name == expected, f"the wheel is {wheel.name}, not {expected}")
    with zipfile.ZipFile(wheel) as archive:
        require(archive.testzip() is None, "the wheel is damaged")
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist() if not entry.is_dir()}
        about = f"tuff-{version()}.dist-info/"
        tags = email.message_from_bytes(archive.read(about + "WHEEL"))
        metadata = email.message_from_bytes(archive.read(about + "METADATA"))
        record = archive.read(about + "RECORD").decode()
    require(tags["Root-Is-Purelib"] == ("true" if pure else "false"), f"Root-Is-Purelib: {tags['Root-Is-Purelib']}")
    require(tags.get_all("Tag") == [f"py3-none-{platform}"], f"Tag: {tags.get_all('Tag')}")
    require((metadata["Name"], metadata["Version"]) == ("tuff", version()), f"{metadata['Name']} {metadata['Version']}")
    require(metadata["Requires-Python"] == ">=3.9", f"Requires-Python: {metadata['Requires-Python']}")
    needed = [line for line in metadata.get_all("Requires-Dist") if "extra" not in line]
    require([re.match(r"\w+", line).group() for line in needed] == ["numpy"], f"Requires-Dist: {needed}")
    modules = {path.name for path in (ROOT / "python" / "tuff").glob("*.py")} | {"py.typed"}
    files = {name for name in modes if not name.startswith(about)}
    wanted = {f"tuff/{name}" for name in modules | (set() if pure else INSIDE) | ({FAST} if fast else set())}
    require(files == wanted, f"missing: {sorted(wanted - files)}; not expected: {sorted(files - wanted)}")
    for name in modes:
        require(re.search(rf"^{re.escape(name)},", record, flags=re.M), f"RECORD lacks {name}")
    require(pure or modes["tuff/tuff-compile"] & stat.S_IXUSR, "tuff-compile is not executable")


def check_installation(environment: Environment, wheel: Path) -> None:
    environment.pip("install", "-q", "--no-index", "--disable-pip-version-check", wheel)  # the machine's NumPy suffices
    print(run(environment.python, "-c", PROGRAM, cwd=environment.site.parent), end="")
    environment.pip("uninstall", "-q", "-y", "tuff")
    left = environment.listing() - environment.empty
    require(not left, f"uninstalled, but {sorted(left)} are left")


def check_missing_library(environment: Environment, wheel: Path) -> None:
    """A wheel without a library says how to get one."""
    environment.pip("install", "-q", *OFFLINE, wheel)
    hidden = "import ctypes.util; ctypes.util.find_library = lambda name: None\n"
    code = f"{hidden}try: import tuff\nexcept ImportError as error: print(error)\nelse: print('found', tuff.lib._name)"
    said = run(environment.python, "-c", code, cwd=environment.site.parent)
    environment.pip("uninstall", "-q", "-y", "tuff")
    if said.startswith("found libtuff"):
        print("this machine has a libtuff of its own, which the package without one uses")
        return
    for words in ("no library inside", "scripts/wheel.sh", "pip install ./python", "TUFF_LIBRARY", "mesa-vulkan-drivers"):
        require(words in said, f"the error does not say {words!r}: {said}")


def main() -> None:
    parser = argparse.ArgumentParser()
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--library", type=Path)
    given.add_argument("--wheel", type=Path)
    parser.add_argument("--platform")
    arguments = parser.parse_args()
    native = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = Environment(folder / "environment")
        if arguments.wheel:
            check_wheel(arguments.wheel, arguments.platform or native, fast=True)
            check_installation(environment, arguments.wheel.resolve())
        else:
            library = arguments.library.resolve()
            fast = (library.parent / FAST).is_file()
            # Beside the package, as scripts/wheel.sh places it.
            beside = sources(folder / "beside" / "python")
            place(library, beside / "tuff")
            wheel = environment.wheel(beside)
            check_wheel(wheel, native, fast)
            check_installation(environment, wheel)
            # pip install ./python in a checkout that has been built. Later builds in the same folder keep nothing old.
            checkout = sources(folder / "checkout" / "python").parent
            (checkout / "include" / "tuff").mkdir(parents=True)
            shutil.copy2(ROOT / "include" / "tuff" / "tuff.h", checkout / "include" / "tuff")
            release = checkout / "build" / "release"
            place(library, release)
            environment.pip("install", "-q", "--no-build-isolation", *OFFLINE, checkout / "python")
            run(environment.python, "-c", PROGRAM, cwd=folder)
            environment.pip("uninstall", "-q", "-y", "tuff")
            built = list(checkout.glob("python/build/lib*/tuff"))
            require(len(built) == 1, f"{built} instead of one folder in which the package was built")
            (built[0] / "libtuff.so.0").touch()
            check_wheel(environment.wheel(checkout / "python"), native, fast)
            shutil.rmtree(release)
            shutil.rmtree(folder / "checkout" / "wheel of checkout")
            check_wheel(environment.wheel(checkout / "python"), "any", fast=False)
            # No library anywhere.
            alone = environment.wheel(sources(folder / "alone" / "python"))
            check_wheel(alone, "any", fast=False)
            check_missing_library(environment, alone)
    print("the package installs")


if __name__ == "__main__":
    for module in ("numpy", "setuptools", "wheel"):
        if importlib.util.find_spec(module) is None:
            print(f"the package python3-{module} is missing")
            sys.exit(0)
    try:
        main()
    except Failure as failure:
        sys.exit(f"error: {failure}")
