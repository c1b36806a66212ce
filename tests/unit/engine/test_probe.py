"""The capability probe with runners that refuse."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "targets" / "toy"))

from toy_bench import InProcessRunner

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import UsageError
from miscompile.base.rng import stream
from miscompile.core.outcome import Crashed, Outcome, OutOfMemory, Raised, Rejected, Unsupported, Values
from miscompile.core.run import Run
from miscompile.engine import probe as probing
from miscompile.engine.plan import Plan
from miscompile.engine.probe import probe, support_of
from miscompile.engine.wiring import make_producer
from miscompile.graph.read import read
from miscompile.ops.registry import specs
from miscompile.ops.support import Support
from miscompile.producers.control.forms import blocks, carried_dtypes, questions
from miscompile.producers.motifs.containers import questions as container_questions
from miscompile.producers.motifs.containers import taken_blocks

SOME = ("Add", "Relu", "Softmax", "Concat")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the probe ask about a few operators only."""
    monkeypatch.setattr(probing, "specs", lambda: {name: specs()[name] for name in SOME})
    monkeypatch.setattr(probing, "questions", lambda opsets: ())
    monkeypatch.setattr(probing, "container_questions", lambda opsets: ())


class Answering:
    """A runner that answers each program by its operator."""

    def __init__(self, refused: dict[str, Outcome]) -> None:
        self.refused, self.asked = refused, 0

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        self.asked += len(runs)
        for run in runs:
            assert (run.build.level, run.purpose) == ("off", "probe")
        return [self._answer(run) for run in runs]

    def _answer(self, run: Run) -> Outcome:
        ops = {node.op for node in read(run.case.program.payload).graph.nodes}
        return next((outcome for op, outcome in self.refused.items() if op in ops), Values(()))


def ops_taken(table: Support) -> set[str]:
    return {op for op, _ in table.pairs}


@pytest.mark.parametrize(
    ("outcome", "taken"),
    [
        (Unsupported("compile", "no kernel"), False),
        (Rejected("compile", "no"), False),
        (OutOfMemory("run"), False),
        (Crashed("run", 11), True),
        (Raised("run", "Error", "bad"), False),  # says nothing, so the operator never becomes known
        (Values(()), True),
    ],
)
def test_what_an_answer_says_of_support(outcome: Outcome, taken: bool) -> None:
    table = probe("toy", (21,), Answering({"Softmax": outcome}))
    assert ops_taken(table) - {"Softmax"} == set(SOME) - {"Softmax"}
    assert ("Softmax" in ops_taken(table)) is taken


def test_only_what_was_taken_is_generated_afterwards() -> None:
    table = probe("toy", (21,), Answering({"Add": Unsupported("compile", "no kernel")}))
    producer = make_producer(Plan("toy", opset=21, producers=("strict",)), table)
    for index in range(30):
        model = read(producer.propose(stream(0, "case", index)).program.payload)
        assert {node.op for node in model.graph.nodes} <= {*SOME, "Constant"} - {"Add"}


def test_forms_of_control_flow_are_asked_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "questions", questions)
    table = probe("toy", (21,), Answering({"Loop": Unsupported("compile", "no kernel")}))
    found = blocks(table, 21)
    assert found.operators() == ("If", "Scan")
    assert found.operators("If") == ("If", "Scan")
    assert found.has("Scan", "turned")
    assert found.dtypes["Loop"] == ()
    assert set(found.dtypes["If"]) == set(PLAIN) & carried_dtypes("If", 21)


def test_blocks_of_sequences_are_asked_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "container_questions", lambda opsets: list(container_questions(opsets))[:60])
    table = probe("toy", (21,), Answering({"SequenceMap": Unsupported("compile", "no kernel")}))
    found = {name for name, _ in taken_blocks(table, 21, ("float32",))}
    assert {"split_at", "construct_at"} <= found
    assert "mapped" not in found


def test_an_inquiry_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "questions", questions)
    runner = Answering({})
    begun, other = probing.Inquiry((21,)), probing.Inquiry((21,))
    begun.go_on("toy", runner, None, 1e-9)
    assert not begun.done
    other.resume(begun.state())
    whole = other.go_on("toy", runner, None, None)
    assert other.done
    assert whole == probe("toy", (21,), Answering({}))


class SlowAfterTheFirst:
    """A runner whose clock goes on by 0.1 s for each of the first ten programs, and by 5 s for each further one."""

    def __init__(self) -> None:
        self.now, self.asked = 0.0, 0

    def monotonic(self) -> float:
        return self.now

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        for _ in runs:
            self.asked += 1
            self.now += 0.1 if self.asked <= 10 else 5.0
        return [Values(())] * len(runs)


