/*
 * Diamonds on vectors by plain multiply-adds: the way `lanes` of diamonds.cu.
 *
 * A warp has STEP_VECTORS vectors, and a lane PACK neighbouring ones of them, which are 16 bytes of
 * a row of the slab.  PARTS lanes share a vector: lane ACROSS p + q has of vectors PACK q .. PACK q
 * + PACK - 1 the entries PARTS i + p of the window, as entry i.  Each number of V that it loads
 * serves PACK vectors.  Shared memory gives 32 numbers of four bytes in a cycle: with one vector a
 * lane the loads would take four times as long as the multiply-adds.
 *
 * The columns of a diamond are taken by octets.  Columns 8 o .. 8 o + 7 of V have the rows 8 o ..
 * 8 o + BAND + 7, and those of V T all before these, too.  V and -V T of a diamond are stored as
 *
 *     v    [CHASE_SWEEPS][V_PACKS][PARTS][PACK]    of an octet's rows: row 8 o + PARTS i + p
 *     vt   [CHASE_SWEEPS][VT_PACKS][PARTS][PACK]   row PARTS i + p
 *
 * with entries i = PACK j + e, of pack j.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_DIAMONDS_LANES_CUH
#define TSVDI_CUDA_BIDIAGONALIZE_DIAMONDS_LANES_CUH

#include "bidiagonalize/diamonds_factors.cuh"

/* Pairs of columns of V, and columns of V T, that are spelt out in a loop.  More hide more of the
   time of loads, and take more of the instruction cache: in float32 1 and 1 make a kernel of 21 kB,
   4 and 8 one of 63 kB.  On an H200 vectors of n = 8192 take 55.6 ms with 1 and 1, 52.3 with 2 and
   2, 53.0 with 2 and 4, 83.5 with 4 and 8. */
#ifndef LANES_PAIRS
#define LANES_PAIRS (TSVD_COMPLEX ? 1 : 2)
#endif
#ifndef LANES_COLUMNS
#define LANES_COLUMNS (TSVD_COMPLEX ? 1 : 2)
#endif

enum {
    PACK = 16 / (int)sizeof(scalar),
    PARTS = 2 * PACK,
    ACROSS = WARP / PARTS,
    STEP_VECTORS = ACROSS * PACK,
    OCTET = 8,
    OCTETS = CHASE_SWEEPS / OCTET,
    ENTRIES = DIAMOND_ROWS / PARTS,     /* of the window */
    ENTERING = CHASE_SWEEPS / PARTS,    /* those that enter it after a diamond */
    OCTET_ENTRIES = OCTET / PARTS,      /* those from an octet's first row to that of the next */
    V_ENTRIES = (BAND + OCTET) / PARTS, /* of a column of V in an octet's rows */
    V_PACKS = (V_ENTRIES + PACK - 1) / PACK,
    VT_PACKS = ENTRIES / PACK,
    V_COLUMN = V_PACKS * PARTS, /* packs of a column */
    VT_COLUMN = VT_PACKS * PARTS,
    V_DIAMOND = CHASE_SWEEPS * V_COLUMN,
    DIAMOND_PACKS = V_DIAMOND + CHASE_SWEEPS * VT_COLUMN,
    STEP_NUMBERS = DIAMOND_PACKS * PACK, /* numbers of V and -V T of a diamond */
    ROW_PACKS = ENTERING * WARP,         /* entries of a warp that enter */

    /* Packs of W = V^H X of a warp, [2 + CHASE_SWEEPS][STEP_VECTORS].  The first two rows only take
       what the sums before the first pair of columns leave. */
    W_PACKS = (2 + CHASE_SWEEPS) * ACROSS,
    STAGES = TSVD_COMPLEX ? 2 : 3,
    PAIRS_AT_ONCE = LANES_PAIRS,
    COLUMNS_AT_ONCE = LANES_COLUMNS
};

static_assert(OCTET % PARTS == 0 && DIAMOND_ROWS % (PARTS * PACK) == 0, "packs of entries");
static_assert((int)SHARE == (int)OCTET, "V T");

/* Microseconds of a diamond on an H200, in a block of up to 4 warps, one for each scheduler, and of
   up to 8. */
#define LANES_TIME (TSVD_COMPLEX ? 11.0 : 3.2)
#define LANES_TIME_MORE (TSVD_COMPLEX ? 17.5 : 5.0)

