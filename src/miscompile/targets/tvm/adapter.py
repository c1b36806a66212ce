"""TVM in the worker: ONNX through the Relax importer, `tvm.compile`, and the Relax virtual machine.

`tvm_ffi` imports PyTorch when it is installed, only to fix the order in which two libraries are loaded. That takes
two seconds and 150 MB, so the adapter hides PyTorch.
"""

import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import onnx

from miscompile.base.dtypes import DTYPES, SMALL
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.foreign import from_foreign
from miscompile.targets.devices import Gate, cuda_capability, preload
from miscompile.targets.tvm.about import ABOUT
from miscompile.targets.tvm.relax.transforms import Splice, chosen, entry, relax_options, splice_options
from miscompile.targets.tvm.sequences import with_arguments

_modules: dict[str, Any] = sys.modules
_modules.setdefault("torch", None)  # which makes `import torch` raise ImportError
preload("libcudart.so.*")  # TVM's CUDA runtime needs it when it is loaded, and so does its compiler

import tvm  # noqa: E402
import tvm_ffi  # noqa: E402
from tvm import relax  # noqa: E402

from miscompile.targets.tvm import runner  # noqa: E402
from miscompile.targets.tvm.cuda import lacks_tvm_cuda  # noqa: E402

_lacking = ""
"""Why this release cannot rewrite Relax modules; empty if it can."""
try:
    from miscompile.targets.tvm.relax.functions import wrap
    from miscompile.targets.tvm.relax.noise import RelaxNoise, instrumented
    from miscompile.targets.tvm.relax.splice import splice_all
    from miscompile.targets.tvm.relax.text import parse
except ImportError as error:  # TVM before 0.26 has other classes of Relax
    _lacking = f"TVM {tvm.__version__} cannot rewrite Relax modules: {error}"

_SWITCHABLE = frozenset(ABOUT.passes)


@tvm.instrument.pass_instrument
class _Observer:
    """Collects the names of the switchable passes that change the module, each once, in order."""

    def __init__(self) -> None:
        self.changed: dict[str, None] = {}
        self._before: list[int] = []

    def run_before_pass(self, module: Any, info: Any) -> None:  # noqa: ANN401 - TVM's objects
        if info.name in _SWITCHABLE:
            self._before.append(tvm_ffi.structural_hash(module))

    def run_after_pass(self, module: Any, info: Any) -> None:  # noqa: ANN401 - TVM's objects
        if info.name in _SWITCHABLE and tvm_ffi.structural_hash(module) != self._before.pop():
            self.changed[info.name] = None


class Tvm:
    """Builds executables for the CPU, or for CUDA with the CPU as its host."""

    def __init__(self) -> None:
        self._gate = Gate(ABOUT.name, {"cuda": lacks_tvm_cuda})
        self._changed: tuple[str, ...] = ()

    def build(self, program: Program, build: Build) -> "TvmSession":
        """Compile `program`; passes in `build.disabled` are off, and at level `off` all passes that can be switched
        off.

        A transform `relax{...}` moves parts of the imported module into functions, a transform `splice{...}` splices
        patterns into it; a program without a place for one does not change. Passes of `build.sequence` run before
        those of the level, with the passes that they presuppose. Raises SpecError for a transform with invalid
        options, NoDeviceError for a device that is not available, NotImplementedError for a transform that this release
        cannot apply.
        """
        self._gate.pass_for(build.device)
        module = runner.read_model(onnx.ModelProto.FromString(program.payload))
        wrapped, spliced = relax_options(build.transform), splice_options(build.transform)
        if _lacking and (wrapped or spliced):
            raise NotImplementedError(_lacking)
        if wrapped:
            module = wrap(module, wrapped.seed, wrapped.count, wrapped.depth, wrapped.rewrite)
        noises: tuple[RelaxNoise, ...] = ()
        if spliced:
            module = _spliced(module, spliced)
            module, noises = instrumented(module) if spliced.noise else (module, ())
        executable = self.compiled(module, build)
        device = tvm.cuda(0) if build.device == "cuda" else tvm.cpu()
        machine = relax.VirtualMachine(executable, device)
        if spliced and spliced.noise:
            return NoisySession(machine, device, noises)
        return TvmSession(machine, device)

    def compiled(self, module: Any, build: Build) -> Any:  # noqa: ANN401 - TVM's objects
        """Return the executable of a Relax module, built by the settings of `build`, without its transform."""
        disabled = _SWITCHABLE if build.level == "off" else build.disabled
        observer = _Observer() if build.observe else None
        self._changed = ()
        target, pipeline = pipeline_of(build)
        instruments = [observer] if observer else []
        executable = runner.build_module(module, build.level, disabled, target, pipeline, instruments)
        if observer:
            self._changed = tuple(observer.changed)
        return executable

    def fired(self, log: str) -> tuple[str, ...]:
        """Switchable passes that changed the module in the last observed build, inside other passes or directly."""
        return self._changed


