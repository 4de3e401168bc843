/* Read the usual spans of OTLP in protobuf. protobuf.py does the same with Google's library, for every span that is not usual,
 * and for all where this was not compiled; a test compares the two. Every length is held against what is left before it is
 * used. Nothing here calls back into Python code. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

typedef struct {
    const unsigned char *at, *end;
} Bytes;

/* What is read of a field. `wire` says which of the others hold: 0 and 1 a number, 2 bytes, 5 a number of 32 bits. */
typedef struct {
    uint64_t number, value;
    int wire;
    Bytes bytes;
} Field;

static int
read_varint(Bytes *from, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        unsigned char byte = *from->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return shift < 63 || byte < 2; /* what is beyond 64 bits is no number */
        }
    }
    return 0;
}

static int
read_fixed(Bytes *from, int size, uint64_t *value)
{
    if (from->end - from->at < size) {
        return 0;
    }
    *value = 0;
    for (int i = 0; i < size; i++) {
        *value |= (uint64_t)from->at[i] << (8 * i);
    }
    from->at += size;
    return 1;
}

/* Read one field; 0 where the bytes are none. */
static int
read_field(Bytes *from, Field *field)
{
    uint64_t tag;
    if (!read_varint(from, &tag) || tag >> 3 == 0 || tag > UINT32_MAX) {
        return 0;
    }
    field->number = tag >> 3;
    field->wire = tag & 7;
    switch (field->wire) {
    case 0:
        return read_varint(from, &field->value);
    case 1:
        return read_fixed(from, 8, &field->value);
    case 2:
        if (!read_varint(from, &field->value) || field->value > (uint64_t)(from->end - from->at)) {
            return 0;
        }
        field->bytes.at = from->at;
        field->bytes.end = from->at += field->value;
        return 1;
    case 5:
        return read_fixed(from, 4, &field->value);
    default:
        return 0;
    }
}

/* Short texts that come again and again, names of attributes above all: one object for each, in a table of fixed size. Two texts
 * share a place, the one that came last first. */
#define PLACES 2048
#define KEPT_BYTES 64

static PyObject *kept[PLACES][2];

static int
is_text(PyObject *known, Bytes bytes)
{
    Py_ssize_t size = bytes.end - bytes.at;
    return known != NULL && PyUnicode_GET_LENGTH(known) == size && memcmp(PyUnicode_DATA(known), bytes.at, size) == 0;
}

/* The text of some bytes; NULL with an error set where they are no UTF-8. */
static PyObject *
text_of(Bytes bytes)
{
    Py_ssize_t size = bytes.end - bytes.at;
    if (size > KEPT_BYTES) {
        return PyUnicode_DecodeUTF8((const char *)bytes.at, size, NULL);
    }
    uint32_t hash = 2166136261u;
    for (Py_ssize_t i = 0; i < size; i++) {
        hash = (hash ^ bytes.at[i]) * 16777619u;
    }
    PyObject **place = kept[(hash ^ hash >> 16) % PLACES];
    for (int i = 0; i < 2; i++) {
        if (is_text(place[i], bytes)) {
            return Py_NewRef(place[i]);
        }
    }
    PyObject *text = PyUnicode_DecodeUTF8((const char *)bytes.at, size, NULL);
    if (text != NULL && PyUnicode_IS_ASCII(text) && size > 1) { /* of ASCII alone the bytes can be compared as they are */
        PyObject *last = place[1];
        place[1] = place[0];
        place[0] = Py_NewRef(text);
        Py_XDECREF(last);
    }
    return text;
}

static PyObject *
hex_of(Bytes bytes)
{
    static const char digits[] = "0123456789abcdef";
    Py_ssize_t size = bytes.end - bytes.at;
    PyObject *text = PyUnicode_New(2 * size, 127);
    if (text != NULL) {
        Py_UCS1 *to = PyUnicode_1BYTE_DATA(text);
        for (Py_ssize_t i = 0; i < size; i++) {
            to[2 * i] = digits[bytes.at[i] >> 4];
            to[2 * i + 1] = digits[bytes.at[i] & 15];
        }
    }
    return text;
}

static int
is_zero(Bytes bytes)
{
    while (bytes.at < bytes.end) {
        if (*bytes.at++) {
            return 0;
        }
    }
    return 1;
}

#define USUAL 0
#define ODD 1 /* not usual, or damaged: the library says which */

