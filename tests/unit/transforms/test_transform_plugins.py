"""Transforms of other packages, and the example of the page on adding one, word for word."""

import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from miscompile.base import plugins
from miscompile.base.errors import SpecError, UsageError
from miscompile.base.plugins import Offer
from miscompile.base.specs import parse_spec
from miscompile.core.case import Case
from miscompile.core.tensor import tensor
from miscompile.engine.plan import Plan
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.oracles.optimisation import Optimisation
from miscompile.transforms.catalogue import is_own, keeps_bits, present, seeded, transform_of
from miscompile.transforms.conformance import check_transform

PAGE = (Path(__file__).parents[3] / "docs" / "adding-a-transform.md").read_text("utf-8")
KIND = TensorType("float32", (2,))


@pytest.fixture(autouse=True)
def commuted(monkeypatch: pytest.MonkeyPatch) -> type[Any]:
    """Return the class of the page, which a package offers as `commuted`."""
    module = ModuleType("commuted_example")
    monkeypatch.setitem(sys.modules, "commuted_example", module)
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], module.__dict__)
    offers = (
        Offer("commuted", "commuted_example:Commuted", "commuted"),
        Offer("gone", "commuted_example:Gone", "gone-transforms"),
    )
    monkeypatch.setattr(plugins, "added", lambda group: offers if group == "miscompile.transforms" else ())
    found = module.__dict__["Commuted"]
    assert isinstance(found, type)
    return found


def case() -> Case:
    nodes = (Node("Sub", ("x", "z"), ("a",)), Node("Add", ("a", "z"), ("y",)))
    graph = Graph("g", (ValueInfo("x", KIND), ValueInfo("z", KIND)), (ValueInfo("y", KIND),), nodes)
    values = (tensor(np.array([1, 2], np.float32)), tensor(np.array([3, 5], np.float32)))
    return Case(to_program(Model(graph, {"": 18})), (values,))


def test_the_example_of_the_page_keeps_the_contract(commuted: type[Any]) -> None:
    assert check_transform(commuted()) == 1


def test_a_spec_names_it_and_a_program_is_presented() -> None:
    (share,) = present(case(), parse_spec("commuted{ops=Add}"))
    assert [node.inputs for node in read(share.case.program.payload).graph.nodes] == [("x", "z"), ("z", "a")]
    assert present(case(), parse_spec("commuted{ops=Mul}"))[0].case.program == case().program
    assert keeps_bits(parse_spec("commuted"))
    assert not is_own(parse_spec("commuted"))
    spec = parse_spec("commuted{ops=Add}")
    assert Plan("toy", transforms=(spec,)).chosen_transforms == (spec,)


def test_a_seed_goes_only_to_a_transform_with_that_option() -> None:
    assert seeded(parse_spec("commuted{ops=Add}"), 7) == parse_spec("commuted{ops=Add}")
    assert seeded(parse_spec("again"), 7) == parse_spec("again")
    assert seeded(parse_spec("functions{depth=3, seed=1}"), 7) == parse_spec("functions{depth=3, seed=7}")
    assert seeded(parse_spec("relax"), 7) == parse_spec("relax{seed=7}")  # of an adapter


def test_a_campaign_presents_a_transform_without_a_seed() -> None:
    oracle = Optimisation("toy", lesser_chance=1.0, families=(((parse_spec("commuted{ops=Add}"),),),))
    runs = oracle.plan(case(), random.Random(0))
    (transform,) = {run.build.transform for run in runs} - {None}
    (share,) = present(case(), transform)
    assert share.case.program != case().program


def test_errors_name_the_package_or_what_there_is() -> None:
    with pytest.raises(SpecError, match=r"has no option 'colour'; it has: ops"):
        transform_of(parse_spec("commuted{colour=red}"))
    with pytest.raises(SpecError, match=r"there is no transform 'magic'; there are: again, closed, commuted, .*, wrap"):
        transform_of(parse_spec("magic"))
    with pytest.raises(UsageError, match="the transform 'gone' of the package gone-transforms is broken: Attr"):
        transform_of(parse_spec("gone"))


@dataclass(frozen=True, slots=True)
class Faulty:
    """A transform with a fault: `how` makes the model that it returns."""

    how: Callable[[Model], Model]

    def apply(self, model: Model) -> Model:
        return self.how(model)


def nodes(model: Model, change: Callable[[Node], Node]) -> Model:
    return replace(model, graph=replace(model.graph, nodes=tuple(map(change, model.graph.nodes))))


def subtracted(node: Node) -> Node:
    return replace(node, inputs=node.inputs[::-1]) if node.op == "Sub" else node


COUNT = iter(range(100))


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (lambda model: nodes(model, subtracted), "output s has other elements"),
        (lambda model: nodes(model, lambda n: replace(n, op="Nothing")), "the result is no valid model"),
        (lambda model: nodes(model, lambda n: replace(n, name=f"n{next(COUNT)}")), "when it is asked again"),
        (lambda model: replace(model, graph=replace(model.graph, inputs=model.graph.inputs[::-1])), "other inputs"),
        (lambda model: model, "no model was changed"),
    ],
    ids=["values", "invalid", "impure", "signature", "idle"],
)
def test_the_kit_notices_a_broken_promise(how: Callable[[Model], Model], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_transform(Faulty(how))
