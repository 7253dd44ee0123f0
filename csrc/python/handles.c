/*
 * tsvd._core: handles.  A call takes one and gives it back, so that the next call uses what it
 * caches.  Calls at the same time have handles of their own.  The places are atomic and there is
 * no lock: so no thread that a fork leaves behind can hold one.
 */
#include "python/module.h"

/* Place i < DEVICE_HANDLES of a device.  The CPU has its own; neighbouring CUDA devices share some,
   but each begins at another one. */
static _Atomic(tsvd_handle *) *
place_of(module_state *state, int device, int i)
{
    return &state->idle[device == TSVD_DEVICE_CPU ? i
                                                  : DEVICE_HANDLES + (device + i) % CUDA_HANDLES];
}

static tsvd_handle *
take_idle(module_state *state, int device)
{
    for (int i = 0; i < DEVICE_HANDLES; i++) {
        _Atomic(tsvd_handle *) *place = place_of(state, device, i);
        tsvd_handle *handle = atomic_exchange(place, NULL), *none = NULL;

        if (handle != NULL && tsvd_handle_device(handle) == device) {
            return handle;
        }
        if (handle != NULL && !atomic_compare_exchange_strong(place, &none, handle)) {
            tsvd_destroy(handle); /* another has taken the place meanwhile */
        }
    }
    return NULL;
}

int
tsvdi_handle_config(PyObject *module, tsvd_config *config, PyObject **keep)
{
    module_state *state = PyModule_GetState(module);
    const Py_ssize_t count = state->directories == NULL ? 0 : PyTuple_GET_SIZE(state->directories);
    PyObject *list = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(char *));
    const char **directory;

    *keep = NULL;
    if (list == NULL) {
        return -1;
    }
    directory = (const char **)(void *)PyBytes_AS_STRING(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        directory[i] = PyBytes_AS_STRING(PyTuple_GET_ITEM(state->directories, i));
    }
    *config = tsvd_config_default();
    config->library_paths = directory;
    config->library_path_count = count;
    *keep = count == 0 ? list : Py_BuildValue("NO", list, state->directories);
    return *keep == NULL ? -1 : 0;
}

tsvd_handle *
tsvdi_handle_take(PyObject *module, int device)
{
    tsvd_handle *handle = take_idle(PyModule_GetState(module), device);
    PyObject *keep;
    tsvd_config config;
    tsvd_error error;
    tsvd_status status;

    if (handle != NULL) {
        return handle;
    }
    if (tsvdi_handle_config(module, &config, &keep) < 0) {
        return NULL;
    }
    config.device = device;
    Py_BEGIN_ALLOW_THREADS
    status = tsvd_create(&config, &handle, &error);
    Py_END_ALLOW_THREADS
    Py_DECREF(keep);
    if (status != TSVD_OK) {
        tsvdi_raise(module, status, &error);
    }
    return handle;
}

void
tsvdi_handle_give(PyObject *module, tsvd_handle *handle)
{
    module_state *state = PyModule_GetState(module);
    const int device = tsvd_handle_device(handle);

    if (device != TSVD_DEVICE_CPU) {
        (void)tsvd_set_stream(handle, NULL, NULL); /* the call's may end before the next call */
    }
    for (int i = 0; i < DEVICE_HANDLES && handle != NULL; i++) {
        tsvd_handle *none = NULL;

        if (atomic_compare_exchange_strong(place_of(state, device, i), &none, handle)) {
            handle = NULL;
        }
    }
    tsvd_destroy(handle);
}

int
tsvdi_handles_drop(module_state *state)
{
    int dropped = 0;

    for (int i = 0; i < HANDLES_KEPT; i++) {
        tsvd_handle *handle = atomic_exchange(&state->idle[i], NULL);

        dropped += tsvd_handle_device(handle) != TSVD_DEVICE_CPU;
        tsvd_destroy(handle);
    }
    return dropped;
}
