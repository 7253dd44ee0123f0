/*
 * Matrix products on the CPU; see blas.h.  Compiled once for both precisions.
 */
#include "host/blas.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "host/host.h"

#if TSVD_LINKED_BLAS
#if TSVD_BLAS_ILP64
tsvd_dgemm64 dgemm_;
tsvd_sgemm64 sgemm_;
#else
tsvd_dgemm32 dgemm_;
tsvd_sgemm32 sgemm_;
#endif
#endif

tsvd_blas
tsvdi_blas_linked(void)
{
    tsvd_blas blas;

    memset(&blas, 0, sizeof blas);
#if TSVD_LINKED_BLAS && TSVD_BLAS_ILP64
    blas.dgemm64 = dgemm_;
    blas.sgemm64 = sgemm_;
#elif TSVD_LINKED_BLAS
    blas.dgemm32 = dgemm_;
    blas.sgemm32 = sgemm_;
#endif
    return blas;
}

int
tsvd_has_blas(void)
{
    const tsvd_blas blas = tsvdi_blas_linked();

    return tsvdi_blas_ready(&blas);
}

int
tsvdi_blas_ready(const tsvd_blas *blas)
{
    return (blas->dgemm32 != NULL && blas->sgemm32 != NULL) ||
           (blas->dgemm64 != NULL && blas->sgemm64 != NULL);
}

/* ---- buffers of the BLAS ---- */

/* The largest buffer of OpenBLAS on x86-64 (its common_x86_64.h; SciPy's has 32 MiB), and 16 MiB
   for the stack of a thread. */
#define BUFFER_BYTES ((size_t)(128 + 16) << 20)

/* Threads that were granted products, in all calls of the process.  A forked child also counts
   those of its parent's other threads, and so asks for more buffers than it needs. */
static atomic_int users;

typedef void blas_function(void);

/* A function of the BLAS that made the last product: that BLAS has at least one buffer. */
static _Atomic(blas_function *) used;

static blas_function *
function_of(const tsvd_blas *blas)
{
    return blas->dgemm32 != NULL ? (blas_function *)blas->dgemm32 : (blas_function *)blas->dgemm64;
}

/* Whether address space is unlimited, as far as one can know: no limit is set, and the system
   overcommits memory. */
static bool
is_unlimited(void)
{
    static atomic_int promises; /* 1: it overcommits; -1: it does not; 0: not asked yet */
    struct rlimit limit;

    if (atomic_load(&promises) == 0) {
        FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
        const int mode = file == NULL ? '0' : fgetc(file);

        if (file != NULL) {
            (void)fclose(file);
        }
        atomic_store(&promises, mode == '2' ? -1 : 1);
    }
    return atomic_load(&promises) > 0 && getrlimit(RLIMIT_AS, &limit) == 0 &&
           limit.rlim_cur == RLIM_INFINITY;
}

/* Whether `buffers` buffers can be mapped. */
static bool
fits(int buffers)
{
    const size_t bytes = (size_t)buffers * BUFFER_BYTES;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);

    return p != MAP_FAILED && munmap(p, bytes) == 0;
}

tsvd_status
tsvdi_blas_enter(const tsvd_blas *blas, int wanted, tsvd_error *error, int *granted)
{
    const int have = atomic_load(&used) == function_of(blas);

    for (*granted = wanted; *granted > 0; --*granted) {
        const int missing = atomic_fetch_add(&users, *granted) + *granted - have;

        if (missing <= 0 || is_unlimited() || fits(missing)) {
            return TSVD_OK;
        }
        atomic_fetch_sub(&users, *granted);
    }
    if (error != NULL) {
        error->device = TSVD_DEVICE_CPU;
        error->wanted = BUFFER_BYTES;
        error->available = 0;
    }
    return tsvdi_fail(error, TSVD_ERR_MEMORY,
                      "out of address space: up to %zu bytes wanted for a buffer of the BLAS",
                      BUFFER_BYTES);
}

void
tsvdi_blas_leave(int granted)
{
    atomic_fetch_sub(&users, granted);
}

/* ---- products ---- */

