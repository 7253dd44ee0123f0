/*
 * A step of resident.cu: what a block has of a matrix, and the phases.
 */
#ifndef TSVDI_CUDA_BIDIAGONALIZE_RESIDENT_STEP_H
#define TSVDI_CUDA_BIDIAGONALIZE_RESIDENT_STEP_H

#include "matrix/mail.h"
#include "matrix/panel.h"

enum {
    ROW_THREADS = DENSE_RESIDENT_THREADS,
    ROW_WARPS = (int)ROW_THREADS / (int)WARP,
    THREADS = (int)ROW_THREADS + (int)WARP,
    RESIDENT_ROWS = sizeof(scalar) > 8 ? DENSE_RESIDENT_ROWS / 2 : DENSE_RESIDENT_ROWS,

    /* Columns that a thread works on at once. */
    GROUP = sizeof(scalar) > 8 ? 4 : 8,

    /* Parts of w that a warp loads at once: of PAIR rows and SOURCES blocks, TURNS times. */
    PAIR = 2,
    SOURCES = (int)WARP / (int)PAIR,
    TURNS = sizeof(scalar) > 8 ? 5 : 9
};

/* The last columns of each of `count` matrices. */
struct resident {
    int64_t r, c, count, begin;  /* columns `begin` .. c - 1, and as many rows as are left */
    int rows, columns, end;      /* how many of both; how many columns are reduced */
    int blocks, groups, cluster; /* of a group; of the grid; 1: a group is a cluster */
    int places;                  /* columns of a block, at most */
    int bits;                    /* the block owns 2^bits rows */
    scalar *w;                   /* [count][c][r] */
    scalar *tau_q, *tau_p;       /* [count][c] */
    real *d, *e;                 /* [count][c] */
    struct message *mail;        /* of each group, as mail_of() cuts it; not read in a cluster */
};

/* Where messages arrive.  In a cluster each block has its own arrays. */
struct mail {
    struct message *parts;   /* [owners][blocks + 1][2^bits] parts of w; at last A_(i+1) */
    struct message *column;  /* [rows][2] w and A_(i+1) */
    struct message *numbers; /* [2][blocks + 1][2] parts of r^H r and y^H r; at last r_(i+1) and
                                y_(i+1), conjugated */
};

/* y_l and u_l of a column: their conjugates. */
struct alignas(2 * sizeof(scalar)) row_pair {
    scalar y, u;
};

/* What the last warp tells the others. */
struct numbers {
    scalar first;       /* a_i, which the others tell it */
    scalar inverse;     /* s */
    struct reflector h; /* of the row */
    scalar along, y;    /* y^H u; y_(i+1), conjugated */
};

/* What a block keeps in shared memory. */
struct resident_shared {
    struct row_pair *yu;     /* [places] */
    scalar *row;             /* [places] r */
    scalar *products;        /* [warps][slots] parts of a^H a and of A_l^H a */
    struct numbers *numbers; /* [1] */
    scalar *columns;         /* [places][rows] A */
    struct message *mail;    /* of a cluster */
};

/* A matrix as a block sees it.  Its rows and columns count from `begin` on. */
struct resident_part {
    scalar *w;             /* entry (0, 0) */
    scalar *tau_q, *tau_p; /* [columns] */
    real *d, *e;           /* [columns] */
    int block, places;     /* which block this is; how many columns it has */
    int place;             /* the first of them that is not reduced yet */
    unsigned step;         /* of the exchange */
    struct mail mail;
};

static __host__ __device__ __forceinline__ int
slots_of(int places)
{
    return (places + GROUP) / GROUP * GROUP;
}

/* How many blocks own rows. */
static __host__ __device__ __forceinline__ int
owners_of(const struct resident &q)
{
    return q.cluster ? 1 : ((q.rows - 1) >> q.bits) + 1;
}

/* Messages that a group, or a block of a cluster, has room for. */
static __host__ __device__ __forceinline__ int64_t
mail_size(const struct resident &q)
{
    return (int64_t)owners_of(q) * ((q.blocks + 1) << q.bits) + 2 * q.rows + 4 * (q.blocks + 1);
}

static __device__ __forceinline__ struct mail
mail_of(const struct resident &q, struct message *base)
{
    struct mail mail;

    mail.parts = base;
    mail.column = base + (int64_t)owners_of(q) * ((q.blocks + 1) << q.bits);
    mail.numbers = mail.column + 2 * q.rows;
    return mail;
}

