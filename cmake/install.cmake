# What is installed, and how others find it: find_package(tuff) and pkg-config. The tree can be moved: both find it from
# where they are themselves.
include(CMakePackageConfigHelpers)

install(TARGETS tuff EXPORT tuff-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/tuff DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(tuff_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tuff)
install(EXPORT tuff-targets NAMESPACE tuff:: DESTINATION ${tuff_cmake_folder} FILE tuff-config.cmake)
# One ABI for all of a major version: it grows and nothing in it changes (the SONAME has its number), so that a newer
# library serves whoever was written for an older one, and not the other way round.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tuff-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tuff-config-version.cmake DESTINATION ${tuff_cmake_folder})

# tuff_pc_path(OUT FOLDER): as tuff.pc has it, from the prefix where it is in it.
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
