"""PyTorch in the worker: eager at level off, Inductor at level full.

`build` compiles a program on tensors of zeros and stops before the compiled code runs, so that an error of the
compiler is distinguished from an error of the compiled code.
"""

import itertools
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
import torch._dynamo
import torch._inductor.codecache
import torch._inductor.compile_fx
import torch._inductor.utils
from torch._inductor import config as settings

from miscompile.base.dtypes import NUMBERS
from miscompile.base.errors import UsageError
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor, numpy_name
from miscompile.graph.read import read
from miscompile.targets.batching import Batched
from miscompile.targets.derivatives import Derivative
from miscompile.targets.devices import Gate, lacks_cuda
from miscompile.targets.guards import Guarded
from miscompile.targets.inductor.about import ABOUT
from miscompile.targets.inductor.batching import batched
from miscompile.targets.inductor.derivatives import directions_like, moving_places, with_derivatives
from miscompile.targets.inductor.folders import KernelFolders, header_folder, keep_header, once
from miscompile.targets.inductor.noise import ResultNoise, moved
from miscompile.targets.inductor.runner import (
    backend_for,
    compile_program,
    configure,
    decomposing,
    known,
    make_exact,
    on_device,
    relating,
    run_guarded,
    settings_for,
)
from miscompile.targets.inductor.settings import ALWAYS
from miscompile.targets.inductor.strides import with_strides
from miscompile.targets.inductor.switch_runner import cuda_hidden, register_patterns, switch_off, switch_patterns
from miscompile.targets.inductor.switches import Switchboard, install
from miscompile.targets.inductor.transforms import TRANSFORMS, Decomposed, Related, StridedInputs
from miscompile.targets.lowering.table import load
from miscompile.targets.lowering.torch_program import LOWERINGS
from miscompile.targets.lowering.torch_program import program as lowered
from miscompile.targets.presentations import own_transform
from miscompile.targets.torch import runner
from miscompile.targets.torch.runner import tensor

load(LOWERINGS)  # by the zygote, so that no worker reads the table again

_BUILDS = 200
"""The number of builds after which the folder of kernels is emptied, and the compiler's caches are cleared."""

_KNOWN = frozenset((*NUMBERS, "bool"))
"""Element types that inputs can have."""


class _CompiledError(Exception):
    """Ends the call that compiles, before the compiled code runs."""


