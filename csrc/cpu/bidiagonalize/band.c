/*
 * Dense matrices on the CPU: M = Q N P^H, where N is an upper band (Grosser & Lang 1999).
 *
 * It goes in panels: the QR of CPU_BAND columns, then the LQ of the same number of rows.  Between
 * updates the array keeps the entries of an older matrix A, and the matrix is
 *
 *     A - L R^H,   with L = (V_1, Y_1, V_2, Y_2, ...) and R = (Z_1, W_1, Z_2, W_2, ...).
 *
 * A panel has I - V T V^H from the left, and I - W S W^H from the right.  So
 *
 *     Z = (A^H V - R L^H V) T,   Y = (A W - L R^H W) S,
 *
 * the latter with Z in R already.  These two products read A, for CPU_BAND vectors at once.  When L
 * has CPU_BAND_RANK columns, A - L R^H replaces A; of small matrices at once, after each QR and
 * each LQ.
 */
#include <assert.h>
#include <string.h>

#include "cpu/bidiagonalize/band.h"
#include "cpu/kernels/kernels.h"
#include "cpu/matrix/stages.h"

enum {
    /* Columns that L and R have at most. */
    RANK = CPU_BAND_RANK + 2 * CPU_BAND,

    /* From so many columns on updates are deferred.  Then entries of A that the panels before have
       nearly cancelled bring their rounding errors into later products.  Of small matrices the
       bound on the values' error is small, and they come here only on demand. */
    DEFERRING_FROM = CPU_BAND_VALUES_FROM
};

static_assert(2 * CPU_BAND <= CPU_REFLECTORS_BLOCK, "a panel's vectors and T have room");

/* A reduction under way. */
struct banding {
    const struct dense_run *run;
    int worker;
    double done;
    struct dense_matrix m;
    scalar *left;            /* [RANK][rows] L */
    scalar *right;           /* [RANK][columns] R */
    scalar *skinny;          /* [CPU_BAND][rows] products with V or W, and rows of A */
    scalar *small;           /* [CPU_BAND][RANK] products L^H V, R^H W */
    scalar *t, *gram, *sums; /* as in struct dense_factor */
    int64_t rank;            /* columns that L and R have */
    int deferring;           /* A - L R^H replaces A when L is full, not at once */
};

static int64_t
workspace(int64_t rows, int64_t columns, int threads)
{
    return tsvdi_cpu_dense_multiply_workspace(rows, threads) + RANK * (rows + columns) +
           CPU_BAND * rows + CPU_BAND * RANK + 3 * CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_BLOCK;
}

static struct banding
banding_of(struct dense_run *run, int worker, struct dense_matrix m)
{
    struct banding b = {
        .run = run, .worker = worker, .m = m, .deferring = m.columns >= DEFERRING_FROM};

    /* tsvdi_cpu_dense_qr() takes the beginning */
    b.left = worker_work(run, worker) + tsvdi_cpu_dense_multiply_workspace(m.rows, run->threads);
    b.right = b.left + RANK * m.rows;
    b.skinny = b.right + RANK * m.columns;
    b.small = b.skinny + CPU_BAND * m.rows;
    b.t = b.small + CPU_BAND * RANK;
    b.gram = b.t + CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_BLOCK;
    b.sums = b.gram + CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_BLOCK;
    return b;
}

/* Columns of the panel that begins where `left` columns are left.  Its rows have as many entries
   beyond the band, or more; or none, and the panel is the last. */
static int64_t
panel_width(int64_t left)
{
    const int64_t beyond = left - CPU_BAND;

    return beyond <= 0 ? left : beyond < CPU_BAND ? beyond : CPU_BAND;
}

static tsvd_status
multiply_into(const struct banding *b, struct blas_product product)
{
    return tsvdi_cpu_dense_long_product(b->run, b->worker, &product, b->done);
}

/* Terms of a partial sum.  The rounding errors of a long sum of equal terms add up, and those of
   two products that should cancel are not the same.  They may grow with the order, as the bound on
   the values' error does. */
static int64_t
terms_of(int64_t columns)
{
    int64_t terms = 8;

    while (16 * terms < columns) {
        terms *= 2;
    }
    return terms;
}

