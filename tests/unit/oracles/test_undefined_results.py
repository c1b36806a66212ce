"""What is undefined is not compared, and what is defined beside it is."""

import numpy as np
import pytest

from miscompile.core.outcome import Values
from miscompile.core.tensor import Array, tensor
from miscompile.instances.instance import CallStyle, Instance, Library
from miscompile.instances.program import to_case
from miscompile.instances.values import Held, Name, Value
from miscompile.oracles.library_reference import NOISES, Dropped, LibraryReference, assess
from miscompile.oracles.unspecified.rules import unspecified_of
from miscompile.producers.instances.migrated import migrate

COLUMN = np.array([1, 2, 3], np.float32)
WHOLE = np.array([1, 2, 3], np.int32)
IMAGE = np.arange(6, dtype=np.float32).reshape(1, 3, 2)


def use(api: str, *args: Value | Array, **kwargs: Value) -> Instance:
    """Return an instance of torch or Keras, or a node; arrays among `args` are its tensors."""
    values: tuple[Value, ...] = tuple(Held(tensor(one)) if isinstance(one, np.ndarray) else one for one in args)
    library: Library = "torch" if api.startswith("torch.") else "keras" if api.startswith("keras.") else "onnx"
    form: CallStyle = "method" if ".Tensor." in api else "function"
    if library == "onnx":
        return Instance("onnx", api, "node", (), kwargs, values, version=18)
    return Instance(library, api, form, values, kwargs)


def left_open(instance: Instance, *, constants: bool = False) -> bool:
    test = migrate(instance, constants=constants)
    assert test is not None
    return bool(unspecified_of(instance, test.case.feeds[0]))


def open_places(instance: Instance, result: Array) -> list[int] | str:
    """Return the places of the only result that are left open, or why the instance is dropped."""
    first = (tensor(result),)
    test = migrate(instance)
    assert test is not None
    found = assess(instance, test.case, Values((first, first, *[first] * NOISES)))
    if isinstance(found, Dropped):
        return found.reason
    assert found.spread[0] is not None
    return [int(place) for place in np.flatnonzero(~np.isfinite(found.spread[0]))]


@pytest.mark.parametrize(
    ("dtype", "given", "places"),
    [
        ("int8", [127.9, 128.0, -128.5, -129.0, np.inf], [1, 3, 4]),
        ("uint8", [255.5, 256.0, -0.5, -1.0, 3.0], [1, 3]),
        ("int16", [32767.0, 32768.0, 1.0, 2.0, 3.0], [1]),
        ("int32", [2147483520.0, 2147483648.0, -2147483648.0, np.nan, 3.0], [1, 3]),
        ("int64", [3e9, 9.3e18, -(2.0**63), -np.inf, 3.0], [1, 3]),
        ("int64", [3e9, 1.0, -3e9, 2.5, 3.0], []),
        ("uint8", [-1.0, 300.0, 256.0, 1e9, -5.0], "undefined"),
    ],
)
def test_floats_are_made_integers_only_where_their_type_holds_them(
    dtype: str, given: list[float], places: list[int] | str
) -> None:
    values = np.array(given, np.float32)
    with np.errstate(invalid="ignore"):
        result = np.trunc(values).astype(dtype)
    assert open_places(use("torch.Tensor.to", values, Name("dtype", dtype)), result) == places
    code = {"int8": 3, "uint8": 2, "int16": 5, "int32": 6, "int64": 7}[dtype]
    assert open_places(use("Cast", values, to=code), result) == places


def test_integers_that_are_no_conversions_are_compared() -> None:
    steep = np.array([900, -1, 300, 2], np.float32)
    assert (
        open_places(
            use("QuantizeLinear", steep, np.array(2, np.float32), np.array(0, np.uint8)),
            np.array([255, 0, 150, 1], np.uint8),
        )
        == []
    )
    far = np.array([np.inf, 3, -np.inf, 7], np.float32)
    assert open_places(use("torch.argsort", far, stable=True), np.array([2, 1, 3, 0], np.int64)) == []
    assert open_places(use("torch.argmax", far), np.array(0)) == []
    assert open_places(use("torch.Tensor.view", steep, Name("dtype", "int32")), steep.view(np.int32)) == []


def test_what_integers_say_of_no_number_is_not_compared() -> None:
    assert open_places(use("torch.argmax", np.array([np.nan, 1], np.float32)), np.array(0)) == "undefined"
    assert (
        open_places(use("torch.bucketize", np.array([np.nan, 1], np.float32), COLUMN), np.array([3, 0], np.int64))
        == "undefined"
    )


