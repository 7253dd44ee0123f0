# The device library libtsvd_cudaNN.so: the CUDA back end alone, which a tsvd without CUDA opens at
# run time (csrc/backend/cuda_library.h).  packaging/ makes wheels of it.

find_package(CUDAToolkit REQUIRED)
set(name tsvd_cuda${CUDAToolkit_VERSION_MAJOR})

add_library(tsvd_device SHARED cuda/library/library.c
    $<TARGET_OBJECTS:tsvd_core_cuda> $<TARGET_OBJECTS:tsvd_host>
    $<TARGET_OBJECTS:tsvd_f64_cuda> $<TARGET_OBJECTS:tsvd_f64_host>
    $<TARGET_OBJECTS:tsvd_f32_cuda> $<TARGET_OBJECTS:tsvd_f32_host>
    $<TARGET_OBJECTS:tsvd_c128_cuda> $<TARGET_OBJECTS:tsvd_c64_cuda>)
set_target_properties(tsvd_device PROPERTIES OUTPUT_NAME ${name})
target_link_libraries(tsvd_device PRIVATE tsvd_flags ${tsvd_needs})
# One function is exported.  The others have the names of those of the core, which may be in the
# same process: they must not be taken for one another.
set(exports ${CMAKE_CURRENT_LIST_DIR}/device_exports.map)
target_link_options(tsvd_device PRIVATE LINKER:--version-script=${exports} LINKER:-z,defs)
set_property(TARGET tsvd_device PROPERTY LINK_DEPENDS ${exports})
install(TARGETS tsvd_device DESTINATION ${name} COMPONENT device)
