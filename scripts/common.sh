# Shared by the scripts in this folder; sourced, not run.
# shellcheck shell=bash disable=SC2034
set -euo pipefail

TUFF_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$TUFF_ROOT"
TUFF_LOGS=$TUFF_ROOT/build
TUFF_PYTHON=/usr/bin/python3 # the one with the distribution's NumPy
TUFF_START=$SECONDS
mkdir -p "$TUFF_LOGS"

say() { printf '%s\n' "$*"; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# A duration for people: 7.4 s, 2 min 05 s.
duration() {
  if (($1 < 60000)); then
    printf '%d.%d s' $(($1 / 1000)) $(($1 % 1000 / 100))
  else
    printf '%d min %02d s' $(($1 / 60000)) $(($1 % 60000 / 1000))
  fi
}

now_ms() { printf '%s' "$(($(date +%s%N) / 1000000))"; }

# step "What happens" log-name command…: prints one line; the command's output goes to build/<log-name>.log. If the
# command fails, ends the script with the log's last lines.
step() {
  local title=$1 log=$TUFF_LOGS/$2.log begin
  shift 2
  printf '  %-46s ' "$title"
  begin=$(now_ms)
  if "$@" >"$log" 2>&1 </dev/null; then
    printf '%s\n' "$(duration $(($(now_ms) - begin)))"
  else
    local status=$?
    printf 'failed after %s\n\n' "$(duration $(($(now_ms) - begin)))"
    tail -n 40 "$log" >&2
    explain_failure "$log"
    printf '\nerror: "%s" failed (exit status %d); the whole log is in %s\n' "$title" "$status" "${log#"$TUFF_ROOT"/}" >&2
    exit "$status"
  fi
}

# Explains failures that apt-get's or a compiler's message leaves unclear.
explain_failure() {
  if grep -q 'Unable to locate package' "$1"; then
    printf '\nhint: on Ubuntu these packages are in "universe": sudo add-apt-repository universe\n' >&2
  elif grep -qE 'Could not resolve|Failed to fetch|Unable to fetch' "$1"; then
    printf '\nhint: the package mirror could not be reached; see /etc/apt/sources.list and the network\n' >&2
  elif grep -qE 'No matching distribution|NewConnectionError|Could not find a version|ConnectTimeoutError|ReadTimeoutError' "$1"; then
    printf '\nhint: PyPI could not be reached, or has no such package; see the network, and pip config list\n' >&2
  elif grep -qE 'Killed|internal compiler error|No space left' "$1"; then
    printf '\nhint: a build needs about 1.5 GiB of memory for each job and 3 GiB of disk; CMAKE_BUILD_PARALLEL_LEVEL=1 helps\n' >&2
  fi
}

# configure <preset> [option…]: from scratch if the tree has been moved or copied.
configure() {
  local cache=build/$1/CMakeCache.txt fresh=()
  if [ -f "$cache" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$TUFF_ROOT" "$cache"; then
    fresh=(--fresh)
  fi
  step "Configuring ($1)" "$1-configure" cmake --preset "$1" "${fresh[@]}" "${@:2}"
}

# build <preset> [target…]
build() {
  local preset=$1 targets=()
  shift
  (($# == 0)) || targets=(--target "$@")
  step "Building ($preset)" "$preset-build" cmake --build --preset "$preset" "${targets[@]}"
}

# as_owner "$@": under sudo, only the set-up needs root. Continues as the user who ran sudo, so that the tree and the
# shader cache remain theirs.
as_owner() {
  if [ "$(id -u)" = 0 ] && [ -n "${SUDO_UID:-}" ] && [ "$SUDO_UID" != 0 ] && sudo -n -u "#$SUDO_UID" true 2>/dev/null; then
    chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$TUFF_LOGS"
    exec sudo -n -H -u "#$SUDO_UID" -- "$TUFF_ROOT/scripts/$(basename "$0")" "$@"
  fi
}
