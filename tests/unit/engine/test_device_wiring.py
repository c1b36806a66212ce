"""Campaigns and devices: a refusal by the device alone is no finding, and a missing device ends it before it begins."""

import os
from pathlib import Path

import pytest

from miscompile.base.errors import UsageError
from miscompile.core.outcome import Crashed, OutOfMemory, Raised, Rejected, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Inconclusive, Violated
from miscompile.engine import coordinator, devices
from miscompile.engine.plan import Plan
from miscompile.execution.conformance_models import exhibits
from miscompile.oracles.judge import judge_pair

SHOWN = exhibits()[1]
GOOD = Values(SHOWN.expected)


@pytest.mark.parametrize("other", [Unsupported("compile", "no"), Rejected("compile", "no"), OutOfMemory("run", "full")])
def test_what_a_device_lacks_is_no_finding(other: Unsupported | Rejected | OutOfMemory) -> None:
    runs = [Run(SHOWN.case, "x", Build("off")), Run(SHOWN.case, "x", Build(device="cuda"))]
    assert isinstance(judge_pair(runs, [GOOD, other], "strict"), Inconclusive)
    same = [runs[0], Run(SHOWN.case, "x", Build())]
    if not isinstance(other, Rejected):
        assert isinstance(judge_pair(same, [GOOD, other], "strict"), Violated)


@pytest.mark.parametrize("other", [Raised("run", "RuntimeError", "illegal address"), Crashed("run", 11)])
def test_errors_and_deaths_on_a_device_are_findings(other: Raised | Crashed) -> None:
    runs = [Run(SHOWN.case, "x", Build("off")), Run(SHOWN.case, "x", Build(device="cuda"))]
    assert isinstance(judge_pair(runs, [GOOD, other], "strict"), Violated)


def test_a_campaign_for_a_missing_device_leaves_nothing_behind(
    tmp_path: "os.PathLike[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "lacking", lambda target, device: f"{target} has no {device}")
    with pytest.raises(UsageError, match=r"^--device cuda: onnxruntime has no cuda$"):
        coordinator.fuzz(Plan("onnxruntime", device="cuda", out=Path(tmp_path, "out")), ())
    assert not os.path.exists(os.path.join(tmp_path, "out"))
