"""What is replaced is put back by identity, and what somebody else put over it stays."""

from __future__ import annotations

import _thread
import asyncio
import concurrent.futures
import importlib
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest

import playhead
from playhead.capture.patches import Patches
from playhead.testing import ScriptedProvider


class Base:
    def greet(self) -> str:
        return "hello"


class Derived(Base):
    pass


def test_a_patch_is_taken_back_by_identity() -> None:
    original, patches = Base.__dict__["greet"], Patches()
    patches.replace(Base, "greet", lambda inner: lambda self: inner(self) + "!")
    patches.replace(Base, "greet", lambda inner: lambda self: inner(self) + "?")
    assert Base().greet() == "hello!?"
    patches.restore()
    assert Base.__dict__["greet"] is original
    patches.restore()
    assert Base.__dict__["greet"] is original


def test_what_an_owner_inherits_is_not_patched_on_it() -> None:
    with pytest.raises(KeyError):
        Patches().replace(Derived, "greet", lambda inner: inner)


def test_a_patch_of_somebody_else_over_ours_stays() -> None:
    original, patches = Base.__dict__["greet"], Patches()
    patches.replace(Base, "greet", lambda inner: lambda self: inner(self) + "!")
    ours = Base.__dict__["greet"]

    def theirs(self: Base) -> str:
        return ours(self) + " and theirs"

    Base.greet = theirs  # type: ignore[method-assign]
    patches.restore()
    assert Base.__dict__["greet"] is theirs
    Base.greet = original  # type: ignore[method-assign]


class Proxy:
    """A wrapper as wrapt makes them, which OpenTelemetry puts around methods: it must know the object apart."""

    def __init__(self, wrapped: Any, seen: list[Any], instance: Any = None) -> None:
        self.__wrapped__, self.seen, self.instance = wrapped, seen, instance

    def __get__(self, instance: Any, owner: Any) -> Any:
        return Proxy(self.__wrapped__.__get__(instance, owner), self.seen, instance)

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.seen.append((type(self.instance).__name__, *map(type, args)))
        return self.__wrapped__(*args, **options)


