"""Each planted fault shows on its smallest model, as the kind it is said to be, and only when it is switched on."""

import numpy as np
import onnx
import pytest
from toy_bench import compute
from toy_faults import CASES

from miscompile.base.errors import SpecError
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor
from miscompile.targets.toy.about import ABOUT
from miscompile.targets.toy.bugs import BUGS, COSTLY, FATAL, parse_bugs

SURVIVABLE = sorted(set(BUGS) - FATAL - COSTLY - {"garbage_arg_max"})
OFF, FULL = Build(level="off"), Build(level="full")


def verdict(name: str, build: Build, bugs: str) -> str:
    """Return what a build with faults makes of the model, held against the honest unoptimised one."""
    wanted = compute(CASES[name], OFF)
    try:
        found = compute(CASES[name], build, bugs)
    except Exception:  # noqa: BLE001 - faults raise whatever they like
        return "exception"
    return next(filter(None, map(difference, found, wanted)), "same")


def difference(found: Tensor | None, wanted: Tensor | None) -> str:
    """Return how an output differs; values may differ by rounding."""
    assert wanted is not None
    if found is None:
        return "missing"
    if found.dtype != wanted.dtype:
        return "dtype"
    if found.shape != wanted.shape:
        return "shape"
    tolerance = 1e-12 if found.dtype == "float64" else 1e-5
    return "" if np.allclose(found.array, wanted.array, rtol=tolerance, atol=tolerance) else "wrong"


def test_every_fault_has_a_model() -> None:
    assert set(CASES) == set(BUGS)
    assert len(BUGS) >= 20


@pytest.mark.parametrize("name", SURVIVABLE)
def test_fault_shows_as_its_kind(name: str) -> None:
    assert verdict(name, FULL, name) == BUGS[name].kind


@pytest.mark.parametrize("name", sorted(BUGS))
def test_without_faults_optimised_and_unoptimised_agree(name: str) -> None:
    assert verdict(name, FULL, "none") == "same"
    assert verdict(name, Build(level="basic"), "none") == "same"


@pytest.mark.parametrize("name", SURVIVABLE)
def test_fault_needs_optimisation(name: str) -> None:
    assert verdict(name, OFF, name) == "same"


@pytest.mark.parametrize("name", SURVIVABLE)
def test_switching_off_a_needed_pass_heals(name: str) -> None:
    groups = [group.split("|") for group in BUGS[name].passes]
    for group in groups:
        assert verdict(name, Build(disabled=frozenset(group)), name) == "same"
        if len(group) > 1:
            assert all(verdict(name, Build(disabled=frozenset({one})), name) != "same" for one in group)
    everything_else = frozenset(ABOUT.passes) - {one for group in groups for one in group}
    assert verdict(name, Build(disabled=everything_else), name) == BUGS[name].kind


@pytest.mark.parametrize("name", sorted(BUGS))
def test_size_of_the_model_is_the_stated_one(name: str) -> None:
    model = onnx.load_model_from_string(CASES[name].program.payload)
    assert len(model.graph.node) == BUGS[name].nodes


@pytest.mark.parametrize("name", SURVIVABLE)
def test_stage_of_an_exception_is_the_stated_one(name: str) -> None:
    if BUGS[name].kind != "exception":
        return
    from miscompile.targets.toy.adapter import ToyAdapter

    adapter, item = ToyAdapter(name), CASES[name]
    if BUGS[name].stage == "compile":
        with pytest.raises(KeyError):
            adapter.build(item.program, FULL)
    else:
        session = adapter.build(item.program, FULL)
        with pytest.raises((ValueError, IndexError)):
            session.run(item.feeds[0])


def test_faults_name_passes_that_exist_and_use_the_twins() -> None:
    groups = [tuple(group.split("|")) for bug in BUGS.values() for group in bug.passes]
    assert {one for group in groups for one in group} <= set(ABOUT.passes)
    assert set(ABOUT.twins) <= set(groups)
    assert any(len(bug.passes) > 1 for bug in BUGS.values())


def test_the_ten_root_causes_of_optbench_are_there() -> None:
    assert sorted(bug.optbench for bug in BUGS.values() if bug.optbench) == list(range(1, 11))


def test_option_bugs() -> None:
    assert parse_bugs("none") == frozenset()
    assert parse_bugs("all") == set(BUGS)
    assert parse_bugs("survivable") == set(BUGS) - FATAL - COSTLY
    assert parse_bugs("sub_commutes+segfault_tile") == {"sub_commutes", "segfault_tile"}
    with pytest.raises(SpecError, match="no bug 'nonsense'"):
        parse_bugs("nonsense")
