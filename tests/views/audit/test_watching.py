from __future__ import annotations

from typing import Any

import pytest
from tests.views.audit.told import Told, audited, found

from playhead.errors import UsageError
from playhead.event.kinds import PAYLOADS
from playhead.event.plain import text_mark
from playhead.ledger.verify import Completeness, Integrity, Verification
from playhead.views.audit.findings import RULES, SEVERITIES
from playhead.views.audit.report import report
from playhead.views.audit.watching import Watched


def told(run: Told, rule: str) -> list[tuple[str, str]]:
    return [(one.severity, one.detail) for one in found(rule, run)]


@pytest.mark.parametrize(
    ("what", "target", "detail", "expected"),
    [
        ("file.written", "/repo/a", {"mode": "w", "created": True}, ("low", "repo write: a, created")),
        ("file.written", "/repo/a", {"mode": "a", "size": 3}, ("low", "repo write: a, appended to")),
        ("file.written", "/repo/a", {"mode": "r+", "length": 0}, ("low", "repo write: a, truncated")),
        ("file.written", "/repo/x.db", {"mode": "sqlite"}, ("low", "repo write: x.db, a database, opened to be written")),
        ("file.renamed", "/repo/a", {"to": "/repo/b"}, ("low", "repo write: a → b, renamed")),
        ("link.created", "/repo/a", {"to": "/etc/x", "symbolic": True}, ("low", "repo write: a → /etc/x, a link")),
        ("directory.created", "/repo/d", {"mode": "0777"}, ("low", "repo write: d/, a folder")),
        ("mode.changed", "/repo/a", {"mode": "0777"}, ("low", "repo write: a, mode 0777")),
        ("attribute.changed", "/repo/a", {"name": "user.x"}, ("low", "repo write: a, attribute user.x")),
        ("attribute.changed", "/tmp/a", {"name": "user.x"}, ("info", "temporary file write: /tmp/a, attribute user.x")),
        ("file.written", "/repo/.git/hooks/pre-commit", {"mode": "w"}, ("medium", "git folder write: .git/hooks/pre-commit, overwritten")),
        ("file.written", "/repo/.playhead/x", {"mode": "w"}, ("high", "store write: .playhead/x, overwritten")),
        ("file.written", "/tmp/a", {"mode": "w"}, ("info", "temporary file write: /tmp/a, overwritten")),
        ("mail.sent", "bob", {}, ("medium", "mail.sent: bob")),
    ],
)  # fmt: skip
def test_each_way_of_writing_is_told_with_where_it_lies(what: str, target: str, detail: Any, expected: Any) -> None:
    run = Told()
    run.effect(what, target, **detail)
    assert told(run, "write") == [expected]


def test_a_rename_is_as_grave_as_the_gravest_of_its_two_ends() -> None:
    run = Told()
    run.effect("file.renamed", "/etc/passwd", to="/repo/x")
    ((severity, detail),) = told(run, "write")
    assert severity == "medium"
    assert detail == "file write: /etc/passwd → x, renamed, outside of the repository and the working directory"


def test_to_delete_what_was_there_before_is_graver_than_what_the_run_made() -> None:
    run = Told()
    run.effect("file.written", "/repo/mine", mode="x", created=True)
    run.effect("file.renamed", "/repo/mine", to="/repo/moved")
    for target in ("/repo/moved", "/repo/old", "/etc/old", "/tmp/old"):
        run.effect("file.deleted", target)
    assert [severity for severity, _ in told(run, "delete")] == ["low", "medium", "high", "info"]
    assert told(run, "delete")[0][1] == "repo delete: moved, made by this run"


def test_a_name_that_is_no_unicode_lies_where_it_lies() -> None:
    run = Told()
    run.effect("file.written", text_mark("/repo/.git/hooks/f\udcff"), mode="w")
    run.call("process.started", {"argv": ["rm", text_mark("\udcff")]})
    assert told(run, "write") == [("medium", "git folder write: .git/hooks/f\\udcff, overwritten")]
    assert "process: rm '\\udcff'" in [detail for _, detail in told(run, "process")]


