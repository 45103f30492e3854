# phiattn_eigen(<result>): what to link for Eigen's headers: the enclosing project's own Eigen3::Eigen, be it fetched before
# phiattn or after, else an installed one, else one fetched at a pinned release (always fetched if
# FETCHCONTENT_TRY_FIND_PACKAGE_MODE is NEVER).
function(phiattn_eigen result)
  if(TARGET Eigen3::Eigen)
    set(${result} Eigen3::Eigen PARENT_SCOPE)
    return()
  endif()

  # Without a version, for none accepts both Eigen 3.4 and 5.
  if(NOT FETCHCONTENT_TRY_FIND_PACKAGE_MODE STREQUAL NEVER)
    add_subdirectory(cmake/eigen)
  endif()
  if(NOT eigen_include)
    # Under a name of its own: what a parent declares as Eigen3, before or after, stays the parent's. SOURCE_SUBDIR names no
    # folder: nothing but the headers is used.
    include(FetchContent)
    FetchContent_Declare(phiattn_eigen
      GIT_REPOSITORY https://gitlab.com/libeigen/eigen.git
      GIT_TAG bc3b39870ecb690a623a3f49149a358b95c5781d # 5.0.1
      SOURCE_SUBDIR none)
    FetchContent_MakeAvailable(phiattn_eigen)
    set(eigen_include "${phiattn_eigen_SOURCE_DIR}")
  elseif(eigen_version AND eigen_version VERSION_LESS 3.4)
    message(FATAL_ERROR
      "phiattn needs Eigen 3.4 or newer, but ${eigen_dir} has ${eigen_version}. "
      "Point Eigen3_DIR at a newer one, or set CMAKE_DISABLE_FIND_PACKAGE_Eigen3 to fetch it.")
  endif()

  # Imported: its warnings are not ours, and an installed phiattn names it without having installed it.
  add_library(phiattn_eigen INTERFACE IMPORTED GLOBAL)
  target_include_directories(phiattn_eigen INTERFACE ${eigen_include})
  set(${result} "$<IF:$<TARGET_EXISTS:Eigen3::Eigen>,Eigen3::Eigen,phiattn_eigen>" PARENT_SCOPE)
endfunction()
