# phiattn_eigen: Eigen's headers, the enclosing project's own where it had Eigen3::Eigen before, else an installed package's,
# else fetched at a pinned release (always fetched if FETCHCONTENT_TRY_FIND_PACKAGE_MODE is NEVER). It is not called
# Eigen3::Eigen, for a parent may fetch Eigen after phiattn and needs the name.
function(phiattn_find_eigen)
  # Without a version, for none accepts both Eigen 3.4 and 5.
  if(TARGET Eigen3::Eigen)
    get_target_property(eigen_include Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  elseif(NOT FETCHCONTENT_TRY_FIND_PACKAGE_MODE STREQUAL NEVER)
    add_subdirectory(cmake/eigen)
  endif()
  if(eigen_version AND eigen_version VERSION_LESS 3.4)
    message(FATAL_ERROR
      "phiattn needs Eigen 3.4 or newer, but ${eigen_dir} has ${eigen_version}. "
      "Point Eigen3_DIR at a newer one, or set CMAKE_DISABLE_FIND_PACKAGE_Eigen3 to fetch it.")
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
  endif()

  # Imported: its warnings are not ours, and try_compile takes no other.
  add_library(phiattn_eigen INTERFACE IMPORTED GLOBAL)
  target_include_directories(phiattn_eigen INTERFACE ${eigen_include})
endfunction()

phiattn_find_eigen()
