"""tinygrad in the worker.

A model is read from memory and executed lazily: kernels are generated when the outputs of the first feed are asked
for, so the cost of compiling appears in the run. Further feeds find the schedule and the kernels in tinygrad's own
caches, which are emptied before each build.
"""

import subprocess
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import tinygrad.codegen
import tinygrad.engine.realize
import tinygrad.schedule
from tinygrad import Device, Tensor, dtypes
from tinygrad.helpers import Context
from tinygrad.nn.onnx import OnnxRunner
from tinygrad.runtime.support.compiler_cpu import ClangCompiler

from miscompile.base.child import collect
from miscompile.base.dtypes import SMALL
from miscompile.base.errors import SpecError
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor as Value
from miscompile.core.tensor import numpy_name
from miscompile.targets.devices import Gate, lacks_cuda
from miscompile.targets.tinygrad.about import ABOUT, CUDA, DEVICES
from miscompile.targets.tinygrad.environment import require_clang
from miscompile.targets.tinygrad.names import widen
from miscompile.targets.tinygrad.rules import Switch, rules
from miscompile.targets.tinygrad.stages import Stages

_CACHES = (
    tinygrad.codegen.to_program_cache,
    tinygrad.engine.realize.runtime_cache,
    tinygrad.engine.realize.local_size_cache,
    tinygrad.schedule.schedule_cache,
)
"""What tinygrad remembers of schedules and kernels; emptied, or else its rewriting would not run."""

_REWRITES = tuple(
    getattr(import_module(module), name)
    for module, name in (
        ("tinygrad.uop.divandmod", "fold_divmod_general"),
        ("tinygrad.schedule.indexing", "_apply_reshape"),
        ("tinygrad.schedule.indexing", "apply_movement_op"),
        ("tinygrad.codegen.late.coalesce", "_drop_valid_stmts"),
    )
)
"""Functions that remember results of rewriting, which depend on the rules that are on."""

_OBJECTS = 4096
"""Results of clang that are kept. The same C code gives the same machine code, and clang takes most of the time."""


class ClangError(RuntimeError):
    """Clang does not take the C code that tinygrad has generated; the message holds clang's errors."""


class TinyGrad:
    """Builds ONNX runners.

    `device` is where kernels run: clang (C code), x86 (tinygrad's own assembler) or python (its interpreter);
    `reference` the same for level off, where it may differ. Raises SpecError for another device, UsageError when the
    device lacks a program that it needs.
    """

    def __init__(self, device: str = "clang", reference: str = "") -> None:
        for name in (device, reference or device):
            if name not in DEVICES:
                raise SpecError(f"tinygrad has no device '{name}'; there are: {', '.join(DEVICES)}")
        self._gate = Gate(ABOUT.name, {"cuda": _lacks_cuda})
        ClangCompiler.compile = _remembering(ClangCompiler.compile)
        self._devices = {"full": DEVICES[device], "off": DEVICES[reference or device]}
        if "CPU" in {name.partition(":")[0] for name in self._devices.values()}:
            require_clang()
            Device["CPU"]  # makes its helper programs once, for all workers
        found = {id(pattern): name for name, pattern in rules() if name in ABOUT.passes}
        self._switch, self._stages = Switch(found), Stages()

    def build(self, program: Program, build: Build) -> "TinyGradSession":
        """Read `program`; whatever it runs from now on is compiled as `build` says.

        Raises SpecError for an unknown level, NoDeviceError for a device that is not here.
        """
        self._gate.pass_for(build.device)
        if build.level not in ABOUT.levels:
            raise SpecError(f"tinygrad has no level '{build.level}'; it has: {', '.join(ABOUT.levels)}")
        for cache in _CACHES:
            cache.clear()
        for function in _REWRITES:
            function.cache_clear()
        off = widen(frozenset(ABOUT.passes) if build.level == "off" else build.disabled)
        self._switch.set(off & self._switch.names, build.observe)
        self._stages.set(off, build.observe)
        place = self._devices[build.level] if build.device == "cpu" else CUDA
        context = {"DEV": place, **self._stages.context(off)}
        with Context(**context):
            return TinyGradSession(program, context)

    def passes(self) -> tuple[str, ...]:
        """Names of the rules and stages that can be switched off."""
        return ABOUT.passes

    def fired(self, log: str) -> tuple[str, ...]:
        """Rules that matched, and stages that changed something, since the last build; the log says nothing of it."""
        del log
        return (*self._switch.fired, *self._stages.fired)