class Inductor:
    """Builds eager and compiled functions."""

    def __init__(self) -> None:
        _need_compiler()
        self._gate = Gate(ABOUT.name, {"cuda": self._lacks_cuda})
        configure()
        torch._logging.set_logs(all=logging.CRITICAL)
        for name, value in ALWAYS.items():
            if known(name):
                _set(name, value)
        self._folders = KernelFolders()
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = self._folders.enter(anew=True)
        headers = header_folder(torch.__version__)
        keep_header(headers)
        self._board = Switchboard()
        self._builds = 0
        with cuda_hidden():
            register_patterns()
            install(self._board)
            flags = torch._inductor.cpu_vec_isa.pick_vec_isa()  # runs the C++ compiler; workers inherit the result
            once(headers, str(flags), self._compile_header)

    def _lacks_cuda(self) -> list[str]:
        """Return CUDA's missing requirements; when nothing is missing, make it exact and register its patterns."""
        found = [lacks_cuda()]
        if not torch.backends.cuda.is_built():
            found.append(f"torch {torch.__version__} has no CUDA build, pip install --force-reinstall torch has one")
        elif find_spec("triton") is None:
            found.append("triton, which compiles for CUDA, is not installed (pip install triton)")
        if not any(found):
            try:
                torch.cuda.init()
            except (AssertionError, RuntimeError) as error:
                found.append(str(error))
            else:
                make_exact()
                register_patterns(torch.device("cuda", 0))
                switch_patterns()
        return found

    def _compile_header(self) -> None:
        """Compile a program, and with it the header, because that takes longer than the timeout of a run."""
        self._begin(Build())
        compiled(lambda x: (x + 1,), torch._inductor.compile_fx.compile_fx, [torch.zeros(2)])

    def build(self, program: Program, build: Build) -> "InductorSession":
        """Lower `program` and compile it; one of `TRANSFORMS` may change it.

        Raises NoDeviceError for a device that is not available, UnloweredError, NotImplementedError, SpecError for a
        transform with invalid options, and torch's exceptions.
        """
        self._gate.pass_for(build.device)
        text = lowered(read(program.payload))
        constants = {name: to_torch(value).to(build.device) for name, value in text.constants.items()}
        function = function_of(text.source, constants)
        transform = own_transform(build.transform, TRANSFORMS)
        if isinstance(transform, Derivative):
            return self._differentiated(program, build, partial(function_of, text.source), constants, transform)
        if isinstance(transform, Batched):
            function = batched(function)
        strided = transform if isinstance(transform, StridedInputs) else None
        if build.level == "off" and (transform is strided or isinstance(transform, Batched)):
            return InductorSession(function, build.device, strided)
        placed = transform if isinstance(transform, Guarded) and build.device == "cpu" else None
        self._begin(build)
        zeros = [_zeros(port.dtype, port.shape).to(build.device) for port in program.inputs]
        if strided is not None:
            zeros = with_strides(zeros, strided.seed)
        with settings.patch(settings_for(build.level, build.disabled, build.device)):
            made = compiled(function, _backend(transform, build.level), zeros, build.device)
            return InductorSession(made, build.device, placed or strided, [port.name for port in program.inputs])

    def _differentiated(
        self,
        program: Program,
        build: Build,
        make: Callable[[Mapping[str, torch.Tensor]], Callable[..., Any]],
        constants: Mapping[str, torch.Tensor],
        derivative: Derivative,
    ) -> "InductorSession":
        """Return a session that computes the program that `make` makes with constants, and its derivatives.

        Nothing is compiled at `off`, and with noise, of which there is only that level.
        """
        if derivative.noise:
            program = replace(program, inputs=program.inputs[:-1])
        zeros = [_zeros(port.dtype, port.shape).to(build.device) for port in program.inputs]
        ends = [_zeros(port.dtype, port.shape).to(build.device) for port in program.outputs]
        inputs, outputs = moving_places(zeros), moving_places(ends)
        off = build.level == "off"
        starts = directions_like(zeros, inputs, derivative.seed)
        along = directions_like(ends, outputs, derivative.seed)
        if not off:
            self._begin(build)
        if derivative.mode == "training":
            for place in inputs:
                zeros[place].requires_grad_()

        def compile_one(one: Callable[..., Any]) -> Callable[..., Any]:
            return one if off else compiled(one, backend_for(build.level), zeros, build.device)

        def differentiate(move: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Sequence[torch.Tensor]]:
            function = make({name: move(value) for name, value in constants.items()})
            ways = list(map(move, starts)), list(map(move, along))
            return with_derivatives(function, compile_one, derivative.mode, off, inputs, ways[0], outputs, ways[1])

        if derivative.noise:
            return NoisyInductorSession(differentiate, build.device)
        with settings.patch(settings_for(build.level, build.disabled, build.device)):
            return InductorSession(differentiate(lambda value: value), build.device)

    def _begin(self, build: Build) -> None:
        """Clear the state of the last program, and set the switches for this one."""
        torch._dynamo.reset()
        renew = self._builds % _BUILDS == 0
        if renew and hasattr(torch._inductor.utils, "clear_caches"):
            torch._inductor.utils.clear_caches()
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = self._folders.enter(anew=renew)
        self._builds += 1
        switch_off(build.level, build.disabled)
        self._board.observing = build.observe
        self._board.seen.clear()

    def fired(self, log: str) -> tuple[str, ...]:
        """The names of those that changed the program according to the hooks, in order; settings only if a hook
        observes them."""
        known = frozenset(ABOUT.passes)
        seen, self._board.seen = self._board.seen, {}
        return tuple(name for name in seen if name in known)


