"""If, Loop and Scan in generated graphs: valid, of static types, with work in every body and every branch run."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.tensor import Tensor
from miscompile.graph.check import check
from miscompile.graph.edges import all_names, captured
from miscompile.graph.model import Graph, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.ops.analysis_bodies import ends_by_itself
from miscompile.ops.facts import Facts
from miscompile.ops.spec import Operand, OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style
from miscompile.producers.control.body import BodyScope
from miscompile.producers.control.forms import FEATURES, Blocks, blocks, form_key, questions
from miscompile.producers.control.planting import MOST_DEPTH, plant_block
from miscompile.producers.control.shaping import invariant_of, kept_inside, result_of
from miscompile.producers.control.work import still_exact
from miscompile.producers.finish import Finisher, leaves
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.scope import Scope
from miscompile.producers.strict import Strict

OPEN = Support(open=True)
SIMPLE = ("Add", "Mul", "Max", "Neg", "Identity", "Clip", "Cast", "Reshape", "Expand", "ReduceMax", "Less", "Greater",
          "Min", "Relu", "Gather", "Squeeze", "Floor", "Round", "Ceil", "Mod", "Sub")  # fmt: skip
OPTIONS = GeneratorOptions(
    control=0.6, nodes=4, spread=0.0, ops=(*SIMPLE, *FEATURES), dtypes=("float32", "int64", "int32", "bool"),
    opsets=(17, 21), quantised=0.0, containers=0.0, max_dim=4,
)  # fmt: skip


@cache
def cases(count: int = 48) -> tuple[Case, ...]:
    producer = Strict(OPTIONS, OPEN)
    return tuple(producer.propose(stream(3, "control", index)) for index in range(count))


def bodies(graph: Graph, depth: int = 1) -> Iterator[tuple[Node, Graph, int]]:
    for node in graph.nodes:
        for body in node.subgraphs():
            yield node, body, depth
            yield from bodies(body, depth + 1)


def scope(seed: int = 0, style: Style | None = None) -> Scope:
    return Scope(stream(seed, "blocks"), 18, OperatorLimits(max_dim=4), style or Style(), OPEN)


def fill(body: Scope, nodes: int) -> None:
    """Grow a chain on the newest float of the scope."""
    known = [x for x in body.operands.values() if x.dtype == "float32" and x.value is None]
    value = known[-1] if known else body.new_input("float32", (2,), Range(-1, 1, integral=False))
    for _ in range(nodes):
        value = body.call(body.rng.choice(("Relu", "Neg", "Sigmoid")), value)


def test_programs_with_blocks_pass_the_full_check() -> None:
    seen: Counter[tuple[str, int]] = Counter()
    for case in cases():
        model = read(case.program.payload)
        check(model)
        seen.update((node.op, depth) for node, _, depth in bodies(model.graph))
    assert all(seen[op, depth] > 2 for op in FEATURES for depth in range(1, MOST_DEPTH + 1)), seen
    assert max(depth for _, depth in seen) == MOST_DEPTH


def test_every_body_has_operators_and_some_capture() -> None:
    found = [body for case in cases() for _, body, _ in bodies(read(case.program.payload).graph)]
    assert all(any(node.op != "Constant" for node in body.nodes) for body in found)
    share = sum(bool(captured(body)) for body in found) / len(found)
    assert share > 0.3
    assert sum(bool(body.initializers) for body in found) > len(found) / 4


def test_a_loop_whose_body_may_end_it_has_a_first_condition() -> None:
    bare, ending = 0, 0
    for case in cases():
        graph = read(case.program.payload).graph
        values = {
            name: Operand(name, value.dtype, value.shape, Facts(0, 1), value.array)
            for one in (graph, *(body for _, body, _ in bodies(graph)))
            for name, value in one.initializers.items()
        }
        for node in (node for node, _, _ in bodies(graph) if node.op == "Loop"):
            assert not ends_by_itself(node, values)
            bare += not node.inputs[1]
            ending += ends_by_itself(replace(node, inputs=(node.inputs[0], "", *node.inputs[2:])), values)
    assert bare > 3
    assert ending > 3


def test_names_are_unique_over_all_bodies() -> None:
    for case in cases():
        graph = read(case.program.payload).graph
        made = [name for node in graph.nodes for name in node.outputs if name]
        own = [*made, *graph.initializers, *(info.name for info in graph.inputs)]
        for _, body, _ in bodies(graph):
            own += [name for node in body.nodes for name in node.outputs if name]
            own += [*body.initializers, *(info.name for info in body.inputs)]
        assert len(own) == len(set(own))
        assert set(own) == all_names(graph)


def test_conditions_that_are_inputs_are_true_on_one_feed_and_false_on_another() -> None:
    seen = 0
    for case in cases():
        model = read(case.program.payload)
        fed = [port.name for port in case.program.inputs]
        for node in model.graph.nodes:
            if node.op == "If" and node.inputs[0] in fed and node.inputs[0].startswith("s"):
                place = fed.index(node.inputs[0])
                assert {bool(feed[place].array.all()) for feed in case.feeds} == {True, False}
                seen += 1
    assert seen > 5


def test_the_same_seed_gives_the_same_programs() -> None:
    again = Strict(OPTIONS, OPEN)
    for index, case in enumerate(cases()[:9]):
        assert again.propose(stream(3, "control", index)).program == case.program


def runs_in_the_reference(case: Case) -> bool:
    """Loops that give every turn's results, and Scans along other axes, are not what the reference computes."""
    for node, body, _ in bodies(read(case.program.payload).graph):
        if node.op == "Loop" and (len(body.outputs) > len(node.inputs) - 1 or not node.inputs[1] or not node.inputs[0]):
            return False
        if node.op == "Scan" and any(name.startswith("scan_") for name in node.attributes):
            return False
    return True


