/* Watch functions that are written in C, whoever has a reference to them, and keep what they gave back.
 *
 * A function of C is known to Python by a PyMethodDef, which every reference to it shares: `from time import time` too. Its
 * pointer to the code is replaced by one of our own that calls the original, and put back when recording ends.
 * hooks_python.py does what it can of this where it was not compiled; packs.py has Pack and Tap in Python; a test compares them. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <datetime.h>
#include <structmember.h>

#include <math.h>
#include <stdint.h>

enum sort { AGENT, PASSES, INFRASTRUCTURE, OURS, CALLS }; /* as in callers.py */
enum form { NS, INT, BYTES, VALUES };              /* how the values of a group are kept, as in event/reads.py */
enum what { SECONDS, NANOSECONDS, CLOCK_WHEN_MISSING, MOMENT, NUMBER, RAW, UNIT, BITS, SEED, UUID, FIRST_RAW, CALL, STDIN, REPLACE };

#define GROUPS_MAX 52 /* as many as there are letters for the order */
#define TEXT_MAX (48 * 1024)

/* Set while this thread is in here: what our own work asks the clock is nobody's read. */
static _Thread_local int inside;

/* ---- what is kept: a Tap for a run, and a Pack for each of its lanes ---- */

typedef struct {
    char *at;
    Py_ssize_t size, room;
} Buffer;

typedef struct {
    PyObject *of, *by, *values; /* strings that live as long as the group, and a list where the form is VALUES */
    int form;
    int64_t last; /* of NS: the value before; of BYTES: the size that all have had so far, -1 for none, -2 for several */
    Py_ssize_t count;
    Buffer text, sizes;
} Group;

typedef struct {
    PyObject_HEAD
    int open;
    Py_ssize_t remaining[2]; /* reads that may still be kept: of clocks, which a loop may ask without end, and others */
    Py_ssize_t packed_max;
    PyObject *waiting; /* a dict of the packs that hold something, in the order in which they began to */
    PyObject *seal;    /* called with a pack that is full */
    PyObject *full;    /* called once, with source and module, when no more may be kept */
    PyObject *begun;   /* called when the first of its packs holds something; None for nobody */
    PyObject *owner;   /* the run; None while it is not opened */
    PyObject *seen;    /* a dict, for those who keep an answer only when it is another one than before */
} Tap;

typedef struct {
    PyObject_HEAD
    Tap *tap;
    PyObject *lane, *span;
    Group *groups;
    int used, room, current;
    Py_ssize_t run, count, bytes;
    Buffer order;
} Pack;

static PyTypeObject TapType, PackType;

static int
grow(Buffer *buffer, Py_ssize_t more)
{
    if (buffer->size + more > buffer->room) {
        Py_ssize_t room = buffer->room ? buffer->room : 64;
        while (room < buffer->size + more) {
            room *= 2;
        }
        char *at = PyMem_Realloc(buffer->at, room);
        if (at == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        buffer->at = at;
        buffer->room = room;
    }
    return 0;
}

static int
put(Buffer *buffer, const void *data, Py_ssize_t size)
{
    if (grow(buffer, size) < 0) {
        return -1;
    }
    if (size) {
        memcpy(buffer->at + buffer->size, data, size);
    }
    buffer->size += size;
    return 0;
}

/* Write a number, after a comma where something stands before it. */
static int
put_number(Buffer *buffer, int64_t number)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        *--at = (char)('0' + rest % 10);
    } while (rest /= 10);
    if (number < 0) {
        *--at = '-';
    }
    if (buffer->size) {
        *--at = ',';
    }
    return put(buffer, at, digits + sizeof digits - at);
}

static int
pack_traverse(Pack *self, visitproc visit, void *arg)
{
    Py_VISIT(self->tap);
    for (int i = 0; i < self->used; i++) {
        Py_VISIT(self->groups[i].values);
    }
    return 0;
}

static void
free_groups(Group *groups, int used)
{
    for (int i = 0; i < used; i++) {
        Py_DECREF(groups[i].of);
        Py_DECREF(groups[i].by);
        Py_XDECREF(groups[i].values);
        PyMem_Free(groups[i].text.at);
        PyMem_Free(groups[i].sizes.at);
    }
    PyMem_Free(groups);
}

/* Move everything out of a pack, so that it is a new one before anything else can happen. */
static Pack
empty(Pack *self)
{
    Pack was = *self;
    self->groups = NULL;
    self->span = NULL;
    self->used = self->room = 0;
    self->current = -1;
    self->run = self->count = self->bytes = 0;
    self->order = (Buffer){0};
    return was;
}

static void
forget(Pack *self)
{
    Pack was = empty(self);
    Py_XDECREF(was.span);
    PyMem_Free(was.order.at);
    free_groups(was.groups, was.used);
}

static int
pack_clear(Pack *self)
{
    forget(self);
    Py_CLEAR(self->tap);
    return 0;
}

static void
pack_dealloc(Pack *self)
{
    PyObject_GC_UnTrack(self);
    pack_clear(self);
    Py_CLEAR(self->lane);
    Py_TYPE(self)->tp_free(self);
}

static char
letter(int group)
{
    return (char)(group < 26 ? 'a' + group : 'A' + group - 26);
}

/* Write down how often in a row the current group was read from. -1 with an error set. */
static int
close_run(Pack *self)
{
    char text[24];
    int size = snprintf(text, sizeof text, self->run > 1 ? "%c%zd" : "%c", letter(self->current), self->run);
    return put(&self->order, text, size);
}

/* Find the group of a source and a module, and make it the current one; NULL with an error set. */
static Group *
group_of(Pack *self, PyObject *of, PyObject *by, int form)
{
    if (self->current >= 0) {
        Group *group = self->groups + self->current;
        if (group->of == of && group->by == by && group->form == form) {
            self->run++;
            return group;
        }
    }
    PyObject *values = NULL; /* made first: the collector may run then, and with it other threads */
    if (form == VALUES && (values = PyList_New(0)) == NULL) {
        return NULL;
    }
    int i = 0;
    while (i < self->used && !(self->groups[i].of == of && self->groups[i].by == by && self->groups[i].form == form)) {
        i++;
    }
    if (i == self->used) {
        if (self->used == self->room) {
            int room = self->room ? self->room * 2 : 4;
            Group *groups = PyMem_Realloc(self->groups, room * sizeof *groups);
            if (groups == NULL) {
                Py_XDECREF(values);
                PyErr_NoMemory();
                return NULL;
            }
            self->groups = groups;
            self->room = room;
        }
        Group fresh = {Py_NewRef(of), Py_NewRef(by), values, form, form == BYTES ? -1 : 0, 0, {0}, {0}};
        self->groups[self->used++] = fresh;
    }
    else {
        Py_XDECREF(values);
    }
    if (self->current >= 0 && close_run(self) < 0) {
        return NULL;
    }
    self->current = i;
    self->run = 1;
    return self->groups + i;
}

/* Note that something was added; and seal where it is enough. -1 with an error set. */
static int
added(Pack *self, Group *group, Py_ssize_t bytes)
{
    Tap *tap = self->tap;
    group->count++;
    self->bytes += bytes;
    tap->remaining[group->form != NS]--;
    int first = 0;
    if (self->count++ == 0) {
        first = PyDict_GET_SIZE(tap->waiting) == 0 && tap->begun != Py_None;
        if (PyDict_SetItem(tap->waiting, (PyObject *)self, Py_None) < 0) {
            return -1;
        }
    }
    if (first) {
        PyObject *done = PyObject_CallNoArgs(tap->begun);
        if (done == NULL) {
            return -1;
        }
        Py_DECREF(done);
    }
    if (self->count >= tap->packed_max || self->bytes >= TEXT_MAX || self->used >= GROUPS_MAX - 1) {
        PyObject *done = PyObject_CallOneArg(tap->seal, (PyObject *)self);
        if (done == NULL) {
            return -1;
        }
        Py_DECREF(done);
    }
    return 0;
}