def test_conversions_that_are_not_element_by_element() -> None:
    """A sum in another type, and a write into a part of a tensor."""
    total = use("torch.sum", np.array([300, 1], np.float32), dtype=Name("dtype", "int8"))
    assert open_places(total, np.array(45, np.int8)) == "undefined"
    assert (
        open_places(use("torch.sum", np.array([30, 1], np.float32), dtype=Name("dtype", "int8")), np.array(31, np.int8))
        == []
    )
    written = use("torch.Tensor.copy_", np.array([[1, 2], [3, 4]], np.int8), np.array([300, 7], np.float32))
    assert open_places(written, np.array([[44, 7], [44, 7]], np.int8)) == [0, 2]
    part = use("keras.ops.slice_update", np.array([1, 2, 3], np.int8), (1,), np.array([300], np.float32))
    assert open_places(part, np.array([1, 44, 3], np.int8)) == "undefined"


SHIFTS = (
    "torch.bitwise_left_shift", "torch.bitwise_right_shift", "torch.Tensor.__lshift__", "torch.Tensor.__ilshift__",
    "torch.Tensor.__irshift__", "torch.Tensor.bitwise_left_shift_", "torch.Tensor.bitwise_right_shift_",
    "keras.ops.left_shift",
)  # fmt: skip


@pytest.mark.parametrize("api", SHIFTS)
def test_shifts_by_too_much_are_seen_however_they_are_given(api: str) -> None:
    assert left_open(use(api, WHOLE, np.array([40, 1, 1], np.int32)))
    assert left_open(use(api, WHOLE, 40))
    assert left_open(use(api, WHOLE, -1))
    assert left_open(use(api, WHOLE, np.array([40, 1, 1], np.int32)), constants=True)
    assert not left_open(use(api, WHOLE, 31))
    assert not left_open(use(api, WHOLE.astype(np.int64), 40))


def test_shifts_the_other_way_round() -> None:
    assert left_open(use("torch.Tensor.__rlshift__", np.array([9], np.int8), 1))
    assert not left_open(use("torch.Tensor.__rlshift__", np.array([7], np.int8), 100))
    assert left_open(use("torch.bitwise_left_shift", 1, np.array([9], np.int8)))


@pytest.mark.parametrize("api", ["torch.pow", "torch.Tensor.pow_", "torch.Tensor.__ipow__", "keras.ops.power", "Pow"])
def test_powers_that_no_integer_holds(api: str) -> None:
    assert left_open(use(api, WHOLE, np.array([1, 40, 1], np.int32)))
    assert left_open(use(api, WHOLE, np.array([1, -2, 1], np.int32)))
    assert not left_open(use(api, WHOLE, np.array([9, 30, 19], np.int32)))
    assert not left_open(use(api, COLUMN, np.array([-1, 200, 2], np.float32)))


def test_powers_by_a_number() -> None:
    assert left_open(use("torch.pow", WHOLE, 40))
    assert not left_open(use("torch.pow", WHOLE, 2))
    assert not left_open(use("torch.pow", WHOLE, -0.5))
    assert left_open(use("torch.Tensor.__rpow__", np.array([40], np.int32), 2))
    assert not left_open(use("torch.Tensor.__rpow__", np.array([2], np.int32), 40))


@pytest.mark.parametrize("api", ["keras.ops.floor_divide", "keras.ops.mod", "keras.ops.remainder"])
def test_integers_divided_by_zero(api: str) -> None:
    assert left_open(use(api, WHOLE, np.array([1, 0, 1], np.int32)))
    assert left_open(use(api, WHOLE, 0))
    assert not left_open(use(api, WHOLE, 2))
    assert not left_open(use(api, COLUMN, np.array([1, 0, 1], np.float32)))


def test_variances_are_where_each_operator_has_them() -> None:
    plain = use("torch.batch_norm", IMAGE, COLUMN, -COLUMN, COLUMN, COLUMN, False, 0.1, 1e-5, False)
    wrong = use("torch.batch_norm", IMAGE, COLUMN, COLUMN, COLUMN, -COLUMN, False, 0.1, 1e-5, False)
    trains = use("torch.batch_norm", IMAGE, COLUMN, COLUMN, COLUMN, -COLUMN, True, 0.1, 1e-5, False)
    assert [left_open(one) for one in (plain, wrong, trains)] == [False, True, False]
    norm = "torch.nn.functional.batch_norm"
    assert left_open(use(norm, IMAGE, COLUMN, -COLUMN))
    assert left_open(use(norm, IMAGE, COLUMN, running_var=Held(tensor(-COLUMN))))
    assert not left_open(use(norm, IMAGE, COLUMN, -COLUMN, training=True))
    assert not left_open(use("torch.nn.functional.instance_norm", IMAGE, COLUMN, -COLUMN))
    assert left_open(use("torch.nn.functional.instance_norm", IMAGE, COLUMN, -COLUMN, use_input_stats=False))


TWICE = np.array([0, 1, 1], np.int64)
ONCE = np.array([0, 1, 2], np.int64)
ZEROS = np.zeros(4, np.float32)
EQUAL = np.full(3, 7, np.float32)


