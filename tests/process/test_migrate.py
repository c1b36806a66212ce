"""Migration from the command line: a planted bug is found, confirmed by its script, and not looked for twice."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from campaigns import COMMAND

from miscompile.core.tensor import tensor
from miscompile.findings.ledger import LEDGER, Ledger
from miscompile.findings.store import Store
from miscompile.instances.archive import Archive, write_archive
from miscompile.instances.instance import Instance, Parent
from miscompile.instances.values import Held
from miscompile.migration.results import place_of, read_rows
from miscompile.reports.issue import render_issue

pytestmark = [pytest.mark.process, pytest.mark.compiler]

SEED = 20260
FLOATS = np.array([[1.0, -2.5], [0.25, 8.0]], np.float32)


def node(op: str, *operands: object, version: int = 17, **attributes: int | tuple[int, ...]) -> Instance:
    inputs = tuple(Held(tensor(np.asarray(one))) for one in operands)
    return Instance("onnx", op, "node", (), attributes, inputs, version=version, source="tests", origin=f"test_{op}")


INSTANCES = (
    node("Or", np.array([True, False]), np.array([True, True])),
    node("Or", np.array([[True]]), np.array([True, True])),
    node("Gather", FLOATS, np.array([-1], np.int64), axis=0),
    node("Relu", FLOATS),
    node("Add", FLOATS, FLOATS),
    node("Dropout", FLOATS),
    node("RandomNormalLike", FLOATS),
    node("Reshape", FLOATS, np.array([3, 3], np.int64)),
)


def archive(folder: Path) -> Path:
    path = folder / "onnx.jsonl.gz"
    write_archive(Archive("onnx", INSTANCES), path)
    return path


def migrate(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [*COMMAND, "migrate", "--seed", str(SEED), "--workers", "1", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False)


@pytest.mark.slow
def test_a_planted_bug_is_found_confirmed_and_kept(tmp_path: Path) -> None:
    words = ("--to", "toy{bugs=bool_or_as_add+checked_gather}", "--instances", str(archive(tmp_path)), "--out", "out")
    done = migrate(tmp_path, *words, "--json")
    assert done.returncode == 1, done.stderr
    summary = json.loads(done.stdout)
    raised, found = sorted(
        (one for one in summary["findings"] if one["status"] == "confirmed"), key=lambda one: str(one["kind"])
    )
    assert (raised["kind"], raised["culprits"]) == ("exception", ["Gather"])
    assert (found["kind"], found["culprits"], found["duplicates"]) == ("wrong", ["Or"], 1)
    rows = {(row.api, row.status) for row in read_rows(place_of(tmp_path / "out", "onnx-toy"))}
    assert {("Or", "finding"), ("Relu", "pass"), ("Add", "pass"), ("RandomNormalLike", "random")} <= rows
    with Store.open(tmp_path / "out", create=False) as store:
        stored = store.load(found["id"])
    assert stored.finding.facts["witness"] == "onnxruntime"
    assert stored.finding.facts["test"] == 1
    shown = subprocess.run([sys.executable, "-c", stored.script], capture_output=True, text=True, check=False)
    assert shown.returncode == 1
    assert "BUG:" in shown.stdout
    with Ledger.open(tmp_path / "out" / LEDGER) as ledger:
        assert {entry.signature.culprits for entry in ledger.entries()} >= {("Gather",), ("Or",)}

    again = migrate(tmp_path, *words, "--resume")
    assert again.returncode == 1, again.stderr
    assert "0 tests, 8 are done" in again.stderr
    assert len(read_rows(place_of(tmp_path / "out", "onnx-toy"))) == len(INSTANCES)

    other = migrate(tmp_path, *words[:-1], "other", "--ledger", "out/ledger.db", "--json")
    assert other.returncode == 0, other.stderr
    assert {one["status"] for one in json.loads(other.stdout)["findings"]} <= {"known", "unconfirmed"}


@pytest.mark.slow
def test_a_neighbour_names_the_differences_that_its_bug_needs_and_the_boundary(tmp_path: Path) -> None:
    test = node("Or", np.zeros((2, 3), bool), np.zeros(3, bool))
    near = node("Or", np.ones((2, 4), bool), np.ones(4, bool))
    parent = Parent(test, {"input 0": "A", "input 1": "B"})
    near = replace(near, operands="first fed", source="neighbours", origin="A, B varied; from test_Or", parent=parent)
    path = tmp_path / "near.jsonl.gz"
    write_archive(Archive("onnx", (near,)), path)
    done = migrate(tmp_path, "--to", "toy{bugs=bool_or_as_add}", "--instances", str(path), "--out", "out", "--json")
    assert done.returncode == 1, done.stderr
    (found,) = (one for one in json.loads(done.stdout)["findings"] if one["status"] == "confirmed")
    with Store.open(tmp_path / "out", create=False) as store:
        stored = store.load(found["id"])
    facts = stored.finding.facts
    assert facts["differences"]["test"] == "test_Or"
    assert facts["differences"]["needed"] == ["elements of A, B all false -> all true"]
    assert facts["differences"]["undone"] == ["shape of A [2, 3] -> [2, 4]", "shape of B [3] -> [4]",
                                              "every operand but the first a constant"]  # fmt: skip
    assert set(facts["boundary"]["operands"]["shows"]) >= {"all are inputs", "all but the first are constants"}
    issue = render_issue(stored, "")
    assert "differed from `test_Or` of the library by: elements of A, B all false -> all true." in issue
    assert "| operands | " in issue


@pytest.mark.slow
def test_a_form_that_is_refused_is_a_finding_if_another_form_is_taken(tmp_path: Path) -> None:
    image = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    plain = node("MaxPool", image, kernel_shape=(2, 2), strides=(2, 2))
    near = node("MaxPool", image, ceil_mode=1, kernel_shape=(2, 2), strides=(2, 2))
    near = replace(near, source="neighbours", origin="ceil_mode 1; from test_MaxPool", parent=Parent(plain, {}))
    alone = node("AveragePool", image, ceil_mode=1, kernel_shape=(2, 2), strides=(2, 2))  # no other form of it is taken
    path = tmp_path / "near.jsonl.gz"
    write_archive(Archive("onnx", (near, alone, plain)), path)
    done = migrate(tmp_path, "--to", "toy", "--instances", str(path), "--out", "out", "--json")
    assert done.returncode == 1, done.stderr
    (found,) = json.loads(done.stdout)["findings"]
    assert (found["kind"], found["culprits"], found["status"]) == ("refused-form", ["MaxPool"], "confirmed")
    assert sorted((row.api, row.status) for row in read_rows(place_of(tmp_path / "out", "onnx-toy"))) == [
        ("AveragePool", "unsupported"), ("MaxPool", "pass"), ("MaxPool", "unsupported"),
    ]  # fmt: skip
    with Store.open(tmp_path / "out", create=False) as store:
        stored = store.load(found["id"])
    assert stored.finding.facts["differences"]["needed"] == ["ceil_mode given as 1"]
    issue = render_issue(stored, "")
    assert "A valid call is refused" in issue
    assert "The same operator with the same element types is taken with other parameters." in issue


@pytest.mark.slow
def test_a_sound_compiler_gives_nothing(tmp_path: Path) -> None:
    done = migrate(
        tmp_path, "--to", "onnxruntime", "--from", "onnx", "--instances", str(archive(tmp_path)), "--out", "o"
    )
    assert done.returncode == 0, done.stderr
    assert "Nothing found" in done.stdout
    assert not (tmp_path / "o" / "findings").exists()


@pytest.mark.slow
def test_front_ends_of_one_library_share_its_answers(tmp_path: Path) -> None:
    words = ("--to", "toy", "--to", "onnxruntime", "--instances", str(archive(tmp_path)))
    done = migrate(tmp_path, *words, "--out", "o")
    assert done.returncode == 0, done.stderr
    assert "torch" not in done.stderr + done.stdout  # the front ends of the archive's library alone
    first, second = (read_rows(place_of(tmp_path / "o", name)) for name in ("onnx-toy", "onnx-onnxruntime"))
    assert len(first) == len(second) == len(INSTANCES)
    dropped = [{row.api for row in rows if row.status == "random"} for rows in (first, second)]
    assert dropped == [{"RandomNormalLike"}] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "nothing"), "there is no target 'nothing'"),
        (("--to", "onnxruntime{via=nothing}"), "no front end 'nothing'"),
        (("--to", "iree", "--from", "keras"), "no front end for keras"),
        (("--to", "onnxruntime", "--from", "numpy"), "there is no library 'numpy'"),
        (("--to", "toy", "--operators", "NoSuch"), "no instance of onnx is of NoSuch"),
        (("--to", "toy", "--operators", "Add,NoSuch"), "no instance of onnx is of NoSuch"),
        (("--to", "toy", "--level", "fastest"), "has no level 'fastest'"),
        (("--to", "toy", "--order", "additional"), "'additional' is not one of 'opera'"),
        (("--to", "toy", "--preset", "opera", "--order", "random"), "leave one of the two out"),
        (("--to", "toy", "--out", "."), "is not empty"),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_exit_code_2(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    done = migrate(tmp_path, "--instances", str(archive(tmp_path)), *words)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


@pytest.mark.slow
def test_the_number_of_tests_holds_for_a_resumed_migration_as_well(tmp_path: Path) -> None:
    words = ("--to", "toy", "--instances", archive(tmp_path).name, "--out", "out")
    for number, count in enumerate((2, 2, 5)):
        done = migrate(tmp_path, *words, "--tests", str(count), *(["--resume"] if number else []))
        assert done.returncode == 0, done.stderr
        assert len(read_rows(place_of(tmp_path / "out", "onnx-toy"))) == count


@pytest.mark.slow
def test_a_resumed_migration_finds_its_archives_from_anywhere(tmp_path: Path) -> None:
    words = ("--to", "toy", "--out", str(tmp_path / "out"))
    assert migrate(tmp_path, *words, "--instances", archive(tmp_path).name, "--tests", "2").returncode == 0
    (tmp_path / "elsewhere").mkdir()
    done = migrate(tmp_path / "elsewhere", *words, "--resume")
    assert done.returncode == 0, done.stderr
    assert len(read_rows(place_of(tmp_path / "out", "onnx-toy"))) == len(INSTANCES)


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl.gz").write_bytes(b"nothing of the kind")
    done = migrate(tmp_path, "--to", "toy", "--instances", "bad.jsonl.gz")
    assert done.returncode == 2
    assert "bad.jsonl.gz is no archive of instances" in done.stderr
