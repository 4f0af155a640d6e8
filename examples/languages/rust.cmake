# cmake -DBINDGEN=… -DRUSTC=… -DHEADER=… -DSOURCE=… -DLIBRARY=… -DFOLDER=… -DENVIRONMENT=K=V;… -DEXPECTED=… -P rust.cmake
# Generates bindings from the header, compiles the program with them (warnings are errors), and runs it.
file(MAKE_DIRECTORY ${FOLDER})
get_filename_component(libraries ${LIBRARY} DIRECTORY)
execute_process(COMMAND ${BINDGEN} ${HEADER} -o ${FOLDER}/tuff.rs COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -E env TUFF_BINDINGS=${FOLDER}/tuff.rs
                        ${RUSTC} --edition 2021 -D warnings -L ${libraries} -l tuff ${SOURCE} -o ${FOLDER}/program
                COMMAND_ERROR_IS_FATAL ANY)
set(COMMAND ${FOLDER}/program)
list(APPEND ENVIRONMENT LD_LIBRARY_PATH=${libraries})
include(${CMAKE_CURRENT_LIST_DIR}/compare.cmake)
