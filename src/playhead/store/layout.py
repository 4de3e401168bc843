"""Compute every path of a store. No other module spells a file name of it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from playhead import _limits
from playhead._ids import is_run_id
from playhead.errors import BadName, UsageError

STORE_VERSION = 1
TIMELINE = "timeline.jsonl"
ARTIFACTS = "artifacts"
CONTEXT_PACK = "context_pack.json"
POLICY_SNAPSHOT = "policy_snapshot.json"
DEFAULT_PROJECT = "default"
_PRUNED = ".pruned"
_UNPACKED = ".unpacked"
_ENDING_CHARACTERS_MAX = 12  # that are kept of a long name: `.md`, `.properties`
_NUMBERS_BYTES = 200  # by which `numbered` may have lengthened the name of an artifact

_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", *(f"com{n}" for n in range(1, 10)), *(f"lpt{n}" for n in range(1, 10))}
)
_PROJECT = re.compile("[a-z0-9][a-z0-9-]{0,62}")
_DIGEST = re.compile("[0-9a-f]{64}")
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|\ud800-\udfff]')


def runs_dir(root: Path) -> Path:
    """Return the folder of all run directories."""
    return root / "runs"


def is_store(root: Path) -> bool:
    """Say whether a folder is a store: of what a store has, the folder of its runs is made last."""
    return runs_dir(root).is_dir()


def run_dir(root: Path, run_id: str) -> Path:
    """Return one run's directory."""
    return root / "runs" / run_id


def pruned_dir(root: Path, run_id: str) -> Path:
    """Return where a run directory goes, in one step, before its files are removed one by one."""
    return root / "runs" / f".{run_id}{_PRUNED}"


def is_pruned(folder: Path) -> bool:
    """Say whether a folder among the runs is what a prune that was stopped left behind."""
    return folder.name.endswith(_PRUNED) and is_run_id(folder.name[1 : -len(_PRUNED)])


def unpacked_dir(root: Path, run_id: str, token: str) -> Path:
    """Return where the directory of a run is made that comes out of a cassette, before it is put in its place."""
    return root / "runs" / f".{run_id}.{token}{_UNPACKED}"


def unpacked_dirs(root: Path, run_id: str) -> list[Path]:
    """Return all such folders of one run: that of somebody at work, and those of processes that were killed."""
    return [path for path in runs_dir(root).glob(f".{run_id}.*{_UNPACKED}") if path.is_dir()]


def timeline(run: Path) -> Path:
    """Return the file that is the truth about a run."""
    return run / TIMELINE


def artifacts_dir(run: Path) -> Path:
    """Return the folder of a run's artifacts."""
    return run / ARTIFACTS


def looks_like_a_run(run: Path) -> bool:
    """Say whether a folder is what is left of a run, whether or not its timeline is there."""
    return run.is_dir() and (is_run_id(run.name) or artifacts_dir(run).is_dir() or context_pack(run).is_file())


def context_pack(run: Path) -> Path:
    """Return the file that holds the latest context pack."""
    return run / CONTEXT_PACK


def policy_snapshot(run: Path) -> Path:
    """Return the file that holds the policy in force at the start."""
    return run / POLICY_SNAPSHOT


def file(run: Path, name: str) -> Path:
    """Return a file of a run by the name that a store knows it by: `artifacts/…`, or one of the two packs."""
    if name.startswith(f"{ARTIFACTS}/"):
        return artifact(run, name.removeprefix(f"{ARTIFACTS}/"))
    return run / pack_name(name)


def private_dir(run: Path) -> Path:
    """Return the folder of erasable values and their salts."""
    return run / "private"


def blobs_dir(root: Path) -> Path:
    """Return the folder of all blobs."""
    return root / "blobs"


def blob(root: Path, digest: str) -> Path:
    """Return the file of one blob. The digest must be 64 hex digits: it is checked, since it may come from a line."""
    if not is_digest(digest):
        raise BadName(f"not a digest: {digest!r}", hint="A digest is 64 lower-case hex digits.")
    return root / "blobs" / digest[:2] / digest


def index(root: Path) -> Path:
    """Return the SQLite file of the index."""
    return root / "playhead.db"


def registry(root: Path) -> Path:
    """Return the SQLite file of what the server keeps beside runs: keys, sessions, cassettes, jobs. No projection."""
    return root / "server.db"


def search(root: Path) -> Path:
    """Return the SQLite file of the search for words."""
    return root / "search.db"


