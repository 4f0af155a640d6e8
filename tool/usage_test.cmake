# Run by CTest: cmake -DTOOL=… -DPYTHON=… -P usage_test.cmake
# How the tool handles command lines, the environment, and output that cannot be written. A wrong command line or
# environment ends with status 2 and a list of valid values.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(env ${CMAKE_COMMAND} -E env)
foreach(variable COLUMNS TUFF_DEVICE TUFF_VISIBLE_DEVICES TUFF_LOG TUFF_CACHE_BYTES)
  unset(ENV{${variable}})
endforeach()

# --- a filter without matches lists what exists ----------------------------------------------------------
run(2 "error: --filter: tuff bench has nothing with \"nosuchop\" in its name.*hint: available: .*conv2d.*softmax"
    ${TOOL} bench --filter nosuchop)
run(2 "error: --filter: tuff selftest has nothing with \"nosuchop\".*hint: available: .*unary relu" ${TOOL} selftest --filter nosuchop)
run(2 "did you mean softmax" ${TOOL} selftest --filter sotfmax)
run(2 "did you mean softmax" ${TOOL} bench --filter sotfmax)
# A shape that only large devices have is rejected once the device is known.
run(2 "tuff bench on this device has nothing with \"8192 x 8192\"" ${TOOL} bench --backend host --filter "8192 x 8192")
# Feature names that tuff info lists select rows. A filter is checked before the device, so for most of them it is enough that the
# device is what is refused.
run(0 "\"feature\": \"reduce\"" ${TOOL} bench --backend host --seconds 0.01 --filter reduce --json)
foreach(name binary unary layer_norm variates sparse_convert)
  run(2 "error: --device \"no such device\"" ${TOOL} bench --filter ${name} --device "no such device")
endforeach()

# --- other invalid values ---------------------------------------------------------------------------------
run(2 "\"f99\" is not one of f32" ${TOOL} tune --type f99)
run(2 "not one of f32" ${TOOL} tune --type ,)
run(2 "--budget: \"-5\" is not a number" ${TOOL} tune --budget=-5)
run(2 "--budget: \"nan\" is not a number" ${TOOL} tune --budget nan)
run(2 "--seconds: \"nan\" is not a number" ${TOOL} bench --seconds nan)
run(2 "\"vulcan\" is not one of vulkan, host, auto; did you mean vulkan" ${TOOL} bench --backend vulcan)
run(2 "--kind: \"spriv\" is not one of spirv.*did you mean spirv" ${TOOL} cache clear --kind spriv)
foreach(command selftest bench)
  run(2 "--native: \"of\" is not one of on, off" ${TOOL} ${command} --native of)
endforeach()
run(0 "\"feature\": \"softmax\"" ${TOOL} bench --native off --seconds 0.01 --filter softmax --json)
run(0 "\"failed\": 0" ${env} TUFF_NATIVE=off ${TOOL} selftest --native on --filter softmax --json)
run(0 "PTX kernels +(on|off: [^\n]+)" ${TOOL} info)
run(2 "the backend host has no devices" ${TOOL} bench --backend host --device 0)
foreach(command info selftest bench tune "cache;prewarm")
  run(2 "error: --device \"no such device\" is not a device of this machine\nhint: [^\n]*index[^\n]*available:\n +0 +[0-9a-f-]+  [^\n]+\n"
      ${TOOL} ${command} --device "no such device")
  if(output MATCHES "install")
    message(FATAL_ERROR "it suggests to install a driver, and none is missing:\n${output}")
  endif()
endforeach()

