"""The example of docs/adding-an-oracle.md works as it stands: it conforms, and a fault that it finds is reduced."""

import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from oracle_cases import case

from miscompile.base.plugins import Offer
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Violated
from miscompile.oracles.conformance import check_oracle
from miscompile.oracles.kinds import OracleContext, OracleKind
from miscompile.oracles.registry import ORACLES, campaign_oracles, hold

PAGE = Path(__file__).parents[3] / "docs" / "adding-an-oracle.md"
CONTEXT = OracleContext(("toy",))


def example() -> Any:
    source = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)[0]
    names: dict[str, Any] = {"__name__": "repeat_example"}
    exec(compile(source, "adding-an-oracle.md", "exec"), names)
    return SimpleNamespace(**names)


class Echo:
    """Gives each feed's first input back as every output; with `drifts`, another value at each further feed."""

    def __init__(self, drifts: bool) -> None:
        self.drifts = drifts

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return [self._one(run.case) for run in runs]

    def _one(self, one: Case) -> Outcome:
        results = []
        for place, feed in enumerate(one.feeds):
            array = feed[0].array + (place if self.drifts else 0)
            results.append(tuple(Tensor(feed[0].dtype, array) for _ in one.program.outputs))
        return Values(tuple(results))


def test_the_example_conforms() -> None:
    check_oracle(example().KIND, Echo(drifts=False), Echo(drifts=True), [case()], CONTEXT)


def test_the_kit_sees_an_oracle_that_sees_nothing_and_one_that_forgets_its_build() -> None:
    kind = example().KIND
    with pytest.raises(AssertionError, match="the fault is not seen"):
        check_oracle(kind, Echo(drifts=False), Echo(drifts=False), [case()], CONTEXT)
    with pytest.raises(AssertionError, match="a sound compiler violates it"):
        check_oracle(kind, Echo(drifts=True), Echo(drifts=True), [case()], CONTEXT)

    def forgetful(options: object, evidence: Any, context: OracleContext, facts: object) -> Any:
        return example().Repeat(context.target, Build("basic"))

    with pytest.raises(AssertionError, match="another build than the evidence"):
        check_oracle(OracleKind(kind.name, kind.help, forgetful, kind.make), Echo(False), Echo(True), [case()], CONTEXT)


def test_an_oracle_of_another_package_is_found_and_its_findings_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = example()

    def offered(group: str) -> Iterable[Offer]:
        return (Offer("repeat", "acme.repeat:KIND", "acme"),) if group == ORACLES.group else ()

    monkeypatch.setattr("miscompile.base.plugins.added", offered)
    monkeypatch.setattr("miscompile.base.plugins.attribute", lambda path: found.KIND if "acme" in path else real(path))
    assert "repeat" in campaign_oracles()
    oracle = campaign_oracles()["repeat"].make(found.KIND.options(), CONTEXT)  # type: ignore[misc]
    runs = oracle.plan(case(), random.Random(0))
    verdict = oracle.judge(runs, Echo(drifts=True).run(runs))
    assert isinstance(verdict, Violated)
    held = hold("repeat", verdict.evidence, CONTEXT)
    assert (held.target, held.faulty) == ("toy", Build("full"))


def real(path: str) -> object:
    from importlib import import_module

    module, _, name = path.partition(":")
    found: object = getattr(import_module(module), name)
    return found
