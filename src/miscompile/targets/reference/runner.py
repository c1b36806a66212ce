"""Reading and interpretation of a model by the ONNX reference implementation; standalone scripts contain these
functions."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import checker
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


def read_model(model: bytes, operators: Sequence[type[OpRun]] = ()) -> ReferenceEvaluator:
    """Read and check a model, for an evaluator that takes `operators` in place of its own.

    Raises onnx's exceptions for an invalid model or an unsupported operator.
    """
    read = onnx.load_model_from_string(model)
    checker.check_model(read)
    return ReferenceEvaluator(read, new_ops=list(operators))


def evaluate(
    evaluator: ReferenceEvaluator, feed: Mapping[str, NDArray[np.generic]]
) -> Sequence[NDArray[np.generic] | None]:
    """Interpret on a copy of one feed, because some operators of the interpreter write to their operands."""
    with np.errstate(all="ignore"):
        copies = {name: array.copy() for name, array in feed.items()}
        found: Sequence[NDArray[np.generic] | None] = evaluator.run(None, copies)
    return found
