# tuff_hardened: compile and link options for installed files that make defects in them harder to exploit.
# tests/abi/hardening.cmake checks the result.
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C CXX)

add_library(tuff_hardened INTERFACE)
target_compile_options(tuff_hardened INTERFACE -fstack-protector-strong)
# Branch targets and return addresses that a CPU with CET checks (x86).
check_cxx_compiler_flag(-fcf-protection=full TUFF_HAS_CF_PROTECTION)
if(TUFF_HAS_CF_PROTECTION)
  target_compile_options(tuff_hardened INTERFACE -fcf-protection=full)
endif()
# The C library's checked functions need optimisation, and would hide from a sanitizer what it looks for.
if(NOT TUFF_SANITIZE)
  target_compile_options(tuff_hardened INTERFACE $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
                                                 $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()
# Everything is bound at load time and read-only afterwards; no executable stack.
target_link_options(tuff_hardened INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
# The linker marks a file as CET-compatible only if every object in it is. Debian's archives of shaderc and SPIRV-Tools
# are not marked. Their returns are ordinary ones, so the shadow stack can be enabled regardless; their functions do
# not begin with a branch target, so IBT cannot.
if(TUFF_HAS_CF_PROTECTION)
  check_linker_flag(CXX -Wl,-z,shstk TUFF_LINKS_SHADOW_STACK)
  if(TUFF_LINKS_SHADOW_STACK)
    target_link_options(tuff_hardened INTERFACE -Wl,-z,shstk)
  endif()
endif()