/* The value of an attribute: text, truth, whole number or number. */
static int
read_value(Bytes from, PyObject **value)
{
    Field field;
    if (from.at == from.end) {
        *value = Py_NewRef(Py_None);
        return USUAL;
    }
    if (!read_field(&from, &field) || from.at != from.end) {
        return ODD;
    }
    double number;
    switch (field.number << 3 | field.wire) {
    case 1 << 3 | 2:
        *value = text_of(field.bytes);
        return *value == NULL ? ODD : USUAL;
    case 2 << 3 | 0:
        *value = PyBool_FromLong(field.value != 0);
        return USUAL;
    case 3 << 3 | 0:
        *value = PyLong_FromLongLong((int64_t)field.value);
        return *value == NULL ? -1 : USUAL;
    case 4 << 3 | 1:
        memcpy(&number, &field.value, sizeof number);
        *value = PyFloat_FromDouble(number);
        return *value == NULL ? -1 : USUAL;
    default:
        return ODD;
    }
}

/* One attribute, with a name and a value in this order, as every encoder writes it. */
static int
read_attribute(Bytes from, PyObject *attributes)
{
    Field key, value;
    if (!read_field(&from, &key) || key.number != 1 || key.wire != 2) {
        return ODD;
    }
    Bytes none = {from.at, from.at};
    value.bytes = none;
    if (from.at < from.end && (!read_field(&from, &value) || value.number != 2 || value.wire != 2 || from.at != from.end)) {
        return ODD;
    }
    PyObject *name = text_of(key.bytes), *said = NULL;
    if (name == NULL) {
        return ODD;
    }
    int found = PyDict_Contains(attributes, name); /* a name twice: what came first is kept beside it */
    if (!found) {
        found = read_value(value.bytes, &said);
    }
    if (!found && PyDict_SetItem(attributes, name, said) < 0) {
        found = -1;
    }
    Py_DECREF(name);
    Py_XDECREF(said);
    return found;
}

static int
read_status(Bytes from, int32_t *code, PyObject **message)
{
    Field field;
    while (from.at < from.end) {
        if (!read_field(&from, &field)) {
            return ODD;
        }
        if (field.number == 3 && field.wire == 0) {
            *code = (int32_t)field.value;
        }
        else if (field.number == 2 && field.wire == 2 && *message == NULL) {
            if ((*message = text_of(field.bytes)) == NULL) {
                return ODD;
            }
        }
        else {
            return ODD;
        }
    }
    return USUAL;
}

/* Read one span into *span: a tuple of what it says, or its own bytes where it is not usual. -1 with an error set. */
static int
read_span(Bytes from, Py_ssize_t attributes_max, PyObject **span)
{
    Bytes whole = from, trace = {0}, id = {0}, parent = {0};
    uint64_t start = 0, end = 0, flags = 0;
    int32_t kind = 0, code = 0;
    int found = USUAL, has_status = 0;
    PyObject *attributes = PyDict_New(), *name = NULL, *message = NULL;
    Field field;
    if (attributes == NULL) {
        return -1;
    }
    while (found == USUAL && from.at < from.end) {
        if (!read_field(&from, &field)) {
            found = ODD;
            break;
        }
        switch (field.number << 3 | field.wire) {
        case 1 << 3 | 2:
            trace = field.bytes;
            break;
        case 2 << 3 | 2:
            id = field.bytes;
            break;
        case 4 << 3 | 2:
            parent = field.bytes;
            break;
        case 5 << 3 | 2:
            Py_XSETREF(name, text_of(field.bytes));
            found = name == NULL ? ODD : USUAL;
            break;
        case 6 << 3 | 0:
            kind = (int32_t)field.value;
            break;
        case 7 << 3 | 1:
            start = field.value;
            break;
        case 8 << 3 | 1:
            end = field.value;
            break;
        case 9 << 3 | 2:
            found = PyDict_GET_SIZE(attributes) < attributes_max ? read_attribute(field.bytes, attributes) : ODD;
            break;
        case 15 << 3 | 2:
            found = has_status ? ODD : read_status(field.bytes, &code, &message);
            has_status = 1;
            break;
        case 16 << 3 | 5:
            flags = field.value;
            break;
        default:
            found = ODD;
        }
    }
    if (found == USUAL && (trace.end - trace.at != 16 || is_zero(trace) || id.end - id.at != 8 || is_zero(id) ||
                           (parent.at != parent.end && (parent.end - parent.at != 8 || memcmp(parent.at, id.at, 8) == 0)))) {
        found = ODD;
    }
    if (found == USUAL) {
        PyObject *above = parent.at == parent.end || is_zero(parent) ? Py_NewRef(Py_None) : hex_of(parent);
        *span = Py_BuildValue("(NNNNiKKNKiN)", hex_of(trace), hex_of(id), above,
                              name == NULL ? PyUnicode_FromStringAndSize("", 0) : Py_NewRef(name), kind,
                              (unsigned long long)start, (unsigned long long)end, Py_NewRef(attributes),
                              (unsigned long long)flags, code,
                              message == NULL ? PyUnicode_FromStringAndSize("", 0) : Py_NewRef(message));
        found = *span == NULL ? -1 : USUAL;
    }
    else if (found == ODD) {
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
            found = -1; /* no memory */
        }
        else {
            PyErr_Clear();
            *span = PyBytes_FromStringAndSize((const char *)whole.at, whole.end - whole.at);
            found = *span == NULL ? -1 : USUAL;
        }
    }
    Py_DECREF(attributes);
    Py_XDECREF(name);
    Py_XDECREF(message);
    return found;
}

