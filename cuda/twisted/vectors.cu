/*
 * Twisted factorisations on the device: twists, corrections and vectors of a block of values.
 *
 * Two warps have 32 values, a lane of each the same one.  One walks the matrix from the top, the
 * other from the bottom.  A value takes a chain of thousands of dependent steps, and few values
 * share a multiprocessor: so both ends are walked at once.
 *
 * Entry [row][value] of block->z holds a minor, then a ratio, then an entry of z.  A lane reads and
 * writes places of its own, but for the minors, which the two lanes of a value exchange.
 */
#include "twisted/run.h"

enum { TOP, BOTTOM, ENDS, CHAIN_THREADS = ENDS * (int)WARP, TILE_THREADS = 8 };

/* Entries of z that a lane reads at once: a step takes far less than a read from memory does. */
enum { AHEAD = 16 };

/* The place of a thread: its end of the matrix, and its value. */
struct place {
    int end, lane;
    int64_t column; /* of the block's arrays; those from block.count on repeat the last value */
    int64_t value;  /* of the k wanted ones */
};

static __device__ __forceinline__ struct place
place_of(const struct twisted_block &block)
{
    struct place p;

    p.end = (int)threadIdx.x / WARP;
    p.lane = (int)threadIdx.x % WARP;
    p.column = (int64_t)blockIdx.x * WARP + p.lane;
    p.value = block.begin + (p.column < block.count ? p.column : block.count - 1);
    return p;
}

/* ---- the twist ---- */

/* A walk over minors from one end, by tiles of WARP rows.  Position j of a tile is its j-th row in
   the direction of the walk.  Minors are rescaled after stretches of STRIDE rows, which divides
   WARP. */
struct walk {
    int end;
    int64_t rows, width;
    const double *square; /* of T's entries */
    double *z;            /* the lane's column */
    int *power;           /* the same: [rows / STRIDE][width] */
    wide shift;
    struct twisted_minors p;
    wide_int twos; /* that were taken out of p */
};

/* Rows of a tile: from `begin` on, `count` of them. */
struct rows {
    int64_t begin;
    int count;
};

static __device__ __forceinline__ struct rows
rows_of(const struct walk &w, int64_t tile)
{
    const int64_t begin = tile * WARP, left = w.rows - begin;

    return {begin, left < WARP ? (int)left : (int)WARP};
}

/* Place of position j in the tile. */
static __device__ __forceinline__ int
place_in(const struct walk &w, struct rows r, int j)
{
    return w.end == TOP ? j : r.count - 1 - j;
}

/* The square of the entry that leads from the row of position `lane` to the next one.  There is
   none in front of the first row; the one behind the last row is zero. */
static __device__ __forceinline__ double
read_square(const struct walk &w, struct rows r, int lane)
{
    const int64_t row = r.begin + place_in(w, r, lane < r.count ? lane : 0);
    const int64_t entry = w.end == TOP ? row : row - 1;

    return entry >= 0 ? __ldg(&w.square[entry]) : 0;
}

/* What the other end has stored of a tile. */
template <int STRIDE> struct stored {
    double minor[WARP];       /* by position */
    int power[WARP / STRIDE]; /* by place */
};

template <int STRIDE, bool FULL>
static __device__ __forceinline__ void
read_stored(const struct walk &w, struct rows r, struct stored<STRIDE> *s)
{
    const int64_t pitch = w.end == TOP ? w.width : -w.width;
    const double *z = w.z + (r.begin + place_in(w, r, 0)) * w.width;
    const int *power = w.power + r.begin / STRIDE * w.width;

#pragma unroll
    for (int j = 0; j < WARP; j++) {
        if (FULL || j < r.count) {
            s->minor[j] = *z;
            z += pitch;
        }
        if (j % STRIDE == 0 && (FULL || j < r.count)) {
            s->power[j / STRIDE] = *power;
            power += w.width;
        }
    }
}

template <int STRIDE>
static __device__ __forceinline__ void
read_tile(const struct walk &w, struct rows r, struct stored<STRIDE> *s)
{
    if (r.count == WARP) {
        read_stored<STRIDE, true>(w, r, s);
    } else {
        read_stored<STRIDE, false>(w, r, s);
    }
}

/* The power of the stretch that has a place. */
template <int STRIDE>
static __device__ __forceinline__ int
power_at(const struct stored<STRIDE> &s, int place)
{
    int power = 0;

#pragma unroll
    for (int i = 0; i < (int)WARP / STRIDE; i++) {
        power = place / STRIDE == i ? s.power[i] : power;
    }
    return power;
}

