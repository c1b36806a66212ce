"""The hook on PyTorch: records calls of functions, methods of tensors and modules from code outside torch.

Functions are recorded by a mode of `torch.overrides`, which receives every call that concerns a tensor. The hook
therefore replaces no function: functions imported by name are recorded too, and scripting and tracing still find the
original functions. Modules have no such mode, so `Module.__call__` is wrapped, as in torch's tracer, and so are
constructors.

Only the outermost call counts, from a frame outside torch. Code under `torch.testing._internal` counts as outside,
because it is the library's tests; so do containers, because they call their modules as a user would.
"""

# ruff: noqa: ANN401 - arguments of any kind pass through

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.overrides import TorchFunctionMode

from miscompile.harvest.libraries.hooks.recording import NotEncodable, Sink, Stop, has
from miscompile.harvest.libraries.hooks.torch_names import TorchOperator, modules, operators
from miscompile.harvest.libraries.hooks.torch_values import dtype_name, value_of
from miscompile.instances.instance import Instance
from miscompile.instances.values import Made, Name, Value

_ROOT = os.path.dirname(torch.__file__) + os.sep
_DOORS = frozenset(_ROOT + name for name in ("overrides.py", "_tensor.py", "functional.py", "_jit_internal.py")) | {
    os.path.join(_ROOT, "nn", "functional.py")
}
"""Files whose frames are between an outside call and the mode."""

_OUTSIDE = tuple(os.path.join(_ROOT, *parts) for parts in (
    ("testing", "_internal"), ("testing", "_utils.py"), ("nn", "modules", "container.py")
))  # fmt: skip


@cache
def _inside(file: str) -> bool:
    return file.startswith(_ROOT) and not file.startswith(_OUTSIDE)


def _from_outside(frame: Any) -> bool:
    """Tell whether the innermost frame outside the files above is not torch's."""
    while frame is not None and frame.f_code.co_filename in _DOORS:
        frame = frame.f_back
    return frame is not None and not _inside(frame.f_code.co_filename)


class Construction:
    """The constructions of modules by module, stored without a change to the modules."""

    def __init__(self) -> None:
        self._seen: WeakKeyDictionary[Any, Made | str] = WeakKeyDictionary()

    def note(self, module: Any, api: str, args: tuple[Any, ...], words: Mapping[str, Any]) -> None:
        """Record the parameters of a module's construction, or why they cannot be encoded."""
        try:
            given = tuple(value_of(one, self.made) for one in args)
            self._seen[module] = Made(api, given, {name: value_of(one, self.made) for name, one in words.items()})
        except NotEncodable as error:
            self._seen[module] = f"a module made with {error}"

    def made(self, module: Any) -> Made | None:
        """Return a module's construction with its present element type; None if it was not recorded.

        Raises NotEncodable for one whose construction has no encoding.
        """
        found = self._seen.get(module)
        if isinstance(found, str):
            raise NotEncodable(found)
        return None if found is None else _retyped(found, module)


def _retyped(made: Made, module: Any) -> Made:
    """Return `made` with the current element type of the parameters, if the construction has another."""
    held = next((one.dtype for one in module.parameters() if one.is_floating_point() or one.is_complex()), None)
    if held is None or held == torch.float32 or torch.nn.parameter.is_lazy(next(module.parameters())):
        return made
    name = Name("dtype", dtype_name(held))
    if made.kwargs.get("dtype") == name:
        return made
    if "dtype" not in inspect.signature(type(module)).parameters:
        raise NotEncodable("a module that was given another element type than it is made with")
    return replace(made, kwargs={**made.kwargs, "dtype": name})


def called(
    operator: TorchOperator, function: Any, args: tuple[Any, ...], words: Mapping[str, Any], seen: Construction
) -> Instance:
    """Return the instance of a call of a function or method. Raises NotEncodable.

    Calls of functions written in Python contain all parameters. Parameters with their default values are dropped,
    and so are private ones and `requires_grad`.
    """
    given = tuple(value_of(one, seen.made) for one in args)
    declared = _declared(function)
    named: dict[str, Value] = {}
    for name, one in words.items():
        if name.startswith("_") or name == "requires_grad" or _same(one, declared.get(name, ...)):
            continue
        named[name] = value_of(one, seen.made)
    return Instance("torch", operator.api, operator.form, given, named)


