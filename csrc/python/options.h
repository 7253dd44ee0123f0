/*
 * tsvd._core: the options of a call, which Python gives in one object.
 */
#ifndef TSVDI_MODULE_OPTIONS_H
#define TSVDI_MODULE_OPTIONS_H

#include "python/module.h"

/* The options of one call, which never change.  The table in options.c says what each is. */
struct options {
    char compute_uv, full_output, full, lower, refine, check_finite, on_device, wait;
    int method, threads, split, fallback, stages;
    double eps;
    long long first, count, whole_first, whole_count, whole_matrices, max_sweeps, blocks,
        block_threads;
    void *stream;
    PyObject *result;                      /* a subclass of tuple */
    PyObject *progress, *out, *keep, *sum; /* or None */
};

/* Those of an argument of the type Options, for as long as it lives; NULL with an exception set if
   it is something else. */
const struct options *tsvdi_options_of(PyObject *module, PyObject *argument);

/* What the core takes of them.  *part: theirs, which must live as long. */
tsvd_options tsvdi_options_core(const struct options *options, tsvd_part *part);

#endif
