/*
 * tsvd._core: options(), and Options: what is asked of a call.  Python has checked the values.
 */
#include "python/options.h"

#include <stddef.h>
#include <structmember.h>

typedef struct options_object {
    PyObject_HEAD
    struct options fields;
} options_object;

/* ---- the fields ---- */

#define FIELD(name) offsetof(options_object, fields.name), READONLY

/* T_ULONGLONG is an address here.  _core.pyi has the types for Python. */
static PyMemberDef members[] = {
    {"compute_uv", T_BOOL, FIELD(compute_uv), "whether vectors are wanted"},
    {"full_output", T_BOOL, FIELD(full_output),
     "whether the result is a pair, the second of which is a dict"},
    {"full", T_BOOL, FIELD(full), "vectors of both sides are square, if all values are wanted"},
    {"result", T_OBJECT, FIELD(result), "the type of (L, s, R), a subclass of tuple"},
    {"lower", T_BOOL, FIELD(lower), "bidiagonal matrices: e is the sub-diagonal"},
    {"refine", T_BOOL, FIELD(refine), "inverses: one step of Newton's iteration"},
    {"method", T_INT, FIELD(method), "a value of METHODS"},
    {"eps", T_DOUBLE, FIELD(eps), "how far matrices may be perturbed; negative: full accuracy"},
    {"max_sweeps", T_LONGLONG, FIELD(max_sweeps), "0: the method's own bound"},
    {"check_finite", T_BOOL, FIELD(check_finite), "whether NaN and infinity are errors"},
    {"progress", T_OBJECT, FIELD(progress), "called with the share done, or None"},
    {"threads", T_INT, FIELD(threads), "host threads; 0: the default, as for the next two"},
    {"blocks", T_LONGLONG, FIELD(blocks), "givens: blocks that the matrix is cut into"},
    {"block_threads", T_LONGLONG, FIELD(block_threads), "givens: sweeps that run at once"},
    {"split", T_INT, FIELD(split), "givens: 0 keeps the matrix whole"},
    {"fallback", T_INT, FIELD(fallback), "twisted: 0 makes an error of values that it refuses"},
    {"stages", T_INT, FIELD(stages), "dense: 1 or 2 stages of the reduction; 0: chosen"},
    {"out", T_OBJECT, FIELD(out), "a tuple of arrays for the results, or None"},
    {"on_device", T_BOOL, FIELD(on_device),
     "all arrays lie on the device, and new results are DeviceArrays"},
    {"stream", T_ULONGLONG, FIELD(stream), "the cudaStream_t to work on; 0: the handle's own"},
    {"keep", T_OBJECT, FIELD(keep), "what the results keep alive, or None"},
    {"wait", T_BOOL, FIELD(wait), "whether to wait until the results are there"},
    {"first", T_LONGLONG, FIELD(first), "the index of the first value that is wanted"},
    {"count", T_LONGLONG, FIELD(count), "how many are wanted from there on; -1: all the rest"},
    {"whole_first", T_LONGLONG, FIELD(whole_first), "the same of a call that this is a part of,"},
    {"whole_count", T_LONGLONG, FIELD(whole_count), "which others make with it; -1: of none"},
    {"whole_matrices", T_LONGLONG, FIELD(whole_matrices), "and the matrices of its batch"},
    {"sum", T_OBJECT, FIELD(sum),
     "called with a memoryview of bytes: adds doubles up over all parts, in place; or None"},
    {NULL, 0, 0, 0, NULL},
};

#undef FIELD

enum { FIELDS = sizeof members / sizeof members[0] - 1 };

static struct options
defaults(void)
{
    const tsvd_options core = tsvdi_default_options();

    return (struct options){
        .lower = core.lower != 0,
        .check_finite = core.check_finite != 0,
        .method = (int)core.method,
        .split = core.givens_split,
        .stages = core.dense_stages,
        .fallback = core.fallback,
        .eps = core.eps,
        .first = core.first,
        .count = core.count,
        .whole_count = -1,
        .whole_matrices = 1,
        .max_sweeps = core.max_sweeps,
        .blocks = core.givens_blocks,
        .block_threads = core.givens_threads,
        .result = (PyObject *)&PyTuple_Type,
        .progress = Py_None,
        .out = Py_None,
        .keep = Py_None,
        .sum = Py_None,
    };
}

