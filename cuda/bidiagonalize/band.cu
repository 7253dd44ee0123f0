/*
 * Dense matrices on the device: M = Q N P^H, where N is an upper band (band.h).
 *
 * It goes in panels: the QR of BAND columns, then the LQ of the same number of rows, in the columns
 * beyond the band.  Between updates the array keeps the entries of an older matrix A, and the
 * matrix is
 *
 *     A - L R^H,   with L = (V_1, Y_1, V_2, Y_2, ...) and R = (Z_1, W_1, Z_2, W_2, ...).
 *
 * A panel has I - V T V^H from the left, and I - W S W^H from the right (band_panel.cuh).  So
 *
 *     Z = (A^H V - R L^H V) T,   Y = (A W - L R^H W) S,
 *
 * the latter with Z in R already.  These two products read A, for BAND vectors at once.  When L has
 * BAND_RANK columns, A - L R^H replaces A.  Mirrors csrc/cpu/bidiagonalize/band.c, but for
 * small matrices, which are deferred too.
 *
 * The columns of A may be shared out over the devices of a team, and with them the rows of R: see
 * band_exchange.cuh.  The second product is then a sum over the members.
 *
 * All arrays have contiguous columns.  To the products, which take rows, they are transposed.
 */
#include <algorithm>

#include "bidiagonalize/band_exchange.cuh"
#include "bidiagonalize/band_panel.cuh"

enum {
    RANK = BAND_RANK + 2 * BAND, /* columns that L and R have, at most */
    LONG_PARTS = 12,             /* of a product over many terms */
    LONG_ALIGNED = 1024,         /* from so many terms on, parts begin at multiples of 8: below,
                                    equal parts count more than aligned ones */
    SUM_THREADS = 256,
    COPY_LINES = 8
};

/* A reduction under way.  All arrays are device memory. */
struct banding {
    int64_t r, c;
    int64_t own;           /* columns that the device has: all, if there is no team */
    scalar *w;             /* [own][r] M */
    scalar *tau_q, *tau_p; /* [c] */
    scalar *band;          /* [c][BAND + 1] out */
    bool keep;             /* reflectors are wanted later */
    double done, share;    /* the progress that it begins with, and its part of it */
    int64_t rank;          /* columns that L and R have */

    /* Workspace. */
    scalar *left;          /* [RANK][r] L */
    scalar *right;         /* [RANK][own] R */
    scalar *rows;          /* [BAND][own] rows of the matrix, their conjugates */
    scalar *skinny;        /* [BAND][r] a product before T */
    scalar *parts_of_long; /* [LONG_PARTS][BAND][r or RANK] of a product over many terms */
    scalar *small;         /* [BAND][RANK] V^H L, or W^H R, transposed */

    /* With a team only. */
    struct band_team team;
    scalar *all_rows; /* [BAND][c] rows of all columns */
    scalar *factor;   /* [BAND][c] W of a panel */
    scalar *product;  /* [width of a panel][rows below it] a product over the own columns */

    /* What panels share: its t, workspace, and as many `arrived` as there are panels.  The rest is
       filled in for each. */
    struct band_panel panel;
};

/* How many of the device's columns come before this one. */
static int64_t
own_before(const struct banding *b, int64_t column)
{
    return columns_before(b->team.shares, b->team.shares.self, column);
}

/* Whether the device makes the panel that begins with this column. */
static bool
is_own(const struct banding *b, int64_t first)
{
    return member_of(b->team.shares, first) == b->team.shares.self;
}

bool
tsvdi_cuda_dense_band_fits(const struct cuda_device *device)
{
    return (int)BAND_SHARED + (int)BAND_STATIC <= device->shared_most;
}

/* How a panel of so many rows is shared out. */
struct band_shares {
    int blocks, slice, stride;
    bool shared;
};

