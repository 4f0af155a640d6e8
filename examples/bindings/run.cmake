# cmake -DPYTHON=… -DLUAJIT=… -DJSON=… -DFOLDER=… -DENVIRONMENT=K=V;… -DEXPECTED=… -P run.cmake
# Generates the LuaJIT binding and runs the program that uses it.
file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND ${PYTHON} ${CMAKE_CURRENT_LIST_DIR}/lua.py ${JSON} ${FOLDER}/tuff.lua COMMAND_ERROR_IS_FATAL ANY)
set(COMMAND ${LUAJIT} ${CMAKE_CURRENT_LIST_DIR}/program.lua)
list(APPEND ENVIRONMENT "LUA_PATH=${FOLDER}/?.lua")
include(${CMAKE_CURRENT_LIST_DIR}/../languages/compare.cmake)
