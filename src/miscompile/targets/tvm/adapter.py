"""TVM in the worker: ONNX through the Relax importer, `tvm.compile`, and the Relax virtual machine.

`tvm_ffi` imports PyTorch when it is installed, only to settle the order in which two libraries are loaded; that costs
two seconds and 150 MB, so here it is made to look absent.
"""

import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from miscompile.base.dtypes import DTYPES, SMALL
from miscompile.core.case import Feed, Port, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor
from miscompile.targets.devices import Gate, preload
from miscompile.targets.tvm.about import ABOUT
from miscompile.targets.tvm.pipelines import CPU_ONLY, FAST_BUILD, FULL_BUILD, GRAPH_PASSES, UNCHECKED
from miscompile.targets.tvm.relax.splice_transform import Splice, chosen, entry, splice_options
from miscompile.targets.tvm.relax.wrap_transform import relax_options
from miscompile.targets.tvm.sequences import PASSES, completed

_modules: dict[str, Any] = sys.modules
_modules.setdefault("torch", None)  # which makes `import torch` raise ImportError
preload("libcudart.so.*")  # TVM's CUDA runtime needs it when it is loaded, and so does its compiler

import tvm  # noqa: E402
import tvm_ffi  # noqa: E402
from tvm import relax  # noqa: E402
from tvm.relax.frontend.onnx import from_onnx  # noqa: E402

from miscompile.targets.tvm.cuda import cuda_pipeline, cuda_target, lacks_tvm_cuda  # noqa: E402
from miscompile.targets.tvm.relax.functions import wrap  # noqa: E402
from miscompile.targets.tvm.relax.noise import Noise, instrumented  # noqa: E402
from miscompile.targets.tvm.relax.splice import splice_all  # noqa: E402
from miscompile.targets.tvm.relax.text import parse  # noqa: E402

_SWITCHABLE = frozenset(ABOUT.passes)
_FOREIGN = {
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "float8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "float8e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
}
"""Element types that TVM's numpy bridge takes from `ml_dtypes`."""


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
        self._fast, self._native = tvm.target.Target(FAST_BUILD), tvm.target.Target(FULL_BUILD)
        self._changed: tuple[str, ...] = ()

    def build(self, program: Program, build: Build) -> "TvmSession":
        """Compile `program`; passes named in `build.disabled` stay off, at level `off` all that can be off.

        A transform `relax{...}` moves parts of the imported module into functions, a transform `splice{...}` puts
        patterns into it; a program that has no place for one stays as it is. Passes of `build.sequence` run before
        those of the level, with what they presuppose. Raises SpecError for a transform of other options, NoDeviceError
        for a device that is not here.
        """
        self._gate.pass_for(build.device)
        model = onnx.ModelProto.FromString(program.payload)
        module = from_onnx(model, shape_dict={port.name: list(port.shape or ()) for port in _empty(program.inputs)})
        wrapped = relax_options(build.transform)
        if wrapped:
            module = wrap(module, wrapped.seed, wrapped.count, wrapped.depth, wrapped.rewrite)
        spliced = splice_options(build.transform)
        noises: tuple[Noise, ...] = ()
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
        """Return the executable of a Relax module, built as `build` says; its transform is not looked at."""
        target = self._native if build.level == "native" else self._fast
        if build.device == "cuda":
            target = cuda_target(target)
        disabled = _SWITCHABLE if build.level == "off" else build.disabled
        observer = _Observer() if build.observe else None
        self._changed = ()
        with tvm.transform.PassContext(
            opt_level=3,
            disabled_pass=sorted(disabled),
            instruments=[observer] if observer else [],
            config={UNCHECKED: build.level == "off"},
        ):
            executable: Any = relax.build(
                module,
                target=target,
                relax_pipeline=_pipeline(build, target),
                exec_mode="compiled" if build.level == "compiled" else "bytecode",
            )
        if observer:
            self._changed = tuple(observer.changed)
        return executable

    def passes(self) -> tuple[str, ...]:
        """Names that `disabled_pass` knows and that may be off."""
        return ABOUT.passes

    def fired(self, log: str) -> tuple[str, ...]:
        """Switchable passes that changed the module in the last observed build, inside others or on their own."""
        return self._changed