@pytest.mark.parametrize("seconds", [60.0, 120.0, 400.0])
def test_a_probe_of_a_slow_compiler_ends_soon_after_its_time(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = SlowAfterTheFirst()
    monkeypatch.setattr(probing, "time", runner)
    monkeypatch.setattr(probing, "questions", questions)
    inquiry = probing.Inquiry((21,))
    inquiry.go_on("toy", runner, None, seconds)
    assert not inquiry.done
    assert runner.asked > 10
    assert seconds <= runner.now < seconds + 6.0


def test_the_watcher_sees_the_end() -> None:
    seen: list[tuple[int, int]] = []
    probe("toy", (17, 21), Answering({}), lambda done, total: seen.append((done, total)))
    assert seen
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_table_is_cached_for_versions_and_opsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "user_cache_path", lambda name: tmp_path / name)
    runner = Answering({"Add": Unsupported("compile", "no kernel")})

    def asked(versions: dict[str, str], opsets: tuple[int, ...]) -> tuple[int, Support]:
        before = runner.asked
        table = support_of("toy", versions, opsets, runner)
        return runner.asked - before, table

    first, table = asked({"toy": "1"}, (21,))
    again, cached = asked({"toy": "1"}, (21,))
    assert first > 0
    assert again == 0
    assert cached == table
    assert asked({"toy": "2"}, (21,))[0] > 0
    assert asked({"toy": "1"}, (17,))[0] > 0
    (damaged, *_) = (tmp_path / "miscompile" / "support").glob("*.json")
    for path in (tmp_path / "miscompile" / "support").glob("*.json"):
        path.write_text("{" if path == damaged else path.read_text())
    total = sum(asked({"toy": version}, opsets)[0] for version, opsets in (("1", (21,)), ("2", (21,)), ("1", (17,))))
    assert total > 0


def test_the_error_of_a_broken_target_is_told_and_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "user_cache_path", lambda name: tmp_path / name)
    broken = Answering(dict.fromkeys(SOME, Raised("compile", "NameError", "name 'built' is not defined\nand more")))
    with pytest.raises(UsageError, match=r"toy took no program; it raises at compile of \w+: NameError: .* defined$"):
        support_of("toy", {}, (21,), broken)
    assert ops_taken(support_of("toy", {}, (21,), Answering({}))) == set(SOME)


def test_a_target_that_refuses_everything_is_not_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "user_cache_path", lambda name: tmp_path / name)
    refusing = Answering(dict.fromkeys(SOME, Unsupported("compile", "no kernel")))
    assert not ops_taken(support_of("toy", {}, (21,), refusing))


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(probing, "user_cache_path", lambda name: tmp_path / "file" / name)
    assert ops_taken(support_of("toy", {}, (21,), Answering({}))) == set(SOME)


def test_the_toy_itself_takes_these_operators() -> None:
    table = probe("toy", (21,), InProcessRunner("toy"))
    assert ops_taken(table) == set(SOME)
    assert ("Relu", "bfloat16") not in table.pairs
    assert ("Relu", "float32") in table.pairs


def test_conversions_are_asked_about_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """An inquiry of a slow target ends before it is through, and bridges between types need conversions."""
    monkeypatch.setattr(probing, "specs", lambda: {name: specs()[name] for name in ("Cast", *SOME)})
    inquiry = probing.Inquiry((21,))
    asked: Counter[tuple[str, str]] = Counter()
    while inquiry._next[0] < 1:
        drawn = inquiry._questions(48)
        asked.update(inquiry._triples[place][:2] for _, place in drawn)
    casts = {dtype: count for (op, dtype), count in asked.items() if op == "Cast"}
    assert min(casts.values()) >= 15
    assert asked["Relu", "float32"] <= 4


def test_the_operators_of_a_campaign_are_asked_about_first() -> None:
    inquiry = probing.Inquiry((17, 21), ("Softmax",))
    drawn = inquiry._questions(20)
    order = [inquiry._triples[place][0] for _, place in drawn]
    assert set(order[:10]) == {"Softmax"}
    whole = inquiry.go_on("toy", Answering({}), None, None)
    assert ops_taken(whole) == set(SOME)


def test_answers_of_a_general_probe_are_kept_where_some_operators_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "user_cache_path", lambda name: tmp_path / name)
    slow = SlowAfterTheFirst()
    with monkeypatch.context() as clock:
        clock.setattr(probing, "time", slow)
        begun = ops_taken(support_of("toy", {}, (21,), slow, seconds=0.15))
        other = max(set(SOME) - begun)
        again = SlowAfterTheFirst()
        clock.setattr(probing, "time", again)
        more = ops_taken(support_of("toy", {}, (21,), again, (other,), seconds=0.5))
    assert begun
    assert more >= begun | {other}


def test_the_simplest_program_does_not_depend_on_the_operators_of_a_campaign() -> None:
    single, plain = probing.Inquiry((21,), ("Softmax",)).simplest, probing.Inquiry((21,)).simplest
    assert single is not None
    assert plain is not None
    assert single.call.op == plain.call.op


def test_what_is_asked_about_first_has_a_cache_of_its_own_until_all_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "user_cache_path", lambda name: tmp_path / name)
    slow = SlowAfterTheFirst()
    with monkeypatch.context() as clock:
        clock.setattr(probing, "time", slow)
        begun = support_of("toy", {}, (21,), slow, ("Softmax",), seconds=0.5)
    runner = Answering({})
    assert ops_taken(begun) == {"Softmax"}
    assert ops_taken(support_of("toy", {}, (21,), runner)) == set(SOME)
    before = runner.asked
    assert ops_taken(support_of("toy", {}, (21,), runner, ("Softmax",))) == set(SOME)
    assert runner.asked == before
