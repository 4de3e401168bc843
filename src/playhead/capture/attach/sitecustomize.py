"""Attach a Python program to the run that `playhead record` started it in.

Python imports this file at its start because the launcher put its folder on PYTHONPATH. The program must not notice:
the folder leaves `sys.path` and the environment, and the `sitecustomize` that would have run without us runs last.
Any Python may read this, old ones too: no syntax that one of them lacks, and no import that is not there anyway.
"""

import os
import sys

_before = set(sys.modules)
_folder = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [_entry for _entry in sys.path if _entry != _folder]
sys.path_importer_cache.pop(_folder, None)

if sys.version_info[0] < 3:  # noqa: UP036  # it has left a compiled form beside this file
    try:
        os.remove(os.path.join(_folder, "sitecustomize.pyc"))
    except OSError:
        pass  # it was told not to

_search = os.environ.pop("PYTHONPATH", "").split(os.pathsep)
_search = [_entry for _entry in _search if _entry != _folder]
if _search:
    os.environ["PYTHONPATH"] = os.pathsep.join(_search)

# What the launcher hands over: for which Python its own packages are, where to say what went wrong, in which process
# which run is recorded already, the socket on which to tell what is secret, what to redact, the seed of hashes where it
# was chosen for this run, the names of variables to hide, of a replay the file that says what to answer with, whether a
# policy is enforced, and the folders of those packages.
_handed = os.environ.pop("PLAYHEAD_ATTACH", "").split(os.pathsep)

if len(_handed) > 9:
    if _handed[5] and os.environ.get("PYTHONHASHSEED") == _handed[5]:
        del os.environ["PYTHONHASHSEED"]
    try:
        if sys.version_info < (3, 11):  # noqa: UP036
            raise ImportError("Playhead needs Python 3.11 or newer")
        from importlib.machinery import SourceFileLoader as _Loader

        _borrowed = type(sys)("_playhead_borrowed")
        _Loader(_borrowed.__name__, os.path.join(os.path.dirname(_folder), "borrowed.py")).exec_module(_borrowed)
        _borrowed.lend(_handed[0], _handed[9:])
        if _handed[7]:
            from playhead.replay.attached import attach as _attach
        else:
            from playhead.capture.ambient import attach as _attach
        from playhead.capture.shadows import make_way as _make_way

        try:
            _attach(_folder, _handed)
        finally:
            _make_way(_before)
    except Exception as _problem:  # the program runs all the same, and the launcher tells
        try:
            with open(_handed[1], "a") as _report:
                _why = str(getattr(_problem, "message", _problem))
                _facts = ["not attached", sys.version.split()[0], sys.executable or "", _why]
                _report.write("\t".join(" ".join(_fact.split()) for _fact in _facts) + "\n")
        except (IOError, OSError, ValueError):  # noqa: UP024
            pass  # nobody is left to tell
        if _handed[7]:
            _told = str(getattr(_problem, "message", _problem))
            sys.stderr.write("playhead: the replay cannot answer this Python, so it does not run: " + _told + "\n")
            sys.stderr.flush()
            os._exit(120)  # what it asks would be asked of the world
        if _handed[8]:
            _told = str(getattr(_problem, "message", _problem))
            sys.stderr.write("playhead: a policy is enforced that this Python cannot be held to, so it does not run: ")
            sys.stderr.write(_told + "\n")
            sys.stderr.flush()
            os._exit(120)

del sys.modules["sitecustomize"]
import sitecustomize  # type: ignore[import-not-found,unused-ignore]  # noqa: E402, F401
