"""What each relation does to small models, and what it must leave alone."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from miscompile.base.errors import ModelError, RejectedDraft, SpecError
from miscompile.core.tensor import tensor
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.fingerprint import fingerprint
from miscompile.graph.model import Graph, Model, Node, TensorType
from miscompile.graph.prune import prune
from miscompile.graph.read import read
from miscompile.graph.text.parser import parse_model
from miscompile.transforms.exact.constness import Constness
from miscompile.transforms.exact.dead import Dead
from miscompile.transforms.exact.duplicate import Duplicate
from miscompile.transforms.exact.feeding import Closed, Opened
from miscompile.transforms.exact.identity import Identity, NoIdentity
from miscompile.transforms.exact.inline import Inline
from miscompile.transforms.exact.merge import Merge
from miscompile.transforms.exact.order import NodeOrder
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.rename import Rename
from miscompile.transforms.exact.scopes import rewrite, scopes, types_by_scope
from miscompile.transforms.exact.storage import Aspect, Storage, can_be_restored, restored
from miscompile.transforms.exact.structural import structural_values
from miscompile.transforms.exact.taps import Taps
from miscompile.transforms.exact.wrap import Wrap, depth_of
from miscompile.transforms.exact.wrap_kinds import HOWS, WrapKind
from miscompile.transforms.kinds import Transform

SIZES = parse_model(
    """ir 8 opset 18 graph g(%x: float32[2,3]) -> (%y: float32[3,2], %z: float32[3,2]) {
    init %shape: int64[2] = [3, 2]
    init %w: float32[2,3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    init %v: float32[2,3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    %one = Constant() {value=tensor int64[1] [1]}
    %target = Mul(%shape, %one)
    %a = Add(%x, %w)
    %b = Mul(%a, %v)
    %y = Reshape(%b, %target)
    %c = Mul(%a, %w)
    %z = Reshape(%c, %shape)
}"""
)

BODIES = parse_model(
    """ir 8 opset 18 graph g(%x: float32[2], %c: bool[]) -> (%y: float32[2]) {
    %a = Neg(%x)
    %b = If(%c) {
      then_branch=graph t() -> (%t2: float32[2]) { init %k: float32[] = [2.0] %t1 = Add(%a, %x) %t2 = Mul(%t1, %k) },
      else_branch=graph e() -> (%e1: float32[2]) { %e1 = Relu(%a) }
    }
    %y = Add(%b, %a)
}"""
)

CHANCE = parse_model(
    """ir 8 opset 18 graph g(%x: float32[2]) -> (%y: float32[2], %z: float32[2], %u: float32[2]) {
    %r = RandomUniformLike(%x) %s = RandomUniformLike(%x)
    %y = Add(%r, %r) %z = Add(%s, %r) %u = Neg(%x)
}"""
)

PAIR = """ir 8 opset 18 graph g(%x: float32[2,3]{x}) -> (%y: float32[2,3]{y}) {{
    %a = Relu(%x) %b = Sigmoid(%a) %c = Add(%a, %b) %d = Mul(%c, %c) %e = Sub(%d, %a) %y = Add(%e, %b) {more} }}"""
APART = "%p = Neg(%q) %s = Exp(%p) %t = Add(%s, %p) %r = Mul(%t, %t)"

Maker = Callable[[int], Placed]
RELATIONS: list[Maker] = [Duplicate, Identity, Wrap, Dead, Rename]


def applied(form: Placed, model: Model) -> Model:
    assert isinstance(form, Transform)
    changed = form.apply(model)
    check(changed)
    return changed


def main_ops(model: Model) -> list[str]:
    return [node.op for node in model.graph.nodes]


@pytest.mark.parametrize("make", RELATIONS)
@pytest.mark.parametrize("seed", range(6))
def test_an_unrelated_part_changes_nothing_elsewhere(make: Maker, seed: int) -> None:
    alone = parse_model(PAIR.format(x="", y="", more=""))
    both = parse_model(PAIR.format(x=", %q: float32[4]", y=", %r: float32[4]", more=APART))
    changed = applied(make(seed), both)
    kept = Model(
        Graph(
            "g", changed.graph.inputs[:1], changed.graph.outputs[:1], changed.graph.nodes, changed.graph.initializers
        ),
        changed.opsets,
    )
    expected = prune(applied(make(seed), alone)).graph
    assert fingerprint(Model(prune(kept).graph, both.opsets)) == fingerprint(Model(expected, both.opsets))


@pytest.mark.parametrize("make", [*RELATIONS, NodeOrder, Merge, Taps])
def test_what_is_random_stays_as_often_as_it_is(make: Maker) -> None:
    for seed in range(8):
        try:
            changed = applied(make(seed), CHANCE)
        except RejectedDraft:
            continue
        check(changed)
        every = [node.op for scope in scopes(changed) for node in scope.nodes]
        assert every.count("RandomUniformLike") == main_ops(changed).count("RandomUniformLike") == 2
        first, second = (node for node in changed.graph.nodes if node.op == "RandomUniformLike")
        sums = [node for node in changed.graph.nodes if node.outputs[0] == "y"]
        assert make is not NodeOrder or first.outputs == ("r",)
        assert first.outputs != second.outputs
        assert sums or make in (Identity, Wrap)


def test_sizes_are_structural_and_weights_are_not() -> None:
    assert structural_values(SIZES) == {"shape", "one", "target"}
    called = parse_model(
        """ir 8 opset 18 opset l 1 graph g(%x: float32[2,3]) -> (%y: float32[6]) {
        init %s: int64[1] = [6] init %k: float32[] = [2.0] %n = Shape(%x) %y = l::f(%x, %s, %k) }
        function l::f(%p, %q, %r) -> (%t) { opset 18 %u = Mul(%p, %r) %t = Reshape(%u, %q) }"""
    )
    assert structural_values(called) == {"s"}
    looped = parse_model(
        """ir 8 opset 18 graph g(%x: float32[2], %fed: int64[1]) -> (%y: float32[?], %z: float32[?]) {
        init %m: int64[] = [2] init %i: int64[1] = [2] init %j: int64[1] = [2]
        %far = Neg(%fed) %z = Expand(%x, %far)
        %k = Loop(%m, _, %i) { body=graph b(%t: int64[], %c: bool[], %v: int64[1]) -> (%d: bool[], %w: int64[1]) {
          %d = Identity(%c) %w = Add(%v, %j) } }
        %y = Expand(%x, %k) }"""
    )
    assert structural_values(looped) >= {"m", "i", "j", "k", "v", "w"}
    assert {"x", "fed", "far"}.isdisjoint(structural_values(looped))


def test_constants_change_their_kind_and_keep_their_names() -> None:
    form = Constness(share=1.0)
    changed = applied(form, SIZES)
    made = {node.outputs[0] for node in changed.graph.nodes if node.op == "Constant"}
    listed = {info.name for info in changed.graph.inputs} - {"x"}
    assert "shape" in made
    assert "one" in changed.graph.initializers
    assert listed | made == {"shape", "w", "v"}
    assert listed <= changed.graph.initializers.keys()
    assert set(form.places(SIZES)) == {"shape", "one", "w", "v"}
    everything = [applied(Constness(seed, 1.0, structural=True), SIZES) for seed in range(8)]
    assert any("shape" in {info.name for info in model.graph.inputs} for model in everything)
    never = [applied(Constness(seed, 1.0, overridable=False), SIZES) for seed in range(8)]
    assert all(len(model.graph.inputs) == 1 for model in never)


def test_constants_of_bodies_stay_in_their_bodies() -> None:
    changed = applied(Constness(share=1.0), BODIES)
    body = changed.graph.nodes[1].attributes["then_branch"].value
    assert [node.op for node in body.nodes] == ["Add", "Constant", "Mul"]
    assert not body.initializers


@pytest.mark.parametrize(
    ("attribute", "dtype", "shape"),
    [
        ("value_float=2.5", "float32", ()),
        ("value_floats=[2.5, 1.0]", "float32", (2,)),
        ("value_int=3", "int64", ()),
        ("value_ints=[3, 4, 5]", "int64", (3,)),
        ('value_strings=["a"]', "string", (1,)),
        ("value=tensor int32[1] [7]", "int32", (1,)),
    ],
)
def test_every_sort_of_constant_can_be_an_initialiser(attribute: str, dtype: str, shape: tuple[int, ...]) -> None:
    sizes = ",".join(map(str, shape))
    model = parse_model(
        f"""ir 8 opset 18 graph g() -> (%y: {dtype}[{sizes}]) {{ %k = Constant() {{{attribute}}} %y = Identity(%k) }}"""
    )
    value = applied(Constness(share=1.0), model).graph.initializers["k"]
    assert (value.dtype, value.shape) == (dtype, shape)


def test_small_constants_become_nodes_of_numbers() -> None:
    model = parse_model(
        """
        ir 8
        opset 18

        graph g(%x: float32[2]) -> (%y: float32[2], %z: float32[1,2]) {
          init %k: float32[2] = [-0.0, 2.5]
          init %a: float32[] = [1.5]
          init %s: int64[2] = [1, 2]
          init %n: float32[1] = [nan]
          init %m: float32[1, 1] = [1.0]
          %b = Add(%x, %a)
          %c = Mul(%b, %n)
          %d = Mul(%c, %m)
          %z = Reshape(%d, %s)
          %y = Mul(%b, %k)
        }
        """
    )
    changed = [applied(Constness(seed, 1.0, overridable=False), model) for seed in range(12)]
    found = {
        (node.outputs[0], kind, attribute.value)
        for one in changed
        for node in one.graph.nodes
        if node.op == "Constant"
        for kind, attribute in node.attributes.items()
        if kind != "value"
    }
    assert found == {("k", "value_floats", (-0.0, 2.5)), ("a", "value_float", 1.5), ("s", "value_ints", (1, 2))}
    older = replace(model, opsets={"": 11})
    nodes = [node for seed in range(12) for node in applied(Constness(seed, 1.0, overridable=False), older).graph.nodes]
    assert {name for node in nodes if node.op == "Constant" for name in node.attributes} == {"value"}


def test_fed_constants_come_last_and_sizes_stay() -> None:
    model, more = Opened(share=1.0).apply_with_feeds(SIZES)
    check(model)
    assert [info.name for info in model.graph.inputs] == ["x", "w", "v"]
    assert [name for name, _ in more] == ["w", "v"]
    assert more[0][1].same(SIZES.graph.initializers["w"])
    assert model.graph.inputs[1].type == TensorType("float32", (2, 3))
    every, values = Opened(share=1.0, structural=True).apply_with_feeds(SIZES)
    assert {name for name, _ in values} == {"shape", "w", "v", "one"}
    assert "Constant" not in main_ops(every)
    with pytest.raises(RejectedDraft):
        Opened().apply_with_feeds(BODIES)


def test_closed_inputs_hold_what_is_fed() -> None:
    values = (tensor(np.array([1, -2], np.float32)), tensor(np.array(True)))
    model = Closed(share=1.0).apply_to_feed(BODIES, values)
    check(model)
    assert not model.graph.inputs
    assert model.graph.initializers["x"].same(values[0])
    one = Closed(only="c").apply_to_feed(BODIES, values)
    assert [info.name for info in one.graph.inputs] == ["x"]
    with pytest.raises(ModelError, match="2 inputs, not 1"):
        Closed().apply_to_feed(BODIES, values[:1])
    with pytest.raises(ModelError, match="fed bool"):
        Closed(share=1.0).apply_to_feed(BODIES, (values[1], values[1]))


def test_readers_are_divided_between_a_node_and_its_copy() -> None:
    square = parse_model("ir 8 opset 18 graph g(%x: float32[2]) -> (%y: float32[2]) { %a = Exp(%x) %y = Mul(%a, %a) }")
    changed = applied(Duplicate(), square)
    assert main_ops(changed) == ["Exp", "Exp", "Mul"]
    assert len(set(changed.graph.nodes[-1].inputs)) == 2
    single = parse_model("ir 8 opset 18 graph g(%x: float32[2]) -> (%y: float32[2]) { %a = Exp(%x) %y = Neg(%a) }")
    with pytest.raises(RejectedDraft):
        Duplicate().apply(single)
    out = parse_model(
        "ir 8 opset 18 graph g(%x: float32[2]) -> (%a: float32[2], %y: float32[2]) { %a = Exp(%x) %y = Neg(%a) }"
    )
    assert applied(Duplicate(), out).graph.nodes[-1].inputs == ("a_twin",)


def test_a_value_that_bodies_capture_is_copied_for_them() -> None:
    forms = [applied(Duplicate(seed, only="a"), BODIES) for seed in range(10)]
    captured = [prune(model).graph.nodes for model in forms]
    assert all(sum(node.op == "Neg" for node in nodes) == 2 for nodes in captured)
    assert any(model.graph.nodes[2].attributes["else_branch"].value.nodes[0].inputs == ("a_twin",) for model in forms)


def test_merging_undoes_duplication() -> None:
    model = parse_model(PAIR.format(x="", y="", more=""))
    twice = applied(Duplicate(share=1.0), model)
    assert len(twice.graph.nodes) > len(model.graph.nodes)
    assert fingerprint(applied(Merge(share=1.0), twice)) == fingerprint(model)
    merged = applied(Merge(share=1.0), SIZES)
    assert sorted(merged.graph.initializers) == ["shape", "w"]
    assert Merge().places(SIZES) == ("v",) or "c" in Merge().places(SIZES)


def test_what_makes_an_output_is_not_merged_away() -> None:
    model = parse_model(
        """ir 8 opset 18 graph g(%x: float32[2]) -> (%y: float32[2], %z: float32[2]) {
        %y = Exp(%x) %z = Exp(%x) }"""
    )
    with pytest.raises(RejectedDraft):
        Merge(share=1.0).apply(model)


def test_orders_are_topological_and_others() -> None:
    both = parse_model(PAIR.format(x=", %q: float32[4]", y=", %r: float32[4]", more=APART))
    seen = set()
    for seed in range(30):
        with suppress(RejectedDraft):  # some draws come to the order that there was
            seen.add(tuple(node.outputs[0] for node in applied(NodeOrder(seed, 1.0), both).graph.nodes))
    assert len(seen) > 8
    chain = parse_model("ir 8 opset 18 graph g(%x: float32[2]) -> (%y: float32[2]) { %a = Exp(%x) %y = Neg(%a) }")
    with pytest.raises(RejectedDraft):
        NodeOrder(share=1.0).apply(chain)
    names = {tuple(applied(NodeOrder(seed), SIZES).graph.initializers) for seed in range(20)}
    assert len(names) > 1


def test_names_are_other_ones_and_the_signature_stays() -> None:
    changed = applied(Rename(share=1.0), BODIES)
    assert not {"a", "b", "t1", "t2", "k", "e1"} & {
        name for scope in scopes(changed) for node in scope.nodes for name in (*node.outputs, *node.inputs)
    }
    assert fingerprint(changed) == fingerprint(BODIES)
    strict = applied(Rename(share=1.0, style="identifier"), BODIES)
    assert all(
        name.isidentifier() and name.isascii()
        for scope in scopes(strict)
        for node in scope.nodes
        for name in node.outputs
    )
    with pytest.raises(SpecError):
        Rename(style="short")  # type: ignore[arg-type]


def test_nodes_lose_and_get_names() -> None:
    named = parse_model(
        """ir 8 opset 18 graph g(%x: float32[2]) -> (%y: float32[2]) {
        %a = Exp(%x) @first %b = Neg(%a) %c = Neg(%b) %d = Neg(%c) %y = Abs(%d) @last }"""
    )
    models = [applied(Rename(seed, 1.0), named) for seed in range(10)]
    assert any(not model.graph.nodes[0].name for model in models)
    assert any(model.graph.nodes[1].name for model in models)
    assert all(model.graph.nodes[-1].name == "last" for model in models)


def test_identities_come_and_go() -> None:
    model = parse_model(PAIR.format(x="", y="", more=""))
    more = applied(Identity(share=1.0), model)
    assert main_ops(more).count("Identity") > 4
    assert more.graph.nodes[-1].op == "Identity"
    assert fingerprint(applied(NoIdentity(share=1.0), more)) == fingerprint(model)
    with pytest.raises(RejectedDraft):
        NoIdentity().apply(model)


def test_an_identity_between_input_and_output_stays() -> None:
    model = parse_model(
        """ir 8 opset 18 graph g(%x: float32[2]) -> (%y: float32[2], %z: float32[2]) {
        %y = Identity(%x) %a = Exp(%x) %b = Identity(%a) %z = Identity(%b) }"""
    )
    bare = applied(NoIdentity(share=1.0), model)
    assert main_ops(bare) == ["Identity", "Exp"]
    assert bare.graph.nodes[1].outputs == ("z",)


def test_identities_leave_constants_alone_unless_asked() -> None:
    assert "w" not in Identity().places(SIZES)
    assert "w" in Identity(constants=True).places(SIZES)
    assert "shape" not in Identity(constants=True).places(SIZES)
    assert "shape" in Identity(constants=True, structural=True).places(SIZES)


def test_calls_are_inlined_one_by_one() -> None:
    model = parse_model(
        """ir 9 opset 18 opset l 1 graph g(%x: float32[2]) -> (%y: float32[2]) { %a = l::f(%x) %y = l::f(%a) }
        function l::f(%p) -> (%q) { opset 18 opset l 1 %t = l::g(%p) %q = Neg(%t) }
        function l::g(%p) -> (%q) { opset 18 %q = Abs(%p) }"""
    )
    form = Inline()
    assert form.places(model) == ("a", "y")
    one = applied(Inline(only="a"), model)
    assert main_ops(one) == ["Abs", "Neg", "f"]
    assert [function.name for function in one.functions] == ["f", "g"]
    assert not applied(Inline(share=1.0), model).functions


def test_taps_stand_at_the_end() -> None:
    changed = applied(Taps(share=1.0), SIZES)
    assert [info.name for info in changed.graph.outputs] == ["y", "z", "one", "target", "a", "b", "c"]
    assert changed.graph.outputs[4].type == TensorType("float32", (2, 3))


def test_dead_parts_come_and_go() -> None:
    model = parse_model(
        """ir 8 opset 18 graph g(%x: float32[1,1,4]) -> (%y: float32[1,1,3]) {
        init %k: float32[] = [1.0] %a = Add(%x, %k) %y = MaxPool(%a) {kernel_shape=[2]} }"""
    )
    models = [applied(Dead(seed, 1.0), model) for seed in range(12)]
    assert all(fingerprint(prune(changed)) != fingerprint(changed) for changed in models)
    assert any(len(changed.graph.nodes[-1].outputs) == 2 for changed in models)
    assert any(len(changed.graph.initializers) == 2 for changed in models)
    asked = parse_model(
        """ir 8 opset 18 graph g(%x: float32[1,1,4]) -> (%y: float32[1,1,3]) {
        %y, %i = MaxPool(%x) {kernel_shape=[2]} }"""
    )
    assert any(applied(Dead(seed, 1.0), asked).graph.nodes[0].outputs == ("y",) for seed in range(12))


@pytest.mark.parametrize("how", HOWS)
def test_a_node_moves_into_a_body(how: WrapKind) -> None:
    model = parse_model(PAIR.format(x="", y="", more=""))
    form = Wrap(share=1.0, how=how, depth=1)
    changed = applied(form, model)
    wanted = {"if": "If", "loop": "Loop", "scan": "Scan"}[how.removesuffix("_computed")]
    assert wanted in main_ops(changed)
    computed = {"Size", "Less", "Not"} <= set(main_ops(changed))
    assert computed == how.endswith("computed")
    assert not {"Relu", "Sigmoid", "Sub"} & set(main_ops(changed))


def test_bodies_capture_constants_and_are_not_handed_them() -> None:
    for seed in range(12):
        for block in applied(Wrap(seed, 1.0, depth=1), SIZES).graph.nodes:
            if block.op in ("Scan", "Loop"):
                assert {"w", "v", "shape", "w_rows", "v_rows"}.isdisjoint(block.inputs)


def test_wrapping_keeps_to_its_depth() -> None:
    model = parse_model(PAIR.format(x="", y="", more=""))
    for depth in (1, 2, 3):
        found = [applied(Wrap(seed, 1.0, depth=depth), BODIES) for seed in range(8)]
        found += [applied(Wrap(seed, 1.0, depth=depth), model) for seed in range(8)]
        depths = [max(map(depth_of, changed.graph.nodes)) for changed in found]
        assert max(depths) == depth
    with pytest.raises(SpecError):
        Wrap(depth=0)
    with pytest.raises(SpecError):
        Wrap(how="while")  # type: ignore[arg-type]


def test_sizes_stay_outside_of_bodies() -> None:
    for seed in range(8):
        blocks = [node for node in applied(Wrap(seed, 1.0, depth=1), SIZES).graph.nodes if any(node.subgraphs())]
        assert blocks
        assert not any("target" in node.outputs for node in blocks)
    assert "target" not in Wrap().places(SIZES)
    assert "target" in Wrap(structural=True).places(SIZES)


def test_scopes_are_found_with_their_paths() -> None:
    assert [scope.path for scope in scopes(BODIES)] == ["b/then_branch", "b/else_branch", ""]
    types = types_by_scope(BODIES)
    assert types["b/then_branch"]["t1"] == TensorType("float32", (2,))
    assert rewrite(BODIES, lambda scope: scope) is BODIES


def test_sizes_that_inference_invents_are_not_written_down() -> None:
    model = parse_model(
        """ir 8 opset 18 graph g(%x: float32[N,2], %i: int64[1]) -> (%y: float32[?,?], %z: float32[?,?]) {
        %a = NonZero(%x) %b = Expand(%x, %i) %c = Neg(%b) %d = NonZero(%c)
        %y = Cast(%a) {to=1} %z = Cast(%d) {to=1} }"""
    )
    changed = applied(Taps(share=1.0), model)
    sizes = {size for info in changed.graph.outputs for size in getattr(info.type, "shape", None) or ()}
    assert {size for size in sizes if isinstance(size, str)} <= {"N"}
    told = read(Storage(share=1.0, aspects=("info",)).apply_bytes(emit(model)))
    written = {size for kind in told.graph.types.values() for size in getattr(kind, "shape", None) or ()}
    assert written
    assert {size for size in written if isinstance(size, str)} <= {"N"}


def stored(model: Model, aspects: tuple[Aspect, ...], seed: int = 0) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(Storage(seed, share=1.0, aspects=aspects).apply_bytes(emit(model)))


def test_tensors_lie_in_typed_fields() -> None:
    proto = stored(SIZES, aspects=("tensors",))
    assert all(not tensor.HasField("raw_data") for tensor in proto.graph.initializer)
    assert list(proto.graph.initializer[0].int64_data) == [3, 2]
    back = Storage(share=1.0, aspects=("tensors",)).apply_bytes(proto.SerializeToString())
    assert read(back).graph.initializers["w"].same(SIZES.graph.initializers["w"])
    assert onnx.ModelProto.FromString(back).graph.initializer[0].HasField("raw_data")


@pytest.mark.parametrize("code", sorted({1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16, 17, 19}))
def test_every_type_survives_its_typed_field(code: int) -> None:
    size = {1: 4, 11: 8, 7: 8, 13: 8, 6: 4, 12: 4, 2: 1, 3: 1, 9: 1, 17: 1, 19: 1}.get(code, 2)
    raw = bytes(range(1, 1 + 6 * size)) if code != TensorProto.BOOL else bytes([0, 1, 1, 0, 1, 0])
    proto = TensorProto(name="k", data_type=code, dims=[6], raw_data=raw)
    typed = TensorProto.FromString(proto.SerializeToString())
    assert can_be_restored(typed)
    restored(typed)
    assert not typed.HasField("raw_data")
    assert numpy_helper.to_array(typed).tobytes() == numpy_helper.to_array(proto).tobytes()
    restored(typed)
    assert typed.raw_data == raw


def test_tensors_whose_bits_might_change_stay() -> None:
    odd = TensorProto(name="k", data_type=1, dims=[1], raw_data=np.array([np.nan], np.float32).tobytes())
    packed = TensorProto(name="k", data_type=TensorProto.INT4, dims=[2], raw_data=b"\x21")
    assert not can_be_restored(odd)
    assert not can_be_restored(packed)


def test_defaults_are_spelled_out_or_left_out() -> None:
    model = parse_model(
        """ir 8 opset 18 graph g(%x: float32[2,3]) -> (%y: float32[2,3], %z: float32[2,3]) {
        %y = Softmax(%x) %z = Softmax(%x) {axis=-1} }"""
    )
    found = [
        [len(node.attribute) for node in onnx.ModelProto.FromString(data).graph.node]
        for data in (Storage(seed, 1.0, aspects=("attributes",)).apply_bytes(emit(model)) for seed in range(20))
    ]
    assert {tuple(counts) for counts in found} >= {(0, 0), (1, 1)}


def test_operands_that_are_left_out_may_be_written() -> None:
    model = parse_model(
        """ir 8 opset 18 graph g(%x: float32[2]) -> (%y: float32[2], %z: float32[2]) {
        %y = Clip(%x) %z = Add(%x, %y) }"""
    )
    for seed in range(10):
        data = Storage(seed, 1.0, aspects=("operands",)).apply_bytes(emit(model))
        clip, add = onnx.ModelProto.FromString(data).graph.node
        assert clip.input[0] == "x"
        assert not any(clip.input[1:])
        assert list(add.input) == ["x", "y"]


def test_notes_types_and_versions() -> None:
    notes = [stored(SIZES, seed=seed, aspects=("notes",)) for seed in range(6)]
    assert any(node.doc_string for proto in notes for node in proto.graph.node)
    assert not any(node.metadata_props for proto in notes for node in proto.graph.node)
    newer = Model(SIZES.graph, SIZES.opsets, (), 10)
    assert any(node.metadata_props for node in stored(newer, aspects=("notes",)).graph.node)
    told = stored(SIZES, aspects=("info",))
    assert {info.name for info in told.graph.value_info} == {"one", "target", "a", "b", "c"}
    assert not onnx.ModelProto.FromString(
        Storage(share=1.0, aspects=("info",)).apply_bytes(told.SerializeToString())
    ).graph.value_info
    assert stored(SIZES, aspects=("ir",)).ir_version in (9, 10)
    with pytest.raises(RejectedDraft):
        Storage(aspects=("ir",)).apply_bytes(emit(newer))
    with pytest.raises(SpecError):
        Storage(aspects=())
    with pytest.raises(ModelError):
        Storage().apply_bytes(b"\xff\xff")


def test_a_node_that_no_schema_knows_is_left_alone() -> None:
    graph = Graph("g", BODIES.graph.inputs[:1], BODIES.graph.outputs, (Node("Odd", ("x",), ("y",), {}, "custom"),))
    places = Storage().places_of_bytes(emit(Model(graph, {"": 18, "custom": 1})))
    assert not any(place.startswith(("attributes", "operands", "info")) for place in places)


def test_an_operand_that_onnx_counts_is_not_written_empty() -> None:
    """Onnx takes a written, empty operand of SplitToSequence for one that is there, and then keeps the axis."""
    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[3,4] x) => (float[3,4] y) {
        s = SplitToSequence<axis = 0, keepdims = 0>(x)  y = ConcatFromSequence<axis = 0, new_axis = 1>(s) }"""
    payload = onnx.parser.parse_model(text).SerializeToString()
    for seed in range(10):
        check(Storage(seed, 1.0, aspects=("operands",)).apply_bytes(payload))
