/*
 * Matrix products on the CPU; see blas.h.  Compiled once for all types.
 */
#include "host/blas.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "host/dtype.h"
#include "host/host.h"

#if TSVD_LINKED_BLAS
#if TSVD_BLAS_ILP64
tsvd_dgemm64 dgemm_;
tsvd_sgemm64 sgemm_;
tsvd_zgemm64 zgemm_;
tsvd_cgemm64 cgemm_;
#else
tsvd_dgemm32 dgemm_;
tsvd_sgemm32 sgemm_;
tsvd_zgemm32 zgemm_;
tsvd_cgemm32 cgemm_;
#endif
#endif

tsvd_blas
tsvdi_blas_linked(void)
{
    tsvd_blas blas;

    memset(&blas, 0, sizeof blas);
    blas.size = sizeof blas;
#if TSVD_LINKED_BLAS && TSVD_BLAS_ILP64
    blas.dgemm64 = dgemm_;
    blas.sgemm64 = sgemm_;
    blas.zgemm64 = zgemm_;
    blas.cgemm64 = cgemm_;
#elif TSVD_LINKED_BLAS
    blas.dgemm32 = dgemm_;
    blas.sgemm32 = sgemm_;
    blas.zgemm32 = zgemm_;
    blas.cgemm32 = cgemm_;
#endif
    return blas;
}

int
tsvd_has_blas(void)
{
    const tsvd_blas blas = tsvdi_blas_linked();

    return tsvdi_blas_ready(&blas, 0);
}

int
tsvdi_blas_ready(const tsvd_blas *blas, int with_complex)
{
    if (blas->dgemm32 != NULL && blas->sgemm32 != NULL) {
        return !with_complex || (blas->zgemm32 != NULL && blas->cgemm32 != NULL);
    }
    return blas->dgemm64 != NULL && blas->sgemm64 != NULL &&
           (!with_complex || (blas->zgemm64 != NULL && blas->cgemm64 != NULL));
}

/* ---- forks ---- */

/* OpenBLAS takes a lock where it gives a product its buffer, and does not care for forks: a child
   that is forked meanwhile finds the lock taken for ever.  So a fork waits until no product of ours
   runs, and none begins until it is done.  Threads count themselves in on cache lines of their own,
   with few exceptions. */
enum { DOORS = 64, LINE = 64 };

struct door {
    _Alignas(LINE) atomic_int inside; /* threads that make a product */
};

static struct {
    struct door doors[DOORS];
    atomic_bool closed;
    pthread_mutex_t lock; /* held while a process forks */
} forks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct door *
enter(void)
{
    /* the addresses of threads are multiples of the size of a stack, or nearly */
    const uint64_t mixed = (uint64_t)(uintptr_t)pthread_self() * UINT64_C(0x9E3779B97F4A7C15);
    struct door *mine = &forks.doors[(mixed >> 32) % DOORS];

    atomic_fetch_add(&mine->inside, 1);
    while (atomic_load(&forks.closed)) {
        atomic_fetch_sub(&mine->inside, 1);
        (void)pthread_mutex_lock(&forks.lock); /* until the fork is done */
        (void)pthread_mutex_unlock(&forks.lock);
        atomic_fetch_add(&mine->inside, 1);
    }
    return mine;
}

static void
leave(struct door *mine)
{
    atomic_fetch_sub(&mine->inside, 1);
}

static void
before_fork(void)
{
    (void)pthread_mutex_lock(&forks.lock);
    atomic_store(&forks.closed, true);
    for (int i = 0; i < DOORS; i++) {
        while (atomic_load(&forks.doors[i].inside) > 0) {
            (void)sched_yield();
        }
    }
}

static void
after_fork_in_parent(void)
{
    atomic_store(&forks.closed, false);
    (void)pthread_mutex_unlock(&forks.lock);
}

/* Another thread of the parent may have looked in while the doors were closed. */
static void
after_fork_in_child(void)
{
    for (int i = 0; i < DOORS; i++) {
        atomic_store(&forks.doors[i].inside, 0);
    }
    after_fork_in_parent();
}

__attribute__((constructor)) static void
watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- products ---- */

