include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/phiattn)
install(TARGETS phiattn phiattn_compiled EXPORT phiattnTargets FILE_SET HEADERS)
install(EXPORT phiattnTargets NAMESPACE phiattn:: DESTINATION ${package_dir})

# A version stands for its minor one, a range for what it says.
write_basic_package_version_file(phiattnVersion.cmake COMPATIBILITY SameMinorVersion)
write_basic_package_version_file(phiattnVersionRange.cmake COMPATIBILITY AnyNewerVersion)
install(FILES cmake/phiattnConfig.cmake cmake/phiattnConfigVersion.cmake
  ${PROJECT_BINARY_DIR}/phiattnVersion.cmake ${PROJECT_BINARY_DIR}/phiattnVersionRange.cmake
  DESTINATION ${package_dir})

configure_file(cmake/phiattn.pc.in phiattn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/phiattn.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)
