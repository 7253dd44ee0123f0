/*
 * What the members of a team tell each other in band.cu: each has some columns of W (shares.h), and
 * the rows of R that belong to them; L is the same for all.
 *
 *   spread_panel()  V and T of a panel of columns, from the member that has these columns: the
 *                   panel's own
 *   collect_rows()  rows of all columns, to the panel's own member
 *   spread_rows()   W and S of the panel of rows, from there: of W everyone takes its own rows
 *   add_up()        A W - L R^H W, which each member has for its own columns
 *   collect()       the band, and the factors of the reflectors, at the end
 *
 * Each reads what the others have, after a meeting.  A member writes to an array that others read
 * only after one more meeting: then they have read it.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_BAND_EXCHANGE_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_BAND_EXCHANGE_CUH

#include "bidiagonalize/band_slice.cuh"
#include "matrix/stages.h"

enum { EXCHANGE_THREADS = 256 };

/* Arrays of a member that others read.  All are device memory. */
struct band_arrays {
    scalar *left;          /* [columns of L][r] L */
    scalar *rows;          /* [BAND][own columns] rows of the matrix, their conjugates */
    scalar *factor;        /* [BAND][c] W, of the panel's own member */
    scalar *product;       /* [width of the panel][rows below it] of the own columns */
    scalar *t;             /* [BAND][BAND] T, or S */
    scalar *band;          /* [c][BAND + 1] those rows that it has made */
    scalar *tau_q, *tau_p; /* [c] likewise */
};

/* The members' arrays. */
struct band_team {
    struct cuda_team *team; /* NULL: there is none, and nothing is to be done */
    struct column_shares shares;
    int64_t r;
    struct band_arrays of[TEAM_MOST];
};

/* The place of an array of a member, for each. */
struct band_places {
    const scalar *of[TEAM_MOST];
};

static struct band_places
places_of(const struct band_team &b, scalar *band_arrays::*array)
{
    struct band_places places = {};

    for (int i = 0; i < b.shares.members; i++) {
        places.of[i] = b.of[i].*array;
    }
    return places;
}

/* A block for EXCHANGE_THREADS numbers of each of `lines` lines. */
static dim3
exchange_grid(int64_t numbers, int64_t lines)
{
    return dim3(blocks_for(numbers, EXCHANGE_THREADS), (unsigned)lines);
}

/* to[line][i] = from[line][i] */
static __global__ void
__launch_bounds__(EXCHANGE_THREADS)
    copy_kernel(int64_t numbers, const scalar *from, int64_t ld_from, scalar *to, int64_t ld_to)
{
    const int64_t i = (int64_t)blockIdx.x * EXCHANGE_THREADS + threadIdx.x;

    if (i < numbers) {
        to[blockIdx.y * ld_to + i] = from[blockIdx.y * ld_from + i];
    }
}

/* to[line][j] = entry of column first + j, from where its member has it: each begins with its
   column after `first`. */
static __global__ void
__launch_bounds__(EXCHANGE_THREADS)
    collect_kernel(const __grid_constant__ struct column_shares shares,
                   const __grid_constant__ struct band_places places, int64_t first, scalar *to,
                   int64_t ld_to)
{
    const int64_t j = (int64_t)blockIdx.x * EXCHANGE_THREADS + threadIdx.x;

    if (first + j < shares.columns) {
        const int member = member_of(shares, first + j);
        const int64_t ld = columns_before(shares, member, shares.columns);
        const int64_t place =
            columns_before(shares, member, first + j) - columns_before(shares, member, first);

        to[blockIdx.y * ld_to + j] = places.of[member][blockIdx.y * ld + place];
    }
}

/* The reverse: to[line][i], of the own column `own` + i, from an array of all columns from `first`
   on. */
static __global__ void
__launch_bounds__(EXCHANGE_THREADS)
    spread_kernel(const __grid_constant__ struct column_shares shares, int64_t own, int64_t first,
                  const scalar *from, int64_t ld_from, scalar *to, int64_t ld_to)
{
    const int64_t i = (int64_t)blockIdx.x * EXCHANGE_THREADS + threadIdx.x;

    if (own + i < columns_before(shares, shares.self, shares.columns)) {
        const int64_t column = column_at(shares, shares.self, own + i);

        to[blockIdx.y * ld_to + i] = from[blockIdx.y * ld_from + column - first];
    }
}

/* to[line][i] = the sum of the members' [line][i], in their order */
static __global__ void
__launch_bounds__(EXCHANGE_THREADS)
    add_kernel(int members, const __grid_constant__ struct band_places places, int64_t numbers,
               scalar *to, int64_t ld_to)
{
    const int64_t i = (int64_t)blockIdx.x * EXCHANGE_THREADS + threadIdx.x;

    if (i < numbers) {
        scalar sum = places.of[0][blockIdx.y * numbers + i];

        for (int member = 1; member < members; member++) {
            sum += places.of[member][blockIdx.y * numbers + i];
        }
        to[blockIdx.y * ld_to + i] = sum;
    }
}