/* Say whether one more read may be kept. 1, 0, or -1 with an error set. */
static int
may_add(Pack *self, PyObject *of, PyObject *by, int form)
{
    Tap *tap = self->tap;
    if (tap == NULL || !tap->open) {
        return 0;
    }
    Py_ssize_t *remaining = tap->remaining + (form != NS);
    if (*remaining > 0) {
        return 1;
    }
    if (*remaining == 0) {
        *remaining = -1;
        PyObject *done = PyObject_CallFunctionObjArgs(tap->full, of, by, NULL);
        if (done == NULL) {
            return -1;
        }
        Py_DECREF(done);
    }
    return 0;
}

static int
add_number(Pack *self, PyObject *of, PyObject *by, int form, int64_t number)
{
    int may = may_add(self, of, by, form);
    if (may <= 0) {
        return may;
    }
    Group *group = group_of(self, of, by, form);
    if (group == NULL) {
        return -1;
    }
    Py_ssize_t before = group->text.size;
    if (put_number(&group->text, form == NS ? number - group->last : number) < 0) {
        return -1;
    }
    group->last = number;
    return added(self, group, group->text.size - before);
}

static int
add_bytes(Pack *self, PyObject *of, PyObject *by, const char *data, Py_ssize_t size)
{
    int may = may_add(self, of, by, BYTES);
    if (may <= 0) {
        return may;
    }
    Group *group = group_of(self, of, by, BYTES);
    if (group == NULL || put(&group->text, data, size) < 0 || put_number(&group->sizes, size) < 0) {
        return -1;
    }
    group->last = group->last == -1 || group->last == size ? size : -2;
    return added(self, group, size * 4 / 3 + 4);
}

static int
add_value(Pack *self, PyObject *of, PyObject *by, PyObject *value, Py_ssize_t bytes)
{
    int may = may_add(self, of, by, VALUES);
    if (may <= 0) {
        return may;
    }
    Group *group = group_of(self, of, by, VALUES);
    if (group == NULL || PyList_Append(group->values, value) < 0) {
        return -1;
    }
    return added(self, group, bytes);
}

static PyObject *
pack_add(Pack *self, PyObject *args)
{
    PyObject *of, *by, *value, *span = Py_None;
    Py_ssize_t bytes = 64;
    if (!PyArg_ParseTuple(args, "UUO|nO", &of, &by, &value, &bytes, &span)) {
        return NULL;
    }
    if (self->count == 0 && span != Py_None) {
        Py_XSETREF(self->span, Py_NewRef(span));
    }
    int before = inside;
    inside = 1;
    int done = add_value(self, of, by, value, bytes);
    inside = before;
    return done < 0 ? NULL : Py_NewRef(Py_None);
}

/* Return the order and the groups, and begin anew. */
static PyObject *
pack_take(Pack *self, PyObject *Py_UNUSED(ignored))
{
    Pack was = empty(self);
    PyObject *order = NULL, *groups = NULL, *out = NULL;
    if (was.tap != NULL && PyDict_Contains(was.tap->waiting, (PyObject *)self) == 1 &&
        PyDict_DelItem(was.tap->waiting, (PyObject *)self) < 0) {
        goto done;
    }
    if (was.used > 1 && close_run(&was) < 0) {
        goto done;
    }
    order = PyUnicode_FromStringAndSize(was.order.at, was.order.size);
    groups = PyList_New(0);
    if (order == NULL || groups == NULL) {
        goto done;
    }
    for (int i = 0; i < was.used; i++) {
        Group *group = was.groups + i;
        PyObject *content, *sizes, *entry;
        content = group->form == VALUES ? Py_NewRef(group->values)
                                        : PyBytes_FromStringAndSize(group->text.at, group->text.size);
        sizes = group->form != BYTES ? Py_NewRef(Py_None)
                : group->last > 0    ? PyLong_FromLongLong(group->last)
                                     : PyBytes_FromStringAndSize(group->sizes.at, group->sizes.size);
        entry = content == NULL || sizes == NULL
                    ? NULL
                    : Py_BuildValue("OOinOO", group->of, group->by, group->form, group->count, content, sizes);
        Py_XDECREF(content);
        Py_XDECREF(sizes);
        if (entry == NULL || PyList_Append(groups, entry) < 0) {
            Py_XDECREF(entry);
            goto done;
        }
        Py_DECREF(entry);
    }
    out = PyTuple_Pack(3, order, groups, was.span ? was.span : Py_None);
done:
    Py_XDECREF(order);
    Py_XDECREF(groups);
    Py_XDECREF(was.span);
    PyMem_Free(was.order.at);
    free_groups(was.groups, was.used);
    return out;
}

static PyMethodDef pack_methods[] = {
    {"add", (PyCFunction)pack_add, METH_VARARGS, "Keep a value of a source that a module read."},
    {"take", (PyCFunction)pack_take, METH_NOARGS, "Return what was kept: the order, the groups, the span; begin anew."},
    {NULL},
};

static PyMemberDef pack_members[] = {
    {"count", T_PYSSIZET, offsetof(Pack, count), READONLY, "how many reads it holds"},
    {"lane", T_OBJECT, offsetof(Pack, lane), READONLY, "the lane that they are of"},
    {"tap", T_OBJECT, offsetof(Pack, tap), READONLY, "where they go"},
    {NULL},
};

static PyTypeObject PackType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "playhead.capture._hooks.Pack",
    .tp_basicsize = sizeof(Pack),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)pack_dealloc,
    .tp_traverse = (traverseproc)pack_traverse,
    .tp_clear = (inquiry)pack_clear,
    .tp_methods = pack_methods,
    .tp_members = pack_members,
};

static PyObject *
tap_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *seal, *full;
    Py_ssize_t reads_max, packed_max;
    if (!PyArg_ParseTuple(args, "OOnn", &seal, &full, &reads_max, &packed_max)) {
        return NULL;
    }
    Tap *self = (Tap *)type->tp_alloc(type, 0);
    if (self == NULL || (self->waiting = PyDict_New()) == NULL || (self->seen = PyDict_New()) == NULL) {
        Py_XDECREF(self);
        return NULL;
    }
    self->owner = Py_NewRef(Py_None);
    self->begun = Py_NewRef(Py_None);
    self->open = 1;
    self->remaining[0] = self->remaining[1] = reads_max;
    self->packed_max = packed_max;
    self->seal = Py_NewRef(seal);
    self->full = Py_NewRef(full);
    return (PyObject *)self;
}

static int
tap_traverse(Tap *self, visitproc visit, void *arg)
{
    Py_VISIT(self->waiting);
    Py_VISIT(self->seal);
    Py_VISIT(self->full);
    Py_VISIT(self->owner);
    Py_VISIT(self->begun);
    Py_VISIT(self->seen);
    return 0;
}

static int
tap_clear(Tap *self)
{
    Py_CLEAR(self->waiting);
    Py_CLEAR(self->seal);
    Py_CLEAR(self->full);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->begun);
    Py_CLEAR(self->seen);
    self->open = 0;
    return 0;
}

