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

# tuff_join(<target>…): compiles the sources of each target in groups of eight, which takes less than half of the time: most
# of it goes into the templates of headers. Sources with options of their own are compiled by themselves. Within a group a name
# of an anonymous namespace exists once; tests and others with many such names have a namespace that is named after the file.
# Presets without precompiled headers compile each source by itself, so each includes what it needs, and names that hide others
# are found there.
add_library(tuff_joined INTERFACE)
target_compile_options(tuff_joined INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>)
function(tuff_join)
  if(TUFF_PRECOMPILE AND TUFF_JOIN)
    foreach(target IN LISTS ARGN)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
      target_link_libraries(${target} PRIVATE tuff_joined)
    endforeach()
  endif()
endfunction()
