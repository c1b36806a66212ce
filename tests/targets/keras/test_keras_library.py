"""Keras as a library target: what it computes, from where, and what it will not touch."""

import importlib.util
import math
from collections.abc import Iterator

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, tensor
from miscompile.execution.pool import LocalPool
from miscompile.instances.instance import Instance
from miscompile.instances.program import to_case
from miscompile.instances.sequence import in_sequence
from miscompile.instances.values import Drawn, Held, Made, Name, Value

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("keras", "jax")), reason="keras or jax is not installed"
    ),
]

X = Drawn("float32", (2, 3))
Y = Drawn("float32", (2, 4), seed=1)


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("keras") as one:
        yield one


def outcome(pool: LocalPool, instance: Instance, times: int = 1) -> Outcome:
    case = to_case(instance)
    feeds = case.feeds * times
    return pool.run([Run(Case(case.program, feeds), "keras", Build())])[0]


def results(pool: LocalPool, instance: Instance, times: int = 1) -> list[list[Array]]:
    found = outcome(pool, instance, times)
    assert isinstance(found, Values), found
    return [[np.asarray(value.numbers()) for value in outputs if value is not None] for outputs in found.results]


def layer(name: str, *args: Value, inputs: tuple[Value, ...] = (X,), **kwargs: Value) -> Instance:
    return Instance("keras", f"keras.layers.{name}", "module", args, kwargs, inputs)


def operation(name: str, *args: Value, **kwargs: Value) -> Instance:
    return Instance("keras", f"keras.ops.{name}", "function", args, kwargs)


def test_weights_are_drawn_by_numpy_in_the_documented_way(pool: LocalPool) -> None:
    """Every back end, and every script, starts from these weights."""
    bound = 1 / math.sqrt(3)
    weights = np.random.default_rng(0).uniform(-bound, bound, (3, 4)).astype(np.float32)
    ((found,),) = results(pool, layer("Dense", 4))
    np.testing.assert_allclose(found, X.tensor().array @ weights, rtol=1e-5, atol=1e-6)


def test_initializers_that_are_not_random_are_keras_own(pool: LocalPool) -> None:
    ((found,),) = results(pool, layer("Dense", 3, kernel_initializer=Made("keras.initializers.Identity", (), {})))
    np.testing.assert_allclose(found, X.tensor().array, rtol=1e-6)


def test_inputs_in_lists_and_results_in_structures(pool: LocalPool) -> None:
    joined = np.concatenate([X.tensor().array, Y.tensor().array], 1)
    ((found,),) = results(pool, layer("Concatenate", inputs=([X, Y],), axis=1))
    np.testing.assert_array_equal(found, joined)
    parts = results(pool, operation("split", X, 3, axis=1))[0]
    np.testing.assert_array_equal(np.stack([part[:, 0] for part in parts], 1), X.tensor().array)


def test_layers_infer(pool: LocalPool) -> None:
    """Dropout that trained would zero some elements and scale the others."""
    instance = Instance("keras", "keras.layers.Dropout", "module", (0.5,), {}, (X,), {"training": True})
    ((found,),) = results(pool, instance)
    np.testing.assert_array_equal(found, X.tensor().array)


def test_a_sequence_computes_what_its_layer_does(pool: LocalPool) -> None:
    one = layer("Conv1D", 4, 2, inputs=(Drawn("float32", (2, 6, 3)),), padding="same")
    np.testing.assert_array_equal(results(pool, one)[0][0], results(pool, in_sequence(one))[0][0])


def test_a_stateful_layer_begins_anew_in_every_run(pool: LocalPool) -> None:
    recurrent = layer("LSTM", 3, inputs=(Drawn("float32", (2, 4, 3)),), stateful=True)
    first, second = results(pool, recurrent, 2)
    np.testing.assert_array_equal(first[0], second[0])


def test_chance_shows_between_runs_and_not_between_builds(pool: LocalPool) -> None:
    instance = Instance("keras", "keras.random.normal", "function", ((4,),))
    first, second = results(pool, instance, 2)
    again, _ = results(pool, instance, 2)
    assert not np.array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[0], again[0])


@pytest.mark.parametrize("dtype", ["float64", "int64", "bfloat16", "float16", "uint8", "bool", "complex64"])
def test_element_types_come_back_as_they_went(pool: LocalPool, dtype: str) -> None:
    value = Held(tensor(np.array([0, 1, 1]), dtype))
    found = outcome(pool, operation("reshape", value, (3, 1)))
    assert isinstance(found, Values)
    (output,) = found.results[0]
    assert output is not None
    assert (output.dtype, output.shape) == (dtype, (3, 1))
    assert output.array.tobytes() == value.tensor.array.tobytes()


def test_sizes_are_no_tensors(pool: LocalPool) -> None:
    found = outcome(pool, operation("shape", X))
    assert isinstance(found, Unsupported)
    assert "is no tensor" in found.message


@pytest.mark.parametrize(
    "path",
    [
        "os.system",
        "keras.saving.load_model",
        "keras.utils.get_file",
        "keras.layers.TFSMLayer",
        "keras.ops.no_such_operation",
        "keras.layers",
        "keras.ops.numpy.np.load",
        "keras.layers.Layer.__init__",
    ],
)
def test_nothing_but_layers_and_operations_is_called(pool: LocalPool, path: str) -> None:
    found = outcome(pool, Instance("keras", path, "function", (X,)))
    assert isinstance(found, Unsupported)
    assert "OutsideKerasError" in found.message or path.partition(".")[2] in found.message


def test_parameters_can_be_functions_and_types(pool: LocalPool) -> None:
    ((cast,),) = results(pool, operation("cast", X, Name("dtype", "int32")))
    assert cast.dtype == np.int32
    ((active,),) = results(pool, layer("Activation", Name("function", "keras.activations.relu")))
    np.testing.assert_array_equal(active, np.maximum(X.tensor().array, 0))
