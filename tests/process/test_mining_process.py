import random

import pytest

from miscompile.base.rng import stream
from miscompile.execution.pool import LocalPool
from miscompile.harvest.patterns.pass_miner import Mining, mine
from miscompile.harvest.patterns.pass_observation import fired
from miscompile.harvest.patterns.pieces import case_of
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict

pytestmark = pytest.mark.process

WANTED = ("NoOpElimination", "ConstantFolding", "OperandOrdering", "CommonSubexpression")


def test_what_is_mined_of_random_programs_wakes_the_pass_again_on_its_own() -> None:
    options = GeneratorOptions(
        opsets=(18,), ops=("Transpose", "Cast", "Div", "MatMul", "Add", "Neg"), variants=1, motifs=0, noops=0
    )
    producer, rng = Strict(options, Support(open=True)), stream(0, "programs")
    with LocalPool("toy") as pool:
        cases = (producer.propose(rng) for _ in range(96))
        found = list(mine(cases, "toy", pool, WANTED, mining=Mining(patience=30)))
        again = [case_of(one.seed, random.Random(1)) for one in found if one.seed is not None]
        seen = fired(again, "toy", pool)
    assert {one.triggers[0].name for one in found} == {*WANTED}
    for one, names in zip(found, seen, strict=True):
        assert one.triggers[0].name in (names or ()), one.name
        assert len(one.operators) <= 3, "a fusion or an elimination concerns two or three operators"
