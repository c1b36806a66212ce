"""The hook on Keras: records calls of layers and operations from code outside Keras.

Functions of `keras.ops` and `keras.activations` are replaced in every module of Keras that has them. Layers are
recorded in their constructor and their call, which are methods of one base class. Only the outermost call counts,
from a frame outside Keras. Test files inside the package count as outside, and so do models, because a model calls
its layers as a user would.
"""

# ruff: noqa: ANN401 - arguments of any kind pass through

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from miscompile.harvest.libraries.hooks import keras_names
from miscompile.harvest.libraries.hooks.keras_names import KerasNames, names
from miscompile.harvest.libraries.hooks.keras_suite import hook_suite
from miscompile.harvest.libraries.hooks.keras_values import ValueEncoder
from miscompile.harvest.libraries.hooks.recording import NotEncodable, Sink, Stop
from miscompile.instances.instance import Instance
from miscompile.instances.values import Made, Value

keras = keras_names.keras

_ROOT = os.path.dirname(keras.__file__) + os.sep
_DOORS = tuple(
    os.path.join(_ROOT, "src", *parts)
    for parts in (("models", "functional.py"), ("models", "sequential.py"), ("ops", "function.py"), ("testing",))
)


@cache
def _inside(file: str) -> bool:
    return file.startswith(_ROOT) and not file.endswith("_test.py") and not file.startswith(_DOORS)


class KerasCallRecorder:
    """Passes uses of layers and operations to a sink, except inside `quiet`."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.names: KerasNames = names()
        self.encoder = ValueEncoder(self.names, self.made)
        self._seen: WeakKeyDictionary[Any, Made | str] = WeakKeyDictionary()
        self._quiet = 0

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Record no calls inside."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    def made(self, layer: Any) -> Made | None:
        """Return a layer's construction; None if it was not recorded. Raises NotEncodable for unencodable values."""
        found = self._seen.get(layer)
        if isinstance(found, str):
            raise NotEncodable(found)
        return found

    def note(self, layer: Any, args: tuple[Any, ...], words: Mapping[str, Any]) -> None:
        """Record the parameters of a layer's construction, or why they cannot be encoded."""
        api = self.names.layers.get(type(layer))
        if api is None:
            return
        try:
            given = tuple(self.encoder.value(one) for one in args)
            named = {name: self.encoder.value(one) for name, one in words.items()}
            self._seen[layer] = Made(api, given, {**named, **_settings(type(layer).__init__, named)})
        except NotEncodable as error:
            self._seen[layer] = f"a layer made with {error}"
        except Exception as error:  # noqa: BLE001 - as in `watched`
            self._seen[layer] = f"a layer made with what gives a {type(error).__name__}"

    def wanted(self, api: str | None, frame: Any) -> bool:
        """Tell whether a call from `frame` is recorded."""
        if api is None or self._quiet or _inside(frame.f_code.co_filename):
            return False
        return self.sink.wants(api)

    def watched(self, api: str, encode: Callable[[], Instance], call: Callable[[], Any]) -> Any:
        """Make a call without recording calls inside it, and record it if it returns a tensor."""
        instance: Instance | None = None
        try:
            instance = encode()
        except NotEncodable as error:
            self.sink.leave(str(error), api)
        except Exception as error:  # noqa: BLE001 - a back end's symbolic tensors raise anything; counted
            self.sink.leave(f"a {type(error).__name__} while its values were read", api)
        with self.quiet():
            result = call()
        if instance is not None and _has_tensor(result):
            self.sink.take(instance)
        return result

    def layer_call(self, layer: Any, args: tuple[Any, ...], words: Mapping[str, Any]) -> Instance:
        """Return the instance of a call of a layer, without the training mode, because models are built for
        inference."""
        made = self.made(layer)
        if made is None:
            raise NotEncodable("a layer whose construction was not seen")
        given = tuple(self.encoder.value(one) for one in args)
        options = {
            name: self.encoder.value(one) for name, one in words.items() if name != "training" and one is not None
        }
        return Instance("keras", made.api, "module", made.args, made.kwargs, given, options)

    def function_call(self, api: str, function: Any, args: tuple[Any, ...], words: Mapping[str, Any]) -> Instance:
        """Return the instance of a call of an operation."""
        given = tuple(self.encoder.value(one) for one in args)
        named = {name: self.encoder.value(one) for name, one in words.items()}
        settings = {} if len(args) > 1 else _settings(function, named)
        return Instance("keras", api, "function", given, {**named, **settings})


