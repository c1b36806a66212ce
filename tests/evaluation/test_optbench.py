"""OptBench on the toy compiler: recall, precision and attribution (ORTHRUS, Table II)."""

import pytest

from evaluation.orthrus.optbench import (
    BARRIERS,
    PAPER_MISSED,
    TRIGGERS,
    PlantedCase,
    case_of,
    differ,
    examine,
    execute,
    false_alarms,
)
from miscompile.transforms.resist.transform import Resistant


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda trigger: f"{trigger.number}-{trigger.bug}")
def test_each_case_is_found_and_blamed_on_its_class(trigger: PlantedCase) -> None:
    case = case_of(trigger)
    assert differ(case, execute(case, "none", level="off"), execute(case, trigger.bug))
    result = examine(trigger)
    assert result.found == (trigger.number not in PAPER_MISSED)
    assert result.right
    assert bool(result.edges) == result.found


def test_the_ten_cases_are_there() -> None:
    assert [trigger.number for trigger in TRIGGERS] == list(range(1, 11))


@pytest.mark.slow
def test_an_honest_compiler_raises_no_alarm() -> None:
    for trigger in TRIGGERS:
        case = case_of(trigger)
        twin = execute(case, "none", Resistant(strategies=BARRIERS))
        assert not differ(case, execute(case, "none"), twin)
    pairs, alarms = false_alarms(120, seed=3)
    assert pairs > 80
    assert alarms == 0
