"""OptBench on the toy compiler: recall, precision and attribution (ORTHRUS, Table II)."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[4] / "benchmarks" / "optbench.py"


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("optbench", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["optbench"] = module
    spec.loader.exec_module(module)
    return module


BENCH = loaded()


@pytest.mark.parametrize("trigger", BENCH.TRIGGERS, ids=lambda trigger: f"{trigger.number}-{trigger.bug}")
def test_each_case_is_found_and_blamed_on_its_class(trigger: "BENCH.Trigger") -> None:  # type: ignore[name-defined]
    case = BENCH.case_of(trigger)
    assert BENCH.differ(case, BENCH.execute(case, "none", level="off"), BENCH.execute(case, trigger.bug))
    result = BENCH.examine(trigger)
    assert result.found == (trigger.number not in BENCH.PAPER["missed"])
    assert result.right
    assert bool(result.edges) == result.found


def test_the_ten_cases_are_there() -> None:
    assert [trigger.number for trigger in BENCH.TRIGGERS] == list(range(1, 11))


def test_an_honest_compiler_raises_no_alarm() -> None:
    for trigger in BENCH.TRIGGERS:
        case = BENCH.case_of(trigger)
        twin = BENCH.execute(case, "none", BENCH.Resistant(strategies=BENCH.BARRIERS))
        assert not BENCH.differ(case, BENCH.execute(case, "none"), twin)
    pairs, alarms = BENCH.false_alarms(120, seed=3)
    assert pairs > 80
    assert alarms == 0
