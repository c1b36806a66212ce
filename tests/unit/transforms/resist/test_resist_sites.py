"""Which edges are held: names, choices that do not depend on each other, and what is left alone."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from resist_models import BODIES, BRANCHES, made, operators, twin

from miscompile.base.errors import RejectedDraft, SpecError
from miscompile.base.specs import parse_options, parse_spec, print_spec
from miscompile.graph.check import check
from miscompile.graph.model import Model, TensorType
from miscompile.graph.prune import prune
from miscompile.transforms.kinds import Sited
from miscompile.transforms.resist.attribution import attribute
from miscompile.transforms.resist.config import embedded
from miscompile.transforms.resist.edges import edges, quoted, surroundings
from miscompile.transforms.resist.strategies import STRATEGIES
from miscompile.transforms.resist.transform import Resistant, sites

some_classes = st.lists(st.sampled_from(embedded().classes), unique=True).map("+".join)
forms = st.builds(
    Resistant,
    seed=st.integers(0, 10**6),
    classes=some_classes,
    strategies=st.sampled_from(("", "gather", "if+gather", "cast+identity")),
    share=st.sampled_from((0.25, 0.5, 1.0)),
    only=st.sampled_from(("", "a>b", "y>+q>z@1")),
)


def test_edges_have_names() -> None:
    assert [edge.name for edge in edges(surroundings(made(BRANCHES)))] == [
        "x>a", "a>b", "b>y", "c>y", "w>p", "p>q", "q>z", "q>z@1", "y>", "z>",
    ]  # fmt: skip


def test_signs_of_specs_are_quoted() -> None:
    assert quoted("/layer/Add_output_0:0") == "/layer/Add_output_0:0"
    assert quoted("a+b,c={d}@e>f%g") == "a%2Bb%2Cc%3D%7Bd%7D%40e%3Ef%25g"
    model = made('ir 8 opset 17 graph g(%x: float32[2]) -> (%y: float32[2]) { %"a+b" = Neg(%x) %y = Exp(%"a+b") }')
    (site,) = sites(model, Resistant(classes="fusion"))
    assert site.edge == "a%2Bb>y"
    spec = print_spec("resist", Resistant(classes="fusion", only=site.edge))
    assert sites(model, parse_options(Resistant, dict(parse_spec(spec).options), spec)) == (site,)


def test_a_constant_condition_becomes_one_that_only_a_run_knows() -> None:
    model = made(
        """ir 8 opset 17 graph g(%x: float32[2]) -> (%y: float32[2]) {
        init %c: bool[] = [true]
        %y = If(%c) { then_branch=graph t() -> (%a) { %a = Neg(%x) },
        else_branch=graph e() -> (%b) { %b = Abs(%x) } } }"""
    )
    form = Resistant(classes="control", strategies="if")
    assert [site.edge for site in sites(model, form)] == ["c>y"]
    other = form.apply(model)
    assert other.graph.nodes[-1].inputs == ("c_held_if",)
    check(other)


def test_a_value_that_nothing_reads_is_kept_alive() -> None:
    model = made("ir 8 opset 17 graph g(%x: float32[2]) -> (%y: float32[2]) { %d = Neg(%x) %y = Exp(%x) }")
    (site,) = sites(model, Resistant(classes="dead-code"))
    assert (site.edge, site.strategy) == ("d>!", "tap")
    other = Resistant(classes="dead-code").apply(model)
    assert [info.name for info in other.graph.outputs] == ["y", "d"]
    assert other.graph.outputs[1].type == TensorType("float32", (2,))
    check(other)


def test_taps_stand_after_the_outputs_and_once_each() -> None:
    model = made(BRANCHES)
    other = Resistant(strategies="tap").apply(model)
    names = [info.name for info in other.graph.outputs]
    assert names[:2] == ["y", "z"]
    assert sorted(names[2:]) == ["a", "b", "p", "q"]
    assert other.graph.nodes == model.graph.nodes
    check(other)


def test_calls_that_change_nothing_are_replaced() -> None:
    model = made(
        """ir 8 opset 17 graph g(%x: float32[2], %i: int32[2]) -> (%y: float32[2], %z: float32[2], %m: bool[2],
        %v: float32[2], %w: int32[2]) {
        init %r: float32[] = [0.5] init %t: bool[] = [true]
        %a = Identity(%x) %b = Dropout(%a, %r) %c = Cast(%b) {to=1} %y = Exp(%c)
        %z, %m = Dropout(%x) %v = Dropout(%x, %r, %t) %w = Cast(%x) {to=6} }"""
    )
    form = Resistant(classes="identity", strategies="gather")
    assert [site.edge for site in sites(model, form) if site.rule == "no-op"] == ["x>a", "a>b", "b>c"]
    other = form.apply(model)
    left = operators(other.graph.nodes)
    assert left["Identity"] == 0
    assert (left["Dropout"], operators(model.graph.nodes)["Dropout"]) == (2, 3)
    check(other)


def test_only_one_of_two_equal_operands_is_held() -> None:
    model = made(BRANCHES)
    other = Resistant(classes="algebraic", only="q>z@1").apply(model)
    (last,) = [node for node in other.graph.nodes if node.outputs == ("z",)]
    assert last.inputs[0] == "q"
    assert last.inputs[1] != "q"


def test_of_equal_calls_the_later_one_is_held() -> None:
    model = made("ir 8 opset 17 graph g(%x: float32[2]) -> (%y: float32[2], %z: float32[2]) "
                 "{ %y = Neg(%x) %z = Neg(%x) }")  # fmt: skip
    assert [site.edge for site in sites(model, Resistant(classes="cse"))] == ["x>z"]


def test_operands_that_decide_on_shapes_are_left_alone() -> None:
    model = made(
        """ir 8 opset 17 graph g(%x: float32[2,3], %k: int64[1]) -> (%y: float32[6], %z: int64[1]) {
        init %a: int64[1] = [2] init %b: int64[1] = [3]
        %s = Mul(%a, %b) %f = Cast(%s) {to=1} %y = Reshape(%x, %s) %z = Mul(%k, %b) }"""
    )
    held = {site.edge for site in sites(model, Resistant(strategies="gather"))}
    assert not held & {"a>s", "b>s", "s>y"}
    assert held >= {"s>f", "b>z"}


@given(st.integers(0, 10**6), st.sampled_from((0.3, 0.7, 1.0)))
def test_unrelated_nodes_change_nothing(seed: int, share: float) -> None:
    """The other branch goes away, and with it half of the edges: what is left is held as before."""
    model = made(BRANCHES)
    graph = replace(model.graph, outputs=model.graph.outputs[:1])
    less = prune(replace(model, graph=graph))
    form = Resistant(seed, share=share)
    whole = {site.edge: site for site in sites(model, form)}
    assert all(whole[site.edge] == site for site in sites(less, form))
    assert {site.edge for site in sites(less, form)} == {name for name in whole if name[0] in "xabcy"}
    first, second = twin(model, form), twin(less, form)
    if first is not None and second is not None:
        made_by_both = {node.outputs for node in first.graph.nodes}
        assert {node.outputs for node in second.graph.nodes} <= made_by_both


@given(st.integers(0, 10**6))
def test_a_named_edge_is_held_as_it_was_among_others(seed: int) -> None:
    model = made(BODIES)
    form = Resistant(seed)
    for site in sites(model, form):
        assert sites(model, replace(form, only=site.edge)) == (site,)


def test_the_form_can_be_restricted_place_by_place() -> None:
    model, form = made(BODIES), Resistant(5)
    assert isinstance(form, Sited)
    places = form.places(model)
    assert places == tuple(site.edge for site in sites(model, form))
    for few in (places[:1], places[1:3], places[::2]):
        assert replace(form, only="+".join(few)).places(model) == few


def test_a_share_is_about_that_part_of_the_edges() -> None:
    model = made(BODIES)
    whole = len(sites(model, Resistant()))
    part = [len(sites(model, Resistant(seed, share=0.5))) for seed in range(200)]
    assert 0.4 * whole < sum(part) / 200 < 0.6 * whole


def test_preferred_strategies_come_more_often() -> None:
    model = made(BRANCHES)
    chosen = Counter(site.strategy for seed in range(200) for site in sites(model, Resistant(seed, only="z>")))
    assert chosen["gather"] > chosen["if"] > 0


def test_fusion_prefers_barriers_that_fuse_less_than_both_ends() -> None:
    model = made("ir 8 opset 17 graph g(%x: float32[2,2], %w: float32[2,2]) -> (%y: float32[2,2]) "
                 "{ %p = MatMul(%x, %w) %y = Relu(%p) }")  # fmt: skip
    chosen = {
        site.strategy for seed in range(40) for site in sites(model, Resistant(seed, only="p>y", classes="fusion"))
    }
    assert chosen == {"if", "loop"}
    assert {STRATEGIES[name].category for name in chosen} == {6}
    alone = {site.strategy for site in sites(model, Resistant(strategies="gather", only="p>y", classes="fusion"))}
    assert alone == {"gather"}


def test_attribution_names_the_class_and_the_edge() -> None:
    model = made(BRANCHES)
    told = attribute(model, Resistant(), lambda form: any(site.edge == "a>b" for site in sites(model, form)))
    assert (told.kind, [site.edge for site in told.sites]) == ("algebraic", ["a>b"])
    assert {"fusion", "algebraic"} <= set(told.healing)
    nothing = attribute(model, Resistant(), lambda form: False)
    assert (nothing.kind, nothing.sites, dict(nothing.healing)) == ("", (), {})


@given(forms)
def test_the_spec_prints_and_parses(form: Resistant) -> None:
    spec = parse_spec(print_spec("resist", form))
    assert spec.name == "resist"
    assert parse_options(Resistant, dict(spec.options), "resist") == form


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0.0}, "share is a part"),
        ({"share": 1.5}, "share is a part"),
        ({"classes": "fusion+speed"}, "no resistance class 'speed'; there are: fusion"),
        ({"strategies": "wall"}, "no resistance strategy 'wall'; there are: where"),
        ({"strategies": "gather+matmul"}, "needs exactness=rounding"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Resistant(**options)  # type: ignore[arg-type]


def test_a_model_without_edges_is_rejected() -> None:
    model: Model = made("ir 8 opset 17 graph g(%x: float32[2]) -> (%x: float32[2]) { }")
    with pytest.raises(RejectedDraft, match="no edge"):
        Resistant().apply(model)
