# For tests that run the tool.
# run(STATUS "what it says" command…): status and text are regular expressions; the output goes to `output`.
function(run status says)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err TIMEOUT 120)
  if(NOT result MATCHES "^(${status})$" OR NOT "${out}${err}" MATCHES "${says}")
    message(FATAL_ERROR "${ARGN}\nended with ${result}, not ${status}, or does not say \"${says}\":\n${out}${err}")
  endif()
  set(output "${out}${err}" PARENT_SCOPE)
endfunction()