def _spliced(module: Any, splice: Splice) -> Any:  # noqa: ANN401 - TVM's objects
    """Return `module` with the patterns of `splice` in it, as it is where there is no place for one."""
    patterns = [_pattern(splice.library, found["name"]) for found in chosen(splice)]
    return splice_all(module, patterns, splice.seed, splice.call)


@lru_cache(256)
def _pattern(library: str, name: str) -> Any:  # noqa: ANN401 - TVM's objects
    """Return the module of a pattern; remembered, because reading one takes longer than all the rest."""
    found = entry(library, name)
    return parse(found["script"], found["constants"])


def _empty(ports: tuple[Port, ...]) -> list[Port]:
    """Return the ports with a size of zero, which the importer takes for unknown sizes unless it is told."""
    return [port for port in ports if port.shape and 0 in port.shape and all(isinstance(d, int) for d in port.shape)]


def _pipeline(build: Build, target: Any) -> Any:  # noqa: ANN401 - TVM's objects
    """Return the Relax passes of a build: its sequence, the graph passes of its level, and those that lower."""
    level = build.level
    named = GRAPH_PASSES if level in ("full", "native") else ()
    if build.device == "cuda":
        named = tuple(one for one in named if one[0] not in CPU_ONLY)
        lowering = cuda_pipeline(level, target)
    else:
        lowering = relax.get_pipeline("default") if level in ("off", "default") else relax.get_default_pipeline(target)
    graph = [_passes(named)] if named else []
    if build.sequence:
        graph.insert(0, _passes((name, PASSES[name]) for name in completed(build.sequence)))
    return tvm.transform.Sequential([*graph, lowering]) if graph else lowering


def _passes(named: Iterable[tuple[str, tuple[Any, ...]]]) -> Any:  # noqa: ANN401 - TVM's objects
    return tvm.transform.Sequential([getattr(relax.transform, name)(*given) for name, given in named])


class TvmSession:
    """A virtual machine with a compiled program, on `device`."""

    def __init__(self, machine: Any, device: Any) -> None:  # noqa: ANN401 - TVM's objects
        self._main, self._device = machine["main"], device
        self._machine = machine  # the function does not keep its machine alive

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed; results come back to the CPU."""
        return self.called(map(_native, feed))

    def called(self, given: Iterable[Array]) -> tuple[Tensor | None, ...]:
        """Run on arrays."""
        result = self._main(*(tvm.runtime.tensor(one, self._device) for one in given))
        single = isinstance(result, tvm_ffi.Shape) or hasattr(result, "numpy")  # programs of torch return tuples always
        return tuple(map(_wrap, (result,) if single else result))


class NoisySession(TvmSession):
    """The same with a program that takes noise: the last tensor of a feed is a number that tells which."""

    def __init__(self, machine: Any, device: Any, noises: tuple[Noise, ...]) -> None:  # noqa: ANN401
        super().__init__(machine, device)
        self._noises = noises

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed but its last tensor, with the noise that this one names."""
        *own, number = feed
        which = int(number.array)
        rng = np.random.default_rng(which)
        given = [_native(tensor) for tensor in own] + [noise.drawn(which, rng) for noise in self._noises]
        return self.called(given)


def _native(tensor: Tensor) -> Array:
    kind = _FOREIGN.get(tensor.dtype)
    if kind is None and tensor.dtype in SMALL:
        raise NotImplementedError(f"elements of {tensor.dtype} cannot be fed")
    return tensor.array if kind is None else tensor.array.view(kind)


def _wrap(value: Any) -> Tensor:  # noqa: ANN401 - TVM's objects
    """Copy an output. The value of ONNX's Shape is no tensor in Relax but a tuple of integers."""
    if isinstance(value, tvm_ffi.Shape):
        return Tensor("int64", np.asarray(list(value), np.int64))
    array: Array = value.numpy()
    name = array.dtype.name.replace("_", "")
    storage = DTYPES[name].storage if name in DTYPES else array.dtype
    return Tensor(name, array if array.dtype == storage else array.view(storage))
