"""ONNX Runtime in the worker.

Sessions are made through the extension module instead of the `InferenceSession` wrapper, whose checks cost as much as a
small graph's compilation. Without memory arena and memory pattern a session builds and runs faster.
"""

import ctypes
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.capi import _pybind_state as native

from miscompile.base.dtypes import BY_CODE, DTYPES
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor, numpy_name
from miscompile.graph.packing import is_packed, pack, packed_size, unpack
from miscompile.targets.devices import Gate, IdleDeviceError, NoDeviceError, lacks_cuda
from miscompile.targets.external import store
from miscompile.targets.onnxruntime.about import ABOUT
from miscompile.targets.onnxruntime.transforms import TRANSFORMS, OrtExternal, OrtReload
from miscompile.targets.presentations import own_transform
from miscompile.targets.scratch import scratch

_LEVELS = {
    "off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "layout": getattr(ort.GraphOptimizationLevel, "ORT_ENABLE_LAYOUT", ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED),
    "full": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_MODIFIED = re.compile(r"GraphTransformer (\S+) modified: 1")
FULL_ACCURACY = ("session.qdq_matmulnbits_accuracy_level", "1")
"""Products with dequantised weights are computed in float32; the default quantises the other operand by design."""

PRECISE_SUMS = ("session.x64quantprecision", "1")
"""Products of bytes are summed without saturation to 16 bits, the default on x86 processors without VNNI."""

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
"""The execution provider that builds for a device. Nodes that another one does not take run on the CPU."""

CUDA_OPTIONS = {"use_tf32": "0", "cudnn_conv_algo_search": "DEFAULT"}
"""Products in float32 as the model says; for convolutions a fixed algorithm instead of the one that wins a race."""

PLACES = ("session.record_ep_graph_assignment_info", "1")
"""The session remembers which provider got which nodes."""

_OBSERVED = frozenset((*ABOUT.passes, *ABOUT.rules))
_SILENT, _VERBOSE = 4, 0


@cache
def _saturates() -> bool:
    """Tell whether this processor is known to sum products of bytes in 16 bits."""
    try:
        told = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return False
    return "avx2" in told and "vnni" not in told


class OnnxRuntime:
    """Builds sessions of the CPU execution provider, or of that of a device with the CPU's behind it."""

    def __init__(self) -> None:
        self._gate = Gate(ABOUT.name, {"cuda": _lacks_cuda})
        ort.disable_telemetry_events()
        ort.set_default_logger_severity(_SILENT)

    def build(self, program: Program, build: Build) -> "OnnxSession":
        """Compile `program`; passes named in `build.disabled` stay off. It may be changed by one of `TRANSFORMS`.

        Raises NoDeviceError for a device that is not here, IdleDeviceError when all nodes would run on the CPU instead,
        SpecError for a transform of other options.
        """
        self._gate.pass_for(build.device)
        match own_transform(build.transform, TRANSFORMS):
            case OrtReload(format=kind) if build.device == "cpu":
                session = _reloaded(program.payload, build, kind)
            case OrtExternal(seed=seed):
                with scratch() as folder:
                    path = str(folder / "model.onnx")
                    store(onnx.load_model_from_string(program.payload), path, seed, shapes_too=False)
                    session = _session(path, _options(build), build)
            case _:
                session = _session(program.payload, _options(build), build)
        return OnnxSession(session, program)

    def passes(self) -> tuple[str, ...]:
        """Names that `disabled_optimizers` knows."""
        return ABOUT.passes

    def fired(self, log: str) -> tuple[str, ...]:
        """Transformers that report a modification in the verbose log and can be switched off, each once, in order.

        The rewrite rules run inside two rule-based transformers and are not logged one by one: their frames are named.
        """
        return tuple(name for name in dict.fromkeys(_MODIFIED.findall(log)) if name in _OBSERVED)


def _session(source: bytes | str, options: ort.SessionOptions, build: Build) -> Any:  # noqa: ANN401 - an extension type
    """Return a session for a model, given as its bytes or by the path of its file."""
    session = native.InferenceSession(options, source, isinstance(source, str), False)
    if build.device == "cpu":
        session.initialize_session([PROVIDERS["cpu"]], [{}], set(build.disabled))
    else:
        names = [PROVIDERS[build.device], PROVIDERS["cpu"]]
        session.initialize_session(names, [CUDA_OPTIONS, {}], set(build.disabled))
        _require_place(session, names[0])
    return session


def _reloaded(payload: bytes, build: Build, kind: str) -> Any:  # noqa: ANN401 - an extension type
    """Optimise as `build` says, save the model in the format `kind`, and return a session that has loaded it."""
    options = _options(build)
    with scratch() as folder:
        path = str(folder / f"model.{kind}")
        options.optimized_model_filepath = path
        options.add_session_config_entry("session.save_model_format", kind.upper())
        _session(payload, options, build)
        plain = replace(build, level="off", disabled=frozenset(), observe=False)
        return _session(path, _options(plain), plain)


def _options(build: Build) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.graph_optimization_level = _LEVELS[build.level]
    options.intra_op_num_threads = build.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _VERBOSE if build.observe else _SILENT
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.add_session_config_entry(*FULL_ACCURACY)
    if _saturates():
        options.add_session_config_entry(*PRECISE_SUMS)
    if build.device != "cpu":
        options.use_deterministic_compute = True
        options.add_session_config_entry(*PLACES)
    return options


def _lacks_cuda() -> list[str]:
    """Say what CUDA lacks, and load the libraries of pip packages that its provider needs when nothing is missing."""
    found = [lacks_cuda()]
    if PROVIDERS["cuda"] not in ort.get_available_providers():
        found.append(f"onnxruntime {ort.__version__} has no CUDA build, pip install onnxruntime-gpu in its place")
    if not any(found) and hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    return found


def _require_place(session: Any, provider: str) -> None:  # noqa: ANN401 - an extension type
    """Raise NoDeviceError when `provider` was left out of the session, IdleDeviceError when it got no node.

    A provider whose libraries do not load is left out with no more than a warning. Older releases do not tell who
    got which nodes; with them nothing is known of a session on which the CPU did all the work.
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
    """A built session."""

    def __init__(self, session: Any, program: Program) -> None:  # noqa: ANN401 - an extension type
        self._session = session
        self._inputs = [port.name for port in program.inputs]
        self._outputs = [port.name for port in program.outputs]
        self._all_plain = _PLAIN.issuperset([port.dtype for port in (*program.inputs, *program.outputs)])

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed."""
        return self._run_arrays(feed) if self._all_plain else self._run_values(feed)

    def _run_arrays(self, feed: Feed) -> tuple[Tensor | None, ...]:
        feeds = {name: tensor.array for name, tensor in zip(self._inputs, feed, strict=True)}
        results = self._session.run(self._outputs, feeds, None)
        return tuple([None if result is None else _wrap(np.asarray(result)) for result in results])

    def _run_values(self, feed: Feed) -> tuple[Tensor | None, ...]:
        given = [_words(tensor) for tensor in feed]  # the values look into this memory
        feeds = {name: _to_value(*words) for name, words in zip(self._inputs, given, strict=True)}
        results = self._session.run_with_ort_values(feeds, self._outputs, None)
        return tuple([None if not result.has_value() else _from_value(result) for result in results])


_PLAIN = frozenset(name for name, info in DTYPES.items() if info.storage.name == name or name == "string")
"""Element types that numpy itself has."""


def _plain(dtype: str) -> bool:
    return dtype in _PLAIN


def _wrap(array: "np.ndarray[Any, Any]") -> Tensor:
    return Tensor(numpy_name(array.dtype), array)


def _words(tensor: Tensor) -> tuple[str, Array]:
    """Return type and memory of an input. Of packed elements the binding wants a byte for each, and reads the first."""
    words = np.require(tensor.array, requirements="C")
    if not is_packed(tensor.dtype):
        return tensor.dtype, words
    packed = pack(words, DTYPES[tensor.dtype].bits).ljust(words.size, b"\0")
    return tensor.dtype, np.frombuffer(packed, np.uint8).copy().reshape(words.shape)


def _to_value(dtype: str, words: Array) -> Any:  # noqa: ANN401 - an extension type
    if _plain(dtype):
        return ort.OrtValue.ortvalue_from_numpy(words)._ortvalue
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(words, DTYPES[dtype].code)._ortvalue


def _from_value(value: Any) -> Tensor:  # noqa: ANN401 - an extension type
    """Read a result; types that numpy lacks are copied from memory, because the binding refuses to convert them."""
    dtype = BY_CODE[value.element_type()].name
    if _plain(dtype):
        return Tensor(dtype, np.asarray(value.numpy()))
    shape, storage = tuple(value.shape()), DTYPES[dtype].storage
    if is_packed(dtype):
        bits, count = DTYPES[dtype].bits, math.prod(shape)
        stream = ctypes.string_at(value.data_ptr(), packed_size(count, bits)) if count else b""
        return Tensor(dtype, unpack(stream, bits, count).reshape(shape))
    size = math.prod(shape) * storage.itemsize
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return Tensor(dtype, np.frombuffer(data, storage).reshape(shape))