struct alignas(16) lane_pack {
    scalar x[PACK];
};

/* V and -V T of a diamond. */
static __global__ void
__launch_bounds__(PREPARE_THREADS) make_steps_kernel(const scalar *reflectors, scalar *to)
{
    extern __shared__ __align__(16) char shared[];
    struct shared_diamond *const d = (struct shared_diamond *)shared;
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    scalar vt[ROWS_OF_LANE][SHARE];

    make_diamond(d, reflectors + (int64_t)blockIdx.x * CHASE_SWEEPS * BAND, vt);
    to += (int64_t)blockIdx.x * STEP_NUMBERS;
    for (int at = (int)threadIdx.x; at < V_DIAMOND * PACK; at += PREPARE_THREADS) {
        const int part = at / PACK % PARTS, pack = at / PACK / PARTS % V_PACKS;
        const int column = at / PACK / V_COLUMN, i = pack * PACK + at % PACK;

        to[at] = i < V_ENTRIES ? entry_of(d, column / OCTET * OCTET + PARTS * i + part, column)
                               : scalar(0);
    }
    to += V_DIAMOND * PACK;
#pragma unroll
    for (int b = 0; b < ROWS_OF_LANE; b++) {
        const int row = lane + b * WARP, i = row / PARTS, part = row % PARTS;

#pragma unroll
        for (int m = 0; m < SHARE; m++) {
            const int column = warp * SHARE + m;

            to[((column * VT_PACKS + i / PACK) * PARTS + part) * PACK + i % PACK] = -vt[b][m];
        }
    }
}

/* ---- a window ---- */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void
copy_pack(struct lane_pack *to, const struct lane_pack *from)
{
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
}

/* A pack, of which only so many entries are used. */
static __device__ __forceinline__ void
load_pack(struct lane_pack *to, const struct lane_pack *from, int used)
{
    if (used == 1) {
        to->x[0] = from->x[0]; /* takes less of the memory's time than a pack */
    } else {
        *to = *from;
    }
}

/* Sums over the lanes that share a vector: part p gets that of sum[p]. */
static __device__ __forceinline__ scalar
add_parts(const scalar (&sum)[PARTS], int part)
{
    scalar a[PARTS];

#pragma unroll
    for (int j = 0; j < PARTS; j++) {
        a[j] = sum[j];
    }
#pragma unroll
    for (int half = PARTS / 2; half > 0; half /= 2) {
        const bool upper = (part & half) != 0;

#pragma unroll
        for (int j = 0; j < half; j++) {
            const scalar keep = upper ? a[j + half] : a[j], give = upper ? a[j] : a[j + half];

            a[j] = keep + __shfl_xor_sync(0xffffffffu, give, half * ACROSS);
        }
    }
    return a[0];
}

/* W = V^H X.  v: for this lane's part; w: what the sums of this lane go to, from the first two rows
   on.  The columns come in pairs, whose PARTS sums leave each lane one.  Loads for a pair, and the
   sums over the lanes, are beside the multiply-adds of another pair: they take longer than
   those. */
static __device__ __forceinline__ void
make_products(const struct lane_pack (&c)[ENTRIES], const struct lane_pack *v, scalar *w, int part)
{
    struct lane_pack f[2][V_PACKS];
    scalar before[PARTS];

#pragma unroll
    for (int j = 0; j < PARTS; j++) {
        before[j] = 0;
    }
#pragma unroll
    for (int j = 0; j < V_PACKS; j++) {
        load_pack(&f[0][j], v + j * PARTS, V_ENTRIES - j * PACK);
        load_pack(&f[1][j], v + V_COLUMN + j * PARTS, V_ENTRIES - j * PACK);
    }
#pragma unroll
    for (int o = 0; o < OCTETS; o++) {
#pragma unroll PAIRS_AT_ONCE
        for (int pair = 0; pair < OCTET / 2; pair++) {
            scalar sum[PARTS];

            v += 2 * V_COLUMN; /* after the last pair it is at V T, and that is not used */
#pragma unroll
            for (int j = 0; j < PARTS; j++) {
                sum[j] = 0;
            }
#pragma unroll
            for (int j = 0; j < V_PACKS; j++) {
#pragma unroll
                for (int e = 0; e < PACK && j * PACK + e < V_ENTRIES; e++) {
#pragma unroll
                    for (int m = 0; m < PARTS; m++) {
                        sum[m] = n_fma(n_conj(f[m / PACK][j].x[e]),
                                       c[o * OCTET_ENTRIES + j * PACK + e].x[m % PACK], sum[m]);
                    }
                }
                load_pack(&f[0][j], v + j * PARTS, V_ENTRIES - j * PACK);
                load_pack(&f[1][j], v + V_COLUMN + j * PARTS, V_ENTRIES - j * PACK);
            }
            *w = add_parts(before, part);
            w += 2 * STEP_VECTORS;
#pragma unroll
            for (int j = 0; j < PARTS; j++) {
                before[j] = sum[j];
            }
        }
    }
    *w = add_parts(before, part);
}

