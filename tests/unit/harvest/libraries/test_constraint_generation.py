"""Instances from constraints: within them and at their ends, and none that the library refuses."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.base.rng import stream
from miscompile.core.tensor import Tensor, tensor
from miscompile.harvest.constraints import onnx
from miscompile.harvest.constraints.generate import (
    Constraint,
    InstanceCheck,
    Operation,
    at_ends,
    drawn,
    ends_of,
    generate,
    values_of,
)
from miscompile.instances.code import decoded, digest_of, encoded
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, tensor_of

INPUT = Constraint("input", ("tensor",), dtypes=("float32", "int64"), ranks=(1, 2))
DIM = Constraint("dim", ("int",), axis=True)
MODE = Constraint("mode", ("text",), False, "a", values=("a", "b", "c"))
SCALE = Constraint("scale", ("float",), False, 1.0, low=0.0, high=1.0)
CUMSUM = Operation("torch", "torch.made_up", "function", (INPUT, DIM, MODE, SCALE))


def made(
    operation: Operation, count: int, runs: InstanceCheck, bases: Sequence[Instance] = (), seed: int = 0
) -> tuple[list[Instance], int]:
    """Return what is generated, and the number of tries."""
    found = list(generate(operation, seed, count, runs, bases))
    return [one for one in found if one is not None], len(found)


def takes(instance: Instance) -> bool:
    """Be a library that wants an axis of its tensor and a scale that is a share."""
    value, dim = instance.args
    assert isinstance(value, Held | Drawn)
    assert isinstance(dim, int)
    scale = instance.kwargs.get("scale", 1.0)
    rank = tensor_of(value).array.ndim
    return -rank <= dim < rank and isinstance(scale, float) and 0 <= scale <= 1


@settings(max_examples=100)
@given(st.integers(0, 10**9))
def test_drawn_parameters_obey(seed: int) -> None:
    values = drawn(CUMSUM, stream(seed))
    value, dim = values["input"], values["dim"]
    assert isinstance(value, Drawn)
    assert isinstance(dim, int)
    assert value.dtype in INPUT.dtypes
    assert values.get("mode", "a") in MODE.values
    scale = values.get("scale", 1.0)
    assert isinstance(scale, int | float)
    assert 0 <= scale <= 1


def test_what_comes_out_works_is_distinct_and_comes_again() -> None:
    found, tries = made(CUMSUM, 10, takes)
    assert len(found) <= tries
    assert all(map(takes, found))
    assert len({digest_of(one) for one in found}) == len(found)
    assert {one.origin.split()[0] for one in found} == {"conforming", "boundary"}
    assert all(one.source == "constraints" for one in found)
    assert [decoded(encoded(one)) for one in found] == found
    assert made(CUMSUM, 10, takes)[0] == found
    assert made(CUMSUM, 10, takes, seed=1)[0] != found


def test_ends_are_all_that_is_listed_and_the_numbers_that_break_things() -> None:
    assert list(ends_of(MODE, None, ())) == ["a", "b", "c"]
    assert list(ends_of(DIM, 0, (2, 3, 4))) == [0, 2, -3, -1]
    assert set(ends_of(SCALE, 0.5, ())) >= {0.0, 1.0, -1.0}
    shapes = {one.shape for one in ends_of(INPUT, Drawn("float32", (2, 3)), (2, 3)) if isinstance(one, Drawn)}
    assert shapes >= {(), (0, 3), (2, 0), (1, 3), (3,), (1, 1, 1, 1, 2, 3)}


def test_one_parameter_at_a_time_leaves_its_range() -> None:
    base = Instance("torch", CUMSUM.api, "function", (Held(tensor(np.ones((2, 3), np.float32))), 1), {"mode": "b"})
    before = values_of(CUMSUM, base)
    for one in at_ends(CUMSUM, base):
        after = values_of(CUMSUM, one)
        assert sum(before.get(name) != after.get(name) for name in ("input", "dim", "mode", "scale")) <= 1


def test_instances_of_tests_are_taken_to_their_ends_where_drawing_finds_none() -> None:
    base = Instance("torch", CUMSUM.api, "function", (Drawn("float32", (2, 3)), 0))

    def only_like_base(instance: Instance) -> bool:
        return instance.args[0] == base.args[0]

    found, _ = made(CUMSUM, 5, only_like_base, [base])
    assert found
    assert all(one.origin.startswith("boundary") for one in found)


def onnx_operations() -> Iterator[Operation]:
    wanted = {"Relu", "Softmax", "Conv", "Concat", "ai.onnx.ml.Binarizer", "Resize", "StringNormalizer"}
    return (one for one in onnx.operations() if one.api in wanted)


def test_schemas_of_onnx_say_what_parameters_may_be() -> None:
    known = {one.api: {item.name: item for item in one.parameters} for one in onnx_operations()}
    assert known["Softmax"]["axis"].axis
    assert "bfloat16" in known["Relu"]["X"].dtypes
    assert set(known["Conv"]["auto_pad"].values) >= {"NOTSET", "VALID", "SAME_UPPER"}
    assert "nearest" in known["Resize"]["mode"].values
    assert not known["Resize"]["roi"].required
    assert "If" not in {one.api for one in onnx.operations()}


def test_nodes_from_schemas_run() -> None:
    for one in onnx_operations():
        if one.api in ("Relu", "Softmax", "ai.onnx.ml.Binarizer"):
            found, _ = made(one, 4, onnx.runs)
            assert found, one.api
            assert all(map(onnx.runs, found))


def test_signatures_of_torch_say_what_parameters_may_be() -> None:
    pytest.importorskip("torch", reason="torch is not installed here")
    from miscompile.harvest.libraries.hooks import constraints_torch

    known = {one.api: one for one in constraints_torch.operations()}
    assert len(known) > 500
    pad = {item.name: item for item in known["torch.nn.functional.pad"].parameters}
    assert pad["mode"].values == ("constant", "reflect", "replicate", "circular")
    cumsum = {item.name: item for item in known["torch.cumsum"].parameters}
    assert cumsum["dim"].axis
    found, _ = made(known["torch.cumsum"], 6, constraints_torch.runs)
    assert found
    module, _ = made(known["torch.nn.Softmax"], 6, constraints_torch.runs)
    assert module
    assert {one.form for one in module} == {"module"}


def test_the_ends_of_texts_can_be_drawn() -> None:
    """An operator of any type may be known from an instance that is called with texts, which no recipe gives."""
    anything = Constraint("input", ("tensor",), dtypes=("float32", "string"))
    texts = Held(Tensor("string", np.array(["a", "b"], object)))
    ends = list(ends_of(anything, texts, (2,)))
    assert {end.dtype for end in ends if isinstance(end, Drawn)} == {"float32"}
    base = Instance("torch", "torch.made_up", "function", (texts,))
    for made_one in at_ends(Operation("torch", "torch.made_up", "function", (anything,)), base):
        assert decoded(encoded(made_one)) == made_one
