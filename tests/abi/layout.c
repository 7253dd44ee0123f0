/*
 * Prints what programs are compiled with: the size and the alignment of every public structure,
 * the offset, the size and the type of each of its fields, and the number of each enumerator.
 * `compare` has the rules of what may change.
 *
 * A field that is not listed leaves a gap that is no padding, and an enumerator that is not listed
 * is a warning of a switch; both are errors.
 */
#include <stddef.h>
#include <stdio.h>

#include <tsvd/tsvd.h>

static int failures;

/* What is listed of a structure so far. */
static const char *name;
static size_t end;

static size_t
aligned(size_t offset, size_t alignment)
{
    return (offset + alignment - 1) / alignment * alignment;
}

static void
begin(const char *type, size_t size, size_t alignment)
{
    name = type;
    end = 0;
    printf("struct %s %zu %zu\n", name, size, alignment);
}

/* The type of a field, for those that have the same size as others. */
#define TYPE_OF(x)                                                                                 \
    _Generic((x), int                                                                              \
             : "int", unsigned                                                                     \
             : "unsigned", int64_t                                                                 \
             : "int64", uint64_t                                                                   \
             : "uint64", double                                                                    \
             : "double", default                                                                   \
             : "other")

static void
field(const char *field_name, size_t offset, size_t size, size_t alignment, const char *type)
{
    printf("field %s.%s %zu %zu %s\n", name, field_name, offset, size, type);
    if (offset != aligned(end, alignment)) {
        printf("error: before %s.%s a field is not listed\n", name, field_name);
        failures++;
    }
    end = offset + size;
}
#define FIELD(type, field_name)                                                                    \
    field(#field_name, offsetof(type, field_name), sizeof(((type *)0)->field_name),                \
          _Alignof(__typeof__(((type *)0)->field_name)), TYPE_OF(((type *)0)->field_name))

static void
finish(size_t size, size_t alignment)
{
    if (size != aligned(end, alignment)) {
        printf("error: the last field of %s is not listed\n", name);
        failures++;
    }
}