/* x [count][each], of rows of the band or of reflectors, from the members whose they are. */
static __global__ void
__launch_bounds__(EXCHANGE_THREADS)
    gather_made_kernel(const __grid_constant__ struct column_shares shares,
                       const __grid_constant__ struct band_places places, int64_t count,
                       int64_t each, scalar *x)
{
    const int64_t i = (int64_t)blockIdx.x * EXCHANGE_THREADS + threadIdx.x;

    if (i < count * each) {
        const int member = member_of(shares, i / each);

        if (member != shares.self) {
            x[i] = places.of[member][i];
        }
    }
}

/* ---- the exchanges ---- */

/* Copies the panel's T from `member`. */
static tsvd_status
take_t(struct cuda_call *call, const struct band_team &b, int member)
{
    tsvd_status ret = TSVD_OK;

    copy_kernel<<<exchange_grid(SQUARE, 1), EXCHANGE_THREADS, 0, call->stream>>>(
        SQUARE, b.of[member].t, 0, b.of[b.shares.self].t, 0);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* V of the columns from `first` on becomes columns of L, from number `rank` on. */
static tsvd_status
spread_panel(struct cuda_call *call, const struct band_team &b, int64_t first, int64_t width,
             int64_t rank)
{
    const int member = member_of(b.shares, first);
    const int64_t rows = b.r - first, at = rank * b.r + first;
    tsvd_status ret = TSVD_OK;

    if (b.team == NULL) {
        goto out;
    }
    TSVD_TRY(tsvdi_cuda_team_meet(b.team));
    if (member != b.shares.self) {
        copy_kernel<<<exchange_grid(rows, width), EXCHANGE_THREADS, 0, call->stream>>>(
            rows, b.of[member].left + at, b.r, b.of[b.shares.self].left + at, b.r);
        CUDA_LAUNCHED(call);
        TSVD_TRY(take_t(call, b, member));
    }
out:
    return ret;
}

/* to [width][ld]: rows in the columns from `next` on, of the panel from `first` on. */
static tsvd_status
collect_rows(struct cuda_call *call, const struct band_team &b, int64_t first, int64_t width,
             int64_t next, scalar *to, int64_t ld)
{
    tsvd_status ret = TSVD_OK;

    if (b.team == NULL) {
        goto out;
    }
    TSVD_TRY(tsvdi_cuda_team_meet(b.team));
    if (member_of(b.shares, first) == b.shares.self) {
        collect_kernel<<<exchange_grid(b.shares.columns - next, width), EXCHANGE_THREADS, 0,
                         call->stream>>>(b.shares, places_of(b, &band_arrays::rows), next, to, ld);
        CUDA_LAUNCHED(call);
    }
out:
    return ret;
}

/* to [width][ld]: W in the own columns after `next`. */
static tsvd_status
spread_rows(struct cuda_call *call, const struct band_team &b, int64_t first, int64_t width,
            int64_t next, scalar *to, int64_t ld)
{
    const int member = member_of(b.shares, first);
    const int64_t own = columns_before(b.shares, b.shares.self, next);
    const int64_t numbers = columns_before(b.shares, b.shares.self, b.shares.columns) - own;
    tsvd_status ret = TSVD_OK;

    if (b.team == NULL) {
        goto out;
    }
    TSVD_TRY(tsvdi_cuda_team_meet(b.team));
    if (numbers > 0) {
        spread_kernel<<<exchange_grid(numbers, width), EXCHANGE_THREADS, 0, call->stream>>>(
            b.shares, own, next, b.of[member].factor, b.shares.columns, to, ld);
        CUDA_LAUNCHED(call);
    }
    if (member != b.shares.self) {
        TSVD_TRY(take_t(call, b, member));
    }
out:
    return ret;
}

/* to [width][ld]: the sum of the members' products, [width][numbers]. */
static tsvd_status
add_up(struct cuda_call *call, const struct band_team &b, int64_t width, int64_t numbers,
       scalar *to, int64_t ld)
{
    tsvd_status ret = TSVD_OK;

    if (b.team == NULL || numbers == 0) {
        goto out;
    }
    TSVD_TRY(tsvdi_cuda_team_meet(b.team));
    add_kernel<<<exchange_grid(numbers, width), EXCHANGE_THREADS, 0, call->stream>>>(
        b.shares.members, places_of(b, &band_arrays::product), numbers, to, ld);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

static tsvd_status
gather_made(struct cuda_call *call, const struct band_team &b, scalar *band_arrays::*array,
            int64_t count, int64_t each)
{
    tsvd_status ret = TSVD_OK;

    if (count <= 0) {
        goto out;
    }
    gather_made_kernel<<<exchange_grid(count * each, 1), EXCHANGE_THREADS, 0, call->stream>>>(
        b.shares, places_of(b, array), count, each, b.of[b.shares.self].*array);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* The factors of all reflectors; and the band, to the first member. */
static tsvd_status
collect(struct cuda_call *call, const struct band_team &b)
{
    const int64_t c = b.shares.columns;
    tsvd_status ret = TSVD_OK;

    if (b.team == NULL) {
        goto out;
    }
    TSVD_TRY(tsvdi_cuda_team_meet(b.team));
    TSVD_TRY(gather_made(call, b, &band_arrays::tau_q, c, 1));
    TSVD_TRY(gather_made(call, b, &band_arrays::tau_p, c - BAND, 1));
    if (b.shares.self == 0) {
        TSVD_TRY(gather_made(call, b, &band_arrays::band, c, BAND + 1));
    }
out:
    return ret;
}

#endif
