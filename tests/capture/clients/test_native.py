"""Native code that nobody can see into is named when it is used, with the line that used it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import playhead
from playhead.capture.clients import native
from playhead.capture.patches import Patches

HERE = __name__


def gaps() -> list[tuple[str, str, str]]:
    """Return source, place and line of each."""
    details = [event.data["detail"] for event in playhead.load("@last").events() if event.kind == "gap.noted"]
    return [(detail["source"], *detail["where"].partition(" at ")[::2]) for detail in details]


def line_of(text: str) -> int:
    """Return the number of the only line of this file that holds a text, quotes and all."""
    lines = Path(__file__).read_text().splitlines()
    (number,) = [at for at, line in enumerate(lines, 1) if text in line and "line_of(" not in line]
    return number


def test_a_file_that_lxml_reads_by_its_name_is_named_once_for_each_line() -> None:
    etree = pytest.importorskip("lxml.etree")
    Path("a.xml").write_text("<a/>")
    with playhead.record("run"):
        assert etree.parse("a.xml").getroot().tag == "a"  # the first use
        etree.parse(Path("a.xml"))
        with open("a.xml", "rb") as file:
            etree.parse(file)
    assert gaps() == [("lxml", "parse", f"{HERE}:{line_of('# the first use')}")]


def test_a_file_that_python_opens_for_lxml_is_not_named() -> None:
    etree = pytest.importorskip("lxml.etree")
    Path("a.xml").write_text("<a/>")
    before = etree.parse
    with playhead.record("run"), open("a.xml", "rb") as file:
        etree.parse(file)
    assert gaps() == []
    assert etree.parse is before


def test_what_the_loop_of_uvloop_does_by_itself_is_named() -> None:
    uvloop = pytest.importorskip("uvloop")
    before = dict(uvloop.Loop.__dict__)

    async def main() -> str:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)  # a server
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())  # a connection
        writer.close()
        server.close()
        host, port = server_address = writer.get_extra_info("peername")
        assert server_address == (host, port)
        return f"{host}:{port}"

    with playhead.record("run"):
        to = uvloop.run(main())
    assert gaps() == [
        ("uvloop", f"connections to {to}", f"{HERE}:{line_of('# a server')}"),
        ("uvloop", f"a connection to {to}", f"{HERE}:{line_of('# a connection')}"),
    ]
    assert dict(uvloop.Loop.__dict__) == before


def test_a_run_that_is_opened_inside_the_loop_of_uvloop_names_it_too() -> None:
    uvloop = pytest.importorskip("uvloop")

    @playhead.agent("inside")
    async def agent() -> None:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", 1)

    uvloop.run(agent())
    assert [gap[:2] for gap in gaps()] == [("uvloop", "a connection to 127.0.0.1:1")]


def test_a_library_that_the_agent_loads_is_named() -> None:
    with playhead.record("run"):
        library = ctypes.CDLL("libc.so.6")  # loaded
        assert library.getpid() == os.getpid()
    assert gaps() == [("ctypes", "libc.so.6", f"{HERE}:{line_of('# loaded')}")]


@pytest.mark.parametrize("module", ["ctypes", "uuid", "platform"])
def test_what_python_itself_loads_while_it_is_imported_is_not_named(module: str, tmp_path: Path) -> None:
    code = (
        f"import playhead\nwith playhead.record('run', store='store'):\n    import {module}\n"
        "print([event.data for event in playhead.load('run', 'store').events() if event.kind == 'gap.noted'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.fixture
def table() -> Any:
    """Stand in for a library whose functions take a name or an open file."""
    module = ModuleType("pyarrow.parquet")

    def read_table(source: Any, columns: Any = None) -> Any:
        return source, columns

    def write_table(table: Any, where: Any) -> Any:
        return table, where

    module.__dict__.update(read_table=read_table, write_table=write_table)
    patches = Patches()
    native.patch(module, patches)
    yield module
    patches.restore()
    assert (module.read_table, module.write_table) == (read_table, write_table)


def test_only_what_is_given_by_name_leaves_python(table: Any) -> None:
    with playhead.record("run"), open(os.devnull, "rb") as file:
        assert table.read_table(file, columns=None) == (file, None)
        assert table.write_table(object, file)[1] is file
        assert gaps() == []
        assert table.read_table(source=Path("a")) == (Path("a"), None)
        assert table.write_table(object, "b") == (object, "b")
    assert [gap[:2] for gap in gaps()] == [("pyarrow", "read_table"), ("pyarrow", "write_table")]


def test_a_method_of_a_class_stays_what_it_is() -> None:
    module = ModuleType("psycopg")

    class Connection:
        @classmethod
        def connect(cls, address: str) -> Any:
            return cls, address

    module.__dict__.update(Connection=Connection, connect=Connection.connect)
    before = Connection.__dict__["connect"]
    patches = Patches()
    native.patch(module, patches)
    try:
        with playhead.record("run"):
            assert module.Connection.connect("host=h password=sesame") == (Connection, "host=h password=sesame")
        assert [gap[:2] for gap in gaps()] == [("psycopg", "Connection.connect")]
    finally:
        patches.restore()
    assert Connection.__dict__["connect"] is before


def test_a_release_without_a_function_is_left_alone() -> None:
    patches = Patches()
    native.patch(ModuleType("polars"), patches)
    assert patches._done == []


def test_without_a_run_nothing_is_told_and_nothing_changes(table: Any) -> None:
    assert table.read_table("a") == ("a", None)


def test_what_was_not_captured_is_part_of_readiness_and_no_reason_against_it() -> None:
    with playhead.record("run"):
        ctypes.CDLL(None)  # for readiness
    state = playhead.load("@last").readiness()
    where = f"the libraries of the process at {HERE}:{line_of('# for readiness')}"
    assert (state.replayable, state.reasons) == (True, [])
    assert state.not_captured[0] == {"source": "ctypes", "where": where, "count": 1}
    assert [gap["source"] for gap in state.not_captured] == ["ctypes", "reads"]
