"""The certifier: unsound rules are rejected with a counterexample, their corrected versions accepted.

Among the unsound ones are those of POLYJUICE as printed (Table 1) and as released, and rules that hold but for NaN,
infinities, the sign of zero, the least integer, or unsigned types.
"""

import re
from collections import Counter
from pathlib import Path

import pytest
from rule_mutants import HARMLESS, mutants

from miscompile.base.errors import SpecError
from miscompile.transforms.rules.certify import certify
from miscompile.transforms.rules.library import library, user_rules
from miscompile.transforms.rules.parse import parse_rules
from miscompile.transforms.rules.rule import Rule

TRIALS = 300


def written(left: str, right: str, exactness: str = "bits", dtypes: str = "number", more: str = "") -> Rule:
    text = f"""[[rule]]
name = "candidate"
group = "test"
left = "{left}"
right = "{right}"
exactness = "{exactness}"
dtypes = "{dtypes}"
source = "test"
kind = "structural"
{more}"""
    return parse_rules(text, "test.toml")[0]


UNSOUND_RULES = {
    rule.name: rule for rule in parse_rules(Path(__file__).with_name("unsound.toml").read_text("utf-8"), "unsound.toml")
}


@pytest.mark.parametrize("name", sorted(UNSOUND_RULES))
def test_unsound_rules_are_rejected_with_a_counterexample(name: str) -> None:
    certificate = certify(UNSOUND_RULES[name], TRIALS)
    assert not certificate.accepted
    assert re.search(r"; where \w+: ", certificate.reason)
    assert certificate.trials <= TRIALS


def test_the_rules_that_the_paper_and_its_code_get_wrong_are_among_them() -> None:
    groups = Counter(rule.group for rule in UNSOUND_RULES.values())
    assert groups["printed"] >= 6
    assert groups["released"] >= 3
    assert groups["wrong"] >= 35


@pytest.mark.parametrize(
    "name",
    [
        "MatMul-associates", "MatMul-over-Add-left", "MatMul-over-Add-left-back", "Add-transposed", "Mul-transposed",
        "Add-transposed-outside", "MatMul-transposed", "MatMul-batch-transposed", "make-Concat-of-Splits",
        "Concat-of-Concats", "Concat-transposed", "make-Split-of-Concat-0", "make-Split-of-Concat-1", "Transpose-twice",
        "Mul-over-Add", "Add-commutes", "Add-associates", "Mul-associates",
    ],
)  # fmt: skip
def test_corrected_rules_are_accepted(name: str) -> None:
    rule = {rule.name: rule for rule in library()}[name]
    certificate = certify(rule, TRIALS)
    assert certificate.accepted, certificate.reason
    assert certificate.built > TRIALS // 3
    assert len(certificate.dtypes) > 3


@pytest.mark.parametrize("part", range(4))
def test_rules_with_one_mistake_are_rejected(part: int) -> None:
    """A quarter of the rules, in four parts; mutants that still hold are known by name."""
    tried = 0
    for rule in library()[part * 2 :: 16]:
        for what, mutant in mutants(rule):
            tried += 1
            assert (rule.name, what) in HARMLESS or not certify(mutant, 80, 1).accepted, (rule.name, what)
    assert tried > 30


def test_a_counterexample_names_types_parameters_and_values() -> None:
    certificate = certify(written("x", "Add(x, Constant(dtype=x.dtype, shape=(), value=0))", "bits", "float32"), TRIALS)
    assert "on special numbers the sides differ; where x: float32[" in certificate.reason
    ill = certify(written("Where(c, x, x)", "x", "bits", "bool"), TRIALS)
    assert "the right side has type bool[" in ill.reason
    broken = certify(written("x", "Transpose(x, perm=swap(x.rank, 0, 1))"), TRIALS)
    assert "IndexError" in broken.reason


def test_a_rule_that_holds_nowhere_is_not_accepted() -> None:
    certificate = certify(written("Add(x, y)", "Add(y, x)", more='where = "x.rank > 9"'), 20)
    assert not certificate.accepted
    assert "no example" in certificate.reason
    nothing = certify(written("Not(x)", "Not(x)", "bits", "float"), 20)
    assert "none of its element types" in nothing.reason


def test_certificates_depend_on_rule_trials_and_seed_alone() -> None:
    rule = written("Add(Add(x, y), z)", "Add(x, Add(y, z))", "rounding")
    first = certify(rule, 50, 3)
    assert certify(rule, 50, 3) == first
    assert first.worst > 0
    assert certify(rule, 50, 4).worst != first.worst


UNSOUND = """
[[rule]]
name = "my-relu"
group = "mine"
left = "Relu(x)"
right = "Where(Greater(x, Constant(dtype=x.dtype, shape=(), value=0)), x, Constant(dtype=x.dtype, shape=(), value=0))"
exactness = "zero"
dtypes = "float"
source = "mine"
"""


def test_rules_of_the_user_are_certified_when_they_are_loaded(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(UNSOUND)
    with pytest.raises(SpecError, match=r"rule my-relu is not sound: on special numbers .* x: .*nan"):
        user_rules(path)
    path.write_text(UNSOUND.replace('"float"', '"signed"'))
    assert [rule.name for rule in user_rules(path)] == ["my-relu"]
    path.write_text(UNSOUND.replace("my-relu", "Add-commutes").replace('"float"', '"signed"'))
    with pytest.raises(SpecError, match="ships with the tool"):
        user_rules(path)
    with pytest.raises(SpecError, match="No such file"):
        user_rules(tmp_path / "none.toml")
