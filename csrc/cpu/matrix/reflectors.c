/*
 * Dense matrices on the CPU: products with reflectors.
 *
 * A block of reflectors becomes one factor, H_0 H_1 ... = I - V T V^H with T upper triangular
 * (Schreiber & Van Loan 1989), so that BLAS does the work.
 */
#include <assert.h>
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/matrix/stages.h"
#include "cpu/tuning.h"
#include "math/reflector.h"

real
tsvdi_cpu_dense_square(int64_t count, const scalar *x, real *up)
{
    scalar sum;

    tsvdi_kernels()->dots(count - 1, 1, x + 1, 0, x + 1, &sum);
    *up = reflector_up(x[0], n_real(sum));
    return *up == 1 ? n_real(sum)
                    : reflector_square_up(N_PARTS * (count - 1), (const real *)(x + 1));
}

scalar
tsvdi_cpu_dense_reflector(int64_t count, scalar *x, real *beta)
{
    real up;
    const real square = tsvdi_cpu_dense_square(count, x, &up);
    const struct reflector h = reflector_make(x[0], square, up);

    for (int64_t i = 1; i < count; i++) {
        x[i] = reflector_entry(h, x[i]);
    }
    x[0] = 1;
    *beta = h.beta;
    return h.tau;
}

/* ---- products ---- */

/* Who multiplies, and how much is done. */
struct caller {
    const struct dense_run *run;
    int worker;
    double done;
};

struct shared_product {
    const struct caller *caller;
    struct blas_product whole;
    int by_rows;
    int64_t share;     /* rows or columns of a part */
    int64_t terms;     /* 0, or the terms of a partial sum of V^H X */
    scalar *workspace; /* [columns][CPU_REFLECTORS_BLOCK] for partial sums */
};

static const tsvd_blas *
blas_of(const struct caller *caller)
{
    return &caller->run->ctx->call->handle->blas;
}

/* C = V^H X.  The rows of X are halved, down to a depth of `levels`, and the sums of the halves are
   added.  At the bottom blocks of `terms` rows are added one after another.  worker: the thread. */
static tsvd_status
multiply_by_halves(const struct shared_product *shared, int worker, struct blas_product product,
                   int levels, scalar *workspace)
{
    const int64_t whole = product.k, terms = shared->terms, size = (int64_t)sizeof(scalar);
    const struct caller *caller = shared->caller;
    struct blas_product rest = product;
    scalar *c = product.c;
    tsvd_status ret = TSVD_OK;

    if (levels == 0 || whole <= 2 * terms) {
        for (int64_t k = 0; k < whole; k += terms) {
            product.k = whole - k < terms ? whole - k : terms;
            dense_product(blas_of(caller), &product);
            product.a = (const char *)product.a + terms * size; /* A is transposed, B is not */
            product.b = (const char *)product.b + terms * size;
            product.overwrite = 0;
        }
        return worker == 0 ? dense_check(caller->run, caller->worker, caller->done) : TSVD_OK;
    }
    product.k = (whole / 2 + terms - 1) / terms * terms;
    TSVD_TRY(multiply_by_halves(shared, worker, product, levels - 1, workspace));
    rest.k = whole - product.k;
    rest.a = (const char *)rest.a + product.k * size;
    rest.b = (const char *)rest.b + product.k * size;
    rest.c = workspace;
    rest.ldc = rest.m;
    TSVD_TRY(multiply_by_halves(shared, worker, rest, levels - 1, workspace + rest.m * rest.n));
    for (int64_t j = 0; j < rest.n; j++) {
        for (int64_t i = 0; i < rest.m; i++) {
            c[j * product.ldc + i] += workspace[j * rest.ldc + i];
        }
    }
out:
    return ret;
}

static tsvd_status
multiply_part(void *arg, int worker, int64_t index)
{
    const struct shared_product *shared = arg;
    struct blas_product part = shared->whole;
    const int64_t size = part.in_double ? (int64_t)sizeof(scalar_double) : (int64_t)sizeof(scalar);
    const int64_t share = shared->share, first = index * share;

    if (shared->by_rows) {
        part.m = part.m - first < share ? part.m - first : share;
        part.a = (const char *)part.a + first * (part.a_transposed ? part.lda : 1) * size;
        part.c = (char *)part.c + first * size;
    } else {
        part.n = part.n - first < share ? part.n - first : share;
        part.b = (const char *)part.b + first * (part.b_transposed ? 1 : part.ldb) * size;
        part.c = (char *)part.c + first * part.ldc * size;
    }
    if (shared->terms > 0) {
        return multiply_by_halves(shared, worker, part, (int)(CPU_REFLECTORS_BLOCK / part.m),
                                  shared->workspace + first * CPU_REFLECTORS_BLOCK);
    }
    if (part.in_double && TSVD_SINGLE) {
        tsvdi_blas_product(blas_of(shared->caller), DOUBLE_DTYPE, &part);
    } else {
        dense_product(blas_of(shared->caller), &part);
    }
    return TSVD_OK;
}