static struct band_shares
share_panel(const struct cuda_device *device, int64_t rows)
{
    const int64_t line = 128 / (int64_t)sizeof(scalar);
    const int64_t most =
        rows / BAND < device->multiprocessors ? rows / BAND : device->multiprocessors;
    const int64_t blocks = most > 1 ? most : 1;
    const int64_t slice = ((rows + blocks - 1) / blocks + PACK - 1) / PACK * PACK;
    struct band_shares shares;

    shares.slice = (int)slice;
    shares.blocks = (int)((rows + slice - 1) / slice);
    shares.stride = (int)((slice + line - 1) / line * line + PACK); /* loads use all banks */
    shares.shared = BAND_SHARED + BAND_STATIC + BAND * shares.stride * (int64_t)sizeof(scalar) <=
                    device->shared_most;
    return shares;
}

/* Columns of the panel that begins where `left` columns are left.  Its rows have as many entries
   beyond the band, or more; or none, and the panel is the last. */
static int64_t
panel_width(int64_t left)
{
    const int64_t beyond = left - BAND;

    return beyond <= 0 ? left : beyond < BAND ? beyond : (int64_t)BAND;
}

/* Numbers of the slices of a panel, if they are not shared. */
static int64_t
slices_of(const struct cuda_device *device, int64_t rows)
{
    const struct band_shares shares = share_panel(device, rows);

    return shares.shared ? 0 : (int64_t)shares.blocks * BAND * shares.stride;
}

/* The same of any panel: those of the first are not always the largest. */
static int64_t
slices_most(const struct cuda_device *device, int64_t r, int64_t c)
{
    int64_t most = 0, width;

    for (int64_t first = 0; first < c; first += width) {
        width = panel_width(c - first);
        most = std::max(most, slices_of(device, r - first));
        if (c - first > BAND) {
            most = std::max(most, slices_of(device, c - first - BAND));
        }
    }
    return most;
}

static size_t
lay_out(const struct cuda_device *device, struct banding *b, char *base)
{
    size_t at = 0;

    b->left = carve<scalar>(base, &at, RANK * b->r);
    b->right = carve<scalar>(base, &at, RANK * b->own);
    b->rows = carve<scalar>(base, &at, BAND * b->own);
    b->skinny = carve<scalar>(base, &at, BAND * b->r);
    b->parts_of_long =
        carve<scalar>(base, &at, LONG_PARTS * (BAND * std::max(b->r, (int64_t)RANK)));
    b->small = carve<scalar>(base, &at, (int64_t)BAND * RANK);
    b->all_rows = b->rows;
    if (b->team.shares.members > 1) {
        b->all_rows = carve<scalar>(base, &at, BAND * b->c);
        b->factor = carve<scalar>(base, &at, BAND * b->c);
        b->product = carve<scalar>(base, &at, BAND * b->r);
    }
    b->panel.t = carve<scalar>(base, &at, SQUARE);
    b->panel.slices = carve<scalar>(base, &at, slices_most(device, b->r, b->c));
    b->panel.parts = carve<scalar>(base, &at, (int64_t)device->multiprocessors * GRAM);
    b->panel.gram = carve<scalar>(base, &at, GRAM);
    b->panel.product = carve<scalar>(base, &at, SQUARE);
    b->panel.factor = carve<scalar>(base, &at, SQUARE);
    b->panel.pivot = carve<scalar>(base, &at, BAND);
    b->panel.row = carve<scalar>(base, &at, 2 * BAND);
    b->panel.arrived = carve<unsigned>(base, &at, 2 * (b->c / BAND + 2));
    return at;
}

/* A reduction of one of a stage's matrices. */
static struct banding
banding_of(const struct stage_run *own)
{
    struct banding b = {};

    b.r = own->r;
    b.c = own->c;
    b.team.team = own->team;
    b.team.shares = shares_of(own);
    b.team.r = own->r;
    b.own = own_before(&b, own->c);
    return b;
}

static uint64_t
factor_bytes(const struct cuda_device *device, const struct stage_run *own)
{
    struct banding b = banding_of(own);

    return lay_out(device, &b, NULL); /* one matrix after another */
}

/* ---- copies ---- */

