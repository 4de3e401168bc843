"""What two runs ran with is told beside what they did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.views.diff.stories import (
    Part,
    both_ways,
    diffed,
    effect,
    model,
    policy,
    run,
    together,
    tool,
)  # fmt: skip

from playhead.event.envelope import Event


def test_the_mode_of_a_policy_is_of_the_setting_and_its_decisions_are_compared() -> None:
    def checked(mode: str, decision: str = "deny") -> Part:
        found = policy("a", decision)
        return replace(found, data={**found.data, "mode": mode})

    modes = [{"digest": "d", "mode": mode} for mode in ("observe", "enforce")]
    left, right = run(checked("observe"), policy=modes[0]), run(checked("enforce"), policy=modes[1], run="run_b")
    assert both_ways(left, right) == []
    assert [change.path for change in diffed(left, right).config] == ["/policy/mode"]
    right = run(checked("enforce", "allow"), policy=modes[1], run="run_b")
    assert both_ways(left, right) == [("changed", "output_changed", "fs.write")]


def test_what_another_policy_decided_and_did_not_stop_is_of_the_setting() -> None:
    def checked(resource: str, decision: str = "allow", mode: str = "observe") -> Part:
        about = {"capability": "fs.write", "resource": resource, "decision": decision, "mode": mode}
        return Part("policy.checked", {**about, "by": "policy"})

    bare = run(tool("a"), policy("src/"))
    watched = run(tool("a"), checked("x"), checked("y", "deny"), policy("src/"), run="run_b", policy={"digest": "p"})
    assert both_ways(bare, watched) == []
    body = tool("a"), checked("x"), policy("src/"), checked("y", "deny", "enforce")
    stopped = run(*body, run="run_b", policy={"digest": "q"})
    found = diffed(bare, stopped)
    assert found.headline is not None
    assert (found.headline.type, found.headline.right_seq) == ("added", 5)
    same = run(tool("a"), checked("x"), policy("src/"), run="run_b", policy={"digest": "p"})
    assert both_ways(watched, same) == [("removed", None, "fs.write")]  # the policy is the same: less was done


@pytest.mark.parametrize(
    ("ignore", "left_over"),
    [
        ("/files_read/~1tmp~1a", ["/files_read/~1tmp~1b", "/git/commit"]),
        ("/files_read//tmp/a", ["/files_read/~1tmp~1b", "/git/commit"]),
        ("/files_read//tmp", ["/git/commit"]),
        ("/files_read//tmp/*", ["/git/commit"]),
        ("/files_read/*", ["/git/commit"]),
        ("/files_read", ["/git/commit"]),
        ("/*/commit", ["/files_read/~1tmp~1a", "/files_read/~1tmp~1b"]),
        ("/files_read/tmp", ["/files_read/~1tmp~1a", "/files_read/~1tmp~1b", "/git/commit"]),
    ],
)
def test_what_is_ignored_is_not_told_of_the_setting_either(ignore: str, left_over: list[str]) -> None:
    def reading(digest: str) -> list[dict[str, Any]]:
        reads = [{"of": "open", "values": [{"path": f"/tmp/{name}", "digest": digest} for name in "ab"]}]
        return run(Part("ambient.read", {"reads": reads}), git={"commit": digest})

    for ones in (("1", "2"), ("2", "1")):
        found = diffed(*map(reading, ones), ignore=[ignore])
        assert sorted(change.path for change in found.config) == left_over


def test_many_differences_in_the_setting_keep_the_names_of_their_parts() -> None:
    def reading(digest: str) -> list[dict[str, Any]]:
        groups = [
            {"of": of, "values": [{"path": f"{at}.py", "digest": digest} for at in range(30)]}
            for of in ("open", "import")
        ]
        return run(Part("ambient.read", {"reads": groups}))

    paths = [change.path for change in diffed(reading("1"), reading("2")).config]
    assert (len(paths), "/code/0.py" in paths, "/files_read/29.py" in paths) == (60, True, True)


def test_the_setting_is_told_beside_and_is_no_deviation() -> None:
    left = run(
        effect("/a"),
        git={"commit": "1", "branch": "main"},
        environment={"packages": {"openai": "1"}},
        policy={"digest": "x"},
    )
    right = run(
        effect("/b"),
        git={"commit": "2", "branch": "main"},
        environment={"packages": {"openai": "2"}},
        policy={"digest": "y"},
        run="run_b",
    )
    found = diffed(left, right)
    assert found.identical is True
    assert {change.path for change in found.config} == {
        "/git/commit",
        "/packages/openai",
        "/policy/digest",
        "/effects/file.written/0",
    }


def test_files_of_two_folders_are_compared_as_they_are_called_in_them() -> None:
    def ran(folder: str, digest: str, name: str) -> list[Event]:
        def read(of: str, file: str, digest: str) -> dict[str, Any]:
            return {"of": of, "values": [{"path": f"{folder}/{file}", "digest": digest}]}

        reads = [read("import", "agent.py", "1"), read("open", "prices.json", digest)]
        entrypoint = {"argv": ["python", "agent.py"], "cwd": folder, "file": f"{folder}/agent.py"}
        body = (Part("ambient.read", {"reads": reads}), effect(f"{folder}/out.txt"))
        return run(*body, run=name, entrypoint=entrypoint)

    found = diffed(ran("/home/ada/agent", "2", "run_a"), ran("/home/ci/work", "3", "run_b"))
    assert [change.path for change in found.config] == ["/entrypoint/cwd", "/files_read/prices.json"]


def test_model_parameters_and_system_prompt_are_part_of_the_setting() -> None:
    def story(temperature: float, prompt: str, model_name: str) -> list[Any]:
        request = {
            "temperature": temperature,
            "messages": [{"role": "system", "content": prompt}, {"role": "user", "content": "x"}],
        }
        return [model(request, "ok", model_name)]

    found = diffed(run(*story(0.0, "Be kind", "a")), run(*story(0.7, "Be curt", "b"), run="run_b"))
    assert [change.path for change in found.config] == ["/models/0", "/parameters/temperature/0", "/system_prompts/0"]


def test_provider_and_the_model_that_answered_are_part_of_the_setting() -> None:
    def story(provider: str, *answered: str | None) -> list[Part]:
        asked = {"provider": provider, "model": "m", "request": "?"}
        return [Part("model.invoked", asked, {"status": "ok", "model": one, "response": "r"}) for one in answered]

    same = diffed(run(*story("openai", "m-1", None)), run(*story("openai", "m-1", "m"), run="run_b"))
    assert (same.config, same.deviations) == ([], [])
    found = diffed(run(*story("openai", "m-1")), run(*story("azure", "m-2"), run="run_b"))
    assert [(one.path, one.left, one.right) for one in found.config] == [
        ("/providers/0", "openai", "azure"),
        ("/models_that_answered/0", "m-1", "m-2"),
    ]
    assert found.deviations == []


def test_parameters_inside_of_others_are_of_the_setting() -> None:
    def asked(**request: Any) -> Part:
        return model({"messages": [], **request}, "yes")

    left = run(asked(generationConfig={"temperature": 0, "schema": {"a": 1}}, stop=["a"]))
    right = run(asked(generationConfig={"temperature": 1, "schema": {"a": 2}}, stop=["b"]), run="run_b")
    paths = [change.path for change in diffed(left, right).config]
    assert paths == [
        "/parameters/generationConfig.schema/0", "/parameters/generationConfig.temperature/0", "/parameters/stop/0"
    ]  # fmt: skip


def test_the_order_in_which_tasks_first_ask_and_the_numbers_of_processes_are_not_of_the_setting() -> None:
    def asked(system: str) -> Part:
        return model({"messages": [{"role": "system", "content": system}, {"role": "user", "content": system}]}, "yes")

    def signalled(number: int) -> Part:
        return Part("effect.observed", {"what": "process.signalled", "target": str(number)})

    one, other = asked("be brief"), asked("be kind")
    left, right = run(together(one, other), signalled(4)), run(together(other, one), signalled(5), run="run_b")
    assert diffed(left, right).config == []
