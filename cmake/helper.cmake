# tuff-compile: compiles custom kernels whose source is not trusted (runtime/custom/helper). It is in libtuff.so's
# folder in the build, and in libexec when installed; the library finds it relative to its own location.
set(TUFF_HELPER_FOLDER ${CMAKE_INSTALL_LIBEXECDIR}/tuff)
file(RELATIVE_PATH helper_from_library ${CMAKE_INSTALL_FULL_LIBDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR}/tuff/tuff-compile)
set_source_files_properties(runtime/custom/isolated.cpp PROPERTIES COMPILE_DEFINITIONS
                            "TUFF_HELPER_FROM_LIBRARY=\"${helper_from_library}\"")

file(GLOB TUFF_HELPER_SOURCES CONFIGURE_DEPENDS runtime/custom/helper/*.cpp)
# What it shares with the library.
set(TUFF_HELPER_SHARED runtime/custom/compile.cpp runtime/custom/compilers.cpp runtime/custom/reflect.cpp
     runtime/custom/spirv_module.cpp runtime/custom/keep_bounds.cpp runtime/custom/loops.cpp runtime/custom/wire.cpp
     platform/posix.cpp platform/posix_descriptor.cpp platform/posix_process.cpp platform/linux_confine.cpp
     platform/per_thread.cpp platform/mutex.cpp planning/log.cpp planning/element_type.cpp
     runtime/vulkan/custom_objects.cpp runtime/vulkan/device.cpp runtime/vulkan/device_requirements.cpp
     runtime/vulkan/device_selection.cpp runtime/vulkan/instance.cpp runtime/vulkan/matrix_cores.cpp
     runtime/vulkan/memory_block.cpp runtime/vulkan/vk.cpp)
# So that these alone are taken from the archive.
set_source_files_properties(${TUFF_HELPER_SHARED} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
add_executable(tuff_helper ${TUFF_HELPER_SOURCES})
if(TUFF_SANITIZE)
  # A sanitizer's shadow memory is larger than the address space that this process allows itself.
  target_sources(tuff_helper PRIVATE ${TUFF_HELPER_SHARED})
  target_compile_options(tuff_helper PRIVATE -fno-sanitize=all)
  target_link_options(tuff_helper PRIVATE -fno-sanitize=all)
  target_link_libraries(tuff_helper PRIVATE fmt::fmt-header-only)
else()
  target_link_libraries(tuff_helper PRIVATE tuff_core_archive tuff_fmt)
endif()
set_target_properties(tuff_helper PROPERTIES OUTPUT_NAME tuff-compile LINKER_LANGUAGE CXX)
target_include_directories(tuff_helper PRIVATE include ${CMAKE_SOURCE_DIR})
target_include_directories(tuff_helper SYSTEM PRIVATE ${SHADERC_INCLUDE} ${SPIRV_CROSS_INCLUDE} ${SPIRV_TOOLS_INCLUDE}
                           ${VULKAN_INCLUDE} ${VOLK_INCLUDE})
target_compile_definitions(tuff_helper PRIVATE TUFF_STATIC VK_NO_PROTOTYPES)
target_link_libraries(tuff_helper PRIVATE ${SPIRV_LIBRARIES} ${SHADERC_LIBRARIES} Threads::Threads ${CMAKE_DL_LIBS}
                                          tuff_warnings tuff_hardened)
# Building the library always builds the helper too.
add_dependencies(tuff tuff_helper)
install(TARGETS tuff_helper RUNTIME DESTINATION ${TUFF_HELPER_FOLDER})
