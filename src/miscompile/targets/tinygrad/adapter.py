"""tinygrad in the worker. It executes lazily, so the time of compilation is part of the run of the first feed."""

import subprocess
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tinygrad import Device, Tensor
from tinygrad.helpers import Context

from miscompile.base.child import collect
from miscompile.base.dtypes import SMALL
from miscompile.base.errors import SpecError, UsageError
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor as Value
from miscompile.core.tensor import numpy_name
from miscompile.targets.devices import Gate, lacks_cuda
from miscompile.targets.tinygrad import runner
from miscompile.targets.tinygrad.about import ABOUT, CUDA, DEVICES
from miscompile.targets.tinygrad.environment import require_clang
from miscompile.targets.tinygrad.names import widen
from miscompile.targets.tinygrad.releases import CLANG, THREADS, X86, present, required
from miscompile.targets.tinygrad.switches import Stages, Switch, rules

_OBJECTS = 4096
"""The number of cached results of clang, because clang takes most of the time."""


class ClangError(RuntimeError):
    """Clang rejects the C code that tinygrad has generated; the message contains clang's errors."""


class TinyGrad:
    """Builds ONNX runners.

    `device` selects how kernels run: clang (C code), x86 (tinygrad's assembler) or python (its interpreter);
    `reference` selects the same for level off. Raises SpecError for another device, UsageError when the
    release lacks the device, or the device a program that it needs.
    """

    def __init__(self, device: str = "clang", reference: str = "") -> None:
        for name in (device, reference or device):
            if name not in DEVICES:
                raise SpecError(f"tinygrad has no device '{name}'; there are: {', '.join(DEVICES)}")
        self._gate = Gate(ABOUT.name, {"cuda": _lacks_cuda})
        if "x86" in (device, reference) and not present(*X86):
            raise UsageError("this release of tinygrad has no x86 assembler")
        clang = required(*CLANG)
        clang.compile = _remembering(clang.compile)
        self._devices = {"full": DEVICES[device], "off": DEVICES[reference or device]}
        if "CPU" in {name.partition(":")[0] for name in self._devices.values()}:
            require_clang()
            if not present(*THREADS):
                Device["CPU"]  # builds its helper programs once for all workers
        found = {id(pattern): name for name, pattern in rules() if name in ABOUT.passes}
        self._switch, self._stages = Switch(found), Stages()

    def build(self, program: Program, build: Build) -> "TinyGradSession":
        """Read `program`; later compilations use the settings of `build`.

        Raises SpecError for an unknown level, NoDeviceError for a device that is not available.
        """
        self._gate.pass_for(build.device)
        if build.level not in ABOUT.levels:
            raise SpecError(f"tinygrad has no level '{build.level}'; it has: {', '.join(ABOUT.levels)}")
        off = widen(frozenset(ABOUT.passes) if build.level == "off" else build.disabled)
        place = self._devices[build.level] if build.device == "cpu" else CUDA
        context = runner.switch_off(self._switch, self._stages, off, place, build.observe)
        with Context(**context):
            return TinyGradSession(program, context)

    def fired(self, log: str) -> tuple[str, ...]:
        """Rules that matched, and stages that changed something, since the last build; the log is not needed."""
        del log
        return (*self._switch.fired, *self._stages.fired)


def _lacks_cuda() -> list[str]:
    """Return CUDA's missing requirements; every wheel of tinygrad can build for it, with NVIDIA's libraries from the
    system."""
    found = [lacks_cuda()]
    if not any(found):
        try:
            Device[CUDA]
        except (AttributeError, ImportError, OSError, RuntimeError) as error:
            found.append(f"tinygrad does not open its device {CUDA}: {error}")
    return found


class TinyGradSession:
    """A session of a model that has been read."""

    def __init__(self, program: Program, context: dict[str, Any]) -> None:
        self._program, self._context = program, context
        self._runner: Any = runner.read_model(program.payload)

    def run(self, feed: Feed) -> tuple[Value | None, ...]:
        """Compile what has not been compiled yet, and run on `feed`.

        The model is read again for each feed (see `runner.read_model`).
        """
        with Context(**self._context):
            reader, self._runner = self._runner or runner.read_model(self._program.payload), None
            ports = self._program.inputs
            feeds = {port.name: _enter(value) for port, value in zip(ports, feed, strict=True)}
            outputs = runner.call(reader, [port.name for port in self._program.outputs], feeds)
            return tuple(_leave(output) for output in outputs)


def _remembering(compile_source: Callable[[Any, str], bytes]) -> Callable[[Any, str], bytes]:
    """Return tinygrad's call of clang with a cache, and with clang's errors in the message of a failure."""

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
    """Wrap an input."""
    if value.dtype in SMALL:
        raise NotImplementedError(f"elements of {value.dtype} cannot be fed")
    return runner.to_tensor(value.array, value.dtype == "bfloat16")


def _leave(output: Any) -> Value | None:  # noqa: ANN401 - a tensor, a sequence, or nothing
    """Copy an output; raises TypeError for one that is not a tensor."""
    found = runner.from_output(output)
    if found is None:
        return None
    array, is_bfloat16 = found
    return Value("bfloat16" if is_bfloat16 else numpy_name(array.dtype), array)
