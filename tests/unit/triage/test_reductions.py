"""Each reduction alone: what it proposes, and that one of its proposals is the one that a person would make."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from virtual_compiler import VirtualCompiler, exactly

from miscompile.base.errors import ModelError
from miscompile.core.case import Feed, Program
from miscompile.core.outcome import Crashed, Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.check import check
from miscompile.graph.model import Attribute, Function, Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.rename import rename
from miscompile.graph.text.printer import print_model
from miscompile.triage.reduce.attributes import FewerAttributes, PlainerAttributes
from miscompile.triage.reduce.capture import Captured, ReferenceCapture
from miscompile.triage.reduce.catalogue import standard
from miscompile.triage.reduce.cost import cost_of, oddity
from miscompile.triage.reduce.cuts import BackCut, FrontCut
from miscompile.triage.reduce.defined import Guard
from miscompile.triage.reduce.draft import Draft, inexact, put_together, take_apart, tidy
from miscompile.triage.reduce.dtypes import PlainerTypes
from miscompile.triage.reduce.inlining import InlineFunctions, OneBranch
from miscompile.triage.reduce.inputs import ConstantNodes, Frozen, OneFeed, SharedConstants, thawed
from miscompile.triage.reduce.names import ShortNames
from miscompile.triage.reduce.nodes import Bypass, BypassInBodies, SameOperand, Shortcut
from miscompile.triage.reduce.outputs import FewerOutputs
from miscompile.triage.reduce.reduction import Reduction
from miscompile.triage.reduce.shapes import FlatterLeaves, LowerRanks, SmallerSizes
from miscompile.triage.reduce.values import PlainerValues


def info(name: str, *shape: int | str, dtype: str = "float32") -> ValueInfo:
    return ValueInfo(name, TensorType(dtype, shape))


def floats(*shape: int, start: float = 0.3) -> Tensor:
    return tensor((np.arange(np.prod(shape, dtype=int)) * 0.7 + start).astype(np.float32).reshape(shape))


def ints(*values: int) -> Tensor:
    return tensor(np.array(values, np.int64))


def draft_of(
    inputs: tuple[ValueInfo, ...],
    outputs: tuple[ValueInfo, ...],
    nodes: tuple[Node, ...],
    constants: Mapping[str, Tensor],
    *feeds: Mapping[str, Tensor],
    functions: tuple[Function, ...] = (),
) -> Draft:
    opsets = {"": 18, **{function.domain: 1 for function in functions}}
    draft = Draft(Model(Graph("main", inputs, outputs, nodes, constants), opsets, functions), tuple(feeds))
    check(draft.model)
    return draft


def smaller(draft: Draft, *reductions: Reduction[Draft]) -> list[Draft]:
    """Return what the engine would run: the valid candidates that are smaller, tidied."""
    found = []
    for reduction in reductions:
        for candidate in reduction.edits(draft):
            try:
                small = tidy(candidate)
                check(small.model)
                put_together(small, inexact, {})
            except ModelError:
                continue
            if cost_of(small) < cost_of(tidy(draft)):
                found.append(small)
    return found


def operators(draft: Draft) -> str:
    return " ".join(node.op for node in draft.graph.nodes)


def chain() -> Draft:
    nodes = (
        Node("Relu", ("x",), ("a",)),
        Node("Neg", ("a",), ("b",)),
        Node("Add", ("b", "c"), ("d",)),
        Node("Abs", ("d",), ("e",)),
    )
    outputs = (info("b", 2, 3), info("e", 2, 3))
    return draft_of((info("x", 2, 3),), outputs, nodes, {"c": floats(2, 3)}, {"x": floats(2, 3)}, {"x": floats(2, 3)})


def capture() -> ReferenceCapture:
    return ReferenceCapture(VirtualCompiler([]), "toy", Build("off"))


def test_outputs() -> None:
    assert [operators(draft) for draft in smaller(chain(), FewerOutputs())] == ["Relu Neg Add Abs", "Relu Neg"]


def test_back_cut_begins_with_the_earliest_value() -> None:
    found = [operators(draft) for draft in smaller(chain(), BackCut())]
    assert found[:3] == ["Relu", "Relu Neg", "Relu Neg Add"]


def test_front_cut_feeds_what_flowed() -> None:
    one = smaller(chain(), FewerOutputs())[0]
    found = smaller(one, FrontCut(capture()))
    assert operators(found[0]) == "Abs"
    flowed = found[0].feeds[0]["d"].array
    assert np.array_equal(flowed, -np.maximum(floats(2, 3).array, 0) + floats(2, 3).array)
    assert len(found[0].feeds) == 2


def test_front_cut_proposes_nothing_without_captured_values() -> None:
    def blind(draft: Draft) -> Captured:
        return tuple(draft.feeds)

    assert list(FrontCut(blind).edits(chain())) == []


def test_capture_gives_the_part_in_front_of_a_crash() -> None:
    crash = VirtualCompiler([])
    known = ReferenceCapture(crash, "toy", Build("off"))(chain())
    assert set(known[0]) == {"x", "c", "a", "b", "d", "e"}

    class Picky(VirtualCompiler):
        """Dies of whatever has more than two outputs."""

        def run(self, runs: Sequence[Run]) -> list[Outcome]:
            alive = all(len(run.case.program.outputs) < 3 for run in runs)
            return super().run(runs) if alive else [Crashed("run", 11) for _ in runs]

    front = ReferenceCapture(Picky([]), "toy", Build("off"))(chain())
    assert set(front[0]) == {"x", "c", "a", "b"}


def test_what_kills_the_build_is_seen_by_the_reference_implementation() -> None:
    class Reference(VirtualCompiler):
        """Divides by zero without a word, as numpy does."""

        def run(self, runs: Sequence[Run]) -> list[Outcome]:
            assert {(run.target, run.build) for run in runs} == {("reference", Build("off"))}
            return [Values(((tensor(np.abs(divisor)), tensor(2 * np.abs(divisor)), tensor(divisor)),)) for _ in runs]

    nodes = (Node("Abs", ("c",), ("a",)), Node("Add", ("a", "a"), ("b",)), Node("Div", ("c", "b"), ("d",)))
    for divisor, sound in ((np.zeros(1, np.int64), False), (np.full(1, -3), True)):
        draft = draft_of((), (info("d", 1, dtype="int64"),), nodes, {"c": tensor(divisor)}, {})
        dying = VirtualCompiler([lambda model, build: Crashed("run", 8)])
        assert Guard(ReferenceCapture(dying, "toy", Build("off"), Reference([])))(draft) is sound
        assert Guard(ReferenceCapture(dying, "toy", Build("off")))(draft), "nobody has seen the values"


def test_bypass_takes_many_at_once() -> None:
    one = smaller(chain(), FewerOutputs())[0]
    found = [operators(draft) for draft in smaller(one, Bypass())]
    assert "Relu Neg" in found
    assert "Relu Neg Add" in found
    assert "Neg Add Abs" in found


def test_shortcut_lets_inference_decide() -> None:
    nodes = (Node("Transpose", ("x",), ("a",)), Node("MatMul", ("a", "x"), ("y",)))
    draft = draft_of((info("x", 2, 2),), (info("y", 2, 2),), nodes, {}, {"x": floats(2, 2)})
    assert "MatMul" in [operators(found) for found in smaller(draft, Shortcut())]


def test_bodies_get_smaller() -> None:
    inner = (Node("Neg", ("x",), ("p",)), Node("Abs", ("p",), ("q",)))
    then, other = (
        Graph("t", (), (info("q", 2),), inner),
        Graph("e", (), (info("r", 2),), (Node("Relu", ("x",), ("r",)),)),
    )
    node = Node(
        "If", ("yes",), ("y",), {"then_branch": Attribute("graph", then), "else_branch": Attribute("graph", other)}
    )
    draft = draft_of((info("x", 2),), (info("y", 2),), (node,), {"yes": tensor(np.array(True))}, {"x": floats(2)})
    bodies = [[item.op for body in found.graph.nodes[0].subgraphs() for item in body.nodes]
              for found in smaller(draft, BypassInBodies())]  # fmt: skip
    assert ["Neg", "Relu"] in bodies
    assert ["Abs", "Relu"] in bodies
    branches = [operators(found) for found in smaller(draft, OneBranch())]
    assert branches == ["Neg Abs", "Relu"]


def test_branches_keep_their_constants_and_outer_results() -> None:
    then = Graph("t", (), (info("q", 2),), (Node("Add", ("x", "k"), ("q",)),), {"k": floats(2)})
    other = Graph("e", (), (info("x", 2),), ())
    node = Node(
        "If", ("yes",), ("y",), {"then_branch": Attribute("graph", then), "else_branch": Attribute("graph", other)}
    )
    constants = {"yes": tensor(np.array(True))}
    draft = Draft(
        Model(Graph("m", (info("x", 2),), (info("y", 2),), (node,), constants), {"": 18}), ({"x": floats(2)},)
    )
    assert [operators(found) for found in smaller(draft, OneBranch())] == ["Add", "Identity"]


def test_functions_are_inlined() -> None:
    twice = Function("own", "Twice", ("a",), ("b",), (Node("Add", ("a", "a"), ("b",)),), {"": 18})
    nodes = (Node("Twice", ("x",), ("v",), domain="own"), Node("Twice", ("v",), ("y",), domain="own"))
    draft = draft_of((info("x", 2),), (info("y", 2),), nodes, {}, {"x": floats(2)}, functions=(twice,))
    (found,) = smaller(draft, InlineFunctions())
    assert operators(found) == "Add Add"
    assert found.model.functions == ()
    assert found.model.opsets == {"": 18}


def test_operands_are_shared_and_optional_ones_left_out() -> None:
    nodes = (Node("Clip", ("x", "lo", "hi"), ("a",)), Node("Add", ("a", "z"), ("y",)))
    constants = {"lo": tensor(np.array(0, np.float32)), "hi": tensor(np.array(1, np.float32))}
    draft = draft_of((info("x", 2), info("z", 2)), (info("y", 2),), nodes, constants, {"x": floats(2), "z": floats(2)})
    found = smaller(draft, SameOperand())
    assert any(draft.graph.nodes[0].inputs == ("x", "lo") for draft in found)
    assert any(draft.graph.nodes[-1].inputs == ("a", "x") for draft in found)


def test_inputs_feeds_and_constants_get_fewer() -> None:
    draft = chain()
    assert [len(found.feeds) for found in smaller(draft, OneFeed())] == [1, 1]
    (frozen,) = smaller(draft, Frozen())
    assert frozen.graph.inputs == ()
    nodes = (
        Node("Constant", (), ("k",), attributes({"value": floats(2)})),
        Node("Add", ("x", "k"), ("a",)),
        Node("Add", ("a", "c"), ("b",)),
        Node("Add", ("b", "d"), ("y",)),
    )
    constants = {"c": floats(2), "d": floats(2, start=9)}
    more = draft_of((info("x", 2),), (info("y", 2),), nodes, constants, {"x": floats(2)})
    (lifted,) = smaller(more, ConstantNodes())
    assert operators(lifted) == "Add Add Add"
    assert set(lifted.graph.initializers) == {"k", "c", "d"}
    assert [set(found.graph.initializers) for found in smaller(more, SharedConstants())] == [{"c"}]


def test_inputs_that_differ_over_the_feeds_are_not_frozen() -> None:
    nodes = (Node("Neg", ("x",), ("y",)),)
    draft = draft_of((info("x", 2),), (info("y", 2),), nodes, {}, {"x": floats(2)}, {"x": floats(2, start=5)})
    assert list(Frozen().edits(draft)) == []


def test_constants_become_inputs_but_not_targets() -> None:
    nodes = (Node("Add", ("x", "c"), ("a",)), Node("Reshape", ("a", "s"), ("y",)))
    constants = {"c": floats(2), "s": ints(2, 1)}
    draft = draft_of((info("x", 2),), (info("y", 2, 1),), nodes, constants, {"x": floats(2)})
    melted = thawed(draft)
    check(melted.model)
    assert [one.name for one in melted.graph.inputs] == ["x", "c"]
    assert set(melted.graph.initializers) == {"s"}
    assert melted.feeds[0]["c"].same(constants["c"])


def test_attributes_go_or_get_plainer() -> None:
    more = attributes({"alpha": 0.37, "beta": 2.0, "transB": 1})
    nodes = (Node("Gemm", ("x", "w", "c"), ("y",), more),)
    constants = {"w": floats(2, 2), "c": floats(2)}
    draft = draft_of((info("x", 2, 2),), (info("y", 2, 2),), nodes, constants, {"x": floats(2, 2)})
    fewer = [set(found.graph.nodes[0].attributes) for found in smaller(draft, FewerAttributes())]
    assert fewer[0] == set()
    assert {"alpha", "beta"} in fewer
    plain = [found.graph.nodes[0].attributes["alpha"].value for found in smaller(draft, PlainerAttributes())]
    assert {0.0, 1.0} <= set(plain)


def shapes(draft: Draft) -> list[tuple[int, ...]]:
    values = [*draft.feeds[0].values(), *draft.graph.initializers.values()]
    return [value.shape for value in values]


def test_sizes_that_belong_together_shrink_together() -> None:
    nodes = (Node("MatMul", ("x", "w"), ("m",)), Node("Add", ("m", "b"), ("a",)), Node("Reshape", ("a", "s"), ("y",)))
    constants = {"w": floats(6, 4), "b": floats(5, 4), "s": ints(4, 5)}
    draft = draft_of((info("x", 5, 6),), (info("y", 4, 5),), nodes, constants, {"x": floats(5, 6)})
    found = [shapes(candidate) for candidate in smaller(draft, SmallerSizes())]
    assert [(5, 1), (1, 4), (5, 4), (2,)] in found, "the inner size of the product"
    assert [(1, 6), (6, 4), (1, 4), (2,)] in found, "the rows, and the target of the reshape with them"
    data = [one[:3] for one in found if one[:3] != [(5, 6), (6, 4), (5, 4)]]  # the others have another target only
    assert all(np.prod(s[0]) < 30 or np.prod(s[1]) < 24 or np.prod(s[2]) < 20 for s in data)


def test_sizes_of_targets_alone_shrink() -> None:
    nodes = (Node("Expand", ("c", "s"), ("y",)),)
    draft = draft_of((), (info("y", 4, 2),), nodes, {"c": floats(), "s": ints(4, 2)}, {})
    found = [candidate.graph.initializers["s"].array.tolist() for candidate in smaller(draft, SmallerSizes())]
    assert [2] in found, "an axis less"
    assert [1, 2] in found, "a size that no leaf has"


def test_sizes_keep_a_ratio_and_approach_a_minimum() -> None:
    nodes = (Node("DequantizeLinear", ("x", "s"), ("y",), attributes({"axis": 0, "block_size": 16})),)
    blocks = tensor(np.zeros((32, 3), np.int8))
    model = Model(Graph("g", (), (info("y", 32, 3),), nodes, {"x": blocks, "s": floats(2, 3)}), {"": 21})
    found = [shapes(candidate) for candidate in smaller(Draft(model, ({},)), SmallerSizes())]
    assert [(16, 3), (1, 3)] in found, "as many blocks as scales"
    odd = {"x": tensor(np.zeros((65,), np.int8)), "s": floats(5)}
    model = Model(Graph("g", (), (info("y", 65),), nodes, odd), {"": 21})
    found = [shapes(candidate) for candidate in smaller(Draft(model, ({},)), SmallerSizes())]
    assert [(26,), (2,)] in found, "in about the same ratio"
    nodes = (Node("Relu", ("x",), ("y",)),)
    draft = draft_of((info("x", 40),), (info("y", 40),), nodes, {}, {"x": floats(40)})
    found = [shapes(candidate) for candidate in smaller(draft, SmallerSizes())]
    assert {(1,), (2,), (20,), (30,), (35,), (39,)} <= {one[0] for one in found}


def test_scales_become_one_and_never_zero() -> None:
    nodes = (Node("QuantizeLinear", ("x", "s", "z"), ("y",)),)
    constants = {"s": tensor(np.array(0.37, np.float32)), "z": tensor(np.array(7, np.uint8))}
    draft = draft_of((info("x", 2),), (info("y", 2, dtype="uint8"),), nodes, constants, {"x": floats(2)})
    found = [candidate.graph.initializers for candidate in smaller(draft, PlainerValues())]
    assert {float(one["s"].array) for one in found} >= {1.0}
    assert 0.0 not in {float(one["s"].array) for one in found}
    assert 0 in {int(one["z"].array) for one in found}


def test_axes_of_windows_go_with_their_settings() -> None:
    window = attributes({"kernel_shape": (1, 2), "dilations": (1, 2), "pads": (0, 1, 0, 1)})
    nodes = (Node("MaxPool", ("x",), ("y",), window),)
    draft = draft_of((info("x", 1, 1, 3, 4),), (info("y", 1, 1, 3, 4),), nodes, {}, {"x": floats(1, 1, 3, 4)})
    found = [
        (shapes(candidate)[0], {name: one.value for name, one in candidate.graph.nodes[0].attributes.items()})
        for candidate in smaller(draft, LowerRanks())
    ]
    assert ((1, 1, 4), {"kernel_shape": (2,), "dilations": (2,), "pads": (1, 1)}) in found


def test_inner_axes_go_and_leaves_are_flattened() -> None:
    nodes = (Node("Relu", ("x",), ("y",)),)
    draft = draft_of((info("x", 3, 1, 2),), (info("y", 3, 1, 2),), nodes, {}, {"x": floats(3, 1, 2)})
    found = [shapes(candidate)[0] for candidate in smaller(draft, LowerRanks())]
    assert (3, 2) in found
    flat = [shapes(candidate)[0] for candidate in smaller(draft, FlatterLeaves())]
    assert set(flat) == {(6,)}, "with all elements, for a bug that needs their number"


def test_sizes_that_are_equal_by_chance_shrink_apart() -> None:
    nodes = (Node("MatMul", ("x", "w"), ("y",)),)
    draft = draft_of((info("x", 4, 4),), (info("y", 4, 4),), nodes, {"w": floats(4, 4)}, {"x": floats(4, 4)})
    found = [shapes(candidate) for candidate in smaller(draft, SmallerSizes())]
    assert [(1, 1), (1, 1)] in found
    assert [(1, 4), (4, 4)] in found
    assert [(4, 1), (1, 4)] in found


def test_the_last_elements_can_be_the_ones_that_stay() -> None:
    nodes = (Node("Neg", ("x",), ("y",)),)
    draft = draft_of((info("x", 4),), (info("y", 4),), nodes, {}, {"x": tensor(np.arange(4, dtype=np.float32))})
    found = [candidate.feeds[0]["x"].array.tolist() for candidate in smaller(draft, SmallerSizes(), LowerRanks())]
    for elements in ([0.0, 1.0], [2.0, 3.0], [3.0], 0.0, 3.0):
        assert elements in found


def test_symbolic_sizes_stay() -> None:
    nodes = (Node("Neg", ("x",), ("y",)),)
    draft = draft_of((info("x", "n", 3),), (info("y", "n", 3),), nodes, {}, {"x": floats(5, 3)})
    found = smaller(draft, SmallerSizes())
    assert {candidate.graph.inputs[0].type for candidate in found} >= {TensorType("float32", ("n", 3))}
    assert (1, 3) in [candidate.feeds[0]["x"].shape for candidate in found]


def test_ranks_go_down_and_axes_follow() -> None:
    nodes = (
        Node("Concat", ("x", "c"), ("a",), attributes({"axis": 2})),
        Node("Transpose", ("a",), ("y",), attributes({"perm": (0, 2, 1)})),
    )
    draft = draft_of(
        (info("x", 2, 3, 4),), (info("y", 2, 8, 3),), nodes, {"c": floats(2, 3, 4)}, {"x": floats(2, 3, 4)}
    )
    found = smaller(draft, LowerRanks())
    low = next(candidate for candidate in found if shapes(candidate) == [(3, 4), (3, 4)])
    assert low.graph.nodes[0].attributes["axis"].value == 1
    assert low.graph.nodes[1].attributes["perm"].value == (1, 0)


def test_types_become_plainer_everywhere() -> None:
    nodes = (Node("Add", ("x", "c"), ("a",)), Node("Cast", ("a",), ("y",), attributes({"to": 11})))
    constants = {"c": tensor(floats(2).array, "float64")}
    feed = {"x": tensor(floats(2).array, "float64")}
    draft = draft_of((info("x", 2, dtype="float64"),), (info("y", 2, dtype="float64"),), nodes, constants, feed)
    (found,) = smaller(draft, PlainerTypes())
    assert found.graph.nodes[1].attributes["to"].value == 1
    assert {found.graph.initializers["c"].dtype, found.feeds[0]["x"].dtype} == {"float32"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint16", "bool"])
def test_every_type_has_a_plainer_one(dtype: str) -> None:
    nodes = (Node("Identity", ("x",), ("y",)),)
    value = tensor(np.array([1, 0, 1], np.float32), dtype)
    draft = draft_of((info("x", 3, dtype=dtype),), (info("y", 3, dtype=dtype),), nodes, {}, {"x": value})
    assert "float32" in {found.feeds[0]["x"].dtype for found in smaller(draft, PlainerTypes())}


def test_values_become_plainer_but_shapes_stay() -> None:
    nodes = (Node("Reshape", ("x", "s"), ("y",)),)
    draft = draft_of((info("x", 2, 3),), (info("y", 3, 2),), nodes, {"s": ints(3, 2)}, {"x": floats(2, 3)})
    found = smaller(draft, PlainerValues())
    assert not found[0].feeds[0]["x"].array.any()
    assert all(np.array_equal(candidate.graph.initializers["s"].array, [3, 2]) for candidate in found)
    assert [oddity(candidate.feeds[0]["x"]) for candidate in found][:4] == [0, 1, 2, 3]


ODD: list[tuple[Array, int]] = [
    (np.zeros(3), 0),
    (np.ones(3), 1),
    (np.full(3, 5.0), 2),
    (np.arange(3.0), 3),
    (np.array([0, 7.0, 0]), 4),
    (np.array([3.0, -2, 7]), 5),
    (np.array([300.0, 1, 2]), 6),
    (np.array([0.25, 1.5, 2]), 7),
    (np.array([0.1, -3.25, 2]), 8),
    (np.array([0.1, -3.25, 2], np.float32), 8),
    (np.array([0.125, 0.1, np.inf]), 9),
    (np.zeros((0, 3)), 0),
]


@pytest.mark.parametrize(("value", "rank"), ODD)
def test_the_oddity_of_values(value: Array, rank: int) -> None:
    assert oddity(tensor(value)) == rank


def test_names_become_short() -> None:
    long = {name: f"a_long_name_{name}" for name in ("x", "c", "a", "b", "d", "e")}
    draft = Draft(
        replace(chain().model, graph=rename(chain().graph, long)),
        tuple({long[name]: value for name, value in feed.items()} for feed in chain().feeds),
    )
    found = smaller(draft, ShortNames())[0]
    assert set(found.feeds[0]) == {"x0"}
    assert set(found.graph.initializers) == {"c0"}
    assert [node.outputs[0] for node in found.graph.nodes] == ["v0", "v1", "v2", "v3"]
    assert [output.name for output in found.graph.outputs] == ["v1", "v3"]


def test_tidying_drops_what_nobody_needs_and_types_outputs_anew() -> None:
    draft = chain().with_graph(outputs=(ValueInfo("a", None),))
    small = tidy(draft)
    assert operators(small) == "Relu"
    assert small.graph.initializers == {}
    assert small.graph.outputs == (info("a", 2, 3),)
    assert tidy(small).digest == small.digest


def test_trailing_results_that_nobody_reads_are_not_asked_for() -> None:
    nodes = (Node("MaxPool", ("x",), ("y", "where"), attributes({"kernel_shape": (2,)})),)
    draft = draft_of((info("x", 1, 1, 4),), (info("y", 1, 1, 3),), nodes, {}, {"x": floats(1, 1, 4)})
    assert tidy(draft).graph.nodes[0].outputs == ("y",)


def test_a_case_survives_being_taken_apart() -> None:
    case = put_together(chain(), exactly, {"seed": 3})
    again = put_together(take_apart(case), exactly, case.recipe)
    assert again.program == case.program
    for feed, old in zip(again.feeds, case.feeds, strict=True):
        assert all(value.same(other) for value, other in zip(feed, old, strict=True))


def test_an_output_is_exact_only_if_it_is_so_on_every_feed() -> None:
    def settled(model: Model, feed: Feed) -> Program:
        return exactly(model, feed) if feed[0].array[0, 0] < 1 else inexact(model, feed)

    draft = chain()
    assert all(port.exact for port in put_together(draft, settled, {}).program.outputs)
    other = Draft(draft.model, (draft.feeds[0], {"x": floats(2, 3, start=4)}))
    assert not any(port.exact for port in put_together(other, settled, {}).program.outputs)


UNDEFINED: list[tuple[str, dict[str, object], Tensor, Tensor]] = [
    ("Div", {}, ints(4), ints(0)),
    ("Div", {}, ints(-(2**63)), ints(-1)),
    ("Mod", {}, ints(4), ints(0)),
    ("BitShift", {"direction": "LEFT"}, tensor(np.array([1], np.uint8)), tensor(np.array([8], np.uint8))),
    ("Gather", {}, floats(3), ints(3)),
    ("Gather", {}, floats(3), ints(-4)),
    ("GatherElements", {}, floats(3), ints(5)),
    ("GatherND", {}, floats(3, 2), tensor(np.array([[2, 2]]))),
    ("GatherND", {"batch_dims": 1}, floats(2, 3), tensor(np.array([[0], [3]]))),
    ("NegativeLogLikelihoodLoss", {}, floats(1, 3), ints(3)),
    ("DFT", {}, floats(1, 3, 1), ints(0)),
    ("SoftmaxCrossEntropyLoss", {"ignore_index": 1}, floats(1, 3), ints(-1)),
]
DEFINED: list[tuple[str, dict[str, object], Tensor, Tensor]] = [
    ("Div", {}, ints(4), ints(-1)),
    ("Div", {}, floats(1), tensor(np.zeros(1, np.float32))),
    ("Mod", {}, ints(4), ints(3)),
    ("BitShift", {"direction": "LEFT"}, tensor(np.array([1], np.uint8)), tensor(np.array([7], np.uint8))),
    ("Gather", {}, floats(3), ints(-3)),
    ("GatherElements", {}, floats(3), ints(2)),
    ("GatherND", {}, floats(3, 2), tensor(np.array([[-3, 1]]))),
    ("GatherND", {"batch_dims": 1}, floats(2, 3), tensor(np.array([[0], [2]]))),
    ("NegativeLogLikelihoodLoss", {}, floats(1, 3), ints(2)),
    ("DFT", {}, floats(1, 3, 1), ints(1)),
    ("SoftmaxCrossEntropyLoss", {"ignore_index": -1}, floats(1, 3), ints(-1)),
]


@pytest.mark.parametrize(("rows", "verdict"), [(UNDEFINED, False), (DEFINED, True)])
def test_the_guard_knows_undefined_behaviour(
    rows: list[tuple[str, Mapping[str, PlainValue], Tensor, Tensor]], verdict: bool
) -> None:
    for op, options, left, right in rows:
        inputs = (info("a", *left.shape, dtype=left.dtype), info("b", *right.shape, dtype=right.dtype))
        node = Node(op, ("a", "b"), ("y",), attributes(options))
        graph = Graph("g", inputs, (ValueInfo("y", None),), (node,))
        draft = Draft(Model(graph, {"": 18}), ({"a": left, "b": right},))
        assert Guard(lambda draft: draft.feeds)(draft) is verdict, op


NUMBERS = [(300.0, False), (float("nan"), False), (-1.0, False), (255.9, True), (-0.5, True)]


@pytest.mark.parametrize(("number", "verdict"), NUMBERS)
def test_casts_outside_the_range_are_undefined(number: float, verdict: bool) -> None:
    node = Node("Cast", ("x",), ("y",), attributes({"to": 2}))
    graph = Graph("g", (info("x", 1),), (info("y", 1, dtype="uint8"),), (node,))
    draft = Draft(Model(graph, {"": 18}), ({"x": tensor(np.array([number], np.float32))},))
    assert Guard(lambda draft: draft.feeds)(draft) is verdict


def test_scattering_twice_to_one_place_is_undefined_unless_it_reduces() -> None:
    twice = ((1, 1), "add", True), ((1, 1), "none", False), ((0, 3), "add", False)
    for indices, how, verdict in (((0, 1), "none", True), ((1, 1), None, False), ((0, -3), None, False), *twice):
        node = Node("ScatterElements", ("x", "i", "u"), ("y",), attributes({"reduction": how}))
        graph = Graph("g", (info("x", 3),), (info("y", 3),), (node,), {"i": ints(*indices), "u": floats(2)})
        draft = Draft(Model(graph, {"": 18}), ({"x": floats(3)},))
        assert Guard(lambda draft: ({**draft.graph.initializers, **draft.feeds[0]},))(draft) is verdict


@pytest.mark.parametrize(
    ("rows", "how", "verdict"), [(((0,), (1,)), None, True), (((1,), (-2,)), None, False), (((1,), (1,)), "add", True)]
)
def test_tuples_that_scatter_to_one_place_twice_are_undefined(
    rows: tuple[tuple[int]], how: str | None, verdict: bool
) -> None:
    node = Node("ScatterND", ("x", "i", "u"), ("y",), attributes({"reduction": how}))
    indices = tensor(np.array(rows, np.int64))
    graph = Graph("g", (info("x", 3),), (info("y", 3),), (node,), {"i": indices, "u": floats(2)})
    draft = Draft(Model(graph, {"": 18}), ({"x": floats(3)},))
    assert Guard(lambda draft: ({**draft.graph.initializers, **draft.feeds[0]},))(draft) is verdict


@pytest.mark.parametrize(("position", "verdict"), [(0, True), (3, True), (4, False), (-1, False)])
def test_positions_outside_the_cache_are_undefined(position: int, verdict: bool) -> None:
    node = Node("RotaryEmbedding", ("x", "c", "s", "p"), ("y",))
    constants = {"c": floats(4, 1), "s": floats(4, 1), "p": tensor(np.array([[position]], np.int64))}
    graph = Graph("g", (info("x", 1, 1, 1, 2),), (info("y", 1, 1, 1, 2),), (node,), constants)
    draft = Draft(Model(graph, {"": 23}), ({"x": floats(1, 1, 1, 2)},))
    assert Guard(lambda draft: ({**draft.graph.initializers, **draft.feeds[0]},))(draft) is verdict


def test_every_reduction_is_pure_and_deterministic() -> None:
    """No candidate changes the draft it was made from, and the same draft gives the same candidates."""
    draft = chain()
    before = draft.digest
    for reduction in standard(capture()):
        first = [_described(candidate) for candidate in reduction.edits(draft)]
        assert first == [_described(candidate) for candidate in reduction.edits(draft)], type(reduction).__name__
        assert draft.digest == before


def _described(draft: Draft) -> tuple[str, str]:
    return print_model(draft.model), draft.digest


def test_an_input_of_one_element_in_the_first_feed_alone_is_no_scalar() -> None:
    relu = Node("Relu", ("x",), ("y",), {})
    draft = draft_of((info("x", "n"),), (info("y", "n"),), (relu,), {}, {"x": floats(1)}, {"x": floats(3)})
    found = list(LowerRanks().edits(draft))
    assert all(one.feeds[1]["x"].array.size in (1, 3) for one in found)