/* A product that overwrites C, of a matrix with a panel's vectors, by partial sums. */
static tsvd_status
multiply_parts(const struct banding *b, const struct blas_product *product)
{
    const int64_t terms = terms_of(b->m.columns);
    struct blas_product part = *product;
    tsvd_status ret = TSVD_OK;

    for (int64_t t = 0; t < product->k; t += terms) {
        const int64_t left = product->k - t;

        part.overwrite = t == 0;
        part.k = left < terms ? left : terms;
        part.a = (const scalar *)product->a + t * (product->a_transposed ? 1 : product->lda);
        part.b = (const scalar *)product->b + t;
        TSVD_TRY(multiply_into(b, part));
    }
out:
    return ret;
}

/* c -= F (rank) G^H, with rows of c from those of F, and columns from those of G. */
static tsvd_status
subtract_deferred(const struct banding *b, int64_t rows, int64_t columns, const scalar *f,
                  int64_t ldf, const scalar *g, int64_t ldg, scalar *c, int64_t ldc)
{
    if (b->rank == 0 || rows == 0 || columns == 0) {
        return TSVD_OK;
    }
    return multiply_into(b, (struct blas_product){.m = rows,
                                                  .n = columns,
                                                  .k = b->rank,
                                                  .b_transposed = 1,
                                                  .factor = -1,
                                                  .a = f,
                                                  .b = g,
                                                  .c = c,
                                                  .lda = ldf,
                                                  .ldb = ldg,
                                                  .ldc = ldc});
}

/* ---- op(A) v by the kernel ---- */

struct skinny_product {
    const struct banding *b;
    const struct blas_product *product;
    scalar *x, *y; /* [product->k][CPU_BAND], [product->m][CPU_BAND] */
};

/* Rows of x: those of v, with zeros for columns that it has not. */
static tsvd_status
copy_rows(void *arg, int thread, int64_t part)
{
    const struct skinny_product *p = arg;
    const int64_t first = part * CPU_SKINNY_ROWS, left = p->product->k - first;
    const int64_t rows = left < CPU_SKINNY_ROWS ? left : CPU_SKINNY_ROWS;
    const scalar *v = (const scalar *)p->product->b + first;
    scalar *x = p->x + first * CPU_BAND;

    (void)thread;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < CPU_BAND; j++) {
            x[i * CPU_BAND + j] = j < p->product->n ? v[j * p->product->ldb + i] : 0;
        }
    }
    return TSVD_OK;
}

static tsvd_status
multiply_rows(void *arg, int thread, int64_t part)
{
    const struct skinny_product *p = arg;
    const struct blas_product *product = p->product;
    const int64_t first = part * CPU_SKINNY_ROWS, left = product->m - first;
    const int64_t rows = left < CPU_SKINNY_ROWS ? left : CPU_SKINNY_ROWS;
    const int64_t down = product->a_transposed ? product->lda : 1;
    const int64_t right = product->a_transposed ? 1 : product->lda;
    scalar *y = p->y + first * CPU_BAND, *c = (scalar *)product->c + first;

    tsvdi_kernels()->skinny(rows, product->k, (const scalar *)product->a + first * down, down,
                            right, p->x, y);
    for (int64_t j = 0; j < product->n; j++) {
        for (int64_t i = 0; i < rows; i++) {
            c[j * product->ldc + i] = y[i * CPU_BAND + j];
        }
    }
    return thread == 0 ? dense_check(p->b->run, p->b->worker, p->b->done) : TSVD_OK;
}

/* The product that overwrites C.  The kernel makes each row in the same way, whatever part it is
   in. */
static tsvd_status
multiply_matrix(const struct banding *b, const struct blas_product *product)
{
    scalar *x = worker_work(b->run, b->worker); /* nobody else has it now */
    struct skinny_product p = {b, product, x, x + product->k * CPU_BAND};
    const int many = product->m * CPU_BAND >= CPU_PRODUCT_SHARED / product->k;
    const int threads = many ? b->run->threads : 1;
    tsvd_status ret = TSVD_OK;

    if (tsvdi_kernels()->skinny == NULL) {
        return multiply_parts(b, product);
    }
    TSVD_TRY(tsvdi_host_for_each(threads, (product->k + CPU_SKINNY_ROWS - 1) / CPU_SKINNY_ROWS,
                                 copy_rows, &p));
    TSVD_TRY(tsvdi_host_for_each(threads, (product->m + CPU_SKINNY_ROWS - 1) / CPU_SKINNY_ROWS,
                                 multiply_rows, &p));
out:
    return ret;
}

/* to = (op(A) v - F G^H v) T, of `width` vectors v: op(A) is rows x terms, F has its rows and G its
   columns. */