def test_the_same_in_one_span_is_one_finding_that_counts() -> None:
    run = Told()
    seqs = [run.effect("file.written", "/repo/a", mode="a", times=times) for times in (1, 2, 100)]
    with run.tool("t", "write"):
        run.effect("file.written", "/repo/a", mode="a")
    one, other = found("write", run)
    assert (one.count, one.seqs, one.seq) == (100, seqs, seqs[0])
    assert (other.count, other.path) == (1, "tool t")


def test_a_process_is_told_once_and_one_that_no_call_tells_of_too() -> None:
    run = Told()
    with run.within("process.started", {"argv": ["make", "all"]}):
        pass
    run.events.pop()  # its end comes after the effect
    run.effect("process.started", "/usr/bin/make", argv=["make", "all"], by="subprocess.Popen")
    run.effect("process.started", "/bin/ls", argv=["ls"], by="os.exec")
    run.effect("process.signalled", "77", signal=9)
    expected = [
        ("medium", "process: make all"),
        ("medium", "process: ls (this process becomes it)"),
        ("medium", "signal: SIGKILL to process 77"),
    ]
    assert told(run, "process") == expected
    assert [one.count for one in found("process", run)] == [1, 1, 1]


def test_a_process_that_could_not_be_started_is_told_apart() -> None:
    run = Told()
    for _ in range(2):
        run.add("process.started", {"argv": ["make"]}, span=(span := str(len(run.events))))
        run.add("process.exited", {"status": "error", "error": {"type": "EffectDenied"}}, span=span)
    run.call("process.started", {"argv": ["make"]})
    assert told(run, "process") == [
        ("low", "process: make, which was not started"),
        ("low", "process: make, which was not started"),
        ("medium", "process: make"),
    ]


def test_the_network_is_told_by_destination_with_what_was_asked_there() -> None:
    run = Told()
    for method in ("GET", "GET", "POST"):
        run.call("http.sent", {"method": method, "url": "http://127.0.0.1:80/x"})
    run.effect("socket.connected", "127.0.0.1:80", attempted=True)
    run.effect("socket.bound", "0.0.0.0:8080")
    run.call("model.invoked", {"model": "m", "provider": "p", "http": {"url": "https://api.example.com/v1"}})
    run.call("model.invoked", {"model": "m", "provider": "p"})
    run.add("gap.noted", {"reason": "not_captured", "count": 0, "detail": {"source": "grpc", "where": "h:1/x at m:3"}})
    assert told(run, "network") == [
        ("low", "127.0.0.1:80: 2× GET, POST, 1 connection attempted"),
        ("medium", "0.0.0.0:8080: listened at"),
        ("medium", "api.example.com:443: model m"),
        ("medium", "p: model m"),
        ("medium", "h:1/x: by grpc, not captured"),
    ]


def test_a_connection_and_the_request_by_name_that_it_was_for_are_one() -> None:
    run = Told()
    run.effect("socket.connected", "[2606::1]:443", names=["cdn.example", "xn--mnchen-3ya.example"])
    run.call("http.sent", {"method": "GET", "url": "https://MÜNCHEN.example./x"})
    run.effect("socket.connected", "93.1.1.1:443", names=["xn--mnchen-3ya.example"])
    run.effect("socket.connected", "93.1.1.1:22", names=["xn--mnchen-3ya.example"])  # another port
    run.effect("socket.connected", "93.1.1.2:443", names=["other.example", 7])  # another host
    run.effect("socket.connected", "93.1.1.3:443")  # which nobody looked up
    with run.tool("t"):
        run.effect("socket.connected", "93.1.1.1:443", names=["xn--mnchen-3ya.example"])  # another span
    assert told(run, "network") == [
        ("medium", "münchen.example:443: GET, 2 connections attempted to 93.1.1.1, [2606::1]"),
        ("medium", "93.1.1.1:22 (xn--mnchen-3ya.example): 1 connection attempted"),
        ("medium", "93.1.1.2:443 (other.example): 1 connection attempted"),
        ("medium", "93.1.1.3:443: 1 connection attempted"),
        ("medium", "93.1.1.1:443 (xn--mnchen-3ya.example): 1 connection attempted"),
    ]
    assert found("network", run)[0].seqs == [1, 2, 4]
    assert found("network", run)[0].count == 3


