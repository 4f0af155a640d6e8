# Run by CTest: cmake -DROOT=… -P environment.cmake
# The library reads the environment in one place, and ignores it in a program with more rights than its caller.
file(GLOB_RECURSE sources ${ROOT}/platform/*.cpp ${ROOT}/platform/*.hpp ${ROOT}/planning/*.cpp ${ROOT}/planning/*.hpp
     ${ROOT}/runtime/*.cpp ${ROOT}/runtime/*.hpp ${ROOT}/capi/*.cpp ${ROOT}/capi/*.hpp
     ${ROOT}/kernels/*.cpp ${ROOT}/kernels/*.hpp ${ROOT}/include/*.h ${ROOT}/include/*.hpp)
list(LENGTH sources count)
if(count LESS 100)
  message(SEND_ERROR "only ${count} files were found in ${ROOT}")
endif()
foreach(file IN LISTS sources)
  file(READ ${file} text)
  if(NOT file MATCHES "platform/posix.cpp$" AND text MATCHES "getenv *\\(|[^a-z_.:>]environ[^a-z_]")
    message(SEND_ERROR "${file} reads the environment by itself, needs platform::environment()")
  endif()
endforeach()
file(READ ${ROOT}/platform/posix.cpp text)
string(REGEX MATCHALL "getenv *\\(" reads "${text}")
list(LENGTH reads count)
if(NOT count EQUAL 1)
  message(SEND_ERROR "posix.cpp reads the environment in ${count} places, needs one that asks runs_with_other_rights()")
endif()
