"""XLA in the worker: a model is lowered to a function of jax.numpy, which is compiled as a whole, or run call by
call."""

import ctypes
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import backend

from miscompile.base.dtypes import NUMBERS
from miscompile.core.case import Feed, Port, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.targets.batching import Batched
from miscompile.targets.derivatives import Derivative, derivative_of
from miscompile.targets.devices import Gate, lacks_cuda
from miscompile.targets.lowering.program import UnloweredError
from miscompile.targets.lowering.table import load
from miscompile.targets.presentations import own_transform
from miscompile.targets.xla import runner
from miscompile.targets.xla.about import ABOUT
from miscompile.targets.xla.batching import batched
from miscompile.targets.xla.derivatives import directions_like, moving_places, with_derivatives
from miscompile.targets.xla.dumps import changed
from miscompile.targets.xla.environment import PLATFORM, SHARED
from miscompile.targets.xla.isolated_build import isolated
from miscompile.targets.xla.noise import noisy
from miscompile.targets.xla.program import LOWERINGS
from miscompile.targets.xla.program import program as lowering
from miscompile.targets.xla.runner import TYPES, XlaFunction
from miscompile.targets.xla.transforms import TRANSFORMS, XlaReload

load(LOWERINGS)  # by the zygote, so that no worker reads the table again

_CLEAR = 30
"""The number of builds after which JAX's caches are cleared; they grow by some 20 MB for each program run call by
call."""

_KNOWN = frozenset((*NUMBERS, "bool", *TYPES))
_NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}


class Xla:
    """Builds functions of JAX."""

    def __init__(self) -> None:
        runner.configure()
        self._gate = Gate(ABOUT.name, {"cuda": _lacks_cuda})
        self._builds = 0
        self._fired: tuple[str, ...] = ()

    def build(self, program: Program, build: Build) -> "XlaSession":
        """Lower `program` to a function and compile that, unless sizes of its inputs are unknown. Raises
        NoDeviceError for a device that is not available, SpecError for a transform with invalid options.
        """
        self._gate.pass_for(build.device)
        self._builds += 1
        if self._builds % _CLEAR == 0:
            jax.clear_caches()
            ctypes.CDLL(None).malloc_trim(0)
        self._fired = ()
        derivative = derivative_of(build.transform)
        if derivative is not None and derivative.noise:
            program = replace(program, inputs=program.inputs[:-1])
        with runner.on_device(build.device):
            function = self._function(program)
            ports = [_abstract(port) for port in program.inputs]
            if isinstance(own_transform(build.transform, TRANSFORMS), Batched):
                function = batched(function)
            if derivative is not None:
                function = _differentiated(function, program, derivative, build.level)
            if derivative is not None and derivative.noise:
                return NoisyXlaSession(function, noisy(function, ports))
            if build.level == "off":
                here = build.device == "cpu" and None not in ports
                rewrite = runner.reloaded if _reloads(build) else None
                return XlaSession(isolated(function, ports, rewrite) if here else runner.eager(function), build.device)
            compiled = None if None in ports else self._compile(function, ports, build)
        late = lambda *values: self._compile(function, values, build)(*values)  # noqa: E731 - as short as it is used
        return XlaSession(compiled or late, build.device)

    def fired(self, log: str) -> tuple[str, ...]:
        """Switchable passes that changed the text of the module."""
        return self._fired

    def _function(self, program: Program) -> XlaFunction:
        for port in (*program.inputs, *program.outputs):
            if port.dtype not in _KNOWN:
                raise UnloweredError(f"element type {port.dtype} has no lowering")
        return lowered_function(read(program.payload))

    def _compile(self, function: XlaFunction, inputs: Sequence[Any], build: Build) -> XlaFunction:
        if _reloads(build):
            function = runner.reloaded(function, inputs, build.device)
        further: dict[str, Any] = {} if build.device == "cpu" else {**runner.CUDA_OPTIONS}
        if not build.observe:
            return runner.compile_function(function, inputs, build.level, build.disabled, further)
        place = tempfile.mkdtemp(prefix="miscompile-xla-", dir=_MEMORY)
        further |= {"xla_dump_to": place, "xla_dump_hlo_pass_re": ".*"}
        try:
            compiled = runner.compile_function(function, inputs, build.level, build.disabled, further)
            self._fired = changed(Path(place), frozenset(ABOUT.passes))
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return compiled


