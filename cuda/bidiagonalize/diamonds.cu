/*
 * The reflectors of a chase on vectors: Q x, or Q^H x.
 *
 * Reflector (i, k), of sweep i and step k, is H = I - tau v v^H, and acts on BAND entries from
 * i + 1 + BAND k on.  Q is the product over the sweeps i ascending of that over k.  Those of a
 * group g of CHASE_SWEEPS sweeps and of one k are a diamond.  It acts on DIAMOND_ROWS entries, from
 * CHASE_SWEEPS g + 1 + BAND k on, and is
 *
 *     H_0 H_1 ... = I - V T V^H,   T(j, j) = tau_j,
 *                                  T(0:j, j) = -tau_j T(0:j, 0:j) (V(:, 0:j)^H v_j),
 *
 * where column s of V begins in row s, and T is upper triangular.  A reflector with tau = 0, as one
 * that there is not, leaves a zero row and a zero column in T.
 *
 * For Q x diamond (k, g) comes before (k', g') if k' >= k and g' <= g; for Q^H x after it.  There
 * are three ways to do so:
 *
 *   products   The diamonds with k - g = t are a wave, and the waves come with t ascending.  Those
 *              of a wave have no entries in common, and begin DIAMOND_ROWS apart: two strided
 *              products multiply by all of them,
 *
 *                  Q x      W = V^H X,       X -= (V T) W
 *                  Q^H x    W = (V T)^H X,   X -= V W.
 *
 *   fragments  For Q x, where float64 has tensor cores that pay: k ascends, and for each k the
 *              groups descend.  A warp keeps a window of DIAMOND_ROWS entries of some vectors in
 *              registers, which moves up by CHASE_SWEEPS entries from a diamond to the next.  So
 *              the vectors pass by once for each k.
 *
 *   lanes      The same in float32 and complex64, by plain multiply-adds.
 *
 * In any way the vectors are copied to a slab first, [n + DIAMOND_ROWS][columns], with zeros after
 * the last entry and the last vector, and back at the end.  `fragments` and `lanes` are the two
 * ways by steps.  A source has one of them, and their files have the same functions.
 *
 * Source of the products: Schreiber & Van Loan, SIAM J. Sci. Stat. Comput. 10 (1989).
 */
#include "bidiagonalize/band.h"
#include "bidiagonalize/diamonds_waves.cuh"
#if TSVD_SINGLE
#include "bidiagonalize/diamonds_lanes.cuh"
#else
#include "bidiagonalize/diamonds_fragments.cuh"
#endif

enum {
    COPY_ROWS = 8,
    ALIGNED = 16,     /* the columns of a slab are a multiple of this */
    SLAB_LEAST = 1024 /* vectors of a slab, if there are so many */
};

/* Bytes of a slab, at most, and of V and -V T of the steps that are prepared together, but for what
   a step takes at least. */
#define SLAB_BYTES (INT64_C(6) << 30)
#define STEP_BYTES (INT64_C(3) << 29)

/* ---- the slab ---- */

/* Vectors to a slab, [rows][columns], with zeros after them, or from there.  A block copies a
   tile. */
static __global__ void
copy_kernel(const __grid_constant__ struct dense_block x, int64_t n, scalar *slab, int64_t rows,
            int64_t columns, int back)
{
    __shared__ scalar tile[TILE][TILE + 1];
    const int64_t first_i = (int64_t)blockIdx.x * TILE, first_j = (int64_t)blockIdx.y * TILE;
    const int across = (int)threadIdx.x;

    /* neighbours in memory are entries of a vector where vectors are rows, else vectors */
    for (int y = (int)threadIdx.y; y < TILE; y += COPY_ROWS) {
        const bool down = x.rows && !back;
        const int a = down ? across : y, b = down ? y : across;
        const int64_t i = first_i + a, j = first_j + b;
        const bool there = i < n && j < x.count;
        const scalar entry = !there ? scalar(0)
                             : back ? slab[i * columns + j]
                                    : x.d_x[x.rows ? j * x.stride + i : i * x.stride + j];

        tile[a][b] = x.conjugated ? n_conj(entry) : entry;
    }
    __syncthreads();
    for (int y = (int)threadIdx.y; y < TILE; y += COPY_ROWS) {
        const bool down = x.rows && back;
        const int a = down ? across : y, b = down ? y : across;
        const int64_t i = first_i + a, j = first_j + b;

        if (!back && i < rows && j < columns) {
            slab[i * columns + j] = tile[a][b];
        }
        if (back && i < n && j < x.count) {
            x.d_x[x.rows ? j * x.stride + i : i * x.stride + j] = tile[a][b];
        }
    }
}

