import tomllib
from pathlib import Path

import pytest

import miscompile.patterns
from miscompile.graph.check import check
from miscompile.graph.model import Model
from miscompile.patterns.library import read_library
from miscompile.patterns.triggers import shipped
from miscompile.targets.registry import parse_target

DATA = Path(miscompile.patterns.__file__).parent / "data"
LIBRARIES = sorted((DATA / "mined").glob("*.patterns"))
REASONS = sorted(DATA.glob("unmatched_*.toml"))


def test_mined_patterns_stay_small() -> None:
    assert LIBRARIES
    assert sum(path.stat().st_size for path in LIBRARIES) < 300_000


@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: path.stem)
def test_a_mined_library_holds_valid_programs_that_passes_of_its_target_change(path: Path) -> None:
    found = read_library(path)
    assert len({one.name for one in found}) == len(found)
    for one in found:
        assert one.triggers_on(path.stem)
        assert one.triggers_on(path.stem) <= {*parse_target(path.stem).about.passes}
        assert one.origin
        assert one.seed is not None
        check(Model(one.seed.graph, {"": one.seed.opset}))


@pytest.mark.parametrize("path", REASONS, ids=lambda path: path.stem)
def test_reasons_are_given_for_passes_that_nothing_triggers(path: Path) -> None:
    ((target, reasons),) = tomllib.loads(path.read_text("utf-8")).items()
    assert path.stem == f"unmatched_{target}"
    assert reasons.keys() <= {*parse_target(target).about.passes}
    assert all(reasons.values())
    triggered = {
        name
        for one in LIBRARIES
        if one.stem == target
        for seen in read_library(one)
        for name in seen.triggers_on(target)
    }
    known = shipped(target)
    assert reasons.keys().isdisjoint(triggered | (known.passes() if known else frozenset()))