def _reloads(build: Build) -> bool:
    return isinstance(own_transform(build.transform, TRANSFORMS), XlaReload)


def _differentiated(function: XlaFunction, program: Program, derivative: Derivative, level: str) -> XlaFunction:
    """Return a function with the results of `function` and its derivatives. Raises UnloweredError for unknown sizes."""
    given, results = ([_abstract(port) for port in ports] for ports in (program.inputs, program.outputs))
    if None in given or None in results:
        raise UnloweredError("a value without fixed sizes has no lowering of its derivative")
    inputs, outputs = moving_places(given), moving_places(results)
    starts = directions_like(given, inputs, derivative.seed)
    ends = directions_like(results, outputs, derivative.seed)
    return with_derivatives(function, derivative.mode, level == "off", inputs, starts, outputs, ends)


def lowered_function(model: Model) -> XlaFunction:
    """Return the function of jax.numpy that computes a model. Raises UnloweredError where there is none."""
    lowered = lowering(model)
    space: dict[str, Any] = {"jax": jax, "jnp": jnp, "lax": lax, "np": np}
    space.update({name: _native(value) for name, value in lowered.constants.items()})
    exec(compile(lowered.source, "<program>", "exec"), space)
    function: XlaFunction = space["program"]
    return function


class XlaSession:
    """A function that can be run."""

    def __init__(self, function: XlaFunction, device: str = "cpu") -> None:
        self._function, self._device = function, device

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed; results are copied to the CPU."""
        with runner.on_device(self._device):
            results = self._function(*map(_native, feed))
            return tuple(_wrap(np.asarray(result)) for result in results)


class NoisyXlaSession(XlaSession):
    """A function that computes with noise: the last tensor of a feed is the number of the noise."""

    def __init__(
        self, function: XlaFunction, noised: Callable[[Sequence[jax.Array], int], Sequence[jax.Array]]
    ) -> None:
        super().__init__(function)
        self._noised = noised

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on a feed without its last tensor, with the noise that this tensor selects."""
        *own, number = feed
        results = self._noised([_native(value) for value in own], int(number.array))
        return tuple(_wrap(np.asarray(result)) for result in results)


def _lacks_cuda() -> list[str]:
    """Return CUDA's missing requirements. JAX is configured for the platform here, because it must not be before the
    fork."""
    found = [lacks_cuda()]
    if not has_plugin():
        found.append(f"jax {jax.__version__} has no CUDA plugin, it comes with pip install 'jax[cuda12]'")
    if any(found):
        return found
    os.environ.update(SHARED)
    jax.config.update("jax_platforms", f"{PLATFORM},cuda")
    backend.clear_backends()
    try:
        jax.devices("cuda")
    except RuntimeError as error:
        jax.config.update("jax_platforms", PLATFORM)
        backend.clear_backends()
        found.append(str(error))
    return found


def has_plugin() -> bool:
    """Tell whether a JAX plugin for CUDA is installed, which has an entry point."""
    return any("cuda" in point.name for point in metadata.entry_points(group="jax_plugins"))


_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def _abstract(port: Port) -> jax.ShapeDtypeStruct | None:
    """Return the shape and dtype of an input for JAX; None when a size is unknown."""
    if port.shape is None or not all(isinstance(size, int) for size in port.shape):
        return None
    return jax.ShapeDtypeStruct(port.shape, TYPES.get(port.dtype, port.dtype))


def _native(tensor: Tensor) -> jax.Array:
    """Return the elements as an array of JAX. Raises UnloweredError for types without a lowering."""
    if tensor.dtype not in _KNOWN:
        raise UnloweredError(f"element type {tensor.dtype} has no lowering")
    return runner.tensor(tensor.array, tensor.dtype)


def _wrap(array: Array) -> Tensor:
    name = _NAMES.get(array.dtype, array.dtype.name)
    return Tensor(name, array.view(f"uint{8 * array.itemsize}") if name in TYPES else array)
