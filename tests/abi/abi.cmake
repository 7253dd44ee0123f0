# The tests of the binary interface, registered with ctest.  CMakeLists.txt includes this file if
# TSVD_C_TESTS is on.  They run with the shared library, where it is built.

set(library tsvd)
if(NOT TARGET tsvd)
    set(library tsvd_static)
endif()

# Programs with today's headers: what they are compiled with, and structures that have grown.
add_executable(abi_layout tests/abi/layout.c)
add_executable(abi_future tests/abi/future.c)
target_include_directories(abi_future PRIVATE tests/c)
foreach(name IN ITEMS abi_layout abi_future)
    target_link_libraries(${name} PRIVATE ${library} tsvd_flags)
endforeach()
add_test(NAME abi_future COMMAND abi_future)

# For each version whose programs are to run: one of them, with its own headers, which come first,
# and the facts about these.
file(GLOB versions RELATIVE ${PROJECT_SOURCE_DIR}/tests/abi tests/abi/*/layout.txt)
foreach(layout IN LISTS versions)
    cmake_path(GET layout PARENT_PATH version)
    set(program abi_${version})
    add_executable(${program} tests/abi/${version}/program.c)
    target_include_directories(${program} PRIVATE tests/abi/${version}/include)
    target_link_libraries(${program} PRIVATE ${library} tsvd_flags)
    add_test(NAME ${program} COMMAND ${program})

    # With sanitizers functions of theirs are exported too.
    set(exporting)
    if(TARGET tsvd AND TSVD_VERSION_SCRIPT AND NOT TSVD_SANITIZE)
        set(exporting $<TARGET_FILE:tsvd> $<TARGET_FILE:${program}>)
    endif()
    add_test(NAME abi_layout_${version} COMMAND
        ${PROJECT_SOURCE_DIR}/tests/abi/compare ${PROJECT_SOURCE_DIR}/tests/abi/${layout}
        $<TARGET_FILE:abi_layout> ${exporting})
    set_property(TEST abi_layout_${version} PROPERTY SKIP_RETURN_CODE 77)
    set_property(TEST abi_layout_${version} PROPERTY LABELS once)
endforeach()
