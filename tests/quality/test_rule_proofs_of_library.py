"""What is proved of the rules that ship with the tool: none is refuted, and every claim about integers has a proof."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from miscompile.base.dtypes import FLOATS
from miscompile.transforms.rules.library import groups, library
from miscompile.transforms.rules.proofs.prove import prove
from miscompile.transforms.rules.rule import Rule

pytestmark = [
    pytest.mark.quality,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("z3") is None, reason="z3 is not installed"),
]

PAGE = Path(__file__).parents[2] / "docs" / "rule-proofs.md"
INSTANCES = 16
"""Fewer than the page on the proofs has: obligations hardly differ between instances."""

WITHOUT_PROOF: frozenset[str] = frozenset()
"""Rules whose part on integers the means do not prove."""


@cache
def by_group() -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in library():
        found.setdefault(rule.group, []).append(rule)
    return found


@pytest.mark.parametrize("group", groups())
def test_rules_are_proved_on_integers_and_not_refuted(group: str) -> None:
    for rule in by_group()[group]:
        proof = prove(rule, INSTANCES, explored=0)
        assert proof.status != "refuted", f"{rule.name}: {proof.text}"
        assert proof.instances > 0, f"{rule.name}: {proof.text}"
        wanted = "tested only" if rule.name in WITHOUT_PROOF else "proved"
        assert proof.integers in ("", wanted), f"{rule.name}: {proof.text}"
        assert bool(proof.floats) == bool(floats_of(proof.dtypes))


def floats_of(dtypes: tuple[str, ...]) -> set[str]:
    return set(dtypes) & set(FLOATS)


def test_the_page_has_every_rule() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == [rule.name for rule in library()]
    assert not any("refuted" in row for row in rows)
