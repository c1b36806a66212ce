"""A finding's folder: lossless, atomic, and plain about damage."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import StoreError
from miscompile.base.specs import parse_spec
from miscompile.core.case import Case, Port, Program
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Evidence, FindingKind
from miscompile.findings import folder
from miscompile.findings.encode import build_from, build_json, builds_of, evidence_facts, jsonable
from miscompile.findings.folder import Stored, add_file, identifiers, identify, load, place, recover, remove, save

TEXT = st.text(max_size=20)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)


def a_case(payload: bytes = b"model", values: tuple[float, ...] = (1.0, 2.0)) -> Case:
    port = Port("x", "float32", (len(values),))
    feed = (tensor(np.array(values, np.float32)),)
    return Case(Program("onnx", payload, (port,), (Port("y", "float32", None),)), (feed,), {"seed": 0})


def a_finding(name: str = "wrong-1", culprits: tuple[str, ...] = ("Fuse",), case: Case | None = None) -> Finding:
    signature = Signature("toy", "wrong", "", culprits, "")
    return Finding(name, Property("pair", "toy", signature), case or a_case(), "y differs", {"test": 3})


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    if dtype == "string":
        texts = np.empty(shape, object)
        texts.flat[:] = draw(st.lists(st.text(max_size=5), min_size=texts.size, max_size=texts.size))
        return Tensor(dtype, texts)
    storage = DTYPES[dtype].storage
    size = int(np.prod(shape)) * storage.itemsize
    raw = draw(st.binary(min_size=size, max_size=size))
    if storage == np.bool_:
        raw = bytes(byte & 1 for byte in raw)
    return Tensor(dtype, np.frombuffer(raw, storage).reshape(shape))


PORTS = st.builds(
    Port,
    TEXT,
    st.sampled_from(sorted(DTYPES)),
    st.none() | st.lists(st.none() | st.integers(0, 9) | TEXT, max_size=3).map(tuple),
    st.booleans(),
)
CASES = st.builds(
    Case,
    st.builds(
        Program, st.just("onnx"), st.binary(max_size=20), st.lists(PORTS, max_size=2).map(tuple),
        st.lists(PORTS, max_size=2).map(tuple),
    ),
    st.lists(st.lists(tensors(), max_size=2).map(tuple), max_size=2).map(tuple),
    OBJECTS,
)  # fmt: skip
SIGNATURES = st.builds(
    Signature, TEXT, st.sampled_from(get_args(FindingKind)), TEXT, st.lists(TEXT, max_size=2).map(tuple), TEXT
)
STORED = st.builds(
    Stored,
    st.builds(Finding, st.just("wrong-1"), st.builds(Property, TEXT, TEXT, SIGNATURES), CASES, TEXT, OBJECTS),
    st.sampled_from(get_args(folder.FindingStatus)),
    st.none() | CASES,
    st.dictionaries(TEXT, TEXT, max_size=2),
    st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20),
    st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20),
)


def same_case(left: Case | None, right: Case | None) -> bool:
    if left is None or right is None:
        return left is right
    return (
        left.program == right.program
        and left.recipe == right.recipe
        and [len(feed) for feed in left.feeds] == [len(feed) for feed in right.feeds]
        and all(
            a.same(b) for one, two in zip(left.feeds, right.feeds, strict=True) for a, b in zip(one, two, strict=True)
        )
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stored=STORED)
def test_what_is_saved_is_loaded_bit_by_bit(stored: Stored, tmp_path: Path) -> None:
    save(tmp_path, stored)
    back = load(tmp_path, "wrong-1")
    assert same_case(back.finding.case, stored.finding.case)
    assert same_case(back.original, stored.original)
    assert (back.finding.property, back.finding.message) == (stored.finding.property, stored.finding.message)
    assert back.finding.facts == stored.finding.facts
    assert (back.status, back.versions, back.script, back.issue) == (
        stored.status, stored.versions, stored.script, stored.issue,
    )  # fmt: skip


def test_nan_payloads_negative_zero_and_bfloat16_survive(tmp_path: Path) -> None:
    odd = np.array([0x7FC12345, 0x80000000], np.uint32).view(np.float32)
    words = tensor(np.array([1.0, -2.5], np.float32), "bfloat16")
    feed = (tensor(odd), words)
    ports = (Port("x", "float32", (2,)), Port("z", "bfloat16", (2,)))
    case = Case(Program("onnx", b"m", ports, ()), (feed,))
    save(tmp_path, Stored(a_finding(case=case)))
    back = load(tmp_path, "wrong-1").finding.case.feeds[0]
    assert back[0].same(feed[0])
    assert back[1].same(words)
    with np.load(tmp_path / "findings" / "wrong-1" / "feeds.npz") as arrays:
        assert arrays["0_1"].dtype == np.uint16


def test_the_folder_holds_files_that_a_person_can_open(tmp_path: Path) -> None:
    original = a_case(b"larger")
    at = save(tmp_path, Stored(a_finding(), "confirmed", original, {"onnx": "1"}, "print()", "# issue"))
    assert {path.name for path in at.iterdir()} == {
        "finding.json", "model.onnx", "feeds.npz", "original.onnx", "original-feeds.npz", "repro.py", "issue.md",
    }  # fmt: skip
    assert (at / "model.onnx").read_bytes() == b"model"
    assert json.loads((at / "finding.json").read_text())["signature"] == "toy:wrong:Fuse"


def test_saving_again_replaces_and_leaves_no_trace(tmp_path: Path) -> None:
    save(tmp_path, Stored(a_finding(), "pending", a_case(b"original")))
    save(tmp_path, Stored(a_finding(), "confirmed"))
    assert load(tmp_path, "wrong-1").status == "confirmed"
    assert load(tmp_path, "wrong-1").original is None
    assert [path.name for path in (tmp_path / "findings").iterdir()] == ["wrong-1"]


def test_a_verdict_stays_when_a_finding_is_saved_again(tmp_path: Path) -> None:
    (save(tmp_path, Stored(a_finding(), "pending")) / "verdict.toml").write_text('verdict = "true"\n')
    assert (save(tmp_path, Stored(a_finding(), "confirmed")) / "verdict.toml").read_text() == 'verdict = "true"\n'


def test_tests_for_the_compilers_repository_are_files_that_every_saving_keeps(tmp_path: Path) -> None:
    facts = {"upstream_test": "def test_x(): ...", "upstream_files": {"upstream_test.mlir": "// RUN", "../out": "no"}}
    stored = Stored(replace(a_finding(), facts=facts), "confirmed")
    for _ in range(2):
        save(tmp_path, stored)
        at = tmp_path / "findings" / "wrong-1"
        assert (at / "upstream_test.py").read_text() == "def test_x(): ...\n"
        assert (at / "upstream_test.mlir").read_text() == "// RUN"
        assert not (at.parent / "out").exists()
        stored = load(tmp_path, "wrong-1")


def test_a_kill_between_the_two_renames_loses_nothing(tmp_path: Path) -> None:
    at = save(tmp_path, Stored(a_finding()))
    at.rename(at.with_name(".old-wrong-1"))
    (tmp_path / "findings" / ".new-wrong-1").mkdir()
    assert identifiers(tmp_path) == ["wrong-1"]
    assert load(tmp_path, "wrong-1").finding.message == "y differs"
    recover(tmp_path)
    assert [path.name for path in (tmp_path / "findings").iterdir()] == ["wrong-1"]


def test_a_kill_after_the_second_rename_keeps_the_new_state(tmp_path: Path) -> None:
    at = save(tmp_path, Stored(a_finding()))
    at.rename(at.with_name(".old-wrong-1"))
    save(tmp_path, Stored(a_finding(), "confirmed"))
    save(tmp_path, Stored(a_finding("wrong-2")))
    (tmp_path / "findings" / "wrong-2").rename(tmp_path / "findings" / ".old-wrong-1")
    recover(tmp_path)
    assert load(tmp_path, "wrong-1").status == "confirmed"
    assert identifiers(tmp_path) == ["wrong-1"]


def test_several_write_and_read_the_same_finding_at_once(tmp_path: Path) -> None:
    """Lanes and the coordinator do; a reader sees one state or another, and nothing is left aside.

    Only one thread reads: Python 3.11 may raise SystemError when two threads parse an array's header at once
    (https://github.com/python/cpython/issues/106905).
    """
    save(tmp_path, Stored(a_finding()))

    def work(number: int) -> None:
        for _ in range(20):
            if number:
                save(tmp_path, Stored(a_finding()))
            else:
                assert load(tmp_path, "wrong-1").finding.case.program.payload == b"model"

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert [path.name for path in (tmp_path / "findings").iterdir()] == ["wrong-1"]


def test_add_file_and_remove(tmp_path: Path) -> None:
    save(tmp_path, Stored(a_finding()))
    assert add_file(tmp_path, "wrong-1", "issue.md", "hello").read_text() == "hello"
    assert load(tmp_path, "wrong-1").issue == "hello"
    with pytest.raises(StoreError, match="no finding 'wrong-9'"):
        add_file(tmp_path, "wrong-9", "issue.md", "hello")
    remove(tmp_path, "wrong-1")
    assert identifiers(tmp_path) == []


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "x" * 101, "a b"])
def test_identifiers_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="no identifier"):
        place(tmp_path, name)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="choose another --out"):
        save(tmp_path / "file" / "out", Stored(a_finding()))


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no finding"):
        load(tmp_path, "wrong-1")
    assert identifiers(tmp_path) == []


DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "cut json": ("finding.json", lambda data: data[: len(data) // 2]),
    "no json": ("finding.json", lambda data: b"\xff\xfe"),
    "a list": ("finding.json", lambda data: b"[]"),
    "a missing key": ("finding.json", lambda data: b'{"schema": 1}'),
    "an unknown status": ("finding.json", lambda data: data.replace(b'"pending"', b'"maybe"')),
    "an unknown kind": ("finding.json", lambda data: data.replace(b'"wrong"', b'"rong"')),
    "another model": ("model.onnx", lambda data: b"other"),
    "cut feeds": ("feeds.npz", lambda data: data[:40]),
    "empty feeds": ("feeds.npz", lambda data: b""),
    "another shape": ("finding.json", lambda data: data.replace(b"   2\n", b"   3\n")),
}


@pytest.mark.parametrize("kind", sorted(DAMAGE))
def test_damage_is_one_clear_line(tmp_path: Path, kind: str) -> None:
    at = save(tmp_path, Stored(a_finding()))
    name, spoil = DAMAGE[kind]
    before = (at / name).read_bytes()
    (at / name).write_bytes(spoil(before))
    assert (at / name).read_bytes() != before
    with pytest.raises(StoreError, match=r"is damaged .*; move the folder away") as caught:
        load(tmp_path, "wrong-1")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["finding.json", "model.onnx", "feeds.npz"])
def test_a_lost_file_is_damage(tmp_path: Path, name: str) -> None:
    at = save(tmp_path, Stored(a_finding()))
    (at / name).unlink()
    with pytest.raises(StoreError, match="is damaged"):
        load(tmp_path, "wrong-1")


def test_another_schema_version_is_told_apart_from_damage(tmp_path: Path) -> None:
    at = save(tmp_path, Stored(a_finding()))
    data = json.loads((at / "finding.json").read_text())
    (at / "finding.json").write_text(json.dumps({**data, "schema": 99}))
    with pytest.raises(StoreError, match="schema version 99, this miscompile reads 1"):
        load(tmp_path, "wrong-1")


def test_a_build_keeps_its_transform_as_a_text() -> None:
    build = Build("full", transform=parse_spec("functions{seed=3,depth=2}"), sequence=("A", "B"))
    data = json.loads(json.dumps(build_json(build)))
    assert data["form"] == "functions{seed=3, depth=2}"
    assert build_from(data) == build
    assert build_json(Build())["form"] == ""
    assert build_from(build_json(Build())) == Build()
    del data["form"]
    assert build_from(data).transform is None, "older findings have no such key"


def test_evidence_keeps_both_builds() -> None:
    case = a_case()
    faulty, reference = Build("full", frozenset({"B", "A"}), 2), Build("off", observe=True)
    evidence = Evidence(
        "wrong", "bits", "y differs", Run(case, "toy", faulty), Run(case, "toy", reference), "y",
        {"ratio": np.float32(2.0), "worst": float("inf"), "where": (1, 2)},
    )  # fmt: skip
    facts = json.loads(json.dumps(evidence_facts(evidence), allow_nan=False))
    assert builds_of(facts) == (faulty, reference)
    assert facts["details"] == {"ratio": 2.0, "worst": "inf", "where": [1, 2]}
    assert builds_of(evidence_facts(Evidence("death", "status", "m", Run(case, "toy", faulty)))) == (faulty, None)


@given(
    st.builds(
        Build,
        TEXT,
        st.frozensets(TEXT, max_size=3),
        st.integers(1, 64),
        st.sampled_from(("cpu", "cuda")),
        st.booleans(),
    )
)
def test_builds_survive_json(build: Build) -> None:
    assert build_from(json.loads(json.dumps(build_json(build)))) == build


def test_a_fact_that_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        jsonable({"a": object()})


def test_the_identifier_depends_on_kind_target_program_and_feeds() -> None:
    names = {
        identify("wrong", "toy", a_case()),
        identify("death", "toy", a_case()),
        identify("wrong", "onnxruntime", a_case()),
        identify("wrong", "toy", a_case(b"other")),
        identify("wrong", "toy", a_case(values=(1.0, 3.0))),
    }
    assert len(names) == 5
    assert identify("wrong", "toy", a_case()) in names