# --- commands, options ------------------------------------------------------------------------------------
run(2 "Usage: tuff.*no command given; needs info, selftest, bench, tune, cache or top" ${TOOL})
run(0 "Usage: tuff COMMAND.*Environment:.*Exit status: 0" ${TOOL} help)
run(2 "tuff has no command \"inof\"; did you mean info" ${TOOL} inof)
run(2 "tuff has no command \"inof\"; did you mean info" ${TOOL} inof --help)
run(2 "tuff has no command \"inof\"; did you mean info" ${TOOL} help inof)
run(2 "tuff has no command \"self\"; did you mean selftest" ${TOOL} self)
run(2 "tuff has no command \"zzzzzz\"\nhint: available: info" ${TOOL} zzzzzz)
run(2 "tuff cache has no command \"clera\"; did you mean clear" ${TOOL} cache clera)
run(2 "tuff cache has no command \"clera\"; did you mean clear" ${TOOL} cache --json clera)
run(2 "tuff bench has no option --sconds; did you mean --seconds.*hint: tuff bench --help" ${TOOL} bench --sconds 3)
run(2 "unexpected argument \"gemm\"" ${TOOL} bench gemm)
foreach(flag -V --version)
  run(0 "^tuff [0-9.]+ \\(ABI 1\\)" ${TOOL} ${flag})
endforeach()
foreach(command info selftest bench tune cache top "cache;list" "cache;clear" "cache;prewarm")
  string(REPLACE ";" " " words "${command}")
  run(0 "Usage: tuff ${words} .*Examples:.*tuff ${words}.*Exit status: 0.*; 1 .*; 2 .*; 130 " ${TOOL} ${command} --help)
  set(help "${output}")
  run(0 "" ${TOOL} help ${command})
  if(NOT output STREQUAL help)
    message(FATAL_ERROR "tuff help ${words} is not tuff ${words} --help:\n${output}")
  endif()
  # Each command's examples are its own.
  foreach(other info selftest bench tune cache top)
    if(NOT words MATCHES "^${other}" AND help MATCHES "\n  tuff ${other}")
      message(FATAL_ERROR "the help of ${words} has examples of ${other}:\n${help}")
    endif()
  endforeach()
endforeach()

# --- the environment --------------------------------------------------------------------------------------
foreach(wrong "TUFF_LOG=nonsense;off, error, warning, info" "TUFF_LOG=WARNING;off, error, warning, info"
        "TUFF_CACHE_BYTES=abc;a number, or one with K, M or G" "TUFF_CACHE_BYTES=-1;a number" "TUFF_PREWARM=yes;0 or 1"
        "TUFF_VALIDATION=true;0 or 1" "TUFF_BINDING=address;descriptors or addresses" "TUFF_TRANSFER=x;staged"
        "TUFF_REDUCE_VARIANT=x;gpu or cpu" "TUFF_PEER_VARIANT=x;device, host or download" "TUFF_COMPILE=/no/such;a file")
  list(GET wrong 0 variable)
  list(GET wrong 1 wants)
  string(REPLACE "=" " is \"" says "${variable}")
  run(2 "error: in the environment, ${says}\", needs ${wants}" ${env} ${variable} ${TOOL} info)
endforeach()
run(2 "TUFF_LOG is .*; TUFF_PREWARM is " ${env} TUFF_LOG=x TUFF_PREWARM=x ${TOOL} cache)
foreach(command info selftest bench tune "cache;prewarm")
  run(2 "error: TUFF_DEVICE \"zzz\" is not a device of this machine\nhint: [^\n]*available:\n +0 " ${env} TUFF_DEVICE=zzz ${TOOL} ${command})
endforeach()
run(2 "TUFF_VISIBLE_DEVICES: no device is named like \"zzz\"; available: 0 " ${env} TUFF_VISIBLE_DEVICES=zzz ${TOOL} info)
run(0 "warning: TUFF_DEVCE in the environment is not a variable of Tuff; did you mean TUFF_DEVICE" ${env} TUFF_DEVCE=0 ${TOOL} info)
run(0 "warning: TUFF_SOMETHING_ELSE in the environment .* --help lists them" ${env} TUFF_SOMETHING_ELSE=0 ${TOOL} info)
run(1 "TUFF_GEMM_VARIANT=nonsense is not a variant of gemm" ${env} TUFF_GEMM_VARIANT=nonsense ${TOOL} selftest --filter batched_gemm)
run(0 "Refused|operations" ${env} TUFF_LOG= TUFF_TEST_BACKENDS=host TUFF_LOG=off TUFF_CACHE_BYTES=64M ${TOOL} info)
if(output MATCHES "warning:")
  message(FATAL_ERROR "it warns of a valid environment:\n${output}")
