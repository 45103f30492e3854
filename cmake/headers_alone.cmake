# Compiles every header of the library alone: each includes what it needs.
get_target_property(headers phiattn HEADER_SET)
set(sources)
foreach(header IN LISTS headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/include OUTPUT_VARIABLE name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <${name}>\n" @ONLY)
  list(APPEND sources ${source})
  # The others come to core/matrix.hpp by what they include: it may as well be there before, precompiled.
  file(STRINGS ${header} includes REGEX "^#include <phiattn/")
  list(FILTER includes EXCLUDE REGEX "core/(abi|random).hpp|version.hpp")
  if(NOT includes)
    set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
endforeach()

add_library(phiattn_headers_alone OBJECT ${sources})
phiattn_dev_target(phiattn_headers_alone HEADER_ONLY)
target_precompile_headers(phiattn_headers_alone PRIVATE <phiattn/core/matrix.hpp>)