/* Rows or columns of a part.  Bits of a BLAS may depend on how a product is cut, and how partial
   sums are added up does: there the threads must not matter.  A kernel of ours makes each entry in
   the same way, whatever part it is in. */
static int64_t
share_of(const struct shared_product *shared, int64_t longer, int threads)
{
    const int64_t tile = CPU_PRODUCT_TILE * (1 + TSVD_SINGLE);
    const int64_t least = ((longer + threads - 1) / threads + tile - 1) / tile * tile;
    const int by_kernel = kernel_multiplies() && !shared->whole.in_double && shared->terms == 0;

    return by_kernel && least < CPU_PRODUCT_SHARE ? least : CPU_PRODUCT_SHARE;
}

/* Shares a product out over our own threads.  Threads of the BLAS would go on spinning after a
   product, and take the processors from ours, which are at work between two products. */
static tsvd_status
share_product(struct shared_product *shared)
{
    const struct blas_product *product = &shared->whole;
    const int64_t longer = product->m > product->n ? product->m : product->n;
    const int many = product->m * product->n >= CPU_PRODUCT_SHARED / product->k;
    const int threads = many ? shared->caller->run->threads : 1;

    shared->by_rows = product->m > product->n;
    shared->share = share_of(shared, longer, threads);
    return tsvdi_host_for_each(threads, (longer + shared->share - 1) / shared->share, multiply_part,
                               shared);
}

void
tsvdi_cpu_dense_product(const struct dense_run *run, const struct blas_product *product)
{
    const struct caller caller = {run, 0, 0};

    (void)share_product(&(struct shared_product){.caller = &caller, .whole = *product});
}

/* Multiplications between two calls of tsvdi_check(): 0.15 to 0.3 s of a core. */
#define STEP_SIZE ((int64_t)4 << 30)

/* The terms of a product of more than LONG_SUM terms are cut at multiples of STEP_TERMS, and C at
   multiples of CPU_PRODUCT_SHARE.  tsvdi_blas_product() then cuts the steps into the same tiles as
   the whole product, in the same order. */
enum { LONG_SUM = 1 << 16, STEP_TERMS = 256 };
static_assert(STEP_SIZE > (int64_t)CPU_PRODUCT_SHARE * CPU_PRODUCT_SHARE * LONG_SUM,
              "what is longer than a step can be cut");

static int64_t
half_of(int64_t count, int64_t unit)
{
    return (count / unit + 1) / 2 * unit;
}

tsvd_status
tsvdi_cpu_dense_long_product(const struct dense_run *run, int worker,
                             const struct blas_product *product, double done)
{
    const int64_t size =
        product->in_double ? (int64_t)sizeof(scalar_double) : (int64_t)sizeof(scalar);
    struct blas_product first = *product, second = *product;
    tsvd_status ret = TSVD_OK;

    if ((double)product->m * (double)product->n * (double)product->k <= (double)STEP_SIZE) {
        tsvdi_cpu_dense_product(run, product);
        return TSVD_OK;
    }
    if (product->k > LONG_SUM) {
        first.k = half_of(product->k, STEP_TERMS);
        second.k -= first.k;
        second.a =
            (const char *)second.a + first.k * (product->a_transposed ? 1 : product->lda) * size;
        second.b =
            (const char *)second.b + first.k * (product->b_transposed ? product->ldb : 1) * size;
        second.overwrite = 0;
    } else if (product->m > product->n) {
        first.m = half_of(product->m, CPU_PRODUCT_SHARE);
        second.m -= first.m;
        second.a =
            (const char *)second.a + first.m * (product->a_transposed ? product->lda : 1) * size;
        second.c = (char *)second.c + first.m * size;
    } else {
        first.n = half_of(product->n, CPU_PRODUCT_SHARE);
        second.n -= first.n;
        second.b =
            (const char *)second.b + first.n * (product->b_transposed ? 1 : product->ldb) * size;
        second.c = (char *)second.c + first.n * product->ldc * size;
    }
    TSVD_TRY(tsvdi_cpu_dense_long_product(run, worker, &first, done));
    TSVD_TRY(dense_check(run, worker, done));
    TSVD_TRY(tsvdi_cpu_dense_long_product(run, worker, &second, done));
out:
    return ret;
}