/* Rows of the matrix become columns: to[i][j] = conj(from[j][i]), i < rows, j < columns. */
static __global__ void
gather_kernel(int rows, int64_t columns, const scalar *from, int64_t ld_from, scalar *to,
              int64_t ld_to)
{
    __shared__ scalar tile[TILE][TILE + 1];
    const int64_t first = (int64_t)blockIdx.x * TILE;
    const int x = (int)threadIdx.x, above = (int)blockIdx.y * TILE;

    for (int y = (int)threadIdx.y; y < TILE; y += COPY_LINES) {
        if (above + x < rows && first + y < columns) {
            tile[y][x] = n_conj(from[(first + y) * ld_from + above + x]);
        }
    }
    __syncthreads();
    for (int y = (int)threadIdx.y; y < TILE; y += COPY_LINES) {
        if (above + y < rows && first + x < columns) {
            to[(above + y) * ld_to + first + x] = tile[x][y];
        }
    }
}

/* The reverse, of W, to the rows that it comes from: to[j][i] = from[i][j]. */
static __global__ void
scatter_kernel(int rows, int64_t columns, const scalar *from, int64_t ld_from, scalar *to,
               int64_t ld_to)
{
    __shared__ scalar tile[TILE][TILE + 1];
    const int64_t first = (int64_t)blockIdx.x * TILE;
    const int x = (int)threadIdx.x, above = (int)blockIdx.y * TILE;

    for (int y = (int)threadIdx.y; y < TILE; y += COPY_LINES) {
        if (above + y < rows && first + x < columns) {
            tile[y][x] = from[(above + y) * ld_from + first + x];
        }
    }
    __syncthreads();
    for (int y = (int)threadIdx.y; y < TILE; y += COPY_LINES) {
        if (above + x < rows && first + y < columns) {
            to[(first + y) * ld_to + above + x] = tile[x][y];
        }
    }
}

/* Entries of rows inside the band, right of a narrow panel: N(i, width + j) = conj(from[i][j]). */
static __global__ void
inside_kernel(int width, int inside, const scalar *from, int64_t ld, scalar *band)
{
    for (int k = (int)threadIdx.x; k < width * inside; k += (int)blockDim.x) {
        const int i = k / inside, j = k % inside;

        band[i * (BAND + 1) + width + j - i] = n_conj(from[i * ld + j]);
    }
}

/* ---- panels ---- */

/* The QR of the `width` columns of x, [width][ldx]; V goes to v. */
static tsvd_status
factor_panel(struct cuda_call *call, struct banding *b, int64_t rows, int64_t width, scalar *x,
             int64_t ldx, scalar *v, int64_t ldv, scalar *tau, scalar *band, bool right)
{
    const struct band_shares shares = share_panel(call->device, rows);
    struct band_panel q = b->panel;
    void *args[] = {&q};
    size_t bytes = BAND_SHARED;
    tsvd_status ret = TSVD_OK;

    q.rows = (int)rows;
    q.width = (int)width;
    q.blocks = shares.blocks;
    q.slice = shares.slice;
    q.stride = shares.stride;
    q.shared = shares.shared;
    q.keep = b->keep && !right;
    q.right = right;
    q.x = x;
    q.ldx = ldx;
    q.v = v;
    q.ldv = ldv;
    q.tau = tau;
    q.band = band;
    b->panel.arrived++; /* the next panel's */
    bytes += q.shared ? BAND * (size_t)q.stride * sizeof(scalar) : 0;
    CUDA_TRY(call, cudaFuncSetAttribute(band_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        (int)bytes));
    CUDA_TRY(call, cudaLaunchCooperativeKernel((void *)band_kernel, dim3((unsigned)q.blocks),
                                               dim3(BAND_THREADS), args, bytes, call->stream));
out:
    return ret;
}

/* c -= conj(F) G, rows x columns, over the columns that L and R have.  F is read as its adjoint. */
static tsvd_status
subtract_deferred(struct cuda_call *call, const struct banding *b, int64_t rows, int64_t columns,
                  const scalar *f, int64_t ldf, const scalar *g, int64_t ldg, scalar *c,
                  int64_t ldc)
{
    const struct cuda_factor left = {f, ldf, 0, TSVDI_ADJOINT};
    const struct cuda_factor right = {g, ldg, 0, TSVDI_AS_STORED};

    if (rows == 0 || columns == 0) {
        return TSVD_OK;
    }
    return tsvdi_cuda_multiply_add(call, SCALAR_KIND, rows, columns, b->rank, -1, left, right, 1, c,
                                   ldc, 0, 1);
}

