/*
 * Whether a CUDA device can be used.
 */
#ifndef TSVDI_CUDA_RUNTIME_USABLE_H
#define TSVDI_CUDA_RUNTIME_USABLE_H

#include "tsvd/tsvd.h"

/* Code of this build for a device: none; PTX, which the driver compiles; or the device's own. */
enum cuda_code { CODE_NONE, CODE_PTX, CODE_MACHINE };

/*
 * The best code for a device of capability major.minor in a build for `architectures`: as CMake has
 * them, with commas between.  "86" is code for 8.6 and PTX of 8.6, "86-real" the code alone,
 * "86-virtual" the PTX alone.  Code runs on devices of the same major version with an equal or
 * larger minor one, PTX on all that are not older; with "a" after the number both run on exactly
 * that capability, with "f" on its major version.
 */
enum cuda_code tsvdi_cuda_code(const char *architectures, int major, int minor);

/* As tsvd_cuda_device_usable(), from given facts: those of tsvd_cuda_device_facts() of device
   `index`, the architectures of the build ("": unknown), the runtime's version and the driver's.
   pools: 1 if memory is to come from CUDA's pools. */
tsvd_status tsvdi_cuda_judge(int index, const tsvd_cuda_device *device, int pools,
                             const char *architectures, int runtime, int driver, tsvd_error *error);

/* The same for a device of this machine.  Makes no context. */
tsvd_status tsvdi_cuda_may_use(int index, int pools, tsvd_error *error);

/* Whether the runtime loads the code for device `index`, in whose context the caller is.  It knows
   what capabilities do not tell: whether this driver compiles the PTX. */
tsvd_status tsvdi_cuda_loads(int index, tsvd_error *error);

#endif
