# The tuning constants: other values for them, and the table that tsvd._core.tuning() tells.

set(TSVD_TUNING "" CACHE STRING "Other values of tuning constants: NAME=value;NAME=value")

set(tsvd_tuning_headers csrc/backend/tuning.h csrc/cpu/tuning.h cuda/tuning.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tsvd_tuning_headers})

set(tsvd_tuning_names)
set(tsvd_tuning_includes)
foreach(header IN LISTS tsvd_tuning_headers)
    file(STRINGS ${header} names REGEX "^#define [A-Z0-9_]+ ") # with a value: no include guard
    list(TRANSFORM names REPLACE "^#define ([A-Z0-9_]+) .*" "\\1")
    list(APPEND tsvd_tuning_names ${names})
    string(APPEND tsvd_tuning_includes "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${header}\"\n")
endforeach()

foreach(setting IN LISTS TSVD_TUNING)
    if(NOT setting MATCHES "^([A-Z0-9_]+)=(.+)$")
        message(FATAL_ERROR "TSVD_TUNING has \"${setting}\"; it must be NAME=value;NAME=value")
    endif()
    if(NOT CMAKE_MATCH_1 IN_LIST tsvd_tuning_names)
        list(JOIN tsvd_tuning_headers ", " headers)
        message(FATAL_ERROR "TSVD_TUNING: no ${CMAKE_MATCH_1} in ${headers}")
    endif()
    target_compile_definitions(tsvd_flags INTERFACE "${setting}")
endforeach()

set(tsvd_tuning_table ${CMAKE_CURRENT_BINARY_DIR}/tuning.c)
list(TRANSFORM tsvd_tuning_names REPLACE "(.+)" "    {\"\\1\", (double)(\\1)},")
list(JOIN tsvd_tuning_names "\n" tsvd_tuning_rows)
file(CONFIGURE OUTPUT ${tsvd_tuning_table} @ONLY CONTENT "\
@tsvd_tuning_includes@#include \"python/module.h\"

const struct tuning_constant tsvdi_tuning_constants[] = {
@tsvd_tuning_rows@
    {NULL, 0},
};
")
