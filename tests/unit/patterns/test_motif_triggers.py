"""Triggers of motifs: the tables that ship, how they are read and written, and the patterns made of them."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import SpecError
from miscompile.patterns.shipped import catalogue, patterns_of
from miscompile.patterns.triggers import (
    Hidden,
    ObservedTriggers,
    granularities,
    known_targets,
    parse_triggers,
    print_triggers,
    reasons,
    shipped,
    unmatched,
)
from miscompile.targets.about import About
from miscompile.targets.registry import about

ALWAYS = ("EnsureUniqueDQForNodeUnit", "RemoveDuplicateCastTransformer", "CastFloat16Transformer", "MemcpyTransformer")
"""Transformers of ONNX Runtime that nobody can switch off."""

words = st.text(min_size=1, max_size=12)
lists = st.lists(words, min_size=1, max_size=3).map(tuple)
hidden = st.dictionaries(words, lists, min_size=1, max_size=3).map(
    lambda found: tuple(Hidden(name, off) for name, off in found.items())
)
tables = st.builds(
    ObservedTriggers,
    words,
    words,
    st.dictionaries(words, lists, max_size=4),
    st.dictionaries(words, hidden, max_size=4),
)


def every_name(face: About) -> Iterator[str]:
    yield from face.passes
    yield from face.rules


@given(tables)
def test_a_table_reads_back_as_it_was_written(triggers: ObservedTriggers) -> None:
    assert parse_triggers(print_triggers(triggers), "here") == triggers


def test_a_table_has_a_line_for_each_motif() -> None:
    text = print_triggers(ObservedTriggers("toy", "1", {"a": ("P", "Q"), "b": ("P",)}, {"b": (Hidden("R", ("P",)),)}))
    assert '\n  "a": ["P", "Q"],\n  "b": ["P"]\n' in text
    assert '\n  "b": {"R": ["P"]}\n' in text


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"target": "t", "version": "1", "seen": [], "behind": {}}', '{"seen": {"a": 1}}']
)
def test_a_damaged_table_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(SpecError, match=r"there\.json"):
        parse_triggers(text, "there.json")


def test_passes_behind_others_count_as_woken_and_not_as_seen() -> None:
    triggers = ObservedTriggers("toy", "1", {"a": ("P",), "b": ("P", "Q")}, {"a": (Hidden("R", ("P",)),)})
    assert triggers.passes() == {"P", "Q", "R"}


def test_nothing_is_known_of_a_target_that_nobody_looked_at() -> None:
    assert shipped("no_such_target") is None
    assert unmatched("no_such_target") == {}
    assert granularities("no_such_target") == {}


def test_tables_name_motifs_that_there_are() -> None:
    names = {motif.name for motif in catalogue()}
    for target in known_targets():
        table = shipped(target)
        assert table is not None
        assert table.target == about(target).name
        assert {*table.seen, *table.behind} <= names


def test_the_table_of_onnxruntime_names_passes_that_can_be_switched_off() -> None:
    table = shipped("onnxruntime")
    assert table is not None
    assert table.passes() <= set(about("onnxruntime").passes)


def test_what_is_seen_is_not_said_to_be_hidden() -> None:
    for target in known_targets():
        table = shipped(target)
        assert table is not None
        for motif, found in table.behind.items():
            assert not {one.name for one in found}.intersection(table.seen.get(motif, ()))


def test_every_pass_of_onnxruntime_has_a_motif_or_a_stated_reason() -> None:
    table, reasons = shipped("onnxruntime"), unmatched("onnxruntime")
    assert table is not None
    names = {*every_name(about("onnxruntime")), *ALWAYS}
    assert names - table.passes() - set(reasons) == set()
    assert set(reasons) <= names
    assert all(reasons.values())


def test_a_pass_with_a_motif_needs_no_reason() -> None:
    table = shipped("onnxruntime")
    assert table is not None
    seen = {name for names in table.seen.values() for name in names}
    assert seen.isdisjoint(unmatched("onnxruntime"))


def test_reasons_name_motifs_that_do_what_they_say() -> None:
    table = shipped("onnxruntime")
    assert table is not None
    for name in ("EmbedLayerNormFusion", "MatMulNBitsFusion"):
        motifs = [motif for motif, some in table.behind.items() if any(one.name == name for one in some)]
        assert any(motif in unmatched("onnxruntime")[name] for motif in motifs)


@pytest.mark.parametrize(
    ("target", "always", "block", "subgraph"),
    [
        ("onnxruntime", ALWAYS, "ConvActivationFusion", "TransposeOptimizer"),
        ("openvino", (), "ClampFusion", "StridesOptimization"),
        ("xla", (), "algsimp", "cse"),
        ("inductor", (), "addmm", "scheduler_fusion"),
    ],
)
def test_every_pass_is_labelled_and_nothing_else(
    target: str, always: tuple[str, ...], block: str, subgraph: str
) -> None:
    labels = granularities(target)
    assert {*every_name(about(target)), *always} == set(labels)
    assert set(labels.values()) == {"block", "subgraph"}
    assert labels[block] == "block"
    assert labels[subgraph] == "subgraph"


def test_a_pass_that_hides_behind_another_says_so() -> None:
    assert reasons("xla")["reduce-window-resizer"] == "fires only with reduce-window-rewriter off (cumsum_vector)"
    assert reasons("xla")["map-inline"] == unmatched("xla")["map-inline"]


@pytest.mark.parametrize("target", ["tvm", "openvino", "xla", "inductor"])
def test_every_label_has_a_reason(target: str) -> None:
    text = files("miscompile.patterns").joinpath(f"data/granularity_{target}.toml").read_text("utf-8")
    rows = tomllib.loads(text)
    assert set(rows) == set(granularities(target))
    assert all(row["why"] for row in rows.values())
    assert all(set(row) == {"granularity", "why"} for row in rows.values())


def test_the_catalogue_as_patterns_carries_what_was_seen_and_on_which_version() -> None:
    table = shipped("onnxruntime")
    assert table is not None
    found = {pattern.name: pattern for pattern in patterns_of(["onnxruntime"])}
    assert list(found) == [motif.name for motif in catalogue()]
    for name, passes in table.seen.items():
        assert found[name].triggers_on("onnxruntime") == set(passes)
        assert {trigger.version for trigger in found[name].triggers} == {table.version}
    assert {name for name, pattern in found.items() if pattern.triggers} == set(table.seen)


def test_a_pattern_is_a_subgraph_when_only_such_passes_take_it() -> None:
    found = {pattern.name: pattern.granularity for pattern in patterns_of(["onnxruntime"])}
    assert found["conv_relu"] == "block"  # a fusion takes it, and the layout as well
    assert found["transpose_chain"] == "subgraph"
    assert found["min_max_clip"] == "block"  # it triggers nothing


def test_without_a_table_patterns_wake_nothing() -> None:
    assert all(not pattern.triggers for pattern in patterns_of(["no_such_target"]))