static size_t
shared_bytes(const struct resident &q)
{
    const size_t numbers = (size_t)(q.places + ROW_WARPS * slots_of(q.places) + q.places * q.rows);

    return (q.cluster ? (size_t)mail_size(q) : 0) * sizeof(struct message) +
           (size_t)q.places * sizeof(struct row_pair) + sizeof(struct numbers) +
           numbers * sizeof(scalar);
}

static __device__ __forceinline__ struct resident_shared
share(const struct resident &q, unsigned char *base)
{
    struct resident_shared s;

    s.mail = (struct message *)base;
    s.yu = (struct row_pair *)(s.mail + (q.cluster ? mail_size(q) : 0));
    s.numbers = (struct numbers *)(s.yu + q.places);
    s.row = (scalar *)(s.numbers + 1);
    s.products = s.row + q.places;
    s.columns = s.products + ROW_WARPS * slots_of(q.places);
    return s;
}

/* The column at a place. */
static __device__ __forceinline__ int
own_column(const struct resident &q, const struct resident_part &p, int place)
{
    return p.block + place * q.blocks;
}

/* ---- the threads that have rows ---- */

/* The thread's number, hidden from the compiler: so it computes addresses anew in each step, rather
   than keep those of all rows in registers. */
static __device__ __forceinline__ int
this_thread(void)
{
    int t = (int)threadIdx.x;

    asm volatile("" : "+r"(t));
    return t;
}

/* Brings the columns from place m on up to date, and makes their products with a.  There are GROUP
   of them; or, if HEAD is set, `count` - 1 from place m + 1 on, and a itself comes before them. */
template <int ROWS, bool HEAD>
static __device__ __forceinline__ void
visit_group(const struct resident &q, const struct resident_shared &s, int i, int t, int m,
            int count, const scalar (&a)[ROWS], const scalar (&v)[ROWS], const scalar (&x)[ROWS],
            scalar *products)
{
    struct row_pair yu[GROUP];
    scalar *at[GROUP], sum[GROUP], product;

#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        sum[g] = yu[g].y = yu[g].u = 0;
        if (!HEAD || (g > 0 && g < count)) {
            yu[g] = s.yu[m + g];
        }
        at[g] = s.columns + (m + g) * q.rows + t;
    }
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int k = t + j * ROW_THREADS;
        const scalar with = k > i ? a[j] : REAL(0);
        scalar z[GROUP];

        if (k >= i && k < q.rows) {
#pragma unroll
            for (int g = 0; g < GROUP; g++) {
                z[g] = HEAD && g == 0 ? a[j] : REAL(0);
                if (!HEAD || (g > 0 && g < count)) {
                    z[g] = at[g][j * ROW_THREADS];
                }
            }
#pragma unroll
            for (int g = HEAD; g < GROUP; g++) {
                z[g] = n_fma(-x[j], yu[g].u, n_fma(-v[j], yu[g].y, z[g]));
            }
#pragma unroll
            for (int g = 0; g < GROUP; g++) {
                if (!HEAD || (g > 0 && g < count)) {
                    at[g][j * ROW_THREADS] = z[g];
                }
                sum[g] = n_fma(n_conj(z[g]), with, sum[g]);
            }
        }
    }
    product = warp_sums(sum);
    if (t % (WARP / GROUP) == 0 && t % WARP / (WARP / GROUP) < count) {
        products[t % WARP / (WARP / GROUP)] = product;
    }
}

/* The phase of the columns.  Product 0 is a^H a, and product k that of the k-th column that is
   left. */
template <int ROWS>
static __device__ __forceinline__ void
visit_columns(const struct resident &q, const struct resident_shared &s,
              const struct resident_part &p, int i, const scalar (&a)[ROWS],
              const scalar (&v)[ROWS], const scalar (&x)[ROWS])
{
    const int t = this_thread(), count = 1 + (p.places - p.place) % GROUP;
    scalar *products = s.products + t / WARP * slots_of(q.places);

#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        if (t + j * ROW_THREADS == i) {
            s.numbers->first = a[j];
        }
    }
    visit_group<ROWS, true>(q, s, i, t, p.place - 1, count, a, v, x, products);
    for (int m = p.place + count - 1; m < p.places; m += GROUP) {
        visit_group<ROWS, false>(q, s, i, t, m, GROUP, a, v, x, products + 1 + m - p.place);
    }
}

