"""In a replay no tool runs: what it gave back, raised or yielded comes from the tape, as what it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay.programs import assert_faithful, record, replay, run

HEAD = """
import asyncio, collections, dataclasses, datetime as dt, decimal, enum, fractions, pathlib, random, sys, time, uuid
import playhead

def ran(name):
    with open(pathlib.Path(__file__).with_name("ran.txt"), "a") as file:
        file.write(name + " ")
"""


def check(folder: Path, code: str, bodies: str) -> bytes:
    """Record and replay; `bodies` says which tools ran when it was recorded."""
    recorded = record(folder, HEAD + code)
    assert (folder / "ran.txt").read_text().split() == bodies.split()
    assert_faithful(recorded, replay(folder))
    assert (folder / "ran.txt").read_text().split() == bodies.split(), "no body ran again"
    return recorded


def test_a_tool_is_answered_and_its_side_effect_does_not_happen_again(tmp_path: Path) -> None:
    out = check(
        tmp_path,
        """
@playhead.tool(effects=["write"])
def pay(amount):
    ran("pay")
    return {"amount": amount, "receipt": random.random()}

print(pay(3), pay(3), pay(4))
""",
        "pay pay pay",
    )
    assert out.count(b"receipt") == 3


def test_what_comes_back_is_of_the_class_that_it_was(tmp_path: Path) -> None:
    out = check(
        tmp_path,
        """
import pydantic

class Color(enum.Enum):
    RED = "r"

class Rights(enum.Flag):
    READ = 1
    WRITE = 2

@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int
    total: int = dataclasses.field(init=False)
    words: list = dataclasses.field(default_factory=list, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "total", self.x + self.y)
        self.words.append("made")

@dataclasses.dataclass(slots=True)
class Slotted:
    given: dataclasses.InitVar[int]
    kept: int = 0

    def __post_init__(self, given):
        self.kept = given

class Model(pydantic.BaseModel):
    name: str = pydantic.Field(alias="theName")
    inner: Point | None = None
    model_config = {"extra": "allow", "arbitrary_types_allowed": True}

class Page(pydantic.BaseModel):
    class Line(pydantic.BaseModel):
        text: str
    lines: list[Line]

class Loud(str):
    def __new__(cls, text, times):
        return super().__new__(cls, text * times)

Pair = collections.namedtuple("Pair", "left right")

@playhead.tool
def values():
    ran("values")
    return [
        Point(1, 2), Slotted(5), Model(theName="n", inner=Point(3, 4), more=1), Page(lines=[Page.Line(text="t")]),
        Color.RED, Rights.READ | Rights.WRITE, (1, (2,)), {1, 2}, frozenset("a"), Pair(1, [2]), Loud("a", 3),
        decimal.Decimal("1.50"), fractions.Fraction(1, 3), uuid.UUID(int=5), pathlib.Path("/x/y"), b"\\0\\xff",
        bytearray(b"ab"), {1: {"$a": 2}}, collections.OrderedDict(b=1, a=2), collections.Counter("aab"),
        dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc), dt.date(2024, 1, 2), dt.timedelta(3, 4, 5), 2**80,
        float("inf"), 1j, None, True, "text", ValueError("an error", 3),
    ]

for value in values():
    print(type(value), repr(value), isinstance(value, pathlib.Path) and value.exists())
print(values()[0].words, values()[2].model_dump())
""",
        "values values values",
    )
    assert b"<class '__main__.Slotted'>" in out


def test_errors_come_back_whole(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
class Odd(LookupError):
    def __init__(self, text, *, code, detail=None):
        super().__init__(text)
        self.code, self.detail = code, detail

    def __str__(self):
        return f"{self.args[0]} ({self.code})"

@playhead.tool
def fail(how):
    ran(how)
    match how:
        case "odd":
            raise Odd("no", code=7, detail={"a": (1, 2)})
        case "file":
            open("/nonexistent/x")
        case "group":
            raise ExceptionGroup("several", [ValueError(1), Odd("b", code=2)])
        case "chained":
            try:
                1 / 0
            except ZeroDivisionError as error:
                raise RuntimeError("outer") from error
        case "key":
            {}["missing"]
        case "decode":
            b"\\xff".decode()
        case "exit":
            sys.exit()
        case "exit 3":
            sys.exit(3)
        case "lazy":
            import sqlite3
            sqlite3.connect(":memory:").execute("nonsense")
        case "noted":
            error = ValueError("v")
            error.add_note("a note")
            raise error

for how in ("odd", "file", "group", "chained", "key", "decode", "exit", "exit 3", "lazy", "noted"):
    try:
        fail(how)
    except BaseException as error:
        print(type(error), repr(error), str(error), isinstance(error, (Odd, OSError)), error.args)
        print(getattr(error, "code", None), getattr(error, "detail", None), getattr(error, "filename", None))
        print(repr(error.__cause__), getattr(error, "__notes__", None), getattr(error, "object", None))
""",
        "odd file group chained key decode exit exit 3 lazy noted",
    )


