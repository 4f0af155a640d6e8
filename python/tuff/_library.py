"""Finds and loads libtuff."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from pathlib import Path
from typing import Iterator

from ._abi import ABI_VERSION

if sys.platform == "win32":
    _NAMES = ["tuff.dll"]
elif sys.platform == "darwin":
    _NAMES = ["libtuff.1.dylib", "libtuff.dylib"]
else:
    _NAMES = ["libtuff.so.1", "libtuff.so"]


_MISSING = """libtuff was not found: this installation of the package has no library inside. To get one,
  - install a wheel that has one, which scripts/wheel.sh of Tuff's sources builds; or
  - in Tuff's sources, build the library (cmake --preset release && cmake --build --preset release --target tuff), then
    pip install ./python again, which packs that library; or
  - set TUFF_LIBRARY to the path of a libtuff.so.1.
A device also needs a Vulkan loader and driver: on Debian, the packages libvulkan1 and mesa-vulkan-drivers."""


def _files() -> Iterator[Path]:
    """Candidate paths, of which the first that exists is used: in the package, then the release build of the checkout that
    the package is in."""
    package = Path(__file__).resolve().parent
    for name in _NAMES:
        yield package / name
    checkout = package.parent.parent
    if (checkout / "include" / "tuff" / "tuff.h").is_file():
        for name in _NAMES:
            yield checkout / "build" / "release" / name


def _open(path: str) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(path)
        library.tuff_abi_version.restype = ctypes.c_uint32
    except (OSError, AttributeError) as error:
        raise ImportError(f"cannot use {path} as libtuff: {error}") from error
    found = library.tuff_abi_version()
    if found != ABI_VERSION:
        raise ImportError(f"{path} has ABI version {found}, this package needs {ABI_VERSION}")
    return library


def load() -> ctypes.CDLL:
    """Loads the library that TUFF_LIBRARY names. If it is not set, tries the package's folder, the checkout's release
    build and the system's libraries, in this order. Raises an ImportError that lists the places searched."""
    named = os.environ.get("TUFF_LIBRARY")
    if named:
        return _open(named)
    looked = []
    for path in _files():
        if path.is_file():
            return _open(str(path))
        looked.append(str(path))
    system = ctypes.util.find_library("tuff")
    if system:
        return _open(system)
    for name in _NAMES:
        try:
            ctypes.CDLL(name)
        except OSError:
            looked.append(f"{name} (system)")
        else:
            return _open(name)
    raise ImportError(_MISSING + "\nLooked for:\n  " + "\n  ".join(looked))