/* Makes the block's part of w and sends it to the owners of the rows.  The block that has the next
   column sends that too. */
template <int ROWS>
static __device__ __forceinline__ void
send_parts(const struct resident &q, const struct resident_shared &s, const struct resident_part &p,
           int i)
{
    const int t = this_thread();
    const bool next = p.place < p.places && own_column(q, p, p.place) == i + 1;
    const scalar *at = s.columns + p.place * q.rows + t;
    scalar sum[ROWS];

#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        sum[j] = 0;
    }
#pragma unroll 4
    for (int m = p.place; m < p.places; m++) {
        const scalar r = s.row[m];

#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            const int k = t + j * ROW_THREADS;

            if (k > i && k < q.rows) {
                sum[j] = n_fma(at[j * ROW_THREADS], r, sum[j]);
            }
        }
        at += q.rows;
    }
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int k = t + j * ROW_THREADS, owner = k >> q.bits;

        if (k > i && k < q.rows) {
            struct message *to = q.cluster ? at_peer(p.mail.parts, owner)
                                           : p.mail.parts + owner * ((q.blocks + 1) << q.bits);

            to += k - (owner << q.bits);
            send(to + (p.block << q.bits), sum[j], p.step);
            if (next) {
                send(to + (q.blocks << q.bits), s.columns[p.place * q.rows + k], p.step);
            }
        }
    }
}

/* Sums w in the rows that the block owns, and sends it to all blocks. */
static __device__ __forceinline__ void
send_sums(const struct resident &q, const struct resident_part &p, int i)
{
    const int lane = (int)threadIdx.x % WARP, from = lane / PAIR;
    const int begin = p.block << q.bits, end = begin + (1 << q.bits);
    const struct message *parts =
        p.mail.parts + (q.cluster ? 0 : p.block * ((q.blocks + 1) << q.bits));

    for (int k = begin + (int)threadIdx.x / WARP * PAIR; k < end && k < q.rows;
         k += (int)PAIR * (int)ROW_WARPS) {
        const int row = k + lane % PAIR;
        const bool live = row > i && row < q.rows;
        scalar before = 0, sum = 0;

        if (k + PAIR - 1 <= i) {
            continue;
        }
#pragma unroll 1
        for (int block = from; block - from <= q.blocks; block += TURNS * SOURCES) {
            const struct message *at = parts + (block << q.bits) + row - begin;
            scalar x[TURNS];

            receive(x, p.step, [&](int turn) {
                return live && block + turn * (int)SOURCES <= q.blocks
                           ? at + (turn * (int)SOURCES << q.bits)
                           : NULL;
            });
#pragma unroll
            for (int turn = 0; turn < TURNS; turn++) {
                if (block + turn * SOURCES == q.blocks) {
                    before = x[turn];
                } else {
                    sum += x[turn];
                }
            }
        }
#pragma unroll
        for (int lanes = PAIR; lanes < WARP; lanes *= 2) {
            sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
        }
        before = __shfl_sync(0xffffffffu, before, q.blocks % SOURCES * PAIR + lane % PAIR);
        if (live && from < (q.cluster ? q.blocks : 1)) {
            struct message *to = q.cluster ? at_peer(p.mail.column, from) : p.mail.column;

            send(to + 2 * row, sum, p.step);
            send(to + 2 * row + 1, before, p.step);
        }
    }
}

/* The column w and the next column, as it was before this step. */
template <int ROWS>
static __device__ __forceinline__ void
receive_column(const struct resident &q, const struct resident_part &p, int i,
               scalar (&column)[2 * ROWS])
{
    const int t = this_thread();
    const auto from = [&](int n) {
        const int k = t + n / 2 * ROW_THREADS;

        return k > i && k < q.rows ? p.mail.column + 2 * k + n % 2 : NULL;
    };

    if (ROWS > 2) { /* to poll all messages would slow down those who write them: first poll one */
        scalar one[1];

        receive(one, p.step, [&](int) { return from(2 * ROWS - 2); });
    }
    receive(column, p.step, from);
}

/* ---- the last warp ---- */

/* The sum of a product over the warps. */
static __device__ __forceinline__ scalar
product_of(const struct resident &q, const struct resident_shared &s, int slot)
{
    scalar sum = 0;

#pragma unroll
    for (int warp = 0; warp < ROW_WARPS; warp++) {
        sum += s.products[warp * slots_of(q.places) + slot];
    }
    return sum;
}