static void
tap_dealloc(Tap *self)
{
    PyObject_GC_UnTrack(self);
    tap_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
tap_pack(Tap *self, PyObject *lane)
{
    Pack *pack = (Pack *)PackType.tp_alloc(&PackType, 0);
    if (pack != NULL) {
        pack->tap = (Tap *)Py_NewRef(self);
        pack->lane = Py_NewRef(lane);
        pack->current = -1;
    }
    return (PyObject *)pack;
}

static PyObject *
tap_waiting(Tap *self, PyObject *Py_UNUSED(ignored))
{
    return PyDict_Keys(self->waiting);
}

static PyMethodDef tap_methods[] = {
    {"pack", (PyCFunction)tap_pack, METH_O, "Return a pack for a lane."},
    {"waiting", (PyCFunction)tap_waiting, METH_NOARGS, "Return the packs that hold something."},
    {NULL},
};

static PyMemberDef tap_members[] = {
    {"open", T_INT, offsetof(Tap, open), 0, "whether anything is kept"},
    {"clocks_remaining", T_PYSSIZET, offsetof(Tap, remaining), 0, "how many reads of clocks may still be kept"},
    {"remaining", T_PYSSIZET, offsetof(Tap, remaining) + sizeof(Py_ssize_t), 0, "how many others may still be kept"},
    {"seal", T_OBJECT, offsetof(Tap, seal), 0, "called with a pack that is full"},
    {"full", T_OBJECT, offsetof(Tap, full), 0, "called with source and module when nothing more is kept"},
    {"begun", T_OBJECT, offsetof(Tap, begun), 0, "called when the first of its packs holds something"},
    {"owner", T_OBJECT, offsetof(Tap, owner), 0, "the run; None while it is not opened"},
    {"seen", T_OBJECT, offsetof(Tap, seen), READONLY, "for those who keep only what is new"},
    {NULL},
};

static PyTypeObject TapType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "playhead.capture._hooks.Tap",
    .tp_basicsize = sizeof(Tap),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = tap_new,
    .tp_dealloc = (destructor)tap_dealloc,
    .tp_traverse = (traverseproc)tap_traverse,
    .tp_clear = (inquiry)tap_clear,
    .tp_methods = tap_methods,
    .tp_members = tap_members,
};

/* ---- who reads ---- */

static PyObject *sorts;                                    /* callers.py: by the name of a module, what it is */
static PyObject *sort_of;                                  /* callers.py: what to ask for one that is new */
static PyObject *ways;                                     /* by functions of the standard library: names of sources */
static PyObject *current, *ambient_lane, *muted;           /* the context variables of scope.py */
static PyObject *process_lane;                             /* of the run of the process; None without one */
static PyObject *problem;                                  /* called with the exception when a read could not be kept */
static PyObject *name_text, *reads_text, *bytes_text, *zoned_text, *today_text, *now_text, *unnamed_text;
static Py_ssize_t watching; /* how many want to know: without any, nothing is looked at */

/* Return the pack of the lane that runs, borrowed from it, and its span; NULL where nothing is recorded. */
static Pack *
pack_here(PyObject **span)
{
    PyObject *found = NULL, *lane = NULL, *reads = NULL;
    *span = NULL;
    if (PyContextVar_Get(muted, NULL, &found) < 0) {
        return NULL;
    }
    int quiet = found == Py_True;
    Py_XDECREF(found);
    if (quiet || PyContextVar_Get(current, NULL, &found) < 0) {
        return NULL;
    }
    if (found != NULL && found != Py_None && PyTuple_Check(found) && PyTuple_GET_SIZE(found) == 3) {
        *span = Py_NewRef(PyTuple_GET_ITEM(found, 1)); /* Scope: recording, span, lane */
        lane = Py_NewRef(PyTuple_GET_ITEM(found, 2));
    }
    Py_XDECREF(found);
    if (lane == NULL) {
        if (process_lane == Py_None) {
            return NULL;
        }
        if (PyContextVar_Get(ambient_lane, NULL, &lane) < 0) {
            return NULL;
        }
        if (lane == NULL || lane == Py_None) {
            Py_XDECREF(lane);
            lane = Py_NewRef(process_lane);
        }
    }
    reads = PyObject_GetAttr(lane, reads_text);
    Py_DECREF(lane);
    if (reads == NULL || !Py_IS_TYPE(reads, &PackType) || !((Pack *)reads)->tap || !((Pack *)reads)->tap->open) {
        Py_XDECREF(reads);
        Py_CLEAR(*span);
        return NULL;
    }
    return (Pack *)reads;
}

/* Say what a module is, by its globals, and how it is called, borrowed. -1 with an error set. */
static long
sort_by(PyObject *globals, PyObject **name)
{
    *name = PyDict_GetItemWithError(globals, name_text);
    if (*name == NULL || !PyUnicode_CheckExact(*name)) {
        *name = unnamed_text; /* code that was made at run time, in a namespace of its own */
        return PyErr_Occurred() ? -1 : AGENT;
    }
    PyObject *sort = PyDict_GetItemWithError(sorts, *name);
    if (sort == NULL) {
        if (PyErr_Occurred() || (sort = PyObject_CallOneArg(sort_of, *name)) == NULL) {
            return -1;
        }
        Py_DECREF(sort); /* small integers live forever */
    }
    long known = PyLong_AsLong(sort);
    return known == CALLS ? AGENT : known; /* what it calls was handed over by the agent */
}

/* Return the name of a source that was read by way of a function of the standard library: `uuid.uuid4:os.urandom`. */
static PyObject *
named_by_way_of(PyObject *module, PyCodeObject *code, PyObject *of)
{
    /* By the code: its address, and the code itself beside the names, so that no other one gets that address. */
    PyObject *key = PyLong_FromVoidPtr(code), *known = NULL, *name = NULL;
    if (key == NULL) {
        return NULL;
    }
    known = PyDict_GetItemWithError(ways, key);
    if (known == NULL && !PyErr_Occurred() && (known = PyDict_New()) != NULL) {
        int kept = PyDict_SetItem(known, Py_None, (PyObject *)code) == 0 && PyDict_SetItem(ways, key, known) == 0;
        Py_DECREF(known); /* held by the other */
        known = kept ? known : NULL;
    }
    if (known != NULL && (name = PyDict_GetItemWithError(known, of)) != NULL) {
        Py_INCREF(name);
    }
    else if (known != NULL && !PyErr_Occurred()) {
        PyObject *qualified = PyObject_GetAttrString((PyObject *)code, "co_qualname");
        name = qualified == NULL ? NULL : PyUnicode_FromFormat("%U.%U:%U", module, qualified, of);
        Py_XDECREF(qualified);
        if (name != NULL && PyDict_SetItem(known, of, name) < 0) {
            Py_CLEAR(name);
        }
    }
    Py_DECREF(key);
    return name;
}

/* Find out for whom code with these globals acts; `frame` is its own, or NULL for the one that runs. 1 with both strings
 * set, 0 where for nobody, -1 with an error set. callers.py does the same. */
static int
reader(PyObject *globals, PyObject *frame, PyObject *slot_of, PyObject **of, PyObject **by)
{
    PyObject *name, *passed = NULL;
    if (globals == NULL) {
        return 0;
    }
    long sort = sort_by(globals, &name);
    if (sort != PASSES) {
        if (sort == AGENT) {
            *of = Py_NewRef(slot_of);
            *by = Py_NewRef(name);
        }
        return sort < 0 ? -1 : sort == AGENT;
    }
    PyFrameObject *at = (PyFrameObject *)frame;
    if (at == NULL && (at = PyEval_GetFrame()) == NULL) {
        return 0;
    }
    PyCodeObject *code = PyFrame_GetCode(at);
    passed = Py_NewRef(name);
    Py_INCREF(at);
    while (sort == PASSES) {
        PyFrameObject *back = PyFrame_GetBack(at);
        Py_SETREF(at, back);
        if (at == NULL) {
            break;
        }
        PyObject *around = PyFrame_GetGlobals(at);
        sort = sort_by(around, &name);
        if (sort == INFRASTRUCTURE && PyUnicode_CompareWithASCIIString(passed, "logging") == 0) {
            sort = AGENT; /* what it logs goes where the agent wants it */
        }
        if (sort == PASSES) {
            Py_SETREF(code, PyFrame_GetCode(at));
            Py_SETREF(passed, Py_NewRef(name));
        }
        else if (sort == AGENT) {
            *by = Py_NewRef(name);
            *of = named_by_way_of(passed, code, slot_of);
            sort = *of == NULL ? -1 : AGENT;
            if (*of == NULL) {
                Py_CLEAR(*by);
            }
        }
        Py_DECREF(around);
    }
    int tells = at != NULL && sort == AGENT ? 1 : sort < 0 ? -1 : 0;
    Py_XDECREF(at);
    Py_XDECREF(code);
    Py_XDECREF(passed);
    return tells;
}

/* ---- the functions that are watched ---- */

#define SLOTS 64 /* of each calling convention */

