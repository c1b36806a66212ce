"""ONNX Runtime in the worker: observation of sessions and checks before their start, besides the calls of the
runner."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from miscompile.base.dtypes import BY_CODE, DTYPES
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor, numpy_name
from miscompile.targets import ort_values
from miscompile.targets.devices import Gate, IdleDeviceError, NoDeviceError, lacks_cuda
from miscompile.targets.external import store
from miscompile.targets.guards import Guarded, GuardedArray
from miscompile.targets.onnxruntime import runner
from miscompile.targets.onnxruntime.about import ABOUT
from miscompile.targets.onnxruntime.transforms import TRANSFORMS, OrtBound, OrtConcurrent, OrtExternal, OrtReload
from miscompile.targets.presentations import own_transform
from miscompile.targets.scratch import scratch

_MODIFIED = re.compile(r"GraphTransformer (\S+) modified: 1")

PLACES = ("session.record_ep_graph_assignment_info", "1")
"""The option by which a session records the provider of each node."""

_OBSERVED = frozenset((*ABOUT.passes, *ABOUT.rules))
_SILENT, _VERBOSE = 4, 0


class OnnxRuntime:
    """Builds sessions of the CPU execution provider, or of a device's provider with the CPU's as the fallback."""

    def __init__(self) -> None:
        self._gate = Gate(ABOUT.name, {"cuda": _lacks_cuda})
        ort.disable_telemetry_events()
        ort.set_default_logger_severity(_SILENT)

    def build(self, program: Program, build: Build) -> "OnnxSession":
        """Compile `program`; passes in `build.disabled` are off. One of `TRANSFORMS` may change it.

        Raises NoDeviceError for a device that is not available, IdleDeviceError when all nodes would run on the CPU
        instead, SpecError for a transform with invalid options.
        """
        self._gate.pass_for(build.device)
        options, disabled = _options(build), build.disabled
        own = own_transform(build.transform, TRANSFORMS)
        if isinstance(own, OrtBound):
            options.enable_cpu_mem_arena = options.enable_mem_pattern = True
        match own:
            case OrtReload(format=kind) if build.device == "cpu":
                with scratch() as folder:
                    session = runner.start_reloaded(program.payload, options, disabled, str(folder), kind)
            case OrtExternal(seed=seed):
                with scratch() as folder:
                    path = str(folder / "model.onnx")
                    store(onnx.load_model_from_string(program.payload), path, seed, shapes_too=False)
                    session = runner.start_on(build.device, path, options, disabled)
            case Guarded(place=place, fill=fill, taps=taps) if build.device == "cpu":
                payload = runner.tapped(program.payload) if taps else program.payload
                session, held = runner.start_guarded(payload, options, build.level, disabled, place, fill)
                return OnnxSession(session, program, own, held)
            case _:
                session = runner.start_on(build.device, program.payload, options, disabled)
        if build.device != "cpu":
            _require_place(session, runner.PROVIDERS[build.device])
        return OnnxSession(session, program, own if isinstance(own, OrtBound | OrtConcurrent) else None)

    def fired(self, log: str) -> tuple[str, ...]:
        """Transformers that report a modification in the verbose log and can be switched off, each once, in order.

        The rewrite rules run inside two rule-based transformers and are not logged individually, so the transformers
        are returned.
        """
        return tuple(name for name in dict.fromkeys(_MODIFIED.findall(log)) if name in _OBSERVED)


def _options(build: Build) -> ort.SessionOptions:
    """Return the runner's options, and those that make a session log its transformers."""
    options = runner.session_options(build.level, build.threads)
    if build.observe:
        options.log_severity_level = _VERBOSE
    if build.device != "cpu":
        options.add_session_config_entry(*PLACES)
    return options


def _lacks_cuda() -> list[str]:
    """Return CUDA's missing requirements; when nothing is missing, load the libraries of pip packages that its
    provider needs."""
    found = [lacks_cuda()]
    if runner.PROVIDERS["cuda"] not in ort.get_available_providers():
        found.append(f"onnxruntime {ort.__version__} has no CUDA build, pip install onnxruntime-gpu in its place")
    if not any(found) and hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    return found


def _require_place(session: Any, provider: str) -> None:  # noqa: ANN401 - an extension type
    """Raise NoDeviceError when `provider` was left out of the session, IdleDeviceError when it got no node.

    ONNX Runtime omits a provider whose libraries do not load and only warns. Older releases do not report the
    provider of each node; with them a session that only uses the CPU cannot be detected.
    """
    if provider not in session.get_providers():
        raise NoDeviceError(
            f"onnxruntime cannot build here: {provider} does not load; its libraries come with "
            "pip install 'onnxruntime-gpu[cuda,cudnn]'"
        )
    ask = getattr(session, "get_provider_graph_assignment_info", None)
    if ask is not None and all(part.ep_name != provider for part in ask()):
        raise IdleDeviceError(f"{provider} takes no node of this model")


class OnnxSession:
    """A built session; `held` is the memory of its initializers, where that is ours."""

    def __init__(
        self,
        session: Any,  # noqa: ANN401 - an extension type
        program: Program,
        use: OrtBound | OrtConcurrent | Guarded | None = None,
        held: Sequence[tuple[GuardedArray, ort.OrtValue]] = (),
    ) -> None:
        self._session, self._use, self._held = session, use, held
        self._inputs = [port.name for port in program.inputs]
        self._outputs = [port.name for port in program.outputs]
        self._all_plain = _all_plain(program)

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed."""
        feeds = {name: value.array for name, value in zip(self._inputs, feed, strict=True)}
        if self._all_plain:
            results = self._run(feeds)
            return tuple([None if result is None else _wrap(np.asarray(result)) for result in results])
        kinds = {name: DTYPES[value.dtype].code for name, value in zip(self._inputs, feed, strict=True)}
        types = {name: kind for name, kind in kinds.items() if kind in ort_values.WIDTHS}
        found = self._run_words(feeds, types)
        return tuple([None if one is None else Tensor(BY_CODE[one[0]].name, one[1]) for one in found])

    def _run_words(self, feeds: dict[str, Array], types: dict[str, int]) -> "list[tuple[int, Array] | None]":
        """Run on a feed with element types that numpy lacks, whose memory is not guarded."""
        if isinstance(self._use, Guarded):
            return runner.run_filled(self._session, self._outputs, feeds, types, self._held, self._use.fill)
        return ort_values.run_words(self._session, self._outputs, feeds, types)

    def _run(self, feeds: dict[str, Array]) -> "list[Array | None]":
        """Run on one feed in the way that the transform asks for."""
        match self._use:
            case OrtBound():
                return runner.run_bound(self._session, self._outputs, feeds)
            case OrtConcurrent(threads=threads):
                return runner.run_at_once(self._session, self._outputs, feeds, threads)
            case Guarded(place=place, fill=fill):
                return runner.run_guarded(self._session, self._outputs, feeds, self._held, place, fill)
            case _:
                return ort_values.run_arrays(self._session, self._outputs, feeds)


_PLAIN = frozenset(name for name, info in DTYPES.items() if info.code not in ort_values.WIDTHS)
"""Element types that numpy itself has."""


def _all_plain(program: Program) -> bool:
    return _PLAIN.issuperset([port.dtype for port in (*program.inputs, *program.outputs)])


def _wrap(array: "np.ndarray[Any, Any]") -> Tensor:
    return Tensor(numpy_name(array.dtype), array)
