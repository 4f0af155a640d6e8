#!/usr/bin/env bash
# Counts which lines and branches of the library the tests execute.
usage() {
  cat <<'TEXT'
Usage: scripts/coverage.sh [--tests-of FOLDER] [--add REGEX] [--only-report] [--help]

Builds the library with counters of executed lines (preset coverage), runs the tests and samples of the campaigns, and
prints a table of lines and branches by folder. Lines that none reached are listed in build/coverage/unreached.txt, with
the reason from tests/coverage/reasons.toml. The exit status is 1 if a line has no reason, or a reason has no line.

  --tests-of FOLDER   takes the programs that load libtuff.so from this finished build, such as build/release, instead
                      of compiling them once more
  --add REGEX         runs only the programs whose title matches, and adds to the counts of an earlier
                      run, without building anything
  --only-report       of the counts of an earlier run
TEXT
}

tests=build/coverage report=0 only=
while (($#)); do
  case $1 in
    --tests-of) tests=$2; shift ;;
    --add) only=$2; shift ;;
    --only-report) report=1 ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'error: unknown option %s\n\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

coverage=$TUFF_ROOT/build/coverage
# Programs that contain objects of the library, or are loaded by it.
targets=(tuff tuff_coverage_exit tuff_planner_cases tuff_fuzz tuff_internal_tests tuff_damaged_files tuff_hostile_kernels tuff_tool)
loaders=(tuff_tests tuff_vulkan_faults tuff_device_losses tuff_allocation_failures tuff_variant_sweep tuff_gemm_cases
         tuff_test_monitored)
[ "$tests" != build/coverage ] || targets+=("${loaders[@]}")

