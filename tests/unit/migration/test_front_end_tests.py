"""What becomes of a test that ends its worker."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.outcome import Crashed, Outcome, Values
from miscompile.core.run import Run
from miscompile.core.tensor import tensor
from miscompile.findings.store import Store
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held
from miscompile.migration.answers import LibraryCache
from miscompile.migration.front_end_tests import FrontEndTests
from miscompile.migration.plan import MigrationPlan
from miscompile.migration.session import begin
from miscompile.targets.front_ends import FrontEnd

SIGNS = np.array([1.0, -2.5], np.float32)
ABS = Instance("onnx", "Abs", "node", inputs=(Held(tensor(SIGNS)),), version=17)


def values(array: np.ndarray, times: int) -> Values:
    return Values(((tensor(array),),) * times)


class Answers:
    """A pool in which the library is right, and the front end gives one outcome after another."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._outcomes: Iterator[Outcome] = iter(outcomes)
        self._ended: dict[int, list[Outcome]] = {}

    def submit(self, runs: Sequence[Run]) -> int:
        right = values(np.abs(SIGNS), 6)
        ticket = len(self._ended)
        self._ended[ticket] = [next(self._outcomes) if run.target == "toy" else right for run in runs]
        return ticket

    def poll(self, seconds: float) -> list[tuple[int, list[Outcome]]]:
        del seconds
        return list(self._ended.items())


@pytest.mark.parametrize(
    ("second", "status", "kind"),
    [
        (values(np.abs(SIGNS), 1), "died once", ""),
        (values(SIGNS, 1), "finding", "wrong"),
        (Crashed("run", 11), "finding", "death"),
    ],
)
def test_a_death_counts_if_it_repeats_itself(second: Outcome, status: str, kind: str, tmp_path: Path) -> None:
    front = FrontEnd("onnx", "toy")
    plan = MigrationPlan((front,), tmp_path / "out")
    begin(plan)
    with Store.open(plan.out) as store:
        tests = FrontEndTests(plan, front, Answers([Crashed("run", 11), second]), LibraryCache(), store)  # type: ignore[arg-type]
        ((row, ran, fresh),) = tests.run([(digest_of(ABS), ABS)], 0)
    assert (row.status, row.kind, ran) == (status, kind, True)
    assert len(fresh) == (status == "finding")
