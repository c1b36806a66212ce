"""Findings that came up in another form of the program: made plain, restricted, and attributed by resistance."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from virtual_compiler import FLOAT, PASSES, VirtualCompiler, Wrong, case_of, on, pair

from miscompile.base.specs import Spec, parse_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Crashed, Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.graph.model import Graph, Model, Node, ValueInfo
from miscompile.graph.read import read
from miscompile.ops.analysis import reprogram
from miscompile.oracles.pair import BuildPair
from miscompile.transforms.catalogue import places_of, present
from miscompile.triage.bisect import culprits, fewest
from miscompile.triage.materialise import materialised
from miscompile.triage.resistance import resisted

NODES = (
    Node("MatMul", ("x", "w"), ("m",)),
    Node("Add", ("m", "b"), ("a",)),
    Node("Neg", ("a",), ("n",)),
    Node("Abs", ("n",), ("y",)),
)


def chain() -> Case:
    constants = {"w": tensor(np.ones((4, 4), np.float32)), "b": tensor(np.ones((3, 4), np.float32))}
    graph = Graph("g", (ValueInfo("x", FLOAT),), (ValueInfo("y", FLOAT),), NODES, constants)
    return case_of(Model(graph, {"": 18}), {"x": np.ones((3, 4), np.float32)})


@dataclass
class Presented:
    """A runner that presents programs before it hands them on, as a campaign's pool does."""

    inner: VirtualCompiler
    seen: list[Build] = field(default_factory=list)

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        self.seen += [run.build for run in runs]
        shown = [
            replace(run, case=present(run.case, run.build.transform)[0].case) if run.build.transform else run
            for run in runs
        ]
        return self.inner.run(shown)


def wrong_behind_identity(of: str) -> VirtualCompiler:
    """Optimised builds go wrong where an Identity reads the value `of`."""

    def bug(model: Model, build: Build) -> Wrong | None:
        places = [place for place, node in enumerate(model.graph.nodes) if node.op == "Identity" and of in node.inputs]
        return Wrong(places[0]) if places and build.level == "full" else None

    return VirtualCompiler([bug])


IDENTITY = parse_spec("identity{seed=1, share=1.0}")


def test_a_presented_program_becomes_a_case_of_its_own() -> None:
    own = chain()
    (found,) = materialised(own, IDENTITY, reprogram)
    assert found.program != own.program
    assert "Identity" in {node.op for node in read(found.program.payload).graph.nodes}
    assert found.feeds is own.feeds
    for text in ("again", "relax{count=1}", "inline{seed=1}"):
        assert list(materialised(own, parse_spec(text), reprogram)) == []
    assert list(materialised(own, None, reprogram)) == []


def test_a_transform_is_restricted_to_the_places_that_matter() -> None:
    runner = Presented(wrong_behind_identity("n"))
    found = fewest(chain(), BuildPair("toy", Build("off"), Build("full", transform=IDENTITY)), runner, random.Random(0))
    assert len(places_of(chain(), IDENTITY)) > 3
    assert str(found.faulty.transform) == "identity{seed=1, share=1.0, only=n}"


def test_a_pair_that_shows_nothing_or_has_no_transform_stays_as_it_is() -> None:
    runner, plain = Presented(wrong_behind_identity("n")), BuildPair("toy", Build("off"), Build("full"))
    assert fewest(chain(), plain, runner, random.Random(0)) is plain
    quiet = BuildPair("toy", Build("off"), Build("full", transform=parse_spec("order{seed=1}")))
    assert fewest(chain(), quiet, runner, random.Random(0)) is quiet


def test_no_pass_is_named_for_a_death_that_comes_and_goes() -> None:
    chance = random.Random(5)

    def sometimes(model: Model, build: Build) -> Crashed | None:
        return Crashed("compile", 11) if on(build, "Pass03") and chance.random() < 0.5 else None

    def always(model: Model, build: Build) -> Crashed | None:
        return Crashed("compile", 11) if on(build, "Pass03") else None

    steady = VirtualCompiler([always])
    assert culprits(chain(), pair(), steady, PASSES, (), random.Random(0)) == ("Pass03",)
    for _ in range(5):
        assert culprits(chain(), pair(), VirtualCompiler([sometimes]), PASSES, (), random.Random(0)) == ()


@dataclass
class Heals:
    """A runner whose full build is right only where a barrier stands on the edge `edge`."""

    edge: str
    seen: list[Spec | None] = field(default_factory=list)

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return [self._answer(run) for run in runs]

    def _answer(self, run: Run) -> Outcome:
        self.seen.append(run.build.transform)
        barred = False
        if run.build.transform:
            (share,) = present(run.case, run.build.transform)
            before = read(run.case.program.payload).graph.nodes
            after = {node.outputs[0]: node for node in read(share.case.program.payload).graph.nodes}
            producer, consumer = self.edge.split(">")
            barred = any(node.outputs[0] == consumer for node in before) and producer not in after[consumer].inputs
        right = run.build.level == "off" or barred
        return Values(((tensor(np.full((3, 4), 4.0 if right else 9.0, np.float32)),),))


def test_the_class_and_the_edge_that_heal_are_named() -> None:
    found = resisted(chain(), BuildPair("toy", Build("off"), Build("full")), "wrong", Heals("m>a"), random.Random(0))
    assert found["class"] == "fusion"
    assert any(edge.startswith("m>a:") for edge in found["edges"])
    assert "fusion" in found["healing"]


def test_resistance_is_not_asked_where_it_can_say_nothing() -> None:
    runner = Heals("m>a")
    plain = BuildPair("toy", Build("off"), Build("full"))
    for asked, kind in (
        (plain, "hang"),
        (replace(plain, against="other"), "wrong"),
        (replace(plain, faulty=Build("full", transform=parse_spec("order{seed=1}"))), "wrong"),
        (replace(plain, faulty=Build("off")), "exception"),
    ):
        assert resisted(chain(), asked, kind, runner, random.Random(0)) == {}
    assert runner.seen == []


def test_suspects_are_tried_first() -> None:
    compiler = VirtualCompiler([lambda model, build: Crashed("compile", 11) if on(build, "Pass41") else None])
    assert culprits(chain(), pair(), compiler, PASSES, (), random.Random(0), ("Pass41",)) == ("Pass41",)
    told = len(compiler.runs)
    compiler.runs.clear()
    assert culprits(chain(), pair(), compiler, PASSES, (), random.Random(0), ("Pass40",)) == ("Pass41",)
    assert told < 20 < len(compiler.runs)


def test_guesses_are_tried_before_suspects_and_must_be_minimal() -> None:
    compiler = VirtualCompiler([lambda model, build: Crashed("compile", 11) if on(build, "Pass41") else None])
    guesses = (("Pass07",), ("Pass41",))
    assert culprits(chain(), pair(), compiler, PASSES, (), random.Random(0), guesses=guesses) == ("Pass41",)
    assert len(compiler.runs) < 20
    larger = (("Pass07", "Pass41"),)
    assert culprits(chain(), pair(), compiler, PASSES, (), random.Random(0), guesses=larger) == ("Pass41",)
