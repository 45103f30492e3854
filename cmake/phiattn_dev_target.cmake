# Links our own program or test to phiattn::compiled; the headers then answer to these warnings as well.
function(phiattn_dev_target name)
  target_link_libraries(${name} PRIVATE phiattn::compiled)
  # gcc sees uninitialised values in the insides of Eigen and of its own library, where there are none.
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")
  target_compile_definitions(${name} PRIVATE PHIATTN_DATA_DIR="${phiattn_SOURCE_DIR}/examples/data")
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()