def test_generators_yield_what_they_yielded_and_end_as_they_did(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
@playhead.tool
def count(upto):
    ran("count")
    for number in range(upto):
        yield {"number": number, "chance": random.random()}
    return "the end"

@playhead.tool
async def wait(upto):
    ran("wait")
    for number in range(upto):
        await asyncio.sleep(0.001)
        yield number
    raise ValueError("too late")

def all_of(generator):
    result = yield from generator
    print("returned", result)

print(list(all_of(count(3))))
left = count(9)
print(next(left))
left.close()

async def main():
    try:
        async for item in wait(2):
            print(item)
    except ValueError as error:
        print(error)

asyncio.run(main())
""",
        "count count wait",
    )


def test_methods_and_class_methods_are_answered(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
class Box:
    @playhead.tool
    def method(self, value):
        ran("method")
        return value, random.random()

    @classmethod
    @playhead.tool
    def of_class(cls, value):
        ran("class")
        return cls.__name__, value, time.time()

    @staticmethod
    @playhead.tool
    def alone(value):
        ran("static")
        return value

print(Box().method(1), Box.of_class(2), Box.alone(3))
""",
        "method class static",
    )


@pytest.mark.parametrize(
    "inside", ["asyncio.to_thread(time.sleep, 0.001)", "asyncio.wait_for(asyncio.sleep(0.001), 9)"]
)
def test_what_a_tool_began_uses_up_no_lane_and_no_timer_of_the_agents(tmp_path: Path, inside: str) -> None:
    check(
        tmp_path,
        f"""
@playhead.tool
async def work(number):
    ran("work")
    await asyncio.gather(*(asyncio.sleep(0.001) for _ in range(3)))
    await {inside}
    return number, random.random()

@playhead.tool
async def plain(number):
    ran("plain")
    return number, random.random()

async def one(number):
    await asyncio.sleep(0.03 - number / 100)
    return await plain(number)

async def main():
    print(await work(1))
    for done in asyncio.as_completed([one(number) for number in range(3)]):
        print(await done)
    await asyncio.sleep(0.002)
    print(await asyncio.gather(plain(7), work(8)))

asyncio.run(main())
""",
        "work plain plain plain plain work",
    )


def test_a_tool_that_was_cancelled_is_cancelled_again(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
@playhead.tool
async def forever():
    ran("forever")
    try:
        await asyncio.sleep(3600)
    finally:
        print("left")

async def main():
    for limit in (0.02, 0.05):
        try:
            async with asyncio.timeout(limit):
                await forever()
        except TimeoutError:
            print("timeout", limit)

asyncio.run(main())
""",
        "forever forever",
    )


def test_tools_at_once_come_back_in_the_order_in_which_they_were_done(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
from concurrent.futures import ThreadPoolExecutor, as_completed

@playhead.tool
async def later(number):
    ran("later")
    await asyncio.sleep(random.random() / 50)
    return number

@playhead.tool
def in_thread(number):
    ran("thread")
    time.sleep(random.random() / 50)
    return number

async def main():
    return [await done for done in asyncio.as_completed([later(number) for number in range(5)])]

print(asyncio.run(main()))
with ThreadPoolExecutor(5) as pool:
    print([done.result() for done in as_completed([pool.submit(in_thread, number) for number in range(5)])])
""",
        "later " * 5 + "thread " * 5,
    )


