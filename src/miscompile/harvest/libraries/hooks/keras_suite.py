"""The hook on the base class of Keras' tests: the arguments of `run_layer_test` are an instance.

That method calls a layer repeatedly on random tensors, in several precisions and inside models. These calls contain
no further information, so they are not recorded.
"""

# ruff: noqa: ANN401 - arguments of any kind pass through

import functools
import inspect
from collections.abc import Mapping
from typing import Any, Protocol

from miscompile.harvest.libraries.hooks import keras_names
from miscompile.harvest.libraries.hooks.keras_names import KerasNames
from miscompile.harvest.libraries.hooks.keras_values import ValueEncoder, drawn, dtype_name
from miscompile.harvest.libraries.hooks.recording import NotEncodable, Sink, Stop
from miscompile.instances.instance import Instance
from miscompile.instances.values import Value

keras = keras_names.keras


_QUICK = {"run_training_check": False, "run_mixed_precision_check": False}
"""Steps that are skipped, because they take most of the time and call the layer in the same way."""


class CallHook(Protocol):
    """The interface to the hook on calls."""

    sink: Sink
    names: KerasNames
    encoder: ValueEncoder

    def quiet(self) -> Any:
        """Record no calls inside."""
        ...


def hook_suite(watch: CallHook) -> Stop:
    """Hook the base class; return a function that removes the hook."""
    from keras.src.testing import TestCase

    run = TestCase.run_layer_test
    signature = inspect.signature(run)

    @functools.wraps(run)
    def run_layer_test(self: Any, *args: Any, **words: Any) -> Any:
        bound = signature.bind(self, *args, **words)
        given = dict(bound.arguments)
        bound.arguments.update(_QUICK)
        api = watch.names.layers.get(given["layer_cls"])
        instance = _instance(watch, api, given) if api is not None and watch.sink.wants(api) else None
        with watch.quiet():
            result = run(*bound.args, **bound.kwargs)
        if instance is not None:
            watch.sink.take(instance)
        return result

    TestCase.run_layer_test = run_layer_test

    def stop() -> None:
        TestCase.run_layer_test = run

    return stop


def _instance(watch: CallHook, api: str, given: Mapping[str, Any]) -> Instance | None:
    """Return the instance in the method's arguments; None when they contain no inputs of the layer."""
    encode = watch.encoder.value
    if given.get("input_sparse") or given.get("input_ragged"):
        watch.sink.leave("a sparse or ragged tensor", api)
        return None
    try:
        made = {name: encode(one) for name, one in (given["init_kwargs"] or {}).items()}
        options = {name: encode(one) for name, one in (given.get("call_kwargs") or {}).items() if name != "training"}
        inputs = _inputs(watch, given)
    except NotEncodable as error:
        watch.sink.leave(str(error), api)
        return None
    except Exception as error:  # noqa: BLE001 - the arguments may raise anything; counted
        watch.sink.leave(f"a {type(error).__name__} while its values were read", api)
        return None
    if inputs is None:
        return None
    if isinstance(inputs, dict):
        named = {str(name): value for name, value in inputs.items()}
        return Instance("keras", api, "module", (), made, (), {**named, **options})
    return Instance("keras", api, "module", (), made, (inputs,), options)


def _inputs(watch: CallHook, given: Mapping[str, Any]) -> Value:
    if given.get("input_data") is not None:
        return watch.encoder.value(given["input_data"])
    shape = given.get("input_shape")
    return None if shape is None else _drawn(shape, given.get("input_dtype") or "float32")


def _drawn(shape: Any, dtype: Any) -> Value:
    """Return recipes in the structure of the shapes; `dtype` has the same structure, or is one dtype for all."""
    if isinstance(shape, dict):
        return {name: _drawn(one, dtype[name] if isinstance(dtype, dict) else dtype) for name, one in shape.items()}
    if isinstance(shape, list) or (shape and isinstance(shape[0], tuple | list)):
        kinds = dtype if isinstance(dtype, tuple | list) else [dtype] * len(shape)
        parts = [_drawn(one, kind) for one, kind in zip(shape, kinds, strict=True)]
        return parts if isinstance(shape, list) else tuple(parts)
    if any(size is None for size in shape):
        raise NotEncodable("a shape with unknown sizes")
    return drawn(dtype_name(keras.backend.standardize_dtype(dtype)), tuple(int(size) for size in shape))
