"""Name the native code that reads and writes files, or speaks to databases, past everything that Python tells of.

Only what can be replaced is watched, and it is named when it is first used. Its results are still what the agent sees.
"""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType, ModuleType
from typing import Any

from playhead.capture import callers, untold
from playhead.capture.clients.unseen import tell
from playhead.capture.patches import Patches

# By module: the functions, and the methods of classes, that leave Python with the name of a file or of a server.
FUNCTIONS: dict[str, str] = {
    "MySQLdb": "connect Connect",
    "cffi.api": "FFI.dlopen",
    "chromadb": "PersistentClient",
    "cv2": "imread imwrite",
    "dbm.gnu": "open",
    "dbm.ndbm": "open",
    "duckdb": "connect execute from_csv_auto from_parquet query read_csv read_json read_parquet sql",
    "faiss": "read_index write_index",
    "h5py._hl.files": "File.__init__",
    "lancedb": "connect connect_async",
    "lxml.etree": "parse",
    "osgeo.gdal": "Open OpenEx",
    "polars": (
        "read_avro read_csv read_ipc read_json read_ndjson read_parquet scan_csv scan_ipc scan_ndjson scan_parquet"
        " DataFrame.write_avro DataFrame.write_csv DataFrame.write_ipc DataFrame.write_json DataFrame.write_parquet"
    ),
    "psycopg": "connect Connection.connect AsyncConnection.connect",
    "psycopg2": "connect",
    "pyarrow.csv": "read_csv write_csv",
    "pyarrow.dataset": "dataset write_dataset",
    "pyarrow.feather": "read_table write_feather",
    "pyarrow.json": "read_json",
    "pyarrow.parquet": "read_table write_table",
    "pymssql": "connect",
    "pyodbc": "connect",
    "safetensors.numpy": "load_file save_file",
    "safetensors.torch": "load_file save_file",
    "zmq.sugar.socket": "Socket.bind Socket.connect",
}
MODULES = tuple(FUNCTIONS)

# Those that are given a file of Python's as well, which then tells of itself.
_BY_NAME = frozenset({"lxml.etree", "polars", "pyarrow.csv", "pyarrow.feather", "pyarrow.json", "pyarrow.parquet"})
_NAMES = (str, bytes, os.PathLike)
# They load parts of their own, and read nothing with them of which nothing else tells.
_HARMLESS = frozenset({
    "PIL", "cupy", "jax", "jaxlib", "llvmlite", "matplotlib", "numba", "numpy", "nvidia", "pandas", "psutil", "scipy",
    "sklearn", "tensorflow", "torch", "triton", "uuid_utils", "zmq",
})  # fmt: skip


def patch(module: ModuleType, patches: Patches) -> None:
    """Watch for the first use of each function, where this release of the library has it."""
    for path in FUNCTIONS[module.__name__].split():
        owner, _, name = path.rpartition(".")
        holder = getattr(module, owner, None) if owner else module
        if holder is not None and name in holder.__dict__:
            patches.replace(holder, name, functools.partial(_watched, module.__name__, path))


def library_loaded(name: Any, frame: FrameType | None) -> None:
    """Name a library that is loaded with ctypes, but for what Python and well-known packages load of their own."""
    loader: FrameType | None = frame
    while loader is not None:
        module = str(loader.f_globals.get("__name__"))
        sort = callers.sort_of(module)
        if sort == callers.OURS and not module.startswith(("playhead.capture.audit", "playhead.capture.effects")):
            return
        if module.partition(".")[0] in ("_frozen_importlib", "importlib"):
            return  # something that comes with Python is being imported
        if sort == callers.AGENT:
            break
        loader = loader.f_back
    else:
        return
    if module.partition(".")[0] not in _HARMLESS:
        called = os.fsdecode(name) if isinstance(name, _NAMES) else "the libraries of the process"
        tell("ctypes", lambda: os.path.basename(called), "ctypes")


def _watched(module: str, path: str, original: Any) -> Any:
    """Return what tells and then does the same; of a class method, a class method."""
    if isinstance(original, classmethod):
        return classmethod(_watched(module, path, original.__func__))
    library = module.partition(".")[0]

    @functools.wraps(original)
    def watched(*args: Any, **options: Any) -> Any:
        named = module not in _BY_NAME or any(isinstance(given, _NAMES) for given in (*args[:3], *options.values()))
        if named and not _inside(library):
            tell(library, lambda: path, library)
        if library == "dbm":
            untold.dbm(module, *args)
        return original(*args, **options)

    return watched


def _inside(library: str) -> bool:
    """Say whether the library calls itself, which is no use of it that is not named already."""
    frame = sys._getframe(2)
    return str(frame.f_globals.get("__name__")).partition(".")[0] == library