def test_the_replay_records_the_same_outcome(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
@playhead.tool
def tell():
    ran("tell")
    return {"at": dt.datetime(2024, 1, 1), "who": (1, 2)}

@playhead.tool
def fail():
    ran("fail")
    raise ValueError("no")

tell()
try:
    fail()
except ValueError:
    pass
""",
        "tell fail",
    )
    from playhead.store.files import FileStore
    from playhead.store.reader import RunReader

    store = FileStore(tmp_path / ".playhead")
    told = [
        [event.data for event in RunReader(store, name).resolved() if event.kind == "tool.returned"]
        for name in sorted(store.runs())
    ]
    assert told[0] == told[1]
    assert len(told[0]) == 2


def test_a_class_that_only_the_tool_loads_is_named(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("import dataclasses\n@dataclasses.dataclass\nclass Shape:\n    sides: int\n")
    record(
        tmp_path,
        HEAD
        + """
@playhead.tool
def shape():
    import shapes
    return shapes.Shape(4)

print(shape())
""",
    )
    replayed = replay(tmp_path)
    assert replayed.verdict == "deviated"
    assert "shapes.Shape" in replayed.report["fidelity"]["first"]["text"]


def test_a_question_that_was_not_recorded_is_a_deviation_and_no_body_runs(tmp_path: Path) -> None:
    code = """
@playhead.tool
def ask(what):
    ran("ask")
    return what

try:
    print(ask("one"))
except Exception:
    print("swallowed")
"""
    record(tmp_path, HEAD + code)
    (tmp_path / "agent.py").write_text((HEAD + code).replace('"one"', '"two"'))
    replayed = replay(tmp_path)
    assert replayed.verdict == "deviated"
    assert replayed.report["fidelity"]["first"]["kind"] == "tool.called"
    assert (tmp_path / "ran.txt").read_text() == "ask "
    assert b"swallowed" not in replayed.out


def test_a_tool_that_gave_back_what_cannot_be_made_again_is_refused_unless_that_is_waived(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        HEAD
        + """
class Handle:
    def __repr__(self):
        return "<a handle>"

@playhead.tool
def connect():
    ran("connect")
    return {"handle": Handle()}

print(connect())
""",
    )
    refused = run(tmp_path, "replay", "@last", "--mode", "exact", "--json")
    assert b"unrestorable_value" in refused.out
    replayed = replay(tmp_path, "--waive", "unrestorable_value")
    assert replayed.out == recorded
    assert (tmp_path / "ran.txt").read_text() == "connect "


def test_an_error_that_holds_what_cannot_be_made_again_is_raised_all_the_same(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
class Refused(Exception):
    def __init__(self, response):
        super().__init__("refused")
        self.response = response

@playhead.tool
def ask():
    ran("ask")
    raise Refused(object())

try:
    ask()
except Refused as error:
    print("refused", error)
""",
        "ask",
    )


def test_what_a_body_prints_is_counted_from_its_event_however_slow_the_recorder_was_then(tmp_path: Path) -> None:
    out = check(
        tmp_path,
        """
from playhead.capture import repeats

late = iter([0, 5_000_000])  # what is counted up to between the event of a call and its body

def slowly(*args, inside=repeats.inside):
    sum(range(next(late, 0)))
    return inside(*args)

repeats.inside = slowly

@playhead.tool
async def slow(number, seconds):
    ran("slow")
    await asyncio.sleep(seconds)
    sys.stdout.write(f"done {number}\\n")
    await asyncio.sleep(0.05)

async def main():
    await asyncio.gather(slow(1, 0.06), slow(2, 0.05))

asyncio.run(main())
""",
        "slow slow",
    )
    assert out == b"done 1\ndone 2\n"


def test_what_bodies_print_in_turns_is_printed_in_turns(tmp_path: Path) -> None:
    out = check(
        tmp_path,
        """
@playhead.tool
async def count(name):
    ran("count")
    for number in range(3):
        print(name, number)
        await asyncio.sleep(0)  # far less than the pieces of one text may be apart

async def main():
    await asyncio.gather(count("a"), count("b"))

asyncio.run(main())
""",
        "count count",
    )
    assert out == b"a 0\nb 0\na 1\nb 1\na 2\nb 2\n"


def test_what_bodies_print_is_printed_in_their_place(tmp_path: Path) -> None:
    out = check(
        tmp_path,
        """
import logging
logging.basicConfig(level="INFO")

@playhead.tool
def search(what):
    ran("search")
    print("searching for", what)
    logging.info("in the library")
    return len(what)

@playhead.tool
async def slow(number):
    ran("slow")
    for part in range(3):
        sys.stdout.write(f"part {part} of {number};\\n")
        await asyncio.sleep(random.random() / 50)
    return number

@playhead.tool
async def threaded(number):
    ran("threaded")
    await asyncio.to_thread(sys.stdout.write, f"in a thread {number}\\n")

@playhead.tool
def items():
    ran("items")
    for number in range(3):
        print("before", number)
        yield number
    print("after all")

print("begin", search("cats"))
for item in items():
    print("item", item)

async def main():
    print(await asyncio.gather(*(slow(number) for number in range(3))))
    for number in range(3):
        await threaded(number)

asyncio.run(main())
""",
        "search items slow slow slow threaded threaded threaded",
    )
    assert out.startswith(b"searching for cats\nbegin 4\nbefore 0\nitem 0\nbefore 1\n")
    assert out.count(b"in a thread") == 3