static tsvd_status
multiply_some(const struct caller *caller, struct blas_product product)
{
    return tsvdi_cpu_dense_long_product(caller->run, caller->worker, &product, caller->done);
}

/* The product with a block's V^H, as `product` says, which overwrites C.  terms: 0, or the terms of
   a partial sum; workspace: [columns][CPU_REFLECTORS_BLOCK] for partial sums. */
static tsvd_status
multiply_v(const struct caller *caller, struct blas_product product, int64_t terms,
           scalar *workspace)
{
    struct shared_product shared = {
        .caller = caller, .whole = product, .terms = terms, .workspace = workspace};

    return terms > 0 ? share_product(&shared) : multiply_some(caller, product);
}

/* ---- one block ---- */

/* A block of reflectors, and its arrays in a worker's workspace. */
struct block {
    scalar *v;                      /* by columns, [width][stride] */
    scalar *t;                      /* [CPU_REFLECTORS_BLOCK][CPU_REFLECTORS_BLOCK], by columns */
    scalar *gram, *product, *other; /* [..][CPU_REFLECTORS_BLOCK] */
    int64_t width, length, stride;
    int64_t terms; /* as in struct dense_reflectors */
};

static_assert(0 < CPU_REFLECTORS_FEW && CPU_REFLECTORS_FEW <= CPU_REFLECTORS_BLOCK,
              "the arrays of a block hold them");

/* Numbers for T of each block of reflectors, and for a block and its slab of vectors. */
static int64_t
factors_workspace(int64_t length)
{
    return (length + CPU_REFLECTORS_BLOCK) * CPU_REFLECTORS_BLOCK;
}

static int64_t
slab_workspace(int64_t length)
{
    return CPU_REFLECTORS_BLOCK * (length + CPU_REFLECTORS_BLOCK + 2 * CPU_REFLECTORS_SLAB);
}

/* Reflectors may also be shorter than `length`, and then go in slabs if `length` is too long. */
int64_t
tsvdi_cpu_dense_multiply_workspace(int64_t length, int threads)
{
    const int64_t together = CPU_REFLECTORS_BLOCK * length +
                             2 * CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_BLOCK +
                             2 * CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_VECTORS;
    const int64_t most = length < CPU_REFLECTORS_SLABS_TO ? length : CPU_REFLECTORS_SLABS_TO;
    const int64_t slabs =
        threads > 0 ? factors_workspace(most) + threads * slab_workspace(most) : 0;

    return together > slabs ? together : slabs;
}

/* Copies the reflectors of a block, with their ones and the zeros before them.  conjugated: their
   conjugates. */
static void
copy_block(const struct dense_reflectors *r, int64_t first, int conjugated, struct block *b)
{
    const int64_t length = b->length, reach = r->reach > 0 ? r->reach : r->length;

    for (int64_t j = 0; j < b->width; j++) {
        const scalar *from = r->a + (first + j) * (r->stride + 1);
        const int64_t own = length - j < reach ? length - j : reach;
        scalar *v = b->v + j * b->stride;

        memset(v, 0, (size_t)length * sizeof *v);
        v[j] = 1;
        if (r->in_rows) {
            for (int64_t i = 1; i < own; i++) {
                v[j + i] = from[i * r->stride];
            }
        } else {
            memcpy(v + j + 1, from + 1, (size_t)(own - 1) * sizeof *v);
        }
        for (int64_t i = j + 1; TSVD_COMPLEX && conjugated && i < j + own; i++) {
            v[i] = n_conj(v[i]);
        }
    }
}

/* T: column i is -tau_i T (V^H v_i) above the diagonal, and tau_i on it.  conjugated: V holds
   conjugates, and T too. */