/* to[i] = the sum of part[p][i] over p. */
static __global__ void
__launch_bounds__(SUM_THREADS) sum_kernel(int64_t size, const scalar *part, scalar *to)
{
    const int64_t i = (int64_t)blockIdx.x * SUM_THREADS + threadIdx.x;

    if (i < size) {
        scalar sum = part[i];

#pragma unroll
        for (int p = 1; p < LONG_PARTS; p++) {
            sum += part[p * size + i];
        }
        to[i] = sum;
    }
}

/* to = v a, [width][columns], over many terms.  Rounding errors of equal terms have the same sign,
   and add up to eps / 5 a term: more than the bound of values allows.  So the sums are made in
   parts.  That also keeps more multiprocessors busy.  step: numbers between a term of a and the
   next. */
static tsvd_status
multiply_long(struct cuda_call *call, const struct banding *b, int64_t width, int64_t terms,
              int64_t columns, struct cuda_factor v, struct cuda_factor a, int64_t step, scalar *to)
{
    const int64_t unit = terms < LONG_ALIGNED ? 1 : 8;
    const int64_t each = terms / (unit * LONG_PARTS) * unit, rest = terms - LONG_PARTS * each;
    const int64_t size = width * columns;
    tsvd_status ret = TSVD_OK;

    if (each == 0) {
        return tsvdi_cuda_multiply_add(call, SCALAR_KIND, width, columns, terms, 1, v, a, 0, to,
                                       columns, 0, 1);
    }
    v.stride = each;
    a.stride = each * step;
    TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, width, columns, each, 1, v, a, 0,
                                     b->parts_of_long, columns, size, LONG_PARTS));
    v.d = (const scalar *)v.d + LONG_PARTS * v.stride;
    a.d = (const scalar *)a.d + LONG_PARTS * a.stride;
    TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, width, columns, rest, 1, v, a, 1,
                                     b->parts_of_long, columns, 0, 1));
    sum_kernel<<<blocks_for(size, SUM_THREADS), SUM_THREADS, 0, call->stream>>>(
        size, b->parts_of_long, to);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* to = T^T (v op(A) - (v G^H) F): the transpose of (op(A)^T v^T - F^T conj(G) v^T) T, for the
   `width` rows of v, which have `terms` entries.  op(A) is terms x columns. */
static tsvd_status
multiply_panel(struct cuda_call *call, const struct banding *b, int64_t width, int64_t terms,
               int64_t columns, struct cuda_factor v, struct cuda_factor a, int64_t step,
               const scalar *g, int64_t ldg, const scalar *f, int64_t ldf, scalar *to,
               int64_t ld_to)
{
    const struct cuda_factor adjoint = {g, ldg, 0, TSVDI_ADJOINT};
    const struct cuda_factor small = {b->small, b->rank, 0, TSVDI_AS_STORED};
    const struct cuda_factor others = {f, ldf, 0, TSVDI_AS_STORED};
    const struct cuda_factor t = {b->panel.t, BAND, 0, TSVDI_TRANSPOSED};
    const struct cuda_factor skinny = {b->skinny, columns, 0, TSVDI_AS_STORED};
    tsvd_status ret = TSVD_OK;

    if (columns == 0) {
        goto out;
    }
    if (terms == 0) { /* other members have some */
        CUDA_TRY(call,
                 cudaMemset2DAsync(to, (size_t)ld_to * sizeof(scalar), 0,
                                   (size_t)columns * sizeof(scalar), (size_t)width, call->stream));
        goto out;
    }
    TSVD_TRY(multiply_long(call, b, width, terms, columns, v, a, step, b->skinny));
    if (b->rank > 0) {
        /* the errors of both products are to be small: where A v and F^T conj(G) v cancel, they
           do not */
        TSVD_TRY(multiply_long(call, b, width, terms, b->rank, v, adjoint, 1, b->small));
        TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, width, columns, b->rank, -1, small,
                                         others, 1, b->skinny, columns, 0, 1));
    }
    TSVD_TRY(tsvdi_cuda_multiply_add(call, SCALAR_KIND, width, columns, width, 1, t, skinny, 0, to,
                                     ld_to, 0, 1));