/* The best row so far, by twisted_key(). */
struct best {
    wide_int key;
    int64_t row;
};

/* A tile.  In the first half of the walk its minors are stored for the other end, in the second
   half they meet those of the other end. */
template <int STRIDE, bool COMPARED, bool FULL>
static __device__ __forceinline__ void
pass_rows(struct walk *w, struct rows r, const double (&square)[WARP],
          const struct stored<STRIDE> &other, struct best *best)
{
    const bool top = w->end == TOP;
    const int64_t pitch = top ? w->width : -w->width;
    double *z = w->z + (r.begin + place_in(*w, r, 0)) * w->width;
    wide most = -1;
    int at = 0;

#pragma unroll
    for (int j = 0; j < WARP; j++) {
        if (FULL || j < r.count) {
            const int place = place_in(*w, r, j), before = top ? place : place + 1;
            const int behind = top ? place + 1 : place;

            if (FULL ? j % STRIDE == 0 : j == 0 || before % STRIDE == 0) {
                w->twos += twisted_minors_rescale(&w->p);
                if (!COMPARED) {
                    w->power[(r.begin + place) / STRIDE * w->width] = (int)w->twos;
                }
            }
            if (COMPARED) {
                const wide product = wide_abs(other.minor[j] * w->p.before);

                at = most < product ? place : at;
                most = most < product ? product : most;
            } else {
                *z = w->p.before;
                z += pitch;
            }
            twisted_minors_step(w->shift, square[j], &w->p);
            if (COMPARED &&
                (FULL ? (j + 1) % STRIDE == 0 : j == r.count - 1 || behind % STRIDE == 0)) {
                const int from_top = other.power[j / STRIDE];
                const int from_bottom = other.power[WARP / STRIDE - 1 - j / STRIDE];
                const int full = top ? from_top : from_bottom;
                const int power = FULL ? full : power_at<STRIDE>(other, place);
                const wide_int key = twisted_key(
                    most * twisted_weight(w->rows / 2, r.begin + place), w->twos + power);

                if (best->key < key) {
                    best->key = key;
                    best->row = r.begin + at;
                }
                most = -1;
            }
        }
    }
}

/* Walks over `count` tiles from number `tile` on.  square: a warp's own room in shared memory. */
template <int STRIDE, bool COMPARED>
static __device__ __forceinline__ void
walk_tiles(struct walk *w, int64_t tile, int64_t count, double (&square)[WARP], struct best *best)
{
    const int lane = (int)threadIdx.x % WARP, way = w->end == TOP ? 1 : -1;
    struct stored<STRIDE> now, ahead;
    double next = count > 0 ? read_square(*w, rows_of(*w, tile), lane) : 0;

    if (COMPARED && count > 0) {
        read_tile(*w, rows_of(*w, tile), &ahead);
    }
    for (; count > 0; count--, tile += way) {
        const struct rows r = rows_of(*w, tile);

        now = ahead;
        __syncwarp();
        square[lane] = next;
        __syncwarp();
        if (count > 1) {
            next = read_square(*w, rows_of(*w, tile + way), lane);
            if (COMPARED) {
                read_tile(*w, rows_of(*w, tile + way), &ahead);
            }
        }
        if (r.count == WARP) {
            pass_rows<STRIDE, COMPARED, true>(w, r, square, now, best);
        } else {
            pass_rows<STRIDE, COMPARED, false>(w, r, square, now, best);
        }
    }
}

/* Finds the row with the largest entry, as far as this end compares; both warps call it. */
template <int STRIDE>
static __device__ __forceinline__ struct best
find_twist(struct walk *w, double (&square)[WARP])
{
    const int64_t tiles = (w->rows + WARP - 1) / WARP, middle = tiles / 2;
    const bool top = w->end == TOP;
    struct best best = {INT64_MIN, 0};

    walk_tiles<STRIDE, false>(w, top ? 0 : tiles - 1, top ? middle : tiles - middle, square, &best);
    __syncthreads();
    walk_tiles<STRIDE, true>(w, top ? middle : middle - 1, top ? tiles - middle : middle, square,
                             &best);
    return best;
}

