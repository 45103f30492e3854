# Links our own program or test to phiattn::compiled or, where it is the headers themselves that are tested, to them alone
# (HEADER_ONLY). These then answer to the warnings as well.
function(phiattn_dev_target name)
  if(HEADER_ONLY IN_LIST ARGN)
    target_link_libraries(${name} PRIVATE phiattn::phiattn)
  else()
    target_link_libraries(${name} PRIVATE phiattn::compiled)
  endif()
  # gcc sees uninitialised values in the insides of Eigen and of its own library, where there are none.
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")
  target_compile_definitions(${name} PRIVATE PHIATTN_DATA_DIR="${phiattn_SOURCE_DIR}/examples/data")
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()
