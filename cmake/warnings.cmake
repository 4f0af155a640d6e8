# tuff_warnings: the warning options of every target of the project.
add_library(tuff_warnings INTERFACE)
target_compile_options(tuff_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                       $<$<BOOL:${TUFF_WERROR}>:-Werror>)
# -Wnon-virtual-dtor applies to C++ only.
get_target_property(options tuff_warnings INTERFACE_COMPILE_OPTIONS)
list(TRANSFORM options REPLACE "^-Wnon-virtual-dtor$" "$<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>")
set_target_properties(tuff_warnings PROPERTIES INTERFACE_COMPILE_OPTIONS "${options}")

if(TUFF_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=thread)
elseif(TUFF_SANITIZE)
  # With sanitizers, -Wmaybe-uninitialized has false positives, as GCC's manual says (here: inside an empty optional).
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=address,undefined)
endif()
