"""Build and execution of a model by ONNX Runtime; standalone scripts contain the functions that they need.

Sessions are constructed through the extension module instead of the `InferenceSession` wrapper, whose checks take as
long as the compilation of a small graph.
"""

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnxruntime.capi import _pybind_state as native

from miscompile.targets.ort_values import run_arrays, saturates

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


def equal(some: Sequence[NDArray[np.generic] | None], others: Sequence[NDArray[np.generic] | None]) -> bool:
    """Tell whether two lists of outputs agree in every bit."""
    return all(
        one is other if one is None or other is None else np.asarray(one).tobytes() == np.asarray(other).tobytes()
        for one, other in zip(some, others, strict=True)
    )


def optimised(model: bytes, level: str, disabled: Collection[str]) -> bytes:
    """Return the model after the graph optimisations of `level`, without the passes `disabled`."""
    options = session_options(level)
    with tempfile.TemporaryDirectory() as folder:
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
