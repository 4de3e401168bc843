/* Do what has to be done around a fork, whatever a signal handler of the program raises meanwhile. forking.py has the same in
 * Python, for where this was not compiled. Python throws away what is raised around a fork, and looks for signals whenever a
 * function of Python is entered: so only C can keep the exception. It is raised in the program right after the fork, where it
 * is raised without us. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define TRIES 64 /* for as many signals it is begun again */

static PyObject *before, *in_parent, *in_child; /* lists of functions */
static PyObject *from_handler; /* says whether an exception is one of a signal handler */
static PyObject *kept; /* exceptions of handlers, in order */

static PyObject *
taken(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL) {
        PyException_SetTraceback(value, trace);
    }
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
#endif
}

/* Takes the reference. */
static void
raise_here(PyObject *problem)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(problem);
#else
    PyErr_Restore(Py_NewRef(Py_TYPE(problem)), problem, PyException_GetTraceback(problem));
#endif
}

/* Takes the reference. */
static void
keep(PyObject *problem)
{
    if (PyList_Append(kept, problem) < 0) {
        PyErr_WriteUnraisable(NULL);
    }
    Py_DECREF(problem);
}

/* Let the handlers of signals that have come run here: those functions around the fork that are not ours would lose what
 * they raise. */
static void
hear(void)
{
    for (int i = 0; i < TRIES && PyErr_CheckSignals() < 0; i++) {
        keep(taken());
    }
}

static int
is_from_handler(PyObject *problem)
{
    if (!PyObject_TypeCheck(problem, (PyTypeObject *)PyExc_Exception)) {
        return 1;
    }
    for (int i = 0; i < TRIES; i++) {
        PyObject *answer = PyObject_CallOneArg(from_handler, problem);
        if (answer != NULL) {
            int is = answer == Py_True;
            Py_DECREF(answer);
            return is;
        }
        keep(taken()); /* one more signal */
    }
    return 0;
}

static void
call(PyObject *function)
{
    for (int i = 0; i < TRIES; i++) {
        hear();
        PyObject *result = PyObject_CallNoArgs(function);
        if (result != NULL) {
            Py_DECREF(result);
            return;
        }
        PyObject *problem = taken();
        if (!is_from_handler(problem)) {
            raise_here(problem);
            PyErr_WriteUnraisable(function);
            return;
        }
        keep(problem);
    }
}

static PyObject *
forking_before(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    for (Py_ssize_t i = PyList_GET_SIZE(before) - 1; i >= 0; i--) {
        call(PyList_GET_ITEM(before, i)); /* nothing ever leaves the list */
    }
    hear();
    Py_RETURN_NONE;
}

static PyObject *
forking_in_parent(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(in_parent); i++) {
        call(PyList_GET_ITEM(in_parent, i));
    }
    hear();
    Py_RETURN_NONE;
}

static PyObject *
forking_in_child(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (PyList_SetSlice(kept, 0, PyList_GET_SIZE(kept), NULL) < 0) { /* they are raised in the parent */
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(in_child); i++) {
        call(PyList_GET_ITEM(in_child, i));
    }
    hear();
    Py_RETURN_NONE;
}

static int
raise_later(void *problem)
{
    raise_here(problem);
    return -1;
}

/* Have it raised as soon as Python code runs again, which is that of the program. */
static PyObject *
forking_hand_over(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    while (PyList_GET_SIZE(kept) > 0) {
        PyObject *problem = Py_NewRef(PyList_GET_ITEM(kept, 0));
        if (PyList_SetSlice(kept, 0, 1, NULL) < 0) {
            Py_DECREF(problem);
            return NULL;
        }
        if (Py_AddPendingCall(raise_later, problem) < 0) {
            raise_here(problem);
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

static PyObject *
forking_prepare(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *first, *second, *third, *judge;
    if (!PyArg_ParseTuple(args, "O!O!O!O", &PyList_Type, &first, &PyList_Type, &second, &PyList_Type, &third, &judge)) {
        return NULL;
    }
    Py_XSETREF(before, Py_NewRef(first));
    Py_XSETREF(in_parent, Py_NewRef(second));
    Py_XSETREF(in_child, Py_NewRef(third));
    Py_XSETREF(from_handler, Py_NewRef(judge));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"prepare", forking_prepare, METH_VARARGS, "Take the lists of functions, and the one that judges: (before, in_parent, in_child, from_handler)."},
    {"before", forking_before, METH_NOARGS, "Call the functions for before a fork, the last one first."},
    {"in_parent", forking_in_parent, METH_NOARGS, "Call the functions for after it, in the parent."},
    {"in_child", forking_in_child, METH_NOARGS, "Call the functions for after it, in the child."},
    {"hand_over", forking_hand_over, METH_NOARGS, "Have what handlers raised meanwhile raised in the program."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "playhead.store._forking",
    .m_doc = "Do what has to be done around a fork, whatever a signal handler raises meanwhile.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__forking(void)
{
    kept = PyList_New(0);
    return kept == NULL ? NULL : PyModule_Create(&definition);
}