typedef struct {
    PyMethodDef *method; /* NULL: free */
    PyCFunction original;
    PyObject *of;     /* the name of the source */
    PyObject *only;   /* a list of the objects whose method is watched, where it is not that of all; else NULL */
    PyObject *notice; /* of CALL: what to call with (of, by, pack, span, self, args, kwargs, result, error); of REPLACE: what
                       * to call instead */
    int what;
} Slot;

typedef struct {
    PyObject *self;
    void *a, *b, *c, *d;
} Given;

static PyObject *
invoke(Slot *slot, Given *given)
{
    typedef PyObject *(*Two)(PyObject *, void *);
    typedef PyObject *(*Three)(PyObject *, void *, void *);
    typedef PyObject *(*Three_counted)(PyObject *, void *, Py_ssize_t);
    typedef PyObject *(*Four)(PyObject *, void *, Py_ssize_t, void *);
    typedef PyObject *(*Five)(PyObject *, void *, void *, Py_ssize_t, void *);
    void (*code)(void) = (void (*)(void))slot->original;
    switch (slot->method->ml_flags & ~(METH_CLASS | METH_STATIC | METH_COEXIST)) {
    case METH_VARARGS | METH_KEYWORDS:
        return ((Three)code)(given->self, given->a, given->b);
    case METH_FASTCALL:
        return ((Three_counted)code)(given->self, given->a, (Py_ssize_t)given->b);
    case METH_FASTCALL | METH_KEYWORDS:
        return ((Four)code)(given->self, given->a, (Py_ssize_t)given->b, given->c);
    case METH_METHOD | METH_FASTCALL | METH_KEYWORDS:
        return ((Five)code)(given->self, given->a, given->b, (Py_ssize_t)given->c, given->d);
    default:
        return ((Two)code)(given->self, given->a);
    }
}

/* Return the arguments of a call as a tuple, and the named ones as a dict or None. -1 with an error set. */
static int
arguments(Slot *slot, Given *given, PyObject **args, PyObject **named)
{
    int flags = slot->method->ml_flags & ~(METH_CLASS | METH_STATIC | METH_COEXIST);
    PyObject *const *values = NULL, *names = NULL;
    Py_ssize_t count = 0;
    *args = *named = NULL;
    switch (flags) {
    case METH_NOARGS:
        break;
    case METH_O:
        values = (PyObject *const *)&given->a;
        count = 1;
        break;
    case METH_VARARGS:
    case METH_VARARGS | METH_KEYWORDS:
        *args = Py_NewRef((PyObject *)given->a);
        *named = Py_NewRef(flags & METH_KEYWORDS && given->b ? (PyObject *)given->b : Py_None);
        return 0;
    case METH_METHOD | METH_FASTCALL | METH_KEYWORDS:
        values = given->b;
        count = (Py_ssize_t)given->c;
        names = given->d;
        break;
    default:
        values = given->a;
        count = (Py_ssize_t)given->b;
        names = flags & METH_KEYWORDS ? given->c : NULL;
    }
    if ((*args = PyTuple_New(count)) == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyTuple_SET_ITEM(*args, i, Py_NewRef(values[i]));
    }
    if (names == NULL || PyTuple_GET_SIZE(names) == 0) {
        *named = Py_NewRef(Py_None);
        return 0;
    }
    if ((*named = PyDict_New()) == NULL) {
        Py_CLEAR(*args);
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        if (PyDict_SetItem(*named, PyTuple_GET_ITEM(names, i), values[count + i]) < 0) {
            Py_CLEAR(*args);
            Py_CLEAR(*named);
            return -1;
        }
    }
    return 0;
}

/* Find the whole number of nanoseconds from which Python makes these seconds. 0 where there is none. */
static int
nanoseconds(double seconds, int64_t *out)
{
    if (!(fabs(seconds) < 9e9)) {
        return 0;
    }
    double wide = seconds * 1e9;
    *out = (int64_t)llrint(wide);
    for (int64_t near = -1; near <= 1; near++) {
        if ((double)(*out + near) / 1e9 == seconds) {
            *out += near;
            return 1;
        }
    }
    /* From 2^53 on, a double is a multiple of a power of two. */
    *out = (int64_t)(llrint(wide / 256) * 256);
    return (double)*out / 1e9 == seconds;
}

