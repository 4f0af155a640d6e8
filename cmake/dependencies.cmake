# tuff_dependencies: all dependencies of the library, each a Debian package. libvulkan is not among them: volk opens it
# at run time.
add_library(tuff_dependencies INTERFACE)

find_path(VULKAN_INCLUDE vulkan/vulkan.h REQUIRED)
find_path(VOLK_INCLUDE volk.h REQUIRED)
find_package(fmt REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)

# tuff_fmt: fmt, compiled once. If fmt's version needs other pieces than fmt_compiled.cpp has, it is used header-only.
add_library(tuff_fmt INTERFACE)
get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
try_compile(TUFF_COMPILES_FMT ${CMAKE_BINARY_DIR}/fmt SOURCES ${CMAKE_CURRENT_LIST_DIR}/fmt_compiled.cpp
            CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${fmt_include} COMPILE_DEFINITIONS -DTUFF_TRY_FMT CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
if(TUFF_COMPILES_FMT)
  add_library(tuff_fmt_compiled STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt_compiled.cpp)
  set_target_properties(tuff_fmt_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(tuff_fmt_compiled SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(tuff_fmt_compiled PRIVATE tuff_hardened)
  target_link_libraries(tuff_fmt INTERFACE tuff_fmt_compiled)
else()
  target_link_libraries(tuff_fmt INTERFACE fmt::fmt-header-only)
endif()

find_path(SHADERC_INCLUDE shaderc/shaderc.h REQUIRED)

# shaderc, in the first form that links: the static archives, so that libtuff.so also runs on machines without shaderc,
# then the shared library. (Debian 12's libshaderc.so lacks its own dependencies and cannot be linked; its archives are
# complete together with glslang's and SPIRV-Tools'.)
include(CheckCXXSourceCompiles)
function(tuff_find_shaderc out)
  set(archives "")
  foreach(name shaderc_combined glslang MachineIndependent GenericCodeGen OSDependent OGLCompiler HLSL
               glslang-default-resource-limits SPIRV SPIRV-Tools-opt SPIRV-Tools)
    find_library(ARCHIVE_${name} NAMES lib${name}.a)
    mark_as_advanced(ARCHIVE_${name})
    if(ARCHIVE_${name})
      list(APPEND archives ${ARCHIVE_${name}})
    endif()
  endforeach()
  find_library(SHADERC_SHARED NAMES shaderc_shared shaderc)
  set(CMAKE_REQUIRED_INCLUDES ${SHADERC_INCLUDE})
  set(source "#include <shaderc/shaderc.h>
    int main() { return shaderc_compile_into_spv(shaderc_compiler_initialize(), \"\", 0, shaderc_compute_shader,
                                                 \"\", \"main\", nullptr) != nullptr; }")
  set(CMAKE_REQUIRED_LIBRARIES -Wl,--start-group ${archives} -Wl,--end-group Threads::Threads)
  check_cxx_source_compiles("${source}" SHADERC_LINKS_STATICALLY)
  if(SHADERC_LINKS_STATICALLY)
    set(${out} -Wl,--start-group ${archives} -Wl,--end-group PARENT_SCOPE)
    return()
  endif()
  set(CMAKE_REQUIRED_LIBRARIES ${SHADERC_SHARED} Threads::Threads)
  check_cxx_source_compiles("${source}" SHADERC_LINKS_SHARED)
  if(NOT SHADERC_LINKS_SHARED)
    message(FATAL_ERROR "shaderc does not link, neither its archives nor its shared library: is libshaderc-dev installed?")
  endif()
  set(${out} ${SHADERC_SHARED} PARENT_SCOPE)
endfunction()
tuff_find_shaderc(SHADERC_LIBRARIES)

# SPIRV-Cross through its C interface, and SPIRV-Tools' validator, for custom kernels. Static archives first, as for
# shaderc.
find_path(SPIRV_CROSS_INCLUDE spirv_cross/spirv_cross_c.h REQUIRED)
find_path(SPIRV_TOOLS_INCLUDE spirv-tools/libspirv.h REQUIRED)
function(tuff_find_spirv out)
  set(archives "")
  foreach(name spirv-cross-c spirv-cross-cpp spirv-cross-reflect spirv-cross-msl spirv-cross-hlsl spirv-cross-glsl
               spirv-cross-util spirv-cross-core SPIRV-Tools)
    find_library(ARCHIVE_${name} NAMES lib${name}.a)
    mark_as_advanced(ARCHIVE_${name})
    if(ARCHIVE_${name})
      list(APPEND archives ${ARCHIVE_${name}})
    endif()
  endforeach()
  find_library(SPIRV_CROSS_SHARED NAMES spirv-cross-c-shared)
  find_library(SPIRV_TOOLS_SHARED NAMES SPIRV-Tools-shared SPIRV-Tools)
  set(CMAKE_REQUIRED_INCLUDES ${SPIRV_CROSS_INCLUDE} ${SPIRV_TOOLS_INCLUDE})
  set(source "#include <spirv_cross/spirv_cross_c.h>
    #include <spirv-tools/libspirv.h>
    int main() {
      spvc_context context;
      return spvc_context_create(&context) + (spvContextCreate(SPV_ENV_VULKAN_1_2) == nullptr);
    }")
  set(CMAKE_REQUIRED_LIBRARIES -Wl,--start-group ${archives} -Wl,--end-group)
  check_cxx_source_compiles("${source}" SPIRV_LINKS_STATICALLY)
  if(SPIRV_LINKS_STATICALLY)
    set(${out} -Wl,--start-group ${archives} -Wl,--end-group PARENT_SCOPE)
    return()
  endif()
  set(CMAKE_REQUIRED_LIBRARIES ${SPIRV_CROSS_SHARED} ${SPIRV_TOOLS_SHARED})
  check_cxx_source_compiles("${source}" SPIRV_LINKS_SHARED)
  if(NOT SPIRV_LINKS_SHARED)
    message(FATAL_ERROR "SPIRV-Cross or SPIRV-Tools do not link: are libspirv-cross-c-shared-dev and spirv-tools installed?")
  endif()
  set(${out} ${SPIRV_CROSS_SHARED} ${SPIRV_TOOLS_SHARED} PARENT_SCOPE)
endfunction()
tuff_find_spirv(SPIRV_LIBRARIES)

# Checks whether this shaderc knows GL_KHR_cooperative_matrix. Debian 12's knows only the older NV extension, whose
# modules the runtime rewrites (runtime/vulkan/matrix_spirv.hpp). -DTUFF_SHADERC_KHR_MATRICES=0 forces that path.
include(CheckCXXSourceRuns)
set(CMAKE_REQUIRED_INCLUDES ${SHADERC_INCLUDE})
set(CMAKE_REQUIRED_LIBRARIES ${SHADERC_LIBRARIES} Threads::Threads)
# A bracket argument and a raw string, because CMake would turn escaped line ends in the source into line ends.
check_cxx_source_runs([==[
  #include <shaderc/shaderc.h>
  #include <cstring>
  int main() {
    const char* text = R"(#version 460
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 32) in;
void main() { coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> m; }
)";
    const auto options = shaderc_compile_options_initialize();
    shaderc_compile_options_set_target_env(options, shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_2);
    const auto result = shaderc_compile_into_spv(shaderc_compiler_initialize(), text, std::strlen(text),
                                                 shaderc_compute_shader, "", "main", options);
    return shaderc_result_get_compilation_status(result) != shaderc_compilation_status_success;
  }]==] SHADERC_KNOWS_KHR_MATRICES)
unset(CMAKE_REQUIRED_INCLUDES)
unset(CMAKE_REQUIRED_LIBRARIES)
if(SHADERC_KNOWS_KHR_MATRICES)
  set(TUFF_SHADERC_KHR_MATRICES 1 CACHE STRING "Compile GL_KHR_cooperative_matrix directly")
else()
  set(TUFF_SHADERC_KHR_MATRICES 0 CACHE STRING "Compile GL_KHR_cooperative_matrix directly")
endif()

target_include_directories(tuff_dependencies SYSTEM INTERFACE ${VULKAN_INCLUDE} ${VOLK_INCLUDE} ${XXHASH_INCLUDE}
                           ${SHADERC_INCLUDE} ${SPIRV_CROSS_INCLUDE} ${SPIRV_TOOLS_INCLUDE})
target_compile_definitions(tuff_dependencies INTERFACE VK_NO_PROTOTYPES XXH_INLINE_ALL
                           TUFF_SHADERC_KHR_MATRICES=${TUFF_SHADERC_KHR_MATRICES})
target_link_libraries(tuff_dependencies INTERFACE ${SPIRV_LIBRARIES} ${SHADERC_LIBRARIES} tuff_fmt
                      nlohmann_json::nlohmann_json Threads::Threads ${CMAKE_DL_LIBS})
