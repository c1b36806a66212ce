"""One graph makes several programs: same operators, another setting, still valid and with the same promises."""

from collections import Counter

from miscompile.base.rng import stream
from miscompile.graph.check import check
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict

OPTIONS = GeneratorOptions(nodes=6, variants=3, dtypes=("float32", "int64"), opsets=(18,))


def test_variants_share_their_operators_and_differ_in_their_setting() -> None:
    producer = Strict(OPTIONS, Support(open=True))
    differing = 0
    for number in range(20):
        rng = stream(1, "variants", number)
        trio = [producer.propose(rng) for _ in range(3)]
        assert [case.recipe["variant"] for case in trio] == [0, 1, 2]
        models = [read(case.program.payload) for case in trio]
        operators = [Counter(node.op for node in model.graph.nodes) for model in models]
        assert operators[0] == operators[1] == operators[2]
        differing += len({case.program.digest for case in trio}) > 1
        for model in models:
            check(model)
    assert differing > 15


def test_every_input_is_fed_in_its_type() -> None:
    producer = Strict(OPTIONS, Support(open=True))
    for number in range(60):
        case = producer.propose(stream(2, "feeds", number))
        assert [(port.dtype, port.shape) for port in case.program.inputs] == [
            (tensor.dtype, tensor.shape) for tensor in case.feeds[0]
        ]
