/*
 * W shared out over the devices of a team (runtime/team.h), by its columns.
 *
 * The reduction works on fewer and fewer of the last columns.  So that all members always have
 * equally many, they take turns of SHARED_COLUMNS columns; the last turn has the rest as well.  A
 * member has its columns side by side, in their order.  A team of one has them all.
 */
#ifndef TSVDI_CUDA_MATRIX_SHARES_H
#define TSVDI_CUDA_MATRIX_SHARES_H

#include "kernels.h"
#include "runtime/team.h"

enum { SHARED_COLUMNS = 256 };

struct column_shares {
    int64_t columns; /* of W */
    int members, self;
};

static __host__ __device__ __forceinline__ int64_t
turn_of(const struct column_shares &s, int64_t column)
{
    const int64_t turns = s.columns / SHARED_COLUMNS, turn = column / SHARED_COLUMNS;

    return turn < turns ? turn : turns > 0 ? turns - 1 : 0;
}

/* The column after the turn of this one. */
static __host__ __device__ __forceinline__ int64_t
turn_end(const struct column_shares &s, int64_t column)
{
    const int64_t end = (turn_of(s, column) + 1) * SHARED_COLUMNS;

    return end + SHARED_COLUMNS <= s.columns ? end : s.columns;
}

/* The member that has a column. */
static __host__ __device__ __forceinline__ int
member_of(const struct column_shares &s, int64_t column)
{
    return (int)(turn_of(s, column) % s.members);
}

/* How many of a member's columns come before this one of W, or before its end. */
static __host__ __device__ __forceinline__ int64_t
columns_before(const struct column_shares &s, int member, int64_t column)
{
    const int64_t turn = turn_of(s, column);
    const int64_t own = (turn + s.members - 1 - member) / s.members * SHARED_COLUMNS;

    return turn % s.members == member ? own + column - turn * SHARED_COLUMNS : own;
}

/* The column of W that is a member's column `own`. */
static __host__ __device__ __forceinline__ int64_t
column_at(const struct column_shares &s, int member, int64_t own)
{
    const int64_t turns = s.columns / SHARED_COLUMNS;
    const int64_t most = (turns + s.members - 1 - member) / s.members; /* turns of the member */
    const int64_t turn = own / SHARED_COLUMNS < most ? own / SHARED_COLUMNS : most - 1;

    return turn <= 0
               ? own + member * (int64_t)SHARED_COLUMNS
               : own + turn * (s.members - 1) * SHARED_COLUMNS + member * (int64_t)SHARED_COLUMNS;
}

#endif
