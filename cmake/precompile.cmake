# tuff_precompile(target <header>…): precompiles these headers and those of the standard library that nearly every
# source includes. It takes four seconds, so it is for a target of many sources: each gains one. Sources still include
# everything they need: presets `dev` and `clang` build without precompiled headers.
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

# tuff_join(<target>…): compiles the sources of each target in groups of 16, which takes less than half of the time: most
# of it goes into the templates of headers. A group needs up to 1.3 GiB of memory. Sources with options of their own are compiled by themselves. Within a group a name
# of an anonymous namespace exists once; tests and others with many such names have a namespace that is named after the file.
# Presets without precompiled headers compile each source by itself, so each includes what it needs, and names that hide others
# are found there.
# Kernels have sources with options of their own, and are joined by tuff_join_families.
add_library(tuff_joined INTERFACE)
target_compile_options(tuff_joined INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>)
function(tuff_join)
  if(TUFF_PRECOMPILE AND TUFF_JOIN)
    foreach(target IN LISTS ARGN)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
      target_link_libraries(${target} PRIVATE tuff_joined)
    endforeach()
  endif()
endfunction()

# Sets the variable to one source, build/…/joined/<name>.cpp, that includes the others.
function(tuff_joined_source variable name)
  list(JOIN ARGN "\"\n#include \"" lines)
  set(joined ${CMAKE_BINARY_DIR}/joined/${name}.cpp)
  file(CONFIGURE OUTPUT ${joined} CONTENT "#include \"${lines}\"\n" @ONLY)
  set(${variable} ${joined} PARENT_SCOPE)
endfunction()

# tuff_join_families(<variable> <kind>): of the kernels' sources in this list, which have the same options, those of one family
# become one source, build/…/joined/<family>_<kind>.cpp. The families are those of TUFF_JOINED_FAMILIES. A source that shares a
# name of an anonymous namespace with another one of its family is in TUFF_UNJOINED, by its name without a suffix.
function(tuff_join_families variable kind)
  if(NOT TUFF_PRECOMPILE OR NOT TUFF_JOIN)
    return()
  endif()
  set(sources "")
  foreach(source IN LISTS ${variable})
    file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/kernels ${source})
    string(REGEX REPLACE "/.*" "" family ${path})
    get_filename_component(name ${source} NAME_WE)
    if(family IN_LIST TUFF_JOINED_FAMILIES AND NOT name IN_LIST TUFF_UNJOINED)
      list(APPEND of_${family} ${source})
    else()
      list(APPEND sources ${source})
    endif()
  endforeach()
  foreach(family IN LISTS TUFF_JOINED_FAMILIES)
    list(LENGTH of_${family} count)
    if(count LESS 2)
      list(APPEND sources ${of_${family}})
      continue()
    endif()
    tuff_joined_source(joined ${family}_${kind} ${of_${family}})
    list(APPEND sources ${joined})
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# tuff_join_named(<variable> <name> <source without suffix>…): these sources of the list, which have the same options and share no
# name of an anonymous namespace, become one source, build/…/joined/<name>.cpp. A source with options of its own stays by itself.
function(tuff_join_named variable name)
  if(NOT TUFF_PRECOMPILE OR NOT TUFF_JOIN)
    return()
  endif()
  set(kept "")
  set(found "")
  foreach(source IN LISTS ${variable})
    get_filename_component(stem ${source} NAME_WE)
    if(stem IN_LIST ARGN)
      list(APPEND found ${source})
    else()
      list(APPEND kept ${source})
    endif()
  endforeach()
  list(LENGTH found count)
  list(LENGTH ARGN expected)
  if(NOT count EQUAL expected)
    message(FATAL_ERROR "tuff_join_named(${variable} ${name}): ${expected} sources are named, ${count} found")
  endif()
  tuff_joined_source(joined ${name} ${found})
  set(${variable} ${kept} ${joined} PARENT_SCOPE)
endfunction()
