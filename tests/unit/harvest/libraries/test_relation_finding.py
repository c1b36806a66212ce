"""Relations: found where results agree on each other's inputs, and nowhere else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from miscompile.base.errors import UsageError
from miscompile.core.tensor import Tensor, tensor
from miscompile.harvest.constraints.generate import Constraint, Operation
from miscompile.harvest.relations.run import after
from miscompile.harvest.relations.study import (
    InstanceResults,
    Relation,
    classes,
    compare,
    compositions,
    counterparts,
    is_conclusive,
    read_relations,
    study,
    transferred,
    verdict_of,
    write_relations,
)
from miscompile.instances.instance import CallStyle, Instance
from miscompile.instances.values import Drawn, Held, tensor_of

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "torch.abs": np.abs,
    "torch.absolute": np.abs,
    "torch.exp": np.exp,
    "torch.log1p_exp": lambda x: np.log1p(np.exp(x)),
    "torch.log1p": np.log1p,
    "torch.zero": np.zeros_like,
    "torch.same": lambda x: x,
}


def unary(api: str, form: CallStyle = "function") -> Operation:
    return Operation("torch", api, form, (Constraint("input", ("tensor",)),))


def run(instance: Instance) -> InstanceResults | None:
    """Be a library of elementwise functions that refuses empty tensors."""
    value = (instance.args or instance.inputs)[0]
    assert isinstance(value, Held | Drawn)
    array = tensor_of(value).array
    if not array.size:
        return None
    with np.errstate(all="ignore"):
        return (tensor(np.asarray(FUNCTIONS[instance.api](array), np.float32)),)


def inputs(api: str) -> list[Instance]:
    shapes = [(2, 3), (4,), (1, 5), (0,), (3, 3)]
    return [Instance("torch", api, "function", (Drawn("float32", s, -3, 3, n),)) for n, s in enumerate(shapes)]


def test_equal_results_on_each_others_inputs_make_an_equivalence() -> None:
    members = [unary(api) for api in ("torch.abs", "torch.absolute", "torch.exp")]
    known = {one.api: inputs(one.api) for one in members}
    relations, instances = study(members, known, run)
    found = {(one.first, one.second): one.verdict for one in relations}
    assert found == {
        ("torch.abs", "torch.absolute"): "equivalent",
        ("torch.abs", "torch.exp"): "status",
        ("torch.absolute", "torch.exp"): "status",
    }
    assert all(one.ran == 12 and one.tried == 15 for one in relations)
    assert {one.source for one in instances} == {"relations"}
    assert all(run(one) is not None for one in instances)
    assert {one.origin for one in instances if one.api == "torch.exp"} == {"from torch.abs", "from torch.absolute"}


def test_results_that_say_nothing_are_no_equivalence() -> None:
    zeros = [run(one) for one in [*inputs("torch.zero"), *inputs("torch.zero")]]
    assert verdict_of(zeros, zeros)[0] == "status"
    assert not is_conclusive(zeros[0])
    ones = [run(one) for one in [*inputs("torch.abs"), *inputs("torch.abs")]]
    assert verdict_of(ones, ones) == ("equivalent", 8)
    assert verdict_of(ones[:4], ones[:4]) == (None, 3)  # too few
    assert verdict_of(ones, [*ones[:-1], None])[0] == "equal where both run"


def test_sameness_is_of_types_shapes_and_numbers() -> None:
    one = (tensor(np.array([1.0, np.nan], np.float32)),)
    assert compare(one, (tensor(np.array([1.0 + 1e-7, np.nan], np.float32)),))
    assert not compare(one, (tensor(np.array([1.01, np.nan], np.float32)),))
    assert not compare(one, (tensor(np.array([1.0, np.nan])),))
    assert not compare(one, (tensor(np.array([[1.0, np.nan]], np.float32)),))
    assert not compare(one, None)
    assert not compare(one, (None,))


def test_candidates_are_those_that_fit() -> None:
    other = Operation(
        "torch", "torch.clamp", "function", (Constraint("input", ("tensor",)), Constraint("p", ("float",)))
    )
    grouped = classes([unary("torch.abs"), other, unary("torch.exp"), unary("torch.nn.Abs", "module")])
    assert [[one.api for one in members] for members in grouped] == [["torch.abs", "torch.exp"]]
    pairs = counterparts(
        [unary("torch.log1p"), unary("torch.Tensor.log1p", "method"), unary("torch.nn.Log1P", "module")]
    )
    assert {(one.api, two.api, how) for one, two, how in pairs} == {
        ("torch.log1p", "torch.Tensor.log1p", "method"),
        ("torch.log1p", "torch.nn.Log1P", "module"),
    }


def test_parameters_find_their_places_in_a_module() -> None:
    function = Operation(
        "torch", "torch.f", "function", (Constraint("x", ("tensor",)), Constraint("alpha", ("float",), False, 1.0))
    )
    module = Operation(
        "torch", "torch.nn.F", "module",
        (Constraint("alpha", ("float",), False, 1.0), Constraint("input", ("tensor",), place="called")),
    )  # fmt: skip
    given = Instance("torch", "torch.f", "function", (Drawn("float32", (2,)),), {"alpha": 0.5})
    made = transferred(given, function, module)
    assert made == Instance("torch", "torch.nn.F", "module", (), {"alpha": 0.5}, (Drawn("float32", (2,)),))
    assert transferred(made, module, function) == given


def test_one_function_after_another() -> None:
    drawn = [Instance("torch", "torch.abs", "function", (Drawn("float32", (4,), 0.1, 3, n),)) for n in range(6)]
    names = ("torch.exp", "torch.log1p", "torch.log1p_exp", "torch.same", "torch.zero")
    found = list(compositions([unary(name) for name in names], drawn, run, after))
    assert [(one.first, one.second, one.then) for one in found] == [("torch.log1p_exp", "torch.exp", "torch.log1p")]


def test_relations_are_written_and_read(tmp_path: Path) -> None:
    relations = [
        Relation("torch", "torch.a", "torch.b", "signature", "equivalent", 9, 9),
        Relation("torch", "torch.a", "torch.c", "signature", "status", 9, 12),
        Relation("torch", "torch.c", "torch.d", "signature", "status", 9, 12),
        Relation("torch", "torch.a", "torch.nn.A", "module", "equal where both run", 9, 12, ("function", "module")),
    ]
    path = tmp_path / "relations.json"
    write_relations(relations, path, {"torch": "1.0"})
    assert read_relations(path) == [relations[0], relations[3]]
    assert '"torch.d"' in path.read_text("utf-8")
    path.write_text("{}", "utf-8")
    with pytest.raises(UsageError):
        read_relations(path)


def test_aliases_of_torch_are_found() -> None:
    pytest.importorskip("torch", reason="torch is not installed here")
    from miscompile.harvest.libraries.hooks import relations_torch

    known = {one.api: one for one in relations_torch.operations()}
    members = [known[name] for name in ("torch.abs", "torch.absolute", "torch.exp")]
    relations, _ = study(members, {"torch.abs": [*inputs("torch.abs"), *inputs("torch.abs")[:2]]}, relations_torch.run)
    assert [(one.first, one.second) for one in relations if one.verdict == "equivalent"] == [
        ("torch.abs", "torch.absolute")
    ]
    result: Tensor | None = (relations_torch.run(inputs("torch.exp")[0]) or (None,))[0]
    assert result is not None
    assert result.shape == (2, 3)


def test_the_relations_that_ship_can_be_read() -> None:
    import miscompile.harvest.relations as package

    found = read_relations(Path(package.__file__).parent / "data" / "relations-torch.json")
    pairs = {(one.first, one.second, one.then) for one in found}
    assert ("torch.abs", "torch.absolute", "") in pairs
    assert ("torch.rsqrt", "torch.sqrt", "torch.reciprocal") in pairs
    assert all(one.ran >= 5 for one in found)
