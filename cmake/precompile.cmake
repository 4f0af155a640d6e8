# tuff_precompile(target <header>…): precompiles these headers and those of the standard library that nearly every
# source includes. Sources still include everything they need: presets `dev` and `clang` build without precompiled
# headers.
function(tuff_precompile target)
  if(NOT TUFF_PRECOMPILE)
    return()
  endif()
  set(headers algorithm array atomic chrono cmath condition_variable cstdint cstring filesystem fstream functional limits map memory mutex optional set span sstream string thread
              string_view unordered_map utility vector)
  list(TRANSFORM headers PREPEND "$<$<COMPILE_LANGUAGE:CXX>:<")
  list(TRANSFORM headers APPEND "$<ANGLE-R>>")
  list(TRANSFORM ARGN PREPEND "$<$<COMPILE_LANGUAGE:CXX>:")
  list(TRANSFORM ARGN APPEND ">")
  string(REPLACE ".h>>" ".h$<ANGLE-R>>" ARGN "${ARGN}")
  target_precompile_headers(${target} PRIVATE ${headers} ${ARGN})
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endfunction()

# GCC collects its garbage often by default, which takes a tenth of the time to compile. A source of the project needs
# less memory than this in most cases, so nothing is collected.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
endif()
