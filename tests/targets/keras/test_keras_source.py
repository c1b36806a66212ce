"""Instances of Keras as source text, and layers in a sequence: nothing here needs Keras."""

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import UsageError
from miscompile.core.tensor import tensor
from miscompile.instances.instance import CallStyle, Instance
from miscompile.instances.sequence import SEQUENTIAL, in_sequence
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Value
from miscompile.targets.keras.source import source

X = Drawn("float32", (2, 3))


def assigned(text: str) -> set[str]:
    """Return the names that a script defines at its top level."""
    tree = ast.parse(text)
    named = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    targets = (target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets)
    return named | {target.id for target in targets if isinstance(target, ast.Name)}


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
values: st.SearchStrategy[Value] = st.recursive(
    plain
    | st.sampled_from([X, Name("dtype", "bfloat16"), Name("special", "Ellipsis"), SliceValue(None, 2, None)])
    | st.sampled_from([Name("function", "keras.activations.relu"), Made("keras.initializers.Ones")]),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@pytest.mark.slow  # compiles a script for each example
@given(st.lists(values, max_size=3), st.dictionaries(st.sampled_from(["axis", "units", "lambda"]), values))
def test_every_instance_is_a_script_that_defines_the_three_names(args: list[Value], kwargs: dict[str, Value]) -> None:
    """Whatever the parameters are, the text is Python and has a model, its inputs, and `flat`."""
    forms: dict[CallStyle, tuple[Value, ...]] = {"function": (), "module": (X,)}
    for form, inputs in forms.items():
        text = source(Instance("keras", "keras.ops.add", form, tuple(args), kwargs, inputs))
        assert {"model", "inputs", "flat"} <= assigned(text)


def test_a_layer_is_built_as_its_test_builds_it() -> None:
    text = source(Instance("keras", "keras.layers.Dense", "module", (4,), {"activation": "relu"}, (X,)))
    assert 'operator = keras.layers.Dense(4, activation="relu")' in text
    assert 'x0 = keras.Input(batch_shape=(2, 3), dtype="float32")' in text
    assert "outputs = operator(x0)" in text
    assert "default_rng" in text  # weights that are the same on every back end


def test_an_operation_has_no_weights() -> None:
    text = source(Instance("keras", "keras.ops.concatenate", "function", ([X, X],), {"axis": -1}))
    assert "outputs = keras.ops.concatenate([x0, x1], axis=-1)" in text
    assert "initializers" not in text


def test_brain_floats_and_large_tensors_need_their_modules() -> None:
    small = Held(tensor(np.ones(3), "bfloat16"))
    large = Held(tensor(np.random.default_rng(0).normal(size=300).astype(np.float32)))
    text = source(Instance("keras", "keras.ops.add", "function", (small, large)))
    assert "import ml_dtypes" in text
    assert "import base64" in text
    assert "import math" not in text


def test_without_tensors_the_model_is_a_function() -> None:
    text = source(Instance("keras", "keras.ops.arange", "function", (5,), {"dtype": Name("dtype", "float8e5m2")}))
    assert "def model(inputs, training=False):" in text
    assert 'return keras.ops.arange(5, dtype="float8_e5m2")' in text


def test_a_layer_in_a_sequence_is_the_same_layer() -> None:
    one = Instance("keras", "keras.layers.Dense", "module", (4,), {"use_bias": False}, (X,), source="tests", origin="t")
    chained = in_sequence(one)
    assert chained.api == SEQUENTIAL
    assert chained.args == ([Made("keras.layers.Dense", (4,), {"use_bias": False})],)
    assert (chained.inputs, chained.source, chained.origin) == ((X,), "tests", "t")
    assert "keras.Sequential([keras.layers.Dense(4, use_bias=False)])" in source(chained)


@pytest.mark.parametrize(
    "instance",
    [
        Instance("keras", "keras.ops.add", "function", (X, X)),
        Instance("keras", "keras.layers.Add", "module", (), {}, ([X, X],)),
        Instance("keras", "keras.layers.LSTM", "module", (2,), {}, (X,), {"mask": X}),
        Instance("keras", "keras.layers.Dot", "module", (), {}, (X, X)),
    ],
)
def test_what_is_not_called_on_one_tensor_stands_in_no_sequence(instance: Instance) -> None:
    with pytest.raises(UsageError, match="no sequence of layers can hold it"):
        in_sequence(instance)
