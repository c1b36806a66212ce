"""Instances as JSON: nothing is lost, nothing but an instance is read, and sameness ignores where it is from."""

import gzip
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import UsageError
from miscompile.core.tensor import Tensor, tensor
from miscompile.instances.archive import Archive, check_place, distinct, read_archive, write_archive
from miscompile.instances.code import decoded, digest_of, encoded
from miscompile.instances.instance import Instance
from miscompile.instances.program import from_case, slots, to_case
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Value, leaves

X = Held(tensor(np.array([[1.5, -2.0], [math.inf, math.nan]], np.float32)))


def tensors() -> st.SearchStrategy[Value]:
    shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
    dtypes = st.sampled_from(["float32", "bfloat16", "int64", "bool", "complex64", "uint4", "float8e5m2"])
    drawn = st.builds(Drawn, dtypes, shapes, st.just(0.0), st.just(5.0), st.integers(0, 9))
    return drawn | drawn.map(lambda one: Held(one.tensor()))


def values() -> st.SearchStrategy[Value]:
    plain: st.SearchStrategy[Value] = (
        st.none() | st.booleans() | st.integers(-9, 2**40) | st.floats(allow_nan=False) | st.text(max_size=4)
        | st.complex_numbers(allow_nan=False) | st.just(Name("dtype", "float32")) | tensors()
    )  # fmt: skip
    keys: st.SearchStrategy[Value] = st.text(max_size=3)
    return st.recursive(
        plain,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(keys, inner, max_size=2)
            | st.builds(SliceValue, inner, inner, inner)
            | st.builds(lambda a, b: Made("torch.nn.Identity", (a,), {"b": b}), inner, inner)
        ),
        max_leaves=5,
    )


def instances() -> st.SearchStrategy[Instance]:
    named = st.dictionaries(st.sampled_from("abc"), values(), max_size=2)
    placed = st.lists(values(), max_size=3).map(tuple)
    forms = st.sampled_from(["function", "module", "method"])
    return st.builds(Instance, st.just("torch"), st.just("torch.add"), forms, placed, named, placed, named)


@settings(max_examples=200)
@given(instances())
def test_nothing_is_lost(instance: Instance) -> None:
    assert decoded(encoded(instance)) == instance
    assert encoded(decoded(encoded(instance))) == encoded(instance)


@settings(max_examples=100)
@given(instances(), st.booleans())
def test_a_program_holds_its_instance(instance: Instance, constants: bool) -> None:
    case = to_case(instance, constants=constants)
    found = from_case(case)
    kept = [leaf.tensor() if isinstance(leaf, Drawn) else leaf for leaf in all_leaves(instance)]
    back = [leaf.tensor() if isinstance(leaf, Drawn) else leaf for leaf in all_leaves(found)]
    assert len(kept) == len(back)
    for one, other in zip(kept, back, strict=True):
        first, second = bare(one), bare(other)
        assert first.same(second) if isinstance(first, Tensor) and isinstance(second, Tensor) else first == second
    ports = [(port.dtype, port.shape) for port in case.program.inputs]
    assert [(slot.dtype, slot.shape) for slot in slots(decoded(case.program.payload))] == ports
    assert len(ports) <= 1 or not constants


def bare(value: object) -> object:
    return value.tensor if isinstance(value, Held) else value


def all_leaves(instance: Instance) -> list[Value]:
    named = [given[name] for given in (instance.kwargs, instance.options) for name in sorted(given)]
    parts = (*instance.args, *instance.inputs, *named)
    return [leaf for part in parts for leaf in leaves(part)]


def test_the_tensors_that_construct_a_module_are_no_inputs() -> None:
    loss = Instance("torch", "torch.nn.CrossEntropyLoss", "module", (X,), {}, (X, X))
    assert len(to_case(loss).program.inputs) == 2


def test_sameness_ignores_where_an_instance_is_from() -> None:
    one = Instance("torch", "torch.abs", "function", (X,), source="tests", origin="test_abs")
    assert digest_of(one) == digest_of(replace(one, source="database", origin=""))
    assert digest_of(one) != digest_of(replace(one, api="torch.neg"))
    assert list(distinct([one, replace(one, origin="again")])) == [one]


@pytest.mark.parametrize("dtype", sorted(DTYPES.keys() - {"string"}))
def test_drawn_values_are_the_same_everywhere(dtype: str) -> None:
    recipe = Drawn(dtype, (2, 3), 0.0, 2.0, 7)
    assert recipe.tensor().same(recipe.tensor())
    assert (recipe.tensor().dtype, recipe.tensor().shape) == (dtype, (2, 3))


@pytest.mark.parametrize(
    "line",
    [
        "", "[]", "{}", '{"library": "numpy", "api": "abs", "form": "function"}',
        '{"library": "torch", "api": "abs", "form": "function", "args": [{"$": "os.system"}]}',
        '{"library": "torch", "api": "a", "form": "function", "args": [{"$": "tensor", "dtype": "x", "shape": []}]}',
    ],
)  # fmt: skip
def test_anything_else_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="no operator instance"):
        decoded(line)


def line(**given: object) -> str:
    return json.dumps({"library": "torch", "api": "torch.abs", "form": "function", **given})


RECIPE = {"$": "drawn", "dtype": "float32", "shape": [2], "low": -1, "high": 1, "seed": 0}
PLACE = {"$": "slot", "index": 0, "dtype": "float32", "shape": [2]}
TEXTS = {"$": "tensor", "dtype": "string", "shape": [1], "of": ["a"]}


