/*
 * The BLAS that comes with SciPy, from the capsules that scipy.linalg.cython_blas exports.
 */
#include "python/module.h"

#include <stdlib.h>
#include <string.h>

/* The function `name` from its capsule, whose own name is the C signature.  *integer_bytes: the
   size of its integers, of which the first is argument 2.  Returns NULL, with an exception set, on
   failure. */
static void *
function_of(PyObject *capsules, const char *name, int *integer_bytes)
{
    PyObject *capsule = PyMapping_GetItemString(capsules, name);
    const char *signature = capsule == NULL ? NULL : PyCapsule_GetName(capsule);
    void *function = signature == NULL ? NULL : PyCapsule_GetPointer(capsule, signature);

    if (function != NULL) {
        /* "void (char *, char *, int *, ..." */
        const char *type = strchr(signature, '(');

        for (int i = 0; i < 2 && type != NULL; i++) {
            type = strchr(type + 1, ',');
        }
        type = type == NULL ? "" : type + 1 + strspn(type + 1, " ");
        *integer_bytes = strncmp(type, "int *", 5) == 0 ? (int)sizeof(int) : 8;
        if (*integer_bytes == 8 && strncmp(type, "int64_t", 7) != 0 &&
            strncmp(type, "long", 4) != 0 && strncmp(type, "npy_int64", 9) != 0) {
            PyErr_Format(PyExc_ImportError,
                         "cannot tell the integer type of %s in SciPy's BLAS: %s", name, signature);
            function = NULL;
        }
    }
    Py_XDECREF(capsule);
    return function;
}

/* Finds all functions; returns -1, with an exception set, on failure. */
static int
find_functions(PyObject *capsules, tsvd_blas *blas)
{
    static const char *const names[] = {"dgemm", "sgemm", "zgemm", "cgemm"};
    enum { COUNT = sizeof names / sizeof *names };
    void *found[COUNT];
    int bytes = 0, all = 0;

    for (int i = 0; i < COUNT; i++) {
        found[i] = function_of(capsules, names[i], &bytes);
        if (found[i] == NULL) {
            return -1;
        }
        all |= bytes;
    }
    if (all != bytes) {
        PyErr_SetString(PyExc_ImportError, "SciPy's BLAS has integers of two sizes");
        return -1;
    }
    memset(blas, 0, sizeof *blas);
    blas->size = sizeof *blas;
    if (bytes == 4) {
        memcpy(&blas->dgemm32, &found[0], sizeof found[0]);
        memcpy(&blas->sgemm32, &found[1], sizeof found[1]);
        memcpy(&blas->zgemm32, &found[2], sizeof found[2]);
        memcpy(&blas->cgemm32, &found[3], sizeof found[3]);
    } else {
        memcpy(&blas->dgemm64, &found[0], sizeof found[0]);
        memcpy(&blas->sgemm64, &found[1], sizeof found[1]);
        memcpy(&blas->zgemm64, &found[2], sizeof found[2]);
        memcpy(&blas->cgemm64, &found[3], sizeof found[3]);
    }
    return 0;
}

bool
tsvdi_give_scipy_blas(module_state *state, tsvd_handle *handle)
{
    const tsvd_blas *blas = atomic_load(&state->blas);

    return blas != NULL && tsvd_set_blas(handle, blas, NULL) == TSVD_OK;
}

/* Keeps the functions for all threads, unless another thread was quicker: it found the same. */
static int
keep(module_state *state, const tsvd_blas *found)
{
    tsvd_blas *none = NULL, *blas = malloc(sizeof *blas);

    if (blas == NULL) {
        PyErr_Format(PyExc_MemoryError, "%zu bytes for the functions of SciPy's BLAS wanted",
                     sizeof *blas);
        return -1;
    }
    *blas = *found;
    if (!atomic_compare_exchange_strong(&state->blas, &none, blas)) {
        free(blas);
    }
    return 0;
}

int
tsvdi_load_scipy_blas(module_state *state, tsvd_handle *handle)
{
    PyObject *libraries = PyImport_ImportModule("tsvd._libraries");
    PyObject *capsules =
        libraries == NULL ? NULL : PyObject_CallMethod(libraries, "scipy_blas", NULL);
    tsvd_blas blas;
    int ret = -1;

    if (capsules != NULL && find_functions(capsules, &blas) == 0 && keep(state, &blas) == 0) {
        ret = tsvdi_give_scipy_blas(state, handle) ? 0 : -1;
    }
    Py_XDECREF(capsules);
    Py_XDECREF(libraries);
    return ret;
}
