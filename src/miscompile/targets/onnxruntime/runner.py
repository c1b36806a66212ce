"""Build and execution of a model by ONNX Runtime; standalone scripts contain the functions that they need.

Sessions are constructed through the extension module instead of the `InferenceSession` wrapper, whose checks take as
long as the compilation of a small graph.
"""

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnxruntime.capi import _pybind_state as native

from miscompile.targets.guards import GuardedArray, guarded, require_intact, target_of, watched
from miscompile.targets.ort_values import WIDTHS, run_arrays, run_words, saturates

LEVELS = {
    "off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "layout": getattr(ort.GraphOptimizationLevel, "ORT_ENABLE_LAYOUT", ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED),
    "full": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
"""The execution provider of each device. Nodes that a provider does not support run on the CPU."""

CUDA_OPTIONS = {"use_tf32": "0", "cudnn_conv_algo_search": "DEFAULT"}
"""Products in float32 as in the model; for convolutions a fixed algorithm instead of the fastest measured one."""


def session_options(level: str, threads: int = 1) -> ort.SessionOptions:
    """Return options for `level` that make results independent of the processor."""
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = False  # small models build and run faster without
    options.enable_mem_pattern = False
    # The default quantises the other operand of products with dequantised weights, by design; ask for float32.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    if saturates():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def start(source: bytes | str, options: ort.SessionOptions, disabled: Collection[str]) -> native.InferenceSession:
    """Return a session without the passes `disabled` for a model, given as bytes or as the path of a file."""
    session = native.InferenceSession(options, source, isinstance(source, str), False)
    session.initialize_session(["CPUExecutionProvider"], [{}], set(disabled))
    return session


def start_on(
    device: str, source: bytes | str, options: ort.SessionOptions, disabled: Collection[str]
) -> native.InferenceSession:
    """Return a session whose nodes run on `device` where they can."""
    if device == "cpu":
        return start(source, options, disabled)
    options.use_deterministic_compute = True
    session = native.InferenceSession(options, source, isinstance(source, str), False)
    session.initialize_session([PROVIDERS[device], PROVIDERS["cpu"]], [CUDA_OPTIONS, {}], set(disabled))
    return session


def run_at_once(
    session: native.InferenceSession, outputs: Sequence[str], feed: Mapping[str, NDArray[np.generic]], threads: int
) -> list[NDArray[np.generic] | None]:
    """Run on one feed alone, then in several threads at once; return a result that differs from the first, if any."""
    alone = run_arrays(session, outputs, feed)
    with ThreadPoolExecutor(threads) as pool:
        results = list(pool.map(lambda _: run_arrays(session, outputs, feed), range(4 * threads)))
    return next((result for result in results if not equal(result, alone)), alone)


def run_bound(
    session: native.InferenceSession, outputs: Sequence[str], feed: Mapping[str, NDArray[np.generic]]
) -> list[NDArray[np.generic] | None]:
    """Run on one feed with inputs and outputs bound to memory; run twice, so that the outputs hold old results."""
    shown = run_arrays(session, outputs, feed)
    if any(value is None or np.asarray(value).dtype == object for value in (*shown, *feed.values())):
        return shown
    binding = native.SessionIOBinding(session)
    values = {
        name: ort.OrtValue.ortvalue_from_numpy(np.require(array, requirements="C")) for name, array in feed.items()
    }
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value._ortvalue)
    places = [ort.OrtValue.ortvalue_from_numpy(np.ones_like(np.asarray(value))) for value in shown]
    for name, place in zip(outputs, places, strict=True):
        binding.bind_ortvalue_output(name, place._ortvalue)
    for _ in range(2):
        session.run_with_iobinding(binding, None)
    # An output that is an input of the model is not written to its place, but is among the binding's outputs.
    return [np.array(value.numpy()) for value in binding.get_outputs()]


def start_guarded(
    model: bytes, options: ort.SessionOptions, level: str, disabled: Collection[str], place: str, fill: int
) -> tuple[native.InferenceSession, list[tuple[GuardedArray, ort.OrtValue]]]:
    """Return a session whose initializers lie between guard pages, and their memory, which must outlive it."""
    arrays = kept(model, level, frozenset(disabled))
    guards = [guarded(name, "initializer", array, place) for name, array in arrays.items()]
    held = [(guard, ort.OrtValue.ortvalue_from_numpy(guard.array)) for guard in guards]
    for guard, value in held:
        options.add_initializer(guard.name, value)  # the options keep a pointer to the value
    with watched(guards, fill):
        return start(model, options, disabled), held


@lru_cache(1)
def kept(model: bytes, level: str, disabled: frozenset[str]) -> dict[str, NDArray[np.generic]]:
    """Return the initializers that the optimised model has as well, unchanged.

    A session takes memory for an initializer by its name, so the name must not stand for other contents by then. The
    last result is kept, because a program runs with guards several times.
    """
    before = initializers(model)
    after = initializers(optimised(model, level, disabled)) if before else {}
    shared = {name: array for name, array in before.items() if name in after and array.shape == after[name].shape}
    return {name: array for name, array in shared.items() if equal([array], [after[name]])}