static void
print_structures(void)
{
    begin("tsvd_error", sizeof(tsvd_error), _Alignof(tsvd_error));
    FIELD(tsvd_error, status);
    FIELD(tsvd_error, matrix);
    FIELD(tsvd_error, device);
    FIELD(tsvd_error, sweeps);
    FIELD(tsvd_error, wanted);
    FIELD(tsvd_error, available);
    FIELD(tsvd_error, text);
    FIELD(tsvd_error, advice);
    FIELD(tsvd_error, reserved);
    finish(sizeof(tsvd_error), _Alignof(tsvd_error));

    begin("tsvd_array", sizeof(tsvd_array), _Alignof(tsvd_array));
    FIELD(tsvd_array, data);
    FIELD(tsvd_array, space);
    FIELD(tsvd_array, dtype);
    FIELD(tsvd_array, ndim);
    FIELD(tsvd_array, shape);
    FIELD(tsvd_array, strides);
    finish(sizeof(tsvd_array), _Alignof(tsvd_array));

    begin("tsvd_blas", sizeof(tsvd_blas), _Alignof(tsvd_blas));
    FIELD(tsvd_blas, size);
    FIELD(tsvd_blas, dgemm32);
    FIELD(tsvd_blas, sgemm32);
    FIELD(tsvd_blas, dgemm64);
    FIELD(tsvd_blas, sgemm64);
    FIELD(tsvd_blas, dgetrf32);
    FIELD(tsvd_blas, sgetrf32);
    FIELD(tsvd_blas, dgetrf64);
    FIELD(tsvd_blas, sgetrf64);
    FIELD(tsvd_blas, dgetri32);
    FIELD(tsvd_blas, sgetri32);
    FIELD(tsvd_blas, dgetri64);
    FIELD(tsvd_blas, sgetri64);
    FIELD(tsvd_blas, zgemm32);
    FIELD(tsvd_blas, cgemm32);
    FIELD(tsvd_blas, zgemm64);
    FIELD(tsvd_blas, cgemm64);
    finish(sizeof(tsvd_blas), _Alignof(tsvd_blas));

    begin("tsvd_allocator", sizeof(tsvd_allocator), _Alignof(tsvd_allocator));
    FIELD(tsvd_allocator, allocate);
    FIELD(tsvd_allocator, release);
    FIELD(tsvd_allocator, arg);
    finish(sizeof(tsvd_allocator), _Alignof(tsvd_allocator));

    begin("tsvd_config", sizeof(tsvd_config), _Alignof(tsvd_config));
    FIELD(tsvd_config, size);
    FIELD(tsvd_config, device);
    FIELD(tsvd_config, threads);
    FIELD(tsvd_config, stream);
    FIELD(tsvd_config, blas);
    FIELD(tsvd_config, host_allocator);
    FIELD(tsvd_config, device_allocator);
    FIELD(tsvd_config, library_paths);
    FIELD(tsvd_config, library_path_count);
    finish(sizeof(tsvd_config), _Alignof(tsvd_config));

    begin("tsvd_options", sizeof(tsvd_options), _Alignof(tsvd_options));
    FIELD(tsvd_options, size);
    FIELD(tsvd_options, method);
    FIELD(tsvd_options, lower);
    FIELD(tsvd_options, first);
    FIELD(tsvd_options, count);
    FIELD(tsvd_options, eps);
    FIELD(tsvd_options, max_sweeps);
    FIELD(tsvd_options, check_finite);
    FIELD(tsvd_options, givens_blocks);
    FIELD(tsvd_options, givens_threads);
    FIELD(tsvd_options, givens_split);
    FIELD(tsvd_options, fallback);
    FIELD(tsvd_options, dense_stages);
    FIELD(tsvd_options, check);
    FIELD(tsvd_options, check_arg);
    FIELD(tsvd_options, part);
    finish(sizeof(tsvd_options), _Alignof(tsvd_options));

    begin("tsvd_plan", sizeof(tsvd_plan), _Alignof(tsvd_plan));
    FIELD(tsvd_plan, size);
    FIELD(tsvd_plan, method);
    FIELD(tsvd_plan, n);
    FIELD(tsvd_plan, count);
    FIELD(tsvd_plan, matrices);
    FIELD(tsvd_plan, chunk);
    FIELD(tsvd_plan, workers);
    FIELD(tsvd_plan, threads);
    FIELD(tsvd_plan, needs_blas);
    FIELD(tsvd_plan, direct);
    FIELD(tsvd_plan, result_bytes);
    FIELD(tsvd_plan, host_bytes);
    FIELD(tsvd_plan, device_bytes);
    finish(sizeof(tsvd_plan), _Alignof(tsvd_plan));

    begin("tsvd_info", sizeof(tsvd_info), _Alignof(tsvd_info));
    FIELD(tsvd_info, size);
    FIELD(tsvd_info, method);
    FIELD(tsvd_info, sweeps);
    FIELD(tsvd_info, iterations);
    FIELD(tsvd_info, iterations_saved);
    FIELD(tsvd_info, rotations);
    FIELD(tsvd_info, deflated);
    FIELD(tsvd_info, refused);
    FIELD(tsvd_info, seconds_iterate);
    FIELD(tsvd_info, seconds_vectors);
    FIELD(tsvd_info, seconds_values);
    FIELD(tsvd_info, seconds_device);
    FIELD(tsvd_info, seconds_reduce);
    FIELD(tsvd_info, seconds_band);
    FIELD(tsvd_info, seconds_chase);
    FIELD(tsvd_info, seconds_back);
    FIELD(tsvd_info, seconds_total);
    finish(sizeof(tsvd_info), _Alignof(tsvd_info));

    begin("tsvd_inverse_info", sizeof(tsvd_inverse_info), _Alignof(tsvd_inverse_info));
    FIELD(tsvd_inverse_info, size);
    FIELD(tsvd_inverse_info, rcond);
    FIELD(tsvd_inverse_info, matrix);
    FIELD(tsvd_inverse_info, seconds_total);
    finish(sizeof(tsvd_inverse_info), _Alignof(tsvd_inverse_info));

    begin("tsvd_cuda_device", sizeof(tsvd_cuda_device), _Alignof(tsvd_cuda_device));
    FIELD(tsvd_cuda_device, name);
    FIELD(tsvd_cuda_device, memory_total);
    FIELD(tsvd_cuda_device, memory_free);
    FIELD(tsvd_cuda_device, major);
    FIELD(tsvd_cuda_device, minor);
    FIELD(tsvd_cuda_device, multiprocessors);
    FIELD(tsvd_cuda_device, clock_khz);
    FIELD(tsvd_cuda_device, single_to_double);
    FIELD(tsvd_cuda_device, memory_pools);
    FIELD(tsvd_cuda_device, reserved);
    finish(sizeof(tsvd_cuda_device), _Alignof(tsvd_cuda_device));

    begin("tsvd_cuda_crossover", sizeof(tsvd_cuda_crossover), _Alignof(tsvd_cuda_crossover));
    FIELD(tsvd_cuda_crossover, order);
    FIELD(tsvd_cuda_crossover, batch_values);
    finish(sizeof(tsvd_cuda_crossover), _Alignof(tsvd_cuda_crossover));
}

