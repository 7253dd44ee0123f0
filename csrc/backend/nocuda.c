/*
 * The CUDA functions of tsvd.h in a build without nvcc; cuda/runtime/device.cu,
 * cuda/runtime/blas.cu and cuda/backend.cu answer them otherwise.
 */
#include <stdio.h>

#include "tsvd/tsvd.h"

struct tsvd_backend;

const struct tsvd_backend *tsvdi_cuda_f64(void);
const struct tsvd_backend *tsvdi_cuda_f32(void);

const struct tsvd_backend *
tsvdi_cuda_f64(void)
{
    return NULL;
}

const struct tsvd_backend *
tsvdi_cuda_f32(void)
{
    return NULL;
}

static tsvd_status
not_compiled(char *why, size_t size)
{
    snprintf(why, size,
             "tsvd was built without CUDA: install the CUDA Toolkit (nvcc) and reinstall tsvd with "
             "TSVD_CUDA=ON");
    return TSVD_ERR_NO_DEVICE;
}

int
tsvd_cuda_compiled(void)
{
    return 0;
}

void
tsvd_cuda_versions(int *runtime, int *driver)
{
    *runtime = 0;
    *driver = 0;
}

tsvd_status
tsvd_cuda_device_count(int *count, char *why, size_t size)
{
    *count = 0;
    return not_compiled(why, size);
}

tsvd_status
tsvd_cuda_device_usable(int index, char *why, size_t size)
{
    (void)index;
    return not_compiled(why, size);
}

tsvd_status
tsvd_cuda_device(int index, tsvd_device *device, char *why, size_t size)
{
    (void)index;
    (void)device;
    return not_compiled(why, size);
}

tsvd_status
tsvd_cuda_blas(int major, char *text, size_t size)
{
    (void)major;
    return not_compiled(text, size);
}
