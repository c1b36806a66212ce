"""What TVM's face says of pass sequences and forms, without TVM."""

import ast
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import SpecError
from miscompile.base.specs import parse_spec, spec_of
from miscompile.core.case import Case
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.targets.tvm.about import ABOUT
from miscompile.targets.tvm.relax.splice_transform import SPLICE
from miscompile.targets.tvm.relax.wrap_transform import WRAP, Relax, relax_options
from miscompile.targets.tvm.sequences import NEEDS, PASSES, completed, with_arguments
from miscompile.triage.script import write_script

SEQUENCES = st.lists(st.sampled_from(sorted(PASSES)), max_size=12)


@given(SEQUENCES)
def test_what_a_pass_needs_comes_before_it(sequence: list[str]) -> None:
    found = completed(sequence)
    for place, name in enumerate(found):
        assert set(NEEDS.get(name, ())) <= set(found[:place])


@given(SEQUENCES)
def test_the_drawn_order_stays(sequence: list[str]) -> None:
    rest = iter(completed(sequence))
    assert all(name in rest for name in sequence)
    assert completed(completed(sequence)) == completed(sequence)


@given(SEQUENCES)
def test_gathered_operators_become_one_function(sequence: list[str]) -> None:
    found = completed(sequence)
    last = max((place for place, name in enumerate(found) if name == "FuseOps"), default=None)
    assert last is None or "FuseTIR" in found[last:]


def test_a_complete_sequence_gets_nothing() -> None:
    assert completed(["TopologicalSort", "FoldConstant", "FoldConstant"]) == (
        "TopologicalSort",
        "FoldConstant",
        "FoldConstant",
    )
    assert completed(["FuseOps"]) == ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")
    assert completed([]) == ()


def test_what_a_sequence_needs_can_be_drawn_as_well() -> None:
    assert set(ABOUT.sequences) == set(PASSES)
    assert {name for needed in NEEDS.values() for name in needed} <= set(PASSES)


@given(st.integers(0, 9), st.integers(1, 4), st.integers(1, 4), st.sampled_from(["none", "closure", "any"]))
def test_the_transform_prints_and_parses(seed: int, count: int, depth: int, rewrite: str) -> None:
    form = Relax(seed, count, depth, rewrite)  # type: ignore[arg-type]
    assert relax_options(spec_of(WRAP, form)) == form


def test_transforms_of_others_are_not_applied_here() -> None:
    assert relax_options(None) is None
    for text in ("functions{seed=3}", "relaxed{seed=3}", "splice{seed=3}"):
        assert relax_options(parse_spec(text)) is None
    assert ABOUT.transforms == (WRAP, SPLICE)


@pytest.mark.parametrize("text", ["relax{depth=0}", "relax{count=0}", "relax{rewrite=backward}", "relax{name=1}"])
def test_wrong_options_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        relax_options(parse_spec(text))


def script(build: Build) -> str:
    kind = TensorType("float32", (3,))
    graph = Graph("g", (ValueInfo("x", kind),), (ValueInfo("y", kind),), (Node("Relu", ("x",), ("y",)),), {})
    case = Case(to_program(Model(graph, {"": 18}), []), ())
    held = Run(case, "tvm", Build("off"))
    return write_script(case, Evidence("wrong", "exact", "other elements", Run(case, "tvm", build), held, "y"))


@pytest.mark.parametrize("seed", range(20))
def test_a_script_has_the_sequence_that_was_built(seed: int) -> None:
    rng = random.Random(seed)
    sequence = tuple(rng.choice(ABOUT.sequences) for _ in range(rng.randint(1, 12)))
    text = script(Build("default", sequence=sequence))
    compile(text, "script", "exec")
    (said,) = (node for node in ast.parse(text).body if isinstance(node, ast.Assign) and named(node) == "SEQUENCE")
    assert ast.literal_eval(said.value) == with_arguments(sequence)
    assert tuple(name for name, _ in with_arguments(sequence)) == completed(sequence)
    assert "behind(SEQUENCE, pipeline) if changed" in text


def named(node: ast.Assign) -> str:
    return node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""


def test_a_script_wraps_what_the_build_wraps() -> None:
    text = script(Build("off", transform=parse_spec("relax{seed=7, count=3, rewrite=closure}")))
    compile(text, "script", "exec")
    assert 'wrap(module, seed=7, count=3, rewrite="closure")' in text
    assert text.count("def wrap(") == 1
    assert "miscompile" not in text


def test_a_script_of_a_plain_build_has_neither() -> None:
    text = script(Build("full"))
    assert "wrap" not in text.replace("textwrap", "")
    assert "SEQUENCE" not in text