/* X += (-V T) W.  vt: for this lane's part; w: the first row of this lane's vectors. */
static __device__ __forceinline__ void
add_products(struct lane_pack (&c)[ENTRIES], const struct lane_pack *vt, const struct lane_pack *w)
{
    struct lane_pack f[VT_PACKS], next = *w;

#pragma unroll
    for (int o = 0; o < OCTETS; o++) {
        const int used = V_ENTRIES + o * OCTET_ENTRIES;

        /* what the octet before has not loaded */
#pragma unroll
        for (int j = 0; j < VT_PACKS; j++) {
            if (j * PACK < used && (o == 0 || (j + 1) * PACK > used - OCTET_ENTRIES)) {
                load_pack(&f[j], vt + j * PARTS, used - j * PACK);
            }
        }
#pragma unroll COLUMNS_AT_ONCE
        for (int column = 0; column < OCTET; column++) {
            const struct lane_pack factor = next;

            /* after the last column these are at what comes next, and that is not used */
            vt += VT_COLUMN;
            w += ACROSS;
            next = *w;
#pragma unroll
            for (int j = 0; j < VT_PACKS; j++) {
#pragma unroll
                for (int e = 0; e < PACK && j * PACK + e < used; e++) {
#pragma unroll
                    for (int l = 0; l < PACK; l++) {
                        c[j * PACK + e].x[l] = n_fma(f[j].x[e], factor.x[l], c[j * PACK + e].x[l]);
                    }
                }
                if (j * PACK < used) {
                    load_pack(&f[j], vt + j * PARTS, used - j * PACK);
                }
            }
        }
    }
}

/* Starts the copies of a diamond's V and -V T to a stage, and of this lane's entries from x on. */
static __device__ __forceinline__ void
fetch_stage(struct lane_pack *stage, const struct lane_pack *factors, const struct lane_pack *x,
            int64_t columns, bool with_rows)
{
    const int threads = (int)blockDim.x;
    struct lane_pack *const rows = stage + DIAMOND_PACKS + threadIdx.x;

#pragma unroll 4
    for (int i = (int)threadIdx.x; i < DIAMOND_PACKS; i += threads) {
        copy_pack(stage + i, factors + i);
    }
    if (with_rows) {
#pragma unroll
        for (int i = 0; i < ENTERING; i++) {
            copy_pack(rows + i * threads, x + PARTS * i * columns);
        }
    }
}
#endif

/* The diamonds of the steps begin .. end - 1 on the vectors of a slab; `columns` are packs, and
   `factors` those of step `begin`.  Shared memory: W of the warps, then STAGES stages, each of
   V and -V T of a diamond and the entries that enter the windows after it. */
