"""Every node case of onnx whose operators have specs, at level `off`, against the outputs that onnx expects."""

import re
from collections import defaultdict
from importlib.util import find_spec

import pytest
from xla_node_cases import NodeCase, difference, node_cases

from miscompile.core.outcome import Outcome, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool

if find_spec("jax") is None:
    pytest.skip("JAX is not installed here", allow_module_level=True)

pytestmark = [pytest.mark.compiler, pytest.mark.process]

UNSUPPORTED = (
    "element type (string|u?int[24]|float4e2m1|float8e8m0) has no lowering",
    "Dropout in training",
    "attribute ratio of Dropout",  # of opset 7
    "attribute (left|right)_window_size of Attention",  # of opset 25
    "attribute round_mode of Cast",
    "QuantizeLinear with a precision",
    "a Scan with a batch",  # before opset 9
    "a lowering for a constant number of turns only",
)
"""What may be refused; everything else must have a lowering."""


def by_operator() -> dict[str, list[NodeCase]]:
    groups = defaultdict(list)
    for item in node_cases():
        groups[item.op].append(item)
    return dict(sorted(groups.items()))


CASES = by_operator()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[Outcome]]:
    """What came of all cases; the operators are batches for two workers."""
    found: dict[str, list[Outcome]] = {}
    with LocalPool("xla", workers=2, limits=Limits(seconds=90.0)) as pool:
        tickets = {pool.submit([Run(item.case, "xla", Build("off")) for item in CASES[op]]): op for op in CASES}
        while len(found) < len(tickets):
            found.update({tickets[ticket]: batch for ticket, batch in pool.poll(1.0)})
    return found


@pytest.mark.parametrize("op", CASES)
def test_operator_agrees_with_the_expected_outputs(op: str, outcomes: dict[str, list[Outcome]]) -> None:
    pairs = zip(CASES[op], outcomes[op], strict=True)
    wrong = [f"{item.name}: {fault}" for item, outcome in pairs if (fault := _fault(item, outcome))]
    assert not wrong


def _fault(item: NodeCase, outcome: Outcome) -> str:
    if isinstance(outcome, Unsupported):
        known = any(re.search(pattern, outcome.message) for pattern in UNSUPPORTED)
        return "" if known else f"unsupported: {outcome.message}"
    if not isinstance(outcome, Values):
        return str(outcome)
    (found,) = outcome.results
    if len(found) != len(item.expected):
        return f"{len(found)} outputs"
    return "; ".join(filter(None, map(difference, found, item.expected)))


def test_there_are_cases_of_nearly_every_operator() -> None:
    assert len(CASES) > 150
    assert sum(map(len, CASES.values())) > 1000