static tsvd_status
make_t(const struct caller *caller, const scalar *tau, int conjugated, struct block *b)
{
    const int64_t width = b->width;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(multiply_v(caller,
                        (struct blas_product){.m = width,
                                              .n = width,
                                              .k = b->length,
                                              .a_transposed = 1,
                                              .overwrite = 1,
                                              .factor = 1,
                                              .a = b->v,
                                              .b = b->v,
                                              .c = b->gram,
                                              .lda = b->stride,
                                              .ldb = b->stride,
                                              .ldc = CPU_REFLECTORS_BLOCK},
                        b->terms, b->other));
    for (int64_t i = 0; i < width; i++) {
        scalar *column = b->t + i * CPU_REFLECTORS_BLOCK, factor[CPU_REFLECTORS_BLOCK];
        const scalar own = conjugated ? n_conj(tau[i]) : tau[i];

        memset(column, 0, (size_t)width * sizeof *column);
        for (int64_t k = 0; k < i; k++) {
            factor[k] = n_mul(-own, b->gram[i * CPU_REFLECTORS_BLOCK + k]);
        }
        tsvdi_kernels()->accumulate(i, i, factor, b->t, CPU_REFLECTORS_BLOCK, column);
        column[i] = own;
    }
out:
    return ret;
}

/* Vectors that are columns to BLAS: X := X - V (T (V^H X)), or with T^H. */
static tsvd_status
multiply_left(const struct caller *caller, const struct block *b, int transposed,
              const struct dense_block *x)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(multiply_v(caller,
                        (struct blas_product){.m = b->width,
                                              .n = x->count,
                                              .k = b->length,
                                              .a_transposed = 1,
                                              .overwrite = 1,
                                              .factor = 1,
                                              .a = b->v,
                                              .b = x->x,
                                              .c = b->product,
                                              .lda = b->stride,
                                              .ldb = x->stride,
                                              .ldc = CPU_REFLECTORS_BLOCK},
                        b->terms, b->other));
    TSVD_TRY(multiply_some(caller, (struct blas_product){.m = b->width,
                                                         .n = x->count,
                                                         .k = b->width,
                                                         .a_transposed = transposed,
                                                         .overwrite = 1,
                                                         .factor = 1,
                                                         .a = b->t,
                                                         .b = b->product,
                                                         .c = b->other,
                                                         .lda = CPU_REFLECTORS_BLOCK,
                                                         .ldb = CPU_REFLECTORS_BLOCK,
                                                         .ldc = CPU_REFLECTORS_BLOCK}));
    TSVD_TRY(multiply_some(caller, (struct blas_product){.m = b->length,
                                                         .n = x->count,
                                                         .k = b->width,
                                                         .factor = -1,
                                                         .a = b->v,
                                                         .b = b->other,
                                                         .c = x->x,
                                                         .lda = b->stride,
                                                         .ldb = CPU_REFLECTORS_BLOCK,
                                                         .ldc = x->stride}));
out:
    return ret;
}

/* Vectors that are rows to BLAS: X := X - ((X V) T^H) V^H, or with T.  V and T hold conjugates, so
   that this is the product of what they are conjugates of, transposed. */
static tsvd_status
multiply_right(const struct caller *caller, const struct block *b, int transposed,
               const struct dense_block *x)
{
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(multiply_some(caller, (struct blas_product){.m = x->count,
                                                         .n = b->width,
                                                         .k = b->length,
                                                         .overwrite = 1,
                                                         .factor = 1,
                                                         .a = x->x,
                                                         .b = b->v,
                                                         .c = b->product,
                                                         .lda = x->stride,
                                                         .ldb = b->stride,
                                                         .ldc = x->count}));
    TSVD_TRY(multiply_some(caller, (struct blas_product){.m = x->count,
                                                         .n = b->width,
                                                         .k = b->width,
                                                         .b_transposed = !transposed,
                                                         .overwrite = 1,
                                                         .factor = 1,
                                                         .a = b->product,
                                                         .b = b->t,
                                                         .c = b->other,
                                                         .lda = x->count,
                                                         .ldb = CPU_REFLECTORS_BLOCK,
                                                         .ldc = x->count}));
    TSVD_TRY(multiply_some(caller, (struct blas_product){.m = x->count,
                                                         .n = b->length,
                                                         .k = b->width,
                                                         .b_transposed = 1,
                                                         .factor = -1,
                                                         .a = b->other,
                                                         .b = b->v,
                                                         .c = x->x,
                                                         .lda = x->count,
                                                         .ldb = b->stride,
                                                         .ldc = x->stride}));
out:
    return ret;
}

tsvd_status
tsvdi_cpu_dense_factor(const struct dense_run *run, int worker, const struct dense_reflectors *r,
                       struct dense_factor *to, double done)
{
    const struct caller caller = {run, worker, done};
    struct block b = {.v = to->v,
                      .t = to->t,
                      .gram = to->gram,
                      .other = to->sums,
                      .width = r->count,
                      .length = r->length,
                      .stride = to->stride,
                      .terms = r->terms};

