"""The hook on PyTorch: it sees the outermost call, as it was before the call, and leaves the library as it was."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from miscompile.harvest.libraries.hooks.recording import Collector
from miscompile.instances.code import decoded, encoded
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held, Made, Name, SliceValue, Value

pytest.importorskip("torch", reason="torch is not installed here")

import torch
from torch.nn.functional import gelu

from miscompile.harvest.libraries.hooks.torch_calls import start
from miscompile.harvest.libraries.hooks.torch_names import modules, operators
from miscompile.harvest.libraries.hooks.torch_values import value_of


@contextmanager
def seen(limit: int = 50) -> Iterator[tuple[list[Instance], Counter[str]]]:
    found: list[Instance] = []
    into = Collector(found.append, "tests", limit)
    stop = start(into)
    try:
        yield found, into.left
    finally:
        stop()


def apis(work: Callable[[], Any]) -> list[str]:
    with seen() as (found, left):
        work()
    assert not left
    return [one.api for one in found]


X = torch.arange(6.0).reshape(2, 3)


def test_functions_are_seen_however_they_are_reached() -> None:
    with seen() as (found, _):
        torch.add(X, 1, alpha=2)
        gelu(X, approximate="tanh")
        torch.nn.functional.conv2d(X[None, None], torch.ones(1, 1, 1, 3), padding="same")
        torch.linalg.norm(X)
    assert [(one.api, one.form) for one in found if one.api not in ("torch.ones", "torch.Tensor.__getitem__")] == [
        ("torch.add", "function"),
        ("torch.nn.functional.gelu", "function"),
        ("torch.nn.functional.conv2d", "function"),
        ("torch.linalg.norm", "function"),
    ]
    assert found[0] == Instance(
        "torch", "torch.add", "function", (value_of(X), 1), {"alpha": 2}, source="tests", origin=""
    )
    assert all(decoded(encoded(one)) == one for one in found)


def test_operators_of_python_are_methods_of_tensors() -> None:
    with seen() as (found, _):
        assert (1 - X).shape == (2, 3)
        assert X[:, ..., 1].shape == (2,)
        assert (X @ X.T).shape == (2, 2)
    assert [(one.api, one.form) for one in found] == [
        ("torch.Tensor.__rsub__", "method"),
        ("torch.Tensor.__getitem__", "method"),
        ("torch.Tensor.matmul", "method"),
    ]
    assert found[1].args[1] == (SliceValue(), Name("special", "Ellipsis"), 1)


def test_a_call_in_place_is_kept_as_it_was_before() -> None:
    value = torch.zeros(2)
    with seen() as (found, _):
        value.add_(1)
    assert value.tolist() == [1, 1]
    assert found[0].args == (value_of(torch.zeros(2)), 1)


def test_what_python_functions_spell_out_by_themselves_is_dropped_again() -> None:
    with seen() as (found, _):
        torch.nn.functional.softmax(X, 1)
        torch.nn.functional.interpolate(X[None], scale_factor=2, mode="linear")
        torch.ones(2, requires_grad=True)
    assert found[0].kwargs == {"dim": 1}
    assert found[2].kwargs == {"scale_factor": 2, "mode": "linear"}
    assert found[3].kwargs == {}


def test_modules_are_kept_with_what_they_are_made_of_and_called_with() -> None:
    class Net(torch.nn.Module):  # type: ignore[misc]  # mypy does not read torch
        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Linear(3, 4, bias=False), torch.nn.ReLU())

        def forward(self, value: Any) -> Any:
            return self.body(value)

    with seen() as (found, left):
        Net()(X)
    assert found[0].api == "torch.nn.Linear"
    assert (found[0].args, found[0].kwargs, found[0].inputs) == ((3, 4), {"bias": False}, (value_of(X),))
    assert [one.api for one in found] == ["torch.nn.Linear", "torch.nn.ReLU"]
    assert not left


def test_options_of_a_call_and_modules_in_modules() -> None:
    with seen() as (found, _):
        layer = torch.nn.TransformerEncoderLayer(4, 2, 8, activation=torch.nn.functional.gelu, batch_first=True)
        torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()(torch.zeros(1, 2, 4), is_causal=False)
    (found_one,) = [one for one in found if one.form == "module"]
    activation = Name("function", "torch.nn.functional.gelu")
    kwargs: dict[str, Value] = {"activation": activation, "batch_first": True}
    assert found_one.args == (Made("torch.nn.TransformerEncoderLayer", (4, 2, 8), kwargs), 1)
    assert found_one.options == {"is_causal": False}


def test_a_module_whose_type_was_changed_is_made_of_that_type() -> None:
    with seen() as (found, _):
        torch.nn.Linear(3, 2).double()(X.double())
    assert found[-1].kwargs == {"dtype": Name("dtype", "float64")}


def test_classes_derived_from_a_module_and_their_insides_are_no_operators_of_torch() -> None:
    class Own(torch.nn.Conv1d):  # type: ignore[misc]  # mypy does not read torch
        pass

    assert apis(lambda: Own(2, 1, 1)(X)) == []


def test_calls_that_raise_or_return_no_tensor_are_not_kept() -> None:
    with seen() as (found, left):
        with pytest.raises(RuntimeError):
            torch.add(torch.ones(2), torch.ones(3))
        torch.numel(X)
        torch.isclose(X, X)
    assert [one.api for one in found] == ["torch.ones", "torch.ones", "torch.isclose"]
    assert not left


def test_what_cannot_be_said_is_counted() -> None:
    with seen() as (found, left):
        torch.nn.functional.relu(torch.eye(2).to_sparse())
        torch.func.vmap(lambda one: one.sin() + torch.add(one, 1))(X)
    assert left == {"a sparse or nested tensor": 1, "a tensor inside a transformation of torch.func": 3}
    assert [one.api for one in found] == ["torch.eye"]


def test_a_limit_for_each_operator() -> None:
    with seen(limit=2) as (found, _):
        for number in range(6):
            torch.add(X, number)
            torch.mul(X, 2)
    assert Counter(one.api for one in found) == {"torch.add": 2, "torch.mul": 1}


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
@pytest.mark.parametrize("way", ["compile", "script", "trace", "fx"])
def test_other_ways_of_running_work_under_the_hook(way: str) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Softmax(1))
    expected = module(X)
    with seen():
        match way:
            case "compile":
                made = torch.compile(module, backend="eager", fullgraph=True)
            case "script":
                made = torch.jit.script(module)
            case "trace":
                made = torch.jit.trace(module, X)
            case _:
                made = torch.fx.symbolic_trace(module)
        result = made(X)
    assert torch.equal(result, expected)


def test_the_library_is_left_as_it_was() -> None:
    before = [(kind, vars(kind).get("__init__"), vars(kind).get("__call__")) for kind in (*modules(), torch.nn.Module)]
    with seen():
        assert torch.nn.Module.__call__ is not before[-1][2]
    assert [(kind, vars(kind).get("__init__"), vars(kind).get("__call__")) for kind, _, _ in before] == before
    with seen() as (found, _):
        pass
    torch.add(X, 1)
    assert found == []


def test_names_lead_back_to_the_operators() -> None:
    names = {one.api for one in operators().values()} | set(modules().values())
    assert {"torch.nn.functional.conv2d", "torch.special.erf", "torch.Tensor.add_", "torch.nn.Conv2d"} <= names
    assert not names & {"torch.randn", "torch.Tensor.size", "torch.nn.Sequential", "torch.Tensor.__init__"}
    for function, operator in operators().items():
        one: Any = torch
        for part in operator.api.split(".")[1:]:
            one = getattr(one, part)
        assert one == function, operator


def test_the_held_values_are_those_of_the_call() -> None:
    with seen() as (found, _):
        torch.cat([X, X * 2], dim=-1)
    (cat,) = [one for one in found if one.api == "torch.cat"]
    assert isinstance(cat.args[0], list)
    second = cat.args[0][1]
    assert isinstance(second, Held)
    assert second.tensor.array.tolist() == (X * 2).tolist()
