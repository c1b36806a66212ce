"""Each case is judged by the oracle that its recipe names."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from miscompile.core.case import Case, Program
from miscompile.core.outcome import Crashed, Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Holds, Verdict, Violated
from miscompile.oracles.judge import bad_build
from miscompile.oracles.registry import PerCaseOracle

PROGRAM = Program("onnx", b"", (), ())


@dataclass(frozen=True)
class StatusAlone:
    """An oracle of one build that looks at the status alone."""

    build: Build

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        return (Run(case, "toy", self.build),)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        return bad_build(runs[0], None, outcomes[0])


USUAL, SPECIAL = StatusAlone(Build("off")), StatusAlone(Build("full"))
ORACLE = PerCaseOracle(USUAL, {"special": SPECIAL})


@pytest.mark.parametrize(("recipe", "level"), [({}, "off"), ({"oracle": "special"}, "full")])
def test_the_recipe_names_the_oracle(recipe: dict[str, str], level: str) -> None:
    runs = ORACLE.plan(Case(PROGRAM, ((),), recipe), random.Random(0))
    assert [run.build.level for run in runs] == [level]
    assert isinstance(ORACLE.judge(runs, [Crashed("run", 11)]), Violated)
    assert ORACLE.judge(runs, [Values(((),))]) == Holds()


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        ORACLE.plan(Case(PROGRAM, ((),), {"oracle": "nobody"}), random.Random(0))