/* A case of the switch over an enumeration.  COUNT grows with that: it is not printed. */
#define NAME(enumerator)                                                                           \
    case enumerator:                                                                               \
        printf("enum %s %d\n", #enumerator, (int)enumerator);                                      \
        break

static void
print_status(tsvd_status number)
{
    switch (number) {
        NAME(TSVD_OK);
        NAME(TSVD_ERR_ARGUMENT);
        NAME(TSVD_ERR_NONFINITE);
        NAME(TSVD_ERR_MEMORY);
        NAME(TSVD_ERR_NO_CONVERGENCE);
        NAME(TSVD_ERR_INTERRUPTED);
        NAME(TSVD_ERR_NO_DEVICE);
        NAME(TSVD_ERR_UNSUPPORTED);
        NAME(TSVD_ERR_CUDA);
        NAME(TSVD_ERR_LIBRARY);
        NAME(TSVD_ERR_SINGULAR);
    case TSVD_STATUS_COUNT:
        break;
    }
}

static void
print_space(tsvd_space number)
{
    switch (number) {
        NAME(TSVD_HOST);
        NAME(TSVD_CUDA);
    }
}

static void
print_dtype(tsvd_dtype number)
{
    switch (number) {
        NAME(TSVD_FLOAT64);
        NAME(TSVD_FLOAT32);
        NAME(TSVD_COMPLEX128);
        NAME(TSVD_COMPLEX64);
    }
}

static void
print_method(tsvd_method number)
{
    switch (number) {
        NAME(TSVD_METHOD_AUTO);
        NAME(TSVD_METHOD_DC);
        NAME(TSVD_METHOD_QR);
        NAME(TSVD_METHOD_GIVENS);
        NAME(TSVD_METHOD_BISECT);
        NAME(TSVD_METHOD_TWISTED);
        NAME(TSVD_METHOD_JACOBI);
    case TSVD_METHOD_COUNT:
        break;
    }
}

static void
print_side(tsvd_side number)
{
    switch (number) {
        NAME(TSVD_LEFT);
        NAME(TSVD_RIGHT);
    }
}

static void
print_enumerators(void)
{
    for (int number = 0; number < 64; number++) {
        print_status((tsvd_status)number);
        print_space((tsvd_space)number);
        print_dtype((tsvd_dtype)number);
        print_method((tsvd_method)number);
        print_side((tsvd_side)number);
    }
    printf("enum TSVD_MAX_BATCH_DIMS %d\n", TSVD_MAX_BATCH_DIMS);
    printf("enum TSVD_MAX_DIMS %d\n", TSVD_MAX_DIMS);
    printf("enum TSVD_DEVICE_CPU %d\n", TSVD_DEVICE_CPU);
}

int
main(void)
{
    if (sizeof(void *) != 8) {
        return 77;
    }
    print_structures();
    print_enumerators();
    return failures > 0;
}