@pytest.mark.parametrize(
    ("twice", "once", "same"),
    [
        *(
            (use(api, ZEROS, 0, TWICE, COLUMN), use(api, ZEROS, 0, ONCE, COLUMN), use(api, ZEROS, 0, TWICE, EQUAL))
            for api in ("torch.scatter", "torch.Tensor.scatter_", "torch.index_copy", "torch.Tensor.index_copy_")
        ),
        *(
            (use(api, ZEROS, TWICE, COLUMN), use(api, ZEROS, ONCE, COLUMN), use(api, ZEROS, TWICE, EQUAL))
            for api in ("torch.put", "torch.Tensor.put", "torch.Tensor.put_")
        ),
        (
            use("torch.scatter", ZEROS, 0, TWICE, COLUMN),
            use("torch.scatter", ZEROS, 0, ONCE, COLUMN),
            use("torch.scatter", ZEROS, 0, TWICE, 7.0),
        ),
        *(
            (use(api, ZEROS, (Held(tensor(TWICE)),), COLUMN), use(api, ZEROS, (Held(tensor(ONCE)),), COLUMN), None)
            for api in ("torch.index_put", "torch.Tensor.index_put_")
        ),
        (
            use("keras.ops.scatter", TWICE[:, None], COLUMN, (4,)),
            use("keras.ops.scatter", ONCE[:, None], COLUMN, (4,)),
            None,
        ),
        (
            use("keras.ops.scatter_update", ZEROS, TWICE[:, None], COLUMN),
            use("keras.ops.scatter_update", ZEROS, ONCE[:, None], COLUMN),
            use("keras.ops.scatter_update", ZEROS, TWICE[:, None], EQUAL),
        ),
        (
            use("ScatterElements", ZEROS, TWICE, COLUMN),
            use("ScatterElements", ZEROS, ONCE, COLUMN),
            use("ScatterElements", ZEROS, TWICE, COLUMN, reduction="add"),
        ),
        (
            use("ScatterND", ZEROS, TWICE[:, None], COLUMN),
            use("ScatterND", ZEROS, ONCE[:, None], COLUMN),
            use("ScatterND", ZEROS, TWICE[:, None], COLUMN, reduction="max"),
        ),
    ],
    ids=lambda one: one.api if isinstance(one, Instance) else "",
)
def test_where_several_writes_meet_nothing_is_promised(twice: Instance, once: Instance, same: Instance | None) -> None:
    result = np.array([1, 2, 3, 0], np.float32)
    assert open_places(twice, result) == [1]
    assert open_places(once, result) == []
    assert not left_open(once)
    if same is not None:
        assert open_places(same, result) == []


def test_writes_along_an_axis_of_a_matrix() -> None:
    target, index = np.zeros((2, 3), np.float32), np.array([[0, 2], [1, 1]], np.int64)
    values = np.array([[1, 2, 9], [3, 4, 9]], np.float32)  # larger than the index, as torch allows
    assert open_places(use("torch.scatter", target, 1, index, values), target) == [4]
    assert open_places(use("torch.scatter", target, -1, index, values, reduce="add"), target) == []
    assert open_places(use("ScatterElements", target, index - 3, values[:, :2], axis=1), target) == [4]
    rows = np.array([[1], [1]], np.int64)
    assert open_places(use("ScatterND", target, rows, values), target) == [3, 4, 5]
    mask = Held(tensor(np.array([True, False])))
    assert open_places(use("torch.index_put", target, (mask,), np.array([1, 2, 3], np.float32)), target) == []
    both = (None, Held(tensor(np.array([2, 2], np.int64))))
    assert open_places(use("torch.index_put", target, both, np.array([[1, 2], [5, 5]], np.float32)), target) == [2]
    assert open_places(use("torch.index_put", target, both, COLUMN[:2], True), target) == []


def test_indices_that_cannot_be_followed_leave_all_open() -> None:
    assert (
        open_places(use("keras.ops.scatter", np.array([[9]], np.int64), np.array([1], np.float32), (4,)), ZEROS)
        == "unspecified"
    )


def test_of_a_singular_value_decomposition_the_values_are_compared() -> None:
    instance = use("torch.Tensor.svd", np.eye(2, dtype=np.float32))
    first = tuple(map(tensor, (np.eye(2, dtype=np.float32), np.array([1, 1], np.float32), np.eye(2, dtype=np.float32))))
    found = assess(instance, to_case(instance), Values((first, first, *[first] * NOISES)))
    assert isinstance(found, LibraryReference)
    assert [spread is None for spread in found.spread] == [True, False, True]
    assert left_open(use("torch.Tensor.qr", np.eye(2, dtype=np.float32)))


def test_infinity_where_an_integer_is_made_of_all_elements() -> None:
    assert left_open(use("torch.frexp", np.array([np.inf, 1], np.float32)))
    assert not left_open(use("torch.frexp", np.array([2, 1], np.float32)))
    assert left_open(use("DynamicQuantizeLinear", np.array([np.inf, 1], np.float32)))