static __global__ void
__launch_bounds__(CHAIN_THREADS) twist_kernel(struct twisted_device run, struct twisted_block block)
{
    const struct place at = place_of(block);
    __shared__ double square[ENDS][WARP];
    __shared__ struct best other[WARP];
    struct walk w = {};
    struct best best;
    int64_t stride;

    if (!twisted_takes(run)) {
        return;
    }
    stride = matrix_of(run).stride;
    w.end = at.end;
    w.rows = 2 * run.n;
    w.width = block.width;
    w.square = run.square;
    w.z = block.z + at.column;
    w.power = block.power + at.column;
    w.shift = run.found[run.first - run.from + at.value];
    w.p = twisted_minors_begin(w.shift);
    best = stride >= WARP          ? find_twist<WARP>(&w, square[at.end])
           : stride >= SOME_STRIDE ? find_twist<SOME_STRIDE>(&w, square[at.end])
                                   : find_twist<LEAST_STRIDE>(&w, square[at.end]);
    if (at.end == BOTTOM) {
        other[at.lane] = best;
    }
    __syncthreads();
    if (at.end == TOP) {
        block.twist[at.column] = best.key >= other[at.lane].key ? best.row : other[at.lane].row;
    }
}

/* ---- the chains ---- */

/* A lane's way from its end to row r.  Step i crosses entry i, or rows - 2 - i, and leads away from
   row i, or rows - 1 - i. */
struct way {
    int end;
    int rows, steps; /* rows of T; entries between the end and r */
    int most;        /* steps of any lane of the warp */
    double *first;   /* the lane's place in the row that step 0 leads away from */
    int64_t pitch;   /* from there to the row of step 1 */
};

/* What a step needs of an entry, for WARP steps. */
struct entries {
    double b[WARP], square[WARP], rest[WARP];
};

/* What a lane reads of them. */
struct entry {
    double b, square, rest;
};

static __device__ __forceinline__ struct entry
read_entry(const struct twisted_matrix &m, const struct way &way, int i)
{
    const int last = way.rows - 2, step = i < last ? i : last > 0 ? last : 0;
    const int k = way.end == TOP ? step : last - step;

    return {__ldg(&m.b[k]), __ldg(&m.square[k]), __ldg(&m.rest[k])};
}

/* The chain from the end to row r.  The ratios are stored in the places of the rows that they lead
   away from, if they are wanted. */
template <bool STORED>
static __device__ __forceinline__ struct twisted_chain
walk_chain(const struct twisted_matrix &m, const struct way &way, pair x, struct entries *entries)
{
    const int lane = (int)threadIdx.x % WARP;
    struct twisted_chain chain = twisted_chain_begin(x);
    struct entry own = read_entry(m, way, lane);
    double *place = way.first;

    for (int begin = 0; begin < way.most; begin += WARP) {
        const int count = way.most - begin < WARP ? way.most - begin : (int)WARP;

        __syncwarp();
        entries->b[lane] = own.b;
        entries->square[lane] = own.square;
        entries->rest[lane] = own.rest;
        __syncwarp();
        own = read_entry(m, way, begin + WARP + lane);
#pragma unroll 8
        for (int j = 0; j < count; j++) {
            struct twisted_chain next = chain;
            const wide ratio =
                twisted_chain_step(x, entries->b[j], entries->square[j], entries->rest[j], &next);
            const bool there = begin + j < way.steps;

            if (STORED && there) {
                *place = ratio;
            }
            place += way.pitch;
            chain = there ? next : chain;
        }
    }
    return chain;
}

/* Both chains of each value. */
struct meeting {
    struct entries entries[ENDS];
    struct twisted_chain chain[ENDS][WARP];
};

/* What two chains found where they meet. */
struct met {
    wide g, square_norm;
};

/* All threads of the block call this. */
template <bool STORED>
static __device__ __forceinline__ struct met
meet(const struct twisted_matrix &m, const struct way &way, pair x, struct meeting *meeting)
{
    const int lane = (int)threadIdx.x % WARP;
    struct met met;

    const struct twisted_chain chain = walk_chain<STORED>(m, way, x, &meeting->entries[way.end]);

    __syncthreads(); /* what was found before has been read */
    meeting->chain[way.end][lane] = chain;
    __syncthreads();
    met.g =
        twisted_meet(x, meeting->chain[TOP][lane], meeting->chain[BOTTOM][lane], &met.square_norm);
    return met;
}

/* The ratios of AHEAD steps from step `begin` on. */
static __device__ __forceinline__ void
read_ratios(const struct way &way, int begin, double (&ratio)[AHEAD])
{
    const double *place = way.first + begin * way.pitch;

#pragma unroll
    for (int j = 0; j < AHEAD; j++) {
        ratio[j] = begin >= 0 && begin + j < way.steps ? *place : 0;
        place += way.pitch;
    }
}

