# tuff_embed_shaders(OUT a.comp b.comp …): runs cmake/shaders.py to turn the GLSL files into C++ below generated/,
# whenever one of them has changed, and sets OUT to the resulting sources.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

function(tuff_embed_shaders out)
  set(folder ${CMAKE_BINARY_DIR}/generated)
  set(shaders ${CMAKE_SOURCE_DIR}/planning/prelude.glsl ${ARGN})
  file(GLOB included CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/*/*.glsl ${CMAKE_SOURCE_DIR}/kernels/*/*/*.glsl ${CMAKE_SOURCE_DIR}/kernels/*/*.def)
  set(sources ${folder}/shaders_all.cpp)
  foreach(number RANGE 3)  # FILES of shaders.py
    list(APPEND sources ${folder}/shaders_${number}.cpp)
  endforeach()
  add_custom_command(OUTPUT ${sources} ${folder}/shaders.hpp
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/cmake/shaders.py ${CMAKE_SOURCE_DIR} ${folder} ${shaders}
    DEPENDS ${CMAKE_SOURCE_DIR}/cmake/shaders.py ${CMAKE_SOURCE_DIR}/cmake/tables.py
            ${CMAKE_SOURCE_DIR}/include/tuff/tuff.h ${shaders} ${included}
    COMMENT "Embedding shaders" VERBATIM)
  set(${out} ${sources} ${folder}/shaders.hpp PARENT_SCOPE)
endfunction()
