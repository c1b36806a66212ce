"""The rules that ship with the tool: each is certified, and holds when both of its sides are run as models."""

from functools import cache

import pytest

from miscompile.base.dtypes import FLOATS
from miscompile.base.errors import SpecError
from miscompile.base.rng import stream
from miscompile.transforms.rules.certify import certify
from miscompile.transforms.rules.library import chosen, groups, library
from miscompile.transforms.rules.parse import parse_rules
from miscompile.transforms.rules.rule import Apply, Rule, TermPattern, Variable, parts
from miscompile.transforms.rules.specimens import dtypes_of, specimen

TRIALS = 16


@cache
def by_group() -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in library():
        found.setdefault(rule.group, []).append(rule)
    return found


@pytest.mark.parametrize("group", groups())
def test_every_rule_is_certified(group: str) -> None:
    for rule in by_group()[group]:
        certificate = certify(rule, TRIALS, seed=5)
        assert certificate.accepted, f"{rule.name}: {certificate.reason}"
        assert certificate.built >= 3, rule.name
        assert certificate.worst < 8, rule.name
        assert len(certificate.dtypes) >= min(3, len(dtypes_of(rule))), rule.name


def test_files_are_well_formed_in_everything_that_loading_does_not_check() -> None:
    from importlib.resources import files

    folder = files("miscompile.transforms.rules").joinpath("data")
    texts = [entry.read_text("utf-8") for entry in folder.iterdir()]
    assert sum(len(parse_rules(text, "file")) for text in texts) == len(library())


def test_the_library_is_large_and_named() -> None:
    rules = library()
    assert len({rule.name for rule in rules}) == len(rules) > 600
    assert len(groups()) >= 40
    assert all(rule.source for rule in rules)
    for group in ("commutative", "associative", "distributive", "transpose", "concat", "matmul", "matmul-transpose"):
        assert any("POLYJUICE" in rule.source for rule in by_group()[group]), group


def test_rules_that_match_everything_leave_most_places_alone() -> None:
    for rule in library():
        if isinstance(rule.left, Variable):
            assert rule.kind == "structural"
            assert rule.chance <= 0.5, rule.name


def test_chance_and_draws_depend_on_the_stream_alone() -> None:
    rule = {rule.name: rule for rule in library()}["make-Transpose-twice"]
    environment = specimen(rule, "float32", stream(0, "x"), 100)
    assert environment is not None
    drawn_once = [rule.extend(environment, stream(seed, "place")) for seed in range(200)]
    assert drawn_once == [rule.extend(environment, stream(seed, "place")) for seed in range(200)]
    left_alone = sum(found is None for found in drawn_once)
    assert 100 < left_alone < 180


def test_groups_and_names_choose_rules() -> None:
    assert chosen("") == library()
    assert {rule.group for rule in chosen("pad+gather")} == {"pad", "gather"}
    assert [rule.name for rule in chosen("double-Neg")] == ["double-Neg"]
    with pytest.raises(SpecError, match="no rule or group 'nothing'"):
        chosen("pad+nothing")


def calls(pattern: TermPattern, op: str) -> bool:
    return any(isinstance(part, Apply) and part.op == op for part in parts(pattern))


def test_no_rule_brings_a_product_of_integers_that_compilers_lack() -> None:
    brings = [rule for rule in library() if calls(rule.right, "Gemm") and not calls(rule.left, "Gemm")]
    assert brings
    assert all(rule.dtypes <= set(FLOATS) for rule in brings)