/* z from the ratios, in their place, and the sums of the squares of its even and odd rows; row r
   is left out. */
static __device__ __forceinline__ void
unfold(const struct way &way, double sum[2])
{
    const int last = (way.most + AHEAD - 1) / AHEAD * AHEAD - AHEAD;
    double part[2] = {0, 0}, x = 1, ratio[AHEAD], next[AHEAD];

    read_ratios(way, last, ratio);
    for (int begin = last; begin >= 0; begin -= AHEAD) {
        double *place = way.first + (begin + AHEAD - 1) * way.pitch;

        read_ratios(way, begin - AHEAD, next);
#pragma unroll
        for (int j = AHEAD - 1; j >= 0; j--) {
            if (begin + j < way.steps) {
                x = ratio[j] * x;
                *place = x;
                part[j % 2] = fma(x, x, part[j % 2]);
            }
            place -= way.pitch;
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            ratio[j] = next[j];
        }
    }
    /* from the bottom, step 0 leads away from the last row, which is odd */
    sum[0] = part[way.end == TOP ? 0 : 1];
    sum[1] = part[way.end == TOP ? 1 : 0];
}

/* Corrects a value until it is settled. */
static __device__ __forceinline__ pair
correct(const struct twisted_matrix &m, const struct way &way, double shift, double gap,
        struct meeting *meeting)
{
    const double limit = twisted_angle_limit(m.n);
    pair x = pair_of(shift, 0.0);
    bool settled = false;

    for (int i = 0; i < TWISTED_CORRECTIONS; i++) {
        const struct met met = meet<false>(m, way, x, meeting);

        if (!settled) {
            const double angle = twisted_angle_square(met.g, met.square_norm, gap);

            /* where it is not a number there is no hope either */
            settled = !(angle < (double)INFINITY) || twisted_settles(angle, limit);
            x = twisted_correct(x, met.g, met.square_norm);
        }
        if (__syncthreads_and(settled)) {
            break;
        }
    }
    return x;
}

/* Writes a value.  Returns whether it and its vectors pass the gates. */
static __device__ __forceinline__ bool
conclude(const struct twisted_device &run, int64_t value, pair x, struct met met,
         const double sum[2])
{
    const double gap = gap_of(run, value), shift = run.found[run.first - run.from + value];
    const double angle = twisted_angle_square(met.g, met.square_norm, gap);

    run.value[value] = pair_high(x);
    run.s[value] = twisted_value(pair_high(x), pair_low(x), run.exponent);
    return twisted_parts(shift, gap) &&
           twisted_accepts(run.n, angle, sum[0] / sum[1], shift, pair_high(x), gap);
}

static __global__ void
__launch_bounds__(CHAIN_THREADS) chain_kernel(struct twisted_device run, struct twisted_block block)
{
    const struct place at = place_of(block);
    const struct twisted_matrix m = matrix_of(run);
    const bool taken = twisted_takes(run);
    const int64_t r = taken ? block.twist[at.column] : 0;
    __shared__ struct meeting meeting;
    __shared__ double sums[ENDS][2][WARP];
    struct way way = {};
    struct met met;
    double sum[2];
    pair x;

    if (!taken) {
        if (at.end == TOP && at.column < block.count) {
            atomicAdd(&run.facts->refused, 1ULL);
        }
        return;
    }
    way.end = at.end;
    way.rows = (int)(2 * m.n);
    way.steps = at.end == TOP ? (int)r : way.rows - 1 - (int)r;
    way.most = way.steps;
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        const int other = __shfl_xor_sync(0xffffffffu, way.most, lanes);

        way.most = other > way.most ? other : way.most;
    }
    way.first = block.z + (at.end == TOP ? 0 : way.rows - 1) * block.width + at.column;
    way.pitch = at.end == TOP ? block.width : -block.width;
    x = correct(m, way, run.found[run.first - run.from + at.value], gap_of(run, at.value),
                &meeting);
    met = meet<true>(m, way, x, &meeting);
    unfold(way, sum);
    sums[at.end][0][at.lane] = sum[0];
    sums[at.end][1][at.lane] = sum[1];
    __syncthreads();
    if (at.end == BOTTOM) {
        return;
    }
    block.z[r * block.width + at.column] = 1;
    for (int i = 0; i < 2; i++) {
        sum[i] = (sums[TOP][i][at.lane] + sums[BOTTOM][i][at.lane]) + (r % 2 == i);
        block.factor[i][at.column] = 1 / sqrt(sum[i]);
    }
    if (at.column < block.count && !conclude(run, at.value, x, met, sum)) {
        atomicAdd(&run.facts->refused, 1ULL);
    }
}

