"""IREE in the worker: ONNX through torch-mlir's importer, compiled in this process, run on the local-sync device."""

from typing import Any

from iree import runtime

from miscompile.base.dtypes import BY_CODE, DTYPES, SMALL
from miscompile.base.errors import SpecError
from miscompile.core.case import Feed, Port, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor, numpy_name
from miscompile.targets.devices import Gate, cuda_capability, lacks_cuda
from miscompile.targets.iree import runner
from miscompile.targets.iree.about import ABOUT
from miscompile.targets.iree.flags import CPU, cuda_flags, flags

_NAMES = {foreign: BY_CODE[code].name for code, foreign in runner.FOREIGN.items()}


class Iree:
    """Compiles each program in a separate session, without state between builds."""

    def __init__(self) -> None:
        runner.configure()
        self._gate = Gate(ABOUT.name, {"cuda": _lacks_cuda})
        self._configs: dict[str, runtime.Config] = {}

    def build(self, program: Program, build: Build) -> "IreeSession":
        """Import and compile `program`.

        Raises SpecError, NoDeviceError, IreeCompileError, and whatever the importer raises.
        """
        if build.level not in ABOUT.levels:
            raise SpecError(f"IREE has no level '{build.level}'; it has: {', '.join(ABOUT.levels)}")
        self._gate.pass_for(build.device)
        device = CPU if build.device == "cpu" else cuda_flags(cuda_capability())
        bytecode = runner.compile_text(runner.import_text(program.payload), flags(build.level, build.disabled, device))
        if (
            build.device not in self._configs
        ):  # not in the constructor, because a device belongs to the process that uses it
            self._configs[build.device] = runtime.Config(runner.DRIVERS[build.device])
        return IreeSession(self._configs[build.device], bytecode, program)

    def fired(self, log: str) -> tuple[str, ...]:
        """Nothing, because the effect of a flag cannot be observed."""
        del log
        return ()


def _lacks_cuda() -> list[str]:
    """Return CUDA's missing requirements; IREE's wheels support it, but other builds may not."""
    found = [lacks_cuda()]
    if runner.DRIVERS["cuda"] not in runtime.query_available_drivers():
        found.append("this iree-base-runtime is built without CUDA, the one on PyPI has it")
    return found


class IreeSession:
    """A compiled module, loaded into a context of its own."""

    def __init__(self, config: runtime.Config, bytecode: bytes, program: Program) -> None:
        self._context, self._program = runner.load(bytecode, config), program

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed."""
        results = runner.call(self._context, map(_enter, feed))
        return tuple(_leave(result, port) for result, port in zip(results, self._program.outputs, strict=True))


def _enter(value: Tensor) -> Array:
    """Return an input as an array of the runtime."""
    kind = DTYPES[value.dtype].code
    if value.dtype in SMALL and kind not in runner.FOREIGN:
        raise NotImplementedError(f"elements of {value.dtype} cannot be fed")
    return runner.to_array(value.array, kind)


def _leave(result: Any, port: Port) -> Tensor:  # noqa: ANN401 - a device array
    """Copy an output."""
    kind = DTYPES[port.dtype].code
    if port.dtype in SMALL and kind not in runner.FOREIGN:
        raise NotImplementedError(f"elements of {port.dtype} cannot be read")
    array = runner.from_device(result, kind)
    if array.dtype in _NAMES:
        name = _NAMES[array.dtype]
        return Tensor(name, array.view(DTYPES[name].storage))
    storage = DTYPES[port.dtype].storage
    same = array.dtype == storage and array.dtype.kind in "iu"
    return Tensor(port.dtype if same else numpy_name(array.dtype), array)