def test_secrets_are_told_with_who_read_them() -> None:
    run = Told()
    values = [
        {"API_KEY": "[redacted:env]"},
        {"HOME": "/x"},
        {"*": ["MY_TOKEN"]},
        {"MY_TOKEN": None},
        {"URL": "p:[redacted:x]"},
    ]
    run.add(
        "ambient.read",
        {"reads": [{"of": "os.environ", "by": "openai", "values": values}, {"of": "open", "by": "m", "values": []}]},
    )
    run.effect("environment.changed", "MY_TOKEN", set={"MY_TOKEN": "[redacted:env]"})
    run.call(
        "process.started", {"argv": ["sh"], "env": {"A_SECRET": {"$redacted": "field"}, "GONE_TOKEN": None, "X": "1"}}
    )
    assert told(run, "secret") == [
        ("medium", "API_KEY read by openai"),
        ("info", "MY_TOKEN asked for by openai, and not set"),
        ("medium", "URL read by openai"),
        ("low", "MY_TOKEN set"),
        ("medium", "A_SECRET handed to the process sh"),
    ]  # fmt: skip


def test_what_policies_decided_is_told_whole_and_what_they_denied_is_found() -> None:
    run = Told()
    for decision, resource, mode in (("allow", "a", "enforce"), ("allow", "a", "enforce"), ("deny", "b", "observe")):
        run.add("policy.checked", {"capability": "fs.write", "decision": decision, "resource": resource, "rule": "r",
                                   "mode": mode})  # fmt: skip
    audit = audited(run)
    assert [(one.decision, one.resource, one.rule, one.seqs) for one in audit.policy] == [
        ("allow", "a", "r", [1, 2]), ("deny", "b", "r", [3]),
    ]  # fmt: skip
    (one,) = [one for one in audit.findings if one.rule == "deny"]
    assert (one.seq, one.severity) == (3, "high")
    assert one.detail == "fs.write on b: denied by the rule r, and only observed: nothing kept it from going on"


def test_a_question_that_nobody_answered_is_found_and_one_that_was_is_no_trouble() -> None:
    run = Told()
    for decision, resource in (("ask", "a"), ("ask", "b"), ("allow", "b")):
        run.add("policy.checked", {"capability": "net", "decision": decision, "resource": resource, "mode": "enforce"})
    assert [(one.target, one.severity, one.detail) for one in found("deny", run)] == [
        ("a", "medium", "net on a: asked, and stopped"),
        ("b", "info", "net on b: asked; answered at event 3: allow"),
    ]


def test_two_capabilities_that_are_denied_on_one_thing_are_two_findings() -> None:
    run = Told()
    for capability in ("fs.write", "fs.delete", "fs.write"):
        run.add("policy.checked", {"capability": capability, "decision": "deny", "resource": "a", "mode": "enforce"})
    assert [(one.detail, one.seqs) for one in found("deny", run)] == [
        ("fs.write on a: denied, and stopped", [1, 3]),
        ("fs.delete on a: denied, and stopped", [2]),
    ]


def test_what_is_not_on_record_is_told_by_how_much_of_it_is_lost() -> None:
    run = Told(ambient=False, effects=False)
    run.add("gap.noted", {"reason": "StoreError", "count": 3})
    run.add("gap.noted", {"reason": "StoreError", "count": 4})
    run.add("gap.noted", {"reason": "sync_failed", "count": 0})
    run.add("gap.noted", {"reason": "not_captured", "count": 0, "detail": {"source": "psycopg", "where": "x"}})
    gaps = found("gap", run)
    assert [(one.severity, one.count) for one in gaps if one.what == "StoreError"] == [("high", 3), ("high", 4)]
    rest = {one.what: one.severity for one in gaps}
    assert rest == {
        "effects": "medium",
        "reads": "info",
        "StoreError": "high",
        "sync_failed": "info",
        "not_captured": "low",
    }


def test_a_run_that_came_from_elsewhere_does_not_look_harmless() -> None:
    (one,) = found("gap", Told(origin={"mode": "import"}))
    assert (one.severity, one.what) == ("medium", "effects")


