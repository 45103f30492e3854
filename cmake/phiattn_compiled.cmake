# phiattn::compiled: the same headers, and a static library of what is compiled once for float and double. Units with other
# vectors or alignment than it was built with instantiate their own.

# PHIATTN_ABI_NUMBER of core/abi.hpp under the flags of this build, read out of an object file.
function(phiattn_abi_number result)
  set(probe ${PROJECT_BINARY_DIR}/phiattn_abi/probe.o)
  set(CMAKE_TRY_COMPILE_CONFIGURATION ${CMAKE_BUILD_TYPE})
  get_directory_property(options COMPILE_OPTIONS)
  try_compile(worked
    SOURCE_FROM_CONTENT probe.cpp "
      #include <phiattn/core/abi.hpp>
      constexpr int n = PHIATTN_ABI_NUMBER;
      extern const char probe[];
      const char probe[] = {'a', 'b', 'i', '=', '0' + n / 100000 % 10, '0' + n / 10000 % 10, '0' + n / 1000 % 10,
                            '0' + n / 100 % 10, '0' + n / 10 % 10, '0' + n % 10, '.', 0};
      int main(int argc, char**) { return probe[argc]; }"
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}/include"
    COMPILE_DEFINITIONS ${options}
    LINK_LIBRARIES phiattn_eigen
    CXX_STANDARD 20
    COPY_FILE ${probe}
    OUTPUT_VARIABLE output)
  if(NOT worked)
    message(FATAL_ERROR "phiattn: <phiattn/core/abi.hpp> does not compile:\n${output}")
  endif()
  file(STRINGS ${probe} lines REGEX "abi=[0-9][0-9][0-9][0-9][0-9][0-9][.]")
  string(REGEX REPLACE ".*abi=0*([0-9]+)[.].*" "\\1" number "${lines}")
  set(${result} ${number} PARENT_SCOPE)
endfunction()

phiattn_abi_number(abi)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/compiled/*.cpp)
add_library(phiattn_compiled STATIC ${sources})
add_library(phiattn::compiled ALIAS phiattn_compiled)
target_link_libraries(phiattn_compiled PUBLIC phiattn::phiattn)
target_compile_definitions(phiattn_compiled
  PRIVATE PHIATTN_LIBRARY_ABI=${abi}
  INTERFACE PHIATTN_COMPILED_ABI=${abi})
set_target_properties(phiattn_compiled PROPERTIES
  EXPORT_NAME compiled
  CXX_EXTENSIONS OFF
  POSITION_INDEPENDENT_CODE ON
  EXCLUDE_FROM_ALL $<NOT:$<BOOL:${PHIATTN_INSTALL}>>)
