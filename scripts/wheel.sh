#!/usr/bin/env bash
# Builds build/wheel/dist/tuff-<version>-py3-none-manylinux_2_28_x86_64.whl: the Python package with libtuff and
# tuff-compile inside, for every x86-64 Linux with glibc 2.28 or later. The compiler is Zig's (PyPI's ziglang); shaderc,
# glslang, SPIRV-Tools, SPIRV-Cross and fmt are built with it from Debian 12's source packages and linked statically. All
# versions are pinned; apt and pip verify what they download. Needs a Debian whose mirror has Debian 12, dpkg-dev,
# binutils, python3-venv, python3-dev, CMake and Ninja; changes nothing outside build/wheel. Later runs build only what has changed.
# docs/building.md describes the result. TUFF_JOBS=n limits the jobs of a build.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

TAG=manylinux_2_28_x86_64
MAX_BYTES=$((20 * 1000 * 1000))
SUITE=bookworm
SOURCES=(shaderc=2023.2-1 glslang=12.0.0-2 spirv-tools=2023.1-2 spirv-cross=2021.01.15+1.3.239.0-1 fmtlib=9.1.0+ds1-2)
# Headers alone: their binary packages are the same files.
HEADERS=(spirv-headers=1.6.1+1.3.239.0-1 libvulkan-dev=1.3.239.0-1 libvulkan-volk-dev=1.3.239.0-1 libxxhash-dev=0.8.1-1
  nlohmann-json3-dev=3.11.2-2)
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

export TUFF_WHEEL=${TUFF_WHEEL:-$TUFF_ROOT/build/wheel}
export ZIG_GLOBAL_CACHE_DIR=$TUFF_WHEEL/zig-cache ZIG_LOCAL_CACHE_DIR=$TUFF_WHEEL/zig-cache
FILES=$TUFF_ROOT/scripts/wheel
PYTHON=$TUFF_WHEEL/tools/bin/python
jobs=${TUFF_JOBS:+-j$TUFF_JOBS}

for program in apt-get dpkg-source dpkg-deb strip readelf nm cmake ninja; do
  command -v $program >/dev/null || die "$program is missing; on Debian: apt-get install dpkg-dev binutils cmake ninja-build"
done
$TUFF_PYTHON -c 'import os, sys, sysconfig; sys.exit(not os.path.isfile(sysconfig.get_path("include") + "/Python.h"))' ||
  die "Python's headers are missing; on Debian: apt-get install python3-dev"
[ -f $KEYRING ] || die "$KEYRING is missing: the sources are Debian's, so are the keys that sign them"
mkdir -p "$TUFF_WHEEL"

# done_before name what…: whether the step of this name was completed with the same inputs.
done_before() { [ "$(cat "$TUFF_WHEEL/$1.done" 2>/dev/null)" = "${*:2}" ]; }
is_done() { printf '%s\n' "${*:2}" >"$TUFF_WHEEL/$1.done"; }

