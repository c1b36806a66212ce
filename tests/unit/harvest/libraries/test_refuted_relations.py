"""Relations that do not hold in general: what the table says, and that nothing which uses relations uses those."""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import miscompile.harvest.relations as relations_package
from miscompile.base.errors import SpecError, UsageError
from miscompile.cli.harvesting import harvest_library
from miscompile.harvest.libraries import sources
from miscompile.harvest.relations import run
from miscompile.harvest.relations.refuted import (
    Refuted,
    keep_relations,
    parse_refuted,
    refuted_relations,
    relations_beside,
)
from miscompile.harvest.relations.study import Relation, read_relations
from miscompile.instances.archive import Archive, read_archive
from miscompile.instances.instance import Instance
from miscompile.targets.inductor import relations as used

ALL = read_relations(Path(relations_package.__file__).parent / "data" / "relations-torch.json")


def sound_relations() -> list[Relation]:
    """Return the equivalences between PyTorch's operators that come with the tool and are not refuted."""
    without = refuted_relations()
    return [one for one in ALL if one.verdict == "equivalent" and not any(entry.covers(one) for entry in without)]


def test_every_entry_is_about_a_relation_that_was_seen() -> None:
    for entry in refuted_relations():
        assert any(entry.covers(relation) for relation in ALL), entry
        assert entry.reason.strip()


def test_what_is_refuted_is_not_sound() -> None:
    sound = sound_relations()
    assert all(relation.verdict == "equivalent" for relation in sound)
    pairs = {(relation.first, relation.second, relation.then) for relation in sound}
    assert ("torch.abs", "torch.absolute", "") in pairs
    assert ("torch.sqrt", "torch.rsqrt", "torch.reciprocal") in pairs
    assert ("torch.fmax", "torch.maximum", "") not in pairs
    assert ("torch.abs", "torch.square", "torch.sqrt") not in pairs


def test_an_entry_covers_any_two_or_one_of_three() -> None:
    among = Refuted("why", among=("torch.a", "torch.b", "torch.c"))
    composed = Refuted("why", composed=("torch.a", "torch.b", "torch.c"))
    pair = Relation("torch", "torch.a", "torch.c", "signature", "equivalent", 9, 9)
    three = Relation("torch", "torch.a", "torch.b", "composed", "equivalent", 9, 9, then="torch.c")
    other = Relation("torch", "torch.a", "torch.c", "composed", "equivalent", 9, 9, then="torch.b")
    assert among.covers(pair)
    assert composed.covers(three)
    assert not any((among.covers(three), composed.covers(pair), composed.covers(other)))


@pytest.mark.parametrize(
    "text",
    ["[[refuted]]\namong = ['a', 'b']", "[[refuted]]\nreason = 'x'", "[[refuted]]\nreason = 'x'\namong = ['a']",
     "[[refuted]]\nreason = 'x'\ncomposed = ['a', 'b']", "[[refuted]]\nreason = 'x'\nwhich = 1", "["],
)  # fmt: skip
def test_a_malformed_table_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parse_refuted(text)


SEEN = [
    Relation("torch", "torch.abs", "torch.absolute", "signature", "equivalent", 9, 9),
    Relation("torch", "torch.fmax", "torch.maximum", "signature", "equivalent", 9, 9),
    Relation("torch", "torch.fmax", "torch.fmin", "signature", "status", 9, 12),
]


def test_relations_are_kept_beside_the_archive_and_say_what_is_refuted(tmp_path: Path) -> None:
    told: list[str] = []
    archive = Archive("torch", (), {"torch": "2.0"}, {"stopped": False})
    place = keep_relations(SEEN, archive, tmp_path / "new" / "mine.jsonl.gz", told.append)
    assert place == tmp_path / "new" / "mine.relations.json"
    assert read_relations(place) == SEEN[:2]
    data = json.loads(place.read_text("utf-8"))
    assert data["versions"] == {"torch": "2.0"}
    assert data["status"] == [["torch.fmax", "torch.fmin"]]
    (entry,) = data["refuted"]
    assert (entry["first"], entry["second"], entry["then"]) == ("torch.fmax", "torch.maximum", "")
    assert "not a number" in entry["reason"]
    assert told == [f"2 relations, of which 1 are known not to hold in general, are in {place}"]


def test_a_stopped_harvest_leaves_older_relations(tmp_path: Path) -> None:
    out = tmp_path / "mine.jsonl.gz"
    stopped = Archive("torch", (), {}, {"stopped": True})
    place = keep_relations(SEEN, stopped, out, lambda text: None)
    assert read_relations(place) == SEEN[:2], "there was nothing older"
    keep_relations([], stopped, out, lambda text: None)
    assert read_relations(place) == SEEN[:2]
    keep_relations([], Archive("torch", ()), out, lambda text: None)
    assert read_relations(place) == []


@pytest.mark.parametrize("name", ["mine.jsonl.gz", "mine.jsonl", "mine.gz", "mine"])
def test_the_ending_of_the_archive_gives_way(name: str) -> None:
    assert relations_beside(Path("a") / name) == Path("a") / "mine.relations.json"