def _settings(function: Any, given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the process-wide settings that are a layer's or function's defaults."""
    known = inspect.signature(function).parameters
    found: dict[str, Value] = {}
    if keras.config.image_data_format() != "channels_last" and "data_format" in known:
        found["data_format"] = keras.config.image_data_format()
    policy = keras.config.dtype_policy().name
    if policy != "float32" and "kwargs" in known:
        found["dtype"] = policy
    return {name: value for name, value in found.items() if given.get(name) is None}


def _has_tensor(result: Any) -> bool:
    if isinstance(result, tuple | list):
        return any(map(_has_tensor, result))
    if isinstance(result, Mapping):
        return any(map(_has_tensor, result.values()))
    return isinstance(result, keras.KerasTensor) or bool(keras.ops.is_tensor(result))


def start(sink: Sink) -> Stop:
    """Hook Keras; return a function that removes the hooks."""
    calls = KerasCallRecorder(sink)
    stops = [_hook_layers(calls), *_hook_operations(calls), hook_suite(calls)]

    def stop() -> None:
        for one in reversed(stops):
            one()

    return stop


def _hook_layers(calls: KerasCallRecorder) -> Stop:
    kind = keras.layers.Layer
    construct, call = kind.__new__, kind.__call__

    def new(cls: Any, *args: Any, **words: Any) -> Any:
        layer = construct(cls, *args, **words)
        calls.note(layer, args, words)
        return layer

    @functools.wraps(call)
    def called(self: Any, *args: Any, **words: Any) -> Any:
        api = calls.names.layers.get(type(self))
        if api is None or not calls.wanted(api, sys._getframe(1)):
            return call(self, *args, **words)
        return calls.watched(api, lambda: calls.layer_call(self, args, words), lambda: call(self, *args, **words))

    kind.__new__, kind.__call__ = new, called

    def stop() -> None:
        kind.__new__, kind.__call__ = construct, call

    return stop


def _hook_operations(calls: KerasCallRecorder) -> list[Stop]:
    """Replace every operation by a recording function, in all modules of Keras that have it."""
    wrappers = {function: _watching(calls, function, api) for function, api in calls.names.operations.items()}
    for function, wrapper in wrappers.items():
        for paths in (calls.names.operations, calls.names.others):
            if function in paths:
                paths[wrapper] = paths[function]
    return [_replace(module, wrappers) for module in _modules()]


def _watching(calls: KerasCallRecorder, function: Any, api: str) -> Any:
    @functools.wraps(function)
    def watching(*args: Any, **words: Any) -> Any:
        if not calls.wanted(api, sys._getframe(1)):
            return function(*args, **words)
        return calls.watched(
            api, lambda: calls.function_call(api, function, args, words), lambda: function(*args, **words)
        )

    return watching


def _modules() -> list[ModuleType]:
    return [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == "keras"]


def _replace(module: ModuleType, wrappers: Mapping[Any, Any]) -> Stop:
    """Replace functions among a module's attributes; return a function that restores them."""
    before = {name: thing for name, thing in vars(module).items() if inspect.isfunction(thing) and thing in wrappers}
    for name, function in before.items():
        setattr(module, name, wrappers[function])

    def stop() -> None:
        for name, function in before.items():
            setattr(module, name, function)

    return stop