static int64_t
days_before(int year, int month, int day)
{
    year -= month <= 2;
    int era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return (int64_t)era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Turn a date or a time into nanoseconds: of UTC where it knows its zone, else as it is; one more where its fold is set.
 * 1, 0 where it cannot be said in a number, -1 with an error set. */
static int
moment(PyObject *result, int64_t *out)
{
    if (!PyDate_Check(result)) {
        return 0;
    }
    int64_t seconds =
        days_before(PyDateTime_GET_YEAR(result), PyDateTime_GET_MONTH(result), PyDateTime_GET_DAY(result)) * 86400;
    int64_t micro = 0, fold = 0;
    if (PyDateTime_Check(result)) {
        seconds += PyDateTime_DATE_GET_HOUR(result) * 3600 + PyDateTime_DATE_GET_MINUTE(result) * 60 +
                   PyDateTime_DATE_GET_SECOND(result);
        micro = PyDateTime_DATE_GET_MICROSECOND(result);
        fold = PyDateTime_DATE_GET_FOLD(result);
        PyObject *zone = PyDateTime_DATE_GET_TZINFO(result);
        if (zone != Py_None) {
            fold = 0;
            if (zone != PyDateTime_TimeZone_UTC) {
                PyObject *offset = PyObject_CallMethod(result, "utcoffset", NULL);
                if (offset == NULL) {
                    return -1;
                }
                if (PyDelta_Check(offset)) {
                    seconds -= (int64_t)PyDateTime_DELTA_GET_DAYS(offset) * 86400 + PyDateTime_DELTA_GET_SECONDS(offset);
                    micro -= PyDateTime_DELTA_GET_MICROSECONDS(offset);
                }
                Py_DECREF(offset);
            }
        }
    }
    if (llabs(seconds) > 9000000000) {
        return 0;
    }
    *out = (seconds * 1000000 + micro) * 1000 + fold;
    return 1;
}

/* Keep a whole number, as its bytes where it is for random ones. -1 with an error set. */
static int
keep_bits(Pack *pack, PyObject *of, PyObject *by, PyObject *number)
{
    PyObject *bits = PyObject_CallMethod(number, "bit_length", NULL);
    if (bits == NULL) {
        return -1;
    }
    Py_ssize_t size = (PyLong_AsSsize_t(bits) + 7) / 8;
    Py_DECREF(bits);
    PyObject *bytes = PyObject_CallMethod(number, "to_bytes", "ns", size, "little");
    if (bytes == NULL) {
        return -1;
    }
    int done = add_bytes(pack, of, by, PyBytes_AS_STRING(bytes), size);
    Py_DECREF(bytes);
    return done;
}

static int
keep_buffer(Pack *pack, PyObject *of, PyObject *by, PyObject *bytes)
{
    if (bytes == NULL || !PyBytes_Check(bytes)) {
        return 0;
    }
    return add_bytes(pack, of, by, PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
}

/* Keep what a function gave back. -1 with an error set. */
static int
keep(Slot *slot, Pack *pack, PyObject *of, PyObject *by, PyObject *result)
{
    int64_t number = 0;
    int known;
    switch (slot->what) {
    case SECONDS:
        known = PyFloat_Check(result) && nanoseconds(PyFloat_AS_DOUBLE(result), &number);
        return known ? add_number(pack, of, by, NS, number) : add_value(pack, of, by, result, 20);
    case NANOSECONDS:
    case NUMBER:
        number = PyLong_AsLongLong(result);
        if (number == -1 && PyErr_Occurred()) {
            PyErr_Clear(); /* larger than that, or no number at all */
            return add_value(pack, of, by, result, 24);
        }
        return add_number(pack, of, by, slot->what == NANOSECONDS ? NS : INT, number);
    case MOMENT:
        if (of == slot->of && PyDateTime_Check(result)) { /* one name for each thing that it can be */
            of = PyDateTime_DATE_GET_TZINFO(result) != Py_None ? zoned_text : of == today_text ? now_text : of;
        }
        known = moment(result, &number);
        return known < 0 ? -1 : known ? add_number(pack, of, by, NS, number) : 0;
    case RAW:
        return keep_buffer(pack, of, by, result);
    case UNIT: {
        char unit[8];
        if (!PyFloat_Check(result) || PyFloat_Pack8(PyFloat_AS_DOUBLE(result), unit, 1) < 0) {
            return -1;
        }
        return add_bytes(pack, of, by, unit, sizeof unit);
    }
    case BITS:
        return PyLong_Check(result) ? keep_bits(pack, of, by, result) : 0;
    case UUID: {
        PyObject *bytes = PyObject_GetAttr(result, bytes_text);
        int done = bytes == NULL ? -1 : keep_buffer(pack, of, by, bytes);
        Py_XDECREF(bytes);
        return done;
    }
    case FIRST_RAW:
        return PyTuple_Check(result) && PyTuple_GET_SIZE(result) ? keep_buffer(pack, of, by, PyTuple_GET_ITEM(result, 0))
                                                                 : 0;
    default:
        return 0;
    }
}

/* Say what went wrong, and let the program have what it asked for: 0. What is no mistake of ours, an interrupt say, or what
 * is meant for the program, is its own: -1 with that error set. */
static int
complain(void)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL) {
        PyException_SetTraceback(value, trace);
    }
    PyObject *done = PyObject_CallOneArg(problem, value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (done == NULL) {
        return -1;
    }
    Py_DECREF(done);
    return 0;
}

static PyObject *clock_now, *localtime_code, *urandom_code; /* the originals, called where a source is replaced */

static int64_t skipped_ns; /* time that a replay has jumped over: for what waits below the program, it has passed */

/* Add that to what a clock says to those who wait in the name of the program. Steals the reference. */
static PyObject *
with_skipped(Slot *slot, PyObject *result)
{
    if (result == NULL || skipped_ns == 0 || (slot->what != SECONDS && slot->what != NANOSECONDS) ||
        strncmp(PyUnicode_AsUTF8(slot->of), "time.monotonic", 14) != 0) {
        return result;
    }
    PyObject *later = NULL;
    if (PyFloat_Check(result)) {
        later = PyFloat_FromDouble(PyFloat_AS_DOUBLE(result) + (double)skipped_ns / 1e9);
    }
    else {
        int64_t now = PyLong_AsLongLong(result);
        later = PyErr_Occurred() ? NULL : PyLong_FromLongLong(now + skipped_ns);
    }
    Py_DECREF(result);
    return later;
}

static PyObject *answer; /* what to ask before the world is asked: a replay answers; None without one */

/* Ask a replay what a function gave back when it was recorded. A new reference, Py_NotImplemented where it does not know or
 * there is none, NULL with the error set that was raised then. */
static PyObject *
answered(Slot *slot, Given *given, Pack *pack, PyObject *of, PyObject *by)
{
    PyObject *args, *named, *found = NULL;
    if (answer == Py_None) {
        return Py_NewRef(Py_NotImplemented);
    }
    PyObject *what = PyLong_FromLong(slot->what);
    PyObject *owner = given->self != NULL ? given->self : Py_None; /* functions of Rust belong to nothing */
    if (what != NULL && arguments(slot, given, &args, &named) == 0) {
        found = PyObject_CallFunctionObjArgs(answer, of, by, (PyObject *)pack, what, owner, args, named, NULL);
        Py_DECREF(args);
        Py_DECREF(named);
    }
    Py_XDECREF(what);
    return found;
}

/* Read the clock for a function that would read it by itself, and hand it over. NULL with an error set. */
static PyObject *
with_clock(Slot *slot, Given *given, Pack *pack, PyObject *of, PyObject *by)
{
    PyObject *args = (PyObject *)given->a, *now, *when, *result = NULL;
    Py_ssize_t place = PyTuple_CheckExact(args) && strcmp(slot->method->ml_name, "strftime") == 0;
    int by_tuple = place || strcmp(slot->method->ml_name, "asctime") == 0;
    if (slot->method->ml_flags != METH_VARARGS || !PyTuple_CheckExact(args) || PyTuple_GET_SIZE(args) < place ||
        (PyTuple_GET_SIZE(args) > place && (by_tuple || PyTuple_GET_ITEM(args, place) != Py_None))) {
        return invoke(slot, given);
    }
    now = answered(slot, given, pack, of, by);
    if (now == Py_NotImplemented) {
        Py_SETREF(now, PyObject_CallNoArgs(clock_now));
    }
    if (now == NULL) {
        return NULL;
    }
    int64_t number = PyLong_AsLongLong(now) / 1000000000 * 1000000000;
    Py_DECREF(now);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (add_number(pack, of, by, NS, number) < 0 && complain() < 0) {
        return NULL;
    }
    when = PyLong_FromLongLong(number / 1000000000);
    if (when != NULL && by_tuple) {
        Py_SETREF(when, PyObject_CallOneArg(localtime_code, when));
    }
    if (when == NULL) {
        return NULL;
    }
    PyObject *instead = place ? PyTuple_Pack(2, PyTuple_GET_ITEM(args, 0), when) : PyTuple_Pack(1, when);
    Py_DECREF(when);
    if (instead != NULL) {
        Given changed = *given;
        changed.a = instead;
        result = invoke(slot, &changed);
        Py_DECREF(instead);
    }
    return result;
}

/* Seed a generator that was to be seeded by chance, with chance that is kept. NULL with an error set. */
static PyObject *
with_seed(Slot *slot, Given *given, Pack *pack, PyObject *of, PyObject *by)
{
    PyObject *const *values = given->a;
    Py_ssize_t count = (Py_ssize_t)given->b;
    if (slot->method->ml_flags != METH_FASTCALL || count > 1 || (count == 1 && values[0] != Py_None)) {
        return invoke(slot, given);
    }
    PyObject *bytes = answered(slot, given, pack, of, by);
    if (bytes == Py_NotImplemented) {
        Py_SETREF(bytes, PyObject_CallFunction(urandom_code, "i", 32));
    }
    if (bytes == NULL || !PyBytes_Check(bytes)) {
        Py_XDECREF(bytes);
        return NULL;
    }
    PyObject *seed = PyObject_CallMethod((PyObject *)&PyLong_Type, "from_bytes", "Os", bytes, "little");
    if (seed != NULL && keep_buffer(pack, of, by, bytes) < 0 && complain() < 0) {
        Py_CLEAR(seed);
    }
    Py_DECREF(bytes);
    if (seed == NULL) {
        return NULL;
    }
    Given changed = *given;
    changed.a = &seed;
    changed.b = (void *)1;
    PyObject *result = invoke(slot, &changed);
    Py_DECREF(seed);
    return result;
}

/* Tell Python code of a call that has been made, or has failed. -1 with an error set where something else has to be raised. */
static int
tell(Slot *slot, Given *given, Pack *pack, PyObject *span, PyObject *of, PyObject *by, PyObject *result)
{
    PyObject *type = NULL, *error = NULL, *trace = NULL, *args, *named, *done = NULL;
    if (result == NULL) {
        PyErr_Fetch(&type, &error, &trace);
        PyErr_NormalizeException(&type, &error, &trace);
    }
    if (arguments(slot, given, &args, &named) == 0) {
        done = PyObject_CallFunctionObjArgs(slot->notice, of, by, (PyObject *)pack, span ? span : Py_None,
                                            given->self != NULL ? given->self : Py_None, args,
                                            named, result ? result : Py_None, error ? error : Py_None, NULL);
        Py_DECREF(args);
        Py_DECREF(named);
    }
    if (done == NULL && complain() < 0) {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(trace);
        return -1;
    }
    Py_XDECREF(done);
    if (result == NULL) {
        PyErr_Restore(type, error, trace);
    }
    return 0;
}

/* Say whether a call reads what comes from outside: a method of a file, or a function that is given its number. */
static int
of_stdin(Slot *slot, Given *given)
{
    int number;
    if (PyModule_Check(given->self)) {
        PyObject *const *values = given->a;
        number = slot->method->ml_flags == METH_FASTCALL && (Py_ssize_t)given->b > 0 && PyLong_Check(values[0])
                     ? (int)PyLong_AsLong(values[0])
                     : -1;
    }
    else {
        number = PyObject_AsFileDescriptor(given->self);
    }
    if (PyErr_Occurred()) {
        PyErr_Clear(); /* the function itself will say what is wrong */
    }
    return number == 0;
}

/* By identity: what is in the list must not be asked whether it is equal. */
static int
is_among(PyObject *list, PyObject *object)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        if (PyList_GET_ITEM(list, i) == object) {
            return 1;
        }
    }
    return 0;
}

