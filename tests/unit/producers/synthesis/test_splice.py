"""Splicing: valid programs, patterns that are really inside, and facts about it that are true."""

import random
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.tensor import tensor
from miscompile.graph.edges import reads
from miscompile.graph.model import TensorType
from miscompile.graph.wire import node_field
from miscompile.ops.spec import Operand, OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style
from miscompile.patterns.language import Motif, parse_motifs
from miscompile.patterns.pattern import Pattern
from miscompile.patterns.shipped import catalogue, fusion_motifs, shipped_patterns
from miscompile.patterns.vetting import vet_seed
from miscompile.producers.finish import finish
from miscompile.producers.motifs.plant import NONE, plant
from miscompile.producers.options import OPSETS, GeneratorOptions
from miscompile.producers.replay import Player
from miscompile.producers.scope import Scope
from miscompile.producers.strict import Strict
from miscompile.producers.synthesis.host import Host, new_scope, prepared, seed_of, takes
from miscompile.producers.synthesis.splice import Spliced, splice

OPEN = Support(open=True)
LIMITS = OperatorLimits(zero_size=0.0)
STYLE = Style(integral=False, full=False)
STRICT = Strict(GeneratorOptions(nodes=8, spread=0.0, opsets=(17, 21), motifs=0.0, containers=0.0), OPEN)


def host_of(seed: int, opsets: tuple[int, ...] = (17, 21)) -> Host:
    """Return a generated seed; bodies in bodies are no seeds."""
    for turn in range(20):
        with suppress(RejectedDraft):
            scope, outputs, _ = STRICT.grow(stream(seed, "host", turn), opsets)
            return prepared(seed_of(scope, outputs, "made for a test"), scope.opset, OPEN, LIMITS)
    raise AssertionError("no seed comes about")


def concrete(name: str, opset: int) -> Pattern:
    """Return a catalogue motif as a pattern with fixed types."""
    motif = next(motif for motif in catalogue() if motif.name == name)
    scope = Scope(random.Random(3), opset, OperatorLimits(), STYLE, OPEN)
    planted = plant(scope, motif, NONE)
    assert planted is not None
    return Pattern(name, seed_of(scope, [planted.results[-1].name], name), None, "block")


def synthesised(seed: int, pattern: Pattern) -> tuple[Scope, Host, Spliced] | None:
    """Put `pattern` into a seed; None where it fits not."""
    host = host_of(seed)
    scope = new_scope(stream(seed, "splice"), host.opset, OPEN, LIMITS, STYLE)
    try:
        return scope, host, splice(scope, host, pattern)
    except RejectedDraft:
        return None


def reach(scope: Scope, names: Iterable[str]) -> set[str]:
    """Return the values that `names` are made from, themselves included; bodies read values from around them."""
    makers = {name: node for node in scope.nodes for name in node.outputs}
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += reads(makers[name]) if name in makers else []
    return found


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(fusion_motifs()))
def test_what_comes_about_is_valid_and_the_facts_about_it_are_true(seed: int, motif: Motif) -> None:
    pattern = Pattern(motif.name, None, motif, "block")
    made = synthesised(seed, pattern)
    assume(made is not None)
    assert made is not None
    scope, host, spliced = made
    case = finish(scope, spliced.outputs, 1, {})
    onnx.checker.check_model(onnx.load_from_string(case.program.payload), full_check=True)
    assert len(scope.nodes) >= len(host.seed.graph.nodes) + len(pattern.operators) - 1
    before = {name for node in scope.nodes[: spliced.first] for name in node.outputs}
    own = {name for node in scope.nodes[spliced.first : spliced.last] for name in node.outputs}
    after = [name for node in scope.nodes[spliced.last :] for name in node.inputs if name]
    read = reach(scope, [one.name for one in spliced.placed.outputs]) - own
    assert not spliced.inner_in or read & before
    assert not spliced.inner_out or own & reach(scope, after)


def test_nearly_every_pattern_is_joined_on_both_sides() -> None:
    motifs = fusion_motifs()[:120]
    made = [synthesised(seed, Pattern(motif.name, None, motif, "block")) for seed, motif in enumerate(motifs)]
    spliced = [one[2] for one in made if one is not None]
    assert len(spliced) > 0.9 * len(motifs), [
        motif.name for motif, one in zip(motifs, made, strict=True) if one is None
    ]
    assert sum(one.inner_in for one in spliced) > 0.9 * len(spliced)
    assert sum(one.inner_out for one in spliced) > 0.9 * len(spliced)


def test_every_shipped_pattern_can_be_placed_in_each_of_its_forms() -> None:
    hosts: dict[int, list[Host]] = {}
    left = []
    for pattern in shipped_patterns():
        forms = [replace(pattern, seed=None)] if pattern.motif is not None else []
        forms += [replace(pattern, motif=None)] if pattern.seed is not None else []
        for form in forms:
            opset = next(opset for opset in (17, 18, 21, *OPSETS) if takes(form, opset))
            if opset not in hosts:
                hosts[opset] = [host_of(number, (opset,)) for number in range(8)]
            if not any(fits(host, form, number) for number, host in enumerate(hosts[opset] * 3)):
                left.append((form.name, form.seed is None))
    assert not left


