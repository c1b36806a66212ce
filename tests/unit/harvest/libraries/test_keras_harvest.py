"""Harvesting tests of Keras: what a small test file uses comes back, with everything else counted."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from miscompile.harvest.libraries.keras import harvest_keras, operators_first, own_tests
from miscompile.instances.archive import Archive
from miscompile.instances.instance import Instance
from miscompile.instances.sequence import layer_of
from miscompile.instances.values import Drawn, Held, Made, Name

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("keras", "jax")), reason="keras or jax is not installed"
    ),
]

TESTS = """
import numpy as np
import keras
from keras.src import ops
from keras.src.ops import numpy as knp
from keras.src.testing import TestCase

X = np.ones((2, 3), "float32")


def test_layer():
    keras.layers.Dense(4, kernel_initializer=keras.initializers.Ones(), activation=keras.activations.relu)(X)


def test_layers_inside_of_layers():
    keras.layers.Bidirectional(keras.layers.LSTM(2), merge_mode="sum")(np.ones((2, 4, 3), "float32"), training=True)


def test_layers_inside_of_models():
    model = keras.Sequential([keras.layers.Flatten()])
    model(np.zeros((2, 3, 4), "float32"))


def test_symbols():
    keras.layers.ReLU(max_value=2.0)(keras.Input((5,), dtype="float32"))


def test_operations():
    ops.concatenate([X, X], axis=-1)
    knp.add(X, 2)
    ops.cast(X, "int32")
    ops.relu(X)
    ops.image.rgb_to_grayscale(np.ones((4, 4, 3), "float32"))


def test_settings_of_the_process():
    keras.config.set_image_data_format("channels_first")
    try:
        keras.layers.MaxPooling2D(2)(np.ones((1, 2, 4, 4), "float32"))
    finally:
        keras.config.set_image_data_format("channels_last")


def test_calls_without_an_instance():
    class Mine(keras.layers.Layer):
        def call(self, x):
            return ops.exp(x)

    keras.layers.TimeDistributed(Mine())(np.ones((2, 4, 3), "float32"))
    keras.layers.Activation(lambda x: x)(X)


class LayerTest(TestCase):
    def test_suite(self):
        self.run_layer_test(keras.layers.Subtract, init_kwargs={}, input_shape=[(2, 3), (2, 3)])


def test_failing():
    assert ops.square(X).shape == (0,)
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    path = tmp_path_factory.mktemp("tests") / "some_test.py"
    path.write_text(TESTS)
    return harvest_keras(lambda line: None, [path], seconds=300)


def of(archive: Archive, api: str) -> list[Instance]:
    return [one for one in archive.instances if one.api == f"keras.{api}"]


def test_layers_come_with_what_made_them_and_what_they_were_called_with(archive: Archive) -> None:
    (dense,) = of(archive, "layers.Dense")
    assert dense.args == (4,)
    assert dense.kwargs == {
        "kernel_initializer": Made("keras.initializers.Ones"),
        "activation": Name("function", "keras.activations.relu"),
    }
    (value,) = dense.inputs
    assert isinstance(value, Held)
    np.testing.assert_array_equal(value.tensor.array, np.ones((2, 3), np.float32))
    assert (dense.source, dense.form) == ("tests", "module")
    assert "test_layer" in dense.origin


def test_only_the_outermost_layer_counts(archive: Archive) -> None:
    (both,) = of(archive, "layers.Bidirectional")
    assert both.args == (Made("keras.layers.LSTM", (2,)),)
    assert both.kwargs == {"merge_mode": "sum"}
    assert both.options == {}  # whether it trains is not for a program to say
    assert of(archive, "layers.LSTM") == []


def test_models_call_their_layers_as_users_do(archive: Archive) -> None:
    """A model calls its layers on symbols when it is built, and on tensors when it runs."""
    assert [type(one.inputs[0]) for one in of(archive, "layers.Flatten")] == [Drawn, Held]


def test_symbols_become_recipes(archive: Archive) -> None:
    (relu,) = of(archive, "layers.ReLU")
    (value,) = relu.inputs
    assert isinstance(value, Drawn)
    assert (value.dtype, value.shape) == ("float32", (2, 5))


def test_operations_are_seen_by_whatever_name_they_are_called(archive: Archive) -> None:
    (joined,) = of(archive, "ops.concatenate")
    assert joined.kwargs == {"axis": -1}
    assert isinstance(joined.args[0], list)
    (added,) = of(archive, "ops.add")
    assert added.args[1] == 2
    (cast,) = of(archive, "ops.cast")
    assert cast.args[1] == "int32"
    assert len(of(archive, "ops.image.rgb_to_grayscale")) == 1


def test_settings_of_the_process_become_parameters(archive: Archive) -> None:
    (pooled,) = of(archive, "layers.MaxPooling2D")
    assert pooled.kwargs == {"data_format": "channels_first"}


def test_what_the_suite_is_told_is_one_instance(archive: Archive) -> None:
    (found,) = of(archive, "layers.Subtract")
    (pair,) = found.inputs
    assert isinstance(pair, list)
    assert [one.shape for one in pair if isinstance(one, Drawn)] == [(2, 3), (2, 3)]


def test_what_cannot_be_said_is_counted_and_nothing_inside_of_it_is_taken(archive: Archive) -> None:
    left = archive.figures["left"]
    assert any("not Keras' own" in reason for reason in left)
    assert any("function without a public name" in reason for reason in left)
    assert of(archive, "layers.TimeDistributed") == []
    assert of(archive, "ops.exp") == []


def test_tests_are_counted_by_outcome(archive: Archive) -> None:
    assert archive.figures["tests"] == {"passed": 8, "failed": 1}
    assert archive.figures["files"] == {"ran": 1}
    assert len(of(archive, "ops.square")) == 1


def test_the_package_brings_its_tests_and_those_of_operators_come_first() -> None:
    files = own_tests()
    assert len(files) > 200
    ordered = operators_first(files)
    assert sorted(ordered) == sorted(files)
    assert _folders(ordered[:50]) <= {"layers", "ops", "activations"}


def _folders(files: Sequence[Path]) -> set[str]:
    """Return the parts of Keras that test files are of."""
    return {path.parts[path.parts.index("src") + 1] for path in files}


def test_layers_of_one_tensor_come_in_sequences_too(archive: Archive) -> None:
    chained = [one for one in archive.instances if one.source == "sequential"]
    assert {one.api for one in chained} == {"keras.Sequential"}
    plain = [one for one in archive.instances if one.source == "tests"]
    assert {"keras.layers.Dense", "keras.layers.ReLU"} <= {layer_of(one).api for one in chained}
    assert all(replace(layer_of(one), source="tests") in plain for one in chained)


READ = """
from miscompile.harvest.libraries.hooks.keras_calls import KerasCallRecorder

class Sink:
    left = []
    def wants(self, api): return True
    def take(self, instance): raise AssertionError
    def leave(self, reason, api): self.left.append((reason, api))

def encode():
    raise NotImplementedError("a symbolic tensor of another back end")

assert KerasCallRecorder(Sink()).watched("keras.ops.relu", encode, lambda: 3) == 3
assert Sink.left == [("a NotImplementedError while its values were read", "keras.ops.relu")]
"""


def test_values_that_cannot_be_read_do_not_fail_the_users_tests() -> None:
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    done = subprocess.run([sys.executable, "-c", READ], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