/* Call something else instead of a function, whoever calls it: with the object as its first argument where it is a method. */
static PyObject *
replaced(Slot *slot, Given *given)
{
    PyObject *args, *named, *result = NULL;
    if (arguments(slot, given, &args, &named) < 0) {
        return NULL;
    }
    if (given->self != NULL && !PyModule_Check(given->self)) {
        PyObject *all = PyTuple_New(PyTuple_GET_SIZE(args) + 1);
        for (Py_ssize_t i = 0; all != NULL && i < PyTuple_GET_SIZE(all); i++) {
            PyTuple_SET_ITEM(all, i, Py_NewRef(i == 0 ? given->self : PyTuple_GET_ITEM(args, i - 1)));
        }
        Py_SETREF(args, all);
    }
    if (args != NULL) {
        result = PyObject_Call(slot->notice, args, named == Py_None ? NULL : named);
    }
    Py_XDECREF(args);
    Py_DECREF(named);
    return result;
}

static PyObject *
watched(Slot *slot, Given *given)
{
    if (slot->what == REPLACE) {
        return replaced(slot, given);
    }
    if (!watching || inside || (slot->only != NULL && !is_among(slot->only, given->self)) ||
        (slot->what == STDIN && !of_stdin(slot, given))) {
        return invoke(slot, given);
    }
    PyObject *span, *of = NULL, *by = NULL, *result;
    inside = 1;
    Pack *pack = pack_here(&span);
    int found = pack == NULL ? 0 : reader(PyEval_GetGlobals(), NULL, slot->of, &of, &by);
    if (PyErr_Occurred() && complain() < 0) {
        inside = 0;
        Py_XDECREF(pack);
        Py_XDECREF(span);
        return NULL;
    }
    if (found == 0 && pack != NULL && slot->what == STDIN) { /* there is one of it, whoever reads */
        of = Py_NewRef(slot->of);
        by = PyUnicode_FromString("");
        found = by == NULL ? -1 : 1;
    }
    if (found <= 0) {
        inside = 0;
        Py_XDECREF(pack);
        Py_XDECREF(span);
        return with_skipped(slot, invoke(slot, given));
    }
    if (pack->count == 0 && span != NULL) {
        Py_XSETREF(pack->span, Py_NewRef(span));
    }
    switch (slot->what) {
    case CLOCK_WHEN_MISSING:
        result = with_clock(slot, given, pack, of, by);
        break;
    case SEED:
        result = with_seed(slot, given, pack, of, by);
        break;
    case CALL:
    case STDIN:
        if ((result = answered(slot, given, pack, of, by)) == Py_NotImplemented) {
            Py_DECREF(result);
            inside = 0; /* it may call Python code, whose own reads are its own */
            result = invoke(slot, given);
            inside = 1;
        }
        if (tell(slot, given, pack, span, of, by, result) < 0) {
            Py_CLEAR(result);
        }
        break;
    default:
        if ((result = answered(slot, given, pack, of, by)) == Py_NotImplemented) {
            Py_DECREF(result);
            result = invoke(slot, given);
        }
        if (result != NULL && keep(slot, pack, of, by, result) < 0 && complain() < 0) {
            Py_CLEAR(result);
        }
    }
    inside = 0;
    Py_DECREF(pack);
    Py_XDECREF(span);
    Py_DECREF(of);
    Py_DECREF(by);
    return result;
}

/* One function for each slot: nothing else tells it which one it stands for. */
static Slot of_two[SLOTS], of_three[SLOTS], of_four[SLOTS], of_five[SLOTS];

#define FOR_ALL(X)                                                                                                        \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20)   \
    X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31) X(32) X(33) X(34) X(35) X(36) X(37) X(38) X(39)    \
    X(40) X(41) X(42) X(43) X(44) X(45) X(46) X(47) X(48) X(49) X(50) X(51) X(52) X(53) X(54) X(55) X(56) X(57) X(58)     \
    X(59) X(60) X(61) X(62) X(63)
#define TWO(n)                                                                                                            \
    static PyObject *two_##n(PyObject *self, void *a)                                                                     \
    {                                                                                                                     \
        Given given = {self, a, NULL, NULL, NULL};                                                                        \
        return watched(of_two + n, &given);                                                                               \
    }
#define THREE(n)                                                                                                          \
    static PyObject *three_##n(PyObject *self, void *a, void *b)                                                          \
    {                                                                                                                     \
        Given given = {self, a, b, NULL, NULL};                                                                           \
        return watched(of_three + n, &given);                                                                             \
    }
#define FOUR(n)                                                                                                           \
    static PyObject *four_##n(PyObject *self, void *a, void *b, void *c)                                                  \
    {                                                                                                                     \
        Given given = {self, a, b, c, NULL};                                                                              \
        return watched(of_four + n, &given);                                                                              \
    }
#define FIVE(n)                                                                                                           \
    static PyObject *five_##n(PyObject *self, void *a, void *b, void *c, void *d)                                         \
    {                                                                                                                     \
        Given given = {self, a, b, c, d};                                                                                 \
        return watched(of_five + n, &given);                                                                              \
    }
FOR_ALL(TWO)
FOR_ALL(THREE)
FOR_ALL(FOUR)
FOR_ALL(FIVE)

typedef void (*Code)(void);
#define NAME_TWO(n) (Code) two_##n,
#define NAME_THREE(n) (Code) three_##n,
#define NAME_FOUR(n) (Code) four_##n,
#define NAME_FIVE(n) (Code) five_##n,
static Code codes[4][SLOTS] = {{FOR_ALL(NAME_TWO)}, {FOR_ALL(NAME_THREE)}, {FOR_ALL(NAME_FOUR)}, {FOR_ALL(NAME_FIVE)}};
static Slot *const families[4] = {of_two, of_three, of_four, of_five};

static PyMethodDef *
method_of(PyObject *function)
{
    if (PyCFunction_Check(function)) {
        return ((PyCFunctionObject *)function)->m_ml;
    }
    if (Py_IS_TYPE(function, &PyMethodDescr_Type) || Py_IS_TYPE(function, &PyClassMethodDescr_Type)) {
        return ((PyMethodDescrObject *)function)->d_method;
    }
    PyErr_Format(PyExc_TypeError, "%R is not written in C", function);
    return NULL;
}

