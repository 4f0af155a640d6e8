# Run by CTest: cmake -DFILES=a,b,… -DLIBRARY=… -DOBJECTS=list.txt -DREADELF=… -DNM=… -DCET=… -DFORTIFY=… -P hardening.cmake
# The installed files are hardened as cmake/hardening.cmake asks. WHEEL: the functions that checks end in are linked
# statically, so they are no symbols; scripts/wheel.sh counts the checks in the code. OBJECTS names a file that lists the library's own
# object files, one in a line.
string(REPLACE "," ";" FILES "${FILES}")

function(tuff_expect file text pattern what)
  if(NOT text MATCHES "${pattern}")
    message(SEND_ERROR "${file}: ${what}\n${text}")
  endif()
endfunction()

foreach(file IN LISTS FILES)
  execute_process(COMMAND ${READELF} -hldW ${file} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  tuff_expect(${file} "${text}" "Type: +DYN" "it is at a fixed address")
  tuff_expect(${file} "${text}" "GNU_RELRO" "what is relocated stays writable: no GNU_RELRO")
  tuff_expect(${file} "${text}" "FLAGS_1\\)[^\n]* NOW" "functions are bound when they are first called: no NOW")
  tuff_expect(${file} "${text}" "GNU_STACK +0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ RW " "its stack is executable")
  if(text MATCHES " RWE |TEXTREL")
    message(SEND_ERROR "${file}: memory is writable and executable\n${text}")
  endif()
  # Empty or relative entries would be looked up in the working directory.
  string(REGEX MATCHALL "\\((RPATH|RUNPATH)\\)[^\n]*" paths "${text}")
  foreach(line IN LISTS paths)
    string(REGEX REPLACE ".*\\[(.*)\\].*" "\\1" path "${line}")
    string(REPLACE ":" ";" entries "x:${path}:x")  # so that no empty entry is lost at an end
    list(LENGTH entries count)
    math(EXPR last "${count} - 2")
    foreach(i RANGE 1 ${last})
      list(GET entries ${i} entry)
      if(NOT entry MATCHES "^(/|\\$ORIGIN)")
        message(SEND_ERROR "${file}: \"${entry}\" in its search path \"${path}\" is the working directory, or relative to it")
      endif()
    endforeach()
  endforeach()
  execute_process(COMMAND ${NM} -D --undefined-only ${file} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  if(NOT WHEEL)
    tuff_expect(${file} "${symbols}" "__stack_chk_fail" "no function checks its stack")
  endif()
  if(FORTIFY)
    tuff_expect(${file} "${symbols}" "__(mem|str|read|printf|fprintf|snprintf|vsnprintf|realpath|poll|recv|vfprintf)[a-z]*_chk"
                "it calls no checked function of the C library")
  endif()
  if(CET)
    execute_process(COMMAND ${READELF} -nW ${file} OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
    tuff_expect(${file} "${notes}" "x86 feature: [^\n]*SHSTK" "it is not marked for a shadow stack")
  endif()
endforeach()

# The exports carry the version of the interface.
execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${symbols}")
foreach(line IN LISTS lines)
  if(NOT line MATCHES " tuff_[a-z0-9_]+@@TUFF_1$" AND NOT line MATCHES " A TUFF_1$")
    message(SEND_ERROR "${LIBRARY}: exported without a version: ${line}")
  endif()
endforeach()

# Every object of the library itself was compiled for both halves of CET.
if(CET)
  file(STRINGS ${OBJECTS} objects)
  foreach(object IN LISTS objects)
    execute_process(COMMAND ${READELF} -nW ${object} OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
    tuff_expect(${object} "${notes}" "x86 feature: IBT, SHSTK" "it was compiled without -fcf-protection")
  endforeach()
  list(LENGTH objects count)
  message(STATUS "${count} objects")
endif()
