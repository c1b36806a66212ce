"""The verbs that deal with environments and releases, without making any."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from miscompile.cli.main import program
from miscompile.cli.verbs import findings
from miscompile.cli.verbs import targets as verb
from miscompile.core.events import ProgressListener
from miscompile.engine import single
from miscompile.environments import cache
from miscompile.environments.cache import Environment
from miscompile.findings.store import Store


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "cache" / "miscompile" / "environments"


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


def placed(target: str, version: str) -> Environment:
    name = cache.name_of(target, version)
    path = cache.cache_folder() / name
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").symlink_to("/bin/sh")
    made = Environment(name, target, version, "3.12.1", path, (f"{target}=={version}", "numpy<2"), {}, 300 << 20, 9.0)
    cache.save(made)
    return made


def test_environments_are_listed(folder: Path) -> None:
    empty = call("targets", "environments")
    assert (empty.exit_code, "there are no environments" in empty.stdout) == (0, True)
    assert json.loads(call("targets", "environments", "--json").stdout) == []
    placed("onnxruntime", "1.20.1")
    shown = call("targets", "environments").stdout
    for word in ("onnxruntime==1.20.1", "3.12.1", "300 MiB", "numpy<2"):
        assert word in shown
    [row] = json.loads(call("targets", "environments", "--json").stdout)
    assert (row["name"], row["path"]) == ("onnxruntime-1.20.1", str(folder / "onnxruntime-1.20.1"))
    [target] = [row for row in json.loads(call("targets", "--json").stdout) if row["name"] == "onnxruntime"]
    assert target["environments"] == ["1.20.1"]
    assert "1.20.1" in call("targets").stdout


def test_a_target_that_is_not_installed_is_listed_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "installed", lambda name: None if name == "onnxruntime" else "1")
    [row] = [row for row in json.loads(call("targets", "--json").stdout) if row["name"] == "onnxruntime"]
    assert (row["versions"], row["problem"]) == ({}, "onnxruntime not installed")
    assert "not installed" in call("targets").stdout


def test_environments_are_removed(folder: Path) -> None:
    for version in ("1.19.2", "1.20.1", "1.21.0"):
        placed("onnxruntime", version)
    assert call("targets", "remove", "onnxruntime==1.20.1").stdout == "removed onnxruntime-1.20.1\n"
    assert [one.version for one in cache.environments()] == ["1.19.2", "1.21.0"]
    assert call("targets", "remove", "onnxruntime").stdout.count("removed") == 2
    assert cache.environments() == []
    placed("onnxruntime", "1.20.1")
    (folder / "tvm-1.0" / "bin").mkdir(parents=True)
    assert call("targets", "remove", "--all").stdout == "removed onnxruntime-1.20.1\nremoved tvm-1.0\n"
    assert [place for place in folder.iterdir() if place.is_dir()] == []


def test_targets_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(target: str, version: str, on_progress: ProgressListener) -> Environment:
        on_progress(f"making {version}")
        return placed(target, version)

    monkeypatch.setattr(verb, "make_version", make)
    monkeypatch.setattr(verb, "make_newest", lambda target, on_progress: make(target, "9.9", on_progress))
    result = call("targets", "install", "onnxruntime==1.20.1", "onnxruntime")
    assert result.exit_code == 0
    assert "making 1.20.1" in result.stderr
    assert [line.split(" ")[0] for line in result.stdout.splitlines()] == ["onnxruntime==1.20.1", "onnxruntime==9.9"]


FOUND: dict[str, Any] = {
    "distribution": "x",
    "first_bad": "1.4.0",
    "last_good": "1.2.0",
    "newest": {"release": "1.9.0", "answer": "absent", "reason": ""},
    "skipped": ["1.3.0"],
    "tried": [{"release": "1.0.0", "answer": "absent", "reason": ""}],
}


def test_bisection_of_releases_is_said_and_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "one_record", lambda *_: None)
    history = SimpleNamespace(as_json=lambda: FOUND)
    monkeypatch.setattr(single, "releases", lambda _out, chosen, *_: [(name, history) for name in chosen])
    written: list[str] = []
    monkeypatch.setattr(findings, "write_issue_of_cluster", lambda _, name: written.append(name))
    with Store.open(tmp_path):
        pass
    said = call("bisect", tmp_path, "wrong-1", "--releases")
    assert said.exit_code == 0
    assert said.stdout.splitlines() == [
        "wrong-1 first shows in x 1.4.0",
        "the last release without it is 1.2.0",
        "the newest release, 1.9.0, does not show it",
        "skipped: 1.3.0",
    ]
    printed = call("bisect", tmp_path, "wrong-1", "--releases", "--json")
    assert json.loads(printed.stdout) == {"id": "wrong-1", **FOUND}
    assert written == ["wrong-1"] * 2, "the issue text says which releases were tried"


def test_all_causes_of_a_store_are_searched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "one_of_each_cause", lambda _: ["wrong-1", "wrong-2"])
    answers = [("wrong-1", SimpleNamespace(as_json=lambda: FOUND)), ("wrong-2", "the bug does not show")]
    monkeypatch.setattr(single, "releases", lambda *_: answers)
    monkeypatch.setattr(findings, "write_issue_of_cluster", lambda *_: "")
    with Store.open(tmp_path):
        pass
    said = call("bisect", tmp_path, "--releases")
    assert said.exit_code == 1, "one has no answer"
    assert "wrong-1 first shows in x 1.4.0" in said.stdout
    assert "wrong-2: the bug does not show" in said.stderr
    assert call("bisect", tmp_path).exit_code == 2, "the search for passes needs a finding"


def test_the_ends_of_the_history_are_told_apart() -> None:
    nothing = {**FOUND, "last_good": None}
    assert "no older release gives an answer" in findings.verdict("wrong-1", nothing)
    oldest = {**nothing, "first_bad": "1.0.0"}
    assert "that is the oldest release" in findings.verdict("wrong-1", oldest)
