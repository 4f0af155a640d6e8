#!/usr/bin/env bash
# From a fresh machine to a demonstration: sets up, builds, and runs it.
usage() {
  cat <<'TEXT'
Usage: scripts/demo.sh [--out DIR] [--device NAME] [--help]

Installs the packages that are missing (as root or through sudo), builds libtuff.so, then
  1. trains a small network to read handwritten digits,
  2. filters a photograph,
  3. draws attention over a paragraph of text.

  --out DIR       the folder for the pictures (default: out)
  --device NAME   a device's index or part of its name, as `tuff info` shows them (default: the best)
TEXT
}

out=out
while (($#)); do
  case $1 in
    --out) out=${2:?--out needs a folder}; shift 2 ;;
    --device) export TUFF_DEVICE=${2:?--device needs a name}; shift 2 ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'error: unknown option %s\n\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
done
case $out in /*) ;; *) out=$PWD/$out ;; esac

# shellcheck source=scripts/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
as_owner --out "$out" ${TUFF_DEVICE:+--device "$TUFF_DEVICE"}

say "Preparing libtuff.so"
configure release
build release tuff tuff_tool
say ""
export TUFF_LIBRARY=$TUFF_ROOT/build/release/libtuff.so
export PYTHONPATH=$TUFF_ROOT/python${PYTHONPATH:+:$PYTHONPATH}
exec "$TUFF_PYTHON" examples/demo/demo.py --out "$out"