def test_commits_and_what_changed_unseen_in_the_working_tree_are_writes() -> None:
    run = Told()
    run.effect("file.written", "/repo/seen", mode="w")
    run.add("git.committed", {"commit": "abcdef0123456", "files": ["a", "b"], "message": "Fix it\n\nmore"})
    for link in ("started_from", "older", "range"):
        run.add("git.committed", {"commit": "0123456", "files": [], "link": link})
    told_of = {"root": "/repo", "new": ["seen", "made by sh"], "gone": ["old"]}
    at = run.add("note.added", {"text": "files in the working tree: 2 new, 1 gone", "data": told_of})
    _, commit, unseen = found("write", run)
    assert commit.detail == "repo write: commit abcdef0123 of 2 files: Fix it"
    assert (unseen.seq, unseen.target, unseen.count) == (at, "made by sh", 1)
    assert [one.target for one in found("delete", run)] == ["old"]


def test_who_wrote_a_file_was_not_seen_to_delete_it_and_a_folder_moves_with_all_that_is_in_it() -> None:
    run = Told()
    run.effect("file.written", "/repo/written", mode="w")
    run.effect("file.deleted", "/repo/deleted")
    run.effect("file.renamed", "/repo/folder", to="/repo/moved")
    run.effect("file.deleted", "/repo/staged")
    run.effect("directory.created", "/repo/made")
    told_of = {
        "root": "/repo",
        "files": ["deleted", "moved/a/b"],
        "new": ["moved/c", "movedbut", "made/by sh"],
        "undone": ["staged", "restored"],
        "gone": ["written", "folder/a/b", "folder/c", "folder2/"],
    }
    run.add("note.added", {"text": "files in the working tree: 4 changed, 2 undone, 4 gone", "data": told_of})
    write, delete = found("write", run)[-1], found("delete", run)[-1]
    assert write.detail == (
        "repo write: deleted, made/by sh, movedbut, restored: 4 files of the working tree, by whom was not seen"
    )
    assert delete.detail == "repo delete: folder2/, written: 2 files of the working tree, by whom was not seen"


def test_what_another_program_was_seen_to_write_was_not_seen_to_be_written_in_this_one() -> None:
    run, child, other = Told(), Told("run_b", origin={"run": "run_a", "mode": "child", "at": 0}), Told("run_c")
    child.effect("file.written", "/repo/by child", mode="w")
    other.effect("file.written", "/repo/by other", mode="w")
    told_of = {"root": "/repo", "new": ["by child", "by other"]}
    run.add("note.added", {"text": "files in the working tree: 2 new", "data": told_of})
    assert [one.target for one in found("write", run, child, other) if one.run == "run_a"] == ["by other"]


def test_a_replay_did_it_in_its_scratch_folder_until_it_left_its_tape() -> None:
    run = Told(origin={"run": "run_x", "mode": "resume", "at": 9})
    run.effect("file.written", "/repo/a", mode="w")
    run.call("process.started", {"argv": ["make"]})
    run.add("note.added", {"text": "past the tape", "data": {"left_tape": 9, "whole": True}})
    run.effect("file.written", "/repo/a", mode="w")
    before, after = found("write", run)
    assert (before.real, before.severity) == (False, "info")
    assert before.detail == "repo write: a, overwritten, in the scratch folder of a replay"
    assert (after.real, after.severity) == (True, "low")
    assert [one.real for one in found("process", run)] == [False]


def test_a_call_that_a_replay_reports_as_live_was_made() -> None:
    run = Told(origin={"run": "run_x", "mode": "model", "at": 9})
    seq = run.call("model.invoked", {"model": "m", "provider": "p"})
    with run.tool("t") as tool:
        run.effect("file.written", "/repo/a", mode="w")
    run.add("replay.reported", {"live_spans": [str(seq), str(tool), 7]})
    assert [one.real for one in found("network", run)] == [True]
    assert [one.real for one in found("write", run)] == [True]


