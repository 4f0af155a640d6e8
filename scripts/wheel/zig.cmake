# A toolchain for CMake: Zig's Clang and libc++, for glibc 2.28 and later on x86-64. scripts/wheel.sh makes the programs
# in ${TUFF_WHEEL}/bin and fills ${TUFF_WHEEL}/prefix; nothing of the machine's own /usr is searched.
set(TUFF_WHEEL $ENV{TUFF_WHEEL})
set(CMAKE_C_COMPILER ${TUFF_WHEEL}/bin/zig-cc)
set(CMAKE_CXX_COMPILER ${TUFF_WHEEL}/bin/zig-c++)
set(CMAKE_AR ${TUFF_WHEEL}/bin/zig-ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${TUFF_WHEEL}/bin/zig-ranlib CACHE FILEPATH "")
set(CMAKE_CXX_COMPILER_AR ${CMAKE_AR} CACHE FILEPATH "")
set(CMAKE_CXX_COMPILER_RANLIB ${CMAKE_RANLIB} CACHE FILEPATH "")
set(CMAKE_FIND_ROOT_PATH ${TUFF_WHEEL}/prefix)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# As cmake/hardening.cmake compiles libtuff's own code, for the libraries inside it too.
set(CMAKE_C_FLAGS_INIT "-fstack-protector-strong -fcf-protection=full -fno-sanitize=undefined")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
