# The custom calls of XLA in _core, which tsvd.jax needs. jaxlib brings XLA's headers; its library is
# not linked.
if(NOT TSVD_XLA STREQUAL "OFF")
    # Where the Python of the build has jaxlib, without importing it.
    execute_process(COMMAND ${Python_EXECUTABLE} -c
        "from importlib.util import find_spec; print(find_spec('jaxlib').submodule_search_locations[0])"
        OUTPUT_VARIABLE jaxlib OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT TSVD_XLA_INCLUDE)
        unset(TSVD_XLA_INCLUDE CACHE) # missing when configured before, perhaps not now
    endif()
    find_path(TSVD_XLA_INCLUDE xla/ffi/api/c_api.h PATHS "${jaxlib}/include" NO_DEFAULT_PATH
        DOC "The folder with XLA's headers: jax.ffi.include_dir()")
    if(TSVD_XLA_INCLUDE)
        message(STATUS "Custom calls of XLA: ${TSVD_XLA_INCLUDE}")
        target_sources(_core PRIVATE csrc/python/xla.c)
        target_include_directories(_core SYSTEM PRIVATE ${TSVD_XLA_INCLUDE})
        target_compile_definitions(_core PRIVATE TSVD_WITH_XLA=1)
    elseif(TSVD_XLA STREQUAL "ON")
        message(FATAL_ERROR
            "TSVD_XLA is ON and XLA's headers were not found. Install jaxlib, and build with "
            "pip install --no-build-isolation; or set TSVD_XLA_INCLUDE to the folder that "
            "jax.ffi.include_dir() names.")
    else()
        message(STATUS "Custom calls of XLA: not compiled")
    endif()
endif()