/* Orders of one product.  OpenBLAS makes products of up to 2^18 multiplications in the calling
   thread.  It would share larger ones with threads of its own, which would take the processors from
   ours and go on spinning when they are done.  64 x 64 x 64 runs at 0.8 of the rate of large
   products (Xeon with AVX-512, 2.6 GHz). */
enum { TILE = 64 };

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void
multiply(const tsvd_blas *blas, int single, const struct blas_product *p)
{
    const char *form_a = p->a_transposed ? "T" : "N", *form_b = p->b_transposed ? "T" : "N";
    const float factor = (float)p->factor, kept = p->overwrite ? 0.f : 1.f;
    const double factor_double = p->factor, kept_double = p->overwrite ? 0. : 1.;

    if (blas->dgemm32 != NULL) {
        const int32_t m = (int32_t)p->m, n = (int32_t)p->n, k = (int32_t)p->k;
        const int32_t lda = (int32_t)p->lda, ldb = (int32_t)p->ldb, ldc = (int32_t)p->ldc;

        if (single) {
            blas->sgemm32(form_a, form_b, &m, &n, &k, &factor, p->a, &lda, p->b, &ldb, &kept, p->c,
                          &ldc);
        } else {
            blas->dgemm32(form_a, form_b, &m, &n, &k, &factor_double, p->a, &lda, p->b, &ldb,
                          &kept_double, p->c, &ldc);
        }
    } else if (single) {
        blas->sgemm64(form_a, form_b, &p->m, &p->n, &p->k, &factor, p->a, &p->lda, p->b, &p->ldb,
                      &kept, p->c, &p->ldc);
    } else {
        blas->dgemm64(form_a, form_b, &p->m, &p->n, &p->k, &factor_double, p->a, &p->lda, p->b,
                      &p->ldb, &kept_double, p->c, &p->ldc);
    }
}

/* Entry (i, j) of the matrix x, or of its transpose. */
static const void *
entry(const void *x, int transposed, int64_t ld, int64_t i, int64_t j, int64_t size)
{
    return (const char *)x + (transposed ? i * ld + j : j * ld + i) * size;
}

void
tsvdi_blas_product(const tsvd_blas *blas, int single, const struct blas_product *p)
{
    const int64_t size = single ? sizeof(float) : sizeof(double);
    blas_function *const function = function_of(blas);
    struct blas_product tile = *p;
    int64_t k = 0, terms = TILE, columns;

    /* about sqrt(k) terms a tile: rounding errors of equal terms add up within a tile, and over the
       tiles */
    while (terms * terms < p->k && terms < 4 * TILE) {
        terms *= 2;
    }
    columns = TILE * TILE / terms;

    do { /* products after the first are added to C */
        tile.k = least(p->k - k, terms);
        for (int64_t j = 0; j < p->n; j += columns) {
            tile.n = least(p->n - j, columns);
            tile.b = entry(p->b, p->b_transposed, p->ldb, k, j, size);
            for (int64_t i = 0; i < p->m; i += TILE) {
                tile.m = least(p->m - i, TILE);
                tile.a = entry(p->a, p->a_transposed, p->lda, i, k, size);
                tile.c = (char *)p->c + (j * p->ldc + i) * size;
                multiply(blas, single, &tile);
            }
        }
        tile.overwrite = 0;
        k += terms;
    } while (k < p->k);
    if (atomic_load_explicit(&used, memory_order_relaxed) != function) {
        atomic_store(&used, function);
    }
}

/* BLAS reads matrices by columns, so it sees the transposes: C^T = B^T A^T. */
void
tsvdi_blas_multiply(const tsvd_blas *blas, int single, int64_t rows, int64_t columns, int64_t terms,
                    const void *a, int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc)
{
    const struct blas_product product = {
        .m = columns,
        .n = rows,
        .k = terms,
        .overwrite = 1,
        .factor = 1,
        .a = b,
        .b = a,
        .c = c,
        .lda = ldb,
        .ldb = lda,
        .ldc = ldc,
    };

    tsvdi_blas_product(blas, single, &product);
}
