# The C tests, registered with ctest.  CMakeLists.txt includes this file if TSVD_C_TESTS is on.

enable_testing()
file(GLOB tests CONFIGURE_DEPENDS tests/c/*.c)
foreach(source IN LISTS tests)
    cmake_path(GET source STEM name)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE tsvd_static tsvd_flags)
    add_test(NAME ${name} COMMAND ${name})
endforeach()
# Other kernels show nothing new here: `make ctest` runs these with the first instruction set
# that it is given.  Sanitizers slow scalar arithmetic down by far, and the tests of dc take the
# same kernels; defects are planted into each set's kernels without sanitizers.
set_property(TEST test_library test_memory test_threads PROPERTY LABELS once)
if(TSVD_SANITIZE)
    set_property(TEST test_scalar_f32 test_scalar_f64 test_faults_f32 test_faults_f64
        PROPERTY LABELS once)
endif()
# A sanitizer sees all that it can in a few of the planted defects.
set(tsvd_defects 1000)
if(TSVD_SANITIZE)
    set(tsvd_defects 48)
endif()
# These have vector kernels of their own in between.
foreach(type IN ITEMS f64 f32)
    target_link_options(test_faults_${type} PRIVATE LINKER:--wrap=tsvdi_kernels_${type})
    target_compile_definitions(test_faults_${type} PRIVATE DEFECTS_PLANTED=${tsvd_defects})
endforeach()

set_property(TEST test_library PROPERTY SKIP_RETURN_CODE 77) # without glibc
# What test_library opens: one library in two places, and one beside the second.
set(probes ${CMAKE_CURRENT_BINARY_DIR}/probes)
foreach(probe IN ITEMS 1/tsvd_probe 2/tsvd_probe 2/tsvd_needed)
    math(EXPR number "${number} + 1")
    cmake_path(GET probe PARENT_PATH place)
    cmake_path(GET probe FILENAME name)
    add_library(probe${number} SHARED tests/c/libraries/probe.c)
    target_compile_definitions(probe${number} PRIVATE PROBE=${number})
    set_target_properties(probe${number} PROPERTIES
        OUTPUT_NAME ${name} SOVERSION 7 LIBRARY_OUTPUT_DIRECTORY ${probes}/${place})
    add_dependencies(test_library probe${number})
endforeach()
target_compile_definitions(test_library PRIVATE TSVD_PROBES="${probes}")
set_property(TARGET test_library PROPERTY BUILD_RPATH ${probes}/1) # so the loader looks there

if(tsvd_with_cuda)
    # The products, with a stand-in for cuBLAS anywhere, and with cuBLAS where there is a GPU.
    string(REGEX MATCH "^[0-9]+" major "${CMAKE_CUDA_COMPILER_VERSION}")
    add_library(fake_cublas SHARED tests/c/libraries/fake_cublas.c)
    set_target_properties(fake_cublas PROPERTIES OUTPUT_NAME cublas SOVERSION ${major}
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fake)
    foreach(name IN ITEMS test_multiply test_multiply_fake)
        add_executable(${name} tests/c/test_multiply.cu)
        target_include_directories(${name} PRIVATE cuda)
        target_link_libraries(${name} PRIVATE tsvd_static tsvd_flags)
        add_test(NAME ${name} COMMAND ${name})
        set_property(TEST ${name} PROPERTY SKIP_RETURN_CODE 77)
    endforeach()
    foreach(name IN ITEMS test_contexts test_device test_faults test_results test_usable)
        add_executable(${name} tests/c/${name}.cu)
        target_include_directories(${name} PRIVATE cuda)
        target_link_libraries(${name} PRIVATE tsvd_static tsvd_flags ${CMAKE_DL_LIBS})
        add_test(NAME ${name} COMMAND ${name})
        set_property(TEST ${name} PROPERTY SKIP_RETURN_CODE 77)
    endforeach()
    # The program for CUDA on the page for C.
    file(READ docs/c.md page)
    string(REGEX MATCH "#include <cuda_runtime_api.h>[^`]*" program "${page}")
    file(CONFIGURE OUTPUT page_of_c.c CONTENT "${program}" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS docs/c.md)
    add_executable(page_of_c ${CMAKE_CURRENT_BINARY_DIR}/page_of_c.c)
    add_test(NAME page_of_c COMMAND page_of_c)
    set_property(TEST page_of_c PROPERTY SKIP_REGULAR_EXPRESSION "no CUDA|driver")
    # Results on a device, in memory that the host reads.
    add_executable(test_layouts_device tests/c/test_layouts.c)
    target_compile_definitions(test_layouts_device PRIVATE ON_DEVICE=1)
    foreach(name IN ITEMS page_of_c test_layouts_device) # in C, with the runtime
        target_include_directories(${name} SYSTEM PRIVATE
            ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
        set_property(TARGET ${name} PROPERTY LINKER_LANGUAGE CUDA)
        target_link_libraries(${name} PRIVATE tsvd_static tsvd_flags)
    endforeach()
    add_test(NAME test_layouts_device COMMAND test_layouts_device)
    set_property(TEST test_layouts_device PROPERTY SKIP_RETURN_CODE 77)
    # Vectors are spoilt before the probes on the device see them.
    foreach(type IN ITEMS f64 f32)
        set(name test_probes_${type})
        string(COMPARE EQUAL ${type} f32 single)
        add_executable(${name} tests/c/test_probes.cu)
        target_include_directories(${name} PRIVATE cuda)
        target_compile_definitions(${name} PRIVATE TSVD_SINGLE=${single})
        target_link_libraries(${name} PRIVATE tsvd_static tsvd_flags)
        target_link_options(${name} PRIVATE LINKER:--wrap=tsvdi_cuda_twisted_${type})
        add_test(NAME ${name} COMMAND ${name})
        set_property(TEST ${name} PROPERTY SKIP_RETURN_CODE 77)
    endforeach()
    # tests/c/faults.h stands before what tsvd calls: its head says how.
    file(STRINGS tests/c/faults.h wrapped REGEX "^(FAILING|TELLING|MAKING|ENDING|WRAPPED)\\(")
    list(TRANSFORM wrapped REPLACE "^[A-Z]+\\(([A-Za-z0-9_]+),.*" "\\1")
    list(TRANSFORM wrapped PREPEND LINKER:--wrap=)
    target_link_options(test_faults PRIVATE ${wrapped} LINKER:--wrap=dlsym)
    target_link_libraries(test_multiply_fake PRIVATE fake_cublas)
    target_compile_definitions(test_multiply_fake PRIVATE TSVD_FAKE_CUBLAS=1)
endif()