tools() {
  rm -rf "$TUFF_WHEEL/tools"
  $TUFF_PYTHON -m venv "$TUFF_WHEEL/tools"
  "$PYTHON" -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r "$FILES/requirements.txt"
  local zig
  zig=$("$PYTHON" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
  mkdir -p "$TUFF_WHEEL/bin"
  local name
  for name in cc c++ ar ranlib; do
    local target=
    [[ $name != c* ]] || target='-target x86_64-linux-gnu.2.28'
    printf '#!/bin/sh\nexec "%s" %s %s "$@"\n' "$zig" "$name" "$target" >"$TUFF_WHEEL/bin/zig-$name"
    chmod +x "$TUFF_WHEEL/bin/zig-$name"
  done
}

# apt-get with lists and a cache of its own. The mirror is the machine's.
own_apt() {
  local apt=$TUFF_WHEEL/apt
  apt-get -q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$apt/lists" \
    -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root -o Acquire::Retries=3 "$@"
}

sources() {
  local apt=$TUFF_WHEEL/apt mirror
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(SITE) $(ORIGIN) $(LABEL)' 'Created-By: Packages' |
    sed -n 's/ Debian Debian$//p' | head -n 1)
  [ -n "$mirror" ] || die "apt knows no Debian mirror; run apt-get update on a Debian"
  rm -rf "$apt/packages" "$TUFF_WHEEL/sources" "$TUFF_WHEEL/prefix"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/packages" "$TUFF_WHEEL/sources" "$TUFF_WHEEL/prefix"
  printf '%s [signed-by=%s] %s %s main\n' deb $KEYRING "$mirror" $SUITE deb-src $KEYRING "$mirror" $SUITE >"$apt/sources.list"
  own_apt update
  (cd "$apt/packages" && own_apt source --download-only "${SOURCES[@]}" && own_apt download "${HEADERS[@]}")
  local file
  for file in "$apt"/packages/*.dsc; do (cd "$TUFF_WHEEL/sources" && dpkg-source -x "$file"); done
  for file in "$apt"/packages/*.deb; do dpkg-deb -x "$file" "$TUFF_WHEEL/prefix"; done
}

dependencies() {
  cmake -Wno-dev -S "$FILES" -B "$TUFF_WHEEL/dependencies" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_TOOLCHAIN_FILE="$FILES/zig.cmake" -DSOURCES="$TUFF_WHEEL/sources" -DHEADERS="$TUFF_WHEEL/prefix/usr" \
    -DCMAKE_INSTALL_PREFIX="$TUFF_WHEEL/prefix/usr"
  # shellcheck disable=SC2086
  cmake --build "$TUFF_WHEEL/dependencies" $jobs
  cmake --install "$TUFF_WHEEL/dependencies"
}

library() {
  cmake -S "$TUFF_ROOT" -B "$TUFF_WHEEL/library" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_TOOLCHAIN_FILE="$FILES/zig.cmake" -DTUFF_TESTS=OFF -DTUFF_BENCH=OFF -DTUFF_TOOL=OFF -DTUFF_WERROR=OFF
  # shellcheck disable=SC2086
  cmake --build "$TUFF_WHEEL/library" --target tuff --target tuff_python $jobs
}

# The package's folder with the two files inside, and the licences of what they contain.
package() {
  local stage=$TUFF_WHEEL/stage file name
  rm -rf "$stage" "$TUFF_WHEEL/dist"
  mkdir -p "$stage/licenses"
  cp -r python/pyproject.toml python/setup.py python/README.md python/tuff "$stage"
  rm -rf "$stage/tuff/__pycache__"
  strip --strip-unneeded -o "$stage/tuff/libtuff.so.1" "$TUFF_WHEEL/library/libtuff.so.1"
  strip --strip-unneeded -o "$stage/tuff/tuff-compile" "$TUFF_WHEEL/library/tuff-compile"
  strip --strip-unneeded -o "$stage/tuff/_fast.abi3.so" "$TUFF_WHEEL/library/_fast.abi3.so"
  cp LICENSE "$stage/licenses"
  for file in "$TUFF_WHEEL"/sources/*/debian/copyright; do
    name=$(basename "$(dirname "$(dirname "$file")")")
    cp "$file" "$stage/licenses/${name%-[0-9]*}"
  done
  for name in "${HEADERS[@]%%=*}"; do cp "$TUFF_WHEEL/prefix/usr/share/doc/$name/copyright" "$stage/licenses/$name"; done
  local zig
  zig=$("$PYTHON" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')
  cp "$zig/LICENSE" "$stage/licenses/zig"
  for name in libcxx libcxxabi libunwind; do cp "$zig/lib/$name/LICENSE.TXT" "$stage/licenses/$name"; done
  printf '[metadata]\nlicense_files = licenses/*\n[bdist_wheel]\nplat_name = %s\n' $TAG >"$stage/setup.cfg"
  "$PYTHON" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w "$TUFF_WHEEL/dist" "$stage"
}

# Only tuff_*, only glibc, and as hardened as docs/building.md says.
verify() {
  local wheel size unpacked=$TUFF_WHEEL/unpacked
  wheel=$(echo "$TUFF_WHEEL"/dist/*.whl)
  size=$(stat -c %s "$wheel")
  ((size < MAX_BYTES)) || die "the wheel has $size bytes, more than $MAX_BYTES"
  local shown allowed
  shown=$("$PYTHON" -m auditwheel show "$wheel")
  say "$shown"
  allowed=$(grep -o 'manylinux_2_[0-9]*_x86_64' <<<"${shown#*consistent with}" | head -n 1)
  if [ -z "$allowed" ] || [ "$(printf '%s\n' "$allowed" $TAG | sort -V | tail -n 1)" != $TAG ]; then
    die "auditwheel allows ${allowed:-no manylinux tag}, not $TAG"
  fi
  rm -rf "$unpacked"
  "$PYTHON" -m zipfile -e "$wheel" "$unpacked"
  local files=$unpacked/tuff/libtuff.so.1,$unpacked/tuff/tuff-compile file canaries
  for file in ${files//,/ }; do # reads of the canary, of which each function that checks its stack has one at least
    canaries=$(objdump -d "$file" | grep -c '%fs:0x28')
    ((canaries >= 1000)) || die "$file: only $canaries functions check their stack"
  done
  cmake -DLIBRARY="$unpacked/tuff/libtuff.so.1" -DHEADER=include/tuff/tuff.h -DNM=nm -DREADELF=readelf -P tests/abi/exports.cmake
  files+=,$unpacked/tuff/_fast.abi3.so
  cmake -DFILES="$files" -DLIBRARY="$unpacked/tuff/libtuff.so.1" -DREADELF=readelf -DNM=nm -DCET=OFF -DFORTIFY=OFF -DWHEEL=ON \
    -P tests/abi/hardening.cmake
  $TUFF_PYTHON tests/packaging/check.py --wheel "$wheel" --platform $TAG
}

# Each step is a run of this script: a function that a condition calls would not end at its first error.
if [ "${1:-}" = --step ]; then
  "$2"
  exit
fi
(($# == 0)) || die "$0 takes no arguments"
run_step() { step "$1" "wheel-$2" "$TUFF_ROOT/scripts/wheel.sh" --step "$2"; }

say "Building a wheel for $TAG in ${TUFF_WHEEL#"$TUFF_ROOT"/}"
tools_key=$(sha256sum <"$FILES/requirements.txt")
if ! done_before tools "$tools_key" "$TUFF_WHEEL"; then
  run_step "Installing Zig and auditwheel" tools
  is_done tools "$tools_key" "$TUFF_WHEEL"
fi
if ! done_before sources "${SOURCES[@]}" "${HEADERS[@]}"; then
  run_step "Fetching Debian's sources" sources
  is_done sources "${SOURCES[@]}" "${HEADERS[@]}"
fi
run_step "Building shaderc and what it needs" dependencies
run_step "Building libtuff" library
run_step "Packing" package
run_step "Verifying" verify
say "$(ls "$TUFF_WHEEL"/dist/*.whl): $(($(stat -c %s "$TUFF_WHEEL"/dist/*.whl) / 1000)) kB"