/* ---- results ---- */

/* Gives both factors of a value the sign that makes the first of the largest entries of L's column
   positive, as they will be rounded. */
static __global__ void
__launch_bounds__(WARP *TILE_THREADS)
    sign_kernel(struct twisted_device run, struct twisted_block block)
{
    const int lane = (int)threadIdx.x, slice = (int)threadIdx.y, side = run.lower ? 0 : 1;
    const int64_t column = (int64_t)blockIdx.x * WARP + lane;
    __shared__ real entry[TILE_THREADS][WARP];
    __shared__ int64_t row[TILE_THREADS][WARP];
    real largest = 0;
    double factor;
    int64_t first = 0;

    if (run.facts->refused > 0) {
        return;
    }
    factor = block.factor[side][column];
#pragma unroll 8
    for (int64_t i = slice; i < run.n; i += TILE_THREADS) {
        const real x = (real)(block.z[(2 * i + side) * block.width + column] * factor);

        if (r_abs(x) > r_abs(largest)) {
            largest = x;
            first = i;
        }
    }
    entry[slice][lane] = largest;
    row[slice][lane] = first;
    __syncthreads();
    for (int i = 1; i < TILE_THREADS && slice == 0; i++) {
        const real x = entry[i][lane];

        if (r_abs(x) > r_abs(largest) || (r_abs(x) == r_abs(largest) && row[i][lane] < first)) {
            largest = x;
            first = row[i][lane];
        }
    }
    if (slice == 0 && largest < 0) {
        block.factor[0][column] = -block.factor[0][column];
        block.factor[1][column] = -block.factor[1][column];
    }
}

/* Writes tiles of both sides: L's as they lie, R's transposed. */
static __global__ void
__launch_bounds__(WARP *TILE_THREADS)
    write_kernel(struct twisted_device run, struct twisted_block block)
{
    const int by_columns = run.lower ? 0 : 1;
    const int64_t column = (int64_t)blockIdx.x * WARP + threadIdx.x;
    const int64_t step = (int64_t)gridDim.y * WARP;
    double factor, other;
    __shared__ real tile[WARP][WARP + 1];

    if (run.facts->refused > 0) {
        return;
    }
    factor = block.factor[by_columns][column];
    other = block.factor[1 - by_columns][column];
    for (int64_t begin = (int64_t)blockIdx.y * WARP; begin < run.n; begin += step) {
        __syncthreads(); /* the tile before has been written */
        for (int j = (int)threadIdx.y; j < WARP && begin + j < run.n; j += TILE_THREADS) {
            const double *z = block.z + 2 * (begin + j) * block.width + column;

            if (column < block.count) {
                run.columns[(begin + j) * run.k + block.begin + column] =
                    (real)(z[by_columns * block.width] * factor);
            }
            tile[j][threadIdx.x] = (real)(z[(1 - by_columns) * block.width] * other);
        }
        __syncthreads();
        for (int j = (int)threadIdx.y; j < WARP; j += TILE_THREADS) {
            const int64_t value = (int64_t)blockIdx.x * WARP + j, i = begin + threadIdx.x;

            if (value < block.count && i < run.n) {
                run.rows[(block.begin + value) * run.n + i] = tile[threadIdx.x][j];
            }
        }
    }
}

tsvd_status
tsvdi_cuda_twist(struct cuda_call *call, const struct twisted_device *run,
                 const struct twisted_block *block)
{
    const unsigned warps = (unsigned)(block->width / WARP);
    const unsigned rows = blocks_for(run->n, WARP);
    const dim3 tiles(warps, rows < GRID_MOST ? rows : (unsigned)GRID_MOST);
    const dim3 threads(WARP, TILE_THREADS);
    tsvd_status ret = TSVD_OK;

    twist_kernel<<<warps, CHAIN_THREADS, 0, call->stream>>>(*run, *block);
    CUDA_LAUNCHED(call);
    chain_kernel<<<warps, CHAIN_THREADS, 0, call->stream>>>(*run, *block);
    CUDA_LAUNCHED(call);
    sign_kernel<<<warps, threads, 0, call->stream>>>(*run, *block);
    CUDA_LAUNCHED(call);
    write_kernel<<<tiles, threads, 0, call->stream>>>(*run, *block);
    CUDA_LAUNCHED(call);
out:
    return ret;
}