@pytest.mark.parametrize("first", ["theirs", "ours"])
@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_wrapper_of_opentelemetry_works_below_and_above_ours(
    library: Any, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    transports = [(library.HTTPTransport, "handle_request"), (library.AsyncHTTPTransport, "handle_async_request")]

    for owner, name in transports:
        monkeypatch.setattr(owner, name, owner.__dict__[name])  # to be put back in the end, whoever is on top then

    def instrument() -> None:
        for owner, name in transports:
            setattr(owner, name, Proxy(owner.__dict__[name], seen))

    async def ask_async(url: str) -> int:
        async with library.AsyncClient() as client:
            return (await client.get(url)).status_code

    if first == "theirs":
        instrument()
        theirs = [owner.__dict__[name] for owner, name in transports]
    with ScriptedProvider() as provider, playhead.record("instrumented"):
        if first == "ours":
            instrument()
        with library.Client() as client:
            assert client.get(f"{provider.root_url}/plain/a").status_code == 200
        assert asyncio.run(ask_async(f"{provider.root_url}/plain/b")) == 200
    assert seen == [("HTTPTransport", library.Request), ("AsyncHTTPTransport", library.Request)]
    if first == "theirs":
        assert [owner.__dict__[name] for owner, name in transports] == theirs
    assert [event.kind for event in playhead.load("@last").events()].count("http.sent") == 2


PLACES: list[tuple[Any, str]] = [
    (threading.Thread, "start"),
    (concurrent.futures.ThreadPoolExecutor, "submit"),
    (asyncio.BaseEventLoop, "create_task"),
]


@pytest.mark.parametrize(("owner", "name"), PLACES, ids=[name for _, name in PLACES])
def test_lanes_are_counted_once_though_somebody_patched_over_an_earlier_run(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = owner.__dict__[name]
    try:
        with playhead.record("earlier"):
            ours = owner.__dict__[name]

            def theirs(self: Any, *args: Any, **options: Any) -> Any:
                return ours(self, *args, **options)

            setattr(owner, name, theirs)
        with playhead.record("later"):
            _spawn(name)
            _spawn(name)
    finally:
        setattr(owner, name, original)
    events = playhead.load("later").events()
    assert [event.lane for event in events if event.kind == "note.added"] == ["0.1", "0.2"]


def _spawn(name: str) -> None:
    if name == "start":
        thread = threading.Thread(target=playhead.note, args=("here",))
        thread.start()
        thread.join()
    elif name == "submit":
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(playhead.note, "here").result()
    else:

        async def note() -> None:
            playhead.note("here")

        async def main() -> None:
            await asyncio.get_running_loop().create_task(note())

        # The loop makes a task for `main` as well, which has a lane of its own.
        loop = asyncio.new_event_loop()
        try:
            future = loop.create_task(note())
            loop.run_until_complete(future)
        finally:
            loop.close()


def test_a_module_that_is_reloaded_while_a_run_is_open_is_recorded_and_restored() -> None:
    """In a process of its own, since the classes of a reloaded module are others for good."""
    program = textwrap.dedent("""
        import importlib, sys, playhead, httpx2, httpx2._transports.default as default
        from playhead.testing import ScriptedProvider
        with ScriptedProvider() as provider:
            with playhead.record("reloaded"):
                importlib.reload(default)
                fresh = default.HTTPTransport.__dict__["handle_request"]
                with httpx2.Client(transport=default.HTTPTransport()) as client:
                    client.get(provider.root_url + "/plain/a")
            assert default.HTTPTransport.__dict__["handle_request"] is fresh.__wrapped__
        kinds = [event.kind for event in playhead.load("@last").events()]
        assert kinds.count("http.sent") == kinds.count("http.received") == 1, kinds
        assert not any("playhead" in type(finder).__module__ for finder in sys.meta_path)
    """)
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_a_library_that_is_imported_after_the_run_opened_is_recorded() -> None:
    program = textwrap.dedent("""
        import sys, playhead
        from playhead.testing import ScriptedProvider
        with ScriptedProvider(["Hello."]) as provider, playhead.record("late"):
            assert "httpx2" not in sys.modules and "openai" not in sys.modules
            import httpx, openai
            with httpx.Client() as client:
                client.get(provider.root_url + "/plain/a")
            with openai.OpenAI(base_url=provider.base_url, api_key="none") as client:
                client.responses.create(model="gpt-5", input="?")
        kinds = [event.kind for event in playhead.load("@last").events()]
        assert kinds.count("http.sent") == kinds.count("model.invoked") == 1, kinds
    """)
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_library_of_another_shape_is_named_as_a_gap_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("httpx2._transports.default")
    monkeypatch.delattr(module.HTTPTransport, "handle_request")
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    with playhead.record("other"):
        pass
    gaps = [event.data for event in playhead.load("@last").events() if event.kind == "gap.noted"]
    assert [(gap["reason"], gap["count"], gap["detail"]["source"]) for gap in gaps] == [
        ("not_captured", 0, "httpx2._transports.default")
    ]


def test_the_method_of_a_class_is_handed_over_as_what_it_is() -> None:
    class Runner:
        @classmethod
        def name(cls) -> str:
            return cls.__name__

        @staticmethod
        def number() -> int:
            return 7

    seen: list[Any] = []

    def make(original: Any) -> Any:
        seen.append(original)
        return original

    before = Runner.__dict__["name"], Runner.__dict__["number"]
    patches = Patches()
    patches.replace(Runner, "name", make)
    patches.replace(Runner, "number", make)
    assert seen == list(before)
    assert (Runner.name(), Runner.number()) == ("Runner", 7)
    patches.restore()
    assert (Runner.__dict__["name"], Runner.__dict__["number"]) == before


def test_a_function_of_c_that_a_class_holds_does_not_become_a_method(tmp_path: Path) -> None:
    done = threading.Event()

    class Holder:
        make = os.mkfifo
        run = os.system
        start = _thread.start_new_thread

    with playhead.record("agent"):

        class Inside:
            make = os.mkfifo
            run = os.system
            start = _thread.start_new_thread

        for holder in (Holder(), Inside()):
            path = tmp_path / type(holder).__name__
            holder.make(path)
            assert path.exists()
            assert holder.run("exit 0") == 0
            holder.start(done.set, ())
            assert done.wait(10)
            done.clear()
        assert pickle.loads(pickle.dumps(os.mkfifo)) is os.mkfifo
        assert repr(os.mkfifo) == "<built-in function mkfifo>"
