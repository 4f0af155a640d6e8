#!/usr/bin/env bash
# Installs what building, testing and showing Tuff needs, from the distribution's own packages: Debian 12, Debian 13,
# Ubuntu 24.04. If everything is installed, it does nothing, in well under a second. Run by demo.sh and test.sh; may be
# run alone. TUFF_SKIP_SETUP=1 leaves the machine unchanged.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

PACKAGES=(
  # build
  g++ cmake ninja-build ccache pkg-config
  # dependencies of libtuff.so
  libvulkan-dev libvulkan-volk-dev libshaderc-dev libspirv-cross-c-shared-dev libfmt-dev libxxhash-dev
  nlohmann-json3-dev
  # libtuff-cpu
  libdnnl-dev
  # a loader and a Vulkan device for machines without a GPU
  libvulkan1 mesa-vulkan-drivers
  # tool, tests, benchmarks
  libcli11-dev libgtest-dev libgmock-dev libbenchmark-dev libopenblas-dev vulkan-validationlayers spirv-tools
  # bindings for other languages, and the demo's data and pictures
  python3 python3-dev python3-venv python3-setuptools python3-wheel python3-numpy python3-scipy python3-pytest python3-sklearn python3-skimage python3-matplotlib python3-pil
  luajit ruby bindgen rustc
  # generating code from the header, and comparing it with earlier versions
  python3-clang abigail-tools
)

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${binary:Package}\n' 2>/dev/null | sed -n 's/^installed \([^:]*\).*/\1/p')
  printf '%s\n' "${PACKAGES[@]}" | grep -vxFf <(printf '%s\n' "$installed") || true
}

require_administrator() {
  as_root=()
  [ "$(id -u)" = 0 ] && return
  command -v sudo >/dev/null || die "packages are missing and neither root nor sudo is there to install them.
  Ask an administrator for: apt-get install $*"
  # Without a terminal nobody can enter sudo's password.
  if [ -t 0 ]; then sudo -v; else sudo -n true 2>/dev/null; fi || die "sudo did not let this user install packages.
  Ask an administrator for: apt-get install $*"
  as_root=(sudo)
}

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a \
    apt-get -q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@"
}

[ "${TUFF_SKIP_SETUP:-}" != 1 ] || return 0 2>/dev/null || exit 0
{ command -v dpkg-query && command -v apt-get; } >/dev/null ||
  die "this machine has no apt-get. Install the packages named in scripts/setup.sh by other means, then set TUFF_SKIP_SETUP=1."

mapfile -t missing < <(missing_packages)
if ((${#missing[@]})); then
  say "Setting up: ${#missing[@]} packages of ${#PACKAGES[@]} are missing"
  require_administrator "${missing[@]}"
  step "Reading the package lists" setup-lists apt update
  step "Installing ${#missing[@]} packages and their dependencies" setup-install apt install --no-install-recommends "${missing[@]}"
fi
