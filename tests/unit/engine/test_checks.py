"""What a campaign checks, by name."""

import pytest

from miscompile.base.errors import UsageError
from miscompile.base.specs import parse_spec
from miscompile.engine.checks import (
    CHECKS,
    EQUIVALENCE,
    EXACT,
    RESIST,
    chosen,
    functions_of,
    producers_for,
    relations_of,
)
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_oracle
from miscompile.oracles.optimisation import Optimisation
from miscompile.oracles.registry import PerCaseOracle
from miscompile.targets.registry import parse_target
from miscompile.transforms.catalogue import transform_of

ORT, TOY, TVM, TRACT = (parse_target(name).about for name in ("onnxruntime", "toy", "tvm", "tract"))


def test_a_plain_campaign_compares_levels() -> None:
    assert chosen((), [ORT]) == ("levels",)
    oracle = make_oracle(Plan("onnxruntime"), {})
    assert isinstance(oracle, Optimisation)
    assert oracle.passes == ORT.passes
    assert not oracle.families
    assert not oracle.sequences


def test_all_is_what_the_target_is_able_to() -> None:
    by_request = ("memory", "cost", "forms", "sequences", "device", "gradients")  # or lacking, as gradients are
    usual = tuple(name for name in chosen(("all",), [ORT]) if name != "votes")  # another runtime may be installed
    assert usual == tuple(
        name for name in CHECKS if name not in (*by_request, "votes", "gradients")
    )  # it has no derivatives
    assert "sequences" in chosen(("all",), [TVM])
    assert chosen(("all",), [ORT, TOY]) == ("levels",)
    assert "device" not in CHECKS.keys() & chosen(("all",), [ORT])


def test_a_target_without_an_unoptimised_build_is_not_compared_with_itself() -> None:
    found = chosen(("all",), [TRACT])
    assert "levels" not in found
    assert {"resist", "exact", "equivalence"} <= set(found)
    assert chosen(("levels",), [ORT, TRACT]) == ("levels",)
    with pytest.raises(UsageError, match="has no unoptimised build; name further targets"):
        chosen((), [TRACT])


@pytest.mark.parametrize(
    ("names", "device", "word"),
    [
        (
            ("nothing",),
            "cpu",
            "no check 'nothing'; there are: .* dynamic, .* special, cost, forms, gradients, votes, device, and all",
        ),
        (("sequences",), "cpu", "does not let us order"),
        (("device",), "cpu", "say which device"),
        ((), "abacus", "has no build for the device 'abacus'"),
    ],
)
def test_what_cannot_be_checked_is_said(names: tuple[str, ...], device: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        chosen(names, [ORT], device)


def test_several_targets_are_compared_by_results_alone() -> None:
    with pytest.raises(UsageError, match="name one target"):
        chosen(("functions",), [ORT, TOY])


def test_checks_bring_their_producers() -> None:
    assert producers_for(("levels",)) == ("strict", "sweep{share=0.15}", "oatest{share=0.25}")
    assert producers_for(("disruptive",)) == ("disruptive{share=0.15}",)
    assert len(producers_for(("levels", "dynamic", "disruptive"))) == 5
    names = [name for name, _ in Plan("onnxruntime", checks=("all",)).producer_specs()]
    assert names == ["strict", "sweep", "oatest", "dynamic", "disruptive", "special"]


def test_special_cases_get_their_oracles() -> None:
    oracle = make_oracle(Plan("onnxruntime", checks=("all",)), {"onnxruntime": frozenset({"GeluFusionL1"})})
    assert isinstance(oracle, PerCaseOracle)
    assert isinstance(oracle.usual, Optimisation)
    assert set(oracle.special) - {"votes"} == {"dynamic", "disruptive", "special", "state"}
    assert oracle.usual.families == (EQUIVALENCE, RESIST, relations_of(ORT), functions_of(ORT))
    assert oracle.usual.disabled == {"GeluFusionL1"}


def test_transforms_parse() -> None:
    for (transform,) in functions_of(ORT):
        assert transform_of(transform)
    assert {transform.name for (transform,) in functions_of(TVM)} == {"relax"}
    assert [str(one) for (one,) in functions_of(ORT)] == [
        "functions{count=1}",
        "functions{count=2, rewrite=forward}",
        "functions{count=3, depth=2, rewrite=any}",
        "functions{count=2, rewrite=closure}",
    ]


def test_what_an_adapter_makes_itself_is_a_relation_unless_it_makes_functions() -> None:
    assert relations_of(TOY) == relations_of(TVM) == EXACT
    assert relations_of(ORT) == (
        *EXACT,
        *((parse_spec(text),) for text in ("reload", "reload{format=ort}", "external", "concurrent", "bound")),
    )


def test_cost_is_used_only_where_it_is_named() -> None:
    assert "cost" not in chosen((), [ORT])
    assert "cost" not in chosen(("all",), [ORT])
    assert chosen(("all", "cost"), [ORT]) == (*chosen(("all",), [ORT]), "cost")
    assert producers_for(("cost",)) == producers_for(("levels",))