def test_what_the_damaged_lines_below_are_made_of_is_read() -> None:
    assert decoded(line(args=[RECIPE, PLACE, TEXTS, {"$": "complex", "of": [0, 1]}], version=3)).version == 3
    assert decoded(line(args=[{**RECIPE, "shape": [1 << 12, 1 << 12]}])).args


@pytest.mark.parametrize(
    "damage",
    [
        {"dtype": "foo"}, {"dtype": None}, {"dtype": "string"}, {"dtype": ["float32"]},
        {"shape": [-2]}, {"shape": [200000, 200000]}, {"shape": [1.0]}, {"shape": [True]}, {"shape": 2},
        {"shape": [1] * 65}, {"shape": [0, 1 << 62]},
        {"low": "0"}, {"low": None}, {"low": 2}, {"high": 10**400}, {"high": math.nan}, {"high": math.inf},
        {"low": -1e308, "high": 1e308}, {"dtype": "int64", "high": 1 << 64}, {"dtype": "uint8", "low": -(1 << 64)},
        {"seed": -1}, {"seed": 0.5}, {"seed": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_recipe_that_cannot_be_drawn_from_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="no operator instance"):
        decoded(line(args=[{**RECIPE, **damage}]))


@pytest.mark.parametrize(
    "damaged",
    [
        {"args": [{**PLACE, "index": -1}]}, {"args": [{**PLACE, "index": "0"}]}, {"args": [{**PLACE, "dtype": "foo"}]},
        {"args": [{**PLACE, "shape": [-2]}]}, {"args": [{**PLACE, "shape": [1 << 20, 1 << 20]}]},
        {"args": [{**TEXTS, "shape": [-1]}]}, {"args": [{**TEXTS, "of": [1]}]}, {"args": [{**TEXTS, "dtype": "foo"}]},
        {"args": [{"$": "complex", "of": [None, 1]}]}, {"args": [{"$": "complex", "of": [1, "a"]}]},
        {"args": [{"$": "float", "of": 10**400}]},
        {"version": -1}, {"version": 1 << 31}, {"version": math.inf}, {"version": 1.5},
    ],
    ids=str,
)  # fmt: skip
def test_other_damage_is_refused(damaged: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="no operator instance"):
        decoded(line(**damaged))


@settings(max_examples=100)
@given(st.floats(allow_infinity=False, allow_nan=False), st.floats(allow_infinity=False, allow_nan=False))
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64", "uint64", "uint4", "bool"])
def test_what_is_drawable_can_be_drawn(dtype: str, low: float, high: float) -> None:
    recipe = Drawn(dtype, (2,), low, high)
    if recipe.drawable():
        with np.errstate(all="ignore"):
            assert recipe.tensor().shape == (2,)
    else:
        with pytest.raises((ValueError, OverflowError)):
            recipe.tensor()


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        ('{"a": 1}', "no operator instance"),
        (line(args=[{**RECIPE, "dtype": "foo"}]), "no element type 'foo'"),
        (line(library="keras", api="keras.ops.abs"), "an instance of keras in an archive of torch"),
        (line(args=[[PLACE]]), "inputs to be filled"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, damaged: str, said: str) -> None:
    path = tmp_path / "torch.jsonl.gz"
    head = {"schema": 1, "library": "torch", "versions": {}, "figures": {}}
    path.write_bytes(gzip.compress("\n".join((json.dumps(head), line(), damaged, line())).encode()))
    with pytest.raises(UsageError, match=f"{re.escape(str(path))}, line 3: .*{said}"):
        read_archive(path)


def test_archives_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a" / "torch.jsonl.gz"
    archive = Archive("torch", (Instance("torch", "torch.abs", "function", (X,)),), {"torch": "2.0"}, {"tests": 3})
    write_archive(archive, path)
    assert read_archive(path) == archive
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_place_is_looked_at_without_leaving_anything(tmp_path: Path) -> None:
    check_place(tmp_path / "a" / "b" / "torch.jsonl.gz")
    assert list(tmp_path.iterdir()) == []
    there = tmp_path / "torch.jsonl.gz"
    there.write_bytes(b"older")
    check_place(there)
    assert there.read_bytes() == b"older"


@pytest.mark.parametrize("place", ["file/a/torch.jsonl.gz", "folder", "file/torch.jsonl.gz"])
def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for attempt in (check_place, lambda path: write_archive(Archive("torch", ()), path)):
        with pytest.raises(UsageError, match=f"cannot write {re.escape(str(tmp_path / place))}: .*another place"):
            attempt(tmp_path / place)
    assert {file.name for file in tmp_path.iterdir()} == {"file", "folder"}
    assert list((tmp_path / "folder").iterdir()) == []


@pytest.mark.parametrize("damage", [b"", b"{", b"\x1f\x8b damaged"])
def test_damaged_archives_are_named(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "torch.jsonl.gz"
    path.write_bytes(damage)
    with pytest.raises(UsageError, match="no archive of instances"):
        read_archive(path)
    with pytest.raises(UsageError, match="no instances at"):
        read_archive(tmp_path / "none")


def test_a_program_is_json() -> None:
    case = to_case(Instance("torch", "torch.add", "function", (X, 2), {"alpha": 3}))
    assert json.loads(case.program.payload)["kwargs"] == {"alpha": 3}
    assert [port.name for port in case.program.inputs] == ["x0"]