out:
    return ret;
}

/* The QR of columns first .. first + width - 1, which are brought up to date. */
static tsvd_status
reduce_columns(struct cuda_call *call, struct banding *b, int64_t first, int64_t width)
{
    const int64_t r = b->r, next = first + width, rows = r - first;
    const int64_t at = own_before(b, first), after = own_before(b, next), others = b->own - after;
    scalar *const v = b->left + b->rank * r + first, *const z = b->right + b->rank * b->own + after;
    tsvd_status ret = TSVD_OK;

    if (is_own(b, first)) {
        scalar *const x = b->w + at * r + first;

        TSVD_TRY(subtract_deferred(call, b, width, rows, b->right + at, b->own, b->left + first, r,
                                   x, r));
        TSVD_TRY(factor_panel(call, b, rows, width, x, r, v, r, b->tau_q + first,
                              b->band + first * (BAND + 1), false));
    }
    if (next < b->c) {
        TSVD_TRY(spread_panel(call, b->team, first, width, b->rank));
        TSVD_TRY(multiply_panel(call, b, width, rows, others, {v, r, 0, TSVDI_AS_STORED},
                                {b->w + after * r + first, r, 0, TSVDI_ADJOINT}, 1, b->left + first,
                                r, b->right + after, b->own, z, b->own));
        b->rank += width;
    }
out:
    return ret;
}

/* The LQ of rows first .. first + width - 1, in the columns beyond the band: x, [width][c], from
   column first + width on, conjugates.  W goes to w, likewise. */
static tsvd_status
factor_rows(struct cuda_call *call, struct banding *b, int64_t first, int64_t width, scalar *x,
            scalar *w)
{
    const int64_t c = b->c, inside = BAND - width, length = c - first - BAND;
    scalar *const band = b->band + first * (BAND + 1);
    tsvd_status ret = TSVD_OK;

    if (inside > 0) {
        inside_kernel<<<1, BAND_THREADS, 0, call->stream>>>((int)width, (int)inside, x, c, band);
        CUDA_LAUNCHED(call);
        CUDA_TRY(call,
                 cudaMemset2DAsync(w, (size_t)c * sizeof(scalar), 0,
                                   (size_t)inside * sizeof(scalar), (size_t)width, call->stream));
    }
    TSVD_TRY(factor_panel(call, b, length, width, x + inside, c, w + inside, c, b->tau_p + first,
                          band, true));
out:
    return ret;
}

/* These rows, and what they take off the others. */
static tsvd_status
reduce_rows(struct cuda_call *call, struct banding *b, int64_t first, int64_t width)
{
    const int64_t r = b->r, next = first + width, below = r - next, own = b->own;
    const int64_t after = own_before(b, next), beyond = own_before(b, first + BAND);
    const int64_t others = own - after, length = own - beyond;
    const bool alone = b->team.team == NULL;
    scalar *const w = b->right + b->rank * own, *const y = b->left + b->rank * r + next;
    const dim3 lines(TILE, COPY_LINES);
    tsvd_status ret = TSVD_OK;

    if (others > 0) {
        gather_kernel<<<dim3(blocks_for(others, TILE), blocks_for(width, TILE)), lines, 0,
                        call->stream>>>((int)width, others, b->w + after * r + first, r, b->rows,
                                        own);
        CUDA_LAUNCHED(call);
    }
    TSVD_TRY(subtract_deferred(call, b, width, others, b->left + first, r, b->right + after, own,
                               b->rows, own));
    TSVD_TRY(collect_rows(call, b->team, first, width, next, b->all_rows, b->c));
    if (is_own(b, first)) {
        TSVD_TRY(factor_rows(call, b, first, width, b->all_rows, alone ? w + after : b->factor));
    }
    TSVD_TRY(spread_rows(call, b->team, first, width, next, w + after, own));
    if (b->keep && length > 0) {
        scatter_kernel<<<dim3(blocks_for(length, TILE), blocks_for(width, TILE)), lines, 0,
                         call->stream>>>((int)width, length, w + beyond, own,
                                         b->w + beyond * r + first, r);
        CUDA_LAUNCHED(call);
    }
    TSVD_TRY(multiply_panel(call, b, width, length, below, {w + beyond, own, 0, TSVDI_AS_STORED},
                            {b->w + beyond * r + next, r, 0, TSVDI_AS_STORED}, r, b->right + beyond,
                            own, b->left + next, r, alone ? y : b->product, alone ? r : below));
    TSVD_TRY(add_up(call, b->team, width, below, y, r));
    b->rank += width;
out:
    return ret;
}

