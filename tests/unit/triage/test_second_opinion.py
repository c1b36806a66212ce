"""Who is asked besides onnx's evaluator: a compiler that is installed and cannot be loaded gives no second opinion."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from miscompile.base.errors import UsageError
from miscompile.core.examination import examine
from miscompile.core.outcome import Outcome, Raised, Values
from miscompile.core.run import Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Violated
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held
from miscompile.oracles.library import LibraryOracle
from miscompile.producers.instances.migrated import migrate
from miscompile.triage import library
from miscompile.triage.library import LibraryFinding

RESULT = tensor(np.zeros(2, np.float32))


class Others:
    """The evaluator gives zeros, the toy raises, openvino cannot be loaded, and all others agree with the evaluator."""

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return [self._one(run) for run in runs]

    def _one(self, run: Run) -> Outcome:
        if run.target == "openvino":
            raise UsageError("openvino cannot be loaded")
        if run.target == "toy":
            return Raised("run", "Error", "no")
        return Values(((RESULT,),) * len(run.case.feeds))


@pytest.mark.parametrize(("named", "agreeing"), [(("openvino", "tvm"), "tvm"), (("openvino",), None)])
def test_one_that_cannot_be_loaded_is_passed_over(
    named: tuple[str, ...], agreeing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = migrate(Instance("onnx", "Relu", "node", inputs=(Held(tensor(np.array([-1, 0], np.float32))),), version=14))
    assert test is not None
    held, runner = LibraryOracle("reference", "toy"), Others()
    seen = examine(test.case, held, runner, random.Random(0))
    assert isinstance(seen.verdict, Violated)
    monkeypatch.setattr(library, "second_implementations", lambda accused: iter(named))
    finding = LibraryFinding(held, seen, runner)
    assert finding.second_opinion() == agreeing
    assert finding.facts(())["unoptimised"] == "fails as well"
    assert finding.instance.api == "Relu"