    copy_block(r, 0, 0, &b);
    return make_t(&caller, r->tau, 0, &b);
}

/* Reflectors that are applied together. */
static int64_t
block_width(const struct dense_reflectors *r)
{
    return r->length < CPU_REFLECTORS_LONG ? CPU_REFLECTORS_FEW : CPU_REFLECTORS_BLOCK;
}

static int64_t
blocks_of(const struct dense_reflectors *r)
{
    return (r->count + block_width(r) - 1) / block_width(r);
}

/* Block `index` of the reflectors, with V.  b->v is there. */
static int64_t
begin_block(const struct dense_reflectors *r, int64_t index, int conjugated, struct block *b)
{
    const int64_t first = index * block_width(r), left = r->count - first;

    b->width = left < block_width(r) ? left : block_width(r);
    b->length = b->stride = r->length - first;
    copy_block(r, first, conjugated, b);
    return first;
}

/* The entries of vectors that a block beginning with reflector `first` changes. */
static scalar *
entries_of(const struct dense_reflectors *r, int64_t first, const struct dense_block *vectors)
{
    return vectors->x + (r->from + first) * (vectors->rows ? 1 : vectors->stride);
}

static tsvd_status
multiply_block(const struct caller *caller, const struct block *b, int transposed,
               const struct dense_block *x)
{
    return x->rows ? multiply_left(caller, b, transposed, x)
                   : multiply_right(caller, b, transposed, x);
}

/* ---- many vectors ---- */

/* Many vectors are shared out in slabs, each of which stays in a thread's cache while all blocks
   multiply it. */
struct shared_slabs {
    const struct dense_run *run;
    int worker; /* that of the run */
    const struct dense_reflectors *r;
    int transposed, conjugated;
    struct dense_block block;
    double done, share;
};

static int64_t
slabs_of(const struct shared_slabs *shared)
{
    return (shared->block.count + CPU_REFLECTORS_SLAB - 1) / CPU_REFLECTORS_SLAB;
}

static scalar *
factor_at(const struct shared_slabs *shared, int64_t index)
{
    return worker_work(shared->run, shared->worker) +
           index * block_width(shared->r) * CPU_REFLECTORS_BLOCK;
}

/* The workspace of a thread as that of a block, and a run of that thread alone. */
static struct block
begin_slab(const struct shared_slabs *shared, int thread, struct dense_run *run)
{
    const int64_t length = shared->r->length;
    struct block b = {.v = worker_work(shared->run, shared->worker) + factors_workspace(length) +
                           thread * slab_workspace(length)};

    b.gram = b.v + CPU_REFLECTORS_BLOCK * length;
    b.product = b.gram + CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_BLOCK;
    b.other = b.product + CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_SLAB;
    *run = run_of_thread(shared->run);
    return b;
}

static tsvd_status
make_one_t(void *arg, int thread, int64_t index)
{
    const struct shared_slabs *shared = arg;
    struct dense_run run;
    struct block b = begin_slab(shared, thread, &run);
    const struct caller caller = {&run, 0, 0};
    const int64_t first = begin_block(shared->r, index, shared->conjugated, &b);

    b.t = factor_at(shared, index);
    return make_t(&caller, shared->r->tau + first, shared->conjugated, &b);
}

static tsvd_status
multiply_slab(void *arg, int thread, int64_t slab)
{
    const struct shared_slabs *shared = arg;
    const int64_t blocks = blocks_of(shared->r), at = slab * CPU_REFLECTORS_SLAB;
    const double share = shared->share * (double)slab / (double)slabs_of(shared);
    struct dense_run run;
    struct block b = begin_slab(shared, thread, &run);
    const struct caller caller = {&run, 0, 0};
    struct dense_block part = shared->block;
    tsvd_status ret = TSVD_OK;

    part.x += at * (part.rows ? part.stride : 1);
    part.count = part.count - at < CPU_REFLECTORS_SLAB ? part.count - at : CPU_REFLECTORS_SLAB;
    for (int64_t step = 0; step < blocks; step++) {
        const int64_t index = shared->transposed ? step : blocks - 1 - step;
        const int64_t first = begin_block(shared->r, index, shared->conjugated, &b);
        struct dense_block x = part;

        if (thread == 0) {
            TSVD_TRY(dense_check(shared->run, shared->worker, shared->done + share));
        }
        x.x = entries_of(shared->r, first, &part);
        b.t = factor_at(shared, index);
        TSVD_TRY(multiply_block(&caller, &b, shared->transposed, &x));
    }
out:
    return ret;
}

