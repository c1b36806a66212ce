"""Reading and interpretation of a model by the ONNX reference implementation; standalone scripts contain these
functions."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import checker
from onnx.reference import ReferenceEvaluator


def read_model(model: bytes) -> ReferenceEvaluator:
    """Read and check a model. Raises onnx's exceptions for an invalid one or an unsupported operator."""
    return ReferenceEvaluator(checked_model(model))


def checked_model(model: bytes) -> onnx.ModelProto:
    """Read and check a model. Raises onnx's exceptions for an invalid one."""
    read = onnx.load_model_from_string(model)
    checker.check_model(read)
    return read


def evaluate(
    evaluator: ReferenceEvaluator, feed: Mapping[str, NDArray[np.generic]]
) -> Sequence[NDArray[np.generic] | None]:
    """Interpret on a copy of one feed, because some operators of the interpreter write to their operands."""
    with np.errstate(all="ignore"):
        copies = {name: array.copy() for name, array in feed.items()}
        found: Sequence[NDArray[np.generic] | None] = evaluator.run(None, copies)
    return found
