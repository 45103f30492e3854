include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/phiattn)
install(TARGETS phiattn phiattn_compiled EXPORT phiattnTargets FILE_SET HEADERS)
install(EXPORT phiattnTargets NAMESPACE phiattn:: DESTINATION ${package_dir})

write_basic_package_version_file(phiattnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/phiattnConfig.cmake ${PROJECT_BINARY_DIR}/phiattnConfigVersion.cmake
  DESTINATION ${package_dir})

configure_file(cmake/phiattn.pc.in phiattn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/phiattn.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)
