/* The two inner loops of recording that cost most in Python. plainer.py and capture/redact.py have the same loops in
 * Python, which are used where this was not compiled; a test compares the two. Nothing here calls back into Python code:
 * only exact built-in types are looked at, so no object can change while it is read. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Whether one of the needles, a tuple of bytes, stands in a run. */
static int
holds_needle(const unsigned char *run, Py_ssize_t size, PyObject *needles)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(needles); i++) {
        PyObject *needle = PyTuple_GET_ITEM(needles, i);
        const unsigned char *wanted = (const unsigned char *)PyBytes_AS_STRING(needle);
        Py_ssize_t length = PyBytes_GET_SIZE(needle);
        const unsigned char *at = run, *last = run + size - length;
        while (length && at <= last && (at = memchr(at, wanted[0], last - at + 1)) != NULL) {
            if (memcmp(at, wanted, length) == 0) {
                return 1;
            }
            at++;
        }
    }
    return 0;
}

/* find_runs(data, table, length, needles, before, long_from) -> [(start, end), …]: the runs of at least `length` bytes that
 * the table of 256 bytes marks and that are worth a look: one of the needles stands in it, one of the bytes of `before`
 * stands before it, or it has `long_from` bytes or more. */
static PyObject *
find_runs(PyObject *module, PyObject *args)
{
    Py_buffer data, table, before;
    Py_ssize_t length, long_from;
    PyObject *needles;
    if (!PyArg_ParseTuple(args, "y*y*nO!y*n", &data, &table, &length, &PyTuple_Type, &needles, &before, &long_from)) {
        return NULL;
    }
    PyObject *runs = NULL;
    int sound = table.len == 256 && length >= 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(needles); i++) {
        sound = sound && PyBytes_CheckExact(PyTuple_GET_ITEM(needles, i));
    }
    if (!sound) {
        PyErr_SetString(PyExc_ValueError, "find_runs needs a table of 256 bytes, a length over 0 and needles of bytes");
        goto done;
    }
    runs = PyList_New(0);
    const unsigned char *bytes = data.buf, *marks = table.buf;
    /* A window of `length` bytes that ends at `at`. It is read from its end, and moved behind the last byte that is not
     * marked, so that most bytes are never read; and so a window of marked bytes alone stands where a run begins. */
    Py_ssize_t at = length - 1;
    while (runs != NULL && at < data.len) {
        Py_ssize_t first = at - length + 1, back = at;
        while (back >= first && marks[bytes[back]]) {
            back--;
        }
        if (back >= first) {
            at = back + length;
            continue;
        }
        Py_ssize_t end = at + 1;
        while (end < data.len && marks[bytes[end]]) {
            end++;
        }
        if (end - first >= long_from || (first && before.len && memchr(before.buf, bytes[first - 1], before.len)) ||
            holds_needle(bytes + first, end - first, needles)) {
            PyObject *run = Py_BuildValue("(nn)", first, end);
            if (run == NULL || PyList_Append(runs, run) < 0) {
                Py_CLEAR(runs);
            }
            Py_XDECREF(run);
        }
        at = end + length;
    }
done:
    PyBuffer_Release(&data);
    PyBuffer_Release(&table);
    PyBuffer_Release(&before);
    return runs;
}

#define NOT_PLAIN 1

/* One item of a container: note what is long, queue what has parts. 0, NOT_PLAIN, or -1 with an error set. */
static int
look_at(PyObject *item, Py_ssize_t min, long long exact, PyObject *todo, PyObject *longs, PyObject *lists,
        PyObject *floats, Py_ssize_t *small)
{
    if (PyUnicode_CheckExact(item)) {
        Py_ssize_t size = PyUnicode_GET_LENGTH(item);
        if (size > min) {
            return PyList_Append(longs, item);
        }
        *small += size;
        return 0;
    }
    if (PyDict_CheckExact(item)) {
        return PyList_Append(todo, item);
    }
    if (PyList_CheckExact(item)) {
        if (PyList_GET_SIZE(item) && PyList_Append(lists, item) < 0) {
            return -1;
        }
        return PyList_Append(todo, item);
    }
    if (item == Py_None || PyBool_Check(item)) {
        return 0;
    }
    if (PyLong_CheckExact(item)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(item, &overflow);
        if (overflow || number > exact || number < -exact) {
            return NOT_PLAIN;
        }
        return number == -1 && PyErr_Occurred() ? -1 : 0;
    }
    if (PyFloat_CheckExact(item)) {
        double number = PyFloat_AS_DOUBLE(item);
        return number - number == 0.0 ? PyList_Append(floats, item) : NOT_PLAIN;
    }
    return NOT_PLAIN;
}