def fits(host: Host, pattern: Pattern, number: int) -> bool:
    scope = new_scope(stream(number, pattern.name), host.opset, OPEN, LIMITS, STYLE)
    try:
        splice(scope, host, pattern)
    except RejectedDraft:
        return False
    return True


def test_what_operators_take_only_as_constants_is_drawn_from_where_it_was_seen_to_lie() -> None:
    pattern = next(one for one in shipped_patterns() if one.name == "openvino_RoPEFusionGPTOSS_1")
    host = host_of(1, (23,))
    scope = new_scope(stream(1, "positions"), 23, OPEN, LIMITS, STYLE)
    splice(scope, host, replace(pattern, motif=None))
    (node,) = (node for node in scope.nodes if node.op == "RotaryEmbedding")
    positions = scope.initializers[node.inputs[3]]
    assert positions.dtype == "int64"
    assert 9 <= positions.array.min() <= positions.array.max() <= 47


@pytest.mark.parametrize("within", ["lo=0.5, hi=4", "lo=1, hi=inf"])
def test_an_operand_is_kept_where_the_pattern_says_that_elements_lie(within: str) -> None:
    (motif,) = parse_motifs(f"[m]\nb = value({within})\ny = Reciprocal(b)\ndtypes('float32')", "")
    kept = [host_of(number, (21,)) for number in range(12)]
    assert sum(fits(host, Pattern("m", None, motif, "block"), number) for number, host in enumerate(kept)) > 9


@pytest.mark.parametrize("name", ["gelu_erf", "matmul_add", "transpose_chain"])
def test_a_concrete_pattern_comes_in_with_its_own_types(name: str) -> None:
    strategies = set()
    for seed in range(8):
        host = host_of(seed)
        pattern = concrete(name, host.opset)
        scope = new_scope(stream(seed, "splice"), host.opset, OPEN, LIMITS, STYLE)
        spliced = splice(scope, host, pattern)
        strategies.add(spliced.placed.strategy)
        assert pattern.seed is not None
        wanted = [info.type for info in pattern.seed.graph.outputs if isinstance(info.type, TensorType)]
        assert [(one.dtype, one.shape) for one in spliced.placed.outputs] == [
            (kind.dtype, kind.shape) for kind in wanted
        ]
    assert "bridged" in strategies


def test_nothing_of_the_seed_is_lost() -> None:
    made = [synthesised(seed, Pattern("any", None, fusion_motifs()[0], "block")) for seed in range(12)]
    fitting = [one for one in made if one is not None]
    assert len(fitting) > 8
    for scope, host, spliced in fitting:
        used = reach(scope, spliced.outputs)
        dead = [node.op for node in scope.nodes if node.op != "Constant" and not used.intersection(node.outputs)]
        assert not dead
        assert len(host.seed.graph.outputs) <= len(spliced.outputs) + len(host.seed.graph.nodes)


def test_an_input_that_nobody_reads_any_more_is_none_of_the_seed() -> None:
    """A mutation may take a pinned operand's only reader away; a library with such a seed would be refused."""
    scope = Scope(random.Random(3), 17, OperatorLimits(), STYLE, OPEN)
    kept, spare = (scope.new_input("float32", (2,), Range(-1, 1, False)) for _ in range(2))
    pinned = scope.new_pinned(tensor(np.array([2], np.int64)))
    assert not scope.uses[pinned.name]
    assert not scope.uses[spare.name]
    result = scope.call("Relu", kept)
    seed = seed_of(scope, [result.name], "made for a test")
    assert (dict(seed.pinned), list(seed.ranges)) == ({}, [kept.name])
    vet_seed(seed)


@pytest.mark.parametrize("number", range(12))
def test_what_is_known_of_a_seed_changes_no_splice(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay that takes earlier results, and one that computes every type and fact, give the same graph."""
    host, patterns = host_of(number), [one for one in shipped_patterns() if takes(one, host_of(number).opset)]
    pattern = patterns[number * 37 % len(patterns)]

    def spliced(given: Host) -> tuple[object, ...]:
        scope = new_scope(stream(number, "splice"), given.opset, OPEN, LIMITS, STYLE)
        try:
            found = splice(scope, given, pattern)
        except RejectedDraft as error:
            return (str(error),)
        facts = {name: operand[1:4] for name, operand in scope.operands.items()}
        nodes = [node_field(node) for node in scope.nodes]
        return nodes, facts, scope.uses, scope.producer, list(scope.initializers), scope.inputs, found.outputs

    quick = spliced(host)
    monkeypatch.setattr(Player, "_earlier", lambda *_: None)
    assert spliced(replace(host, fixed=False)) == quick


@pytest.mark.parametrize("number", range(12))
def test_a_host_is_the_same_whether_it_is_known_how_its_seed_was_built(number: int) -> None:
    scope, outputs, _ = STRICT.grow(stream(number, "built"), (17, 21))
    seed = seed_of(scope, outputs, "made for a test")

    def known(built: Mapping[str, Operand]) -> tuple[object, ...]:
        try:
            host = prepared(seed, scope.opset, OPEN, LIMITS, (), built)
        except RejectedDraft as error:
            return (str(error),)
        values = {name: operand[:4] for name, operand in host.values.items()}
        return values, host.scope.nodes, host.points, host.sockets, host.fed

    assert known(scope.operands) == known({})
