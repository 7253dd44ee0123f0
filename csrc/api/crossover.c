/*
 * The crossover between the CPU and any CUDA device, for arrays in host memory.
 *
 * The orders of backend/tuning.h were measured on one H200 against 16 cores.  Let q be the rate
 * of these cores, and r that of another device, both relative to the H200; let w be the time of a
 * call's work at the H200's rate, and a the time of launches and copies, which hardly depends on
 * the model.  The H200 pays where
 *
 *     w / q >= a + w,   w >= a / (1/q - 1),
 *
 * and the other device where w / q >= a + w / r, that is where the work is larger by the factor
 *
 *     (1 - q) / (1 - q / r),
 *
 * and nowhere if r <= q.  The work with vectors is about n^3, that for values n^2, and that of a
 * batch is proportional to its matrices.  r > 1 is taken as 1, since a does not shrink with it.
 *
 * A rate is (multiprocessors) x (clock) x (lanes of each), and float64 has fewer lanes than
 * float32.  Values are found by counts in float64 in both precisions (cuda/values/counts.h).  With
 * vectors in float32 the counts are a part of the work.
 */
#include <math.h>

#include "backend/method.h"
#include "backend/tuning.h"
#include "host/environment.h"
#include "tsvd/tsvd.h"

/* The rates of an H200 in lanes x kHz: 132 multiprocessors at 1980 MHz. */
static const double H200_DOUBLE = 132.0 * 64 * 1980000, H200_SINGLE = 132.0 * 128 * 1980000;

/* q, relative to the H200.  16 cores with AVX-512 make about 1 TFLOP/s, a thirtieth of the H200.
   A device must do twice as well before it is taken without being asked for, since no other was
   measured.  This leaves out the GPUs with 1/32 or 1/64 of the lanes for float64 (rates up to
   0.05) and takes those with half of them (0.16 for a P100, 0.29 for an A100). */
static const double PROCESSOR_RATE = 1.0 / 16;

/* The part of the work with vectors in float32 that is counts in float64.  On the CPU the values
   took a fifth of the time at n = 1000, and take less for larger n. */
static const double COUNTED_PART = 1.0 / 8;

/* float32 lanes of a multiprocessor. */
static int
lanes_of(const tsvd_cuda_device *device)
{
    const int capability = 10 * device->major + device->minor;

    return capability == 60 || (capability >= 70 && capability <= 80) ? 64 : 128;
}

/* The rate of a device relative to the H200 for the work of a call; 0: unknown. */
static double
rate_of(const tsvd_cuda_device *device, tsvd_dtype dtype, int vectors)
{
    const double lanes =
        (double)device->multiprocessors * (double)device->clock_khz * (double)lanes_of(device);
    double rate, single;

    if (!(lanes > 0) || device->single_to_double <= 0) {
        return 0;
    }
    rate = fmin(1, lanes / (double)device->single_to_double / H200_DOUBLE);
    if (dtype == TSVD_FLOAT32 && vectors) {
        single = fmin(1, lanes / H200_SINGLE);
        rate = 1 / (COUNTED_PART / rate + (1 - COUNTED_PART) / single);
    }
    return rate;
}

/* The factor by which the work must be larger than on an H200; 0: the device never pays. */
static double
more_work(double rate)
{
    return rate > PROCESSOR_RATE ? (1 - PROCESSOR_RATE) / (1 - PROCESSOR_RATE / rate) : 0;
}

static tsvd_cuda_crossover
crossover_of(const tsvd_cuda_device *device, tsvd_dtype dtype, int vectors)
{
    const double rate = device != NULL ? rate_of(device, dtype, vectors) : 1;
    const int64_t order = vectors ? CUDA_ORDER : CUDA_VALUES_ORDER;
    const double more = more_work(rate);
    tsvd_cuda_crossover crossover = {INT64_MAX, INT64_MAX};

    if (more > 0) {
        const double longer = ceil((double)order * (vectors ? cbrt(more) : sqrt(more)));
        const double larger = ceil(CUDA_BATCH_VALUES * more);

        if (larger < 0x1p62) {
            crossover.order = (int64_t)longer;
            crossover.batch_values = (int64_t)larger;
        }
    }
    return crossover;
}

tsvd_cuda_crossover
tsvd_cuda_crossover_of(const tsvd_cuda_device *device, tsvd_dtype dtype, int vectors)
{
    struct host_environment before;
    tsvd_cuda_crossover crossover;

    tsvdi_environment_enter(&before);
    crossover = crossover_of(device, dtype, vectors);
    tsvdi_environment_leave(&before);
    return crossover;
}

/* Whether the device was measured to be faster with the method, as it is with AUTO. */
static int
is_measured(tsvd_method method, int vectors)
{
    const struct method *row = tsvdi_precision_f64.method_of(method);

    return row != NULL ? (row->faster_on_device & (vectors ? FASTER_VECTORS : FASTER_VALUES)) != 0
                       : method == TSVD_METHOD_AUTO;
}

int
tsvd_cuda_pays(const tsvd_cuda_device *device, tsvd_dtype dtype, tsvd_method method, int64_t n,
               int64_t matrices, int vectors)
{
    tsvd_cuda_crossover crossover;

    if (n <= 0 || matrices <= 0 || !is_measured(method, vectors)) {
        return 0;
    }
    crossover = tsvd_cuda_crossover_of(device, dtype, vectors);
    return crossover.order < INT64_MAX &&
           (n >= crossover.order || matrices > (crossover.batch_values - 1) / n);
}

int
tsvd_cuda_pays_dense(const tsvd_cuda_device *device, tsvd_dtype dtype, tsvd_method method,
                     int64_t rows, int64_t columns, int64_t matrices, int vectors)
{
    const int64_t least = rows < columns ? rows : columns;
    struct host_environment before;
    double more, work;

    if (least <= 0 || matrices <= 0 || !is_measured(method, vectors)) {
        return 0;
    }
    tsvdi_environment_enter(&before);
    more = more_work(device != NULL ? rate_of(device, dtype, vectors) : 1);
    work = (double)rows * (double)columns * (double)least * (double)matrices;
    tsvdi_environment_leave(&before);
    return more > 0 && work >= CUDA_DENSE_WORK * more;
}