static PyObject *
as_bytes(Bytes bytes)
{
    return PyBytes_FromStringAndSize((const char *)bytes.at, bytes.end - bytes.at);
}

/* Append and give up the reference; -1 with an error set. */
static int
append(PyObject *list, PyObject *item)
{
    int failed = item == NULL || PyList_Append(list, item) < 0;
    Py_XDECREF(item);
    return failed ? -1 : 0;
}

/* Read what one instrumentation sent: (scope, schema_url, spans). ODD where it is not usual. */
static int
read_scope(Bytes from, Py_ssize_t attributes_max, Py_ssize_t *room, PyObject *scopes)
{
    Bytes scope = {from.at, from.at}, url = {from.at, from.at};
    int has_scope = 0, has_url = 0, found = USUAL;
    PyObject *spans = PyList_New(0);
    Field field;
    if (spans == NULL) {
        return -1;
    }
    while (found == USUAL && from.at < from.end) {
        if (!read_field(&from, &field) || field.wire != 2 || --*room < 0) {
            found = ODD;
        }
        else if (field.number == 1 && !has_scope++) {
            scope = field.bytes;
        }
        else if (field.number == 2) {
            PyObject *span = NULL;
            found = read_span(field.bytes, attributes_max, &span);
            if (found == USUAL) {
                found = append(spans, span);
            }
        }
        else if (field.number == 3 && !has_url++) {
            url = field.bytes;
        }
        else {
            found = ODD;
        }
    }
    if (found == USUAL) {
        found = append(scopes, Py_BuildValue("(NNO)", as_bytes(scope), as_bytes(url), spans));
    }
    Py_DECREF(spans);
    return found;
}

static int
read_resource(Bytes from, Py_ssize_t attributes_max, Py_ssize_t *room, PyObject *groups)
{
    Bytes resource = {from.at, from.at}, url = {from.at, from.at};
    int has_resource = 0, has_url = 0, found = USUAL;
    PyObject *scopes = PyList_New(0);
    Field field;
    if (scopes == NULL) {
        return -1;
    }
    while (found == USUAL && from.at < from.end) {
        if (!read_field(&from, &field) || field.wire != 2 || --*room < 0) {
            found = ODD;
        }
        else if (field.number == 1 && !has_resource++) {
            resource = field.bytes;
        }
        else if (field.number == 2) {
            found = read_scope(field.bytes, attributes_max, room, scopes);
        }
        else if (field.number == 3 && !has_url++) {
            url = field.bytes;
        }
        else {
            found = ODD;
        }
    }
    if (found == USUAL) {
        found = append(groups, Py_BuildValue("(NNO)", as_bytes(resource), as_bytes(url), scopes));
    }
    Py_DECREF(scopes);
    return found;
}

/* read_spans(body, attributes_max, parts_max) -> [(resource, schema_url, [(scope, schema_url, [span, …]), …]), …], or None where what is around
 * the spans is not usual, or there are more parts. Resource, scope and the addresses are bytes. A span is a tuple (trace, span, parent, name, kind, start_ns,
 * end_ns, attributes, flags, status_code, status_message), or its own bytes where it is not usual. */
static PyObject *
read_spans(PyObject *module, PyObject *args)
{
    Bytes from;
    const char *body;
    Py_ssize_t size, attributes_max, room;
    int found = USUAL;
    Field field;
    if (!PyArg_ParseTuple(args, "y#nn", &body, &size, &attributes_max, &room)) {
        return NULL;
    }
    from.at = (const unsigned char *)body;
    from.end = from.at + size;
    PyObject *groups = PyList_New(0);
    if (groups == NULL) {
        return NULL;
    }
    while (found == USUAL && from.at < from.end) {
        if (!read_field(&from, &field) || field.number != 1 || field.wire != 2 || --room < 0) {
            found = ODD;
        }
        else {
            found = read_resource(field.bytes, attributes_max, &room, groups);
        }
    }
    if (found == USUAL) {
        return groups;
    }
    Py_DECREF(groups);
    return found < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"read_spans", read_spans, METH_VARARGS, "Read the usual spans of a request."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "playhead.ingest.otlp._read", "Reading of OTLP, compiled.", 0, methods,
};

PyMODINIT_FUNC
PyInit__read(void)
{
    return PyModuleDef_Init(&definition);
}