def test_results_have_the_types_and_lie_in_the_bounds_that_are_claimed() -> None:
    producer, compared = Strict(OPTIONS, OPEN), 0
    for index in range(180):
        known, outputs, _ = producer.grow(stream(4, "bounds", index))
        case = Finisher(known).case(outputs, 1, {})
        if not runs_in_the_reference(case):
            continue
        session = ReferenceEvaluator(case.program.payload)
        names = [port.name for port in case.program.inputs]
        for feed in case.feeds:
            with np.errstate(over="ignore", invalid="ignore"):  # its Sigmoid computes both branches
                found = session.run(None, {name: value.array for name, value in zip(names, feed, strict=True)})
            for port, result in zip(case.program.outputs, found, strict=True):
                facts = known.operands[port.name].facts
                numbers = np.asarray(result)
                assert (numbers.dtype.name.replace("_", ""), numbers.shape) == (port.dtype, port.shape)
                if numbers.size and numbers.dtype.kind != "b":
                    slack = 1e-5 * (1 + facts.magnitude)
                    assert facts.lo - slack <= numbers.min() <= numbers.max() <= facts.hi + slack
                    assert not facts.integral or (numbers == np.floor(numbers)).all()
                compared += 1
    assert compared > 25


@pytest.mark.parametrize("op", FEATURES)
def test_what_comes_to_nothing_leaves_the_scope_as_it_was(op: str) -> None:
    def refuse(body: Scope, nodes: int) -> None:
        body.new_input("float32", (2,), Range(0, 1, integral=False))
        body.new_constant(Tensor("int64", np.array(nodes, np.int64)))
        raise RejectedDraft("nothing")

    known = scope()
    x = known.new_input("float32", (2, 3), Range(-1, 1, integral=False))
    known.call("Relu", x)
    before = held(known)
    everything = blocks(OPEN, 18)
    only = Blocks(frozenset(pair for pair in everything.taken if pair[0] == op), everything.dtypes)
    assert only.operators() == (op,)
    assert plant_block(known, only, refuse) is None
    assert held(known) == before


def held(known: Scope) -> list[object]:
    tables = (known.operands, known.nodes, known.initializers, known.inputs, known.cycled, known.pinned)
    return [*map(list, tables), dict(known.uses)]


def test_uses_count_what_bodies_capture_and_a_rollback_takes_them_back() -> None:
    known = scope(2)
    x = known.new_input("float32", (2, 3), Range(-1, 1, integral=False))
    y = known.call("Relu", x)
    uses, mark = dict(known.uses), known.mark()
    planted = 0
    for _ in range(12):
        planted += plant_block(known, blocks(OPEN, 18), fill) is not None
    assert planted > 6
    used = Counter(
        name for node in known.nodes for name in (*node.inputs, *(n for b in node.subgraphs() for n in captured(b)))
    )
    assert {name: count for name, count in known.uses.items() if count} == {n: c for n, c in used.items() if n}
    assert y.name in leaves(known) or known.uses[y.name] > 0
    known.rollback(mark)
    assert known.uses == uses


