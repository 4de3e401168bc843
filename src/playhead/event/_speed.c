/* The inner loops of recording that cost most in Python. plainer.py and capture/redact.py have the same in
 * Python, which are used where this was not compiled; a test compares the two. Nothing here calls back into Python code:
 * only exact built-in types are looked at, so no object can change while it is read. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* contains(data, needle, rare) -> bool: whether the needle stands in the data. `rare` is a byte of the needle that the
 * data hardly ever holds: only around it is there anything to compare. */
static PyObject *
contains(PyObject *module, PyObject *args)
{
    const char *data, *needle, *rare;
    Py_ssize_t size, length, one;
    if (!PyArg_ParseTuple(args, "y#y#y#", &data, &size, &needle, &length, &rare, &one)) {
        return NULL;
    }
    if (length == 0) {
        Py_RETURN_TRUE;
    }
    const char *in_needle = one == 1 ? memchr(needle, rare[0], length) : NULL;
    if (in_needle == NULL) {
        PyErr_SetString(PyExc_ValueError, "contains needs one byte of the needle");
        return NULL;
    }
    Py_ssize_t before = in_needle - needle, after = length - before - 1;
    const char *at = data + before, *stop = data + size - after;
    while (at < stop && (at = memchr(at, rare[0], stop - at)) != NULL) {
        if (memcmp(at - before, needle, length) == 0) {
            Py_RETURN_TRUE;
        }
        at++;
    }
    Py_RETURN_FALSE;
}

#define PAIR(text) (((text)[0] * 7 + (text)[1]) & 255)

/* Whether one of the needles, a tuple of bytes, stands in a run. `pairs` tells which first two bytes they may have. */
static int
holds_needle(const unsigned char *run, Py_ssize_t size, PyObject *needles, const unsigned char *pairs)
{
    for (Py_ssize_t at = 0; at < size; at++) {
        if (at + 1 < size && !pairs[PAIR(run + at)]) {
            continue;
        }
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(needles); i++) {
            PyObject *needle = PyTuple_GET_ITEM(needles, i);
            Py_ssize_t length = PyBytes_GET_SIZE(needle);
            if (length <= size - at && memcmp(run + at, PyBytes_AS_STRING(needle), length) == 0) {
                return 1;
            }
        }
    }
    return 0;
}

/* A character as keys are made of: a letter, a digit, or one of _ + / = - */
static int
is_keylike(unsigned char byte)
{
    unsigned char letter = byte | 0x20;
    return (letter >= 'a' && letter <= 'z') || (byte >= '/' && byte <= '9') || byte == '_' || byte == '+' || byte == '=' ||
           byte == '-';
}

#define RUN 16 /* characters that make a run */

#if defined(__SSE2__) && (defined(__GNUC__) || defined(__clang__))
#include <emmintrin.h>

/* One bit for each of 16 bytes: whether it is key-like. */
static unsigned
keylike_bits(const unsigned char *bytes)
{
    __m128i text = _mm_loadu_si128((const __m128i *)bytes), letter = _mm_or_si128(text, _mm_set1_epi8(0x20));
    __m128i found = _mm_and_si128(_mm_cmpgt_epi8(letter, _mm_set1_epi8('a' - 1)),
                                  _mm_cmplt_epi8(letter, _mm_set1_epi8('z' + 1)));
    found = _mm_or_si128(found, _mm_and_si128(_mm_cmpgt_epi8(text, _mm_set1_epi8('/' - 1)),
                                              _mm_cmplt_epi8(text, _mm_set1_epi8('9' + 1))));
    found = _mm_or_si128(found, _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('_')),
                                             _mm_cmpeq_epi8(text, _mm_set1_epi8('+'))));
    found = _mm_or_si128(found, _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('=')),
                                             _mm_cmpeq_epi8(text, _mm_set1_epi8('-'))));
    return (unsigned)_mm_movemask_epi8(found);
}

/* Where the next run begins that may begin at `at` or later; `size` if there is none. */
static Py_ssize_t
next_run(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t at)
{
    unsigned open = 0; /* key-like bytes just before `at`, fewer than RUN */
    for (; at + RUN <= size; at += RUN) {
        unsigned others = ~keylike_bits(bytes + at) & 0xffff;
        if (open + (others ? (unsigned)__builtin_ctz(others) : RUN) >= RUN) {
            return at - open;
        }
        open = (unsigned)__builtin_clz(others << 16);
    }
    for (Py_ssize_t begun = at - open; at < size; at++) {
        if (!is_keylike(bytes[at])) {
            begun = at + 1;
        }
        else if (at + 1 - begun >= RUN) {
            return begun;
        }
    }
    return size;
}
#else
static Py_ssize_t
next_run(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t at)
{
    /* The window of RUN bytes from `at` is read from its end, and moved behind the last byte that is not key-like: most
     * bytes are never read. */
    while (at + RUN <= size) {
        Py_ssize_t back = at + RUN - 1;
        while (back >= at && is_keylike(bytes[back])) {
            back--;
        }
        if (back < at) {
            return at;
        }
        at = back + 1;
    }
    return size;
}
#endif

/* find_runs(data, needles, before, long_from) -> [(start, end), …]: the runs of RUN or more key-like bytes that are worth a
 * look: one of the needles stands in it, one of the bytes of `before` stands before it, or it has `long_from` bytes or
 * more. */