static __global__ void
__launch_bounds__(WARPS_MOST *WARP, 1)
    lanes_kernel(struct lane_pack *x, int64_t columns, const struct lane_pack *factors, int64_t n,
                 int64_t begin, int64_t end)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    extern __shared__ __align__(16) char shared[];
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int threads = (int)blockDim.x, warps = threads / WARP;
    const int part = lane / ACROSS, across = lane % ACROSS;
    const int stage_packs = DIAMOND_PACKS + warps * ROW_PACKS;
    struct lane_pack *const w = (struct lane_pack *)shared + warp * W_PACKS;
    struct lane_pack *const stages = (struct lane_pack *)shared + warps * W_PACKS;
    scalar *const w_of_sums =
        (scalar *)w + part / PACK * STEP_VECTORS + across * PACK + part % PACK;
    struct lane_pack c[ENTRIES];

    x += ((int64_t)blockIdx.x * warps + warp) * ACROSS + across + (1 + part) * columns;
    for (int64_t k = begin; k < end; k++) {
        const int groups = (int)chase_groups(n, k);
        /* of the window, and of the rows and factors of the next stage */
        struct lane_pack *rows = x + (BAND * k + CHASE_SWEEPS * (int64_t)(groups - 1)) * columns;
        const struct lane_pack *next_rows = rows - CHASE_SWEEPS * columns;
        const struct lane_pack *next = factors + (int64_t)(groups - 1) * DIAMOND_PACKS;
        int stage = 0;

        __syncthreads(); /* the stages are free */
#pragma unroll
        for (int t = 0; t < STAGES - 1; t++) {
            if (t < groups) {
                fetch_stage(stages + t * stage_packs, next, next_rows, columns, t + 1 < groups);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
            next -= DIAMOND_PACKS;
            next_rows -= CHASE_SWEEPS * columns;
        }
#pragma unroll
        for (int i = 0; i < ENTRIES; i++) {
            c[i] = rows[PARTS * i * columns];
        }
        for (int t = 0; t < groups; t++) {
            const struct lane_pack *const here = stages + stage * stage_packs;
            const int free = stage == 0 ? STAGES - 1 : stage - 1;

            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            __syncthreads();
            if (t + STAGES - 1 < groups) {
                fetch_stage(stages + free * stage_packs, next, next_rows, columns,
                            t + STAGES < groups);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
            next -= DIAMOND_PACKS;
            next_rows -= CHASE_SWEEPS * columns;
            make_products(c, here + part, w_of_sums, part);
            __syncwarp();
            add_products(c, here + V_DIAMOND + part, w + 2 * ACROSS + across);
#pragma unroll
            for (int i = ENTRIES - ENTERING; i < ENTRIES; i++) {
                rows[PARTS * i * columns] = c[i];
            }
            if (t + 1 < groups) {
                const struct lane_pack *const entering = here + DIAMOND_PACKS + threadIdx.x;

#pragma unroll
                for (int i = ENTRIES - 1; i >= ENTERING; i--) {
                    c[i] = c[i - ENTERING];
                }
#pragma unroll
                for (int i = 0; i < ENTERING; i++) {
                    c[i] = entering[i * threads];
                }
            } else {
#pragma unroll
                for (int i = 0; i < ENTRIES - ENTERING; i++) {
                    rows[PARTS * i * columns] = c[i];
                }
            }
            rows -= CHASE_SWEEPS * columns;
            stage = stage + 1 < STAGES ? stage + 1 : 0;
        }
        factors += (int64_t)groups * DIAMOND_PACKS;
    }
#else
    (void)x;
    (void)columns;
    (void)factors;
    (void)n;
    (void)begin;
    (void)end;
#endif
}

/* ---- what diamonds.cu calls ---- */

/* Bytes of shared memory of a block. */
static int
lanes_shared(int warps)
{
    const int packs = warps * W_PACKS + STAGES * (DIAMOND_PACKS + warps * ROW_PACKS);

    return packs * (int)sizeof(struct lane_pack);
}

/* The most warps of a block that the device can run; 0: none. */
static int
step_warps(const struct cuda_device *device)
{
    int warps = capability_for(device, (const void *)lanes_kernel, 80) >= 8 ? WARPS_MOST : 0;

    while (warps > 0 && lanes_shared(warps) > device->shared_most) {
        warps--;
    }
    return warps;
}

/* Microseconds of a diamond in a block of so many warps. */
static double
step_time(int warps)
{
    /* fewer warps are better where they take equally long */
    return (warps > 4 ? LANES_TIME_MORE : LANES_TIME) + 0.01 * warps;
}

static tsvd_status
launch_steps(struct cuda_call *call, int warps, unsigned blocks, scalar *d_slab, int64_t columns,
             const scalar *d_steps, int64_t n, int64_t begin, int64_t end)
{
    const int shared = lanes_shared(warps);
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaFuncSetAttribute(lanes_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        shared));
    lanes_kernel<<<blocks, (unsigned)(warps * WARP), shared, call->stream>>>(
        (struct lane_pack *)d_slab, columns / PACK, (const struct lane_pack *)d_steps, n, begin,
        end);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

#endif