/* Orders of one product.  OpenBLAS makes products of up to 2^18 multiplications, of complex numbers
   below 2^16, in the calling thread.  Larger ones it would share with threads of its own, which
   would take the processors from ours and go on spinning when they are done.  64 x 64 x 64 runs at
   0.8 of the rate of large products (Xeon with AVX-512, 2.6 GHz), 32 x 28 x 64 complex numbers at
   0.75 (EPYC). */
enum { TILE = 64, COMPLEX_ROWS = 32, COMPLEX_COLUMNS = 28 };

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void
multiply(const tsvd_blas *blas, tsvd_dtype dtype, const struct blas_product *p)
{
    const int is_complex = dtype_is_complex(dtype);
    const char *turned = is_complex ? "C" : "T";
    const char *form_a = p->a_transposed ? turned : "N", *form_b = p->b_transposed ? turned : "N";
    const float factor[2] = {(float)p->factor, 0}, kept[2] = {p->overwrite ? 0.f : 1.f, 0};
    const double factor_double[2] = {p->factor, 0}, kept_double[2] = {p->overwrite ? 0. : 1., 0};
    struct door *door = enter();

    if (blas->dgemm32 != NULL) {
        const int32_t m = (int32_t)p->m, n = (int32_t)p->n, k = (int32_t)p->k;
        const int32_t lda = (int32_t)p->lda, ldb = (int32_t)p->ldb, ldc = (int32_t)p->ldc;

        if (dtype_of_reals(dtype) == TSVD_FLOAT32) {
            (is_complex ? blas->cgemm32 : blas->sgemm32)(form_a, form_b, &m, &n, &k, factor, p->a,
                                                         &lda, p->b, &ldb, kept, p->c, &ldc);
        } else {
            (is_complex ? blas->zgemm32 : blas->dgemm32)(form_a, form_b, &m, &n, &k, factor_double,
                                                         p->a, &lda, p->b, &ldb, kept_double, p->c,
                                                         &ldc);
        }
    } else if (dtype_of_reals(dtype) == TSVD_FLOAT32) {
        (is_complex ? blas->cgemm64 : blas->sgemm64)(form_a, form_b, &p->m, &p->n, &p->k, factor,
                                                     p->a, &p->lda, p->b, &p->ldb, kept, p->c,
                                                     &p->ldc);
    } else {
        (is_complex ? blas->zgemm64 : blas->dgemm64)(form_a, form_b, &p->m, &p->n, &p->k,
                                                     factor_double, p->a, &p->lda, p->b, &p->ldb,
                                                     kept_double, p->c, &p->ldc);
    }
    leave(door);
}

/* Entry (i, j) of a matrix, or of the transpose of what is given. */
static const void *
entry(const void *x, int transposed, int64_t ld, int64_t i, int64_t j, int64_t size)
{
    return (const char *)x + (transposed ? i * ld + j : j * ld + i) * size;
}

void
tsvdi_blas_product(const tsvd_blas *blas, tsvd_dtype dtype, const struct blas_product *p)
{
    const int64_t size = (int64_t)dtype_size(dtype);
    const int64_t rows = dtype_is_complex(dtype) ? COMPLEX_ROWS : TILE;
    struct blas_product tile = *p;
    int64_t k = 0, terms = TILE, columns;

    /* about the root of all: rounding errors of equal terms add up, in a tile and over the tiles */
    while (terms * terms < p->k && terms < 4 * TILE) {
        terms *= 2;
    }
    columns = (dtype_is_complex(dtype) ? COMPLEX_COLUMNS : TILE) * TILE / terms;

    do { /* the products after the first are added to it */
        tile.k = least(p->k - k, terms);
        for (int64_t j = 0; j < p->n; j += columns) {
            tile.n = least(p->n - j, columns);
            tile.b = entry(p->b, p->b_transposed, p->ldb, k, j, size);
            for (int64_t i = 0; i < p->m; i += rows) {
                tile.m = least(p->m - i, rows);
                tile.a = entry(p->a, p->a_transposed, p->lda, i, k, size);
                tile.c = (char *)p->c + (j * p->ldc + i) * size;
                multiply(blas, dtype, &tile);
            }
        }
        tile.overwrite = 0;
        k += terms;
    } while (k < p->k);
}