static tsvd_status
copy_slab(struct cuda_call *call, struct dense_block x, int64_t n, scalar *d_slab, int64_t columns,
          int back)
{
    const int64_t rows = back ? n : n + DIAMOND_ROWS;
    const dim3 blocks(blocks_for(rows, TILE), blocks_for(back ? x.count : columns, TILE));
    tsvd_status ret = TSVD_OK;

    copy_kernel<<<blocks, dim3(TILE, COPY_ROWS), 0, call->stream>>>(x, n, d_slab, rows, columns,
                                                                    back);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* ---- steps ---- */

/* The last step, and one, whose V and -V T fit into the workspace with those from `begin` on; at
   least one step's do. */
static int64_t
steps_until(int64_t n, int64_t begin)
{
    const int64_t bytes = STEP_NUMBERS * (int64_t)sizeof(scalar);
    int64_t end = begin + 1;

    while (end < chase_steps(n) &&
           (diamonds_before(n, end + 1) - diamonds_before(n, begin)) * bytes <= STEP_BYTES) {
        end++;
    }
    return end;
}

static int64_t
steps_numbers(int64_t n)
{
    const int64_t bytes = STEP_NUMBERS * (int64_t)sizeof(scalar);

    return std::min<int64_t>(diamonds_before(n, chase_steps(n)),
                             std::max<int64_t>(STEP_BYTES / bytes, chase_groups(n, 0))) *
           STEP_NUMBERS;
}

/* V and -V T of so many diamonds, as the kernel of the steps takes them. */
static tsvd_status
prepare_steps(struct cuda_call *call, int64_t diamonds, const scalar *d_reflectors, scalar *d_steps)
{
    const int shared = (int)sizeof(struct shared_diamond);
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaFuncSetAttribute(make_steps_kernel,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    make_steps_kernel<<<(unsigned)diamonds, PREPARE_THREADS, shared, call->stream>>>(d_reflectors,
                                                                                     d_steps);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

/* All steps on the slab, with so many warps of a block. */
static tsvd_status
apply_steps(struct tsvd_context *ctx, int64_t n, const scalar *d_reflectors, int64_t vectors,
            int warps, scalar *d_slab, int64_t columns, scalar *d_steps)
{
    const unsigned blocks = blocks_for(vectors, warps * STEP_VECTORS);
    struct cuda_call *call = cuda_of(ctx);
    int64_t end;
    tsvd_status ret = TSVD_OK;

    for (int64_t begin = 0; begin < chase_steps(n); begin = end) {
        const int64_t first = diamonds_before(n, begin);

        end = steps_until(n, begin);
        TSVD_TRY(prepare_steps(call, diamonds_before(n, end) - first,
                               d_reflectors + first * CHASE_SWEEPS * BAND, d_steps));
        TSVD_TRY(launch_steps(call, warps, blocks, d_slab, columns, d_steps, n, begin, end));
        TSVD_TRY(tsvdi_check(ctx, 0));
    }
out:
    return ret;
}

/* ---- how it is done ---- */

struct diamonds_plan {
    int64_t vectors; /* of a slab, at most */
    int64_t columns; /* of a slab */
    int64_t piece;   /* columns of a product */
    int warps;       /* of a block, by steps; 0: by products */
};

/* Vectors of a slab, at most: those of all multiprocessors at once, if there is room. */
static int64_t
slab_most(const struct cuda_device *device, int64_t n)
{
    const int64_t all = (int64_t)device->multiprocessors * WARPS_MOST * STEP_VECTORS;
    const int64_t fit = SLAB_BYTES / ((n + DIAMOND_ROWS) * (int64_t)sizeof(scalar));

    return std::min<int64_t>(all, std::max<int64_t>(fit / ALIGNED * ALIGNED, SLAB_LEAST));
}

/* Numbers of the slab for so many vectors, or fewer. */
static int64_t
slab_numbers(const struct cuda_device *device, int64_t n, int64_t vectors)
{
    const int64_t columns = aligned(std::min<int64_t>(vectors, slab_most(device, n)), ALIGNED);

    return (n + DIAMOND_ROWS) * (columns + aligned((int64_t)WARPS_MOST * STEP_VECTORS, ALIGNED));
}

/* The warps of a block, of `most_warps` at most, with which the steps take least time; 0: products
   take less. */
static int
warps_of(const struct cuda_device *device, int64_t n, int64_t vectors, int most_warps)
{
    double best = waves_time(n, vectors);
    int warps = 0;

    for (int w = 1; w <= most_warps; w++) {
        const int64_t rounds =
            blocks_for(blocks_for(vectors, w * STEP_VECTORS), device->multiprocessors);
        const double time = (double)(diamonds_before(n, chase_steps(n)) * rounds) * step_time(w);

        if (time < best) {
            best = time;
            warps = w;
        }
    }
    return warps;
}

/* By steps with so many warps, or by products. */
static struct diamonds_plan
plan_with(const struct cuda_device *device, int64_t n, int64_t vectors, int warps)
{
    const int64_t slabs = blocks_for(vectors, slab_most(device, n));
    struct diamonds_plan plan;

    plan.vectors = aligned(blocks_for(vectors, slabs), STEP_VECTORS);
    plan.warps = warps;
    plan.columns = aligned(plan.vectors, warps > 0 ? warps * STEP_VECTORS : (int)ALIGNED);
    plan.piece = std::min<int64_t>(piece_of(n), plan.columns);
    return plan;
}

static struct diamonds_plan
plan_of(const struct cuda_device *device, int64_t n, int64_t vectors, int adjoint)
{
    const struct diamonds_plan plan = plan_with(device, n, vectors, 0);
    const int warps = adjoint ? 0 : warps_of(device, n, plan.vectors, step_warps(device));

    return warps > 0 ? plan_with(device, n, vectors, warps) : plan;
}

struct diamonds_workspace {
    scalar *slab;
    struct wave_arrays waves;
    scalar *steps; /* V and -V T of some steps, in the same place */
};

/* Returns the bytes. */
static size_t
lay_out(int64_t n, int64_t slab, int64_t piece, char *base, struct diamonds_workspace *workspace)
{
    const int64_t numbers = waves_at_once(n) * wave_most(n) * DIAMOND_NUMBERS;
    size_t at = 0, other;

    workspace->slab = carve<scalar>(base, &at, slab);
    other = at;
    workspace->waves.v = carve<scalar>(base, &at, numbers);
    workspace->waves.w = carve<scalar>(base, &at, numbers);
    workspace->waves.y = carve<scalar>(base, &at, wave_most(n) * CHASE_SWEEPS * piece);
    workspace->steps = carve<scalar>(base, &other, steps_numbers(n));
    return other > at ? other : at;
}

uint64_t
tsvdi_cuda_dense_diamonds_bytes(const struct cuda_device *device, int64_t n, int64_t vectors)
{
    struct diamonds_workspace workspace;

    return n < 2 || vectors == 0
               ? 0
               : (uint64_t)lay_out(n, slab_numbers(device, n, vectors),
                                   std::min<int64_t>(piece_of(n), aligned(vectors, ALIGNED)), NULL,
                                   &workspace);
}

static tsvd_status
apply_planned(struct tsvd_context *ctx, int64_t n, const scalar *d_reflectors, int adjoint,
              struct dense_block x, const struct diamonds_plan *plan,
              const struct diamonds_workspace *workspace)
{
    struct cuda_call *call = cuda_of(ctx);
    tsvd_status ret = TSVD_OK;

    for (int64_t at = 0; at < x.count; at += plan->vectors) {
        struct dense_block some = x;

        some.d_x += at * (x.rows ? x.stride : 1);
        some.count = std::min<int64_t>(plan->vectors, x.count - at);
        TSVD_TRY(copy_slab(call, some, n, workspace->slab, plan->columns, 0));
        if (plan->warps > 0) {
            TSVD_TRY(apply_steps(ctx, n, d_reflectors, some.count, plan->warps, workspace->slab,
                                 plan->columns, workspace->steps));
        } else {
            TSVD_TRY(apply_waves(ctx, n, d_reflectors, adjoint, workspace->slab, plan->columns,
                                 plan->piece, &workspace->waves));
        }
        TSVD_TRY(copy_slab(call, some, n, workspace->slab, plan->columns, 1));
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_dense_diamonds_apply(struct tsvd_context *ctx, int64_t n, const scalar *reflectors,
                                int adjoint, struct dense_block x, char *d_work)
{
    const struct cuda_device *device = cuda_of(ctx)->device;
    struct diamonds_workspace workspace;
    struct diamonds_plan plan;

    if (n < 2 || x.count == 0) {
        return TSVD_OK;
    }
    plan = plan_of(device, n, x.count, adjoint);
    (void)lay_out(n, slab_numbers(device, n, x.count), plan.piece, d_work, &workspace);
    return apply_planned(ctx, n, reflectors, adjoint, x, &plan, &workspace);
}
