"""Verifying motifs against a target that only pretends to compile: what counts, what is hidden, what is planted."""

from collections.abc import Callable, Sequence
from pathlib import Path

from onnx import ModelProto
from onnx.defs import onnx_opset_version

from evaluation.oatest.verify import (
    OPSETS,
    MotifSetting,
    Without,
    opsets_of,
    programs,
    settings_of,
    verify,
    write,
)
from miscompile.core.case import Case
from miscompile.core.outcome import Observations, Outcome, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.patterns.language import Motif, parse_motifs
from miscompile.patterns.triggers import Hidden, parse_triggers
from miscompile.targets.registry import about

RELU = "[relu]\nx = value(..., N)\ny = Relu(x)\ndtypes('float32', 'float64')"
NOOP = "[noop: nothing]\nx = value(2, N)\ny = Identity(x)\ndtypes('float32', 'bool')"


def motif(text: str) -> Motif:
    (one,) = parse_motifs(text, "here")
    return one


def operators(case: Case) -> list[str]:
    return [node.op_type for node in ModelProto.FromString(case.program.payload).graph.node]


def opset(case: Case) -> int:
    return int(ModelProto.FromString(case.program.payload).opset_import[0].version)


class Pretender:
    """A runner whose passes are what `passes` says of a case and of what is off."""

    def __init__(self, passes: Callable[[Case, frozenset[str]], set[str] | None]) -> None:
        self.passes = passes
        self.runs: list[Run] = []

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        self.runs += runs
        return [self._outcome(run) for run in runs]

    def _outcome(self, run: Run) -> Outcome:
        names = self.passes(run.case, run.build.disabled)
        if names is None:
            return Unsupported("compile", "no such kernel")
        return Values((), Observations(passes=tuple(sorted(names - run.build.disabled))))


def test_a_pass_that_fires_in_one_opset_counts() -> None:
    runner = Pretender(lambda case, _: {"Late"} if opset(case) >= 21 else set())
    found = verify([motif(RELU)], "toy", runner, "7", opsets=(13, 21))
    assert (found.target, found.version, found.seen) == ("toy", "7", {"relu": ("Late",)})


def test_a_pass_that_fires_now_and_then_does_not_count() -> None:
    turns = iter(range(1000))
    runner = Pretender(lambda _case, _off: {"Moody"} if next(turns) % 3 == 0 else set())
    assert verify([motif(RELU)], "toy", runner, "7", opsets=(17,)).seen == {}


def test_programs_that_the_target_does_not_build_do_not_count() -> None:
    turns = iter(range(1000))
    runner = Pretender(lambda _case, _off: {"Keen"} if next(turns) % 3 == 0 else None)
    assert verify([motif(RELU)], "toy", runner, "7", opsets=(17,)).seen == {"relu": ("Keen",)}


def test_motifs_that_wake_nothing_are_left_out() -> None:
    assert verify([motif(RELU)], "toy", Pretender(lambda _case, _off: set()), "7", opsets=(17,)).seen == {}


def test_what_comes_after_a_pass_is_seen_when_that_is_off() -> None:
    runner = Pretender(lambda _, off: {"First"} if "First" not in off else {"Second"})
    table = verify([motif(RELU)], "toy", runner, "7", opsets=(17,), siblings=("First", "Third"))
    assert table.seen == {"relu": ("First",)}
    assert table.behind == {"relu": (Hidden("Second", ("First",)),)}


def test_nothing_is_switched_off_unless_asked_for() -> None:
    runner = Pretender(lambda _, off: {"First"} if "First" not in off else {"Second"})
    assert verify([motif(RELU)], "toy", runner, "7", opsets=(17,)).behind == {}
    assert all(not run.build.disabled for run in runner.runs)


def test_twins_are_switched_off_together() -> None:
    one, other = about("onnxruntime").twins[0][:2]
    runner = Pretender(lambda _, off: {"Third"} if {one, other} <= off else {one, other} - off)
    table = verify([motif(RELU)], "onnxruntime", runner, "7", opsets=(17,), siblings=(one, other))
    assert table.behind == {"relu": (Hidden("Third", tuple(sorted((one, other)))),)}


def test_a_runner_without_passes_adds_to_what_is_off_already() -> None:
    runner = Pretender(lambda _case, _off: {"A", "B", "C"})
    case = programs(motif(RELU), (17,), 1)[MotifSetting(17, "float32")][0]
    (outcome,) = Without(runner, frozenset({"A"})).run([Run(case, "toy", _build("B"))])
    assert isinstance(outcome, Values)
    assert outcome.observations.passes == ("C",)


def _build(off: str) -> Build:
    return Build(disabled=frozenset({off}))


def test_every_opset_comes_in_the_first_dtype_and_every_dtype_in_one_opset() -> None:
    assert settings_of(motif(RELU), (12, 13, 17)) == (
        MotifSetting(12, "float32"),
        MotifSetting(13, "float32"),
        MotifSetting(17, "float32"),
        MotifSetting(13, "float64"),
    )


def test_the_newest_opset_of_a_target_is_tried_too() -> None:
    newest = min(about("onnxruntime").max_opset, onnx_opset_version())
    assert opsets_of("onnxruntime") == (*OPSETS, newest)
    assert opsets_of("onnxruntime==1.16.0")[-1] < 21


def test_a_motif_is_planted_alone() -> None:
    for cases in programs(motif(RELU), (13, 21), 2).values():
        assert [operators(case) for case in cases] == [["Relu"], ["Relu"]]


def test_what_changes_nothing_stands_between_two_operators() -> None:
    found = programs(motif(NOOP), (17,), 2)
    assert [operators(case) for case in found[MotifSetting(17, "float32")]] == [["Max", "Identity", "Min"]] * 2
    assert [operators(case) for case in found[MotifSetting(17, "bool")]] == [["And", "Identity", "Or"]] * 2


def test_programs_are_the_same_every_time() -> None:
    first, again = (programs(motif(RELU), (13, 17), 3) for _ in range(2))
    assert {key: [case.program for case in cases] for key, cases in first.items()} == {
        key: [case.program for case in cases] for key, cases in again.items()
    }


def test_settings_that_a_motif_does_not_take_are_left_out() -> None:
    only = motif("[norm]\nx = value(B, N)\nw = weight(N)\ny = LayerNormalization(x, w)\ndtypes('float32')")
    assert set(programs(only, (13, 17), 2)) == {MotifSetting(17, "float32")}


def test_a_table_is_written_where_it_can_be_read(tmp_path: Path) -> None:
    table = verify([motif(RELU)], "toy", Pretender(lambda _case, _off: {"P"}), "7", opsets=(17,))
    write(table, tmp_path / "toy.json")
    assert parse_triggers((tmp_path / "toy.json").read_text("utf-8"), "toy.json") == table
