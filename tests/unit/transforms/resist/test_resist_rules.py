"""The file of rules: what it may say, what it must not, and how one of the user's own joins those that come along."""

import os
import re
from pathlib import Path

import pytest
from resist_models import BRANCHES, made

from miscompile.base.errors import RejectedDraft, SpecError
from miscompile.transforms.resist.config import config_of, embedded, parse_config
from miscompile.transforms.resist.strategies import STRATEGIES
from miscompile.transforms.resist.transform import Resistant, sites

GOOD = """
[[rule]]
name = "mine"
class = "my-class"
about = "what it is for"
producer = ["Neg", "input", "custom.domain::Thing"]
consumer = ["@elementwise", "@opaque"]
dtypes = ["@float", "int8"]
ranks = [0, 2]
slots = [0]
readers = "one"
constant = false
capability = "require"
strategies = ["cast", "gather"]
"""


def rule(line: str) -> str:
    return f'[[rule]]\nname = "mine"\nclass = "c"\nstrategies = ["gather"]\n{line}\n'


def test_a_rule_says_what_is_written() -> None:
    (one,) = parse_config(GOOD, "my.toml").rules
    assert (one.name, one.kind, one.strategies, one.capability) == ("mine", "my-class", ("cast", "gather"), "require")
    assert one.producer is not None
    assert one.producer.names == frozenset({"Neg", "input", "custom.domain::Thing"})
    assert one.consumer is not None
    assert one.consumer.opaque
    assert one.dtypes == frozenset({"float32", "float16", "float64", "bfloat16", "int8"})
    assert (one.ranks, one.slots, one.readers, one.constant) == (frozenset({0, 2}), frozenset({0}), "one", False)


def test_the_rules_that_come_along() -> None:
    config = embedded()
    assert {"fusion", "algebraic", "folding", "cse", "layout", "casts", "reshape", "dead-code", "identity"} <= set(
        config.classes
    )
    assert [config.category(op) for op in ("Relu", "Add", "Reshape", "ReduceSum", "Conv", "LSTM")] == [1, 2, 3, 4, 5, 6]
    assert all(one.about and one.strategies for one in config.rules)
    used = {name for one in config.rules for name in one.strategies}
    assert used >= {name for name, strategy in STRATEGIES.items() if not strategy.dynamic} - {"identity"}


def test_rules_of_a_file_come_first_and_replace_those_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(GOOD + rule("").replace("mine", "folding"), "utf-8")
    config = config_of(str(path))
    assert config.rules[0].kind == "my-class"
    assert [one.kind for one in config.rules if one.name == "folding"] == ["c"]
    assert len(config.rules) == len(embedded().rules) + 1
    assert config.structural == embedded().structural