static int
look_at_dict(PyObject *node, PyObject *usual, Py_ssize_t min, long long exact, PyObject *todo, PyObject *longs,
             PyObject *lists, PyObject *floats, PyObject *unusual, Py_ssize_t *small)
{
    PyObject *key, *item;
    Py_ssize_t position = 0;
    int odd = 0;
    while (PyDict_Next(node, &position, &key, &item)) {
        if (!PyUnicode_CheckExact(key)) {
            return NOT_PLAIN;
        }
        int known = PySet_Contains(usual, key);
        if (known < 0) {
            return -1;
        }
        odd |= !known;
        int found = look_at(item, min, exact, todo, longs, lists, floats, small);
        if (found) {
            return found;
        }
    }
    return odd ? PyList_Append(unusual, node) : 0;
}

/* survey(value, usual, min, exact, containers_max, longs, lists, dense, floats, unusual) -> bool: whether the value is
 * plain as far as can be told here. Fills the lists; `unusual` gets the dicts with keys that are not in `usual`. */
static PyObject *
survey(PyObject *module, PyObject *args)
{
    PyObject *value, *usual, *longs, *lists, *dense, *floats, *unusual;
    Py_ssize_t min, containers_max;
    long long exact;
    if (!PyArg_ParseTuple(args, "O!O!nLnO!O!O!O!O!", &PyDict_Type, &value, &PySet_Type, &usual, &min, &exact,
                          &containers_max, &PyList_Type, &longs, &PyList_Type, &lists, &PyList_Type, &dense,
                          &PyList_Type, &floats, &PyList_Type, &unusual)) {
        return NULL;
    }
    PyObject *todo = PyList_New(0);
    if (todo == NULL || PyList_Append(todo, value) < 0) {
        Py_XDECREF(todo);
        return NULL;
    }
    int found = 0;
    for (Py_ssize_t at = 0; !found && at < PyList_GET_SIZE(todo); at++) {
        PyObject *node = PyList_GET_ITEM(todo, at); /* `todo` keeps it */
        if (PyDict_CheckExact(node)) {
            Py_ssize_t small = 10 * PyDict_GET_SIZE(node);
            found = look_at_dict(node, usual, min, exact, todo, longs, lists, floats, unusual, &small);
            if (!found && small > min) {
                found = PyList_Append(dense, node);
            }
        }
        else {
            Py_ssize_t ignored = 0;
            for (Py_ssize_t i = 0; !found && i < PyList_GET_SIZE(node); i++) {
                found = look_at(PyList_GET_ITEM(node, i), min, exact, todo, longs, lists, floats, &ignored);
            }
        }
        if (!found && PyList_GET_SIZE(todo) > containers_max) {
            found = NOT_PLAIN; /* perhaps a cycle */
        }
    }
    Py_DECREF(todo);
    return found < 0 ? NULL : PyBool_FromLong(found == 0);
}

static PyMethodDef methods[] = {
    {"find_runs", find_runs, METH_VARARGS, "Find the long runs of marked bytes."},
    {"survey", survey, METH_VARARGS, "Look through a value that may be plain already."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "playhead.event._speed", "The inner loops of recording, compiled.", 0, methods,
};

PyMODINIT_FUNC
PyInit__speed(void)
{
    return PyModuleDef_Init(&definition);
}
