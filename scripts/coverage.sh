#!/usr/bin/env bash
# Counts which lines and branches of the library the tests execute.
usage() {
  cat <<'TEXT'
Usage: scripts/coverage.sh [--tests-of FOLDER] [--only-report] [--help]

Builds the library with counters of executed lines (preset coverage), runs the tests, and prints a table of
lines and branches by folder. Lines that no test reached are listed in build/coverage/unreached.txt, with the
reason from tests/coverage/reasons.toml.

  --tests-of FOLDER   takes tuff_tests from this finished build, such as build/release, instead of compiling
                      it once more: it loads the library with counters
  --only-report       of the counts of an earlier run
TEXT
}

tests=build/coverage report=0
while (($#)); do
  case $1 in
    --tests-of) tests=$2; shift ;;
    --only-report) report=1 ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'error: unknown option %s\n\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

coverage=$TUFF_ROOT/build/coverage
targets=(tuff tuff_planner_cases tuff_fuzz tuff_internal_tests)
[ "$tests" != build/coverage ] || targets+=(tuff_tests)

# run "title" log-name command…: a failing test is reported, and its lines count all the same.
run() {
  local title=$1 log=$TUFF_LOGS/$2.log begin status=0
  shift 2
  printf '  %-46s ' "$title"
  begin=$(now_ms)
  LD_LIBRARY_PATH=$coverage XDG_CACHE_HOME=$TUFF_ROOT/build/test-cache nice "$@" >"$log" 2>&1 </dev/null || status=$?
  printf '%s%s\n' "$(duration $(($(now_ms) - begin)))" "$( ((status == 0)) || printf ', failed: see %s' "${log#"$TUFF_ROOT"/}")"
}

if ((!report)); then
  configure coverage
  build coverage "${targets[@]}"
  find "$coverage" -name '*.gcda' -delete
  run "Planners" coverage-planners "$coverage/tuff_planner_cases" --count 300000 --seed 1
  run "Fuzzer, host" coverage-fuzz-host "$coverage/tuff_fuzz" --backend host --calls 1000000 --seed 1
  run "Fuzzer, both backends" coverage-fuzz "$coverage/tuff_fuzz" --calls 100000 --seconds 60 --seed 1
  run "Fuzzer, corpus" coverage-corpus "$coverage/tuff_fuzz" --corpus tests/fuzz/corpus
  TUFF_TEST_SAMPLE=10:1 run "Tests" coverage-tests "$TUFF_ROOT/$tests/tuff_tests"
  run "Internal tests" coverage-internal "$coverage/tuff_internal_tests"
fi
"$TUFF_PYTHON" tests/coverage/report.py build/coverage --unreached build/coverage/unreached.txt