/* BLAS sees matrices by columns: to it the arrays are the transposes, C^T = B^T A^T. */
void
tsvdi_blas_multiply(const tsvd_blas *blas, tsvd_dtype dtype, int64_t rows, int64_t columns,
                    int64_t terms, const void *a, int64_t lda, const void *b, int64_t ldb, void *c,
                    int64_t ldc)
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

    tsvdi_blas_product(blas, dtype, &product);
}

/* ---- buffers of the BLAS ---- */

/* The largest buffer of OpenBLAS on x86-64 (its common_x86_64.h; SciPy's has 32 MiB), and some more
   for the stack of a thread. */
#define BUFFER_BYTES ((size_t)(128 + 16) << 20)

/* Threads that were granted products, in all calls of the process.  A forked child also counts
   those of its parent's other threads, and asks for too much. */
static atomic_int users;

typedef void blas_function(void);

/* A function of the BLAS that has a buffer at least: see warm(). */
static _Atomic(blas_function *) warmed;

static blas_function *
function_of(const tsvd_blas *blas)
{
    return blas->dgemm32 != NULL ? (blas_function *)blas->dgemm32 : (blas_function *)blas->dgemm64;
}

/* Whether address space is granted without end, as far as one can know: no limit is set, and the
   system promises more memory than there is. */
static bool
is_unlimited(void)
{
    static atomic_int promises; /* 1: it does; -1: it does not; 0: not asked yet */
    struct rlimit space, data;

    if (atomic_load(&promises) == 0) {
        FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
        const int mode = file == NULL ? '0' : fgetc(file);

        if (file != NULL) {
            (void)fclose(file);
        }
        atomic_store(&promises, mode == '2' ? -1 : 1);
    }
    return atomic_load(&promises) > 0 && getrlimit(RLIMIT_AS, &space) == 0 &&
           getrlimit(RLIMIT_DATA, &data) == 0 && space.rlim_cur == RLIM_INFINITY &&
           data.rlim_cur == RLIM_INFINITY;
}

/* Whether that many buffers can be mapped. */
static bool
fits(int buffers)
{
    const size_t bytes = (size_t)buffers * BUFFER_BYTES;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);

    return p != MAP_FAILED && munmap(p, bytes) == 0;
}

/* Lets the BLAS map a buffer, which it keeps: from here on the products of one thread are sure of
   one.  OpenBLAS has kernels for small products that need none, on processors with AVX-512.  They
   leave out this one, A^T B with more than 1200 entries. */
static tsvd_status
warm(const tsvd_blas *blas, tsvd_error *error)
{
    enum { M = 40, N = 32, K = 110 };
    struct blas_product p = {.m = M, .n = N, .k = K, .lda = K, .ldb = K, .ldc = M};
    double *memory = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_host_alloc(&tsvdi_host_allocator, (size_t)(K * M + M * N) * sizeof *memory,
                              error, (void **)&memory));
    memset(memory, 0, (size_t)(K * M + M * N) * sizeof *memory);
    p.a_transposed = 1;
    p.overwrite = 1;
    p.factor = 1;
    p.a = p.b = memory;
    p.c = memory + K * M;
    multiply(blas, TSVD_FLOAT64, &p);
    atomic_store(&warmed, function_of(blas));
out:
    tsvdi_host_free(&tsvdi_host_allocator, memory);
    return ret;
}

void
tsvdi_blas_leave(int granted)
{
    atomic_fetch_sub(&users, granted);
}

tsvd_status
tsvdi_blas_enter(const tsvd_blas *blas, int wanted, tsvd_error *error, int *granted)
{
    const bool is_warm = atomic_load(&warmed) == function_of(blas);

    for (*granted = wanted; *granted > 0; --*granted) {
        const int missing = atomic_fetch_add(&users, *granted) + *granted - is_warm;

        if (missing <= 0 || is_unlimited() || fits(missing)) {
            const tsvd_status status = is_warm ? TSVD_OK : warm(blas, error);

            if (status != TSVD_OK) {
                tsvdi_blas_leave(*granted);
            }
            return status;
        }
        tsvdi_blas_leave(*granted);
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
