"""Producers of other packages: named by specs, told the campaign's choices, and mixed in like the others."""

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import pytest

from miscompile.base import plugins
from miscompile.base.errors import SpecError, UsageError
from miscompile.base.plugins import Offer
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Verdict
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_producer
from miscompile.ops.support import Support
from miscompile.producers.kinds import PRODUCERS, ProducerContext, ProducerKind
from miscompile.producers.strict import Strict


@dataclass(frozen=True, slots=True)
class EchoOptions:
    """Options of a producer that makes what strict generation makes, with a name of its own."""

    nodes: int = 10
    loud: bool = False
    opsets: tuple[int, ...] = (17, 18)
    share: float = 0.5


class Echo:
    """The producer, which keeps what it was made of."""

    def __init__(self, options: EchoOptions, context: ProducerContext) -> None:
        self.options, self.context = options, context
        self._strict = Strict(Plan("toy").options_of("strict", {}, ""), context.support)

    def propose(self, rng: random.Random) -> Case:
        return self._strict.propose(rng)

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        pass


@pytest.fixture(autouse=True)
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("echo_producer")
    module.__dict__["KIND"] = ProducerKind("echo", EchoOptions, Echo, own_opsets=True)
    monkeypatch.setitem(sys.modules, "echo_producer", module)
    offers = (Offer("echo", "echo_producer:KIND", "echo-producer"), Offer("gone", "no_such_module:KIND", "gone-pkg"))
    monkeypatch.setattr(plugins, "added", lambda group: offers if group == "miscompile.producers" else ())


def test_a_spec_names_it_and_the_campaign_has_its_say() -> None:
    plan = Plan("toy", nodes=4, max_rank=2, guidance=True, producers=("echo{loud=yes}",))
    ((name, options),) = plan.producer_specs()
    assert (name, options) == ("echo", EchoOptions(nodes=4, loud=True, opsets=(17, 18)))
    producer = make_producer(plan, Support(open=True))
    assert isinstance(producer, Echo)
    assert producer.context.targets == ("toy",)
    assert producer.propose(random.Random(0)).program.kind == "onnx"


def test_errors_name_it() -> None:
    assert PRODUCERS.names[-2:] == ("echo", "gone")
    with pytest.raises(SpecError, match=r"echo\{colour=red\} has no option 'colour'; it has: loud, nodes"):
        Plan("toy", producers=("echo{colour=red}",)).producer_specs()
    with pytest.raises(SpecError, match=r"there is no producer 'magic'; there are: strict, .*, oatest, echo$"):
        Plan("toy", producers=("magic",)).producer_specs()


def test_a_broken_one_is_an_error_only_when_it_is_named() -> None:
    assert Plan("toy").producer_specs()
    with pytest.raises(UsageError, match="the producer 'gone' of the package gone-pkg is broken: ModuleNotFoundError"):
        Plan("toy", producers=("gone",)).producer_specs()
