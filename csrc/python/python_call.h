/*
 * tsvd._core: what calls that compute share.  A call takes its options and arrays, asks the core
 * for a plan, takes the arrays for results, computes without the GIL, and gives the results back.
 */
#ifndef TSVDI_MODULE_CALL_H
#define TSVDI_MODULE_CALL_H

#include "python/arrays.h"
#include "python/options.h"

struct call;

/* The functions of the core that a call uses. */
struct call_kind {
    const char *name; /* of Python's function, for errors */
    const struct form *form;
    /* prepares the call, and fills *plan, also on TSVD_ERR_LIBRARY; or makes the plan alone */
    tsvd_status (*plan)(struct call *call, tsvd_plan *plan, tsvd_error *error);
    tsvd_status (*compute)(struct call *call, tsvd_error *error);
};

struct call {
    const struct call_kind *kind;
    PyObject *module;
    PyObject *input[INPUTS_MOST]; /* [kind->form->inputs], borrowed */
    int device;                   /* where to compute; -1: the CPU */
    const struct options *asked;  /* all options */
    tsvd_options options;         /* those of the core */
    tsvd_part part;               /* their part, if they have one */
    struct arrays arrays;
    tsvd_handle *handle;       /* NULL before it is taken */
    tsvd_prepared *prepared;   /* NULL before plan(), and where it makes the plan alone */
    tsvd_reduction *reduction; /* what is decomposed; NULL: the input itself */
    tsvd_info info;            /* filled by compute() */
    tsvd_inverse_info inverse; /* filled by compute() of inverses */
};

/* The arrays of the input, which Python gives in a tuple that keeps them.  Returns -1, with an
   exception set, if it is something else. */
int tsvdi_call_input(const struct form *form, PyObject *arrays, PyObject **input);

/* Begins a call with the arguments of Python: the input, Options and the device.  Returns -1, as
   all functions below, with an exception set on failure; tsvdi_call_end() is due in any case. */
int tsvdi_call_begin(struct call *call, PyObject *module, const struct call_kind *kind,
                     PyObject *const *args, Py_ssize_t nargs);

/* The same where the input is in bidiagonal form already. */
int tsvdi_call_begin_reduced(struct call *call, PyObject *module, const struct call_kind *kind,
                             PyObject *options);

/* Takes the input, and a handle of the device. */
int tsvdi_call_take(struct call *call);

/* The wanted values, for the shape that call->arrays has, and whether vectors are wanted in
   full. */
int tsvdi_call_range(struct call *call);

/* The rest: (L, s, R) or s, and with full_output a pair of that and a dict; NULL on failure. */
PyObject *tsvdi_call_run(struct call *call);

/* Where the results lie. */
static inline tsvd_space
tsvdi_call_space(const struct call *call)
{
    return call->asked->on_device ? TSVD_CUDA : TSVD_HOST;
}

/* Which vectors are wanted, as the core names it. */
static inline int
tsvdi_call_vectors(const struct call *call)
{
    return !call->asked->compute_uv ? 0 : call->arrays.full ? 2 : 1;
}

/* Releases what is taken. */
void tsvdi_call_end(struct call *call);

/* Takes a handle of a device and sets its stream and its threads; NULL on failure. */
tsvd_handle *tsvdi_call_handle(PyObject *module, int device, void *stream, int threads);

/* Takes a handle of a device as above, and arrays there.  The handle must come first, since the
   arrays are ordered before its stream; but errors of the arguments are raised before its own. */
int tsvdi_call_take_on_device(struct arrays *arrays, PyObject *const *input, int device,
                              void *stream, int threads, tsvd_handle **handle);

/* Makes the plan of the call.  A handle gets SciPy's BLAS before the first call that uses one.  If
   that cannot be imported, calls that do not need a BLAS go on without. */
int tsvdi_call_plan(struct call *call, tsvd_plan *plan);

/* Work of the core without the GIL: work(subject).  It looks at signals, and calls progress, when
   the core asks options->check.  wait: until the handle's stream is done. */
tsvd_status tsvdi_work(PyObject *module, tsvd_handle *handle, tsvd_options *options,
                       PyObject *progress, bool wait,
                       tsvd_status (*work)(void *subject, tsvd_error *error), void *subject,
                       tsvd_error *error);

/* Calls progress, or None, with the share done. */
int tsvdi_report(PyObject *progress, double done);

#endif