# run "Title" command…: a failing program is reported, and its lines count all the same.
failed=0
run() {
  local title=$1 log begin status=0
  shift
  [[ $title =~ $only ]] || return 0
  log=$TUFF_LOGS/coverage-$(tr -cs '[:alnum:]\n' - <<<"${title,,}").log
  printf '  %-46s ' "$title"
  begin=$(now_ms)
  env LD_LIBRARY_PATH="$coverage" LD_PRELOAD="$coverage/libtuff_coverage_exit.so" \
    XDG_CACHE_HOME="$TUFF_ROOT/build/test-cache" XDG_RUNTIME_DIR="$TUFF_ROOT/build/test-cache/runtime" nice "$@" >"$log" 2>&1 </dev/null || status=$?
  printf '%s%s\n' "$(duration $(($(now_ms) - begin)))" "$( ((status == 0)) || printf ', failed: see %s' "${log#"$TUFF_ROOT"/}")"
  ((status == 0)) || failed=1
}

# Programs that bash runs expand their own variables.
# shellcheck disable=SC2016
if ((!report)); then
  if [ -z "$only" ]; then
    configure coverage
    ! grep -q '^DNNL_LIBRARY:FILEPATH=/' "$coverage/CMakeCache.txt" || targets+=(tuff_cpu)
    build coverage "${targets[@]}"
    find "$coverage" -name '*.gcda' -delete
  fi
  own=$coverage loader=$TUFF_ROOT/$tests
  run "Planners" "$own/tuff_planner_cases" --count 300000 --seed 1
  # Of these the cases above have too few.
  for operation in conv_backward_filter rnn_backward; do
    run "Planners, $operation" "$own/tuff_planner_cases" --operation "$operation" --count 60000 --seed 7
  done
  # Each variant of the planners' tables, and names that none has, which are refused.
  run "Planners, forced variants" bash -c 'for row in $("$1/tuff_variant_sweep" --list) {gemm,conv,attention,pool}/none; do
      family=${row%/*}
      text=$(env "TUFF_${family^^}_VARIANT=${row#*/}" "$2/tuff_planner_cases" --count 3000 --seed 1 2>&1) ||
        grep "is not a variant" <<<"$text" || { printf "%s\n%s\n" "$row" "$text"; exit 1; }
    done' - "$loader" "$own"
  run "Planners, large operands" "$own/tuff_planner_cases" --large --count 30000 --seed 1
  run "Fuzzer, host" "$own/tuff_fuzz" --backend host --calls 1000000 --seed 1
  run "Fuzzer, both backends" "$own/tuff_fuzz" --calls 100000 --seconds 60 --seed 1
  run "Fuzzer, corpus" "$own/tuff_fuzz" --corpus tests/fuzz/corpus
  run "Tests" env TUFF_TEST_SAMPLE=10:1 "$loader/tuff_tests"
  if [ -f "$own/tuff-backends/libtuff-cpu.so" ]; then
    run "Tests, CPU plug-in" env TUFF_TEST_BACKENDS=cpu TUFF_TEST_SAMPLE=40:1 "$loader/tuff_tests" \
      --gtest_filter="$(printf 'On/%s*:' Gemm BatchedGemm Conv Attention Reduce Softmax Unary Binary Pool Norm Shape Sparse)"
  fi
  run "Internal tests" "$own/tuff_internal_tests"
  run "Vulkan faults" "$loader/tuff_vulkan_faults" --count 800 --seed 1
  run "Vulkan faults, first call" "$loader/tuff_vulkan_faults" --count 300 --only default:first --seed 1
  run "Allocation failures, Vulkan" "$loader/tuff_allocation_failures" vulkan --seconds 120 --seed 1
  run "Allocation failures, host" "$loader/tuff_allocation_failures" host --seconds 30 --seed 1
  run "Device losses" "$loader/tuff_device_losses" --cycles 20 --seed 1
  run "Damaged files" "$own/tuff_damaged_files" --seed 1
  run "Hostile kernels" "$own/tuff_hostile_kernels" --seconds 30 --seed 1
  run "Forced variants" "$loader/tuff_variant_sweep" --seconds 180 --pool 1 --seed 1
  # Paths that variables select.
  run "Tests, staged copies" env TUFF_TRANSFER=staged TUFF_TEST_BACKENDS=vulkan "$loader/tuff_tests" \
    --gtest_filter='On/Buffer*:On/Profile*'
  for way in host download; do
    run "Tests, peers by $way" env "TUFF_PEER_VARIANT=$way" "$loader/tuff_tests" --gtest_filter='On/DevicesPeer.AnySize*'
  done
  for way in descriptors addresses; do
    run "Tests, bound by $way" env "TUFF_BINDING=$way" "$loader/tuff_tests" --gtest_filter='On/GemmEpilogue*:On/Unary.*relu*'
  done
  run "Tests, validation layers" env TUFF_VALIDATION=1 TUFF_LOG=dispatch TUFF_TEST_REDUCED=1 "$loader/tuff_tests" \
    --gtest_filter='On/Buffer*:On/GemmEpilogue*'
  # Drivers without an extension; their programs may be refused.
  run "Hidden extensions" bash -c 'for name in VK_KHR_push_descriptor VK_EXT_memory_budget VK_KHR_timeline_semaphore \
        VK_EXT_external_memory_host VK_KHR_external_memory_fd VK_EXT_robustness2 VK_EXT_calibrated_timestamps; do
      env "LD_LIBRARY_PATH=$2:$LD_LIBRARY_PATH" "FAULTY_VULKAN_HIDES=$name" "$1/tuff_tests" \
        --gtest_filter="Kernel.Computes:KernelErrors.Descriptors:KernelUntrusted.Modules:On/MemoryHost*:On/Memory*Fd*:On/Unary.*relu*" ||
        echo "without $name"
    done' - "$loader" "$loader/tests/faulty"
  run "Wrong variables" bash -c 'for name in LOG COMPILE NATIVE TUNING CACHE_BYTES PREWARM VALIDATION DEBUG_LABELS BINDING \
        TRANSFER PEER_VARIANT POOL_VARIANT VISIBLE_DEVICES DEVICE; do
      env TUFF_LOG=warning "TUFF_$name=nonsense" "$1/tuff_tests" --gtest_filter="On/DevicesSame*:KernelUntrusted.Modules" || echo "TUFF_$name"
    done' - "$loader"
  run "No Vulkan" bash -c 'mkdir -p "$1"; : >"$1/libvulkan.so.1"; : >"$1/libvulkan.so"
    LD_LIBRARY_PATH=$1:$LD_LIBRARY_PATH "$2/tuff" info; VK_LAYER_PATH=$1 TUFF_VALIDATION=1 "$2/tuff" selftest || true' \
    - "$coverage/none" "$own"
  run "No cache folder" env -u HOME XDG_CACHE_HOME= "$own/tuff" selftest --filter softmax
  run "New cache folder" bash -c 'rm -rf "$1"; env -u XDG_CACHE_HOME "HOME=$1" "$2/tuff" selftest --filter softmax' \
    - "$coverage/home" "$own"
  run "Tool, self-test" env TUFF_LOG=dispatch "$own/tuff" selftest
  run "Tool, tune" cmake "-DTOOL=$own/tuff" "-DFOLDER=$coverage/tune" -P tool/tune_test.cmake
  run "Tool, top" "$TUFF_PYTHON" tests/monitoring/monitored.py "$own/tuff" "$loader/tuff_test_monitored"
  run "Tool, cache" cmake "-DTOOL=$own/tuff" "-DFOLDER=$coverage/cache" -P tool/cache_test.cmake
fi
"$TUFF_PYTHON" tests/coverage/report.py build/coverage --unreached build/coverage/unreached.txt
exit "$failed"
