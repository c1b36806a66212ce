"""A neighbour on the way back to the library's test is a step of triage that loses no finding."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from miscompile.core.case import Case, Program
from miscompile.triage import conclude
from miscompile.triage.conclude import _Triage
from miscompile.triage.reduce.engine import Budget

CASE, NEAR = (Case(Program("onnx", payload, (), ()), (), {}) for payload in (b"neighbour", b"nearer"))


class _Flaky(_Triage):
    """Goes back to `NEAR`, which does not show the violation when it is to be reduced."""

    def __init__(self) -> None:
        self.stored, self.pool, self.kind = cast("Any", None), cast("Any", None), "wrong"
        self.about: Any = SimpleNamespace(forced=False)
        self.differences: dict[str, Any] = {}
        self.reduced: list[Case] = []

    def _tell(self, phase: str, case: Case | None = None) -> None: ...

    def _begin(self) -> Any:
        return CASE, None, None

    def _recognised(self, *_: object) -> None: ...

    def _suspected(self, *_: object) -> tuple[str, ...]:
        return ()

    def _nearest(self, *_: object) -> Case:
        self.differences = {"differences": {"needed": []}}
        return NEAR

    def _reduce(self, case: Case, *_: object) -> Any:
        self.reduced.append(case)
        return None, None


def test_a_neighbour_whose_nearer_instance_shows_the_bug_no_more_is_reduced_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conclude, "short_timeout", lambda *_: nullcontext())
    monkeypatch.setattr(conclude, "_unconfirmed", lambda stored, text: text)
    triage = _Flaky()
    assert "does not show again" in str(triage.conclude(Budget()))
    assert triage.reduced == [NEAR, CASE]
    assert triage.differences == {}