def _lacks_cuda() -> list[str]:
    """Say what CUDA lacks; every wheel of tinygrad can build for it, with NVIDIA's own libraries from the system."""
    found = [lacks_cuda()]
    if not any(found):
        try:
            Device[CUDA]
        except (AttributeError, ImportError, OSError, RuntimeError) as error:
            found.append(f"tinygrad does not open its device {CUDA}: {error}")
    return found


class TinyGradSession:
    """A model that has been read."""

    def __init__(self, program: Program, context: dict[str, Any]) -> None:
        self._program, self._context = program, context
        self._runner: OnnxRunner | None = self._read()

    def run(self, feed: Feed) -> tuple[Value | None, ...]:
        """Compile what has not been compiled yet, and run on `feed`.

        Each feed has a runner of its own, because a runner remembers inputs that it has turned into constants.
        """
        with Context(**self._context):
            runner = self._runner or self._read()
            self._runner = None
            ports = self._program.inputs
            results = runner({port.name: _enter(value) for port, value in zip(ports, feed, strict=True)})
            outputs = [results[port.name] for port in self._program.outputs]
            lazy = [output for output in outputs if isinstance(output, Tensor)]
            if lazy:
                Tensor.realize(*lazy)
            return tuple(_leave(output) for output in outputs)

    def _read(self) -> OnnxRunner:
        # Bytes on the device PYTHON are read as a file is: each constant is copied to the device on its own.
        return OnnxRunner(Tensor(self._program.payload, device="PYTHON"))


def _remembering(compile_source: Callable[[Any, str], bytes]) -> Callable[[Any, str], bytes]:
    """Return tinygrad's call of clang with a memory, and with clang's errors in the message of a failure."""

    @lru_cache(_OBJECTS)
    def remembered(compiler: Any, source: str) -> bytes:  # noqa: ANN401 - a compiler of tinygrad's
        try:
            return compile_source(compiler, source)
        except subprocess.CalledProcessError as error:
            again = collect(error.cmd, given=source.encode())
            lines = [line for line in again.errors().splitlines() if "error:" in line]
            raise ClangError("\n".join(lines) or str(error)) from None

    return remembered


def _enter(value: Value) -> Tensor:
    """Wrap an input; brain floats, which numpy lacks, come as the bytes that they are."""
    if value.dtype in SMALL:
        raise NotImplementedError(f"elements of {value.dtype} cannot be fed")
    array = np.ascontiguousarray(value.array).reshape(value.shape)
    if value.dtype == "bfloat16":
        return Tensor(array.tobytes(), dtype=dtypes.bfloat16, device="PYTHON").reshape(value.shape).to(Device.DEFAULT)
    return Tensor(array)


def _leave(output: Any) -> Value | None:  # noqa: ANN401 - a tensor, a sequence, or nothing
    """Copy an output; raises TypeError for one that is no tensor."""
    if output is None:
        return None
    if isinstance(output, bool | int | float):  # Size and the like give Python numbers
        return Value(numpy_name(np.asarray(output).dtype), np.asarray(output))
    if not isinstance(output, Tensor):
        raise TypeError(f"the output is a {type(output).__name__}, not a tensor")
    if output.dtype == dtypes.bfloat16:
        return Value("bfloat16", output.bitcast(dtypes.uint16).numpy().copy())
    array = output.numpy().copy()
    return Value(numpy_name(array.dtype), array)