class InductorSession:
    """A function of tensors on `device`; `inputs` says how its inputs lie in memory."""

    def __init__(
        self,
        function: Callable[..., Sequence[torch.Tensor]],
        device: str = "cpu",
        inputs: Guarded | StridedInputs | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self._function, self._device, self._inputs, self._names = function, device, inputs, names

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed; results are copied to the CPU."""
        with torch.no_grad(), on_device(self._device):
            results = self._results(feed)
        return tuple(from_torch(result) for result in results)

    def _results(self, feed: Feed) -> Sequence[torch.Tensor]:
        way = self._inputs
        if not isinstance(way, Guarded):
            values = [to_torch(value).to(self._device) for value in feed]
            return self._function(*(values if way is None else with_strides(values, way.seed)))
        if not _KNOWN.issuperset(value.dtype for value in feed):
            raise NotImplementedError("an element type has no lowering")
        named = dict(zip(self._names, feed, strict=True))
        types = {name: value.dtype for name, value in named.items() if value.dtype == "bfloat16"}
        arrays = {name: value.array for name, value in named.items()}
        return run_guarded(self._function, arrays, types, way.place, way.fill)


class NoisyInductorSession(InductorSession):
    """A function that computes with noise: the last tensor of a feed is the number of the noise.

    `differentiate` makes the function, given what moves its constants.
    """

    def __init__(
        self,
        differentiate: Callable[[Callable[[torch.Tensor], torch.Tensor]], Callable[..., Sequence[torch.Tensor]]],
        device: str,
    ) -> None:
        super().__init__(lambda *values: values, device)
        self._differentiate = differentiate

    def _results(self, feed: Feed) -> Sequence[torch.Tensor]:
        """Compute with the noise that the last tensor selects."""
        *own, last = feed
        number, places = int(last.array), itertools.count()

        def move(value: torch.Tensor) -> torch.Tensor:
            return moved(value, number, next(places))

        function = self._differentiate(move)
        values = [move(to_torch(value).to(self._device)) for value in own]
        with ResultNoise(number, next(places)):
            return function(*values)


def function_of(source: str, constants: Mapping[str, torch.Tensor]) -> Callable[..., Any]:
    """Return the function `program` of a lowered program with these constants."""
    space: dict[str, Any] = {"torch": torch, "np": np, **constants}
    exec(compile(source, "program.py", "exec"), space)
    function: Callable[..., Any] = space["program"]
    return function


def to_torch(value: Tensor) -> torch.Tensor:
    """Return a copy of `value` as a tensor of torch. Raises NotImplementedError for types without a lowering."""
    if value.dtype not in _KNOWN:
        raise NotImplementedError(f"element type {value.dtype} has no lowering")
    return tensor(value.array, value.dtype)


def from_torch(value: torch.Tensor) -> Tensor:
    """Return `value` with numpy's storage."""
    array, is_bfloat16 = runner.from_torch(value)
    return Tensor("bfloat16" if is_bfloat16 else numpy_name(array.dtype), array)


def _backend(transform: Any, level: str) -> Any:  # noqa: ANN401 - one of `TRANSFORMS`, and a backend
    match transform:
        case Decomposed(seed=seed, share=share):
            return decomposing(level, seed, share)
        case Related(seed=seed, share=share):
            return relating(level, seed, share)
    return backend_for(level)


def _zeros(dtype: str, shape: Sequence[int | str | None] | None) -> torch.Tensor:
    if dtype not in _KNOWN:
        raise NotImplementedError(f"element type {dtype} has no lowering")
    if shape is None or not all(isinstance(size, int) for size in shape):
        raise NotImplementedError("an input without fixed sizes has no lowering")
    return torch.zeros([size for size in shape if isinstance(size, int)], dtype=getattr(torch, dtype))


def compiled(function: Any, backend: Any, given: Sequence[torch.Tensor], device: str = "cpu") -> Any:  # noqa: ANN401
    """Compile `function` by `backend` for tensors like those `given`, without running the result, and return it.

    If some of them require gradients, it is compiled for training; torch may compile the backward pass at its first
    call.
    """
    compiling = True

    def compile_graph(graph: Any, inputs: Any) -> Any:  # noqa: ANN401
        made = backend(graph, inputs)

        def call(*values: Any) -> Any:  # noqa: ANN401
            if compiling:
                raise _CompiledError
            return made(*values)

        return call

    made = compile_program(function, compile_graph)
    try:
        with torch.set_grad_enabled(any(value.requires_grad for value in given)), on_device(device):
            made(*given)
    except _CompiledError:
        pass
    compiling = False
    return made


def _set(name: str, value: object) -> None:
    owner, _, last = name.rpartition(".")
    setattr(getattr(settings, owner) if owner else settings, last, value)


def _need_compiler() -> None:
    """Raise UsageError when there is no C++ compiler, without which Inductor can only generate Python code."""
    name = os.environ.get("CXX", "g++")
    if shutil.which(name) is None:
        raise UsageError(f"Inductor needs a C++ compiler and finds no '{name}'; install g++ or set CXX")
