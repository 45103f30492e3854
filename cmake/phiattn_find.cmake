include_guard()
include(FetchContent)

# phiattn_find(<package> TARGETS <target>... VERSION <least> REPOSITORY <url> COMMIT <hash> [INCLUDE <folder>])
#
# Provides one of TARGETS: the enclosing project's own, else an installed package's, else fetched at a pinned
# release (always fetched if FETCHCONTENT_TRY_FIND_PACKAGE_MODE is NEVER). INCLUDE marks a header-only package,
# of which nothing but that folder is used.
function(phiattn_find package)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "VERSION;REPOSITORY;COMMIT;INCLUDE" "TARGETS")
  foreach(target IN LISTS arg_TARGETS)
    if(TARGET ${target})
      return()
    endif()
  endforeach()

  # find_package is given no version, for none accepts both Catch2 2.13 and 3.
  # SOURCE_SUBDIR names no folder, so that what is fetched is added below, outside `all` and our install.
  FetchContent_Declare(${package}
    GIT_REPOSITORY ${arg_REPOSITORY}
    GIT_TAG ${arg_COMMIT}
    SOURCE_SUBDIR none
    FIND_PACKAGE_ARGS CONFIG QUIET)
  FetchContent_MakeAvailable(${package})

  if(${package}_FOUND)
    if(${package}_VERSION AND ${package}_VERSION VERSION_LESS arg_VERSION)
      message(FATAL_ERROR
        "phiattn needs ${package} ${arg_VERSION} or newer, but ${${package}_DIR} has ${${package}_VERSION}. "
        "Point ${package}_DIR at a newer one, or set CMAKE_DISABLE_FIND_PACKAGE_${package} to fetch it.")
    endif()
  else()
    FetchContent_GetProperties(${package} SOURCE_DIR source BINARY_DIR binary)
    if(arg_INCLUDE)
      # Imported: its warnings are not ours, and an installed phiattn names it without having installed it.
      add_library(${arg_TARGETS} INTERFACE IMPORTED GLOBAL)
      target_include_directories(${arg_TARGETS} INTERFACE "${source}/${arg_INCLUDE}")
    else()
      set(CMAKE_COMPILE_WARNING_AS_ERROR OFF)
      add_subdirectory("${source}" "${binary}" EXCLUDE_FROM_ALL SYSTEM)
    endif()
  endif()

  # Catch2 puts its ctest helper there.
  set(CMAKE_MODULE_PATH "${CMAKE_MODULE_PATH}" PARENT_SCOPE)
endfunction()
