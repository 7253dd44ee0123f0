/*
 * The BLAS that comes with SciPy, from the capsules that scipy.linalg.cython_blas exports.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "python/scipy_blas.h"
#include "tsvd/tsvd.h"

/* The function in a capsule whose name is its C signature; *integer_bytes is that of its integers.
   NULL with an exception set on failure. */
static void *
function_of(PyObject *capsules, const char *name, int *integer_bytes)
{
    PyObject *capsule = PyMapping_GetItemString(capsules, name);
    const char *signature = capsule == NULL ? NULL : PyCapsule_GetName(capsule);
    void *function = signature == NULL ? NULL : PyCapsule_GetPointer(capsule, signature);

    if (function != NULL) {
        /* after the two characters come three orders: "char *, char *, int *, ..." */
        const char *type = strchr(signature, ',');

        type = type == NULL ? NULL : strchr(type + 1, ',');
        type = type == NULL ? "" : type + 1 + strspn(type + 1, " ");
        *integer_bytes = strncmp(type, "int *", 5) == 0 ? (int)sizeof(int) : 8;
        if (*integer_bytes == 8 && strncmp(type, "int64_t", 7) != 0 &&
            strncmp(type, "long", 4) != 0 && strncmp(type, "npy_int64", 9) != 0) {
            PyErr_Format(PyExc_ImportError,
                         "cannot tell the integer type of %s in scipy.linalg.cython_blas: %s", name,
                         signature);
            function = NULL;
        }
    }
    Py_XDECREF(capsule);
    return function;
}

int
tsvdi_load_scipy_blas(void)
{
    static atomic_bool loaded; /* a second load at the same time finds the same */
    PyObject *module, *capsules = NULL;
    tsvd_blas blas = {NULL, NULL, 0};
    int ret = -1;

    if (loaded) {
        return 0;
    }
    module = PyImport_ImportModule("scipy.linalg.cython_blas");
    capsules = module == NULL ? NULL : PyObject_GetAttrString(module, "__pyx_capi__");
    if (capsules != NULL) {
        blas.dgemm = function_of(capsules, "dgemm", &blas.integer_bytes);
        blas.sgemm =
            blas.dgemm == NULL ? NULL : function_of(capsules, "sgemm", &blas.integer_bytes);
    }
    if (blas.sgemm != NULL) {
        tsvd_set_blas(&blas);
        loaded = true;
        ret = 0;
    }
    Py_XDECREF(capsules);
    Py_XDECREF(module);
    return ret;
}
