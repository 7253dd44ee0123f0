# The library tsvd, static and shared, from tsvd_objects and with tsvd_flags; and what is installed
# with it.
#
#   tsvd_static (tsvd::tsvd_static)   libtsvd.a, which the tests and the Python module are linked with
#   tsvd (tsvd::tsvd)                 libtsvd.so
#
# Both, or the one that BUILD_SHARED_LIBS asks for.  Where there is no shared library, tsvd::tsvd is
# the static one.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(tsvd_with_shared ON)
set(tsvd_with_static ON)
if(SKBUILD) # a wheel holds the extension module alone
    set(TSVD_INSTALL OFF)
    set(tsvd_with_shared OFF)
else()
    option(TSVD_INSTALL "Install the C library" ${PROJECT_IS_TOP_LEVEL})
    if(BUILD_SHARED_LIBS)
        set(tsvd_with_static OFF)
    elseif(DEFINED BUILD_SHARED_LIBS)
        set(tsvd_with_shared OFF)
    endif()
endif()

# ---- what the objects need of others ----

# The OpenMP runtime by its name: the compiler of whoever links the static library may bring
# another one, and these objects need the one that they were compiled for.  Clang's by its path: its
# folder is searched only with -fopenmp.
set(tsvd_needs ${OpenMP_C_LIB_NAMES} m ${CMAKE_DL_LIBS})
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    set(tsvd_needs ${OpenMP_C_LIBRARIES} m ${CMAKE_DL_LIBS})
endif()
set(tsvd_private_libs ${tsvd_needs}) # for pkg-config
list(TRANSFORM tsvd_private_libs PREPEND -l REGEX "^[^/]")

