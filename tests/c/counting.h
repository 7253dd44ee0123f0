/*
 * An allocator of host memory that counts what it has given, and can refuse.
 */
#ifndef TSVD_TESTS_COUNTING_H
#define TSVD_TESTS_COUNTING_H

#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"
#include "defaults.h"
#include "tsvd/tsvd.h"

struct counting {
    atomic_llong bytes, peak; /* given and not yet released; the most at once */
    atomic_llong calls;       /* of allocate() */
    long long refuse;         /* the number of the call that gets nothing; 0: none */
    int others;               /* 1: calls after it get memory; 0: none does */
    atomic_int refused;       /* 1: a call got nothing */
};

/* A block is preceded by a cache line that holds its size. */
enum { COUNTING_LINE = 64 };

static void *
counting_allocate(void *arg, size_t bytes, void *stream)
{
    struct counting *c = arg;
    const size_t whole = (bytes + 2 * COUNTING_LINE - 1) / COUNTING_LINE * COUNTING_LINE;
    long long now, peak;
    const long long number = atomic_fetch_add(&c->calls, 1) + 1;
    char *p;

    (void)stream;
    if (c->refuse > 0 && (c->others ? number == c->refuse : number >= c->refuse)) {
        atomic_store(&c->refused, 1);
        return NULL;
    }
    p = aligned_alloc(COUNTING_LINE, whole);
    if (p == NULL) {
        return NULL;
    }
    *(size_t *)(void *)p = bytes;
    now = atomic_fetch_add(&c->bytes, (long long)bytes) + (long long)bytes;
    peak = atomic_load(&c->peak);
    while (now > peak && !atomic_compare_exchange_weak(&c->peak, &peak, now)) {
    }
    return p + COUNTING_LINE;
}

static void
counting_release(void *arg, void *p, void *stream)
{
    struct counting *c = arg;
    char *block = (char *)p - COUNTING_LINE;

    (void)stream;
    atomic_fetch_sub(&c->bytes, (long long)*(size_t *)(void *)block);
    free(block);
}

static tsvd_allocator
counting_allocator(struct counting *c)
{
    const tsvd_allocator allocator = {counting_allocate, counting_release, c};

    return allocator;
}

/* A handle that takes its memory from `c`. */
UNUSED static tsvd_handle *
counting_handle(struct counting *c, int threads)
{
    const tsvd_allocator allocator = counting_allocator(c);
    tsvd_config config = default_config();
    tsvd_handle *handle = NULL;
    tsvd_error error;

    config.threads = threads;
    config.host_allocator = &allocator;
    CHECK(tsvd_create(&config, &handle, &error) == TSVD_OK, "%s", error.text);
    return handle;
}

#endif
