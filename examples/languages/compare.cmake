# cmake -DCOMMAND=a;b -DENVIRONMENT=K=V;… -DEXPECTED=file -P compare.cmake
# Runs a command in an environment. It must succeed and print exactly the contents of the file.
execute_process(COMMAND ${CMAKE_COMMAND} -E env ${ENVIRONMENT} ${COMMAND} OUTPUT_VARIABLE printed
                ERROR_VARIABLE errors RESULT_VARIABLE status)
file(READ ${EXPECTED} expected)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "exit status ${status}\n${printed}${errors}")
endif()
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "printed\n${printed}\nexpected\n${expected}")
endif()
