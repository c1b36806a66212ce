import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_compiler import PaperCompiler, case, chain, siblings

from miscompile import __version__
from miscompile.base.errors import RejectedDraft
from miscompile.core.case import Case
from miscompile.core.outcome import Observations, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, tensor
from miscompile.core.verdict import Holds, Violated
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Node
from miscompile.graph.read import read
from miscompile.harvest.patterns.fragment import range_of, seed_of
from miscompile.harvest.patterns.pass_miner import Mining, mine
from miscompile.harvest.patterns.pieces import case_of
from miscompile.harvest.patterns.setting import contiguous, granularity_of
from miscompile.harvest.patterns.shrink import Fires, lawful, shrunk
from miscompile.patterns.library import print_pattern
from miscompile.targets.registry import parse_target


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def long_case() -> Case:
    nodes = [
        Node("Neg", ("x",), ("a",)),
        Node("Abs", ("a",), ("b",)),
        Node("MatMul", ("b", "w"), ("c",)),
        Node("Add", ("c", "v"), ("d",)),
        Node("Relu", ("d",), ("e",)),
        Node("Neg", ("e",), ("f",)),
        Node("Abs", ("y",), ("g",)),
        Node("Sub", ("f", "g"), ("h",)),
    ]
    return case(nodes, ["h", "e"], {"w": floats(4, 5), "v": floats(5)}, x=floats(3, 4), y=floats(3, 5))


def operators(one: Case) -> list[str]:
    return [node.op for node in read(one.program.payload).graph.nodes]


def smallest(one: Case, compiler: PaperCompiler, name: str) -> Case | None:
    return shrunk(one, Fires("toy", name), compiler, random.Random(0))


def test_what_is_left_is_what_the_pass_looks_for() -> None:
    small = smallest(long_case(), PaperCompiler({"MatMulAddFusion": chain("MatMul", "Add")}), "MatMulAddFusion")
    assert small is not None
    graph = read(small.program.payload).graph
    assert operators(small) == ["MatMul", "Add"]
    assert len(graph.inputs) == len(graph.outputs) == 1, "the product's operand is a hole, the weights stay constants"
    assert {value.array.ndim for value in graph.initializers.values()} == {1, 2}
    sizes = [size for port in small.program.inputs for size in port.shape or ()]
    assert all(isinstance(size, int) and size > 1 for size in sizes), "ones broadcast"


def test_nothing_is_left_of_a_program_that_the_pass_does_not_change() -> None:
    compiler = PaperCompiler({"MatMulAddFusion": chain("Add", "MatMul")})
    assert smallest(long_case(), compiler, "MatMulAddFusion") is None


def test_a_pass_that_needs_constants_alone_gives_no_pattern() -> None:
    folded = case([Node("Neg", ("c",), ("y",))], ["y"], {"c": floats(3)})
    assert smallest(folded, PaperCompiler({"ConstantFolding": chain("Neg")}), "ConstantFolding") is None


def test_sizes_that_depend_on_elements_are_no_pattern() -> None:
    nodes = [Node("NonZero", ("x",), ("i",)), Node("Neg", ("i",), ("y",))]
    assert smallest(case(nodes, ["y"], {}, x=floats(3)), PaperCompiler({"Some": chain("NonZero")}), "Some") is None


def test_shape_operands_become_constants() -> None:
    nodes = [Node("Reshape", ("x", "s"), ("y",)), Node("Neg", ("y",), ("z",))]
    fed = case(nodes, ["z"], {}, x=floats(2, 3), s=np.array([3, 2]))
    small = smallest(fed, PaperCompiler({"Some": chain("Reshape")}), "Some")
    assert small is not None
    assert [port.name for port in small.program.inputs] == [
        info.name for info in read(small.program.payload).graph.inputs
    ]
    assert [port.dtype for port in small.program.inputs] == ["float32"]


def test_a_candidate_that_breaks_an_operators_page_is_refused() -> None:
    flag = attributes({"keepdims": 2})  # inference takes it for yes, the page knows 0 and 1 only
    model = read(case([Node("ReduceMean", ("x",), ("y",), flag)], ["y"], {}, x=floats(2, 3)).program.payload)
    with pytest.raises(RejectedDraft):
        lawful(model, (tensor(floats(2, 3)),))


def test_a_rule_is_watched_with_all_other_rules_off() -> None:
    frame, rules = next(iter(parse_target("onnxruntime").about.rules.items()))
    fires = Fires("onnxruntime", rules[0])
    (run,) = fires.plan(long_case(), random.Random(0))
    everything = {rule for group in parse_target("onnxruntime").about.rules.values() for rule in group}
    assert run.build == Build("full", frozenset(everything - {rules[0]}), observe=True)
    assert isinstance(fires.judge((run,), (Values((), Observations(passes=(frame,))),)), Violated)
    assert isinstance(fires.judge((run,), (Values((), Observations(passes=(rules[0],))),)), Holds)


TWO = {"ReluClipFusion": chain("Relu", "Neg"), "MatMulAddFusion": chain("MatMul", "Add")}


def test_every_wanted_pass_gets_a_pattern_with_what_it_wakes() -> None:
    found = list(mine([long_case()], "toy", PaperCompiler(TWO), TWO))
    assert {pattern.operators for pattern in found} == {("MatMul", "Add"), ("Relu", "Neg")}
    for pattern in found:
        assert [(trigger.target, trigger.version) for trigger in pattern.triggers] == [("toy", __version__)]
        assert pattern.triggers[0].name in pattern.name
        assert pattern.origin == "paper"
        assert pattern.granularity == "block"
        assert pattern.motif is not None