static tsvd_status
multiply_panel(const struct banding *b, struct blas_product product, const scalar *f, int64_t ldf,
               const scalar *g, int64_t ldg, scalar *to)
{
    const int64_t width = product.n;
    tsvd_status ret = TSVD_OK;

    product.overwrite = 1;
    product.factor = 1;
    product.c = b->skinny;
    product.ldc = b->m.rows;
    TSVD_TRY(multiply_matrix(b, &product));
    if (b->rank > 0) {
        TSVD_TRY(multiply_parts(b, &(struct blas_product){.m = b->rank,
                                                          .n = width,
                                                          .k = product.k,
                                                          .a_transposed = 1,
                                                          .factor = 1,
                                                          .a = g,
                                                          .b = product.b,
                                                          .c = b->small,
                                                          .lda = ldg,
                                                          .ldb = product.ldb,
                                                          .ldc = RANK}));
        TSVD_TRY(multiply_into(b, (struct blas_product){.m = product.m,
                                                        .n = width,
                                                        .k = b->rank,
                                                        .factor = -1,
                                                        .a = f,
                                                        .b = b->small,
                                                        .c = b->skinny,
                                                        .lda = ldf,
                                                        .ldb = RANK,
                                                        .ldc = b->m.rows}));
    }
    TSVD_TRY(multiply_into(b, (struct blas_product){.m = product.m,
                                                    .n = width,
                                                    .k = width,
                                                    .overwrite = 1,
                                                    .factor = 1,
                                                    .a = b->skinny,
                                                    .b = b->t,
                                                    .c = to,
                                                    .lda = b->m.rows,
                                                    .ldb = CPU_REFLECTORS_BLOCK,
                                                    .ldc = ldf}));
out:
    return ret;
}

/* Terms of a partial sum of V^H V, as in struct dense_reflectors.  Where updates are deferred, sums
   by parts gain nothing, and one thread would make them. */
static int64_t
gram_terms(const struct banding *b)
{
    return b->deferring ? 0 : terms_of(b->m.columns);
}

/* V of a panel of reflectors to `v`, and T. */
static tsvd_status
make_factor(const struct banding *b, const struct dense_reflectors *r, scalar *v, int64_t ldv)
{
    struct dense_factor to = {.v = v, .t = b->t, .gram = b->gram, .sums = b->sums, .stride = ldv};

    return tsvdi_cpu_dense_factor(b->run, b->worker, r, &to, b->done);
}

/* The QR of columns first .. first + width - 1, which are brought up to date. */
static tsvd_status
reduce_columns(struct banding *b, struct dense_run *run, int64_t first, int64_t width, scalar *tau,
               scalar *band)
{
    const struct dense_matrix m = b->m;
    const struct dense_matrix panel = {m.a + first * (m.stride + 1), m.rows - first, width,
                                       m.stride};
    const int64_t next = first + width, right = m.columns - next;
    const struct dense_reflectors q = {.a = panel.a,
                                       .tau = tau + first,
                                       .stride = m.stride,
                                       .count = width,
                                       .length = panel.rows,
                                       .terms = gram_terms(b)};
    scalar *v = b->left + b->rank * m.rows + first, *z = b->right + b->rank * m.columns + next;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(subtract_deferred(b, panel.rows, width, b->left + first, m.rows, b->right + first,
                               m.columns, panel.a, m.stride));
    TSVD_TRY(tsvdi_cpu_dense_qr(run, b->worker, panel, tau + first, b->done, 0));
    for (int64_t j = 0; j < width; j++) {
        for (int64_t i = 0; i <= j; i++) {
            *band_at(band, first + i, first + j) = panel.a[j * m.stride + i];
        }
    }
    if (right > 0) {
        TSVD_TRY(make_factor(b, &q, v, m.rows));
        TSVD_TRY(multiply_panel(b,
                                (struct blas_product){.m = right,
                                                      .n = width,
                                                      .k = panel.rows,
                                                      .a_transposed = 1,
                                                      .a = panel.a + width * m.stride,
                                                      .b = v,
                                                      .lda = m.stride,
                                                      .ldb = m.rows},
                                b->right + next, m.columns, b->left + first, m.rows, z));
        b->rank += width;
    }
out:
    return ret;
}

/* The LQ of rows first .. first + width - 1, in the columns beyond the band.  keep: whether the
   reflectors are wanted later. */
