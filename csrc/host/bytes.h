/*
 * Sums of bytes that never wrap: what is too large stays BYTES_TOO_MANY.
 */
#ifndef TSVDI_BYTES_H
#define TSVDI_BYTES_H

#include <stdint.h>

#define BYTES_TOO_MANY UINT64_MAX

/* Workspace on the host and on the device. */
struct bytes {
    uint64_t host, device;
};

static inline uint64_t
bytes_add(uint64_t a, uint64_t b)
{
    return a > BYTES_TOO_MANY - b ? BYTES_TOO_MANY : a + b;
}

/* Bytes of `count` things of `size` bytes each. */
static inline uint64_t
bytes_of(int64_t count, uint64_t size)
{
    return size != 0 && (uint64_t)count > BYTES_TOO_MANY / size ? BYTES_TOO_MANY
                                                                : (uint64_t)count * size;
}

/* Workspace of a and b at the same time. */
static inline struct bytes
bytes_sum(struct bytes a, struct bytes b)
{
    struct bytes sum;

    sum.host = bytes_add(a.host, b.host);
    sum.device = bytes_add(a.device, b.device);
    return sum;
}

/* Workspace of a and b one after the other. */
static inline struct bytes
bytes_most(struct bytes a, struct bytes b)
{
    struct bytes most;

    most.host = a.host > b.host ? a.host : b.host;
    most.device = a.device > b.device ? a.device : b.device;
    return most;
}

#endif