/* The reflector of the column, y and r. */
static __device__ __forceinline__ void
make_row(const struct resident &q, const struct resident_shared &s, const struct resident_part &p,
         int i)
{
    const int lane = (int)threadIdx.x % WARP, left = p.places - p.place;
    scalar product = lane < left ? product_of(q, s, 1 + lane) : REAL(0);
    const struct reflector h = reflector_of(s.numbers->first, n_real(product_of(q, s, 0)));

#pragma unroll 1
    for (int k = lane; k < left; k += WARP) {
        const scalar first = n_conj(s.columns[(p.place + k) * q.rows + i]);
        const scalar y = n_mul(h.tau, n_fma(h.scale, product, first));

        s.yu[p.place + k].y = n_conj(y);
        s.row[p.place + k] = first - y;
        product = k + WARP < left ? product_of(q, s, 1 + k + WARP) : REAL(0);
    }
    if (lane == 0) {
        s.numbers->inverse = h.scale;
        if (p.block == 0) {
            p.d[i] = h.beta;
            p.tau_q[i] = h.tau;
            if (i + 1 == q.columns) {
                p.e[i] = 0;
                p.tau_p[i] = 0;
            }
        }
    }
}

static __device__ __forceinline__ void
send_numbers(const struct resident &q, const struct resident_shared &s,
             const struct resident_part &p, int i)
{
    const int lane = (int)threadIdx.x % WARP, turn = (int)(p.step & 1) * 2 * (q.blocks + 1);
    const bool next = p.place < p.places && own_column(q, p, p.place) == i + 1;
    real squares = 0;
    scalar product = 0;

#pragma unroll 1
    for (int m = p.place + lane; m < p.places; m += WARP) {
        const scalar r = s.row[m];

        squares = own_column(q, p, m) > i + 1 ? n_add_abs2(r, squares) : squares;
        product = n_fma(s.yu[m].y, r, product);
    }
    squares = warp_sum(squares);
    product = warp_sum(product);
    if (lane < (q.cluster ? q.blocks : 1)) {
        struct message *to = (q.cluster ? at_peer(p.mail.numbers, lane) : p.mail.numbers) + turn;

        send(to + 2 * p.block, squares, p.step);
        send(to + 2 * p.block + 1, product, p.step);
        if (next) {
            send(to + 2 * q.blocks, s.row[p.place], p.step);
            send(to + 2 * q.blocks + 1, s.yu[p.place].y, p.step);
        }
    }
}

/* The reflector of the row, and u. */
static __device__ __forceinline__ void
make_right(const struct resident &q, const struct resident_shared &s, const struct resident_part &p,
           int i)
{
    enum { EACH = 5 };
    const int lane = (int)threadIdx.x % WARP, turn = (int)(p.step & 1) * 2 * (q.blocks + 1);
    real squares = 0;
    scalar product = 0, first = 0, y = 0;
    struct reflector h;

#pragma unroll 1
    for (int block = lane; block - lane <= q.blocks; block += EACH * WARP) {
        const struct message *at = p.mail.numbers + turn + 2 * block;
        scalar x[2 * EACH];

        receive(x, p.step, [&](int n) {
            return block + n / 2 * WARP <= q.blocks ? at + n / 2 * 2 * WARP + n % 2 : NULL;
        });
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if (block + k * WARP == q.blocks) {
                first = x[2 * k];
                y = x[2 * k + 1];
            } else {
                squares += n_real(x[2 * k]);
                product += x[2 * k + 1];
            }
        }
    }
    first = __shfl_sync(0xffffffffu, first, q.blocks % WARP);
    y = __shfl_sync(0xffffffffu, y, q.blocks % WARP);
    squares = warp_sum(squares);
    product = warp_sum(product);
    h = reflector_of(first, squares);
#pragma unroll 1
    for (int m = p.place + lane; m < p.places; m += WARP) {
        const int l = own_column(q, p, m);
        const scalar u = l == i + 1 ? scalar(1) : n_mul(s.row[m], h.scale);

        s.yu[m].u = n_conj(u);
        if (l > i + 1) {
            p.w[l * q.r + i] = u;
        }
    }
    if (lane == 0) {
        s.numbers->h = h;
        s.numbers->along = n_mul(product - n_scale(h.beta, y), h.scale);
        s.numbers->y = y;
        if (p.block == 0) {
            p.e[i] = h.beta;
            p.tau_p[i] = h.tau;
        }
    }
}

#endif