@cache
def _declared(function: Any) -> Mapping[str, Any]:
    """Return the defaults that a function written in Python declares."""
    if not inspect.isfunction(function):
        return {}
    given = inspect.signature(function, follow_wrapped=False).parameters.values()
    return {one.name: one.default for one in given if one.default is not one.empty}


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and isinstance(one, bool | int | float | str | None) and bool(one == other)


def called_module(module: Any, args: tuple[Any, ...], words: Mapping[str, Any], seen: Construction) -> Instance:
    """Return the instance of a call of a module. Raises NotEncodable."""
    made = seen.made(module)
    if made is None:
        raise NotEncodable("a module whose construction was not seen")
    given = tuple(value_of(one, seen.made) for one in args)
    options = {name: value_of(one, seen.made) for name, one in words.items()}
    return Instance("torch", made.api, "module", made.args, made.kwargs, given, options)


class TorchCallMode(TorchFunctionMode):  # type: ignore[misc]  # torch is not looked into
    """Passes calls of functions and methods to a sink."""

    def __init__(self, sink: Sink, seen: Construction) -> None:
        super().__init__()
        self._sink, self._seen, self._known = sink, seen, operators()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call `func`, and record the call if it returns a tensor."""
        words = kwargs or {}
        if torch.compiler.is_compiling():
            return func(*args, **words)
        operator = self._known.get(func)
        if operator is None or not _from_outside(sys._getframe(1)) or not self._sink.wants(operator.api):
            return func(*args, **words)
        instance = _encoded(self._sink, operator.api, lambda: called(operator, func, args, words, self._seen))
        result = func(*args, **words)
        if instance is not None and has(result, torch.Tensor):
            self._sink.take(instance)
        return result


def _encoded(sink: Sink, api: str, encode: Callable[[], Instance]) -> Instance | None:
    """Return the instance, or None after reporting the reason to the sink."""
    try:
        with torch._C.DisableTorchFunction():
            return encode()
    except NotEncodable as error:
        sink.leave(str(error), api)
    except Exception as error:  # noqa: BLE001 - tensors inside a transformation may raise anything; counted
        sink.leave(f"a {type(error).__name__} while its values were read", api)
    return None


@dataclass(frozen=True, slots=True)
class _Replaced:
    """A replaced attribute of a class, with the class's own original; None for an inherited one."""

    owner: Any
    name: str
    original: Any

    def put_back(self) -> None:
        if self.original is None:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.original)


def _replace(owner: Any, name: str, change: Callable[[Any], Any]) -> _Replaced:
    replaced = _Replaced(owner, name, vars(owner).get(name))
    setattr(owner, name, change(getattr(owner, name)))
    return replaced


def _noting(kind: Any, api: str, seen: Construction) -> Callable[[Any], Any]:
    """Return a wrapper of a class's constructor, which ignores derived classes."""

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def construct(self: Any, *args: Any, **words: Any) -> None:
            if type(self) is kind and not torch.compiler.is_compiling():
                with torch._C.DisableTorchFunction():
                    seen.note(self, api, args, words)
            original(self, *args, **words)

        return construct

    return wrap


def _calling(sink: Sink, seen: Construction) -> Callable[[Any], Any]:
    """Return a wrapper of the call of modules."""
    known = modules()

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def call(self: Any, *args: Any, **words: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(self, *args, **words)
            api = known.get(type(self))
            if api is None or not _from_outside(sys._getframe(1)) or not sink.wants(api):
                return original(self, *args, **words)
            instance = _encoded(sink, api, lambda: called_module(self, args, words, seen))
            result = original(self, *args, **words)
            if instance is not None and has(result, torch.Tensor):
                sink.take(instance)
            return result

        return call

    return wrap


def start(sink: Sink) -> Stop:
    """Hook PyTorch in this thread; return a function that removes the hooks."""
    seen = Construction()
    unwatch = watch_construction(seen)
    replaced = _replace(torch.nn.Module, "__call__", _calling(sink, seen))
    calls = TorchCallMode(sink, seen)
    calls.__enter__()

    def stop() -> None:
        calls.__exit__(None, None, None)
        replaced.put_back()
        unwatch()

    return stop


def watch_construction(seen: Construction) -> Stop:
    """Record in `seen` how modules are constructed; return a function that ends the recording."""
    replaced = [_replace(kind, "__init__", _noting(kind, api, seen)) for kind, api in modules().items()]

    def stop() -> None:
        for one in replaced:
            one.put_back()

    return stop