def test_a_target_that_takes_no_captures_gets_bodies_without_any() -> None:
    taken = frozenset(
        (op, feature) for op, features in FEATURES.items() for feature in features if feature != "captured"
    )
    own = Blocks(taken, dict.fromkeys(FEATURES, ("float32",)))
    known = scope(5)
    for _ in range(30):
        plant_block(known, own, fill)
    found = [body for node in known.nodes for body in node.subgraphs()]
    assert len(found) > 10
    assert not any(captured(body) for body in found)
    bare = Blocks(frozenset((op, "captured") for op in FEATURES), dict.fromkeys(FEATURES, ("float32",)))
    known = scope(6)
    for _ in range(30):
        plant_block(known, bare, fill)
    graphs = [body for node in known.nodes for body in node.subgraphs()]
    assert len(graphs) > 10
    assert not any(body.initializers for body in graphs)
    assert not any(inner for body in graphs for node in body.nodes for inner in node.subgraphs())


def test_forms_are_keys_of_the_support_table() -> None:
    asked = list(questions((17, 21)))
    assert len({question.key for question in asked}) == len(asked)
    for question in asked:
        check(question.case.program.payload)
    taken = {form_key("If", "own", 21), form_key("Loop", "own", 21), form_key("Loop", "moved", 21, "int64")}
    known = blocks(Support(taken), 21)
    assert known.operators() == ("If", "Loop")
    assert known.operators("If") == ()
    assert known.dtypes == {"If": ("float32",), "Loop": ("float32", "int64"), "Scan": ()}
    assert not blocks(Support(taken), 17).operators()
    assert Support(taken).pairs == {("If", "bool"), ("Loop", "int64")}


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "int64"])
@pytest.mark.parametrize("integral", [True, False])
def test_a_carried_value_is_brought_back_into_its_interval(dtype: str, integral: bool) -> None:
    style = Style(integral=integral)
    for seed in range(10):
        known = scope(seed, style)
        start = known.new_input(dtype, (3,), Range(1, 3, integral=integral or dtype[0] in "iu"))
        body = BodyScope(known, "Loop")
        state = body.parameter(dtype, (3,), invariant_of(start, style))
        assert state.facts.inside(start.facts.lo - 8, start.facts.hi + 8)
        assert start.facts.inside(state.facts.lo, state.facts.hi)
        grown = body.call("Mul", state, body.call("Add", state, state))
        kept = kept_inside(body, grown, state.facts)
        assert kept.facts.inside(state.facts.lo, state.facts.hi)
        assert kept.facts.integral or not state.facts.integral


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_a_result_of_any_type_is_made_of_what_a_body_computes(dtype: str) -> None:
    for shape in ((), (2, 3), (6,), (3, 1, 2), (4, 4)):
        known = scope(1)
        x = known.new_input("float32", (2, 3), Range(-2, 2, integral=False))
        body = BodyScope(known, "If")
        body.call("Relu", x)
        result = result_of(body, dtype, shape)
        assert (result.dtype, result.shape) == (dtype, shape)
        assert result.name in body.made()
        graph = body.close([result])
        assert any(node.op == "Relu" for node in graph.nodes), "the work of the body is in the result"


def test_what_depends_on_a_value_that_loses_exactness_loses_it_too() -> None:
    sure, unsure = Facts(0, 1, integral=True, exact=True), Facts(0, 1)
    nodes = (Node("Exp", ("a",), ("a2",)), Node("Add", ("a", "b"), ("b2",)), Node("Neg", ("c",), ("c2",)))
    kind = TensorType("float32", ())
    names = ("a2", "b2", "c2")
    body = Graph("b", (), tuple(ValueInfo(name, kind) for name in names), nodes)
    ends = {name: Operand(name, "float32", (), unsure if name == "a2" else sure) for name in names}
    found = still_exact(body, [("a", ends["a2"]), ("b", ends["b2"]), ("c", ends["c2"])], [])
    assert found == {"a2": False, "b2": False, "c2": True}