static int
set_field(options_object *self, const PyMemberDef *field, PyObject *value)
{
    char *place = (char *)self + field->offset;
    int truth;

    if (field->type == T_OBJECT) {
        tsvdi_set_reference((PyObject **)place, Py_NewRef(value));
        return 0;
    }
    if (field->type == T_BOOL) {
        truth = PyObject_IsTrue(value);
        *place = truth > 0;
        return truth < 0 ? -1 : 0;
    }
    if (value == Py_None) {
        return 0;
    }
    switch (field->type) {
    case T_INT:
        *(int *)place = (int)PyLong_AsLong(value);
        break;
    case T_LONGLONG:
        *(long long *)place = PyLong_AsLongLong(value);
        break;
    case T_DOUBLE:
        *(double *)place = PyFloat_AsDouble(value);
        break;
    default:
        *(void **)place = PyLong_AsVoidPtr(value);
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* The field of a name; NULL with an exception set if there is none.  next: where it is looked for
   first, as callers name fields in the order of the table. */
static const PyMemberDef *
find_field(PyObject *names, PyObject *name, Py_ssize_t *next)
{
    for (Py_ssize_t i = 0; i < FIELDS; i++) {
        const Py_ssize_t place = (*next + i) % FIELDS;

        if (PyTuple_GetItem(names, place) == name) { /* names in a program are interned */
            *next = place + 1;
            return &members[place];
        }
    }
    for (Py_ssize_t i = 0; i < FIELDS; i++) {
        if (PyUnicode_CompareWithASCIIString(name, members[i].name) == 0) {
            return &members[i];
        }
    }
    PyErr_Format(PyExc_TypeError, "no option is called %R", name);
    return NULL;
}

/* A new object with these fields, but for those that the caller names. */
static PyObject *
new_options(PyObject *module, const struct options *fields, PyObject *const *args, Py_ssize_t nargs,
            PyObject *keywords)
{
    const module_state *state = PyModule_GetState(module);
    PyTypeObject *type = (PyTypeObject *)state->Options;
    const Py_ssize_t count = keywords == NULL ? 0 : PyTuple_Size(keywords);
    options_object *self;
    Py_ssize_t next = 0;

    if (nargs != 0) {
        PyErr_SetString(PyExc_TypeError, "options are given by their names");
        return NULL;
    }
    self = (options_object *)PyType_GenericAlloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->fields = *fields;
    Py_INCREF(self->fields.result);
    Py_INCREF(self->fields.progress);
    Py_INCREF(self->fields.out);
    Py_INCREF(self->fields.keep);
    Py_INCREF(self->fields.sum);
    for (Py_ssize_t i = 0; i < count; i++) {
        const PyMemberDef *field =
            find_field(state->option_names, PyTuple_GetItem(keywords, i), &next);

        if (field == NULL || set_field(self, field, args[i]) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

/* ---- Python's functions ---- */

PyDoc_STRVAR(options_doc, "options(**fields)\n--\n\n"
                          "The Options of a call.  A number that is None has its default.");

static PyObject *
make_options(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    const struct options fields = defaults();

    return new_options(module, &fields, args, nargs, keywords);
}

PyDoc_STRVAR(replace_doc, "replace($self, **fields)\n--\n\n"
                          "The same with other fields.  A number that is None stays as it is.");

static PyObject *
replace(PyObject *object, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords)
{
    return new_options(PyType_GetModule(Py_TYPE(object)), &((options_object *)object)->fields, args,
                       nargs, keywords);
}

/* ---- for C ---- */

const struct options *
tsvdi_options_of(PyObject *module, PyObject *argument)
{
    const module_state *state = PyModule_GetState(module);

    if (!Py_IS_TYPE(argument, (PyTypeObject *)state->Options)) {
        (void)tsvdi_refuse_type("options", "Options", argument);
        return NULL;
    }
    return &((options_object *)argument)->fields;
}

/* tsvd_part.sum: non-zero, with an exception set, if Python's function raised. */
static int
sum_by_python(void *function, double *x, int64_t count)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *view =
        PyMemoryView_FromMemory((char *)x, (Py_ssize_t)count * (Py_ssize_t)sizeof *x, PyBUF_WRITE);
    PyObject *answer =
        view == NULL ? NULL : PyObject_CallFunctionObjArgs((PyObject *)function, view, NULL);
    const int stop = answer == NULL;

    Py_XDECREF(answer);
    Py_XDECREF(view);
    PyGILState_Release(state);
    return stop;
}

tsvd_options
tsvdi_options_core(const struct options *options, tsvd_part *part)
{
    tsvd_options core = tsvdi_default_options();

    core.method = (tsvd_method)options->method;
    core.lower = options->lower;
    core.first = options->first;
    core.count = options->count;
    core.eps = options->eps;
    core.max_sweeps = options->max_sweeps;
    core.check_finite = options->check_finite;
    core.givens_blocks = options->blocks;
    core.givens_threads = options->block_threads;
    core.givens_split = options->split;
    core.dense_stages = options->stages;
    core.fallback = options->fallback;
    if (options->whole_count >= 0) {
        *part = (tsvd_part){options->whole_matrices, options->whole_first, options->whole_count,
                            options->sum == Py_None ? NULL : sum_by_python, options->sum};
        core.part = part;
    }
    return core;
}

/* ---- the type ---- */

static int
options_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct options *fields = &((options_object *)object)->fields;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(fields->result);
    Py_VISIT(fields->out);
    Py_VISIT(fields->progress);
    Py_VISIT(fields->keep);
    Py_VISIT(fields->sum);
    return 0;
}

static int
options_clear(PyObject *object)
{
    struct options *fields = &((options_object *)object)->fields;

    Py_CLEAR(fields->result);
    Py_CLEAR(fields->out);
    Py_CLEAR(fields->progress);
    Py_CLEAR(fields->keep);
    Py_CLEAR(fields->sum);
    return 0;
}

static void
options_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    PyObject_GC_UnTrack(object);
    (void)options_clear(object);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"replace", (PyCFunction)(void (*)(void))replace, METH_FASTCALL | METH_KEYWORDS, replace_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)options_dealloc},
    {Py_tp_traverse, (void *)options_traverse},
    {Py_tp_clear, (void *)options_clear},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tsvd._core.Options",
    .basicsize = sizeof(options_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyObject *
tsvdi_options_type(PyObject *module)
{
    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

PyObject *
tsvdi_options_names(void)
{
    PyObject *names = PyTuple_New(FIELDS);

    for (Py_ssize_t i = 0; i < FIELDS && names != NULL; i++) {
        PyObject *name = PyUnicode_InternFromString(members[i].name);

        if (name == NULL) {
            Py_CLEAR(names);
        } else {
            (void)PyTuple_SetItem(names, i, name);
        }
    }
    return names;
}

PyMethodDef tsvdi_options_methods[] = {
    {"options", (PyCFunction)(void (*)(void))make_options, METH_FASTCALL | METH_KEYWORDS,
     options_doc},
    {NULL, NULL, 0, NULL},
};
