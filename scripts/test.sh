#!/usr/bin/env bash
# Builds everything and runs every test; the last line is "N passed, N failed".
usage() {
  cat <<'TEXT'
Usage: scripts/test.sh [--sanitize] [--whole] [--help]

Installs the packages that are missing (as root or through sudo), builds everything and runs all tests,
also under the Vulkan validation layers.

  --sanitize   then builds again with AddressSanitizer and UndefinedBehaviorSanitizer and runs the
               tests there, which takes about as long again
  --whole      runs every row of the large tables; without it, one in 24, by a seed that is fresh each time;
               TUFF_TEST_SAMPLE_SEED=seed in the environment repeats a sample
TEXT
}

sanitize=0 sample=24
for option in "$@"; do
  case $option in
    --sanitize) sanitize=1 ;;
    --whole) sample=1 ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'error: unknown option %s\n\n' "$option" >&2; usage >&2; exit 2 ;;
  esac
done

# shellcheck source=scripts/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
as_owner "$@"

jobs=${CTEST_PARALLEL_LEVEL:-$(nproc)}
total=0 failed=0 skipped=0

# run_tests <preset> "title": runs all CTest tests, even after failures, and adds up the results.
run_tests() {
  local preset=$1 title=$2 report=$TUFF_LOGS/$1-tests.xml log=$TUFF_LOGS/$1-tests.log begin status=0 head count bad
  rm -f "$report"
  printf '  %-46s ' "$title"
  begin=$(now_ms)
  ctest --test-dir "build/$preset" --no-tests=error -j "$jobs" --timeout 600 --output-on-failure \
    --output-junit "$report" >"$log" 2>&1 </dev/null || status=$?
  [ -s "$report" ] || {
    tail -n 40 "$log" >&2
    die "CTest wrote no report; see ${log#"$TUFF_ROOT"/}"
  }
  head=$(sed '/<testcase/,$d' "$report") # the part before the first test: the totals
  count=$(total_of tests "$head")
  bad=$(total_of failures "$head")
  # CTest reports a test without its program as "not run", and does not count it as a failure in its totals.
  ((status == 0 || bad > 0)) || bad=1
  total=$((total + count)) failed=$((failed + bad))
  skipped=$((skipped + $(total_of skipped "$head") + $(total_of disabled "$head")))
  printf '%s, %d tests\n' "$(duration $(($(now_ms) - begin)))" "$count"
  if ((bad)); then
    show_failures "$log"
    sed -n '/The following tests FAILED/,$p' "$log"
    say "  Their whole output is in ${log#"$TUFF_ROOT"/}"
  fi
}

# show_failures <log>: the end of each failed test's output, which CTest prints after the test's line. Whoever reads a report
# of continuous integration has no other access to it.
show_failures() {
  awk '
    function show(  i) {
      if (title != "") { print ""; print title; for (i = n > 30 ? n - 30 : 0; i < n; i++) print "    " substr(lines[i], 1, 400) }
      title = ""; n = 0
    }
    /^ *[0-9]+\/[0-9]+ +Test +#[0-9]+: / || /^ +Start +[0-9]+: / || /^[0-9]+% tests passed/ {
      show()
      if ($0 ~ /\*\*\*/ && $0 !~ /Skipped/) title = $0
      next
    }
    title != "" && NF { lines[n++] = $0 }
    END { show() }' "$1"
}

# total_of <attribute> <text>: the attribute's value.
total_of() { sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" <<<"$2"; }

# NVIDIA's assembler checks the kernels in PTX without a GPU. Without PyPI that test is skipped, and says so.
fetch_assembler() {
  local venv=$TUFF_ROOT/build/ptxas-venv
  [ -x "$venv/bin/python" ] || "$TUFF_PYTHON" -m venv --clear "$venv"
  "$venv/bin/python" -m pip install --no-deps nvidia-cuda-nvcc-cu12==12.9.86 || echo "PyPI could not be reached"
}
compgen -G "$TUFF_ROOT/build/ptxas-venv/lib/python3*/site-packages/nvidia/*/bin/ptxas" >/dev/null ||
  step "Fetching NVIDIA's assembler from PyPI" ptxas fetch_assembler

# All entries keep the same rows, whose kernels are then compiled once.
export TUFF_TEST_SAMPLE_SEED=${TUFF_TEST_SAMPLE_SEED:-$((RANDOM << 15 | RANDOM))}
((sample == 1)) || say "One row in $sample of each large table is tested: TUFF_TEST_SAMPLE_SEED=$TUFF_TEST_SAMPLE_SEED repeats this sample"

say "Tuff, optimised"
configure release -DTUFF_TEST_SAMPLE=$sample
build release
run_tests release "Testing (release)"

if ((sanitize)); then
  say "Tuff, with AddressSanitizer and UndefinedBehaviorSanitizer"
  configure asan -DTUFF_TEST_SAMPLE=$sample
  build asan
  run_tests asan "Testing (asan)"
fi

say ""
say "The whole run took $(duration $(((SECONDS - TUFF_START) * 1000)))."
((skipped == 0)) || say "$skipped skipped: this device, or what is installed here, lacks what they need."
say "$((total - failed - skipped)) passed, $failed failed"
((failed == 0))
