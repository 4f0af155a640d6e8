"""What pyproject.toml cannot say: a wheel with a library inside has the tag of its platform, and a checkout's build is
packaged with it.

A libtuff beside the package (python/tuff/) is part of the wheel, and so are the program tuff-compile and the package's
compiled part, which any CPython since 3.9 loads and none needs. If there is no libtuff and this folder is in a checkout
whose preset "release" has been built, the files of that build are copied into the wheel. An
editable installation uses them where they are. Without any library the wheel is for every platform, and its users
install or name one.
"""

import shutil
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
BESIDE = ("tuff-compile", "_fast.abi3.so")  # what goes with a library


def libraries(folder):
    return [file for pattern in ("libtuff.so*", "libtuff*.dylib", "tuff.dll") for file in folder.glob(pattern)]


def built_library():
    """The checkout's library, if there is none beside the package."""
    if libraries(HERE / "tuff") or not (HERE.parent / "include" / "tuff" / "tuff.h").is_file():
        return None
    return next((file for file in libraries(HERE.parent / "build" / "release") if file.name == "libtuff.so.1"), None)


class BuildPackage(build_py):
    def run(self):
        target = Path(self.build_lib) / "tuff"
        if not self.editable_mode and target.is_dir():
            for stale in [*libraries(target), *(target / name for name in BESIDE)]:  # of an earlier build in this folder
                if stale.exists():
                    stale.unlink()
        super().run()
        library = built_library()
        if library is not None and not self.editable_mode:
            shutil.copy2(library, target / library.name)  # the file that the link names
            for name in BESIDE:
                if (library.parent / name).is_file():
                    shutil.copy2(library.parent / name, target / name)


class BuildWheel(bdist_wheel):
    def get_tag(self):
        python, abi, platform = super().get_tag()
        return (python, abi, platform) if self.root_is_pure else ("py3", "none", platform)


class Package(Distribution):
    def has_ext_modules(self):
        return bool(libraries(HERE / "tuff")) or built_library() is not None


setup(distclass=Package, cmdclass={"build_py": BuildPackage, "bdist_wheel": BuildWheel})
