"""Who is asked besides onnx's evaluator: a compiler that is installed, and cannot be loaded, is no witness."""

from pathlib import Path

import numpy as np
import pytest

from miscompile.base.errors import UsageError
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.outcome import Outcome, Raised, Values
from miscompile.core.run import Run
from miscompile.core.tensor import tensor
from miscompile.findings.folder import Stored
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held
from miscompile.migration import confirming
from miscompile.migration.confirming import Confirming, Seen
from miscompile.migration.plan import MigrationPlan
from miscompile.oracles.library_judge import judge
from miscompile.oracles.library_reference import Reference
from miscompile.producers.instances.migrated import Migrated, migrate
from miscompile.targets.front_ends import FrontEnd

RESULT = tensor(np.zeros(2, np.float32))
SIGNATURE = Signature("toy", "exception", "run", ("Relu",), "")
PLAN = MigrationPlan((FrontEnd("onnx", "toy"),), Path("out"))


@pytest.fixture
def seen() -> Seen:
    test = migrate(Instance("onnx", "Relu", "node", inputs=(Held(tensor(np.float32([-1, 0]))),), version=14))
    assert isinstance(test, Migrated)
    reference = Reference((RESULT,), (np.zeros(2),))
    outcome = Raised("run", "Error", "no")
    return Seen(test, reference, outcome, judge(reference, outcome, "strict", {}))


@pytest.mark.parametrize(("named", "witness"), [(("openvino", "tvm"), "tvm"), (("openvino",), None)])
def test_one_that_cannot_be_loaded_is_passed_over(
    named: tuple[str, ...], witness: str | None, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(self: Confirming, target: str, run: Run) -> Outcome:
        if target == "openvino":
            raise UsageError("openvino cannot be loaded")
        return Values(((RESULT,),))

    monkeypatch.setattr(confirming, "second_implementations", lambda accused: iter(named))
    monkeypatch.setattr(Confirming, "_ask", ask)
    stored = Stored(Finding("x", Property("migration", "toy", SIGNATURE), seen.test.case, "", {}))
    with Confirming(PLAN) as one:
        assert one._witness(stored, seen) == witness
