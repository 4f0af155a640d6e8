# Run by CTest: cmake -DLIBRARY=… -DOBJECTS=… -DNM=… -DOBJDUMP=… -P destructors.cmake
# Tuff's own code registers no destructors of static or thread-local objects, because it may be called after they have
# run. Some of the archives in the library (shaderc, glslang, SPIRV-Tools, SPIRV-Cross) register some, for tables that
# compiling needs: runtime/custom/compilers.hpp refuses to compile once those are destroyed.

cmake_policy(VERSION 3.22)

# For each file, what it may register, and why.
set(allowed
    "prewarm.cpp.o:atexit"            # stops the prewarming thread before the drivers' own handlers run
    "usage.cpp.o:atexit"              # removes the file of the process's page, whose memory stays
    "compilers.cpp.o:__cxa_atexit")   # records that the archives' tables are destroyed

file(STRINGS ${OBJECTS} objects)
execute_process(COMMAND ${NM} -A --undefined-only ${objects} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+ U (__cxa_atexit|__cxa_thread_atexit|__cxa_thread_atexit_impl|atexit|at_quick_exit|on_exit)\n"
       lines "${text}")
set(found "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^.*/([^/:]+):.* U ([a-z_]+)\n$" "\\1:\\2" entry "${line}")
  if(entry IN_LIST allowed)
    list(APPEND found ${entry})
  else()
    message(SEND_ERROR "this registers what is run at an end, and is called later: ${entry}")
  endif()
endforeach()
foreach(entry IN LISTS allowed)
  if(NOT entry IN_LIST found)
    message(SEND_ERROR "allowed and not there, so that this script may look at the wrong place: ${entry}")
  endif()
endforeach()

# In the linked library only functions of the archives may remain.
execute_process(
  COMMAND ${OBJDUMP} -d --no-show-raw-insn ${LIBRARY}
  COMMAND awk "/^[0-9a-f]+ <.*>:$/ {name = $2} /(call|jmp|bl|b) .*<(__cxa_(thread_)?atexit|atexit)[@>]/ {print name}"
  OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "<[^\n]+>" callers "${text}")
list(REMOVE_DUPLICATES callers)
set(theirs 0)
foreach(caller IN LISTS callers)
  # Initialisers of files (nm has checked Tuff's own), the archives' namespaces, and the linker's entries.
  if(caller MATCHES "_GLOBAL__sub_I_|spirv_cross|spvtools|glslang|shaderc|<(atexit|__cxa_atexit@plt|__cxa_thread_atexit@plt)>")
    math(EXPR theirs "${theirs} + 1")
  elseif(NOT caller MATCHES "4tuff7Prewarm|4tuff5UsageC")
    message(SEND_ERROR "this registers what is run at an end, and is called later: ${caller}")
  endif()
endforeach()
if(theirs EQUAL 0)
  message(SEND_ERROR "${OBJDUMP} found no registration at all, not even those of the archives")
endif()
message(STATUS "${theirs} registrations of the archives")