static PyObject *
hooks_watch(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *function, *of, *only = Py_None, *notice = Py_None;
    int what, family;
    if (!PyArg_ParseTuple(args, "OUi|OO", &function, &of, &what, &only, &notice)) {
        return NULL;
    }
    PyMethodDef *method = method_of(function);
    if (method == NULL) {
        return NULL;
    }
    if (only != Py_None && !PyList_Check(only)) {
        PyErr_SetString(PyExc_TypeError, "`only` is a list");
        return NULL;
    }
    switch (method->ml_flags & ~(METH_CLASS | METH_STATIC | METH_COEXIST)) {
    case METH_NOARGS:
    case METH_O:
    case METH_VARARGS:
        family = 0;
        break;
    case METH_VARARGS | METH_KEYWORDS:
    case METH_FASTCALL:
        family = 1;
        break;
    case METH_FASTCALL | METH_KEYWORDS:
        family = 2;
        break;
    case METH_METHOD | METH_FASTCALL | METH_KEYWORDS:
        family = 3;
        break;
    default:
        PyErr_Format(PyExc_TypeError, "%R is called in a way that is not known", function);
        return NULL;
    }
    for (int i = 0; i < SLOTS; i++) {
        if (method->ml_meth == (PyCFunction)codes[family][i]) {
            if (what == REPLACE && families[family][i].what != REPLACE) {
                PyErr_Format(PyExc_RuntimeError, "%R is watched already, and what is watched has to stay on top", function);
                return NULL;
            }
            if (what == REPLACE || families[family][i].what != REPLACE) {
                Py_RETURN_NONE; /* it is watched already: its module was loaded once more */
            }
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        Slot *slot = families[family] + i;
        /* One that was watched before gets its own again. */
        if (slot->method == NULL || (slot->method == method && (slot->what == REPLACE) == (what == REPLACE))) {
            Py_XSETREF(slot->of, Py_NewRef(of));
            PyUnicode_InternInPlace(&slot->of);
            Py_XSETREF(slot->only, only == Py_None ? NULL : Py_NewRef(only));
            Py_XSETREF(slot->notice, Py_NewRef(notice));
            slot->what = what;
            slot->original = method->ml_meth;
            slot->method = method;
            method->ml_meth = (PyCFunction)codes[family][i];
            Py_RETURN_NONE;
        }
    }
    PyErr_SetString(PyExc_RuntimeError, "no slot is free");
    return NULL;
}

/* Put everything back. A slot stays with its function: a thread may be inside of it. */
static PyObject *
hooks_restore(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    for (int family = 0; family < 4; family++) {
        for (int i = 0; i < SLOTS; i++) {
            Slot *slot = families[family] + i;
            if (slot->method != NULL && slot->what != REPLACE && slot->method->ml_meth == (PyCFunction)codes[family][i]) {
                slot->method->ml_meth = slot->original;
            }
        }
    }
    Py_RETURN_NONE;
}

/* Put back what was replaced, also from below what is watched. */
static PyObject *
hooks_put_back(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    for (int family = 0; family < 4; family++) {
        for (int i = 0; i < SLOTS; i++) {
            Slot *slot = families[family] + i;
            if (slot->method == NULL || slot->what != REPLACE) {
                continue;
            }
            PyCFunction code = (PyCFunction)codes[family][i];
            if (slot->method->ml_meth == code) {
                slot->method->ml_meth = slot->original;
            }
            for (int j = 0; j < SLOTS; j++) {
                Slot *above = families[family] + j;
                if (above->method == slot->method && above->what != REPLACE && above->original == code) {
                    above->original = slot->original;
                }
            }
        }
    }
    Py_RETURN_NONE;
}

/* Return a function that does what another one did before it was replaced. */
static PyObject *
hooks_original(PyObject *Py_UNUSED(module), PyObject *function)
{
    PyMethodDef *method = method_of(function);
    if (method == NULL) {
        return NULL;
    }
    for (int family = 0; family < 4; family++) {
        for (int i = 0; i < SLOTS; i++) {
            Slot *slot = families[family] + i;
            if (slot->method != method || slot->what != REPLACE) {
                continue;
            }
            PyMethodDef *plain = PyMem_Malloc(sizeof *plain); /* it lives as long as anybody may have the function */
            if (plain == NULL) {
                return PyErr_NoMemory();
            }
            *plain = *method;
            plain->ml_meth = slot->original;
            if (PyCFunction_Check(function)) {
                PyCFunctionObject *known = (PyCFunctionObject *)function;
                return PyCMethod_New(plain, PyCFunction_GET_SELF(function), known->m_module, PyCFunction_GET_CLASS(function));
            }
            return Py_IS_TYPE(function, &PyClassMethodDescr_Type)
                       ? PyDescr_NewClassMethod(PyDescr_TYPE(function), plain)
                       : PyDescr_NewMethod(PyDescr_TYPE(function), plain);
        }
    }
    return Py_NewRef(function);
}

static PyObject *
hooks_skip(PyObject *Py_UNUSED(module), PyObject *nanoseconds)
{
    int64_t more = PyLong_AsLongLong(nanoseconds);
    if (more == -1 && PyErr_Occurred()) {
        return NULL;
    }
    skipped_ns += more;
    Py_RETURN_NONE;
}

static PyObject *
hooks_answer_with(PyObject *Py_UNUSED(module), PyObject *given)
{
    Py_XSETREF(answer, Py_NewRef(given));
    Py_RETURN_NONE;
}

static PyObject *
hooks_listen(PyObject *Py_UNUSED(module), PyObject *arg)
{
    watching = PyLong_AsSsize_t(arg);
    return watching == -1 && PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *
hooks_process(PyObject *Py_UNUSED(module), PyObject *lane)
{
    Py_XSETREF(process_lane, Py_NewRef(lane));
    Py_RETURN_NONE;
}

/* Say where a read by the code of a frame would be kept: (of, by, pack, span); None where nowhere. */
static PyObject *
hooks_here(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *of, *frame, *span, *source = NULL, *by = NULL, *out = NULL;
    if (!PyArg_ParseTuple(args, "UO!", &of, &PyFrame_Type, &frame)) {
        return NULL;
    }
    if (!watching || inside) {
        Py_RETURN_NONE;
    }
    inside = 1;
    Pack *pack = pack_here(&span);
    int found = 0;
    if (pack != NULL) {
        PyObject *globals = PyFrame_GetGlobals((PyFrameObject *)frame);
        found = reader(globals, frame, of, &source, &by);
        Py_DECREF(globals);
    }
    inside = 0;
    if (found > 0) {
        out = PyTuple_Pack(4, source, by, (PyObject *)pack, span ? span : Py_None);
    }
    else if (!PyErr_Occurred()) {
        out = Py_NewRef(Py_None);
    }
    Py_XDECREF(source);
    Py_XDECREF(by);
    Py_XDECREF(pack);
    Py_XDECREF(span);
    return out;
}

static PyObject *
hooks_prepare(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given[9], *in_python, **into[9] = {&sorts,   &sort_of,   &current,        &ambient_lane, &muted,
                                                 &problem, &clock_now, &localtime_code, &urandom_code};
    if (!PyArg_ParseTuple(args, "O!OOOOOOOOO", &PyDict_Type, &given[0], &given[1], &in_python, &given[2], &given[3],
                          &given[4], &given[5], &given[6], &given[7], &given[8])) {
        return NULL;
    }
    for (int i = 0; i < 9; i++) {
        Py_XSETREF(*into[i], Py_NewRef(given[i]));
    }
    Py_RETURN_NONE;
}

/* The type of dates is asked for when it has arrived, not before. */
static PyObject *
hooks_know_dates(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (PyDateTimeAPI == NULL) {
        PyDateTime_IMPORT;
    }
    return PyDateTimeAPI == NULL ? NULL : Py_NewRef(Py_None);
}

/* ---- the collector: abandoned.py says why, and does the same in Python where this was not compiled ---- */

static int collects;            /* whether the collector works, */
static unsigned long collector; /* and in which thread */

#if PY_VERSION_HEX < 0x030C0000
#define OUTLIVING 32 /* more than there are allocations in setting one variable, each of which may call the collector */

typedef struct {
    PyObject_HEAD
    PyObject *before, *variables;
} Context; /* as in 3.11 */

static PyObject *held, *outliving[OUTLIVING];
static int next_outliving;

static PyObject *
variables_now(void)
{
    PyObject *context = PyThreadState_Get()->context;
    return context == NULL ? NULL : ((Context *)context)->variables;
}
#endif

static PyObject *
hooks_noticed(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *phase;
    PyObject *about;
    if (!PyArg_ParseTuple(args, "sO", &phase, &about)) {
        return NULL;
    }
    collects = strcmp(phase, "start") == 0;
    collector = PyThread_get_thread_ident();
#if PY_VERSION_HEX < 0x030C0000
    if (collects) {
        Py_XSETREF(held, Py_XNewRef(variables_now()));
    }
    else if (held != variables_now()) {      /* a finaliser has set one, and whoever is interrupted still reads these, */
        PyThreadState_Get()->context_ver++; /* and may undo that, so that no variable may rely on what it remembers */
        PyObject *oldest = outliving[next_outliving];
        outliving[next_outliving] = held;
        next_outliving = (next_outliving + 1) % OUTLIVING;
        held = NULL;
        Py_XDECREF(oldest);
    }
    else {
        Py_CLEAR(held);
    }
#endif
    Py_RETURN_NONE;
}

static PyObject *
hooks_collecting(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(collects && collector == PyThread_get_thread_ident());
}

/* ---- the code that Python is about to exit with, which it tells nobody ---- */

static getattrofunc attribute_of_exit;
static destructor end_of_exit;
static unsigned long main_thread;
static int exit_known, exit_number, exit_decided;
static PyObject *exit_text;

/* Only the text is kept of what is not a number: all else has to be gone when it would without us. */
static void
will_exit(PyObject *code)
{
    int overflow; /* then the number is -1, as it is for Python */
    exit_known = 1;
    exit_number = PyLong_Check(code) ? (int)PyLong_AsLongAndOverflow(code, &overflow) & 0xff : code != Py_None;
    Py_XSETREF(exit_text, PyUnicode_CheckExact(code) ? Py_NewRef(code) : NULL);
}

/* Say whether the main thread runs no code of Python's: it has none to do yet, or none any more. */
static int
has_ended(void)
{
    return !exit_decided && PyThread_get_thread_ident() == main_thread && PyEval_GetFrame() == NULL;
}

/* The interpreter asks an exception that has left the program for its code. */
static PyObject *
asked_of_exit(PyObject *self, PyObject *name)
{
    PyObject *code = attribute_of_exit(self, name);
    if (code != NULL && PyUnicode_CompareWithASCIIString(name, "code") == 0 && has_ended()) {
        will_exit(code);
    }
    return code;
}

/* And forgets it then. A class below SystemExit is asked in ways of its own, and forgotten by this one too. */
static void
forgotten_exit(PyObject *self)
{
    PyObject *code = ((PySystemExitObject *)self)->code;
    if (!exit_known && code != NULL && has_ended()) {
        will_exit(code);
    }
    end_of_exit(self);
}

#if PY_VERSION_HEX < 0x030C0000
static _PyCFunctionFast exit_function;

/* `sys.exit` raises the mere code, of which an exception is made only where somebody might catch it. */
static PyObject *
exiting(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyObject *type, *value, *traceback, *none = exit_function(module, args, count);
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyErr_Restore(type, value, traceback);
    return none;
}
#endif

static PyObject *
hooks_watch_exit(PyObject *Py_UNUSED(module), PyObject *thread)
{
    PyTypeObject *type = (PyTypeObject *)PyExc_SystemExit;
    main_thread = PyLong_AsUnsignedLong(thread);
    if (PyErr_Occurred()) {
        return NULL;
    }
#if PY_VERSION_HEX < 0x030C0000
    PyObject *function = PySys_GetObject("exit"); /* the program may have put another in its place */
    if (function != NULL && PyCFunction_Check(function)) {
        PyMethodDef *method = ((PyCFunctionObject *)function)->m_ml;
        if (method->ml_flags == METH_FASTCALL && method->ml_meth != (PyCFunction)(void (*)(void))exiting) {
            exit_function = (_PyCFunctionFast)(void (*)(void))method->ml_meth;
            method->ml_meth = (PyCFunction)(void (*)(void))exiting;
        }
    }
#endif
    if (type->tp_getattro != asked_of_exit) {
        attribute_of_exit = type->tp_getattro;
        end_of_exit = type->tp_dealloc;
        type->tp_getattro = asked_of_exit;
        type->tp_dealloc = forgotten_exit;
    }
    Py_RETURN_NONE;
}

/* What functions of `atexit` raise from now on changes nothing. */
static PyObject *
hooks_decide_exit(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    exit_decided = 1;
    Py_RETURN_NONE;
}

static PyObject *
hooks_exit(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (!exit_known) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("iO", exit_number, exit_text ? exit_text : Py_None);
}

/* ---- objects that are hashed by the order in which they were first asked for it: hashing.py says why ---- */

static PyObject *hash_text;
static Py_hash_t next_hash = 1;

static Py_hash_t
hash_in_order(PyObject *self)
{
    PyObject *known = PyObject_GetAttr(self, hash_text);
    if (known == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return -1;
        }
        PyErr_Clear();
        known = PyLong_FromSsize_t(next_hash++);
        if (known == NULL || PyObject_SetAttr(self, hash_text, known) < 0) {
            Py_XDECREF(known);
            return -1;
        }
    }
    Py_hash_t hash = PyLong_AsSsize_t(known);
    Py_DECREF(known);
    return hash;
}

static PyObject *
hooks_hash_by_order(PyObject *Py_UNUSED(module), PyObject *type)
{
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "not a type");
        return NULL;
    }
    ((PyTypeObject *)type)->tp_hash = hash_in_order;
    PyType_Modified((PyTypeObject *)type);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"hash_by_order", hooks_hash_by_order, METH_O, "Hash the objects of a type by the order in which they were made."},
    {"prepare", hooks_prepare, METH_VARARGS, "Take what is needed of Python, once."},
    {"watch", hooks_watch, METH_VARARGS, "Watch a function: (function, of, what, only, notice)."},
    {"restore", hooks_restore, METH_NOARGS, "Watch nothing any more."},
    {"put_back", hooks_put_back, METH_NOARGS, "Put back what was replaced."},
    {"original", hooks_original, METH_O, "Return what a function was before it was replaced."},
    {"skip", hooks_skip, METH_O, "Let time have passed, in nanoseconds, for those who wait below the program."},
    {"answer_with", hooks_answer_with, METH_O, "Ask this before the world: (of, by, pack, what, self, args, kwargs)."},
    {"listen", hooks_listen, METH_O, "Say how many want to know; with 0 nothing is looked at."},
    {"process", hooks_process, METH_O, "Give the lane of what no context has a lane for; None for none."},
    {"here", hooks_here, METH_VARARGS, "Say where a read by a frame would be kept: (of, by, pack, span), or None."},
    {"know_dates", hooks_know_dates, METH_NOARGS, "Get to know the type of dates, which has been imported."},
    {"noticed", hooks_noticed, METH_VARARGS, "Take notice of the collector; one of `gc.callbacks`."},
    {"collecting", hooks_collecting, METH_NOARGS, "Say whether the collector works in this thread."},
    {"watch_exit", hooks_watch_exit, METH_O, "Notice the code with which SystemExit will end Python, in this thread."},
    {"decide_exit", hooks_decide_exit, METH_NOARGS, "Take the code as it is now."},
    {"exit", hooks_exit, METH_NOARGS, "Return that code, and the text that was given instead of one; None for none."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "playhead.capture._hooks",
    .m_doc = "Watch functions that are written in C, whoever has a reference to them.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__hooks(void)
{
    name_text = PyUnicode_InternFromString("__name__");
    reads_text = PyUnicode_InternFromString("reads");
    bytes_text = PyUnicode_InternFromString("bytes");
    zoned_text = PyUnicode_InternFromString("datetime.datetime.now(tz)");
    today_text = PyUnicode_InternFromString("datetime.date.today");
    now_text = PyUnicode_InternFromString("datetime.datetime.today");
    unnamed_text = PyUnicode_InternFromString("?");
    hash_text = PyUnicode_InternFromString("_playhead_hash");
    process_lane = Py_NewRef(Py_None);
    answer = Py_NewRef(Py_None);
    ways = PyDict_New();
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || name_text == NULL || reads_text == NULL || bytes_text == NULL || zoned_text == NULL || today_text == NULL || now_text == NULL ||
        unnamed_text == NULL || hash_text == NULL || ways == NULL ||
        PyModule_AddType(module, &TapType) < 0 || PyModule_AddType(module, &PackType) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