def test_a_harvest_of_relations_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive("keras", (Instance("keras", "keras.ops.abs", "function"),), {"keras": "3.0"}, {})
    monkeypatch.setattr(sources, "own_instances", lambda library, on_progress: archive)
    monkeypatch.setattr(sources, "place_of", lambda library: tmp_path / f"{library}.jsonl.gz")
    asked: list[tuple[str, Path]] = []

    def harvest(library: str, known: Path, on_progress: Callable[[str], None]) -> tuple[Archive, list[Relation]]:
        asked.append((library, known))
        return archive, SEEN

    monkeypatch.setattr(run, "harvest_relations", harvest)
    out = tmp_path / "new" / "mine.jsonl.gz"
    assert harvest_library("keras", "relations", None, out, 1.0, lambda text: None, as_json=True) == 0
    assert asked == [("keras", tmp_path / "keras.jsonl.gz")]
    assert read_archive(out) == archive
    assert read_relations(out.with_name("mine.relations.json")) == SEEN[:2]


@pytest.mark.parametrize("kind", ["constraints", "relations"])
def test_a_long_harvest_looks_first_whether_it_can_be_written(tmp_path: Path, kind: str) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        harvest_library("torch", kind, None, tmp_path, 1.0, lambda text: None, as_json=True)


def lowered_names() -> set[str]:
    """Return the functions and methods that lowerings to torch name."""
    found = set()
    for file in files("miscompile.targets.lowering").joinpath("torch").iterdir():
        if file.name.endswith(".py"):
            text = file.read_text("utf-8")
            paths = re.findall(r"\b((?:torch|F)(?:\.\w+)+)", text)
            found |= {re.sub(r"^F\.", "torch.nn.functional.", path) for path in paths}
            found |= {f"torch.Tensor.{name}" for name in re.findall(r"[\w)\]]\.(\w+)\(", text)}
    return found


def groups(pairs: list[tuple[str, str]]) -> list[frozenset[str]]:
    """Return the operators that pairs bring together."""
    heads: dict[str, str] = {}

    def head(name: str) -> str:
        while heads.setdefault(name, name) != name:
            name = heads[name]
        return name

    for one, other in pairs:
        heads[head(one)] = head(other)
    found = defaultdict(set)
    for name in list(heads):
        found[head(name)].add(name)
    return [frozenset(names) for names in found.values()]


def test_the_form_of_inductor_has_the_sound_relations_of_what_lowerings_call() -> None:
    sound = [relation for relation in sound_relations() if "module" not in relation.forms]
    named = lowered_names()
    wanted = groups([(relation.first, relation.second) for relation in sound if not relation.then])
    wanted = [group for group in wanted if group & named]
    has = [frozenset(re.sub(r"\bTensor\.", "torch.Tensor.", text).split()) for text in used.SAME]
    has += [frozenset((f"torch.{name}", f"torch.Tensor.{name}")) for name in used.METHODS.split()]
    assert sorted(map(sorted, has)) == sorted(map(sorted, wanted))
    composed = {(relation.first, relation.second, relation.then) for relation in sound if relation.then}
    called = {name for group in wanted for name in group}
    assert set(used.COMPOSED) == {relation for relation in composed if relation[0] in called}


def test_no_two_of_a_group_are_refuted() -> None:
    for entry in refuted_relations():
        for text in used.SAME:
            assert len(set(re.sub(r"\bTensor\.", "torch.Tensor.", text).split()) & set(entry.among)) < 2
        assert entry.composed not in used.COMPOSED


COUNTEREXAMPLES: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "torch.fmax": lambda torch, x: (torch.fmax(x(1.0), x("nan")), torch.maximum(x(1.0), x("nan"))),
    "torch.fmin": lambda torch, x: (torch.fmin(x(1.0), x("nan")), torch.minimum(x(1.0), x("nan"))),
    "torch.nanquantile": lambda torch, x: (torch.nanquantile(x(1, "nan"), 0.5), torch.quantile(x(1, "nan"), 0.5)),
    "torch.nn.functional.relu": lambda torch, x: (torch.relu(x(7.0)), torch.nn.functional.relu6(x(7.0))),
    "torch.nn.ReLU": lambda torch, x: (torch.nn.ReLU()(x(7.0)), torch.nn.ReLU6()(x(7.0))),
    "torch.adjoint": lambda torch, x: ((x(2.0) * 1j).reshape(1, 1).adjoint(), (x(2.0) * 1j).reshape(1, 1).t()),
    "torch.linalg.norm": lambda torch, x: (torch.linalg.norm(torch.eye(2), 2), torch.eye(2).norm(2)),
    "torch.nn.functional.softsign": lambda torch, x: (
        torch.sigmoid(x(100.0)), torch.nn.functional.softsign(torch.exp(x(100.0)))),
    "torch.exp": lambda torch, x: (torch.sigmoid(x(-89.0)), torch.exp(torch.nn.functional.logsigmoid(x(-89.0)))),
    "torch.log": lambda torch, x: (torch.nn.functional.logsigmoid(x(-200.0)), torch.log(torch.sigmoid(x(-200.0)))),
    "torch.rsqrt": lambda torch, x: (torch.sqrt(x(-0.0)), torch.rsqrt(torch.reciprocal(x(-0.0)))),
    "torch.sqrt": lambda torch, x: (torch.rsqrt(x(-0.0)), torch.sqrt(torch.reciprocal(x(-0.0)))),
    "torch.square": lambda torch, x: (torch.abs(x(1e-30)), torch.sqrt(torch.square(x(1e-30)))),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_what_is_refuted_differs(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed here")
    one, other = COUNTEREXAMPLES[name](torch, lambda *values: torch.tensor([float(value) for value in values]))
    assert one.shape != other.shape or not bool((one == other).all())
    named = {name for entry in refuted_relations() for name in (*entry.among, *entry.composed)}
    assert name in named