def test_what_two_renames_did_is_told_though_one_thing_came_of_them() -> None:
    run = Told()
    for name in ("a", "b"):
        run.effect("file.renamed", f"/repo/{name}", to="/repo/c")
    assert [detail for _, detail in told(run, "write")] == ["repo write: a → c, renamed", "repo write: b → c, renamed"]


def test_of_several_records_the_worst_is_told() -> None:
    fine = Verification(run="r", integrity=Integrity(), completeness=Completeness(verdict="complete"))
    torn = Verification(run="t", integrity=Integrity(reason="torn_tail"), completeness=Completeness())
    broken = Verification(run="b", integrity=Integrity(verdict="broken", at=3), completeness=Completeness())
    lost = Verification(run="l", integrity=Integrity(), completeness=Completeness(verdict="missing"))
    audit = report([(one, Watched(one.run)) for one in (fine, torn, broken, lost)])
    assert (audit.integrity["verdict"], audit.integrity["run"], audit.integrity["at"]) == ("broken", "b", 3)
    assert (audit.completeness["verdict"], audit.completeness["run"]) == ("missing", "l")
    assert report([(fine, Watched("r"))]).integrity["verdict"] == "intact"


def test_counts_name_every_rule_and_findings_are_in_the_order_of_rules() -> None:
    run = Told()
    run.effect("socket.connected", "h:1")
    run.effect("file.written", "/repo/a", mode="w")
    audit = audited(run)
    assert list(audit.counts) == list(RULES)
    assert [one.rule for one in audit.findings] == ["write", "network"]
    assert audit.failing(["network", "delete", "medium", "info"]) == {"network": 1, "medium": 1, "info": 2}
    with pytest.raises(UsageError, match="no rule is called 'hihg'"):
        audit.failing(["deny", "hihg"])
    with pytest.raises(UsageError, match="no rule is called 'high'"):
        audit.only(["deny", "high"])
    assert [one.rule for one in audit.only(["network"]).findings] == ["network"]


def test_what_was_not_done_by_the_agent_fails_no_rule_but_its_severity() -> None:
    run = Told(agent=None)
    run.call("process.started", {"argv": ["python", "agent.py"]})
    run.add("policy.checked", {"decision": "ask", "capability": "shop.order", "mode": "observe"})
    run.add("policy.checked", {"decision": "allow", "capability": "shop.order", "mode": "observe"})
    run.add("ambient.read", {"reads": [{"of": "os.environ", "by": "m", "values": [{"API_KEY": None}]}]})
    run.effect("file.written", "/tmp/a", mode="w")
    audit = audited(run)
    assert {one.rule for one in audit.findings} == {"process", "deny", "secret", "write"}
    assert audit.failing([*RULES, "low"]) == {"write": 1}
    assert audit.failing(["info"]) == {"info": 4}
    replay = Told(origin={"run": "run_b", "mode": "exact"})
    replay.effect("file.written", "/repo/a", mode="w")
    assert audited(replay).counts["write"] == 1
    assert audited(replay).failing(["write", "low"]) == {}


STRANGE: list[Any] = [
    None,
    True,
    -1,
    2.5,
    "x",
    "[redacted:",
    [],
    [None, [{}]],
    {},
    {"a": [1]},
    {"$same": "0#/x"},
    {"of": 1},
]


def test_no_field_of_any_form_makes_it_fail() -> None:
    run = Told()
    for kind, payload in PAYLOADS.items():
        sorts = ["process.started", "process.signalled", "socket.bound", "environment.changed", "file.renamed", "x"]
        for what in sorts if kind == "effect.observed" else [None]:
            for field in payload.__struct_fields__:
                for strange in STRANGE:
                    span = str(len(run.events)) if payload.PHASE != "point" else None
                    inside = {"set": strange, "to": strange, "argv": strange, "signal": strange, "times": strange}
                    run.add(kind, {"what": what, "target": "t", "detail": inside, field: strange}, span=span, key="k")
        run.add(kind, ["no object"])
        run.add(kind, {"data": {"left_tape": None, "root": [], "new": [1]}, "text": "files in the working tree: x"})
    found = audited(run).findings
    assert all(one.rule in RULES and one.severity in SEVERITIES and one.seqs and one.seq in one.seqs for one in found)