/* Tells the other members where the arrays are, and is told. */
static tsvd_status
meet_team(struct banding *b)
{
    const struct band_arrays own = {b->left,    b->rows, b->factor, b->product,
                                    b->panel.t, b->band, b->tau_q,  b->tau_p};

    return b->team.team == NULL ? TSVD_OK
                                : tsvdi_cuda_team_tell(b->team.team, &own, sizeof own, b->team.of);
}

static tsvd_status
make_band(struct tsvd_context *ctx, struct banding *b)
{
    struct cuda_call *call = cuda_of(ctx);
    int64_t width;
    int turn = 0;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(meet_team(b));
    CUDA_TRY(call, cudaMemsetAsync(b->band, 0, (size_t)(b->c * (BAND + 1)) * sizeof(scalar),
                                   call->stream));
    CUDA_TRY(call, cudaMemsetAsync(b->panel.arrived, 0,
                                   2 * (size_t)(b->c / BAND + 2) * sizeof(*b->panel.arrived),
                                   call->stream));
    for (int64_t first = 0; first < b->c; first += width, turn = 1 - turn) {
        const int64_t left = b->c - first;
        const double part = (double)left / (double)b->c;

        width = panel_width(left);
        TSVD_TRY(reduce_columns(call, b, first, width));
        if (left > BAND) {
            TSVD_TRY(reduce_rows(call, b, first, width));
        }
        if (b->rank >= BAND_RANK) {
            const int64_t next = first + width, after = own_before(b, next);

            TSVD_TRY(subtract_deferred(call, b, b->own - after, b->r - next, b->right + after,
                                       b->own, b->left + next, b->r, b->w + after * b->r + next,
                                       b->r));
            b->rank = 0;
        }
        /* at most two panels are queued: else check() would run long before them */
        CUDA_TRY(call, cudaEventSynchronize(call->device->mark[turn]));
        CUDA_TRY(call, cudaEventRecord(call->device->mark[turn], call->stream));
        TSVD_TRY(tsvdi_check(ctx, b->done + b->share * (1 - part * part * part)));
    }
    TSVD_TRY(collect(call, b->team));
out:
    return ret;
}

/* ---- as a stage ---- */

static tsvd_status
factor_stage(struct tsvd_context *ctx, const struct cuda_dense *run, const struct stage_run *own,
             char *d_work, enum stage_outcome *outcome)
{
    const int64_t r = own->r, c = own->c;
    tsvd_status ret = TSVD_OK;

    *outcome = STAGE_MADE;
    TSVD_TRY(tsvdi_cuda_make_marks(cuda_of(ctx)));
    for (int64_t i = 0; i < own->count; i++) {
        struct banding b = banding_of(own);

        b.w = own->m + i * r * c;
        b.tau_q = own->tau_q + i * c;
        b.tau_p = own->tau_p + i * c;
        b.band = own[1].m + i * own[1].numbers;
        b.keep = run->keep != KEEP_VALUES;
        b.share = BAND_PROGRESS / (double)own->count;
        b.done = b.share * (double)i;
        (void)lay_out(cuda_of(ctx)->device, &b, d_work);
        TSVD_TRY(make_band(ctx, &b));
    }
out:
    return ret;
}

const struct stage tsvdi_cuda_dense_band_stage = {
    .number = 4,
    .right = true,
    .superdiagonals = BAND,
    .otherwise = NULL,
    .numbers = tsvdi_cuda_dense_stage_numbers,
    .factor_bytes = factor_bytes,
    .apply_bytes = tsvdi_cuda_dense_stage_bytes,
    .factor = factor_stage,
    .apply = tsvdi_cuda_dense_stage_apply,
    .expand = NULL,
};
