"""Write verdicts as JUnit XML, which every CI system reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from playhead.cli.retesting import Retested
from playhead.errors import UsageError

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # that XML cannot hold


def write(path: Path, found: Sequence[Retested]) -> None:
    """Write one file: a deviation is a failure, what could not be told an error; neither reads as a pass.

    What is left to pytest was skipped.
    """
    failures = sum(one.verdict == "deviated" for one in found)
    errors = sum(one.verdict in ("not_replayable", "could_not_tell") for one in found)
    left = sum(one.verdict == "left_to_pytest" for one in found)
    suite = ElementTree.Element(
        "testsuite", name="playhead", tests=str(len(found)), failures=str(failures), errors=str(errors),
        skipped=str(left), time=f"{sum(one.seconds for one in found):.3f}",
    )  # fmt: skip
    for one in found:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_valid(one.name), name=_valid(one.run), time=f"{one.seconds:.3f}"
        )
        if one.verdict != "faithful":
            kind = {"deviated": "failure", "left_to_pytest": "skipped"}.get(one.verdict, "error")
            told = ElementTree.SubElement(case, kind, type=one.verdict, message=_valid(one.first))
            told.text = _valid(one.text)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    try:
        path.write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None


def _valid(text: str) -> str:
    return _FORBIDDEN.sub("�", text)
