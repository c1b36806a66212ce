"""Programs are written from shared parts; the bytes are those of the graph as a model, in every setting."""

import math

import numpy as np
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.tensor import tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.emit import emit, model_proto
from miscompile.graph.model import Node
from miscompile.graph.read import read
from miscompile.ops.registry import dtypes_of, specs, version_of, well_formed
from miscompile.ops.spec import Call, OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style
from miscompile.producers.finish import AS_BUILT, Finisher, inner_results, leaves
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.scope import Scope
from miscompile.producers.sites import ScopeSite, insert
from miscompile.producers.strict import Strict
from miscompile.producers.sweep import draft_single

OPEN = Support(open=True)


def grown(number: int) -> Scope:
    """Return a scope of a few operators."""
    scope = Scope(stream(4, "grown", number), 18, OperatorLimits(max_dim=4), Style(), OPEN)
    for op in ("Add", "Conv", "Clip", "Slice", "Where", "ReduceSum", "Split", "MatMul"):
        mark = scope.mark()
        try:
            insert(scope, op, ScopeSite(scope, "float32", constants=0.5))
        except RejectedDraft:
            scope.rollback(mark)
    return scope


def test_the_payload_is_the_emitted_model_in_every_setting() -> None:
    settings = 0
    for number in range(30):
        scope = grown(number)
        finisher = Finisher(scope)
        ends, others = leaves(scope), inner_results(scope)
        for chosen in (ends, [*ends, *others], ends[:1]):
            setting = finisher.draw_setting(0.4) if chosen is not ends else AS_BUILT
            settings += bool(setting.frozen) + bool(setting.opened)
            case = finisher.case(chosen, 1, {}, setting)
            model = finisher.model(chosen, setting)
            assert case.program.payload == emit(model) == model_proto(model).SerializeToString()
            assert [port.name for port in case.program.inputs] == [info.name for info in model.graph.inputs]
            assert [port.name for port in case.program.outputs] == chosen
    assert settings > 40


def test_a_number_beyond_float32_is_written_as_infinity() -> None:
    scope = Scope(stream(0, "long"), 18, OperatorLimits(), Style(), OPEN)
    x = scope.new_input("float32", (2,), Range(-1, 1, integral=False))
    y = scope.apply(Call("Elu", (x,), attributes({"alpha": 1.0})))[0]
    node = scope.nodes[0]
    scope.nodes[0] = Node(node.op, node.inputs, node.outputs, attributes({"alpha": 1e39}))
    case = Finisher(scope).case([y.name], 1, {})
    assert read(case.program.payload).graph.nodes[0].attributes["alpha"].value == math.inf


def test_no_output_makes_no_case() -> None:
    with pytest.raises(RejectedDraft):
        Finisher(grown(0)).case([], 1, {})


def test_calls_that_samplers_draw_are_well_formed() -> None:
    """What lets `Scope.apply` look at the rules of an operator's page for edits and motifs only."""
    drawn = 0
    for op in specs():
        for opset in (17, 22):
            for number, dtype in enumerate(dtypes_of(op, opset)):
                limits = OperatorLimits(max_dim=5, max_elements=256, zero_size=(0.0, 0.3)[number % 2])
                try:
                    single = draft_single(
                        stream(3, op, opset, number), op, dtype, opset, limits, Style(number % 3 == 0), OPEN
                    )
                except RejectedDraft:
                    continue
                drawn += 1
                assert well_formed(single.call), single.call
    assert drawn > 1500


def test_every_operator_that_is_taken_in_the_dtype_of_its_main_operand_is_on_the_menu() -> None:
    """Where's first operand is a condition, and ConstantOfShape's a shape: neither decides on the dtype."""
    where = f"Where-{version_of('Where', 18)}(bool,float32,float32)float32"
    fill = f"ConstantOfShape-{version_of('ConstantOfShape', 18)}(int64)float16"
    support = Support({where, fill})
    producer = Strict(GeneratorOptions(opsets=(18,), noops=0.0, motifs=0.0, nodes=4), support)
    operators = set()
    for index in range(60):
        case = producer.propose(stream(1, "menu", index))
        operators |= {node.op for node in read(case.program.payload).graph.nodes}
    assert operators - {"Constant"} == {"Where", "ConstantOfShape"}


def test_constants_keep_their_elements_over_programs() -> None:
    scope = Scope(stream(0, "kept"), 18, OperatorLimits(), Style(), OPEN)
    x = scope.new_input("float32", (2,), Range(-1, 1, integral=False))
    fixed = scope.new_constant(tensor(np.array([0.5, -2.0]), "float32"))
    y = scope.call("Add", x, fixed)
    finisher = Finisher(scope)
    for _ in range(3):
        case = finisher.case([y.name], 1, {}, finisher.draw_setting(0.5))
        kept = read(case.program.payload).graph.initializers[fixed.name]
        assert kept.same(scope.initializers[fixed.name])
