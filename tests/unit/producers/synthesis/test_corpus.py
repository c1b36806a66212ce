"""The corpus: what one producer has admitted is where the next one begins."""

from pathlib import Path

import pytest

from miscompile.base.rng import stream
from miscompile.core.outcome import Observations, Values
from miscompile.core.verdict import Holds
from miscompile.graph.model import Model
from miscompile.graph.text.printer import print_model
from miscompile.ops.support import Support
from miscompile.patterns.library import read_library
from miscompile.patterns.pattern import Pattern
from miscompile.patterns.shipped import fusion_motifs
from miscompile.producers.synthesis.corpus import Corpus, Kept
from miscompile.producers.synthesis.options import OatestOptions
from miscompile.producers.synthesis.pool import PooledSeed
from miscompile.producers.synthesis.producer import Synthesised

PATTERNS = [Pattern(motif.name, None, motif, "block") for motif in fusion_motifs()[:60]]
OPTIONS = OatestOptions(opsets=(17, 21), variants=1, calls=0.0)


def producer(corpus: Corpus | None, options: OatestOptions = OPTIONS) -> Synthesised:
    return Synthesised(options, Support(open=True), PATTERNS, ["toy"], corpus=corpus)


def run(made: Synthesised, count: int, word: str = "pass") -> None:
    for number in range(count):
        case = made.propose(stream(9, number))
        made.learn(case, [Values((), Observations(passes=(f"{word} {number % 12}",)))], Holds())


def told(entry: PooledSeed) -> tuple[object, ...]:
    seed = entry.host.seed
    form = print_model(Model(seed.graph, {"": seed.opset}, (), 10)), dict(seed.ranges), sorted(seed.pinned)
    return *form, entry.host.opset, entry.passes, entry.host.patterns, entry.host.points


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path / "corpus", "lane-0", "toy")


def test_a_producer_goes_on_from_what_another_has_kept(corpus: Corpus) -> None:
    first = producer(corpus)
    run(first, 40)
    kept = [entry for entry in first.pool.entries if entry.passes]
    assert len(kept) == 12
    second = producer(corpus)
    assert [told(entry) for entry in kept] == [told(entry) for entry in second.pool.entries]
    assert second.pool.seen == first.pool.seen
    run(second, 40)  # nothing is new any more
    assert len(list(corpus.load(1000))) == 12


def test_lanes_begin_with_what_the_others_found(corpus: Corpus) -> None:
    run(producer(corpus), 20)
    other = Corpus(corpus.folder, "lane-1", "toy")
    run(producer(other), 20, "other")
    assert len(producer(corpus).pool.entries) == 24
    assert {path.name for path in corpus.folder.iterdir()} == {"lane-0.patterns", "lane-1.patterns"}


def test_a_corpus_is_a_library_of_patterns(corpus: Corpus) -> None:
    run(producer(corpus), 20)
    found = read_library(corpus.folder / "lane-0.patterns")
    assert [sorted(one.triggers_on("toy")) for one in found] == [[f"pass {number}"] for number in range(12)]


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_what_a_killed_process_left_is_passed_over_and_taken_off(corpus: Corpus, cut: int) -> None:
    run(producer(corpus), 20)
    path = corpus.folder / "lane-0.patterns"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert len(list(corpus.load(1000))) == 11
    corpus.add(Kept(next(iter(corpus.load(1))).seed, frozenset({"new"}), ()), 1)
    assert [len(one.triggers) for one in read_library(path)] == [1] * 12


def test_damage_costs_the_file_alone(corpus: Corpus) -> None:
    run(producer(corpus), 20)
    (corpus.folder / "lane-9.patterns").write_bytes(b"\xff\x00 nothing\nend\n")
    assert len(list(corpus.load(1000))) == 12
    assert len(list(corpus.load(5))) == 5


def test_a_corpus_that_cannot_be_written_ends_itself_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    corpus = Corpus(tmp_path / "file" / "corpus", "lane-0", "toy")
    run(producer(corpus), 20)
    assert capsys.readouterr().err.count("seeds are no longer kept") == 1


def test_without_high_order_nothing_is_kept_or_taken(corpus: Corpus) -> None:
    run(producer(corpus), 20)
    alone = producer(corpus, OatestOptions(opsets=(17,), variants=1, high_order=False))
    assert not alone.pool.entries