def initializers(model: bytes) -> dict[str, NDArray[np.generic]]:
    """Return the initializers of a model that are no inputs, of element types that numpy has; no strings."""
    graph = onnx.load_model_from_string(model).graph
    taken = {value.name for value in graph.input}
    return {
        one.name: onnx.numpy_helper.to_array(one)
        for one in graph.initializer
        if one.name not in taken and one.data_type not in WIDTHS and one.data_type != onnx.TensorProto.STRING
    }


def run_guarded(
    session: native.InferenceSession,
    outputs: Sequence[str],
    feed: Mapping[str, NDArray[np.generic]],
    held: Sequence[tuple[GuardedArray, ort.OrtValue]],
    place: str,
    fill: int,
) -> list[NDArray[np.generic] | None]:
    """Run on one feed with inputs and all outputs of the session between guard pages; return `outputs`.

    `held` is the memory of the initializers. Raises OverrunError when the run has changed memory around an output.
    """
    names = [*outputs, *(one.name for one in session.outputs_meta if one.name not in outputs)]
    constants = [guard for guard, _ in held]
    with watched(constants, fill):
        shown = run_arrays(session, names, feed)  # for the sizes of the outputs
    if any(value is None or np.asarray(value).dtype == object for value in (*shown, *feed.values())):
        return shown[: len(outputs)]
    binding = native.SessionIOBinding(session)
    inputs = [guarded(name, "input", array, place) for name, array in feed.items()]
    targets = [target_of(name, np.asarray(value), place, fill) for name, value in zip(names, shown, strict=True)]
    for guard in inputs:
        binding.bind_ortvalue_input(guard.name, ort.OrtValue.ortvalue_from_numpy(guard.array)._ortvalue)
    for guard in targets:
        binding.bind_ortvalue_output(guard.name, ort.OrtValue.ortvalue_from_numpy(guard.array)._ortvalue)
    with watched([*inputs, *targets, *constants], fill):
        session.run_with_iobinding(binding, None)
    require_intact(targets)
    return [np.array(value.numpy()) for value in list(binding.get_outputs())[: len(outputs)]]


def tapped(model: bytes) -> bytes:
    """Return a model in which every value of the main graph is an output as well, after its own outputs.

    Strings, and values whose type is not inferred or is no tensor of a type that numpy has, are left out.
    """
    whole = onnx.load_model_from_string(model)
    graph = onnx.shape_inference.infer_shapes(whole).graph
    known = {value.name: value for value in graph.value_info if value.type.HasField("tensor_type")}
    made = {name for node in graph.node for name in node.output}
    for name in sorted(known.keys() & made - {value.name for value in graph.output}):
        kind = known[name].type.tensor_type.elem_type
        if kind not in WIDTHS and kind != onnx.TensorProto.STRING:
            whole.graph.output.append(known[name])
    return bytes(whole.SerializeToString())


def run_filled(
    session: native.InferenceSession,
    outputs: Sequence[str],
    feed: Mapping[str, NDArray[np.generic]],
    types: Mapping[str, int],
    held: Sequence[tuple[GuardedArray, ort.OrtValue]],
    fill: int,
) -> list[tuple[int, NDArray[np.generic]] | None]:
    """Run as `run_words` does; only initializers are guarded, and fresh memory holds the byte `fill`."""
    with watched([guard for guard, _ in held], fill):
        return run_words(session, outputs, feed, types)


def equal(some: Sequence[NDArray[np.generic] | None], others: Sequence[NDArray[np.generic] | None]) -> bool:
    """Tell whether two lists of outputs agree in every bit."""
    return all(
        one is other if one is None or other is None else np.asarray(one).tobytes() == np.asarray(other).tobytes()
        for one, other in zip(some, others, strict=True)
    )


def optimised(model: bytes, level: str, disabled: Collection[str]) -> bytes:
    """Return the model after the graph optimisations of `level`, without the passes `disabled`."""
    options = session_options(level)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        options.optimized_model_filepath = path = os.path.join(folder, "model.onnx")
        start(model, options, disabled)
        return Path(path).read_bytes()


def start_reloaded(
    model: bytes, options: ort.SessionOptions, disabled: Collection[str], folder: str, form: str
) -> native.InferenceSession:
    """Optimise, save the result to `folder` in the format `form`; return a session for it without further
    optimisation."""
    options.optimized_model_filepath = path = os.path.join(folder, f"model.{form}")
    options.add_session_config_entry("session.save_model_format", form.upper())
    start(model, options, disabled)
    return start(path, session_options("off", options.intra_op_num_threads), ())