static tsvd_status
reduce_rows(struct banding *b, struct dense_run *run, int64_t first, int64_t width, scalar *tau,
            scalar *band, int keep)
{
    const struct dense_matrix m = b->m;
    const int64_t next = first + width, inside = CPU_BAND - width, beyond = next + inside;
    const int64_t right = m.columns - next, below = m.rows - next, length = right - inside;
    scalar *rows = m.a + next * m.stride + first;
    scalar *w = b->right + b->rank * m.columns + next, *y = b->left + b->rank * m.rows + next;
    const struct dense_matrix panel = {b->skinny + inside, length, width, m.rows};
    const struct dense_reflectors p = {.a = panel.a,
                                       .tau = tau + first,
                                       .stride = m.rows,
                                       .count = width,
                                       .length = length,
                                       .terms = gram_terms(b)};
    tsvd_status ret = TSVD_OK;

    for (int64_t j = 0; j < right; j++) {
        for (int64_t i = 0; i < width; i++) {
            b->skinny[i * m.rows + j] = n_conj(rows[j * m.stride + i]);
        }
    }
    TSVD_TRY(subtract_deferred(b, right, width, b->right + next, m.columns, b->left + first, m.rows,
                               b->skinny, m.rows));
    TSVD_TRY(tsvdi_cpu_dense_qr(run, b->worker, panel, tau + first, b->done, 0));
    for (int64_t i = 0; i < width; i++) {
        for (int64_t j = 0; j < inside + i + 1; j++) {
            *band_at(band, first + i, next + j) = n_conj(b->skinny[i * m.rows + j]);
        }
    }
    for (int64_t j = 1; keep && j < length; j++) {
        for (int64_t i = 0; i < width && i < j; i++) {
            rows[(inside + j) * m.stride + i] = panel.a[i * m.rows + j];
        }
    }
    TSVD_TRY(make_factor(b, &p, w + inside, m.columns));
    for (int64_t i = 0; i < width; i++) {
        memset(w + i * m.columns, 0, (size_t)inside * sizeof *w);
    }
    TSVD_TRY(multiply_panel(b,
                            (struct blas_product){.m = below,
                                                  .n = width,
                                                  .k = length,
                                                  .a = m.a + beyond * m.stride + next,
                                                  .b = w + inside,
                                                  .lda = m.stride,
                                                  .ldb = m.columns},
                            b->left + next, m.rows, b->right + beyond, m.columns, y));
    b->rank += width;
out:
    return ret;
}

/* A - L R^H replaces A from `row` and `column` on, and L and R become empty. */
static tsvd_status
update(struct banding *b, int64_t row, int64_t column)
{
    const struct dense_matrix m = b->m;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(subtract_deferred(b, m.rows - row, m.columns - column, b->left + row, m.rows,
                               b->right + column, m.columns, m.a + column * m.stride + row,
                               m.stride));
    b->rank = 0;
out:
    return ret;
}

static tsvd_status
factor(struct cpu_dense *state, int worker, const struct stage_run *own, int64_t i)
{
    struct dense_run *run = &state->run;
    const struct dense_matrix m = stage_matrix(own, i);
    scalar *tau_q = own->tau_q + i * m.columns, *tau_p = own->tau_p + i * m.columns;
    scalar *band = own[1].m + i * own[1].numbers;
    const double clock = tsvdi_host_seconds();
    struct banding b = banding_of(run, worker, m);
    int64_t width;
    tsvd_status ret = TSVD_OK;

    memset(band, 0, (size_t)band_numbers(m.columns) * sizeof *band);
    for (int64_t first = 0; first < m.columns; first += width) {
        const int64_t left = m.columns - first;
        const double part = (double)left / (double)m.columns;

        width = panel_width(left);
        b.done = own->done + own->share * (1 - part * part * part);
        TSVD_TRY(dense_check(run, worker, b.done));
        TSVD_TRY(reduce_columns(&b, run, first, width, tau_q, band));
        if (width == left) {
            break;
        }
        if (!b.deferring) { /* reduce_rows() reads the rows from `first` on */
            TSVD_TRY(update(&b, first, first + width));
        }
        TSVD_TRY(reduce_rows(&b, run, first, width, tau_p, band, own->keep != KEEP_VALUES));
        if (!b.deferring || b.rank >= CPU_BAND_RANK) {
            TSVD_TRY(update(&b, first + width, first + width));
        }
    }
    add_seconds(run, clock, &state->job->band);
out:
    return ret;
}

const struct stage tsvdi_cpu_dense_band_stage = {
    .right = 1,
    .sides = 2,
    .superdiagonals = CPU_BAND,
    .work = 3,
    .numbers = tsvdi_cpu_dense_numbers,
    .workspace = workspace,
    .factor = factor,
    .multiply = tsvdi_cpu_dense_multiply_stage,
};
