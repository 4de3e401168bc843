/* The inner loops of recording that cost most in Python. survey.py and capture/redact.py have the same in
 * Python, which are used where this was not compiled; a test compares the two. Nothing here calls back into Python code:
 * only exact built-in types are looked at, so no object can change while it is read. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

/* Whether one of the needles stands in the data; -1 with an error set. A needle is a pair: its bytes, and one of them that
 * the data hardly ever holds, since only around that is there anything to compare. */
static int
contains_any(const char *data, Py_ssize_t size, PyObject *needles)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(needles); i++) {
        PyObject *pair = PyTuple_GET_ITEM(needles, i);
        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyBytes_CheckExact(PyTuple_GET_ITEM(pair, 0)) ||
            !PyBytes_CheckExact(PyTuple_GET_ITEM(pair, 1))) {
            PyErr_SetString(PyExc_TypeError, "a telling needle is a pair of bytes");
            return -1;
        }
        const char *needle = PyBytes_AS_STRING(PyTuple_GET_ITEM(pair, 0));
        const char *rare = PyBytes_AS_STRING(PyTuple_GET_ITEM(pair, 1));
        Py_ssize_t length = PyBytes_GET_SIZE(PyTuple_GET_ITEM(pair, 0)), one = PyBytes_GET_SIZE(PyTuple_GET_ITEM(pair, 1));
        if (length == 0) {
            return 1;
        }
        const char *in_needle = one == 1 ? memchr(needle, rare[0], length) : NULL;
        if (in_needle == NULL) {
            PyErr_SetString(PyExc_ValueError, "a telling needle comes with one of its bytes");
            return -1;
        }
        Py_ssize_t before = in_needle - needle, after = length - before - 1;
        const char *at = data + before, *stop = data + size - after;
        while (at < stop && (at = memchr(at, rare[0], stop - at)) != NULL) {
            if (memcmp(at - before, needle, length) == 0) {
                return 1;
            }
            at++;
        }
    }
    return 0;
}

/* Strings of bytes, in chains by a hash of two of their bytes. One tuple of them is used again and again, so what was made of
 * it is kept until another one comes. */
#define PAIR(text) (((text)[0] * 7 + (text)[1]) & 255)

typedef struct {
    PyObject *tuple;
    int first[256], *next; /* places in the tuple, from 1 on; 0 ends a chain */
} Chains;

/* Make the chains of a tuple, by the first two bytes of each string or by its last two. -1 with an error set. */
static int
chain(Chains *chains, PyObject *tuple, int by_end)
{
    if (chains->tuple == tuple) {
        return 0;
    }
    Py_CLEAR(chains->tuple);
    memset(chains->first, 0, sizeof chains->first);
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    int *next = PyMem_Realloc(chains->next, (count + 1) * sizeof *next);
    if (next == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    chains->next = next;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        if (!PyBytes_CheckExact(item) || PyBytes_GET_SIZE(item) < 2) {
            PyErr_SetString(PyExc_ValueError, "expected strings of two bytes or more");
            return -1;
        }
        const unsigned char *text = (const unsigned char *)PyBytes_AS_STRING(item);
        int *head = chains->first + PAIR(by_end ? text + PyBytes_GET_SIZE(item) - 2 : text);
        chains->next[i] = *head;
        *head = (int)(i + 1);
    }
    chains->tuple = Py_NewRef(tuple);
    return 0;
}

static Chains needle_chains, word_chains;