def _spliced(module: Any, splice: Splice) -> Any:  # noqa: ANN401 - TVM's objects
    """Return `module` with the patterns of `splice`; unchanged if there is no place for one."""
    patterns = [_pattern(splice.library, found["name"]) for found in chosen(splice)]
    return splice_all(module, patterns, splice.seed, splice.call)


@lru_cache(256)
def _pattern(library: str, name: str) -> Any:  # noqa: ANN401 - TVM's objects
    """Return the module of a pattern; cached, because reading one takes longer than the rest of a build."""
    found = entry(library, name)
    return parse(found["script"], found["constants"])


def pipeline_of(build: Build, arch: str = "") -> tuple[Any, Any]:
    """Return target and passes of a build: its sequence, the graph passes of its level, and those that lower.

    For CUDA they are for the architecture `arch`, by default that of this machine's device.
    """
    level, target = build.level, runner.cpu_target(build.level)
    if build.device == "cuda":
        target = runner.cuda_target(target, arch or "sm_{}{}".format(*cuda_capability()))
        pipeline = runner.behind(runner.cuda_passes(level), runner.cuda_lowering(level, target))
    else:
        pipeline = runner.behind(runner.graph_passes(level), runner.lowering(level, target))
    return target, runner.behind(with_arguments(build.sequence), pipeline)


class TvmSession:
    """A virtual machine with a compiled program, on `device`."""

    def __init__(self, machine: Any, device: Any) -> None:  # noqa: ANN401 - TVM's objects
        self._machine, self._device = machine, device

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed; results are copied to the CPU."""
        return self.called(map(_native, feed))

    def called(self, given: Iterable[Array]) -> tuple[Tensor | None, ...]:
        """Run on arrays."""
        return tuple(map(_wrap, runner.call(self._machine, given, self._device)))


class NoisySession(TvmSession):
    """A session of a program instrumented with noise: the last tensor of a feed is the number of the noise."""

    def __init__(self, machine: Any, device: Any, noises: "tuple[RelaxNoise, ...]") -> None:  # noqa: ANN401
        super().__init__(machine, device)
        self._noises = noises

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on a feed without its last tensor, with the noise that this tensor selects."""
        *own, number = feed
        which = int(number.array)
        rng = np.random.default_rng(which)
        given = [_native(tensor) for tensor in own] + [noise.drawn(which, rng) for noise in self._noises]
        return self.called(given)


def _native(tensor: Tensor) -> Array:
    kind = DTYPES[tensor.dtype].code
    if tensor.dtype in SMALL and kind not in runner.FOREIGN:
        raise NotImplementedError(f"elements of {tensor.dtype} cannot be fed")
    return runner.to_array(tensor.array, kind)


def _wrap(value: Any) -> Tensor:  # noqa: ANN401 - TVM's objects
    return from_foreign(runner.from_tvm(value))