endif()

# --- JSON -------------------------------------------------------------------------------------------------
set(folder ${CMAKE_CURRENT_BINARY_DIR}/usage-json)
if(PYTHON)
  file(WRITE ${folder}/check.py "
import json, subprocess, sys
def no(word): raise ValueError(word + ' is no JSON')
done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE)
value = json.loads(done.stdout.decode('utf-8'), parse_constant=no)
assert done.returncode == 0, done.returncode
assert eval(sys.argv[1]), value
")
  foreach(row "'index' in value[0] and value[-1]['index'] is None and value[0]['index'] == 0;info"
              "all(d['memory_free_bytes'] is None or d['memory_free_bytes'] > 0 for d in value);info"
              "value[-1]['ptx'] is None and all(d['ptx'] != bool(d['ptx_off_because']) for d in value[:-1]);info"
              "value[0]['failed'] == 0;selftest;--filter;softmax"
              "value['results'] and all('stable' in r for r in value['results']);bench;--seconds;0.01;--filter;softmax"
              "value[0]['product'].startswith('f32');tune;--list;--type;f32"
              "value['products'] and value['table'] is None;tune;--dry-run;--type;f32;--budget;0.5"
              "'kinds' in value;cache" "'kinds' in value;cache;list"
              "value['removed_entries'] == 0;cache;clear;--older-than;99999" "'ready' in value;cache;prewarm")
    list(GET row 0 test)
    list(SUBLIST row 1 -1 words)
    run(0 "" ${PYTHON} ${folder}/check.py "${test}" ${TOOL} ${words} --json)
  endforeach()
  run(0 "" ${PYTHON} ${folder}/check.py "'kinds' in value" ${TOOL} cache --json list)
  run(0 "" ${PYTHON} ${folder}/check.py "'folder' in value" ${TOOL} cache --json clear --older-than 99999)
endif()

# --- the output -------------------------------------------------------------------------------------------
# fits: output keeps to COLUMNS, or to 80 by default. A table has columns of numbers that cannot be folded.
function(fits columns)
  run(0 "" ${env} COLUMNS=${columns} ${TOOL} ${ARGN})
  string(REGEX REPLACE "[;[]|]" "." output "${output}")
  string(REPLACE "\n" ";" lines "${output}")
  foreach(line IN LISTS lines)
    string(LENGTH "${line}" length)
    if(length GREATER columns)
      message(FATAL_ERROR "tuff ${ARGN} has a line of ${length} characters on ${columns} columns:\n${line}")
    endif()
  endforeach()
endfunction()
foreach(columns 60 80 100)
  foreach(words "--help" "info" "help;bench" "help;tune" "help;selftest" "cache;clear;--help")
    fits(${columns} ${words})
  endforeach()
endforeach()
fits(80 selftest --filter softmax -v)
fits(80 tune --list --type f32)
fits(80 bench --seconds 0.01 --filter softmax)
run(0 "" sh -c "'${TOOL}' help tune | awk 'length > 80 { exit 1 }'")
# A pipe without a reader ends the tool; a full disk, or a closed pipe or stream, is reported.
run("0|141" "^$" bash -c "set -o pipefail; '${TOOL}' info | true")
run(1 "error: .*(No space left on device|standard output)" sh -c "'${TOOL}' info > /dev/full")
run(1 "error: .*(Bad file descriptor|standard output)" sh -c "'${TOOL}' info --json >&-")
run(1 "error: " sh -c "'${TOOL}' --help > /dev/full")