static PyObject *
find_runs(PyObject *module, PyObject *args)
{
    const unsigned char *bytes, *before;
    Py_ssize_t size, before_size, long_from;
    PyObject *needles;
    if (!PyArg_ParseTuple(args, "y#O!y#n", &bytes, &size, &PyTuple_Type, &needles, &before, &before_size, &long_from)) {
        return NULL;
    }
    unsigned char pairs[256] = {0};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(needles); i++) {
        PyObject *needle = PyTuple_GET_ITEM(needles, i);
        if (!PyBytes_CheckExact(needle) || PyBytes_GET_SIZE(needle) == 0) {
            PyErr_SetString(PyExc_ValueError, "find_runs needs needles of bytes");
            return NULL;
        }
        if (PyBytes_GET_SIZE(needle) == 1) {
            memset(pairs, 1, sizeof pairs);
        }
        else {
            pairs[PAIR((const unsigned char *)PyBytes_AS_STRING(needle))] = 1;
        }
    }
    PyObject *runs = PyList_New(0);
    Py_ssize_t end, first = next_run(bytes, size, 0);
    for (; runs != NULL && first < size; first = next_run(bytes, size, end)) {
        for (end = first + RUN; end < size && is_keylike(bytes[end]); end++) {
        }
        if (end - first >= long_from || (first && before_size && memchr(before, bytes[first - 1], before_size)) ||
            holds_needle(bytes + first, end - first, needles, pairs)) {
            PyObject *run = Py_BuildValue("(nn)", first, end);
            if (run == NULL || PyList_Append(runs, run) < 0) {
                Py_CLEAR(runs);
            }
            Py_XDECREF(run);
        }
    }
    return runs;
}

/* Whether the first item of an array is a long text or an object with one, by which the array can be found. */
static int
is_long(PyObject *first, Py_ssize_t min)
{
    if (PyDict_CheckExact(first)) {
        PyObject *key, *item;
        Py_ssize_t position = 0;
        while (PyDict_Next(first, &position, &key, &item)) {
            if (PyUnicode_CheckExact(item) && PyUnicode_GET_LENGTH(item) > min) {
                return 1;
            }
        }
        return 0;
    }
    return PyUnicode_CheckExact(first) && PyUnicode_GET_LENGTH(first) > min;
}

#define NOT_PLAIN 1

/* One item of a container: note what is long, queue what has parts. 0, NOT_PLAIN, or -1 with an error set. */
static int
look_at(PyObject *item, Py_ssize_t min, long long exact, PyObject *todo, PyObject *longs, PyObject *floats,
        Py_ssize_t *small)
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
             PyObject *floats, PyObject *unusual, Py_ssize_t *small)
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
        int found = look_at(item, min, exact, todo, longs, floats, small);
        if (found) {
            return found;
        }
    }
    return odd ? PyList_Append(unusual, node) : 0;
}

/* survey(value, usual, min, exact, parts_max, depth_max) -> (longs, lists, dense, floats, unusual), or None where the value
 * is not plain as far as can be told here: its texts over `min`, its arrays that may be over it and do not begin with such a
 * text, its dicts whose small parts are over it, its floats, and its dicts with keys that are not in `usual`. */
static PyObject *
survey(PyObject *module, PyObject *args)
{
    PyObject *value, *usual;
    Py_ssize_t min, parts_max, depth_max, parts = 0, depth = 0, level_end = 1;
    long long exact;
    if (!PyArg_ParseTuple(args, "O!O!nLnn", &PyDict_Type, &value, &PySet_Type, &usual, &min, &exact, &parts_max,
                          &depth_max)) {
        return NULL;
    }
    PyObject *todo = PyList_New(0), *longs = PyList_New(0), *lists = PyList_New(0), *dense = PyList_New(0);
    PyObject *floats = PyList_New(0), *unusual = PyList_New(0), *seen = NULL;
    int found = -1;
    if (todo != NULL && longs != NULL && lists != NULL && dense != NULL && floats != NULL && unusual != NULL) {
        found = PyList_Append(todo, value);
    }
    for (Py_ssize_t at = 0; !found && at < PyList_GET_SIZE(todo); at++) {
        PyObject *node = PyList_GET_ITEM(todo, at); /* `todo` keeps it */
        Py_ssize_t before = PyList_GET_SIZE(todo) + PyList_GET_SIZE(longs);
        if (at == level_end) {
            depth++;
            level_end = PyList_GET_SIZE(todo);
        }
        if (PyDict_CheckExact(node)) {
            Py_ssize_t small = 10 * PyDict_GET_SIZE(node);
            found = look_at_dict(node, usual, min, exact, todo, longs, floats, unusual, &small);
            if (!found && small > min) {
                found = PyList_Append(dense, node);
            }
        }
        else {
            Py_ssize_t small = 10 * PyList_GET_SIZE(node);
            for (Py_ssize_t i = 0; !found && i < PyList_GET_SIZE(node); i++) {
                found = look_at(PyList_GET_ITEM(node, i), min, exact, todo, longs, floats, &small);
            }
            int large = small > min || PyList_GET_SIZE(todo) + PyList_GET_SIZE(longs) > before;
            if (!found && large && PyList_GET_SIZE(node) && !is_long(PyList_GET_ITEM(node, 0), min)) {
                found = PyList_Append(lists, node);
            }
        }
        parts += PyDict_CheckExact(node) ? PyDict_GET_SIZE(node) : PyList_GET_SIZE(node);
        if (!found && (parts > parts_max || depth > depth_max)) {
            found = NOT_PLAIN; /* perhaps a cycle */
        }
    }
    if (found == 0) {
        seen = PyTuple_Pack(5, longs, lists, dense, floats, unusual);
    }
    else if (found > 0) {
        seen = Py_NewRef(Py_None);
    }
    Py_XDECREF(todo);
    Py_XDECREF(longs);
    Py_XDECREF(lists);
    Py_XDECREF(dense);
    Py_XDECREF(floats);
    Py_XDECREF(unusual);
    return seen;
}

static PyMethodDef methods[] = {
    {"contains", contains, METH_VARARGS, "Look for bytes by the rarest of them."},
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