def test_mining_ends_when_nothing_is_wanted_any_more() -> None:
    taken = 0

    def cases() -> Iterator[Case]:
        nonlocal taken
        while True:
            taken += 1
            yield long_case()

    assert len(list(mine(cases(), "toy", PaperCompiler(TWO), TWO))) == 2
    assert taken < 40


def test_a_pass_is_given_up_when_programs_come_to_nothing() -> None:
    compiler = PaperCompiler({"DeadCode": chain("NonZero")})
    nodes = [Node("NonZero", ("x",), ("y",))]
    many = [case(nodes, ["y"], {}, x=floats(3)) for _ in range(30)]
    assert list(mine(many, "toy", compiler, ["DeadCode"], mining=Mining(patience=2))) == []
    asked = [run for run in compiler.runs if run.build.observe]
    assert len(asked) < 30, "later batches are not even looked at"


def test_several_patterns_for_one_pass_differ() -> None:
    other = case([Node("Relu", ("x",), ("a",)), Node("Exp", ("a",), ("y",))], ["y"], {}, x=floats(2, 3))
    compiler = PaperCompiler({"ActivationFusion": chain("Relu")})
    found = list(mine([other, other, long_case()], "toy", compiler, ["ActivationFusion"], mining=Mining(each=2)))
    assert [pattern.operators for pattern in found] == [("Relu",)]


def test_the_same_cases_give_the_same_patterns() -> None:
    runs = [list(mine([long_case()], "toy", PaperCompiler(TWO), TWO)) for _ in range(2)]
    assert [print_pattern(one) for one in runs[0]] == [print_pattern(one) for one in runs[1]]


def mined(one: Case, compiler: PaperCompiler, name: str) -> str:
    (outcome,) = compiler.run([Run(one, "toy", Build())])
    assert isinstance(outcome, Values)
    seed = seed_of(one, outcome, "here")
    assert seed is not None
    return granularity_of(seed, one, Fires("toy", name), compiler)


def test_siblings_of_one_operand_are_a_subgraph() -> None:
    nodes = [Node("MatMul", ("x", "v"), ("a",)), Node("MatMul", ("x", "w"), ("b",))]
    two = case(nodes, ["a", "b"], {"v": floats(4, 2), "w": floats(4, 3)}, x=floats(3, 4))
    assert mined(two, PaperCompiler({"Some": siblings("MatMul")}), "Some") == "subgraph"


def test_a_pass_that_needs_the_whole_program_works_on_subgraphs() -> None:
    nodes = [Node("Neg", ("x",), ("a",)), Node("Abs", ("a",), ("y",))]
    one = case(nodes, ["y"], {}, x=floats(3))
    assert mined(one, PaperCompiler({"Some": chain("Neg", "Abs")}), "Some") == "block"
    whole = PaperCompiler({"Some": lambda model: len(model.graph.nodes) == 2})
    assert mined(one, whole, "Some") == "subgraph"


def test_nodes_that_share_nothing_they_make_are_not_contiguous() -> None:
    assert contiguous([Node("Neg", ("x",), ("a",)), Node("Abs", ("a",), ("y",))])
    assert not contiguous([Node("Neg", ("x",), ("a",)), Node("Abs", ("x",), ("y",))])
    assert not contiguous([])


def test_a_seed_knows_its_holes_and_the_sizes_that_were_seen() -> None:
    nodes = [
        Node("Constant", (), ("s",), attributes({"value_ints": (3, 2)})),
        Node("Reshape", ("x", "s"), ("y",)),
        Node("Tile", ("y", "r"), ("z",)),
    ]
    one = case(nodes, ["z"], {}, x=floats(2, 3), r=np.array([1, 2]))
    (outcome,) = PaperCompiler({}).run([Run(one, "toy", Build())])
    assert isinstance(outcome, Values)
    seed = seed_of(one, outcome, "here")
    assert seed is not None
    assert seed.operators == ("Reshape", "Tile")
    assert seed.pinned.keys() == {"r"}
    assert seed.ranges.keys() == {"x"}
    assert [getattr(info.type, "shape", None) for info in seed.graph.outputs] == [(3, 4)]
    again = case_of(seed, random.Random(1))
    (outcome,) = PaperCompiler({}).run([Run(again, "toy", Build())])
    assert isinstance(outcome, Values)
    (result,) = outcome.results[0]
    assert result is not None
    assert result.shape == (3, 4)


def test_a_seed_holds_standard_operators_that_repeat_their_results() -> None:
    for node in (Node("Neg", ("x",), ("y",), domain="com.example"), Node("RandomNormalLike", ("x",), ("y",))):
        one = case([node], ["y"], {}, x=floats(3))
        assert seed_of(one, Values(((tensor(floats(3)),),)), "here") is None


@given(st.lists(st.integers(-50, 50), min_size=1), st.sampled_from(["float32", "int64", "int8", "float16"]))
def test_a_range_holds_every_element_it_was_made_of(elements: list[int], dtype: str) -> None:
    value = tensor(np.array(elements), dtype)
    span = range_of([value])
    assert span is not None
    assert (span.lo, span.hi, span.integral) == (min(elements), max(elements), True)


def test_there_is_no_range_of_nothing_or_of_what_is_not_finite() -> None:
    assert range_of([tensor(np.zeros(0, np.float32))]) is None
    assert range_of([tensor(np.array([1, np.inf], np.float32))]) is None
    assert range_of([tensor(np.array([True]))]) == (0, 1, True)
