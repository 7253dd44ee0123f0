/*
 * tsvd._core: the Python extension module.  Arrays in, arrays out,
 * one call of the C core in between, no arithmetic.  Options arrive checked from
 * python/tsvd/_options.py.
 */
#include "python/module.h"

#include <math.h>
#include <stdlib.h>

#include "python/exchange.h"

PyDoc_STRVAR(config_doc, "config()\n--\n\nWhat this build can do, as a dict.");

static PyObject *
config(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    int runtime = 0, driver = 0;

    tsvd_cuda_versions(&runtime, &driver);
    /* clang-format off */
    return Py_BuildValue("{s:s,s:i,s:K,s:O,s:i,s:i,s:s}",
                         "cpu_kernels", tsvd_cpu_kernels(),
                         "threads", tsvd_host_threads(),
                         "memory_free", (unsigned long long)tsvd_host_memory_available(),
                         "cuda_compiled", tsvd_cuda_compiled() ? Py_True : Py_False,
                         "cuda_runtime", runtime,
                         "cuda_driver", driver,
                         "cuda_architectures", tsvd_cuda_architectures());
    /* clang-format on */
}

PyDoc_STRVAR(tuning_doc, "tuning()\n--\n\nThe tuning constants of this build, as a dict.");

static PyObject *
tuning(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyObject *dict = PyDict_New();
    int ret = dict == NULL ? -1 : 0;

    for (const struct tuning_constant *c = tsvdi_tuning_constants; c->name != NULL && ret == 0;
         c++) {
        PyObject *value = c->value == floor(c->value) ? PyLong_FromDouble(c->value)
                                                      : PyFloat_FromDouble(c->value);

        ret = value == NULL ? -1 : PyDict_SetItemString(dict, c->name, value);
        Py_XDECREF(value);
    }
    if (ret < 0) {
        Py_CLEAR(dict);
    }
    return dict;
}

static PyMethodDef methods[] = {
    {"config", config, METH_NOARGS, config_doc},
    {"tuning", tuning, METH_NOARGS, tuning_doc},
    {NULL, NULL, 0, NULL},
};

/* METHODS: the names of the methods and the numbers that svd() takes for them. */
static int
add_methods(PyObject *module)
{
    PyObject *dict = PyDict_New();
    int ret = dict == NULL ? -1 : 0;

    for (int i = 0; i < TSVD_METHOD_COUNT && ret == 0; i++) {
        PyObject *number = PyLong_FromLong(i);

        ret = number == NULL ? -1
                             : PyDict_SetItemString(dict, tsvd_method_name((tsvd_method)i), number);
        Py_XDECREF(number);
    }
    if (ret == 0) {
        ret = PyModule_AddObjectRef(module, "METHODS", dict);
    }
    Py_XDECREF(dict);
    return ret;
}

static int
module_exec(PyObject *module)
{
    const tsvd_cuda_crossover vectors = tsvd_cuda_crossover_of(NULL, TSVD_FLOAT64, 1);
    const tsvd_cuda_crossover values = tsvd_cuda_crossover_of(NULL, TSVD_FLOAT64, 0);
    module_state *state = PyModule_GetState(module);
    PyObject *linalg;

    if (tsvdi_arrays_import() < 0 || PyModule_AddFunctions(module, tsvdi_options_methods) < 0 ||
        PyModule_AddFunctions(module, tsvdi_svd_methods) < 0 ||
        PyModule_AddFunctions(module, tsvdi_dense_methods) < 0 ||
        PyModule_AddFunctions(module, tsvdi_inverse_methods) < 0 ||
        PyModule_AddFunctions(module, tsvdi_reduction_methods) < 0 ||
        PyModule_AddFunctions(module, tsvdi_cuda_methods) < 0 ||
        PyModule_AddFunctions(module, tsvdi_exchange_methods) < 0 ||
        PyModule_AddFunctions(module, tsvdi_results_methods) < 0 ||
        PyModule_AddFunctions(module, tsvdi_xla_methods) < 0) {
        return -1;
    }
    state->Borrowed = tsvdi_borrowed_type(module);
    state->DeviceArray = state->Borrowed == NULL ? NULL : tsvdi_device_array_type(module);
    state->Reduction = state->DeviceArray == NULL ? NULL : tsvdi_reduction_type(module);
    state->Options = state->Reduction == NULL ? NULL : tsvdi_options_type(module);
    state->option_names = state->Options == NULL ? NULL : tsvdi_options_names();
    if (state->option_names == NULL ||
        PyModule_AddObjectRef(module, "Options", state->Options) < 0 ||
        PyModule_AddObjectRef(module, "DeviceArray", state->DeviceArray) < 0 ||
        PyModule_AddObjectRef(module, "Reduction", state->Reduction) < 0) {
        return -1;
    }
    linalg = PyImport_ImportModule("numpy.linalg");
    if (linalg == NULL) {
        return -1;
    }
    state->LinAlgError = PyObject_GetAttrString(linalg, "LinAlgError");
    Py_DECREF(linalg);
    state->Stopped = PyErr_NewException("tsvd._core.Stopped", NULL, NULL);
    if (state->LinAlgError == NULL || state->Stopped == NULL ||
        PyModule_AddObjectRef(module, "Stopped", state->Stopped) < 0 ||
        PyModule_AddStringConstant(module, "__version__", TSVD_PYTHON_VERSION) < 0 ||
        PyModule_AddIntConstant(module, "CUDA_ORDER", vectors.order) < 0 ||
        PyModule_AddIntConstant(module, "CUDA_VALUES_ORDER", values.order) < 0 ||
        PyModule_AddIntConstant(module, "CUDA_BATCH_VALUES", values.batch_values) < 0) {
        return -1;
    }
    return add_methods(module);
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = PyModule_GetState(module);

    Py_VISIT(state->LinAlgError);
    Py_VISIT(state->Stopped);
    Py_VISIT(state->Borrowed);
    Py_VISIT(state->DeviceArray);
    Py_VISIT(state->Reduction);
    Py_VISIT(state->Options);
    Py_VISIT(state->option_names);
    Py_VISIT(state->directories);
    return 0;
}

static int
module_clear(PyObject *module)
{
    module_state *state = PyModule_GetState(module);

    Py_CLEAR(state->LinAlgError);
    Py_CLEAR(state->Stopped);
    Py_CLEAR(state->Borrowed);
    Py_CLEAR(state->DeviceArray);
    Py_CLEAR(state->Reduction);
    Py_CLEAR(state->Options);
    Py_CLEAR(state->option_names);
    Py_CLEAR(state->directories);
    return 0;
}

static void
module_free(void *module)
{
    module_state *state = PyModule_GetState(module);

    tsvdi_handles_drop(state);
    free(atomic_exchange(&state->blas, NULL));
    module_clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)module_exec},
/* Only later stable ABIs than that of a wheel for 3.11 have these two.  Without the first, NumPy's
   import still refuses in a second interpreter. */
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED}, /* as NumPy */
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tsvd._core",
    .m_doc = "The C core of tsvd; use the functions of the package tsvd.",
    .m_size = sizeof(module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
