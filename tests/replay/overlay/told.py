"""Record a program that works with files, with the overlay or without, and print what the recorder kept of it.

Run as a program: `told.py ROOT STORE [SCRATCH]`, in a world made by `ways.build`.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any


class Names:
    """Names of temporary files, which do not depend on chance."""

    def __next__(self) -> str:
        os.getpid()  # as the names of Python's own ask
        return "empty"


def work() -> None:
    Path("a.txt").write_text(Path("b.txt").read_text())
    with open("link/d.txt", "a+") as file:
        file.write("more")
    Path("a.txt").read_text()
    os.rename("a.txt", "a2.txt")
    try:
        os.rename("a.txt", "a3.txt")
    except FileNotFoundError:
        pass
    try:
        Path("missing.txt").read_text()
    except FileNotFoundError:
        pass
    os.mkdir("made")
    os.makedirs("made/more")
    shutil.copy2("c.txt", "made/more")
    folder = os.open("made", os.O_RDONLY)
    os.close(os.open("inside", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    os.chmod("made/inside", 0o600)
    os.chmod("script.sh", 0o700)
    os.utime("script.sh", (1, 2))
    os.truncate("c.txt", 2)
    os.symlink("c.txt", "symbolic")
    os.link("c.txt", "linked")
    os.mkfifo("pipe")
    sorted(os.listdir("made"))
    shutil.rmtree("made")
    os.unlink("b.txt")
    database = sqlite3.connect("data.db")
    database.execute("insert into words values ('new')")
    database.commit()
    database.close()
    sqlite3.connect("new.db").close()
    with tempfile.NamedTemporaryFile(dir=".", prefix="t", suffix="t") as temporary:
        temporary.write(b"x")
    os.close(os.open("/dev/null", os.O_WRONLY))


def main() -> None:
    root, store, *scratch = sys.argv[1:]
    os.chdir(root)
    tempfile._name_sequence = Names()  # type: ignore[attr-defined]
    if scratch:
        from playhead.replay import overlay

        overlay.install(Path(scratch[0]), Path(store))
    import playhead

    playhead.install()
    with playhead.record("run", store=store) as run:
        work()
    events = list(playhead.load(run.id, store=store).events())
    effects: list[Any] = [event.data for event in events if event.kind == "effect.observed"]
    reads = [[read.of, read.by, read.value] for read in playhead.load(run.id, store=store).reads()]
    files = [read for read in reads if read[0].endswith(("open", "connect", "listdir", "readlink", "access"))]
    files += [read[:2] for read in reads if read[0].endswith("getpid")]  # another one each time
    gaps = [event.data for event in events if event.kind == "gap.noted"]
    print(json.dumps({"effects": effects, "files": files, "gaps": gaps}, default=str))


if __name__ == "__main__":
    main()
