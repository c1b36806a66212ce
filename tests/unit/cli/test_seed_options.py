"""The options that bring a user's models in."""

from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from miscompile.base.errors import UsageError
from miscompile.cli import values
from miscompile.cli.main import program
from miscompile.core.ports import Listener
from miscompile.engine import coordinator
from miscompile.engine.plan import Plan

CONTEXT = click.Context(click.Command("test"))
PARAM = click.Option(["--slice-nodes"])


class CaughtError(UsageError):
    """Ends a verb where the campaign would begin."""


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


def planned(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> Plan:
    """Return the plan that the words of a command lead to."""
    plans: list[Plan] = []

    def fuzz(plan: Plan, listeners: Sequence[Listener]) -> None:
        plans.append(plan)
        raise CaughtError("caught")

    monkeypatch.setattr(coordinator, "fuzz", fuzz)
    result = call(*words)
    assert plans, result.output
    return plans[0]


@pytest.mark.parametrize(("text", "span"), [("3..12", (3, 12)), ("5", (5, 5)), (" 1..1 ", (1, 1))])
def test_spans(text: str, span: tuple[int, int]) -> None:
    assert values.span(CONTEXT, PARAM, text) == span


@pytest.mark.parametrize("text", ["", "0..3", "4..3", "3-12", "3..", "..3", "many", "-1..4"])
def test_what_is_no_span(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no span"):
        values.span(CONTEXT, PARAM, text)


def test_seed_models_reach_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    plan = planned(monkeypatch, "fuzz", "toy", "--out", out, "--seed-models", tmp_path, "--slice-nodes", "2..5")
    assert (plan.seed_models, plan.slice_nodes) == (str(tmp_path), (2, 5))
    plan = planned(monkeypatch, "fuzz", "toy", "--out", out)
    assert (plan.seed_models, plan.slice_nodes) == (None, (3, 12))


def test_check_takes_slices_unless_told_not_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, out = tmp_path / "m.onnx", tmp_path / "out"
    model.write_bytes(b"")
    plan = planned(monkeypatch, "check", model, "--target", "toy", "--out", out)
    assert plan.slices
    plan = planned(monkeypatch, "check", model, "--target", "toy", "--out", out, "--no-slices", "--slice-nodes", "4")
    assert not plan.slices
    assert plan.slice_nodes == (4, 4)


def test_mistakes_are_usage_errors(tmp_path: Path) -> None:
    for words in (
        ("--seed-models", tmp_path / "missing"),
        ("--seed-models", tmp_path, "--slice-nodes", "5..2"),
        ("--producer", "seeded"),
    ):
        assert call("fuzz", "toy", "--out", tmp_path / "out", *words).exit_code == 2
