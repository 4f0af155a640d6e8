# The installed files, and how other projects find them: find_package(tuff) and pkg-config. The installation can be
# moved: both locate it relative to themselves.
include(CMakePackageConfigHelpers)

install(TARGETS tuff EXPORT tuff-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/tuff DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(tuff_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tuff)
install(EXPORT tuff-targets NAMESPACE tuff:: DESTINATION ${tuff_cmake_folder} FILE tuff-config.cmake)
# The ABI is compatible within a major version, whose number the SONAME has: it only grows. A newer library therefore
# serves programs built for an older one, but not the other way round.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tuff-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tuff-config-version.cmake DESTINATION ${tuff_cmake_folder})

# tuff_pc_path(OUT FOLDER): the folder as tuff.pc has it, relative to the prefix if it is inside.
function(tuff_pc_path out folder)
  if(IS_ABSOLUTE ${folder})
    set(${out} ${folder} PARENT_SCOPE)
  else()
    set(${out} "\${prefix}/${folder}" PARENT_SCOPE)
  endif()
endfunction()
tuff_pc_path(tuff_pc_libdir ${CMAKE_INSTALL_LIBDIR})
tuff_pc_path(tuff_pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(tuff_pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH tuff_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" tuff_pc_prefix "\${pcfiledir}/${tuff_pc_prefix}")
endif()
configure_file(cmake/tuff.pc.in ${CMAKE_BINARY_DIR}/tuff.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tuff.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
