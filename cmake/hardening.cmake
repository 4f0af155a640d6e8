# tuff_hardened: what the files that are installed are compiled and linked with, so that a defect in them is harder to
# use. tests/abi/hardening.cmake looks at the result.
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C CXX)

add_library(tuff_hardened INTERFACE)
target_compile_options(tuff_hardened INTERFACE -fstack-protector-strong)
# Branch targets and return addresses that a processor with CET checks (x86).
check_cxx_compiler_flag(-fcf-protection=full TUFF_HAS_CF_PROTECTION)
if(TUFF_HAS_CF_PROTECTION)
  target_compile_options(tuff_hardened INTERFACE -fcf-protection=full)
endif()
# The checked functions of the C library need an optimiser, and would hide from a sanitizer what it looks for.
if(NOT TUFF_SANITIZE)
  target_compile_options(tuff_hardened INTERFACE $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
                                                 $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()
# Everything is bound when the file is loaded, and what is bound is read-only from there on; no executable stack.
target_link_options(tuff_hardened INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
# The linker marks a file as good for CET if every object in it is. Debian's archives of shaderc and SPIRV-Tools are
# compiled without: their returns are ordinary ones, so that a shadow stack may be asked for all the same, but their
# functions do not begin with a branch target, so that IBT may not.
if(TUFF_HAS_CF_PROTECTION)
  check_linker_flag(CXX -Wl,-z,shstk TUFF_LINKS_SHADOW_STACK)
  if(TUFF_LINKS_SHADOW_STACK)
    target_link_options(tuff_hardened INTERFACE -Wl,-z,shstk)
  endif()
endif()
