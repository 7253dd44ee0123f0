/*
 * tsvd._core: handles.  A call takes one and gives it back, so that the next call uses what it
 * caches.  Calls at the same time have handles of their own.  The places are atomic, without a
 * lock: a lock could be held by a thread that a forked child does not have.
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

tsvd_handle *
tsvdi_handle_idle(module_state *state, int device)
{
    for (int i = 0; i < DEVICE_HANDLES; i++) {
        _Atomic(tsvd_handle *) *place = place_of(state, device, i);
        tsvd_handle *handle = atomic_exchange(place, NULL), *none = NULL;

        if (handle != NULL && tsvd_handle_device(handle) == device) {
            return handle;
        }
        if (handle != NULL && !atomic_compare_exchange_strong(place, &none, handle)) {
            tsvd_destroy(handle); /* another handle has taken the place meanwhile */
        }
    }
    return NULL;
}

/* Without the GIL one thread could read the tuple while another frees it. */
#ifdef Py_BEGIN_CRITICAL_SECTION
#define BEGIN_ALONE(object) Py_BEGIN_CRITICAL_SECTION(object)
#define END_ALONE() Py_END_CRITICAL_SECTION()
#else
#define BEGIN_ALONE(object) {
#define END_ALONE() }
#endif

/* A new reference to the directories, or NULL. */
static PyObject *
directories_now(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    PyObject *now;

    BEGIN_ALONE(module);
    now = Py_XNewRef(state->directories);
    END_ALONE();
    return now;
}

void
tsvdi_handle_directories(PyObject *module, PyObject *directories)
{
    module_state *state = PyModule_GetState(module);
    PyObject *before;

    BEGIN_ALONE(module);
    before = state->directories;
    state->directories = directories;
    END_ALONE();
    Py_XDECREF(before);
}

int
tsvdi_handle_config(PyObject *module, tsvd_config *config, PyObject **keep)
{
    PyObject *directories = directories_now(module);
    const Py_ssize_t count = directories == NULL ? 0 : PyTuple_Size(directories);
    PyObject *list = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(char *));
    const char **directory;

    *keep = NULL;
    if (list == NULL) {
        Py_XDECREF(directories);
        return -1;
    }
    directory = (const char **)(void *)PyBytes_AsString(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        directory[i] = PyBytes_AsString(PyTuple_GetItem(directories, i));
    }
    tsvd_config_init(config, sizeof *config);
    config->library_paths = directory;
    config->library_path_count = count;
    *keep = directories == NULL ? list : Py_BuildValue("NN", list, directories);
    return *keep == NULL ? -1 : 0;
}

tsvd_handle *
tsvdi_handle_take(PyObject *module, int device)
{
    tsvd_handle *handle = tsvdi_handle_idle(PyModule_GetState(module), device);
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
tsvdi_handle_keep(module_state *state, tsvd_handle *handle)
{
    const int device = tsvd_handle_device(handle);

    if (device != TSVD_DEVICE_CPU) {
        (void)tsvd_set_stream(handle, NULL, NULL); /* the caller may end its stream now */
    }
    for (int i = 0; i < DEVICE_HANDLES && handle != NULL; i++) {
        tsvd_handle *none = NULL;

        if (atomic_compare_exchange_strong(place_of(state, device, i), &none, handle)) {
            handle = NULL;
        }
    }
    tsvd_destroy(handle);
}

void
tsvdi_handle_give(PyObject *module, tsvd_handle *handle)
{
    tsvdi_handle_keep(PyModule_GetState(module), handle);
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
