"""The self-mutation score: what is left out is left out rightly, and the counts are those of the verdicts."""

import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "targets" / "toy"))

from toy_bench import InProcessRunner

from evaluation.mutants.arms import Mixture, draw_for, names
from evaluation.mutants.campaign import Kill, MutantCampaign, Score, score_from
from evaluation.mutants.infection import Infection
from evaluation.mutants.measure import MutationFigures
from evaluation.mutants.running import SharedRunner, SharedRuns, TracingRunner
from evaluation.mutants.selection import chosen, equivalent
from evaluation.mutants.view import view
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Verdict, Violated
from miscompile.findings.folder import identifiers
from miscompile.findings.folder import load as load_finding
from miscompile.producers.scheduled import ARM
from miscompile.targets.toy.mutants import load, mutants


def _same(one: Outcome, other: Outcome) -> bool:
    if not isinstance(one, Values) or not isinstance(other, Values):
        return type(one) is type(other)
    return all(
        a is b if a is None or b is None else a.same(b)  # a mutant may lose an output
        for first, second in zip(one.results, other.results, strict=True)
        for a, b in zip(first, second, strict=True)
    )


@pytest.mark.slow  # every mutant of the sample on every test
def test_a_mutant_gives_the_outcome_that_it_gives_alone() -> None:
    sample = [one.name for one in chosen(0.05)]
    infection = Infection(sample)
    draw = draw_for("generation/levels", 3)
    left_out = 0
    for number in range(12):
        case, _, _ = draw(number)
        shared, run = SharedRuns(), Run(case, "toy", Build("full"))
        (sound,) = SharedRunner(shared).run([run])
        TracingRunner(shared, infection).run([run])
        for name in sample:
            (alone,) = InProcessRunner(f"toy{{optimiser={name}}}").run([run])
            (found,) = SharedRunner(shared, load(name), name=name, kernels=name.startswith("tiled.")).run([run])
            assert _same(found, alone), f"{name} on test {number}"
            if name not in shared.infected:
                left_out += 1
                assert found is sound
    assert left_out > 100


def test_a_campaign_kills_a_mutant_and_leaves_the_sound_optimiser_alone() -> None:
    swapped = next(one.name for one in mutants() if one.function == "normalise" or one.operator == "swap")
    names_of = tuple(one.name for one in chosen(1.0, "order_operands"))
    campaign = MutantCampaign("generation/levels", draw_for("generation/levels", 0), 0, (*names_of, swapped))
    for score in campaign.run(5.0, 60):
        assert not score.false_alarms
    assert campaign.score.kills
    assert all(kill.seconds <= campaign.score.seconds for kill in campaign.score.kills.values())
    assert score_from(campaign.score.as_json()).kills == campaign.score.kills


class _Accusing:
    """An oracle that takes every program for a violation."""

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        return (Run(case, "toy", Build("off")), Run(case, "toy", Build("full")))

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        return Violated(Evidence("wrong", "exact", "said so", runs[1], runs[0]))


def test_a_false_alarm_is_kept_with_its_program(tmp_path: Path) -> None:
    case, _, _ = draw_for("generation/levels", 0)(0)
    campaign = MutantCampaign("mixture", lambda number: (case, _Accusing(), 0.0), 0, (), keep=tmp_path / "kept")
    assert list(campaign.run(60.0, 1))
    assert campaign.score.false_alarms == ["test 0: wrong exact said so"]
    (identifier,) = identifiers(tmp_path / "kept")
    assert load_finding(tmp_path / "kept", identifier).finding.case.program == case.program


def test_the_mixture_gives_a_cheap_arm_more_tests() -> None:
    mixture = Mixture(0)
    before = mixture.weight("special")
    case, _, _ = mixture.draw(0)
    for arm in names()[1:] * 20:
        mixture.count(replace(case, recipe={ARM: arm}), 0.001 if arm == "special" else 0.1)
    assert mixture.weight("special") > 3 * before


def test_names_of_arms_and_of_mutants_that_were_read() -> None:
    assert "mixture" in names()
    assert "generation/levels" in names()
    every = {one.name for one in mutants()}
    assert set(equivalent()) <= every
    assert all(len(reason) > 20 for reason in equivalent().values())


def test_a_mutant_that_cannot_be_loaded_is_none() -> None:
    broken = "storage.ALLOCATING.arithmetic.1"
    with pytest.raises(TypeError):
        load(broken)


def test_the_table_tells_which_reasons_in_the_list_of_equivalent_mutants_are_wrong() -> None:
    kill = Kill(0, 1.0, "wrong", "exact")
    score = Score("mixture", 1, 1.0, kills={"a.b.swap.1": kill, "a.b.swap.2": kill})
    figures = MutationFigures(dict.fromkeys(("a.b.swap.1", "a.b.swap.2", "a.b.swap.3"), ""), ("a.b.swap.2",))
    figures.scores["mixture"] = score
    console = Console(width=200, record=True, file=StringIO())
    console.print(view(figures))
    text = console.export_text()
    assert "2 killable mutants of 3" in text
    assert "killed, although equivalent.toml names them: a.b.swap.2" in text
    assert "1 survivors never changed a program: a.b.swap.3" in text
