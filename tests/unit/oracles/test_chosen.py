"""Each case is judged by the oracle that its recipe names."""

import random

import pytest

from miscompile.core.case import Case, Program
from miscompile.core.outcome import Crashed, Values
from miscompile.core.run import Build
from miscompile.core.verdict import Holds, Violated
from miscompile.oracles.optimisation import Crash
from miscompile.oracles.per_case import Chosen

PROGRAM = Program("onnx", b"", (), ())
USUAL, SPECIAL = Crash("toy", Build("off")), Crash("toy", Build("full"))
ORACLE = Chosen(USUAL, {"special": SPECIAL})


@pytest.mark.parametrize(("recipe", "level"), [({}, "off"), ({"oracle": "special"}, "full")])
def test_the_recipe_names_the_oracle(recipe: dict[str, str], level: str) -> None:
    runs = ORACLE.plan(Case(PROGRAM, ((),), recipe), random.Random(0))
    assert [run.build.level for run in runs] == [level]
    assert isinstance(ORACLE.judge(runs, [Crashed("run", 11)]), Violated)
    assert ORACLE.judge(runs, [Values(((),))]) == Holds()


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        ORACLE.plan(Case(PROGRAM, ((),), {"oracle": "nobody"}), random.Random(0))