if(TSVD_BLAS)
    # GLOBAL: the static library is linked with it, also in a project that holds this one.
    find_package(BLAS REQUIRED GLOBAL)
    set(blas_definitions TSVD_LINKED_BLAS=1)
    set(tsvd_blas_integer 4)
    if(BLA_SIZEOF_INTEGER EQUAL 8)
        set(tsvd_blas_integer 8)
        list(APPEND blas_definitions TSVD_BLAS_ILP64=1)
    endif()
    list(APPEND tsvd_needs BLAS::BLAS)
    # For pkg-config by their names: a program that is linked statically takes the archive beside
    # the shared library that was found.
    set(blas_flags ${BLAS_LINKER_FLAGS})
    foreach(file IN LISTS BLAS_LIBRARIES)
        if(file MATCHES "^(.+)/lib([^/]+)\\.so$")
            if(NOT CMAKE_MATCH_1 IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
                list(APPEND blas_flags -L${CMAKE_MATCH_1})
            endif()
            list(APPEND blas_flags -l${CMAKE_MATCH_2})
        else()
            list(APPEND blas_flags ${file})
        endif()
    endforeach()
    list(PREPEND tsvd_private_libs ${blas_flags})
    set_property(SOURCE csrc/host/blas.c APPEND PROPERTY COMPILE_DEFINITIONS ${blas_definitions})
endif()

# Here CMake adds what CUDA code needs, since it knows the language; elsewhere it may not.
if(tsvd_with_cuda AND TSVD_INSTALL)
    find_package(CUDAToolkit REQUIRED)
    # nvcc's host code is C++; its launches hold guards of static variables.
    list(APPEND tsvd_needs $<INSTALL_INTERFACE:CUDA::cudart_static> $<INSTALL_INTERFACE:stdc++>)
    get_target_property(cudart CUDA::cudart_static IMPORTED_LOCATION)
    list(PREPEND tsvd_private_libs ${cudart} -lrt -lpthread -lstdc++)
endif()

# ---- targets ----

set(tsvd_include
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/csrc/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

add_library(tsvd_static STATIC ${tsvd_objects})
set_target_properties(tsvd_static PROPERTIES OUTPUT_NAME tsvd)
if(tsvd_with_static)
    add_library(tsvd::tsvd_static ALIAS tsvd_static)
else() # for the tests alone
    set_property(TARGET tsvd_static PROPERTY EXCLUDE_FROM_ALL ON)
endif()
target_include_directories(tsvd_static INTERFACE ${tsvd_include})
target_link_libraries(tsvd_static PRIVATE ${tsvd_needs})

if(tsvd_with_shared)
    # The version that the binary interface began with.  Programs that were linked with an older
    # version run with this one, as long as it stays (docs/c.md).
    set(tsvd_soversion 0.1)
    add_library(tsvd SHARED ${tsvd_objects})
    add_library(tsvd::tsvd ALIAS tsvd)
    set_target_properties(tsvd PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${tsvd_soversion})
    target_include_directories(tsvd INTERFACE ${tsvd_include})
    target_link_libraries(tsvd PRIVATE tsvd_flags ${tsvd_needs})
    # Hidden visibility keeps our own functions inside; the script also what has none, such as a
    # static BLAS.  It gives each function the version that it came with.
    set(exports ${CMAKE_CURRENT_LIST_DIR}/exports.map)
    include(CheckLinkerFlag)
    check_linker_flag(C LINKER:--version-script=${exports} TSVD_VERSION_SCRIPT)
    if(TSVD_VERSION_SCRIPT)
        target_link_options(tsvd PRIVATE LINKER:--version-script=${exports})
        set_property(TARGET tsvd PROPERTY LINK_DEPENDS ${exports})
    endif()
    if(NOT TSVD_SANITIZE) # whose functions come with the program
        target_link_options(tsvd PRIVATE LINKER:-z,defs)
        if(TSVD_C_TESTS)
            enable_testing()
            add_test(NAME exports COMMAND
                ${PROJECT_SOURCE_DIR}/tests/library/exports $<TARGET_FILE:tsvd>)
        endif()
    endif()
else()
    add_library(tsvd::tsvd ALIAS tsvd_static)
endif()

# ---- installation ----

if(NOT TSVD_INSTALL)
    return()
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tsvd)
set(generated ${CMAKE_CURRENT_BINARY_DIR}/package)

install(FILES
    csrc/include/tsvd/tsvd.h csrc/include/tsvd/tsvd.hpp csrc/include/tsvd/export.h
    bindings/fortran/tsvd.f90 # as source: module files belong to one compiler
    ${CMAKE_CURRENT_BINARY_DIR}/include/tsvd/version.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tsvd)

# Two exports: whoever takes the shared library alone needs nothing of what the static one does.
set(libraries)
if(tsvd_with_shared)
    list(APPEND libraries tsvd)
endif()
if(tsvd_with_static)
    list(APPEND libraries tsvd_static)
endif()
foreach(name IN LISTS libraries)
    install(TARGETS ${name} EXPORT ${name})
    install(EXPORT ${name} NAMESPACE tsvd:: FILE ${name}-targets.cmake DESTINATION ${package})
endforeach()

configure_package_config_file(cmake/tsvdConfig.cmake.in ${generated}/tsvdConfig.cmake
    INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_INCLUDEDIR NO_SET_AND_CHECK_MACRO)
# Until version 1 a minor version may ask for changes of sources, after that a major one.
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(tsvd_compatible SameMinorVersion)
else()
    set(tsvd_compatible SameMajorVersion)
endif()
write_basic_package_version_file(${generated}/tsvdConfigVersion.cmake
    COMPATIBILITY ${tsvd_compatible})
install(FILES ${generated}/tsvdConfig.cmake ${generated}/tsvdConfigVersion.cmake
    DESTINATION ${package})

# Paths of tsvd.pc start from the place where it lies, so that the prefix may be moved.
set(pkgconfig ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${pkgconfig}
    OUTPUT_VARIABLE pc_up)
set(pc_prefix "\${prefix}")
cmake_path(APPEND pc_prefix ${CMAKE_INSTALL_LIBDIR} OUTPUT_VARIABLE pc_libdir)
cmake_path(APPEND pc_prefix ${CMAKE_INSTALL_INCLUDEDIR} OUTPUT_VARIABLE pc_includedir)
list(JOIN tsvd_private_libs " " pc_private_libs)
set(pc_libs "-L\${libdir} -ltsvd")
if(NOT tsvd_with_shared) # every program is linked with the static one
    string(APPEND pc_libs " ${pc_private_libs}")
    set(pc_private_libs)
endif()
configure_file(cmake/tsvd.pc.in ${generated}/tsvd.pc @ONLY)
install(FILES ${generated}/tsvd.pc DESTINATION ${pkgconfig})