/* Where the first needle of a run begins; -1 if there is none. */
static Py_ssize_t
find_needle(const unsigned char *run, Py_ssize_t size)
{
    for (Py_ssize_t at = 0; at + 1 < size; at++) {
        for (int i = needle_chains.first[PAIR(run + at)]; i; i = needle_chains.next[i - 1]) {
            PyObject *needle = PyTuple_GET_ITEM(needle_chains.tuple, i - 1);
            Py_ssize_t length = PyBytes_GET_SIZE(needle);
            if (length <= size - at && memcmp(run + at, PyBytes_AS_STRING(needle), length) == 0) {
                return at;
            }
        }
    }
    return -1;
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

/* Where the next run begins that may begin at `at` or later; `size` if there is none. `open` says how many key-like bytes
 * stand just before `at`. */
static Py_ssize_t
next_run_plainly(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t at, Py_ssize_t open)
{
    /* A window of RUN bytes is read from its end, and moved behind the last byte that is not key-like: most bytes are
     * never read. */
    for (at -= open; at + RUN <= size;) {
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

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

static int has_avx2;

/* The same, 32 bytes at a time. A byte is key-like where the bits of its two halves have one in common: a bit stands for the
 * rows of the ASCII table that hold key-like bytes in the same columns. */
__attribute__((target("avx2"))) static Py_ssize_t
next_run_by_32(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t at)
{
    /* rows 2: + - /  (1); 3: 0-9 = (2); 4 and 6: 1-15 (4); 5: 0-10 _ (8); 7: 0-10 (16) */
    const __m128i columns = _mm_setr_epi8(26, 30, 30, 30, 30, 30, 30, 30, 30, 30, 28, 5, 4, 7, 4, 13);
    const __m128i rows = _mm_setr_epi8(0, 0, 1, 2, 4, 8, 4, 16, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i by_column = _mm256_broadcastsi128_si256(columns), by_row = _mm256_broadcastsi128_si256(rows);
    const __m256i half = _mm256_set1_epi8(15);
    Py_ssize_t open = 0;
    for (; at + 32 <= size; at += 32) {
        __m256i text = _mm256_loadu_si256((const __m256i *)(bytes + at));
        __m256i low = _mm256_shuffle_epi8(by_column, text); /* 0 for bytes from 128 on */
        __m256i high = _mm256_shuffle_epi8(by_row, _mm256_and_si256(_mm256_srli_epi16(text, 4), half));
        __m256i none = _mm256_cmpeq_epi8(_mm256_and_si256(low, high), _mm256_setzero_si256());
        uint32_t others = (uint32_t)_mm256_movemask_epi8(none);
        if (open + (others ? __builtin_ctz(others) : 32) >= RUN) {
            return at - open;
        }
        uint32_t inside = ~others; /* becomes the places at which RUN key-like bytes begin */
        inside &= inside >> 1;
        inside &= inside >> 2;
        inside &= inside >> 4;
        inside &= inside >> 8;
        if (inside) {
            return at + __builtin_ctz(inside);
        }
        open = __builtin_clz(others);
    }
    return next_run_plainly(bytes, size, at, open);
}

static Py_ssize_t
next_run(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t at)
{
    return has_avx2 ? next_run_by_32(bytes, size, at) : next_run_plainly(bytes, size, at, 0);
}
#else
static Py_ssize_t
next_run(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t at)
{
    return next_run_plainly(bytes, size, at, 0);
}
#endif

/* find_runs(data, needles, before, long_from, telling) -> [(start, end, needle), …]: the runs of RUN or more key-like bytes
 * that are worth a look: one of the needles stands in it, one of the bytes of `before` stands before it, or it has `long_from`
 * bytes or more. `needle` is where the first needle begins, -1 where there is none; of LONG bytes or more it is the start,
 * unseen. None where one of the telling needles (see contains_any) stands anywhere. */
#define LONG 2048

static PyObject *
find_runs(PyObject *module, PyObject *args)
{
    const unsigned char *bytes, *before;
    Py_ssize_t size, before_size, long_from;
    PyObject *needles, *telling;
    if (!PyArg_ParseTuple(args, "y#O!y#nO!", &bytes, &size, &PyTuple_Type, &needles, &before, &before_size, &long_from,
                          &PyTuple_Type, &telling)) {
        return NULL;
    }
    int told = contains_any((const char *)bytes, size, telling);
    if (told) {
        return told < 0 ? NULL : Py_NewRef(Py_None);
    }
    if (chain(&needle_chains, needles, 0) < 0) {
        return NULL;
    }
    PyObject *runs = PyList_New(0);
    Py_ssize_t end, first = next_run(bytes, size, 0);
    for (; runs != NULL && first < size; first = next_run(bytes, size, end)) {
        for (end = first + RUN; end < size && is_keylike(bytes[end]); end++) {
        }
        Py_ssize_t needle = end - first >= LONG ? 0 : find_needle(bytes + first, end - first);
        if (needle >= 0 || end - first >= long_from ||
            (first && before_size && memchr(before, bytes[first - 1], before_size))) {
            PyObject *run = Py_BuildValue("(nnn)", first, end, needle < 0 ? needle : first + needle);
            if (run == NULL || PyList_Append(runs, run) < 0) {
                Py_CLEAR(runs);
            }
            Py_XDECREF(run);
        }
    }
    return runs;
}

/* A byte as names of secrets are compared: small letters, and one sign between words. */
static unsigned char
folded(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte == '-' || byte == ' ' ? '_' : byte;
}

/* Whether one of the words, folded, ends just before `end`. */
static int
ends_with_word(const unsigned char *bytes, Py_ssize_t end)
{
    if (end < 2) {
        return 0;
    }
    unsigned char pair[2] = {folded(bytes[end - 2]), folded(bytes[end - 1])};
    for (int i = word_chains.first[PAIR(pair)]; i; i = word_chains.next[i - 1]) {
        PyObject *word = PyTuple_GET_ITEM(word_chains.tuple, i - 1);
        Py_ssize_t length = PyBytes_GET_SIZE(word), at = length;
        const unsigned char *letters = (const unsigned char *)PyBytes_AS_STRING(word);
        if (length > end) {
            continue;
        }
        while (at > 0 && folded(bytes[end - length + at - 1]) == letters[at - 1]) {
            at--;
        }
        if (at == 0) {
            return 1;
        }
    }
    return 0;
}

#define AROUND 32 /* quotes, backslashes and blanks that may stand around a sign of assignment */
#define VALUE 3   /* characters that a value has at least */

static int
is_around(unsigned char byte)
{
    return byte == ' ' || byte == '"' || byte == '\'' || byte == '\\';
}

/* Whether a value stands at `at`, after quotes and the like. */
static int
value_follows(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t at)
{
    for (Py_ssize_t most = at + AROUND; at < size && at < most; at++) {
        if (!is_around(bytes[at]) && bytes[at] != '=' && bytes[at] != ':' && bytes[at] != '>') {
            break;
        }
    }
    Py_ssize_t end = at;
    while (end < size && end - at < VALUE && bytes[end] > ' ' && !is_around(bytes[end])) {
        end++;
    }
    return end - at == VALUE;
}

/* Whether a word ends before the sign of assignment that stands from `sign` to `after`, and a value follows. */
static int
assigns(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t sign, Py_ssize_t after)
{
    Py_ssize_t end = sign, least = sign > AROUND ? sign - AROUND : 0;
    while (end > least && (is_around(bytes[end - 1]) || bytes[end - 1] == ']')) {
        end--;
    }
    return ends_with_word(bytes, end) && value_follows(bytes, size, after);
}

/* Whether an option of a command line begins at `at`, with a dash, whose value may be secret. */
static int
is_secret_option(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t at)
{
    Py_ssize_t end = at + 1;
    if (end < size && bytes[end] == 'u' && end + 1 < size && is_around(bytes[end + 1])) { /* -u user:password */
        while (end + 1 < size && end - at < AROUND && (is_around(bytes[end + 1]) || bytes[end + 1] == ',')) {
            end++;
        }
        while (end + 1 < size && bytes[end + 1] > ' ' && !is_around(bytes[end + 1])) {
            if (bytes[++end] == ':') {
                return 1;
            }
        }
        return 0;
    }
    while (end < size && end - at < 80 && (is_keylike(bytes[end]) && bytes[end] != '=' && bytes[end] != '/')) {
        end++;
    }
    return end - at > 3 && end < size && (is_around(bytes[end]) || bytes[end] == '=') && ends_with_word(bytes, end);
}

/* Whether the sign at `place` stands between a word and what it names. In JSON the colon after a key does not count. */
static int
tells(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t place, int json)
{
    const unsigned char *at = bytes + place;
    switch (*at) {
    case ':':
        if (json && place > 1 && at[-1] == '"' && at[-2] != '\\') {
            return 0;
        }
        return assigns(bytes, size, place, place + 1);
    case '=':
        return assigns(bytes, size, place, place + 1);
    case '%':
        return place + 2 < size && at[1] == '3' && ((at[2] | 0x20) == 'd' || (at[2] | 0x20) == 'a') &&
               assigns(bytes, size, place, place + 3);
    default:
        return place + 1 < size && (at[1] == '-' || at[1] == 'u') && (place == 0 || !is_keylike(at[-1])) &&
               is_secret_option(bytes, size, place);
    }
}

static int
any_tells(const unsigned char *bytes, Py_ssize_t size, Py_ssize_t from, int json)
{
    for (Py_ssize_t at = from; at < size; at++) {
        unsigned char byte = bytes[at];
        if ((byte == ':' || byte == '=' || byte == '%' || byte == '-') && tells(bytes, size, at, json)) {
            return 1;
        }
    }
    return 0;
}

#if defined(__x86_64__) && defined(__GNUC__)
/* The same, 32 bytes at a time. */
__attribute__((target("avx2"))) static int
any_tells_by_32(const unsigned char *bytes, Py_ssize_t size, int json)
{
    const __m256i colon = _mm256_set1_epi8(':'), equals = _mm256_set1_epi8('=');
    const __m256i percent = _mm256_set1_epi8('%'), dash = _mm256_set1_epi8('-');
    Py_ssize_t at = 0;
    for (; at + 32 <= size; at += 32) {
        __m256i text = _mm256_loadu_si256((const __m256i *)(bytes + at));
        __m256i found = _mm256_or_si256(
            _mm256_or_si256(_mm256_cmpeq_epi8(text, colon), _mm256_cmpeq_epi8(text, equals)),
            _mm256_or_si256(_mm256_cmpeq_epi8(text, percent), _mm256_cmpeq_epi8(text, dash)));
        for (uint32_t signs = (uint32_t)_mm256_movemask_epi8(found); signs; signs &= signs - 1) {
            if (tells(bytes, size, at + __builtin_ctz(signs), json)) {
                return 1;
            }
        }
    }
    return any_tells(bytes, size, at, json);
}
#endif

/* names_secret(data, words, json) -> bool: whether one of the words, which are folded, names something that follows it: after
 * `=` or `:`, after their percent-encodings, or as the option of a command line. With `json` the keys of objects are left out:
 * who asks has looked at them. */
static PyObject *
names_secret(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_Check(args[0]) || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "names_secret needs bytes, a tuple of words, and whether it is JSON");
        return NULL;
    }
    if (chain(&word_chains, args[1], 1) < 0) {
        return NULL;
    }
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(args[0]);
    Py_ssize_t size = PyBytes_GET_SIZE(args[0]);
    int json = args[2] == Py_True;
#if defined(__x86_64__) && defined(__GNUC__)
    return PyBool_FromLong(has_avx2 ? any_tells_by_32(bytes, size, json) : any_tells(bytes, size, 0, json));
#else
    return PyBool_FromLong(any_tells(bytes, size, 0, json));
#endif
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

#define LANES 4 /* of 8 bytes, hashed side by side */

/* A key for a long text: a hash of all of it, several times faster than that of a dict. Equal texts have equal keys, below
 * zero; texts with equal keys may differ, and whoever finds one compares. */
static PyObject *
key_of(PyObject *text)
{
    Py_ssize_t size = PyUnicode_GET_LENGTH(text) * PyUnicode_KIND(text);
    const char *data = PyUnicode_DATA(text);
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t lanes[LANES] = {odd, (uint64_t)size, ~odd, PyUnicode_KIND(text)}, hash = 0;
    for (Py_ssize_t at = 0;;) {
        for (int i = 0; i < LANES; i++) {
            uint64_t word;
            memcpy(&word, data + at + 8 * i, 8);
            lanes[i] = (lanes[i] ^ word) * odd;
            lanes[i] ^= lanes[i] >> 47;
        }
        if (at == size - 8 * LANES) {
            break;
        }
        at = at + 16 * LANES <= size ? at + 8 * LANES : size - 8 * LANES; /* the last step overlaps the one before */
    }
    for (int i = 0; i < LANES; i++) {
        hash = (hash ^ lanes[i]) * odd;
        hash ^= hash >> 29;
    }
    return PyLong_FromLongLong(-(long long)(hash >> 2) - 1);
}

/* text_key(text) -> int: see key_of. */
static PyObject *
text_key(PyObject *module, PyObject *text)
{
    if (!PyUnicode_CheckExact(text) || PyUnicode_GET_LENGTH(text) < 8 * LANES) {
        PyErr_SetString(PyExc_ValueError, "text_key needs a long text");
        return NULL;
    }
    return key_of(text);
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
            PyObject *key = key_of(item);
            int failed = key == NULL || PyList_Append(longs, key) < 0;
            Py_XDECREF(key);
            return failed ? -1 : 0;
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
 * is not plain as far as can be told here: the keys of its texts over `min`, its arrays that may be over it and do not begin with such a
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
    if (min < 8 * LANES) {
        PyErr_SetString(PyExc_ValueError, "survey needs a longer limit for long texts");
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

/* Measure one value and note the containers over `min` by their address; -1 with an error set. The value was surveyed;
 * another thread may have changed it since, so that `room` bounds the depth once more. */
static Py_ssize_t
measure(PyObject *value, Py_ssize_t min, Py_ssize_t room, PyObject *big)
{
    if (PyUnicode_CheckExact(value)) {
        return PyUnicode_GET_LENGTH(value);
    }
    int is_dict = PyDict_CheckExact(value);
    if ((!is_dict && !PyList_CheckExact(value)) || room == 0) {
        return 8;
    }
    Py_ssize_t size = is_dict ? 10 * PyDict_GET_SIZE(value) : 2 + PyList_GET_SIZE(value);
    if (is_dict) {
        PyObject *key, *item;
        Py_ssize_t position = 0;
        while (PyDict_Next(value, &position, &key, &item)) {
            if (PyUnicode_CheckExact(item) || PyDict_CheckExact(item) || PyList_CheckExact(item)) {
                Py_ssize_t inner = measure(item, min, room - 1, big);
                if (inner < 0) {
                    return -1;
                }
                size += inner;
            }
            else if (PyFloat_CheckExact(item)) {
                size += 8;
            }
        }
    }
    else {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++) {
            PyObject *item = PyList_GET_ITEM(value, i);
            Py_ssize_t inner = measure(item, min, room - 1, big);
            if (inner < 0) {
                return -1;
            }
            size += inner + (PyUnicode_CheckExact(item) ? 2 : 0);
        }
    }
    if (size > min) {
        PyObject *address = PyLong_FromVoidPtr(value), *number = PyLong_FromSsize_t(size);
        int failed = address == NULL || number == NULL || PyDict_SetItem(big, address, number) < 0;
        Py_XDECREF(address);
        Py_XDECREF(number);
        if (failed) {
            return -1;
        }
    }
    return size;
}

/* sizes(value, min, depth_max) -> {id of a container: its approximate size} for all that are over `min`. */
static PyObject *
sizes(PyObject *module, PyObject *args)
{
    PyObject *value;
    Py_ssize_t min, depth_max;
    if (!PyArg_ParseTuple(args, "O!nn", &PyDict_Type, &value, &min, &depth_max)) {
        return NULL;
    }
    PyObject *big = PyDict_New();
    if (big != NULL && measure(value, min, depth_max, big) < 0) {
        Py_CLEAR(big);
    }
    return big;
}

/* Append a value and where it stands, a chain of (what that is in, name or number) that ends with None. -1 with an error set. */
static int
note_place(PyObject *list, PyObject *value, PyObject *where)
{
    PyObject *pair = PyTuple_Pack(2, value, where);
    int failed = pair == NULL || PyList_Append(list, pair) < 0;
    Py_XDECREF(pair);
    return failed ? -1 : 0;
}

/* Note what stands within one value, and where; return its size as `measure` does, -1 with an error set. */
static Py_ssize_t
place_in(PyObject *node, PyObject *where, Py_ssize_t min, Py_ssize_t room, PyObject *texts, PyObject *arrays, PyObject *objects)
{
    int is_dict = PyDict_CheckExact(node);
    PyObject *key = NULL, *item;
    Py_ssize_t position = 0, i = 0, count = is_dict ? PyDict_GET_SIZE(node) : PyList_GET_SIZE(node);
    Py_ssize_t size = is_dict ? 10 * count : 2 + count;
    while (is_dict ? PyDict_Next(node, &position, &key, &item) : i < PyList_GET_SIZE(node)) {
        if (!is_dict) {
            item = PyList_GET_ITEM(node, i);
            i++;
        }
        int is_text = PyUnicode_CheckExact(item), is_inner = room > 0 && (PyDict_CheckExact(item) || PyList_CheckExact(item));
        Py_ssize_t inner = is_text ? PyUnicode_GET_LENGTH(item) : 8;
        if (is_inner || (is_text && inner > min)) {
            PyObject *part = is_dict ? Py_NewRef(key) : PyLong_FromSsize_t(i - 1);
            PyObject *here = part == NULL ? NULL : PyTuple_Pack(2, where, part);
            Py_XDECREF(part);
            if (here == NULL) {
                return -1;
            }
            if (is_inner) {
                inner = place_in(item, here, min, room - 1, texts, arrays, objects);
            }
            PyObject *to = is_text ? texts : PyDict_CheckExact(item) ? objects : arrays;
            int failed = inner < 0 || (inner > (is_text ? min : min / 2) && note_place(to, item, here) < 0);
            Py_DECREF(here);
            if (failed) {
                return -1;
            }
        }
        size += inner;
    }
    return size;
}

/* places(value, min, depth_max) -> (texts, arrays, objects), each with where it stands: the texts within the value that are over
 * `min`, and what else may be: its size is only about known. What is inside comes before what it is in. */
static PyObject *
places(PyObject *module, PyObject *args)
{
    PyObject *value;
    Py_ssize_t min, depth_max;
    if (!PyArg_ParseTuple(args, "O!nn", &PyDict_Type, &value, &min, &depth_max)) {
        return NULL;
    }
    PyObject *texts = PyList_New(0), *arrays = PyList_New(0), *objects = PyList_New(0), *found = NULL;
    if (texts != NULL && arrays != NULL && objects != NULL && place_in(value, Py_None, min, depth_max, texts, arrays, objects) >= 0) {
        found = PyTuple_Pack(3, texts, arrays, objects);
    }
    Py_XDECREF(texts);
    Py_XDECREF(arrays);
    Py_XDECREF(objects);
    return found;
}

static PyMethodDef methods[] = {
    {"find_runs", find_runs, METH_VARARGS, "Find the long runs of marked bytes."},
    {"names_secret", (PyCFunction)(void (*)(void))names_secret, METH_FASTCALL, "Say whether a word names a secret that follows it."},
    {"text_key", text_key, METH_O, "Make a key for a long text."},
    {"survey", survey, METH_VARARGS, "Look through a value that may be plain already."},
    {"sizes", sizes, METH_VARARGS, "Measure the large containers of a plain value."},
    {"places", places, METH_VARARGS, "Say where in a value its large parts stand."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "playhead.event._speed", "The inner loops of recording, compiled.", 0, methods,
};

PyMODINIT_FUNC
PyInit__speed(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    has_avx2 = __builtin_cpu_supports("avx2") != 0;
#endif
    return PyModuleDef_Init(&definition);
}