static tsvd_status
multiply_slabs(struct shared_slabs *shared)
{
    const int threads = shared->run->threads;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(dense_check(shared->run, shared->worker, shared->done));
    TSVD_TRY(tsvdi_host_for_each(threads, blocks_of(shared->r), make_one_t, shared));
    TSVD_TRY(tsvdi_host_for_each(threads, slabs_of(shared), multiply_slab, shared));
out:
    return ret;
}

/* ---- all vectors, or few ---- */

tsvd_status
tsvdi_cpu_dense_multiply(struct dense_run *run, int worker, const struct dense_reflectors *r,
                         int transposed, struct dense_block block, double done, double share)
{
    const int64_t blocks = blocks_of(r), count = block.count;
    struct block b = {.v = worker_work(run, worker), .terms = r->terms};
    const int conjugated = block.rows == block.conjugated;
    struct caller caller = {run, worker, done};
    tsvd_status ret = TSVD_OK;

    if (run->slabs && count >= CPU_REFLECTORS_SLABS_FROM && r->terms == 0 &&
        r->length <= CPU_REFLECTORS_SLABS_TO) {
        return multiply_slabs(&(struct shared_slabs){.run = run,
                                                     .worker = worker,
                                                     .r = r,
                                                     .transposed = transposed,
                                                     .conjugated = conjugated,
                                                     .block = block,
                                                     .done = done,
                                                     .share = share});
    }
    for (int64_t step = 0; step < blocks && count > 0; step++) {
        const int64_t first = begin_block(r, transposed ? step : blocks - 1 - step, conjugated, &b);

        caller.done = done + share * (double)step / (double)blocks;
        b.t = b.v + b.width * b.length;
        b.gram = b.t + CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_BLOCK;
        b.product = b.gram + CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_BLOCK;
        b.other = b.product + CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_VECTORS;
        TSVD_TRY(make_t(&caller, r->tau + first, conjugated, &b));
        for (int64_t at = 0; at < count; at += CPU_REFLECTORS_VECTORS) {
            struct dense_block x = block;

            TSVD_TRY(dense_check(run, worker, caller.done));
            x.count = count - at < CPU_REFLECTORS_VECTORS ? count - at : CPU_REFLECTORS_VECTORS;
            x.x = entries_of(r, first, &block) + at * (block.rows ? block.stride : 1);
            TSVD_TRY(multiply_block(&caller, &b, transposed, &x));
        }
    }
out:
    return ret;
}

/* ---- the factors of a matrix ---- */

int64_t
tsvdi_cpu_dense_numbers(int64_t rows, int64_t columns, int keep)
{
    (void)keep; /* M itself is there in any case */
    return rows * columns;
}

tsvd_status
tsvdi_cpu_dense_multiply_stage(struct dense_run *run, int worker, const struct stage_run *own,
                               int64_t i, int right, int transposed, struct dense_block block,
                               double done, double share)
{
    const struct dense_matrix m = stage_matrix(own, i);
    const int64_t from = own->stage->superdiagonals;
    const int64_t beyond = m.columns > from ? m.columns - from : 0;
    const struct dense_reflectors q = {.a = m.a,
                                       .tau = own->tau_q + i * m.columns,
                                       .stride = m.stride,
                                       .count = m.columns,
                                       .length = m.rows};
    const struct dense_reflectors p = {.a = m.a + from * m.stride,
                                       .tau = own->tau_p + i * m.columns,
                                       .stride = m.stride,
                                       .count = beyond,
                                       .length = beyond,
                                       .from = from,
                                       .in_rows = 1};

    return tsvdi_cpu_dense_multiply(run, worker, right ? &p : &q, transposed, block, done, share);
}

tsvd_status
tsvdi_cpu_dense_apply(struct cpu_dense *state, int worker, int64_t i, int right, int transposed,
                      struct dense_block block, double done, double share)
{
    const int of_p = right != state->run.transposed;
    int parts = 0, made = 0;
    tsvd_status ret = TSVD_OK;

    for (int s = 0; s < state->stages; s++) {
        parts += !of_p || state->stage[s].stage->right;
    }
    for (int s = 0; s < state->stages; s++) {
        const struct stage_run *own = &state->stage[transposed ? s : state->stages - 1 - s];

        if (!of_p || own->stage->right) {
            TSVD_TRY(own->stage->multiply(&state->run, worker, own, i, of_p, transposed, block,
                                          done + share * made / parts, share / parts));
            made++;
        }
    }
out:
    return ret;
}
