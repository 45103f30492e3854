# No version argument of find_package accepts both Eigen 3.4 and 5.
if(NOT TARGET Eigen3::Eigen)
  include(CMakeFindDependencyMacro)
  find_dependency(Eigen3 CONFIG)
  if(Eigen3_VERSION AND Eigen3_VERSION VERSION_LESS 3.4)
    set(phiattn_FOUND FALSE)
    set(phiattn_NOT_FOUND_MESSAGE
      "phiattn needs Eigen 3.4 or newer, but ${Eigen3_DIR} has ${Eigen3_VERSION}.")
    return()
  endif()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/phiattnTargets.cmake)
