/*
 * The floating-point environment of a thread: how it rounds, whether it flushes small numbers to
 * zero, which exceptions trap and which have occurred.  An application may have changed it.  The
 * library computes in the default environment, so that the bits of its results depend on none of
 * this, and gives the caller's back.
 */
#ifndef TSVDI_ENVIRONMENT_H
#define TSVDI_ENVIRONMENT_H

#include <fenv.h>

struct host_environment {
#ifdef __x86_64__
    unsigned control; /* of SSE and AVX; the library never uses the x87 unit, which costs more */
#else
    fenv_t all;
#endif
};

/* Makes the default environment the thread's own.  *before: what it was. */
void tsvdi_environment_enter(struct host_environment *before);

/* The same, but results and operands below the smallest normal number count as zero where that is
   faster: arithmetic with such numbers takes a hundred times as long.  Only for work in which they
   change no digit of a result. */
void tsvdi_environment_enter_flushing(struct host_environment *before);

/* Makes an environment the thread's own again. */
void tsvdi_environment_leave(const struct host_environment *before);

#endif
