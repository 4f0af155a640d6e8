# Run by CTest: cmake -DTOOL=… -DFOLDER=… -P tune_test.cmake
# Tunes within seconds into a table of its own, goes on with it, uses it, and keeps its hands off other files.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
set(table ${FOLDER}/table.json)
set(shapes ${FOLDER}/shapes.txt)
file(WRITE ${shapes} "# small ones\nN N 48 48 48\nN T 40 40 40\nN N 64 64 64\nN N 47 49 48  # about the size of the first\nN N 128 128 128\n")

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

set(tune ${TOOL} tune --type f32 --shapes ${shapes} --output ${table})
run(0 "nn 48 x 48 x 48 +to do" ${tune} --list)
run(0 "Nothing was written" ${tune} --budget 1 --dry-run)
if(EXISTS ${table})
  message(FATAL_ERROR "--list or --dry-run has written ${table}")
endif()

# A first run, and those after it until all is done: a busy machine may need more than two seconds.
run(0 "Written to" ${tune} --budget 2)
foreach(again RANGE 20)
  run(0 "products measured" ${tune} --budget 2)
  if(NOT output MATCHES "not finished")
    break()
  endif()
endforeach()
run(0 "\n0 products measured.*4 were measured before.*1 are about the size of another" ${tune} --budget 2)
run(0 "\n4 products measured.*1 are about the size of another" ${tune} --budget 60 --again)
run(0 "nn 48 x 48 x 48 +done" ${tune} --list)

# What the library makes of it: a choice put in by hand is taken by every process.
run(0 "nn 128 x 128 x 128 +done +([a-z0-9_]+) +([a-z0-9_]+)" ${tune} --list)
string(REGEX MATCH "nn 128 x 128 x 128 +done +([a-z0-9_]+) +([a-z0-9_]+)" row "${output}")
set(other ${CMAKE_MATCH_2})
file(READ ${table} text)
string(REGEX REPLACE "(\"sizes\":\\[128,128,128,1\\]),[^\n]*\"built_in\"" "\\1,\"variant\":\"${other}\",\"built_in\"" text "${text}")
file(WRITE ${table} "${text}")
set(ENV{TUFF_TUNING} ${table})
set(ENV{TUFF_LOG} dispatch)
run(0 "gemm nn 129x131x137 [^\n]*: ${other} \\(tuned\\)" ${TOOL} selftest --filter gemm)
set(ENV{TUFF_LOG} warning)

# A file that is no table is not overwritten, nor is one that cannot be written reported as written.
file(WRITE ${FOLDER}/letter.txt "Dear table,\n")
run(1 "letter.txt is no table of tuned choices" ${TOOL} tune --shapes ${shapes} --budget 1 --output ${FOLDER}/letter.txt)
file(READ ${FOLDER}/letter.txt letter)
if(NOT letter STREQUAL "Dear table,\n")
  message(FATAL_ERROR "letter.txt was overwritten")
endif()
run(1 "could not be written" ${TOOL} tune --type f32 --shapes ${shapes} --budget 1 --output ${FOLDER}/no/such/folder.json)
run(1 "is no table of tuned choices: it is no ordinary file" ${TOOL} tune --budget 1 --output ${FOLDER})

# Other misuse.
run(1 "\"f31\" is none of f32" ${TOOL} tune --type f32,f31)
run(1 "cannot be read" ${TOOL} tune --shapes ${FOLDER}/missing.txt --output ${table})
file(WRITE ${shapes} "N N 64 64 64\nN X 64 64 64\n")
run(1 "shapes.txt:2: \"X\" is neither N nor T" ${tune})
file(WRITE ${shapes} "N N 64 64\n")
run(1 "shapes.txt:1: it has 4 words" ${tune})
file(WRITE ${shapes} "N N 64 0 64\n")
run(1 "shapes.txt:1: \"0\" is no size" ${tune})
file(WRITE ${shapes} "# nothing\n")
run(1 "has no shapes" ${tune})
run(2 "--budget" ${TOOL} tune --budget -5)
set(ENV{TUFF_TUNING} off)
run(1 "there is no place for the table" ${TOOL} tune --budget 1)

# Interrupted, it keeps what it has.
file(REMOVE ${table})
run(130 "Interrupted: .*Written to"
    timeout --signal=INT --preserve-status 4 ${TOOL} tune --type f32 --budget 100 --output ${table})
file(READ ${table} text)
if(NOT text MATCHES "\"sizes\":\\[64,64,64,1\\]")
  message(FATAL_ERROR "the first product is not in the table:\n${text}")
endif()