def test_rules_may_stand_alone(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("alone = true\n" + rule('consumer = ["Sqrt"]') + "[structural]\nReshape = [0]\n", "utf-8")
    config = config_of(str(path))
    assert [one.name for one in config.rules] == ["mine"]
    assert config.category("Relu") == 1
    assert (config.structural["Reshape"], config.structural["Expand"]) == (frozenset({0}), frozenset({1}))
    found = sites(made(BRANCHES), Resistant(config=str(path)))
    assert [(site.kind, site.edge) for site in found] == [("c", "p>q")]


def test_categories_of_a_file_count(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(rule('consumer = ["@reduction"]\n') + '[categories]\nreduction = ["Exp"]\n', "utf-8")
    assert config_of(str(path)).category("Exp") == 4
    assert [site.edge for site in sites(made(BRANCHES), Resistant(config=str(path), classes="c"))] == ["a>b"]


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(rule(""), "utf-8")
    assert config_of(str(path)).rules[0].kind == "c"
    path.write_text(rule("").replace('"c"', '"d"'), "utf-8")
    os.utime(path, ns=(1, 1))
    assert config_of(str(path)).rules[0].kind == "d"


BROKEN = {
    "no toml": ("[[rule]", "my.toml is no TOML"),
    "unknown table": (
        '[rules]\nname = "x"',
        "no table or key 'rules'; allowed are: categories, structural",
    ),
    "one bracket": ('[rule]\nname = "x"', "with two brackets"),
    "nothing": ("", "there are no rules"),
    "alone": ("alone = 1", "'alone' must be true or false"),
    "unknown key": (
        rule("produces = 1"),
        "rule 1 ('mine') has no key 'produces'; allowed are: about, capability",
    ),
    "no name": ('[[rule]]\nclass = "c"', "rule 1 ('without a name') lacks 'name'"),
    "no class": ('[[rule]]\nname = "c"', "rule 1 ('c') lacks 'class'"),
    "no strategies": ('[[rule]]\nname = "c"\nclass = "d"', "rule 1 ('c') lacks 'strategies'"),
    "unknown strategy": (
        '[[rule]]\nname = "c"\nclass = "d"\nstrategies = ["x"]',
        "rule 1 ('c'), key 'strategies': there is no strategy 'x'; allowed are: where, gather",
    ),
    "unknown operator": (rule('producer = ["Rleu"]'), "key 'producer': there is no operator 'Rleu'; allowed are"),
    "unknown category": (rule('consumer = ["@fast"]'), "there is no category '@fast'; allowed are: @elementwise"),
    "unknown type": (rule('dtypes = ["float"]'), "there is no element type 'float'; allowed are: @float"),
    "ranks": (rule("ranks = [-1]"), "rule 1 ('mine'), key 'ranks' must be a list of whole numbers from 0"),
    "a truth is no number": (rule("slots = [true]"), "key 'slots' must be a list of whole numbers"),
    "a text is no list": (rule('producer = "Relu"'), "key 'producer' must be a list of texts"),
    "truth": (rule('constant = "yes"'), "key 'constant' must be true or false"),
    "readers": (rule('readers = "two"'), "key 'readers' must be one of: one, several"),
    "capability": (rule('capability = "high"'), "must be one of: ignore, prefer, require"),
    "dead consumer": (rule('dead = true\nconsumer = ["Relu"]'), "has no consumer"),
    "instead of nothing": (rule("output = true\ninstead = true"), "'instead' replaces a consumer"),
    "name": (rule("").replace("mine", "a+b"), "letters, digits"),
    "twice": (rule("") + rule(""), "two rules are named 'mine'"),
    "category": ('[categories]\nquick = ["Relu"]', "no category 'quick'; allowed are: elementwise"),
    "operator of a category": ('[categories]\nopaque = ["Rleu"]', "no operator 'Rleu' in the standard"),
    "in two categories": ('[categories]\nopaque = ["Relu"]\ninjective = ["Relu"]', "'Relu' stands in two categories"),
    "structural": ("[structural]\nReshape = 1", "structural operands of 'Reshape' must be a list"),
    "structural operator": ("[structural]\nRehsape = [1]", "no operator 'Rehsape'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_said_in_one_line(name: str) -> None:
    text, message = BROKEN[name]
    with pytest.raises(SpecError, match=re.escape(message)) as caught:
        parse_config(text, "my.toml")
    assert str(caught.value).startswith("my.toml")
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot read the resistance rules"):
        Resistant(config=str(tmp_path / "none.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match="not text in UTF-8"):
        Resistant(config=str(tmp_path / "binary.toml"))


CONDITIONS = {
    'consumer = ["Exp"]': ["a>b"],
    'producer = ["input"]': ["x>a", "w>p"],
    'producer = ["constant"]': ["c>y"],
    "constant = true": ["c>y"],
    "same_operand = true": ["q>z@1"],
    "ranks = [0]": ["c>y"],
    'slots = [1]\nproducer = ["Sqrt"]': ["q>z@1"],
    'readers = "several"': ["q>z", "q>z@1"],
    "output = true": ["y>", "z>"],
    "neutral = true": [],
    'dtypes = ["int64"]': [],
    "twin = true": [],
    "dead = true": [],
    'producer = ["Neg"]\ncapability = "require"': ["a>b"],
}


@pytest.mark.parametrize("line", CONDITIONS)
def test_conditions_choose_edges(line: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("alone = true\n" + rule(line).replace('"gather"', '"gather", "tap"'), "utf-8")
    form = Resistant(config=str(path))
    assert [site.edge for site in sites(made(BRANCHES), form)] == CONDITIONS[line]
    if not CONDITIONS[line]:
        with pytest.raises(RejectedDraft):
            form.apply(made(BRANCHES))