def project_name(name: str) -> str:
    """Check the name of a project, which becomes a folder and a part of addresses, and return it."""
    if not _PROJECT.fullmatch(name) or name in _RESERVED:
        raise UsageError(
            f"not the name of a project: {name[:80]!r}",
            hint="Small letters, digits and dashes, at most 63, the first no dash: `search-team`.",
        )
    return name


def project_root(root: Path, name: str) -> Path:
    """Return the store of a project: that of `default` is the store itself, any other is one of its own."""
    return root if project_name(name) == DEFAULT_PROJECT else root / "projects" / name


def is_project(root: Path) -> bool:
    """Say whether a store lies where those of projects do, in the store of a server."""
    return root.parent.name == "projects"


def project_names(root: Path) -> list[str]:
    """Return the projects that have a store of their own."""
    try:
        found = sorted(one.name for one in (root / "projects").iterdir() if one.is_dir())
    except FileNotFoundError:
        return []
    return [name for name in found if _PROJECT.fullmatch(name) and name not in _RESERVED]


def journal(root: Path) -> Path:
    """Return the file in which run ids are noted at open and close, and before a run is pruned."""
    return root / "journal"


def serving(root: Path) -> Path:
    """Return the file that a server holds for as long as it serves this store."""
    return root / "serving"


def prices(root: Path) -> Path:
    """Return the file that keeps what models are sold for, as far as somebody asked."""
    return root / "prices.json"


def version_file(root: Path) -> Path:
    """Return the file that names the format of the store."""
    return root / "format"


def is_digest(text: str) -> bool:
    """Say whether text is a SHA-256 in hex."""
    return _DIGEST.fullmatch(text) is not None


def artifact(run: Path, name: str) -> Path:
    """Return the file of one artifact; a name that could leave the run directory is refused."""
    return artifacts_dir(run) / artifact_name(name, _limits.ARTIFACT_NAME_BYTES_MAX + _NUMBERS_BYTES)


def artifact_name(name: str, bytes_max: int = _limits.ARTIFACT_NAME_BYTES_MAX) -> PurePosixPath:
    """Check a name that an agent chose, and return it as a relative path."""
    parts = name.split("/")
    if not name or len(name.encode("utf-8", "surrogatepass")) > bytes_max:
        raise BadName(f"artifact name is empty or longer than {_limits.ARTIFACT_NAME_BYTES_MAX} bytes: {name[:60]!r}")
    if len(parts) > _limits.ARTIFACT_DEPTH_MAX:
        raise BadName(f"artifact name has more than {_limits.ARTIFACT_DEPTH_MAX} parts: {name!r}")
    for part in parts:
        bare = part.split(".")[0].strip().lower()
        if part in ("", ".", "..") or part != part.strip() or part.endswith(".") or bare in _RESERVED:
            raise BadName(f"artifact name has an unusable part {part!r}: {name!r}")
        if _FORBIDDEN.search(part):
            raise BadName(f"artifact name has a forbidden character: {name!r}")
    return PurePosixPath(*parts)


def cleaned(name: str) -> str:
    """Return a name that a file can have, as near to the given one as can be."""
    parts = [part for part in map(_cleaned_part, name.split("/")) if part]
    parts[: -_limits.ARTIFACT_DEPTH_MAX] = []
    stem, dot, ending = "/".join(parts).rpartition(".")
    if not dot or "/" in ending or len(ending) > _ENDING_CHARACTERS_MAX:
        stem, dot, ending = "/".join(parts), "", ""
    room = _limits.ARTIFACT_NAME_BYTES_MAX - len(f"{dot}{ending}".encode())
    short = stem.encode()[:room].decode(errors="ignore") + dot + ending
    try:
        return str(artifact_name("/".join(filter(None, map(_cleaned_part, short.split("/"))))))
    except BadName:  # cut in an unlucky place
        return f"unnamed{dot}{ending}"


def _cleaned_part(part: str) -> str:
    part = _FORBIDDEN.sub("_", part)
    while part != (part := part.strip().strip(".")):
        pass
    return f"_{part}" if part.split(".")[0].strip().lower() in _RESERVED else part


def numbered(name: str) -> Iterator[str]:
    """Yield a name, then the same with `~2`, `~3`, … before its ending: an artifact never replaces another."""
    yield name
    folder, slash, last = name.rpartition("/")
    stem, dot, ending = last.partition(".")
    for number in itertools.count(2):
        yield f"{folder}{slash}{stem}~{number}{dot}{ending}"


def pack_name(name: str) -> str:
    """Check the name of one of the two files that a run directory holds beside its artifacts."""
    if name not in (CONTEXT_PACK, POLICY_SNAPSHOT):
        raise BadName(f"a run directory has no file {name!r}")
    return name
